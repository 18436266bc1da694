//! The reason why a call or a text conversation cannot begin.

use ringer_model::error_code::ErrorCode;

use crate::NotDone;

/// Reason why a call cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Error code of the result.
    pub code: ErrorCode,
    /// Explanation in words, for display.
    pub message: String,
}

impl From<Obstacle> for NotDone<Obstacle> {
    fn from(obstacle: Obstacle) -> NotDone<Obstacle> {
        NotDone::Reason(obstacle)
    }
}

impl Obstacle {
    /// Returns an obstacle with a code and its explanation.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Obstacle {
        Obstacle { code, message: message.into() }
    }
}
