//! Adapters of platforms: `[adapters.Pn]` read and checked, the request that makes a session, and the dialect of a
//! call.

mod line;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::address::{check_scheme, split_base};
use super::chat_keys::{self, HTTP_CHAT};
use super::fill::{fill, fill_text, merge, percent_encode, places, plain};
use super::presets::{PRESETS, Preset};
use super::rules::{Rules, Table, rules_of};
use super::transport::Transport;
use super::when::text_at;
use crate::websocket::dialect::{Dialect, DialectError};
use crate::websocket::protocol::Kind;

/// Settings that an adapter can have.
const KEYS: [&str; 41] = [
    "preset",
    "transport",
    "url",
    "headers",
    "subprotocol",
    "first",
    "first_after",
    "session_url",
    "session_method",
    "session_headers",
    "session_body",
    "url_pointer",
    "token_pointer",
    "id_pointer",
    "auth",
    "audio_out",
    "audio_in",
    "encoding",
    "rate",
    "agent_rate",
    "chunk_ms",
    "formats",
    "ready",
    "agreed",
    "clear",
    "text",
    "tool",
    "end",
    "error",
    "ping",
    "pong",
    "agent_first",
    "agent_first_message",
    "tool_answers",
    "call_id",
    "digit",
    "limit",
    "resume",
    "offer",
    "place",
    "after",
];

/// Settings whose places are filled message by message, with the beginning of the names that they may have.
const LATER: [(&str, &str); 6] = [
    ("audio_out", "audio"),
    ("clear", "item."),
    ("tool", "tool."),
    ("pong", "message/"),
    ("digit", "digit"),
    ("resume", "resume.handle"),
];

/// Place of the host that agents of P11 name.
const P11_HOST: &str = "{{agent.P11_host}}";

/// Longest value of a header, in bytes.
const HEADER_BYTES: usize = 8192;

/// Names that settings of an adapter may fill in.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Names of the fields of agents.
    pub agent: Vec<String>,
    /// Names of the fields of the organization's credentials.
    pub integration: Vec<String>,
    /// Names of the fields of Digital Humans.
    pub digital_human: Vec<String>,
}

/// Values that settings of an adapter fill in, for one call.
#[derive(Clone, Default)]
pub struct Facts {
    /// Fields of the agent; `id` is the one that names it on its platform, `key` its own credential, where it has one.
    pub agent: Map<String, Value>,
    /// Credentials of the organization; `key` is that of the platform.
    pub integration: Map<String, Value>,
    /// Fields of the Digital Human.
    pub digital_human: Map<String, Value>,
    /// Id of the simulation result.
    pub result_id: String,
    /// Name of the conversation: the id of the result, and the number of the attempt.
    pub conversation: String,
    /// Time of the request, in seconds since 1970.
    pub now_s: i64,
    /// Access token that was fetched.
    pub bearer: Option<String>,
}

impl std::fmt::Debug for Facts {
    /// Writes no value: it may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Facts(of result {})", self.result_id)
    }
}

/// Request that makes a session.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionRequest {
    /// Method of the request (RFC 9110 9).
    pub method: String,
    /// Address that is asked.
    pub url: String,
    /// Headers of the request, in order.
    pub headers: Vec<(String, String)>,
    /// Body in JSON; empty where there is none.
    pub body: String,
}

impl std::fmt::Debug for SessionRequest {
    /// Writes no header, no query and no body: they may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SessionRequest({} {})", self.method, crate::peer::without_secrets(&self.url))
    }
}

/// Session that the answer to a request describes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SessionReply {
    /// Address of the session's WebSocket; `None`: that of the settings.
    pub url: Option<String>,
    /// Token of the session.
    pub token: Option<String>,
    /// The platform's name of the call.
    pub id: Option<String>,
}

impl std::fmt::Debug for SessionReply {
    /// Writes only the name: address and token may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SessionReply({:?})", self.id)
    }
}

