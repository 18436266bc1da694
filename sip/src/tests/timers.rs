//! Session timers (RFC 4028).

use super::{Scripted, answer_to, sdp_body};
use crate::message::{Method, Request, Response};
use crate::sdp::{Direction, Offer};
use crate::testing::{Pair, Party, invite_to, offer};
use crate::tests::calls::answers;
use crate::useragent::{CallEvent, CallKey, EndKind};

/// Places a call that asks for `seconds`, and returns its INVITE.
fn asking(seconds: u32) -> (Scripted, CallKey, Request) {
    let mut stage = Scripted::new();
    stage.endpoint.ask_session_interval(Some(seconds));
    let key = stage.endpoint.invite(stage.now, invite_to("sip:bob@b.example", stage.far));
    let invite = stage.request(Method::Invite);
    (stage, key, invite)
}

/// Returns a call that was answered with these header fields.
fn running(expires: &str, allow: &str) -> (Scripted, CallKey, Request) {
    let (mut stage, key, invite) = asking(1800);
    let headers =
        [("Contact", "<sip:bob@10.0.0.2>"), ("Session-Expires", expires), ("Require", "timer"), ("Allow", allow)];
    stage.reply(&invite, 200, "b", &headers, Some(&answer_to(&invite)));
    stage.request(Method::Ack);
    stage.events.clear();
    (stage, key, invite)
}

fn expires_of(response: &Response) -> Option<&str> {
    response.headers.get("Session-Expires")
}

#[test]
fn an_invite_asks_for_an_interval() {
    let (_, _, invite) = asking(1800);
    assert_eq!((invite.headers.get("Session-Expires"), invite.headers.get("Min-SE")), (Some("1800"), None));
    assert_eq!(asking(20).2.headers.get("Session-Expires"), Some("90"), "nothing below the least interval");
    let (_, _, invite) = Scripted::calling(None);
    assert_eq!(invite.headers.get("Session-Expires"), None, "only on request");
    assert!(invite.headers.list("Supported").contains(&"timer"));
}

#[test]
fn a_caller_refreshes_at_half_the_interval() {
    let (mut stage, _, _) = running("200;refresher=uac", "INVITE, ACK, BYE, UPDATE");
    stage.wait(99_999);
    stage.quiet();
    stage.wait(1);
    let first = stage.request(Method::Update);
    assert_eq!((first.headers.get("Session-Expires"), first.body.len()), (Some("200;refresher=uac"), 0));
    stage.reply(&first, 200, "b", &[("Session-Expires", "200;refresher=uac")], None);
    stage.wait(100_000);
    // The other side takes the refresh upon itself.
    let second = stage.request(Method::Update);
    stage.reply(&second, 200, "b", &[("Session-Expires", "200;refresher=uas")], None);
    stage.wait(167_999);
    stage.quiet();
    assert_eq!(stage.events, [], "a refresh is no news");
    stage.wait(1);
    stage.request(Method::Bye);
    assert_eq!(stage.end().kind, EndKind::SessionExpired);
}

#[test]
fn a_far_side_without_update_is_refreshed_by_invite() {
    for allow in ["INVITE, ACK, BYE, UPDATE", "INVITE, ACK, BYE"] {
        let (mut stage, _, invite) = running("90", allow);
        stage.wait(45_000);
        if allow.contains("UPDATE") {
            // It says that it takes UPDATE, and does not.
            let refused = stage.request(Method::Update);
            stage.reply(&refused, 405, "b", &[], None);
            stage.wait(1);
        }
        let asked = stage.request(Method::Invite);
        assert_eq!(asked.body, invite.body, "the same version says that nothing changes");
        assert_eq!(asked.headers.get("Session-Expires"), Some("90;refresher=uac"));
        stage.reply(&asked, 200, "b", &[("Session-Expires", "90;refresher=uac")], Some(&answer_to(&asked)));
        stage.request(Method::Ack);
        stage.wait(44_999);
        stage.quiet();
        stage.wait(1);
        let again = stage.request(Method::Invite);
        stage.reply(&again, 200, "b", &[], Some(&answer_to(&again)));
        stage.request(Method::Ack);
        stage.wait(1_000_000);
        stage.quiet();
        assert_eq!(stage.events, [], "an answer without the field ends the timer");
    }
}

#[test]
fn a_session_that_nobody_refreshes_ends() {
    let (mut stage, _, _) = running("120;refresher=uas", "INVITE");
    stage.wait(87_999);
    stage.quiet();
    // 32 s before the end, or a third of the interval (RFC 4028 10).
    stage.wait(1);
    let bye = stage.request(Method::Bye);
    assert!(bye.headers.get("Reason").is_some_and(|reason| reason.contains("cause=102")));
    let end = stage.end();
    assert_eq!((end.kind, end.q850_cause, end.by_remote), (EndKind::SessionExpired, Some(102), false));
    stage.reply(&bye, 200, "b", &[], None);
    stage.wait(80_000);
    assert!(stage.endpoint.is_idle());
}

