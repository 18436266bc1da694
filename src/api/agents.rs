//! Routes of agents, their folders and signing keys, and of the platforms' credentials.

use axum::http::Method;
use ringer_base::error::Result;
use ringer_model::Object;
use ringer_model::agent::{AgentRecord, AgentSpec};
use ringer_model::folder::{FolderRecord, FolderSpec, MoveAgent};
use ringer_model::id::IdString;
use ringer_model::integration::IntegrationSpec;
use ringer_model::patch::Patch;
use ringer_service::{AgentAdded, AgentMoved, AgentUpdated, FolderDeleted, SigningKey};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, delete, endpoint, get, post, put_route, with_tag};

#[derive(Deserialize, JsonSchema)]
struct AgentPath {
    agent_id: i64,
}

#[derive(Deserialize, JsonSchema)]
struct ExternalPath {
    external_id: String,
}

#[derive(Deserialize, JsonSchema)]
struct FolderPath {
    folder_id: Uuid,
}

/// An id that must be given and may be null.
#[derive(Deserialize)]
#[serde(transparent)]
struct NullableId(Option<IdString>);

impl JsonSchema for NullableId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NullableId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "null"], "x-id": true })
    }
}

/// The order of the fields in an update. Those that are not named come last, in the order of a new agent's.
const UPDATED: &str = "name system_prompt goals svc_as_code_id external_agent_id type mode connection_type provider phone_number \
    email_address email_reply_addresses follow_up_sms_sender_numbers websocket_url websocket_username websocket_password websocket_dialect websocket_parameters \
    sip_uri sip_username sip_password custom_sip_headers dynamic_sip_webhook_url outbound_trigger_webhook_url \
    outbound_trigger_payload_template enable_outbound_call_auto_start simulations_disabled redact_pii http_webhook \
    http_webhook_sync_reply voice_provider provider_id keyterms labels folder workflow red_team_profile \
    simulation_notifications P1_agent_name P1_customer_tool_topic P1_token_webhook_url P1_token_webhook_auth P1_metadata \
    P2_agent_configuration P2_room_properties P9_call_settings P10_agent_parameters";

fn as_updated(schema: &mut Schema) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let mut rest = std::mem::take(properties);
        properties.extend(UPDATED.split(' ').filter_map(|name| rest.shift_remove_entry(name)));
        properties.extend(rest);
    }
}

/// The fields to change, and which agent's.
#[derive(Deserialize, JsonSchema)]
#[schemars(transform = as_updated)]
struct UpdateAgent {
    #[serde(flatten)]
    fields: Patch<AgentSpec>,
    /// Null: the agent is found by `external_agent_id`.
    agent_id: NullableId,
}

/// The fields to change, and the external id by which the agent is found.
///
/// The id is declared last, since it stands for the field of its name among the others.
#[derive(Deserialize, JsonSchema)]
#[schemars(transform = as_updated)]
struct UpdateAgentByExternalId {
    #[serde(flatten)]
    fields: Patch<AgentSpec>,
    /// The customer's own identifier.
    external_agent_id: String,
}

/// Agent whose signing key is asked for; one of the two is needed.
#[derive(Deserialize, JsonSchema)]
struct AgentKeyRequest {
    /// Identifier of the agent.
    #[serde(default)]
    agent_id: Option<IdString>,
    /// The customer's own identifier.
    #[serde(default)]
    external_agent_id: Option<String>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let agents = vec![
        post("/v1/add-agent", add).about("Create an agent"),
        post("/v1/update-agent", update).about("Update fields of an agent"),
        put_route("/v1/update-agent-by-external-id", update_by_external_id)
            .about("Update an agent found by its external id"),
        get("/v1/agents/{agent_id}", read_one).about("Get an agent"),
        get("/v1/agent-by-external-id/{external_id}", read_by_external_id).about("Get an agent by its external id"),
        get("/v1/all-agents", all).of("Organization").about("List agents, newest first"),
        delete("/v1/agent/{agent_id}", remove).about("Delete an agent with its simulations, runs and results"),
        post("/v1/generate-http-webhook-key", generate_key).about("Replace the signing key of an agent by a new one"),
        post("/v1/get-http-webhook-key", read_key).repeatable().about("Get the signing key of an agent"),
    ];
    let folders = vec![
        post("/v1/create-folder", create_folder).about("Create a folder"),
        get("/v1/all-folders", folders).of("Organization").about("List folders, newest first"),
        get("/v1/folder/{folder_id}", folder).about("Get a folder"),
        put_route("/v1/update-folder/{folder_id}", update_folder).about("Rename a folder"),
        delete("/v1/folder/{folder_id}", remove_folder).about("Delete a folder; its agents stay"),
        put_route("/v1/folders/move-agent", move_agent).about("Move an agent into a folder, or out of its folder"),
        get("/v1/get-agents-by-folder/{folder_id}", agents_of_folder).about("List the agents of a folder"),
    ];
    let integrations = vec![
        get("/v1/integrations", integrations)
            .admin()
            .about("List the platform credentials that are set, without their values"),
        endpoint(Method::PATCH, "/v1/integrations", update_integrations)
            .admin()
            .about("Set or clear platform credentials"),
    ];
    with_tag("Agents", "Agent", agents)
        .chain(with_tag("Folders", "Folder", folders))
        .chain(with_tag("Integrations", "Organization", integrations))
        .collect()
}

