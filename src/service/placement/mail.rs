//! The agent's settings to the way of its mails.

use ringer_human::Facts;
use ringer_human::text::sentences;
use ringer_model::error_code::ErrorCode;
use ringer_provider::mail::{MailParty, Relay};
use ringer_provider::messages::MailRoute;

use super::platform::no_mail;
use super::{CallRows, Obstacle};
use crate::Settings;

/// Returns the way of mails to the agent. The sender's address is that of the conversation, which is given later.
///
/// # Errors
/// A setting that is missing, or an address that is none.
pub(super) fn route(rows: &CallRows, settings: &Settings) -> Result<MailRoute, Obstacle> {
    let email = &settings.email;
    let url = email.smtp_url.clone().filter(|_| email.is_configured()).ok_or_else(no_mail)?;
    let invalid = |message: &str| Obstacle::new(ErrorCode::InvalidEmailAddress, message);
    let agent = &rows.agent.spec;
    let address = agent.email_address.as_deref().map(str::trim).filter(|address| !address.is_empty());
    let address = address.ok_or_else(|| invalid("The agent has no email_address"))?;
    let to = MailParty { name: String::new(), address: address.to_owned() };
    if !to.is_valid() {
        return Err(invalid("The agent's email_address is not a mail address"));
    }
    let traits = rows.traits();
    let intent = rows.step.as_ref().map(|step| step.intent.as_str()).filter(|intent| !intent.is_empty());
    let intent = Facts::of(&traits).fill(intent.unwrap_or(&rows.human.intent));
    Ok(MailRoute {
        relay: Relay::new(url, settings.roots.clone()),
        from: MailParty { name: rows.human.name.clone().unwrap_or_default(), address: String::new() },
        to,
        result_id: rows.result_id.to_string(),
        wish: sentences(&intent).into_iter().next().unwrap_or(intent),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ringer_base::config::{Email, Secret};
    use serde_json::json;

    use super::*;
    use crate::placement::tests::rows_of;

    fn settings() -> Settings {
        let smtp_url = Some(Secret::new("smtp://127.0.0.1:2525".into()));
        let email = Email { smtp_url, inbound_domain: Some("in.example".into()), ..Email::default() };
        Settings { email: Arc::new(email), ..Settings::new("unused") }
    }

    #[test]
    fn an_agent_with_an_address_is_mailed_to() {
        let human = json!({ "name": "Ann", "intent": "I want a table. For {{seats}}.", "traits":
            [{ "trait_name": "seats", "trait_data_type": "NUMBER", "value": 2 }] });
        let agent = json!({ "mode": "EMAIL", "email_address": " desk@agent.example " });
        let route = route(&rows_of(agent, human, json!({})), &settings()).expect("a way");
        assert_eq!((route.to.address.as_str(), route.from.name.as_str()), ("desk@agent.example", "Ann"));
        assert_eq!(route.wish, "I want a table.");
    }

    #[test]
    fn what_is_missing_is_said() {
        for (agent, settings, code) in [
            (
                json!({ "mode": "EMAIL", "email_address": "desk@agent.example" }),
                Settings::new("unused"),
                "EMAIL_NOT_CONFIGURED",
            ),
            (json!({ "mode": "EMAIL" }), settings(), "INVALID_EMAIL_ADDRESS"),
            (json!({ "mode": "EMAIL", "email_address": "desk" }), settings(), "INVALID_EMAIL_ADDRESS"),
            (
                json!({ "mode": "EMAIL", "email_address": "a@b.example>\r\nRCPT TO:<c@d.example" }),
                settings(),
                "INVALID_EMAIL_ADDRESS",
            ),
        ] {
            let refused = route(&rows_of(agent, json!({}), json!({})), &settings).expect_err("it cannot be");
            assert_eq!(refused.code.as_str(), code);
        }
    }
}
