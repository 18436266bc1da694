//! Word error rate of the recognizer, measured against the agent's own transcript.

use ringer_human::text::{is_unspaced, plain_words};
use ringer_model::digital_human::Role;
use ringer_model::transcript::{EntrySource, PostedEntry, TranscriptEntry};
use strsim::generic_levenshtein;

use super::unheard::{Unheard, with_entries};

/// Words of a side above which nothing is compared: the time of it grows with the square.
const WORDS_MAX: usize = 10_000;

/// Result of comparing two transcripts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WordErrors {
    /// Errors over recorded words, 0 and above, 3 decimals.
    pub rate: Option<f64>,
    /// Warning about parts that were not compared, for display.
    pub warning: Option<String>,
}

/// Returns the word error rate: the fewest insertions, deletions and substitutions that lead from the agent's
/// `recorded` words to the `heard` ones, over the recorded ones. Case and punctuation do not count; each letter of a
/// script without blanks is a word. The rate is `None` when the agent recorded nothing, nothing of it was recognized,
/// or a side has more than 10000 words.
///
/// Turns whose words are not known are left out on both sides, with all that was recorded or heard at the same time.
/// They show that a recognizer was missing or late, and not how well it understands.
pub fn predicted_wer(recorded: &[PostedEntry], heard: &[TranscriptEntry], unheard: &[Unheard]) -> WordErrors {
    let recorded: Vec<&PostedEntry> = recorded.iter().filter(|entry| entry.speaker == Role::Agent).collect();
    // Keys that the agent pressed are written in brackets, and are no words.
    let said = |entry: &&TranscriptEntry| {
        entry.speaker == Role::Agent
            && entry.has_words()
            && entry.source == EntrySource::Recognized
            && !entry.utterance.starts_with("[DTMF ")
    };
    let unheard = with_entries(unheard, heard);
    let heard: Vec<&TranscriptEntry> = heard.iter().filter(said).collect();
    let lost = unheard.iter().filter(|turn| turn.speaker == Role::Agent && turn.lacks_words());
    let lost: Vec<(i64, i64)> = lost.map(|turn| (turn.from_ms, turn.to_ms)).collect();
    let of_recorded: Vec<(i64, i64)> =
        recorded.iter().map(|entry| (entry.start_offset_ms, entry.end_offset_ms)).collect();
    let of_heard = heard.iter().map(|entry| (entry.start_offset_ms, entry.end_offset_ms));
    let out = beside(&lost, &[&of_recorded[..], &of_heard.collect::<Vec<_>>()].concat());
    let kept = |texts: &mut dyn Iterator<Item = &str>, out: &[bool]| -> Vec<String> {
        texts.zip(out).filter(|(_, out)| !**out).flat_map(|(text, _)| words(text)).collect()
    };
    let wanted = kept(&mut recorded.iter().map(|entry| entry.utterance.as_str()), &out[..recorded.len()]);
    let found = kept(&mut heard.iter().map(|entry| entry.utterance.as_str()), &out[recorded.len()..]);
    let countable = |words: &[String]| (1..=WORDS_MAX).contains(&words.len());
    let is_timed = lost.is_empty() || !are_one_moment(&of_recorded);
    let rate = || (1000.0 * generic_levenshtein(&wanted, &found) as f64 / wanted.len() as f64).round() / 1000.0;
    let rate = (is_timed && countable(&wanted) && countable(&found)).then(rate);
    let turns = format!("{} turn{} of the agent", lost.len(), if lost.len() == 1 { "" } else { "s" });
    let warning = match rate {
        _ if lost.is_empty() || recorded.is_empty() => None,
        Some(_) => Some(format!("{turns}, whose words are not known, left out")),
        None if !is_timed => Some(format!(
            "nothing compared: words of {turns} are not known, and the recorded transcript tells no times"
        )),
        None if wanted.is_empty() || found.is_empty() => {
            Some(format!("nothing compared: words of {turns} are not known, and nothing else is on both sides"))
        }
        None => None,
    };
    WordErrors { rate, warning }
}

/// Returns true for each span that overlaps one of `lost`, or overlaps a span that does.
fn beside(lost: &[(i64, i64)], spans: &[(i64, i64)]) -> Vec<bool> {
    let numbered = spans.iter().enumerate().map(|(at, span)| (*span, Some(at)));
    let mut all: Vec<_> = lost.iter().map(|span| (*span, None)).chain(numbered).collect();
    all.sort_by_key(|((from, _), _)| *from);
    let mut out = vec![false; spans.len()];
    let (mut group, mut end, mut is_lost) = (Vec::new(), i64::MIN, false);
    for ((from, to), at) in all {
        if from >= end {
            group.drain(..).for_each(|at: usize| out[at] |= is_lost);
            is_lost = false;
        }
        // A moment overlaps what is around it.
        end = end.max(to).max(from.saturating_add(1));
        is_lost |= at.is_none();
        group.extend(at);
    }
    group.into_iter().for_each(|at| out[at] |= is_lost);
    out
}

/// True of times that tell nothing.
fn are_one_moment(spans: &[(i64, i64)]) -> bool {
    let times = || spans.iter().flat_map(|(from, to)| [*from, *to]);
    times().min() == times().max()
}

