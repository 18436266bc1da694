//! Routes of call logs: production calls that are evaluated.

use ringer_base::error::Result;
use ringer_model::call_log::{CallLogRecord, CallRequest, UpdateLogSpec};
use ringer_model::patch::Patch;
use ringer_service::{CallLogPage, CallLogQuery, CallQueued, LogDeleted, LogUpdated, LogsDeleted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::endpoint::{Ctx, Endpoint, In, Nothing, delete, get, post, put_route, with_tag};

#[derive(Deserialize, JsonSchema)]
struct AgentPath {
    agent_id: String,
}

#[derive(Deserialize, JsonSchema)]
struct CallPath {
    call_id: String,
}

#[derive(Deserialize, JsonSchema)]
struct DeleteQuery {
    /// True: only the recording is deleted, the call log stays.
    #[serde(default)]
    recording_only: bool,
}

/// Call logs to delete.
#[derive(Deserialize, JsonSchema)]
struct CallIds {
    /// Identifiers of call logs; unknown ones are skipped.
    call_ids: Vec<String>,
}

/// Answer with one call log.
#[derive(Serialize, JsonSchema)]
struct OneCallLog {
    /// The call log itself.
    call_log: CallLogRecord,
    /// Always `200`; kept for compatibility.
    status: &'static str,
}

/// Answer to a request for a new evaluation.
#[derive(Serialize, JsonSchema)]
struct ReEvaluated {
    /// Always `success`; kept for compatibility.
    status: String,
    /// Identifier of the call log.
    call_id: String,
    /// Sentence for the reader.
    message: String,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        post("/v1/evaluate", evaluate).of("Agent").generates().with_audio().about("Evaluate a production call"),
        post("/v1/evaluate-call", evaluate).of("Agent").generates().with_audio().about("Evaluate a production call"),
        get("/v1/retrieve-call-logs/{agent_id}", page).of("Agent").about("List the call logs of an agent by page"),
        get("/v1/retrieve-call-log/{call_id}", read_one).about("Get a call log"),
        put_route("/v1/update-log/{call_id}", update).about("Add tool calls, events or metadata to a call log"),
        post("/v1/re-evaluate/{call_id}", re_evaluate).generates().about("Evaluate a call again"),
        delete("/v1/call-log/{call_id}", remove).about("Delete a call log, or only its recording"),
        delete("/v1/call-logs", remove_many).about("Delete several call logs"),
    ];
    with_tag("Call logs", "Call log", endpoints).collect()
}

async fn evaluate(ctx: Ctx, request: In<Nothing, Nothing, CallRequest>) -> Result<CallQueued> {
    ctx.service.evaluations().evaluate_call(&ctx.caller, request.body).await
}

async fn page(ctx: Ctx, request: In<AgentPath, CallLogQuery>) -> Result<CallLogPage> {
    ctx.service.evaluations().call_logs(&ctx.caller, &request.path.agent_id, &request.query).await
}

async fn read_one(ctx: Ctx, request: In<CallPath>) -> Result<OneCallLog> {
    let call_log = ctx.service.evaluations().call_log(&ctx.caller, &request.path.call_id).await?;
    Ok(OneCallLog { call_log, status: "200" })
}

async fn update(ctx: Ctx, request: In<CallPath, Nothing, Patch<UpdateLogSpec>>) -> Result<LogUpdated> {
    ctx.service.evaluations().update_log(&ctx.caller, &request.path.call_id, &request.body).await
}

async fn re_evaluate(ctx: Ctx, request: In<CallPath>) -> Result<ReEvaluated> {
    let CallQueued { status, call_id, message, .. } =
        ctx.service.evaluations().re_evaluate_log(&ctx.caller, &request.path.call_id).await?;
    Ok(ReEvaluated { status, call_id, message })
}

async fn remove(ctx: Ctx, request: In<CallPath, DeleteQuery>) -> Result<LogDeleted> {
    ctx.service.evaluations().delete_log(&ctx.caller, &request.path.call_id, request.query.recording_only).await
}

async fn remove_many(ctx: Ctx, request: In<Nothing, Nothing, CallIds>) -> Result<LogsDeleted> {
    ctx.service.evaluations().delete_logs(&ctx.caller, &request.body.call_ids).await
}
