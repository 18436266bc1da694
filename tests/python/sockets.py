"""Servers of agents by the `websockets` library.

`/default`: the engine's own protocol: greets with recorded speech and a mark, and cuts into the caller's first words by a message.
`/echo`: a carrier's media stream (Twilio's form), sent back; a mark after the first second, and the echo is taken back at the end.
`GET /seen` tells what came. Prints its address. With a certificate and a key as arguments it speaks TLS, and tells on its output what
came when a call is over. Everything else that it says goes to stderr.
"""

import asyncio
import base64
import json
import ssl
import sys
import time

import numpy
from ending import end_with_input
from recorded import speech
from websockets.asyncio.server import serve
from websockets.http11 import Response
from websockets.datastructures import Headers

seen = {}


def loud(pcm):
    samples = numpy.frombuffer(pcm, dtype="<i2").astype(float)
    return len(samples) > 0 and numpy.sqrt(numpy.mean(samples**2)) > 300


async def default(socket, seen):
    """The engine's own protocol."""
    say = lambda kind, **data: socket.send(json.dumps({"type": kind, "data": data}))
    await say("speech.started", utterance_id="a1")
    await socket.send(speech(1))
    await say("speech.completed", utterance_id="a1")
    await say("mark", name="greeting")
    heard = 0
    async for message in socket:
        if isinstance(message, str):
            message = json.loads(message)
            seen["texts"].append([message["type"], message["data"], seen["frames"]])
            continue
        seen["frames"] += 1
        seen["sizes"] = sorted({*seen["sizes"], len(message)})
        heard += int(loud(message))
        seen["loud"] = heard
        if heard == 40:
            await say("speech.started", utterance_id="a2")


async def echo(socket, seen):
    """A carrier's stream, sent back."""
    stream = None
    async for text in socket:
        message = json.loads(text)
        event = message["event"]
        seen["order"].append([event, message.get("sequenceNumber")])
        if event == "start":
            stream = message["streamSid"]
            seen["parameters"] = message["start"]["customParameters"]
        if event == "mark":
            seen["marks"].append([message["mark"]["name"], seen["frames"]])
        if event == "media":
            seen["frames"] += 1
            seen["sizes"] = sorted({*seen["sizes"], len(base64.b64decode(message["media"]["payload"]))})
            seen["timestamps"].append(int(message["media"]["timestamp"]))
            seen["arrivals_ms"].append(time.monotonic() * 1000)
            back = {"event": "media", "streamSid": stream, "media": {"payload": message["media"]["payload"]}}
            await socket.send(json.dumps(back))
            if seen["frames"] == 50:
                await socket.send(json.dumps({"event": "mark", "streamSid": stream, "mark": {"name": "m1"}}))


async def handle(socket):
    kind = socket.request.path.strip("/").split("?")[0]
    mine = dict(frames=0, loud=0, sizes=[], texts=[], order=[], marks=[], timestamps=[], arrivals_ms=[], parameters={})
    seen.setdefault(kind, []).append(mine)
    mine["headers"] = {name.lower(): value for name, value in socket.request.headers.raw_items()}
    try:
        await {"default": default, "echo": echo}[kind](socket, mine)
    finally:
        mine["close"] = [socket.close_code, socket.close_reason]
        if sys.argv[1:]:
            print(json.dumps(mine), flush=True)


def answer(connection, request):
    if request.path == "/seen":
        body = json.dumps(seen).encode()
        headers = Headers({"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"})
        return Response(200, "OK", headers, body)


async def main():
    end_with_input()
    tls = None
    if sys.argv[1:]:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*sys.argv[1:3])
    async with serve(handle, "127.0.0.1", 0, process_request=answer, ssl=tls) as server:
        scheme = "wss" if tls else "ws"
        print(f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        await server.serve_forever()


asyncio.run(main())
