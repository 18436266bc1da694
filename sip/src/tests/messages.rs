//! Text messages outside of calls (RFC 3428).

use super::Scripted;
use crate::auth::Credentials;
use crate::message::Method;
use crate::messaging::{IncomingText, TextEvent, TextMessage, TextRefusal};
use crate::{Hop, Request, Transport, Uri};

fn text_to(places: &[u8], text: &str) -> TextMessage {
    TextMessage {
        target: Uri::parse("sip:+15550009999@b.example").expect("an address"),
        from: "\"Desk\" <sip:+15550001111@a.example>".into(),
        headers: vec![("Route".into(), "<sip:10.0.0.2;lr>".into())],
        text: text.into(),
        call_id: "m-1".into(),
        credentials: Some(Credentials { username: "u".into(), password: "p".into() }),
        places: places.iter().map(|host| Hop::udp(([10, 0, 0, *host], 5060).into())).collect(),
    }
}

fn outcome(stage: &mut Scripted) -> Option<Result<(), TextRefusal>> {
    match stage.endpoint.poll_text()? {
        TextEvent::Sent(_, done) => Some(done),
        other @ TextEvent::Incoming(_) => panic!("{other:?}"),
    }
}

fn came(stage: &mut Scripted) -> Option<IncomingText> {
    match stage.endpoint.poll_text()? {
        TextEvent::Incoming(text) => Some(*text),
        other @ TextEvent::Sent(..) => panic!("{other:?}"),
    }
}

#[test]
fn a_text_is_one_request_that_is_signed_when_it_is_asked_to() {
    let mut stage = Scripted::new();
    stage.endpoint.send_text(stage.now, text_to(&[2], "Grüße\r\nVia: x"));
    let first = stage.request(Method::Message);
    assert_eq!((first.uri.as_str(), first.headers.get("Call-ID")), ("sip:+15550009999@b.example", Some("m-1")));
    assert_eq!(first.headers.get("Content-Type"), Some("text/plain;charset=UTF-8"));
    assert_eq!((first.body.as_slice(), first.headers.get("Contact")), ("Grüße\r\nVia: x".as_bytes(), None));
    assert_eq!(first.headers.get("Route"), Some("<sip:10.0.0.2;lr>"));
    assert!(first.headers.from().is_ok_and(|from| !from.tag().is_empty() && from.uri.ends_with("@a.example")));
    stage.reply(&first, 407, "x", &[("Proxy-Authenticate", "Digest realm=\"r\", nonce=\"n\"")], None);
    let second = stage.request(Method::Message);
    assert!(second.headers.get("Proxy-Authorization").is_some_and(|value| value.contains("uri=\"sip:+15550009999@")));
    let seq = |request: &Request| request.headers.cseq().expect("a CSeq").seq;
    assert_eq!((seq(&second), second.headers.get("Call-ID")), (seq(&first) + 1, Some("m-1")));
    assert_eq!(outcome(&mut stage), None);
    stage.reply(&second, 202, "x", &[], None);
    assert_eq!(outcome(&mut stage), Some(Ok(())));
    // Its answer may be repeated.
    stage.reply(&second, 202, "x", &[], None);
    stage.wait(40_000);
    stage.quiet();
    assert!(outcome(&mut stage).is_none() && stage.endpoint.is_idle());
}

#[test]
fn a_text_that_is_not_taken_tells_why() {
    for (code, headers, text, retry_after_s) in [
        (404, &[][..], "404 Not Found", None),
        (480, &[("Retry-After", "7 (later)")], "480 Temporarily Unavailable", Some(7)),
        (401, &[("WWW-Authenticate", "Basic realm=\"r\"")], "401 Unauthorized", None),
        (503, &[], "503 Service Unavailable", None),
    ] {
        let mut stage = Scripted::new();
        stage.endpoint.send_text(stage.now, text_to(&[2], "Hi."));
        let request = stage.request(Method::Message);
        stage.reply(&request, 100, "", &[], None);
        stage.reply(&request, code, "x", headers, None);
        let expect = TextRefusal { code, is_answer: true, text: text.into(), retry_after_s, is_open: false };
        assert_eq!(outcome(&mut stage), Some(Err(expect)));
    }
    // Nobody answers: it may have been read.
    let mut stage = Scripted::new();
    stage.endpoint.send_text(stage.now, text_to(&[2, 3], "Hi."));
    stage.wait(31_900);
    assert_eq!((stage.sent.len(), outcome(&mut stage)), (11, None));
    stage.wait(200);
    let refused = outcome(&mut stage).expect("it is over").expect_err("nobody answered");
    assert!(refused.code == 408 && refused.is_open, "{refused:?}");
    // There is nowhere to send it to.
    stage.endpoint.send_text(stage.now, text_to(&[], "Hi."));
    assert!(outcome(&mut stage).is_some_and(|done| done.is_err_and(|refused| refused.code == 503 && !refused.is_open)));
}

#[test]
fn a_text_goes_to_the_next_place_where_it_was_certainly_not_taken() {
    let mut stage = Scripted::new();
    stage.endpoint.send_text(stage.now, text_to(&[2, 3, 4], "Hi."));
    let first = stage.request(Method::Message);
    stage.reply(&first, 503, "x", &[], None);
    stage.request(Method::Message);
    assert_eq!(stage.last_to, ([10, 0, 0, 3], 5060).into());
    stage.endpoint.unreachable(stage.now, &Hop::udp(([10, 0, 0, 3], 5060).into()));
    let third = stage.request(Method::Message);
    assert_eq!(stage.last_to, ([10, 0, 0, 4], 5060).into());
    stage.reply(&third, 200, "x", &[], None);
    assert_eq!(outcome(&mut stage), Some(Ok(())));
}

