//! HTTP: routes, reading of requests, writing of answers. Every rule of the product is the service's; a handler here
//! parses, calls the service once and returns.

pub mod audio;
pub mod endpoint;
pub mod idempotency;
pub mod openapi;
pub mod pipeline;
mod previews;
pub mod rate;
pub mod response;
pub mod serve;
pub mod socket_upgrade;
pub mod upload;

mod agent_stream;
mod agents;
mod alerts;
mod assistants;
mod bundle;
mod call_logs;
mod client_limits;
mod customers;
mod figures;
mod generate;
mod health;
mod host;
mod http_errors;
mod humans;
mod internal;
mod issues;
mod judge_cards;
mod keys;
mod line_tests;
mod live;
mod metrics;
mod monitors;
mod noises;
mod packed;
mod page;
mod page_file;
mod paging;
mod phone_numbers;
mod results;
mod run_live;
mod runs;
mod scenarios;
mod schedules;
mod simulations;
mod spans;
mod suite_reader;
mod suites;
mod system;
mod texts;
mod validators;
mod versions;
mod webhooks;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request};
use axum::http::HeaderValue;
use axum::response::Response;
use axum::routing::any;
use ringer_base::clock;
use ringer_base::config::Secret;
use ringer_base::tasks::Tasks;
use ringer_engine::Engine;
use ringer_service::jobs::{AgentStreams, LineTests, Previews};
use ringer_service::{PageDoor, Service};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use crate::assistants::{AssistantService, Assistants};
pub use crate::client_limits::ConnectionLimits;
use crate::client_limits::{BodyMemory, REFUSAL_DELAY, WrongKeys};
use crate::endpoint::Endpoint;
use crate::health::HealthCache;
pub use crate::health::{Part, PartStatus, Parts, Probe, SampleAgent};
use crate::idempotency::Running;
use crate::pipeline::{Ready, Route};
use crate::rate::Buckets;
pub use crate::rate::Rates;
pub use crate::serve::Patience;
pub use crate::suite_reader::{SuiteOut, SuiteReader};

/// Largest request body of routes that need no key, in bytes.
const OPEN_BODY_BYTES: usize = 16 * 1024;

/// Settings of the server besides the service.
#[derive(Clone)]
pub struct Setup {
    /// Largest request body, in bytes.
    pub max_body_bytes: usize,
    /// Largest request body of routes that take a file, in bytes.
    pub max_upload_bytes: usize,
    /// Most bytes of request bodies in memory at the same time.
    pub max_bodies_bytes: usize,
    /// Most connections at the same time.
    pub connections: ConnectionLimits,
    /// Longest delay of the refusal of a wrong key, for addresses that send many; 0: none waits.
    pub refusal_delay: Duration,
    /// Origins that a browser may call from; `*` is every origin.
    pub cors_origins: Vec<String>,
    /// Rate limits, in requests a minute.
    pub rates: Rates,
    /// Time limits of a request.
    pub patience: Patience,
    /// Function that adds the health of the parts that only the engine knows; `None` without an engine.
    pub probe: Option<Probe>,
    /// Engine whose figures `/metrics` shows; `None`: only those of the queue.
    pub engine: Option<Engine>,
    /// True: `/metrics` needs no key.
    pub public_metrics: bool,
    /// Token of the internal routes; `None`: they need an admin key.
    pub internal_token: Option<Secret>,
    /// True: the listener accepts this machine only, and the page is shown under its own names only.
    pub is_loopback: bool,
    /// Host of the public address, under which a proxy on this machine shows the page; `None`: there is no proxy.
    pub public_host: Option<String>,
    /// Start token of the page; `None`: the page has none.
    pub door: Option<Arc<PageDoor>>,
    /// Function that starts the sample agent; `None`: there is none.
    pub sample_agent: Option<SampleAgent>,
    /// Registry of agents that open WebSockets; `None`: there is no such route.
    pub streams: Option<AgentStreams>,
    /// Tests of agents' lines; `None`: no calls are made.
    pub line_tests: Option<LineTests>,
    /// Previews of Digital Humans; `None`: no calls are made.
    pub previews: Option<Previews>,
    /// Function that reads suites; `None`: there is none.
    pub suites: Option<SuiteReader>,
    /// Function that makes the service of coding assistants; `None`: there is no `/mcp`.
    pub assistants: Option<Assistants>,
    /// Token that is cancelled when the process is about to end: reading still works, nothing new is begun.
    pub draining: CancellationToken,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            max_body_bytes: 32 * 1024 * 1024,
            max_upload_bytes: 512 * 1024 * 1024,
            max_bodies_bytes: 1024 * 1024 * 1024,
            connections: ConnectionLimits::default(),
            refusal_delay: REFUSAL_DELAY,
            cors_origins: Vec::new(),
            rates: Rates::default(),
            patience: Patience::default(),
            probe: None,
            engine: None,
            public_metrics: false,
            internal_token: None,
            is_loopback: false,
            public_host: None,
            door: None,
            sample_agent: None,
            streams: None,
            line_tests: None,
            previews: None,
            suites: None,
            assistants: None,
            draining: CancellationToken::new(),
        }
    }
}

