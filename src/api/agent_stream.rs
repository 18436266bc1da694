//! `GET /v1/agent-stream/TOKEN`: the upgrade of an agent that opens a WebSocket to the engine (RFC 6455 4.2). The token
//! is its credential; the route has no place in the document, since it is no request of a client of the API.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request};
use axum::http::header::{
    CONNECTION, CONTENT_TYPE, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;
use hyper_util::rt::TokioIo;
use ringer_base::error::Error;
use ringer_base::tasks::to_its_end;
use ringer_service::jobs::{AgentStreams, StreamRefusal};
use ringer_transport::websocket::link::{Duplex, Link, socket_config};
use serde_json::json;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::Server;
use super::client_limits::CameFrom;
use super::response::JSON;

/// Pattern of the route.
pub(super) const PATH: &str = "/v1/agent-stream/{token}";

/// Answers an upgrade request, and hands the connection to the call that waits for it.
pub(super) async fn upgrade(server: Arc<Server>, token: Path<String>, request: Request) -> Response {
    let Some(streams) = &server.setup.streams else { return super::nowhere() };
    if request.method() != Method::GET {
        return refusal_of(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
    }
    let Some(accept) = accept_key(request.headers()) else {
        let mut response = refusal_of(StatusCode::UPGRADE_REQUIRED, "This address is for WebSockets alone");
        response.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
        return response;
    };
    let source = request.extensions().get::<CameFrom>().map_or(SocketAddr::from(([0, 0, 0, 0], 0)), |from| from.0);
    let (streams, token, tasks) = (streams.clone(), token.0, server.tasks.clone());
    // When the client disconnects, this request ends, but not the result that was claimed for it.
    let taking = to_its_end(async move {
        let taken = streams.take(&token, source).await;
        taken.map(|taken| {
            taken.map(|seat| {
                tasks.spawn("agent stream upgrade", async move {
                    let link = open(&streams, request).await;
                    streams.hold(seat, link, source);
                });
            })
        })
    });
    match taking.await.unwrap_or_else(|why| Err(Error::internal(why))) {
        Ok(Ok(())) => switching(&accept),
        Ok(Err(refusal)) => {
            let (status, text) = match refusal {
                StreamRefusal::Unknown => (StatusCode::UNAUTHORIZED, "The token is not known or expired"),
                StreamRefusal::InUse => (StatusCode::CONFLICT, "The call of this token runs"),
                StreamRefusal::Over => (StatusCode::GONE, "The call of this token is over"),
                StreamRefusal::Busy => (StatusCode::SERVICE_UNAVAILABLE, "No call can be taken at the moment"),
            };
            refusal_of(status, text)
        }
        Err(error) => {
            tracing::error!(%error, "an agent's connection could not be accepted");
            refusal_of(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
        }
    }
}

/// Returns the answer to the key of a request; `None` when it does not ask for a WebSocket of version 13.
fn accept_key(headers: &HeaderMap) -> Option<String> {
    let has = |name, word: &str| {
        let values = headers.get_all(name).iter().filter_map(|value: &HeaderValue| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    if !has(UPGRADE, "websocket") || !has(CONNECTION, "upgrade") || !has(SEC_WEBSOCKET_VERSION, "13") {
        return None;
    }
    headers.get(SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()))
}

async fn open(streams: &AgentStreams, request: Request) -> Option<Link> {
    let limits = streams.limits();
    let upgraded = hyper::upgrade::on(request).await.ok()?;
    let stream: Box<dyn Duplex> = Box::new(TokioIo::new(upgraded));
    let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(socket_config(limits))).await;
    Some(Link::new(socket, limits))
}

fn switching(accept: &str) -> Response {
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

fn refusal_of(status: StatusCode, text: &str) -> Response {
    let mut response = Response::new(Body::from(json!({ "detail": text }).to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    super::with_request_id(response)
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
