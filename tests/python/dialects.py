"""Reads and writes messages of carriers' protocols by the serializers of other people.

One JSON object a line in, one a line out; it ends with its input.

    {"new": KIND, "stream": ID, "call": ID, "rate": HZ}   a serializer                 -> {}
    {"detect": [TEXT, ...]}                               whose carrier sent these     -> {"kind", "data"}
    {"read": TEXT} {"read_binary": BASE64}                a message of the caller      -> {"frame", ...}
    {"write": BASE64, "rate": HZ} {"write": "clear"}      a frame of the agent         -> {"text"} {"binary"}
    {"double": TEXT, "stream": ID}                        a message of an agent        -> {"double", ...}
    {"doubled": [WHAT, ...]}                              messages of a caller         -> {"texts": [...]}
"""

import asyncio
import base64
import json
import sys
from types import SimpleNamespace

from loguru import logger
from pipecat.frames.frames import (
    InputAudioRawFrame,
    InputDTMFFrame,
    InterruptionFrame,
    OutputAudioRawFrame,
    OutputTransportMessageUrgentFrame,
)
from pipecat.runner.utils import parse_telephony_websocket
from pipecat.serializers.exotel import ExotelFrameSerializer
from pipecat.serializers.genesys import GenesysAudioHookSerializer
from pipecat.serializers.plivo import PlivoFrameSerializer
from pipecat.serializers.protobuf import ProtobufFrameSerializer
from pipecat.serializers.telnyx import TelnyxFrameSerializer
from pipecat.serializers.twilio import TwilioFrameSerializer
from pipecat.serializers.vonage import VonageFrameSerializer
from streamdouble.protocol import MediaStreamEncoder, ProtocolViolation, parse_outbound

logger.remove()
logger.add(sys.stderr, level="WARNING")


class Socket:
    """As much of a server's socket as the detection of a carrier reads."""

    def __init__(self, texts):
        self.texts = texts

    async def iter_text(self):
        for text in self.texts:
            yield text


def serializer(order):
    stream, call, rate = order.get("stream", ""), order.get("call", ""), order.get("rate", 8000)
    match order["new"]:
        case "twilio_media_streams" | "signalwire_stream":
            params = TwilioFrameSerializer.InputParams(auto_hang_up=False)
            return TwilioFrameSerializer(stream, call, params=params)
        case "telnyx_media_streaming":
            params = TelnyxFrameSerializer.InputParams(auto_hang_up=False)
            return TelnyxFrameSerializer(stream, "PCMU", "PCMU", call, params=params)
        case "plivo_audio_streaming":
            params = PlivoFrameSerializer.InputParams(auto_hang_up=False)
            return PlivoFrameSerializer(stream, call, params=params)
        case "exotel_agentstream":
            params = ExotelFrameSerializer.InputParams(exotel_sample_rate=rate)
            return ExotelFrameSerializer(stream, call, params=params)
        case "vonage_websocket":
            params = VonageFrameSerializer.InputParams(vonage_sample_rate=rate)
            return VonageFrameSerializer(params=params)
        case "audiohook":
            return GenesysAudioHookSerializer()
        case "pipecat_protobuf":
            return ProtobufFrameSerializer()
    raise ValueError(order["new"])


def told(frame):
    """What a frame is, as JSON."""
    match frame:
        case None:
            return {"frame": None}
        case InputAudioRawFrame():
            audio = base64.b64encode(frame.audio).decode()
            return {"frame": "audio", "audio": audio, "rate": frame.sample_rate, "channels": frame.num_channels}
        case InputDTMFFrame():
            return {"frame": "digit", "digit": frame.button.value}
        case OutputTransportMessageUrgentFrame():
            return {"frame": "answer", "text": json.dumps(frame.message)}
    return {"frame": type(frame).__name__, "message": getattr(frame, "message", None)}


def doubled(order):
    encoder = MediaStreamEncoder()
    texts = []
    for what in order["doubled"]:
        match what:
            case ["connected"]:
                texts.append(encoder.connected())
            case ["start", parameters]:
                texts.append(encoder.start(custom_parameters=parameters))
            case ["media", payload]:
                texts.append(encoder.media(base64.b64decode(payload)))
            case ["mark", name]:
                texts.append(encoder.mark(name))
            case ["dtmf", digit]:
                texts.append(encoder.dtmf(digit))
            case ["stop"]:
                texts.append(encoder.stop())
    return {"texts": [json.dumps(text) for text in texts]}


def double(order):
    try:
        frame = parse_outbound(order["double"], expected_stream_sid=order["stream"])
    except ProtocolViolation as violation:
        return {"double": "violation", "code": violation.code}
    return {"double": type(frame).__name__, "name": getattr(frame, "name", None)}


async def carried_out(order, state):
    if "new" in order:
        state["serializer"] = serializer(order)
        await state["serializer"].setup(SimpleNamespace(audio_in_sample_rate=16000, audio_out_sample_rate=24000))
        return {}
    if "detect" in order:
        kind, data = await parse_telephony_websocket(Socket(order["detect"]))
        return {"kind": kind, "data": data.model_dump(by_alias=True)}
    if "double" in order:
        return double(order)
    if "doubled" in order:
        return doubled(order)
    if "read" in order:
        return told(await state["serializer"].deserialize(order["read"]))
    if "read_binary" in order:
        return told(await state["serializer"].deserialize(base64.b64decode(order["read_binary"])))
    if order["write"] == "clear":
        frame = InterruptionFrame()
    else:
        frame = OutputAudioRawFrame(base64.b64decode(order["write"]), order["rate"], 1)
    made = await state["serializer"].serialize(frame)
    if isinstance(made, str):
        return {"text": made}
    return {"binary": base64.b64encode(bytes(made or b"")).decode()}


async def main():
    state = {}
    for line in sys.stdin:
        print(json.dumps(await carried_out(json.loads(line), state)), flush=True)


asyncio.run(main())
