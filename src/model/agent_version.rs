//! Versions of an agent's prompt text and the labels that point at them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Object;
use super::time::Timestamp;

/// Label of the version that is tested when none is named; at most one version holds it.
pub const PRODUCTION: &str = "production";

/// Managed label of the newest version.
pub const LATEST: &str = "latest";

/// A version as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VersionDoc {
    /// Whose text this is.
    pub agent_id: i64,
    /// Counts from 1 within the agent.
    pub version: i64,
    /// The prompt.
    pub prompt_text: String,
    /// Why it was made.
    pub commit_message: Option<String>,
    /// Labels that point here.
    pub labels: Vec<String>,
    /// Free.
    pub metadata: Option<Object>,
}

impl VersionDoc {
    /// True when this version holds `label`.
    pub fn holds(&self, label: &str) -> bool {
        self.labels.iter().any(|held| held == label)
    }
}

/// A version as read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VersionRecord {
    /// Its id.
    pub id: Uuid,
    /// The rest.
    #[serde(flatten)]
    pub doc: VersionDoc,
    /// When it was made.
    pub created_at: Timestamp,
}
