//! Fields that are set and do not act: each is named in the result's warnings.

use ringer_base::config::Sms;
use ringer_human::frequent;
use ringer_model::agent::{AgentMode, ConnectionType};
use ringer_model::digital_human::{
    DigitalHumanSpec, Fluency, JourneyStep, Language, Modality, TranscriptLine, Verbosity,
};
use serde_json::Value;

use super::CallRows;
use crate::library::human_rules::transcripts::{customer_lines, transcript_lines};

impl CallRows {
    /// Names the fields that are set and do not act, or act otherwise than they say.
    pub(super) fn idle_fields(&self, has_model: bool, sms: &Sms) -> Vec<String> {
        let (human, written) = (&self.human, self.agent.spec.is_written());
        let (text, lines) = (human.original_transcript.as_deref().unwrap_or_default(), &human.formatted_transcript);
        let step = |has: fn(&JourneyStep) -> bool| self.step.as_ref().is_some_and(has);
        let by_trunk = !written && self.telephony() == Some(ConnectionType::Phone);
        let says_who_begins = written && self.step.is_some();
        let told_otherwise =
            human.speaks_first_config.as_ref().is_some_and(|config| config.speaks_first == self.agent_calls());
        let idle = [
            (
                lines.as_ref().is_some_and(|lines| !replays(human, Some(lines))),
                "formatted_transcript: not replayed word for word",
            ),
            (
                lines.is_none() && !text.trim().is_empty() && !replays(human, transcript_lines(text).as_deref()),
                "original_transcript: not replayed word for word",
            ),
            (human.attack_plan.is_some() && !has_model, "attack_plan: not followed without a language model"),
            (!self.earlier.is_empty() && !has_model, "journey_steps: earlier steps are not remembered without a model"),
            (step(|step| step.unresponsive) && !self.is_met(), "journey_steps: who makes contact is not unresponsive"),
            (
                step(|step| step.modality == Modality::Voice) && written,
                "journey_steps: an agent that writes holds a step of voice in writing",
            ),
            (
                says_who_begins && self.agent_calls() && !self.is_met(),
                "journey_steps: an agent behind chat completions makes no contact, and is asked to begin",
            ),
            (says_who_begins && told_otherwise, "speaks_first_config: the direction of a written step says who begins"),
            (
                step(|step| step.phone_number.is_some()) && !self.is_called() && !by_trunk && !self.agent.spec.is_sms(),
                "journey_steps: phone_number acts where the agent calls it, or is called or texted by telephone",
            ),
        ];
        let mut warnings: Vec<String> =
            idle.iter().filter(|(set, _)| *set).map(|(_, text)| format!("{text} in this version")).collect();
        let unread = "set for the run, and agents of this kind are reached without it in this version";
        warnings.extend(self.idle_overrides().map(|name| format!("{name}: {unread}")));
        warnings.extend(self.idle_follow_up(sms));
        if !has_model && words_itself(human) {
            warnings.extend(needing_model(human).map(str::to_owned));
        }
        if human.fluency == Fluency::Beginner && words_itself(human) {
            warnings.extend(free_words(human.language, has_model));
        }
        warnings.extend(self.unplayed());
        warnings
    }

    /// True when the agent's contact is waited for: its call, or its first message.
    pub(super) fn is_met(&self) -> bool {
        let agent = &self.agent.spec;
        let writes = agent.is_written() && agent.connection() != Some(ConnectionType::P12) && self.agent_calls();
        writes || self.is_called()
    }

    /// Returns warnings about settings of follow-up messages that have no effect.
    fn idle_follow_up(&self, sms: &Sms) -> Vec<String> {
        let (agent, criteria) = (&self.agent.spec, self.human.follow_up_sms_success_criteria.as_deref());
        let senders = !agent.follow_up_sms_sender_numbers.is_empty();
        let why = match (agent.mode, sms.takes()) {
            (AgentMode::Voice, true) if senders => return Vec::new(),
            (AgentMode::Voice, true) => "the agent has no follow_up_sms_sender_numbers",
            (AgentMode::Voice, false) => "no text message comes in: sms.inbound_token is not set",
            _ => "text messages are taken after calls alone",
        };
        let set = [
            ("follow_up_sms_sender_numbers", senders),
            ("follow_up_sms_success_criteria", criteria.is_some_and(|text| !text.trim().is_empty())),
        ];
        set.into_iter().filter(|(_, set)| *set).map(|(name, _)| format!("{name}: {why}")).collect()
    }

