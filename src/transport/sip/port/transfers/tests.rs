//! Transfers and redirects at the port of a call: what goes out, and what its Call hears.

use ringer_base::config::{CODECS, Targets};
use ringer_base::guard::Guard;

use super::*;
use crate::peer::PortOutput;
use crate::sip::sdp;

const TO: &str = "sip:carol@c.example";

fn list(entries: &[&str]) -> Targets {
    Targets::parse(&entries.iter().map(|&entry| entry.to_owned()).collect::<Vec<_>>()).expect("they are targets")
}

/// Returns both sides of a session whose media on the other side are at `address`.
fn agreement(address: &str) -> ringer_sip::sdp::Negotiated {
    let offer = |host: &str, id| sdp::offer(&CODECS, host.parse().expect("an address"), 4000, id).session().to_string();
    ringer_sip::sdp::read_answer(&offer("192.0.2.1", 1), &offer(address, 2)).expect("they agree")
}

fn answer(address: &str) -> CallEvent {
    let (call_id, tag, sdp) = (String::new(), String::new(), String::new());
    CallEvent::Answered { code: 200, sdp, media: agreement(address), call_id, tag }
}

fn asks(to: &str) -> CallEvent {
    CallEvent::Transfer { to: to.to_owned(), referred_by: None }
}

fn end(kind: EndKind, sip_code: Option<u16>) -> CallEnd {
    CallEnd { kind, sip_code, q850_cause: None, text: String::new(), by_remote: true, retry_after: false }
}

/// Returns a port of a call that is up, and may be sent on to `c.example` by `refer`.
fn up(refer: Refer) -> SipPort {
    let guard = Guard::by(|address| address.to_string() != "192.0.2.99");
    let mut port = SipPort::caller("sip:a@b".to_owned(), guard);
    port.forward(Forwarding { refer, refer_targets: list(&["c.example"]), redirects: list(&["192.0.2.0/24"]) });
    port.receive(answer("192.0.2.7"));
    outputs(&mut port);
    port
}

/// Returns a port whose call to the target is under way.
fn calling() -> SipPort {
    let mut port = up(Refer::Follow);
    port.receive(asks(TO));
    port.take_address(Ok(vec![Hop::udp(([192, 0, 2, 9], 5060).into())]));
    port.control(&Control::Transfer(Onward::Follow));
    outputs(&mut port);
    port
}

/// Returns everything that the port gives out, in a few words each.
fn outputs(port: &mut SipPort) -> Vec<String> {
    let word = |output| match output {
        PortOutput::Act(SipAction::Send(order)) => format!("call: {order:?}"),
        PortOutput::Act(SipAction::SendTarget(order)) => format!("target: {order:?}"),
        PortOutput::Act(SipAction::Media(plan)) => format!("media to {}", plan.rtp),
        PortOutput::Act(SipAction::Locate(address, lookup)) => format!("locate {} {lookup:?}", address.uri()),
        PortOutput::Act(SipAction::LocateMedia(host)) => format!("locate media {host}"),
        PortOutput::Act(SipAction::Dial(call)) => format!("dial {} at {} {:?}", call.uri, call.hops[0], call.headers),
        PortOutput::Act(SipAction::Switch) => "switch".to_owned(),
        PortOutput::Warning(warning) => warning,
        PortOutput::Log(_, line) => line,
        PortOutput::Signal(Signal::Transfer { to, can_follow }) => format!("transfer to {to}: {can_follow}"),
        PortOutput::Signal(Signal::Transferred { outcome, code, leg, .. }) => {
            format!("transferred: {outcome} {code} {}", leg.is_some())
        }
        PortOutput::Signal(Signal::Ended(end)) => format!("ended {:?}", end.kind),
        PortOutput::Signal(signal) => format!("{signal:?}").split([' ', '{']).next().unwrap_or_default().to_owned(),
    };
    std::iter::from_fn(|| port.poll()).map(word).collect()
}

