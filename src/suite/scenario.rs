//! A suite that was read, with its scenarios, in whichever words its file is written.

use serde_json::{Map, Value};

use super::expand::Connect;
use super::spawn::Spawn;
use super::verdict::Gate;
use super::yaml::{Node, Place};

/// Seconds for which an agent may ring where a suite says nothing of it.
pub(super) const RING_S: i64 = 45;

/// A file that was read.
#[derive(Clone, Debug)]
pub struct Suite {
    /// Connection to the agent.
    pub connect: Connect,
    /// Command that is started before the calls.
    pub spawn: Option<Spawn>,
    /// The scenarios in their order.
    pub scenarios: Vec<Scenario>,
    /// Values that are masked in everything that is printed or written.
    pub masked: Vec<String>,
}

/// One scenario of a suite.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name of the scenario, unique in the file.
    pub name: String,
    /// Position of its name.
    pub at: Place,
    /// Tags, by which scenarios are chosen.
    pub tags: Vec<String>,
    /// Repetitions that the file asks for.
    pub repeat: Option<u32>,
    /// Terms of its gate.
    pub gate: Gate,
    /// Fields of the Digital Human.
    pub human: Map<String, Value>,
    /// Fields of the simulation.
    pub simulation: Map<String, Value>,
    /// Values of the file by the fields of the API that they became.
    pub sources: Vec<(String, Node)>,
    /// Metrics of its expectations, each with its position.
    pub metrics: Vec<(String, Place)>,
}
