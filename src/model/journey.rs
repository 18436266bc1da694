//! Channels of a journey's steps: how an agent is met in each of them, by its own settings of that channel.

use std::borrow::Cow;

use super::agent::{AgentMode, AgentSpec, ConnectionType};
use super::digital_human::{DigitalHumanSpec, JourneyStep, Modality};
use super::run::QueueSpec;

impl ConnectionType {
    /// Returns the modes that a connection of this type carries, its own one first.
    pub fn modes(self) -> &'static [AgentMode] {
        use ConnectionType as C;
        match self {
            C::Sms | C::HttpWebhook | C::P12 => &[AgentMode::Text],
            C::Email => &[AgentMode::Email],
            C::P6 | C::P7 | C::P8 | C::P10 | C::P11 => &[AgentMode::Voice, AgentMode::Text],
            _ => &[AgentMode::Voice],
        }
    }
}

impl AgentSpec {
    /// Returns the agent as a step of a journey meets it: with the mode and the connection of the step's channel.
    ///
    /// A voice step of an agent that writes, and has no voice connection, leaves it as it is. A channel that is not set
    /// leaves the agent without its address ([`AgentSpec::missing_for`]).
    pub fn met_in(&self, step: Option<&JourneyStep>) -> Cow<'_, AgentSpec> {
        let Some(step) = step else { return Cow::Borrowed(self) };
        let (mode, kind) = match step.modality {
            Modality::Voice => match self.voice_connection() {
                None if self.mode == AgentMode::Text => return Cow::Borrowed(self),
                kind => (AgentMode::Voice, kind),
            },
            Modality::Sms => (AgentMode::Text, Some(ConnectionType::Sms)),
            Modality::Email => (AgentMode::Email, Some(ConnectionType::Email)),
            Modality::Chat => (AgentMode::Text, Some(self.chat_connection().unwrap_or(ConnectionType::HttpWebhook))),
        };
        let mut met = AgentSpec { mode, connection_type: kind, ..self.clone() };
        if kind != Some(ConnectionType::Sip) {
            // It would make every connection one of SIP.
            met.dynamic_sip_webhook_url = None;
        }
        if kind.is_none() {
            // No written connection may be inferred in the place of the voice connection that is missing.
            (met.http_webhook, met.p11_bot_id, met.p12_base_url) = (None, None, None);
        }
        Cow::Owned(met)
    }

    /// Returns the field that the channel of a step needs and that neither the agent nor the run has; `None`: the step
    /// can be held.
    pub fn missing_for(&self, step: &JourneyStep, run: &QueueSpec) -> Option<&'static str> {
        let lacks = |texts: &[&Option<String>]| texts.iter().all(|text| text.as_deref().is_none_or(str::is_empty));
        let (name, is_missing) = match step.modality {
            Modality::Voice => {
                let is_written = self.mode == AgentMode::Text && self.is_written();
                let is_held = self.voice_connection().or(run.connection()).is_some() || is_written;
                ("connection_type", !is_held)
            }
            Modality::Sms => ("phone_number", lacks(&[&run.phone_number, &self.phone_number])),
            Modality::Email => ("email_address", lacks(&[&self.email_address])),
            Modality::Chat => match self.chat_connection() {
                None | Some(ConnectionType::HttpWebhook) => ("http_webhook", lacks(&[&self.http_webhook])),
                Some(ConnectionType::P12) => ("P12_base_url", lacks(&[&self.p12_base_url])),
                Some(_) => return None,
            },
        };
        is_missing.then_some(name)
    }

    /// Returns the connection of voice steps: the agent's own, else the first one that is set. What carries both speech
    /// and text is the written connection of an agent that writes.
    fn voice_connection(&self) -> Option<ConnectionType> {
        let speaks = |kind: &ConnectionType| {
            let modes = kind.modes();
            modes.contains(&AgentMode::Voice) && !(self.mode == AgentMode::Text && modes.contains(&AgentMode::Text))
        };
        self.connection().filter(speaks).or_else(|| self.set_connections().find(speaks))
    }

    /// Returns the connection of chat steps: the one that the agent names, else its webhook, its chat-completions
    /// server, or the platform on which it writes.
    fn chat_connection(&self) -> Option<ConnectionType> {
        let own = self.connection().filter(|_| self.is_http_text());
        let named = own.filter(|_| self.connection_type.is_some());
        let webhook = self.http_webhook.as_ref().map(|_| ConnectionType::HttpWebhook);
        let server = self.p12_base_url.as_ref().map(|_| ConnectionType::P12);
        named.or(webhook).or(server).or(own)
    }
}

