//! The synthesizer with a real voice: speed, seed, what is kept.

use std::collections::BTreeMap;

use ringer_media::level;

use super::*;
use crate::models::test_model;
use crate::timbre::speech_s;

/// Thirty sentences of calls.
const SENTENCES: &str = include_str!("../../../fixtures/speech/sentences.txt");

#[test]
fn without_voices_it_is_told_what_brings_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let embedded = Arc::new(EmbeddedSpeech::new().expect("there is a temporary folder"));
    let made = PiperSpeech::new(&[folder.path().to_owned()], BTreeMap::new(), None, embedded);
    let failure = made.err().expect("there is no voice");
    assert_eq!((failure.code, failure.message.contains("`ringer models add`")), ("synthesizer_missing", true));
}

fn speech(kept: Option<PathBuf>) -> PiperSpeech {
    let embedded = Arc::new(EmbeddedSpeech::new().expect("there is a temporary folder"));
    PiperSpeech::new(&[test_model("joe")], BTreeMap::new(), kept, embedded).expect("the voice is whole")
}

fn wish(gender: &str, speed: &str, seed: u64) -> VoiceWanted {
    VoiceWanted {
        gender: Some(gender.into()),
        speed: speed.into(),
        seed: ringer_media::seed::Seed(seed),
        ..VoiceWanted::of("en")
    }
}

/// Sentences by the clause, with what was said.
async fn say(speech: &PiperSpeech, text: &str, voice: &Voice) -> Vec<Arc<[i16]>> {
    let (out, mut parts) = mpsc::channel(64);
    speech.synthesize(text, voice, out).await.expect("it is said");
    let mut pieces = Vec::new();
    while let Some(spoken) = parts.recv().await {
        match spoken {
            Spoken::Audio(pcm) => pieces.push(pcm),
            Spoken::Fallback(failure) => panic!("{failure:?}"),
        }
    }
    pieces
}

#[tokio::test]
async fn a_neural_voice_is_given_the_spoken_form() {
    let speech = speech(None);
    let voice = speech.voice(&wish("male", "normal", 3)).expect("there is one");
    let known = speech.find(&voice.id).expect("it is known");
    speech.cache.put(&key(known, &voice, "It is 40 dollars."), &Arc::from([7]));
    assert_eq!(say(&speech, "It is $40.", &voice).await.concat(), [7]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_neural_voice_has_the_asked_speed_and_level() {
    let speech = speech(None);
    let texts: Vec<&str> = SENTENCES.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    for (speed, count, expect_wpm) in [("slow", 6, 140.0), ("normal", 30, 170.0), ("fast", 6, 205.0)] {
        let texts = &texts[texts.len() - count..];
        let voice = speech.voice(&wish("male", speed, 3)).expect("there is one");
        assert_eq!(voice.id, "piper:en_US-joe-medium");
        let (mut words, mut seconds) = (0, 0.0);
        for text in texts {
            let pcm = say(&speech, text, &voice).await.concat();
            words += text.split_whitespace().count();
            seconds += speech_s(&pcm);
            let level = level::active_level_dbov(&pcm, 16_000).expect("not silent").level_dbov;
            assert!((level + 26.0).abs() < 0.5, "{speed}: {level} dBov");
            assert!(pcm.iter().all(|x| x.unsigned_abs() < 23_300), "{speed}: peak above -3 dBFS");
        }
        let wpm = words as f32 * 60.0 / seconds;
        println!("{speed}: {wpm:.0} words a minute over {count} sentences");
        assert!((wpm / expect_wpm - 1.0).abs() < 0.08, "{speed}: {wpm} words a minute");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_s_seed_gives_its_samples_and_the_first_clause_comes_first() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = "Good morning, my appointment was moved to Thursday, but I cannot make it, so please tell me what else you have.";
    let (one, other) = (speech(Some(folder.path().to_owned())), speech(None));
    let voice = one.voice(&wish("male", "normal", 5)).expect("there is one");
    let first = say(&one, text, &voice).await;
    assert!(first.len() >= 3 && first[0].len() < 32_000, "{:?}", first.iter().map(|pcm| pcm.len()).collect::<Vec<_>>());
    assert!(first.concat() == say(&other, text, &voice).await.concat(), "the same call, other samples");
    let second = one.voice(&wish("male", "normal", 6)).expect("there is one");
    assert!(first.concat() != say(&one, text, &second).await.concat(), "another call, the same samples");
    // The speech is on disk: in one piece, as it was.
    let again = speech(Some(folder.path().to_owned()));
    let kept = say(&again, text, &voice).await;
    assert!(kept.len() == 1 && kept[0][..] == first.concat()[..], "{} pieces", kept.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_neural_voice_speaks_the_installed_programs_do() {
    let speech = speech(None);
    let check = |wanted: VoiceWanted, expect: &str| {
        let voice = speech.voice(&wanted).expect("there is a voice");
        assert!(voice.id.starts_with(expect), "{}", voice.id);
        voice
    };
    check(wish("female", "normal", 1), "flite:slt");
    check(VoiceWanted::of("en"), "piper:en_US-joe-medium");
    let german = check(VoiceWanted::of("de"), "espeak-ng:de");
    assert!(!say(&speech, "Guten Tag.", &german).await.concat().is_empty());
    let voice = check(wish("male", "normal", 1), "piper:");
    assert!(voice.fallback.is_some_and(|other| other.id.starts_with("flite:rms")), "who speaks when it fails");
}
