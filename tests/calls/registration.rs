//! Trunks that are registered with, before Kamailio: calls that come in by the registration, calls that go out, what is
//! refused, and a trunk that dies. And strangers who send too much.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use axum::body::to_bytes;
use ringer::config::Sources;
use ringer::engine::{CallReport, Standing};
use ringer_media::call::Opening;
use ringer_media::level::rms_dbov;
use serde_json::{Value, json};
use tokio::net::UdpSocket;
use tokio::time::{interval, timeout};

use super::house::House;
use super::stage::{Stage, channels};
use super::streams::with_certificate;
use crate::peers::Peer;
use crate::peers::registrar::{OWN_NUMBER, PASSWORD, Registrar, USER};

/// Time limit of one condition on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const ANY: &str = "127.0.0.1:0";

/// Returns the settings of a trunk at a registrar, with these further lines.
fn trunk(at: SocketAddr, password: &str, more: &str) -> String {
    let (host, port) = (at.ip(), at.port());
    format!(
        "[sip.trunks.near]\nhost = '{host}'\nport = {port}\nusername = '{USER}'\npassword = '{password}'\n\
         numbers = ['{OWN_NUMBER}']\nallowed_prefixes = ['+1']\n{more}"
    )
}

async fn house(at: SocketAddr, password: &str, more: &str) -> House {
    House::with_lines(&trunk(at, password, more), ANY.parse().expect("an address")).await
}

/// Waits until something is so.
pub(crate) async fn comes_true(what: &str, mut holds: impl FnMut() -> bool) {
    let mut looks = interval(Duration::from_millis(20));
    let waiting = async {
        while !holds() {
            looks.tick().await;
        }
    };
    timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("it never comes true: {what}"));
}

/// Waits until the registration of the only trunk stands so; returns the last error.
pub(super) async fn stands(house: &House, expect: Standing) -> Option<String> {
    let registration = || house.engine.lines().reports().first().and_then(|line| line.registration.clone());
    comes_true(&format!("{expect:?}"), || registration().is_some_and(|line| line.standing == expect)).await;
    registration().and_then(|line| line.error)
}

async fn figures(house: &House) -> String {
    let (status, page) = house.ask("GET", "/metrics", Value::Null).await;
    assert_eq!(status, 200);
    String::from_utf8(to_bytes(page, 1 << 20).await.expect("a body").to_vec()).expect("text")
}

/// Calls the number of the trunk at `registrar`; what is heard is kept in `folder`.
pub(super) async fn call(caller: &Stage, registrar: SocketAddr, folder: &Path) -> CallReport {
    let mut placement = caller.placement(&format!("sip:{OWN_NUMBER}@{registrar}"), "Your table is ready.");
    placement.spec.opening = Opening::Say("Your table is ready.".into());
    placement.folder = Some(folder.join("agent"));
    caller.call(placement).await.expect("it was placed")
}

