//! The table of a dialect's settings: read, checked, and refused with the name of what is wrong.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{
    CHUNK_MS, COMMON_FIELDS, Dialect, Fault, Kind, MAX_HEADERS, MAX_NAME_CHARS, MarksOnClear, OWN_FIELDS, Preset,
    preset, read_parameters,
};
use crate::websocket::voice::{Encoding, Wire};

/// Reads the settings of a table.
pub(super) fn parse(table: &Map<String, Value>) -> Result<Dialect, String> {
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
    dialect.hosts = hosts(table)?;
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

/// Reads the hosts that get headers and keys, in lower case.
fn hosts(table: &Map<String, Value>) -> Result<Vec<String>, String> {
    let Some(value) = table.get("hosts") else { return Ok(Vec::new()) };
    let wrong =
        || "hosts must be a list of hosts without port, such as \"agent.example.com\" or \"*.example.com\"".to_owned();
    let read = |host: &Value| {
        let host = host.as_str()?.to_ascii_lowercase();
        let name = host.strip_prefix("*.").unwrap_or(&host);
        url::Host::parse(name).ok().filter(|_| !name.contains('*')).map(|_| host)
    };
    let found: Option<Vec<String>> = value.as_array().ok_or_else(wrong)?.iter().map(read).collect();
    found.ok_or_else(wrong)
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
