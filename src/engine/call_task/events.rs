//! Events of a call on their way to the journal.

use std::time::Duration;

use ringer_media::call::{Event, EventKind, MOST_BEFORE};

use super::super::CallUpdate;
use super::super::socket::SocketSide;
use super::CallTask;
use crate::transport::port::Port;

impl CallTask {
    /// Takes an event of the call.
    pub(super) async fn event(&mut self, event: Event) {
        if matches!(event.what, EventKind::Connected { .. }) {
            let now = self.services.clock.now_ms();
            // Sample 0 is where media could come first.
            let before = self.up_since.map_or(Duration::ZERO, |since| SocketSide::now().since(since));
            let before = before.min(MOST_BEFORE).as_millis() as i64;
            let at = now - before;
            self.connected_at_ms = Some(at);
            self.ahead_ns = self.services.clock.ahead_ns();
            self.services.counters.connected(self.dialled_at_ms.map(|from| now - from));
            self.unsaid = Some(at);
            if self.keys.as_ref().is_none_or(|keys| !keys.are_missing()) {
                self.say_connected();
            }
        }
        if let Port::Pipeline(port) = &mut self.port {
            port.own_event(&event);
            self.drain_port().await;
        }
        if matches!(event.what, EventKind::Ended { .. }) {
            self.add_unfinished_tools(event.sample);
        }
        self.add(event);
    }

    /// Adds an event to the journal, and tells of it.
    pub(super) fn add(&mut self, event: Event) {
        if !self.files.signalled.take(&event) {
            return;
        }
        let entry = self.files.journal.add(event);
        let _ = self.news.try_send(CallUpdate::Event(entry));
    }
}
