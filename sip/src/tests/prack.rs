//! Reliable provisional responses (RFC 3262).

use super::{Scripted, answer_to, sdp_body};
use crate::message::{Method, Request};
use crate::sdp::Direction;
use crate::testing::{Pair, Party, offer};
use crate::useragent::{CallEvent, CallKey, EndKind};
use crate::{Endpoint, Time, sdp};

fn tag_of(headers: &crate::message::Headers) -> String {
    headers.to().unwrap().tag().to_owned()
}

/// Receives a reliable provisional response of the other side.
fn rings(stage: &mut Scripted, invite: &Request, code: u16, tag: &str, rseq: u32, sdp: Option<&str>) {
    let rseq = rseq.to_string();
    let headers = [("Require", "100rel"), ("RSeq", rseq.as_str()), ("Contact", "<sip:bob@10.0.0.2>")];
    stage.reply(invite, code, tag, &headers, sdp);
}

fn rack(request: &Request) -> &str {
    request.headers.get("RAck").unwrap()
}

#[test]
fn each_reliable_response_gets_one_prack_in_order() {
    let (mut stage, _, invite) = Scripted::calling(None);
    assert!(invite.headers.list("Supported").contains(&"100rel"));
    rings(&mut stage, &invite, 180, "b", 7, None);
    let first = stage.request(Method::Prack);
    assert_eq!((rack(&first), first.headers.cseq().unwrap().seq), ("7 1 INVITE", 2));
    assert_eq!((tag_of(&first.headers).as_str(), first.uri.as_str()), ("b", "sip:bob@10.0.0.2"));
    // A repetition, and one that came before its turn.
    rings(&mut stage, &invite, 180, "b", 7, None);
    rings(&mut stage, &invite, 183, "b", 9, None);
    stage.quiet();
    rings(&mut stage, &invite, 183, "b", 8, None);
    let second = stage.request(Method::Prack);
    assert_eq!((rack(&second), second.headers.cseq().unwrap().seq), ("8 1 INVITE", 3));
    let seen_events = stage.events.iter().filter(|e| matches!(e, CallEvent::Provisional { .. })).count();
    assert_eq!(seen_events, 2);
    stage.reply(&first, 200, "b", &[], None);
    stage.reply(&second, 200, "b", &[], None);
    stage.answer(&invite, "b");
    let ack = stage.request(Method::Ack);
    assert_eq!(ack.headers.cseq().unwrap().seq, 1);
    stage.wait(40_000);
    stage.quiet();
}

#[test]
fn an_answer_in_a_reliable_response_is_the_answer() {
    let (mut stage, key, invite) = Scripted::calling(None);
    let early = answer_to(&invite);
    rings(&mut stage, &invite, 183, "b", 1, Some(&early));
    let prack = stage.request(Method::Prack);
    assert!(prack.body.is_empty());
    stage.reply(&prack, 200, "b", &[], None);
    // A description in the 200 has no meaning any more.
    stage.reply(&invite, 200, "b", &[], Some(&early.replace("10.0.0.2", "10.0.0.66")));
    stage.request(Method::Ack);
    let Some(CallEvent::Answered { media, tag, .. }) = stage.events.last() else { panic!("{:?}", stage.events) };
    assert_eq!((media.remote_rtp.to_string().as_str(), tag.as_str()), ("10.0.0.2:4000", "b"));
    stage.endpoint.hangup(stage.now, key, 16, "x");
    assert_eq!(stage.request(Method::Bye).headers.cseq().unwrap().seq, 3);
}

#[test]
fn a_prack_is_signed_and_their_number_is_limited() {
    let (mut stage, _, invite) = Scripted::calling(Some(("u", "secret")));
    rings(&mut stage, &invite, 180, "b", 1, None);
    let first = stage.request(Method::Prack);
    stage.reply(&first, 401, "b", &[("WWW-Authenticate", "Digest realm=\"f\", nonce=\"1\", qop=\"auth\"")], None);
    let second = stage.request(Method::Prack);
    assert!(second.headers.get("Authorization").unwrap().contains("nonce=\"1\""));
    assert_eq!((rack(&second), second.headers.cseq().unwrap().seq), ("1 1 INVITE", 3));
    (2..40).for_each(|rseq| rings(&mut stage, &invite, 180, "b", rseq, None));
    stage.pump();
    assert_eq!(stage.sent.len(), 15, "sixteen wait for their answer");
    let last = stage.sent.pop().unwrap();
    let crate::Message::Request(last) = last else { panic!("{last:?}") };
    assert_eq!(rack(&last), "16 1 INVITE");
    stage.sent.clear();
    stage.reply(&last, 200, "b", &[], None);
    rings(&mut stage, &invite, 180, "b", 17, None);
    assert_eq!(rack(&stage.request(Method::Prack)), "17 1 INVITE");
    stage.wait(40_000);
    stage.sent.clear();
    rings(&mut stage, &invite, 180, "b", 18, None);
    assert_eq!(rack(&stage.request(Method::Prack)), "18 1 INVITE", "those that timed out count no more");
}

