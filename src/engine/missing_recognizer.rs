//! Features of a call that need speech recognition, and warnings for those that will not work without it. Pure.

use ringer_media::call::{CallSpec, Interruption};
use ringer_provider::Recognizer;
use ringer_provider::keyterms::idle_keyterms;

/// Features of a call that need the other side's words.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WordNeeds {
    script: bool,
    cuts_in: Option<&'static str>,
}

impl WordNeeds {
    /// Returns the features of a call that need words.
    pub(crate) fn of(spec: &CallSpec) -> WordNeeds {
        WordNeeds {
            script: !spec.script.is_empty() || !spec.hangup_phrases.is_empty(),
            cuts_in: match &spec.interruption {
                Interruption::Keywords(_) => Some("keywords"),
                Interruption::Contextual { .. } => Some("contextual"),
                Interruption::None | Interruption::Level { .. } => None,
            },
        }
    }

    /// True if a script or hang-up phrases need the other side's words.
    pub(crate) fn is_scripted(self) -> bool {
        self.script
    }

    /// Returns a warning for each feature that will not work, given what the recognizer can do in this call, and for
    /// bias words that it does not use.
    pub(crate) fn unmet(
        self,
        supported: &Result<(), String>,
        recognizer: &dyn Recognizer,
        keyterms: &[String],
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Err(why) = supported {
            warnings.push(format!("turns are taken without text: {why}"));
            if self.script {
                warnings.push("scripted responses and hang-up phrases are not testable in this call".into());
            }
        }
        match self.cuts_in {
            Some(kind) if supported.is_err() => {
                warnings.push(format!("interruptions: {kind} need speech recognition, which this call does not have"));
            }
            Some(kind) if !recognizer.tells_running_text() => {
                warnings.push(format!("interruptions: {kind} need running text, which the recognizer does not give"));
            }
            _ => {}
        }
        let used = if supported.is_ok() { recognizer.count_keyterms(keyterms) } else { 0 };
        warnings.extend(idle_keyterms(used, keyterms.len()));
        warnings
    }
}

#[cfg(test)]
mod tests {
    use ringer_media::call::KeywordResponse;
    use ringer_provider::fake::FakeRecognizer;
    use ringer_provider::{Recognized, RecognizerFeed, SpokenIn, Status};
    use tokio::sync::mpsc;

    use super::*;

    struct Hears {
        running: bool,
        keyterms: usize,
    }

    impl Recognizer for Hears {
        fn count_keyterms(&self, keyterms: &[String]) -> usize {
            self.keyterms.min(keyterms.len())
        }

        fn tells_running_text(&self) -> bool {
            self.running
        }

        fn open(
            &self,
            language: SpokenIn<'_>,
            keyterms: &[String],
        ) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>) {
            FakeRecognizer::default().open(language, keyterms)
        }

        fn status(&self) -> Status {
            Status::Ok
        }
    }

    #[test]
    fn a_field_that_needs_a_better_recognizer_is_named() {
        let keywords = || {
            let keyword = KeywordResponse { keyword: "fee".into(), response: "No!".into(), probability: 1.0 };
            Interruption::Keywords(vec![keyword])
        };
        let contextual = || Interruption::Contextual { prompt: "it repeats itself".into() };
        let level =
            || Interruption::Level { name: "level", probability: 0.5, from_ms: 800, to_ms: 3000, at_most: None };
        for (interruption, keyterms, hears, running, takes, expect) in [
            (Interruption::None, 0, true, true, 9, &[][..]),
            (keywords(), 1, true, true, 9, &[]),
            (keywords(), 1, true, true, 0, &["keyterms"]),
            (keywords(), 3, true, true, 2, &["keyterms"]),
            (keywords(), 0, true, false, 0, &["interruptions"]),
            (contextual(), 0, true, false, 9, &["interruptions"]),
            (level(), 0, true, false, 9, &[]),
            (level(), 0, false, true, 9, &["turns are taken without text"]),
            (contextual(), 1, false, true, 9, &["turns are taken without text", "interruptions", "keyterms"]),
        ] {
            let spec = CallSpec { interruption, ..CallSpec::default() };
            let keyterms = vec!["Alvarez".to_owned(); keyterms];
            let supported = if hears { Ok(()) } else { Err("no model".to_owned()) };
            let hears = Hears { running, keyterms: takes };
            let warnings = WordNeeds::of(&spec).unmet(&supported, &hears, &keyterms);
            let names: Vec<&str> = warnings.iter().filter_map(|text| Some(text.split_once(':')?.0)).collect();
            assert_eq!(names, expect, "{warnings:?}");
        }
    }
}
