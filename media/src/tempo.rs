//! Faster speech: shorter at the same pitch, by waveform similarity overlap-add (WSOLA, W. Verhelst and M. Roelands,
//! ICASSP 1993). Stretches are left out where the audio after them continues the audio before.

/// Samples over which two stretches are faded into each other (10 ms), and of a stretch (20 ms).
const FADE: usize = 160;
const STEP: usize = 2 * FADE;

/// Largest distance from its place at which a stretch is searched for (10 ms): a period of the lowest voices.
const REACH: usize = 160;

/// Places that are compared first, and then about the best of them; samples that are compared.
const COARSE: usize = 8;
const FINE: usize = 2;
const SAMPLES: usize = 4;

/// Returns `pcm` (16 kHz) shortened to `length` samples, down to half of it; audio that is not longer stays as it is.
/// For 3.2 s that become 2 s a core needs about 0.6 ms.
pub fn shorten(pcm: &[i16], length: usize) -> Vec<i16> {
    if length >= pcm.len() || pcm.len() < 4 * STEP {
        return pcm[..pcm.len().min(length)].to_vec();
    }
    let mut out = Vec::with_capacity(length + STEP);
    out.extend_from_slice(&pcm[..FADE]);
    // The last stretch may begin here.
    let last = pcm.len() - STEP - FADE;
    let (spare, way) = (pcm.len() - length, length.saturating_sub(STEP).max(1));
    // The audio that would follow the last stretch if nothing were left out.
    let mut at = FADE;
    while out.len() < length {
        let asked = out.len() + spare * out.len() / way;
        let from = asked.saturating_sub(REACH).max(at).min(last);
        let to = (asked + REACH).min(last).max(from);
        let best = |places: std::iter::StepBy<std::ops::RangeInclusive<usize>>| {
            let alike = |place: &usize| likeness(&pcm[at..][..FADE], &pcm[*place..][..FADE]);
            places.max_by(|a, b| alike(a).total_cmp(&alike(b))).unwrap_or(from)
        };
        let near = best((from..=to).step_by(COARSE));
        let next = best((near.saturating_sub(COARSE).max(from)..=(near + COARSE).min(to)).step_by(FINE));
        for n in 0..FADE {
            let (old, new) = (i32::from(pcm[at + n]), i32::from(pcm[next + n]));
            out.push(((old * (FADE - n) as i32 + new * n as i32) / FADE as i32) as i16);
        }
        out.extend_from_slice(&pcm[next + FADE..next + STEP]);
        at = next + STEP;
    }
    out.truncate(length);
    out
}

/// Returns the correlation of two stretches, -1 to 1.
fn likeness(one: &[i16], other: &[i16]) -> f32 {
    let (mut both, mut ones, mut others) = (0f32, 0f32, 0f32);
    for (&one, &other) in one.iter().zip(other).step_by(SAMPLES) {
        let (one, other) = (f32::from(one), f32::from(other));
        both += one * other;
        ones += one * one;
        others += other * other;
    }
    both / (ones * others).sqrt().max(1.0)
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;
    use crate::level::rms_dbov;
    use crate::measure::pitch_hz;

    #[test]
    fn shorter_at_the_same_pitch_and_level() {
        for hz in [90.0, 140.0, 230.0, 310.0] {
            let voice =
                |n: i32| (1..=8).map(|k| (TAU * hz * f64::from(k * n) / 16_000.0).sin() / f64::from(k)).sum::<f64>();
            let pcm: Vec<i16> = (0..12_000).map(|n| (4000.0 * voice(n)) as i16).collect();
            for length in [11_000, 8000, 7500, 6001] {
                let short = shorten(&pcm, length);
                assert_eq!(short.len(), length);
                let pitches: Vec<f64> = pitch_hz(&short);
                assert!(pitches.len() >= 20, "{hz} Hz to {length}: {pitches:?}");
                assert!(
                    pitches.iter().all(|found| (found / hz - 1.0).abs() < 0.05),
                    "{hz} Hz to {length}: {pitches:?}"
                );
                let off = rms_dbov(&short) - rms_dbov(&pcm);
                assert!(off.abs() < 0.5, "{hz} Hz to {length}: {off:.2} dB");
                // Nothing clicks: no step is greater than the voice's own.
                let step = |pcm: &[i16]| pcm.windows(2).map(|two| two[0].abs_diff(two[1])).max();
                let steps = [step(&short), step(&pcm)].map(|most| most.expect("not empty"));
                assert!(steps[0] <= steps[1] + steps[1] / 4, "{hz} Hz to {length}: {steps:?}");
            }
        }
    }

    #[test]
    fn what_is_short_already_stays() {
        assert_eq!(shorten(&[5; 300], 400), [5; 300]);
        assert_eq!(shorten(&[5; 300], 200), [5; 200]);
        assert!(shorten(&[], 0).is_empty());
        assert_eq!(shorten(&[7; 2000], 2000), [7; 2000]);
        assert_eq!(shorten(&[7; 2000], 1000), [7; 1000]);
    }

    #[test]
    fn the_order_and_the_ends_of_the_words_stay() {
        // A ramp of level: it has to rise through the whole, and its loud end has to be there.
        let pcm: Vec<i16> =
            (0..9600).map(|n| (f64::from(n) * (TAU * 200.0 * f64::from(n) / 16_000.0).sin()) as i16).collect();
        let short = shorten(&pcm, 6400);
        let levels: Vec<f64> = short.chunks_exact(640).map(rms_dbov).collect();
        assert!(levels.windows(2).all(|pair| pair[1] > pair[0]), "{levels:.1?}");
        assert!((rms_dbov(&short[5760..]) - rms_dbov(&pcm[8960..])).abs() < 1.0, "{levels:.1?}");
    }
}
