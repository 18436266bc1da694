//! Placing calls: INVITE, its responses, digest, redirects, CANCEL (RFC 3261 8.1, 9.1, 13.2, 22).

use std::collections::VecDeque;
use std::time::Duration;

use super::{Invite, prack, reason};
use crate::auth::{Credentials, Login};
use crate::call::{Call, CallEnd, CallEvent, CallStage, Caller, DialogSide, EndKind, Fork, LINGER, Timing};
use crate::capabilities::ALLOW;
use crate::dialog::{Dialog, is_sips};
use crate::endpoint::{Endpoint, Failure, hop_by_hop};
use crate::header::NameAddr;
use crate::hop::{Hop, Transport};
use crate::ids::{CallKey, TransactionKey};
use crate::message::{Method, Request, Response, sdp_of};
use crate::parse::is_token;
use crate::sdp::{self, Negotiated};
use crate::text::quote;
use crate::time::Time;
use crate::transaction::T1_64;
use crate::uri::{Scheme, Uri, escape_user};

/// Most early dialogs that a forking proxy may open in one call.
const MAX_FORKS: usize = 8;

/// Most places that are tried after the first one.
const MAX_ALTERNATIVES: usize = 7;

/// Time after which a place without a response is left for another one: 16 times T1.
const TRY_LIMIT: Duration = Duration::from_secs(8);

/// Time after the first attempt in which another place may be tried. The last one has 32 s, so that all is over in 64
/// s.
const FAILOVER_LIMIT: Duration = T1_64;

/// Error text for a `sips:` address without a way by TLS.
const NEEDS_TLS: &str = "A sips: address is called over TLS only, and no TLS address is known for it";

impl Endpoint {
    /// Places a call and returns its key; events under this key tell how it goes on.
    pub fn invite(&mut self, now: Time, invite: Invite) -> CallKey {
        let local = self.config.local;
        let host = if local.is_ipv6() { format!("[{}]", local.ip()) } else { local.ip().to_string() };
        let call_id = format!("{}@{host}", self.ids.next());
        let user = escape_user(&invite.from_user);
        let at = if user.is_empty() { "" } else { "@" };
        let display = invite.from_display.as_deref().map(|d| format!("{} ", quote(d))).unwrap_or_default();
        let domain = invite.from_host.as_deref().unwrap_or(&host);
        let secure = invite.target.scheme == Scheme::Sips;
        let mut request = Request::new(Method::Invite, invite.target.to_string());
        let headers = &mut request.headers;
        headers.push("Max-Forwards", "70");
        headers.push("From", format!("{display}<sip:{user}{at}{domain}>;tag={}", self.ids.next()));
        headers.push("To", format!("<{}>", Uri { headers: String::new(), ..invite.target }));
        headers.push("Call-ID", call_id.clone());
        headers.push("CSeq", "");
        headers.push("Contact", "");
        headers.push("Allow", ALLOW);
        let timing = Timing::new(self.session_s);
        timing.ask(headers);
        for (name, value) in invite.headers {
            if !name.is_empty() && name.chars().all(is_token) {
                headers.push(name, value.trim());
            }
        }
        if !invite.sdp.is_empty() {
            request.set_sdp(&invite.sdp);
        }
        let who = invite.username.zip(invite.password);
        let who = who.map(|(username, password)| Credentials { username, password: password.0 });
        let mut hops: VecDeque<Hop> = invite.alternatives.into();
        hops.truncate(MAX_ALTERNATIVES);
        hops.push_front(invite.destination.clone());
        let caller = Caller {
            request,
            to: invite.destination,
            hops,
            begun: None,
            reach: invite.reach.clone(),
            transaction: "".into(),
            seq: 1,
            provisional: false,
            redirected: false,
            moved_by: None,
            raised: false,
            cancel: None,
            cancel_sent: false,
            login: Login::new(who),
        };
        let call = Call::new(call_id, DialogSide::Caller(Box::new(caller)), invite.sdp, user);
        let key = self.insert_call(Call { timing, secure, reach: invite.reach, ..call });
        if !self.try_next(now, key) {
            self.end(now, key, CallEnd::new(EndKind::NotReachable, NEEDS_TLS));
        }
        key
    }

