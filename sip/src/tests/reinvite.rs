//! Changes of the session that this side asks for.

use super::Scripted;
use super::calls::{answers, bobs_call};
use crate::message::{Method, Request};
use crate::sdp::{Direction, Offer, Session, negotiate};
use crate::testing::{Pair, Party, offer};
use crate::useragent::{CallEvent, CallKey, EndKind};
use crate::{Endpoint, Time};

fn wish(host: u8, direction: Direction) -> String {
    Offer { direction, ..offer(host) }.session().to_string()
}

/// Returns the codes of `Reinvited` at one party, with the hold that each left.
fn outcomes(pair: &Pair, party: Party) -> Vec<(u16, Option<Direction>)> {
    let reinvited = |event: &&CallEvent| match event {
        CallEvent::Reinvited { code, media, .. } => Some((*code, media.as_ref().map(|media| media.direction))),
        _ => None,
    };
    pair.of(party).iter().filter_map(reinvited).collect()
}

fn sdp_of(request: &Request) -> Session {
    Session::parse(std::str::from_utf8(&request.body).unwrap()).unwrap()
}

fn reinvite(stage: &mut Scripted, key: CallKey) -> Request {
    assert!(stage.endpoint.reinvite(stage.now, key, wish(1, Direction::SendOnly)));
    stage.request(Method::Invite)
}

fn answer(invite: &Request) -> String {
    negotiate(std::str::from_utf8(&invite.body).unwrap(), &offer(2)).unwrap().0.to_string()
}

#[test]
fn an_answer_is_acknowledged_and_holds_from_then_on() {
    let (mut stage, key, invite) = Scripted::talking();
    let again = reinvite(&mut stage, key);
    assert_eq!(again.headers.to().unwrap().tag(), "b");
    assert_eq!(again.headers.cseq().unwrap().seq, 2);
    assert_eq!((again.uri.as_str(), again.headers.get("Contact").is_some()), ("sip:bob@10.0.0.2", true));
    assert_eq!((sdp_of(&again).id, sdp_of(&again).version), (sdp_of(&invite).id, 2));
    stage.wait(500);
    assert_eq!(stage.request(Method::Invite), again, "timer A");
    stage.reply(&again, 100, "", &[], None);
    stage.wait(20_000);
    stage.quiet();
    let contact = [("Contact", "<sip:moved@10.0.0.3>")];
    stage.reply(&again, 200, "b", &contact, Some(&answer(&again)));
    let ack = stage.request(Method::Ack);
    assert_eq!((ack.headers.cseq().unwrap().seq, ack.uri.as_str()), (2, "sip:moved@10.0.0.3"));
    assert_ne!(ack.headers.top_via(), again.headers.top_via());
    let [CallEvent::Reinvited { code: 200, sdp: Some(_), media: Some(media) }] = &stage.events[..] else {
        panic!("{:?}", stage.events)
    };
    assert_eq!(media.direction, Direction::SendOnly);
    // A repetition has the same ACK, also after the transaction is over; the first answer has its own.
    stage.reply(&again, 200, "b", &contact, Some(&answer(&again)));
    assert_eq!(stage.request(Method::Ack), ack);
    stage.wait(40_000);
    stage.reply(&again, 200, "b", &contact, Some(&answer(&again)));
    assert_eq!(stage.request(Method::Ack), ack);
    stage.answer(&invite, "b");
    assert_eq!(stage.request(Method::Ack).headers.cseq().unwrap().seq, 1);
    // The next offer of the other side is answered with the direction that this side wants now.
    let theirs = wish(2, Direction::SendRecv).replace("\r\n", "\n");
    stage.in_dialog(&invite, "UPDATE", 1, &format!("Content-Type: application/sdp\n\n{theirs}"));
    let response = stage.response(200);
    let session = Session::parse(std::str::from_utf8(&response.body).unwrap()).unwrap();
    assert!(session.media[0].attributes.iter().any(|a| a.name == "sendonly"), "{session}");
    assert_eq!(session.version, 3);
    stage.quiet();
}

