//! A webhook's receiver on a loopback port, that remembers what came and answers as it is told.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode};
use parking_lot::Mutex;
use ringer::provider::post::signature;
use ringer::tasks::Tasks;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// A request that came.
#[derive(Clone, Debug)]
pub(super) struct Came {
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl Came {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    pub(super) fn body(&self) -> Value {
        serde_json::from_slice(&self.bytes).expect("JSON")
    }

    /// Returns the type of the event and the id of the result.
    pub(super) fn what(&self) -> (String, i64) {
        let body = self.body();
        (body["type"].as_str().expect("a type").to_owned(), body["id"].as_i64().unwrap_or_default())
    }

    pub(super) fn is_signed_by(&self, key: &str) -> bool {
        self.header("x-svc-signature") == signature(key, &self.bytes)
    }
}

/// Web server that keeps what it receives; its answer can be changed at any time.
#[derive(Clone)]
pub(super) struct Receiver {
    address: std::net::SocketAddr,
    came: Arc<Mutex<VecDeque<Came>>>,
    status: Arc<Mutex<u16>>,
    arrived: Arc<Semaphore>,
}

impl Receiver {
    pub(super) async fn start() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let receiver = Receiver {
            address: listener.local_addr().expect("it is bound"),
            came: Arc::default(),
            status: Arc::new(Mutex::new(200)),
            arrived: Arc::new(Semaphore::new(0)),
        };
        let kept = receiver.clone();
        let answer = move |method: Method, uri: axum::http::Uri, headers: HeaderMap, bytes: Bytes| async move {
            let came = Came { method, path: uri.path().to_owned(), headers, bytes };
            kept.came.lock().push_back(came);
            kept.arrived.add_permits(1);
            StatusCode::from_u16(*kept.status.lock()).expect("a status")
        };
        Tasks::new().spawn("receiver", async move {
            axum::serve(listener, Router::new().fallback(answer)).await.expect("serves");
        });
        receiver
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(super) fn answers(&self, status: u16) {
        *self.status.lock() = status;
    }

    /// Returns the requests since the last call.
    pub(super) fn take(&self) -> Vec<Came> {
        self.came.lock().drain(..).collect()
    }

    /// Waits until something more has come.
    pub(super) async fn next(&self) -> Came {
        let waiting = tokio::time::timeout(Duration::from_secs(60), self.arrived.acquire());
        waiting.await.expect("it comes in time").expect("never closed").forget();
        self.came.lock().pop_front().expect("it is kept")
    }
}
