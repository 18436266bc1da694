//! Steps that every request passes before its handler: method, size, key, scope, body and its validation, organization,
//! Idempotency-Key. The first that fails answers. Every answer gets a request id here. No route is named here.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, AUTHORIZATION, CONNECTION,
    CONTENT_LENGTH, CONTENT_TYPE, ORIGIN, RETRY_AFTER, VARY,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use percent_encoding::percent_decode_str;
use ringer_base::clock;
use ringer_base::error::Error;
use ringer_model::api_key::Scope;
use ringer_model::schema::Node;
use ringer_model::validate::{Source, validate};
use ringer_model::validation_error::{Problem, Step, ValidationErrors};
use ringer_service::Caller;
use ringer_syntax::json;
use ringer_syntax::json::Json;
use serde_json::Value;
use subtle::ConstantTimeEq;
use tokio::time::timeout;
use tracing::Instrument;
use url::form_urlencoded;

use crate::client_limits::{Unread, client_of};
use crate::endpoint::{Ctx, Endpoint, InternalToken};
use crate::host::{is_served, misdirection};
use crate::idempotency::Call;
use crate::rate::Quota;
use crate::response::{detail, key_refusal, no_method, options, refusal, respond, scope_missing, too_large, too_slow};
use crate::upload::Upload;
use crate::{Server, idempotency, packed, upload};

/// Most characters of a body of the wrong content type that the error shows.
const SHOWN_CHARS: usize = 1000;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const ORGANIZATION: HeaderName = HeaderName::from_static("x-organization-id");
const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const CARRIER_TOKEN: HeaderName = HeaderName::from_static("x-carrier-token");
const INTERNAL_TOKEN: HeaderName = HeaderName::from_static("x-internal-token");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// An endpoint with its compiled checks of path, query and body.
pub struct Ready {
    /// The endpoint as declared.
    pub endpoint: Endpoint,
    /// Constraints on path, query and body.
    pub nodes: [Node; 3],
}

/// All endpoints of one path.
pub struct Route {
    /// Endpoints of the path, one a method.
    pub methods: Vec<Ready>,
    /// Their methods, as the value of `Allow`.
    pub allow: HeaderValue,
}

/// Answer that ends a request early.
type Stop = Box<Response>;

/// Answers one request to `route`.
pub async fn pass(server: Arc<Server>, route: Arc<Route>, request: Request) -> Response {
    let request_id = clock::new_id().to_string();
    // The path of a request may hold a secret; the declared path holds only names of parameters.
    let path = route.methods.first().map_or("", |ready| ready.endpoint.path);
    let span = tracing::info_span!("request", request_id, method = request.method().as_str(), path);
    let answered = async {
        let own = |ready: &&Ready| ready.endpoint.method == *request.method();
        let changes = route.methods.iter().find(own).is_some_and(|ready| ready.endpoint.changes());
        let response = respond_to(&server, &route, request, &request_id).await;
        let status = response.status().as_u16();
        match changes {
            true => tracing::info!(status, "answered"),
            false => tracing::debug!(status, "answered"),
        }
        response
    };
    answered.instrument(span).await
}

async fn respond_to(server: &Arc<Server>, route: &Route, request: Request, request_id: &str) -> Response {
    let (head, origin) = (request.method() == Method::HEAD, request.headers().get(ORIGIN).cloned());
    let mut response = match answer(server, route, request, request_id).await {
        Ok(response) => response,
        Err(stop) => *stop,
    };
    finish(&mut response, request_id);
    if let Some(origin) = origin.filter(|origin| server.allows(origin)) {
        allow_origin(response.headers_mut(), origin, &route.allow);
    }
    if head { without_body(response) } else { response }
}

/// Sets the request id of an answer.
pub fn finish(response: &mut Response, request_id: &str) {
    if let Ok(id) = HeaderValue::from_str(request_id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
}

/// Sets the fields by which a browser shows the answer to a page of `origin`.
pub(super) fn allow_origin(headers: &mut HeaderMap, origin: HeaderValue, methods: &HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods.clone());
    let fields = "authorization, content-type, idempotency-key, last-event-id, range, x-api-key, x-organization-id";
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(fields));
    headers.insert(VARY, HeaderValue::from_static("origin"));
}

