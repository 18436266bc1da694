"""A peer of aiortc without any framework that answers offers at `/api/offer`, on 127.0.0.1: no data channel is answered.

It sends a tone of 880 Hz for 1.5 s, and measures what it hears; with `--flood` it sends 20,000 messages. `POST /leave` closes its connections. Prints its address, and ends
with its input.
"""

import asyncio
import socket
import sys

import uvicorn
from aiortc import RTCPeerConnection, RTCSessionDescription
from ending import end_with_input
from fastapi import FastAPI, Request
from tones import Tone, listen

FLOODS = "--flood" in sys.argv

app = FastAPI()
seen = {"share": 0.0, "loud": 0, "key": 0.0, "states": [], "messages": 0, "requests": []}
connections, running = [], set()


@app.post("/api/offer")
async def offer(request: Request):
    body = await request.json()
    seen["requests"].append(body["request_data"])
    connection = RTCPeerConnection()
    connections.append(connection)

    @connection.on("track")
    def on_track(track):
        running.add(asyncio.create_task(listen(track, seen)))

    @connection.on("datachannel")
    def on_channel(channel):
        for _ in range(20_000 if FLOODS else 0):
            channel.send('{"label":"rtvi-ai","type":"bot-interrupted"}')
        channel.on("message", lambda message: seen.update(messages=seen["messages"] + 1))

    @connection.on("connectionstatechange")
    def on_state():
        seen["states"].append(connection.connectionState)

    await connection.setRemoteDescription(RTCSessionDescription(body["sdp"], body["type"]))
    connection.addTrack(Tone(1.5))
    await connection.setLocalDescription(await connection.createAnswer())
    answer = connection.localDescription
    return {"sdp": answer.sdp, "type": answer.type, "pc_id": "peer"}


@app.post("/leave")
async def leave():
    for connection in connections:
        await connection.close()
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
