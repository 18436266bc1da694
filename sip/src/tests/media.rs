//! Media parameters that offer and answer agree on: directions, telephone events, static payload types, host names.

use super::{Scripted, answer_to, sdp_body};
use crate::message::Method;
use crate::sdp::{Codec, Direction, Offer, Session, negotiate, read_answer};
use crate::testing::offer;
use crate::useragent::{CallEvent, EndKind};

/// Returns a description of the other side with these lines after `t=`.
fn theirs(connection: &str, lines: &str) -> String {
    format!("v=0\r\no=x 1 1 IN IP4 h\r\ns=-\r\n{connection}t=0 0\r\n{}", lines.replace('\n', "\r\n"))
}

const AT: &str = "c=IN IP4 10.0.0.2\r\n";

fn with_opus(events: Vec<Codec>) -> Offer {
    let opus = Codec { channels: 2, ..Codec::new("opus", 111, 48_000) };
    Offer { codecs: vec![opus, Codec::pcmu()], events, ..offer(1) }
}

#[test]
fn events_of_8000_hz_go_with_every_codec() {
    // Events of both sides: sent under, received under, clock, and as the answerer writes them.
    let check = |own: &[Codec], lines: &str, expect: (Option<u8>, Option<u8>, u32)| {
        let ours = with_opus(own.to_vec());
        let map = "m=audio 4000 RTP/AVP 96 100 101\na=rtpmap:96 opus/48000/2\n";
        let remote = theirs(AT, &format!("{map}{lines}"));
        let agreed = read_answer(&ours.session().to_string(), &remote).unwrap();
        let got = (agreed.event_payload_type, agreed.receive_event_payload_type, agreed.event_clock_rate_hz);
        assert_eq!(got, expect, "{lines}");
        assert_eq!((agreed.payload_type, agreed.receive_payload_type), (96, 111));
    };
    let (low, high) = (Codec::events(110, 8000), Codec::events(112, 48_000));
    let both = [high.clone(), low.clone()];
    check(&both, "a=rtpmap:100 telephone-event/48000\n", (Some(100), Some(112), 48_000));
    check(&both, "a=rtpmap:101 telephone-event/8000\n", (Some(101), Some(110), 8000));
    let lines = "a=rtpmap:101 telephone-event/8000\na=rtpmap:100 telephone-event/48000\n";
    check(&both, lines, (Some(100), Some(112), 48_000));
    check(&both, "a=rtpmap:100 telephone-event/16000\n", (None, None, 48_000));
    // An answer cannot have what was not offered.
    check(std::slice::from_ref(&high), "a=rtpmap:101 telephone-event/8000\n", (None, None, 48_000));
    check(&[], "a=rtpmap:101 telephone-event/8000\n", (None, None, 48_000));

    // As answerer: accepted as offered.
    let answers = |own: &[Codec], expect: Option<u8>| {
        let lines = "m=audio 4000 RTP/AVP 96 101\na=rtpmap:96 opus/48000/2\na=rtpmap:101 telephone-event/8000\n";
        let (answer, agreed) = negotiate(&theirs(AT, lines), &with_opus(own.to_vec())).unwrap();
        assert_eq!((agreed.event_payload_type, agreed.receive_event_payload_type), (expect, expect));
        assert_eq!(answer.to_string().contains("a=rtpmap:101 telephone-event/8000\r\n"), expect.is_some());
    };
    answers(&both, Some(101));
    answers(&[high], Some(101));
    answers(&[], None);
}

#[test]
fn static_payload_types_mean_what_they_mean() {
    let check = |lines: &str, expect: (&str, u32, u8)| {
        let remote = theirs(AT, lines);
        let (_, agreed) = negotiate(&remote, &offer(1)).unwrap();
        assert_eq!((agreed.codec.as_str(), agreed.clock_rate_hz, agreed.payload_type), expect, "{lines}");
    };
    check("m=audio 4000 RTP/AVP 0\na=rtpmap:0 G711U/8000\n", ("PCMU", 8000, 0));
    check("m=audio 4000 RTP/AVP 8\na=rtpmap:8 PCMA\n", ("PCMA", 8000, 8));
    check("m=audio 4000 RTP/AVP 9\na=rtpmap:9 G722/16000\n", ("G722", 8000, 9));
    check("m=audio 4000 RTP/AVP 8 0\na=rtpmap:8 PCMU/8000\na=rtpmap:0 PCMA/8000\n", ("PCMA", 8000, 8));
    check("m=audio 4000 RTP/AVP 97 0\na=rtpmap:97 PCMA/8000\n", ("PCMA", 8000, 97));
}

