//! The report of a run, opened from disk in a real Chromium.

use serde_json::{Value, json};

use super::{Bench, DESK, suite};
use crate::page::browser::Browser;
use crate::page::looks_right;
use crate::program::PATIENCE;

/// Clicks every number of the report. It reports those whose call is not shown, whose stretch is not highlighted, or is
/// not played from a second before.
const CLICK_ALL: &str = "
    const wrong = [];
    const seen = {};
    for (const button of document.querySelectorAll('button.at')) {
        button.click();
        const { from, to, call, kind } = button.dataset;
        const box = document.getElementById('call-' + call);
        const audio = box.querySelector('audio');
        const wanted = Math.max(0, Number(from) - 1000);
        for (let n = 0; n < 200 && !(Math.abs(audio.currentTime * 1000 - wanted) <= 20 && !audio.seeking); n += 1) {
            await new Promise((done) => setTimeout(done, 20));
        }
        const at = audio.currentTime * 1000;
        const lit = box.querySelector('canvas').dataset.lit;
        seen[kind] = (seen[kind] || 0) + 1;
        if (!box.open || lit !== from + '-' + to || Math.abs(at - wanted) > 20 || Number(to) < Number(from)) {
            wrong.push([button.textContent, kind, from, to, lit, at, box.open]);
        }
    }
    return [wrong, seen];";

/// The figures of the report that stand without a way to their stretch.
const WITHOUT_A_WAY: &str = "
    const cells = [...document.querySelectorAll('td')].filter((cell) => /^[0-9.,]+( m?s)?$/.test(cell.textContent));
    return cells.filter((cell) => !cell.querySelector('button.at') && !cell.dataset.index).map((cell) => cell.textContent);";

#[tokio::test]
async fn each_number_of_the_report_leads_to_its_stretch_without_a_network() {
    let bench = Bench::new();
    let talks = "    goal: I need an appointment. The third of March. Yes please.\n    endpointing_delay: 1\n    max_seconds: 90\n";
    let scenarios = format!(
        "  - name: books\n{talks}    expect: [{{ heard: booked }}, {{ metric: p95_agent_latency, at_most: 2 }}]
  - name: fails\n{talks}    expect:\n      - {{ heard: \"</script><b>pineapple\" }}\n      - {{ metric: max_agent_latency, at_most: 0.1 }}
      - {{ metric: num_turns, at_most: 1 }}\n      - {{ ended_by: agent, within_s: 80 }}\n"
    );
    bench.write("suite.yaml", &suite(DESK, &scenarios));
    let ran = bench.run(&["suite.yaml", "--sim", "--repeat", "2"]).await;
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);

    let browser = Browser::start().await;
    browser.tell("timeouts", json!({ "script": PATIENCE.as_millis() as u64 })).await;
    browser.open(&format!("file://{}", bench.path().join("ringer-results/report.html").display())).await;
    browser.until("the report", "document.body.dataset.ready").await;
    let clicked = browser.run(CLICK_ALL).await;
    assert_eq!(clicked[0], json!([]), "{clicked}");
    for kind in ["row", "latency", "figure", "expectation", "words", "event"] {
        assert!(clicked[1][kind].as_u64().is_some_and(|count| count > 0), "{kind}: {clicked}");
    }
    assert_eq!(browser.run(WITHOUT_A_WAY).await, json!([]));
    latencies_are_those_that_were_measured(&browser, &bench.lines()).await;
    assert_eq!(browser.run("return document.querySelectorAll('main b').length").await, 0, "a text is no element");
    let asked = "return performance.getEntriesByType('resource').map((one) => one.name).filter((name) => !name.startsWith('data:'))";
    assert_eq!(browser.run(asked).await, json!([]));
    looks_right(&browser, "a report").await;
}

/// Checks that the latencies that are shown are as long as their stretches, and are those of the results.
async fn latencies_are_those_that_were_measured(browser: &Browser, lines: &[Value]) {
    let shown = "return [...document.querySelectorAll('details[id]')].map((box) => [box.dataset.scenario, Number(box.dataset.seed),
        [...box.querySelectorAll('button[data-kind=latency]')].map((one) => [parseFloat(one.textContent.replace(',', '')), one.dataset.to - one.dataset.from])])";
    let shown: Vec<(String, u64, Vec<[f64; 2]>)> = serde_json::from_value(browser.run(shown).await).expect("numbers");
    assert_eq!(shown.len(), lines.len());
    for (scenario, seed, latencies) in shown {
        let line = lines.iter().find(|line| line["scenario"] == scenario.as_str() && line["seed"] == seed);
        let measured: Vec<f64> =
            serde_json::from_value(line.expect("it is a result")["latency"].clone()).expect("numbers");
        assert!(!measured.is_empty() && measured.len() == latencies.len(), "{measured:?} {latencies:?}");
        for ([shown, stretch], measured) in latencies.iter().zip(&measured) {
            assert_eq!((*shown, stretch.round()), ((measured * 1000.0).round(), shown.round()), "{measured}");
        }
    }
}
