//! A call that is up: requests of the other side, and SDP.

use super::{Scripted, sdp_body};
use crate::message::Method;
use crate::sdp::{Codec, Direction, Offer, Refusal, Session, negotiate, read_answer};
use crate::testing::offer;
use crate::useragent::{CallEvent, EndKind};

fn body(kind: &str, body: &str) -> String {
    format!("Content-Type: {kind}\n\n{body}")
}

fn far_sdp(direction: Direction) -> String {
    Offer { direction, ..offer(2) }.session().to_string().replace("\r\n", "\n")
}

#[test]
fn hold_and_resume_are_answered_and_reported() {
    let (mut stage, _, invite) = Scripted::talking();
    let check =
        |stage: &mut Scripted, method: &str, seq: u32, theirs: Direction, ours: Direction, hold: Option<bool>| {
            stage.in_dialog(&invite, method, seq, &body("application/sdp", &far_sdp(theirs)));
            let response = stage.response(200);
            let session = Session::parse(&String::from_utf8(response.body).unwrap()).unwrap();
            assert!(session.media[0].attributes.iter().any(|a| a.name == ours.as_str()), "{session}");
            assert_eq!(session.version, 1 + u64::from(seq), "the version counts the changes");
            if method == "INVITE" {
                stage.in_dialog(&invite, "ACK", seq, "\n");
            }
            let holds: Vec<_> = stage.events.drain(..).filter(|e| matches!(e, CallEvent::Hold(_))).collect();
            assert_eq!(holds, hold.map(CallEvent::Hold).into_iter().collect::<Vec<_>>());
        };
    check(&mut stage, "INVITE", 1, Direction::SendOnly, Direction::RecvOnly, Some(true));
    check(&mut stage, "INVITE", 2, Direction::Inactive, Direction::Inactive, None);
    check(&mut stage, "UPDATE", 3, Direction::SendRecv, Direction::SendRecv, Some(false));
    stage.wait(40_000);
    stage.quiet();
}

#[test]
fn a_call_keeps_its_codec_where_it_is_offered() {
    let (mut stage, _, invite) = Scripted::talking();
    let formats = |formats: &str| {
        let sdp = format!(
            "v=0\no=- 2 5 IN IP4 10.0.0.2\ns=-\nc=IN IP4 10.0.0.9\nt=0 0\nm=audio 7000 RTP/AVP {formats}\n\
             a=rtpmap:101 telephone-event/8000\n"
        );
        body("application/sdp", &sdp)
    };
    let in_use = Session::parse(&far_sdp(Direction::SendRecv)).unwrap().media[0].formats[0].clone();
    let other = if in_use == "0" { "8" } else { "0" };
    // Another one of the same clock is taken where the present one is gone; one that this side never named is refused.
    for (seq, offered, expect) in [
        (1, format!("{other} {in_use} 101"), Some(in_use.as_str())),
        (2, format!("{other} 101"), Some(other)),
        (3, "18 101".to_owned(), None),
    ] {
        let code = if expect.is_some() { 200 } else { 488 };
        stage.in_dialog(&invite, "INVITE", seq, &formats(&offered));
        let response = stage.response(code);
        stage.in_dialog(&invite, "ACK", seq, "\n");
        let renegotiated = stage.events.drain(..).find_map(|event| match event {
            CallEvent::Renegotiated { media, .. } => Some(media),
            _ => None,
        });
        assert_eq!(renegotiated.is_some(), expect.is_some());
        if let Some((media, expect)) = renegotiated.zip(expect) {
            let answer = Session::parse(&String::from_utf8(response.body).unwrap()).unwrap();
            assert_eq!(answer.media[0].formats[0], expect);
            assert_eq!(
                (media.payload_type.to_string(), media.remote_rtp.to_string()),
                (expect.to_owned(), "10.0.0.9:7000".into())
            );
        }
    }
}

