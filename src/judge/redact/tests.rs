//! Redaction of what is private, and what stays.

mod languages;

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
fn one_private_word_among_very_many_is_found_alone() {
    for count in [2000, 2001, 10_000] {
        for (word, hidden) in [("98765", 1), ("thanks", 0)] {
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
    let digit_event = |sample: i64, digit: &str| json!({"seq": 0, "side": "dh", "event": "dtmf_sent", "sample": sample, "data": {"digits": digit, "duration_ms": 100}});
    let mut events = vec![
        json!({"seq": 0, "side": "agent", "event": "turn.ended", "sample": 123_456, "data": {"text": "code 98765", "from_sample": 11_111}}),
        digit_event(16_000, "1"),
        digit_event(20_000, "2"),
        digit_event(24_000, "3"),
        digit_event(28_000, "4"),
        digit_event(160_000, "9"),
    ];
    let moments = super::super::moments(&Value::Array(events.clone()));
    assert_eq!(digit_spans(&moments), [950..1150, 1200..1400, 1450..1650, 1700..1900]);
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
