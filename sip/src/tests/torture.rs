//! Messages of RFC 4475, with the disposition that it asks of a user agent.

use super::Scripted;
use crate::header::NameAddr;
use crate::message::{Message, Method, Request, sdp_of};
use crate::parse::parse;
use crate::uri::Uri;

const SDP: &str = "v=0\no=mhandley 29739 7272939 IN IP4 192.0.2.3\ns=-\nc=IN IP4 192.0.2.4\nt=0 0\nm=audio 49217 RTP/AVP 0 12\n\
                   m=video 3227 RTP/AVP 31\na=rtpmap:31 LPC\n";

/// With CRLF, and `@SDP` for a body of 150 bytes.
fn bytes(text: &str) -> Vec<u8> {
    text.replace("@SDP", SDP).replace('\n', "\r\n").into_bytes()
}

fn request(bytes: &[u8]) -> Request {
    match parse(bytes) {
        Ok(Message::Request(request)) => request,
        other => panic!("{other:?}"),
    }
}

const WSINV: &str = concat!(
    "INVITE sip:vivekg@chair-dnrc.example.com;unknownparam SIP/2.0\nTO :\n sip:vivekg@chair-dnrc.example.com ;   tag    = 1918181833n\n",
    "from   : \"J Rosenberg \\\\\\\"\"       <sip:jdrosen@example.com>\n  ;\n  tag = 98asjd8\nMaX-fOrWaRdS: 0068\n",
    "Call-ID: wsinv.ndaksdj@192.0.2.1\nContent-Length   : 150\ncseq: 0009\n  INVITE\nVia  : SIP  /   2.0\n /UDP\n",
    "    192.0.2.2;branch=390skdjuw\ns :\nNewFangledHeader:   newfangled value\n continued newfangled value\n",
    "UnknownHeaderWithUnusualValue: ;;,,;;,;\nContent-Type: application/sdp\nRoute:\n",
    " <sip:services.example.com;lr;unknownwith=value;unknown-no-value>\nv:  SIP  / 2.0  / TCP     spindle.example.com   ;\n",
    "  branch  =   z9hG4bK9ikj8  ,\n SIP  /    2.0   / UDP  192.168.255.111   ; branch=\n z9hG4bK30239\n",
    "m:\"Quoted string \\\"\\\"\" <sip:jdrosen@example.com> ; newparam =\n      newvalue ;\n  secondparam ; q = 0.33\n\n@SDP",
);

#[test]
fn wsinv() {
    let request = request(&bytes(WSINV));
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
    let mut text = Vec::new();
    for part in [
        &b"!interesting-Method0123456789_*+`.%indeed'~ sip:1_unusual.URI~(to-be!sure)&isn't+it$/crazy?,/;;*:&it+has=1,weird!*pas$wo~d_too.(doesn't-it)@example.com SIP/2.0\r\n"[..],
        b"Via: SIP/2.0/TCP host1.example.com;branch=z9hG4bK-.!%66*_+`'~\r\n",
        b"To: \"BEL:\\\x07 NUL:\\\x00 DEL:\\\x7f\" <sip:1_unusual.URI~(to-be!sure)&isn't+it$/crazy?,/;;*@example.com>\r\n",
        b"From: token1~` token2'+_ token3*%!.- <sip:mundane@example.com>;fromParam''~+*_!.-%=\"\xd1\x80\xd0\xb0\xd0\xb1\";tag=_token~1'+`*%!-.\r\n",
        b"Call-ID: intmeth.word%ZK-!.*_+'@word`~)(><:\\/\"][?}{\r\nCSeq: 139122385 !interesting-Method0123456789_*+`.%indeed'~\r\n",
        b"Max-Forwards: 255\r\nextensionHeader-!.%*+_`'~:\xef\xbb\xbf\xe5\xa4\xa7\xe5\x81\x9c\xe9\x9b\xbb\r\nContent-Length: 0\r\n\r\n",
    ] {
        text.extend_from_slice(part);
    }
    let request = request(&text);
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
        ("_token~1'+`*%!-.", Some("\u{440}\u{430}\u{431}"))
    );
    assert_eq!(request.headers.get("extensionHeader-!.%*+_`'~"), Some("\u{feff}\u{5927}\u{505c}\u{96fb}"));
}

