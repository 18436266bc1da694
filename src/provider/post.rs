//! Requests that tell somebody something: one signed body, posted to a guarded address, answered by a status. Nothing of the
//! answer but its status is read, and no redirect is followed.

use std::error::Error as _;
use std::sync::OnceLock;
use std::time::Duration;

use hmac::{Hmac, Mac};
use reqwest::Client;
use sha2::Sha256;
use url::Url;

use super::guard::{Blocked, Guard};

/// Header of the signature.
pub const SIGNATURE: &str = "X-Svc-Signature";

/// Lower-case hex of the HMAC-SHA256 (RFC 2104) over the body, by the bytes of the key's text.
pub fn signature(key: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(body);
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
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

    /// What decides where may be posted to.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Posts JSON and answers the status.
    ///
    /// # Errors
    /// Why there was no answer, in words without the URL, which may hold a secret.
    pub async fn post(&self, url: &str, headers: &[(&'static str, String)], body: String) -> Result<u16, String> {
        let url = Url::parse(url).map_err(|_| "the URL is not valid".to_owned())?;
        let host = url.host_str().unwrap_or_default().to_owned();
        self.guard.literal(&url).map_err(|blocked| format!("{host} {blocked}"))?;
        let request =
            headers.iter().fold(self.client()?.post(url), |request, (name, value)| request.header(*name, value));
        let request = request
            .header("Content-Type", "application/json")
            .header("User-Agent", concat!("Ringer/", env!("CARGO_PKG_VERSION")))
            .timeout(self.patience)
            .body(body);
        match request.send().await {
            Ok(answer) => Ok(answer.status().as_u16()),
            Err(error) if error.is_timeout() => Err(format!("no answer within {} ms", self.patience.as_millis())),
            Err(error) => Err(match Blocked::of(&error) {
                Some(blocked) => format!("{host} {blocked}"),
                None => format!("no connection: {}", root(&error)),
            }),
        }
    }

    fn client(&self) -> Result<&Client, String> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = self.guard.client().map_err(|error| root(&error))?;
        Ok(self.client.get_or_init(|| made))
    }
}

/// The first cause of a failure; the outer ones name the URL.
fn root(error: &reqwest::Error) -> String {
    let Some(mut cause) = error.source() else { return "it could not be sent".to_owned() };
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::fake::WebServer;

    #[test]
    fn the_signature_is_hmac_sha256_in_hex() {
        let expect = "add853b103fbcc936a194f9eb15e29c4ff08af6e47d5d1bca4f20218e31e4fff";
        assert_eq!(signature("k", b"{}"), expect);
        // RFC 4231, test case 2.
        let expect = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signature("Jefe", b"what do ya want for nothing?"), expect);
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
