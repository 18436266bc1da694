//! What Digital Humans are generated from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Object;
use super::digital_human::{LinkedDigitalHuman, TraitType};
use super::id::IdString;
use super::test_scenario::TestScenario;

words! {
    /// How a transcript is replayed: word for word, in its order, or only by who calls and why.
    ReplayMode { Strict = "strict", Smart = "smart", Persona = "persona" } default Smart
}

fn string() -> String {
    "string".into()
}

/// Callers who pursue one goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalAsked {
    /// What they want.
    pub goal: String,
    /// How many.
    #[schemars(range(min = 1))]
    pub num_calls: i64,
}

/// A transcript given as text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayTranscriptFromText {
    /// Lines `ROLE: text`, or anything that a language model can make such lines of.
    pub transcript: String,
    /// Made from the transcript when absent.
    #[serde(default)]
    pub success_criteria: Option<String>,
    /// How it is replayed.
    #[serde(default)]
    pub mode: ReplayMode,
}

/// A transcript of a conversation that was held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayTranscriptFromConversation {
    /// A simulation result.
    pub conversation_id: String,
    /// Made from the transcript when absent.
    #[serde(default)]
    pub success_criteria: Option<String>,
    /// How it is replayed.
    #[serde(default)]
    pub mode: ReplayMode,
}

/// A transcript to replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ReplayAsked {
    #[expect(missing_docs, reason = "docs on variants change the shape of the schema")]
    Text(ReplayTranscriptFromText),
    #[expect(missing_docs, reason = "docs on variants change the shape of the schema")]
    Conversation(ReplayTranscriptFromConversation),
}

/// Callers of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PersonaAsked {
    /// Name of the kind.
    pub name: String,
    /// Who they are.
    pub description: String,
    /// What they want.
    pub goal: String,
    /// How many.
    #[schemars(range(min = 1))]
    pub num_calls: i64,
}

/// What an attacker knows about the victim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnownTrait {
    /// Its name.
    pub name: String,
    /// string, number, date or boolean.
    #[serde(default = "string")]
    pub data_type: String,
    /// The value; `__random__` and `__partial_random__` are invented.
    #[serde(default)]
    pub value: Value,
    /// How much of it is known (`last_4`, `year_only`).
    #[serde(default)]
    pub completeness: Option<String>,
}

/// Attackers of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttackBatch {
    /// What they are after.
    pub intent: String,
    /// How they go about it.
    pub vector_id: String,
    /// How many.
    #[schemars(range(min = 1))]
    pub count: i64,
    /// What they know.
    #[serde(default)]
    pub traits: Vec<KnownTrait>,
    /// When the agent has held.
    #[serde(default)]
    pub custom_success_criteria: Option<String>,
}

/// Attackers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttacksAsked {
    /// By kind.
    pub batches: Vec<AttackBatch>,
}

/// A fact that generated callers have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraitAsked {
    /// Name, used in templates and headers.
    pub trait_name: String,
    /// Type of the value; read off the value when absent.
    #[serde(default)]
    pub trait_data_type: Option<TraitType>,
    /// The value.
    pub value: Value,
    /// Sent as a header of the INVITE.
    #[serde(default)]
    pub is_sip_header: bool,
}

/// A request for Digital Humans.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GenerateSpec {
    /// The agent that they call.
    pub agent_id: IdString,
    /// They become part of it.
    #[serde(default)]
    pub simulation_id: Option<IdString>,
    /// Deprecated twin of agent_version_id.
    #[serde(default)]
    #[schemars(extend("deprecated" = true))]
    pub prompt_id: Option<Uuid>,
    /// Version whose rules are probed; null: production.
    #[serde(default)]
    pub agent_version_id: Option<Uuid>,
    /// Not used.
    #[serde(default)]
    #[schemars(extend("deprecated" = true))]
    pub knowledge_base_id: Option<Uuid>,
    /// Callers by goal.
    #[serde(default)]
    pub goal_adherence: Option<Vec<GoalAsked>>,
    /// Callers by scenario: id to number.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, i64>>")]
    pub workflow_adherence: Option<Object>,
    /// The same.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, i64>>")]
    pub workflow_adherence_v2: Option<Object>,
    /// Callers by transcript.
    #[serde(default)]
    pub replay_transcript: Option<Vec<ReplayAsked>>,
    /// Callers by persona.
    #[serde(default)]
    pub customer_personas: Option<Vec<PersonaAsked>>,
    /// Callers who probe rules of the agent's text.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub system_prompt: i64,
    /// Callers with a short fixed dialogue.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub load_testing: i64,
    /// Attackers over all vectors.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub red_teaming: i64,
    /// Attackers by vector.
    #[serde(default)]
    pub red_team_attacks: Option<AttacksAsked>,
    /// Facts that all of them have.
    #[serde(default)]
    pub traits: Option<Vec<TraitAsked>>,
    /// Repetitions of each; absent: the simulation's, then 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub num_runs: Option<i64>,
}

/// What was generated.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Generated {
    /// In the order of the request.
    pub digital_humans: Vec<LinkedDigitalHuman>,
    /// `200`.
    pub status: String,
    /// True.
    pub success: bool,
    /// What each of them is about.
    pub test_scenarios: Option<Vec<TestScenario>>,
    /// What the request did not get.
    pub warning: Option<String>,
}
