//! `/mcp`: the door of coding assistants (Model Context Protocol, streamable HTTP). Host, origin and key are checked
//! here; what an assistant may ask for is the routes of this API, in its key's scope.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, TRANSFER_ENCODING};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use axum::routing::any;
use futures_util::future::BoxFuture;
use ringer_base::clock;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use url::Url;

use crate::Server;
use crate::client_limits::CameFrom;
use crate::host::{is_served, misdirection};
use crate::pipeline::{allow_origin, finish};
use crate::response::{detail, options};

/// Path of the door.
const PATH: &str = "/mcp";
/// Route by which a key is checked.
const KEY_PATH: &str = "/v1/key";
/// Methods of the protocol (streamable HTTP).
const METHODS: &str = "GET, POST, DELETE, OPTIONS";

/// Function that makes the service of assistants: it gets the routes of the API, and a token that is cancelled when the
/// server stops.
pub type Assistants = Arc<dyn Fn(Router, CancellationToken) -> AssistantService + Send + Sync>;

/// Function that answers a request of an assistant whose key is good.
pub type AssistantService = Arc<dyn Fn(Request) -> BoxFuture<'static, Response> + Send + Sync>;

/// Adds the door to the routes of the API, which it uses.
pub(super) fn add_to(router: Router, server: &Arc<Server>) -> Router {
    let Some(make) = &server.setup.assistants else { return router };
    let (inside, server) = (router.clone(), Arc::clone(server));
    let service = make(inside.clone(), server.stopping.child_token());
    let pass = move |request: Request| pass(Arc::clone(&server), inside.clone(), Arc::clone(&service), request);
    router.route(PATH, any(pass))
}

async fn pass(server: Arc<Server>, inside: Router, service: AssistantService, request: Request) -> Response {
    let (headers, from) = (request.headers().clone(), request.extensions().get::<CameFrom>().copied());
    let is_question = request.method() == Method::OPTIONS;
    let mut response = match refusal(&server, inside, &headers, from, is_question).await {
        Some(refusal) => refusal,
        None if is_question => options(HeaderValue::from_static(METHODS)),
        None => service(request).await,
    };
    let origin = headers.get(ORIGIN).cloned();
    finish(&mut response, &clock::new_id().to_string());
    if let Some(origin) = origin.filter(|origin| server.allows(origin)) {
        allow_origin(response.headers_mut(), origin, &HeaderValue::from_static(METHODS));
        let headers = response.headers_mut();
        headers.insert(EXPOSED, HeaderValue::from_static("mcp-session-id, mcp-protocol-version"));
        headers.append(ALLOWED, HeaderValue::from_static("mcp-session-id, mcp-protocol-version, mcp-method, mcp-name"));
    }
    response
}

const EXPOSED: HeaderName = HeaderName::from_static("access-control-expose-headers");
const ALLOWED: HeaderName = HeaderName::from_static("access-control-allow-headers");

/// Returns the refusal of a request by its host, its origin or its key; `None`: it is let in.
async fn refusal(
    server: &Server,
    inside: Router,
    headers: &HeaderMap,
    from: Option<CameFrom>,
    is_question: bool,
) -> Option<Response> {
    if !is_served(server, headers) {
        return Some(misdirection());
    }
    if let Some(origin) = headers.get(ORIGIN).filter(|origin| !server.allows(origin) && !is_own(origin, headers)) {
        tracing::debug!(?origin, "an assistant's origin is refused");
        return Some(detail(StatusCode::FORBIDDEN, "This origin may not ask here"));
    }
    // A browser asks without a key whether it may ask.
    if is_question {
        return None;
    }
    let mut asking = Request::new(Body::empty());
    *asking.uri_mut() = KEY_PATH.parse().ok()?;
    *asking.headers_mut() = headers.clone();
    for name in [CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING] {
        asking.headers_mut().remove(name);
    }
    // Wrong keys are counted by the address that sends them.
    if let Some(from) = from {
        asking.extensions_mut().insert(from);
    }
    let answer = match inside.oneshot(asking).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    };
    (answer.status() != StatusCode::OK).then_some(answer)
}

/// True for the origin of a page that this server itself has sent.
fn is_own(origin: &HeaderValue, headers: &HeaderMap) -> bool {
    let origin = origin.to_str().ok().and_then(|origin| Url::parse(origin).ok());
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    origin.is_some_and(|origin| origin.authority().eq_ignore_ascii_case(host) && !host.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_its_own_by_host_and_port() {
        for (origin, host, expect) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080", true),
            ("http://LOCALHOST:8080", "localhost:8080", true),
            ("https://calls.example", "calls.example", true),
            ("http://127.0.0.1:9090", "127.0.0.1:8080", false),
            ("http://evil.example", "127.0.0.1:8080", false),
            ("null", "127.0.0.1:8080", false),
            ("null", "", false),
        ] {
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
            assert_eq!(is_own(&HeaderValue::from_static(origin), &headers), expect, "{origin} {host}");
        }
    }
}
