//! Scenarios of the generation endpoints: descriptions of a caller's behaviour, before a Digital Human is made.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Object;
use super::customer::PersonaById;
use super::digital_human::{ExpectedToolCall, Language, Trait, TraitType, TranscriptLine};
use super::id::IdString;

/// A kind of customer inside a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomerPersona {
    /// Name of the persona.
    pub name: String,
    /// Description of the customer.
    pub description: String,
    /// Goal that the customer pursues.
    #[serde(default)]
    pub goal: Option<String>,
    /// Identifier of the persona, when it is stored.
    #[serde(default)]
    pub id: Option<Uuid>,
}

/// Description of a caller's behaviour in one test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestScenario {
    /// Identifier of the scenario; made when absent.
    #[serde(default)]
    pub id: Option<Uuid>,
    /// Title, a few words.
    #[serde(default)]
    pub name: String,
    /// Course of the conversation; a JSON array of utterances where exactly these are said.
    pub description: String,
    /// Goal of the test.
    #[serde(default)]
    pub goal: String,
    /// Category of the test.
    #[serde(default)]
    pub category: String,
    /// Goal of the caller.
    #[serde(default)]
    pub intent: String,
    /// Criteria by which the conversation counts as passed.
    #[serde(default)]
    pub success_criteria: String,
    /// Persona of the caller; null: none.
    #[serde(default)]
    pub persona: Option<CustomerPersona>,
    /// Facts about the caller.
    #[serde(default)]
    pub traits: Vec<Trait>,
    /// Language that the caller speaks; default en.
    #[serde(default)]
    pub language: Language,
    /// Transcript that it was made from.
    #[serde(default)]
    pub original_transcript: Option<String>,
    /// The same transcript as utterances.
    #[serde(default)]
    pub formatted_transcript: Option<Vec<TranscriptLine>>,
    /// Tool calls that the agent should make.
    #[serde(default)]
    pub expected_tool_calls: Vec<ExpectedToolCall>,
}

/// The agent that scenarios are for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioAgent {
    /// Identifier of the agent.
    #[serde(default)]
    pub id: Option<IdString>,
    /// Name of the agent.
    pub name: String,
    /// Prompt text of the agent.
    #[serde(default)]
    pub agent_description: Option<String>,
    /// Prompt text of the agent, used when `agent_description` is absent.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// Goals of the agent, one an entry.
    #[serde(default)]
    pub goals: Vec<String>,
    /// VOICE, TEXT or EMAIL.
    #[serde(default)]
    pub mode: Option<String>,
    /// Direction of its calls: INBOUND or OUTBOUND.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
}

/// Scenarios of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestScenarioRequest {
    /// Category of these scenarios.
    pub category: String,
    /// Number of scenarios to make.
    #[schemars(range(min = 0))]
    pub count: i64,
    /// Goal of these scenarios.
    #[serde(default)]
    pub goal: Option<String>,
    /// Further instructions for these scenarios.
    #[serde(default)]
    pub instructions: Option<String>,
}

/// A tool that the agent should call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolWanted {
    /// Name of the tool.
    pub name: String,
    /// Output that the tool should give.
    #[serde(default)]
    pub output: Option<String>,
}

/// Scenarios to make from a free text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomPrompt {
    /// Description of the scenarios, free text.
    pub prompt: String,
    /// Number of scenarios to make.
    #[schemars(range(min = 0))]
    pub count: i64,
}

fn yes() -> bool {
    true
}

/// A scenario to make from a transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptWanted {
    /// Transcript as lines of text.
    pub transcript: String,
    /// Criteria of success; made from the transcript when absent.
    #[serde(default)]
    pub success_criteria: Option<String>,
    /// True: the customer's own words are kept.
    #[serde(default = "yes")]
    pub use_specific_utterances: bool,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CsvRow {
    /// Goal of the caller.
    pub intent: String,
    /// Criteria by which the conversation counts as passed.
    pub success_criteria: String,
    /// Number of scenarios to make.
    #[schemars(range(min = 0))]
    pub count: i64,
}

/// Number of scenarios to make of each kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallAllocation {
    /// Number of scenarios by goal.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, f64>")]
    pub goal_adherence: Object,
    /// Number of scenarios by rule of the agent's prompt.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, f64>")]
    pub system_integrity: Object,
    /// Number of scenarios by persona.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, f64>")]
    pub customer_personas: Object,
    /// Number of scenarios by workflow.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, f64>")]
    pub workflow_adherence: Object,
    /// Number of scenarios by workflow.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, f64>")]
    pub workflow_adherence_v2: Object,
    /// Tools; one scenario is made for each.
    #[serde(default)]
    pub expected_tool_calls: Vec<ToolWanted>,
    /// Scenarios to make from a free text.
    #[serde(default)]
    pub custom_prompt: Option<CustomPrompt>,
    /// Transcripts; one scenario is made for each.
    #[serde(default)]
    pub transcript_generation: Vec<TranscriptWanted>,
    /// Rows of a table; scenarios are made for each.
    #[serde(default)]
    pub csv_call_allocation: Vec<CsvRow>,
}

words! {
    /// Type of a trait's value, in lower case.
    LowerType { Boolean = "boolean", String = "string", Date = "date", Number = "number" }
}

