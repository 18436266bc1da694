//! Takes what is private out of a conversation: numbers, addresses, dates and the traits of the Digital Human. Pure.
//!
//! Numbers are found as they are written and as they are spoken, one English digit word after the other.
//!
//! The whole utterance of a private word is silenced in the recording: the times of its words are estimates, and a rest
//! would be left.

use std::ops::Range;
use std::sync::LazyLock;

use regex_lite::Regex;
use ringer_media::call::TimelineEntry;
use ringer_model::transcript::{EntrySource, Transcript, TranscriptEntry};
use serde_json::Value;

use super::reading::{Key, key};

/// Digits from which a number is private.
const LEAST_DIGITS: usize = 4;
/// Digits of a telephone number (ITU-T E.164 6) that is said without `+`.
const PHONE_DIGITS: Range<usize> = 7..16;
/// Digits of a card number (ISO/IEC 7812-1).
const CARD_DIGITS: Range<usize> = 13..20;
/// Keys further apart than this are two entries.
const KEYS_APART: i64 = 3 * 16_000;
/// Words of an entry up to which those that are private are told from the others: that takes a table of their square.
const MOST_WORDS: usize = 2000;
/// Length of a key that does not tell.
const KEY_MS: i64 = 100;
/// Audio that is silenced around a private word, milliseconds.
const AROUND_MS: i64 = 50;
/// The same around own words. What the codec does not carry of them, as of a hiss at their end, is no speech but is
/// recorded.
const AROUND_OWN_MS: i64 = 300;

/// Marks that stand in place of private parts.
const MARKS: [&str; 7] = ["[TRAIT]", "[EMAIL]", "[DATE]", "[CARD]", "[ID]", "[PHONE]", "[NUMBER]"];
const DIGIT_WORDS: [&str; 11] = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "oh"];
const MONTHS: &str = "january|february|march|april|may|june|july|august|september|october|november|december";
const COUNTED: &str = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|\
    fifteenth|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|thirtieth|thirty|twenty|ten|eleven|twelve|thirteen|fourteen|\
    fifteen|sixteen|seventeen|eighteen|nineteen|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|and|of|oh|one|two|three|\
    four|five|six|seven|eight|nine|\\d{1,4}(?:st|nd|rd|th)?";

static EMAIL: LazyLock<Regex> = LazyLock::new(|| pattern(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"));
static SPOKEN_EMAIL: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\b[a-z0-9._-]+(?: dot [a-z0-9_-]+)* at [a-z0-9-]+(?: dot [a-z]{2,})+\b"));
static DATE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))\b"));
static SPOKEN_DATE: LazyLock<Regex> = LazyLock::new(|| {
    let number = format!("(?:[ ,-]+(?:{COUNTED})\\b)");
    pattern(&format!(
        "(?i)\\b(?:(?:the )?(?:\\d{{1,2}}(?:st|nd|rd|th)?|[a-z-]+(?:th|st|nd|rd)) (?:of )?)?(?:{MONTHS}){number}+"
    ))
});
static SOCIAL_SECURITY: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\d{3}[- ]\d{2}[- ]\d{4}$"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is tested")
}

/// Knows what is private in the conversations of one Digital Human.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    /// Values of its traits, the longest first.
    traits: Vec<String>,
}

impl Redactor {
    /// Returns a redactor. `traits`: values of the Digital Human's traits. Words of one or two letters tell nothing and
    /// are left.
    pub fn new(traits: impl IntoIterator<Item = String>) -> Redactor {
        let mut traits: Vec<String> =
            traits.into_iter().map(|text| text.trim().to_owned()).filter(|text| text.chars().count() > 2).collect();
        traits.sort_by_key(|text| std::cmp::Reverse(text.len()));
        Redactor { traits }
    }

