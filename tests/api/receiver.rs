//! Receivers of notifications: a web server and a mail relay on loopback that keep what came.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use ringer::tasks::Tasks;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Time limit for a request to come on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Request that a receiver got.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Received {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// Instead of a status: the request is never answered.
pub(crate) const HANGS: u16 = 0;
/// Instead of a status: the request is answered with 200 after [`Receiver::release`].
pub(crate) const WAITS: u16 = 1;

/// A web server. Answers the statuses, with the bodies, that it was told; then 200.
pub(crate) struct Receiver {
    pub address: SocketAddr,
    released: Arc<watch::Sender<bool>>,
    seen: Arc<Mutex<Vec<Received>>>,
    count: Arc<watch::Sender<usize>>,
    _tasks: Tasks,
}

impl Receiver {
    pub(crate) async fn new(statuses: &[u16]) -> Receiver {
        Receiver::answering(statuses.iter().map(|status| (*status, String::new())).collect()).await
    }

    pub(crate) async fn answering(answers: Vec<(u16, String)>) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("an address");
        let seen: Arc<Mutex<Vec<Received>>> = Arc::default();
        let count = Arc::new(watch::Sender::new(0));
        let released = Arc::new(watch::Sender::new(false));
        let (kept, statuses, counted) = (seen.clone(), Arc::new(Mutex::new(answers)), count.clone());
        let freed = released.clone();
        let router = Router::new().fallback(move |request: Request| {
            let (kept, statuses, counted) = (kept.clone(), statuses.clone(), counted.clone());
            let mut freed = freed.subscribe();
            async move {
                let (parts, body) = request.into_parts();
                let body = to_bytes(body, 8 << 20).await.expect("a body").to_vec();
                let received = Received { path: parts.uri.path().to_owned(), headers: parts.headers, body };
                kept.lock().push(received);
                counted.send_modify(|count| *count += 1);
                let answer = {
                    let mut left = statuses.lock();
                    if left.is_empty() { (200, String::new()) } else { left.remove(0) }
                };
                let (status, body) = match answer {
                    (HANGS, _) => std::future::pending().await,
                    (WAITS, body) => {
                        let _ = freed.wait_for(|is_free| *is_free).await;
                        (200, body)
                    }
                    answer => answer,
                };
                (StatusCode::from_u16(status).expect("a status"), body)
            }
        });
        let tasks = Tasks::new();
        tasks.spawn_until_stop("receiver", async move {
            let _ = axum::serve(listener, router).await;
        });
        Receiver { address, released, seen, count, _tasks: tasks }
    }

    /// Has the requests be answered that wait for it.
    pub(crate) fn release(&self) {
        self.released.send_replace(true);
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits for the `count`th request.
    pub(crate) async fn wait_for(&self, count: usize) -> Received {
        let came = async {
            let mut changes = self.count.subscribe();
            changes.wait_for(|seen| *seen >= count).await.expect("the receiver lives");
        };
        tokio::time::timeout(PATIENCE, came).await.unwrap_or_else(|_| panic!("{count} requests in {PATIENCE:?}"));
        self.requests()[count - 1].clone()
    }

    /// Returns everything that came, in order.
    pub(crate) fn requests(&self) -> Vec<Received> {
        self.seen.lock().clone()
    }
}

/// A mail relay (RFC 5321) that takes everything.
pub(crate) struct Relay {
    pub address: SocketAddr,
    lines: Arc<Mutex<Vec<String>>>,
    _tasks: Tasks,
}

impl Relay {
    pub(crate) async fn new() -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("an address");
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let (kept, tasks) = (lines.clone(), Tasks::new());
        tasks.spawn_until_stop("relay", async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (read, mut write) = socket.into_split();
                let mut read = BufReader::new(read).lines();
                let (mut in_mail, mut open) = (false, write.write_all(b"220 relay\r\n").await.is_ok());
                while let (true, Ok(Some(line))) = (open, read.next_line().await) {
                    kept.lock().push(line.clone());
                    let answer: &[u8] = match line.get(..4) {
                        _ if in_mail && line != "." => continue,
                        _ if in_mail => b"250 taken\r\n",
                        Some("DATA") => b"354 go on\r\n",
                        Some("QUIT") => b"221 bye\r\n",
                        _ => b"250 fine\r\n",
                    };
                    in_mail = line == "DATA";
                    open = write.write_all(answer).await.is_ok();
                }
            }
        });
        Relay { address, lines, _tasks: tasks }
    }

    /// Returns every line that came.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }
}
