//! Calls to other people's SIP programs: set-up and its refusals by sipp, audio both ways by baresip.

use ringer::config::{Encryption, Secret};
use ringer_media::call::{EndReason, Limits, RemoteKind};
use ringer_media::codec::Codec;
use ringer_media::connection::ConnectionSpec;
use ringer_media::level::rms_dbov;

use serde_json::json;

use super::stage::{Stage, channels, names};
use crate::peers::{Peer, TONE_HZ};

/// A connection that loses packets and holds them back.
pub(crate) const BAD: ConnectionSpec =
    ConnectionSpec { loss: 0.15, mean_burst: 6.0, jitter_ms: 80.0, delay_ms: 0.0, sent_only: false };

/// Returns the address at which a peer is called.
pub(crate) fn at(peer: &Peer) -> String {
    format!("sip:bob@{}", peer.sip)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_answered_heard_recorded_and_hung_up() {
    let (stage, peer) = (Stage::new().await, Peer::answering(1));
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut placement = stage.placement(&at(&peer), "Hello there.");
    placement.folder = Some(folder.path().join("call"));
    placement.spec.limits.max_duration_ms = Some(3000);
    placement.spec.extension = Some("15".into());
    let report = stage.call(placement).await.expect("it was placed");
    peer.end();

    assert_eq!(report.ending.reason, EndReason::MaxDuration);
    assert_eq!(report.peer.codec, Some("PCMU"));
    let names = names(&report);
    for name in ["call.dialing", "call.connected", "dtmf_sent", "call.ended"] {
        assert!(names.contains(&name), "{name} is missing in {names:?}");
    }
    assert!(!names.contains(&"dtmf_received"), "own digits that come back are no digits of the other side: {names:?}");
    let [sent, heard] = channels(report.recording.as_deref().expect("it was recorded"));
    assert_eq!(sent.len() as i64, report.ending.samples, "the recording is as long as the call");
    // The digits come back from the echo at the level at which they went out.
    let tone = |pcm: &[i16]| rms_dbov(&pcm[8_600..9_600]);
    assert!((tone(&sent) - tone(&heard)).abs() < 1.0, "{} and {}", tone(&sent), tone(&heard));
    assert_eq!(report.ending.quality.lost_packets, 0);
    let log = std::fs::read_to_string(folder.path().join("call/sip.log")).expect("it was written");
    assert!(log.contains("INVITE sip:bob@"), "{log}");
    let farewell = log.split_once("BYE sip:").map(|(_, after)| after);
    assert!(farewell.is_some_and(|after| after.contains("SIP/2.0 200")), "the answer to BYE is missing: {log}");
}

/// A hold and its end by re-INVITE, then a change of port: the audio goes to the new port and comes from it.
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_session_is_followed() {
    let (stage, peer) = (Stage::new().await, Peer::scenario("hold"));
    let target = at(&peer);
    let report = stage.call(stage.placement(&target, "Hello there.")).await.expect("it was placed");
    let port = peer.sip.port();
    peer.end();
    assert_eq!(report.ending.reason, EndReason::AgentHangup);
    let moment = |name: &str| report.timeline.iter().find(|entry| entry.name() == name).map(|entry| entry.offset_ms());
    let (held, back) = (moment("hold").expect("a hold"), moment("unhold").expect("its end"));
    assert!((900.0..3000.0).contains(&(back - held)), "on hold from {held} to {back} ms");
    // The peer's media ports: its first, and the one two above it.
    assert_eq!(report.peer.address, Some(format!("127.0.0.1:{}", port + 4)));
    let quality = report.ending.quality;
    // On hold nothing is sent to the peer, which sends back what it gets (RFC 3264 8.4).
    let packets = quality.sent_frames - ((back - held) / 20.0) as u64;
    let away = packets.abs_diff(quality.received_packets);
    println!("{packets} packets went out, {} came back", quality.received_packets);
    assert!(away <= 25, "{packets} packets went out and {} came back", quality.received_packets);
}

/// Handed on by REFER (RFC 3515): as the call is told to, it follows by leaving or declines and stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_ends_the_call_or_is_declined() {
    for (scenario, ends, reason) in
        [("refer", true, EndReason::Transfer), ("refer_declined", false, EndReason::AgentHangup)]
    {
        let (stage, peer) = (Stage::new().await, Peer::scenario(scenario));
        let mut placement = stage.placement(&at(&peer), "Hello there.");
        placement.spec.hangup_on_transfer = ends;
        let report = stage.call(placement).await.expect("it was placed");
        // sipp checks what it was sent.
        peer.end();
        assert_eq!(report.ending.reason, reason, "{scenario}");
        let asked: Vec<_> = report.timeline.iter().filter(|entry| entry.name() == "transfer").collect();
        let code = if ends { 202 } else { 603 };
        assert_eq!(asked.len(), 1, "{scenario}");
        assert_eq!(asked[0].data(), json!({ "to": "sip:carol@example.com", "accepted": ends, "code": code }));
        assert!((900.0..3000.0).contains(&asked[0].offset_ms()), "at {} ms", asked[0].offset_ms());
    }
}

