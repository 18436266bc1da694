//! Words that are numbers, which are not broken up. In a language that is not known only digits are.

use ringer_media::numerals::Numerals;

/// Words that join the parts of a number that is read out, besides number words: `four dash point`.
const SIGNS: [&str; 10] = ["dash", "point", "half", "coma", "komma", "virgule", "vírgula", "virgül", "запятая", "chấm"];

/// Recognizes the numbers of one language.
#[derive(Copy, Clone, Debug)]
pub(super) struct Numbers(Option<&'static Numerals>);

impl Numbers {
    /// Returns the numbers of `language`; for an unknown one only digits count.
    pub(super) fn of(language: &str) -> Numbers {
        Numbers(Numerals::of(language))
    }

    /// True if `word` and the words that follow belong to one number, so that nothing may stand between them.
    pub(super) fn joined(self, word: &str, rest: &[&str]) -> bool {
        match rest {
            [next, after, ..] if self.joins(next) => self.holds(word) && self.holds(after),
            [next, ..] if self.joins(word) => self.holds(next),
            [next, ..] => self.holds(word) && self.holds(next),
            [] => false,
        }
    }

    /// True if the word joins the words of a number, as `and` does.
    pub(super) fn joins(self, word: &str) -> bool {
        self.0.is_some_and(|numerals| numerals.joins(bare(word)))
    }

    /// True if the word is a number or a part of one.
    pub(super) fn holds(self, word: &str) -> bool {
        let bare = bare(word);
        bare.contains(char::is_numeric)
            || self.0.is_some_and(|numerals| {
                let is_number = |part: &str| SIGNS.contains(&&*part.to_lowercase()) || numerals.holds(part);
                bare.split('-').any(|part| !part.is_empty() && is_number(part))
            })
    }
}

fn bare(word: &str) -> &str {
    let is_part = |c: char| c.is_alphanumeric() || ringer_media::numerals::is_mark(c);
    word.trim_matches(|c: char| !is_part(c))
}
