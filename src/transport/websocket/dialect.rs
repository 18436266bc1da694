//! Settings of a dialect: the table of defaults by kind, `[websocket.dialects.NAME]` read and checked, parameters of
//! agents.

mod table;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::platform::Rules;
use super::platform::far::side::FarCall;
use super::protocol::{DigitPath, Kind};
use super::voice::{Encoding, Wire};

/// Most parameters of an agent beside the result id.
const MAX_PARAMETERS: usize = 20;

/// Most characters of the value of a parameter.
const MAX_VALUE_CHARS: usize = 256;

/// Most characters of the key of a parameter, and of the name of a dialect.
const MAX_NAME_CHARS: usize = 64;

/// Most bytes of all parameters together, where a protocol has such a limit.
const MAX_FLAT_BYTES: usize = 512;

/// Parameters that fit the query of an address beside the result id, where a protocol has such a limit.
const MAX_QUERY_PAIRS: usize = 3;

/// Shortest and longest chunk, in milliseconds.
const CHUNK_MS: std::ops::RangeInclusive<u64> = 10..=1000;

/// Most headers that settings may add.
const MAX_HEADERS: usize = 50;

/// Treatments of open marks when the other side clears its audio.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum MarksOnClear {
    /// All of them are echoed at once, in order.
    Return,
    /// None of them is echoed.
    Drop,
}

/// Deviations of a carrier that settings turn on, to see how an agent takes them.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// One audio message comes before the opening message.
    MediaBeforeStart,
    /// The audio is A-law though mu-law was announced.
    Alaw,
    /// A text message now and then is cut short.
    Malformed,
    /// Two audio messages in succession change places now and then.
    Reorder,
    /// Marks are never echoed.
    NoMarks,
    /// Marks are echoed late.
    SlowMarks,
    /// The connection is lost in the course of the call.
    DropSocket,
}

impl Fault {
    /// Faults by the names of the settings.
    const NAMES: [(&'static str, Fault); 7] = [
        ("media_before_start", Fault::MediaBeforeStart),
        ("alaw", Fault::Alaw),
        ("malformed", Fault::Malformed),
        ("reorder", Fault::Reorder),
        ("no_marks", Fault::NoMarks),
        ("slow_marks", Fault::SlowMarks),
        ("drop_socket", Fault::DropSocket),
    ];
}

/// A refusal of settings, with the place and the reason in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialectError(pub String);

impl fmt::Display for DialectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DialectError {}

/// A kind of protocol with its settings.
#[derive(Clone, PartialEq)]
pub struct Dialect {
    /// Protocol that is spoken.
    pub kind: Kind,
    /// Audio of the caller.
    pub wire: Wire,
    /// Audio of the agent.
    pub agent_wire: Wire,
    /// Milliseconds of audio in a message of the caller.
    pub chunk_ms: u32,
    /// Headers of the upgrade request beside those of the protocol.
    pub headers: Vec<(String, String)>,
    /// Hosts that get the headers and keys: names, addresses, or `*.example.com` for all below a domain. Empty: none
    /// does.
    pub hosts: Vec<String>,
    /// True when the query of the address is not sent.
    pub drop_query: bool,
    /// Subprotocol that is offered.
    pub subprotocol: Option<String>,
    /// Key of the signature of the address.
    pub signing_key: Option<String>,
    /// Key that names the customer.
    pub api_key: Option<String>,
    /// Secret of the signature of the upgrade request.
    pub client_secret: Option<Vec<u8>>,
    /// Key of the result id among the parameters.
    pub result_id_key: String,
    /// Treatment of marks that wait when audio is cleared.
    pub marks_on_clear: MarksOnClear,
    /// True when control messages are plain text instead of JSON.
    pub plain_control: bool,
    /// True when digits are also tones in the audio.
    pub dtmf_inband: bool,
    /// True when a chunk of a wrong size ends the call, as with the carrier.
    pub strict: bool,
    /// True when the upgrade request has no header of the engine's own.
    pub carrier_headers_only: bool,
    /// Deviations that are turned on.
    pub faults: Vec<Fault>,
    /// Rules of a platform's protocol, for the kind `Platform` alone.
    pub platform: Option<Arc<Rules>>,
    /// Call of a platform's server, for the kind `Platform` and the role of the agent alone.
    pub far: Option<Arc<FarCall>>,
    /// True when settings name the rate.
    pub(super) rate_is_set: bool,
}

impl fmt::Debug for Dialect {
    /// Writes no header and no key: they may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Dialect({}, {:?} from the caller, {:?} from the agent)",
            self.kind.name(),
            self.wire,
            self.agent_wire
        )
    }
}

