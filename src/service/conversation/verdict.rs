//! The verdict on one result, and the outcome that follows from it. Pure.

mod expected;

use ringer_model::error_code::{ErrorCode, PlatformFault};
use ringer_model::expectation::{ExpectationStatus, FaultCode};
use ringer_model::result::{KEPT_FLOOR, ResultBody, ResultDoc};
use ringer_model::simulation::SimulationSpec;
use ringer_model::status::{Outcome, ResultStatus};
use ringer_model::tool_call::{are_met, unmet};
use ringer_model::verdict::{CallVerdict, VerdictWord};
use serde_json::Value;

use self::expected::{by_expectation, steps};

/// Code of credentials that were refused.
const CREDENTIALS: &str = "credentials";

/// Sets verdict and outcome of a result; both are null while it is not terminal.
pub(crate) fn settle(doc: &mut ResultDoc, simulation: &SimulationSpec) {
    let verdict = verdict(doc, simulation);
    doc.body.outcome = verdict.as_ref().map(|verdict| outcome_of(&doc.body, &verdict.word));
    doc.body.verdict = verdict;
}

/// True if a result that ends like this is repeated where failed results are: one that failed, and one that did not get
/// far enough to fail.
pub(crate) fn is_repeated(doc: &ResultDoc, simulation: &SimulationSpec) -> bool {
    let is_failed = |verdict| outcome_of(&doc.body, &verdict) == Outcome::Failed;
    did_not_end_well(doc.body.status) || verdict(doc, simulation).is_some_and(|verdict| is_failed(verdict.word))
}

/// Returns the outcome of a result with this verdict (rows of errors first: a call that broke off counts as failed,
/// though it is not known by whose fault).
fn outcome_of(body: &ResultBody, verdict: &VerdictWord) -> Outcome {
    match verdict {
        VerdictWord::Passed => Outcome::Passed,
        VerdictWord::Failed | VerdictWord::Unreachable => Outcome::Failed,
        VerdictWord::Cancelled => Outcome::Cancelled,
        VerdictWord::Undecided | VerdictWord::Unknown(_) => {
            if did_not_end_well(body.status) && !body.is_own_failure() {
                Outcome::Failed
            } else {
                Outcome::NotEvaluated
            }
        }
    }
}

fn did_not_end_well(status: ResultStatus) -> bool {
    use ResultStatus::{CallDropped, NoAnswer, NoConnection, OutOfFunds, SystemError};
    matches!(status, NoConnection | NoAnswer | CallDropped | SystemError | OutOfFunds)
}

/// Returns the verdict on a result by the first rule that holds; `None` while it is not terminal.
pub(crate) fn verdict(doc: &ResultDoc, simulation: &SimulationSpec) -> Option<CallVerdict> {
    let body = &doc.body;
    match body.status {
        ResultStatus::Cancelled => {
            return Some(CallVerdict::of(VerdictWord::Cancelled, "cancelled", "the call was cancelled"));
        }
        status if !status.is_terminal() => return None,
        _ => {}
    }
    let mismatch = body.own_faults.iter().any(|fault| fault.code == FaultCode::RateMismatch);
    let verdict = match &body.error_code {
        Some(code) => of_error(doc, code),
        None if body.status == ResultStatus::Completed => of_conversation(doc, simulation),
        None => {
            CallVerdict::of(VerdictWord::Undecided, "not_over", format!("the call ended as {}", body.status.as_str()))
        }
    };
    let is_told_why = body.error_code.is_some() && verdict.word == VerdictWord::Undecided;
    Some(if mismatch && !is_told_why { untold_by_rate(body) } else { verdict })
}

/// Returns the verdict on a call whose agent's audio seems to have another sampling rate than the one at which it was
/// played: neither side is at fault, and nothing that was heard or measured is true.
fn untold_by_rate(body: &ResultBody) -> CallVerdict {
    let untrusted = body.engine_quality.as_ref().and_then(|quality| quality.untrusted_reason.clone());
    let reason = untrusted.unwrap_or_else(|| "the sampling rate of the agent's audio is in doubt".to_owned());
    CallVerdict::of(VerdictWord::Undecided, FaultCode::RateMismatch.as_str(), reason)
}

