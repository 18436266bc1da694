//! Words and sentences of a spoken text, in any of the languages. Knows no meaning.

use std::borrow::Cow;
use std::collections::HashMap;

pub(crate) use ringer_media::call::unspaced;
use ringer_media::measure;

use crate::model::placeholder::{self, Room};

/// Number of words; in scripts without blanks two letters count as one.
pub(crate) fn word_count(text: &str) -> usize {
    let letters = text.chars().filter(|&c| unspaced(c)).count();
    let spaced = |word: &&str| word.contains(|c: char| c.is_alphanumeric() && !unspaced(c));
    letters.div_ceil(2) + text.split_whitespace().filter(spaced).count()
}

/// Lower-case words without punctuation.
pub(crate) fn plain_words(text: &str) -> Vec<String> {
    let kept = |c: char| c.is_alphanumeric() || c == '\'';
    text.split(|c| !kept(c)).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Length in bytes of the first whole sentence, its blanks after it included; `None` while it may go on.
pub(super) fn sentence_end(text: &str) -> Option<usize> {
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        let after = at + c.len_utf8();
        match c {
            '。' | '？' | '！' | '\n' => return Some(after),
            '.' | '?' | '!' | '…' | '।' | '؟' => {
                let blank = rest.peek().is_some_and(|(_, next)| next.is_whitespace());
                if blank && !(c == '.' && abbreviated(&text[..at])) {
                    let end = text[after..].find(|c: char| !c.is_whitespace());
                    return Some(end.map_or(text.len(), |blanks| after + blanks));
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether a full stop after `before` belongs to its last word.
fn abbreviated(before: &str) -> bool {
    let word = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    word == "No" || measure::abbreviated(word)
}

/// The sentences of a finished text, trimmed.
pub(crate) fn sentences(text: &str) -> Vec<String> {
    let (mut rest, mut all) = (text.trim(), Vec::new());
    while !rest.is_empty() {
        let (sentence, tail) = rest.split_at(sentence_end(rest).unwrap_or(rest.len()));
        if sentence.contains(char::is_alphanumeric) {
            all.push(sentence.trim().to_owned());
        }
        rest = tail;
    }
    all
}

/// What may be said of a model's text: stage directions (in brackets, in parentheses, between asterisks) and markup go.
pub(super) fn spoken(text: &str) -> String {
    let (mut said, mut until) = (String::new(), None);
    for (at, c) in text.char_indices() {
        let closing = match c {
            '(' => ')',
            '[' => ']',
            '*' => '*',
            _ => '\0',
        };
        if until == Some(c) {
            until = None;
        } else if until.is_none() && closing != '\0' && text[at + 1..].contains(closing) {
            until = Some(closing);
        } else if until.is_none() && !matches!(c, '*' | '#' | '`' | '_') {
            said.push(c);
        }
    }
    said.split_whitespace().collect::<Vec<_>>().join(" ").replace(" ,", ",").replace(" .", ".")
}

/// The first `count` words, closed by a full stop when some are left out.
pub(super) fn first_words(text: &str, count: usize) -> String {
    if word_count(text) <= count {
        return text.to_owned();
    }
    let fits = |&(at, _): &(usize, char)| word_count(&text[..at]) <= count;
    let ends = |(at, c): (usize, char)| (c.is_whitespace() || unspaced(c)).then_some(at);
    let cut = text.char_indices().take_while(fits).filter_map(ends).last().unwrap_or(0);
    format!("{}.", text[..cut].trim_end_matches(|c: char| !c.is_alphanumeric()))
}

/// The traits of a Digital Human for the texts that name them. Values bring only so much into all of these texts together.
pub struct Facts<'t> {
    values: HashMap<&'t str, &'t str>,
    room: Room,
}

impl<'t> Facts<'t> {
    /// Names with their values; of two that have one name the first counts.
    pub fn of(traits: &'t [(String, String)]) -> Facts<'t> {
        let mut values = HashMap::new();
        for (name, value) in traits {
            values.entry(name.as_str()).or_insert(value.as_str());
        }
        Facts { values, room: Room::default() }
    }

    /// `text` with each `{{name}}` replaced by the trait's value, which is given exactly; an unknown placeholder stays.
    pub fn fill(&self, text: &str) -> String {
        placeholder::filled(text, &self.room, |name| self.values.get(name).map(|value| Cow::from(*value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_a_speaker_would_stop() {
        let check = |text: &str, expect: &[&str]| assert_eq!(sentences(text), expect, "{text}");
        check("Book a visit with Dr. Patel. Ask for Monday!", &["Book a visit with Dr. Patel.", "Ask for Monday!"]);
        check("It costs 4.50 euros. Right?", &["It costs 4.50 euros.", "Right?"]);
        check("你好。我想预约。", &["你好。", "我想预约。"]);
        check("  one line\nanother ", &["one line", "another"]);
        check("...", &[]);
        assert_eq!(sentence_end("Not over yet."), None);
    }

    #[test]
    fn stage_directions_are_not_said() {
        let check = |text: &str, expect: &str| assert_eq!(spoken(text), expect, "{text}");
        check("*sighs* Well (pause), **yes**.", "Well, yes.");
        check("[angry] I want 3 * 4.", "I want 3 4.");
        check("Call me (maybe", "Call me (maybe");
    }

    #[test]
    fn words_are_counted_and_cut_in_every_script() {
        let check = |text: &str, words: usize| assert_eq!(word_count(text), words, "{text}");
        check("It's 4 - fine.", 3);
        check("我想预约医生", 3);
        assert_eq!(first_words("one two three, four", 3), "one two three.");
        assert_eq!(first_words("one two", 3), "one two");
        assert_eq!(word_count(&first_words("我想预约医生明天", 2)), 2);
    }

    #[test]
    fn placeholders_take_the_traits() {
        let traits = [("member_id", "M-4411"), ("a b", "Ann"), ("a b", "Bob")];
        let traits = traits.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let check = |text: &str, expect: &str| assert_eq!(Facts::of(&traits).fill(text), expect);
        check("I am {{member_id}} of {{city}}.", "I am M-4411 of {{city}}.");
        check("{{a b}} {{ a b }} {{A b}}", "Ann {{ a b }} {{A b}}");
    }

    #[test]
    fn traits_are_not_filled_into_each_other() {
        let names = |at: usize| (format!("t{at}"), format!("{{{{t{0}}}}}{{{{t{0}}}}}", at + 1));
        let traits: Vec<_> = (0..40).map(names).collect();
        assert_eq!(Facts::of(&traits).fill("I want {{t0}}."), "I want {{t1}}{{t1}}.");
    }

    #[test]
    fn many_texts_share_what_one_long_trait_may_bring() {
        let traits = [("long".to_owned(), "x".repeat(1 << 20))];
        let facts = Facts::of(&traits);
        let total: usize = (0..1_000_000).map(|_| facts.fill("{{long}}").len()).sum();
        assert_eq!(total, (1 << 20) + 999_999 * "{{long}}".len());
    }
}
