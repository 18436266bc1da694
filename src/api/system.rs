//! Routes about the server itself: health, ping, the OpenAPI document and its page.

use std::path::Path;

use axum::http::StatusCode;
use ringer_base::clock;
use ringer_base::error::{DATABASE_AWAY, Error, Result};
use ringer_engine::{Engine, LineReport, LineStanding, Standing};
use ringer_model::time::Timestamp;
use ringer_service::Service;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Setup;
use crate::endpoint::{Ctx, Endpoint, In, get, with_tag};
use crate::health::{Part, PartStatus, Parts, Probe};
use crate::host::protect;
use crate::response::{Document, HTML, JSON, Page, respond};

const DOCS: &str = include_str!("../../web/docs.html");

/// Answer of a running process.
#[derive(Serialize, JsonSchema)]
struct Health {
    /// Always `ok`; the process answers.
    status: &'static str,
    /// Version of this program.
    version: &'static str,
}

/// Answer of a process that takes conversations.
#[derive(Serialize, JsonSchema)]
struct Readiness {
    /// Always `ready`; a process that is not answers 503.
    status: &'static str,
}

/// The answer to a ping.
#[derive(Serialize, JsonSchema)]
struct Pong {
    /// Always `pong`, whatever is asked.
    message: &'static str,
}

/// Health of everything that the engine needs.
#[derive(Serialize, JsonSchema)]
struct DeepHealth {
    /// State of the whole: degraded when a part is down.
    status: Overall,
    /// State of each part.
    deps: Parts,
    /// Trunks that calls come and go by, in the order of their names; told to keys of scope admin alone.
    trunks: Vec<TrunkHealth>,
    /// Times for which files and rows are kept; told to keys of scope admin alone.
    retention: Option<Kept>,
}

/// Settings of `[retention]`; 0: no limit.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
struct Kept {
    /// Days that results are kept, with all that belongs to them.
    results_days: u32,
    /// Days that recordings are kept.
    recordings_days: u32,
    /// Megabytes that recordings may take; the oldest are deleted first.
    disk_quota_mb: u32,
}

/// Health of one trunk, as `GET /health/deps` reports it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct TrunkHealth {
    /// Name of the trunk in the settings.
    name: String,
    /// Registration for incoming calls; null where there is none.
    registration: Option<LineHealth>,
    /// Answers to OPTIONS requests; null where none are sent.
    keepalive: Option<LineHealth>,
}

/// Health of a trunk's registration, or of its answers to OPTIONS.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct LineHealth {
    /// State at this moment.
    state: LineState,
    /// Time since which the state holds.
    since: Timestamp,
    /// Last error; it stays when the state is up again.
    error: Option<String>,
}

/// State of a trunk's registration, or of its answers to OPTIONS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum LineState {
    /// The last answer was good.
    Up,
    /// The last request failed.
    Down,
    /// Not known yet, before the first answer.
    Unknown,
}

impl From<LineStanding> for LineHealth {
    fn from(line: LineStanding) -> LineHealth {
        let state = match line.standing {
            Standing::Up => LineState::Up,
            Standing::Down => LineState::Down,
            Standing::Unknown => LineState::Unknown,
        };
        LineHealth { state, since: Timestamp(line.since_ms), error: line.error }
    }
}

impl From<LineReport> for TrunkHealth {
    fn from(line: LineReport) -> TrunkHealth {
        let LineReport { name, registration, keepalive, .. } = line;
        TrunkHealth { name, registration: registration.map(Into::into), keepalive: keepalive.map(Into::into) }
    }
}

impl TrunkHealth {
    /// True if the registration or the answers to OPTIONS are down.
    fn is_down(&self) -> bool {
        [&self.registration, &self.keepalive].into_iter().flatten().any(|line| line.state == LineState::Down)
    }
}

/// Health of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Overall {
    Ok,
    Degraded,
}

pub(super) fn endpoints(setup: &Setup) -> Vec<Endpoint> {
    let engine = setup.engine.clone();
    let endpoints = vec![
        get("/health", health).open().about("Check that the process answers"),
        get("/ready", ready).open().about("Check that the process takes conversations: 503 while it is drained"),
        get("/health/deps", move |ctx, parts| deps(engine.clone(), ctx, parts))
            .open_to_all()
            .about("Get the health of each part that the engine needs"),
        get("/v1/ping", ping).open().about("Ping: always answers pong"),
        get("/openapi.json", document).open().about("Get this OpenAPI description"),
        get("/docs", docs).open().of_page().about("Get the page that shows this description"),
    ];
    with_tag("System", "", endpoints).collect()
}

