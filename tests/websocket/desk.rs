//! The sample agent over WebSockets, as a program of its own.

use futures_util::future::join_all;
use ringer::engine::{Destination, WebSocketDial};
use ringer::transport::websocket::{Dialect, Kind};
use ringer_media::call::{ChannelEvent, EventKind};
use serde_json::Value;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::quick;
use super::server::{Line, Server};
use crate::calls::stage::Stage;
use crate::peers::Peer;
use crate::program::{PATIENCE, Program, ringer};

/// One call between two processes, in the engine's own protocol.
#[tokio::test(flavor = "multi_thread")]
async fn the_program_calls_its_sample_agent_over_a_websocket() {
    let args = ["agent", "--listen", "127.0.0.1:0", "--websocket", "127.0.0.1:0", "--rtp-ports", "38900-38949"];
    let mut agent = Program::start(&mut ringer(&args));
    let line = agent.line().await;
    let url = line.split(' ').find(|word| word.starts_with("ws://")).unwrap_or_else(|| panic!("no ws:// in {line}"));
    let mut caller = Program::start(&mut ringer(&["call", url, "--json", "--max-seconds", "30", "--seed", "3"]));
    let (mut names, mut report) = (Vec::new(), Value::Null);
    while report == Value::Null {
        let line: Value = serde_json::from_str(&caller.line().await).expect("each line is JSON");
        names.push(format!(
            "{} {}",
            line["side"].as_str().unwrap_or_default(),
            line["event"].as_str().unwrap_or_default()
        ));
        if line["event"] == "report" {
            report = line;
        }
    }
    assert_eq!(report["ok"], true, "{report}");
    for name in ["agent speech.started", "agent turn.ended", "dh speech.started", "dh speech.ended"] {
        assert!(names.iter().any(|known| known == name), "no {name} in {names:?}");
    }
    assert!(caller.wait_for_end().await.success());
    agent.kill().await;
}

/// Exit codes of calls that are no success: 4 when nobody was reached, 1 when the agent declined or the call broke off.
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_fail_say_so_by_their_exit_code() {
    let breaks = Server::start(|mut line: Line| async move {
        line.send(Message::binary(vec![0; 640])).await;
        line.until_audio(5).await;
    })
    .await;
    let refuses = Server::answering("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n".to_owned()).await;
    let busy = Peer::scenario("busy");
    for (address, code, reason, connected) in [
        (breaks.url(), 1, "connection_lost", true),
        (refuses.url(), 4, "dial_failed", false),
        ("ws://127.0.0.1:1/".to_owned(), 4, "dial_failed", false),
        (format!("sip:bob@{}", busy.sip), 1, "rejected", false),
    ] {
        let command = &mut ringer(&["call", &address, "--json", "--max-seconds", "20", "--seed", "3"]);
        let ran = timeout(PATIENCE, command.stderr(std::process::Stdio::piped()).output()).await;
        let ran = ran.expect("it ends in time").expect("the program was built");
        let said = String::from_utf8_lossy(&ran.stdout);
        let report: Value = said.lines().last().and_then(|line| serde_json::from_str(line).ok()).expect("a report");
        assert_eq!(ran.status.code(), Some(code), "{address}: {report}");
        assert_eq!((&report["ok"], &report["connected"]), (&false.into(), &connected.into()), "{address}: {report}");
        assert_eq!(report["end_reason"], reason, "{address}: {report}");
        let error = report["error"].as_str().expect("it says why");
        assert!(String::from_utf8_lossy(&ran.stderr).contains(error), "{address}: {error}");
    }
    breaks.stop().await;
    refuses.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_that_do_not_go_together_are_refused() {
    for (args, part) in [
        (&["call", "sip:a@127.0.0.1", "--dialect", "raw_pcm16"][..], "--dialect is for ws:// and wss://"),
        (&["call", "ws://127.0.0.1/", "--dialect", "morse"], "it must be one of twilio_media_streams"),
    ] {
        let output = ringer(args).stderr(std::process::Stdio::piped()).output().await.expect("the program was built");
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && printed.contains(part), "{printed}");
    }
}

/// A call of ten seconds in every dialect at once: both sides are heard, and neither breaks the other's rules.
#[tokio::test(flavor = "multi_thread")]
async fn the_sample_agent_speaks_every_dialect() {
    let args = ["agent", "--listen", "127.0.0.1:0", "--websocket", "127.0.0.1:0", "--rtp-ports", "38850-38899"];
    let mut agent = Program::start(&mut ringer(&args));
    let line = agent.line().await;
    let url = line.split(' ').find(|word| word.starts_with("ws://")).unwrap_or_else(|| panic!("no ws:// in {line}"));
    let stage = Stage::new().await;
    let calls = Kind::DIALECTS.map(|kind| {
        let mut placement = stage.placement("", "Hello.");
        let dial = WebSocketDial {
            url: format!("{url}{}", kind.name()),
            dialect: Some(Dialect::new(kind)),
            result_id: 7,
            settings: quick(),
            ..WebSocketDial::default()
        };
        placement.destination = Destination::WebSocket(Box::new(dial));
        placement.spec.limits.max_duration_ms = Some(10_000);
        stage.call(placement)
    });
    for (kind, report) in Kind::DIALECTS.into_iter().zip(join_all(calls).await) {
        let report = report.expect("a place is free");
        assert!(report.ending.connected && report.ending.other_spoke, "{kind:?}: {:?}", report.ending);
        assert_eq!(report.peer.transport(), format!("WebSocket, {}", kind.name()));
        let broken = report.timeline.iter().find(
            |entry| matches!(&entry.what, EventKind::Channel(event) if matches!(**event, ChannelEvent::Violation { .. })),
        );
        assert!(broken.is_none(), "{kind:?}: {broken:?}");
    }
    stage.engine.stop().await;
    agent.kill().await;
}
