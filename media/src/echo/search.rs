//! At which lags the received audio may be the sent one: correlation at 4 kHz.

use super::path::dot;

/// Samples at 16 kHz to one here.
pub const STEP: usize = 4;

/// Samples of the received stretch (80 ms).
pub const WINDOW: usize = 320;

/// Lags that are tried (650 ms).
pub const LAGS: usize = 2600;

/// Lags that are handed out, and how far they lie apart at least (1.5 ms).
pub const BEST: usize = 3;
const APART: usize = 6;

/// Samples at 16 kHz that [`thin`] needs for one.
pub const REACH: usize = 8;

/// Room for a search: the sent audio and the correlations.
#[derive(Clone, Debug)]
pub struct Search {
    sent: Box<[f32]>,
    heard: [f32; WINDOW],
}

/// A lag, in samples at 16 kHz, with its normalized correlation, 0 to 1.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Candidate {
    /// Samples from the sent to the received.
    pub lag: usize,
    /// Magnitude of the correlation.
    pub likeness: f32,
}

impl Search {
    /// Room for one search at a time.
    pub fn new() -> Search {
        Search { sent: vec![0.0; WINDOW + LAGS].into(), heard: [0.0; WINDOW] }
    }

    /// The most alike lags, best first. `sent` ends where `heard` ends; both at 16 kHz, [`REACH`] samples longer, in front,
    /// than [`STEP`] x ([`WINDOW`] + [`LAGS`]) and [`STEP`] x [`WINDOW`].
    pub fn best(&mut self, sent: &[f32], heard: &[f32]) -> [Candidate; BEST] {
        thin(sent, &mut self.sent);
        thin(heard, &mut self.heard);
        let power = dot(&self.heard, &self.heard);
        let mut best = [Candidate::default(); BEST];
        let mut own: f32 = dot(&self.sent[LAGS..], &self.sent[LAGS..]);
        let (mut before, mut last) = (Candidate::default(), Candidate::default());
        for lag in 0..LAGS {
            let from = LAGS - lag;
            let delayed = &self.sent[from..][..WINDOW];
            let likeness = dot(delayed, &self.heard).abs() / (own.max(1.0) * power).sqrt().max(1.0);
            let this = Candidate { lag: lag * STEP, likeness };
            if last.likeness >= before.likeness && last.likeness > likeness {
                keep(&mut best, last);
            }
            (before, last) = (last, this);
            own += self.sent[from - 1].powi(2) - self.sent[from + WINDOW - 1].powi(2);
        }
        best
    }
}

fn keep(best: &mut [Candidate; BEST], found: Candidate) {
    let near = best.iter().position(|known| known.lag.abs_diff(found.lag) < APART * STEP && known.likeness > 0.0);
    let at = near.unwrap_or(BEST - 1);
    if found.likeness > best[at].likeness {
        best[at] = found;
        best.sort_by(|a, b| b.likeness.total_cmp(&a.likeness));
    }
}

/// To 4 kHz: a triangle of 7 taps against aliasing, and the lows, where voices are alike, taken down.
fn thin(pcm: &[f32], out: &mut [f32]) {
    const TRIANGLE: [f32; 7] = [1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0];
    let low = |at: usize| -> f32 { pcm[at..at + 7].iter().zip(TRIANGLE).map(|(x, tap)| x * tap / 16.0).sum() };
    let mut last = low(0);
    for (n, out) in out.iter_mut().enumerate() {
        let this = low(n * STEP + REACH - 7);
        *out = this - 0.7 * last;
        last = this;
    }
}
