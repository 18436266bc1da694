//! Bytes that are not SIP, nearly SIP, or too much of it: nothing panics, nothing grows.

use super::{Scripted, sdp_body};
use crate::message::{Message, Request};
use crate::parse::{MAX_HEADERS, MAX_MESSAGE_BYTES, parse};
use crate::sdp::{Session, negotiate};
use crate::testing::offer;
use crate::{CallEvent, ConnectionId, Hop, ParseError, Time, Transport};

/// Returns the next pseudo-random number (SplitMix64).
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
            stage.endpoint.receive(stage.now, Hop::udp(stage.far), &bytes);
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

/// Does what an owner may do at each event, and lets what was sent go.
fn owner_acts(stage: &mut Scripted) {
    stage.sent.clear();
    let own = offer(1).session().to_string();
    for event in std::mem::take(&mut stage.events) {
        let Some(key) = stage.last_call else { return };
        match event {
            CallEvent::Offered { sdp, .. } => {
                if let Ok((answer, _)) = negotiate(&sdp, &offer(1)) {
                    stage.endpoint.answer_offer(stage.now, key, answer.to_string());
                }
            }
            CallEvent::Transfer { .. } => stage.endpoint.accept_transfer(stage.now, key),
            CallEvent::Provisional { .. } => {
                stage.endpoint.update(stage.now, key, Some(own.clone()));
            }
            CallEvent::RingConfirmed { .. } => {
                stage.endpoint.update(stage.now, key, Some(own.clone()));
                stage.endpoint.answer(stage.now, key, own.clone());
            }
            CallEvent::Renegotiated { .. } => {
                stage.endpoint.reinvite(stage.now, key, own.clone());
            }
            _ => {}
        }
    }
    stage.pump();
}

/// Returns responses that another side may send to an INVITE of this side.
fn far_responses(invite: &Request, sdp: &str) -> Vec<String> {
    let contact = "Contact: <sip:bob@10.0.0.2>\n";
    let all = [
        (183, format!("Require: 100rel\nRSeq: 1\n{contact}{sdp}")),
        (180, format!("{contact}\n")),
        (401, "WWW-Authenticate: Digest realm=\"a\", nonce=\"b\", qop=\"auth\"\n\n".to_owned()),
        (422, "Min-SE: 200\n\n".to_owned()),
        (200, format!("Session-Expires: 90;refresher=uac\nAllow: UPDATE\n{contact}{sdp}")),
    ];
    let text = |(code, rest): (u16, String)| {
        let head = String::from_utf8(invite.respond(code, "", "b").to_bytes()).unwrap();
        head.replace("Content-Length: 0\r\n\r\n", &rest.replace('\n', "\r\n"))
    };
    all.into_iter().map(text).collect()
}

/// Returns requests that another side may send in the dialog of these From, To and Call-ID lines.
fn far_requests(dialog: &str, rseq: &str, sdp: &str) -> Vec<String> {
    let all = [
        ("PRACK", format!("RAck: {rseq} 1 INVITE\n{sdp}")),
        ("ACK", sdp.to_owned()),
        ("UPDATE", format!("Supported: timer\nSession-Expires: 95;refresher=uac\n{sdp}")),
        ("INVITE", sdp.to_owned()),
        ("REFER", "Refer-To: <sip:c@d>\n\n".to_owned()),
        ("BYE", "\n".to_owned()),
    ];
    let text = |(seq, (method, rest)): (u32, (&str, String))| {
        format!(
            "{method} sip:alice@10.0.0.1 SIP/2.0\nVia: SIP/2.0/UDP 10.0.0.2;branch=z9hG4bK{method};rport\n{dialog}\
             CSeq: {seq} {method}\nContact: <sip:bob@10.0.0.2>\nMax-Forwards: 70\n{rest}"
        )
        .replace('\n', "\r\n")
    };
    (2..).zip(all).map(text).collect()
}

