//! A person who has never seen the page goes from an empty folder to two compared runs, by clicks and keys alone.
//!
//! Calls are simulated here. With `RINGER_STRANGER=real` they are real ones, for some minutes (`make stranger`).

use serde_json::{Value, json};

use super::browser::Browser;
use super::looks_right;
use crate::program::{PATIENCE, Program, up};

/// Acts of a person, in a script: what is seen is clicked by its words, what is asked for is typed by its label.
pub(super) const PERSON: &str = "
    const ready = async (is) => { for (let n = 0; n < 9000; n += 1) { const found = is(); if (found) return found; await new Promise((done) => setTimeout(done, 10)); } return null; };
    const seen = (node) => node.getClientRects().length > 0;
    const named = (words) => () => {
        const all = [...document.querySelectorAll('button, a, summary')].filter((one) => seen(one) && !one.disabled);
        return all.find((one) => one.textContent.trim() === words) || all.find((one) => one.textContent.trim().startsWith(words));
    };
    const press = async (words) => {
        const found = await ready(named(words));
        if (!found) throw new Error('nothing is called ' + words + ': ' + document.body.innerText.slice(0, 800));
        found.click();
    };
    const fill = async (label, text) => {
        const find = () => [...document.querySelectorAll('label')].find((one) => seen(one) && one.textContent.trim().startsWith(label));
        const found = await ready(find);
        if (!found) throw new Error('nothing is asked as ' + label);
        const control = found.control;
        control.focus();
        control.value = text;
        control.dispatchEvent(new Event('input', { bubbles: true }));
        control.dispatchEvent(new Event('change', { bubbles: true }));
    };
    const isShown = (path) => path.test(location.pathname + location.search) && !document.getElementById('main').hasAttribute('aria-busy');
    const at = async (path) => {
        if (!await ready(() => isShown(path) && document.querySelector('main h1'))) throw new Error('not at ' + path + ' but ' + location.href);
    };
    const text = () => document.querySelector('main').innerText;";

pub(super) async fn act(browser: &Browser, script: &str) -> Value {
    browser.run(&format!("{PERSON}{script}")).await
}

/// Intent of all callers of the stranger.
const INTENT: &str =
    "Hello, I would like to book an appointment for my knee. Tuesday is good for me. Yes, that is right.";

#[expect(clippy::disallowed_methods, reason = "whoever starts the tests asks for real calls")]
fn calls_really() -> bool {
    std::env::var("RINGER_STRANGER").is_ok_and(|asked| asked == "real")
}

#[tokio::test]
async fn a_stranger_comes_from_an_empty_folder_to_two_compared_runs() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let is_real = calls_really();
    let mut command = up(folder.path());
    if !is_real {
        command.arg("--sim");
    }
    let mut engine = Program::start(&mut command);
    let _base = engine.address("http://").await;
    let link = engine.address("http://").await;
    let browser = Browser::start().await;
    browser.tell("timeouts", json!({ "script": PATIENCE.as_millis() as u64 })).await;
    browser.open(&link).await;
    an_agent_is_made_by_its_tile(&browser, is_real).await;
    three_callers_are_heard(&browser).await;
    expectations_are_sentences(&browser).await;
    let first = a_run_is_over(&browser).await;
    the_worst_call_is_opened(&browser, &first).await;
    the_agent_is_changed(&browser).await;
    let second = a_run_is_over(&browser).await;
    both_are_compared(&browser, &first, &second).await;
    one_is_reviewed(&browser, &first).await;
    act(&browser, "history.go(-3); await at(/compare.a=/); return 1").await;
    the_run_is_one_file(&browser, &first, folder.path()).await;
}

async fn an_agent_is_made_by_its_tile(browser: &Browser, is_real: bool) {
    let address = if is_real {
        act(browser, "await press('Call an agent'); await press('Use the sample agent'); const field = document.querySelector('[name=sip_uri]'); await ready(() => field.value); return field.value").await
    } else {
        json!("sip:desk@127.0.0.1:5999")
    };
    let address = address.as_str().expect("an address").to_owned();
    let tiles = act(browser, "await press('Agents'); await press('New agent'); await at(/new/); return document.querySelectorAll('.tile').length").await;
    assert_eq!(tiles, 9);
    // A refusal stands beside its field.
    let wrong = "await press('SIP'); await fill('Name', 'Desk of the stranger'); await fill('SIP', 'nonsense'); await press('Create the agent');
        await ready(() => document.querySelector('#f-sip_uri-e').textContent); return document.activeElement.id";
    assert_eq!(act(browser, wrong).await, "f-sip_uri");
    looks_right(browser, "a new agent").await;
    let made = format!(
        "await fill('SIP', {}); await press('Test the line before');
         const steps = await ready(() => document.querySelector('[aria-label=\"Steps of the test\"]'));
         const names = [...steps.querySelectorAll('tbody tr')].slice(0, 3).map((row) => row.cells[1].textContent);
         await press('Create the agent'); await at(/agents.[0-9]+$/); return names",
        json!(address)
    );
    assert_eq!(act(browser, &made).await, json!(["yes", "yes", "yes"]));
    looks_right(browser, "an agent").await;
}