/// Returns the verdict on a call that ended by an error.
pub(super) fn of_error(doc: &ResultDoc, code: &ErrorCode) -> CallVerdict {
    let body = &doc.body;
    let message = body.error_message.as_deref().unwrap_or(code.as_str());
    let of = |word, code: &str| CallVerdict::of(word, code, message);
    let connected = body.start_time.is_some();
    let verdict = match code {
        ErrorCode::SipAuthFailed
        | ErrorCode::WebsocketAuthFailed
        | ErrorCode::Platform(_, PlatformFault::AuthFailed)
            if !connected =>
        {
            CallVerdict::of(VerdictWord::Unreachable, CREDENTIALS, unreachable(doc, message, code))
        }
        _ if !connected && is_unreachable(doc, code) => {
            CallVerdict::of(VerdictWord::Unreachable, code.as_str(), unreachable(doc, message, code))
        }
        _ if code.owner().is_own() || code.names_missing_setting() => of(VerdictWord::Undecided, code.as_str()),
        ErrorCode::CallRejected | ErrorCode::NoAnswer | ErrorCode::AgentHungUpBeforeSpeech => {
            of(VerdictWord::Failed, code.as_str())
        }
        _ => of(VerdictWord::Undecided, code.as_str()),
    };
    CallVerdict { at_ms: body.duration_ms.filter(|_| connected), ..verdict }
}

/// True for the error of a call that was never connected because nothing answered at the agent's address, or nothing
/// there takes calls.
fn is_unreachable(doc: &ResultDoc, code: &ErrorCode) -> bool {
    use PlatformFault::{AgentError, AgentStartFailed, BridgeConnectFailed, SessionSetupFailed};
    match code {
        ErrorCode::SipDialFailed
        | ErrorCode::InvalidSipDestination
        | ErrorCode::InvalidPhoneNumber
        | ErrorCode::InvalidEmailAddress
        | ErrorCode::UnusableCallerId
        | ErrorCode::CustomerConcurrencyLimit
        | ErrorCode::WebsocketConnectFailed
        | ErrorCode::P2ConnectionFailed
        | ErrorCode::BridgeDisconnected
        | ErrorCode::HttpWebhookFailed
        | ErrorCode::DynamicEndpointFailed
        | ErrorCode::OutboundTriggerFailed
        | ErrorCode::InboundNoIncomingCall => true,
        ErrorCode::Platform(_, BridgeConnectFailed | SessionSetupFailed | AgentError | AgentStartFailed) => true,
        // Nothing came back from it, which is not ringing out.
        ErrorCode::NoAnswer => doc.find_note("reached") == Some(&Value::Bool(false)),
        _ => false,
    }
}

/// Returns the reason why an agent was not reached: the error, its address and port, and what to check.
fn unreachable(doc: &ResultDoc, message: &str, code: &ErrorCode) -> String {
    let check = match code {
        ErrorCode::WebsocketAuthFailed => {
            "check the path of the address, and the user name and password that the agent expects"
        }
        ErrorCode::SipAuthFailed | ErrorCode::Platform(_, PlatformFault::AuthFailed) => {
            "check the user name, password or key that the agent expects"
        }
        ErrorCode::InvalidSipDestination | ErrorCode::InvalidPhoneNumber | ErrorCode::InvalidEmailAddress => {
            "check that this address exists there"
        }
        ErrorCode::UnusableCallerId => "check which callers the agent's side accepts",
        ErrorCode::CustomerConcurrencyLimit => "make fewer calls at once, or check its limits",
        ErrorCode::OutboundTriggerFailed | ErrorCode::InboundNoIncomingCall => {
            "check that the agent is started by the trigger and calls in"
        }
        ErrorCode::DynamicEndpointFailed => "check the endpoint that tells the agent's address",
        _ => "check that the agent is running and listens there",
    };
    let target = doc.find_note("target").and_then(Value::as_str);
    let names_target = |target: &&str| !message.contains(*target);
    match target.filter(names_target) {
        Some(target) => format!("{message} ({target}); {check}"),
        None => format!("{message}; {check}"),
    }
}