#[test]
fn a_transfer_is_followed_where_the_list_has_its_target() {
    let check = |refer, to: &str, expect: &[&str]| {
        let mut port = up(refer);
        port.receive(asks(to));
        assert_eq!(outputs(&mut port), expect, "{to}");
    };
    check(Refer::Refuse, TO, &["transfer to sip:carol@c.example: false"]);
    check(Refer::Follow, TO, &["locate sip:carol@c.example Transfer"]);
    check(Refer::Follow, "sip:c@C.example?Replaces=1%40x", &["locate sip:c@C.example Transfer"]);
    let refused = |to: &str, why: &str| {
        let expect = [format!("a transfer to {to} is refused: {why}"), format!("transfer to {to}: false")];
        check(Refer::Follow, to, &expect.each_ref().map(String::as_str));
    };
    refused("sip:carol@d.example", "sip.refer_targets does not have it");
    refused("sip:carol@192.0.2.7", "sip.refer_targets does not have it");
    refused("sip:c@c.example;method=BYE", "it asks for another request than INVITE");
    refused("mailto:c@c.example", "it is no SIP address");
    let bad = "its Replaces cannot be read";
    for to in ["sip:c@c.example?Replaces=", "sip:c@c.example?Replaces=1%0d%0aX:%20y"] {
        let mut port = up(Refer::Follow);
        port.receive(asks(to));
        assert!(outputs(&mut port)[0].ends_with(bad), "{to}");
    }
}

#[test]
fn a_target_is_called_once_it_is_found_and_the_call_agrees() {
    let mut port = up(Refer::Follow);
    let referred_by = Some("<sip:b@b.example>".to_owned());
    let to = format!("{TO}?X=1&Replaces=1%40x%3Bto-tag%3Da%3Bfrom-tag%3Db");
    port.receive(CallEvent::Transfer { to, referred_by });
    outputs(&mut port);
    port.take_address(Ok(vec![Hop::udp(([192, 0, 2, 9], 5060).into())]));
    assert_eq!(outputs(&mut port), ["transfer to sip:carol@c.example: true"]);
    assert!(!port.calls_target());
    port.control(&Control::Transfer(Onward::Follow));
    let dial = "dial sip:carol@c.example at UDP 192.0.2.9:5060 [(\"Referred-By\", \"<sip:b@b.example>\"), \
                (\"Replaces\", \"1@x;to-tag=a;from-tag=b\")]";
    assert_eq!(outputs(&mut port), ["call: AcceptTransfer", dial]);
    assert!(port.calls_target());

    let mut port = up(Refer::Follow);
    port.receive(asks(TO));
    port.take_address(Err("its host has no address".to_owned()));
    port.control(&Control::Transfer(Onward::Decline));
    let expect = [
        "locate sip:carol@c.example Transfer",
        "a transfer to sip:carol@c.example is refused: its host has no address",
        "transfer to sip:carol@c.example: false",
        "call: Transfer(false)",
    ];
    assert_eq!(outputs(&mut port), expect);
}

#[test]
fn a_target_whose_media_are_at_a_host_name_is_looked_up() {
    let named = |host: &str| {
        let own = sdp::offer(&CODECS, [192, 0, 2, 1].into(), 4000, 1).session().to_string();
        let theirs = own.replace("c=IN IP4 192.0.2.1", &format!("c=IN IP4 {host}"));
        let media = ringer_sip::sdp::read_answer(&own, &theirs).expect("they agree");
        CallEvent::Answered { code: 200, sdp: theirs, media, call_id: String::new(), tag: String::new() }
    };
    let mut port = calling();
    port.receive_target(named("media.c.example"));
    assert_eq!(outputs(&mut port), ["locate media media.c.example"]);
    port.media_found(Ok([192, 0, 2, 9].into()));
    let expect = [
        "target: KnowHost(\"media.c.example\", 192.0.2.9)",
        "call: Notify(200, true)",
        "call: Hangup(16, \"Normal call clearing\")",
        "switch",
        "media to 192.0.2.9:4000",
        "transferred: answered 200 true",
    ];
    assert_eq!(outputs(&mut port), expect);
    // Without an address it is not followed, and the call goes on.
    let mut port = calling();
    port.receive_target(named("media.c.example"));
    outputs(&mut port);
    port.media_found(Err(ringer_base::guard::Blocked::NoAddress));
    let came = outputs(&mut port);
    assert!(came[0].contains("the host \"media.c.example\" of the media"), "{came:?}");
    assert_eq!(came.last().map(String::as_str), Some("transferred: no_media 488 false"));
}

