"""Turns, latencies and overlaps of the engine beside energy marks."""

import librosa
import numpy

import marks
from marks import AGENT, CALLER, RATE
from table import Row, differences, tool

BY = tool("librosa")
# Measured on 24 quiet calls: onsets 11 ms, ends 18 ms, latencies 28 ms at the 95th percentile, in a cafe 91 ms. A frame is 10 ms.
ONSET_MS, END_MS, LATENCY_MS = (10, 25, None), (20, 30, None), (25, 40, None)
NOISY_LATENCY_MS = (40, 150, None)
OVERLAP_MS = (40, None, None)
ALIKE_S = 0.06
SHORT_SOUND, SOFT_SOUND, SOFT_DB = 0.05, 0.12, -35.0
COUNTED_S, FRAME_S = 0.2, 0.01


def found(call, drop_short=False):
    """Returns the stretches of sound of both channels, and the keys, which have no sound and are taken from the timeline.

    A noisy caller is marked before the noise, where that is kept.
    """
    caller = call.samples[CALLER] if call.clean is None else call.clean
    make = without_short_sounds if drop_short else marks.stretches
    return make(caller, CALLER) + make(call.samples[AGENT], AGENT) + call.keys()


def without_short_sounds(samples, side):
    """Returns stretches as `marks.stretches`, of a channel whose sounds under 50 ms are silenced."""
    limit = marks.threshold_db(samples)
    raw = librosa.effects.split(samples, top_db=-limit, ref=1.0, frame_length=marks.FRAME, hop_length=marks.HOP)
    kept = numpy.zeros_like(samples)
    for start, end in raw:
        if end - start >= SHORT_SOUND * RATE:
            kept[start:end] = samples[start:end]
    return marks.stretches(kept, side)


def pairs(ours, theirs):
    """Returns each turn of the engine with the marked turn of the same side that shares most of its time."""
    both = []
    for turn in ours:
        shared = [(min(turn.end, other.end) - max(turn.start, other.start), other) for other in theirs if other.side == turn.side]
        most = max(shared, key=lambda one: one[0], default=(0, None))
        if most[0] > 0:
            both.append((turn, most[1]))
    return both


def edges(calls, edge, sides=(CALLER, AGENT)):
    """Returns (difference in ms, call, turn, mark) of one edge of every turn."""
    return [
        (1000 * (getattr(mark, edge) - getattr(turn, edge)), call, turn, mark)
        for call in calls
        for turn, mark in pairs(marks.turns(call.spans()), marks.turns(found(call)))
        if turn.side in sides and not any(key.start <= turn.start <= key.end for key in call.keys())
    ]


def told_latencies(call):
    """Returns (onset, seconds) of the latencies of the result. Raises ValueError where its timeline says others."""
    own = marks.latencies(marks.turns(call.spans()))
    told = call.result["latency"] or []
    if not close(own, told):
        raise ValueError(f"{call.name}: latencies {told}, timeline {[round(seconds, 3) for _, seconds in own]}")
    return [(at, seconds) for (at, _), seconds in zip(own, told)]


def close(own, told):
    """Returns true where both lists have the same latencies, to 2 ms."""
    return len(own) == len(told) and all(abs(one - other) <= 0.002 for (_, one), other in zip(own, told))


def latency_differences(calls):
    """Returns (difference in ms, call, onset) of each latency that both sides know."""
    both = []
    for call in calls:
        marked = marks.latencies(marks.turns(found(call)))
        for at, seconds in told_latencies(call):
            near = min(marked, key=lambda one: abs(one[0] - at), default=None)
            if near is not None and abs(near[0] - at) < 0.5:
                both.append((1000 * (near[1] - seconds), call, at))
    return both


def explained(row, outliers, least=40, share=0.05):
    """Gives a row its outliers over `least` ms with their reasons; one without a reason breaks it, as does a larger share."""
    outliers = [one for one in outliers if abs(one[0]) > least]
    for difference, call, at in outliers:
        near = [sound for samples in call.samples for sound in faint_sounds(samples) if abs(sound[0] - at) < 0.35]
        why = "no reason found"
        if near:
            start, end, peak = near[0]
            why = f"a sound of {1000 * (end - start):.0f} ms, {peak:.0f} dBFS at most, at sample {start * RATE:.0f}, parted from the words"
        row.holds = row.holds and bool(near)
        row.notes.append(f"{difference:+.0f} ms in {call.name} at sample {at * RATE:.0f}: {why}")
    row.bound += f", outliers over {least} ms explained and at most {100 * share:.0f} %"
    row.holds = row.holds and len(outliers) <= share * row.n
    return row


