//! Rules of a platform's protocol, as they are read from settings: JSON in, what to look for and what to send out.

use serde_json::{Map, Value};

use super::fill::plain;
use super::secrets::Secrets;
use super::when::When;
use crate::websocket::voice::{Encoding, Wire};

/// Sampling rates of audio, in Hz.
const RATES: [u64; 6] = [8000, 16_000, 22_050, 24_000, 44_100, 48_000];

/// Shortest and longest chunk, in milliseconds.
const CHUNK_MS: std::ops::RangeInclusive<u64> = 10..=1000;

/// Place of audio in the messages of this side: the text before it and behind it; `None`: audio is binary.
pub(super) type AudioOut = Option<(String, String)>;

/// Place of audio in the messages of the platform.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AudioIn {
    pub(super) when: When,
    pub(super) pointer: String,
    /// Name of the item that the audio belongs to, and of the part of it.
    pub(super) item: Option<(String, String)>,
    /// Number by which a clear names audio.
    pub(super) event_id: Option<String>,
}

/// Messages that take audio back.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Clear {
    pub(super) when: When,
    /// Number up to which audio is not played any more.
    pub(super) event_id: Option<String>,
    /// Answer for each item of which something was not played.
    pub(super) answer: Vec<Value>,
}

/// Messages that hold the agent's words.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TextRule {
    pub(super) when: When,
    /// Place of a whole text.
    pub(super) pointer: Option<String>,
    /// Place of the next piece of a text.
    pub(super) delta: Option<String>,
    /// Message with which a text is whole; not set: each message holds a whole one.
    pub(super) end: When,
}

/// Messages that call a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ToolRule {
    pub(super) when: When,
    /// Calls in the message; empty: it is one itself.
    pub(super) list: String,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    /// Calls that this side answers; not set: all of them.
    pub(super) only: When,
    pub(super) answer: Vec<Value>,
    /// Message after which `then` is sent.
    pub(super) after: When,
    pub(super) then: Vec<Value>,
}

/// Messages that tell of an error.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ErrorRule {
    pub(super) when: When,
    pub(super) code: String,
    pub(super) message: String,
    /// Errors that end the call.
    pub(super) fatal: When,
}

/// Way in which a session that a limit of the platform ended goes on at a new connection.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ResumeRule {
    /// Messages that hold the handle of the session's latest state.
    pub(super) when: When,
    /// Pointer to the handle; one that is not there takes the known one back.
    pub(super) handle: String,
    /// Members that the first message of the new connection has besides, with `{{resume.handle}}`.
    pub(super) first: Value,
}

/// Rules of the protocol of one call.
#[derive(Clone, PartialEq)]
pub struct Rules {
    /// Name of the platform, such as `P4`.
    pub platform: String,
    /// Name of the preset; `websocket` for settings of their own.
    pub preset: &'static str,
    pub(super) out: Wire,
    pub(super) back: Wire,
    pub(super) chunk_ms: u32,
    pub(super) first_after: When,
    pub(super) first: Vec<Value>,
    pub(super) ready: When,
    pub(super) agreed: Option<(String, String)>,
    pub(super) greeting: Vec<Value>,
    pub(super) audio_out: AudioOut,
    pub(super) audio_in: Option<AudioIn>,
    pub(super) clear: Clear,
    pub(super) texts: Vec<TextRule>,
    pub(super) tools: Vec<ToolRule>,
    pub(super) tool_answers: Map<String, Value>,
    pub(super) errors: Vec<ErrorRule>,
    pub(super) ping: When,
    pub(super) pong: Vec<Value>,
    pub(super) end: When,
    pub(super) goodbye: Vec<Value>,
    pub(super) call_id: Option<(When, String)>,
    /// Messages that press a digit of this side; empty: it is a tone.
    pub(super) digit: Vec<Value>,
    /// Messages in which the agent presses digits, and their place.
    pub(super) digit_in: Option<(When, String)>,
    /// Messages that announce the end of a session by a limit of the platform.
    pub(super) limit: When,
    /// Code of the close by which such a limit ends a session.
    pub(super) limit_close: Option<u64>,
    pub(super) resume: Option<ResumeRule>,
    /// Texts that are written nowhere.
    pub(super) secrets: Secrets,
}

impl std::fmt::Debug for Rules {
    /// Writes no message: it may hold a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rules({}, {}, {:?}, {:?})", self.platform, self.preset, self.out, self.back)
    }
}