fn without_body(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    Response::from_parts(parts, Body::empty())
}

async fn answer(server: &Server, route: &Route, request: Request, request_id: &str) -> Result<Response, Stop> {
    let method = if request.method() == Method::HEAD { Method::GET } else { request.method().clone() };
    if method == Method::OPTIONS {
        return Ok(options(route.allow.clone()));
    }
    let ready = route.methods.iter().find(|ready| ready.endpoint.method == method);
    let ready = ready.ok_or_else(|| Box::new(no_method(route.allow.clone())))?;
    let (parts, body) = request.into_parts();
    let limit = server.body_limit(&ready.endpoint);
    let announced = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(Box::new(too_large(limit)));
    }
    if ready.endpoint.of_page && !is_served(server, &parts.headers) {
        return Err(Box::new(misdirection()));
    }
    let caller = match admit(server, &ready.endpoint, &parts, request_id).await {
        Ok(caller) => caller,
        Err((stop, Guess::None)) => return Err(stop),
        Err((stop, Guess::Wrong)) => return Err(delay_refusal(server, &parts, stop).await),
    };
    if server.setup.draining.is_cancelled() && ready.endpoint.changes() {
        return Err(Box::new(refusal(Error::Unavailable("Service is shutting down".into()), request_id)));
    }
    let quota = quota(server, ready, &caller);
    if let Some(quota) = quota.filter(|quota| !quota.allowed) {
        return Ok(quota.refusal());
    }
    let mut response = match run_admitted(server, ready, caller, parts, body, request_id).await {
        Ok(response) => response,
        Err(stop) => *stop,
    };
    if let Some(quota) = quota {
        quota.show(&mut response);
    }
    if ready.endpoint.deprecated {
        response.headers_mut().insert(DEPRECATION, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// Takes one request from the rate limit of the key on this route; `None`: there is no limit.
fn quota(server: &Server, ready: &Ready, caller: &Caller) -> Option<Quota> {
    let limit = ready.endpoint.scope.map_or(0, |_| server.setup.rates.of(&ready.endpoint));
    server.buckets.take(
        caller.key_id,
        ready.endpoint.method.clone(),
        ready.endpoint.path,
        limit,
        server.service.clock().now_ms(),
    )
}

/// Reads, validates and runs a request whose key was accepted.
async fn run_admitted(
    server: &Server,
    ready: &Ready,
    caller: Caller,
    parts: Parts,
    body: Body,
    request_id: &str,
) -> Result<Response, Stop> {
    let limit = server.body_limit(&ready.endpoint);
    let [.., body_node] = &ready.nodes;
    let held = if body_node.is_nothing() && !ready.endpoint.idempotent && !ready.endpoint.takes_raw {
        None
    } else {
        let read = timeout(
            server.body_patience(&ready.endpoint),
            server.bodies.collect(body, limit, if ready.endpoint.uploads { 2 } else { 1 }),
        )
        .await;
        Some(read.map_err(|_| Box::new(too_slow()))?.map_err(|unread| Box::new(unread_body(unread, limit)))?)
    };
    let (bytes, _place) = held.map_or_else(Default::default, |held| (held.bytes, held.place));
    let (walked, upload) = check(ready, &parts, &bytes).await?;
    let upload = if ready.endpoint.takes_raw { Some(Upload { name: None, bytes: bytes.clone() }) } else { upload };
    own_organization(ready, &parts.headers, &caller, request_id)?;
    let ctx = Ctx {
        service: server.service.clone(),
        caller,
        is_operator: has_internal_token(server, &parts.headers),
        headers: parts.headers,
        upload,
        stopping: server.stopping.clone(),
        document: Arc::clone(&server.document),
        probe: server.setup.probe.clone(),
        health: server.health.clone(),
        door: server.setup.door.clone(),
        sample_agent: server.setup.sample_agent.clone(),
        line_tests: server.setup.line_tests.clone(),
        previews: server.setup.previews.clone(),
        suites: server.setup.suites.clone(),
    };
    let takes_gzip = ready.endpoint.packs && packed::is_taken(&ctx.headers);
    let call = Call {
        endpoint: ready.endpoint.clone(),
        path: parts.uri.path().to_owned(),
        ctx,
        parts: walked,
        request_id: request_id.to_owned(),
    };
    let answered = timeout(server.setup.patience.answer, idempotency::once(server, call, bytes)).await;
    // A request with an Idempotency-Key runs on, and its repeat gets the answer.
    let answered =
        answered.map_err(|_| Box::new(refusal(Error::Unavailable("The request took too long".into()), request_id)));
    if takes_gzip { Ok(packed::pack(answered?).await) } else { answered }
}

/// Returns the answer to a body that was not read to its end.
fn unread_body(unread: Unread, limit: usize) -> Response {
    match unread {
        Unread::TooLarge => too_large(limit),
        Unread::Broken => detail(StatusCode::BAD_REQUEST, "The body ended early"),
        Unread::NoMemory => {
            let mut response = detail(StatusCode::SERVICE_UNAVAILABLE, "Too many request bodies at the same time");
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            response
        }
    }
}

/// A secret that came with a refused request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guess {
    /// There was none, or it was right.
    None,
    /// It may be one of many that are tried.
    Wrong,
}

/// Lets the refusal of a wrong key or token wait, ever longer for an address that sends many. Where many of an address
/// wait already, the refusal is sent at once and ends the connection: others of the address need it.
async fn delay_refusal(server: &Server, parts: &Parts, mut stop: Stop) -> Stop {
    let behind_proxy = server.setup.connections.behind_proxy;
    let Some(client) = client_of(&parts.extensions, &parts.headers, behind_proxy) else { return stop };
    let delay = server.wrong_keys.delay(client, server.service.clock().now_ms());
    match server.wrong_keys.wait(client) {
        // Nothing but time is awaited. A client that leaves ends this.
        Some(_place) => tokio::time::sleep(delay).await,
        None => drop(stop.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"))),
    }
    stop
}

/// Returns the caller of a key that may use this endpoint, or the refusal with what was guessed.
async fn admit(server: &Server, endpoint: &Endpoint, parts: &Parts, request_id: &str) -> Result<Caller, (Stop, Guess)> {
    let headers = &parts.headers;
    let refused = |response: Response, guess: Guess| (Box::new(response), guess);
    if endpoint.carrier && !is_carrier(server, parts) {
        return Err(refused(key_refusal(), Guess::Wrong));
    }
    if endpoint.agent_token {
        let is_known = is_agent(server, endpoint, parts).await;
        if !is_known.map_err(|error| refused(refusal(error, request_id), Guess::None))? {
            return Err(refused(key_refusal(), Guess::Wrong));
        }
    }
    if endpoint.scope.is_none() && !endpoint.reads_key {
        return Ok(nobody());
    }
    let key = match headers.get(API_KEY) {
        Some(key) => key.to_str().ok(),
        None => headers.get(AUTHORIZATION).and_then(|value| bearer(value.to_str().ok()?)),
    };
    let Some(key) = key.filter(|key| !key.is_empty()) else {
        return if endpoint.scope.is_none() { Ok(nobody()) } else { Err(refused(key_refusal(), Guess::None)) };
    };
    let known = server.service.library().authenticate(key).await;
    let known = known.map_err(|error| refused(refusal(error, request_id), Guess::None))?;
    let caller = known.ok_or_else(|| refused(key_refusal(), Guess::Wrong))?;
    if let Some(needed) = endpoint.scope.filter(|needed| !caller.scope.covers(*needed)) {
        return Err(refused(scope_missing(caller.scope, needed), Guess::None));
    }
    if !is_internal(server, endpoint.internal, headers, &caller) {
        return Err(refused(detail(StatusCode::FORBIDDEN, "Invalid internal token"), Guess::Wrong));
    }
    Ok(caller)
}

/// True for a request that may use a route with this requirement of the internal token.
fn is_internal(server: &Server, need: InternalToken, headers: &HeaderMap, caller: &Caller) -> bool {
    match need {
        InternalToken::Unread => true,
        InternalToken::OrAdmin if server.setup.internal_token.is_none() => caller.scope.covers(Scope::Admin),
        InternalToken::OrAdmin | InternalToken::Needed => has_internal_token(server, headers),
        InternalToken::Optional => !headers.contains_key(INTERNAL_TOKEN) || has_internal_token(server, headers),
    }
}

/// True if the request has the internal token; false where none is configured.
fn has_internal_token(server: &Server, headers: &HeaderMap) -> bool {
    let Some(token) = &server.setup.internal_token else { return false };
    let given = headers.get(INTERNAL_TOKEN).map_or(&[][..], HeaderValue::as_bytes);
    token.expose().as_bytes().ct_eq(given).into()
}

/// True for the carrier's token, in a header or in the query; false if no token is set.
fn is_carrier(server: &Server, parts: &Parts) -> bool {
    let Some(token) = &server.service.settings().sms.inbound_token else { return false };
    let given = match parts.headers.get(CARRIER_TOKEN) {
        Some(value) => value.as_bytes().to_vec(),
        None => token_in_query(parts),
    };
    token.expose().as_bytes().ct_eq(&given).into()
}

/// True for the token of the agent in the path, as a bearer token or in the query.
async fn is_agent(server: &Server, endpoint: &Endpoint, parts: &Parts) -> ringer_base::error::Result<bool> {
    let path = segments(endpoint.path, parts.uri.path());
    let id = match &path {
        Json::Object(members) => members.iter().find(|(name, _)| name == "agent_id"),
        _ => None,
    };
    let id = match id {
        Some((_, Json::Text(id))) => id.parse().unwrap_or_default(),
        _ => 0,
    };
    let given = match parts.headers.get(AUTHORIZATION) {
        Some(value) => value.to_str().ok().and_then(bearer).unwrap_or_default().as_bytes().to_vec(),
        None => token_in_query(parts),
    };
    server.service.runs().is_inbound_token(id, &given).await
}

/// Returns the parameter `token` of the query; empty where there is none.
fn token_in_query(parts: &Parts) -> Vec<u8> {
    let query = parts.uri.query().unwrap_or_default().as_bytes();
    let found = form_urlencoded::parse(query).find(|(name, _)| name == "token");
    found.map(|(_, value)| value.into_owned().into_bytes()).unwrap_or_default()
}

/// Returns the caller of a route without a key, which owns nothing.
fn nobody() -> Caller {
    Caller::keyless(String::new(), Scope::Read)
}

/// Returns the token of `Bearer TOKEN` (RFC 6750 section 2.1; the scheme's case does not matter).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Validates all parts at once. Returns the values that the typed parts are built from, and the uploaded file.
async fn check(ready: &Ready, parts: &Parts, bytes: &Bytes) -> Result<([Value; 3], Option<Upload>), Stop> {
    let [path_node, query_node, body_node] = &ready.nodes;
    let mut issues = ValidationErrors::default();
    let unreadable = || Box::new(detail(StatusCode::BAD_REQUEST, "There was an error parsing the body"));
    // JSON is read as JSON also where a file is possible; any other body must be a form with a file.
    let form = match ready.endpoint.uploads && (bytes.is_empty() || !is_json(&parts.headers)) {
        true => Some(upload::read_form(&parts.headers, bytes).await.map_err(|_| unreadable())?),
        false => None,
    };
    let body_text = match body_node.is_nothing() || form.is_some() {
        true => "",
        false => std::str::from_utf8(bytes).map_err(|_| unreadable())?,
    };
    let body_json = match ready.endpoint.carrier && is_form(&parts.headers) {
        true => Some(parameters(body_text)),
        false => read_body(body_text, &parts.headers)?,
    };
    let path = match path_node.is_nothing() {
        true => Value::Object(serde_json::Map::new()),
        false => validate(Source::Path, path_node, &segments(ready.endpoint.path, parts.uri.path()), &mut issues),
    };
    let query = match query_node.is_nothing() {
        true => Value::Object(serde_json::Map::new()),
        false => validate(Source::Query, query_node, &parameters(parts.uri.query().unwrap_or_default()), &mut issues),
    };
    if ready.endpoint.idempotent {
        idempotency::check_key(&parts.headers, &mut issues);
    }
    let (fields, file) = form.map_or((None, None), |form| (Some(form.fields), form.file));
    let body = match body_json {
        _ if fields.is_some() => {
            if file.is_none() {
                let loc = ["body", "file"].map(|step| Step::Name(Cow::Borrowed(step)));
                issues.add(&loc, &Problem::plain("missing"), &Json::Null);
            }
            Value::Object(fields.unwrap_or_default())
        }
        _ if body_node.is_nothing() => Value::Object(serde_json::Map::new()),
        None if body_node.nullable => Value::Null,
        None => {
            issues.add(&[Step::Name(Cow::Borrowed("body"))], &Problem::plain("missing"), &Json::Null);
            Value::Null
        }
        Some(json) => validate(Source::Body, body_node, &json, &mut issues),
    };
    if issues.is_empty() { Ok(([path, query, body], file)) } else { Err(Box::new(unprocessable(&issues))) }
}

fn unprocessable(issues: &ValidationErrors) -> Response {
    respond(StatusCode::UNPROCESSABLE_ENTITY, crate::response::JSON, issues.body())
}

/// Returns the value of the body. Text of another content type becomes a string, which fails where an object is due.
fn read_body<'b>(text: &'b str, headers: &HeaderMap) -> Result<Option<Json<'b>>, Stop> {
    if text.is_empty() {
        return Ok(None);
    }
    if !is_json(headers) {
        let shown = text.char_indices().nth(SHOWN_CHARS).map_or(text, |(at, _)| &text[..at]);
        return Ok(Some(Json::Text(Cow::Borrowed(shown))));
    }
    json::read_text(text).map(Some).map_err(|fault| {
        let mut issues = ValidationErrors::default();
        let loc = [Step::Name(Cow::Borrowed("body")), Step::Index(fault.at_char)];
        issues.add(&loc, &Problem::json_invalid(fault.why), &json::empty_object());
        Box::new(unprocessable(&issues))
    })
}