#[test]
fn a_refresh_of_the_far_side_keeps_the_session() {
    let (mut stage, _, invite) = running("120;refresher=uas", "INVITE, UPDATE");
    for (seq, method) in [(1, "UPDATE"), (2, "INVITE"), (3, "UPDATE")] {
        stage.wait(60_000);
        let timer = "Supported: timer\nSession-Expires: 120;refresher=uac\n";
        let body = if method == "INVITE" { sdp_body(&offer(2).session().to_string()) } else { "\n".into() };
        stage.in_dialog(&invite, method, seq, &format!("{timer}{body}"));
        let ok = stage.response(200);
        assert_eq!((expires_of(&ok), ok.headers.get("Require")), (Some("120;refresher=uac"), Some("timer")));
        if method == "INVITE" {
            stage.in_dialog(&invite, "ACK", seq, "\n");
        }
    }
    assert!(!stage.events.iter().any(|e| matches!(e, CallEvent::Ended(_))));
    stage.wait(88_000);
    stage.request(Method::Bye);
    assert_eq!(stage.end().kind, EndKind::SessionExpired);
}

#[test]
fn an_interval_that_is_too_short_is_raised_once() {
    let (mut stage, _, first) = asking(90);
    stage.reply(&first, 422, "b", &[("Min-SE", "300")], None);
    stage.request(Method::Ack);
    let second = stage.request(Method::Invite);
    assert_eq!(
        (second.headers.get("Session-Expires"), second.headers.get("Min-SE"), second.headers.cseq().unwrap().seq),
        (Some("300"), Some("300"), 2)
    );
    assert_eq!(second.headers.call_id(), first.headers.call_id());
    stage.reply(&second, 422, "b", &[("Min-SE", "600")], None);
    stage.request(Method::Ack);
    stage.quiet();
    assert_eq!((stage.end().kind, stage.end().sip_code), (EndKind::Refused, Some(422)));

    for min_se in [None, Some("80"), Some("x"), Some("90000")] {
        let (mut stage, _, first) = asking(90);
        let headers: Vec<_> = min_se.into_iter().map(|value| ("Min-SE", value)).collect();
        stage.reply(&first, 422, "b", &headers, None);
        stage.request(Method::Ack);
        stage.quiet();
        assert_eq!(stage.end().sip_code, Some(422), "{min_se:?}");
    }
}

#[test]
fn a_refresh_follows_a_422_as_well() {
    let (mut stage, _, _) = running("90;refresher=uac", "UPDATE");
    stage.wait(45_000);
    let first = stage.request(Method::Update);
    stage.reply(&first, 422, "b", &[("Min-SE", "400")], None);
    let second = stage.request(Method::Update);
    assert_eq!(second.headers.get("Session-Expires"), Some("400;refresher=uac"));
    stage.reply(&second, 200, "b", &[("Session-Expires", "400;refresher=uac")], None);
    stage.wait(199_999);
    stage.quiet();
    stage.wait(1);
    stage.request(Method::Update);
}

#[test]
fn a_refused_refresh_is_tried_again_until_the_end() {
    let (mut stage, _, _) = running("200;refresher=uac", "UPDATE");
    stage.wait(100_000);
    let mut tries = 0;
    while let Some(crate::Message::Request(asked)) = stage.sent.pop().filter(|_| tries < 50) {
        if asked.method == Method::Bye {
            break;
        }
        tries += 1;
        stage.reply(&asked, 503, "b", &[], None);
        while stage.sent.is_empty() && !stage.events.iter().any(|e| matches!(e, CallEvent::Ended(_))) {
            stage.wait(100);
        }
    }
    assert_eq!((stage.end().kind, tries), (EndKind::SessionExpired, 6));
    let (mut stage, _, _) = running("200;refresher=uac", "UPDATE");
    stage.wait(100_000);
    let asked = stage.request(Method::Update);
    stage.reply(&asked, 481, "b", &[], None);
    stage.request(Method::Bye);
    assert_eq!(stage.end().kind, EndKind::DialogLost);
}