    /// Gives up a call that is not answered yet. `Ended` (Cancelled) comes at once; messages that cross it are handled
    /// later.
    pub fn cancel(&mut self, now: Time, call: CallKey) {
        self.give_up(now, call, None, CallEnd::new(EndKind::Cancelled, "Cancelled"));
    }

    /// Takes the places of a [`CallEvent::Redirected`] target, in the order in which they are tried; none when the
    /// target may not be called.
    pub fn take_destinations(&mut self, now: Time, call: CallKey, destinations: impl IntoIterator<Item = Hop>) {
        let Some(Call { stage: CallStage::Pending, side: DialogSide::Caller(caller), deadline, .. }) =
            self.calls.get_mut(&call)
        else {
            return;
        };
        if deadline.take().is_none() {
            return;
        }
        caller.hops = destinations.into_iter().take(1 + MAX_ALTERNATIVES).collect();
        caller.begun = None;
        caller.seq += 1;
        let known = !caller.hops.is_empty();
        if let Some((to, code, text)) = caller.moved_by.take().filter(|_| known).map(|moved| *moved) {
            self.note_place(call, to, Some(code), &text);
        }
        if !self.try_next(now, call) {
            let text = if known { NEEDS_TLS } else { "Redirected to an unknown or refused host" };
            self.end(now, call, CallEnd::new(EndKind::NotReachable, text));
        }
    }

    /// Ends a pending call of this side as the caller.
    pub(super) fn give_up(&mut self, now: Time, key: CallKey, why: Option<String>, end: CallEnd) {
        let Some(Call { stage: CallStage::Pending, side: DialogSide::Caller(caller), .. }) = self.calls.get_mut(&key)
        else {
            return;
        };
        caller.cancel = Some(why);
        if caller.provisional {
            self.send_cancel(now, key);
        }
        self.end(now, key, end);
    }

    fn caller(&mut self, key: CallKey) -> Option<&mut Caller> {
        match &mut self.calls.get_mut(&key)?.side {
            DialogSide::Caller(caller) => Some(caller),
            DialogSide::Answerer(_) => None,
        }
    }

    /// Sends the INVITE anew, to the place where it went.
    fn send_invite(&mut self, now: Time, key: CallKey) {
        let Some(caller) = self.caller(key) else { return };
        caller.seq += 1;
        self.transmit_invite(now, key);
    }

    /// Sends the INVITE to the next place that may be tried, as a new transaction and else as it was (RFC 3263 4.3).
    /// False when there is none, and when it is too late.
    fn try_next(&mut self, now: Time, key: CallKey) -> bool {
        let Some(Call { stage: CallStage::Pending, side: DialogSide::Caller(caller), secure, .. }) =
            self.calls.get_mut(&key)
        else {
            return false;
        };
        let begun = *caller.begun.get_or_insert(now);
        if now.since(begun) >= FAILOVER_LIMIT {
            return false;
        }
        caller.hops.retain(|hop| !*secure || hop.transport == Transport::Tls);
        let Some(next) = caller.hops.pop_front() else { return false };
        caller.to = next;
        self.transmit_invite(now, key);
        true
    }

    /// Tries the next place, and tells why the one before is left; false when there is none.
    fn leave_place(&mut self, now: Time, key: CallKey, code: Option<u16>, why: &str) -> bool {
        let before = self.caller(key).map(|caller| caller.to.clone());
        let goes_on = self.try_next(now, key);
        if let Some(before) = before.filter(|_| goes_on) {
            self.note_place(key, before, code, why);
        }
        goes_on
    }