#[test]
fn a_request_over_datagrams_keeps_to_its_size() {
    let agent = "Ringer/0.1.0";
    let text = text_to(&[2], "");
    let room = text.room(agent).expect("datagrams have a limit");
    assert!((300..900).contains(&room), "{room}");
    let free = TextMessage { credentials: None, ..text.clone() }.room(agent).expect("a limit");
    assert!(free > room + 300, "{free} {room}");
    let mut stage = Scripted::new();
    stage.endpoint.send_text(stage.now, TextMessage { text: "x".repeat(room), ..text.clone() });
    let first = stage.request(Method::Message);
    let long = |size| "n".repeat(size);
    let challenge = format!(
        "Digest realm=\"{}\", nonce=\"{}\", opaque=\"{}\", algorithm=SHA-256, qop=\"auth\"",
        long(60),
        long(120),
        long(60)
    );
    stage.reply(&first, 407, "x", &[("Proxy-Authenticate", &challenge)], None);
    let signed = stage.request(Method::Message).to_bytes().len();
    assert!((1200..=1300).contains(&signed), "{signed}");
    let by_stream = vec![Hop::new(Transport::Tls, ([10, 0, 0, 2], 5061).into())];
    assert_eq!(TextMessage { places: by_stream, ..text }.room(agent), None);
}

#[test]
fn a_text_that_comes_is_told_once_and_answered_once() {
    let mut stage = Scripted::new();
    let body = "Content-Type: text/plain; charset=utf-8\nAuthorization: secret\n\nHello, Grüße";
    stage.caller_sends("MESSAGE", 1, "", body);
    assert_eq!(stage.response(405).headers.get("Allow").map(|allow| allow.contains("MESSAGE")), Some(true));
    stage.endpoint.take_texts();
    for _ in 0..3 {
        stage.caller_sends("MESSAGE", 2, "", body);
    }
    stage.quiet();
    let text = came(&mut stage).expect("it came");
    assert_eq!((text.text.as_str(), text.id.as_str()), ("Hello, Grüße", "c 2"));
    assert_eq!((text.from.as_str(), text.to.as_str()), ("sip:bob@b.example", "sip:alice@a.example"));
    assert!(text.headers.iter().all(|(name, _)| name != "Authorization"));
    assert_eq!(came(&mut stage), None);
    stage.endpoint.answer_text(stage.now, &text.key, 200);
    let answer = stage.response(200);
    assert!(answer.headers.to().is_ok_and(|to| !to.tag().is_empty()));
    // It was lost.
    stage.caller_sends("MESSAGE", 2, "", body);
    assert_eq!((stage.response(200), came(&mut stage)), (answer, None));
    // The first answer is the answer.
    stage.endpoint.answer_text(stage.now, &text.key, 500);
    stage.quiet();
    stage.wait(33_000);
    assert!(stage.endpoint.is_idle());
}

#[test]
fn a_text_of_another_kind_is_refused_with_the_kinds_that_are_taken() {
    for (rest, expect) in [
        ("\nplain by default", Ok("plain by default")),
        ("Content-Type: TEXT/Plain;charset=\"us-ascii\"\n\nold", Ok("old")),
        ("Content-Type: text/plain\nContent-Length: 0\n\n", Ok("")),
        ("Content-Type: text/html\n\n<p>", Err(415)),
        ("Content-Type: message/cpim\n\nx", Err(415)),
        ("Content-Type: text/plain;charset=utf-16\n\nx", Err(415)),
        ("Content-Encoding: gzip\n\nx", Err(415)),
        ("Require: recipient-list-message\n\nx", Err(420)),
    ] {
        let mut stage = Scripted::new();
        stage.endpoint.take_texts();
        stage.caller_sends("MESSAGE", 1, "", rest);
        match expect {
            Ok(text) => assert_eq!(came(&mut stage).map(|text| text.text).as_deref(), Some(text), "{rest}"),
            Err(code) => {
                let answer = stage.response(code);
                let accepts = answer.headers.get("Accept") == Some("text/plain");
                assert!(accepts == (code == 415) && came(&mut stage).is_none(), "{rest}");
            }
        }
    }
    // Too long a text, which the answer does not name another kind for.
    let mut stage = Scripted::new();
    stage.endpoint.take_texts();
    stage.caller_sends("MESSAGE", 1, "", &format!("\n{}", "x".repeat(16_385)));
    stage.response(413);
    // No text at all: bytes that are no UTF-8.
    let mut stage = Scripted::new();
    stage.endpoint.take_texts();
    let head = "MESSAGE sip:alice@10.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.0.2;branch=z9hG4bK7;rport\r\n\
                From: <sip:bob@b.example>;tag=b\r\nTo: <sip:alice@a.example>\r\nCall-ID: c\r\nCSeq: 1 MESSAGE\r\n\r\n";
    let bytes = [head.as_bytes(), &[0xff, 0xfe]].concat();
    stage.endpoint.receive(stage.now, stage.from(), &bytes);
    stage.response(415);
}
