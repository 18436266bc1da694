//! One declaration a route: method, path and a handler whose types say everything else. From it come the route, the
//! checks of path, query and body, and the operation of the OpenAPI document. No macro, no rule of the product.

use std::future::Future;
use std::sync::Arc;

use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use futures_util::future::BoxFuture;
use ringer_base::error::{Error, Result};
use ringer_model::api_key::Scope;
use ringer_service::jobs::{LineTests, Previews};
use ringer_service::{Caller, PageDoor, Service};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::health::{HealthCache, Probe, SampleAgent};
use crate::response::{Answer, Described};
use crate::suite_reader::SuiteReader;
use crate::upload::Upload;

/// Context of a handler: the service, the caller, and what came with the request.
#[derive(Clone)]
pub struct Ctx {
    /// Service with every rule of the product.
    pub service: Service,
    /// Owner of the key; on routes without a key one that owns nothing.
    pub caller: Caller,
    /// True: the request has the internal token.
    pub is_operator: bool,
    /// Header fields of the request.
    pub headers: HeaderMap,
    /// File that came with the request; `None`: none did.
    pub upload: Option<Upload>,
    /// Token that is cancelled when the server stops; endless answers end then.
    pub stopping: Arc<CancellationToken>,
    /// The OpenAPI document, as JSON.
    pub document: Arc<str>,
    /// Function that adds the health of the parts that only the engine knows; `None` without an engine.
    pub probe: Option<Probe>,
    /// Health of the parts, as it was measured last.
    pub health: HealthCache,
    /// Start token of the page; `None`: the page has none.
    pub door: Option<Arc<PageDoor>>,
    /// Function that starts the sample agent; `None`: there is none.
    pub sample_agent: Option<SampleAgent>,
    /// Tests of agents' lines; `None`: no calls are made.
    pub line_tests: Option<LineTests>,
    /// Previews of Digital Humans; `None`: no calls are made.
    pub previews: Option<Previews>,
    /// Function that reads suites; `None`: there is none.
    pub suites: Option<SuiteReader>,
}

/// The checked parts of a request.
#[derive(Clone, Debug)]
pub struct In<P = Nothing, Q = Nothing, B = Nothing> {
    /// Segments of the path.
    pub path: P,
    /// Parameters of the query.
    pub query: Q,
    /// The body. An optional body is an `Option`.
    pub body: B,
}

// Used for a part that a route does not have; as an `Option` it is a body that may be sent and is ignored.
/// Part of a request that is an object without members.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Nothing {}

/// Function that makes the schema of a part.
pub type Describe = fn(&mut SchemaGenerator) -> Schema;

type Run = dyn Fn(Ctx, [Value; 3], StatusCode) -> BoxFuture<'static, Result<Response>> + Send + Sync;

/// Requirement of the internal token (header field X-Internal-Token).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum InternalToken {
    /// It is not read.
    Unread,
    /// It is needed; where none is configured, a key of scope admin is.
    OrAdmin,
    /// It is needed; where none is configured, the route is closed.
    Needed,
    /// It is read, and a wrong one is refused.
    Optional,
}

impl InternalToken {
    /// True if the route reads the token.
    pub fn is_read(self) -> bool {
        self != InternalToken::Unread
    }
}

/// A route with everything that is declared about it.
#[derive(Clone)]
pub struct Endpoint {
    /// Method of the route; GET answers HEAD as well.
    pub method: Method,
    /// Path of the route, with parameters as `{name}`.
    pub path: &'static str,
    /// Least scope of a key; `None`: no key is needed.
    pub scope: Option<Scope>,
    /// Status of a success.
    pub status: StatusCode,
    /// True: kept for old callers, and marked so in the document.
    pub deprecated: bool,
    /// Group of the route in the document.
    pub tag: &'static str,
    /// Word of the addressed resource in `WORD not found`; empty until it is set.
    pub resource: &'static str,
    /// Kind of thing that it makes besides what its path says, one word, for the links of the document.
    pub makes: &'static str,
    /// Summary for the document, one sentence.
    pub summary: &'static str,
    /// True: an Idempotency-Key is honoured.
    pub idempotent: bool,
    /// True: the route asks a language model, which has a rate limit of its own.
    pub generates: bool,
    /// Requirement of the internal token, besides a key of any scope.
    pub internal: InternalToken,
    /// True: no key is needed, but one that is sent is read.
    pub reads_key: bool,
    /// True: the carrier's token is needed instead of a key; the body may also be a form.
    pub carrier: bool,
    /// True: the token of the agent in the path is needed instead of a key.
    pub agent_token: bool,
    /// True: takes a file as `multipart/form-data`; JSON stays possible.
    pub uploads: bool,
    /// True: the body is taken as it is, in a form that the handler reads; it is in [`Ctx::upload`].
    pub takes_raw: bool,
    /// True: the body may hold a recording, and has a size limit of its own.
    pub with_audio: bool,
    /// True: the route belongs to the page; on a loopback listener other hosts are refused.
    pub of_page: bool,
    /// True: If-Match is read (RFC 9110 13.1.1); a change of a row that was changed since is refused.
    pub if_match: bool,
    /// True if it tells of a running call, which another engine may hold.
    pub tells_of_calls: bool,
    /// True: the answer is a file with an entity tag (RFC 9110 8.8.3); If-None-Match is read.
    pub sends_file: bool,
    /// True: Range and If-Range are read, and a part of the file may be sent.
    pub sends_parts: bool,
    /// True: the answer is long text, compressed where the client accepts that (RFC 9110 8.4.1.3).
    pub packs: bool,
    /// Functions that make the schemas of path, query and body.
    pub parts: [Describe; 3],
    /// Function that describes the body of a success.
    pub answer: fn(&mut SchemaGenerator) -> Described,
    run: Arc<Run>,
}

