//! At which lags the received audio may be the sent one: correlation at 4 kHz.

use super::ring::Ring;
use crate::frame::Sample;

/// Samples at 16 kHz to one here.
pub const STEP: usize = 4;

/// Samples of the received stretch (80 ms).
pub const WINDOW: usize = 320;

/// Lags that are tried (650 ms).
pub const LAGS: usize = 2600;

/// Lags that are handed out, and how far they lie apart at least (1.5 ms).
pub const BEST: usize = 3;
const APART: usize = 6;

/// Samples at 16 kHz that [`thin`] needs before the first.
const REACH: usize = 8;

/// A lag, in samples at 16 kHz, with its normalized correlation, 0 to 1.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Candidate {
    /// Samples from the sent to the received.
    pub lag: usize,
    /// Magnitude of the correlation.
    pub likeness: f32,
}

/// Largest magnitude of a sent stretch.
pub const SENT_PEAK: f32 = 4095.0;

/// Largest magnitude of a received stretch: [`WINDOW`] products with a sent one, or with itself, add up within 32 bits.
pub const HEARD_PEAK: f32 = 1023.0;

/// The most alike lags, best first; both stretches [`thin`] and of the same end. Whole numbers, because twice as many of them are
/// multiplied at once.
pub fn best(sent: &[i16; WINDOW + LAGS], heard: &[i16; WINDOW]) -> [Candidate; BEST] {
    let power = products(heard, heard) as f32;
    let mut best = [Candidate::default(); BEST];
    let mut own: i64 = sent[LAGS..].iter().map(|&x| i64::from(x).pow(2)).sum();
    let (mut before, mut last) = (Candidate::default(), Candidate::default());
    for lag in 0..LAGS {
        let from = LAGS - lag;
        let delayed = &sent[from..][..WINDOW];
        let likeness = products(delayed, heard).abs() as f32 / (own as f32 * power).sqrt().max(1.0);
        let this = Candidate { lag: lag * STEP, likeness };
        if last.likeness >= before.likeness && last.likeness > likeness {
            keep(&mut best, last);
        }
        (before, last) = (last, this);
        own += i64::from(sent[from - 1]).pow(2) - i64::from(sent[from + WINDOW - 1]).pow(2);
    }
    best
}

fn products(a: &[i16], b: &[i16]) -> i32 {
    a.iter().zip(b).fold(0i32, |sum, (&a, &b)| sum.wrapping_add(i32::from(a).wrapping_mul(i32::from(b))))
}

fn keep(best: &mut [Candidate; BEST], found: Candidate) {
    let near = best.iter().position(|known| known.lag.abs_diff(found.lag) < APART * STEP && known.likeness > 0.0);
    let at = near.unwrap_or(BEST - 1);
    if found.likeness > best[at].likeness {
        best[at] = found;
        best.sort_by(|a, b| b.likeness.total_cmp(&a.likeness));
    }
}

/// The last stretch of `ring` before `end`, at 4 kHz: a triangle of 7 taps against aliasing, and the lows, where voices are alike,
/// taken down. Scaled to a largest magnitude of `peak`.
pub fn thin<const N: usize, const OUT: usize>(ring: &Ring<N>, end: Sample, peak: f32) -> [i16; OUT] {
    const TRIANGLE: [f32; 7] = [1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0];
    const PIECE: usize = 80;
    let mut pcm = [0.0; REACH + PIECE * STEP];
    let low = |pcm: &[f32]| -> f32 { pcm.iter().zip(TRIANGLE).map(|(x, tap)| x * tap / 16.0).sum() };
    let mut from = end - (REACH + OUT * STEP) as Sample;
    let mut last = None;
    let mut thin = [0.0; OUT];
    for piece in thin.chunks_mut(PIECE) {
        let pcm = &mut pcm[..REACH + piece.len() * STEP];
        ring.read(from, pcm);
        from += (piece.len() * STEP) as Sample;
        for (n, out) in piece.iter_mut().enumerate() {
            let this = low(&pcm[n * STEP + REACH - 7..]);
            *out = this - 0.7 * last.unwrap_or_else(|| low(pcm));
            last = Some(this);
        }
    }
    let largest = thin.iter().fold(1.0, |largest: f32, x| largest.max(x.abs()));
    thin.map(|x| (x * peak / largest).round() as i16)
}
