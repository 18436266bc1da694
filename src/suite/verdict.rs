//! Verdict on a call: the agent's fault, this side's or unknown, from the engine's record alone; nothing is judged here.

use serde_json::Value;

use crate::model::error_code::{ErrorCode, Owner};
use crate::model::result::{KEPT_FLOOR, beside};

/// Verdict on one call.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// All expectations were met.
    Passed,
    /// The agent is at fault.
    Failed,
    /// Unknown, for instance through a fault of this side.
    #[default]
    Unknown,
}

impl Verdict {
    /// Returns its word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::Unknown => "unknown",
        }
    }
}

/// A verdict with its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Verdict of the call.
    pub verdict: Verdict,
    /// Code for the kind of reason, like an error code; empty when it passed.
    pub code: String,
    /// Reason for a person; empty when it passed.
    pub reason: String,
}

impl Judgement {
    fn of(verdict: Verdict, code: &str, reason: impl Into<String>) -> Judgement {
        Judgement { verdict, code: code.to_owned(), reason: reason.into() }
    }

    /// Returns the verdict on a call whose outcome is not known.
    pub fn unknown(code: &str, reason: impl Into<String>) -> Judgement {
        Judgement::of(Verdict::Unknown, code, reason)
    }

    /// Returns the verdict on a call whose agent's command had ended, or was not ready.
    pub fn not_started(reason: impl Into<String>) -> Judgement {
        Judgement::of(Verdict::Failed, NOT_STARTED, reason)
    }
}

/// Code of an agent whose command was not there.
pub const NOT_STARTED: &str = "AGENT_NOT_STARTED";
/// Code of credentials that were refused.
pub const CREDENTIALS: &str = "credentials";

/// Judges a result record; `ended`: how the agent's spawned command ended during the call, `None` where it runs or there is none.
pub fn judge(record: &Value, ended: Option<&str>) -> Judgement {
    let connected = !record["start_time"].is_null();
    let spoke = has_spoken(record);
    if let Some(status) = ended.filter(|_| !spoke) {
        return Judgement::not_started(format!("the agent's command {status}"));
    }
    if record["status"] == "CANCELLED" {
        return Judgement::unknown("cancelled", "the call was cancelled");
    }
    if let Some(code) = record["error_code"].as_str() {
        return of_error(record, code, connected && spoke, ended);
    }
    if record["status"] != "COMPLETED" {
        let status = record["status"].as_str().unwrap_or("not known");
        return Judgement::unknown("not_over", format!("the call is {status}"));
    }
    let failed = reason_of(record, "failed");
    if let Some(reason) = failed {
        return Judgement::of(Verdict::Failed, "expectation", reason);
    }
    if is_silent(record) {
        let why = "the agent was silent where it could answer";
        return match led_by_fault(record) {
            Some(fault) => Judgement::unknown("silent", format!("{why}; this side failed: {fault}")),
            None => Judgement::of(Verdict::Failed, "silent", why),
        };
    }
    if let Some(why) = note_of(record, KEPT_FLOOR).as_str() {
        return Judgement::of(Verdict::Failed, KEPT_FLOOR, why);
    }
    if record["outcome"] == "failed" {
        let why = goal(record);
        return match led_by_fault(record) {
            Some(fault) => Judgement::unknown("outcome", format!("{why}; this side failed: {fault}")),
            None => Judgement::of(Verdict::Failed, "outcome", why),
        };
    }
    if let Some(reason) = reason_of(record, "unknown").or_else(|| reason_of(record, "not_reached")) {
        return Judgement::unknown("expectation", reason);
    }
    let has_steps = steps(record).next().is_some();
    let has_expectations = record["expectations"].as_array().is_some_and(|all| !all.is_empty());
    match record["outcome"].as_str() {
        Some("passed") => Judgement { verdict: Verdict::Passed, ..Judgement::default() },
        // The engine's outcome does not cover turns that were all met.
        Some("not_evaluated") if has_steps || has_expectations => {
            Judgement { verdict: Verdict::Passed, ..Judgement::default() }
        }
        _ => Judgement::unknown("not_evaluated", "nothing that was expected could be evaluated"),
    }
}

