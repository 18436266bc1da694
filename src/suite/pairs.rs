//! Pairs of calls of one caller by two arms of a run, and what they tell: verdicts, latencies and other figures.

use std::collections::BTreeMap;

use ringer_media::seed::Seed;
use serde_json::{Value, json};

use super::Played;
use super::verdict::Verdict;
use crate::judge::misheard::{Misheard, misheard};
use crate::judge::paired::{Figure, PairedFigure, PairedVerdicts};
use crate::judge::stats::Interval;

/// Calls of a caller by two arms: the first one, and the one that is held against it.
pub type Pair<'p> = (&'p Played, &'p Played);

/// Returns the pairs of calls of two arms, by file, scenario and seed.
pub fn pair<'p>(before: &[&'p Played], after: &[&'p Played]) -> Vec<Pair<'p>> {
    let key = |call: &Played| (call.file.clone(), call.scenario.clone(), call.seed);
    let mut first: BTreeMap<_, &'p Played> = before.iter().map(|call| (key(call), *call)).collect();
    after.iter().filter_map(|call| Some((first.remove(&key(call))?, *call))).collect()
}

/// Outcome of the pairs of two arms.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Verdicts of the pairs.
    pub verdicts: PairedVerdicts,
    /// Median of the agent's latency, seconds; `None`: not measured in any pair.
    pub p50: Option<PairedFigure>,
    /// 95th percentile of the agent's latency, seconds.
    pub p95: Option<PairedFigure>,
    /// Means of the other metrics, by their names.
    pub metrics: BTreeMap<String, PairedFigure>,
    /// Words that the agent misheard of both arms, over the pairs where it tells what it heard; `None`: not known.
    pub misheard: Option<[Misheard; 2]>,
    /// Number of pairs whose figures do not count: a side is not known, or its figures are not trusted.
    pub unmeasured: u64,
    /// Reason of the first pair that is not told.
    pub untold_reason: Option<String>,
}

