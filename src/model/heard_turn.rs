//! Turns of the agent by which other calls are measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A turn of the agent that nobody interrupted. Where the same turn is shorter in another call, it was cut there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeardTurn {
    /// Number of the turn among the agent's turns, from 0.
    #[schemars(range(min = 0))]
    pub place: i64,
    /// First words in lower case; empty when they are not known.
    #[serde(default)]
    #[schemars(length(max = 5))]
    pub words: Vec<String>,
    /// Length of the turn in milliseconds.
    #[schemars(range(min = 0))]
    pub length_ms: i64,
}
