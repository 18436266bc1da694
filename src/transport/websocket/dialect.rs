//! Settings of a dialect: the table of defaults by kind, `[websocket.dialects.NAME]` read and checked, parameters of agents.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

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
        Kind::RawPcm16 => PLAIN,
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
const COMMON_FIELDS: [&str; 9] = [
    "kind",
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
            rate_is_set: false,
        }
    }

    /// Returns the way in which digits of this side reach the other one.
    pub fn digits(&self) -> DigitPath {
        match self.kind {
            Kind::Default | Kind::PipecatProtobuf | Kind::RawPcm16 => DigitPath::Tones,
            _ if self.dtmf_inband => DigitPath::Both,
            _ => DigitPath::Messages,
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
    /// A name that is a kind's or not made of letters, digits, `_` and `-`; a setting that is unknown, of a wrong type or value, or
    /// without effect with the kind.
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
        parse(table).map_err(|why| DialectError(format!("{place} {why}")))
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

/// Reads the settings of a table.
fn parse(table: &Map<String, Value>) -> Result<Dialect, String> {
    let kind = text(table, "kind")?.ok_or("needs a kind")?;
    let kind = Kind::from_name(&kind).ok_or_else(|| {
        let names: Vec<&str> = Kind::DIALECTS.iter().map(|kind| kind.name()).collect();
        format!("kind '{kind}' is none of {}", names.join(", "))
    })?;
    let preset = preset(kind);
    for key in table.keys().map(String::as_str) {
        if OWN_FIELDS.contains(&key) && !preset.own_fields.contains(&key) {
            return Err(format!("{key} has no effect with kind {}", kind.name()));
        }
        if !OWN_FIELDS.contains(&key) && !COMMON_FIELDS.contains(&key) {
            return Err(format!("has no setting '{key}'"));
        }
    }
    let mut dialect = Dialect::new(kind);
    read_audio(table, &preset, &mut dialect)?;
    dialect.headers = headers(table)?;
    dialect.drop_query = flag(table, "drop_query")?;
    dialect.dtmf_inband = flag(table, "dtmf_inband")?;
    dialect.strict = flag(table, "strict")?;
    dialect.carrier_headers_only = flag(table, "carrier_headers_only")?;
    dialect.signing_key = secret(table, "signing_key")?;
    dialect.api_key = secret(table, "api_key")?;
    if let Some(secret) = secret(table, "client_secret")? {
        dialect.client_secret = Some(STANDARD.decode(secret).map_err(|_| "client_secret is not base64")?);
    }
    if let Some(name) = text(table, "subprotocol")? {
        let token =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_graphic() && !"(),/:;<=>?@[\\]{}\"".contains(c));
        dialect.subprotocol = token.then_some(Some(name)).ok_or("subprotocol is not a token")?;
    }
    if let Some(key) = text(table, "result_id_key")? {
        read_parameters(&serde_json::json!({ key.clone(): "" }))
            .map_err(|_| format!("result_id_key must be 1 to {MAX_NAME_CHARS} letters, digits and _"))?;
        dialect.result_id_key = key;
    }
    match one_of(table, "marks_on_clear", &["return", "drop"])? {
        Some(0) => dialect.marks_on_clear = MarksOnClear::Return,
        Some(_) => dialect.marks_on_clear = MarksOnClear::Drop,
        None => {}
    }
    dialect.plain_control = one_of(table, "control_format", &["json", "plain"])? == Some(1);
    dialect.faults = faults(table)?;
    Ok(dialect)
}

/// Reads encodings, rates, byte order and the length of chunks.
fn read_audio(table: &Map<String, Value>, preset: &Preset, dialect: &mut Dialect) -> Result<(), String> {
    let is_little = match one_of(table, "byte_order", &["little", "big"])? {
        Some(order) => order == 0,
        // The one protocol of RTP payloads keeps their order.
        None => dialect.kind != Kind::TelnyxMediaStreaming,
    };
    let of = |encoding_field: &str, rate_field: &str, default: Wire| -> Result<Wire, String> {
        let name = text(table, encoding_field)?;
        let rate = number(table, rate_field)?;
        let default_name = default.encoding.name();
        let name = name.unwrap_or_else(|| default_name.to_owned());
        let Some((name, rates)) = preset.encodings.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name)) else {
            let names: Vec<&str> = preset.encodings.iter().map(|(name, _)| *name).collect();
            return Err(format!("{encoding_field} '{name}' is none of {}", names.join(", ")));
        };
        let rate_hz = match rate {
            Some(rate) => rates.iter().copied().find(|known| u64::from(*known) == rate).ok_or_else(|| {
                let rates: Vec<String> = rates.iter().map(u32::to_string).collect();
                format!("{rate_field} {rate} is none of {} for {name}", rates.join(", "))
            })?,
            None if rates.contains(&default.rate_hz) => default.rate_hz,
            None => rates[0],
        };
        let encoding = match *name {
            "PCMU" => Encoding::Pcmu,
            "PCMA" => Encoding::Pcma,
            _ if is_little => Encoding::L16Le,
            _ => Encoding::L16Be,
        };
        Ok(Wire { encoding, rate_hz })
    };
    dialect.wire = of("encoding", "rate", dialect.wire)?;
    // Without settings of its own the agent's audio is as the caller's.
    let own = |field: &str| preset.own_fields.contains(&field);
    dialect.agent_wire = match (own("agent_encoding"), own("agent_rate")) {
        (true, _) => of("agent_encoding", "agent_rate", dialect.agent_wire)?,
        (false, true) if dialect.kind == Kind::PipecatProtobuf || table.contains_key("agent_rate") => {
            of("encoding", "agent_rate", dialect.agent_wire)?
        }
        _ => dialect.wire,
    };
    dialect.rate_is_set = table.contains_key("rate");
    if let Some(ms) = number(table, "chunk_ms")? {
        if !CHUNK_MS.contains(&ms) || !ms.is_multiple_of(10) {
            return Err(format!("chunk_ms {ms} is not 10 to 1000 in steps of 10"));
        }
        dialect.chunk_ms = ms as u32;
    }
    Ok(())
}