impl Rules {
    /// Returns a text without the secrets of the call.
    pub fn without_secrets(&self, text: String) -> String {
        self.secrets.hide(text)
    }

    /// True if digits of this side are messages.
    pub fn has_digits(&self) -> bool {
        !self.digit.is_empty()
    }

    /// True if a close of this code is the end of a session by a limit of the platform.
    pub fn closes_by_limit(&self, code: u16) -> bool {
        self.limit_close == Some(u64::from(code))
    }

    /// Returns the name by which an end of a call holds a kind of failure of this platform.
    pub fn fault(&self, kind: crate::fault::AdapterFault) -> String {
        format!("{} {}", self.platform, kind.as_str())
    }
}

/// Returns encodings and rates of both directions, and the length of chunks.
pub(super) fn wires(table: &Table<'_>) -> Result<(Wire, Wire, u32), String> {
    let encoding = match table.text("encoding")?.unwrap_or("L16") {
        "L16" => Encoding::L16Le,
        "PCMU" => Encoding::Pcmu,
        "PCMA" => Encoding::Pcma,
        other => return Err(format!("encoding {other:?} is none of L16, PCMU, PCMA")),
    };
    let rate = |key: &str| match table.number(key)? {
        Some(rate) if RATES.contains(&rate) => Ok(Some(rate as u32)),
        Some(rate) => Err(format!("{key} {rate} is none of {RATES:?}")),
        None => Ok(None),
    };
    let rate_hz = rate("rate")?.unwrap_or(16_000);
    let agent_rate_hz = rate("agent_rate")?.unwrap_or(rate_hz);
    let chunk_ms = table.number("chunk_ms")?.unwrap_or(20);
    if !CHUNK_MS.contains(&chunk_ms) || !chunk_ms.is_multiple_of(10) {
        return Err(format!("chunk_ms {chunk_ms} is not 10 to 1000 in steps of 10"));
    }
    Ok((Wire { encoding, rate_hz }, Wire { encoding, rate_hz: agent_rate_hz }, chunk_ms as u32))
}

/// Settings of an adapter, or a table in them, with its name for messages about faults.
pub(super) struct Table<'t> {
    place: String,
    members: &'t Map<String, Value>,
}

impl<'t> Table<'t> {
    pub(super) fn new(place: &str, members: &'t Map<String, Value>) -> Table<'t> {
        Table { place: place.to_owned(), members }
    }

    fn name(&self, key: &str) -> String {
        if self.place.is_empty() { key.to_owned() } else { format!("{}.{key}", self.place) }
    }

    fn refuse<T>(&self, key: &str, why: &str) -> Result<T, String> {
        Err(format!("{} {why}", self.name(key)))
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'t str>, String> {
        match self.members.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => self.refuse(key, "must be a string"),
        }
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, String> {
        match self.members.get(key) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(Some(number)),
                None => self.refuse(key, "must be a whole number"),
            },
        }
    }

    pub(super) fn flag(&self, key: &str) -> Result<bool, String> {
        match self.members.get(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => self.refuse(key, "must be true or false"),
        }
    }

    pub(super) fn texts(&self, key: &str) -> Result<Vec<(&'t str, String)>, String> {
        let Some(value) = self.members.get(key) else { return Ok(Vec::new()) };
        let Some(members) = value.as_object() else { return self.refuse(key, "must be a table of strings") };
        let read = |(name, value): (&'t String, &'t Value)| match value {
            Value::Object(_) | Value::Array(_) | Value::Null => self.refuse(key, "must be a table of strings"),
            value => Ok((name.as_str(), plain(value))),
        };
        members.iter().map(read).collect()
    }

    pub(super) fn pointer(&self, key: &str) -> Result<Option<String>, String> {
        match self.text(key)? {
            Some(pointer) if !pointer.starts_with('/') => self.refuse(key, "must be a pointer such as \"/a/b\""),
            pointer => Ok(pointer.map(str::to_owned)),
        }
    }

    pub(super) fn needed_pointer(&self, key: &str) -> Result<String, String> {
        match self.pointer(key)? {
            Some(pointer) => Ok(pointer),
            None => self.refuse(key, "is missing"),
        }
    }

    pub(super) fn when(&self, key: &str) -> Result<When, String> {
        let read = |text| When::parse(text).map_err(|why| format!("{}: {why}", self.name(key)));
        self.text(key)?.map_or_else(|| Ok(When::default()), read)
    }

    fn needed_when(&self, key: &str) -> Result<When, String> {
        let when = self.when(key)?;
        if when.is_set() { Ok(when) } else { self.refuse(key, "is missing") }
    }

    /// Returns a message, or a list of messages: objects.
    pub(super) fn messages(&self, key: &str) -> Result<Vec<Value>, String> {
        let messages = match self.members.get(key) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(messages)) => messages.clone(),
            Some(message) => vec![message.clone()],
        };
        let are_objects = messages.iter().all(Value::is_object);
        if are_objects { Ok(messages) } else { self.refuse(key, "must be a message, or a list of messages") }
    }

    /// Returns a table, or every table of a list, with these keys and no other ones. A string is a table's `type`.
    fn tables<T>(
        &self,
        key: &str,
        keys: &[&str],
        read: impl Fn(&Table<'_>) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let items: Vec<&Value> = match self.members.get(key) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => items.iter().collect(),
            Some(item) => vec![item],
        };
        let read_one = |item: &Value| {
            let members = match item {
                Value::Object(members) => members.clone(),
                Value::String(text) => Map::from_iter([("type".to_owned(), Value::String(text.clone()))]),
                _ => return self.refuse(key, "must be a table"),
            };
            match members.keys().find(|known| !keys.contains(&known.as_str())) {
                Some(unknown) => self.refuse(key, &format!("has no setting {unknown:?}; it has {}", keys.join(", "))),
                None => read(&Table::new(&self.name(key), &members)),
            }
        };
        items.into_iter().map(read_one).collect()
    }

    pub(super) fn table<T>(
        &self,
        key: &str,
        keys: &[&str],
        read: impl Fn(&Table<'_>) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let mut found = self.tables(key, keys, read)?;
        if found.len() > 1 { self.refuse(key, "must be one table") } else { Ok(found.pop()) }
    }
}

