//! Verdict of each check of a monitor on a finished call. Pure.

use ringer_human::text::plain_words;
use ringer_judge::{Decision, Unheard};
use ringer_media::call::EndReason;
use ringer_model::digital_human::Role;
use ringer_model::error_code::ErrorCode;
use ringer_model::evaluation::{CustomResult, CustomStatus};
use ringer_model::monitor::{Check, CheckItem, CheckType, Verdict};
use ringer_model::result::ResultBody;
use ringer_model::status::ResultStatus;
use ringer_model::text_of;
use ringer_model::transcript::Transcript;
use serde_json::{Value, json};
use uuid::Uuid;

/// Phrases that show that an agent is broken.
pub(super) const MALFUNCTIONS: [&str; 9] = [
    "technical difficulties",
    "something went wrong",
    "an error occurred",
    "application error",
    "please try again later",
    "internal error",
    "not in service",
    "cannot be completed as dialed",
    "system is down",
];

/// Mean agent latency that a check allows unless it says otherwise.
const VOICE_LATENCY_MS: i64 = 3000;
const TEXT_LATENCY_MS: i64 = 60_000;

/// Finished call that the checks of a monitor judge.
#[derive(Copy, Clone)]
pub(super) struct Seen<'a> {
    pub body: &'a ResultBody,
    pub transcript: Option<&'a Transcript>,
    /// Turns that were not heard.
    pub unheard: &'a [Unheard],
    pub is_voice: bool,
    /// Phrases that show that an agent is broken.
    pub phrases: &'a [String],
    /// Decision of a language model whether the agent told of an error; `None`: none was asked, or none answered.
    pub told_error: Option<&'a Decision>,
    /// Metrics that are judged in production calls alone.
    pub elsewhere: &'a [Uuid],
}

impl Seen<'_> {
    fn agent_lines(&self) -> impl Iterator<Item = &str> {
        let entries = self.transcript.into_iter().flat_map(|transcript| &transcript.entries);
        let said = entries.filter(|entry| entry.speaker == Role::Agent && entry.has_words());
        said.map(|entry| entry.utterance.as_str())
    }

    /// Returns true if the agent spoke; `None` when it cannot be told.
    fn agent_spoke(&self) -> Option<bool> {
        let turns = self.body.metric("num_turns").and_then(Value::as_i64).map(|turns| turns > 0);
        turns.or_else(|| {
            self.transcript.map(|_| self.agent_lines().next().is_some() || self.lost_turns().next().is_some())
        })
    }

    /// Returns the turns of the agent of which words are not known.
    fn lost_turns(&self) -> impl Iterator<Item = &Unheard> {
        self.unheard.iter().filter(|turn| turn.speaker == Role::Agent && turn.lacks_words())
    }

    fn error(&self) -> String {
        let code = self.body.error_code.as_ref().map(ErrorCode::as_str);
        let parts = code.into_iter().chain(self.body.error_message.as_deref());
        parts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ")
    }
}

/// Returns the outcome of one check of a finished call.
pub(super) fn judge(check: &Check, seen: &Seen<'_>) -> CheckItem {
    use ResultStatus as S;
    let unknown = |why: &str| CheckItem::new(check, Verdict::Unknown, Value::Null, why);
    match seen.body.status {
        S::SystemError | S::OutOfFunds | S::Cancelled => unknown(&seen.error()),
        S::Unknown(_) => unknown("the status of the result is not known to this version"),
        // A fault of this side shows nothing about the agent, whatever was measured before.
        _ if seen.body.is_own_failure() => unknown(&seen.error()),
        S::NoConnection | S::NoAnswer if check.kind == CheckType::AgentResponds => judge_failed_call(check, seen),
        S::NoConnection | S::NoAnswer => unknown("there was no conversation"),
        S::CallDropped if check.kind == CheckType::AgentResponds => judge_failed_call(check, seen),
        _ => match check.kind {
            CheckType::AgentResponds => responds(check, seen),
            CheckType::AgentMalfunction => malfunction(check, seen),
            CheckType::Latency => latency(check, seen),
            CheckType::CustomMetric => custom(check, seen),
            CheckType::DigitalHuman => unknown("it chooses who calls"),
        },
    }
}

