//! Text messages over SIP (RFC 3428): through Kamailio, which demands credentials, with sipp as the agent behind it.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use ringer::engine::Standing;
use serde_json::{Value, json};

use super::house::House;
use super::registration::stands;
use crate::peers::Peer;
use crate::peers::registrar::{OWN_NUMBER, PASSWORD, Registrar, USER};

/// Number that the texts of `texting.xml` come from.
const AGENT: &str = "+15550009999";
/// Number to which the trunk wants credentials.
const SIGNED: &str = "+15550000407";

/// Returns an engine that texts by the trunk at `registrar`.
async fn house(registrar: SocketAddr, more: &str) -> House {
    let (host, port) = (registrar.ip(), registrar.port());
    let settings = format!(
        "[sms]\ncarrier = 'sip'\ngroup_seconds = 0\n[sip.trunks.near]\nhost = '{host}'\nport = {port}\nusername = '{USER}'\n\
         password = '{PASSWORD}'\nnumbers = ['{OWN_NUMBER}']\nallowed_prefixes = ['+1']\ndisplay_name = 'Front desk'\n\
         from_domain = 'desk.example'\nidentity = 'asserted'\n{more}"
    );
    House::with_lines(&settings, "127.0.0.1:0".parse().expect("an address")).await
}

fn registrar(backend: SocketAddr) -> Peer {
    Registrar { backend, ..Registrar::new("SHA-256") }.start()
}

fn agent(number: &str) -> Value {
    json!({ "mode": "TEXT", "phone_number": number })
}

fn human(more: Value) -> Value {
    let intent = json!({ "phone_number": OWN_NUMBER, "intent": "I want a table. For two." });
    crate::json::with(intent, more)
}

/// Simulation whose conversations may last a minute.
fn endless() -> Value {
    json!({ "max_call_duration": 60 })
}

/// Returns the words of a conversation, with who said them.
async fn words(house: &House, id: &str) -> Vec<(String, String)> {
    let read = house.call("GET", &format!("/v1/simulation-result/{id}/transcript"), Value::Null).await;
    let entries = read["entries"].as_array().expect("entries").clone();
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    entries.iter().map(|entry| (text(entry, "speaker"), text(entry, "utterance"))).collect()
}

