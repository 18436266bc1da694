"""Faults that are put into recordings in memory: rows that hold without them must break."""

import dataclasses

import numpy
import soundfile

import scanner
from marks import AGENT, RATE
from table import Row

SHIFT_MS, GAIN_DB = 200, 6
TIMED = ("onset of a turn", "end of a turn", "latency of the agent", "hotato: gap before an answer, against latency")
LOUD = ("active level of the caller, against -26 dBov", "agent_perceived_loudness")


def shifted(call):
    """Returns the call with the agent's channel 200 ms later."""
    late = SHIFT_MS * RATE // 1000
    samples = call.samples.copy()
    samples[AGENT] = numpy.concatenate([numpy.zeros(late, samples.dtype), samples[AGENT][:-late]])
    return dataclasses.replace(call, samples=samples)


def louder(call):
    """Returns the call with both channels 6 dB louder."""
    return dataclasses.replace(call, samples=call.samples * 10 ** (GAIN_DB / 20))


def rows(calls, judged, folder):
    """Returns a row for each fault: it holds where every row that should notice the fault is broken by it."""
    late = [shifted(call) for call in calls]
    heard = []
    for call in [call for call in late if not call.is_noisy][:8]:
        path = folder / f"planted-{call.name}.wav"
        soundfile.write(path, call.samples.T, RATE, subtype="PCM_16")
        heard.append(dataclasses.replace(call, path=path))
    return [
        noticed(f"planted: the agent {SHIFT_MS} ms later", judged(late) + scanner.rows(heard), TIMED),
        noticed(f"planted: both sides {GAIN_DB} dB louder", judged([louder(call) for call in calls]), LOUD),
    ]


def noticed(what, found, names):
    """Returns the row of a fault."""
    by_name = {row.what: row for row in found}
    blind = [name for name in names if by_name[name].holds]
    figures = f"{len(names) - len(blind)} of {len(names)} rows break"
    return Row(what, "self-check", len(names), figures, "all", not blind, [f"does not notice it: {name}" for name in blind])
