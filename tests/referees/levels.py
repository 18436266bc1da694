"""Levels: active speech, noise and loudness of both channels, by librosa and pyloudnorm."""

import numpy
import pyloudnorm

import marks
import turns
from marks import AGENT, CALLER, HOP, RATE
from table import differences, tool

BY, BY_LOUDNESS = tool("librosa"), tool("pyloudnorm")
ACTIVE_DBOV = -26.0
# Measured: active level +0.5 / 0.8 / 0.9 dB, loudness -0.14 / 0.16 / 0.17 LU, SNR of the caller -0.4 / 0.7 / 0.8 dB, of the agent
# +0.2 dB, 0.3 at most where no sound is too short for the engine to be speech (median / p95 / worst).
ACTIVE_DB, LOUDNESS_LU, ASKED_DB, AGENT_SNR_DB = (1.0, 1.2, 1.5), (0.25, 0.3, 0.5), (1.0, 1.5, 2.0), (0.5, None, None)
OUTLIER_DB, OUTLIERS = 1.0, 0.2
EDGE_S = 0.1


def frames_of(samples, spans):
    """Returns true for each frame that lies in one of the stretches."""
    inside = numpy.zeros(len(samples) // HOP + 1, dtype=bool)
    for span in spans:
        inside[int(span.start * RATE / HOP):int(numpy.ceil(span.end * RATE / HOP)) + 1] = True
    return inside


def power(samples, inside):
    """Returns the mean power of frames."""
    levels = 10 ** (marks.levels_db(samples) / 10)
    return float(levels[:len(inside)][inside[:len(levels)]].mean())


def active_db(samples):
    """Returns the level in dBFS of the frames that have sound."""
    limit = marks.threshold_db(samples)
    levels = marks.levels_db(samples)
    return 10 * numpy.log10((10 ** (levels[levels > limit] / 10)).mean())


def snr_db(samples, spans):
    """Returns power of speech less that of the noise, over that of the noise, in dB. 100 ms around speech are neither."""
    wide = [marks.Span(one.side, max(0, one.start - EDGE_S), one.end + EDGE_S) for one in spans]
    speech, noise = power(samples, frames_of(samples, spans)), power(samples, ~frames_of(samples, wide))
    return 10 * numpy.log10(max(speech - noise, 1e-12) / noise)


def loudness(samples, spans):
    """Returns the integrated loudness (ITU-R BS.1770-4) of stretches, in LUFS."""
    pieces = [samples[int(span.start * RATE):int(span.end * RATE)] for span in spans]
    return pyloudnorm.Meter(RATE).integrated_loudness(numpy.concatenate(pieces).astype(float))


def rows(calls):
    """Returns the rows of levels."""
    active, agent_snr, asked, loud = [], [], [], []
    for call in calls:
        caller, agent = call.samples
        behaviour = call.result["metadata"]["behaviour"]
        spoken = [span for span in call.spans() if span.side == CALLER and span not in joined_keys(call)]
        if call.is_noisy:
            asked.append(snr_db(caller, spoken) - behaviour["noise_snr_db"])
        elif spoken:
            active.append(active_db(caller) - ACTIVE_DBOV)
        marked = marks.stretches(agent, AGENT)
        told = call.metric("agent_snr")
        if told is not None:
            agent_snr.append((snr_db(agent, marked) - told, call))
        loud.append(loudness(agent, marked) - call.metric("agent_perceived_loudness"))
    return [
        differences("active level of the caller, against -26 dBov", BY, active, ACTIVE_DB, "dB", 2),
        differences("SNR of the caller in a cafe, against the one asked for", BY, asked, ASKED_DB, "dB", 2),
        agent_snr_row(agent_snr),
        differences("agent_perceived_loudness", BY_LOUDNESS, loud, LOUDNESS_LU, "LU", 2),
    ]


def agent_snr_row(every):
    """Returns the row of agent_snr. Outliers have a sound that the engine took for noise, since it was too short to be speech."""
    row = differences("agent_snr", BY, [one[0] for one in every], AGENT_SNR_DB, "dB", 2)
    outliers = [one for one in every if abs(one[0]) > OUTLIER_DB]
    for difference, call in outliers:
        of_agent = [span for span in call.spans() if span.side == AGENT]
        left_out = [
            sound for sound in turns.faint_sounds(call.samples[AGENT])
            if not any(span.start - marks.HOP / RATE < sound[1] and sound[0] < span.end for span in of_agent)
        ]
        row.holds = row.holds and bool(left_out)
        where = ", ".join(f"{start * RATE:.0f} ({1000 * (end - start):.0f} ms)" for start, end, _ in left_out) or "no reason found"
        row.notes.append(f"{difference:+.1f} dB in {call.name}: sounds that were taken for noise, at samples {where}")
    row.bound += f", outliers over {OUTLIER_DB:g} dB explained and at most {100 * OUTLIERS:.0f} %"
    row.holds = row.holds and len(outliers) <= OUTLIERS * row.n
    return row


def joined_keys(call):
    """Returns the caller's stretches that are keys."""
    return [span for span in call.spans() if any(abs(span.start - key.start) < 1e-6 for key in call.keys())]
