//! The messages of RFC 4475 to an engine that works: each gets its answer, and calls beside and behind them are as
//! ever.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::callers::{Caller, media, waiting};
use super::house::House;
use crate::peers::Peer;

const PATIENCE: Duration = Duration::from_secs(30);
/// Ports to which answers go: where a request names none, and where one of them names another.
const PORTS: [u16; 2] = [5060, 5050];

/// The sender of the messages: an address of loopback that is its own, since answers go to the ports that the messages
/// name.
struct Sender {
    sockets: [UdpSocket; 2],
}

impl Sender {
    async fn new() -> Sender {
        let process = std::process::id();
        let host = Ipv4Addr::new(127, 44, (process / 250 % 250) as u8 + 1, (process % 250) as u8 + 1);
        let bind = async |port| UdpSocket::bind((host, port)).await.expect("nobody else has the address");
        Sender { sockets: [bind(PORTS[0]).await, bind(PORTS[1]).await] }
    }

    async fn send(&self, message: &[u8], to: SocketAddr) {
        self.sockets[0].send_to(message, to).await.expect("loopback takes it");
    }

    /// Returns the next final answer, to whichever request.
    async fn answer(&self, why: &str) -> (u16, String) {
        let (mut one, mut two) = ([0; 8192], [0; 8192]);
        loop {
            let next = async {
                tokio::select! {
                    length = self.sockets[0].recv(&mut one) => one[..length.expect("it reads")].to_vec(),
                    length = self.sockets[1].recv(&mut two) => two[..length.expect("it reads")].to_vec(),
                }
            };
            let bytes = timeout(PATIENCE, next).await.unwrap_or_else(|_| panic!("{why}: no answer"));
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let code = text.split(' ').nth(1).and_then(|code| code.parse().ok());
            let code: u16 = code.unwrap_or_else(|| panic!("{why}: {text}"));
            if code >= 200 {
                return (code, text);
            }
        }
    }
}

/// Returns a field of a message by its long or its short name.
fn field(message: &str, names: &[&str]) -> String {
    let lines = message.lines().filter_map(|line| line.split_once(':'));
    let mut found = lines.filter(|(name, _)| names.iter().any(|known| name.trim().eq_ignore_ascii_case(known)));
    found.next().map_or("", |(_, value)| value).trim().to_owned()
}

/// Returns the message, with another branch when an earlier one has the same: it would be taken for its repetition (RFC
/// 3261 17.2.3).
fn fresh(message: Vec<u8>, name: &str, seen: &mut HashSet<String>) -> Vec<u8> {
    let text = String::from_utf8_lossy(&message).into_owned();
    let branch = field(&text, &["via", "v"]).split_once("branch=").map(|(_, branch)| branch.to_owned());
    let Some(branch) = branch.filter(|branch| branch.starts_with("z9hG4bK") && !seen.insert(branch.clone())) else {
        return message;
    };
    text.replacen(&branch, &format!("{branch}{name}"), 1).into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_message_of_the_torture_test_has_its_answer_beside_a_call() {
    let (house, sender) = (House::new().await, Sender::new().await);
    let to = house.engine.sip_address();
    let id = waiting(&house, json!({}), json!({}), "15550003001", 30).await;
    let (_socket, port) = media();
    let beside = Peer::calling_user("caller", "15550003001", to, "", port);
    house.watch(&id).await.until("RUNNING").await;
    let mut seen = HashSet::new();
    for (name, expect) in answers() {
        let message = fresh(message(&name), &name, &mut seen);
        sender.send(&message, to).await;
        // Nobody is known by such names, so that a call finds nobody.
        let code = match expect.as_str() {
            "silent" => continue,
            "call" => 404,
            code => code.parse().expect("a code"),
        };
        let call_id = field(&String::from_utf8_lossy(&message), &["call-id", "i"]);
        // Refusals of earlier INVITEs are repeated, since no ACK comes here.
        let got = loop {
            let got = sender.answer(&name).await;
            if field(&got.1, &["call-id"]) == call_id {
                break got;
            }
        };
        assert_eq!(got.0, code, "{name}: {}", got.1);
    }
    assert_eq!(house.result(&id).await["status"], "RUNNING", "the call beside was up all the time");
    assert_eq!(beside.end().trim(), "answered");
    house.events(&id).await;
    let result = house.result(&id).await;
    assert_eq!(
        (&result["conversation_ended_by"], &result["engine_quality"]["lost_packets"]),
        (&json!("AGENT"), &json!(0))
    );
    let (log, ..) = Caller::start(&house, "caller", "15550003002").await.end(&house).await;
    assert_eq!(log.trim(), "answered", "the next call is taken as ever");
    house.stop().await;
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/sip/torture")
}

fn message(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(format!("{name}.dat"))).expect("the message is there")
}

/// Returns the names of the messages, each with its answer.
fn answers() -> Vec<(String, String)> {
    let table = std::fs::read_to_string(folder().join("expect.txt")).expect("the table is there");
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    let rows = lines.filter_map(|line| line.split_once(' ').zip(line.rsplit_once(' ')));
    let rows: Vec<_> = rows.map(|(first, last)| (first.0.to_owned(), last.1.to_owned())).collect();
    assert_eq!(rows.len(), 49);
    rows
}
