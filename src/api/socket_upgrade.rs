//! Upgrades of HTTP requests to WebSockets (RFC 6455 4.2), for every server of this program.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use hyper_util::rt::TokioIo;
use ringer_transport::websocket::link::{Duplex, Link, LinkLimits, socket_config};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

/// Returns the answer to the key of a request; `None` when it does not ask for a WebSocket of version 13 (RFC 6455
/// 4.2.1).
pub fn accept_key(headers: &HeaderMap) -> Option<String> {
    let has = |name, word: &str| {
        let values = headers.get_all(name).iter().filter_map(|value: &HeaderValue| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    if !has(UPGRADE, "websocket") || !has(CONNECTION, "upgrade") || !has(SEC_WEBSOCKET_VERSION, "13") {
        return None;
    }
    headers.get(SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()))
}

/// Returns the connection of a request once it is a WebSocket; `None` when it ended before.
pub async fn open(request: Request, limits: LinkLimits) -> Option<Link> {
    let upgraded = hyper::upgrade::on(request).await.ok()?;
    let stream: Box<dyn Duplex> = Box::new(TokioIo::new(upgraded));
    let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(socket_config(limits))).await;
    Some(Link::new(socket, limits))
}

/// Returns the response with which a connection becomes a WebSocket. `accept`: the answer to the key of its request.
pub fn switching(accept: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Ok(accept) = HeaderValue::from_str(accept) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_for_a_websocket_are_upgraded() {
        // The key and its answer are those of RFC 6455 1.3.
        let good = [
            ("upgrade", "WebSocket"),
            ("connection", "keep-alive, Upgrade"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let headers = |without: Option<&str>| -> HeaderMap {
            let kept = good.into_iter().filter(|(name, _)| Some(*name) != without);
            kept.map(|(name, value)| (name.parse().expect("a name"), HeaderValue::from_static(value))).collect()
        };
        assert_eq!(accept_key(&headers(None)).as_deref(), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        for (name, _) in good {
            assert_eq!(accept_key(&headers(Some(name))), None, "without {name}");
        }
    }
}
