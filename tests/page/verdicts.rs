//! Eight results of four verdicts: the words of the shell, of both JUnit reports, of the API and of the page are one.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::browser::Browser;
use super::{ask_json, with_key};
use crate::program::{KEY, Program, client, ringer, up};

/// Three calls pass, two fail, two cannot be judged without a language model.
const REACHED: &str = "version: 1
connect: { sip: 'sip:desk@127.0.0.1:5999' }
defaults: { goal: Hello. Tuesday is good for me., max_seconds: 60 }
scenarios:
  - { name: passes, repeat: 3, expect: [{ metric: num_turns, at_least: 1 }] }
  - { name: fails, repeat: 2, expect: [{ metric: max_agent_latency, at_most: 0.001 }] }
  - { name: unjudged, repeat: 2, expect: [{ meaning: The agent is polite. }] }
";

/// An agent at whose address nothing listens.
const GONE: &str = "version: 1
connect: { chat: 'http://127.0.0.1:9/v1', model: m }
scenarios:
  - { name: gone, goal: Hello., expect: [{ ended_by: agent }] }
";

/// Runs a suite at a server; returns the exit code and the word of each call, as the shell prints it.
async fn run_suite(folder: &Path, base: &str, name: &str, text: &str) -> (Option<i32>, Vec<String>) {
    std::fs::write(folder.join(name), text).expect("a suite");
    let out = format!("{name}.results");
    let mut command = ringer(&["run", name, "--server", base, "--out", &out]);
    command.env("RINGER_API_KEY", KEY).current_dir(folder).stderr(std::process::Stdio::piped());
    let ran = command.output().await.expect("it was built");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    let words = said.lines().filter(|line| line.contains(" [seed ")).filter_map(|line| line.split(' ').next());
    (ran.status.code(), words.map(str::to_owned).collect())
}

/// Returns the word of each test case of a JUnit report by the ids of their results.
fn words_in_junit(folder: &Path, name: &str) -> BTreeMap<i64, String> {
    let report = std::fs::read_to_string(folder.join(format!("{name}.results/junit.xml"))).expect("a report");
    let value = |case: &str, property: &str| {
        let (_, behind) = case.split_once(&format!("name=\"{property}\" value=\"")).expect(property);
        behind.split('"').next().expect("it ends").to_owned()
    };
    report
        .split("<testcase ")
        .skip(1)
        .map(|case| {
            let word = value(case, "verdict");
            let has = ["<failure", "<error"].map(|part| case.contains(part));
            assert_eq!(has, [word == "failed", ["unknown", "unreachable"].contains(&word.as_str())], "{case}");
            (value(case, "result_id").parse().expect("an id"), word)
        })
        .collect()
}

/// Returns the word as the page shows it.
fn in_the_page(word: &str) -> &str {
    if word == "unknown" { "not judged" } else { word }
}

#[tokio::test]
async fn eight_results_have_one_word_everywhere() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut engine = Program::start(up(folder.path()).arg("--sim"));
    let base = engine.address("http://").await;
    let (code, mut said) = run_suite(folder.path(), &base, "reached.yaml", REACHED).await;
    assert_eq!(code, Some(1), "a call failed by the agent's fault: {said:?}");
    let (code, gone) = run_suite(folder.path(), &base, "gone.yaml", GONE).await;
    assert_eq!((code, gone.as_slice()), (Some(4), ["unreachable".to_owned()].as_slice()), "nobody was reached");
    said.extend(gone);
    said.sort_unstable();
    let expect = ["failed", "failed", "passed", "passed", "passed", "unknown", "unknown", "unreachable"];
    assert_eq!(said, expect, "words of the shell");
    let mut words = words_in_junit(folder.path(), "reached.yaml");
    words.extend(words_in_junit(folder.path(), "gone.yaml"));
    assert_eq!(words.len(), 8, "{words:?}");
    let mut of_reports: Vec<&str> = words.values().map(String::as_str).collect();
    of_reports.sort_unstable();
    assert_eq!(of_reports, expect);
    let browser = with_key(&base).await;
    for (id, word) in &words {
        one_word(&browser, &base, *id, word).await;
    }
    a_list_counts_the_same(&browser, &base, &words).await;
}

/// Compares the word of a result with those of its record, of its run's report and counters, and of both their views.
async fn one_word(browser: &Browser, base: &str, id: i64, word: &str) {
    let record = ask_json(base, KEY, &format!("/v1/retrieve-simulation-result/{id}")).await;
    let record = &record["simulation_result"];
    assert_eq!(record["verdict"]["word"], word, "{id}");
    let run = record["simulation_run_id"].to_string().replace('"', "");
    let junit = client().get(format!("{base}/v1/simulation-run/{run}/export?format=junit")).header("x-api-key", KEY);
    let junit = junit.send().await.expect("it answers").text().await.expect("a report");
    assert!(junit.contains(&format!("name=\"verdict\" value=\"{word}\"")), "{junit}");
    let parts = ["<failure", "<error", "<skipped"].map(|part| junit.contains(part));
    assert_eq!(parts, [word == "failed", word == "unreachable", word == "unknown"], "{junit}");
    browser.open(&format!("{base}/results/{id}")).await;
    let chip = browser.until("a verdict", "(document.querySelector('.chips .chip') || {}).textContent").await;
    assert_eq!(chip, in_the_page(word), "chip of call {id}");
    browser.open(&format!("{base}/runs/{run}")).await;
    let counted =
        "document.querySelector('.count') && [...document.querySelectorAll('.count')].map((one) => one.textContent)";
    let counts = browser.until("counters", counted).await;
    assert_eq!(counts, json!([format!("1 {}", in_the_page(word))]), "counters of run {run}");
    let chip = browser.run("return document.querySelector('.chips .chip').textContent").await;
    assert_eq!(chip, in_the_page(word), "chip of run {run}");
}

/// Compares the words of the list of runs, each of which has one call, with those of the calls.
async fn a_list_counts_the_same(browser: &Browser, base: &str, words: &BTreeMap<i64, String>) {
    browser.open(base).await;
    let rows = "document.querySelectorAll('tbody tr').length === 8 && [...document.querySelectorAll('tbody tr')]
        .map((row) => [...row.querySelectorAll('.chip')].map((one) => one.textContent))";
    let rows = browser.until("runs", rows).await;
    let mut rows: Vec<Value> = rows.as_array().expect("rows").clone();
    let mut expect: Vec<Value> =
        words.values().map(|word| json!([in_the_page(word), format!("1 {}", in_the_page(word))])).collect();
    rows.sort_by_key(Value::to_string);
    expect.sort_by_key(Value::to_string);
    assert_eq!(rows, expect);
}
