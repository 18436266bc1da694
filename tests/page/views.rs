//! Each view with the data of a run: both widths, both schemes; a dot leads to its answer; wrong keys are said.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::{interval, timeout};

use super::browser::Browser;
use super::{ask_json, looks_right, queue_run, run_over, send_json, with_key};
use crate::api::call_logs::stereo;
use crate::program::{KEY, PATIENCE, Program, up};

#[tokio::test]
async fn each_view_is_right_and_a_dot_leads_to_its_answer() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut engine = Program::start(up(folder.path()).arg("--sim"));
    let base = engine.address("http://").await;
    queue_run(&base, "sip:desk@127.0.0.1:5999", json!({ "name": "Sam" }), json!({})).await;
    run_over(&base, 1).await;
    let browser = with_key(&base).await;
    // Times are those of the clock of whoever looks, with its zone.
    let zone = json!({ "cmd": "Emulation.setTimezoneOverride", "params": { "timezoneId": "Asia/Kolkata" } });
    browser.tell("goog/cdp/execute", zone).await;
    browser.open(&format!("{base}/")).await;
    browser
        .until(
            "its zone",
            "document.querySelector('tbody') && document.querySelector('tbody').innerText.includes('GMT+5:30')",
        )
        .await;
    for (path, shown) in [
        ("/", "tbody a"),
        ("/runs/1", "svg.dots a"),
        ("/call", "form.start"),
        ("/agents", "tbody a"),
        ("/agents/1", "h2"),
        ("/simulations/1", "h2"),
    ] {
        browser.open(&format!("{base}{path}")).await;
        browser.until(path, &format!("document.querySelector('main {shown}')")).await;
        looks_right(&browser, path).await;
    }
    recognized_words_are_shown(&browser, &base).await;
    // A dot of the run leads to the answer that it stands for.
    browser.open(&format!("{base}/runs/1")).await;
    browser.until("dots", "document.querySelector('svg.dots a')").await;
    browser.run("document.querySelector('svg.dots a').dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true })); return 1").await;
    let lit = browser
        .until("the answer", "document.querySelector('canvas') && document.querySelector('canvas').dataset.lit")
        .await;
    let turns = ask_json(&base, KEY, "/v1/simulation-result/1/turns").await["turns"].clone();
    let of_agent = |turn: &&Value| turn["speaker"] == "AGENT" && turn["latency_ms"].is_number();
    let first = turns.as_array().and_then(|turns| turns.iter().find(of_agent)).expect("an answer").clone();
    let ms = |name: &str| first[name].as_f64().expect("a position") / 16.0;
    assert_eq!(lit, format!("{}-{}", ms("latency_from_sample"), ms("from_sample")));
    wrong_keys_and_lost_servers_are_said(&browser, engine).await;
}

/// Checks that a call with a real person is in the list of its agent, and shows the speech that was recognized.
async fn recognized_words_are_shown(browser: &Browser, base: &str) {
    let recording = format!("data:audio/wav;base64,{}", STANDARD.encode(stereo()));
    let call = json!({
        "agent_id": "1", "start_time_utc": "2026-01-05T08:00:00Z", "multichannel": true, "recording_base64": recording,
        "participants": [{ "role": "AGENT", "spoke_first": true }, { "role": "USER" }],
    });
    let id = send_json(base, "/v1/evaluate-call", call).await["call_id"].as_str().expect("an id").to_owned();
    let over = async || {
        let log = ask_json(base, KEY, &format!("/v1/retrieve-call-log/{id}")).await["call_log"].clone();
        ["COMPLETED", "INCOMPLETED"].iter().any(|status| log["status"] == *status).then_some(log)
    };
    let mut looks = interval(Duration::from_millis(100));
    // It is heard only while nothing else wants the processor.
    let log = timeout(4 * PATIENCE, async {
        loop {
            looks.tick().await;
            if let Some(log) = over().await {
                return log;
            }
        }
    });
    let log = log.await.expect("it is judged in time");
    let stretches = log["recognized"].as_array().expect("it was transcribed").len();
    browser.open(&format!("{base}/agents/1")).await;
    browser.until("the call", &format!("document.querySelector('a[href=\"/calls/{id}\"]')")).await;
    browser.run(&format!("document.querySelector('a[href=\"/calls/{id}\"]').click(); return 1")).await;
    let rows = "document.querySelector('#s-recognized-words') && document.querySelectorAll('main section:first-of-type tbody tr').length";
    assert_eq!(browser.until("the words", rows).await, json!(stretches));
    looks_right(browser, "a call with a real person").await;
}

