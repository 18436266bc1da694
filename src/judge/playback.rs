//! Whether the agent followed the steps of a playback: each of its steps takes one whole turn, in order.

use ringer_media::call::normal_form;
use serde_json::{Value, json};

use super::Moment;
use crate::model::Object;

/// Texts this alike are the same.
const ALIKE: f64 = 0.9;

/// One entry for each step of the agent: `{index, passed, heard}`. `passed` is null where a meaning or a silence would have to
/// be judged, and false for a step that was never reached. Empty when nothing is played.
pub fn playback(steps: &[Object], moments: &[Moment]) -> Vec<Value> {
    let text = |step: &Object, key: &str| step.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_agent = |step: &Object| text(step, "speaker").eq_ignore_ascii_case("agent") || text(step, "role") == "AGENT";
    let is_turn = |step: &Object| is_agent(step) && text(step, "type") != "silence";
    let (mut at, mut digits, mut heard) = (0, String::new(), vec![None; steps.len()]);
    for moment in moments {
        if moment.is("dtmf_received", "agent") {
            digits.push_str(moment.data["digits"].as_str().unwrap_or_default());
        } else if moment.is("turn.ended", "agent") {
            while steps.get(at).is_some_and(|step| is_agent(step) && !is_turn(step)) {
                at += 1;
            }
            if steps.get(at).is_some_and(is_turn) {
                heard[at] = Some((moment.text().to_owned(), std::mem::take(&mut digits)));
                at += 1;
            }
        } else if is_own(moment) {
            while steps.get(at).is_some_and(|step| !is_turn(step)) {
                at += 1;
            }
        }
    }
    let mut found = Vec::new();
    for (index, (step, heard)) in steps.iter().zip(heard).enumerate().filter(|(_, (step, _))| is_agent(step)) {
        let expected = text(step, "exact_match_text");
        let passed = match (&heard, text(step, "type").as_str()) {
            (_, "silence") => None,
            (None, _) => Some(false),
            (Some((_, digits)), "dtmf") => Some(*digits == text(step, "digits")),
            (Some((heard, _)), _) if !expected.is_empty() => Some(alike(heard, &expected)),
            (Some(_), _) => None,
        };
        let (words, digits) = heard.unwrap_or_default();
        found.push(json!({ "index": index, "passed": passed, "heard": if words.is_empty() { digits } else { words } }));
    }
    found
}

fn is_own(moment: &Moment) -> bool {
    let said = moment.is("speech.ended", "dh") && !matches!(moment.data["kind"].as_str(), Some("reprompt" | "probe"));
    said || moment.is("dtmf_sent", "dh") || moment.is("message.sent", "dh")
}

fn alike(heard: &str, expected: &str) -> bool {
    strsim::normalized_levenshtein(&normal_form(heard), &normal_form(expected)) >= ALIKE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::moments;

    #[test]
    fn each_step_of_the_agent_takes_one_turn() {
        let steps = json!([
            {"speaker": "agent", "type": "message", "exact_match_text": "Press 1 for support."},
            {"speaker": "user", "type": "dtmf", "digits": "1"},
            {"speaker": "agent", "type": "message", "criteria": "starts troubleshooting"},
            {"speaker": "user", "type": "silence", "duration_ms": 100},
            {"speaker": "user", "exact_message": "Thanks."},
            {"speaker": "agent", "exact_match_text": "Goodbye"},
            {"speaker": "agent", "type": "silence", "duration_ms": 100},
            {"speaker": "agent", "exact_match_text": "never"},
        ]);
        let steps: Vec<Object> = serde_json::from_value(steps).expect("objects");
        let timeline = json!([
            {"seq": 1, "sample": 1, "event": "turn.ended", "side": "agent", "data": {"text": "press 1 for support"}},
            {"seq": 2, "sample": 2, "event": "speech.ended", "side": "dh", "data": {"kind": "reprompt"}},
            {"seq": 3, "sample": 3, "event": "dtmf_sent", "side": "dh", "data": {"digits": "1"}},
            {"seq": 4, "sample": 4, "event": "turn.ended", "side": "agent", "data": {"text": "let us see"}},
            {"seq": 5, "sample": 5, "event": "speech.ended", "side": "dh", "data": {"kind": "turn"}},
            {"seq": 6, "sample": 6, "event": "turn.ended", "side": "agent", "data": {"text": "what else"}},
        ]);
        let expect = json!([
            {"index": 0, "passed": true, "heard": "press 1 for support"},
            {"index": 2, "passed": null, "heard": "let us see"},
            {"index": 5, "passed": false, "heard": "what else"},
            {"index": 6, "passed": null, "heard": ""},
            {"index": 7, "passed": false, "heard": ""},
        ]);
        assert_eq!(Value::from(playback(&steps, &moments(&timeline))), expect);
        assert_eq!(playback(&[], &moments(&timeline)), Vec::<Value>::new());
    }
}
