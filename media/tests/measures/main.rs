//! Measures against signals that are made here from `fixtures/audio/measures.json`, where the values stand that they
//! have to measure. Nothing of the measures is used to make them.

mod echo;

use std::f64::consts::TAU;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use ringer_media::measure::{Channel, Conversation, Sound, Span, metrics, segments, sound};
use serde_json::Value;

const RATE: f64 = 16_000.0;

fn fixture() -> Value {
    serde_json::from_str(include_str!("../../../fixtures/audio/measures.json")).expect("JSON")
}

fn place(seconds: f64) -> usize {
    (seconds * RATE).round() as usize
}

fn spans(list: &Value) -> Vec<Span> {
    let span = |pair: &Value| {
        let at = |n: usize| place(pair[n].as_f64().expect("a second")) as i64;
        Span { from: at(0), to: at(1) }
    };
    list.as_array().into_iter().flatten().map(span).collect()
}

/// Returns uniform noise of this RMS, the same at every run.
fn noise(count: usize, dbfs: f64) -> impl Iterator<Item = f64> {
    let peak = 32_768.0 * 10f64.powf(dbfs / 20.0) * 3f64.sqrt();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    (0..count).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        peak * ((state >> 11) as f64 / (1u64 << 52) as f64 - 1.0)
    })
}

fn part(part: &Value) -> Vec<f64> {
    if let Some(seconds) = part["silence"].as_f64() {
        return vec![0.0; place(seconds)];
    }
    let count = place(part["s"].as_f64().expect("seconds"));
    let peak = 32_768.0 * 10f64.powf(part["dbfs"].as_f64().unwrap_or(0.0) / 20.0);
    if let Some(run) = part["pulses"].as_u64() {
        let every = part["every"].as_u64().expect("a distance");
        return (0..count as u64).map(|n| if n % every < run { 40_000.0 } else { 3000.0 }).collect();
    }
    if let Some(hz) = part["tone"].as_f64() {
        return (0..count).map(|n| peak * (TAU * hz * n as f64 / RATE).sin()).collect();
    }
    // Ten harmonics, weaker upwards, whose pitch sways once a second.
    let (hz, sway) = (part["voice"].as_f64().expect("a kind of part"), part["sway"].as_f64().unwrap_or(0.0));
    let mut phase = 0.0;
    let sample = |n: usize| {
        phase += TAU * hz * 2f64.powf(sway * (TAU * n as f64 / RATE).sin() / 12.0) / RATE;
        (1..=10).map(|k| (f64::from(k) * phase).sin() / f64::from(k)).sum::<f64>() * peak / 2.0
    };
    (0..count).map(sample).collect()
}

fn signal(case: &Value) -> Vec<i16> {
    let mut wave: Vec<f64> = case["parts"].as_array().expect("parts").iter().flat_map(part).collect();
    if let Some(dbfs) = case["noise_dbfs"].as_f64() {
        let count = wave.len();
        wave.iter_mut().zip(noise(count, dbfs)).for_each(|(x, n)| *x += n);
    }
    wave.into_iter().map(|x| x.round().clamp(-32_768.0, 32_767.0) as i16).collect()
}

#[track_caller]
fn check(name: &str, expect: &Value, found: impl Fn(&str) -> Option<f64>) {
    for (measure, expect) in expect.as_object().expect("measures") {
        let found = found(measure);
        match (expect.as_array(), found) {
            (None, None) => {}
            (Some(pair), Some(found)) => {
                let [value, tolerance] = [0, 1].map(|n| pair[n].as_f64().expect("a number"));
                println!("{name}: {measure} {found} (expected {value} +-{tolerance})");
                assert!((found - value).abs() <= tolerance + 1e-9, "{name}: {measure} {found}, not {value}");
            }
            _ => panic!("{name}: {measure} is {found:?}, not {expect}"),
        }
    }
}

fn value(sound: &Sound, measure: &str) -> Option<f64> {
    match measure {
        "loudness_lufs" => sound.loudness_lufs,
        "clipping_percent" => Some(sound.clipping_percent),
        "snr_db" => sound.snr_db,
        "noise_dbfs" => sound.noise_dbfs,
        "dropouts" => Some(sound.dropouts as f64),
        "dropout_ms" => Some(sound.dropout_ms),
        "pitch_semitones" => sound.pitch_semitones,
        "clarity" => sound.clarity,
        other => panic!("no measure {other}"),
    }
}

