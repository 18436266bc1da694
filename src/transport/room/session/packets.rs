//! Packets of the room: which ones are the agent's, and those that come before the call is up.

use std::sync::atomic::Ordering;

use ringer_media::time::Time;

use super::{PACKETS, RoomCall, now};
use crate::room::signal::Flow;
use crate::webrtc::{Arrived, Track, Voices};

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

    /// Hands a packet of the server to the pump: those of the agent's tracks, and reports. Returns true if it was
    /// handed on.
    pub(super) fn relay(&mut self, packet: Arrived, is_publisher: bool) -> bool {
        let source = |at: usize| packet.bytes.get(at..at + 4).and_then(|four| four.first_chunk::<4>());
        let is_agents = |at: usize| source(at).is_some_and(|four| self.tracks.has(u32::from_be_bytes(*four)));
        let is_wanted = match packet.is_report {
            true => is_agents(4) || is_publisher || self.flow == Flow::Joint,
            false => is_agents(8),
        };
        if !is_wanted {
            return false;
        }
        let is_taken = self.packets.try_send(packet).is_ok();
        self.lost_packets += u64::from(!is_taken);
        is_taken
    }

    /// Takes the tracks that are heard from now on.
    pub(super) fn hear(&mut self, tracks: Vec<Track>) {
        self.tracks.set(tracks);
        self.hearing.set(Box::new(Voices::new(&self.tracks, self.heard_at.clone(), &self.settings.opus)));
    }

    /// Returns the arrival of the agent's newest packet.
    pub(super) fn heard_at(&self) -> Option<Time> {
        Some(Time(self.heard_at.load(Ordering::Relaxed))).filter(|at| at.0 > 0)
    }
}
