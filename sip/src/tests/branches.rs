//! Branches of a forked call that change their sessions before the answer, and changes that name an address or a host.

use std::net::IpAddr;

use super::{Scripted, answer_to, sdp_body};
use crate::dialog::Reach;
use crate::message::{Method, Request};
use crate::sdp::{self, Codec, Offer, Refusal};
use crate::testing::{invite_to, offer};
use crate::useragent::{CallEvent, CallKey, Invite};

/// Receives a reliable 183 of the branch `tag` with this description, and answers its PRACK.
fn rings(stage: &mut Scripted, invite: &Request, tag: &str, sdp: &str) {
    let headers = [("Require", "100rel"), ("RSeq", "1"), ("Contact", "<sip:bob@10.0.0.2>")];
    stage.reply(invite, 183, tag, &headers, Some(sdp));
    let prack = stage.request(Method::Prack);
    stage.reply(&prack, 200, tag, &[], None);
}

fn only(codec: Codec) -> Offer {
    Offer { codecs: vec![codec], ..offer(2) }
}

/// Returns the answer of another side that has this codec alone.
fn answer_in(invite: &Request, codec: Codec) -> String {
    sdp::negotiate(std::str::from_utf8(&invite.body).unwrap(), &only(codec)).unwrap().0.to_string()
}

/// Returns codec and description of the answered call.
fn answer_of(stage: &Scripted) -> (&str, &str) {
    let Some(CallEvent::Answered { media, tag, .. }) = stage.events.last() else { panic!("{:?}", stage.events) };
    (media.codec.as_str(), tag.as_str())
}

#[test]
fn an_update_of_one_branch_leaves_the_offer_of_the_others() {
    let (mut stage, key, invite) = Scripted::calling(None);
    rings(&mut stage, &invite, "b", &answer_to(&invite));
    let wish = Offer { codecs: vec![Codec::pcmu()], ..offer(1) };
    assert!(stage.endpoint.update(stage.now, key, Some(wish.session().to_string())));
    let asked = stage.request(Method::Update);
    stage.reply(&asked, 200, "b", &[], Some(&answer_to(&asked)));
    assert!(matches!(stage.events.last(), Some(CallEvent::Updated { code: 200, media: Some(_), .. })));
    // PCMA is in the INVITE, and not in the UPDATE.
    stage.reply(&invite, 200, "c", &[("Contact", "<sip:bob@10.0.0.3>")], Some(&answer_in(&invite, Codec::pcma())));
    stage.request(Method::Ack);
    assert_eq!(answer_of(&stage), ("PCMA", "c"));
}

#[test]
fn a_branch_goes_on_with_what_it_was_changed_to() {
    let (mut stage, key, invite) = Scripted::calling(None);
    rings(&mut stage, &invite, "b", &answer_to(&invite));
    let wish = Offer { codecs: vec![Codec::pcma(), Codec::g722()], ..offer(1) };
    assert!(stage.endpoint.update(stage.now, key, Some(wish.session().to_string())));
    let asked = stage.request(Method::Update);
    stage.reply(&asked, 200, "b", &[], Some(&answer_to(&asked)));
    rings(&mut stage, &invite, "c", &answer_to(&invite));
    stage.reply(&invite, 200, "b", &[], None);
    stage.request(Method::Ack);
    assert_eq!(answer_of(&stage), ("PCMA", "b"));
    // A change of the other side is answered with that codec.
    stage.in_dialog(&invite, "UPDATE", 1, &sdp_body(&offer(2).session().to_string()));
    let response = String::from_utf8(stage.response(200).body).unwrap();
    assert!(response.contains("RTP/AVP 8") && !response.contains("PCMU"), "{response}");
}

#[test]
fn branches_are_asked_by_update_each_in_its_own_codec() {
    let (mut stage, _, invite) = Scripted::calling(None);
    rings(&mut stage, &invite, "b", &answer_in(&invite, Codec::pcmu()));
    rings(&mut stage, &invite, "c", &answer_in(&invite, Codec::pcma()));
    stage.events.clear();
    stage.in_dialog(&invite, "UPDATE", 1, &sdp_body(&only(Codec::pcmu()).session().to_string()));
    stage.response(200);
    let [CallEvent::Renegotiated { media, tag, .. }] = &stage.events[..] else { panic!("{:?}", stage.events) };
    assert_eq!((media.codec.as_str(), tag.as_str()), ("PCMU", "b"));
}

