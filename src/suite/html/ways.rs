//! Stretches of a call that its numbers were measured in, in milliseconds from connect.

use serde_json::Value;

use crate::suite::Played;

/// A stretch: from, to.
pub(crate) type Way = [f64; 2];

/// Samples of a millisecond in positions of turns.
const PER_MS: f64 = 16.0;

/// The stretches of a call.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    /// The agent's latencies in seconds, each from the end of the other side's turn to its own.
    pub latencies: Vec<(f64, Way)>,
    /// Turns of both sides.
    turns: Vec<Way>,
    /// First turn of the agent.
    first: Option<Way>,
    /// Stretch of the whole call.
    whole: Way,
}

impl Ways {
    /// Returns the sections of a call by its turns.
    pub(crate) fn of(call: &Played) -> Ways {
        let ms = |turn: &Value, key: &str| turn[key].as_f64().map(|sample| sample / PER_MS);
        let way = |turn: &Value| Some([ms(turn, "from_sample")?, ms(turn, "to_sample")?]);
        let of_agent = || call.turns.iter().filter(|turn| turn["speaker"] == "AGENT");
        let latency = |turn: &Value| {
            let seconds = turn["latency_ms"].as_f64()? / 1000.0;
            Some((seconds, [ms(turn, "latency_from_sample")?, ms(turn, "from_sample")?]))
        };
        Ways {
            latencies: of_agent().filter_map(latency).collect(),
            turns: call.turns.iter().filter_map(way).collect(),
            first: of_agent().find_map(way),
            whole: [0.0, call.record["duration_ms"].as_f64().unwrap_or(0.0)],
        }
    }

    /// Returns the section of a metric: the answer whose latency is nearest, the wait for the first word, else the
    /// whole call.
    pub(crate) fn of_metric(&self, name: &str, value: f64) -> Way {
        if name.ends_with("agent_latency") || name.ends_with("filler_ignored_latency") {
            let far = |(seconds, _): &&(f64, Way)| (seconds - value).abs();
            let near = self.latencies.iter().min_by(|one, other| far(one).total_cmp(&far(other)));
            return near.map_or(self.whole, |(_, way)| *way);
        }
        match (name, self.first) {
            ("time_to_first_agent_utterance", Some([from, _])) => [0.0, from],
            _ => self.whole,
        }
    }

    /// Returns the section that an expectation measured: the turn around its moment, or the section of its metric.
    pub(crate) fn of_expectation(&self, one: &Value) -> Way {
        if let Some(at) = one["at_ms"].as_f64() {
            let has = |way: &&Way| way[0] - 1.0 <= at && at <= way[1];
            return self.turns.iter().find(has).copied().unwrap_or([at, at]);
        }
        match (one["expected"]["metric"].as_str(), one["measured"].as_f64()) {
            (Some(name), Some(value)) => self.of_metric(name, value),
            _ => self.whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::suite::testing::call;
    use crate::suite::verdict::Verdict;

    #[test]
    fn numbers_have_the_stretch_that_they_were_measured_in() {
        let mut played = call("a", 1, Verdict::Passed, "", &[0.5, 0.75]);
        played.record["duration_ms"] = json!(9000);
        let turn = |who: &str, from: i64, to: i64, latency: Option<(f64, i64)>| {
            json!({"speaker": who, "from_sample": from * 16, "to_sample": to * 16,
                "latency_ms": latency.map(|(ms, _)| ms), "latency_from_sample": latency.map(|(_, from)| from * 16)})
        };
        played.turns = vec![
            turn("AGENT", 600, 2000, None),
            turn("USER", 3000, 4000, Some((1000.0, 2000))),
            turn("AGENT", 4500, 6000, Some((500.0, 4000))),
            turn("USER", 6500, 7000, Some((500.0, 6000))),
            turn("AGENT", 7750, 8500, Some((750.0, 7000))),
        ];
        let ways = Ways::of(&played);
        assert_eq!(ways.latencies, [(0.5, [4000.0, 4500.0]), (0.75, [7000.0, 7750.0])]);
        for (name, value, expect) in [
            ("p50_agent_latency", 0.6, [4000.0, 4500.0]),
            ("max_agent_latency", 0.75, [7000.0, 7750.0]),
            ("p95_filler_ignored_latency", 0.9, [7000.0, 7750.0]),
            ("time_to_first_agent_utterance", 0.6, [0.0, 600.0]),
            ("talk_ratio", 0.5, [0.0, 9000.0]),
        ] {
            assert_eq!(ways.of_metric(name, value), expect, "{name}");
        }
        for (one, expect) in [
            (json!({"at_ms": 5000, "expected": {}}), [4500.0, 6000.0]),
            (json!({"at_ms": 9000, "expected": {}}), [9000.0, 9000.0]),
            (json!({"at_ms": null, "expected": {"metric": "max_agent_latency"}, "measured": 0.75}), [7000.0, 7750.0]),
            (json!({"at_ms": null, "expected": {"meaning": "x"}}), [0.0, 9000.0]),
        ] {
            assert_eq!(ways.of_expectation(&one), expect, "{one}");
        }
        assert_eq!(
            Ways::of(&call("a", 1, Verdict::Unknown, "", &[])).of_metric("p50_agent_latency", 1.0),
            [0.0, 1500.0]
        );
    }
}
