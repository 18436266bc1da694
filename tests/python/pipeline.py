"""A voice pipeline's small WebRTC transport with its real request handler and aiortc, on 127.0.0.1.

It sends a tone of 880 Hz, measures the one that it hears, and answers messages; `POST /cut` makes its sockets deaf and mute.
Prints its port. Everything else that it says goes to stderr.
"""

import asyncio
import fractions
import json
import socket
import sys

import aioice.ice
import numpy
import uvicorn
from aiortc import MediaStreamTrack
from av import AudioFrame
from fastapi import FastAPI, HTTPException, Request
from loguru import logger
from pipecat.transports.smallwebrtc.request_handler import (
    IceCandidate,
    SmallWebRTCPatchRequest,
    SmallWebRTCRequest,
    SmallWebRTCRequestHandler,
)

logger.remove()
logger.add(sys.stderr, level="WARNING")

RATE = 48000
SENT_HZ = 880
HEARD_HZ = 500
TAKES_PATCHES = "--no-patch" not in sys.argv

# Traffic stays on loopback, which the library leaves out.
aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: ["127.0.0.1"]

protocols, deaf = [], set()
made, received = aioice.ice.StunProtocol.connection_made, aioice.ice.StunProtocol.datagram_received


def connection_made(self, transport):
    made(self, transport)
    protocols.append(self)


def datagram_received(self, data, addr):
    if self not in deaf:
        received(self, data, addr)


aioice.ice.StunProtocol.connection_made = connection_made
aioice.ice.StunProtocol.datagram_received = datagram_received


class Tone(MediaStreamTrack):
    kind = "audio"

    def __init__(self):
        super().__init__()
        self.at, self.began = 0, None

    async def recv(self):
        loop = asyncio.get_running_loop()
        self.began = self.began or loop.time()
        await asyncio.sleep(max(0, self.began + self.at / RATE - loop.time()))
        count = RATE // 50
        sine = numpy.sin(2 * numpy.pi * SENT_HZ / RATE * (self.at + numpy.arange(count)))
        frame = AudioFrame.from_ndarray((8000 * sine).astype(numpy.int16).reshape(1, -1), layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE, self.at, fractions.Fraction(1, RATE)
        self.at += count
        return frame


app, handler = FastAPI(), SmallWebRTCRequestHandler()
seen = {"share": 0.0, "messages": [], "requests": [], "connections": 0, "patches": 0}
running = set()


async def listen(connection):
    """Keeps the share of the tone in the power of the last second."""
    heard = numpy.zeros(0)
    track = connection.audio_input_track()
    while True:
        frame = await track.recv()
        if frame is None:
            return
        pcm = frame.to_ndarray().astype(float).reshape(-1)
        pcm = pcm[:: len(frame.layout.channels)] if frame.format.is_packed else pcm
        heard = numpy.concatenate([heard, pcm])[-frame.sample_rate :]
        turn = numpy.exp(-2j * numpy.pi * HEARD_HZ / frame.sample_rate * numpy.arange(len(heard)))
        power = numpy.sum(heard**2)
        loud = power / len(heard) > 100**2
        seen["share"] = float(2 * abs(numpy.sum(heard * turn)) ** 2 / len(heard) / power) if loud else 0.0


async def connected(connection):
    seen["connections"] += 1

    @connection.event_handler("connected")
    async def on_connected(connection):
        connection.replace_audio_track(Tone())
        task = asyncio.create_task(listen(connection))
        running.add(task)

    @connection.event_handler("app-message")
    async def on_message(connection, message):
        seen["messages"].append(message)
        if message.get("type") != "client-ready":
            return
        say = lambda kind, data: connection.send_app_message(
            {"label": "rtvi-ai", "type": kind, "id": message["id"], "data": data}
        )
        say("bot-ready", {"version": "2.2.0", "about": {"library": "test"}})
        say("bot-started-speaking", None)
        say("bot-transcription", {"text": "Good day."})
        say("llm-function-call-in-progress", {"tool_call_id": "1", "function_name": "weather", "arguments": {"in": "Bern"}})
        say("metrics", {"ttfb": [{"processor": "x", "value": 0.1}]})

    await connection.connect()


@app.post("/api/offer")
async def offer(request: Request):
    body = await request.json()
    seen["requests"].append({name: body.get(name) for name in ("pc_id", "restart_pc", "request_data")})
    return await handler.handle_web_request(SmallWebRTCRequest.from_dict(body), connected)


if TAKES_PATCHES:

    @app.patch("/api/offer")
    async def patch(request: Request):
        body = await request.json()
        seen["patches"] += 1
        candidates = [IceCandidate(**candidate) for candidate in body["candidates"]]
        await handler.handle_patch_request(SmallWebRTCPatchRequest(pc_id=body["pc_id"], candidates=candidates))
        return {"status": "success"}


@app.post("/agents/{name}/start")
async def start(name: str, request: Request):
    if request.headers.get("authorization") != "Bearer key":
        raise HTTPException(status_code=401)
    seen["started"] = [name, await request.json()]
    return {"token": "of the session"}


@app.post("/cut")
async def cut():
    deaf.update(protocols)
    seen["share"] = 0.0
    for protocol in protocols:
        if protocol.transport:
            protocol.transport.sendto = lambda *_: None
    return {}


@app.post("/leave")
async def leave():
    for connection in list(handler._pcs_map.values()):
        await connection.disconnect()
    return {}


@app.get("/seen")
async def get_seen():
    return seen


async def main():
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    await server.serve(sockets=[listener])


asyncio.run(main())
