//! UPDATE (RFC 3311), before the answer and after it, both ways.

use super::{Scripted, answer_to, sdp_body};
use crate::message::{Headers, Method, Request, Response};
use crate::sdp::{Direction, Offer, Session, negotiate};
use crate::testing::offer;
use crate::useragent::{CallEvent, CallKey};

fn wish(host: u8, direction: Direction) -> String {
    Offer { direction, ..offer(host) }.session().to_string()
}

fn version_of(body: &[u8]) -> u64 {
    Session::parse(std::str::from_utf8(body).unwrap()).unwrap().version
}

fn tag_of(headers: &Headers) -> String {
    headers.to().unwrap().tag().to_owned()
}

/// Returns the seconds of Retry-After.
fn wait_of(response: &Response) -> u32 {
    response.headers.get("Retry-After").unwrap().parse().unwrap()
}

/// Places a call whose other side (tag `b`) completed offer and answer by a reliable 183, with its PRACK answered.
fn early() -> (Scripted, CallKey, Request) {
    let (mut stage, key, invite) = Scripted::calling(None);
    let headers = [("Require", "100rel"), ("RSeq", "1"), ("Contact", "<sip:bob@10.0.0.2>")];
    stage.reply(&invite, 183, "b", &headers, Some(&answer_to(&invite)));
    let prack = stage.request(Method::Prack);
    stage.reply(&prack, 200, "b", &[], None);
    stage.events.clear();
    (stage, key, invite)
}

/// Receives a call that completed offer and answer by a reliable 183 and its PRACK; returns the tag of this side.
fn early_from_far() -> (Scripted, CallKey, String) {
    let (mut stage, key) = Scripted::taking("Require: 100rel\n", true);
    let own = negotiate(&offer(2).session().to_string(), &offer(1)).unwrap().0.to_string();
    stage.endpoint.ring(stage.now, key, 183, Some(own));
    let ringing = stage.response(183);
    let tag = tag_of(&ringing.headers);
    let rseq = ringing.headers.get("RSeq").unwrap().to_owned();
    stage.caller_sends("PRACK", 2, &tag, &format!("RAck: {rseq} 1 INVITE\n\n"));
    stage.response(200);
    stage.events.clear();
    (stage, key, tag)
}

#[test]
fn a_caller_changes_an_early_session() {
    let (mut stage, key, invite) = early();
    assert!(stage.endpoint.update(stage.now, key, Some(wish(1, Direction::SendOnly))));
    let asked = stage.request(Method::Update);
    assert_eq!((asked.headers.cseq().unwrap().seq, asked.uri.as_str()), (3, "sip:bob@10.0.0.2"));
    assert!(asked.headers.get("Contact").is_some());
    assert_eq!(version_of(&asked.body), 2);
    assert!(!stage.endpoint.update(stage.now, key, None), "one at a time");
    let moved = answer_to(&asked).replace("4000", "6000");
    stage.reply(&asked, 200, "b", &[], Some(&moved));
    let [CallEvent::Updated { code: 200, media: Some(media), .. }] = &stage.events[..] else {
        panic!("{:?}", stage.events)
    };
    assert_eq!((media.direction, media.remote_rtp.port()), (Direction::SendOnly, 6000));
    // The call begins with the session that the UPDATE made.
    stage.reply(&invite, 200, "b", &[], None);
    stage.request(Method::Ack);
    let Some(CallEvent::Answered { media, .. }) = stage.events.last() else { panic!("{:?}", stage.events) };
    assert_eq!((media.direction, media.remote_rtp.port()), (Direction::SendOnly, 6000));
}

#[test]
fn an_early_update_needs_what_it_changes() {
    let (mut stage, key, invite) = Scripted::calling(None);
    assert!(!stage.endpoint.update(stage.now, key, None), "no dialog yet");
    stage.reply(&invite, 180, "b", &[], None);
    assert!(!stage.endpoint.update(stage.now, key, Some(wish(1, Direction::SendRecv))), "the offer has no answer");
    assert!(stage.endpoint.update(stage.now, key, None));
    let asked = stage.request(Method::Update);
    assert!(asked.body.is_empty());
    stage.reply(&asked, 200, "b", &[], None);
    assert_eq!(stage.events.last(), Some(&CallEvent::Updated { code: 200, sdp: None, media: None }));
    let (mut stage, key) = Scripted::taking("", true);
    stage.endpoint.ring(stage.now, key, 180, None);
    stage.response(180);
    assert!(!stage.endpoint.update(stage.now, key, None), "the caller may not know the dialog");
    assert!(!stage.endpoint.update(stage.now, CallKey(99), None));
    stage.quiet();
}

