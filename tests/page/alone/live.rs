//! A call while it goes on: how soon a latency is shown, that no control is taken away, and that it is hung up.

use std::collections::BTreeMap;

use ringer::model::time::Timestamp;
use serde_json::json;

use crate::page::{ask_json, queue_run, send_json, with_key};
use crate::program::{KEY, Program, up};

/// Longest time from a turn until its latency is shown, in milliseconds, in a browser whose timers are on time.
const SHOWN_MS: f64 = 1000.0;

/// Words of the caller, more than are said before the call is hung up.
const INTENT: &str = "Hello, I would like to book an appointment. Tuesday is good for me. Yes, that is right. In the morning, please. \
    My knee hurts. It began last week. I can come at nine.";

/// Notes, in the page, when each latency was first seen, and how late the browser's own timer was at most.
const WATCH: &str = "window.seen = {};
    window.late = 0;
    let due = Date.now() + 100;
    setInterval(() => { late = Math.max(late, Date.now() - due); due = Date.now() + 100; }, 100);
    new MutationObserver(() => {
        for (const one of document.querySelectorAll('.figure[data-kind=latency]')) seen[one.dataset.to] ??= Date.now();
    }).observe(document.body, { subtree: true, childList: true });
    return 1;";

#[tokio::test]
async fn a_latency_is_shown_within_a_second_and_the_call_is_hung_up() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut engine = Program::start(&mut up(folder.path()));
    let base = engine.address("http://").await;
    let sample = send_json(&base, "/v1/sample-agent", json!({})).await["sip_uri"].clone();
    let browser = with_key(&base).await;
    queue_run(&base, sample.as_str().expect("an address"), json!({ "name": "Sam", "intent": INTENT }), json!({})).await;
    browser.open(&format!("{base}/results/1")).await;
    browser.run(WATCH).await;
    browser.until("a latency", "document.querySelector('.figure[data-kind=latency]')").await;
    browser
        .run(
            "window.end = [...document.querySelectorAll('button')].find((one) => one.textContent === 'Hang up');
             document.querySelector('.all-numbers').open = true;
             document.querySelector('.figure[data-kind=latency]').focus();
             window.focused = document.activeElement.textContent;
             window.rows = document.querySelectorAll('.transcript li').length;
             document.querySelector('.ladder details').open = true;
             return 1;",
        )
        .await;
    browser.until("more words", "document.querySelectorAll('.transcript li').length > rows + 1").await;
    let kept = "return [document.activeElement.textContent === focused, end.isConnected, document.querySelector('.ladder details').open, document.querySelector('.chip').textContent]";
    assert_eq!(browser.run(kept).await, json!([true, true, true, "running"]), "what is in use stays");
    // Its sound comes with its end; until then that is said.
    browser.run("document.querySelector('.figure[data-kind=latency]').click(); return 1").await;
    browser.until("a reason", "document.querySelector('.player .note').textContent.includes('when it is over')").await;
    // What is known is not asked for again.
    let asked = "return performance.getEntriesByType('resource').filter((one) => one.name.includes('/turns?')).map((one) => Number(new URL(one.name).searchParams.get('from'))).reduce((most, from) => Math.max(most, from), 0)";
    assert!(browser.run(asked).await.as_i64() > Some(0), "the newest turns alone");
    browser.run("end.click(); return 1").await;
    browser.until("the end", "document.querySelector('.downloads button')").await;
    assert_eq!(browser.run("return end.isConnected").await, false);
    let late = browser.run("return late").await.as_f64().expect("milliseconds");
    let seen: BTreeMap<String, f64> = serde_json::from_value(browser.run("return seen").await).expect("times");
    let result = ask_json(&base, KEY, "/v1/retrieve-simulation-result/1").await["simulation_result"].clone();
    assert_eq!(result["end_reason"], "api_hangup");
    let start = result["start_time"].as_str().and_then(Timestamp::parse).expect("a time").0 as f64;
    let turns = ask_json(&base, KEY, "/v1/simulation-result/1/turns").await["turns"].clone();
    let mut delays: Vec<f64> = Vec::new();
    for turn in turns.as_array().expect("turns").iter().filter(|turn| turn["speaker"] == "AGENT") {
        let ms = |name: &str| turn[name].as_f64().expect("a position") / 16.0;
        let Some(at) = seen.get(&ms("from_sample").to_string()) else { continue };
        assert!(at - start - ms("to_sample") <= SHOWN_MS + 2.0 * late, "after the turn: {at} {start} {late} {turn}");
        delays.push(at - start - ms("from_sample"));
    }
    assert!(!delays.is_empty(), "{seen:?} {turns}");
    // They are known once the agent begins to speak, and most are shown within a second of that too.
    delays.sort_by(f64::total_cmp);
    assert!(delays[0] <= SHOWN_MS + 2.0 * late, "after the turn has begun: {delays:?} {late}");
}