async fn three_callers_are_heard(browser: &Browser) {
    let scenario = "await press('New scenario'); await at(/simulations.new/); await fill('Name', 'Booking'); await fill('Longest call', '60'); await fill('in', 'seconds');
        await press('Create'); await at(/simulations.[0-9]+$/); return text()";
    let seen = act(browser, scenario).await;
    assert!(seen.as_str().expect("words").contains("There is no caller yet"), "{seen}");
    for (preset, part) in
        [("Calm", "The voice alone"), ("In a car", "The noise alone"), ("Bad line", "As the agent hears it")]
    {
        let caller = format!(
            "await press('Add a caller'); await at(/callers/); await press({}); await fill('Intent', {});
             await press({}); const heard = () => document.querySelector('.hearing [role=status]').textContent;
             await ready(() => heard().includes('dBov') || heard().includes('.') && !heard().startsWith('The voice is being')); const said = heard();
             const sounds = document.querySelector('.hearing audio'); await ready(() => sounds.duration > 0.5);
             return [said, sounds.duration, document.querySelector('.yaml').textContent]",
            json!(preset),
            json!(INTENT),
            json!(part)
        );
        let heard = act(browser, &caller).await;
        assert!(heard[0].as_str().expect("words").contains("dBov"), "{preset}: {heard}");
        assert!(heard[1].as_f64().is_some_and(|seconds| (0.5..=10.1).contains(&seconds)), "{preset}: {heard}");
        assert!(heard[2].as_str().expect("YAML").contains("goal: "), "{preset}: {heard}");
        if preset == "Bad line" {
            looks_right(browser, "a new caller").await;
        }
        act(browser, "await press('Add the caller'); await at(/simulations.[0-9]+$/); return 1").await;
    }
}

async fn expectations_are_sentences(browser: &Browser) {
    let add = "const numbers = document.querySelectorAll('.parts input');
        for (const [at, value] of [[0, 'time_to_first_agent_utterance'], [1, '0.001']]) { numbers[at].value = value; }
        await press('Add'); const row = () => document.querySelector('.sentences').textContent;
        await ready(() => row().includes('first word'));
        const kind = document.querySelector('[aria-label=\"Kind of expectation\"]'); kind.value = 'ended_by'; kind.dispatchEvent(new Event('change'));
        [...document.querySelectorAll('button')].filter((one) => one.textContent === 'Add').pop().click();
        const sentence = row(); await press('Save the expectations');
        await ready(() => document.querySelector('#notice').textContent.includes('saved')); return sentence";
    let sentence = act(browser, add).await;
    let sentence = sentence.as_str().expect("a sentence");
    assert!(sentence.contains("the first word comes within 0.001 s"), "{sentence}");
    assert!(sentence.contains("ended by the agent"), "{sentence}");
    looks_right(browser, "a scenario").await;
    let cost = act(browser, "return document.querySelector('#cost').textContent").await;
    assert_eq!(cost, "3 calls, each at most 1 min: at most 3 min of calls.");
}

/// Starts a run and waits for its end; answers the path of its page.
async fn a_run_is_over(browser: &Browser) -> String {
    let run = "await press('Run'); await at(/^.runs.[0-9]+$/);
        await ready(() => /failed|passed|completed|warning|judged/.test(document.querySelector('main .chip')?.textContent || '')); return location.pathname";
    act(browser, run).await.as_str().expect("a path").to_owned()
}

async fn the_worst_call_is_opened(browser: &Browser, run: &str) {
    let open = "const link = await ready(() => document.querySelector('main a[href^=\"/results/\"]')); link.click(); await at(/results/);
        return document.querySelector('main .chips').textContent";
    let chips = act(browser, open).await;
    assert!(chips.as_str().expect("words").contains("failed"), "{run}: {chips}");
}

async fn the_agent_is_changed(browser: &Browser) {
    let change = "await press('Agents'); await at(/agents$/); document.querySelector('main tbody a').click(); await at(/agents.[0-9]+$/);
        await press('Change'); await at(/edit$/); await press('More'); await fill('Keyterms', 'knee'); await press('Save');
        await at(/agents.[0-9]+$/); await ready(() => document.querySelector('a[href^=\"/simulations/\"]'));
        [...document.querySelectorAll('main a[href^=\"/simulations/\"]')].find((one) => /simulations.[0-9]+$/.test(one.getAttribute('href'))).click();
        await at(/simulations.[0-9]+$/); return location.pathname";
    assert_eq!(act(browser, change).await, "/simulations/1");
}

