//! Suites: tests of voice agents that are kept with the agent's code. It converts files to resources of the API, and
//! results to verdicts, metrics and reports. It knows no server: `cli/run` uses one.

pub mod baseline;
pub mod evals;
pub mod expand;
pub mod file;
pub mod fitting;
pub mod html;
pub mod junit;
pub mod lines;
mod reading;
pub mod spawn;
pub mod stats;
pub mod table;
#[cfg(test)]
pub mod testing;
pub mod turns;
pub mod verdict;
pub mod yaml;

use self::verdict::Judgement;
use serde_json::Value;

/// One call of a suite that has ended, or was not made.
#[derive(Clone, Debug)]
pub struct Played {
    /// File of the suite.
    pub file: String,
    /// Scenario of the suite.
    pub scenario: String,
    /// Base seed of the repetition.
    pub seed: u64,
    /// Verdict with its reason.
    pub judgement: Judgement,
    /// Result record; null where there is none.
    pub record: Value,
    /// Entries of the transcript.
    pub transcript: Vec<Value>,
    /// Events of the timeline.
    pub timeline: Vec<Value>,
    /// Turns of both sides, with their latencies.
    pub turns: Vec<Value>,
    /// Levels of its recording, as the report draws them; null where there is none.
    pub peaks: Value,
    /// Recording as Ogg Opus; empty where there is none.
    pub opus: Vec<u8>,
    /// Paths of its files, below the output folder.
    pub files: Vec<String>,
}

impl Played {
    /// Returns the value of a built-in metric that is a number.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let metrics = self.record["metrics"].as_array()?;
        metrics.iter().find(|metric| metric["name"] == name)?["value"].as_f64()
    }

    /// Returns the id of its result; empty where there is none.
    pub fn result_id(&self) -> String {
        match &self.record["id"] {
            Value::Null => String::new(),
            id => id.as_str().map_or_else(|| id.to_string(), str::to_owned),
        }
    }

    /// Returns the agent's latencies in seconds, a value a turn.
    pub fn latencies(&self) -> Vec<f64> {
        self.record["latency"].as_array().map_or_else(Vec::new, |all| all.iter().filter_map(Value::as_f64).collect())
    }
}
