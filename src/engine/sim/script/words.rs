//! The words of a script's line, taken one after the other; what is missing or wrong is named.

use std::collections::VecDeque;
use std::time::Duration;

use super::LATEST_S;

/// Words of one line that are not taken yet.
pub(super) struct Words {
    left: VecDeque<String>,
    line: String,
}

impl Words {
    /// Splits a line at blanks, quoted text in one piece.
    ///
    /// # Errors
    /// A quotation mark that is not closed.
    pub(crate) fn of(line: &str) -> Result<Words, String> {
        let mut left = VecDeque::new();
        let mut rest = line.trim_start();
        while !rest.is_empty() && !rest.starts_with('#') {
            let quote = rest.chars().next().filter(|first| matches!(first, '"' | '\''));
            let (word, behind) = match quote {
                Some(quote) => rest[1..].split_once(quote).ok_or("a quotation mark is not closed")?,
                None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
            };
            left.push_back(word.to_owned());
            rest = behind.trim_start();
        }
        Ok(Words { left, line: line.trim().to_owned() })
    }

    /// Returns the whole line.
    pub(crate) fn line(&self) -> &str {
        &self.line
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// True if the next word begins like a number.
    pub(crate) fn is_number(&self) -> bool {
        self.left.front().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// True if the next word is `word`, which is then taken.
    pub(crate) fn take(&mut self, word: &str) -> bool {
        self.left.pop_front_if(|next| next == word).is_some()
    }

    /// Takes the keyword `word`.
    ///
    /// # Errors
    /// Another word, or none.
    pub(crate) fn keyword(&mut self, word: &str) -> Result<(), String> {
        match self.left.pop_front() {
            Some(next) if next == word => Ok(()),
            Some(next) => Err(format!("{next:?} is where {word} should be")),
            None => Err(format!("{word} is missing")),
        }
    }

    /// Takes any word; `what` it is.
    ///
    /// # Errors
    /// The word is missing.
    pub(crate) fn text(&mut self, what: &str) -> Result<String, String> {
        self.left.pop_front().ok_or_else(|| format!("{what} is missing"))
    }

    /// Takes one of `choices` and returns its place.
    ///
    /// # Errors
    /// Another word, or none.
    pub(crate) fn one_of(&mut self, what: &str, choices: &[&str]) -> Result<usize, String> {
        let word = self.text(what)?;
        let place = choices.iter().position(|choice| *choice == word);
        place.ok_or_else(|| format!("{word:?} is not {what}: it must be one of {}", choices.join(", ")))
    }

    /// Takes any decimal number.
    ///
    /// # Errors
    /// A word that is none from `least` to `most`, or no word.
    pub(crate) fn number(&mut self, what: &str, least: f64, most: f64) -> Result<f64, String> {
        let word = self.text(what)?;
        let number = word.parse().ok().filter(|number: &f64| (least..=most).contains(number));
        number.ok_or_else(|| format!("{word:?} is not {what}: it must be a number from {least} to {most}"))
    }

    /// Takes a whole number.
    ///
    /// # Errors
    /// A word that is none from `least` to `most`, or no word.
    pub(crate) fn whole(&mut self, what: &str, least: u16, most: u16) -> Result<u16, String> {
        let word = self.text(what)?;
        let number = word.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("{word:?} is not {what}: it must be a whole number from {least} to {most}"))
    }

    /// Takes a time in seconds.
    ///
    /// # Errors
    /// A word that is none from 0 to 600, or no word.
    pub(crate) fn seconds(&mut self, what: &str) -> Result<Duration, String> {
        Ok(Duration::from_secs_f64(self.number(what, 0.0, LATEST_S)?))
    }

    /// Checks that no word is left.
    ///
    /// # Errors
    /// The next word that is left.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        self.left.pop_front().map_or(Ok(()), |word| Err(format!("{word:?} is not expected here")))
    }
}
