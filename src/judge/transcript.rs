//! Transcript entries of both sides, from a timeline.

use ringer_media::call::{EventKind, Kind, TimelineEntry, Word as Heard};
use ringer_model::digital_human::Role;
use ringer_model::transcript::{EntrySource, TextMissing, Transcript, TranscriptEntry, Word};

use super::reading::{self, AgentTurn, Said, own_cuts, pressed_digit, speech_end, turn, whole_ms};
use super::spoken::{self, Run};
use super::unheard::{Unheard, recorded};

/// Samples in a millisecond.
const PER_MS: i64 = 16;
/// A pause of this length ends a turn part.
const PART_GAP_MS: i64 = 1000;
/// Digits closer than this are one entry.
const DIGITS_GAP_MS: i64 = 3000;

/// Returns the transcript of a conversation. `fillers`: phrases that only fill time, in lower case.
pub fn transcript(result_id: i64, language: &str, moments: &[TimelineEntry], fillers: &[String]) -> Transcript {
    let mut entries = own_entries(language, moments);
    for moment in moments {
        if let Some(turn) = turn(moment) {
            entries.extend(agent_entries(&turn, moments));
        } else if let Some(end) = speech_end(moment) {
            entries.extend(recorded(&end, moments).map(|turn| playback_entry(&turn)));
        } else if let EventKind::MessageSent { text, kind, .. } = moment.reading() {
            entries.push(message_entry(moment.sample, text, *kind));
        }
    }
    entries.extend(key_entries(moments, Role::User, EntrySource::Synthesized));
    entries.extend(key_entries(moments, Role::Agent, EntrySource::Recognized));
    entries.sort_by_key(|entry| entry.start_offset_ms);
    for entry in &mut entries {
        entry.filler_utterance = only_fillers(&entry.utterance, fillers);
    }
    Transcript { simulation_result_id: result_id, language: language.to_owned(), entries }
}

/// Returns the entries of the Digital Human's speech: the words really spoken, in parts, with times as far as they are
/// known.
fn own_entries(language: &str, moments: &[TimelineEntry]) -> Vec<TranscriptEntry> {
    let mut entries = Vec::new();
    for end in reading::utterances(moments).filter(|end| !end.text.is_empty()) {
        let Said { at, kind, exact, .. } = end;
        let from = end.beginning(moments).map_or(at, |start| start.at);
        let time = from / PER_MS..(at / PER_MS).max(from / PER_MS);
        let pauses: Vec<_> = end.pauses.iter().map(|[start, end]| start / PER_MS..end / PER_MS).collect();
        let runs = spoken::runs(language, end.text, time, &pauses);
        let parts = runs.chunk_by(|one, next| next.time.start - one.time.end < PART_GAP_MS);
        let first = entries.len();
        entries.extend(parts.map(|part| TranscriptEntry {
            scripted: exact || kind == Kind::Scripted,
            words: part.iter().flat_map(|run| run.words.clone()).collect(),
            ..said_in(part)
        }));
        if let Some(last) = entries[first..].last_mut() {
            last.interrupted = end.interrupted;
        }
    }
    entries
}

/// Returns a recording that the Digital Human played: nobody has written down what it says.
fn playback_entry(turn: &Unheard) -> TranscriptEntry {
    TranscriptEntry {
        scripted: true,
        text_missing: Some(TextMissing::NoRecognizer),
        ..TranscriptEntry::of(turn.speaker, turn.from_ms, turn.to_ms, String::new(), EntrySource::Synthesized)
    }
}

/// Runs of words that belong to one part.
fn said_in(part: &[Run]) -> TranscriptEntry {
    let text: Vec<&str> = part.iter().map(|run| run.text.as_str()).collect();
    let (from, to) = (part[0].time.start, part[part.len() - 1].time.end);
    TranscriptEntry::of(Role::User, from, to, text.join(" "), EntrySource::Synthesized)
}

