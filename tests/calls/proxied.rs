//! Calls through Kamailio, which records its route: each transport on either side of it.

use futures_util::future::join_all;
use ringer::engine::{CallReport, EngineConfig};
use ringer::transport::sip::tls::TlsSettings;
use ringer_media::call::{EndReason, Opening, RemoteKind};
use ringer_media::codec::Codec;
use tempfile::TempDir;

use super::local;
use super::peers::best_share;
use super::softphone::hold_resume_and_hang_up;
use super::stage::{RTP_PORTS, Stage, channels};
use super::streams::with_certificate;
use crate::peers::{Peer, Softphone, TONE_HZ};

const WORDS: &str = "Hello, this is a sentence that takes a while.";

fn config(tls: TlsSettings) -> EngineConfig {
    let sip = "udp:127.0.0.1:0,tcp:127.0.0.1:0,tls:127.0.0.1:0".parse().expect("good addresses");
    EngineConfig { sip, tls, ..local::config(RTP_PORTS, 10) }
}

/// Returns a folder with certificates, and settings that show and trust them.
fn certificates() -> (TempDir, TlsSettings) {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let (mut tls, trusting) = with_certificate(&folder, "127.0.0.1");
    tls.roots = trusting.roots;
    (folder, tls)
}

/// Fails unless both sides of the call were heard, and the messages tell the route.
fn check(row: &str, report: &CallReport, log: &str, hum_hz: f32) {
    assert!(log.contains("Record-Route: <sip:127.0.0.1:"), "{row}: {log}");
    let [sent, heard] = channels(report.recording.as_deref().expect("it was recorded"));
    assert!(best_share(&heard, f64::from(TONE_HZ)) > 0.95, "{row}: the tone is what is heard");
    assert!(best_share(&sent, f64::from(hum_hz)) > 0.95, "{row}: something was said");
}

/// The engine calls a softphone behind the proxy, which holds the call, takes it back and hangs up. Its requests come
/// the way that was recorded.
#[tokio::test(flavor = "multi_thread")]
async fn a_softphone_behind_a_proxy_is_called() {
    let (folder, tls) = certificates();
    let (folder, tls) = (&folder, &tls);
    let check_row = async |near: &str, far: &str| {
        let row = format!("{near} to the proxy, {far} behind it");
        let phone = Softphone { transport: far, certificates: Some(folder.path()), ..Softphone::default() }.answering();
        let proxy = Peer::proxy(&phone.uri(far), folder.path(), false);
        let (stage, _calls) = Stage::with_calls(config(tls.clone()), ringer::clock::Clock::Real).await;
        let recorded = tempfile::tempdir().expect("the folder for temporary files is writable");
        let mut placement = stage.placement(&proxy.uri(near), WORDS);
        placement.folder = Some(recorded.path().into());
        placement.spec.opening = Opening::Say(WORDS.into());
        placement.spec.limits.max_duration_ms = Some(30_000);
        let mut handle = stage.engine.place(placement).await.unwrap_or_else(|error| panic!("{row}: {error:?}"));
        let (names, report) = hold_resume_and_hang_up(&mut handle, &phone).await;
        let log = std::fs::read_to_string(recorded.path().join("sip.log")).expect("it was written");
        assert_eq!(names, ["speech.ended", "hold", "unhold"], "{row}: {log}\n{}", proxy.output());
        assert_eq!(report.ending.reason, EndReason::AgentHangup, "{row}: {log}");
        assert_eq!(report.peer.transport(), format!("SIP/{near}, RTP/AVP"), "{row}");
        check(&row, &report, &log, stage.synthesizer.tone_hz);
        // Two hops where the proxy changes the transport (RFC 5658), which the ACK names in its Route.
        let ack = log.split(" ACK ").nth(1).expect("the answer is acknowledged");
        let ack = ack.split("\n\n").next().unwrap_or_default();
        assert!(ack.contains("Route: <sip:127.0.0.1:") && ack.contains(";lr"), "{row}: {ack}");
        phone.wait_for("terminated");
    };
    let rows = [("UDP", "UDP"), ("TCP", "UDP"), ("TLS", "UDP"), ("UDP", "TCP"), ("TCP", "TLS")];
    join_all(rows.map(|(near, far)| check_row(near, far))).await;
}

/// A softphone calls the engine through the proxy, and the engine hangs up: its BYE goes the way that was recorded.
#[tokio::test(flavor = "multi_thread")]
async fn a_softphone_calls_through_a_proxy() {
    let (folder, tls) = certificates();
    let (folder, tls) = (&folder, &tls);
    let check_row = async |far: &str, near: &str| {
        let row = format!("{far} to the proxy, {near} behind it");
        let (stage, mut calls) = Stage::with_calls(config(tls.clone()), ringer::clock::Clock::Real).await;
        let listen = stage.engine.sip_addresses();
        let address = match near {
            "UDP" => listen.udp,
            "TCP" => listen.tcp,
            _ => listen.tls,
        };
        let address = address.expect("it listens");
        let target = format!("sip:ringer@{address};transport={}", near.to_lowercase());
        let proxy = Peer::proxy(&target, folder.path(), false);
        let phone = Softphone { transport: far, certificates: Some(folder.path()), ..Softphone::default() };
        let phone = phone.calling(&proxy.uri(far));
        let recorded = tempfile::tempdir().expect("the folder for temporary files is writable");
        let report = stage.answer_with(&mut calls, recorded.path(), WORDS, 3000, Codec::Pcmu).await;
        let log = std::fs::read_to_string(recorded.path().join("sip.log")).expect("it was written");
        assert_eq!(report.ending.reason, EndReason::MaxDuration, "{row}: {log}\n{}", phone.output());
        assert_eq!(report.peer.transport(), format!("SIP/{near}, RTP/AVP"), "{row}");
        check(&row, &report, &log, stage.synthesizer.tone_hz);
        let bye = log.split(" BYE ").nth(1).expect("this side hangs up");
        assert!(bye.contains("Route: <sip:127.0.0.1:") && bye.contains("SIP/2.0 200"), "{row}: {bye}");
        phone.wait_for("terminated");
    };
    join_all([("TLS", "UDP"), ("UDP", "TLS"), ("UDP", "TCP")].map(|(far, near)| check_row(far, near))).await;
}

/// A proxy that wants a certificate gets the one of this side; without one the call ends, and says why.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_shown_to_a_proxy_that_wants_one() {
    let (folder, tls) = certificates();
    let phone = Softphone::default().answering();
    let proxy = Peer::proxy(&phone.uri("UDP"), folder.path(), true);
    let call = async |tls: TlsSettings| {
        let config = EngineConfig { sip: "udp:127.0.0.1:0".parse().expect("a good address"), ..config(tls) };
        let (stage, _calls) = Stage::with_calls(config, ringer::clock::Clock::Real).await;
        let mut placement = stage.placement(&proxy.uri("TLS"), WORDS);
        placement.spec.limits.max_duration_ms = Some(1000);
        stage.call(placement).await.expect("it was placed")
    };
    let report = call(tls.clone()).await;
    assert_eq!(report.ending.reason, EndReason::MaxDuration, "{:?}\n{}", report.ending, proxy.output());
    let report = call(TlsSettings { identity: None, ..tls }).await;
    let remote = report.ending.remote.expect("the transport ends it");
    assert!(!report.ending.connected && remote.kind == RemoteKind::Unreachable, "{remote:?}");
    assert!(remote.text.contains("ertificate"), "{remote:?}");
}
