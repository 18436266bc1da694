//! Monitors, keys, webhooks and suites by clicks; and a key that may only read, which is offered nothing else.

use serde_json::json;

use super::browser::Browser;
use super::stranger::act;
use super::{looks_right, queue_run, run_over, with_key};
use crate::program::{Program, up};

#[tokio::test]
async fn what_is_watched_and_who_has_a_key_is_set_in_the_page() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut engine = Program::start(up(folder.path()).arg("--sim"));
    let base = engine.address("http://").await;
    queue_run(&base, "sip:desk@127.0.0.1:5999", json!({ "name": "Sam" }), json!({})).await;
    run_over(&base, 1).await;
    let browser = with_key(&base).await;
    browser.open(&format!("{base}/watch")).await;
    let made = "await press('New monitor'); await fill('Every', '1h'); await fill('and answers within', '1500'); await press('Watch the agent');
        const card = await ready(() => document.querySelector('.monitor')); const said = card.textContent;
        await press('Pause'); await ready(() => document.querySelector('.monitor .chip').textContent === 'paused'); return said";
    let said = act(&browser, made).await;
    let said = said.as_str().expect("words");
    for part in ["every 1h", "it answers within 1500 ms", "the agent answers and speaks", "Nobody is told"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    looks_right(&browser, "watch").await;
    let gone =
        "await press('Delete'); await press('Really delete'); return ready(() => !document.querySelector('.monitor'))";
    assert_eq!(act(&browser, gone).await, true);

    browser.open(&format!("{base}/settings")).await;
    let key = "await ready(() => text().includes('Language model')); await press('New key'); await fill('Name', 'Reader'); await press('Make a key');
        await ready(() => /rk_[0-9a-f]{40}/.test(document.querySelector('#notice').textContent)); return document.querySelector('#notice').textContent.match(/rk_[0-9a-f]{40}/)[0]";
    let key = act(&browser, key).await;
    let key = key.as_str().expect("a key").to_owned();
    let hook =
        "await press('New webhook'); await fill('Address', 'http://127.0.0.1:9/hook'); await press('Add the webhook');
        await ready(() => document.querySelector('.monitor')); await press('Deliveries');
        return ready(() => text().includes('Nothing was sent yet'))";
    assert_eq!(act(&browser, hook).await, true);
    let missing = act(&browser, "return text()").await;
    assert!(missing.as_str().expect("words").contains("[language_model] base_url"), "{missing}");
    looks_right(&browser, "settings").await;
    assert_eq!(act(&browser, "return ready(() => text().includes('(this one)'))").await, true);

    // What a suite says becomes a scenario with its callers.
    browser.open(&format!("{base}/simulations/new?agent=1")).await;
    let yaml = "version: 1\nconnect: { agent: Desk }\nscenarios:\n  - name: books\n    goal: Book a visit.\n";
    let read = format!(
        "await fill('YAML', {}); await press('Read the suite'); await at(/simulations.[0-9]+$/); return text()",
        json!(yaml)
    );
    let read = act(&browser, &read).await;
    assert!(read.as_str().expect("words").contains("Book a visit."), "{read}");
    a_key_that_reads_is_offered_no_more(&browser, &base, &key).await;
}

/// Goes through the views with a key of scope read; nothing that it may not do can be seen, and no request is refused.
async fn a_key_that_reads_is_offered_no_more(browser: &Browser, base: &str, key: &str) {
    browser.run(&format!("sessionStorage.setItem('ringer-key', {}); return 1", json!(key))).await;
    for path in [
        "/",
        "/runs/1",
        "/results/1",
        "/call",
        "/agents",
        "/agents/1",
        "/simulations/1",
        "/callers/1",
        "/compare",
        "/review?run=1",
        "/watch",
        "/settings",
    ] {
        browser.open(&format!("{base}{path}")).await;
        let seen = act(
            browser,
            "await ready(() => document.body.dataset.scope === 'read' && document.querySelector('main h1') && !document.getElementById('main').hasAttribute('aria-busy'));
             const acts = [...document.querySelectorAll('nav a, main button, main a.button, main summary')].filter(seen).map((one) => one.textContent.trim());
             const writing = /^(New|Add|Change|Copy|Delete|Run$|Run again|Run every|Save the|Save$|Save and|Cancel|Hang up|Let |Link for|Call an agent|Call the sample|Create|Make|Pause|Go on|Try|Revoke|Test|Evaluate|Switch|Call now|The voice|As the agent|The noise)/;
             return acts.filter((one) => writing.test(one)).concat([...document.querySelectorAll('.error')].map((one) => one.textContent).filter(Boolean))",
        )
        .await;
        assert_eq!(seen, json!([]), "{path}");
    }
}
