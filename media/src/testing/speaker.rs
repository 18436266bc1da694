//! Features that tell speakers apart: pitch, formants and the long-term spectrum of 16 kHz speech. A measure of tests,
//! in this crate because it is optimised in every profile.

use std::f64::consts::PI;

use crate::fft::{Block, Fft};

/// Length of an analysed frame in samples (32 ms).
const FRAME: usize = 512;
/// Distance of the frames in samples (10 ms).
const HOP: usize = 160;
/// Order of linear prediction at 16 kHz.
const ORDER: usize = 18;
const FORMANTS: usize = 4;
const MEL_BANDS: usize = 26;
/// Number of features: median and quartile distance of the pitch, formants, mel bands.
pub const FEATURES: usize = 2 + FORMANTS + MEL_BANDS;

/// Features of a speaker: semitones for pitch and formants, dB for bands.
pub type Features = [f64; FEATURES];

fn semitones(hz: f64) -> f64 {
    12.0 * hz.log2()
}

fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get((share * values.len() as f64) as usize).copied().expect("the speech is voiced")
}

/// Returns the features of the speaker of 16 kHz speech.
///
/// # Panics
/// When nothing in it is voiced.
pub fn features(pcm: &[i16]) -> Features {
    let energy = |frame: &[i16]| frame.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
    let frames: Vec<&[i16]> = pcm.windows(FRAME).step_by(HOP).collect();
    let gate = frames.iter().map(|frame| energy(frame)).fold(0.0, f64::max) * 1e-3;
    let loud: Vec<&[i16]> = frames.into_iter().filter(|frame| energy(frame) > gate).collect();
    let window: Vec<f64> = (0..FRAME).map(hann).collect();
    let window: Vec<f64> = (0..250).map(|lag| products(&window, lag) / products(&window, 0)).collect();
    let mut pitches: Vec<f64> = loud.iter().filter_map(|frame| pitch_hz(frame, &window)).map(semitones).collect();
    let mut found = [0.0; FEATURES];
    found[0] = quantile(&mut pitches, 0.5);
    found[1] = quantile(&mut pitches, 0.75) - quantile(&mut pitches, 0.25);
    let formants: Vec<[f64; FORMANTS]> = loud.iter().step_by(4).filter_map(|frame| formants_hz(frame)).collect();
    for at in 0..FORMANTS {
        let mut all: Vec<f64> = formants.iter().map(|formants| formants[at]).collect();
        found[2 + at] = semitones(quantile(&mut all, 0.5));
    }
    found[2 + FORMANTS..].copy_from_slice(&mel_db(&loud));
    found
}

fn hann(at: usize) -> f64 {
    0.5 - 0.5 * (2.0 * PI * at as f64 / FRAME as f64).cos()
}

fn products(samples: &[f64], lag: usize) -> f64 {
    samples.iter().zip(&samples[lag..]).map(|(a, b)| a * b).sum()
}

/// Returns the pitch by autocorrelation, 64 to 400 Hz; `None` when the frame is not voiced. `window` is the
/// autocorrelation of the window, as a share of its energy.
fn pitch_hz(frame: &[i16], window: &[f64]) -> Option<f64> {
    let mean = frame.iter().map(|&x| f64::from(x)).sum::<f64>() / FRAME as f64;
    let windowed: Vec<f64> = frame.iter().enumerate().map(|(n, &x)| (f64::from(x) - mean) * hann(n)).collect();
    let energy = products(&windowed, 0);
    let alike = |lag: usize| products(&windowed, lag) / energy / window[lag];
    // A little less for longer periods, so that two periods are not taken for one.
    let best = (40..250)
        .map(|lag| (alike(lag), lag))
        .max_by(|a, b| (a.0 - 5e-4 * a.1 as f64).total_cmp(&(b.0 - 5e-4 * b.1 as f64)));
    best.filter(|(alike, _)| *alike > 0.55).map(|(_, lag)| 16_000.0 / lag as f64)
}

fn power<const N: usize>(spectrum: &Block<N>, at: usize) -> f64 {
    f64::from(spectrum.re[at]).powi(2) + f64::from(spectrum.im[at]).powi(2)
}

/// Returns the first peaks of the linear prediction's spectrum (Levinson and Durbin) between 200 and 7000 Hz.
fn formants_hz(frame: &[i16]) -> Option<[f64; FORMANTS]> {
    let raised = |n: usize| f64::from(frame[n]) - 0.97 * f64::from(frame[n.max(1) - 1]);
    let samples: Vec<f64> = (0..FRAME).map(|n| raised(n) * hann(n)).collect();
    let alike: Vec<f64> = (0..=ORDER).map(|lag| products(&samples, lag)).collect();
    let (mut filter, mut error) = (vec![1.0], alike[0] * (1.0 + 1e-6));
    for order in 1..=ORDER {
        let sum: f64 = filter.iter().enumerate().map(|(at, weight)| weight * alike[order - at]).sum();
        let reflection = -sum / error;
        filter.push(0.0);
        let mirrored: Vec<f64> = filter.iter().rev().map(|weight| reflection * weight).collect();
        filter.iter_mut().zip(mirrored).for_each(|(weight, more)| *weight += more);
        error *= 1.0 - reflection * reflection;
    }
    const LENGTH: usize = 1024;
    let mut spectrum = Block::<LENGTH>::ZERO;
    spectrum.re.iter_mut().zip(&filter).for_each(|(bin, &weight)| *bin = weight as f32);
    Fft::new().transform(&mut spectrum);
    let width = 16_000.0 / LENGTH as f64;
    let within = |at: &usize| (200.0..7000.0).contains(&(*at as f64 * width));
    let power = |at: usize| power(&spectrum, at).max(1e-12);
    let mut peaks =
        (1..LENGTH / 2).filter(within).filter(|&at| power(at) < power(at - 1) && power(at) <= power(at + 1));
    let mut found = [0.0; FORMANTS];
    for formant in &mut found {
        *formant = peaks.next()? as f64 * width;
    }
    Some(found)
}

/// Returns the long-term spectrum in mel bands from 100 to 7600 Hz, with its mean removed.
fn mel_db(frames: &[&[i16]]) -> [f64; MEL_BANDS] {
    let fft = Fft::<FRAME>::new();
    let mut sums = [0.0; FRAME / 2 + 1];
    for frame in frames {
        let value = |n: usize| (f64::from(frame[n]) * hann(n)) as f32;
        let mut block = Block { re: std::array::from_fn(value), im: [0.0; FRAME] };
        fft.transform(&mut block);
        sums.iter_mut().enumerate().for_each(|(at, sum)| *sum += power(&block, at));
    }
    let mel = |hz: f64| 2595.0 * (1.0 + hz / 700.0).log10();
    let step = (mel(7600.0) - mel(100.0)) / (MEL_BANDS + 1) as f64;
    let mut bands = [0.0; MEL_BANDS];
    for (bin, sum) in sums.iter().enumerate() {
        let place = (mel(bin as f64 * 16_000.0 / FRAME as f64) - mel(100.0)) / step - 1.0;
        for (band, level) in bands.iter_mut().enumerate() {
            *level += sum * (1.0 - (place - band as f64).abs()).max(0.0);
        }
    }
    bands = bands.map(|power| 10.0 * power.log10());
    let mean = bands.iter().sum::<f64>() / MEL_BANDS as f64;
    bands.map(|level| level - mean)
}
