//! Messages that servers should not send, and servers that do not read: the call itself ends as it should, or goes on,
//! and another call beside it notices nothing.

use ringer::engine::{CallReport, SocketSettings};
use ringer_media::call::{ChannelEvent, EndReason, EventKind, RemoteKind};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::server::{Line, Server, speech};
use super::{placement, quick};
use crate::calls::stage::Stage;

/// Warning of a call whose recognizer knows no words, as that of these tests.
const NO_WORDS: &str = "nothing was understood";

/// Makes a call of two seconds beside another one: it is heard and recorded whole.
pub(super) async fn other_call(stage: &Stage) -> CallReport {
    let server = Server::start(|mut line: Line| async move {
        let words = speech(1.0);
        for piece in words.chunks(640) {
            line.until_audio(1).await;
            line.send(Message::binary(piece.to_vec())).await;
        }
        line.until_end().await;
    })
    .await;
    let mut good = placement(stage, &server.url(), quick());
    good.spec.limits.max_duration_ms = Some(2500);
    let report = stage.call(good).await.expect("a place is free");
    assert_eq!((report.ending.connected, report.ending.reason), (true, EndReason::MaxDuration), "the other call");
    assert!(
        report.ending.other_spoke && report.warnings.iter().all(|warning| warning.contains(NO_WORDS)),
        "the other call: {:?}",
        report.warnings
    );
    assert!(report.ending.quality.received_packets >= 50, "the other call");
    server.stop().await;
    report
}

/// Sends `bad` to a call that is up, and goes on reading. The call beside it goes on.
async fn with_input(bad: Vec<Message>, settings: SocketSettings) -> (CallReport, Server) {
    let stage = Stage::new().await;
    let server = Server::start(move |mut line: Line| {
        let bad = bad.clone();
        async move {
            line.send(Message::binary(vec![0; 640])).await;
            line.until_audio(10).await;
            for message in bad {
                line.send(message).await;
            }
            line.until_end().await;
        }
    })
    .await;
    let mut call = placement(&stage, &server.url(), settings);
    call.spec.limits.max_duration_ms = Some(3000);
    let (report, _) = tokio::join!(stage.call(call), other_call(&stage));
    stage.engine.stop().await;
    (report.expect("a place is free"), server)
}

