//! Call logs: production calls of an agent, posted with a recording or a transcript for evaluation.

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
    /// Direction of a call: INBOUND, the agent was called.
    CallDirection { Inbound = "INBOUND", Outbound = "OUTBOUND" } default Inbound
}

words! {
    /// Medium that the call went over.
    CallInterface { Phone = "PHONE", Web = "WEB" } default Phone
}

words! {
    /// State of a call log. INCOMPLETED: part of its material was missing, the rest was evaluated.
    kept CallLogStatus {
        Initializing = "INITIALIZING", Queued = "QUEUED", Evaluating = "EVALUATING", Completed = "COMPLETED",
        Incompleted = "INCOMPLETED",
    } default Initializing
}

impl CallLogStatus {
    /// True if the evaluation is over.
    pub fn is_final(self) -> bool {
        matches!(self, CallLogStatus::Completed | CallLogStatus::Incompleted)
    }
}

words! {
    /// Range of time that a list covers, up to now.
    LogRange {
        OneDay = "1day", ThreeDays = "3days", SevenDays = "7days", ThirtyDays = "30days", NinetyDays = "90days",
        All = "all",
    } default OneDay
}

impl LogRange {
    /// Returns the length of the range in days; `None`: no limit.
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

/// Participant of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Participant {
    /// AGENT, or USER for the caller.
    pub role: Role,
    /// True: said the first words of the call.
    #[serde(default)]
    pub spoke_first: Option<bool>,
    /// Name of the participant, free text.
    #[serde(default)]
    pub name: Option<String>,
    /// Phone number of the participant, free text.
    #[serde(default)]
    pub phone_number: Option<String>,
}

/// A call to evaluate; the agent is named beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallSpec {
    /// URL of the recording; its path ends in .mp3, .mp4, .wav, .m4a, .flac or .ogg.
    #[serde(default)]
    #[schemars(extend("format" = "uri"))]
    pub recording_url: Option<String>,
    /// The recording as a data URL (RFC 2397).
    #[serde(default, skip_serializing)]
    pub recording_base64: Option<String>,
    /// Time at which the call began.
    pub start_time_utc: GivenTime,
    /// Participants of the call, at least two.
    #[schemars(length(min = 2))]
    pub participants: Vec<Participant>,
    /// Direction of the call; default INBOUND.
    #[serde(default)]
    pub call_direction: CallDirection,
    /// Medium of the call; default PHONE.
    #[serde(default)]
    pub interface: CallInterface,
    /// URL of the transcript; its path ends in .json.
    #[serde(default)]
    #[schemars(extend("format" = "uri"))]
    pub transcript_url: Option<String>,
    /// Transcript of the call, one utterance an entry.
    #[serde(default)]
    pub transcript: Option<Vec<PostedEntry>>,
    /// Tools that the agent called.
    #[serde(default)]
    pub tool_calls: Option<Vec<PostedToolCall>>,
    /// Other events of the call.
    #[serde(default)]
    pub events: Option<Vec<PostedEvent>>,
    /// Labels of the caller's choice.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// Identifier of the trace in the caller's own system.
    #[serde(default)]
    pub trace_id: Option<String>,
    /// Tag of webhooks: of the webhooks with a tag, only those with this one are sent the event.
    #[serde(default)]
    pub webhook_tag: Option<String>,
    /// Time of the log; default now.
    #[serde(default)]
    pub created_at: Option<GivenTime>,
    /// Free object, stored as given.
    #[serde(default)]
    pub metadata: Option<Object>,
    /// Custom metrics to judge in addition to those of the agent.
    #[serde(default)]
    pub custom_metrics: Option<Vec<Uuid>>,
    /// Custom metrics with one of these tags are judged as well.
    #[serde(default)]
    pub custom_metric_tags: Option<Vec<String>>,
    /// Label of the agent version that took part in the call; default production.
    #[serde(default = "production")]
    pub label: LabelText,
    /// Number of the agent version that took part in the call; wins over `label`.
    #[serde(default)]
    pub version: Option<i64>,
    /// True: the evaluation lists the latency of each turn.
    #[serde(default)]
    pub enable_phrase_latencies: bool,
    /// Side that ended the call.
    #[serde(default)]
    pub conversation_ended_by: Option<EndedBy>,
    /// True: the recording has the caller on channel 0 and the agent on channel 1.
    #[serde(default)]
    pub multichannel: bool,
}

fn production() -> LabelText {
    LabelText(PRODUCTION.to_owned())
}

/// A call whose agent is named by its identifier.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct CallRequestUsingAgentId {
    /// Identifier of the agent.
    pub agent_id: IdString,
    /// Fields of the call.
    #[serde(flatten)]
    pub call: CallSpec,
}

/// A call whose agent is named by the customer's own identifier.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct CallRequestUsingExternalAgentId {
    /// The customer's own identifier of the agent.
    pub external_agent_id: String,
    /// Fields of the call.
    #[serde(flatten)]
    pub call: CallSpec,
}

