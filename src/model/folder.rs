//! Folders that group agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::time::Timestamp;

/// The writable fields of a folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FolderSpec {
    /// Name of the folder, 1 to 255 characters, unique in the organization.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
}

/// A folder, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FolderRecord {
    /// Identifier of the folder.
    pub id: Uuid,
    /// Name of the folder, unique in the organization.
    pub name: String,
    /// Organization that owns the folder.
    pub organization_id: String,
    /// Time of its creation.
    pub created_at: Timestamp,
}

/// Moves an agent; a null folder takes it out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MoveAgent {
    /// Agent that is to be moved.
    pub agent_id: i64,
    /// Folder to move it to; null: out of its folder.
    #[serde(default)]
    pub folder_id: Option<Uuid>,
}