impl DigitalHumanSpec {
    /// Returns the step of the journey with this number.
    pub fn step(&self, number: Option<i64>) -> Option<&JourneyStep> {
        self.journey_steps.iter().flatten().find(|step| Some(step.step) == number)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn agent(fields: Value) -> AgentSpec {
        let mut body = json!({ "name": "a" });
        body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        serde_json::from_value(body).expect("it fits")
    }

    fn step(modality: &str) -> JourneyStep {
        serde_json::from_value(json!({ "step": 2, "intent": "Ask.", "modality": modality })).expect("it fits")
    }

    #[test]
    fn each_step_has_the_connection_of_its_channel() {
        use AgentMode::{Email, Text, Voice};
        use ConnectionType as C;
        let (sip, hook, chat) = ("sip:a@b", "http://h/hook", "http://h/v1");
        let all = json!({ "sip_uri": sip, "phone_number": "+15550001111", "http_webhook": hook, "P12_base_url": chat,
            "email_address": "a@b.example" });
        let dynamic = json!({ "dynamic_sip_webhook_url": hook, "http_webhook": hook, "phone_number": "+15550001111" });
        let named = json!({ "mode": "TEXT", "connection_type": "P12", "P12_base_url": chat, "http_webhook": hook });
        let texter = json!({ "mode": "TEXT", "phone_number": "+15550001111" });
        for (fields, modality, expect) in [
            (all.clone(), "voice", (Voice, Some(C::Sip))),
            (all.clone(), "sms", (Text, Some(C::Sms))),
            (all.clone(), "email", (Email, Some(C::Email))),
            (all, "chat", (Text, Some(C::HttpWebhook))),
            (dynamic.clone(), "voice", (Voice, Some(C::Sip))),
            (dynamic.clone(), "sms", (Text, Some(C::Sms))),
            (dynamic, "chat", (Text, Some(C::HttpWebhook))),
            (json!({ "P12_base_url": chat }), "chat", (Text, Some(C::P12))),
            (named.clone(), "chat", (Text, Some(C::P12))),
            (named, "voice", (Text, Some(C::P12))),
            // A number beside a webhook is dialled; the number of an agent that writes is texted.
            (json!({ "phone_number": "+15550001111", "http_webhook": hook }), "voice", (Voice, Some(C::Phone))),
            (texter.clone(), "voice", (Text, Some(C::Sms))),
            (json!({ "mode": "EMAIL", "phone_number": "+15550001111" }), "voice", (Voice, Some(C::Phone))),
            (
                json!({ "mode": "TEXT", "http_webhook": hook, "websocket_url": "ws://h" }),
                "voice",
                (Voice, Some(C::WebSocket)),
            ),
            (json!({ "mode": "TEXT", "connection_type": "SMS", "sip_uri": sip }), "voice", (Voice, Some(C::Sip))),
            // A platform that carries both is written to where the agent writes, and called where it speaks.
            (json!({ "mode": "TEXT", "P6_app_id": "a" }), "voice", (Text, Some(C::P6))),
            (json!({ "mode": "TEXT", "P6_app_id": "a" }), "chat", (Text, Some(C::P6))),
            (json!({ "P6_app_id": "a" }), "voice", (Voice, Some(C::P6))),
            (json!({ "http_webhook": hook }), "voice", (Voice, None)),
        ] {
            let agent = agent(fields.clone());
            let met = agent.met_in(Some(&step(modality)));
            assert_eq!((met.mode, met.connection()), expect, "{fields} {modality}");
            assert_eq!(met.is_sms(), expect.1 == Some(C::Sms), "{fields} {modality}");
        }
        let plain = agent(texter);
        assert!(*plain.met_in(None) == plain);
    }

    #[test]
    fn the_field_that_a_channel_lacks_is_named() {
        let (hook, chat) = ("http://h/hook", "http://h/v1");
        for (fields, run, expect) in [
            (
                json!({}),
                json!({}),
                [Some("connection_type"), Some("phone_number"), Some("email_address"), Some("http_webhook")],
            ),
            (
                json!({ "phone_number": "+15550001111", "email_address": "a@b.example", "P12_base_url": chat }),
                json!({}),
                [None, None, None, None],
            ),
            (
                json!({ "http_webhook": hook }),
                json!({ "phone_number": "+15550001111" }),
                [None, None, Some("email_address"), None],
            ),
            (
                json!({ "http_webhook": hook, "mode": "TEXT" }),
                json!({}),
                [None, Some("phone_number"), Some("email_address"), None],
            ),
            (
                json!({ "mode": "TEXT", "connection_type": "P12", "email_address": "" }),
                json!({}),
                [None, Some("phone_number"), Some("email_address"), Some("P12_base_url")],
            ),
            (
                json!({ "mode": "EMAIL", "http_webhook": hook }),
                json!({}),
                [Some("connection_type"), Some("phone_number"), Some("email_address"), None],
            ),
        ] {
            let mut body = run;
            body["simulation_id"] = json!("1");
            let run: QueueSpec = serde_json::from_value(body).expect("it fits");
            let agent = agent(fields.clone());
            let found = ["voice", "sms", "email", "chat"].map(|modality| agent.missing_for(&step(modality), &run));
            assert_eq!(found, expect, "{fields}");
        }
    }
}