/// Returns the entry of a message that the Digital Human wrote.
fn message_entry(sample: i64, text: &str, kind: Kind) -> TranscriptEntry {
    let (at, scripted) = (sample / PER_MS, kind == Kind::Scripted);
    TranscriptEntry { scripted, ..TranscriptEntry::of(Role::User, at, at, text.to_owned(), EntrySource::Message) }
}

/// Returns one turn of the agent, in parts. One whose words are not known is an entry without words; of one whose words
/// are known in part, the last entry says so.
fn agent_entries(turn: &AgentTurn<'_>, moments: &[TimelineEntry]) -> Vec<TranscriptEntry> {
    let AgentTurn { text, from, end: to, .. } = *turn;
    if turn.written {
        let written =
            TranscriptEntry::of(Role::Agent, from / PER_MS, from / PER_MS, text.to_owned(), EntrySource::Message);
        return if text.is_empty() { Vec::new() } else { vec![written] };
    }
    let words: Vec<Word> = turn.words.iter().map(word).collect();
    let parts: Vec<&[Word]> =
        words.chunk_by(|one, next| next.start_offset_ms - one.end_offset_ms < PART_GAP_MS).collect();
    let source = if turn.reported { EntrySource::Reported } else { EntrySource::Recognized };
    let whole = || TranscriptEntry::of(Role::Agent, from / PER_MS, to / PER_MS, text.to_owned(), source);
    let mut entries: Vec<TranscriptEntry> = match parts[..] {
        [] if text.is_empty() && !turn.lacks_words() => return Vec::new(),
        [] | [_] => vec![TranscriptEntry { words, ..whole() }],
        _ => parts.into_iter().map(part).collect(),
    };
    let interrupted = own_cuts(moments).any(|(at, stopped)| stopped && (from..to).contains(&at));
    let confidence = turn.confidence.map(f64::from);
    entries.iter_mut().for_each(|entry| entry.confidence = confidence);
    if let Some(last) = entries.last_mut() {
        last.interrupted = interrupted;
        last.text_missing = turn.missing.map(TextMissing::of);
    }
    entries
}

fn part(words: &[Word]) -> TranscriptEntry {
    let text: Vec<&str> = words.iter().map(|word| word.word.as_str()).collect();
    let (from, to) = (words[0].start_offset_ms, words[words.len() - 1].end_offset_ms);
    let words = words.to_vec();
    TranscriptEntry { words, ..TranscriptEntry::of(Role::Agent, from, to, text.join(" "), EntrySource::Recognized) }
}

/// Returns a word of a timeline as a transcript has it.
pub(super) fn word(word: &Heard) -> Word {
    Word {
        word: word.text.clone(),
        start_offset_ms: whole_ms(word.from),
        end_offset_ms: whole_ms(word.to),
        confidence: word.confidence.map(f64::from),
    }
}

/// Returns the digits of one side, joined while they follow each other; those of a scripted answer apart from others.
fn key_entries(moments: &[TimelineEntry], speaker: Role, source: EntrySource) -> Vec<TranscriptEntry> {
    let mut runs: Vec<(i64, i64, String, bool)> = Vec::new();
    // When digits were last scripted.
    let mut asked: Option<i64> = None;
    for moment in moments {
        let from = moment.sample / PER_MS;
        if let EventKind::ScriptedResponse { response_type, .. } = moment.reading() {
            asked = (response_type == "dtmf").then_some(from);
        }
        let Some(pressed) = pressed_digit(moment).filter(|pressed| pressed.sent == (speaker == Role::User)) else {
            continue;
        };
        let to = from + pressed.duration_ms;
        let scripted = speaker == Role::User && asked.is_some_and(|last| from - last < DIGITS_GAP_MS);
        asked = scripted.then_some(to);
        match runs.last_mut().filter(|run| run.3 == scripted) {
            Some((_, last, digits, _)) if from - *last < DIGITS_GAP_MS => {
                digits.push(pressed.digit);
                *last = to;
            }
            _ => runs.push((from, to, pressed.digit.to_string(), scripted)),
        }
    }
    let entry = |(from, to, digits, scripted)| TranscriptEntry {
        scripted,
        ..TranscriptEntry::of(speaker, from, to, format!("[DTMF {digits}]"), source)
    };
    runs.into_iter().map(entry).collect()
}

