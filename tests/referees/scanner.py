"""What hotato finds in the same recordings: gaps before an answer, overlaps, dead air.

Its channels are as those of the recordings: 0 the caller, 1 the agent. A run of sound ends HANGOVER after its last sound there,
so its gaps are shorter by that. Its threshold is 15 dB above the noise floor, at least -60 dBFS, so soft ends of words are sound.
Of an overlap it counts only the frames in which both have sound, the engine its whole length.
"""

import json
import sys

import numpy

import marks
from calls import run
from marks import AGENT, CALLER, RATE
from table import Row, differences, tool
from turns import told_latencies, told_overlaps

BY = tool("hotato")
HANGOVER_MS = 150
NEAR_S = 0.15
# Measured: gaps -22 / 76 / 126 ms, overlaps +20 / 94 / 165 ms, silences -10 / 40 / 60 ms (median / p95 / worst).
GAP_MS, OVERLAP_MS, SILENCE_MS = (40, 110, 180), (40, None, 220), (30, 60, 120)
SILENT_S = 3.0


def scanned(path):
    """Returns the moments that hotato lists for a recording, every gap over 10 ms among them."""
    out = path.with_suffix(".hotato.json")
    run(sys.executable, "-m", "hotato", "scan", "--stereo", path, "--min-gap", "0.01", "--top", "0", "--out", out)
    return json.loads(out.read_text())["candidates"]


def incidents(path):
    """Returns the incidents that hotato tells of a recording. Its report is written beside the recording."""
    told = run(sys.executable, "-m", "hotato", "autopsy", path, "--format", "json", place=path.parent)
    return json.loads(told)["incidents"]


def of_kind(moments, kind):
    """Returns the moments of one kind, by time."""
    return sorted((one for one in moments if one["kind"] == kind), key=lambda one: one["t_sec"])


def gaps(call, moments):
    """Returns differences in ms of gaps before an answer and latencies, and how many latencies had no gap."""
    keys, found, missed = [key.end for key in call.keys()], [], 0
    for at, seconds in told_latencies(call):
        if any(abs(at - seconds - key) < 0.01 for key in keys):
            continue
        near = [
            one["durations"]["gap_sec"] for one in of_kind(moments, "long_response_gap")
            if abs((one["agent_reaction"]["next_agent_onset_sec"] or 0) - at) < NEAR_S
        ]
        if near:
            found.append(1000 * (near[-1] - seconds) + HANGOVER_MS)
        else:
            missed += seconds > 2 * HANGOVER_MS / 1000
    return found, missed


def overlap_differences(call, moments):
    """Returns differences in ms of the lengths of overlaps, and how many told ones were not found."""
    kinds = {CALLER: "overlap_while_agent_talking", AGENT: "agent_start_during_caller"}
    found, missed = [], 0
    for side, at, seconds, _ in told_overlaps(call):
        near = [one for one in of_kind(moments, kinds[side]) if abs(one["t_sec"] - at) < NEAR_S]
        if near:
            found.append(1000 * (near[0]["durations"]["overlap_sec"] - seconds))
        else:
            missed += seconds >= 0.06
    return found, missed


def silences(call, moments):
    """Returns differences in ms of the agent's silences that hotato lists, against the timeline."""
    of_agent = [span for span in call.spans() if span.side == AGENT]
    found = []
    for one in of_kind(moments, "agent_stop_no_caller"):
        length = one["durations"]["trailing_silence_sec"]
        for before, after in zip(of_agent, of_agent[1:]):
            if abs(one["t_sec"] - HANGOVER_MS / 1000 - before.end) < NEAR_S and abs(one["t_sec"] + length - after.start) < NEAR_S:
                found.append(1000 * (length - (after.start - before.end)) + HANGOVER_MS)
    return found


def rows(calls):
    """Returns the rows of hotato, of calls whose recording has no background."""
    every = [(call, scanned(call.path)) for call in calls]
    gap = [gaps(*one) for one in every]
    overlap = [overlap_differences(*one) for one in every]
    missed = sum(one[1] for one in gap), sum(one[1] for one in overlap)
    dead = [(call, one) for call in calls for one in incidents(call.path) if one["kind_key"] == "dead-air"]
    silent = [one for one in dead if lasts(one[1]) >= SILENT_S and not holds_the_caller(*one)]
    own = sum(len(silent_stretches(call)) for call in calls)
    raw = float(numpy.median(flat(gap))) - HANGOVER_MS if flat(gap) else float("nan")
    by_definition = f"its gap begins {HANGOVER_MS} ms after the last sound (hangover): differences are told from -{HANGOVER_MS} ms"
    return [
        differences("hotato: gap before an answer, against latency", BY, flat(gap), GAP_MS, notes=[by_definition, f"as it tells them: median {raw:+.0f} ms"]),
        Row("hotato: latencies and overlaps that it does not find", BY, len(flat(gap)) + len(flat(overlap)) + sum(missed),
            f"{missed[0]} latencies, {missed[1]} overlaps", "none", not any(missed)),
        differences("hotato: length of an overlap", BY, flat(overlap), OVERLAP_MS),
        differences("hotato: silence of the agent", BY, [ms for one in every for ms in silences(*one)], SILENCE_MS, notes=[by_definition]),
        Row("hotato: dead air of 3 s and more in which nobody speaks", BY, len(dead), f"{len(silent)}, in the timeline {own}", "equal",
            len(silent) == own, [f"the other {len(dead) - len(silent)} of its {len(dead)}: its dead air begins where the agent stops, "
                                 "whoever speaks next; there the caller has its turn, or the agent pauses"]),
    ]


def flat(pairs):
    """Returns the differences of all calls."""
    return [ms for found, _ in pairs for ms in found]


def lasts(incident):
    """Returns the seconds of an incident."""
    told = incident["measurements"]
    return told.get("trailing_silence_sec", told.get("gap_sec", 0))


def holds_the_caller(call, incident):
    """Returns true where the caller speaks or presses keys in what hotato calls dead air, or the call ends with it."""
    start, end = incident["t_sec"], incident["t_sec"] + lasts(incident)
    said = [span for span in call.spans() if span.side == CALLER and span.start < end and span.end > start]
    return bool(said) or end > call.samples.shape[1] / RATE - marks.GAP


def silent_stretches(call):
    """Returns stretches of 3 s and more, hangover included, between two sounds of the timeline, in which nobody speaks."""
    quiet, until = [], None
    for span in sorted(call.spans(), key=lambda span: span.start):
        if until is not None and span.start - until >= SILENT_S + HANGOVER_MS / 1000:
            quiet.append((until, span.start))
        until = max(until or 0, span.end)
    return quiet
