//! Definitions of agents that their platforms hold: the settings `[autosync.NAME]`, the request for a definition, and
//! the prompt, the name and the version in its answer. Nothing is sent here.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::adapter::{Adapter, Facts, Names, SessionReply, SessionRequest, expand};
use super::definition_rows::{DefinitionRow, ROWS};
use super::fill::{merge, places};
use super::presets::Preset;
use super::rules::Table;
use super::when::{When, find_all, text_at};
use crate::websocket::dialect::DialectError;

/// Name of the request among those of an adapter.
const REQUEST: &str = "definition";

/// Settings of a source.
const KEYS: [&str; 11] =
    ["platform", "preset", "url", "method", "headers", "body", "auth", "prompt", "prompt_if", "name", "version"];

/// Settings of the request.
const REQUEST_KEYS: [&str; 4] = ["url", "method", "headers", "body"];

/// Most characters of a name, and of a version.
const MOST_CHARS: usize = 200;

/// Most pointers to the parts of one prompt.
const MOST_PARTS: usize = 16;

/// Stands in the place of a preset: a source holds no calls.
static NO_CALLS: Preset = Preset { name: "autosync", settings: "{}", assumed: &[] };

/// Definition of an agent.
#[derive(Clone, PartialEq, Eq)]
pub struct Definition {
    /// Text of the prompt.
    pub prompt: String,
    /// Name of the agent, where the answer has one.
    pub name: Option<String>,
    /// Version of the definition, where the answer has one.
    pub version: Option<String>,
}

impl std::fmt::Debug for Definition {
    /// Writes the version without the words.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Definition({:?})", self.version)
    }
}

/// Way to read the definitions of agents: `[autosync.NAME]`, on top of the row of a preset.
#[derive(Clone, Debug)]
pub struct DefinitionSource {
    adapter: Arc<Adapter>,
    row: Option<&'static DefinitionRow>,
    /// Pointers to the parts of the prompt.
    prompt: Vec<String>,
    only: When,
    name: String,
    version: String,
}

