//! Verdict of the engine on a result: whose fault it was, with the reason.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::status::Outcome;

words! {
    /// Word of a verdict. `unreachable`: nothing answered at the agent's address, or the credentials were refused;
    /// nothing was tested. `unknown`: this side failed, or nothing could be evaluated.
    kept VerdictWord {
        Passed = "passed", Failed = "failed", Unreachable = "unreachable", Undecided = "unknown", Cancelled = "cancelled",
    } default Undecided
}

impl VerdictWord {
    /// Returns the word of a result that an earlier release has left with an outcome alone.
    pub fn of_outcome(outcome: Outcome) -> VerdictWord {
        match outcome {
            Outcome::Passed => VerdictWord::Passed,
            Outcome::Failed => VerdictWord::Failed,
            Outcome::Cancelled => VerdictWord::Cancelled,
            Outcome::NotEvaluated | Outcome::Unknown(_) => VerdictWord::Undecided,
        }
    }
}

/// Verdict on a result, with its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallVerdict {
    /// Word of the verdict.
    pub word: VerdictWord,
    /// Kind of reason: an error code, `credentials`, `expectation`, `goal`, `tool_calls`, `silent`, `kept_floor`,
    /// `custom_metrics`, `not_evaluated`, `rate_mismatch` or `cancelled`; null when it passed.
    pub code: Option<String>,
    /// Reason in words; null when it passed.
    pub reason: Option<String>,
    /// Milliseconds from connect at which the verdict was decided; null when no single moment decided it.
    pub at_ms: Option<i64>,
}

impl CallVerdict {
    /// Returns a verdict with a reason.
    pub fn of(word: VerdictWord, code: &str, reason: impl Into<String>) -> CallVerdict {
        CallVerdict { word, code: Some(code.to_owned()), reason: Some(reason.into()), at_ms: None }
    }

    /// Returns the verdict on a call that met what was expected.
    pub fn pass() -> CallVerdict {
        CallVerdict { word: VerdictWord::Passed, ..CallVerdict::default() }
    }
}
