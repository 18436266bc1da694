//! Adapters of platforms that are written to over HTTP (`transport = "http_chat"`): the request that carries a message,
//! the answer to it, and messages that the platform posts by itself. Pure: nothing is sent here.

use serde_json::{Map, Value};
use url::Url;

use super::adapter::{Adapter, Facts, SessionReply, SessionRequest};
use super::address::split_base;
use super::chat_keys::HTTP_CHAT;
use super::fill::{fill, fill_text, merge, plain};
use super::rules::Table;
use super::when::{find_all, text_at};

/// Settings of the table `tool`.
const TOOL_KEYS: [&str; 4] = ["list", "name", "arguments", "output"];
/// Settings of the table `inbound`.
const INBOUND_KEYS: [&str; 4] = ["conversation_pointer", "text_pointer", "id_pointer", "end_pointer"];
/// Methods of the request that carries a message.
const METHODS: [&str; 3] = ["POST", "PUT", "PATCH"];
/// Largest number of tool calls that are read from one answer.
const MAX_CALLS: usize = 100;

/// A message to the agent.
#[derive(Clone, Copy, Debug)]
pub struct ChatMessage<'a> {
    /// Identifier, the same in every attempt.
    pub id: &'a str,
    /// Words of the message; empty in the one that asks the agent to begin.
    pub text: &'a str,
    /// True if no message follows.
    pub ends: bool,
    /// True if no message came before.
    pub is_first: bool,
}

/// A tool that the agent called.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatCall {
    /// Name of the tool.
    pub name: String,
    /// Arguments of the call, if they are an object.
    pub parameters: Option<Map<String, Value>>,
    /// Result of the call; null where the answer has none.
    pub output: Value,
}

/// The answer to a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatReply {
    /// Words of the agent, its messages joined by line feeds; `None`: it is silent.
    pub text: Option<String>,
    /// True if the agent ends the conversation.
    pub ends: bool,
    /// Tools that it called.
    pub calls: Vec<ChatCall>,
}

/// A message that the platform posted by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inbound {
    /// The platform's name of the conversation: what this side sent as `conversation.id` or `result.id`, or the id of
    /// the session.
    pub conversation: String,
    /// Words of the message; may be empty.
    pub text: String,
    /// Identifier by which a repeat is recognised.
    pub id: Option<String>,
    /// True if it ends the conversation.
    pub ends: bool,
}

impl Adapter {
    /// True if the platform is written to over HTTP; else it is called.
    pub fn is_chat(&self) -> bool {
        self.setting("transport").is_some_and(|transport| transport == HTTP_CHAT)
    }

    /// Returns the adapter by which agents of mode TEXT are written to; `None`: this one only calls.
    pub fn writing(&self) -> Option<&Adapter> {
        if self.is_chat() { Some(self) } else { self.chat.as_deref() }
    }

    /// True if answers come as posts of the platform.
    pub fn is_asynchronous(&self) -> bool {
        self.setting("inbound").is_some()
    }

    /// True if the agent can be asked to begin.
    pub fn can_ask_to_begin(&self) -> bool {
        self.setting("agent_first_message").is_some()
    }

    /// Returns host and port of the address that messages go to.
    pub fn chat_target(&self, facts: &Facts) -> Option<String> {
        let url = self.setting("url").and_then(Value::as_str)?;
        let value = |name: &str| self.value(name, facts, &SessionReply::default());
        let base = fill_text(split_base(self.platform(), url).0, &value, &|text| text);
        let url = Url::parse(&base).ok()?;
        Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
    }

