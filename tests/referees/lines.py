"""Quality of the line as PESQ, STOI, DNSMOS and PLCMOS hear it: codecs and lost packets.

Loss: calls in virtual time, of which both sides are recorded. What the agent sent is the reference, what the caller received is
judged, sentence by sentence. Codecs: the greeting over each of them in real time; that over L16, which loses nothing, is the reference.
"""

import json
import statistics
import subprocess
import warnings

import numpy
import pesq
import pystoi
from speechmos import dnsmos, plcmos

import marks
from calls import Broken, free_port, run, running, samples_of
from marks import AGENT, CALLER, RATE
from table import Row, tool

BY_REFERENCE, BY_EAR = tool("pesq", "pystoi"), tool("speechmos", "onnxruntime")
LOSSES, SEEDS = (0, 1, 5, 15), (7, 8, 9)
CODECS = ("L16", "G722", "PCMU")
GREETING_S = 13
# Measured: PESQ-WB 3.23, 2.95, 2.20, 1.63; STOI 0.99, 0.99, 0.95, 0.89; DNSMOS 2.98, 2.98, 2.79, 2.65; PLCMOS 3.12, 3.08, 2.86, 2.50.
# DNSMOS does not tell a loss of 1 % from none.
LOST_BOUNDS = (
    (1, "PESQ-WB", 0.3, BY_REFERENCE), (2, "STOI", 0.02, BY_REFERENCE), (3, "DNSMOS", 0.05, BY_EAR), (4, "PLCMOS", 0.1, BY_EAR),
)
# Measured: PESQ-WB 4.64, 4.41, 2.82; STOI 1.000, 0.999, 0.994; DNSMOS 3.02, 2.90, 2.88 in one run and 3.16, 3.12, 2.78 in another.
CODEC_BOUNDS = ((0, "PESQ-WB", 0.1), (1, "STOI", 0.0005))
EAR_STEP = 0.05
LONGEST_SHIFT = RATE // 5


def shift_of(reference, heard):
    """Returns how many samples later the same sound lies in `heard`, 200 ms at most either way."""
    size = 1 << (len(reference) + len(heard) - 1).bit_length()
    product = numpy.fft.irfft(numpy.fft.rfft(heard, size) * numpy.conj(numpy.fft.rfft(reference, size)), size)
    around = numpy.concatenate([product[-LONGEST_SHIFT:], product[:LONGEST_SHIFT]])
    return int(around.argmax()) - LONGEST_SHIFT


def aligned(reference, heard):
    """Returns both cut to the samples that they share."""
    shift = shift_of(reference, heard)
    reference, heard = reference[max(0, -shift):], heard[max(0, shift):]
    length = min(len(reference), len(heard))
    return reference[:length], heard[:length]


def by_reference(reference, heard):
    """Returns the means of PESQ (wide band) and STOI over the sentences of the reference."""
    reference, heard = aligned(reference, heard)
    scores = []
    for span in marks.stretches(reference, AGENT):
        if span.end - span.start < 1:
            continue
        piece = slice(max(0, int((span.start - 0.2) * RATE)), int((span.end + 0.2) * RATE))
        one, other = reference[piece], heard[piece]
        scores.append((pesq.pesq(RATE, one, other, "wb"), pystoi.stoi(one, other, RATE)))
    return tuple(statistics.mean(column) for column in zip(*scores))


