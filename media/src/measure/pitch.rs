//! The pitch of a voice: YIN (de Cheveigné and Kawahara, JASA 111, 2002) on 8 kHz, every 10 ms.

use super::Span;
use super::audio::samples;

/// Rate at which pitch is searched.
const RATE_HZ: f64 = 8000.0;

/// Distance of frames at that rate (10 ms).
const HOP: usize = 80;

/// Number of samples that are compared (25 ms).
const WINDOW: usize = 200;

/// Shortest and longest period of voices: 400 Hz down to 60 Hz.
const SHORTEST: usize = 20;
const LONGEST: usize = 133;

/// Normalised difference below which two periods count as the same, so that the frame is voiced.
const SAME: f32 = 0.15;

/// Mean square below which frames are silence: -50 dBFS.
const LEAST_POWER: f32 = 10_737.0;

/// Largest distance of a neighbour that makes a frame credible: pitch glides.
const GLIDE_SEMITONES: f64 = 2.0;

/// Number of voiced frames that a measure needs.
const LEAST_FRAMES: usize = 100;

/// Returns the fundamental frequency in Hz, 60 to 400, of the voiced 10 ms frames of one stretch (16 kHz), in order.
/// Frames without a neighbour within 2 semitones are left out, as octave errors are.
pub fn pitch_hz(pcm: &[i16]) -> Vec<f64> {
    let half: Vec<f32> = pcm
        .windows(3)
        .step_by(2)
        .map(|near| f32::from(near[0]) / 4.0 + f32::from(near[1]) / 2.0 + f32::from(near[2]) / 4.0)
        .collect();
    let frames: Vec<Option<f64>> = half.windows(WINDOW + LONGEST + 1).step_by(HOP).map(period_hz).collect();
    let close = |one: f64, other: Option<&Option<f64>>| {
        other.copied().flatten().is_some_and(|other| semitones(one / other).abs() <= GLIDE_SEMITONES)
    };
    let credible = |(at, hz): (usize, &Option<f64>)| {
        hz.filter(|hz| close(*hz, frames.get(at + 1)) || close(*hz, frames.get(at.wrapping_sub(1))))
    };
    frames.iter().enumerate().filter_map(credible).collect()
}

/// Returns the standard deviation of the pitch over the voiced frames of `speech`, in semitones; `None` with under 100
/// frames.
pub fn pitch_variability(pcm: &[i16], speech: &[Span]) -> Option<f64> {
    let voiced: Vec<f64> = speech.iter().flat_map(|span| pitch_hz(samples(pcm, *span))).map(semitones).collect();
    let count = voiced.len() as f64;
    let mean = voiced.iter().sum::<f64>() / count;
    let variance = voiced.iter().map(|pitch| (pitch - mean).powi(2)).sum::<f64>() / count;
    (voiced.len() >= LEAST_FRAMES).then(|| variance.sqrt())
}

fn semitones(ratio: f64) -> f64 {
    12.0 * ratio.log2()
}

/// Returns the pitch at the beginning of `half`, which holds a window and the longest period; `None` when it is
/// unvoiced.
fn period_hz(half: &[f32]) -> Option<f64> {
    let window = &half[..WINDOW];
    let power = window.iter().map(|x| x * x).sum::<f32>() / WINDOW as f32;
    if power < LEAST_POWER {
        return None;
    }
    let mut normal = [1.0f32; LONGEST + 2];
    let mut sum = 0.0;
    for lag in 1..normal.len() {
        let difference: f32 = window.iter().zip(&half[lag..]).map(|(x, y)| (x - y) * (x - y)).sum();
        sum += difference;
        normal[lag] = if sum > 0.0 { difference * lag as f32 / sum } else { 1.0 };
    }
    let mut lag = (2..=LONGEST).find(|lag| normal[*lag] < SAME)?;
    while lag < LONGEST && normal[lag + 1] < normal[lag] {
        lag += 1;
    }
    (lag >= SHORTEST).then(|| RATE_HZ / (lag as f64 + vertex([normal[lag - 1], normal[lag], normal[lag + 1]])))
}

/// Returns the position of the minimum of the parabola through three values, from -0.5 to 0.5.
fn vertex(near: [f32; 3]) -> f64 {
    let [before, at, after] = near.map(f64::from);
    let bend = before - 2.0 * at + after;
    if bend > 0.0 { ((before - after) / (2.0 * bend)).clamp(-0.5, 0.5) } else { 0.0 }
}
