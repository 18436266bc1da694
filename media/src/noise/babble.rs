//! Talkers: laid out from clips of single voices, imitated where there are none. Not speech synthesis: the imitation
//! has the spectrum, the pitch and the rhythm of speech, and no words.

use std::f64::consts::TAU;
use std::sync::Arc;

use crate::biquad::{self, Biquad};
use crate::frame::RATE_HZ;
use crate::seed::Stream;

/// Number of imitated clips that are made when no voices are given.
const IMITATED: usize = 12;

/// Length of the blocks in which somebody speaks or not, in samples (20 ms).
const BLOCK: usize = 320;
/// Largest number of silent blocks between two words of a near talker (100 ms).
const PAUSE_BLOCKS: usize = 5;

/// First and second formant in Hz of the vowels that imitated syllables take.
const VOWELS: [[f64; 2]; 8] = [
    [300.0, 2250.0],
    [400.0, 1950.0],
    [550.0, 1750.0],
    [700.0, 1650.0],
    [720.0, 1150.0],
    [560.0, 900.0],
    [430.0, 1050.0],
    [320.0, 900.0],
];

/// Clips of single talkers, each at RMS 1.
pub(super) struct Voices(Vec<Vec<f32>>);

impl Voices {
    /// Returns the given clips (the longest 30 s of each), or imitations.
    pub(super) fn new(clips: &[Arc<[i16]>], stream: &mut Stream) -> Voices {
        let longest = 30 * RATE_HZ as usize;
        let given = clips.iter().filter(|clip| clip.len() >= RATE_HZ as usize / 2);
        let mut voices: Vec<Vec<f32>> =
            given.map(|clip| clip[..clip.len().min(longest)].iter().map(|&x| f32::from(x)).collect()).collect();
        if voices.is_empty() {
            voices = (0..IMITATED).map(|n| imitate(n, stream)).collect();
        }
        voices.iter_mut().for_each(|voice| to_active_rms(voice));
        voices.retain(|voice| voice.iter().any(|&x| x != 0.0));
        Voices(voices)
    }

    /// Returns a near talker over `length` samples, who is audible for the share `activity` of the time. Silence
    /// between the words counts as silence. RMS about 1 while speaking.
    pub(super) fn near(&self, index: usize, activity: f64, length: usize, stream: &mut Stream) -> Vec<f32> {
        let clip = self.0.get(index % self.0.len().max(1)).map(|clip| without_pauses(clip)).unwrap_or_default();
        let quiet = quiet(&clip);
        let mut owed = 0.0;
        self.lay_out(index, &clip, length, stream, |said, stream| {
            let heard = said.chunks(BLOCK).filter(|block| power(block) > quiet).map(<[f32]>::len).sum::<usize>();
            owed += heard as f64 / activity - said.len() as f64;
            let pause = owed.max(0.0) * stream.range(0.5, 1.5);
            owed -= pause;
            pause as usize
        })
    }

    /// Returns one of many talkers over `length` samples, who reads for the share `activity` of the time. RMS about 1
    /// while reading.
    fn talker(&self, index: usize, activity: f64, length: usize, stream: &mut Stream) -> Vec<f32> {
        let clip = self.0.get(index % self.0.len().max(1)).map(Vec::as_slice).unwrap_or_default();
        self.lay_out(index, clip, length, stream, |said, stream| {
            (said.len() as f64 * (1.0 / activity - 1.0) * stream.range(0.5, 1.5)) as usize
        })
    }

    /// Returns `clip` read aloud by talker `index` in spans of some seconds; after each, `pause` samples of silence.
    fn lay_out(
        &self,
        index: usize,
        clip: &[f32],
        length: usize,
        stream: &mut Stream,
        mut pause: impl FnMut(&[f32], &mut Stream) -> usize,
    ) -> Vec<f32> {
        let mut audio = vec![0f32; length];
        if clip.is_empty() {
            return audio;
        }
        // Few clips serve many talkers: each reads at its own pace, which also moves its pitch and formants.
        let pace = if index < self.0.len() { 1.0 } else { stream.range(0.9, 1.12) };
        let mut place = 0;
        let mut from = stream.range(0.0, clip.len() as f64);
        while place < length {
            let spoken = ((stream.range(1.5, 4.0) * f64::from(RATE_HZ)) as usize).min(length - place);
            let span = &mut audio[place..place + spoken];
            for (n, x) in span.iter_mut().enumerate() {
                let at = from + n as f64 * pace;
                let (index, part) = (at as usize, at.fract() as f32);
                let edge = (n.min(spoken - n) as f32 / 320.0).min(1.0);
                *x = edge * (clip[index % clip.len()] * (1.0 - part) + clip[(index + 1) % clip.len()] * part);
            }
            from += spoken as f64 * pace;
            place += spoken + pause(span, stream);
        }
        audio
    }

