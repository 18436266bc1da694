//! Routes of results: records, what agents add to them, how they end, and what was said and heard in them.

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::answer::{Answer, Audio, Document, Stream, respond};
use crate::api::audio::{self, View};
use crate::api::endpoint::{Ctx, Endpoint, In, Nothing, delete, get, post, tagged};
use crate::api::live;
use crate::error::{Error, Result};
use crate::model::result::{ResultRecord, UpdateResultSpec};
use crate::service::{ConversationsEnded, HungUp, Peaks, ReEvaluation, ResultDeleted, ResultUpdated, Timeline};

#[derive(Deserialize, JsonSchema)]
struct ResultPath {
    simulation_result_id: i64,
}

#[derive(Deserialize, JsonSchema)]
struct IdPath {
    id: i64,
}

/// Which conversations.
#[derive(Deserialize, JsonSchema)]
struct EndConversations {
    /// At least one.
    #[schemars(length(min = 1), extend("x-aliases" = ["simulation_result_ids"]))]
    test_result_ids: Vec<i64>,
}

#[derive(Deserialize, JsonSchema)]
struct TranscriptQuery {
    /// json, text or vtt.
    #[serde(default)]
    format: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct RecordingQuery {
    /// 0 (Digital Human), 1 (agent), both, mix, or caller_clean (the Digital Human before its line).
    #[serde(default)]
    channel: Option<String>,
    /// wav.
    #[serde(default)]
    format: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct PeaksQuery {
    /// How many pairs of least and greatest.
    #[serde(default = "two_thousand")]
    #[schemars(range(min = 100, max = 20_000))]
    points: i64,
}

fn two_thousand() -> i64 {
    2000
}

/// One result.
#[derive(Serialize, JsonSchema)]
struct OneResult {
    /// The result.
    simulation_result: ResultRecord,
    /// `200`.
    status: &'static str,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        get("/v1/retrieve-simulation-result/{simulation_result_id}", read).about("One result"),
        post("/v1/update-simulation-result", update).about("Add events, tool calls, tags, metadata or a transcript"),
        post("/v1/end-conversations", end).of("Organization").about("End running conversations"),
        post("/v1/simulation-result/{id}/hangup", hangup).about("End one conversation"),
        delete("/v1/simulation-result/{id}", remove).about("Delete a result"),
        post("/v1/re-evaluate-simulation-result/{id}", re_evaluate).about("Judge a result again"),
        get("/v1/simulation-result/{id}/timeline", timeline).about("Every event on the sample clock"),
        get("/v1/simulation-result/{id}/transcript", transcript).about("What was said, as JSON, text or WebVTT"),
        get("/v1/simulation-result/{id}/recording", recording).about("What was heard, whole or by channel"),
        get("/v1/simulation-result/{id}/peaks", peaks).about("The recording as a waveform to draw"),
        get("/v1/simulation-result/{id}/events", events).about("Events as they happen"),
    ];
    tagged("Results", "Simulation result", endpoints).collect()
}

async fn read(ctx: Ctx, request: In<ResultPath>) -> Result<OneResult> {
    let simulation_result = ctx.service.result(&ctx.caller, request.path.simulation_result_id).await?;
    Ok(OneResult { simulation_result, status: "200" })
}

async fn update(ctx: Ctx, request: In<Nothing, Nothing, UpdateResultSpec>) -> Result<ResultUpdated> {
    ctx.service.update_result(&ctx.caller, request.body).await
}

async fn end(ctx: Ctx, request: In<Nothing, Nothing, EndConversations>) -> Result<ConversationsEnded> {
    ctx.service.end_conversations(&ctx.caller, &request.body.test_result_ids).await
}

async fn hangup(ctx: Ctx, request: In<IdPath>) -> Result<HungUp> {
    ctx.service.hangup(&ctx.caller, request.path.id).await
}

async fn remove(ctx: Ctx, request: In<IdPath>) -> Result<ResultDeleted> {
    ctx.service.delete_result(&ctx.caller, request.path.id).await
}

async fn re_evaluate(ctx: Ctx, request: In<IdPath>) -> Result<ReEvaluation> {
    ctx.service.re_evaluate(&ctx.caller, request.path.id).await
}

async fn timeline(ctx: Ctx, request: In<IdPath>) -> Result<Timeline> {
    ctx.service.timeline(&ctx.caller, request.path.id).await
}

async fn transcript(ctx: Ctx, request: In<IdPath, TranscriptQuery>) -> Result<Document> {
    let transcript = ctx.service.transcript(&ctx.caller, request.path.id).await?;
    let response = match request.query.format.as_deref() {
        Some("text") => respond(StatusCode::OK, "text/plain; charset=utf-8", transcript.text()),
        Some("vtt") => respond(StatusCode::OK, "text/vtt; charset=utf-8", transcript.vtt()),
        None | Some("json") => transcript.answer(StatusCode::OK)?,
        Some(_) => return Err(Error::Refused("format must be json, text or vtt".to_owned())),
    };
    Ok(response.into())
}

async fn recording(ctx: Ctx, request: In<IdPath, RecordingQuery>) -> Result<Audio> {
    let (service, id) = (&ctx.service, request.path.id);
    let (view, clean) = match request.query.channel.as_deref() {
        None | Some("both") => (Some(View::Whole), false),
        Some("0") => (Some(View::Channel(0)), false),
        Some("1") => (Some(View::Channel(1)), false),
        Some("mix") => (Some(View::Mix), false),
        Some("caller_clean") => (Some(View::Plain), true),
        Some(_) => (None, false),
    };
    let path = match clean {
        true => service.caller_clean_path(&ctx.caller, id).await?,
        false => service.recording_path(&ctx.caller, id).await?,
    };
    let view = view.ok_or_else(|| Error::Refused("channel must be 0, 1, both or mix".to_owned()))?;
    if request.query.format.is_some_and(|format| format != "wav") {
        return Err(Error::Refused("format must be wav, flac or opus".to_owned()));
    }
    audio::send(&path, view, &ctx.headers).await.map(Audio::from)
}

async fn peaks(ctx: Ctx, request: In<IdPath, PeaksQuery>) -> Result<Peaks> {
    ctx.service.peaks(&ctx.caller, request.path.id, request.query.points).await
}

async fn events(ctx: Ctx, request: In<IdPath>) -> Result<Stream> {
    live::stream(ctx, request.path.id).await.map(Stream::from)
}
