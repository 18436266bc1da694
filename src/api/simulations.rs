//! Routes of simulations.

use ringer_base::error::Result;
use ringer_model::simulation::{SimulationRecord, SimulationSummary};
use ringer_model::simulation_body::{NewSimulation, SimulationChange};
use ringer_service::{Message, SimulationAdded, SimulationDeleted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::endpoint::{Ctx, Endpoint, In, Nothing, delete, get, post, put_route, with_tag};

#[derive(Deserialize, JsonSchema)]
struct SimulationPath {
    simulation_id: i64,
}

#[derive(Deserialize, JsonSchema)]
struct AgentPath {
    agent_id: i64,
}

/// Digital Humans to add or remove.
#[derive(Deserialize, JsonSchema)]
struct Links {
    /// Identifiers of Digital Humans.
    digital_human_ids: Vec<i64>,
}

/// Answer with a list of simulations.
#[derive(Serialize, JsonSchema)]
struct Simulations {
    /// Simulations, newest first by creation.
    simulations: Vec<SimulationSummary>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        post("/v1/create-simulation", create).about("Create a simulation"),
        get("/v1/simulation/{simulation_id}", read_one).about("Get a simulation"),
        put_route("/v1/simulation/{simulation_id}", update).about("Update fields of a simulation"),
        delete("/v1/simulation/{simulation_id}", remove).about("Delete a simulation with its runs and results"),
        get("/v1/get-all-simulations", all).of("Organization").about("List simulations, newest first"),
        get("/v1/get-simulations-by-agent/{agent_id}", of_agent).of("Agent").about("List the simulations of an agent"),
        post("/v1/simulation/{simulation_id}/add-digital-humans", link)
            .repeatable()
            .about("Add Digital Humans to a simulation"),
        post("/v1/simulation/{simulation_id}/remove-digital-humans", unlink)
            .repeatable()
            .about("Remove Digital Humans from a simulation"),
    ];
    with_tag("Simulations", "Simulation", endpoints).collect()
}

async fn create(ctx: Ctx, request: In<Nothing, Nothing, NewSimulation>) -> Result<SimulationAdded> {
    ctx.service.library().create_simulation_of(&ctx.caller, request.body).await
}

async fn read_one(ctx: Ctx, request: In<SimulationPath>) -> Result<SimulationRecord> {
    ctx.service.library().simulation(&ctx.caller, request.path.simulation_id).await
}

async fn update(ctx: Ctx, request: In<SimulationPath, Nothing, SimulationChange>) -> Result<SimulationRecord> {
    ctx.service.library().change_simulation(&ctx.caller, request.path.simulation_id, request.body).await
}

async fn remove(ctx: Ctx, request: In<SimulationPath>) -> Result<SimulationDeleted> {
    ctx.service.library().delete_simulation(&ctx.caller, request.path.simulation_id).await
}

async fn all(ctx: Ctx, _: In) -> Result<Simulations> {
    Ok(Simulations { simulations: ctx.service.library().simulations(&ctx.caller).await? })
}

async fn of_agent(ctx: Ctx, request: In<AgentPath>) -> Result<Simulations> {
    Ok(Simulations {
        simulations: ctx.service.library().simulations_by_agent(&ctx.caller, request.path.agent_id).await?,
    })
}

async fn link(ctx: Ctx, request: In<SimulationPath, Nothing, Links>) -> Result<Message> {
    let (id, links) = (request.path.simulation_id, request.body.digital_human_ids);
    ctx.service.library().add_digital_humans(&ctx.caller, id, &links).await
}

async fn unlink(ctx: Ctx, request: In<SimulationPath, Nothing, Links>) -> Result<Message> {
    let (id, links) = (request.path.simulation_id, request.body.digital_human_ids);
    ctx.service.library().remove_digital_humans(&ctx.caller, id, &links).await
}
