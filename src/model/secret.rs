//! Names of the document members that are secrets: they are sealed where they are stored, and masked where a document
//! is shown for debugging.

use serde::Serialize;
use serde_json::Value;

/// Names of the fields of an agent that read-only keys see as null.
pub const AGENT: [&str; 6] = [
    "websocket_password",
    "sip_password",
    "P1_token_webhook_auth",
    "P10_agent_token",
    "P11_client_secret",
    "P12_api_key",
];

/// Names of the fields of an integration that are never shown again.
pub const INTEGRATION: [&str; 11] = [
    "P1_api_key",
    "P1_api_secret",
    "P2_api_key",
    "P3_api_key",
    "P4_api_key",
    "P5_private_key",
    "P6_credentials",
    "P7_credentials",
    "P8_credentials",
    "P9_api_key",
    "P10_api_key",
];

/// Names of secrets in addition to those that users write ([`AGENT`], [`INTEGRATION`]).
const MADE: [&str; 5] = ["http_webhook_key", "inbound_token", "P11_inbound_token", "signing_key", "api_key"];

/// True if a member of this name, at any depth, is a secret.
fn is_secret(name: &str) -> bool {
    MADE.contains(&name) || AGENT.contains(&name) || INTEGRATION.contains(&name)
}

/// Calls `change` with the name and value of every secret that is set.
///
/// # Errors
/// The first error of `change`.
pub fn each<E>(value: &mut Value, change: &mut impl FnMut(&str, &mut Value) -> Result<(), E>) -> Result<(), E> {
    match value {
        Value::Object(members) => members.iter_mut().try_for_each(|(name, member)| match member {
            Value::Null => Ok(()),
            _ if is_secret(name) => change(name, member),
            _ => each(member, change),
        }),
        Value::Array(items) => items.iter_mut().try_for_each(|item| each(item, change)),
        _ => Ok(()),
    }
}

/// False when no secret is set in a document, whose `text` is JSON without white space.
pub fn any_in(text: &str) -> bool {
    let name = |before: &str| before.rfind('"').is_some_and(|quote| is_secret(&before[quote + 1..]));
    text.match_indices("\":").any(|(at, mark)| !text[at + mark.len()..].starts_with("null") && name(&text[..at]))
}

/// Returns a document as JSON, with `(set)` in the place of every secret.
pub fn mask(document: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(document).unwrap_or_default();
    let _ = each::<()>(&mut value, &mut |_, secret| {
        *secret = "(set)".into();
        Ok(())
    });
    value
}

/// `Debug` of documents that hold secrets: what [`mask`] makes of them.
#[macro_export]
macro_rules! masked_debug {
    ($($name:ty),+ $(,)?) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{} {}", stringify!($name), $crate::secret::mask(self))
            }
        }
    )+};
}
pub use masked_debug;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{AgentDoc, AgentSpec};
    use crate::integration::IntegrationSpec;
    use crate::webhook::WebhookDoc;

    #[test]
    fn a_secret_that_is_set_is_found_in_text() {
        for (text, expect) in [
            (r#"{"name":"a","sip_password":null,"x":{"api_key":null}}"#, false),
            (r#"{"name":"api_key"}"#, false),
            (r#"{"name":"a","sip_password":"s"}"#, true),
            (r#"{"x":[{"P6_credentials":{"a":1}}]}"#, true),
        ] {
            assert_eq!(any_in(text), expect, "{text}");
        }
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let mut spec = AgentSpec { sip_password: Some("tell-nobody".into()), ..AgentSpec::default() };
        spec.sip_username = Some("u1".into());
        let doc = AgentDoc { http_webhook_key: Some("tell-nobody".into()), spec, ..AgentDoc::default() };
        let integration = IntegrationSpec {
            P6_credentials: serde_json::json!({ "key": "tell-nobody" }),
            P1_url: Some("wss://rooms".into()),
            ..IntegrationSpec::default()
        };
        let webhook = WebhookDoc { signing_key: "tell-nobody".into(), ..WebhookDoc::default() };
        let shown = format!("{doc:?} {integration:?} {webhook:?}");
        assert!(!shown.contains("tell-nobody"), "{shown}");
        assert!(shown.contains("u1") && shown.contains("wss://rooms") && shown.contains("(set)"), "{shown}");
    }
}
