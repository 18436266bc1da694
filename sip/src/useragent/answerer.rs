//! Taking calls: an INVITE from outside, the responses to it, its ACK and its CANCEL (RFC 3261 8.2, 9.2, 13.3, 15.1.2).

use std::net::IpAddr;
use std::time::Duration;

use super::{bodies, reason};
use crate::auth::{Demand, Verdict};
use crate::call::{
    Call, CallEnd, CallEvent, CallStage, DialogSide, EndKind, Fork, LEAST_S, LINGER, Plan, Ringing, Unacknowledged,
};
use crate::capabilities::{ALLOW, SUPPORTED};
use crate::dialog::{Dialog, Reach, is_sips};
use crate::endpoint::Endpoint;
use crate::hop::{Hop, Transport};
use crate::ids::{CallKey, TransactionKey};
use crate::message::{Method, Request, reason_phrase, sdp_of};
use crate::sdp;
use crate::time::Time;

/// Lifetime of a nonce of this side.
const NONCE_LIFE: Duration = Duration::from_secs(300);

/// Longest time that an incoming call may go unanswered. Then it is refused with 480, so that a lost CANCEL leaves
/// nothing behind.
const RING_LIMIT: Duration = Duration::from_secs(300);

impl Endpoint {
    /// Answers with 200 and this SDP, repeated until the ACK comes ([`CallEvent::Confirmed`]). It waits for the PRACK
    /// of a reliable provisional response with a description. After such a one the 200 has no description.
    pub fn answer(&mut self, now: Time, call: CallKey, sdp: String) {
        let Some(state) = self.calls.get_mut(&call).filter(|c| c.stage == CallStage::Pending && !c.is_caller()) else {
            return;
        };
        let Some(sdp) = state.ringing.hold_answer(sdp) else { return };
        let described = state.ringing.described;
        let plan = self.planned_timer(call);
        let headers = plan.map(Plan::headers).unwrap_or_default();
        let sent = self.respond(now, call, 200, Some(sdp.as_str()).filter(|_| !described), &headers);
        let (Some((bytes, to)), Some(state)) = (sent, self.calls.get_mut(&call)) else { return };
        if !described {
            state.in_use.clone_from(&sdp);
            state.local_sdp = sdp;
        }
        state.stage = CallStage::Up;
        state.deadline = None;
        state.active = Some(0);
        let offers = !described && !state.ringing.offered;
        state.unacknowledged = Some(Unacknowledged::new(now, bytes, to, state.invite_seq, offers));
        self.start_timer(now, call, plan);
    }

    /// Limits the addresses that the other side of a call may name. They are those of requests of the dialog (all
    /// others go where the INVITE came from). They are also those of media that a change asks for; a change to another
    /// one is answered 488.
    pub fn limit_reach(&mut self, call: CallKey, reach: Reach) {
        let Some(call) = self.calls.get_mut(&call) else { return };
        call.dialogs.iter_mut().for_each(|fork| fork.dialog.limit(reach.clone()));
        call.reach = reach;
    }

    /// Sets the address of a host name that the other side gave for its media: changes of the session may name it as
    /// well. Those that name another host are answered 488, since the answer goes at once.
    pub fn know_host(&mut self, call: CallKey, host: String, address: IpAddr) {
        if let Some(call) = self.calls.get_mut(&call) {
            call.known_host = Some((host, address));
        }
    }

    /// Refuses a call that is not answered yet with 300 to 699, and a Q.850 cause.
    pub fn reject(&mut self, now: Time, call: CallKey, code: u16, reason_q850: Option<u16>) {
        let why = reason_q850.map(|cause| ("Reason", reason(cause, reason_phrase(code))));
        self.reject_with(now, call, code, why.as_slice());
    }

