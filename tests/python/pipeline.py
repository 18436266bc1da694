"""A voice pipeline's small WebRTC transport with its real request handler and aiortc, on 127.0.0.1.

It sends a tone of 880 Hz, measures the one that it hears, and answers messages; `POST /cut` makes its sockets deaf and mute.
With `--yields` it speaks instead, 1.5 s after the caller began, until the caller has been loud for 200 ms; with `--cuts-in` it
speaks for 3 s once the caller has been loud for a second. With `--silent` it says nothing, with `--slow-tool` it calls a
tool that never has a result, and with `--drops-channel` it closes its data channel and goes on.
Prints its address, and ends with its input. Everything else that it says goes to stderr.
"""

import asyncio
import json
import socket
import sys

import aioice.ice
import uvicorn
from ending import end_with_input
from fastapi import FastAPI, HTTPException, Request
from loguru import logger
from pipecat.transports.smallwebrtc.request_handler import (
    IceCandidate,
    SmallWebRTCPatchRequest,
    SmallWebRTCRequest,
    SmallWebRTCRequestHandler,
)
from tones import Speech, Tone, listen

logger.remove()
logger.add(sys.stderr, level="WARNING")

TAKES_PATCHES = "--no-patch" not in sys.argv
SHORT_TONE = "--short-tone" in sys.argv
YIELDS, CUTS_IN, SILENT = "--yields" in sys.argv, "--cuts-in" in sys.argv, "--silent" in sys.argv

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


app, handler = FastAPI(), SmallWebRTCRequestHandler()
seen = {"share": 0.0, "loud": 0, "key": 0.0, "messages": [], "requests": [], "connections": 0, "patches": 0}
running = set()


def take_turn(connection, voice):
    """Gives way to the caller, or cuts in."""
    tell = lambda kind: connection.send_app_message({"label": "rtvi-ai", "type": kind, "id": kind})
    speak = lambda speaks: setattr(voice, "speaks", speaks)
    later = asyncio.get_running_loop().call_later
    voice.against += voice.speaks
    if YIELDS and seen["loud"] == 1:
        later(1.5, speak, True)
    if YIELDS and voice.against == 10:
        speak(False)
        tell("bot-interrupted")
        tell("bot-stopped-speaking")
    if CUTS_IN and seen["loud"] == 50:
        speak(True)
        tell("bot-started-speaking")
        later(3, speak, False)


async def connected(connection):
    seen["connections"] += 1

    @connection.event_handler("connected")
    async def on_connected(connection):
        track = Speech() if YIELDS or CUTS_IN or SILENT else Tone(1.5 if SHORT_TONE else None)
        connection.replace_audio_track(track)
        on_loud = (lambda: take_turn(connection, track)) if YIELDS or CUTS_IN else lambda: None
        running.add(asyncio.create_task(listen(connection.audio_input_track(), seen, on_loud)))

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
        say("llm-function-call-stopped", {"tool_call_id": "1", "function_name": "weather", "cancelled": False, "result": "sunny"})
        if "--slow-tool" in sys.argv:
            say("llm-function-call-in-progress", {"tool_call_id": "2", "function_name": "book", "arguments": {"for": 2}})
        say("metrics", {"ttfb": [{"processor": "x", "value": 0.1}]})
        if "--drops-channel" in sys.argv:
            asyncio.get_running_loop().call_later(1, connection._data_channel.close)

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
    seen["share"] = seen["key"] = 0.0
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
    end_with_input()
    await server.serve(sockets=[listener])


asyncio.run(main())
