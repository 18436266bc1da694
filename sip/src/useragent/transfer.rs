//! REFER inside a call (RFC 3515): asked of whoever drives the endpoint, and answered as that decides.

use super::{CallEvent, CallKey, Stage};
use crate::endpoint::{Endpoint, TransactionKey};
use crate::header::NameAddr;
use crate::message::{Method, Request};
use crate::time::Time;

impl Endpoint {
    pub(super) fn refer_received(
        &mut self,
        now: Time,
        tx: &TransactionKey,
        key: CallKey,
        at: usize,
        request: &Request,
    ) {
        let Some(to) = request.headers.get("Refer-To").and_then(NameAddr::parse) else {
            return self.reply(now, tx, 400, "Bad Refer-To", &[]);
        };
        match self.calls.get_mut(&key) {
            Some(call) if call.stage == Stage::Up && call.referred.is_none() => {
                call.referred = Some((tx.clone(), at));
                self.event(key, CallEvent::Transfer { to: to.uri });
            }
            _ => self.reply(now, tx, 603, "", &[]),
        }
    }

    /// Answers [`CallEvent::Transfer`]: declined with 603; or accepted with 202, and told by NOTIFY at once to be done, which ends the
    /// implicit subscription (RFC 3515 2.4.5): whoever accepts leaves the call. Nothing happens where no REFER waits.
    pub fn answer_transfer(&mut self, now: Time, call: CallKey, accepted: bool) {
        let Some((tx, at)) = self.calls.get_mut(&call).and_then(|state| state.referred.take()) else { return };
        if !accepted {
            return self.reply(now, &tx, 603, "", &[]);
        }
        let contact = self.contact(call);
        self.reply(now, &tx, 202, "", &[("Contact", &contact)]);
        self.send_in_dialog(now, call, at, Method::Notify, |request| {
            request.headers.push("Contact", contact);
            request.headers.push("Event", "refer");
            request.headers.push("Subscription-State", "terminated;reason=noresource");
            request.headers.push("Content-Type", "message/sipfrag;version=2.0");
            request.body = b"SIP/2.0 200 OK\r\n".to_vec();
        });
    }
}
