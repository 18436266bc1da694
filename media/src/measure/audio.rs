//! Measures of a recorded channel alone: its speech, and the level of the speech over the noise.

use super::Span;
use super::turn::{join_spans, near};
use crate::frame::{FRAME, Frame, Sample};
use crate::vad::{Edge, VoiceActivity};

/// Number of samples around speech that are no noise (100 ms): before an onset and after an end there is still a little
/// speech.
const GUARD: Sample = 1600;

/// Length of noise that a measure needs (1 s).
const LEAST_NOISE: Sample = 16_000;

/// Length of speech that a measure needs (500 ms).
const LEAST_SPEECH: Sample = 8000;

/// Ratio that stands for noise of digital silence.
const SILENCE_SNR_DB: f64 = 60.0;

/// Finds the speech on one channel (16 kHz): edges on a 10 ms grid, pauses under 300 ms joined, sounds under 100 ms
/// dropped. One channel does not tell whose speech it is: an echo is speech here. A [`crate::call::Call`] tells the
/// other side's alone.
pub fn segments(pcm: &[i16]) -> Vec<Span> {
    let mut activity = VoiceActivity::new();
    let mut spans: Vec<Span> = Vec::new();
    let mut take = |edge: Option<Edge>| match edge {
        Some(Edge::Started { onset }) => spans.push(Span { from: onset, to: onset }),
        Some(Edge::Ended { end }) => spans.iter_mut().last().map_or((), |span| span.to = end),
        None => {}
    };
    for (n, chunk) in pcm.chunks(FRAME).enumerate() {
        let mut frame: Frame = [0; FRAME];
        frame[..chunk.len()].copy_from_slice(chunk);
        take(activity.push(&frame, (n * FRAME) as Sample));
    }
    take(activity.finish());
    let end = pcm.len() as Sample;
    join_spans(spans.into_iter().map(|span| Span { from: span.from, to: span.to.min(end) }).collect())
}

/// Returns the signal-to-noise ratio of a channel in dB, for given spans of speech. It is the mean power of the speech,
/// without the noise and with pauses under 300 ms, over the long-term mean power of the noise beside it.
///
/// Pauses of that length are active speech in the sense of ITU-T P.56 (its hangover is 200 ms). So for speech set to an
/// active level this is the distance of that level from the noise. `None` with under 0.5 s of speech or 1 s of noise;
/// 60 when the noise is digital silence.
pub fn snr_db(pcm: &[i16], speech: &[Span]) -> Option<f64> {
    Powers::of(pcm, speech, &[], 0)?.snr_db()
}

/// Returns the level of the noise beside the speech in dB of full scale (32768): its long-term mean power. `None` with
/// under 0.5 s of speech or 1 s of noise; -96 for digital silence.
pub fn noise_dbfs(pcm: &[i16], speech: &[Span]) -> Option<f64> {
    Some(Powers::of(pcm, speech, &[], 0)?.noise_dbfs())
}

/// Mean powers of the speech and of the noise beside it.
pub(super) struct Powers {
    speech: f64,
    noise: f64,
}

impl Powers {
    /// Measures the powers. Spans of `apart` are neither speech nor noise, and noise of an RMS of at most `idle` is
    /// digital silence. `None` with under 0.5 s of speech or 1 s of noise.
    pub(super) fn of(pcm: &[i16], speech: &[Span], apart: &[Span], idle: u16) -> Option<Powers> {
        let total = |spans: &[Span]| {
            let samples = || spans.iter().flat_map(|span| samples(pcm, *span));
            let count = samples().count();
            (samples().map(|&x| f64::from(x).powi(2)).sum::<f64>() / count.max(1) as f64, count as Sample)
        };
        let speech = join_spans(speech.to_vec());
        let around: Vec<Span> =
            speech.iter().map(|span| Span { from: span.from - GUARD, to: span.to + GUARD }).collect();
        let beside = without(&[Span { from: 0, to: pcm.len() as Sample }], &around);
        let (speech, speech_count) = total(&without(&speech, apart));
        let (noise, noise_count) = total(&without(&beside, apart));
        let noise = if noise <= f64::from(idle).powi(2) { 0.0 } else { noise };
        (speech_count >= LEAST_SPEECH && noise_count >= LEAST_NOISE).then_some(Powers { speech, noise })
    }

    /// Signal-to-noise ratio in dB, as of [`snr_db`]; `None` when the speech is no louder than the noise.
    pub(super) fn snr_db(&self) -> Option<f64> {
        match self.noise {
            noise if self.speech <= noise => None,
            0.0 => Some(SILENCE_SNR_DB),
            noise => Some(10.0 * ((self.speech - noise) / noise).log10()),
        }
    }

    /// Level of the noise in dB of full scale, as of [`noise_dbfs`].
    pub(super) fn noise_dbfs(&self) -> f64 {
        (10.0 * (self.noise / 32_768f64.powi(2)).log10()).max(-96.0)
    }
}

/// Returns `spans` without the parts that lie in `apart`.
pub(super) fn without(spans: &[Span], apart: &[Span]) -> Vec<Span> {
    let holes = unite(apart);
    let mut left = Vec::new();
    for span in spans {
        let mut from = span.from;
        for hole in near(&holes, *span) {
            left.push(Span { from, to: hole.from });
            from = hole.to;
        }
        left.push(Span { from, to: span.to });
    }
    left.retain(|span| span.length() > 0);
    left
}

/// Returns the same samples in spans that lie apart and in order.
fn unite(spans: &[Span]) -> Vec<Span> {
    let mut sorted: Vec<Span> = spans.iter().copied().filter(|span| span.length() > 0).collect();
    sorted.sort_unstable();
    let mut united: Vec<Span> = Vec::new();
    for span in sorted {
        match united.last_mut() {
            Some(last) if span.from <= last.to => last.to = last.to.max(span.to),
            _ => united.push(span),
        }
    }
    united
}

/// Returns the samples of `pcm` in a span; none where it lies outside.
pub(super) fn samples(pcm: &[i16], span: Span) -> &[i16] {
    let place = |at: Sample| at.clamp(0, pcm.len() as Sample) as usize;
    pcm.get(place(span.from)..place(span.to)).unwrap_or_default()
}
