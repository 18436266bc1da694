//! Errors of work that may be refused for a reason that its caller handles.

use ringer_base::error::{Error, Result};

/// Reason why work was not done: one of its own, or a fault of the engine.
#[derive(Debug)]
pub enum NotDone<R> {
    /// Fault of the store or of the machine, not of what was asked for.
    Fault(Error),
    /// Reason that is kept with the work.
    Reason(R),
}

impl<R> NotDone<R> {
    /// Returns the reason.
    ///
    /// # Errors
    /// The fault, where it is one.
    pub fn reason(self) -> Result<R> {
        match self {
            NotDone::Fault(fault) => Err(fault),
            NotDone::Reason(reason) => Ok(reason),
        }
    }
}

impl<R> From<Error> for NotDone<R> {
    fn from(fault: Error) -> NotDone<R> {
        NotDone::Fault(fault)
    }
}
