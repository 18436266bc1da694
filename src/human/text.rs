//! Words and sentences of a spoken text, in any of the languages, without their meaning.

use std::borrow::Cow;
use std::collections::HashMap;

use ringer_media::call::{normal_form, with_equal_numbers};
use ringer_media::sentence::goes_on;
use ringer_syntax::placeholder::{self, Budget};

pub use super::words::{is_unspaced, plain_words, word_count};

use super::markup::span_end;
use super::whole::Whole;

/// Returns the length in bytes of the first whole sentence with the blanks after it; `None` while it may go on.
pub(super) fn sentence_end(text: &str) -> Option<usize> {
    end_of(text, false)
}

/// Returns the same as [`sentence_end`]; a `finished` text has no more to come. No sentence ends inside brackets or
/// emphasis.
fn end_of(text: &str, finished: bool) -> Option<usize> {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        match span_end(text, at) {
            Ok(Some(end)) => {
                at = end;
                continue;
            }
            Ok(None) => {}
            Err(()) if finished => {}
            Err(()) => return None,
        }
        let after = at + c.len_utf8();
        match c {
            '。' | '？' | '！' | '\n' => return Some(after),
            '.' | '?' | '!' | '…' | '।' | '؟' => {
                let rest = text[after..].trim_start();
                if rest.len() < text.len() - after {
                    match if c == '.' { goes_on(&text[..at], rest) } else { Some(false) } {
                        Some(false) => return Some(text.len() - rest.len()),
                        None if !finished => return None,
                        Some(true) | None => {}
                    }
                }
            }
            _ => {}
        }
        at = after;
    }
    None
}

/// Returns the sentences of a finished text, trimmed.
pub fn sentences(text: &str) -> Vec<String> {
    let (mut rest, mut all) = (text.trim(), Vec::new());
    while !rest.is_empty() {
        let (sentence, tail) = rest.split_at(end_of(rest, true).unwrap_or(rest.len()));
        if sentence.contains(char::is_alphanumeric) {
            all.push(sentence.trim().to_owned());
        }
        rest = tail;
    }
    all
}

/// Returns the first `count` words, closed by a full stop when some are left out. It may be some more, since nothing of
/// `whole` is cut in two.
pub(super) fn first_words(text: &str, count: usize, whole: &Whole<'_>) -> String {
    if word_count(text) <= count {
        return text.to_owned();
    }
    let fits = |&(at, _): &(usize, char)| word_count(&text[..at]) <= count;
    let ends = |(at, c): (usize, char)| (c.is_whitespace() || is_unspaced(c)).then_some(at);
    let cut = text.char_indices().take_while(fits).filter_map(ends).last().unwrap_or(0);
    let cut = whole.beside(text, cut);
    if cut >= text.trim_end().len() {
        return text.to_owned();
    }
    let is_mark =
        |c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':' | '.' | '-' | '–' | '—' | '(' | '[' | '、' | '，');
    format!("{}.", text[..cut].trim_end_matches(is_mark))
}

/// Least similarity of two texts that count as the same: 1 minus the normalized edit distance.
const ALIKE: f64 = 0.9;

/// True if the normal forms of two texts differ in at most a tenth of their characters. Digits and the words for
/// numbers are the same; where only these make them alike, all numbers must be equal.
pub fn is_alike(heard: &str, expected: &str) -> bool {
    let is_near = |one: &str, other: &str| strsim::normalized_levenshtein(one, other) >= ALIKE;
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    let same = |[one, other]: [String; 2]| is_near(&one, &other) && digits(&one) == digits(&other);
    let has_number = || [heard, expected].iter().any(|text| text.contains(char::is_numeric));
    is_near(&normal_form(heard), &normal_form(expected))
        || (has_number() && with_equal_numbers(heard, expected).any(same))
}

/// Traits of a Digital Human for the texts that name them. The size of all inserted values together is limited.
pub struct Facts<'t> {
    values: HashMap<&'t str, &'t str>,
    budget: Budget,
}

