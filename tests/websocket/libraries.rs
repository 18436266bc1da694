//! Servers and callers of other people's libraries: the engine's own protocol with a server of `websockets`, and a
//! carrier's media stream with streamdouble as the second caller, and as the caller of the sample agent.

use ringer::clock::Clock;
use ringer::engine::{Destination, EngineConfig, Placement, WebSocketDial};
use ringer::transport::sip::tls::TlsSettings;
use ringer::transport::websocket::{Dialect, Kind};
use ringer_media::call::{ChannelEvent, EndReason, EventKind, Opening};
use serde_json::{Value, json};

use super::quick;
use crate::calls::local;
use crate::calls::stage::{RTP_PORTS, Stage};
use crate::calls::streams::with_certificate;
use crate::peers::python::{PythonServer, python};
use crate::program::{Program, ringer};

const INTENT: &str = "Hello, I would like to book a table for two people.";

fn placement(stage: &Stage, url: String, kind: Option<Kind>, max_ms: u32) -> Placement {
    let mut placement = stage.placement("", INTENT);
    let dialect = kind.map(Dialect::new);
    let dial = WebSocketDial { url, dialect, result_id: 42, settings: quick(), ..WebSocketDial::default() };
    placement.destination = Destination::WebSocket(Box::new(dial));
    placement.spec.turn.endpointing_delay_ms = 500;
    placement.spec.limits.max_duration_ms = Some(max_ms);
    placement
}

/// Runs a script to its end, and reads the JSON that it prints.
async fn json_of(script: &str, args: &[&str]) -> Value {
    let line = Program::start(&mut python(script, args)).line().await;
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_own_protocol_with_a_server_of_a_library() {
    let server = PythonServer::start("sockets.py", &[], "ws://").await;
    let stage = Stage::new().await;
    let report = stage.call(placement(&stage, format!("{}/default", server.base), None, 8000)).await;
    let report = report.expect("a place is free");
    assert_eq!((report.ending.connected, report.ending.reason), (true, EndReason::MaxDuration), "{:?}", report.ending);
    let seen = server.sees(|seen| seen["default"][0]["close"].is_array()).await["default"][0].clone();
    assert_eq!(seen["close"], json!([1000, "call ended"]));
    assert_eq!(seen["sizes"], json!([640]));
    assert_eq!(seen["headers"]["x-simulation-result-id"], "42");
    let frames = seen["frames"].as_u64().unwrap_or_default();
    assert!((390..=420).contains(&frames), "{frames} frames in 8 s and the opening");
    let texts: Vec<(&str, &Value, u64)> = seen["texts"].as_array().into_iter().flatten().map(text).collect();
    // The greeting of a second is played before its mark comes back.
    let (kind, data, at) = texts[0];
    assert_eq!((kind, data), ("mark", &json!({ "name": "greeting" })), "{texts:?}");
    assert!((45..=80).contains(&at), "the mark came after {at} frames");
    assert_eq!((texts[1].0, texts[2].0), ("speech.started", "speech.completed"), "{texts:?}");
    // The message cuts the caller off at its 40th loud frame; what is under way arrives.
    let loud = seen["loud"].as_u64().unwrap_or_default();
    assert!((40..60).contains(&loud), "{loud} loud frames");
    let interrupted = |entry: &EventKind| matches!(entry, EventKind::SpeechEnded { interrupted: true, .. });
    assert!(report.timeline.iter().any(|entry| interrupted(&entry.what)));
    stage.engine.stop().await;
}

/// A server with TLS: its certificate is checked, unless the settings list it.
#[tokio::test(flavor = "multi_thread")]
async fn certificates_of_servers_are_checked() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let (_, trusting) = with_certificate(&folder, "127.0.0.1");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let mut server = Program::start(&mut python("sockets.py", &[&path("own.pem"), &path("own.key")]));
    let address = server.address("wss://").await;
    let place = address.trim_start_matches("wss://").to_owned();
    let listed = TlsSettings { insecure_hosts: vec![place.clone()], ..TlsSettings::default() };
    let unverified = format!("the certificate of {place} was not verified");
    for (tls, connects, warns) in
        [(TlsSettings::default(), false, false), (trusting, true, false), (listed, true, true)]
    {
        let config = EngineConfig { tls, ..local::config(RTP_PORTS, 10) };
        let (stage, _calls) = Stage::with_calls(config, Clock::Real).await;
        let report =
            stage.call(placement(&stage, format!("{address}/default"), None, 1500)).await.expect("a place is free");
        assert_eq!(report.ending.connected, connects, "{:?}", report.ending);
        assert_eq!(report.warnings.iter().any(|warning| warning.contains(&unverified)), warns, "{:?}", report.warnings);
        match connects {
            true => {
                assert_eq!(report.peer.transport(), "WebSocket/TLS, default");
                let seen: Value = serde_json::from_str(&server.line().await).expect("JSON");
                assert_eq!(seen["close"], json!([1000, "call ended"]), "{seen}");
            }
            false => {
                let why = report.ending.remote.map(|remote| remote.text).unwrap_or_default();
                assert!(why.contains("certificate"), "{why}");
            }
        }
        stage.engine.stop().await;
    }
    server.kill().await;
}

