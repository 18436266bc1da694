//! The page in a real Chromium through the built program, and the types of its modules.

mod acts;
mod alone;
pub(crate) mod browser;
mod glance;
mod gone;
mod judges;
mod kept;
mod offered;
mod spans;
mod stranger;
mod threads;
pub(crate) mod tools;
mod verdicts;
mod views;

use serde_json::{Value, json};

use self::browser::Browser;
use self::tools::{AXE, tools};
use crate::program::{KEY, PATIENCE, Program, client, up};

/// Widths of the page that are checked: of a telephone, and of a desktop.
const WIDTHS: [u32; 2] = [390, 1440];

/// Serious findings of axe-core on what is shown; whether it is wider than the window; edges of controls that stand out
/// less than 3 to 1 from any ground (WCAG 2.2, 1.4.11).
async fn faults(browser: &Browser) -> Value {
    let axe = std::fs::read_to_string(tools().join(AXE)).expect("`make peers` installs it");
    browser.run(&format!("{axe}\n;return 1")).await;
    browser
        .run(
            "const found = await axe.run(document, { resultTypes: ['violations'] });
             const bad = found.violations.filter((one) => ['serious', 'critical'].includes(one.impact));
             const wide = document.documentElement.scrollWidth > innerWidth ? ['wider than the window'] : [];
             const set = getComputedStyle(document.documentElement);
             const light = (name) => [1, 3, 5].map((at) => parseInt(set.getPropertyValue(name).trim().slice(at, at + 2), 16) / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, n) => sum + c * [0.2126, 0.7152, 0.0722][n], 0);
             const ratio = (one, other) => { const [low, high] = [light(one), light(other)].sort((a, b) => a - b); return (high + 0.05) / (low + 0.05); };
             const faint = ['--ground', '--card', '--soft'].filter((name) => !(ratio('--edge', name) >= 3)).map((name) => 'edge on ' + name);
             return bad.map((one) => one.id + ': ' + one.nodes[0].html).concat(wide, faint);",
        )
        .await
}

/// Looks at a view in both widths and both schemes.
pub(crate) async fn looks_right(browser: &Browser, view: &str) {
    for width in WIDTHS {
        for dark in [false, true] {
            browser.look(width, dark).await;
            assert_eq!(faults(browser).await, json!([]), "{view} at {width}, dark: {dark}");
        }
    }
}

async fn ask_json(base: &str, key: &str, path: &str) -> Value {
    let answer = client().get(format!("{base}{path}")).header("x-api-key", key).send().await.expect("it answers");
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
    answer.json().await.expect("JSON")
}

async fn send_json(base: &str, path: &str, body: Value) -> Value {
    let answer = client().post(format!("{base}{path}")).header("x-api-key", KEY).json(&body).send().await;
    let answer = answer.expect("it answers");
    assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap_or_default());
    answer.json().await.expect("JSON")
}

/// Returns a browser with the admin key.
async fn with_key(base: &str) -> Browser {
    let browser = Browser::start().await;
    browser.tell("timeouts", json!({ "script": PATIENCE.as_millis() as u64 })).await;
    browser.open(base).await;
    browser.run(&format!("sessionStorage.setItem('ringer-key', {}); return 1", json!(KEY))).await;
    browser
}

/// Queues a run of one Digital Human that calls an address; `more` is said of its simulation.
async fn queue_run(base: &str, address: &str, human: Value, more: Value) -> Value {
    let agent = json!({ "name": "Desk", "type": "INBOUND", "connection_type": "SIP", "sip_uri": address });
    let agent = send_json(base, "/v1/add-agent", agent).await["agent_id"].to_string();
    let mut simulation = json!({ "agent_id": agent, "name": "Booking" });
    simulation.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
    let simulation = send_json(base, "/v1/create-simulation", simulation).await["simulation_id"].clone();
    let mut caller =
        json!({ "intent": "Hello, I would like to book an appointment. Tuesday is good for me.", "language": "en" });
    caller.as_object_mut().expect("an object").extend(human.as_object().cloned().unwrap_or_default());
    let human = json!({ "digital_human": caller, "simulation_ids": [simulation] });
    send_json(base, "/v1/create-digital-human", human).await;
    send_json(base, "/v1/queue-simulation-run", json!({ "simulation_id": simulation.to_string(), "seed": 7 })).await
}

