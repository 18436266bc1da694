"""A worker of an agents framework on 127.0.0.1: it greets at once with speech of flite, and has a fixed answer to each turn.

Usage: worker.py WS_URL KEY SECRET NAME [--hasty]

It registers under NAME, and the room server dispatches it to rooms that ask for that name. With --hasty it waits for nobody: it publishes
its track and speaks into it at once. Prints one JSON object for each event, with the time of day in seconds, and ends with its input.
"""

import asyncio
import json
import sys
import time
import wave
from io import BytesIO

import numpy
from ending import end_with_input
from livekit import rtc
from livekit.agents import (
    DEFAULT_API_CONNECT_OPTIONS, Agent, AgentServer, AgentSession, JobContext, JobExecutorType, llm, tts, utils,
)

RATE = 16000
LOUD = 500
GREETING = "Good morning, this is the front desk of the grand hotel. How can I help you today?"
ANSWER = "Let me see. Yes, we have a table for two tomorrow evening."

url, key, secret, name = sys.argv[1:5]


def tell(event, **more):
    print(json.dumps({"event": event, "at": time.time(), **more}), flush=True)


async def synthesize(text):
    """Returns speech as samples of 16 bits at 16 kHz."""
    program = await asyncio.create_subprocess_exec(
        "flite", "-voice", "slt", "-t", text, "-o", "/dev/stdout", stdout=asyncio.subprocess.PIPE
    )
    spoken, _ = await program.communicate()
    # A pipe has no end that the header could tell.
    with wave.open(BytesIO(spoken)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2)
    pcm = numpy.frombuffer(spoken[44:], dtype=numpy.int16)
    loud = numpy.flatnonzero(numpy.abs(pcm) > LOUD) / RATE
    tell("synthesized", text=text, first=loud[0], last=loud[-1], seconds=len(pcm) / RATE)
    return pcm.tobytes()


class Flite(tts.TTS):
    def __init__(self):
        super().__init__(capabilities=tts.TTSCapabilities(streaming=False), sample_rate=RATE, num_channels=1)

    def synthesize(self, text, *, conn_options=DEFAULT_API_CONNECT_OPTIONS):
        return Spoken(tts=self, input_text=text, conn_options=conn_options)


class Spoken(tts.ChunkedStream):
    async def _run(self, output_emitter):
        output_emitter.initialize(
            request_id=utils.shortuuid(), sample_rate=RATE, num_channels=1, mime_type="audio/pcm"
        )
        output_emitter.push(await synthesize(self.input_text))
        output_emitter.flush()


class FixedAnswer(llm.LLM):
    def chat(self, *, chat_ctx, tools=None, conn_options=DEFAULT_API_CONNECT_OPTIONS, **_rest):
        return Fixed(self, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options)


class Fixed(llm.LLMStream):
    async def _run(self):
        delta = llm.ChoiceDelta(role="assistant", content=ANSWER)
        self._event_ch.send_nowait(llm.ChatChunk(id=utils.shortuuid(), delta=delta))


server = AgentServer(
    job_executor_type=JobExecutorType.THREAD, ws_url=url, api_key=key, api_secret=secret, host="127.0.0.1", port=0,
    num_idle_processes=1, load_threshold=float("inf"),
)


@server.rtc_session(agent_name=name)
async def serve(job: JobContext):
    await (hasty(job) if "--hasty" in sys.argv else greet(job))


async def greet(job):
    session = AgentSession(tts=Flite(), llm=FixedAnswer())
    await session.start(agent=Agent(instructions="Answer."), room=job.room)
    session.output.audio.on("playback_started", lambda _event: tell("speaks"))
    session.output.audio.on("playback_finished", lambda event: tell("spoke", seconds=event.playback_position))
    session.say(GREETING)


async def hasty(job):
    # It is made before there is anybody to hear it.
    pcm = await synthesize(GREETING)
    await job.connect()
    source = rtc.AudioSource(RATE, 1, queue_size_ms=100)
    track = rtc.LocalAudioTrack.create_audio_track("voice", source)
    await job.room.local_participant.publish_track(
        track, rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_MICROPHONE)
    )
    tell("speaks")
    step = RATE // 50 * 2
    for at in range(0, len(pcm) - step + 1, step):
        await source.capture_frame(rtc.AudioFrame(pcm[at : at + step], RATE, 1, step // 2))
    await source.wait_for_playout()
    tell("spoke", seconds=len(pcm) / 2 / RATE)


async def run():
    server.on("worker_registered", lambda *_: tell("registered"))
    await server.run(devmode=True)


end_with_input()
asyncio.run(run())
