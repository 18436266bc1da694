//! The calls that run in this process: how to end them, and where their events can be watched.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use ringer_engine::{CallControl, TextSender};
use ringer_media::call::EndReason;
use ringer_provider::Synthesizer;
use ringer_store::events::{Feed, Feeds};
use tokio::sync::{Semaphore, watch};

use crate::LiveCalls;

/// The running calls by result.
#[derive(Default)]
pub struct Running {
    calls: Mutex<HashMap<i64, CallControl>>,
    feeds: Feeds,
    changes: watch::Sender<u64>,
    engine: OnceLock<(SocketAddr, Arc<Semaphore>)>,
    texts: OnceLock<TextSender>,
    synthesizer: OnceLock<Arc<dyn Synthesizer>>,
}

impl Running {
    /// Notes that calls come in at this address from now on, and that `permits` has the places of all calls.
    pub fn serve(&self, address: SocketAddr, permits: Arc<Semaphore>) {
        self.engine.get_or_init(|| (address, permits));
    }

    /// Notes that text messages over SIP leave by this sender from now on.
    pub fn send_texts_by(&self, sender: TextSender) {
        self.texts.get_or_init(|| sender);
    }

    /// Notes that the calls of this process speak by this synthesizer from now on.
    pub fn speak_by(&self, synthesizer: Arc<dyn Synthesizer>) {
        self.synthesizer.get_or_init(|| synthesizer);
    }

    /// Notes that a call has been placed for a result.
    pub fn begin(&self, result_id: i64, control: CallControl) {
        self.calls().insert(result_id, control);
    }

    /// Notes that the call of a result is over.
    pub fn end(&self, result_id: i64) {
        self.calls().remove(&result_id);
    }

    /// Returns the results whose calls run.
    pub fn results(&self) -> Vec<i64> {
        self.calls().keys().copied().collect()
    }

    /// True if no call is running.
    pub fn is_idle(&self) -> bool {
        self.calls().is_empty()
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<i64, CallControl>> {
        self.calls.lock()
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

    fn holds(&self, result_id: i64) -> bool {
        self.calls().contains_key(&result_id)
    }

    fn feed(&self, result_id: i64) -> Option<Arc<Feed>> {
        Some(self.feeds.of(result_id))
    }

    fn note_change(&self, result_id: i64) {
        self.feeds.touch(result_id);
        self.changes.send_modify(|changes| *changes += 1);
    }

    fn any_change(&self) -> Option<watch::Receiver<u64>> {
        Some(self.changes.subscribe())
    }

    fn sip_address(&self) -> Option<SocketAddr> {
        self.engine.get().map(|(address, _)| *address)
    }

    fn text_sender(&self) -> Option<TextSender> {
        self.texts.get().cloned()
    }

    fn synthesizer(&self) -> Option<Arc<dyn Synthesizer>> {
        self.synthesizer.get().cloned()
    }

    fn is_full(&self) -> bool {
        self.engine.get().is_some_and(|(_, permits)| permits.available_permits() == 0)
    }
}
