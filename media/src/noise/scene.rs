//! Sound of each place, as a sum of layers. A layer is made at RMS 1 and added at its level.

#[cfg(test)]
mod tests;

use std::f64::consts::{PI, TAU};
use std::ops::Range;
use std::sync::Arc;

use super::Kind;
use super::babble::{Voices, ring};
use crate::biquad::{self, Biquad, Pink};
use crate::frame::RATE_HZ;
use crate::seed::{Seed, Stream};

const RATE: f64 = RATE_HZ as f64;
/// Level of a room in which nobody speaks, against one near talker.
const ROOM_DB: f64 = -24.0;

/// Returns `length` samples of `kind`, at about RMS 1.
pub(super) fn scene(kind: Kind, seed: Seed, length: usize, voices: &[Arc<[i16]>]) -> Vec<f32> {
    let mut stream = seed.stream(&format!("noise {}", kind.name()));
    let spoken = |stream: &mut Stream| Voices::new(voices, stream);
    let stream = &mut stream;
    match kind {
        Kind::White => white(length, stream),
        Kind::Pink => pink(length, stream),
        Kind::Brown => brown(length, stream),
        Kind::Office => office(&spoken(stream), length, stream),
        Kind::Talking => talking(&spoken(stream), length, stream),
        Kind::Traffic => traffic(length, stream),
        Kind::Cafe => tables(&spoken(stream), 8, 0.5, -9.0, length, stream),
        Kind::NoisyRestaurant => tables(&spoken(stream), 20, 1.0, -6.0, length, stream),
        Kind::Park => park(&spoken(stream), length, stream),
        Kind::Tv => tv(&spoken(stream), length, stream),
        Kind::Hospital => hospital(&spoken(stream), length, stream),
    }
}

fn office(voices: &Voices, length: usize, stream: &mut Stream) -> Vec<f32> {
    let mut audio = ventilation(length, stream);
    let mut murmur = voices.crowd(4, 0.7, length, stream);
    distant(&mut murmur, 2200.0, stream);
    lay(&mut audio, &murmur, -6.0);
    lay(&mut audio, &keys(length, stream), -6.0);
    audio
}

fn talking(voices: &Voices, length: usize, stream: &mut Stream) -> Vec<f32> {
    let mut audio = voices.near(0, 0.7, length, stream);
    lay(&mut audio, &voices.near(1, 0.7, length, stream), 0.0);
    lay(&mut audio, &room(length, stream), ROOM_DB);
    audio
}

fn traffic(length: usize, stream: &mut Stream) -> Vec<f32> {
    let mut audio = road(length, stream);
    horns(&mut audio, stream);
    audio
}

/// Returns the rumble of a road, and cars that pass by.
fn road(length: usize, stream: &mut Stream) -> Vec<f32> {
    let mut rumble = pink(length, stream);
    biquad::high_pass(&mut rumble, 35.0);
    biquad::filter(&mut rumble, biquad::low_pass_4(400.0));
    unit(&mut rumble);
    let mut tyres = pink(length, stream);
    biquad::high_pass(&mut tyres, 250.0);
    biquad::low_pass(&mut tyres, 1400.0);
    unit(&mut tyres);
    // A pass-by: for 2 s the power rises to +8 dB; half of what comes on top is engine, half tyres.
    let mut near = vec![0f32; length];
    let mut at = stream.range(1.0, 6.0);
    while at * RATE < length as f64 {
        let from = ((at - 1.0) * RATE) as usize;
        for (n, x) in near.iter_mut().skip(from).take(2 * RATE_HZ as usize).enumerate() {
            *x = (PI * n as f64 / (2.0 * RATE)).sin().powf(0.7) as f32;
        }
        at += stream.range(4.0, 8.0);
    }
    let on_top = 10f32.powf(0.8) - 1.0;
    for ((x, near), tyre) in rumble.iter_mut().zip(&near).zip(&tyres) {
        *x = *x * (1.0 + near * on_top / 2.0).sqrt() + tyre * (near * on_top / 2.0).sqrt();
    }
    rumble
}

fn horns(audio: &mut [f32], stream: &mut Stream) {
    let horn_hz = stream.range(390.0, 450.0);
    each(30.0, 0.35, audio.len(), stream, |at, stream| {
        chord(audio, at, &[horn_hz, horn_hz * 1.26], 6, 0.9, stream.range(0.4, 0.9));
    });
}

