//! Fixed ratios for streams, such as 16 to 48 kHz or 24 to 8 kHz: a Kaiser-windowed low pass, one set of taps for each
//! phase.

use crate::dot::dot;

use super::{greatest_divisor, kaiser, sinc, to_pcm};

/// The transition band, around the lower of both Nyquist frequencies and in units of it: flat to 3.4 kHz where one side
/// is 8 kHz.
const TRANSITION: (f64, f64) = (0.85, 1.15);

/// Kaiser window for 86 dB, and the length that it needs: (A - 7.95) / 14.36 over the transition's share of the rate.
const BETA: f64 = 8.5;
const LENGTH: f64 = (86.0 - 7.95) / 14.36;

/// Samples that one pass takes; a longer block is taken in several.
const BLOCK: usize = 960;

/// Conversion from one rate to another, for one stream. Blocks may have any length; a block of whole milliseconds at
/// rates of whole kilohertz gives exactly as many milliseconds. Allocates in `new` only.
#[derive(Clone, Debug)]
pub struct Resampler {
    /// Rates without their common divisor.
    from: usize,
    to: usize,
    /// Taps of a phase, oldest sample's first; the phases one behind the other.
    taps: Box<[f32]>,
    length: usize,
    /// Last samples, and the block behind them.
    line: Box<[f32]>,
    /// Position of the next output sample: input samples from the next block's first on, and the phase.
    at: usize,
    phase: usize,
    delay_s: f64,
}

impl Resampler {
    /// Returns a resampler between two rates of 1 to 192 kHz; `None` for others, and where the ratio has more than 1000
    /// phases.
    pub fn new(from_hz: u32, to_hz: u32) -> Option<Resampler> {
        let divisor = greatest_divisor(from_hz, to_hz).max(1);
        let (from, to) = ((from_hz / divisor) as usize, (to_hz / divisor) as usize);
        if ![from_hz, to_hz].iter().all(|hz| (1000..=192_000).contains(hz)) || to > 1000 {
            return None;
        }
        // The low pass runs at the common multiple of both rates.
        let rate = f64::from(from_hz) * to as f64;
        let nyquist = f64::from(from_hz.min(to_hz)) / 2.0;
        let width = (TRANSITION.1 - TRANSITION.0) * nyquist / rate;
        let length = (LENGTH / width / to as f64).ceil() as usize + 1;
        let middle = (length * to - 1) as f64 / 2.0;
        let low_pass = |tap: usize| {
            let x = tap as f64 - middle;
            sinc(2.0 * nyquist / rate * x) * kaiser(x / (middle + 1.0), BETA)
        };
        let mut taps = Vec::with_capacity(length * to);
        for phase in 0..to {
            let weights: Vec<f64> = (0..length).rev().map(|back| low_pass(phase + back * to)).collect();
            let total: f64 = weights.iter().sum();
            taps.extend(weights.iter().map(|weight| (weight / total) as f32));
        }
        let line = vec![0.0; length - 1 + BLOCK].into();
        Some(Resampler { from, to, taps: taps.into(), length, line, at: 0, phase: 0, delay_s: middle / rate })
    }

    /// Returns the delay of the output, in seconds: 2.4 ms where the lower rate is 8 kHz, half of it at 16 kHz.
    pub fn delay_s(&self) -> f64 {
        self.delay_s
    }

    /// Forgets all samples, as at its start.
    pub fn reset(&mut self) {
        self.line.fill(0.0);
        (self.at, self.phase) = (0, 0);
    }

