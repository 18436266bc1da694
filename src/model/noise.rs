//! Background noises that users uploaded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::time::Timestamp;

/// A noise as stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NoiseDoc {
    /// Name of the noise.
    pub name: String,
}

/// The fields of a noise that can be changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseName {
    /// New name of the noise.
    pub name: String,
}

/// A noise, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NoiseRecord {
    /// Identifier of the noise, by which Digital Humans name it.
    pub id: Uuid,
    /// Organization that owns the noise.
    pub organization_id: String,
    /// Name of the noise.
    pub name: String,
    /// Path of its file in the data folder.
    pub storage_path: String,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// User who made it, else the API key; null: it is not known.
    pub created_by: Option<Uuid>,
    /// Number of Digital Humans that use it.
    pub usage_count: i64,
}
