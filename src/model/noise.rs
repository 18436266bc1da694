//! Background noises that users uploaded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::time::Timestamp;

/// A noise as stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NoiseDoc {
    /// Its name.
    pub name: String,
}

/// A name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseName {
    /// The name.
    pub name: String,
}

/// A noise as read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NoiseRecord {
    /// Its id, which Digital Humans name.
    pub id: Uuid,
    /// Owner.
    pub organization_id: String,
    /// Its name.
    pub name: String,
    /// Its file in the data folder.
    pub storage_path: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub created_by: Option<Uuid>,
    /// Digital Humans that use it.
    pub usage_count: i64,
}
