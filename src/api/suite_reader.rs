//! A suite as the route that reads it answers with, and the function that reads it: the commands know its words.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// Function that reads the YAML of a suite; its error names the place of what is wrong.
pub type SuiteReader = Arc<dyn Fn(&str) -> Result<SuiteOut, String> + Send + Sync>;

/// Resources of a suite, as the routes that create them take them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct SuiteOut {
    /// Fields of the agent that it connects to; null: an agent of the server by its name.
    pub agent: Option<Map<String, Value>>,
    /// Name or number of the agent of the server; null: the agent is made.
    pub agent_name: Option<String>,
    /// Fields of the simulation, by its first scenario.
    pub simulation: Map<String, Value>,
    /// Digital Humans, one a scenario.
    pub digital_humans: Vec<Map<String, Value>>,
    /// Parts of the file that only `ringer run` acts on.
    pub warnings: Vec<String>,
}