impl<'t> Facts<'t> {
    /// Returns the facts of these names and values; of a repeated name the first counts.
    pub fn of(traits: &'t [(String, String)]) -> Facts<'t> {
        let mut values = HashMap::new();
        for (name, value) in traits {
            values.entry(name.as_str()).or_insert(value.as_str());
        }
        Facts { values, budget: Budget::default() }
    }

    /// Returns `text` with each `{{name}}` replaced by the trait's exact value; an unknown placeholder stays.
    pub fn fill(&self, text: &str) -> String {
        placeholder::fill(text, &self.budget, |name| self.values.get(name).map(|value| Cow::from(*value)))
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
    fn a_full_stop_that_ends_no_sentence_cuts_nothing() {
        let whole = |text: &str| assert_eq!(sentences(text), [text], "{text}");
        for text in [
            "It is order No. 5 of mine.",
            "Order no. #12, ext. 7, approx. 4.50 euros.",
            "I come at 8 p.m. tomorrow, e.g. with Ann, at 9 a.m. 30 minutes late.",
            "I know e.g. Dr. Lee of St. Mary at 12 Main St. in Apt. 5, i.e. Ann.",
            "I was at Acme Inc. for years, z. B. Anna vs. Bob.",
            "Am 3. Mai bei Nr. 12, ca. 5 Uhr.",
            "Mail ann.lee@example.com or see www.example.com/a.b?c=d now.",
            "Hello (I am. Not) there.",
            "I am *really. Very* sure.",
        ] {
            whole(text);
        }
        let check = |text: &str, expect: &[&str]| assert_eq!(sentences(text), expect, "{text}");
        check("No. That is wrong.", &["No.", "That is wrong."]);
        check("It was at 8 p.m. We left.", &["It was at 8 p.m.", "We left."]);
        check("It is 12 Main St. Call Acme Co. Now.", &["It is 12 Main St.", "Call Acme Co.", "Now."]);
        check("I have 3. My son has 4. Maybe.", &["I have 3.", "My son has 4.", "Maybe."]);
        check("One (two. Three. Four.", &["One (two.", "Three.", "Four."]);
        // Each opening sign is looked at once, and not to the end of the text.
        assert_eq!(sentences(&"(a *b ".repeat(100_000)).len(), 1);
        let waits = |text: &str, expect| assert_eq!(sentence_end(text), expect, "{text}");
        waits("No. ", None);
        waits("No. 5", None);
        waits("No. N", Some(4));
        waits("I see Dr. ", None);
        waits("It is 12 Main St. ", None);
        waits("It is 12 Main St. W", Some(18));
        waits("[Slowly. Then", None);
        waits("Am 3. M", None);
        waits("I have 3. My", None);
        waits("I have 3. My ", Some(10));
        waits("[Slowly. Then fast.] Yes. No", Some(26));
        waits(&format!("(Oh. {}", "so ".repeat(100)), Some(5));
    }

    #[test]
    fn words_are_counted_and_cut_in_every_script() {
        let check = |text: &str, words: usize| assert_eq!(word_count(text), words, "{text}");
        check("It's 4 - fine.", 3);
        check("我想预约医生", 3);
        let check = |text: &str, count, expect: &str| {
            let whole = Whole::new(["twelve elm street"], "en");
            assert_eq!(first_words(text, count, &whole), expect, "{text}");
        };
        check("red green blue, grey", 3, "red green blue.");
        check("one two", 3, "one two");
        check("one two three, four", 3, "one two three, four");
        check("my number is 555 010 4477 today", 5, "my number is.");
        check("555 010 4477 today", 2, "555 010 4477.");
        check("it is twelve elm street, I think", 4, "it is.");
        check("twelve elm street I think", 1, "twelve elm street.");
        check("twelve elm street", 1, "twelve elm street");
        check("I use C# every day", 3, "I use C#.");
        check("mail ann_lee@example.com (now)", 2, "mail ann_lee@example.com.");
        assert_eq!(word_count(&first_words("我想预约医生明天", 2, &Whole::new([], "zh"))), 2);
    }

    #[test]
    fn numbers_in_words_are_like_their_digits() {
        for (heard, expected, alike) in [
            ("Your code is four two one seven.", "Your code is 4217.", true),
            ("Your code is four two one eight.", "Your code is 4217.", false),
            ("gate four at 10", "Gate 4, at ten.", true),
            ("Ihr Code ist zwölf vierunddreißig.", "Ihr Code ist 12 34.", true),
            ("您的密码是一二三四。", "您的密码是1234。", true),
            ("Appelez le zéro six douze.", "Appelez le 0 6 12.", true),
            ("Goodbye then.", "Hello, it is 5.", false),
        ] {
            assert_eq!(is_alike(heard, expected), alike, "{heard}");
        }
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
