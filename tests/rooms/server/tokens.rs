//! Tokens (JWT, RFC 7519, HS256) that let somebody into a room.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use ringer::clock::realtime_ns;
use ringer::transport::room::messages::AGENT_KIND;
use serde_json::{Value, json};
use sha2::Sha256;

pub(crate) const KEY: &str = "testkey";
pub(crate) const SECRET: &str = "a secret of the tests, which is longer than thirty-two bytes";

/// Somebody who has a token.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    pub identity: String,
    pub room: String,
    pub kind: i32,
    pub attributes: HashMap<String, String>,
}

fn now() -> u64 {
    realtime_ns() / 1_000_000_000
}

fn signature(signed: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any length");
    mac.update(signed.as_bytes());
    URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
}

/// Returns a token for this identity that holds for so long; zero: it has expired.
pub(crate) fn token(identity: &str, lasts: Duration) -> String {
    token_for("room", identity, lasts)
}

/// Returns such a token for the room of this name.
pub(crate) fn token_for(room: &str, identity: &str, lasts: Duration) -> String {
    let expires = if lasts.is_zero() { now() - 60 } else { now() + lasts.as_secs() };
    let claims = json!({
        "iss": KEY, "sub": identity, "nbf": now() - 120, "exp": expires, "video": { "roomJoin": true, "room": room },
    });
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(json!({ "alg": "HS256", "typ": "JWT" })), part(claims));
    format!("{signed}.{}", signature(&signed))
}

/// Returns whoever a token lets in, or the words of the refusal.
pub(super) fn check(token: &str) -> Result<Who, &'static str> {
    let (signed, given) = token.rsplit_once('.').ok_or("no permissions to access the room")?;
    if signature(signed) != given {
        return Err("invalid token, error: square/go-jose: error in cryptographic primitive");
    }
    let claims = signed.split('.').nth(1).and_then(|part| URL_SAFE_NO_PAD.decode(part).ok()).unwrap_or_default();
    let claims: Value = serde_json::from_slice(&claims).map_err(|_| "invalid token")?;
    if claims["exp"].as_u64().is_none_or(|expires| expires < now()) {
        return Err("invalid token: token is expired (exp)");
    }
    if claims["iss"] != KEY || claims["video"]["roomJoin"] != true {
        return Err("invalid API key");
    }
    let identity = claims["sub"].as_str().filter(|identity| !identity.is_empty()).ok_or("identity cannot be empty")?;
    let kind = if claims["kind"] == "agent" { AGENT_KIND } else { 0 };
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    let attributes = claims["attributes"].as_object().into_iter().flatten().filter_map(text).collect();
    let room = claims["video"]["room"].as_str().unwrap_or_default().to_owned();
    Ok(Who { identity: identity.to_owned(), room, kind, attributes })
}