    /// Returns `count` talkers at once, at distances that differ by a few dB; RMS about 1.
    pub(super) fn crowd(&self, count: usize, activity: f64, length: usize, stream: &mut Stream) -> Vec<f32> {
        let mut audio = vec![0f32; length];
        for index in 0..count {
            let talker = self.talker(index, activity, length, stream);
            let gain = 10f64.powf(stream.range(-3.0, 3.0) / 20.0) as f32 / (count as f32).sqrt();
            audio.iter_mut().zip(talker).for_each(|(sum, x)| *sum += gain * x);
        }
        audio
    }
}

fn power(block: &[f32]) -> f64 {
    block.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / block.len() as f64
}

/// Returns the power of a block in which nobody speaks: 30 dB below the loudest one.
fn quiet(audio: &[f32]) -> f64 {
    audio.chunks(BLOCK).map(power).fold(0.0, f64::max) / 1000.0
}

/// Returns the clip with at most [`PAUSE_BLOCKS`] of each silence.
fn without_pauses(clip: &[f32]) -> Vec<f32> {
    let (quiet, mut silent) = (quiet(clip), 0);
    let kept = clip.chunks(BLOCK).filter(|block| {
        silent = if power(block) > quiet { 0 } else { silent + 1 };
        silent <= PAUSE_BLOCKS
    });
    kept.flatten().copied().collect()
}

/// Scales to RMS 1 over the blocks in which somebody speaks.
fn to_active_rms(audio: &mut [f32]) {
    let quiet = quiet(audio);
    let active: Vec<f64> = audio.chunks(BLOCK).map(power).filter(|&p| p > quiet).collect();
    let mean = active.iter().sum::<f64>() / active.len().max(1) as f64;
    let gain = if mean > 0.0 { 1.0 / mean.sqrt() } else { 0.0 };
    audio.iter_mut().for_each(|x| *x = (f64::from(*x) * gain) as f32);
}

/// Returns four seconds of a voice without words: glottal pulses through two moving formants and a fixed third.
/// Fricatives and closures stand between its syllables, four to five a second.
fn imitate(number: usize, stream: &mut Stream) -> Vec<f32> {
    let (base_hz, size) =
        if number.is_multiple_of(2) { (stream.range(95.0, 140.0), 1.0) } else { (stream.range(170.0, 240.0), 1.16) };
    let length = 4 * RATE_HZ as usize;
    let mut audio = Vec::with_capacity(length + RATE_HZ as usize);
    let mut third = Biquad::band_pass(2600.0 * size, 250.0);
    let mut phase = 0.0;
    while audio.len() < length {
        let hiss = (stream.range(0.03, 0.11) * f64::from(RATE_HZ)) as usize;
        let mut fricative = Biquad::band_pass(stream.range(2500.0, 6000.0), 2500.0);
        let loud = if stream.unit() < 0.6 { stream.range(0.1, 0.4) } else { 0.0 };
        for n in 0..hiss {
            let shape = (std::f64::consts::PI * n as f64 / hiss as f64).sin();
            audio.push((loud * shape * fricative.run(biquad::white(stream))) as f32);
        }
        let [first_hz, second_hz] = VOWELS[stream.index(VOWELS.len())].map(|hz| hz * size);
        let mut formants = [Biquad::band_pass(first_hz, 90.0), Biquad::band_pass(second_hz, 130.0)];
        let vowel = (stream.range(0.09, 0.22) * f64::from(RATE_HZ)) as usize;
        let (pitch_hz, glide) = (base_hz * stream.range(0.85, 1.25), stream.range(-0.2, 0.1));
        for n in 0..vowel {
            let along = n as f64 / vowel as f64;
            phase += pitch_hz * (1.0 + glide * along) / f64::from(RATE_HZ);
            phase -= phase.floor();
            // A sawtooth falls at 6 dB an octave: glottal flow and lip radiation together.
            let source = 2.0 * phase - 1.0 + 0.05 * biquad::white(stream);
            let shape = (std::f64::consts::PI * along).sin().sqrt();
            let voiced = formants[0].run(source) + 0.5 * formants[1].run(source) + 0.35 * third.run(source);
            audio.push((3.0 * shape * voiced) as f32);
        }
        if stream.unit() < 0.12 {
            audio.resize(audio.len() + (stream.range(0.15, 0.4) * f64::from(RATE_HZ)) as usize, 0.0);
        }
    }
    audio
}

/// Adds a decaying tone at `at`: `hz`, `gain`, down by 60 dB after `ring_s`.
pub(super) fn ring(audio: &mut [f32], at: usize, hz: f64, gain: f64, ring_s: f64) {
    let (step_sin, step_cos) = (TAU * hz / f64::from(RATE_HZ)).sin_cos();
    let decay = 10f64.powf(-3.0 / (ring_s * f64::from(RATE_HZ)));
    let (mut sin, mut cos) = (0.0, gain);
    let end = audio.len().min(at + (ring_s * f64::from(RATE_HZ)) as usize);
    for x in audio.get_mut(at..end).unwrap_or_default() {
        *x += sin as f32;
        (sin, cos) = (decay * (sin * step_cos + cos * step_sin), decay * (cos * step_cos - sin * step_sin));
    }
}
