//! A result: one conversation, what it was and what is known about it.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Object;
use super::error_code::{ErrorCode, Owner};
use super::evaluation::{CustomResult, Evaluation, JudgedGoal};
use super::expectation::{ExpectationResult, OwnFault};
use super::id::IdString;
use super::status::{EndedBy, Outcome, ResultStatus};
use super::text::Inbox;
use super::time::Timestamp;
use super::transcript::PostedEntry;

words! {
    /// Why a result that has not begun waits.
    QueueReason {
        MaxConcurrent = "max_concurrent", Sequential = "sequential", MaxCalls = "max_calls", StartRate = "start_rate",
        AddressInUse = "address_in_use", JourneyStep = "journey_step", JourneyWait = "journey_wait", Retry = "retry",
    }
}

/// A change of state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusChange {
    /// New state.
    pub status: ResultStatus,
    /// When.
    pub at: Timestamp,
}

/// Something that happened in a conversation, posted or marked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PostedEvent {
    /// What.
    pub title: String,
    /// Milliseconds from connect.
    pub start_offset_ms: i64,
    /// More.
    #[serde(default)]
    pub description: Option<String>,
    /// Milliseconds from connect.
    #[serde(default)]
    pub end_offset_ms: Option<i64>,
    /// Free labels.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// Free.
    #[serde(default)]
    pub metadata: Option<Object>,
}

/// A tool call that the agent made, as posted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PostedToolCall {
    /// Name of the tool.
    pub name: String,
    /// Milliseconds from connect, at least 0.
    #[schemars(range(min = 0))]
    pub start_offset_ms: i64,
    /// More.
    #[serde(default)]
    pub description: Option<String>,
    /// What it was called with.
    #[serde(default)]
    pub parameters: Option<Object>,
    /// What it gave.
    #[serde(default)]
    pub output: Value,
}

/// What an agent's owner adds to a result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UpdateResultSpec {
    /// Which result.
    pub simulation_result_id: IdString,
    /// Appended.
    #[serde(default)]
    pub events: Option<Vec<PostedEvent>>,
    /// Replace the calls posted before; calls that came another way stay.
    #[serde(default)]
    pub tool_calls: Option<Vec<PostedToolCall>>,
    /// The agent's own transcript; replaces.
    #[serde(default)]
    pub recorded_transcript: Option<Vec<PostedEntry>>,
    /// Added to the tags that are there.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// Merged at the top level.
    #[serde(default)]
    pub metadata: Option<Object>,
    /// Appended, duplicates dropped.
    #[serde(default)]
    pub trace_ids: Option<Vec<String>>,
}

/// A call that was expected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExpectedCall {
    /// Members that the parameters must contain.
    pub parameters: Option<Object>,
    /// What the output must contain.
    pub output: Value,
}

/// A call that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActualCall {
    /// What it was called with.
    pub parameters: Option<Object>,
    /// What it gave.
    pub output: Value,
    /// Milliseconds from connect.
    pub start_offset_ms: i64,
}

/// Expected and actual calls of one tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallGroup {
    /// Name of the tool.
    pub name: String,
    /// Calls that were expected.
    pub expected: Vec<ExpectedCall>,
    /// Calls that were made.
    pub actual: Vec<ActualCall>,
}

/// A measured or judged value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricValue {
    /// Name of the metric.
    pub name: String,
    /// Number, boolean, string or object.
    pub value: Value,
    /// What the value lacks: `no_language_model`: words are not judged; `no_punctuation`: turns stand for sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How well the engine itself worked during the call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EngineQuality {
    /// 99th percentile of the sending time error per frame.
    pub pacing_p99_ms: f64,
    /// Ticks more than one frame late.
    pub late_frames: i64,
    /// Real losses of the received stream.
    pub lost_packets: i64,
    /// Concealed audio by real losses.
    pub concealed_ms: i64,
    /// RTP packets of the agent of payload types that were not negotiated: not heard.
    #[serde(default)]
    pub unknown_payload_type_packets: i64,
    /// RTP packets of the agent of a negotiated payload type, of a length that cannot be one of it: not heard.
    #[serde(default)]
    pub wrong_length_packets: i64,
    /// RTP packets of another source (SSRC) than the one that was heard.
    #[serde(default)]
    pub foreign_source_packets: i64,
    /// Datagrams of another address or port than the agent's.
    #[serde(default)]
    pub foreign_address_packets: i64,
    /// Datagrams that are not RTP.
    #[serde(default)]
    pub malformed_packets: i64,
    /// Datagrams that were not encrypted with the agreed key.
    #[serde(default)]
    pub unprotected_packets: i64,
    /// False: timing metrics are not to be relied on.
    pub trusted: bool,
    /// The first condition of trust that does not hold; null when the result is trusted.
    pub untrusted_reason: Option<String>,
    /// The Digital Human's own words came back; null when they did not.
    pub echo: Option<EchoQuality>,
}

