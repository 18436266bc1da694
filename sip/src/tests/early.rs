//! Before the answer: INVITE without an offer, both ways, and the early dialogs of a forking proxy (RFC 3261 12.1,
//! 13.2.2.4).

use super::{Scripted, answer_to, sdp_body};
use crate::message::{Headers, Method, Request};
use crate::sdp::{self, Direction, Offer, Session};
use crate::testing::{Pair, Party, invite_to, offer};
use crate::useragent::{CallEvent, CallKey, EndKind, Invite};
use crate::{Endpoint, Time};

fn far_offer(port: u16) -> String {
    offer(2).session().to_string().replace("m=audio 4000", &format!("m=audio {port}"))
}

fn own_answer(offered: &str) -> String {
    sdp::negotiate(offered, &offer(1)).unwrap().0.to_string()
}

fn text(body: &[u8]) -> &str {
    std::str::from_utf8(body).unwrap()
}

fn tag_of(headers: &Headers) -> String {
    headers.to().unwrap().tag().to_owned()
}

/// Places a call that leaves the offer to the other side, and returns its INVITE.
fn asking() -> (Scripted, CallKey, Request) {
    let mut stage = Scripted::new();
    let key =
        stage.endpoint.invite(stage.now, Invite { sdp: String::new(), ..invite_to("sip:bob@b.example", stage.far) });
    let invite = stage.request(Method::Invite);
    assert!(invite.body.is_empty() && invite.headers.get("Content-Type").is_none());
    (stage, key, invite)
}

#[test]
fn the_offer_of_a_200_is_answered_in_the_ack() {
    let (mut stage, key, invite) = asking();
    assert!(!stage.endpoint.answer_offer(stage.now, key, own_answer(&far_offer(6000))), "nothing was offered");
    let headers = [("Contact", "<sip:bob@10.0.0.2>")];
    stage.reply(&invite, 200, "b", &headers, Some(&far_offer(6000)));
    let offered = CallEvent::Offered { code: 200, sdp: far_offer(6000), tag: "b".into() };
    assert_eq!(stage.events, [offered]);
    // The 200 again: its ACK waits for the answer.
    stage.reply(&invite, 200, "b", &headers, Some(&far_offer(6000)));
    stage.quiet();
    assert!(!stage.endpoint.answer_offer(stage.now, key, "nonsense".into()));
    let answer = own_answer(&far_offer(6000));
    assert!(stage.endpoint.answer_offer(stage.now, key, answer.clone()));
    let ack = stage.request(Method::Ack);
    assert_eq!((text(&ack.body), ack.headers.cseq().unwrap().seq), (answer.as_str(), 1));
    let Some(CallEvent::Answered { code: 200, media, sdp, .. }) = stage.events.last() else {
        panic!("{:?}", stage.events)
    };
    assert_eq!((media.remote_rtp.port(), media.codec.as_str(), sdp), (6000, "PCMU", &far_offer(6000)));
    assert!(!stage.endpoint.answer_offer(stage.now, key, answer), "once");
    stage.reply(&invite, 200, "b", &headers, Some(&far_offer(6000)));
    assert_eq!(stage.request(Method::Ack), ack);
    // The session can be changed from then on.
    assert!(stage.endpoint.reinvite(stage.now, key, offer(1).session().to_string()));
    let asked = stage.request(Method::Invite);
    assert_eq!(Session::parse(text(&asked.body)).unwrap().version, 2);
}

