//! Issues: failures of an agent, grouped, that people triage. Validation errors of requests are in `validation_error`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::time::Timestamp;

words! {
    /// Origin of an issue: similar judgements, or an error that is known by itself.
    IssueType { NonDeterministic = "non_deterministic", Deterministic = "deterministic" }
}

words! {
    /// State of the work on an issue.
    IssueStatus { Open = "open", InProgress = "in_progress", Resolved = "resolved", Ignored = "ignored" } default Open
}

words! {
    /// Urgency of an issue.
    IssuePriority { Low = "low", Medium = "medium", High = "high", Urgent = "urgent" }
}

words! {
    /// Kind of conversation in which something was found.
    SourceKind { Simulation = "simulation", Observability = "observability" }
}

/// Decisions of people about an issue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriageSpec {
    /// State of the work on the issue.
    #[serde(default)]
    pub status: IssueStatus,
    /// Urgency; null until somebody sets one.
    #[serde(default)]
    pub priority: Option<IssuePriority>,
    /// Person who works on it; null: nobody.
    #[serde(default)]
    pub assignee_id: Option<Uuid>,
    /// Due date, `YYYY-MM-DD`; null: none.
    #[serde(default)]
    #[schemars(extend("format" = "date"))]
    pub due_date: Option<String>,
}

/// An issue as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IssueDoc {
    /// Agent whose failures these are.
    pub agent_id: i64,
    /// Origin of the issue.
    pub kind: IssueType,
    /// Key that its failures share: the signature, or the id of the cluster.
    pub group_key: String,
    /// Title, a few words.
    pub title: String,
    /// Description, a sentence or more.
    pub description: String,
    /// Decisions of people about the issue.
    pub triage: TriageSpec,
    /// Part of the conversation that recorded the failure: `tool_call`, `conversation` or `evaluation`.
    pub error_source: Option<String>,
    /// Code of a known error; null: none.
    pub error_code: Option<String>,
    /// Time of the first failure.
    pub first_seen_at: Timestamp,
    /// Time of the newest failure.
    pub last_seen_at: Timestamp,
}

impl IssueDoc {
    /// Records one more failure at `at`; a resolved issue is open again.
    pub fn add_failure(&mut self, at: Timestamp) {
        self.last_seen_at = at;
        if self.triage.status == IssueStatus::Resolved {
            self.triage.status = IssueStatus::Open;
        }
    }
}

/// An issue, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct IssueRecord {
    /// Identifier of the issue.
    pub id: Uuid,
    /// Origin of the issue.
    #[serde(rename = "type")]
    pub kind: IssueType,
    /// Title, a few words.
    pub title: String,
    /// Description, a sentence or more.
    pub description: String,
    /// State of the work on the issue.
    pub status: IssueStatus,
    /// Urgency; null until somebody sets one.
    pub priority: Option<IssuePriority>,
    /// Person who works on it; null: nobody.
    pub assignee_id: Option<Uuid>,
    /// Part of the conversation that recorded the failure: `tool_call`, `conversation` or `evaluation`.
    pub error_source: Option<String>,
    /// Code of a known error; null: none.
    pub error_code: Option<String>,
    /// Hex SHA-256 that equal errors share; null for clusters.
    pub error_signature: Option<String>,
    /// Cluster of similar judgements; null for known errors.
    pub cluster_id: Option<Uuid>,
    /// Due date, `YYYY-MM-DD`; null: none.
    pub due_date: Option<String>,
    /// Time of the first failure.
    pub first_seen_at: Timestamp,
    /// Time of the newest failure.
    pub last_seen_at: Timestamp,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// One failure of an issue.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Occurrence {
    /// Kind of the conversation.
    pub kind: SourceKind,
    /// Id of the result or call log.
    pub id: String,
    /// Time at which it was found.
    pub at: Timestamp,
    /// Text of the failure.
    pub message: String,
}

/// An issue with its newest failures.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct IssueDetail {
    /// Fields of the issue.
    #[serde(flatten)]
    pub issue: IssueRecord,
    /// Newest failures, at most 50, newest first.
    pub occurrences: Vec<Occurrence>,
}

/// Filter and page of a list of issues.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct IssueQuery {
    /// State that issues must have; absent: any.
    #[serde(default)]
    pub status: Option<IssueStatus>,
    /// Urgency that issues must have; absent: any.
    #[serde(default)]
    pub priority: Option<IssuePriority>,
    /// Origin that issues must have; absent: any.
    #[serde(default, rename = "type")]
    pub kind: Option<IssueType>,
    /// Person who works on them; absent: anybody.
    #[serde(default)]
    pub assignee_id: Option<Uuid>,
    /// Largest number of issues, 1 to 200; default 50.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: i64,
    /// Number of issues to skip; default 0.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub offset: i64,
}

fn fifty() -> i64 {
    50
}