/// Adapter of one platform: its settings, on top of those of a preset.
#[derive(Clone)]
pub struct Adapter {
    pub(super) platform: String,
    pub(super) preset: &'static Preset,
    pub(super) settings: Map<String, Value>,
    /// Settings that the user has given.
    pub(super) given: Vec<String>,
    /// Adapter by which the platform's agents are written to, beside this one that calls.
    pub(super) chat: Option<Arc<Adapter>>,
}

impl std::fmt::Debug for Adapter {
    /// Writes no setting: it may hold a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Adapter({}, {})", self.platform, self.preset.name)
    }
}

impl Adapter {
    /// Returns the names of all presets.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        let is_own = |name: &&str| Transport::parse(name).is_some() || *name == HTTP_CHAT;
        PRESETS.iter().map(|preset| preset.name).filter(move |name| !is_own(name))
    }

    /// Reads the table `[adapters.Pn]` of a platform; its texts may fill in `names`.
    ///
    /// # Errors
    /// A platform that needs no adapter; a setting that is unknown, missing, or of a wrong type or value; an unknown
    /// name in a template; an address without encryption that is not on this machine.
    pub fn parse(platform: &str, table: &Map<String, Value>, names: &Names) -> Result<Adapter, DialectError> {
        read_adapter(platform, table, names).map_err(|why| DialectError(format!("[adapters.{platform}] {why}")))
    }

    /// Returns the defaults in use that no documentation confirms.
    pub fn assumptions(&self) -> &'static [&'static str] {
        self.preset.assumed
    }

    /// Returns the name of the preset; `websocket` for settings of their own.
    pub fn preset(&self) -> &'static str {
        self.preset.name
    }

    /// Returns the token of the platform.
    pub(super) fn platform(&self) -> &str {
        &self.platform
    }

    /// Returns all settings, those of the preset included.
    pub(super) fn settings(&self) -> &Map<String, Value> {
        &self.settings
    }

    /// Returns the value of one setting.
    pub(super) fn setting(&self, key: &str) -> Option<&Value> {
        self.settings.get(key)
    }

    /// True if a request makes the session before the call.
    pub fn needs_session(&self) -> bool {
        self.settings.contains_key("session_url")
    }

    /// True if a setting fills in this field of agents.
    pub fn passes_on(&self, field: &str) -> bool {
        let place = format!("agent.{field}");
        let mut found = false;
        let mut look = |name: &str| {
            found |= name == place;
            Ok(())
        };
        // Their form was checked.
        let _ = self.settings.values().try_for_each(|value| places(value, &mut look));
        found
    }

    /// Returns the request that makes the session; `None` where there is none.
    ///
    /// # Errors
    /// A value of the agent that cannot stand where the settings put it.
    pub fn session_request(&self, facts: &Facts) -> Result<Option<SessionRequest>, String> {
        let Some(url) = self.settings.get("session_url").and_then(Value::as_str) else { return Ok(None) };
        let reply = SessionReply::default();
        let value = |name: &str| self.value(name, facts, &reply);
        let mut headers = self.auth(facts)?;
        headers.extend(self.headers("session_headers", &value)?);
        let body = self.settings.get("session_body").map(|body| fill(body, &value).to_string()).unwrap_or_default();
        let url = self.address("session_url", url, &value, ["http", "https"])?;
        let method = self.settings.get("session_method").and_then(Value::as_str).unwrap_or("POST");
        let body = if method == "GET" { String::new() } else { body };
        Ok(Some(SessionRequest { method: method.to_owned(), url, headers, body }))
    }

    /// Reads the answer to the request that makes a session.
    ///
    /// # Errors
    /// The setting that the answer has no value for, without the answer's text.
    pub fn read_session(&self, body: &[u8]) -> Result<SessionReply, String> {
        let answer: Value = serde_json::from_slice(body).map_err(|_| "its answer is no JSON".to_owned())?;
        let at = |key: &str| -> Result<Option<String>, String> {
            let Some(pointer) = self.settings.get(key).and_then(Value::as_str) else { return Ok(None) };
            match text_at(&answer, pointer) {
                text if text.is_empty() => Err(format!("its answer has nothing at {pointer} ({key})")),
                text => Ok(Some(text)),
            }
        };
        let (url, token) = (at("url_pointer")?, at("token_pointer")?);
        if let Some(url) = &url {
            self.check_named(url).map_err(|why| format!("its answer names an address that {why}"))?;
        }
        // A call without its name can be held.
        Ok(SessionReply { url, token, id: at("id_pointer").unwrap_or_default() })
    }

    /// Returns the address of a call's WebSocket, and its dialect.
    ///
    /// # Errors
    /// A value of the agent that cannot stand where the settings put it.
    pub fn dialect(&self, facts: &Facts, reply: &SessionReply) -> Result<(String, Dialect), String> {
        let value = |name: &str| self.value(name, facts, reply);
        let url = match (&reply.url, self.settings.get("url").and_then(Value::as_str)) {
            (Some(url), _) => url.clone(),
            (None, Some(url)) => self.address("url", url, &value, ["ws", "wss"])?,
            (None, None) => return Err("url is not set".to_owned()),
        };
        let mut headers = if self.needs_session() { Vec::new() } else { self.auth(facts)? };
        headers.extend(self.headers("headers", &value)?);
        let filled = fill(&Value::Object(self.settings.clone()), &value);
        let mut rules = rules_of(&self.platform, self.preset.name, filled.as_object().ok_or("no table")?)?;
        rules.secrets = self.secrets(facts, reply);
        let dialect = Dialect {
            wire: rules.out,
            agent_wire: rules.back,
            chunk_ms: rules.chunk_ms,
            headers,
            subprotocol: self.settings.get("subprotocol").map(plain),
            platform: Some(Arc::new(rules)),
            ..Dialect::new(Kind::Platform)
        };
        Ok((url, dialect))
    }

    /// Returns the value of a name that does not depend on a message; `None` for others.
    pub(super) fn value(&self, name: &str, facts: &Facts, reply: &SessionReply) -> Option<Value> {
        let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::String);
        Some(match name.split_once('.')? {
            ("agent", field) => facts.agent.get(field).cloned().unwrap_or_default(),
            ("integration", _) if self.has_agents_host() => Value::Null,
            ("integration", field) => facts.integration.get(field).cloned().unwrap_or_default(),
            ("digital_human", field) => facts.digital_human.get(field).cloned().unwrap_or_default(),
            ("result", "id") => facts.result_id.clone().into(),
            ("conversation", "id") => facts.conversation.clone().into(),
            ("session", "token") => text(&reply.token),
            ("session" | "call", "id") => text(&reply.id),
            ("audio", "encoding") => self.settings.get("encoding").cloned().unwrap_or_default(),
            ("audio", "rate") => self.settings.get("rate").cloned().unwrap_or_default(),
            ("audio", "agent_rate") => {
                self.settings.get("agent_rate").or_else(|| self.settings.get("rate")).cloned().unwrap_or_default()
            }
            ("audio", "format") => self.format().unwrap_or_default(),
            _ => return None,
        })
    }

    /// Returns the platform's own name of encoding and rate.
    fn format(&self) -> Option<Value> {
        let encoding = self.settings.get("encoding")?.as_str()?;
        let formats = self.settings.get("formats")?;
        let whole = format!("{encoding}/{}", self.settings.get("rate")?);
        formats.get(&whole).or_else(|| formats.get(encoding)).cloned()
    }

    /// True if the agent names the host. It is given no credentials but the agent's own: whoever may change an agent
    /// could send those of the organization anywhere.
    pub(super) fn has_agents_host(&self) -> bool {
        self.addresses().iter().any(|(_, url, _)| split_base(&self.platform, url).0.contains("{{"))
    }

    pub(super) fn headers(
        &self,
        key: &str,
        value: &dyn Fn(&str) -> Option<Value>,
    ) -> Result<Vec<(String, String)>, String> {
        let Some(headers) = self.settings.get(key).and_then(Value::as_object) else { return Ok(Vec::new()) };
        let filled = headers.iter().map(|(name, text)| {
            let text = fill_text(&plain(text), value, &|text| text);
            Ok((name.clone(), header_value(name, text)?))
        });
        filled.collect()
    }

    /// Returns an address with its places filled.
    pub(super) fn address(
        &self,
        key: &str,
        url: &str,
        value: &dyn Fn(&str) -> Option<Value>,
        schemes: [&str; 2],
    ) -> Result<String, String> {
        let (base, rest) = split_base(&self.platform, url);
        let rest = fill_text(rest, value, &|text| percent_encode(&text));
        let base = fill_text(base, value, &|text| text.trim_end_matches('/').to_owned());
        let base = match (schemes, base.split_once("://")) {
            (["ws", "wss"], Some(("http", host))) => format!("ws://{host}"),
            (["ws", "wss"], Some(("https", host))) => format!("wss://{host}"),
            _ => base,
        };
        let url = format!("{base}{rest}");
        check_scheme(&url, schemes).map_err(|why| format!("{key} {why}"))?;
        Ok(url)
    }
}