/// A call to evaluate.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CallRequest {
    /// Agent named by its identifier.
    UsingAgentId(CallRequestUsingAgentId),
    /// Agent named by the customer's own identifier.
    UsingExternalAgentId(CallRequestUsingExternalAgentId),
}

/// Additions to a call log; null clears a field.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct UpdateLogSpec {
    /// Tool calls that replace the stored ones.
    #[serde(default)]
    pub tool_calls: Option<Vec<PostedToolCall>>,
    /// Events that are appended to the stored ones.
    #[serde(default)]
    pub events: Option<Vec<PostedEvent>>,
    /// Metadata that is merged with the stored one at the top level.
    #[serde(default)]
    pub metadata: Option<Object>,
    /// True: the call is evaluated again.
    #[serde(default)]
    pub reevaluate: bool,
}

/// Word that was recognized in a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecognizedWord {
    /// Text of the word.
    pub text: String,
    /// Start in milliseconds from the start of the recording.
    pub start_offset_ms: i64,
    /// End in milliseconds from the start of the recording.
    pub end_offset_ms: i64,
    /// Confidence of the recognizer, from 0 to 1; null when it tells none.
    pub confidence: Option<f32>,
}

/// Stretch of speech in a recording, as the recognizer heard it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecognizedSpeech {
    /// Side that speaks; AGENT where the recording has one channel for both.
    pub speaker: Role,
    /// Start of the speech in milliseconds from the start of the recording.
    pub start_offset_ms: i64,
    /// End of the speech in milliseconds from the start of the recording.
    pub end_offset_ms: i64,
    /// Recognized text; empty: it was not understood.
    pub text: String,
    /// Confidence of the recognizer in the text, from 0 to 1; null when it tells none.
    pub confidence: Option<f32>,
    /// Words in order, where the recognizer tells their times and nothing private is redacted.
    pub words: Vec<RecognizedWord>,
}

/// A call log as stored. The recording is a file outside the database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallLogDoc {
    /// Agent that took part in the call.
    pub agent_id: i64,
    /// The customer's own identifier of the agent, as given.
    pub external_agent_id: Option<String>,
    /// The call as given.
    pub call: CallSpec,
    /// Agent version that took part in the call.
    pub agent_version_id: Option<Uuid>,
    /// State of the evaluation.
    pub status: CallLogStatus,
    /// Length of the call, in milliseconds.
    pub duration_ms: i64,
    /// Evaluations of the call: none or one.
    pub evaluations: Vec<Evaluation>,
    /// Built-in metrics, null values left out.
    pub metrics: Vec<MetricValue>,
    /// Material that was missing, in words; null: none.
    pub error_message: Option<String>,
    /// Metadata of the engine, apart from the metadata that was given.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub notes: Object,
    /// True: private data is not yet redacted, so that tool calls and notes are hidden.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// Speech that was recognized in the recording; null: it was not transcribed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recognized: Option<Vec<RecognizedSpeech>>,
    /// True: its minutes are counted.
    #[serde(default)]
    pub is_counted: bool,
}

/// A call log, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CallLogRecord {
    /// Identifier of the call log.
    pub id: String,
    /// Identifier of the agent.
    pub agent_id: String,
    /// The customer's own identifier of the agent, as given.
    pub external_agent_id: Option<String>,
    /// URL of the recording as given; null when the recording was deleted.
    pub recording_url: Option<String>,
    /// Time at which the call began.
    pub start_time_utc: GivenTime,
    /// Participants of the call.
    pub participants: Vec<Participant>,
    /// Direction of the call.
    pub call_direction: CallDirection,
    /// Medium of the call.
    pub interface: CallInterface,
    /// State of the evaluation.
    pub status: CallLogStatus,
    /// Time at which the log was posted, unless it was given.
    pub created_at: GivenTime,
    /// URL of the transcript as given.
    pub transcript_url: Option<String>,
    /// Tools that the agent called.
    pub tool_calls: Option<Vec<PostedToolCall>>,
    /// Other events of the call.
    pub events: Option<Vec<PostedEvent>>,
    /// Labels of the caller's choice.
    pub tags: Option<Vec<String>>,
    /// Length of the call, in milliseconds; 0 until it is known.
    pub duration_ms: i64,
    /// Evaluations of the call: none or one.
    pub evaluations: Vec<Evaluation>,
    /// Always null; kept for compatibility.
    pub annotations: Option<Value>,
    /// Metadata as given, and the engine's notes.
    pub metadata: Option<Object>,
    /// Custom metrics that were judged in addition to those of the agent.
    pub custom_metrics: Option<Vec<Uuid>>,
    /// Side that ended the call; null when it is not known.
    pub conversation_ended_by: Option<EndedBy>,
    /// Built-in metrics, null values left out.
    pub metrics: Vec<MetricValue>,
    /// Material that was missing, in words; null: none.
    pub error_message: Option<String>,
    /// Speech that Ringer recognized in the recording, apart from what was posted; null: it was not transcribed.
    pub recognized: Option<Vec<RecognizedSpeech>>,
}
