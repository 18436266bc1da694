//! The first numbers of a call, the same call again, and the strips of its run.

use serde_json::{Value, json};

use super::ask_json;
use super::browser::Browser;
use crate::program::KEY;

/// Checks the eight numbers on top of call 1, measures a stretch by dragging, and copies the call as texts.
pub(super) async fn a_call_tells_most_first(browser: &Browser, base: &str) {
    browser.open(&format!("{base}/results/1")).await;
    with_choices(browser, 1).await;
    let heads = browser
        .run(
            "return [...document.querySelectorAll('.headlines .headline')].map((one) => ({
                 name: one.querySelector('.name').textContent, value: one.querySelector('b').textContent,
                 lit: one.dataset.lit || '', isMissed: one.classList.contains('missed') }))",
        )
        .await;
    let heads = heads.as_array().expect("headlines");
    assert_eq!(heads.len(), 8, "{heads:?}");
    let result = ask_json(base, KEY, "/v1/retrieve-simulation-result/1").await["simulation_result"].clone();
    let metric = |name: &str| {
        let metrics = result["metrics"].as_array().expect("metrics");
        metrics.iter().find(|one| one["name"] == name).and_then(|one| one["value"].as_f64()).expect("a number")
    };
    let (longest, most) = (metric("max_agent_latency"), 3.0);
    let digits = |text: &Value| text.as_str().unwrap_or_default().replace(|c: char| !c.is_ascii_digit(), "");
    assert_eq!(digits(&heads[2]["value"]), format!("{:.0}", longest * 1000.0), "{heads:?}");
    assert_eq!(heads[2]["isMissed"], json!(longest > most), "{heads:?}");
    let cuts =
        format!("agent {}, caller {}", metric("agent_interruption_count"), metric("customer_interruption_count"));
    assert_eq!(heads[3]["value"], json!(cuts));
    let marks = heads[3]["lit"].as_str().unwrap_or_default().split(',').filter(|part| !part.is_empty()).count();
    let counted = metric("agent_interruption_count") + metric("customer_interruption_count");
    assert!(counted > 0.0 && marks as f64 == counted, "{heads:?}");
    let all = browser
        .run(
            "const rest = document.querySelector('.all-numbers');
             const behind = [...rest.querySelectorAll('.more')].map((one) => parseInt(one.textContent, 10));
             return [rest.open, rest.querySelector('summary').textContent, behind.reduce((sum, one) => sum + one, rest.querySelectorAll('.figures li').length)]",
        )
        .await;
    assert_eq!(all, json!([false, format!("All numbers ({})", all[2]), all[2]]));
    let measured = browser
        .run(
            "const canvas = document.querySelector('canvas.lanes');
             const box = canvas.getBoundingClientRect();
             const send = (type, share) => canvas.dispatchEvent(new PointerEvent(type, { clientX: box.left + box.width * share, clientY: box.top + 40, button: 0, bubbles: true }));
             send('pointerdown', 0.25); send('pointermove', 0.3); send('pointermove', 0.5); send('pointerup', 0.5);
             const [from, to] = canvas.dataset.lit.split('-').map(Number);
             return [document.querySelector('.measured').textContent, (to - from) / Number(canvas.getAttribute('aria-valuemax')), to - from]",
        )
        .await;
    assert!((measured[1].as_f64().expect("a share") - 0.25).abs() < 0.01, "{measured}");
    let told = measured[0].as_str().and_then(|text| text.split_once(" ms")).expect("a length").0.replace(',', "");
    assert_eq!(told, format!("{:.0}", measured[2].as_f64().expect("milliseconds")), "{measured}");
    let copied = browser
        .run(
            "const told = [];
             for (const one of document.querySelectorAll('[data-copy]')) {
                 const shown = one.closest('section').querySelector('pre');
                 shown.textContent = '';
                 one.click();
                 for (let n = 0; n < 3000 && !shown.textContent; n += 1) await new Promise((done) => setTimeout(done, 10));
                 told.push([one.dataset.copy, shown.textContent]);
             }
             return told",
        )
        .await;
    let copied: Vec<(String, String)> = serde_json::from_value(copied).expect("texts");
    let text = |name: &str| &copied.iter().find(|(one, _)| one == name).unwrap_or_else(|| panic!("{copied:?}")).1;
    assert!(text("ringer call").contains(&format!("--seed {}", result["seed"])), "{copied:?}");
    assert!(text("ringer call").starts_with("ringer call sip:talks_over@127.0.0.1:5999 --intent "), "{copied:?}");
    assert!(text("curl").contains("\"digital_human_ids\":[1],\"seed\":"), "{copied:?}");
    assert!(text("suite (YAML)").starts_with("version: 1\n"), "{copied:?}");
}

/// Waits for a call that is over, and opens what else can be done with it.
async fn with_choices(browser: &Browser, id: u32) {
    let open = format!(
        "(() => {{
             const [title, again] = ['article h1', '.again'].map((one) => document.querySelector(one));
             if (!again || title.textContent !== 'Call {id}') return false;
             again.open = true;
             return document.querySelector('[data-copy]');
         }})()"
    );
    browser.until("choices", &open).await;
}

/// Calls again with the seed and with another line, and looks at the runs as strips.
pub(super) async fn a_call_is_made_again(browser: &Browser, base: &str) {
    let press = |text: &str| {
        format!(
            "const one = [...document.querySelectorAll('button')].find((one) => one.textContent === '{text}'); one.click(); return 1"
        )
    };
    browser.run(&press("Call again with this seed")).await;
    with_choices(browser, 2).await;
    let seeds = browser
        .run("const of = document.querySelector('article.call').textContent; return of.match(/Seed(\\d+)/)[1]")
        .await;
    let first = ask_json(base, KEY, "/v1/retrieve-simulation-result/1").await["simulation_result"]["seed"].clone();
    assert_eq!(seeds, json!(first.to_string()), "the same caller with the same draws");
    browser
        .run(
            "const [lever, level] = ['Lever', 'Level'].map((name) => document.querySelector('[aria-label=' + name + ']'));
             lever.value = 'connection_quality'; lever.onchange(); level.value = 'low'; return 1",
        )
        .await;
    browser.run(&press("Call with it changed")).await;
    with_choices(browser, 3).await;
    let third = ask_json(base, KEY, "/v1/retrieve-simulation-result/3").await["simulation_result"].clone();
    let human = ask_json(base, KEY, &format!("/v1/digital-human/{}", third["digital_human_id"])).await;
    let human = &human["digital_human"];
    assert_eq!((&human["connection_quality"], &human["name"]), (&json!("low"), &json!("Sam, line low")));
    let of_first = ask_json(base, KEY, "/v1/digital-humans-by-simulation/1").await;
    assert_eq!(of_first["digital_humans"].as_array().map(Vec::len), Some(1), "{of_first}");

    browser.open(&format!("{base}/runs/1")).await;
    let drawn = "(() => { const one = document.querySelector('.strips canvas'); return one && one.getContext('2d').getImageData(0, 0, 200, 32).data.some((value) => value) })()";
    // Strips are drawn when they come into view.
    browser.until("strips", "document.querySelector('.strips canvas')").await;
    browser.run("document.querySelector('.strips').scrollIntoView(); return 1").await;
    browser.until("a strip", drawn).await;
    browser
        .run("document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'n', bubbles: true })); return 1")
        .await;
    let focused = browser.run("return document.activeElement.getAttribute('href')").await;
    assert_eq!(focused, json!("/results/1"));
}
