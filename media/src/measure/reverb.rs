//! Reverberation time of a room from the decays of speech alone, without a known source.
//!
//! The level of speech that falls off cannot fall faster than the room lets it. The level's decays are searched, and
//! the slope of each is fitted. The steeper slopes are the room's, as the others are speech that fades by itself.
//! (After Ratnam et al., "Blind estimation of reverberation time", JASA 114, 2003, and Löllmann et al., IWAENC 2010,
//! which take the maximum of a histogram of such estimates.)

use super::Span;
use crate::frame::{PER_MS, Sample};

/// Samples between two values of the level (5 ms).
const STEP: usize = 5 * PER_MS as usize;
/// Number of steps on either side over which the level is a mean. Over fewer the tail of a room fluctuates too much to
/// be followed.
const SIDE: usize = 6;
/// Level below which the channel is silent, in dB of full scale.
const SILENCE_DB: f64 = -75.0;
/// Share of the channel below whose level lies the noise floor: a twentieth.
const FLOOR_SHARE: f64 = 0.05;
/// Limits of a decay: it ends when it has risen this much above its lowest level, or found no lower one for this many
/// steps.
const RISE_DB: f64 = 2.0;
const PATIENCE: usize = 12;
/// Part of a decay that is fitted: from this far below its top, over at most this range, down to this far above the
/// noise.
const HEAD_DB: f64 = 5.0;
const RANGE_DB: f64 = 25.0;
const ABOVE_FLOOR_DB: f64 = 6.0;
/// Least range of a decay that is used.
const LEAST_DB: f64 = 15.0;
const LEAST_STEPS: usize = 6;
/// Least coefficient of determination of the fitted line.
const LEAST_FIT: f64 = 0.9;
/// Number of decays that are needed.
const LEAST_DECAYS: usize = 4;
/// Rank of the decay that is the room's, from the steepest on.
const RANK: f64 = 0.4;
/// Time for which a decay that begins in speech is followed after the speech.
const BEHIND: Sample = 2000 * PER_MS;

/// Returns the reverberation time (RT60) in seconds: the time in which the sound of a room falls by 60 dB. It is exact
/// within a quarter from 0.3 to 1 s. Dry speech gives about 0.1 to 0.2, which is how fast speech fades by itself.
/// `None` with fewer than four usable decays. Then there is too little speech, no pause is long enough for the room, or
/// noise is less than some 30 dB below the speech.
///
/// `pcm` is one channel at 16 kHz, `speech` the spans of the voice, `apart` spans to be left out.
pub fn reverb_s(pcm: &[i16], speech: &[Span], apart: &[Span]) -> Option<f64> {
    let levels = levels(pcm);
    let mut sorted = levels.clone();
    sorted.sort_by(f64::total_cmp);
    let noise_floor = sorted.get((sorted.len() as f64 * FLOOR_SHARE) as usize)?.max(SILENCE_DB);
    let mut times = Vec::new();
    let mut searched = 0;
    for span in speech {
        let step = |at: Sample| (at.max(0) as usize / STEP).min(levels.len());
        let (from, to, last) = (step(span.from).max(searched), step(span.to), step(span.to + BEHIND));
        let mut at = from;
        while at < to {
            let low = lowest(&levels[at..last]) + at;
            let place = Span { from: (at * STEP) as Sample, to: ((low + 1) * STEP) as Sample };
            if apart.iter().all(|apart| apart.overlap(place) == 0) {
                times.extend(decay_s(&levels[at..=low.min(levels.len() - 1)], noise_floor));
            }
            at = low.max(at + 1);
        }
        searched = at;
    }
    if times.len() < LEAST_DECAYS {
        return None;
    }
    times.sort_by(f64::total_cmp);
    Some(times[((times.len() - 1) as f64 * RANK).round() as usize])
}

/// Returns the levels in dB of full scale, each a mean around its step.
fn levels(pcm: &[i16]) -> Vec<f64> {
    let power = |block: &[i16]| block.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / block.len() as f64;
    let powers: Vec<f64> = pcm.chunks_exact(STEP).map(power).collect();
    let around = |at: usize| &powers[at.saturating_sub(SIDE)..(at + SIDE + 1).min(powers.len())];
    let mean = |at: usize| around(at).iter().sum::<f64>() / around(at).len() as f64;
    (0..powers.len()).map(|at| 10.0 * (mean(at) / 32_768f64.powi(2) + 1e-12).log10()).collect()
}

/// Returns the end of the decay that begins with the first level; 0 when none begins there.
fn lowest(levels: &[f64]) -> usize {
    let mut low = 0;
    for (at, level) in levels.iter().enumerate().skip(1) {
        if *level < levels[low] {
            low = at;
        } else if low == 0 || *level >= levels[low] + RISE_DB || at - low > PATIENCE {
            break;
        }
    }
    low
}

