//! Results: one conversation each, with its state, its measurements and its judgements.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Object;
use super::error_code::{ErrorCode, Owner};
use super::evaluation::{CustomResult, Evaluation, JudgedGoal};
use super::expectation::{ExpectationResult, FaultCode, OwnFault};
use super::heard_turn::HeardTurn;
use super::id::IdString;
use super::status::{EndedBy, Outcome, ResultStatus};
use super::text::Inbox;
use super::time::Timestamp;
use super::transcript::PostedEntry;
use super::verdict::{CallVerdict, VerdictWord};

words! {
    /// Reason why a result that has not begun waits.
    QueueReason {
        MaxConcurrent = "max_concurrent", Sequential = "sequential", MaxCalls = "max_calls", StartRate = "start_rate",
        AddressInUse = "address_in_use", JourneyStep = "journey_step", JourneyWait = "journey_wait", Retry = "retry",
        WorkspaceLimit = "workspace_limit", ModelBudget = "model_budget",
    }
}

/// Metadata member that says why the agent never gave the floor.
pub const KEPT_FLOOR: &str = "kept_floor";

/// A change of state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusChange {
    /// State after the change.
    pub status: ResultStatus,
    /// Time of the change.
    pub at: Timestamp,
}

/// An event of a conversation, posted or marked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PostedEvent {
    /// Title of the event.
    pub title: String,
    /// Start in milliseconds from connect.
    pub start_offset_ms: i64,
    /// Description of the event.
    #[serde(default)]
    pub description: Option<String>,
    /// End in milliseconds from connect; null: a moment.
    #[serde(default)]
    pub end_offset_ms: Option<i64>,
    /// Labels of the poster's choice.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// Free object, stored as given.
    #[serde(default)]
    pub metadata: Option<Object>,
}

/// A tool call that the agent made, as posted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PostedToolCall {
    /// Name of the tool.
    pub name: String,
    /// Start in milliseconds from connect, at least 0.
    #[schemars(range(min = 0))]
    pub start_offset_ms: i64,
    /// Description of the call.
    #[serde(default)]
    pub description: Option<String>,
    /// Parameters of the call.
    #[serde(default)]
    pub parameters: Option<Object>,
    /// Output of the tool; null: none is known.
    #[serde(default)]
    pub output: Value,
}

/// Additions to a result by the agent's owner.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UpdateResultSpec {
    /// Identifier of the result.
    pub simulation_result_id: IdString,
    /// Events that are appended to the stored ones.
    #[serde(default)]
    pub events: Option<Vec<PostedEvent>>,
    /// Tool calls that replace those posted before; calls that came another way stay.
    #[serde(default)]
    pub tool_calls: Option<Vec<PostedToolCall>>,
    /// The agent's own transcript; replaces the one posted before.
    #[serde(default)]
    pub recorded_transcript: Option<Vec<PostedEntry>>,
    /// Labels that are added to the stored ones.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// Metadata that is merged with the stored one at the top level.
    #[serde(default)]
    pub metadata: Option<Object>,
    /// Trace identifiers that are appended, without duplicates.
    #[serde(default)]
    pub trace_ids: Option<Vec<String>>,
}

/// An expected tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExpectedCall {
    /// Members that the parameters must contain.
    pub parameters: Option<Object>,
    /// Value that the output must contain; null: any.
    pub output: Value,
}

/// A tool call that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActualCall {
    /// Parameters of the call.
    pub parameters: Option<Object>,
    /// Output of the tool; null: none is known.
    pub output: Value,
    /// Start in milliseconds from connect.
    pub start_offset_ms: i64,
}

/// Expected and actual calls of one tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallGroup {
    /// Name of the tool.
    pub name: String,
    /// Expected calls of the tool.
    pub expected: Vec<ExpectedCall>,
    /// Actual calls of the tool, by time.
    pub actual: Vec<ActualCall>,
}

