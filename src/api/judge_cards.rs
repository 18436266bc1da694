//! Routes of report cards of judges.

use ringer_base::error::Result;
use ringer_model::judge_card::{CardRequest, JudgeCardRecord};
use ringer_service::CardList;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, get, post, with_tag};

#[derive(Deserialize, JsonSchema)]
struct CardPath {
    card_id: String,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        post("/v1/judge-cards", create)
            .about("Judge labelled conversations again and report how far the judge can be trusted"),
        get("/v1/judge-cards", all).packs().about("List report cards of judges, newest first"),
        get("/v1/judge-cards/{card_id}", read_one).packs().about("Get a report card with its conversations"),
    ];
    with_tag("Judges", "Judge card", endpoints).collect()
}

async fn create(ctx: Ctx, request: In<Nothing, Nothing, CardRequest>) -> Result<JudgeCardRecord> {
    ctx.service.evaluations().add_card(&ctx.caller, request.body, true).await
}

async fn all(ctx: Ctx, _: In) -> Result<CardList> {
    ctx.service.evaluations().cards(&ctx.caller).await
}

async fn read_one(ctx: Ctx, request: In<CardPath>) -> Result<JudgeCardRecord> {
    ctx.service.evaluations().card(&ctx.caller, &request.path.card_id).await
}
