"""A voice agent on the server transport and serializers of a pipeline framework, for each carrier's protocol that they know.

The path names the protocol: ws://127.0.0.1:PORT/KIND. It greets with a second of recorded speech, and answers the caller's first
words with three seconds of a tone of 880 Hz, which it takes back after one. `GET /seen` tells what it knows of each kind's call.
Prints its address. Everything else that it says goes to stderr.
"""

import asyncio
import socket
import sys
import time

import numpy
import uvicorn
from ending import end_with_input
from fastapi import FastAPI, WebSocket
from loguru import logger
from pipecat.frames.frames import InputAudioRawFrame, InputDTMFFrame, OutputAudioRawFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.runner.utils import parse_telephony_websocket
from pipecat.serializers.exotel import ExotelFrameSerializer
from pipecat.serializers.genesys import GenesysAudioHookSerializer
from pipecat.serializers.plivo import PlivoFrameSerializer
from pipecat.serializers.protobuf import ProtobufFrameSerializer
from pipecat.serializers.telnyx import TelnyxFrameSerializer
from pipecat.serializers.twilio import TwilioFrameSerializer
from pipecat.serializers.vonage import VonageFrameSerializer
from pipecat.transports.websocket.fastapi import FastAPIWebsocketParams, FastAPIWebsocketTransport
from pipecat.workers.runner import WorkerRunner
from recorded import speech

logger.remove()
logger.add(sys.stderr, level="WARNING")

RATE = 16000
TONE_HZ = 880
TELEPHONY = ("twilio_media_streams", "signalwire_stream", "telnyx_media_streaming", "plivo_audio_streaming", "exotel_agentstream")

app, calls = FastAPI(), {}


def tone(seconds):
    at = numpy.arange(int(seconds * RATE)) / RATE
    return (8000 * numpy.sin(2 * numpy.pi * TONE_HZ * at)).astype(numpy.int16).tobytes()


async def serializer(kind, socket, seen):
    """Returns the serializer of a kind, with the names of the stream that the first messages tell."""
    if kind in TELEPHONY:
        carrier, data = await parse_telephony_websocket(socket)
        seen["carrier"], stream, call = carrier, data.stream_id, data.call_id
    match kind:
        case "twilio_media_streams" | "signalwire_stream":
            return TwilioFrameSerializer(stream, call, params=TwilioFrameSerializer.InputParams(auto_hang_up=False))
        case "telnyx_media_streaming":
            params = TelnyxFrameSerializer.InputParams(auto_hang_up=False)
            return TelnyxFrameSerializer(stream, "PCMU", "PCMU", call, params=params)
        case "plivo_audio_streaming":
            return PlivoFrameSerializer(stream, call, params=PlivoFrameSerializer.InputParams(auto_hang_up=False))
        case "exotel_agentstream":
            return ExotelFrameSerializer(stream, call)
        case "vonage_websocket":
            return VonageFrameSerializer(params=VonageFrameSerializer.InputParams(vonage_sample_rate=16000))
        case "audiohook":
            return GenesysAudioHookSerializer()
        case "pipecat_protobuf":
            return ProtobufFrameSerializer()


class Bot(FrameProcessor):
    """Says tones, and keeps what it hears."""

    def __init__(self, seen):
        super().__init__()
        self.seen, self.loud, self.has_answered, self.tasks = seen, 0.0, False, set()

    async def say(self, pcm):
        await self.push_frame(OutputAudioRawFrame(pcm, RATE, 1))

    async def answer(self):
        await self.say(tone(3))
        await asyncio.sleep(1)
        await self.broadcast_interruption()

    async def hear(self, frame):
        seen = self.seen
        pcm = numpy.frombuffer(frame.audio, dtype=numpy.int16).astype(float)
        seen.setdefault("first_audio_ms", time.time() * 1000)
        seen["samples"] = seen.get("samples", 0) + len(pcm)
        seen["rate"] = frame.sample_rate
        if len(pcm) and numpy.sqrt(numpy.mean(pcm**2)) > 300:
            seen.setdefault("first_loud_ms", time.time() * 1000)
            seen["peak"] = max(seen.get("peak", 0.0), float(numpy.abs(pcm).max()))
            self.loud += len(pcm) / frame.sample_rate
            seen["loud_seconds"] = self.loud
        if self.loud > 0.4 and not self.has_answered:
            self.has_answered = True
            self.tasks.add(asyncio.create_task(self.answer()))

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, InputAudioRawFrame):
            return await self.hear(frame)
        if isinstance(frame, InputDTMFFrame):
            self.seen.setdefault("digits", []).append(frame.button.value)
        await self.push_frame(frame, direction)


@app.websocket("/{kind}")
async def call(socket: WebSocket, kind: str):
    seen = calls.setdefault(kind, {})
    seen["headers"] = {name: value for name, value in socket.headers.items() if name.startswith("x-")}
    await socket.accept()
    params = FastAPIWebsocketParams(
        audio_in_enabled=True, audio_out_enabled=True, serializer=await serializer(kind, socket, seen)
    )
    transport, bot = FastAPIWebsocketTransport(websocket=socket, params=params), Bot(seen)
    pipeline = Pipeline([transport.input(), bot, transport.output()])
    worker = PipelineWorker(
        pipeline, params=PipelineParams(audio_in_sample_rate=RATE, audio_out_sample_rate=RATE), idle_timeout_secs=None
    )

    @transport.event_handler("on_client_connected")
    async def on_connected(transport, client):
        await bot.say(speech(1))

    @transport.event_handler("on_client_disconnected")
    async def on_disconnected(transport, client):
        seen["closed"] = True
        await worker.cancel()

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    await runner.run()


@app.get("/seen")
async def get_seen():
    return calls


async def main():
    end_with_input()
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    print(f"ws://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    await server.serve(sockets=[listener])


asyncio.run(main())
