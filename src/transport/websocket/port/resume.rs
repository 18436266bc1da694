//! A session that a limit of the platform ended, taken up again at another connection within the same call.

use std::time::Duration;

use ringer_media::call::RemoteKind;
use serde_json::json;

use super::{SocketOrder, State, WebSocketPort};
use crate::fault::AdapterFault;

impl WebSocketPort {
    /// Dials again for the session of a call that is up, where its platform ends it by a limit and has told how it goes
    /// on. Returns false where the connection's end is the call's.
    pub(super) fn resume(&mut self, code: Option<u16>) -> bool {
        let closes = code.zip(self.dialect.platform.as_ref()).is_some_and(|(code, rules)| rules.closes_by_limit(code));
        let is_limit = closes || self.adapter_fault == Some(AdapterFault::Limit);
        if self.state != State::Open || !self.dials || !is_limit || !self.session.resume(self.now) {
            return false;
        }
        (self.state, self.attempt, self.held) = (State::Dialling, 0, Some(Vec::new()));
        self.log.note("the session goes on at a new connection");
        self.order(SocketOrder::Dial { after: Duration::ZERO });
        self.write_log();
        true
    }

    /// Resumes the session at its new connection, with the orders that waited.
    pub(super) fn go_on(&mut self) {
        (self.state, self.adapter_fault) = (State::Open, None);
        self.tell_other("session_resumed", json!({}));
        for order in self.held.take().unwrap_or_default() {
            self.session.control(self.now, order);
        }
    }

    /// Ends the call whose session could not be taken up again.
    pub(super) fn give_up_resuming(&mut self, text: &str) {
        self.order(SocketOrder::Drop);
        (self.state, self.adapter_fault, self.held) = (State::Open, Some(AdapterFault::Limit), None);
        let why = format!("the platform ended its session by a limit of its own, and it could not be resumed: {text}");
        self.end(RemoteKind::Lost, None, why);
    }
}
