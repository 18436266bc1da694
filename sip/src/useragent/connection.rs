//! Connections that carry the signalling of a call: the choice of one for its dialogs, and the loss of it.

use std::net::SocketAddr;

use super::reason;
use crate::call::{Call, CallEnd, CallEvent, CallStage, DialogSide, EndKind};
use crate::config::EndpointConfig;
use crate::endpoint::Endpoint;
use crate::hop::{ConnectionId, Hop};
use crate::ids::{CallKey, TransactionKey};
use crate::message::Response;
use crate::time::Time;

impl Endpoint {
    /// Uses the connection by which a response came from now on, for the call and the dialog of the response.
    pub(crate) fn answered_over(&mut self, key: CallKey, tx: &TransactionKey, response: &Response, from: &Hop) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        if let DialogSide::Caller(caller) = &mut call.side
            && caller.transaction == *tx
        {
            caller.to.follow(from);
        }
        let Ok(to) = response.headers.to() else { return };
        for fork in call.dialogs.iter_mut().filter(|fork| fork.dialog.remote_tag == to.tag()) {
            fork.dialog.heard_from(from);
        }
    }

    /// Handles the closed connection of a call. An established call goes on and its owner is told; one that comes in
    /// ends. The INVITE of a call that is being placed fails, or tries its next place, by itself.
    pub(crate) fn call_cut_off(&mut self, now: Time, key: CallKey) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        let end = CallEnd::new(EndKind::NotReachable, "Connection lost");
        match (call.stage, &call.side) {
            (CallStage::Up, DialogSide::Answerer(_)) if !call.confirmed => {
                // The caller may still have heard the answer: BYE follows its ACK, or the want of one.
                call.bye_after_ack = Some(reason(41, "Connection lost"));
                self.end(now, key, CallEnd { q850_cause: Some(41), ..end });
            }
            (CallStage::Up, _) => self.event(key, CallEvent::ConnectionLost),
            (CallStage::Pending, DialogSide::Answerer(_)) => {
                // By a new connection (RFC 3261 18.2.2).
                self.respond(now, key, 480, None, &[("Reason", reason(41, "Connection lost"))]);
                self.end(now, key, CallEnd { q850_cause: Some(41), ..end });
            }
            (CallStage::Pending, DialogSide::Caller(_)) | (CallStage::Over, _) => {}
        }
    }
}

impl Endpoint {
    /// Sets the addresses at which the hosts of some places see this side (RFC 3581). They are written to the Contact
    /// header field, so that requests by the way of a registration come back (RFC 5626 4.3).
    pub fn appear_as(&mut self, seen: Vec<(Hop, SocketAddr)>) {
        self.seen = seen;
    }

    /// Returns the place that a call is signalled with; `None` for a call that is forgotten.
    pub fn place_of(&self, call: CallKey) -> Option<&Hop> {
        self.calls.get(&call)?.place()
    }

    /// Sends a refusal of an incoming call only once for each time that the INVITE comes, whether it is acknowledged or
    /// not. Its sender may be another than it says (RFC 3261 8.2.7).
    pub fn answer_sparingly(&mut self, call: CallKey) {
        let Some(Call { side: DialogSide::Answerer(tx), .. }) = self.calls.get(&call) else { return };
        if let Some(server) = self.servers.get_mut(tx) {
            server.is_sparing = true;
        }
    }

    /// Returns the Contact of this side for a dialog with `place`.
    pub(super) fn contact_at(&self, user: &str, place: &Hop, secure: bool) -> String {
        let host = (place.transport, place.address.ip());
        let seen = self.seen.iter().find(|(hop, _)| (hop.transport, hop.address.ip()) == host);
        match seen {
            Some((_, address)) => EndpointConfig::contact_of(*address, user, place.transport, secure, ";ob"),
            None => self.config.contact(user, place.transport, secure),
        }
    }
}

impl Call {
    /// Returns the place that the call is signalled with.
    pub(super) fn place(&self) -> Option<&Hop> {
        match &self.side {
            DialogSide::Caller(caller) => Some(&caller.to),
            DialogSide::Answerer(_) => self.dialogs.first().map(|fork| fork.dialog.place()),
        }
    }

    /// True when `Ended` was reported.
    pub(crate) fn is_over(&self) -> bool {
        self.stage == CallStage::Over
    }

    /// Forgets a connection that is closed. True for a call whose dialog in use relied on it.
    pub(crate) fn forget(&mut self, connection: ConnectionId) -> bool {
        if let DialogSide::Caller(caller) = &mut self.side {
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
