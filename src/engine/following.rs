//! Following the other side's language: what a call speaks with once its turns have shown another language.

use ringer_human::language::Follower;
use ringer_human::phrases;
use ringer_media::call::Effected;
use ringer_media::detected_language::DetectedLanguage;
use ringer_provider::{Synthesizer, Voice, VoiceWanted};

/// Follows the other side's language in one call.
pub(super) struct Following {
    follower: Follower,
    /// The voice but for its language, which is the one that is spoken.
    wanted: VoiceWanted,
    /// Speed of the voice in words per minute.
    rate_wpm: Option<f32>,
    /// Reason why turns cannot show their language.
    deaf: Option<String>,
    /// Languages that could not be followed, or not by the voice that was wanted.
    refused: Vec<String>,
}

/// Change to another language, spoken from now on.
pub(super) struct Taken {
    pub language: String,
    /// `None`: the voice that is spoken with goes on.
    pub voice: Option<Voice>,
    /// Result of the effect, for the call.
    pub effected: Effected,
}

impl Following {
    /// Begins in `language`, with this voice: every other one is as fast.
    pub(crate) fn new(wanted: VoiceWanted, language: &str, voice: Option<&Voice>) -> Following {
        let wanted = VoiceWanted { language: language.to_owned(), ..wanted };
        let rate_wpm = voice.map(|voice| voice.rate_wpm);
        Following { follower: Follower::default(), wanted, rate_wpm, deaf: None, refused: Vec::new() }
    }

    /// Notes if turns have a text that shows their language; else the reason why not.
    pub(crate) fn can_hear(&mut self, heard: Result<(), String>) {
        self.deaf = heard.err();
    }

    /// Returns a turn of the other side, named by its onset.
    pub(crate) fn hear(
        &mut self,
        turn: i64,
        text: &str,
        detected: &DetectedLanguage,
        synthesizer: &dyn Synthesizer,
    ) -> Option<Taken> {
        let (turn, found) = self.follower.hear(turn, text, detected)?;
        let language = found.language;
        let voice = match self.voice(&language, synthesizer) {
            Ok(voice) => voice,
            Err(why) => {
                self.refused.push(format!("language: the agent speaks {language}, which is not followed: {why}"));
                return None;
            }
        };
        let substituted = voice.as_ref().and_then(|voice| voice.substituted.as_ref());
        self.refused.extend(substituted.map(|what| format!("language: {what}")));
        self.wanted.language.clone_from(&language);
        let phrases = voice.is_some().then(|| Box::new(phrases::call_phrases(&language)));
        let effected = Effected::Language { language: language.clone(), by: found.by, turn, phrases };
        Some(Taken { language, voice, effected })
    }

    fn voice(&self, language: &str, synthesizer: &dyn Synthesizer) -> Result<Option<Voice>, String> {
        if language == self.wanted.language {
            return Ok(None);
        }
        if !phrases::is_spoken(language) {
            return Err("Digital Humans do not speak it".to_owned());
        }
        let wanted = VoiceWanted { language: language.to_owned(), ..self.wanted.clone() };
        let voice = synthesizer.voice(&wanted).map_err(|failure| failure.message)?;
        Ok(Some(match self.rate_wpm {
            Some(rate_wpm) => voice.at(rate_wpm),
            None => voice,
        }))
    }

    /// Returns warnings about the language that was spoken.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let why = match &self.deaf {
            Some(why) => why.as_str(),
            None => "no turn of the agent told it",
        };
        let unknown = || format!("language: the agent's language was not identified, English was spoken: {why}");
        let unknown = (!self.follower.has_found()).then(unknown);
        unknown.into_iter().chain(self.refused.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use ringer_media::seed::Seed;
    use ringer_provider::fake::FakeSynthesizer;

    use super::*;

    const ES: &str = "hola en qué puedo ayudarle hoy";

    fn following() -> Following {
        let wanted = VoiceWanted { seed: Seed(1), ..VoiceWanted::of("") };
        Following::new(wanted, "en", Some(&Voice { rate_wpm: 222.0, ..Voice::default() }))
    }

    #[test]
    fn what_is_followed_is_told_to_the_call() {
        let mut following = following();
        following.can_hear(Ok(()));
        let taken =
            following.hear(320, ES, &DetectedLanguage::Unknown, &FakeSynthesizer::default()).expect("it is Spanish");
        assert_eq!(taken.voice.map(|voice| voice.rate_wpm), Some(222.0));
        assert_eq!(following.warnings(), [""; 0]);
        let phrases = Some(Box::new(phrases::call_phrases("es")));
        let effected = Effected::Language { language: "es".into(), by: "text", turn: 320, phrases };
        assert_eq!(taken.effected, effected);
    }

    #[test]
    fn what_is_spoken_already_is_not_made_anew() {
        let mut following = following();
        let en = "hello how can i help you today";
        let taken =
            following.hear(320, en, &DetectedLanguage::Unknown, &FakeSynthesizer::default()).expect("it is English");
        let effected = Effected::Language { language: "en".into(), by: "text", turn: 320, phrases: None };
        assert_eq!((taken.voice, taken.effected), (None, effected));
    }

    #[test]
    fn what_cannot_be_followed_is_a_warning() {
        let unheard = "language: the agent's language was not identified, English was spoken: ";
        let mut deaf = following();
        deaf.can_hear(Err("the recognizer knows English alone".into()));
        assert!(deaf.hear(0, ES, &DetectedLanguage::Fixed, &FakeSynthesizer::default()).is_none());
        assert_eq!(deaf.warnings(), [format!("{unheard}the recognizer knows English alone")]);

        let mut silent = following();
        silent.can_hear(Ok(()));
        assert!(silent.hear(0, "ok", &DetectedLanguage::Unknown, &FakeSynthesizer::default()).is_none());
        assert_eq!(silent.warnings(), [format!("{unheard}no turn of the agent told it")]);

        let mut italian = following();
        italian.can_hear(Ok(()));
        assert!(
            italian.hear(0, "pronto", &DetectedLanguage::Detected("it".into()), &FakeSynthesizer::default()).is_none()
        );
        let expect = "language: the agent speaks it, which is not followed: Digital Humans do not speak it";
        assert_eq!(italian.warnings(), [expect]);
    }
}
