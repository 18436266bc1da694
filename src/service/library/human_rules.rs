//! Rules on a Digital Human's fields that need more than one field.

pub(crate) mod always_on;
pub(crate) mod settings;
pub(crate) mod transcripts;
pub(crate) mod unmet;
pub(crate) mod values;

use ringer_base::error::{Error, Result};
use ringer_model::Object;
use ringer_model::digital_human::{
    BackgroundNoise, DigitalHumanSpec, JourneyStep, SpeaksFirst, SpeaksFirstMode, Trait, TraitType, is_extension,
};
use ringer_model::generate::TraitAsked;
use ringer_model::playback::{OccurrenceMode, ResponseType, ScriptedResponse};
use serde_json::Value;

use self::transcripts::transcript_lines;
use self::values::{check_value, fits, is_invented};
use super::field_rules;
use super::field_rules::gives;
use crate::Settings;

/// Checks every rule and returns the first that is broken; fills what follows from other fields.
pub(crate) fn check(spec: &mut DigitalHumanSpec, settings: &Settings) -> Result<()> {
    field_rules::first(broken(spec, settings))
}

/// Returns every rule that is broken, in the order of the fields.
pub(crate) fn broken(spec: &mut DigitalHumanSpec, settings: &Settings) -> Vec<Error> {
    let mut rules = vec![
        check_noise(spec, settings),
        field_rules::phone("phone_number", &mut spec.phone_number),
        check_extension(spec.extension.as_deref()),
        field_rules::phone("outbound_text_number", &mut spec.outbound_text_number),
        field_rules::websocket(spec.websocket_url.as_deref(), settings),
        field_rules::dialect(spec.websocket_dialect.as_deref(), settings),
    ];
    rules.extend(spec.traits.iter().map(check_trait));
    let responses = spec.scripted_responses.iter().enumerate();
    rules.extend(responses.map(|(index, response)| check_scripted(index, response, settings)));
    rules.extend(spec.expectations.iter().enumerate().filter_map(|(index, expectation)| {
        let wrong = expectation.wrong()?;
        Some(Err(Error::Refused(format!("expectations[{index}] {wrong}"))))
    }));
    rules.extend(spec.speaks_first_config.as_ref().map(check_speaks_first));
    rules.extend(spec.journey_steps.as_deref_mut().map(check_journey));
    if spec.has_journey() {
        spec.tag.get_or_insert_with(|| "Customer Journey".into());
    }
    if spec.always_on_mode && spec.phone_number.is_none() {
        rules.push(refuse("always-on mode needs a phone number"));
    }
    rules.into_iter().filter_map(Result::err).collect()
}

/// Returns the URLs that a Digital Human refers to, each with its field.
pub(crate) fn urls_of(fields: &Value) -> Vec<(String, String)> {
    let url = |value: &Value| value.as_str().filter(|text| text.contains("://")).map(str::to_owned);
    let noise = fields.get("custom_background_noise_url").and_then(url);
    let responses = fields.get("scripted_responses").and_then(Value::as_array).into_iter().flatten();
    let audio = responses.enumerate().filter_map(|(index, response)| {
        let field = format!("scripted_responses[{index}].scripted_response_audio_snippet_url");
        Some((field, response.get("scripted_response_audio_snippet_url").and_then(url)?))
    });
    noise.map(|url| ("custom_background_noise_url".to_owned(), url)).into_iter().chain(audio).collect()
}

/// Takes over the lines of a transcript that is given as a text alone, where they have the form `ROLE: text`.
pub(crate) fn take_lines(spec: &mut DigitalHumanSpec) {
    if spec.formatted_transcript.is_none() {
        spec.formatted_transcript = spec.original_transcript.as_deref().and_then(transcript_lines);
    }
}

