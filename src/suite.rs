//! Suites: tests of voice agents that are kept with the agent's code. It converts files to resources of the API, and
//! results to verdicts, metrics and reports. It knows no server: `cli/run` uses one.

pub mod baseline;
pub mod bodies;
pub mod change;
pub mod evals;
pub mod expand;
pub mod file;
pub mod fitting;
pub mod html;
pub mod junit;
pub mod lines;
pub mod mask;
pub mod pairs;
mod reading;
pub mod replayed;
pub mod scenario;
pub mod spawn;
pub mod table;
pub mod tax;
pub mod telephone;
#[cfg(test)]
pub mod testing;
pub mod turns;
pub mod verdict;
pub mod yaml;

use self::verdict::Judgement;
use ringer_media::frame::PER_MS;
use serde_json::{Value, json};

/// Number of first words by which a turn is known again.
const FIRST_WORDS: usize = 5;

/// One call of a suite that has ended, or was not made.
#[derive(Clone, Debug)]
pub struct Played {
    /// File of the suite.
    pub file: String,
    /// Scenario of the suite.
    pub scenario: String,
    /// Arm of the run that it belongs to: a line, or a change; empty where there is one alone.
    pub arm: String,
    /// True if it counts for the gate of its scenario.
    pub gates: bool,
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
    /// Returns the name of its scenario, with its arm in brackets where there are several.
    pub fn title(&self) -> String {
        if self.arm.is_empty() { self.scenario.clone() } else { format!("{} [{}]", self.scenario, self.arm) }
    }

    /// Returns the id of its result; empty where there is none.
    pub fn result_id(&self) -> String {
        match &self.record["id"] {
            Value::Null => String::new(),
            id => id.as_str().map_or_else(|| id.to_string(), str::to_owned),
        }
    }

    /// Returns what restricts the result: the engine's warnings, and the reason why its figures cannot be relied on.
    pub fn warnings(&self) -> Vec<String> {
        let found_warnings =
            self.record["metadata"]["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let untrusted = self.record["engine_quality"]["untrusted_reason"].as_str();
        let mut all: Vec<String> = found_warnings.map(str::to_owned).collect();
        // A reason that is a warning itself is told once.
        let untrusted = untrusted.filter(|why| !all.iter().any(|warning| warning == why));
        all.extend(untrusted.map(|why| format!("the figures of this call are not trusted: {why}")));
        all.extend(self.unproven_judges());
        all
    }

    /// Returns a note for each judge of the result that is not proven. It changes no verdict.
    fn unproven_judges(&self) -> Vec<String> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let evaluation = &self.record["evaluations"][0];
        // A goal that is not judged leans on nobody.
        let goal = (!evaluation["goal_success"].is_null()).then(|| evaluation["judge"].clone());
        let metrics = list(&evaluation["custom_metrics"]);
        let meanings = list(&self.record["expectations"]);
        let others = metrics.iter().chain(&meanings).map(|one| one["judge"].clone());
        let mut notes: Vec<String> = Vec::new();
        for judge in goal.into_iter().chain(others).filter(|judge| judge.is_object() && judge["status"] != "proven") {
            let text = |key: &str| judge[key].as_str().unwrap_or("not known").to_owned();
            let note = match judge["status"].as_str() {
                Some("no_card") => format!("judged by {}, of which there is {}", text("model"), text("reason")),
                _ => format!("judged by {}, which is unproven: {}", text("model"), text("reason")),
            };
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes
    }

    /// Returns the turns of the agent that nobody interrupted: place, first words and length of each.
    pub fn heard_whole(&self) -> Vec<Value> {
        let agent = self.turns.iter().filter(|turn| turn["speaker"] == "AGENT");
        // The last one may have been cut by the end of the call.
        let count = agent.clone().count();
        let whole = agent.enumerate().filter(|(at, turn)| at + 1 < count && turn["overlap_ms"].as_f64() == Some(0.0));
        let quote = |(place, turn): (usize, &Value)| {
            let plain = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
            let words = turn["text"].as_str().unwrap_or_default().split_whitespace().map(plain);
            let words: Vec<String> = words.filter(|word| !word.is_empty()).take(FIRST_WORDS).collect();
            let samples = turn["to_sample"].as_i64()? - turn["from_sample"].as_i64()?;
            if self.pauses_in(turn) {
                return None;
            }
            Some(json!({ "place": place, "words": words, "length_ms": samples / PER_MS }))
        };
        whole.filter_map(quote).collect()
    }

    /// True when the agent paused for a second or more in a turn.
    fn pauses_in(&self, turn: &Value) -> bool {
        let is_within = |event: &&Value| {
            let sample = event["sample"].as_i64().unwrap_or(-1);
            event["side"] == "agent"
                && turn["from_sample"].as_i64() < Some(sample)
                && Some(sample) < turn["to_sample"].as_i64()
        };
        let speech = self
            .timeline
            .iter()
            .filter(|event| matches!(event["event"].as_str(), Some("speech.started" | "speech.ended")));
        let speech: Vec<&Value> = speech.filter(is_within).collect();
        speech.windows(2).any(|pair| {
            let length = pair[1]["sample"].as_i64().unwrap_or(0) - pair[0]["sample"].as_i64().unwrap_or(0);
            pair[0]["event"] == "speech.ended" && length >= 1000 * PER_MS
        })
    }

    /// Returns the agent's latencies in seconds, a value a turn.
    pub fn latencies(&self) -> Vec<f64> {
        self.record["latency"].as_array().map_or_else(Vec::new, |all| all.iter().filter_map(Value::as_f64).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::testing::call;
    use super::verdict::Verdict;
    use serde_json::json;

    #[test]
    fn a_warning_is_told_once() {
        let mut played = call("a", 1, Verdict::Passed, "", &[]);
        let mut warnings = |record| {
            played.record = record;
            played.warnings()
        };
        let of = |why| json!({ "metadata": { "warnings": ["slow"] }, "engine_quality": { "untrusted_reason": why } });
        assert_eq!(warnings(json!({})), [""; 0]);
        assert_eq!(warnings(of(json!(null))), ["slow"]);
        assert_eq!(warnings(of(json!("slow"))), ["slow"]);
        assert_eq!(warnings(of(json!("late"))), ["slow", "the figures of this call are not trusted: late"]);
        let judge = |status: &str| json!({ "model": "m", "status": status, "reason": "no card" });
        let judged = |goal, status: &str| {
            json!({
                "evaluations": [{ "goal_success": goal, "judge": judge(status), "custom_metrics": [{ "judge": null }] }],
                "expectations": [{ "judge": judge(status) }],
            })
        };
        assert_eq!(warnings(judged(json!(true), "no_card")), ["judged by m, of which there is no card"]);
        assert_eq!(warnings(judged(json!(null), "unproven")), ["judged by m, which is unproven: no card"]);
        assert_eq!(warnings(judged(json!(true), "proven")), [""; 0]);
    }
}
