//! Sounds of a throat and a nose that are no words: coughs, sniffs, throat clearing. Made from seeded noise and pulses
//! by formant filters under an envelope; not recordings, and no two are alike.
//!
//! A cough is a burst that rises within milliseconds and dies away; a sniff is high, unvoiced and swells; a throat is
//! cleared with a low, rough voice in two humps.

use std::f64::consts::{PI, TAU};

use crate::biquad::{self, Biquad};
use crate::frame::RATE_HZ;
use crate::seed::Stream;

/// Kind of a vocal tic.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Tic {
    /// One or two bursts of air.
    Cough,
    /// Air drawn in through the nose.
    Sniff,
    /// A low voice that clears the throat: "Ahem".
    ThroatClearing,
}

impl Tic {
    /// All kinds, in the order of their declaration.
    pub const ALL: [Tic; 3] = [Tic::Cough, Tic::Sniff, Tic::ThroatClearing];

    /// Returns the RMS over its whole length, dBov, beside speech at an active level of -26 dBov.
    pub fn level_dbov(self) -> f64 {
        match self {
            Tic::Cough => -25.0,
            Tic::Sniff => -36.0,
            Tic::ThroatClearing => -29.0,
        }
    }

    /// Returns the shortest and longest length, in seconds.
    fn length_s(self) -> [f64; 2] {
        match self {
            Tic::Cough => [0.25, 0.7],
            Tic::Sniff => [0.25, 0.5],
            Tic::ThroatClearing => [0.4, 0.8],
        }
    }
}

const RATE: f64 = RATE_HZ as f64;

/// Highest sample of a tic: -3 dBFS.
const PEAK: f64 = 23_197.0;

/// Length of the fade at both ends (3 ms), in samples.
const EDGE: usize = 48;

/// Returns a sound of 0.25 to 0.8 s at 16 kHz, at its [`Tic::level_dbov`]; the same draws give the same samples.
pub fn generate(tic: Tic, stream: &mut Stream) -> Vec<i16> {
    let [shortest, longest] = tic.length_s();
    let length = (stream.range(shortest, longest) * RATE) as usize;
    let mut audio = match tic {
        Tic::Cough => cough(length, stream),
        Tic::Sniff => sniff(length, stream),
        Tic::ThroatClearing => throat(length, stream),
    };
    for n in 0..EDGE.min(length / 2) {
        let gain = n as f32 / EDGE as f32;
        audio[n] *= gain;
        audio[length - 1 - n] *= gain;
    }
    let power = audio.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / length as f64;
    let gain = 32_768.0 * 10f64.powf(tic.level_dbov() / 20.0) / power.sqrt().max(1e-9);
    audio.iter().map(|&x| (f64::from(x) * gain).round().clamp(-PEAK, PEAK) as i16).collect()
}

/// Returns bursts of air through an open throat: two when it is longer than one burst.
fn cough(length: usize, stream: &mut Stream) -> Vec<f32> {
    const ONE_BURST_S: f64 = 0.45;
    let count = if length as f64 > ONE_BURST_S * RATE { 2 } else { 1 };
    let (decay_s, attack_s) = (stream.range(0.045, 0.075), stream.range(0.002, 0.005));
    let second = (length as f64 * stream.range(0.42, 0.52)) as usize;
    let mut envelope = vec![0f64; length];
    for (from, loud) in [(0, 1.0), (second, stream.range(0.5, 0.8))].into_iter().take(count) {
        let to = if from == 0 && count == 2 { second } else { length };
        for (n, level) in envelope[from..to].iter_mut().enumerate() {
            let (at_s, left) = (n as f64 / RATE, 1.0 - n as f64 / (to - from) as f64);
            *level = loud * (at_s / attack_s).min(1.0) * (0.8 * (-at_s / decay_s).exp() + 0.2 * left) * left.sqrt();
        }
    }
    let throat = stream.range(0.85, 1.15);
    let mut formants = [(520.0, 350.0, 1.0), (1450.0, 700.0, 0.5), (2900.0, 1800.0, 0.2)]
        .map(|(hz, width_hz, gain)| (Biquad::band_pass(hz * throat, width_hz), gain));
    let air = |level: &f64| (level * resonate(&mut formants, biquad::white(stream))) as f32;
    envelope.iter().map(air).collect()
}

/// Returns turbulent air in the nose: no voice, little below 1 kHz, loudest after its middle.
fn sniff(length: usize, stream: &mut Stream) -> Vec<f32> {
    let peak = stream.range(0.5, 0.7);
    let mut nose = [(Biquad::band_pass(stream.range(2400.0, 3000.0), 1800.0), 1.0)];
    let mut high = biquad::high_pass_4(1100.0);
    let swell = |n: usize| {
        let along = n as f64 / length as f64;
        let part = if along < peak { along / peak } else { (1.0 - along) / (1.0 - peak) };
        (PI / 2.0 * part).sin().powi(2)
    };
    let mut air = |n| {
        let x = resonate(&mut nose, biquad::white(stream));
        (swell(n) * high.iter_mut().fold(x, |x, section| section.run(x))) as f32
    };
    (0..length).map(&mut air).collect()
}

