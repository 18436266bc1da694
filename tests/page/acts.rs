//! Acts of a user in the page: filters, runs again, with a seed, cancels, exports, calls an address.

use serde_json::{Value, json};

use super::browser::Browser;
use super::{ask_json, queue_run, run_over, send_json, with_key};
use crate::program::{KEY, Program, up};

/// Waits, in a script, until something is so.
const READY: &str = "const ready = async (is) => { for (let n = 0; n < 3000 && !is(); n += 1) await new Promise((done) => setTimeout(done, 10)); return is(); };";

async fn script(browser: &Browser, text: &str) -> Value {
    browser.run(&format!("{READY}{text}")).await
}

/// Opens a path and waits for a part of the view.
async fn show(browser: &Browser, base: &str, path: &str, part: &str) {
    browser.open(&format!("{base}{path}")).await;
    browser.until(path, &format!("document.querySelector('{part}')")).await;
}

#[tokio::test]
async fn runs_are_filtered_started_cancelled_and_exported_in_the_page() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut engine = Program::start(up(folder.path()).arg("--sim"));
    let base = engine.address("http://").await;
    queue_run(&base, "sip:slow_answer@127.0.0.1:5999", json!({ "name": "Sam" }), json!({})).await;
    let other =
        json!({ "name": "Other", "type": "INBOUND", "connection_type": "SIP", "sip_uri": "sip:desk@127.0.0.1:5999" });
    let other = send_json(&base, "/v1/add-agent", other).await["agent_id"].to_string();
    run_over(&base, 1).await;
    let browser = with_key(&base).await;
    filters_stand_in_the_address(&browser, &base, &other).await;
    a_run_appears_by_itself(&browser, &base).await;
    a_run_starts_with_a_seed_and_again(&browser, &base).await;
    a_run_is_exported(&browser, &base).await;
    an_address_is_called(&browser, &base).await;
    a_run_is_cancelled(&browser, &base).await;
    a_line_is_tested(&browser, &base).await;
}

/// Checks that the steps of a test stand in the view of the agent, in words, and that no run comes of it.
async fn a_line_is_tested(browser: &Browser, base: &str) {
    let runs = ask_json(base, KEY, "/v1/simulation-runs").await["simulation_runs"].as_array().expect("a list").len();
    show(browser, base, "/agents/1", "button.line-test").await;
    let tested = "document.querySelector('button.line-test').click();
        const table = () => document.querySelector('[aria-label=\"Steps of the test\"]');
        await ready(table);
        const rows = [...table().querySelectorAll('tbody tr')].map((row) => row.cells[0].textContent + ' ' + row.cells[1].textContent);
        return [rows.slice(0, 3), table().previousSibling.textContent.startsWith('The line')];";
    let steps = ["The settings are complete yes", "The address is found yes", "The agent is connected to yes"];
    assert_eq!(script(browser, tested).await, json!([steps, true]));
    let after = ask_json(base, KEY, "/v1/simulation-runs").await["simulation_runs"].as_array().expect("a list").len();
    assert_eq!(after, runs, "nothing is kept");
}

/// Choices stand in the address, and come from it; where nothing is like this, that is said.
async fn filters_stand_in_the_address(browser: &Browser, base: &str, other: &str) {
    show(browser, base, "/", "tbody a").await;
    let set = "const form = document.querySelector('form.filters');
        form.agent_id.value = '1'; form.status.value = 'COMPLETED'; form.since.value = '2026-01-05';
        form.querySelector('button').click();
        await ready(() => location.search && document.querySelector('tbody a'));
        return [location.search, document.querySelectorAll('tbody a').length];";
    assert_eq!(script(browser, set).await, json!(["?agent_id=1&status=COMPLETED&since=2026-01-05", 1]));
    for (query, shown) in [
        ("?status=COMPLETED", 1),
        ("?status=RUNNING", 0),
        ("?tag=nothing", 0),
        ("?since=2999-01-01", 0),
        (&*format!("?agent_id={other}"), 0),
    ] {
        show(browser, base, &format!("/{query}"), "form.filters").await;
        let seen = "const form = document.querySelector('form.filters');
            const set = [...new URLSearchParams(location.search)].every(([name, value]) => form[name].value === value);
            const empty = document.querySelector('main .empty');
            return [set, document.querySelectorAll('tbody a').length, empty ? empty.textContent : ''];";
        let said = if shown == 0 { "No run is like this." } else { "" };
        assert_eq!(script(browser, seen).await, json!([true, shown, said]), "{query}");
    }
}

