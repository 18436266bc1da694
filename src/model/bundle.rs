//! A bundle: agents, simulations, Digital Humans and custom metrics, known by identifiers that their owner has fixed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Object;

words! {
    /// What a bundle is pulled by.
    RootType { Simulation = "simulation", Agent = "agent", DigitalHuman = "digital-human", CustomMetric = "custom-metric" }
}

/// What is pushed and pulled. Each entity has the fields that it is created with, and `svc_as_code_id`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bundle {
    /// One agent.
    pub agents: Vec<Object>,
    /// One simulation; `agent`: the agent's svc_as_code_id.
    pub simulations: Vec<Object>,
    /// `simulations`: the simulation's svc_as_code_id in a list.
    pub digital_humans: Vec<Object>,
    /// Judge the agent's conversations, and are selected in the simulation.
    pub custom_metrics: Vec<Object>,
}

/// What is wrong with one entity of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EntityError {
    /// agent, simulation, digital_human, custom_metric or bundle.
    pub entity_type: String,
    /// Its svc_as_code_id as it was sent.
    pub entity_id: Value,
    /// `FIELD: TEXT`.
    pub errors: Vec<String>,
}

/// What a push came to.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Pushed {
    /// False: nothing was written.
    pub valid: bool,
    /// What is wrong.
    pub errors: Vec<EntityError>,
    /// What was done, for a person.
    pub actions: Vec<String>,
    /// The simulation of the bundle.
    pub simulation_id: Option<i64>,
}
