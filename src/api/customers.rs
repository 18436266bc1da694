//! Routes of customer personas, customer traits and communities.

use ringer_base::error::Result;
use ringer_model::customer::{
    CommunityRecord, CommunitySpec, PersonaChange, PersonaDoc, PersonaRecord, TraitDoc, TraitRecord,
};
use ringer_model::patch::Patch;
use ringer_service::{CommunityList, TraitDeleted, TraitList};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, delete, get, post, put_route, with_tag};

#[derive(Deserialize, JsonSchema)]
struct PersonaPath {
    persona_id: Uuid,
}

#[derive(Deserialize, JsonSchema)]
struct AgentPath {
    agent_id: i64,
}

#[derive(Deserialize, JsonSchema)]
struct TraitPath {
    trait_id: Uuid,
}

#[derive(Deserialize, JsonSchema)]
struct CommunityPath {
    id: Uuid,
}

#[derive(Deserialize, JsonSchema)]
struct AgentQuery {
    /// Agent whose traits are listed; absent: all.
    #[serde(default)]
    agent_id: Option<i64>,
}

#[derive(Deserialize, JsonSchema)]
struct MemberQuery {
    /// Digital Human whose communities are listed; absent: all.
    #[serde(default)]
    digital_human_id: Option<i64>,
}

/// Change of a trait, and of the Digital Humans that have it.
#[derive(Deserialize, JsonSchema)]
struct UpdateTrait {
    #[serde(flatten)]
    fields: Patch<TraitDoc>,
    /// True: Digital Humans of the agent that have the trait are changed as well.
    #[serde(default)]
    sync_existing: bool,
}

/// Digital Humans to add or remove.
#[derive(Deserialize, JsonSchema)]
struct Members {
    /// Identifiers of Digital Humans.
    digital_human_ids: Vec<i64>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let personas = vec![
        post("/v1/create-customer-persona", create_persona).of("Agent").about("Create a customer persona"),
        get("/v1/customer-persona/{persona_id}", persona).about("Get a customer persona"),
        get("/v1/customer-personas-by-agent/{agent_id}", personas_of)
            .of("Agent")
            .about("List the personas of an agent"),
        put_route("/v1/update-customer-persona/{persona_id}", update_persona).about("Update fields of a persona"),
        delete("/v1/customer-persona/{persona_id}", remove_persona).about("Delete a customer persona"),
    ];
    let traits = vec![
        post("/v1/create-customer-trait", create_trait).of("Agent").about("Create a customer trait"),
        get("/v1/customer-trait/{trait_id}", one_trait).about("Get a customer trait"),
        put_route("/v1/update-customer-trait/{trait_id}", update_trait).about("Update fields of a trait"),
        delete("/v1/customer-trait/{trait_id}", remove_trait).about("Delete a customer trait"),
        get("/v1/customer-traits", traits).of("Agent").about("List customer traits, of all agents or of one"),
    ];
    let communities = vec![
        post("/v1/create-community", create_community).about("Create a community of Digital Humans"),
        get("/v1/communities", communities)
            .of("Digital human")
            .about("List communities, all or those of a Digital Human"),
        get("/v1/community/{id}", community).about("Get a community"),
        put_route("/v1/update-community/{id}", update_community).about("Update fields of a community"),
        put_route("/v1/add-to-community/{id}", add).about("Add Digital Humans to a community"),
        put_route("/v1/remove-from-community/{id}", take_out).about("Remove Digital Humans from a community"),
        delete("/v1/community/{id}", remove_community).about("Delete a community; its members stay"),
    ];
    with_tag("Customers", "Customer persona", personas)
        .chain(with_tag("Customers", "Customer trait", traits))
        .chain(with_tag("Communities", "Community", communities))
        .collect()
}

async fn create_persona(ctx: Ctx, request: In<Nothing, Nothing, PersonaDoc>) -> Result<PersonaRecord> {
    ctx.service.library().create_customer_persona(&ctx.caller, request.body).await
}

async fn persona(ctx: Ctx, request: In<PersonaPath>) -> Result<PersonaRecord> {
    ctx.service.library().customer_persona(&ctx.caller, request.path.persona_id).await
}

async fn personas_of(ctx: Ctx, request: In<AgentPath>) -> Result<Vec<PersonaRecord>> {
    ctx.service.library().customer_personas_by_agent(&ctx.caller, request.path.agent_id).await
}

async fn update_persona(ctx: Ctx, request: In<PersonaPath, Nothing, Patch<PersonaChange>>) -> Result<PersonaRecord> {
    ctx.service.library().update_customer_persona(&ctx.caller, request.path.persona_id, request.body.into_given()).await
}

async fn remove_persona(ctx: Ctx, request: In<PersonaPath>) -> Result<PersonaRecord> {
    ctx.service.library().delete_customer_persona(&ctx.caller, request.path.persona_id).await
}

async fn create_trait(ctx: Ctx, request: In<Nothing, Nothing, TraitDoc>) -> Result<TraitRecord> {
    ctx.service.library().create_customer_trait(&ctx.caller, request.body).await
}

async fn one_trait(ctx: Ctx, request: In<TraitPath>) -> Result<TraitRecord> {
    ctx.service.library().customer_trait(&ctx.caller, request.path.trait_id).await
}

async fn update_trait(ctx: Ctx, request: In<TraitPath, Nothing, UpdateTrait>) -> Result<TraitRecord> {
    let UpdateTrait { fields, sync_existing } = request.body;
    let (id, fields) = (request.path.trait_id, fields.into_given());
    ctx.service.library().update_customer_trait(&ctx.caller, id, fields, sync_existing).await
}

async fn remove_trait(ctx: Ctx, request: In<TraitPath>) -> Result<TraitDeleted> {
    ctx.service.library().delete_customer_trait(&ctx.caller, request.path.trait_id).await
}

async fn traits(ctx: Ctx, request: In<Nothing, AgentQuery>) -> Result<TraitList> {
    ctx.service.library().customer_traits(&ctx.caller, request.query.agent_id).await
}

async fn create_community(ctx: Ctx, request: In<Nothing, Nothing, CommunitySpec>) -> Result<CommunityRecord> {
    ctx.service.library().create_community(&ctx.caller, request.body).await
}

async fn community(ctx: Ctx, request: In<CommunityPath>) -> Result<CommunityRecord> {
    ctx.service.library().community(&ctx.caller, request.path.id).await
}

async fn communities(ctx: Ctx, request: In<Nothing, MemberQuery>) -> Result<CommunityList> {
    ctx.service.library().communities(&ctx.caller, request.query.digital_human_id).await
}

async fn update_community(
    ctx: Ctx,
    request: In<CommunityPath, Nothing, Patch<CommunitySpec>>,
) -> Result<CommunityRecord> {
    ctx.service.library().update_community(&ctx.caller, request.path.id, request.body.into_given()).await
}

async fn remove_community(ctx: Ctx, request: In<CommunityPath>) -> Result<CommunityRecord> {
    ctx.service.library().delete_community(&ctx.caller, request.path.id).await
}

async fn add(ctx: Ctx, request: In<CommunityPath, Nothing, Members>) -> Result<CommunityRecord> {
    ctx.service.library().add_to_community(&ctx.caller, request.path.id, request.body.digital_human_ids).await
}

async fn take_out(ctx: Ctx, request: In<CommunityPath, Nothing, Members>) -> Result<CommunityRecord> {
    ctx.service.library().remove_from_community(&ctx.caller, request.path.id, request.body.digital_human_ids).await
}
