//! Packets that come before the call is up.

use super::{PACKETS, RoomCall, now};
use crate::transport::webrtc::Arrived;

impl RoomCall {
    /// Keeps a packet until the call is up: by then it is known which ones are the agent's.
    pub(super) fn keep(&mut self, packet: Arrived) {
        if packet.is_report {
            return;
        }
        if self.early.len() == PACKETS {
            self.early.pop_front();
        }
        self.early.push_back(packet);
    }

    /// Hands the pump what the agent sent before the call was up. The call begins with it.
    pub(super) fn hear_early(&mut self) {
        self.heard_since = now();
        for packet in std::mem::take(&mut self.early) {
            let at = packet.at;
            if self.relay(packet, false) {
                self.heard_since = self.heard_since.min(at);
            }
        }
    }
}