pub(super) fn header_value(name: &str, value: String) -> Result<String, String> {
    let is_plain = value.len() <= HEADER_BYTES && value.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if is_plain { Ok(value) } else { Err(format!("the header {name} would have a value that no header can hold")) }
}

fn read_adapter(platform: &str, table: &Map<String, Value>, names: &Names) -> Result<Adapter, String> {
    if !(3..=11).any(|number| platform == format!("P{number}")) {
        return Err("is of no platform that needs an adapter: P3 to P11".to_owned());
    }
    let mut table = expand(table);
    let chat = chat_keys::take_chat(&mut table, |table| read_adapter(platform, table, names))?;
    let (is_chat, known) = (chat_keys::is_chat_table(&table), |key: &str| KEYS.contains(&key));
    if is_chat && let Some(other) = table.keys().find(|key| known(key) && !chat_keys::KEYS.contains(&key.as_str())) {
        return Err(format!("has no setting {other:?} with transport = \"http_chat\""));
    }
    if let Some(unknown) =
        table.keys().find(|key| !(if is_chat { chat_keys::KEYS.contains(&key.as_str()) } else { known(key) }))
    {
        return Err(format!("has no setting {unknown:?}"));
    }
    let preset = preset_of(&table)?;
    let mut settings: Map<String, Value> =
        serde_json::from_str(preset.settings).map_err(|error| format!("preset {}: {error}", preset.name))?;
    for (key, value) in &table {
        match (key.as_str(), settings.get_mut(key)) {
            ("headers" | "session_headers" | "session_body" | "tool_answers", Some(known)) => merge(known, value),
            _ => drop(settings.insert(key.clone(), value.clone())),
        }
    }
    let is_asked_by_get = settings.get("session_method").is_some_and(|method| method == "GET");
    if (!settings.contains_key("session_url") || is_asked_by_get)
        && let Some(more) = settings.remove("session_body")
    {
        add_to_first(&mut settings, &more)?;
    }
    let adapter =
        Adapter { platform: platform.to_owned(), preset, settings, given: table.keys().cloned().collect(), chat };
    adapter.check(names)?;
    Ok(adapter)
}

