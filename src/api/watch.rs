//! Routes of uptime monitors, alerts and phone numbers.

use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::api::endpoint::{Ctx, Endpoint, In, Nothing, delete, get, post, put, tagged};
use crate::error::Result;
use crate::model::alert::{AlertRecord, AlertSpec};
use crate::model::monitor::{MonitorRecord, MonitorSpec};
use crate::model::patch::Patch;
use crate::model::phone_number::{AddNumberSpec, NumberRecord};
use crate::service::{
    AlertDeleted, AlertPage, MonitorDeleted, MonitorPage, NumberAdded, NumberReleased, ViolationPage,
};

#[derive(Deserialize, JsonSchema)]
struct MonitorPath {
    monitor_id: Uuid,
}

#[derive(Deserialize, JsonSchema)]
struct AlertPath {
    alert_id: Uuid,
}

#[derive(Deserialize, JsonSchema)]
struct NumberPath {
    phone_number: String,
}

#[derive(Deserialize, JsonSchema)]
struct PageQuery {
    /// Number of the page, from 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    page: i64,
    /// Rows a page, 1 to 200; default 50.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 200))]
    page_size: i64,
}

#[derive(Deserialize, JsonSchema)]
struct MonitorQuery {
    /// Agent whose monitors are listed; absent: all.
    #[serde(default)]
    agent_id: Option<i64>,
    #[serde(flatten)]
    page: PageQuery,
}

fn first() -> i64 {
    1
}

fn fifty() -> i64 {
    50
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let monitors = vec![
        post("/v1/uptime/monitors", create_monitor)
            .of("Agent")
            .about("Create a monitor, which calls an agent at intervals"),
        get("/v1/uptime/monitors", monitors).of("Organization").about("List monitors by page, newest first"),
        get("/v1/uptime/monitors/{monitor_id}", monitor).about("Get a monitor with its newest checks"),
        put("/v1/uptime/monitors/{monitor_id}", update_monitor).about("Update fields of a monitor"),
        delete("/v1/uptime/monitors/{monitor_id}", delete_monitor).about("Delete a monitor with its checks"),
    ];
    let alerts = vec![
        post("/v1/create-alert", create_alert).about("Create an alert"),
        put("/v1/update-alert/{alert_id}", update_alert).about("Update fields of an alert"),
        delete("/v1/alert/{alert_id}", delete_alert).about("Delete an alert"),
        get("/v1/alerts", alerts).of("Organization").about("List alerts by page, newest first"),
        get("/v1/alerts/{alert_id}/results", alert_results)
            .about("List the violations of an alert's rule, newest first"),
    ];
    let numbers = vec![
        get("/v1/phone-numbers", numbers).of("Organization").about("List the phone numbers of the organization"),
        post("/v1/phone-numbers/add", add_number).about("Register a phone number, or take one from the pool"),
        delete("/v1/phone-numbers/{phone_number}/release", release_number).about("Release a phone number"),
    ];
    tagged("Uptime", "Monitor", monitors)
        .chain(tagged("Alerts", "Alert", alerts))
        .chain(tagged("Phone numbers", "Phone number", numbers))
        .collect()
}

async fn create_monitor(ctx: Ctx, request: In<Nothing, Nothing, MonitorSpec>) -> Result<MonitorRecord> {
    ctx.service.create_monitor(&ctx.caller, request.body).await
}

async fn monitors(ctx: Ctx, request: In<Nothing, MonitorQuery>) -> Result<MonitorPage> {
    let MonitorQuery { agent_id, page: PageQuery { page, page_size } } = request.query;
    ctx.service.monitors(&ctx.caller, agent_id, page, page_size).await
}

async fn monitor(ctx: Ctx, request: In<MonitorPath>) -> Result<MonitorRecord> {
    ctx.service.monitor(&ctx.caller, request.path.monitor_id).await
}

async fn update_monitor(ctx: Ctx, request: In<MonitorPath, Nothing, Patch<MonitorSpec>>) -> Result<MonitorRecord> {
    ctx.service.update_monitor(&ctx.caller, request.path.monitor_id, &request.body).await
}

async fn delete_monitor(ctx: Ctx, request: In<MonitorPath>) -> Result<MonitorDeleted> {
    ctx.service.delete_monitor(&ctx.caller, request.path.monitor_id).await
}

async fn create_alert(ctx: Ctx, request: In<Nothing, Nothing, AlertSpec>) -> Result<AlertRecord> {
    ctx.service.create_alert(&ctx.caller, request.body).await
}

async fn update_alert(ctx: Ctx, request: In<AlertPath, Nothing, Patch<AlertSpec>>) -> Result<AlertRecord> {
    ctx.service.update_alert(&ctx.caller, request.path.alert_id, &request.body).await
}

async fn delete_alert(ctx: Ctx, request: In<AlertPath>) -> Result<AlertDeleted> {
    ctx.service.delete_alert(&ctx.caller, request.path.alert_id).await
}

async fn alerts(ctx: Ctx, request: In<Nothing, PageQuery>) -> Result<AlertPage> {
    ctx.service.alerts(&ctx.caller, request.query.page, request.query.page_size).await
}

async fn alert_results(ctx: Ctx, request: In<AlertPath, PageQuery>) -> Result<ViolationPage> {
    let PageQuery { page, page_size } = request.query;
    ctx.service.alert_results(&ctx.caller, request.path.alert_id, page, page_size).await
}

async fn numbers(ctx: Ctx, _: In) -> Result<Vec<NumberRecord>> {
    ctx.service.phone_numbers(&ctx.caller).await
}

async fn add_number(ctx: Ctx, request: In<Nothing, Nothing, AddNumberSpec>) -> Result<NumberAdded> {
    ctx.service.add_phone_number(&ctx.caller, request.body).await
}

async fn release_number(ctx: Ctx, request: In<NumberPath>) -> Result<NumberReleased> {
    ctx.service.release_phone_number(&ctx.caller, &request.path.phone_number).await
}
