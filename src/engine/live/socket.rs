//! Calls over WebSockets: those that are opened, and those that came in.

use ringer_media::frame::RATE_HZ;
use ringer_media::leg::PcmParams;
use ringer_media::rings::frame_rings;

use super::{CallChannel, Engine};
use crate::engine::placement::WebSocketDial;
use crate::engine::socket::SocketSide;
use crate::engine::{Answering, CallHandle, Destination, PlaceError, Placement, timed};
use crate::provider::guard::Guard;
use crate::transport::path::MediaPath;
use crate::transport::port::Port;
use crate::transport::websocket::listen::IncomingSocket;
use crate::transport::websocket::port::WebSocketPort;

impl Engine {
    /// Opens a WebSocket; what happens then comes by the handle.
    pub(super) fn place_socket(&self, dial: &WebSocketDial, placement: Placement) -> Result<CallHandle, PlaceError> {
        let room = self.services.permit()?;
        let no = self.next_no();
        let facts = dial.facts(placement.spec.seed, SocketSide::now(), self.services.clock.now_ms());
        let port = WebSocketPort::caller(dial.dialect(), facts, dial.settings.rules.clone());
        let (task, handle) = self.start_call(no, self.socket_channel(dial, port), placement, room);
        timed::spawn(&self.services.tasks, "call", task.dial_socket());
        Ok(handle)
    }

    /// Takes the call of a WebSocket that the other side has opened.
    pub(super) fn answer_socket(&self, socket: IncomingSocket, placement: Placement) -> Result<CallHandle, PlaceError> {
        let Destination::Incoming(Answering { websocket: Some(dial), .. }) = &placement.destination else {
            return Err(PlaceError::BadTarget("this call is waited for over SIP".to_owned()));
        };
        let dial = dial.clone();
        let room = self.services.permit()?;
        let no = self.next_no();
        let facts = dial.facts(placement.spec.seed, SocketSide::now(), self.services.clock.now_ms());
        let port = WebSocketPort::incoming(socket.role, dial.dialect(), facts);
        let (task, handle) = self.start_call(no, self.socket_channel(&dial, port), placement, room);
        timed::spawn(&self.services.tasks, "call", task.answer_socket(socket));
        Ok(handle)
    }
}

impl Engine {
    /// Returns the channel of a call over a WebSocket, without a connection.
    fn socket_channel(&self, dial: &WebSocketDial, port: WebSocketPort) -> CallChannel {
        let (rings, peer) = frame_rings(PcmParams { rate_hz: RATE_HZ, heard_rate_hz: RATE_HZ });
        let guard = dial.guard.clone().unwrap_or_else(|| Guard::by(|_| true));
        CallChannel {
            media: MediaPath::Rings(rings),
            media_port: 0,
            port: Port::WebSocket(Box::new(port)),
            is_secure: false,
            socket: Some(Box::new(SocketSide::new(self.inner.dialer.clone(), guard, dial.settings.clone(), peer))),
            pipeline: None,
            room: None,
        }
    }
}
