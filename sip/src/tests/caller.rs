//! A caller, and another side that behaves as phones, proxies and carriers do.

use super::Scripted;
use crate::message::Method;
use crate::testing::invite_to;
use crate::useragent::{CallEvent, EndKind, Invite};
use crate::{Hop, Reach};

#[test]
fn the_invite_is_well_formed() {
    let (stage, _, invite) = Scripted::calling(None);
    assert_eq!(invite.check(), Ok(()));
    assert_eq!(invite.uri, "sip:bob@b.example");
    let names: Vec<_> = invite.headers.iter().map(|h| h.name.as_ref()).collect();
    let first = ["Via", "Max-Forwards", "From", "To", "Call-ID", "CSeq", "Contact", "Allow", "Supported"];
    assert_eq!((&names[..9], &names[9..12]), (&first[..], &["X-One", "X-Two", "Content-Type"][..]));
    assert_eq!(invite.headers.list("Supported"), ["100rel", "timer", "norefersub"]);
    assert!(invite.headers.list("Allow").contains(&"PRACK"));
    assert_eq!(invite.headers.get("Contact"), Some("<sip:alice@10.0.0.1:5060>"));
    assert!(invite.headers.top_via().unwrap().params.has("rport"));
    assert_eq!(stage.last_to, stage.far);
}

#[test]
fn a_second_fork_that_answers_is_acknowledged_and_ended() {
    let (mut stage, _, invite) = Scripted::calling(None);
    stage.reply(&invite, 180, "one", &[("Contact", "<sip:bob@10.0.0.3>")], None);
    stage.reply(&invite, 183, "two", &[("Contact", "<sip:bob@10.0.0.4>")], None);
    stage.answer(&invite, "two");
    assert_eq!(stage.request(Method::Ack).headers.to().unwrap().tag(), "two");
    stage.answer(&invite, "one");
    let (ack, bye) = (stage.request(Method::Ack), stage.request(Method::Bye));
    assert_eq!((ack.headers.to().unwrap().tag(), bye.headers.to().unwrap().tag()), ("one", "one"));
    assert_eq!((ack.headers.cseq().unwrap().seq, bye.headers.cseq().unwrap().seq), (1, 2));
    stage.quiet();
    let up = stage.events.iter().filter(|e| matches!(e, CallEvent::Answered { .. })).count();
    assert_eq!((up, stage.events.iter().any(|e| matches!(e, CallEvent::Ended(_)))), (1, false));
    // Each repetition of either 2xx is acknowledged by its own ACK, even after the transaction is over.
    stage.answer(&invite, "one");
    assert_eq!(stage.request(Method::Ack), ack);
    stage.reply(&bye, 200, "", &[], None);
    stage.wait(33_000);
    stage.answer(&invite, "two");
    assert_eq!(stage.request(Method::Ack).headers.to().unwrap().tag(), "two");
    stage.quiet();
}

#[test]
fn a_proxy_and_the_far_side_may_both_challenge() {
    let (mut stage, _, first) = Scripted::calling(Some(("u", "secret")));
    let proxy = "Digest realm=\"p\", nonce=\"1\", qop=\"auth,auth-int\"";
    stage.reply(&first, 407, "x", &[("Proxy-Authenticate", proxy)], None);
    assert_eq!(stage.request(Method::Ack).headers.top_via(), first.headers.top_via());
    let second = stage.request(Method::Invite);
    assert_ne!(second.headers.top_via().unwrap().branch(), first.headers.top_via().unwrap().branch());
    assert_eq!((second.headers.cseq().unwrap().seq, second.headers.call_id()), (2, first.headers.call_id()));
    let strong = "Digest realm=\"f\", nonce=\"2\", algorithm=SHA-256, qop=\"auth\"";
    let headers =
        [("WWW-Authenticate", "Digest realm=\"f\", nonce=\"2\", algorithm=MD5"), ("WWW-Authenticate", strong)];
    stage.reply(&second, 401, "y", &headers, None);
    stage.request(Method::Ack);
    let third = stage.request(Method::Invite);
    let (to_proxy, to_far) =
        (third.headers.get("Proxy-Authorization").unwrap(), third.headers.get("Authorization").unwrap());
    assert!(to_proxy.contains("nc=00000002") && to_proxy.contains("qop=auth,"), "{to_proxy}");
    assert!(to_far.contains("algorithm=SHA-256") && to_far.contains("nc=00000001"), "{to_far}");
    // An old nonce is no refusal; a second refusal is.
    stage.reply(&third, 407, "z", &[("Proxy-Authenticate", "Digest realm=\"p\", nonce=\"3\", stale=TRUE")], None);
    stage.request(Method::Ack);
    let fourth = stage.request(Method::Invite);
    stage.reply(&fourth, 407, "z", &[("Proxy-Authenticate", "Digest realm=\"p\", nonce=\"4\"")], None);
    stage.request(Method::Ack);
    stage.quiet();
    assert_eq!((stage.end().kind, stage.end().sip_code), (EndKind::AuthFailed, Some(407)));
    assert!(!format!("{:?} {:?}", stage.events, third).contains("response="), "no digest in debug output");
}

