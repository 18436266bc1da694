//! A thread by mail in the page: it moves while it goes on, is shown as a conversation, and opens from disk.

use serde_json::{Value, json};

use super::browser::Browser;
use super::{looks_right, send_json, with_key};
use crate::mail::house::{AGENT, DOMAIN, agent, free_port};
use crate::peers::python::PythonServer;
use crate::program::{KEY, Program, client, up};

/// Hostile words of the agent, which are shown as they are.
const WORDS: &str = "<img src=x onerror=\"document.title='got'\"> At seven.";

/// Script that returns what is shown of each mail: side, kind, subject, from and to, words, quotation, if that is seen,
/// and files.
const SHOWN: &str = "
    return [...document.querySelectorAll('.mails > li')].map((one) => {
        const folded = one.querySelector('details');
        const seen = folded && folded.querySelector('pre').checkVisibility();
        return [one.classList[0], one.dataset.kind, one.querySelector('.subject strong').textContent,
            one.querySelector('p.soft').textContent, one.querySelector('.said').textContent,
            folded ? folded.querySelector('pre').textContent : null, seen,
            [...one.querySelectorAll('.files li')].map((file) => file.textContent), Boolean(one.querySelector('time').textContent)];
    });";

async fn start(agent_port: u16, listens: u16) -> (tempfile::TempDir, Program, String) {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let settings = format!(
        "[email]\nsmtp_url = 'smtp://127.0.0.1:{agent_port}'\nlisten = '127.0.0.1:{listens}'\ninbound_domain = '{DOMAIN}'\n"
    );
    std::fs::write(folder.path().join("ringer.toml"), settings).expect("it can be written");
    let mut engine = Program::start(&mut up(folder.path()));
    let base = engine.address("http://").await;
    (folder, engine, base)
}

async fn queue(base: &str) {
    let desk = json!({ "name": "Desk", "mode": "EMAIL", "email_address": AGENT });
    let desk = send_json(base, "/v1/add-agent", desk).await["agent_id"].to_string();
    let simulation = json!({ "agent_id": desk, "name": "Booking", "max_turns": 2 });
    let simulation = send_json(base, "/v1/create-simulation", simulation).await["simulation_id"].clone();
    let human = json!({ "name": "Ann", "intent": "I want a table. For two. At eight." });
    let human = json!({ "digital_human": human, "simulation_ids": [simulation] });
    send_json(base, "/v1/create-digital-human", human).await;
    send_json(base, "/v1/queue-simulation-run", json!({ "simulation_id": simulation.to_string() })).await;
}

/// Sends a mail of the agent, or of somebody else, to the thread.
async fn send(agent: &PythonServer, listens: u16, mail: Value) {
    let mut body = json!({ "port": listens, "from": AGENT });
    body.as_object_mut().expect("an object").extend(mail.as_object().expect("an object").clone());
    agent.tell("/send", body).await;
}

#[tokio::test]
async fn a_thread_is_shown_as_a_conversation() {
    let (agent, agent_port) = agent().await;
    let listens = free_port();
    let (folder, _engine, base) = start(agent_port, listens).await;
    agent.tell("/script", json!({ "files": { "menu.pdf": "%PDF-1.4" } })).await;
    queue(&base).await;
    let first = agent.sees(|seen| seen["mails"].as_array().is_some_and(|mails| !mails.is_empty())).await;
    let to = first["mails"][0]["from"].as_str().expect("an address").to_owned();
    let browser = with_key(&base).await;
    browser.open(&format!("{base}/results/1")).await;
    browser.until("the first mail", "document.querySelectorAll('.mails > li.dh').length === 1").await;
    assert_eq!(
        browser.run("return document.querySelector('canvas').checkVisibility()").await,
        false,
        "nothing to hear"
    );
    looks_right(&browser, "a thread that goes on").await;
    // It moves while it is looked at.
    send(&agent, listens, json!({ "from": "thief@evil.example", "to": [to], "text": "Tell me all." })).await;
    agent.tell("/script", json!({ "replies": ["It is booked."], "port": listens })).await;
    let text = format!("{WORDS}\n\nOn Monday Ann wrote:\n> I want a table.\n-- \nThe Desk");
    send(&agent, listens, json!({ "to": [to], "text": text, "headers": { "Subject": "Re: your <b>table</b>" } })).await;
    browser.until("downloads", "document.querySelector('.downloads button')").await;
    shown_mails_are_right(&browser, &to).await;
    looks_right(&browser, "a thread").await;
    let saved = "return [...document.querySelectorAll('.downloads button')].map((one) => one.textContent)";
    assert!(browser.run(saved).await.as_array().expect("names").contains(&json!("Mails (JSON)")));

    let page = client().get(format!("{base}/v1/simulation-result/1/page")).header("x-api-key", KEY).send();
    let page = page.await.expect("it answers").bytes().await.expect("a page");
    let file = folder.path().join("thread.html");
    std::fs::write(&file, page).expect("the folder is writable");
    browser.open(&format!("file://{}", file.display())).await;
    browser.until("the mails", "document.querySelectorAll('.mails > li').length >= 5").await;
    shown_mails_are_right(&browser, &to).await;
    looks_right(&browser, "a saved thread").await;
}

/// Checks what is shown of five mails of a thread: three messages, one that was rejected, and the last answer.
async fn shown_mails_are_right(browser: &Browser, to: &str) {
    let shown = browser.run(SHOWN).await;
    let mails = shown.as_array().expect("mails");
    let of = |at: usize| mails.iter().map(|mail| mail[at].clone()).collect::<Vec<_>>();
    assert_eq!(of(0), ["dh", "agent", "agent", "dh", "agent"], "{shown}");
    assert_eq!(of(1), ["sent", "rejected", "turn", "sent", "turn"], "{shown}");
    assert_eq!(
        (&mails[0][2], &mails[2][2], &mails[3][2]),
        (&json!("I want a table"), &json!("Re: your <b>table</b>"), &json!("Re: your <b>table</b>"))
    );
    assert_eq!((&mails[2][3], &mails[2][4]), (&json!(format!("{AGENT} \u{2192} {to}")), &json!(WORDS)));
    let quoted = mails[2][5].as_str().expect("a quotation");
    assert!(quoted.contains("On Monday Ann wrote:") && quoted.ends_with("The Desk"), "{quoted}");
    assert_eq!((&mails[2][6], &mails[0][5]), (&json!(false), &Value::Null), "it is folded: {shown}");
    assert_eq!(mails[4][7], json!(["menu.pdf application/pdf, 8 bytes"]), "{shown}");
    assert!(mails.iter().all(|mail| mail[8] == true), "each has its time: {shown}");
    assert_ne!(browser.run("return document.title").await, "got");
    let unfolded = "const one = document.querySelector('.mails details'); one.querySelector('summary').click();
        return one.querySelector('pre').checkVisibility()";
    assert_eq!(browser.run(unfolded).await, true);
    browser.run("document.querySelector('.mails details summary').click(); return 1").await;
}
