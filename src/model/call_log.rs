//! Call logs: calls that an agent held in production, brought in with a recording or a transcript to be evaluated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Object;
use super::agent_version::{LabelText, PRODUCTION};
use super::digital_human::Role;
use super::evaluation::Evaluation;
use super::id::IdString;
use super::result::{MetricValue, PostedEvent, PostedToolCall};
use super::status::EndedBy;
use super::time::GivenTime;
use super::transcript::PostedEntry;

words! {
    /// Who called whom: INBOUND, the agent was called.
    CallDirection { Inbound = "INBOUND", Outbound = "OUTBOUND" } default Inbound
}

words! {
    /// What the call went over.
    CallInterface { Phone = "PHONE", Web = "WEB" } default Phone
}

words! {
    /// Where a call log stands. INCOMPLETED: something of it could not be had, what there was is evaluated.
    kept CallLogStatus {
        Initializing = "INITIALIZING", Queued = "QUEUED", Evaluating = "EVALUATING", Completed = "COMPLETED",
        Incompleted = "INCOMPLETED",
    } default Initializing
}

impl CallLogStatus {
    /// True when its evaluation is over.
    pub fn is_final(self) -> bool {
        matches!(self, CallLogStatus::Completed | CallLogStatus::Incompleted)
    }
}

words! {
    /// How far back a list goes.
    LogRange {
        OneDay = "1day", ThreeDays = "3days", SevenDays = "7days", ThirtyDays = "30days", NinetyDays = "90days",
        All = "all",
    } default OneDay
}

impl LogRange {
    /// Days; `None`: everything.
    pub fn days(self) -> Option<i64> {
        match self {
            LogRange::OneDay => Some(1),
            LogRange::ThreeDays => Some(3),
            LogRange::SevenDays => Some(7),
            LogRange::ThirtyDays => Some(30),
            LogRange::NinetyDays => Some(90),
            LogRange::All => None,
        }
    }
}

/// Somebody who spoke in a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Participant {
    /// AGENT, or USER for the caller.
    pub role: Role,
    /// Said the first words.
    #[serde(default)]
    pub spoke_first: Option<bool>,
    /// Free text.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub phone_number: Option<String>,
}

/// A call, beside whose it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallSpec {
    /// Ends in .mp3, .mp4, .wav, .m4a, .flac or .ogg.
    #[serde(default)]
    #[schemars(extend("format" = "uri"))]
    pub recording_url: Option<String>,
    /// The recording as a data URL.
    #[serde(default, skip_serializing)]
    pub recording_base64: Option<String>,
    /// When the call began.
    pub start_time_utc: GivenTime,
    /// At least two.
    #[schemars(length(min = 2))]
    pub participants: Vec<Participant>,
    /// Who called whom.
    #[serde(default)]
    pub call_direction: CallDirection,
    /// What it went over.
    #[serde(default)]
    pub interface: CallInterface,
    /// Ends in .json.
    #[serde(default)]
    #[schemars(extend("format" = "uri"))]
    pub transcript_url: Option<String>,
    /// Who said what, and when.
    #[serde(default)]
    pub transcript: Option<Vec<PostedEntry>>,
    /// Tools that the agent called.
    #[serde(default)]
    pub tool_calls: Option<Vec<PostedToolCall>>,
    /// What else happened.
    #[serde(default)]
    pub events: Option<Vec<PostedEvent>>,
    /// Free labels.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// The customer's trace.
    #[serde(default)]
    pub trace_id: Option<String>,
    /// Only webhooks of this tag are told.
    #[serde(default)]
    pub webhook_tag: Option<String>,
    /// Now, unless given.
    #[serde(default)]
    pub created_at: Option<GivenTime>,
    /// Free.
    #[serde(default)]
    pub metadata: Option<Object>,
    /// Metrics beside those of the agent.
    #[serde(default)]
    pub custom_metrics: Option<Vec<Uuid>>,
    /// Metrics of these labels.
    #[serde(default)]
    pub custom_metric_tags: Option<Vec<String>>,
    /// Label of the agent version that held the call.
    #[serde(default = "production")]
    pub label: LabelText,
    /// Number of the agent version that held the call; before the label.
    #[serde(default)]
    pub version: Option<i64>,
    /// The evaluation lists the latency of each turn.
    #[serde(default)]
    pub enable_phrase_latencies: bool,
    /// Which side ended it.
    #[serde(default)]
    pub conversation_ended_by: Option<EndedBy>,
    /// The recording has the caller on channel 0 and the agent on channel 1.
    #[serde(default)]
    pub multichannel: bool,
}

