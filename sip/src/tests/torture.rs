//! Messages of RFC 4475, with the disposition that it asks of a user agent.

use super::Scripted;
use crate::header::NameAddr;
use crate::message::{Message, Method, Request, sdp_of};
use crate::parse::parse;
use crate::uri::Uri;
use crate::{CallEvent, Hop};

const SDP: &str = "v=0\no=mhandley 29739 7272939 IN IP4 192.0.2.3\ns=-\nc=IN IP4 192.0.2.4\nt=0 0\nm=audio 49217 RTP/AVP 0 12\n\
                   m=video 3227 RTP/AVP 31\na=rtpmap:31 LPC\n";

/// Returns the bytes with CRLF, and with a body of 150 bytes for `@SDP`.
fn bytes(text: &str) -> Vec<u8> {
    text.replace("@SDP", SDP).replace('\n', "\r\n").into_bytes()
}

fn request(bytes: &[u8]) -> Request {
    match parse(bytes) {
        Ok(Message::Request(request)) => request,
        other => panic!("{other:?}"),
    }
}

/// Reads a message of RFC 4475, byte for byte: `fixtures/sip/torture/NAME.dat`.
fn rfc4475(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/sip/torture");
    std::fs::read(format!("{folder}/{name}.dat")).expect("the message is there")
}

/// Names of all messages of RFC 4475, each with its answer: `fixtures/sip/torture/expect.txt`.
fn answers() -> Vec<(&'static str, &'static str)> {
    let table = include_str!("../../../fixtures/sip/torture/expect.txt");
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' ').zip(line.rsplit_once(' '))).map(|(a, b)| (a.0, b.1)).collect()
}

#[test]
fn wsinv() {
    let request = request(&rfc4475("wsinv"));
    assert_eq!((request.check(), request.body.len()), (Ok(()), 150));
    assert_eq!(request.headers.iter().count(), 14);
    assert_eq!(request.headers.to().unwrap().tag(), "1918181833n");
    let from = request.headers.from().unwrap();
    assert_eq!(
        (from.display.as_deref(), from.tag(), from.uri.as_str()),
        (Some("J Rosenberg \\\""), "98asjd8", "sip:jdrosen@example.com")
    );
    let cseq = request.headers.cseq().unwrap();
    assert_eq!((cseq.seq, cseq.method), (9, Method::Invite));
    let vias: Vec<_> = request.headers.list("Via").into_iter().map(|v| crate::header::Via::parse(v).unwrap()).collect();
    let hosts: Vec<_> = vias.iter().map(|v| (v.transport.as_str(), v.host.as_str(), v.branch())).collect();
    let expect = [
        ("UDP", "192.0.2.2", "390skdjuw"),
        ("TCP", "spindle.example.com", "z9hG4bK9ikj8"),
        ("UDP", "192.168.255.111", "z9hG4bK30239"),
    ];
    assert_eq!(hosts, expect);
    assert_eq!(request.headers.get("newfangledheader"), Some("newfangled value continued newfangled value"));
    assert_eq!(request.headers.get("UnknownHeaderWithUnusualValue"), Some(";;,,;;,;"));
    assert_eq!(request.headers.get("Subject"), Some(""));
    let contact = NameAddr::parse(request.headers.get("Contact").unwrap()).unwrap();
    assert_eq!(
        (contact.display.as_deref(), contact.params.get("newparam"), contact.params.get("q")),
        (Some("Quoted string \"\""), Some("newvalue"), Some("0.33"))
    );
    let route = NameAddr::parse(request.headers.get("Route").unwrap()).unwrap();
    assert!(Uri::parse(&route.uri).unwrap().params.has("lr"));
}

#[test]
fn intmeth() {
    let request = request(&rfc4475("intmeth"));
    assert_eq!(request.check(), Ok(()));
    assert_eq!(request.method, Method::Other("!interesting-Method0123456789_*+`.%indeed'~".into()));
    let uri = Uri::parse(&request.uri).unwrap();
    assert_eq!(uri.user.as_deref(), Some("1_unusual.URI~(to-be!sure)&isn't+it$/crazy?,/;;*"));
    assert_eq!(
        (uri.password.as_deref(), uri.host.as_str()),
        (Some("&it+has=1,weird!*pas$wo~d_too.(doesn't-it)"), "example.com")
    );
    assert_eq!(request.headers.to().unwrap().display.as_deref(), Some("BEL:\u{7} NUL:\0 DEL:\u{7f}"));
    let from = request.headers.from().unwrap();
    assert_eq!(
        (from.tag(), from.params.get("fromParam''~+*_!.-%")),
        ("_token~1'+`*%!-.", Some("\u{440}\u{430}\u{431}\u{43e}\u{442}\u{430}\u{44e}\u{449}\u{438}\u{439}"))
    );
    assert_eq!(request.headers.get("extensionHeader-!.%*+_`'~"), Some("\u{feff}\u{5927}\u{505c}\u{96fb}"));
}

