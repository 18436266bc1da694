//! Calls that are kept, with every kind of event: each number, row and event is clicked, and held against the timeline;
//! calls of an hour and runs of 200 results.

use std::path::Path;

use ringer::store::Location;
use ringer_media::recording::WAV_HEADER;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::browser::Browser;
use super::{ask_json, click_all, looks_right, queue_run, run_over, with_key};
use crate::databases;
use crate::program::{KEY, Program, up};

const HOUR_MS: i64 = 3_600_000;
/// Bytes of a millisecond of a recording.
const MS_BYTES: i64 = 64;
/// Most bytes that a call of an hour loads before it is played.
const LOADED: f64 = 200_000.0;

/// An engine over one run of one call, whose agent speaks over its caller; `change` makes the database another one
/// before it.
struct Kept {
    base: String,
    browser: Browser,
    _engine: Program,
    _folder: TempDir,
}

impl Kept {
    async fn start(human: Value, change: impl AsyncFnOnce(&Path, Parts) -> String) -> Kept {
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        let mut engine = Program::start(up(folder.path()).arg("--sim"));
        let base = engine.address("http://").await;
        let run = queue_run(&base, "sip:talks_over@127.0.0.1:5999", human, json!({})).await;
        assert_eq!(run["simulation_result_ids"], json!(["1"]));
        run_over(&base, 1).await;
        let parts = Parts {
            timeline: ask_json(&base, KEY, "/v1/simulation-result/1/timeline").await["events"].clone(),
            transcript: ask_json(&base, KEY, "/v1/simulation-result/1/transcript").await,
        };
        engine.kill().await;
        let sql = change(folder.path(), parts).await;
        databases::run(&Location::File(folder.path().join("ringer.db")), &sql).await;
        let mut engine = Program::start(up(folder.path()).arg("--sim"));
        let base = engine.address("http://").await;
        let browser = with_key(&base).await;
        Kept { base, browser, _engine: engine, _folder: folder }
    }

    async fn ask(&self, path: &str) -> Value {
        ask_json(&self.base, KEY, path).await
    }

    async fn open(&self, path: &str, shown: &str) {
        self.browser.open(&format!("{}{path}", self.base)).await;
        self.browser.until(path, &format!("document.querySelector('{shown}')")).await;
    }
}

/// Kind of a number, and the stretch that it tells of, in milliseconds.
type Stretch = (String, f64, f64);

/// Data of the call as they are kept.
struct Parts {
    timeline: Value,
    transcript: Value,
}

/// Returns a statement that puts a document into a table.
fn put_doc(table: &str, column: &str, id: i64, doc: &Value) -> String {
    format!("UPDATE {table} SET doc = '{}' WHERE {column} = {id};\n", doc.to_string().replace('\'', "''"))
}

/// Adds an event of every kind that the call had not, and a turn without words.
async fn all_kinds(_: &Path, mut parts: Parts) -> String {
    let events = parts.timeline.as_array_mut().expect("events");
    let last = events.iter().filter_map(|event| event["seq"].as_i64()).max().expect("events");
    for event in
        events.iter_mut().filter(|event| event["event"] == "network" && event["offset_ms"].as_f64() > Some(12_000.0))
    {
        event["data"]["lost"] = json!(7);
    }
    let added = [
        ("probe", "dh", 13_000, json!({ "kind": "short_sound" })),
        ("hold", "agent", 14_000, json!({})),
        ("unhold", "agent", 15_000, json!({})),
        ("session.answered", "agent", 15_500, json!({ "code": 488 })),
        ("late_turn", "dh", 16_000, json!({ "late_ms": 300 })),
        ("rx_underrun", "agent", 16_500, json!({})),
        ("tool_call", "agent", 17_000, json!({ "name": "<b>book</b>" })),
    ];
    for ((event, side, at, data), seq) in added.into_iter().zip(last + 1..) {
        events.push(
            json!({ "seq": seq, "event": event, "side": side, "offset_ms": at, "sample": at * 16, "data": data }),
        );
    }
    let entries = parts.transcript["entries"].as_array_mut().expect("entries");
    (entries[2]["utterance"], entries[2]["text_missing"]) = (json!(""), json!("unclear"));
    let metric = json!([{
        "metric_id": "00000000-0000-4000-8000-000000000001", "name": "Polite", "response_type": "pass_fail",
        "response_value": "pass", "status": "evaluated", "reasoning": "It said please.",
    }]);
    let result = format!(
        "UPDATE results SET doc = json_set(doc, '$.body.engine_quality.lost_packets', 7, \
         '$.body.metadata.platform_call_id', 'call-77', \
         '$.body.own_faults', json('[{{\"code\":\"report_missing\",\"at_ms\":null,\"turn\":null}}]'), \
         '$.body.engine_quality.trusted', json('false'), '$.body.engine_quality.untrusted_reason', 'too late', \
         '$.body.evaluations[0].goal_success', json('true'), \
         '$.body.evaluations[0].goal_reasoning', 'It was booked.', \
         '$.body.evaluations[0].custom_metrics', json('{metric}')) WHERE id = 1;\n"
    );
    put_doc("timelines", "result_id", 1, &parts.timeline)
        + &put_doc("transcripts", "result_id", 1, &parts.transcript)
        + &result
}

