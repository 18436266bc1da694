//! The spans of an agent in the page of its call: drawn below its lane at their place, and listed.

use serde_json::{Value, json};

use super::{looks_right, queue_run, run_over, send_json, with_key};
use crate::program::{Program, up};

/// Returns colours of the canvas, `below` rows under the lanes, at these milliseconds; true where a span is drawn.
fn colours(times: &[i64], below: i64) -> String {
    format!(
        "const canvas = document.querySelector('canvas.lanes');
         const pen = canvas.getContext('2d'), scale = canvas.width / canvas.clientWidth;
         const length = Number(canvas.getAttribute('aria-valuemax'));
         const lane = parseInt(getComputedStyle(canvas).getPropertyValue('--lane'), 10) || 74;
         const ink = getComputedStyle(canvas).getPropertyValue('--k-span').trim();
         const y = Math.round((18 + 2 * lane + 26 + {below} * 13 + 2) * scale);
         const hex = (at) => {{
           const x = Math.round(at / length * canvas.clientWidth * scale);
           const [r, g, b] = pen.getImageData(x, y, 1, 1).data;
           return '#' + [r, g, b].map((one) => one.toString(16).padStart(2, '0')).join('');
         }};
         return {times}.map((at) => hex(at) === ink);",
        times = json!(times)
    )
}

#[tokio::test]
async fn spans_of_the_agent_are_at_their_place() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut engine = Program::start(up(folder.path()).arg("--sim"));
    let base = engine.address("http://").await;
    queue_run(&base, "sip:desk@127.0.0.1:5999", json!({ "name": "Sam" }), json!({})).await;
    run_over(&base, 1).await;
    // The second lies within the first, and the third after both: it has its place in the first row.
    let spans = json!([
        { "name": "turn <b>1</b>", "start_offset_ms": 1000, "end_offset_ms": 2000 },
        { "name": "llm", "start_offset_ms": 1200, "end_offset_ms": 1800 },
        { "name": "turn 2", "start_offset_ms": 2500, "end_offset_ms": 3500 },
    ]);
    let added = send_json(&base, "/v1/simulation-result/1/spans", spans).await;
    assert_eq!(added["accepted"], 3, "{added}");
    let browser = with_key(&base).await;
    browser.look(1440, false).await;
    browser.open(&format!("{base}/results/1")).await;
    let count = browser.until("the spans", "document.querySelector('canvas.lanes') && document.querySelector('canvas.lanes').dataset.spans === '3' && document.querySelectorAll('.events li[data-kind=span]').length").await;
    assert_eq!(count, 3);
    let shown = |row: i64, times: &'static [i64]| {
        let (browser, script) = (&browser, colours(times, row));
        async move { browser.run(&script).await }
    };
    // The upper edge, where no words are.
    browser.until("the drawing", &format!("(() => {{ {} }})().some((one) => one)", colours(&[1500], 0))).await;
    assert_eq!(shown(0, &[900, 1500, 2250, 3000, 3700]).await, json!([false, true, false, true, false]));
    assert_eq!(shown(1, &[1100, 1500, 1950, 3000]).await, json!([false, true, false, false]));
    let text = browser
        .run("return [...document.querySelectorAll('.events li[data-kind=span]')].map((one) => one.innerText)")
        .await;
    let told: Vec<&str> = text.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert!(told[0].contains("turn <b>1</b>, 1,000 ms"), "{told:?}");
    looks_right(&browser, "a call with spans of its agent").await;
}
