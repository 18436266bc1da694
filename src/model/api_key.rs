//! API keys. The text of a key is shown once, when it is made; stored is its SHA-256.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::schema::one_of;
use super::secret::masked_debug;
use super::time::Timestamp;

words! {
    /// Rights of a key; each scope includes the ones before it.
    Scope { Read = "read", Write = "write", Admin = "admin" } default Read
}

impl Scope {
    /// True if a key of this scope may do whatever needs `wanted`.
    pub fn covers(self, wanted: Scope) -> bool {
        self as u8 >= wanted as u8
    }
}

/// Asks for a key. `scope` is checked by the service, so that its text is a plain sentence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CreateKeyIn {
    /// Scope of the key: read, write or admin.
    #[schemars(extend("x-rules" = one_of(Scope::ALL.iter().map(|scope| scope.as_str()))))]
    pub scope: String,
    /// Free text for the reader; default empty.
    #[serde(default)]
    pub name: Option<String>,
    /// Name of the key's user, who is made when there is none; default: the user of the key that asks.
    #[serde(default)]
    pub user: Option<String>,
}

/// A key, as the API returns it.
#[derive(Clone, PartialEq, Serialize, JsonSchema)]
pub struct KeyOut {
    /// Identifier of the key, not secret.
    pub id: Uuid,
    /// The whole key in the answer to its creation, else its first 8 characters (of a short key a third) and `...`.
    pub api_key: String,
    /// Scope of the key: read, write or admin.
    pub scope: Scope,
    /// Free text for the reader.
    pub name: String,
    /// User of the key, shown as the author of what is made with it; null: the key itself is.
    pub user_id: Option<Uuid>,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// True: the key is no longer accepted.
    pub revoked: bool,
}

masked_debug!(KeyOut);

/// Request for a link that opens the page once, with a key of scope read.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct PageLinkIn {
    /// Hours after which neither the link nor its key is good, 1 to 168; default 24.
    #[serde(default = "a_day")]
    #[schemars(range(min = 1, max = 168))]
    pub hours: i64,
}

fn a_day() -> i64 {
    24
}

/// A link that opens the page once.
#[derive(Clone, PartialEq, Serialize, JsonSchema)]
pub struct PageLinkOut {
    /// Address that opens the page; shown only in this answer.
    pub address: String,
    /// Key of the link, which is listed and revoked like any other.
    pub key_id: Uuid,
    /// Time after which neither is good.
    pub until: Timestamp,
}

masked_debug!(PageLinkOut);

/// A possible author of changes: a user, or a key that has none.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UserRecord {
    /// Id as in `created_by`, `updated_by` and `last_edited_by`.
    pub id: Uuid,
    /// Name of the user, else of the key.
    pub name: String,
}
