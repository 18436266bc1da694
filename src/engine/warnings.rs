//! Warnings about a conversation, from its timeline: faults that its words do not show. Pure.

use ringer_media::call::{EventKind, TimelineEntry};

/// Sentences for the result's warnings. `scripted`: something was to follow what the agent says.
pub fn timeline_warnings(timeline: &[TimelineEntry], scripted: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(unheard(timeline, scripted));
    warnings.extend(answered_unheard(timeline, scripted));
    warnings.extend(model(timeline));
    warnings.extend(others(timeline));
    warnings
}

fn entries_named<'t>(timeline: &'t [TimelineEntry], event: &str) -> impl Iterator<Item = &'t TimelineEntry> {
    timeline.iter().filter(move |entry| entry.name() == event)
}

fn turns(count: usize) -> String {
    format!("{count} turn{}", if count == 1 { "" } else { "s" })
}

/// Returns the reason why words of a turn are missing. Calls without a recognizer have a warning of their own.
fn missing(turn: &TimelineEntry) -> Option<&str> {
    match turn.reading() {
        EventKind::TurnEnded { missing: Some(why), .. } if why != "no_recognizer" => Some(why),
        _ => None,
    }
}

fn unheard(timeline: &[TimelineEntry], scripted: bool) -> Option<String> {
    let has_text = |turn: &&TimelineEntry| match turn.reading() {
        EventKind::TurnEnded { text, .. } | EventKind::TurnWritten { text, .. } => !text.is_empty(),
        _ => false,
    };
    let lacks_text = |turn: &TimelineEntry| matches!(turn.reading(), EventKind::TurnEnded { missing: Some(_), .. });
    let all = entries_named(timeline, "turn.ended").filter(|turn| has_text(turn) || lacks_text(turn));
    let lacking: Vec<&TimelineEntry> =
        entries_named(timeline, "turn.ended").filter(|turn| missing(turn).is_some()).collect();
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for code in lacking.iter().filter_map(|turn| missing(turn)) {
        match reasons.iter_mut().find(|(known, _)| *known == code) {
            Some((_, count)) => *count += 1,
            None => reasons.push((code, 1)),
        }
    }
    let why = match reasons[..] {
        [] => return None,
        [(code, _)] => reason(timeline, code),
        _ => {
            let each = |(code, count): &(&str, usize)| format!("{} in {count}", reason(timeline, code));
            reasons.iter().map(each).collect::<Vec<_>>().join(", ")
        }
    };
    let lack = if lacking.iter().any(has_text) { "lack words" } else { "have no words" };
    let untested = if scripted { "; scripted responses and hang-up phrases were not testable in them" } else { "" };
    Some(format!("{} of {} turns of the agent {lack}: {why}{untested}", lacking.len(), all.count()))
}

fn reason(timeline: &[TimelineEntry], code: &str) -> String {
    let message_of = || entries_named(timeline, code).find_map(message);
    match code {
        "recognizer_late" => "the recognizer was too late",
        "recognizer_busy" => "the recognizer was busy",
        "not_understood" => "nothing was understood",
        _ => message_of().unwrap_or(code),
    }
    .to_owned()
}

/// Returns the text for a person of a note that has one.
fn message(note: &TimelineEntry) -> Option<&str> {
    match note.reading() {
        EventKind::Note { why, .. } if !why.is_empty() => Some(why),
        _ => None,
    }
}

/// Returns a warning about turns that were answered before their words were known, and have them now.
fn answered_unheard(timeline: &[TimelineEntry], scripted: bool) -> Option<String> {
    let late = |turn: &&TimelineEntry| {
        matches!(turn.reading(), EventKind::TurnEnded { late: true, .. }) && missing(turn).is_none()
    };
    let count = entries_named(timeline, "turn.ended").filter(late).count();
    let tested = if scripted { ", and scripted responses were tested on what was known by then" } else { "" };
    let were = if count == 1 { "was" } else { "were" };
    (count > 0).then(|| format!("{} of the agent {were} answered before all words were known{tested}", turns(count)))
}

fn model(timeline: &[TimelineEntry]) -> Vec<String> {
    let count = |event: &str| Some(entries_named(timeline, event).count()).filter(|count| *count > 0);
    let late = count("late_first_token").map(|count| format!("the language model was late in {}", turns(count)));
    let replaced = count("fallback_speaker").map(|count| {
        format!("the built-in speaker spoke in {}: the language model failed, or was waited for in vain", turns(count))
    });
    let broken = count("answer_broke_off").map(|count| {
        format!("the language model's answer broke off in {}, which was said as far as it had come", turns(count))
    });
    let cut = count("answer_out_of_tokens").map(|count| {
        format!(
            "the language model used up the tokens of its answer in {} (finish_reason length): \
             language_model.max_tokens allows more",
            turns(count)
        )
    });
    let rare = count("rare_words").map(|count| {
        format!(
            "fluency: a beginner said words beyond the most frequent ones in {}, for which there were no others",
            turns(count)
        )
    });
    late.into_iter().chain(replaced).chain(broken).chain(cut).chain(rare).collect()
}

