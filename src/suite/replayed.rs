//! Calls that were played again, held against the first ones: where they part, and what the difference is worth.

use ringer_media::seed::Seed;
use serde_json::{Value, json};

use super::pairs::{Outcome, Pair, told_difference, told_verdicts};
use crate::judge::paired::PairedFigure;
use crate::judge::parting::{Parting, parting};

/// Partings that are printed; all are in the report.
const PARTINGS_MAX: usize = 12;
/// Figures that are printed beside the latencies; all are in the report.
const FIGURES_MAX: usize = 12;

/// Two calls of one caller.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedCall {
    /// Scenario and base seed of both.
    pub title: String,
    /// Words of both verdicts.
    pub verdicts: [&'static str; 2],
    /// Ids of both results; empty where there is none.
    pub results: [String; 2],
    /// Place at which they part; `None`: they do not, or it is not known.
    pub parting: Option<Parting>,
    /// False where a timeline is missing, and so where they part is not known.
    pub is_known: bool,
}

/// Calls of two arms, pair by pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// Name of the arm: the change.
    pub name: String,
    /// Figures of all pairs.
    pub outcome: Outcome,
    /// The pairs, in the order of scenarios and seeds.
    pub calls: Vec<PairedCall>,
    /// Difference of times that counts as none, in milliseconds.
    pub tolerance_ms: f64,
}

impl Replayed {
    /// Returns the comparison of pairs; `seed` draws the samples of the intervals.
    pub fn of(name: &str, pairs: &[Pair<'_>], tolerance_ms: f64, seed: u64) -> Replayed {
        let call = |(before, after): &Pair<'_>| {
            let is_known = !before.timeline.is_empty() && !after.timeline.is_empty();
            let parting = is_known.then(|| parting(&before.timeline, &after.timeline, tolerance_ms)).flatten();
            PairedCall {
                title: format!("{} [seed {}]", before.scenario, before.seed),
                verdicts: [before, after].map(|call| call.judgement.verdict.as_str()),
                results: [before, after].map(|call| call.result_id()),
                parting,
                is_known,
            }
        };
        Replayed {
            name: name.to_owned(),
            outcome: Outcome::of(pairs, Seed(seed)),
            calls: pairs.iter().map(call).collect(),
            tolerance_ms,
        }
    }

    /// Returns the number of pairs that part, and of those whose timelines are known.
    pub fn count_parted(&self) -> (usize, usize) {
        let known = self.calls.iter().filter(|call| call.is_known);
        (known.clone().filter(|call| call.parting.is_some()).count(), known.count())
    }

    /// Returns it as JSON.
    pub fn json(&self) -> Value {
        let call = |call: &PairedCall| {
            let parting = call.parting.as_ref().map(|parting| {
                let Parting { at_ms, side, event, before, after, says } = parting;
                json!({ "at_ms": at_ms, "side": side, "event": event, "before": before, "after": after, "says": says })
            });
            json!({ "call": call.title, "verdicts": call.verdicts, "results": call.results, "parts": parting,
                "is_known": call.is_known })
        };
        let (parted, known) = self.count_parted();
        json!({ "name": self.name, "outcome": self.outcome.json(), "parted": parted, "compared": known,
            "tolerance_ms": self.tolerance_ms, "calls": self.calls.iter().map(call).collect::<Vec<_>>() })
    }

    /// Returns it for a terminal, a line each.
    pub fn lines(&self) -> Vec<String> {
        let verdicts = &self.outcome.verdicts;
        let mut lines = vec![format!("{}: {} pairs", self.name, self.calls.len())];
        lines.push(format!("  passed: {}", told_verdicts(verdicts)));
        if let (Some(why), untold @ 1..) = (&self.outcome.untold_reason, verdicts.untold) {
            lines.push(format!("  pairs not told, which count for nothing: {untold}; first: {why}"));
        }
        let untrusted = self.outcome.unmeasured.saturating_sub(verdicts.untold);
        if untrusted > 0 {
            lines.push(format!("  more pairs whose figures are not trusted, and not counted: {untrusted}"));
        }
        for (name, figure) in [("p50", &self.outcome.p50), ("p95", &self.outcome.p95)] {
            let told = figure.as_ref().map_or_else(|| "not measured".to_owned(), |figure| told_figure(figure, " s", 2));
            lines.push(format!("  {name} agent latency: {told}"));
        }
        let told: Vec<_> = self.outcome.metrics.iter().filter(|(_, figure)| figure.is_told()).collect();
        if !told.is_empty() {
            let all = self.outcome.metrics.len();
            lines.push(format!(
                "  {} of {all} other figures differ (of those that do not, at most one in twenty looks so by chance):",
                told.len()
            ));
            let shown = told.iter().take(FIGURES_MAX);
            lines.extend(shown.map(|(name, figure)| format!("    {name}: {}", told_figure(figure, "", 3))));
            lines.extend(rest(told.len(), FIGURES_MAX));
        }
        lines.extend(self.told_partings());
        lines
    }

