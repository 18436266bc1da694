//! A server of a test that answers what it is told to, and keeps what it was asked.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ringer_base::clock::Clock;
use ringer_base::config::Secret;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{RoomKey, Visit};

/// A request that came.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Path of the request.
    pub path: String,
    /// Value of the header `Authorization`.
    pub authorization: Option<String>,
    /// Body as JSON; null for another one.
    pub body: Value,
}

/// A server over HTTP; it ends with the test.
pub struct FakeServer {
    /// Address without a path.
    pub base: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl FakeServer {
    /// Starts a server that answers the request of each number, from 0, with a status and a body.
    pub async fn start(answer: impl Fn(usize) -> (u16, String) + Send + Sync + 'static) -> FakeServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let base = format!("http://{}", listener.local_addr().expect("it is bound"));
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let kept = asked.clone();
        #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
        drop(tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let Some(request) = read_request(&mut stream).await else { continue };
                let nth = {
                    let mut all = kept.lock();
                    all.push(request);
                    all.len() - 1
                };
                let (status, body) = answer(nth);
                let head =
                    format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            }
        }));
        FakeServer { base, asked }
    }

    /// Returns the requests that came, in order.
    pub fn requests(&self) -> Vec<Asked> {
        self.asked.lock().clone()
    }
}

async fn read_request(stream: &mut tokio::net::TcpStream) -> Option<Asked> {
    let (mut text, mut piece) = (String::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        text.push_str(&String::from_utf8_lossy(&piece[..count]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let field = |name: &str| {
            let of = |line: &str| line.split_once(": ").map(|(key, value)| (key.to_owned(), value.to_owned()));
            let mut fields = head.lines().filter_map(of);
            fields.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        };
        let length = field("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        if body.len() < length {
            continue;
        }
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let body = serde_json::from_str(body).unwrap_or_default();
        return Some(Asked { path, authorization: field("authorization"), body });
    }
}

/// Does work whose waits are over as soon as they begin.
pub async fn moving<T>(clock: &Clock, work: impl Future<Output = T>) -> T {
    let waits = async {
        loop {
            clock.advance_to_wait(10_000).await;
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        done = work => done,
        () = waits => unreachable!("it waits for ever"),
    }
}

/// Returns a key of a room server.
pub fn key() -> RoomKey {
    RoomKey { key: "APIkey".into(), secret: Secret::new("a secret of thirty-two characters".into()) }
}

/// Returns a visit with a value in every field.
pub fn visit() -> Visit {
    Visit {
        room: "svc-17-0000abcd".into(),
        identity: "dh-17".into(),
        name: "Ada".into(),
        metadata: json!({ "tenant": 42 }).to_string(),
        attributes: Map::from_iter([
            ("simulation_result_id".to_owned(), json!("17")),
            ("trait.size".to_owned(), json!("2")),
        ]),
        agent_name: "desk".into(),
        job_metadata: json!({ "tenant": 42, "id": "17" }).to_string(),
        is_agent: false,
    }
}

/// Returns the claims of a token, whoever signed it.
pub fn claims_of(token: &str) -> Value {
    let claims = token.split('.').nth(1).and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    serde_json::from_slice(&claims.expect("three parts in base64")).expect("JSON")
}
