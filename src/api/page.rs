//! The page: its files, the views that they show, and the routes that only it needs. No file comes from elsewhere.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONTENT_DISPOSITION;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;
use axum::routing::any;
use ringer_base::error::{Error, Result};
use ringer_model::api_key::{KeyOut, PageLinkIn, PageLinkOut};
use ringer_model::review::ReviewRequest;
use ringer_service::{Ladder, MailList, Reviewed, Reviews, RunPage, RunQuery, TurnList};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::endpoint::{Ctx, Endpoint, In, Nothing, get, post, put_route, with_tag};
use crate::host::{is_served, misdirection, protect};
use crate::page_file::{ASSETS, SHELL, call_page};
use crate::response::{Document, HTML, JSON, PCAPNG, Packets, Page, Stream, respond};
use crate::validators::EntityTag;
use crate::{Server, audio, packed, response, run_live};

/// Paths at which the page shows something; the page itself reads the path.
const VIEWS: [&str; 20] = [
    "/",
    "/runs/{id}",
    "/results/{id}",
    "/call",
    "/agents",
    "/agents/new",
    "/agents/{id}",
    "/agents/{id}/edit",
    "/simulations/new",
    "/simulations/{id}",
    "/callers/new",
    "/callers/{id}",
    "/calls/{call_id}",
    "/compare",
    "/compare/calls",
    "/review",
    "/judges",
    "/judges/{card_id}",
    "/watch",
    "/settings",
];

#[derive(Deserialize, JsonSchema)]
struct IdPath {
    id: i64,
}

#[derive(Deserialize, JsonSchema)]
struct LadderQuery {
    /// False: without the figures of the network, of which there is one a second.
    #[serde(default = "yes")]
    rtcp: bool,
}

#[derive(Deserialize, JsonSchema)]
struct TurnsQuery {
    /// False: without the times of single words.
    #[serde(default = "yes")]
    words: bool,
    /// Number of the first turn to list, from 0; all turns count, also those before it.
    #[serde(default)]
    #[schemars(range(min = 0))]
    from: i64,
}

fn yes() -> bool {
    true
}

/// Request to change a start token for a key.
#[derive(Deserialize, JsonSchema)]
struct PageSessionIn {
    /// Token of the address that the engine printed.
    #[schemars(length(max = 200))]
    token: String,
}

/// The sample agent of this engine.
#[derive(Serialize, JsonSchema)]
struct SampleAgentOut {
    /// Address that can be called.
    sip_uri: String,
    /// Id of the agent with this address: one for each organization, over all starts.
    agent_id: i64,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let runs = vec![
        get("/v1/simulation-runs", runs)
            .of("Organization")
            .about("List the runs of all simulations by page, newest first"),
        get("/v1/simulation-run/{id}/events", run_events)
            .about("Stream changes of a run's results as server-sent events"),
    ];
    let results = vec![
        get("/v1/simulation-result/{id}/ladder", ladder)
            .packs()
            .tells_of_calls()
            .about("Get signalling messages, network figures and DTMF keys with their times"),
        get("/v1/simulation-result/{id}/mails", mails)
            .packs()
            .about("List the mails of a conversation with their words, quotations and attachments"),
        get("/v1/simulation-result/{id}/turns", turns)
            .packs()
            .tells_of_calls()
            .about("List the turns of both sides with their measurements"),
        put_route("/v1/simulation-result/{id}/review", review)
            .if_match()
            .about("Set a person's values, which override the judged ones"),
        get("/v1/simulation-result/{id}/reviews", reviews).about("List the changes that people made to the evaluation"),
        get("/v1/simulation-result/{id}/capture", capture)
            .sends_file(false)
            .about("Get the packet capture of a finished conversation (pcapng)"),
        get("/v1/simulation-result/{id}/page", file)
            .sends_file(false)
            .about("Get one conversation as an HTML file with its recording"),
    ];
    let page = vec![
        get("/v1/behaviour-levels", levels)
            .of("Organization")
            .about("Get the numbers behind the named levels of Digital Humans"),
        post("/v1/page-session", session)
            .open()
            .repeatable()
            .of_page()
            .about("Exchange the printed start token for an API key"),
        post("/v1/page-links", page_link)
            .admin()
            .repeatable()
            .of("Organization")
            .about("Make a link that opens the page once, with a key of scope read"),
        post("/v1/sample-agent", sample_agent)
            .repeatable()
            .of("Organization")
            .about("Start the sample agent on this machine"),
    ];
    with_tag("Runs", "Simulation run", runs)
        .chain(with_tag("Results", "Simulation result", results))
        .chain(with_tag("System", "", page))
        .collect()
}

async fn runs(ctx: Ctx, request: In<Nothing, RunQuery>) -> Result<RunPage> {
    ctx.service.runs().run_page(&ctx.caller, request.query).await
}

async fn run_events(ctx: Ctx, request: In<IdPath>) -> Result<Stream> {
    run_live::stream(ctx, request.path.id).await.map(Stream::from)
}

async fn ladder(ctx: Ctx, request: In<IdPath, LadderQuery>) -> Result<Ladder> {
    let mut ladder = ctx.service.runs().ladder(&ctx.caller, request.path.id).await?;
    ladder.entries.retain(|entry| request.query.rtcp || entry.kind != "rtcp");
    Ok(ladder)
}