#[test]
fn the_offer_of_a_reliable_response_is_answered_in_its_prack() {
    let (mut stage, key, invite) = asking();
    let headers = [("Require", "100rel"), ("RSeq", "4"), ("Contact", "<sip:bob@10.0.0.2>")];
    for _ in 0..2 {
        stage.reply(&invite, 183, "b", &headers, Some(&far_offer(6000)));
    }
    stage.quiet();
    let offers: Vec<_> = stage.events.iter().filter(|e| matches!(e, CallEvent::Offered { code: 183, .. })).collect();
    assert_eq!(offers.len(), 1);
    assert!(stage.endpoint.answer_offer(stage.now, key, own_answer(&far_offer(6000))));
    let prack = stage.request(Method::Prack);
    assert_eq!((prack.headers.get("RAck"), text(&prack.body).contains("m=audio 4000")), (Some("4 1 INVITE"), true));
    stage.reply(&prack, 200, "b", &[], None);
    stage.reply(&invite, 200, "b", &[], None);
    assert!(stage.request(Method::Ack).body.is_empty());
    let Some(CallEvent::Answered { media, .. }) = stage.events.last() else { panic!("{:?}", stage.events) };
    assert_eq!(media.remote_rtp.port(), 6000);
}

#[test]
fn each_branch_offers_for_itself() {
    let (mut stage, key, invite) = asking();
    let headers = [("Require", "100rel"), ("RSeq", "4"), ("Contact", "<sip:bob@10.0.0.2>")];
    stage.reply(&invite, 183, "one", &headers, Some(&far_offer(6000)));
    assert!(stage.endpoint.answer_offer(stage.now, key, own_answer(&far_offer(6000))));
    stage.request(Method::Prack);
    stage.reply(&invite, 200, "two", &headers[2..], Some(&far_offer(7000)));
    let offered = CallEvent::Offered { code: 200, sdp: far_offer(7000), tag: "two".into() };
    assert_eq!(stage.events.last(), Some(&offered));
    assert!(stage.endpoint.answer_offer(stage.now, key, own_answer(&far_offer(7000))));
    assert_eq!(tag_of(&stage.request(Method::Ack).headers), "two");
    let Some(CallEvent::Answered { media, tag, .. }) = stage.events.last() else { panic!("{:?}", stage.events) };
    assert_eq!((media.remote_rtp.port(), tag.as_str()), (7000, "two"));
}

#[test]
fn an_offer_that_is_not_answered_ends_the_call() {
    type Step = fn(&mut Scripted, CallKey, &Request);
    let late: Step = |stage, _, _| stage.wait(32_000);
    let hung_up: Step = |stage, key, _| stage.endpoint.hangup(stage.now, key, 88, "x");
    for (step, kind) in [(late, EndKind::NoMedia), (hung_up, EndKind::LocalHangup)] {
        let (mut stage, key, invite) = asking();
        stage.reply(&invite, 200, "b", &[], Some(&far_offer(6000)));
        step(&mut stage, key, &invite);
        let (ack, bye) = (stage.request(Method::Ack), stage.request(Method::Bye));
        assert!(ack.body.is_empty());
        assert!(bye.headers.get("Reason").unwrap().contains("cause=88"));
        assert_eq!(stage.end().kind, kind);
        stage.reply(&bye, 200, "b", &[], None);
        stage.wait(80_000);
        stage.quiet();
        assert!(stage.endpoint.is_idle());
    }
    let (mut stage, key, invite) = asking();
    stage.reply(&invite, 200, "b", &[], Some(&far_offer(6000)));
    stage.in_dialog(&invite, "BYE", 1, "\n");
    stage.response(200);
    stage.request(Method::Ack);
    assert_eq!(stage.end().kind, EndKind::RemoteBye);
    assert!(!stage.endpoint.answer_offer(stage.now, key, own_answer(&far_offer(6000))));
    // A 200 without any description.
    let (mut stage, _, invite) = asking();
    stage.reply(&invite, 200, "b", &[], None);
    stage.request(Method::Ack);
    stage.request(Method::Bye);
    assert_eq!(stage.end().kind, EndKind::NoMedia);
}

