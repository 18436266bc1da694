//! Knowledge about an agent's customers: personas, traits, and communities of Digital Humans.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::digital_human::TraitType;
use super::time::Timestamp;

/// A kind of customer as stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PersonaDoc {
    /// Name of the persona.
    pub name: String,
    /// Description of the customer.
    pub description: String,
    /// Goal that the customer pursues.
    pub goal: String,
    /// Agent whose customer this is; null: any.
    #[serde(default)]
    pub agent_id: Option<i64>,
}

/// Callers of a stored persona.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PersonaById {
    /// Id of the customer persona.
    pub id: Uuid,
    /// Number of callers to make.
    #[schemars(range(min = 1))]
    pub num_calls: i64,
}

/// The fields of a persona that can be changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PersonaChange {
    /// Name of the persona.
    pub name: String,
    /// Description of the customer.
    pub description: String,
    /// Goal that the customer pursues.
    pub goal: String,
}

/// A persona, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PersonaRecord {
    /// Identifier of the persona.
    pub id: Uuid,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Name of the persona.
    pub name: String,
    /// Description of the customer.
    pub description: String,
    /// Goal that the customer pursues.
    pub goal: String,
    /// Organization that owns the persona.
    pub org_id: String,
}

/// A trait, a fact about an agent's customers, as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraitDoc {
    /// Agent whose customers have the trait.
    pub agent_id: i64,
    /// Name of the trait, unique for the agent.
    pub name: String,
    /// Type of its values.
    pub data_type: TraitType,
    /// Value used when none is generated.
    #[serde(default)]
    pub default_value: Value,
}

impl Default for TraitDoc {
    fn default() -> Self {
        TraitDoc { agent_id: 0, name: String::new(), data_type: TraitType::String, default_value: Value::Null }
    }
}

/// A trait, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TraitRecord {
    /// Identifier of the trait.
    pub id: Uuid,
    /// Agent whose customers have the trait.
    pub agent_id: i64,
    /// Name of the trait, unique for the agent.
    pub name: String,
    /// Type of its values.
    pub data_type: TraitType,
    /// Value used when none is generated.
    pub default_value: Value,
    /// Time of its creation.
    pub created_at: Timestamp,
}

/// A group of Digital Humans as stored; its members are kept as links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommunityDoc {
    /// Title of the community.
    pub title: String,
    /// Free text for the reader.
    pub description: Option<String>,
}

/// The fields of a new community.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommunitySpec {
    /// Title of the community.
    pub title: String,
    /// Free text for the reader.
    #[serde(default)]
    pub description: Option<String>,
    /// Digital Humans to add at once; default none.
    #[serde(default)]
    pub digital_human_ids: Vec<i64>,
}

/// A community, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CommunityRecord {
    /// Identifier of the community.
    pub id: Uuid,
    /// Title of the community.
    pub title: String,
    /// Free text for the reader.
    pub description: Option<String>,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Digital Humans that belong to it, in the order in which they were added.
    pub digital_human_ids: Vec<i64>,
}
