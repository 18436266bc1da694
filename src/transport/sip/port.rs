//! SIP as the port of a call: events of its dialog become signals and media plans, controls become orders to the endpoint. The
//! live engine, the simulator and the far side of load tests drive the same one.

use std::collections::VecDeque;
use std::net::SocketAddr;

use ringer_media::call::{Control, RemoteEnd, RemoteKind, Signal};
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
}

impl SipOrder {
    /// Carries the order out.
    pub fn apply(self, endpoint: &mut Endpoint, now: Time, key: CallKey) {
        match self {
            SipOrder::Hangup(q850_cause, text) => endpoint.hangup(now, key, q850_cause, text),
            SipOrder::Ring(code, sdp) => endpoint.ring(now, key, code, sdp),
            SipOrder::Answer(sdp) => endpoint.answer(now, key, sdp),
            SipOrder::Reject(code, q850_cause) => endpoint.reject(now, key, code, q850_cause),
            SipOrder::Digit(digit, duration_ms) => endpoint.send_digit(now, key, digit, duration_ms),
            SipOrder::Resolved(destination) => endpoint.resolved(now, key, destination),
            SipOrder::Transfer(accepted) => endpoint.answer_transfer(now, key, accepted),
        }
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
}

impl SipPort {
    /// Returns the port of a call to `address`, which is being dialled.
    pub fn caller(address: String, guard: Guard) -> SipPort {
        let mut port = SipPort::new(String::new(), guard);
        port.signal(Signal::Dialing { address });
        port
    }

    /// Returns the port of a call that came in with `offer`; `supported` is what this side can do. [`SipPort::answer`] answers it.
    ///
    /// # Errors
    /// For a person: no offer, no common codec, or media that `guard` does not allow.
    pub fn incoming(call_id: String, offer: Option<&str>, supported: &Offer, guard: Guard) -> Result<SipPort, String> {
        let offer = offer.ok_or("the INVITE has no offer")?;
        let (answer, plan) = sdp::answer(offer, supported)?;
        let mut port = SipPort::new(call_id, guard);
        port.answer = Some((answer, port.within(plan)?));
        Ok(port)
    }

    fn new(call_id: String, guard: Guard) -> SipPort {
        let peer = PeerInfo { protocol: PROTOCOL, call_id, ..PeerInfo::default() };
        SipPort { guard, out: VecDeque::new(), peer, answer: None }
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
                    self.signal(Signal::EarlyMedia { code, media: plan.media });
                }
                _ => self.signal(Signal::Ringing { code }),
            },
            CallEvent::Answered { code, media, .. } => match self.media_plan(&media) {
                Ok(plan) => self.connect(code, plan),
                Err(text) => {
                    self.send(SipOrder::Hangup(INCOMPATIBLE.0, INCOMPATIBLE.1));
                    self.signal(Signal::Ended(RemoteEnd { text, kind: RemoteKind::NoMedia, ..Default::default() }));
                }
            },
            CallEvent::Renegotiated { media, .. } => self.renegotiated(&media),
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
            CallEvent::Incoming { .. }
            | CallEvent::Trying
            | CallEvent::Confirmed { .. }
            | CallEvent::RingConfirmed { .. }
            | CallEvent::Message { .. }
            | CallEvent::Reinvited { .. }
            | CallEvent::Updated { .. }
            | CallEvent::Offered { .. } => {}
        }
    }

    /// Takes a control of the Call.
    pub fn control(&mut self, control: &Control) {
        let order = match *control {
            Control::Cancel => SipOrder::Hangup(NORMAL.0, NORMAL.1),
            Control::Hangup { q850_cause } if q850_cause == TIMER.0 => SipOrder::Hangup(TIMER.0, TIMER.1),
            Control::Hangup { q850_cause } => SipOrder::Hangup(q850_cause, NORMAL.1),
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

    fn connect(&mut self, code: u16, plan: MediaPlan) {
        self.agreed(&plan);
        self.peer.codec = Some(plan.media.codec.name());
        self.peer.address = Some(plan.rtp.to_string());
        self.out.push_back(PortOutput::Media(plan));
        self.signal(Signal::Answered { code, media: plan.media, text: true });
    }

    /// The other side changed the session. The old way of putting on hold names no address (RFC 3264 8.4): audio goes where it
    /// went.
    fn renegotiated(&mut self, media: &Negotiated) {
        self.signal(Signal::SessionAnswered { code: 200 });
        let names_no_address = media.remote_rtp.ip().is_unspecified();
        let plan = if names_no_address { sdp::media_plan(media) } else { self.media_plan(media) };
        match plan {
            Ok(plan) => {
                self.agreed(&plan);
                if !names_no_address {
                    self.peer.address = Some(plan.rtp.to_string());
                    self.out.push_back(PortOutput::Media(plan));
                }
                self.signal(Signal::Renegotiated { media: plan.media });
            }
            Err(why) => {
                let warning = format!("the session was changed and is not followed: {why}");
                self.out.push_back(PortOutput::Warning(warning));
            }
        }
    }

    fn agreed(&mut self, plan: &MediaPlan) {
        self.peer.profile = Some(if plan.media.srtp.is_some() { "RTP/SAVP" } else { "RTP/AVP" });
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
        EndKind::RemoteBye | EndKind::DialogLost | EndKind::SessionExpired => RemoteKind::Bye,
        EndKind::Refused | EndKind::Cancelled | EndKind::LocalHangup => RemoteKind::Refused,
        EndKind::Timeout | EndKind::NotReachable => RemoteKind::Unreachable,
        EndKind::AuthFailed => RemoteKind::AuthFailed,
        EndKind::NoMedia => RemoteKind::NoMedia,
    };
    RemoteEnd {
        sip_code: end.sip_code,
        q850_cause: end.q850_cause,
        text: end.text.clone(),
        kind,
        retry_after: end.retry_after,
    }
}