/// An echo of the Digital Human's own words. It is neither speech of the agent nor part of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EchoQuality {
    /// From sending to hearing.
    pub delay_ms: f64,
    /// Echo return loss in dB: how far the echo lies below what was sent.
    pub erl_db: f64,
}

/// The members of a result record besides its id: what is stored and what is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResultBody {
    /// Null when the Digital Human was deleted.
    pub digital_human_id: Option<i64>,
    /// The run.
    pub simulation_run_id: i64,
    /// The simulation.
    pub simulation_id: i64,
    /// The agent under test.
    pub agent_id: i64,
    /// Where it stands.
    pub status: ResultStatus,
    /// Every state with its time.
    pub status_history: Vec<StatusChange>,
    /// Deprecated: {goal_success, goal_reasoning}.
    pub result: Option<Object>,
    /// Verdict; null until terminal.
    pub outcome: Option<Outcome>,
    /// Connect.
    pub start_time: Option<Timestamp>,
    /// End.
    pub end_time: Option<Timestamp>,
    /// Seconds, rounded half up.
    pub duration: Option<i64>,
    /// Milliseconds.
    pub duration_ms: Option<i64>,
    /// Agent latency per turn, seconds.
    pub latency: Option<Vec<f64>>,
    /// Posted and marked events.
    pub events: Vec<PostedEvent>,
    /// Where the transcript is.
    pub transcript_url: Option<String>,
    /// Where the recording is.
    pub audio_url: Option<String>,
    /// 0 or 1 entry.
    pub evaluations: Vec<Evaluation>,
    /// Deprecated copy of the evaluation's.
    pub custom_metrics: Option<Vec<CustomResult>>,
    /// Built-in metrics, null values left out.
    pub metrics: Vec<MetricValue>,
    /// Grouped by name; expected first.
    pub tool_calls: Vec<ToolCallGroup>,
    /// The customer's traces.
    pub trace_ids: Vec<String>,
    /// Free labels.
    pub tags: Vec<String>,
    /// Posted members and the engine's.
    pub metadata: Object,
    /// Why there is no good ending.
    pub error_code: Option<ErrorCode>,
    /// The same for a person.
    pub error_message: Option<String>,
    /// Who has to act.
    pub error_owner: Option<Owner>,
    /// Final SIP status.
    pub sip_code: Option<i64>,
    /// ITU-T Q.850 cause.
    pub q850_cause: Option<i64>,
    /// Why the conversation ended.
    pub end_reason: Option<String>,
    /// By whom.
    pub conversation_ended_by: Option<EndedBy>,
    /// From 1.
    pub attempt: i64,
    /// Step of the journey.
    pub journey_step: Option<i64>,
    /// Messages after the call.
    pub follow_up_sms: Option<Object>,
    /// Version tested.
    pub agent_version_id: Option<Uuid>,
    /// Seed of every draw.
    pub seed: i64,
    /// How well the engine itself worked.
    pub engine_quality: Option<EngineQuality>,
    /// How the expectations of the Digital Human came out; empty until they were evaluated.
    #[serde(default)]
    pub expectations: Vec<ExpectationResult>,
    /// Parts of this side that failed, in order of time.
    #[serde(default)]
    pub own_faults: Vec<OwnFault>,
}

impl ResultBody {
    /// The built-in metric `name`.
    pub fn metric(&self, name: &str) -> Option<&Value> {
        self.metrics.iter().find(|metric| metric.name == name).map(|metric| &metric.value)
    }

    /// Sets the ending: `code` with its message and owner.
    pub fn fail(&mut self, code: ErrorCode, message: impl Into<String>) {
        self.error_owner = Some(code.owner());
        self.error_code = Some(code);
        self.error_message = Some(message.into());
    }
}

