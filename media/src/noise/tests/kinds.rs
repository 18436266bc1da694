//! Recognition of every kind of noise by its spectrum and its modulation, whatever the seed.

use super::*;
use crate::biquad;
use crate::testing::level_for;

const SECONDS: u32 = 20;
/// Length of the blocks whose level is followed, in samples (50 ms).
const BLOCK: usize = 800;
/// Bands whose levels and modulation are measured.
const BANDS_HZ: [(f64, f64); 6] =
    [(30.0, 150.0), (150.0, 500.0), (500.0, 1000.0), (1000.0, 2000.0), (2000.0, 4000.0), (4000.0, 7900.0)];
/// A band: its share of the power, the spread of its level over time, and how far its loudest blocks stand out, all in
/// dB.
const FEATURES: usize = 3 * BANDS_HZ.len();

type Features = [f64; FEATURES];

fn db(power: f64) -> f64 {
    10.0 * power.max(1e-9).log10()
}

fn band(noise: &[i16], low_hz: f64, high_hz: f64) -> Vec<f32> {
    let mut audio: Vec<f32> = noise.iter().map(|&x| f32::from(x)).collect();
    biquad::filter(&mut audio, biquad::high_pass_4(low_hz));
    biquad::filter(&mut audio, biquad::low_pass_4(high_hz));
    audio
}

fn features(noise: &[i16]) -> Features {
    let power = |audio: &[f32]| mean_power(audio.iter().map(|&x| f64::from(x)));
    let whole = mean_power(noise.iter().map(|&x| f64::from(x)));
    let mut found = [0.0; FEATURES];
    for (features, (low_hz, high_hz)) in found.chunks_exact_mut(3).zip(BANDS_HZ) {
        let audio = band(noise, low_hz, high_hz);
        // Nothing is told apart by what lies 50 dB below the rest.
        let tiny = whole * 1e-5;
        let mut levels: Vec<f64> = audio.chunks_exact(BLOCK).map(|block| db(power(block) + tiny)).collect();
        let mean = levels.iter().sum::<f64>() / levels.len() as f64;
        let spread = (levels.iter().map(|level| (level - mean).powi(2)).sum::<f64>() / levels.len() as f64).sqrt();
        levels.sort_by(f64::total_cmp);
        let rank = |share: f64| levels[(share * (levels.len() - 1) as f64) as usize];
        features.copy_from_slice(&[db(power(&audio) + tiny) - db(whole), spread, rank(0.97) - rank(0.5)]);
    }
    found
}

fn distance(a: &Features, b: &Features) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn every_kind_is_nearest_to_itself_over_seeds() {
    let of = |kind, seed| features(&generate(kind, Seed(seed), SECONDS, &[]));
    let known: Vec<Features> = Kind::ALL
        .iter()
        .map(|(kind, _)| {
            let (a, b) = (of(*kind, 1), of(*kind, 2));
            std::array::from_fn(|n| (a[n] + b[n]) / 2.0)
        })
        .collect();
    println!("each band: level, spread over time, stand-out of the loudest blocks, in dB");
    for ((_, name), features) in Kind::ALL.iter().zip(&known) {
        let bands: Vec<String> =
            features.chunks(3).map(|band| format!("{:5.1} {:4.1} {:4.1}", band[0], band[1], band[2])).collect();
        println!("{name:<17} {}", bands.join(" | "));
    }
    let mut wrong = Vec::new();
    for (right, (kind, name)) in Kind::ALL.iter().enumerate() {
        for seed in 11..14 {
            let heard = of(*kind, seed);
            let mut by: Vec<(f64, usize)> = known.iter().map(|known| distance(&heard, known)).zip(0..).collect();
            by.sort_by(|a, b| a.0.total_cmp(&b.0));
            let [nearest, second] = [by[0], by[1]];
            println!(
                "{name} {seed}: {:.1} to {}, then {:.1} to {}",
                nearest.0,
                Kind::ALL[nearest.1].1,
                second.0,
                Kind::ALL[second.1].1
            );
            if nearest.1 != right {
                wrong.push(format!("{name} of seed {seed} is taken for {}", Kind::ALL[nearest.1].1));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn noise_runs_without_a_gap() {
    // Talkers who make pauses: half a second in each second.
    let speaks = |n: usize| if (n / 8000).is_multiple_of(2) { (6000.0 * (n as f64 / 7.0).sin()) as i16 } else { 0 };
    let voices: Vec<Arc<[i16]>> = (0..2).map(|_| (0..80_000).map(speaks).collect()).collect();
    for (kind, name) in Kind::ALL {
        for voices in [&[][..], &voices] {
            let mut noise = generate(kind, Seed(5), SECONDS, voices);
            level_for(&mut noise, snr_db(0.0), 8000);
            // At the lowest volume, in 20 ms.
            let silent = noise.chunks_exact(320).filter(|block| block.iter().all(|x| *x == 0)).count();
            assert_eq!(silent, 0, "{name}, {} voices", voices.len());
        }
    }
}

#[test]
fn given_noise_becomes_a_loop_without_a_step() {
    // A slow tone that ends in the middle of its wave: cut there, its end and beginning are 6000 apart.
    let tone = |n: usize| (6000.0 * (std::f64::consts::TAU * 3.25 * n as f64 / 16_000.0).sin()) as i16;
    for (length, expect) in [(3 * 16_000, 40_000), (800, 400), (1, 1), (0, 0)] {
        let looped = seamless(&(0..length).map(tone).collect::<Vec<_>>());
        assert_eq!(looped.len(), expect);
        if length > 16_000 {
            let step = (i32::from(looped[0]) - i32::from(looped[expect - 1])).abs();
            assert!(step < 20, "a step of {step}");
        }
    }
}
