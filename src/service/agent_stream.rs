//! Agents that open a WebSocket to the engine: the address of one READY result, and whom a token is for.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use subtle::ConstantTimeEq;

use super::legs::{Goal, Leg};
use super::{Service, Settings};
use crate::clock::random_bytes;
use crate::error::{Error, Result};
use crate::model::error_code::ErrorCode;
use crate::model::result::{ResultDoc, noted};
use crate::model::status::ResultStatus;

/// Path of the addresses; the token follows.
pub const AGENT_STREAM: &str = "/v1/agent-stream/";

/// Bytes of the secret of a token: 256 bits.
const SECRET_BYTES: usize = 32;

/// Longest token that is looked at.
const MAX_TOKEN: usize = 512;

/// Whom a token is for.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamGoal {
    /// Nobody has it, or its time is over.
    Unknown,
    /// Its call runs.
    InUse,
    /// Its call is over.
    Over,
    /// A result that waits for its call.
    Leg(Leg),
}

/// Returns a new token of a result: its place in readable form, and a secret.
pub(super) fn new_token(organization: &str, result_id: i64) -> String {
    let mut secret = [0; SECRET_BYTES];
    random_bytes(&mut secret);
    format!("{}.{}", URL_SAFE_NO_PAD.encode(format!("{organization}/{result_id}")), hex::encode(secret))
}

/// Returns organization and result of a token; `None` when it has not the form of one.
fn place_of(token: &str) -> Option<(String, i64)> {
    if token.len() > MAX_TOKEN {
        return None;
    }
    let (place, _) = token.split_once('.')?;
    let place = String::from_utf8(URL_SAFE_NO_PAD.decode(place).ok()?).ok()?;
    let (organization, result_id) = place.rsplit_once('/')?;
    Some((organization.to_owned(), result_id.parse().ok()?))
}

/// Returns the address of a token, as an agent opens it.
pub(super) fn stream_url(settings: &Settings, token: &str) -> String {
    let base = match (&settings.public_url, settings.api) {
        (Some(url), _) => url.replacen("https://", "wss://", 1).replacen("http://", "ws://", 1),
        (None, Some(address)) => format!("ws://{address}"),
        (None, None) => "ws://localhost".to_owned(),
    };
    format!("{base}{AGENT_STREAM}{token}")
}

/// Returns the address that a READY result waits at for a WebSocket; empty when it waits for none.
pub(super) fn url_of(doc: &ResultDoc) -> String {
    let listening = noted(&doc.body.metadata, "listening");
    listening.and_then(|at| at["websocket_url"].as_str()).unwrap_or_default().to_owned()
}

impl Service {
    /// Returns whom a token is for.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn stream_goal(&self, token: &str) -> Result<StreamGoal> {
        let Some((organization, result_id)) = place_of(token) else { return Ok(StreamGoal::Unknown) };
        let found = self.store.org(&organization).read().await?.find::<ResultDoc>(result_id).await;
        let row = match found {
            Ok(Some(row)) => row,
            Ok(None) | Err(Error::NotFound(_)) => return Ok(StreamGoal::Unknown),
            Err(error) => return Err(error),
        };
        let given = url_of(&row.doc);
        let known = given.rsplit('/').next().unwrap_or_default();
        if known.is_empty() || !bool::from(known.as_bytes().ct_eq(token.as_bytes())) {
            return Ok(StreamGoal::Unknown);
        }
        let body = &row.doc.body;
        let never_came = body.error_code == Some(ErrorCode::InboundNoIncomingCall);
        Ok(match body.status {
            ResultStatus::Ready => {
                let goal = Goal::Result(result_id);
                StreamGoal::Leg(Leg { organization, unresponsive: false, login: None, goal })
            }
            ResultStatus::Dispatched | ResultStatus::Running => StreamGoal::InUse,
            ResultStatus::Initializing | ResultStatus::Queued => StreamGoal::Unknown,
            _ if never_came => StreamGoal::Unknown,
            _ => StreamGoal::Over,
        })
    }
}

/// Returns what a result that waits for a WebSocket notes of its address.
pub(super) fn note(settings: &Settings, organization: &str, result_id: i64) -> Value {
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