    /// Returns the overrides of the run that are not needed to reach the agent. A call that is placed reads the SIP
    /// address or the number; text messages read the number.
    fn idle_overrides(&self) -> impl Iterator<Item = &'static str> {
        let (run, agent) = (&self.overrides, &self.agent.spec);
        let dials = !agent.is_written() && !self.is_called();
        let by_socket = dials && self.telephony() == Some(ConnectionType::WebSocket);
        let by_room = dials && self.telephony() == Some(ConnectionType::P1);
        let by_pipeline = dials && self.telephony() == Some(ConnectionType::P2);
        // The platform that is asked to place the call is told of them too.
        let is_told = !agent.is_written() && (dials || agent.is_placed_by_platform());
        let by_platform = |kind| is_told && self.telephony() == Some(kind);
        let by_trunk = self.telephony() == Some(ConnectionType::Phone);
        let set = [
            ("phone_number", run.phone_number.is_some() && !agent.is_sms() && !(dials && by_trunk)),
            ("sip_uri", run.sip_uri.is_some() && (!dials || by_trunk || by_socket || by_room || by_pipeline)),
            ("websocket_url", run.websocket_url.is_some() && !by_socket),
            ("websocket_dialect", run.websocket_dialect.is_some() && !by_socket),
            ("P1_agent_name", run.p1_agent_name.is_some() && !by_room),
            ("P1_metadata", run.p1_metadata.is_some() && !by_room),
            ("P2_agent_configuration", run.p2_agent_configuration.is_some() && !by_pipeline),
            ("P2_room_properties", run.p2_room_properties.is_some() && !by_pipeline),
            ("P2_agent_name", run.p2_agent_name.is_some() && !by_pipeline),
            ("P3_agent_id", run.p3_agent_id.is_some() && !by_platform(ConnectionType::P3)),
            ("P4_agent_id", run.p4_agent_id.is_some() && !by_platform(ConnectionType::P4)),
            ("P5_assistant_id", run.p5_assistant_id.is_some() && !by_platform(ConnectionType::P5)),
        ];
        set.into_iter().filter(|(_, idle)| *idle).map(|(name, _)| name)
    }
}

/// Returns a warning where a beginner's words are not limited to the most frequent ones.
fn free_words(language: Language, has_model: bool) -> Option<String> {
    let code = language.as_str();
    if !has_model {
        return Some(
            "fluency: without a language model a beginner's rare words are not replaced, but for a few English ones"
                .into(),
        );
    }
    let is_free = language != Language::Ad && !frequent::has_list(code);
    is_free
        .then(|| format!("fluency: no list of the most frequent words of language {code}: a beginner's words are free"))
}

/// Returns the fields that only a language model can follow.
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
    ];
    idle.into_iter().filter(|(set, _)| *set).map(|(_, text)| text)
}

/// True when there are words that are not given: all but those of a playback.
fn words_itself(human: &DigitalHumanSpec) -> bool {
    let steps = human.enriched_playback.as_deref().unwrap_or_default();
    let is_meant = |step: &ringer_model::Object| {
        let has = |key: &str| step.get(key).and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty());
        has("intent") && !has("exact_message")
    };
    steps.is_empty() || steps.iter().any(is_meant)
}

