//! Routes of custom metrics.

use ringer_base::error::Result;
use ringer_model::custom_metric::{CustomMetricRecord, CustomMetricSpec, CustomMetricUpdates};
use ringer_model::language_model::ModelRecord;
use ringer_model::metric_template::NewMetric;
use ringer_model::patch::Patch;
use ringer_service::{DraftMetrics, MetricDrafts, MetricPage, MetricsDeleted, MetricsUpdated};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, delete, get, post, put_route, with_tag};

#[derive(Deserialize, JsonSchema)]
struct MetricPath {
    metric_id: Uuid,
}

/// The deprecated route takes any text: what is no uuid is not found.
#[derive(Deserialize, JsonSchema)]
struct OldMetricPath {
    metric_id: String,
}

#[derive(Deserialize, JsonSchema)]
struct AgentPath {
    agent_id: i64,
}

/// Custom metrics to create, all or none.
#[derive(Deserialize, JsonSchema)]
struct CreateMetrics {
    /// Metrics to create, 1 to 100.
    #[schemars(length(min = 1, max = 100))]
    metrics: Vec<NewMetric>,
}

/// Answer with several metrics.
#[derive(Serialize, JsonSchema)]
struct CreatedMetrics {
    /// Metrics in the order of the request.
    metrics: Vec<CustomMetricRecord>,
}

/// Change of the same fields of several metrics.
#[derive(Deserialize, JsonSchema)]
struct UpdateMetrics {
    /// Identifiers of the metrics to change.
    metric_ids: Vec<Uuid>,
    /// Fields to change, with their values.
    updates: Patch<CustomMetricUpdates>,
}

/// Custom metrics to delete.
#[derive(Deserialize, JsonSchema)]
struct DeleteMetrics {
    /// Identifiers of metrics, at least one; unknown ones are skipped.
    #[schemars(length(min = 1))]
    custom_metric_ids: Vec<Uuid>,
}

#[derive(Deserialize, JsonSchema)]
struct ListQuery {
    /// Agent whose metrics are listed; absent: all.
    #[serde(default)]
    agent_id: Option<i64>,
    /// Category whose metrics are listed, as it is written; absent: all.
    #[serde(default)]
    category: Option<String>,
    /// Number of the page, from 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    page: i64,
    /// Rows a page, 1 to 200; default 50.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 200))]
    page_size: i64,
}

#[derive(Deserialize, JsonSchema)]
struct CategoryQuery {
    /// Category that is listed, as it is written; absent: all.
    #[serde(default)]
    category: Option<String>,
}

fn one() -> i64 {
    1
}

fn fifty() -> i64 {
    50
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        post("/v1/create-custom-metric", create).about("Create a custom metric"),
        post("/v1/create-custom-metrics", create_all).about("Create several custom metrics, all or none"),
        get("/v1/custom-metric-templates", templates)
            .of("Organization")
            .about("List templates that custom metrics can be created from"),
        get("/v1/custom-metric/{metric_id}", read_one).about("Get a custom metric"),
        delete("/v1/custom-metric/{metric_id}", remove).deprecate().about("Delete a custom metric"),
        get("/v1/models", models).of("Organization").about("List the models that metrics may choose"),
        get("/v1/custom-metrics", all).of("Agent").about("List custom metrics, newest first"),
        get("/v1/custom-metrics-by-agent/{agent_id}", of_agent)
            .of("Agent")
            .deprecate()
            .about("List all custom metrics of an agent on one page"),
        put_route("/v1/update-custom-metric/{metric_id}", update).about("Update fields of a custom metric"),
        put_route("/v1/update-custom-metrics", update_all).about("Update the same fields of several custom metrics"),
        post("/v1/delete-custom-metrics", remove_all).repeatable().about("Delete several custom metrics"),
        post("/v1/generate-custom-metrics", generate)
            .of("Agent")
            .generates()
            .about("Draft custom metrics for an agent"),
    ];
    with_tag("Custom metrics", "Custom metric", endpoints).collect()
}

async fn create(ctx: Ctx, request: In<Nothing, Nothing, NewMetric>) -> Result<CustomMetricRecord> {
    ctx.service.library().create_custom_metric(&ctx.caller, request.body).await
}

async fn create_all(ctx: Ctx, request: In<Nothing, Nothing, CreateMetrics>) -> Result<CreatedMetrics> {
    let metrics = ctx.service.library().create_custom_metrics(&ctx.caller, request.body.metrics).await?;
    Ok(CreatedMetrics { metrics })
}

async fn read_one(ctx: Ctx, request: In<MetricPath>) -> Result<CustomMetricRecord> {
    ctx.service.library().custom_metric(&ctx.caller, request.path.metric_id).await
}

async fn remove(ctx: Ctx, request: In<OldMetricPath>) -> Result<CustomMetricRecord> {
    ctx.service.library().delete_custom_metric(&ctx.caller, &request.path.metric_id).await
}

async fn models(ctx: Ctx, _: In) -> Result<Vec<ModelRecord>> {
    Ok(ctx.service.library().models())
}

async fn all(ctx: Ctx, request: In<Nothing, ListQuery>) -> Result<MetricPage> {
    let ListQuery { agent_id, category, page, page_size } = request.query;
    ctx.service.library().custom_metrics(&ctx.caller, agent_id, category.as_deref(), page, page_size).await
}

async fn of_agent(ctx: Ctx, request: In<AgentPath, CategoryQuery>) -> Result<MetricPage> {
    let (agent_id, category) = (request.path.agent_id, request.query.category.as_deref());
    ctx.service.library().custom_metrics_by_agent(&ctx.caller, agent_id, category).await
}

async fn templates(ctx: Ctx, request: In<Nothing, CategoryQuery>) -> Result<Vec<CustomMetricSpec>> {
    Ok(ctx.service.library().metric_templates(request.query.category.as_deref()))
}

async fn update(ctx: Ctx, request: In<MetricPath, Nothing, Patch<CustomMetricSpec>>) -> Result<CustomMetricRecord> {
    ctx.service.library().update_custom_metric(&ctx.caller, request.path.metric_id, request.body.fields()).await
}

async fn update_all(ctx: Ctx, request: In<Nothing, Nothing, UpdateMetrics>) -> Result<MetricsUpdated> {
    let UpdateMetrics { metric_ids, updates } = request.body;
    ctx.service.library().update_custom_metrics(&ctx.caller, &metric_ids, updates.fields()).await
}

async fn remove_all(ctx: Ctx, request: In<Nothing, Nothing, DeleteMetrics>) -> Result<MetricsDeleted> {
    ctx.service.library().delete_custom_metrics(&ctx.caller, &request.body.custom_metric_ids).await
}

async fn generate(ctx: Ctx, request: In<Nothing, Nothing, DraftMetrics>) -> Result<MetricDrafts> {
    ctx.service.generation().generate_custom_metrics(&ctx.caller, request.body).await
}
