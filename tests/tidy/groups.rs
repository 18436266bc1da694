//! Groups of integration tests. Tests that measure lateness, memory, load or CPU time stand in modules named `alone`.
//! They run one at a time, on a machine that does nothing else.

use super::{check, holds};

/// Words by which a test reads such a measurement. Names that only stand in made-up data are not among them.
const MEASURES: [&str; 13] = [
    ".late_frames",
    ".late_ms",
    ".longest_gap_frames",
    ".pacing_max_ms",
    ".pacing_p50_ms",
    "[\"cpu_ms_per_call_second\"].as_f64().expect(",
    "[\"memory_kib_per_call\"]",
    "[\"pacing_p99_ms\"].as_f64().expect(",
    "VmRSS",
    "VmHWM",
    "/statm",
    "getrusage",
    "clock_gettime",
];

/// Returns the lines of an integration test that measure outside of a module `alone`.
fn measuring(path: &str, text: &str) -> Vec<String> {
    let is_alone = path.split(['/', '.']).any(|part| part == "alone");
    if !path.starts_with("tests/") || path.starts_with("tests/tidy") || is_alone {
        return Vec::new();
    }
    // The names of members are texts, so comments alone are left out.
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let lines = code.enumerate().filter(|(_, line)| MEASURES.iter().any(|word| line.contains(word)));
    lines.map(|(number, _)| format!("{path}:{}: measures: it belongs into a module `alone`", number + 1)).collect()
}

#[test]
fn tests_that_measure_run_alone() {
    holds(measuring);
}

#[test]
fn measuring_tests_elsewhere_are_found() {
    let bad = "assert!(quality.late_frames < 50);";
    check(measuring, "tests/calls/peers.rs", bad, "// quality.late_frames\nassert!(quality.sent_frames > 5);");
    check(
        measuring,
        "tests/cli.rs",
        "let kib = figures[\"memory_kib_per_call\"].as_f64();",
        "let x = json!({ \"late_frames\": 9 });",
    );
    assert!(measuring("tests/calls/alone/pacing.rs", bad).is_empty());
    assert!(measuring("tests/calls/alone.rs", bad).is_empty());
    assert!(measuring("src/engine/live.rs", bad).is_empty());
}
