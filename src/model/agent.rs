//! The voice agent under test and how it is reached.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Object;
use super::agent_version::LabelText;
use super::digital_human::{Direction, JourneyStep, Modality};
use super::schema::telephone_number;
use super::secret::{self, masked_debug};
use super::set_only::set_only;
use super::time::Timestamp;

words! {
    /// Direction of calls: an INBOUND agent is called, an OUTBOUND agent places the call.
    AgentType { Inbound = "INBOUND", Outbound = "OUTBOUND" } default Inbound
}

words! {
    /// Medium of conversations with the agent.
    AgentMode { Voice = "VOICE", Text = "TEXT", Email = "EMAIL" } default Voice
}

words! {
    /// Type of the connection to the agent.
    ConnectionType {
        Sms = "SMS", HttpWebhook = "HTTP_WEBHOOK", Phone = "PHONE", Sip = "SIP", WebSocket = "WEBSOCKET", Email = "EMAIL",
        P1 = "P1", P2 = "P2", P3 = "P3", P4 = "P4", P5 = "P5", P6 = "P6", P7 = "P7", P8 = "P8", P9 = "P9", P10 = "P10",
        P11 = "P11", P12 = "P12",
    }
}

impl ConnectionType {
    /// True for a platform whose agents are reached by an adapter of the settings.
    pub fn is_by_adapter(self) -> bool {
        use ConnectionType::{P3, P4, P5, P6, P7, P8, P9, P10, P11};
        matches!(self, P3 | P4 | P5 | P6 | P7 | P8 | P9 | P10 | P11)
    }
}

words! {
    /// The platform that the agent's definition comes from.
    Provider {
        Custom = "CUSTOM", P3 = "P3", P4 = "P4", P5 = "P5", P6 = "P6", P7 = "P7", P8 = "P8", P9 = "P9", P10 = "P10",
        P11 = "P11", P12 = "P12",
    } default Custom
}

