//! Routes of webhooks and their signing keys.

use ringer_base::error::Result;
use ringer_model::patch::Patch;
use ringer_model::webhook::{WebhookRecord, WebhookSpec};
use ringer_service::{DeliveryPage, SigningKey, WebhookAdded, WebhookDeleted, WebhookList, WebhookTested};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, delete, get, post, put_route, with_tag};

#[derive(Deserialize, JsonSchema)]
struct WebhookPath {
    webhook_id: Uuid,
}

/// Webhook whose signing key is asked for.
#[derive(Deserialize, JsonSchema)]
struct WebhookKeyRequest {
    /// Identifier of the webhook.
    webhook_id: Uuid,
}

fn first() -> i64 {
    1
}

fn fifty() -> i64 {
    50
}

#[derive(Deserialize, JsonSchema)]
struct PageQuery {
    /// Number of the page, from 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    page: i64,
    /// Rows a page, 1 to 1000; default 50.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 1000))]
    page_size: i64,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        post("/v1/webhooks", create).admin().about("Create a webhook; its signing key is shown in this answer"),
        get("/v1/webhooks", all).admin().about("List webhooks, newest first"),
        get("/v1/webhooks/{webhook_id}", read_one).admin().about("Get a webhook"),
        put_route("/v1/webhooks/{webhook_id}", update).admin().about("Update fields of a webhook"),
        delete("/v1/webhooks/{webhook_id}", remove).admin().about("Delete a webhook"),
        post("/v1/webhooks/{webhook_id}/test", test).admin().about("Send a test event (ping) to a webhook"),
        get("/v1/webhooks/{webhook_id}/deliveries", deliveries)
            .admin()
            .about("List the delivery attempts of the last 7 days"),
        post("/v1/generate-signing-key", generate_key)
            .admin()
            .about("Replace the signing key of a webhook by a new one"),
        post("/v1/get-signing-key", read_key).admin().about("Get the signing key of a webhook"),
    ];
    with_tag("Webhooks", "Webhook", endpoints).collect()
}

async fn create(ctx: Ctx, request: In<Nothing, Nothing, WebhookSpec>) -> Result<WebhookAdded> {
    ctx.service.watching().create_webhook(&ctx.caller, request.body).await
}

async fn all(ctx: Ctx, _: In) -> Result<WebhookList> {
    ctx.service.watching().webhooks(&ctx.caller).await
}

async fn read_one(ctx: Ctx, request: In<WebhookPath>) -> Result<WebhookRecord> {
    ctx.service.watching().webhook(&ctx.caller, request.path.webhook_id).await
}

async fn update(ctx: Ctx, request: In<WebhookPath, Nothing, Patch<WebhookSpec>>) -> Result<WebhookRecord> {
    ctx.service.watching().update_webhook(&ctx.caller, request.path.webhook_id, request.body.into_given()).await
}

async fn remove(ctx: Ctx, request: In<WebhookPath>) -> Result<WebhookDeleted> {
    ctx.service.watching().delete_webhook(&ctx.caller, request.path.webhook_id).await
}

async fn test(ctx: Ctx, request: In<WebhookPath, Nothing, Option<Nothing>>) -> Result<WebhookTested> {
    ctx.service.watching().test_webhook(&ctx.caller, request.path.webhook_id).await
}

async fn deliveries(ctx: Ctx, request: In<WebhookPath, PageQuery>) -> Result<DeliveryPage> {
    let PageQuery { page, page_size } = request.query;
    ctx.service.watching().webhook_deliveries(&ctx.caller, request.path.webhook_id, page, page_size).await
}

async fn generate_key(ctx: Ctx, request: In<Nothing, Nothing, WebhookKeyRequest>) -> Result<SigningKey> {
    ctx.service.watching().generate_signing_key(&ctx.caller, request.body.webhook_id).await
}

async fn read_key(ctx: Ctx, request: In<Nothing, Nothing, WebhookKeyRequest>) -> Result<SigningKey> {
    ctx.service.watching().get_signing_key(&ctx.caller, request.body.webhook_id).await
}
