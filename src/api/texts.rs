//! Routes of text conversations.

use ringer_base::config::Sms;
use ringer_base::error::Result;
use ringer_model::Object;
use ringer_model::run::Accepted;
use ringer_model::schema::{Field, Kind, Node};
use ringer_model::text::{AgentMessage, MessageTaken, TextTurn, TextTurnRequest};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, post, with_tag};

#[derive(Deserialize, JsonSchema)]
struct AgentPath {
    agent_id: i64,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        post("/v1/send-http-text-message", take)
            .about("Post a message or tool call of the agent in a text conversation"),
        post("/v1/send-text", turn)
            .repeatable()
            .of("Digital human")
            .about("Get the next turn of a Digital Human in a conversation that the client drives"),
        post("/v1/inbound-sms", inbound)
            .repeatable()
            .carrier()
            .of("Organization")
            .about("Post a text message from the carrier, as JSON or a form"),
        post("/v1/agents/{agent_id}/inbound-messages", inbound_of_agent)
            .repeatable()
            .agent_token()
            .of("Agent")
            .about("Post a message of an agent whose platform answers by itself, in the platform's own form"),
    ];
    with_tag("Text", "Simulation result", endpoints).collect()
}

/// Returns the constraint on a text message from the carrier, with the field names of its settings.
pub(super) fn delivered(carrier: &Sms) -> Node {
    let field = |(name, required): (&str, bool)| Field {
        name: carrier.inbound_field(name).to_owned(),
        aliases: Vec::new(),
        required,
        patch: false,
        needs: Vec::new(),
        unless: None,
        unless_valid: false,
        node: Node { kind: Kind::TextId, nullable: !required },
    };
    let fields = [("from", true), ("to", true), ("text", true), ("message_id", false)];
    Node { kind: Kind::Fields(fields.map(field).into(), None), nullable: false }
}

async fn take(ctx: Ctx, request: In<Nothing, Nothing, AgentMessage>) -> Result<MessageTaken> {
    ctx.service.runs().take_message(&ctx.caller, request.body).await
}

async fn inbound_of_agent(ctx: Ctx, request: In<AgentPath, Nothing, Object>) -> Result<Accepted> {
    ctx.service.runs().take_inbound(request.path.agent_id, request.body).await
}

async fn inbound(ctx: Ctx, request: In<Nothing, Nothing, Object>) -> Result<Accepted> {
    ctx.service.runs().take_sms(&request.body).await
}

async fn turn(ctx: Ctx, request: In<Nothing, Nothing, TextTurnRequest>) -> Result<TextTurn> {
    ctx.service.runs().text_turn(&ctx.caller, request.body).await
}
