//! Calls to sipp whose signalling is out of the ordinary: led elsewhere, challenged, changed before the answer, ended
//! by both sides at once. sipp checks in its scenario what it is sent.

use std::io::Write;
use std::process::{Command, Stdio};

use ringer::config::Secret;
use ringer::engine::{CallReport, Placement};
use ringer::provider::guard::Guard;
use ringer_media::call::{EndReason, Limits};

use super::redirects::{Far, bye_of};
use super::stage::{Stage, names};
use crate::peers::Peer;

/// Returns a call to `peer` that lasts no longer than this, in milliseconds.
fn placement(stage: &Stage, peer: &Peer, most_ms: u32) -> Placement {
    let mut placement = stage.placement(&format!("sip:bob@{}", peer.sip), "Hello there.");
    placement.spec.limits.max_duration_ms = Some(most_ms);
    placement
}

/// Calls `peer` as `ringer` with the password of the scenarios.
async fn call(stage: &Stage, peer: &Peer, most_ms: u32) -> CallReport {
    let mut placement = placement(stage, peer, most_ms);
    let dial = placement.destination.sip().expect("it dials");
    (dial.username, dial.password) = (Some("ringer".into()), Some(Secret::new("secret".into())));
    stage.call(placement).await.expect("it was placed")
}

/// Returns a call to `peer` that may be led to another address, and from there no further.
async fn call_that_may_be_led(stage: &Stage, peer: &Peer) -> CallReport {
    let mut placement = placement(stage, peer, 500);
    placement.destination.sip().expect("it dials").guard = Some(Guard::by(|_| true));
    stage.call(placement).await.expect("it was placed")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_leads_to_another_peer() {
    let (stage, there) = (Stage::sending_on_to(&["127.0.0.1"]).await, Peer::answering(1));
    let peer = Peer::scenario_with("redirect", "contact", &format!("sip:carol@{}", there.sip));
    let report = call_that_may_be_led(&stage, &peer).await;
    assert_eq!(report.ending.reason, EndReason::MaxDuration, "{:?}", report.ending);
    assert_eq!(report.peer.address, Some(format!("127.0.0.1:{}", there.sip.port() + 2)));
    peer.end();
    there.end();
}

/// A proxy's challenge (407): once, and again with a new nonce, be the old one stale or not.
#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_of_a_proxy_is_answered() {
    let stage = Stage::new().await;
    let (first, second) = ("5f1d2c3b4a", "6a2e3d4c5b");
    let check = async |peer: Peer, nonces: Vec<&str>| {
        let target = format!("sip:bob@{}", peer.sip);
        let report = call(&stage, &peer, 500).await;
        assert_eq!(report.ending.reason, EndReason::MaxDuration, "{:?}", report.ending);
        let log = peer.end();
        let proofs: Vec<_> = log.lines().filter(|line| line.contains("Digest ")).collect();
        assert_eq!(proofs.len(), nonces.len(), "{log}");
        for (proof, nonce) in proofs.iter().zip(&nonces) {
            let field = |name: &str| field(proof, name);
            assert_eq!((field("nonce"), field("nc"), field("qop")), (*nonce, "00000001", "auth"), "{proof}");
            assert_eq!((field("username"), field("realm"), field("uri")), ("ringer", "peer", &*target), "{proof}");
            let (who, what) = (md5("ringer:peer:secret"), md5(&format!("INVITE:{target}")));
            let expect = md5(&format!("{who}:{nonce}:00000001:{}:auth:{what}", field("cnonce")));
            assert_eq!(field("response"), expect, "{proof}");
        }
    };
    tokio::join!(
        check(Peer::scenario("proxy_challenge"), vec![first]),
        check(Peer::scenario_with("proxy_challenge_anew", "stale", ", stale=true"), vec![first, second]),
        check(Peer::scenario_with("proxy_challenge_anew", "stale", ""), vec![first, second]),
    );
}

/// Returns the value of a parameter of digest credentials, without its quotation marks.
fn field<'c>(credentials: &'c str, name: &str) -> &'c str {
    let parts = credentials.split_once("Digest ").expect("digest").1.split(',').map(str::trim);
    let pairs = parts.filter_map(|part| part.split_once('='));
    let found = pairs.clone().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no {name} in {credentials}")).1.trim_end_matches(']').trim_matches('"')
}

