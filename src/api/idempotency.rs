//! Idempotency-Key: a repeated request gets the first answer again, byte for byte. The request runs to its end even
//! when its client goes away, so that an answer is always stored. A second one waits for it, also where another engine
//! runs it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use axum::body::{Bytes, to_bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::FutureExt;
use parking_lot::Mutex;
use ringer_base::error::Error;
use ringer_model::validation_error::{Problem, Step, ValidationErrors};
use ringer_store::idempotency::{Carried, IN_PROGRESS, RequestKey, Seen};
use ringer_syntax::json::Json;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use crate::endpoint::{Ctx, Endpoint};
use crate::response::{detail, refusal};
use crate::{Server, response};

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Pattern of a key: visible ASCII.
pub const PATTERN: &str = r"^[\x21-\x7e]+$";
/// Longest key, in characters.
pub const MAX_KEY_CHARS: u64 = 255;
/// Largest answer that is stored, in bytes; all creating routes stay far below.
const MAX_KEPT_BYTES: usize = 16 * 1024 * 1024;
/// Longest time that a repeat waits for the first request.
const PATIENCE_MS: i64 = 30_000;
/// Time between looks for the answer to a request that another engine runs.
const LOOK_MS: i64 = 200;

/// Requests with a key that are running in this process.
#[derive(Clone, Debug, Default)]
pub struct Running {
    locks: Arc<Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>>,
}

impl Running {
    fn lock_of(&self, name: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.locks.lock();
        // A lock that only this table holds belongs to a request that has ended.
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(locks.entry(name.to_owned()).or_default())
    }
}

/// Adds the faults of the header to `issues`; no header has none.
pub fn check_key(headers: &HeaderMap, issues: &mut ValidationErrors) {
    let Some(value) = headers.get(KEY) else { return };
    let text = String::from_utf8_lossy(value.as_bytes());
    let problem = if text.chars().count() as u64 > MAX_KEY_CHARS {
        Problem::string_too_long(MAX_KEY_CHARS)
    } else if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Problem::pattern(PATTERN)
    } else {
        return;
    };
    let loc = [Step::Name(Cow::Borrowed("header")), Step::Name(Cow::Borrowed("idempotency-key"))];
    issues.add(&loc, &problem, &Json::Text(text));
}

/// A validated request: everything that is needed to run it.
pub struct Call {
    /// Endpoint of the request.
    pub endpoint: Endpoint,
    /// The path as sent.
    pub path: String,
    /// Context of the handler, with the caller.
    pub ctx: Ctx,
    /// Validated values of path, query and body.
    pub parts: [Value; 3],
    /// Request id in the log and the answer.
    pub request_id: String,
}

impl Call {
    /// Runs the handler. A panic is a fault of this request alone.
    async fn run(self) -> Response {
        match AssertUnwindSafe(self.endpoint.run(self.ctx, self.parts)).catch_unwind().await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => refusal(error, &self.request_id),
            Err(_) => {
                tracing::error!(request_id = self.request_id, "a handler panicked");
                response::fault(&self.request_id)
            }
        }
    }
}

/// Runs a call, or returns the answer that the same call got before.
pub async fn once(server: &Server, call: Call, bytes: Bytes) -> Response {
    let key = call.ctx.headers.get(KEY).filter(|_| call.endpoint.idempotent);
    let Some(key) = key.and_then(|key| key.to_str().ok()).map(str::to_owned) else {
        drop(bytes);
        return call.run().await;
    };
    let request_id = call.request_id.clone();
    let route = format!("{} {}", call.endpoint.method, call.path);
    let hash = hex::encode(Sha256::digest(&bytes));
    drop(bytes);
    let lock = server.running.lock_of(&format!("{} {route} {key}", call.ctx.caller.organization));
    let (answered, answer) = oneshot::channel();
    server.tasks.spawn("idempotent request", async move {
        let response = first_or_again(call, &lock, &route, &key, &hash).await;
        // The client may have disconnected; the answer is stored all the same.
        let _ = answered.send(response);
    });
    answer.await.unwrap_or_else(|_| response::fault(&request_id))
}

/// Runs a request when it is the first under its key, else waits for that one and returns its answer.
async fn first_or_again(call: Call, lock: &tokio::sync::Mutex<()>, route: &str, key: &str, hash: &str) -> Response {
    let (service, request_id) = (call.ctx.service.clone(), call.request_id.clone());
    let organization = call.ctx.caller.organization.clone();
    let request = RequestKey { organization: &organization, route, key };
    let (store, clock) = (service.store(), service.clock());
    let mut late = pin!(clock.until(clock.now_ms() + PATIENCE_MS));
    let _turn = tokio::select! {
        biased;
        turn = lock.lock() => turn,
        () = &mut late => return in_progress(),
    };
    let seen = loop {
        match store.begin_request(request, hash, clock.now_ms()).await {
            // The lock of this process is held here, so another engine runs the first one.
            Ok(Seen::Running) if store.is_shared() => tokio::select! {
                biased;
                () = &mut late => return in_progress(),
                () = clock.until(clock.now_ms() + LOOK_MS) => {}
            },
            seen => break seen,
        }
    };
    match seen {
        Err(error) => refusal(error, &request_id),
        Ok(Seen::OtherBody) => conflict("Idempotency-Key was already used with a different request body"),
        Ok(Seen::Running | Seen::Left) => in_progress(),
        Ok(Seen::Answered { status, body }) => again(status, body),
        Ok(Seen::First) => {
            let carried = Carried::new(request, call.endpoint.status.as_u16());
            let (response, answer) = storable(carried.carry(call.run()).await).await;
            let stored = match answer {
                Some((status, body)) if carried.has_kept(status, &body) => Ok(()),
                Some((status, body)) => store.finish_request(request, status, &body).await,
                None => store.abandon_request(request).await,
            };
            match stored {
                Ok(()) => response,
                Err(error) => refusal(error, &request_id),
            }
        }
    }
}

/// Returns an answer together with the status and body to store. Faults and refusals of the request itself are not
/// stored.
async fn storable(response: Response) -> (Response, Option<(u16, String)>) {
    let (parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, MAX_KEPT_BYTES).await else {
        return (refusal(Error::internal("an answer could not be read back"), ""), None);
    };
    let status = parts.status.as_u16();
    let final_status = matches!(status, 200..=299 | 400..=499) && !matches!(status, 401 | 403 | 422 | 429);
    let text = String::from_utf8(bytes.to_vec()).ok().filter(|_| final_status);
    (Response::from_parts(parts, bytes.into()), text.map(|text| (status, text)))
}

fn again(status: u16, body: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let mut response = response::respond(status, response::JSON, body);
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

fn in_progress() -> Response {
    conflict(IN_PROGRESS)
}

fn conflict(text: &str) -> Response {
    detail(StatusCode::CONFLICT, text)
}
