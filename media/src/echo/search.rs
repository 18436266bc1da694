//! At which lags the received audio may be the sent one: correlation at 4 kHz.

use super::ring::Ring;
use crate::dot::dot;
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

/// The most alike lags, best first; both stretches [`thin`] and of the same end.
pub fn best(sent: &[f32; WINDOW + LAGS], heard: &[f32; WINDOW]) -> [Candidate; BEST] {
    let power = dot::<16>(heard, heard);
    let mut best = [Candidate::default(); BEST];
    let mut own: f32 = dot::<16>(&sent[LAGS..], &sent[LAGS..]);
    let (mut before, mut last) = (Candidate::default(), Candidate::default());
    for lag in 0..LAGS {
        let from = LAGS - lag;
        let delayed = &sent[from..][..WINDOW];
        let likeness = dot::<16>(delayed, heard).abs() / (own.max(1.0) * power).sqrt().max(1.0);
        let this = Candidate { lag: lag * STEP, likeness };
        if last.likeness >= before.likeness && last.likeness > likeness {
            keep(&mut best, last);
        }
        (before, last) = (last, this);
        own += sent[from - 1].powi(2) - sent[from + WINDOW - 1].powi(2);
    }
    best
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
/// taken down.
pub fn thin<const N: usize>(ring: &Ring<N>, end: Sample, out: &mut [f32]) {
    const TRIANGLE: [f32; 7] = [1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0];
    const PIECE: usize = 80;
    let mut pcm = [0.0; REACH + PIECE * STEP];
    let low = |pcm: &[f32]| -> f32 { pcm.iter().zip(TRIANGLE).map(|(x, tap)| x * tap / 16.0).sum() };
    let mut from = end - (REACH + out.len() * STEP) as Sample;
    let mut last = None;
    for piece in out.chunks_mut(PIECE) {
        let pcm = &mut pcm[..REACH + piece.len() * STEP];
        ring.read(from, pcm);
        from += (piece.len() * STEP) as Sample;
        for (n, out) in piece.iter_mut().enumerate() {
            let this = low(&pcm[n * STEP + REACH - 7..]);
            *out = this - 0.7 * last.unwrap_or_else(|| low(pcm));
            last = Some(this);
        }
    }
}
