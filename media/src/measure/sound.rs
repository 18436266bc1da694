//! Sound of one side: loudness, clipping, noise, dropouts, pitch and, from these, clarity.

use ebur128::{EbuR128, Mode};

use super::audio::{Powers, samples, without};
use super::pitch::pitch_variability;
use super::reverb::reverb_s;
use super::turn::join_spans;
use super::{Span, round3};
use crate::frame::{PER_MS, RATE_HZ, Sample};

/// Least speech with which anything is measured (1 s).
const LEAST_SPEECH: Sample = 1000 * PER_MS;

/// Share of full scale from which a sample may be clipped, and the number of such samples in a row that are.
const CLIPPED: f64 = 0.999;
const CLIPPED_RUN: usize = 3;

/// Length of the blocks in which dropouts are searched for (1 ms).
const BLOCK: usize = PER_MS as usize;

/// Length of a dropout, in blocks.
const GAP_BLOCKS: std::ops::RangeInclusive<usize> = 40..=1000;

/// Mean square below which a block is empty: -70 dBFS.
const EMPTY_POWER: f64 = 107.374;

/// Fall of the level into a dropout, as a ratio of powers (30 dB), and the number of blocks in which it falls.
const FALL: f64 = 1000.0;
const FALL_BLOCKS: usize = 5;

/// Length above which concealed stretches are dropouts.
const CONCEALED: Sample = 40 * PER_MS;

/// Signal-to-noise ratio that is worth 0, and the range above it up to 100, in dB.
const POOR_SNR_DB: f64 = 5.0;
const SNR_RANGE_DB: f64 = 30.0;

/// Costs, out of 100, of each percent of clipping and of each dropout a minute.
const CLIPPING_COST: f64 = 5.0;
const DROPOUT_COST: f64 = 2.0;

/// One channel of a recording.
#[derive(Copy, Clone, Debug)]
pub struct Channel<'a> {
    /// Samples at 16 kHz; spans count from the first one.
    pub pcm: &'a [i16],
    /// Spans in which this side speaks.
    pub speech: &'a [Span],
    /// Spans in which audio was lost and concealed.
    pub concealed: &'a [Span],
    /// Spans of sounds that are not this side's, such as an echo: neither speech nor noise is measured there.
    pub apart: &'a [Span],
    /// Greatest value that the side's codec can carry, 1 to 32768.
    pub full_scale: u16,
    /// Value to which that codec decodes digital silence, 0 or more.
    pub idle: u16,
}

/// Sound figures of one side, round3 to three decimals.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Sound {
    /// Integrated loudness of the speech, gated, LUFS (ITU-R BS.1770-4); `None` when all of it is below the gate.
    pub loudness_lufs: Option<f64>,
    /// Share of the samples of the speech in runs of 3 or more at 99.9 % of full scale, percent.
    pub clipping_percent: f64,
    /// Signal-to-noise ratio in dB, as of [`super::snr_db`].
    pub snr_db: Option<f64>,
    /// Level of the noise in dB of full scale, as of [`super::noise_dbfs`].
    pub noise_dbfs: Option<f64>,
    /// Number of gaps in the speech and of concealed stretches.
    pub dropouts: usize,
    /// Total length of the dropouts, milliseconds.
    pub dropout_ms: f64,
    /// Reverberation time in seconds, as of [`reverb_s`].
    pub reverb_s: Option<f64>,
    /// Variability of the pitch in semitones, as of [`pitch_variability`].
    pub pitch_semitones: Option<f64>,
    /// Clarity from 0 to 100, of signal-to-noise ratio, clipping and dropouts in a minute of speech; `None` without the
    /// ratio.
    pub clarity: Option<f64>,
}

