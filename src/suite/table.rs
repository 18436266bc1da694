//! The table of a run: a row a scenario, for a terminal and as Markdown.

use super::Played;
use super::verdict::{Gate, Verdict, gate};
use crate::judge::stats::{pass_k, percentile, wilson};

/// Figures of the calls of a scenario, a row of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// File of the suite.
    pub file: String,
    /// Scenario of the suite, with its arm in brackets where there are several.
    pub scenario: String,
    /// True if the calls count for the gate.
    pub gates: bool,
    /// Number of calls that passed.
    pub passed: u64,
    /// Number of calls that failed.
    pub failed: u64,
    /// Number of calls whose agent was not reached.
    pub unreachable: u64,
    /// Number of other calls without a verdict.
    pub unknown: u64,
    /// Median of the agent's latency, seconds.
    pub p50: Option<f64>,
    /// 95th percentile of the agent's latency, seconds.
    pub p95: Option<f64>,
    /// Reason of the first call that did not pass.
    pub reason: String,
    /// Verdict on the scenario's gate.
    pub gate: Verdict,
}

impl Row {
    /// Returns the sums over the calls of one scenario.
    pub fn of(calls: &[&Played], terms: Gate) -> Row {
        let count = |verdict| calls.iter().filter(|call| call.judgement.verdict == verdict).count() as u64;
        let (passed, failed) = (count(Verdict::Passed), count(Verdict::Failed));
        let unreachable = count(Verdict::Unreachable);
        let all = calls.len() as u64;
        let latencies: Vec<f64> = calls.iter().flat_map(|call| call.latencies()).collect();
        let first = |verdict| calls.iter().find(|call| call.judgement.verdict == verdict);
        let worst = first(Verdict::Failed).or(first(Verdict::Unreachable)).or(first(Verdict::Unknown));
        let reason = worst.map(|call| call.judgement.reason.clone());
        Row {
            file: calls.first().map(|call| call.file.clone()).unwrap_or_default(),
            scenario: calls.first().map(|call| call.title()).unwrap_or_default(),
            gates: calls.first().is_none_or(|call| call.gates),
            passed,
            failed,
            unreachable,
            unknown: all - passed - failed - unreachable,
            p50: percentile(&latencies, 50.0),
            p95: percentile(&latencies, 95.0),
            reason: reason.unwrap_or_default(),
            gate: gate(passed, passed + failed, all, terms),
        }
    }

    /// Returns the number of calls with a known verdict.
    pub fn count_told(&self) -> u64 {
        self.passed + self.failed
    }

    /// True if the agent both passed and failed.
    pub fn is_flaky(&self) -> bool {
        self.passed > 0 && self.failed > 0
    }

    /// Returns the cells in the order of [`HEAD`].
    pub fn cells(&self) -> Vec<String> {
        let all = self.count_told() + self.unknown + self.unreachable;
        let rate = match self.count_told() {
            0 => "-".to_owned(),
            decided => {
                let (low, high) = wilson(self.passed, decided);
                let percent = |share: f64| (share * 100.0).round();
                format!("{} % ({} to {})", percent(self.passed as f64 / decided as f64), percent(low), percent(high))
            }
        };
        let together = pass_k(self.passed, self.count_told(), self.count_told())
            .map_or_else(|| "-".to_owned(), |share| format!("{:.0} % (k={})", share * 100.0, self.count_told()));
        let seconds = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2} s"));
        vec![
            self.scenario.clone(),
            format!("{} / {} / {} of {all}", self.passed, self.failed, self.unknown),
            if self.unreachable > 0 { self.unreachable.to_string() } else { String::new() },
            rate,
            together,
            if self.is_flaky() { "flaky".to_owned() } else { String::new() },
            seconds(self.p50),
            seconds(self.p95),
            if self.gates { self.gate.as_str().to_owned() } else { "-".to_owned() },
            self.reason.clone(),
        ]
    }
}

/// Titles of the columns.
pub const HEAD: [&str; 10] = [
    "scenario",
    "passed / failed / unknown",
    "unreachable",
    "pass rate (95 %)",
    "pass^k",
    "",
    "p50",
    "p95",
    "gate",
    "first reason",
];

/// Returns the table for a terminal; blanks separate the columns.
pub fn plain(rows: &[Row]) -> String {
    plain_cells(&HEAD, rows.iter().map(Row::cells))
}

/// Returns cells for a terminal; blanks separate the columns.
pub fn plain_cells(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut lines: Vec<Vec<String>> = vec![head.iter().map(|title| (*title).to_owned()).collect()];
    lines.extend(rows);
    let width = |at: usize| lines.iter().map(|cells| cells[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &Vec<String>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the table as Markdown.
pub fn markdown(rows: &[Row]) -> String {
    markdown_cells(&HEAD, rows.iter().map(Row::cells))
}

/// Returns cells as Markdown.
pub fn markdown_cells(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let escaped = |cell: &String| cell.replace('|', "\\|").replace(['\n', '\r'], " ").replace('<', "&lt;");
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let rule = line(head.iter().map(|_| "---".to_owned()).collect());
    let head = line(head.iter().map(|title| (*title).to_owned()).collect());
    let body = rows.map(|cells| line(cells.iter().map(escaped).collect()));
    [head, rule].into_iter().chain(body).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::testing::call;
    use super::*;

    #[test]
    fn a_row_sums_its_calls_up() {
        let calls = [
            call("a", 1, Verdict::Passed, "", &[0.5, 1.0]),
            call("a", 2, Verdict::Unknown, "nobody there", &[]),
            call("a", 3, Verdict::Failed, "a | b", &[1.5]),
            call("a", 4, Verdict::Unreachable, "refused", &[]),
        ];
        let row = Row::of(&calls.iter().collect::<Vec<_>>(), Gate::default());
        assert_eq!((row.passed, row.failed, row.unknown, row.is_flaky(), row.gate), (1, 1, 1, true, Verdict::Failed));
        assert_eq!(
            row.cells(),
            ["a", "1 / 1 / 1 of 4", "1", "50 % (9 to 91)", "0 % (k=2)", "flaky", "1.00 s", "1.45 s", "failed", "a | b"]
        );
        let text = plain(std::slice::from_ref(&row));
        assert!(text.lines().count() == 2 && text.starts_with("scenario  "), "{text}");
        let text = markdown(&[row]);
        assert!(text.ends_with("| failed | a \\| b |"), "{text}");
    }
}