#[test]
fn escapes_are_kept() {
    let request1 = request(&rfc4475("esc01"));
    assert_eq!(request1.check(), Ok(()));
    assert_eq!(Uri::parse(&request1.uri).unwrap().user.as_deref(), Some("sips%3Auser%40example.com"));
    assert!(!Uri::parse(&crate::dialog::contact(&request1.headers).unwrap()).unwrap().params.has("lr"));
    let escnull = request(&rfc4475("escnull"));
    assert_eq!((escnull.check(), escnull.headers.list("Contact").len()), (Ok(()), 2));
    let esc02 = request(&rfc4475("esc02"));
    assert_eq!((esc02.check(), esc02.headers.list("Contact").len()), (Ok(()), 2));
    assert_eq!(esc02.method, Method::Other("RE%47IST%45R".into()));
}

#[test]
fn longreq() {
    let request = request(&rfc4475("longreq"));
    assert_eq!((request.check(), request.body.len()), (Ok(()), 150));
    assert_eq!(request.headers.list("Via").len(), 34);
    assert_eq!(request.headers.from().unwrap().tag(), format!("12{}424", "982".repeat(50)));
    assert_eq!(Uri::parse(&request.headers.to().unwrap().uri).unwrap().port, Some(6000));
}

#[test]
fn odd_but_valid() {
    let lwsdisp = request(&rfc4475("lwsdisp"));
    assert_eq!((lwsdisp.check(), lwsdisp.headers.from().unwrap().display.as_deref()), (Ok(()), Some("caller")));
    let semiuri = request(&rfc4475("semiuri"));
    assert_eq!((semiuri.check(), semiuri.headers.list("Accept").len()), (Ok(()), 6));
    assert_eq!(Uri::parse(&semiuri.uri).unwrap().user.as_deref(), Some("user;par=u%40example.net"));
    let dblreq = request(&rfc4475("dblreq"));
    assert_eq!((dblreq.check(), dblreq.body.len(), dblreq.headers.iter().count()), (Ok(()), 0, 8));
    let mpart01 = request(&rfc4475("mpart01"));
    assert_eq!((mpart01.check(), mpart01.body.len()), (Ok(()), 553));
    assert!(mpart01.body.ends_with(b"\r\n--7a9cbec02ceef655--\r\n") && mpart01.body.contains(&0));
}

#[test]
fn responses_with_unusual_reasons() {
    let rest = "Via: SIP/2.0/UDP 192.0.2.105;branch=z9hG4bK2398ndaoe\nCall-ID: x\nCSeq: 35 INVITE\n\
                From: <sip:user@example.com>;tag=39ansfi3\nTo: <sip:user@example.edu>;tag=902jndnke3\nContent-Length: 0\n\n";
    let check = |line: &str, expect: (u16, &str)| match parse(&bytes(&format!("{line}\n{rest}"))) {
        Ok(Message::Response(response)) => {
            assert_eq!((response.code, response.reason.as_str()), expect);
            assert_eq!(response.check(), Ok(()));
            assert_eq!(parse(&response.to_bytes()), Ok(Message::Response(response)));
        }
        other => panic!("{other:?}"),
    };
    check("SIP/2.0 100 ", (100, ""));
    check(
        "SIP/2.0 200 = 2**3 * 5**2 \u{43d}\u{43e} \u{441}\u{442}\u{43e}",
        (200, "= 2**3 * 5**2 \u{43d}\u{43e} \u{441}\u{442}\u{43e}"),
    );
    assert!(parse(&bytes(&format!("SIP/2.0 4294967301 better not break the receiver\n{rest}"))).is_err());
}

#[test]
fn bytes_that_are_not_utf8_come_back_as_they_were() {
    let mut text =
        b"OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\nFrom: \"Andr\xe9\" <sip:a@b>;tag=1\r\n"
            .to_vec();
    text.extend_from_slice(
        b"To: <sip:c@d>\r\nX-After: yes\r\nCall-ID: x\r\nCSeq: 1 OPTIONS\r\n\r\nbody without a length",
    );
    let request = request(&text);
    assert_eq!((request.check(), request.headers.get("X-After")), (Ok(()), Some("yes")));
    assert_eq!(request.headers.from().unwrap().display.as_deref(), Some("Andr\u{e9}"));
    assert_eq!(request.body, b"body without a length");
    let printed = request.respond(200, "", "t").to_bytes();
    assert!(printed.windows(5).any(|w| w == b"Andr\xe9"), "the byte is one byte again");
}

