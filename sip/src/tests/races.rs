//! Messages that cross on the way: re-INVITE and ACK, BYE and everything (RFC 3261 13 to 15, RFC 5407).

use super::{Scripted, answer_to, sdp_body};
use crate::message::{Headers, Method};
use crate::sdp::{self, Direction, Offer};
use crate::testing::offer;
use crate::useragent::{CallEvent, EndKind};

fn tag_of(headers: &Headers) -> String {
    headers.to().unwrap().tag().to_owned()
}

fn hold_offer() -> String {
    sdp_body(&Offer { direction: Direction::SendOnly, ..offer(2) }.session().to_string())
}

#[test]
fn a_reinvite_that_overtakes_the_ack_stands_for_it() {
    let (mut stage, key) = Scripted::taking("", true);
    let own = sdp::negotiate(&offer(2).session().to_string(), &offer(1)).unwrap().0.to_string();
    stage.endpoint.answer(stage.now, key, own);
    let tag = tag_of(&stage.response(200).headers);
    stage.caller_sends("INVITE", 2, &tag, &hold_offer());
    let ok = stage.response(200);
    assert_eq!(ok.headers.cseq().unwrap().seq, 2);
    assert!(
        matches!(
            stage.events[..],
            [CallEvent::Confirmed { sdp: None }, CallEvent::Renegotiated { .. }, CallEvent::Hold(true)]
        ),
        "{:?}",
        stage.events
    );
    // The ACK that was overtaken ends nothing; the 200 of the re-INVITE is repeated until its own.
    stage.caller_sends("ACK", 1, &tag, "\n");
    stage.wait(500);
    assert_eq!(stage.response(200), ok);
    stage.caller_sends("ACK", 2, &tag, "\n");
    stage.wait(40_000);
    stage.quiet();
    assert_eq!(stage.events.len(), 3);
}

#[test]
fn a_reinvite_that_overtakes_an_answer_is_glare() {
    let (mut stage, key) = Scripted::taking("", false);
    stage.endpoint.answer(stage.now, key, offer(1).session().to_string());
    let ok = stage.response(200);
    let tag = tag_of(&ok.headers);
    stage.caller_sends("INVITE", 2, &tag, &hold_offer());
    stage.response(491);
    let answer = sdp::negotiate(&offer(1).session().to_string(), &offer(2)).unwrap().0.to_string();
    stage.caller_sends("ACK", 1, &tag, &sdp_body(&answer));
    assert!(matches!(stage.events[..], [CallEvent::Confirmed { sdp: Some(_) }]), "{:?}", stage.events);
}

#[test]
fn a_second_reinvite_before_the_ack_of_the_first_is_answered() {
    let (mut stage, _, invite) = Scripted::talking();
    stage.in_dialog(&invite, "INVITE", 1, &hold_offer());
    stage.response(200);
    stage.in_dialog(&invite, "INVITE", 2, &sdp_body(&offer(2).session().to_string()));
    assert_eq!(stage.response(200).headers.cseq().unwrap().seq, 2);
    stage.in_dialog(&invite, "ACK", 2, "\n");
    stage.wait(40_000);
    stage.quiet();
    let holds: Vec<_> = stage.events.iter().filter(|e| matches!(e, CallEvent::Hold(_))).collect();
    assert_eq!(holds, [&CallEvent::Hold(true), &CallEvent::Hold(false)]);
}

#[test]
fn a_bye_before_the_ack_ends_the_call() {
    let (mut stage, key) = Scripted::taking("", true);
    stage.endpoint.answer(stage.now, key, offer(1).session().to_string());
    let tag = tag_of(&stage.response(200).headers);
    stage.caller_sends("BYE", 2, &tag, "\n");
    stage.response(200);
    assert_eq!((stage.end().kind, stage.end().by_remote), (EndKind::RemoteBye, true));
    // The 200 is not repeated, and the ACK that was overtaken changes nothing.
    stage.caller_sends("ACK", 1, &tag, "\n");
    stage.wait(80_000);
    stage.quiet();
    assert_eq!(stage.events.len(), 1);
    assert!(stage.endpoint.is_idle());
}

#[test]
fn a_bye_that_crosses_a_bye_is_answered() {
    let (mut stage, key, invite) = Scripted::talking();
    stage.endpoint.hangup(stage.now, key, 16, "x");
    let bye = stage.request(Method::Bye);
    stage.in_dialog(&invite, "BYE", 1, "\n");
    stage.response(200);
    stage.reply(&bye, 481, "b", &[], None);
    stage.wait(80_000);
    stage.quiet();
    assert!(matches!(stage.events[..], [CallEvent::Ended(_)]), "{:?}", stage.events);
    assert!(stage.endpoint.is_idle());
}

