//! A run: one queueing of a simulation, with one result per conversation.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ringer_media::seed::Seed;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Object;
use super::agent::{AgentSpec, ConnectionType};
use super::digital_human::{DigitalHumanSpec, JourneyStep};
use super::heard_turn::HeardTurn;
use super::id::IdString;
use super::judge_card::CorrectedRate;
use super::model_usage::ModelUsage;
use super::schema::telephone_number;
use super::status::{RunOutcome, RunStatus};
use super::time::Timestamp;
use super::verdict::VerdictWord;

/// Request for a run. Everything but the simulation overrides the agent's or the simulation's setting for this run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueSpec {
    /// Simulation that is run.
    pub simulation_id: IdString,
    /// Agent version to test; absent: the simulation's.
    #[serde(default)]
    pub agent_version_id: Option<Uuid>,
    /// Deprecated twin of agent_version_id.
    #[serde(default)]
    #[schemars(extend("deprecated" = true))]
    pub prompt_id: Option<Uuid>,
    /// Digital Humans to run; absent or []: all of the simulation.
    #[serde(default)]
    pub digital_human_ids: Option<Vec<IdString>>,
    /// Communities whose members to run, beside the Digital Humans that are named; all are of the simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub community_ids: Option<Vec<Uuid>>,
    /// Phone number in place of the agent's, E.164.
    #[serde(default)]
    #[schemars(extend("x-rules" = telephone_number()))]
    pub phone_number: Option<String>,
    /// SIP address in place of the agent's, `sip:user@host`.
    #[serde(default)]
    pub sip_uri: Option<String>,
    /// WebSocket URL in place of the agent's: ws, wss, http or https.
    #[serde(default)]
    pub websocket_url: Option<String>,
    /// Dialect in place of the agent's.
    #[serde(default)]
    pub websocket_dialect: Option<String>,
    /// Agent name of P1; "" is the default dispatch.
    #[serde(default, rename = "P1_agent_name")]
    pub p1_agent_name: Option<String>,
    /// Metadata of the room, in place of the agent's.
    #[serde(default, rename = "P1_metadata")]
    pub p1_metadata: Option<Object>,
    /// Configuration of the pipeline, in place of the agent's.
    #[serde(default, rename = "P2_agent_configuration")]
    pub p2_agent_configuration: Option<Object>,
    /// Room properties, in place of the agent's.
    #[serde(default, rename = "P2_room_properties")]
    pub p2_room_properties: Option<Object>,
    /// Pipeline to start, in place of the agent's.
    #[serde(default, rename = "P2_agent_name")]
    pub p2_agent_name: Option<String>,
    /// Agent on the platform.
    #[serde(default, rename = "P3_agent_id")]
    pub p3_agent_id: Option<String>,
    /// Agent on the platform.
    #[serde(default, rename = "P4_agent_id")]
    pub p4_agent_id: Option<String>,
    /// Assistant on the platform.
    #[serde(default, rename = "P5_assistant_id")]
    pub p5_assistant_id: Option<String>,
    /// Turns of the agent that calls of an earlier run heard whole: they tell whether an interrupted turn was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub heard_whole: Option<Vec<HeardTurn>>,
    /// Results per Digital Human; absent: the simulation's, then 1.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub runs_per_digital_human: Option<i64>,
    /// Base seed of the run; drawn when absent.
    #[serde(default)]
    #[schemars(range(min = 0, max = 9_007_199_254_740_991_i64))]
    pub seed: Option<i64>,
}

impl QueueSpec {
    /// Returns the kind of connection that the overrides name; `None`: they name none.
    pub fn connection(&self) -> Option<ConnectionType> {
        let given = [
            (self.sip_uri.is_some(), ConnectionType::Sip),
            (self.websocket_url.is_some(), ConnectionType::WebSocket),
            (self.p1_agent_name.is_some(), ConnectionType::P1),
            (self.p2_agent_name.is_some(), ConnectionType::P2),
            (self.p3_agent_id.is_some(), ConnectionType::P3),
            (self.p4_agent_id.is_some(), ConnectionType::P4),
            (self.p5_assistant_id.is_some(), ConnectionType::P5),
            (self.phone_number.is_some(), ConnectionType::Phone),
        ];
        given.into_iter().find(|(is_set, _)| *is_set).map(|(_, kind)| kind)
    }

    /// Returns the numbers of a conversation by text messages: the Digital Human's, or its step's, and the agent's.
    pub fn text_numbers(
        &self,
        agent: &AgentSpec,
        human: &DigitalHumanSpec,
        step: Option<&JourneyStep>,
    ) -> [Option<String>; 2] {
        let agents = [&self.phone_number, &agent.phone_number];
        let agents = agents.into_iter().flatten().find(|number| !number.is_empty());
        [human.text_number(step).map(str::to_owned), agents.cloned()]
    }
}

