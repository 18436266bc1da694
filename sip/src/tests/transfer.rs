//! REFER inside a call.

use super::Scripted;
use crate::message::Method;
use crate::useragent::CallEvent;

const REFER: &str = "Refer-To: \"Carol\" <sip:carol@c.example>\n\n";

fn transfer_event() -> CallEvent {
    CallEvent::Transfer { to: "sip:carol@c.example".into(), referred_by: None }
}

#[test]
fn a_transfer_waits_for_its_answer() {
    for (accepted, code) in [(true, 202), (false, 603)] {
        let (mut stage, key, invite) = Scripted::talking();
        stage.in_dialog(&invite, "REFER", 7, REFER);
        stage.quiet();
        assert_eq!(stage.events, [transfer_event()]);
        stage.endpoint.answer_transfer(stage.now, key, accepted);
        assert_eq!(stage.response(code).headers.cseq().unwrap().seq, 7);
        if accepted {
            let notify = stage.request(Method::Notify);
            let field = |name: &str| notify.headers.get(name).map(str::to_owned);
            assert_eq!(field("Event").as_deref(), Some("refer"));
            assert_eq!(field("Subscription-State").as_deref(), Some("terminated;reason=noresource"));
            assert_eq!(field("Content-Type").as_deref(), Some("message/sipfrag;version=2.0"));
            assert!(field("Contact").is_some());
            assert_eq!(notify.body, b"SIP/2.0 200 OK\r\n");
            assert_eq!(notify.headers.to().unwrap().tag(), "b");
            stage.reply(&notify, 200, "", &[], None);
        }
        stage.endpoint.answer_transfer(stage.now, key, true);
        stage.quiet();
        stage.endpoint.hangup(stage.now, key, 16, "x");
        let bye = stage.request(Method::Bye);
        assert_eq!(bye.headers.cseq().unwrap().seq, if accepted { 3 } else { 2 });
    }
}

#[test]
fn a_second_transfer_is_declined_while_one_waits() {
    let (mut stage, key, invite) = Scripted::talking();
    stage.in_dialog(&invite, "REFER", 7, REFER);
    stage.in_dialog(&invite, "REFER", 8, REFER);
    assert_eq!(stage.response(603).headers.cseq().unwrap().seq, 8);
    stage.endpoint.answer_transfer(stage.now, key, false);
    assert_eq!(stage.response(603).headers.cseq().unwrap().seq, 7);
    assert_eq!(stage.events, [transfer_event()]);
}

#[test]
fn the_end_of_the_call_answers_a_transfer() {
    let (mut stage, key, invite) = Scripted::talking();
    stage.in_dialog(&invite, "REFER", 7, REFER);
    stage.endpoint.hangup(stage.now, key, 16, "x");
    stage.request(Method::Bye);
    stage.response(487);
    stage.endpoint.answer_transfer(stage.now, key, true);
    stage.quiet();
}

#[test]
fn a_challenged_notification_is_sent_again_with_credentials() {
    let (mut stage, key, invite) = Scripted::calling(Some(("u", "secret")));
    stage.answer(&invite, "b");
    stage.request(Method::Ack);
    stage.in_dialog(&invite, "REFER", 7, REFER);
    stage.endpoint.answer_transfer(stage.now, key, true);
    stage.response(202);
    let notify = stage.request(Method::Notify);
    stage.reply(&notify, 407, "b", &[("Proxy-Authenticate", "Digest realm=\"p\", nonce=\"1\", qop=\"auth\"")], None);
    let again = stage.request(Method::Notify);
    assert!(again.headers.get("Proxy-Authorization").is_some_and(|value| value.contains("nonce=\"1\"")));
    assert_eq!(again.body, notify.body);
}

