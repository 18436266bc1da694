//! Time of the greeting as it is told, against the clock of the agent that greets.

use ringer::engine::{CallReport, Destination, PipelineDial, WebSocketDial};
use ringer::judge::{Facts, measure};
use ringer::transport::webrtc::PeerTerms;
use ringer::transport::websocket::{Dialect, Kind};
use ringer_media::call::Opening;
use serde_json::Value;

use crate::calls::stage::Stage;
use crate::program::{Program, ringer};
use crate::rooms::pipelines::target;

/// Largest difference between the two clocks, in seconds.
pub(crate) const TOLERANCE_S: f64 = 0.25;

/// Returns a metric of a call.
pub(crate) fn metric(report: &CallReport, name: &str) -> Option<f64> {
    let metrics = measure(&report.timeline, &Facts::default()).metrics;
    metrics.iter().find(|metric| metric.name == name).and_then(|metric| metric.value.as_f64())
}

/// Asserts that the time of the greeting is told as the agent's own clock has it, in seconds.
#[track_caller]
pub(crate) fn check_greeting(report: &CallReport, own_s: f64, what: &str) {
    let measured = metric(report, "time_to_first_agent_utterance");
    assert!(
        measured.is_some_and(|measured| (measured - own_s).abs() < TOLERANCE_S),
        "{what}: told {measured:?}, it was {own_s} s"
    );
    assert!(metric(report, "setup_ms") >= Some(0.0), "{what}");
}

/// The sample agent greets 6 s after each call has come up on its own clock.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_greeting_is_told_as_late_as_it_is_on_every_channel() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let log = folder.path().join("agent.jsonl");
    let args = ["agent", "--listen", "127.0.0.1:0", "--websocket", "127.0.0.1:0", "--pipeline", "127.0.0.1:0"];
    let more = ["--fault", "late_first_word", "--rtp-ports", "38700-38749", "--log"];
    let mut agent = Program::start(ringer(&args).args(more).arg(&log));
    let line = agent.line().await;
    let at = |start: &str| {
        let found = line.split([' ', ',']).find(|word| word.starts_with(start));
        found.unwrap_or_else(|| panic!("no {start} in {line}")).to_owned()
    };
    let stage = Stage::new().await;
    let socket = |kind: Kind, result_id| {
        let url = format!("{}{}", at("ws://"), if kind == Kind::Default { "" } else { kind.name() });
        let dial = WebSocketDial { url, dialect: Some(Dialect::new(kind)), result_id, ..WebSocketDial::default() };
        Destination::WebSocket(Box::new(dial))
    };
    let peers = PeerTerms { bind: vec![[127, 0, 0, 1].into()], ..PeerTerms::default() };
    let base = at("pipeline:").trim_start_matches("pipeline:").to_owned();
    let pipeline = PipelineDial { target: target(&base), peers, ..PipelineDial::default() };
    let sip = stage.placement(&at("sip:"), "").destination;
    let ways = [
        (None, sip),
        (Some("1"), socket(Kind::Default, 1)),
        (Some("2"), socket(Kind::TwilioMediaStreams, 2)),
        (Some("42"), Destination::Pipeline(Box::new(pipeline))),
    ];
    let calls = ways.map(|(result_id, destination)| {
        let mut placement = stage.placement("", "Hello.");
        placement.destination = destination;
        placement.spec.opening = Opening::Listen { open_after_ms: None };
        placement.spec.limits.max_duration_ms = Some(9000);
        let call = stage.call(placement);
        async move { (result_id, call.await.expect("a place is free")) }
    });
    let reports = futures_util::future::join_all(calls).await;
    stage.engine.stop().await;
    agent.kill().await;
    let log = std::fs::read_to_string(&log).expect("it was written");
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("each line is JSON"));
    let starts: Vec<Value> =
        lines.filter(|line| line["event"] == "speech.started" && line["side"] == "agent").collect();
    for (result_id, report) in &reports {
        let own = starts.iter().find(|line| line["result_id"].as_str() == *result_id);
        let own_ms =
            own.and_then(|line| line["offset_ms"].as_f64()).unwrap_or_else(|| panic!("{result_id:?}: {starts:?}"));
        assert!(own_ms >= 6000.0, "it is late: {own_ms} ms");
        check_greeting(report, own_ms / 1000.0, report.peer.protocol);
    }
}