/// Returns the verdict on a conversation that was held to its end.
fn of_conversation(doc: &ResultDoc, simulation: &SimulationSpec) -> CallVerdict {
    let body = &doc.body;
    let goal = body.evaluations.first().and_then(|evaluation| evaluation.goal());
    let calls = body.metric("expected_tool_calls_met").and_then(Value::as_bool);
    if let Some(failed) = failure(doc, goal, calls) {
        return match led_by_fault(body) {
            Some(fault) if failed.code.as_deref() != Some(EXPECTATION) => {
                let reason = failed.reason.unwrap_or_default();
                let reason = format!("{reason}; this side failed: {fault}");
                CallVerdict { word: VerdictWord::Undecided, reason: Some(reason), ..failed }
            }
            _ => failed,
        };
    }
    let open = [ExpectationStatus::Undecided, ExpectationStatus::NotReached];
    if let Some(unknown) = open.iter().find_map(|status| by_expectation(doc, status, VerdictWord::Undecided)) {
        return unknown;
    }
    if is_unreported(body) && are_met(&body.tool_calls) == Some(false) {
        return CallVerdict::of(VerdictWord::Undecided, "tool_calls", FaultCode::ReportMissing.reason());
    }
    let score = mean_score(body);
    let failing = simulation.custom_metrics_failing_threshold;
    let passing = simulation.custom_metrics_passing_threshold.or(failing);
    if let (Some(score), Some(threshold)) = (score, failing)
        && score < threshold as f64
    {
        let reason = format!("the mean of the custom metrics is {score:.1}, below {threshold}");
        return CallVerdict::of(VerdictWord::Failed, "custom_metrics", reason);
    }
    let reached = matches!((score, passing), (Some(score), Some(threshold)) if score >= threshold as f64);
    let is_expected = !body.expectations.is_empty() || steps(doc).next().is_some();
    if goal == Some(true) || calls == Some(true) || is_expected || (goal.is_none() && reached) {
        return CallVerdict::pass();
    }
    CallVerdict::of(VerdictWord::Undecided, "not_evaluated", "nothing that was expected could be evaluated")
}

/// True if calls of tools may have been made that the platform has not told of.
fn is_unreported(body: &ResultBody) -> bool {
    body.own_faults.iter().any(|fault| fault.code == FaultCode::ReportMissing)
}

/// Code of an expectation or step that was not met.
const EXPECTATION: &str = "expectation";

/// Returns the first thing that the agent failed.
fn failure(doc: &ResultDoc, goal: Option<bool>, calls: Option<bool>) -> Option<CallVerdict> {
    let body = &doc.body;
    let failed = |code: &str, reason: String| Some(CallVerdict::of(VerdictWord::Failed, code, reason));
    if calls == Some(false) && !is_unreported(body) {
        let reason = unmet(&body.tool_calls);
        let reason = reason.unwrap_or_else(|| "the expected tool calls were not made as expected".to_owned());
        return failed("tool_calls", reason);
    }
    if goal == Some(false) {
        let evaluation = body.evaluations.first();
        let reasoning = evaluation
            .and_then(|evaluation| evaluation.human_goal_reasoning.clone().or(evaluation.goal_reasoning.clone()));
        return failed("goal", reasoning.unwrap_or_else(|| "the goal was not reached".to_owned()));
    }
    if let Some(failed) = by_expectation(doc, &ExpectationStatus::Failed, VerdictWord::Failed) {
        return Some(failed);
    }
    if is_silent(body) {
        return failed("silent", "the agent was silent where it could answer".to_owned());
    }
    let kept = doc.find_note(KEPT_FLOOR).and_then(Value::as_str);
    kept.and_then(|why| failed(KEPT_FLOOR, why.to_owned()))
}

/// True if the agent had turns to answer, and said or wrote nothing.
fn is_silent(body: &ResultBody) -> bool {
    !has_spoken(body) && number(body, "response_rate") == Some(0.0)
}

/// True if anything of the agent was heard or read.
fn has_spoken(body: &ResultBody) -> bool {
    let is_some = |name| number(body, name).is_some_and(|value| value > 0.0);
    is_some("num_turns")
        || is_some("agent_speak_percentage")
        || body.latency.as_ref().is_some_and(|latencies| !latencies.is_empty())
}

fn number(body: &ResultBody, name: &str) -> Option<f64> {
    body.metric(name).and_then(Value::as_f64)
}

/// Returns the fault of this side by which the Digital Human may have said something else than it should, or nothing.
fn led_by_fault(body: &ResultBody) -> Option<&str> {
    let leads = |code: &FaultCode| matches!(code, FaultCode::ModelFailed | FaultCode::SynthesizerFailed);
    body.own_faults.iter().find(|fault| leads(&fault.code)).map(|fault| fault.code.as_str())
}

