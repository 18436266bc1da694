//! REFER inside a call (RFC 3515, RFC 4488): reported to the driver, answered by its decision, with the outcome told by
//! NOTIFY.

use crate::call::{CallEvent, CallStage, LINGER, Referral};
use crate::endpoint::Endpoint;
use crate::header::NameAddr;
use crate::ids::{CallKey, TransactionKey};
use crate::message::{Method, Request, reason_phrase};
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
        let quiet = request.headers.get("Refer-Sub").is_some_and(|value| value.trim().eq_ignore_ascii_case("false"));
        match self.calls.get_mut(&key) {
            Some(call) if call.stage == CallStage::Up && call.referred.is_none() => {
                let id = request.headers.cseq().ok().map(|cseq| cseq.seq).filter(|_| call.was_referred);
                call.was_referred = true;
                call.referred = Some(Referral { transaction: tx.clone(), at, quiet, id });
                let referred_by = request.headers.get("Referred-By");
                let referred_by = referred_by.map(str::to_owned);
                self.event(key, CallEvent::Transfer { to: to.uri, referred_by });
            }
            _ => self.reply(now, tx, 603, "", &[]),
        }
    }

    /// Answers [`CallEvent::Transfer`]: declined with 603; or accepted with 202, and told by NOTIFY at once to be done,
    /// which ends the implicit subscription (RFC 3515 2.4.5): whoever accepts leaves the call. Nothing happens where no
    /// REFER waits.
    pub fn answer_transfer(&mut self, now: Time, call: CallKey, accepted: bool) {
        if accepted {
            if self.subscribe(now, call) {
                self.notify(now, call, 200, true);
            }
        } else if let Some(referral) = self.calls.get_mut(&call).and_then(|state| state.referred.take()) {
            self.reply(now, &referral.transaction, 603, "", &[]);
        }
    }

    /// Asks the other side of a call that is up to call `target` instead (REFER), with these further header fields. Its
    /// answer and its notifications are no events. False, and nothing is sent, where the call is not up.
    pub fn refer(&mut self, now: Time, call: CallKey, target: &str, headers: &[(&'static str, String)]) -> bool {
        let at = self.calls.get(&call).filter(|state| state.stage == CallStage::Up).and_then(|state| state.active);
        let Some(at) = at else { return false };
        let contact = self.contact(call);
        self.calls.entry(call).and_modify(|state| state.watches = true);
        let sent = self.send_in_dialog(now, call, at, Method::Refer, |request| {
            request.headers.push("Contact", contact);
            request.headers.push("Refer-To", format!("<{target}>"));
            headers.iter().for_each(|(name, value)| request.headers.push(*name, value.clone()));
        });
        sent.is_some()
    }

    /// Accepts [`CallEvent::Transfer`] with 202 and tells by NOTIFY that it is tried (100); [`Endpoint::notify`] tells
    /// the outcome. No NOTIFY goes when the other side wants none (`Refer-Sub: false`).
    pub fn accept_transfer(&mut self, now: Time, call: CallKey) {
        if self.subscribe(now, call) {
            self.notify(now, call, 100, false);
        }
    }

    /// Tells by NOTIFY how far an accepted transfer is: the status line of `code`, 100 to 699. `is_final` ends the
    /// subscription, which outlives a BYE of the other side (RFC 5057 5.3). Nothing happens after that, after the
    /// call's end by this side, and where no transfer was accepted.
    pub fn notify(&mut self, now: Time, call: CallKey, code: u16, is_final: bool) {
        let Some(state) = self.calls.get_mut(&call).filter(|state| state.stage != CallStage::Pending) else { return };
        let Some((at, id)) = state.subscription.filter(|_| (100..700).contains(&code)) else { return };
        if is_final {
            state.subscription = None;
            if state.stage == CallStage::Over {
                state.deadline = Some(now + LINGER);
                self.call_changed(call);
            }
        }
        let contact = self.contact(call);
        self.send_in_dialog(now, call, at, Method::Notify, |request| {
            let state = if is_final { "terminated;reason=noresource" } else { "active;expires=60" };
            request.headers.push("Contact", contact);
            request.headers.push("Event", id.map_or_else(|| "refer".to_owned(), |id| format!("refer;id={id}")));
            request.headers.push("Subscription-State", state);
            request.headers.push("Content-Type", "message/sipfrag;version=2.0");
            request.body = format!("SIP/2.0 {code} {}\r\n", reason_phrase(code)).into_bytes();
        });
    }

    /// Accepts the REFER that waits. True when its outcome is to be told.
    fn subscribe(&mut self, now: Time, key: CallKey) -> bool {
        let Some(call) = self.calls.get_mut(&key) else { return false };
        let Some(referral) = call.referred.take() else { return false };
        call.subscription = (!referral.quiet).then_some((referral.at, referral.id));
        let contact = self.contact(key);
        let mut headers = vec![("Contact", contact.as_str())];
        if referral.quiet {
            headers.push(("Refer-Sub", "false"));
        }
        self.reply(now, &referral.transaction, 202, "", &headers);
        !referral.quiet
    }
}