/// Waits until a run is over: its stream ends then.
async fn run_over(base: &str, run: i64) {
    let path = format!("{base}/v1/simulation-run/{run}/events");
    let stream = client().get(path).header("x-api-key", KEY).timeout(PATIENCE).send().await.expect("it answers");
    let text = stream.text().await.expect("it ends in time");
    assert!(text.contains("event: end"), "{text}");
}

/// Returns a script that clicks every number that `which` selects. It reports those whose stretches are not lit, whose
/// first one is not played from a second before, or whose lanes and player are not in view then.
fn click_all(which: &str) -> String {
    format!("const which = {};{CLICK_ALL}", json!(which))
}

const CLICK_ALL: &str = "
    const wrong = [];
    const audio = document.querySelector('audio');
    document.querySelectorAll('.all-numbers').forEach((all) => { all.open = true; });
    for (const button of document.querySelectorAll(which)) {
        button.scrollIntoView({ block: 'center' });
        button.click();
        const { from, to } = button.dataset;
        const wanted = Math.max(0, Number(from) - 1000);
        for (let n = 0; n < 200 && !(audio.currentTime * 1000 >= wanted - 20 && !audio.paused); n += 1) {
            await new Promise((done) => setTimeout(done, 20));
        }
        const began = Number(document.querySelector('.player').dataset.from);
        const at = audio.currentTime * 1000;
        const lit = document.querySelector('canvas').dataset.lit;
        const isSeen = ['canvas', '.player'].map((one) => document.querySelector(one).getBoundingClientRect()).every((box) => box.top >= 0 && box.bottom <= innerHeight);
        if (lit !== button.dataset.lit || !lit.startsWith(from + '-' + to) || !isSeen || Math.abs(began - wanted) > 20 || at < wanted - 20 || at > wanted + 2000) {
            wrong.push([button.textContent, from, to, lit, began, at, isSeen]);
        }
    }
    audio.pause();
    return document.querySelector(which) ? wrong : 'none of ' + which;";

#[tokio::test]
async fn the_first_minute_leads_from_the_printed_address_to_a_latency_that_is_heard() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut engine = Program::start(&mut up(folder.path()));
    let base = engine.address("http://").await;
    let link = engine.address("http://").await;
    assert!(link.starts_with(&format!("{base}/#start=")), "{link}");
    let browser = Browser::start().await;
    browser.tell("timeouts", json!({ "script": PATIENCE.as_millis() as u64 })).await;
    browser.open(&link).await;
    browser.until("the start", "document.querySelector('#sample')").await;
    assert_eq!(browser.run("return location.href").await, format!("{base}/"), "the token is gone");
    looks_right(&browser, "no run yet").await;
    browser.run("document.querySelector('#sample').click(); return 1").await;
    // The call is seen to move: a latency is shown while it goes on.
    let live = "location.pathname === '/results/1' && document.querySelector('.figure[data-kind=latency]') && document.querySelector('.chip').textContent";
    assert_eq!(browser.until("a live latency", live).await, "running");
    browser.until("downloads", "document.querySelector('.downloads button')").await;
    assert_eq!(
        browser.run("return [...document.querySelectorAll('.head .chip')].map((one) => one.textContent)").await,
        json!(["not judged"])
    );
    links_open_in_new_tabs(&browser, &base, &link).await;
    let key = browser.run("return sessionStorage.getItem('ringer-key')").await;
    let key = key.as_str().expect("a key");

    numbers_lead_to_their_stretches(&browser, &base, key).await;
    lanes_and_keys_seek(&browser).await;
    looks_right(&browser, "a call").await;
    // The caller presses a key when it hears what it is asked for: not on every machine.
    let ladder = ask_json(&base, key, "/v1/simulation-result/1/ladder").await;
    let keys = ladder["entries"].as_array().expect("entries").iter().filter(|one| one["kind"] == "digit").count();
    signalling_is_shown(&browser, keys).await;
    everything_is_downloaded(&browser).await;
    saved_call_opens_from_disk(&browser, &base, key, folder.path()).await;
    review_in_page(&browser, &base, key).await;
}

