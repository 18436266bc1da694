//! Tokens of media rooms: JSON web tokens (RFC 7519) signed by HMAC-SHA256 (RFC 7518 3.2).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use ringer_base::config::Secret;
use serde_json::{Map, Value, json};
use sha2::Sha256;

use super::Visit;

/// Seconds for which a token to join holds. The server renews it in the call.
const JOIN_S: i64 = 3600;

/// Seconds for which a token of a request to the room server holds.
const ASK_S: i64 = 600;

/// Key of a room server, and the secret that signs its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomKey {
    /// Name of the key, `iss` of its tokens.
    pub key: String,
    /// Secret of the key.
    pub secret: Secret,
}

/// Returns the token by which a participant joins its room, publishes, subscribes and sends data, for an hour from
/// `now_ms`.
pub fn join_token(key: &RoomKey, visit: &Visit, now_ms: i64) -> Secret {
    let grants = json!({
        "roomJoin": true,
        "room": visit.room,
        "canPublish": true,
        "canSubscribe": true,
        "canPublishData": true,
    });
    let mut claims = claims(key, &visit.identity, now_ms, JOIN_S, grants);
    claims.insert("name".to_owned(), json!(visit.name));
    claims.insert("metadata".to_owned(), json!(visit.metadata));
    claims.insert("attributes".to_owned(), json!(visit.attributes));
    if visit.is_agent {
        claims.insert("kind".to_owned(), json!("agent"));
    }
    // Acts where the join itself creates the room.
    claims.insert("roomConfig".to_owned(), json!({ "agents": visit.agents("agentName") }));
    sign(key, &claims)
}

/// Returns the token of a request to the server about a room: create, remove.
pub(super) fn admin_token(key: &RoomKey, room: &str, now_ms: i64) -> Secret {
    let grants = json!({ "roomCreate": true, "roomAdmin": true, "room": room });
    sign(key, &claims(key, &key.key, now_ms, ASK_S, grants))
}

fn claims(key: &RoomKey, subject: &str, now_ms: i64, lasts_s: i64, grants: Value) -> Map<String, Value> {
    let now_s = now_ms.div_euclid(1000);
    Map::from_iter([
        ("iss".to_owned(), json!(key.key)),
        ("sub".to_owned(), json!(subject)),
        ("nbf".to_owned(), json!(now_s)),
        ("exp".to_owned(), json!(now_s + lasts_s)),
        ("video".to_owned(), grants),
    ])
}

/// Returns the claims as a JWT in its compact form (RFC 7515 3.1).
fn sign(key: &RoomKey, claims: &Map<String, Value>) -> Secret {
    let part = |value: String| URL_SAFE_NO_PAD.encode(value);
    let head = json!({ "alg": "HS256", "typ": "JWT" });
    let mut token = format!("{}.{}", part(head.to_string()), part(json!(claims).to_string()));
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key.secret.expose().as_bytes()).expect("HMAC takes keys of any length");
    mac.update(token.as_bytes());
    token.push('.');
    token.push_str(&URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()));
    Secret::new(token)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{claims_of, key, visit};
    use super::*;

    /// The token was made by PyJWT 2.15.
    #[test]
    fn tokens_are_signed_as_others_sign_them() {
        let claims = Map::from_iter([("sub".to_owned(), json!("1234567890")), ("admin".to_owned(), json!(true))]);
        let key = RoomKey { key: "k".into(), secret: Secret::new("your-256-bit-secret-of-some-length".into()) };
        let expect = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwiYWRtaW4iOnRydWV9.dp1S7jxvq4UTK1oUWYdN-oqcx8U1ckk90d6pR1JFBC8";
        assert_eq!(sign(&key, &claims).expose(), expect);
    }

    #[test]
    fn a_token_to_join_says_who_comes_and_what_it_may() {
        let claims = claims_of(join_token(&key(), &visit(), 1_767_603_600_999).expose());
        let expect = json!({
            "iss": "APIkey",
            "sub": "dh-17",
            "nbf": 1_767_603_600,
            "exp": 1_767_607_200,
            "video": { "roomJoin": true, "room": "svc-17-0000abcd", "canPublish": true, "canSubscribe": true,
                       "canPublishData": true },
            "name": "Ada",
            "metadata": "{\"tenant\":42}",
            "attributes": { "simulation_result_id": "17", "trait.size": "2" },
            "roomConfig": { "agents": [{ "agentName": "desk", "metadata": "{\"tenant\":42,\"id\":\"17\"}" }] },
        });
        assert_eq!(claims, expect);
    }

    #[test]
    fn a_token_to_ask_is_for_one_room() {
        let claims = claims_of(admin_token(&key(), "svc-17-0000abcd", 1_767_603_600_000).expose());
        let grants = json!({ "roomCreate": true, "roomAdmin": true, "room": "svc-17-0000abcd" });
        assert_eq!((&claims["video"], &claims["exp"]), (&grants, &json!(1_767_604_200)));
    }
}