#[test]
fn a_caller_without_offer_gets_one_in_the_200() {
    let check = |body: &str, kind: Option<EndKind>| {
        let (mut stage, key) = Scripted::taking("", false);
        stage.endpoint.answer(stage.now, key, offer(1).session().to_string());
        let ok = stage.response(200);
        assert!(text(&ok.body).contains("m=audio 4000 RTP/AVP 0 8 9 101"));
        stage.caller_sends("ACK", 1, &tag_of(&ok.headers), body);
        match kind {
            None => assert!(matches!(stage.events[..], [CallEvent::Confirmed { sdp: Some(_) }]), "{:?}", stage.events),
            Some(kind) => {
                stage.request(Method::Bye);
                assert_eq!(stage.end().kind, kind);
            }
        }
        stage.quiet();
    };
    let answer = sdp::negotiate(&offer(1).session().to_string(), &offer(2)).unwrap().0.to_string();
    check(&sdp_body(&answer), None);
    check("\n", Some(EndKind::NoMedia));
    check(&sdp_body(&answer.replace("m=audio 4000", "m=audio 0")), Some(EndKind::NoMedia));
}

#[test]
fn a_caller_without_offer_gets_one_while_it_rings() {
    let (mut stage, key) = Scripted::taking("Supported: 100rel\n", false);
    stage.endpoint.ring(stage.now, key, 183, Some(offer(1).session().to_string()));
    let ringing = stage.response(183);
    let (rseq, tag) = (ringing.headers.get("RSeq").unwrap().to_owned(), tag_of(&ringing.headers));
    assert!(!ringing.body.is_empty());
    let answer = sdp::negotiate(text(&ringing.body), &offer(2)).unwrap().0.to_string();
    stage.caller_sends("PRACK", 2, &tag, &format!("RAck: {rseq} 1 INVITE\n{}", sdp_body(&answer)));
    stage.response(200);
    assert_eq!(stage.events, [CallEvent::RingConfirmed { sdp: Some(answer) }]);
    stage.endpoint.answer(stage.now, key, offer(1).session().to_string());
    assert!(stage.response(200).body.is_empty());
    stage.caller_sends("ACK", 1, &tag, "\n");
    assert_eq!(stage.events.last(), Some(&CallEvent::Confirmed { sdp: None }));
    // A caller that does not know reliable responses gets no offer in one.
    let (mut stage, key) = Scripted::taking("", false);
    stage.endpoint.ring(stage.now, key, 183, Some(offer(1).session().to_string()));
    assert!(stage.response(183).body.is_empty());
}

#[test]
fn a_prack_without_the_answer_refuses_the_call() {
    let answer = sdp::negotiate(&offer(1).session().to_string(), &offer(2)).unwrap().0.to_string();
    for body in ["\n".to_owned(), sdp_body(&answer.replace("m=audio 4000", "m=audio 0"))] {
        let (mut stage, key) = Scripted::taking("Supported: 100rel\n", false);
        stage.endpoint.ring(stage.now, key, 183, Some(offer(1).session().to_string()));
        let ringing = stage.response(183);
        let rseq = ringing.headers.get("RSeq").unwrap();
        stage.caller_sends("PRACK", 2, &tag_of(&ringing.headers), &format!("RAck: {rseq} 1 INVITE\n{body}"));
        assert_eq!(stage.response(488).headers.cseq().unwrap().method, Method::Prack);
        assert_eq!(stage.response(488).headers.cseq().unwrap().method, Method::Invite);
        assert_eq!((stage.end().kind, stage.events.len()), (EndKind::NoMedia, 1));
    }
}

#[test]
fn a_reinvite_without_offer_gets_the_session_in_use() {
    let (mut stage, key, invite) = Scripted::talking();
    let held = Offer { direction: Direction::SendOnly, ..offer(1) }.session().to_string();
    assert!(stage.endpoint.reinvite(stage.now, key, held));
    let asked = stage.request(Method::Invite);
    stage.reply(&asked, 200, "b", &[], Some(&answer_to(&asked)));
    stage.request(Method::Ack);
    stage.in_dialog(&invite, "INVITE", 1, "\n");
    let ok = stage.response(200);
    assert!(text(&ok.body).contains("a=sendonly"), "{}", text(&ok.body));
    let answer = sdp::negotiate(text(&ok.body), &offer(2)).unwrap().0.to_string().replace("4000", "6000");
    stage.events.clear();
    stage.in_dialog(&invite, "ACK", 1, &sdp_body(&answer));
    let [CallEvent::Renegotiated { media, .. }] = &stage.events[..] else { panic!("{:?}", stage.events) };
    assert_eq!((media.remote_rtp.port(), media.direction), (6000, Direction::SendOnly));
    // An ACK without the answer leaves the session as it was.
    stage.events.clear();
    stage.in_dialog(&invite, "INVITE", 2, "\n");
    stage.response(200);
    stage.in_dialog(&invite, "ACK", 2, "\n");
    assert_eq!(stage.events, [CallEvent::Unchanged { code: 200, why: None }]);
    stage.quiet();
}

