//! Stretching of a stream without a break in its sound: for two crystals that drift apart while nobody pauses.
//!
//! Samples are interpolated between those received (windowed sinc). The place between them moves in steps of 1/64
//! sample, at most [`MOST`] in 10 or 20 ms, which is 293 ppm; within that time the interpolation fades from one place
//! to the next.
//!
//! Sound is stretched only after 10 s. Before, the mapping still follows the least delayed packet; stretching then cost
//! wideband speech half a point of P.862.2 behind overtaking jitter.

use std::sync::LazyLock;

use crate::resample::{kaiser, sinc};

/// Number of samples of one block; it begins and ends at a step.
const BLOCK: usize = 160;

/// Number of steps in a sample.
const STEPS: i32 = 64;

/// Largest number of steps by which a block may be longer or shorter.
pub const MOST: i32 = 3;

/// Number of taps of the interpolation: half of them before the place, half behind.
const TAPS: usize = 32;
const PAST: usize = TAPS / 2;

/// Number of samples that one block needs behind it.
const BEHIND: usize = TAPS / 2 + 1;

/// Number of samples that a frame of 20 ms at either rate needs behind it: those of its last block, and those that the
/// first may use up.
pub const AHEAD: usize = BEHIND + 1;

/// Kaiser window: images 60 dB down from 1.15 of the band's edge on.
const BETA: f64 = 5.65;

/// Weights by step. The sums are 1.
static WEIGHTS: LazyLock<[[f32; TAPS]; STEPS as usize]> = LazyLock::new(|| {
    std::array::from_fn(|step| {
        let place = step as f64 / f64::from(STEPS);
        let weights: [f64; TAPS] = std::array::from_fn(|tap| {
            let x = tap as f64 - (PAST as f64 - 1.0) - place;
            sinc(x) * kaiser(x / (PAST as f64 + 1.0), BETA)
        });
        let total: f64 = weights.iter().sum();
        weights.map(|weight| (weight / total) as f32)
    })
});

/// Place between two samples of one stream. Allocates in `new` only.
#[derive(Clone, Debug)]
pub struct Slew {
    /// Steps from the first sample that was not used up to the place, 0 to 63.
    place: i32,
    past: [i16; PAST],
}

impl Default for Slew {
    fn default() -> Self {
        Slew::new()
    }
}

impl Slew {
    /// Returns the place at a sample, with silence before it.
    pub fn new() -> Slew {
        LazyLock::force(&WEIGHTS);
        Slew { place: 0, past: [0; PAST] }
    }

    /// True when the place lies between two samples.
    pub fn is_between(&self) -> bool {
        self.place != 0
    }

    /// True when `frame` samples (whole blocks) with this many steps a block use up a sample more.
    pub fn uses_more(&self, frame: usize, steps: i32) -> bool {
        self.place + steps.clamp(-MOST, MOST) * (frame / BLOCK) as i32 >= STEPS
    }

    /// Takes note that `pcm` (at least 16 samples) was passed on unchanged. The place is a sample from here on.
    pub fn pass(&mut self, pcm: &[i16]) {
        self.place = 0;
        if let Some(past) = pcm.last_chunk() {
            self.past = *past;
        }
    }

    /// Fills `out` (one or two blocks of 160) from `line`, which is longer by at least [`AHEAD`]. Each block uses
    /// `steps` steps more, at most [`MOST`] either way. Returns the number of samples of `line` that are used up.
    pub fn stretch(&mut self, line: &[i16], out: &mut [i16], steps: i32) -> usize {
        let steps = steps.clamp(-MOST, MOST);
        let mut used = 0;
        for out in out.chunks_exact_mut(BLOCK) {
            used += self.block(&line[used..], out, steps);
        }
        used
    }

    fn block(&mut self, line: &[i16], out: &mut [i16], steps: i32) -> usize {
        let mut around = [0.0; PAST + BLOCK + BEHIND];
        for (slot, &sample) in around.iter_mut().zip(self.past.iter().chain(line)) {
            *slot = f32::from(sample);
        }
        let end = self.place + steps;
        let (first, last) = (interpolate(&around, self.place), interpolate(&around, end));
        for (n, (out, (first, last))) in out.iter_mut().zip(first.iter().zip(last)).enumerate() {
            let share = n as f32 / BLOCK as f32;
            *out = (first + (last - first) * share).round() as i16;
        }
        let used = (BLOCK as i32 + end.div_euclid(STEPS)) as usize;
        self.place = end.rem_euclid(STEPS);
        for (slot, sample) in self.past.iter_mut().rev().zip(line[..used].iter().rev()) {
            *slot = *sample;
        }
        used
    }
}

/// Returns a block from `place` on, counted in steps from the first sample behind the past.
fn interpolate(around: &[f32; PAST + BLOCK + BEHIND], place: i32) -> [f32; BLOCK] {
    let weights = &WEIGHTS[place.rem_euclid(STEPS) as usize];
    let from = (1 + place.div_euclid(STEPS)) as usize;
    let mut out = [0.0; BLOCK];
    for (tap, weight) in weights.iter().enumerate() {
        for (out, sample) in out.iter_mut().zip(&around[from + tap..]) {
            *out += weight * sample;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stretches a tone of 32,000 samples by `steps` a block; returns the result and the number of samples used.
    fn pull(hz: f64, steps: i32) -> (Vec<i16>, usize) {
        let step = std::f64::consts::TAU * hz / 8000.0;
        let tone: Vec<i16> = (0..33_000).map(|i| (12_000.0 * (f64::from(i) * step).sin()).round() as i16).collect();
        let (mut slew, mut out, mut used) = (Slew::new(), vec![0; 32_000], 0);
        for out in out.chunks_mut(BLOCK) {
            used += slew.stretch(&tone[used..], out, steps);
        }
        (out, used)
    }

    #[test]
    fn a_tone_stays_one_tone_of_the_pulled_frequency() {
        for (hz, least_db) in [(200.0, 57.0), (1000.0, 55.0), (2600.0, 45.0), (3300.0, 40.0)] {
            for steps in [-MOST, -1, 0, 1, MOST] {
                let (out, used) = pull(hz, steps);
                assert_eq!(used as i32, 32_000 + (200 * steps).div_euclid(STEPS), "{hz} {steps}");
                let ratio = 1.0 + f64::from(steps) / f64::from(STEPS) / BLOCK as f64;
                let step = std::f64::consts::TAU * hz * ratio / 8000.0;
                let error: f64 = out[100..]
                    .iter()
                    .zip(100..)
                    .map(|(&sample, i)| f64::from(sample) - 12_000.0 * (f64::from(i) * step).sin())
                    .map(|error| error * error)
                    .sum();
                let snr_db = 10.0 * (out[100..].len() as f64 * 72e6 / error).log10();
                assert!(snr_db > least_db, "{hz} {steps}: {snr_db:.1} dB");
            }
        }
    }

    #[test]
    fn full_scale_does_not_wrap() {
        let line: Vec<i16> = (0..400).map(|i| if i / 7 % 2 == 0 { i16::MAX } else { i16::MIN }).collect();
        let mut out = [0; 320];
        let mut slew = Slew::new();
        slew.stretch(&line, &mut out, MOST);
        assert!(out.iter().zip(&line).skip(20).all(|(&a, &b)| (a > 0) == (b > 0) || a.unsigned_abs() < 30_000));
    }
}