/// Returns a call that is up, in which the other side may name any address but 10.0.0.99; `taken`: the other side made
/// it.
fn call_within(taken: bool) -> (Scripted, CallKey, Option<Request>, String) {
    let reach = Reach::by(|address| address != IpAddr::from([10, 0, 0, 99]));
    if taken {
        let (mut stage, key) = Scripted::taking("", true);
        stage.endpoint.limit_reach(key, reach);
        let own = sdp::negotiate(&offer(2).session().to_string(), &offer(1)).unwrap().0.to_string();
        stage.endpoint.answer(stage.now, key, own);
        let tag = stage.response(200).headers.to().unwrap().tag().to_owned();
        stage.caller_sends("ACK", 1, &tag, "\n");
        stage.events.clear();
        return (stage, key, None, tag);
    }
    let mut stage = Scripted::new();
    let key = stage.endpoint.invite(stage.now, Invite { reach, ..invite_to("sip:bob@b.example", stage.far) });
    let invite = stage.request(Method::Invite);
    stage.answer(&invite, "b");
    stage.request(Method::Ack);
    stage.events.clear();
    (stage, key, Some(invite), String::new())
}

#[test]
fn media_move_only_where_they_may() {
    let check = |taken: bool, method: &str, lines: &str, expect: Option<Refusal>| {
        let (mut stage, _, invite, tag) = call_within(taken);
        let sdp = only(Codec::pcmu()).session().to_string().replace("c=IN IP4 10.0.0.2", lines);
        match &invite {
            Some(invite) => stage.in_dialog(invite, method, 2, &sdp_body(&sdp)),
            None => stage.caller_sends(method, 2, &tag, &sdp_body(&sdp)),
        }
        stage.response(if expect.is_some() { 488 } else { 200 });
        match &stage.events[..] {
            [CallEvent::Unchanged { code: 488, why }] => assert_eq!(*why, expect, "{taken} {method} {lines}"),
            [CallEvent::Renegotiated { .. }, ..] => assert_eq!(None, expect, "{taken} {method} {lines}"),
            other => panic!("{other:?}"),
        }
    };
    for taken in [false, true] {
        for method in ["INVITE", "UPDATE"] {
            check(taken, method, "c=IN IP4 10.0.0.7", None);
            check(taken, method, "c=IN IP4 10.0.0.99", Some(Refusal::NotAllowed));
            // The old way of hold names no address (RFC 3264 8.4).
            check(taken, method, "c=IN IP4 0.0.0.0", None);
        }
    }
}

#[test]
fn reports_go_only_where_they_may() {
    let (mut stage, _, invite, _) = call_within(false);
    let invite = invite.unwrap();
    let sdp = only(Codec::pcmu()).session().to_string() + "a=rtcp:4001 IN IP4 10.0.0.99\r\n";
    stage.in_dialog(&invite, "INVITE", 2, &sdp_body(&sdp));
    stage.response(488);
    assert_eq!(stage.events, [CallEvent::Unchanged { code: 488, why: Some(Refusal::NotAllowed) }]);
}

#[test]
fn a_change_may_name_the_host_that_is_known() {
    let check = |host: &str, expect: Result<&str, Refusal>| {
        let (mut stage, key, invite, _) = call_within(false);
        stage.endpoint.know_host(key, "m.example".to_owned(), IpAddr::from([10, 0, 0, 7]));
        let named = format!("c=IN IP4 {host}");
        let sdp = only(Codec::pcmu()).session().to_string().replace("c=IN IP4 10.0.0.2", &named);
        stage.in_dialog(invite.as_ref().unwrap(), "UPDATE", 2, &sdp_body(&sdp));
        stage.response(if expect.is_ok() { 200 } else { 488 });
        let found = match &stage.events[..] {
            [CallEvent::Renegotiated { media, .. }] => {
                assert_eq!(media.remote_rtcp.ip(), media.remote_rtp.ip());
                Ok(media.remote_rtp.to_string())
            }
            [CallEvent::Unchanged { code: 488, why: Some(why) }] => Err(*why),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expect.map(str::to_owned), "{host}");
    };
    check("m.example", Ok("10.0.0.7:4000"));
    check("other.example", Err(Refusal::NoAddress));
}

#[test]
fn requests_of_a_call_that_was_taken_go_only_where_they_may() {
    let check = |contact: &str, expect: &str| {
        let (mut stage, key, _, tag) = call_within(true);
        stage.caller_sends("UPDATE", 2, &tag, "\n");
        stage.response(200);
        let target = format!("sip:bob@{contact}");
        stage.hears(&format!(
            "UPDATE sip:alice@10.0.0.1 SIP/2.0\nVia: SIP/2.0/UDP 10.0.0.2;branch=z9hG4bKx;rport\n\
             From: <sip:bob@b.example>;tag=b\nTo: <sip:alice@a.example>;tag={tag}\nCall-ID: c\nCSeq: 3 UPDATE\n\
             Contact: <{target}>\nMax-Forwards: 70\n\n"
        ));
        stage.response(200);
        stage.endpoint.hangup(stage.now, key, 16, "x");
        assert_eq!(stage.request(Method::Bye).uri, target);
        assert_eq!(stage.last_to.to_string(), expect, "{contact}");
    };
    check("10.0.0.7:5070", "10.0.0.7:5070");
    check("10.0.0.99:5070", &Scripted::new().far.to_string());
}
