//! Every row of the state machine: what a server answers and how it ends, and what becomes of the call.

use std::time::Duration;

use ringer::engine::CallReport;
use ringer_media::call::{EndReason, RemoteKind};
use tokio::io::AsyncReadExt;
use tokio_tungstenite::tungstenite::Message;

use super::server::{Line, Server, speech};
use super::{call, quick};
use crate::calls::stage::Stage;
use ringer::engine::SocketSettings;
use ringer::transport::websocket::link::LinkLimits;
use ringer::transport::websocket::port::DialRules;

fn kind(report: &CallReport) -> Option<(RemoteKind, Option<u16>, Option<u16>)> {
    report.ending.remote.as_ref().map(|remote| (remote.kind, remote.http_status(), remote.close_code()))
}

/// Returns settings with one further attempt.
fn twice() -> SocketSettings {
    SocketSettings { rules: DialRules { retries: 1, backoff_ms: vec![10] }, ..quick() }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_the_upgrade() {
    let stage = Stage::new().await;
    let http = |status: &str, headers: &str| format!("HTTP/1.1 {status}\r\n{headers}Content-Length: 0\r\n\r\n");
    let elsewhere = Server::start(|mut line: Line| async move { line.until_end().await }).await;
    let redirect = format!("Location: {}\r\n", elsewhere.url());
    use RemoteKind::{AuthFailed, Refused, Unreachable};
    for (answer, expect, attempts) in [
        (http("401 Unauthorized", ""), (AuthFailed, Some(401), None), 1),
        (http("403 Forbidden", ""), (AuthFailed, Some(403), None), 1),
        (http("404 Not Found", ""), (Refused, Some(404), None), 1),
        (http("302 Found", &redirect), (Refused, Some(302), None), 1),
        (http("200 OK", ""), (Refused, Some(200), None), 1),
        (http("429 Too Many Requests", ""), (Refused, Some(429), None), 2),
        (http("503 Service Unavailable", ""), (Refused, Some(503), None), 2),
        (http("500 Internal Server Error", ""), (Unreachable, Some(500), None), 2),
        (http("101 Switching Protocols", "Upgrade: websocket\r\nConnection: Upgrade\r\n"), (Refused, None, None), 1),
        ("SSH-2.0-x\r\n".to_owned(), (Refused, None, None), 1),
        (String::new(), (Unreachable, None, None), 2),
    ] {
        let server = Server::answering(answer.clone()).await;
        let report = call(&stage, &server.url(), twice()).await;
        assert!(!report.ending.connected, "{answer}");
        assert_eq!((kind(&report), server.what_came().connections), (Some(expect), attempts), "{answer}");
        server.stop().await;
    }
    assert_eq!(elsewhere.what_came().connections, 0, "a redirect is not followed");
    elsewhere.stop().await;
    stage.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_cannot_be_reached() {
    let stage = Stage::new().await;
    let refusing = Server::answering(String::new()).await;
    refusing.stop().await;
    // It takes the connection, and then every byte on its own time.
    let silent = Server::accepting(|mut stream, _| async move {
        let mut request = [0; 4096];
        while stream.read(&mut request).await.is_ok_and(|count| count > 0) {}
    })
    .await;
    let hasty = || SocketSettings { connect_timeout: Duration::from_millis(300), ..twice() };
    for (url, settings, part) in [
        (refusing.url(), twice(), "the connection was refused"),
        (silent.url(), hasty(), "no WebSocket came about within 300 ms"),
        (format!("wss://{}/", silent.address), hasty(), "no WebSocket came about within 300 ms"),
        ("ws://nobody.invalid/".to_owned(), twice(), "cannot be resolved"),
    ] {
        let report = call(&stage, &url, settings).await;
        assert_eq!(kind(&report), Some((RemoteKind::Unreachable, None, None)), "{url}");
        let text = report.ending.remote.expect("it says why").text;
        assert!(text.contains(part), "{url}: {text}");
    }
    assert_eq!(silent.what_came().connections, 4);
    silent.stop().await;
    stage.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_not_allowed_is_not_connected_to() {
    let stage = Stage::new().await;
    let server = Server::start(|mut line: Line| async move { line.until_end().await }).await;
    let mut placement = super::placement(&stage, &server.url(), twice());
    placement.destination.set_guard(ringer::provider::guard::Guard::new(false));
    let report = stage.call(placement).await.expect("a place is free");
    let remote = report.ending.remote.expect("it says why");
    assert_eq!(
        (remote.kind, remote.text.as_str()),
        (RemoteKind::Refused, "websocket_url points to a host that is not allowed")
    );
    assert_eq!(server.what_came().connections, 0);
    server.stop().await;
    stage.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_before_the_session_is_established() {
    let stage = Stage::new().await;
    for (code, expect, attempts) in [
        (1008, (RemoteKind::AuthFailed, None, Some(1008)), 1),
        (1000, (RemoteKind::Unreachable, None, Some(1000)), 2),
        (1011, (RemoteKind::Unreachable, None, Some(1011)), 2),
    ] {
        let server = Server::start(move |mut line: Line| async move { line.close(code).await }).await;
        let report = call(&stage, &server.url(), twice()).await;
        assert_eq!((kind(&report), server.what_came().connections), (Some(expect), attempts), "{code}");
        assert!(!report.ending.connected);
        server.stop().await;
    }
    let server = Server::start(|line: Line| async move { drop(line) }).await;
    let report = call(&stage, &server.url(), twice()).await;
    assert_eq!(kind(&report), Some((RemoteKind::Unreachable, None, None)));
    assert_eq!(server.what_came().connections, 2);
    server.stop().await;
    stage.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_of_calls_that_are_up() {
    let stage = Stage::new().await;
    for (code, expect, reason) in [
        (1000, RemoteKind::Bye, EndReason::AgentHangup),
        (1001, RemoteKind::Bye, EndReason::AgentHangup),
        (1003, RemoteKind::Lost, EndReason::ConnectionLost),
        (1008, RemoteKind::Lost, EndReason::ConnectionLost),
        (1011, RemoteKind::Lost, EndReason::ConnectionLost),
        (4000, RemoteKind::Lost, EndReason::ConnectionLost),
    ] {
        let server = Server::start(move |mut line: Line| async move {
            line.send(Message::binary(speech(0.6))).await;
            line.until_audio(60).await;
            line.close(code).await;
        })
        .await;
        let report = call(&stage, &server.url(), twice()).await;
        assert_eq!(kind(&report), Some((expect, None, Some(code))), "{code}");
        assert_eq!((report.ending.connected, report.ending.reason), (true, reason), "{code}");
        assert!(report.ending.other_spoke, "{code}");
        assert_eq!(server.what_came().connections, 1, "a call that is up is not dialled again");
        server.stop().await;
    }
    // Without a code, without a close frame, and in the middle of a frame.
    for (how, expect) in
        [(0, (RemoteKind::Bye, Some(1005))), (1, (RemoteKind::Lost, None)), (2, (RemoteKind::Lost, None))]
    {
        let server = Server::start(move |mut line: Line| async move {
            line.send(Message::binary(vec![0; 640])).await;
            line.until_audio(10).await;
            match how {
                0 => {
                    line.send(Message::Close(None)).await;
                    line.until_end().await;
                }
                1 => drop(line),
                _ => {
                    let _ = tokio::io::AsyncWriteExt::write_all(line.tcp(), &[0x82, 126, 2, 128, 0]).await;
                    drop(line);
                }
            }
        })
        .await;
        let report = call(&stage, &server.url(), twice()).await;
        let (kind, status, code) = kind(&report).expect("it says why");
        assert_eq!(((kind, code), status, report.ending.connected), (expect, None, true), "{how}");
        server.stop().await;
    }
    stage.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_nothing_is_established_after_two_seconds_and_then_lost() {
    let stage = Stage::new().await;
    // It neither reads nor answers pings.
    let server = Server::start(|line: Line| async move {
        std::future::pending::<()>().await;
        drop(line);
    })
    .await;
    let limits = LinkLimits {
        ping_interval: Duration::from_secs(1),
        ping_timeout: Duration::from_secs(4),
        ..LinkLimits::default()
    };
    let report = call(&stage, &server.url(), SocketSettings { limits, ..twice() }).await;
    assert_eq!(kind(&report), Some((RemoteKind::Lost, None, None)));
    assert!(report.ending.connected, "sample 0 comes after 2 s");
    let text = report.ending.remote.expect("it says why").text;
    assert_eq!(text, "neither a pong nor a message came within 4 s");
    server.stop().await;
    // One that reads is alive by its pongs alone.
    let server = Server::start(|mut line: Line| async move { line.until_end().await }).await;
    let mut placement = super::placement(&stage, &server.url(), SocketSettings { limits, ..twice() });
    placement.spec.limits.max_duration_ms = Some(5000);
    let report = stage.call(placement).await.expect("a place is free");
    assert_eq!(report.ending.reason, EndReason::MaxDuration);
    server.stop().await;
    stage.engine.stop().await;
}
