"""Recorded speech of the fixtures."""

import pathlib

import numpy

FILE = pathlib.Path(__file__).parents[2] / "fixtures/audio/speech.ul"


def speech(seconds):
    """Returns the beginning of the recording as 16 bit PCM at 16 kHz."""
    code = ~numpy.frombuffer(FILE.read_bytes(), dtype=numpy.uint8)[: int(8000 * seconds)]
    # ITU-T G.711 table 2a.
    level = (((code & 0x0F).astype(numpy.int16) << 3) + 0x84 << ((code & 0x70) >> 4)) - 0x84
    return numpy.repeat(numpy.where(code & 0x80, -level, level).astype("<i2"), 2).tobytes()