def faint_sounds(samples):
    """Returns (start, end, highest level) of sounds under 50 ms, or under 120 ms and -35 dBFS, with 50 ms of silence behind them."""
    limit = marks.threshold_db(samples)
    levels = marks.levels_db(samples)
    raw = librosa.effects.split(samples, top_db=-limit, ref=1.0, frame_length=marks.FRAME, hop_length=marks.HOP)
    starts = [*raw[1:, 0], len(samples)]
    found_here = []
    for (start, end), after in zip(raw, starts):
        peak = levels[start // marks.HOP:end // marks.HOP + 1].max()
        short, soft = end - start < SHORT_SOUND * RATE, end - start < SOFT_SOUND * RATE and peak < SOFT_DB
        if (short or soft) and after - end >= SHORT_SOUND * RATE:
            found_here.append((start / RATE, end / RATE, float(peak)))
    return found_here


def turn_rows(calls):
    """Returns the rows of turns and their edges, of calls without a background."""
    same = [len(marks.turns(call.spans())) == len(marks.turns(found(call))) for call in calls]
    number = sum(len(marks.turns(call.spans())) for call in calls)
    rows = [Row("turns: calls with the same number", BY, len(calls), f"{sum(same)} of {len(same)} calls, {number} turns", "all", all(same))]
    for edge, name, bounds in (("start", "onset of a turn", ONSET_MS), ("end", "end of a turn", END_MS)):
        every = edges(calls, edge)
        row = differences(name, BY, [one[0] for one in every], bounds)
        rows.append(explained(row, [(one[0], one[1], getattr(one[2], edge)) for one in every]))
    return rows


def latency_rows(quiet, noisy):
    """Returns the rows of latencies, without and with a background behind the caller."""
    every = latency_differences(quiet)
    row = differences("latency of the agent", BY, [one[0] for one in every], LATENCY_MS)
    rows = [explained(row, every)]
    if noisy:
        rows.append(differences(
            "latency, the caller in a cafe", BY, [one[0] for one in latency_differences(noisy)], NOISY_LATENCY_MS,
            notes=["soft ends of words are below the noise, so marks end before the words do"],
        ))
    return rows


def told_overlaps(call):
    """Returns (side that began, onset, seconds, counted) of each overlap that is told."""
    if call.listed is not None:
        return [
            (CALLER if one["by"] == "USER" else AGENT, one["at_sample"] / RATE, one["overlap_ms"] / 1000, one["counted"])
            for one in call.listed["overlaps"]
        ]
    return [
        (CALLER if event["data"]["by"] == "dh" else AGENT, event["sample"] / RATE, event["data"]["overlap_ms"] / 1000, None)
        for event in call.events if event["event"] == "barge_in"
    ]


def overlap_rows(calls):
    """Returns the rows of overlaps: those told against those marked, and the counts of interruptions."""
    lengths, missed, long_of_both, notes, told_count, least, most = [], 0, 0, [], 0, 0, 0
    for call in calls:
        marked = marks.overlaps(found(call, drop_short=True))
        told = [one for one in told_overlaps(call) if one[2] >= ALIKE_S]
        told_count += (call.metric("customer_interruption_count") or 0) + (call.metric("agent_interruption_count") or 0)
        least += sum(span.end - span.start >= COUNTED_S + 2 * FRAME_S for span in marked)
        most += sum(span.end - span.start >= COUNTED_S - 2 * FRAME_S for span in marked)
        for side, at, seconds, _ in told:
            near = [span for span in marked if span.side == side and abs(span.start - at) < 0.15]
            long_of_both += 1
            if near:
                lengths.append((1000 * (near[0].end - near[0].start - seconds), call, at + seconds))
            else:
                missed += 1
                notes.append(f"told and not marked: {call.name} at sample {at * RATE:.0f}, {1000 * seconds:.0f} ms")
        for span in marked:
            if any(abs(span.start - one[1]) < 0.15 for one in told) or span.end - span.start < 2 * ALIKE_S:
                continue
            is_short = span.end - span.start < COUNTED_S + 2 * FRAME_S
            missed += not is_short
            notes.append(f"marked and not told{' (short, not counted)' if is_short else ''}: {call.name} at sample "
                         f"{span.start * RATE:.0f}, {1000 * (span.end - span.start):.0f} ms")
    return [
        Row("overlaps: found by both", BY, long_of_both + missed, f"{missed} by one alone", "none, but short ones that are not told", not missed, notes),
        explained(differences("length of an overlap", BY, [one[0] for one in lengths], OVERLAP_MS), lengths, 60, 0.25),
        Row("interruptions: overlaps of 200 ms and more", BY, told_count, f"{told_count} counted, {least} to {most} marked",
            "between those of 220 and of 180 ms", least <= told_count <= most),
    ]
