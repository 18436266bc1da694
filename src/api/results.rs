//! Routes of results: records, additions by agents' owners, ends of conversations, transcripts, timelines and
//! recordings.

use axum::http::{HeaderValue, StatusCode};
use ringer_base::error::{Error, Result};
use ringer_model::format::{AudioFormat, Channel, ScriptFormat, StepFormat};
use ringer_model::result::{ResultRecord, UpdateResultSpec};
use ringer_model::schema::one_of;
use ringer_service::{
    AccuracyTable, ConversationsEnded, EvidenceKeyOut, EvidenceKeys, HungUp, Packing, ReEvaluation, ResultDeleted,
    ResultUpdated, Timeline, Track, Zoom,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::audio::{Stretch, View};
use crate::endpoint::{Ctx, Endpoint, In, Nothing, delete, get, post, with_tag};
use crate::page_file::small;
use crate::response::{
    Answer, Archive, Audio, FLAC, OCTETS, OGG, Outline, Script, Stream, TAR, TEXT, VTT, WAV, respond,
};
use crate::{audio, live};

#[derive(Deserialize, JsonSchema)]
struct ResultPath {
    simulation_result_id: i64,
}

#[derive(Deserialize, JsonSchema)]
struct IdPath {
    id: i64,
}

/// Running conversations to end.
#[derive(Deserialize, JsonSchema)]
struct EndConversations {
    /// Identifiers of results, at least one.
    #[schemars(length(min = 1), extend("x-aliases" = ["simulation_result_ids"]))]
    test_result_ids: Vec<i64>,
}

#[derive(Deserialize, JsonSchema)]
struct TimelineQuery {
    /// Names of the events to list, separated by commas; absent: all.
    #[serde(default)]
    events: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct TranscriptQuery {
    /// Format of the transcript: json, text, vtt, rttm (stretches of speech) or textgrid (Praat); default json.
    #[serde(default)]
    #[schemars(extend("x-rules" = one_of(ScriptFormat::ALL.iter().map(|one| one.as_str()))))]
    format: Option<String>,
    /// False: the times of single words are left out.
    #[serde(default = "yes")]
    words: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize, JsonSchema)]
struct RecordingQuery {
    /// Channel: 0 (Digital Human), 1 (agent), both, mix, or caller_clean (the Digital Human before impairment); default
    /// both.
    #[serde(default)]
    #[schemars(extend("x-rules" = one_of(Channel::ALL.iter().map(|one| one.as_str()))))]
    channel: Option<String>,
    /// Format of the audio: wav, flac or opus; default wav.
    #[serde(default)]
    #[schemars(extend("x-rules" = one_of(AudioFormat::ALL.iter().map(|one| one.as_str()))))]
    format: Option<String>,
    /// First millisecond of a stretch that is sent as a WAV file of its own; default 0.
    #[serde(default)]
    #[schemars(range(min = 0))]
    from_ms: Option<i64>,
    /// Millisecond before which the stretch ends; default the end of the recording.
    #[serde(default)]
    #[schemars(range(min = 0))]
    to_ms: Option<i64>,
}

#[derive(Deserialize, JsonSchema)]
struct PeaksQuery {
    /// Number of pairs of minimum and maximum, 100 to 20000; default 2000. Ignored with `zoom`.
    #[serde(default = "two_thousand")]
    #[schemars(range(min = 100, max = 20_000))]
    points: i64,
    /// Length of a step: 0 is 1 s, 1 is 100 ms, 2 is 10 ms.
    #[serde(default)]
    #[schemars(range(min = 0, max = 2))]
    zoom: Option<i64>,
    /// First millisecond of the stretch; needs `zoom`.
    #[serde(default)]
    #[schemars(range(min = 0))]
    from_ms: Option<i64>,
    /// Last millisecond of the stretch; needs `zoom`.
    #[serde(default)]
    #[schemars(range(min = 0))]
    to_ms: Option<i64>,
    /// Format of the steps of a zoom: json, or i8.
    ///
    /// In i8 a step is four signed bytes: minimum and maximum of the Digital Human, then of the agent.
    #[serde(default)]
    #[schemars(extend("x-rules" = one_of(StepFormat::ALL.iter().map(|one| one.as_str()))))]
    format: Option<String>,
}

fn two_thousand() -> i64 {
    2000
}

/// Answer with one result.
#[derive(Serialize, JsonSchema)]
struct OneResult {
    /// The result that was asked for.
    simulation_result: ResultRecord,
    /// Always `200`; kept for compatibility.
    status: &'static str,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        get("/v1/retrieve-simulation-result/{simulation_result_id}", read_one).about("Get a result"),
        post("/v1/update-simulation-result", update)
            .about("Add events, tool calls, tags, metadata or a transcript to a result"),
        post("/v1/end-conversations", end).of("Organization").about("End running conversations"),
        post("/v1/simulation-result/{id}/hangup", hangup).about("End one conversation"),
        delete("/v1/simulation-result/{id}", remove).about("Delete a result"),
        post("/v1/re-evaluate-simulation-result/{id}", re_evaluate).generates().about("Evaluate a result again"),
        get("/v1/simulation-result/{id}/timeline", timeline)
            .packs()
            .about("Get the timeline: every event with its sample position"),
        get("/v1/simulation-result/{id}/transcript", transcript)
            .packs()
            .about("Get the transcript as JSON, text, WebVTT, RTTM or TextGrid"),
        get("/v1/simulation-result/{id}/recording", recording)
            .sends_file(true)
            .about("Get the recording, both channels or one"),
        get("/v1/simulation-result/{id}/peaks", peaks).about("Get the waveform of the recording as minima and maxima"),
        get("/v1/accuracy", accuracy).about("Get the stated errors of what results report"),
        get("/v1/evidence-keys", evidence_keys).about("List the public keys by which evidence is checked"),
        post("/v1/evidence-keys", rotate_evidence_key).admin().about("Make a new key sign evidence from now on"),
        get("/v1/simulation-result/{id}/evidence", evidence)
            .sends_file(false)
            .about("Get all files of a finished conversation as a tar archive"),
        get("/v1/simulation-result/{id}/events", events)
            .tells_of_calls()
            .about("Stream the events of a conversation as server-sent events"),
    ];
    with_tag("Results", "Simulation result", endpoints).collect()
}

