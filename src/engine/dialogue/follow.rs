//! The language of the agent, followed in writing.

use ringer_human::language::Found;
use ringer_human::phrases::is_spoken;
use ringer_media::call::{EventKind, Side};
use ringer_media::detected_language::DetectedLanguage;
use ringer_media::frame::PER_MS;

use super::{Dialogue, Output, UnansweredTurn};

impl Dialogue {
    /// Writes the agent's language from now on, once it is known to be another one.
    pub(super) fn follow(&mut self, turn: &UnansweredTurn) {
        if !self.spec.follows_language {
            return;
        }
        let news = self.follower.hear(i64::from(self.turns), &turn.text, &DetectedLanguage::Unknown);
        let Some((_, Found { language, by })) = news.filter(|(_, found)| is_spoken(&found.language)) else { return };
        let from_sample = (turn.first_ms - self.began_ms.unwrap_or(turn.first_ms)) * PER_MS;
        let taken = EventKind::LanguageTaken { language: language.clone(), by: by.into(), from_sample };
        self.event(turn.last_ms, Side::Engine, taken);
        self.out.push_back(Output::Speak(language));
    }
}
