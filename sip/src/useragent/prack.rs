//! Reliable provisional responses and their PRACK, both ways (RFC 3262).

use std::time::Duration;

use crate::call::{Call, CallEnd, CallEvent, CallStage, EndKind, Repeated, Waiting, has_tag};
use crate::endpoint::Endpoint;
use crate::ids::{CallKey, TransactionKey};
use crate::message::{Headers, Method, Request, Response, sdp_of};
use crate::sdp;
use crate::time::Time;

/// Largest number of provisional responses of one call that wait for the PRACK of the one before; more are left out.
const MAX_WAITING: usize = 8;

/// Largest number of PRACKs of one call without a response; a provisional response beyond is taken when it is repeated.
const MAX_PRACKS: u32 = 16;

impl Endpoint {
    /// Sends a provisional response, 101 to 199, with an early answer or without. Nothing happens once a final response
    /// was sent. It is reliable when the caller requires that, or when it has the offer; one then goes after the other.
    /// [`CallEvent::RingConfirmed`] tells its PRACK. An offer that cannot be sent reliably is left out, and so is a
    /// description after one that was sent reliably.
    pub fn ring(&mut self, now: Time, call: CallKey, code: u16, sdp: Option<String>) {
        let Some(state) = self.calls.get_mut(&call) else { return };
        if !(101..200).contains(&code) || state.stage != CallStage::Pending || state.is_caller() {
            return;
        }
        let ringing = &mut state.ringing;
        let sdp = sdp.filter(|_| !ringing.described);
        let reliable = ringing.required || (sdp.is_some() && !ringing.offered && ringing.supported);
        let sdp = sdp.filter(|_| reliable || ringing.offered);
        if ringing.answer.is_some() {
            return;
        }
        if reliable && ringing.is_busy() {
            if ringing.queue.len() < MAX_WAITING {
                ringing.queue.push_back((code, sdp));
            }
            return;
        }
        if let Some(sdp) = &sdp {
            state.local_sdp.clone_from(sdp);
            state.in_use.clone_from(sdp);
        }
        if reliable {
            self.ring_reliably(now, call, code, sdp.as_deref());
        } else {
            self.respond(now, call, code, sdp.as_deref(), &[]);
        }
    }

    fn ring_reliably(&mut self, now: Time, key: CallKey, code: u16, sdp: Option<&str>) {
        let first = self.calls.get(&key).is_some_and(|call| call.ringing.rseq == 0);
        let first = if first { 1 + self.ids.draw((1 << 31) - 1) as u32 } else { 0 };
        let Some(call) = self.calls.get_mut(&key) else { return };
        let rseq = if first > 0 { first } else { call.ringing.rseq.wrapping_add(1).max(1) };
        let headers = [("Require", "100rel".to_owned()), ("RSeq", rseq.to_string())];
        let Some((bytes, to)) = self.respond(now, key, code, sdp, &headers) else { return };
        if let Some(call) = self.calls.get_mut(&key) {
            let repeated = Some(Repeated::new(now, bytes, to, Duration::MAX));
            call.ringing.rseq = rseq;
            call.ringing.described |= sdp.is_some();
            call.ringing.waiting = Some(Waiting { rseq, described: sdp.is_some(), repeated });
        }
        self.call_changed(key);
    }

