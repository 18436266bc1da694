//! Files from the web that a user named: http and https, of limited size and time, from addresses that a rule allows.
//! The rule sees the address that is connected to, of every redirect too; what a name resolves to later changes
//! nothing.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::{Client, Response};
use url::Url;

use super::guard::{Blocked, Guard};
use crate::error::Failure;

/// Largest file that is fetched, in bytes.
pub const MAX_BYTES: usize = 20 << 20;

/// Time limit for names, connections, redirects and the file together.
const PATIENCE: Duration = Duration::from_secs(10);

/// Limits of size and time for a fetched file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Largest file in bytes.
    pub bytes: usize,
    /// Time limit for names, connections, redirects and the file together.
    pub patience: Duration,
}

/// Code of the failure to fetch a file that is too large.
pub const TOO_LARGE: &str = "file_too_large";

/// Redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// Gets `url`; `allowed` says which addresses may be connected to.
///
/// # Errors
/// `fetch_failed`: a URL of another kind, an address that is not allowed, no answer in 10 s, no status of success, or
/// more than 20 MiB. The message names the host and never the rest of a URL, which may hold a secret.
pub async fn fetch(url: &str, allowed: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Result<Vec<u8>, Failure> {
    fetch_within(Bounds { bytes: MAX_BYTES, patience: PATIENCE }, url, allowed).await
}

/// Fetches a file as [`fetch`] does, with limits of its own.
///
/// # Errors
/// The same as of [`fetch`], and [`TOO_LARGE`] for a file over the limit.
pub async fn fetch_within(
    bounds: Bounds,
    url: &str,
    allowed: impl Fn(IpAddr) -> bool + Send + Sync + 'static,
) -> Result<Vec<u8>, Failure> {
    let url = Url::parse(url).map_err(|_| failure("the URL is not valid"))?;
    match tokio::time::timeout(bounds.patience, follow(url, bounds.bytes, &Guard::by(allowed))).await {
        Ok(done) => done,
        Err(_) => Err(failure(format_args!("it did not come within {} s", bounds.patience.as_secs()))),
    }
}

fn failure(why: impl std::fmt::Display) -> Failure {
    Failure { code: "fetch_failed", message: format!("File could not be fetched: {why}") }
}

async fn follow(mut url: Url, most: usize, guard: &Guard) -> Result<Vec<u8>, Failure> {
    let client = guard.client().map_err(|error| failure(error.without_url()))?;
    for _ in 0..=MAX_REDIRECTS {
        let answer = ask(&client, &url, guard).await?;
        let host = url.host_str().unwrap_or_default();
        let status = answer.status();
        if status.is_success() {
            return body(answer, most).await;
        }
        let next = answer.headers().get("location").filter(|_| status.is_redirection());
        let Some(next) = next.and_then(|next| next.to_str().ok()) else {
            return Err(failure(format_args!("{host} answered {}", status.as_u16())));
        };
        url = url.join(next).map_err(|_| failure(format_args!("{host} redirects to a URL that is not valid")))?;
    }
    Err(failure(format_args!("more than {MAX_REDIRECTS} redirects")))
}

async fn ask(client: &Client, url: &Url, guard: &Guard) -> Result<Response, Failure> {
    let (Some(host), true) = (url.host(), matches!(url.scheme(), "http" | "https")) else {
        return Err(failure("only http and https URLs are fetched"));
    };
    guard.literal(url).map_err(|blocked| failure(format_args!("{host} {blocked}")))?;
    client.get(url.clone()).send().await.map_err(|error| match Blocked::of(&error) {
        Some(blocked) => failure(format_args!("{host} {blocked}")),
        None => failure(format_args!("{host} could not be asked: {}", error.without_url())),
    })
}

/// Returns a size in words: MiB where it is a whole number of them, else MB (10^6 bytes).
fn size_text(bytes: usize) -> String {
    if bytes.is_multiple_of(1 << 20) { format!("{} MiB", bytes >> 20) } else { format!("{} MB", bytes / 1_000_000) }
}

async fn body(mut answer: Response, most: usize) -> Result<Vec<u8>, Failure> {
    let too_large = || Failure { code: TOO_LARGE, ..failure(format_args!("it is larger than {}", size_text(most))) };
    if answer.content_length().is_some_and(|length| length > most as u64) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|error| failure(error.without_url()))? {
        if bytes.len() + piece.len() > most {
            return Err(too_large());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::tasks::Tasks;
    use crate::testing::WebServer;

    async fn get(
        server: &WebServer,
        path: &str,
        allowed: impl Fn(IpAddr) -> bool + Send + Sync + 'static,
    ) -> Result<Vec<u8>, String> {
        fetch(&server.url(path), allowed).await.map_err(|failure| failure.message)
    }

    fn answer(path: &str) -> Vec<u8> {
        let head =
            |status: &str, more: &str| format!("HTTP/1.1 {status}\r\n{more}connection: close\r\n\r\n").into_bytes();
        let to = |location: &str| head("302 Found", &format!("location: {location}\r\ncontent-length: 0\r\n"));
        match path {
            "/file" => WebServer::file(b"hello"),
            "/again" => to("/file"),
            "/round" => to("/round"),
            "/metadata" => to("http://169.254.169.254/latest"),
            "/disk" => to("file:///etc/passwd"),
            "/claims" => head("200 OK", "content-length: 99999999\r\n"),
            "/endless" => [head("200 OK", ""), vec![7; MAX_BYTES + 1]].concat(),
            "/most" => [head("200 OK", ""), vec![7; MAX_BYTES]].concat(),
            _ => head("404 Not Found", "content-length: 0\r\n"),
        }
    }

    #[tokio::test]
    async fn files_are_fetched_within_limits() {
        let server = WebServer::start(answer).await.expect("loopback has a free port");
        let any = |_: IpAddr| true;
        assert_eq!(get(&server, "/file", any).await.as_deref(), Ok(&b"hello"[..]));
        assert_eq!(get(&server, "/again", any).await.as_deref(), Ok(&b"hello"[..]));
        assert_eq!(get(&server, "/most", any).await.map(|bytes| bytes.len()), Ok(MAX_BYTES));
        for (path, why) in [
            ("/none?key=secret", "127.0.0.1 answered 404"),
            ("/round", "more than 5 redirects"),
            ("/disk", "only http and https URLs are fetched"),
            ("/claims", "it is larger than 20 MiB"),
            ("/endless", "it is larger than 20 MiB"),
        ] {
            let expect = Err(format!("File could not be fetched: {why}"));
            assert_eq!(get(&server, path, any).await, expect, "{path}");
        }
        assert!(fetch("ftp://127.0.0.1/x", any).await.is_err() && fetch("/x", any).await.is_err());
    }

    #[tokio::test]
    async fn addresses_are_checked_before_anything_is_asked_and_at_every_redirect() {
        let server = WebServer::start(answer).await.expect("loopback has a free port");
        let refused =
            |host: &str| Err(format!("File could not be fetched: {host} points to an address that is not allowed"));
        assert_eq!(get(&server, "/file", |ip| !ip.is_loopback()).await, refused("127.0.0.1"));
        // A name is judged by its addresses.
        let by_name = format!("http://localhost:{}/file", server.address.port());
        let outside = |ip: IpAddr| !ip.is_loopback();
        assert_eq!(fetch(&by_name, outside).await.map_err(|failure| failure.message), refused("localhost"));
        let number = format!("http://2130706433:{}/file", server.address.port());
        assert_eq!(fetch(&number, outside).await.map_err(|failure| failure.message), refused("127.0.0.1"));
        assert_eq!(server.paths(), [""; 0], "nothing was asked");
        let v4_loopback = |ip: IpAddr| ip == IpAddr::from([127, 0, 0, 1]);
        assert_eq!(fetch(&by_name, v4_loopback).await.as_deref(), Ok(&b"hello"[..]));
        assert_eq!(get(&server, "/metadata", v4_loopback).await, refused("169.254.169.254"));
        assert_eq!(server.paths(), ["/file", "/metadata"]);
    }

    /// Answers every request with `bytes` and then neither goes on nor closes.
    async fn stalling(bytes: &'static [u8]) -> (SocketAddr, Tasks) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let tasks = Tasks::new();
        tasks.spawn_until_stop("stalling server", async move {
            let mut held = Vec::new();
            while let Ok((mut socket, _)) = listener.accept().await {
                // An answer before there is a question is a fault of its own.
                let _ = socket.read(&mut [0; 1024]).await;
                let _ = socket.write_all(bytes).await;
                held.push(socket);
            }
        });
        (address, tasks)
    }

    #[tokio::test]
    async fn a_server_that_does_not_go_on_is_not_waited_for() {
        assert_eq!((PATIENCE, MAX_BYTES), (Duration::from_secs(10), 20 * 1024 * 1024), "as users are told");
        let begun = &b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"[..];
        for bytes in [&b""[..], b"HTTP/1.1 200 OK\r\n", begun] {
            let (address, tasks) = stalling(bytes).await;
            let bounds = Bounds { bytes: MAX_BYTES, patience: Duration::from_millis(200) };
            let waited = fetch_within(bounds, &format!("http://{address}/noise.wav"), |_| true).await;
            let why = waited.expect_err("it never comes").message;
            assert_eq!(why, "File could not be fetched: it did not come within 0 s");
            tasks.stop().await;
        }
    }
}
