//! `GET /v1/agent-stream/TOKEN`: the upgrade of an agent that opens a WebSocket to the engine (RFC 6455 4.2). The token
//! is its credential; the route has no place in the document, since it is no request of a client of the API.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request};
use axum::http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER, UPGRADE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use ringer_base::error::Error;
use ringer_base::tasks::to_its_end;
use ringer_service::NotDone;
use ringer_service::jobs::StreamRefusal;
use serde_json::json;

use super::Server;
use super::client_limits::CameFrom;
use super::response::JSON;
use super::socket_upgrade::{accept_key, open, switching};

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
    let path = PATH.replace("{token}", &token);
    // When the client disconnects, this request ends, but not the result that was claimed for it.
    let taking = to_its_end(async move {
        let taken = streams.take(&token, source).await;
        taken.map(|seat| {
            tasks.spawn("agent stream upgrade", async move {
                let link = open(request, streams.limits()).await;
                streams.hold(seat, link, source);
            });
        })
    });
    match taking.await.unwrap_or_else(|why| Err(Error::internal(why).into())) {
        Ok(()) => switching(&accept),
        Err(NotDone::Reason(StreamRefusal::Elsewhere(address))) => elsewhere(&address, &path),
        Err(NotDone::Reason(refusal)) => {
            let (status, text) = match refusal {
                StreamRefusal::Draining => return draining(),
                StreamRefusal::Unknown => (StatusCode::UNAUTHORIZED, "The token is not known or expired"),
                StreamRefusal::InUse | StreamRefusal::Elsewhere(_) => {
                    (StatusCode::CONFLICT, "The call of this token runs")
                }
                StreamRefusal::Over => (StatusCode::GONE, "The call of this token is over"),
                StreamRefusal::Busy => (StatusCode::SERVICE_UNAVAILABLE, "No call can be taken at the moment"),
            };
            refusal_of(status, text)
        }
        Err(NotDone::Fault(error)) => {
            tracing::error!(%error, "an agent's connection could not be accepted");
            refusal_of(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
        }
    }
}

/// Sends an agent to the engine that holds its call (RFC 9110 15.4.8).
fn elsewhere(address: &str, path: &str) -> Response {
    let mut response = refusal_of(StatusCode::TEMPORARY_REDIRECT, "The call of this token is at another engine");
    if let Ok(place) = HeaderValue::try_from(format!("{address}{path}")) {
        response.headers_mut().insert(LOCATION, place);
    }
    response
}

/// Refuses an agent while this engine begins nothing new.
fn draining() -> Response {
    let mut response = refusal_of(StatusCode::SERVICE_UNAVAILABLE, "The engine is draining and takes no calls");
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

fn refusal_of(status: StatusCode, text: &str) -> Response {
    let mut response = Response::new(Body::from(json!({ "detail": text }).to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    super::with_request_id(response)
}