fn words(text: &str) -> Vec<String> {
    let apart = |word: String| match word.contains(is_unspaced) {
        true => word.chars().map(String::from).collect(),
        false => vec![word],
    };
    plain_words(text).into_iter().flat_map(apart).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Lack;

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
            let found = predicted_wer(&recorded.collect::<Vec<_>>(), &heard.collect::<Vec<_>>(), &[]);
            assert_eq!(found, WordErrors { rate: case["expect"].as_f64(), warning: None }, "{case}");
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
            assert_eq!(predicted_wer(&[long], std::slice::from_ref(&heard), &[]).rate, expect, "{count}");
        }
    }

    /// Start and end of a line in milliseconds, and its words.
    type Line = (i64, i64, &'static str);
    /// Recorded and heard lines, turns that were not heard, and the expected rate and warning.
    type UnheardCase = (&'static [Line], &'static [Line], Vec<Unheard>, Option<f64>, Option<&'static str>);

    const RECORDED: &[Line] = &[(0, 2000, "one two"), (4000, 6000, "three four"), (8000, 9000, "five six")];
    const HEARD: &[Line] = &[(100, 1900, "one too"), (8000, 9100, "five six")];
    const ONE: &str = "1 turn of the agent, whose words are not known, left out";

    fn posted_entry((start_offset_ms, end_offset_ms, utterance): &Line) -> PostedEntry {
        PostedEntry {
            start_offset_ms: *start_offset_ms,
            end_offset_ms: *end_offset_ms,
            speaker: Role::Agent,
            utterance: (*utterance).to_owned(),
            filler_utterance: None,
        }
    }

    fn missing_turn(speaker: Role, from_ms: i64, to_ms: i64, lack: Lack) -> Unheard {
        Unheard { speaker, from_ms, to_ms, lack }
    }

    /// Turns that were recorded, and not heard.
    fn unheard_cases() -> Vec<UnheardCase> {
        vec![
            (RECORDED, HEARD, vec![], Some(0.5), None),
            (RECORDED, HEARD, vec![missing_turn(Role::Agent, 4100, 6100, Lack::Words)], Some(0.25), Some(ONE)),
            // The rest of a turn with some known words would be missing.
            (RECORDED, HEARD, vec![missing_turn(Role::Agent, 8000, 9100, Lack::Rest)], Some(0.75), Some(ONE)),
            (
                RECORDED,
                HEARD,
                vec![
                    missing_turn(Role::Agent, 0, 1900, Lack::Rest),
                    missing_turn(Role::Agent, 4100, 6100, Lack::Words),
                ],
                Some(0.0),
                Some("2 turns of the agent, whose words are not known, left out"),
            ),
            // An entry without words tells of its turn, as the timeline does.
            (
                RECORDED,
                &[(100, 1900, "one too"), (4100, 6100, ""), (8000, 9100, "five six")],
                vec![],
                Some(0.25),
                Some(ONE),
            ),
            (
                RECORDED,
                &[(100, 1900, "one too"), (4100, 6100, ""), (8000, 9100, "five six")],
                vec![missing_turn(Role::Agent, 4100, 6100, Lack::Words)],
                Some(0.25),
                Some(ONE),
            ),
        ]
    }

    /// Turns that were recorded otherwise than they were heard, or not at all.
    fn unrecorded_cases() -> Vec<UnheardCase> {
        vec![
            // Nothing was recorded of what was not heard.
            (RECORDED, HEARD, vec![missing_turn(Role::Agent, 2500, 3500, Lack::Words)], Some(0.5), Some(ONE)),
            (RECORDED, HEARD, vec![missing_turn(Role::User, 4100, 6100, Lack::Words)], Some(0.5), None),
            (RECORDED, HEARD, vec![missing_turn(Role::Agent, 4100, 6100, Lack::Time)], Some(0.5), None),
            // One line that was recorded of two turns goes with both.
            (
                &[(0, 2000, "one two"), (3900, 9000, "three four five six")],
                HEARD,
                vec![missing_turn(Role::Agent, 4100, 6100, Lack::Words)],
                Some(0.5),
                Some(ONE),
            ),
            // A line may be recorded with its start alone.
            (
                &[(0, 0, "one two"), (4200, 4200, "three four"), (8000, 8000, "five six")],
                HEARD,
                vec![missing_turn(Role::Agent, 4100, 6100, Lack::Words)],
                Some(0.25),
                Some(ONE),
            ),
            (
                &[(0, 0, "one two"), (0, 0, "three four")],
                HEARD,
                vec![missing_turn(Role::Agent, 4100, 6100, Lack::Words)],
                None,
                Some(
                    "nothing compared: words of 1 turn of the agent are not known, and the recorded transcript tells \
                     no times",
                ),
            ),
            (
                &[(4000, 6000, "three four")],
                &[],
                vec![missing_turn(Role::Agent, 4100, 6100, Lack::Words)],
                None,
                Some("nothing compared: words of 1 turn of the agent are not known, and nothing else is on both sides"),
            ),
            (&[], HEARD, vec![missing_turn(Role::Agent, 4100, 6100, Lack::Words)], None, None),
        ]
    }

    #[test]
    fn turns_whose_words_are_not_known_are_left_out_on_both_sides() {
        for (recorded, heard, unheard, rate, warning) in [unheard_cases(), unrecorded_cases()].concat() {
            let recorded: Vec<PostedEntry> = recorded.iter().map(posted_entry).collect();
            let heard: Vec<TranscriptEntry> = heard.iter().map(posted_entry).map(|line| (&line).into()).collect();
            let expect = WordErrors { rate, warning: warning.map(str::to_owned) };
            assert_eq!(predicted_wer(&recorded, &heard, &unheard), expect, "{unheard:?}");
        }
    }
}
