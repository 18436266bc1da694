//! Calls whose INVITE has no offer, on the caller's side: the other side offers, and the ACK or the PRACK answers (RFC
//! 3264 4).

use super::reason;
use crate::call::{Call, CallEnd, CallEvent, CallStage, Carrier, EndKind, Offered};
use crate::endpoint::Endpoint;
use crate::ids::CallKey;
use crate::message::{Request, Response};
use crate::sdp::{self, Negotiated, Offer, Session};
use crate::time::Time;
use crate::transaction::T1_64;

impl Endpoint {
    /// Answers [`CallEvent::Offered`] with the description `sdp`, in the ACK or in the PRACK. False, and nothing is
    /// sent, when no offer waits or when `sdp` is no answer to it.
    pub fn answer_offer(&mut self, now: Time, call: CallKey, sdp: String) -> bool {
        let Some(state) = self.calls.get_mut(&call).filter(|state| state.stage != CallStage::Over) else {
            return false;
        };
        let Some(media) = state.offered.as_ref().and_then(|offered| settle(&offered.sdp, &sdp)) else { return false };
        let Some(Offered { at, code, sdp: offer, carrier, .. }) = state.offered.take() else { return false };
        state.describe(at, &sdp);
        state.take(media.clone());
        let call_id = state.call_id.clone();
        let Some(fork) = state.dialogs.get_mut(at) else { return false };
        fork.agreed = Some((offer.clone(), media.clone()));
        let tag = fork.dialog.remote_tag.clone();
        match carrier {
            Carrier::Ack(invite) => {
                state.confirmed = true;
                self.acknowledge(call, at, &invite, Some(&sdp));
                self.event(call, CallEvent::Answered { code, sdp: offer, media, call_id, tag });
                self.start_change(now, call);
            }
            Carrier::Prack(rseq, seq) => self.send_prack(now, call, at, (rseq, seq), Some(&sdp)),
        }
        self.call_changed(call);
        true
    }

    /// Keeps the offer of a reliable provisional response: its PRACK waits for the owner's answer.
    pub(super) fn offer_in_ring(
        &mut self,
        key: CallKey,
        at: usize,
        response: &Response,
        sdp: String,
        rack: (u32, u32),
    ) {
        let offered = Offered { at, code: response.code, sdp, carrier: Carrier::Prack(rack.0, rack.1), deadline: None };
        self.tell_offer(key, offered);
    }

    /// Keeps the offer of a 2xx: the call is up, and its ACK waits for the owner's answer.
    pub(super) fn offer_in_answer(
        &mut self,
        now: Time,
        key: CallKey,
        at: usize,
        invite: &Request,
        response: &Response,
        sdp: String,
    ) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        (call.stage, call.active) = (CallStage::Up, Some(at));
        call.move_change(at);
        let carrier = Carrier::Ack(Box::new(invite.clone()));
        let deadline = Some(now + T1_64);
        self.tell_offer(key, Offered { at, code: response.code, sdp, carrier, deadline });
        self.call_changed(key);
    }

    fn tell_offer(&mut self, key: CallKey, offered: Offered) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        let tag = call.dialogs.get(offered.at).map(|fork| fork.dialog.remote_tag.clone()).unwrap_or_default();
        let event = CallEvent::Offered { code: offered.code, sdp: offered.sdp.clone(), tag };
        call.offered = Some(offered);
        self.event(key, event);
    }

    /// Sends the waiting ACK without an answer, as the call ends.
    pub(super) fn release_offer(&mut self, key: CallKey) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        let Some(Offered { at, carrier: Carrier::Ack(invite), .. }) = call.offered.take() else { return };
        self.acknowledge(key, at, &invite, None);
    }

    /// Ends the call when the owner did not answer the offer of a 2xx in time.
    pub(super) fn offer_timer(&mut self, now: Time, key: CallKey) {
        let Some(call) = self.calls.get(&key) else { return };
        let Some(at) = call.offered.as_ref().filter(|o| o.deadline.is_some_and(|due| due <= now)).map(|o| o.at) else {
            return;
        };
        self.bye(now, key, at, Some(reason(88, "Incompatible destination")));
        let end = CallEnd::new(EndKind::NoMedia, "The offer was not answered");
        self.end(now, key, CallEnd { q850_cause: Some(88), ..end });
    }
}

impl Call {
    /// True while the ACK of a 2xx in this dialog waits for the owner's answer.
    pub(super) fn ack_waits(&self, at: usize) -> bool {
        self.offered.as_ref().is_some_and(|o| o.at == at && matches!(o.carrier, Carrier::Ack(_)))
    }

    /// Takes an agreement as the one in use.
    pub(super) fn take(&mut self, media: Negotiated) {
        self.on_hold = media.on_hold;
        self.codec = Some((media.codec.clone(), media.clock_rate_hz));
        self.media = Some(media);
    }
}

/// Returns the agreement of the other side's `offer` and this side's `answer`.
fn settle(offer: &str, answer: &str) -> Option<Negotiated> {
    let own = Offer::from_session(&Session::parse(answer).ok()?)?;
    sdp::negotiate(offer, &own).ok().map(|(_, media)| media)
}