#[test]
fn an_early_update_of_the_far_side_is_answered() {
    let (mut stage, _, invite) = early();
    stage.in_dialog(&invite, "UPDATE", 1, &sdp_body(&wish(2, Direction::SendOnly)));
    let response = stage.response(200);
    assert!(String::from_utf8(response.body.clone()).unwrap().contains("a=recvonly"));
    assert_eq!((version_of(&response.body), response.headers.get("Contact").is_some()), (2, true));
    assert!(matches!(stage.events[..], [CallEvent::Renegotiated { .. }, CallEvent::Hold(true)]), "{:?}", stage.events);
    stage.in_dialog(&invite, "UPDATE", 2, "\n");
    assert!(stage.response(200).body.is_empty());
    stage.reply(&invite, 200, "b", &[], None);
    stage.request(Method::Ack);
    let Some(CallEvent::Answered { media, .. }) = stage.events.last() else { panic!("{:?}", stage.events) };
    assert_eq!((media.direction, media.on_hold), (Direction::RecvOnly, true));

    // The offer of the INVITE has no answer yet: glare.
    let (mut stage, _, invite) = Scripted::calling(None);
    stage.reply(&invite, 180, "b", &[], None);
    stage.in_dialog(&invite, "UPDATE", 1, &sdp_body(&wish(2, Direction::SendRecv)));
    stage.response(491);
    stage.in_dialog(&invite, "UPDATE", 2, "\n");
    stage.response(200);
}

#[test]
fn an_answerer_takes_and_sends_early_updates() {
    let (mut stage, key, tag) = early_from_far();
    stage.caller_sends("UPDATE", 3, &tag, &sdp_body(&wish(2, Direction::Inactive)));
    let response = stage.response(200);
    assert!(String::from_utf8(response.body).unwrap().contains("a=inactive"));
    assert!(matches!(stage.events[..], [CallEvent::Renegotiated { .. }, CallEvent::Hold(true)]), "{:?}", stage.events);
    stage.events.clear();
    assert!(stage.endpoint.update(stage.now, key, Some(wish(1, Direction::SendRecv))));
    let asked = stage.request(Method::Update);
    // An UPDATE that crosses it.
    stage.caller_sends("UPDATE", 4, &tag, &sdp_body(&wish(2, Direction::SendRecv)));
    stage.response(491);
    stage.reply(&asked, 200, &tag, &[], Some(&answer_to(&asked)));
    assert!(
        matches!(stage.events[..], [CallEvent::Updated { code: 200, media: Some(_), .. }, CallEvent::Hold(false)]),
        "{:?}",
        stage.events
    );
    stage.endpoint.answer(stage.now, key, wish(1, Direction::SendRecv));
    let ok = stage.response(200);
    assert!(ok.body.is_empty(), "the session is described");
    stage.caller_sends("ACK", 1, &tag, "\n");
    assert_eq!(stage.events.last(), Some(&CallEvent::Confirmed { sdp: None }));
}

#[test]
fn an_offer_that_waits_for_its_answer_defers_an_update() {
    let offered = sdp_body(&wish(2, Direction::SendRecv));
    for (headers, sdp) in [("Require: 100rel\n", true), ("Require: 100rel\n", false), ("", true)] {
        let (mut stage, key) = Scripted::taking(headers, true);
        let own = negotiate(&offer(2).session().to_string(), &offer(1)).unwrap().0.to_string();
        stage.endpoint.ring(stage.now, key, 183, sdp.then_some(own));
        let tag = tag_of(&stage.response(183).headers);
        stage.caller_sends("UPDATE", 2, &tag, &offered);
        let refusal = stage.response(500);
        assert!(wait_of(&refusal) <= 10);
        stage.caller_sends("UPDATE", 3, &tag, "\n");
        stage.response(200);
    }
    // This side's offer has no answer: glare.
    let (mut stage, key) = Scripted::taking("Require: 100rel\n", false);
    stage.endpoint.ring(stage.now, key, 183, Some(wish(1, Direction::SendRecv)));
    let tag = tag_of(&stage.response(183).headers);
    stage.caller_sends("UPDATE", 2, &tag, &offered);
    stage.response(491);
}

