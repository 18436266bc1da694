//! What a recorded channel itself tells: where there is speech on it, and how far the speech stands above the noise.

use super::Span;
use super::turn::joined;
use crate::frame::{FRAME, Frame, Sample};
use crate::vad::{Edge, VoiceActivity};

/// Samples around speech that are no noise: what comes before an onset and after an end is still a little speech (100 ms).
const GUARD: Sample = 1600;

/// Noise that is needed for a measure (1 s).
const LEAST_NOISE: Sample = 16_000;

/// Speech that is needed for a measure (500 ms).
const LEAST_SPEECH: Sample = 8000;

/// The speech on one channel (16 kHz): edges on a 10 ms grid, pauses under 300 ms joined, sounds under 100 ms dropped.
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
    joined(spans.into_iter().map(|span| Span { from: span.from, to: span.to.min(end) }).collect())
}

/// Signal-to-noise ratio of a channel in dB, given where speech is: the mean power of the speech, pauses under 300 ms
/// included and the noise taken out, over the long-term mean power of the noise beside it.
///
/// Pauses of that length are active speech in the sense of ITU-T P.56 (its hangover is 200 ms), so for speech set to an
/// active level this is the distance of that level from the noise. `None` with under 0.5 s of speech or 1 s of noise; 96 when
/// the noise is digital silence.
pub fn snr_db(pcm: &[i16], speech: &[Span]) -> Option<f64> {
    let power = |span: Span| {
        let inside = pcm.get(span.from.max(0) as usize..span.to.clamp(0, pcm.len() as Sample) as usize);
        let inside = inside.unwrap_or_default();
        (inside.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>(), inside.len() as Sample)
    };
    let total = |spans: &[Span]| {
        let (sum, count) = spans.iter().map(|span| power(*span)).fold((0.0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        (sum / count.max(1) as f64, count)
    };
    let speech = joined(speech.to_vec());
    let mut noise = Vec::new();
    let mut from = 0;
    for span in &speech {
        noise.push(Span { from, to: span.from - GUARD });
        from = span.to + GUARD;
    }
    noise.push(Span { from, to: pcm.len() as Sample });
    noise.retain(|span| span.length() > 0);
    let ((spoken, speech_count), (beside, noise_count)) = (total(&speech), total(&noise));
    if speech_count < LEAST_SPEECH || noise_count < LEAST_NOISE || spoken <= beside {
        return None;
    }
    Some(if beside < 1e-6 { 96.0 } else { 10.0 * ((spoken - beside) / beside).log10() })
}