/// A measured or judged value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricValue {
    /// Name of the metric.
    pub name: String,
    /// Number, boolean, string or object.
    pub value: Value,
    /// Limitation of the value. `no_language_model`: words are not judged; `no_punctuation`: turns stand for sentences;
    /// `unknown_stops`: not known of each interrupted turn whether it was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Measurements of the engine itself during the call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EngineQuality {
    /// 99th percentile of the sending time error per frame, in milliseconds.
    pub pacing_p99_ms: f64,
    /// Number of ticks more than one frame (20 ms) late.
    pub late_frames: i64,
    /// Number of packets of the agent that were really lost; simulated loss is not counted.
    pub lost_packets: i64,
    /// Packets that were lost on purpose; null: the connection of the Digital Human is good.
    #[serde(default)]
    pub simulated_loss_pct: Option<SimulatedLoss>,
    /// Audio concealed because of real losses, in milliseconds.
    pub concealed_ms: i64,
    /// Number of RTP packets of the agent of payload types that were not negotiated; they were not decoded.
    #[serde(default)]
    pub unknown_payload_type_packets: i64,
    /// Number of RTP packets of the agent with a negotiated payload type and a length impossible for it; they were not
    /// decoded.
    #[serde(default)]
    pub wrong_length_packets: i64,
    /// Number of RTP packets of another source (SSRC) than the decoded one.
    #[serde(default)]
    pub foreign_source_packets: i64,
    /// Number of datagrams of another address or port than the agent's.
    #[serde(default)]
    pub foreign_address_packets: i64,
    /// Number of datagrams that are not RTP.
    #[serde(default)]
    pub malformed_packets: i64,
    /// Number of datagrams that were not encrypted with the agreed key.
    #[serde(default)]
    pub unprotected_packets: i64,
    /// False: timing metrics are not to be relied on.
    pub trusted: bool,
    /// First condition of trust that does not hold; null when the result is trusted.
    pub untrusted_reason: Option<String>,
    /// Echo of the Digital Human's own speech; null: none was found.
    pub echo: Option<EchoQuality>,
    /// Library that encoded and decoded Opus; null: the call had another codec.
    #[serde(default)]
    pub opus: Option<OpusLibrary>,
}

/// Library that encoded and decoded Opus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpusLibrary {
    /// Name of the library: `libopus`, or `ropus`, the port of it that is a part of the engine.
    pub name: String,
    /// Version of the library.
    pub version: String,
    /// Reason why libopus was not used although it was wanted; null: the library in use is the wanted one.
    pub fallback_reason: Option<String>,
}

/// Packets that the Digital Human's connection lost on purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulatedLoss {
    /// Share of the packets that were to be sent, percent.
    pub sent: f64,
    /// Share of the received packets that were not heard, percent.
    pub received: f64,
}

/// An echo of the Digital Human's own speech. It counts neither as speech of the agent nor in a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EchoQuality {
    /// Delay from sending to reception, in milliseconds.
    pub delay_ms: f64,
    /// Echo return loss in dB: how far the echo lies below what was sent.
    pub erl_db: f64,
}

