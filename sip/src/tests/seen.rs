//! Calls by the way of a registration, calls through an outbound proxy, and calls of strangers.

use super::Scripted;
use crate::endpoint::MAX_STRANGER_TRANSACTIONS;
use crate::message::Method;
use crate::testing::invite_to;
use crate::{CallEvent, Hop, Time};

#[test]
fn a_contact_is_where_the_other_side_sees_this_one() {
    let hop = |text: &str| Hop::udp(text.parse().unwrap());
    for (registrar, expect) in
        [("10.0.0.2:5080", "<sip:alice@203.0.113.5:40000;ob>"), ("10.0.0.3:5060", "<sip:alice@10.0.0.1:5060>")]
    {
        let (mut stage, key) = Scripted::taking("", true);
        stage.endpoint.appear_as(vec![(hop(registrar), "203.0.113.5:40000".parse().unwrap())]);
        stage.endpoint.ring(stage.now, key, 180, None);
        assert_eq!(stage.response(180).headers.get("Contact"), Some(expect));
        assert_eq!(stage.endpoint.place_of(key), Some(&hop("10.0.0.2:5060")));
    }
    let mut stage = Scripted::new();
    stage.endpoint.appear_as(vec![(hop("10.0.0.2:5060"), "203.0.113.5:40000".parse().unwrap())]);
    stage.endpoint.invite(Time(0), invite_to("sip:bob@b.example", stage.far));
    let contact = stage.request(Method::Invite).headers.get("Contact").unwrap().to_owned();
    assert!(contact.ends_with("@203.0.113.5:40000;ob>"), "{contact}");
}

#[test]
fn a_refusal_to_a_stranger_is_sent_once_for_each_invite() {
    for (is_stranger, expect) in [(true, 1), (false, 11)] {
        let (mut stage, key) = Scripted::taking("", true);
        if is_stranger {
            stage.endpoint.answer_sparingly(key);
        }
        stage.endpoint.reject(stage.now, key, 404, None);
        stage.wait(40_000);
        assert_eq!(stage.sent.len(), expect, "stranger: {is_stranger}");
    }
    // A repeated request is answered again.
    let (mut stage, key) = Scripted::taking("", true);
    stage.endpoint.answer_sparingly(key);
    stage.endpoint.reject(stage.now, key, 404, None);
    stage.response(404);
    stage.caller_sends("INVITE", 1, "", "Content-Length: 0\n\n");
    stage.response(404);
    stage.quiet();
}

#[test]
fn a_redirected_call_leaves_the_proxy_of_its_first_target() {
    let mut stage = Scripted::new();
    let mut invite = invite_to("sip:bob@b.example", stage.far);
    invite.headers.push(("Route".into(), "<sip:10.0.0.2;lr>".into()));
    invite.headers.push(("traceparent".into(), "00-a-b-01".into()));
    let key = stage.endpoint.invite(stage.now, invite);
    let first = stage.request(Method::Invite);
    assert_eq!(first.headers.get("Route"), Some("<sip:10.0.0.2;lr>"));
    assert_eq!(first.headers.get("traceparent"), Some("00-a-b-01"));
    stage.reply(&first, 302, "b", &[("Contact", "<sip:bob@other.example>")], None);
    let ack = stage.request(Method::Ack);
    assert_eq!(ack.headers.get("Route"), Some("<sip:10.0.0.2;lr>"), "the ACK goes where the INVITE went");
    assert!(matches!(stage.events.last(), Some(CallEvent::Redirected { .. })));
    stage.endpoint.take_destinations(stage.now, key, [Hop::udp("10.0.0.9:5060".parse().unwrap())]);
    let second = stage.request(Method::Invite);
    assert_eq!((second.uri.as_str(), second.headers.get("Route")), ("sip:bob@other.example", None));
    assert_eq!(second.headers.get("traceparent"), None, "another host is told no trace");
}

/// A request outside of any dialog, from a place of its own.
fn options(n: usize) -> Vec<u8> {
    let head =
        "OPTIONS sip:a@10.0.0.1 SIP/2.0\r\nMax-Forwards: 70\r\nFrom: <sip:x@y>;tag=1\r\nTo: <sip:a@10.0.0.1>\r\n";
    let own = format!("Via: SIP/2.0/UDP 10.9.9.9;branch=z9hG4bK{n}\r\nCall-ID: {n}\r\nCSeq: 1 OPTIONS\r\n");
    format!("{head}{own}Subject: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(1000)).into_bytes()
}

#[test]
fn strangers_leave_space_for_others() {
    let (mut stage, _, _) = Scripted::talking();
    let (now, far) = (stage.now, Hop::udp("10.9.9.9:5060".parse().unwrap()));
    let before = stage.endpoint.servers.len();
    let send = |stage: &mut Scripted, n: usize, is_stranger: bool| {
        match is_stranger {
            true => stage.endpoint.receive_stranger(now, far.clone(), &options(n)),
            false => stage.endpoint.receive(now, far.clone(), &options(n)),
        }
        std::iter::from_fn(|| stage.endpoint.poll()).count()
    };
    let answers: usize = (0..MAX_STRANGER_TRANSACTIONS + 100).map(|n| send(&mut stage, n, true)).sum();
    assert_eq!(answers, MAX_STRANGER_TRANSACTIONS, "those beyond are dropped, as if lost");
    assert_eq!(send(&mut stage, 1_000_000, false), 1, "somebody who is expected is answered");
    assert_eq!(send(&mut stage, 5, true), 1, "a repeated request is answered again");
    let kept = stage.endpoint.servers.values().map(|server| server.request.headers.iter().count()).max();
    assert_eq!(kept, Some(0), "no request is kept after its answer");
    stage.wait(40_000);
    assert_eq!((stage.endpoint.servers.len(), send(&mut stage, 7, true)), (before, 1), "half a minute later");
}
