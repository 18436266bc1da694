//! Orders to the session of a port that no Call gives: of an agent whose script tells what it does.

use ringer_media::time::Time;

use super::{SessionControl, State, WebSocketPort};

impl WebSocketPort {
    /// Carries out an order while the socket is open, in the words of the dialect: a mark or a clear, for example.
    pub fn order_session(&mut self, now: Time, order: SessionControl) {
        if matches!(self.state, State::Opening | State::Open) {
            self.now = now;
            self.session.control(now, order);
            self.drain();
        }
    }
}