#[test]
fn escapes_are_kept() {
    let esc01 = bytes(
        "INVITE sip:sips%3Auser%40example.com@example.net SIP/2.0\nTo: sip:%75se%72@example.com\n\
         From: <sip:I%20have%20spaces@example.net>;tag=938\nMax-Forwards: 87\ni: esc01.239409asdfakjkn23onasd0-3234\n\
         CSeq: 234234 INVITE\nVia: SIP/2.0/UDP host5.example.net;branch=z9hG4bKkdjuw\nC: application/sdp\nContact:\n  \
         <sip:cal%6Cer@host5.example.net;%6C%72;n%61me=v%61lue%25%34%31>\nContent-Length: 150\n\n@SDP",
    );
    let request1 = request(&esc01);
    assert_eq!(request1.check(), Ok(()));
    assert_eq!(Uri::parse(&request1.uri).unwrap().user.as_deref(), Some("sips%3Auser%40example.com"));
    assert!(!Uri::parse(&crate::dialog::contact(&request1.headers).unwrap()).unwrap().params.has("lr"));
    let escnull = request(&bytes(
        "REGISTER sip:example.com SIP/2.0\nTo: sip:null-%00-null@example.com\nFrom: sip:null-%00-null@example.com;tag=839923423\n\
         Max-Forwards: 70\nCall-ID: escnull.39203ndfvkjdasfkq3w4otrq0adsfdfnavd\nCSeq: 14398234 REGISTER\n\
         Via: SIP/2.0/UDP host5.example.com;branch=z9hG4bKkdjuw\nContact: <sip:%00@host5.example.com>\n\
         Contact: <sip:%00%00@host5.example.com>\nL:0\n\n",
    ));
    assert_eq!((escnull.check(), escnull.headers.list("Contact").len()), (Ok(()), 2));
    let esc02 = request(&bytes(
        "RE%47IST%45R sip:registrar.example.com SIP/2.0\nTo: \"%Z%45\" <sip:resource@example.com>\n\
         From: \"%Z%45\" <sip:resource@example.com>;tag=f232jadfj23\nCall-ID: esc02.asdfnqwo34rq23i34jrjasdcnl23nrlknsdf\n\
         Via: SIP/2.0/TCP host.example.com;branch=z9hG4bK209%fzsnel234\nCSeq: 29344 RE%47IST%45R\nMax-Forwards: 70\n\
         Contact: <sip:alias1@host1.example.com>\nC%6Fntact: <sip:alias2@host2.example.com>\n\
         Contact: <sip:alias3@host3.example.com>\nl: 0\n\n",
    ));
    assert_eq!((esc02.check(), esc02.headers.list("Contact").len()), (Ok(()), 2));
    assert_eq!(esc02.method, Method::Other("RE%47IST%45R".into()));
}

#[test]
fn longreq() {
    let long = |word: &str, n: usize| word.repeat(n);
    let vias: String =
        (1..34).map(|n| format!("{}: SIP/2.0/TCP sip{n}.example.com\n", ["Via", "v", "V ", "vIa"][n % 4])).collect();
    let text = format!(
        "INVITE sip:user@example.com SIP/2.0\nTo: \"I have a user name of {} proportion\"<sip:user@example.com:6000;unknownparam1=very{}value;longparam{}=shortvalue;very{}ParameterNameWithNoValue>\n\
         F: sip:{}@example.net;tag={};unknownheaderparam{}=unknowheaderparam{};unknownValueless{}\nCall-ID: longreq.one{}longcallid\n\
         CSeq: 3882340 INVITE\nUnknown-{}-Name: unknown-{}-value; unknown-{}-parameter-name = unknown-{}-parameter-value\n\
         {vias}Via: SIP/2.0/TCP host.example.com;received=192.0.2.5;branch=very{}branchvalue\nMax-Forwards: 70\n\
         Contact: <sip:{}@host5.example.net>\nContent-Type: application/sdp\nl: 150\n\n@SDP",
        long("extreme", 10),
        long("long", 20),
        long("name", 25),
        long("long", 25),
        long("amazinglylongcallername", 5),
        long("129824", 30),
        long("name", 15),
        long("value", 15),
        long("paramname", 10),
        long("really", 20),
        long("Long", 20),
        long("long", 20),
        long("long", 20),
        long("long", 20),
        long("long", 50),
        long("amazinglylongcallername", 5),
    );
    let request = request(&bytes(&text));
    assert_eq!((request.check(), request.body.len()), (Ok(()), 150));
    assert_eq!(request.headers.list("Via").len(), 34);
    assert_eq!(request.headers.from().unwrap().tag(), long("129824", 30));
    assert_eq!(Uri::parse(&request.headers.to().unwrap().uri).unwrap().port, Some(6000));
}

