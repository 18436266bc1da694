//! News of dialogs to their calls, and messages as the logs of calls keep them.

use super::*;

#[test]
fn the_last_answer_of_a_dialog_is_known() {
    let check = |first: &str, cseq: &str, expect: bool| {
        let message = format!("{first}\r\nCall-ID: 7\r\nCSeq: {cseq}\r\n\r\n");
        assert_eq!(is_last(message.as_bytes()), expect, "{first} {cseq}");
    };
    check("SIP/2.0 200 OK", "2 BYE", true);
    check("SIP/2.0 481 Call/Transaction Does Not Exist", "2 BYE", true);
    check("SIP/2.0 100 Trying", "2 BYE", false);
    check("SIP/2.0 401 Unauthorized", "2 BYE", false);
    check("SIP/2.0 487 Request Terminated", "1 INVITE", true);
    // It has crossed the CANCEL: BYE follows.
    check("SIP/2.0 200 OK", "1 INVITE", false);
    check("SIP/2.0 200 OK", "1 CANCEL", false);
    check("SIP/2.0 2", "2 BYE", false);
    check("BYE sip:a@b SIP/2.0", "2 BYE", false);
}

/// Waits for a request of this method, and answers it with 200.
async fn accept(peer: &UdpSocket, method: &str, body: &str) {
    let mut buffer = vec![0; DATAGRAM_BYTES];
    let (request, from) = loop {
        let (len, from) = peer.recv_from(&mut buffer).await.expect("a datagram");
        let request = String::from_utf8(buffer[..len].to_vec()).expect("text");
        if request.starts_with(method) {
            break (request, from);
        }
    };
    let copied = request
        .lines()
        .filter(|line| ["Via:", "From:", "To:", "Call-ID:", "CSeq:"].iter().any(|name| line.starts_with(name)));
    let mut answer = String::from("SIP/2.0 200 OK\r\n");
    for line in copied {
        let tag = if line.starts_with("To:") && !line.contains("tag=") { ";tag=far" } else { "" };
        answer.extend([line, tag, "\r\n"]);
    }
    let local = peer.local_addr().expect("it is bound");
    answer += &format!("Contact: <sip:far@{local}>\r\nContent-Type: application/sdp\r\n");
    answer += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    peer.send_to(answer.as_bytes(), from).await.expect("it is sent");
}

#[tokio::test]
async fn the_answer_to_a_hang_up_is_the_last_that_a_call_hears() {
    use ringer_media::codec::Codec;

    let tasks = Tasks::new();
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let (socket, _incoming) =
        SipSocket::start(any.into(), &TlsSettings::default(), None, &tasks).await.expect("a loopback socket");
    let peer = UdpSocket::bind(any).await.expect("a loopback socket");
    let destination = peer.local_addr().expect("it is bound");
    let sdp = crate::sip::sdp::offer(&[Codec::Pcmu], any.ip(), 20_000, 1).session().to_string();
    let (news, mut heard) = mpsc::channel(NEWS);
    let invite = Invite {
        target: ringer_sip::Uri::parse(&format!("sip:far@{destination}")).expect("a target"),
        destination: Hop::udp(destination),
        alternatives: Vec::new(),
        from_user: "near".into(),
        from_host: None,
        from_display: None,
        headers: Vec::new(),
        sdp: sdp.clone(),
        username: None,
        password: None,
        reach: ringer_sip::Reach::default(),
    };
    let placed = socket.invite(invite, news);
    let (placed, ()) = tokio::join!(placed, accept(&peer, "INVITE", &sdp));
    let (key, _) = placed.expect("the socket is open");
    let (mut ended, mut after) = (false, Vec::new());
    let hearing = async {
        while let Some(news) = heard.recv().await {
            match news {
                SipNews::Event(event) if matches!(*event, CallEvent::Answered { .. }) => {
                    socket.order(key, SipOrder::Hangup(16, "Normal call clearing")).await;
                    accept(&peer, "BYE", "").await;
                }
                SipNews::Event(event) => ended |= matches!(*event, CallEvent::Ended(_)),
                SipNews::Trace(message) => after.push(message),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), hearing).await.expect("nothing more is to be heard");
    let last = after.last().expect("messages");
    assert!(ended && last.starts_with("received from"), "{after:?}");
    assert!(last.contains("SIP/2.0 200") && last.contains(" BYE"), "{after:?}");
    tasks.stop().await;
}

#[test]
fn only_a_call_that_this_side_ends_waits_for_an_answer() {
    let waits = |kind, sip_code| {
        let end =
            CallEnd { kind, sip_code, q850_cause: None, text: String::new(), by_remote: false, retry_after: false };
        Leaving::after(&end, mpsc::channel(1).0).is_some()
    };
    assert!(waits(EndKind::LocalHangup, None) && waits(EndKind::Cancelled, None));
    assert!(!waits(EndKind::LocalHangup, Some(486)) && !waits(EndKind::Cancelled, Some(487)));
    assert!(!waits(EndKind::RemoteBye, None) && !waits(EndKind::Refused, Some(404)));
}

#[test]
fn finds_call_ids_and_masks_credentials() {
    let message = b"INVITE sip:a@b SIP/2.0\r\ni : 77@x\r\nAuthorization: Digest response=\"dead\"\r\n\r\n";
    assert_eq!(call_id(message), Some("77@x"));
    assert_eq!(call_id(b"\xff\xfe"), None);
    let text = mask(message);
    assert_eq!(text, " INVITE sip:a@b SIP/2.0\n i : 77@x\n Authorization: (masked)\n \n");
    let text = mask(b"Proxy-Authorization: Digest username=\"a\",\r\n response=\"dead\",\r\n\tnonce=\"beef\"\r\nCSeq: 1 BYE\r\n\r\n");
    assert_eq!(text, " Proxy-Authorization: (masked)\n CSeq: 1 BYE\n \n", "a field that is folded over lines");
    let text = mask(b"a=crypto:1 AES_CM_128_HMAC_SHA1_80 Inline:WVNfX19z|2^20;inline:beef\r\na=ptime:20\r\n");
    assert_eq!(text, " a=crypto:1 AES_CM_128_HMAC_SHA1_80 Inline:(masked)\n a=ptime:20\n");
    let text = mask(b"BYE sip:a@b SIP/2.0\r\n7 sent to 192.0.2.1:5 at 192.0.2.2:9\n\n8 sent to 192.0.2.1:5\r\n");
    assert!(text.lines().count() == 4 && text.lines().all(|line| line.starts_with(' ')), "{text}");
}