#[tokio::test]
async fn a_call_tells_most_first_and_is_made_again() {
    let human = json!({ "name": "Sam", "interruptions": { "type": "high" } });
    let kept = Kept::start(human, async |_, _| String::new()).await;
    super::glance::a_call_tells_most_first(&kept.browser, &kept.base).await;
    super::glance::a_call_is_made_again(&kept.browser, &kept.base).await;
}

#[tokio::test]
async fn every_number_row_and_event_of_a_call_leads_to_its_place() {
    let kept = Kept::start(json!({ "name": "Sam", "interruptions": { "type": "high" } }), all_kinds).await;
    kept.open("/results/1", ".downloads button").await;
    numbers_are_of_the_timeline(&kept).await;
    assert_eq!(kept.browser.run(&click_all(".figures .figure")).await, json!([]));
    assert_eq!(kept.browser.run(&click_all(".events .figure")).await, json!([]));
    stretches_end_and_repeat(&kept).await;
    counts_light_their_marks(&kept).await;
    events_are_filtered(&kept).await;
    rows_seek_and_follow(&kept).await;
    keys_tracks_and_speeds(&kept).await;
    reasons_are_told(&kept).await;
    a_metric_is_overruled(&kept).await;
    looks_right(&kept.browser, "a call with everything").await;
}

/// Checks that the stretch of each number is where the timeline says.
async fn numbers_are_of_the_timeline(kept: &Kept) {
    let timeline = kept.ask("/v1/simulation-result/1/timeline").await;
    let length = kept.ask("/v1/retrieve-simulation-result/1").await["simulation_result"]["duration_ms"].as_f64();
    let times = timeline["events"].as_array().expect("events").iter();
    let last = times.filter_map(|event| event["offset_ms"].as_f64()).max_by(f64::total_cmp);
    let length = length.zip(last).map(|(length, last)| length.max(last));
    let mut expect: Vec<Stretch> = Vec::new();
    let turns = kept.ask("/v1/simulation-result/1/turns").await;
    for one in turns["overlaps"].as_array().expect("overlaps") {
        let (at, ms) = (one["at_sample"].as_f64().expect("a position") / 16.0, |name: &str| one[name].as_f64());
        let is_counted = one["counted"] == true;
        let kind = if is_counted { "overlap" } else { "not_counted" };
        expect.push((kind.into(), at, at + ms("overlap_ms").expect("a length")));
        expect.extend(ms("stop_ms").filter(|_| is_counted).map(|stop| ("stop".into(), at, at + stop)));
    }
    let mut lost = 0;
    for event in timeline["events"].as_array().expect("events") {
        let (at, data) = (event["offset_ms"].as_f64().expect("a time"), &event["data"]);
        match event["event"].as_str().expect("a name") {
            "late_turn" => expect.push(("late_turn".into(), at - 300.0, at)),
            "network" if data["lost"].as_i64() > Some(lost) => {
                lost = data["lost"].as_i64().expect("a count");
                // The packets that were lost are a number of the whole call too, and lie in the same stretch.
                expect.extend(["loss", "lost_packets"].map(|kind| (kind.into(), at - 1000.0, at)));
            }
            _ => {}
        }
    }
    expect.push(("agent_snr".into(), 0.0, length.expect("a length")));
    let shown = "const kinds = ['overlap', 'not_counted', 'stop', 'late_turn', 'loss', 'agent_snr', 'lost_packets'];
        const all = [...document.querySelectorAll('.figures .figure')].map((one) => [one.dataset.kind, Number(one.dataset.from), Number(one.dataset.to)]);
        return all.filter(([kind]) => kinds.includes(kind));";
    let mut shown: Vec<Stretch> = serde_json::from_value(kept.browser.run(shown).await).expect("numbers");
    let order = |one: &Stretch, other: &Stretch| one.partial_cmp(other).expect("numbers");
    expect.sort_by(order);
    shown.sort_by(order);
    assert_eq!(shown, expect);
    for kind in ["overlap", "not_counted", "stop"] {
        assert!(expect.iter().any(|one| one.0 == kind), "{kind}: {expect:?}");
    }
    // Nobody speaks between the turns that the API tells of.
    let (mut end, mut silences): (f64, Vec<[f64; 2]>) = (0.0, Vec::new());
    for turn in turns["turns"].as_array().expect("turns") {
        let ms = |name: &str| turn[name].as_f64().expect("a position") / 16.0;
        if ms("from_sample") - end >= 2000.0 {
            silences.push([end, ms("from_sample")]);
        }
        end = f64::max(end, ms("to_sample"));
    }
    let dead = "return [...document.querySelectorAll('.figures [data-kind=dead_air]')].map((one) => [Number(one.dataset.from), Number(one.dataset.to)])";
    let dead: Vec<[f64; 2]> = serde_json::from_value(kept.browser.run(dead).await).expect("stretches");
    assert_eq!(dead, silences);
}