async fn read_one(ctx: Ctx, request: In<ResultPath>) -> Result<OneResult> {
    let simulation_result = ctx.service.runs().result(&ctx.caller, request.path.simulation_result_id).await?;
    Ok(OneResult { simulation_result, status: "200" })
}

async fn update(ctx: Ctx, request: In<Nothing, Nothing, UpdateResultSpec>) -> Result<ResultUpdated> {
    ctx.service.runs().update_result(&ctx.caller, request.body).await
}

async fn end(ctx: Ctx, request: In<Nothing, Nothing, EndConversations>) -> Result<ConversationsEnded> {
    ctx.service.runs().end_conversations(&ctx.caller, &request.body.test_result_ids).await
}

async fn hangup(ctx: Ctx, request: In<IdPath, Nothing, Option<Nothing>>) -> Result<HungUp> {
    ctx.service.runs().hangup(&ctx.caller, request.path.id).await
}

async fn remove(ctx: Ctx, request: In<IdPath>) -> Result<ResultDeleted> {
    ctx.service.runs().delete_result(&ctx.caller, request.path.id).await
}

async fn re_evaluate(ctx: Ctx, request: In<IdPath>) -> Result<ReEvaluation> {
    ctx.service.runs().re_evaluate(&ctx.caller, request.path.id).await
}

async fn timeline(ctx: Ctx, request: In<IdPath, TimelineQuery>) -> Result<Timeline> {
    let timeline = ctx.service.conversations().timeline(&ctx.caller, request.path.id).await?;
    Ok(match request.query.events {
        Some(names) => timeline.of(&names.split(',').map(str::trim).collect::<Vec<_>>()),
        None => timeline,
    })
}

async fn transcript(ctx: Ctx, request: In<IdPath, TranscriptQuery>) -> Result<Script> {
    let found = ctx.service.conversations().transcript_with_length(&ctx.caller, request.path.id).await?;
    let (mut transcript, length_ms) = found;
    if !request.query.words {
        transcript.entries.iter_mut().for_each(|entry| entry.words.clear());
    }
    let response = match request.query.format.map_or(Some(ScriptFormat::Json), |word| ScriptFormat::parse(&word)) {
        Some(ScriptFormat::Text) => respond(StatusCode::OK, TEXT, transcript.text()),
        Some(ScriptFormat::Vtt) => respond(StatusCode::OK, VTT, transcript.vtt()),
        Some(ScriptFormat::Rttm) => respond(StatusCode::OK, TEXT, transcript.rttm()),
        Some(ScriptFormat::TextGrid) => respond(StatusCode::OK, TEXT, transcript.text_grid(length_ms)),
        Some(ScriptFormat::Json) => transcript.answer(StatusCode::OK)?,
        None => return Err(Error::Refused("format must be json, text, vtt, rttm or textgrid".to_owned())),
    };
    Ok(response.into())
}