async fn add(ctx: Ctx, request: In<Nothing, Nothing, AgentSpec>) -> Result<AgentAdded> {
    ctx.service.library().add_agent(&ctx.caller, request.body).await
}

async fn update(ctx: Ctx, request: In<Nothing, Nothing, UpdateAgent>) -> Result<AgentUpdated> {
    let UpdateAgent { fields, agent_id } = request.body;
    ctx.service.library().update_agent(&ctx.caller, agent_id.0.as_ref(), fields.into_given()).await
}

async fn update_by_external_id(
    ctx: Ctx,
    request: In<Nothing, Nothing, UpdateAgentByExternalId>,
) -> Result<AgentUpdated> {
    let UpdateAgentByExternalId { fields, external_agent_id } = request.body;
    ctx.service.library().update_agent_by_external_id(&ctx.caller, &external_agent_id, fields.into_given()).await
}

async fn read_one(ctx: Ctx, request: In<AgentPath>) -> Result<AgentRecord> {
    ctx.service.library().agent(&ctx.caller, request.path.agent_id).await
}

async fn read_by_external_id(ctx: Ctx, request: In<ExternalPath>) -> Result<AgentRecord> {
    ctx.service.library().agent_by_external_id(&ctx.caller, &request.path.external_id).await
}

async fn all(ctx: Ctx, _: In) -> Result<Vec<AgentRecord>> {
    ctx.service.library().all_agents(&ctx.caller).await
}

async fn remove(ctx: Ctx, request: In<AgentPath>) -> Result<AgentAdded> {
    ctx.service.library().delete_agent(&ctx.caller, request.path.agent_id).await
}

async fn generate_key(ctx: Ctx, request: In<Nothing, Nothing, AgentKeyRequest>) -> Result<SigningKey> {
    let AgentKeyRequest { agent_id, external_agent_id } = request.body;
    ctx.service.library().generate_http_webhook_key(&ctx.caller, agent_id.as_ref(), external_agent_id.as_deref()).await
}

async fn read_key(ctx: Ctx, request: In<Nothing, Nothing, AgentKeyRequest>) -> Result<SigningKey> {
    let AgentKeyRequest { agent_id, external_agent_id } = request.body;
    ctx.service.library().get_http_webhook_key(&ctx.caller, agent_id.as_ref(), external_agent_id.as_deref()).await
}

async fn create_folder(ctx: Ctx, request: In<Nothing, Nothing, FolderSpec>) -> Result<FolderRecord> {
    ctx.service.library().create_folder(&ctx.caller, request.body).await
}

async fn folders(ctx: Ctx, _: In) -> Result<Vec<FolderRecord>> {
    ctx.service.library().all_folders(&ctx.caller).await
}

async fn folder(ctx: Ctx, request: In<FolderPath>) -> Result<FolderRecord> {
    ctx.service.library().folder(&ctx.caller, request.path.folder_id).await
}

async fn update_folder(ctx: Ctx, request: In<FolderPath, Nothing, FolderSpec>) -> Result<FolderRecord> {
    ctx.service.library().update_folder(&ctx.caller, request.path.folder_id, request.body).await
}

async fn remove_folder(ctx: Ctx, request: In<FolderPath>) -> Result<FolderDeleted> {
    ctx.service.library().delete_folder(&ctx.caller, request.path.folder_id).await
}

async fn move_agent(ctx: Ctx, request: In<Nothing, Nothing, MoveAgent>) -> Result<AgentMoved> {
    ctx.service.library().move_agent(&ctx.caller, request.body).await
}

async fn agents_of_folder(ctx: Ctx, request: In<FolderPath>) -> Result<Vec<AgentRecord>> {
    ctx.service.library().agents_by_folder(&ctx.caller, request.path.folder_id).await
}

async fn integrations(ctx: Ctx, _: In) -> Result<Object> {
    ctx.service.library().integrations(&ctx.caller).await
}

async fn update_integrations(ctx: Ctx, request: In<Nothing, Nothing, Patch<IntegrationSpec>>) -> Result<Object> {
    ctx.service.library().update_integrations(&ctx.caller, request.body.into_given()).await
}
