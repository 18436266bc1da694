//! Figures of each place, measured in its sound.

use super::*;

/// Length of the blocks whose level is followed, in samples (10 ms).
const BLOCK: usize = 160;

fn seconds(count: usize) -> usize {
    count * RATE_HZ as usize
}

fn stream() -> Stream {
    Seed(7).stream("figures")
}

fn imitate_voices() -> Voices {
    Voices::new(&[], &mut stream())
}

/// Returns a talker who hums `hz` for 300 ms and is silent for 200 ms.
fn hum(hz: f64) -> Arc<[i16]> {
    let wave = |n: usize| if n % 8000 < 4800 { 6000.0 * (TAU * hz * n as f64 / RATE).sin() } else { 0.0 };
    (0..seconds(10)).map(|n| wave(n) as i16).collect()
}

/// Returns a layer that was added to silence.
fn alone(length: usize, layer: impl FnOnce(&mut [f32], &mut Stream)) -> Vec<f32> {
    let mut audio = vec![0f32; length];
    layer(&mut audio, &mut stream());
    audio
}

fn power(audio: &[f32]) -> f64 {
    audio.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / audio.len() as f64
}

fn db(power: f64) -> f64 {
    10.0 * power.max(1e-12).log10()
}

/// Returns the powers of blocks of `length` samples.
fn powers(audio: &[f32], length: usize) -> Vec<f64> {
    audio.chunks_exact(length).map(power).collect()
}

/// Returns the blocks in which something sounds: 20 dB below the loudest one or above.
fn sounding(audio: &[f32]) -> Vec<usize> {
    let powers = powers(audio, BLOCK);
    let least = powers.iter().copied().fold(0.0, f64::max) / 100.0;
    (0..powers.len()).filter(|&block| powers[block] > least).collect()
}

/// Returns the onsets of sounds in seconds: after silence, and `apart_s` after the last onset.
fn begins(audio: &[f32], apart_s: f64) -> Vec<f64> {
    let sounding = sounding(audio);
    let after_silence = |at: &usize| *at == 0 || sounding[*at] > sounding[*at - 1] + 1;
    let mut begins: Vec<f64> = Vec::new();
    for block in (0..sounding.len()).filter(after_silence).map(|at| sounding[at]) {
        let at = (block * BLOCK) as f64 / RATE;
        if begins.last().is_none_or(|last| at - last >= apart_s) {
            begins.push(at);
        }
    }
    begins
}

