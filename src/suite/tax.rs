//! The telephone's tax: what each line costs the agent against a good one, over calls of the same callers.

use ringer_media::seed::Seed;
use serde_json::{Value, json};

use super::Played;
use super::pairs::{Outcome, is_measured, is_told, pair, told_difference, with_sign};
use super::telephone::{REFERENCE, TelephoneLine};
use crate::judge::misheard::misheard;
use crate::judge::paired::PairedFigure;
use crate::judge::stats::{percentile, wilson};

/// Cost of one line for the agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Tax {
    /// Line that the calls are made through.
    pub line: &'static TelephoneLine,
    /// Number of calls over it.
    pub calls: u64,
    /// Number of calls that passed, and of those that tell something about the agent.
    pub passed: (u64, u64),
    /// Median and 95th percentile of the agent's latency over all of these calls that this side measured well, seconds.
    pub latency: [Option<f64>; 2],
    /// Words that the agent misheard, and those said, where it tells what it heard.
    pub words: Option<(u64, u64)>,
    /// Its calls against those over the reference, pair by pair; `None` for the reference itself.
    pub against: Option<Outcome>,
    /// Codecs of the calls, as negotiated.
    pub codecs: Vec<String>,
}

/// Returns the cost of each line, in the order of `lines`; `seed` draws the samples of the intervals.
pub fn taxes(lines: &[&'static TelephoneLine], calls: &[Played], seed: u64) -> Vec<Tax> {
    let over = |name: &str| -> Vec<&Played> { calls.iter().filter(|call| call.arm == name).collect() };
    let reference = over(REFERENCE);
    lines.iter().map(|line| tax(line, &over(line.name), &reference, seed)).collect()
}

fn tax(line: &'static TelephoneLine, calls: &[&Played], reference: &[&Played], seed: u64) -> Tax {
    let told: Vec<&&Played> = calls.iter().filter(|call| is_told(call)).collect();
    let passed = told.iter().filter(|call| call.judgement.verdict == super::verdict::Verdict::Passed).count();
    let measured = || calls.iter().filter(|call| is_measured(call));
    let latencies: Vec<f64> = measured().flat_map(|call| call.latencies()).collect();
    let words = measured().filter_map(|call| misheard(&call.timeline));
    let words = words.map(|one| (one.errors, one.words)).reduce(|sum, one| (sum.0 + one.0, sum.1 + one.1));
    let mut codecs: Vec<String> = calls.iter().filter_map(|call| codec(call)).collect();
    codecs.sort();
    codecs.dedup();
    let against = (line.name != REFERENCE).then(|| Outcome::of(&pair(reference, calls), Seed(seed)));
    Tax {
        line,
        calls: calls.len() as u64,
        passed: (passed as u64, told.len() as u64),
        latency: [50.0, 95.0].map(|percent| percentile(&latencies, percent)),
        words,
        against,
        codecs,
    }
}

fn codec(call: &Played) -> Option<String> {
    let connected = call.timeline.iter().find(|event| event["event"] == "call.connected")?;
    connected["data"]["codec"].as_str().map(str::to_owned)
}

/// Codecs of a narrow band.
const NARROW: [&str; 3] = ["PCMU", "PCMA", "L16/8000"];

/// Returns remarks on lines that were not what their names say, and on figures.
pub fn remarks(taxes: &[Tax]) -> Vec<String> {
    let mut found = Vec::new();
    let reference = taxes.iter().find(|tax| tax.line.name == REFERENCE);
    if let Some(reference) = reference.filter(|tax| tax.codecs.iter().any(|codec| NARROW.contains(&codec.as_str()))) {
        found.push(format!(
            "Warning: the line wideband was not wide: its calls were held in {}. A telephone costs more than is told.",
            reference.codecs.join(", ")
        ));
    }
    for tax in taxes {
        let Some(outcome) = &tax.against else { continue };
        if let (Some(why), untold @ 1..) = (&outcome.untold_reason, outcome.verdicts.untold) {
            let all = untold + outcome.verdicts.count_told();
            found.push(format!("{}: {untold} of {all} pairs are not told, first: {why}", tax.line.name));
        }
        let measured = outcome.unmeasured.saturating_sub(outcome.verdicts.untold);
        if measured > 0 {
            found.push(format!("{}: figures of {measured} more pairs are not trusted and not counted", tax.line.name));
        }
    }
    if taxes.iter().all(|tax| tax.words.is_none()) {
        found.push(
            "Words misheard are not known: the agent's side tells nothing of what it heard, as rooms and pipelines do."
                .to_owned(),
        );
    }
    found
}

/// Titles of the table's columns.
pub const HEAD: [&str; 10] = [
    "line",
    "conditions",
    "passed",
    "against wideband",
    "p (McNemar)",
    "p50",
    "against wideband",
    "p95",
    "against wideband",
    "words misheard",
];

impl Tax {
    /// Returns the cells in the order of [`HEAD`].
    pub fn cells(&self) -> Vec<String> {
        let (passed, told) = self.passed;
        let (low, high) = wilson(passed, told);
        let percent = |share: f64| (share * 100.0).round();
        let rate = match told {
            0 => "-".to_owned(),
            _ => format!(
                "{passed} of {told}, {} % ({} to {})",
                percent(passed as f64 / told as f64),
                percent(low),
                percent(high)
            ),
        };
        let untold = self.calls - told;
        let rate = if untold > 0 { format!("{rate}, {untold} not told") } else { rate };
        let outcome = self.against.as_ref();
        let nothing = || if outcome.is_some() { "not told".to_owned() } else { String::new() };
        let difference = outcome.and_then(|outcome| outcome.verdicts.difference());
        let points =
            difference.map(|(found, low, high)| with_sign((100.0 * found, 100.0 * low, 100.0 * high), " points", 0));
        let p = outcome.filter(|outcome| outcome.verdicts.count_told() > 0).map(|outcome| outcome.verdicts.p());
        let seconds = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2} s"));
        let change =
            |figure: Option<&PairedFigure>| figure.map_or_else(nothing, |figure| told_difference(figure, " s", 2));
        let misheard = match self.words {
            Some((errors, words)) => format!("{:.0} % of {words}", 100.0 * errors as f64 / words as f64),
            None => "unknown".to_owned(),
        };
        vec![
            self.line.name.to_owned(),
            self.line.says.to_owned(),
            rate,
            points.unwrap_or_else(nothing),
            p.map_or_else(nothing, |p| format!("{p:.3}")),
            seconds(self.latency[0]),
            change(outcome.and_then(|outcome| outcome.p50.as_ref())),
            seconds(self.latency[1]),
            change(outcome.and_then(|outcome| outcome.p95.as_ref())),
            misheard,
        ]
    }

    /// Returns it as JSON.
    pub fn json(&self) -> Value {
        let (passed, told) = self.passed;
        json!({
            "line": self.line.name, "conditions": self.line.says, "calls": self.calls, "passed": passed, "told": told,
            "p50_agent_latency": self.latency[0], "p95_agent_latency": self.latency[1],
            "misheard": self.words.map(|(errors, words)| json!({ "errors": errors, "words": words })),
            "codecs": self.codecs, "against_wideband": self.against.as_ref().map(Outcome::json),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::telephone::LINES;
    use super::super::testing::call;
    use super::super::verdict::Verdict::{self, Failed, Passed, Unknown};
    use super::*;

    fn over(arm: &str, verdicts: &[Verdict], latency: f64, codec: &str) -> Vec<Played> {
        let made = |(verdict, seed): (&Verdict, u64)| {
            let connected =
                json!({ "event": "call.connected", "side": "engine", "sample": 0, "data": { "codec": codec } });
            Played { arm: arm.into(), timeline: vec![connected], ..call("a", seed, *verdict, "deaf", &[latency]) }
        };
        verdicts.iter().zip(1..).map(made).collect()
    }

    #[test]
    fn each_line_is_held_against_the_good_one_by_pairs() {
        let mut calls = over("wideband", &[Passed; 8], 1.0, "OPUS");
        calls.extend(over("loss5", &[Failed; 8], 1.4, "OPUS"));
        calls.extend(over("babble", &[Passed, Passed, Passed, Passed, Passed, Passed, Passed, Unknown], 1.0, "OPUS"));
        let lines: Vec<&TelephoneLine> = LINES.iter().filter(|line| line.name != "pcmu").collect();
        let found = taxes(&lines, &calls, 1);
        let cells: Vec<Vec<String>> = found.iter().map(Tax::cells).collect();
        assert_eq!(cells[0][2..], ["8 of 8, 100 % (68 to 100)", "", "", "1.00 s", "", "1.00 s", "", "unknown"]);
        assert_eq!(
            cells[1][2..],
            [
                "0 of 8, 0 % (0 to 32)",
                "-100 points (-100 to -54)",
                "0.008",
                "1.40 s",
                "+0.40 s (+0.40 to +0.40)",
                "1.40 s",
                "+0.40 s (+0.40 to +0.40)",
                "unknown"
            ]
        );
        assert_eq!(cells[2][2], "7 of 7, 100 % (65 to 100), 1 not told");
        assert_eq!(cells[2][4], "1.000", "a fault of this side is no difference");
        let remarks = remarks(&found);
        assert_eq!(remarks[0], "babble: 1 of 8 pairs are not told, first: deaf");
        assert!(remarks.len() == 2 && remarks[1].starts_with("Words misheard are not known"), "{remarks:?}");
        assert_eq!(found[1].json()["against_wideband"]["worse"], 8);
    }

    #[test]
    fn a_good_line_that_was_narrow_is_told() {
        let calls = over("wideband", &[Passed; 2], 1.0, "PCMU");
        let remarks = remarks(&taxes(&[&LINES[0]], &calls, 1));
        assert!(remarks[0].starts_with("Warning: the line wideband was not wide"), "{remarks:?}");
    }
}