/// The writable fields of an agent.
///
/// `system_prompt`, `labels` and `folder` are not part of the stored agent: they become version 1 and a folder.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentSpec {
    /// Name of the agent, 1 to 255 characters.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// Text of the first version; on update a changed text makes a new version.
    #[serde(default, skip_serializing)]
    pub system_prompt: String,
    /// Goals of the agent, one an entry; default none.
    #[serde(default)]
    pub goals: Vec<String>,
    /// Stable identifier for the declarative push; unique in the organization.
    #[serde(default)]
    pub svc_as_code_id: Option<Uuid>,
    /// Phone number of the agent, E.164.
    #[serde(default)]
    #[schemars(extend("x-rules" = telephone_number()))]
    pub phone_number: Option<String>,
    /// Direction of calls: an INBOUND agent is called, an OUTBOUND agent calls; default INBOUND.
    #[serde(default, rename = "type")]
    pub kind: AgentType,
    /// Medium of conversations: voice, text or e-mail; default VOICE.
    #[serde(default)]
    pub mode: AgentMode,
    /// Words that the recognizer is biased towards; default none.
    #[serde(default)]
    pub keyterms: Vec<String>,
    /// Phone numbers, E.164, from which the agent sends follow-up SMS; empty: none are awaited.
    #[serde(default)]
    pub follow_up_sms_sender_numbers: Vec<String>,
    /// The customer's own identifier; unique in the organization.
    #[serde(default)]
    pub external_agent_id: Option<String>,
    /// Labels of version 1, besides production and latest; on update in the place of those that it has.
    #[serde(default, skip_serializing)]
    pub labels: Vec<LabelText>,
    /// Name of the folder, 1 to 255 characters; created when absent.
    #[serde(default, skip_serializing)]
    #[schemars(length(min = 1, max = 255))]
    pub folder: Option<String>,
    /// URL of the agent for calls by WebSocket: ws, wss, http or https.
    #[serde(default)]
    pub websocket_url: Option<String>,
    /// User name of the upgrade request, for basic authentication.
    #[serde(default)]
    pub websocket_username: Option<String>,
    /// Password of the upgrade request, for basic authentication.
    #[serde(default)]
    pub websocket_password: Option<String>,
    /// Protocol of the WebSocket messages: a kind or a name in the engine's settings; null: the engine's own.
    #[serde(default)]
    pub websocket_dialect: Option<String>,
    /// Parameters that a dialect carries in addition to the id of the result.
    #[serde(default)]
    pub websocket_parameters: Option<BTreeMap<String, String>>,
    /// SIP address to call, `sip:user@host` or `sips:user@host`; port and parameters are allowed.
    #[serde(default)]
    pub sip_uri: Option<String>,
    /// User name for SIP digest authentication.
    #[serde(default)]
    pub sip_username: Option<String>,
    /// Password for SIP digest authentication.
    #[serde(default)]
    pub sip_password: Option<String>,
    /// Header fields added to the INVITE; names are given without `X-`.
    #[serde(default)]
    pub custom_sip_headers: Option<BTreeMap<String, String>>,
    /// URL that is asked for the SIP address before each call; not together with `sip_uri`.
    #[serde(default)]
    pub dynamic_sip_webhook_url: Option<String>,
    /// URL that is requested to make an OUTBOUND agent place its call.
    #[serde(default)]
    pub outbound_trigger_webhook_url: Option<String>,
    /// Body of the trigger request; its texts may hold templates.
    #[serde(default)]
    pub outbound_trigger_payload_template: Option<Object>,
    /// True: personal data is replaced before results are stored.
    #[serde(default)]
    pub redact_pii: bool,
    /// Address that text messages are posted to.
    #[serde(default)]
    pub http_webhook: Option<String>,
    /// True: the HTTP answer to a posted message is the agent's reply.
    #[serde(default)]
    pub http_webhook_sync_reply: bool,
    /// Speech vendor of the agent: a label only, free text.
    #[serde(default)]
    pub voice_provider: Option<String>,
    /// Handle on the speech vendor: a label only, free text.
    #[serde(default)]
    pub provider_id: Option<String>,
    /// Address that a Digital Human writes to.
    #[serde(default)]
    pub email_address: Option<String>,
    /// Senders whose mail is taken as the agent's; empty: `email_address`.
    #[serde(default)]
    pub email_reply_addresses: Vec<String>,
    /// True: the platform itself is asked to place the call.
    #[serde(default)]
    pub enable_outbound_call_auto_start: Option<bool>,
    /// True: no run of this agent can be queued.
    #[serde(default)]
    pub simulations_disabled: bool,
    /// Graph of a conversation, as a scenario's definition: generation plays it where a request names no scenario, or
    /// the scenario `agent`. Stored as given; a save names in `warning` what it holds besides.
    #[serde(default)]
    pub workflow: Option<Object>,
    /// Type of the connection to the agent; absent: inferred from the other fields.
    #[serde(default)]
    pub connection_type: Option<ConnectionType>,
    /// Platform of the agent's definition; P3 when the connection is P3, else CUSTOM. An OUTBOUND agent of P4 has the
    /// first word; in all else it is a label only.
    #[serde(default)]
    pub provider: Option<Provider>,
    /// Attacks of `red_teaming`: `vector_ids` that are used, `intents` of the attackers and vectors to `exclude`, each
    /// a list of texts. Stored as given; a save names in `warning` what it holds besides.
    #[serde(default)]
    pub red_team_profile: Option<Object>,
    /// Stored as given; `emails` and `webhook_url` are used.
    #[serde(default)]
    pub simulation_notifications: Object,
    /// Name of the agent to dispatch into the room of platform P1.
    #[serde(default, rename = "P1_agent_name")]
    pub p1_agent_name: Option<String>,
    /// Metadata of the room, passed to the platform.
    #[serde(default, rename = "P1_metadata")]
    pub p1_metadata: Option<Object>,
    /// Topic of tool call packets.
    #[serde(default, rename = "P1_customer_tool_topic")]
    pub p1_customer_tool_topic: Option<String>,
    /// URL that answers with a room and a token for it.
    #[serde(default, rename = "P1_token_webhook_url")]
    pub p1_token_webhook_url: Option<String>,
    /// Authorization header of the request to `P1_token_webhook_url`.
    #[serde(default, rename = "P1_token_webhook_auth")]
    pub p1_token_webhook_auth: Option<String>,
    /// Name of the pipeline to start on platform P2.
    #[serde(default, rename = "P2_agent_name")]
    pub p2_agent_name: Option<String>,
    /// Configuration passed to the pipeline unchanged.
    #[serde(default, rename = "P2_agent_configuration")]
    pub p2_agent_configuration: Option<Object>,
    /// Room properties passed to the pipeline unchanged.
    #[serde(default, rename = "P2_room_properties")]
    pub p2_room_properties: Option<Object>,
    /// Identifier of the agent on platform P3.
    #[serde(default, rename = "P3_agent_id")]
    pub p3_agent_id: Option<String>,
    /// Identifier of the agent on platform P4.
    #[serde(default, rename = "P4_agent_id")]
    pub p4_agent_id: Option<String>,
    /// Identifier of the assistant on platform P5.
    #[serde(default, rename = "P5_assistant_id")]
    pub p5_assistant_id: Option<String>,
    /// Identifier of the app on platform P6.
    #[serde(default, rename = "P6_app_id")]
    pub p6_app_id: Option<String>,
    /// Identifier of the deployment on platform P6.
    #[serde(default, rename = "P6_deployment_id")]
    pub p6_deployment_id: Option<String>,
    /// Identifier of the project on platform P7.
    #[serde(default, rename = "P7_project_id")]
    pub p7_project_id: Option<String>,
    /// Region of the project on platform P7.
    #[serde(default, rename = "P7_location")]
    pub p7_location: Option<String>,
    /// Identifier of the agent on platform P7.
    #[serde(default, rename = "P7_agent_id")]
    pub p7_agent_id: Option<String>,
    /// Base URL of the platform, http or https.
    #[serde(default, rename = "P8_base_url")]
    pub p8_base_url: Option<String>,
    /// Code of the domain on platform P8.
    #[serde(default, rename = "P8_domain_code")]
    pub p8_domain_code: Option<String>,
    /// Name of the flow on platform P8.
    #[serde(default, rename = "P8_flow_name")]
    pub p8_flow_name: Option<String>,
    /// Name of the agent on platform P8.
    #[serde(default, rename = "P8_agent_name")]
    pub p8_agent_name: Option<String>,
    /// Identifier of the pathway on platform P9.
    #[serde(default, rename = "P9_pathway_id")]
    pub p9_pathway_id: Option<String>,
    /// Identifier of the agent on platform P9.
    #[serde(default, rename = "P9_agent_id")]
    pub p9_agent_id: Option<String>,
    /// Call settings, passed to the platform unchanged.
    #[serde(default, rename = "P9_call_settings")]
    pub p9_call_settings: Option<Object>,
    /// Token of the agent on platform P10.
    #[serde(default, rename = "P10_agent_token")]
    pub p10_agent_token: Option<String>,
    /// Release of the agent, passed to the platform unchanged.
    #[serde(default, rename = "P10_release")]
    pub p10_release: Option<String>,
    /// Parameters of the agent, passed to the platform unchanged.
    #[serde(default, rename = "P10_agent_parameters")]
    pub p10_agent_parameters: Option<Object>,
    /// Host name of platform P11.
    #[serde(default, rename = "P11_host")]
    pub p11_host: Option<String>,
    /// Identifier of the bot on platform P11.
    #[serde(default, rename = "P11_bot_id")]
    pub p11_bot_id: Option<String>,
    /// Identifier of the client on platform P11.
    #[serde(default, rename = "P11_client_id")]
    pub p11_client_id: Option<String>,
    /// Secret of the client `P11_client_id`.
    #[serde(default, rename = "P11_client_secret")]
    pub p11_client_secret: Option<String>,
    /// Base URL of the chat-completions endpoint.
    #[serde(default, rename = "P12_base_url")]
    pub p12_base_url: Option<String>,
    /// API key of the chat-completions endpoint.
    #[serde(default, rename = "P12_api_key")]
    pub p12_api_key: Option<String>,
    /// Name of the model at the chat-completions endpoint.
    #[serde(default, rename = "P12_model")]
    pub p12_model: Option<String>,
}

