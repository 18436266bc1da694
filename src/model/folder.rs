//! Folders that agents lie in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::time::Timestamp;

/// The writable fields of a folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FolderSpec {
    /// 1 to 255 characters, unique in the organization.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
}

/// A folder as read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FolderRecord {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Owner.
    pub organization_id: String,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Moves an agent; a null folder takes it out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MoveAgent {
    /// Which agent.
    pub agent_id: i64,
    /// Where to.
    #[serde(default)]
    pub folder_id: Option<Uuid>,
}