#[test]
fn a_reinvite_without_offer_gets_one() {
    let (mut stage, _, invite) = Scripted::talking();
    stage.in_dialog(&invite, "INVITE", 1, "\n");
    let offered = Session::parse(&String::from_utf8(stage.response(200).body).unwrap()).unwrap();
    // The codec in use, which the answer in the ACK then keeps, and the events.
    assert_eq!((offered.media[0].formats.join(" "), offered.version), ("0 101".to_owned(), 2), "{offered}");
    stage.wait(600);
    stage.response(200);
    stage.in_dialog(&invite, "ACK", 1, &body("application/sdp", &far_sdp(Direction::SendOnly)));
    assert!(stage.events.contains(&CallEvent::Hold(true)), "{:?}", stage.events);
    stage.wait(40_000);
    stage.quiet();
}

#[test]
fn the_answer_in_the_ack_to_a_reinvite_holds() {
    let (mut stage, _, invite) = Scripted::talking();
    stage.in_dialog(&invite, "INVITE", 1, "\n");
    stage.response(200);
    let answer = "v=0\no=- 2 5 IN IP4 10.0.0.2\ns=-\nc=IN IP4 10.0.0.9\nt=0 0\nm=audio 7000 RTP/AVP 0 97\n\
                  a=rtpmap:97 telephone-event/8000\na=sendrecv\n";
    stage.in_dialog(&invite, "ACK", 1, &body("application/sdp", answer));
    let media = stage.events.iter().find_map(|event| match event {
        CallEvent::Renegotiated { media, .. } => Some(media),
        _ => None,
    });
    let media = media.expect("the answer is taken");
    assert_eq!(
        (media.codec.as_str(), media.payload_type, media.remote_rtp.to_string()),
        ("PCMU", 0, "10.0.0.9:7000".into())
    );
    assert_eq!((media.event_payload_type, media.receive_event_payload_type), (Some(97), Some(101)));
    assert_eq!((media.direction, media.on_hold), (Direction::SendRecv, false));
}

#[test]
fn a_reinvite_without_offer_ends_the_hold_that_a_call_came_in_with() {
    let (mut stage, key) = Scripted::taking("", true);
    let held = far_sdp(Direction::SendOnly);
    let (answer, media) = negotiate(&held, &offer(1)).unwrap();
    assert_eq!((media.direction, media.on_hold), (Direction::RecvOnly, true));
    stage.endpoint.answer(stage.now, key, answer.to_string());
    let tag = stage.response(200).headers.to().unwrap().tag().to_owned();
    stage.caller_sends("ACK", 1, &tag, "\n");
    stage.caller_sends("INVITE", 2, &tag, "\n");
    let offered = Session::parse(&String::from_utf8(stage.response(200).body).unwrap()).unwrap();
    let directions: Vec<_> =
        offered.media[0].attributes.iter().filter(|a| Direction::parse(&a.name).is_some()).collect();
    assert_eq!(directions.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(), ["sendrecv"], "{offered}");
}

