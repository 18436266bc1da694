//! A person's review of an evaluation: values set in addition to the judged ones, and the record of each change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::patch::Patch;
use super::time::Timestamp;

/// Longest text of a review, in characters.
const TEXT_CHARS: usize = 10_000;

/// Request to change the review of a result: the reviewer, and the values that change.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct ReviewRequest {
    /// Name of the person who reviews.
    #[schemars(length(min = 1, max = 200))]
    pub reviewer: String,
    /// Values to change; null takes a value back, an absent one stays.
    #[serde(flatten)]
    pub changes: Patch<ReviewFields>,
}

/// Values that a person sets in addition to the judged ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewFields {
    /// Value that wins over goal_success.
    #[serde(default)]
    pub human_goal_success: Option<bool>,
    /// Reason that the reviewer gave for human_goal_success.
    #[serde(default)]
    #[schemars(length(max = TEXT_CHARS))]
    pub human_goal_reasoning: Option<String>,
    /// Value that wins over hallucination.
    #[serde(default)]
    pub human_hallucination: Option<bool>,
    /// Reason that the reviewer gave for human_hallucination.
    #[serde(default)]
    #[schemars(length(max = TEXT_CHARS))]
    pub human_hallucination_reasoning: Option<String>,
    /// Value that wins over redundancy.
    #[serde(default)]
    pub human_redundancy: Option<bool>,
    /// Reason that the reviewer gave for human_redundancy.
    #[serde(default)]
    #[schemars(length(max = TEXT_CHARS))]
    pub human_redundancy_reasoning: Option<String>,
    /// Value that wins over pronunciation_score, 0 to 100.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 100.0))]
    pub human_pronunciation_score: Option<f64>,
    /// Reason that the reviewer gave for human_pronunciation_score.
    #[serde(default)]
    #[schemars(length(max = TEXT_CHARS))]
    pub human_pronunciation_reasoning: Option<String>,
    /// Reason code of the change of the goal.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub override_goal_reason_code: Option<String>,
    /// Notes on the change of the goal.
    #[serde(default)]
    #[schemars(length(max = TEXT_CHARS))]
    pub override_goal_notes: Option<String>,
    /// Reason code of the change of hallucination.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub override_hallucination_reason_code: Option<String>,
    /// Notes on the change of hallucination.
    #[serde(default)]
    #[schemars(length(max = TEXT_CHARS))]
    pub override_hallucination_notes: Option<String>,
    /// Reason code of the change of redundancy.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub override_redundancy_reason_code: Option<String>,
    /// Notes on the change of redundancy.
    #[serde(default)]
    #[schemars(length(max = TEXT_CHARS))]
    pub override_redundancy_notes: Option<String>,
    /// Reason code of the change of pronunciation.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub override_pronunciation_reason_code: Option<String>,
    /// Notes on the change of pronunciation.
    #[serde(default)]
    #[schemars(length(max = TEXT_CHARS))]
    pub override_pronunciation_notes: Option<String>,
    /// Reviews of custom metrics; metrics that are not named stay.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    pub metrics: Option<Vec<MetricReview>>,
}

/// The whole review of one custom metric: an absent or null value is taken back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricReview {
    /// Id of the custom metric.
    pub metric_id: Uuid,
    /// Value in text form that wins over response_value.
    #[serde(default)]
    #[schemars(length(max = TEXT_CHARS))]
    pub human_response_value: Option<String>,
    /// Reason for the value.
    #[serde(default)]
    #[schemars(length(max = TEXT_CHARS))]
    pub human_reasoning: Option<String>,
    /// Reason code of the change.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub override_reason_code: Option<String>,
    /// Notes on the change.
    #[serde(default)]
    #[schemars(length(max = TEXT_CHARS))]
    pub override_notes: Option<String>,
}

/// One value that a review changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewChange {
    /// Name of the field.
    pub field: String,
    /// Id of the custom metric whose field it is; null for the evaluation's own.
    pub metric_id: Option<Uuid>,
    /// Value before the change.
    pub from: Value,
    /// Value after the change.
    pub to: Value,
}

/// A change as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReviewDoc {
    /// Id of the result.
    pub result_id: i64,
    /// Name that the reviewer gave.
    pub reviewer: String,
    /// Values that the review changed.
    pub changes: Vec<ReviewChange>,
}

/// One change of a review, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReviewRecord {
    /// Name that the reviewer gave.
    pub reviewer: String,
    /// API key that it was made with.
    pub key_id: Option<Uuid>,
    /// Time of the change.
    pub at: Timestamp,
    /// Values that the review changed.
    pub changes: Vec<ReviewChange>,
}
