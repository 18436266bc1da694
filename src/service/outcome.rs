//! The verdict on one result.

use serde_json::Value;

use crate::model::result::ResultBody;
use crate::model::simulation::SimulationSpec;
use crate::model::status::{Outcome, ResultStatus};

/// The first rule that holds; `None` while the result is not terminal.
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
    if goal == Some(false) || calls == Some(false) || below(failing) {
        return Some(Outcome::Failed);
    }
    if goal == Some(true) || calls == Some(true) || (goal.is_none() && reached(passing)) {
        return Some(Outcome::Passed);
    }
    Some(Outcome::NotEvaluated)
}

/// Mean of the custom metrics that can be counted, 0 to 100.
fn mean_score(body: &ResultBody) -> Option<f64> {
    let metrics = &body.evaluations.first()?.custom_metrics;
    let scores: Vec<f64> = metrics.iter().filter_map(|metric| metric.score()).collect();
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(status: &str, evaluation: Value, calls_met: Option<bool>, failing: Option<i64>, expect: Option<Outcome>) {
        let mut body = ResultBody {
            status: ResultStatus::parse(status).expect("a status"),
            evaluations: vec![serde_json::from_value(evaluation.clone()).expect("an evaluation")],
            ..ResultBody::default()
        };
        if let Some(met) = calls_met {
            let metric = json!({"name": "expected_tool_calls_met", "value": met});
            body.metrics.push(serde_json::from_value(metric).expect("a metric"));
        }
        let simulation = SimulationSpec { custom_metrics_failing_threshold: failing, ..SimulationSpec::default() };
        assert_eq!(outcome(&body, &simulation), expect, "{status} {evaluation}");
    }

    #[test]
    fn the_first_rule_that_holds_decides() {
        let metric =
            |value: &str| json!({"response_type": "pass_fail", "response_value": value, "status": "evaluated"});
        let half = json!({"custom_metrics": [metric("pass"), metric("fail")]});
        check("RUNNING", json!({"goal_success": true}), None, None, None);
        check("CANCELLED", json!({"goal_success": true}), None, None, Some(Outcome::Cancelled));
        check("CALL_DROPPED", json!({"goal_success": true}), None, None, Some(Outcome::Failed));
        check("COMPLETED", json!({"goal_success": true}), None, None, Some(Outcome::Passed));
        check("COMPLETED", json!({"goal_success": true}), Some(false), None, Some(Outcome::Failed));
        check(
            "COMPLETED",
            json!({"goal_success": true, "human_goal_success": false}),
            None,
            None,
            Some(Outcome::Failed),
        );
        check("COMPLETED", json!({}), Some(true), None, Some(Outcome::Passed));
        check("COMPLETED", json!({}), None, None, Some(Outcome::NotEvaluated));
        check("COMPLETED", half.clone(), None, None, Some(Outcome::NotEvaluated));
        check("COMPLETED", half.clone(), None, Some(60), Some(Outcome::Failed));
        check("COMPLETED", half, None, Some(50), Some(Outcome::Passed));
    }
}