/// Checks that each link works in a new tab, where the key is asked of the other one. A start link that was used before
/// says where a new one comes from.
async fn links_open_in_new_tabs(browser: &Browser, base: &str, link: &str) {
    for (address, shown) in [
        (format!("{base}/"), "tbody a"),
        (format!("{base}/runs/1"), "tbody a[href=\"/results/1\"]"),
        (format!("{base}/results/1"), ".downloads button"),
        (format!("{base}/agents/1"), "#s-line"),
        (link.to_owned(), "tbody a"),
    ] {
        let first = browser.open_in_new_tab(&address).await;
        browser.until(&address, &format!("document.querySelector('main {shown}')")).await;
        let told = "return [Boolean(sessionStorage.getItem('ringer-key')), location.hash, document.querySelector('#keyform').checkVisibility()]";
        assert_eq!(browser.run(told).await, json!([true, "", false]), "{address}");
        browser.close_tab(&first).await;
    }
}

/// Checks that every number leads to its stretch, and those of the latencies are those that were measured.
async fn numbers_lead_to_their_stretches(browser: &Browser, base: &str, key: &str) {
    assert_eq!(browser.run(&click_all(".figures .figure")).await, json!([]));
    browser.look(WIDTHS[0], false).await;
    assert_eq!(browser.run(&click_all(".figures .figure[data-kind=latency]")).await, json!([]), "on a telephone");
    browser.look(WIDTHS[1], false).await;
    let turns = ask_json(base, key, "/v1/simulation-result/1/turns").await;
    let result = ask_json(base, key, "/v1/retrieve-simulation-result/1").await["simulation_result"].clone();
    let of_agent = turns["turns"].as_array().expect("turns").iter().filter(|turn| turn["speaker"] == "AGENT");
    let of_agent = of_agent.filter(|turn| turn["latency_ms"].is_number());
    let ms = |sample: &Value| json!(sample.as_f64().expect("a position") / 16.0);
    let expect: Vec<Value> =
        of_agent.map(|turn| json!([ms(&turn["latency_from_sample"]), ms(&turn["from_sample"])])).collect();
    let shown = "return [...document.querySelectorAll('.figures .figure[data-kind=latency]')].map((one) => [Number(one.dataset.from), Number(one.dataset.to)])";
    let shown: Vec<Vec<f64>> = serde_json::from_value(browser.run(shown).await).expect("numbers");
    let expect: Vec<Vec<f64>> = serde_json::from_value(json!(expect)).expect("numbers");
    assert_eq!(shown, expect);
    let measured: Vec<f64> = serde_json::from_value(result["latency"].clone()).expect("latencies");
    let lengths: Vec<f64> = shown.iter().map(|one| one[1] - one[0]).collect();
    assert!(!measured.is_empty() && measured.len() == lengths.len(), "{measured:?} {lengths:?}");
    assert!(measured.iter().zip(&lengths).all(|(s, ms)| (s * 1000.0 - ms).abs() <= 1.0), "{measured:?} {lengths:?}");
}

/// Checks that messages open at a click; the figures of the network and the keys come and go with their boxes.
async fn signalling_is_shown(browser: &Browser, keys: usize) {
    let shown = browser
        .run(
            "const count = (kind) => document.querySelectorAll('.ladder li[data-kind=' + kind + ']').length;
             const box = (name) => [...document.querySelectorAll('.toggles label')].find((one) => one.textContent === name).querySelector('input');
             const ready = async (is) => { for (let n = 0; n < 500 && !is(); n += 1) await new Promise((done) => setTimeout(done, 10)); return is(); };
             const told = [count('message') >= 5, count('rtcp'), count('digit')];
             box('Network figures').click();
             told.push(await ready(() => count('rtcp') > 3));
             box('Keys').click();
             told.push(await ready(() => count('digit') === 0));
             const summary = document.querySelector('.ladder summary');
             summary.click();
             const message = summary.parentElement.querySelector('pre');
             const { height } = message.getBoundingClientRect();
             return [...told, height > 0, message.textContent.startsWith('INVITE sip:'), message.textContent.includes('m=audio')];",
        )
        .await;
    assert_eq!(shown, json!([true, 0, keys, true, true, true, true, true]));
}

