//! The synthesizer with the real network: speed, samples, what is kept, and who speaks what.

use super::*;
use crate::models::test_model;
use crate::speech::EmbeddedSpeech;
use crate::timbre::speech_s;

fn speech(kept: Option<PathBuf>) -> KokoroSpeech {
    let behind = Arc::new(EmbeddedSpeech::new().expect("there is a temporary folder"));
    KokoroSpeech::new(&test_model("kokoro"), Given::Always, kept, behind).expect("the voices are whole")
}

async fn say(speech: &KokoroSpeech, text: &str, voice: &Voice) -> Vec<Arc<[i16]>> {
    let (out, mut parts) = mpsc::channel(64);
    speech.synthesize(text, voice, out).await.expect("it is said");
    let mut pieces = Vec::new();
    while let Some(Spoken::Audio(pcm)) = parts.recv().await {
        pieces.push(pcm);
    }
    pieces
}

#[test]
fn without_voices_it_is_told_what_brings_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let make = || {
        let behind = Arc::new(EmbeddedSpeech::new().expect("there is a temporary folder"));
        KokoroSpeech::new(folder.path(), Given::Always, None, behind).err().expect("there is no voice")
    };
    assert!(make().message.contains("model.onnx: No such file"));
    std::fs::write(folder.path().join(NETWORK), "").expect("writable");
    let failure = make();
    assert_eq!((failure.code, failure.message.contains("`ringer models add`")), ("synthesizer_missing", true));
}

/// A network that is no network fails the words, and nobody else says them.
#[tokio::test(flavor = "multi_thread")]
async fn a_voice_that_fails_is_not_replaced() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join("voices")).expect("writable");
    for name in [NETWORK, "voices/af_heart.bin"] {
        std::fs::write(folder.path().join(name), "x").expect("writable");
    }
    let behind = Arc::new(EmbeddedSpeech::new().expect("there is a temporary folder"));
    let speech = KokoroSpeech::new(folder.path(), Given::Always, None, behind).expect("its files have names");
    let voice = speech.voice(&VoiceWanted::of("en")).expect("there is one");
    assert_eq!((voice.id.as_str(), &voice.fallback), ("kokoro:af_heart", &None));
    speech.ready(&voice).await;
    speech.prepare(&["Hello.".to_owned()], &voice).await;
    let (out, mut parts) = mpsc::channel(4);
    let failure = speech.synthesize("Hello.", &voice, out).await.expect_err("it cannot speak");
    assert_eq!(failure.code, "synthesizer_failed");
    assert!(failure.message.contains("model.onnx: it is no ONNX network"), "{}", failure.message);
    assert!(parts.recv().await.is_none(), "somebody spoke");
    let german = speech.voice(&VoiceWanted::of("de")).expect("another program speaks it");
    assert!(german.id.starts_with("espeak-ng:de"), "{}", german.id);
    let told = speech.model(&voice).await.map(|model| model.kind);
    assert_eq!(told.as_deref(), Some("kokoro"));
}

/// Words that were prepared are spoken from the disk without the network. The voice's own speed is given, for its
/// measurement takes longer than all else here.
#[tokio::test(flavor = "multi_thread")]
async fn known_words_are_made_before_and_have_the_asked_speed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = "I would like to move my visit to Thursday. Is that all right?".to_owned();
    let make = || {
        let speech = speech(Some(folder.path().to_owned()));
        speech.maker.own.lock().insert("kokoro:af_heart".to_owned(), Arc::new(OnceLock::from(Ok((190.0, 0.0)))));
        speech
    };
    let one = make();
    let wanted = VoiceWanted { custom_voice_id: Some("kokoro:af_heart".into()), ..VoiceWanted::of("en") };
    let voice = one.voice(&wanted).expect("it is there");
    // With the priority of a call: other tests leave no processor idle.
    one.prepare_all(std::slice::from_ref(&text), &voice).await;
    assert!(one.tasks(&text, &voice).expect("it is short").iter().all(|task| task.in_cache().is_some()));
    let said = say(&one, &text, &voice).await;
    assert_eq!(said.len(), 2, "clause by clause");
    let (words, seconds) = (13.0, speech_s(&said.concat()));
    assert!((words * 60.0 / seconds / 170.0 - 1.0).abs() < 0.12, "{} words a minute", words * 60.0 / seconds);
    let again = make();
    let heard = say(&again, &text, &voice).await;
    assert!(heard == said, "the same words, other samples");
    assert!(again.maker.loaded.get().is_none(), "what is on the disk needs no network");
}
