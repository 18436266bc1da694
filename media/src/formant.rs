//! Formants moved up or down while pitch and speed stay: another vocal tract with the same words. For whole pieces of
//! speech, not for ticks.
//!
//! Each short block's spectral envelope, its cepstrum's first coefficients (Oppenheim and Schafer, homomorphic
//! filtering of speech), is stretched in frequency; the harmonics under it stay where they are.

use crate::fft::{self, Fft};

/// Length of a block: 32 ms at 16 kHz, in samples.
const BLOCK: usize = 512;
/// Distance of blocks: 8 ms, in samples.
const HOP: usize = BLOCK / 4;
/// Number of cepstral coefficients of the envelope: shorter than the pitch period of voices up to 330 Hz.
const ENVELOPE: usize = 48;
/// Largest change of a frequency, in nepers (20 dB).
const CHANGE_MAX: f32 = 2.3;
/// Term added to magnitudes, so that digital silence has a logarithm.
const FLOOR: f32 = 1.0;

/// Returns `pcm` with all formants `factor` times as high, 0.5 to 2 (clamped). `pcm` is 16 kHz mono, in steps of 16-bit
/// samples. The result has as many samples, at the same times; a peak may be higher than before.
pub fn move_formants(pcm: &[f32], factor: f32) -> Vec<f32> {
    let factor = factor.clamp(0.5, 2.0);
    let fft = Fft::new();
    let turn = |n: usize| 0.5 - 0.5 * (std::f32::consts::TAU * n as f32 / BLOCK as f32).cos();
    let window: Vec<f32> = (0..BLOCK).map(turn).collect();
    // Padded by a block on both sides, so that every sample lies under as many windows; of their squares, 1.5 in sum.
    let mut sum = vec![0.0; pcm.len() + 2 * BLOCK];
    let at = |position: usize| position.checked_sub(BLOCK).and_then(|at| pcm.get(at)).copied().unwrap_or(0.0);
    let mut envelope = fft::Block::ZERO;
    for from in (0..sum.len() - BLOCK + 1).step_by(HOP) {
        let mut block = fft::Block { re: std::array::from_fn(|n| at(from + n) * window[n]), im: [0.0; BLOCK] };
        fft.transform(&mut block);
        log_envelope(&fft, &block, &mut envelope);
        for bin in 0..=BLOCK / 2 {
            let source = (bin as f32 / factor).min((BLOCK / 2) as f32);
            let (low, share) = (source as usize, source.fract());
            let high = (low + 1).min(BLOCK / 2);
            let wanted = envelope.re[low] * (1.0 - share) + envelope.re[high] * share;
            let gain = (wanted - envelope.re[bin]).clamp(-CHANGE_MAX, CHANGE_MAX).exp();
            let (re, im) = (block.re[bin] * gain, block.im[bin] * gain);
            // Conjugated, the forward transform is the inverse one's conjugate.
            (block.re[bin], block.im[bin]) = (re, -im);
            if bin > 0 && bin < BLOCK / 2 {
                (block.re[BLOCK - bin], block.im[BLOCK - bin]) = (re, im);
            }
        }
        fft.transform(&mut block);
        for (n, value) in block.re.iter().enumerate() {
            sum[from + n] += value * window[n] / (1.5 * BLOCK as f32);
        }
    }
    sum[BLOCK..BLOCK + pcm.len()].to_vec()
}

/// Computes the natural logarithm of the envelope of `spectrum`, in the real parts.
fn log_envelope(fft: &Fft<BLOCK>, spectrum: &fft::Block<BLOCK>, envelope: &mut fft::Block<BLOCK>) {
    let magnitude = |n: usize| spectrum.re[n].hypot(spectrum.im[n]);
    *envelope =
        fft::Block { re: std::array::from_fn(|n| (magnitude(n) + FLOOR).ln() / BLOCK as f32), im: [0.0; BLOCK] };
    fft.transform(envelope);
    // The cepstrum of a real signal is real and even: one more forward transform brings it back.
    for part in [&mut envelope.re, &mut envelope.im] {
        part[ENVELOPE..=BLOCK - ENVELOPE].fill(0.0);
    }
    fft.transform(envelope);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::RATE_HZ;

    /// Returns a vowel: pulses at `pitch_hz` through two resonances.
    fn vowel(pitch_hz: f32, formants_hz: [f32; 2]) -> Vec<f32> {
        let mut pcm: Vec<f32> = vec![0.0; 16_000];
        let period = (RATE_HZ as f32 / pitch_hz) as usize;
        pcm.iter_mut().step_by(period).for_each(|pulse| *pulse = 8000.0);
        for formant_hz in formants_hz {
            let radius = (-std::f32::consts::PI * 120.0 / RATE_HZ as f32).exp();
            let turn = 2.0 * radius * (std::f32::consts::TAU * formant_hz / RATE_HZ as f32).cos();
            let (mut one, mut two) = (0.0, 0.0);
            for value in &mut pcm {
                let next = *value * 0.1 + turn * one - radius * radius * two;
                (two, one, *value) = (one, next, next);
            }
        }
        pcm
    }

    /// Returns the centre of the power in a band, by the multiples of `pitch_hz` in it, in Hz.
    fn centre(pcm: &[f32], pitch_hz: f32, band_hz: std::ops::Range<f32>) -> f32 {
        let power = |hz: f32| {
            let (sin, cos) = pcm.iter().enumerate().fold((0.0, 0.0), |(sin, cos), (n, &value)| {
                let (s, c) = (std::f32::consts::TAU * hz * n as f32 / RATE_HZ as f32).sin_cos();
                (sin + value * s, cos + value * c)
            });
            sin * sin + cos * cos
        };
        let harmonics = (1..100).map(|n| n as f32 * pitch_hz).filter(|hz| band_hz.contains(hz));
        let (sum, weighted) = harmonics.fold((0.0, 0.0), |(sum, weighted), hz| {
            let power = power(hz);
            (sum + power, weighted + power * hz)
        });
        weighted / sum
    }

    #[test]
    fn formants_move_and_the_pitch_stays() {
        for factor in [0.88, 1.1] {
            let before = vowel(100.0, [700.0, 2300.0]);
            let after = move_formants(&before, factor);
            assert_eq!(after.len(), before.len());
            for band in [400.0..1100.0, 1600.0..3200.0] {
                let [from, to] = [&before, &after].map(|pcm| centre(&pcm[2000..14_000], 100.0, band.clone()));
                println!("by {factor}: from {from:.0} to {to:.0} Hz");
                assert!((to / from / factor - 1.0).abs() <= 0.04, "by {factor}: from {from} to {to} Hz");
            }
            let alike =
                |lag: usize| -> f32 { after[2000..12_000].iter().zip(&after[2000 + lag..]).map(|(a, b)| a * b).sum() };
            let period = (100..220).max_by(|&a, &b| alike(a).total_cmp(&alike(b)));
            assert_eq!(period, Some(160), "by {factor}");
        }
    }

    #[test]
    fn a_factor_of_one_changes_nothing_and_silence_stays_silent() {
        let before = vowel(120.0, [500.0, 1500.0]);
        let after = move_formants(&before, 1.0);
        let most = before.iter().zip(&after).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let peak = before.iter().fold(0.0, |peak: f32, value| peak.max(value.abs()));
        println!("off by {most} of {peak}");
        assert!(most < 1e-3 * peak, "{most} of {peak}");
        assert!(move_formants(&[0.0; 1000], 1.1).iter().all(|value| *value == 0.0));
        assert!(move_formants(&[], 1.1).is_empty());
    }
}