async fn health(_: Ctx, _: In) -> Result<Health> {
    Ok(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

async fn ready(ctx: Ctx, _: In) -> Result<Readiness> {
    if ctx.service.engines().is_draining() {
        return Err(Error::Unavailable("The engine is draining: it begins no conversation".into()));
    }
    if !ctx.service.store().is_alive().await {
        return Err(Error::Unavailable(DATABASE_AWAY.into()));
    }
    Ok(Readiness { status: "ready" })
}

async fn deps(engine: Option<Engine>, ctx: Ctx, _: In) -> Result<DeepHealth> {
    let mut parts =
        ctx.health.parts(ctx.service.clock().now_ms(), measure(ctx.service.clone(), ctx.probe.clone())).await?;
    let lines = engine.map(|engine| engine.lines().reports()).unwrap_or_default();
    let mut trunks: Vec<TrunkHealth> = lines.into_iter().map(TrunkHealth::from).collect();
    let silent: Vec<&str> = trunks.iter().filter(|trunk| trunk.is_down()).map(|trunk| trunk.name.as_str()).collect();
    if !silent.is_empty() {
        parts.sip = Part { detail: Some(format!("trunks that are down: {}", silent.join(", "))), ..Part::up(false) };
    }
    let of = &ctx.service.settings().retention;
    let kept =
        Kept { results_days: of.results_days, recordings_days: of.recordings_days, disk_quota_mb: of.disk_quota_mb };
    let down = parts.all().iter().any(|part| part.status == PartStatus::Down);
    let retention = ctx.caller.is_admin().then_some(kept);
    if !ctx.caller.is_admin() {
        (parts, trunks) = (parts.without_details(), Vec::new());
    }
    Ok(DeepHealth { status: if down { Overall::Degraded } else { Overall::Ok }, deps: parts, trunks, retention })
}

/// Measures the health of all parts.
async fn measure(service: Service, probe: Option<Probe>) -> Parts {
    let asked_ms = service.clock().now_ms();
    let mut database = Part::up(service.store().is_alive().await);
    database.latency_ms = Some((service.clock().now_ms() - asked_ms) as f64);
    let parts = Parts {
        queue: queue(&service).await,
        recordings: recordings(&service.settings().data).await,
        synthesizer: Part::absent(),
        recognizer: Part::absent(),
        language_model: Part::absent(),
        sip: Part::absent(),
        database,
    };
    match probe {
        Some(probe) => probe(parts).await,
        None => parts,
    }
}

/// Returns the health of the queue of jobs: whether it can be read, and how long the jobs that are due have waited.
async fn queue(service: &Service) -> Part {
    let asked_ms = service.clock().now_ms();
    let waiting = service.runs().due_jobs().await;
    let latency_ms = Some((service.clock().now_ms() - asked_ms) as f64);
    match waiting {
        Ok((0, _)) => Part { latency_ms, ..Part::up(true) },
        Ok((jobs, late_ms)) => {
            let detail = format!("{jobs} due, the first for {} s", late_ms / 1000);
            Part { detail: Some(detail), latency_ms, ..Part::up(true) }
        }
        Err(error) => Part { detail: Some(error.to_string()), latency_ms, ..Part::up(false) },
    }
}

/// Returns the health of the data folder, in which it writes and deletes a small file.
async fn recordings(data: &Path) -> Part {
    let trial = data.join(format!("{}.part", clock::new_id()));
    let written = tokio::fs::write(&trial, [0; 4096]).await;
    let _ = tokio::fs::remove_file(&trial).await;
    match written {
        Ok(()) => Part::up(true),
        Err(error) => Part { detail: Some(format!("{}: {error}", data.display())), ..Part::up(false) },
    }
}

async fn ping(_: Ctx, _: In) -> Result<Pong> {
    Ok(Pong { message: "pong" })
}

async fn document(ctx: Ctx, _: In) -> Result<Document> {
    Ok(respond(StatusCode::OK, JSON, ctx.document.to_string()).into())
}

async fn docs(_: Ctx, _: In) -> Result<Page> {
    let mut response = respond(StatusCode::OK, HTML, DOCS);
    protect(response.headers_mut());
    Ok(response.into())
}
