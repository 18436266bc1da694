//! Scenarios: graphs of what an agent and its caller say; a Digital Human can play each path.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Object;
use super::time::Timestamp;

/// Graph of a scenario. The content of its nodes and edges is checked as a whole and stored as given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-open" = true))]
pub struct Definition {
    /// `{id, type: start | single | options, position, data}`.
    pub nodes: Vec<Object>,
    /// `{id, source, target, sourceHandle}`.
    pub edges: Vec<Object>,
    /// View of the graph in an editor; not used by the engine.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub viewport: Value,
    /// Further members, stored as given.
    #[serde(flatten)]
    pub others: Object,
}

/// An object that is given for a graph. The rules of a graph begin with its members' types, so that the walker leaves
/// them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GivenDefinition(pub Object);

impl GivenDefinition {
    /// Returns the graph; `None` when its nodes and edges are not arrays of objects.
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

/// The fields of a new scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioSpec {
    /// Name of the scenario, 1 to 255 characters.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// Graph of the scenario.
    pub definition: GivenDefinition,
    /// Agents that it is linked to.
    #[serde(default)]
    pub agent_ids: Vec<i64>,
    /// Free text for the reader.
    #[serde(default)]
    pub description: Option<String>,
}

/// The fields of a scenario that can be changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioChange {
    /// Name of the scenario, 1 to 255 characters.
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
    /// Name of the scenario.
    pub name: String,
    /// Free text for the reader.
    pub description: Option<String>,
    /// Graph of the scenario.
    pub definition: Definition,
}

/// A scenario, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScenarioRecord {
    /// Identifier of the scenario.
    pub id: Uuid,
    /// Name of the scenario.
    pub name: String,
    /// Free text for the reader.
    pub description: Option<String>,
    /// Graph of the scenario.
    pub definition: Definition,
    /// Agents that it is linked to.
    pub agent_ids: Vec<i64>,
    /// Organization that owns the scenario.
    pub organization_id: String,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Changes of its Digital Humans; only where the graph was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dh_sync_summary: Option<SyncSummary>,
    /// Possible mistakes in the graph that do not keep it from working.
    pub warnings: Vec<String>,
}

/// Changes of a scenario's Digital Humans after its graph was replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct SyncSummary {
    /// Number of those whose path is still there and has changed.
    pub updated: i64,
    /// Number of those made for new paths.
    pub created: i64,
    /// Number of those whose path is gone.
    pub marked_stale: i64,
    /// Number of those that needed no change.
    pub skipped: i64,
    /// Changes that could not be made, in words.
    pub errors: Vec<String>,
}