/// Ends a conversation and returns its result.
async fn end(house: &House, id: &str) -> Value {
    let watch = house.watch(id).await;
    house.post(&format!("/v1/simulation-result/{id}/hangup"), Value::Null).await;
    watch.rest().await;
    house.result(id).await
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_go_both_ways_by_the_trunk_that_owns_the_number() {
    let texter = Peer::taking_texts(2);
    let registrar = registrar(texter.sip);
    let house = house(registrar.sip, "register = true").await;
    assert_eq!(stands(&house, Standing::Up).await, None);
    // The trunk demands credentials for the way there, and finds the way back by the registration.
    let (_, ids) = house.queue(agent(SIGNED), endless(), &[human(json!({}))]).await;
    let mut watch = house.watch(&ids[0]).await;
    watch.until_event("message.sent").await;
    texter.wait_for_log("Hello. I want a table.");
    let log = texter.log();
    let request = log.lines().find(|line| line.contains("MESSAGE sip:")).expect("a request");
    assert!(request.contains(&format!("MESSAGE sip:{SIGNED}@")), "{log}");
    assert!(log.contains(&format!("\"Front desk\" <sip:{OWN_NUMBER}@desk.example>;tag=")), "{log}");
    assert!(log.contains("P-Asserted-Identity: \"Front desk\" <sip:+15550001111@desk.example>"), "{log}");
    assert!(log.contains("Content-Type: text/plain;charset=UTF-8"), "{log}");
    // Nobody else's texts are in this conversation.
    let stray = Peer::texting("Wrong number.", OWN_NUMBER, registrar.sip);
    assert_eq!(stray.end().trim(), "taken");
    let result = end(&house, &ids[0]).await;
    assert_eq!(words(&house, &ids[0]).await.len(), 1, "{result}");
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    let noted = (&result["metadata"]["transport"], &result["metadata"]["target"]);
    assert_eq!(noted, (&json!("SMS by SIP"), &json!(SIGNED)), "{result}");
    // The agent begins.
    let outbound = crate::json::with(agent(AGENT), json!({ "type": "OUTBOUND" }));
    let (_, ids) = house.queue(outbound, endless(), &[human(json!({}))]).await;
    let mut watch = house.watch(&ids[0]).await;
    watch.until("READY").await;
    assert_eq!(Peer::texting("Good day, how can I help?", OWN_NUMBER, registrar.sip).end().trim(), "taken");
    watch.until_event("message.sent").await;
    let result = end(&house, &ids[0]).await;
    assert_eq!((&result["status"], &result["end_reason"]), (&json!("COMPLETED"), &json!("api_hangup")), "{result}");
    let said = words(&house, &ids[0]).await;
    let expect = [("AGENT", "Good day, how can I help?"), ("USER", "I want a table.")];
    let expect = expect.map(|(speaker, text)| (speaker.to_owned(), text.to_owned()));
    assert_eq!(said, expect);
    let kept = std::fs::read_to_string(house.folder.path().join("results").join(&ids[0]).join("http.log"));
    let kept = kept.expect("a log");
    assert!(kept.contains(&format!(" sent MESSAGE sip:{} 200, body 15 bytes sha256 ", registrar.sip)), "{kept}");
    texter.end();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_text_goes_in_parts_that_datagrams_carry() {
    let long = "Grüße aus Köln. ".repeat(80);
    let texter = Peer::taking_texts(20);
    let registrar = registrar(texter.sip);
    let house = house(registrar.sip, "").await;
    let first = json!({ "speaks_first_config": { "speaks_first": true, "mode": "custom", "message": long.trim() } });
    let (_, ids) = house.queue(agent(AGENT), endless(), &[human(first)]).await;
    house.watch(&ids[0]).await.until_event("message.sent").await;
    let log = texter.log();
    let parts: Vec<&str> = log.split("MESSAGE sip:").skip(1).collect();
    assert!((3..=12).contains(&parts.len()), "{}", parts.len());
    let mut came = Vec::new();
    for part in &parts {
        // The proxy has added its Via and its route to what this side sent.
        let body = part.split("Content-Length: ").nth(1).and_then(|rest| rest.split_once('\n')).expect("a body").1;
        assert!(part.len() < 1300 + 400 && body.len() > 100, "{} {}", part.len(), body.len());
        came.extend(body.split_whitespace().filter(|word| ["Grüße", "aus", "Köln."].contains(word)));
    }
    assert_eq!(came, long.split_whitespace().collect::<Vec<_>>(), "no word is cut or lost");
    end(&house, &ids[0]).await;
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_cannot_be_sent_says_why() {
    let texter = Peer::taking_texts(1);
    let registrar = registrar(texter.sip);
    let house = house(registrar.sip, "denied_prefixes = ['+1900']").await;
    for (number, own, code, owner, sip_code) in [
        ("+15550000404", OWN_NUMBER, "SMS_SEND_FAILED", "provider", json!(404)),
        ("+15550000401", OWN_NUMBER, "SMS_SEND_FAILED", "provider", json!(401)),
        ("+19005550000", OWN_NUMBER, "DIAL_PREFIX_REFUSED", "engine", Value::Null),
        ("+4930123456", OWN_NUMBER, "DIAL_PREFIX_REFUSED", "engine", Value::Null),
        (AGENT, "+15550007777", "SMS_NOT_CONFIGURED", "engine", Value::Null),
    ] {
        let (_, ids) = house.queue(agent(number), endless(), &[human(json!({ "phone_number": own }))]).await;
        house.events(&ids[0]).await;
        let result = house.result(&ids[0]).await;
        let outcome = (&result["status"], &result["error_code"], &result["error_owner"], &result["sip_code"]);
        assert_eq!(outcome, (&json!("NO_CONNECTION"), &json!(code), &json!(owner), &sip_code), "{number}: {result}");
        let message = result["error_message"].as_str().unwrap_or_default();
        assert!(sip_code.is_null() || message.contains(&format!("answered {sip_code} ")), "{message}");
    }
    assert_eq!(texter.log(), "", "nothing has come through");
    house.stop().await;
}

/// Sends a MESSAGE from an address, and returns the first line of the answer.
fn text_from(from: &str, to: SocketAddr, branch: &str, seq: u32, words: &str) -> String {
    let socket = UdpSocket::bind((from, 0)).expect("loopback has more than one address");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("the time is not zero");
    let own = socket.local_addr().expect("it is bound");
    let request = format!(
        "MESSAGE sip:{OWN_NUMBER}@{to} SIP/2.0\r\nVia: SIP/2.0/UDP {own};branch=z9hG4bK{branch};rport\r\n\
         From: <sip:{AGENT}@{own}>;tag=a\r\nTo: <sip:{OWN_NUMBER}@{to}>\r\nCall-ID: one-and-the-same\r\n\
         CSeq: {seq} MESSAGE\r\nMax-Forwards: 70\r\nContent-Length: {}\r\n\r\n{words}",
        words.len()
    );
    // The second is a repetition of the transport, which the transaction answers.
    let exchange = || {
        socket.send_to(request.as_bytes(), to).expect("it is sent");
        let mut answer = [0; 4096];
        let (length, _) = socket.recv_from(&mut answer).expect("it is answered");
        String::from_utf8_lossy(&answer[..length]).lines().next().unwrap_or_default().to_owned()
    };
    let (first, second) = (exchange(), exchange());
    assert_eq!(first, second);
    first
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_counts_once_and_strangers_are_refused() {
    let house = house("127.0.0.1:9".parse().expect("an address"), "").await;
    let to = house.engine.sip_address();
    super::registration::comes_true("the trunk is found", || house.engine.is_at_trunk("near", [127, 0, 0, 1].into()))
        .await;
    let outbound = crate::json::with(agent(AGENT), json!({ "type": "OUTBOUND" }));
    let step =
        json!({ "step": 1, "intent": "Hide.", "modality": "sms", "direction": "outbound", "unresponsive": true });
    let (_, ids) = house.queue(outbound, endless(), &[human(json!({ "journey_steps": [step] }))]).await;
    let mut watch = house.watch(&ids[0]).await;
    watch.until("READY").await;
    let say = async |from: &'static str, branch: &'static str, seq: u32, words: &'static str| {
        tokio::task::spawn_blocking(move || text_from(from, to, branch, seq, words)).await.expect("it is answered")
    };
    assert_eq!(say("127.0.0.7", "x", 1, "I am a stranger.").await, "SIP/2.0 403 Forbidden");
    assert_eq!(say("127.0.0.1", "a", 1, "Are you there?").await, "SIP/2.0 200 OK");
    // Another proxy on the way has sent the same message on.
    assert_eq!(say("127.0.0.1", "b", 1, "Are you there?").await, "SIP/2.0 200 OK");
    assert_eq!(say("127.0.0.1", "c", 2, "Hello?").await, "SIP/2.0 200 OK");
    watch.until_event("message.received").await;
    watch.until_event("message.received").await;
    let result = end(&house, &ids[0]).await;
    let said = words(&house, &ids[0]).await;
    assert_eq!(
        said.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(),
        ["Are you there?", "Hello?"],
        "{result}"
    );
    assert_eq!(say("127.0.0.1", "d", 3, "Nobody is there.").await, "SIP/2.0 200 OK");
    house.stop().await;
}
