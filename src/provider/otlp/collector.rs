//! A collector of traces, reached by OTLP over HTTP.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, StatusCode};

use super::{PROTOBUF, Span, read_answer, request};
use crate::tls::{Roots, install_tls};

/// Time limit for a connection and an answer together.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer that is read, in bytes.
const ANSWER_BYTES: usize = 64 * 1024;

/// A collector, and what is sent with each request to it.
pub struct Collector {
    client: Client,
    url: String,
    headers: HeaderMap,
}

/// Reason why spans were not taken, in words without address and keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// The collector may take them later; it may have said after how many seconds.
    Later(String, Option<u64>),
    /// The collector refuses them.
    Never(String),
}

impl Collector {
    /// Returns the collector at an address, with header fields for each request.
    ///
    /// # Errors
    /// A header field that cannot be sent, or no client can be made.
    pub fn new(url: &str, headers: &[(String, String)], roots: &Roots) -> Result<Collector, String> {
        install_tls();
        let mut fields = HeaderMap::new();
        for (name, value) in headers {
            let read = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
            let (field, mut value) = read.ok_or_else(|| format!("{name} is no header field that can be sent"))?;
            value.set_sensitive(true);
            fields.append(field, value);
        }
        let client = roots.trusted_by(Client::builder().timeout(PATIENCE)).map_err(|error| error.to_string())?;
        Ok(Collector { client, url: url.to_owned(), headers: fields })
    }

    /// Sends spans. Returns the number that the collector did not take, with its reason; `None`: it took all.
    ///
    /// # Errors
    /// None of them was taken.
    pub async fn send(&self, spans: &[Span]) -> Result<Option<(u64, String)>, NotTaken> {
        let post = self.client.post(&self.url).headers(self.headers.clone());
        let sent = post.header(reqwest::header::CONTENT_TYPE, PROTOBUF).body(request(spans)).send().await;
        // Neither address nor header fields are in the words.
        let away = |error: reqwest::Error| NotTaken::Later(cause_of(&error), None);
        let mut answer = sent.map_err(away)?;
        let status = answer.status();
        if !status.is_success() {
            let after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            let why = format!("it answered {}", status.as_u16());
            return Err(if may_be_repeated(status) { NotTaken::Later(why, after) } else { NotTaken::Never(why) });
        }
        let mut body = Vec::new();
        while let Ok(Some(piece)) = answer.chunk().await {
            if body.len() + piece.len() > ANSWER_BYTES {
                return Ok(None);
            }
            body.extend_from_slice(&piece);
        }
        Ok(read_answer(&body))
    }
}

/// True for an answer after which the same request may succeed later (OTLP, "Retryable Response Codes").
fn may_be_repeated(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 502 | 503 | 504)
}

/// Returns the innermost reason why there is no answer.
fn cause_of(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer within {} s", PATIENCE.as_secs());
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use ringer_base::testing::WebServer;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn answers_of_collectors() {
        let server = WebServer::start(|path: &str| {
            let status = match path {
                "/good" => 200,
                "/busy" => 503,
                _ => 400,
            };
            format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").into_bytes()
        });
        let server = server.await.expect("loopback has a free port");
        let span = Span {
            trace: [1; 16],
            id: [2; 8],
            parent: None,
            name: "call".to_owned(),
            is_request: false,
            from_ns: 1,
            to_ns: 2,
            attributes: vec![("a", json!(1))],
            error: None,
        };
        for (path, expect) in [
            ("/good", Ok(None)),
            ("/busy", Err(NotTaken::Later("it answered 503".to_owned(), None))),
            ("/bad", Err(NotTaken::Never("it answered 400".to_owned()))),
        ] {
            let collector = Collector::new(&server.url(path), &[], &Roots::default()).expect("it can be asked");
            assert_eq!(collector.send(std::slice::from_ref(&span)).await, expect, "{path}");
        }
    }

    #[tokio::test]
    async fn a_collector_that_is_away_is_named_without_its_address() {
        let collector = Collector::new("http://127.0.0.1:1/secret", &[], &Roots::default()).expect("it can be asked");
        let Err(NotTaken::Later(why, None)) = collector.send(&[]).await else { panic!("nobody listens") };
        assert!(!why.contains("secret") && why.contains("refused"), "{why}");
    }

    #[test]
    fn header_fields_that_cannot_be_sent_are_named_without_their_value() {
        let refused = Collector::new("http://h", &[("a b".to_owned(), "key".to_owned())], &Roots::default());
        assert_eq!(refused.err().as_deref(), Some("a b is no header field that can be sent"));
    }
}
