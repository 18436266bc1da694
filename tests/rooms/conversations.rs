//! Whole calls of the engine to official clients in rooms.

use std::time::Duration;

use ringer::config::Secret;
use ringer::engine::{CallReport, Destination, Placement, RoomDial};
use ringer::provider::guard::Guard;
use ringer::transport::room::RoomTarget;
use ringer::transport::webrtc::PeerTerms;
use ringer_media::call::{ChannelEvent, DtmfMethod, EndReason, EventKind, Interruption, Opening};
use serde_json::{Value, json};

use super::official::official;
use super::phone::share;
use super::server::{RoomServer, token};
use crate::calls::stage::{Stage, channels, names};

const INTENT: &str = "Hello, I would like to book a table for two people tomorrow at eight in the evening.";

/// Speech of the agent, 20 s.
pub(crate) const SPEECH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/audio/speech.ul");

/// A call to the room.
pub(crate) fn placement(stage: &Stage, server: &RoomServer, max_ms: u32) -> Placement {
    let mut placement = stage.placement("", INTENT);
    let target = RoomTarget {
        server_url: server.url.clone(),
        token: Secret::new(token("dh-42", Duration::from_secs(600))),
        tool_topic: Some("tools".to_owned()),
        agent_name: None,
    };
    let peers = PeerTerms { bind: vec![[127, 0, 0, 1].into()], ..PeerTerms::default() };
    placement.destination = Destination::Room(Box::new(RoomDial { target, peers, ..RoomDial::default() }));
    placement.spec.dtmf = DtmfMethod::MessageAndTone;
    placement.spec.limits.max_duration_ms = Some(max_ms);
    placement
}

fn channel_events(report: &CallReport) -> Vec<&ChannelEvent> {
    let events = report.timeline.iter().map(|entry| &entry.what);
    events.filter_map(|what| if let EventKind::Channel(events) = what { Some(&**events) } else { None }).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_to_a_room_is_recorded_told_and_measured() {
    let (server, stage) = (RoomServer::start().await, Stage::new().await);
    let agent = official(&server, "agent-1", &["--seconds", "60"]).await;
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut placement = placement(&stage, &server, 5000);
    placement.folder = Some(folder.path().to_owned());
    placement.captured = true;
    placement.spec.extension = Some("5".to_owned());
    placement.spec.opening = Opening::Say(INTENT.to_owned());
    let telling = async {
        agent.sees(|seen| seen["digits"] == json!(["5"])).await;
        let call = json!({ "name": "book", "parameters": { "n": 2 }, "output": "ok", "start_offset_ms": 40 });
        agent.tell("/data", json!({ "text": call.to_string(), "topic": "tools" })).await;
        agent.tell("/data", json!({ "text": "no call", "topic": "tools" })).await;
        agent.tell("/transcription", json!({ "text": "Good day." })).await;
        agent.tell("/digit", json!({ "code": 9, "digit": "9" })).await;
        agent.tell("/attributes", json!({ "lk.agent.state": "speaking" })).await;
    };
    let (report, ()) = tokio::join!(stage.call(placement), telling);
    let report = report.expect("a place is free");
    let events = names(&report).join(" ");
    assert_eq!((report.ending.connected, report.ending.reason), (true, EndReason::MaxDuration), "{events}");
    assert_eq!(report.peer.transport(), "WebRTC, UDP/TLS/RTP/SAVPF");
    // The room server is at every address of the machine.
    let address = report.peer.address.as_ref().and_then(|at| at.parse::<std::net::SocketAddr>().ok());
    assert!(address.is_some_and(|at| at.is_ipv4() && at.port() > 0), "{:?}", report.peer);
    assert!(report.peer.call_id.starts_with("PA_") && report.peer.codec == Some("OPUS"), "{:?}", report.peer);
    let [own, heard] = channels(report.recording.as_ref().expect("it was recorded"));
    let tone = heard.chunks(8000).map(|part| share(part, 880.0)).fold(0.0, f64::max);
    let loudest = own.into_iter().max().unwrap_or_default();
    assert!(tone > 0.8 && loudest > 1000, "{tone} {loudest}");
    let seen = agent.look().await;
    assert!(seen["loud"].as_u64() > Some(50), "the caller is heard: {seen}");
    assert!(seen["key"].as_f64() > Some(0.8), "the tones of the key are heard: {seen}");
    // What the room told.
    let found = channel_events(&report);
    assert!(found.contains(&&ChannelEvent::Reported { text: "Good day.".into() }), "{found:?}");
    let state = ChannelEvent::Other { name: "agent_state".into(), data: json!({ "state": "speaking" }) };
    assert!(found.contains(&&state), "{found:?}");
    let tools: Vec<(Value, i64)> = report
        .timeline
        .iter()
        .filter_map(|entry| match &entry.what {
            EventKind::ToolCall(call) => Some((json!([call.name, call.parameters, call.output]), entry.sample / 16)),
            _ => None,
        })
        .collect();
    assert_eq!(tools, [(json!(["book", { "n": 2 }, "ok"]), 40)]);
    assert!(events.contains("dtmf_received"), "{events}");
    let bad = "1 data packets on the topic of tools are no calls of tools, and were not read".to_owned();
    assert!(report.warnings.contains(&bad), "{:?}", report.warnings);
    // Figures of the packets.
    let quality = &report.ending.quality;
    assert!(quality.sent_frames > 200 && quality.received_packets > 200, "{quality:?}");
    assert_eq!((quality.lost_packets, quality.unknown_payload_type, quality.foreign_source), (0, 0, 0), "{quality:?}");
    assert!(quality.pacing_p99_ms > 0.0, "{quality:?}");
    let log = std::fs::read_to_string(folder.path().join("room.log")).expect("it was written");
    let connected = format!("connected to {}", report.peer.address.as_deref().unwrap_or_default());
    for part in ["> join at ws://127.0.0.1:", connected.as_str(), "> dtmf", "< dtmf", "> leave"] {
        assert!(log.contains(part), "no {part} in\n{log}");
    }
    assert!(!log.contains("Good day") && !log.contains("eyJ"), "{log}");
    let captured = std::fs::metadata(folder.path().join("media.pcapng")).expect("it was captured").len();
    assert!(captured > 200 * 100, "{captured} bytes of some 400 packets");
    agent.sees(|seen| seen["left"] == json!(["dh-42"])).await;
    stage.engine.stop().await;
}

/// The agent speaks into the caller's words, and the caller gives way.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_in_a_room_gives_way() {
    let (server, stage) = (RoomServer::start().await, Stage::new().await);
    let agent = official(&server, "agent-1", &["--speech", SPEECH, "--silent"]).await;
    let mut first = placement(&stage, &server, 20_000);
    first.spec.opening = Opening::Say(INTENT.to_owned());
    let cut_in = async {
        agent.sees(|seen| seen["loud"].as_u64() > Some(20)).await;
        agent.tell("/set", json!({ "speaks": true })).await;
        agent.sees(|seen| seen["quiet"].as_u64() > Some(50)).await;
        agent.post("/leave").await;
    };
    let (report, ()) = tokio::join!(stage.call(first), cut_in);
    let report = report.expect("a place is free");
    let cut =
        report.timeline.iter().any(|entry| matches!(entry.what, EventKind::SpeechEnded { interrupted: true, .. }));
    assert!(cut, "{:?}", names(&report));
    assert_eq!(report.ending.reason, EndReason::AgentHangup);
    stage.engine.stop().await;
}