/// Returns the outcome of a check for a failed call, which counts against the agent when it was not this side's fault.
fn judge_failed_call(check: &Check, seen: &Seen<'_>) -> CheckItem {
    let verdict = match seen.body.error_owner {
        Some(owner) if !owner.is_own() => Verdict::Down,
        _ => Verdict::Unknown,
    };
    CheckItem::new(check, verdict, Value::from(seen.body.status.as_str()), seen.error())
}

fn responds(check: &Check, seen: &Seen<'_>) -> CheckItem {
    let taken_off = seen.body.end_reason.as_deref() == Some(EndReason::ApiHangup.as_str());
    let (verdict, value, message) = match seen.agent_spoke() {
        Some(false) if taken_off => (Verdict::Unknown, Value::Null, "the call was hung up from outside"),
        Some(true) => (Verdict::Up, json!(true), "the agent answered and spoke"),
        Some(false) => (Verdict::Down, json!(false), "the agent answered and said nothing"),
        None => (Verdict::Unknown, Value::Null, "it is not known whether the agent spoke"),
    };
    CheckItem::new(check, verdict, value, message)
}

fn malfunction(check: &Check, seen: &Seen<'_>) -> CheckItem {
    let unknown = |why: &str| CheckItem::new(check, Verdict::Unknown, Value::Null, why);
    if seen.transcript.is_none() {
        return unknown("there is no transcript");
    }
    let lost = seen.lost_turns().count();
    if lost == 0 && seen.agent_lines().next().is_none() {
        return unknown("the agent said nothing");
    }
    if let Some(Decision { yes, reasoning }) = seen.told_error {
        let verdict = if *yes { Verdict::Down } else { Verdict::Up };
        let plain = if *yes { "the agent told of an error" } else { "the agent told of no error" };
        let message = reasoning.as_deref().map_or_else(|| plain.to_owned(), |why| format!("{plain}: {why}"));
        return CheckItem::new(check, verdict, json!(yes), message);
    }
    let words: Vec<String> = seen.agent_lines().flat_map(plain_words).collect();
    let says = |phrase: &&String| {
        let phrase = plain_words(phrase);
        !phrase.is_empty() && words.windows(phrase.len()).any(|said| said == phrase)
    };
    match seen.phrases.iter().find(says) {
        Some(phrase) => CheckItem::new(check, Verdict::Down, json!(phrase), format!("the agent said '{phrase}'")),
        None if lost > 0 => {
            unknown(&format!("words of {lost} of the agent's turns are not known, and the others tell of no error"))
        }
        None => CheckItem::new(check, Verdict::Up, Value::Null, "the agent told of no error"),
    }
}

fn latency(check: &Check, seen: &Seen<'_>) -> CheckItem {
    let limit_ms = if seen.is_voice { VOICE_LATENCY_MS } else { TEXT_LATENCY_MS };
    let limit_ms = check.config.latency_threshold_ms.unwrap_or(limit_ms);
    let quality = seen.body.engine_quality.as_ref();
    let seconds = seen.body.metric("avg_agent_latency").and_then(Value::as_f64);
    match seconds.map(|seconds| (1000.0 * seconds).round() as i64) {
        _ if quality.is_some_and(|quality| !quality.trusted) => {
            CheckItem::new(check, Verdict::Unknown, Value::Null, "the timing of this call cannot be relied on")
        }
        None => CheckItem::new(check, Verdict::Unknown, Value::Null, "the agent answered no turn"),
        Some(ms) => {
            let (verdict, word) = if ms < limit_ms { (Verdict::Up, "below") } else { (Verdict::Down, "not below") };
            CheckItem::new(check, verdict, json!(ms), format!("mean latency {ms} ms, {word} {limit_ms} ms"))
        }
    }
}