impl DefinitionSource {
    /// Reads the table `[autosync.NAME]`; its texts may fill in `names`. `of_platform` returns the adapter of a
    /// platform.
    ///
    /// # Errors
    /// A setting that is unknown, missing, or of a wrong type or value; an unknown name in a template; an address
    /// without encryption that is not on this machine.
    pub fn parse(
        name: &str,
        table: &Map<String, Value>,
        of_platform: &dyn Fn(&str) -> Option<Arc<Adapter>>,
        names: &Names,
    ) -> Result<DefinitionSource, DialectError> {
        let read = || {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            if name == "CUSTOM" || name.len() > 64 || !name.chars().all(is_plain) {
                return Err("is no name: letters, digits, _ and - are possible, and CUSTOM is none".to_owned());
            }
            let table = expand(table);
            let settings = Table::new("", &table);
            if let Some(unknown) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
                return Err(format!("has no setting {unknown:?}; it has {}", KEYS.join(", ")));
            }
            let platform = match settings.text("platform")? {
                None if is_platform(name) => name,
                None => "",
                Some(_) if is_platform(name) => return Err("platform has no effect: the name says it".to_owned()),
                Some(platform) if is_platform(platform) => platform,
                Some(_) => return Err("platform is none of P3 to P11".to_owned()),
            };
            let known = of_platform(platform);
            let (row, may_have_address) = match (settings.text("preset")?, &known) {
                (Some(preset), _) => (Some(row_of(preset).ok_or_else(|| unknown_preset(preset))?), true),
                (None, Some(adapter)) => (row_of(adapter.preset()), !has_moved(adapter)),
                (None, None) => (None, true),
            };
            read_source(platform, row, may_have_address, &table, names)
        };
        read().map_err(|why| DialectError(format!("[autosync.{name}] {why}")))
    }

    /// Returns the way to read definitions that the preset of an adapter has; `None` where it has none, or where the
    /// settings have to name the address.
    pub fn of_preset(adapter: &Adapter, names: &Names) -> Option<DefinitionSource> {
        let row = row_of(adapter.preset())?;
        read_source(adapter.platform(), Some(row), !has_moved(adapter), &Map::new(), names).ok()
    }

    /// Returns the means of the request: credentials, and where it goes.
    pub fn adapter(&self) -> &Arc<Adapter> {
        &self.adapter
    }

    /// Returns the token of the platform whose agents are read; empty: fields of any agent are filled in.
    pub fn platform(&self) -> &str {
        self.adapter.platform()
    }

    /// Returns the name of the preset whose row is used.
    pub fn preset(&self) -> Option<&'static str> {
        self.row.map(|row| row.preset)
    }

    /// Returns the defaults in use that no documentation confirms.
    pub fn assumptions(&self) -> &'static [&'static str] {
        self.row.map_or(&[], |row| row.assumed)
    }

    /// Returns the first place of a template for which there is no value, such as `agent.id` or `integration.key`.
    pub fn missing(&self, facts: &Facts) -> Option<String> {
        let none = SessionReply::default();
        let is_empty = |value: Option<Value>| match value {
            None | Some(Value::Null) => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(_) => false,
        };
        let mut missing = None;
        let mut look = |name: &str| {
            if missing.is_none() && is_empty(self.adapter.value(name, facts, &none)) {
                missing = Some(name.to_owned());
            }
            Ok(())
        };
        // Their form was checked.
        let _ = self.adapter.settings().values().try_for_each(|value| places(value, &mut look));
        let lacks_key = self.adapter.setting("auth").is_some() && is_empty(self.adapter.stored_key(facts).cloned());
        let key = if self.adapter.has_agents_host() { "agent.key" } else { "integration.key" };
        missing.or_else(|| lacks_key.then(|| key.to_owned()))
    }

    /// Reads the answer to the request.
    ///
    /// # Errors
    /// The setting that the answer has no value for, without the answer's text.
    pub fn read_answer(&self, answer: &[u8]) -> Result<Definition, String> {
        let answer: Value = serde_json::from_slice(answer).map_err(|_| "its answer is no JSON".to_owned())?;
        let mut parts = Vec::new();
        for pointer in &self.prompt {
            for found in self.find_parts(&answer, pointer) {
                match found {
                    Value::String(text) => parts.push(text.as_str()),
                    Value::Null => {}
                    _ => return Err(format!("its answer has no text at {pointer} (prompt)")),
                }
            }
        }
        if parts.is_empty() {
            return Err(format!("its answer has nothing at {} (prompt)", self.prompt.join(", ")));
        }
        let short = |pointer: &str| {
            let text: String = text_at(&answer, pointer).trim().chars().take(MOST_CHARS).collect();
            Some(text).filter(|text| !text.is_empty())
        };
        Ok(Definition { prompt: parts.join("\n\n"), name: short(&self.name), version: short(&self.version) })
    }

    /// Returns the values at a pointer; of the items of its last list those for which the condition holds.
    fn find_parts<'a>(&self, answer: &'a Value, pointer: &str) -> Vec<&'a Value> {
        match pointer.rsplit_once("/*").filter(|_| self.only.is_set()) {
            None => find_all(answer, pointer),
            Some((list, rest)) => {
                let items = find_all(answer, &format!("{list}/*")).into_iter();
                items.filter(|item| self.only.holds(item)).flat_map(|item| find_all(item, rest)).collect()
            }
        }
    }
}

impl Adapter {
    /// Returns the request for the definition of an agent.
    ///
    /// # Errors
    /// A value of the agent that cannot stand where the settings put it.
    pub fn definition_request(&self, facts: &Facts) -> Result<SessionRequest, String> {
        self.request(REQUEST, facts, &SessionReply::default(), true).map_err(without_prefix)
    }
}

/// True for the token of a platform that has adapters.
fn is_platform(name: &str) -> bool {
    (3..=11).any(|number| name == format!("P{number}"))
}

fn row_of(preset: &str) -> Option<&'static DefinitionRow> {
    ROWS.iter().find(|row| row.preset == preset)
}

fn unknown_preset(preset: &str) -> String {
    let known = ROWS.iter().map(|row| row.preset).collect::<Vec<_>>().join(", ");
    format!("preset {preset:?} is none of {known}")
}

