//! Values of traits in a text: as whole words, whatever their case, with the endings that a language adds to a name.

use std::ops::Range;

use ringer_human::text::is_unspaced;

/// Words that Arabic writes together with the next one.
const PREFIXES: [&str; 9] = ["و", "ف", "ب", "ل", "ك", "ال", "وال", "بال", "لل"];

/// True for letters of scripts of which two are a word.
pub(super) fn is_dense(c: char) -> bool {
    is_unspaced(c) || is_hangul(c)
}

fn is_hangul(c: char) -> bool {
    matches!(c, '\u{ac00}'..='\u{d7a3}')
}

/// True for letters of languages that add endings to a name.
fn takes_endings(c: char) -> bool {
    is_hangul(c) || matches!(c, '\u{d00}'..='\u{d7f}')
}

/// Returns the places of a value in a text.
pub(super) fn places(text: &str, value: &str) -> Vec<Range<usize>> {
    let (lower, at) = to_lower(text);
    let (wanted, _) = to_lower(value);
    if wanted.is_empty() {
        return Vec::new();
    }
    let found = lower.match_indices(&wanted).map(|(from, found)| at[from]..at[from + found.len()]);
    found.filter(|place| is_whole(text, place)).collect()
}

/// Returns the text in lower case, and for each of its bytes the byte of the original.
fn to_lower(text: &str) -> (String, Vec<usize>) {
    let (mut lower, mut at) = (String::with_capacity(text.len()), Vec::with_capacity(text.len() + 1));
    for (from, c) in text.char_indices() {
        lower.extend(c.to_lowercase());
        at.resize(lower.len(), from);
    }
    at.push(text.len());
    (lower, at)
}

/// True if no other word goes on at the ends of a place.
fn is_whole(text: &str, place: &Range<usize>) -> bool {
    let value = &text[place.clone()];
    let (before, after) = (text[..place.start].chars().next_back(), text[place.end..].chars().next());
    let (first, last) = (value.chars().next(), value.chars().next_back());
    let is_word = |c: char| c.is_alphanumeric() && !is_unspaced(c);
    let begins = !first.is_some_and(is_word) || !before.is_some_and(is_word) || has_prefix(text, place.start);
    let ends = !last.is_some_and(is_word) || !after.is_some_and(is_word) || last.is_some_and(takes_endings);
    begins && ends
}

/// True if only a word that Arabic writes together with the next one stands before a place.
fn has_prefix(text: &str, at: usize) -> bool {
    let word = text[..at].rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    PREFIXES.contains(&word)
}
