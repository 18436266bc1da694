//! Fields that are set and do not act: each is named in the result's warnings.

use serde_json::Value;

use super::Cast;
use crate::model::digital_human::{DigitalHumanSpec, Fluency, JourneyStep, Verbosity};
use crate::service::generate::own_lines;

impl Cast {
    /// Names the fields that are set and do not act, or act otherwise than they say.
    pub(super) fn idle_fields(&self, has_model: bool) -> Vec<String> {
        let human = &self.human;
        let step = |has: fn(&JourneyStep) -> bool| self.step.as_ref().is_some_and(has);
        let idle = [
            (!replays(human), "formatted_transcript: not replayed word for word"),
            (human.attack_plan.is_some() && !has_model, "attack_plan: not followed without a language model"),
            (self.simulation.hangup_on_transfer, "hangup_on_transfer: transfers are refused"),
            (!self.earlier.is_empty() && !has_model, "journey_steps: earlier steps are not remembered without a model"),
            (
                step(|step| step.unresponsive) && !self.is_called(),
                "journey_steps: who makes contact is not unresponsive",
            ),
            (
                step(|step| step.phone_number.is_some()) && !self.is_called(),
                "journey_steps: phone_number acts where the agent calls it, and no call is placed from it",
            ),
        ];
        let mut told: Vec<String> =
            idle.iter().filter(|(set, _)| *set).map(|(_, text)| format!("{text} in this version")).collect();
        if !has_model && words_itself(human) {
            told.extend(needing_model(human).map(str::to_owned));
        }
        told
    }
}

/// Fields that only a language model can follow.
fn needing_model(human: &DigitalHumanSpec) -> impl Iterator<Item = &'static str> {
    let is_set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
    // The attack's own technique is part of the role; it is told with its plan.
    let has_role = is_set(&human.role_description) && human.attack_plan.is_none();
    let own_silence = !matches!(human.silence_tool_instructions.as_str(), "" | "default");
    let rules = [&human.system_prompt_rule_quotes, &human.system_prompt_rule_ids];
    let idle = [
        (
            human.allow_end_call_tool && is_set(&human.hangup_instructions),
            "hangup_instructions: not followed without a language model",
        ),
        (
            human.allow_silence_tool && own_silence,
            "silence_tool_instructions: nobody stays silent without a language model",
        ),
        (has_role, "role_description: not played without a language model"),
        (
            human.creativity != DigitalHumanSpec::default().creativity,
            "creativity: there is none without a language model",
        ),
        (
            human.verbosity != Verbosity::default(),
            "verbosity: turns are as long as the sentences of the intent without a language model",
        ),
        (rules.iter().any(|rules| !rules.is_empty()), "system_prompt_rule_quotes: not probed without a language model"),
        (
            human.fluency == Fluency::Beginner,
            "fluency: rare words of a beginner are not replaced without a language model, but for a few",
        ),
    ];
    idle.into_iter().filter(|(set, _)| *set).map(|(_, text)| text)
}

/// True when there are words that are not given: all but those of a playback.
fn words_itself(human: &DigitalHumanSpec) -> bool {
    let steps = human.enriched_playback.as_deref().unwrap_or_default();
    let is_meant = |step: &crate::model::Object| {
        let has = |key: &str| step.get(key).and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty());
        has("intent") && !has("exact_message")
    };
    steps.is_empty() || steps.iter().any(is_meant)
}

/// True when a transcript is replayed: by its steps, or by an intent that has its words in their order. So is none.
fn replays(human: &DigitalHumanSpec) -> bool {
    let Some(lines) = &human.formatted_transcript else { return true };
    if human.enriched_playback.as_ref().is_some_and(|steps| !steps.is_empty()) {
        return true;
    }
    let mut rest = human.intent.as_str();
    own_lines(lines).into_iter().all(|line| match rest.split_once(line) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::cast;

    #[test]
    fn a_field_that_does_not_act_is_named() {
        let plan = json!({"techniques": ["ignore_rules"]});
        let lines = json!([{"role": "AGENT", "utterance": "Yes?"}, {"role": "USER", "utterance": "I want help."}]);
        let step = json!({"speaker": "user", "exact_message": "I want help."});
        let meant = json!({"speaker": "user", "intent": "asks for help"});
        for (fields, without, with) in [
            (json!({}), None, None),
            (json!({"hangup_instructions": "when it swears"}), Some("hangup_instructions"), None),
            (json!({"hangup_instructions": "never", "allow_end_call_tool": false}), None, None),
            (json!({"hangup_instructions": " "}), None, None),
            (json!({"silence_tool_instructions": "on hold"}), Some("silence_tool_instructions"), None),
            (json!({"silence_tool_instructions": "on hold", "allow_silence_tool": false}), None, None),
            (json!({"allow_silence_tool": false}), None, None),
            (json!({"role_description": "A farmer."}), Some("role_description"), None),
            (json!({"role_description": ""}), None, None),
            (json!({"creativity": 0.7}), None, None),
            (json!({"creativity": 1.2}), Some("creativity"), None),
            (json!({"verbosity": "high"}), Some("verbosity"), None),
            (json!({"verbosity": "medium"}), None, None),
            (json!({"system_prompt_rule_quotes": ["Be kind."]}), Some("system_prompt_rule_quotes"), None),
            (json!({"fluency": "beginner"}), Some("fluency"), None),
            (json!({"fluency": "intermediate"}), None, None),
            (json!({"attack_plan": plan, "role_description": "A tester."}), Some("attack_plan"), None),
            // Given words need no model.
            (json!({"verbosity": "high", "enriched_playback": [step]}), None, None),
            (json!({"verbosity": "high", "enriched_playback": [step, meant]}), Some("verbosity"), None),
            // Replayed word for word, in its order, or not at all.
            (json!({"formatted_transcript": lines, "enriched_playback": [step]}), None, None),
            (json!({"formatted_transcript": lines, "intent": "I want help."}), None, None),
            (
                json!({"formatted_transcript": lines, "intent": "Book."}),
                Some("formatted_transcript"),
                Some("formatted_transcript"),
            ),
        ] {
            let cast = cast(json!({}), fields.clone(), json!({}));
            for (has_model, expect) in [(false, without), (true, with)] {
                let told = cast.idle_fields(has_model);
                let names: Vec<&str> = told.iter().filter_map(|text| Some(text.split_once(':')?.0)).collect();
                assert_eq!(names, Vec::from_iter(expect), "{fields} {has_model}: {told:?}");
            }
        }
    }
}
