//! Steps of a playback and digits of scripted answers that are not done as they are written: each is named in the
//! result's warnings.

use ringer_human::{Facts, Step};
use ringer_model::Object;
use ringer_model::playback::ResponseType;
use serde_json::Value;

use super::CallRows;
use super::steps::{digits_of, not_digits, step};

impl CallRows {
    /// Names what is left out, or taken otherwise than it says.
    pub(super) fn unplayed(&self) -> Vec<String> {
        let traits = self.traits();
        let traits = Facts::of(&traits);
        let mut warnings = Vec::new();
        for (index, given) in self.human.enriched_playback.iter().flatten().enumerate() {
            warnings.extend(misread(given, &traits).map(|text| format!("enriched_playback[{index}]: {text}")));
        }
        for (index, rule) in self.human.scripted_responses.iter().enumerate() {
            let digits = rule.response_value.as_deref().filter(|_| rule.response_type == ResponseType::Dtmf);
            let text = digits.and_then(|digits| unpressed_warning(&traits.fill(digits)));
            warnings.extend(text.map(|text| format!("scripted_responses[{index}]: {text}")));
        }
        warnings
    }
}

/// Lists the parts of a playback step that are ignored or played differently.
fn misread(given: &Object, traits: &Facts<'_>) -> impl Iterator<Item = String> {
    let unknown = |key: &str, is_known: fn(&str) -> bool, meant: &str| {
        let value = given.get(key).filter(|value| !value.is_null())?;
        let known = value.as_str().is_some_and(is_known);
        (!known).then(|| format!("the {key} {value} is not known, it is taken as {meant}"))
    };
    let is_speaker = |text: &str| ["user", "agent"].iter().any(|known| text.eq_ignore_ascii_case(known));
    let played = step(given, traits);
    let digits = given.get("digits").and_then(Value::as_str).filter(|_| matches!(played, Some(Step::Digits(_))));
    let unknown_values = [
        unknown("speaker", is_speaker, "user"),
        unknown("role", is_speaker, "user"),
        unknown("type", |text| ["message", "silence", "dtmf"].contains(&text), "message"),
        digits.and_then(|digits| unpressed_warning(&traits.fill(digits))),
        played.is_none().then(|| "there is nothing to play, it is left out".to_owned()),
    ];
    unknown_values.into_iter().flatten()
}

/// Returns a warning if some of these digits are not those of a telephone.
fn unpressed_warning(digits: &str) -> Option<String> {
    let rest = not_digits(digits);
    match digits_of(digits).is_empty() {
        true => Some("there is no key to press".to_owned()),
        false => (!rest.is_empty()).then(|| format!("'{rest}' cannot be pressed")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::rows_of;

    #[test]
    fn a_step_that_is_not_played_as_it_is_written_is_named() {
        let nothing = "there is nothing to play, it is left out";
        for (given, expect) in [
            (json!({"speaker": "user", "type": "message", "exact_message": "Hi.", "node_id": "n"}), &[][..]),
            (json!({"role": "AGENT", "type": "message", "criteria": "greets"}), &[]),
            (json!({"speaker": null, "type": null, "intent": "greets"}), &[]),
            (json!({"type": "silence", "duration_ms": 1500}), &[]),
            (json!({"type": "dtmf", "digits": "1, 2a {{pin}}"}), &[]),
            (json!({}), &[nothing]),
            (json!({"type": "silence"}), &[nothing]),
            (json!({"type": "dtmf", "digits": "xyz"}), &[nothing]),
            (json!({"type": "dtmf", "digits": "1x"}), &["'x' cannot be pressed"]),
            (json!({"type": "foo"}), &["the type \"foo\" is not known, it is taken as message", nothing]),
            (
                json!({"speaker": "bot", "exact_message": "Hi."}),
                &["the speaker \"bot\" is not known, it is taken as user"],
            ),
            (json!({"role": 5, "exact_message": "Hi."}), &["the role 5 is not known, it is taken as user"]),
        ] {
            let fact = json!({"trait_name": "pin", "trait_data_type": "STRING", "value": "34"});
            let hello = json!({"exact_message": "Hello."});
            let human = json!({"enriched_playback": [hello, given], "traits": [fact]});
            let expect: Vec<String> = expect.iter().map(|text| format!("enriched_playback[1]: {text}")).collect();
            assert_eq!(rows_of(json!({}), human, json!({})).unplayed(), expect, "{given}");
        }
    }

    #[test]
    fn keys_of_a_scripted_answer_that_cannot_be_pressed_are_named() {
        for (kind, value, expect) in [
            ("dtmf", "1,2 #", None),
            ("phrase", "xyz", None),
            ("dtmf", "abc z", Some("scripted_responses[0]: 'z' cannot be pressed")),
            ("dtmf", "xyz", Some("scripted_responses[0]: there is no key to press")),
        ] {
            let rule = json!({"match_type": "exact", "match_phrase": "a", "response_type": kind,
                "response_value": value, "occurrence_mode": "always"});
            let warnings = rows_of(json!({}), json!({"scripted_responses": [rule]}), json!({})).unplayed();
            assert_eq!(warnings, Vec::from_iter(expect.map(str::to_owned)), "{kind} {value}");
        }
    }
}