/// Merges members into the first message.
fn add_to_first(settings: &mut Map<String, Value>, more: &Value) -> Result<(), String> {
    let first = match settings.get_mut("first") {
        Some(Value::Array(messages)) => messages.first_mut(),
        first => first,
    };
    let first = first.ok_or("session_body needs a session_url, or a first message that it is merged into")?;
    merge(first, more);
    Ok(())
}

fn preset_of(table: &Map<String, Value>) -> Result<&'static Preset, String> {
    let settings = Table::new("", table);
    let is_chat = chat_keys::is_chat_table(table);
    let name = match (settings.text("preset")?, settings.text("transport")?) {
        (Some(name), None | Some(HTTP_CHAT)) if is_chat && name != HTTP_CHAT => name,
        (Some(_), Some(_)) if is_chat => return Err("transport does not fit the preset".to_owned()),
        (Some(_), Some(HTTP_CHAT)) => return Err("transport does not fit the preset".to_owned()),
        (Some(name), None | Some("websocket")) if Transport::parse(name).is_none() && name != HTTP_CHAT => name,
        (None, Some(name)) if Transport::parse(name).is_some() || name == HTTP_CHAT => name,
        (None, Some(other)) => {
            let known = "websocket, webrtc, room, sip and http_chat are possible";
            return Err(format!("transport {other:?} is unknown; {known}"));
        }
        (Some(_), Some(_)) => return Err("a preset is of transport \"websocket\"".to_owned()),
        _ => return Err("needs a preset, or a transport: websocket, webrtc, room, sip or http_chat".to_owned()),
    };
    let found = PRESETS.iter().find(|preset| preset.name == name);
    found.ok_or_else(|| format!("preset {name:?} is none of {}", Adapter::presets().collect::<Vec<_>>().join(", ")))
}