    /// Returns the text with `[TRAIT]`, `[EMAIL]`, `[DATE]`, `[CARD]`, `[ID]`, `[PHONE]`, `[NUMBER]` in place of what
    /// is private.
    pub fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for value in &self.traits {
            text = without(&text, value);
        }
        for (pattern, word) in
            [(&*EMAIL, "[EMAIL]"), (&*SPOKEN_EMAIL, "[EMAIL]"), (&*DATE, "[DATE]"), (&*SPOKEN_DATE, "[DATE]")]
        {
            if pattern.is_match(&text) {
                text = pattern.replace_all(&text, word).into_owned();
            }
        }
        numbers(&text)
    }

    /// Redacts all texts within a value, names of members left out.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Number(number) => {
                let written = number.to_string();
                let hidden = self.text(&written);
                if hidden != written {
                    *value = Value::String(hidden);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.value(member)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Redacts the events of a timeline: texts, words, and keys that belong to one number. Positions and ids stay.
    pub fn timeline(&self, events: &mut [Value]) {
        for event in events.iter_mut() {
            self.event(event);
        }
        for side in ["dtmf_sent", "dtmf_received"] {
            let places: Vec<usize> = (0..events.len()).filter(|at| events[*at]["event"] == side).collect();
            let sample = |at: usize| events[at]["sample"].as_i64().unwrap_or(0);
            let runs: Vec<Vec<usize>> =
                places.chunk_by(|one, next| sample(*next) - sample(*one) < KEYS_APART).map(<[usize]>::to_vec).collect();
            for run in runs {
                let digits: usize =
                    run.iter().map(|at| events[*at]["data"]["digits"].as_str().map_or(0, str::len)).sum();
                if digits >= LEAST_DIGITS {
                    run.iter().for_each(|at| events[*at]["data"]["digits"] = "[NUMBER]".into());
                }
            }
        }
    }

    /// Redacts one event as it happens: its texts, words and reasons.
    pub fn event(&self, event: &mut Value) {
        for name in
            ["text", "excerpt", "message", "question", "prompt", "phrase", "keyword", "reason", "address", "digits"]
        {
            if let Some(Value::String(text)) = event["data"].get_mut(name) {
                *text = self.text(text);
            }
        }
        for name in ["parameters", "output", "data"] {
            if let Some(value) = event["data"].get_mut(name) {
                self.value(value);
            }
        }
        if let Some(Value::Array(words)) = event["data"].get_mut("words") {
            let said: Vec<String> =
                words.iter().map(|word| word["word"].as_str().unwrap_or_default().to_owned()).collect();
            for (word, hidden) in words.iter_mut().zip(self.private(&said)) {
                if hidden {
                    word["word"] = "[PRIVATE]".into();
                }
            }
        }
    }

    /// Takes the private words out of a transcript, and says where they were.
    pub fn transcript(&self, transcript: &mut Transcript) -> Vec<Range<i64>> {
        let mut spans = Vec::new();
        for entry in &mut transcript.entries {
            spans.extend(self.entry(entry));
        }
        spans
    }

    /// Returns the milliseconds from connect that hold private words: those words where they are known, else the whole
    /// entry.
    fn entry(&self, entry: &mut TranscriptEntry) -> Vec<Range<i64>> {
        let text = self.text(&entry.utterance);
        // Times that are estimated would leave a rest of a private word.
        let exact = entry.source == EntrySource::Recognized;
        // Redacted before: the sound may be another one.
        let again = (entry.words.is_empty() || !exact) && MARKS.iter().any(|mark| text.contains(mark));
        if text == entry.utterance && !again {
            return Vec::new();
        }
        entry.utterance = text;
        let said: Vec<String> = entry.words.iter().map(|word| word.word.clone()).collect();
        let margin_ms = if entry.source == EntrySource::Synthesized { AROUND_OWN_MS } else { AROUND_MS };
        let mut spans = Vec::new();
        for (word, hidden) in entry.words.iter_mut().zip(self.private(&said)) {
            if hidden {
                word.word = "[PRIVATE]".into();
            }
            if hidden && exact {
                spans.push(around(word.start_offset_ms, word.end_offset_ms, margin_ms));
            }
        }
        if spans.is_empty() {
            spans.push(around(entry.start_offset_ms, entry.end_offset_ms, margin_ms));
        }
        spans
    }

    /// Returns true for each word that is part of something private. Among very many words all count as private if one
    /// is.
    fn private(&self, words: &[String]) -> Vec<bool> {
        // Each word with the words around it: it is private when the text is another one without it being there as it
        // was.
        let text = words.join(" ");
        let left = self.text(&text);
        if left == text {
            return vec![false; words.len()];
        }
        let left: Vec<String> = left.split(' ').map(str::to_owned).collect();
        let mut hidden = vec![true; words.len()];
        if words.len().max(left.len()) > MOST_WORDS {
            return hidden;
        }
        for (at, _) in longest_common(words, &left) {
            hidden[at] = false;
        }
        hidden
    }
}