/// True for the content type `application/x-www-form-urlencoded`, any case, any parameters.
fn is_form(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// True for `application/json` and `application/*+json` (RFC 6839), any case, any parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind.strip_prefix("application/").is_some_and(|subtype| subtype == "json" || subtype.ends_with("+json"))
}

/// Returns the segments of a path under the names that the declared path has in their places.
fn segments<'p>(declared: &'p str, path: &'p str) -> Json<'p> {
    let name = |segment: &'p str| segment.strip_prefix('{')?.strip_suffix('}');
    let pairs = declared.split('/').zip(path.split('/'));
    // Bytes that are not UTF-8 after percent-decoding (RFC 3986 2.1) become U+FFFD, as in a query.
    let plain = |segment: &'p str| Json::Text(percent_decode_str(segment).decode_utf8_lossy());
    let named = pairs.filter_map(|(declared, segment)| Some((Cow::Borrowed(name(declared)?), plain(segment))));
    Json::Object(named.collect())
}

/// Returns the parameters of a query; of a repeated name the last counts.
fn parameters(query: &str) -> Json<'_> {
    let mut given: Vec<(Cow<'_, str>, Json<'_>)> = Vec::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match given.iter_mut().find(|(known, _)| *known == name) {
            Some(slot) => slot.1 = Json::Text(value),
            None => given.push((name, Json::Text(value))),
        }
    }
    Json::Object(given)
}

/// Refuses another organization than the key's: to a key, the resources of others do not exist.
fn own_organization(ready: &Ready, headers: &HeaderMap, caller: &Caller, request_id: &str) -> Result<(), Stop> {
    match headers.get(ORGANIZATION) {
        Some(asked) if ready.endpoint.scope.is_some() && asked.as_bytes() != caller.organization.as_bytes() => {
            Err(Box::new(refusal(Error::NotFound(ready.endpoint.resource), request_id)))
        }
        _ => Ok(()),
    }
}
