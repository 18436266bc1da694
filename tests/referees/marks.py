"""Energy marks: where each channel of a recording has sound, found by librosa and nothing of the engine.

Method. The level of a frame is its RMS, frames of 20 ms every 10 ms, centred. The noise floor is the 10th percentile of the
levels of a channel. Sound is what lies above the higher of -50 dBFS and the floor plus MARGIN dB (`librosa.effects.split`).
Gaps under 300 ms are joined, stretches under 60 ms dropped. A turn is a run of stretches of one side without one of the other.
"""

import dataclasses

import librosa
import numpy

RATE = 16000
FRAME, HOP = 320, 160
QUIETEST_DB = -50.0
MARGIN_DB = 10.0
FLOOR_PERCENTILE = 10
GAP, SHORTEST = 0.3, 0.06
CALLER, AGENT = 0, 1


@dataclasses.dataclass(frozen=True)
class Span:
    """A stretch of one side, in seconds from the first sample."""

    side: int
    start: float
    end: float


def levels_db(samples):
    """Returns the level of each frame in dBFS."""
    rms = librosa.feature.rms(y=samples, frame_length=FRAME, hop_length=HOP)[0]
    return 20 * numpy.log10(numpy.maximum(rms, 1e-5))


def threshold_db(samples):
    """Returns the level in dBFS above which a frame is sound."""
    floor = numpy.percentile(levels_db(samples), FLOOR_PERCENTILE)
    return max(QUIETEST_DB, floor + MARGIN_DB)


def stretches(samples, side):
    """Returns the stretches of sound of one channel."""
    limit = threshold_db(samples)
    raw = librosa.effects.split(samples, top_db=-limit, ref=1.0, frame_length=FRAME, hop_length=HOP)
    return [span for span in joined(Span(side, start, end) for start, end in raw / RATE) if span.end - span.start >= SHORTEST]


def joined(spans):
    """Returns stretches of one side, by onset, with gaps under 300 ms joined."""
    whole = []
    for span in spans:
        if whole and span.start - whole[-1].end < GAP:
            whole[-1] = Span(span.side, whole[-1].start, span.end)
        else:
            whole.append(span)
    return whole


def turns(spans):
    """Returns runs of stretches of one side without one of the other between, by onset."""
    runs = []
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        if runs and runs[-1].side == span.side:
            runs[-1] = Span(span.side, runs[-1].start, max(runs[-1].end, span.end))
        else:
            runs.append(span)
    return runs


def latencies(found):
    """Returns (onset, seconds) of each turn of the agent that begins after the turn of the caller before it has ended."""
    return [
        (turn.start, turn.start - before.end)
        for before, turn in zip(found, found[1:])
        if turn.side == AGENT and before.side == CALLER and turn.start >= before.end
    ]


def overlaps(spans):
    """Returns stretches in which both sides have sound, each with the side that began later."""
    of_caller = [span for span in spans if span.side == CALLER]
    of_agent = [span for span in spans if span.side == AGENT]
    both = []
    for one in of_caller:
        for other in of_agent:
            start, end = max(one.start, other.start), min(one.end, other.end)
            if start < end:
                both.append(Span(CALLER if one.start > other.start else AGENT, start, end))
    return sorted(both, key=lambda span: span.start)
