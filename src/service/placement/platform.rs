//! Agents and steps that cannot be held here, and why: a setting that is missing, a platform without an adapter.

use ringer_model::agent::ConnectionType;
use ringer_model::error_code::{ErrorCode, Platform, PlatformFault, Setting};
use ringer_model::integration::IntegrationSpec;
use ringer_store::Session;
use ringer_store::vault::is_not_opened;
use serde_json::{Value, json};

use super::{CallRows, Obstacle};
use crate::NotDone;
use crate::library::folders::stored_integrations;

/// Code of an agent or a step that this build has no way to reach.
pub(super) const NOT_SUPPORTED: ErrorCode = ErrorCode::ConnectionNotSupported;

/// Needs of a platform: its code where all is set and nothing here reaches it. Before that stands, for each need, the
/// code where it is missing and the settings of which one is enough.
type Needs = (ConnectionType, ErrorCode, &'static [(ErrorCode, &'static [&'static str])]);

static PLATFORMS: [Needs; 11] = {
    use ConnectionType as C;
    use ErrorCode::Missing;
    use Platform::*;
    use Setting::*;
    [
        (
            C::P1,
            NOT_SUPPORTED,
            &[
                (Missing(P1, Integration), &["P1_url", "P1_token_webhook_url"]),
                (Missing(P1, Integration), &["P1_api_key", "P1_token_webhook_url"]),
                (Missing(P1, Integration), &["P1_api_secret", "P1_token_webhook_url"]),
            ],
        ),
        (C::P2, NOT_SUPPORTED, &[(Missing(P2, Integration), &["P2_base_url"])]),
        (
            C::P3,
            no_adapter(P3),
            &[(Missing(P3, AgentId), &["P3_agent_id"]), (Missing(P3, Integration), &["P3_api_key"])],
        ),
        (
            C::P4,
            no_adapter(P4),
            &[(Missing(P4, AgentId), &["P4_agent_id"]), (Missing(P4, Integration), &["P4_api_key"])],
        ),
        (
            C::P5,
            no_adapter(P5),
            &[(Missing(P5, AssistantId), &["P5_assistant_id"]), (Missing(P5, Integration), &["P5_private_key"])],
        ),
        (
            C::P6,
            no_adapter(P6),
            &[
                (Missing(P6, AppId), &["P6_app_id"]),
                (Missing(P6, AppId), &["P6_deployment_id"]),
                (Missing(P6, Integration), &["P6_credentials"]),
            ],
        ),
        (
            C::P7,
            no_adapter(P7),
            &[
                (Missing(P7, AgentId), &["P7_project_id"]),
                (Missing(P7, AgentId), &["P7_location"]),
                (Missing(P7, AgentId), &["P7_agent_id"]),
                (Missing(P7, Integration), &["P7_credentials"]),
            ],
        ),
        (
            C::P8,
            no_adapter(P8),
            &[
                (Missing(P8, Configuration), &["P8_base_url"]),
                (Missing(P8, Configuration), &["P8_domain_code"]),
                (Missing(P8, Configuration), &["P8_flow_name", "P8_agent_name"]),
            ],
        ),
        (
            C::P9,
            no_adapter(P9),
            &[(Missing(P9, AgentId), &["P9_pathway_id", "P9_agent_id"]), (Missing(P9, Integration), &["P9_api_key"])],
        ),
        (C::P10, no_adapter(P10), &[(Missing(P10, AgentToken), &["P10_agent_token"])]),
        (
            C::P11,
            no_adapter(P11),
            &[
                (Missing(P11, Configuration), &["P11_host"]),
                (Missing(P11, Configuration), &["P11_bot_id"]),
                (Missing(P11, Configuration), &["P11_client_id"]),
                (Missing(P11, Configuration), &["P11_client_secret"]),
            ],
        ),
    ]
};

const fn no_adapter(platform: Platform) -> ErrorCode {
    ErrorCode::Platform(platform, PlatformFault::AdapterNotConfigured)
}

/// Returns the credentials of the platforms, for a connection of the kind of one.
///
/// # Errors
/// They cannot be opened, or a fault of the store.
pub(super) async fn credentials(
    db: &mut Session,
    kind: Option<ConnectionType>,
) -> Result<IntegrationSpec, NotDone<Obstacle>> {
    let Some(kind) = kind.filter(|kind| PLATFORMS.iter().any(|(platform, ..)| platform == kind)) else {
        return Ok(IntegrationSpec::default());
    };
    match (stored_integrations(db).await, Platform::parse(kind.as_str())) {
        (Err(error), Some(platform)) if is_not_opened(&error) => {
            tracing::error!(%error, "the stored credentials of the platforms cannot be opened");
            let code = ErrorCode::Platform(platform, PlatformFault::IntegrationDecryptFailed);
            let why = "The stored credentials cannot be opened: is security.secret_key the key that sealed them?";
            Err(Obstacle::new(code, why).into())
        }
        (stored, _) => Ok(stored?),
    }
}

impl CallRows {
    /// Returns the reason why an agent of this kind cannot be reached: the first missing setting, else the missing
    /// adapter.
    pub(super) fn unmet(&self, kind: ConnectionType) -> Obstacle {
        let name = kind.as_str();
        let Some((_, lacking, _)) = PLATFORMS.iter().find(|(platform, ..)| *platform == kind) else {
            return if kind == ConnectionType::Email { no_mail() } else { not_spoken(name) };
        };
        match self.missing(kind) {
            Some(obstacle) => obstacle,
            None if *lacking == NOT_SUPPORTED => not_spoken(name),
            None => Obstacle::new(lacking.clone(), format!("No adapter for {name} is set up")),
        }
    }

    /// Returns the first setting of an agent on a platform that is missing.
    pub(super) fn missing(&self, kind: ConnectionType) -> Option<Obstacle> {
        let (.., needed) = PLATFORMS.iter().find(|(platform, ..)| *platform == kind)?;
        let given = [json!(self.overrides), json!(self.agent.spec), json!(self.platforms)];
        let is_set = |setting: &&str| {
            given.iter().any(|fields| fields.get(*setting).is_some_and(|value| *value != Value::Null && *value != ""))
        };
        let (code, settings) = needed.iter().find(|(_, settings)| !settings.iter().any(is_set))?;
        Some(Obstacle::new(code.clone(), format!("{} is not set", settings.join(" or "))))
    }
}

fn not_spoken(name: &str) -> Obstacle {
    Obstacle::new(NOT_SUPPORTED, format!("connection_type {name} is not spoken in this version"))
}

/// Returns the obstacle that no text message can be sent.
pub(super) fn no_carrier() -> Obstacle {
    Obstacle::new(ErrorCode::SmsNotConfigured, "No carrier for text messages is set up")
}

/// Returns the obstacle that no mail can be sent, or none answered.
pub(super) fn no_mail() -> Obstacle {
    let message = "Mail is not set up: email.smtp_url, and email.address or email.inbound_domain, are needed";
    Obstacle::new(ErrorCode::EmailNotConfigured, message)
}

#[cfg(test)]
mod tests {
    use ringer_model::agent::AgentSpec;
    use ringer_model::error_code::Owner;

    use super::*;
    use crate::placement::tests::rows_of;

    /// Returns the settings of all platforms, the agent's and the organization's.
    fn all_set() -> (Value, Value) {
        let names = PLATFORMS.iter().flat_map(|(.., needed)| needed.iter().flat_map(|(_, settings)| *settings));
        let names: Vec<&str> = names.copied().collect();
        let (stored, agent) = (json!(IntegrationSpec::default()), json!(AgentSpec::default()));
        let of = |fields: &Value| -> Value {
            names
                .iter()
                .filter(|name| fields.get(*name).is_some())
                .map(|name| ((*name).to_owned(), json!("x")))
                .collect()
        };
        for name in &names {
            assert!(stored.get(*name).is_some() != agent.get(*name).is_some(), "{name} is a field of one of them");
        }
        (of(&agent), of(&stored))
    }

    fn unmet(mut agent: Value, stored: &Value, kind: ConnectionType) -> Obstacle {
        agent["connection_type"] = kind.as_str().into();
        let platforms = serde_json::from_value(stored.clone()).expect("every field has a default");
        CallRows { platforms, ..rows_of(agent, json!({}), json!({})) }.unmet(kind)
    }

    #[test]
    fn a_platform_is_refused_for_its_first_missing_setting_and_then_for_what_this_build_lacks() {
        let (agent, stored) = all_set();
        for (kind, lacking, needed) in &PLATFORMS {
            let kind = *kind;
            let refused = unmet(agent.clone(), &stored, kind).code;
            assert_eq!((&refused, refused.owner()), (lacking, Owner::Engine));
            let is_channel = matches!(kind, ConnectionType::P1 | ConnectionType::P2);
            let adapter = format!("{}_ADAPTER_NOT_CONFIGURED", kind.as_str());
            assert_eq!(refused.as_str(), if is_channel { "CONNECTION_NOT_SUPPORTED" } else { &adapter });
            for (code, settings) in *needed {
                let (mut agent, mut stored) = (agent.clone(), stored.clone());
                for setting in *settings {
                    for fields in [&mut agent, &mut stored] {
                        fields.as_object_mut().expect("an object").remove(*setting);
                    }
                }
                let refused = unmet(agent, &stored, kind);
                let expect = (code, format!("{} is not set", settings.join(" or ")));
                assert_eq!((&refused.code, refused.message), expect);
            }
        }
    }

    #[test]
    fn codes_of_what_is_not_set_up() {
        use ConnectionType as C;
        for (kind, code) in [
            (C::P1, "MISSING_P1_INTEGRATION"),
            (C::P2, "MISSING_P2_INTEGRATION"),
            (C::P3, "MISSING_P3_AGENT_ID"),
            (C::P4, "MISSING_P4_AGENT_ID"),
            (C::P5, "MISSING_P5_ASSISTANT_ID"),
            (C::P6, "MISSING_P6_APP_ID"),
            (C::P7, "MISSING_P7_AGENT_ID"),
            (C::P8, "MISSING_P8_CONFIGURATION"),
            (C::P9, "MISSING_P9_AGENT_ID"),
            (C::P10, "MISSING_P10_AGENT_TOKEN"),
            (C::P11, "MISSING_P11_CONFIGURATION"),
            (C::Email, "EMAIL_NOT_CONFIGURED"),
            (C::WebSocket, "CONNECTION_NOT_SUPPORTED"),
        ] {
            assert_eq!(unmet(json!({}), &json!({}), kind).code.as_str(), code);
        }
        let asked = json!({ "P3_agent_id": "a" });
        assert_eq!(
            rows_of(json!({}), json!({}), asked).unmet(C::P3).code.as_str(),
            "MISSING_P3_INTEGRATION",
            "named by the run"
        );
    }
}