#[test]
fn credentials_go_with_the_ack_and_the_bye() {
    let (mut stage, key, first) = Scripted::calling(Some(("u", "secret")));
    stage.reply(&first, 401, "x", &[("WWW-Authenticate", "Digest realm=\"f\", nonce=\"1\", qop=\"auth\"")], None);
    stage.request(Method::Ack);
    let second = stage.request(Method::Invite);
    stage.answer(&second, "b");
    let ack = stage.request(Method::Ack);
    assert_eq!(ack.headers.get("Authorization"), second.headers.get("Authorization"));
    stage.endpoint.hangup(stage.now, key, 16, "Normal call clearing");
    let bye = stage.request(Method::Bye);
    assert!(bye.headers.get("Authorization").unwrap().contains("nc=00000002"));
    assert_eq!(bye.headers.get("Reason"), Some("Q.850;cause=16;text=\"Normal call clearing\""));
    stage.reply(
        &bye,
        401,
        "b",
        &[("WWW-Authenticate", "Digest realm=\"f\", nonce=\"9\", stale=true, qop=\"auth\"")],
        None,
    );
    let again = stage.request(Method::Bye);
    assert_eq!(again.headers.cseq().unwrap().seq, bye.headers.cseq().unwrap().seq + 1);
    assert!(again.headers.get("Authorization").unwrap().contains("nonce=\"9\""));
    assert_eq!(again.headers.all("User-Agent").count(), 1);
}