/// Returns voices, crockery and music: a cafe or a restaurant.
fn tables(
    voices: &Voices,
    count: usize,
    crockery_hz: f64,
    music_db: f64,
    length: usize,
    stream: &mut Stream,
) -> Vec<f32> {
    let mut audio = voices.crowd(count, 0.75, length, stream);
    distant(&mut audio, 4500.0, stream);
    lay(&mut audio, &music(length, stream), music_db);
    lay(&mut audio, &hiss(length, stream), -22.0);
    each(1.0 / crockery_hz, 0.9, length, stream, |at, stream| {
        let gain = stream.range(0.8, 2.5);
        for _ in 0..2 + stream.index(4) {
            let hit = at + (stream.range(0.0, 0.12) * RATE) as usize;
            for _ in 0..4 {
                let (hz, part) = (stream.range(1700.0, 6500.0), stream.range(0.3, 1.0));
                ring(&mut audio, hit, hz, gain * part / 2.0, stream.range(0.05, 0.25));
            }
        }
    });
    audio
}

fn park(voices: &Voices, length: usize, stream: &mut Stream) -> Vec<f32> {
    let mut audio = wind(length, stream);
    birds(&mut audio, stream);
    children(&mut audio, voices, stream);
    audio
}

fn wind(length: usize, stream: &mut Stream) -> Vec<f32> {
    let mut audio = pink(length, stream);
    biquad::filter(&mut audio, biquad::low_pass_4(700.0));
    unit(&mut audio);
    gusts(&mut audio, stream);
    audio
}

/// Adds songs of one to four notes.
fn birds(audio: &mut [f32], stream: &mut Stream) {
    each(1.0, 0.9, audio.len(), stream, |at, stream| {
        let (hz, gain) = (stream.range(2400.0, 4600.0), stream.range(0.15, 0.6));
        let mut at = at;
        for _ in 0..1 + stream.index(4) {
            let note_s = stream.range(0.04, 0.14);
            chirp(audio, at, hz * stream.range(0.85, 1.15), stream.range(-0.25, 0.35), note_s, gain);
            at += ((note_s + stream.range(0.02, 0.08)) * RATE) as usize;
        }
    });
}

fn children(audio: &mut [f32], voices: &Voices, stream: &mut Stream) {
    each(10.0, 0.5, audio.len(), stream, |at, stream| {
        // A child: a talker read 1.35 times as fast, a second long.
        let said = voices.near(1, 1.0, (1.4 * RATE) as usize, stream);
        for (n, x) in audio.iter_mut().skip(at).take(RATE_HZ as usize).enumerate() {
            *x += 0.9 * (PI * n as f64 / RATE).sin() as f32 * said[n * 27 / 20];
        }
    });
}

fn tv(voices: &Voices, length: usize, stream: &mut Stream) -> Vec<f32> {
    let announcer = voices.near(0, 0.95, length, stream);
    let mut audio = music(length, stream);
    for span in announcements(length, stream) {
        let (from, count) = (span.start, span.len());
        for (n, x) in audio[span].iter_mut().enumerate() {
            let edge = (n.min(count - n) as f32 / 800.0).min(1.0);
            *x = *x * (1.0 - edge) + announcer[from + n] * edge;
        }
    }
    biquad::high_pass(&mut audio, 180.0);
    biquad::low_pass(&mut audio, 5500.0);
    lay(&mut audio, &room(length, stream), ROOM_DB);
    audio
}

/// Returns the ranges in which an announcer speaks between music. Pairs of about 19 s have 60 % words and 40 % music
/// each. Both last 5 to 15 s, and the shares hold in a loop of any length.
fn announcements(length: usize, stream: &mut Stream) -> Vec<Range<usize>> {
    const WORDS: f64 = 0.6;
    let music_first = stream.unit() >= WORDS;
    let pairs = (length as f64 / RATE / 19.0).round().max(1.0) as usize;
    let weights: Vec<f64> = (0..pairs).map(|_| stream.range(0.85, 1.15)).collect();
    let sum: f64 = weights.iter().sum();
    let mut begin = 0.0;
    let words_of = |weight: &f64| {
        let pair = weight / sum * length as f64;
        let from = begin + if music_first { (1.0 - WORDS) * pair } else { 0.0 };
        begin += pair;
        from as usize..((from + WORDS * pair) as usize).min(length)
    };
    weights.iter().map(words_of).collect()
}

fn hospital(voices: &Voices, length: usize, stream: &mut Stream) -> Vec<f32> {
    let mut audio = ventilation(length, stream);
    let mut murmur = voices.crowd(2, 0.6, length, stream);
    distant(&mut murmur, 2500.0, stream);
    lay(&mut audio, &murmur, -4.0);
    monitor(&mut audio);
    pages(&mut audio, voices, stream);
    audio
}

