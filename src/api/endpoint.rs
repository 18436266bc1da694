//! One declaration a route: method, path and a handler whose types say everything else. From it come the route, the checks
//! of path, query and body, and the operation of the OpenAPI document. No macro, no rule of the product.

use std::future::Future;
use std::sync::Arc;

use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use futures_util::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::api::answer::{Answer, Described};
use crate::api::system::{Probe, SampleAgent};
use crate::api::upload::Upload;
use crate::error::{Error, Result};
use crate::model::api_key::Scope;
use crate::service::{Caller, PageDoor, Service};

/// What a handler works with: the service and who asks.
#[derive(Clone)]
pub struct Ctx {
    /// The product.
    pub service: Service,
    /// The owner of the key; nobody in particular on routes without a key.
    pub caller: Caller,
    /// Header fields of the request.
    pub headers: HeaderMap,
    /// The file that came with it.
    pub upload: Option<Upload>,
    /// Completes when the server stops: endless answers end then.
    pub stopping: Arc<CancellationToken>,
    /// The OpenAPI document.
    pub document: Arc<str>,
    /// Health of the parts that only the engine knows.
    pub probe: Option<Probe>,
    /// Start token of the page.
    pub door: Option<Arc<PageDoor>>,
    /// Starts the sample agent.
    pub sample_agent: Option<SampleAgent>,
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

// A part that a route does not have; an `Option` of it is a body that may be sent all the same.
/// An object of which nothing is read.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Nothing {}

/// Makes the schema of a part.
pub type Describe = fn(&mut SchemaGenerator) -> Schema;

type Run = dyn Fn(Ctx, [Value; 3], StatusCode) -> BoxFuture<'static, Result<Response>> + Send + Sync;

/// A route with everything that is declared about it.
#[derive(Clone)]
pub struct Endpoint {
    /// The method; GET answers HEAD as well.
    pub method: Method,
    /// The path with parameters as `{name}`.
    pub path: &'static str,
    /// The least scope of a key; `None`: no key is needed.
    pub scope: Option<Scope>,
    /// The status of success.
    pub status: StatusCode,
    /// Kept for old callers.
    pub deprecated: bool,
    /// The group in the document.
    pub tag: &'static str,
    /// The word of the addressed resource in `WORD not found`; empty until it is said.
    pub resource: &'static str,
    /// What it makes beside what its path says, in one word: for the links of the document.
    pub makes: &'static str,
    /// One line for the document.
    pub summary: &'static str,
    /// Whether an Idempotency-Key is honoured.
    pub idempotent: bool,
    /// Asks a language model: it has a limit of its own.
    pub generates: bool,
    /// Needs the internal token, whatever the key's scope.
    pub internal: bool,
    /// Needs the carrier's token instead of a key; its body may also be a form.
    pub carrier: bool,
    /// Takes a file as `multipart/form-data`; JSON stays possible.
    pub uploads: bool,
    /// Its body may hold a recording: it has a limit of its own.
    pub with_audio: bool,
    /// Belongs to the page: on a loopback listener other hosts are refused.
    pub of_page: bool,
    /// Reads If-Match (RFC 9110 13.1.1): a change on what was not read is refused.
    pub if_match: bool,
    /// Packs its answer where the client takes that (RFC 9110 8.4.1.3): it may be long, and is text.
    pub packs: bool,
    /// Schemas of path, query and body.
    pub parts: [Describe; 3],
    /// What a success looks like.
    pub answer: fn(&mut SchemaGenerator) -> Described,
    run: Arc<Run>,
}

/// Declares a route. It needs a key of scope write, read for GET, and answers 200, until a builder method says otherwise.
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
            let parts = In { path: built(path)?, query: built(query)?, body: built(body)? };
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
        internal: false,
        carrier: false,
        uploads: false,
        with_audio: false,
        of_page: false,
        if_match: false,
        packs: false,
        parts: [
            SchemaGenerator::subschema_for::<P>,
            SchemaGenerator::subschema_for::<Q>,
            SchemaGenerator::subschema_for::<B>,
        ],
        answer: R::described,
        run: Arc::new(run),
    }
}

