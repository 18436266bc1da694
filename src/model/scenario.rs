//! A scenario: a graph of what an agent and its caller say, each of whose paths can be played by a Digital Human.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Object;
use super::time::Timestamp;

/// The graph. What stands inside its nodes and edges is checked as a whole and kept as it was given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-open" = true))]
pub struct Definition {
    /// `{id, type: start | single | options, position, data}`.
    pub nodes: Vec<Object>,
    /// `{id, source, target, sourceHandle}`.
    pub edges: Vec<Object>,
    /// What a drawing of the graph shows.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub viewport: Value,
    /// What else was given.
    #[serde(flatten)]
    pub others: Object,
}

/// An object that is given for a graph. The rules of a graph begin with its members' types, so that the walker leaves them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GivenDefinition(pub Object);

impl GivenDefinition {
    /// The graph; `None` when its nodes and edges are not arrays of objects.
    pub fn graph(self) -> Option<Definition> {
        serde_json::from_value(Value::Object(self.0)).ok()
    }
}

impl JsonSchema for GivenDefinition {
    fn schema_name() -> Cow<'static, str> {
        Definition::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        Definition::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Definition::json_schema(generator)
    }
}

/// A new scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioSpec {
    /// 1 to 255 characters.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// The graph.
    pub definition: GivenDefinition,
    /// Agents that it is linked to.
    #[serde(default)]
    pub agent_ids: Vec<i64>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
}

/// What of a scenario can be changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioChange {
    /// 1 to 255 characters.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// Replaces all links; null clears them.
    pub agent_ids: Vec<i64>,
    /// Free text; empty clears it.
    pub description: String,
    /// Replaces the whole graph.
    pub definition: GivenDefinition,
}

/// A scenario as stored; its agents are links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioDoc {
    /// Its name.
    pub name: String,
    /// Free text.
    pub description: Option<String>,
    /// The graph.
    pub definition: Definition,
}

/// A scenario as read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScenarioRecord {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Free text.
    pub description: Option<String>,
    /// The graph.
    pub definition: Definition,
    /// Agents that it is linked to.
    pub agent_ids: Vec<i64>,
    /// Owner.
    pub organization_id: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// What became of its Digital Humans; only where the graph was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dh_sync_summary: Option<SyncSummary>,
    /// What may be a mistake but keeps nothing from working.
    pub warnings: Vec<String>,
}

/// What became of a scenario's Digital Humans when its graph was replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct SyncSummary {
    /// Their path is still there and has changed.
    pub updated: i64,
    /// Made for new paths.
    pub created: i64,
    /// Their path is gone.
    pub marked_stale: i64,
    /// Nothing to do.
    pub skipped: i64,
    /// What could not be done.
    pub errors: Vec<String>,
}