impl Default for AgentSpec {
    fn default() -> Self {
        serde_json::from_str(r#"{"name":""}"#).expect("every field but name has a default")
    }
}

impl AgentSpec {
    /// True if conversations with the agent are written, and held by this engine.
    pub fn is_written(&self) -> bool {
        (self.mode == AgentMode::Text && self.connection().is_some()) || self.is_email()
    }

    /// True if conversations with the agent use mail.
    pub fn is_email(&self) -> bool {
        self.mode == AgentMode::Email && self.connection() == Some(ConnectionType::Email)
    }

    /// True if conversations with the agent use text messages (SMS).
    pub fn is_sms(&self) -> bool {
        self.mode == AgentMode::Text && self.connection() == Some(ConnectionType::Sms)
    }

    /// True if the agent is asked over HTTP and answers in text.
    pub fn is_http_text(&self) -> bool {
        use ConnectionType as C;
        let over_http =
            matches!(self.connection(), Some(C::HttpWebhook | C::P6 | C::P7 | C::P8 | C::P10 | C::P11 | C::P12));
        self.mode == AgentMode::Text && over_http
    }

    /// True if the agent is reached by telephone.
    pub fn is_over_sip(&self) -> bool {
        matches!(self.connection(), Some(ConnectionType::Sip | ConnectionType::Phone))
    }