impl Outcome {
    /// Returns the outcome of pairs; `seed` draws the samples of the intervals.
    pub fn of(pairs: &[Pair<'_>], seed: Seed) -> Outcome {
        let verdicts = pairs.iter().map(|(one, other)| (one.judgement.verdict.word(), other.judgement.verdict.word()));
        let untold = pairs.iter().flat_map(|(one, other)| [one, other]).find(|call| !is_told(call));
        let measured: Vec<&Pair<'_>> =
            pairs.iter().filter(|(one, other)| is_measured(one) && is_measured(other)).collect();
        let values = |of: &dyn Fn(&Played) -> Vec<f64>| -> Vec<(Vec<f64>, Vec<f64>)> {
            measured.iter().map(|(one, other)| (of(one), of(other))).collect()
        };
        let latencies = values(&Played::latencies);
        let percentile = |percent| PairedFigure::of(&latencies, Figure::Percentile(percent), seed);
        let metrics = metric_names(&measured).into_iter().filter_map(|name| {
            let figure = PairedFigure::of(&values(&|call| metric(call, &name)), Figure::Mean, seed)?;
            Some((name, figure))
        });
        Outcome {
            verdicts: PairedVerdicts::of(verdicts),
            p50: percentile(50.0),
            p95: percentile(95.0),
            metrics: metrics.collect(),
            misheard: words(&measured),
            unmeasured: (pairs.len() - measured.len()) as u64,
            untold_reason: untold.map(|call| call.judgement.reason.clone()),
        }
    }

    /// Returns it as JSON.
    pub fn json(&self) -> Value {
        let PairedVerdicts { both_passed, worse, better, both_failed, untold } = self.verdicts;
        let shares = self.verdicts.shares();
        let metrics: serde_json::Map<String, Value> =
            self.metrics.iter().map(|(name, figure)| (name.clone(), figure_json(figure))).collect();
        let misheard = self
            .misheard
            .map(|both| json!(both.map(|Misheard { errors, words }| json!({ "errors": errors, "words": words }))));
        json!({
            "pairs": self.verdicts.count_told(), "untold": untold, "unmeasured": self.unmeasured,
            "untold_reason": self.untold_reason,
            "both_passed": both_passed, "worse": worse, "better": better, "both_failed": both_failed,
            "pass_rate": shares.map(|(before, after)| json!([before, after])),
            "difference": self.verdicts.difference().map(interval_json), "p": self.verdicts.p(),
            "p50_agent_latency": self.p50.as_ref().map(figure_json),
            "p95_agent_latency": self.p95.as_ref().map(figure_json),
            "misheard": misheard, "metrics": metrics,
        })
    }
}

fn figure_json(figure: &PairedFigure) -> Value {
    let PairedFigure { pairs, before, after, difference, p } = figure;
    json!({ "pairs": pairs, "before": before, "after": after, "difference": interval_json(*difference), "p": p,
        "is_told": figure.is_told() })
}

fn interval_json((found, low, high): Interval) -> Value {
    json!({ "value": found, "low": low, "high": high })
}

/// True for a call that tells something about the agent.
pub fn is_told(call: &Played) -> bool {
    matches!(call.judgement.verdict, Verdict::Passed | Verdict::Failed)
}

/// True for a call whose figures are the agent's: it tells something about it, and this side measured well.
pub(super) fn is_measured(call: &Played) -> bool {
    is_told(call) && call.record["engine_quality"]["untrusted_reason"].is_null()
}

/// Metrics that are told as latencies already.
const LATENCIES: [&str; 2] = ["p50_agent_latency", "p95_agent_latency"];

fn metric_names(pairs: &[&Pair<'_>]) -> Vec<String> {
    let calls = pairs.iter().flat_map(|(one, other)| [one, other]);
    let all = calls.flat_map(|call| call.record["metrics"].as_array().into_iter().flatten());
    let numbers = all.filter(|metric| metric["value"].is_number()).filter_map(|metric| metric["name"].as_str());
    let names: std::collections::BTreeSet<&str> = numbers.filter(|name| !LATENCIES.contains(name)).collect();
    names.into_iter().map(str::to_owned).collect()
}

fn metric(call: &Played, name: &str) -> Vec<f64> {
    let all = call.record["metrics"].as_array().into_iter().flatten();
    all.filter(|metric| metric["name"] == name).filter_map(|metric| metric["value"].as_f64()).take(1).collect()
}

/// Returns the words misheard of both arms, over the pairs where both tell them.
fn words(pairs: &[&Pair<'_>]) -> Option<[Misheard; 2]> {
    let both = pairs.iter().filter_map(|(one, other)| Some([misheard(&one.timeline)?, misheard(&other.timeline)?]));
    let add = |sum: Misheard, one: Misheard| Misheard { errors: sum.errors + one.errors, words: sum.words + one.words };
    both.reduce(|sum, pair| [add(sum[0], pair[0]), add(sum[1], pair[1])])
}

/// Returns a difference with its interval in a unit, as `+0.40 s (+0.35 to +0.44)`.
pub fn with_sign((found, low, high): Interval, unit: &str, digits: usize) -> String {
    format!("{found:+.digits$}{unit} ({low:+.digits$} to {high:+.digits$})")
}

/// Returns the difference of a figure with its interval. One pair has none.
pub fn told_difference(figure: &PairedFigure, unit: &str, digits: usize) -> String {
    match figure.pairs {
        0 | 1 => format!("{:+.digits$}{unit}, of one pair", figure.difference.0),
        _ => with_sign(figure.difference, unit, digits),
    }
}

/// Returns both shares of passed pairs and their difference with its interval, for a person.
pub fn told_verdicts(verdicts: &PairedVerdicts) -> String {
    let percent = |share: f64| share * 100.0;
    match (verdicts.shares(), verdicts.difference()) {
        (Some((before, after)), Some((found, low, high))) => format!(
            "{:.0} % to {:.0} %, {} points, p = {:.3}",
            percent(before),
            percent(after),
            with_sign((percent(found), percent(low), percent(high)), "", 0),
            verdicts.p()
        ),
        _ => "not told".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::call;
    use super::*;

    fn arm(verdicts: &[Verdict], latency: f64) -> Vec<Played> {
        let made = |(verdict, seed): (&Verdict, u64)| call("a", seed, *verdict, "why", &[latency, latency + 0.2]);
        verdicts.iter().zip(1..).map(made).collect()
    }

    #[test]
    fn faults_of_this_side_are_no_difference() {
        use Verdict::{Failed, Passed, Unknown};
        let before = arm(&[Passed, Passed, Passed, Unknown], 1.0);
        let mut after = arm(&[Passed, Failed, Unknown, Failed], 1.5);
        after[1].record["engine_quality"] = json!({ "untrusted_reason": "late" });
        let (one, other): (Vec<&Played>, Vec<&Played>) = (before.iter().collect(), after.iter().collect());
        let outcome = Outcome::of(&pair(&one, &other), Seed(1));
        let PairedVerdicts { both_passed, worse, untold, .. } = outcome.verdicts;
        assert_eq!((both_passed, worse, untold, outcome.unmeasured), (1, 1, 2, 3));
        let p50 = outcome.p50.expect("one pair is measured");
        assert_eq!((p50.pairs, (p50.difference.0 * 10.0).round()), (1, 5.0));
        assert_eq!(outcome.untold_reason.as_deref(), Some("why"));
        assert_eq!(outcome.json()["misheard"], Value::Null);
    }

    #[test]
    fn calls_are_paired_by_scenario_and_seed() {
        let before = arm(&[Verdict::Passed; 3], 1.0);
        let mut after = arm(&[Verdict::Passed; 3], 1.0);
        after[0].seed = 9;
        after[1].scenario = "b".into();
        let (one, other): (Vec<&Played>, Vec<&Played>) = (before.iter().collect(), after.iter().collect());
        let pairs = pair(&one, &other);
        assert_eq!(pairs.iter().map(|(one, other)| (one.seed, other.seed)).collect::<Vec<_>>(), [(3, 3)]);
    }

    #[test]
    fn metrics_are_means_over_the_pairs() {
        let mut before = arm(&[Verdict::Passed; 2], 1.0);
        let mut after = before.clone();
        let metrics =
            |value: f64| json!([{ "name": "num_turns", "value": value }, { "name": "interface", "value": "X" }]);
        for (at, (one, other)) in before.iter_mut().zip(&mut after).enumerate() {
            one.record["metrics"] = metrics(4.0);
            other.record["metrics"] = metrics(5.0 + at as f64);
        }
        let (one, other): (Vec<&Played>, Vec<&Played>) = (before.iter().collect(), after.iter().collect());
        let metrics = Outcome::of(&pair(&one, &other), Seed(1)).metrics;
        assert_eq!(metrics.keys().collect::<Vec<_>>(), ["num_turns"]);
        let turns = metrics["num_turns"];
        assert_eq!((turns.before, turns.after, turns.difference), (4.0, 5.5, (1.5, 1.0, 2.0)));
        assert_eq!(with_sign(turns.difference, "", 1), "+1.5 (+1.0 to +2.0)");
    }
}