/// Returns the mean of the custom metrics that can be counted, 0 to 100.
fn mean_score(body: &ResultBody) -> Option<f64> {
    let metrics = &body.evaluations.first()?.custom_metrics;
    let scores: Vec<f64> = metrics.iter().filter_map(|metric| metric.score()).collect();
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}

#[cfg(test)]
mod tests {
    use ringer_judge::NOTHING_EXPECTED;
    use ringer_model::expectation::ExpectationResult;
    use serde_json::json;

    use super::*;

    /// Returns the outcome of a result.
    fn outcome(body: &ResultBody, simulation: &SimulationSpec) -> Option<Outcome> {
        let mut doc = ResultDoc { body: body.clone(), ..ResultDoc::default() };
        settle(&mut doc, simulation);
        doc.body.outcome
    }

    /// Thresholds below which a result fails, and from which on it passes.
    type Thresholds = [Option<i64>; 2];

    fn check(
        status: &str,
        evaluation: Value,
        calls_met: Option<bool>,
        thresholds: Thresholds,
        expect: Option<Outcome>,
    ) {
        let mut body = ResultBody {
            status: ResultStatus::parse(status).expect("a status"),
            evaluations: vec![serde_json::from_value(evaluation.clone()).expect("an evaluation")],
            ..ResultBody::default()
        };
        if let Some(met) = calls_met {
            let metric = json!({"name": "expected_tool_calls_met", "value": met});
            body.metrics.push(serde_json::from_value(metric).expect("a metric"));
        }
        let [failing, passing] = thresholds;
        let simulation = SimulationSpec {
            custom_metrics_failing_threshold: failing,
            custom_metrics_passing_threshold: passing,
            ..SimulationSpec::default()
        };
        assert_eq!(outcome(&body, &simulation), expect, "{status} {evaluation} {thresholds:?}");
    }

    #[test]
    fn the_first_rule_that_holds_decides() {
        use Outcome::*;
        let none = [None, None];
        for (status, evaluation, calls_met, expect) in [
            ("RUNNING", json!({"goal_success": true}), None, None),
            ("CANCELLED", json!({"goal_success": true}), None, Some(Cancelled)),
            ("CALL_DROPPED", json!({"goal_success": true}), None, Some(Failed)),
            ("COMPLETED", json!({"goal_success": true}), None, Some(Passed)),
            ("COMPLETED", json!({"goal_success": true}), Some(false), Some(Failed)),
            ("COMPLETED", json!({"goal_success": true, "human_goal_success": false}), None, Some(Failed)),
            ("COMPLETED", json!({}), Some(true), Some(Passed)),
            ("COMPLETED", json!({}), None, Some(NotEvaluated)),
        ] {
            check(status, evaluation, calls_met, none, expect);
        }
    }

    #[test]
    fn an_agent_that_never_gave_the_floor_has_failed() {
        let mut body = ResultBody { status: ResultStatus::Completed, ..ResultBody::default() };
        body.expectations = vec![ExpectationResult { status: "unknown".into(), ..ExpectationResult::default() }];
        let simulation = SimulationSpec::default();
        assert_eq!(outcome(&body, &simulation), Some(Outcome::NotEvaluated));
        body.metadata.insert(KEPT_FLOOR.into(), json!("the agent did not leave 1.5 s of silence in 45 s"));
        assert_eq!(outcome(&body, &simulation), Some(Outcome::Failed));
    }

