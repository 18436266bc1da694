"""The same sample agent called by streamdouble and by `ringer call`, in one dialect, in real time; the agent's own log is the truth.

Each tool makes CALLS calls, one after the other, both tools at once, each to an agent of its own, after one that is not counted: in
two of three tries an agent that had just started heard its first caller half a second late. The first latency is from the start of
the call to the agent's first sound, the second from the caller's sentence to the answer. Of streamdouble both are taken by energy
marks from the stereo recording that it makes of arrival times: its `time_to_first_audio_ms` is the first message, silence too.
The agent's log has the caller as it was heard there, so a latency in it lacks the way of the caller's words to the agent.
"""

import asyncio
import concurrent.futures
import json
import pathlib

import librosa
import numpy
import soundfile
from streamdouble import audio, g711
from streamdouble.api import call, save_stereo
from streamdouble.session import SessionConfig

import marks
from calls import Broken, Call, free_port, run, running
from marks import AGENT, CALLER, RATE
from table import Row, differences, tool

BY = tool("streamdouble")
KIND, SENTENCE = "twilio_media_streams", "I would like to see a doctor."
VOICES = pathlib.Path(__file__).parents[2] / "fixtures/voices"
CALLS, FEWEST, SPEAKS_AT_S, LISTENS_S = 5, 3, 11.6, 4.5
# Measured on a busy machine, against the agent's own log: first sounds +30 / 46 ms by streamdouble, -10 / 10 ms by Ringer, answers
# +30 to +70 / 66 to 144 ms by streamdouble, +60 / 70 ms by Ringer (median / p95), medians of both 40 ms apart at most.
FIRST_MS, ANSWER_MS, APART_MS = (60, 100, None), (110, 220, None), 70


def sentence():
    """Returns the kept sentence at 8 kHz, as 16-bit samples."""
    kept = [line.partition("|")[2] for line in (VOICES / "sentences.txt").read_text().splitlines()]
    samples, rate = soundfile.read(VOICES / f"{kept.index(SENTENCE) + 1:02}.opus", dtype="float32")
    return (librosa.resample(samples, orig_sr=rate, target_sr=8000) * 32767).astype(numpy.int16)


def doubled(url, folder, number):
    """Calls by streamdouble; returns seconds to the first sound, to the answer, and to the first message by its own word."""
    before, behind = (numpy.zeros(int(seconds * 8000), numpy.int16) for seconds in (SPEAKS_AT_S, LISTENS_S))
    ulaw = g711.encode(numpy.concatenate([before, sentence(), behind]))
    frames = audio.frame_ulaw(ulaw)
    report = asyncio.run(call(url, frames=frames, config=SessionConfig(quiet_period_s=0.2, max_drain_s=0.5)))
    if report.violations or not report.spoke:
        raise Broken(f"streamdouble: {report.to_dict()}")
    path = folder / f"double-{number}.wav"
    save_stereo(report, ulaw, path)
    samples, _ = librosa.load(path, sr=RATE, mono=False)
    spans = marks.stretches(samples[CALLER], CALLER) + marks.stretches(samples[AGENT], AGENT)
    first = min(span.start for span in spans if span.side == AGENT)
    return first, answer(marks.latencies(marks.turns(spans))), report.time_to_first_audio_ms / 1000


def ringed(ringer, url, folder, number):
    """Calls by Ringer; returns seconds to the first sound and to the answer by its timeline."""
    path = folder / f"ringer-{number}.wav"
    lines = run(
        ringer, "call", url, "--dialect", KIND, "--intent", SENTENCE, "--seed", number, "--max-seconds", int(SPEAKS_AT_S + LISTENS_S + 2),
        "--record", path, "--json",
    )
    events = [event for event in map(json.loads, lines.splitlines()) if "sample" in event]
    return measures(Call(path.stem, path, None, events, {}))


def answer(found):
    """Returns the first latency; None where the agent began before the caller had ended, as it does when it cuts in."""
    return float(found[0][1]) if found else None


def own_words(log):
    """Returns (first sound, first latency) in seconds of each call but the first in the agent's own log."""
    calls = {}
    for line in log.read_text().splitlines():
        event = json.loads(line)
        calls.setdefault(event["call_id"], []).append(event)
    return [measures(Call(name, log, None, events, {})) for name, events in list(calls.items())[1:]]


def measures(call):
    """Returns (first sound, first latency) in seconds by the events of a call."""
    spans = call.spans()
    return min(span.start for span in spans if span.side == AGENT), answer(marks.latencies(marks.turns(spans)))


def series(ringer, folder, name, one):
    """Makes the calls of one tool to an agent of its own; returns what the tool measured and what the agent logged."""
    port, log = free_port(), folder / f"{name}.jsonl"
    agent = [ringer, "agent", "--listen", f"udp:127.0.0.1:{free_port()}", "--websocket", f"127.0.0.1:{port}", "--log", log]
    with running(agent, "agent ready"):
        url = f"ws://127.0.0.1:{port}/{KIND}"
        run(ringer, "call", url, "--dialect", KIND, "--intent", SENTENCE, "--max-seconds", 3)
        measured = [one(url, number) for number in range(1, CALLS + 1)]
    logged = own_words(log)
    if len(logged) != len(measured):
        raise Broken(f"{log} has {len(logged)} calls, not {len(measured)}")
    return measured, logged


def rows(ringer, folder):
    """Returns the rows of both tools."""
    with concurrent.futures.ThreadPoolExecutor(2) as both:
        theirs = both.submit(series, ringer, folder, "double", lambda url, number: doubled(url, folder, number))
        ours = both.submit(series, ringer, folder, "ringer", lambda url, number: ringed(ringer, url, folder, number))
        made = {"streamdouble": theirs.result(), "ringer call": ours.result()}
    messages = ", ".join(f"{1000 * one[2]:.0f}" for one in made["streamdouble"][0])
    table = []
    for at, what, bounds in ((0, "time to the first sound", FIRST_MS), (1, "latency of the answer", ANSWER_MS)):
        middle = {}
        for name, (measured, logged) in made.items():
            both = [(one[at], own[at]) for one, own in zip(measured, logged) if None not in (one[at], own[at])]
            if len(both) < FEWEST:
                raise Broken(f"{name}: {what} is known of {len(both)} calls, not of {FEWEST}")
            wrong = [1000 * (one - own) for one, own in both]
            each = ", ".join(f"{1000 * one:.0f} ({1000 * own:.0f})" for one, own in both)
            by, notes = BY if name == "streamdouble" else "agent's log", [f"its calls: {each} ms (the agent's log)"]
            table.append(differences(f"{name}: {what}, against the agent's log", by, wrong, bounds, notes=notes))
            middle[name] = float(numpy.median(wrong))
        apart = middle["streamdouble"] - middle["ringer call"]
        if at == 0:
            table[0].notes.append(f"its time_to_first_audio_ms: {messages}: the first message, which is silence")
        table.append(Row(f"{what}: medians of both tools", BY, sum(row.n for row in table[-2:]), f"{apart:+.1f} ms apart", f"<= {APART_MS}", abs(apart) <= APART_MS))
    return table