/// Adds a monitor's tone from 0.7 s of each second, clear of the loop's cross-fade. Its level is that of the tone
/// itself.
fn monitor(audio: &mut [f32]) {
    let peak = 2f64.sqrt() * 10f64.powf(-12.0 / 20.0);
    for second in 0..audio.len() / RATE_HZ as usize {
        chirp(audio, second * RATE_HZ as usize + 11_200, 1000.0, 0.0, 0.1, peak);
    }
}

/// Adds two tones, then words over a loudspeaker.
fn pages(audio: &mut [f32], voices: &Voices, stream: &mut Stream) {
    each(20.0, 0.3, audio.len(), stream, |at, stream| {
        chord(audio, at, &[660.0], 2, 0.4, 0.4);
        chord(audio, at + 6400, &[523.0], 2, 0.4, 0.5);
        let mut said = voices.near(1, 1.0, (2.5 * RATE) as usize, stream);
        biquad::high_pass(&mut said, 400.0);
        biquad::low_pass(&mut said, 2800.0);
        audio.iter_mut().skip(at + 16_000).zip(said).for_each(|(x, said)| *x += 0.6 * said);
    });
}

/// Calls `place` once in each period, somewhere in its first `spread` share, so that the rate is exact.
fn each(period_s: f64, spread: f64, length: usize, stream: &mut Stream, mut place: impl FnMut(usize, &mut Stream)) {
    let mut from = stream.range(0.05, 0.35) * period_s;
    while from * RATE < length as f64 {
        let at = ((from + stream.range(0.0, spread * 0.6) * period_s) * RATE) as usize;
        if at < length {
            place(at, stream);
        }
        from += period_s;
    }
}

fn white(length: usize, stream: &mut Stream) -> Vec<f32> {
    (0..length).map(|_| biquad::white(stream) as f32).collect()
}

fn pink(length: usize, stream: &mut Stream) -> Vec<f32> {
    let mut filter = Pink::default();
    let mut audio: Vec<f32> = (0..length).map(|_| filter.run(biquad::white(stream)) as f32).collect();
    // Below 20 Hz it would be an offset that wanders, not noise.
    biquad::high_pass(&mut audio, 20.0);
    unit(&mut audio);
    audio
}

fn brown(length: usize, stream: &mut Stream) -> Vec<f32> {
    let mut sum = 0.0;
    let mut audio: Vec<f32> = (0..length)
        .map(|_| {
            sum = 0.998 * sum + biquad::white(stream);
            sum as f32
        })
        .collect();
    biquad::high_pass(&mut audio, 20.0);
    unit(&mut audio);
    audio
}

/// Returns fan noise: pink below 500 Hz, with the hum of a motor in it.
fn ventilation(length: usize, stream: &mut Stream) -> Vec<f32> {
    let mut audio = pink(length, stream);
    biquad::filter(&mut audio, biquad::low_pass_4(500.0));
    unit(&mut audio);
    for (n, x) in audio.iter_mut().enumerate() {
        let turn = TAU * 100.0 * n as f64 / RATE;
        *x += (0.2 * turn.sin() + 0.08 * (2.0 * turn).sin()) as f32;
    }
    audio
}

/// Returns the sound of a quiet room: soft, and never digital silence.
fn room(length: usize, stream: &mut Stream) -> Vec<f32> {
    let mut audio = pink(length, stream);
    biquad::low_pass(&mut audio, 2000.0);
    unit(&mut audio);
    audio
}

fn hiss(length: usize, stream: &mut Stream) -> Vec<f32> {
    let mut audio = white(length, stream);
    biquad::low_pass(&mut audio, 5000.0);
    unit(&mut audio);
    audio
}

/// Returns typing: two keys a second on average, in bursts.
fn keys(length: usize, stream: &mut Stream) -> Vec<f32> {
    let mut audio = vec![0f32; length];
    let mut at_s = stream.range(0.0, 2.0);
    while at_s * RATE < length as f64 {
        let burst = 4 + stream.index(12);
        let began_s = at_s;
        for _ in 0..burst {
            key(&mut audio, (at_s * RATE) as usize, stream);
            at_s += stream.range(0.09, 0.24);
        }
        at_s = began_s + burst as f64 / 2.0 * stream.range(0.8, 1.2);
    }
    unit(&mut audio);
    audio
}

/// Adds a key: the click of the stroke, the thump of the table, the fainter click of the release.
fn key(audio: &mut [f32], at: usize, stream: &mut Stream) {
    let hard = stream.range(0.5, 1.0);
    for (delay_s, gain) in [(0.0, hard), (stream.range(0.06, 0.1), 0.4 * hard)] {
        let from = at + (delay_s * RATE) as usize;
        let mut click = Biquad::band_pass(stream.range(2000.0, 3600.0), 2200.0);
        for (n, x) in audio.iter_mut().skip(from).take(130).enumerate() {
            *x += (gain * (-(n as f64) / 28.0).exp() * click.run(biquad::white(stream))) as f32;
        }
        ring(audio, from, stream.range(180.0, 320.0), 0.35 * gain, 0.05);
    }
}

