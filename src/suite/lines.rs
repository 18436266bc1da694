//! Results as JSON, an object a line: what a later run is compared with.

use serde_json::{Value, json};

use super::Played;
use super::verdict::{Judgement, Verdict};

/// Version of the lines: 2 has the verdict `unreachable`.
pub const SCHEMA_VERSION: i64 = 2;

/// Returns the line of a call.
pub fn line(call: &Played) -> Value {
    let record = &call.record;
    let part = |key: &str| record.get(key).cloned().unwrap_or_default();
    let metadata = |key: &str| record["metadata"].get(key).cloned().unwrap_or_default();
    json!({
        "schema_version": SCHEMA_VERSION,
        "file": call.file,
        "scenario": call.scenario,
        "arm": Some(&call.arm).filter(|arm| !arm.is_empty()),
        "seed": call.seed,
        "result_id": call.result_id(),
        "verdict": call.judgement.verdict.as_str(),
        "code": call.judgement.code,
        "reason": call.judgement.reason,
        "warnings": call.warnings(),
        "expectations": part("expectations"),
        "playback": metadata("playback"),
        "metrics": part("metrics"),
        "latency": part("latency"),
        "engine_quality": part("engine_quality"),
        "own_faults": part("own_faults"),
        "recognizer": metadata("recognizer"),
        "synthesizer": metadata("synthesizer"),
        "voice": metadata("voice"),
        "impairment": metadata("impairment"),
        "version": env!("CARGO_PKG_VERSION"),
        "heard_whole": call.heard_whole(),
        "files": call.files,
    })
}

/// Reads lines that an earlier run has written; what is no line of it is left out.
pub fn read_all(text: &str) -> Vec<(Played, Value)> {
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter_map(|line| Some((as_played(&line)?, line))).collect()
}

fn as_played(line: &Value) -> Option<Played> {
    let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let verdict = Verdict::parse(line["verdict"].as_str()?);
    Some(Played {
        file: text("file"),
        scenario: line["scenario"].as_str()?.to_owned(),
        arm: text("arm"),
        gates: true,
        seed: line["seed"].as_u64()?,
        judgement: Judgement { verdict, code: text("code"), reason: text("reason") },
        record: json!({ "metrics": line["metrics"], "latency": line["latency"], "id": line["result_id"],
            "engine_quality": line["engine_quality"] }),
        transcript: Vec::new(),
        timeline: Vec::new(),
        turns: Vec::new(),
        peaks: Value::Null,
        opus: Vec::new(),
        files: line["files"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|file| Some(file.as_str()?.to_owned()))
            .collect(),
    })
}
