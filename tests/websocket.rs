//! Calls to agents over WebSockets: against servers of the tests, through the engine, the API and the built program.

mod alone;
mod bad_input;
mod desk;
mod far_sides;
mod house;
mod libraries;
mod line_tests;
mod outbound;
mod platform_faults;
mod platforms;
mod rates;
mod server;
mod states;
mod traced;

use std::time::Duration;

use ringer::config::Secret;
use ringer::engine::{CallReport, Destination, Placement, SocketSettings, WebSocketDial};
use ringer::transport::websocket::port::DialRules;
use ringer_media::call::{EndReason, EventKind};
use tokio_tungstenite::tungstenite::Message;

use self::server::{Server, speech};
use crate::calls::stage::{Stage, names};

/// Returns settings that make a test quick.
fn quick() -> SocketSettings {
    SocketSettings {
        connect_timeout: Duration::from_secs(20),
        rules: DialRules { retries: 0, backoff_ms: vec![10] },
        ..SocketSettings::default()
    }
}

/// Returns a call to `url` that says `intent`, and hangs up after 20 s.
fn placement(stage: &Stage, url: &str, settings: SocketSettings) -> Placement {
    let mut placement = stage.placement("", "Hello, I would like to book a table for two people.");
    placement.destination = Destination::WebSocket(Box::new(WebSocketDial {
        url: url.to_owned(),
        username: Some("u".to_owned()),
        password: Some(Secret::new("p:w".to_owned())),
        result_id: 7,
        settings,
        ..WebSocketDial::default()
    }));
    placement.spec.limits.max_duration_ms = Some(20_000);
    placement.spec.turn.endpointing_delay_ms = 500;
    placement
}

/// Makes a call to its end.
async fn call(stage: &Stage, url: &str, settings: SocketSettings) -> CallReport {
    stage.call(placement(stage, url, settings)).await.expect("a place is free")
}

fn has_speech(message: &Message) -> bool {
    matches!(message, Message::Binary(bytes) if bytes.chunks_exact(2).any(|pair| pair[1] as i8 > 2))
}

/// The agent greets in one burst, the Digital Human answers and is interrupted by a message, the agent closes.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_over_a_websocket() {
    let server = Server::start(|mut line| async move {
        line.tell("speech.started", serde_json::json!({ "utterance_id": "a1" })).await;
        line.send(Message::binary(speech(1.5))).await;
        line.tell("mark", serde_json::json!({ "name": "greeting" })).await;
        line.tell("session.error", serde_json::json!({ "code": "SLOW", "message": "I am slow" })).await;
        line.until_text("mark").await;
        line.until_text("speech.started").await;
        line.until(has_speech).await;
        line.until_audio(40).await;
        line.tell("speech.started", serde_json::json!({ "utterance_id": "a2" })).await;
        line.until_text("speech.completed").await;
        line.until_audio(10).await;
        line.close(1000).await;
    })
    .await;
    let stage = Stage::new().await;
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut placement = placement(&stage, &server.url(), quick());
    placement.folder = Some(folder.path().to_owned());
    let report = stage.call(placement).await.expect("a place is free");
    let events = names(&report).join(" ");
    assert!(report.ending.connected && report.ending.reason == EndReason::AgentHangup, "{:?}: {events}", report.ending);
    assert_eq!(report.ending.remote.as_ref().and_then(|remote| remote.close_code()), Some(1000));
    assert_eq!(report.peer.transport(), "WebSocket, default");
    assert_eq!(report.peer.address.as_deref(), Some(server.address.to_string().as_str()));
    assert_eq!(report.agent_errors.len(), 1, "{:?}", report.agent_errors);

    check_messages(&server.what_came());

    let heard: Vec<i64> = report
        .timeline
        .iter()
        .filter(|entry| matches!(entry.what, EventKind::AgentSpeechStarted { .. } | EventKind::AgentSpeechEnded { .. }))
        .map(|entry| entry.sample)
        .collect();
    assert!(heard.last().is_some_and(|end| (16_000..40_000).contains(end)), "at real time: {heard:?}");
    let interrupted =
        report.timeline.iter().any(|entry| matches!(entry.what, EventKind::SpeechEnded { interrupted: true, .. }));
    assert!(interrupted, "{events}");
    assert!(events.contains("agent_error") && events.contains("agent_speech_event"), "{events}");

    let log = std::fs::read_to_string(folder.path().join("websocket.log")).expect("it was written");
    for part in ["> GET ws://", "speech.completed", "< close 1000", "audio: "] {
        assert!(log.contains(part), "no {part} in\n{log}");
    }
    assert!(!log.contains("who=desk") && !log.contains("dTpwOnc") && !folder.path().join("sip.log").exists(), "{log}");
    stage.engine.stop().await;
    server.stop().await;
}

/// Checks the upgrade, the frames and the messages of the call above.
fn check_messages(seen: &server::Seen) {
    assert_eq!(seen.header("authorization"), Some("Basic dTpwOnc="));
    assert_eq!(seen.header("x-simulation-result-id"), Some("7"));
    assert!(seen.header("user-agent").is_some_and(|name| name.starts_with("Ringer/")), "{:?}", seen.headers);
    assert_eq!((seen.header("sec-websocket-extensions"), seen.header("sec-websocket-protocol")), (None, None));
    assert_eq!(seen.target, "/agent?who=desk");
    let audio = seen.messages.iter().filter(|message| message.is_binary());
    assert!(audio.clone().all(|message| message.len() == 640) && audio.count() > 100);
    let first = seen.messages.iter().position(|message| message.is_text()).expect("a text");
    assert!(first >= 70, "the mark is echoed when 1.5 s have been played, not after {first} messages");
    let started = seen.texts("speech.started");
    assert_eq!(started.len(), 1, "{started:?}");
    assert_eq!(started[0]["data"]["utterance_id"], "dh-7-1");
    assert!(started[0]["id"].is_string() && started[0]["ts_ms"].is_i64(), "{started:?}");
    let position = |kind: &str| {
        let kind = format!("\"type\":\"{kind}\"");
        seen.messages.iter().position(|message| message.to_text().is_ok_and(|text| text.contains(&kind)))
    };
    let (from, to) = (position("speech.started").expect("told"), position("speech.completed").expect("told"));
    let loud: Vec<usize> = (0..seen.messages.len()).filter(|at| has_speech(&seen.messages[*at])).collect();
    assert!(loud.iter().all(|at| (from..to).contains(at)), "{from} to {to}: {loud:?}");
    assert!(loud[0] <= from + 2, "directly before its first frame: {from}, {loud:?}");
}

/// The Digital Human ends the call: it closes, and waits for the server to do the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_hung_up_is_closed_in_order() {
    let server = Server::start(|mut line| async move {
        line.send(Message::binary(vec![0; 640])).await;
        line.until_end().await;
    })
    .await;
    let stage = Stage::new().await;
    let mut placement = placement(&stage, &server.url(), quick());
    placement.spec.limits.max_duration_ms = Some(500);
    let report = stage.call(placement).await.expect("a place is free");
    assert_eq!((report.ending.connected, report.ending.reason), (true, EndReason::MaxDuration));
    let seen = server.what_came();
    assert_eq!(seen.close(), Some((1000, "call ended".to_owned())));
    let audio = seen.messages.iter().filter(|message| message.is_binary()).count();
    assert!((20..=60).contains(&audio), "{audio} messages of 20 ms in half a second and the opening");
    stage.engine.stop().await;
    server.stop().await;
}
