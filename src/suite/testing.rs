//! Calls for tests of reports.

use serde_json::{Value, json};

use super::Played;
use super::verdict::{Judgement, Verdict};

/// Returns a call with its verdict, reason and latencies in seconds.
pub fn call(scenario: &str, seed: u64, verdict: Verdict, reason: &str, latency: &[f64]) -> Played {
    let code = if verdict == Verdict::Passed { "" } else { "expectation" };
    Played {
        file: "suite.yaml".into(),
        scenario: scenario.into(),
        arm: String::new(),
        gates: true,
        seed,
        judgement: Judgement { verdict, code: code.into(), reason: reason.into() },
        record: json!({ "id": seed * 10, "latency": latency, "duration_ms": 1500, "metrics": [] }),
        transcript: Vec::new(),
        timeline: Vec::new(),
        turns: Vec::new(),
        peaks: Value::Null,
        opus: Vec::new(),
        files: Vec::new(),
    }
}