fn of_error(record: &Value, code: &str, spoke: bool, ended: Option<&str>) -> Judgement {
    let message = record["error_message"].as_str().unwrap_or(code);
    let agent = || Judgement::of(Verdict::Failed, code, message);
    let unknown = || Judgement::unknown(code, message);
    let parsed = ErrorCode::from(code);
    match (&parsed, parsed.owner()) {
        (ErrorCode::SipAuthFailed | ErrorCode::WebsocketAuthFailed, _) => Judgement::unknown(CREDENTIALS, message),
        (_, Owner::Engine | Owner::SimulatedCaller) => unknown(),
        // Nothing came back from it, which is not ringing out.
        (ErrorCode::NoAnswer, _) if note_of(record, "reached") == &Value::Bool(false) => unknown(),
        (ErrorCode::CallRejected | ErrorCode::NoAnswer | ErrorCode::AgentHungUpBeforeSpeech, _) => agent(),
        _ => match (spoke, ended) {
            (true, Some(status)) => {
                Judgement::of(Verdict::Failed, code, format!("{message}; the agent's command {status}"))
            }
            _ => unknown(),
        },
    }
}

/// True when anything of the agent was heard or read.
fn has_spoken(record: &Value) -> bool {
    let metric = |name: &str| metric(record, name).unwrap_or(0.0) > 0.0;
    metric("num_turns")
        || metric("agent_speak_percentage")
        || record["latency"].as_array().is_some_and(|all| !all.is_empty())
}

fn metric(record: &Value, name: &str) -> Option<f64> {
    record["metrics"].as_array()?.iter().find(|metric| metric["name"] == name)?["value"].as_f64()
}

fn is_silent(record: &Value) -> bool {
    !has_spoken(record) && metric(record, "response_rate") == Some(0.0)
}

/// A fault of this side by which the Digital Human may have said something else than it should, or nothing.
fn led_by_fault(record: &Value) -> Option<&str> {
    let mut codes = record["own_faults"].as_array().into_iter().flatten().filter_map(|fault| fault["code"].as_str());
    codes.find(|code| ["model_failed", "synthesizer_failed"].contains(code))
}

/// Returns what the engine noted under this key; null when nothing.
fn note_of<'r>(record: &'r Value, key: &str) -> &'r Value {
    let metadata = &record["metadata"];
    metadata.get(beside(key)).unwrap_or(&metadata[key])
}

/// Steps of the playback, as the engine tells of them.
fn steps(record: &Value) -> impl Iterator<Item = &Value> {
    note_of(record, "playback").as_array().into_iter().flatten()
}

/// Returns the reason of the first expectation or step of this status.
fn reason_of(record: &Value, status: &str) -> Option<String> {
    let expectations = record["expectations"].as_array().into_iter().flatten();
    let expectation = expectations.clone().find(|one| one["status"] == status).map(|one| {
        let reason = one["reason"].as_str().unwrap_or("no reason is told");
        let meaning = one["expected"]["meaning"].as_str();
        meaning.map_or_else(|| reason.to_owned(), |meaning| format!("{meaning}: {reason}"))
    });
    let step = steps(record).find(|step| step["status"] == status).map(|step| {
        let reason = step["reason"].as_str().unwrap_or("no reason is told");
        format!("turn {}: {reason}", step["index"].as_i64().unwrap_or(0) + 1)
    });
    step.or(expectation)
}

fn goal(record: &Value) -> String {
    let told = record["evaluations"][0]["goal_reasoning"].as_str();
    told.map_or_else(|| "the engine's outcome is failed".to_owned(), str::to_owned)
}