/// Returns another program's MD5, in hexadecimal digits.
fn md5(text: &str) -> String {
    let mut command = Command::new("md5sum");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it is part of every Linux");
    child.stdin.take().expect("it was piped").write_all(text.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends").stdout;
    String::from_utf8_lossy(&output).split(' ').next().unwrap_or_default().to_owned()
}

/// RFC 3311: the peer moves its media before it answers, and asks for a hold and its end in the call.
#[tokio::test(flavor = "multi_thread")]
async fn media_follow_updates() {
    let (stage, peer) = (Stage::new().await, Peer::scenario("update"));
    let report = call(&stage, &peer, 10_000).await;
    let port = peer.sip.port();
    peer.end();
    assert_eq!(report.ending.reason, EndReason::AgentHangup, "{:?}", report.ending);
    assert_eq!(report.peer.address, Some(format!("127.0.0.1:{}", port + 4)));
    let moment = |name: &str| report.timeline.iter().find(|entry| entry.name() == name).map(|entry| entry.offset_ms());
    let (held, back) = (moment("hold").expect("a hold"), moment("unhold").expect("its end"));
    assert!((500.0..3000.0).contains(&(back - held)), "on hold from {held} to {back} ms");
    assert!(names(&report).contains(&"call.early_media"), "{:?}", names(&report));
    // Audio that went out came back, but for the hold.
    let quality = report.ending.quality;
    assert!(quality.received_packets > 20, "{quality:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_goodbye_that_is_challenged_is_said_again() {
    let (stage, peer) = (Stage::new().await, Peer::scenario("bye_challenged"));
    let report = call(&stage, &peer, 500).await;
    assert_eq!(report.ending.reason, EndReason::MaxDuration, "{:?}", report.ending);
    let log = peer.end();
    assert!(log.contains("known"), "{log}");
    let nonces: Vec<_> = log.lines().filter(|line| line.contains("Digest ")).map(|line| field(line, "nonce")).collect();
    assert_eq!(nonces, ["47ebe028cda119c35d4877b383027d28", "9c1185a5c5e9fc54612808977ee8f548"]);
}

/// Both sides end the call at once, and one ends it while a change of the session is open (RFC 5407 3).
#[tokio::test(flavor = "multi_thread")]
async fn goodbyes_cross_what_they_like() {
    let stage = Stage::new().await;
    let check = async |name: &str, most_ms, reason| {
        let peer = Peer::scenario(name);
        let report = call(&stage, &peer, most_ms).await;
        assert_eq!(report.ending.reason, reason, "{name}: {:?}", report.ending);
        peer.end();
    };
    tokio::join!(
        check("bye_both", 500, EndReason::MaxDuration),
        check("bye_crosses_refresh", 15_000, EndReason::AgentHangup),
    );
}

/// A change of the session and BYE right behind it: both are answered, and the call is over (RFC 5407 3.3.1).
#[tokio::test(flavor = "multi_thread")]
async fn a_goodbye_comes_right_behind_a_change() {
    let (stage, far, media) = (Stage::new().await, Far::at("127.0.0.1").await, Far::at("127.0.0.1").await);
    let script = async {
        let invite = far.request("INVITE").await;
        far.take(&invite, &media).await;
        far.request("ACK").await;
        let bye = bye_of(&invite.0, far.address());
        let body = media.description();
        let fields = format!(
            "Contact: <sip:far@{}>\r\nContent-Type: application/sdp\r\nContent-Length: {}",
            far.address(),
            body.len()
        );
        let change = bye.replace("BYE", "INVITE").replace("Content-Length: 0", &fields) + &body;
        let bye = bye.replace("CSeq: 1 ", "CSeq: 2 ").replace("z9hG4bKfar", "z9hG4bKfarther");
        for request in [&change, &bye] {
            far.0.send_to(request.as_bytes(), invite.1).await.expect("it sends");
        }
        let answers = [far.request("SIP/2.0").await.0, far.request("SIP/2.0").await.0];
        let seen = answers
            .each_ref()
            .map(|answer| (&answer[8..11], answer.contains("CSeq: 1 INVITE"), answer.contains("CSeq: 2 BYE")));
        assert_eq!(seen, [("200", true, false), ("200", false, true)]);
    };
    let placement = stage.placement(&format!("sip:bob@{}", far.address()), "Hello there.");
    let (report, ()) = tokio::join!(stage.call(placement), script);
    assert_eq!(report.expect("it was placed").ending.reason, EndReason::AgentHangup);
}

/// The answer crosses the CANCEL: it is acknowledged, and the call that nobody wants any more is ended.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_behind_a_cancel_is_ended() {
    let (stage, peer) = (Stage::new().await, Peer::scenario("answer_after_cancel"));
    let mut placement = placement(&stage, &peer, 5000);
    placement.spec.limits = Limits { ringing_ms: 500, ..placement.spec.limits };
    let report = stage.call(placement).await.expect("it was placed");
    assert_eq!(report.ending.reason, EndReason::NoAnswer, "{:?}", report.ending);
    assert!(!report.ending.connected);
    peer.end();
}

/// A branch that answers when another one has the call is acknowledged and ended (RFC 3261 13.2.2.4), and the call goes
/// on.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_branch_that_answers_is_ended() {
    let (stage, peer) = (Stage::new().await, Peer::scenario("second_branch"));
    let report = call(&stage, &peer, 1500).await;
    assert_eq!(report.ending.reason, EndReason::MaxDuration, "{:?}", report.ending);
    assert_eq!(report.peer.address, Some(format!("127.0.0.1:{}", peer.sip.port() + 2)));
    assert!((1480..=1700).contains(&(report.ending.samples / 16)), "{} samples", report.ending.samples);
    let log = peer.end();
    assert!(log.contains("the second is over"), "{log}");
}
