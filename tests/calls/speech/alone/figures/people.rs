//! Recordings of people: the words that an evaluated call has, beside those of the same model on the whole recording.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringer::provider::audio::decode_call;
use ringer::provider::whisper::WhisperRecognizer;
use ringer::provider::{Recognized, Recognizer, SpokenIn};
use ringer_media::clip::write_wav;
use ringer_media::codec::{Codec, Decoder, Encoder};
use ringer_media::resample::resample_whole;
use serde_json::{Value, json};

use super::super::neural::{Asked, bring_models, model_cache};
use crate::program::{Program, up};
use trial::wrong;

#[path = "../../../../../speech/tests/trial/mod.rs"]
mod trial;

/// Recordings in two groups, with their words. The words came with the recordings (those of `alsa` are their names),
/// without "um" and "uh". Those of `detector`, `falsetto` and `multilingual_ipa_us_2` to `_5` were written
/// down from what tiny.en and base heard.
const PEOPLE: &str = include_str!("../../../../../fixtures/speech/people.txt");

/// Returns a recording as a telephone gives it, 8 kHz.
fn telephone(path: &Path) -> Vec<i16> {
    let bytes = std::fs::read(path).unwrap_or_else(|_| panic!("{}: run tests/speech_recordings.sh", path.display()));
    let sound = decode_call(bytes, false).expect("the recording is whole").sides.remove(0);
    let pcm = resample_whole(&sound, 16_000, 8000);
    let (mut bytes, mut heard) = (vec![0; pcm.len()], vec![0; pcm.len()]);
    let count = Encoder::new(Codec::Pcmu).encode(&pcm, &mut bytes);
    Decoder::new(Codec::Pcmu).decode(&bytes[..count], &mut heard);
    heard
}

/// Returns the words of the model alone: it is given the whole recording.
async fn alone(recognizer: &WhisperRecognizer, pcm: &[i16]) -> String {
    let (mut feed, mut news) = recognizer.open(SpokenIn::Likely("en"), &[]);
    feed.push(&resample_whole(pcm, 8000, 16_000));
    feed.finish();
    let mut text = String::new();
    while let Some(said) = news.recv().await {
        if let Recognized::Final { text: all, .. } = said {
            text = all;
        }
    }
    text
}

/// Returns the words that the program recognised in the only call of its data folder, and removes them.
fn take_words(folder: &Path) -> Option<String> {
    let mut entries = std::fs::read_dir(folder).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    entries.find_map(|path| {
        if path.is_dir() {
            return take_words(&path);
        }
        let words: Value = path.ends_with("transcript.json").then(|| std::fs::read(&path).ok())?.map(|bytes| {
            std::fs::remove_file(&path).expect("the folder is writable");
            serde_json::from_slice(&bytes).expect("JSON")
        })?;
        let entries = words["entries"].as_array().expect("entries").iter();
        Some(entries.filter_map(|entry| entry["utterance"].as_str()).collect::<Vec<_>>().join(" "))
    })
}

#[expect(clippy::disallowed_methods, reason = "the place of the recordings is no setting of the program")]
fn people() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    named("RINGER_PEOPLE_CACHE").unwrap_or_else(|| named("HOME").unwrap_or_default().join(".cache/ringer-test-people"))
}

/// The words of people in a call are as good as those of the model alone, to 2 points for short
/// clips and 8 for long recordings.
#[tokio::test(flavor = "multi_thread")]
async fn people_are_heard_as_the_model_alone_hears_them() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    bring_models(folder.path());
    let mut engine = Program::start(&mut up(folder.path()));
    let asked = Asked { base: engine.address("http://").await };
    let agent = asked.post("/v1/add-agent", json!({ "name": "Desk", "sip_uri": "sip:desk@127.0.0.1" })).await;
    let recognizer = WhisperRecognizer::new(&model_cache().join("tiny.en"), 1).expect("the model is whole");
    // Words, and those that the model alone and the program had wrong: short clips, long recordings.
    let mut counts = [[0; 3]; 2];
    let mut group = 0;
    for line in PEOPLE.lines() {
        let Some((name, words)) = line.split_once('\t') else {
            group = usize::from(line == "long");
            continue;
        };
        let pcm = telephone(&people().join(name));
        let body = json!({
            "agent_id": agent["agent_id"].to_string(), "start_time_utc": "2026-01-05T08:00:00Z",
            "participants": [{ "role": "AGENT", "spoke_first": true, "name": "Desk" }, { "role": "USER" }],
            "recording_base64": format!("data:audio/wav;base64,{}", STANDARD.encode(write_wav(8000, 1, &pcm))),
        });
        let log = asked.evaluate(body).await;
        let heard = take_words(folder.path()).unwrap_or_else(|| panic!("{name} has no words: {log}"));
        let [(of_model, all), (of_call, _)] = [alone(&recognizer, &pcm).await, heard].map(|text| wrong(words, &text));
        println!("{name}: {all} words, wrong: the model alone {of_model}, a call {of_call}");
        counts[group].iter_mut().zip([all, of_model, of_call]).for_each(|(sum, count)| *sum += count);
    }
    for (name, [all, of_model, of_call], points) in [("short", counts[0], 2.0), ("long", counts[1], 8.0)] {
        let [of_model, of_call] = [of_model, of_call].map(|wrong| 100.0 * wrong as f64 / all as f64);
        println!("people, {name}: {all} words, the model alone {of_model:.1} % wrong, a call {of_call:.1} %");
        assert!(of_call <= of_model + points, "{name}: {of_call:.1} and {of_model:.1} %");
    }
    engine.kill().await;
}
