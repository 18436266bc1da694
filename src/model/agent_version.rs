//! Versions of an agent's prompt text and the labels that point at them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

use super::Object;
use super::time::Timestamp;

/// Label of the version that is tested when none is named; at most one version of an agent has it.
pub const PRODUCTION: &str = "production";

/// Managed label of the newest version.
pub const LATEST: &str = "latest";

/// A version as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VersionDoc {
    /// Agent whose prompt text this is.
    pub agent_id: i64,
    /// Number of the version, from 1 within the agent.
    pub version: i64,
    /// Prompt text of the agent.
    pub prompt_text: String,
    /// Reason for the version, as its author gave it.
    pub commit_message: Option<String>,
    /// Labels that point to this version.
    pub labels: Vec<String>,
    /// Free object, stored as given.
    pub metadata: Option<Object>,
}

impl VersionDoc {
    /// True if this version has the label `label`.
    pub fn holds(&self, label: &str) -> bool {
        self.labels.iter().any(|held| held == label)
    }
}

/// A version, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VersionRecord {
    /// Identifier of the version.
    pub id: Uuid,
    /// Fields of the version as stored.
    #[serde(flatten)]
    pub doc: VersionDoc,
}

/// The writable fields of a version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VersionSpec {
    /// Prompt text; absent: that of the latest version.
    #[serde(default)]
    pub prompt_text: Option<String>,
    /// Reason for the version, free text.
    #[serde(default)]
    pub commit_message: Option<String>,
    /// Labels of the new version, besides latest.
    #[serde(default)]
    pub labels: Option<Vec<LabelText>>,
    /// True: takes the labels from the versions that have them.
    #[serde(default)]
    pub override_label: Option<bool>,
    /// Free object, stored as given.
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
    /// Labels to add; absent: none.
    #[serde(default)]
    pub labels: Option<Vec<LabelText>>,
    /// True: takes the labels from the versions that have them.
    #[serde(default)]
    pub override_label: bool,
}

/// Labels to take from a version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabelsTaken {
    /// Labels to remove; absent or empty: all but latest.
    #[serde(default)]
    pub labels: Option<Vec<LabelText>>,
}

/// A version as a path segment names it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum VersionName {
    /// Number of the version within its agent.
    Number(i64),
    /// Identifier of the version.
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

/// A label of an agent as stored. The versions that have it list it themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelDoc {
    /// Agent that has the label.
    pub agent_id: i64,
    /// Text of the label, unique in the agent.
    pub label_text: String,
    /// Colour in which the label is shown; null: none was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<LabelColor>,
}

/// A colour: `#` and two hexadecimal digits each for red, green and blue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LabelColor(pub String);

impl LabelColor {
    /// Expression that a colour matches.
    const PATTERN: &str = "^#[0-9A-Fa-f]{6}$";

    /// Reads a colour; `None`: the text is none.
    pub fn parse(text: &str) -> Option<LabelColor> {
        let digits = text.strip_prefix('#')?;
        let fits = digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        fits.then(|| LabelColor(text.to_owned()))
    }
}

impl JsonSchema for LabelColor {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "LabelColor".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": LabelColor::PATTERN })
    }
}

/// The writable fields of a label.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabelSpec {
    /// Text of the label, 1 to 64 characters, unique in the agent.
    pub label_text: LabelText,
    /// Colour in which the label is shown, `#RRGGBB`; null or absent: none.
    #[serde(default)]
    pub color: Option<LabelColor>,
}

/// A change of a label.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct LabelChange {
    /// Text of the label from now on, 1 to 64 characters, unique in the agent.
    pub label_text: LabelText,
    /// Colour in which the label is shown, `#RRGGBB`; null: none; absent: unchanged.
    #[serde(default, deserialize_with = "some_color")]
    #[schemars(with = "Option<LabelColor>")]
    pub color: Option<Option<LabelColor>>,
}

/// Reads a value that was given, and may be null.
fn some_color<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<LabelColor>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// A label, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LabelRecord {
    /// Identifier of the label.
    pub id: Uuid,
    /// Agent that has the label.
    pub agent_id: i64,
    /// Text of the label, 1 to 64 characters.
    pub label_text: String,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Newest version that has the label; null: none.
    pub agent_version_id: Option<Uuid>,
    /// Deprecated twin of agent_version_id.
    pub prompt_id: Option<Uuid>,
    /// Always null; kept for compatibility.
    pub knowledge_base_id: Option<Uuid>,
    /// Colour in which the label is shown, `#RRGGBB`; null: none was chosen.
    pub color: Option<LabelColor>,
}
