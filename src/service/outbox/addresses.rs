//! Addresses and numbers of Digital Humans, as agents call them and as agents' owners are told.

use std::net::SocketAddr;

use ringer_media::seed::Seed;
use ringer_model::agent::AgentSpec;
use ringer_model::digital_human::{DigitalHumanSpec, JourneyStep};

/// Returns the number that an agent reaches a Digital Human on, by telephone or by text messages; none where it writes
/// otherwise.
pub(crate) fn number<'a>(
    agent: &AgentSpec,
    human: &'a DigitalHumanSpec,
    step: Option<&'a JourneyStep>,
) -> Option<&'a str> {
    if agent.is_sms() {
        return human.text_number(step);
    }
    let of_step = step.and_then(|step| step.phone_number.as_deref());
    of_step.or(human.phone_number.as_deref()).filter(|_| !agent.is_written())
}

/// Returns the user part of the address of a Digital Human: its own as long as it is always on, else one for each run.
/// The organization's id, which nobody else knows, keeps others from guessing it.
pub(crate) fn address_user(organization: &str, human_id: i64, human: &DigitalHumanSpec, run_id: i64) -> String {
    let of_run = if human.listens_on().is_some() { String::new() } else { run_id.to_string() };
    let token = Seed::of(&format!("leg:{organization}:{of_run}:{human_id}")).0 as u32;
    format!("dh-{human_id}-{token:08x}")
}

/// Returns the SIP URI of a user at this engine; empty where no calls come in.
pub(crate) fn address_uri(user: &str, at: Option<SocketAddr>) -> String {
    at.map_or_else(String::new, |at| format!("sip:{user}@{at}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_one_run_or_of_one_who_is_always_on() {
        let human = DigitalHumanSpec::default();
        let always = DigitalHumanSpec {
            always_on_mode: true,
            phone_number: Some("+15550001111".into()),
            ..DigitalHumanSpec::default()
        };
        let first = address_user("o", 7, &human, 1);
        assert!(first.starts_with("dh-7-") && first.len() == 13, "{first}");
        assert_eq!(first, address_user("o", 7, &human, 1));
        assert_ne!(first, address_user("o", 7, &human, 2));
        assert_ne!(first, address_user("p", 7, &human, 1));
        assert_eq!(address_user("o", 7, &always, 1), address_user("o", 7, &always, 2));
        let at = "[::1]:5060".parse().ok();
        assert_eq!(address_uri(&first, at), format!("sip:{first}@[::1]:5060"));
        assert_eq!(address_uri(&first, None), "");
    }
}
