//! Fillers and pauses: what makes a learner of the language sound like one. Beside the mind, because words are spoken while the
//! mind still thinks of the next ones.

use super::SpeechPart;

/// Adds fillers and pauses to words that are not exact.
#[derive(Debug, Default)]
pub struct Fluency;

impl Fluency {
    /// The pieces of `text` in order: words, fillers (as words) and added silences.
    pub fn parts(&mut self, text: &str) -> Vec<SpeechPart> {
        vec![SpeechPart::Words(text.into())]
    }
}