/// Place of the audio in a template, as it stands in JSON.
const AUDIO: &str = "\"{{audio}}\"";

/// Reads where this side's audio goes.
fn audio_out(table: &Table<'_>) -> Result<AudioOut, String> {
    let made = table.table("audio_out", &["type", "pointer", "template"], |table| {
        let template = match (table.messages("template")?.pop(), table.text("type")?, table.pointer("pointer")?) {
            (Some(template), None, None) => template,
            (None, kind, Some(pointer)) => message_at(kind, &pointer),
            _ => return Err("audio_out needs a template, or a pointer and perhaps a type".to_owned()),
        };
        let text = template.to_string();
        match text.split_once(AUDIO) {
            Some((before, after)) if !after.contains(AUDIO) => Ok((format!("{before}\""), format!("\"{after}"))),
            _ => Err("audio_out.template must have \"{{audio}}\" once, as the whole of a string".to_owned()),
        }
    })?;
    Ok(made)
}

/// Returns a message with the audio at a pointer.
fn message_at(kind: Option<&str>, pointer: &str) -> Value {
    let audio = Value::String("{{audio}}".to_owned());
    let wrapped = |value: Value, key: &str| Value::Object(Map::from_iter([(key.to_owned(), value)]));
    let mut message = pointer.rsplit('/').filter(|key| !key.is_empty()).fold(audio, wrapped);
    if let (Some(kind), Some(members)) = (kind, message.as_object_mut()) {
        let mut made = Map::from_iter([("type".to_owned(), Value::String(kind.to_owned()))]);
        made.append(members);
        *members = made;
    }
    message
}

fn read_audio_in(table: &Table<'_>) -> Result<AudioIn, String> {
    let (item, part) = (table.pointer("item")?, table.pointer("part")?);
    Ok(AudioIn {
        when: table.needed_when("type")?,
        pointer: table.needed_pointer("pointer")?,
        item: item.map(|item| (item, part.unwrap_or_default())),
        event_id: table.pointer("event_id")?,
    })
}

fn read_clear(table: &Table<'_>) -> Result<Clear, String> {
    Ok(Clear {
        when: table.needed_when("type")?,
        event_id: table.pointer("event_id")?,
        answer: table.messages("answer")?,
    })
}

