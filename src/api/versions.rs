//! Routes of agent versions and labels. Everything under `/versions` also answers under `/prompts`, for old callers.

use ringer_base::error::Result;
use ringer_model::agent_version::{
    LabelChange, LabelRecord, LabelSpec, LabelsSpec, LabelsTaken, VersionName, VersionRecord, VersionSpec,
};
use ringer_service::{LabelDeleted, VersionDeleted, VersionLabels};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, delete, get, post, put_route, with_tag};

#[derive(Deserialize, JsonSchema)]
struct AgentPath {
    agent_id: i64,
}

#[derive(Deserialize, JsonSchema)]
struct VersionPath {
    agent_id: i64,
    version: VersionName,
}

#[derive(Deserialize, JsonSchema)]
struct LabelPath {
    agent_id: i64,
    label_id: Uuid,
}

#[derive(Deserialize, JsonSchema)]
struct ListQuery {
    /// Label that listed versions must have; absent: any.
    #[serde(default)]
    label: Option<String>,
    /// Number of the only version to list; absent: all.
    #[serde(default)]
    version: Option<i64>,
    /// Largest number of versions, 1 to 1000; default 50.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 1000))]
    limit: i64,
}

fn fifty() -> i64 {
    50
}

#[derive(Deserialize, JsonSchema)]
struct LabelQuery {
    /// Label of the version.
    #[serde(default)]
    label: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct PromoteQuery {
    /// Deprecated twin of agent_version_id.
    #[serde(default)]
    #[schemars(extend("deprecated" = true))]
    prompt_id: Option<Uuid>,
    /// Version to promote; absent: the latest.
    #[serde(default)]
    agent_version_id: Option<Uuid>,
}

#[derive(Deserialize, JsonSchema)]
struct SearchQuery {
    /// Part of the label's text, in any case.
    #[serde(default)]
    q: Option<String>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    const VERSION: &str = "/v1/agents/{agent_id}/versions/{version}";
    const LABELS: &str = "/v1/agents/{agent_id}/versions/{version}/labels";
    const OLD: &str = "/v1/agents/{agent_id}/prompts/versions/{version}";
    const OLD_LABELS: &str = "/v1/agents/{agent_id}/prompts/versions/{version}/labels";
    const OLDEST: &str = "/v1/agents/{agent_id}/prompts/{version}";
    let mut versions = Vec::new();
    for (path, old) in [("/v1/agents/{agent_id}/versions", false), ("/v1/agents/{agent_id}/prompts/versions", true)] {
        versions.push(mark_old(old, post(path, create).about("Create the next version of an agent")));
        versions.push(mark_old(old, get(path, all).about("List the versions of an agent, highest first")));
        versions.push(mark_old(old, delete(path, remove_by_label).about("Delete the version that has a label")));
    }
    for (path, old) in
        [("/v1/agents/{agent_id}/versions/promote", false), ("/v1/agents/{agent_id}/prompts/promote", true)]
    {
        versions.push(mark_old(old, post(path, promote).repeatable().about("Promote a version to production")));
    }
    for (path, old) in [(VERSION, false), (OLD, true), (OLDEST, true)] {
        versions.push(mark_old(old, get(path, read_one).about("Get a version, by number or id")));
        versions.push(mark_old(old, delete(path, remove).about("Delete a version, by number or id")));
    }
    for (path, old) in [(LABELS, false), (OLD_LABELS, true)] {
        versions.push(mark_old(old, get(path, labels).about("List the labels of a version")));
        versions.push(mark_old(old, post(path, put_on).repeatable().about("Add labels to a version")));
        versions.push(mark_old(old, delete(path, take_off).about("Remove labels from a version")));
    }
    versions.push(get("/v1/agents/{agent_id}/prompts", by_label).deprecate().about("Get the version that has a label"));
    let labels = vec![
        get("/v1/agents/{agent_id}/labels", search).of("Agent").about("List the labels of an agent, sorted by text"),
        post("/v1/agents/{agent_id}/labels", create_label).of("Agent").about("Create a label"),
        get("/v1/agents/{agent_id}/labels/{label_id}", label).about("Get a label"),
        put_route("/v1/agents/{agent_id}/labels/{label_id}", rename).about("Rename or colour a label"),
        delete("/v1/agents/{agent_id}/labels/{label_id}", remove_label).about("Delete a label that no version has"),
    ];
    with_tag("Agent versions", "Agent", versions).chain(with_tag("Labels", "Agent", labels)).collect()
}

fn mark_old(old: bool, endpoint: Endpoint) -> Endpoint {
    if old { endpoint.deprecate() } else { endpoint }
}

async fn create(ctx: Ctx, request: In<AgentPath, Nothing, VersionSpec>) -> Result<VersionRecord> {
    ctx.service.library().create_version(&ctx.caller, request.path.agent_id, request.body).await
}

async fn all(ctx: Ctx, request: In<AgentPath, ListQuery>) -> Result<Vec<VersionRecord>> {
    let ListQuery { label, version, limit } = request.query;
    ctx.service.library().versions(&ctx.caller, request.path.agent_id, label.as_deref(), version, limit).await
}

async fn remove_by_label(ctx: Ctx, request: In<AgentPath, LabelQuery>) -> Result<VersionDeleted> {
    let label = request.query.label.as_deref();
    ctx.service.library().delete_version_by_label(&ctx.caller, request.path.agent_id, label).await
}

async fn by_label(ctx: Ctx, request: In<AgentPath, LabelQuery>) -> Result<VersionRecord> {
    ctx.service.library().version_by_label(&ctx.caller, request.path.agent_id, request.query.label.as_deref()).await
}

async fn promote(ctx: Ctx, request: In<AgentPath, PromoteQuery, Option<Nothing>>) -> Result<VersionRecord> {
    let PromoteQuery { prompt_id, agent_version_id } = request.query;
    ctx.service.library().promote_version(&ctx.caller, request.path.agent_id, agent_version_id, prompt_id).await
}

async fn read_one(ctx: Ctx, request: In<VersionPath>) -> Result<VersionRecord> {
    ctx.service.library().version(&ctx.caller, request.path.agent_id, request.path.version).await
}

async fn remove(ctx: Ctx, request: In<VersionPath>) -> Result<VersionDeleted> {
    ctx.service.library().delete_version(&ctx.caller, request.path.agent_id, request.path.version).await
}

async fn labels(ctx: Ctx, request: In<VersionPath>) -> Result<VersionLabels> {
    ctx.service.library().version_labels(&ctx.caller, request.path.agent_id, request.path.version).await
}

async fn put_on(ctx: Ctx, request: In<VersionPath, Nothing, LabelsSpec>) -> Result<VersionLabels> {
    let VersionPath { agent_id, version } = request.path;
    ctx.service.library().add_version_labels(&ctx.caller, agent_id, version, request.body).await
}

async fn take_off(ctx: Ctx, request: In<VersionPath, Nothing, Option<LabelsTaken>>) -> Result<VersionLabels> {
    let VersionPath { agent_id, version } = request.path;
    ctx.service.library().remove_version_labels(&ctx.caller, agent_id, version, request.body.unwrap_or_default()).await
}

async fn search(ctx: Ctx, request: In<AgentPath, SearchQuery>) -> Result<Vec<LabelRecord>> {
    ctx.service.library().labels(&ctx.caller, request.path.agent_id, request.query.q.as_deref()).await
}

async fn create_label(ctx: Ctx, request: In<AgentPath, Nothing, LabelSpec>) -> Result<LabelRecord> {
    ctx.service.library().create_label(&ctx.caller, request.path.agent_id, request.body).await
}

async fn label(ctx: Ctx, request: In<LabelPath>) -> Result<LabelRecord> {
    ctx.service.library().label(&ctx.caller, request.path.agent_id, request.path.label_id).await
}

async fn rename(ctx: Ctx, request: In<LabelPath, Nothing, LabelChange>) -> Result<LabelRecord> {
    let LabelPath { agent_id, label_id } = request.path;
    ctx.service.library().update_label(&ctx.caller, agent_id, label_id, request.body).await
}

async fn remove_label(ctx: Ctx, request: In<LabelPath>) -> Result<LabelDeleted> {
    ctx.service.library().delete_label(&ctx.caller, request.path.agent_id, request.path.label_id).await
}
