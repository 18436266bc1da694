//! The people of a place: different voices, as the synthesizer has them, that say everyday sentences.

use std::sync::Arc;

use ringer_human::talk::{SENTENCES, talk};
use ringer_media::frame::PER_MS;
use ringer_media::seed::Seed;
use ringer_provider::{Failure, Synthesizer, VoiceWanted, whole_speech};

/// Speech of each person at 16 kHz.
pub(super) type People = Vec<Arc<[i16]>>;

/// Number of people in a place.
const PEOPLE: usize = 12;
/// The first of them are near, where single words are heard: they say this many sentences, about half a minute.
const NEAR: usize = 2;
const MANY: usize = 6;
/// Sentences of everybody else.
const FEW: usize = 2;
/// Silence after a sentence (200 ms).
const PAUSE: usize = 200 * PER_MS as usize;
/// Accents of English, two voices each, the best understood first.
const ENGLISH: [Option<&str>; 4] = [None, Some("scottish"), Some("british"), Some("american2")];

/// Returns the people of a place where `language` is spoken. One sentence is made after the other, and none takes a
/// call's time.
pub(super) async fn people(language: &str, seed: Seed, synthesizer: &dyn Synthesizer) -> Result<People, Failure> {
    let sentences = talk(language).ok_or_else(|| Failure {
        code: "no_talk_for_language",
        message: format!("there are no sentences for background voices in language {language}"),
    })?;
    let mut people = People::new();
    for number in 0..PEOPLE {
        let accent = if language == "en" { ENGLISH[number / 2 % ENGLISH.len()] } else { None };
        let voice = synthesizer.voice(&VoiceWanted {
            accent: accent.map(Into::into),
            gender: Some(if number % 2 == 0 { "female" } else { "male" }.into()),
            speed: if number % 3 == 2 { "fast" } else { "normal" }.into(),
            seed: Seed(seed.stream(&format!("person {number}")).bits().into()),
            ..VoiceWanted::of(language)
        })?;
        let voice = voice.for_later();
        let mut said = Vec::new();
        for sentence in 0..if number < NEAR { MANY } else { FEW } {
            let text = sentences[(number * 3 + sentence) % SENTENCES];
            said.extend_from_slice(&whole_speech(synthesizer, text, &voice).await?);
            said.resize(said.len() + PAUSE, 0);
        }
        people.push(said.into());
    }
    Ok(people)
}

#[cfg(test)]
mod tests {
    use ringer_provider::speech::EmbeddedSpeech;

    use super::*;

    #[tokio::test]
    async fn the_installed_programs_speak_for_everybody() {
        let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
        let people = people("en", Seed(1), &speech).await.expect("the programs are installed");
        assert_eq!(people.len(), PEOPLE);
        for (number, said) in people.iter().enumerate() {
            let (seconds, least) = (said.len() / 16_000, if number < NEAR { 15 } else { 4 });
            assert!((least..40).contains(&seconds), "person {number}: {seconds} s");
            assert!(!people[..number].contains(said), "person {number} sounds like another");
        }
    }

    #[tokio::test]
    async fn every_language_has_a_voice_that_says_its_sentences() {
        let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
        let languages = ["en", "es", "pt", "ja", "tr", "zh", "yue", "hi", "ml", "ar", "ru", "fr", "vi", "de", "ko"];
        for language in languages {
            let wanted = VoiceWanted { gender: Some("female".into()), seed: Seed(1), ..VoiceWanted::of(language) };
            let voice = speech.voice(&wanted).unwrap_or_else(|why| panic!("{language}: {}", why.message));
            let said = whole_speech(&speech, talk(language).expect("it has talk")[0], &voice).await;
            let seconds = said.unwrap_or_else(|why| panic!("{language}: {}", why.message)).len() as f64 / 16_000.0;
            assert!((1.5..12.0).contains(&seconds), "{language}: {seconds} s");
        }
    }
}
