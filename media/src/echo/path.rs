//! The path from sent audio to its echo: a short filter, by exponentially weighted least squares.

use crate::dot::dot;
use crate::frame::FRAME;

/// Taps of the filter (4 ms): space for the band limits of two codecs, and for a lag that is off by 1 ms.
pub(super) const TAPS: usize = 64;

/// Weight of earlier frames for each new one: 200 ms are remembered.
const FORGET: f32 = 0.9;

/// Term added to the diagonal, as a share of its mean: bands 35 dB below the rest are left alone.
const RIDGE: f64 = 3e-4;

/// Least squares of a received stretch upon a sent one. `sent` always holds [`TAPS`] - 1 samples more than `heard`, in
/// front.
#[derive(Clone, Debug)]
pub(super) struct EchoPath {
    /// Covariance of the sent audio, which is symmetric: its lower half, diagonal behind diagonal.
    own: [f32; TAPS * (TAPS + 1) / 2],
    /// Correlation of the sent with the received audio.
    both: [f32; TAPS],
    /// Coefficients of the filter, newest sample first.
    taps: [f32; TAPS],
}

impl EchoPath {
    /// Returns a path without an echo.
    pub(super) fn new() -> EchoPath {
        EchoPath { own: [0.0; TAPS * (TAPS + 1) / 2], both: [0.0; TAPS], taps: [0.0; TAPS] }
    }

    /// Writes the echo of `sent` to `echo`.
    pub(super) fn echo(&self, sent: &[f32], echo: &mut [f32]) {
        echo.fill(0.0);
        for (k, tap) in self.taps.iter().enumerate() {
            let delayed = &sent[TAPS - 1 - k..][..echo.len()];
            echo.iter_mut().zip(delayed).for_each(|(sum, x)| *sum += tap * x);
        }
    }

    /// Takes in the audio received for `sent`; older stretches count less. [`EchoPath::solve`] makes use of it.
    pub(super) fn add(&mut self, sent: &[f32], heard: &[f32]) {
        let count = heard.len();
        let forget = FORGET.powf(count as f32 / FRAME as f32);
        let delayed = |k: usize| &sent[TAPS - 1 - k..][..count];
        let mut first = [0.0; TAPS];
        for (k, (first, both)) in first.iter_mut().zip(&mut self.both).enumerate() {
            *first = dot::<16>(delayed(0), delayed(k));
            *both = *both * forget + dot::<16>(heard, delayed(k));
        }
        // Down a diagonal, each element covers the same stretch one sample earlier.
        for (lag, mut sum) in first.into_iter().enumerate() {
            for (column, own) in self.own[diagonal(lag)..][..TAPS - lag].iter_mut().enumerate() {
                *own = *own * forget + sum;
                let row = lag + column;
                if row + 1 < TAPS {
                    let (early, late) = (TAPS - 2 - row, TAPS - 2 - row + count);
                    sum += sent[early] * sent[early + lag] - sent[late] * sent[late + lag];
                }
            }
        }
    }

    /// Solves for the filter again (Cholesky). It stays as it is when nothing was sent.
    pub(super) fn solve(&mut self) {
        let own = |row: usize, column: usize| f64::from(self.own[diagonal(row - column) + column]);
        let trace: f64 = (0..TAPS).map(|k| own(k, k)).sum();
        let ridge = RIDGE * trace / TAPS as f64;
        if ridge < 1.0 {
            return;
        }
        let mut lower = [[0f64; TAPS]; TAPS];
        let mut solved = [0f64; TAPS];
        for row in 0..TAPS {
            let (above, below) = lower.split_at_mut(row);
            let this = &mut below[0];
            for column in 0..row {
                let sum: f64 = this[..column].iter().zip(&above[column][..column]).map(|(a, b)| a * b).sum();
                this[column] = (own(row, column) - sum) / above[column][column];
            }
            let sum: f64 = this[..row].iter().map(|a| a * a).sum();
            this[row] = (own(row, row) + ridge - sum).max(ridge / 2.0).sqrt();
            let sum: f64 = this[..row].iter().zip(&solved).map(|(a, b)| a * b).sum();
            solved[row] = (f64::from(self.both[row]) - sum) / this[row];
        }
        for row in (0..TAPS).rev() {
            let sum: f64 = (row + 1..TAPS).map(|below| lower[below][row] * solved[below]).sum();
            solved[row] = (solved[row] - sum) / lower[row][row];
        }
        self.taps = solved.map(|tap| tap as f32);
    }

    /// Returns the index of the largest tap, newest first.
    pub(super) fn peak(&self) -> usize {
        let loudest = self.taps.iter().enumerate().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        loudest.map_or(0, |(at, _)| at)
    }
}

/// Returns the index in [`EchoPath::own`] of the first element of the diagonal whose rows are `lag` more than its
/// columns.
fn diagonal(lag: usize) -> usize {
    lag * (2 * TAPS + 1 - lag) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_found_exactly() {
        let mut stream = crate::seed::Seed(3).stream("path");
        let sent: Vec<f32> = (0..2000 + TAPS - 1).map(|_| stream.range(-8000.0, 8000.0) as f32).collect();
        let heard: Vec<f32> = (0..2000).map(|n| 0.5 * sent[TAPS - 1 + n - 7] - 0.2 * sent[TAPS - 1 + n - 40]).collect();
        let mut path = EchoPath::new();
        for part in 0..4 {
            path.add(&sent[part * 500..][..500 + TAPS - 1], &heard[part * 500..][..500]);
        }
        path.solve();
        assert_eq!(path.peak(), 7);
        for (k, tap) in path.taps.iter().enumerate() {
            let wanted = [(7, 0.5), (40, -0.2)].iter().find(|at| at.0 == k).map_or(0.0, |at| at.1);
            assert!((tap - wanted).abs() < 2e-3, "tap {k}: {tap}");
        }
        let mut echo = [0.0; 500];
        path.echo(&sent[..500 + TAPS - 1], &mut echo);
        let left: f32 = echo.iter().zip(&heard).map(|(a, b)| (a - b).powi(2)).sum();
        assert!(left < 1e-5 * dot::<16>(&heard[..500], &heard[..500]), "{left}");
        let mut path = EchoPath::new();
        path.solve();
        path.echo(&sent[..500 + TAPS - 1], &mut echo);
        assert_eq!(echo, [0.0; 500]);
    }
}
