//! Takes what is private out of a conversation: numbers, addresses, dates and the traits of the Digital Human. Pure.
//!
//! Numbers, dates and addresses are found as they are written and as they are spoken, in every language that callers
//! speak. Those of a text are English, the conversation's own, and those that its script shows. Where the own one is
//! not known, it is the one that the text seems to be in. Names of people and places stay, unless they are traits.
//!
//! The whole utterance of a private word is silenced in the recording: the times of its words are estimates, and a rest
//! would be left.

mod dates;
mod mails;
mod numbers;
mod shadow;
mod values;
mod words;

use std::ops::Range;

use ringer_human::language::of_text;
use ringer_human::text::is_unspaced;
use ringer_media::call::TimelineEntry;
use ringer_media::numerals::Numerals;
use ringer_model::transcript::{EntrySource, Transcript, TranscriptEntry};
use serde_json::Value;

use self::shadow::Shadow;
use super::reading::{PressedDigit, pressed_digit};

/// Digits from which a number is private.
const LEAST_DIGITS: usize = 4;
/// Keys further apart than this are two entries.
const DIGITS_APART: i64 = 3 * 16_000;
/// Length of a key that does not tell.
const DIGIT_MS: i64 = 100;
/// Audio that is silenced around a private word, milliseconds.
const AROUND_MS: i64 = 50;
/// The same around own words. What the codec does not carry of them, as of a hiss at their end, is no speech but is
/// recorded.
const AROUND_OWN_MS: i64 = 300;

/// Marks that stand in place of private parts.
const MARKS: [&str; 7] = ["[TRAIT]", "[EMAIL]", "[DATE]", "[CARD]", "[ID]", "[PHONE]", "[NUMBER]"];
/// Languages that are written with Latin letters, besides English.
const LATIN: [&str; 6] = ["es", "pt", "tr", "fr", "vi", "de"];

/// A private part of a text, with the mark that takes its place.
type Part = (Range<usize>, &'static str);

/// Knows what is private in the conversations of one Digital Human.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    /// Values of its traits, the longest first.
    traits: Vec<String>,
    /// Language of the conversation; `None`: not known.
    language: Option<&'static str>,
}

impl Redactor {
    /// Returns a redactor. `traits`: values of the Digital Human's traits. Words of one or two letters tell nothing and
    /// are left; two letters of a script without blanks are a word.
    pub fn new(traits: impl IntoIterator<Item = String>) -> Redactor {
        let tells = |text: &String| {
            let least = if text.contains(values::is_dense) { 1 } else { 2 };
            text.chars().count() > least
        };
        let mut traits: Vec<String> = traits.into_iter().map(|text| text.trim().to_owned()).filter(tells).collect();
        traits.sort_by_key(|text| std::cmp::Reverse(text.len()));
        Redactor { traits, language: None }
    }

    /// Returns the redactor of conversations in a language (`en`, `es`, ...); another code means an unknown one.
    pub fn speaking(self, language: &str) -> Redactor {
        let known = ringer_media::numerals::languages().find(|code| *code == language);
        Redactor { language: known, ..self }
    }

    /// Returns the text with `[TRAIT]`, `[EMAIL]`, `[DATE]`, `[CARD]`, `[ID]`, `[PHONE]`, `[NUMBER]` in place of what
    /// is private.
    pub fn text(&self, text: &str) -> String {
        let (mut out, mut done) = (String::with_capacity(text.len()), 0);
        for (place, mark) in self.parts(text) {
            out.push_str(&text[done..place.start]);
            out.push_str(mark);
            done = place.end;
        }
        out + &text[done..]
    }

    /// Returns the private parts of a text, in order and apart.
    fn parts(&self, text: &str) -> Vec<Part> {
        if text.is_empty() {
            return Vec::new();
        }
        let mut parts = Vec::new();
        for value in &self.traits {
            values::places(text, value).into_iter().for_each(|place| enter(&mut parts, (place, "[TRAIT]")));
        }
        let shadow = Shadow::of(text);
        mails::written_addresses(&shadow).into_iter().for_each(|place| enter(&mut parts, (place, "[EMAIL]")));
        let languages = self.languages(text);
        for language in &languages {
            mails::spoken_addresses(language, text).into_iter().for_each(|place| enter(&mut parts, (place, "[EMAIL]")));
        }
        dates::written_dates(&shadow).into_iter().for_each(|place| enter(&mut parts, (place, "[DATE]")));
        let numbers: Vec<_> =
            languages.iter().filter_map(|language| Some((*language, Numerals::of(language)?.find(text)))).collect();
        for (language, found) in &numbers {
            dates::dates(language, text, found).into_iter().for_each(|place| enter(&mut parts, (place, "[DATE]")));
        }
        numbers::identities(&shadow).into_iter().for_each(|place| enter(&mut parts, (place, "[ID]")));
        for (_, found) in &numbers {
            let private = numbers::private(text, found, &parts);
            private.into_iter().for_each(|part| enter(&mut parts, part));
        }
        parts
    }

