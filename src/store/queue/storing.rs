//! Jobs of an object store: files that go to it, and files that leave it.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Job;

/// Job: store the files of a result, a production call or a noise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreJob {
    /// Organization that owns them.
    pub organization: String,
    /// Name of their owner, as in `results/12`.
    pub owner: String,
    /// Identifier that no other job has: files may change while they are stored.
    pub serial: Uuid,
}

impl Job for StoreJob {
    const NAME: &'static str = "store";
    const NEEDS_FILES: bool = true;

    fn key(&self) -> String {
        format!("store:{}:{}", self.owner, self.serial)
    }
}

/// Job: remove files of an owner from the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EraseJob {
    /// Name of their owner, as in `results/12`.
    pub owner: String,
    /// Paths of the files; empty: all of them.
    pub paths: Vec<String>,
    /// Time of the request, milliseconds since 1970; files that are stored later stay.
    pub asked_ms: i64,
    /// Identifier that no other job has.
    pub serial: Uuid,
}

impl Job for EraseJob {
    const NAME: &'static str = "erase";

    fn key(&self) -> String {
        format!("erase:{}:{}", self.owner, self.serial)
    }
}
