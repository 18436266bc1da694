//! Issues: failures of an agent, grouped, that people triage. What is wrong with a request is another matter (`issue`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::time::Timestamp;

words! {
    /// What an issue was made from: similar judgements, or an error that is known by itself.
    IssueType { NonDeterministic = "non_deterministic", Deterministic = "deterministic" }
}

words! {
    /// Where the work on an issue stands.
    IssueStatus { Open = "open", InProgress = "in_progress", Resolved = "resolved", Ignored = "ignored" } default Open
}

words! {
    /// How much an issue presses.
    IssuePriority { Low = "low", Medium = "medium", High = "high", Urgent = "urgent" }
}

words! {
    /// Which kind of conversation something was found in.
    SourceKind { Simulation = "simulation", Observability = "observability" }
}

/// What people decide about an issue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriageSpec {
    /// Where the work stands.
    #[serde(default)]
    pub status: IssueStatus,
    /// Null until somebody sets one.
    #[serde(default)]
    pub priority: Option<IssuePriority>,
    /// Who works on it.
    #[serde(default)]
    pub assignee_id: Option<Uuid>,
    /// `YYYY-MM-DD`.
    #[serde(default)]
    #[schemars(extend("format" = "date"))]
    pub due_date: Option<String>,
}

/// An issue as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IssueDoc {
    /// Whose failures these are.
    pub agent_id: i64,
    /// What it was made from.
    pub kind: IssueType,
    /// What its failures have in common: the signature, or the id of the cluster.
    pub group_key: String,
    /// In a few words.
    pub title: String,
    /// In more words.
    pub description: String,
    /// What people decided.
    pub triage: TriageSpec,
    /// Where the failure was recorded (`tool_call`, `conversation`, `evaluation`).
    pub error_source: Option<String>,
    /// Code of a known error.
    pub error_code: Option<String>,
    /// First failure.
    pub first_seen_at: Timestamp,
    /// Newest failure.
    pub last_seen_at: Timestamp,
}

impl IssueDoc {
    /// One more failure: what was resolved is open again.
    pub fn seen(&mut self, at: Timestamp) {
        self.last_seen_at = at;
        if self.triage.status == IssueStatus::Resolved {
            self.triage.status = IssueStatus::Open;
        }
    }
}

/// An issue as read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct IssueRecord {
    /// Its id.
    pub id: Uuid,
    /// What it was made from.
    #[serde(rename = "type")]
    pub kind: IssueType,
    /// In a few words.
    pub title: String,
    /// In more words.
    pub description: String,
    /// Where the work stands.
    pub status: IssueStatus,
    /// Null until somebody sets one.
    pub priority: Option<IssuePriority>,
    /// Who works on it.
    pub assignee_id: Option<Uuid>,
    /// Where the failure was recorded.
    pub error_source: Option<String>,
    /// Code of a known error.
    pub error_code: Option<String>,
    /// Hex SHA-256 that equal errors share.
    pub error_signature: Option<String>,
    /// Cluster of similar judgements.
    pub cluster_id: Option<Uuid>,
    /// `YYYY-MM-DD`.
    pub due_date: Option<String>,
    /// First failure.
    pub first_seen_at: Timestamp,
    /// Newest failure.
    pub last_seen_at: Timestamp,
    /// When the issue was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// One failure of an issue.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Occurrence {
    /// Kind of the conversation.
    pub kind: SourceKind,
    /// Id of the result or call log.
    pub id: String,
    /// When it was found.
    pub at: Timestamp,
    /// What was found.
    pub message: String,
}

/// An issue with its newest failures.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct IssueDetail {
    /// The issue.
    #[serde(flatten)]
    pub issue: IssueRecord,
    /// The last 50, newest first.
    pub occurrences: Vec<Occurrence>,
}

/// Which issues are listed.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct IssueQuery {
    /// Only in this state.
    #[serde(default)]
    pub status: Option<IssueStatus>,
    /// Only of this priority.
    #[serde(default)]
    pub priority: Option<IssuePriority>,
    /// Only of this type.
    #[serde(default, rename = "type")]
    pub kind: Option<IssueType>,
    /// Only of this person.
    #[serde(default)]
    pub assignee_id: Option<Uuid>,
    /// At most so many.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: i64,
    /// So many are passed over.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub offset: i64,
}

fn fifty() -> i64 {
    50
}
