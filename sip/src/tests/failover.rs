//! The places of one INVITE, tried one after the other (RFC 3263 4.3).

use super::Scripted;
use crate::message::{Method, Request};
use crate::testing::invite_to;
use crate::useragent::{CallEvent, CallKey, EndKind, Invite};
use crate::{ConnectionId, Hop, Transport};

/// Returns the place at 10.0.0.`host`.
fn place(transport: Transport, host: u8) -> Hop {
    Hop::new(transport, ([10, 0, 0, host], transport.default_port()).into())
}

/// Places a call with TLS, TCP and UDP places at hosts 2, 3 and 4, and returns its first INVITE.
fn calling() -> (Scripted, CallKey, Request) {
    let mut stage = Scripted::speaking_all();
    let invite = Invite {
        destination: place(Transport::Tls, 2),
        alternatives: vec![place(Transport::Tcp, 3), place(Transport::Udp, 4)],
        ..invite_to("sip:bob@b.example", stage.far)
    };
    let key = stage.endpoint.invite(stage.now, invite);
    let sent = stage.request(Method::Invite);
    assert_eq!(stage.last_hop, place(Transport::Tls, 2));
    (stage, key, sent)
}

/// Checks that the next INVITE goes to this place: the same one as before, as a new transaction with the Via and
/// Contact of its transport.
fn goes_on(stage: &mut Scripted, before: &Request, to: &Hop) -> Request {
    let next = stage.request(Method::Invite);
    assert_eq!(&stage.last_hop, to);
    let (via, old) = (next.headers.top_via().unwrap(), before.headers.top_via().unwrap());
    assert_eq!(via.transport, to.transport.name());
    assert_ne!(via.branch(), old.branch());
    for name in ["Call-ID", "From", "To", "CSeq"] {
        assert_eq!(next.headers.get(name), before.headers.get(name), "{name}");
    }
    assert_eq!((&next.uri, &next.body), (&before.uri, &before.body));
    assert_eq!(next.headers.all("Contact").count(), 1);
    next
}

#[test]
fn places_are_tried_in_their_order() {
    // Refused, then 503: the last one has the call.
    let (mut stage, key, first) = calling();
    stage.endpoint.unreachable(stage.now, &place(Transport::Tls, 2));
    let second = goes_on(&mut stage, &first, &place(Transport::Tcp, 3));
    assert_eq!(second.headers.get("Contact"), Some("<sip:alice@10.0.0.1:5070;transport=tcp>"));
    stage.reply(&second, 503, "x", &[("Retry-After", "30")], None);
    stage.request(Method::Ack);
    let third = goes_on(&mut stage, &second, &place(Transport::Udp, 4));
    assert_eq!(third.headers.get("Contact"), Some("<sip:alice@10.0.0.1:5060>"));
    stage.answer(&third, "b");
    stage.request(Method::Ack);
    assert!(matches!(stage.events[..], [CallEvent::Answered { .. }]), "{:?}", stage.events);
    stage.endpoint.hangup(stage.now, key, 16, "x");
    stage.request(Method::Bye);
    assert_eq!(stage.last_hop.transport, Transport::Udp);
}

#[test]
fn a_silent_place_is_left_after_eight_seconds_and_the_last_after_thirty_two() {
    let (mut stage, _, first) = calling();
    stage.wait(7_999);
    stage.quiet();
    stage.wait(1);
    let second = goes_on(&mut stage, &first, &place(Transport::Tcp, 3));
    stage.wait(8_000);
    goes_on(&mut stage, &second, &place(Transport::Udp, 4));
    stage.wait(31_999);
    assert!(stage.events.is_empty() && stage.sent.len() == 6, "repeated as datagrams are: {:?}", stage.sent);
    stage.wait(1);
    assert_eq!((stage.end().kind, stage.end().text.as_str()), (EndKind::Timeout, "No response within 32 s"));
    stage.wait(80_000);
    assert!(stage.endpoint.is_idle());
}

#[test]
fn a_place_that_answers_keeps_the_call() {
    for (code, kind) in [(486, EndKind::Refused), (500, EndKind::Refused), (603, EndKind::Refused)] {
        let (mut stage, _, first) = calling();
        stage.reply(&first, 100, "", &[], None);
        stage.wait(100_000);
        stage.reply(&first, code, "x", &[], None);
        stage.request(Method::Ack);
        stage.quiet();
        assert_eq!((stage.end().kind, stage.end().sip_code), (kind, Some(code)));
    }
}

#[test]
fn a_connection_that_is_closed_makes_the_next_place_be_tried() {
    let (mut stage, _, first) = calling();
    stage.way = Some(Hop { connection: Some(ConnectionId(1)), ..place(Transport::Tls, 2) });
    stage.reply(&first, 180, "x", &[], None);
    stage.events.clear();
    stage.endpoint.connection_lost(stage.now, ConnectionId(1));
    goes_on(&mut stage, &first, &place(Transport::Tcp, 3));
    assert_eq!(stage.events, []);
    stage.endpoint.unreachable(stage.now, &place(Transport::Tcp, 3));
    stage.request(Method::Invite);
    stage.endpoint.unreachable(stage.now, &place(Transport::Udp, 4));
    stage.quiet();
    assert_eq!((stage.end().kind, stage.end().text.as_str()), (EndKind::NotReachable, "Destination unreachable"));
}