#[test]
fn sounds_measure_what_they_are_made_of() {
    let fixture = fixture();
    for case in fixture["signals"].as_array().expect("signals") {
        let (name, pcm) = (case["name"].as_str().expect("a name"), signal(case));
        let [speech, concealed, apart] = ["speech", "concealed", "apart"].map(|kind| spans(&case[kind]));
        let channel =
            Channel { pcm: &pcm, speech: &speech, concealed: &concealed, apart: &apart, full_scale: 32_768, idle: 0 };
        match sound(&channel) {
            Some(sound) => check(name, &case["expect"], |measure| value(&sound, measure)),
            None => assert!(case["expect"].is_null(), "{name}: nothing was measured"),
        }
    }
}

#[test]
fn a_codec_that_carries_less_is_clipped_earlier() {
    let pcm: Vec<i16> = (0..64_000).map(|n| if n % 10 < 5 { 32_124 } else { 4000 }).collect();
    let speech = [Span { from: 0, to: 64_000 }];
    for (full_scale, percent) in [(32_768, 0.0), (32_124, 50.0)] {
        let channel = Channel { pcm: &pcm, speech: &speech, concealed: &[], apart: &[], full_scale, idle: 0 };
        assert_eq!(sound(&channel).map(|sound| sound.clipping_percent), Some(percent));
    }
}

/// Returns speech of flite, 16 kHz.
fn say(voice: &str) -> Vec<i16> {
    let text = "I would really like to know when my order will arrive because nobody could tell me anything about it";
    static FILES: AtomicU32 = AtomicU32::new(0);
    let file = FILES.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("ringer-measures-{}-{file}.wav", std::process::id()));
    let status = Command::new("flite").args(["-voice", voice, "-t", text, "-o"]).arg(&path).status();
    assert!(status.expect("the package flite is installed").success());
    let bytes = std::fs::read(&path).expect("flite wrote a file");
    std::fs::remove_file(&path).expect("it is ours");
    bytes[44..].chunks_exact(2).map(|two| i16::from_le_bytes([two[0], two[1]])).collect()
}

/// Returns `count` samples of speech that begin and end loud.
fn first_samples(clip: &[i16], count: usize) -> &[i16] {
    let loud =
        |block: &[i16]| block.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / block.len() as f64 > 1000f64.powi(2);
    let fits = |from: &usize| loud(&clip[*from..*from + 160]) && loud(&clip[*from + count - 160..*from + count]);
    let from = (0..clip.len() - count).step_by(80).find(fits).expect("loud edges");
    &clip[from..from + count]
}

#[test]
fn a_natural_voice_has_a_melody_and_no_dropouts() {
    for (voice, range) in [("slt", 0.5..6.0), ("rms", 0.5..6.0), ("awb", 0.5..6.0)] {
        let mut pcm = say(voice);
        pcm.resize(pcm.len() + 24_000, 0);
        let speech = segments(&pcm);
        let found =
            sound(&Channel { pcm: &pcm, speech: &speech, concealed: &[], apart: &[], full_scale: 32_768, idle: 0 })
                .expect("speech");
        println!("{voice}: {found:?}");
        assert!(found.pitch_semitones.is_some_and(|pitch| range.contains(&pitch)), "{voice}: {found:?}");
        assert_eq!((found.dropouts, found.clipping_percent), (0, 0.0), "{voice}");
    }
}

#[test]
fn a_conversation_measures_as_it_was_laid_out() {
    let fixture = fixture();
    let case = &fixture["conversation"];
    let length = place(case["seconds"].as_f64().expect("seconds"));
    let channel = |side: &str, voice: &str| {
        let (clip, mut pcm) = (say(voice), vec![0; length]);
        for span in spans(&case[side]) {
            let said = first_samples(&clip, span.length() as usize);
            pcm[span.from as usize..span.to as usize].copy_from_slice(said);
        }
        let found = segments(&pcm);
        let ms = |span: &Span| (span.from / 16, span.to / 16);
        println!("{side}: {:?}", found.iter().map(ms).collect::<Vec<_>>());
        found
    };
    let conversation = Conversation {
        duration: length as i64,
        dh: channel("dh", "slt"),
        agent: channel("agent", "awb"),
        interface: "PHONE",
        ..Conversation::default()
    };
    let found = serde_json::to_value(metrics(&conversation)).expect("metrics are plain numbers");
    check("conversation", &case["expect"], |measure| found.get(measure).expect("a metric").as_f64());
}