/// The peer sends back every packet that it gets: what is missing and late in its stream was lost and delayed on the
/// way out.
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_connection_really_loses_and_delays_packets() {
    let (stage, peer) = (Stage::new().await, Peer::answering(1));
    let mut placement = stage.placement(&at(&peer), "Hello there.");
    placement.spec.limits.max_duration_ms = Some(10_000);
    placement.spec.connection = BAD;
    let report = stage.call(placement).await.expect("it was placed");
    peer.end();
    let quality = report.ending.quality;
    let done = quality.impairment.expect("the connection was bad");
    let came = quality.received_packets as f64;
    let missing = quality.lost_packets as f64;
    println!("{came} packets came back and {missing} did not, {:.1} ms jitter; {done:.2?}", quality.jitter_ms);
    assert!(missing > 10.0, "{missing} of {came} are missing");
    // Losses at the very beginning and end leave no gap.
    let lost_pct = 100.0 * missing / (came + missing);
    assert!((lost_pct - done.sent.loss_pct).abs() < 3.0, "{lost_pct:.2} % are missing, {done:?}");
    // Uniform delays of 0 to 160 ms whose order is kept: far from the grid of 20 ms, on which there would be none.
    assert!(quality.jitter_ms > 8.0, "{} ms", quality.jitter_ms);
    assert!(done.sent.jitter_ms > 70.0 && done.received.jitter_ms > 70.0, "{done:?}");
    assert!(quality.sent_frames >= 495, "{quality:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn header_fields_go_out_with_the_invite() {
    let (stage, peer) = (Stage::new().await, Peer::scenario("headers"));
    let mut placement = stage.placement(&at(&peer), "Hello.");
    let headers = vec![("X-Ringer-Test".into(), "42".into()), ("X-Trait".into(), "gold".into())];
    placement.destination.sip().expect("it dials").headers = headers;
    placement.spec.limits.max_duration_ms = Some(500);
    let report = stage.call(placement).await.expect("it was placed");
    assert!(report.ending.connected, "{:?}", report.ending);
    let log = peer.end();
    assert!(log.contains("X-Ringer-Test= 42 X-Trait= gold"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_is_answered_once() {
    for (password, connects) in [("secret", true), ("wrong", false)] {
        let (stage, peer) = (Stage::new().await, Peer::scenario("challenge"));
        let mut placement = stage.placement(&at(&peer), "Hello.");
        let dial = placement.destination.sip().expect("it dials");
        (dial.username, dial.password) = (Some("ringer".into()), Some(Secret::new(password.into())));
        placement.spec.limits.max_duration_ms = Some(500);
        let report = stage.call(placement).await.expect("it was placed");
        assert_eq!(report.ending.connected, connects, "{password}: {:?}", report.ending);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_side_refuses() {
    let (stage, peer) = (Stage::new().await, Peer::scenario("busy"));
    let report = stage.call(stage.placement(&at(&peer), "Hello.")).await.expect("it was placed");
    assert_eq!(report.ending.reason, EndReason::Rejected);
    let remote = report.ending.remote.expect("it said so");
    assert_eq!((remote.kind, remote.sip_code()), (RemoteKind::Refused, Some(486)));
    assert!(report.recording.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn ringing_ends_by_cancel() {
    let (stage, peer) = (Stage::new().await, Peer::scenario("ring"));
    let mut placement = stage.placement(&at(&peer), "Hello.");
    placement.spec.limits = Limits { ringing_ms: 1000, ..Limits::default() };
    let report = stage.call(placement).await.expect("it was placed");
    assert_eq!(report.ending.reason, EndReason::NoAnswer);
    assert!(names(&report).contains(&"call.ringing"));
    peer.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn early_media_is_recorded_apart() {
    let (stage, peer) = (Stage::new().await, Peer::scenario("early_media"));
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut placement = stage.placement(&at(&peer), "Hello.");
    placement.folder = Some(folder.path().into());
    placement.spec.limits.max_duration_ms = Some(500);
    let report = stage.call(placement).await.expect("it was placed");
    assert!(report.ending.connected, "{:?}", report.ending);
    assert!(names(&report).contains(&"call.early_media"));
    assert!(folder.path().join("early_media.wav").is_file());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reliable_response_has_its_prack_and_its_answer_counts() {
    let (stage, peer) = (Stage::new().await, Peer::scenario("prack"));
    let mut placement = stage.placement(&at(&peer), "Hello.");
    placement.spec.limits.max_duration_ms = Some(1500);
    let report = stage.call(placement).await.expect("it was placed");
    assert!(report.ending.connected && names(&report).contains(&"call.early_media"), "{:?}", report.ending);
    assert!(names(&report).contains(&"session.answered"), "its UPDATE is told: {:?}", names(&report));
    assert_eq!((report.ending.reason, report.peer.codec), (EndReason::MaxDuration, Some("PCMU")));
    peer.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interval_that_is_too_small_is_asked_for_anew() {
    let (stage, peer) = (Stage::new().await, Peer::scenario("session_timer"));
    let mut placement = stage.placement(&at(&peer), "Hello.");
    placement.spec.limits.max_duration_ms = Some(500);
    let report = stage.call(placement).await.expect("it was placed");
    assert_eq!(report.ending.reason, EndReason::MaxDuration, "{:?}", report.ending);
    peer.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_there_is_told_at_once() {
    let stage = Stage::new().await;
    // A port that was free a moment ago.
    let port =
        std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("one is free").port();
    let report =
        stage.call(stage.placement(&format!("sip:bob@127.0.0.1:{port}"), "Hello.")).await.expect("it was placed");
    assert_eq!(report.ending.reason, EndReason::DialFailed);
    assert_eq!(report.ending.remote.map(|end| end.kind), Some(RemoteKind::Unreachable));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_cannot_be_written_is_a_warning() {
    let (stage, peer) = (Stage::new().await, Peer::answering(1));
    let file = tempfile::NamedTempFile::new().expect("the folder for temporary files is writable");
    let mut placement = stage.placement(&at(&peer), "Hello.");
    placement.folder = Some(file.path().join("call"));
    placement.spec.limits.max_duration_ms = Some(500);
    let report = stage.call(placement).await.expect("it was placed");
    assert_eq!(report.ending.reason, EndReason::MaxDuration, "the call goes on");
    assert!(report.recording.is_none());
    assert!(report.warnings.iter().any(|warning| warning.contains("nothing is recorded")), "{:?}", report.warnings);
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_on_every_port_changes_nothing() {
    let (stage, peer) = (Stage::new().await, Peer::answering(1));
    let noise = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    let mut draw = ringer_media::seed::Seed(3).stream("garbage");
    let mut throw = |port: u16| {
        let len = draw.index(1400);
        let bytes: Vec<u8> = (0..len).map(|_| draw.bits() as u8).collect();
        let _ = noise.send_to(&bytes, ("127.0.0.1", port));
    };
    let sip = stage.engine.sip_address().port();
    (0..500).for_each(|_| throw(sip));
    let mut placement = stage.placement(&at(&peer), "Hello.");
    placement.spec.limits.max_duration_ms = Some(1000);
    let call = stage.call(placement);
    // Media ports are handed out in order from the first of the range.
    for port in 20_000..20_400 {
        throw(port);
    }
    let report = call.await.expect("it was placed");
    assert_eq!(report.ending.reason, EndReason::MaxDuration);
    assert_eq!(report.ending.quality.lost_packets, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_addresses_are_named() {
    let stage = Stage::new().await;
    for target in ["sip:127.0.0.1", "tel:1", "sip:", "nonsense", "sip:a@no such host"] {
        let refusal = stage.call(stage.placement(target, "Hello.")).await.expect_err(target);
        assert!(refusal.to_string().contains(target), "{target}: {refusal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_softphone_is_heard_and_hears() {
    let log = talks_with_a_softphone(Encryption::Off, Codec::Pcmu, Peer::baresip("PCMU/8000/1")).await;
    assert!(!log.contains("a=crypto"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_softphone_is_heard_and_hears_in_pcma() {
    talks_with_a_softphone(Encryption::Off, Codec::Pcma, Peer::baresip("PCMA/8000/1")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_softphone_is_heard_and_hears_in_g722() {
    talks_with_a_softphone(Encryption::Off, Codec::G722, Peer::baresip("G722/16000/1")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_softphone_is_heard_and_hears_in_opus() {
    talks_with_a_softphone(Encryption::Off, Codec::Opus, Peer::baresip("opus/48000/2")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_softphone_is_heard_and_hears_in_l16() {
    talks_with_a_softphone(Encryption::Off, Codec::L16Wide, Peer::baresip("L16/16000/1")).await;
}

/// Both kinds of offers, to a softphone with secure RTP: words and a tone go both ways, and no key is written down.
#[tokio::test(flavor = "multi_thread")]
async fn a_softphone_with_secure_rtp_is_heard_and_hears() {
    for (ours, theirs, profile) in
        [(Encryption::Required, "srtp-mand", "RTP/SAVP"), (Encryption::Optional, "srtp", "RTP/AVP")]
    {
        let log = talks_with_a_softphone(ours, Codec::Pcmu, Peer::secure_baresip(theirs)).await;
        let (offer, answer) = log.split_once("received from").expect("there is an answer");
        assert_eq!(offer.matches("a=crypto:").count(), 3, "every suite is offered: {log}");
        assert_eq!(answer.matches("a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:").count(), 1, "one is chosen: {log}");
        assert_eq!(log.matches(&format!(" {profile} ")).count(), 2, "{log}");
        let shown = log.split("inline:").skip(1).filter(|rest| !rest.starts_with("(masked)\n")).count();
        assert_eq!(shown, 0, "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_requires_keys_does_not_come_about_without() {
    let (stage, peer) = (Stage::with(Encryption::Required).await, Peer::baresip("PCMU/8000/1"));
    let report = stage.call(stage.placement(&at(&peer), "Hello.")).await.expect("it was placed");
    assert!(!report.ending.connected, "{:?}", report.ending);
    assert_eq!(report.peer.transport(), "SIP/UDP", "no media was agreed on");
    let end = report.ending.remote.expect("it says why");
    assert!(matches!(end.kind, RemoteKind::NoMedia | RemoteKind::Refused) && !end.text.is_empty(), "{end:?}");
    assert!(report.recording.is_none());
}

/// Returns a call in `codec`: each side hears the other's tone at its level. Gives the SIP log.
async fn talks_with_a_softphone(srtp: Encryption, codec: Codec, peer: Peer) -> String {
    let profile = if srtp == Encryption::Off { "RTP/AVP" } else { "RTP/SAVP" };
    talks(Stage::with(srtp).await, profile, codec, peer).await
}

/// Makes the same call on `stage`, by this profile.
pub(crate) async fn talks(stage: Stage, profile: &str, codec: Codec, peer: Peer) -> String {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut placement = stage.placement(&at(&peer), "Hello, this is a sentence that takes a while to say.");
    placement.folder = Some(folder.path().into());
    placement.destination.set_codecs(vec![codec]);
    placement.spec.opening = ringer_media::call::Opening::Say("Hello, this is a sentence that takes a while.".into());
    placement.spec.limits.max_duration_ms = Some(4000);
    let report = stage.call(placement).await.expect("it was placed");
    let log = std::fs::read_to_string(folder.path().join("sip.log")).expect("it was written");
    assert_eq!(report.ending.reason, EndReason::MaxDuration, "{log}");
    assert_eq!(report.peer.codec, Some(codec.name()));
    assert_eq!(report.peer.transport(), format!("SIP/UDP, {profile}"));
    let [sent, heard] = channels(report.recording.as_deref().expect("it was recorded"));
    let steady = &heard[16_000..48_000];
    assert!(share_at(steady, f64::from(TONE_HZ)) > 0.95, "the tone is what is heard");
    assert!((rms_dbov(steady) - -15.3).abs() < 1.0, "{} dBov", rms_dbov(steady));
    assert!(sent.iter().any(|sample| sample.abs() > 1000), "something was said");
    peer.wait_for("terminated");
    let theirs = std::fs::read(peer.heard_file().expect("baresip keeps what it heard")).expect("it is readable");
    let clip = ringer_media::clip::Clip::from_wav(&theirs).expect("it is a WAV file");
    let said = clip.to_16k();
    let first = said.iter().position(|sample| sample.abs() > 1000).expect("baresip heard the words");
    let steady = &said[first + 1600..first + 17_600];
    let hum_hz = f64::from(stage.synthesizer.tone_hz);
    assert!(share_at(steady, hum_hz) > 0.95, "the hum is what baresip heard: {}", share_at(steady, hum_hz));
    assert!((rms_dbov(steady) - rms_dbov(&sent[8000..24_000])).abs() < 1.0, "baresip heard {} dBov", rms_dbov(steady));
    log
}

/// Returns the part of the power of `pcm` at `hz` in its best tenth of a second.
pub(super) fn best_share(pcm: &[i16], hz: f64) -> f64 {
    let loud = pcm.chunks_exact(1600).filter(|piece| piece.iter().any(|sample| sample.abs() > 500));
    loud.map(|piece| share_at(piece, hz)).fold(0.0, f64::max)
}

/// Returns the greatest sample of the part of `pcm` (16 kHz) that lies at `hz`.
pub(crate) fn level_at(pcm: &[i16], hz: f64) -> f64 {
    let power = pcm.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / pcm.len() as f64;
    (2.0 * share_at(pcm, hz) * power).sqrt()
}

/// Returns the share of the power of `pcm` (16 kHz) that lies at `hz`.
pub(crate) fn share_at(pcm: &[i16], hz: f64) -> f64 {
    let (mut re, mut im, mut power) = (0.0, 0.0, 0.0);
    for (at, sample) in pcm.iter().enumerate() {
        let (phase, value) = (std::f64::consts::TAU * hz * at as f64 / 16_000.0, f64::from(*sample));
        re += value * phase.cos();
        im += value * phase.sin();
        power += value * value;
    }
    2.0 * (re * re + im * im) / (pcm.len() as f64 * power.max(1.0))
}
