//! The verdict on one result.

use serde_json::Value;

use crate::model::expectation::ExpectationStatus;
use crate::model::result::{KEPT_FLOOR, ResultBody, find_note};
use crate::model::simulation::SimulationSpec;
use crate::model::status::{Outcome, ResultStatus};

/// Returns the first rule that holds; `None` while the result is not terminal.
pub fn outcome(body: &ResultBody, simulation: &SimulationSpec) -> Option<Outcome> {
    use ResultStatus::*;
    match body.status {
        Cancelled => return Some(Outcome::Cancelled),
        NoConnection | NoAnswer | CallDropped | SystemError | OutOfFunds => return Some(Outcome::Failed),
        Completed => {}
        _ => return None,
    }
    let goal = body.evaluations.first().and_then(|evaluation| evaluation.goal());
    let calls = body.metric("expected_tool_calls_met").and_then(Value::as_bool);
    let score = mean_score(body);
    let failing = simulation.custom_metrics_failing_threshold;
    let passing = simulation.custom_metrics_passing_threshold.or(failing);
    let below = |threshold: Option<i64>| matches!((score, threshold), (Some(score), Some(t)) if score < t as f64);
    let reached = |threshold: Option<i64>| matches!((score, threshold), (Some(score), Some(t)) if score >= t as f64);
    let expected = |status: ExpectationStatus| body.expectations.iter().any(|one| one.status == status);
    if goal == Some(false) || calls == Some(false) || expected(ExpectationStatus::Failed) {
        return Some(Outcome::Failed);
    }
    if find_note(&body.metadata, KEPT_FLOOR).is_some() {
        return Some(Outcome::Failed);
    }
    if body.expectations.iter().any(|one| one.status != ExpectationStatus::Passed) {
        return Some(Outcome::NotEvaluated);
    }
    if below(failing) {
        return Some(Outcome::Failed);
    }
    let all_met = !body.expectations.is_empty();
    if goal == Some(true) || calls == Some(true) || all_met || (goal.is_none() && reached(passing)) {
        return Some(Outcome::Passed);
    }
    Some(Outcome::NotEvaluated)
}

/// Returns the mean of the custom metrics that can be counted, 0 to 100.
fn mean_score(body: &ResultBody) -> Option<f64> {
    let metrics = &body.evaluations.first()?.custom_metrics;
    let scores: Vec<f64> = metrics.iter().filter_map(|metric| metric.score()).collect();
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::expectation::ExpectationResult;
    use serde_json::json;

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
}