#[test]
fn a_reliable_answer_to_a_reinvite_is_taken() {
    let (mut stage, key, _) = Scripted::talking();
    assert!(stage.endpoint.reinvite(stage.now, key, offer(1).session().to_string()));
    let asked = stage.request(Method::Invite);
    rings(&mut stage, &asked, 183, "b", 5, Some(&answer_to(&asked)));
    let prack = stage.request(Method::Prack);
    assert_eq!((rack(&prack), prack.headers.cseq().unwrap().seq), ("5 2 INVITE", 3));
    stage.reply(&prack, 200, "b", &[], None);
    stage.reply(&asked, 200, "b", &[], None);
    stage.request(Method::Ack);
    assert!(matches!(stage.events[..], [CallEvent::Reinvited { code: 200, media: Some(_), .. }]), "{:?}", stage.events);
}

// --- as answerer
// --------------------------------------------------------------------------------------------------------

fn answer(stage: &mut Scripted, key: CallKey) {
    let offered = offer(2).session().to_string();
    let own = sdp::negotiate(&offered, &offer(1)).unwrap().0.to_string();
    stage.endpoint.answer(stage.now, key, own);
}

#[test]
fn a_required_response_is_repeated_until_its_prack() {
    let (mut stage, key) = Scripted::taking("Require: 100rel\n", true);
    stage.endpoint.ring(stage.now, key, 180, None);
    let ringing = stage.response(180);
    let rseq: u32 = ringing.headers.get("RSeq").unwrap().parse().unwrap();
    assert_eq!((ringing.headers.list("Require"), (1..1 << 31).contains(&rseq)), (vec!["100rel"], true));
    // T1, doubled each time without an upper limit.
    let mut at = Vec::new();
    for ms in (100..8000).step_by(100) {
        stage.wait(100);
        at.extend(stage.sent.drain(..).map(|_| ms));
    }
    assert_eq!(at, [500, 1500, 3500, 7500]);
    // The next one waits for the PRACK of the one before.
    stage.endpoint.ring(stage.now, key, 183, Some("v=0\r\n".into()));
    stage.quiet();
    let tag = tag_of(&ringing.headers);
    stage.caller_sends("PRACK", 3, &tag, &format!("RAck: {rseq} 1 INVITE\n\n"));
    stage.response(200);
    assert_eq!(stage.events, [CallEvent::RingConfirmed { sdp: None }]);
    let next = stage.response(183);
    assert_eq!(next.headers.get("RSeq"), Some((rseq + 1).to_string().as_str()));
    // The same PRACK again: the same answer.
    stage.caller_sends("PRACK", 3, &tag, &format!("RAck: {rseq} 1 INVITE\n\n"));
    stage.response(200);
    stage.quiet();
    assert_eq!(stage.events.len(), 1);
}

#[test]
fn a_prack_that_fits_nothing_is_refused() {
    let check = |rest: fn(u32) -> String, code: u16| {
        let (mut stage, key) = Scripted::taking("Require: 100rel\n", true);
        stage.endpoint.ring(stage.now, key, 180, None);
        let ringing = stage.response(180);
        let rseq: u32 = ringing.headers.get("RSeq").unwrap().parse().unwrap();
        stage.caller_sends("PRACK", 2, &tag_of(&ringing.headers), &rest(rseq));
        stage.response(code);
    };
    check(|rseq| format!("RAck: {rseq} 1 INVITE\n\n"), 200);
    check(|rseq| format!("RAck: {} 1 INVITE\n\n", rseq + 1), 481);
    check(|rseq| format!("RAck: {rseq} 2 INVITE\n\n"), 481);
    check(|rseq| format!("RAck: {rseq} 1 OPTIONS\n\n"), 481);
    check(|_| "RAck: x\n\n".into(), 481);
    check(|_| "\n".into(), 481);
    check(|rseq| format!("Require: x\nRAck: {rseq} 1 INVITE\n\n"), 420);
}

#[test]
fn a_call_whose_ringing_nobody_confirms_is_refused() {
    let (mut stage, key) = Scripted::taking("Require: 100rel\n", true);
    stage.endpoint.ring(stage.now, key, 180, None);
    stage.wait(31_999);
    stage.sent.clear();
    stage.wait(1);
    stage.response(504);
    assert_eq!((stage.end().kind, stage.end().sip_code), (EndKind::Timeout, Some(504)));
}