fn gaps(begins: &[f64]) -> Vec<f64> {
    begins.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Checks the number of sounds, and the times between them.
#[track_caller]
fn check(begins: &[f64], count: std::ops::RangeInclusive<usize>, gap_s: std::ops::RangeInclusive<f64>) {
    assert!(count.contains(&begins.len()), "{} sounds: {begins:.2?}", begins.len());
    assert!(gaps(begins).iter().all(|gap| gap_s.contains(gap)), "{:.2?}", gaps(begins));
}

#[test]
fn keys_come_two_a_second_in_bursts() {
    // The release comes up to 100 ms after the stroke, and is none of its own.
    let begins = begins(&keys(seconds(600), &mut stream()), 0.11);
    assert!((1140..=1260).contains(&begins.len()), "{} strokes in 600 s", begins.len());
    let gaps = gaps(&begins);
    let quick = gaps.iter().filter(|gap| **gap < 0.3).count();
    assert!(quick * 10 > gaps.len() * 8, "{quick} of {} follow at once", gaps.len());
    let between: f64 = gaps.iter().filter(|gap| **gap > 0.5).sum();
    assert!(between > 300.0, "no keys for {between:.0} of 600 s");
}

#[test]
fn cars_pass_by_each_4_to_8_s_and_are_8_db_louder() {
    let road = road(seconds(600), &mut stream());
    let mut near = powers(&road, 10 * BLOCK);
    // Half a second is smooth enough to see them come and go.
    near = near.windows(5).map(|five| five.iter().sum::<f64>() / 5.0).collect();
    let mut sorted = near.clone();
    sorted.sort_by(f64::total_cmp);
    let far = sorted[sorted.len() / 4];
    let mut spans: Vec<Range<usize>> = Vec::new();
    for (at, _) in near.iter().enumerate().filter(|(_, power)| **power > 2.0 * far) {
        match spans.last_mut().filter(|span| at - span.end < 10) {
            Some(span) => span.end = at + 1,
            None => spans.push(at..at + 1),
        }
    }
    let spans: Vec<Range<usize>> = spans.into_iter().filter(|span| span.len() >= 10).collect();
    let middle = |span: &Range<usize>| (span.start + span.end) as f64 / 20.0;
    let middles: Vec<f64> = spans.iter().map(middle).collect();
    check(&middles, 90..=110, 3.6..=8.4);
    let mean = |powers: Vec<f64>| powers.iter().sum::<f64>() / powers.len() as f64;
    let lasts_s = mean(spans.iter().map(|span| span.len() as f64 / 10.0).collect());
    assert!((lasts_s - 2.0).abs() < 0.4, "{lasts_s:.2} s");
    let peak = |span: &Range<usize>| near[(span.start + span.end) / 2];
    let (loudest, between) = (mean(spans.iter().map(peak).collect()), mean(sorted[..sorted.len() / 2].to_vec()));
    let louder_db = db(loudest / between);
    assert!((louder_db - 8.0).abs() < 1.0, "{louder_db:.1} dB");
}

#[test]
fn a_horn_sounds_each_30_s() {
    check(&begins(&alone(seconds(600), horns), 2.0), 20..=20, 23.0..=37.0);
}

#[test]
fn tables_have_their_crockery_and_their_music() {
    for (kind, people, crockery_hz, music_db) in [(Kind::Cafe, 8, 0.5, -9.0), (Kind::NoisyRestaurant, 20, 1.0, -6.0)] {
        let length = seconds(60);
        let without = |crockery_hz, music_db| {
            let mut stream = Seed(3).stream(&format!("noise {}", kind.name()));
            let voices = Voices::new(&[], &mut stream);
            tables(&voices, people, crockery_hz, music_db, length, &mut stream)
        };
        let less = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<f32>>();
        let whole = scene(kind, Seed(3), length, &[]);
        // The difference from the place without a layer is the layer.
        let crockery = less(&whole, &without(1e-5, music_db));
        let count = (60.0 * crockery_hz) as usize;
        check(&begins(&crockery, 0.4), count - 2..=count + 1, 0.4..=2.0 / crockery_hz);
        let music = less(&whole, &without(crockery_hz, -300.0));
        let level_db = db(power(&music) / power(&without(1e-5, -300.0)));
        assert!((level_db - music_db).abs() < 0.3, "{kind:?}: music at {level_db:.1} dB");
    }
}

#[test]
fn wind_comes_in_gusts_of_4_db() {
    let wind = wind(seconds(600), &mut stream());
    let whole = db(power(&wind));
    let mut levels: Vec<f64> = powers(&wind, 50 * BLOCK).iter().map(|&power| db(power) - whole).collect();
    levels.sort_by(f64::total_cmp);
    let rank = |share: f64| levels[(share * levels.len() as f64) as usize];
    assert!((-5.0..-3.0).contains(&rank(0.03)) && (2.5..4.5).contains(&rank(0.97)), "{} {}", rank(0.03), rank(0.97));
    assert!(levels[0] > -7.0 && levels[levels.len() - 1] < 6.0, "{levels:.1?}");
}

#[test]
fn a_bird_sings_each_second_and_a_child_calls_each_10() {
    let birds = alone(seconds(600), birds);
    // The notes of a song follow within 80 ms; two birds may sing at once.
    let songs = sounding(&birds).chunk_by(|a, b| b - a <= 9).count();
    assert!((500..=620).contains(&songs), "{songs} songs in 600 s");
    for voices in [imitate_voices(), Voices::new(&[hum(300.0)], &mut stream())] {
        let child = alone(seconds(600), |audio, stream| children(audio, &voices, stream));
        check(&begins(&child, 2.0), 60..=60, 6.0..=14.0);
    }
}

#[test]
fn a_monitor_beeps_each_second_at_minus_12_db_and_a_page_comes_each_20_s() {
    let beeps = alone(seconds(60), |audio, _| monitor(audio));
    let begins_at = begins(&beeps, 0.5);
    check(&begins_at, 60..=60, 0.99..=1.01);
    let bed_db = db(power(&ventilation(seconds(60), &mut stream())));
    for at in begins_at {
        let from = (at * RATE) as usize;
        let second = &beeps[from - BLOCK..(from - BLOCK + seconds(1)).min(beeps.len())];
        let sounds = |x: &f32| x.abs() > 1e-3;
        let (first, last) = (second.iter().position(sounds), second.iter().rposition(sounds));
        let sounds_ms = (last.unwrap_or_default() - first.unwrap_or_default()) / 16;
        assert!((95..=100).contains(&sounds_ms), "{sounds_ms} ms");
        let tone = &beeps[from + BLOCK..from + 9 * BLOCK];
        let level_db = db(power(tone)) - bed_db;
        assert!((level_db + 12.0).abs() < 0.5, "{level_db:.1} dB");
        let turns = tone.windows(2).filter(|pair| pair[0] < 0.0 && pair[1] >= 0.0).count();
        assert!((79..=81).contains(&turns), "{turns} waves in 80 ms");
    }
    for voices in [imitate_voices(), Voices::new(&[hum(700.0)], &mut stream())] {
        let paged = alone(seconds(600), |audio, stream| pages(audio, &voices, stream));
        let begins = begins(&paged, 8.0);
        check(&begins, 30..=30, 15.0..=25.0);
        for at in begins {
            let from = ((at + 1.0) * RATE) as usize;
            let words = &paged[from.min(paged.len())..(from + 2 * seconds(1)).min(paged.len())];
            assert!(words.len() < seconds(2) || db(power(words)) > -12.0, "nobody speaks after the tones");
        }
    }
}

/// Returns for each 20 ms whether a talker who hums at `hz` is audible in `audio`.
fn audible_blocks(audio: &[f32], hz: f64) -> Vec<bool> {
    let mut band = audio.to_vec();
    biquad::filter(&mut band, biquad::high_pass_4(hz / 1.3));
    biquad::filter(&mut band, biquad::low_pass_4(hz * 1.3));
    powers(&band, 2 * BLOCK).iter().map(|&power| db(power) > -15.0).collect()
}

fn share(of: &[bool]) -> f64 {
    of.iter().filter(|yes| **yes).count() as f64 / of.len() as f64
}

#[test]
fn two_near_voices_speak_70_percent_of_the_time_their_gaps_counted() {
    let audio = scene(Kind::Talking, Seed(3), seconds(300), &[hum(400.0), hum(2400.0)]);
    let [one, other] = [400.0, 2400.0].map(|hz| audible_blocks(&audio, hz));
    for voice in [&one, &other] {
        assert!((share(voice) - 0.7).abs() < 0.05, "{:.2} of the time", share(voice));
    }
    let both: Vec<bool> = one.iter().zip(&other).map(|(one, other)| *one && *other).collect();
    assert!((share(&both) - 0.49).abs() < 0.08, "{:.2} of the time both", share(&both));
}

#[test]
fn an_announcer_has_60_percent_of_a_loop_in_spans_of_5_to_15_s() {
    for seed in 1..9 {
        let length = seconds(60);
        // A voice without gaps, where music has little.
        let hum: Arc<[i16]> =
            (0..seconds(5)).map(|n| (6000.0 * (TAU * 3000.0 * n as f64 / RATE).sin()) as i16).collect();
        let audio = scene(Kind::Tv, Seed(seed), length, &[hum]);
        let mut band = audio.clone();
        biquad::filter(&mut band, biquad::high_pass_4(2700.0));
        biquad::filter(&mut band, biquad::low_pass_4(3300.0));
        let (band, whole) = (powers(&band, 10 * BLOCK), powers(&audio, 10 * BLOCK));
        let hums: Vec<bool> = band.iter().zip(&whole).map(|(band, whole)| band / whole > 0.5).collect();
        // An announcer draws breath for less than half a second; the first and the last block are half a fade.
        let hears = |from: usize, to: usize| hums[from..to.min(hums.len())].contains(&true);
        let speaks = |at: usize| hears(at.saturating_sub(5), at + 1) && hears(at, at + 6);
        let words: Vec<bool> = (1..hums.len() - 1).map(speaks).collect();
        assert!((share(&words) - 0.6).abs() < 0.03, "seed {seed}: words for {:.2} of the time", share(&words));
        let spans: Vec<f64> = words.chunk_by(|a, b| a == b).map(|span| span.len() as f64 / 10.0).collect();
        assert!(spans.iter().all(|span| (5.0..=15.0).contains(span)), "seed {seed}: {spans:?}");
    }
}