    /// Returns the request that carries a message.
    ///
    /// # Errors
    /// A value of the agent that cannot stand where the settings put it.
    pub fn chat_request(
        &self,
        facts: &Facts,
        session: &SessionReply,
        message: ChatMessage<'_>,
    ) -> Result<SessionRequest, String> {
        let value = |name: &str| match name {
            "message.id" => Some(message.id.into()),
            "message.text" => Some(message.text.into()),
            "message.ends" => Some(message.ends.into()),
            _ => self.value(name, facts, session),
        };
        let begins = message.text.is_empty() && !message.ends;
        let asks = self.setting("agent_first_message").filter(|_| begins);
        let mut body = asks.or(self.setting("body")).map(|body| fill(body, &value));
        let more = self.setting("first_body").filter(|_| message.is_first).map(|more| fill(more, &value));
        if let (Some(body), Some(more)) = (&mut body, more.filter(has_content)) {
            merge(body, &more);
        }
        // A session's own token stands for this side from then on.
        let has_token = self.setting("token_pointer").is_some();
        let mut headers = if has_token { Vec::new() } else { self.auth(facts)? };
        let own = self.headers("headers", &value)?;
        headers.retain(|(name, _)| !own.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
        headers.extend(own);
        headers.retain(|(_, value)| !value.is_empty());
        let url = self.setting("url").and_then(Value::as_str).ok_or("url is not set")?;
        let method = self.setting("method").and_then(Value::as_str).unwrap_or(METHODS[0]);
        Ok(SessionRequest {
            method: method.to_owned(),
            url: self.address("url", url, &value, ["http", "https"])?,
            headers,
            body: body.map(|body| body.to_string()).unwrap_or_default(),
        })
    }

    /// Reads the answer to a message.
    ///
    /// # Errors
    /// The setting that the answer has no value for, or one of another form, without the answer's text.
    pub fn read_reply(&self, answer: &Value) -> Result<ChatReply, String> {
        let text_of = |key: &str| self.setting(key).and_then(Value::as_str);
        let ends = text_of("end_pointer").is_some_and(|pointer| is_set_at(answer, pointer));
        let calls = self.calls(answer);
        let Some(pointer) = text_of("reply_pointer") else { return Ok(ChatReply { text: None, ends, calls }) };
        let is_silent = ends || !calls.is_empty();
        let text = match words_at(answer, pointer, text_of("reply_if")) {
            Ok(text) => text,
            Err(Unread::Missing) if is_silent => None,
            Err(Unread::Missing) => return Err(format!("its answer has nothing at {pointer:?} (reply_pointer)")),
            Err(Unread::Form(form)) => {
                return Err(format!("its answer has {form} and no text at {pointer:?} (reply_pointer)"));
            }
        };
        Ok(ChatReply { text, ends, calls })
    }

    fn calls(&self, answer: &Value) -> Vec<ChatCall> {
        let Some(rule) = self.setting("tool").and_then(Value::as_object) else { return Vec::new() };
        let pointer = |key: &str| rule.get(key).and_then(Value::as_str).unwrap_or_default();
        let at = |call: &Value, key: &str| match pointer(key) {
            "" => Value::Null,
            pointer => find_all(call, pointer).first().copied().cloned().unwrap_or_default(),
        };
        let read = |call: &Value| {
            let name = text_at(call, pointer("name"));
            let parameters = match at(call, "arguments") {
                Value::String(text) => serde_json::from_str(&text).unwrap_or_default(),
                other => other,
            };
            let parameters = parameters.as_object().cloned();
            (!name.is_empty()).then(|| ChatCall { name, parameters, output: at(call, "output") })
        };
        find_all(answer, pointer("list")).into_iter().filter_map(read).take(MAX_CALLS).collect()
    }

    /// Reads a message that the platform posted by itself.
    ///
    /// # Errors
    /// The setting that the message has no value for, or one of another form, without the message's text.
    pub fn read_inbound(&self, message: &Value) -> Result<Inbound, String> {
        let rule = self.setting("inbound").and_then(Value::as_object).ok_or("the adapter has no setting inbound")?;
        let pointer = |key: &str| rule.get(key).and_then(Value::as_str);
        let scalar = |key: &str| pointer(key).map(|pointer| text_at(message, pointer)).filter(|text| !text.is_empty());
        let missing = |key: &str| format!("nothing at {:?} (inbound.{key})", pointer(key).unwrap_or_default());
        let conversation = scalar("conversation_pointer").ok_or_else(|| missing("conversation_pointer"))?;
        let ends = pointer("end_pointer").is_some_and(|pointer| is_set_at(message, pointer));
        let place = pointer("text_pointer").unwrap_or_default();
        let text = match words_at(message, place, None) {
            Ok(text) => text.unwrap_or_default(),
            Err(Unread::Missing) if ends => String::new(),
            Err(Unread::Missing) => return Err(missing("text_pointer")),
            Err(Unread::Form(form)) => return Err(format!("{form} and no text at {place:?} (inbound.text_pointer)")),
        };
        Ok(Inbound { conversation, text, id: scalar("id_pointer"), ends })
    }

    /// Checks the settings that only this transport has.
    pub(super) fn check_chat(&self) -> Result<(), String> {
        let settings = Table::new("", self.settings());
        if !settings.text("method")?.is_none_or(|method| METHODS.contains(&method)) {
            return Err(format!("method is none of {}", METHODS.join(", ")));
        }
        if settings.text("url")?.is_none() {
            return Err("needs a url".to_owned());
        }
        for (key, is_needed) in [("body", true), ("agent_first_message", false), ("first_body", false)] {
            match self.setting(key) {
                Some(Value::Object(_) | Value::Array(_)) => {}
                Some(_) => return Err(format!("{key} must be a table")),
                None if is_needed => return Err(format!("needs a {key}")),
                None => {}
            }
        }
        let inbound = self.check_table("inbound", &INBOUND_KEYS, &INBOUND_KEYS[..2])?;
        // An address of its own is made for an agent of this platform alone.
        if inbound && self.platform() != "P11" {
            return Err("inbound is of P11 alone: other agents have no address that their platform posts to".to_owned());
        }
        self.check_table("tool", &TOOL_KEYS, &["name"])?;
        match (settings.text("reply_pointer")?, inbound) {
            (None, false) => return Err("needs a reply_pointer, or a table inbound".to_owned()),
            (Some(_), true) => return Err("reply_pointer has no effect with a table inbound".to_owned()),
            (pointer, _) => check_pointer("reply_pointer", pointer)?,
        }
        if settings.text("reply_if")?.is_some() && settings.text("reply_pointer")?.is_none_or(|at| !at.contains("/*")) {
            return Err("reply_if needs a reply_pointer with a list, such as \"/*/text\"".to_owned());
        }
        check_condition("reply_if", settings.text("reply_if")?)?;
        check_condition("end_pointer", settings.text("end_pointer")?)
    }

    /// Checks a table of pointers; returns false if it is not there.
    fn check_table(&self, key: &str, keys: &[&str], needed: &[&str]) -> Result<bool, String> {
        let table = match self.setting(key) {
            None => return Ok(false),
            Some(Value::Object(table)) => table,
            Some(_) => return Err(format!("{key} must be a table")),
        };
        if let Some(unknown) = table.keys().find(|name| !keys.contains(&name.as_str())) {
            return Err(format!("{key} has no setting {unknown:?}; it has {}", keys.join(", ")));
        }
        if let Some(missing) = needed.iter().find(|name| !table.contains_key(**name)) {
            return Err(format!("{key}.{missing} is missing"));
        }
        for (name, value) in table {
            let (place, text) = (format!("{key}.{name}"), value.as_str());
            let text = text.ok_or_else(|| format!("{place} must be a string"))?;
            match name.as_str() {
                "end_pointer" => check_condition(&place, Some(text))?,
                _ => check_pointer(&place, Some(text))?,
            }
        }
        Ok(true)
    }
}

/// True if there is more in a value than tables without members.
fn has_content(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().any(has_content),
        Value::Null => false,
        _ => true,
    }
}