fn production() -> LabelText {
    LabelText(PRODUCTION.to_owned())
}

/// A call of an agent known by its id.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct CallRequestUsingAgentId {
    /// The agent.
    pub agent_id: IdString,
    /// The call.
    #[serde(flatten)]
    pub call: CallSpec,
}

/// A call of an agent known by the customer's own identifier.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct CallRequestUsingExternalAgentId {
    /// The agent.
    pub external_agent_id: String,
    /// The call.
    #[serde(flatten)]
    pub call: CallSpec,
}

/// A call to be evaluated.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CallRequest {
    /// By the agent's id.
    UsingAgentId(CallRequestUsingAgentId),
    /// By the customer's own identifier.
    UsingExternalAgentId(CallRequestUsingExternalAgentId),
}

/// What is added to a call log; null clears.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct UpdateLogSpec {
    /// Replace the calls that are there.
    #[serde(default)]
    pub tool_calls: Option<Vec<PostedToolCall>>,
    /// Appended.
    #[serde(default)]
    pub events: Option<Vec<PostedEvent>>,
    /// Merged at the top level.
    #[serde(default)]
    pub metadata: Option<Object>,
    /// Evaluates the call again.
    #[serde(default)]
    pub reevaluate: bool,
}

/// A call log as stored. The recording lies beside the database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallLogDoc {
    /// Whose call.
    pub agent_id: i64,
    /// As given.
    pub external_agent_id: Option<String>,
    /// The call as given.
    pub call: CallSpec,
    /// The version that held it.
    pub agent_version_id: Option<Uuid>,
    /// Where it stands.
    pub status: CallLogStatus,
    /// Length of the call.
    pub duration_ms: i64,
    /// 0 or 1 entry.
    pub evaluations: Vec<Evaluation>,
    /// Built-in metrics, null values left out.
    pub metrics: Vec<MetricValue>,
    /// What could not be had.
    pub error_message: Option<String>,
    /// What the engine says of it: beside the metadata that was given.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub notes: Object,
    /// What is private has not been taken out yet: what was called and noted is not shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

/// A call log as read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CallLogRecord {
    /// Its id.
    pub id: String,
    /// The agent.
    pub agent_id: String,
    /// The customer's own identifier of the agent, as given.
    pub external_agent_id: Option<String>,
    /// As given; null when the recording was deleted.
    pub recording_url: Option<String>,
    /// When the call began.
    pub start_time_utc: GivenTime,
    /// Who spoke.
    pub participants: Vec<Participant>,
    /// Who called whom.
    pub call_direction: CallDirection,
    /// What it went over.
    pub interface: CallInterface,
    /// Where it stands.
    pub status: CallLogStatus,
    /// When it came in.
    pub created_at: GivenTime,
    /// As given.
    pub transcript_url: Option<String>,
    /// Tools that the agent called.
    pub tool_calls: Option<Vec<PostedToolCall>>,
    /// What else happened.
    pub events: Option<Vec<PostedEvent>>,
    /// Free labels.
    pub tags: Option<Vec<String>>,
    /// Length of the call; 0 until it is known.
    pub duration_ms: i64,
    /// 0 or 1 entry.
    pub evaluations: Vec<Evaluation>,
    /// Always null.
    pub annotations: Option<Value>,
    /// Free.
    pub metadata: Option<Object>,
    /// Metrics beside those of the agent.
    pub custom_metrics: Option<Vec<Uuid>>,
    /// Which side ended it.
    pub conversation_ended_by: Option<EndedBy>,
    /// Built-in metrics, null values left out.
    pub metrics: Vec<MetricValue>,
    /// What could not be had.
    pub error_message: Option<String>,
}
