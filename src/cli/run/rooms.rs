//! Room servers of suites: their keys for the run's own engine, and the tokens of rooms that a suite or a token names.
//!
//! The engine creates a room of its own for each call by the key of the organization (`P1_url` and others). It knows no
//! rooms of other names: for these it asks this command for a token, as it asks the server of `P1_token_webhook_url`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

use super::Args;
use crate::cli::call::{RoomFlags, Way};
use crate::clock::Clock;
use crate::config::{Secret, variable};
use crate::suite::expand::{Connect, Made, RoomAt};
use crate::tasks::Tasks;
use crate::transport::room::access::{RoomKey, Visit, join_token};

/// Bytes of the longest request for a token.
const REQUEST_BYTES: usize = 256 * 1024;

/// Way of a suite into the rooms of its server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry {
    /// Each call has a room of its own, which the engine creates with this key.
    New(RoomKey),
    /// All calls are held in the room of this name, one after the other.
    Named(RoomKey, String),
    /// All calls are held in the room of this token, one after the other.
    Token(Secret),
}

impl Entry {
    /// True if all calls share one room, in which two at once would meet.
    pub(crate) fn is_shared(&self) -> bool {
        !matches!(self, Entry::New(_))
    }

    /// Returns the secret that nobody is to read.
    pub(crate) fn secret(&self) -> &str {
        match self {
            Entry::New(key) | Entry::Named(key, _) => key.secret.expose(),
            Entry::Token(token) => token.expose(),
        }
    }
}

/// Returns the way of a suite into its rooms, by the environment; `None` for another connection, and where nobody is
/// called.
///
/// # Errors
/// Names what is missing or cannot be, with its position.
pub(crate) fn entry(args: &Args, connect: &Connect) -> Result<Option<Entry>, String> {
    let Connect::Made(made) = connect else { return Ok(None) };
    let Some(room) = made.room.as_ref().filter(|_| !args.sim && !args.list) else { return Ok(None) };
    if args.server.is_some() {
        return Err(format!(
            "{}: a server has its own keys of room servers: with --server, name an agent of it (connect: {{ agent: NAME }})",
            room.at
        ));
    }
    let flags = RoomFlags {
        room_key: variable("RINGER_ROOM_KEY"),
        room_secret: variable("RINGER_ROOM_SECRET"),
        room_token: variable("RINGER_ROOM_TOKEN"),
        ..RoomFlags::default()
    };
    by_flags(&flags, made, room).map(Some).map_err(|why| format!("{}: {why}", room.at))
}

fn by_flags(flags: &RoomFlags, made: &Made, room: &RoomAt) -> Result<Entry, String> {
    match (flags.way()?, &room.name) {
        (Way::Key(key), None) => Ok(Entry::New(key)),
        (Way::Key(key), Some(name)) => Ok(Entry::Named(key, name.clone())),
        (Way::Token(token), name) => {
            let given = [
                ("room_name", name.is_some()),
                ("agent_name", made.agent.contains_key("P1_agent_name")),
                ("metadata", made.agent.contains_key("P1_metadata")),
            ];
            match given.iter().find(|(_, is_given)| *is_given) {
                Some((word, _)) => Err(format!(
                    "{word} needs RINGER_ROOM_KEY and RINGER_ROOM_SECRET: RINGER_ROOM_TOKEN says all of it itself"
                )),
                None => Ok(Entry::Token(Secret::new(token.to_owned()))),
            }
        }
    }
}

/// Returns the problem of several calls in one room into which an agent is to be dispatched for each: a server
/// dispatches agents of a token when it makes the room.
pub(crate) fn repeated_dispatch(connect: &Connect, entry: &Entry, calls: usize) -> Option<String> {
    let Connect::Made(made) = connect else { return None };
    let room = made.room.as_ref()?;
    let dispatches = matches!(entry, Entry::Named(..)) && made.agent.contains_key("P1_agent_name");
    (dispatches && calls > 1).then(|| {
        format!(
            "{}: agent_name with room_name is for one call, and the run makes {calls}: an agent is dispatched when its room is \
             made; without room_name each call has a room of its own",
            room.at
        )
    })
}