    /// True if the agent is reached by a WebSocket.
    pub fn is_over_websocket(&self) -> bool {
        self.connection() == Some(ConnectionType::WebSocket)
    }

    /// True if the agent is on a platform that an adapter speaks with. It calls over SIP.
    pub fn is_on_platform(&self) -> bool {
        self.connection().is_some_and(ConnectionType::is_by_adapter)
    }

    /// True if calls of the agent come in over SIP.
    pub fn calls_by_sip(&self) -> bool {
        let by_sip = self.is_over_sip() || self.is_on_platform() || self.connection().is_none();
        self.mode == AgentMode::Voice && by_sip
    }

    /// True if the platform of the agent is to be asked for its calls: nobody else is.
    pub fn is_placed_by_platform(&self) -> bool {
        let is_wanted = self.enable_outbound_call_auto_start == Some(true);
        is_wanted && self.is_on_platform() && self.outbound_trigger_webhook_url.is_none()
    }

    /// True if the agent makes contact: a journey's step decides, else the type of the agent.
    pub fn is_caller(&self, step: Option<&JourneyStep>) -> bool {
        match step {
            Some(step) => step.direction == Direction::Outbound,
            None => self.kind == AgentType::Outbound,
        }
    }

    /// True if a call of the agent is awaited, by telephone or over a WebSocket.
    pub fn is_awaited(&self, step: Option<&JourneyStep>) -> bool {
        let speaks = step.is_none_or(|step| step.modality == Modality::Voice);
        let can_call = self.is_over_sip() || self.is_over_websocket() || self.is_on_platform();
        can_call && self.mode == AgentMode::Voice && speaks && self.is_caller(step)
    }

    /// Fields that hold URLs to which requests are sent; a dot leads into an object.
    pub const POSTED_TO: [&str; 7] = [
        "dynamic_sip_webhook_url",
        "outbound_trigger_webhook_url",
        "http_webhook",
        "P1_token_webhook_url",
        "P8_base_url",
        "P12_base_url",
        "simulation_notifications.webhook_url",
    ];

    /// Returns the values of [`AgentSpec::POSTED_TO`], in that order; `None` where a field is not set.
    pub fn posted_to(&self) -> [Option<&str>; 7] {
        let texts = [
            &self.dynamic_sip_webhook_url,
            &self.outbound_trigger_webhook_url,
            &self.http_webhook,
            &self.p1_token_webhook_url,
            &self.p8_base_url,
            &self.p12_base_url,
        ];
        let [dynamic, trigger, hook, token, p8, p12] = texts.map(Option::as_deref);
        [dynamic, trigger, hook, token, p8, p12, self.run_webhook()]
    }