/// Returns settings with tables in tables: the keys of a file are joined by dots below the first one. A text that is
/// JSON of an object or a list is read as such.
pub(super) fn expand(table: &Map<String, Value>) -> Map<String, Value> {
    let mut made = Map::new();
    for (key, value) in table {
        let value = match value {
            Value::Object(members) => {
                let mut nested = Value::Object(Map::new());
                for (path, member) in members {
                    let wrapped = match key.as_str() {
                        // Names of headers and tools are whole, dots included, and their values are texts.
                        "headers" | "session_headers" | "tool_answers" => json!({ path.as_str(): member }),
                        "formats" => json!({ path.as_str(): expand_text(member) }),
                        _ => path.rsplit('.').fold(expand_text(member), |inner, key| json!({ key: inner })),
                    };
                    merge(&mut nested, &wrapped);
                }
                nested
            }
            value => expand_text(value),
        };
        made.insert(key.clone(), value);
    }
    made
}

fn expand_text(value: &Value) -> Value {
    let text = value
        .as_str()
        .map(str::trim)
        .filter(|text| (text.starts_with('{') && !text.starts_with("{{")) || text.starts_with('['));
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| value.clone())
}

impl Adapter {
    /// Checks everything that can be checked without a call.
    fn check(&self, names: &Names) -> Result<(), String> {
        let settings = Table::new("", &self.settings);
        for (key, value) in &self.settings {
            if key != "tool_answers" {
                places(value, &mut |name| self.check_name(key, name, names))?;
            }
        }
        self.check_addresses()?;
        self.check_auth()?;
        if !matches!(settings.text("session_method")?, None | Some("GET" | "POST")) {
            return Err("session_method is neither GET nor POST".to_owned());
        }
        for key in ["url_pointer", "token_pointer", "id_pointer"] {
            if settings.pointer(key)?.is_some() && !self.needs_session() {
                return Err(format!("{key} has no effect without session_url"));
            }
        }
        for key in ["headers", "session_headers"] {
            check_headers(key, settings.texts(key)?.iter().map(|(name, _)| *name))?;
        }
        if self.is_chat() {
            return self.check_chat();
        }
        let uses_format = Value::Object(self.settings.clone()).to_string().contains("audio.format");
        if uses_format && self.settings.contains_key("formats") && self.format().is_none() {
            let known = self.settings["formats"].as_object().map(|formats| formats.keys().cloned().collect::<Vec<_>>());
            let known = known.unwrap_or_default().join(", ");
            return Err(format!("encoding and rate fit none of the formats of the protocol: {known}"));
        }
        self.check_rules()
    }

    fn check_rules(&self) -> Result<(), String> {
        let rules: Rules = rules_of(&self.platform, self.preset.name, &self.settings)?;
        let greets = self.given.iter().any(|key| key == "agent_first") && rules.greeting.is_empty();
        if greets && self.settings["agent_first"] == true {
            return Err("agent_first has no effect without agent_first_message".to_owned());
        }
        Ok(())
    }

