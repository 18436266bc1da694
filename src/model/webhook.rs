//! Webhooks: URLs that are notified of events, and the record of each delivery.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::secret::masked_debug;
use super::time::Timestamp;
use super::yes;

words! {
    /// Type of a webhook event.
    EventType {
        OutboundSimulationStarted = "outbound_simulation_started", SimulationEnded = "simulation_ended",
        SimulationResultEvaluated = "simulation_result_evaluated",
        ObservabilityCallEvaluated = "observability_call_evaluated",
    }
}

/// The writable fields of a webhook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookSpec {
    /// URL that events are posted to, http or https.
    pub url: String,
    /// Types of events to send, one or more.
    #[schemars(length(min = 1))]
    pub event_types: Vec<EventType>,
    /// Agents whose events are sent; null: all.
    #[serde(default)]
    pub agent_ids: Option<Vec<i64>>,
    /// Folders whose agents' events are sent, in addition to those of `agent_ids`.
    #[serde(default)]
    pub folder_ids: Option<Vec<Uuid>>,
    /// Tag for call logs: only those posted with this `webhook_tag` are sent.
    #[serde(default)]
    pub tag: Option<String>,
    /// False: nothing is sent.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Free text for the reader.
    #[serde(default)]
    pub description: Option<String>,
}

impl Default for WebhookSpec {
    fn default() -> Self {
        WebhookSpec {
            url: String::new(),
            event_types: Vec::new(),
            agent_ids: None,
            folder_ids: None,
            tag: None,
            enabled: true,
            description: None,
        }
    }
}

impl WebhookSpec {
    /// True if an event of an agent in a folder is to be sent.
    pub fn wants(&self, event: EventType, agent_id: i64, folder_id: Option<Uuid>) -> bool {
        let listed = self.agent_ids.as_ref().is_some_and(|ids| ids.contains(&agent_id));
        let filed = self.folder_ids.as_ref().is_some_and(|ids| folder_id.is_some_and(|folder| ids.contains(&folder)));
        let of_all = self.agent_ids.is_none() && self.folder_ids.is_none();
        self.enabled && self.event_types.contains(&event) && (of_all || listed || filed)
    }
}

/// A webhook as stored.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WebhookDoc {
    /// The writable fields, as given.
    pub spec: WebhookSpec,
    /// Key that signs the requests, 64 hex characters.
    pub signing_key: String,
    /// HTTP status of the latest attempt; null when there was no answer.
    pub last_status: Option<i64>,
    /// Number of events in a row whose delivery was given up.
    pub consecutive_failures: i64,
}

masked_debug!(WebhookDoc);

/// A webhook, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WebhookRecord {
    /// Identifier of the webhook.
    pub id: Uuid,
    /// Organization that owns the webhook.
    pub organization_id: String,
    /// The writable fields, as stored.
    #[serde(flatten)]
    pub spec: WebhookSpec,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// HTTP status of the latest attempt; null when there was no answer.
    pub last_status: Option<i64>,
    /// Number of events in a row whose delivery was given up.
    pub consecutive_failures: i64,
}

/// One attempt to deliver an event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DeliveryRecord {
    /// Identifier of the event, also the header `X-Svc-Delivery`.
    pub id: Uuid,
    /// Type of the event; `webhook_disabled`: the webhook was disabled after its failures.
    pub event: String,
    /// Number of the attempt, from 1.
    pub attempt: i64,
    /// HTTP status of the answer; null when there was none.
    pub status: Option<i64>,
    /// Reason of the failure; null: delivered.
    pub error: Option<String>,
    /// Time of the attempt.
    pub at: Timestamp,
    /// Hex SHA-256 of the request body.
    pub body_sha256: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_wanted_by_type_agent_and_folder() {
        let folder = Uuid::from_u128(1);
        let (ended, evaluated) = (EventType::SimulationEnded, EventType::SimulationResultEvaluated);
        for (agents, folders, expect) in [
            (None, None, [true, true, true]),
            (Some(vec![1]), None, [true, false, false]),
            (None, Some(vec![folder]), [false, true, false]),
            (Some(vec![1]), Some(vec![folder]), [true, true, false]),
            (Some(vec![]), None, [false, false, false]),
        ] {
            let mut spec =
                WebhookSpec { event_types: vec![ended], agent_ids: agents, folder_ids: folders, ..Default::default() };
            let asked = [(1, None), (2, Some(folder)), (3, None)];
            assert_eq!(asked.map(|(agent, folder)| spec.wants(ended, agent, folder)), expect, "{spec:?}");
            assert!(!spec.wants(evaluated, 1, Some(folder)));
            spec.enabled = false;
            assert!(!spec.wants(ended, 1, Some(folder)));
        }
    }
}