    /// Returns the values of [`AgentSpec::POSTED_TO`] in fields that are given for an agent.
    pub fn posted_to_in(fields: &Object) -> [Option<&str>; 7] {
        AgentSpec::POSTED_TO.map(|field| {
            let mut steps = field.split('.');
            let first = fields.get(steps.next()?)?;
            steps.try_fold(first, |value, step| value.get(step))?.as_str()
        })
    }

    /// Returns the URL that is notified of completed runs; `None` when it is absent or empty.
    pub fn run_webhook(&self) -> Option<&str> {
        let url = self.simulation_notifications.get("webhook_url").and_then(Value::as_str);
        url.filter(|url| !url.is_empty())
    }

    /// Names of the fields that read-only keys see as null.
    pub const SECRETS: [&str; 6] = secret::AGENT;

    /// Returns how the agent is reached: SIP with a dynamic address, else the given kind, else the first that has
    /// settings.
    pub fn connection(&self) -> Option<ConnectionType> {
        if self.dynamic_sip_webhook_url.is_some() {
            return Some(ConnectionType::Sip);
        }
        self.connection_type.or_else(|| self.set_connections().next())
    }

    /// Returns the connections that have settings, in the order in which one is inferred.
    pub(crate) fn set_connections(&self) -> impl Iterator<Item = ConnectionType> {
        let given = [
            (self.sip_uri.is_some(), ConnectionType::Sip),
            (self.websocket_url.is_some(), ConnectionType::WebSocket),
            (self.p1_agent_name.is_some() || self.p1_token_webhook_url.is_some(), ConnectionType::P1),
            (self.p2_agent_name.is_some(), ConnectionType::P2),
            (self.p3_agent_id.is_some(), ConnectionType::P3),
            (self.p4_agent_id.is_some(), ConnectionType::P4),
            (self.p5_assistant_id.is_some(), ConnectionType::P5),
            (self.p6_app_id.is_some(), ConnectionType::P6),
            (self.p7_agent_id.is_some(), ConnectionType::P7),
            (self.p8_base_url.is_some(), ConnectionType::P8),
            (self.p9_pathway_id.is_some() || self.p9_agent_id.is_some(), ConnectionType::P9),
            (self.p10_agent_token.is_some(), ConnectionType::P10),
            (self.p11_bot_id.is_some(), ConnectionType::P11),
            (self.p12_base_url.is_some(), ConnectionType::P12),
            (self.http_webhook.is_some(), ConnectionType::HttpWebhook),
            (self.mode == AgentMode::Email, ConnectionType::Email),
            (self.phone_number.is_some() && self.mode != AgentMode::Text, ConnectionType::Phone),
            (self.phone_number.is_some() && self.mode == AgentMode::Text, ConnectionType::Sms),
        ];
        given.into_iter().filter(|(set, _)| *set).map(|(_, kind)| kind)
    }

    /// Returns the given platform, else P3 for P3 connections, else CUSTOM.
    pub fn provider(&self) -> Provider {
        let inferred = if self.connection() == Some(ConnectionType::P3) { Provider::P3 } else { Provider::Custom };
        self.provider.unwrap_or(inferred)
    }
}

/// An agent as stored.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentDoc {
    /// The writable fields. Null members are not stored, since an agent uses the fields of one connection type.
    #[serde(serialize_with = "set_only")]
    pub spec: AgentSpec,
    /// Folder of the agent; null: none.
    #[serde(default)]
    pub folder_id: Option<Uuid>,
    /// Signing key of agent-directed requests, 64 hex characters.
    #[serde(default)]
    pub http_webhook_key: Option<String>,
    /// Token of the P11 answers' address, made on creation.
    #[serde(default)]
    pub inbound_token: Option<String>,
    /// Highest number of a version that was deleted, which no other version gets; 0: none was.
    #[serde(default)]
    pub deleted_version: i64,
}

