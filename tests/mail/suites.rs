//! Suites that write to an agent, on an engine of the run's own.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::house::{AGENT, DOMAIN, agent, free_port};
use crate::program::ringer;

/// Time that a run may take on a busy machine.
const RUN: Duration = Duration::from_secs(240);

/// Runs a suite and returns the exit code, what it prints, and its results.
async fn run(folder: &Path) -> (i32, String, Vec<Value>) {
    let mut command = ringer(&["run", "mail.yaml"]);
    command.current_dir(folder).stderr(Stdio::piped()).env("RINGER_LOG", "error").env("CI", "1");
    let out = timeout(RUN, command.output()).await.expect("it ends in time").expect("it starts");
    let printed = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    let lines = std::fs::read_to_string(folder.join("ringer-results/results.jsonl")).unwrap_or_default();
    let lines = lines.lines().map(|line| serde_json::from_str(line).expect("each line is JSON"));
    (out.status.code().unwrap_or(-1), printed, lines.collect())
}

#[tokio::test]
async fn a_suite_writes_to_an_agent_and_says_whose_fault_a_refusal_is() {
    let (agent, relay) = agent().await;
    let folder = tempfile::tempdir().expect("a folder");
    let listens = free_port();
    let settings = format!(
        "[email]\nsmtp_url = 'smtp://127.0.0.1:{relay}'\nlisten = '127.0.0.1:{listens}'\ninbound_domain = '{DOMAIN}'\n"
    );
    std::fs::write(folder.path().join("ringer.toml"), settings).expect("it can be written");
    let suite = format!(
        "version: 1\nconnect: {{ email: {AGENT}, reply_addresses: [\"*@agent.example\"] }}\nscenarios:\n  \
         - name: books by mail\n    goal: I want a table. For two. At eight.\n    max_seconds: 60\n    \
         expect: [{{ heard: booked }}, {{ ended_by: user }}, {{ event: email_sender_rejected, at_most: 0 }}]\n"
    );
    std::fs::write(folder.path().join("mail.yaml"), suite).expect("it can be written");
    let replies = ["For how many?", "At which hour?", "It is booked."];
    agent.tell("/script", json!({ "replies": replies, "port": listens, "headers": {} })).await;
    let (code, printed, lines) = run(folder.path()).await;
    assert_eq!((code, lines.len()), (0, 1), "{printed}");
    assert_eq!(agent.look().await["mails"].as_array().map(Vec::len), Some(4));

    agent.tell("/script", json!({ "replies": [], "refuse": "550 5.7.1 not from you", "refusals": 1 })).await;
    let (code, printed, lines) = run(folder.path()).await;
    // The relay is of this side: nothing is known of the agent.
    assert_eq!((code, lines.len()), (3, 1), "{printed}");
    assert!(lines[0].to_string().contains("not from you"), "{}", lines[0]);
}
