//! SIP as the port of a call: events of its dialog become signals and media plans, controls become orders to the endpoint. The
//! live engine, the simulator and the far side of load tests drive the same one.

use std::collections::VecDeque;
use std::net::SocketAddr;

use ringer_media::call::{Control, EndDetail, HangupCause, RemoteEnd, RemoteKind, Signal};
use ringer_sip::sdp::{Negotiated, Offer};
use ringer_sip::{CallEnd, CallEvent, CallKey, EndKind, Endpoint, Time};

use super::sdp;
use crate::provider::guard::Guard;
use crate::transport::port::{MediaPlan, PeerInfo, PortOutput, Refusal, ToPeer};

/// Name of this signalling.
pub const PROTOCOL: &str = "SIP/UDP";

/// Q.850 cause and text of a normal end.
const NORMAL: (u16, &str) = (16, "Normal call clearing");
/// Q.850 cause and text of an end by a timer.
const TIMER: (u16, &str) = (102, "Recovery on timer expiry");
/// Q.850 cause and text where offer and answer have nothing in common.
const INCOMPATIBLE: (u16, &str) = (88, "Incompatible destination");

/// An order to the SIP endpoint about one call.
#[derive(Clone, Debug, PartialEq)]
pub enum SipOrder {
    /// CANCEL, BYE or a rejection, with this Q.850 cause and its text.
    Hangup(u16, &'static str),
    /// 180 or 183.
    Ring(u16, Option<String>),
    /// 200 with this SDP.
    Answer(String),
    /// A refusal with this status and Q.850 cause.
    Reject(u16, Option<u16>),
    /// INFO with a digit of so many milliseconds.
    Digit(char, u32),
    /// Address of the target of a redirect; `None` ends the call.
    Resolved(Option<SocketAddr>),
    /// Answer to a REFER.
    Transfer(bool),
    /// re-INVITE with this offer; nothing where the call is not up, or another one is not answered yet.
    Reinvite(String),
}

impl SipOrder {
    /// Carries the order out.
    ///
    /// Returns false for a change of the session that cannot be asked for now: the call is not up, or another change is open.
    pub fn apply(self, endpoint: &mut Endpoint, now: Time, key: CallKey) -> bool {
        match self {
            SipOrder::Hangup(q850_cause, text) => endpoint.hangup(now, key, q850_cause, text),
            SipOrder::Ring(code, sdp) => endpoint.ring(now, key, code, sdp),
            SipOrder::Answer(sdp) => endpoint.answer(now, key, sdp),
            SipOrder::Reject(code, q850_cause) => endpoint.reject(now, key, code, q850_cause),
            SipOrder::Digit(digit, duration_ms) => endpoint.send_digit(now, key, digit, duration_ms),
            SipOrder::Resolved(destination) => endpoint.resolved(now, key, destination),
            SipOrder::Transfer(accepted) => endpoint.answer_transfer(now, key, accepted),
            SipOrder::Reinvite(offer) => return endpoint.reinvite(now, key, offer),
        }
        true
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
        };
        SipOrder::Reject(code, q850_cause)
    }
}

/// The SIP side of one call.
#[derive(Debug)]
pub struct SipPort {
    guard: Guard,
    out: VecDeque<PortOutput>,
    peer: PeerInfo,
    /// An incoming call's answer and the media that it means, until it is given.
    answer: Option<(String, MediaPlan)>,
    /// The offer of this side to a caller that made none: it goes into the 200, and the answer comes in the ACK (RFC 3261 13.2.1).
    own_offer: Option<String>,
}

impl SipPort {
    /// Returns the port of a call to `address`, which is being dialled.
    pub fn caller(address: String, guard: Guard) -> SipPort {
        let mut port = SipPort::new(String::new(), guard);
        port.signal(Signal::Dialing { address });
        port
    }

    /// Returns the port of a call that came in with `offer`; `supported` is what this side can do. [`SipPort::answer`] answers it, or
    /// makes the offer where the caller made none.
    ///
    /// # Errors
    /// For a person: no common codec, or media that `guard` does not allow.
    pub fn incoming(call_id: String, offer: Option<&str>, supported: &Offer, guard: Guard) -> Result<SipPort, String> {
        let mut port = SipPort::new(call_id, guard);
        let Some(offer) = offer else {
            port.own_offer = Some(supported.session().to_string());
            return Ok(port);
        };
        let (answer, plan) = sdp::answer(offer, supported)?;
        port.answer = Some((answer, port.within(plan)?));
        Ok(port)
    }

