//! Calls that reach the sample agent by a WebSocket: `/` speaks the engine's own protocol, `/KIND` each of the
//! dialects.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::{Desk, RESULT_ID};
use crate::clock::new_id;
use crate::engine::{SocketSettings, WebSocketDial};
use crate::transport::incoming::{Incoming, IncomingChannel};
use crate::transport::websocket::listen::{IncomingSocket, accept};
use crate::transport::websocket::{Dialect, Kind, Role};

/// Time that a handshake may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the next connection; waits for ever without a listener.
pub(super) async fn next_stream(listener: Option<&TcpListener>) -> Option<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => match listener.accept().await {
            Ok(accepted) => Some(accepted),
            Err(error) => {
                tracing::warn!("a connection was not accepted: {error}");
                // No file is left: the next attempt waits for one that closes.
                tokio::time::sleep(Duration::from_millis(100)).await;
                None
            }
        },
        None => std::future::pending().await,
    }
}

/// Returns the dialect that is spoken at a path.
fn dialect_at(path: &str) -> Option<Dialect> {
    match path.trim_start_matches('/') {
        "" => Some(Dialect::new(Kind::Default)),
        name => Kind::from_name(name).map(Dialect::new),
    }
}

impl Desk {
    /// Takes a connection: its handshake, then its call.
    pub(super) fn take_stream(self: &Arc<Self>, stream: TcpStream, address: SocketAddr, over: mpsc::Sender<()>) {
        let desk = self.clone();
        self.tasks.spawn("desk socket", async move {
            let settings = SocketSettings::default();
            match accept(stream, settings.limits, PATIENCE, dialect_at).await {
                Ok(mut accepted) => {
                    if let Some(fault) = desk.fault {
                        fault.bend_dialect(&mut accepted.dialect);
                    }
                    let header =
                        |name: &str| accepted.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
                    let result_id = header(RESULT_ID).and_then(|(_, value)| value.parse().ok()).unwrap_or_default();
                    let dial = WebSocketDial {
                        url: format!("ws://{}{}", header("host").map_or("", |(_, host)| host), accepted.target),
                        dialect: Some(accepted.dialect),
                        result_id,
                        settings,
                        ..WebSocketDial::default()
                    };
                    let socket = IncomingSocket::new(accepted.link, address, Role::Agent);
                    let incoming = Incoming {
                        called: String::new(),
                        from: address.to_string(),
                        to: accepted.target,
                        source: address,
                        headers: accepted.headers,
                        call_id: new_id().to_string(),
                        channel: IncomingChannel::WebSocket(Box::new(socket)),
                    };
                    desk.answer(incoming, Some(Box::new(dial))).await;
                    let _ = over.send(()).await;
                }
                Err(why) => tracing::warn!(%address, "a WebSocket connection failed: {why}"),
            }
        });
    }
}