/// Defaults and possible values of a kind.
struct Preset {
    encodings: &'static [(&'static str, &'static [u32])],
    encoding: Encoding,
    rate_hz: u32,
    agent_rate_hz: u32,
    chunk_ms: u32,
    subprotocol: Option<&'static str>,
    result_id_key: &'static str,
    marks_on_clear: MarksOnClear,
    /// Settings that only some kinds have.
    own_fields: &'static [&'static str],
    /// Defaults that no documentation confirms.
    assumed: &'static [&'static str],
}

/// A kind without text messages, from which the others are made.
const PLAIN: Preset = Preset {
    encodings: &[("L16", &[8000, 16_000, 24_000, 44_100, 48_000])],
    encoding: Encoding::L16Le,
    rate_hz: 16_000,
    agent_rate_hz: 16_000,
    chunk_ms: 20,
    subprotocol: None,
    result_id_key: "simulation_result_id",
    marks_on_clear: MarksOnClear::Return,
    own_fields: &["byte_order", "agent_rate"],
    assumed: &[],
};

/// A kind of base64 mu-law in JSON.
const MU_LAW: Preset = Preset {
    encodings: &[("PCMU", &[8000])],
    encoding: Encoding::Pcmu,
    rate_hz: 8000,
    agent_rate_hz: 8000,
    own_fields: &["signing_key", "drop_query", "marks_on_clear", "faults"],
    ..PLAIN
};

fn preset(kind: Kind) -> Preset {
    match kind {
        Kind::Default => Preset { encodings: &[("L16", &[16_000])], own_fields: &[], ..PLAIN },
        Kind::RawPcm16 | Kind::Platform => PLAIN,
        Kind::PipecatProtobuf => Preset { agent_rate_hz: 24_000, chunk_ms: 40, own_fields: &["agent_rate"], ..PLAIN },
        Kind::TwilioMediaStreams => MU_LAW,
        Kind::SignalwireStream => Preset {
            encodings: &[("PCMU", &[8000]), ("L16", &[24_000])],
            own_fields: &["byte_order", "signing_key", "drop_query", "marks_on_clear", "faults"],
            assumed: &["the media format text of L16"],
            ..MU_LAW
        },
        Kind::TelnyxMediaStreaming => Preset {
            encodings: &[("PCMU", &[8000]), ("PCMA", &[8000]), ("L16", &[8000, 16_000, 24_000])],
            own_fields: &["byte_order", "agent_encoding", "agent_rate", "drop_query", "marks_on_clear", "faults"],
            assumed: &["chunk_ms 20", "marks_on_clear return"],
            ..MU_LAW
        },
        Kind::PlivoAudioStreaming => Preset {
            encodings: &[("PCMU", &[8000]), ("L16", &[8000, 16_000])],
            subprotocol: Some("audio.plivo.com"),
            result_id_key: "simulationResultId",
            marks_on_clear: MarksOnClear::Drop,
            own_fields: &["byte_order", "drop_query", "marks_on_clear", "faults"],
            assumed: &["chunk_ms 20", "byte_order little"],
            ..MU_LAW
        },
        Kind::ExotelAgentstream => Preset {
            encodings: &[("L16", &[8000, 16_000, 24_000])],
            rate_hz: 8000,
            agent_rate_hz: 8000,
            chunk_ms: 100,
            own_fields: &["drop_query", "marks_on_clear", "faults"],
            assumed: &["the members of stop", "marks_on_clear return"],
            ..PLAIN
        },
        Kind::VonageWebsocket => Preset {
            encodings: &[("L16", &[8000, 16_000, 24_000])],
            marks_on_clear: MarksOnClear::Drop,
            own_fields: &["drop_query", "marks_on_clear", "strict", "faults"],
            assumed: &["marks_on_clear drop"],
            ..PLAIN
        },
        Kind::Audiohook => Preset {
            chunk_ms: 200,
            marks_on_clear: MarksOnClear::Return,
            own_fields: &["api_key", "client_secret", "drop_query", "marks_on_clear", "faults"],
            assumed: &["the moment of playback_completed", "the limit of audio messages"],
            ..MU_LAW
        },
        Kind::ChanWebsocket => Preset {
            encodings: &[("PCMU", &[8000]), ("L16", &[16_000])],
            subprotocol: Some("media"),
            result_id_key: "SIMULATION_RESULT_ID",
            marks_on_clear: MarksOnClear::Drop,
            own_fields: &["control_format", "drop_query", "marks_on_clear", "faults"],
            ..MU_LAW
        },
    }
}

