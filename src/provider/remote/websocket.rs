//! A WebSocket connection (RFC 6455) to a provider, as a client.

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config};

use super::{Codes, Remote, install_tls};
use crate::Failure;

/// Largest message that is taken: 4 MiB.
const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// Type of the message by which the other side reports trouble.
pub(super) const ERROR: &str = "error";

/// Message of the other side.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Heard {
    /// A text message, which is a JSON object, and its `type`.
    Message(String, Value),
    /// Audio bytes as they came.
    Audio(Vec<u8>),
}

/// An open connection; dropping it closes the socket.
pub(super) struct Connection {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    codes: &'static Codes,
    remote: Remote,
}

impl Connection {
    /// Connects within the limit.
    pub(super) async fn open(remote: &Remote, codes: &'static Codes) -> Result<Connection, Failure> {
        install_tls();
        let unusable = || codes.failure(codes.unreachable, "has an address or a key that cannot be used");
        let mut request = remote.base_url.as_str().into_client_request().map_err(|_| unusable())?;
        if let Some(key) = &remote.key {
            let mut value: reqwest::header::HeaderValue = format!("Bearer {key}").parse().map_err(|_| unusable())?;
            value.set_sensitive(true);
            request.headers_mut().insert(reqwest::header::AUTHORIZATION, value);
        }
        let limits = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        let connector = remote.roots.client().map(Connector::Rustls);
        let connecting = connect_async_tls_with_config(request, Some(limits), true, connector);
        let connecting = timeout(remote.connect, connecting);
        let connected = connecting.await.map_err(|_| codes.failure(codes.unreachable, "took too long to connect"))?;
        let (stream, _) = connected.map_err(|cause| match cause {
            Error::Http(answer) => codes.refusal(answer.status()),
            _ => codes.failure(codes.unreachable, "cannot be reached"),
        })?;
        Ok(Connection { stream, codes, remote: remote.clone() })
    }

    /// Sends a JSON message.
    pub(super) async fn tell(&mut self, message: &Value) -> Result<(), Failure> {
        self.send(Message::text(message.to_string())).await
    }

    /// Sends one message of PCM bytes.
    pub(super) async fn send_audio(&mut self, bytes: Vec<u8>) -> Result<(), Failure> {
        self.send(Message::binary(bytes)).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Failure> {
        let sending = timeout(self.remote.answer, self.stream.send(message)).await;
        sending.map_err(|_| self.codes.late())?.map_err(|_| self.codes.general_failure("closed the connection"))
    }

    /// Returns the next message; waits without a limit. An `error` message, a close and a cut are failures. Safe to
    /// drop and call again.
    pub(super) async fn next(&mut self) -> Result<Heard, Failure> {
        match self.any().await? {
            Heard::Message(kind, _) if kind == ERROR => Err(self.codes.general_failure("reported an error")),
            heard => Ok(heard),
        }
    }

    /// Returns the next message, an `error` too.
    async fn any(&mut self) -> Result<Heard, Failure> {
        loop {
            let message =
                self.stream.next().await.ok_or_else(|| self.codes.general_failure("closed the connection"))?;
            match message.map_err(|_| self.codes.general_failure("broke the connection off"))? {
                Message::Binary(bytes) => return Ok(Heard::Audio(bytes.into())),
                Message::Text(text) => {
                    let value: Value = serde_json::from_str(text.as_str())
                        .map_err(|_| self.codes.general_failure("sent a message that is no valid JSON"))?;
                    let kind = value["type"].as_str().unwrap_or_default().to_owned();
                    return Ok(Heard::Message(kind, value));
                }
                Message::Close(_) => return Err(self.codes.general_failure("closed the connection before its end")),
                _ => {}
            }
        }
    }

    /// Returns the next message within the limit for an answer.
    pub(super) async fn next_in_time(&mut self) -> Result<Heard, Failure> {
        let late = self.codes.late();
        timeout(self.remote.answer, self.next()).await.map_err(|_| late)?
    }

    /// Returns the next message, an `error` too, within the limit for an answer.
    pub(super) async fn any_in_time(&mut self) -> Result<Heard, Failure> {
        let late = self.codes.late();
        timeout(self.remote.answer, self.any()).await.map_err(|_| late)?
    }

    /// Says that this is the end; the answer is not waited for.
    pub(super) async fn close(mut self) {
        let _ = timeout(self.remote.connect, self.stream.close(None)).await;
    }
}
