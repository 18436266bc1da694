//! Parts of a caller's words that are never cut: the values of its traits, its name, numbers, addresses, spelled words.

use std::ops::Range;

use ringer_media::call::is_unspaced;

use super::Profile;
use super::numbers::Numbers;

/// Numerals of scripts whose numbers are written without digits.
const NUMERALS: &str = "〇零一二三四五六七八九十百千万萬億亿两兩";
/// Signs that occur in codes, sums and addresses, and in no description of a voice.
const SIGNS: &str = "@#$€£¥%=&+";

/// Values and numbers that must not be cut.
pub(super) struct Whole<'f> {
    values: Vec<&'f str>,
    numbers: Numbers,
    is_english: bool,
}

impl<'f> Whole<'f> {
    /// Returns those of a Digital Human: the values of its traits and its name.
    pub(super) fn of(profile: &'f Profile) -> Whole<'f> {
        let values = profile.traits.iter().map(|(_, value)| value.as_str());
        Whole::new(values.chain([profile.name.as_str()]), &profile.language)
    }

    /// Returns `values` with the numbers of `language`.
    pub(super) fn new(values: impl IntoIterator<Item = &'f str>, language: &str) -> Whole<'f> {
        let values = values.into_iter().map(str::trim).filter(|value| value.contains(char::is_alphanumeric));
        Whole { values: values.collect(), numbers: Numbers::of(language), is_english: language.starts_with("en") }
    }

    /// Returns the ranges of the values in a text, in bytes, unordered. ASCII letters match in either case.
    pub(super) fn places(&self, text: &str) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        for value in &self.values {
            let mut from = 0;
            while let Some(place) = find_value(&text[from..], value) {
                let place = from + place.start..from + place.end;
                from = place.end;
                if is_word(text, &place) {
                    places.push(place);
                }
            }
        }
        places
    }

    /// True if the words are English: others are not known for stage directions.
    pub(super) fn is_english(&self) -> bool {
        self.is_english
    }

    /// True if words hold a fact although no value is among them: digits, codes, addresses, spelled words or a number
    /// in words.
    ///
    /// A number may also be an apposition to the number that ends `before`.
    pub(super) fn tells(&self, words: &str, before: &str) -> bool {
        let letters: Vec<char> = words.chars().collect();
        let inner =
            |trio: &[char]| matches!(trio[1], '_' | '.') && trio[0].is_alphanumeric() && trio[2].is_alphanumeric();
        if words.contains(|c: char| c.is_numeric() || SIGNS.contains(c)) || letters.windows(3).any(inner) {
            return true;
        }
        let tokens: Vec<&str> = words.split_whitespace().collect();
        let numbers = tokens.iter().filter(|token| self.numbers.holds(token)).count();
        let joins = tokens.iter().filter(|token| self.numbers.joins(token)).count();
        let last = before.split_whitespace().next_back().unwrap_or_default();
        let is_number = numbers > 0 && (numbers + joins == tokens.len() || last.contains(char::is_numeric));
        is_number || is_spelled(&tokens) || letters.iter().all(|&c| NUMERALS.contains(c))
    }

    /// Returns the position nearest to `cut` at which no value and no number is cut in two, before `cut` where words
    /// remain there.
    pub(super) fn beside(&self, text: &str, cut: usize) -> usize {
        let mut whole = self.places(text);
        whole.extend(self.numbers(text));
        let inside = |at: usize| whole.iter().find(move |place| place.start < at && at < place.end);
        let mut before = cut;
        while let Some(place) = inside(before) {
            before = place.start;
        }
        if text[..before].contains(char::is_alphanumeric) {
            return before;
        }
        let mut after = cut;
        while let Some(place) = inside(after) {
            after = place.end;
        }
        after
    }

    /// Returns the ranges of numbers of several words.
    fn numbers(&self, text: &str) -> Vec<Range<usize>> {
        let start = text.as_ptr() as usize;
        let place = |word: &str| (word.as_ptr() as usize - start)..(word.as_ptr() as usize - start + word.len());
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut places: Vec<Range<usize>> = Vec::new();
        for at in 0..words.len() {
            if !self.numbers.joined(words[at], &words[at + 1..]) {
                continue;
            }
            let (from, to) = (place(words[at]).start, place(words[at + 1]).end);
            match places.last_mut().filter(|last| last.end >= from) {
                Some(last) => last.end = to,
                None => places.push(from..to),
            }
        }
        places
    }
}

/// Returns the first range of `value`; ASCII letters match in either case.
fn find_value(text: &str, value: &str) -> Option<Range<usize>> {
    let (letters, wanted) = (text.as_bytes(), value.as_bytes());
    let at = letters.windows(wanted.len()).position(|window| window.eq_ignore_ascii_case(wanted))?;
    Some(at..at + wanted.len())
}

/// True if no word crosses an end of the range.
fn is_word(text: &str, place: &Range<usize>) -> bool {
    let goes_on = |one: Option<char>, other: Option<char>| {
        let spaced = |c: char| c.is_alphanumeric() && !is_unspaced(c);
        one.is_some_and(spaced) && other.is_some_and(spaced)
    };
    let value = &text[place.clone()];
    !goes_on(text[..place.start].chars().next_back(), value.chars().next())
        && !goes_on(value.chars().next_back(), text[place.end..].chars().next())
}

/// True for single letters: `L-E-E`, `L E E`.
fn is_spelled(tokens: &[&str]) -> bool {
    let single = |part: &str| part.chars().count() == 1 && part.chars().all(char::is_alphabetic);
    let letter = |token: &str| single(token) && token.chars().all(char::is_uppercase);
    let dashed = |token: &&str| token.contains('-') && token.trim_matches([',', '.']).split('-').all(single);
    tokens.iter().any(dashed) || tokens.windows(2).any(|pair| letter(pair[0]) && letter(pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [&str; 3] = ["twelve elm street", "A(1)b", "Lee"];

    #[test]
    fn values_are_found_as_words() {
        let check = |text: &str, expect: &[&str]| {
            let whole = Whole::new(VALUES, "en");
            let found: Vec<&str> = whole.places(text).into_iter().map(|place| &text[place]).collect();
            assert_eq!(found, expect, "{text}");
        };
        check("Twelve Elm Street, lee and leeway, a(1)b.", &["Twelve Elm Street", "a(1)b", "lee"]);
        check("xA(1)b Leeds", &[]);
        check("我是Lee。é", &["Lee"]);
    }

    #[test]
    fn facts_are_told_from_descriptions() {
        let check = |words: &str, before: &str, expect: bool| {
            assert_eq!(Whole::new([], "en").tells(words, before), expect, "{words}");
        };
        for (words, before) in [
            ("555", ""),
            ("ann.lee at example", ""),
            ("a_b", ""),
            ("R&D", ""),
            ("fifty", "50 "),
            ("fifty days", "in 50 "),
            ("one hundred and five", ""),
            ("L-E-E", ""),
            ("spelled L E E", ""),
        ] {
            check(words, before, true);
        }
        for (words, before) in [
            ("laughs", "50 "),
            ("pauses for a second", ""),
            ("one moment", ""),
            ("a sigh", ""),
            ("half-laughing... then quiet", ""),
        ] {
            check(words, before, false);
        }
        assert!(Whole::new([], "zh").tells("五十", ""));
        assert!(!Whole::new([], "zh").tells("停顿一下", ""));
    }
}
