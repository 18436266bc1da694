//! Requests that tell somebody something: one body, sent to a guarded address. The answer is read as far as it is asked
//! for; no redirect is followed.

use std::error::Error as _;
use std::sync::OnceLock;
use std::time::Duration;

use hmac::{Hmac, Mac};
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Method};
use sha2::Sha256;
use url::Url;

use super::guard::{Blocked, CONNECTS_WITHIN, Guard};
use crate::clock::Clock;
use crate::error::is_out_of_resources;

/// Header of the signature.
pub const SIGNATURE: &str = "X-Svc-Signature";
/// Header of the signature over time, event and body.
pub const SIGNATURE_V2: &str = "X-Svc-Signature-V2";
/// Header that says which result a request belongs to.
pub const RESULT_ID: &str = "X-Simulation-Result-Id";

/// Returns the lower-case hex of the HMAC-SHA256 (RFC 2104) over the body, by the bytes of the key's text.
pub fn signature(key: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(body);
    hex::encode(mac.finalize().into_bytes())
}

/// Returns both signatures of a body as header fields. The second is `t=UNIX,v1=HEX`: the time in seconds, and the
/// HMAC-SHA256 over `UNIX.ID.BODY`, by which a receiver can refuse what is old or was sent to it before. `id` is the
/// value of `X-Svc-Event-Id`, else of `X-Simulation-Result-Id`, else empty.
pub fn signatures(key: &str, id: &str, now_ms: i64, body: &str) -> [(&'static str, String); 2] {
    let at_s = now_ms.div_euclid(1000);
    let timed = signature(key, format!("{at_s}.{id}.{body}").as_bytes());
    [(SIGNATURE, signature(key, body.as_bytes())), (SIGNATURE_V2, format!("t={at_s},v1={timed}"))]
}

/// Request to send, with its limits.
#[derive(Clone, Debug)]
pub struct Posting<'a> {
    /// HTTP method, such as `POST` or `PUT`.
    pub method: &'a str,
    /// Address to send to.
    pub url: &'a str,
    /// Names and values; the body is JSON unless a `Content-Type` stands here.
    pub headers: &'a [(&'a str, String)],
    /// Body as it is sent.
    pub body: String,
    /// Time limit for connection and answer together.
    pub patience: Duration,
    /// Longest answer; 0: nothing of it is read.
    pub answer_bytes: usize,
}

/// Answer to a request that was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Posted {
    /// HTTP status of the answer.
    pub status: u16,
    /// Seconds that its `Retry-After` asks for (RFC 9110 10.2.3), as a number or as a date; rounded up.
    pub retry_after_s: Option<u64>,
    /// Body of the answer, if it was asked for.
    pub body: Vec<u8>,
}

/// Reason why a request has no answer, or none that can be read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotPosted {
    /// Explanation, without the URL, which may hold a secret.
    pub why: String,
    /// True if there was a connection, and the time passed without a whole answer.
    pub is_late: bool,
    /// True if this machine had no file, port or memory left for the connection.
    pub is_own: bool,
}

impl From<String> for NotPosted {
    fn from(why: String) -> NotPosted {
        NotPosted { why, is_late: false, is_own: false }
    }
}

/// Posts bodies to addresses that a guard allows.
pub struct Poster {
    guard: Guard,
    patience: Duration,
    client: OnceLock<Client>,
}

impl Poster {
    /// Waits at most `patience` for a connection and an answer together.
    pub fn new(guard: Guard, patience: Duration) -> Poster {
        Poster { guard, patience, client: OnceLock::new() }
    }

    /// Returns the guard that decides which addresses are allowed.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Posts JSON and answers the status.
    ///
    /// # Errors
    /// Why there was no answer, in words without the URL, which may hold a secret.
    pub async fn post(&self, url: &str, headers: &[(&'static str, String)], body: String) -> Result<u16, String> {
        let posting = Posting { method: "POST", url, headers, body, patience: self.patience, answer_bytes: 0 };
        self.exchange(posting).await.map(|posted| posted.status).map_err(|failed| failed.why)
    }

    /// Sends a request and answers what came back.
    ///
    /// # Errors
    /// Why there was no answer, or none that can be read whole, in words without the URL.
    pub async fn exchange(&self, mut posting: Posting<'_>) -> Result<Posted, NotPosted> {
        let body = std::mem::take(&mut posting.body).into_bytes();
        self.exchange_bytes(posting, body).await
    }

    /// Sends a request with these bytes in place of its body, and answers what came back.
    ///
    /// # Errors
    /// As of [`Poster::exchange`].
    pub async fn exchange_bytes(&self, posting: Posting<'_>, body: Vec<u8>) -> Result<Posted, NotPosted> {
        let Posting { method, url, headers, body: _, patience, answer_bytes } = posting;
        let url = Url::parse(url).map_err(|_| "the URL is not valid".to_owned())?;
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| "the method is not valid".to_owned())?;
        let host = url.host_str().unwrap_or_default().to_owned();
        self.guard.literal(&url).map_err(|blocked| format!("{host} {blocked}"))?;
        let request = self.client()?.request(method, url);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
        let typed = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let request = if typed { request } else { request.header("Content-Type", "application/json") };
        let request =
            request.header("User-Agent", concat!("Ringer/", env!("CARGO_PKG_VERSION"))).timeout(patience).body(body);
        let failed = |error: reqwest::Error| {
            let is_late = error.is_timeout() && !error.is_connect();
            let is_own = is_own(&error);
            let why = match Blocked::of(&error) {
                _ if is_own => format!("this machine has no socket left: {}", root(&error)),
                _ if is_late => format!("no answer within {} ms", patience.as_millis()),
                _ if error.is_timeout() => format!("no connection within {} ms", CONNECTS_WITHIN.as_millis()),
                Some(blocked) => format!("{host} {blocked}"),
                None => format!("no connection: {}", root(&error)),
            };
            NotPosted { why, is_late, is_own }
        };
        let mut answer = request.send().await.map_err(failed)?;
        let retry_after_s = retry_after(answer.headers()).map(|wait| wait.as_millis().div_ceil(1000) as u64);
        let mut posted = Posted { status: answer.status().as_u16(), retry_after_s, body: Vec::new() };
        while answer_bytes > 0
            && let Some(piece) = answer.chunk().await.map_err(failed)?
        {
            if posted.body.len() + piece.len() > answer_bytes {
                return Err(format!("the answer is longer than {answer_bytes} bytes").into());
            }
            posted.body.extend_from_slice(&piece);
        }
        Ok(posted)
    }

    fn client(&self) -> Result<&Client, String> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = self.guard.client().map_err(|error| root(&error))?;
        Ok(self.client.get_or_init(|| made))
    }
}