#[test]
fn the_outcome_of_a_transfer_is_told_to_both() {
    let check = |event: CallEvent, expect: &[&str]| {
        let mut port = calling();
        port.receive_target(event.clone());
        assert_eq!(outputs(&mut port), expect, "{event:?}");
    };
    let ringing = CallEvent::Provisional { code: 180, tag: String::new(), sdp: None, media: None };
    check(ringing, &["call: Notify(180, false)"]);
    let bye = "call: Hangup(16, \"Normal call clearing\")";
    let taken = ["call: Notify(200, true)", bye, "switch", "media to 192.0.2.8:4000", "transferred: answered 200 true"];
    check(answer("192.0.2.8"), &taken);
    let elsewhere = [
        "the target of a transfer answered, and is not followed: the media address is not allowed",
        "target: Hangup(88, \"Incompatible destination\")",
        "call: Notify(488, true)",
        "transferred: no_media 488 false",
    ];
    check(answer("192.0.2.99"), &elsewhere);
    for (kind, code, outcome, notified) in [
        (EndKind::Refused, Some(486), "refused", 486),
        (EndKind::AuthFailed, Some(407), "refused", 407),
        (EndKind::Timeout, None, "unreachable", 408),
        (EndKind::NotReachable, None, "unreachable", 503),
        (EndKind::NoMedia, Some(200), "no_media", 488),
    ] {
        let expect = [format!("call: Notify({notified}, true)"), format!("transferred: {outcome} {notified} false")];
        check(CallEvent::Ended(end(kind, code)), &expect.each_ref().map(String::as_str));
    }
    let mut port = calling();
    port.control(&Control::CancelTarget);
    port.receive_target(CallEvent::Ended(end(EndKind::LocalHangup, None)));
    port.control(&Control::CancelTarget);
    let given_up = "target: Hangup(16, \"Normal call clearing\")";
    assert_eq!(outputs(&mut port), [given_up, "call: Notify(408, true)", "transferred: not_answered 408 false"]);
}

#[test]
fn a_call_whose_other_side_has_left_waits_for_the_target() {
    let left = CallEvent::Ended(end(EndKind::RemoteBye, None));
    let mut port = calling();
    port.receive(left.clone());
    assert_eq!(outputs(&mut port), ["LeftAlone"]);
    port.receive_target(answer("192.0.2.8"));
    let taken = ["call: Notify(200, true)", "switch", "media to 192.0.2.8:4000", "transferred: answered 200 true"];
    assert_eq!(outputs(&mut port), taken);
    port.receive(left.clone());
    assert_eq!(outputs(&mut port), ["ended Bye"]);

    let mut port = calling();
    port.receive(left.clone());
    port.receive_target(CallEvent::Ended(end(EndKind::Refused, Some(486))));
    let over = ["LeftAlone", "call: Notify(486, true)", "transferred: refused 486 false", "ended Bye"];
    assert_eq!(outputs(&mut port), over);

    // Before the target is called there is nobody to wait for.
    let mut port = up(Refer::Follow);
    port.receive(asks(TO));
    port.receive(left);
    port.take_address(Ok(vec![Hop::udp(([192, 0, 2, 9], 5060).into())]));
    assert_eq!(outputs(&mut port), ["locate sip:carol@c.example Transfer", "ended Bye"]);
}

