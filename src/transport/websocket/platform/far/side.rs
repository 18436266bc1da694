//! Rules of a platform's server, and requests that reach it.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::presets::FAR_PRESETS;
use crate::websocket::platform::address::split_base;
use crate::websocket::platform::fill::fill;
use crate::websocket::platform::presets::PRESETS;
use crate::websocket::platform::rules::{Table, wires};
use crate::websocket::platform::when::{When, find, text_at};
use crate::websocket::voice::{Encoding, Wire};

/// Path below which the sockets of sessions are that were asked for.
const SESSIONS: &str = "/sessions/";

/// Settings of a far side.
const KEYS: [&str; 21] = [
    "in_binary",
    "session",
    "open",
    "accept",
    "accepted",
    "format_in",
    "format_out",
    "audio_in",
    "audio_out",
    "speech",
    "words",
    "corrected",
    "done",
    "cut",
    "ping",
    "pong",
    "tool",
    "tool_answer",
    "end",
    "known",
    "digit",
];

/// Places of a form of audio in a message of the client: the platform's name of it, and its rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FormatPlace {
    pub(super) format: Option<String>,
    pub(super) rate: Option<String>,
}

/// Client messages of one type, and places in them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pick {
    pub(super) when: When,
    pub(super) first: String,
    pub(super) second: String,
}

/// Answer to the request that makes a session.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SessionAnswer {
    pub(super) status: u16,
    pub(super) body: Value,
}

/// Rules of a platform's server.
#[derive(Clone, Debug, PartialEq)]
pub struct FarSide {
    pub(super) name: &'static str,
    /// Header or query parameter of the credentials, as in `auth` of adapters.
    pub(super) auth: Option<String>,
    /// Method and path by which a client comes: that of the session request, or of the upgrade.
    pub(super) method: String,
    pub(super) path: String,
    pub(super) session: Option<SessionAnswer>,
    /// Names of forms of audio, by encoding and rate.
    pub(super) formats: Map<String, Value>,
    pub(super) caller_wire: Wire,
    pub(super) own_wire: Wire,
    pub(super) chunk_ms: u32,
    /// True when JSON goes in binary messages.
    pub(super) in_binary: bool,
    pub(super) open: Vec<Value>,
    pub(super) accept: When,
    pub(super) accepted: Vec<Value>,
    pub(super) format_in: FormatPlace,
    pub(super) format_out: FormatPlace,
    pub(super) audio_in: Option<Pick>,
    pub(super) audio_out: Option<Value>,
    pub(super) speech: Vec<Value>,
    pub(super) words: Vec<Value>,
    pub(super) corrected: Vec<Value>,
    pub(super) done: Vec<Value>,
    pub(super) cut: Vec<Value>,
    pub(super) ping: Vec<Value>,
    pub(super) pong: When,
    pub(super) tool: Vec<Value>,
    pub(super) tool_answer: Option<Pick>,
    pub(super) end: When,
    pub(super) ended: Vec<Value>,
    pub(super) known: When,
    pub(super) digit: Option<Pick>,
    pub(super) assumed: &'static [&'static str],
}

/// One call of a far side.
#[derive(Clone, Debug, PartialEq)]
pub struct FarCall {
    pub(super) side: Arc<FarSide>,
    /// Id of the agent in the path of the request; empty where it has none.
    pub(super) agent: String,
    /// Name of the session.
    pub(super) session_id: String,
    /// Body of the request that made the session; null where there was none.
    pub(super) opening: Value,
}

/// Kinds of requests that reach a far side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FarRequest {
    /// Request that makes a session, for the agent of this id.
    Session(String),
    /// Upgrade to the WebSocket of a call, for the agent of this id.
    Call(String),
    /// Upgrade to the WebSocket of a session, by its name.
    SessionCall(String),
}

impl FarSide {
    /// Returns the far side of a preset; `None` for a name that is none.
    ///
    /// # Panics
    /// Data of this file cannot be read: a test reads all of it.
    pub fn of(name: &str) -> Option<FarSide> {
        let preset = FAR_PRESETS.iter().find(|preset| preset.name == name)?;
        Some(read_side(preset.name).unwrap_or_else(|why| panic!("far side {name}: {why}")))
    }

