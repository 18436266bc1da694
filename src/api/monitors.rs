//! Routes of uptime monitors.

use ringer_base::error::Result;
use ringer_model::monitor::{MonitorRecord, MonitorSpec};
use ringer_model::patch::Patch;
use ringer_service::{MonitorDeleted, MonitorPage};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, delete, get, post, put_route, with_tag};
use crate::paging::PageQuery;

#[derive(Deserialize, JsonSchema)]
struct MonitorPath {
    monitor_id: Uuid,
}

#[derive(Deserialize, JsonSchema)]
struct MonitorQuery {
    /// Agent whose monitors are listed; absent: all.
    #[serde(default)]
    agent_id: Option<i64>,
    #[serde(flatten)]
    page: PageQuery,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        post("/v1/uptime/monitors", create_monitor)
            .of("Agent")
            .about("Create a monitor, which calls an agent at intervals"),
        get("/v1/uptime/monitors", monitors).of("Organization").about("List monitors by page, newest first"),
        get("/v1/uptime/monitors/{monitor_id}", monitor).about("Get a monitor with its newest checks"),
        put_route("/v1/uptime/monitors/{monitor_id}", update_monitor).about("Update fields of a monitor"),
        delete("/v1/uptime/monitors/{monitor_id}", delete_monitor).about("Delete a monitor with its checks"),
    ];
    with_tag("Uptime", "Monitor", endpoints).collect()
}

async fn create_monitor(ctx: Ctx, request: In<Nothing, Nothing, MonitorSpec>) -> Result<MonitorRecord> {
    ctx.service.watching().create_monitor(&ctx.caller, request.body).await
}

async fn monitors(ctx: Ctx, request: In<Nothing, MonitorQuery>) -> Result<MonitorPage> {
    let MonitorQuery { agent_id, page: PageQuery { page, page_size } } = request.query;
    ctx.service.watching().monitors(&ctx.caller, agent_id, page, page_size).await
}

async fn monitor(ctx: Ctx, request: In<MonitorPath>) -> Result<MonitorRecord> {
    ctx.service.watching().monitor(&ctx.caller, request.path.monitor_id).await
}

async fn update_monitor(ctx: Ctx, request: In<MonitorPath, Nothing, Patch<MonitorSpec>>) -> Result<MonitorRecord> {
    ctx.service.watching().update_monitor(&ctx.caller, request.path.monitor_id, &request.body).await
}

async fn delete_monitor(ctx: Ctx, request: In<MonitorPath>) -> Result<MonitorDeleted> {
    ctx.service.watching().delete_monitor(&ctx.caller, request.path.monitor_id).await
}