/// The caller cuts in on the agent's words, and the agent gives way.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_in_a_room_gives_way() {
    let (server, stage) = (RoomServer::start().await, Stage::new().await);
    let agent = official(&server, "agent-1", &["--speech", SPEECH, "--silent"]).await;
    let mut call = placement(&stage, &server, 30_000);
    call.spec.opening = Opening::Say("Good morning.".to_owned());
    call.spec.interruption =
        Interruption::Level { name: "level", probability: 1.0, from_ms: 1500, to_ms: 1600, at_most: Some(1) };
    let answer = async {
        // The greeting is over.
        agent.sees(|seen| seen["loud"].as_u64() > Some(10) && seen["quiet"].as_u64() > Some(25)).await;
        agent.tell("/set", json!({ "speaks": true, "yields": true })).await;
        agent.sees(|seen| seen["yields"].as_u64() > Some(0)).await;
        agent.sees(|seen| seen["quiet"].as_u64() > Some(50)).await;
        agent.post("/leave").await;
    };
    let (report, ()) = tokio::join!(stage.call(call), answer);
    let report = report.expect("a place is free");
    let events = names(&report).join(" ");
    let stops: Vec<Option<i64>> = super::barge_in::stops(&report, "dh");
    assert!(matches!(stops[..], [Some(stop)] if (0..=900).contains(&stop)), "{stops:?}: {events}");
    assert_eq!(report.ending.reason, EndReason::AgentHangup, "{events}");
    stage.engine.stop().await;
}

/// The address of a room server, and every packet to it, pass the guard.
#[tokio::test(flavor = "multi_thread")]
async fn a_room_at_an_address_that_is_not_allowed_is_not_joined() {
    let (server, stage) = (RoomServer::start().await, Stage::new().await);
    let mut placement = placement(&stage, &server, 1500);
    placement.destination.set_guard(Guard::new(false));
    let report = stage.call(placement).await.expect("a place is free");
    let remote = report.ending.remote.expect("it was refused");
    assert_eq!((report.ending.connected, remote.pipeline_code()), (false, Some("room_connect")));
    let words = "join of the room: the address of the room server points to a host that is not allowed";
    assert_eq!(remote.text, words);
    stage.engine.stop().await;
}
