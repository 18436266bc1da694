//! The mixer before impairment and encoding: sums the sources of one side (utterance, background noise, tones) into
//! frames.
//!
//! Sums are kept in 32 bits and limited once, at the end, so that the order of the sources does not matter and no
//! source clips another. It allocates nothing.
//!
//! Words over background noise:
//!
//! ```
//! use ringer_media::frame::{FRAME, SILENCE};
//! use ringer_media::mixer::{Mixer, NOTHING, add};
//!
//! let mut sum = NOTHING;
//! add(&mut sum, 0, &[20; FRAME]);
//! add(&mut sum, 160, &[5000; FRAME]);
//! let mut frame = SILENCE;
//! Mixer::new().finish(&sum, &mut frame);
//! assert_eq!(frame[..160], [20; 160]);
//! assert_eq!(frame[160..], [5020; 160]);
//!
//! add(&mut sum, 160, &[30_000; 160]);
//! Mixer::new().finish(&sum, &mut frame);
//! assert!(frame.iter().all(|sample| *sample < 32_100), "limited below full scale");
//! ```

use crate::frame::{FRAME, Frame};
use crate::level::Limiter;

/// Level at which the sum is limited: just below the largest value of G.711 (32124), so that digits at their levels
/// lose 0.3 dB at most.
const PEAK_DBFS: f64 = -0.2;

/// Sum of the sources of one frame, in 32 bits.
pub type Sum = [i32; FRAME];

/// Sum of no source.
pub const NOTHING: Sum = [0; FRAME];

/// Adds a source to a frame, its first sample at the frame's sample `offset`. Samples beyond the frame are left out.
pub fn add(sum: &mut Sum, offset: usize, pcm: &[i16]) {
    for (sum, &sample) in sum.iter_mut().skip(offset).zip(pcm) {
        *sum += i32::from(sample);
    }
}

/// Mixer that makes frames of sums, one tick after the other.
#[derive(Clone, Debug)]
pub struct Mixer {
    limiter: Limiter,
}

impl Default for Mixer {
    fn default() -> Self {
        Mixer::new()
    }
}

impl Mixer {
    /// Returns a mixer that does not limit yet.
    pub fn new() -> Mixer {
        Mixer { limiter: Limiter::new(PEAK_DBFS) }
    }

    /// Writes the frame of a sum, limited smoothly at -0.2 dBFS; it equals the sum while that stays below.
    pub fn finish(&mut self, sum: &Sum, frame: &mut Frame) {
        self.limiter.process(sum, frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtmf::{Pace, Tones};
    use crate::frame::SILENCE;
    use crate::level::rms_dbov;

    fn ramp(step: i16) -> Frame {
        std::array::from_fn(|at| (at as i16 - 160) * step)
    }

    #[test]
    fn sums_below_the_limit_are_exact() {
        let (mut mixer, mut sum, mut frame) = (Mixer::new(), NOTHING, SILENCE);
        add(&mut sum, 0, &ramp(60));
        add(&mut sum, 0, &ramp(-20));
        add(&mut sum, 300, &[7; 50]);
        add(&mut sum, 400, &[7; 50]);
        sum[0] += 5;
        mixer.finish(&sum, &mut frame);
        let mut expected = ramp(40);
        expected[300..].iter_mut().for_each(|sample| *sample += 7);
        expected[0] += 5;
        assert_eq!(frame, expected);
        mixer.finish(&NOTHING, &mut frame);
        assert_eq!(frame, SILENCE);
    }

    #[test]
    fn loud_sums_stay_below_the_limit_and_keep_their_shape() {
        let step = std::f64::consts::TAU / 32.0;
        let wave: Frame = std::array::from_fn(|at| (30_000.0 * (at as f64 * step).sin()) as i16);
        let (mut mixer, mut frame) = (Mixer::new(), SILENCE);
        for _ in 0..10 {
            let mut sum = NOTHING;
            for _ in 0..3 {
                add(&mut sum, 0, &wave);
            }
            mixer.finish(&sum, &mut frame);
            assert!(frame.iter().all(|sample| sample.unsigned_abs() <= 32_022));
        }
        let crest_db = 20.0 * (32_022f64 / 32_768.0).log10() - rms_dbov(&frame);
        assert!((crest_db - 3.01).abs() < 0.2, "{crest_db}");
    }

    #[test]
    fn digits_are_mixed_at_their_level() {
        let mut tones = Tones::new("1", 0, Pace { tone_ms: 1000, ..Pace::default() });
        let (mut mixer, mut frame) = (Mixer::new(), SILENCE);
        for n in 0..40 {
            let mut sum = NOTHING;
            tones.mix((n * FRAME) as i64, &mut sum);
            mixer.finish(&sum, &mut frame);
        }
        // -10 and -8 dBov together.
        assert!((rms_dbov(&frame) + 5.88).abs() < 0.4, "{}", rms_dbov(&frame));
    }
}
