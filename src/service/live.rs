//! The calls that run in this process: how to end them, and where their events can be watched.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringer_media::call::EndReason;

use super::LiveCalls;
use crate::engine::CallControl;
use crate::events::{Feed, Feeds};

/// The running calls by result.
#[derive(Default)]
pub struct Running {
    calls: Mutex<HashMap<i64, CallControl>>,
    feeds: Feeds,
}

impl Running {
    /// A call has been placed for a result.
    pub fn begin(&self, result_id: i64, control: CallControl) {
        self.calls().insert(result_id, control);
    }

    /// The call of a result is over.
    pub fn end(&self, result_id: i64) {
        self.calls().remove(&result_id);
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<i64, CallControl>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveCalls for Running {
    fn hangup(&self, result_id: i64, reason: EndReason) -> bool {
        match self.calls().get(&result_id) {
            Some(control) => {
                control.hangup(reason);
                true
            }
            None => false,
        }
    }

    fn feed(&self, result_id: i64) -> Option<Arc<Feed>> {
        Some(self.feeds.of(result_id))
    }

    fn changed(&self, result_id: i64) {
        self.feeds.touch(result_id);
    }
}