    fn transmit_invite(&mut self, now: Time, key: CallKey) {
        if !self.calls.contains_key(&key) {
            return;
        }
        let contact = self.contact(key);
        let Some(Call { side: DialogSide::Caller(caller), .. }) = self.calls.get_mut(&key) else { return };
        caller.provisional = false;
        caller.request.headers.set("Contact", contact);
        caller.request.headers.set("CSeq", format!("{} INVITE", caller.seq));
        let (mut request, to) = (caller.request.clone(), caller.to.clone());
        caller.login.sign(&mut request, &mut self.ids);
        let is_last = caller.hops.is_empty();
        let transaction = self.send_request(now, key, request, to);
        if !is_last {
            self.client_gives_up(&transaction, now + TRY_LIMIT);
        }
        if let Some(caller) = self.caller(key) {
            caller.transaction = transaction;
        }
        self.call_changed(key);
    }

    /// Sends a CANCEL, which has the INVITE's branch and goes where it went (RFC 3261 9.1).
    fn send_cancel(&mut self, now: Time, key: CallKey) {
        let Some(caller) = self.caller(key) else { return };
        let Some(why) = caller.cancel.clone().filter(|_| !caller.cancel_sent) else { return };
        let transaction = caller.transaction.clone();
        let Some(client) = self.clients.get(&transaction).filter(|c| c.open()) else { return };
        let (mut cancel, to) = (hop_by_hop(&client.request, Method::Cancel), client.to.clone());
        if let Some(why) = why {
            cancel.headers.push("Reason", why);
        }
        self.send_request(now, key, cancel, to);
        self.client_cancelled(now, &transaction);
        if let Some(caller) = self.caller(key) {
            caller.cancel_sent = true;
        }
        if let Some(call) = self.calls.get_mut(&key).filter(|c| c.stage == CallStage::Over) {
            call.deadline = Some(now + LINGER);
            self.call_changed(key);
        }
    }

    /// Handles a response to an INVITE of this side.
    pub(crate) fn invite_response(
        &mut self,
        now: Time,
        key: CallKey,
        tx: &TransactionKey,
        request: &Request,
        response: Response,
    ) {
        if request.headers.to().is_ok_and(|to| !to.tag().is_empty()) {
            return self.reinvite_response(now, key, tx, request, &response);
        }
        let Some(call) = self.calls.get(&key) else { return };
        let pending =
            call.stage == CallStage::Pending && matches!(&call.side, DialogSide::Caller(c) if c.transaction == *tx);
        match response.code {
            100..200 => self.provisional(now, key, request, response),
            200..300 => self.take_answer(now, key, request, &response),
            _ if !pending => {}
            401 | 407 => self.take_challenge(now, key, tx, &response),
            422 if self.raise_interval(key, &response) => self.send_invite(now, key),
            503 if self.leave_place(now, key, Some(503), &response.reason) => {}
            300..=399 => self.redirect(now, key, &response),
            // After a challenge it is the usual answer to wrong credentials.
            403 if self.caller(key).is_some_and(|caller| caller.login.is_challenged()) => {
                self.take_refusal(now, key, &response, EndKind::AuthFailed);
            }
            _ => self.take_refusal(now, key, &response, EndKind::Refused),
        }
    }

    fn provisional(&mut self, now: Time, key: CallKey, request: &Request, response: Response) {
        let Some(caller) = self.caller(key) else { return };
        caller.provisional = true;
        let to = caller.to.clone();
        self.send_cancel(now, key);
        let Some(call) = self.calls.get_mut(&key).filter(|c| c.stage == CallStage::Pending) else { return };
        if response.code == 100 {
            return self.event(key, CallEvent::Trying);
        }
        let sdp = sdp_of(&response.headers, &response.body);
        let seq = request.headers.cseq().map(|c| c.seq).unwrap_or_default();
        let at = call.fork(request, &response, to);
        let reliable = at.zip(prack::rseq(&response.headers));
        // An INVITE without an offer: the first description of each branch is the branch's offer.
        let delayed = request.body.is_empty();
        let agreed = at.is_some_and(|at| call.dialogs[at].agreed.is_some());
        let offers = delayed && !agreed && sdp.is_some() && reliable.is_some();
        if let Some((at, rseq)) = reliable
            && ((offers && call.offered.is_some()) || !call.take_reliable(at, seq, rseq))
        {
            return;
        }
        let answer = sdp.as_deref().filter(|_| !delayed);
        let media = answer.and_then(|sdp| sdp::read_answer(&call.local_sdp, sdp).ok());
        if let Some(at) = at {
            let fork = &mut call.dialogs[at];
            fork.note_allow(&response.headers);
            if sdp.is_some() {
                fork.early_sdp.clone_from(&sdp);
            }
            // Only a reliable response can complete offer and answer before the 2xx (RFC 3262 5).
            if reliable.is_some() && fork.agreed.is_none() {
                fork.agreed = sdp.clone().zip(media.clone());
            }
            call.early = Some(at);
        }
        let tag = response.headers.to().map(|to| to.tag().to_owned()).unwrap_or_default();
        self.event(key, CallEvent::Provisional { code: response.code, tag, sdp: sdp.clone(), media });
        match (reliable, sdp) {
            (Some((at, rseq)), Some(sdp)) if offers => self.offer_in_ring(key, at, &response, sdp, (rseq, seq)),
            (Some((at, rseq)), _) => self.send_prack(now, key, at, (rseq, seq), None),
            (None, _) => {}
        }
    }