#[test]
fn an_answer_that_puts_on_hold_says_so() {
    let (mut stage, key, _) = Scripted::talking();
    let asked = reinvite(&mut stage, key);
    let held = answer(&asked).replace("recvonly", "inactive");
    stage.reply(&asked, 200, "b", &[], Some(&held));
    assert!(matches!(stage.events[..], [CallEvent::Reinvited { .. }, CallEvent::Hold(true)]), "{:?}", stage.events);
}

#[test]
fn either_side_may_ask_whatever_is_lost() {
    for (seed, party) in (0..60).map(|seed| (seed, if seed % 2 == 0 { Party::Alice } else { Party::Bob })) {
        let mut pair = Pair::new(seed, answers);
        let alices = pair.call();
        pair.run(1000);
        let bobs = bobs_call(&pair);
        (pair.loss, pair.jitter_ms) = (0.3, 20);
        let now = pair.now;
        let (host, key) = if party == Party::Alice { (1, alices) } else { (2, bobs) };
        let side = if party == Party::Alice { &mut pair.alice } else { &mut pair.bob };
        assert!(side.reinvite(now, key, wish(host, Direction::SendOnly)));
        assert!(!side.reinvite(now, key, wish(host, Direction::SendRecv)), "one at a time");
        pair.run(31_000);
        assert_eq!(outcomes(&pair, party), [(200, Some(Direction::SendOnly))], "seed {seed} {party:?}");
        let other = if party == Party::Alice { Party::Bob } else { Party::Alice };
        let renegotiated = |e: &&&CallEvent| matches!(e, CallEvent::Renegotiated { .. });
        assert_eq!(pair.of(other).iter().filter(renegotiated).count(), 1, "seed {seed}");
        pair.loss = 0.0;
        pair.alice.hangup(pair.now, alices, 16, "x");
        pair.run(100_000);
        assert!(pair.alice.is_idle() && pair.bob.is_idle(), "seed {seed}");
    }
}

#[test]
fn two_that_ask_at_once_ask_again_at_different_times() {
    for seed in 0..20 {
        let mut pair = Pair::new(seed, answers);
        let alices = pair.call();
        pair.run(1000);
        let bobs = bobs_call(&pair);
        pair.sent.clear();
        assert!(pair.alice.reinvite(pair.now, alices, wish(1, Direction::SendRecv)));
        assert!(pair.bob.reinvite(pair.now, bobs, wish(2, Direction::SendRecv)));
        pair.run(20_000);
        for (party, earliest, latest) in [(Party::Alice, 2100, 4000), (Party::Bob, 0, 2000)] {
            assert_eq!(outcomes(&pair, party), [(200, Some(Direction::SendRecv))], "seed {seed}");
            let sent = pair.sent.iter().filter(|(_, p, line)| *p == party && line.starts_with("INVITE"));
            let at: Vec<u64> = sent.map(|(at, _, _)| at.0 / 1_000_000).collect();
            // The refusal comes 20 ms after the request.
            let waited = at[1] - at[0] - 20;
            assert!((earliest..=latest).contains(&waited) && waited.is_multiple_of(10), "{party:?} {waited}");
            assert_eq!((at.len(), pair.count(party, "SIP/2.0 491")), (2, 1));
        }
    }
}

#[test]
fn a_refusal_leaves_the_session_as_it_was() {
    let (mut stage, key, invite) = Scripted::talking();
    let again = reinvite(&mut stage, key);
    stage.reply(&again, 488, "b", &[], None);
    let ack = stage.request(Method::Ack);
    assert_eq!(ack.headers.top_via(), again.headers.top_via());
    assert_eq!(stage.events, [CallEvent::Reinvited { code: 488, sdp: None, media: None }]);
    let theirs = wish(2, Direction::SendRecv).replace("\r\n", "\n");
    stage.in_dialog(&invite, "UPDATE", 1, &format!("Content-Type: application/sdp\n\n{theirs}"));
    let response = stage.response(200);
    let session = Session::parse(std::str::from_utf8(&response.body).unwrap()).unwrap();
    assert!(session.media[0].attributes.iter().any(|a| a.name == "sendrecv"), "{session}");
    stage.wait(60_000);
    stage.quiet();
}