#[test]
fn refusals_say_what_the_far_side_said() {
    let check = |code: u16, headers: &[(&'static str, &str)], expect: (EndKind, Option<u16>, bool)| {
        let (mut stage, _, invite) = Scripted::calling(None);
        stage.reply(&invite, code, "b", headers, None);
        stage.request(Method::Ack);
        let end = stage.end();
        assert_eq!((end.kind, end.q850_cause, end.retry_after), expect, "{code}");
        assert_eq!((end.sip_code, end.by_remote), (Some(code), true));
    };
    check(503, &[("Retry-After", "30")], (EndKind::Refused, None, true));
    check(
        480,
        &[("Reason", "SIP;cause=480, Q.850 ;cause=19 ;text=\"No answer; really\"")],
        (EndKind::Refused, Some(19), false),
    );
    check(603, &[("Reason", "Q.850;cause=x")], (EndKind::Refused, None, false));
    check(401, &[("WWW-Authenticate", "Digest realm=\"f\", nonce=\"1\"")], (EndKind::AuthFailed, None, false));
    check(302, &[], (EndKind::Refused, None, false));
}

#[test]
fn a_redirect_to_a_name_waits_for_its_address() {
    let (mut stage, key, invite) = Scripted::calling(None);
    stage.reply(&invite, 302, "b", &[("Contact", "<sip:bob@other.example>")], None);
    stage.request(Method::Ack);
    stage.quiet();
    let CallEvent::Redirected { target } = stage.events.last().unwrap() else { panic!("{:?}", stage.events) };
    assert_eq!(target.to_string(), "sip:bob@other.example");
    let there = "10.0.0.7:5070".parse().unwrap();
    stage.endpoint.take_destinations(stage.now, key, Some(Hop::udp(there)));
    let second = stage.request(Method::Invite);
    assert_eq!((second.uri.as_str(), stage.last_to), ("sip:bob@other.example", there));
    assert_eq!(second.headers.get("To"), invite.headers.get("To"));
}

#[test]
fn a_redirect_to_an_address_is_not_followed_by_itself() {
    for (contact, allowed) in [("<sip:bob@10.0.0.7:5070>", true), ("<sip:bob@10.0.0.8>", false)] {
        let (mut stage, key, invite) = Scripted::calling(None);
        stage.reply(&invite, 302, "b", &[("Contact", contact)], None);
        stage.request(Method::Ack);
        stage.quiet();
        let Some(CallEvent::Redirected { target }) = stage.events.last() else { panic!("{:?}", stage.events) };
        let there = target.socket().unwrap();
        stage.endpoint.take_destinations(stage.now, key, allowed.then_some(Hop::udp(there)));
        if allowed {
            let second = stage.request(Method::Invite);
            assert_eq!((second.uri.as_str(), stage.last_to), ("sip:bob@10.0.0.7:5070", there));
        } else {
            stage.quiet();
            assert_eq!(stage.end().kind, EndKind::NotReachable);
        }
    }
}

#[test]
fn sdp_of_a_provisional_response_stands_for_a_missing_answer() {
    let (mut stage, _, invite) = Scripted::calling(None);
    let offered = String::from_utf8(invite.body.clone()).unwrap();
    let answer = crate::sdp::negotiate(&offered, &crate::testing::offer(2)).unwrap().0.to_string();
    stage.reply(&invite, 183, "b", &[], Some(&answer));
    stage.reply(&invite, 200, "b", &[], None);
    stage.request(Method::Ack);
    stage.quiet();
    assert!(matches!(stage.events.last(), Some(CallEvent::Answered { .. })));
}

#[test]
fn an_early_answer_after_a_cancel_never_needs_a_final_response() {
    let (mut stage, key, invite) = Scripted::calling(None);
    stage.reply(&invite, 180, "b", &[], None);
    stage.endpoint.hangup(stage.now, key, 16, "done");
    let cancel = stage.request(Method::Cancel);
    assert_eq!(cancel.headers.top_via(), invite.headers.top_via());
    assert_eq!(cancel.headers.cseq().unwrap().seq, invite.headers.cseq().unwrap().seq);
    assert_eq!(cancel.headers.get("Reason"), Some("Q.850;cause=16;text=\"done\""));
    stage.reply(&cancel, 200, "b", &[], None);
    stage.wait(80_000);
    stage.quiet();
    assert!(stage.endpoint.is_idle());
}

#[test]
fn a_contact_leads_nowhere_that_may_not_be_reached() {
    for (host, led_to) in [("10.0.0.7", "10.0.0.7:5060"), ("169.254.169.254", "10.0.0.2:5060")] {
        let mut stage = Scripted::new();
        let reach = Reach::by(|address| address != std::net::IpAddr::from([169, 254, 169, 254]));
        let key = stage.endpoint.invite(stage.now, Invite { reach, ..invite_to("sip:bob@b.example", stage.far) });
        let invite = stage.request(Method::Invite);
        let offered = String::from_utf8(invite.body.clone()).unwrap();
        let answer = crate::sdp::negotiate(&offered, &crate::testing::offer(2)).unwrap().0.to_string();
        stage.reply(&invite, 200, "b", &[("Contact", &format!("<sip:bob@{host}>"))], Some(&answer));
        let ack = stage.request(Method::Ack);
        assert_eq!((ack.uri, stage.last_to.to_string()), (format!("sip:bob@{host}"), led_to.to_owned()));
        stage.endpoint.hangup(stage.now, key, 16, "done");
        stage.request(Method::Bye);
        assert_eq!(stage.last_to.to_string(), led_to);
    }
}
