//! WebSockets that the other side opens, and their handshake.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::accept_hdr_async_with_config;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::http::header::{HeaderValue, SEC_WEBSOCKET_PROTOCOL};

use super::link::{Duplex, Link, LinkLimits, socket_config};
use super::{Dialect, Role};

/// A connection that came in.
#[derive(Debug)]
pub struct IncomingSocket {
    /// Connection of a call that came in. The lock is never contended: it lets the connection be shared by reference.
    link: Mutex<Link>,
    /// Address of the other side.
    pub address: SocketAddr,
    /// Side that this one plays.
    pub role: Role,
}

impl IncomingSocket {
    /// Returns a connection of which nothing was read.
    pub fn new(link: Link, address: SocketAddr, role: Role) -> IncomingSocket {
        IncomingSocket { link: Mutex::new(link), address, role }
    }

    /// Returns the connection, to be read from now on.
    pub fn into_link(self) -> Link {
        self.link.into_inner()
    }
}

/// A handshake that was accepted.
#[derive(Debug)]
pub struct Accepted {
    /// The connection that was taken.
    pub link: Link,
    /// Protocol of its path.
    pub dialect: Dialect,
    /// Path and query of the request.
    pub target: String,
    /// Headers of the request, in order; those that are no text are left out.
    pub headers: Vec<(String, String)>,
}

/// Carries out the handshake of a server within `patience`; `dialects` says what is spoken at a path, and where nothing
/// is the answer is 404.
///
/// # Errors
/// The reason in words: no handshake, an unknown path, or it took too long.
pub async fn accept(
    stream: TcpStream,
    limits: LinkLimits,
    patience: Duration,
    dialects: impl Fn(&str) -> Option<Dialect> + Unpin,
) -> Result<Accepted, String> {
    let _ = stream.set_nodelay(true);
    let seen = Arc::new(Mutex::new(None));
    let kept = seen.clone();
    #[expect(clippy::result_large_err, reason = "the library's callback has this type")]
    let choose = move |request: &Request, mut response: Response| -> Result<Response, ErrorResponse> {
        let Some(dialect) = dialects(request.uri().path()) else {
            let mut refusal = ErrorResponse::new(Some("nothing is spoken at this path".to_owned()));
            *refusal.status_mut() = StatusCode::NOT_FOUND;
            return Err(refusal);
        };
        let offered = request.headers().get_all(SEC_WEBSOCKET_PROTOCOL);
        let is_offered = |name: &str| {
            let names = offered.iter().filter_map(|value| value.to_str().ok()).flat_map(|names| names.split(','));
            names.into_iter().any(|one| one.trim() == name)
        };
        if let Some(name) = dialect.subprotocol.as_deref().filter(|name| is_offered(name))
            && let Ok(value) = HeaderValue::from_str(name)
        {
            response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, value);
        }
        let headers = request.headers().iter();
        let headers = headers.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        let target = request.uri().path_and_query().map_or_else(String::new, |target| target.to_string());
        *kept.lock() = Some((dialect, target, headers.collect()));
        Ok(response)
    };
    let stream: Box<dyn Duplex> = Box::new(stream);
    let accepting = accept_hdr_async_with_config(stream, choose, Some(socket_config(limits)));
    let accepted = timeout(patience, accepting).await.map_err(|_| "the handshake took too long".to_owned())?;
    let socket = accepted.map_err(|error| error.to_string())?;
    let seen = seen.lock().take();
    let (dialect, target, headers) = seen.ok_or_else(|| "the handshake had no request".to_owned())?;
    Ok(Accepted { link: Link::new(socket, limits), dialect, target, headers })
}
