//! Orders to the SIP endpoint, and the other actions that the port of a SIP call asks of its driver.

use std::net::IpAddr;

use ringer_sip::{CallKey, Endpoint, Hop, Reach, Time};

use super::address::Address;
use super::sdp::MediaPlan;
use super::transfer::TargetCall;
use crate::peer::Refusal;

/// Action of the port of a SIP call.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a media plan comes a few times in a call, and is carried out at once")]
pub enum SipAction {
    /// Order to the endpoint about the dialog of the call.
    Send(SipOrder),
    /// Order to the endpoint about the dialog with the target of a transfer.
    SendTarget(SipOrder),
    /// Media go there from now on; stands before the signal that says so.
    Media(MediaPlan),
    /// Look up this host, which media go to, and tell the port's `media_found`; nothing is signalled before.
    LocateMedia(String),
    /// Look this address up, and tell whoever waits for it.
    Locate(Address, Lookup),
    /// Call this target of a transfer beside the call: a second dialog, of which the port's `receive_target` hears.
    Dial(Box<TargetCall>),
    /// The dialog with the target is the one of the call from now on; what happens in the old one is no news any more.
    Switch,
}

/// Purposes of an address that is looked up.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The call was redirected there: [`SipOrder::Resolved`] takes it.
    Redirect,
    /// The call to the target of a transfer was redirected there: [`SipOrder::Resolved`] takes it, in that dialog.
    TargetRedirect,
    /// The other side asks for a transfer there: the port's `take_address` takes it.
    Transfer,
}

/// An order to the SIP endpoint about one call.
#[derive(Clone, Debug, PartialEq)]
pub enum SipOrder {
    /// CANCEL, BYE or a rejection, with this Q.850 cause and its text.
    Hangup(u16, &'static str),
    /// Provisional response with this status, 180 or 183.
    Ring(u16, Option<String>),
    /// 200 with this SDP.
    Answer(String),
    /// A refusal with this status and Q.850 cause.
    Reject(u16, Option<u16>),
    /// A refusal with this status and these header fields.
    RejectWith(u16, Vec<(&'static str, String)>),
    /// INFO with a digit and its length in milliseconds.
    Digit(char, u32),
    /// Address of the target of a redirect; `None` ends the call.
    Resolved(Vec<Hop>),
    /// Answer to a REFER: 202 that ends the call, or 603.
    Transfer(bool),
    /// 202 to a REFER that is followed, with NOTIFY of 100.
    AcceptTransfer,
    /// NOTIFY of this status of a transfer that is followed; true if it is the last.
    Notify(u16, bool),
    /// REFER to this address, with these further header fields; nothing where the call is not up.
    Refer(String, Vec<(&'static str, String)>),
    /// re-INVITE with this offer; nothing where the call is not up, or another one is not answered yet.
    Reinvite(String),
    /// UPDATE with this offer, or without; as [`SipOrder::Reinvite`].
    Update(Option<String>),
    /// Answer to the offer that the other side made in place of this one.
    AnswerOffer(String),
    /// Limits the addresses that the other side may name.
    Limit(Reach),
    /// Address of a host name that the other side gave for its media.
    KnowHost(String, IpAddr),
}

impl SipOrder {
    /// Carries the order out.
    ///
    /// Returns false for a change of the session or a transfer that cannot be asked for now. The call is not up, or
    /// another change is open.
    pub fn apply(self, endpoint: &mut Endpoint, now: Time, key: CallKey) -> bool {
        match self {
            SipOrder::Hangup(q850_cause, text) => endpoint.hangup(now, key, q850_cause, text),
            SipOrder::Ring(code, sdp) => endpoint.ring(now, key, code, sdp),
            SipOrder::Answer(sdp) => endpoint.answer(now, key, sdp),
            SipOrder::Reject(code, q850_cause) => endpoint.reject(now, key, code, q850_cause),
            SipOrder::RejectWith(code, headers) => endpoint.reject_with(now, key, code, &headers),
            SipOrder::Digit(digit, duration_ms) => endpoint.send_digit(now, key, digit, duration_ms),
            SipOrder::Resolved(hops) => endpoint.take_destinations(now, key, hops),
            SipOrder::Transfer(accepted) => endpoint.answer_transfer(now, key, accepted),
            SipOrder::AcceptTransfer => endpoint.accept_transfer(now, key),
            SipOrder::Notify(code, is_final) => endpoint.notify(now, key, code, is_final),
            SipOrder::Refer(to, headers) => return endpoint.refer(now, key, &to, &headers),
            SipOrder::Reinvite(offer) => return endpoint.reinvite(now, key, offer),
            SipOrder::Update(offer) => return endpoint.update(now, key, offer),
            // An offer that is not there any more needs no answer.
            SipOrder::AnswerOffer(sdp) => drop(endpoint.answer_offer(now, key, sdp)),
            SipOrder::KnowHost(host, address) => endpoint.know_host(key, host, address),
            SipOrder::Limit(reach) => endpoint.limit_reach(key, reach),
        }
        true
    }
}

/// Seconds after which a caller may try a side again that takes no calls for now.
const RETRY_AFTER_S: u32 = 60;

impl SipOrder {
    /// Returns the answer that sends a caller to `user` at another host and port (302).
    pub fn redirect(user: &str, to: &str) -> SipOrder {
        SipOrder::RejectWith(302, vec![("Contact", format!("<sip:{user}@{to}>"))])
    }
}

impl From<Refusal> for SipOrder {
    /// Status codes of RFC 3261 21 with causes of ITU-T Q.850.
    fn from(refusal: Refusal) -> SipOrder {
        let (code, q850_cause) = match refusal {
            Refusal::Busy => (486, Some(17)),
            Refusal::Forbidden => (403, Some(21)),
            Refusal::NotFound => (404, Some(1)),
            Refusal::NoAnswer => (480, Some(19)),
            Refusal::NoMedia => (488, None),
            Refusal::Failure => (500, Some(41)),
            Refusal::Draining => {
                return SipOrder::RejectWith(503, vec![("Retry-After", RETRY_AFTER_S.to_string())]);
            }
        };
        SipOrder::Reject(code, q850_cause)
    }
}