impl LowerType {
    /// Returns the same type in upper case.
    pub fn kind(self) -> TraitType {
        match self {
            LowerType::Boolean => TraitType::Boolean,
            LowerType::String => TraitType::String,
            LowerType::Date => TraitType::Date,
            LowerType::Number => TraitType::Number,
        }
    }
}

/// A trait of which every scenario has a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraitWanted {
    /// Name of the trait.
    pub name: String,
    /// Type of its values.
    pub data_type: LowerType,
}

/// Request for new scenarios.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScenariosAsked {
    /// Common name of the scenarios.
    pub name: String,
    /// The agent that they are for.
    pub agent: ScenarioAgent,
    /// Version of the agent whose prompt is used, needs `agent.id`; null: the prompt in `agent`.
    #[serde(default)]
    pub prompt_id: Option<String>,
    /// Deprecated, accepted and ignored.
    #[serde(default)]
    pub knowledge_base_id: Option<String>,
    /// Scenarios to make, by category.
    pub scenarios: Vec<TestScenarioRequest>,
    /// Further scenarios to make, by kind.
    pub call_allocation: CallAllocation,
    /// Properties that the callers should have, by kind.
    pub selected_properties: Object,
    /// Traits of which every scenario has a value.
    #[serde(default)]
    pub customer_traits: Option<Vec<TraitWanted>>,
    /// Further scenarios to make, by stored persona.
    #[serde(default, rename = "customer_persona_ids")]
    pub customer_persona_ids: Option<Vec<PersonaById>>,
}

/// Request for scenarios with another goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MoveAsked {
    /// The agent that they are for.
    pub agent: ScenarioAgent,
    /// Version of the agent whose prompt is used, needs `agent.id`; null: the prompt in `agent`.
    #[serde(default)]
    pub prompt_id: Option<String>,
    /// Deprecated, accepted and ignored.
    #[serde(default)]
    pub knowledge_base_id: Option<String>,
    /// Scenarios to change, at least one.
    pub scenarios: Vec<TestScenario>,
    /// New goal of all these scenarios.
    pub new_goal: String,
}

/// Request for scenarios changed by instructions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegenAsked {
    /// The agent that they are for.
    pub agent: ScenarioAgent,
    /// Version of the agent whose prompt is used, needs `agent.id`; null: the prompt in `agent`.
    #[serde(default)]
    pub prompt_id: Option<String>,
    /// Deprecated, accepted and ignored.
    #[serde(default)]
    pub knowledge_base_id: Option<String>,
    /// Scenarios to change, at least one.
    pub scenarios: Vec<TestScenario>,
    /// Instructions on the change.
    pub instructions: String,
    /// Persona of the callers; null: unchanged.
    #[serde(default)]
    pub persona: Option<CustomerPersona>,
}

/// Answer with generated scenarios.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScenariosMade {
    /// Scenarios that were made or changed.
    pub scenarios: Vec<TestScenario>,
    /// Always `200`; kept for compatibility.
    pub status: String,
    /// Always true; kept for compatibility.
    pub success: bool,
    /// Parts of the request that were not fulfilled, in words; null: none.
    pub warning: Option<String>,
}

fn five() -> i64 {
    5
}

/// Request for new personas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PersonasAsked {
    /// Agent whose customers they are.
    pub agent_id: IdString,
    /// Version of the agent's text; null: production.
    #[serde(default)]
    pub agent_version_id: Option<Uuid>,
    /// Deprecated twin of agent_version_id.
    #[serde(default)]
    #[schemars(extend("deprecated" = true))]
    pub prompt_id: Option<Uuid>,
    /// Number of personas to make, 1 to 50; default 5.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 50))]
    pub count: i64,
    /// Further instructions for the personas.
    #[serde(default)]
    pub custom_prompt: Option<String>,
}

/// A persona that is not stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PersonaDraft {
    /// Name of the persona.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Description of the customer.
    #[schemars(length(min = 1))]
    pub description: String,
    /// Goal that the customer pursues.
    #[schemars(length(min = 1))]
    pub goal: String,
}

/// Personas that are not stored.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PersonasMade {
    /// Generated personas, not stored.
    pub personas: Vec<PersonaDraft>,
    /// Always `200`; kept for compatibility.
    pub status: String,
}

/// A trait for which values are invented.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraitNamed {
    /// Name of the trait.
    pub name: String,
    /// Type of its values.
    pub data_type: TraitType,
}

/// Request for values of traits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValuesAsked {
    /// Descriptions of the scenarios, one an entry.
    pub scenarios: Vec<String>,
    /// Traits of which each scenario gets values.
    pub traits: Vec<TraitNamed>,
    /// Prompt text of the agent.
    #[serde(default)]
    pub agent_prompt: Option<String>,
}

/// A value of a trait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraitValue {
    /// Name of the trait.
    pub name: String,
    /// Value that was invented.
    pub value: Value,
}

/// Request for the graph of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GraphAsked {
    /// Description of the conversation, 1 to 12000 characters.
    #[schemars(length(min = 1, max = 12000))]
    pub prompt: String,
    /// Further context, at most 8000 characters.
    #[serde(default)]
    #[schemars(length(max = 8000))]
    pub context: Option<String>,
}
