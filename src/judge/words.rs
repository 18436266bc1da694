//! How well the recognizer understood the agent: word errors against the agent's own transcript.

use crate::human::text::{plain_words, unspaced};
use crate::model::digital_human::Role;
use crate::model::transcript::{EntrySource, PostedEntry, TranscriptEntry};

/// Words of a side above which nothing is compared: the time of it grows with the square.
const WORDS_MAX: usize = 10_000;

/// Word error rate: the fewest insertions, deletions and substitutions that lead from the agent's `recorded` words to those
/// that were `heard`, over the recorded ones. Case and punctuation do not count; each letter of a script without blanks is a
/// word. `None` when the agent recorded nothing, nothing of it was recognized at all, or a side has more than 10000 words.
pub fn predicted_wer(recorded: &[PostedEntry], heard: &[TranscriptEntry]) -> Option<f64> {
    let recorded = recorded.iter().filter(|entry| entry.speaker == Role::Agent);
    let recorded: Vec<String> = recorded.flat_map(|entry| words(&entry.utterance)).collect();
    // Keys that the agent pressed are written in brackets, and are no words.
    let said = |entry: &&TranscriptEntry| {
        entry.speaker == Role::Agent
            && entry.source == EntrySource::Recognized
            && !entry.utterance.starts_with("[DTMF ")
    };
    let heard: Vec<String> = heard.iter().filter(said).flat_map(|entry| words(&entry.utterance)).collect();
    let countable = |words: &[String]| (1..=WORDS_MAX).contains(&words.len());
    let rate = || (1000.0 * errors(&recorded, &heard) as f64 / recorded.len() as f64).round() / 1000.0;
    (countable(&recorded) && countable(&heard)).then(rate)
}

fn words(text: &str) -> Vec<String> {
    let apart = |word: String| match word.contains(unspaced) {
        true => word.chars().map(String::from).collect(),
        false => vec![word],
    };
    plain_words(text).into_iter().flat_map(apart).collect()
}

/// The edit distance (Levenshtein), a row at a time.
fn errors(wanted: &[String], found: &[String]) -> usize {
    let mut row: Vec<usize> = (0..=found.len()).collect();
    for (at, wanted) in wanted.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (n, found) in found.iter().enumerate() {
            let substituted = diagonal + usize::from(wanted != found);
            diagonal = row[n + 1];
            row[n + 1] = substituted.min(row[n] + 1).min(diagonal + 1);
        }
    }
    row[found.len()]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Cases of `fixtures/audio/words.json`, worked out by hand.
    #[test]
    fn word_errors_are_those_that_were_counted_by_hand() {
        let fixture: Value = serde_json::from_str(include_str!("../../fixtures/audio/words.json")).expect("JSON");
        for case in fixture["word_errors"].as_array().expect("cases") {
            let recorded = case["recorded"].as_array().expect("lines").iter().map(|line| {
                let entry = json!({"start_offset_ms": 0, "end_offset_ms": 0, "speaker": line[0], "utterance": line[1]});
                serde_json::from_value(entry).expect("a posted entry")
            });
            let heard = case["heard"].as_array().expect("lines").iter().map(|line| {
                let entry = json!({
                    "start_offset_ms": 0, "end_offset_ms": 0, "speaker": line[0], "utterance": line[1],
                    "filler_utterance": false, "interrupted": false, "scripted": false, "confidence": null,
                    "source": if line[0] == "USER" { "synthesized" } else { "recognized" }, "words": [],
                });
                serde_json::from_value(entry).expect("an entry")
            });
            let found = predicted_wer(&recorded.collect::<Vec<_>>(), &heard.collect::<Vec<_>>());
            assert_eq!(found, case["expect"].as_f64(), "{case}");
        }
    }

    #[test]
    fn what_is_too_long_is_not_compared() {
        let entry = |utterance| PostedEntry {
            start_offset_ms: 0,
            end_offset_ms: 0,
            speaker: Role::Agent,
            utterance,
            filler_utterance: None,
        };
        let heard: TranscriptEntry = serde_json::from_value(json!({
            "start_offset_ms": 0, "end_offset_ms": 0, "speaker": "AGENT", "utterance": "word", "filler_utterance": false,
            "interrupted": false, "scripted": false, "confidence": null, "source": "recognized", "words": [],
        }))
        .expect("an entry");
        for (count, expect) in [(4, Some(0.75)), (WORDS_MAX, Some(1.0)), (WORDS_MAX + 1, None)] {
            let long = entry("word ".repeat(count));
            assert_eq!(predicted_wer(&[long], std::slice::from_ref(&heard)), expect, "{count}");
        }
    }
}