    fn new(call_id: String, guard: Guard) -> SipPort {
        let peer = PeerInfo { protocol: PROTOCOL, call_id, ..PeerInfo::default() };
        SipPort { guard, out: VecDeque::new(), peer, answer: None, own_offer: None }
    }

    /// Sets the Call-ID of a call that was dialled.
    pub fn dialled(&mut self, call_id: &str) {
        self.peer.call_id = call_id.to_owned();
    }

    /// Says that an incoming call rings.
    pub fn ring(&mut self) {
        self.send(SipOrder::Ring(180, None));
    }

    /// Answers an incoming call; a second time it does nothing.
    pub fn answer(&mut self) {
        if let Some(offer) = &self.own_offer {
            let order = SipOrder::Answer(offer.clone());
            return self.send(order);
        }
        let Some((answer, plan)) = self.answer.take() else { return };
        self.send(SipOrder::Answer(answer));
        self.connect(200, plan);
    }

    /// Takes an event of the dialog.
    pub fn receive(&mut self, event: CallEvent) {
        match event {
            CallEvent::Provisional { code, media, .. } => match media.as_ref().map(|media| self.media_plan(media)) {
                Some(Ok(plan)) => {
                    self.out.push_back(PortOutput::Media(plan));
                    self.signal(Signal::EarlyMedia { code, leg: plan.media.into() });
                }
                Some(Err(why)) => {
                    self.out.push_back(PortOutput::Warning(format!("media before the answer are not followed: {why}")));
                    self.signal(Signal::Ringing { code });
                }
                None => self.signal(Signal::Ringing { code }),
            },
            CallEvent::Answered { code, media, .. } => match self.media_plan(&media) {
                Ok(plan) => self.connect(code, plan),
                Err(text) => {
                    self.send(SipOrder::Hangup(INCOMPATIBLE.0, INCOMPATIBLE.1));
                    self.signal(Signal::Ended(RemoteEnd { text, kind: RemoteKind::NoMedia, ..Default::default() }));
                }
            },
            CallEvent::Renegotiated { media, .. } => {
                self.signal(Signal::SessionAnswered { code: 200 });
                self.follow(&media);
            }
            CallEvent::Reinvited { media: Some(media), .. } | CallEvent::Updated { media: Some(media), .. } => {
                self.follow(&media);
            }
            CallEvent::Reinvited { code, media: None, .. } | CallEvent::Updated { code, media: None, .. } => {
                self.out.push_back(PortOutput::Warning(format!(
                    "a change of the session was answered with {code}, and all stays as it was"
                )));
            }
            CallEvent::Unchanged { code } => self.signal(Signal::SessionAnswered { code }),
            CallEvent::Hold(held) => self.signal(Signal::Hold(held)),
            CallEvent::Digit(digit, duration_ms) => self.signal(Signal::Digit { digit, duration_ms }),
            CallEvent::DigitRefused(_) => self.signal(Signal::DigitRefused),
            CallEvent::Transfer { to } => self.signal(Signal::Transfer { to }),
            CallEvent::Redirected { target } => self.out.push_back(PortOutput::Locate(target.into())),
            CallEvent::Ended(end) => {
                self.answer = None;
                self.signal(Signal::Ended(remote_end(&end)));
            }
            CallEvent::Confirmed { sdp } => self.confirmed_offer(sdp.as_deref()),
            CallEvent::Message { content_type, text } => {
                let length = text.len();
                let told =
                    format!("a SIP MESSAGE of {length} bytes ({content_type}) came in the call and was answered 200");
                self.out.push_back(PortOutput::Warning(told));
            }
            CallEvent::Incoming { .. }
            | CallEvent::Trying
            | CallEvent::RingConfirmed { .. }
            | CallEvent::Offered { .. } => {}
        }
    }

