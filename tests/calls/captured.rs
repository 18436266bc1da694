//! Packet captures of calls: what is told to be captured is, and what is private is not.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::api::results::members;
use crate::peers::Peer;
use crate::program::{KEY, Program, client, up};

/// A datagram of a capture.
struct Packet {
    at_us: u64,
    from: SocketAddr,
    to: SocketAddr,
    payload: Vec<u8>,
}

/// Returns the packets of a capture (pcapng, IPv4 alone), by its blocks.
fn packets(capture: &[u8]) -> Vec<Packet> {
    let mut packets = Vec::new();
    let (mut at, mut blocks) = (0, 0);
    while at < capture.len() {
        let word = |from: usize| u32::from_le_bytes(capture[at + from..][..4].try_into().expect("four bytes"));
        let length = word(4) as usize;
        assert_eq!(word(length - 4) as usize, length, "block {blocks}");
        match (blocks, word(0)) {
            (0, kind) => assert_eq!(kind, 0x0a0d_0d0a),
            (1, kind) => assert_eq!((kind, word(8)), (1, 101), "packets begin with their IP header"),
            (_, kind) => {
                assert_eq!((kind, word(20)), (6, word(24)), "a whole packet");
                let ip = &capture[at + 28..][..word(20) as usize];
                assert_eq!((ip[0], ip[9]), (0x45, 17), "IPv4, UDP");
                let port = |from: usize| u16::from_be_bytes([ip[from], ip[from + 1]]);
                let end = |host: usize, its_port: usize| {
                    let host: [u8; 4] = ip[host..host + 4].try_into().expect("four bytes");
                    SocketAddr::from((host, port(its_port)))
                };
                assert_eq!(usize::from(port(24)), ip.len() - 20, "the length of UDP");
                let at_us = u64::from(word(12)) << 32 | u64::from(word(16));
                packets.push(Packet { at_us, from: end(12, 20), to: end(16, 22), payload: ip[28..].into() });
            }
        }
        (at, blocks) = (at + length, blocks + 1);
    }
    packets
}

/// Returns the records of two calls of 6 s and their evidence: of an agent, and of one that asks for redaction.
async fn two_calls(capture: &str) -> [(Value, BTreeMap<String, Vec<u8>>); 2] {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let peer = Peer::answering(2);
    let mut engine = Program::start(up(folder.path()).env("RINGER_EVIDENCE_CAPTURE", capture));
    let base = engine.address("http://").await;
    let client = client();
    let get = async |path: String| {
        let request = client.get(format!("{base}/v1/{path}")).header("X-API-KEY", KEY);
        let answer = request.send().await.expect("it answers");
        assert_eq!(answer.status(), 200, "{path}");
        answer.bytes().await.expect("a body")
    };
    let post = async |path: &str, body: Value| {
        let request = client.post(format!("{base}/v1/{path}")).header("X-API-KEY", KEY).json(&body);
        request.send().await.expect("it answers").json::<Value>().await.expect("it is JSON")
    };
    let mut calls = Vec::new();
    for redact_pii in [false, true] {
        let agent = json!({ "name": "Desk", "sip_uri": format!("sip:bob@{}", peer.sip), "redact_pii": redact_pii });
        let agent = post("add-agent", agent).await["agent_id"].to_string();
        let simulation = json!({ "agent_id": agent, "max_call_duration": 6, "max_call_duration_units": "seconds" });
        let simulation = post("create-simulation", simulation).await["simulation_id"].clone();
        let human = json!({ "digital_human": { "name": "Ann", "intent": "Ask." }, "simulation_ids": [simulation] });
        post("create-digital-human", human).await;
        let run = post("queue-simulation-run", json!({ "simulation_id": simulation.to_string() })).await;
        let id = run["simulation_result_ids"][0].as_str().expect("an id");
        // The stream of its events ends with it.
        get(format!("simulation-result/{id}/events")).await;
        let record = get(format!("retrieve-simulation-result/{id}")).await;
        let evidence = get(format!("simulation-result/{id}/evidence")).await;
        let record: Value = serde_json::from_slice(&record).expect("JSON");
        calls.push((record["simulation_result"].clone(), members(&evidence)));
    }
    engine.kill().await;
    peer.end();
    calls.try_into().unwrap_or_else(|_| panic!("two calls were made"))
}

#[tokio::test]
async fn every_datagram_of_a_call_is_captured_and_none_of_a_private_one() {
    let [(record, evidence), (_, private)] = two_calls("full").await;
    assert!(!record["metadata"]["warnings"].to_string().contains("capture"), "{record}");
    let packets = packets(&evidence["capture.pcapng"]);
    assert!(packets.is_sorted_by_key(|packet| packet.at_us), "in the order of time");
    assert!(packets[0].payload.starts_with(b"INVITE sip:bob@"), "signalling comes first");
    let engine = packets[0].from.ip();
    let is_rtp = |packet: &&Packet| packet.payload[0] >> 6 == 2 && !(192..=223).contains(&packet.payload[1]);
    let media: Vec<&Packet> = packets.iter().filter(is_rtp).collect();
    let (port, there) = media.first().map(|first| (first.from, first.to)).expect("RTP");
    assert_eq!((port.ip(), port.port() % 2), (engine, 0));
    let [sent, received] = [(port, there), (there, port)].map(|(from, to)| {
        let numbers = media.iter().filter(|packet| (packet.from, packet.to) == (from, to));
        numbers.map(|packet| u16::from_be_bytes([packet.payload[2], packet.payload[3]])).collect::<Vec<u16>>()
    });
    assert_eq!(sent.len() + received.len(), media.len(), "all media go between two ports");
    assert!(sent.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)), "{sent:?}");
    assert!((290..=310).contains(&sent.len()), "{} packets in 6 s", sent.len());
    // Audio that is sent back comes as it went.
    assert!(received.len() > 200 && received.iter().all(|number| sent.contains(number)), "{received:?}");
    let reports = packets.iter().filter(|packet| packet.payload[0] >> 6 == 2 && packet.payload[1] >= 192);
    let own: Vec<&Packet> = reports.filter(|packet| packet.from.port() == port.port() + 1).collect();
    // BYE of RTCP (RFC 3550 6.6), at the end of the last report alone.
    let leaves = |packet: &&Packet| packet.payload[packet.payload.len() - 8..].starts_with(&[0x81, 203, 0, 1]);
    let left: Vec<bool> = own.iter().map(leaves).collect();
    assert!(left.len() > 1 && left.iter().rposition(|left| !left) == Some(left.len() - 2), "{left:?}");
    assert!(!private.contains_key("capture.pcapng") && private.contains_key("result.json"), "{:?}", private.keys());
}

#[tokio::test]
async fn without_being_told_to_no_media_are_captured() {
    let [(_, evidence), _] = two_calls("signalling").await;
    let packets = packets(&evidence["capture.pcapng"]);
    assert!(packets.len() > 4 && packets.iter().all(|packet| packet.payload.is_ascii()), "{}", packets.len());
}