def by_ear(heard):
    """Returns overall DNSMOS and PLCMOS of speech, pauses over 300 ms left out."""
    pieces = [heard[int(span.start * RATE):int(span.end * RATE)] for span in marks.stretches(heard, AGENT)]
    speech = numpy.clip(numpy.concatenate(pieces), -1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(dnsmos.run(speech, RATE)["ovrl_mos"]), float(plcmos.run(speech, RATE)["plcmos"])


def lost_calls(ringer, folder):
    """Returns (share of packets that the engine told as lost, PESQ, STOI, DNSMOS, PLCMOS) of each loss, means over the seeds."""
    told = {}
    for loss in LOSSES:
        out = folder / f"loss-{loss}"
        run(ringer, "sim", "--seed", SEEDS[0], "--calls", len(SEEDS), "--codec", "G722", "--loss", loss, "--out", out)
        every = []
        for seed in SEEDS:
            place = out / str(seed)
            sent, heard = samples_of(place / "agent/recording.wav")[CALLER], samples_of(place / "caller/recording.wav")[AGENT]
            network = [one["data"] for one in json.loads((place / "caller/timeline.json").read_text()) if one["event"] == "network"][-1]
            every.append((100 * network["lost"] / (network["lost"] + network["received"]), *by_reference(sent, heard), *by_ear(heard)))
        told[loss] = tuple(statistics.mean(column) for column in zip(*every))
    return told


def greetings(ringer, folder):
    """Returns the channel of the agent in a call over each codec, made in real time at once."""
    address = f"127.0.0.1:{free_port()}"
    with running([ringer, "agent", "--listen", f"udp:{address}", "--codec", ",".join(CODECS)], "agent ready"):
        calls = {
            codec: subprocess.Popen(
                [str(ringer), "call", f"sip:desk@{address}", "--codec", codec, "--seed", "5", "--max-seconds", str(GREETING_S),
                 "--record", str(folder / f"{codec}.wav"), "--json"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for codec in CODECS
        }
        for call in calls.values():
            call.wait(timeout=60)
    missing = [codec for codec in CODECS if not (folder / f"{codec}.wav").exists()]
    if missing:
        raise Broken(f"no recording of a call over {', '.join(missing)}")
    return {codec: greeting(samples_of(folder / f"{codec}.wav")[AGENT]) for codec in CODECS}


def greeting(samples):
    """Returns the first 9 s from the agent's first sound."""
    start = int(marks.stretches(samples, AGENT)[0].start * RATE) - RATE // 10
    return samples[max(0, start):][:9 * RATE]


def falls(values, least):
    """Returns true where each value is below the one before it, by `least` at least."""
    return all(before - after >= least for before, after in zip(values, values[1:]))


def rows(ringer, folder):
    """Returns the rows of the quality of lines."""
    lost = lost_calls(ringer, folder)
    columns = list(zip(*(lost[loss] for loss in LOSSES)))
    shares = ", ".join(f"{share:.1f}" for share in columns[0])
    n = len(LOSSES) * len(SEEDS)
    own = f"packets that the engine tells as lost: {shares} %"
    judged = []
    for column, name, least, by in LOST_BOUNDS:
        values = columns[column]
        judged.append(Row(
            f"loss of 0, 1, 5, 15 %: {name}", by, n, ", ".join(f"{value:.2f}" for value in values),
            f"0, 5, 15 each worse by {least} at least", falls([values[0], *values[2:]], least), [own],
        ))
    close = all(abs(share - loss) <= max(0.5, 0.25 * loss) for share, loss in zip(columns[0], LOSSES))
    judged.append(Row("loss asked for and told", "sim", n, f"{shares} %", "within 0.5 points or a quarter", close))
    heard = greetings(ringer, folder)
    scores = {codec: by_reference(heard["L16"], heard[codec]) for codec in CODECS}
    for at, name, least in CODEC_BOUNDS:
        values = [scores[codec][at] for codec in CODECS]
        judged.append(Row(f"L16, G722, PCMU: {name}", BY_REFERENCE, len(CODECS), ", ".join(f"{value:.3f}" for value in values),
                          f"each worse by {least} at least", falls(values, least)))
    ears = [by_ear(heard[codec])[0] for codec in CODECS]
    judged.append(Row(
        "L16, G722, PCMU: DNSMOS", BY_EAR, len(CODECS), ", ".join(f"{value:.2f}" for value in ears),
        f"PCMU below L16 by {EAR_STEP}, and not above G722 by that",
        ears[0] - ears[2] >= EAR_STEP and ears[2] - ears[1] < EAR_STEP, ["how far it puts PCMU below G722 varied from 0.02 to 0.34 in two runs"],
    ))
    return judged