    /// Takes a control of the Call.
    pub fn control(&mut self, control: &Control) {
        let order = match *control {
            Control::Cancel => SipOrder::Hangup(NORMAL.0, NORMAL.1),
            Control::Hangup(HangupCause::Normal) => SipOrder::Hangup(NORMAL.0, NORMAL.1),
            Control::Hangup(HangupCause::Timer) => SipOrder::Hangup(TIMER.0, TIMER.1),
            Control::Digit { digit, duration_ms } => SipOrder::Digit(digit, duration_ms),
            Control::Transfer { accepted } => SipOrder::Transfer(accepted),
        };
        self.send(order);
    }

    /// Returns the next output.
    pub fn poll(&mut self) -> Option<PortOutput> {
        self.out.pop_front()
    }

    /// Returns the other side, as far as it is known.
    pub fn peer(&self) -> &PeerInfo {
        &self.peer
    }

    /// The ACK has the answer to this side's own offer, where it made one.
    fn confirmed_offer(&mut self, answer: Option<&str>) {
        let Some(offer) = self.own_offer.take() else { return };
        let negotiated = match answer {
            Some(answer) => ringer_sip::sdp::read_answer(&offer, answer).map_err(|refusal| refusal.to_string()),
            None => Err("the ACK has no answer to the offer of the 200".to_owned()),
        };
        match negotiated.and_then(|media| self.media_plan(&media)) {
            Ok(plan) => self.connect(200, plan),
            Err(text) => {
                self.send(SipOrder::Hangup(INCOMPATIBLE.0, INCOMPATIBLE.1));
                self.signal(Signal::Ended(RemoteEnd { text, kind: RemoteKind::NoMedia, ..Default::default() }));
            }
        }
    }

    fn connect(&mut self, code: u16, plan: MediaPlan) {
        self.agreed(&plan);
        self.peer.codec = Some(plan.media.codec.name());
        self.peer.address = Some(plan.rtp.to_string());
        self.out.push_back(PortOutput::Media(plan));
        self.signal(Signal::Answered { code, leg: plan.media.into(), text: true });
    }

    /// Follows a change of the session that one side asked for and the other one took. The old way of putting on hold names no
    /// address (RFC 3264 8.4): audio goes where it went.
    fn follow(&mut self, media: &Negotiated) {
        let names_no_address = media.remote_rtp.ip().is_unspecified();
        let plan = if names_no_address { sdp::media_plan(media) } else { self.media_plan(media) };
        match plan {
            Ok(plan) => {
                self.agreed(&plan);
                if !names_no_address {
                    self.peer.address = Some(plan.rtp.to_string());
                    self.out.push_back(PortOutput::Media(plan));
                }
                self.signal(Signal::Renegotiated { leg: plan.media.into() });
            }
            Err(why) => {
                let warning = format!("the session was changed and is not followed: {why}");
                self.out.push_back(PortOutput::Warning(warning));
            }
        }
    }

    fn agreed(&mut self, plan: &MediaPlan) {
        self.peer.profile = Some(match plan.media.srtp {
            _ if plan.handshake.is_some() => "UDP/TLS/RTP/SAVP",
            Some(_) => "RTP/SAVP",
            None => "RTP/AVP",
        });
    }

    /// Ends a call whose media have no keys, or lost them.
    pub fn end_unkeyed(&mut self, kind: RemoteKind, text: String) {
        self.send(SipOrder::Hangup(INCOMPATIBLE.0, INCOMPATIBLE.1));
        self.signal(Signal::Ended(RemoteEnd { text, kind, ..Default::default() }));
    }

    fn media_plan(&self, media: &Negotiated) -> Result<MediaPlan, String> {
        self.within(sdp::media_plan(media)?)
    }

    fn within(&self, plan: MediaPlan) -> Result<MediaPlan, String> {
        match [plan.rtp, plan.rtcp].iter().all(|address| self.guard.allows(address.ip())) {
            true => Ok(plan),
            false => Err("the media address is not allowed".to_owned()),
        }
    }

    fn send(&mut self, order: SipOrder) {
        self.out.push_back(PortOutput::Send(ToPeer::Sip(order)));
    }

    fn signal(&mut self, signal: Signal) {
        self.out.push_back(PortOutput::Signal(signal));
    }
}

