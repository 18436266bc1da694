//! HTTP: routes, reading of requests, writing of answers. Every rule of the product is the service's; a handler here parses,
//! calls the service once and returns.

pub mod answer;
pub mod audio;
pub mod endpoint;
pub mod gate;
pub mod idempotency;
pub mod openapi;
pub mod rate;
pub mod serve;
pub mod upload;

mod agent_stream;
mod agents;
mod bundle;
mod call_logs;
mod customers;
mod figures;
mod generate;
mod host;
mod humans;
mod internal;
mod issues;
mod keys;
mod live;
mod metrics;
mod noises;
mod packed;
mod page;
mod page_file;
mod results;
mod run_live;
mod runs;
mod scenarios;
mod schedules;
mod simulations;
mod system;
mod texts;
mod versions;
mod watch;
mod webhooks;
mod worded;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request};
use axum::http::HeaderValue;
use axum::response::Response;
use axum::routing::any;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::api::endpoint::Endpoint;
use crate::api::gate::{Ready, Route};
use crate::api::idempotency::Running;
use crate::api::rate::Buckets;
pub use crate::api::rate::Rates;
pub use crate::api::serve::Patience;
pub use crate::api::system::{Part, PartStatus, Parts, Probe, SampleAgent};
use crate::clock;
use crate::config::Secret;
use crate::engine::Engine;
use crate::jobs::AgentStreams;
use crate::service::{PageDoor, Service};
use crate::tasks::Tasks;

/// What the server is told beside the service.
#[derive(Clone)]
pub struct Setup {
    /// Largest request body.
    pub max_body_bytes: usize,
    /// Largest request body of routes that take a file.
    pub max_upload_bytes: usize,
    /// Origins that a browser may call from; `*` is every origin.
    pub cors_origins: Vec<String>,
    /// Requests a minute.
    pub rates: Rates,
    /// How long a request may take.
    pub patience: Patience,
    /// Health of the parts that only the engine knows.
    pub probe: Option<Probe>,
    /// Whose figures `/metrics` shows; without it, those of the queue alone.
    pub engine: Option<Engine>,
    /// `/metrics` needs no key.
    pub public_metrics: bool,
    /// Token of the internal routes; without one they need an admin key.
    pub internal_token: Option<Secret>,
    /// The listener is of this machine alone: the page is shown under its own names only.
    pub is_loopback: bool,
    /// Start token of the page.
    pub door: Option<Arc<PageDoor>>,
    /// Starts the sample agent; without it there is none.
    pub sample_agent: Option<SampleAgent>,
    /// Door for agents that open WebSockets; without one there is no such route.
    pub streams: Option<AgentStreams>,
    /// Cancelled when the process is about to end: what is there can still be read, nothing new is begun.
    pub draining: CancellationToken,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            max_body_bytes: 32 * 1024 * 1024,
            max_upload_bytes: 512 * 1024 * 1024,
            cors_origins: Vec::new(),
            rates: Rates::default(),
            patience: Patience::default(),
            probe: None,
            engine: None,
            public_metrics: false,
            internal_token: None,
            is_loopback: false,
            door: None,
            sample_agent: None,
            streams: None,
            draining: CancellationToken::new(),
        }
    }
}

/// What all requests share.
pub struct Server {
    /// The product.
    pub service: Service,
    /// Sizes, origins, probe.
    pub setup: Setup,
    /// Cancelled when the server stops.
    pub stopping: Arc<CancellationToken>,
    /// The OpenAPI document.
    pub document: Arc<str>,
    /// Requests that run on when their client goes away.
    pub tasks: Tasks,
    /// What is left of the rates.
    pub buckets: Buckets,
    /// Requests with an Idempotency-Key that are under way.
    pub running: Running,
}

impl Server {
    /// Largest body of a request to `endpoint`.
    pub fn body_limit(&self, endpoint: &Endpoint) -> usize {
        if endpoint.takes_files() { self.setup.max_upload_bytes } else { self.setup.max_body_bytes }
    }

    /// How long the body of a request to `endpoint` may take.
    pub fn body_patience(&self, endpoint: &Endpoint) -> Duration {
        let patience = &self.setup.patience;
        if endpoint.takes_files() { patience.upload } else { patience.body }
    }

    /// True when a browser may call from `origin`.
    pub fn allows(&self, origin: &HeaderValue) -> bool {
        self.setup.cors_origins.iter().any(|allowed| allowed == "*" || allowed.as_bytes() == origin.as_bytes())
    }
}