    /// Runs the timer of a reliable response: it is sent again, or the call is refused because no PRACK came (RFC 3262
    /// 3).
    pub(super) fn ringing_timer(&mut self, now: Time, key: CallKey) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        let Some(repeated) = call.ringing.waiting.as_mut().and_then(|waiting| waiting.repeated.as_mut()) else {
            return;
        };
        if repeated.deadline <= now {
            self.respond(now, key, 504, None, &[]);
            let end = CallEnd::new(EndKind::Timeout, "No PRACK within 32 s");
            return self.end(now, key, CallEnd { sip_code: Some(504), ..end });
        }
        if let Some((to, bytes)) = repeated.again(now) {
            self.send(to, bytes);
        }
    }

    /// Handles the PRACK of a reliable response, with the answer to its offer, or with another offer.
    pub(super) fn prack_received(&mut self, now: Time, tx: &TransactionKey, key: CallKey, request: &Request) {
        let rack = request.headers.get("RAck").and_then(rack);
        let Some(call) = self.calls.get_mut(&key) else { return };
        let seq = call.invite_seq;
        let Some(waiting) = call.ringing.waiting.take_if(|waiting| rack == Some((waiting.rseq, seq))) else {
            return self.reply(now, tx, 481, "", &[]);
        };
        call.ringing.confirmed = true;
        self.call_changed(key);
        let sdp = sdp_of(&request.headers, &request.body);
        let description = self.prack_description(now, tx, key, waiting.described, request, sdp);
        let Some(call) = self.calls.get_mut(&key).filter(|call| call.stage == CallStage::Pending) else { return };
        let (answer, next) = (call.ringing.answer.take(), call.ringing.queue.pop_front());
        self.event(key, CallEvent::RingConfirmed { sdp: description });
        if let Some(sdp) = answer {
            self.answer(now, key, sdp);
        } else if let Some((code, sdp)) = next {
            self.ring(now, key, code, sdp);
        }
        self.start_change(now, key);
    }

    /// Answers a PRACK, whose `sdp` is the answer to this side's offer (which is returned) or an offer of its own.
    fn prack_description(
        &mut self,
        now: Time,
        tx: &TransactionKey,
        key: CallKey,
        described: bool,
        request: &Request,
        sdp: Option<String>,
    ) -> Option<String> {
        let call = self.calls.get_mut(&key)?;
        let answers = described && !call.ringing.offered;
        if answers {
            let Some(media) = sdp.as_deref().and_then(|sdp| sdp::read_answer(&call.local_sdp, sdp).ok()) else {
                self.reply(now, tx, 488, "", &[]);
                self.respond(now, key, 488, None, &[]);
                let end = CallEnd::new(EndKind::NoMedia, "PRACK without a usable answer to the offer before it");
                self.end(now, key, CallEnd { sip_code: Some(488), ..end });
                return None;
            };
            call.take(media);
            call.ringing.settled = true;
            self.reply(now, tx, 200, "", &[]);
            return sdp;
        }
        call.ringing.settled |= described;
        let Some(offer) = sdp else {
            self.reply(now, tx, 200, "", &[]);
            return None;
        };
        let settled = call.ringing.settled && call.stage == CallStage::Pending;
        match settled.then(|| call.reanswer(0, &offer)) {
            Some(Ok((own, media))) => {
                self.respond_in_dialog(now, tx, key, request, Some(&own), &[]);
                if let Some(call) = self.calls.get_mut(&key) {
                    call.use_description(0, &own);
                }
                self.renegotiated(key, 0, media, offer);
            }
            _ => self.reply(now, tx, 488, "", &[]),
        }
        None
    }

    // --- the caller's side
    // ----------------------------------------------------------------------------------------------

    /// Sends the PRACK of the reliable response with this RSeq number to the INVITE with `seq`, with the answer to its
    /// offer or without.
    pub(super) fn send_prack(
        &mut self,
        now: Time,
        key: CallKey,
        at: usize,
        (rseq, seq): (u32, u32),
        sdp: Option<&str>,
    ) {
        let sent = self.send_in_dialog(now, key, at, Method::Prack, |request| {
            request.headers.push("RAck", format!("{rseq} {seq} INVITE"));
            if let Some(sdp) = sdp {
                request.set_sdp(sdp);
            }
        });
        if let (Some(_), Some(call)) = (sent, self.calls.get_mut(&key)) {
            call.pracks += 1;
        }
    }

    /// Handles a response to a PRACK of this side.
    pub(crate) fn prack_response(&mut self, now: Time, key: CallKey, tx: &TransactionKey, response: &Response) {
        if response.code >= 200 && self.signed_again(now, key, tx, response).is_none() {
            self.prack_done(key);
        }
    }

    /// Counts a PRACK of this side as done, answered or not.
    pub(crate) fn prack_done(&mut self, key: CallKey) {
        if let Some(call) = self.calls.get_mut(&key) {
            call.pracks = call.pracks.saturating_sub(1);
        }
    }
}

impl Call {
    /// Takes a reliable response in one of the dialogs: false for a repetition, for one that came before its turn, and
    /// while too many PRACKs are on their way (RFC 3262 4).
    pub(super) fn take_reliable(&mut self, at: usize, seq: u32, rseq: u32) -> bool {
        let Some(fork) = self.dialogs.get_mut(at) else { return false };
        let in_turn = match fork.rseq {
            Some((last_seq, last)) if last_seq == seq => last.checked_add(1) == Some(rseq),
            _ => true,
        };
        let taken = in_turn && self.pracks < MAX_PRACKS;
        if taken {
            fork.rseq = Some((seq, rseq));
        }
        taken
    }
}

/// Returns the RSeq number of a provisional response; `None` when it is not reliable.
pub(super) fn rseq(headers: &Headers) -> Option<u32> {
    let number = headers.get("RSeq")?.trim().parse().ok().filter(|number| *number > 0);
    number.filter(|_| has_tag(headers, "Require"))
}

/// Returns RSeq and CSeq number of a RAck value about an INVITE.
fn rack(value: &str) -> Option<(u32, u32)> {
    let mut words = value.split_whitespace();
    let numbers = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (words.next() == Some("INVITE") && words.next().is_none()).then_some(numbers)
}
