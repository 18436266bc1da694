//! Routes of schedules.

use ringer_base::error::Result;
use ringer_model::schedule::{CreateCronJobRequest, ScheduleAdded, ScheduleRecord, UpdateCronJobRequest};
use ringer_service::{ScheduleDeleted, ScheduleList};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, delete, get, post, put_route, with_tag};

#[derive(Deserialize, JsonSchema)]
struct SchedulePath {
    schedule_id: String,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        post("/v1/create-schedule", create).about("Create a schedule that runs a simulation at fixed times"),
        put_route("/v1/update-schedule/{schedule_id}", update)
            .about("Update the times of a schedule, pause it or resume it"),
        delete("/v1/delete-schedule/{schedule_id}", remove).about("Delete a schedule"),
        get("/v1/schedule/{schedule_id}", read_one).about("Get a schedule"),
        get("/v1/schedules", all).about("List schedules, newest first"),
    ];
    with_tag("Schedules", "Schedule", endpoints).collect()
}

async fn create(ctx: Ctx, request: In<Nothing, Nothing, CreateCronJobRequest>) -> Result<ScheduleAdded> {
    ctx.service.runs().create_schedule(&ctx.caller, request.body).await
}

async fn update(ctx: Ctx, request: In<SchedulePath, Nothing, UpdateCronJobRequest>) -> Result<ScheduleRecord> {
    ctx.service.runs().update_schedule(&ctx.caller, &request.path.schedule_id, request.body).await
}

async fn remove(ctx: Ctx, request: In<SchedulePath>) -> Result<ScheduleDeleted> {
    ctx.service.runs().delete_schedule(&ctx.caller, &request.path.schedule_id).await
}

async fn read_one(ctx: Ctx, request: In<SchedulePath>) -> Result<ScheduleRecord> {
    ctx.service.runs().schedule(&ctx.caller, &request.path.schedule_id).await
}

async fn all(ctx: Ctx, _: In) -> Result<ScheduleList> {
    ctx.service.runs().schedules(&ctx.caller).await
}