    /// Refuses a call as [`Endpoint::reject`] does, with further header fields (Contact of a 302, Retry-After of a
    /// 503).
    pub fn reject_with(&mut self, now: Time, call: CallKey, code: u16, headers: &[(&'static str, String)]) {
        if (300..700).contains(&code) && self.respond(now, call, code, None, headers).is_some() {
            let end = CallEnd::new(EndKind::LocalHangup, reason_phrase(code));
            self.end(now, call, CallEnd { sip_code: Some(code), ..end });
        }
    }

    /// Demands digest credentials of an incoming call. True when the INVITE has them. Otherwise it was refused, with a
    /// challenge (401, 407) when none were given, with 403 when they are wrong, and the call is over.
    pub fn authorize(&mut self, now: Time, call: CallKey, demand: &Demand) -> bool {
        let Some(Call { side: DialogSide::Answerer(tx), .. }) = self.calls.get(&call) else { return false };
        let Some(server) = self.servers.get(tx) else { return false };
        let fresh = |nonce: &str| {
            let Some((made, seal)) = nonce.split_once('.') else { return false };
            let at = u64::from_str_radix(made, 16).map(Time);
            seal == self.ids.seal(made) && at.is_ok_and(|at| at <= now && now.since(at) < NONCE_LIFE)
        };
        let stale = match demand.verify(&server.request.headers, "INVITE", &server.request.body, fresh) {
            Verdict::Accepted => return true,
            Verdict::Wrong => {
                self.reject(now, call, 403, None);
                return false;
            }
            Verdict::Stale => true,
            Verdict::Missing => false,
        };
        let made = format!("{:x}", now.0);
        let challenges = demand.challenges(&format!("{made}.{}", self.ids.seal(&made)), stale);
        self.reject_with(now, call, if demand.proxy { 407 } else { 401 }, &challenges);
        false
    }

    /// Sends a response to the INVITE that made the call; `None` when it has a final one already.
    pub(super) fn respond(
        &mut self,
        now: Time,
        key: CallKey,
        code: u16,
        sdp: Option<&str>,
        headers: &[(&'static str, String)],
    ) -> Option<(Vec<u8>, Hop)> {
        let call = self.calls.get(&key).filter(|c| c.stage == CallStage::Pending)?;
        let DialogSide::Answerer(tx) = &call.side else { return None };
        let tx = tx.clone();
        let mut response = self.servers.get(&tx)?.request.respond(code, "", &call.dialogs[0].dialog.local_tag);
        if (101..300).contains(&code) {
            response.headers.push("Contact", self.contact(key));
            response.headers.push("Allow", ALLOW);
        }
        if (200..300).contains(&code) {
            response.headers.push("Supported", SUPPORTED);
        }
        for (name, value) in headers {
            response.headers.push(*name, value.clone());
        }
        if let Some(sdp) = sdp {
            response.set_sdp(sdp);
        }
        if code >= 200
            && let Some(call) = self.calls.get_mut(&key)
        {
            call.ringing.stop();
            self.call_changed(key);
        }
        self.send_response(now, &tx, response)
    }

    /// Takes an INVITE without a To tag, which is a new call.
    pub(crate) fn incoming(&mut self, now: Time, tx: &TransactionKey, request: Request, source: Hop) {
        let (Ok(from), Ok(to), Ok(cseq)) = (request.headers.from(), request.headers.to(), request.headers.cseq())
        else {
            return;
        };
        let call_id = request.headers.call_id().unwrap_or_default().to_owned();
        let merged = self.calls_of(&call_id).into_iter().filter_map(|k| self.calls.get(&k)).any(|call| {
            let dialog = call.dialogs.first().map(|f| &f.dialog);
            !call.is_caller() && call.invite_seq == cseq.seq && dialog.is_some_and(|d| d.remote_tag == from.tag())
        });
        if merged {
            return self.reply(now, tx, 482, "", &[]);
        }
        let sdp = sdp_of(&request.headers, &request.body);
        if let Some(code) = bodies::refusal(&request) {
            return self.reply(now, tx, code, "", &[("Accept", bodies::TYPE)]);
        }
        let tag = self.ids.next();
        // A new connection would go where the caller listens, and not where the INVITE came from.
        let listens = self.servers.get(tx).map(|server| server.to.clone()).filter(|to| to.transport.is_reliable());
        let peer = listens.unwrap_or_else(|| source.clone());
        let Some(dialog) = Dialog::of_answerer(&request, &tag, peer) else { return };
        let secure = source.transport == Transport::Tls && is_sips(&request.uri);
        let mut call = Call::new(call_id.clone(), DialogSide::Answerer(tx.clone()), String::new(), to.user());
        call.dialogs.push(Fork::new(dialog));
        call.dialogs[0].note_allow(&request.headers);
        call.invite_seq = cseq.seq;
        call.secure = secure;
        call.ringing = Ringing::of(&request.headers, sdp.is_some());
        call.deadline = Some(now + RING_LIMIT);
        let key = self.insert_call(call);
        if self.plan_timer(key, &request.headers).is_err() {
            self.forget_call(key);
            return self.reply(now, tx, 422, "", &[("Min-SE", &LEAST_S.to_string())]);
        }
        self.call_changed(key);
        if let Some(server) = self.servers.get_mut(tx) {
            server.call = Some(key);
        }
        self.respond(now, key, 100, None, &[]);
        let shown = request.headers.iter().filter(|h| !h.is_secret());
        let headers = shown.map(|h| (h.name.to_string(), h.value.clone())).collect();
        let request_uri = request.uri;
        self.event(key, CallEvent::Incoming { from, to, request_uri, headers, sdp, call_id, source });
    }

    /// Answers a CANCEL with 200, and its INVITE with 487 when that has no final response yet (RFC 3261 9.2).
    pub(crate) fn cancel_received(
        &mut self,
        now: Time,
        tx: &TransactionKey,
        invite: &TransactionKey,
        request: &Request,
    ) {
        let Some(server) = self.servers.get(invite) else { return self.reply(now, tx, 481, "", &[]) };
        let call = server.call;
        let dialog = call.and_then(|key| self.calls.get(&key)).and_then(|c| c.dialogs.first());
        let tag = dialog.map_or_else(|| "0".to_owned(), |f| f.dialog.local_tag.clone());
        let ok = request.respond(200, "", &tag);
        self.send_response(now, tx, ok);
        if let Some(key) = call {
            self.cancelled(now, key, EndKind::Cancelled, request.headers.q850_cause());
        }
    }

    /// Ends a pending call that the caller gives up: 487 to its INVITE.
    pub(super) fn cancelled(&mut self, now: Time, key: CallKey, kind: EndKind, q850_cause: Option<u16>) {
        if self.respond(now, key, 487, None, &[]).is_some() {
            let end = CallEnd::new(kind, "Cancelled by the caller");
            self.end(now, key, CallEnd { sip_code: Some(487), q850_cause, by_remote: true, ..end });
        }
    }

    /// Takes an ACK that belongs to no failed INVITE: it ends the repetition of a 2xx.
    pub(crate) fn ack_received(&mut self, now: Time, request: &Request) {
        let (Some((key, at)), Ok(cseq)) = (self.find_dialog(request), request.headers.cseq()) else { return };
        let Some(call) = self.calls.get_mut(&key) else { return };
        let Some(waited) = call.unacknowledged.take_if(|u| u.seq == cseq.seq) else { return };
        let sdp = sdp_of(&request.headers, &request.body);
        let first = !std::mem::replace(&mut call.confirmed, true);
        // The offer that was made last: a 200 to a re-INVITE has another one than the call began with.
        let answer = sdp.as_deref().filter(|_| waited.offers).map(|sdp| sdp::read_answer(&call.in_use, sdp).ok());
        let bye = call.bye_after_ack.take();
        if call.stage == CallStage::Over {
            self.call_changed(key);
            if let Some(why) = bye {
                self.bye(now, key, at, Some(why));
            }
            return;
        }
        if first && waited.offers && !matches!(answer, Some(Some(_))) {
            self.bye(now, key, at, Some(reason(88, "Incompatible destination")));
            let end = CallEnd::new(EndKind::NoMedia, "ACK without a usable answer to the offer of the 200");
            return self.end(now, key, CallEnd { q850_cause: Some(88), ..end });
        }
        match (answer, sdp) {
            (Some(Some(media)), sdp) if first => {
                call.take(media);
                self.event(key, CallEvent::Confirmed { sdp });
            }
            (_, sdp) if first => self.event(key, CallEvent::Confirmed { sdp }),
            (Some(Some(media)), Some(sdp)) => self.renegotiated(key, at, media, sdp),
            // This side's offer has no answer, or one that cannot be used.
            (None, _) if waited.offers => self.event(key, CallEvent::Unchanged { code: 200, why: None }),
            (Some(None), _) => self.event(key, CallEvent::Unchanged { code: 488, why: None }),
            _ => {}
        }
        self.call_changed(key);
        self.start_change(now, key);
    }

    /// Repeats a 2xx that has no ACK yet; gives up after 32 s with BYE (RFC 3261 13.3.1.4).
    pub(super) fn answer_timer(&mut self, now: Time, key: CallKey) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        let Some(waiting) = &mut call.unacknowledged else { return };
        if waiting.repeated.deadline <= now {
            call.unacknowledged = None;
            let at = call.active.unwrap_or(0);
            let why = call.bye_after_ack.take().unwrap_or_else(|| reason(102, "No ACK"));
            self.bye(now, key, at, Some(why));
            self.end(
                now,
                key,
                CallEnd { q850_cause: Some(102), ..CallEnd::new(EndKind::Timeout, "No ACK within 32 s") },
            );
        } else if let Some((to, bytes)) = waiting.repeated.again(now) {
            self.send(to, bytes);
        }
    }

    /// Returns the call and the dialog that a request with a To tag belongs to.
    pub(super) fn find_dialog(&self, request: &Request) -> Option<(CallKey, usize)> {
        let (from, to) = (request.headers.from().ok()?, request.headers.to().ok()?);
        self.calls_of(request.headers.call_id().ok()?).into_iter().find_map(|key| {
            let at = self
                .calls
                .get(&key)?
                .dialogs
                .iter()
                .position(|f| f.dialog.local_tag == to.tag() && f.dialog.remote_tag == from.tag())?;
            Some((key, at))
        })
    }

    /// Returns the Contact of this side in a call.
    pub(super) fn contact(&self, key: CallKey) -> String {
        let known = self.calls.get(&key).and_then(|call| Some((call, call.place()?)));
        let Some((call, place)) = known else { return self.config.contact("", Transport::Udp, false) };
        self.contact_at(&call.contact_user, place, call.secure)
    }

    /// Ends a call: by BYE when it is up, by CANCEL or a rejection before. `Ended` (LocalHangup) comes at once; the
    /// transaction finishes later.
    pub fn hangup(&mut self, now: Time, call: CallKey, q850_cause: u16, text: &str) {
        let Some(state) = self.calls.get_mut(&call) else { return };
        let end = CallEnd { q850_cause: Some(q850_cause), ..CallEnd::new(EndKind::LocalHangup, text) };
        let why = reason(q850_cause, text);
        match (state.stage, &state.side, state.active) {
            (CallStage::Over, _, _) => {}
            (CallStage::Pending, DialogSide::Caller(_), _) => self.give_up(now, call, Some(why), end),
            (CallStage::Pending, DialogSide::Answerer(_), _) => {
                let code = match q850_cause {
                    1 => 404,
                    17 => 486,
                    21 => 603,
                    _ => 480,
                };
                self.respond(now, call, code, None, &[("Reason", why)]);
                self.end(now, call, CallEnd { sip_code: Some(code), ..end });
            }
            // An answerer may send BYE only after the ACK (RFC 3261 15).
            (CallStage::Up, DialogSide::Answerer(_), _) if state.unacknowledged.is_some() && !state.confirmed => {
                state.bye_after_ack = Some(why);
                self.end(now, call, end);
            }
            (CallStage::Up, _, active) => {
                self.bye(now, call, active.unwrap_or(0), Some(why));
                self.end(now, call, end);
            }
        }
    }

    /// Sends BYE in one dialog, once.
    pub(super) fn bye(&mut self, now: Time, key: CallKey, at: usize, why: Option<String>) {
        if self.calls.get(&key).is_some_and(|call| call.ack_waits(at)) {
            self.release_offer(key);
        }
        let Some(call) = self.calls.get_mut(&key) else { return };
        let Some(fork) = call.dialogs.get_mut(at).filter(|f| !f.closed) else { return };
        fork.closed = true;
        self.send_in_dialog(now, key, at, Method::Bye, |request| {
            if let Some(why) = why {
                request.headers.push("Reason", why);
            }
        });
    }

    /// Reports the end, once, and keeps the call for messages that cross it.
    pub(super) fn end(&mut self, now: Time, key: CallKey, end: CallEnd) {
        let Some(call) = self.calls.get_mut(&key).filter(|c| c.stage != CallStage::Over) else { return };
        call.stage = CallStage::Over;
        // Only the other side's BYE leaves its subscription to a transfer open, for as long as NOTIFY has promised.
        call.subscription.take_if(|_| end.kind != EndKind::RemoteBye);
        let open_for = call.subscription.map_or(Duration::ZERO, |_| super::SUBSCRIPTION);
        call.deadline = Some(now + LINGER + open_for);
        let referred = call.referred.take();
        let open = call.change.as_ref().and_then(|change| change.transaction.clone());
        self.release_offer(key);
        self.call_changed(key);
        if let Some(tx) = open {
            // The other side has no reason to answer it any more.
            self.client_cancelled(now, &tx);
        }
        if let Some(referral) = referred {
            self.reply(now, &referral.transaction, 487, "", &[]);
        }
        self.event(key, CallEvent::Ended(end));
    }
}
