//! Servers that calls are made to: one that speaks WebSocket and does what a test says, one that answers anything at
//! all.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use parking_lot::Mutex;
use ringer::tasks::Tasks;
use ringer_media::testing::Voice;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

/// Recorded speech as G.711.
const SPEECH: &[u8] = include_bytes!("../../fixtures/audio/speech.ul");

/// Returns speech at 16 kHz as bytes, low byte first.
pub(super) fn speech(seconds: f64) -> Vec<u8> {
    let pcm = Voice::from_ulaw(SPEECH).say((seconds * 16_000.0) as usize, 0);
    pcm.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}

/// Returns 1.5 s of speech as mu-law at 8 kHz.
pub(super) fn speech_of_a_carrier() -> &'static [u8] {
    &SPEECH[..12_000]
}

/// Counts and messages that a server has seen of all its connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Number of TCP connections.
    pub connections: usize,
    /// Headers of the last upgrade.
    pub headers: Vec<(String, String)>,
    /// Path and query of the last upgrade.
    pub target: String,
    /// Every message, in order.
    pub messages: Vec<Message>,
}

impl Seen {
    /// Returns the text messages of a type.
    pub(super) fn texts(&self, kind: &str) -> Vec<Value> {
        let texts = self.messages.iter().filter_map(|message| message.to_text().ok().filter(|_| message.is_text()));
        let values = texts.map(|text| serde_json::from_str::<Value>(text).expect("it is JSON"));
        values.filter(|value| value["type"] == kind).collect()
    }

    /// Returns the value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns code and reason of the close frame.
    pub(super) fn close(&self) -> Option<(u16, String)> {
        self.messages.iter().find_map(|message| match message {
            Message::Close(Some(frame)) => Some((frame.code.into(), frame.reason.to_string())),
            _ => None,
        })
    }
}

/// A connection of a server.
pub(super) struct Line {
    socket: WebSocketStream<TcpStream>,
    seen: Arc<Mutex<Seen>>,
}

impl Line {
    /// Sends a message of the engine's own protocol.
    pub(super) async fn tell(&mut self, kind: &str, data: Value) {
        self.send(Message::text(json!({ "type": kind, "data": data }).to_string())).await;
    }

    /// Sends a message; one that cannot be sent any more is nothing.
    pub(super) async fn send(&mut self, message: Message) {
        let _ = self.socket.send(message).await;
    }

    /// Reads until a message is the wanted one. False at the end of the connection.
    pub(super) async fn until(&mut self, wanted: impl Fn(&Message) -> bool) -> bool {
        while let Some(Ok(message)) = self.socket.next().await {
            let found = wanted(&message);
            self.seen.lock().messages.push(message);
            if found {
                return true;
            }
        }
        false
    }

    /// Reads until a text message of this type.
    pub(super) async fn until_text(&mut self, kind: &str) -> bool {
        let kind = format!("\"type\":\"{kind}\"");
        self.until(move |message| message.to_text().is_ok_and(|text| text.contains(&kind))).await
    }

    /// Reads `count` binary messages.
    pub(super) async fn until_audio(&mut self, count: usize) -> bool {
        for _ in 0..count {
            if !self.until(Message::is_binary).await {
                return false;
            }
        }
        true
    }

    /// Reads to the end.
    pub(super) async fn until_end(&mut self) {
        self.until(|_| false).await;
    }

    /// Closes with a code, and reads to the end.
    pub(super) async fn close(&mut self, code: u16) {
        let frame = CloseFrame { code: CloseCode::from(code), reason: "because".into() };
        let _ = self.socket.close(Some(frame)).await;
        self.until_end().await;
    }

    /// Returns the TCP connection below.
    pub(super) fn tcp(&mut self) -> &mut TcpStream {
        self.socket.get_mut()
    }
}

/// A server on loopback.
pub(super) struct Server {
    pub address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    tasks: Tasks,
}

impl Server {
    /// Returns a server that does `script` with each connection.
    pub(super) async fn start<F>(script: impl Fn(Line) -> F + Clone + Send + Sync + 'static) -> Server
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Server::accepting(move |stream, seen| {
            let script = script.clone();
            async move {
                let kept = seen.clone();
                #[expect(clippy::result_large_err, reason = "as the library wants it")]
                let keep = move |request: &Request, response: Response| {
                    let mut seen = kept.lock();
                    let headers = request.headers().iter();
                    let text = |(name, value): (&_, &_)| {
                        let value: &tokio_tungstenite::tungstenite::http::HeaderValue = value;
                        let name: &tokio_tungstenite::tungstenite::http::HeaderName = name;
                        (name.to_string(), value.to_str().unwrap_or_default().to_owned())
                    };
                    seen.headers = headers.map(text).collect();
                    seen.target = request.uri().to_string();
                    Ok(response)
                };
                if let Ok(socket) = accept_hdr_async(stream, keep).await {
                    script(Line { socket, seen }).await;
                }
            }
        })
        .await
    }

    /// Returns a server that answers each connection with these bytes, and closes it.
    pub(super) async fn answering(answer: String) -> Server {
        Server::accepting(move |mut stream, _| {
            let answer = answer.clone();
            async move {
                let mut request = vec![0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
                while stream.read(&mut request).await.is_ok_and(|count| count > 0) {}
            }
        })
        .await
    }

    /// Returns a server that does `script` with each connection of TCP.
    pub(super) async fn accepting<F>(
        script: impl Fn(TcpStream, Arc<Mutex<Seen>>) -> F + Send + Sync + 'static,
    ) -> Server
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let (seen, tasks) = (Arc::<Mutex<Seen>>::default(), Tasks::new());
        let (kept, of_each) = (seen.clone(), tasks.clone());
        tasks.spawn("test server", async move {
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = of_each.stopping() => return,
                };
                let Ok((stream, _)) = accepted else { continue };
                kept.lock().connections += 1;
                let (served, stopping) = (script(stream, kept.clone()), of_each.clone());
                of_each.spawn("test connection", async move {
                    tokio::select! {
                        () = served => {}
                        () = stopping.stopping() => {}
                    }
                });
            }
        });
        Server { address, seen, tasks }
    }

    /// Returns the address of the server for a call.
    pub(super) fn url(&self) -> String {
        format!("ws://{}/agent?who=desk", self.address)
    }

    /// Returns everything that was seen so far.
    pub(super) fn what_came(&self) -> Seen {
        self.seen.lock().clone()
    }

    /// Ends all of its connections.
    pub(super) async fn stop(&self) {
        self.tasks.stop().await;
    }
}