#[test]
fn requests_in_a_dialog_are_answered() {
    let check = |method: &str, rest: &str, code: u16, event: Option<CallEvent>| {
        let (mut stage, _, invite) = Scripted::talking();
        stage.in_dialog(&invite, method, 7, rest);
        stage.response(code);
        assert_eq!(stage.events, event.into_iter().collect::<Vec<_>>(), "{method}");
        stage.quiet();
    };
    let relay = |text: &str| body("application/dtmf-relay", text);
    check("INFO", &relay("Signal=5\nDuration=160\n"), 200, Some(CallEvent::Digit('5', 160)));
    check("INFO", &relay("Signal= *\n"), 200, Some(CallEvent::Digit('*', 250)));
    check("INFO", &relay("Signal=11\nDuration=99999999\n"), 200, Some(CallEvent::Digit('#', 10_000)));
    check("INFO", &relay("Duration=1\n"), 200, None);
    check("INFO", &body("application/dtmf", "a"), 200, Some(CallEvent::Digit('A', 250)));
    check("INFO", &relay("Signal=1x\n"), 200, None);
    check("INFO", &body("application/xml", "<a/>"), 415, None);
    check("INFO", "\n", 200, None);
    check("REFER", "\n", 400, None);
    check("UPDATE", "\n", 200, Some(CallEvent::Unchanged { code: 200, why: None }));
    check("OPTIONS", "\n", 200, None);
    check("NOTIFY", "Event: refer\n\n", 200, None);
    let message = CallEvent::Message { content_type: "text/plain".into(), text: "hello".into() };
    check("MESSAGE", &body("text/plain", "hello"), 200, Some(message));
    check("MESSAGE", &body("text/plain", &"x".repeat(16_385)), 413, None);
    check("SUBSCRIBE", "\n", 405, None);
    check("FOO", "\n", 501, None);
    check("INVITE", "Require: 100rel, x\n\n", 420, None);
    check("INVITE", "Require: 100rel, timer\n\n", 200, None);
    let unusable = body("application/sdp", "v=0\no=- 1 1 IN IP4 10.0.0.2\nm=audio 9 RTP/AVP 99\n");
    check("INVITE", &unusable, 488, Some(CallEvent::Unchanged { code: 488, why: Some(Refusal::NoCodec) }));
}

#[test]
fn digits_of_one_request_are_told_one_after_the_other() {
    let check = |kind: &str, text: &str, duration_ms: u32| {
        let (mut stage, _, invite) = Scripted::talking();
        stage.in_dialog(&invite, "INFO", 7, &body(kind, text));
        stage.response(200);
        assert_eq!(stage.events, ['1', '2', '#'].map(|digit| CallEvent::Digit(digit, duration_ms)), "{kind}");
    };
    check("application/dtmf-relay", "Signal=12#\nDuration=160\n", 160);
    check("application/dtmf", "12#", 250);
}

#[test]
fn a_bye_ends_the_call_with_its_reason() {
    let (mut stage, _, invite) = Scripted::talking();
    stage.in_dialog(&invite, "BYE", 1, "Reason: Q.850;cause=31;text=\"Normal, unspecified\"\n\n");
    stage.response(200);
    let end = stage.end();
    assert_eq!(
        (end.kind, end.q850_cause, end.text.as_str(), end.by_remote),
        (EndKind::RemoteBye, Some(31), "Normal, unspecified", true)
    );
    stage.in_dialog(&invite, "INFO", 2, "\n");
    stage.response(481);
}

#[test]
fn requests_that_belong_nowhere_are_refused() {
    let check = |method: &str, to_tag: &str, rest: &str, code: u16| {
        let mut stage = Scripted::new();
        stage.hears(&format!(
            "{method} sip:alice@10.0.0.1 SIP/2.0\nVia: SIP/2.0/UDP 10.0.0.2;branch=z9hG4bKx;rport\nFrom: <sip:b@b>;tag=b\n\
             To: <sip:a@a>{to_tag}\nCall-ID: none\nCSeq: 1 {method}\n{rest}\n"
        ));
        let response = stage.response(code);
        assert!(!response.headers.to().unwrap().tag().is_empty(), "To has a tag");
        let via = response.headers.top_via().unwrap();
        assert_eq!((via.params.get("received"), via.params.get("rport")), (Some("10.0.0.2"), Some("5060")));
    };
    check("BYE", ";tag=x", "", 481);
    check("INVITE", ";tag=x", "", 481);
    check("CANCEL", "", "", 481);
    check("BYE", "", "", 481);
    check("OPTIONS", "", "", 200);
    check("REGISTER", "", "", 405);
    check("FOO", "", "", 501);
    check("INVITE", "", "Require: a, b\n", 420);
    check("OPTIONS", "", "Max-Forwards: 999\n", 400);
}

