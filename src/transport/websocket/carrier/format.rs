//! Words of carriers for encodings, rates, times and parameters.

use serde_json::{Map, Value, json};

use super::super::core::Core;
use super::super::protocol::Kind;
use super::super::voice::{Encoding, Wire};

/// Returns the name of an encoding in the words of a kind.
pub(super) fn encoding_name(kind: Kind, wire: Wire) -> &'static str {
    match (kind, wire.encoding) {
        (Kind::TelnyxMediaStreaming, encoding) => encoding.name(),
        (Kind::ExotelAgentstream, _) => "audio/x-raw",
        (Kind::ChanWebsocket, Encoding::Pcmu) => "ulaw",
        (Kind::ChanWebsocket, _) => "slin16",
        (_, Encoding::Pcmu) => "audio/x-mulaw",
        (_, Encoding::Pcma) => "audio/x-alaw",
        _ => "audio/x-l16",
    }
}

/// Returns the encoding that a name of any kind means, with its order of bytes where it has one; `None` for others.
pub(super) fn encoding_of(name: &str, little: bool) -> Option<Encoding> {
    let base = name.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match base.trim_start_matches("audio/").trim_start_matches("x-") {
        "mulaw" | "pcmu" | "ulaw" => Some(Encoding::Pcmu),
        "alaw" | "pcma" => Some(Encoding::Pcma),
        "l16" | "raw" | "slin" | "slin16" if little => Some(Encoding::L16Le),
        "l16" | "raw" | "slin" | "slin16" => Some(Encoding::L16Be),
        _ => None,
    }
}

/// Returns a number that may be written as a string.
fn number_of(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Returns a rate that can be converted to 16 kHz.
pub(super) fn rate_of(value: &Value) -> Option<u32> {
    let rate = u32::try_from(number_of(value)?).ok()?;
    [8000, 16_000, 24_000, 44_100, 48_000].contains(&rate).then_some(rate)
}

/// Returns the parameters of the call: the result id and those of the agent.
pub(super) fn parameters(core: &Core) -> Map<String, Value> {
    let id = (core.dialect.result_id_key.clone(), json!(core.facts.result_id.to_string()));
    let more = core.facts.parameters.iter().filter(|(key, _)| *key != core.dialect.result_id_key);
    std::iter::once(id).chain(more.map(|(key, value)| (key.clone(), json!(value)))).collect()
}

/// Returns milliseconds since 1970 as RFC 3339 with microseconds.
pub(super) fn occurred_at(epoch_ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(epoch_ms).unwrap_or_default();
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