/// Checks that each kind of event is listed at its time; a box hides its kind.
async fn events_are_filtered(kept: &Kept) {
    let listed = "return [...document.querySelectorAll('.events li')].map((one) => [one.dataset.kind, Number(one.querySelector('button').dataset.from)])";
    let before: Vec<(String, f64)> = serde_json::from_value(kept.browser.run(listed).await).expect("events");
    for wanted in [
        ("probe", 13_000.0),
        ("hold", 14_000.0),
        ("hold", 15_000.0),
        ("codec", 15_500.0),
        ("late_turn", 16_000.0),
        ("loss", 16_500.0),
        ("tool_call", 17_000.0),
    ] {
        assert!(before.iter().any(|(kind, at)| (kind.as_str(), *at) == wanted), "{wanted:?} {before:?}");
    }
    for kind in ["barge_in", "dtmf"] {
        assert!(before.iter().any(|(one, _)| one == kind), "{kind} {before:?}");
    }
    // Each kind has a shape of its own, and a mark under the pointer tells its name.
    let shapes = "const shapes = [...document.querySelectorAll('.toggles .mark')].map((one) => one.textContent);
        const canvas = document.querySelector('canvas');
        const box = canvas.getBoundingClientRect();
        document.querySelector('[aria-label=\"Show the whole call\"]').click();
        const [at, whole] = [16000, Number(canvas.getAttribute('aria-valuemax'))];
        canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + (at / whole) * box.width, clientY: box.top + 60, bubbles: true }));
        return [shapes.length > 5 && new Set(shapes).size === shapes.length, canvas.title.includes('The Digital Human was 300 ms late')];";
    assert_eq!(kept.browser.run(shapes).await, json!([true, true]));
    let hide = "const box = [...document.querySelectorAll('.toggles label')].find((one) => one.textContent.endsWith('Hold')).querySelector('input');
        box.click(); return box.checked;";
    assert_eq!(kept.browser.run(hide).await, false);
    let after: Vec<(String, f64)> = serde_json::from_value(kept.browser.run(listed).await).expect("events");
    assert_eq!(after.len(), before.len() - 2);
    assert!(after.iter().all(|(kind, _)| kind != "hold"));
}

