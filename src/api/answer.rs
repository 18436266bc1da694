//! How results and refusals become HTTP answers. It knows statuses and bodies, not routes.

use axum::body::Body;
use axum::http::header::{ALLOW, CONNECTION, CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::model::api_key::Scope;
use crate::model::transcript::Transcript;
use crate::service::Peaks;

/// Something that a handler may give back.
pub trait Answer: Send {
    /// The answer with the status of success that the route declares.
    ///
    /// # Errors
    /// When the value cannot be written.
    fn answer(self, status: StatusCode) -> Result<Response>;

    /// What the document says of it.
    fn described(generator: &mut SchemaGenerator) -> Described;
}

/// The body of a success for the document.
#[derive(Clone, Debug)]
pub struct Described {
    /// Its content types, one a form that can be asked for; none when there is no body.
    pub content_types: &'static [&'static str],
    /// Its schema as JSON; anything when not given.
    pub schema: Option<Schema>,
}

/// Room for most answers, as much as the allocator gives without a search.
const USUAL_BYTES: usize = 1024;

impl<T: Serialize + JsonSchema + Send> Answer for T {
    fn answer(self, status: StatusCode) -> Result<Response> {
        let mut body = Vec::with_capacity(USUAL_BYTES);
        serde_json::to_writer(&mut body, &self).map_err(Error::internal)?;
        Ok(respond(status, JSON, body))
    }

    fn described(generator: &mut SchemaGenerator) -> Described {
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

    fn described(_: &mut SchemaGenerator) -> Described {
        Described { content_types: &[], schema: None }
    }
}

/// An answer that is no JSON: a page, a recording, a stream. `KIND` indexes [`CONTENT_TYPES`].
pub struct Raw<const KIND: usize>(pub Response);

/// What [`Raw`] answers are, for the document: the form that comes unasked first.
const CONTENT_TYPES: [&[&str]; 10] = [
    &[HTML],
    &[WAV, FLAC, OGG],
    &[EVENTS],
    &[JSON],
    &[OPENMETRICS],
    &[TAR],
    &[JSON, TEXT, VTT],
    &[CSV, JSON, XML],
    &[JSON, OCTETS],
    &[PCAPNG],
];

/// Of these, transcripts.
const SCRIPT: usize = 6;
/// Place of outlines of recordings among them.
const OUTLINE: usize = 8;

/// A page.
pub type Page = Raw<0>;
/// Audio in the form that was asked for.
pub type Audio = Raw<1>;
/// Server-sent events.
pub type Stream = Raw<2>;
/// JSON that is written already.
pub type Document = Raw<3>;
/// Figures for a collector.
pub type Figures = Raw<4>;
/// An archive.
pub type Archive = Raw<5>;
/// A transcript in the form that was asked for.
pub type Script = Raw<SCRIPT>;
/// A table in the form that was asked for.
pub type Table = Raw<7>;
/// An outline of a recording in the form that was asked for.
pub type Outline = Raw<OUTLINE>;
/// A capture of packets.
pub type Packets = Raw<9>;

impl<const KIND: usize> From<Response> for Raw<KIND> {
    fn from(response: Response) -> Raw<KIND> {
        Raw(response)
    }
}

impl<const KIND: usize> Answer for Raw<KIND> {
    fn answer(self, _: StatusCode) -> Result<Response> {
        Ok(self.0)
    }