async fn accuracy(_: Ctx, _: In) -> Result<AccuracyTable> {
    Ok(ringer_service::accuracy_table().clone())
}

async fn evidence_keys(ctx: Ctx, _: In) -> Result<EvidenceKeys> {
    ctx.service.runs().evidence_keys().await
}

async fn rotate_evidence_key(ctx: Ctx, _: In) -> Result<EvidenceKeyOut> {
    ctx.service.runs().rotate_evidence_key().await
}

async fn evidence(ctx: Ctx, request: In<IdPath>) -> Result<Archive> {
    let archive = ctx.service.runs().evidence(&ctx.caller, request.path.id).await?;
    audio::send_all(archive, TAR, &ctx.headers).await.map(Archive::from)
}

async fn recording(ctx: Ctx, request: In<IdPath, RecordingQuery>) -> Result<Audio> {
    let (service, id) = (&ctx.service, request.path.id);
    let (track, view) = match request.query.channel.map_or(Some(Channel::Both), |word| Channel::parse(&word)) {
        Some(Channel::Both) => (Track::Both, View::Whole),
        Some(Channel::Human) => (Track::Channel(0), View::Channel(0)),
        Some(Channel::Agent) => (Track::Channel(1), View::Channel(1)),
        Some(Channel::Mix) => (Track::Mix, View::Mix),
        Some(Channel::CallerClean) => (Track::CallerClean, View::Plain),
        None => {
            service.conversations().track_source(&ctx.caller, id, Track::Both).await?;
            return Err(Error::Refused("channel must be 0, 1, both or mix".to_owned()));
        }
    };
    let found = service.conversations().track_source(&ctx.caller, id, track).await?;
    let (from_ms, to_ms) = (request.query.from_ms, request.query.to_ms);
    let is_cut = from_ms.is_some() || to_ms.is_some();
    let stretch = is_cut.then(|| Stretch { from_ms: from_ms.unwrap_or(0), to_ms });
    let (packing, kind) = match request.query.format.map_or(Some(AudioFormat::Wav), |word| AudioFormat::parse(&word)) {
        Some(AudioFormat::Wav) => {
            return audio::send_found(found, (view, stretch), WAV, &ctx.headers).await.map(Audio::from);
        }
        Some(_) if is_cut => return Err(Error::Refused("from_ms and to_ms need format wav".to_owned())),
        Some(AudioFormat::Flac) => (Packing::Flac, FLAC),
        Some(AudioFormat::Opus) => (Packing::Opus, OGG),
        None => return Err(Error::Refused("format must be wav, flac or opus".to_owned())),
    };
    let path = service.conversations().packed_path(&ctx.caller, id, track, packing).await?;
    let view = if track == Track::Both { View::Whole } else { View::Plain };
    audio::send(&path, (view, None), kind, &ctx.headers).await.map(Audio::from)
}

async fn peaks(ctx: Ctx, request: In<IdPath, PeaksQuery>) -> Result<Outline> {
    let PeaksQuery { points, zoom, from_ms, to_ms, format } = request.query;
    let is_small = match format.map_or(Some(StepFormat::Json), |word| StepFormat::parse(&word)) {
        Some(StepFormat::Json) => false,
        Some(StepFormat::Bytes) => true,
        None => return Err(Error::Refused("format must be json or i8".to_owned())),
    };
    let Some(zoom) = zoom.and_then(Zoom::of) else {
        if is_small || from_ms.is_some() || to_ms.is_some() {
            return Err(Error::Refused("from_ms, to_ms and format need zoom".to_owned()));
        }
        let peaks = ctx.service.conversations().peaks(&ctx.caller, request.path.id, points).await?;
        return peaks.answer(StatusCode::OK).map(Outline::from);
    };
    let stretch = (from_ms.unwrap_or(0), to_ms);
    let stretch = ctx.service.conversations().peak_stretch(&ctx.caller, request.path.id, zoom, stretch).await?;
    if !is_small {
        return stretch.peaks().answer(StatusCode::OK).map(Outline::from);
    }
    let bytes: Vec<u8> = stretch.steps.iter().flatten().map(|level| small(*level)).collect();
    let mut response = respond(StatusCode::OK, OCTETS, bytes);
    for (name, value) in
        [("x-from-ms", stretch.from_ms), ("x-step-ms", zoom.step_ms()), ("x-duration-ms", stretch.duration_ms)]
    {
        response.headers_mut().insert(name, HeaderValue::from(value));
    }
    Ok(response.into())
}

async fn events(ctx: Ctx, request: In<IdPath>) -> Result<Stream> {
    live::stream(ctx, request.path.id).await.map(Stream::from)
}
