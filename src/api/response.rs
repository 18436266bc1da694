//! Conversion of results and refusals to HTTP answers. It knows statuses and bodies, not routes.

use axum::body::Body;
use axum::http::header::{ALLOW, CONNECTION, CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use ringer_base::error::{DATABASE_AWAY, Error, Result};
use ringer_model::api_key::Scope;
use ringer_model::transcript::Transcript;
use ringer_service::Peaks;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value, json};

/// A value that a handler may return.
pub trait Answer: Send {
    /// Returns the answer, with the status of success that the route declares.
    ///
    /// # Errors
    /// The value cannot be serialized.
    fn answer(self, status: StatusCode) -> Result<Response>;

    /// Returns the description of the body for the document.
    fn describe(generator: &mut SchemaGenerator) -> Described;
}

/// Description of the body of a success, for the document.
#[derive(Clone, Debug)]
pub struct Described {
    /// Content types of the body, one for each format that can be asked for; none when there is no body.
    pub content_types: &'static [&'static str],
    /// Schema of the body as JSON; `None`: any.
    pub schema: Option<Schema>,
}

/// Initial capacity of an answer in bytes: enough for most, and a size class that the allocator has ready.
const USUAL_BYTES: usize = 1024;

impl<T: Serialize + JsonSchema + Send> Answer for T {
    fn answer(self, status: StatusCode) -> Result<Response> {
        let mut body = Vec::with_capacity(USUAL_BYTES);
        serde_json::to_writer(&mut body, &self).map_err(Error::internal)?;
        Ok(respond(status, JSON, body))
    }

    fn describe(generator: &mut SchemaGenerator) -> Described {
        Described { content_types: &[JSON], schema: Some(generator.subschema_for::<T>()) }
    }
}

/// An answer without a body.
#[derive(Clone, Copy, Debug)]
pub struct Empty;

impl Answer for Empty {
    fn answer(self, status: StatusCode) -> Result<Response> {
        Ok(bare(status))
    }

    fn describe(_: &mut SchemaGenerator) -> Described {
        Described { content_types: &[], schema: None }
    }
}

/// An answer that is not JSON from a value: a page, a recording, a stream. `KIND` indexes [`CONTENT_TYPES`].
pub struct Raw<const KIND: usize>(pub Response);

/// Content types of [`Raw`] answers for the document, the default format first.
const CONTENT_TYPES: [&[&str]; 12] = [
    &[HTML],
    &[WAV, FLAC, OGG],
    &[EVENTS],
    &[JSON],
    &[OPENMETRICS],
    &[TAR],
    &[JSON, TEXT, VTT],
    &[CSV, JSON, XML, PARQUET, JSON_LINES],
    &[JSON, OCTETS],
    &[PCAPNG],
    &[WAV],
    &[PROTOBUF, JSON],
];

/// Index of transcripts in [`CONTENT_TYPES`].
const SCRIPT: usize = 6;
/// Index of waveforms of recordings in [`CONTENT_TYPES`].
const OUTLINE: usize = 8;

/// An answer with an HTML page.
pub type Page = Raw<0>;
/// Audio in the format that was asked for.
pub type Audio = Raw<1>;
/// A stream of server-sent events.
pub type Stream = Raw<2>;
/// JSON that is serialized already.
pub type Document = Raw<3>;
/// Metrics for a collector.
pub type Figures = Raw<4>;
/// An answer with a tar archive.
pub type Archive = Raw<5>;
/// A transcript in the format that was asked for.
pub type Script = Raw<SCRIPT>;
/// A table in the format that was asked for.
pub type Table = Raw<7>;
/// A waveform of a recording in the format that was asked for.
pub type Outline = Raw<OUTLINE>;
/// A capture of packets.
pub type Packets = Raw<9>;
/// A sound as WAV.
pub type Wav = Raw<10>;
/// Number of spans that were not taken (OTLP), in the form of the request.
pub type Traces = Raw<11>;

impl<const KIND: usize> From<Response> for Raw<KIND> {
    fn from(response: Response) -> Raw<KIND> {
        Raw(response)
    }
}

impl<const KIND: usize> Answer for Raw<KIND> {
    fn answer(self, _: StatusCode) -> Result<Response> {
        Ok(self.0)
    }

    fn describe(generator: &mut SchemaGenerator) -> Described {
        let schema = match KIND {
            SCRIPT => Some(generator.subschema_for::<Transcript>()),
            OUTLINE => Some(generator.subschema_for::<Peaks>()),
            _ => None,
        };
        Described { content_types: CONTENT_TYPES[KIND], schema }
    }
}

/// Code of the refusal of what concerns a call of another engine.
const ENGINE_NOT_REACHABLE: &str = "ENGINE_NOT_REACHABLE";

