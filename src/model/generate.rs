//! Requests to generate Digital Humans, and their answer.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Object;
use super::customer::PersonaById;
use super::digital_human::{LinkedDigitalHuman, TraitType};
use super::id::IdString;
use super::test_scenario::TestScenario;

words! {
    /// Fidelity of a replay: word for word, in the order of the transcript, or only its caller and reason.
    ReplayMode { Strict = "strict", Smart = "smart", Persona = "persona" } default Smart
}

fn string() -> String {
    "string".into()
}

/// Callers who pursue one goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalAsked {
    /// Goal that the callers pursue.
    pub goal: String,
    /// Number of Digital Humans to make.
    #[schemars(range(min = 1))]
    pub num_calls: i64,
}

/// A transcript given as text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayTranscriptFromText {
    /// Transcript as lines `ROLE: text`, or any text from which a language model can make such lines.
    pub transcript: String,
    /// Criteria of success; made from the transcript when absent.
    #[serde(default)]
    pub success_criteria: Option<String>,
    /// Fidelity of the replay; default smart.
    #[serde(default)]
    pub mode: ReplayMode,
}

/// Transcript of an earlier conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayTranscriptFromConversation {
    /// Identifier of a simulation result.
    pub conversation_id: String,
    /// Criteria of success; made from the transcript when absent.
    #[serde(default)]
    pub success_criteria: Option<String>,
    /// Fidelity of the replay; default smart.
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
    /// Description of these callers.
    pub description: String,
    /// Goal that the callers pursue.
    pub goal: String,
    /// Number of Digital Humans to make.
    #[schemars(range(min = 1))]
    pub num_calls: i64,
}

/// A fact that an attacker knows about the victim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnownTrait {
    /// Name of the fact.
    pub name: String,
    /// string, number, date or boolean.
    #[serde(default = "string")]
    pub data_type: String,
    /// Value of the fact; for `__random__` and `__partial_random__` one is invented.
    #[serde(default)]
    pub value: Value,
    /// Extent of the knowledge (`last_4`, `year_only`).
    #[serde(default)]
    pub completeness: Option<String>,
}

/// Attackers of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttackBatch {
    /// Goal of the attackers.
    pub intent: String,
    /// Identifier of the attack vector.
    pub vector_id: String,
    /// Number of Digital Humans to make.
    #[schemars(range(min = 1))]
    pub count: i64,
    /// Facts that the attackers know about the victim.
    #[serde(default)]
    pub traits: Vec<KnownTrait>,
    /// Criteria by which the agent withstood the attack.
    #[serde(default)]
    pub custom_success_criteria: Option<String>,
}

/// Attackers to make, by vector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttacksAsked {
    /// Batches of attackers, one vector each.
    pub batches: Vec<AttackBatch>,
}

/// A fact that generated callers have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraitAsked {
    /// Name, used in templates and headers.
    pub trait_name: String,
    /// Type of the value; absent: taken from the value.
    #[serde(default)]
    pub trait_data_type: Option<TraitType>,
    /// Value of the trait.
    pub value: Value,
    /// True: sent as a header field of the INVITE.
    #[serde(default)]
    pub is_sip_header: bool,
}

/// A request for Digital Humans.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GenerateSpec {
    /// The agent that they call.
    pub agent_id: IdString,
    /// Simulation that the new Digital Humans are linked to.
    #[serde(default)]
    pub simulation_id: Option<IdString>,
    /// Deprecated twin of agent_version_id.
    #[serde(default)]
    #[schemars(extend("deprecated" = true))]
    pub prompt_id: Option<Uuid>,
    /// Version of the agent whose rules are probed; null: production.
    #[serde(default)]
    pub agent_version_id: Option<Uuid>,
    /// Deprecated, accepted and ignored.
    #[serde(default)]
    #[schemars(extend("deprecated" = true))]
    pub knowledge_base_id: Option<Uuid>,
    /// Callers to make, by goal.
    #[serde(default)]
    pub goal_adherence: Option<Vec<GoalAsked>>,
    /// Callers to make by scenario: scenario id to number.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, i64>>")]
    pub workflow_adherence: Option<Object>,
    /// The same as `workflow_adherence`.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, i64>>")]
    pub workflow_adherence_v2: Option<Object>,
    /// Callers to make, by transcript.
    #[serde(default)]
    pub replay_transcript: Option<Vec<ReplayAsked>>,
    /// Callers to make, by persona.
    #[serde(default)]
    pub customer_personas: Option<Vec<PersonaAsked>>,
    /// Callers to make, by stored persona.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer_persona_ids: Option<Vec<PersonaById>>,
    /// Number of callers who probe rules of the agent's prompt.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub system_prompt: i64,
    /// Number of callers with a short fixed dialogue.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub load_testing: i64,
    /// Number of attackers, spread over all vectors.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub red_teaming: i64,
    /// Attackers to make, by vector.
    #[serde(default)]
    pub red_team_attacks: Option<AttacksAsked>,
    /// Traits that all generated Digital Humans get.
    #[serde(default)]
    pub traits: Option<Vec<TraitAsked>>,
    /// Repetitions of each Digital Human; absent: the simulation's, then 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub num_runs: Option<i64>,
}

/// Answer to a request to generate Digital Humans.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Generated {
    /// The new Digital Humans, in the order of the request.
    pub digital_humans: Vec<LinkedDigitalHuman>,
    /// Always `200`; kept for compatibility.
    pub status: String,
    /// Always true; kept for compatibility.
    pub success: bool,
    /// Scenario behind each Digital Human.
    pub test_scenarios: Option<Vec<TestScenario>>,
    /// Parts of the request that were not fulfilled, in words; null: none.
    pub warning: Option<String>,
}
