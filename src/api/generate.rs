//! Routes that generate: Digital Humans, and drafts that are not stored.

use ringer_base::error::Result;
use ringer_model::generate::{GenerateSpec, Generated};
use ringer_model::test_scenario::{
    GraphAsked, MoveAsked, PersonasAsked, PersonasMade, RegenAsked, ScenariosAsked, ScenariosMade, ValuesAsked,
};
use ringer_service::{GraphMade, ValuesMade};

use crate::endpoint::{Ctx, Endpoint, In, Nothing, post, with_tag};

type Body<B> = In<Nothing, Nothing, B>;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let graph = |path| post(path, graph).generates().repeatable().of("Scenario").about("Draft the graph of a scenario");
    let endpoints = vec![
        post("/v1/generate-digital-humans", humans)
            .generates()
            .of("Agent")
            .about("Generate Digital Humans for an agent"),
        post("/v1/generate-test-scenarios", scenarios).generates().repeatable().about("Draft test scenarios"),
        post("/v1/move-regen-test-scenarios", move_scenario)
            .generates()
            .repeatable()
            .about("Change the goal of test scenarios"),
        post("/v1/regen-test-scenarios", regen).generates().repeatable().about("Rewrite test scenarios"),
        post("/v1/generate-customer-personas", personas).generates().of("Agent").about("Draft customer personas"),
        post("/v1/generate-trait-values", values).generates().about("Generate values of customer traits"),
        graph("/v1/scenario/generate-from-prompt"),
        graph("/v1/workflow/generate-from-prompt"),
    ];
    with_tag("Generation", "Organization", endpoints).collect()
}

async fn humans(ctx: Ctx, request: Body<GenerateSpec>) -> Result<Generated> {
    ctx.service.generation().generate_digital_humans(&ctx.caller, request.body).await
}

async fn scenarios(ctx: Ctx, request: Body<ScenariosAsked>) -> Result<ScenariosMade> {
    ctx.service.generation().generate_test_scenarios(&ctx.caller, request.body).await
}

async fn move_scenario(ctx: Ctx, request: Body<MoveAsked>) -> Result<ScenariosMade> {
    ctx.service.generation().move_regen_test_scenarios(&ctx.caller, request.body).await
}

async fn regen(ctx: Ctx, request: Body<RegenAsked>) -> Result<ScenariosMade> {
    ctx.service.generation().regen_test_scenarios(&ctx.caller, request.body).await
}

async fn personas(ctx: Ctx, request: Body<PersonasAsked>) -> Result<PersonasMade> {
    ctx.service.generation().generate_customer_personas(&ctx.caller, request.body).await
}

async fn values(ctx: Ctx, request: Body<ValuesAsked>) -> Result<ValuesMade> {
    ctx.service.generation().generate_trait_values(request.body).await
}

async fn graph(ctx: Ctx, request: Body<GraphAsked>) -> Result<GraphMade> {
    ctx.service.generation().generate_scenario(request.body).await
}
