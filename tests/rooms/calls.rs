//! Whole calls of the engine to voice pipelines.

use ringer::engine::{CallReport, Destination, PipelineDial, Placement};
use ringer::provider::guard::Guard;
use ringer::transport::webrtc::PeerTerms;
use ringer_media::call::{ChannelEvent, DtmfMethod, EndReason, EventKind, Opening};
use serde_json::json;

use super::answers::{changed_answer, fixed_answer, serve, with_lines};
use super::phone::share;
use super::pipelines::{bot, target};
use crate::calls::stage::{Stage, channels, names};
use crate::peers::python::PythonServer;

/// Tone that the pipelines send.
const THEIRS_HZ: f64 = 880.0;

pub(super) const INTENT: &str = "Hello, I would like to book a table for two people tomorrow at eight in the evening.";

/// Returns a call that begins by itself and presses a key.
pub(super) fn placement(stage: &Stage, base: &str, max_ms: u32) -> Placement {
    let mut placement = stage.placement("", INTENT);
    let peers = PeerTerms { bind: vec![[127, 0, 0, 1].into()], ..PeerTerms::default() };
    placement.destination =
        Destination::Pipeline(Box::new(PipelineDial { target: target(base), peers, ..PipelineDial::default() }));
    placement.spec.dtmf = DtmfMethod::MessageAndTone;
    placement.spec.extension = Some("5".to_owned());
    placement.spec.opening = Opening::Say(INTENT.to_owned());
    placement.spec.limits.max_duration_ms = Some(max_ms);
    placement
}

/// Calls a pipeline, with files.
async fn call(stage: &Stage, server: &PythonServer, max_ms: u32) -> (CallReport, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut placement = placement(stage, &server.base, max_ms);
    placement.folder = Some(folder.path().to_owned());
    placement.captured = true;
    (stage.call(placement).await.expect("a place is free"), folder)
}

/// The best share of the pipeline's tone in half a second of the agent's channel, and the loudest sample of the
/// caller's.
pub(super) fn tone_and_peak(report: &CallReport) -> (f64, i16) {
    let [own, agent] = channels(report.recording.as_ref().expect("it was recorded"));
    let best = agent.chunks(8000).map(|part| share(part, THEIRS_HZ)).fold(0.0, f64::max);
    (best, own.into_iter().max().unwrap_or_default())
}

pub(super) fn channel_events(report: &CallReport) -> Vec<&ChannelEvent> {
    let events = report.timeline.iter().map(|entry| &entry.what);
    events.filter_map(|what| if let EventKind::Channel(events) = what { Some(&**events) } else { None }).collect()
}

