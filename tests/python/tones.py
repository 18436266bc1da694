"""A tone for a peer connection of aiortc, and ears that measure what comes over one. Traffic stays on loopback."""

import asyncio
import fractions

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


class Tone(MediaStreamTrack):
    """A tone of 880 Hz, for so many seconds or for ever; then silence."""

    kind = "audio"

    def __init__(self, seconds=None):
        super().__init__()
        self.at, self.began, self.seconds = 0, None, seconds

    async def recv(self):
        loop = asyncio.get_running_loop()
        self.began = self.began or loop.time()
        await asyncio.sleep(max(0, self.began + self.at / RATE - loop.time()))
        count = RATE // 50
        sine = numpy.sin(2 * numpy.pi * SENT_HZ / RATE * (self.at + numpy.arange(count)))
        if self.seconds and self.at >= self.seconds * RATE:
            sine *= 0
        frame = AudioFrame.from_ndarray((8000 * sine).astype(numpy.int16).reshape(1, -1), layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE, self.at, fractions.Fraction(1, RATE)
        self.at += count
        return frame


def share(pcm, rate, *tones):
    """Returns the share of tones in the power of samples; 0 for what is nearly silent."""
    power = numpy.sum(pcm**2)
    if not len(pcm) or power / len(pcm) < 100**2:
        return 0.0
    turn = lambda hz: numpy.exp(-2j * numpy.pi * hz / rate * numpy.arange(len(pcm)))
    return float(sum(2 * abs(numpy.sum(pcm * turn(hz))) ** 2 / len(pcm) / power for hz in tones))


async def listen(track, seen):
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
        seen["loud"] += bool(numpy.mean(pcm**2) > 300**2)
        seen["key"] = max(seen["key"], share(heard[-frame.sample_rate // 20 :], frame.sample_rate, *KEY_HZ))
