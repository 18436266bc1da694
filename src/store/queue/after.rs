//! The job between the end of a call and its judgement, where its platform has a report.

use serde::{Deserialize, Serialize};

use super::Job;

/// Job: request the report of a platform on a call that is over, before it is judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfterJob {
    /// Organization that owns the result.
    pub organization: String,
    /// Identifier of the result.
    pub result_id: i64,
    /// Number of the attempt at it, from 1.
    pub attempt: i64,
    /// Number of the request within the attempt, from 1.
    pub request: i64,
}

impl Job for AfterJob {
    const NAME: &'static str = "after";
    const NEEDS_FILES: bool = true;

    fn key(&self) -> String {
        format!("after:{}:{}:{}", self.result_id, self.attempt, self.request)
    }
}