pub(super) fn has(report: &CallReport, name: &str) -> bool {
    channel_events(report).iter().any(|event| matches!(event, ChannelEvent::Other { name: known, .. } if known == name))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_to_a_pipeline_is_recorded_told_and_measured() {
    let (bot, stage) = (bot(&["--short-tone"]).await, Stage::new().await);
    let (report, folder) = call(&stage, &bot, 9000).await;
    let events = names(&report).join(" ");
    assert_eq!((report.ending.connected, report.ending.reason), (true, EndReason::MaxDuration), "{events}");
    assert_eq!(report.peer.transport(), "WebRTC, UDP/TLS/RTP/SAVPF");
    assert!(report.peer.address.as_ref().is_some_and(|at| at.starts_with("127.0.0.1:")), "{:?}", report.peer);
    assert_eq!(report.peer.codec, Some("OPUS"));
    let (tone, loudest) = tone_and_peak(&report);
    assert!(tone > 0.8 && loudest > 1000, "{tone} {loudest}");
    let seen = bot.look().await;
    assert!(seen["loud"].as_u64() > Some(50), "the caller is heard: {seen}");
    assert!(seen["key"].as_f64() > Some(0.8), "the tones of the key are heard: {seen}");
    let messages = seen["messages"].as_array().expect("a list");
    let keys = messages.iter().filter(|message| message["type"] == "dtmf").map(|message| &message["data"]);
    assert_eq!(keys.collect::<Vec<_>>(), [&json!({ "buttons": ["5"] })]);
    let request = &seen["requests"][0]["request_data"];
    assert_eq!((&request["simulation_result_id"], &request["voice"]), (&json!("42"), &json!("calm")));
    // Messages of the pipeline.
    for name in ["agent_ready", "agent_started_speaking", "agent_metrics"] {
        assert!(has(&report, name), "no {name}: {:?}", channel_events(&report));
    }
    assert!(channel_events(&report).contains(&&ChannelEvent::Reported { text: "Good day.".into() }));
    let tools = report.timeline.iter().filter_map(|entry| match &entry.what {
        EventKind::ToolCall(call) => Some((call.name.to_string(), call.parameters.clone(), call.output.clone())),
        _ => None,
    });
    assert_eq!(tools.collect::<Vec<_>>(), [("weather".to_owned(), json!({ "in": "Bern" }), json!("sunny"))]);
    // Figures of the packets.
    let quality = &report.ending.quality;
    assert!(quality.sent_frames > 400 && quality.received_packets > 400, "{quality:?}");
    assert_eq!((quality.lost_packets, quality.unknown_payload_type, quality.foreign_source), (0, 0, 0), "{quality:?}");
    assert!(quality.pacing_p99_ms > 0.0, "{quality:?}");
    let log = std::fs::read_to_string(folder.path().join("pipeline.log")).expect("it was written");
    for part in ["> POST http://127.0.0.1:", "/api/offer", "connected to 127.0.0.1:", "> dtmf", "> hang up"] {
        assert!(log.contains(part), "no {part} in\n{log}");
    }
    let captured = std::fs::metadata(folder.path().join("media.pcapng")).expect("it was captured").len();
    assert!(captured > 400 * 100, "{captured} bytes of some 800 packets");
    assert!(!log.contains("Good day") && !folder.path().join("sip.log").exists(), "{log}");
    stage.engine.stop().await;
}

/// A tool that has no result yet when the caller hangs up was called all the same, before the end of the call.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_tool_without_a_result_is_kept() {
    let (bot, stage) = (bot(&["--slow-tool"]).await, Stage::new().await);
    let report = stage.call(placement(&stage, &bot.base, 4000)).await.expect("a place is free");
    let events = names(&report).join(" ");
    assert_eq!((report.ending.connected, report.ending.reason), (true, EndReason::MaxDuration), "{events}");
    let tools = report.timeline.iter().filter_map(|entry| match &entry.what {
        EventKind::ToolCall(call) => Some((call.name.to_string(), call.parameters.clone(), call.output.clone())),
        _ => None,
    });
    let expect = [
        ("weather".to_owned(), json!({ "in": "Bern" }), json!("sunny")),
        ("book".to_owned(), json!({ "for": 2 }), json!(null)),
    ];
    assert_eq!(tools.collect::<Vec<_>>(), expect, "{events}");
    assert_eq!(report.timeline.last().map(|entry| entry.name()), Some("call.ended"), "{events}");
    assert!(!report.warnings.iter().any(|warning| warning.contains("tools")), "{:?}", report.warnings);
    stage.engine.stop().await;
}

/// A peer that is no pipeline: its words are audio alone, and it leaves.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_to_a_plain_peer_is_recorded_and_ends_with_it() {
    let peer = PythonServer::start("peer.py", &[], "http://").await;
    let stage = Stage::new().await;
    let leaves = async {
        peer.sees(|seen| seen["loud"].as_u64() > Some(100)).await;
        peer.post("/leave").await;
    };
    let ((report, _folder), ()) = tokio::join!(call(&stage, &peer, 30_000), leaves);
    let events = names(&report).join(" ");
    assert_eq!((report.ending.connected, report.ending.reason), (true, EndReason::AgentHangup), "{events}");
    let (tone, loudest) = tone_and_peak(&report);
    assert!(tone > 0.8 && loudest > 1000, "{tone} {loudest}");
    let seen = peer.look().await;
    assert!(seen["key"].as_f64() > Some(0.8), "{seen}");
    assert!(seen["messages"].as_u64() > Some(1), "{seen}");
    stage.engine.stop().await;
}

