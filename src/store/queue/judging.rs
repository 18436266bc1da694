//! Jobs that may ask a language model. They are done by organization in turn.

use ringer_model::issue::SourceKind;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Job;

/// Job: measure and judge a conversation that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluateJob {
    /// Organization that owns the result.
    pub organization: String,
    /// Identifier of the result.
    pub result_id: i64,
    /// Number that tells evaluations of one result apart: the attempt, or the time at which a new one was asked for.
    pub serial: i64,
}

impl Job for EvaluateJob {
    const NAME: &'static str = "evaluate";
    const NEEDS_FILES: bool = true;

    fn key(&self) -> String {
        format!("evaluate:{}:{}", self.result_id, self.serial)
    }

    fn organization(&self) -> &str {
        &self.organization
    }
}

/// Job: process a conversation that is finished and evaluated, for issues, monitors and alerts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedJob {
    /// Organization that owns the conversation.
    pub organization: String,
    /// Kind of the conversation.
    pub source: SourceKind,
    /// Identifier of the result or call log.
    pub source_id: String,
    /// Number that tells evaluations of one conversation apart.
    pub serial: i64,
}

impl Job for FinishedJob {
    const NAME: &'static str = "finished";

    fn key(&self) -> String {
        format!("finished:{}:{}:{}", self.source.as_str(), self.source_id, self.serial)
    }

    fn organization(&self) -> &str {
        &self.organization
    }
}

/// Job: evaluate a call log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallLogJob {
    /// Organization that owns the call log.
    pub organization: String,
    /// Identifier of the call log.
    pub call_id: Uuid,
    /// Number that tells evaluations of one call apart.
    pub serial: i64,
}

impl Job for CallLogJob {
    const NAME: &'static str = "call_log";
    const NEEDS_FILES: bool = true;

    fn key(&self) -> String {
        format!("call_log:{}:{}", self.call_id, self.serial)
    }

    fn organization(&self) -> &str {
        &self.organization
    }
}

/// Job: grade the text messages that followed a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowUpJob {
    /// Organization that owns the result.
    pub organization: String,
    /// Identifier of the result.
    pub result_id: i64,
    /// Number of messages: another message makes another job.
    pub serial: i64,
}

impl Job for FollowUpJob {
    const NAME: &'static str = "follow_up";

    fn key(&self) -> String {
        format!("follow_up:{}:{}", self.result_id, self.serial)
    }

    fn organization(&self) -> &str {
        &self.organization
    }
}

/// Job: have a language model summarize a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryJob {
    /// Organization that owns the run.
    pub organization: String,
    /// Identifier of the run.
    pub run_id: i64,
    /// Identifier that tells completions of one run apart.
    pub serial: Uuid,
}

impl Job for SummaryJob {
    const NAME: &'static str = "summary";

    fn key(&self) -> String {
        format!("summary:{}:{}", self.run_id, self.serial)
    }

    fn organization(&self) -> &str {
        &self.organization
    }
}

/// Job: judge labelled conversations again for the report card of a judge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeCardJob {
    /// Organization that owns the card.
    pub organization: String,
    /// Identifier of the card.
    pub card_id: Uuid,
}

impl Job for JudgeCardJob {
    const NAME: &'static str = "judge_card";

    fn key(&self) -> String {
        format!("judge_card:{}", self.card_id)
    }

    fn organization(&self) -> &str {
        &self.organization
    }
}