/// Checks that a run that somebody else queues comes into the list; the control in focus stays in focus.
async fn a_run_appears_by_itself(browser: &Browser, base: &str) {
    show(browser, base, "/", "tbody a").await;
    browser
        .run("document.querySelector('tbody a').focus(); window.row = document.querySelector('tbody tr'); return 1")
        .await;
    send_json(base, "/v1/queue-simulation-run", json!({ "simulation_id": "1" })).await;
    let seen = "const came = await ready(() => document.querySelectorAll('tbody a').length === 2);
        return [came, document.activeElement.getAttribute('href'), row.isConnected];";
    assert_eq!(script(browser, seen).await, json!([true, "/runs/1", true]), "a row that is the same stays");
    run_over(base, 2).await;
    let over = "return ready(() => [...document.querySelectorAll('tbody .chip')].every((chip) => chip.textContent !== 'running'))";
    assert_eq!(script(browser, over).await, true, "its state follows");
}

/// Checks that a simulation runs with a seed, and a run again with its own.
async fn a_run_starts_with_a_seed_and_again(browser: &Browser, base: &str) {
    show(browser, base, "/simulations/1", "form input[name=seed]").await;
    let start = "const form = document.querySelector('form.filters');
        form.seed.value = '42'; form.querySelector('button').click();
        await ready(() => location.pathname.startsWith('/runs/') && document.querySelector('.downloads button'));
        return location.pathname;";
    assert_eq!(script(browser, start).await, "/runs/3");
    run_over(base, 3).await;
    let again = "[...document.querySelectorAll('.downloads button')].find((one) => one.textContent.startsWith('Run again')).click();
        await ready(() => location.pathname === '/runs/4' && document.querySelector('h1')?.textContent === 'Run 4');
        return location.pathname;";
    assert_eq!(script(browser, again).await, "/runs/4");
    run_over(base, 4).await;
    let runs = ask_json(base, KEY, "/v1/simulation-runs").await["simulation_runs"].clone();
    let seeds: Vec<&Value> = runs.as_array().expect("runs").iter().take(2).map(|run| &run["seed"]).collect();
    assert_eq!(seeds, [&json!(42), &json!(42)]);
}

/// Checks that the three forms of an export are saved.
async fn a_run_is_exported(browser: &Browser, base: &str) {
    show(browser, base, "/runs/1", "tbody a").await;
    let saved = "const make = URL.createObjectURL;
        const saved = [];
        URL.createObjectURL = (blob) => { saved.push(blob); return make.call(URL, blob); };
        for (const name of ['CSV', 'JSON', 'JUnit']) {
            const before = saved.length;
            [...document.querySelectorAll('.downloads button')].find((one) => one.textContent === name).click();
            await ready(() => saved.length > before);
        }
        return Promise.all(saved.map((blob) => blob.text()));";
    let saved: Vec<String> = serde_json::from_value(script(browser, saved).await).expect("three files");
    assert_eq!(saved.len(), 3);
    assert!(saved[0].contains("digital_human_name") && saved[0].contains(",Sam,"), "{}", saved[0]);
    let json: Value = serde_json::from_str(&saved[1]).expect("JSON");
    assert_eq!(json["simulation_results"][0]["id"], 1);
    assert!(saved[2].contains("<testsuite"), "{}", saved[2]);
    let name = "const name = document.querySelector('[aria-label=\"Name of the run\"]'); name.value = 'Before the move'; name.form.requestSubmit();
        return [await ready(() => document.querySelector('h1').textContent === 'Run 1: Before the move'), document.querySelector('[aria-label=\"Name of the run\"]').value]";
    assert_eq!(script(browser, name).await, json!([true, "Before the move"]));
    show(browser, base, "/?q=the+move", "tbody a").await;
    let found = "return [...document.querySelectorAll('tbody a')].map((one) => one.getAttribute('href'))";
    assert_eq!(script(browser, found).await, json!(["/runs/1"]));
}