/// Applies slow changes of level, within 4 dB up and down.
fn gusts(audio: &mut [f32], stream: &mut Stream) {
    let (mut from_db, mut place) = (0.0, 0);
    while place < audio.len() {
        let to_db = stream.range(-4.0, 4.0);
        let span = (stream.range(0.7, 2.5) * RATE) as usize;
        for (n, x) in audio.iter_mut().skip(place).take(span).enumerate() {
            let along = 0.5 - 0.5 * (PI * n as f64 / span as f64).cos();
            *x *= 10f64.powf((from_db + (to_db - from_db) * along) / 20.0) as f32;
        }
        from_db = to_db;
        place += span;
    }
}

/// Adds a tone of `seconds` with a soft beginning and end, whose frequency moves by the share `glide`.
fn chirp(audio: &mut [f32], at: usize, hz: f64, glide: f64, seconds: f64, peak: f64) {
    let length = (seconds * RATE) as usize;
    let mut phase = 0.0;
    for (n, x) in audio.iter_mut().skip(at).take(length).enumerate() {
        phase += hz * (1.0 + glide * n as f64 / length as f64) / RATE;
        let edge = (n.min(length - n) as f64 / 80.0).min(1.0);
        *x += (peak * edge * (TAU * phase).sin()) as f32;
    }
}

/// Adds tones of `hz` with `harmonics` each, for `seconds`.
fn chord(audio: &mut [f32], at: usize, hz: &[f64], harmonics: usize, gain: f64, seconds: f64) {
    for (tone, order) in hz.iter().flat_map(|&hz| (1..=harmonics).map(move |order| (hz, order))) {
        let peak = gain / (hz.len() as f64 * order as f64).sqrt();
        chirp(audio, at, tone * order as f64, 0.0, seconds, peak);
    }
}

/// Returns plucked chords over a bass and a wandering melody.
fn music(length: usize, stream: &mut Stream) -> Vec<f32> {
    const CHORDS: [[i32; 3]; 6] = [[0, 4, 7], [-3, 0, 4], [5, 9, 12], [7, 11, 14], [2, 5, 9], [4, 7, 11]];
    let note_hz = |semitones: i32| 220.0 * 2f64.powf(f64::from(semitones) / 12.0);
    let mut audio = vec![0f32; length];
    let beat = (stream.range(0.28, 0.42) * RATE) as usize;
    let mut chord = CHORDS[0];
    for (count, at) in (0..length).step_by(beat).enumerate() {
        if count % 8 == 0 {
            chord = CHORDS[stream.index(CHORDS.len())];
            ring(&mut audio, at, note_hz(chord[0] - 12), 1.2, 2.5);
        }
        if count % 4 == 2 {
            chord.iter().for_each(|&tone| pluck(&mut audio, at, note_hz(tone), 0.4));
        }
        if stream.unit() < 0.7 {
            let octave = if stream.unit() < 0.7 { 12 } else { 24 };
            pluck(&mut audio, at, note_hz(chord[stream.index(3)] + octave), 0.7);
        }
    }
    unit(&mut audio);
    audio
}

fn pluck(audio: &mut [f32], at: usize, hz: f64, gain: f64) {
    for order in 1..=4 {
        ring(audio, at, hz * f64::from(order), gain / f64::from(order * order).powf(0.7), 1.4 / f64::from(order));
    }
}

/// Makes voices sound distant, as in a room: dull, and smeared by four echoes.
fn distant(audio: &mut [f32], cutoff_hz: f64, stream: &mut Stream) {
    biquad::low_pass(audio, cutoff_hz);
    let dry = audio.to_vec();
    for share in [0.5, 0.4, 0.3, 0.25] {
        let delay = (stream.range(0.012, 0.09) * RATE) as usize;
        audio.iter_mut().skip(delay).zip(&dry).for_each(|(x, echo)| *x += share * echo);
    }
    unit(audio);
}

/// Scales to RMS 1; silence stays.
fn unit(audio: &mut [f32]) {
    let power = audio.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / audio.len().max(1) as f64;
    if power > 0.0 {
        let gain = power.sqrt().recip() as f32;
        audio.iter_mut().for_each(|x| *x *= gain);
    }
}

/// Adds `layer` at `gain_db`.
fn lay(audio: &mut [f32], layer: &[f32], gain_db: f64) {
    let gain = 10f64.powf(gain_db / 20.0) as f32;
    audio.iter_mut().zip(layer).for_each(|(x, layer)| *x += gain * layer);
}
