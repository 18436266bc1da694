//! Routes of scenarios; each answers under its old name as well.

use ringer_base::error::Result;
use ringer_model::patch::Patch;
use ringer_model::scenario::{GivenDefinition, ScenarioChange, ScenarioRecord, ScenarioSpec};
use ringer_service::{ScenarioDeleted, ScenarioList, Validated};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, delete, get, post, put_route, with_tag};

#[derive(Deserialize, JsonSchema)]
struct ScenarioPath {
    workflow_id: String,
}

#[derive(Deserialize, JsonSchema)]
struct AgentQuery {
    /// Agent whose scenarios are listed; absent: all.
    #[serde(default)]
    agent_id: Option<i64>,
}

/// Name of a copy.
#[derive(Deserialize, JsonSchema)]
struct Duplicate {
    /// `NAME (copy)` when absent.
    #[serde(default)]
    #[schemars(length(min = 1, max = 255))]
    name: Option<String>,
}

/// A graph to check.
#[derive(Deserialize, JsonSchema)]
struct ToValidate {
    /// Graph of the scenario; this or `json_text` is needed.
    #[serde(default)]
    definition: Option<GivenDefinition>,
    /// The graph as JSON text.
    #[serde(default)]
    json_text: Option<String>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let checked = |path| post(path, validate).repeatable().about("Validate the graph of a scenario").read_only();
    let endpoints = vec![
        post("/v1/scenario", create).about("Create a scenario"),
        post("/v1/workflow", create).about("Create a scenario"),
        get("/v1/scenario", all).of("Agent").about("List scenarios, of all agents or of one, newest first"),
        get("/v1/workflow", all).of("Agent").about("List scenarios, of all agents or of one, newest first"),
        checked("/v1/scenario/validate-definition"),
        checked("/v1/workflow/validate-definition"),
        get("/v1/scenario/{workflow_id}", read_one).about("Get a scenario"),
        get("/v1/workflow/{workflow_id}", read_one).about("Get a scenario"),
        put_route("/v1/scenario/{workflow_id}", update).about("Update fields of a scenario"),
        put_route("/v1/workflow/{workflow_id}", update).about("Update fields of a scenario"),
        delete("/v1/scenario/{workflow_id}", remove).about("Delete a scenario; its Digital Humans stay"),
        delete("/v1/workflow/{workflow_id}", remove).about("Delete a scenario; its Digital Humans stay"),
        post("/v1/scenario/{workflow_id}/duplicate", duplicate).about("Copy a scenario"),
        post("/v1/workflow/{workflow_id}/duplicate", duplicate).about("Copy a scenario"),
    ];
    with_tag("Scenarios", "Scenario", endpoints).collect()
}

async fn create(ctx: Ctx, request: In<Nothing, Nothing, ScenarioSpec>) -> Result<ScenarioRecord> {
    ctx.service.humans().create_scenario(&ctx.caller, request.body).await
}

async fn all(ctx: Ctx, request: In<Nothing, AgentQuery>) -> Result<ScenarioList> {
    ctx.service.humans().scenarios(&ctx.caller, request.query.agent_id).await
}

async fn validate(ctx: Ctx, request: In<Nothing, Nothing, ToValidate>) -> Result<Validated> {
    let ToValidate { definition, json_text } = request.body;
    ctx.service.humans().validate_definition(definition, json_text.as_deref())
}

async fn read_one(ctx: Ctx, request: In<ScenarioPath>) -> Result<ScenarioRecord> {
    ctx.service.humans().scenario(&ctx.caller, &request.path.workflow_id).await
}

async fn update(ctx: Ctx, request: In<ScenarioPath, Nothing, Patch<ScenarioChange>>) -> Result<ScenarioRecord> {
    ctx.service.humans().update_scenario(&ctx.caller, &request.path.workflow_id, request.body.into_given()).await
}

async fn remove(ctx: Ctx, request: In<ScenarioPath>) -> Result<ScenarioDeleted> {
    ctx.service.humans().delete_scenario(&ctx.caller, &request.path.workflow_id).await
}

async fn duplicate(ctx: Ctx, request: In<ScenarioPath, Nothing, Duplicate>) -> Result<ScenarioRecord> {
    ctx.service.humans().duplicate_scenario(&ctx.caller, &request.path.workflow_id, request.body.name).await
}
