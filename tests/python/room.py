"""A participant of a room by the official client, on 127.0.0.1: it plays the agent, or the caller of another official client.

Usage: room.py WS_URL KEY SECRET IDENTITY [--standard] [--silent] [--tone HZ] [--hear HZ] [--joint] [--late] [--seconds N] [--speech FILE] [--yields] [--room NAME] [--background HZ]

It publishes a tone, or speech from a file of mu-law at 8 kHz, measures the one that it hears, notes what comes, and does what is posted. Prints its address, and ends
with its input.
"""

import asyncio
import functools
import json
import socket
import sys

import numpy
import uvicorn
from ending import end_with_input
from fastapi import FastAPI, Request
from livekit import api, rtc

RATE = 48000
KEY_HZ = (770, 1336)
url, key, secret, identity = sys.argv[1:5]


def flag(name, default):
    return float(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else default


SENT_HZ, HEARD_HZ = flag("--tone", 880), flag("--hear", 500)

app, room = FastAPI(), None
seen = {
    "share": 0.0, "loud": 0, "frames": 0, "key": 0.0, "data": [], "digits": [], "texts": [], "states": [], "left": [],
    "participants": [], "muted": 0, "yields": 0, "quiet": 0,
}
state = {"speaks": "--silent" not in sys.argv, "yields": "--yields" in sys.argv}
running, published = set(), {}


@functools.cache
def turns(hz, count):
    return numpy.exp(-2j * numpy.pi * hz / RATE * numpy.arange(count))


def share(pcm, *tones):
    if not len(pcm) or numpy.mean(pcm**2) < 100**2:
        return 0.0
    return float(sum(2 * abs(pcm @ turns(hz, len(pcm))) ** 2 / len(pcm) / (pcm @ pcm) for hz in tones))


def keep(coroutine):
    task = asyncio.create_task(coroutine)
    running.add(task)
    task.add_done_callback(running.discard)


def speech(path):
    """Reads mu-law at 8 kHz (ITU-T G.711), as samples at 48 kHz."""
    code = ~numpy.fromfile(path, dtype=numpy.uint8)
    size = (((code & 15).astype(int) << 3) + 132 << ((code >> 4) & 7)) - 132
    pcm = numpy.where(code & 128, -size, size).astype(float)
    return numpy.interp(numpy.arange(len(pcm) * 6) / 6, numpy.arange(len(pcm)), pcm)


async def sound(source, hz):
    """Plays a tone beside the voice."""
    at, count = 0, RATE // 50
    while True:
        pcm = (4000 * numpy.sin(2 * numpy.pi * hz / RATE * (at + numpy.arange(count)))).astype(numpy.int16)
        await source.capture_frame(rtc.AudioFrame(pcm.tobytes(), RATE, 1, count))
        at += count


async def play_background(hz):
    """Publishes a track without a source, as players of background sounds do."""
    source = rtc.AudioSource(RATE, 1, queue_size_ms=200)
    track = rtc.LocalAudioTrack.create_audio_track("background", source)
    published["background"] = await room.local_participant.publish_track(track, rtc.TrackPublishOptions())
    keep(sound(source, hz))


async def speak(source):
    at, count, last = 0, RATE // 50, flag("--seconds", 1e9) * RATE
    words = speech(sys.argv[sys.argv.index("--speech") + 1]) if "--speech" in sys.argv else None
    said = 0
    while True:
        now = state["speaks"] and at < last
        if words is None:
            sound = 8000 * numpy.sin(2 * numpy.pi * SENT_HZ / RATE * (at + numpy.arange(count)))
        else:
            # It goes on where it stopped.
            sound, said = words[said : said + count], (said + count * now) % (len(words) - count)
        pcm = (sound * now).astype(numpy.int16)
        await source.capture_frame(rtc.AudioFrame(pcm.tobytes(), RATE, 1, count))
        at += count


async def listen(track):
    heard, count = numpy.zeros(0), 0
    async for event in rtc.AudioStream(track, sample_rate=RATE, num_channels=1):
        pcm = numpy.frombuffer(event.frame.data, dtype=numpy.int16).astype(float)
        heard = numpy.concatenate([heard, pcm])[-RATE:]
        seen["frames"], count = seen["frames"] + 1, count + 1
        # Measured ten times a second: a loop that is kept busy sends gaps.
        if count % 10 == 0:
            seen["share"] = share(heard, HEARD_HZ) if len(heard) == RATE else 0.0
        seen["loud"] += bool(numpy.mean(pcm**2) > 300**2)
        seen["quiet"] = 0 if numpy.mean(pcm**2) > 100**2 else seen["quiet"] + 1
        seen["key"] = max(seen["key"], share(heard[-RATE // 20 :], *KEY_HZ))
        if state["yields"] and numpy.mean(pcm**2) > 300**2 and state["speaks"]:
            state["speaks"], seen["yields"] = False, seen["yields"] + 1


async def read_text(reader, who):
    seen["texts"].append([who, reader.info.topic, await reader.read_all()])


def follow():
    """Notes everything that comes in the room."""

    def on_track(track, publication, participant):
        if track.kind == rtc.TrackKind.KIND_AUDIO:
            keep(listen(track))

    def on_data(packet):
        who = packet.participant.identity if packet.participant else None
        reliable = packet.kind == rtc.DataPacketKind.KIND_RELIABLE
        seen["data"].append([who, packet.topic, len(packet.data), reliable])

    def on_mute(participant, publication):
        seen["muted"] += 1

    room.on("track_subscribed", on_track)
    room.on("data_received", on_data)
    room.on("track_muted", on_mute)
    room.on("sip_dtmf_received", lambda dtmf: seen["digits"].append(dtmf.digit))
    room.on("connection_state_changed", lambda now: seen["states"].append(rtc.ConnectionState.Name(now)))
    room.on("participant_connected", lambda who: seen["participants"].append(who.identity))
    room.on("participant_disconnected", lambda who: seen["left"].append(who.identity))
    for topic in ("lk.transcription", "tools"):
        room.register_text_stream_handler(topic, lambda reader, who: keep(read_text(reader, who)))


async def publish():
    source = rtc.AudioSource(RATE, 1, queue_size_ms=200)
    track = rtc.LocalAudioTrack.create_audio_track("voice", source)
    options = rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_MICROPHONE)
    published["track"] = track
    published["publication"] = await room.local_participant.publish_track(track, options)
    keep(speak(source))


@app.post("/data")
async def data(request: Request):
    body = await request.json()
    payload = body.get("text") or "x" * body["bytes"]
    await room.local_participant.publish_data(
        payload, reliable=body.get("reliable", True), topic=body.get("topic", "")
    )
    return {}


@app.post("/text")
async def text(request: Request):
    body = await request.json()
    writer = await room.local_participant.stream_text(topic=body["topic"], attributes=body.get("attributes", {}))
    for piece in body["pieces"]:
        await writer.write(piece * body.get("times", 1))
    await writer.aclose(attributes=body.get("last"))
    return {}


@app.post("/transcription")
async def transcription(request: Request):
    body = await request.json()
    segment = rtc.TranscriptionSegment(
        id="SG_1", text=body["text"], start_time=0, end_time=0, language="en", final=body.get("final", True)
    )
    told = rtc.Transcription(
        participant_identity=body.get("identity", identity), track_sid=body.get("track", ""), segments=[segment]
    )
    await room.local_participant.publish_transcription(told)
    return {}


@app.post("/digit")
async def digit(request: Request):
    body = await request.json()
    await room.local_participant.publish_dtmf(code=body["code"], digit=body["digit"])
    return {}


@app.post("/attributes")
async def attributes(request: Request):
    await room.local_participant.set_attributes(await request.json())
    return {}


@app.post("/set")
async def change(request: Request):
    state.update(await request.json())
    return {}


@app.post("/mute")
async def mute():
    published["track"].mute()
    return {}


@app.post("/unmute")
async def unmute():
    published["track"].unmute()
    return {}


@app.post("/publish")
async def publish_now():
    await publish()
    return {}


@app.post("/republish")
async def republish():
    await room.local_participant.unpublish_track(published["publication"].sid)
    await publish()
    return {}


@app.post("/video")
async def video():
    source = rtc.VideoSource(64, 48)
    track = rtc.LocalVideoTrack.create_video_track("face", source)
    await room.local_participant.publish_track(track, rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_CAMERA))

    async def show():
        for _ in range(100):
            frame = rtc.VideoFrame(64, 48, rtc.VideoBufferType.RGBA, bytes(64 * 48 * 4))
            source.capture_frame(frame)
            await asyncio.sleep(0.1)

    keep(show())
    return {}


@app.post("/leave")
async def leave():
    await room.disconnect()
    return {}


@app.get("/seen")
async def get_seen():
    return seen


async def main():
    global room
    end_with_input()
    # It belongs to the loop that runs.
    room = rtc.Room()
    follow()
    name = sys.argv[sys.argv.index("--room") + 1] if "--room" in sys.argv else "room"
    grants = api.VideoGrants(room_join=True, room=name, can_update_own_metadata=True)
    token = api.AccessToken(key, secret).with_identity(identity).with_grants(grants)
    if "--standard" not in sys.argv:
        token = token.with_kind("agent")
    await room.connect(url, token.to_jwt(), rtc.RoomOptions(single_peer_connection="--joint" in sys.argv))
    seen["participants"] += [who.identity for who in room.remote_participants.values()]
    if "--background" in sys.argv:
        await play_background(flag("--background", 300))
    if "--late" not in sys.argv:
        await publish()
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    await server.serve(sockets=[listener])


asyncio.run(main())