/// Settings that every kind has.
const COMMON_FIELDS: [&str; 10] = [
    "kind",
    "hosts",
    "encoding",
    "rate",
    "chunk_ms",
    "headers",
    "subprotocol",
    "result_id_key",
    "dtmf_inband",
    "carrier_headers_only",
];

/// Settings that some kinds have.
const OWN_FIELDS: [&str; 11] = [
    "byte_order",
    "agent_encoding",
    "agent_rate",
    "drop_query",
    "signing_key",
    "api_key",
    "client_secret",
    "marks_on_clear",
    "control_format",
    "strict",
    "faults",
];

impl Dialect {
    /// Returns a kind with its defaults.
    pub fn new(kind: Kind) -> Dialect {
        let preset = preset(kind);
        Dialect {
            kind,
            wire: Wire { encoding: preset.encoding, rate_hz: preset.rate_hz },
            agent_wire: Wire { encoding: preset.encoding, rate_hz: preset.agent_rate_hz },
            chunk_ms: preset.chunk_ms,
            headers: Vec::new(),
            hosts: Vec::new(),
            drop_query: false,
            subprotocol: preset.subprotocol.map(str::to_owned),
            signing_key: None,
            api_key: None,
            client_secret: None,
            result_id_key: preset.result_id_key.to_owned(),
            marks_on_clear: preset.marks_on_clear,
            plain_control: false,
            dtmf_inband: false,
            strict: false,
            carrier_headers_only: false,
            faults: Vec::new(),
            platform: None,
            far: None,
            rate_is_set: false,
        }
    }

    /// Returns the way in which digits of this side reach the other one.
    pub fn digits(&self) -> DigitPath {
        match self.kind {
            Kind::Platform if self.platform.as_ref().is_some_and(|rules| rules.has_digits()) => DigitPath::Messages,
            Kind::Default | Kind::PipecatProtobuf | Kind::RawPcm16 | Kind::Platform => DigitPath::Tones,
            _ if self.dtmf_inband => DigitPath::Both,
            _ => DigitPath::Messages,
        }
    }

