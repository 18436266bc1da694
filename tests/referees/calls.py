"""Makes the recordings that are judged, and reads what the engine says of each."""

import contextlib
import dataclasses
import json
import pathlib
import queue
import shutil
import socket
import subprocess
import tarfile
import threading
import urllib.request

import numpy
import soundfile

from marks import AGENT, CALLER, RATE, Span, joined

HERE = pathlib.Path(__file__).parent
LONGEST_S = 600


class Broken(Exception):
    """A program did not do what it was asked."""


@dataclasses.dataclass
class Call:
    """A call: its recording, its timeline and its result."""

    name: str
    path: pathlib.Path
    samples: numpy.ndarray
    """Two rows: the caller, the agent."""
    events: list
    result: dict
    clean: numpy.ndarray | None = None
    """The caller before noise, where that is kept."""
    listed: dict | None = None
    """Turns and overlaps as the API lists them, where they were asked for."""

    @property
    def is_noisy(self):
        """Returns true where the caller's channel has a background."""
        return self.result["metadata"]["behaviour"]["background_noise"] not in (None, "none")

    def metric(self, name):
        """Returns a metric of the result, None where it has no value."""
        return {one["name"]: one["value"] for one in self.result["metrics"]}.get(name)

    def spans(self):
        """Returns the stretches of speech and the keys of the timeline or of an agent's log, with gaps under 300 ms joined."""
        began, found = {}, self.keys()
        for event in sorted(self.events, key=lambda event: event["sample"]):
            at, side = event["sample"] / RATE, CALLER if event["side"] in ("dh", "caller") else AGENT
            if event["event"] == "speech.started":
                began[side] = at
            elif event["event"] == "speech.ended" and side in began:
                found.append(Span(side, began.pop(side), at))
        by_onset = sorted(found, key=lambda span: span.start)
        return [whole for side in (CALLER, AGENT) for whole in joined(span for span in by_onset if span.side == side)]

    def keys(self):
        """Returns the keys of the caller. Sent as events, they have no sound."""
        return [
            Span(CALLER, event["sample"] / RATE, event["sample"] / RATE + event["data"]["duration_ms"] / 1000)
            for event in self.events if event["event"] == "dtmf_sent"
        ]


def run(*command, may_end_with=(0,), place=None):
    """Runs a program to its end, in the folder `place` if given, and returns what it printed.

    Raises Broken where it ends with another exit code.
    """
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=LONGEST_S)
    if done.returncode not in may_end_with:
        raise Broken(f"`{' '.join(words)}` ended with {done.returncode}: {(done.stderr or done.stdout)[-500:]}")
    return done.stdout


def samples_of(path):
    """Returns the channels of a WAV file of 16 kHz as rows. Raises Broken for another rate."""
    samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    if rate != RATE:
        raise Broken(f"{path} has {rate} samples a second, not {RATE}")
    return samples.T


def suite(ringer, folder, repeat, seed):
    """Returns the calls of calls.yaml in virtual time, `repeat` of each scenario, from `seed` on."""
    out = folder / "suite"
    run(ringer, "run", HERE / "calls.yaml", "--sim", "--seed", seed, "--repeat", repeat, "--evidence", "--out", out)
    return unpacked(out)


def unpacked(out):
    """Returns the calls of a run, from the evidence in its folder."""
    calls = []
    for evidence in sorted((out / "evidence").glob("*.tar")):
        place = evidence.with_suffix("")
        with tarfile.open(evidence) as packed:
            packed.extractall(place, filter="data")
        result = json.loads((place / "result.json").read_text())
        events = json.loads((place / "timeline.json").read_text())["events"]
        path = place / "recording.wav"
        calls.append(Call(place.name, path, samples_of(path), events, result))
    return calls


def demo(ringer, folder):
    """Returns the real calls of the demonstration, and what of its own checks did not hold."""
    told = json.loads(run(ringer, "demo", "--keep", folder / "demo", "--json", may_end_with=(0, 1, 3)))
    wrong = [f"{check['call']}: {check['claim']} ({json.dumps(check['figure'])})" for check in told["checks"] if not check["ok"]]
    return kept(ringer, told), wrong


def kept(ringer, told):
    """Returns the calls that a demonstration has kept, with its JSON as `told`."""
    data = pathlib.Path(told["kept"]) / "data"
    calls = []
    with engine(ringer, data) as ask:
        for call in told["calls"]:
            place = f"/v1/simulation-result/{call['result_id']}"
            result = ask(f"/v1/retrieve-simulation-result/{call['result_id']}")
            files = data / "results" / call["result_id"]
            path = files / "recording.wav"
            calls.append(Call(
                f"demo-{call['name']}", path, samples_of(path), ask(f"{place}/timeline")["events"],
                result.get("simulation_result", result), samples_of(files / "caller_clean.wav")[0], ask(f"{place}/turns"),
            ))
    return calls


@contextlib.contextmanager
def engine(ringer, data):
    """Runs an engine on kept data; gives a function that gets JSON from a path of its API."""
    key = json.loads(run(ringer, "keys", "create", "--data", data, "--scope", "read", "--json"))["api_key"]
    port = free_port()
    command = [ringer, "up", "--data", data, "--listen", f"127.0.0.1:{port}", "--sip", f"udp:127.0.0.1:{free_port()}"]

    def ask(path):
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"X-API-Key": key})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    with running([*command, "--no-page-link"], "ringer is ready"):
        yield ask


@contextlib.contextmanager
def running(command, ready):
    """Runs a program in the background until the end of the block. Raises Broken where no line has `ready` within 60 s."""
    words = [str(word) for word in command]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = queue.Queue()

    def read():
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    try:
        heard = []
        while not (heard and ready in heard[-1]):
            try:
                line = lines.get(timeout=60)
            except queue.Empty:
                line = None
            if line is None:
                raise Broken(f"`{' '.join(words)}` did not say {ready!r}: {''.join(heard)[-500:]}")
            heard.append(line)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port():
    """Returns a port of this machine that nobody has at the moment."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def fresh(folder):
    """Returns the folder, emptied of what an earlier run has left."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