/// True if a transcript of these lines is replayed, by its steps or by an intent that has its words in their order.
/// `None`: the lines cannot be told from each other.
fn replays(human: &DigitalHumanSpec, lines: Option<&[TranscriptLine]>) -> bool {
    if human.enriched_playback.as_ref().is_some_and(|steps| !steps.is_empty()) {
        return true;
    }
    let Some(lines) = lines else { return false };
    let mut rest = human.intent.as_str();
    customer_lines(lines).into_iter().all(|line| match rest.split_once(line) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use ringer_base::config::Secret;
    use serde_json::json;

    use super::super::tests::rows_of;
    use super::*;

    #[test]
    fn an_override_that_nobody_reads_is_named() {
        let sip = json!({"sip_uri": "sip:bob@127.0.0.1:5080"});
        let calls = json!({"sip_uri": "sip:bob@127.0.0.1:5080", "type": "OUTBOUND"});
        let texts = json!({"phone_number": "+15550001111", "mode": "TEXT"});
        let other = json!({"sip_uri": "sip:eve@127.0.0.1:5080"});
        let number = json!({"phone_number": "+15550002222"});
        let platforms = json!({
            "websocket_url": "ws://h", "P1_agent_name": "", "P1_metadata": {}, "P2_agent_configuration": {},
            "P2_room_properties": {}, "P2_agent_name": "p", "P3_agent_id": "a", "P4_agent_id": "b", "P5_assistant_id": "c",
        });
        let placed = json!({"P4_agent_id": "x", "type": "OUTBOUND", "enable_outbound_call_auto_start": true});
        let named: Vec<&str> = platforms.as_object().expect("an object").keys().map(String::as_str).collect();
        for (agent, run, expect) in [
            (&sip, json!({"runs_per_digital_human": 2, "seed": 7}), &[][..]),
            (&sip, other.clone(), &[]),
            (&calls, other.clone(), &["sip_uri"]),
            (&texts, other, &["sip_uri"]),
            (&sip, number.clone(), &["phone_number"]),
            (&calls, number.clone(), &["phone_number"]),
            (&texts, number, &[]),
            (&sip, platforms.clone(), &named),
            (&texts, platforms.clone(), &named),
            (&json!({"P3_agent_id": "x"}), json!({"P3_agent_id": "a"}), &[]),
            (&json!({"P4_agent_id": "x"}), json!({"P4_agent_id": "a", "P3_agent_id": "b"}), &["P3_agent_id"]),
            (&json!({"P5_assistant_id": "x"}), json!({"P5_assistant_id": "a"}), &[]),
            (&json!({"P4_agent_id": "x", "type": "OUTBOUND"}), json!({"P4_agent_id": "a"}), &["P4_agent_id"]),
            (&placed, json!({"P4_agent_id": "a"}), &[]),
            (&json!({"connection_type": "P1"}), json!({"P1_agent_name": "", "P1_metadata": {}}), &[]),
            (&json!({"connection_type": "P1"}), json!({"sip_uri": "sip:eve@127.0.0.1"}), &["sip_uri"]),
            (&json!({"connection_type": "P2"}), json!({"P2_agent_name": "p", "P2_room_properties": {}}), &[]),
        ] {
            let warnings = rows_of(agent.clone(), json!({}), run.clone()).idle_fields(true, &Sms::default());
            let names: Vec<&str> = warnings.iter().filter_map(|text| Some(text.split_once(':')?.0)).collect();
            assert_eq!(names, expect, "{agent} {run}: {warnings:?}");
        }
    }

    #[test]
    fn what_follows_a_call_needs_a_carrier() {
        let (senders, criteria) = ("follow_up_sms_sender_numbers", "follow_up_sms_success_criteria");
        let open = Sms { inbound_token: Some(Secret::new("open".into())), ..Sms::default() };
        let numbers = json!({"follow_up_sms_sender_numbers": ["+15550001111"]});
        let graded = json!({"follow_up_sms_success_criteria": "It names the day."});
        let texts = json!({"follow_up_sms_sender_numbers": ["+15550001111"], "mode": "TEXT"});
        for (agent, human, sms, expect) in [
            (&numbers, &graded, Sms::default(), &[senders, criteria][..]),
            (&numbers, &json!({}), Sms::default(), &[senders]),
            (&numbers, &graded, open.clone(), &[]),
            (&json!({}), &graded, open.clone(), &[criteria]),
            (&texts, &json!({}), open, &[senders]),
            (&json!({}), &json!({}), Sms::default(), &[]),
        ] {
            let warnings = rows_of(agent.clone(), human.clone(), json!({})).idle_fields(true, &sms);
            let names: Vec<&str> = warnings.iter().filter_map(|text| Some(text.split_once(':')?.0)).collect();
            assert_eq!(names, expect, "{agent} {human}: {warnings:?}");
        }
    }

    #[test]
    fn what_a_written_step_does_not_follow_is_named() {
        let hook = json!({"mode": "TEXT", "http_webhook": "http://h"});
        let chat = json!({"mode": "TEXT", "P12_base_url": "http://h"});
        let (first, second) = (json!({"speaks_first": true, "mode": "ai_generated"}), json!({"speaks_first": false}));
        let of_chat = "journey_steps: an agent behind chat completions makes no contact";
        let not_silent = "journey_steps: who makes contact is not unresponsive";
        for (agent, begins, step, expect) in [
            (&hook, json!(null), json!({"direction": "outbound", "unresponsive": true}), &[][..]),
            (&hook, json!(null), json!({"direction": "inbound", "unresponsive": true}), &[not_silent]),
            (&chat, json!(null), json!({"direction": "outbound", "unresponsive": true}), &[not_silent, of_chat]),
            (&hook, json!(null), json!({"modality": "voice"}), &["journey_steps: an agent that writes holds"]),
            (&hook, first.clone(), json!({"direction": "outbound"}), &["speaks_first_config"]),
            (&hook, second.clone(), json!({"direction": "inbound"}), &["speaks_first_config"]),
            (&hook, first, json!({"direction": "inbound"}), &[]),
            (&hook, second, json!({"direction": "outbound"}), &[]),
        ] {
            let mut body = json!({"step": 1, "modality": "chat"});
            body.as_object_mut().expect("an object").extend(step.as_object().expect("an object").clone());
            let step = Some(serde_json::from_value(body.clone()).expect("it fits"));
            let human = json!({"speaks_first_config": begins});
            let warnings =
                CallRows { step, ..rows_of(agent.clone(), human, json!({})) }.idle_fields(true, &Sms::default());
            let named = warnings.iter().zip(expect).all(|(text, start)| text.starts_with(start));
            assert!(named && warnings.len() == expect.len(), "{agent} {body}: {warnings:?}");
        }
    }

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
            (json!({"fluency": "beginner", "language": "yue"}), Some("fluency"), Some("fluency")),
            (json!({"fluency": "beginner", "language": "ko"}), Some("fluency"), None),
            (json!({"fluency": "intermediate"}), None, None),
            (json!({"attack_plan": plan, "role_description": "A tester."}), Some("attack_plan"), None),
            // Given words need no model.
            (json!({"verbosity": "high", "fluency": "beginner", "enriched_playback": [step]}), None, None),
            (json!({"verbosity": "high", "enriched_playback": [step, meant]}), Some("verbosity"), None),
            // Replayed word for word, in its order, or not at all.
            (json!({"formatted_transcript": lines, "enriched_playback": [step]}), None, None),
            (json!({"formatted_transcript": lines, "intent": "I want help."}), None, None),
            (
                json!({"formatted_transcript": lines, "intent": "Book."}),
                Some("formatted_transcript"),
                Some("formatted_transcript"),
            ),
            // A text without lines beside it is read as they would be.
            (json!({"original_transcript": "User: I want help.", "intent": "I want help."}), None, None),
            (json!({"original_transcript": "They talked.", "enriched_playback": [step]}), None, None),
            (json!({"original_transcript": " "}), None, None),
            (json!({"original_transcript": "They talked."}), Some("original_transcript"), Some("original_transcript")),
        ] {
            let rows = rows_of(json!({}), fields.clone(), json!({}));
            for (has_model, expect) in [(false, without), (true, with)] {
                let warnings = rows.idle_fields(has_model, &Sms::default());
                let names: Vec<&str> = warnings.iter().filter_map(|text| Some(text.split_once(':')?.0)).collect();
                assert_eq!(names, Vec::from_iter(expect), "{fields} {has_model}: {warnings:?}");
            }
        }
    }
}