    /// Returns the name of the protocol: that of its kind, or of an adapter's preset.
    pub fn name(&self) -> &'static str {
        match (&self.platform, &self.far) {
            (Some(rules), _) => rules.preset,
            (None, Some(call)) => call.name(),
            (None, None) => self.kind.name(),
        }
    }

    /// Returns a text without the secrets that an adapter's rules know.
    pub fn without_secrets(&self, text: String) -> String {
        match &self.platform {
            Some(rules) => rules.without_secrets(text),
            None => text,
        }
    }

    /// Returns the defaults in use that no documentation confirms.
    pub fn assumptions(&self) -> &'static [&'static str] {
        preset(self.kind).assumed
    }

    /// Reads the table `[websocket.dialects.NAME]`.
    ///
    /// # Errors
    ///
    /// A name that is a kind's or not made of letters, digits, `_` and `-`; a setting that is unknown, of a wrong type
    /// or value, or without effect with the kind.
    pub fn parse(name: &str, table: &Value) -> Result<Dialect, DialectError> {
        let place = format!("[websocket.dialects.{name}]");
        if Kind::from_name(name).is_some() {
            return Err(DialectError(format!("{place} has the name of a kind; take another name")));
        }
        let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(is_valid) {
            return Err(DialectError(format!("{place} needs a name of 1 to 64 letters, digits, _ and -")));
        }
        let table = table.as_object().ok_or_else(|| DialectError(format!("{place} must be a table")))?;
        table::parse(table).map_err(|why| DialectError(format!("{place} {why}")))
    }

    /// Returns the dialect of an address: a query may name the rate of audio.
    pub fn at(mut self, url: &str) -> Dialect {
        if self.kind != Kind::ExotelAgentstream || self.rate_is_set {
            return self;
        }
        let query = url.split_once('?').map_or("", |(_, query)| query);
        let named = query.split('&').find_map(|pair| pair.strip_prefix("sample-rate="));
        if let Some(rate_hz @ (8000 | 16_000 | 24_000)) = named.and_then(|value| value.parse().ok()) {
            (self.wire.rate_hz, self.agent_wire.rate_hz) = (rate_hz, rate_hz);
        }
        self
    }

    /// True where settings add headers or keys to the upgrade request, which are the operator's secrets.
    pub fn has_secrets(&self) -> bool {
        let keys = [self.signing_key.is_some(), self.api_key.is_some(), self.client_secret.is_some()];
        !self.headers.is_empty() || keys.contains(&true)
    }

    /// True if the upgrade request may go to the host of an address.
    pub fn may_go_to(&self, url: &str) -> bool {
        let host = url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_ascii_lowercase));
        !self.has_secrets() || host.is_some_and(|host| self.hosts.iter().any(|pattern| is_of(&host, pattern)))
    }

    /// Checks parameters of an agent against the stricter form of the protocol.
    ///
    /// # Errors
    ///
    /// More or longer parameters than the protocol carries, or characters that it does not carry.
    pub fn check_parameters(&self, parameters: &[(String, String)]) -> Result<(), DialectError> {
        let kind = self.kind.name();
        let refused = |why: String| Err(DialectError(format!("websocket_parameters: {why}")));
        if let Some((key, _)) = parameters.iter().find(|(key, _)| *key == self.result_id_key) {
            return refused(format!("'{key}' holds the result id and cannot be replaced"));
        }
        let total: usize = parameters.iter().map(|(key, value)| key.len() + value.len() + 2).sum();
        let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric());
        match self.kind {
            Kind::ExotelAgentstream if parameters.len() > MAX_QUERY_PAIRS => {
                refused(format!("{kind} carries at most {MAX_QUERY_PAIRS} of them"))
            }
            Kind::ExotelAgentstream if total > MAX_VALUE_CHARS => {
                refused(format!("{kind} carries at most {MAX_VALUE_CHARS} characters"))
            }
            Kind::PlivoAudioStreaming | Kind::VonageWebsocket if total > MAX_FLAT_BYTES => {
                refused(format!("{kind} carries at most {MAX_FLAT_BYTES} bytes"))
            }
            Kind::PlivoAudioStreaming => {
                match parameters.iter().find(|(key, value)| !is_plain(key) || !is_plain(value)) {
                    Some((key, _)) => refused(format!("{kind} carries only letters and digits, which '{key}' breaks")),
                    None => Ok(()),
                }
            }
            Kind::VonageWebsocket if parameters.iter().any(|(key, _)| key == "event" || key == "content_type") => {
                refused(format!("{kind} uses 'event' and 'content_type' itself"))
            }
            _ => Ok(()),
        }
    }
}

/// Reads `websocket_parameters` of an agent: null or an object of strings.
///
/// # Errors
/// Anything else than an object of strings, more than 20 of them, or keys other than 1 to 64 of `[A-Za-z0-9_]`. Values
/// of more than 256 characters or with control characters.
pub fn read_parameters(value: &Value) -> Result<Vec<(String, String)>, DialectError> {
    let refused = |why: String| DialectError(format!("websocket_parameters: {why}"));
    let object = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Object(object) => object,
        _ => return Err(refused("must be an object of strings".to_owned())),
    };
    if object.len() > MAX_PARAMETERS {
        return Err(refused(format!("at most {MAX_PARAMETERS} are possible, {} are given", object.len())));
    }
    let mut found = Vec::with_capacity(object.len());
    for (key, value) in object {
        let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if key.is_empty() || key.len() > MAX_NAME_CHARS || !key.chars().all(is_valid) {
            return Err(refused(format!("key {key:?} must be 1 to {MAX_NAME_CHARS} letters, digits and _")));
        }
        let text = value.as_str().ok_or_else(|| refused(format!("'{key}' must be a string")))?;
        if text.chars().count() > MAX_VALUE_CHARS || text.chars().any(char::is_control) {
            return Err(refused(format!("'{key}' must be at most {MAX_VALUE_CHARS} printable characters")));
        }
        found.push((key.clone(), text.to_owned()));
    }
    Ok(found)
}

/// True if a host is named by a pattern: itself, or `*.DOMAIN` with at least one label before the domain.
fn is_of(host: &str, pattern: &str) -> bool {
    match pattern.strip_prefix("*.") {
        Some(domain) => host.strip_suffix(domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        None => host == pattern,
    }
}
