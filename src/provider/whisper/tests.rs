//! The recognizer with a real model, on speech as a telephone gives it.

use std::path::PathBuf;

use ringer_media::codec::{Codec, Decoder, Encoder};
use ringer_media::resample::resample_whole;

use super::*;
use crate::models::test_model;
use crate::speech::EmbeddedSpeech;
use crate::{Synthesizer, VoiceWanted, whole_speech};

#[test]
fn a_model_that_is_not_there_is_named() {
    let failure = WhisperRecognizer::new(&PathBuf::from("/nowhere/tiny"), 1).err().expect("nothing is there");
    assert_eq!(failure.code, "recognizer_missing");
    assert!(failure.message.contains("/nowhere/tiny has neither model.bin nor"), "{}", failure.message);
}

/// Returns speech as a telephone gives it.
async fn telephone(text: &str) -> Vec<i16> {
    let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
    let wanted = VoiceWanted { gender: Some("female".into()), ..VoiceWanted::of("en") };
    let voice = speech.voice(&wanted).expect("English has voices");
    let pcm = whole_speech(&speech, text, &voice).await.expect("flite is installed");
    let pcm = resample_whole(&pcm, 16_000, 8000);
    let (mut bytes, mut heard) = (vec![0; pcm.len()], vec![0; pcm.len()]);
    let count = Encoder::new(Codec::Pcmu).encode(&pcm, &mut bytes);
    Decoder::new(Codec::Pcmu).decode(&bytes[..count], &mut heard);
    resample_whole(&heard, 8000, 16_000)
}

/// Returns all messages of a stretch that is fed in frames of 20 ms.
async fn hear(recognizer: &WhisperRecognizer, running: bool, language: SpokenIn<'_>, pcm: &[i16]) -> Vec<Recognized> {
    hear_with(recognizer, running, language, &[], pcm).await
}

/// Returns the same of a stretch with bias words.
async fn hear_with(
    recognizer: &WhisperRecognizer,
    running: bool,
    language: SpokenIn<'_>,
    keyterms: &[String],
    pcm: &[i16],
) -> Vec<Recognized> {
    let (mut feed, mut news) = match running {
        true => recognizer.open_running(language, keyterms),
        false => recognizer.open(language, keyterms),
    };
    let mut said = Vec::new();
    for (at, frame) in pcm.chunks(320).enumerate() {
        feed.push(frame);
        // A running text is made before the speech goes on, as it would be at the speed of speech.
        if running && at % 60 == 59 {
            said.extend(news.recv().await);
        }
    }
    feed.finish();
    while let Some(message) = news.recv().await {
        said.push(message);
    }
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn narrowband_speech_has_words_with_places() {
    let recognizer = WhisperRecognizer::new(&test_model("tiny.en"), 1).expect("the model is whole");
    assert_eq!(recognizer.supports("en", 8000), Ok(()));
    assert!(recognizer.identifies().is_err());
    let pcm = telephone("I am calling about the invoice that I received yesterday.").await;
    // Silence at the end lets it be heard before the stretch is over.
    let pcm = [pcm, vec![0; 8000]].concat();
    let said = hear(&recognizer, false, SpokenIn::Known("en"), &pcm).await;
    let [Recognized::Final { text, words, confidence, detected_language }] = &said[..] else { panic!("{said:?}") };
    assert!(text.to_lowercase().contains("calling about the invoice"), "{text}");
    assert!(words.iter().all(|word| word.from <= word.to && word.to <= pcm.len() as i64), "{words:?}");
    assert!(confidence.is_some_and(|share| share > 0.5), "{confidence:?}");
    assert_eq!(*detected_language, DetectedLanguage::Unknown);
    let said = hear(&recognizer, true, SpokenIn::Likely("es"), &pcm).await;
    assert!(matches!(&said[0], Recognized::Partial(text) if !text.is_empty()), "{said:?}");
    assert!(
        matches!(said.last(), Some(Recognized::Final { detected_language: DetectedLanguage::Fixed, .. })),
        "{said:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn bias_words_reach_the_model_and_not_silence() {
    let recognizer = WhisperRecognizer::new(&test_model("tiny.en"), 1).expect("the model is whole");
    let keyterms = ["Kowalczyk".to_owned()];
    assert_eq!(recognizer.count_keyterms(&keyterms), 1);
    let pcm = [telephone("Please ask for Mister Kowalczyk at the desk.").await, vec![0; 8000]].concat();
    for (pcm, keyterms, expect) in
        [(&pcm, &keyterms[..], true), (&pcm, &[], false), (&vec![0; 48_000], &keyterms, false)]
    {
        let said = hear_with(&recognizer, false, SpokenIn::Known("en"), keyterms, pcm).await;
        let [Recognized::Final { text, .. }] = &said[..] else { panic!("{said:?}") };
        assert_eq!(text.contains("Kowalczyk"), expect, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_heard_says_why() {
    let recognizer = WhisperRecognizer::new(&test_model("tiny.en"), 1).expect("the model is whole");
    let said = hear(&recognizer, false, SpokenIn::Known("de"), &[0; 3200]).await;
    let [Recognized::Failed(failure)] = &said[..] else { panic!("{said:?}") };
    assert_eq!(failure.code, "unsupported_language");
    assert_eq!(failure.message, "the recognizer's model tiny.en does not understand the language de");
    let said = hear(&recognizer, false, SpokenIn::Known("en"), &[0; 48_000]).await;
    assert!(matches!(&said[..], [Recognized::Final { text, .. }] if text.is_empty()), "{said:?}");
}

/// Tests that have the machine to themselves: their words depend on the time that is left for them.
mod neural {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn long_speech_is_heard_in_pieces() {
        let recognizer = WhisperRecognizer::new(&test_model("tiny.en"), 2).expect("the model is whole");
        let sentence = telephone("My name is Robert Miller and I live in Portland.").await;
        let pause = vec![0; 8000];
        let pcm: Vec<i16> = (0..12).flat_map(|_| [&sentence[..], &pause[..]].concat()).collect();
        let said = hear(&recognizer, false, SpokenIn::Known("en"), &pcm).await;
        let [Recognized::Final { text, words, .. }] = &said[..] else { panic!("{said:?}") };
        let count = text.matches("Portland").count();
        assert!((11..=13).contains(&count), "{count} of 12: {text}");
        assert!(words.last().is_some_and(|word| word.to > pcm.len() as i64 * 9 / 10), "{:?}", words.last());
    }
}