/// A GET route.
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

/// A POST route.
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

/// A PUT route.
pub fn put<P, Q, B, R, F, Fut>(path: &'static str, handler: F) -> Endpoint
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

/// A DELETE route.
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
    /// Needs a key of scope admin.
    pub fn admin(mut self) -> Endpoint {
        self.scope = Some(Scope::Admin);
        self
    }

    /// Needs the internal token, and a key of any scope.
    pub fn internal(mut self) -> Endpoint {
        (self.scope, self.internal) = (Some(Scope::Read), true);
        self
    }

    /// Needs the carrier's token and no key; its body may also be a form.
    pub fn carrier(mut self) -> Endpoint {
        (self.scope, self.carrier) = (None, true);
        self
    }

    /// Needs a key of scope read only: it changes nothing, whatever its method.
    pub fn read_only(mut self) -> Endpoint {
        self.scope = Some(Scope::Read);
        self
    }

    /// Needs no key.
    pub fn open(mut self) -> Endpoint {
        self.scope = None;
        self
    }

    /// Answers `status` on success.
    pub fn status(mut self, status: StatusCode) -> Endpoint {
        self.status = status;
        self
    }

    /// Kept for old callers.
    pub fn deprecated(mut self) -> Endpoint {
        self.deprecated = true;
        self
    }

    /// A POST that creates nothing: an Idempotency-Key is not looked at.
    pub fn repeatable(mut self) -> Endpoint {
        self.idempotent = false;
        self
    }

    /// Asks a language model.
    pub fn generates(mut self) -> Endpoint {
        self.generates = true;
        self
    }

    /// Takes a file.
    pub fn uploads(mut self) -> Endpoint {
        self.uploads = true;
        self
    }

    /// Its body may hold a recording.
    pub fn with_audio(mut self) -> Endpoint {
        self.with_audio = true;
        self
    }

    /// Belongs to the page.
    pub fn of_page(mut self) -> Endpoint {
        self.of_page = true;
        self
    }

    /// Packs its answer where the client takes that.
    pub fn packs(mut self) -> Endpoint {
        self.packs = true;
        self
    }

    /// Reads If-Match, and may refuse for it.
    pub fn if_match(mut self) -> Endpoint {
        self.if_match = true;
        self
    }

    /// Something may be otherwise after it.
    pub fn changes(&self) -> bool {
        self.method != Method::GET && (self.internal || self.scope != Some(Scope::Read))
    }

    /// Method and path template: `POST /v1/add-agent`.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Its body may be large: a file, or a recording.
    pub fn takes_files(&self) -> bool {
        self.uploads || self.with_audio
    }

    /// One line for the document.
    pub fn about(mut self, summary: &'static str) -> Endpoint {
        self.summary = summary;
        self
    }

    /// The resource that the path addresses.
    pub fn of(mut self, resource: &'static str) -> Endpoint {
        self.resource = resource;
        self
    }

    /// What it makes beside what its path says, as the paths of such things call it.
    pub fn makes(mut self, kind: &'static str) -> Endpoint {
        self.makes = kind;
        self
    }

    /// Runs the handler on the walked values of path, query and body.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn run(&self, ctx: Ctx, parts: [Value; 3]) -> Result<Response> {
        (self.run)(ctx, parts, self.status).await
    }
}

/// Puts routes into a group of the document. `resource` is what they address where they do not say it themselves.
pub fn tagged(tag: &'static str, resource: &'static str, endpoints: Vec<Endpoint>) -> impl Iterator<Item = Endpoint> {
    endpoints.into_iter().map(move |endpoint| {
        let resource = if endpoint.resource.is_empty() { resource } else { endpoint.resource };
        Endpoint { tag, resource, ..endpoint }
    })
}

fn built<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(|error| Error::internal(format!("a walked value is refused: {error}")))
}