/// Checks that the form of a call says what is wrong with an address, tells the numbers behind its levels, and opens
/// the call.
async fn an_address_is_called(browser: &Browser, base: &str) {
    show(browser, base, "/call", "form.start").await;
    let levels = "return [...document.querySelectorAll('form.start option')].map((one) => one.textContent).join('; ')";
    let levels = script(browser, levels).await;
    let levels = levels.as_str().expect("text");
    for part in [
        "slow (140 words a minute)",
        "low (5 % loss, jitter to 60 ms)",
        "noise at 15 dB",
        "clips at -12 dBFS",
        "about 30, at most 60",
    ] {
        assert!(levels.contains(part), "{part}: {levels}");
    }
    let noise = "const form = document.querySelector('form.start');
        const told = [form.background_noise_volume.disabled, form.querySelector('output').textContent];
        form.background_noise.value = 'cafe'; form.background_noise.dispatchEvent(new Event('change'));
        return [...told, form.background_noise_volume.disabled, /^speech [0-9.]+ dB above the noise$/.test(form.querySelector('output').textContent)];";
    assert_eq!(script(browser, noise).await, json!([true, "no noise", false, true]));
    let wrong = "const form = document.querySelector('form.start');
        form.sip_uri.value = 'not an address'; form.querySelector('[type=submit]').click();
        await ready(() => !document.querySelector('#notice').hidden);
        const notice = document.querySelector('#notice');
        const { top, bottom } = notice.getBoundingClientRect();
        const said = [notice.textContent.includes('sip_uri'), top >= 0 && bottom <= innerHeight, form.intent.value.length > 0];
        notice.querySelector('button').click();
        return [...said, notice.hidden];";
    assert_eq!(script(browser, wrong).await, json!([true, true, true, true]));
    let call = "const form = document.querySelector('form.start');
        form.sip_uri.value = 'sip:desk@127.0.0.1:5999'; form.voice_speed.value = 'slow'; form.intent.value = 'I need an appointment.';
        form.querySelector('[type=submit]').click();
        await ready(() => location.pathname.startsWith('/results/') && document.querySelector('.downloads button'));
        return location.pathname;";
    let path = script(browser, call).await;
    let id = path.as_str().and_then(|path| path.strip_prefix("/results/")).expect("the call is open").to_owned();
    let result =
        ask_json(base, KEY, &format!("/v1/retrieve-simulation-result/{id}")).await["simulation_result"].clone();
    let human =
        ask_json(base, KEY, &format!("/v1/digital-human/{}", result["digital_human_id"])).await["digital_human"]
            .clone();
    assert_eq!(
        (&human["voice_speed"], &human["background_noise"], &human["intent"]),
        (&json!("slow"), &json!("cafe"), &json!("I need an appointment."))
    );
}

/// Checks that a run that goes on is cancelled.
async fn a_run_is_cancelled(browser: &Browser, base: &str) {
    let run =
        queue_run(base, "sip:desk@127.0.0.1:5999", json!({ "name": "Max" }), json!({ "runs_per_digital_human": 60 }))
            .await;
    let id = run["simulation_run_id"].as_str().expect("an id").to_owned();
    show(browser, base, &format!("/runs/{id}"), ".downloads button").await;
    let cancel = "const button = () => [...document.querySelectorAll('.downloads button')].find((one) => one.textContent === 'Hang up all');
        button().click();
        const gone = await ready(() => !button());
        return [gone, document.querySelector('h1').textContent];";
    assert_eq!(script(browser, cancel).await, json!([true, format!("Run {id}")]));
    run_over(base, id.parse().expect("a number")).await;
    let whole = ask_json(base, KEY, &format!("/v1/retrieve-simulation-results/{id}")).await["simulation_run"].clone();
    assert!(whole["tests_cancelled"].as_i64() > Some(0), "{whole}");
}
