//! Calls to agents in media rooms.

use std::sync::Arc;

use ringer_media::packet_rings::packet_rings;

use super::{CallChannel, Engine};
use crate::engine::placement::RoomDial;
use crate::engine::room::{Joining, RoomSide, join};
use crate::engine::socket::SocketSide;
use crate::engine::{CallHandle, PlaceError, Placement, timed};
use crate::provider::guard::Guard;
use crate::transport::path::MediaPath;
use crate::transport::port::Port;
use crate::transport::room::port::RoomPort;
use crate::transport::webrtc::{Bell, Pump};

impl Engine {
    /// Joins a room; what happens then comes by the handle.
    pub(super) fn place_room(&self, terms: &RoomDial, placement: Placement) -> Result<CallHandle, PlaceError> {
        let place = self.services.permit()?;
        let no = self.next_no();
        let guard = terms.guard.clone().unwrap_or_else(|| Guard::by(|_| true));
        let joining = Joining {
            target: terms.target.clone(),
            settings: terms.peers.settings(guard, self.services.tasks.clone()),
            dialer: self.inner.dialer.clone(),
            patience: terms.patience,
        };
        let port = RoomPort::new(&terms.target.server_url, SocketSide::now(), self.services.clock.now_ms())
            .with_terms(terms.terms.clone());
        let (side, line) = RoomSide::new();
        let bell = Arc::<Bell>::default();
        let (rings, peer) = packet_rings(bell.waker());
        let channel = CallChannel {
            media: MediaPath::Packets(rings),
            media_port: 0,
            port: Port::Room(Box::new(port)),
            is_secure: false,
            socket: None,
            pipeline: None,
            room: Some(Box::new(side)),
        };
        let (task, handle) = self.start_call(no, channel, placement, place);
        timed::spawn(&self.services.tasks, "room", join(joining, Pump::new(peer, bell), line));
        self.services.tasks.spawn("call", task.join_room());
        Ok(handle)
    }
}