    /// Returns the names of all far sides.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FAR_PRESETS.iter().map(|preset| preset.name)
    }

    /// Returns the name of the preset.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the parts of its messages that no documentation confirms.
    pub fn assumptions(&self) -> &'static [&'static str] {
        self.assumed
    }

    /// Returns what a request is for; `None` for one that the platform does not know.
    pub fn request(&self, method: &str, path: &str, is_upgrade: bool) -> Option<FarRequest> {
        let agent = match_path(&self.path, path);
        match (&self.session, is_upgrade) {
            (None, true) => agent.map(FarRequest::Call),
            (Some(_), false) if method == self.method => agent.map(FarRequest::Session),
            (Some(_), true) => {
                let name = path.strip_prefix(SESSIONS).filter(|name| !name.is_empty() && !name.contains('/'))?;
                Some(FarRequest::SessionCall(name.to_owned()))
            }
            _ => None,
        }
    }

    /// Returns the credentials of a request; empty where it has none. `header` finds a header by its lower-case name.
    pub fn credential(&self, query: &str, header: &dyn Fn(&str) -> Option<String>) -> String {
        let auth = self.auth.as_deref().unwrap_or_default();
        let behind = |scheme: &str| {
            let value = header("authorization").unwrap_or_default();
            value.strip_prefix(scheme).map(|key| key.trim().to_owned()).unwrap_or_default()
        };
        match auth.split_once(' ') {
            Some(("header", name)) => header(&name.to_ascii_lowercase()).unwrap_or_default(),
            Some((_, name)) => {
                let pairs = url::form_urlencoded::parse(query.as_bytes());
                pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value.into_owned()).unwrap_or_default()
            }
            None if auth == "token" => behind("Token "),
            None => behind("Bearer "),
        }
    }

    /// Returns status and body of the answer to the request that made a session; `base` is scheme, host and port of its
    /// WebSocket.
    pub fn session_answer(&self, base: &str, session_id: &str) -> Option<(u16, Value)> {
        let answer = self.session.as_ref()?;
        let value = |name: &str| match name {
            "session.url" => Some(format!("{base}{SESSIONS}{session_id}").into()),
            "session.id" => Some(session_id.into()),
            _ => None,
        };
        Some((answer.status, fill(&answer.body, &value)))
    }

    /// Returns encoding and rate that a message asks for, where it does.
    pub(super) fn wire_at(&self, message: &Value, place: &FormatPlace, now: Wire) -> Wire {
        let rate = |text: &str| text.parse().ok().filter(|rate| (8000..=48_000).contains(rate));
        let mut wire = now;
        let named = place.format.as_ref().and_then(|pointer| find(message, pointer));
        if let Some((key, _)) = named.and_then(|named| self.formats.iter().find(|(_, known)| *known == named)) {
            let (encoding, rate_hz) = key.split_once('/').unwrap_or((key, ""));
            wire.encoding = encoding_of(encoding).unwrap_or(wire.encoding);
            wire.rate_hz = rate(rate_hz).unwrap_or(wire.rate_hz);
        }
        let given = place.rate.as_ref().map(|pointer| text_at(message, pointer));
        wire.rate_hz = given.as_deref().and_then(rate).unwrap_or(wire.rate_hz);
        wire
    }
}

impl FarCall {
    /// Returns a call for an agent; `opening` is the body of the request that made its session.
    pub fn new(side: Arc<FarSide>, agent: String, session_id: String, opening: Value) -> FarCall {
        FarCall { side, agent, session_id, opening }
    }

    /// Returns the name of the protocol.
    pub fn name(&self) -> &'static str {
        self.side.name
    }
}

fn encoding_of(name: &str) -> Option<Encoding> {
    [Encoding::L16Le, Encoding::Pcmu, Encoding::Pcma].into_iter().find(|encoding| encoding.name() == name)
}

/// Returns the text that stands for the first place of a pattern such as `/agents/{{agent.id}}/calls`; empty where the
/// pattern has none. `None` for a path that does not fit.
fn match_path(pattern: &str, path: &str) -> Option<String> {
    let (expect, found): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), path.split('/').collect());
    let mut place = None;
    let fits = expect.len() == found.len()
        && expect.iter().zip(&found).all(|(expect, found)| match expect.contains("{{") {
            true => {
                let decoded = percent_encoding::percent_decode_str(found).decode_utf8_lossy().into_owned();
                place.get_or_insert(decoded);
                !found.is_empty()
            }
            false => expect == found,
        });
    fits.then(|| place.unwrap_or_default())
}