/// Checks that each button of the downloads brings a file with something in it.
async fn everything_is_downloaded(browser: &Browser) {
    let saved = browser
        .run(
            "const make = URL.createObjectURL;
             const saved = [];
             const ready = async (is) => { for (let n = 0; n < 3000 && !is(); n += 1) await new Promise((done) => setTimeout(done, 10)); return is(); };
             URL.createObjectURL = (blob) => { saved.push(blob); return make.call(URL, blob); };
             const told = [];
             for (const button of document.querySelectorAll('.downloads button')) {
                 const before = saved.length;
                 button.click();
                 const came = await ready(() => saved.length > before);
                 const head = came ? await saved[saved.length - 1].slice(0, 15).text() : document.querySelector('#notice').textContent;
                 told.push([button.textContent, came && saved[saved.length - 1].size > 100, head]);
             }
             URL.createObjectURL = make;
             return told;",
        )
        .await;
    let saved: Vec<(String, bool, String)> = serde_json::from_value(saved).expect("files");
    let expect = [
        ("One HTML file", "<!doctype html>"),
        ("WAV", "RIFF"),
        ("FLAC", "fLaC"),
        ("Opus", "OggS"),
        ("Timeline (JSON)", "{"),
        ("Transcript (JSON)", "{"),
        ("Transcript (text)", ""),
        ("Transcript (WebVTT)", "WEBVTT"),
        ("Packets (pcapng)", "\n\r\r\n"),
        ("Evidence (tar)", ""),
    ];
    assert_eq!(saved.len(), expect.len(), "{saved:?}");
    for ((name, came, head), (wanted, begins)) in saved.iter().zip(expect) {
        assert!(name == wanted && *came && head.starts_with(begins), "{name} {came} {head:?}");
    }
}

/// Checks that a click on the lanes and a key seek to within 20 ms.
async fn lanes_and_keys_seek(browser: &Browser) {
    let sought = browser
        .run(
            "const canvas = document.querySelector('canvas');
             const box = canvas.getBoundingClientRect();
             canvas.dispatchEvent(new PointerEvent('pointerdown', { clientX: box.left + box.width / 2, clientY: box.top + 40, button: 0, bubbles: true }));
             const at = () => document.querySelector('audio').currentTime * 1000;
             const [middle, whole] = [at(), Number(canvas.getAttribute('aria-valuemax'))];
             document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
             return [middle - whole / 2, at() - middle];",
        )
        .await;
    let off: Vec<f64> = serde_json::from_value(sought).expect("two positions");
    assert!(off[0].abs() <= 20.0 && (off[1] - 1000.0).abs() <= 20.0, "{off:?}");
}

/// Checks that one HTML file opens without a server, and asks nothing of the network.
async fn saved_call_opens_from_disk(browser: &Browser, base: &str, key: &str, folder: &std::path::Path) {
    let path = format!("{base}/v1/simulation-result/1/page");
    let answer = client().get(path).header("x-api-key", key).send().await.expect("it answers");
    let page = answer.bytes().await.expect("a page");
    assert!(page.len() < 20 * 1024 * 1024, "{} bytes", page.len());
    let file = folder.join("call.html");
    std::fs::write(&file, page).expect("the folder is writable");
    browser.open(&format!("file://{}", file.display())).await;
    browser.until("numbers", "document.querySelector('.figures .figure')").await;
    assert_eq!(browser.run(&click_all(".figures .figure")).await, json!([]));
    let asked = browser.run("return performance.getEntriesByType('resource').map((one) => one.name).filter((name) => !name.startsWith('blob:'))").await;
    assert_eq!(asked, json!([]));
    let told =
        "return [document.querySelector('.between').textContent, document.querySelectorAll('.solo input').length]";
    assert_eq!(browser.run(told).await, json!(["Sam \u{2192} Sample agent", 3]), "names, and both sides alone");
    looks_right(browser, "a saved call").await;
}