/// Returns the credentials of the organization for a room server.
pub(crate) fn integration(room: &RoomAt, key: &RoomKey) -> Value {
    json!({ "P1_url": room.server, "P1_api_key": key.key, "P1_api_secret": key.secret.expose() })
}

/// Ways of the suites whose calls share a room, by their positions among the files, and the credentials to ask with.
struct SharedRooms {
    by_suite: HashMap<usize, (String, Entry)>,
    authorization: String,
}

/// A server on this machine that hands out the tokens of shared rooms, until it is stopped.
pub(crate) struct Tokens {
    base: String,
    authorization: String,
    tasks: Tasks,
}

impl Tokens {
    /// Starts the server for whoever has `key`; `None` where no suite needs it. `suites`: position, connection and way
    /// of each.
    ///
    /// # Errors
    /// There is no port.
    pub(crate) async fn serve<'a>(
        suites: impl Iterator<Item = (usize, &'a Connect, Option<&'a Entry>)>,
        key: &str,
    ) -> Result<Option<Tokens>, String> {
        let shared = suites.filter_map(|(at, connect, entry)| {
            let entry = entry.filter(|entry| entry.is_shared())?;
            let Connect::Made(Made { room: Some(room), .. }) = connect else { return None };
            Some((at, (room.server.clone(), entry.clone())))
        });
        let by_suite: HashMap<usize, (String, Entry)> = shared.collect();
        if by_suite.is_empty() {
            return Ok(None);
        }
        let describe = |error: std::io::Error| format!("tokens of rooms cannot be handed out: {error}");
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(describe)?;
        let base = format!("http://{}", listener.local_addr().map_err(describe)?);
        let authorization = format!("Bearer {key}");
        let rooms = Arc::new(SharedRooms { by_suite, authorization: authorization.clone() });
        let app = Router::new().route("/{suite}", post(hand_out)).with_state(rooms);
        let (app, tasks) = (app.layer(DefaultBodyLimit::max(REQUEST_BYTES)), Tasks::new());
        tasks.spawn_until_stop("tokens of rooms", async move {
            if let Err(error) = axum::serve(listener, app).await {
                tracing::error!("tokens of rooms are not handed out any more: {error}");
            }
        });
        Ok(Some(Tokens { base, authorization, tasks }))
    }

    /// Stops the server; requests under way are dropped.
    pub(crate) async fn stop(&self) {
        self.tasks.stop().await;
    }
}

/// Returns the fields of an agent in a shared room. Without `tokens` nobody asks there: the engine makes no calls.
pub(crate) fn agent_fields(tokens: Option<&Tokens>, suite: usize) -> Map<String, Value> {
    let (base, authorization) = match tokens {
        Some(tokens) => (tokens.base.as_str(), tokens.authorization.as_str()),
        None => ("http://127.0.0.1:9", ""),
    };
    Map::from_iter([
        ("P1_token_webhook_url".to_owned(), json!(format!("{base}/{suite}"))),
        ("P1_token_webhook_auth".to_owned(), json!(authorization)),
    ])
}

/// A request for a token, as the engine makes it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Asked {
    participant_identity: String,
    participant_name: String,
    participant_metadata: String,
    participant_attributes: Map<String, Value>,
    room_config: RoomConfig,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RoomConfig {
    agents: Vec<Dispatch>,
}

/// An agent that is dispatched to a room.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Dispatch {
    agent_name: String,
    metadata: String,
}

/// Answers a request for a token.
async fn hand_out(
    State(rooms): State<Arc<SharedRooms>>,
    Path(suite): Path<usize>,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, String) {
    let given = headers.get("authorization").and_then(|value| value.to_str().ok());
    if given != Some(rooms.authorization.as_str()) {
        return (StatusCode::UNAUTHORIZED, String::new());
    }
    let Some((server, entry)) = rooms.by_suite.get(&suite) else { return (StatusCode::NOT_FOUND, String::new()) };
    let Ok(asked) = serde_json::from_str(&body) else { return (StatusCode::BAD_REQUEST, String::new()) };
    let Some(token) = token(entry, asked) else { return (StatusCode::NOT_FOUND, String::new()) };
    let answer = json!({ "server_url": server, "participant_token": token.expose() });
    (StatusCode::OK, answer.to_string())
}