/// Checks that a stretch is played to half a second behind its end, and over and over where it is asked for again.
async fn stretches_end_and_repeat(kept: &Kept) {
    let played = kept
        .browser
        .run(
            "const audio = document.querySelector('audio');
             const ready = async (is) => { for (let n = 0; n < 2000 && !is(); n += 1) await new Promise((done) => setTimeout(done, 10)); return is(); };
             document.querySelector('.player select').value = '2';
             document.querySelector('.player select').dispatchEvent(new Event('change'));
             const button = document.querySelector('.figures [data-kind=stop]');
             button.click();
             await ready(() => !audio.paused);
             await ready(() => audio.paused);
             const behind = audio.currentTime * 1000 - Number(button.dataset.to);
             const told = await ready(() => document.querySelector('.player .hidden[role=status]').textContent.startsWith('Paused at '));
             button.click();
             await ready(() => !audio.paused && audio.currentTime * 1000 > Number(button.dataset.to));
             const isBack = await ready(() => audio.currentTime * 1000 < Number(button.dataset.to) - 200);
             const plays = !audio.paused;
             document.querySelector('.player .play').click();
             document.querySelector('.player select').value = '1';
             document.querySelector('.player select').dispatchEvent(new Event('change'));
             return [behind, told, isBack, plays];",
        )
        .await;
    let behind = played[0].as_f64().expect("milliseconds");
    assert!((480.0..1500.0).contains(&behind), "{played}");
    assert_eq!((&played[1], &played[2], &played[3]), (&json!(true), &json!(true), &json!(true)), "{played}");
}

/// Checks that a click on a count lights as many stretches as it counts, and that there is a mark for each.
async fn counts_light_their_marks(kept: &Kept) {
    let metrics = kept.ask("/v1/retrieve-simulation-result/1").await["simulation_result"]["metrics"].clone();
    let shown = kept
        .browser
        .run(
            "const canvas = document.querySelector('canvas');
             const marks = (side) => [...document.querySelectorAll('.events li[data-kind=barge_in]')].filter((one) => one.textContent.includes('by ' + side)).map((one) => one.querySelector('button').dataset.from).sort();
             const lit = (kind) => { const one = document.querySelector('.figures [data-kind=' + kind + ']'); if (one.tagName !== 'BUTTON') return []; one.click(); return canvas.dataset.lit.split(',').map((part) => part.split('-')[0]).sort(); };
             const told = [lit('agent_interruption_count'), marks('the agent'), lit('customer_interruption_count'), marks('the Digital Human'), lit('num_turns')];
             document.querySelector('audio').pause();
             return told;",
        )
        .await;
    let count = |name: &str| {
        let metrics = metrics.as_array().expect("metrics").iter();
        metrics.clone().find(|one| one["name"] == name).and_then(|one| one["value"].as_u64()).expect("a count")
    };
    let lit = |at: usize| shown[at].as_array().expect("stretches").len() as u64;
    let wanted = ["agent_interruption_count", "customer_interruption_count"].map(count);
    assert_eq!([lit(0), lit(2)], wanted, "{shown}");
    assert_eq!((&shown[0], &shown[2]), (&shown[1], &shown[3]));
    assert_eq!(lit(4), count("num_turns"), "{shown}");
    assert!(wanted[0] > 0, "there is something to count");
}

/// Checks that a row of the transcript seeks, is marked while it is heard, and tells why it has no words.
async fn rows_seek_and_follow(kept: &Kept) {
    let entries = kept.ask("/v1/simulation-result/1/transcript").await["entries"].clone();
    let starts: Vec<Value> =
        entries.as_array().expect("entries").iter().map(|one| one["start_offset_ms"].clone()).collect();
    let sought = kept
        .browser
        .run(
            "const rows = [...document.querySelectorAll('.transcript li')];
             return rows.map((row, number) => {
                 // The time in a row and the row itself do the same.
                 (number % 2 ? row : row.querySelector('button')).click();
                 const now = document.querySelector('.transcript li.now');
                 return [Math.round(document.querySelector('audio').currentTime * 1000), now === row];
             });",
        )
        .await;
    let sought: Vec<(f64, bool)> = serde_json::from_value(sought).expect("positions");
    assert_eq!(sought.len(), starts.len());
    for ((at, is_marked), start) in sought.iter().zip(&starts) {
        let start = start.as_f64().expect("a time");
        assert!((at - start).abs() <= 20.0 && *is_marked, "{at} {start} {is_marked}");
    }
    let script = "const rows = [...document.querySelectorAll('.transcript li')].map((row) => row.textContent);
        return [rows[2].includes('(words not understood: it was not clear enough)'), rows.some((text) => text.includes('interrupted'))]";
    assert_eq!(kept.browser.run(script).await, json!([true, true]));
}

