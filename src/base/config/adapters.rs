//! `[adapters.Pn]`: voice-agent platforms that are spoken with by a preset, or by settings of their own; and
//! `[autosync.NAME]`: where the definitions of agents are read.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::Source;

/// Section of the adapters.
pub(super) const ADAPTERS: &str = "adapters";
/// Section of the sources of definitions.
pub(super) const AUTOSYNC: &str = "autosync";
/// Settings that may hold a secret, and are not shown.
const SECRETS: [&str; 12] = [
    "headers",
    "session_headers",
    "session_body",
    "body",
    "agent_first_message",
    "first",
    "tool_answers",
    "offer",
    "place",
    "after",
    "resume",
    "chat",
];
/// Settings that are addresses, whose queries are not shown.
const ADDRESSES: [&str; 2] = ["url", "session_url"];

/// Settings of an adapter as they were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdapterTable(pub Map<String, Value>);

impl Serialize for AdapterTable {
    /// Writes the settings; of one that may be secret only that it is set.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let shown = |(name, value): (&String, &Value)| {
            let shown = match (name.as_str(), value.as_str()) {
                (name, _) if SECRETS.contains(&name) => "(set)".into(),
                (name, Some(url)) if ADDRESSES.contains(&name) => match url.split_once('?') {
                    Some((start, _)) => format!("{start}?...").into(),
                    None => value.clone(),
                },
                _ => value.clone(),
            };
            (name.clone(), shown)
        };
        self.0.iter().map(shown).collect::<Map<String, Value>>().serialize(to)
    }
}

/// Reads every table of a section.
pub(super) fn adapters(from: &mut Source, section: &str) -> BTreeMap<String, AdapterTable> {
    let names = from.names_below(section, &[]);
    names.into_iter().map(|name| (name.clone(), AdapterTable(from.table(&format!("{section}.{name}"))))).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use crate::config::Config;

    #[test]
    fn adapters_are_tables_whose_secrets_are_not_shown() {
        let text = "
            [adapters.P4]
            preset = 'openai_realtime'
            url = 'wss://h/a?token=secret'
            chunk_ms = 40
            [adapters.P4.headers]
            X-Key = 'secret'
            [adapters.P9]
            transport = 'websocket'
            url = 'wss://h/b'
            first = { session = { name = 'secret', deep = [1, { a = 'b' }] } }
            [autosync.desk]
            url = 'https://h/agents/1?token=secret'
            headers = { X-Key = 'secret' }
            prompt = '/prompt'";
        let file = Some((Path::new("r.toml"), text));
        let config = Config::from_texts(file, &Default::default(), &[], 1024).expect("it can be read");
        let table = &config.adapters["P4"];
        assert_eq!(table.0["chunk_ms"], 40);
        assert_eq!(table.0["headers"], json!({ "X-Key": "secret" }));
        let first = json!({ "session.name": "secret", "session.deep": [1, { "a": "b" }] });
        assert_eq!(config.adapters["P9"].0["first"], first);
        assert_eq!(config.autosync["desk"].0["prompt"], "/prompt");
        let shown = json!([config.adapters, config.autosync]).to_string();
        assert!(shown.contains("https://h/agents/1?..."), "{shown}");
        assert!(shown.contains("openai_realtime") && shown.contains("wss://h/a?..."), "{shown}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}