/// Returns the keys and sounds of digits in the band, in milliseconds from connect, that belong to private numbers.
pub fn key_spans(moments: &[TimelineEntry]) -> Vec<Range<i64>> {
    let mut spans = Vec::new();
    for sent in [true, false] {
        let keys = moments.iter().filter_map(|moment| key(moment));
        let keys: Vec<Key> = keys.filter(|key| key.sent == sent).collect();
        for run in keys.chunk_by(|one, next| next.at - one.at < KEYS_APART) {
            if run.len() >= LEAST_DIGITS {
                spans.extend(run.iter().map(|key| {
                    let (from, ms) = (key.at / 16, if key.duration_ms == 0 { KEY_MS } else { key.duration_ms });
                    around(from, from.saturating_add(ms), AROUND_MS)
                }));
            }
        }
    }
    spans
}

/// Returns the range in milliseconds to silence around a private part, with a margin. Times may be any integers from
/// outside.
fn around(from_ms: i64, to_ms: i64, margin_ms: i64) -> Range<i64> {
    from_ms.saturating_sub(margin_ms)..to_ms.saturating_add(margin_ms)
}

/// Returns the places of a longest common part of two lists, in order.
fn longest_common(one: &[String], other: &[String]) -> Vec<(usize, usize)> {
    let width = other.len() + 1;
    let mut best = vec![0u32; (one.len() + 1) * width];
    for i in (0..one.len()).rev() {
        for j in (0..other.len()).rev() {
            best[i * width + j] = if one[i] == other[j] {
                best[(i + 1) * width + j + 1] + 1
            } else {
                best[(i + 1) * width + j].max(best[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < one.len() && j < other.len() {
        if one[i] == other[j] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if best[(i + 1) * width + j] >= best[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

/// Returns `text` with every occurrence of `value`, as a whole word and whatever its case, replaced.
fn without(text: &str, value: &str) -> String {
    let escaped: String = value
        .chars()
        .flat_map(|c| {
            (!c.is_alphanumeric() && !c.is_whitespace() && c.is_ascii()).then_some('\\').into_iter().chain([c])
        })
        .collect();
    let Ok(pattern) = Regex::new(&format!("(?i){escaped}")) else { return text.to_owned() };
    let mut out = String::new();
    let mut done = 0;
    for found in pattern.find_iter(text) {
        let before = text[..found.start()].chars().next_back().is_some_and(char::is_alphanumeric);
        let after = text[found.end()..].chars().next().is_some_and(char::is_alphanumeric);
        if !before && !after {
            out.push_str(&text[done..found.start()]);
            out.push_str("[TRAIT]");
            done = found.end();
        }
    }
    out + &text[done..]
}

/// A part of a text that may belong to a number.
struct Token<'a> {
    /// Text of the token, unchanged.
    text: &'a str,
    /// Digits of the token, if it consists of digits.
    digits: Option<String>,
}

/// Replaces runs of digits and digit words that are long enough.
fn numbers(text: &str) -> String {
    let mut out = String::new();
    let mut run: Vec<Token<'_>> = Vec::new();
    for piece in pieces(text) {
        let token = token(piece);
        let joins = token.digits.is_some() || (!run.is_empty() && is_joint(piece));
        if joins {
            run.push(token);
        } else {
            close(&mut run, &mut out);
            out.push_str(piece);
        }
    }
    close(&mut run, &mut out);
    out
}

/// Returns words, numbers, and what lies between them.
fn pieces(text: &str) -> Vec<&str> {
    let kind = |c: char| {
        if c.is_ascii_digit() {
            0
        } else if c.is_alphanumeric() {
            1
        } else {
            2
        }
    };
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let parts = chars.chunk_by(|one, next| kind(one.1) == kind(next.1));
    parts
        .map(|part| {
            let (from, (last, c)) = (part[0].0, part[part.len() - 1]);
            &text[from..last + c.len_utf8()]
        })
        .collect()
}

fn token(text: &str) -> Token<'_> {
    let spoken = DIGIT_WORDS.iter().position(|word| word.eq_ignore_ascii_case(text));
    let digits = match spoken {
        Some(digit) => Some((digit % 10).to_string()),
        None if text.bytes().all(|b| b.is_ascii_digit()) => Some(text.to_owned()),
        None => None,
    };
    Token { text, digits }
}

/// True if a text may separate the digits of one number: at most 3 bytes of blanks and punctuation.
fn is_joint(text: &str) -> bool {
    text.chars().all(|c| matches!(c, ' ' | '-' | '.' | ',' | '(' | ')' | '/' | '\u{a0}')) && text.len() <= 3
}

/// Ends a run: writes what it is, or itself.
fn close(run: &mut Vec<Token<'_>>, out: &mut String) {
    let mut tail = Vec::new();
    while run.last().is_some_and(|token| token.digits.is_none()) {
        tail.extend(run.pop());
    }
    let digits: String = run.iter().filter_map(|token| token.digits.as_deref()).collect();
    let written: String = run.iter().map(|token| token.text).collect();
    if digits.len() < LEAST_DIGITS {
        out.push_str(&written);
    } else {
        let plus = out.ends_with('+');
        if plus {
            out.pop();
        }
        out.push_str(kind(&digits, &written, plus));
    }
    run.clear();
    tail.into_iter().rev().for_each(|token| out.push_str(token.text));
}

fn kind(digits: &str, written: &str, plus: bool) -> &'static str {
    if CARD_DIGITS.contains(&digits.len()) && luhn(digits) {
        "[CARD]"
    } else if SOCIAL_SECURITY.is_match(written) {
        "[ID]"
    } else if plus || PHONE_DIGITS.contains(&digits.len()) {
        "[PHONE]"
    } else {
        "[NUMBER]"
    }
}

/// True if the check digit of a card number is right (ISO/IEC 7812-1 annex B).
fn luhn(digits: &str) -> bool {
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, b)| match u32::from(b - b'0') * (1 + at as u32 % 2) {
            double if double > 9 => double - 9,
            single => single,
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use ringer_model::digital_human::Role;
    use ringer_model::transcript::{EntrySource, TextMissing, Word};
    use serde_json::json;

    use super::*;

    fn redactor() -> Redactor {
        Redactor::new(["M-4411 x".to_owned(), "Alvarez".to_owned(), "no".to_owned()])
    }

    #[test]
    fn what_is_private_is_replaced_by_its_kind() {
        for (said, left) in [
            ("My code is 1234.", "My code is [NUMBER]."),
            ("Gate 12, in 5 minutes, at 9.30.", "Gate 12, in 5 minutes, at 9.30."),
            ("It is one two three four, thank you.", "It is [NUMBER], thank you."),
            ("One of the two.", "One of the two."),
            ("Call +1 (555) 010-4477 please", "Call [PHONE] please"),
            ("call 555 0104 now", "call [PHONE] now"),
            ("five five five oh one oh four", "[PHONE]"),
            ("Card 4111 1111 1111 1111, expires soon", "Card [CARD], expires soon"),
            ("4111 1111 1111 1112", "[NUMBER]"),
            ("my number is 123-45-6789", "my number is [ID]"),
            ("write to jo.doe+x@example.co.uk.", "write to [EMAIL]."),
            ("it is jo dot doe at example dot com", "it is [EMAIL]"),
            ("born 1988-03-03, or 3/3/88", "born [DATE], or [DATE]"),
            ("March third, nineteen eighty-eight", "[DATE]"),
            ("on the 3rd of March 1988 at noon", "on [DATE] at noon"),
            ("You may come in.", "You may come in."),
            ("I am Maria ALVAREZ, member m-4411 X.", "I am Maria [TRAIT], member [TRAIT]."),
            ("Alvarezes and no.", "Alvarezes and no."),
            ("", ""),
            ("Größe 12345 \u{1f600} ok", "Größe [NUMBER] \u{1f600} ok"),
        ] {
            assert_eq!(redactor().text(said), left, "{said}");
            assert_eq!(redactor().text(left), left, "again");
            assert_eq!(MARKS.iter().any(|mark| left.contains(mark)), said != left, "{left}");
        }
    }

    #[test]
    fn private_words_have_places() {
        let words = "the code is one two three four okay".split(' ').enumerate();
        let words: Vec<Word> = words
            .map(|(at, word)| {
                let start_offset_ms = 1000 + 100 * at as i64;
                Word { word: word.into(), start_offset_ms, end_offset_ms: start_offset_ms + 80, confidence: None }
            })
            .collect();
        let said = "the code is one two three four okay";
        let whole = TranscriptEntry::of(Role::Agent, 1000, 1800, said.into(), EntrySource::Recognized);
        let entry = |words: Vec<Word>| TranscriptEntry { words, ..whole.clone() };
        let mut transcript =
            Transcript { simulation_result_id: 1, language: "en".into(), entries: vec![entry(words), entry(vec![])] };
        let spans = redactor().transcript(&mut transcript);
        assert_eq!(spans, [1250..1430, 1350..1530, 1450..1630, 1550..1730, 950..1850]);
        let heard: Vec<&str> = transcript.entries[0].words.iter().map(|word| word.word.as_str()).collect();
        assert_eq!(heard.join(" "), "the code is [PRIVATE] [PRIVATE] [PRIVATE] [PRIVATE] okay");
        assert!(transcript.entries.iter().all(|entry| entry.utterance == "the code is [NUMBER] okay"));
        let source = EntrySource::Synthesized;
        let said = TranscriptEntry { utterance: said.into(), source, ..transcript.entries[0].clone() };
        let mut own = Transcript { entries: vec![said], ..transcript.clone() };
        assert_eq!(redactor().transcript(&mut own), vec![700..2100], "its times are estimated");
        // The places of words that are silent are known; without words the sound may be another one.
        assert_eq!(redactor().transcript(&mut transcript), vec![950..1850]);
    }

    #[test]
    fn very_many_words_are_private_together() {
        for (count, hidden) in [(MOST_WORDS, 1), (MOST_WORDS + 1, MOST_WORDS + 1), (10_000, 10_000)] {
            for (word, hidden) in [("98765", hidden), ("thanks", 0)] {
                let mut words = vec!["well".to_owned(); count];
                words[count / 2] = word.into();
                let private = redactor().private(&words);
                let found = private.iter().filter(|hidden| **hidden).count();
                assert_eq!((found, private[count / 2]), (hidden, hidden > 0), "{count} with {word}");
            }
        }
    }

    #[test]
    fn words_may_have_any_times() {
        let entry = |from, to| TranscriptEntry::of(Role::User, from, to, "98765".into(), EntrySource::Recognized);
        let entries = vec![entry(i64::MIN, i64::MIN), entry(i64::MAX, i64::MAX)];
        let mut transcript = Transcript { simulation_result_id: 1, language: "en".into(), entries };
        let spans = redactor().transcript(&mut transcript);
        assert_eq!(spans, [i64::MIN..i64::MIN + 50, i64::MAX - 50..i64::MAX]);
    }

    #[test]
    fn an_entry_without_words_has_nothing_private() {
        let lost = TranscriptEntry {
            text_missing: Some(TextMissing::Unclear),
            ..TranscriptEntry::of(Role::Agent, 0, 900, String::new(), EntrySource::Recognized)
        };
        let mut transcript = Transcript { simulation_result_id: 1, language: "en".into(), entries: vec![lost.clone()] };
        assert_eq!(redactor().transcript(&mut transcript), []);
        assert_eq!(transcript.entries, [lost]);
    }

    #[test]
    fn timelines_keep_their_positions() {
        let key = |sample: i64, digit: &str| json!({"seq": 0, "side": "dh", "event": "dtmf_sent", "sample": sample, "data": {"digits": digit, "duration_ms": 100}});
        let mut events = vec![
            json!({"seq": 0, "side": "agent", "event": "turn.ended", "sample": 123_456, "data": {"text": "code 98765", "from_sample": 11_111}}),
            key(16_000, "1"),
            key(20_000, "2"),
            key(24_000, "3"),
            key(28_000, "4"),
            key(160_000, "9"),
        ];
        let moments = super::super::moments(&Value::Array(events.clone()));
        assert_eq!(key_spans(&moments), [950..1150, 1200..1400, 1450..1650, 1700..1900]);
        redactor().timeline(&mut events);
        assert_eq!(
            events[0],
            json!({"seq": 0, "side": "agent", "event": "turn.ended", "sample": 123_456, "data": {"text": "code [NUMBER]", "from_sample": 11_111}})
        );
        let digits: Vec<&str> = events[1..].iter().map(|event| event["data"]["digits"].as_str().unwrap()).collect();
        assert_eq!(digits, ["[NUMBER]", "[NUMBER]", "[NUMBER]", "[NUMBER]", "9"]);
    }

    #[test]
    fn values_of_calls_are_seen_through() {
        let mut value =
            json!({"name": "book", "parameters": {"phone": "+15550104477", "count": 2, "card": 4111111111111111u64}});
        redactor().value(&mut value);
        assert_eq!(value, json!({"name": "book", "parameters": {"phone": "[PHONE]", "count": 2, "card": "[CARD]"}}));
    }
}
