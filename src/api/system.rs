//! Routes about the server itself: health, ping, the OpenAPI document and its page.

use std::path::Path;
use std::sync::Arc;

use axum::http::StatusCode;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;

use crate::api::answer::{Document, HTML, JSON, Page, respond};
use crate::api::endpoint::{Ctx, Endpoint, In, get, tagged};
use crate::api::host::protect;
use crate::clock;
use crate::error::Result;

const DOCS: &str = include_str!("../../web/docs.html");

/// Whether the process answers.
#[derive(Serialize, JsonSchema)]
struct Health {
    /// `ok`.
    status: &'static str,
    /// Of this program.
    version: &'static str,
}

/// The answer to a ping.
#[derive(Serialize, JsonSchema)]
struct Pong {
    /// `pong`.
    message: &'static str,
}

/// Health of everything that the engine needs.
#[derive(Serialize, JsonSchema)]
struct DeepHealth {
    /// degraded when a part is down.
    status: Overall,
    /// By part.
    deps: Parts,
}

/// Health of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Overall {
    Ok,
    Degraded,
}

/// The parts that a call needs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Parts {
    /// Rows.
    pub database: Part,
    /// Jobs.
    pub queue: Part,
    /// Files.
    pub recordings: Part,
    /// Text to speech.
    pub synthesizer: Part,
    /// Speech to text.
    pub recognizer: Part,
    /// Language model.
    pub language_model: Part,
    /// SIP sockets and registrations.
    pub sip: Part,
}

/// One part.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Part {
    /// Whether it works.
    pub status: PartStatus,
    /// What is wrong, or which one it is.
    pub detail: Option<String>,
    /// How long it took to answer.
    pub latency_ms: Option<f64>,
}

/// Whether a part works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartStatus {
    /// It answers.
    Ok,
    /// It does not.
    Down,
    /// It is not set up here.
    NotConfigured,
}

impl Part {
    /// A part that works or does not.
    pub fn up(works: bool) -> Part {
        let status = if works { PartStatus::Ok } else { PartStatus::Down };
        Part { status, detail: None, latency_ms: None }
    }

    /// A part that is not set up in this process.
    pub fn absent() -> Part {
        Part { status: PartStatus::NotConfigured, detail: None, latency_ms: None }
    }
}

/// Fills in the parts that only the engine knows: speech, models, SIP.
pub type Probe = Arc<dyn Fn(Parts) -> BoxFuture<'static, Parts> + Send + Sync>;

/// Starts the sample agent where it does not run yet, and answers its address, or why there is none.
pub type SampleAgent = Arc<dyn Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        get("/health", health).open().about("Whether the process answers"),
        get("/health/deps", deps).open().about("Health of everything that the engine needs"),
        get("/v1/ping", ping).open().about("Answers pong"),
        get("/openapi.json", document).open().about("This description"),
        get("/docs", docs).open().of_page().about("This description as a page"),
    ];
    tagged("System", "", endpoints).collect()
}

async fn health(_: Ctx, _: In) -> Result<Health> {
    Ok(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

async fn deps(ctx: Ctx, _: In) -> Result<DeepHealth> {
    let asked_ms = ctx.service.clock().now_ms();
    let mut database = Part::up(ctx.service.store().is_alive().await);
    database.latency_ms = Some((ctx.service.clock().now_ms() - asked_ms) as f64);
    let parts = Parts {
        // The jobs are rows of the same database.
        queue: database.clone(),
        recordings: recordings(&ctx.service.settings().data).await,
        synthesizer: Part::absent(),
        recognizer: Part::absent(),
        language_model: Part::absent(),
        sip: Part::absent(),
        database,
    };
    let parts = match &ctx.probe {
        Some(probe) => probe(parts).await,
        None => parts,
    };
    let Parts { database, queue, recordings, synthesizer, recognizer, language_model, sip } = &parts;
    let all = [database, queue, recordings, synthesizer, recognizer, language_model, sip];
    let down = all.iter().any(|part| part.status == PartStatus::Down);
    Ok(DeepHealth { status: if down { Overall::Degraded } else { Overall::Ok }, deps: parts })
}

/// Whether something can be written where recordings are kept.
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