#[test]
fn an_answer_waits_for_the_prack_of_a_description() {
    let own = offer(1).session().to_string();
    for described in [true, false] {
        let (mut stage, key) = Scripted::taking("Require: 100rel\n", true);
        stage.endpoint.ring(stage.now, key, 183, described.then(|| own.clone()));
        let ringing = stage.response(183);
        let (rseq, tag) = (ringing.headers.get("RSeq").unwrap().to_owned(), tag_of(&ringing.headers));
        answer(&mut stage, key);
        if !described {
            // Nothing but the PRACK is missing.
            assert!(!stage.response(200).body.is_empty());
        }
        stage.quiet();
        stage.caller_sends("PRACK", 2, &tag, &format!("RAck: {rseq} 1 INVITE\n\n"));
        stage.response(200);
        if described {
            let ok = stage.response(200);
            assert!(ok.body.is_empty(), "the answer went with the 183");
            assert_eq!((ok.headers.cseq().unwrap().method, tag_of(&ok.headers)), (Method::Invite, tag.clone()));
        }
        stage.caller_sends("ACK", 1, &tag, "\n");
        assert_eq!(stage.events.last(), Some(&CallEvent::Confirmed { sdp: None }));
        stage.wait(40_000);
        stage.quiet();
        stage.endpoint.hangup(stage.now, key, 16, "x");
        stage.request(Method::Bye);
    }
}

#[test]
fn a_call_that_does_not_require_it_rings_as_before() {
    let (mut stage, key) = Scripted::taking("Supported: 100rel\n", true);
    stage.endpoint.ring(stage.now, key, 180, None);
    assert_eq!(stage.response(180).headers.get("RSeq"), None);
    stage.wait(60_000);
    stage.quiet();
}

#[test]
fn another_offer_in_a_prack_is_answered() {
    let (mut stage, key) = Scripted::taking("Require: 100rel\n", true);
    let own = sdp::negotiate(&offer(2).session().to_string(), &offer(1)).unwrap().0.to_string();
    stage.endpoint.ring(stage.now, key, 183, Some(own));
    let ringing = stage.response(183);
    let (rseq, tag) = (ringing.headers.get("RSeq").unwrap().to_owned(), tag_of(&ringing.headers));
    let held = crate::sdp::Offer { direction: Direction::SendOnly, ..offer(2) }.session().to_string();
    stage.caller_sends("PRACK", 2, &tag, &format!("RAck: {rseq} 1 INVITE\n{}", sdp_body(&held)));
    let response = stage.response(200);
    assert!(String::from_utf8(response.body).unwrap().contains("a=recvonly"));
    assert!(matches!(
        stage.events[..],
        [CallEvent::Renegotiated { .. }, CallEvent::Hold(true), CallEvent::RingConfirmed { sdp: None }]
    ));
}

#[test]
fn the_queue_of_responses_has_an_end() {
    let (mut stage, key) = Scripted::taking("Require: 100rel\n", true);
    (0..50).for_each(|_| stage.endpoint.ring(stage.now, key, 180, None));
    let mut rung = 0;
    for seq in 2.. {
        if stage.sent.is_empty() {
            stage.pump();
        }
        if stage.sent.is_empty() {
            break;
        }
        let ringing = stage.response(180);
        rung += 1;
        let rseq = ringing.headers.get("RSeq").unwrap().to_owned();
        stage.caller_sends("PRACK", seq, &tag_of(&ringing.headers), &format!("RAck: {rseq} 1 INVITE\n\n"));
        stage.response(200);
    }
    assert_eq!(rung, 9, "one and eight that waited");
}

// --- both
// -----------------------------------------------------------------------------------------------------------------

/// Rings with an answer, and answers when that is confirmed.
fn rings_then_answers(bob: &mut Endpoint, now: Time, call: CallKey, event: &CallEvent) {
    if let CallEvent::Incoming { sdp: Some(sdp), .. } = event {
        let own = sdp::negotiate(sdp, &offer(2)).unwrap().0.to_string();
        bob.ring(now, call, 183, Some(own.clone()));
        bob.ring(now, call, 180, None);
        bob.answer(now, call, own);
    }
}

#[test]
fn reliable_calls_survive_loss_both_ways() {
    for seed in 0..100 {
        let mut pair = Pair::new(seed, rings_then_answers);
        (pair.loss, pair.jitter_ms) = (0.3, 20);
        let call = pair.call_requiring("100rel");
        pair.run(40_000);
        let alice = pair.of(Party::Alice);
        let up = alice.iter().any(|e| matches!(e, CallEvent::Answered { media, .. } if media.codec == "PCMU"));
        // An endpoint that hears no PRACK for 32 s refuses the call, which is rare.
        let refused = alice.iter().any(|e| matches!(e, CallEvent::Ended(end) if end.sip_code == Some(504)));
        assert!(up || refused, "seed {seed}: {alice:?}");
        pair.alice.hangup(pair.now, call, 16, "x");
        pair.loss = 0.0;
        pair.run(100_000);
        assert!(pair.alice.is_idle() && pair.bob.is_idle(), "seed {seed}");
    }
}
