//! Levels: RMS, active speech level (ITU-T P.56 method B), gain, and the smooth [`Limiter`].
//!
//! dBov is relative to a full-scale square wave (ITU-T G.100.1): a full-scale sine is -3 dBov. dBFS, used for peaks
//! alone, is relative to the largest sample.

use crate::dot::squares;

/// Active level to which speech is brought.
pub const SPEECH_LEVEL_DBOV: f64 = -26.0;

/// Largest gain or attenuation of [`to_speech_level`].
const MOST_GAIN_DB: f64 = 20.0;

/// Peak level at which [`to_speech_level`] limits.
const SPEECH_PEAK_DBFS: f64 = -3.0;

/// Active speech level of a stretch of audio (ITU-T P.56).
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct ActiveLevel {
    /// Level while speech is active, in dBov.
    pub level_dbov: f64,
    /// Share of the time that is active, 0 to 1.
    pub activity: f64,
}

/// Mean square below which 16-bit audio counts as silence: -50 dBov.
pub(crate) const QUIET: i64 = 10_737;

/// Returns the RMS level in dBov; negative infinity for digital silence and for no samples.
pub fn rms_dbov(pcm: &[i16]) -> f64 {
    10.0 * (energy(pcm) / pcm.len().max(1) as f64).log10()
}

/// Returns the level of samples of this mean square, in dBov; negative infinity for 0.
pub(crate) fn mean_square_dbov(mean_square: f64) -> f64 {
    10.0 * (mean_square / 32_768f64.powi(2)).log10()
}

/// Returns the sum of squares, full scale being 1.
fn energy(pcm: &[i16]) -> f64 {
    squares(pcm) as f64 / 32_768f64.powi(2)
}

/// Thresholds of P.56: powers of two from 2^-15 to 2^-1 of full scale.
const THRESHOLDS: usize = 15;

/// Returns the active speech level by ITU-T P.56 method B: time constant 30 ms, hangover 200 ms, margin 15.9 dB. `None`
/// when nothing is active or the rate is 0. Fit for at least some 100 ms of audio.
pub fn active_level_dbov(pcm: &[i16], rate_hz: u32) -> Option<ActiveLevel> {
    const MARGIN_DB: f64 = 15.9;
    let energy = energy(pcm);
    if energy == 0.0 || rate_hz == 0 {
        return None;
    }
    // Each threshold gives a point: the level if all above it is active, and how far that lies above the threshold.
    let points =
        active_counts(pcm, rate_hz).into_iter().enumerate().filter(|(_, count)| *count > 0).map(|(at, count)| {
            let level_dbov = 10.0 * (energy / count as f64).log10();
            (level_dbov, level_dbov - 20.0 * threshold(at).log10())
        });
    let mut level_dbov = None;
    let mut before: Option<(f64, f64)> = None;
    for (level, above) in points {
        level_dbov = Some(level);
        if above <= MARGIN_DB {
            if let Some((level_before, above_before)) = before {
                let share = (above_before - MARGIN_DB) / (above_before - above);
                level_dbov = Some(level_before + share * (level - level_before));
            }
            break;
        }
        before = Some((level, above));
    }
    let level_dbov = level_dbov?;
    Some(ActiveLevel { level_dbov, activity: 10f64.powf((rms_dbov(pcm) - level_dbov) / 10.0).min(1.0) })
}

fn threshold(at: usize) -> f64 {
    0.5f64.powi((THRESHOLDS - at) as i32)
}

/// Counts the samples at which the envelope is, or was within the hangover, at or above each threshold.
fn active_counts(pcm: &[i16], rate_hz: u32) -> [u32; THRESHOLDS] {
    let keep = (-1.0 / (0.03 * rate_hz as f64)).exp() as f32;
    let hangover = (0.2 * rate_hz as f64).ceil() as i32;
    let thresholds: [f32; THRESHOLDS] = std::array::from_fn(|at| threshold(at) as f32 * 32_768.0);
    let (mut smooth, mut envelope) = (0.0, 0.0);
    let (mut holds, mut counts) = ([0; THRESHOLDS], [0; THRESHOLDS]);
    for &sample in pcm {
        smooth = keep * smooth + (1.0 - keep) * (sample as f32).abs();
        envelope = keep * envelope + (1.0 - keep) * smooth;
        for at in 0..THRESHOLDS {
            holds[at] = if envelope >= thresholds[at] { hangover + 1 } else { (holds[at] - 1).max(0) };
            counts[at] += (holds[at] > 0) as u32;
        }
    }
    counts
}

/// Amplifies by `db`, rounding to the nearest sample and clipping at full scale.
pub fn gain(pcm: &mut [i16], db: f64) {
    let factor = factor(db) as f32;
    for sample in pcm {
        *sample = (*sample as f32 * factor).round() as i16;
    }
}