    fn check_addresses(&self) -> Result<(), String> {
        let settings = Table::new("", &self.settings);
        ["url", "session_url", "url_pointer"].iter().try_for_each(|key| settings.text(key).map(drop))?;
        self.check_ways()?;
        self.check_hosts()
    }

    /// Checks that each address has a host of its own, and encryption where it is not on this machine.
    pub(super) fn check_hosts(&self) -> Result<(), String> {
        for (key, url, schemes) in self.addresses() {
            let (base, rest) = split_base(&self.platform, url);
            // Fields that are addresses by their meaning: a whole one, and one that may also be a host.
            let base = base.replace("{{ ", "{{").replace(" }}", "}}");
            let known = match self.platform.as_str() {
                "P8" if base == "{{agent.P8_base_url}}" && !rest.starts_with(is_of_host) => continue,
                "P11" if base == P11_HOST => continue,
                "P11" => base.replacen(&format!("://{P11_HOST}"), "://host.example", 1),
                _ => base,
            };
            if known.contains("{{") {
                return Err(format!("{key} has a place in its scheme, host or port"));
            }
            let filled = fill_text(rest, &|_| Some(Value::Null), &|text| text);
            check_scheme(&format!("{known}{filled}"), schemes).map_err(|why| format!("{key} {why}"))?;
        }
        Ok(())
    }

    pub(super) fn check_name(&self, key: &str, name: &str, names: &Names) -> Result<(), String> {
        let is_later = LATER.iter().any(|(later, start)| {
            let is_whole = start.ends_with(char::is_alphabetic);
            *later == key && if is_whole { name == *start } else { name.starts_with(start) }
        });
        let known = |fields: &[String], field: &str| fields.iter().any(|known| known == field);
        let is_known = match name.split_once('.') {
            Some(("agent", field)) => field == "id" || known(&names.agent, field),
            Some(("integration", _)) if self.has_agents_host() => {
                return Err(format!("{key}: {{{{{name}}}}} cannot go to a host that the agent names"));
            }
            Some(("integration", field)) => field == "key" || known(&names.integration, field),
            Some(("digital_human", field)) => {
                known(&names.digital_human, field) || (field == "sip_uri" && key == "place")
            }
            Some(("offer", field)) => field == "sdp" && key == "offer",
            Some(("call", field)) | Some(("session", field)) if key == "after" => field == "id",
            Some(("result" | "conversation", field)) => field == "id",
            Some(("message", field)) if self.is_chat() => chat_keys::takes_part(key, field),
            Some(("session", field)) => {
                let is_before = key.starts_with("session_") || key == "auth" || key == "place";
                (field == "id" || field == "token") && self.needs_session() && !is_before
            }
            Some(("audio", field)) => {
                let has_formats = self.settings.contains_key("formats");
                matches!(field, "encoding" | "rate" | "agent_rate") || (field == "format" && has_formats)
            }
            _ => false,
        };
        if is_known || is_later { Ok(()) } else { Err(format!("{key}: nothing is called {{{{{name}}}}}")) }
    }
}

/// True for a character that goes on with the host before it.
fn is_of_host(c: char) -> bool {
    !matches!(c, '/' | '?' | '#')
}

/// Checks that settings may set these headers.
pub(super) fn check_headers<'n>(key: &str, mut names: impl Iterator<Item = &'n str>) -> Result<(), String> {
    let reserved = |name: &&str| {
        let name = name.to_ascii_lowercase();
        let own = ["host", "connection", "upgrade", "x-simulation-result-id"].contains(&name.as_str());
        own || name.starts_with("sec-websocket-") || name.starts_with("content-") || !is_header_name(&name)
    };
    names.find(reserved).map_or(Ok(()), |name| Err(format!("{key}: {name:?} cannot be set")))
}

pub(super) fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
}
