//! Destinations that a call may be sent on to: redirects to names and addresses, and media that another side names. Far
//! sides of a few lines.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ringer::engine::CallReport;
use ringer::provider::guard::Guard;
use ringer_media::call::EndReason;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::stage::Stage;

const PATIENCE: Duration = Duration::from_secs(30);
const MAIN: &str = "127.0.0.1";
const OTHER: &str = "127.0.0.2";
const REFUSED: &str = "127.0.0.3";

/// A far side that is a socket.
pub(super) struct Far(pub(super) UdpSocket);

impl Far {
    pub(super) async fn at(host: &str) -> Far {
        Far(UdpSocket::bind((host, 0)).await.expect("loopback has a free port"))
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("it is bound")
    }

    /// Returns the next request of this method.
    pub(super) async fn request(&self, method: &str) -> (String, SocketAddr) {
        let mut buffer = [0; 8192];
        loop {
            let received = timeout(PATIENCE, self.0.recv_from(&mut buffer)).await;
            let (length, from) = received.unwrap_or_else(|_| panic!("no {method} comes")).expect("it reads");
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if text.starts_with(method) {
                return (text, from);
            }
        }
    }

    /// True when nothing was sent here: what it sends itself is the first that comes.
    async fn is_untouched(&self) -> bool {
        self.0.send_to(b"mark", self.address()).await.expect("it sends");
        let mut buffer = [0; 8];
        let length = timeout(PATIENCE, self.0.recv(&mut buffer)).await.expect("it comes").expect("it reads");
        &buffer[..length] == b"mark"
    }

    pub(super) async fn answer(&self, (request, to): &(String, SocketAddr), status: &str, more: &str, body: &str) {
        let copied = ["via", "from", "call-id", "cseq"].map(|name| {
            let field = request.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")));
            format!("{}\r\n", field.unwrap_or_else(|| panic!("no {name}: {request}")))
        });
        let named = request.lines().find(|line| line.to_ascii_lowercase().starts_with("to:")).expect("To");
        let tag = if named.contains("tag=") { "" } else { ";tag=far" };
        let length = body.len();
        let answer = format!(
            "SIP/2.0 {status}\r\n{}{named}{tag}\r\n{more}Content-Length: {length}\r\n\r\n{body}",
            copied.concat()
        );
        self.0.send_to(answer.as_bytes(), to).await.expect("it sends");
    }

    /// Returns a session with media here.
    pub(super) fn description(&self) -> String {
        let (host, port) = (self.address().ip(), self.address().port());
        format!(
            "v=0\r\no=- 1 1 IN IP4 {host}\r\ns=-\r\nc=IN IP4 {host}\r\nt=0 0\r\nm=audio {port} RTP/AVP 0\r\n\
             a=rtpmap:0 PCMU/8000\r\n"
        )
    }

    /// Answers with a session whose media goes to `media`.
    pub(super) async fn take(&self, invite: &(String, SocketAddr), media: &Far) {
        let more = format!("Contact: <sip:far@{}>\r\nContent-Type: application/sdp\r\n", self.address());
        self.answer(invite, "200 OK", &more, &media.description()).await;
    }
}

/// Calls `sip:bob@HOST:PORT` of `far`, while `other` is behind the name `other.example` and [`REFUSED`] may not be
/// called.
async fn call(stage: &Stage, far: &Far, script: impl Future<Output = ()>) -> CallReport {
    let refused: IpAddr = REFUSED.parse().expect("an address");
    let guard = Guard::by(move |address| address != refused).with_names(|name| {
        Box::pin(async move {
            let host = match name.as_str() {
                "other.example" => OTHER,
                "refused.example" => REFUSED,
                "both.example" => return Ok([REFUSED, OTHER].map(|host| host.parse().expect("an address")).to_vec()),
                _ => return Ok(Vec::new()),
            };
            Ok(vec![host.parse().expect("an address")])
        })
    });
    let mut placement = stage.placement(&format!("sip:bob@{}", far.address()), "Hello.");
    placement.destination.sip().expect("it dials").guard = Some(guard);
    let (report, ()) = tokio::join!(stage.call(placement), script);
    report.expect("it is placed")
}

