//! Which members of documents are secrets: they are sealed where they are stored, and masked where a document is shown for
//! debugging.

use serde::Serialize;
use serde_json::Value;

/// Names of the members. Whatever has one of these names at any depth is a secret.
pub const NAMES: &[&str] = &[
    "websocket_password",
    "sip_password",
    "P1_token_webhook_auth",
    "P10_agent_token",
    "P11_client_secret",
    "P12_api_key",
    "http_webhook_key",
    "inbound_token",
    "P11_inbound_token",
    "signing_key",
    "api_key",
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

/// Calls `change` with the name and value of every secret that is set.
///
/// # Errors
/// The first error of `change`.
pub fn each<E>(value: &mut Value, change: &mut impl FnMut(&str, &mut Value) -> Result<(), E>) -> Result<(), E> {
    match value {
        Value::Object(members) => members.iter_mut().try_for_each(|(name, member)| match member {
            Value::Null => Ok(()),
            _ if NAMES.contains(&name.as_str()) => change(name, member),
            _ => each(member, change),
        }),
        Value::Array(items) => items.iter_mut().try_for_each(|item| each(item, change)),
        _ => Ok(()),
    }
}

/// A document as JSON, `(set)` in the place of every secret.
pub fn masked(document: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(document).unwrap_or_default();
    let _ = each::<()>(&mut value, &mut |_, secret| {
        *secret = "(set)".into();
        Ok(())
    });
    value
}

/// `Debug` of documents that hold secrets: what [`masked`] makes of them.
macro_rules! masked_debug {
    ($($name:ty),+ $(,)?) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{} {}", stringify!($name), $crate::model::secret::masked(self))
            }
        }
    )+};
}
pub(crate) use masked_debug;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::agent::{AgentDoc, AgentSpec};
    use crate::model::integration::{self, IntegrationSpec};
    use crate::model::webhook::WebhookDoc;

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

    #[test]
    fn every_credential_of_a_platform_is_a_secret() {
        assert!(integration::SECRETS.iter().all(|name| NAMES.contains(name)));
    }
}