/// Checks that a person who overrules the judge in the page sees both values and who changed what.
async fn review_in_page(browser: &Browser, base: &str, key: &str) {
    browser.open(&format!("{base}/results/1")).await;
    browser.until("the form", "document.querySelector('form.review')").await;
    browser
        .run(
            "const form = document.querySelector('form.review');
             form.reviewer.value = 'Ann';
             form.human_goal_success.value = 'false';
             form.human_goal_reasoning.value = '<b>wrong</b> day';
             form.querySelector('button').click();
             return 1;",
        )
        .await;
    let audit = browser
        .until("the audit", "document.querySelector('.audit') && document.querySelector('.audit').textContent")
        .await;
    let audit = audit.as_str().expect("text");
    assert!(audit.contains("Ann") && audit.contains("human goal success: null \u{2192} false"), "{audit}");
    assert_eq!(browser.run("return document.querySelectorAll('main b b, .audit b b, td b > b').length").await, 0);
    let result = ask_json(base, key, "/v1/retrieve-simulation-result/1").await["simulation_result"].clone();
    assert_eq!(
        (&result["outcome"], &result["evaluations"][0]["human_goal_success"]),
        (&json!("failed"), &json!(false))
    );
}

/// Checks that each counter of a run is the number of chips with its word and shows just those, and that the API and
/// the JUnit export count the same.
async fn counters_are_those_of_the_reports(browser: &Browser, base: &str, run: i64) {
    browser.open(&format!("{base}/runs/{run}")).await;
    browser
        .until("the counters", "document.querySelector('.counters .count') && document.querySelector('tbody .chip')")
        .await;
    let counted = browser
        .run(
            "const rows = () => [...document.querySelectorAll('#s-results ~ .scroll tbody tr')].map((row) => row.querySelector('.chip').textContent);
             const all = rows();
             const wrong = [];
             const counts = {};
             for (const { dataset: { word, count } } of [...document.querySelectorAll('.count')]) {
                 counts[word] = Number(count);
                 document.querySelector('.count[data-word=\"' + word + '\"]').click();
                 const shown = rows();
                 if (shown.length !== Number(count) || shown.some((one) => one !== word) || all.filter((one) => one === word).length !== Number(count)) wrong.push([word, count, shown]);
                 document.querySelector('.count[data-word=\"' + word + '\"]').click();
             }
             return [wrong, counts, rows().length === all.length];",
        )
        .await;
    assert_eq!((&counted[0], &counted[2]), (&json!([]), &json!(true)));
    let whole = ask_json(base, KEY, &format!("/v1/retrieve-simulation-results/{run}")).await["simulation_run"].clone();
    let words = [
        ("passed", "passed"),
        ("failed", "failed"),
        ("unreachable", "unreachable"),
        ("unknown", "not judged"),
        ("cancelled", "cancelled"),
    ];
    for (word, shown) in words {
        assert_eq!(whole["verdicts"][word].as_i64(), Some(counted[1][shown].as_i64().unwrap_or(0)), "{word}: {whole}");
    }
    let path = format!("{base}/v1/simulation-run/{run}/export?format=junit");
    let junit = client().get(path).header("x-api-key", KEY).send().await.expect("it answers").text().await;
    let junit = junit.expect("a text");
    let of = |word: &str| counted[1][word].as_u64().unwrap_or(0) as usize;
    for (word, shown) in words {
        let told = junit.matches(&format!("name=\"verdict\" value=\"{word}\"")).count();
        assert_eq!(told, of(shown), "{word}: {junit}");
    }
    let passed = junit.matches("<testcase").count()
        - ["<failure", "<error", "<skipped"].iter().map(|tag| junit.matches(tag).count()).sum::<usize>();
    assert_eq!((passed, junit.matches("<failure").count()), (of("passed"), of("failed")), "{junit}");
}

/// Checks that a call that never began says why at its top, has no lanes, and offers no file that is not there.
async fn a_failed_call_says_why_and_offers_what_there_is(browser: &Browser, base: &str, result: &str) {
    browser.open(&format!("{base}/results/{result}")).await;
    browser.until("what can be saved", "document.querySelector('.downloads button[data-path]')").await;
    let shown = browser
        .run(
            "const headers = { 'X-API-Key': sessionStorage.getItem('ringer-key') };
             const absent = [];
             for (const { dataset: { path } } of document.querySelectorAll('.downloads button')) {
                 const { status } = await fetch(path, { headers });
                 if (status !== 200) absent.push([path, status]);
             }
             const plate = document.querySelector('.head .plate').textContent;
             return [absent, document.querySelector('canvas').checkVisibility(), document.querySelector('.player').checkVisibility(), plate.includes('The call could not be set up'), plate.includes('To act: '), plate.includes('check address')];",
        )
        .await;
    assert_eq!(shown, json!([[], false, false, true, true, true]));
}