/// Checks that keys work wherever they mean nothing else, one side is heard alone, and speeds change.
async fn keys_tracks_and_speeds(kept: &Kept) {
    let pressed = kept
        .browser
        .run(
            "const audio = document.querySelector('audio');
             audio.pause();
             const play = document.querySelector('.player .play');
             const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
             const at = () => Math.round(audio.currentTime * 1000);
             const heard = async (wanted) => { for (let n = 0; n < 6000 && audio.paused === wanted; n += 1) await new Promise((done) => setTimeout(done, 10)); return !audio.paused; };
             document.querySelector('.transcript button').click();
             const start = at();
             // A button in focus takes the space for itself, and leaves the other keys.
             play.focus();
             const moved = [];
             for (const key of ['l', 'ArrowRight', 'ArrowLeft', 'j', 'L']) { press(key); moved.push(at() - start); }
             const left = press(' ');
             play.blur();
             const played = [];
             for (const [key, is] of [[' ', true], ['k', false], ['K', true], [' ', false]]) { press(key); played.push((await heard(is)) === is); }
             return [moved, left, played];",
        )
        .await;
    assert_eq!(pressed, json!([[10_000, 11_000, 10_000, 0, 10_000], true, [true, true, true, true]]));
    let other = kept
        .browser
        .run(
            "const audio = document.querySelector('audio');
             const ready = async (is) => { for (let n = 0; n < 6000 && !is(); n += 1) await new Promise((done) => setTimeout(done, 10)); return is(); };
             const speed = document.querySelector('.player select');
             speed.value = '2';
             speed.dispatchEvent(new Event('change'));
             document.querySelector('.player .play').click();
             await ready(() => !audio.paused);
             const [src, at, from] = [audio.src, audio.currentTime, performance.now()];
             document.querySelector('.player input[value=\"1\"]').click();
             const isSame = audio.src === src && !audio.paused;
             const goesOn = await ready(() => audio.currentTime > at + 0.3);
             const [off, passed] = [audio.currentTime - at, (performance.now() - from) / 1000];
             audio.pause();
             return [isSame, goesOn, audio.playbackRate, off < 2 * passed + 1];",
        )
        .await;
    assert_eq!(other, json!([true, true, 2, true]), "the agent alone, without a break, as fast as before");
}

/// Checks the verdict, the judge's words, metrics and what the engine says of itself.
async fn reasons_are_told(kept: &Kept) {
    let text = kept.browser.run("return document.querySelector('#s-why').closest('section').innerText").await;
    let text = text.as_str().expect("text");
    let own = [
        "It was booked.",
        "Polite",
        "It said please.",
        "are not to be relied on: too late",
        "Packets lost by the network",
    ];
    // What its platform says of the call, and that a report on it is missing.
    for part in own.into_iter().chain([
        "report_missing",
        "The platform's report on the tool calls did not come",
        "Check its webhooks",
    ]) {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Each member of the metadata stands in the card of the call, or in the line of those that stand elsewhere.
    let metadata = kept.ask("/v1/retrieve-simulation-result/1").await["simulation_result"]["metadata"].clone();
    let names: Vec<&String> = metadata.as_object().expect("an object").keys().collect();
    let missing = format!(
        "const shown = [...document.querySelectorAll('[data-member]')].map((one) => one.dataset.member); return {}.filter((name) => !shown.includes(name))",
        json!(names)
    );
    assert_eq!(kept.browser.run(&missing).await, json!([]), "{names:?}");
    let card = kept.browser.run("return document.querySelector('#s-this-call').closest('section').innerText").await;
    for part in ["Call at the platform", "call-77", "Seed", "Codec"] {
        assert!(card.as_str().is_some_and(|card| card.contains(part)), "{part}: {card}");
    }
}

/// Checks that a custom metric is overruled; both values are seen, and what was changed.
async fn a_metric_is_overruled(kept: &Kept) {
    let sent = "const form = document.querySelector('form.review');
        form.reviewer.value = 'Ann';
        const field = (label) => form.querySelector('[aria-label=\"' + label + '\"]');
        field('Polite').value = 'fail';
        field('Polite: notes').value = 'It was rude.';
        form.human_pronunciation_score.value = '55.5';
        form.override_pronunciation_reason_code.value = 'accent';
        form.querySelector('button').click();
        return field('Polite').tagName;";
    assert_eq!(kept.browser.run(sent).await, "SELECT");
    kept.browser.until("the audit", "document.querySelector('.audit')").await;
    let shown = "const rows = [...document.querySelectorAll('#s-why ~ .scroll tr')].map((row) => row.innerText.replace(/\\s+/g, ' '));
        return [rows.find((row) => row.startsWith('Polite')), rows.find((row) => row.startsWith('Pronunciation')), document.querySelector('.audit').innerText];";
    let shown: [String; 3] = serde_json::from_value(kept.browser.run(shown).await).expect("texts");
    assert!(shown[0].contains("pass fail It said please. It was rude."), "{shown:?}");
    assert!(shown[1].contains("55.5 accent"), "{shown:?}");
    assert!(shown[2].contains("Polite: human response value: null \u{2192} \"fail\""), "{shown:?}");
    let result = kept.ask("/v1/retrieve-simulation-result/1").await["simulation_result"]["evaluations"][0].clone();
    assert_eq!(result["custom_metrics"][0]["override_notes"], "It was rude.");
    assert_eq!(result["human_pronunciation_score"], 55.5);
}

/// Returns an event or a row, so much later.
fn later(part: &Value, by_ms: i64) -> Value {
    const TIMES: [&str; 3] = ["offset_ms", "start_offset_ms", "end_offset_ms"];
    const SAMPLES: [&str; 3] = ["sample", "from_sample", "end_sample"];
    let moved = |name: &str, value: &Value| {
        let by = match name {
            name if TIMES.contains(&name) => by_ms,
            name if SAMPLES.contains(&name) => by_ms * 16,
            _ => return later(value, by_ms),
        };
        let whole = value.as_i64().map(|at| json!(at + by));
        whole.or_else(|| value.as_f64().map(|at| json!(at + by as f64))).unwrap_or(Value::Null)
    };
    match part {
        Value::Array(parts) => parts.iter().map(|part| later(part, by_ms)).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), moved(name, value))).collect(),
        other => other.clone(),
    }
}

