//! Evaluations: judgements and measurements of one conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Object;
use super::judge_card::JudgeNote;
use super::time::Timestamp;

words! {
    /// Completeness of an evaluation.
    kept EvaluationStatus { Evaluated = "evaluated", Partial = "partial", NotEvaluated = "not_evaluated" } default NotEvaluated
}

words! {
    /// Outcome of a custom metric.
    kept CustomStatus {
        Evaluated = "evaluated", NotApplicable = "not_applicable", NotEvaluated = "not_evaluated", Error = "error",
    } default NotEvaluated
}

/// Judgement of the goal of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JudgedGoal {
    /// True if the success criteria were met; null: not judged.
    pub goal_success: Option<bool>,
    /// Reasoning of the judge.
    pub goal_reasoning: Option<String>,
    /// Completeness of the evaluation.
    pub status: EvaluationStatus,
}

/// An evaluation of one result. Values that are not known are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Evaluation {
    /// Identifier of the evaluation.
    pub id: Uuid,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Share of the call in which the agent spoke, percent.
    pub agent_speak_percentage: Option<f64>,
    /// Mean latency of the agent, seconds.
    pub avg_agent_latency: Option<f64>,
    /// Latency of the agent in seconds, by statistic (`avg_agent_latency`, `p50_agent_latency`, ...).
    pub latency: Option<Object>,
    /// Latency of the agent in seconds, by statistic, up to its first word that is no filler.
    pub filler_ignored_latency: Option<Object>,
    /// Number of agent turns.
    pub num_turns: Option<i64>,
    /// True: the success criteria were met.
    pub goal_success: Option<bool>,
    /// Reasoning of the judge about `goal_success`.
    pub goal_reasoning: Option<String>,
    /// True: the agent made a false or unfounded statement.
    pub hallucination: Option<bool>,
    /// Reasoning of the judge about `hallucination`.
    pub hallucination_reasoning: Option<String>,
    /// True: the agent repeated itself without need.
    pub redundancy: Option<bool>,
    /// Reasoning of the judge about `redundancy`.
    pub redundancy_reasoning: Option<String>,
    /// Pronunciation of the agent, 0 to 100.
    pub pronunciation_score: Option<f64>,
    /// Reasoning of the judge about `pronunciation_score`.
    pub pronunciation_reasoning: Option<String>,
    /// Summary of the conversation.
    pub call_summary: Option<String>,
    /// Sentiment: positive, neutral or negative.
    pub sentiment_label: Option<String>,
    /// Sentiment from -1 (negative) to 1 (positive).
    pub sentiment_score: Option<f64>,
    /// Shares of positive, neutral and negative, which sum to 1.
    pub sentiment_scores: Option<Object>,
    /// Results of custom metrics.
    pub custom_metrics: Vec<CustomResult>,
    /// Always null; kept for compatibility.
    pub custom_evals: Option<Value>,
    /// Share of the judged pass-fail custom metrics that passed, percent.
    pub custom_evals_success_rate: Option<f64>,
    /// True: a person changed the evaluation.
    pub human_edited: bool,
    /// Value set by a person; wins over `goal_success`.
    pub human_goal_success: Option<bool>,
    /// Reasoning of that person.
    pub human_goal_reasoning: Option<String>,
    /// Value set by a person; wins over `hallucination`.
    pub human_hallucination: Option<bool>,
    /// Reasoning of that person.
    pub human_hallucination_reasoning: Option<String>,
    /// Value set by a person; wins over `redundancy`.
    pub human_redundancy: Option<bool>,
    /// Reasoning of that person.
    pub human_redundancy_reasoning: Option<String>,
    /// Value set by a person; wins over `pronunciation_score`.
    pub human_pronunciation_score: Option<f64>,
    /// Reasoning of that person.
    pub human_pronunciation_reasoning: Option<String>,
    /// Reason code of the change of the goal.
    pub override_goal_reason_code: Option<String>,
    /// Notes on the change of the goal.
    pub override_goal_notes: Option<String>,
    /// Reason code of the change of `hallucination`.
    pub override_hallucination_reason_code: Option<String>,
    /// Notes on the change of `hallucination`.
    pub override_hallucination_notes: Option<String>,
    /// Reason code of the change of `redundancy`.
    pub override_redundancy_reason_code: Option<String>,
    /// Notes on the change of `redundancy`.
    pub override_redundancy_notes: Option<String>,
    /// Reason code of the change of `pronunciation_score`.
    pub override_pronunciation_reason_code: Option<String>,
    /// Notes on the change of `pronunciation_score`.
    pub override_pronunciation_notes: Option<String>,
    /// Identifier of the person who changed it last.
    pub last_edited_by: Option<Uuid>,
    /// Time of the last change by a person.
    pub last_edited_at: Option<Timestamp>,
    /// Name given by the person who changed it last.
    pub reviewer: Option<String>,
    /// Completeness of the evaluation.
    pub status: EvaluationStatus,
    /// Reason why judged parts are missing; null: none is.
    pub not_evaluated_reason: Option<String>,
    /// Language model that judged the conversation; null: none did.
    pub judge: Option<JudgeNote>,
}