/// Returns a creaking voice: uneven pulses through a nearly closed throat, in two humps.
fn throat(length: usize, stream: &mut Stream) -> Vec<f32> {
    /// Level of the noise beside the pulses.
    const BREATH: f64 = 0.04;
    let (pitch_hz, flutter_hz) = (stream.range(75.0, 105.0), stream.range(16.0, 26.0));
    let second = stream.range(0.38, 0.48);
    let hump = |n: usize| {
        let along = n as f64 / length as f64;
        let part = if along < second { along / second } else { (along - second) / (1.0 - second) };
        let flutter = 1.0 - 0.35 * (0.5 - 0.5 * (TAU * flutter_hz * n as f64 / RATE).cos());
        flutter * (0.08 + 0.92 * (PI * part).sin().powf(0.8))
    };
    let mut formants = [(430.0, 160.0, 1.0), (1050.0, 260.0, 0.45), (2300.0, 500.0, 0.2)]
        .map(|(hz, width_hz, gain)| (Biquad::band_pass(hz, width_hz), gain));
    let mut next = 0.0;
    let mut voice = |n: usize| {
        let mut x = BREATH * biquad::white(stream);
        if n as f64 >= next {
            // Pulses of a rough voice differ in distance and strength.
            next += RATE / (pitch_hz * stream.range(0.97, 1.03));
            x += stream.range(0.8, 1.2);
        }
        (hump(n) * resonate(&mut formants, x)) as f32
    };
    (0..length).map(&mut voice).collect()
}

/// Runs parallel resonators, each with its gain, and returns their sum.
fn resonate(formants: &mut [(Biquad, f64)], x: f64) -> f64 {
    formants.iter_mut().map(|(formant, gain)| *gain * formant.run(x)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::rms_dbov;
    use crate::seed::Seed;

    /// Features by which a sound is recognized.
    #[derive(Debug)]
    struct Look {
        seconds: f64,
        level_dbov: f64,
        /// Frequency below which half of the power lies.
        median_hz: f64,
        /// Position of the loudest 10 ms, as a share of the length.
        peak_at: f64,
        /// Correlation with itself one period later, the best of 60 to 130 Hz.
        voiced: f64,
    }

    /// Returns the power in bands of 100 Hz up to 8 kHz, over windows of 10 ms.
    fn spectrum(pcm: &[i16]) -> Vec<f64> {
        let band = |hz: usize| {
            let power = |block: &[i16]| {
                let part = |shift: f64| -> f64 {
                    let wave = |n: usize| (TAU * (hz * n) as f64 / RATE + shift).cos();
                    block.iter().enumerate().map(|(n, &x)| f64::from(x) * wave(n)).sum()
                };
                part(0.0).powi(2) + part(PI / 2.0).powi(2)
            };
            pcm.chunks_exact(160).map(power).sum()
        };
        (0..80).map(|n| band(100 * n)).collect()
    }

    fn look(pcm: &[i16]) -> Look {
        let bands = spectrum(pcm);
        let half = bands.iter().sum::<f64>() / 2.0;
        let mut below = 0.0;
        let median = bands.iter().position(|band| {
            below += band;
            below >= half
        });
        let blocks: Vec<f64> = pcm.chunks(160).map(rms_dbov).collect();
        let loudest = (0..blocks.len()).max_by(|&a, &b| blocks[a].total_cmp(&blocks[b])).expect("not empty");
        let alike = |lag: usize| {
            let dot =
                |a: &[i16], b: &[i16]| -> f64 { a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum() };
            let (a, b) = (&pcm[..pcm.len() - lag], &pcm[lag..]);
            dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(1.0)
        };
        Look {
            seconds: pcm.len() as f64 / RATE,
            level_dbov: rms_dbov(pcm),
            median_hz: 100.0 * median.expect("it has power") as f64,
            peak_at: loudest as f64 / blocks.len() as f64,
            voiced: (123..267).map(alike).fold(0.0, f64::max),
        }
    }

    #[test]
    fn each_kind_is_known_by_its_spectrum_and_its_envelope() {
        for (tic, median_hz, peak_at, voiced) in [
            (Tic::Cough, 900.0..1800.0, 0.0..0.1, 0.0..0.25),
            (Tic::Sniff, 2300.0..3500.0, 0.35..0.75, 0.0..0.2),
            (Tic::ThroatClearing, 300.0..800.0, 0.1..0.9, 0.25..1.0),
        ] {
            for seed in 0..40 {
                let pcm = generate(tic, &mut Seed(seed).stream("tic"));
                let found = look(&pcm);
                assert!((0.2..=0.8).contains(&found.seconds), "{tic:?} {seed}: {found:?}");
                assert!((found.level_dbov - tic.level_dbov()).abs() < 0.3, "{tic:?} {seed}: {found:?}");
                assert!(median_hz.contains(&found.median_hz), "{tic:?} {seed}: {found:?}");
                assert!(peak_at.contains(&found.peak_at), "{tic:?} {seed}: {found:?}");
                assert!(voiced.contains(&found.voiced), "{tic:?} {seed}: {found:?}");
                // The ends are soft, and what a telephone carries of it is heard.
                assert!(pcm[0].abs() < 60 && pcm[pcm.len() - 1].abs() < 60, "{tic:?} {seed}");
                let bands = spectrum(&pcm);
                let share = bands[3..=34].iter().sum::<f64>() / bands.iter().sum::<f64>();
                assert!(share > 0.5, "{tic:?} {seed}: {share:.2} of the power passes a telephone");
            }
        }
    }

    #[test]
    fn a_seed_gives_one_sound_and_two_give_two() {
        for tic in Tic::ALL {
            let of = |seed| generate(tic, &mut Seed(seed).stream("tic"));
            assert_eq!(of(3), of(3));
            assert_ne!(of(3), of(4));
        }
    }
}