fn text(line: &Value) -> (&str, &Value, u64) {
    (line[0].as_str().unwrap_or_default(), &line[1], line[2].as_u64().unwrap_or_default())
}

/// Returns the shortest and longest distance of timestamps, and the mean of arrivals, in milliseconds.
fn distances(seen: &Value) -> (i64, i64, f64) {
    let stamps: Vec<i64> = seen["timestamps"].as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
    let arrivals: Vec<f64> = seen["arrivals_ms"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    let apart = || stamps.windows(2).map(|pair| pair[1] - pair[0]);
    let mean = (arrivals[arrivals.len() - 1] - arrivals[0]) / (arrivals.len() - 1) as f64;
    (apart().min().unwrap_or_default(), apart().max().unwrap_or_default(), mean)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_echo_agent_cannot_tell_the_engine_from_a_double_of_the_carrier() {
    let server = PythonServer::start("sockets.py", &[], "ws://").await;
    let stage = Stage::new().await;
    let url = format!("{}/echo", server.base);
    let mut call = placement(&stage, url.clone(), Some(Kind::TwilioMediaStreams), 5000);
    call.spec.opening = Opening::Made;
    let report = stage.call(call).await;
    let report = report.expect("a place is free");
    assert!(report.ending.connected, "{:?}", report.ending);
    let broken = |entry: &EventKind| matches!(entry, EventKind::Channel(event) if matches!(**event, ChannelEvent::Violation { .. }));
    assert!(!report.timeline.iter().any(|entry| broken(&entry.what)));
    let double = json_of("double.py", &[&url]).await;
    assert_eq!((&double["violations"], &double["spoke"]), (&json!([]), &json!(true)), "{double}");
    let seen = server.sees(|seen| seen["echo"][0]["close"].is_array() && seen["echo"][1]["close"].is_array()).await;
    let [engine, double] = [&seen["echo"][0], &seen["echo"][1]];
    for (who, seen) in [("the engine", engine), ("the double", double)] {
        assert_eq!(seen["parameters"], json!({ "simulation_result_id": "42" }), "{who}");
        assert_eq!(seen["sizes"], json!([160]), "{who}");
        let order: Vec<&str> =
            seen["order"].as_array().into_iter().flatten().filter_map(|one| one[0].as_str()).collect();
        assert_eq!((order[..3].join(" "), order.last()), ("connected start media".to_owned(), Some(&"stop")), "{who}");
        let numbers = seen["order"].as_array().into_iter().flatten().filter_map(|one| one[1].as_str());
        assert!(
            numbers.enumerate().all(|(at, number)| number == (at + 1).to_string()),
            "{who}: every message is counted"
        );
        let (least, most, mean) = distances(seen);
        assert!((least, most) == (20, 20) && (19.0..21.0).contains(&mean), "{who}: {least} {most} {mean}");
        // The mark is bound to what was sent back before it: a second, so much later than the frames came as they
        // waited.
        let marks = seen["marks"].as_array().cloned().unwrap_or_default();
        assert_eq!((marks.len(), &marks[0][0]), (1, &json!("m1")), "{who}");
        let at = marks[0][1].as_u64().unwrap_or_default();
        assert!((50..=75).contains(&at), "{who}: the mark came after {at} frames");
    }
    stage.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_double_of_the_carrier_calls_the_sample_agent() {
    let args = ["agent", "--listen", "127.0.0.1:0", "--websocket", "127.0.0.1:0", "--rtp-ports", "38950-38999"];
    let mut agent = Program::start(&mut ringer(&args));
    let line = agent.line().await;
    let url = line.split(' ').find(|word| word.starts_with("ws://")).unwrap_or_else(|| panic!("no ws:// in {line}"));
    let report = json_of("double.py", &[&format!("{url}twilio_media_streams")]).await;
    assert_eq!((&report["violations"], &report["spoke"]), (&json!([]), &json!(true)), "{report}");
    // Its greeting: more than two seconds of mu-law at 8 kHz.
    assert!(report["audio_bytes"].as_u64() > Some(16_000), "{report}");
    agent.kill().await;
}