#[test]
fn a_sequence_number_that_goes_back_is_refused() {
    let (mut stage, _, invite) = Scripted::talking();
    stage.in_dialog(&invite, "INFO", 9, "\n");
    stage.response(200);
    stage.in_dialog(&invite, "OPTIONS", 8, "\n");
    stage.response(500);
    // The same request again is a repetition: the same answer, no second event.
    let digit = body("application/dtmf-relay", "Signal=5\n");
    stage.in_dialog(&invite, "INFO", 10, &digit);
    stage.in_dialog(&invite, "INFO", 10, &digit);
    assert_eq!(stage.response(200), stage.response(200));
    assert_eq!(stage.events.len(), 1);
}

#[test]
fn two_branches_of_one_invite_make_one_call() {
    let mut stage = Scripted::new();
    for (branch, expect) in [("a", 100), ("b", 482)] {
        stage.hears(&format!(
            "INVITE sip:alice@10.0.0.1 SIP/2.0\nVia: SIP/2.0/UDP 10.0.0.2;branch=z9hG4bK{branch}\nFrom: <sip:b@b>;tag=b\n\
             To: <sip:a@a>\nCall-ID: m\nCSeq: 1 INVITE\n\n"
        ));
        stage.response(expect);
    }
    assert_eq!(stage.events.len(), 1);
}

/// Codec, payload type, events, packet length, RTP address, RTCP port, direction, hold.
type Row<'a> = (&'a str, u8, Option<u8>, u32, &'a str, u16, Direction, bool);

#[test]
fn offers_are_answered() {
    let check = |lines: &str, expect: Result<Row<'_>, Refusal>| {
        let text = format!("v=0\r\no=- 1 1 IN IP4 10.0.0.2\r\ns=-\r\nt=0 0\r\n{}", lines.replace('\n', "\r\n"));
        let got = negotiate(&text, &Offer { rtcp_mux: true, ..offer(1) });
        if let Ok((answer, media)) = &got {
            let text = answer.to_string();
            assert_eq!(Session::parse(&text).as_ref(), Ok(answer), "an answer reads back as itself");
            assert_eq!(answer.media.len(), Session::parse(&text).unwrap().media.len());
            assert!(media.ptime_ms.is_multiple_of(10));
        }
        let got = got.map(|(_, m)| m);
        let got = got.as_ref().map(|m| {
            (
                m.codec.as_str(),
                m.payload_type,
                m.event_payload_type,
                m.ptime_ms,
                m.remote_rtp.to_string(),
                m.remote_rtcp.port(),
                m.direction,
                m.on_hold,
            )
        });
        let expect = expect.as_ref().map(|e| (e.0, e.1, e.2, e.3, e.4.to_owned(), e.5, e.6, e.7));
        assert_eq!(got, expect, "{lines}");
    };
    use Direction::*;
    let c = "c=IN IP4 10.0.0.2\n";
    check(&format!("{c}m=audio 4000 RTP/AVP 8 0\n"), Ok(("PCMA", 8, None, 20, "10.0.0.2:4000", 4001, SendRecv, false)));
    check(
        &format!(
            "{c}m=audio 4000 RTP/AVP 96 97 98\na=rtpmap:96 opus/48000/2\na=rtpmap:97 pcmu/8000\na=rtpmap:98 telephone-event/8000\na=ptime:30\na=rtcp:5000\n"
        ),
        Ok(("PCMU", 97, Some(98), 30, "10.0.0.2:4000", 5000, SendRecv, false)),
    );
    check(
        "m=audio 4000 RTP/AVP 9\nc=IN IP6 2001:db8::1\na=rtcp-mux\na=sendonly\na=ptime:7\n",
        Ok(("G722", 9, None, 10, "[2001:db8::1]:4000", 4000, RecvOnly, true)),
    );
    check(
        &format!("{c}a=inactive\nm=audio 4000 RTP/AVPF 0\na=ptime:200\na=maxptime:40\n"),
        Ok(("PCMU", 0, None, 40, "10.0.0.2:4000", 4001, Inactive, true)),
    );
    check(
        "c=IN IP4 0.0.0.0\nm=audio 4000 RTP/AVP 0\n",
        Ok(("PCMU", 0, None, 20, "0.0.0.0:4000", 4001, RecvOnly, true)),
    );
    check(
        &format!("{c}m=video 7000 RTP/AVP 31\nm=audio 65535 RTP/AVP 0\n"),
        Ok(("PCMU", 0, None, 20, "10.0.0.2:65535", 1, SendRecv, false)),
    );
    check(
        &format!("{c}m=audio 4000 RTP/AVP 0\na=ptime:50\n"),
        Ok(("PCMU", 0, None, 50, "10.0.0.2:4000", 4001, SendRecv, false)),
    );
    check(
        &format!("{c}m=audio 4000 RTP/AVP 0\na=ptime:59\n"),
        Ok(("PCMU", 0, None, 50, "10.0.0.2:4000", 4001, SendRecv, false)),
    );
    check(&format!("{c}m=audio 0 RTP/AVP 0\n"), Err(Refusal::NoAudio));
    check(&format!("{c}m=audio 4000 RTP/SAVP 0\n"), Err(Refusal::NoAudio));
    check(&format!("{c}m=audio 4000 RTP/AVP 3 18\n"), Err(Refusal::NoCodec));
    check("m=audio 4000 RTP/AVP 0\n", Err(Refusal::NoAddress));
    check("m=audio x RTP/AVP 0\n", Err(Refusal::Malformed(5)));
}

