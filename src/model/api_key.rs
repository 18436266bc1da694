//! API keys. The text of a key is shown once, when it is made; what is kept is its SHA-256.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::secret::masked_debug;
use super::time::Timestamp;

words! {
    /// What a key may do; each scope includes the ones before it.
    Scope { Read = "read", Write = "write", Admin = "admin" } default Read
}

impl Scope {
    /// True when a key of this scope may do what needs `wanted`.
    pub fn covers(self, wanted: Scope) -> bool {
        self as u8 >= wanted as u8
    }
}

/// Asks for a key. `scope` is checked by the service, so that its text is a plain sentence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CreateKeyIn {
    /// read, write or admin.
    pub scope: String,
    /// Free text.
    #[serde(default)]
    pub name: Option<String>,
}

/// A key as read.
#[derive(Clone, PartialEq, Serialize, JsonSchema)]
pub struct KeyOut {
    /// Its id.
    pub id: Uuid,
    /// Plain in the answer to its creation, else the first 8 characters, of a short one the first third, and `...`.
    pub api_key: String,
    /// read, write or admin.
    pub scope: Scope,
    /// Free text.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// True when it is no longer accepted.
    pub revoked: bool,
}

masked_debug!(KeyOut);
