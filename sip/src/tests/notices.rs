//! Facts that change nothing of a call, and are told.

use super::Scripted;
use super::calls::answers;
use crate::message::Method;
use crate::testing::{Pair, Party, invite_to};
use crate::useragent::{CallEvent, Invite};
use crate::{Hop, Notice, Transport};

#[test]
fn an_invite_too_large_for_a_datagram_is_told_once() {
    for (padding, is_told) in [(0, false), (3_000, true)] {
        let mut stage = Scripted::new();
        let mut invite = invite_to("sip:bob@b.example", stage.far);
        invite.headers.push(("X-Padding".into(), "x".repeat(padding)));
        stage.endpoint.invite(stage.now, invite);
        let invite = stage.request(Method::Invite);
        let bytes = invite.to_bytes().len();
        stage.wait(3_000);
        stage.reply(&invite, 401, "b", &[("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\"")], None);
        let expect = is_told.then_some(Notice::Oversized { bytes, tcp_failed: false });
        assert_eq!(stage.notices, Vec::from_iter(expect));
    }
    // Where TCP is spoken the request goes by it, and by datagram only where nobody listens.
    for refused in [false, true] {
        let mut pair = Pair::over(7, Transport::Udp, answers);
        pair.refused = if refused { vec![Transport::Tcp] } else { Vec::new() };
        let mut invite = pair.invite();
        invite.headers.push(("X-Padding".into(), "x".repeat(2_000)));
        pair.alice.invite(pair.now, invite);
        pair.run(1_000);
        let is_oversized = |(party, notice): &(Party, Notice)| {
            *party == Party::Alice && matches!(notice, Notice::Oversized { bytes: 2_000.., tcp_failed: true })
        };
        assert_eq!(pair.notices.iter().filter(|told_by| is_oversized(told_by)).count(), usize::from(refused));
        assert_eq!(pair.notices.len(), usize::from(refused), "{:?}", pair.notices);
    }
}

#[test]
fn places_that_are_left_are_told_with_their_reason() {
    let hop = |host: u8| Hop::udp(([10, 0, 0, host], 5060).into());
    let mut stage = Scripted::new();
    let invite =
        Invite { destination: hop(2), alternatives: vec![hop(3), hop(4)], ..invite_to("sip:bob@b.example", stage.far) };
    let key = stage.endpoint.invite(stage.now, invite);
    let first = stage.request(Method::Invite);
    stage.reply(&first, 503, "x", &[], None);
    stage.request(Method::Ack);
    stage.request(Method::Invite);
    stage.endpoint.unreachable(stage.now, &hop(3));
    let third = stage.request(Method::Invite);
    stage.reply(&third, 302, "x", &[("Contact", "<sip:bob@10.0.0.5>")], None);
    stage.request(Method::Ack);
    let left = |host, code, text: &str| Notice::PlaceLeft { to: hop(host), code, text: text.to_owned() };
    let expect = [
        left(2, Some(503), "Service Unavailable"),
        left(3, None, "Destination unreachable"),
        left(4, Some(302), "Moved Temporarily"),
    ];
    assert_eq!(stage.notices, expect[..2], "a redirect that is not followed is the end of the call");
    stage.endpoint.take_destinations(stage.now, key, [hop(5)]);
    stage.request(Method::Invite);
    assert_eq!(stage.notices, expect);
    // The last place is the end of the call itself.
    let (mut stage, _, invite) = Scripted::calling(None);
    stage.reply(&invite, 503, "x", &[], None);
    assert_eq!((stage.end().sip_code, stage.notices.len()), (Some(503), 0));
}

#[test]
fn an_answer_that_is_repeated_is_told_once() {
    let (mut stage, key, invite) = Scripted::talking();
    for repeated in 1..=4 {
        stage.answer(&invite, "b");
        stage.request(Method::Ack);
        let expect = (repeated > 1).then(|| Notice::AnswerRepeated { to: stage.last_hop.clone() });
        assert_eq!(stage.notices, Vec::from_iter(expect), "{repeated}");
    }
    assert!(!stage.events.iter().any(|event| matches!(event, CallEvent::Ended(_))));
    // Nothing follows the end of a call.
    let (mut over, other, invite) = Scripted::talking();
    over.endpoint.hangup(over.now, other, 16, "x");
    over.request(Method::Bye);
    for _ in 0..3 {
        over.answer(&invite, "b");
        over.request(Method::Ack);
    }
    assert_eq!(over.notices, []);
    stage.endpoint.hangup(stage.now, key, 16, "x");
}