#[test]
fn answers_are_read() {
    let ours = offer(1).session().to_string();
    let answer = "v=0\r\no=x 1 1 IN IP4 h\r\ns=-\r\nc=IN IP4 10.0.0.2\r\nt=0 0\r\nm=audio 4000 RTP/AVP 8 100\r\na=rtpmap:100 telephone-event/8000\r\n";
    let media = read_answer(&ours, answer).unwrap();
    assert_eq!((media.codec.as_str(), media.payload_type, media.event_payload_type), ("PCMA", 8, Some(100)));
    assert_eq!(read_answer(&ours, &answer.replace("4000", "0")), Err(Refusal::NoAudio));
    assert_eq!(read_answer(&ours, "v=0\r\n"), Err(Refusal::Malformed(2)));
    let expect = "m=audio 4000 RTP/AVP 0 8 9 101\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:8 PCMA/8000\r\na=rtpmap:9 G722/8000\r\n\
                  a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=ptime:20\r\na=maxptime:60\r\na=sendrecv\r\n";
    assert!(ours.ends_with(expect), "{ours}");
}

#[test]
fn dynamic_codecs_keep_their_own_numbers_clocks_and_events() {
    let opus = Codec { channels: 2, fmtp: "useinbandfec=1;stereo=0".into(), ..Codec::new("opus", 111, 48_000) };
    let ours = Offer {
        codecs: vec![opus, Codec::new("L16", 112, 16_000), Codec::pcmu()],
        events: vec![Codec::events(110, 48_000), Codec::events(101, 8000)],
        ..offer(1)
    };
    let offered = ours.session().to_string();
    assert!(offered.contains(
        "m=audio 4000 RTP/AVP 111 112 0 110 101\r\na=rtpmap:111 opus/48000/2\r\na=fmtp:111 useinbandfec=1;stereo=0\r\n"
    ));
    let answers = |lines: &str, expect: (&str, u32, u8, u8, Option<u8>, &str)| {
        let answer =
            format!("v=0\r\no=x 1 1 IN IP4 h\r\ns=-\r\nc=IN IP4 10.0.0.2\r\nt=0 0\r\n{}", lines.replace('\n', "\r\n"));
        let m = read_answer(&offered, &answer).unwrap();
        let got = (
            m.codec.as_str(),
            m.clock_rate_hz,
            m.payload_type,
            m.receive_payload_type,
            m.event_payload_type,
            m.fmtp.as_str(),
        );
        assert_eq!(got, expect, "{lines}");
        // The same description as an offer: the answer takes over its numbers.
        let (answer, m) = negotiate(&answer, &ours).unwrap();
        assert_eq!((m.codec.as_str(), m.payload_type, m.receive_payload_type), (expect.0, expect.2, expect.2));
        assert_eq!(m.receive_event_payload_type, m.event_payload_type);
        let numbers = [Some(expect.2), expect.4].into_iter().flatten().map(|number| number.to_string());
        assert_eq!(answer.media[0].formats, numbers.collect::<Vec<_>>());
    };
    answers(
        "m=audio 4000 RTP/AVP 96 97 98\na=rtpmap:96 OPUS/48000/2\na=fmtp:96 useinbandfec=1\na=rtpmap:97 telephone-event/8000\na=rtpmap:98 telephone-event/48000\n",
        ("opus", 48_000, 96, 111, Some(98), "useinbandfec=1"),
    );
    // Events of 8000 Hz go with every codec.
    answers(
        "m=audio 4000 RTP/AVP 96 101\na=rtpmap:96 opus/48000/2\na=rtpmap:101 telephone-event/8000\n",
        ("opus", 48_000, 96, 111, Some(101), ""),
    );
    answers(
        "m=audio 4000 RTP/AVP 99 112\na=rtpmap:99 L16/44100\na=rtpmap:112 L16/16000\n",
        ("L16", 16_000, 112, 112, None, ""),
    );
}

