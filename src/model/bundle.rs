//! A bundle: agents, simulations, Digital Humans and custom metrics, known by identifiers that their owner has fixed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Object;

words! {
    /// Kind of the entity that a pull starts from.
    RootType { Simulation = "simulation", Agent = "agent", DigitalHuman = "digital-human", CustomMetric = "custom-metric" }
}

/// Content of a push or a pull. Each entity has the fields that it is created with, and `svc_as_code_id`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bundle {
    /// Exactly one agent in a push. `label_colors` of it is an object of label texts, each with its colour or null.
    pub agents: Vec<Object>,
    /// Exactly one simulation in a push; its `agent` is the agent's svc_as_code_id.
    pub simulations: Vec<Object>,
    /// Digital Humans; `simulations` of each lists the simulation's svc_as_code_id.
    pub digital_humans: Vec<Object>,
    /// Custom metrics of the agent; they are selected in the simulation.
    pub custom_metrics: Vec<Object>,
}

/// Faults of one entity of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EntityError {
    /// agent, simulation, digital_human, custom_metric or bundle.
    pub entity_type: String,
    /// svc_as_code_id of the entity as it was sent.
    pub entity_id: Value,
    /// Faults as `FIELD: TEXT`, one an entry.
    pub errors: Vec<String>,
}

/// Answer to a push.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Pushed {
    /// False: the bundle has faults and nothing was written.
    pub valid: bool,
    /// Faults by entity; empty when the bundle is valid.
    pub errors: Vec<EntityError>,
    /// Changes that were made, one sentence each; empty when nothing changed.
    pub actions: Vec<String>,
    /// Identifier of the bundle's simulation; null when nothing was written.
    pub simulation_id: Option<i64>,
}
