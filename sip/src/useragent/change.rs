//! Changes of the session that this side asks for: re-INVITE (RFC 3261 14.1), UPDATE (RFC 3311), their answers, glare.

use std::time::Duration;

use super::{prack, reason};
use crate::call::{Acknowledgement, Call, CallEnd, CallEvent, CallStage, Change, EndKind};
use crate::capabilities::ALLOW;
use crate::endpoint::{Endpoint, Failure, hop_by_hop};
use crate::ids::{CallKey, TransactionKey};
use crate::message::{Method, Request, Response, sdp_of};
use crate::sdp::{self, Session};
use crate::time::Time;

/// Most times that a change is asked for again after 491, or after 500 with Retry-After.
const MAX_RETRIES: u32 = 8;

/// Longest Retry-After of a 500 that is waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(32);

/// Longest time of a change without a final response once a provisional one came; then it is cancelled.
const CHANGE_LIMIT: Duration = Duration::from_secs(180);

impl Endpoint {
    /// Asks the other side of a call that is up for another session (re-INVITE with the offer `sdp`);
    /// [`CallEvent::Reinvited`] tells the answer. The `o=` line is written anew: the session's number, one version
    /// further. False without any effect when the call is not up, when `sdp` cannot be read, or while a change of this
    /// side is under way.
    pub fn reinvite(&mut self, now: Time, call: CallKey, sdp: String) -> bool {
        self.ask_change(now, call, Method::Invite, Some(sdp))
    }

    /// Asks for another session, or a refresh, by UPDATE, with an offer or without; [`CallEvent::Updated`] tells the
    /// answer. It may be asked before the call is answered (RFC 3311 5.1). Without an offer there has to be an early
    /// dialog. With one, a reliable provisional response has to have completed the first offer and answer. False as for
    /// [`Endpoint::reinvite`].
    pub fn update(&mut self, now: Time, call: CallKey, sdp: Option<String>) -> bool {
        self.ask_change(now, call, Method::Update, sdp)
    }

    fn ask_change(&mut self, now: Time, key: CallKey, method: Method, sdp: Option<String>) -> bool {
        let Some(call) = self.calls.get_mut(&key) else { return false };
        let at = match call.stage {
            CallStage::Up => call.active.unwrap_or(0),
            CallStage::Pending if method == Method::Update => match call.early_dialog(sdp.is_some()) {
                Some(at) => at,
                None => return false,
            },
            _ => return false,
        };
        if sdp.as_deref().is_some_and(|sdp| Session::parse(sdp).is_err()) {
            return false;
        }
        let change = Change::new(method, at, sdp, now);
        match &call.change {
            None => call.change = Some(change),
            Some(open) if open.refreshes && call.next_change.is_none() => call.next_change = Some(change),
            Some(_) => return false,
        }
        self.start_change(now, key);
        self.call_changed(key);
        true
    }

    /// Sends the change that waits, when its time has come and no other offer is open.
    pub(super) fn start_change(&mut self, now: Time, key: CallKey) {
        let Some(call) = self.calls.get_mut(&key).filter(|call| call.change_may_start()) else { return };
        let Some(change) = call.change.as_ref().filter(|change| change.due <= now) else { return };
        let (at, method, refreshes, wanted) =
            (change.at, change.method.clone(), change.refreshes, change.wanted.clone());
        let offer = match wanted {
            Some(wanted) => Some(call.renumber(at, &wanted)),
            // The same version says that nothing changes (RFC 4028 7.4).
            None if refreshes && method == Method::Invite => Some(call.in_use.clone()),
            None => None,
        };
        let mut asked = Request::new(method.clone(), "");
        call.timing.ask(&mut asked.headers);
        let contact = self.contact(key);
        let transaction = self.send_in_dialog(now, key, at, method, |request| {
            request.headers.push("Contact", contact);
            request.headers.push("Allow", ALLOW);
            request.headers.0.append(&mut asked.headers.0);
            if let Some(offer) = &offer {
                request.set_sdp(offer);
            }
        });
        if let Some(change) = self.change(key) {
            (change.transaction, change.offer) = (transaction, offer);
            change.due = now + CHANGE_LIMIT;
        }
        self.call_changed(key);
    }