/// Declares a route.
///
/// It needs a key of scope write, read for GET, and answers 200, until a builder method says otherwise.
pub fn endpoint<P, Q, B, R, F, Fut>(method: Method, path: &'static str, handler: F) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + Send + 'static,
    Q: DeserializeOwned + JsonSchema + Send + 'static,
    B: DeserializeOwned + JsonSchema + Send + 'static,
    R: Answer + 'static,
    F: Fn(Ctx, In<P, Q, B>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<R>> + Send + 'static,
{
    let run = move |ctx: Ctx, [path, query, body]: [Value; 3], status: StatusCode| {
        let handler = handler.clone();
        let run = async move {
            let parts = In { path: build(path)?, query: build(query)?, body: build(body)? };
            handler(ctx, parts).await?.answer(status)
        };
        Box::pin(run) as BoxFuture<'static, Result<Response>>
    };
    Endpoint {
        scope: Some(if method == Method::GET { Scope::Read } else { Scope::Write }),
        idempotent: method == Method::POST,
        method,
        path,
        status: StatusCode::OK,
        deprecated: false,
        tag: "",
        resource: "",
        makes: "",
        summary: "",
        generates: false,
        internal: InternalToken::Unread,
        reads_key: false,
        carrier: false,
        agent_token: false,
        uploads: false,
        takes_raw: false,
        with_audio: false,
        of_page: false,
        if_match: false,
        tells_of_calls: false,
        sends_file: false,
        sends_parts: false,
        packs: false,
        parts: [
            SchemaGenerator::subschema_for::<P>,
            SchemaGenerator::subschema_for::<Q>,
            SchemaGenerator::subschema_for::<B>,
        ],
        answer: R::describe,
        run: Arc::new(run),
    }
}

/// Declares a GET route.
pub fn get<P, Q, B, R, F, Fut>(path: &'static str, handler: F) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + Send + 'static,
    Q: DeserializeOwned + JsonSchema + Send + 'static,
    B: DeserializeOwned + JsonSchema + Send + 'static,
    R: Answer + 'static,
    F: Fn(Ctx, In<P, Q, B>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<R>> + Send + 'static,
{
    endpoint(Method::GET, path, handler)
}

/// Declares a POST route.
pub fn post<P, Q, B, R, F, Fut>(path: &'static str, handler: F) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + Send + 'static,
    Q: DeserializeOwned + JsonSchema + Send + 'static,
    B: DeserializeOwned + JsonSchema + Send + 'static,
    R: Answer + 'static,
    F: Fn(Ctx, In<P, Q, B>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<R>> + Send + 'static,
{
    endpoint(Method::POST, path, handler)
}

/// Declares a PUT route.
pub fn put_route<P, Q, B, R, F, Fut>(path: &'static str, handler: F) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + Send + 'static,
    Q: DeserializeOwned + JsonSchema + Send + 'static,
    B: DeserializeOwned + JsonSchema + Send + 'static,
    R: Answer + 'static,
    F: Fn(Ctx, In<P, Q, B>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<R>> + Send + 'static,
{
    endpoint(Method::PUT, path, handler)
}

/// Declares a DELETE route.
pub fn delete<P, Q, B, R, F, Fut>(path: &'static str, handler: F) -> Endpoint
where
    P: DeserializeOwned + JsonSchema + Send + 'static,
    Q: DeserializeOwned + JsonSchema + Send + 'static,
    B: DeserializeOwned + JsonSchema + Send + 'static,
    R: Answer + 'static,
    F: Fn(Ctx, In<P, Q, B>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<R>> + Send + 'static,
{
    endpoint(Method::DELETE, path, handler)
}

impl Endpoint {
    /// Requires a key of scope admin.
    pub fn admin(mut self) -> Endpoint {
        self.scope = Some(Scope::Admin);
        self
    }

    /// Requires the internal token, and a key of any scope.
    pub fn internal(mut self) -> Endpoint {
        (self.scope, self.internal) = (Some(Scope::Read), InternalToken::OrAdmin);
        self
    }

    /// Requires the internal token, also where none is configured: nobody has it then.
    pub fn operator(mut self) -> Endpoint {
        (self.scope, self.internal) = (Some(Scope::Read), InternalToken::Needed);
        self
    }

    /// Reads the internal token; a wrong one is refused, and the handler decides what is open without one.
    pub fn reads_internal(mut self) -> Endpoint {
        (self.scope, self.internal) = (Some(Scope::Read), InternalToken::Optional);
        self
    }

    /// Requires the carrier's token and no key; the body may also be a form.
    pub fn carrier(mut self) -> Endpoint {
        (self.scope, self.carrier) = (None, true);
        self
    }

    /// Requires the token of the agent in the path and no key.
    pub fn agent_token(mut self) -> Endpoint {
        (self.scope, self.agent_token) = (None, true);
        self
    }

    /// Requires a key of scope read only: the route changes nothing, whatever its method.
    pub fn read_only(mut self) -> Endpoint {
        self.scope = Some(Scope::Read);
        self
    }

    /// Requires no key at all.
    pub fn open(mut self) -> Endpoint {
        self.scope = None;
        self
    }

    /// Requires no key, and tells more to the holder of one.
    pub fn open_to_all(mut self) -> Endpoint {
        (self.scope, self.reads_key) = (None, true);
        self
    }

    /// Sets the status of a success.
    pub fn status(mut self, status: StatusCode) -> Endpoint {
        self.status = status;
        self
    }

    /// Marks the route as kept for old callers.
    pub fn deprecate(mut self) -> Endpoint {
        self.deprecated = true;
        self
    }

    /// Ignores an Idempotency-Key, for a POST that creates nothing.
    pub fn repeatable(mut self) -> Endpoint {
        self.idempotent = false;
        self
    }

    /// Marks a route that asks a language model.
    pub fn generates(mut self) -> Endpoint {
        self.generates = true;
        self
    }

    /// Accepts a file as `multipart/form-data`.
    pub fn uploads(mut self) -> Endpoint {
        self.uploads = true;
        self
    }

    /// Takes the body as it is.
    pub fn takes_raw(mut self) -> Endpoint {
        self.takes_raw = true;
        self
    }

    /// Accepts a recording in the body.
    pub fn with_audio(mut self) -> Endpoint {
        self.with_audio = true;
        self
    }

    /// Marks a route of the page.
    pub fn of_page(mut self) -> Endpoint {
        self.of_page = true;
        self
    }

    /// Compresses the answer where the client accepts that.
    pub fn packs(mut self) -> Endpoint {
        self.packs = true;
        self
    }

    /// Marks an answer that is a file, of which `parts` can be asked for.
    pub fn sends_file(mut self, parts: bool) -> Endpoint {
        (self.sends_file, self.sends_parts) = (true, parts);
        self
    }

    /// Reads If-Match, and may refuse the request for it.
    pub fn if_match(mut self) -> Endpoint {
        self.if_match = true;
        self
    }

    /// Notes that the endpoint tells of a running call, which another engine may hold.
    pub fn tells_of_calls(mut self) -> Endpoint {
        self.tells_of_calls = true;
        self
    }

    /// True if the request can change state.
    pub fn changes(&self) -> bool {
        self.method != Method::GET && (self.internal.is_read() || self.scope != Some(Scope::Read))
    }

    /// Returns method and path template, for instance `POST /v1/add-agent`.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// True if anybody may ask, without a key or token.
    pub fn is_open(&self) -> bool {
        self.scope.is_none() && !self.carrier && !self.agent_token
    }

    /// True if its body may be large: a file, or a recording.
    pub fn takes_files(&self) -> bool {
        self.uploads || self.with_audio
    }

    /// Sets the summary for the document.
    pub fn about(mut self, summary: &'static str) -> Endpoint {
        self.summary = summary;
        self
    }

    /// Sets the word of the resource that the path addresses.
    pub fn of(mut self, resource: &'static str) -> Endpoint {
        self.resource = resource;
        self
    }

    /// Sets the kind of thing that it makes besides what its path says, as the paths of such things call it.
    pub fn makes(mut self, kind: &'static str) -> Endpoint {
        self.makes = kind;
        self
    }

    /// Runs the handler on the validated values of path, query and body.
    ///
    /// # Errors
    /// The refusal of the service.
    pub async fn run(&self, ctx: Ctx, parts: [Value; 3]) -> Result<Response> {
        (self.run)(ctx, parts, self.status).await
    }
}

/// Puts routes into a group of the document. `resource` is the addressed resource of those that set none.
pub fn with_tag(tag: &'static str, resource: &'static str, endpoints: Vec<Endpoint>) -> impl Iterator<Item = Endpoint> {
    endpoints.into_iter().map(move |endpoint| {
        let resource = if endpoint.resource.is_empty() { resource } else { endpoint.resource };
        Endpoint { tag, resource, ..endpoint }
    })
}

fn build<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(|error| Error::internal_by("a walked value is refused", error))
}