/// Measures a channel; `None` with under 1 s of speech.
pub fn sound(channel: &Channel<'_>) -> Option<Sound> {
    let Channel { pcm, full_scale, apart, idle, .. } = *channel;
    let speech = join_spans(channel.speech.to_vec());
    let clean = without(&speech, apart);
    let length = |spans: &[Span]| spans.iter().map(|span| samples(pcm, *span).len() as Sample).sum::<Sample>();
    let (spoken, examined) = (length(&speech), length(&clean));
    if examined < LEAST_SPEECH {
        return None;
    }
    let clipped: usize = clean.iter().map(|span| clipped_samples(samples(pcm, *span), full_scale)).sum();
    let clipping = 100.0 * clipped as f64 / examined as f64;
    let gaps = dropouts(pcm, &speech, channel.concealed);
    let per_minute = gaps.len() as f64 / (spoken as f64 / (60.0 * f64::from(RATE_HZ)));
    let powers = Powers::of(pcm, &speech, apart, idle);
    let snr = powers.as_ref().and_then(Powers::snr_db);
    let clarity = snr.map(|snr| {
        let clean = 100.0 * ((snr - POOR_SNR_DB) / SNR_RANGE_DB).clamp(0.0, 1.0);
        (clean - CLIPPING_COST * clipping - DROPOUT_COST * per_minute).max(0.0)
    });
    Some(Sound {
        loudness_lufs: loudness(pcm, &clean).map(round3),
        clipping_percent: round3(clipping),
        snr_db: snr.map(round3),
        noise_dbfs: powers.map(|powers| round3(powers.noise_dbfs())),
        dropouts: gaps.len(),
        dropout_ms: round3(gaps.iter().map(|gap| gap.length()).sum::<Sample>() as f64 / PER_MS as f64),
        reverb_s: reverb_s(pcm, &speech, &[apart, channel.concealed].concat()).map(round3),
        pitch_semitones: pitch_variability(pcm, &clean).map(round3),
        clarity: clarity.map(round3),
    })
}

fn loudness(pcm: &[i16], speech: &[Span]) -> Option<f64> {
    let mut meter = EbuR128::new(1, RATE_HZ, Mode::I).ok()?;
    for span in speech {
        meter.add_frames_i16(samples(pcm, *span)).ok()?;
    }
    meter.loudness_global().ok().filter(|loudness| loudness.is_finite())
}

/// Counts the samples in runs at full scale.
fn clipped_samples(pcm: &[i16], full_scale: u16) -> usize {
    let high = CLIPPED * f64::from(full_scale);
    let runs =
        pcm.chunk_by(|one, next| (f64::from(one.unsigned_abs()) >= high) == (f64::from(next.unsigned_abs()) >= high));
    runs.filter(|run| run.len() >= CLIPPED_RUN && f64::from(run[0].unsigned_abs()) >= high).map(<[i16]>::len).sum()
}

/// Returns the gaps in the speech and its concealed stretches, in order. A gap of up to a second splits speech, yet
/// lies in it.
fn dropouts(pcm: &[i16], speech: &[Span], concealed: &[Span]) -> Vec<Span> {
    let in_speech = |span: &&Span| span.length() > CONCEALED && speech.iter().any(|said| said.overlap(**span) > 0);
    let mut found: Vec<Span> = concealed.iter().filter(in_speech).copied().collect();
    let longest = *GAP_BLOCKS.end() as Sample * PER_MS;
    for run in speech.chunk_by(|one, next| next.from - one.to <= longest) {
        let whole = Span { from: run[0].from.max(0), to: run[run.len() - 1].to };
        found.extend(
            gaps(samples(pcm, whole), whole.from).filter(|gap| concealed.iter().all(|made| made.overlap(*gap) == 0)),
        );
    }
    found.sort_unstable();
    found
}

/// Returns stretches without sound into which the level falls steeply, between sounds; the first sample of `pcm` is at
/// `from`.
fn gaps(pcm: &[i16], from: Sample) -> impl Iterator<Item = Span> {
    let power = |block: &[i16]| block.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / block.len() as f64;
    let powers: Vec<f64> = pcm.chunks(BLOCK).map(power).collect();
    let mut at = 0usize;
    let mut found = Vec::new();
    for run in powers.chunk_by(|one, next| (*one < EMPTY_POWER) == (*next < EMPTY_POWER)) {
        let before = &powers[at.saturating_sub(FALL_BLOCKS)..at];
        let falls = before.iter().any(|power| *power >= EMPTY_POWER * FALL);
        let ends = at + run.len() < powers.len();
        if run[0] < EMPTY_POWER && GAP_BLOCKS.contains(&run.len()) && falls && ends {
            let place = |block: usize| from + (block * BLOCK) as Sample;
            found.push(Span { from: place(at), to: place(at + run.len()) });
        }
        at += run.len();
    }
    found.into_iter()
}