/// Refusal of a simulation that has nothing to run.
pub const NO_HUMANS: &str = "Simulation has no digital humans";

/// Purpose for which a run is queued.
#[derive(Copy, Clone, Debug, Default)]
pub struct Purpose {
    /// Tag that every result gets.
    pub tag: Option<&'static str>,
    /// True for one result a Digital Human, however often it is to be repeated.
    pub once: bool,
    /// Kind of agent that the run requires.
    pub agent: AgentWanted,
}

/// Kind of agent that a way of queueing requires.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum AgentWanted {
    /// Agents of any kind.
    #[default]
    Any,
    /// Agents that write over HTTP.
    HttpText,
    /// Agents that write text messages (SMS).
    Sms,
}

/// Response to work that was taken in.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Accepted {
    /// Always the text `accepted`.
    pub status: String,
}

/// Returns the seed of a result of the run with seed `base`.
pub fn result_seed(base: Seed, key: &str, repetition: i64, step: Option<i64>) -> Seed {
    let step = step.map(|step| step.to_string()).unwrap_or_default();
    Seed::of(&format!("{}:{key}:{repetition}:{step}", base.0))
}

/// A [`QueueSpec`] without its simulation, which is named elsewhere.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct RunSettings(Object);

impl RunSettings {
    /// Returns the whole request for a run of `simulation_id`.
    ///
    /// # Errors
    /// A member has not the type that a [`QueueSpec`] declares, which the walker has excluded.
    pub fn of(self, simulation_id: i64) -> serde_json::Result<QueueSpec> {
        let mut fields = self.0;
        fields.insert("simulation_id".into(), simulation_id.to_string().into());
        serde_json::from_value(Value::Object(fields))
    }
}

impl JsonSchema for RunSettings {
    fn schema_name() -> Cow<'static, str> {
        "RunSettings".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = QueueSpec::json_schema(generator);
        schema.remove("required");
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.shift_remove("simulation_id");
        }
        schema
    }
}

/// Request for a run of the simulation that has the id, the identifier of the declarative push, or both.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct QueueRequest {
    /// Simulation to run; needed where `svc_as_code_id` is not given.
    #[serde(default)]
    #[schemars(with = "IdString", extend("x-unless" = "svc_as_code_id"))]
    pub simulation_id: Option<IdString>,
    /// Simulation to run by its stable identifier.
    #[serde(default)]
    pub svc_as_code_id: Option<Uuid>,
    /// Settings of the run.
    #[serde(flatten)]
    pub settings: RunSettings,
}

/// Answer to a request for a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct QueueAnswer {
    /// Identifier of the run.
    pub simulation_run_id: String,
    /// Identifiers of its results, ascending.
    pub simulation_result_ids: Vec<String>,
    /// The agent under test.
    pub agent_id: String,
    /// Always `success`; kept for compatibility.
    pub status: String,
}

/// A run as stored. Its counters are not stored, they are counted from the results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunDoc {
    /// Simulation that is run.
    pub simulation_id: i64,
    /// The agent under test.
    pub agent_id: i64,
    /// State of the run.
    pub status: RunStatus,
    /// Summary in words, written when the run is completed.
    pub summary: Option<String>,
    /// Counters that the summary states, in words.
    #[serde(default)]
    pub counted: Option<String>,
    /// Time at which the last result became terminal; null until then.
    pub completed_at: Option<Timestamp>,
    /// Base seed of the run.
    pub seed: i64,
    /// The queue body: overrides of this run.
    pub overrides: QueueSpec,
    /// Day (UTC) whose calls to always-on Digital Humans make its results; `None`: the run was queued.
    #[serde(default)]
    pub day: Option<String>,
    /// True: webhooks were told that its OUTBOUND agent is awaited.
    #[serde(default)]
    pub start_told: bool,
    /// API key that queued it; `None` for runs of earlier releases.
    #[serde(default)]
    pub created_by: Option<Uuid>,
    /// Name that a person gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Change of a run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct RunPatch {
    /// Name of the run; empty: it has none any more.
    #[schemars(length(max = 200))]
    pub name: String,
}

/// Numbers of results by verdict.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counters {
    /// Number of results with outcome passed.
    pub tests_passed: i64,
    /// Number of results with outcome failed.
    pub tests_failed: i64,
    /// Number of all results.
    pub total_tests: i64,
    /// Number of results in a terminal state.
    pub tests_completed: i64,
    /// Number of results with outcome cancelled.
    pub tests_cancelled: i64,
    /// Number of results with outcome not_evaluated.
    pub tests_not_evaluated: i64,
    /// Number of results whose verdict is unknown: nothing tells whether the agent passed.
    pub not_judged: i64,
    /// Numbers of results by the word of their verdict.
    pub verdicts: VerdictCounts,
}