    fn described(generator: &mut SchemaGenerator) -> Described {
        let schema = match KIND {
            SCRIPT => Some(generator.subschema_for::<Transcript>()),
            OUTLINE => Some(generator.subschema_for::<Peaks>()),
            _ => None,
        };
        Described { content_types: CONTENT_TYPES[KIND], schema }
    }
}

/// The content type of nearly all answers.
pub const JSON: &str = "application/json";
/// A page.
pub const HTML: &str = "text/html; charset=utf-8";
/// A recording, as it was written.
pub const WAV: &str = "audio/wav";
/// A recording, packed without loss.
pub const FLAC: &str = "audio/flac";
/// A recording, packed with loss.
pub const OGG: &str = "audio/ogg";
/// Server-sent events.
pub const EVENTS: &str = "text/event-stream";
/// Figures as OpenMetrics writes them.
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// An archive.
pub const TAR: &str = "application/x-tar";
/// Lines to read.
pub const TEXT: &str = "text/plain; charset=utf-8";
/// Captions of a recording.
pub const VTT: &str = "text/vtt; charset=utf-8";
/// Packets of a network.
pub const PCAPNG: &str = "application/x-pcapng";
/// Bytes without a form of their own.
pub const OCTETS: &str = "application/octet-stream";
/// A table for a spreadsheet.
pub const CSV: &str = "text/csv; charset=utf-8";
/// A report that build servers read.
pub const XML: &str = "application/xml";

/// A complete answer.
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

/// `{"detail": text}`.
pub fn detail(status: StatusCode, text: &str) -> Response {
    respond(status, JSON, json!({ "detail": text }).to_string())
}

/// The methods of a path, as `Allow` lists them (RFC 9110 section 10.2.1).
pub fn no_method(allow: HeaderValue) -> Response {
    with(detail(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"), ALLOW, allow)
}

/// The answer to OPTIONS.
pub fn options(allow: HeaderValue) -> Response {
    with(bare(StatusCode::NO_CONTENT), ALLOW, allow)
}

/// The answer to a path that exists without its last slash.
pub fn redirect(location: &str) -> Response {
    match HeaderValue::from_str(location) {
        Ok(location) => with(bare(StatusCode::TEMPORARY_REDIRECT), LOCATION, location),
        Err(_) => no_route(),
    }
}

/// The answer to a path that does not exist.
pub fn no_route() -> Response {
    detail(StatusCode::NOT_FOUND, "Not Found")
}

/// A body over the limit; the rest of it is not read, so the connection ends.
pub fn too_large(limit_bytes: usize) -> Response {
    let text = format!("Request body is too large, the limit is {limit_bytes} bytes");
    with(detail(StatusCode::PAYLOAD_TOO_LARGE, &text), CONNECTION, HeaderValue::from_static("close"))
}

/// A body that does not come; the connection ends, as nobody knows where the next request would begin.
pub fn too_slow() -> Response {
    let response = detail(StatusCode::REQUEST_TIMEOUT, "Request body was not received in time");
    with(response, CONNECTION, HeaderValue::from_static("close"))
}

/// No key, or none that counts.
pub fn unauthorized() -> Response {
    let response = detail(StatusCode::UNAUTHORIZED, "Invalid or missing API key");
    with(response, WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

/// A key of too small a scope.
pub fn scope_missing(has: Scope, needs: Scope) -> Response {
    let text = format!("API key scope '{}' is not sufficient, '{}' is required", has.as_str(), needs.as_str());
    detail(StatusCode::FORBIDDEN, &text)
}

/// What a service refused, in HTTP. The cause of an engine fault goes to the log under the request's id.
pub fn refused(error: Error, request_id: &str) -> Response {
    let text = error.to_string();
    match error {
        Error::NotFound(_) | Error::NotAvailable(_) => detail(StatusCode::NOT_FOUND, &text),
        Error::Forbidden(_) => detail(StatusCode::FORBIDDEN, &text),
        Error::Refused(_) => detail(StatusCode::BAD_REQUEST, &text),
        Error::Conflict(_) => detail(StatusCode::CONFLICT, &text),
        Error::Outdated(_) => detail(StatusCode::PRECONDITION_FAILED, &text),
        Error::Unavailable(_) => {
            with(detail(StatusCode::SERVICE_UNAVAILABLE, &text), RETRY_AFTER, HeaderValue::from_static("30"))
        }
        Error::Internal(cause) => {
            tracing::error!(request_id, cause, "request failed");
            fault(request_id)
        }
    }
}

/// The answer to an engine fault.
pub fn fault(request_id: &str) -> Response {
    let body: Value = json!({ "detail": "Internal server error", "request_id": request_id });
    respond(StatusCode::INTERNAL_SERVER_ERROR, JSON, body.to_string())
}

fn with(mut response: Response, name: HeaderName, value: HeaderValue) -> Response {
    response.headers_mut().insert(name, value);
    response
}