/// State that all requests share.
pub struct Server {
    /// Service with every rule of the product.
    pub service: Service,
    /// Settings of the server.
    pub setup: Setup,
    /// Token that is cancelled when the server stops.
    pub stopping: Arc<CancellationToken>,
    /// The OpenAPI document, as JSON.
    pub document: Arc<str>,
    /// Tasks of requests that run on when their client goes away.
    pub tasks: Tasks,
    /// Token buckets of the rate limits.
    pub buckets: Buckets,
    /// Requests with an Idempotency-Key that are running.
    pub running: Running,
    /// Memory for request bodies.
    pub(crate) bodies: BodyMemory,
    /// Wrong keys by address.
    pub(crate) wrong_keys: WrongKeys,
    /// Health of the parts, measured at most once in some seconds.
    pub(crate) health: HealthCache,
}

impl Server {
    /// Returns the largest body of a request to `endpoint`, in bytes.
    pub fn body_limit(&self, endpoint: &Endpoint) -> usize {
        match () {
            () if endpoint.is_open() => OPEN_BODY_BYTES,
            // A form is in memory with its file, and what fits into no memory is never taken.
            () if endpoint.takes_files() => self.setup.max_upload_bytes.min(self.setup.max_bodies_bytes / 2),
            () => self.setup.max_body_bytes.min(self.setup.max_bodies_bytes),
        }
    }

    /// Returns the names under which the page is shown besides those of this machine.
    pub fn public_host(&self) -> Option<&str> {
        self.setup.public_host.as_deref()
    }

    /// Returns the time limit of receiving the body of a request to `endpoint`.
    pub fn body_patience(&self, endpoint: &Endpoint) -> Duration {
        let patience = &self.setup.patience;
        if endpoint.takes_files() { patience.upload } else { patience.body }
    }

    /// True if a browser may call from `origin`.
    pub fn allows(&self, origin: &HeaderValue) -> bool {
        self.setup.cors_origins.iter().any(|allowed| allowed == "*" || allowed.as_bytes() == origin.as_bytes())
    }
}

/// Returns every route of the interface.
fn endpoints(setup: &Setup) -> Vec<Endpoint> {
    [
        system::endpoints(setup),
        figures::endpoints(setup),
        keys::endpoints(),
        agents::endpoints(),
        line_tests::endpoints(),
        previews::endpoints(),
        simulations::endpoints(),
        suites::endpoints(),
        runs::endpoints(),
        results::endpoints(),
        spans::endpoints(),
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
        judge_cards::endpoints(),
        monitors::endpoints(),
        alerts::endpoints(),
        phone_numbers::endpoints(),
        page::endpoints(),
    ]
    .concat()
}

/// Returns the OpenAPI document, as JSON.
pub fn document() -> String {
    openapi::compile(endpoints(&Setup::default())).0
}

/// Returns the names of all routes, as the rate limits name them.
pub fn route_names() -> Vec<String> {
    endpoints(&Setup::default()).iter().map(Endpoint::name).collect()
}

/// Returns the routes as an axum service.
///
/// Endless answers end when `stopping` is cancelled; requests that must run to their end belong to `tasks`.
pub fn router(service: Service, setup: Setup, stopping: CancellationToken, tasks: Tasks) -> Router {
    let (document, mut ready) = openapi::compile(endpoints(&setup));
    // The field names come from the carrier's settings, so no type declares them.
    for carried in ready.iter_mut().filter(|ready| ready.endpoint.carrier) {
        carried.nodes[2] = texts::delivered(&service.settings().sms);
    }
    let (buckets, running) = (Buckets::default(), Running::default());
    let stopping = Arc::new(stopping);
    let (bodies, wrong_keys, health) =
        (BodyMemory::new(setup.max_bodies_bytes), WrongKeys::new(setup.refusal_delay), HealthCache::new(tasks.clone()));
    let document = document.into();
    let server =
        Arc::new(Server { service, setup, stopping, document, tasks, buckets, running, bodies, wrong_keys, health });
    let mut router = Router::new();
    for route in routes(ready) {
        let path = route.methods[0].endpoint.path;
        let (server, route) = (Arc::clone(&server), Arc::new(route));
        router = router.route(path, any(move |request: Request| pipeline::pass(server, route, request)));
        router = router.route(&format!("{path}/"), any(redirect_slash));
    }
    let of_streams = Arc::clone(&server);
    let upgrade =
        move |token: Path<String>, request: Request| agent_stream::upgrade(Arc::clone(&of_streams), token, request);
    router = assistants::add_to(router.route(agent_stream::PATH, any(upgrade)), &server);
    page::add_to(router, &server, with_request_id).fallback(async || nowhere())
}

fn nowhere() -> Response {
    with_request_id(response::no_route())
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

async fn redirect_slash(request: Request) -> Response {
    // An empty segment names nothing.
    let without = request.uri().path().strip_suffix('/').filter(|path| !path.ends_with('/'));
    let Some(path) = without else { return nowhere() };
    let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
    with_request_id(response::redirect(&format!("{path}{query}")))
}

fn with_request_id(mut response: Response) -> Response {
    pipeline::finish(&mut response, &clock::new_id().to_string());
    response
}

/// Serves until `stop` completes; running requests are finished, endless answers are ended.
///
/// # Errors
/// The listener does not work.
pub async fn serve(
    listener: TcpListener,
    service: Service,
    setup: Setup,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let stopping = CancellationToken::new();
    let tasks = Tasks::new();
    let (patience, limits) = (setup.patience, setup.connections);
    let router = router(service, setup, stopping.clone(), tasks.clone());
    let stopped = stopping.clone();
    let (served, ()) = tokio::join!(serve::accept(listener, router, patience, limits, stopped), async move {
        stop.await;
        stopping.cancel();
    });
    tasks.stop().await;
    served
}