/// Brings clean speech at `rate_hz` to [`SPEECH_LEVEL_DBOV`], with at most 20 dB of gain either way and its peaks
/// limited smoothly to -3 dBFS. Silence stays as it is. Returns the gain in dB.
pub fn to_speech_level(pcm: &mut [i16], rate_hz: u32) -> f64 {
    let Some(active) = active_level_dbov(pcm, rate_hz) else { return 0.0 };
    let gain_db = (SPEECH_LEVEL_DBOV - active.level_dbov).clamp(-MOST_GAIN_DB, MOST_GAIN_DB);
    let factor = factor(gain_db) as f32;
    let louder: Vec<i32> = pcm.iter().map(|&sample| (sample as f32 * factor).round() as i32).collect();
    Limiter::new(SPEECH_PEAK_DBFS).process(&louder, pcm);
    gain_db
}

fn factor(db: f64) -> f64 {
    10f64.powf(db / 20.0)
}

/// Keeps sums of audio below a peak by turning them down smoothly. What is below the peak passes bit-exactly, without
/// delay, once an earlier peak is 100 ms past.
///
/// The gain falls within the 16 samples before a peak and recovers over at most 100 ms (at 16 kHz). A peak in the first
/// 16 samples of a block could not be foreseen: what is above the limit while the gain falls is clipped.
#[derive(Clone, Debug)]
pub struct Limiter {
    limit: f32,
    gain: f32,
}

impl Limiter {
    /// Number of samples over which the gain moves.
    const STEP: usize = 16;

    /// Recovery of the gain in one step.
    const RECOVERY: f32 = 0.01;

    /// Returns a limiter at `peak_dbfs` (0 or less).
    pub fn new(peak_dbfs: f64) -> Limiter {
        Limiter { limit: (32_767.0 * factor(peak_dbfs.min(0.0))).floor() as f32, gain: 1.0 }
    }

    /// Limits a block of sums into `out` (as far as the shorter of the two reaches).
    pub fn process(&mut self, sums: &[i32], out: &mut [i16]) {
        if self.gain == 1.0 && self.gain_limit(sums) == 1.0 {
            out.iter_mut().zip(sums).for_each(|(out, &sum)| *out = sum as i16);
            return;
        }
        let mut blocks = sums.chunks(Limiter::STEP).peekable();
        let mut allowed = blocks.peek().map_or(1.0, |block| self.gain_limit(block));
        for out in out.chunks_mut(Limiter::STEP) {
            let Some(block) = blocks.next() else { return };
            let ahead = blocks.peek().map_or(1.0, |block| self.gain_limit(block));
            let target = (self.gain + Limiter::RECOVERY).min(allowed).min(ahead);
            self.ramp(target, block, out);
            allowed = ahead;
        }
    }

    /// Returns the gain at which a block's peak meets the limit, at most 1.
    fn gain_limit(&self, block: &[i32]) -> f32 {
        // Two ends vectorise where the largest magnitude does not.
        let (low, high) = block.iter().fold((0, 0), |(low, high): (i32, i32), &sum| (low.min(sum), high.max(sum)));
        let peak = low.unsigned_abs().max(high.unsigned_abs());
        if peak as f32 <= self.limit { 1.0 } else { self.limit / peak as f32 }
    }

