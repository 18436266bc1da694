//! Numbers in a text, written and in words, in every language that callers speak: their places and their digits.
//!
//! A number of several words is one value (`twenty three`, `zweihundertfünf`, `二百零五`). Digits that are read one by
//! one are a value each. Words are compared without case, accents (but for Vietnamese) and signs that join letters.
//! Fractions, and numbers in a language that nobody named, are not found. It stands here because the matching of
//! phrases, the human's words and the redaction need it.
//!
//! ```
//! use ringer_media::numerals::{Numerals, in_digits};
//!
//! let german = Numerals::of("de").expect("it is known");
//! assert_eq!(german.find("achtundachtzig Mal")[0].digits, "88");
//! assert_eq!(in_digits("es", "Marque el veintitrés."), "Marque el 23.");
//! ```

mod fold;
mod pieces;
mod scan;
mod split;
mod tables;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use self::fold::Folding;
pub use self::fold::{digit, fold_word, is_mark, is_unspaced};

/// Form of a number in a text.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Digits of any script.
    Digits,
    /// Words of a value.
    Words,
    /// A word that is more often no number, as an article or `oh`.
    Weak,
    /// A scale alone, as in `thousand thanks`: it counts nothing.
    Scale,
    /// An ordinal in words, as of a day.
    Ordinal,
}

/// A number in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// Bytes of the text.
    pub place: Range<usize>,
    /// ASCII digits of its value; leading zeros stay where digits were written.
    pub digits: String,
    /// Form in the text.
    pub form: Form,
    /// True if it is counted in thousands or more, so that it is an amount and no code.
    pub is_scaled: bool,
}

/// Meaning of a number word.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Unit {
    /// A value that adds to what it is smaller than; `grain`: the value below which others add to it.
    Add { value: u64, grain: u64, is_weak: bool },
    /// A scale that multiplies the value before it.
    Times(u64),
    /// A word between parts of one number: `and`.
    Join,
    /// A zero that stands for missing places after a scale, and is a digit elsewhere.
    Gap,
    /// Ten after its unit, which makes 11 to 19.
    Teen,
    /// Repeats the next digit so many times.
    Repeat(usize),
    /// An ordinal of this value.
    Ordinal(u64),
}

/// Manner in which a language writes number words.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Manner {
    /// True: one word may hold several number words.
    is_glued: bool,
    /// True: the letters have no blanks between their words.
    is_unspaced: bool,
    /// True: a unit stands before its ten, joined: `acht und achtzig`.
    units_first: bool,
    /// True: four and twenty are eighty.
    is_vigesimal: bool,
    /// Greatest scale that may begin a number.
    bare: u64,
    /// Endings that follow a number in the same word.
    endings: &'static [&'static str],
    /// Endings that make an ordinal of a number.
    ordinals: &'static [&'static str],
    /// Prefix that joins a number word to the one before.
    prefix: &'static str,
}

/// The number words of one language.
#[derive(Debug)]
pub struct Numerals {
    words: HashMap<String, Unit>,
    /// Letters of the longest word.
    longest: usize,
    manner: Manner,
    folding: Folding,
}

/// Tables as they were read, at first use of their language.
static READ: [OnceLock<Numerals>; tables::TABLES.len()] = [const { OnceLock::new() }; tables::TABLES.len()];

/// Codes of the languages whose number words are known.
pub fn languages() -> impl Iterator<Item = &'static str> {
    tables::TABLES.iter().map(|table| table.language)
}