fn refusal(report: &CallReport) -> (bool, String) {
    let text = report.ending.remote.as_ref().map(|remote| remote.text.clone());
    (report.ending.connected, text.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_followed_where_calls_may_go() {
    let stage = Stage::sending_on_to(&["127.0.0.0/8", "*.example"]).await;
    for (name, followed) in [
        (OTHER, true),
        ("other.example", true),
        ("both.example", true),
        (REFUSED, false),
        ("refused.example", false),
        ("nobody.example", false),
    ] {
        let (far, other, refused) = (Far::at(MAIN).await, Far::at(OTHER).await, Far::at(REFUSED).await);
        let port = if followed { other.address() } else { refused.address() }.port();
        let script = async {
            let invite = far.request("INVITE").await;
            let contact = format!("Contact: <sip:new@{name}:{port}>\r\n");
            far.answer(&invite, "302 Moved Temporarily", &contact, "").await;
            if followed {
                let invite = other.request("INVITE").await;
                assert!(invite.0.starts_with(&format!("INVITE sip:new@{name}:{port} ")), "{}", invite.0);
                // A second redirect is the end.
                other.answer(&invite, "302 Moved Temporarily", "Contact: <sip:x@127.0.0.9>\r\n", "").await;
            }
        };
        let report = call(&stage, &far, script).await;
        let expect = if followed { "Moved Temporarily" } else { "Redirected to an unknown or refused host" };
        assert_eq!(refusal(&report), (false, expect.to_owned()), "{name}");
        assert!(refused.is_untouched().await, "{name}");
    }
}

/// By default no redirect is followed, and with a list only those to its entries, not even to the host that was called.
#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_that_no_list_has_is_not_followed() {
    for targets in [&[][..], &["127.0.0.9", "+49"]] {
        let stage = if targets.is_empty() { Stage::new().await } else { Stage::sending_on_to(targets).await };
        let far = Far::at(MAIN).await;
        let script = async {
            let invite = far.request("INVITE").await;
            let contact = format!("Contact: <sip:new@{}>\r\n", far.address());
            far.answer(&invite, "302 Moved Temporarily", &contact, "").await;
            far.request("ACK").await;
        };
        let report = call(&stage, &far, script).await;
        assert_eq!(refusal(&report), (false, "Redirected to an unknown or refused host".to_owned()), "{targets:?}");
        assert_eq!(report.ending.reason, EndReason::DialFailed);
        let expect = format!("a redirect to {MAIN} is not followed: sip.redirects does not have it");
        assert_eq!(report.warnings, [expect], "{targets:?}");
        assert!(far.is_untouched().await, "{targets:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn media_goes_only_where_calls_may_go() {
    let stage = Stage::new().await;
    let (far, refused, other) = (Far::at(MAIN).await, Far::at(REFUSED).await, Far::at(OTHER).await);
    let script = async {
        let invite = far.request("INVITE").await;
        far.take(&invite, &refused).await;
        let bye = far.request("BYE").await;
        far.answer(&bye, "200 OK", "", "").await;
    };
    let report = call(&stage, &far, script).await;
    assert_eq!(refusal(&report), (false, "the media address is not allowed".to_owned()));
    assert!(refused.is_untouched().await);
    let script = async {
        let invite = far.request("INVITE").await;
        far.take(&invite, &other).await;
        // Its first packet of audio.
        timeout(PATIENCE, other.0.recv(&mut [0; 2048])).await.expect("media comes").expect("it reads");
        let to = invite.1;
        let bye = bye_of(&invite.0, far.address());
        far.0.send_to(bye.as_bytes(), to).await.expect("it sends");
    };
    let report = call(&stage, &far, script).await;
    assert!(report.ending.connected, "{:?}", report.ending);
}

/// Returns the far side's BYE in the dialog of an INVITE.
pub(super) fn bye_of(invite: &str, local: SocketAddr) -> String {
    let field = |name: &str| {
        let line = invite.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")));
        line.and_then(|line| line.split_once(':')).expect("a field").1.trim().to_owned()
    };
    let contact = field("contact").trim_matches(['<', '>']).to_owned();
    format!(
        "BYE {contact} SIP/2.0\r\nVia: SIP/2.0/UDP {local};branch=z9hG4bKfar\r\nMax-Forwards: 70\r\nFrom: {};tag=far\r\n\
         To: {}\r\nCall-ID: {}\r\nCSeq: 1 BYE\r\nContent-Length: 0\r\n\r\n",
        field("to"),
        field("from"),
        field("call-id")
    )
}
