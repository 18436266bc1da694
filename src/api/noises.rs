//! Routes of uploaded background noises.

use axum::http::Method;
use ringer_base::error::Result;
use ringer_model::noise::{NoiseName, NoiseRecord};
use ringer_service::{NoiseDeleted, NoiseSource};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, delete, endpoint, get, post, with_tag};

#[derive(Deserialize, JsonSchema)]
struct NoisePath {
    noise_id: Uuid,
}

/// A noise made from a file that exists already. In a form the file itself is needed instead.
#[derive(Deserialize, JsonSchema)]
struct NewNoise {
    /// Name of the noise.
    #[schemars(required)]
    name: Option<String>,
    /// Identifier of a noise, or URL of a file.
    #[schemars(required)]
    storage_path: Option<String>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        post("/v1/custom-background-noises", create).uploads().about("Upload a background noise"),
        get("/v1/custom-background-noises", all).about("List background noises, newest first"),
        endpoint(Method::PATCH, "/v1/custom-background-noises/{noise_id}", rename).about("Rename a background noise"),
        delete("/v1/custom-background-noises/{noise_id}", remove).about("Delete a background noise"),
    ];
    with_tag("Background noises", "Background noise", endpoints).collect()
}

async fn create(ctx: Ctx, request: In<Nothing, Nothing, NewNoise>) -> Result<NoiseRecord> {
    let (name, source) = match ctx.upload {
        Some(file) => (request.body.name.or(file.name), NoiseSource::File(file.bytes.to_vec())),
        None => (request.body.name, NoiseSource::Existing(request.body.storage_path.unwrap_or_default())),
    };
    let name = name.unwrap_or_else(|| "Background noise".into());
    ctx.service.library().create_background_noise(&ctx.caller, name, source).await
}

async fn all(ctx: Ctx, _: In) -> Result<Vec<NoiseRecord>> {
    ctx.service.library().background_noises(&ctx.caller).await
}

async fn rename(ctx: Ctx, request: In<NoisePath, Nothing, NoiseName>) -> Result<NoiseRecord> {
    ctx.service.library().rename_background_noise(&ctx.caller, request.path.noise_id, request.body.name).await
}

async fn remove(ctx: Ctx, request: In<NoisePath>) -> Result<NoiseDeleted> {
    ctx.service.library().delete_background_noise(&ctx.caller, request.path.noise_id).await
}