#[test]
fn odd_but_valid() {
    let lwsdisp = request(&bytes(
        "OPTIONS sip:user@example.com SIP/2.0\nTo: sip:user@example.com\nFrom: caller<sip:caller@example.com>;tag=323\nMax-Forwards: 70\n\
         Call-ID: lwsdisp.1234abcd@funky.example.com\nCSeq: 60 OPTIONS\nVia: SIP/2.0/UDP funky.example.com;branch=z9hG4bKkdjuw\nl: 0\n\n",
    ));
    assert_eq!((lwsdisp.check(), lwsdisp.headers.from().unwrap().display.as_deref()), (Ok(()), Some("caller")));
    let semiuri = request(&bytes(
        "OPTIONS sip:user;par=u%40example.net@example.com SIP/2.0\nTo: sip:j_user@example.com\nFrom: sip:caller@example.org;tag=33242\n\
         Max-Forwards: 3\nCall-ID: semiuri.0ha0isndaksdj\nCSeq: 8 OPTIONS\nAccept: application/sdp, application/pkcs7-mime,\n        \
         multipart/mixed, multipart/signed,\n        message/sip, message/sipfrag\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKkdjuw\nl: 0\n\n",
    ));
    assert_eq!((semiuri.check(), semiuri.headers.list("Accept").len()), (Ok(()), 6));
    assert_eq!(Uri::parse(&semiuri.uri).unwrap().user.as_deref(), Some("user;par=u%40example.net"));
    let dblreq = request(&bytes(
        "REGISTER sip:example.com SIP/2.0\nTo: sip:j.user@example.com\nFrom: sip:j.user@example.com;tag=43251j3j324\nMax-Forwards: 8\n\
         I: dblreq.0ha0isndaksdj99sdfafnl3lk233412\nContact: sip:j.user@host.example.com\nCSeq: 8 REGISTER\n\
         Via: SIP/2.0/UDP 192.0.2.125;branch=z9hG4bKkdjuw23492\nContent-Length: 0\n\n\nINVITE sip:joe@example.com SIP/2.0\nt: x\n\n@SDP",
    ));
    assert_eq!((dblreq.check(), dblreq.body.len(), dblreq.headers.iter().count()), (Ok(()), 0, 8));
    let mut mpart01 = bytes(
        "MESSAGE sip:kumiko@example.org SIP/2.0\nVia: SIP/2.0/UDP 127.0.0.1:5070;branch=z9hG4bK-d87543-4dade06d0bdb11ee-1--d87543-;rport\n\
         Max-Forwards: 70\nContact: <sip:fluffy@127.0.0.1:5070>\nTo: <sip:kumiko@example.org>\nFrom: <sip:fluffy@example.com>;tag=2fb0dcc9\n\
         Call-ID: 3d9485ad0c49859b@Zmx1ZmZ5LW1hYy0xNi5sb2NhbA..\nCSeq: 1 MESSAGE\nContent-Transfer-Encoding: binary\n\
         Content-Type: multipart/mixed;boundary=7a9cbec02ceef655\n\n",
    );
    let binary = b"--7a9cbec02ceef655\r\nContent-Type: text/plain\r\n\r\nHello\r\n--7a9cbec02ceef655\r\n\r\n\x30\x82\x01\x52\x00\xff\r\n--7a9cbec02ceef655--";
    mpart01.extend_from_slice(binary);
    let mpart01 = request(&mpart01);
    assert_eq!((mpart01.check(), mpart01.body.as_slice()), (Ok(()), &binary[..]));
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

/// The status of the first response to a message that an endpoint hears.
#[test]
fn dispositions() {
    let check = |name: &str, line: &str, changed: &[(&str, &str)], expect: u16| {
        let method = line.split([' ', '\t']).next().unwrap();
        let cseq = format!("8 {method}");
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
        let code = match stage.sent.first() {
            Some(Message::Response(response)) => response.code,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(code, expect, "{name}");
    };
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