    /// Runs the timer of a change: it starts, or is cancelled because no final response came.
    pub(super) fn change_timer(&mut self, now: Time, key: CallKey) {
        let Some(change) = self.change(key) else { return };
        let Some(transaction) = change.transaction.clone() else { return self.start_change(now, key) };
        change.due = now + CHANGE_LIMIT;
        let Some(client) = self.clients.get(&transaction).filter(|client| client.open()) else { return };
        if client.request.method != Method::Invite {
            return;
        }
        let (cancel, to) = (hop_by_hop(&client.request, Method::Cancel), client.to.clone());
        self.send_request(now, key, cancel, to);
        self.client_cancelled(now, &transaction);
    }

    /// Handles a response to a re-INVITE of this side. Each 2xx gets an ACK.
    pub(super) fn reinvite_response(
        &mut self,
        now: Time,
        key: CallKey,
        tx: &TransactionKey,
        request: &Request,
        response: &Response,
    ) {
        let (Ok(to), Ok(cseq)) = (response.headers.to(), request.headers.cseq()) else { return };
        let Some(call) = self.calls.get_mut(&key) else { return };
        let Some(at) = call.dialogs.iter().position(|f| f.dialog.remote_tag == to.tag()) else {
            return self.change_response(now, key, tx, response);
        };
        match response.code {
            ..200 => self.reinvite_progress(now, key, at, cseq.seq, tx, response),
            200..300 => {
                if call.dialogs[at].ack(cseq.seq).is_some() {
                    return self.stray_answer(response);
                }
                call.dialogs[at].dialog.refresh(&response.headers);
                self.acknowledge(key, at, request, None);
                self.change_response(now, key, tx, response);
            }
            _ => self.change_response(now, key, tx, response),
        }
    }

    /// Handles a provisional response to a re-INVITE: a reliable one gets its PRACK, and its description is the answer.
    fn reinvite_progress(
        &mut self,
        now: Time,
        key: CallKey,
        at: usize,
        seq: u32,
        tx: &TransactionKey,
        response: &Response,
    ) {
        let Some(call) = self.calls.get_mut(&key).filter(|call| call.stage == CallStage::Up) else { return };
        let Some(rseq) = prack::rseq(&response.headers).filter(|rseq| call.take_reliable(at, seq, *rseq)) else {
            return;
        };
        if let Some(change) = call.change.as_mut().filter(|change| change.transaction.as_ref() == Some(tx))
            && change.answer.is_none()
        {
            change.answer = sdp_of(&response.headers, &response.body);
        }
        self.send_prack(now, key, at, (rseq, seq), None);
    }

    /// ACKs a 2xx to an INVITE of this side in its dialog, with the INVITE's CSeq number and credentials (RFC 3261
    /// 13.2.2.4).
    pub(super) fn acknowledge(&mut self, key: CallKey, at: usize, invite: &Request, sdp: Option<&str>) {
        let Ok(cseq) = invite.headers.cseq() else { return };
        let Some(fork) = self.calls.get(&key).and_then(|call| call.dialogs.get(at)) else { return };
        let (mut ack, to) = fork.dialog.request(Method::Ack, cseq.seq, &self.config);
        for name in ["Authorization", "Proxy-Authorization"] {
            ack.headers.copy(&invite.headers, name);
        }
        if let Some(sdp) = sdp {
            ack.set_sdp(sdp);
        }
        let to = self.way_of_ack(invite, to, ack.to_bytes().len());
        let via = self.via(to.transport);
        ack.headers.push_first("Via", via);
        let bytes = ack.to_bytes();
        let Some(fork) = self.calls.get_mut(&key).and_then(|call| call.dialogs.get_mut(at)) else { return };
        fork.keep_ack(Acknowledgement { seq: cseq.seq, bytes: bytes.clone(), to: to.clone() });
        self.send(to, bytes);
    }

    /// Handles a response to a change of this side, whose ACK was sent already.
    pub(crate) fn change_response(&mut self, now: Time, key: CallKey, tx: &TransactionKey, response: &Response) {
        let waits = |call: &&mut Call| call.change.as_ref().is_some_and(|c| c.transaction.as_ref() == Some(tx));
        let Some(call) = self.calls.get_mut(&key).filter(waits) else { return };
        let over = call.stage == CallStage::Over;
        match response.code {
            ..200 => return,
            200..300 => return self.change_accepted(now, key, response),
            _ => {}
        }
        let again = if over { None } else { self.signed_again(now, key, tx, response) };
        if let (Some(again), Some(change)) = (again, self.change(key)) {
            change.transaction = Some(again);
            return self.call_changed(key);
        }
        let wait = if over { None } else { self.wait_after(key, response) };
        if let (Some(wait), Some(change)) = (wait, self.change(key)) {
            (change.transaction, change.due) = (None, now + wait);
            self.start_change(now, key);
            return self.call_changed(key);
        }
        self.change_refused(now, key, response.code, response.reason.clone());
    }