/// Every route of the interface.
fn endpoints(setup: &Setup) -> Vec<Endpoint> {
    [
        system::endpoints(setup),
        figures::endpoints(setup),
        keys::endpoints(),
        agents::endpoints(),
        simulations::endpoints(),
        runs::endpoints(),
        results::endpoints(),
        texts::endpoints(),
        humans::endpoints(),
        webhooks::endpoints(),
        schedules::endpoints(),
        internal::endpoints(),
        versions::endpoints(),
        metrics::endpoints(),
        bundle::endpoints(),
        scenarios::endpoints(),
        customers::endpoints(),
        noises::endpoints(),
        generate::endpoints(),
        issues::endpoints(),
        call_logs::endpoints(),
        watch::endpoints(),
        page::endpoints(),
    ]
    .concat()
}

/// The OpenAPI document, as JSON.
pub fn document() -> String {
    openapi::compile(endpoints(&Setup::default())).0
}

/// The names of all routes, as limits of requests name them.
pub fn route_names() -> Vec<String> {
    endpoints(&Setup::default()).iter().map(Endpoint::name).collect()
}

/// The routes as an axum service. Endless answers end when `stopping` is cancelled; requests that must run to their end
/// belong to `tasks`.
pub fn router(service: Service, setup: Setup, stopping: CancellationToken, tasks: Tasks) -> Router {
    let (document, mut ready) = openapi::compile(endpoints(&setup));
    // Its names are the carrier's, so no type declares them.
    for carried in ready.iter_mut().filter(|ready| ready.endpoint.carrier) {
        carried.nodes[2] = texts::delivered(&service.settings().sms);
    }
    let (buckets, running) = (Buckets::default(), Running::default());
    let (stopping, is_loopback) = (Arc::new(stopping), setup.is_loopback);
    let server = Arc::new(Server { service, setup, stopping, document: document.into(), tasks, buckets, running });
    let mut router = Router::new();
    for route in routes(ready) {
        let path = route.methods[0].endpoint.path;
        let (server, route) = (Arc::clone(&server), Arc::new(route));
        router = router.route(path, any(move |request: Request| gate::pass(server, route, request)));
        router = router.route(&format!("{path}/"), any(redirected));
    }
    let of_streams = Arc::clone(&server);
    let upgrade =
        move |token: Path<String>, request: Request| agent_stream::upgrade(Arc::clone(&of_streams), token, request);
    router = router.route(agent_stream::PATH, any(upgrade));
    page::add_to(router, is_loopback, identified).fallback(async || nowhere())
}

fn nowhere() -> Response {
    identified(answer::no_route())
}

/// Groups endpoints by path, in order of declaration.
fn routes(ready: Vec<Ready>) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    for ready in ready {
        match routes.iter_mut().find(|route| route.methods[0].endpoint.path == ready.endpoint.path) {
            Some(route) => route.methods.push(ready),
            None => routes.push(Route { methods: vec![ready], allow: HeaderValue::from_static("OPTIONS") }),
        }
    }
    for route in &mut routes {
        let mut methods: Vec<&str> = route.methods.iter().map(|ready| ready.endpoint.method.as_str()).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.push("OPTIONS");
        route.allow = HeaderValue::from_str(&methods.join(", ")).expect("method names are visible ASCII");
    }
    routes
}

async fn redirected(request: Request) -> Response {
    // An empty segment names nothing.
    let without = request.uri().path().strip_suffix('/').filter(|path| !path.ends_with('/'));
    let Some(path) = without else { return nowhere() };
    let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
    identified(answer::redirect(&format!("{path}{query}")))
}

fn identified(mut response: Response) -> Response {
    gate::finish(&mut response, &clock::new_id().to_string());
    response
}

/// Serves until `stop` completes; requests under way are finished, endless answers are ended.
///
/// # Errors
/// When the listener is none.
pub async fn serve(
    listener: TcpListener,
    service: Service,
    setup: Setup,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let stopping = CancellationToken::new();
    let tasks = Tasks::new();
    let patience = setup.patience;
    let router = router(service, setup, stopping.clone(), tasks.clone());
    let stopped = stopping.clone();
    let (served, ()) = tokio::join!(serve::accept(listener, router, patience, stopped), async move {
        stop.await;
        stopping.cancel();
    });
    tasks.stop().await;
    served
}