#[test]
fn a_dialog_that_the_far_side_lost_ends() {
    let check = |code: Option<u16>, by_remote: bool| {
        let (mut stage, key, _) = Scripted::talking();
        let again = reinvite(&mut stage, key);
        match code {
            Some(code) => {
                stage.reply(&again, code, "b", &[], None);
                stage.request(Method::Ack);
            }
            None => {
                stage.wait(32_000);
                (0..6).for_each(|_| assert_eq!(stage.request(Method::Invite), again));
            }
        }
        stage.request(Method::Bye);
        let end = stage.end();
        assert_eq!((end.kind, end.sip_code, end.by_remote), (EndKind::DialogLost, code.or(Some(408)), by_remote));
        assert!(
            matches!(stage.events[0], CallEvent::Reinvited { code: reported, .. } if Some(reported) == end.sip_code)
        );
    };
    check(Some(481), true);
    check(Some(408), false);
    check(None, false);
}

#[test]
fn a_challenge_is_answered_once() {
    let (mut stage, key, invite) = Scripted::calling(Some(("u", "secret")));
    stage.answer(&invite, "b");
    stage.request(Method::Ack);
    stage.events.clear();
    let first = reinvite(&mut stage, key);
    stage.reply(&first, 407, "b", &[("Proxy-Authenticate", "Digest realm=\"p\", nonce=\"1\", qop=\"auth\"")], None);
    stage.request(Method::Ack);
    let second = stage.request(Method::Invite);
    assert_eq!((second.headers.cseq().unwrap().seq, &second.body), (3, &first.body));
    stage.reply(&second, 200, "b", &[], Some(&answer(&second)));
    let ack = stage.request(Method::Ack);
    assert_eq!(ack.headers.get("Proxy-Authorization"), second.headers.get("Proxy-Authorization"));
    assert!(matches!(stage.events[0], CallEvent::Reinvited { code: 200, .. }));
    stage.events.clear();

    let third = reinvite(&mut stage, key);
    assert!(third.headers.get("Proxy-Authorization").unwrap().contains("nc=00000002"));
    stage.reply(&third, 407, "b", &[("Proxy-Authenticate", "Digest realm=\"p\", nonce=\"1\", qop=\"auth\"")], None);
    stage.request(Method::Ack);
    stage.quiet();
    assert_eq!(stage.events, [CallEvent::Reinvited { code: 407, sdp: None, media: None }]);
}

#[test]
fn it_waits_for_an_acknowledgement_and_for_retry_after() {
    let (mut stage, key, invite) = Scripted::talking();
    let theirs = wish(2, Direction::SendRecv).replace("\r\n", "\n");
    stage.in_dialog(&invite, "INVITE", 1, &format!("Content-Type: application/sdp\n\n{theirs}"));
    stage.response(200);
    assert!(stage.endpoint.reinvite(stage.now, key, wish(1, Direction::SendRecv)));
    stage.quiet();
    stage.in_dialog(&invite, "ACK", 1, "\n");
    let first = stage.request(Method::Invite);
    assert_eq!(sdp_of(&first).version, 3, "after the answer in between");
    stage.in_dialog(&invite, "INVITE", 2, &format!("Content-Type: application/sdp\n\n{theirs}"));
    stage.response(491);
    stage.acknowledges_failure(&invite, 2);
    stage.reply(&first, 500, "b", &[("Retry-After", "3 (busy)")], None);
    stage.request(Method::Ack);
    stage.wait(2999);
    stage.quiet();
    stage.wait(1);
    let second = stage.request(Method::Invite);
    stage.reply(&second, 500, "b", &[], None);
    stage.request(Method::Ack);
    assert_eq!(stage.events.last(), Some(&CallEvent::Reinvited { code: 500, sdp: None, media: None }));
}