/// Refuses updates that a Digital Human made from a scenario does not allow, and adjusts the fields that depend on the
/// update.
pub(crate) fn check_update(old: &DigitalHumanSpec, new: &mut DigitalHumanSpec, patch: &Object) -> Result<()> {
    if old.is_workflow() {
        let changed = [
            ("intent", old.intent != new.intent),
            ("success_criteria", old.success_criteria != new.success_criteria),
            ("role_description", old.role_description != new.role_description),
            ("original_transcript", old.original_transcript != new.original_transcript),
            ("formatted_transcript", old.formatted_transcript != new.formatted_transcript),
        ];
        if let Some((field, _)) = changed.into_iter().find(|(_, changed)| *changed) {
            return Err(Error::Refused(format!("{field} cannot be changed on a workflow digital human")));
        }
    } else if gives(patch, "formatted_transcript") {
        if !patch.contains_key("original_transcript") {
            new.original_transcript = None;
        }
    } else if gives(patch, "original_transcript") {
        // Lines that were made of the old text go with it; those that were given stay.
        if new.formatted_transcript == old.original_transcript.as_deref().and_then(transcript_lines) {
            new.formatted_transcript = None;
        }
        take_lines(new);
    }
    Ok(())
}

fn refuse(text: &str) -> Result<()> {
    Err(Error::Refused(text.to_owned()))
}

fn check_noise(spec: &DigitalHumanSpec, settings: &Settings) -> Result<()> {
    let url = spec.custom_background_noise_url.as_deref().filter(|url| !url.is_empty());
    if spec.background_noise == BackgroundNoise::Custom && url.is_none() {
        return refuse("custom background noise needs custom_background_noise_url");
    }
    // Anything else is the id of an uploaded noise.
    let url = url.filter(|url| url.contains("://"));
    field_rules::webhook("custom_background_noise_url", url, settings)
}

fn check_extension(text: Option<&str>) -> Result<()> {
    match text.is_none_or(is_extension) {
        true => Ok(()),
        false => refuse("extension may hold only 0-9, *, # and comma"),
    }
}

fn check_trait(given: &Trait) -> Result<()> {
    if is_invented(&given.value) { Ok(()) } else { check_value(&given.trait_name, given.trait_data_type, &given.value) }
}

/// Returns a trait whose type, where it is not given, is the one that the value has.
pub(crate) fn trait_of(asked: &TraitAsked) -> Trait {
    let TraitAsked { trait_name, trait_data_type, value, is_sip_header } = asked.clone();
    let data_type_of =
        || [TraitType::Boolean, TraitType::Number, TraitType::Date].into_iter().find(|kind| fits(*kind, &value));
    let trait_data_type = trait_data_type.or_else(data_type_of).unwrap_or(TraitType::String);
    Trait { trait_name, trait_data_type, value, is_sip_header }
}

fn check_scripted(index: usize, response: &ScriptedResponse, settings: &Settings) -> Result<()> {
    let at = format!("scripted_responses[{index}]");
    let kind = response.response_type;
    let empty = response.response_value.as_deref().unwrap_or("").is_empty();
    if matches!(kind, ResponseType::Phrase | ResponseType::Dtmf) && empty {
        return Err(Error::Refused(format!("{at}.response_value is required for response_type {}", kind.as_str())));
    }
    if response.occurrence_mode == OccurrenceMode::FirstN && response.occurrence_n.is_none() {
        return Err(Error::Refused(format!("{at}.occurrence_n is required for occurrence_mode first_n")));
    }
    let audio = response.scripted_response_audio_snippet_url.as_deref();
    if kind == ResponseType::Audio && audio.unwrap_or("").is_empty() {
        let text = format!("{at}.scripted_response_audio_snippet_url is required for response_type audio");
        return Err(Error::Refused(text));
    }
    let audio = audio.filter(|url| !url.is_empty());
    field_rules::webhook(&format!("{at}.scripted_response_audio_snippet_url"), audio, settings)
}

fn check_speaks_first(config: &SpeaksFirst) -> Result<()> {
    if config.speaks_first && config.mode.is_none() {
        return refuse("speaks_first_config.mode is required when speaks_first is true");
    }
    let custom = config.speaks_first && config.mode == Some(SpeaksFirstMode::Custom);
    if custom && config.message.as_deref().unwrap_or("").is_empty() {
        return refuse("speaks_first_config.message is required for mode custom");
    }
    Ok(())
}

