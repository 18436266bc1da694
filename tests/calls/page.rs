//! The page of the API in a real browser (Chromium, by WebDriver: W3C Recommendation of 2018), where it calls the
//! sample agent.

use serde_json::{Value, json};

use super::desk::Agent;
use crate::page::browser::Browser;
use crate::program::{KEY, PATIENCE, Program, up};

#[tokio::test]
async fn the_page_shows_every_operation_and_makes_a_call() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut engine = Program::start(&mut up(folder.path()));
    let (base, agent) = (engine.address("http://").await, Agent::start().await);
    let browser = Browser::start().await;
    browser.tell("timeouts", json!({ "script": PATIENCE.as_millis() as u64 })).await;
    browser.tell("url", json!({ "url": format!("{base}/docs") })).await;
    // Once the description is there: what the page lists, and whether anything came from elsewhere.
    let seen = browser
        .run(
            "while (!document.querySelector('#list details')) await new Promise((done) => setTimeout(done, 50));
             const from = performance.getEntriesByType('resource').map((entry) => new URL(entry.name).host);
             return [document.querySelectorAll('#list details').length, from.filter((host) => host !== location.host)];",
        )
        .await;
    let described = include_str!("../../fixtures/api/openapi.json");
    let described: Value = serde_json::from_str(described).expect("it is JSON");
    let paths = described["paths"].as_object().expect("paths").values();
    let operations: usize = paths.map(|path| path.as_object().expect("methods").len()).sum();
    assert_eq!(seen, json!([operations, []]));
    // As a user: the key, the address, a click; then what the page says when the call is over.
    let said = browser
        .run(&format!(
            "document.getElementById('key').value = {};
             const form = document.getElementById('caller');
             document.getElementById('call').open = true;
             form.sip_uri.value = {};
             form.querySelector('button').click();
             const over = () => !form.querySelector('button').disabled;
             while (!over()) await new Promise((done) => setTimeout(done, 100));
             const audio = document.querySelector('#sound audio');
             if (audio) await new Promise((done) => {{ audio.onloadedmetadata = done; audio.load(); }});
             return {{
                 state: document.getElementById('state').textContent,
                 heard: [...document.querySelectorAll('#heard tr')].map((row) => row.children[1].textContent),
                 seconds: audio && audio.duration,
             }};",
            json!(KEY),
            json!(agent.address),
        ))
        .await;
    println!("{said}");
    let state = said["state"].as_str().expect("a state");
    assert!(state.starts_with("COMPLETED; latency of the agent's turns "), "{said}");
    let heard: Vec<&str> = said["heard"].as_array().expect("rows").iter().filter_map(Value::as_str).collect();
    let count = |who: &str| heard.iter().filter(|side| **side == who).count();
    assert!(count("agent") >= 3 && count("caller") >= 2, "{said}");
    assert!(said["seconds"].as_f64().is_some_and(|seconds| seconds > 10.0), "{said}");
}