fn custom(check: &Check, seen: &Seen<'_>) -> CheckItem {
    let config = &check.config;
    let metrics = seen.body.evaluations.first().map(|evaluation| evaluation.custom_metrics.as_slice());
    let found = metrics.into_iter().flatten().find(|metric| Some(metric.metric_id) == config.custom_metric_id);
    // A metric that was not judged, or does not apply, has a text and no value.
    let judged = |metric: &&CustomResult| metric.status == CustomStatus::Evaluated;
    let found = found.and_then(|metric| {
        metric
            .human_response_value
            .as_ref()
            .or_else(|| Some(metric).filter(judged).map(|metric| &metric.response_value))
    });
    if found.is_none() && config.custom_metric_id.is_some_and(|id| seen.elsewhere.contains(&id)) {
        let why = "the metric has scope observability: it is judged in production calls alone";
        return CheckItem::new(check, Verdict::Unknown, Value::Null, why);
    }
    let (Some(value), Some(operator), Some(wanted)) = (found, config.operator, &config.value) else {
        return CheckItem::new(check, Verdict::Unknown, Value::Null, "the metric has no value");
    };
    if value.is_empty() {
        return CheckItem::new(check, Verdict::Unknown, Value::Null, "the metric has no value");
    }
    let wanted = text_of(wanted);
    let holds = operator.holds(&json!(value), &wanted);
    let verdict = if holds { Verdict::Up } else { Verdict::Down };
    let message = format!("{value} {} {wanted} is {holds}", operator.as_str());
    CheckItem::new(check, verdict, json!(value), message)
}

#[cfg(test)]
mod tests {
    use ringer_judge::Lack;

    use super::*;

    fn check(kind: &str, config: Value) -> Check {
        serde_json::from_value(json!({ "checkType": kind, "config": config })).expect("a check")
    }

    fn transcript(lines: &[(&str, &str)]) -> Transcript {
        let entry = |(speaker, text): &(&str, &str)| {
            json!({
                "start_offset_ms": 0, "end_offset_ms": 1, "speaker": speaker, "utterance": text, "filler_utterance": false,
                "interrupted": false, "scripted": false, "confidence": null, "source": "recognized", "words": [],
            })
        };
        let entries: Vec<Value> = lines.iter().map(entry).collect();
        let whole = json!({ "simulation_result_id": 1, "language": "en", "entries": entries });
        serde_json::from_value(whole).expect("a transcript")
    }

    const METRIC: &str = "6a1e0b64-6f0a-4c3b-9a25-0f4f6f7a1c11";
    const POLITE: &[(&str, &str)] = &[("AGENT", "How can I help?"), ("USER", "An error occurred here.")];
    const BROKEN: &[(&str, &str)] = &[("AGENT", "Sorry, an ERROR occurred.")];

    fn quality(trusted: bool) -> Value {
        json!({ "pacing_p99_ms": 0.1, "late_frames": 0, "lost_packets": 0, "concealed_ms": 0, "trusted": trusted,
            "echo": null })
    }

    fn custom(value: &str, status: &str) -> Value {
        json!({ "metric_id": METRIC, "response_value": value, "status": status })
    }

    fn rule(operator: &str) -> Value {
        json!({ "custom_metric_id": METRIC, "operator": operator, "value": 75 })
    }

    fn overlay(mut base: Value, more: &Value) -> Value {
        base.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        base
    }

    /// Returns a result that passes every check, with some fields replaced.
    fn with(more: Value) -> Value {
        let fine = json!({
            "status": "COMPLETED", "engine_quality": quality(true),
            "metrics": [{ "name": "num_turns", "value": 2 }, { "name": "avg_agent_latency", "value": 1.25 }],
            "evaluations": [{ "custom_metrics": [custom("80", "evaluated")] }],
        });
        overlay(fine, &more)
    }