/// An agent, as the API returns it.
#[derive(Clone, PartialEq, Serialize, JsonSchema)]
pub struct AgentRecord {
    /// Identifier of the agent.
    pub id: i64,
    /// Text of the version with the label `production`; empty when it has none.
    pub agent_description: String,
    /// Organization that owns the agent.
    pub organization_id: String,
    /// Same as the organization.
    pub workspace_id: Option<String>,
    /// Writable fields, `connection_type` and `provider` filled in.
    #[serde(flatten)]
    pub spec: AgentSpec,
    /// Folder of the agent; null: none.
    pub folder_id: Option<Uuid>,
    /// Signing key of requests to the agent, 64 hex characters; null until `http_webhook` is set.
    pub http_webhook_key: Option<String>,
    /// Always null; kept for compatibility.
    #[serde(rename = "P9_persona_id")]
    pub p9_persona_id: Option<String>,
    /// Token in the address that P11 posts its answers to.
    #[serde(rename = "P11_inbound_token")]
    pub p11_inbound_token: Option<String>,
    /// Always empty; kept for compatibility.
    pub knowledge_base: String,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of the last change; at first that of the creation.
    pub updated_at: Option<Timestamp>,
    /// User who made it, else the API key; null: it is not known.
    pub created_by: Option<Uuid>,
    /// User who made the last change, else the API key; null: it is not known.
    pub updated_by: Option<Uuid>,
    /// User who made the last change, else the API key.
    pub updated_by_api_key: Option<Uuid>,
}

masked_debug!(AgentSpec, AgentDoc, AgentRecord);

impl AgentRecord {
    /// Sets every credential to null, for keys that may only read.
    pub fn hide_secrets(&mut self) {
        let spec = &mut self.spec;
        for secret in [
            &mut spec.websocket_password,
            &mut spec.sip_password,
            &mut spec.p1_token_webhook_auth,
            &mut spec.p10_agent_token,
            &mut spec.p11_client_secret,
            &mut spec.p12_api_key,
            &mut self.http_webhook_key,
            &mut self.p11_inbound_token,
        ] {
            *secret = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_agent_holds_the_fields_that_are_set() {
        let doc = r#"{"spec":{"name":"a","workflow":{"a":null,"b":[null]},"sip_uri":null,"P2_agent_name":"p"}}"#;
        let doc: AgentDoc = serde_json::from_str(doc).expect("fits");
        let stored = serde_json::to_value(&doc).expect("it is JSON");
        let set = stored["spec"].as_object().expect("an object");
        assert!(set.values().all(|member| !member.is_null()), "{stored}");
        assert_eq!(set["workflow"], serde_json::json!({ "a": null, "b": [null] }));
        assert!(serde_json::from_value::<AgentDoc>(stored).expect("fits") == doc);
    }

    #[test]
    fn connection_is_inferred_by_the_first_match() {
        for (body, expect) in [
            (r#"{"name":"a"}"#, None),
            (r#"{"name":"a","phone_number":"+15550001111"}"#, Some(ConnectionType::Phone)),
            (r#"{"name":"a","phone_number":"+15550001111","mode":"TEXT"}"#, Some(ConnectionType::Sms)),
            (r#"{"name":"a","phone_number":"+15550001111","mode":"EMAIL"}"#, Some(ConnectionType::Email)),
            (r#"{"name":"a","websocket_url":"ws://h","sip_uri":"sip:a@b"}"#, Some(ConnectionType::Sip)),
            (r#"{"name":"a","connection_type":"PHONE","sip_uri":"sip:a@b"}"#, Some(ConnectionType::Phone)),
            (
                r#"{"name":"a","connection_type":"PHONE","dynamic_sip_webhook_url":"http://h"}"#,
                Some(ConnectionType::Sip),
            ),
            (r#"{"name":"a","P12_base_url":"http://h","http_webhook":"http://h"}"#, Some(ConnectionType::P12)),
        ] {
            let spec: AgentSpec = serde_json::from_str(body).expect("fits");
            assert_eq!(spec.connection(), expect, "{body}");
        }
    }
}
