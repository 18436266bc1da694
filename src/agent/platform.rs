//! Calls that reach the sample agent as if it were on a platform: requests that make sessions, and WebSockets in the
//! platform's protocol, at one address.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::{Desk, RESULT_ID};
use crate::api::socket_upgrade::{accept_key, open, switching};
use crate::clock::new_id;
use crate::config::Secret;
use crate::engine::{SocketSettings, WebSocketDial};
use crate::tasks::Tasks;
use crate::transport::incoming::{Incoming, IncomingChannel};
use crate::transport::websocket::Role;
use crate::transport::websocket::link::Link;
use crate::transport::websocket::listen::IncomingSocket;
use crate::transport::websocket::platform::far::{FarCall, FarRequest, FarSide};

/// Bytes of the longest body that is read.
const BODY_BYTES: usize = 64 * 1024;
/// Sessions that may wait for their calls.
const MAX_SESSIONS: usize = 64;
/// Calls that may wait for whoever takes them.
const WAITING: usize = 64;

/// A call whose socket is open.
pub struct PlatformCall {
    link: Link,
    source: SocketAddr,
    url: String,
    target: String,
    headers: Vec<(String, String)>,
    call: FarCall,
}

/// The server of one platform.
struct Server {
    side: Arc<FarSide>,
    key: Option<Secret>,
    tasks: Tasks,
    calls: mpsc::Sender<PlatformCall>,
    /// Sessions that were made and have no call yet, by their names: the agent, and the body that made it.
    sessions: Mutex<HashMap<String, (String, Value)>>,
}

/// Returns the way of calls from listeners to the agent.
pub fn channel() -> (mpsc::Sender<PlatformCall>, mpsc::Receiver<PlatformCall>) {
    mpsc::channel(WAITING)
}

/// Serves the protocol of `side` at `listener` until `tasks` end, and sends its calls to `calls`. Without the right
/// `key` it refuses, where one is set.
pub fn listen(
    listener: TcpListener,
    tasks: &Tasks,
    side: FarSide,
    key: Option<Secret>,
    calls: mpsc::Sender<PlatformCall>,
) {
    let server = Server { side: Arc::new(side), key, tasks: tasks.clone(), calls, sessions: Mutex::default() };
    let app = Router::new().fallback(answer).with_state(Arc::new(server));
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    tasks.spawn_until_stop("platform", async move {
        if let Err(error) = axum::serve(listener, app).await {
            tracing::error!("calls of the platform are not answered any more: {error}");
        }
    });
}

/// Returns the next call of a platform; waits for ever without any listener.
pub(super) async fn next_call(calls: &mut Option<mpsc::Receiver<PlatformCall>>) -> PlatformCall {
    if let Some(calls) = calls
        && let Some(call) = calls.recv().await
    {
        return call;
    }
    std::future::pending().await
}

async fn answer(
    State(server): State<Arc<Server>>,
    ConnectInfo(source): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let accept = accept_key(request.headers());
    let (method, uri) = (request.method().to_string(), request.uri().clone());
    let known = server.side.request(&method, uri.path(), accept.is_some());
    let Some(known) = known else {
        let what = if accept.is_some() { "No WebSocket" } else { "Nothing" };
        return refusal(StatusCode::NOT_FOUND, &format!("{what} of {} is at this path", server.side.name()));
    };
    let given = {
        let header = |name: &str| text_of(request.headers(), name);
        server.side.credential(uri.query().unwrap_or_default(), &header)
    };
    let is_open = matches!(known, FarRequest::SessionCall(_));
    if !is_open && server.key.as_ref().is_some_and(|key| key.expose() != given) {
        return refusal(StatusCode::UNAUTHORIZED, "The key is not the right one");
    }
    let call = match known {
        FarRequest::Session(agent) => return server.make_session(agent, request).await,
        FarRequest::Call(agent) => FarCall::new(server.side.clone(), agent, new_id().to_string(), Value::Null),
        FarRequest::SessionCall(name) => match server.sessions.lock().remove(&name) {
            Some((agent, opening)) => FarCall::new(server.side.clone(), agent, name, opening),
            None => return refusal(StatusCode::UNAUTHORIZED, "The session is not known, or it was used"),
        },
    };
    server.take(call, source, request);
    switching(&accept.unwrap_or_default())
}

impl Server {
    /// Makes a session that waits for its call.
    async fn make_session(&self, agent: String, request: Request) -> Response {
        let base = format!("ws://{}", text_of(request.headers(), HOST.as_str()).unwrap_or_default());
        let body = match to_bytes(request.into_body(), BODY_BYTES).await {
            Ok(body) => body,
            Err(error) => return refusal(StatusCode::PAYLOAD_TOO_LARGE, &format!("the body cannot be read: {error}")),
        };
        let opening = match body.is_empty() {
            true => Value::Null,
            false => match serde_json::from_slice(&body) {
                Ok(opening) => opening,
                Err(error) => return refusal(StatusCode::BAD_REQUEST, &format!("the body is no JSON: {error}")),
            },
        };
        let name = new_id().to_string();
        let Some((status, answer)) = self.side.session_answer(&base, &name) else {
            return refusal(StatusCode::NOT_FOUND, "no session is made here");
        };
        let mut sessions = self.sessions.lock();
        if sessions.len() >= MAX_SESSIONS {
            return refusal(StatusCode::TOO_MANY_REQUESTS, "too many sessions wait for their calls");
        }
        sessions.insert(name, (agent, opening));
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
        (status, [(CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
    }

    /// Hands the connection of a request on once it is a WebSocket.
    fn take(&self, call: FarCall, source: SocketAddr, request: Request) {
        let host = text_of(request.headers(), HOST.as_str()).unwrap_or_default();
        let target = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
        let headers = request.headers().iter();
        let headers = headers.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        let headers: Vec<(String, String)> = headers.collect();
        let calls = self.calls.clone();
        self.tasks.spawn("platform call", async move {
            let Some(link) = open(request, SocketSettings::default().limits).await else { return };
            let url = format!("ws://{host}{target}");
            let _ = calls.send(PlatformCall { link, source, url, target, headers, call }).await;
        });
    }
}

impl Desk {
    /// Takes a call of a platform.
    pub(super) fn take_platform_call(self: &Arc<Self>, call: PlatformCall, over: mpsc::Sender<()>) {
        let desk = self.clone();
        self.tasks.spawn("desk platform call", async move {
            let PlatformCall { link, source, url, target, headers, call } = call;
            let mut dialect = call.dialect();
            if let Some(fault) = desk.fault {
                fault.bend_dialect(&mut dialect);
            }
            let named = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(RESULT_ID));
            let result_id = named.and_then(|(_, value)| value.parse().ok()).unwrap_or_default();
            let dial = WebSocketDial { url, dialect: Some(dialect), result_id, ..WebSocketDial::default() };
            let incoming = Incoming {
                called: String::new(),
                from: source.to_string(),
                to: target,
                source,
                headers,
                call_id: new_id().to_string(),
                channel: IncomingChannel::WebSocket(Box::new(IncomingSocket::new(link, source, Role::Agent))),
            };
            desk.answer(incoming, Some(Box::new(dial))).await;
            let _ = over.send(()).await;
        });
    }
}

fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn refusal(status: StatusCode, text: &str) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], json!({ "detail": text }).to_string()).into_response()
}
