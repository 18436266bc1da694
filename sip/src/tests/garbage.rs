//! What is not SIP, nearly SIP, or too much of it: nothing panics, nothing grows.

use super::Scripted;
use crate::message::Message;
use crate::parse::{MAX_HEADERS, MAX_MESSAGE_BYTES, parse};
use crate::sdp::{Session, negotiate};
use crate::testing::offer;
use crate::{ParseError, Time};

/// SplitMix64.
fn draw(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 20) as usize
}

/// Cuts, doubles and overwrites pieces of `text`.
fn mutate(state: &mut u64, text: &mut Vec<u8>) {
    const MARKS: &[u8] = b"\r\n :;,<>\"@=%\\[]()/?\0\xff9zv";
    for _ in 0..=draw(state) % 4 {
        if text.is_empty() {
            return;
        }
        let (at, length) = (draw(state) % text.len(), draw(state) % 20);
        let end = (at + length).min(text.len());
        match draw(state) % 4 {
            0 => drop(text.drain(at..end)),
            1 => text[at] = MARKS[draw(state) % MARKS.len()],
            2 => text.insert(at, MARKS[draw(state) % MARKS.len()]),
            _ => {
                let piece = text[at..end].to_vec();
                let to = draw(state) % text.len();
                text.splice(to..to, piece);
            }
        }
    }
}

#[test]
fn mutated_datagrams_never_panic() {
    let (mut stage, _, invite) = Scripted::talking();
    let mut answer = invite.respond(200, "", "b");
    answer.set_sdp(&offer(2).session().to_string());
    let mut bye = invite.clone();
    bye.headers.set("CSeq", "2 INVITE");
    let from = bye.headers.get("From").unwrap().to_owned();
    bye.headers.set("From", "<sip:bob@b.example>;tag=b");
    bye.headers.set("To", from);
    let mut challenge = invite.respond(401, "", "b");
    challenge.headers.push("WWW-Authenticate", "Digest realm=\"a\", nonce=\"b\", qop=\"auth\", algorithm=MD5");
    let corpus = [invite.to_bytes(), answer.to_bytes(), bye.to_bytes(), challenge.to_bytes()];
    let (mut state, mut read) = (42, 0);
    for n in 0..200_000u64 {
        let mut bytes = corpus[draw(&mut state) % corpus.len()].clone();
        mutate(&mut state, &mut bytes);
        if let Ok(message) = parse(&bytes) {
            read += 1;
            let printed = match &message {
                Message::Request(request) => request.to_bytes(),
                Message::Response(response) => response.to_bytes(),
            };
            assert!(parse(&printed).is_ok(), "seed 42, case {n}");
        }
        if n % 8 == 0 {
            stage.endpoint.receive(stage.now, stage.far, &bytes);
            stage.now = Time(stage.now.0 + 20_000_000);
            stage.endpoint.tick(stage.now);
            while stage.endpoint.poll().is_some() {}
        }
    }
    assert!(read > 100_000, "most mutants are still SIP: {read}");
    // Everything that they began ends.
    stage.wait(200_000);
    let end = stage.now;
    stage.wait(200_000);
    assert!(stage.endpoint.next_timer().is_none_or(|at| at > end), "nothing repeats for ever");
}

#[test]
fn mutated_descriptions_never_panic() {
    let mut state = 43;
    let text = offer(2).session().to_string() + "m=video 9 RTP/AVP 31\r\na=rtcp:1 IN IP4 1.1.1.1\r\na=maxptime:20\r\n";
    let mut answered = 0;
    for _ in 0..100_000 {
        let mut bytes = text.clone().into_bytes();
        mutate(&mut state, &mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        if let Ok((answer, _)) = negotiate(&text, &offer(1)) {
            answered += 1;
            assert!(Session::parse(&answer.to_string()).is_ok(), "{answer}");
        }
    }
    assert!(answered > 10_000, "{answered}");
}

#[test]
fn limits_hold() {
    let check = |bytes: &[u8], expect: Option<ParseError>| assert_eq!(parse(bytes).err(), expect);
    check(b"", Some(ParseError::NotSip));
    check(b"\r\n\r\n", Some(ParseError::NotSip));
    check(&[0, 1, 0, 8, 0x21, 0x12, 0xa4, 0x42], Some(ParseError::NotSip));
    check(b"GET / HTTP/1.1\r\n\r\n", Some(ParseError::NotSip));
    check(b"INVITE sip:a@b SIP/2.0\r\nVia: x\r\n", Some(ParseError::NotSip));
    check(b"SIP/2.0 99 Low\r\n\r\n", Some(ParseError::NotSip));
    check(&vec![b'a'; MAX_MESSAGE_BYTES + 1], Some(ParseError::TooLarge));
    let many = |n: usize| format!("OPTIONS sip:a@b SIP/2.0\r\n{}\r\n", "X: 1\r\n".repeat(n)).into_bytes();
    check(&many(MAX_HEADERS), None);
    check(&many(MAX_HEADERS + 1), Some(ParseError::TooLarge));
}

#[test]
fn values_cannot_become_headers() {
    let mut stage = Scripted::new();
    let mut invite = crate::testing::invite_to("sip:bob@b.example", stage.far);
    invite.headers = vec![
        ("X-A".into(), "1\r\nEvil: 2".into()),
        ("Bad Name".into(), "3".into()),
        ("X-B\r\nEvil".into(), "4".into()),
    ];
    invite.from_user = "a>\r\nEvil: 5".into();
    invite.from_display = Some("x\"\r\nEvil: 6".into());
    stage.endpoint.invite(stage.now, invite);
    let sent = stage.request(crate::Method::Invite);
    assert_eq!(sent.check(), Ok(()));
    assert!(sent.headers.iter().all(|h| h.name != "Evil" && h.name != "Bad Name"), "{:?}", sent.headers);
    assert_eq!(sent.headers.get("X-A"), Some("1  Evil: 2"));
}
