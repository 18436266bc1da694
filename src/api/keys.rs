//! Routes of API keys.

use axum::http::StatusCode;
use ringer_base::error::Result;
use ringer_model::api_key::{CreateKeyIn, KeyOut, UserRecord};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, delete, get, post, with_tag};
use crate::response::Empty;

#[derive(Deserialize, JsonSchema)]
struct KeyPath {
    key_id: String,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        post("/v1/api-keys", create).admin().about("Create an API key; its text is shown only in this answer"),
        get("/v1/api-keys", all).admin().about("List API keys, newest first"),
        delete("/v1/api-keys/{key_id}", revoke).admin().status(StatusCode::NO_CONTENT).about("Revoke an API key"),
    ];
    let own = get("/v1/key", own).about("Get the key of this request: its name and scope, not its text");
    let users = get("/v1/users", users).of("Organization").about("List the users, and the keys without one");
    let endpoints = endpoints.into_iter().chain([own, users]).collect();
    with_tag("API keys", "API key", endpoints).collect()
}

async fn create(ctx: Ctx, request: In<Nothing, Nothing, CreateKeyIn>) -> Result<KeyOut> {
    ctx.service.library().create_key(&ctx.caller, request.body).await
}

async fn all(ctx: Ctx, _: In) -> Result<Vec<KeyOut>> {
    ctx.service.library().keys(&ctx.caller).await
}

async fn own(ctx: Ctx, _: In) -> Result<KeyOut> {
    ctx.service.library().own_key(&ctx.caller).await
}

async fn users(ctx: Ctx, _: In) -> Result<Vec<UserRecord>> {
    ctx.service.library().users(&ctx.caller).await
}

async fn revoke(ctx: Ctx, request: In<KeyPath>) -> Result<Empty> {
    ctx.service.library().revoke_key(&ctx.caller, &request.path.key_id).await?;
    Ok(Empty)
}