/// Begins a call either way, with an offer or without. Returns the messages that the other side may send in it.
fn begin_dialog(stage: &mut Scripted, calls: bool, offers: bool) -> Vec<String> {
    let sdp = sdp_body(&offer(2).session().to_string());
    if calls {
        let mut invite = crate::testing::invite_to("sip:bob@b.example", stage.far);
        (invite.username, invite.password) = (Some("u".into()), Some("secret".into()));
        if let Some(way) = &stage.way {
            invite.destination = Hop { connection: None, ..way.clone() };
            invite.alternatives = vec![Hop::udp(stage.far)];
        }
        invite.sdp = if offers { invite.sdp } else { String::new() };
        stage.endpoint.invite(stage.now, invite);
        let invite = stage.request(crate::Method::Invite);
        let field = |name: &str| invite.headers.get(name).unwrap();
        let dialog = format!("From: <sip:bob@b.example>;tag=b\nTo: {}\nCall-ID: {}\n", field("From"), field("Call-ID"));
        return [far_responses(&invite, &sdp), far_requests(&dialog, "1", &sdp)].concat();
    }
    let body = if offers { sdp.as_str() } else { "\n" };
    stage.caller_sends("INVITE", 1, "", &format!("Require: 100rel\nSupported: timer\nx: 90\n{body}"));
    let key = stage.last_call.expect("a call came in");
    stage.endpoint.ring(stage.now, key, 183, Some(offer(1).session().to_string()));
    stage.response(100);
    let ringing = stage.response(183);
    let (to, rseq) = (ringing.headers.get("To").unwrap(), ringing.headers.get("RSeq").unwrap());
    far_requests(&format!("From: <sip:bob@b.example>;tag=b\nTo: {to}\nCall-ID: c\n"), rseq, &sdp)
}

/// Early dialogs, PRACK, UPDATE, session timers, challenges and transfers, as caller and as answerer.
#[test]
fn mutated_dialogs_never_panic_and_end() {
    dialogs_end(44, false);
}

/// The same over connections that are closed and refused at any time.
#[test]
fn mutated_dialogs_over_connections_never_panic_and_end() {
    dialogs_end(45, true);
}

/// Draws the way of the other side's next messages, and whether a connection closes or a place becomes unreachable.
fn connections_act(state: &mut u64, stage: &mut Scripted) {
    let transport = Transport::ALL[draw(state) % 3];
    let connection = transport.is_reliable().then_some(ConnectionId(draw(state) as u64 % 3));
    stage.way = Some(Hop { connection, ..Hop::new(transport, stage.far) });
    match draw(state) % 4 {
        0 => stage.endpoint.connection_lost(stage.now, ConnectionId(draw(state) as u64 % 3)),
        1 => {
            let hop = stage.last_hop.clone();
            stage.endpoint.unreachable(stage.now, &hop);
        }
        _ => {}
    }
    stage.pump();
}

fn dialogs_end(mut state: u64, streams: bool) {
    let mut talked = 0;
    for case in 0..1_500 {
        let mut stage = if streams { Scripted::speaking_all() } else { Scripted::new() };
        if streams {
            connections_act(&mut state, &mut stage);
        }
        stage.endpoint.ask_session_interval((case % 5 != 0).then_some(90));
        let corpus = begin_dialog(&mut stage, case % 2 == 0, case % 3 != 0);
        for _ in 0..30 {
            let mut bytes = corpus[draw(&mut state) % corpus.len()].clone().into_bytes();
            if !draw(&mut state).is_multiple_of(3) {
                mutate(&mut state, &mut bytes);
            }
            stage.endpoint.receive(stage.now, Hop::udp(stage.far), &bytes);
            stage.pump();
            talked += stage.events.len();
            owner_acts(&mut stage);
            if streams {
                connections_act(&mut state, &mut stage);
            }
            stage.wait(draw(&mut state) as u64 % 8_000);
        }
        let key = stage.last_call.expect("a call began");
        stage.endpoint.hangup(stage.now, key, 16, "x");
        stage.wait(900_000);
        assert!(stage.endpoint.next_timer().is_none() && stage.endpoint.is_idle(), "case {case}: something is left");
    }
    assert!(talked > 3_000, "the calls went on: {talked} events");
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
