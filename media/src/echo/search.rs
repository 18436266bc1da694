//! Search for lags at which the received audio may be the sent one: correlation at 4 kHz, by way of the spectrum.
//!
//! Two pairs of blocks of 1024 take 5 transforms instead of 2600 sums of 320 products.

use std::sync::LazyLock;

use super::ring::Ring;
use crate::fft::{Block, Fft};
use crate::frame::Sample;

/// Number of samples at 16 kHz for one at 4 kHz.
pub(super) const STEP: usize = 4;

/// Length of the received stretch in samples (80 ms).
pub(super) const WINDOW: usize = 320;

/// Number of lags that are tried (650 ms).
pub(super) const LAGS: usize = 2600;

/// Least correlation of a lag that is tried.
const LIKELY: f32 = 0.4;

/// Number of lags that are returned, and their least distance (1.5 ms).
pub(super) const BEST: usize = 3;
const APART: usize = 6;

/// Samples at 16 kHz that [`thin`] needs before the first.
const REACH: usize = 8;

/// A lag, in samples at 16 kHz, with its normalized correlation, 0 to 1; 0 where no lag is as likely.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(super) struct Candidate {
    /// Delay from the sent to the received audio, in samples.
    pub lag: usize,
    /// Magnitude of the correlation.
    pub likeness: f32,
}

/// Values of a transform, and the lags of which it gives the whole correlation.
const LENGTH: usize = 1024;
const PART: usize = LENGTH - WINDOW + 1;

static FFT: LazyLock<Fft<LENGTH>> = LazyLock::new(Fft::new);

/// Returns the likely lags with the largest correlation, best first. Both stretches come from [`thin`] and have the
/// same end.
pub(super) fn best(sent: &[f32; WINDOW + LAGS], heard: &[f32; WINDOW]) -> [Candidate; BEST] {
    let power = energy(heard) as f32;
    // Sound 90 dB below the rest is lost in the rounding of the transforms.
    let least = energy(sent) as f32 * 1e-9;
    let mut squares = products(sent, heard);
    for (square, own) in squares.iter_mut().zip(energies(sent)) {
        *square *= *square / (own.max(least) * power).max(1.0);
    }
    let mut best = [Candidate::default(); BEST];
    for lag in 0..LAGS {
        let from = LAGS - lag;
        let (before, this, after) = (squares.get(from + 1).copied().unwrap_or(0.0), squares[from], squares[from - 1]);
        if this > LIKELY * LIKELY && this >= before && this > after {
            keep(&mut best, Candidate { lag: lag * STEP, likeness: this.sqrt() });
        }
    }
    best
}

/// Returns the sum of squares, computed in several parts side by side.
fn energy(pcm: &[f32]) -> f64 {
    let (parts, rest) = pcm.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for part in parts {
        sums.iter_mut().zip(part).for_each(|(sum, &x)| *sum += f64::from(x).powi(2));
    }
    sums.iter().sum::<f64>() + rest.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>()
}

/// Returns the energies of the stretches of `sent` that begin at each sample, the last one included.
fn energies(sent: &[f32; WINDOW + LAGS]) -> [f32; LAGS + 1] {
    let mut sum = energy(&sent[LAGS..]);
    let mut energies = [sum as f32; LAGS + 1];
    let (first, past) = (sent[..LAGS].iter().rev(), sent[WINDOW..].iter().rev());
    for (energy, (first, past)) in energies[..LAGS].iter_mut().rev().zip(first.zip(past)) {
        sum += f64::from(*first).powi(2) - f64::from(*past).powi(2);
        *energy = sum as f32;
    }
    energies
}