#[test]
fn the_route_of_a_call_is_followed() {
    let (mut stage, key, invite) = Scripted::calling(None);
    let answer = offer(2).session().to_string();
    let headers = [
        ("Contact", "<sip:bob@10.9.9.9>"),
        ("Record-Route", "<sip:10.0.0.8;lr>"),
        ("Record-Route", "<sip:10.0.0.7;lr>"),
    ];
    stage.reply(&invite, 200, "b", &headers, Some(&answer));
    let ack = stage.request(Method::Ack);
    assert_eq!(
        (ack.uri.as_str(), ack.headers.list("Route")),
        ("sip:bob@10.9.9.9", vec!["<sip:10.0.0.7;lr>", "<sip:10.0.0.8;lr>"])
    );
    assert_eq!(stage.last_to, "10.0.0.7:5060".parse().unwrap());
    stage.in_dialog(&invite, "UPDATE", 1, "Contact: <sip:x@10.0.0.2>\n\n");
    stage.response(200);
    stage.endpoint.hangup(stage.now, key, 16, "x");
    assert_eq!(stage.request(Method::Bye).uri, "sip:bob@10.0.0.2", "the first Contact of the UPDATE is the new target");
}

/// RFC 3261 8.2.3, 20.1: as for the INVITE of the call.
#[test]
fn a_body_that_one_side_does_not_read_changes_nothing() {
    for method in ["INVITE", "UPDATE"] {
        let (mut stage, _, invite) = Scripted::talking();
        stage.in_dialog(&invite, method, 1, "Content-Type: text/plain\n\nhold, please\n");
        assert_eq!(stage.response(415).headers.get("Accept"), Some("application/sdp"));
        let offer = sdp_body(&offer(2).session().to_string());
        stage.in_dialog(&invite, method, 2, &format!("Accept: text/plain\n{offer}"));
        assert_eq!(stage.response(406).headers.get("Accept"), Some("application/sdp"));
        assert!(stage.events.is_empty(), "{:?}", stage.events);
        stage.in_dialog(&invite, method, 3, &format!("Accept: text/plain, application/sdp\n{offer}"));
        stage.response(200);
    }
}