#[test]
fn a_session_in_use_is_changed_by_update() {
    let (mut stage, key, invite) = Scripted::talking();
    assert!(stage.endpoint.update(stage.now, key, Some(wish(1, Direction::SendOnly))));
    let asked = stage.request(Method::Update);
    assert_eq!((asked.headers.cseq().unwrap().seq, version_of(&asked.body)), (2, 2));
    // While an offer is open, another offer is refused, and an UPDATE without one is not.
    stage.in_dialog(&invite, "UPDATE", 1, &sdp_body(&wish(2, Direction::SendRecv)));
    stage.response(491);
    stage.in_dialog(&invite, "UPDATE", 2, "\n");
    stage.response(200);
    stage.in_dialog(&invite, "INVITE", 3, &sdp_body(&wish(2, Direction::SendRecv)));
    stage.response(491);
    stage.acknowledges_failure(&invite, 3);
    assert_eq!(stage.events.drain(..).collect::<Vec<_>>(), [CallEvent::Unchanged { code: 200, why: None }]);
    stage.reply(&asked, 200, "b", &[], Some(&answer_to(&asked)));
    assert!(matches!(&stage.events[..], [CallEvent::Updated { code: 200, media: Some(media), .. }]
        if media.direction == Direction::SendOnly));
    stage.quiet();
    // Without an offer, and with one that is refused: all stays as it was.
    for (sdp, code) in [(None, 200), (Some(wish(1, Direction::SendRecv)), 488), (None, 503)] {
        stage.events.clear();
        assert!(stage.endpoint.update(stage.now, key, sdp));
        let asked = stage.request(Method::Update);
        stage.reply(&asked, code, "b", &[], None);
        assert_eq!(stage.events, [CallEvent::Updated { code, sdp: None, media: None }]);
    }
    stage.endpoint.hangup(stage.now, key, 16, "x");
    stage.request(Method::Bye);
}

#[test]
fn glare_and_retry_after_are_waited_for() {
    let (mut stage, key, _) = Scripted::talking();
    assert!(stage.endpoint.update(stage.now, key, Some(wish(1, Direction::SendRecv))));
    let first = stage.request(Method::Update);
    stage.reply(&first, 491, "b", &[], None);
    // The side that made the Call-ID waits 2.1 to 4 s (RFC 3261 14.1).
    stage.wait(2_099);
    stage.quiet();
    while stage.sent.is_empty() {
        stage.wait(10);
    }
    let second = stage.request(Method::Update);
    assert_eq!(second.headers.cseq().unwrap().seq, 3);
    assert!(version_of(&second.body) > version_of(&first.body));
    stage.reply(&second, 500, "b", &[("Retry-After", "7")], None);
    stage.wait(6_999);
    stage.quiet();
    stage.wait(1);
    let third = stage.request(Method::Update);
    stage.reply(&third, 200, "b", &[], Some(&answer_to(&third)));
    assert!(matches!(stage.events[..], [CallEvent::Updated { code: 200, media: Some(_), .. }]), "{:?}", stage.events);
}

#[test]
fn an_update_nobody_answers_ends_the_call() {
    let (mut stage, key, _) = Scripted::talking();
    assert!(stage.endpoint.update(stage.now, key, None));
    stage.request(Method::Update);
    stage.wait(32_000);
    assert_eq!(stage.events[0], CallEvent::Updated { code: 408, sdp: None, media: None });
    assert_eq!(stage.end().kind, crate::EndKind::DialogLost);
    // Before the answer it does not.
    let (mut stage, key, invite) = early();
    assert!(stage.endpoint.update(stage.now, key, None));
    stage.request(Method::Update);
    stage.wait(32_000);
    stage.sent.clear();
    assert_eq!(stage.events, [CallEvent::Updated { code: 408, sdp: None, media: None }]);
    stage.reply(&invite, 200, "b", &[], None);
    stage.request(Method::Ack);
    assert!(matches!(stage.events.last(), Some(CallEvent::Answered { .. })));
}
