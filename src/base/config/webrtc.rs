//! `[webrtc]`: peer connections, and `[p2]`: the start of voice pipelines.

use std::net::IpAddr;

use serde::Serialize;
use serde_json::{Map, Value};
use url::Url;

use super::{Secret, Source};

/// Most servers of one kind.
const MAX_SERVERS: usize = 8;

/// Most local addresses of media.
const MAX_ADDRESSES: usize = 16;

/// Settings of peer connections: `[webrtc]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WebRtc {
    /// STUN servers, which report this side's own address: `stun:host[:port]` (RFC 7064).
    pub stun: Vec<String>,
    /// TURN servers, which relay media: `turn:host[:port]`, `?transport=udp` behind it or not (RFC 7065).
    pub turn: Vec<String>,
    /// User name at the relays.
    pub turn_username: Option<String>,
    /// Password at the relays.
    pub turn_credential: Option<Secret>,
    /// True: media go through the relays alone, and no other address of this side is told.
    pub relay_only: bool,
    /// Local addresses of media; empty: those of every interface.
    pub bind: Vec<IpAddr>,
}

/// Default of `p2.answer_timeout_s`, seconds: a pipeline may load models before it answers.
pub const DEFAULT_ANSWER_S: u32 = 60;

/// Settings of voice pipelines: `[p2]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pipelines {
    /// Base URL of the request that starts a pipeline: `POST START/{P2_agent_name}/start`; `None`: there is none.
    pub start_url: Option<String>,
    /// Template of its body; `None`: configuration and room properties.
    pub start_body: Option<Value>,
    /// True if a `P2_agent_name` with `http://` or `https://` is the base address of the agent's own pipeline. `ringer
    /// run` sets it for its own engine, whose suites name pipelines by their addresses.
    pub named_by_address: bool,
    /// Time limit in seconds for the answer to an offer and to the request that starts a pipeline, 1 to 600.
    pub answer_timeout_s: u32,
}

impl Default for Pipelines {
    fn default() -> Pipelines {
        Pipelines { start_url: None, start_body: None, named_by_address: false, answer_timeout_s: DEFAULT_ANSWER_S }
    }
}

impl WebRtc {
    pub(super) fn read_from(&mut self, from: &mut Source) {
        let stun = "at most 8 addresses like stun:stun.example:3478";
        from.parsed_list("webrtc.stun", stun, |texts| servers(texts, "stun:"), &mut self.stun);
        let turn = "at most 8 addresses like turn:turn.example:3478 or turn:turn.example:3478?transport=udp";
        from.parsed_list("webrtc.turn", turn, |texts| servers(texts, "turn:"), &mut self.turn);
        from.maybe_text("webrtc.turn_username", &mut self.turn_username);
        from.secret("webrtc.turn_credential", &mut self.turn_credential);
        let addresses = |texts: &[String]| {
            let read = |text: &String| text.trim().parse().ok();
            (texts.len() <= MAX_ADDRESSES).then(|| texts.iter().map(read).collect::<Option<Vec<IpAddr>>>()).flatten()
        };
        from.parsed_list(
            "webrtc.bind",
            "at most 16 addresses of this machine, like 192.0.2.7",
            addresses,
            &mut self.bind,
        );
        if !self.turn.is_empty() && (self.turn_username.is_none() || self.turn_credential.is_none()) {
            from.refuse("webrtc.turn needs webrtc.turn_username and webrtc.turn_credential".to_owned());
        }
        from.boolean("webrtc.relay_only", &mut self.relay_only);
        if self.relay_only && self.turn.is_empty() {
            from.refuse("webrtc.relay_only needs webrtc.turn".to_owned());
        }
    }
}

impl Pipelines {
    pub(super) fn read_from(&mut self, from: &mut Source) {
        let url = |text: &str| is_http_address(text).then(|| Some(text.to_owned()));
        from.read_parsed("p2.start_url", "an address with http:// or https://", url, &mut self.start_url);
        let table: Map<String, Value> = from.table("p2.start_body");
        self.start_body = (!table.is_empty()).then_some(Value::Object(table));
        from.boolean("p2.named_by_address", &mut self.named_by_address);
        from.whole("p2.answer_timeout_s", 1..=600, &mut self.answer_timeout_s);
    }
}

/// True for an address with `http://` or `https://` and a host.
pub fn is_http_address(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// Reads addresses of servers of a scheme; `None` where one has another form.
fn servers(texts: &[String], scheme: &str) -> Option<Vec<String>> {
    let read = |text: &String| {
        let text = text.trim();
        let rest = text.strip_prefix(scheme)?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, "transport=udp"));
        let is_open = |c: char| c.is_ascii_graphic() && !matches!(c, '/' | '@' | '?');
        let fits = !place.is_empty() && place.chars().all(is_open) && query == "transport=udp";
        fits.then(|| text.to_owned())
    };
    (texts.len() <= MAX_SERVERS).then(|| texts.iter().map(read).collect()).flatten()
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
    fn settings_of_peer_connections() {
        let config = config_of(
            "
            [webrtc]
            stun = ['stun:stun.example:3478']
            turn = ['turn:turn.example', 'turn:[::1]:3478?transport=udp']
            turn_username = 'u'
            turn_credential = 'hidden'
            relay_only = true
            bind = ['127.0.0.1', '::1']
            [p2]
            start_url = 'https://pipelines.example/v1'
            [p2.start_body]
            config = '{{P2_agent_configuration}}'
            [p2.start_body.body]
            id = '{{simulation_result_id}}'
            ",
        )
        .expect("it is good");
        assert_eq!((config.webrtc.stun.len(), config.webrtc.turn.len(), config.webrtc.bind.len()), (1, 2, 2));
        assert!(config.webrtc.relay_only);
        let body = json!({ "config": "{{P2_agent_configuration}}", "body": { "id": "{{simulation_result_id}}" } });
        assert_eq!(
            (config.p2.start_url.as_deref(), config.p2.start_body),
            (Some("https://pipelines.example/v1"), Some(body))
        );
        assert!(!json!(config.webrtc).to_string().contains("hidden"));
    }

    #[test]
    fn settings_that_cannot_be_are_named() {
        for (text, key) in [
            ("[webrtc]\nstun = ['stun.example']", "webrtc.stun"),
            ("[webrtc]\nstun = ['stuns:stun.example']", "webrtc.stun"),
            ("[webrtc]\nturn = ['turn:u@h']\nturn_username = 'u'\nturn_credential = 'p'", "webrtc.turn"),
            ("[webrtc]\nturn = ['turn:h?transport=tcp']\nturn_username = 'u'\nturn_credential = 'p'", "webrtc.turn"),
            ("[webrtc]\nturn = ['turn:h']", "webrtc.turn needs"),
            ("[webrtc]\nrelay_only = true", "webrtc.relay_only needs webrtc.turn"),
            ("[webrtc]\nrelay_only = 'always'", "webrtc.relay_only"),
            ("[webrtc]\nbind = ['host.example']", "webrtc.bind"),
            ("[webrtc]\nservers = 3", "unknown setting webrtc.servers"),
            ("[p2]\nstart_url = 'ftp://h'", "p2.start_url"),
            ("[p2]\nanswer_timeout_s = 0", "p2.answer_timeout_s"),
        ] {
            let why = config_of(text).expect_err("it is refused");
            assert!(why.contains(key), "{text}: {why}");
        }
    }
}