    /// Checks the verdict on a result: without a model's word, and with either word of it.
    fn expect_verdict(kind: &str, config: &Value, body: &Value, lines: &[(&str, &str)], expect: &str) {
        let whole = overlay(serde_json::to_value(ResultBody::default()).expect("an object"), body);
        let body: ResultBody = serde_json::from_value(whole).expect("a result");
        let transcript = transcript(lines);
        let phrases = MALFUNCTIONS.map(str::to_owned);
        let seen = Seen {
            body: &body,
            transcript: Some(&transcript),
            unheard: &[],
            is_voice: true,
            phrases: &phrases,
            told_error: None,
            elsewhere: &[],
        };
        let item = judge(&check(kind, config.clone()), &seen);
        assert_eq!(item.verdict.as_str(), expect, "{kind} {config}: {}", item.message);
        // A model's word goes before the phrases, and before nothing else.
        for yes in [true, false] {
            let decision = Decision { yes, reasoning: Some("So it is.".into()) };
            let seen = Seen { told_error: Some(&decision), ..seen };
            let item = judge(&check(kind, config.clone()), &seen);
            let expect = match (kind, expect) {
                ("agent_malfunction", "UP" | "DOWN") => {
                    if yes {
                        "DOWN"
                    } else {
                        "UP"
                    }
                }
                (_, expect) => expect,
            };
            assert_eq!(item.verdict.as_str(), expect, "{kind} {config} {yes}: {}", item.message);
            assert_eq!(item.message.ends_with(": So it is."), kind == "agent_malfunction" && expect != "UNKNOWN");
        }
    }

    #[test]
    fn checks_of_failed_calls_count_against_the_agent_by_the_owner_of_the_error() {
        let fine = || with(json!({}));
        let failed =
            |status: &str, owner: &str| with(json!({ "status": status, "error_owner": owner, "error_code": "X" }));
        for (kind, config, body, lines, expect) in [
            ("agent_responds", json!({}), fine(), POLITE, "UP"),
            (
                "agent_responds",
                json!({}),
                with(json!({ "metrics": [{ "name": "num_turns", "value": 0 }] })),
                &[][..],
                "DOWN",
            ),
            ("agent_responds", json!({}), failed("NO_ANSWER", "agent_owner"), &[][..], "DOWN"),
            ("agent_responds", json!({}), failed("CALL_DROPPED", "network"), &[][..], "DOWN"),
            ("agent_responds", json!({}), failed("NO_CONNECTION", "engine"), &[][..], "UNKNOWN"),
            ("agent_responds", json!({}), failed("SYSTEM_ERROR", "engine"), &[][..], "UNKNOWN"),
            ("agent_responds", json!({}), failed("NO_CONNECTION", "simulated_caller"), &[][..], "UNKNOWN"),
            ("agent_responds", json!({}), failed("NO_CONNECTION", "provider"), &[][..], "DOWN"),
            ("agent_responds", json!({}), failed("CALL_DROPPED", "engine"), POLITE, "UNKNOWN"),
            ("agent_malfunction", json!({}), failed("CALL_DROPPED", "engine"), BROKEN, "UNKNOWN"),
            ("latency", json!({ "latency_threshold_ms": 1 }), failed("CALL_DROPPED", "engine"), POLITE, "UNKNOWN"),
            ("custom_metric", rule("less_than"), failed("CALL_DROPPED", "simulated_caller"), POLITE, "UNKNOWN"),
            (
                "agent_responds",
                json!({}),
                with(json!({ "metrics": [{ "name": "num_turns", "value": 0 }], "end_reason": "api_hangup" })),
                &[][..],
                "UNKNOWN",
            ),
        ] {
            expect_verdict(kind, &config, &body, lines, expect);
        }
    }

