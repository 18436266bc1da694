//! Comparison of a run with an earlier one, paired by scenario and seed.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use ringer_media::seed::Seed;
use serde_json::Value;

use super::Played;
use crate::judge::comparison::{self, Comparison, Pair, Side};

/// Largest number of turns of an earlier run that a call is told of.
const TURNS_MAX: usize = 1000;

/// Comparison of one scenario with its earlier run.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Scenario of both runs.
    pub scenario: String,
    /// Number of pairs with a known verdict in both runs.
    pub pairs: u64,
    /// Number of pairs that passed before and fail now.
    pub worse: u64,
    /// Number of pairs that failed before and pass now.
    pub better: u64,
    /// Probability by McNemar's exact test.
    pub p: f64,
    /// Differences of the median and of the 95th percentile of the latency, seconds, each with its interval of 95 %.
    pub latency: [Option<(f64, f64, f64)>; 2],
    /// Conclusion, for a person.
    pub says: String,
}

/// Compares scenario by scenario; `before`: calls and lines of the earlier run.
pub fn compare(now: &[Played], before: &[(Played, Value)], seed: u64) -> Vec<Difference> {
    let names: BTreeSet<String> = now.iter().map(Played::title).collect();
    names.iter().filter_map(|name| difference(name, now, before, seed)).collect()
}

/// Returns the turns of the agent that an earlier run of a scenario heard whole, each once.
pub fn heard_whole(before: &[(Played, Value)], file: &str, scenario: &str) -> Vec<Value> {
    let same = before.iter().filter(|(call, _)| call.scenario == scenario && is_same_file(&call.file, file));
    let mut heard: Vec<Value> = Vec::new();
    for turn in same.flat_map(|(_, line)| line["heard_whole"].as_array().into_iter().flatten()) {
        if heard.len() < TURNS_MAX && !heard.contains(turn) {
            heard.push(turn.clone());
        }
    }
    heard
}

/// True for two paths of one file, written with or without `./`.
fn is_same_file(one: &str, other: &str) -> bool {
    let plain =
        |path: &str| Path::new(path).components().filter(|part| *part != Component::CurDir).collect::<PathBuf>();
    plain(one) == plain(other)
}

fn difference(name: &str, now: &[Played], before: &[(Played, Value)], seed: u64) -> Option<Difference> {
    let paired = now.iter().filter(|call| call.title() == name).filter_map(|call| {
        let same = |(other, _): &&(Played, Value)| {
            other.title() == name && other.seed == call.seed && is_same_file(&other.file, &call.file)
        };
        Some((&before.iter().find(same)?.0, call))
    });
    let paired: Vec<(&Played, &Played)> = paired.collect();
    if paired.is_empty() {
        return None;
    }
    let side = |call: &Played| Side { verdict: call.judgement.verdict.word(), latencies: call.latencies() };
    let pairs: Vec<Pair> = paired.iter().map(|(old, new)| (side(old), side(new))).collect();
    let Comparison { pairs, worse, better, p, latency, says } = comparison::compare(&pairs, Seed(seed));
    Some(Difference { scenario: name.to_owned(), pairs, worse, better, p, latency, says })
}

/// Warnings where recognizer, voice or version are not those of the earlier run.
pub fn warnings(now: &[Value], before: &[(Played, Value)]) -> Vec<String> {
    let values = |lines: &mut dyn Iterator<Item = &Value>, key: &str| -> BTreeSet<String> {
        lines.map(|line| &line[key]).filter(|value| !value.is_null()).map(Value::to_string).collect()
    };
    let mut warnings = Vec::new();
    for key in ["recognizer", "synthesizer", "voice", "version"] {
        let (old, new) = (values(&mut before.iter().map(|(_, line)| line), key), values(&mut now.iter(), key));
        if !old.is_empty() && !new.is_empty() && old != new {
            let shown = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(", ");
            warnings.push(format!("the {key} is another one than before: {} instead of {}", shown(&new), shown(&old)));
        }
    }
    warnings
}

