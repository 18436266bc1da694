"""The error of each reported quantity, against clocks and tools from outside. Usage: accuracy.py RINGER TABLE --out FOLDER [--write NAME]

Times of real calls are held against the wire (wire.py), shares and levels of calls in virtual time against energy marks and meters of
others. An error is what the engine tells less what is outside: its median is the bias, the 95th percentile of the amounts of what is
left without the bias the spread. With --write the table is written under that name, with those quantities that nothing outside measures
kept as they are. Without, the table stands: a bias or a spread that is larger than it says breaks its row.
"""

import argparse
import json
import os
import pathlib
import platform
import sys

import librosa
import numpy

import calls
import levels
import marks
import turns
import wire
from marks import AGENT, CALLER, RATE
from table import tool

WIRE = "the wire: packets by the time stamps of the kernel, sound in them by " + tool("librosa")
RECORDING = "the recording, read by " + tool("librosa")
REAL, VIRTUAL = "real calls over PCMU on one machine, no noise", "calls in virtual time over G.722, no noise"
# Steps of time of both sides: energy marks and segments lie on grids of 10 ms. Other quantities have one hundredth as the last digit.
STEP = {"ms": 10.0, "%": 1.0, "dB": 0.5, "LU": 0.1, "count": 0.0, "semitones": 0.5}


class Errors:
    """Errors of quantities, by their rows."""

    def __init__(self):
        self.rows = {}

    def add(self, quantity, metrics, unit, clock, conditions, told, outside):
        """Adds one error, unless one of both is not known."""
        row = self.rows.setdefault(quantity, (metrics, unit, clock, conditions, []))
        if told is not None and outside is not None:
            row[-1].append(float(told) - float(outside))

    def table(self):
        """Returns the rows with their figures."""
        return [
            {"quantity": quantity, "metrics": metrics, "unit": unit, **figures(errors), "clock": clock, "conditions": conditions}
            for quantity, (metrics, unit, clock, conditions, errors) in self.rows.items() if errors
        ]


def figures(errors):
    """Returns bias, spread, worst amount and number of errors."""
    errors = numpy.asarray(errors)
    bias = float(numpy.median(errors))
    return {
        "bias": round(bias, 3), "spread": round(float(numpy.percentile(numpy.abs(errors - bias), 95)), 3),
        "worst": round(float(numpy.abs(errors).max()), 3), "n": len(errors),
    }


def named(metric, *words):
    """Returns the names of a metric in its forms: mean, maximum, percentiles."""
    return [f"{word}_{metric}" for word in words]


def matched(told, outside):
    """Returns pairs of (told, outside) values whose places are less than 0.5 s apart."""
    both = []
    for at, value in told:
        near = min(outside, key=lambda one: abs(one[0] - at), default=None)
        if near is not None and abs(near[0] - at) < 0.5:
            both.append((value, near[1]))
    return both


def told_latencies(call, own):
    """Returns (onset, seconds) of the latencies of the timeline that the result tells, too.

    Where both sides speak at once the engine joins turns otherwise than `marks.turns`: such a latency has no counterpart here.
    """
    told = call.result["latency"] or []
    return [(at, seconds) for at, seconds in marks.latencies(own) if any(abs(seconds - one) <= 0.002 for one in told)]


def waits(found):
    """Returns (onset, seconds) of each turn of the caller that begins after the turn of the agent before it has ended."""
    turned = [marks.Span(CALLER + AGENT - span.side, span.start, span.end) for span in found]
    return marks.latencies(turned)