    /// Returns the languages that a text may be in.
    fn languages(&self, text: &str) -> Vec<&'static str> {
        let mut languages = vec!["en"];
        let has = |from: char, to: char| text.chars().any(|c| (from..=to).contains(&c));
        let by_script = [
            ("ru", has('\u{400}', '\u{4ff}')),
            ("ar", has('\u{600}', '\u{6ff}')),
            ("hi", has('\u{900}', '\u{97f}')),
            ("ml", has('\u{d00}', '\u{d7f}')),
            ("ko", has('\u{ac00}', '\u{d7a3}')),
            ("ja", has('\u{3040}', '\u{30ff}')),
            ("zh", has('\u{4e00}', '\u{9fff}')),
            ("yue", has('\u{4e00}', '\u{9fff}')),
        ];
        let own = match self.language {
            Some(own) => vec![own],
            None if !text.contains(char::is_alphabetic) => Vec::new(),
            None => of_text(text).map_or(LATIN.to_vec(), |language| vec![language]),
        };
        let scripts = by_script.iter().filter(|(_, has)| *has).map(|(code, _)| *code);
        for code in own.into_iter().chain(scripts) {
            if !languages.contains(&code) {
                languages.push(code);
            }
        }
        languages
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
            let runs: Vec<Vec<usize>> = places
                .chunk_by(|one, next| sample(*next) - sample(*one) < DIGITS_APART)
                .map(<[usize]>::to_vec)
                .collect();
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

    /// Returns true for each word that is part of something private.
    fn private(&self, words: &[String]) -> Vec<bool> {
        let (mut text, mut places) = (String::new(), Vec::with_capacity(words.len()));
        for word in words {
            // Letters of a script without blanks are words of their own.
            let is_close = text.ends_with(is_unspaced) && word.starts_with(is_unspaced);
            if !text.is_empty() && !is_close {
                text.push(' ');
            }
            places.push(text.len()..text.len() + word.len());
            text.push_str(word);
        }
        let parts = self.parts(&text);
        let mut first = 0;
        let is_private = |place: Range<usize>| {
            first += parts[first..].iter().take_while(|(part, _)| part.end <= place.start).count();
            parts.get(first).is_some_and(|(part, _)| part.start < place.end)
        };
        places.into_iter().map(is_private).collect()
    }
}

/// Enters a part in order. One that holds others takes their place; one that overlaps others joins the first of them.
fn enter(parts: &mut Vec<Part>, (mut place, mut mark): Part) {
    let overlaps = |part: &Part| part.0.start < place.end && place.start < part.0.end;
    let touched: Vec<usize> = (0..parts.len()).filter(|at| overlaps(&parts[*at])).collect();
    if let (Some(first), Some(last)) = (touched.first(), touched.last()) {
        let (from, to) = (parts[*first].0.start, parts[*last].0.end);
        let holds = place.start <= from && to <= place.end && place.len() > to - from;
        if !holds {
            mark = parts[*first].1;
        }
        place = place.start.min(from)..place.end.max(to);
        parts.drain(*first..=*last);
    }
    let at = parts.partition_point(|part| part.0.start < place.start);
    parts.insert(at, (place, mark));
}

/// Returns the digits and sounds of digits in the band, in milliseconds from connect, that belong to private numbers.
pub fn digit_spans(moments: &[TimelineEntry]) -> Vec<Range<i64>> {
    let mut spans = Vec::new();
    for sent in [true, false] {
        let digits = moments.iter().filter_map(|moment| pressed_digit(moment));
        let digits: Vec<PressedDigit> = digits.filter(|digit| digit.sent == sent).collect();
        for run in digits.chunk_by(|one, next| next.at - one.at < DIGITS_APART) {
            if run.len() >= LEAST_DIGITS {
                spans.extend(run.iter().map(|digit| {
                    let (from, ms) = (digit.at / 16, if digit.duration_ms == 0 { DIGIT_MS } else { digit.duration_ms });
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

#[cfg(test)]
mod tests;
