//! A SIP server that meets every INVITE in one manner, and none that an agent should have.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::UdpSocket;

/// Manner in which calls are met.
#[derive(Copy, Clone, Debug)]
pub(super) enum Manner {
    /// Refuses with this status and reason.
    Refuses(u16, &'static str),
    /// Takes no more calls, and says when to ask again.
    Full,
    /// Says nothing at all.
    Silent,
    /// Rings until the caller gives up.
    Rings,
    /// Asks for credentials, and takes none.
    Challenges,
    /// Answers, and hangs up in the same moment.
    HangsUp,
    /// Answers, and sends no media.
    Mute,
}

/// Answers until it is dropped.
pub(super) struct Answers {
    pub address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Answers {
    /// Meets calls in this manner.
    #[expect(clippy::disallowed_methods, reason = "a server of a test, ended with it")]
    pub(super) async fn with(manner: Manner) -> Answers {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.expect("a port is free"));
        let address = socket.local_addr().expect("it is bound");
        let task = tokio::spawn(async move {
            // Media come here, and nobody reads them.
            let media = UdpSocket::bind("127.0.0.1:0").await.expect("a port is free");
            let port = media.local_addr().expect("it is bound").port();
            let mut bytes = vec![0; 65_536];
            let mut invite = String::new();
            while let Ok((length, from)) = socket.recv_from(&mut bytes).await {
                let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                let answers = match text.split(' ').next().unwrap_or_default() {
                    "INVITE" => {
                        invite.clone_from(&text);
                        answers_to(&text, manner, address, port)
                    }
                    "CANCEL" if !matches!(manner, Manner::Silent) => {
                        vec![answer(&text, 200, "OK", "", ""), answer(&invite, 487, "Request Terminated", "", "")]
                    }
                    "BYE" => vec![answer(&text, 200, "OK", "", "")],
                    "ACK" if matches!(manner, Manner::HangsUp) => vec![bye(&invite, address)],
                    _ => Vec::new(),
                };
                for answer in answers {
                    let _ = socket.send_to(answer.as_bytes(), from).await;
                }
            }
        });
        Answers { address, task }
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns the answers to an INVITE.
fn answers_to(invite: &str, manner: Manner, address: SocketAddr, port: u16) -> Vec<String> {
    match manner {
        Manner::Refuses(status, reason) => vec![answer(invite, status, reason, "", "")],
        Manner::Full => vec![answer(invite, 503, "Service Unavailable", "Retry-After: 60\r\n", "")],
        Manner::Silent => Vec::new(),
        Manner::Rings => vec![answer(invite, 180, "Ringing", "", "")],
        Manner::Challenges => {
            let asked = "WWW-Authenticate: Digest realm=\"desk\", nonce=\"once\", qop=\"auth\", algorithm=MD5\r\n";
            vec![answer(invite, 401, "Unauthorized", asked, "")]
        }
        Manner::HangsUp | Manner::Mute => {
            let contact = format!("Contact: <sip:desk@{address}>\r\nContent-Type: application/sdp\r\n");
            let media = format!(
                "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio {port} RTP/AVP 0\r\n\
                 a=rtpmap:0 PCMU/8000\r\n"
            );
            vec![answer(invite, 200, "OK", &contact, &media)]
        }
    }
}

/// Returns the values of a header of a request, in lower case and with its compact form.
fn values<'r>(request: &'r str, names: [&'r str; 2]) -> impl Iterator<Item = &'r str> {
    request.lines().take_while(|line| !line.is_empty()).filter_map(move |line| {
        let (name, value) = line.split_once(':')?;
        names.iter().any(|wanted| name.trim().eq_ignore_ascii_case(wanted)).then(|| value.trim())
    })
}

/// Returns the answer to a request (RFC 3261 8.2.6): its Via, From, To, Call-ID and CSeq, with a tag.
fn answer(request: &str, status: u16, reason: &str, headers: &str, body: &str) -> String {
    let mut text = format!("SIP/2.0 {status} {reason}\r\n");
    for (name, names) in
        [("Via", ["via", "v"]), ("From", ["from", "f"]), ("Call-ID", ["call-id", "i"]), ("CSeq", ["cseq", "cseq"])]
    {
        values(request, names).for_each(|value| text += &format!("{name}: {value}\r\n"));
    }
    for value in values(request, ["to", "t"]) {
        let tag = if value.contains(";tag=") { "" } else { ";tag=answers" };
        text += &format!("To: {value}{tag}\r\n");
    }
    format!("{text}{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Returns a BYE in the dialog that an INVITE began (RFC 3261 15).
fn bye(invite: &str, address: SocketAddr) -> String {
    let first = |names| values(invite, names).next().unwrap_or_default().to_owned();
    let contact = first(["contact", "m"]);
    let target = contact.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or(&*contact, |(uri, _)| uri);
    format!(
        "BYE {target} SIP/2.0\r\nVia: SIP/2.0/UDP {address};branch=z9hG4bKanswers\r\nMax-Forwards: 70\r\n\
         From: {};tag=answers\r\nTo: {}\r\nCall-ID: {}\r\nCSeq: 1 BYE\r\nContent-Length: 0\r\n\r\n",
        first(["to", "t"]),
        first(["from", "f"]),
        first(["call-id", "i"])
    )
}