async fn mails(ctx: Ctx, request: In<IdPath>) -> Result<MailList> {
    ctx.service.runs().mail_list(&ctx.caller, request.path.id).await
}

async fn turns(ctx: Ctx, request: In<IdPath, TurnsQuery>) -> Result<TurnList> {
    let list = ctx.service.runs().turn_list(&ctx.caller, request.path.id).await?;
    let mut list = list.since(request.query.from);
    if !request.query.words {
        list.turns.iter_mut().for_each(|turn| turn.words.clear());
    }
    Ok(list)
}

async fn review(ctx: Ctx, request: In<IdPath, Nothing, ReviewRequest>) -> Result<Reviewed> {
    let seen = ctx.headers.get(axum::http::header::IF_MATCH).map(|seen| seen.to_str().unwrap_or("?"));
    ctx.service.evaluations().review(&ctx.caller, request.path.id, seen, request.body).await
}

async fn reviews(ctx: Ctx, request: In<IdPath>) -> Result<Reviews> {
    ctx.service.evaluations().reviews(&ctx.caller, request.path.id).await
}

async fn capture(ctx: Ctx, request: In<IdPath>) -> Result<Packets> {
    let file = ctx.service.runs().capture(&ctx.caller, request.path.id).await?;
    audio::send_all(file, PCAPNG, &ctx.headers).await.map(Packets::from)
}

async fn levels(ctx: Ctx, _: In) -> Result<Document> {
    let levels = serde_json::to_string(&ctx.service.settings().behaviour).map_err(Error::internal)?;
    Ok(respond(StatusCode::OK, JSON, levels).into())
}

async fn file(ctx: Ctx, request: In<IdPath>) -> Result<Page> {
    let id = request.path.id;
    let text = call_page(&ctx.service.runs().call_file(&ctx.caller, id).await?);
    send_file(&ctx.headers, text, &format!("call-{id}.html"))
}

/// Sends a page as a file with an entity tag.
pub(super) fn send_file(headers: &HeaderMap, text: String, name: &str) -> Result<Page> {
    let tag = EntityTag::of_hash(Sha256::new_with_prefix(&text));
    if tag.is_known(headers) {
        return Ok(tag.not_modified().into());
    }
    let mut response = respond(StatusCode::OK, HTML, text);
    tag.add_to(&mut response);
    let name = format!("attachment; filename=\"{name}\"");
    response.headers_mut().insert(CONTENT_DISPOSITION, HeaderValue::from_str(&name).map_err(Error::internal)?);
    Ok(response.into())
}

async fn session(ctx: Ctx, request: In<Nothing, Nothing, PageSessionIn>) -> Result<KeyOut> {
    let is_forwarded = |name: &str| name == "forwarded" || name.starts_with("x-forwarded-");
    let (library, token) = (ctx.service.library(), &request.body.token);
    match &ctx.door {
        Some(door) if !ctx.headers.keys().any(|name| is_forwarded(name.as_str())) => {
            match library.open_page(door, token).await {
                Err(Error::Forbidden(_)) => library.open_page_link(token).await,
                done => done,
            }
        }
        _ => library.open_page_link(token).await,
    }
}

async fn page_link(ctx: Ctx, request: In<Nothing, Nothing, PageLinkIn>) -> Result<PageLinkOut> {
    ctx.service.library().make_page_link(&ctx.caller, request.body).await
}

async fn sample_agent(ctx: Ctx, _: In<Nothing, Nothing, Option<Nothing>>) -> Result<SampleAgentOut> {
    let none = || Error::Unavailable("There is no sample agent in this process".into());
    let start = ctx.sample_agent.ok_or_else(none)?;
    let sip_uri = start().await.map_err(|why| Error::Unavailable(format!("The sample agent does not start: {why}")))?;
    let agent_id = ctx.service.library().keep_sample_agent(&ctx.caller, &sip_uri).await?;
    Ok(SampleAgentOut { sip_uri, agent_id })
}

/// Adds the views and files of the page. On a loopback listener they are shown to its own names alone.
pub(super) fn add_to(mut router: Router, server: &Arc<Server>, identify: fn(Response) -> Response) -> Router {
    let files = ASSETS.iter().map(|asset| (asset.path, asset.content_type, asset.text.as_str()));
    for (path, content_type, text) in VIEWS.into_iter().map(|path| (path, HTML, SHELL)).chain(files) {
        let server = Arc::clone(server);
        let shown = move |request: Request| async move {
            identify(match request.method() {
                _ if !is_served(&server, request.headers()) => misdirection(),
                &Method::GET | &Method::HEAD => {
                    let body = if request.method() == Method::HEAD { Body::empty() } else { Body::from(text) };
                    let mut response = respond(StatusCode::OK, content_type, body);
                    protect(response.headers_mut());
                    if packed::is_taken(request.headers()) { packed::pack(response).await } else { response }
                }
                _ => response::no_method(HeaderValue::from_static("GET, HEAD")),
            })
        };
        router = router.route(path, any(shown));
    }
    router
}
