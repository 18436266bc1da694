//! Routes of phone numbers.

use ringer_base::error::Result;
use ringer_model::phone_number::{AddNumberSpec, NumberRecord};
use ringer_service::{NumberAdded, NumberReleased};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, delete, get, post, with_tag};

#[derive(Deserialize, JsonSchema)]
struct NumberPath {
    phone_number: String,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        get("/v1/phone-numbers", numbers).of("Organization").about("List the phone numbers of the organization"),
        post("/v1/phone-numbers/add", add_number).about("Register a phone number, or take one from the pool"),
        delete("/v1/phone-numbers/{phone_number}/release", release_number).about("Release a phone number"),
    ];
    with_tag("Phone numbers", "Phone number", endpoints).collect()
}

async fn numbers(ctx: Ctx, _: In) -> Result<Vec<NumberRecord>> {
    ctx.service.library().phone_numbers(&ctx.caller).await
}

async fn add_number(ctx: Ctx, request: In<Nothing, Nothing, AddNumberSpec>) -> Result<NumberAdded> {
    ctx.service.library().add_phone_number(&ctx.caller, request.body).await
}

async fn release_number(ctx: Ctx, request: In<NumberPath>) -> Result<NumberReleased> {
    ctx.service.library().release_phone_number(&ctx.caller, &request.path.phone_number).await
}
