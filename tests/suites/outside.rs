//! Figures and files of suites against other people's programs: statsmodels, and the framework whose words evals are
//! written in.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ringer::judge::paired::PairedVerdicts;
use ringer::judge::stats::{bootstrap, mcnemar, pairs_needed, pass_k, percentile, wilson};
use ringer_media::seed::Seed;
use serde_json::{Value, json};

use super::Bench;

/// Runs a script with what it reads, and returns what it prints.
pub(super) fn python(script: &str, args: &[&Path], input: &Value) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(here.join(".venv/bin/python"));
    command.arg(here.join("tests/python").join(script)).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}; `make peers` installs it"));
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(input.to_string().as_bytes()).expect("it reads");
    drop(stdin);
    let out = child.wait_with_output().expect("it ends");
    let text = String::from_utf8(out.stdout).expect("it is text");
    assert!(out.status.success(), "{script}: {text}");
    text
}

#[test]
fn figures_are_those_of_statsmodels() {
    let counts = || (1..=25u64).flat_map(|decided| (0..=decided).map(move |passed| (passed, decided)));
    let uneven = || (0..=12u64).flat_map(|worse| (0..=12).map(move |better| (worse, better)));
    let wilsons: Vec<Value> =
        counts().map(|(passed, decided)| json!([[passed, decided], wilson(passed, decided)])).collect();
    let together = counts().flat_map(|(passed, decided)| (1..=decided).map(move |k| (passed, decided, k)));
    let together: Vec<Value> =
        together.map(|(passed, decided, k)| json!([[passed, decided, k], pass_k(passed, decided, k)])).collect();
    // Values without order, of many lengths.
    let draw =
        |count: u64, of: u64| -> Vec<f64> { (0..count).map(|at| ((at * 37 + of * 11) % 101) as f64 / 40.0).collect() };
    let mut percentiles = Vec::new();
    for count in [1, 2, 3, 7, 20, 101] {
        for percent in [0.0, 2.5, 50.0, 90.0, 95.0, 99.0, 100.0] {
            let values = draw(count, count);
            percentiles.push(json!([[values, percent], percentile(&values, percent)]));
        }
    }
    let tests: Vec<Value> = uneven()
        .chain([(150, 100), (0, 300), (1000, 1100)])
        .filter(|(worse, better)| worse + better > 0)
        .map(|(worse, better)| json!([[worse, better], mcnemar(worse, better)]))
        .collect();
    let needed: Vec<Value> = uneven()
        .filter(|(worse, better)| worse != better)
        .map(|(worse, better)| json!([[worse, better, 25], pairs_needed(worse, better, 25)]))
        .collect();
    let tables = || (0..=6u64).flat_map(|a| (0..=6u64).flat_map(move |b| (0..=6u64).map(move |c| (a, b, c))));
    let differences: Vec<Value> = tables()
        .flat_map(|(a, b, c)| [0, 1, 5].map(|d| (a, b, c, d)))
        .filter(|(a, b, c, d)| a + b + c + d > 0)
        .map(|(both_passed, worse, better, both_failed)| {
            let table = PairedVerdicts { both_passed, worse, better, both_failed, untold: 3 };
            json!([[both_passed, worse, better, both_failed], table.difference()])
        })
        .collect();
    let mut resampled = Vec::new();
    for (shift, percent) in [(0.0, 50.0), (0.3, 50.0), (-0.2, 95.0)] {
        let before = draw(60, 1);
        let now: Vec<f64> =
            before.iter().enumerate().map(|(at, value)| value + shift + (at % 7) as f64 / 50.0).collect();
        let pairs: Vec<(Vec<f64>, Vec<f64>)> =
            before.iter().zip(&now).map(|(one, other)| (vec![*one], vec![*other])).collect();
        let (found, low, high) = bootstrap(&pairs, percent, Seed(1)).expect("there are values");
        resampled.push(json!([[before, now, percent], [found, low, high]]));
    }
    let all = json!({
        "wilson": wilsons, "pass_k": together, "percentile": percentiles, "mcnemar": tests, "pairs_needed": needed,
        "bootstrap": resampled, "paired_difference": differences,
    });
    python("suite_statistics.py", &[], &all);
}

#[tokio::test]
async fn files_of_evals_are_read_by_their_own_framework_too() {
    let bench = Bench::new();
    let words = bench.write(
        "words.yaml",
        "name: words
connect: { sip: \"sip:desk@127.0.0.1:5080\" }
scenarios:
  - name: every word
    turns:
      - expect: [{ event: response, eval: it greets, text_contains: clinic }]
      - user: Wait!
        send_after: { event: bot_started_speaking, delay_ms: 900 }
        expect:
          - { event: bot_interrupted, within_ms: 2000 }
          - { event: function_call, name: book, args: { day: tuesday } }
          - { event: function_call, calls: [look, { name: book }] }
          - { event: response, text_excludes: sorry, within_ms: 5000 }
          - { event: response, absent: true, within_ms: 1000 }
      - dtmf: 0123
        send_after: { delay_ms: 300 }
  - { name: another, turns: [{ user: Bye. }] }
",
    );
    let examples = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/evals.yaml"));
    for (file, expect) in [(words, ("words", 2)), (examples, ("desk", 2))] {
        let theirs = python("evals.py", &[&file], &Value::Null);
        let theirs: Vec<(String, Vec<String>, Vec<usize>)> = serde_json::from_str(&theirs).expect("it is JSON");
        let [(name, scenarios, _)] = &theirs[..] else { panic!("{theirs:?}") };
        assert_eq!((name.as_str(), scenarios.len()), expect, "{theirs:?}");
        let ran = bench.run(&[file.to_str().expect("a path"), "--list"]).await;
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        for scenario in scenarios {
            let own = scenario.strip_prefix(&format!("{name}/")).expect("the file's name comes first");
            assert!(ran.out.lines().any(|line| line.trim() == own), "{own}: {}", ran.out);
        }
    }
}