    #[test]
    fn expectations_come_after_tool_calls_and_before_custom_metrics() {
        use Outcome::*;
        let failing = json!([{"response_type": "pass_fail", "response_value": "fail", "status": "evaluated"}]);
        for (goal, calls_met, statuses, custom, expect) in [
            (None, None, &["passed", "passed"][..], false, Passed),
            (None, None, &["passed", "failed"], false, Failed),
            (None, None, &["unknown", "failed"], false, Failed),
            (None, None, &["passed", "unknown"], false, NotEvaluated),
            (Some(true), Some(true), &["unknown"], false, NotEvaluated),
            (Some(true), Some(true), &["failed"], false, Failed),
            (Some(false), None, &["passed"], false, Failed),
            (None, Some(false), &["unknown"], false, Failed),
            (None, None, &["unknown"], true, NotEvaluated),
            (None, None, &["passed"], true, Failed),
            (Some(true), None, &[], false, Passed),
        ] {
            let custom = if custom { failing.clone() } else { json!([]) };
            let evaluation = json!({"goal_success": goal, "custom_metrics": custom});
            let mut body = ResultBody {
                status: ResultStatus::Completed,
                evaluations: vec![serde_json::from_value(evaluation).expect("an evaluation")],
                ..ResultBody::default()
            };
            if let Some(met) = calls_met {
                let metric = json!({"name": "expected_tool_calls_met", "value": met});
                body.metrics.push(serde_json::from_value(metric).expect("a metric"));
            }
            let of = |status: &&str| ExpectationResult { status: (*status).into(), ..ExpectationResult::default() };
            body.expectations = statuses.iter().map(of).collect();
            let simulation = SimulationSpec { custom_metrics_failing_threshold: Some(50), ..SimulationSpec::default() };
            assert_eq!(outcome(&body, &simulation), Some(expect), "{goal:?} {calls_met:?} {statuses:?}");
        }
    }

    #[test]
    fn a_mean_of_custom_metrics_is_held_against_both_thresholds() {
        use Outcome::*;
        let metric =
            |value: &str| json!({"response_type": "pass_fail", "response_value": value, "status": "evaluated"});
        // A mean of 50.
        let half = |goal: Value| json!({"goal_success": goal, "custom_metrics": [metric("pass"), metric("fail")]});
        for (goal, failing, passing, expect) in [
            (Value::Null, None, None, NotEvaluated),
            (Value::Null, Some(60), None, Failed),
            (Value::Null, Some(50), None, Passed),
            (Value::Null, None, Some(50), Passed),
            (Value::Null, None, Some(51), NotEvaluated),
            (Value::Null, Some(40), Some(60), NotEvaluated),
            (Value::Null, Some(40), Some(50), Passed),
            (Value::Null, Some(51), Some(60), Failed),
            // Only the lower one is held against a goal that was judged.
            (json!(true), None, Some(60), Passed),
            (json!(true), Some(60), Some(70), Failed),
            (json!(false), None, Some(50), Failed),
        ] {
            check("COMPLETED", half(goal), None, [failing, passing], Some(expect));
        }
        check("COMPLETED", json!({}), None, [Some(50), Some(50)], Some(NotEvaluated));
        check("COMPLETED", half(Value::Null), Some(true), [Some(40), Some(60)], Some(Passed));
    }

    /// Returns a result that ended by this error, after the agent had spoken or before anything was connected.
    fn of_code(code: &str, spoke: bool, metadata: &Value) -> ResultBody {
        let code = ErrorCode::from(code);
        let metric = json!({"name": "num_turns", "value": if spoke { 2 } else { 0 }});
        let mut body = ResultBody {
            status: code.status(spoke),
            metrics: vec![serde_json::from_value(metric).expect("a metric")],
            start_time: spoke.then_some(ringer_model::time::Timestamp(1)),
            duration_ms: spoke.then_some(4000),
            metadata: metadata.as_object().expect("a map").clone(),
            ..ResultBody::default()
        };
        body.fail(code, "m");
        let mut doc = ResultDoc { body, ..ResultDoc::default() };
        settle(&mut doc, &SimulationSpec::default());
        doc.body
    }

    #[test]
    fn calls_that_break_off_have_the_verdict_of_their_row() {
        use Outcome::{Failed, NotEvaluated};
        for (code, spoke, word, outcome) in [
            // The agent was there, and did not answer.
            ("CALL_REJECTED", false, VerdictWord::Failed, Failed),
            ("NO_ANSWER", false, VerdictWord::Failed, Failed),
            ("AGENT_HUNG_UP_BEFORE_SPEECH", false, VerdictWord::Failed, Failed),
            // Broken off: nobody knows by whose fault.
            ("MEDIA_TIMEOUT", true, VerdictWord::Undecided, Failed),
            ("BRIDGE_DISCONNECTED", true, VerdictWord::Undecided, Failed),
            ("SMS_SEND_FAILED", false, VerdictWord::Undecided, Failed),
            // This side.
            ("ENGINE_SHUTDOWN", true, VerdictWord::Undecided, NotEvaluated),
            ("SYNTHESIZER_FAILED", true, VerdictWord::Undecided, NotEvaluated),
            ("DIAL_CALLS_REFUSED", false, VerdictWord::Undecided, NotEvaluated),
            ("P3_ADAPTER_NOT_CONFIGURED", false, VerdictWord::Undecided, NotEvaluated),
            ("MISSING_P3_AGENT_ID", false, VerdictWord::Undecided, NotEvaluated),
            ("NO_CONNECTION_TYPE", false, VerdictWord::Undecided, NotEvaluated),
            ("A_NEW_CODE", true, VerdictWord::Undecided, NotEvaluated),
        ] {
            let body = of_code(code, spoke, &json!({}));
            let expect = CallVerdict { at_ms: spoke.then_some(4000), ..CallVerdict::of(word, code, "m") };
            assert_eq!((body.verdict, body.outcome), (Some(expect), Some(outcome)), "{code}");
        }
    }