/// Returns the sums of products of `heard` with the stretches of `sent` that begin at each sample, the last one
/// included. Two parts of `sent` are one complex block: `heard` is real, so that their correlations come out apart.
fn products(sent: &[f32; WINDOW + LAGS], heard: &[f32; WINDOW]) -> [f32; LAGS + 1] {
    let mut products = [0.0; LAGS + 1];
    let mut pattern = Block::ZERO;
    pattern.re[..WINDOW].copy_from_slice(heard);
    FFT.transform(&mut pattern);
    let stretch = |part: usize| {
        let sent = sent.get(part * PART..).unwrap_or_default();
        let mut stretch = [0.0; LENGTH];
        let length = sent.len().min(LENGTH);
        stretch[..length].copy_from_slice(&sent[..length]);
        stretch
    };
    for (pair, products) in products.chunks_mut(2 * PART).enumerate() {
        let mut block = Block { re: stretch(2 * pair), im: stretch(2 * pair + 1) };
        FFT.transform(&mut block);
        // Times the conjugate, with real and imaginary parts exchanged for the way back.
        for n in 0..LENGTH {
            let (re, im, of_re, of_im) = (block.re[n], block.im[n], pattern.re[n], pattern.im[n]);
            (block.im[n], block.re[n]) = (re * of_re + im * of_im, im * of_re - re * of_im);
        }
        FFT.transform(&mut block);
        for (products, correlation) in products.chunks_mut(PART).zip([&block.im, &block.re]) {
            products.iter_mut().zip(correlation).for_each(|(sum, x)| *sum = x / LENGTH as f32);
        }
    }
    products
}

fn keep(best: &mut [Candidate; BEST], found: Candidate) {
    let near = best.iter().position(|known| known.lag.abs_diff(found.lag) < APART * STEP && known.likeness > 0.0);
    let at = near.unwrap_or(BEST - 1);
    if found.likeness > best[at].likeness {
        best[at] = found;
        best.sort_by(|a, b| b.likeness.total_cmp(&a.likeness));
    }
}

/// Returns the last stretch of `ring` before `end`, at 4 kHz. A triangle of 7 taps prevents aliasing; low frequencies,
/// in which voices are alike, are attenuated.
pub(super) fn thin<const N: usize, const OUT: usize>(ring: &Ring<N>, end: Sample) -> [f32; OUT] {
    const TRIANGLE: [f32; 7] = [1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0];
    const PIECE: usize = 80;
    let mut pcm = [0.0; REACH + PIECE * STEP];
    let low = |pcm: &[f32]| -> f32 { pcm.iter().zip(TRIANGLE).map(|(x, tap)| x * tap / 16.0).sum() };
    let mut from = end - (REACH + OUT * STEP) as Sample;
    let mut last = None;
    let mut thin = [0.0; OUT];
    for piece in thin.chunks_mut(PIECE) {
        let pcm = &mut pcm[..REACH + piece.len() * STEP];
        ring.copy_to(from, pcm);
        from += (piece.len() * STEP) as Sample;
        for (n, out) in piece.iter_mut().enumerate() {
            let this = low(&pcm[n * STEP + REACH - 7..]);
            *out = this - 0.7 * last.unwrap_or_else(|| low(pcm));
            last = Some(this);
        }
    }
    thin
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlations_are_the_sums_of_products() {
        let mut stream = crate::seed::Seed(5).stream("search");
        let mut draw = || stream.range(-3000.0, 3000.0) as f32;
        let sent: [f32; WINDOW + LAGS] = std::array::from_fn(|_| draw());
        let heard: [f32; WINDOW] = std::array::from_fn(|n| 0.3 * sent[LAGS - 1234 + n] + 0.1 * draw());
        for (from, found) in products(&sent, &heard).into_iter().enumerate() {
            let sum: f64 = (0..WINDOW).map(|n| f64::from(sent[from + n]) * f64::from(heard[n])).sum();
            assert!(
                (sum - f64::from(found)).abs() < 1e-5 * (energy(&sent) * energy(&heard)).sqrt(),
                "{from}: {found}, {sum}"
            );
        }
        let best = best(&sent, &heard);
        assert_eq!(best[0].lag, 1234 * STEP);
        assert!(best[0].likeness > 0.9 && best[1].likeness < 0.4, "{best:?}");
    }
}