    /// Acknowledges a 2xx, then takes the call; ends the dialog when the call is over or another fork has it.
    fn take_answer(&mut self, now: Time, key: CallKey, request: &Request, response: &Response) {
        let Some(to) = self.caller(key).map(|c| c.to.clone()) else { return };
        let Some(call) = self.calls.get_mut(&key) else { return };
        let Some(at) = call.fork(request, response, to) else { return };
        let seq = request.headers.cseq().map(|c| c.seq).unwrap_or_default();
        if call.dialogs[at].ack(seq).is_some() {
            let ended_before = call.stage == CallStage::Pending;
            self.stray_answer(response);
            if ended_before {
                // The same branch answered by way of a place that was left, and got its BYE there.
                self.end(now, key, CallEnd::new(EndKind::NotReachable, "Answered by way of a place that was left"));
            }
            return;
        }
        if call.ack_waits(at) {
            return;
        }
        let fork = &mut call.dialogs[at];
        fork.dialog.confirm(response, seq);
        fork.note_allow(&response.headers);
        let (agreed, closed) = (fork.agreed.clone(), fork.closed);
        let sdp = sdp_of(&response.headers, &response.body);
        let pending = call.stage == CallStage::Pending;
        match sdp {
            // Its BYE overtook it.
            _ if pending && closed => {
                self.acknowledge(key, at, request, None);
                let end = CallEnd::new(EndKind::RemoteBye, "Answered and ended at once");
                self.end(now, key, CallEnd { by_remote: true, ..end });
            }
            Some(sdp) if pending && agreed.is_none() && request.body.is_empty() => {
                self.offer_in_answer(now, key, at, request, response, sdp);
                self.take_timer(now, key, &response.headers);
            }
            sdp => {
                let sdp = sdp.or_else(|| fork.early_sdp.clone());
                self.acknowledge(key, at, request, None);
                if pending {
                    self.connect(now, key, at, response, sdp, agreed);
                } else {
                    let why = self.caller(key).and_then(|caller| caller.cancel.clone().flatten());
                    self.bye(now, key, at, why.or(Some(reason(16, "Normal call clearing"))));
                }
            }
        }
    }

