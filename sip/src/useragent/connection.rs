//! Connections that a call is signalled by: which one its dialogs use, and what becomes of it when that is closed.

use super::{Call, CallEnd, CallEvent, CallKey, EndKind, Side, Stage, reason};
use crate::endpoint::{Endpoint, TransactionKey};
use crate::hop::{ConnectionId, Hop, Transport};
use crate::message::Response;
use crate::time::Time;

impl Endpoint {
    /// A response came by a connection: the call, and the dialog of the response, use it from now on.
    pub(crate) fn answered_over(&mut self, key: CallKey, tx: &TransactionKey, response: &Response, from: &Hop) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        if let Side::Caller(caller) = &mut call.side
            && caller.transaction == *tx
        {
            caller.to.follow(from);
        }
        let Ok(to) = response.headers.to() else { return };
        for fork in call.dialogs.iter_mut().filter(|fork| fork.dialog.remote_tag == to.tag()) {
            fork.dialog.heard_from(from);
        }
    }

    /// The connection of a call is closed: an established call goes on and its owner is told, one that comes in ends. The INVITE
    /// of one that is placed fails, or tries its next place, by itself.
    pub(crate) fn call_cut_off(&mut self, now: Time, key: CallKey) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        let end = CallEnd::new(EndKind::NotReachable, "Connection lost");
        match (call.stage, &call.side) {
            (Stage::Up, Side::Answerer(_)) if !call.confirmed => {
                // The caller may still have heard the answer: BYE follows its ACK, or the want of one.
                call.bye_after_ack = Some(reason(41, "Connection lost"));
                self.end(now, key, CallEnd { q850_cause: Some(41), ..end });
            }
            (Stage::Up, _) => self.event(key, CallEvent::ConnectionLost),
            (Stage::Pending, Side::Answerer(_)) => {
                // By a new connection (RFC 3261 18.2.2).
                self.respond(now, key, 480, None, &[("Reason", reason(41, "Connection lost"))]);
                self.end(now, key, CallEnd { q850_cause: Some(41), ..end });
            }
            (Stage::Pending, Side::Caller(_)) | (Stage::Over, _) => {}
        }
    }
}

impl Call {
    /// True when `Ended` was reported.
    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Transport that the call is signalled by.
    pub(super) fn transport(&self) -> Transport {
        match &self.side {
            Side::Caller(caller) => caller.to.transport,
            Side::Answerer(_) => self.dialogs.first().map_or(Transport::Udp, |fork| fork.dialog.transport()),
        }
    }

    /// The connection is closed: nothing goes by it any more. True for a call whose dialog in use lived on it.
    pub(crate) fn forget(&mut self, connection: ConnectionId) -> bool {
        if let Side::Caller(caller) = &mut self.side {
            caller.to.forget(connection);
        }
        if let Some(waiting) = &mut self.unacknowledged {
            waiting.repeated.to.forget(connection);
        }
        self.ringing.forget(connection);
        let active = self.active.unwrap_or(0);
        let mut lived = false;
        for (at, fork) in self.dialogs.iter_mut().enumerate() {
            lived |= fork.forget(connection) && at == active;
        }
        lived
    }
}
