//! Steps of a playback: from a Digital Human's words to what its mind plays.

use std::collections::BTreeMap;

use ringer_human::{Facts, Step, Wanted};
use ringer_media::call::TimedBargeIn;
use ringer_model::Object;
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::playback::phrases;
use serde_json::Value;

/// Returns the steps that the Digital Human plays. A step that says nothing that can be played is left out; `idle`
/// tells of it.
pub(super) fn playback(human: &DigitalHumanSpec, traits: &Facts<'_>) -> Vec<Step> {
    human.enriched_playback.iter().flatten().filter_map(|given| step(given, traits)).collect()
}

/// Returns the words with which the call begins to interrupt: those of a first step that does.
pub(super) fn first_cut(human: &DigitalHumanSpec, traits: &Facts<'_>) -> Option<TimedBargeIn> {
    match playback(human, traits).into_iter().next() {
        Some(Step::BargeIn(cut)) => Some(cut),
        _ => None,
    }
}

/// Returns the tests of the agent's turns, by the steps that are played.
pub(super) fn turn_tests(human: &DigitalHumanSpec, traits: &Facts<'_>) -> BTreeMap<usize, Wanted> {
    let played = human.enriched_playback.iter().flatten().filter_map(|given| Some((step(given, traits)?, given)));
    let wanted = |(at, (step, given)): (usize, (Step, &Object))| {
        let phrases = |key: &str| phrases(given, key).map(|phrase| traits.fill(phrase)).collect();
        let exact = given.get("exact_match_text").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let wanted = Wanted {
            contains: phrases("contains"),
            excludes: phrases("excludes"),
            exact: exact.map(|text| traits.fill(text)),
        };
        (step == Step::Hear && wanted != Wanted::default()).then_some((at, wanted))
    };
    played.enumerate().filter_map(wanted).collect()
}

/// Returns the step as it is played; `None`: nothing is.
pub(super) fn step(given: &Object, traits: &Facts<'_>) -> Option<Step> {
    let text = |key: &str| given.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let speaker = text("speaker").or(text("role")).unwrap_or("user");
    let agent = speaker.eq_ignore_ascii_case("agent");
    let duration_ms =
        || given.get("duration_ms").and_then(Value::as_f64).filter(|ms| *ms >= 0.0).map(|ms| ms.round() as u32);
    if let Some(cut) = given.get("interrupt").and_then(Value::as_object).filter(|_| !agent) {
        let say = cut.get("exact_message").and_then(Value::as_str).or(text("exact_message"))?;
        let after_ms = cut.get("after_ms").and_then(Value::as_f64).filter(|ms| (0.0..=600_000.0).contains(ms))?;
        return Some(Step::BargeIn(TimedBargeIn { after_ms: after_ms.round() as u32, say: traits.fill(say) }));
    }
    if agent && given.get("absent") == Some(&Value::Bool(true)) {
        let within_ms = given.get("within_ms").and_then(Value::as_f64).filter(|ms| *ms >= 0.0);
        return within_ms.map(|ms| Step::WaitMs(ms.round() as u32));
    }
    match text("type").unwrap_or("message") {
        "silence" if agent => duration_ms().map(Step::WaitMs),
        "silence" => duration_ms().map(Step::SilenceMs),
        _ if agent => Some(Step::Hear),
        "dtmf" => text("digits")
            .map(|digits| digits_of(&traits.fill(digits)))
            .filter(|digits| !digits.is_empty())
            .map(Step::Digits),
        _ => match (text("exact_message"), text("intent")) {
            (Some(words), _) => Some(Step::Say(traits.fill(words))),
            (None, meant) => meant.map(|meant| Step::Mean(traits.fill(meant))),
        },
    }
}

/// Returns the digits of a text that can be sent.
pub(super) fn digits_of(text: &str) -> String {
    text.to_ascii_uppercase().chars().filter(is_digit).collect()
}

fn is_digit(c: &char) -> bool {
    c.is_ascii_digit() || "*#ABCD".contains(*c)
}

/// Returns the part of a text that is neither a digit that can be sent nor stands between such digits.
pub(super) fn not_digits(text: &str) -> String {
    let parts = |c: &char| *c == ',' || c.is_whitespace();
    text.chars().filter(|c| !is_digit(&c.to_ascii_uppercase()) && !parts(c)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn human(body: Value) -> DigitalHumanSpec {
        serde_json::from_value(body).expect("fits")
    }

    #[test]
    fn words_of_a_turn_and_a_time_to_cut_in_are_read() {
        let human = human(json!({"traits": [{"trait_name": "day", "trait_data_type": "STRING", "value": "Monday"}],
            "enriched_playback": [
            {"interrupt": {"after_ms": 1200, "exact_message": "On {{day}}?"}},
            {"type": "silence"},
            {"speaker": "agent", "contains": "{{day}}", "excludes": ["no", "never"], "exact_match_text": "Yes."},
            {"speaker": "agent", "criteria": "greets"},
            {"speaker": "agent", "absent": true, "within_ms": 2000, "contains": "x"},
            {"interrupt": {"after_ms": -1, "exact_message": "No."}},
        ]}));
        let traits = [("day".to_owned(), "Monday".to_owned())];
        let facts = Facts::of(&traits);
        let cut = TimedBargeIn { after_ms: 1200, say: "On Monday?".into() };
        let steps = [Step::BargeIn(cut.clone()), Step::Hear, Step::Hear, Step::WaitMs(2000)];
        assert_eq!(playback(&human, &facts), steps);
        assert_eq!(first_cut(&human, &facts), Some(cut));
        let words = |phrases: &[&str]| phrases.iter().map(|&phrase| phrase.to_owned()).collect();
        let first =
            Wanted { contains: words(&["Monday"]), excludes: words(&["no", "never"]), exact: Some("Yes.".into()) };
        assert_eq!(turn_tests(&human, &facts), BTreeMap::from([(1, first)]));
    }

    #[test]
    fn playback_steps_are_read_as_they_are_written() {
        let human = human(json!({"enriched_playback": [
            {"speaker": "agent", "type": "message", "exact_match_text": "Hi."}, {"role": "AGENT", "type": "dtmf", "digits": "1"},
            {"exact_message": "I am {{name}}."}, {"speaker": "user", "type": "message", "intent": "greets {{name}}"},
            {"type": "dtmf", "digits": "1, 2a"}, {"type": "silence", "duration_ms": 1500},
            {"speaker": "agent", "type": "silence", "duration_ms": 2000}, {"speaker": "user"}, {"type": "silence"},
            {"type": "dtmf", "digits": "xyz"}, {"type": "silence", "duration_ms": -1},
        ]}));
        let traits = [("name".to_owned(), "Ann".to_owned())];
        let expect = [
            Step::Hear,
            Step::Hear,
            Step::Say("I am Ann.".into()),
            Step::Mean("greets Ann".into()),
            Step::Digits("12A".into()),
            Step::SilenceMs(1500),
            Step::WaitMs(2000),
        ];
        assert_eq!(playback(&human, &Facts::of(&traits)), expect);
    }
}
