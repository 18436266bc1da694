//! A server that stops reading, and the lateness of the call to it; agents whose own pace decides what is heard.

mod frameworks;

use std::time::Duration;

use ringer_media::call::EndReason;
use tokio_tungstenite::tungstenite::Message;

use super::bad_input::other_call;
use super::server::{Line, Server};
use super::{placement, quick};
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
    let report = report.expect("there is room");
    assert_eq!(report.ending.reason, EndReason::MaxDuration);
    let unsent = report.warnings.iter().any(|warning| warning.contains("were not sent: the agent did not read them"));
    assert!(unsent, "{:?}", report.warnings);
    // 750 frames against 125 of the other call: six times as many may be late.
    let (quality, other) = (report.ending.quality, other.ending.quality);
    assert!(quality.late_frames <= 6 * other.late_frames + 15, "{quality:?}, beside it {other:?}");
    server.stop().await;
    stage.engine.stop().await;
}
