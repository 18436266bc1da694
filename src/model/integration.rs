//! Credentials of the platforms P1 to P10, one set an organization.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Object;
use super::secret::{self, masked_debug};

/// Form of credentials; values stored by earlier releases may have any.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Credentials {
    /// Credentials as one text.
    Text(String),
    /// Credentials by their names.
    Fields(Object),
}

/// A partial update of the credentials: null clears. Credentials are a string or an object.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(non_snake_case, reason = "wire names")]
pub struct IntegrationSpec {
    /// URL of the room server.
    #[serde(default)]
    pub P1_url: Option<String>,
    /// API key of the room server.
    #[serde(default)]
    pub P1_api_key: Option<String>,
    /// API secret of the room server.
    #[serde(default)]
    pub P1_api_secret: Option<String>,
    /// Base URL of the pipelines.
    #[serde(default)]
    pub P2_base_url: Option<String>,
    /// API key of the pipelines.
    #[serde(default)]
    pub P2_api_key: Option<String>,
    /// API key of P3.
    #[serde(default)]
    pub P3_api_key: Option<String>,
    /// API key of P4.
    #[serde(default)]
    pub P4_api_key: Option<String>,
    /// Private key of P5.
    #[serde(default)]
    pub P5_private_key: Option<String>,
    /// Credentials of P6, a string or an object.
    #[serde(default)]
    #[schemars(with = "Option<Credentials>")]
    pub P6_credentials: Value,
    /// Credentials of P7, a string or an object.
    #[serde(default)]
    #[schemars(with = "Option<Credentials>")]
    pub P7_credentials: Value,
    /// Credentials of P8, a string or an object.
    #[serde(default)]
    #[schemars(with = "Option<Credentials>")]
    pub P8_credentials: Value,
    /// API key of P9.
    #[serde(default)]
    pub P9_api_key: Option<String>,
    /// API key of P10, a string or an object.
    #[serde(default)]
    #[schemars(with = "Option<Credentials>")]
    pub P10_api_key: Value,
}

masked_debug!(IntegrationSpec);

impl IntegrationSpec {
    /// Returns the readable form: plain fields, and for each secret null plus `<field>_set`.
    pub fn record(&self) -> Map<String, Value> {
        let Ok(Value::Object(fields)) = serde_json::to_value(self) else { return Map::new() };
        let mut shown = Map::new();
        for (name, value) in fields {
            if secret::INTEGRATION.contains(&name.as_str()) {
                shown.insert(name.clone(), Value::Null);
                shown.insert(format!("{name}_set"), Value::Bool(!value.is_null()));
            } else {
                shown.insert(name, value);
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_secret_is_a_field_and_none_is_shown() {
        let mut spec = IntegrationSpec { P1_url: Some("wss://rooms".into()), ..Default::default() };
        spec.P10_api_key = Value::String("k".into());
        let shown = spec.record();
        assert_eq!(shown["P1_url"], "wss://rooms");
        assert_eq!(shown["P10_api_key_set"], true);
        for secret in &secret::INTEGRATION {
            assert_eq!(shown[*secret], Value::Null, "{secret}");
        }
    }
}