    fn change(&mut self, key: CallKey) -> Option<&mut Change> {
        self.calls.get_mut(&key)?.change.as_mut()
    }

    /// Takes the offer of an accepted change as this side's description.
    fn change_accepted(&mut self, now: Time, key: CallKey, response: &Response) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        let Some(change) = call.change.take() else { return };
        let (code, up) = (response.code, call.is_up_in(change.at));
        if call.stage == CallStage::Over {
            return self.call_changed(key);
        }
        if let Some(fork) = call.dialogs.get_mut(change.at) {
            fork.note_allow(&response.headers);
            fork.dialog.refresh(&response.headers);
        }
        let sdp = change.answer.clone().or_else(|| sdp_of(&response.headers, &response.body));
        let media = change.offer.as_deref().zip(sdp.as_deref()).map(|(offer, answer)| sdp::read_answer(offer, answer));
        if up {
            self.take_timer(now, key, &response.headers);
        }
        match media {
            Some(Ok(media)) => self.agree(key, change, code, sdp.unwrap_or_default(), media),
            // A 2xx without an answer changes nothing.
            None => self.report(key, &change, code, None, None),
            Some(Err(why)) => {
                let at = change.at;
                self.report(key, &change, code, sdp, None);
                if up {
                    self.bye(now, key, at, Some(reason(88, "Incompatible destination")));
                    let end = CallEnd::new(EndKind::NoMedia, &format!("Answer without usable media: {why}"));
                    return self.end(now, key, CallEnd { sip_code: Some(code), q850_cause: Some(88), ..end });
                }
            }
        }
        self.follow_change(now, key);
    }

    /// Takes the offer as this side's description, with what was agreed on it, and tells the answer.
    fn agree(&mut self, key: CallKey, change: Change, code: u16, sdp: String, media: sdp::Negotiated) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        // Another branch than that of the change may have answered in between.
        if call.active.is_some_and(|active| active != change.at) {
            return self.report(key, &change, code, Some(sdp), None);
        }
        let offer = change.offer.clone().unwrap_or_default();
        let (held, news) = (call.on_hold, call.is_news(&media));
        if !change.refreshes {
            call.wish =
                Session::parse(&offer).ok().and_then(|own| sdp::Offer::from_session(&own)).map(|own| own.direction);
            // Versions of the other branches go on from where they are.
            call.version = if call.stage == CallStage::Pending && call.is_caller() { call.version } else { 0 };
            call.describe(change.at, &offer);
        } else {
            call.use_description(change.at, &offer);
        }
        call.take(media.clone());
        if let Some(fork) = call.dialogs.get_mut(change.at) {
            fork.agreed = Some((sdp.clone(), media.clone()));
        }
        let holds = media.on_hold;
        if !change.refreshes {
            self.report(key, &change, code, Some(sdp), Some(media));
        } else if news {
            let tag = self.calls.get(&key).map(|call| call.remote_tag(change.at)).unwrap_or_default();
            self.event(key, CallEvent::Renegotiated { media, sdp, tag });
        }
        if holds != held {
            self.event(key, CallEvent::Hold(holds));
        }
    }

    /// Reports the final answer to a change to the owner.
    fn report(
        &mut self,
        key: CallKey,
        change: &Change,
        code: u16,
        sdp: Option<String>,
        media: Option<sdp::Negotiated>,
    ) {
        if change.refreshes {
            return;
        }
        let event = if change.method == Method::Update {
            CallEvent::Updated { code, sdp, media }
        } else {
            CallEvent::Reinvited { code, sdp, media }
        };
        self.event(key, event);
    }

    /// Ends a change: the next one may start.
    fn follow_change(&mut self, now: Time, key: CallKey) {
        if let Some(call) =
            self.calls.get_mut(&key).filter(|call| call.stage != CallStage::Over && call.change.is_none())
        {
            call.change = call.next_change.take();
        }
        self.start_change(now, key);
        self.call_changed(key);
    }

    /// Returns the wait before the change is asked for again. It is drawn after 491 (RFC 3261 14.1) and given with 500
    /// (14.2). It is zero after 422 with a longer interval (RFC 4028 7.4). `None`: it is refused.
    fn wait_after(&mut self, key: CallKey, response: &Response) -> Option<Duration> {
        let call = self.calls.get_mut(&key)?;
        let is_caller = call.is_caller();
        let change = call.change.as_mut()?;
        if response.code == 422 {
            let again = !std::mem::replace(&mut change.raised, true) && call.timing.raise(response);
            return again.then_some(Duration::ZERO);
        }
        if change.retries >= MAX_RETRIES {
            return None;
        }
        change.retries += 1;
        match response.code {
            491 if is_caller => Some(Duration::from_millis(2100 + 10 * self.ids.draw(191))),
            491 => Some(Duration::from_millis(10 * self.ids.draw(201))),
            500 => {
                let value = response.headers.get("Retry-After")?;
                let digits = value.split(|c: char| !c.is_ascii_digit()).next()?;
                Some(Duration::from_secs(digits.parse().ok()?)).filter(|wait| *wait <= LONGEST_WAIT)
            }
            _ => None,
        }
    }

    /// Handles the final refusal of a change: the session stays as it was, except that 408 and 481 end the dialog (RFC
    /// 3261 12.2.1.2).
    fn change_refused(&mut self, now: Time, key: CallKey, code: u16, text: String) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        let Some(change) = call.change.take() else { return };
        let up = call.is_up_in(change.at);
        if call.stage == CallStage::Over {
            return self.call_changed(key);
        }
        self.report(key, &change, code, None, None);
        if up && matches!(code, 408 | 481) {
            self.bye(now, key, change.at, Some(reason(111, "Dialog lost")));
            let end = CallEnd::new(EndKind::DialogLost, &text);
            return self.end(now, key, CallEnd { sip_code: Some(code), by_remote: code == 481, ..end });
        }
        if change.refreshes {
            self.refresh_refused(now, key, &change.method, code);
        }
        self.follow_change(now, key);
    }

    /// Handles a change of this side that got no final response.
    pub(crate) fn change_failed(&mut self, now: Time, key: CallKey, tx: &TransactionKey, failure: Failure) {
        if self.change(key).is_some_and(|change| change.transaction.as_ref() == Some(tx)) {
            self.change_refused(now, key, failure.code(), failure.text().to_owned());
        }
    }
}