async fn both_are_compared(browser: &Browser, first: &str, second: &str) {
    let compare = "await press('Compare'); await at(/compare$/);
        const boxes = await ready(() => document.querySelectorAll('main tbody input').length > 1 && document.querySelectorAll('main tbody input'));
        boxes[0].click(); boxes[1].click(); await press('Compare the two'); await at(/compare.a=/);
        await ready(() => text().includes('What differed')); return text()";
    let seen = act(browser, compare).await;
    let seen = seen.as_str().expect("words");
    for part in ["Still failing: 3", "keyterms", "seed", "too few calls to tell", "Latency, median"] {
        assert!(seen.contains(part), "{first} {second}: {part}: {seen}");
    }
    looks_right(browser, "two runs").await;
    let pair = "await press('side by side'); await at(/compare.calls/); await ready(() => document.querySelectorAll('canvas').length === 2);
        const canvas = document.querySelector('canvas'); canvas.focus();
        document.querySelector('main h1').scrollIntoView();
        const time = () => document.querySelector('.player:not([hidden]) .time').textContent.split(' ')[0]; const before = time();
        document.body.focus(); document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
        return [before, time()]";
    assert_eq!(act(browser, pair).await, json!(["0:00.0", "0:01.0"]));
    // One of the two is heard; the other one goes on where it was.
    let heard = "const player = () => document.querySelector('.player:not([hidden])'); const audio = () => player().querySelector('audio');
        player().querySelector('.play').click(); await ready(() => !audio().paused && audio().currentTime > 1.1); const later = audio();
        document.querySelector('input[name=heard]').click(); await ready(() => audio() !== later && !audio().paused && audio().currentTime > 1.1);
        const is = later.paused; player().querySelector('.play').click(); await ready(() => audio().paused); return is";
    assert_eq!(act(browser, heard).await, true);
    looks_right(browser, "two calls").await;
}

async fn one_is_reviewed(browser: &Browser, run: &str) {
    let id = run.trim_start_matches("/runs/");
    let review = format!(
        "await press('Review'); await at(/review$/); document.querySelector('a[href=\"/review?run={id}\"]').click(); await at(/review.run/);
         await fill('Reviewer', 'Stranger'); document.activeElement.blur();
         const key = (name, more) => document.body.dispatchEvent(new KeyboardEvent('keydown', {{ key: name, bubbles: true, ...more }}));
         key('1'); key('?'); const help = document.querySelector('.keys-help').hidden;
         const answer = document.querySelector('.question select').value;
         const why = document.querySelector('.question input'); why.value = 'It was booked.'; why.dispatchEvent(new Event('input', {{ bubbles: true }}));
         const kept = Object.keys(sessionStorage).some((one) => (sessionStorage.getItem(one) || '').includes('It was booked.'));
         key('Enter', {{ ctrlKey: true }});
         await ready(() => text().includes('1 reviewed')); return [help, answer, kept, text().includes('1 reviewed')]"
    );
    assert_eq!(act(browser, &review).await, json!([false, "true", true, true]));
    let heard = "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: ' ', bubbles: true }));
        await ready(() => !document.querySelector('audio').paused && document.querySelector('audio').currentTime > 0.1);
        document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', bubbles: true })); return ready(() => document.querySelector('audio').paused)";
    assert_eq!(act(browser, heard).await, true);
    looks_right(browser, "a review").await;
}

/// Saves the file of the run by its button, and opens it from disk.
async fn the_run_is_one_file(browser: &Browser, run: &str, folder: &std::path::Path) {
    let id = run.trim_start_matches("/runs/");
    let file = format!(
        "const make = URL.createObjectURL; let saved = null;
         URL.createObjectURL = (blob) => {{ saved = blob; return make.call(URL, blob); }};
         await press('Save run {id} as one file'); await ready(() => saved); return saved.text()"
    );
    let page = act(browser, &file).await;
    let path = folder.join("run.html");
    std::fs::write(&path, page.as_str().expect("a page")).expect("a file");
    browser.open(&format!("file://{}", path.display())).await;
    let opened =
        "const rows = document.querySelectorAll('tbody tr').length; document.querySelector('.open-call').click();
        await ready(() => document.querySelector('article.call canvas'));
        return [rows, document.querySelectorAll('article.call').length]";
    assert_eq!(act(browser, opened).await, json!([3, 1]));
}