/// Returns the time in which this decay would fall by 60 dB.
fn decay_s(levels: &[f64], noise_floor: f64) -> Option<f64> {
    let top = *levels.first()?;
    let from = levels.iter().position(|level| *level <= top - HEAD_DB)?;
    let end = (top - HEAD_DB - RANGE_DB).max(noise_floor + ABOVE_FLOOR_DB);
    let to = levels.iter().position(|level| *level <= end).unwrap_or(levels.len() - 1);
    let fitted = levels.get(from..=to)?;
    if fitted.len() < LEAST_STEPS || fitted[0] - fitted[fitted.len() - 1] < LEAST_DB {
        return None;
    }
    let count = fitted.len() as f64;
    let (mid, mean) = ((count - 1.0) / 2.0, fitted.iter().sum::<f64>() / count);
    let (mut across, mut along, mut whole) = (0.0, 0.0, 0.0);
    for (at, level) in fitted.iter().enumerate() {
        let (x, y) = (at as f64 - mid, level - mean);
        (across, along, whole) = (across + x * y, along + x * x, whole + y * y);
    }
    let slope = across / along;
    let fits = across * across / (along * whole) >= LEAST_FIT;
    let steps_per_s = 1000.0 * PER_MS as f64 / STEP as f64;
    (slope < 0.0 && fits).then(|| -60.0 / (slope * steps_per_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Codec, Decoder};
    use crate::measure::segments;
    use crate::resample::resample_whole;
    use crate::seed::Seed;

    /// Returns speech with pauses of `pause_ms` more where it is quiet for 60 ms or more.
    fn speech(pause_ms: usize) -> Vec<i16> {
        let bytes = include_bytes!("../../../fixtures/audio/speech.ul");
        let mut pcm = vec![0; bytes.len()];
        Decoder::new(Codec::Pcmu).decode(bytes, &mut pcm);
        let pcm = resample_whole(&pcm, 8000, 16_000);
        let quiet: Vec<bool> =
            pcm.chunks(160).map(|block| block.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() < 1.7e6).collect();
        let mut spoken = Vec::new();
        let mut at = 0;
        for run in quiet.chunk_by(|one, next| one == next) {
            let from = at * 160;
            at += run.len();
            spoken.extend_from_slice(&pcm[from..(at * 160).min(pcm.len())]);
            if run[0] && run.len() >= 6 {
                spoken.resize(spoken.len() + pause_ms * PER_MS as usize, 0);
            }
        }
        spoken
    }

    /// Returns `dry` in a room: sparse noise that falls by 60 dB in `rt60_s`, 2000 impulses a second behind the direct
    /// sound.
    fn room(dry: &[i16], rt60_s: f64) -> Vec<i16> {
        let mut draw = Seed(7).stream("room");
        let length = (rt60_s * 16_000.0) as usize;
        let taps: Vec<(usize, f32)> = (0..length / 8)
            .map(|n| {
                let at = n * 8 + draw.index(8);
                let sign = if draw.unit() < 0.5 { -1.0 } else { 1.0 };
                (at, (sign * 10f64.powf(-3.0 * at as f64 / length as f64)) as f32)
            })
            .collect();
        let energy = taps.iter().map(|(_, gain)| gain * gain).sum::<f32>().sqrt();
        let mut wet: Vec<f32> = dry.iter().map(|&x| 0.35 * f32::from(x)).collect();
        for (at, gain) in taps {
            let gain = 0.7 * gain / energy;
            wet[at..].iter_mut().zip(dry).for_each(|(sum, &x)| *sum += gain * f32::from(x));
        }
        wet.iter().map(|x| x.round() as i16).collect()
    }

    fn noise(pcm: &mut [i16], dbfs: f64) {
        let mut draw = Seed(9).stream("noise");
        let peak = 32_768.0 * 10f64.powf(dbfs / 20.0) * 3f64.sqrt();
        pcm.iter_mut().for_each(|x| *x = x.saturating_add((peak * draw.range(-1.0, 1.0)).round() as i16));
    }

    #[test]
    fn rooms_are_told_by_how_speech_decays_in_them() {
        let dry = speech(1200);
        let own = reverb_s(&dry, &segments(&dry), &[]).expect("there are decays");
        println!("dry: {own:.3} s");
        assert!((0.05..0.2).contains(&own), "{own}");
        for rt60_s in [0.3, 0.6, 1.0] {
            for noise_dbfs in [None, Some(-65.0)] {
                let mut wet = room(&dry, rt60_s);
                noise_dbfs.into_iter().for_each(|dbfs| noise(&mut wet, dbfs));
                let found = reverb_s(&wet, &segments(&wet), &[]).expect("there are decays");
                println!("{rt60_s} s, noise {noise_dbfs:?}: {found:.3} s");
                assert!((found / rt60_s - 1.0).abs() < 0.25, "{rt60_s} s with noise {noise_dbfs:?}: {found}");
            }
        }
    }

    #[test]
    fn without_decays_nothing_is_told() {
        // No pause is long enough for a room of 1.5 s.
        let wet = room(&speech(0), 1.5);
        assert_eq!(reverb_s(&wet, &segments(&wet), &[]), None);
        // The noise lies too near.
        let mut noisy = room(&speech(1200), 0.6);
        let spans = segments(&noisy);
        noise(&mut noisy, -30.0);
        assert_eq!(reverb_s(&noisy, &spans, &[]), None);
        // All of it is something else's.
        let dry = speech(1200);
        let all = [Span { from: 0, to: dry.len() as Sample }];
        assert_eq!(reverb_s(&dry, &segments(&dry), &all), None);
        for pcm in [&[][..], &[0; 16_000], &[5000; 16_000]] {
            assert_eq!(reverb_s(pcm, &[Span { from: 0, to: 16_000 }], &[]), None);
        }
    }
}
