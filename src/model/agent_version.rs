//! Versions of an agent's prompt text and the labels that point at them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
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
}

/// The writable fields of a version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VersionSpec {
    /// The prompt; absent: that of the latest version.
    #[serde(default)]
    pub prompt_text: Option<String>,
    /// Why it is made.
    #[serde(default)]
    pub commit_message: Option<String>,
    /// Labels that shall point here, besides latest.
    #[serde(default)]
    pub labels: Option<Vec<LabelText>>,
    /// Takes the labels from the versions that hold them.
    #[serde(default)]
    pub override_label: Option<bool>,
    /// Free.
    #[serde(default)]
    pub metadata: Option<Object>,
}

/// A label: 1 to 64 characters of letters, digits, dots, underscores, blanks and hyphens; its case counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LabelText(pub String);

impl JsonSchema for LabelText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "LabelText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9._ -]+$" })
    }
}

/// Labels to put on a version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabelsSpec {
    /// Which; none when absent.
    #[serde(default)]
    pub labels: Option<Vec<LabelText>>,
    /// Takes them from the versions that hold them.
    #[serde(default)]
    pub override_label: bool,
}

/// Labels to take from a version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabelsTaken {
    /// Which; all but latest when absent or empty.
    #[serde(default)]
    pub labels: Option<Vec<LabelText>>,
}

/// How a path names a version.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum VersionName {
    /// By its number.
    Number(i64),
    /// By its id.
    Id(Uuid),
}

impl JsonSchema for VersionName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "VersionName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Number or id of a version.",
            "anyOf": [{ "type": "integer" }, { "type": "string", "format": "uuid" }],
            "x-number-or-uuid": true,
        })
    }
}

/// A label of an agent as stored. Which versions hold it is written on the versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelDoc {
    /// Whose label.
    pub agent_id: i64,
    /// Its text, unique in the agent.
    pub label_text: String,
}

/// The writable fields of a label.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabelSpec {
    /// 1 to 64 characters, unique in the agent.
    pub label_text: LabelText,
}

/// A label as read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LabelRecord {
    /// Its id.
    pub id: Uuid,
    /// Whose label.
    pub agent_id: i64,
    /// Its text.
    pub label_text: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// The newest version that holds it.
    pub agent_version_id: Option<Uuid>,
    /// Deprecated twin of agent_version_id.
    pub prompt_id: Option<Uuid>,
    /// Always null.
    pub knowledge_base_id: Option<Uuid>,
    /// Always null: no colour is given to a label.
    pub color: Option<String>,
}