    /// Takes the call of a 2xx that was acknowledged, by what was agreed on before or by its answer; ends it when there
    /// is none.
    fn connect(
        &mut self,
        now: Time,
        key: CallKey,
        at: usize,
        response: &Response,
        sdp: Option<String>,
        agreed: Option<(String, Negotiated)>,
    ) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        let answer = sdp.map(|sdp| sdp::read_answer(&call.local_sdp, &sdp).map(|media| (sdp, media)));
        match agreed.map(Ok).or(answer) {
            Some(Ok((sdp, media))) => {
                (call.stage, call.active) = (CallStage::Up, Some(at));
                call.confirmed = true;
                call.offered = None;
                call.settle_on(at);
                call.move_change(at);
                call.take(media.clone());
                let (call_id, tag) = (call.call_id.clone(), call.dialogs[at].dialog.remote_tag.clone());
                self.take_timer(now, key, &response.headers);
                self.event(key, CallEvent::Answered { code: response.code, sdp, media, call_id, tag });
                self.start_change(now, key);
            }
            unusable => {
                self.bye(now, key, at, Some(reason(88, "Incompatible destination")));
                let why = unusable.and_then(Result::err).map_or_else(String::new, |why| format!(": {why}"));
                let end = CallEnd::new(EndKind::NoMedia, &format!("Answer without usable media{why}"));
                self.end(now, key, CallEnd { sip_code: Some(response.code), q850_cause: Some(88), ..end });
            }
        }
    }

    /// Sends the same ACK again for a 2xx that was repeated, as its ACK was lost.
    pub(crate) fn stray_answer(&mut self, response: &Response) {
        let (Ok(call_id), Ok(to), Ok(cseq)) =
            (response.headers.call_id(), response.headers.to(), response.headers.cseq())
        else {
            return;
        };
        for key in self.calls_of(call_id) {
            let forks = self.calls.get(&key).map(|c| c.dialogs.iter()).into_iter().flatten();
            let ack = forks.filter(|f| f.dialog.remote_tag == to.tag()).find_map(|f| f.ack(cseq.seq).cloned());
            if let Some(ack) = ack {
                self.send(ack.to.clone(), ack.bytes);
                return self.note_repetition(key, ack.to);
            }
        }
    }

    /// Sends ACK and BYE for a 2xx to an INVITE that is no longer waited for: of a place that was left, or of a late
    /// branch.
    pub(crate) fn late_answer(&mut self, now: Time, from: &Hop, response: &Response) {
        let (Ok(call_id), Ok(own), Ok(cseq)) =
            (response.headers.call_id(), response.headers.from(), response.headers.cseq())
        else {
            return;
        };
        for key in self.calls_of(call_id) {
            let Some(call) = self.calls.get_mut(&key) else { continue };
            let DialogSide::Caller(caller) = &call.side else { continue };
            let request = caller.request.clone();
            let is_ours = request.headers.from().is_ok_and(|sent| sent.tag() == own.tag());
            if !is_ours || request.headers.cseq().is_ok_and(|sent| sent.seq != cseq.seq) {
                continue;
            }
            let Some(at) = call.fork(&request, response, from.clone()) else { continue };
            if call.active == Some(at) || call.ack_waits(at) || !call.dialogs[at].is_early() {
                continue;
            }
            call.dialogs[at].dialog.confirm(response, cseq.seq);
            self.acknowledge(key, at, &request, None);
            self.bye(now, key, at, Some(reason(16, "Normal call clearing")));
        }
    }

    fn take_challenge(&mut self, now: Time, key: CallKey, tx: &TransactionKey, response: &Response) {
        let mut answered = self.clients.get(tx).map(|client| client.challenged.clone()).unwrap_or_default();
        if !self.caller(key).is_some_and(|caller| caller.login.learn(response, &mut answered)) {
            return self.take_refusal(now, key, response, EndKind::AuthFailed);
        }
        self.send_invite(now, key);
        if let Some(again) = self.caller(key).map(|caller| caller.transaction.clone()) {
            self.note_challenged(&again, answered);
        }
    }

    /// Follows a 422 once, with the interval that it asks for (RFC 4028 7.3).
    fn raise_interval(&mut self, key: CallKey, response: &Response) -> bool {
        let Some(Call { timing, side: DialogSide::Caller(caller), .. }) = self.calls.get_mut(&key) else {
            return false;
        };
        if std::mem::replace(&mut caller.raised, true) || !timing.raise(response) {
            return false;
        }
        timing.ask(&mut caller.request.headers);
        true
    }

    /// Follows a 3xx once, to the Contact with the highest `q` (RFC 3261 8.1.3.4). The owner decides whether it may be
    /// called, also when its address is written there, or is the one that was called.
    fn redirect(&mut self, now: Time, key: CallKey, response: &Response) {
        let contacts = response.headers.list("Contact").into_iter().filter_map(NameAddr::parse);
        let weight = |c: &NameAddr| c.params.get("q").and_then(|q| q.parse::<f32>().ok()).unwrap_or(1.0);
        let best = contacts.filter_map(|c| Some((weight(&c), Uri::parse(&c.uri).ok()?)));
        let best = best.reduce(|a, b| if b.0 > a.0 { b } else { a });
        let Some(caller) = self.caller(key) else { return };
        let Some((_, mut target)) = best.filter(|_| !caller.redirected) else {
            return self.take_refusal(now, key, response, EndKind::Refused);
        };
        target.headers.clear();
        target.params.0.retain(|(name, _)| !name.eq_ignore_ascii_case("method"));
        let was_sips = Uri::parse(&caller.request.uri).is_ok_and(|old| old.scheme == Scheme::Sips);
        if was_sips && target.scheme != Scheme::Sips && response.code != 305 {
            let end = CallEnd::new(EndKind::Refused, "Redirected from a sips: address to one without TLS");
            return self.end(now, key, CallEnd { sip_code: Some(response.code), by_remote: true, ..end });
        }
        caller.redirected = true;
        caller.moved_by = Some(Box::new((caller.to.clone(), response.code, response.reason.clone())));
        let is_same_host = Uri::parse(&caller.request.uri).is_ok_and(|old| old.host.eq_ignore_ascii_case(&target.host));
        if is_same_host {
            caller.login.forget();
        } else {
            caller.login.withhold();
            // Meant for the host that was called: the other one may be a trunk.
            caller.request.headers.remove("traceparent");
        }
        // The proxy was on the way to the first target.
        caller.request.headers.remove("Route");
        // The same request goes through the proxy that 305 names (RFC 3261 21.3.4).
        if response.code != 305 {
            caller.request.uri = target.to_string();
        }
        let now_sips = is_sips(&caller.request.uri);
        if let Some(call) = self.calls.get_mut(&key) {
            call.secure = now_sips;
            call.deadline = Some(now + T1_64);
        }
        self.call_changed(key);
        self.event(key, CallEvent::Redirected { target });
    }

    fn take_refusal(&mut self, now: Time, key: CallKey, response: &Response, kind: EndKind) {
        let end = CallEnd {
            kind,
            sip_code: Some(response.code),
            q850_cause: response.headers.q850_cause(),
            text: response.reason.clone(),
            by_remote: true,
            retry_after: response.headers.get("Retry-After").is_some(),
        };
        self.end(now, key, end);
    }

    /// Handles an INVITE of this side without a final response: the next place is tried, or the call ends.
    pub(crate) fn invite_failed(&mut self, now: Time, key: CallKey, tx: &TransactionKey, failure: Failure) {
        if self.caller(key).is_none_or(|c| c.transaction != *tx) {
            return self.change_failed(now, key, tx, failure);
        }
        if !self.leave_place(now, key, None, failure.text()) {
            let kind = if failure == Failure::TimedOut { EndKind::Timeout } else { EndKind::NotReachable };
            self.end(now, key, CallEnd::new(kind, failure.text()));
        }
    }
}

impl Call {
    /// Returns the dialog of a response to this call's INVITE, made when it is new. `None` without a To tag in a
    /// provisional response, or beyond the limit.
    fn fork(&mut self, request: &Request, response: &Response, peer: Hop) -> Option<usize> {
        let tag = response.headers.to().ok()?.tag().to_owned();
        if let Some(at) = self.dialogs.iter().position(|f| f.dialog.remote_tag == tag) {
            return Some(at);
        }
        let DialogSide::Caller(caller) = &self.side else { return None };
        let full = self.dialogs.len() >= MAX_FORKS;
        if response.code < 200 && (tag.is_empty() || full) {
            return None;
        }
        let fork = Fork::new(Dialog::of_caller(request, response, peer, caller.reach.clone())?);
        if full {
            // A branch that answers takes the place of one that only rang.
            let at = (0..self.dialogs.len()).find(|at| self.active != Some(*at) && self.dialogs[*at].is_early())?;
            self.dialogs[at] = fork;
            return Some(at);
        }
        self.dialogs.push(fork);
        Some(self.dialogs.len() - 1)
    }
}