#[test]
fn a_200_says_who_may_send() {
    let check = |change: fn(&str) -> String, expect: (Direction, bool)| {
        let (mut stage, key, invite) = Scripted::calling(None);
        stage.reply(&invite, 200, "b", &[], Some(&change(&answer_to(&invite))));
        stage.request(Method::Ack);
        let Some(CallEvent::Answered { media, .. }) = stage.events.last() else { panic!("{:?}", stage.events) };
        assert_eq!((media.direction, media.on_hold), expect, "{media:?}");
        // The same as the answer to a re-INVITE.
        assert!(stage.endpoint.reinvite(stage.now, key, offer(1).session().to_string()));
        let asked = stage.request(Method::Invite);
        stage.events.clear();
        stage.reply(&asked, 200, "b", &[], Some(&change(&answer_to(&asked))));
        let Some(CallEvent::Reinvited { media: Some(media), .. }) = stage.events.first() else {
            panic!("{:?}", stage.events)
        };
        assert_eq!((media.direction, media.on_hold), expect, "{media:?}");
    };
    use Direction::*;
    check(str::to_owned, (SendRecv, false));
    check(|sdp| sdp.replace("a=sendrecv", "a=recvonly"), (SendOnly, false));
    check(|sdp| sdp.replace("a=sendrecv", "a=sendonly"), (RecvOnly, true));
    check(|sdp| sdp.replace("a=sendrecv", "a=inactive"), (Inactive, true));
    check(|sdp| sdp.replace("c=IN IP4 10.0.0.2", "c=IN IP4 0.0.0.0"), (RecvOnly, true));
    check(|sdp| sdp.replace("a=sendrecv\r\n", ""), (SendRecv, false));
}

#[test]
fn a_host_name_is_told_as_a_name() {
    let m = "m=audio 4000 RTP/AVP 0\n";
    let check = |connection: &str, lines: &str, expect: (Option<&str>, &str)| {
        let remote = theirs(connection, lines);
        let read = Session::parse(&remote).unwrap();
        assert_eq!(Session::parse(&read.to_string()).unwrap().host, read.host, "it reads back");
        let (_, agreed) = negotiate(&remote, &offer(1)).unwrap();
        assert_eq!((agreed.remote_host.as_deref(), agreed.remote_rtp.to_string().as_str()), expect);
        assert_eq!((agreed.direction, agreed.on_hold), (Direction::SendRecv, false));
        assert_eq!(read_answer(&offer(1).session().to_string(), &remote).unwrap().remote_host, agreed.remote_host);
    };
    check("c=IN IP4 Media.b.example\r\n", m, (Some("media.b.example"), "0.0.0.0:4000"));
    check(AT, &format!("{m}c=IN IP4 m.example\n"), (Some("m.example"), "0.0.0.0:4000"));
    check("c=IN IP4 m.example\r\n", &format!("{m}c=IN IP4 10.0.0.9\n"), (None, "10.0.0.9:4000"));
    let long = format!("c=IN IP4 {}\r\n", "a".repeat(256));
    for connection in ["c=IN IP4 a_b\r\n", "c=IN IP4 1.2.3\r\n", "c=IN IP4\r\n", long.as_str()] {
        let refusal = negotiate(&theirs(connection, m), &offer(1)).map(|_| ());
        assert_eq!(refusal, Err(crate::sdp::Refusal::NoAddress), "{connection}");
    }
    // A change to a name is refused: the answer would go before the name is known to lead anywhere.
    let (mut stage, _, invite) = Scripted::talking();
    stage.in_dialog(&invite, "INVITE", 1, &sdp_body(&theirs("c=IN IP4 m.example\r\n", m)));
    stage.response(488);
    stage.acknowledges_failure(&invite, 1);
    assert_eq!(stage.events, [CallEvent::Unchanged { code: 488, why: Some(crate::sdp::Refusal::NoAddress) }]);
}

#[test]
fn an_answer_without_an_address_ends_the_call() {
    let (mut stage, _, invite) = Scripted::calling(None);
    stage.reply(&invite, 200, "b", &[], Some(&answer_to(&invite).replace("c=IN IP4 10.0.0.2\r\n", "")));
    stage.request(Method::Ack);
    stage.request(Method::Bye);
    let end = stage.end();
    assert_eq!((end.kind, end.text.contains("no address")), (EndKind::NoMedia, true), "{}", end.text);
}