/// Lets the call last for an hour, and repeats its result in the run until they are 200.
async fn an_hour_and_200_results(folder: &Path, parts: Parts) -> String {
    let events = parts.timeline.as_array().expect("events");
    let name = |event: &&Value| event["event"].as_str().unwrap_or_default().to_owned();
    let end = events.iter().find(|event| event["event"] == "call.ended").expect("an end");
    let length = end["offset_ms"].as_f64().expect("a time").ceil() as i64;
    let times = HOUR_MS / length;
    let is_between = |event: &&Value| !name(event).starts_with("call.");
    let mut hour: Vec<Value> = events
        .iter()
        .filter(|event| name(event).starts_with("call.") && name(event) != "call.ended")
        .cloned()
        .collect();
    hour.extend((0..times).flat_map(|n| events.iter().filter(is_between).map(move |event| later(event, n * length))));
    hour.push(later(end, HOUR_MS - length));
    for (seq, event) in hour.iter_mut().enumerate() {
        event["seq"] = json!(seq);
    }
    let mut transcript = parts.transcript.clone();
    let entries = parts.transcript["entries"].as_array().expect("entries");
    transcript["entries"] =
        (0..times).flat_map(|n| entries.iter().map(move |entry| later(entry, n * length))).collect();
    let recording = folder.join("results/1/recording.wav");
    let mut head = std::fs::read(&recording).expect("a recording")[..WAV_HEADER].to_vec();
    let bytes = (HOUR_MS * MS_BYTES) as u32;
    head[4..8].copy_from_slice(&(bytes + WAV_HEADER as u32 - 8).to_le_bytes());
    head[WAV_HEADER - 4..].copy_from_slice(&bytes.to_le_bytes());
    std::fs::write(&recording, head).expect("the folder is writable");
    let file = std::fs::File::options().write(true).open(&recording).expect("a recording");
    file.set_len(WAV_HEADER as u64 + u64::from(bytes)).expect("there is space: it is silence");
    let mut sql = format!(
        "UPDATE results SET doc = json_set(doc, '$.body.duration_ms', {HOUR_MS}, '$.body.duration', {}) WHERE id = 1;\n\
         CREATE TEMP TABLE one AS SELECT * FROM results WHERE id = 1;\n",
        HOUR_MS / 1000
    );
    sql += &put_doc("timelines", "result_id", 1, &json!(hour));
    sql += &put_doc("transcripts", "result_id", 1, &transcript);
    for id in 1001..1200 {
        sql += &format!("UPDATE one SET id = {id};\nINSERT INTO results SELECT * FROM one;\n");
    }
    sql
}