/// Returns the differences for a terminal, a line each.
pub fn plain(differences: &[Difference]) -> String {
    let line = |one: &Difference| {
        let signed = |name: &str, value: Option<(f64, f64, f64)>| {
            value.map_or_else(String::new, |(value, low, high)| {
                format!(", {name} {value:+.2} s ({low:+.2} to {high:+.2})")
            })
        };
        let [p50, p95] = one.latency;
        format!(
            "{}: {} ({} worse, {} better of {} pairs, p = {:.3}{}{})",
            one.scenario,
            one.says,
            one.worse,
            one.better,
            one.pairs,
            one.p,
            signed("p50", p50),
            signed("p95", p95)
        )
    };
    differences.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::lines::{line, read_all};
    use super::super::testing::call;
    use super::super::verdict::Verdict;
    use super::*;

    fn run(verdicts: &[Verdict], latency: f64) -> Vec<Played> {
        let made = |(verdict, seed): (&Verdict, u64)| call("a", seed, *verdict, "r", &[latency, latency + 0.1]);
        verdicts.iter().zip(1..).map(made).collect()
    }

    fn keep(calls: &[Played]) -> Vec<(Played, Value)> {
        read_all(&calls.iter().map(|call| line(call).to_string()).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn pairs_are_compared() {
        use Verdict::{Failed, Passed, Unknown};
        for (old, new, shift, says) in [
            (vec![Passed; 8], vec![Failed; 8], 0.0, "worse"),
            (vec![Failed; 8], vec![Passed; 8], 0.0, "better"),
            (vec![Passed; 4], vec![Passed, Passed, Passed, Failed], 0.0, "not told: "),
            (vec![Passed; 8], vec![Passed; 8], 0.5, "no change of the pass rate; slower"),
            (vec![Passed; 8], vec![Passed; 8], -0.5, "no change of the pass rate; faster"),
            (vec![Unknown; 8], vec![Failed; 8], 0.0, "no change of the pass rate"),
        ] {
            let found = compare(&run(&new, 1.0 + shift), &keep(&run(&old, 1.0)), 1);
            assert!(found.len() == 1 && found[0].says.starts_with(says), "{found:?} {says}");
        }
        assert_eq!(compare(&run(&[Passed], 1.0), &[], 1), []);
    }

    #[test]
    fn turns_that_were_heard_whole_are_kept() {
        let turn = |speaker: &str, from: i64, to: i64, overlap_ms: f64| {
            json!({ "speaker": speaker, "from_sample": from * 16, "to_sample": to * 16, "overlap_ms": overlap_ms,
                "text": "Thank you, for calling the clinic." })
        };
        let turns = vec![
            turn("AGENT", 500, 2500, 0.0),
            turn("USER", 3000, 4000, 0.0),
            turn("AGENT", 4500, 5000, 300.0),
            turn("AGENT", 6000, 9000, 0.0),
            turn("AGENT", 9500, 9900, 0.0),
        ];
        let mut calls = run(&[Verdict::Passed, Verdict::Passed], 1.0);
        calls.iter_mut().for_each(|call| call.turns.clone_from(&turns));
        let first = json!({ "place": 0, "words": ["thank", "you", "for", "calling", "the"], "length_ms": 2000 });
        let third = json!({ "place": 2, "words": ["thank", "you", "for", "calling", "the"], "length_ms": 3000 });
        let file = calls[0].file.clone();
        assert_eq!(heard_whole(&keep(&calls), &format!("./{file}"), "a"), [first, third]);
        assert_eq!(heard_whole(&keep(&calls), &file, "b"), Vec::<Value>::new());
    }

    #[test]
    fn another_voice_is_warned_of() {
        let before = vec![(call("a", 1, Verdict::Passed, "", &[]), json!({"voice": "x", "recognizer": null}))];
        assert_eq!(warnings(&[json!({"voice": "x", "recognizer": {"kind": "b"}})], &before), Vec::<String>::new());
        let lines = warnings(&[json!({"voice": "y"})], &before);
        assert_eq!(lines, ["the voice is another one than before: \"y\" instead of \"x\""]);
    }
}