/// True when nothing is left of a text once filler phrases are taken away.
pub(super) fn only_fillers(text: &str, fillers: &[String]) -> bool {
    let words = |text: &str| -> Vec<String> {
        let plain =
            text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase());
        plain.filter(|word| !word.is_empty()).collect()
    };
    let all = words(text);
    let mut left = &all[..];
    let mut longest_first: Vec<Vec<String>> = fillers.iter().map(|filler| words(filler)).collect();
    longest_first.sort_by_key(|filler| std::cmp::Reverse(filler.len()));
    while let Some(filler) = longest_first.iter().find(|filler| !filler.is_empty() && left.starts_with(filler)) {
        left = &left[filler.len()..];
    }
    !all.is_empty() && left.is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{fillers, moments};

    fn check(timeline: Value, expect: &[(&str, i64, i64, &str, &str)]) {
        let transcript = transcript(1, "en", &moments(&timeline), &fillers("en", &[]));
        let marks = |entry: &TranscriptEntry| {
            let marks = [(entry.filler_utterance, 'f'), (entry.interrupted, 'i'), (entry.scripted, 's')];
            marks.iter().filter(|(set, _)| *set).map(|(_, mark)| *mark).collect::<String>()
        };
        let given = transcript.entries.iter().map(|entry| {
            let (from, to) = (entry.start_offset_ms, entry.end_offset_ms);
            (entry.speaker.as_str(), from, to, entry.utterance.clone(), marks(entry))
        });
        let given: Vec<_> = given.collect();
        let expect: Vec<_> = expect
            .iter()
            .map(|(who, from, to, text, marks)| (*who, *from, *to, text.to_string(), marks.to_string()))
            .collect();
        assert_eq!(given, expect);
    }

    fn at(seq: i64, ms: i64, event: &str, side: &str, data: Value) -> Value {
        json!({"seq": seq, "sample": ms * 16, "offset_ms": ms, "event": event, "side": side, "data": data})
    }

    #[test]
    fn both_sides_in_order() {
        let said = |interrupted| json!({"utterance_id": 1, "text": "Hello, I am", "kind": "scripted", "interrupted": interrupted});
        let turn =
            json!({"text": "um okay", "from_sample": 48_000, "end_sample": 56_000, "confidence": 0.9, "words": []});
        check(
            json!([
                at(0, -200, "call.dialing", "engine", json!({})),
                at(4, 3500, "turn.ended", "agent", turn),
                at(1, 1000, "speech.started", "dh", json!({"utterance_id": 1, "text": "Hello, I am Ann."})),
                at(2, 2000, "speech.ended", "dh", said(true)),
                at(3, 4000, "barge_in", "agent", json!({"by": "dh", "overlap_ms": 100, "stop_ms": null})),
            ]),
            &[("USER", 1000, 2000, "Hello, I am", "is"), ("AGENT", 3000, 3500, "um okay", "f")],
        );
    }

    #[test]
    fn what_was_said_is_split_at_long_pauses() {
        let pause = |from: i64, to: i64| json!({ "from_sample": from * 16, "to_sample": to * 16 });
        let said = json!({
            "utterance_id": 1, "text": "Well, um, yes. That is it.", "kind": "turn", "interrupted": true,
            "pauses": [pause(1500, 1800), pause(2500, 3500)],
        });
        let timeline = json!([
            at(0, 1000, "speech.started", "dh", json!({"utterance_id": 1, "text": ""})),
            at(1, 4500, "speech.ended", "dh", said),
        ]);
        let entries = transcript(1, "en", &moments(&timeline), &[]).entries;
        let starts: Vec<(&str, i64)> =
            entries[0].words.iter().map(|word| (word.word.as_str(), word.start_offset_ms)).collect();
        assert_eq!(starts, [("Well,", 1000), ("um,", 1800), ("yes.", 2080)]);
        check(timeline, &[("USER", 1000, 2500, "Well, um, yes.", ""), ("USER", 3500, 4500, "That is it.", "i")]);
    }

    #[test]
    fn turns_whose_words_are_not_known_are_entries_without_words() {
        let turn = |ms: i64, text: &str, missing: Value| {
            let data = json!({"text": text, "from_sample": ms * 16, "end_sample": (ms + 500) * 16, "words": [], "text_missing": missing});
            at(ms, ms + 700, "turn.ended", "agent", data)
        };
        let written = json!({"text": "", "from_sample": 96_000, "end_sample": 96_000, "channel": "http", "text_missing": "unclear"});
        let said = |id: i64, kind: &str, text: &str| json!({"utterance_id": id, "kind": kind, "text": text});
        let timeline = json!([
            turn(1000, "", json!("recognizer_late")),
            turn(2000, "", json!("recognizer_busy")),
            turn(3000, "", json!("no_recognizer")),
            turn(4000, "Yes, and", json!("not_understood")),
            turn(5000, "", json!("unsupported_language")),
            at(6000, 6000, "turn.ended", "agent", written),
            turn(7000, "Bye.", json!(null)),
            turn(8000, "", json!(null)),
            // A recording that the Digital Human played, and one whose words were cut off before the first.
            at(9000, 9000, "speech.started", "dh", said(1, "scripted", "")),
            at(9900, 9900, "speech.ended", "dh", said(1, "scripted", "")),
            at(10_000, 10_000, "speech.started", "dh", said(2, "scripted", "Hello.")),
            at(10_100, 10_100, "speech.ended", "dh", said(2, "scripted", "")),
        ]);
        let entries = transcript(1, "en", &moments(&timeline), &fillers("en", &[])).entries;
        let missing: Vec<_> = entries
            .iter()
            .map(|entry| (entry.start_offset_ms, entry.utterance.as_str(), entry.text_missing.map(TextMissing::as_str)))
            .collect();
        let expect = [
            (1000, "", Some("recognizer_late")),
            (2000, "", Some("recognizer_busy")),
            (3000, "", Some("no_recognizer")),
            (4000, "Yes, and", Some("unclear")),
            (5000, "", Some("unsupported_language")),
            (7000, "Bye.", None),
            (9000, "", Some("no_recognizer")),
        ];
        assert_eq!(missing, expect);
        assert!(entries.iter().all(|entry| !entry.filler_utterance && entry.words.is_empty() || entry.has_words()));
        assert_eq!((entries[6].speaker, entries[6].scripted, entries[6].end_offset_ms), (Role::User, true, 9900));
    }

    #[test]
    fn messages_are_entries_at_one_moment() {
        let sent = |text: &str, kind: &str| json!({"message_id": "m", "text": text, "channel": "http", "kind": kind});
        let turn = |text: &str, from: i64, to: i64| json!({"text": text, "from_sample": from * 16, "end_sample": to * 16, "confidence": null, "words": [], "channel": "http"});
        check(
            json!([
                at(0, 0, "message.sent", "dh", sent("Hello.", "turn")),
                at(1, 700, "message.received", "agent", json!({"text": "One"})),
                at(2, 900, "turn.ended", "agent", turn("One\ntwo.", 700, 900)),
                at(3, 1000, "message.sent", "dh", sent("Bye.", "scripted")),
                at(4, 1100, "turn.ended", "agent", turn("", 1100, 1100)),
            ]),
            &[("USER", 0, 0, "Hello.", ""), ("AGENT", 700, 700, "One\ntwo.", ""), ("USER", 1000, 1000, "Bye.", "s")],
        );
    }

    #[test]
    fn what_is_said_or_keyed_exactly_is_scripted() {
        let said = |exact: bool| json!({"utterance_id": 1, "text": "Hello.", "kind": "opening", "scripted": exact});
        let response = |kind| json!({"index": 0, "match_type": "exact", "response_type": kind});
        let digit = |digit| json!({"digits": digit, "method": "rtp_event", "duration_ms": 100});
        for (exact, mark) in [(true, "s"), (false, "")] {
            check(json!([at(0, 900, "speech.ended", "dh", said(exact))]), &[("USER", 900, 900, "Hello.", mark)]);
        }
        check(
            json!([
                at(0, 1000, "scripted_response", "dh", response("dtmf")),
                at(1, 1000, "dtmf_sent", "dh", digit("1")),
                at(2, 1200, "dtmf_sent", "dh", digit("2")),
                at(3, 1900, "scripted_response", "dh", response("phrase")),
                at(4, 2000, "dtmf_sent", "dh", digit("3")),
                at(5, 9000, "dtmf_sent", "dh", digit("4")),
                at(6, 9900, "scripted_response", "dh", response("dtmf")),
                at(7, 9950, "dtmf_received", "agent", digit("5")),
            ]),
            &[
                ("USER", 1000, 1300, "[DTMF 12]", "s"),
                ("USER", 2000, 2100, "[DTMF 3]", ""),
                ("USER", 9000, 9100, "[DTMF 4]", ""),
                ("AGENT", 9950, 10_050, "[DTMF 5]", ""),
            ],
        );
    }

    #[test]
    fn probes_are_no_entries() {
        let said = |text| json!({"utterance_id": 4, "text": text, "kind": "probe", "interrupted": false});
        check(
            json!([
                at(0, 1000, "probe", "dh", json!({"kind": "backchannel"})),
                at(1, 1000, "speech.started", "dh", said("Okay.")),
                at(2, 1300, "speech.ended", "dh", said("Okay.")),
            ]),
            &[],
        );
    }

    #[test]
    fn a_turn_of_the_agent_is_split_at_long_pauses() {
        let word =
            |word, from, to| json!({"word": word, "start_offset_ms": from, "end_offset_ms": to, "confidence": null});
        let words = json!([word("one", 100, 300), word("moment", 1299, 1500), word("done", 2500, 2700)]);
        let turn = json!({"text": "one moment done", "from_sample": 1600, "end_sample": 43_200, "words": words});
        check(
            json!([
                at(0, 2600, "barge_in", "dh", json!({"by": "dh", "overlap_ms": 100, "stop_ms": 90})),
                at(1, 2700, "turn.ended", "agent", turn),
            ]),
            &[("AGENT", 100, 1500, "one moment", "f"), ("AGENT", 2500, 2700, "done", "i")],
        );
    }

    #[test]
    fn digits_are_joined_and_turns_without_text_are_none() {
        let digit = |digit| json!({"digits": digit, "method": "rtp_event", "duration_ms": 100});
        check(
            json!([
                at(0, 500, "dtmf_sent", "dh", digit("1")),
                at(1, 700, "dtmf_sent", "dh", digit("2")),
                at(2, 3800, "dtmf_sent", "dh", digit("#")),
                at(3, 900, "dtmf_received", "agent", digit("9")),
                at(4, 5000, "turn.ended", "agent", json!({"text": "", "from_sample": 1, "end_sample": 2, "words": []})),
            ]),
            &[
                ("USER", 500, 800, "[DTMF 12]", ""),
                ("AGENT", 900, 1000, "[DTMF 9]", ""),
                ("USER", 3800, 3900, "[DTMF #]", ""),
            ],
        );
    }
}