/// Checks that the sound at the end of an hour begins within a second, and that no more is asked for than is heard.
async fn a_part_of_the_hour_is_heard(kept: &Kept) {
    let heard = kept
        .browser
        .run(
            "const audio = document.querySelector('audio');
             const ready = async (is) => { for (let n = 0; n < 2000 && !is(); n += 1) await new Promise((done) => setTimeout(done, 10)); return is(); };
             document.querySelector('.player .play').click();
             const plays = await ready(() => audio.currentTime > 0.2);
             const asked = performance.getEntriesByType('resource').filter((one) => one.name.includes('/recording'));
             document.querySelector('.player .play').click();
             return [plays, document.querySelector('.player .time').textContent.startsWith('59:'), asked.length, asked.every((one) => one.name.includes('&from_ms=35')), Math.max(...asked.map((one) => one.encodedBodySize)), Math.max(...asked.map((one) => one.duration))];",
        )
        .await;
    let figure = |at: usize| heard[at].as_f64().expect("a figure");
    assert_eq!((&heard[0], &heard[1], &heard[3]), (&json!(true), &json!(true), &json!(true)), "{heard}");
    assert!(figure(2) >= 1.0 && figure(4) < 5_000_000.0 && figure(5) < 1000.0, "{heard}");
}

/// Checks that many answers are drawn as bars which count each of them, and that a click on one shows its results.
async fn many_answers_are_a_histogram(kept: &Kept) {
    let answers = kept.ask("/v1/retrieve-simulation-result/1").await["simulation_result"]["latency"].clone();
    let answers = 200 * answers.as_array().expect("latencies").len();
    let bars = kept
        .browser
        .run(
            "const bars = [...document.querySelectorAll('svg .bar')];
             const sum = bars.reduce((all, one) => all + Number(one.dataset.count), 0);
             bars[0].dispatchEvent(new MouseEvent('click', { bubbles: true }));
             const filter = document.querySelector('#s-results + .downloads');
             const shown = [document.querySelectorAll('tbody a[href^=\"/results/\"]').length, filter.textContent.startsWith('Only: an answer of')];
             filter.querySelector('button').click();
             return [sum, ...shown, document.querySelectorAll('tbody a[href^=\"/results/\"]').length, document.querySelectorAll('svg circle').length];",
        )
        .await;
    assert_eq!(bars, json!([answers, 200, true, 200, 0]));
}

#[tokio::test]
async fn a_call_of_an_hour_and_a_run_of_200_results_are_shown() {
    let kept = Kept::start(json!({ "name": "Sam" }), an_hour_and_200_results).await;
    // The outline is made at the first asking.
    kept.ask("/v1/simulation-result/1/peaks?zoom=0").await;
    kept.open("/results/1", ".figures .figure").await;
    let loaded = kept
        .browser
        .run(
            "const all = performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'));
             return [all.reduce((sum, one) => sum + one.transferSize, 0), all.some((one) => one.name.includes('/recording'))]",
        )
        .await;
    let (bytes, is_heard): (f64, bool) = serde_json::from_value(loaded).expect("figures");
    assert!(bytes <= LOADED && bytes > 10_000.0 && !is_heard, "{bytes} bytes are loaded before it is played");
    looks_right(&kept.browser, "a call of an hour").await;
    // The last of its numbers are behind a click; each row is there.
    let rows = kept.ask("/v1/simulation-result/1/transcript").await["entries"].as_array().map(Vec::len);
    let reached = kept
        .browser
        .run(
            "for (const more of document.querySelectorAll('.group > .more, section > .more')) more.click();
             const last = [...document.querySelectorAll('.figures [data-kind=latency]')].pop();
             const row = [...document.querySelectorAll('.transcript li')].pop();
             row.querySelector('button').click();
             return [document.querySelectorAll('.transcript li').length, Number(last.dataset.to) > 3500000, document.querySelector('.player .time').textContent];",
        )
        .await;
    assert_eq!(reached[0].as_u64(), rows.map(|rows| rows as u64));
    assert_eq!(reached[1], true);
    let position = reached[2].as_str().expect("a time");
    assert!(position.starts_with("59:") && position.ends_with("/ 1:00:00.0"), "{position}");
    a_part_of_the_hour_is_heard(&kept).await;
    kept.open("/runs/1", "tbody a").await;
    let shown = "document.querySelectorAll('tbody a[href^=\"/results/\"]').length === 200";
    kept.browser.until("200 results", shown).await;
    many_answers_are_a_histogram(&kept).await;
    looks_right(&kept.browser, "a run of 200 results").await;
}