fn read_text(table: &Table<'_>) -> Result<TextRule, String> {
    let rule = TextRule {
        when: table.needed_when("type")?,
        pointer: table.pointer("pointer")?,
        delta: table.pointer("delta")?,
        end: table.when("end")?,
    };
    match (&rule.pointer, &rule.delta, rule.end.is_set()) {
        (None, None, _) => Err("text needs a pointer or a delta".to_owned()),
        (_, Some(_), false) => Err("text with a delta needs an end".to_owned()),
        _ => Ok(rule),
    }
}

fn read_tool(table: &Table<'_>) -> Result<ToolRule, String> {
    Ok(ToolRule {
        when: table.needed_when("type")?,
        list: table.pointer("list")?.unwrap_or_default(),
        id: table.pointer("id")?.unwrap_or_default(),
        name: table.needed_pointer("name")?,
        arguments: table.pointer("arguments")?.unwrap_or_default(),
        only: table.when("if")?,
        answer: table.messages("answer")?,
        after: table.when("after")?,
        then: table.messages("then")?,
    })
}

fn read_error(table: &Table<'_>) -> Result<ErrorRule, String> {
    Ok(ErrorRule {
        when: table.needed_when("type")?,
        code: table.pointer("code")?.unwrap_or_default(),
        message: table.pointer("message")?.unwrap_or_default(),
        fatal: table.when("fatal")?,
    })
}

/// Reads the rules of an adapter's settings.
///
/// # Errors
/// Names the setting that cannot be used.
pub(super) fn rules_of(platform: &str, preset: &'static str, members: &Map<String, Value>) -> Result<Rules, String> {
    let table = &Table::new("", members);
    let (out, back, chunk_ms) = wires(table)?;
    let pair = |key: &str, keys: [&str; 2]| {
        table.table(key, &keys, |table| Ok((table.needed_pointer(keys[0])?, table.needed_pointer(keys[1])?)))
    };
    let end = table.table("end", &["type", "send"], |table| Ok((table.when("type")?, table.messages("send")?)))?;
    let (end, goodbye) = end.unwrap_or_default();
    let digit = table.table("digit", &["send", "type", "pointer"], |table| {
        let when = table.when("type")?;
        let place = if when.is_set() { Some((when, table.needed_pointer("pointer")?)) } else { None };
        Ok((table.messages("send")?, place))
    })?;
    let (digit, digit_in) = digit.unwrap_or_default();
    let limit = table.table("limit", &["type", "close"], |table| Ok((table.when("type")?, table.number("close")?)))?;
    let (limit, limit_close) = limit.unwrap_or_default();
    let resume = table.table("resume", &["type", "handle", "first"], |table| {
        let first = table.messages("first")?.into_iter().next().ok_or("resume.first is not set")?;
        Ok(ResumeRule { when: table.needed_when("type")?, handle: table.needed_pointer("handle")?, first })
    })?;
    if resume.is_some() && table.messages("first")?.is_empty() {
        return Err("resume has no effect without a first message".to_owned());
    }
    let greets = table.flag("agent_first")?;
    Ok(Rules {
        platform: platform.to_owned(),
        preset,
        out,
        back,
        chunk_ms,
        first_after: table.when("first_after")?,
        first: table.messages("first")?,
        ready: table.when("ready")?,
        agreed: pair("agreed", ["in", "out"])?,
        greeting: if greets { table.messages("agent_first_message")? } else { Vec::new() },
        audio_out: audio_out(table)?,
        audio_in: table.table("audio_in", &["type", "pointer", "item", "part", "event_id"], read_audio_in)?,
        clear: table.table("clear", &["type", "event_id", "answer"], read_clear)?.unwrap_or_default(),
        texts: table.tables("text", &["type", "pointer", "delta", "end"], read_text)?,
        tools: table.tables(
            "tool",
            &["type", "list", "id", "name", "arguments", "if", "answer", "after", "then"],
            read_tool,
        )?,
        tool_answers: table
            .texts("tool_answers")?
            .into_iter()
            .map(|(name, text)| (name.to_owned(), text.into()))
            .collect(),
        errors: table.tables("error", &["type", "code", "message", "fatal"], read_error)?,
        ping: table.when("ping")?,
        pong: table.messages("pong")?,
        end,
        goodbye,
        call_id: table.table("call_id", &["type", "pointer"], |table| {
            Ok((table.needed_when("type")?, table.needed_pointer("pointer")?))
        })?,
        digit,
        digit_in,
        limit,
        limit_close,
        resume,
        secrets: Secrets::default(),
    })
}