fn violations(report: &CallReport) -> Vec<String> {
    let event = report.timeline.iter().filter_map(|entry| match &entry.what {
        EventKind::Channel(event) => match &**event {
            ChannelEvent::Violation { code, .. } => Some(code.to_string()),
            _ => None,
        },
        _ => None,
    });
    event.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_break_the_rules_are_answered_and_the_call_goes_on() {
    let text = |text: &str| Message::text(text.to_owned());
    let bad = vec![
        Message::binary(vec![0; 641]),
        Message::binary(Vec::new()),
        text("{"),
        text("[1]"),
        text(r#"{"type":"x"}"#),
        text(r#"{"type":1}"#),
        text(r#"{"type":"speech.started","data":{}}"#),
        text(r#"{"type":"mark","data":{"name":""}}"#),
        text(&format!(r#"{{"type":"mark","data":{{"name":"{}"}}}}"#, "x".repeat(70_000))),
        text(r#"{"type":"session.error","data":{}}"#),
        text("\u{0}"),
    ];
    let (report, server) = with_input(bad, quick()).await;
    assert_eq!((report.ending.connected, report.ending.reason), (true, EndReason::MaxDuration));
    let codes = [
        "INVALID_AUDIO_FRAME",
        "INVALID_AUDIO_FRAME",
        "INVALID_MESSAGE",
        "INVALID_MESSAGE",
        "INVALID_MESSAGE",
        "INVALID_MESSAGE",
        "MISSING_FIELD",
        "MISSING_FIELD",
        "INVALID_MESSAGE",
        "MISSING_FIELD",
        "INVALID_MESSAGE",
    ];
    assert_eq!(violations(&report), codes);
    let answers: Vec<String> = server
        .what_came()
        .texts("session.error")
        .iter()
        .map(|error| error["data"]["message"].as_str().expect("a text").to_owned())
        .collect();
    assert_eq!(answers.len(), 10, "an error is not answered by one: {answers:?}");
    assert_eq!(answers[0], "Audio frame has an odd length: 641");
    assert_eq!(answers[6], "speech.started requires data.utterance_id");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_violations_close_the_connection() {
    let (report, server) = with_input(vec![Message::binary(vec![0; 3]); 200], quick()).await;
    assert_eq!(report.ending.reason, EndReason::ConnectionLost);
    assert_eq!(server.what_came().close(), Some((1008, "too many protocol errors".to_owned())));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_too_big_closes_the_connection() {
    let (report, server) = with_input(vec![Message::binary(vec![0; 1_048_577])], quick()).await;
    assert_eq!(report.ending.reason, EndReason::ConnectionLost);
    assert_eq!(server.what_came().close().map(|(code, _)| code), Some(1009));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn marks_and_events_by_the_thousand() {
    let mut bad = vec![Message::binary(speech(2.0))];
    let mark = |n: usize| Message::text(json!({ "type": "mark", "data": { "name": n.to_string() } }).to_string());
    bad.extend((0..1050).map(mark));
    let started = |n: usize| json!({ "type": "speech.started", "data": { "utterance_id": n.to_string() } });
    bad.extend((0..10_000).map(|n| Message::text(started(n).to_string())));
    let (report, server) = with_input(bad, quick()).await;
    assert_eq!((report.ending.connected, report.ending.reason), (true, EndReason::MaxDuration));
    let echoed: Vec<usize> = server
        .what_came()
        .texts("mark")
        .iter()
        .map(|mark| mark["data"]["name"].as_str().expect("a text").parse().expect("a number"))
        .collect();
    assert_eq!(echoed, (0..1000).collect::<Vec<_>>(), "in order, and no more than may wait");
    assert_eq!(violations(&report).len(), 50);
    assert!(report.timeline.len() < 11_000, "{} events", report.timeline.len());
    let cut = report.warnings.iter().any(|warning| warning.contains("messages that are events"));
    assert!(cut, "{:?}", report.warnings);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn audio_that_comes_too_fast_is_kept_for_a_minute() {
    let burst = vec![Message::binary(vec![7; 640_000]); 6];
    let (report, server) = with_input(burst, quick()).await;
    let overflowed: u64 = report
        .timeline
        .iter()
        .filter_map(|entry| if let EventKind::RxOverflow { packets } = entry.what { Some(packets) } else { None })
        .sum();
    assert!((2900..=3050).contains(&overflowed), "60 of 120 s fit: {overflowed} frames of 20 ms do not");
    assert_eq!(report.ending.reason, EndReason::MaxDuration);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_that_break_the_protocol_of_websockets() {
    let stage = Stage::new().await;
    // A reserved bit, an opcode that does not exist, a masked frame of a server, a text that is no UTF-8.
    for bytes in [vec![0xf2, 1, 0], vec![0x83, 1, 0], vec![0x82, 0x81, 0, 0, 0, 0, 0], vec![0x81, 1, 0xff]] {
        let sent = bytes.clone();
        let server = Server::start(move |mut line: Line| {
            let bytes = sent.clone();
            async move {
                line.send(Message::binary(vec![0; 640])).await;
                line.until_audio(5).await;
                let _ = tokio::io::AsyncWriteExt::write_all(line.tcp(), &bytes).await;
                line.until_end().await;
            }
        })
        .await;
        let report = stage.call(placement(&stage, &server.url(), quick())).await.expect("a place is free");
        let remote = report.ending.remote.as_ref().expect("it says why");
        assert_eq!((remote.kind, report.ending.reason), (RemoteKind::Lost, EndReason::ConnectionLost), "{bytes:?}");
        assert_eq!(server.what_came().close().map(|(code, _)| code), Some(1002), "{bytes:?}");
        server.stop().await;
    }
    stage.engine.stop().await;
}
