//! The kept sentences: where they come from, and who speaks them.

use std::path::PathBuf;

use ringer_media::{clip, level};

use super::*;
use crate::kokoro::{Given, KokoroSpeech};
use crate::models::test_model;
use crate::speech::EmbeddedSpeech;

/// Sentences with their voices: `VOICE|WORDS` in each line.
const SENTENCES: &str = include_str!("../../../fixtures/voices/sentences.txt");
/// Names the folder that the sentences are written to, as WAV files.
const FOLDER: &str = "RINGER_VOICES";

fn lines() -> Vec<(&'static str, &'static str)> {
    SENTENCES.lines().map(|line| line.split_once('|').expect("a voice and its words")).collect()
}

fn wish_for(name: &str) -> VoiceWanted {
    VoiceWanted { custom_voice_id: Some(format!("{PREFIX}{name}")), ..VoiceWanted::of("en") }
}

fn program() -> RecordedSpeech {
    RecordedSpeech::new(Arc::new(EmbeddedSpeech::new().expect("there is a temporary folder")))
}

/// Writes the sentences, where a folder for them is named: `fixtures/voices/make.sh` does.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "only the script names it: no setting of the engine")]
async fn sentences_are_written() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let behind = Arc::new(EmbeddedSpeech::new().expect("there is a temporary folder"));
    let speech = KokoroSpeech::new(&test_model("kokoro"), Given::ByName, None, behind).expect("the voices are whole");
    for (at, (name, words)) in lines().into_iter().enumerate() {
        let voice = speech.voice(&wish_for(name)).expect("there is this voice");
        let pcm = crate::whole_speech(&speech, words, &voice).await.expect("it is said");
        let path = folder.join(format!("{:02}.wav", at + 1));
        std::fs::write(path, clip::write_wav(16_000, 1, &pcm)).expect("the folder is writable");
    }
}

#[test]
fn the_kept_sentences_are_those_of_the_list_and_small() {
    let kept: Vec<(&str, &str)> = KEPT.iter().map(|(name, words, _)| (*name, *words)).collect();
    assert_eq!(kept, lines(), "fixtures/voices/make.sh makes them anew");
    let bytes: usize = KEPT.iter().map(|kept| kept.2.len()).sum();
    assert!(bytes <= 400_000, "{bytes} bytes");
}

#[test]
fn a_kept_sentence_is_loud_and_begins_at_once() {
    let speech = program();
    for (at, (name, words, _)) in KEPT.iter().enumerate() {
        let pcm = speech.decode(at).expect("it is an Opus file");
        let level = level::active_level_dbov(&pcm, 16_000).expect("not silent").level_dbov;
        // The gain of several clauses is the voice's own, and moves slowly.
        assert!((level + 26.0).abs() < 2.5, "{name} {words}: {level} dBov");
        let speech = clip::trim_silence(&pcm);
        assert!(speech.start < 1600, "{name} {words}: {} samples of silence", speech.start);
        let seconds = pcm.len() as f32 / 16_000.0;
        let count = words.split_whitespace().count() as f32;
        assert!((0.15 * count..0.8 * count + 0.6).contains(&seconds), "{name} {words}: {seconds} s");
    }
}

#[tokio::test]
async fn a_voice_that_is_named_has_the_kept_sentences_and_others_say_the_rest() {
    let speech = program();
    let voice = speech.voice(&wish_for("af_heart")).expect("it is kept");
    let other = voice.fallback.as_deref().expect("somebody says the rest");
    assert_eq!((voice.id.as_str(), other.id.as_str()), ("kokoro:af_heart", "flite:slt"));
    let british = speech.voice(&wish_for("bm_george")).expect("it is kept").fallback.expect("somebody says the rest");
    assert!(british.id.starts_with("espeak-ng:en+m"), "{}", british.id);
    assert_eq!(speech.model(&voice).await, Some(ModelName::new("recorded", "af_heart")));
    let say = async |text: &str, voice: &Voice| {
        let (out, mut parts) = mpsc::channel(8);
        speech.synthesize(text, voice, out).await.expect("it is said");
        let mut pieces = Vec::new();
        while let Some(piece) = parts.recv().await {
            pieces.push(piece);
        }
        pieces
    };
    let both = say("Yes, I can help you. Please tell me your date of birth.", &voice).await;
    let [Spoken::Audio(pcm)] = &both[..] else { panic!("{} pieces", both.len()) };
    let each =
        [0, 1].map(|at| sentences("af_heart", ["Yes, I can help you.", "Please tell me your date of birth."][at]));
    let lengths = each.map(|places| places.map_or(0, |places| speech.decode(places[0]).map_or(0, |pcm| pcm.len())));
    assert_eq!(pcm.len(), lengths[0] + lengths[1] + 5600);
    let free = say("This was never written down.", &voice).await;
    assert!(matches!(&free[..], [Spoken::Fallback(why), Spoken::Audio(_)] if why.code == "synthesizer_missing"));
    // At another speed the sentences are not as they were kept.
    assert!(speech.find("Yes, of course.", &voice).is_some());
    assert!(speech.find("Yes, of course.", &voice.clone().at(205.0)).is_none());
    let unnamed = speech.voice(&VoiceWanted { gender: Some("female".into()), ..VoiceWanted::of("en") });
    assert_eq!(unnamed.map(|voice| voice.id).as_deref(), Ok("flite:slt"));
    assert_eq!(speech.voice(&wish_for("nobody")).map_err(|failure| failure.code), Err("unknown_voice"));
}

#[test]
fn only_whole_sentences_are_found() {
    for (text, kept) in [
        ("Yes, of course. Would Thursday at eleven be better for you?", true),
        ("Yes, of course, sir.", false),
        ("Yes, of course.Okay.", false),
        ("", true),
    ] {
        assert_eq!(is_kept("kokoro:af_heart", text), kept, "{text}");
    }
    assert!(!is_kept("flite:slt", "Okay.") && !is_kept("kokoro:bm_george", "Okay."));
}
