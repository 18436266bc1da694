"""Reads messages for voice-agent platforms by the types of these platforms' own clients.

One JSON object a line in, one a line out; it ends with its input.

    {"judge": PRESET, "message": TEXT}     a message of this side                  -> {} {"refused": WHY}
    {"far": PRESET, "message": TEXT}       a message of the platform's server      -> {} {"refused": WHY}
    {"client": EVENT, "tool": RESULT}      what the client of one platform answers -> {"sent": [...], "begins": {...}}
"""

import json
import sys
import threading

import pydantic
from deepgram.agent.v1.types.agent_v1send_function_call_response import AgentV1SendFunctionCallResponse
from deepgram.agent.v1.types.agent_v1agent_audio_done import AgentV1AgentAudioDone
from deepgram.agent.v1.types.agent_v1agent_started_speaking import AgentV1AgentStartedSpeaking
from deepgram.agent.v1.types.agent_v1conversation_text import AgentV1ConversationText
from deepgram.agent.v1.types.agent_v1function_call_request import AgentV1FunctionCallRequest
from deepgram.agent.v1.types.agent_v1settings import AgentV1Settings
from deepgram.agent.v1.types.agent_v1settings_applied import AgentV1SettingsApplied
from deepgram.agent.v1.types.agent_v1user_started_speaking import AgentV1UserStartedSpeaking
from deepgram.agent.v1.types.agent_v1welcome import AgentV1Welcome
from elevenlabs.conversational_ai.conversation import ClientTools, Conversation, ConversationInitiationData
from google.genai import types
from openai.types.realtime.realtime_client_event import RealtimeClientEvent
from openai.types.realtime.realtime_server_event import RealtimeServerEvent

REALTIME = pydantic.TypeAdapter(RealtimeClientEvent)
REALTIME_SERVER = pydantic.TypeAdapter(RealtimeServerEvent)
# Members that servers send and the types leave out.
SENT_BESIDE = {"session.created": {"id", "object"}}
SETTINGS = {"Settings": AgentV1Settings, "FunctionCallResponse": AgentV1SendFunctionCallResponse}


DEEPGRAM_SERVER = {
    "Welcome": AgentV1Welcome,
    "SettingsApplied": AgentV1SettingsApplied,
    "AgentStartedSpeaking": AgentV1AgentStartedSpeaking,
    "ConversationText": AgentV1ConversationText,
    "AgentAudioDone": AgentV1AgentAudioDone,
    "UserStartedSpeaking": AgentV1UserStartedSpeaking,
    "FunctionCallRequest": AgentV1FunctionCallRequest,
}


def check_known(model, place="message", beside=frozenset()):
    """Refuses members that the type does not know, where a type takes them all the same."""
    if isinstance(model, pydantic.BaseModel):
        unknown = set(model.model_extra or {}) - beside
        if unknown:
            raise ValueError(f"{place} has unknown members {sorted(unknown)}")
        for name in type(model).model_fields:
            check_known(getattr(model, name), f"{place}.{name}", beside)
    if isinstance(model, list):
        for item in model:
            check_known(item, place, beside)


class Heard:
    """Takes what the client of one platform makes of the server's messages."""

    callback_agent_response = callback_agent_response_correction = callback_audio_alignment = True
    callback_user_transcript = callback_agent_chat_response_part = callback_latency_measurement = True

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        if not name.startswith("handle_"):
            raise AttributeError(name)
        return lambda *values: self.calls.append([name, *map(repr, values)])


def far(preset, text):
    message = json.loads(text)
    match preset:
        case "openai_realtime":
            check_known(REALTIME_SERVER.validate_python(message), beside=SENT_BESIDE.get(message["type"], frozenset()))
        case "gemini_live":
            types.LiveServerMessage.model_validate_json(text)
        case "deepgram_voice_agent":
            check_known(DEEPGRAM_SERVER[message["type"]].model_validate(message))
        case "elevenlabs_agents":
            heard = Heard()
            LINE._handle_message_core(message, heard)
            if not heard.calls and message["type"] not in UNHANDLED:
                raise ValueError("the client makes nothing of it")
        case other:
            raise ValueError(f"no type reads {other}")


def judge(preset, text):
    match preset:
        case "openai_realtime":
            check_known(REALTIME.validate_json(text))
        case "gemini_live":
            types.LiveClientMessage.model_validate_json(text)
        case "deepgram_voice_agent":
            message = json.loads(text)
            check_known(SETTINGS[message["type"]].model_validate(message))
        case other:
            raise ValueError(f"no type reads {other}")


class Socket:
    """Keeps what a client sends."""

    def __init__(self):
        self.sent = []
        self.is_sent = threading.Event()

    def send(self, text):
        self.sent.append(json.loads(text))
        self.is_sent.set()


def client(event, tool):
    tools = ClientTools()
    tools.register("look", lambda parameters: tool)
    config = ConversationInitiationData(dynamic_variables={"simulation_result_id": "42"})
    line = Conversation(None, "a1", "42", requires_auth=False, config=config, client_tools=tools)
    socket = Socket()
    line._handle_message(event, socket)
    socket.is_sent.wait(10)
    begins = json.loads(line._create_initiation_message())
    tools.stop()
    return {"sent": socket.sent, "begins": begins}


# Its client passes these over; its package has their names, and no types of them.
UNHANDLED = {"conversation_initiation_metadata", "agent_tool_request", "agent_tool_response"}
LINE = Conversation(None, "a1", "42", requires_auth=False, config=ConversationInitiationData(), client_tools=ClientTools())


def answer(order):
    if "client" in order:
        return client(order["client"], order["tool"])
    try:
        if "far" in order:
            far(order["far"], order["message"])
        else:
            judge(order["judge"], order["message"])
    except (ValueError, KeyError, TypeError, AssertionError) as refused:
        return {"refused": str(refused)}
    return {}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