fn offers(bob: &mut Endpoint, now: Time, call: CallKey, event: &CallEvent) {
    if let CallEvent::Incoming { sdp: None, .. } = event {
        bob.answer(now, call, offer(2).session().to_string());
    }
}

#[test]
fn calls_without_offer_survive_loss() {
    for seed in 0..50 {
        let mut pair = Pair::new(seed, offers);
        (pair.loss, pair.jitter_ms) = (0.2, 20);
        let invite = invite_to("sip:bob@10.0.0.2", crate::testing::address(Party::Bob));
        let call = pair.alice.invite(pair.now, Invite { sdp: String::new(), ..invite });
        let mut offered = None;
        while offered.is_none() && pair.now < Time(30_000_000_000) {
            pair.run(10);
            offered = pair.of(Party::Alice).into_iter().find_map(|e| match e {
                CallEvent::Offered { sdp, .. } => Some(sdp.clone()),
                _ => None,
            });
        }
        let offered = offered.unwrap_or_else(|| panic!("seed {seed}: no offer"));
        assert!(pair.alice.answer_offer(pair.now, call, own_answer(&offered)));
        pair.run(31_000);
        assert!(matches!(pair.of(Party::Alice).last(), Some(CallEvent::Answered { .. })), "seed {seed}");
        assert!(matches!(pair.of(Party::Bob).last(), Some(CallEvent::Confirmed { sdp: Some(_) })), "seed {seed}");
        pair.alice.hangup(pair.now, call, 16, "x");
        pair.loss = 0.0;
        pair.run(100_000);
        assert!(pair.alice.is_idle() && pair.bob.is_idle(), "seed {seed}");
    }
}

// --- forks
// ----------------------------------------------------------------------------------------------------------------

/// Returns the branches that rang, with the ports of their early media.
fn rung(stage: &Scripted) -> Vec<(u16, String, Option<u16>)> {
    let provisional = stage.events.iter().filter_map(|event| match event {
        CallEvent::Provisional { code, tag, media, .. } => {
            Some((*code, tag.clone(), media.as_ref().map(|media| media.remote_rtp.port())))
        }
        _ => None,
    });
    provisional.collect()
}

#[test]
fn each_branch_rings_with_its_own_description() {
    let (mut stage, _, invite) = Scripted::calling(None);
    let early = |port: &str| answer_to(&invite).replace("4000", port);
    let reliable = |rseq| [("Require", "100rel"), ("RSeq", rseq), ("Contact", "<sip:bob@10.0.0.3>")];
    stage.reply(&invite, 180, "", &[], None);
    stage.reply(&invite, 183, "one", &reliable("70"), Some(&early("6000")));
    assert_eq!(tag_of(&stage.request(Method::Prack).headers), "one");
    stage.reply(&invite, 183, "two", &reliable("3"), Some(&early("7000")));
    assert_eq!(tag_of(&stage.request(Method::Prack).headers), "two");
    stage.reply(&invite, 180, "one", &reliable("71"), None);
    let prack = stage.request(Method::Prack);
    assert_eq!(
        (tag_of(&prack.headers), prack.headers.cseq().unwrap().seq),
        ("one".into(), 3),
        "each counts for itself"
    );
    stage.reply(&invite, 183, "three", &[], Some(&early("8000")));
    let expect = [(180, "", None), (183, "one", Some(6000)), (183, "two", Some(7000)), (180, "one", None)];
    let expect = expect.into_iter().chain([(183, "three", Some(8000))]);
    assert_eq!(rung(&stage), expect.map(|(code, tag, port)| (code, tag.to_owned(), port)).collect::<Vec<_>>());
    // The description of the branch that answers is the one that counts.
    stage.reply(&invite, 200, "two", &[], None);
    stage.request(Method::Ack);
    let Some(CallEvent::Answered { media, tag, .. }) = stage.events.last() else { panic!("{:?}", stage.events) };
    assert_eq!((media.remote_rtp.port(), tag.as_str()), (7000, "two"));
    stage.events.clear();
    stage.reply(&invite, 200, "three", &[], None);
    assert_eq!(tag_of(&stage.request(Method::Ack).headers), "three");
    assert_eq!(tag_of(&stage.request(Method::Bye).headers), "three");
    stage.quiet();
    assert_eq!(stage.events, []);
}

