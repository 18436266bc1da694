"""Eighteen calls with the Python client that openapi-python-client makes of the document: FOLDER URL KEY."""

import sys
from http import HTTPStatus

sys.path.insert(0, sys.argv[1])

from ringer_client import AuthenticatedClient
from ringer_client.api.agents import add_agent, get_agent, list_agents, update_agent
from ringer_client.api.digital_humans import create_digital_human, list_digital_humans, update_digital_human
from ringer_client.api.folders import create_folder, list_folders, move_agent
from ringer_client.api.runs import list_simulation_runs
from ringer_client.api.schedules import create_schedule, update_schedule
from ringer_client.api.simulations import add_digital_humans_to_simulation, create_simulation, get_simulation
from ringer_client.api.system import ping
from ringer_client.api.webhooks import create_webhook
from ringer_client.models import (
    AgentSpec,
    CreateCronJobRequest,
    CreateDigitalHuman,
    DailySchedule,
    DigitalHumanSpec,
    EventType,
    FolderSpec,
    Links,
    MoveAgent,
    SimulationSpec,
    UpdateAgent,
    UpdateCronJobRequest,
    UpdateDigitalHuman,
    ValidationError,
    WebhookSpec,
)

calls = 0
client = AuthenticatedClient(base_url=sys.argv[2], token=sys.argv[3])


def call(operation, *args, **kwargs):
    """Returns the parsed answer of a call, which must be a success."""
    global calls
    calls += 1
    answer = operation.sync_detailed(*args, client=client, **kwargs)
    assert answer.status_code == HTTPStatus.OK, (operation.__name__, answer)
    assert answer.parsed is not None, operation.__name__
    return answer.parsed


assert call(ping).message == "pong"
agent = int(call(add_agent, body=AgentSpec(name="Desk", goals=["book"])).agent_id)
read = call(get_agent, agent)
assert (read.name, read.type_.value, read.goals) == ("Desk", "INBOUND", ["book"])
call(update_agent, body=UpdateAgent(agent_id=str(agent), name="Front desk"))
assert call(list_agents)[0].name == "Front desk"
folder = call(create_folder, body=FolderSpec(name="Desks")).id
call(move_agent, body=MoveAgent(agent_id=agent, folder_id=folder))
assert [one.name for one in call(list_folders)] == ["Desks"]
human = call(create_digital_human, body=CreateDigitalHuman(digital_human=DigitalHumanSpec(name="Maria", intent="Book.")))
number = human.digital_human.id
call(update_digital_human, number, body=UpdateDigitalHuman(intent="Book a table."))
assert call(list_digital_humans, page=1, page_size=5).total_count == 1
simulation = int(call(create_simulation, body=SimulationSpec(agent_id=str(agent), name="Booking")).simulation_id)
call(add_digital_humans_to_simulation, simulation, body=Links(digital_human_ids=[number]))
assert call(get_simulation, simulation).name == "Booking"
schedule = DailySchedule(frequency="daily", time="09:05")
made = call(create_schedule, body=CreateCronJobRequest(simulation_id=str(simulation), schedule=schedule, enabled=False))
call(update_schedule, str(made.id), body=UpdateCronJobRequest(enabled=False))
call(create_webhook, body=WebhookSpec(url="http://127.0.0.1:9/hook", event_types=[EventType.SIMULATION_ENDED]))
assert call(list_simulation_runs).simulation_runs == []
assert calls == 18, calls

refused = add_agent.sync_detailed(client=client, body=AgentSpec(name=""))
assert refused.status_code == HTTPStatus.UNPROCESSABLE_ENTITY, refused
assert isinstance(refused.parsed, ValidationError) and refused.parsed.detail[0].loc == ["body", "name"], refused
print(calls)