/// Checks that a call that waits for a place says so, and can be taken back.
async fn a_call_that_waits_says_why_and_is_cancelled(browser: &Browser, base: &str) {
    // Nobody answers there.
    let deaf = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("there is a free port");
    let address = format!("sip:deaf@{}", deaf.local_addr().expect("it is bound"));
    let more = json!({ "runs_per_digital_human": 2, "max_concurrent": 1 });
    let run = queue_run(base, &address, json!({ "name": "Sam" }), more).await;
    let waits = run["simulation_result_ids"][1].as_str().expect("an id");
    browser.open(&format!("{base}/results/{waits}")).await;
    let told = "document.querySelector('.head .plate') && document.querySelector('.head .plate').textContent.includes('max_concurrent') && [...document.querySelectorAll('button')].some((one) => one.textContent === 'Cancel')";
    browser.until("the reason", told).await;
    assert_eq!(
        browser.run("return document.querySelector('canvas').checkVisibility()").await,
        false,
        "nothing to hear"
    );
    looks_right(browser, "a call that waits").await;
    browser
        .run("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Cancel').click(); return 1")
        .await;
    browser.until("the end", "document.querySelector('.head .chip').textContent === 'cancelled'").await;
    let run = run["simulation_run_id"].as_str().expect("an id");
    send_json(base, &format!("/v1/simulation-run/{run}/cancel?hangup=true"), json!({})).await;
}

#[tokio::test]
async fn hostile_texts_are_text_and_failed_calls_are_shown() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut engine = Program::start(&mut up(folder.path()));
    let base = engine.address("http://").await;
    let hostile = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">";
    let backwards = "\u{202e}desrever\u{202c} \u{5e9}\u{5dc}\u{5d5}\u{5dd}";
    let long = "x".repeat(10_000);
    let agent =
        json!({ "name": hostile, "type": "INBOUND", "connection_type": "SIP", "sip_uri": "sip:nobody@127.0.0.1:9" });
    let agent = send_json(&base, "/v1/add-agent", agent).await["agent_id"].to_string();
    let simulation = json!({ "agent_id": agent, "name": backwards, "runs_per_digital_human": 2 });
    let simulation = send_json(&base, "/v1/create-simulation", simulation).await["simulation_id"].clone();
    for name in [hostile, backwards, &long] {
        let human = json!({ "name": name, "intent": hostile, "language": "en" });
        send_json(&base, "/v1/create-digital-human", json!({ "digital_human": human, "simulation_ids": [simulation] }))
            .await;
    }
    let run = send_json(&base, "/v1/queue-simulation-run", json!({ "simulation_id": simulation.to_string() })).await;
    assert_eq!(run["simulation_result_ids"].as_array().map(Vec::len), Some(6));
    let browser = Browser::start().await;
    browser.tell("timeouts", json!({ "script": PATIENCE.as_millis() as u64 })).await;
    browser.open(&base).await;
    browser.run(&format!("sessionStorage.setItem('ringer-key', {}); return 1", json!(KEY))).await;
    browser.open(&format!("{base}/runs/1")).await;
    browser
        .until("all failed", "[...document.querySelectorAll('#s-results ~ .scroll tbody .chip.bad')].length >= 6")
        .await;
    let result = run["simulation_result_ids"][0].as_str().expect("an id");
    counters_are_those_of_the_reports(&browser, &base, 1).await;
    a_failed_call_says_why_and_offers_what_there_is(&browser, &base, result).await;
    a_call_that_waits_says_why_and_is_cancelled(&browser, &base).await;
    for path in ["/", "/runs/1", &format!("/results/{result}"), "/agents", "/agents/1", "/simulations/1"] {
        browser.open(&format!("{base}{path}")).await;
        browser.until(path, "document.querySelector('main h1') && !document.querySelector('main[aria-busy]')").await;
        looks_right(&browser, path).await;
        let made = browser
            .run("return [document.title.includes('owned'), document.querySelectorAll('main script, main img').length]")
            .await;
        assert_eq!(made, json!([false, 0]), "{path}");
    }
    let shown = browser.run("return document.body.textContent.includes('<script>document.title')").await;
    assert_eq!(shown, true, "it is shown as it was written");
}