#[test]
fn a_call_has_eight_branches_at_most() {
    let (mut stage, key, invite) = Scripted::calling(None);
    let rings = |stage: &mut Scripted, tag: &str| {
        let headers = [("Require", "100rel"), ("RSeq", "1"), ("Contact", "<sip:bob@10.0.0.3>")];
        stage.reply(&invite, 180, tag, &headers, None);
    };
    for tag in "abcdefgh".chars() {
        rings(&mut stage, &tag.to_string());
        assert_eq!(tag_of(&stage.request(Method::Prack).headers), tag.to_string());
    }
    rings(&mut stage, "i");
    stage.quiet();
    // The ninth may answer all the same.
    stage.answer(&invite, "i");
    assert_eq!(tag_of(&stage.request(Method::Ack).headers), "i");
    assert!(matches!(stage.events.last(), Some(CallEvent::Answered { tag, .. }) if tag == "i"));
    stage.endpoint.hangup(stage.now, key, 16, "x");
    assert_eq!(tag_of(&stage.request(Method::Bye).headers), "i");
}

#[test]
fn the_end_of_one_branch_is_not_the_end_of_the_call() {
    let (mut stage, _, invite) = Scripted::calling(None);
    stage.reply(&invite, 180, "b", &[], None);
    stage.reply(&invite, 180, "c", &[], None);
    stage.in_dialog(&invite, "BYE", 1, "\n");
    stage.response(200);
    assert!(!stage.events.iter().any(|e| matches!(e, CallEvent::Ended(_))));
    stage.answer(&invite, "c");
    stage.request(Method::Ack);
    assert!(matches!(stage.events.last(), Some(CallEvent::Answered { tag, .. }) if tag == "c"));
}

#[test]
fn a_change_of_another_branch_does_not_end_the_call() {
    let check = |code: u16, sent: bool| {
        let (mut stage, key, invite) = Scripted::calling(None);
        stage.reply(&invite, 180, "two", &[], None);
        stage.reply(&invite, 180, "one", &[], None);
        assert!(stage.endpoint.update(stage.now, key, None));
        let asked = stage.request(Method::Update);
        assert_eq!(tag_of(&asked.headers), "one");
        if !sent {
            stage.reply(&asked, 491, "one", &[], None);
        }
        stage.answer(&invite, "two");
        stage.request(Method::Ack);
        if sent {
            stage.reply(&asked, code, "one", &[], None);
            assert_eq!(stage.events.last(), Some(&CallEvent::Updated { code, sdp: None, media: None }));
        } else {
            // The waiting change goes to the branch that answered.
            stage.wait(4_000);
            let again = stage.sent.remove(0);
            let crate::Message::Request(again) = again else { panic!("{again:?}") };
            assert_eq!((again.method.clone(), tag_of(&again.headers).as_str()), (Method::Update, "two"));
            stage.reply(&again, code, "two", &[], None);
        }
        stage.wait(200);
        stage.sent.clear();
        assert!(!stage.events.iter().any(|e| matches!(e, CallEvent::Ended(_))), "{:?}", stage.events);
        assert!(stage.endpoint.update(stage.now, key, None), "the next may go");
    };
    check(481, true);
    check(408, true);
    check(200, true);
    check(200, false);
}