fn check_journey(steps: &mut [JourneyStep]) -> Result<()> {
    steps.sort_by_key(|step| step.step);
    if !steps.iter().zip(1..).all(|(step, number)| step.step == number) {
        return refuse("journey_steps must be numbered 1..N without gaps");
    }
    for step in steps {
        if step.intent.trim().is_empty() {
            return Err(Error::Refused(format!("journey step {} needs an intent", step.step)));
        }
        field_rules::phone("phone_number", &mut step.phone_number)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(body: Value) -> String {
        let mut spec: DigitalHumanSpec = serde_json::from_value(body).expect("fits");
        check(&mut spec, &Settings::new("/tmp")).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn fields_are_checked_against_each_other() {
        let scripted = |more: Value| {
            let mut rule = json!({"match_type": "exact", "match_phrase": "a", "response_type": "phrase",
                "response_value": "b", "occurrence_mode": "always"});
            rule.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            json!({"scripted_responses": [rule]})
        };
        for (body, expect) in [
            (json!({}), ""),
            (json!({"background_noise": "custom"}), "custom background noise needs custom_background_noise_url"),
            (json!({"background_noise": "custom", "custom_background_noise_url": "0b5f"}), ""),
            (
                json!({"custom_background_noise_url": "ftp://h/x"}),
                "custom_background_noise_url must be a valid http or https URL",
            ),
            (json!({"extension": "12,#*"}), ""),
            (json!({"extension": "12a"}), "extension may hold only 0-9, *, # and comma"),
            (json!({"extension": ""}), "extension may hold only 0-9, *, # and comma"),
            (json!({"outbound_text_number": "12"}), "outbound_text_number must be in E.164 format"),
            (
                json!({"traits": [{"trait_name": "n", "trait_data_type": "NUMBER", "value": "1"}]}),
                "value of trait n is not a valid NUMBER",
            ),
            (
                json!({"traits": [{"trait_name": "d", "trait_data_type": "DATE", "value": "2023-02-29"}]}),
                "value of trait d is not a valid DATE",
            ),
            (json!({"traits": [{"trait_name": "d", "trait_data_type": "DATE", "value": "2024-02-29"}]}), ""),
            (json!({"traits": [{"trait_name": "d", "trait_data_type": "DATE", "value": "__random__"}]}), ""),
            (scripted(json!({})), ""),
            (
                scripted(json!({"response_value": null})),
                "scripted_responses[0].response_value is required for response_type phrase",
            ),
            (
                scripted(json!({"occurrence_mode": "first_n"})),
                "scripted_responses[0].occurrence_n is required for occurrence_mode first_n",
            ),
            (
                scripted(json!({"response_type": "audio"})),
                "scripted_responses[0].scripted_response_audio_snippet_url is required for response_type audio",
            ),
            (
                json!({"speaks_first_config": {"speaks_first": true}}),
                "speaks_first_config.mode is required when speaks_first is true",
            ),
            (
                json!({"speaks_first_config": {"speaks_first": true, "mode": "custom"}}),
                "speaks_first_config.message is required for mode custom",
            ),
            (json!({"speaks_first_config": {"speaks_first": false}}), ""),
            (
                json!({"journey_steps": [{"step": 1, "intent": "a"}, {"step": 3, "intent": "b"}]}),
                "journey_steps must be numbered 1..N without gaps",
            ),
            (json!({"journey_steps": [{"step": 1}]}), "journey step 1 needs an intent"),
            (json!({"expectations": [{"heard": "yes"}, {"ended_by": "agent"}]}), ""),
            (
                json!({"expectations": [{"heard": "yes"}, {"metric": "talk_ratio"}]}),
                "expectations[1] must have at_most or at_least beside metric",
            ),
            (json!({"always_on_mode": true}), "always-on mode needs a phone number"),
        ] {
            assert_eq!(refusal(body.clone()), expect, "{body}");
        }
    }

    #[test]
    fn a_value_tells_its_type() {
        for (value, given, expect) in [
            (json!(true), None, TraitType::Boolean),
            (json!(7.5), None, TraitType::Number),
            (json!("2024-02-29"), None, TraitType::Date),
            (json!("2023-02-29"), None, TraitType::String),
            (json!("gold"), None, TraitType::String),
            (json!("7"), Some("NUMBER"), TraitType::Number),
        ] {
            let asked = json!({"trait_name": "t", "trait_data_type": given, "value": value});
            let made = trait_of(&serde_json::from_value(asked).expect("fits"));
            assert_eq!(made.trait_data_type, expect, "{value}");
        }
    }

    #[test]
    fn a_transcript_is_read_by_line_unless_its_lines_are_given() {
        let line = |role: &str, text: &str| json!({"role": role, "utterance": text});
        let (text, other) = ("Agent: Hi.\nUser: Help me.", "User: Thanks.");
        let lines = json!([line("AGENT", "Hi."), line("USER", "Help me.")]);
        let own = json!([line("USER", "Own words.")]);
        let free = "They talked for a while.";
        for (stored, patch, expect) in [
            (json!({"original_transcript": text}), json!({}), (json!(text), lines.clone())),
            (json!({"original_transcript": free}), json!({}), (json!(free), Value::Null)),
            (
                json!({"original_transcript": text, "formatted_transcript": own}),
                json!({"name": "Ann"}),
                (json!(text), own.clone()),
            ),
            (json!({}), json!({"original_transcript": text}), (json!(text), lines.clone())),
            (
                json!({}),
                json!({"original_transcript": text, "formatted_transcript": null}),
                (json!(text), lines.clone()),
            ),
            // Another text takes its own lines along, and those of the one before with it.
            (
                json!({"original_transcript": text}),
                json!({"original_transcript": other}),
                (json!(other), json!([line("USER", "Thanks.")])),
            ),
            (json!({"original_transcript": text}), json!({"original_transcript": free}), (json!(free), Value::Null)),
            // Lines that were given are never made again.
            (
                json!({"original_transcript": text, "formatted_transcript": own}),
                json!({"original_transcript": other}),
                (json!(other), own.clone()),
            ),
            (
                json!({"original_transcript": text}),
                json!({"original_transcript": other, "formatted_transcript": own}),
                (json!(other), own.clone()),
            ),
            (json!({"original_transcript": text}), json!({"formatted_transcript": own}), (Value::Null, own.clone())),
            (json!({"original_transcript": text}), json!({"formatted_transcript": null}), (json!(text), Value::Null)),
            (json!({"original_transcript": text}), json!({"original_transcript": null}), (Value::Null, lines.clone())),
        ] {
            let mut old: DigitalHumanSpec = serde_json::from_value(stored.clone()).expect("fits");
            take_lines(&mut old);
            let patch = patch.as_object().expect("an object");
            let mut new: DigitalHumanSpec = field_rules::apply_patch(&old, patch).expect("fits");
            assert_eq!(check_update(&old, &mut new, patch), Ok(()));
            let found = (json!(new.original_transcript), json!(new.formatted_transcript));
            assert_eq!(found, expect, "{stored} {patch:?}");
        }
    }

    #[test]
    fn what_follows_is_filled_in() {
        let body = json!({"journey_steps": [{"step": 2, "intent": "b"}, {"step": 1, "intent": "a"}],
            "always_on_mode": true, "phone_number": "+1 555 000 1111"});
        let mut spec: DigitalHumanSpec = serde_json::from_value(body).expect("fits");
        assert_eq!(check(&mut spec, &Settings::new("/tmp")), Ok(()));
        assert_eq!(spec.tag.as_deref(), Some("Customer Journey"));
        assert_eq!(spec.listens_on(), Some("+15550001111"));
        assert_eq!(spec.phone_number.as_deref(), Some("+15550001111"));
        assert_eq!(spec.journey_steps.expect("steps")[0].intent, "a");
        let mut spec: DigitalHumanSpec = serde_json::from_value(json!({"journey_steps": []})).expect("fits");
        assert_eq!(check(&mut spec, &Settings::new("/tmp")), Ok(()));
        assert_eq!((spec.has_journey(), spec.tag), (false, None));
    }
}
