//! Noise that has come into a quiet channel while the detector takes it for speech: its level stays steady for longer
//! than that of speech, and it does not repeat itself. A drawn-out vowel is as steady, but periodic (0.93 and more,
//! noise and babble 0.71 at most).
//!
//! Noise of most kinds was speech for 3 s without this, now for 1 s. Steady means a standard deviation of frames below
//! 2.7 dB in 1 s. At 4.2 dB speech in a room of 1 s reverberation would count as noise.

use super::noise_floor::NoiseFloor;
use crate::dot::dot;
use crate::frame::{FRAME, Frame};

/// Number of frames over which the level is steady (1 s).
const STEADY: usize = 50;

/// Number of frames without a quiet block after which the signal is examined (600 ms).
const LOOK: usize = 30;

/// Standard deviation of the levels of frames below which they are steady: of noise and babble 0.5 to 4.1 over 1 s, of
/// speech more, but for drawn-out vowels, dB.
const SPREAD_DB: f32 = 2.7;

/// Correlation with itself, a period later, below which a frame is aperiodic.
const PERIODIC: f32 = 0.8;

/// Number of frames that are remembered (400 ms), and of those that have to be aperiodic.
const FRAMES: u32 = 20;
const APERIODIC: u32 = 15;

/// Number of samples that become one: the signal is examined at 4 kHz.
const COARSE: usize = 4;
const COARSE_FRAME: usize = FRAME / COARSE;

/// Periods of a voice (10 to 50 samples at 4 kHz are 400 to 80 Hz).
const PERIODS: std::ops::Range<usize> = 10..50;

/// Last frames, as far as they may be steady noise. Allocates nothing.
pub(super) struct Steady {
    /// The last two frames at 4 kHz.
    coarse: [f32; 2 * COARSE_FRAME],
    /// Frames that were aperiodic, the newest in bit 0.
    aperiodic: u32,
}

impl Steady {
    /// Returns a state without frames.
    pub(super) fn new() -> Steady {
        Steady { coarse: [0.0; 2 * COARSE_FRAME], aperiodic: 0 }
    }

    /// Takes a frame whose levels `noise_floor` has. True when steady noise was there for [`STEADY`] frames.
    pub(super) fn push(&mut self, pcm: &Frame, noise_floor: &NoiseFloor) -> bool {
        self.coarse.copy_within(COARSE_FRAME.., 0);
        let (groups, _) = pcm.as_chunks::<COARSE>();
        for (coarse, group) in self.coarse[COARSE_FRAME..].iter_mut().zip(groups) {
            *coarse = group.iter().map(|&x| f32::from(x)).sum();
        }
        let steady = |frames| noise_floor.unquiet() >= 2 * frames && noise_floor.spread_db(frames) < SPREAD_DB;
        let aperiodic = steady(LOOK) && self.periodicity() < PERIODIC;
        self.aperiodic = (self.aperiodic << 1 | u32::from(aperiodic)) & ((1 << FRAMES) - 1);
        self.aperiodic.count_ones() >= APERIODIC && steady(STEADY)
    }

    /// Returns the highest correlation of the last frames with themselves at any of [`PERIODS`], -1 to 1; 0 in silence.
    fn periodicity(&self) -> f32 {
        let all = &self.coarse;
        let mut energy = [0.0; 2 * COARSE_FRAME + 1];
        for (n, x) in all.iter().enumerate() {
            energy[n + 1] = energy[n] + x * x;
        }
        let correlation = |lag: usize| {
            let kept = all.len() - lag;
            let energies = energy[kept] * (energy[all.len()] - energy[lag]);
            if energies > 0.0 { dot::<8>(&all[..kept], &all[lag..]) / energies.sqrt() } else { 0.0 }
        };
        PERIODS.map(correlation).fold(0.0, f32::max)
    }
}
