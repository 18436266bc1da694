//! Second-order filter sections, and the two noises that are made by filtering white noise. Not a filter design
//! library: only the Butterworth low-pass and high-pass and the resonators that impairment, noise and loudness need.

use std::f64::consts::{FRAC_1_SQRT_2, TAU};

use crate::frame::RATE_HZ;
use crate::seed::Stream;

/// Quality factors of the two sections of a 4th-order Butterworth filter.
const BUTTERWORTH_4: [f64; 2] = [0.541_196_1, 1.306_563_0];

/// One section at 16 kHz, transposed direct form II. Allocates nothing.
#[derive(Copy, Clone, Debug)]
pub struct Biquad {
    b: [f64; 3],
    a: [f64; 2],
    state: [f64; 2],
}

impl Biquad {
    fn of(b: [f64; 3], a0: f64, a1: f64, a2: f64) -> Biquad {
        Biquad { b: b.map(|b| b / a0), a: [a1 / a0, a2 / a0], state: [0.0; 2] }
    }

    /// Returns a 2nd-order low-pass with its -3 dB point at `cutoff_hz` (for `q` of 0.7071).
    pub fn low_pass(cutoff_hz: f64, q: f64) -> Biquad {
        let (sin, cos) = (TAU * cutoff_hz / f64::from(RATE_HZ)).sin_cos();
        let alpha = sin / (2.0 * q);
        let b = (1.0 - cos) / 2.0;
        Biquad::of([b, 2.0 * b, b], 1.0 + alpha, -2.0 * cos, 1.0 - alpha)
    }

    /// Returns a 2nd-order high-pass with its -3 dB point at `cutoff_hz` (for `q` of 0.7071).
    pub fn high_pass(cutoff_hz: f64, q: f64) -> Biquad {
        let (sin, cos) = (TAU * cutoff_hz / f64::from(RATE_HZ)).sin_cos();
        let alpha = sin / (2.0 * q);
        let b = (1.0 + cos) / 2.0;
        Biquad::of([b, -2.0 * b, b], 1.0 + alpha, -2.0 * cos, 1.0 - alpha)
    }

    /// Band-pass of gain 1 at `centre_hz`, `width_hz` wide between its -3 dB points.
    pub fn band_pass(centre_hz: f64, width_hz: f64) -> Biquad {
        let (sin, cos) = (TAU * centre_hz / f64::from(RATE_HZ)).sin_cos();
        let alpha = sin * width_hz / (2.0 * centre_hz);
        Biquad::of([alpha, 0.0, -alpha], 1.0 + alpha, -2.0 * cos, 1.0 - alpha)
    }

    /// Clears the filter's memory, as at its start.
    pub fn clear(&mut self) {
        self.state = [0.0; 2];
    }

    /// Filters one sample and returns the result.
    #[inline]
    pub fn run(&mut self, x: f64) -> f64 {
        let y = self.b[0] * x + self.state[0];
        self.state[0] = self.b[1] * x - self.a[0] * y + self.state[1];
        self.state[1] = self.b[2] * x - self.a[1] * y;
        y
    }
}

/// Returns a 4th-order Butterworth low-pass: -3 dB at `cutoff_hz`, 24 dB an octave.
pub fn low_pass_4(cutoff_hz: f64) -> [Biquad; 2] {
    BUTTERWORTH_4.map(|q| Biquad::low_pass(cutoff_hz, q))
}

/// Returns a 4th-order Butterworth high-pass: -3 dB at `cutoff_hz`, 24 dB an octave.
pub fn high_pass_4(cutoff_hz: f64) -> [Biquad; 2] {
    BUTTERWORTH_4.map(|q| Biquad::high_pass(cutoff_hz, q))
}

/// Filters `audio` in place through `sections`, one after the other.
pub fn filter(audio: &mut [f32], mut sections: impl AsMut<[Biquad]>) {
    for section in sections.as_mut() {
        for x in audio.iter_mut() {
            *x = section.run(f64::from(*x)) as f32;
        }
    }
}

/// Filters a whole buffer through a 2nd-order Butterworth low-pass.
pub fn low_pass(audio: &mut [f32], cutoff_hz: f64) {
    filter(audio, [Biquad::low_pass(cutoff_hz, FRAC_1_SQRT_2)]);
}

/// Filters a whole buffer through a 2nd-order Butterworth high-pass.
pub fn high_pass(audio: &mut [f32], cutoff_hz: f64) {
    filter(audio, [Biquad::high_pass(cutoff_hz, FRAC_1_SQRT_2)]);
}

/// Turns white noise into pink noise (-3 dB an octave within 0.05 dB from 10 Hz to 8 kHz; P. Kellet's six-pole fit).
#[derive(Clone, Debug, Default)]
pub struct Pink([f64; 7]);

impl Pink {
    /// Returns one pink sample for one white one.
    pub fn run(&mut self, white: f64) -> f64 {
        const POLE: [f64; 6] = [0.99886, 0.99332, 0.96900, 0.86650, 0.55000, -0.7616];
        const GAIN: [f64; 6] = [0.0555179, 0.0750759, 0.1538520, 0.3104856, 0.5329522, -0.0168980];
        let mut sum = self.0[6] + white * 0.5362;
        for ((state, pole), gain) in self.0.iter_mut().zip(POLE).zip(GAIN) {
            *state = pole * *state + white * gain;
            sum += *state;
        }
        self.0[6] = white * 0.115926;
        sum
    }
}

/// Draws a number near enough to normal for noise: the sum of four uniform ones, mean 0, variance 1, two generator
/// words.
#[inline]
pub fn white(stream: &mut Stream) -> f64 {
    const SCALE: f64 = 1.732_050_8 / 65_536.0;
    let (a, b) = (stream.bits(), stream.bits());
    let sum = (a & 0xFFFF) + (a >> 16) + (b & 0xFFFF) + (b >> 16);
    (f64::from(sum) - 131_070.0) * SCALE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    #[track_caller]
    fn check(mut sections: [Biquad; 2], tone_hz: f64, expected_db: f64, tolerance_db: f64) {
        let (mut inside, mut outside) = (0.0, 0.0);
        for n in 0..32_000 {
            let x = (TAU * tone_hz * f64::from(n) / 16_000.0).sin();
            let y = sections.iter_mut().fold(x, |x, section| section.run(x));
            if n >= 16_000 {
                inside += x * x;
                outside += y * y;
            }
        }
        let db = 10.0 * (outside / inside).log10();
        assert!((db - expected_db).abs() <= tolerance_db, "{tone_hz} Hz: {db:.2} dB, expected {expected_db}");
    }

    #[test]
    fn butterworth_edges_and_slopes() {
        check(low_pass_4(1000.0), 100.0, 0.0, 0.01);
        check(low_pass_4(1000.0), 1000.0, -3.01, 0.05);
        check(low_pass_4(1000.0), 2000.0, -25.5, 1.5);
        check(high_pass_4(1000.0), 5000.0, 0.0, 0.05);
        check(high_pass_4(1000.0), 1000.0, -3.01, 0.05);
        check(high_pass_4(1000.0), 500.0, -24.3, 1.0);
    }

    #[test]
    fn white_noise_has_mean_0_and_variance_1() {
        let mut stream = Seed(1).stream("white");
        let draws: Vec<f64> = (0..100_000).map(|_| white(&mut stream)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / draws.len() as f64;
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }
}
