//! What is known about an agent's customers: personas, traits, and communities of Digital Humans.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::digital_human::TraitType;
use super::time::Timestamp;

/// A kind of customer. What is stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PersonaDoc {
    /// Its name.
    pub name: String,
    /// Who the customer is.
    pub description: String,
    /// What the customer wants.
    pub goal: String,
    /// Whose customer.
    #[serde(default)]
    pub agent_id: Option<i64>,
}

/// What of a persona can be changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PersonaChange {
    /// Its name.
    pub name: String,
    /// Who the customer is.
    pub description: String,
    /// What the customer wants.
    pub goal: String,
}

/// A persona as read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PersonaRecord {
    /// Its id.
    pub id: Uuid,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its name.
    pub name: String,
    /// Who the customer is.
    pub description: String,
    /// What the customer wants.
    pub goal: String,
    /// Owner.
    pub org_id: String,
}

/// A fact that the customers of an agent have. What is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraitDoc {
    /// Whose customers.
    pub agent_id: i64,
    /// Its name, unique for the agent.
    pub name: String,
    /// Type of its values.
    pub data_type: TraitType,
    /// Value where none is generated.
    #[serde(default)]
    pub default_value: Value,
}

impl Default for TraitDoc {
    fn default() -> Self {
        TraitDoc { agent_id: 0, name: String::new(), data_type: TraitType::String, default_value: Value::Null }
    }
}

/// A trait as read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TraitRecord {
    /// Its id.
    pub id: Uuid,
    /// Whose customers.
    pub agent_id: i64,
    /// Its name.
    pub name: String,
    /// Type of its values.
    pub data_type: TraitType,
    /// Value where none is generated.
    pub default_value: Value,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Digital Humans that belong together. What is stored; its members are links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommunityDoc {
    /// Its title.
    pub title: String,
    /// Free text.
    pub description: Option<String>,
}

/// A new community.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommunitySpec {
    /// Its title.
    pub title: String,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Its members.
    #[serde(default)]
    pub digital_human_ids: Vec<i64>,
}

/// A community as read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CommunityRecord {
    /// Its id.
    pub id: Uuid,
    /// Its title.
    pub title: String,
    /// Free text.
    pub description: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its members, in the order in which they were added.
    pub digital_human_ids: Vec<i64>,
}
