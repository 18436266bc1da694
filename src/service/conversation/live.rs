//! The calls that run in this process: how to end them, and where their events can be watched.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use ringer_base::tasks::Tasks;
use ringer_bus::Channel;
use ringer_engine::{CallControl, TextSender};
use ringer_media::call::EndReason;
use ringer_provider::Synthesizer;
use ringer_store::Store;
use ringer_store::events::Feed;
use tokio::sync::{Semaphore, watch};

use super::held::Held;
use super::relay::Relay;
use crate::LiveCalls;

/// The running calls by result.
#[derive(Default)]
pub struct Running {
    held: Arc<Held>,
    relay: OnceLock<Arc<Relay>>,
    engine: OnceLock<(SocketAddr, Arc<Semaphore>)>,
    texts: OnceLock<TextSender>,
    synthesizer: OnceLock<Arc<dyn Synthesizer>>,
}

impl Running {
    /// Notes that calls come in at this address from now on, and that `permits` has the places of all calls.
    pub fn serve(&self, address: SocketAddr, permits: Arc<Semaphore>) {
        self.engine.get_or_init(|| (address, permits));
    }

    /// Talks to the other engines of the database from now on, until `tasks` end.
    pub fn talk_by(&self, channel: Channel, store: &Store, tasks: &Tasks) {
        self.relay.get_or_init(|| Relay::start(channel, store.clone(), self.held.clone(), tasks.clone()));
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
        self.held.begin(result_id, control);
    }

    /// Notes that the call of a result is over.
    pub fn end(&self, result_id: i64) {
        self.held.end(result_id);
    }

    /// Returns the results whose calls run.
    pub fn results(&self) -> Vec<i64> {
        self.held.results()
    }

    /// True if no call is running.
    pub fn is_idle(&self) -> bool {
        self.held.is_idle()
    }

    /// Wakes those who wait for changes of a result that another process has stored.
    pub fn note_change_of_another(&self, result_id: i64) {
        self.held.touch(result_id);
    }
}

impl LiveCalls for Running {
    fn hangup(&self, result_id: i64, reason: EndReason) -> bool {
        self.held.hang_up(result_id, reason)
    }

    fn holds(&self, result_id: i64) -> bool {
        self.held.has(result_id)
    }

    fn feed(&self, result_id: i64) -> Option<Arc<Feed>> {
        Some(self.held.feeds.of(result_id))
    }

    fn note_change(&self, result_id: i64) {
        self.held.touch(result_id);
        if let Some(relay) = self.relay.get() {
            relay.note_change(result_id);
        }
    }

    fn any_change(&self) -> Option<watch::Receiver<u64>> {
        Some(self.held.changes())
    }

    fn relay(&self) -> Option<Arc<Relay>> {
        self.relay.get().cloned()
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
