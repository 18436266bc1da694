//! Routes of Digital Humans.

use ringer_base::error::Result;
use ringer_model::digital_human::{DigitalHumanRecord, DigitalHumanSpec, LinkedDigitalHuman};
use ringer_model::patch::Patch;
use ringer_model::schema::ALIASES;
use ringer_service::{BulkCreated, BulkDeleted, DigitalHumanPage, HumansOfSimulation, PAGE_SIZES};
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::endpoint::{Ctx, Endpoint, In, Nothing, delete, get, post, put_route, with_tag};

#[derive(Deserialize, JsonSchema)]
struct HumanPath {
    digital_human_id: i64,
}

#[derive(Deserialize, JsonSchema)]
struct SimulationPath {
    simulation_id: i64,
}

#[derive(Deserialize, JsonSchema)]
struct TestNamePath {
    test_name: String,
}

/// A Digital Human and the simulations that it becomes part of.
#[derive(Deserialize, JsonSchema)]
struct CreateDigitalHuman {
    /// The Digital Human to create.
    digital_human: DigitalHumanSpec,
    /// Simulations that it becomes part of.
    #[serde(default)]
    simulation_ids: Vec<i64>,
    /// One more simulation that it becomes part of.
    #[serde(default)]
    simulation_id: Option<i64>,
}

/// Several Digital Humans for the same simulations.
#[derive(Deserialize, JsonSchema)]
struct CreateDigitalHumans {
    /// Digital Humans to create, 1 to 100.
    #[schemars(length(min = 1, max = 100))]
    digital_humans: Vec<DigitalHumanSpec>,
    /// Simulations that they become part of.
    #[serde(default)]
    simulation_ids: Vec<i64>,
}

/// The fields to change, by their present names.
#[derive(Deserialize, JsonSchema)]
#[schemars(transform = without_old_names)]
struct UpdateDigitalHuman {
    #[serde(flatten)]
    fields: Patch<DigitalHumanSpec>,
    /// Simulations that it is part of from now on; absent: unchanged.
    #[serde(default)]
    simulation_ids: Option<Vec<i64>>,
    /// True: takes the phone number from the Digital Human that is always on with it.
    #[serde(default)]
    override_conflict: bool,
}

/// Removes the old names of fields, which are read on creation alone, from a schema.
fn without_old_names(schema: &mut Schema) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
        property.shift_remove(ALIASES);
    }
}

#[derive(Deserialize, JsonSchema)]
struct PageQuery {
    /// Number of the page, from 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    page: i64,
    /// Rows a page, 1 to 100; default 20.
    #[serde(default = "twenty")]
    #[schemars(extend("x-rules" = json!({ "minimum": PAGE_SIZES.start(), "maximum": PAGE_SIZES.end() })))]
    page_size: i64,
}

fn first() -> i64 {
    1
}

fn twenty() -> i64 {
    20
}

#[derive(Deserialize, JsonSchema)]
struct IdsQuery {
    /// Identifiers as comma-separated integers.
    digital_human_ids: String,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        post("/v1/create-digital-human", create).about("Create a Digital Human"),
        post("/v1/create-digital-humans", create_many).about("Create several Digital Humans"),
        get("/v1/digital-human/{digital_human_id}", read_one).about("Get a Digital Human"),
        put_route("/v1/update-digital-human/{digital_human_id}", update).about("Update fields of a Digital Human"),
        delete("/v1/digital-human/{digital_human_id}", remove).about("Delete a Digital Human; its results stay"),
        delete("/v1/delete-digital-humans", remove_many).of("Organization").about("Delete several Digital Humans"),
        get("/v1/digital-humans", page).of("Organization").about("List Digital Humans by page, newest first"),
        get("/v1/digital-humans-by-simulation/{simulation_id}", of_simulation)
            .of("Simulation")
            .about("List the Digital Humans of a simulation"),
        get("/v1/digital-human-by-test-name/{test_name}", by_test_name)
            .about("Get the newest Digital Human with a test name"),
    ];
    with_tag("Digital Humans", "Digital human", endpoints).collect()
}

async fn create(ctx: Ctx, request: In<Nothing, Nothing, CreateDigitalHuman>) -> Result<LinkedDigitalHuman> {
    let CreateDigitalHuman { digital_human, mut simulation_ids, simulation_id } = request.body;
    simulation_ids.extend(simulation_id);
    ctx.service.humans().create_digital_human(&ctx.caller, digital_human, &simulation_ids).await
}

async fn create_many(ctx: Ctx, request: In<Nothing, Nothing, CreateDigitalHumans>) -> Result<BulkCreated> {
    let CreateDigitalHumans { digital_humans, simulation_ids } = request.body;
    ctx.service.humans().create_digital_humans(&ctx.caller, digital_humans, &simulation_ids).await
}

async fn read_one(ctx: Ctx, request: In<HumanPath>) -> Result<LinkedDigitalHuman> {
    ctx.service.humans().digital_human(&ctx.caller, request.path.digital_human_id).await
}

async fn update(ctx: Ctx, request: In<HumanPath, Nothing, UpdateDigitalHuman>) -> Result<LinkedDigitalHuman> {
    let UpdateDigitalHuman { fields, simulation_ids, override_conflict } = request.body;
    let (id, fields) = (request.path.digital_human_id, fields.into_given());
    ctx.service
        .humans()
        .update_digital_human(&ctx.caller, id, fields, simulation_ids.as_deref(), override_conflict)
        .await
}

async fn remove(ctx: Ctx, request: In<HumanPath>) -> Result<DigitalHumanRecord> {
    ctx.service.humans().delete_digital_human(&ctx.caller, request.path.digital_human_id).await
}

async fn remove_many(ctx: Ctx, request: In<Nothing, IdsQuery>) -> Result<BulkDeleted> {
    ctx.service.humans().delete_digital_humans(&ctx.caller, &request.query.digital_human_ids).await
}

async fn page(ctx: Ctx, request: In<Nothing, PageQuery>) -> Result<DigitalHumanPage> {
    ctx.service.humans().digital_humans(&ctx.caller, request.query.page, request.query.page_size).await
}

async fn of_simulation(ctx: Ctx, request: In<SimulationPath>) -> Result<HumansOfSimulation> {
    ctx.service.humans().digital_humans_by_simulation(&ctx.caller, request.path.simulation_id).await
}

async fn by_test_name(ctx: Ctx, request: In<TestNamePath>) -> Result<LinkedDigitalHuman> {
    ctx.service.humans().digital_human_by_test_name(&ctx.caller, &request.path.test_name).await
}