def add_times(errors, call, seen):
    """Adds the errors of the times of a real call."""
    own, outside = marks.turns(call.spans()), marks.turns(seen.spans)
    # Behind a noise the marks of the caller's words err more than what is measured.
    if call.is_noisy:
        return
    for told, marked in matched(told_latencies(call, own), marks.latencies(outside)):
        errors.add("agent latency", named("agent_latency", "avg", "max", "p50", "p90", "p95", "p99"), "ms", WIRE, REAL, 1000 * told, 1000 * marked)
    for told, marked in matched(waits(own), waits(outside)):
        errors.add("customer latency", named("customer_latency", "avg", "p50", "p90"), "ms", WIRE, REAL, 1000 * told, 1000 * marked)
    lengths = lambda found: [(turn.start, turn.end - turn.start) for turn in found if turn.side == AGENT]
    for told, marked in matched(lengths(own), lengths(outside)):
        errors.add("length of an agent turn", ["agent_turn_duration_avg"], "ms", WIRE, REAL, 1000 * told, 1000 * marked)
    first = min((span.start for span in seen.spans if span.side == AGENT), default=None)
    told = call.metric("time_to_first_agent_utterance")
    if None not in (first, told):
        errors.add("first word of the agent", ["time_to_first_agent_utterance"], "ms", WIRE, REAL, 1000 * told, 1000 * first)
    errors.add("duration", ["duration"], "ms", WIRE, REAL, call.metric("duration"), 1000 * seen.duration)
    errors.add("set-up", ["setup_ms"], "ms", WIRE, REAL, call.metric("setup_ms"), 1000 * seen.setup)
    pacing = 1000 * numpy.percentile(seen.sent_late, 99) if not call.result["engine_quality"]["simulated_loss_pct"] else None
    errors.add("lateness of own packets, p99", [], "ms", WIRE, REAL, call.result["engine_quality"]["pacing_p99_ms"], pacing)
    of_agent = lambda found: sum(turn.side == AGENT for turn in found)
    errors.add("turns of the agent", ["num_turns"], "count", WIRE, REAL, call.metric("num_turns"), of_agent(outside))
    stops = [
        other.end - span.start for span in seen.spans if span.side == CALLER
        for other in seen.spans if other.side == AGENT and other.start < span.start < other.end <= span.end
    ]
    told = call.metric("yield_latency")
    if stops and told is not None:
        errors.add("stop of the agent", ["yield_latency"], "ms", WIRE, REAL, 1000 * told, 1000 * numpy.mean(stops))


def add_interruptions(errors, call, spans):
    """Adds the errors of counts of overlaps of 200 ms and more; one within 20 ms of that bound counts as the engine has it."""
    over = marks.overlaps(spans)
    for side, name in ((AGENT, "agent_interruption_count"), (CALLER, "customer_interruption_count")):
        lengths = [span.end - span.start for span in over if span.side == side]
        least, most = sum(one >= 0.22 for one in lengths), sum(one >= 0.18 for one in lengths)
        told = call.metric(name) or 0
        errors.add(f"interruptions: {name}", [name], "count", RECORDING, VIRTUAL, told, min(max(told, least), most))


def add_shares(errors, call):
    """Adds the errors of shares of time, of a recording without noise."""
    spans = turns.found(call, drop_short=True)
    frames = {
        side: levels.frames_of(call.samples[side], [span for span in spans if span.side == side]) for side in (CALLER, AGENT)
    }
    size = min(len(one) for one in frames.values())
    caller, agent = frames[CALLER][:size], frames[AGENT][:size]
    share = lambda inside: 100 * float(inside.mean())
    for metric, outside in (
        ("agent_speak_percentage", share(agent)), ("customer_speak_percentage", share(caller)),
        ("overlap_percentage", share(agent & caller)), ("silence_percentage", share(~agent & ~caller)),
    ):
        errors.add(metric, [metric], "%", RECORDING, VIRTUAL, call.metric(metric), outside)
    ratio, total = call.metric("talk_ratio"), agent.sum() + caller.sum()
    if ratio is not None and total:
        errors.add("talk_ratio", ["talk_ratio"], "%", RECORDING, VIRTUAL, 100 * ratio, 100 * agent.sum() / total)
    add_interruptions(errors, call, spans)