#[test]
fn sdp_is_found_in_a_multipart_body() {
    let invite = request(&bytes(
        "INVITE sip:a@b SIP/2.0\nContent-Type: multipart/mixed; boundary=\"b1\"\n\n--b1\nContent-Type: application/isup\n\nx\n\
         --b1\nContent-Type: application/sdp\n\nv=0\ns=-\n--b1--\n",
    ));
    assert_eq!(sdp_of(&invite.headers, &invite.body).as_deref(), Some("v=0\r\ns=-\r\n"));
}

/// Checks the code of the first answer to a good message with this first line and changed fields. A change is another
/// value; "" removes the field; a name with a plus adds one.
fn check(name: &str, line: &str, changed: &[(&str, &str)], expect: u16) {
    let cseq = format!("8 {}", line.split(' ').next().unwrap());
    let fields = [
        ("Via", "SIP/2.0/UDP 192.0.2.15;branch=z9hG4bKkdjuw"),
        ("Max-Forwards", "70"),
        ("To", "sip:j.user@example.com"),
        ("From", "sip:caller@example.net;tag=134161461246"),
        ("Call-ID", "0ha0isndaksdjasdf3234nas"),
        ("CSeq", &cseq),
        ("Content-Type", "application/sdp"),
        ("Content-Length", "150"),
    ];
    let mut text = format!("{line}\n");
    for (field, value) in fields {
        match changed.iter().find(|(name, _)| *name == field) {
            Some((_, "")) => {}
            Some((_, other)) => text.push_str(&format!("{field}: {other}\n")),
            None => text.push_str(&format!("{field}: {value}\n")),
        }
    }
    for (field, value) in changed.iter().filter(|(name, _)| name.starts_with('+')) {
        text.push_str(&format!("{}: {value}\n", &field[1..]));
    }
    let mut stage = Scripted::new();
    stage.hears(&format!("{text}\n{SDP}"));
    match stage.sent.first() {
        Some(Message::Response(response)) => assert_eq!(response.code, expect, "{name}"),
        other => panic!("{name}: {other:?}"),
    }
}

/// Every message of the RFC to an endpoint of its own.
#[test]
fn every_message_has_its_answer() {
    let expected = answers();
    assert_eq!(expected.len(), 49);
    let seen = expected.iter().map(|(name, _)| {
        let mut stage = Scripted::new();
        stage.endpoint.receive(stage.now, Hop::udp(stage.far), &rfc4475(name));
        stage.pump();
        let code = stage.sent.first().map(|first| match first {
            Message::Response(response) => response.code,
            Message::Request(request) => panic!("{name}: {request:?}"),
        });
        let is_call = matches!(stage.events[..], [CallEvent::Incoming { .. }]);
        match code {
            None if stage.events.is_empty() => (*name, "silent".to_owned()),
            Some(100) if is_call => (*name, "call".to_owned()),
            code => (*name, format!("{}", code.unwrap_or_default())),
        }
    });
    let seen: Vec<_> = seen.collect();
    assert_eq!(seen, expected.into_iter().map(|(name, answer)| (name, answer.to_owned())).collect::<Vec<_>>());
}

/// Without what makes it unique, a branch names no transaction (RFC 4475 3.2.1).
#[test]
fn a_branch_that_names_nothing_is_not_relied_on() {
    let mut stage = Scripted::new();
    let first = String::from_utf8(rfc4475("badbranch")).unwrap();
    let others = [("CSeq: 8 ", "CSeq: 9 "), ("badbranch.sad", "other.sad"), ("tag=33242", "tag=7")];
    for text in std::iter::once(first.clone()).chain(others.map(|(from, to)| first.replace(from, to))) {
        stage.endpoint.receive(stage.now, Hop::udp(stage.far), text.as_bytes());
        let answer = stage.response(200);
        assert!(text.contains(answer.headers.call_id().unwrap()), "{answer:?}");
        assert!(text.contains(&format!("CSeq: {} ", answer.headers.cseq().unwrap().seq)), "{answer:?}");
        assert!(text.contains(answer.headers.from().unwrap().tag()), "{answer:?}");
    }
    stage.endpoint.receive(stage.now, Hop::udp(stage.far), first.as_bytes());
    stage.response(200);
}