    fn ramp(&mut self, target: f32, block: &[i32], out: &mut [i16]) {
        if self.gain == 1.0 && target == 1.0 {
            for (out, &sum) in out.iter_mut().zip(block) {
                *out = sum as i16;
            }
            return;
        }
        let slope = (target - self.gain) / block.len() as f32;
        for (at, (out, &sum)) in out.iter_mut().zip(block).enumerate() {
            let turned = sum as f32 * (self.gain + slope * (at + 1) as f32);
            *out = turned.clamp(-self.limit, self.limit).round() as i16;
        }
        self.gain = target;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `seconds` of a 1 kHz sine at `level_dbov`, 16 kHz.
    fn sine(level_dbov: f64, seconds: f64) -> Vec<i16> {
        let amplitude = 32_768.0 * 2f64.sqrt() * factor(level_dbov);
        (0..(seconds * 16_000.0) as usize)
            .map(|at| (amplitude * (at as f64 * std::f64::consts::TAU / 16.0).sin()).round() as i16)
            .collect()
    }

    fn near(a: f64, b: f64, tolerance: f64) -> bool {
        (a - b).abs() <= tolerance
    }

    #[test]
    fn rms_is_relative_to_a_full_scale_square_wave() {
        assert!(near(rms_dbov(&[i16::MIN; 100]), 0.0, 1e-9));
        assert!(near(rms_dbov(&sine(-3.02, 1.0)), -3.02, 0.01));
        assert_eq!(rms_dbov(&[0; 100]), f64::NEG_INFINITY);
        assert_eq!(rms_dbov(&[]), f64::NEG_INFINITY);
    }

    #[test]
    fn active_level_counts_the_active_time_and_the_hangover() {
        // (level, seconds on, seconds off, repeats): the envelope of P.56 stays above a threshold at -15.9 dB for the
        // hangover of 200 ms and for the 0.1 s in which it falls that far.
        for (level, on, off, repeats) in
            [(-20.0, 4.0, 0.0, 1), (-20.0, 1.0, 1.0, 5), (-40.0, 0.5, 1.5, 5), (-9.0, 2.0, 2.0, 3)]
        {
            let mut pcm = Vec::new();
            for _ in 0..repeats {
                pcm.extend(sine(level, on));
                pcm.extend(vec![0; (off * 16_000.0) as usize]);
            }
            let active = active_level_dbov(&pcm, 16_000).unwrap();
            let tail = if off > 0.0 { 0.3 } else { 0.0 };
            let expected = level + 10.0 * (on / (on + tail)).log10();
            assert!(near(active.level_dbov, expected, 0.15), "{level} {on} {off}: {active:?}, {expected}");
            assert!(near(active.activity, (on + tail) / (on + off), 0.03), "{level} {on} {off}: {active:?}");
        }
    }

    #[test]
    fn noise_far_below_speech_does_not_lower_its_level() {
        let mut speech = Vec::new();
        for _ in 0..4 {
            speech.extend(sine(-26.0, 1.5));
            speech.extend(vec![0; 24_000]);
        }
        let clean = active_level_dbov(&speech, 16_000).unwrap();
        for (at, sample) in speech.iter_mut().enumerate() {
            *sample += if at % 2 == 0 { 33 } else { -33 };
        }
        let noisy = active_level_dbov(&speech, 16_000).unwrap();
        assert!(near(clean.level_dbov, noisy.level_dbov, 0.05), "{clean:?} {noisy:?}");
    }

    #[test]
    fn nothing_active_has_no_level() {
        assert_eq!(active_level_dbov(&[0; 16_000], 16_000), None);
        assert_eq!(active_level_dbov(&[], 16_000), None);
        assert_eq!(active_level_dbov(&[9000; 100], 0), None);
    }

    #[test]
    fn speech_is_brought_to_its_level_within_bounds() {
        for (from, expected) in [(-10.0, -26.0), (-26.0, -26.0), (-40.0, -26.0), (-60.0, -40.0), (-4.0, -24.0)] {
            let mut pcm = sine(from, 2.0);
            to_speech_level(&mut pcm, 16_000);
            let level = active_level_dbov(&pcm, 16_000).unwrap().level_dbov;
            assert!(near(level, expected, 0.1), "{from}: {level}");
        }
        let mut silence = [0; 1600];
        assert_eq!(to_speech_level(&mut silence, 16_000), 0.0);
        assert_eq!(silence, [0; 1600]);
    }

    #[test]
    fn peaks_of_speech_are_limited_without_clipping() {
        // Quiet speech with a few loud cycles: 7 dB of gain would take their peak over full scale.
        let mut pcm = sine(-36.0, 3.0);
        pcm[20_000..20_064].copy_from_slice(&sine(-8.0, 0.004));
        let gain_db = to_speech_level(&mut pcm, 16_000);
        assert!(gain_db > 7.0, "{gain_db}");
        let peak = pcm.iter().map(|sample| sample.unsigned_abs()).max();
        assert!(peak.is_some_and(|peak| (22_500..=23_197).contains(&peak)), "{peak:?}");
        // Clipped samples would stand at the limit in a row.
        assert!(!pcm.windows(3).any(|three| three.iter().all(|sample| sample.unsigned_abs() > 23_100)));
        let elsewhere = rms_dbov(&pcm[30_000..]);
        assert!(near(elsewhere, -36.0 + gain_db, 0.05), "{elsewhere}");
    }

    #[test]
    fn gain_is_in_decibels_and_clips_at_full_scale() {
        let mut pcm = [100, -1000, 20_000, -20_000];
        gain(&mut pcm, 20.0);
        assert_eq!(pcm, [1000, -10_000, i16::MAX, i16::MIN]);
    }

    #[test]
    fn the_limiter_passes_what_is_below_exactly_and_holds_what_is_above() {
        let mut limiter = Limiter::new(-1.0);
        let mut out = [0; 320];
        let below: Vec<i32> = (0..320).map(|at| (at - 160) * 180).collect();
        limiter.process(&below, &mut out);
        assert!(out.iter().zip(&below).all(|(out, sum)| *out as i32 == *sum));
        let above: Vec<i32> = sine(-6.0, 0.02).iter().map(|&sample| sample as i32 * 3).collect();
        for _ in 0..5 {
            limiter.process(&above, &mut out);
            assert!(out.iter().all(|sample| sample.unsigned_abs() <= 29_204));
        }
        // Settled, the wave keeps its shape: a full-scale sine is 3 dB below its peak, a clipped one less.
        assert!(near(rms_dbov(&out), -1.0 - 3.01, 0.2), "{}", rms_dbov(&out));
        for _ in 0..6 {
            limiter.process(&below, &mut out);
        }
        assert!(out.iter().zip(&below).all(|(out, sum)| *out as i32 == *sum));
        limiter.process(&[i32::MAX, i32::MIN], &mut out);
        assert!(out[0] > 29_100 && out[1] < -29_100, "{:?}", &out[..2]);
    }
}
