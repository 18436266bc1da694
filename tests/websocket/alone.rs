//! A server that stops reading, and the lateness of the call to it; agents whose own pace decides what is heard;
//! servers that greet late, and the time that is told.

mod frameworks;

use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use ringer::clock::monotonic;
use ringer::engine::{CallReport, Destination};
use ringer::transport::websocket::{Dialect, Kind};
use ringer_media::call::{EndReason, Opening};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::bad_input::other_call;
use super::server::{Line, Server, speech, speech_of_a_carrier};
use super::{placement, quick};
use crate::calls::alone::greeting::check_greeting;
use crate::calls::stage::Stage;

/// A server that stops reading holds nobody up: audio beyond a second is dropped and counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_reading() {
    let stage = Stage::new().await;
    let server = Server::start(|mut line: Line| async move {
        let tcp = socket2::SockRef::from(&*line.tcp());
        tcp.set_recv_buffer_size(4096).expect("it can be small");
        line.send(Message::binary(vec![0; 640])).await;
        line.until_audio(5).await;
        std::future::pending::<()>().await;
    })
    .await;
    let mut call = placement(&stage, &server.url(), quick());
    call.spec.limits.max_duration_ms = Some(15_000);
    let began = Duration::from_secs(30);
    let held = async { tokio::time::timeout(began, stage.call(call)).await.expect("it ends in time") };
    let (report, other) = tokio::join!(held, other_call(&stage));
    let report = report.expect("a place is free");
    assert_eq!(report.ending.reason, EndReason::MaxDuration);
    let unsent = report.warnings.iter().any(|warning| warning.contains("were not sent: the agent did not read them"));
    assert!(unsent, "{:?}", report.warnings);
    // 750 frames against 125 of the other call: six times as many may be late.
    let (quality, other) = (report.ending.quality, other.ending.quality);
    assert!(quality.late_frames <= 6 * other.late_frames + 15, "{quality:?}, beside it {other:?}");
    server.stop().await;
    stage.engine.stop().await;
}

/// Calls a server whose script greets, and returns the report with the seconds from the opening of the socket to the
/// greeting on the server's own clock.
async fn call_greeter<F>(kind: Kind, script: impl Fn(Line) -> F + Clone + Send + Sync + 'static) -> (CallReport, f64)
where
    F: Future<Output = Line> + Send + 'static,
{
    let (tell, own_length) = tokio::sync::watch::channel(0.0);
    let server = Server::start(move |line: Line| {
        let (began, script, tell) = (monotonic(), script.clone(), tell.clone());
        async move {
            let mut line = script(line).await;
            tell.send_replace(monotonic().since(began).as_secs_f64());
            line.until_end().await;
        }
    })
    .await;
    let stage = Stage::new().await;
    let mut call = placement(&stage, &server.url(), quick());
    if let Destination::WebSocket(dial) = &mut call.destination {
        dial.dialect = Some(Dialect::new(kind));
    }
    call.spec.opening = Opening::Listen { open_after_ms: None };
    call.spec.limits.max_duration_ms = Some(7000);
    let report = stage.call(call).await.expect("a place is free");
    stage.engine.stop().await;
    server.stop().await;
    let own_s = *own_length.borrow();
    (report, own_s)
}

/// Greetings before the session counts as established, right after that, and later: none is told earlier than it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_greeting_is_told_as_late_as_it_was() {
    for frames in [90, 125, 200] {
        let own = move |mut line: Line| async move {
            line.until_audio(frames).await;
            line.send(Message::binary(speech(1.5))).await;
            line
        };
        let carrier = move |mut line: Line| async move {
            for _ in 0..frames {
                line.until(|message| message.to_text().is_ok_and(|text| text.contains("\"media\""))).await;
            }
            let audio = BASE64_STANDARD.encode(speech_of_a_carrier());
            let message = json!({ "event": "media", "media": { "payload": audio } });
            line.send(Message::text(message.to_string())).await;
            line
        };
        let (own, carrier) =
            tokio::join!(call_greeter(Kind::Default, own), call_greeter(Kind::TelnyxMediaStreaming, carrier));
        for (what, (report, own_s)) in [("own protocol", own), ("carrier", carrier)] {
            assert!(own_s > 0.015 * frames as f64, "{what}: it waited {own_s} s");
            check_greeting(&report, own_s, &format!("{what}, {frames} frames"));
        }
    }
}
