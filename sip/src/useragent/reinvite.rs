//! Changes of the session that this side asks for in a call that is up: re-INVITE, its answer, glare (RFC 3261 14.1).

use std::net::SocketAddr;
use std::time::Duration;

use super::{ALLOW, Acknowledgement, Call, CallEnd, CallEvent, CallKey, EndKind, Side, Stage, reason};
use crate::endpoint::{Endpoint, TransactionKey, hop_by_hop};
use crate::message::{Method, Request, Response, sdp_of};
use crate::sdp::{self, Session};
use crate::time::Time;

/// Most times that a change is asked for again after 491, or after 500 with Retry-After.
const MAX_RETRIES: u32 = 8;

/// Longest Retry-After of a 500 that is waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(32);

/// How long a change may stay without a final response once a provisional one came; then it is cancelled.
const CHANGE_LIMIT: Duration = Duration::from_secs(180);

/// A change of the session that this side asked for, until its final answer.
pub(crate) struct Change {
    /// The offer as the owner wrote it.
    wanted: String,
    /// The offer that is on its way, with its `o=` line.
    offer: String,
    /// The open transaction; `None` while the change waits.
    pub(crate) transaction: Option<TransactionKey>,
    retries: u32,
    /// When to ask, while it waits; when to cancel, once it was sent.
    pub(crate) due: Time,
}

impl Endpoint {
    /// Asks the other side of a call that is up for another session (re-INVITE with the offer `sdp`); [`CallEvent::Reinvited`]
    /// tells the answer. The `o=` line is written anew: the session's number, one version further. False, and nothing happens,
    /// when the call is not up, when `sdp` cannot be read, or while a change of this side is under way.
    pub fn reinvite(&mut self, now: Time, call: CallKey, sdp: String) -> bool {
        let Some(state) = self.calls.get_mut(&call).filter(|state| state.stage == Stage::Up) else { return false };
        if state.change.is_some() || Session::parse(&sdp).is_err() {
            return false;
        }
        state.change = Some(Change { wanted: sdp, offer: String::new(), transaction: None, retries: 0, due: now });
        self.start_change(now, call);
        self.call_changed(call);
        true
    }

    /// Sends the change that waits, when its time has come and no other offer is open.
    pub(super) fn start_change(&mut self, now: Time, key: CallKey) {
        let Some(call) = self.calls.get_mut(&key).filter(|call| call.change_may_start()) else { return };
        let Some(wanted) = call.change.as_ref().filter(|c| c.due <= now).map(|c| c.wanted.clone()) else { return };
        let offer = call.renumber(&wanted);
        let at = call.active.unwrap_or(0);
        let contact = self.contact(key);
        let transaction = self.send_in_dialog(now, key, at, Method::Invite, |request| {
            request.headers.push("Contact", contact);
            request.headers.push("Allow", ALLOW);
            request.set_sdp(&offer);
        });
        if let Some(change) = self.calls.get_mut(&key).and_then(|call| call.change.as_mut()) {
            (change.transaction, change.offer) = (transaction, offer);
            change.due = now + CHANGE_LIMIT;
        }
        self.call_changed(key);
    }

    /// The time of a change has come: it starts, or is cancelled because no final response came.
    pub(super) fn change_timer(&mut self, now: Time, key: CallKey) {
        let Some(change) = self.calls.get_mut(&key).and_then(|call| call.change.as_mut()) else { return };
        let Some(transaction) = change.transaction.clone() else { return self.start_change(now, key) };
        change.due = now + CHANGE_LIMIT;
        let Some(client) = self.clients.get(&transaction).filter(|client| client.open()) else { return };
        let (cancel, to) = (hop_by_hop(&client.request, Method::Cancel), client.to);
        self.send_request(now, key, cancel, to);
        self.client_cancelled(now, &transaction);
    }