#[test]
fn glare_without_end_is_given_up() {
    let (mut stage, key, _) = Scripted::talking();
    let mut asked = reinvite(&mut stage, key);
    for _ in 0..8 {
        stage.reply(&asked, 491, "b", &[], None);
        stage.request(Method::Ack);
        while stage.sent.is_empty() {
            stage.wait(10);
        }
        asked = stage.request(Method::Invite);
    }
    stage.reply(&asked, 491, "b", &[], None);
    stage.request(Method::Ack);
    assert_eq!(stage.events, [CallEvent::Reinvited { code: 491, sdp: None, media: None }]);
    stage.wait(60_000);
    stage.quiet();
}

#[test]
fn one_that_stays_without_an_answer_is_cancelled() {
    let (mut stage, key, _) = Scripted::talking();
    let asked = reinvite(&mut stage, key);
    stage.reply(&asked, 100, "", &[], None);
    stage.wait(179_999);
    stage.quiet();
    stage.wait(1);
    let cancel = stage.request(Method::Cancel);
    assert_eq!(cancel.headers.top_via(), asked.headers.top_via());
    stage.reply(&cancel, 200, "b", &[], None);
    stage.reply(&asked, 487, "b", &[], None);
    stage.request(Method::Ack);
    assert_eq!(stage.events, [CallEvent::Reinvited { code: 487, sdp: None, media: None }]);
}

#[test]
fn the_end_of_the_call_leaves_nothing_behind() {
    let (mut stage, key, _) = Scripted::talking();
    let asked = reinvite(&mut stage, key);
    stage.reply(&asked, 100, "", &[], None);
    stage.endpoint.hangup(stage.now, key, 16, "x");
    let bye = stage.request(Method::Bye);
    stage.reply(&bye, 200, "b", &[], None);
    // The answer that crossed the BYE is acknowledged and changes nothing.
    stage.reply(&asked, 200, "b", &[], Some(&answer(&asked)));
    stage.request(Method::Ack);
    assert!(matches!(stage.events[..], [CallEvent::Ended(_)]), "{:?}", stage.events);
    stage.wait(80_000);
    assert!(stage.endpoint.is_idle());

    let (mut stage, key, _) = Scripted::talking();
    let asked = reinvite(&mut stage, key);
    stage.reply(&asked, 100, "", &[], None);
    stage.endpoint.hangup(stage.now, key, 16, "x");
    stage.wait(80_000);
    assert!(stage.endpoint.is_idle(), "also when it never gets an answer");
}

#[test]
fn an_answer_that_cannot_be_used_ends_the_call() {
    let (mut stage, key, _) = Scripted::talking();
    let asked = reinvite(&mut stage, key);
    stage.reply(&asked, 200, "b", &[], Some("v=0\r\no=- 1 1 IN IP4 h\r\ns=-\r\nt=0 0\r\nm=audio 0 RTP/AVP 0\r\n"));
    stage.request(Method::Ack);
    stage.request(Method::Bye);
    assert_eq!((stage.end().kind, stage.end().q850_cause), (EndKind::NoMedia, Some(88)));

    let (mut stage, key, _) = Scripted::talking();
    let asked = reinvite(&mut stage, key);
    stage.reply(&asked, 200, "b", &[], None);
    stage.request(Method::Ack);
    stage.quiet();
    assert_eq!(stage.events, [CallEvent::Reinvited { code: 200, sdp: None, media: None }]);
}

#[test]
fn only_a_call_that_is_up_can_be_changed() {
    let (mut stage, key, _) = Scripted::calling(None);
    assert!(!stage.endpoint.reinvite(stage.now, key, wish(1, Direction::SendRecv)));
    assert!(!stage.endpoint.reinvite(stage.now, CallKey(99), wish(1, Direction::SendRecv)));
    let (mut stage, key, _) = Scripted::talking();
    assert!(!stage.endpoint.reinvite(stage.now, key, "nonsense".into()));
    stage.quiet();
    let silent: fn(&mut Endpoint, Time, CallKey, &CallEvent) = |_, _, _, _| {};
    let mut pair = Pair::new(1, silent);
    pair.call();
    pair.run(100);
    let key = bobs_call(&pair);
    assert!(!pair.bob.reinvite(pair.now, key, wish(2, Direction::SendRecv)));
}
