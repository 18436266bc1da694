//! Are callers told apart? Ten seeds of one wish, each saying two different texts, held against each other by what tells
//! speakers apart: pitch, formants and the long-term spectrum. Every feature counts in units of what a caller's own two texts
//! differ by.

use std::f64::consts::PI;

use ringer_media::fft::{Block, Fft};
use ringer_media::seed::Seed;

use super::speech::EmbeddedSpeech;
use super::{Synthesizer, VoiceWanted, whole_speech};

const TEXTS: [&str; 2] = [
    "I would like to make an appointment for next week because my back hurts a lot. Please tell me which days are free and \
     whether the doctor is there in the morning or only in the afternoon.",
    "The number on my last bill does not match what I see on the meter, and nobody could tell me why. I have called three \
     times already and every time somebody promised to look into it.",
];
const CALLERS: u64 = 10;

/// Analysed at a time: 32 ms each 10 ms.
const FRAME: usize = 512;
const HOP: usize = 160;
/// Order of linear prediction at 16 kHz.
const ORDER: usize = 18;
const FORMANTS: usize = 4;
const MEL_BANDS: usize = 26;
/// Median and quartile distance of the pitch, formants, mel bands.
const FEATURES: usize = 2 + FORMANTS + MEL_BANDS;

type Features = [f64; FEATURES];

fn semitones(hz: f64) -> f64 {
    12.0 * hz.log2()
}

fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get((share * values.len() as f64) as usize).copied().expect("the speech is voiced")
}

/// What 16 kHz speech says of its speaker: semitones for pitch and formants, dB for bands.
fn features(pcm: &[i16]) -> Features {
    let energy = |frame: &[i16]| frame.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
    let frames: Vec<&[i16]> = pcm.windows(FRAME).step_by(HOP).collect();
    let gate = frames.iter().map(|frame| energy(frame)).fold(0.0, f64::max) * 1e-3;
    let loud: Vec<&[i16]> = frames.into_iter().filter(|frame| energy(frame) > gate).collect();
    let mut pitches: Vec<f64> = loud.iter().filter_map(|frame| pitch_hz(frame)).map(semitones).collect();
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

/// By autocorrelation, 64 to 400 Hz; none where the frame is not voiced.
fn pitch_hz(frame: &[i16]) -> Option<f64> {
    let mean = frame.iter().map(|&x| f64::from(x)).sum::<f64>() / FRAME as f64;
    let windowed: Vec<f64> = frame.iter().enumerate().map(|(n, &x)| (f64::from(x) - mean) * hann(n)).collect();
    let window: Vec<f64> = (0..FRAME).map(hann).collect();
    let alike = |lag: usize| {
        let own = products(&window, lag) / products(&window, 0);
        products(&windowed, lag) / products(&windowed, 0) / own
    };
    // A little less for longer periods, so that two periods are not taken for one.
    let best = (40..250)
        .map(|lag| (alike(lag), lag))
        .max_by(|a, b| (a.0 - 5e-4 * a.1 as f64).total_cmp(&(b.0 - 5e-4 * b.1 as f64)));
    best.filter(|(alike, _)| *alike > 0.55).map(|(_, lag)| 16_000.0 / lag as f64)
}

fn power<const N: usize>(spectrum: &Block<N>, at: usize) -> f64 {
    f64::from(spectrum.re[at]).powi(2) + f64::from(spectrum.im[at]).powi(2)
}

/// The first peaks of the linear prediction's spectrum (Levinson and Durbin) between 200 and 7000 Hz.
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

/// The long-term spectrum in mel bands from 100 to 7600 Hz, with its mean removed.
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

/// A caller's features, of each text.
type Caller = [Features; TEXTS.len()];

async fn caller(speech: &EmbeddedSpeech, gender: &str, seed: u64) -> Caller {
    let wanted = VoiceWanted { gender: Some(gender.into()), seed: Seed(seed), ..VoiceWanted::of("en") };
    let voice = speech.voice(&wanted).expect("English has voices");
    let mut found = [[0.0; FEATURES]; TEXTS.len()];
    for (found, text) in found.iter_mut().zip(TEXTS) {
        let pcm = whole_speech(speech, text, &voice).await.expect("flite is installed");
        assert!(pcm.len() >= 8 * 16_000, "{} samples", pcm.len());
        *found = features(&pcm);
    }
    found
}

/// All pairs of callers lie further apart, by different texts, than any caller's two texts do.
fn apart(wish: &str, callers: &[Caller]) {
    let mut spread = [0.0; FEATURES];
    for (at, spread) in spread.iter_mut().enumerate() {
        let sum: f64 = callers.iter().map(|[one, two]| (one[at] - two[at]).powi(2)).sum();
        *spread = (sum / callers.len() as f64).sqrt().max(1e-3);
    }
    let distance = |one: &Features, two: &Features| {
        let parts = one.iter().zip(two).zip(&spread).map(|((one, two), spread)| ((one - two) / spread).powi(2));
        parts.sum::<f64>().sqrt()
    };
    let own = callers.iter().map(|[one, two]| distance(one, two)).fold(0.0, f64::max);
    let mut pairs = Vec::new();
    for (at, one) in callers.iter().enumerate() {
        let others = callers[at + 1..].iter().enumerate();
        pairs.extend(others.map(|(more, two)| {
            let nearest = distance(&one[0], &two[1]).min(distance(&one[1], &two[0]));
            (nearest, at, at + 1 + more)
        }));
    }
    pairs.sort_by(|one, two| one.0.total_cmp(&two.0));
    println!("{wish}: a caller's own texts are at most {own:.2} apart, two callers at least {:.2?}", &pairs[..3]);
    assert!(pairs[0].0 > own, "{wish}: callers {:?} are as near as one caller's texts ({own})", pairs[0]);
}

#[tokio::test]
async fn ten_callers_of_one_wish_are_told_apart() {
    let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
    let (mut women, mut men, mut drawn) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 1..=CALLERS {
        let (woman, man) = tokio::join!(caller(&speech, "female", seed), caller(&speech, "male", seed));
        let wanted = VoiceWanted { seed: Seed(seed), ..VoiceWanted::of("en") };
        // The seed draws the rest of a voice alike, whether the gender was drawn or wished for.
        drawn.push(if super::voice::is_female(&wanted) { woman } else { man });
        women.push(woman);
        men.push(man);
    }
    apart("no wish", &drawn);
    apart("women", &women);
    apart("men", &men);
}