/// Members of a result record besides its id, as stored and as read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResultBody {
    /// Digital Human of the conversation; null when it was deleted.
    pub digital_human_id: Option<i64>,
    /// Identifier of the run.
    pub simulation_run_id: i64,
    /// Identifier of the simulation.
    pub simulation_id: i64,
    /// The agent under test.
    pub agent_id: i64,
    /// State of the result.
    pub status: ResultStatus,
    /// Every state with its time, oldest first.
    pub status_history: Vec<StatusChange>,
    /// Deprecated copy of the evaluation's goal_success and goal_reasoning.
    pub result: Option<Object>,
    /// Verdict on the result; null until its state is terminal.
    pub outcome: Option<Outcome>,
    /// Verdict on the call with its reason; null until its state is terminal.
    #[serde(default)]
    pub verdict: Option<CallVerdict>,
    /// Time of connect; null: never connected.
    pub start_time: Option<Timestamp>,
    /// Time of the end; null until then.
    pub end_time: Option<Timestamp>,
    /// Length in seconds, rounded half up.
    pub duration: Option<i64>,
    /// Length in milliseconds, exact.
    pub duration_ms: Option<i64>,
    /// Latency of the agent in seconds, one value a turn.
    pub latency: Option<Vec<f64>>,
    /// Events that were posted or marked, oldest first.
    pub events: Vec<PostedEvent>,
    /// URL of the transcript; null: none yet.
    pub transcript_url: Option<String>,
    /// URL of the recording; null: none.
    pub audio_url: Option<String>,
    /// Evaluations of the result: none or one.
    pub evaluations: Vec<Evaluation>,
    /// Deprecated copy of the evaluation's `custom_metrics`.
    pub custom_metrics: Option<Vec<CustomResult>>,
    /// Built-in metrics, null values left out.
    pub metrics: Vec<MetricValue>,
    /// Tool calls by name; tools with expected calls first.
    pub tool_calls: Vec<ToolCallGroup>,
    /// Identifiers of traces in the agent owner's own system.
    pub trace_ids: Vec<String>,
    /// Labels of the result.
    pub tags: Vec<String>,
    /// Metadata: posted members and those of the engine.
    pub metadata: Object,
    /// Code of the error that ended the conversation; null: none.
    pub error_code: Option<ErrorCode>,
    /// The error in words; null: none.
    pub error_message: Option<String>,
    /// Party that has to act on the error.
    pub error_owner: Option<Owner>,
    /// Final SIP status code of the call; null: none.
    pub sip_code: Option<i64>,
    /// ITU-T Q.850 cause of the call's end; null: none was received.
    pub q850_cause: Option<i64>,
    /// Reason for the end of the conversation; null until then.
    pub end_reason: Option<String>,
    /// Side that ended the conversation; null: neither.
    pub conversation_ended_by: Option<EndedBy>,
    /// Number of the attempt, from 1.
    pub attempt: i64,
    /// Step of the journey, from 1; null: no journey.
    pub journey_step: Option<i64>,
    /// Text messages after the call, and their judgement; null: none.
    pub follow_up_sms: Option<Object>,
    /// Agent version that was tested.
    pub agent_version_id: Option<Uuid>,
    /// Seed of all random draws of the conversation.
    pub seed: i64,
    /// Measurements of the engine itself; null for text conversations.
    pub engine_quality: Option<EngineQuality>,
    /// Verdicts on the expectations of the Digital Human; empty until they were evaluated.
    #[serde(default)]
    pub expectations: Vec<ExpectationResult>,
    /// Parts of this side that failed, oldest first.
    #[serde(default)]
    pub own_faults: Vec<OwnFault>,
}

impl ResultBody {
    /// Returns the value of the built-in metric `name`; `None`: not measured.
    pub fn metric(&self, name: &str) -> Option<&Value> {
        self.metrics.iter().find(|metric| metric.name == name).map(|metric| &metric.value)
    }

    /// Returns the word of the verdict, which lists, counters and exports show; `None` until the state is terminal.
    pub fn word(&self) -> Option<VerdictWord> {
        let told = self.verdict.as_ref().map(|verdict| verdict.word);
        told.or_else(|| self.outcome.map(VerdictWord::of_outcome))
    }

    /// True if the conversation broke off, or never began, by a fault of this side or by a setting that is missing, or
    /// if the agent's audio has another rate than was agreed on: nothing is known of the agent then.
    pub fn is_own_failure(&self) -> bool {
        self.error_owner.is_some_and(Owner::is_own)
            || self.error_code.as_ref().is_some_and(ErrorCode::names_missing_setting)
            || self.own_faults.iter().any(|fault| fault.code == FaultCode::RateMismatch)
    }

    /// Sets the error `code` with its message and its owner.
    pub fn fail(&mut self, code: ErrorCode, message: impl Into<String>) {
        self.error_owner = Some(code.owner());
        self.error_code = Some(code);
        self.error_message = Some(message.into());
    }
}

