//! What was judged of a conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Object;
use super::time::Timestamp;

words! {
    /// How much of an evaluation could be made.
    kept EvaluationStatus { Evaluated = "evaluated", Partial = "partial", NotEvaluated = "not_evaluated" } default NotEvaluated
}

words! {
    /// How a custom metric came out.
    kept CustomStatus {
        Evaluated = "evaluated", NotApplicable = "not_applicable", NotEvaluated = "not_evaluated", Error = "error",
    } default NotEvaluated
}

/// What a judge said of a goal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JudgedGoal {
    /// Whether it was reached.
    pub goal_success: Option<bool>,
    /// Why.
    pub goal_reasoning: Option<String>,
    /// How much of the evaluation there was.
    pub status: EvaluationStatus,
}

/// An evaluation of one result. Values that could not be had are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Evaluation {
    /// Its id.
    pub id: Uuid,
    /// When it was made.
    pub created_at: Timestamp,
    /// Percent of the call.
    pub agent_speak_percentage: Option<f64>,
    /// Seconds.
    pub avg_agent_latency: Option<f64>,
    /// Seconds by statistic (`avg_agent_latency`, `p50_agent_latency`, ...).
    pub latency: Option<Object>,
    /// Seconds by statistic, agent fillers left out.
    pub filler_ignored_latency: Option<Object>,
    /// Agent turns.
    pub num_turns: Option<i64>,
    /// Against the success criteria.
    pub goal_success: Option<bool>,
    /// Why.
    pub goal_reasoning: Option<String>,
    /// True: found.
    pub hallucination: Option<bool>,
    /// Why.
    pub hallucination_reasoning: Option<String>,
    /// True: found.
    pub redundancy: Option<bool>,
    /// Why.
    pub redundancy_reasoning: Option<String>,
    /// 0 to 100.
    pub pronunciation_score: Option<f64>,
    /// Why.
    pub pronunciation_reasoning: Option<String>,
    /// What happened.
    pub call_summary: Option<String>,
    /// positive, neutral or negative.
    pub sentiment_label: Option<String>,
    /// -1 to 1.
    pub sentiment_score: Option<f64>,
    /// Shares that sum to 1.
    pub sentiment_scores: Option<Object>,
    /// Custom metrics.
    pub custom_metrics: Vec<CustomResult>,
    /// Always null.
    pub custom_evals: Option<Value>,
    /// Passed of judged pass-fail custom metrics, percent.
    pub custom_evals_success_rate: Option<f64>,
    /// A person changed it.
    pub human_edited: bool,
    /// Wins over goal_success.
    pub human_goal_success: Option<bool>,
    /// Why.
    pub human_goal_reasoning: Option<String>,
    /// Wins over hallucination.
    pub human_hallucination: Option<bool>,
    /// Why.
    pub human_hallucination_reasoning: Option<String>,
    /// Wins over redundancy.
    pub human_redundancy: Option<bool>,
    /// Why.
    pub human_redundancy_reasoning: Option<String>,
    /// Wins over pronunciation_score.
    pub human_pronunciation_score: Option<f64>,
    /// Why.
    pub human_pronunciation_reasoning: Option<String>,
    /// Reason code of the change.
    pub override_goal_reason_code: Option<String>,
    /// Notes on the change.
    pub override_goal_notes: Option<String>,
    /// Reason code of the change.
    pub override_hallucination_reason_code: Option<String>,
    /// Notes on the change.
    pub override_hallucination_notes: Option<String>,
    /// Reason code of the change.
    pub override_redundancy_reason_code: Option<String>,
    /// Notes on the change.
    pub override_redundancy_notes: Option<String>,
    /// Reason code of the change.
    pub override_pronunciation_reason_code: Option<String>,
    /// Notes on the change.
    pub override_pronunciation_notes: Option<String>,
    /// By whom it was changed.
    pub last_edited_by: Option<Uuid>,
    /// When it was changed.
    pub last_edited_at: Option<Timestamp>,
    /// Name that the person gave who changed it last.
    pub reviewer: Option<String>,
    /// How much could be made.
    pub status: EvaluationStatus,
    /// Why not all.
    pub not_evaluated_reason: Option<String>,
}

impl Evaluation {
    /// Goal success as it counts: a person's word first.
    pub fn goal(&self) -> Option<bool> {
        self.human_goal_success.or(self.goal_success)
    }

    /// What is said of the goal is `goal` from now on; answers what was.
    pub fn judge_goal(&mut self, goal: JudgedGoal) -> JudgedGoal {
        let JudgedGoal { goal_success, goal_reasoning, status } = goal;
        JudgedGoal {
            goal_success: std::mem::replace(&mut self.goal_success, goal_success),
            goal_reasoning: std::mem::replace(&mut self.goal_reasoning, goal_reasoning),
            status: std::mem::replace(&mut self.status, status),
        }
    }

