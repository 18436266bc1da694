//! Routes of the declarative push and pull.

use ringer_base::error::Result;
use ringer_model::bundle::{Bundle, Pushed, RootType};
use ringer_model::run::{QueueAnswer, RunSettings};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, get, post, with_tag};
use crate::runs::RESULTS;

#[derive(Deserialize, JsonSchema)]
struct RootPath {
    root_type: RootType,
    root_id: String,
}

#[derive(Deserialize, JsonSchema)]
struct CodePath {
    svc_as_code_id: Uuid,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        post("/v1/svc-as-code", push)
            .generates()
            .about("Push a bundle: create, update and delete until the stored set-up equals it"),
        get("/v1/svc-as-code/{root_type}/{root_id}", pull)
            .about("Pull the stored set-up as a bundle that can be pushed"),
        post("/v1/svc-as-code/run/{svc_as_code_id}", run).makes(RESULTS).about("Queue a run of a bundle's simulation"),
    ];
    with_tag("Push and pull", "Simulation", endpoints).collect()
}

async fn push(ctx: Ctx, request: In<Nothing, Nothing, Bundle>) -> Result<Pushed> {
    ctx.service.bundles().push(&ctx.caller, request.body).await
}

async fn pull(ctx: Ctx, request: In<RootPath>) -> Result<Bundle> {
    ctx.service.bundles().pull(&ctx.caller, request.path.root_type, &request.path.root_id).await
}

async fn run(ctx: Ctx, request: In<CodePath, Nothing, RunSettings>) -> Result<QueueAnswer> {
    ctx.service.bundles().run_by_code(&ctx.caller, request.path.svc_as_code_id, request.body).await
}