#[test]
fn a_place_that_answers_after_it_was_left_is_told_so() {
    let (mut stage, _, first) = calling();
    stage.wait(8_000);
    let second = goes_on(&mut stage, &first, &place(Transport::Tcp, 3));
    let late = Hop { connection: Some(ConnectionId(1)), ..place(Transport::Tls, 2) };
    stage.way = Some(late.clone());
    for repeated in [false, true] {
        stage.answer(&first, "late");
        let ack = stage.request(Method::Ack);
        assert_eq!((ack.headers.to().unwrap().tag(), &stage.last_hop), ("late", &late));
        if !repeated {
            let bye = stage.request(Method::Bye);
            assert_eq!((bye.headers.to().unwrap().tag(), bye.headers.cseq().unwrap().seq), ("late", 2));
            stage.reply(&bye, 200, "", &[], None);
        }
        stage.quiet();
    }
    assert_eq!(stage.events, []);
    stage.way = Some(place(Transport::Tcp, 3));
    stage.answer(&second, "b");
    assert_eq!(stage.request(Method::Ack).headers.to().unwrap().tag(), "b");
    assert!(matches!(stage.events[..], [CallEvent::Answered { .. }]), "{:?}", stage.events);
    // Repeated when its transaction is over: the call goes on.
    stage.wait(33_000);
    stage.answer(&second, "b");
    assert_eq!(stage.request(Method::Ack).headers.to().unwrap().tag(), "b");
    stage.quiet();
}

#[test]
fn one_branch_that_answers_by_two_places_ends_the_call() {
    let (mut stage, _, first) = calling();
    stage.wait(8_000);
    let second = goes_on(&mut stage, &first, &place(Transport::Tcp, 3));
    stage.answer(&first, "b");
    let ack = stage.request(Method::Ack);
    stage.request(Method::Bye);
    stage.answer(&second, "b");
    assert_eq!(stage.request(Method::Ack), ack);
    assert_eq!(stage.end().text, "Answered by way of a place that was left");
}

#[test]
fn the_last_503_is_the_end() {
    let (mut stage, _, first) = calling();
    let mut asked = first;
    for left in [2, 1, 0] {
        stage.reply(&asked, 503, "x", &[("Retry-After", "5")], None);
        stage.request(Method::Ack);
        if left > 0 {
            asked = stage.request(Method::Invite);
        }
    }
    stage.quiet();
    let end = stage.end();
    assert_eq!((end.kind, end.sip_code, end.retry_after), (EndKind::Refused, Some(503), true));
}

#[test]
fn a_call_that_was_given_up_tries_nothing_more() {
    for refused in [true, false] {
        let (mut stage, key, first) = calling();
        stage.endpoint.hangup(stage.now, key, 16, "x");
        if refused {
            stage.endpoint.unreachable(stage.now, &place(Transport::Tls, 2));
        } else {
            stage.reply(&first, 503, "x", &[], None);
            stage.request(Method::Ack);
        }
        stage.wait(100_000);
        stage.quiet();
        assert!(stage.endpoint.is_idle());
    }
}

#[test]
fn credentials_are_given_at_the_place_that_asks_for_them() {
    let mut stage = Scripted::speaking_all();
    let invite = Invite {
        destination: place(Transport::Tcp, 2),
        alternatives: vec![place(Transport::Tcp, 3)],
        username: Some("u".into()),
        password: Some("secret".into()),
        ..invite_to("sip:bob@b.example", stage.far)
    };
    stage.endpoint.invite(stage.now, invite);
    let first = stage.request(Method::Invite);
    stage.way = Some(Hop { connection: Some(ConnectionId(1)), ..place(Transport::Tcp, 2) });
    let challenge = [("WWW-Authenticate", "Digest realm=\"f\", nonce=\"1\", qop=\"auth\"")];
    stage.reply(&first, 401, "x", &challenge, None);
    stage.request(Method::Ack);
    let signed = stage.request(Method::Invite);
    assert!(signed.headers.get("Authorization").is_some());
    assert_eq!(stage.last_hop.connection, Some(ConnectionId(1)), "by the same connection");
    stage.reply(&signed, 503, "x", &[], None);
    stage.request(Method::Ack);
    let next = goes_on(&mut stage, &signed, &place(Transport::Tcp, 3));
    assert_eq!((next.headers.cseq().unwrap().seq, next.headers.all("Authorization").count()), (2, 1));
}

#[test]
fn all_is_over_in_a_bounded_time_however_many_places_there_are() {
    let mut stage = Scripted::speaking_all();
    let alternatives = (3..40).map(|host| place(Transport::Tcp, host)).collect();
    let destination = place(Transport::Tcp, 2);
    let invite = Invite { destination, alternatives, ..invite_to("sip:bob@b.example", stage.far) };
    stage.endpoint.invite(stage.now, invite);
    stage.wait(64_000);
    let tried = stage.sent.len();
    assert_eq!((tried, stage.end().kind), (4, EndKind::Timeout));
    // Places that fail at once are tried until eight are done.
    let (mut stage, mut tried) = (Scripted::speaking_all(), 0);
    let alternatives = (3..40).map(|host| place(Transport::Tcp, host)).collect();
    let destination = place(Transport::Tcp, 2);
    let invite = Invite { destination, alternatives, ..invite_to("sip:bob@b.example", stage.far) };
    stage.endpoint.invite(stage.now, invite);
    stage.pump();
    while !stage.sent.is_empty() {
        stage.request(Method::Invite);
        tried += 1;
        let hop = stage.last_hop.clone();
        stage.endpoint.unreachable(stage.now, &hop);
        stage.pump();
    }
    assert_eq!((tried, stage.end().kind), (8, EndKind::NotReachable));
}
