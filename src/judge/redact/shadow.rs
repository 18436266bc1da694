//! A text with the digits and signs of all scripts in ASCII, for patterns that know no others.

use std::ops::Range;

use regex_lite::Regex;
use ringer_media::numerals::digit;

/// The text, and for each of its bytes the byte of the original.
pub(super) struct Shadow {
    text: String,
    at: Vec<usize>,
}

impl Shadow {
    pub(super) fn of(original: &str) -> Shadow {
        let (mut text, mut at) = (String::with_capacity(original.len()), Vec::with_capacity(original.len() + 1));
        for (from, c) in original.char_indices() {
            let same = match c {
                _ if digit(c).is_some() => digit(c).map_or(c, |digit| char::from(b'0' + digit)),
                '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
                c => c,
            };
            text.push(same);
            at.resize(text.len(), from);
        }
        at.push(original.len());
        Shadow { text, at }
    }

    /// Returns the places of a pattern in the original.
    pub(super) fn find(&self, pattern: &Regex) -> Vec<Range<usize>> {
        pattern.find_iter(&self.text).map(|found| self.at[found.start()]..self.at[found.end()]).collect()
    }

    /// Returns the places of a pattern whose text, and the letter behind it, are as wanted.
    pub(super) fn find_where(&self, pattern: &Regex, wanted: fn(&str, Option<char>) -> bool) -> Vec<Range<usize>> {
        let is_wanted = |found: &regex_lite::Match<'_>| wanted(found.as_str(), self.text[found.end()..].chars().next());
        let found = pattern.find_iter(&self.text).filter(is_wanted);
        found.map(|found| self.at[found.start()]..self.at[found.end()]).collect()
    }
}
