"""An operation of each tag, called and awaited: `operations.py URL KEY RESULT`, on an engine that has a result with that id.

Prints the tags whose operations succeeded, those that were refused with their status, and the number of all operations.
"""

import asyncio
import http.server
import inspect
import json
import sys
import threading
import uuid

from ringer_client import ApiError, AsyncClient, Client
from ringer_client import models as m

URL, KEY, RESULT = sys.argv[1], sys.argv[2], int(sys.argv[3])
# An id that nothing has, for a request that is to be refused.
NO_ONE = str(2**31 - 1)


def asked(client, name):
    """Returns the answer to one operation of each tag, or what awaits it: tag, then the call."""
    return {
        "agent_versions": lambda: client.agent_versions.create_agent_version(1, body=m.VersionSpec(prompt_text=name)),
        "agents": lambda: client.agents.add_agent(body=m.AgentSpec(name=name)),
        "alerts": lambda: client.alerts.list_alerts(),
        "api_keys": lambda: client.api_keys.get_own_key(),
        "background_noises": lambda: client.background_noises.list_custom_background_noises(),
        "call_logs": lambda: client.call_logs.list_call_logs("1"),
        "communities": lambda: client.communities.list_communities(),
        "custom_metrics": lambda: client.custom_metrics.list_custom_metric_templates(),
        "customers": lambda: client.customers.list_customer_traits(),
        "digital_humans": lambda: client.digital_humans.list_digital_humans(page=1, page_size=5),
        "folders": lambda: client.folders.create_folder(body=m.FolderSpec(name=name)),
        "generation": lambda: client.generation.generate_scenario_from_prompt(
            body=m.GenerateScenarioRequest(prompt="Book a visit.")),
        "integrations": lambda: client.integrations.list_integrations(),
        "internal": lambda: client.internal.sweep_journeys(),
        "issues": lambda: client.issues.list_issues(),
        "judges": lambda: client.judges.list_judge_cards(),
        "labels": lambda: client.labels.list_agent_labels(1),
        "phone_numbers": lambda: client.phone_numbers.list_phone_numbers(),
        "push_and_pull": lambda: client.push_and_pull.pull_bundle(m.RootType.AGENT, "1"),
        "results": lambda: client.results.get_simulation_result(RESULT),
        "runs": lambda: client.runs.list_simulation_runs(),
        "scenarios": lambda: client.scenarios.list_scenarios(),
        "schedules": lambda: client.schedules.list_schedules(),
        "simulations": lambda: client.simulations.list_simulations(),
        "system": lambda: client.system.ping(),
        "text": lambda: client.text.send_text(body=m.TurnSpec(redis_key=name, test_case_id=NO_ONE, message="Hello.")),
        "uptime": lambda: client.uptime.list_monitors(),
        "webhooks": lambda: client.webhooks.create_webhook(
            body=m.WebhookSpec(url="http://127.0.0.1:9/hook", event_types=[m.EventType.SIMULATION_ENDED])),
    }


def told(answer):
    """Returns the type of an answer by name."""
    return f"{type(answer).__name__} of {type(answer[0]).__name__}" if isinstance(answer, list) and answer else type(answer).__name__


def called():
    """Returns what came of each operation: the type of its answer, or its status."""
    found = {}
    with Client(URL, KEY) as client:
        for tag, call in asked(client, f"called {uuid.uuid4()}").items():
            try:
                found[tag] = told(call())
            except ApiError as error:
                assert error.detail, tag
                found[tag] = error.status
    return found


async def awaited():
    """Returns the same of the client whose operations are awaited."""
    found = {}
    async with AsyncClient(URL, KEY) as client:
        for tag, call in asked(client, f"awaited {uuid.uuid4()}").items():
            try:
                found[tag] = told(await call())
            except ApiError as error:
                assert error.detail, tag
                found[tag] = error.status
    return found


def methods(client):
    """Returns the methods of operations by tag."""
    tags = [name for name in vars(client) if not name.startswith("_") and name != "base_url"]
    return {tag: [name for name, _ in inspect.getmembers(getattr(client, tag), inspect.ismethod) if name != "__init__"] for tag in tags}


def refusal(call):
    """Returns status, detail and text of a refused call."""
    try:
        answer = call()
    except ApiError as error:
        return [error.status, error.detail, str(error), repr(error)]
    raise AssertionError(f"it was not refused: {answer!r}")


async def events():
    """Returns the names of the events of the result, awaited."""
    async with AsyncClient(URL, KEY) as client:
        return [event.name async for event in client.results.stream_simulation_result_events(RESULT)]


async def awaited_refusal():
    """Returns the status that a wrong key gets, awaited."""
    async with AsyncClient(URL, "not-a-key-of-this-engine") as client:
        try:
            await client.agents.list_agents()
        except ApiError as error:
            return error.status
    return None


class Moved(http.server.BaseHTTPRequestHandler):
    """A server that says where the recording is, and then has it; it keeps the keys that it is given."""

    keys = []

    def do_GET(self):
        """Answers, 307 to the path of the API."""
        self.keys.append(self.headers.get("X-API-Key"))
        is_moved = self.path.startswith("/v1/")
        self.send_response(307 if is_moved else 200)
        self.send_header("Location" if is_moved else "Content-Type", f"http://{self.headers['Host']}/store" if is_moved else "audio/wav")
        self.send_header("Content-Length", "0" if is_moved else "4")
        self.end_headers()
        self.wfile.write(b"" if is_moved else b"RIFF")

    def log_message(self, *_):
        """Prints nothing."""


def moved():
    """Returns a recording of an object store, and whether each request for it had a key."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Moved)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Client(f"http://127.0.0.1:{server.server_port}", KEY) as client:
        recording = client.results.get_simulation_result_recording(RESULT)
    server.shutdown()
    server.server_close()
    return [recording.decode(), [key is not None for key in Moved.keys]]


def main():
    """Prints all of it as JSON."""
    client = Client(URL, KEY)
    stranger = Client(URL, "not-a-key-of-this-engine")
    print(json.dumps({
        "called": called(),
        "awaited": asyncio.run(awaited()),
        "methods": [methods(client), methods(AsyncClient(URL, KEY))],
        "wrong key": refusal(stranger.agents.list_agents),
        "wrong key, awaited": asyncio.run(awaited_refusal()),
        "wrong key, stream": refusal(lambda: list(stranger.results.stream_simulation_result_events(RESULT)))[0],
        "bad field": refusal(lambda: client.agents.add_agent(body=m.AgentSpec(name=""))),
        "events": [event.name for event in client.results.stream_simulation_result_events(RESULT)],
        "events, awaited": asyncio.run(events()),
        "text": client.system.get_process_metrics()[:2],
        "transcript": told(client.results.get_simulation_result_transcript(RESULT)),
        "bytes": type(client.results.get_simulation_result_evidence(RESULT)).__name__,
        "moved": moved(),
        "repr": repr(client),
    }))


main()
