//! Routes of alerts.

use ringer_base::error::Result;
use ringer_model::alert::{AlertRecord, AlertSpec};
use ringer_model::patch::Patch;
use ringer_service::{AlertDeleted, AlertPage, ViolationPage};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, delete, get, post, put_route, with_tag};
use crate::paging::PageQuery;

#[derive(Deserialize, JsonSchema)]
struct AlertPath {
    alert_id: Uuid,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        post("/v1/create-alert", create_alert).about("Create an alert"),
        put_route("/v1/update-alert/{alert_id}", update_alert).about("Update fields of an alert"),
        delete("/v1/alert/{alert_id}", delete_alert).about("Delete an alert"),
        get("/v1/alerts", alerts).of("Organization").about("List alerts by page, newest first"),
        get("/v1/alerts/{alert_id}/results", alert_results)
            .about("List the violations of an alert's rule, newest first"),
    ];
    with_tag("Alerts", "Alert", endpoints).collect()
}

async fn create_alert(ctx: Ctx, request: In<Nothing, Nothing, AlertSpec>) -> Result<AlertRecord> {
    ctx.service.watching().create_alert(&ctx.caller, request.body).await
}

async fn update_alert(ctx: Ctx, request: In<AlertPath, Nothing, Patch<AlertSpec>>) -> Result<AlertRecord> {
    ctx.service.watching().update_alert(&ctx.caller, request.path.alert_id, &request.body).await
}

async fn delete_alert(ctx: Ctx, request: In<AlertPath>) -> Result<AlertDeleted> {
    ctx.service.watching().delete_alert(&ctx.caller, request.path.alert_id).await
}

async fn alerts(ctx: Ctx, request: In<Nothing, PageQuery>) -> Result<AlertPage> {
    ctx.service.watching().alerts(&ctx.caller, request.query.page, request.query.page_size).await
}

async fn alert_results(ctx: Ctx, request: In<AlertPath, PageQuery>) -> Result<ViolationPage> {
    let PageQuery { page, page_size } = request.query;
    ctx.service.watching().alert_results(&ctx.caller, request.path.alert_id, page, page_size).await
}