    #[test]
    fn each_check_reads_its_own_part() {
        let fine = || with(json!({}));
        let rated = |metric: Value| json!({ "evaluations": [{ "custom_metrics": [metric] }] });
        let failed =
            |status: &str, owner: &str| with(json!({ "status": status, "error_owner": owner, "error_code": "X" }));
        for (kind, config, body, lines, expect) in [
            ("agent_malfunction", json!({}), fine(), &[("USER", "Hello?")][..], "UNKNOWN"),
            ("agent_malfunction", json!({}), fine(), POLITE, "UP"),
            ("agent_malfunction", json!({}), fine(), BROKEN, "DOWN"),
            ("agent_malfunction", json!({}), failed("NO_ANSWER", "agent_owner"), &[][..], "UNKNOWN"),
            ("latency", json!({}), fine(), POLITE, "UP"),
            ("latency", json!({ "latency_threshold_ms": 1250 }), fine(), POLITE, "DOWN"),
            ("latency", json!({ "latency_threshold_ms": 1251 }), fine(), POLITE, "UP"),
            ("latency", json!({}), with(json!({ "engine_quality": quality(false) })), POLITE, "UNKNOWN"),
            ("latency", json!({}), with(json!({ "metrics": [] })), POLITE, "UNKNOWN"),
            ("custom_metric", rule("greater_than"), fine(), POLITE, "UP"),
            ("custom_metric", rule("less_than"), fine(), POLITE, "DOWN"),
            ("custom_metric", rule("less_than"), with(json!({ "evaluations": [] })), POLITE, "UNKNOWN"),
            (
                "custom_metric",
                rule("not_equals"),
                with(rated(custom("Not Applicable", "not_applicable"))),
                POLITE,
                "UNKNOWN",
            ),
            ("custom_metric", rule("not_equals"), with(rated(custom("", "not_evaluated"))), POLITE, "UNKNOWN"),
            (
                "custom_metric",
                rule("not_equals"),
                with(rated(json!({ "metric_id": METRIC, "status": "error", "human_response_value": "70" }))),
                POLITE,
                "UP",
            ),
        ] {
            expect_verdict(kind, &config, &body, lines, expect);
        }
    }

    #[test]
    fn what_was_not_heard_and_what_is_judged_elsewhere_is_not_known() {
        let turn = |speaker, lack| Unheard { speaker, from_ms: 0, to_ms: 900, lack };
        let metric = Uuid::from_u128(7);
        let rule = json!({ "custom_metric_id": metric, "operator": "equals", "value": "yes" });
        let lost = "words of 1 of the agent's turns are not known, and the others tell of no error";
        let polite = [("AGENT", "How can I help?")];
        let broken = [("AGENT", "An error occurred.")];
        for (kind, config, lines, unheard, expect) in [
            ("agent_malfunction", json!({}), &polite[..], vec![], ("UP", "the agent told of no error")),
            ("agent_malfunction", json!({}), &polite, vec![turn(Role::Agent, Lack::Words)], ("UNKNOWN", lost)),
            ("agent_malfunction", json!({}), &polite, vec![turn(Role::Agent, Lack::Rest)], ("UNKNOWN", lost)),
            (
                "agent_malfunction",
                json!({}),
                &polite,
                vec![turn(Role::Agent, Lack::Time), turn(Role::User, Lack::Words)],
                ("UP", "the agent told of no error"),
            ),
            (
                "agent_malfunction",
                json!({}),
                &broken,
                vec![turn(Role::Agent, Lack::Words)],
                ("DOWN", "the agent said 'an error occurred'"),
            ),
            ("agent_responds", json!({}), &[], vec![], ("DOWN", "the agent answered and said nothing")),
            (
                "agent_responds",
                json!({}),
                &[],
                vec![turn(Role::Agent, Lack::Words)],
                ("UP", "the agent answered and spoke"),
            ),
            (
                "custom_metric",
                rule,
                &polite,
                vec![],
                ("UNKNOWN", "the metric has scope observability: it is judged in production calls alone"),
            ),
            (
                "custom_metric",
                json!({ "custom_metric_id": Uuid::from_u128(8), "operator": "equals", "value": "yes" }),
                &polite,
                vec![],
                ("UNKNOWN", "the metric has no value"),
            ),
        ] {
            let (body, transcript) =
                (ResultBody { status: ResultStatus::Completed, ..ResultBody::default() }, transcript(lines));
            let seen = Seen {
                body: &body,
                transcript: Some(&transcript),
                unheard: &unheard,
                is_voice: true,
                phrases: &MALFUNCTIONS.map(str::to_owned),
                told_error: None,
                elsewhere: &[metric],
            };
            let item = judge(&check(kind, config), &seen);
            assert_eq!((item.verdict.as_str(), item.message.as_str()), expect, "{kind} {unheard:?}");
        }
    }
}