impl Evaluation {
    /// Returns the goal success that counts: the value set by a person, else the judged one.
    pub fn goal(&self) -> Option<bool> {
        self.human_goal_success.or(self.goal_success)
    }

    /// Replaces the judgement of the goal and returns the one before.
    pub fn judge_goal(&mut self, goal: JudgedGoal) -> JudgedGoal {
        let JudgedGoal { goal_success, goal_reasoning, status } = goal;
        JudgedGoal {
            goal_success: std::mem::replace(&mut self.goal_success, goal_success),
            goal_reasoning: std::mem::replace(&mut self.goal_reasoning, goal_reasoning),
            status: std::mem::replace(&mut self.status, status),
        }
    }

    /// Copies the fields that people set from the evaluation that this one replaces.
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

    /// Sets the results of custom metrics and the percentage that passed of those that passed or failed.
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

/// Result of one custom metric for one conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CustomResult {
    /// Identifier of the metric.
    pub metric_id: Uuid,
    /// Name of the metric.
    pub name: String,
    /// Description of the metric.
    pub description: Option<String>,
    /// Response type of the metric.
    pub response_type: String,
    /// Category of the metric.
    pub category: Option<String>,
    /// Labels of the metric.
    pub tags: Vec<String>,
    /// Scoring guidance of the metric.
    pub scoring_guidance: Option<String>,
    /// Options of an enum metric.
    pub enum_options: Vec<String>,
    /// Lowest value of a quantitative metric.
    pub min_value: Option<f64>,
    /// Highest value of a quantitative metric.
    pub max_value: Option<f64>,
    /// Value as text; empty when there is none.
    pub response_value: String,
    /// Reasoning of the judge.
    pub reasoning: Option<String>,
    /// Outcome of the metric.
    pub status: CustomStatus,
    /// Reason why there is no value, or a remark on the value.
    pub reason: Option<String>,
    /// Language model that judged it; null: none did.
    pub judge: Option<JudgeNote>,
    /// Value of a pass-fail metric: pass or fail.
    pub pass_fail_response: Option<String>,
    /// Value of a yes-no metric: yes or no.
    pub yes_no_response: Option<String>,
    /// Value of a quantitative metric, within its range.
    pub quantitative_response: Option<f64>,
    /// Value of an enum metric, one of `enum_options`.
    pub enum_response: Option<String>,
    /// Value of a qualitative metric, a text.
    pub qualitative_response: Option<String>,
    /// Value of a json metric, an object.
    pub json_response: Option<Value>,
    /// Value of an int metric.
    pub int_value: Option<i64>,
    /// Value of a float metric.
    pub float_value: Option<f64>,
    /// Value of a boolean metric.
    pub boolean_value: Option<bool>,
    /// True: the metric does not apply to this conversation.
    pub is_not_applicable: bool,
    /// True: a person changed the result.
    pub human_edited: bool,
    /// Value set by a person; wins over `response_value`.
    pub human_response_value: Option<String>,
    /// Reasoning of that person.
    pub human_reasoning: Option<String>,
    /// Reason code of the change.
    pub override_reason_code: Option<String>,
    /// Notes on the change.
    pub override_notes: Option<String>,
    /// Identifier of the person who changed it last.
    pub last_edited_by: Option<Uuid>,
    /// Time of the last change by a person.
    pub last_edited_at: Option<Timestamp>,
}

impl CustomResult {
    /// True if the response type is pass_fail or tool_call.
    fn is_pass_fail(&self) -> bool {
        matches!(self.response_type.as_str(), "pass_fail" | "tool_call")
    }

    /// Copies the fields that people set from the result that this one replaces.
    pub fn keep_human_fields(&mut self, old: &CustomResult) {
        self.human_edited = old.human_edited;
        self.human_response_value.clone_from(&old.human_response_value);
        self.human_reasoning.clone_from(&old.human_reasoning);
        self.override_reason_code.clone_from(&old.override_reason_code);
        self.override_notes.clone_from(&old.override_notes);
        self.last_edited_by = old.last_edited_by;
        self.last_edited_at = old.last_edited_at;
    }

    /// Returns the score, 0 to 100; `None` for results that do not count (texts, plain numbers, not evaluated).
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