#[test]
fn one_transfer_is_open_at_a_time_and_few_are_followed() {
    let mut port = calling();
    port.receive(asks(TO));
    port.control(&Control::Transfer(Onward::Decline));
    let refused = "a transfer to sip:carol@c.example is refused: another one is open";
    assert_eq!(outputs(&mut port), [refused, "transfer to sip:carol@c.example: false", "call: Transfer(false)"]);
    assert!(port.calls_target());

    let mut port = up(Refer::Follow);
    for _ in 0..MOST_TRANSFERS {
        port.receive(asks(TO));
        port.take_address(Ok(vec![Hop::udp(([192, 0, 2, 9], 5060).into())]));
        port.control(&Control::Transfer(Onward::Follow));
        port.receive_target(answer("192.0.2.8"));
        assert!(outputs(&mut port).contains(&"transferred: answered 200 true".to_owned()));
    }
    port.receive(asks(TO));
    let refused = "a transfer to sip:carol@c.example is refused: 5 were followed in this call";
    assert_eq!(outputs(&mut port), [refused, "transfer to sip:carol@c.example: false"]);
}

#[test]
fn the_end_of_the_call_ends_both_dialogs() {
    let bye = "Hangup(16, \"Normal call clearing\")";
    let mut port = calling();
    port.control(&Control::Hangup(ringer_media::call::HangupCause::Normal));
    assert_eq!(outputs(&mut port), [format!("target: {bye}"), format!("call: {bye}")]);
    port.receive_target(answer("192.0.2.8"));
    assert_eq!(outputs(&mut port), [""; 0], "its answer has crossed the end");
}

/// A prefix of numbers opens the host of the call alone, and `tel:` is called there.
#[test]
fn numbers_are_called_at_the_host_of_the_call() {
    let port = |called: &str| {
        let mut port = SipPort::caller(called.to_owned(), Guard::new(true));
        let targets = list(&["+49"]);
        port.forward(Forwarding { refer: Refer::Follow, refer_targets: targets.clone(), redirects: targets });
        port.receive(answer("192.0.2.7"));
        outputs(&mut port);
        port
    };
    let check = |to: &str, expect: Option<&str>| {
        let located = |lines: Vec<String>| {
            let found =
                lines.iter().find_map(|word| word.strip_prefix("locate ")?.split(' ').next().map(str::to_owned));
            assert_eq!(found.as_deref(), expect, "{to}: {lines:?}");
        };
        let mut asked = port("sip:a@b.example:5070;transport=tcp");
        asked.receive(asks(to));
        located(outputs(&mut asked));
        let mut moved = port("sip:a@b.example:5070;transport=tcp");
        moved.receive(CallEvent::Redirected { target: Uri::parse(to).expect("an address") });
        located(outputs(&mut moved));
    };
    check("tel:+4989-123", Some("sip:+4989-123@b.example:5070;transport=tcp;user=phone"));
    check("sip:+4989123@B.example", Some("sip:+4989123@B.example"));
    check("sip:+4989123@evil.example", None);
    check("tel:+1555", None);
    // A call that came in: the number is called where it came from. The port of a connection is its client's.
    for (transport, place) in [
        (ringer_sip::Transport::Tls, "192.0.2.5;transport=tls;user=phone"),
        (ringer_sip::Transport::Udp, "192.0.2.5:53211;user=phone"),
    ] {
        let mut port = port("");
        port.set_source(([192, 0, 2, 5], 53_211).into(), transport);
        port.receive(asks("tel:+4989123"));
        let produced = outputs(&mut port);
        assert!(produced[0].starts_with(&format!("locate sip:+4989123@{place}")), "{produced:?}");
    }
}

#[test]
fn redirects_are_followed_by_their_own_list() {
    let redirected = |to: &str| CallEvent::Redirected { target: Uri::parse(to).expect("an address") };
    let warning = "a redirect to c.example is not followed: sip.redirects does not have it";
    let mut port = up(Refer::Follow);
    port.receive(redirected("sip:b@192.0.2.5"));
    port.receive(redirected(TO));
    assert_eq!(outputs(&mut port), ["locate sip:b@192.0.2.5 Redirect", warning, "call: Resolved([])"]);
    let mut port = calling();
    port.receive_target(redirected("sip:b@192.0.2.5"));
    port.receive_target(redirected(TO));
    assert_eq!(outputs(&mut port), ["locate sip:b@192.0.2.5 TargetRedirect", warning, "target: Resolved([])"]);
}