/// Consent runs out in the call: it goes on over another connection, and breaks off when that is lost, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_goes_on_over_another_connection_once() {
    let (bot, stage) = (bot(&["--no-patch"]).await, Stage::new().await);
    let cuts = async {
        for requests in [1, 2] {
            let is_heard = |seen: &serde_json::Value| {
                let asked = seen["requests"].as_array().map_or(0, Vec::len);
                asked == requests && seen["key"].as_f64() > Some(0.8)
            };
            bot.sees(is_heard).await;
            bot.post("/cut").await;
        }
    };
    let mut placement = placement(&stage, &bot.base, 118_000);
    // Keys before the connection is lost, and long after.
    placement.spec.extension = Some(format!("5{}{}", ",".repeat(14), "5,".repeat(45)));
    let (report, ()) = tokio::join!(stage.call(placement), cuts);
    let report = report.expect("a place is free");
    let events = names(&report).join(" ");
    assert_eq!((report.ending.connected, report.ending.reason), (true, EndReason::ConnectionLost), "{events}");
    let remote = report.ending.remote.as_ref().expect("it was lost");
    assert_eq!(remote.pipeline_code(), Some("pipeline_connect"), "{remote:?}");
    assert!(
        has(&report, "connection_restarts") && has(&report, "connection_restarted"),
        "{:?}",
        channel_events(&report)
    );
    stage.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_refused_never_begins() {
    let base = serve(fixed_answer(404, "")).await;
    let stage = Stage::new().await;
    let report = stage.call(placement(&stage, &base, 9000)).await.expect("a place is free");
    assert_eq!((report.ending.connected, report.ending.reason), (false, EndReason::Rejected));
    let remote = report.ending.remote.expect("it was refused");
    assert_eq!(remote.text, "offer to the pipeline: it answered 404");
    assert_eq!(report.timeline.iter().filter(|entry| entry.name() == "call.dialing").count(), 1);
    stage.engine.stop().await;
}

/// An answer with a thousand candidates, and some that cannot be used: where a path is found, nobody needs to know.
#[tokio::test(flavor = "multi_thread")]
async fn candidates_that_are_not_used_are_not_told_of_a_call_that_is_up() {
    let base = serve(changed_answer(|sdp| {
        let sdp = with_lines(&sdp, 3, false, "agent.local");
        with_lines(&sdp, 1000, false, "127.0.0.1")
    }))
    .await;
    let stage = Stage::new().await;
    let report = stage.call(placement(&stage, &base, 1500)).await.expect("a place is free");
    assert_eq!((report.ending.connected, report.ending.reason), (true, EndReason::MaxDuration));
    assert!(!report.warnings.iter().any(|warning| warning.contains("candidate")), "{:?}", report.warnings);
    stage.engine.stop().await;
}

/// The address of a pipeline, and every packet of it, pass the guard.
#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_at_an_address_that_is_not_allowed_is_not_asked() {
    let base = serve(fixed_answer(404, "")).await;
    let stage = Stage::new().await;
    let mut placement = placement(&stage, &base, 1500);
    placement.destination.set_guard(Guard::new(false));
    let report = stage.call(placement).await.expect("a place is free");
    let remote = report.ending.remote.expect("it was refused");
    assert_eq!((report.ending.connected, remote.pipeline_code()), (false, Some("pipeline_connect")));
    assert!(remote.text.contains("not allowed"), "{}", remote.text);
    stage.engine.stop().await;
}

/// Tests of what is heard while a peer floods this side.
mod alone {
    use super::*;

    /// The other side floods the data channel: the call goes on, and its result says so.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_flood_of_messages_is_told_and_does_no_harm() {
        let peer = PythonServer::start("peer.py", &["--flood"], "http://").await;
        let stage = Stage::new().await;
        let (report, _folder) = call(&stage, &peer, 6000).await;
        let events = names(&report);
        assert_eq!((report.ending.connected, report.ending.reason), (true, EndReason::MaxDuration), "{events:?}");
        assert!(report.timeline.len() < 6000, "{}", report.timeline.len());
        let warned = |part: &str| report.warnings.iter().any(|warning| warning.contains(part));
        assert!(warned("the agent's data channel brings more messages than are read"), "{:?}", report.warnings);
        let (tone, loudest) = tone_and_peak(&report);
        assert!(tone > 0.8 && loudest > 1000, "{tone} {loudest}: {:?}", report.warnings);
        stage.engine.stop().await;
    }
}