    fn told_partings(&self) -> Vec<String> {
        let (parted, known) = self.count_parted();
        let mut lines = Vec::new();
        let exact =
            if self.tolerance_ms > 0.0 { format!(" by more than {} ms", self.tolerance_ms) } else { String::new() };
        if known < self.calls.len() {
            lines.push(format!(
                "  of {} pairs a timeline is missing: where they part is not known",
                self.calls.len() - known
            ));
        }
        match (parted, known) {
            (_, 0) => {}
            (0, _) => lines.push(format!("  no pair parts{exact}")),
            _ => lines.push(format!("  {parted} of {known} pairs part{exact}:")),
        }
        let parted_calls = self.calls.iter().filter_map(|call| Some((call, call.parting.as_ref()?)));
        lines.extend(parted_calls.take(PARTINGS_MAX).map(|(call, parting)| {
            let [before, after] = call.verdicts;
            let verdicts = if before == after { before.to_owned() } else { format!("{before}, then {after}") };
            format!(
                "    {} at {:.2} s: {} {}: {}; {verdicts}",
                call.title,
                parting.at_ms / 1000.0,
                who(&parting.side),
                parting.event,
                parting.says
            )
        }));
        lines.extend(rest(parted, PARTINGS_MAX));
        lines
    }
}

/// Returns a line about what is not shown; `None`: all is.
fn rest(all: usize, shown: usize) -> Option<String> {
    (all > shown).then(|| format!("    {} more lie in the report", all - shown))
}

fn who(side: &str) -> &str {
    match side {
        "dh" => "caller",
        other => other,
    }
}

fn told_figure(figure: &PairedFigure, unit: &str, digits: usize) -> String {
    let PairedFigure { before, after, .. } = figure;
    let difference = told_difference(figure, unit, digits);
    format!("{before:.digits$}{unit} to {after:.digits$}{unit}, {difference}")
}

#[cfg(test)]
mod tests {
    use super::super::Played;
    use super::super::pairs::pair;
    use super::super::testing::call;
    use super::super::verdict::Verdict::{Failed, Passed, Unknown};
    use super::*;

    fn speech_at(ms: i64) -> Vec<Value> {
        vec![json!({ "sample": ms * 16, "side": "agent", "event": "speech.started", "data": {} })]
    }

    #[test]
    fn a_replay_tells_where_calls_part_and_what_it_costs() {
        let calls = |verdicts: &[super::super::verdict::Verdict], ms: i64, latency: f64| -> Vec<Played> {
            let made = |(verdict, seed): (&_, u64)| Played {
                timeline: speech_at(ms),
                ..call("a", seed, *verdict, "too busy", &[latency])
            };
            verdicts.iter().zip(1..).map(made).collect()
        };
        let before = calls(&[Passed, Passed, Passed], 1000, 0.5);
        let mut after = calls(&[Passed, Failed, Unknown], 1400, 0.9);
        after[0].timeline = speech_at(1000);
        let (one, other): (Vec<&Played>, Vec<&Played>) = (before.iter().collect(), after.iter().collect());
        let replayed = Replayed::of("latency=+400ms", &pair(&one, &other), 0.0, 1);
        assert_eq!(replayed.count_parted(), (2, 3));
        let lines = replayed.lines();
        for expect in [
            "latency=+400ms: 3 pairs",
            "  passed: 100 % to 50 %, -50 (-91 to +27) points, p = 1.000",
            "  pairs not told, which count for nothing: 1; first: too busy",
            "  p50 agent latency: 0.50 s to 0.90 s, +0.40 s (+0.40 to +0.40)",
            "  2 of 3 pairs part:",
            "    a [seed 2] at 1.00 s: agent speech.started: 400 ms later, at 1.40 s instead of 1.00 s; passed, then \
             failed",
        ] {
            assert!(lines.iter().any(|line| line == expect), "{expect}\n{lines:#?}");
        }
        let json = replayed.json();
        assert_eq!(json["calls"][1]["parts"]["at_ms"], 1000.0);
        assert_eq!((&json["parted"], &json["outcome"]["untold"]), (&json!(2), &json!(1)));
    }
}