/// Returns the end of a dialog in the Call's words.
fn remote_end(end: &CallEnd) -> RemoteEnd {
    let kind = match end.kind {
        EndKind::RemoteBye | EndKind::DialogLost => RemoteKind::Bye,
        EndKind::SessionExpired => RemoteKind::Expired,
        EndKind::Refused | EndKind::Cancelled | EndKind::LocalHangup => RemoteKind::Refused,
        EndKind::Timeout | EndKind::NotReachable => RemoteKind::Unreachable,
        EndKind::AuthFailed => RemoteKind::AuthFailed,
        EndKind::NoMedia => RemoteKind::NoMedia,
    };
    let detail = EndDetail::Sip { code: end.sip_code, q850_cause: end.q850_cause, retry_after: end.retry_after };
    RemoteEnd { kind, detail, text: end.text.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::CODECS;

    /// Returns what both sides agree on, with media of the other side at `address`.
    fn agreement(address: &str) -> Negotiated {
        let host = "192.0.2.1".parse().expect("an address");
        let mine = sdp::offer(&CODECS, host, 4000, 1);
        let theirs = sdp::offer(&CODECS, host, 5000, 2).session().to_string();
        let theirs = theirs.replace("c=IN IP4 192.0.2.1", &format!("c=IN IP4 {address}"));
        ringer_sip::sdp::read_answer(&mine.session().to_string(), &theirs).expect("they agree")
    }

    /// Outputs of a port that takes `event`, in a word each.
    fn outputs(event: CallEvent) -> Vec<String> {
        let guard = Guard::by(|address| address.to_string() != "192.0.2.99");
        let mut port = SipPort::caller("sip:a@b".to_owned(), guard);
        port.poll().expect("it dials");
        port.receive(event);
        let told = |output| match output {
            PortOutput::Media(plan) => format!("media to {}", plan.rtp),
            PortOutput::Signal(Signal::Renegotiated { .. }) => "renegotiated".to_owned(),
            PortOutput::Signal(Signal::EarlyMedia { code, .. }) => format!("early media {code}"),
            PortOutput::Signal(Signal::Ringing { code }) => format!("ringing {code}"),
            PortOutput::Signal(Signal::SessionAnswered { code }) => format!("answered {code}"),
            PortOutput::Warning(warning) => warning,
            other => format!("{other:?}"),
        };
        std::iter::from_fn(|| port.poll()).map(told).collect()
    }

    #[test]
    fn a_change_is_followed_whoever_asked_for_it() {
        let own = |address: &str| CallEvent::Reinvited { code: 200, sdp: None, media: Some(agreement(address)) };
        let other = |address: &str| CallEvent::Renegotiated { sdp: String::new(), media: agreement(address) };
        let refused = |code| CallEvent::Reinvited { code, sdp: None, media: None };
        let ignored = "the session was changed and is not followed: the media address is not allowed";
        let check = |event: CallEvent, expect: &[&str]| assert_eq!(outputs(event.clone()), expect, "{event:?}");
        check(own("192.0.2.7"), &["media to 192.0.2.7:5000", "renegotiated"]);
        check(other("192.0.2.7"), &["answered 200", "media to 192.0.2.7:5000", "renegotiated"]);
        check(own("0.0.0.0"), &["renegotiated"]);
        check(other("0.0.0.0"), &["answered 200", "renegotiated"]);
        check(own("192.0.2.99"), &[ignored]);
        check(other("192.0.2.99"), &["answered 200", ignored]);
        check(refused(488), &["a change of the session was answered with 488, and all stays as it was"]);
    }

    #[test]
    fn early_media_that_cannot_be_followed_are_said() {
        let early = |media| CallEvent::Provisional { code: 183, tag: String::new(), sdp: None, media };
        let ignored = "media before the answer are not followed: the media address is not allowed";
        let check = |media, expect: &[&str]| assert_eq!(outputs(early(media)), expect);
        check(Some(agreement("192.0.2.7")), &["media to 192.0.2.7:5000", "early media 183"]);
        check(Some(agreement("192.0.2.99")), &[ignored, "ringing 183"]);
        check(None, &["ringing 183"]);
    }
}
