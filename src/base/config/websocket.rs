//! `[websocket]`: calls to agents by a WebSocket.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::Source;

/// Section of the dialects.
const DIALECTS: &str = "websocket.dialects";
/// Longest time of any kind: ten minutes, in milliseconds.
const LONGEST_MS: u64 = 600_000;
/// Most waits between attempts.
const MAX_WAITS: usize = 20;
/// Settings of a dialect that are not shown.
const SECRETS: [&str; 4] = ["signing_key", "api_key", "client_secret", "headers"];

/// Settings of the section `[websocket]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WebSocket {
    /// Time limit of TCP, TLS and upgrade together.
    pub connect_timeout_ms: u32,
    /// Number of attempts after the first, before the call has started.
    pub retries: u32,
    /// Pauses before each further attempt; the last one counts for all that follow.
    pub retry_backoff_ms: Vec<u32>,
    /// Length of an audio frame of the engine's own protocol, in milliseconds: 20.
    pub frame_ms: u32,
    /// Interval of pings; 0: none.
    pub ping_interval_s: u32,
    /// Time without a pong and without any message after which the connection counts as lost; 0: never.
    pub ping_timeout_s: u32,
    /// Time limit of the agent's answer to a close.
    pub close_timeout_ms: u32,
    /// Largest message, in bytes.
    pub max_message_bytes: usize,
    /// Largest text message of the engine's own protocol, in bytes.
    pub max_text_bytes: usize,
    /// True: the agent's message that it begins to speak interrupts the Digital Human.
    pub yield_to_started_event: bool,
    /// True if dialects with headers and keys go to every host. `ringer run` sets it for the engine that it starts.
    pub any_host: bool,
    /// Dialects with settings of their own, by name.
    pub dialects: BTreeMap<String, DialectTable>,
}

/// Settings of a dialect as they were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DialectTable(pub Map<String, Value>);

impl Serialize for DialectTable {
    /// Writes the settings; of a secret one only that it is set.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let shown = |(name, value): (&String, &Value)| {
            let is_secret = SECRETS.contains(&name.as_str());
            (name.clone(), if is_secret { "(set)".into() } else { value.clone() })
        };
        self.0.iter().map(shown).collect::<Map<String, Value>>().serialize(to)
    }
}

impl Default for WebSocket {
    fn default() -> WebSocket {
        WebSocket {
            connect_timeout_ms: 10_000,
            retries: 3,
            retry_backoff_ms: vec![500, 1000, 2000],
            frame_ms: 20,
            ping_interval_s: 20,
            ping_timeout_s: 60,
            close_timeout_ms: 2000,
            max_message_bytes: 1_048_576,
            max_text_bytes: 65_536,
            yield_to_started_event: true,
            any_host: false,
            dialects: BTreeMap::new(),
        }
    }
}

impl WebSocket {
    pub(super) fn read(&mut self, from: &mut Source) {
        from.whole("websocket.connect_timeout_ms", 10..=LONGEST_MS, &mut self.connect_timeout_ms);
        from.whole("websocket.retries", 0..=100, &mut self.retries);
        let waits = |texts: &[String]| {
            let read = |text: &String| text.trim().parse().ok().filter(|ms| u64::from(*ms) <= LONGEST_MS);
            (texts.len() <= MAX_WAITS).then(|| texts.iter().map(read).collect::<Option<Vec<u32>>>()).flatten()
        };
        from.parsed_list(
            "websocket.retry_backoff_ms",
            "at most 20 whole numbers from 0 to 600000",
            waits,
            &mut self.retry_backoff_ms,
        );
        from.whole("websocket.frame_ms", 20..=20, &mut self.frame_ms);
        from.whole("websocket.ping_interval_s", 0..=3600, &mut self.ping_interval_s);
        from.whole("websocket.ping_timeout_s", 0..=3600, &mut self.ping_timeout_s);
        from.whole("websocket.close_timeout_ms", 0..=60_000, &mut self.close_timeout_ms);
        from.whole("websocket.max_message_bytes", 1024..=1 << 26, &mut self.max_message_bytes);
        from.whole("websocket.max_text_bytes", 1024..=1 << 26, &mut self.max_text_bytes);
        from.boolean("websocket.yield_to_started_event", &mut self.yield_to_started_event);
        from.boolean("websocket.any_host", &mut self.any_host);
        for name in from.names_below(DIALECTS, &[]) {
            let table = from.table(&format!("{DIALECTS}.{name}"));
            self.dialects.insert(name, DialectTable(table));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use crate::config::Config;

    fn config_of(text: &str) -> Result<Config, String> {
        let file = Some((Path::new("r.toml"), text));
        Config::from_texts(file, &Default::default(), &[], 1024).map_err(|error| error.to_string())
    }

    #[test]
    fn dialects_are_tables_whose_secrets_are_not_shown() {
        let text = "
            [websocket]
            retries = 1
            retry_backoff_ms = [10, 20]
            [websocket.dialects.desk]
            kind = 'twilio_media_streams'
            signing_key = 'secret'
            dtmf_inband = true
            faults = ['alaw', 'reorder']
            [websocket.dialects.desk.headers]
            X-Key = 'secret'";
        let config = config_of(text).expect("it can be read");
        assert_eq!((config.websocket.retries, &config.websocket.retry_backoff_ms[..]), (1, &[10, 20][..]));
        let table = &config.websocket.dialects["desk"];
        assert_eq!(
            json!(table.0),
            json!({
                "kind": "twilio_media_streams", "signing_key": "secret", "dtmf_inband": true, "faults": ["alaw", "reorder"],
                "headers": { "X-Key": "secret" },
            })
        );
        let shown = json!(config.websocket).to_string();
        assert!(shown.contains("twilio_media_streams") && !shown.contains("secret"), "{shown}");
    }

    #[test]
    fn settings_out_of_range_are_named() {
        for (text, expect) in [
            ("frame_ms = 10", "websocket.frame_ms"),
            ("max_message_bytes = 0", "websocket.max_message_bytes"),
            ("retry_backoff_ms = [-1]", "websocket.retry_backoff_ms"),
            ("retry_backoff_ms = 'soon'", "websocket.retry_backoff_ms"),
            ("pings = 3", "unknown setting websocket.pings"),
        ] {
            let why = config_of(&format!("[websocket]\n{text}")).expect_err("it is refused");
            assert!(why.contains(expect), "{text}: {why}");
        }
    }
}
