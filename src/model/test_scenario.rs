//! Scenarios of the generation endpoints: what a caller will do, before there is a caller.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Object;
use super::digital_human::{ExpectedToolCall, Language, Trait, TraitType, TranscriptLine};
use super::id::IdString;

/// A kind of customer inside a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomerPersona {
    /// Its name.
    pub name: String,
    /// Who the customer is.
    pub description: String,
    /// What the customer wants.
    #[serde(default)]
    pub goal: Option<String>,
    /// Its id.
    #[serde(default)]
    pub id: Option<Uuid>,
}

/// What a caller will do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestScenario {
    /// Its id; made when absent.
    #[serde(default)]
    pub id: Option<Uuid>,
    /// A short title.
    #[serde(default)]
    pub name: String,
    /// What happens; a JSON array of utterances where exactly these are said.
    pub description: String,
    /// What it is for.
    #[serde(default)]
    pub goal: String,
    /// Its kind.
    #[serde(default)]
    pub category: String,
    /// What the caller wants.
    #[serde(default)]
    pub intent: String,
    /// When it counts as passed.
    #[serde(default)]
    pub success_criteria: String,
    /// Who calls.
    #[serde(default)]
    pub persona: Option<CustomerPersona>,
    /// Facts about the caller.
    #[serde(default)]
    pub traits: Vec<Trait>,
    /// Language spoken.
    #[serde(default)]
    pub language: Language,
    /// Transcript that it was made from.
    #[serde(default)]
    pub original_transcript: Option<String>,
    /// The same, by line.
    #[serde(default)]
    pub formatted_transcript: Option<Vec<TranscriptLine>>,
    /// Tool calls that the agent should make.
    #[serde(default)]
    pub expected_tool_calls: Vec<ExpectedToolCall>,
}

/// The agent that scenarios are for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioAgent {
    /// Its id.
    #[serde(default)]
    pub id: Option<IdString>,
    /// Its name.
    pub name: String,
    /// What it is told.
    #[serde(default)]
    pub agent_description: Option<String>,
    /// The same, when the other is absent.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// What it is for.
    #[serde(default)]
    pub goals: Vec<String>,
    /// VOICE, TEXT or EMAIL.
    #[serde(default)]
    pub mode: Option<String>,
    /// INBOUND or OUTBOUND.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
}

/// Scenarios of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestScenarioRequest {
    /// The kind.
    pub category: String,
    /// How many.
    #[schemars(range(min = 0))]
    pub count: i64,
    /// What they are for.
    #[serde(default)]
    pub goal: Option<String>,
    /// More about them.
    #[serde(default)]
    pub instructions: Option<String>,
}

/// A tool that the agent should call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolWanted {
    /// Its name.
    pub name: String,
    /// What it gives.
    #[serde(default)]
    pub output: Option<String>,
}

/// Scenarios from a free wish.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomPrompt {
    /// The wish.
    pub prompt: String,
    /// How many.
    #[schemars(range(min = 0))]
    pub count: i64,
}

fn yes() -> bool {
    true
}

/// A scenario from a transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptWanted {
    /// The transcript.
    pub transcript: String,
    /// Made from the transcript when absent.
    #[serde(default)]
    pub success_criteria: Option<String>,
    /// The customer's own words are kept.
    #[serde(default = "yes")]
    pub use_specific_utterances: bool,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CsvRow {
    /// What the caller wants.
    pub intent: String,
    /// When it counts as passed.
    pub success_criteria: String,
    /// How many.
    #[schemars(range(min = 0))]
    pub count: i64,
}

/// How many scenarios of each kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallAllocation {
    /// By goal.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, f64>")]
    pub goal_adherence: Object,
    /// By rule.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, f64>")]
    pub system_integrity: Object,
    /// By persona.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, f64>")]
    pub customer_personas: Object,
    /// By workflow.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, f64>")]
    pub workflow_adherence: Object,
    /// By workflow.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, f64>")]
    pub workflow_adherence_v2: Object,
    /// One for each tool.
    #[serde(default)]
    pub expected_tool_calls: Vec<ToolWanted>,
    /// From a free wish.
    #[serde(default)]
    pub custom_prompt: Option<CustomPrompt>,
    /// One for each transcript.
    #[serde(default)]
    pub transcript_generation: Vec<TranscriptWanted>,
    /// By row of a table.
    #[serde(default)]
    pub csv_call_allocation: Vec<CsvRow>,
}