    /// Takes over what a person wrote into the evaluation that this one replaces.
    pub fn keep_human_fields(&mut self, old: &Evaluation) {
        self.human_edited = old.human_edited;
        self.human_goal_success = old.human_goal_success;
        self.human_goal_reasoning.clone_from(&old.human_goal_reasoning);
        self.human_hallucination = old.human_hallucination;
        self.human_hallucination_reasoning.clone_from(&old.human_hallucination_reasoning);
        self.human_redundancy = old.human_redundancy;
        self.human_redundancy_reasoning.clone_from(&old.human_redundancy_reasoning);
        self.human_pronunciation_score = old.human_pronunciation_score;
        self.human_pronunciation_reasoning.clone_from(&old.human_pronunciation_reasoning);
        self.override_goal_reason_code.clone_from(&old.override_goal_reason_code);
        self.override_goal_notes.clone_from(&old.override_goal_notes);
        self.override_hallucination_reason_code.clone_from(&old.override_hallucination_reason_code);
        self.override_hallucination_notes.clone_from(&old.override_hallucination_notes);
        self.override_redundancy_reason_code.clone_from(&old.override_redundancy_reason_code);
        self.override_redundancy_notes.clone_from(&old.override_redundancy_notes);
        self.override_pronunciation_reason_code.clone_from(&old.override_pronunciation_reason_code);
        self.override_pronunciation_notes.clone_from(&old.override_pronunciation_notes);
        self.last_edited_by = old.last_edited_by;
        self.last_edited_at = old.last_edited_at;
        self.reviewer.clone_from(&old.reviewer);
        for result in &mut self.custom_metrics {
            if let Some(old) = old.custom_metrics.iter().find(|old| old.metric_id == result.metric_id) {
                result.keep_human_fields(old);
            }
        }
    }

    /// Takes the results of custom metrics, with the percentage that passed of those that passed or failed.
    pub fn set_custom_metrics(&mut self, results: Vec<CustomResult>) {
        let evaluated = |result: &&CustomResult| result.status == CustomStatus::Evaluated;
        let verdicts = results.iter().filter(evaluated).filter(|one| one.is_pass_fail());
        let passed: Vec<bool> = verdicts.map(|result| result.response_value == "pass").collect();
        let share =
            |passed: &[bool]| 100.0 * passed.iter().filter(|passed| **passed).count() as f64 / passed.len() as f64;
        self.custom_evals_success_rate = (!passed.is_empty()).then(|| share(&passed));
        let judged =
            |result: &CustomResult| matches!(result.status, CustomStatus::Evaluated | CustomStatus::NotApplicable);
        if self.status == EvaluationStatus::NotEvaluated && results.iter().any(judged) {
            self.status = EvaluationStatus::Partial;
        }
        self.custom_metrics = results;
    }
}

/// What a custom metric gave for one result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CustomResult {
    /// Which metric.
    pub metric_id: Uuid,
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// Its response type.
    pub response_type: String,
    /// Its category.
    pub category: Option<String>,
    /// Its labels.
    pub tags: Vec<String>,
    /// Its guidance.
    pub scoring_guidance: Option<String>,
    /// Its labels to choose from.
    pub enum_options: Vec<String>,
    /// Its lower bound.
    pub min_value: Option<f64>,
    /// Its upper bound.
    pub max_value: Option<f64>,
    /// Text form; empty when there is none.
    pub response_value: String,
    /// Why.
    pub reasoning: Option<String>,
    /// How it came out.
    pub status: CustomStatus,
    /// Why there is no value, or what is to be known of the one there is.
    pub reason: Option<String>,
    /// pass or fail.
    pub pass_fail_response: Option<String>,
    /// yes or no.
    pub yes_no_response: Option<String>,
    /// Number in the metric's range.
    pub quantitative_response: Option<f64>,
    /// One of enum_options.
    pub enum_response: Option<String>,
    /// Text.
    pub qualitative_response: Option<String>,
    /// Object.
    pub json_response: Option<Value>,
    /// Integer.
    pub int_value: Option<i64>,
    /// Number.
    pub float_value: Option<f64>,
    /// Boolean.
    pub boolean_value: Option<bool>,
    /// The metric does not apply to this conversation.
    pub is_not_applicable: bool,
    /// A person changed it.
    pub human_edited: bool,
    /// Wins over response_value.
    pub human_response_value: Option<String>,
    /// Why.
    pub human_reasoning: Option<String>,
    /// Reason code of the change.
    pub override_reason_code: Option<String>,
    /// Notes on the change.
    pub override_notes: Option<String>,
    /// By whom it was changed.
    pub last_edited_by: Option<Uuid>,
    /// When it was changed.
    pub last_edited_at: Option<Timestamp>,
}

impl CustomResult {
    /// True for types that pass or fail.
    fn is_pass_fail(&self) -> bool {
        matches!(self.response_type.as_str(), "pass_fail" | "tool_call")
    }

    /// Takes over what a person wrote into the result that this one replaces.
    pub fn keep_human_fields(&mut self, old: &CustomResult) {
        self.human_edited = old.human_edited;
        self.human_response_value.clone_from(&old.human_response_value);
        self.human_reasoning.clone_from(&old.human_reasoning);
        self.override_reason_code.clone_from(&old.override_reason_code);
        self.override_notes.clone_from(&old.override_notes);
        self.last_edited_by = old.last_edited_by;
        self.last_edited_at = old.last_edited_at;
    }

    /// 0 to 100; `None` for results that are not counted (texts, plain numbers, not evaluated).
    pub fn score(&self) -> Option<f64> {
        if self.status != CustomStatus::Evaluated && self.human_response_value.is_none() {
            return None;
        }
        let value = self.human_response_value.as_ref().unwrap_or(&self.response_value);
        match (self.response_type.as_str(), value.as_str()) {
            ("pass_fail" | "tool_call", "pass") | ("yes_no", "yes") | ("boolean", "true") => Some(100.0),
            ("pass_fail" | "tool_call", "fail") | ("yes_no", "no") | ("boolean", "false") => Some(0.0),
            ("quantitative", number) => {
                let (low, high) = (self.min_value?, self.max_value?);
                (high > low).then(|| number.parse::<f64>().ok().map(|v| 100.0 * (v - low) / (high - low)))?
            }
            _ => None,
        }
    }
}
