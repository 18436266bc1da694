//! A server that is gone and comes back: said plainly, and nothing that is shown is lost.

use std::path::Path;

use serde_json::json;
use tokio::process::Command;

use super::browser::Browser;
use super::{ask_json, looks_right, queue_run, run_over, send_json, with_key};
use crate::program::{KEY, PATIENCE, Program, ringer, up};

const LOST: &str = "document.querySelector('#notice').textContent.startsWith('The server does not answer')";

/// Returns an engine at an address that is known already.
fn back(folder: &Path, base: &str, more: &[&str]) -> Command {
    let listen = base.strip_prefix("http://").expect("an address");
    let mut command = ringer(&["up", "--listen", listen, "--sip", "127.0.0.1:0", "--data"]);
    command.arg(folder).args(more).env("RINGER_BOOTSTRAP_KEY", KEY).current_dir(folder);
    command
}

#[tokio::test]
async fn a_list_goes_on_when_the_server_is_back_and_a_revoked_key_is_said() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut engine = Program::start(up(folder.path()).arg("--sim"));
    let base = engine.address("http://").await;
    let link = engine.address("http://").await;
    queue_run(&base, "sip:desk@127.0.0.1:5999", json!({ "name": "Sam" }), json!({})).await;
    run_over(&base, 1).await;
    let browser = Browser::start().await;
    browser.tell("timeouts", json!({ "script": PATIENCE.as_millis() as u64 })).await;
    browser.open(&link).await;
    browser.until("the runs", "document.querySelector('tbody a')").await;
    engine.kill().await;
    browser.until("the loss", LOST).await;
    // The key of the printed address ends with its engine.
    let mut engine = Program::start(&mut back(folder.path(), &base, &["--sim"]));
    engine.address("http://").await;
    let revoked = "document.querySelector('#notice').textContent.startsWith('This key is not valid any more')";
    browser.until("the revoked key", revoked).await;
    assert_eq!(browser.run("return document.querySelectorAll('tbody a').length").await, 1, "nothing is lost");
    browser
        .run(&format!(
            "document.getElementById('key').value = {}; document.querySelector('#keyform button').click(); return 1",
            json!(KEY)
        ))
        .await;
    let shown = "document.querySelector('#notice').hidden && !document.querySelector('main[aria-busy]') && document.querySelector('tbody a')";
    browser.until("the runs", shown).await;
    // With a key that is still good it goes on by itself.
    engine.kill().await;
    browser.until("the loss", LOST).await;
    assert_eq!(browser.run("return document.querySelectorAll('tbody a').length").await, 1, "nothing is lost");
    let mut engine = Program::start(&mut back(folder.path(), &base, &["--sim"]));
    engine.address("http://").await;
    browser.until("it is back", "document.querySelector('#notice').hidden").await;
    send_json(&base, "/v1/queue-simulation-run", json!({ "simulation_id": "1" })).await;
    browser.until("the next run", "document.querySelectorAll('tbody a').length === 2").await;
    // A view that is opened meanwhile comes when the server does.
    engine.kill().await;
    browser.run("document.querySelector('nav a[href=\"/agents\"]').click(); return 1").await;
    browser.until("no answer", "document.querySelector('h1').textContent === 'This did not work'").await;
    looks_right(&browser, "no answer").await;
    let mut engine = Program::start(&mut back(folder.path(), &base, &["--sim"]));
    engine.address("http://").await;
    browser.until("the agents", "document.querySelector('h1').textContent === 'Agents'").await;
}

#[tokio::test]
async fn a_live_call_keeps_what_is_shown_while_its_server_is_gone() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut engine = Program::start(&mut up(folder.path()));
    let base = engine.address("http://").await;
    // It hears nothing, and so stays on the line until its caller is gone.
    let mut agent = ringer(&["agent", "--listen", "127.0.0.1:0", "--rtp-ports", "37200-37299", "--fault", "deaf"]);
    let mut agent = Program::start(&mut agent);
    let address = agent.address("sip:").await;
    let browser = with_key(&base).await;
    queue_run(&base, &address, json!({ "name": "Sam" }), json!({})).await;
    browser.open(&format!("{base}/results/1")).await;
    let words = "document.querySelector('.transcript li') && document.querySelector('.chip').textContent === 'running'";
    browser.until("first words", words).await;
    engine.kill().await;
    browser.until("the loss", LOST).await;
    assert_eq!(browser.run("return document.querySelectorAll('.transcript li').length > 0").await, true);
    let mut engine = Program::start(&mut back(folder.path(), &base, &[]));
    engine.address("http://").await;
    // The call broke off with its engine: that is told, with what is kept of it.
    browser
        .until("the end", "document.querySelector('#notice').hidden && document.querySelector('.downloads button')")
        .await;
    let result = ask_json(&base, KEY, "/v1/retrieve-simulation-result/1").await["simulation_result"].clone();
    let text = browser.run("return document.querySelector('main').innerText").await;
    let (text, code) = (text.as_str().expect("text"), result["error_code"].as_str().expect("a code"));
    assert!(text.contains(code) && text.contains("Agent"), "{code}: {text}");
    agent.kill().await;
}
