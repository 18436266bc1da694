//! Routes that test the line of an agent, stored or not. A call is hung up at its first sound, and nothing is kept.

use ringer_base::error::{Error, Result};
use ringer_model::agent::{AgentDoc, AgentSpec};
use ringer_service::jobs::LineTest;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, post, with_tag};

#[derive(Deserialize, JsonSchema)]
struct AgentPath {
    agent_id: i64,
}

/// Agent that need not be stored.
#[derive(Deserialize, JsonSchema)]
struct AgentToCheck {
    /// Fields of the agent, as for `POST /v1/add-agent`.
    agent: AgentSpec,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tests = vec![
        post("/v1/agents/{agent_id}/test-connection", test_stored)
            .about("Test the line of an agent: a call up to the first sound, of which nothing is kept"),
        post("/v1/agents/check", check).about("Test the line of an agent that need not be stored"),
    ];
    with_tag("Agents", "Agent", tests).collect()
}

async fn test_stored(ctx: Ctx, request: In<AgentPath, Nothing, Option<Nothing>>) -> Result<LineTest> {
    let agent = ctx.service.library().stored_agent(&ctx.caller, request.path.agent_id).await?;
    test(ctx, agent).await
}

async fn check(ctx: Ctx, request: In<Nothing, Nothing, AgentToCheck>) -> Result<LineTest> {
    let agent = ctx.service.library().agent_to_be(request.body.agent).await?;
    test(ctx, agent).await
}

async fn test(ctx: Ctx, agent: AgentDoc) -> Result<LineTest> {
    let none = || Error::Unavailable("No calls are made by this process".into());
    ctx.line_tests.ok_or_else(none)?.test(&ctx.caller, agent).await
}