    #[test]
    fn agents_that_are_not_reached_are_unreachable_with_what_to_check() {
        let (none, unheard) = (json!({}), json!({"reached": false}));
        let target = json!({"target": "h:5080"});
        for (code, metadata, kind, check) in [
            ("SIP_DIAL_FAILED", &target, None, "m (h:5080); check that the agent is running and listens there"),
            ("WEBSOCKET_CONNECT_FAILED", &none, None, "m; check that the agent is running and listens there"),
            ("HTTP_WEBHOOK_FAILED", &none, None, "m; check that the agent is running and listens there"),
            ("P2_CONNECTION_FAILED", &none, None, "m; check that the agent is running and listens there"),
            ("P12_SESSION_SETUP_FAILED", &none, None, "m; check that the agent is running and listens there"),
            ("NO_ANSWER", &unheard, None, "m; check that the agent is running and listens there"),
            ("INVALID_SIP_DESTINATION", &none, None, "m; check that this address exists there"),
            ("UNUSABLE_CALLER_ID", &none, None, "m; check which callers the agent's side accepts"),
            ("CUSTOMER_CONCURRENCY_LIMIT", &none, None, "m; make fewer calls at once, or check its limits"),
            (
                "SIP_AUTH_FAILED",
                &none,
                Some(CREDENTIALS),
                "m; check the user name, password or key that the agent expects",
            ),
            (
                "P12_AUTH_FAILED",
                &none,
                Some(CREDENTIALS),
                "m; check the user name, password or key that the agent expects",
            ),
        ] {
            let body = of_code(code, false, metadata);
            let expect = CallVerdict::of(VerdictWord::Unreachable, kind.unwrap_or(code), check);
            assert_eq!((body.verdict, body.outcome), (Some(expect), Some(Outcome::Failed)), "{code}");
        }
    }

    /// Returns the verdict on a conversation that was held, with these members of its result.
    fn verdict_on(members: Value) -> CallVerdict {
        let mut body: Value =
            serde_json::to_value(ResultBody { status: ResultStatus::Completed, ..ResultBody::default() })
                .expect("it is JSON");
        body.as_object_mut().expect("a map").extend(members.as_object().expect("a map").clone());
        let body: ResultBody = serde_json::from_value(body).expect("a result");
        let doc = ResultDoc { body, ..ResultDoc::default() };
        verdict(&doc, &SimulationSpec::default()).expect("it is terminal")
    }