/// The content type of nearly all answers.
pub const JSON: &str = "application/json";
/// Content type of an HTML page.
pub const HTML: &str = "text/html; charset=utf-8";
/// Content type of a recording as WAV.
pub const WAV: &str = "audio/wav";
/// Content type of a recording as FLAC, lossless.
pub const FLAC: &str = "audio/flac";
/// Content type of a recording as Ogg Opus, lossy.
pub const OGG: &str = "audio/ogg";
/// Content type of server-sent events.
pub const EVENTS: &str = "text/event-stream";
/// Content type of metrics (OpenMetrics 1.0).
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Content type of a tar archive.
pub const TAR: &str = "application/x-tar";
/// Content type of plain text.
pub const TEXT: &str = "text/plain; charset=utf-8";
/// Content type of captions (WebVTT).
pub const VTT: &str = "text/vtt; charset=utf-8";
/// Content type of a packet capture (pcapng).
pub const PCAPNG: &str = "application/x-pcapng";
/// Content type of bytes without a format of their own.
pub const OCTETS: &str = "application/octet-stream";
/// Content type of messages of OTLP in the binary form.
pub const PROTOBUF: &str = "application/x-protobuf";
/// Content type of a table (CSV).
pub const CSV: &str = "text/csv; charset=utf-8";
/// Content type of a Parquet file.
pub const PARQUET: &str = "application/vnd.apache.parquet";
/// Content type of JSON with a value a line.
pub const JSON_LINES: &str = "application/x-ndjson";
/// Content type of a JUnit report.
pub const XML: &str = "application/xml";

/// Returns a complete answer with this status, content type and body.
pub fn respond(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn bare(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Returns an answer with the body `{"detail": text}`.
pub fn detail(status: StatusCode, text: &str) -> Response {
    respond(status, JSON, json!({ "detail": text }).to_string())
}

/// Returns the answer to a method that the path does not have; `allow` lists those it has (RFC 9110 10.2.1).
pub fn no_method(allow: HeaderValue) -> Response {
    with(detail(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"), ALLOW, allow)
}

/// Returns the answer to OPTIONS.
pub fn options(allow: HeaderValue) -> Response {
    with(bare(StatusCode::NO_CONTENT), ALLOW, allow)
}

/// Returns the answer to a path that exists without its last slash: a redirect to `location`.
pub fn redirect(location: &str) -> Response {
    match HeaderValue::from_str(location) {
        Ok(location) => with(bare(StatusCode::TEMPORARY_REDIRECT), LOCATION, location),
        Err(_) => no_route(),
    }
}

/// Returns the answer to a path that does not exist.
pub fn no_route() -> Response {
    detail(StatusCode::NOT_FOUND, "Not Found")
}

/// Returns the answer to a body over the limit. The rest is not read, so the connection ends.
pub fn too_large(limit_bytes: usize) -> Response {
    let text = format!("Request body is too large, the limit is {limit_bytes} bytes");
    with(detail(StatusCode::PAYLOAD_TOO_LARGE, &text), CONNECTION, HeaderValue::from_static("close"))
}

/// Returns the answer to a body that does not arrive in time. The connection ends, since the start of the next request
/// is unknown.
pub fn too_slow() -> Response {
    let response = detail(StatusCode::REQUEST_TIMEOUT, "Request body was not received in time");
    with(response, CONNECTION, HeaderValue::from_static("close"))
}

/// Returns the answer to a request without a valid key.
pub fn key_refusal() -> Response {
    let response = detail(StatusCode::UNAUTHORIZED, "Invalid or missing API key");
    with(response, WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

/// Returns the answer to a key of too small a scope.
pub fn scope_missing(has: Scope, needs: Scope) -> Response {
    let text = format!("API key scope '{}' is not sufficient, '{}' is required", has.as_str(), needs.as_str());
    detail(StatusCode::FORBIDDEN, &text)
}

/// Returns the answer to a refusal of the service. The cause of an engine fault is logged under the request's id.
pub fn refusal(error: Error, request_id: &str) -> Response {
    let text = error.to_string();
    match error {
        Error::NotFound(_) | Error::NotAvailable(_) => detail(StatusCode::NOT_FOUND, &text),
        Error::Forbidden(_) => detail(StatusCode::FORBIDDEN, &text),
        Error::Refused(_) => detail(StatusCode::BAD_REQUEST, &text),
        Error::Conflict(_) => detail(StatusCode::CONFLICT, &text),
        Error::NotReachable(_) => {
            let body = json!({ "detail": text, "code": ENGINE_NOT_REACHABLE }).to_string();
            respond(StatusCode::CONFLICT, JSON, body)
        }
        Error::Outdated(_) => detail(StatusCode::PRECONDITION_FAILED, &text),
        Error::Busy(_) => {
            let body = json!({ "detail": text, "retry_after": 1 }).to_string();
            with(respond(StatusCode::TOO_MANY_REQUESTS, JSON, body), RETRY_AFTER, HeaderValue::from_static("1"))
        }
        Error::Unavailable(_) => unavailable(&text),
        Error::Internal(cause) => {
            tracing::error!(request_id, %cause, "request failed");
            if cause.is_outage() { unavailable(DATABASE_AWAY) } else { fault(request_id) }
        }
    }
}

/// Returns the answer to a request that is not possible now.
fn unavailable(text: &str) -> Response {
    with(detail(StatusCode::SERVICE_UNAVAILABLE, text), RETRY_AFTER, HeaderValue::from_static("30"))
}

/// Returns the answer to an engine fault.
pub fn fault(request_id: &str) -> Response {
    let body: Value = json!({ "detail": "Internal server error", "request_id": request_id });
    respond(StatusCode::INTERNAL_SERVER_ERROR, JSON, body.to_string())
}

fn with(mut response: Response, name: HeaderName, value: HeaderValue) -> Response {
    response.headers_mut().insert(name, value);
    response
}