/// Reads the messages of a type, with pointers into them.
fn pick(table: &Table<'_>, key: &str, first: &str, second: &str) -> Result<Option<Pick>, String> {
    let keys = ["type", first, second];
    let keys = if second.is_empty() { &keys[..2] } else { &keys[..] };
    table.table(key, keys, |table| {
        let at = |key: &str| table.pointer(key).map(Option::unwrap_or_default);
        let second = if second.is_empty() { String::new() } else { at(second)? };
        Ok(Pick { when: table.when("type")?, first: at(first)?, second })
    })
}

/// Reads where a client says which form of audio it wants.
fn format(table: &Table<'_>, key: &str) -> Result<FormatPlace, String> {
    let read = |table: &Table<'_>| Ok(FormatPlace { format: table.pointer("format")?, rate: table.pointer("rate")? });
    table.table(key, &["format", "rate"], read).map(Option::unwrap_or_default)
}

/// Reads the data of a far side, and that of the preset of its name.
fn read_side(name: &str) -> Result<FarSide, String> {
    let parse = |text: &str| serde_json::from_str::<Map<String, Value>>(text).map_err(|error| error.to_string());
    let preset = PRESETS.iter().find(|preset| preset.name == name).ok_or("no preset has this name")?;
    let far = FAR_PRESETS.iter().find(|preset| preset.name == name).ok_or("no far side has this name")?;
    let (client, settings) = (parse(preset.settings)?, parse(far.settings)?);
    if let Some(unknown) = settings.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("there is no setting {unknown:?}"));
    }
    let (client_table, table) = (Table::new("", &client), Table::new("", &settings));
    let (caller_wire, own_wire, chunk_ms) = wires(&client_table)?;
    let address = client_table.text("session_url")?.or(client_table.text("url")?).ok_or("it has no address")?;
    let behind_host = split_base("", address).1;
    let path = behind_host.split('?').next().unwrap_or_default().to_owned();
    let key_in_query = behind_host.contains("?key={{integration.key}}").then(|| "query key".to_owned());
    let auth = client_table.text("auth")?.map(str::to_owned).or(key_in_query);
    let end = table.table("end", &["type", "send"], |table| Ok((table.when("type")?, table.messages("send")?)))?;
    let (end, ended) = end.unwrap_or_default();
    let session = table.table("session", &["status", "body"], |table| {
        let status = table.number("status")?.and_then(|status| u16::try_from(status).ok());
        let body = table.messages("body")?.pop();
        Ok(status.zip(body).map(|(status, body)| SessionAnswer { status, body }))
    })?;
    Ok(FarSide {
        name: far.name,
        auth,
        method: client_table.text("session_method")?.unwrap_or("POST").to_owned(),
        path,
        session: session.flatten(),
        formats: client.get("formats").and_then(Value::as_object).cloned().unwrap_or_default(),
        caller_wire,
        own_wire,
        // Servers send what they have: a short chunk is soon there.
        chunk_ms: chunk_ms.min(20),
        in_binary: table.flag("in_binary")?,
        open: table.messages("open")?,
        accept: table.when("accept")?,
        accepted: table.messages("accepted")?,
        format_in: format(&table, "format_in")?,
        format_out: format(&table, "format_out")?,
        audio_in: pick(&table, "audio_in", "pointer", "")?,
        audio_out: table.messages("audio_out")?.pop(),
        speech: table.messages("speech")?,
        words: table.messages("words")?,
        corrected: table.messages("corrected")?,
        done: table.messages("done")?,
        cut: table.messages("cut")?,
        ping: table.messages("ping")?,
        pong: table.when("pong")?,
        tool: table.messages("tool")?,
        tool_answer: pick(&table, "tool_answer", "id", "result")?,
        end,
        ended,
        known: table.when("known")?,
        digit: pick(&table, "digit", "pointer", "")?,
        assumed: far.assumed,
    })
}
