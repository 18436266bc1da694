//! Routes of runs.

use axum::http::{Method, StatusCode};
use ringer_base::error::{Error, Result};
use ringer_model::format::{ExportFormat, ExportRows};
use ringer_model::run::{QueueAnswer, QueueRequest, RunItem, RunPatch};
use ringer_model::schema::one_of;
use ringer_model::text::{SmsQueueSpec, TextQueueSpec};
use ringer_service::{Chain, ListedRun, RunCancelled, RunComparison, RunDeleted, RunResults, SmsQueued};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::endpoint::{Ctx, Endpoint, In, Nothing, delete, endpoint, get, post, with_tag};
use crate::page::send_file;
use crate::page_file::run_page;
use crate::response::{CSV, JSON, JSON_LINES, PARQUET, Page, Table, XML, respond};

#[derive(Deserialize, JsonSchema)]
struct SimulationPath {
    simulation_id: i64,
}

#[derive(Deserialize, JsonSchema)]
struct RunPath {
    simulation_run_id: i64,
}

#[derive(Deserialize, JsonSchema)]
struct IdPath {
    id: i64,
}

#[derive(Deserialize, JsonSchema)]
struct ExportQuery {
    /// Format of the export: csv, json, junit, parquet or jsonl; default csv.
    #[serde(default)]
    #[schemars(extend("x-rules" = one_of(ExportFormat::ALL.iter().map(|one| one.as_str()))))]
    format: Option<String>,
    /// Rows: results or turns; default results. JUnit has results only.
    #[serde(default)]
    #[schemars(extend("x-rules" = one_of(ExportRows::ALL.iter().map(|one| one.as_str()))))]
    rows: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct CancelQuery {
    /// True: running conversations are ended as well.
    #[serde(default)]
    hangup: bool,
}

#[derive(Deserialize, JsonSchema)]
struct CompareQuery {
    /// Id of the earlier run.
    a: i64,
    /// Id of the later run.
    b: i64,
}

/// Answer with the runs of a simulation.
#[derive(Serialize, JsonSchema)]
struct Runs {
    /// Runs, newest first by creation.
    simulation_runs: Vec<RunItem>,
}

/// Word of the links for results, which a queued run has besides itself.
pub(super) const RESULTS: &str = "result";

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        post("/v1/queue-simulation-run", queue).of("Simulation").makes(RESULTS).about("Queue a run of a simulation"),
        post("/v1/queue-http-text-simulation-run", queue_text)
            .of("Simulation")
            .makes(RESULTS)
            .about("Queue a run of a simulation whose agent writes over HTTP"),
        post("/v1/queue-sms-simulation-run", queue_sms)
            .of("Simulation")
            .makes(RESULTS)
            .about("Queue a run of a simulation whose agent uses text messages"),
        get("/v1/get-simulation-runs/{simulation_id}", of_simulation)
            .of("Simulation")
            .about("List the runs of a simulation"),
        get("/v1/retrieve-simulation-results/{simulation_run_id}", results).about("Get a run with all its results"),
        get("/v1/simulation-runs/compare", compare).packs().about("Compare two runs call by call"),
        get("/v1/simulation-run/{id}/page", page)
            .sends_file(false)
            .about("Get a run as one HTML file with its calls and their recordings"),
        get("/v1/simulation-run/{id}/export", export)
            .about("Export the results or turns of a run as CSV, JSON, JSON lines, Parquet or JUnit XML"),
        get("/v1/simulation-run/{id}/evidence-chain", chain)
            .about("Get the manifests of the evidence of a run, bound to each other and signed"),
        post("/v1/simulation-run/{id}/cancel", cancel)
            .about("Cancel results that have not begun, or end all results of a run"),
        endpoint(Method::PATCH, "/v1/simulation-run/{id}", rename).about("Give a run a name"),
        delete("/v1/simulation-run/{id}", remove).about("Delete a run with its results"),
    ];
    with_tag("Runs", "Simulation run", endpoints).collect()
}

async fn queue(ctx: Ctx, request: In<Nothing, Nothing, QueueRequest>) -> Result<QueueAnswer> {
    ctx.service.runs().queue_named_run(&ctx.caller, request.body).await
}

async fn queue_text(ctx: Ctx, request: In<Nothing, Nothing, TextQueueSpec>) -> Result<QueueAnswer> {
    ctx.service.runs().queue_http_text_run(&ctx.caller, request.body).await
}

async fn queue_sms(ctx: Ctx, request: In<Nothing, Nothing, SmsQueueSpec>) -> Result<SmsQueued> {
    ctx.service.runs().queue_sms_run(&ctx.caller, request.body).await
}

async fn of_simulation(ctx: Ctx, request: In<SimulationPath>) -> Result<Runs> {
    Ok(Runs { simulation_runs: ctx.service.runs().simulation_runs(&ctx.caller, request.path.simulation_id).await? })
}

async fn results(ctx: Ctx, request: In<RunPath>) -> Result<RunResults> {
    ctx.service.runs().run_results(&ctx.caller, request.path.simulation_run_id).await
}

async fn compare(ctx: Ctx, request: In<Nothing, CompareQuery>) -> Result<RunComparison> {
    ctx.service.runs().compare_runs(&ctx.caller, request.query.a, request.query.b).await
}

async fn page(ctx: Ctx, request: In<IdPath>) -> Result<Page> {
    let id = request.path.id;
    let text = run_page(&ctx.service.runs().run_file(&ctx.caller, id).await?);
    send_file(&ctx.headers, text, &format!("run-{id}.html"))
}

async fn export(ctx: Ctx, request: In<IdPath, ExportQuery>) -> Result<Table> {
    let ExportQuery { format, rows } = request.query;
    let format = format.map_or(Some(ExportFormat::default()), |word| ExportFormat::parse(&word));
    let format =
        format.ok_or_else(|| Error::Refused("format must be csv, json, junit, parquet or jsonl".to_owned()))?;
    let rows = rows.map_or(Some(ExportRows::default()), |word| ExportRows::parse(&word));
    let rows = rows.ok_or_else(|| Error::Refused("rows must be results or turns".to_owned()))?;
    let content_type = match format {
        ExportFormat::Csv => CSV,
        ExportFormat::Json => JSON,
        ExportFormat::Junit => XML,
        ExportFormat::Parquet => PARQUET,
        ExportFormat::Jsonl => JSON_LINES,
    };
    let bytes = ctx.service.runs().export_run(&ctx.caller, request.path.id, format, rows).await?;
    Ok(respond(StatusCode::OK, content_type, bytes).into())
}

async fn chain(ctx: Ctx, request: In<IdPath>) -> Result<Chain> {
    ctx.service.runs().evidence_chain(&ctx.caller, request.path.id).await
}

async fn cancel(ctx: Ctx, request: In<IdPath, CancelQuery>) -> Result<RunCancelled> {
    ctx.service.runs().cancel_run(&ctx.caller, request.path.id, request.query.hangup).await
}

async fn rename(ctx: Ctx, request: In<IdPath, Nothing, RunPatch>) -> Result<ListedRun> {
    ctx.service.runs().name_run(&ctx.caller, request.path.id, &request.body).await
}

async fn remove(ctx: Ctx, request: In<IdPath>) -> Result<RunDeleted> {
    ctx.service.runs().delete_run(&ctx.caller, request.path.id).await
}