/// Has the number of the trunk called as soon as somebody listens on it, for `most_s` seconds, and checks that both
/// sides hear each other.
pub(super) async fn hold_call(
    house: &House,
    most_s: u32,
    folder: &Path,
    calling: impl Future<Output = CallReport>,
) -> Value {
    let asking = json!({ "type": "OUTBOUND", "connection_type": "PHONE" });
    let (_, ids) =
        house.queue(asking, json!({ "max_call_duration": most_s }), &[json!({ "phone_number": OWN_NUMBER })]).await;
    house.watch(&ids[0]).await.until("READY").await;
    let report = calling.await;
    assert!(report.ending.connected, "{:?}", report.ending);
    house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    assert_eq!(result["metadata"]["incoming"]["trunk"], "near", "{result}");
    let kept = house.folder.path().join("results").join(&ids[0]);
    // Requests of the call find back, through a NAT, too.
    let log = std::fs::read_to_string(kept.join("sip.log")).expect("it was written");
    assert!(log.contains(" ACK sip:") && log.contains(" BYE sip:"), "{log}");
    let kept = kept.join("recording.wav");
    let ([own, other], [said, heard]) = (channels(&kept), channels(&folder.join("agent/recording.wav")));
    let loudest = |pcm: &[i16]| pcm.chunks(1600).map(rms_dbov).fold(f64::MIN, |a, b| a.max(b));
    for (who, sent, came) in [("the Digital Human", &own, &heard), ("the agent", &said, &other)] {
        let (sent, came) = (loudest(sent), loudest(came));
        assert!(sent > -40.0 && (sent - came).abs() < 1.0, "{who}: said at {sent:e} dB, heard at {came:e} dB");
    }
    result
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_comes_in_by_a_registration() {
    for (algorithm, transport) in [("MD5", "udp"), ("SHA-256", "tcp"), ("SHA-256", "udp"), ("MD5", "tcp")] {
        let registrar = Registrar::new(algorithm).start();
        let more = format!("register = true\nkeepalive_s = 1\ntransport = '{transport}'");
        let house = house(registrar.sip, PASSWORD, &more).await;
        assert_eq!(stands(&house, Standing::Up).await, None, "{algorithm} {transport}");
        let (folder, caller) = (tempfile::tempdir().expect("a folder"), Stage::new().await);
        hold_call(&house, 6, folder.path(), call(&caller, registrar.sip, folder.path())).await;
        let health = house.call("GET", "/health/deps", Value::Null).await;
        let shown = &health["trunks"][0];
        assert_eq!((&shown["name"], &shown["registration"]["state"]), (&json!("near"), &json!("up")), "{health}");
        assert_eq!(shown["keepalive"]["state"], "up", "{health}");
        assert!(shown["registration"]["since"].as_str().is_some_and(|since| since.starts_with("20")), "{health}");
        let page = figures(&house).await;
        for by in ["registration", "keepalive"] {
            let line = format!("ringer_trunk_up{{by=\"{by}\",trunk=\"near\"}} 1");
            assert!(page.lines().any(|shown| shown == line), "{page}");
        }
        house.stop().await;
        registrar.wait_for(";expires=0 authorization");
    }
}

/// The engine listens for nothing but UDP, so that the call comes by the connection that it has made.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_comes_in_by_the_tls_connection_of_a_registration() {
    let certificates = tempfile::tempdir().expect("a folder");
    with_certificate(&certificates, "127.0.0.1");
    let registrar = Registrar { certificates: Some(certificates.path()), ..Registrar::new("SHA-256") }.start();
    let secure = SocketAddr::new(registrar.sip.ip(), registrar.sip.port() + 1);
    let root = certificates.path().join("ca.pem");
    let more = format!("register = true\ntransport = 'tls'\n[tls]\nroot_file = '{}'", root.display());
    let house = house(secure, PASSWORD, &more).await;
    assert_eq!(stands(&house, Standing::Up).await, None);
    let (folder, caller) = (tempfile::tempdir().expect("a folder"), Stage::new().await);
    let result = hold_call(&house, 3, folder.path(), call(&caller, registrar.sip, folder.path())).await;
    assert_eq!(result["metadata"]["incoming"]["source"], secure.to_string(), "{result}");
    let log = house.folder.path().join("results").join(result["id"].to_string()).join("sip.log");
    let log = std::fs::read_to_string(log).expect("it was written");
    for way in ["received from", "sent to"] {
        let (all, secured) = (format!("{way} "), format!("{way} TLS {secure} at "));
        assert!(log.matches(&all).count() > 1 && log.matches(&all).count() == log.matches(&secured).count(), "{log}");
    }
    house.stop().await;
    registrar.wait_for(";expires=0 authorization");
    let output = registrar.output();
    let seen = output.lines().filter_map(|line| line.split_once("seen: REGISTER from ")?.1.split_once(" contact "));
    let from: BTreeSet<&str> = seen.map(|(from, _)| from).collect();
    assert_eq!(from.len(), 1, "one connection: {output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_are_tried_once() {
    let registrar = Registrar::new("MD5").start();
    let house = house(registrar.sip, "guess", "register = true").await;
    let error = stands(&house, Standing::Down).await;
    assert_eq!(error.as_deref(), Some("the credentials were refused: 401 Unauthorized"));
    let health = house.call("GET", "/health/deps", Value::Null).await;
    assert_eq!((&health["status"], &health["deps"]["sip"]["status"]), (&json!("degraded"), &json!("down")), "{health}");
    assert_eq!(health["trunks"][0]["registration"]["error"], "the credentials were refused: 401 Unauthorized");
    assert_eq!(registrar.output().matches("seen: REGISTER").count(), 2, "{}", registrar.output());
    assert!(!format!("{health}{}", figures(&house).await).contains("guess"));
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_a_trunk_lead_to_codes() {
    let phone = Peer::answering(1);
    let registrar = Registrar { backend: phone.sip, ..Registrar::new("SHA-256") }.start();
    let house = house(registrar.sip, PASSWORD, "keepalive_s = 0").await;
    for (number, status, code, sip_code) in [
        ("+15550000401", "NO_CONNECTION", json!("SIP_AUTH_FAILED"), json!(401)),
        ("+15550000403", "NO_CONNECTION", json!("SIP_DIAL_FAILED"), json!(403)),
        ("+15550001403", "NO_CONNECTION", json!("UNUSABLE_CALLER_ID"), json!(403)),
        ("+15550000404", "NO_CONNECTION", json!("INVALID_PHONE_NUMBER"), json!(404)),
        ("+15550000484", "NO_CONNECTION", json!("INVALID_PHONE_NUMBER"), json!(484)),
        ("+15550000604", "NO_CONNECTION", json!("INVALID_PHONE_NUMBER"), json!(604)),
        ("+15550000486", "NO_ANSWER", json!("CALL_REJECTED"), json!(486)),
        ("+15550000503", "NO_CONNECTION", json!("SIP_DIAL_FAILED"), json!(503)),
        ("+15550001503", "NO_CONNECTION", json!("CUSTOMER_CONCURRENCY_LIMIT"), json!(503)),
        // The credentials of the trunk are right.
        ("+15550000407", "COMPLETED", Value::Null, Value::Null),
    ] {
        let (_, ids) = house.queue(json!({ "phone_number": number }), json!({}), &[json!({})]).await;
        house.events(&ids[0]).await;
        let result = house.result(&ids[0]).await;
        let outcome = (&result["status"], &result["error_code"]);
        assert_eq!(outcome, (&json!(status), &code), "{number}: {result}\n{}", registrar.output());
        if status != "COMPLETED" {
            assert_eq!(result["sip_code"], sip_code, "{number}: {result}");
        }
    }
    let lettered = json!({ "name": "Desk", "phone_number": "+1800FLOWERS" });
    assert_eq!(house.ask("POST", "/v1/add-agent", lettered).await.0, 400);
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trunk_that_dies_is_down_until_it_is_back() {
    let registrar = Registrar::new("MD5").start();
    let at = registrar.sip;
    let house = house(at, PASSWORD, "keepalive_s = 1").await;
    let keepalive = || house.engine.lines().reports().first()?.keepalive.as_ref().map(|line| line.standing);
    comes_true("up", || keepalive() == Some(Standing::Up)).await;
    drop(registrar);
    comes_true("down", || keepalive() == Some(Standing::Down)).await;
    let page = figures(&house).await;
    assert!(page.contains("ringer_trunk_up{by=\"keepalive\",trunk=\"near\"} 0"), "{page}");
    let (_, ids) = house.queue(json!({ "phone_number": "+15550009999" }), json!({}), &[json!({})]).await;
    house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    let outcome = (&result["status"], &result["error_code"], &result["error_owner"]);
    assert_eq!(outcome, (&json!("NO_CONNECTION"), &json!("SIP_DIAL_FAILED"), &json!("network")), "{result}");
    let registrar = Registrar { port: Some(at.port()), ..Registrar::new("MD5") }.start();
    comes_true("up again", || keepalive() == Some(Standing::Up)).await;
    house.stop().await;
    drop(registrar);
}

/// Returns an INVITE of a stranger to nobody.
/// Returns an INVITE to nobody, each number a call of its own.
pub(super) fn invite(from: SocketAddr, to: SocketAddr, number: usize) -> String {
    format!(
        "INVITE sip:nobody@{to} SIP/2.0\r\nVia: SIP/2.0/UDP {from};branch=z9hG4bKstranger{number}\r\n\
         From: <sip:stranger@{from}>;tag={number}\r\nTo: <sip:nobody@{to}>\r\nCall-ID: stranger-{number}\r\n\
         CSeq: 1 INVITE\r\nContact: <sip:stranger@{from}>\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n"
    )
}

/// Twenty calls go on while a stranger sends ten thousand INVITEs that nobody acknowledges. Most are not looked at,
/// none is answered more than twice, and the packets of the calls leave as before.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_strangers_holds_no_call_up() {
    const CALLS: usize = 20;
    const FLOOD: usize = 10_000;
    let phone = Peer::answering(CALLS as u32);
    let settings = trunk(phone.sip, PASSWORD, "keepalive_s = 0");
    let house = House::with_lines(&settings, ANY.parse().expect("an address")).await;
    house.engine.limit_strangers(&Sources::default()).await;
    let agent = json!({ "phone_number": "+15550009999" });
    let simulation = json!({ "max_call_duration": 4 });
    let (_, ids) = house.queue(agent, simulation, &vec![json!({}); CALLS]).await;
    comes_true("all calls are up", || house.engine.counters().calls().connected as usize == CALLS).await;
    let stranger = UdpSocket::bind("127.0.0.9:0").await.expect("loopback has a free port");
    let (own, to) = (stranger.local_addr().expect("it is bound"), house.engine.sip_address());
    let (mut answers, mut bytes) = (Vec::new(), [0; 2048]);
    for number in 0..FLOOD {
        stranger.send_to(invite(own, to, number).as_bytes(), to).await.expect("loopback takes it");
        while let Ok(length) = stranger.try_recv(&mut bytes) {
            answers.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
        }
    }
    for id in &ids {
        house.events(id).await;
        let result = house.result(id).await;
        assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
        assert_eq!(result["engine_quality"]["lost_packets"], 0, "{result}");
    }
    while let Ok(length) = stranger.try_recv(&mut bytes) {
        answers.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
    }
    let limited = house.engine.lines().count_limited() as usize;
    let refusals = answers.iter().filter(|answer| answer.starts_with("SIP/2.0 403")).count();
    // Datagrams may be lost before they are seen. A call of 4 s ago is not answered again (RFC 3261 17.2.1, timer G).
    assert!(limited > 0 && refusals > 0 && refusals + limited <= FLOOD, "{refusals} {limited}");
    assert!(answers.len() <= 2 * refusals + 1, "{} answers, {refusals} refusals", answers.len());
    assert!(refusals <= 200 + 50 * 60, "{refusals}");
    let page = figures(&house).await;
    assert!(page.contains(&format!("ringer_sip_strangers_limited_total {limited}")), "{page}");
    house.stop().await;
}