    /// A response to a re-INVITE of this side.
    pub(super) fn reinvite_response(
        &mut self,
        now: Time,
        key: CallKey,
        tx: &TransactionKey,
        request: &Request,
        response: &Response,
    ) {
        if response.code < 200 {
            return;
        }
        let accepted = response.code < 300;
        if accepted && !self.acknowledge(key, request, response) {
            return;
        }
        let waits = |call: &&mut Call| call.change.as_ref().is_some_and(|c| c.transaction.as_ref() == Some(tx));
        let Some(call) = self.calls.get_mut(&key).filter(waits) else { return };
        if accepted {
            return self.change_accepted(now, key, response);
        }
        let up = call.stage == Stage::Up;
        let to = self.clients.get(tx).map(|client| client.to).filter(|_| up);
        let again = to.and_then(|to| self.signed_again(now, key, request, response, to));
        if let (Some(again), Some(change)) = (again, self.change(key)) {
            change.transaction = Some(again);
            return self.call_changed(key);
        }
        let wait = self.retry_after(key, response);
        if let (Some(wait), Some(change)) = (wait, self.change(key)) {
            (change.transaction, change.due) = (None, now + wait);
            change.retries += 1;
            return self.call_changed(key);
        }
        self.change_refused(now, key, response.code, response.reason.clone());
    }

    fn change(&mut self, key: CallKey) -> Option<&mut Change> {
        self.calls.get_mut(&key)?.change.as_mut()
    }

    /// ACKs a 2xx to a re-INVITE in its dialog, with the same CSeq number (RFC 3261 13.2.2.4). False when it was a repetition.
    fn acknowledge(&mut self, key: CallKey, request: &Request, response: &Response) -> bool {
        let (Ok(to), Ok(cseq)) = (response.headers.to(), request.headers.cseq()) else { return false };
        let via = self.via();
        let Some(call) = self.calls.get_mut(&key) else { return false };
        let Some(fork) = call.dialogs.iter_mut().find(|f| f.dialog.remote_tag == to.tag()) else { return false };
        if let Some(ack) = fork.ack(cseq.seq) {
            let (bytes, to) = (ack.bytes.clone(), ack.to);
            self.datagram(to, bytes);
            return false;
        }
        fork.dialog.refresh(&response.headers);
        let (mut ack, to) = fork.dialog.request(Method::Ack, cseq.seq);
        ack.headers.push_first("Via", via);
        for name in ["Authorization", "Proxy-Authorization"] {
            ack.headers.copy(&request.headers, name);
        }
        let bytes = ack.to_bytes();
        fork.keep_ack(Acknowledgement { seq: cseq.seq, bytes: bytes.clone(), to });
        self.datagram(to, bytes);
        true
    }

