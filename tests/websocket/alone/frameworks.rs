//! Agents of a pipeline framework, on its real server transport and serializers: what they hear, what is heard of them,
//! and what they take back.

use ringer::engine::{CallReport, Destination, Placement, WebSocketDial};
use ringer::transport::websocket::{Dialect, Kind};
use ringer_media::call::{ChannelEvent, EventKind};
use ringer_media::level::rms_dbov;
use serde_json::{Value, json};

use crate::calls::peers::{level_at, share_at};
use crate::calls::stage::{Stage, channels};
use crate::peers::python::PythonServer;
use crate::websocket::quick;

/// Kinds with a serializer in the framework, and the carrier's name where it finds it by the first messages.
const KINDS: [(Kind, Option<&str>); 8] = [
    (Kind::TwilioMediaStreams, Some("twilio")),
    (Kind::SignalwireStream, Some("twilio")),
    (Kind::TelnyxMediaStreaming, Some("telnyx")),
    (Kind::PlivoAudioStreaming, Some("plivo")),
    (Kind::ExotelAgentstream, Some("exotel")),
    (Kind::VonageWebsocket, None),
    (Kind::Audiohook, None),
    (Kind::PipecatProtobuf, None),
];

/// Frequency of the tone with which the agent answers.
const TONE_HZ: f64 = 880.0;

fn placement(stage: &Stage, url: String, kind: Kind) -> Placement {
    let mut placement = stage.placement("", "Hello, I would like to book a table for two people.");
    let dialect = Some(Dialect::new(kind));
    placement.destination = Destination::WebSocket(Box::new(WebSocketDial {
        url,
        dialect,
        result_id: 7,
        settings: quick(),
        ..WebSocketDial::default()
    }));
    placement.spec.turn.endpointing_delay_ms = 500;
    placement.spec.limits.max_duration_ms = Some(9000);
    placement
}

/// Returns the parts of 20 ms in which the tone is most of the sound, and the greatest level of it.
fn tone(pcm: &[i16]) -> (usize, f64) {
    let is_tone = |part: &&[i16]| rms_dbov(part) > -30.0 && share_at(part, TONE_HZ) > 0.8;
    let levels = pcm.chunks_exact(320).filter(is_tone).map(|part| level_at(part, TONE_HZ));
    levels.fold((0, 0.0), |(count, most), level| (count + 1, level.max(most)))
}

fn check(kind: Kind, carrier: Option<&str>, report: &CallReport, [own, heard]: &[Vec<i16>; 2], seen: &Value) {
    assert!(report.ending.connected && report.ending.other_spoke, "{kind:?}: {:?}", report.ending);
    if let Some(carrier) = carrier {
        assert_eq!(seen["carrier"], carrier, "{kind:?}");
    }
    // The caller's voice arrives whole: as long as in the recording, as loud, and soon.
    let loud =
        |part: &&[i16]| part.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() > 320.0 * 300.0 * 300.0;
    let spoken = own.chunks_exact(320).filter(loud).count() as f64 * 0.02;
    let arrived = seen["loud_seconds"].as_f64().unwrap_or_default();
    assert!(spoken > 1.0 && (arrived / spoken - 1.0).abs() < 0.2, "{kind:?}: {arrived} s of {spoken} s arrived");
    let most = own.iter().map(|sample| sample.unsigned_abs()).max().map_or(0.0, f64::from);
    let peak = seen["peak"].as_f64().unwrap_or_default();
    assert!((peak / most - 1.0).abs() < 0.25, "{kind:?}: {peak} of {most}");
    let at = own.chunks_exact(320).position(|part| loud(&part)).unwrap_or_default() as f64 * 20.0;
    let began = report.connected_at_ms.unwrap_or_default() as f64 + at;
    let delay = seen["first_loud_ms"].as_f64().unwrap_or_default() - began;
    // Sent while it is said, and not at its end.
    assert!((-60.0..spoken * 1000.0).contains(&delay), "{kind:?}: the voice arrived after {delay} ms of {spoken} s");
    // The agent's tone lasts until it is taken back: more than half of its first second, less than two of its three.
    let (parts, level) = tone(heard);
    assert!((25..100).contains(&parts), "{kind:?}: {parts} parts of the tone");
    assert!((7000.0..9000.0).contains(&level), "{kind:?}: {level}");
    let has_event = |wanted: fn(&ChannelEvent) -> bool| {
        report.timeline.iter().any(|entry| matches!(&entry.what, EventKind::Channel(event) if wanted(event)))
    };
    assert!(
        !has_event(|event| matches!(event, ChannelEvent::Violation { code, .. } if code != "BAD_CHUNK_SIZE")),
        "{kind:?}"
    );
    assert_eq!(seen["headers"]["x-simulation-result-id"], json!("7"), "{kind:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_a_framework_hear_and_are_heard() {
    let bot = PythonServer::start("carriers.py", &[], "ws://").await;
    let stage = Stage::new().await;
    let calls = KINDS.map(|(kind, _)| {
        let (stage, url) = (&stage, format!("{}/{}", bot.base, kind.name()));
        async move {
            let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
            let mut placement = placement(stage, url, kind);
            placement.folder = Some(folder.path().to_owned());
            let report = stage.call(placement).await.expect("a place is free");
            assert!(report.ending.connected, "{kind:?}: {:?}", report.ending);
            (report, channels(&folder.path().join("recording.wav")))
        }
    });
    let reports = futures_util::future::join_all(calls).await;
    let seen = bot.sees(|seen| KINDS.iter().all(|(kind, _)| seen[kind.name()]["closed"] == true)).await;
    for ((kind, carrier), (report, recorded)) in KINDS.iter().zip(&reports) {
        check(*kind, *carrier, report, recorded, &seen[kind.name()]);
    }
    stage.engine.stop().await;
}
