"""Tones and speech for a peer connection of aiortc, and ears that measure what comes over one. Traffic stays on loopback."""

import asyncio
import fractions
import functools
from pathlib import Path

import aioice.ice
import numpy
from aiortc import MediaStreamTrack
from av import AudioFrame

RATE = 48000
SENT_HZ = 880
HEARD_HZ = 500
# The tones of the key 5 (ITU-T Q.23).
KEY_HZ = (770, 1336)

# The library leaves loopback out.
aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: ["127.0.0.1"]


class Sound(MediaStreamTrack):
    """Frames of 20 ms in real time, of the samples that `pcm` returns."""

    kind = "audio"

    def __init__(self):
        super().__init__()
        self.at, self.began = 0, None

    async def recv(self):
        loop = asyncio.get_running_loop()
        self.began = self.began or loop.time()
        await asyncio.sleep(max(0, self.began + self.at / RATE - loop.time()))
        count = RATE // 50
        frame = AudioFrame.from_ndarray(self.pcm(count).astype(numpy.int16).reshape(1, -1), layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE, self.at, fractions.Fraction(1, RATE)
        self.at += count
        return frame


class Tone(Sound):
    """A tone of 880 Hz, for so many seconds or for ever; then silence."""

    def __init__(self, seconds=None):
        super().__init__()
        self.seconds = seconds

    def pcm(self, count):
        sine = numpy.sin(2 * numpy.pi * SENT_HZ / RATE * (self.at + numpy.arange(count)))
        return sine * (0 if self.seconds and self.at >= self.seconds * RATE else 8000)


class Speech(Sound):
    """Speech as long as it is wanted, silence otherwise."""

    def __init__(self):
        super().__init__()
        # Frames in which the caller spoke, too, are counted in `against`.
        self.speaks, self.said, self.against = False, 0, 0
        coded = numpy.frombuffer(Path("fixtures/audio/speech.ul").read_bytes(), dtype=numpy.uint8) ^ 0xFF
        # ITU-T G.711, mu-law.
        size = (((coded & 0x0F).astype(int) * 8 + 132) << ((coded >> 4) & 7)) - 132
        narrow = numpy.where(coded & 0x80, -size, size)
        places = numpy.arange(len(narrow) * RATE // 8000) * 8000 / RATE
        self.words = numpy.interp(places, numpy.arange(len(narrow)), narrow)

    def pcm(self, count):
        if not self.speaks:
            return numpy.zeros(count)
        self.said += count
        return self.words[(self.said - count + numpy.arange(count)) % len(self.words)]


@functools.cache
def turns(hz, rate, count):
    return numpy.exp(-2j * numpy.pi * hz / rate * numpy.arange(count))


def share(pcm, rate, *tones):
    """Returns the share of tones in the power of samples; 0 for what is nearly silent."""
    power = numpy.sum(pcm**2)
    if not len(pcm) or power / len(pcm) < 100**2:
        return 0.0
    return float(sum(2 * abs(pcm @ turns(hz, rate, len(pcm))) ** 2 / len(pcm) / power for hz in tones))


async def listen(track, seen, on_loud=lambda: None):
    """Keeps the share of the caller's tone in the last second, the number of loud frames, and the best share of a key's tones."""
    heard = numpy.zeros(0)
    while True:
        frame = await track.recv()
        if frame is None:
            return
        pcm = frame.to_ndarray().astype(float).reshape(-1)
        pcm = pcm[:: len(frame.layout.channels)] if frame.format.is_packed else pcm
        heard = numpy.concatenate([heard, pcm])[-frame.sample_rate :]
        seen["share"] = share(heard, frame.sample_rate, HEARD_HZ)
        if numpy.mean(pcm**2) > 300**2:
            seen["loud"] += 1
            on_loud()
        seen["key"] = max(seen["key"], share(heard[-frame.sample_rate // 20 :], frame.sample_rate, *KEY_HZ))