def add_levels(errors, call):
    """Adds the errors of the agent's sound."""
    agent = call.samples[AGENT]
    marked = marks.stretches(agent, AGENT)
    errors.add("agent_snr", ["agent_snr"], "dB", RECORDING, VIRTUAL, call.metric("agent_snr"), levels.snr_db(agent, marked))
    loudness = levels.loudness(agent, marked)
    clock = "the recording, read by " + levels.BY_LOUDNESS
    errors.add("agent_perceived_loudness", ["agent_perceived_loudness"], "LU", clock, VIRTUAL, call.metric("agent_perceived_loudness"), loudness)
    full = numpy.abs(agent) >= 0.999
    runs = numpy.convolve(full, numpy.ones(3), "valid") == 3
    clipped = 100 * numpy.convolve(runs, numpy.ones(3)).astype(bool).mean()
    errors.add("agent_audio_clipping", ["agent_audio_clipping"], "%", RECORDING, VIRTUAL, call.metric("agent_audio_clipping"), clipped)
    if call.metric("agent_pitch_variability") is not None:
        errors.add("agent_pitch_variability", ["agent_pitch_variability"], "semitones", RECORDING, VIRTUAL, call.metric("agent_pitch_variability"), pitch_spread(agent, marked))


def pitch_spread(samples, spans):
    """Returns the standard deviation of the pitch of voiced frames (probabilistic YIN), in semitones."""
    speech = numpy.concatenate([samples[int(span.start * RATE):int(span.end * RATE)] for span in spans])
    pitch, voiced, _ = librosa.pyin(speech, fmin=60, fmax=450, sr=RATE, frame_length=1024)
    return float(numpy.std(12 * numpy.log2(pitch[voiced])))


def measured(ringer, folder, repeat, seed):
    """Returns the rows of all calls."""
    errors = Errors()
    for call, seen in wire.real_calls(ringer, folder, repeat, seed):
        add_times(errors, call, seen)
    for call in calls.suite(ringer, folder, repeat, seed):
        if not call.is_noisy:
            add_shares(errors, call)
            add_levels(errors, call)
    return errors.table()


def breaks(row, stated):
    """Returns why a measured row does not fit the stated one; None: it does."""
    if stated is None:
        return "the table does not have it"
    step = STEP[row["unit"]]
    if abs(row["bias"] - stated["bias"]) > max(step, stated["spread"]):
        return f"bias {row['bias']}, stated {stated['bias']} with a spread of {stated['spread']}"
    if row["spread"] > 2 * stated["spread"] + step:
        return f"spread {row['spread']}, stated {stated['spread']}"
    return None


def main():
    """Measures, and writes the table or holds it against what was measured."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("ringer", type=pathlib.Path)
    words.add_argument("table", type=pathlib.Path)
    words.add_argument("--out", type=pathlib.Path, required=True)
    words.add_argument("--repeat", type=int, default=3)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--write", metavar="NAME")
    asked = words.parse_args()
    rows = measured(asked.ringer.resolve(), calls.fresh(asked.out.resolve()), asked.repeat, asked.seed)
    stated = json.loads(asked.table.read_text())
    if asked.write:
        told = calls.run(asked.ringer, "--version").split()[-1]
        table = {"name": asked.write, "version": told, "machine": f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores", "rows": rows, "not_measured": stated["not_measured"]}
        asked.table.write_text(json.dumps(table, indent=2) + "\n")
    by_name = {row["quantity"]: row for row in (rows if asked.write else stated["rows"])}
    broken = 0
    for row in rows:
        why = breaks(row, by_name.get(row["quantity"]))
        broken += why is not None
        print(f"{'holds ' if why is None else 'BROKEN'} {row['quantity']}: bias {row['bias']:+}, spread {row['spread']}, worst {row['worst']} {row['unit']}, n={row['n']}{'' if why is None else '; ' + why}")
    missing = by_name.keys() - {row["quantity"] for row in rows}
    for name in sorted(missing):
        print(f"BROKEN {name}: the table has it, and nothing was measured")
    print(f"\n{len(rows) - broken} of {len(rows) + len(missing)} hold")
    return 1 if broken or missing else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except calls.Broken as broken:
        sys.exit(f"accuracy: {broken}")