/// True if an adapter has another server in the place of its preset's: that one gets no request for definitions.
fn has_moved(adapter: &Adapter) -> bool {
    let own: Value = serde_json::from_str(adapter.preset.settings).unwrap_or_default();
    ["url", "session_url"].iter().any(|key| own.get(*key).is_some_and(|url| adapter.setting(key) != Some(url)))
}

/// Returns a fault of a setting by the name that it has in the table.
fn without_prefix(why: String) -> String {
    why.replace(&format!("{REQUEST}."), "")
}

/// Reads the settings of a source, on top of those of a row. `may_have_address`: that of the row is used.
fn read_source(
    platform: &str,
    row: Option<&'static DefinitionRow>,
    may_have_address: bool,
    table: &Map<String, Value>,
    names: &Names,
) -> Result<DefinitionSource, String> {
    let mut settings: Map<String, Value> = match row {
        Some(row) => serde_json::from_str(row.settings).map_err(|error| format!("preset {}: {error}", row.preset))?,
        None => Map::new(),
    };
    if !may_have_address {
        settings.remove("url");
    }
    for (key, value) in table {
        match (key.as_str(), settings.get_mut(key)) {
            ("headers", Some(known)) => merge(known, value),
            _ => drop(settings.insert(key.clone(), value.clone())),
        }
    }
    let (prompt, only) = read_prompt(&settings)?;
    let read = Table::new("", &settings);
    let (name, version) = (read.pointer("name")?.unwrap_or_default(), read.pointer("version")?.unwrap_or_default());
    let mut request = Map::from_iter([("method".to_owned(), json!("GET"))]);
    request.extend(settings.iter().filter(|(key, _)| REQUEST_KEYS.contains(&key.as_str())).map(own));
    let mut made = Map::from_iter([(REQUEST.to_owned(), Value::Object(request))]);
    made.extend(settings.get_key_value("auth").map(own));
    let adapter =
        Adapter { platform: platform.to_owned(), preset: &NO_CALLS, settings: made, given: Vec::new(), chat: None };
    check(&adapter, names).map_err(without_prefix)?;
    Ok(DefinitionSource { adapter: Arc::new(adapter), row, prompt, only, name, version })
}

fn own((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

/// Returns the pointers to the parts of the prompt, and the condition on the items of their lists.
fn read_prompt(settings: &Map<String, Value>) -> Result<(Vec<String>, When), String> {
    let items = match settings.get("prompt") {
        None => return Err("prompt is missing".to_owned()),
        Some(Value::Array(items)) => items.clone(),
        Some(one) => vec![one.clone()],
    };
    let is_pointer = |text: &&str| text.starts_with('/');
    let pointers: Option<Vec<String>> =
        items.iter().map(|item| item.as_str().filter(is_pointer).map(str::to_owned)).collect();
    let pointers = pointers.filter(|pointers| (1..=MOST_PARTS).contains(&pointers.len())).ok_or_else(|| {
        format!("prompt must be a pointer such as \"/a/b\", or a list of at most {MOST_PARTS} pointers")
    })?;
    let only = Table::new("", settings).when("prompt_if")?;
    if only.is_set() && pointers.iter().any(|pointer| !pointer.contains("/*")) {
        return Err("prompt_if needs a prompt with a list, such as \"/messages/*/content\"".to_owned());
    }
    Ok((pointers, only))
}

/// Checks everything that can be checked without an agent.
fn check(adapter: &Adapter, names: &Names) -> Result<(), String> {
    let has_platform = !adapter.platform().is_empty();
    for (key, value) in adapter.settings() {
        places(value, &mut |name| match name.split_once('.') {
            Some(("agent", "id") | ("integration", "key")) if !has_platform => {
                Err(format!("{{{{{name}}}}} needs a platform"))
            }
            Some(("agent" | "integration", _)) => adapter.check_name(key, name, names),
            _ => Err(format!("nothing is called {{{{{name}}}}}")),
        })?;
    }
    if adapter.setting("auth").is_some() && !has_platform {
        return Err("auth needs a platform, whose stored credentials it sends".to_owned());
    }
    adapter.check_request(REQUEST, &REQUEST_KEYS)?;
    adapter.check_hosts()?;
    adapter.check_auth()
}

#[cfg(test)]
mod tests;