/// A result as stored: the record and what only the engine reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResultDoc {
    /// What is read.
    pub body: ResultBody,
    /// Repetition of the Digital Human in its run, from 0.
    #[serde(default)]
    pub repetition: i64,
    /// The agent's own transcript.
    #[serde(default)]
    pub recorded_transcript: Option<Vec<PostedEntry>>,
    /// Tool calls that were posted; a new post replaces them.
    #[serde(default)]
    pub posted_calls: Vec<PostedToolCall>,
    /// Tool calls that came another way (from the conversation itself).
    #[serde(default)]
    pub heard_calls: Vec<PostedToolCall>,
    /// Nobody is shown its words and sounds: what is private was not yet taken out.
    #[serde(default)]
    pub private: bool,
    /// Calls of the agent that were not to be answered: when and from where.
    #[serde(default)]
    pub unanswered: Vec<Object>,
    /// Messages of the agent in a text conversation.
    #[serde(default, skip_serializing_if = "Inbox::is_empty")]
    pub inbox: Inbox,
    /// What was judged of the goal, where tool calls have the last word of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overruled: Option<JudgedGoal>,
    /// Members of the metadata that were posted; the engine does not overwrite them.
    #[serde(default)]
    pub posted_keys: Vec<String>,
    /// Media room that was created for its call and is removed after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<String>,
}

impl ResultDoc {
    /// Adds a line to the warnings of the engine.
    pub fn warn(&mut self, text: &str) {
        self.warn_all([text.to_owned()]);
    }

    /// Adds lines, or none, to the warnings of the engine; there is a list of them from then on.
    pub fn warn_all(&mut self, texts: impl IntoIterator<Item = String>) {
        let key = self.own_key("warnings");
        let texts = texts.into_iter().map(Value::from);
        match self.body.metadata.get_mut(&key) {
            Some(Value::Array(warnings)) => warnings.extend(texts),
            _ => self.note("warnings", texts.collect()),
        }
    }

    /// Takes the warnings of the engine back that begin so.
    pub fn forget_warnings(&mut self, start: &str) {
        let key = self.own_key("warnings");
        if let Some(Value::Array(warnings)) = self.body.metadata.get_mut(&key) {
            warnings.retain(|warning| !warning.as_str().is_some_and(|text| text.starts_with(start)));
        }
    }

    /// Sets a metadata member as the engine: beside a posted one of the same name it is called `engine.NAME`.
    pub fn note(&mut self, key: &str, value: Value) {
        self.body.metadata.insert(self.own_key(key), value);
    }

    /// Sets metadata members as posted; what the engine had there moves to `engine.NAME`.
    pub fn post_metadata(&mut self, members: Object) {
        let mut posted: HashSet<String> = self.posted_keys.iter().cloned().collect();
        for (key, value) in members {
            if posted.insert(key.clone()) {
                if let Some(engines) = self.body.metadata.get(&key).cloned() {
                    self.body.metadata.insert(beside(&key), engines);
                }
                self.posted_keys.push(key.clone());
            }
            self.body.metadata.insert(key, value);
        }
    }

    /// What the engine's own metadata member is called.
    fn own_key(&self, key: &str) -> String {
        if self.is_posted(key) { beside(key) } else { key.to_owned() }
    }

    /// A metadata member of the engine.
    pub fn noted(&self, key: &str) -> Option<&Value> {
        self.body.metadata.get(&self.own_key(key))
    }

    fn is_posted(&self, key: &str) -> bool {
        self.posted_keys.iter().any(|posted| posted == key)
    }
}

/// A metadata member of the engine, by what it is called when nobody posted one of that name.
pub fn noted<'m>(metadata: &'m Object, key: &str) -> Option<&'m Value> {
    metadata.get(&beside(key)).or_else(|| metadata.get(key))
}

/// The name of a metadata member of the engine where somebody posted one of the same name.
pub fn beside(key: &str) -> String {
    format!("engine.{key}")
}

/// A result as read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ResultRecord {
    /// Its id.
    pub id: i64,
    /// What it waits for: a place among the simulation's max_concurrent, its turn in a sequential run, a place among the
    /// engine's limits.max_calls or limits.start_rate_per_s, an address that another result has, the step before it in its
    /// journey, that step's pause, another attempt. Null when it does not wait.
    pub queue_reason: Option<QueueReason>,
    /// Everything else.
    #[serde(flatten)]
    pub body: ResultBody,
}