/// Returns the wait that an answer asks for by `Retry-After` (RFC 9110 10.2.3), at most a day. It is a number of
/// seconds, or a date, which is compared with the answer's own `Date` where it has one.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    const LONGEST_S: f64 = 86_400.0;
    let text =
        |name| headers.get(name).and_then(|value: &reqwest::header::HeaderValue| value.to_str().ok()).map(str::trim);
    let date_ms = |text: &str| Some(DateTimeParser::new().parse_timestamp(text).ok()?.as_millisecond());
    let asked = text(RETRY_AFTER)?;
    let seconds = match asked.parse::<f64>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let now_ms = text(DATE).and_then(date_ms).unwrap_or_else(|| Clock::Real.now_ms());
            (date_ms(asked)? - now_ms).max(0) as f64 / 1000.0
        }
    };
    (seconds >= 0.0).then(|| Duration::from_secs_f64(seconds.min(LONGEST_S)))
}

/// True if a request failed because this machine had no file, port or memory left.
fn is_own(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(this) = cause {
        if this.downcast_ref::<std::io::Error>().is_some_and(is_out_of_resources) {
            return true;
        }
        cause = this.source();
    }
    false
}

/// Returns the first cause of a failure; the outer ones name the URL.
fn root(error: &reqwest::Error) -> String {
    let Some(mut cause) = error.source() else { return "it could not be sent".to_owned() };
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    match cause.to_string() {
        text if text.contains("InvalidContentType") => "it does not speak TLS at this port: try http://".to_owned(),
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::WebServer;

    #[test]
    fn the_second_signature_covers_time_event_and_body() {
        let [plain, timed] = signatures("k", "7", 1_767_603_600_999, "{}");
        assert_eq!(plain, (SIGNATURE, signature("k", b"{}")));
        assert_eq!(timed, (SIGNATURE_V2, format!("t=1767603600,v1={}", signature("k", b"1767603600.7.{}"))));
    }

    #[test]
    fn the_signature_is_hmac_sha256_in_hex() {
        let expect = "add853b103fbcc936a194f9eb15e29c4ff08af6e47d5d1bca4f20218e31e4fff";
        assert_eq!(signature("k", b"{}"), expect);
        // RFC 4231, test case 2.
        let expect = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signature("Jefe", b"what do ya want for nothing?"), expect);
    }

    #[test]
    fn the_wait_that_is_asked_for_is_a_number_or_a_date() {
        let check = |asked: &str, date: Option<&str>, expect: Option<u64>| {
            let given = [(RETRY_AFTER, asked)].into_iter().chain(date.map(|date| (DATE, date)));
            let headers = given.map(|(name, text)| (name, text.parse().expect("a value"))).collect();
            assert_eq!(retry_after(&headers).map(|wait| wait.as_millis() as u64), expect, "{asked} {date:?}");
        };
        check("7", None, Some(7000));
        check(" 0 ", None, Some(0));
        check("1.5", None, Some(1500));
        check("999999999999999999999", None, Some(86_400_000));
        check("-1", None, None);
        check("NaN", None, None);
        check("soon", None, None);
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        check("Sun, 06 Nov 1994 08:50:07 GMT", date, Some(30_000));
        check("Sun, 06 Nov 1994 08:49:00 GMT", date, Some(0));
        check("Sun, 06 Nov 1994 08:50:07 GMT", None, Some(0));
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[tokio::test]
    async fn what_is_not_answered_is_told_without_the_url() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let closed = format!("http://{}/?key=secret", closed.expect("loopback has a free port"));
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let silent = format!("http://{}/?key=secret", silent.local_addr().expect("it is bound"));
        let server = WebServer::start(|_| b"HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n".to_vec());
        let server = server.await.expect("loopback has a free port");
        let patience = Duration::from_millis(200);
        for (guard, url, expect) in [
            (true, server.url("/"), Ok(302)),
            (true, closed, Err("no connection: Connection refused (os error 111)")),
            (true, silent, Err("no answer within 200 ms")),
            (true, "/x".to_owned(), Err("the URL is not valid")),
            (false, server.url("/"), Err("127.0.0.1 points to an address that is not allowed")),
            (
                false,
                server.url("/").replace("127.0.0.1", "localhost"),
                Err("localhost points to an address that is not allowed"),
            ),
            (true, "http://nobody.invalid/".to_owned(), Err("nobody.invalid has no address")),
        ] {
            let sent = Poster::new(Guard::new(guard), patience).post(&url, &[], "{}".to_owned()).await;
            assert_eq!(sent, expect.map_err(str::to_owned), "{url}");
        }
    }
}