words! {
    /// Type of a trait's value, in lower case.
    LowerType { Boolean = "boolean", String = "string", Date = "date", Number = "number" }
}

impl LowerType {
    /// The type that is meant.
    pub fn kind(self) -> TraitType {
        match self {
            LowerType::Boolean => TraitType::Boolean,
            LowerType::String => TraitType::String,
            LowerType::Date => TraitType::Date,
            LowerType::Number => TraitType::Number,
        }
    }
}

/// A trait that every scenario has a value of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraitWanted {
    /// Its name.
    pub name: String,
    /// Type of its values.
    pub data_type: LowerType,
}

/// Asks for scenarios.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScenariosAsked {
    /// What they are called together.
    pub name: String,
    /// The agent that they are for.
    pub agent: ScenarioAgent,
    /// A version of the agent's text.
    #[serde(default)]
    pub prompt_id: Option<String>,
    /// Not used.
    #[serde(default)]
    pub knowledge_base_id: Option<String>,
    /// What is wanted.
    pub scenarios: Vec<TestScenarioRequest>,
    /// What is wanted beside that.
    pub call_allocation: CallAllocation,
    /// Properties that the callers should have, by kind.
    pub selected_properties: Object,
    /// Traits that every scenario has a value of.
    #[serde(default)]
    pub customer_traits: Option<Vec<TraitWanted>>,
}

/// Asks for scenarios with another goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MoveAsked {
    /// The agent that they are for.
    pub agent: ScenarioAgent,
    /// A version of the agent's text.
    #[serde(default)]
    pub prompt_id: Option<String>,
    /// Not used.
    #[serde(default)]
    pub knowledge_base_id: Option<String>,
    /// The scenarios.
    pub scenarios: Vec<TestScenario>,
    /// Their new goal.
    pub new_goal: String,
}

/// Asks for scenarios after instructions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegenAsked {
    /// The agent that they are for.
    pub agent: ScenarioAgent,
    /// A version of the agent's text.
    #[serde(default)]
    pub prompt_id: Option<String>,
    /// Not used.
    #[serde(default)]
    pub knowledge_base_id: Option<String>,
    /// The scenarios.
    pub scenarios: Vec<TestScenario>,
    /// What shall change.
    pub instructions: String,
    /// Who calls.
    #[serde(default)]
    pub persona: Option<CustomerPersona>,
}

/// Generated scenarios.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScenariosMade {
    /// The scenarios.
    pub scenarios: Vec<TestScenario>,
    /// `200`.
    pub status: String,
    /// True.
    pub success: bool,
    /// What the request did not get.
    pub warning: Option<String>,
}

fn five() -> i64 {
    5
}

/// Asks for personas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PersonasAsked {
    /// Whose customers.
    pub agent_id: IdString,
    /// Version of the agent's text; null: production.
    #[serde(default)]
    pub agent_version_id: Option<Uuid>,
    /// Deprecated twin of agent_version_id.
    #[serde(default)]
    #[schemars(extend("deprecated" = true))]
    pub prompt_id: Option<Uuid>,
    /// How many, 1 to 50.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 50))]
    pub count: i64,
    /// What they shall be like.
    #[serde(default)]
    pub custom_prompt: Option<String>,
}

/// A persona that is not stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PersonaDraft {
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Who the customer is.
    #[schemars(length(min = 1))]
    pub description: String,
    /// What the customer wants.
    #[schemars(length(min = 1))]
    pub goal: String,
}

/// Personas that are not stored.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PersonasMade {
    /// The personas.
    pub personas: Vec<PersonaDraft>,
    /// `200`.
    pub status: String,
}

/// A trait to invent values of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraitNamed {
    /// Its name.
    pub name: String,
    /// Type of its values.
    pub data_type: TraitType,
}

/// Asks for values of traits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValuesAsked {
    /// What happens in each.
    pub scenarios: Vec<String>,
    /// The traits.
    pub traits: Vec<TraitNamed>,
    /// What the agent is told.
    #[serde(default)]
    pub agent_prompt: Option<String>,
}

/// A value of a trait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraitValue {
    /// Name of the trait.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// Asks for a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GraphAsked {
    /// What happens in it.
    #[schemars(length(min = 1, max = 12000))]
    pub prompt: String,
    /// What else should be known.
    #[serde(default)]
    #[schemars(length(max = 8000))]
    pub context: Option<String>,
}