    #[test]
    fn conversations_have_the_verdict_of_the_first_thing_that_decides() {
        use VerdictWord::{Failed, Undecided};
        let of = |word, code, reason: &str, at_ms| CallVerdict { at_ms, ..CallVerdict::of(word, code, reason) };
        let expectation = |status: &str| json!([{"status": status, "reason": "r", "expected": {"heard": "x"}, "measured": null, "at_ms": 7}]);
        let playback = |status: &str| json!({"playback": [{"index": 2, "status": status, "reason": "r"}]});
        let silent = json!([{"name": "num_turns", "value": 0}, {"name": "response_rate", "value": 0.0}]);
        let fault = json!([{"code": "synthesizer_failed", "at_ms": null, "turn": null}]);
        let quiet = "the agent was silent where it could answer";
        for (members, expect) in [
            (json!({"expectations": expectation("passed")}), CallVerdict::pass()),
            (json!({"metadata": playback("passed")}), CallVerdict::pass()),
            (json!({"expectations": expectation("failed")}), of(Failed, "expectation", "r", Some(7))),
            (json!({"expectations": expectation("unknown")}), of(Undecided, "expectation", "r", Some(7))),
            (json!({"metadata": playback("failed")}), of(Failed, "expectation", "turn 3: r", None)),
            (json!({"metadata": playback("not_reached")}), of(Undecided, "expectation", "turn 3: r", None)),
            (json!({"metadata": playback("unknown")}), of(Undecided, "expectation", "turn 3: r", None)),
            (
                json!({"metadata": playback("passed"), "expectations": expectation("unknown")}),
                of(Undecided, "expectation", "r", Some(7)),
            ),
            // Of a step that takes any turn nothing is expected.
            (
                json!({"metadata": {"playback": [{"index": 0, "status": "unknown", "reason": NOTHING_EXPECTED}]},
                    "expectations": expectation("passed")}),
                CallVerdict::pass(),
            ),
            (json!({"metrics": silent}), of(Failed, "silent", quiet, None)),
            (
                json!({"metrics": silent, "own_faults": fault}),
                of(Undecided, "silent", &format!("{quiet}; this side failed: synthesizer_failed"), None),
            ),
            (json!({}), of(Undecided, "not_evaluated", "nothing that was expected could be evaluated", None)),
        ] {
            assert_eq!(verdict_on(members.clone()), expect, "{members}");
        }
    }

    #[test]
    fn a_call_with_audio_of_another_rate_is_unknown() {
        let why = "the agent sends 0.5 times real time: is its rate 8000?";
        let fault = json!([{"code": "rate_mismatch", "at_ms": null, "turn": null}]);
        let quality = json!({"pacing_p99_ms": 0.1, "late_frames": 0, "lost_packets": 0, "concealed_ms": 0, "trusted": false,
            "untrusted_reason": why});
        let expectation = |status: &str| json!([{"status": status, "reason": "r", "expected": {"heard": "x"}, "measured": null, "at_ms": 7}]);
        let silent = json!([{"name": "num_turns", "value": 0}, {"name": "response_rate", "value": 0.0}]);
        for members in [
            json!({"expectations": expectation("failed")}),
            json!({"expectations": expectation("passed")}),
            json!({"metrics": silent}),
            json!({"status": "NO_ANSWER", "error_code": "AGENT_HUNG_UP_BEFORE_SPEECH", "start_time": "2026-01-01T00:00:00Z"}),
        ] {
            let mut members = members;
            (members["own_faults"], members["engine_quality"]) = (fault.clone(), quality.clone());
            let expect = CallVerdict::of(VerdictWord::Undecided, "rate_mismatch", why);
            assert_eq!(verdict_on(members.clone()), expect, "{members}");
        }
        let dropped = json!({"status": "CALL_DROPPED", "error_code": "BRIDGE_DISCONNECTED", "error_message": "gone",
            "start_time": "2026-01-01T00:00:00Z", "own_faults": fault});
        assert_eq!(verdict_on(dropped).code.as_deref(), Some("BRIDGE_DISCONNECTED"));
    }

    #[test]
    fn what_is_not_over_has_no_verdict_and_a_cancelled_call_is_nobodys_fault() {
        let of = |status| {
            let body = ResultBody { status, ..ResultBody::default() };
            verdict(&ResultDoc { body, ..ResultDoc::default() }, &SimulationSpec::default())
        };
        assert_eq!(of(ResultStatus::Running), None);
        assert_eq!(of(ResultStatus::Cancelled).map(|verdict| verdict.word), Some(VerdictWord::Cancelled));
    }

    #[test]
    fn posted_metadata_says_nothing_about_the_verdict() {
        let mut doc = ResultDoc::default();
        doc.body.status = ResultStatus::Completed;
        doc.post_metadata(
            json!({"kept_floor": "mine", "playback": [{"index": 0, "status": "failed"}]})
                .as_object()
                .expect("a map")
                .clone(),
        );
        let word = |doc: &ResultDoc| verdict(doc, &SimulationSpec::default()).map(|verdict| verdict.word);
        assert_eq!(word(&doc), Some(VerdictWord::Undecided));
        doc.note(KEPT_FLOOR, json!("the agent did not leave 1.5 s of silence in 45 s"));
        assert_eq!(word(&doc), Some(VerdictWord::Failed));
    }
}