/// Returns the token of a shared room; `None` where each call has its own.
fn token(entry: &Entry, asked: Asked) -> Option<Secret> {
    let (key, room) = match entry {
        Entry::New(_) => return None,
        Entry::Token(token) => return Some(token.clone()),
        Entry::Named(key, room) => (key, room.clone()),
    };
    let Dispatch { agent_name, metadata: job_metadata } =
        asked.room_config.agents.into_iter().next().unwrap_or_default();
    let visit = Visit {
        room,
        identity: asked.participant_identity,
        name: asked.participant_name,
        metadata: asked.participant_metadata,
        attributes: asked.participant_attributes,
        agent_name,
        job_metadata,
        is_agent: false,
    };
    Some(join_token(key, &visit, Clock::Real.now_ms()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::yaml::parse;

    fn connection(text: &str) -> Made {
        match crate::suite::expand::connect(&parse(text, "f").expect("it is read")) {
            Ok(Connect::Made(made)) => made,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_environment_gives_the_way_into_a_room() {
        let key = RoomKey { key: "k".into(), secret: Secret::new("s".into()) };
        let keyed = RoomFlags { room_key: Some("k".into()), room_secret: Some("s".into()), ..RoomFlags::default() };
        let token = RoomFlags { room_token: Some("t".into()), ..RoomFlags::default() };
        let needs = "needs RINGER_ROOM_KEY and RINGER_ROOM_SECRET: RINGER_ROOM_TOKEN says all of it itself";
        for (flags, text, expect) in [
            (&keyed, "{room: ws://h, agent_name: a}", Ok(Entry::New(key.clone()))),
            (&keyed, "{room: ws://h, room_name: r}", Ok(Entry::Named(key.clone(), "r".into()))),
            (&token, "{room: ws://h, tool_topic: t}", Ok(Entry::Token(Secret::new("t".into())))),
            (&token, "{room: ws://h, room_name: r}", Err(format!("room_name {needs}"))),
            (&token, "{room: ws://h, agent_name: a}", Err(format!("agent_name {needs}"))),
            (&token, "{room: ws://h, metadata: {}}", Err(format!("metadata {needs}"))),
            (
                &RoomFlags::default(),
                "{room: ws://h}",
                Err("a room needs RINGER_ROOM_KEY and RINGER_ROOM_SECRET, or RINGER_ROOM_TOKEN".to_owned()),
            ),
        ] {
            let made = connection(text);
            let room = made.room.as_ref().expect("a room server");
            assert_eq!(by_flags(flags, &made, room), expect, "{text}");
        }
    }

    /// Whoever else asks on this machine gets no token.
    #[tokio::test]
    async fn tokens_are_handed_out_to_the_engine_alone() {
        let entry = Entry::Token(Secret::new("t0ken".into()));
        let by_suite = HashMap::from([(1, ("ws://h".to_owned(), entry))]);
        let rooms = Arc::new(SharedRooms { by_suite, authorization: "Bearer x".into() });
        for (given, suite, body, expect) in [
            (Some("Bearer x"), 1, "{}", (StatusCode::OK, r#"{"participant_token":"t0ken","server_url":"ws://h"}"#)),
            (Some("Bearer y"), 1, "{}", (StatusCode::UNAUTHORIZED, "")),
            (None, 1, "{}", (StatusCode::UNAUTHORIZED, "")),
            (Some("Bearer x"), 2, "{}", (StatusCode::NOT_FOUND, "")),
            (Some("Bearer x"), 1, "[", (StatusCode::BAD_REQUEST, "")),
        ] {
            let value = given.map(|text| ("authorization".parse().expect("a name"), text.parse().expect("a value")));
            let headers: HeaderMap = value.into_iter().collect();
            let (status, text) = hand_out(State(rooms.clone()), Path(suite), headers, body.to_owned()).await;
            let same = if expect.1.is_empty() {
                text.is_empty()
            } else {
                serde_json::from_str::<Value>(&text).ok() == serde_json::from_str(expect.1).ok()
            };
            assert!(status == expect.0 && same, "{given:?} {suite} {body}: {status} {text}");
        }
    }
}
