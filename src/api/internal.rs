//! Routes of a scheduler service and of the operator, with the internal token.

use axum::http::StatusCode;
use ringer_base::error::Result;
use ringer_model::id::IdString;
use ringer_model::organization::{LimitsRecord, WorkspaceLimits};
use ringer_model::run::Accepted;
use ringer_service::{AutosyncAccepted, AutosyncTarget, EngineList, EnginesAsked, RunAccepted, SpendAllowed};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, get, post, put_route, with_tag};

#[derive(Deserialize, JsonSchema)]
struct AgentPath {
    agent_id: i64,
}

#[derive(Deserialize, JsonSchema)]
struct OrganizationPath {
    name: String,
}

/// Engine that begins no conversation any more.
#[derive(Deserialize, JsonSchema)]
struct DrainRequest {
    /// Name of the engine, or its id.
    name: String,
    /// True: the engine begins no conversation any more; false: it does again.
    #[serde(default = "yes")]
    draining: bool,
}

fn yes() -> bool {
    true
}

/// Run that is due by a schedule.
#[derive(Deserialize, JsonSchema)]
struct RunScheduledSimulationRequest {
    /// Simulation that is run.
    simulation_id: IdString,
    /// Schedule by which it is due; absent: none.
    #[serde(default)]
    schedule_id: Option<Uuid>,
}

/// Agents to synchronize with their platforms.
#[derive(Deserialize, JsonSchema)]
struct RunAutosyncRequest {
    /// Agents with their platforms.
    targets: Vec<AutosyncTarget>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let mut endpoints = vec![
        post("/v1/internal/run-scheduled-simulation", run)
            .internal()
            .status(StatusCode::ACCEPTED)
            .of("Simulation")
            .about("Start the run of a schedule"),
        get("/v1/internal/spend-allowed/{agent_id}", spend_allowed)
            .internal()
            .of("Agent")
            .about("Check if the usage limit admits new conversations"),
        post("/v1/internal/run-autosync", autosync)
            .internal()
            .status(StatusCode::ACCEPTED)
            .of("Agent")
            .about("Synchronize agents with their definitions on the platforms"),
        post("/v1/internal/sweep-journeys", sweep)
            .internal()
            .repeatable()
            .status(StatusCode::ACCEPTED)
            .of("Organization")
            .about("Release journey steps whose conversation was lost"),
    ];
    let limits = [
        get("/v1/internal/organizations/{name}/limits", limits)
            .reads_internal()
            .about("Read the limits of an organization: one's own with an admin key, any with the internal token"),
        put_route("/v1/internal/organizations/{name}/limits", set_limits)
            .operator()
            .about("Set the limits of an organization; those of the settings file win"),
    ];
    endpoints.extend(limits);
    let engines = [
        get("/v1/internal/engines", engines).internal().about("List the engines of the database"),
        post("/v1/internal/drain-engine", drain)
            .operator()
            .repeatable()
            .of("Engine")
            .about("Have an engine begin no conversation any more, or begin them again"),
    ];
    endpoints.extend(engines);
    with_tag("Internal", "Organization", endpoints).collect()
}

async fn run(ctx: Ctx, request: In<Nothing, Nothing, RunScheduledSimulationRequest>) -> Result<RunAccepted> {
    let RunScheduledSimulationRequest { simulation_id, schedule_id } = request.body;
    ctx.service.runs().run_scheduled(&ctx.caller, simulation_id, schedule_id).await
}

async fn spend_allowed(ctx: Ctx, request: In<AgentPath>) -> Result<SpendAllowed> {
    ctx.service.conversations().spend_allowed(&ctx.caller, request.path.agent_id).await
}

async fn autosync(ctx: Ctx, request: In<Nothing, Nothing, RunAutosyncRequest>) -> Result<AutosyncAccepted> {
    ctx.service.runs().run_autosync(&ctx.caller, request.body.targets).await
}

async fn engines(ctx: Ctx, _: In) -> Result<EngineList> {
    ctx.service.engines().list().await
}

async fn drain(ctx: Ctx, request: In<Nothing, Nothing, DrainRequest>) -> Result<EnginesAsked> {
    ctx.service.engines().set_draining(&request.body.name, request.body.draining).await
}

async fn limits(ctx: Ctx, request: In<OrganizationPath>) -> Result<LimitsRecord> {
    ctx.service.conversations().organization_limits(&ctx.caller, &request.path.name, ctx.is_operator).await
}

async fn set_limits(ctx: Ctx, request: In<OrganizationPath, Nothing, WorkspaceLimits>) -> Result<LimitsRecord> {
    ctx.service.conversations().set_organization_limits(&request.path.name, request.body).await
}

async fn sweep(ctx: Ctx, _: In<Nothing, Nothing, Option<Nothing>>) -> Result<Accepted> {
    ctx.service.runs().sweep_journeys().await?;
    Ok(Accepted { status: "accepted".into() })
}