/// Returns the verdict on the gate of a scenario, from its runs with a verdict.
pub fn gate(passed: u64, told: u64, all: u64, pass_rate: f64) -> Verdict {
    if all == 0 {
        return Verdict::Passed;
    }
    // The calls without a verdict may all pass, or all fail. Rates like 0.95 are inexact as floats: 19 of 20 have to be
    // enough.
    let reaches = |passed: u64| passed as f64 / all as f64 >= pass_rate - 1e-9;
    match (reaches(passed), reaches(passed + (all - told))) {
        (true, _) => Verdict::Passed,
        (false, false) => Verdict::Failed,
        (false, true) => Verdict::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(more: Value) -> Value {
        let mut record = json!({"status": "COMPLETED", "start_time": "t", "outcome": "passed", "latency": [0.5],
            "metrics": [{"name": "num_turns", "value": 2}, {"name": "response_rate", "value": 1.0}]});
        record.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        record
    }

    fn error(code: &str, spoke: bool) -> Value {
        let turns = if spoke { 2 } else { 0 };
        json!({"status": "X", "error_code": code, "error_message": "m", "start_time": if spoke { json!("t") } else { Value::Null },
            "outcome": "failed", "latency": [], "metrics": [{"name": "num_turns", "value": turns}]})
    }

    fn not_reached(metadata: Value) -> Value {
        let mut record = error("NO_ANSWER", false);
        record["metadata"] = metadata;
        record
    }

    type Case = (Value, Option<&'static str>, Verdict, &'static str, &'static str);

    fn check(cases: impl IntoIterator<Item = Case>) {
        for (record, ended, verdict, code, reason) in cases {
            let found = judge(&record, ended);
            assert_eq!(
                (found.verdict, found.code.as_str(), found.reason.as_str()),
                (verdict, code, reason),
                "{record}"
            );
        }
    }

    #[test]
    fn an_agent_that_never_gives_the_floor_has_failed() {
        check([(
            record(json!({"latency": [], "outcome": "failed", "metadata": {"kept_floor": "no silence"},
                    "expectations": [{"status": "unknown", "reason": "no value"}]})),
            None,
            Verdict::Failed,
            "kept_floor",
            "no silence",
        )]);
    }

    #[test]
    fn calls_that_fail_have_the_verdict_of_their_row() {
        check([
            // Never connected.
            (error("SIP_DIAL_FAILED", false), None, Verdict::Unknown, "SIP_DIAL_FAILED", "m"),
            (error("INVALID_SIP_DESTINATION", false), None, Verdict::Unknown, "INVALID_SIP_DESTINATION", "m"),
            (error("UNUSABLE_CALLER_ID", false), None, Verdict::Unknown, "UNUSABLE_CALLER_ID", "m"),
            (error("CUSTOMER_CONCURRENCY_LIMIT", false), None, Verdict::Unknown, "CUSTOMER_CONCURRENCY_LIMIT", "m"),
            (error("HTTP_WEBHOOK_FAILED", false), None, Verdict::Unknown, "HTTP_WEBHOOK_FAILED", "m"),
            (error("WEBSOCKET_CONNECT_FAILED", false), None, Verdict::Unknown, "WEBSOCKET_CONNECT_FAILED", "m"),
            (error("P12_AGENT_ERROR", false), None, Verdict::Unknown, "P12_AGENT_ERROR", "m"),
            // Credentials.
            (error("SIP_AUTH_FAILED", false), None, Verdict::Unknown, "credentials", "m"),
            (error("WEBSOCKET_AUTH_FAILED", false), None, Verdict::Unknown, "credentials", "m"),
            // The agent was there, and did not answer.
            (error("CALL_REJECTED", false), None, Verdict::Failed, "CALL_REJECTED", "m"),
            (error("NO_ANSWER", false), None, Verdict::Failed, "NO_ANSWER", "m"),
            (error("AGENT_HUNG_UP_BEFORE_SPEECH", false), None, Verdict::Failed, "AGENT_HUNG_UP_BEFORE_SPEECH", "m"),
            (
                record(json!({"latency": [], "outcome": "not_evaluated",
                    "metrics": [{"name": "num_turns", "value": 0}, {"name": "response_rate", "value": 0.0}]})),
                None,
                Verdict::Failed,
                "silent",
                "the agent was silent where it could answer",
            ),
            (
                record(
                    json!({"latency": [], "outcome": "not_evaluated", "own_faults": [{"code": "synthesizer_failed"}],
                    "metrics": [{"name": "num_turns", "value": 0}, {"name": "response_rate", "value": 0.0}]}),
                ),
                None,
                Verdict::Unknown,
                "silent",
                "the agent was silent where it could answer; this side failed: synthesizer_failed",
            ),
            // It did not even ring.
            (not_reached(json!({"reached": false})), None, Verdict::Unknown, "NO_ANSWER", "m"),
            (not_reached(json!({"reached": true, "engine.reached": false})), None, Verdict::Unknown, "NO_ANSWER", "m"),
            (not_reached(json!({})), None, Verdict::Failed, "NO_ANSWER", "m"),
            // Broken off.
            (error("MEDIA_TIMEOUT", true), None, Verdict::Unknown, "MEDIA_TIMEOUT", "m"),
            (
                error("MEDIA_TIMEOUT", true),
                Some("ended with status 3"),
                Verdict::Failed,
                "MEDIA_TIMEOUT",
                "m; the agent's command ended with status 3",
            ),
            (error("BRIDGE_DISCONNECTED", true), None, Verdict::Unknown, "BRIDGE_DISCONNECTED", "m"),
            // The command.
            (
                error("SIP_DIAL_FAILED", false),
                Some("ended with status 1"),
                Verdict::Failed,
                "AGENT_NOT_STARTED",
                "the agent's command ended with status 1",
            ),
            // This side.
            (error("ENGINE_SHUTDOWN", true), Some("ended"), Verdict::Unknown, "ENGINE_SHUTDOWN", "m"),
            (error("SYNTHESIZER_FAILED", true), None, Verdict::Unknown, "SYNTHESIZER_FAILED", "m"),
            (error("SMS_SEND_FAILED", false), None, Verdict::Unknown, "SMS_SEND_FAILED", "m"),
            (error("A_NEW_CODE", true), None, Verdict::Unknown, "A_NEW_CODE", "m"),
        ]);
    }

    #[test]
    fn calls_that_are_judged_have_the_verdict_of_their_row() {
        let expectation = |status: &str| json!([{"status": status, "reason": "r", "expected": {}}]);
        let playback = |status: &str| json!({"playback": [{"index": 2, "status": status, "reason": "r"}]});
        check([
            (record(json!({})), None, Verdict::Passed, "", ""),
            (record(json!({"expectations": expectation("passed")})), None, Verdict::Passed, "", ""),
            (
                record(json!({"expectations": expectation("failed"), "outcome": "failed"})),
                None,
                Verdict::Failed,
                "expectation",
                "r",
            ),
            (
                record(json!({"expectations": expectation("unknown"), "outcome": "not_evaluated"})),
                None,
                Verdict::Unknown,
                "expectation",
                "r",
            ),
            (record(json!({"metadata": playback("failed")})), None, Verdict::Failed, "expectation", "turn 3: r"),
            (record(json!({"metadata": playback("not_reached")})), None, Verdict::Unknown, "expectation", "turn 3: r"),
            (record(json!({"metadata": playback("unknown")})), None, Verdict::Unknown, "expectation", "turn 3: r"),
            (
                record(json!({"metadata": playback("passed"), "outcome": "not_evaluated"})),
                None,
                Verdict::Passed,
                "",
                "",
            ),
            (
                record(json!({"outcome": "failed", "evaluations": [{"goal_reasoning": "No day."}]})),
                None,
                Verdict::Failed,
                "outcome",
                "No day.",
            ),
            (
                record(json!({"outcome": "not_evaluated"})),
                None,
                Verdict::Unknown,
                "not_evaluated",
                "nothing that was expected could be evaluated",
            ),
            (json!({"status": "CANCELLED"}), None, Verdict::Unknown, "cancelled", "the call was cancelled"),
            (json!({"status": "RUNNING"}), None, Verdict::Unknown, "not_over", "the call is RUNNING"),
            // It closed in order.
            (record(json!({"conversation_ended_by": "AGENT"})), None, Verdict::Passed, "", ""),
        ]);
    }

    #[test]
    fn untold_calls_decide_no_gate() {
        for (passed, told, all, rate, expect) in [
            (3, 3, 3, 1.0, Verdict::Passed),
            (2, 3, 3, 1.0, Verdict::Failed),
            (2, 2, 3, 1.0, Verdict::Unknown),
            (1, 2, 3, 1.0, Verdict::Failed),
            (2, 2, 3, 0.6, Verdict::Passed),
            (1, 2, 3, 0.6, Verdict::Unknown),
            (19, 20, 20, 0.95, Verdict::Passed),
            (18, 20, 20, 0.95, Verdict::Failed),
            (0, 0, 3, 1.0, Verdict::Unknown),
            (0, 3, 3, 0.0, Verdict::Passed),
            (0, 0, 0, 1.0, Verdict::Passed),
        ] {
            assert_eq!(gate(passed, told, all, rate), expect, "{passed} of {told} of {all} at {rate}");
        }
    }
}