/// Returns warnings about speech that was made or recognised by others than it should have been, and about onsets that
/// are not exact, each trouble once.
fn others(timeline: &[TimelineEntry]) -> Vec<String> {
    let missed: Vec<&str> = entries_named(timeline, "turn.ended").filter_map(missing).collect();
    let ended_by_fault =
        timeline.iter().any(|end| matches!(end.reading(), EventKind::Ended { reason, .. } if reason == "fault"));
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for note in timeline {
        let code = note.name();
        let of_words = code.starts_with("recognizer_") && !missed.contains(&code);
        let of_speech = code.starts_with("synthesizer_") && !ended_by_fault;
        let Some(text) = message(note).filter(|_| of_words || of_speech || code == "speech_under_tone") else {
            continue;
        };
        match counts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => counts.push((text, 1)),
        }
    }
    let times = |count| if count == 1 { String::new() } else { format!(" ({count} times)") };
    counts.into_iter().map(|(text, count)| format!("{text}{}", times(count))).collect()
}

#[cfg(test)]
mod tests {
    use ringer_media::call::Event;
    use serde_json::{Value, json};

    use super::*;

    fn entry(event: &str, data: Value) -> TimelineEntry {
        TimelineEntry { seq: 0, event: Event::from_wire(0, event, "agent", data) }
    }

    fn turn(text: &str, missing: &str) -> TimelineEntry {
        let mut data = json!({ "text": text });
        if !missing.is_empty() {
            data["text_missing"] = missing.into();
        }
        entry("turn.ended", data)
    }

    fn check(timeline: &[TimelineEntry], scripted: bool, expect: &[&str]) {
        assert_eq!(timeline_warnings(timeline, scripted), expect);
    }

    #[test]
    fn turns_without_words_are_counted_with_their_reasons() {
        check(&[turn("Hello.", ""), turn("", "")], true, &[]);
        check(&[turn("", "no_recognizer")], true, &[]);
        check(
            &[turn("", "recognizer_late"), turn("", "recognizer_late"), turn("", "recognizer_late")],
            true,
            &["3 of 3 turns of the agent have no words: the recognizer was too late; scripted responses and hang-up \
               phrases were not testable in them"],
        );
        check(
            &[
                turn("Hello.", ""),
                turn("", "recognizer_busy"),
                turn("", "recognizer_late"),
                turn("", "recognizer_busy"),
            ],
            false,
            &[
                "3 of 4 turns of the agent have no words: the recognizer was busy in 2, the recognizer was too late in 1",
            ],
        );
        check(
            &[turn("Hello", "recognizer_busy"), turn("", "not_understood")],
            false,
            &["2 of 2 turns of the agent lack words: the recognizer was busy in 1, nothing was understood in 1"],
        );
        // The recognizer's own report of its failure.
        check(
            &[
                entry("recognizer_unreachable", json!({ "message": "the recognizer cannot be reached" })),
                turn("", "recognizer_unreachable"),
            ],
            false,
            &["1 of 1 turns of the agent have no words: the recognizer cannot be reached"],
        );
        check(&[turn("", "recognizer_failed")], false, &["1 of 1 turns of the agent have no words: recognizer_failed"]);
    }

    #[test]
    fn turns_that_were_answered_unheard_are_counted() {
        let late = || entry("turn.ended", json!({ "text": "Hello.", "text_late": true }));
        check(&[late(), late()], false, &["2 turns of the agent were answered before all words were known"]);
        let scripted = "1 turn of the agent was answered before all words were known, and scripted responses were \
                        tested on what was known by then";
        check(&[late()], true, &[scripted]);
    }

    #[test]
    fn who_spoke_and_listened_instead_is_told_once() {
        let note = |event: &str| entry(event, json!({}));
        check(
            &[note("late_first_token"), note("fallback_speaker"), note("late_first_token")],
            false,
            &[
                "the language model was late in 2 turns",
                "the built-in speaker spoke in 1 turn: the language model failed, or was waited for in vain",
            ],
        );
        check(
            &[note("answer_broke_off")],
            false,
            &["the language model's answer broke off in 1 turn, which was said as far as it had come"],
        );
        let message = "flite is missing: install the package flite; another voice speaks";
        let missing = || entry("synthesizer_missing", json!({ "message": message }));
        check(&[missing()], false, &[message]);
        check(&[missing(), missing()], false, &[&format!("{message} (2 times)")]);
        // It is the error of the call.
        check(&[missing(), entry("call.ended", json!({ "reason": "fault" }))], false, &[]);
        let message = "the recognizer cannot be reached; another one listens";
        check(&[entry("recognizer_unreachable", json!({ "message": message })), turn("Hello.", "")], false, &[message]);
        let message = "the agent began to speak while a tone sounded";
        check(&[entry("speech_under_tone", json!({ "message": message })), turn("Hello.", "")], false, &[message]);
    }
}