/// A result as stored: the record, and what only the engine reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResultDoc {
    /// Members of the record.
    pub body: ResultBody,
    /// Repetition of the Digital Human within its run, from 0.
    #[serde(default)]
    pub repetition: i64,
    /// The agent's own transcript, as posted.
    #[serde(default)]
    pub recorded_transcript: Option<Vec<PostedEntry>>,
    /// Tool calls that were posted; a new post replaces them.
    #[serde(default)]
    pub posted_calls: Vec<PostedToolCall>,
    /// Tool calls that came another way, for instance in the conversation itself.
    #[serde(default)]
    pub heard_calls: Vec<PostedToolCall>,
    /// True: private data is not yet redacted, so that words and audio are not shown.
    #[serde(default)]
    pub private: bool,
    /// Calls of the agent to an unresponsive Digital Human, each with its time and source.
    #[serde(default)]
    pub unanswered: Vec<Object>,
    /// Messages of the agent in a text conversation.
    #[serde(default, skip_serializing_if = "Inbox::is_empty")]
    pub inbox: Inbox,
    /// Judgement of the goal that the verdict on the tool calls has replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overruled: Option<JudgedGoal>,
    /// Names of metadata members that were posted; the engine does not overwrite them.
    #[serde(default)]
    pub posted_keys: Vec<String>,
    /// Media room that was created for its call and is removed after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<String>,
    /// Turns of the agent that nobody interrupted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heard_whole: Vec<HeardTurn>,
    /// True when it is not known of an interrupted turn of the agent whether it was cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_open_stops: bool,
}

impl ResultDoc {
    /// Appends a text to the warnings of the engine.
    pub fn warn(&mut self, text: &str) {
        self.warn_all([text.to_owned()]);
    }

    /// Appends texts to the warnings of the engine; the list exists from then on, even when there are none.
    pub fn warn_all(&mut self, texts: impl IntoIterator<Item = String>) {
        let key = self.own_key("warnings");
        let texts = texts.into_iter().map(Value::from);
        match self.body.metadata.get_mut(&key) {
            Some(Value::Array(warnings)) => warnings.extend(texts),
            _ => self.note("warnings", texts.collect()),
        }
    }

    /// Removes the warnings of the engine that begin with `start`.
    pub fn forget_warnings(&mut self, start: &str) {
        let key = self.own_key("warnings");
        if let Some(Value::Array(warnings)) = self.body.metadata.get_mut(&key) {
            warnings.retain(|warning| !warning.as_str().is_some_and(|text| text.starts_with(start)));
        }
    }

    /// Sets a metadata member of the engine; where one of the name was posted, it is called `engine.NAME`.
    pub fn note(&mut self, key: &str, value: Value) {
        self.body.metadata.insert(self.own_key(key), value);
    }

    /// Removes a metadata member of the engine.
    pub fn forget_note(&mut self, key: &str) {
        let own_key = self.own_key(key);
        self.body.metadata.remove(&own_key);
    }

    /// Sets posted metadata members; the engine's member of the same name moves to `engine.NAME`.
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

    /// Returns the name under which the engine's own metadata member is stored.
    fn own_key(&self, key: &str) -> String {
        if self.is_posted(key) { beside(key) } else { key.to_owned() }
    }

    /// Returns a metadata member of the engine.
    pub fn find_note(&self, key: &str) -> Option<&Value> {
        self.body.metadata.get(&self.own_key(key))
    }

    fn is_posted(&self, key: &str) -> bool {
        self.posted_keys.iter().any(|posted| posted == key)
    }
}

/// Returns a metadata member of the engine by its plain name.
pub fn find_note<'m>(metadata: &'m Object, key: &str) -> Option<&'m Value> {
    metadata.get(&beside(key)).or_else(|| metadata.get(key))
}

/// Returns the name of an engine's metadata member where one of the same name was posted.
pub fn beside(key: &str) -> String {
    format!("engine.{key}")
}

/// A result, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ResultRecord {
    /// Identifier of the result.
    pub id: i64,
    /// Reason why the result waits; null when it does not.
    ///
    /// - `max_concurrent`: a place among the simulation's max_concurrent.
    /// - `sequential`: its turn in a sequential run.
    /// - `max_calls`, `start_rate`: a place within the engine's limits.max_calls or limits.start_rate_per_s.
    /// - `address_in_use`: an address that another result uses.
    /// - `journey_step`, `journey_wait`: the step before it in its journey, or the pause after that step.
    /// - `retry`: another attempt.
    /// - `workspace_limit`: a place among the organization's calls_at_once.
    /// - `model_budget`: the budget of the language model that words callers.
    pub queue_reason: Option<QueueReason>,
    /// Reason in words, with the setting that it follows from; null when the result does not wait.
    pub queue_reason_text: Option<String>,
    /// Members of the record besides the id.
    #[serde(flatten)]
    pub body: ResultBody,
}
