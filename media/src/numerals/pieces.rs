//! Words as the number words in them.

use std::ops::Range;

use super::fold::is_unspaced;
use super::scan::value_of;
use super::{Numerals, Unit};

/// Most letters of a word that is looked through for number words.
const LETTERS_MAX: usize = 100;

/// Number words of a word, each with its bytes in it.
type Units = Vec<(Unit, Range<usize>)>;

/// Letters of a word as they are compared, with the byte of the word at which each begins, and its end.
struct Letters {
    letters: Vec<char>,
    at: Vec<usize>,
}

impl Letters {
    fn text(&self, range: Range<usize>) -> String {
        self.letters[range].iter().collect()
    }
}

impl Numerals {
    /// Returns the number words that a whole word consists of; `None`: it is another word.
    pub(super) fn units(&self, word: &str) -> Option<Units> {
        let whole = self.folding.word(word);
        if let Some(unit) = self.words.get(&whole) {
            return Some(vec![(*unit, 0..word.len())]);
        }
        let letters = self.letters(word);
        let count = letters.letters.len();
        if let Some(rest) = whole.strip_prefix(self.manner.prefix).filter(|rest| rest.len() < whole.len()) {
            let from = letters.at[count - rest.chars().count()];
            let unit = self.words.get(rest)?;
            return Some(vec![(Unit::Join, 0..from), (*unit, from..word.len())]);
        }
        if !self.manner.is_glued || count > LETTERS_MAX {
            return None;
        }
        if let Some(units) = self.split_glued(&letters, 0, count) {
            return Some(units);
        }
        let stem = |ending: &&str| whole.strip_suffix(*ending).map(|stem| stem.chars().count());
        for end in self.manner.ordinals.iter().filter_map(&stem) {
            let value = self.split_glued(&letters, 0, end).and_then(|units| value_of(&units));
            if let Some(value) = value {
                return Some(vec![(Unit::Ordinal(value), 0..word.len())]);
            }
        }
        let ends = self.manner.endings.iter().filter_map(stem).filter(|end| *end > 0);
        ends.filter_map(|end| self.split_glued(&letters, 0, end)).next()
    }

    fn letters(&self, word: &str) -> Letters {
        let (mut letters, mut at) = (Vec::new(), Vec::new());
        for (from, c) in word.char_indices() {
            self.folding.push(c, &mut letters);
            at.resize(letters.len(), from);
        }
        at.push(word.len());
        Letters { letters, at }
    }

    /// Returns the number words that the letters of a range consist of, the longest first.
    fn split_glued(&self, letters: &Letters, from: usize, end: usize) -> Option<Units> {
        if from == end {
            return Some(Vec::new());
        }
        // The sign that ends a word is no letter of the table's words.
        let longest = (from + self.longest + 1).min(end);
        for to in (from + 1..=longest).rev() {
            let text = letters.text(from..to);
            let known = self.words.get(&text).or_else(|| self.words.get(&self.folding.word(&text)));
            let Some(unit) = known else { continue };
            if let Some(mut rest) = self.split_glued(letters, to, end) {
                rest.insert(0, (*unit, letters.at[from]..letters.at[to]));
                return Some(rest);
            }
        }
        None
    }

    /// Returns the number words in a run of letters without blanks, with what else there is left out.
    pub(super) fn split_unspaced(&self, run: &str) -> Units {
        let letters = self.letters(run);
        let (mut units, mut from) = (Vec::new(), 0);
        while from < letters.letters.len() {
            let longest = (from + self.longest).min(letters.letters.len());
            let known = |to: &usize| self.words.get(&letters.text(from..*to)).copied().map(|unit| (unit, *to));
            let to = match (from + 1..=longest).rev().find_map(|to| known(&to)) {
                Some((unit, to)) => {
                    units.push((unit, letters.at[from]..letters.at[to]));
                    to
                }
                None => from + 1,
            };
            from = to;
        }
        units
    }

    /// True if the words of this language have no blanks between them, as those of the text.
    pub(super) fn is_unspaced(&self, text: &str) -> bool {
        self.manner.is_unspaced && text.contains(is_unspaced)
    }
}