fn check_pointer(key: &str, pointer: Option<&str>) -> Result<(), String> {
    match pointer {
        Some(pointer) if !pointer.is_empty() && !pointer.starts_with('/') => {
            Err(format!("{key} must be a pointer such as \"/a/b\" or \"/list/*/text\""))
        }
        _ => Ok(()),
    }
}

fn check_condition(key: &str, condition: Option<&str>) -> Result<(), String> {
    let is_test = |test: &str| test.trim().starts_with('/');
    match condition {
        Some(condition) if !condition.split('|').all(is_test) => {
            Err(format!("{key} must be a pointer such as \"/a/b\", or \"/a/b=TEXT\", joined by \"|\""))
        }
        _ => Ok(()),
    }
}

/// True if one of the tests `/A/B` or `/A/B=TEXT` that `|` joins holds. The first holds for a value that is neither
/// null, false, an empty text nor an empty list.
fn is_set_at(message: &Value, condition: &str) -> bool {
    condition.split('|').any(|test| {
        let (pointer, expect) = match test.split_once('=') {
            Some((pointer, expect)) => (pointer.trim(), Some(expect.trim())),
            None => (test.trim(), None),
        };
        find_all(message, pointer).into_iter().any(|value| match (expect, value) {
            (Some(expect), value) => plain(value) == expect,
            (None, Value::Null | Value::Bool(false)) => false,
            (None, Value::String(text)) => !text.is_empty(),
            (None, Value::Array(items)) => !items.is_empty(),
            (None, _) => true,
        })
    })
}

/// Reason why an answer has no words at a pointer.
enum Unread {
    Missing,
    Form(&'static str),
}

/// Returns the texts at a pointer, joined by line feeds; `None` where there are lists without any. `only`: the items of
/// the first list that count.
fn words_at(message: &Value, pointer: &str, only: Option<&str>) -> Result<Option<String>, Unread> {
    let (fixed, rest) = pointer.split_once("/*").map_or((pointer, None), |(fixed, rest)| (fixed, Some(rest)));
    let start = message.pointer(fixed).ok_or(Unread::Missing)?;
    let found = match (rest, start) {
        (None, start) => vec![start],
        (Some(rest), Value::Array(items)) => {
            let counts = |item: &&Value| only.is_none_or(|only| is_set_at(item, only));
            items.iter().filter(counts).flat_map(|item| find_all(item, rest)).collect()
        }
        (Some(_), Value::Null) => Vec::new(),
        (Some(_), other) => return Err(Unread::Form(form_of(other))),
    };
    let mut texts: Vec<&str> = Vec::new();
    for value in found {
        let parts = match value {
            Value::Array(items) => items.iter().collect(),
            value => vec![value],
        };
        for part in parts {
            match part {
                Value::String(text) => texts.push(text),
                Value::Null => {}
                other => return Err(Unread::Form(form_of(other))),
            }
        }
    }
    texts.retain(|text| !text.is_empty());
    Ok((!texts.is_empty()).then(|| texts.join("\n")))
}

fn form_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