    /// The answer came: what was offered is this side's description from now on.
    fn change_accepted(&mut self, now: Time, key: CallKey, response: &Response) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        let Some(change) = call.change.take() else { return };
        let code = response.code;
        let sdp = sdp_of(&response.headers, &response.body);
        let media = sdp.as_deref().map(|sdp| sdp::read_answer(&change.offer, sdp));
        let over = call.stage == Stage::Over;
        self.call_changed(key);
        match media {
            _ if over => {}
            Some(Ok(media)) => {
                let held = self.agree(key, change.offer, &media);
                self.event(key, CallEvent::Reinvited { code, sdp, media: Some(media) });
                if let Some(held) = held {
                    self.event(key, CallEvent::Hold(held));
                }
            }
            // A 2xx without an answer changes nothing.
            None => self.event(key, CallEvent::Reinvited { code, sdp: None, media: None }),
            Some(Err(why)) => {
                let at = self.calls.get(&key).and_then(|call| call.active).unwrap_or(0);
                self.event(key, CallEvent::Reinvited { code, sdp, media: None });
                self.bye(now, key, at, Some(reason(88, "Incompatible destination")));
                let end = CallEnd::new(EndKind::NoMedia, &format!("Answer without usable media: {why}"));
                self.end(now, key, CallEnd { sip_code: Some(code), q850_cause: Some(88), ..end });
            }
        }
    }

    /// Takes `local` as this side's description, with what was agreed on it. Returns the new hold when that changed.
    fn agree(&mut self, key: CallKey, local: String, media: &sdp::Negotiated) -> Option<bool> {
        let call = self.calls.get_mut(&key)?;
        call.wish = Session::parse(&local).ok().and_then(|own| sdp::Offer::read(&own)).map(|own| own.direction);
        (call.local_sdp, call.version) = (local, 0);
        call.codec = Some((media.codec.clone(), media.clock_rate_hz));
        let held = media.on_hold;
        (std::mem::replace(&mut call.on_hold, held) != held).then_some(held)
    }

    /// How long to wait before the change is asked for again: drawn after 491 (RFC 3261 14.1), given with 500 (14.2).
    fn retry_after(&mut self, key: CallKey, response: &Response) -> Option<Duration> {
        let call = self.calls.get(&key)?;
        if call.stage != Stage::Up || call.change.as_ref()?.retries >= MAX_RETRIES {
            return None;
        }
        match response.code {
            491 if matches!(call.side, Side::Caller(_)) => Some(Duration::from_millis(2100 + 10 * self.ids.draw(191))),
            491 => Some(Duration::from_millis(10 * self.ids.draw(201))),
            500 => {
                let value = response.headers.get("Retry-After")?;
                let digits = value.split(|c: char| !c.is_ascii_digit()).next()?;
                Some(Duration::from_secs(digits.parse().ok()?)).filter(|wait| *wait <= LONGEST_WAIT)
            }
            _ => None,
        }
    }

    /// The final refusal of a change: the session stays as it was, except that 408 and 481 end the dialog (RFC 3261 12.2.1.2).
    fn change_refused(&mut self, now: Time, key: CallKey, code: u16, text: String) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        if call.change.take().is_none() {
            return;
        }
        let (up, at) = (call.stage == Stage::Up, call.active.unwrap_or(0));
        self.call_changed(key);
        if !up {
            return;
        }
        self.event(key, CallEvent::Reinvited { code, sdp: None, media: None });
        if matches!(code, 408 | 481) {
            self.bye(now, key, at, Some(reason(111, "Dialog lost")));
            let end = CallEnd::new(EndKind::DialogLost, &text);
            self.end(now, key, CallEnd { sip_code: Some(code), by_remote: code == 481, ..end });
        }
    }

    /// A change of this side got no final response: timer B or F (408), or nobody is there (503).
    pub(super) fn change_failed(&mut self, now: Time, key: CallKey, tx: &TransactionKey, code: u16) {
        if self.change(key).is_some_and(|change| change.transaction.as_ref() == Some(tx)) {
            let text = if code == 408 { "No response within 32 s" } else { "Destination unreachable" };
            self.change_refused(now, key, code, text.to_owned());
        }
    }

    /// A request in the dialog that was challenged is sent again with credentials, as the transaction that is returned; `None`
    /// when there is nothing to answer with.
    pub(crate) fn signed_again(
        &mut self,
        now: Time,
        key: CallKey,
        request: &Request,
        response: &Response,
        to: SocketAddr,
    ) -> Option<TransactionKey> {
        let Call { side: Side::Caller(caller), dialogs, .. } = self.calls.get_mut(&key)? else { return None };
        if !matches!(response.code, 401 | 407) || !caller.login.learn(response) {
            return None;
        }
        let tag = response.headers.to().map(|to| to.tag().to_owned()).unwrap_or_default();
        let fork = dialogs.iter_mut().find(|f| f.dialog.remote_tag == tag)?;
        fork.dialog.local_seq += 1;
        let mut again = request.clone();
        for name in ["Via", "Authorization", "Proxy-Authorization", "User-Agent"] {
            again.headers.remove(name);
        }
        again.headers.set("CSeq", format!("{} {}", fork.dialog.local_seq, request.method));
        caller.login.sign(&mut again, &mut self.ids);
        Some(self.send_request(now, key, again, to))
    }
}

impl Call {
    /// True when a change that waits may be sent: the call is up and no offer of the other side is open.
    pub(super) fn change_may_start(&self) -> bool {
        let waits = self.change.as_ref().is_some_and(|change| change.transaction.is_none());
        waits && self.stage == Stage::Up && self.unacknowledged.is_none()
    }

    /// True while an offer of this side has no answer.
    pub(super) fn change_is_open(&self) -> bool {
        self.change.as_ref().is_some_and(|change| change.transaction.is_some())
    }

    /// Returns `sdp` with this session's number and its next version (RFC 3264 8) in the `o=` line; all else as written.
    fn renumber(&mut self, sdp: &str) -> String {
        let Ok(own) = Session::parse(&self.local_sdp) else { return sdp.to_owned() };
        self.version += 1;
        let version = own.version.saturating_add(self.version);
        let line = |line: &str| match line.strip_prefix("o=") {
            Some(origin) => {
                let mut words: Vec<&str> = origin.split_whitespace().collect();
                let version = version.to_string();
                if let [_, id, number, ..] = words.as_mut_slice() {
                    (*id, *number) = (own.id.as_str(), version.as_str());
                }
                format!("o={}\r\n", words.join(" "))
            }
            None => format!("{line}\r\n"),
        };
        sdp.lines().map(line).collect()
    }
}