#[test]
fn dispositions() {
    let invite = "INVITE sip:user@example.com SIP/2.0";
    check("valid", invite, &[], 100);
    check("badinv01", invite, &[("Via", "SIP/2.0/UDP 192.0.2.15;;,;,,")], 400);
    check("clerr", invite, &[("Content-Length", "9999")], 400);
    check("ncl", invite, &[("Content-Length", "-999")], 400);
    check(
        "scalar02",
        "REGISTER sip:example.com SIP/2.0",
        &[("CSeq", "36893488147419103232 REGISTER"), ("Max-Forwards", "300")],
        400,
    );
    check("quotbal", invite, &[("To", "\"Mr. J. User <sip:j.user@example.com>")], 400);
    check("ltgtruri", "INVITE <sip:user@example.com> SIP/2.0", &[], 400);
    check("lwsruri", "INVITE sip:user@example.com; lr SIP/2.0", &[], 400);
    check("lwsstart", "INVITE  sip:user@example.com  SIP/2.0", &[], 400);
    check("trws", "OPTIONS sip:remote-target@example.com SIP/2.0  ", &[], 200);
    check("escruri", "INVITE sip:user@example.com?Route=%3Csip:example.com%3E SIP/2.0", &[], 400);
    check("baddate", invite, &[("+Date", "Fri, 01 Jan 2010 16:00:00 EST")], 100);
    check(
        "version of Via",
        "OPTIONS sip:user@example.com SIP/2.0",
        &[("Via", "SIP/7.0/UDP 192.0.2.15;branch=z9hG4bKk")],
        400,
    );
    check("badvers", "OPTIONS sip:t.watson@example.org SIP/7.0", &[], 505);
    check("mismatch01", "OPTIONS sip:user@example.com SIP/2.0", &[("CSeq", "8 INVITE")], 400);
    check("mismatch02", "NEWMETHOD sip:user@example.com SIP/2.0", &[("CSeq", "8 INVITE")], 400);
    check("badbranch", "OPTIONS sip:user@example.com SIP/2.0", &[("Via", "SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK")], 200);
    check("insuf", invite, &[("Call-ID", ""), ("From", ""), ("To", "")], 400);
    check("unkscm", "OPTIONS nobodyKnowsThisScheme:totallyopaquecontent SIP/2.0", &[], 416);
    check("novelsc", "OPTIONS soap.beep://192.0.2.103:3002 SIP/2.0", &[], 416);
    check(
        "unksm2",
        "OPTIONS sip:example.com SIP/2.0",
        &[("To", "isbn:2983792873"), ("From", "<http://www.example.com>;tag=3234233")],
        200,
    );
    check(
        "bext01",
        "OPTIONS sip:user@example.com SIP/2.0",
        &[("+Require", "nothingSupportsThis, nothingSupportsThisEither")],
        420,
    );
    check("invut", invite, &[("Content-Type", "application/unknownformat")], 415);
    check("multi01", invite, &[("+CSeq", "59 INVITE"), ("+Call-ID", "multi01.98asdh@192.0.2.2")], 400);
    check("mcl01", invite, &[("+Content-Length", "5")], 400);
    check("zeromf", "OPTIONS sip:user@example.com SIP/2.0", &[("Max-Forwards", "0")], 200);
    check(
        "cparam02",
        "OPTIONS sip:user@example.com SIP/2.0",
        &[("+Contact", "<sip:user@192.0.2.1;transport=udp>;unknown")],
        200,
    );
    check(
        "inv2543",
        "INVITE sip:UserB@example.com SIP/2.0",
        &[("Via", "SIP/2.0/UDP 135.180.130.133"), ("Max-Forwards", "")],
        100,
    );
}

/// Addresses of IPv6 in requests (RFC 5118 4).
#[test]
fn ipv6_references() {
    let to = |line: &str, via: &str, expect: u16| check(line, line, &[("Via", via)], expect);
    let plain = "SIP/2.0/UDP [2001:db8::9:1];branch=z9hG4bKas3-111";
    to("OPTIONS sip:[2001:db8::10] SIP/2.0", plain, 200);
    to("OPTIONS sip:2001:db8::10 SIP/2.0", plain, 400);
    to("OPTIONS sip:[2001:db8::10:5070] SIP/2.0", plain, 200);
    to("OPTIONS sip:[2001:db8::10]:5070 SIP/2.0", plain, 200);
    to("OPTIONS sip:[::ffff:192.0.2.2] SIP/2.0", plain, 200);
    to(
        "OPTIONS sip:[2001:db8::10] SIP/2.0",
        "SIP/2.0/UDP [2001:db8::9:1]:6050;received=[2001:db8::9:255];branch=z9hG4bKas3-111",
        200,
    );
    to(
        "OPTIONS sip:[2001:db8::10] SIP/2.0",
        "SIP/2.0/UDP [2001:db8::9:1];received=2001:db8::9:255;branch=z9hG4bKas3",
        200,
    );
    assert_eq!(Uri::parse("sip:[2001:db8::10:5070]").unwrap().socket(), "[2001:db8::10:5070]:5060".parse().ok());
    assert_eq!(Uri::parse("sip:a@[2001:db8::10]:5070").unwrap().socket(), "[2001:db8::10]:5070".parse().ok());
}