/// Numbers of terminal results by the word of their verdict.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VerdictCounts {
    /// Number of results with the verdict passed.
    pub passed: i64,
    /// Number of results with the verdict failed.
    pub failed: i64,
    /// Number of results with the verdict unreachable.
    pub unreachable: i64,
    /// Number of results with the verdict unknown.
    pub unknown: i64,
    /// Number of results with the verdict cancelled.
    pub cancelled: i64,
}

impl Counters {
    /// Adds `count` results with this verdict.
    pub fn add_verdict(&mut self, word: VerdictWord, count: i64) {
        let all = &mut self.verdicts;
        let place = match word {
            VerdictWord::Passed => &mut all.passed,
            VerdictWord::Failed => &mut all.failed,
            VerdictWord::Unreachable => &mut all.unreachable,
            VerdictWord::Cancelled => &mut all.cancelled,
            VerdictWord::Undecided | VerdictWord::Unknown(_) => &mut all.unknown,
        };
        *place += count;
        self.not_judged = all.unknown;
    }

    /// Returns the text `N passed, M failed, K cancelled of T`.
    pub fn summary(&self) -> String {
        let Counters { tests_passed, tests_failed, tests_cancelled, total_tests, .. } = self;
        format!("{tests_passed} passed, {tests_failed} failed, {tests_cancelled} cancelled of {total_tests}")
    }

    /// Returns the verdict on the run; `None` when nothing was judged.
    ///
    /// The score is the percentage of passed among passed and failed; each threshold defaults to 80. A run of which a
    /// result is not judged is not passed.
    pub fn outcome(&self, failing: Option<i64>, passing: Option<i64>) -> Option<RunOutcome> {
        let judged = self.tests_passed + self.tests_failed;
        if judged == 0 {
            return None;
        }
        let score = 100.0 * self.tests_passed as f64 / judged as f64;
        Some(if score < failing.unwrap_or(80) as f64 {
            RunOutcome::Failed
        } else if score >= passing.unwrap_or(80) as f64 && self.not_judged == 0 {
            RunOutcome::Passed
        } else {
            RunOutcome::Warning
        })
    }
}

/// A run in the list of a simulation's runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunItem {
    /// Identifier of the run.
    pub id: i64,
    /// Identifier of the simulation.
    pub experiment_id: i64,
    /// Time at which it was queued.
    pub created_at: Timestamp,
    /// State of the run.
    pub status: RunStatus,
    /// Summary in words; null until the run is completed.
    pub summary: Option<String>,
    /// Numbers of results by verdict.
    #[serde(flatten)]
    pub counters: Counters,
    /// Always null; kept for compatibility.
    pub curr_step_id: Option<i64>,
    /// Phone number of the request for the run.
    pub phone_number: Option<String>,
    /// Identifier of the simulation.
    pub simulation_id: i64,
    /// Verdict on the run; null: nothing was judged.
    pub outcome: Option<RunOutcome>,
    /// Base seed of the run.
    pub seed: Option<i64>,
    /// Time at which the last result became terminal; null until then.
    pub completed_at: Option<Timestamp>,
    /// Number of results that wait, by queue_reason.
    pub queue_reasons: BTreeMap<String, i64>,
    /// Name that a person gave it; null: none.
    pub name: Option<String>,
}

/// A run beside its results: as [`RunItem`], ids as strings.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunRecord {
    /// Identifier of the run.
    pub id: String,
    /// Identifier of the simulation.
    pub simulation_id: String,
    /// Time at which it was queued.
    pub created_at: Timestamp,
    /// Summary in words; null until the run is completed.
    pub summary: Option<String>,
    /// State of the run.
    pub status: RunStatus,
    /// Numbers of results by verdict.
    #[serde(flatten)]
    pub counters: Counters,
    /// Verdict on the run; null: nothing was judged.
    pub outcome: Option<RunOutcome>,
    /// Base seed of the run.
    pub seed: Option<i64>,
    /// Time at which the last result became terminal; null until then.
    pub completed_at: Option<Timestamp>,
    /// Number of results that wait, by queue_reason.
    pub queue_reasons: BTreeMap<String, i64>,
    /// Use of language models by its results and for its summary; null: none was asked.
    pub usage: Option<ModelUsage>,
    /// Share of reached goals, corrected by the report card of the judge; null: there is no card in force.
    pub corrected: Option<CorrectedRate>,
    /// Name that a person gave it; null: none.
    pub name: Option<String>,
}