fn text(table: &Map<String, Value>, field: &str) -> Result<Option<String>, String> {
    match table.get(field) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("{field} must be a string")),
    }
}

fn secret(table: &Map<String, Value>, field: &str) -> Result<Option<String>, String> {
    match text(table, field)? {
        Some(value) if value.is_empty() || value.chars().any(|c| c.is_control() || !c.is_ascii()) => {
            Err(format!("{field} must be printable and not empty"))
        }
        value => Ok(value),
    }
}

fn number(table: &Map<String, Value>, field: &str) -> Result<Option<u64>, String> {
    match table.get(field) {
        None => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or_else(|| format!("{field} must be a whole number")),
    }
}

fn flag(table: &Map<String, Value>, field: &str) -> Result<bool, String> {
    match table.get(field) {
        None => Ok(false),
        Some(value) => value.as_bool().ok_or_else(|| format!("{field} must be true or false")),
    }
}

/// Returns the index of the word that a setting holds.
fn one_of(table: &Map<String, Value>, field: &str, words: &[&str]) -> Result<Option<usize>, String> {
    let Some(word) = text(table, field)? else { return Ok(None) };
    let at = words.iter().position(|known| *known == word);
    at.map(Some).ok_or_else(|| format!("{field} '{word}' is none of {}", words.join(", ")))
}

fn faults(table: &Map<String, Value>) -> Result<Vec<Fault>, String> {
    let Some(value) = table.get("faults") else { return Ok(Vec::new()) };
    let names = value.as_array().ok_or("faults must be a list of strings")?;
    let mut found = Vec::new();
    for name in names {
        let name = name.as_str().ok_or("faults must be a list of strings")?;
        let fault = Fault::NAMES.iter().find(|(known, _)| *known == name).map(|(_, fault)| *fault);
        let fault = fault.ok_or_else(|| {
            let known: Vec<&str> = Fault::NAMES.iter().map(|(name, _)| *name).collect();
            format!("faults: '{name}' is none of {}", known.join(", "))
        })?;
        if !found.contains(&fault) {
            found.push(fault);
        }
    }
    Ok(found)
}

fn headers(table: &Map<String, Value>) -> Result<Vec<(String, String)>, String> {
    let Some(value) = table.get("headers") else { return Ok(Vec::new()) };
    let object = value.as_object().ok_or("headers must be a table of strings")?;
    if object.len() > MAX_HEADERS {
        return Err(format!("headers: at most {MAX_HEADERS} are possible"));
    }
    let mut found = Vec::with_capacity(object.len());
    for (name, value) in object {
        let value = value.as_str().ok_or_else(|| format!("headers: '{name}' must be a string"))?;
        let lower = name.to_ascii_lowercase();
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(is_token) {
            return Err(format!("headers: {name:?} is no name of a header"));
        }
        let reserved = ["host", "connection", "upgrade", "x-simulation-result-id"].contains(&lower.as_str())
            || lower.starts_with("sec-websocket-")
            || lower.starts_with("content-");
        if reserved {
            return Err(format!("headers: '{name}' cannot be set"));
        }
        if !value.chars().all(|c| (c.is_ascii() && !c.is_ascii_control()) || c == '\t') {
            return Err(format!("headers: '{name}' has a value that no header can hold"));
        }
        found.push((name.clone(), value.to_owned()));
    }
    Ok(found)
}
