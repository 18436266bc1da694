//! Words that another release has stored and this one does not know: read, shown and written back as they stand.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;

use parking_lot::RwLock;
use serde::de::{Error, Visitor};

/// Most different unknown words that one process keeps.
const WORDS_MAX: usize = 1000;
/// Longest unknown word that is kept, in bytes.
const WORD_BYTES_MAX: usize = 200;
/// Replacement of a word beyond these limits.
const NOT_KEPT: &str = "UNKNOWN";

static KEPT: RwLock<BTreeSet<&'static str>> = RwLock::new(BTreeSet::new());

/// A word that this release does not know. It is copied like the words that are known: its text lives as long as the
/// process.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unknown(&'static str);

impl Unknown {
    /// Keeps a word. Beyond 1000 different words, or 200 bytes, it reads as `UNKNOWN`.
    pub fn keep(word: &str) -> Unknown {
        if let Some(kept) = KEPT.read().get(word) {
            return Unknown(kept);
        }
        let mut all = KEPT.write();
        match all.get(word) {
            Some(kept) => Unknown(kept),
            None if word.len() > WORD_BYTES_MAX || all.len() >= WORDS_MAX => Unknown(NOT_KEPT),
            None => {
                let kept: &'static str = Box::leak(Box::from(word));
                all.insert(kept);
                Unknown(kept)
            }
        }
    }

    /// Returns the word as it was read.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

/// Reads a text into a value; every text is one.
pub struct Words<T>(PhantomData<T>);

impl<T> Default for Words<T> {
    fn default() -> Words<T> {
        Words(PhantomData)
    }
}

impl<T: for<'w> From<&'w str>> Visitor<'_> for Words<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<T, E> {
        Ok(T::from(word))
    }
}

#[cfg(test)]
#[allow(unreachable_pub, reason = "the macro declares public enums")]
mod tests {
    use super::*;

    words! {
        /// Two words, and those of other releases.
        kept Light { Red = "red", Green = "green" }
    }

    #[test]
    fn a_word_that_is_not_known_is_kept_as_it_stands() {
        for (word, expect) in [("red", Some(Light::Red)), ("green", Some(Light::Green)), ("Red", None), ("amber", None)]
        {
            let written = format!("\"{word}\"");
            let light: Light = serde_json::from_str(&written).expect("every text is one");
            assert_eq!((Light::parse(word), matches!(light, Light::Unknown(_))), (expect, expect.is_none()), "{word}");
            assert_eq!(expect.unwrap_or(light), light);
            assert_eq!((light.as_str(), serde_json::to_string(&light).expect("a text")), (word, written.clone()));
            assert_eq!(serde_json::from_str::<Light>(&written).expect("a text"), light, "the same each time");
        }
        assert_eq!(Light::ALL, [Light::Red, Light::Green]);
        let refused = serde_json::from_str::<Light>("5").expect_err("it is no text").to_string();
        assert!(refused.contains("expected a string"), "{refused}");
    }

    #[test]
    fn the_schema_lists_the_words_that_are_known() {
        let schema = schemars::schema_for!(Light).to_value();
        assert_eq!((&schema["type"], &schema["enum"]), (&"string".into(), &serde_json::json!(["red", "green"])));
        assert_eq!(
            (&schema["title"], &schema["description"]),
            (&"Light".into(), &"Two words, and those of other releases.".into())
        );
    }

    #[test]
    fn a_word_that_is_too_long_is_not_kept() {
        let longest = "x".repeat(WORD_BYTES_MAX);
        assert_eq!(Unknown::keep(&longest).as_str(), longest);
        assert_eq!(Unknown::keep(&format!("{longest}x")).as_str(), NOT_KEPT);
    }
}