/// Checks that each view says that its server is gone while it is open, keeps what it shows, and goes on by itself;
/// one that is opened meanwhile comes when the server does.
async fn each_view_says_that_the_server_is_gone(browser: &Browser) {
    const LOST: &str = "document.querySelector('#notice').textContent.startsWith('The server does not answer')";
    const THERE: &str = "document.querySelector('#notice').hidden && document.querySelector('main h1') && !document.querySelector('main[aria-busy]')";
    let views = [
        "/",
        "/runs/1",
        "/results/1",
        "/call",
        "/agents",
        "/agents/1",
        "/agents/new",
        "/simulations/1",
        "/callers/1",
        "/compare",
        "/review",
        "/watch",
        "/settings",
    ];
    for path in views {
        let go = format!(
            "const link = document.createElement('a'); link.href = {}; document.body.append(link); link.click(); link.remove(); return 1",
            json!(path)
        );
        browser.run(&go).await;
        browser.until(path, THERE).await;
        let heading = browser.run("return document.querySelector('main h1').textContent").await;
        browser.network(false).await;
        browser.until(path, LOST).await;
        assert_eq!(browser.run("return document.querySelector('main h1').textContent").await, heading, "{path}");
        browser.network(true).await;
        browser.until(path, THERE).await;
    }
    browser.network(false).await;
    for path in views {
        let go = format!(
            "const link = document.createElement('a'); link.href = {}; document.body.append(link); link.click(); link.remove(); return 1",
            json!(path)
        );
        browser.run(&go).await;
        let said =
            format!("location.pathname === {} && {LOST} && !document.querySelector('main[aria-busy]')", json!(path));
        browser.until(path, &said).await;
    }
    browser.network(true).await;
    browser
        .until(
            "the last view",
            "document.querySelector('#notice').hidden && document.querySelector('main h1').textContent === 'Settings'",
        )
        .await;
}

/// Checks that a key that is not valid and a server that is gone are said plainly.
async fn wrong_keys_and_lost_servers_are_said(browser: &Browser, engine: Program) {
    browser
        .run("sessionStorage.setItem('ringer-key', 'wrong'); document.querySelector('nav a').click(); return 1")
        .await;
    browser
        .until(
            "the key",
            "document.querySelector('h1') && document.querySelector('h1').textContent === 'This key is not valid'",
        )
        .await;
    looks_right(browser, "a wrong key").await;
    // After a restart the key of a page is not valid any more: where the next one comes from is said.
    let said = browser.run("return document.querySelector('main').innerText").await;
    let said = said.as_str().expect("text");
    assert!(said.contains("/#start=") && said.contains("works once, for ten minutes"), "{said}");
    browser
        .run(&format!(
            "document.getElementById('key').value = {}; document.querySelector('#keyform button').click(); return 1",
            json!(KEY)
        ))
        .await;
    browser.until("the runs", "document.querySelector('tbody a')").await;
    each_view_says_that_the_server_is_gone(browser).await;
    browser.run("document.querySelector('nav a').click(); return 1").await;
    browser.until("the runs", "document.querySelector('tbody a')").await;
    engine.kill().await;
    browser
        .until("the loss", "document.querySelector('#notice').textContent.startsWith('The server does not answer')")
        .await;
    assert_eq!(browser.run("return document.querySelectorAll('tbody a').length > 0").await, true, "nothing is lost");
}