#[test]
fn an_answerer_says_who_refreshes() {
    let check = |headers: &str, own: Option<u32>, expect: Option<&str>| {
        let mut stage = Scripted::new();
        stage.endpoint.ask_session_interval(own);
        stage.caller_sends("INVITE", 1, "", &format!("{headers}{}", sdp_body(&offer(2).session().to_string())));
        stage.response(100);
        let key = stage.last_call.unwrap();
        stage.endpoint.answer(stage.now, key, offer(1).session().to_string());
        let ok = stage.response(200);
        assert_eq!(expires_of(&ok), expect, "{headers:?}");
        assert_eq!(ok.headers.get("Require").is_some(), expect.is_some_and(|e| e.ends_with("uac")), "{headers:?}");
    };
    check("", None, None);
    check("Supported: timer\n", None, None);
    check("Supported: timer\nSession-Expires: 1800\n", None, Some("1800;refresher=uac"));
    check("k: timer\nx: 1800;refresher=uas\n", None, Some("1800;refresher=uas"));
    check("Supported: timer\nSession-Expires: 120\nMin-SE: 100\n", Some(600), Some("120;refresher=uac"));
    check("Supported: timer\n", Some(600), Some("600;refresher=uac"));
    check("Supported: timer\nMin-SE: 900\n", Some(600), Some("900;refresher=uac"));
    check("", Some(600), Some("600;refresher=uas"));
}

#[test]
fn an_answerer_refuses_an_interval_below_90_s() {
    let check = |headers: &str, code: u16| {
        let mut stage = Scripted::new();
        stage.caller_sends("INVITE", 1, "", &format!("{headers}{}", sdp_body(&offer(2).session().to_string())));
        let response = stage.response(code);
        assert_eq!(response.headers.get("Min-SE"), (code == 422).then_some("90"));
        assert_eq!(stage.events.len(), usize::from(code == 100));
    };
    check("Supported: timer\nSession-Expires: 89\n", 422);
    check("Supported: timer\nSession-Expires: 90\n", 100);
    // A caller that does not know 422 is not sent one (RFC 4028 9).
    check("Session-Expires: 60\n", 100);
    let (mut stage, _, invite) = Scripted::talking();
    for (seq, method) in [(1, "UPDATE"), (2, "INVITE")] {
        stage.in_dialog(&invite, method, seq, "Supported: timer\nSession-Expires: 30\n\n");
        assert_eq!(stage.response(422).headers.get("Min-SE"), Some("90"));
    }
}

#[test]
fn an_answerer_refreshes_and_ends_as_well() {
    for (refresher, refreshes) in [("uas", true), ("uac", false)] {
        let headers = format!("Allow: UPDATE, INVITE\nSupported: timer\nSession-Expires: 200;refresher={refresher}\n");
        let (mut stage, key) = Scripted::taking(&headers, true);
        stage.endpoint.answer(stage.now, key, offer(1).session().to_string());
        let tag = stage.response(200).headers.to().unwrap().tag().to_owned();
        stage.caller_sends("ACK", 1, &tag, "\n");
        stage.wait(99_999);
        stage.quiet();
        stage.wait(68_001);
        if refreshes {
            let asked = stage.request(Method::Update);
            assert_eq!(asked.headers.get("Session-Expires"), Some("200;refresher=uac"));
        } else {
            stage.request(Method::Bye);
            assert_eq!(stage.end().kind, EndKind::SessionExpired);
        }
    }
}

#[test]
fn a_long_call_of_two_endpoints_stays_up_whatever_is_lost() {
    for seed in 0..20 {
        let mut pair = Pair::new(seed, answers);
        pair.alice.ask_session_interval(Some(90));
        (pair.loss, pair.jitter_ms) = (0.2, 20);
        let call = pair.call();
        pair.run(3_600_000);
        let ended = pair.events.iter().filter(|(_, _, e)| matches!(e, CallEvent::Ended(_))).count();
        assert_eq!(ended, 0, "seed {seed}: {:?}", pair.events);
        assert!(pair.count(Party::Alice, "UPDATE") >= 75, "seed {seed}");
        pair.alice.hangup(pair.now, call, 16, "x");
        pair.loss = 0.0;
        pair.run(100_000);
        assert!(pair.alice.is_idle() && pair.bob.is_idle(), "seed {seed}");
    }
}

#[test]
fn a_change_in_between_refreshes_too() {
    let (mut stage, key, _) = running("200;refresher=uac", "UPDATE");
    stage.wait(90_000);
    let wish = Offer { direction: Direction::SendOnly, ..offer(1) }.session().to_string();
    assert!(stage.endpoint.reinvite(stage.now, key, wish));
    let asked = stage.request(Method::Invite);
    assert_eq!(asked.headers.get("Session-Expires"), Some("200;refresher=uac"));
    stage.reply(&asked, 200, "b", &[("Session-Expires", "200;refresher=uac")], Some(&answer_to(&asked)));
    stage.request(Method::Ack);
    stage.wait(99_999);
    stage.quiet();
    stage.wait(1);
    // A change that is asked for while a refresh is open follows it.
    let refresh = stage.request(Method::Update);
    assert!(stage.endpoint.update(stage.now, key, Some(offer(1).session().to_string())));
    stage.quiet();
    stage.reply(&refresh, 200, "b", &[("Session-Expires", "200;refresher=uac")], None);
    assert!(!stage.request(Method::Update).body.is_empty());
}