    /// Takes all of `pcm` and returns the number of samples written; samples that do not fit `out` are left out.
    pub fn process(&mut self, pcm: &[i16], out: &mut [i16]) -> usize {
        let past = self.length - 1;
        let mut out = out.iter_mut();
        let space = out.len();
        for pcm in pcm.chunks(BLOCK) {
            for (slot, &sample) in self.line[past..].iter_mut().zip(pcm) {
                *slot = f32::from(sample);
            }
            while self.at < pcm.len() {
                let taps = &self.taps[self.phase * self.length..][..self.length];
                let sum = dot::<8>(taps, &self.line[self.at..][..self.length]);
                if let Some(out) = out.next() {
                    *out = to_pcm(sum);
                }
                self.phase += self.from;
                self.at += self.phase / self.to;
                self.phase %= self.to;
            }
            self.at -= pcm.len();
            self.line.copy_within(pcm.len()..pcm.len() + past, 0);
        }
        space - out.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{level_db, residue_db, tone};
    use super::*;

    const RATES: [u32; 4] = [8000, 16_000, 24_000, 48_000];

    fn pairs() -> impl Iterator<Item = (u32, u32)> {
        RATES.into_iter().flat_map(|from| RATES.into_iter().map(move |to| (from, to))).filter(|(from, to)| from != to)
    }

    /// Resamples a second, 20 ms at a time.
    fn resample_by_blocks(pcm: &[i16], from_hz: u32, to_hz: u32) -> Vec<i16> {
        let mut resampler = Resampler::new(from_hz, to_hz).expect("the rates are valid");
        let mut made = Vec::new();
        for frame in pcm.chunks(from_hz as usize / 50) {
            let mut out = vec![0; to_hz as usize / 50 + 9];
            let count = resampler.process(frame, &mut out);
            assert_eq!(count, to_hz as usize / 50, "20 ms from {from_hz} to {to_hz}");
            made.extend(&out[..count]);
        }
        made
    }

    #[test]
    fn tones_pass_and_images_and_aliases_do_not() {
        for (from_hz, to_hz) in pairs() {
            let nyquist = f64::from(from_hz.min(to_hz)) / 2.0;
            let (mut ripple, mut beside, mut alias) = (0.0f64, -200.0f64, -200.0f64);
            for share in [0.01, 0.1, 0.25, 0.5, 0.75, 0.85] {
                let hz = (share * nyquist / 20.0).round() * 20.0;
                let made = resample_by_blocks(&tone(hz, from_hz), from_hz, to_hz);
                ripple = ripple.max(level_db(&made).abs());
                beside = beside.max(residue_db(&made, hz, to_hz));
            }
            for share in [1.15, 1.3, 1.6, 1.95] {
                let hz = share * nyquist;
                if from_hz > to_hz && hz < f64::from(from_hz) / 2.0 {
                    alias = alias.max(level_db(&resample_by_blocks(&tone(hz, from_hz), from_hz, to_hz)));
                }
            }
            let delay_ms = Resampler::new(from_hz, to_hz).unwrap().delay_s() * 1e3;
            println!(
                "{from_hz} to {to_hz}: ripple {ripple:.3} dB, beside {beside:.1}, alias {alias:.1} dB, {delay_ms:.2} ms"
            );
            assert!(ripple < 0.1 && beside < -75.0 && alias < -75.0, "{from_hz} to {to_hz}: {ripple} {beside} {alias}");
            assert!(delay_ms <= 3.0, "{from_hz} to {to_hz}: {delay_ms} ms");
        }
    }

    #[test]
    fn the_delay_is_as_told() {
        for (from_hz, to_hz) in pairs() {
            let made = resample_by_blocks(&tone(200.0, from_hz), from_hz, to_hz);
            let delay_s = Resampler::new(from_hz, to_hz).unwrap().delay_s();
            for (at, &sample) in made.iter().enumerate().take(to_hz as usize / 2).skip(to_hz as usize / 10) {
                let angle = std::f64::consts::TAU * 200.0 * (at as f64 / f64::from(to_hz) - delay_s);
                let expected = 16_000.0 * angle.sin();
                assert!((f64::from(sample) - expected).abs() < 20.0, "{from_hz} to {to_hz}, {at}: {expected}");
            }
        }
    }

    #[test]
    fn block_lengths_do_not_matter_and_odd_input_is_safe() {
        let wave = tone(440.0, 16_000);
        for to_hz in RATES {
            let mut whole = vec![0; 48_000];
            let mut resampler = Resampler::new(16_000, to_hz).unwrap();
            let count = resampler.process(&wave, &mut whole);
            assert_eq!(count, to_hz as usize);
            for block in [1, 7, 321, 5000] {
                let mut resampler = Resampler::new(16_000, to_hz).unwrap();
                let (mut pieces, mut at) = (vec![0; 48_000], 0);
                for pcm in wave.chunks(block) {
                    at += resampler.process(pcm, &mut pieces[at..]);
                }
                assert!(at == count && pieces == whole, "{to_hz} {block}");
            }
        }
        assert_eq!(Resampler::new(8000, 48_000).unwrap().process(&[1; 160], &mut [0; 7]), 7);
        for (from_hz, to_hz) in [(0, 8000), (8000, 0), (8000, 200_000), (8001, 48_000)] {
            assert!(Resampler::new(from_hz, to_hz).is_none(), "{from_hz} {to_hz}");
        }
    }
}