impl Numerals {
    /// Returns the number words of a language (`en`, `es`, ...); `None` for an unknown one.
    pub fn of(language: &str) -> Option<&'static Numerals> {
        let at = tables::TABLES.iter().position(|table| table.language == language)?;
        Some(READ[at].get_or_init(|| Numerals::of_table(tables::TABLES[at])))
    }

    /// Returns the numbers of a text, in order.
    pub fn find(&self, text: &str) -> Vec<Number> {
        scan::numbers(self, text)
    }

    /// True if the word is a number in words, or a part of one; a joining word is none.
    pub fn holds(&self, word: &str) -> bool {
        let is_value = |unit: &Unit| !matches!(unit, Unit::Join | Unit::Gap);
        self.units(word).is_some_and(|units| units.iter().any(|(unit, _)| is_value(unit)))
    }

    /// True if the word joins parts of a number: `and`.
    pub fn joins(&self, word: &str) -> bool {
        self.units(word).is_some_and(|units| units.iter().all(|(unit, _)| matches!(unit, Unit::Join | Unit::Gap)))
    }

    fn of_table(table: &tables::Table) -> Numerals {
        let folding = Folding::of(table.language);
        let mut words = HashMap::new();
        for entry in table.words.iter().flat_map(|part| part.split(';')) {
            let mut entry = entry.split_whitespace();
            let Some(unit) = entry.next().map(unit_of) else { continue };
            for word in entry {
                words.entry(folding.word(word)).or_insert(unit);
            }
        }
        let longest = words.keys().map(|word| word.chars().count()).max().unwrap_or(0);
        Numerals { words, longest, manner: table.manner, folding }
    }
}

/// Returns the unit of a table: `7`, `20/10` with its grain, `x100`, `&`, `z`, `t`, `r2`, `#3`; `~` marks a weak one.
fn unit_of(text: &str) -> Unit {
    let number = |text: &str| text.parse::<u64>().expect("the tables are tested");
    match text.as_bytes()[0] {
        b'&' => Unit::Join,
        b'z' => Unit::Gap,
        b't' => Unit::Teen,
        b'x' => Unit::Times(number(&text[1..])),
        b'r' => Unit::Repeat(number(&text[1..]) as usize),
        b'#' => Unit::Ordinal(number(&text[1..])),
        first => {
            let is_weak = first == b'~';
            let (value, grain) = match text.trim_start_matches('~').split_once('/') {
                Some((value, grain)) => (number(value), number(grain)),
                None => {
                    let value = number(text.trim_start_matches('~'));
                    (value, grain_of(value))
                }
            };
            Unit::Add { value, grain, is_weak }
        }
    }
}

/// Returns the value below which others add to this one: nothing adds to 12, units add to 20.
fn grain_of(value: u64) -> u64 {
    match value {
        0..20 => 1,
        _ => (1..20).map(|power| 10u64.pow(power)).take_while(|scale| value.is_multiple_of(*scale)).last().unwrap_or(1),
    }
}

/// Returns the text with its numbers in words as digits; as it is in a language that is not known.
pub fn in_digits(language: &str, text: &str) -> String {
    in_digits_but(language, text, &[])
}

/// Returns the same as [`in_digits`], with the words `kept`, in lower case, as they are.
pub(crate) fn in_digits_but(language: &str, text: &str, kept: &[&str]) -> String {
    let Some(numerals) = Numerals::of(language) else { return text.to_owned() };
    let (mut out, mut done) = (String::with_capacity(text.len()), 0);
    for number in numerals.find(text) {
        let is_kept = kept.contains(&&*numerals.folding.word(&text[number.place.clone()]));
        if number.form != Form::Ordinal && !is_kept {
            out.push_str(&text[done..number.place.start]);
            out.push_str(&number.digits);
            done = number.place.end;
        }
    }
    out + &text[done..]
}

/// Returns the words for 0 to 10 with their languages, as they are compared; those that are more often other words are
/// left out.
pub(crate) fn small_numbers() -> impl Iterator<Item = (&'static str, String, u64)> {
    tables::TABLES.iter().flat_map(|table| {
        // Read and not kept: a call needs the words of one language.
        let words = Numerals::of_table(table).words.into_iter();
        words.filter_map(|(word, unit)| match unit {
            Unit::Add { value, is_weak: false, .. } if value <= 10 => Some((table.language, word, value)),
            Unit::Gap => Some((table.language, word, 0)),
            Unit::Times(10) => Some((table.language, word, 10)),
            _ => None,
        })
    })
}

#[cfg(test)]
mod tests;
