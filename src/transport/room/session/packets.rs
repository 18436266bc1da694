//! Packets of the room: which ones are the agent's, and those that come before the call is up.

use super::{PACKETS, RoomCall, now};
use crate::room::signal::Flow;
use crate::webrtc::Arrived;

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

    /// Hands a packet of the server to the pump: those of the agent's tracks, and reports. Returns true if the packet,
    /// or others that waited for it, were handed on.
    pub(super) fn relay(&mut self, packet: Arrived, is_publisher: bool) -> bool {
        let source = |at: usize| packet.bytes.get(at..at + 4).and_then(|four| four.first_chunk::<4>());
        let is_agents = |at: usize| source(at).is_some_and(|four| self.voices.has(u32::from_be_bytes(*four)));
        let relayed = match packet.is_report {
            true => {
                let (is_agents, mut report) = (is_agents(4), packet);
                let is_on_own = is_publisher && self.flow == Flow::Split;
                let is_wanted = is_agents || is_on_own || self.flow == Flow::Joint;
                if is_wanted && self.voices.take_report(&mut report) { vec![report] } else { Vec::new() }
            }
            false if is_agents(8) => {
                self.heard_at = Some(packet.at);
                self.voices.take(packet)
            }
            false => Vec::new(),
        };
        let mut is_handed_on = false;
        for packet in relayed {
            let is_taken = self.packets.try_send(packet).is_ok();
            self.lost_packets += u64::from(!is_taken);
            is_handed_on |= is_taken;
        }
        is_handed_on
    }
}
