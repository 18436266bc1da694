//! Addresses at which agents open a WebSocket to the engine: each is one READY result's, with a token that is its
//! credential.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ringer_base::clock::random_bytes;
use ringer_model::Object;
use ringer_model::result::{ResultDoc, beside, find_note};
use serde_json::Value;

use crate::Settings;

/// Path of the addresses, before the token.
pub const AGENT_STREAM: &str = "/v1/agent-stream/";

/// Metadata member with the address at which a result's agent is awaited.
const LISTENING: &str = "listening";

/// Bytes of the secret of a token: 256 bits.
const SECRET_BYTES: usize = 32;

/// Longest token that is looked at.
const MAX_TOKEN: usize = 512;

/// Returns a new token of a result: its place in readable form, and a secret.
fn new_token(organization: &str, result_id: i64) -> String {
    let mut secret = [0; SECRET_BYTES];
    random_bytes(&mut secret);
    format!("{}.{}", URL_SAFE_NO_PAD.encode(format!("{organization}/{result_id}")), hex::encode(secret))
}

/// Returns organization and result of a token; `None` when it has not the form of one.
pub(crate) fn place_of(token: &str) -> Option<(String, i64)> {
    if token.len() > MAX_TOKEN {
        return None;
    }
    let (place, _) = token.split_once('.')?;
    let place = String::from_utf8(URL_SAFE_NO_PAD.decode(place).ok()?).ok()?;
    let (organization, result_id) = place.rsplit_once('/')?;
    Some((organization.to_owned(), result_id.parse().ok()?))
}

/// Returns the address of a token, as an agent opens it.
fn stream_url(settings: &Settings, token: &str) -> String {
    let base = match (&settings.public_url, settings.api) {
        (Some(url), _) => url.replacen("https://", "wss://", 1).replacen("http://", "ws://", 1),
        (None, Some(address)) => format!("ws://{address}"),
        (None, None) => "ws://localhost".to_owned(),
    };
    format!("{base}{AGENT_STREAM}{token}")
}

/// Returns the address that a READY result waits at for a WebSocket; empty when it waits for none.
pub(crate) fn url_of(doc: &ResultDoc) -> String {
    let listening = find_note(&doc.body.metadata, LISTENING);
    listening.and_then(|at| at["websocket_url"].as_str()).unwrap_or_default().to_owned()
}

/// Hides the token of the address in a result's metadata.
pub(crate) fn hide_token(metadata: &mut Object) {
    for name in [beside(LISTENING), LISTENING.to_owned()] {
        let url = metadata.get_mut(&name).and_then(|at| at.get_mut("websocket_url"));
        if let Some(Value::String(url)) = url
            && let Some((base, _)) = url.split_once(AGENT_STREAM)
        {
            *url = format!("{base}{AGENT_STREAM}***");
        }
    }
}

/// Returns what a result that waits for a WebSocket notes of its address.
pub(crate) fn note(settings: &Settings, organization: &str, result_id: i64) -> Value {
    serde_json::json!({ "websocket_url": stream_url(settings, &new_token(organization, result_id)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_name_their_place_and_are_hard_to_guess() {
        let [one, other] = [(); 2].map(|()| new_token("org/1", 17));
        assert_ne!(one, other);
        assert_eq!(place_of(&one), Some(("org/1".to_owned(), 17)));
        let (_, secret) = one.split_once('.').expect("two parts");
        assert_eq!(secret.len(), 64);
        assert!(one.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)), "{one} is one segment of a path");
        for bad in ["", "a", ".", "x.y", &"a".repeat(1000)] {
            assert_eq!(place_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_token_can_be_hidden() {
        let own = serde_json::json!({ "websocket_url": "wss://h.example/v1/agent-stream/abc.def" });
        let mut metadata = Object::from_iter([(LISTENING.to_owned(), "posted".into()), (beside(LISTENING), own)]);
        hide_token(&mut metadata);
        assert_eq!(metadata[&beside(LISTENING)]["websocket_url"], "wss://h.example/v1/agent-stream/***");
        assert_eq!(metadata[LISTENING], "posted");
    }

    #[test]
    fn addresses_are_where_the_api_is_reached() {
        let of = |public: Option<&str>, api: Option<&str>| {
            let public_url = public.map(str::to_owned);
            let api = api.map(|address| address.parse().expect("it is an address"));
            stream_url(&Settings { public_url, api, ..Settings::new("unused") }, "t")
        };
        assert_eq!(
            of(Some("https://ringer.example"), Some("127.0.0.1:8080")),
            "wss://ringer.example/v1/agent-stream/t"
        );
        assert_eq!(of(Some("http://h:1"), None), "ws://h:1/v1/agent-stream/t");
        assert_eq!(of(None, Some("127.0.0.1:8080")), "ws://127.0.0.1:8080/v1/agent-stream/t");
    }
}