impl Call {
    /// Returns the early dialog that an UPDATE may go in before the answer.
    fn early_dialog(&self, with_offer: bool) -> Option<usize> {
        if self.is_caller() {
            let at = self.early?;
            return self.dialogs.get(at).filter(|fork| fork.agreed.is_some() || !with_offer).map(|_| at);
        }
        let known = if with_offer { self.ringing.settled } else { self.ringing.confirmed };
        known.then_some(0)
    }

    /// True when the call is answered, and in this dialog.
    fn is_up_in(&self, at: usize) -> bool {
        self.stage == CallStage::Up && self.active == Some(at)
    }

    /// Moves a waiting change of an early dialog to the dialog that was answered.
    pub(super) fn move_change(&mut self, at: usize) {
        for change in [&mut self.change, &mut self.next_change].into_iter().flatten() {
            if change.transaction.is_none() {
                change.at = at;
            }
        }
    }

    /// True while a re-INVITE of this side has no final response.
    pub(super) fn reinvite_is_open(&self) -> bool {
        self.change.as_ref().is_some_and(|change| change.transaction.is_some() && change.method == Method::Invite)
    }

    /// True while an offer of this side in a re-INVITE or UPDATE has no answer.
    pub(super) fn offer_is_open(&self) -> bool {
        self.change.as_ref().is_some_and(|change| change.transaction.is_some() && change.offer.is_some())
    }

    /// Returns `sdp` with this session's number and its next version (RFC 3264 8) in the `o=` line; all else as
    /// written.
    fn renumber(&mut self, at: usize, sdp: &str) -> String {
        let Ok(own) = Session::parse(self.own(at)) else { return sdp.to_owned() };
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