#[test]
fn a_bye_that_crosses_a_change_leaves_nothing_open() {
    for method in [Method::Invite, Method::Update] {
        let (mut stage, key, invite) = Scripted::talking();
        let own = offer(1).session().to_string();
        let asked = match method {
            Method::Invite => stage.endpoint.reinvite(stage.now, key, own),
            _ => stage.endpoint.update(stage.now, key, Some(own)),
        };
        assert!(asked);
        let asked = stage.request(method.clone());
        stage.in_dialog(&invite, "BYE", 1, "\n");
        stage.response(200);
        stage.reply(&asked, 481, "b", &[], None);
        if method == Method::Invite {
            stage.request(Method::Ack);
        }
        stage.wait(80_000);
        stage.quiet();
        assert!(matches!(stage.events[..], [CallEvent::Ended(_)]), "{:?}", stage.events);
        assert!(stage.endpoint.is_idle());
    }
}

#[test]
fn a_cancel_that_crosses_the_answer_changes_nothing() {
    let (mut stage, key) = Scripted::taking("", true);
    stage.endpoint.answer(stage.now, key, offer(1).session().to_string());
    let tag = tag_of(&stage.response(200).headers);
    stage.hears(
        "CANCEL sip:alice@10.0.0.1 SIP/2.0\nVia: SIP/2.0/UDP 10.0.0.2;branch=z9hG4bKINVITE1;rport\n\
         From: <sip:bob@b.example>;tag=b\nTo: <sip:alice@a.example>\nCall-ID: c\nCSeq: 1 CANCEL\n\n",
    );
    let ok = stage.response(200);
    assert_eq!((ok.headers.cseq().unwrap().method, tag_of(&ok.headers)), (Method::Cancel, tag.clone()));
    stage.quiet();
    assert_eq!(stage.events, []);
    stage.caller_sends("ACK", 1, &tag, "\n");
    stage.caller_sends("BYE", 2, &tag, "\n");
    stage.response(200);
    assert_eq!(stage.end().kind, EndKind::RemoteBye);
}

#[test]
fn an_answer_that_crosses_a_cancel_is_ended() {
    let (mut stage, key, invite) = Scripted::calling(None);
    stage.reply(&invite, 180, "b", &[], None);
    stage.endpoint.hangup(stage.now, key, 16, "x");
    let cancel = stage.request(Method::Cancel);
    stage.reply(&invite, 200, "b", &[("Contact", "<sip:bob@10.0.0.2>")], Some(&answer_to(&invite)));
    let (ack, bye) = (stage.request(Method::Ack), stage.request(Method::Bye));
    assert_eq!((tag_of(&ack.headers), tag_of(&bye.headers)), ("b".into(), "b".into()));
    stage.reply(&cancel, 200, "b", &[], None);
    stage.reply(&bye, 200, "b", &[], None);
    stage.wait(80_000);
    stage.quiet();
    let ends = stage.events.iter().filter(|e| matches!(e, CallEvent::Ended(_))).count();
    assert_eq!((ends, stage.events.iter().any(|e| matches!(e, CallEvent::Answered { .. }))), (1, false));
    assert!(stage.endpoint.is_idle());
}

#[test]
fn options_say_what_is_understood() {
    let (mut stage, _, invite) = Scripted::talking();
    stage.in_dialog(&invite, "OPTIONS", 1, "\n");
    let inside = stage.response(200);
    let mut stage = Scripted::new();
    stage.caller_sends("OPTIONS", 1, "", "\n");
    let outside = stage.response(200);
    for response in [inside, outside] {
        let allow = response.headers.list("Allow");
        for method in ["INVITE", "ACK", "BYE", "CANCEL", "OPTIONS", "INFO", "UPDATE", "PRACK", "REFER", "MESSAGE"] {
            assert!(allow.contains(&method), "{method}");
        }
        assert_eq!(response.headers.get("Accept"), Some("application/sdp"));
        assert_eq!(response.headers.list("Supported"), ["100rel", "timer", "norefersub"]);
    }
    assert_eq!(stage.events, []);
}

#[test]
fn a_bye_that_overtakes_its_answer_ends_the_call() {
    for offers in [true, false] {
        let mut stage = Scripted::new();
        let invite = crate::testing::invite_to("sip:bob@b.example", stage.far);
        let sdp = if offers { invite.sdp.clone() } else { String::new() };
        stage.endpoint.invite(stage.now, crate::Invite { sdp, ..invite });
        let invite = stage.request(Method::Invite);
        stage.reply(&invite, 180, "b", &[], None);
        stage.in_dialog(&invite, "BYE", 1, "\n");
        stage.response(200);
        stage.reply(&invite, 200, "b", &[], Some(&offer(2).session().to_string()));
        stage.request(Method::Ack);
        assert_eq!((stage.end().kind, stage.end().by_remote), (EndKind::RemoteBye, true));
        stage.wait(80_000);
        stage.quiet();
        assert!(stage.endpoint.is_idle());
    }
}