#[test]
fn the_outcome_of_a_transfer_is_told_step_by_step() {
    let (mut stage, key, invite) = Scripted::talking();
    stage.endpoint.notify(stage.now, key, 200, true);
    stage.quiet();
    stage.in_dialog(&invite, "REFER", 7, REFER);
    stage.endpoint.notify(stage.now, key, 200, true);
    stage.quiet();
    stage.endpoint.accept_transfer(stage.now, key);
    assert!(stage.response(202).headers.get("Contact").is_some());
    let is_notified = |stage: &mut Scripted, line: &str, state: &str| {
        let notify = stage.request(Method::Notify);
        assert_eq!((notify.body.as_slice(), notify.headers.get("Event")), (line.as_bytes(), Some("refer")));
        assert_eq!(notify.headers.get("Subscription-State"), Some(state));
        stage.reply(&notify, 200, "", &[], None);
    };
    is_notified(&mut stage, "SIP/2.0 100 Trying\r\n", "active;expires=60");
    stage.endpoint.notify(stage.now, key, 180, false);
    is_notified(&mut stage, "SIP/2.0 180 Ringing\r\n", "active;expires=60");
    for code in [0, 99, 700] {
        stage.endpoint.notify(stage.now, key, code, false);
    }
    stage.quiet();
    stage.endpoint.notify(stage.now, key, 603, true);
    is_notified(&mut stage, "SIP/2.0 603 Decline\r\n", "terminated;reason=noresource");
    stage.endpoint.notify(stage.now, key, 200, true);
    stage.quiet();
    // Another transfer may follow.
    stage.in_dialog(&invite, "REFER", 8, REFER);
    stage.endpoint.accept_transfer(stage.now, key);
    stage.response(202);
    // Its subscription has a name of its own (RFC 3515 2.4.6).
    assert_eq!(stage.request(Method::Notify).headers.get("Event"), Some("refer;id=8"));
    stage.endpoint.hangup(stage.now, key, 16, "x");
    stage.request(Method::Bye);
    stage.endpoint.notify(stage.now, key, 200, true);
    stage.quiet();
}

#[test]
fn who_wants_no_notification_gets_none() {
    let (mut stage, key, invite) = Scripted::talking();
    stage.in_dialog(&invite, "REFER", 7, &format!("Refer-Sub: false\n{REFER}"));
    stage.endpoint.accept_transfer(stage.now, key);
    assert_eq!(stage.response(202).headers.get("Refer-Sub"), Some("false"));
    stage.endpoint.notify(stage.now, key, 200, true);
    stage.quiet();
}

#[test]
fn whoever_asked_for_a_transfer_is_told() {
    let (mut stage, _, invite) = Scripted::talking();
    stage.in_dialog(&invite, "REFER", 7, &format!("Referred-By: <sip:bob@b.example>\n{REFER}"));
    stage.quiet();
    let referred_by = Some("<sip:bob@b.example>".to_owned());
    assert_eq!(stage.events, [CallEvent::Transfer { to: "sip:carol@c.example".into(), referred_by }]);
}

#[test]
fn the_other_side_is_asked_to_go_elsewhere() {
    let (mut stage, key, _) = Scripted::talking();
    let by = [("Referred-By", "<sip:alice@a.example>".to_owned())];
    assert!(stage.endpoint.refer(stage.now, key, "sip:carol@c.example?Replaces=1%40x", &by));
    let refer = stage.request(Method::Refer);
    assert_eq!(refer.headers.get("Refer-To"), Some("<sip:carol@c.example?Replaces=1%40x>"));
    assert_eq!(refer.headers.get("Referred-By"), Some("<sip:alice@a.example>"));
    stage.reply(&refer, 202, "", &[], None);
    stage.quiet();
    stage.endpoint.hangup(stage.now, key, 16, "x");
    stage.request(Method::Bye);
    assert!(!stage.endpoint.refer(stage.now, key, "sip:carol@c.example", &[]), "the call is over");
}

#[test]
fn the_outcome_of_a_transfer_is_told_after_the_other_sides_bye() {
    let (mut stage, key, invite) = Scripted::talking();
    stage.in_dialog(&invite, "REFER", 7, REFER);
    stage.endpoint.accept_transfer(stage.now, key);
    stage.response(202);
    let trying = stage.request(Method::Notify);
    stage.reply(&trying, 200, "", &[], None);
    stage.in_dialog(&invite, "BYE", 8, "\n");
    stage.response(200);
    stage.wait(50_000);
    stage.endpoint.notify(stage.now, key, 200, true);
    let last = stage.request(Method::Notify);
    assert_eq!(last.headers.get("Subscription-State"), Some("terminated;reason=noresource"));
    assert!(last.headers.cseq().unwrap().seq > trying.headers.cseq().unwrap().seq);
    stage.reply(&last, 481, "", &[], None);
    stage.endpoint.notify(stage.now, key, 200, true);
    stage.quiet();
    assert_eq!(stage.events.iter().filter(|event| matches!(event, CallEvent::Ended(_))).count(), 1);
    stage.wait(100_000);
    assert!(stage.endpoint.is_idle());
}

#[test]
fn notifications_of_ones_own_transfer_are_taken_after_the_bye() {
    for refers in [true, false] {
        let (mut stage, key, invite) = Scripted::talking();
        if refers {
            assert!(stage.endpoint.refer(stage.now, key, "sip:carol@c.example", &[]));
            let refer = stage.request(Method::Refer);
            stage.reply(&refer, 202, "", &[], None);
        }
        stage.in_dialog(&invite, "BYE", 8, "\n");
        stage.response(200);
        stage.in_dialog(&invite, "NOTIFY", 9, "Event: refer\n\n");
        stage.response(if refers { 200 } else { 481 });
    }
}
