//! Registry of the conversations that run in this process: the control of each, and its events.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};
use ringer_engine::CallControl;
use ringer_media::call::EndReason;
use ringer_store::events::Feeds;
use tokio::sync::watch;

/// The conversations that this process holds, by result.
#[derive(Default)]
pub(crate) struct Held {
    calls: Mutex<HashMap<i64, CallControl>>,
    /// Events of results that somebody makes or watches.
    pub(crate) feeds: Feeds,
    changes: watch::Sender<u64>,
}

impl Held {
    pub(crate) fn begin(&self, result_id: i64, control: CallControl) {
        self.calls().insert(result_id, control);
    }

    pub(crate) fn end(&self, result_id: i64) {
        self.calls().remove(&result_id);
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.calls().is_empty()
    }

    pub(crate) fn has(&self, result_id: i64) -> bool {
        self.calls().contains_key(&result_id)
    }

    /// Returns the results whose conversations are held.
    pub(crate) fn results(&self) -> Vec<i64> {
        self.calls().keys().copied().collect()
    }

    /// Asks a conversation to end; false: it is not held.
    pub(crate) fn hang_up(&self, result_id: i64, reason: EndReason) -> bool {
        match self.calls().get(&result_id) {
            Some(control) => {
                control.hangup(reason);
                true
            }
            None => false,
        }
    }

    /// Wakes those who watch a result, and those who watch all.
    pub(crate) fn touch(&self, result_id: i64) {
        self.feeds.touch(result_id);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Returns a watch that changes whenever the state of a result does.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<i64, CallControl>> {
        self.calls.lock()
    }
}
