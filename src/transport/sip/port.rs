//! SIP as the port of a call: events of its dialog become signals and media plans, controls become orders to the
//! endpoint. The live engine, the simulator and the far side of load tests drive the same one.

mod branches;
mod media;
mod notices;
mod transfers;

use std::collections::VecDeque;

use ringer_base::guard::{Blocked, Guard};
use ringer_media::call::{ChannelEvent, Control, EndDetail, HangupCause, Onward, RemoteEnd, RemoteKind, Signal};
use ringer_media::leg::MediaParams;
use ringer_sip::sdp::{Negotiated, Offer};
use ringer_sip::{CallEnd, CallEvent, EndKind, Reach, Transport};

use self::branches::Branches;
use self::media::negotiate;
use super::media_names::{Dialog, Found, Names};
use super::order::{Lookup, SipAction, SipOrder};
use super::sdp::{self, MediaPlan};
use super::transfer::Transfers;
use crate::peer::{PeerInfo, PortOutput, Refusal};
use crate::sockets::Stranger;

/// Returns the name of the signalling by this transport.
pub fn protocol(transport: Transport) -> &'static str {
    match transport {
        Transport::Udp => "SIP/UDP",
        Transport::Tcp => "SIP/TCP",
        Transport::Tls => "SIP/TLS",
    }
}

/// Q.850 cause and text of a normal end.
const NORMAL: (u16, &str) = (16, "Normal call clearing");
/// Q.850 cause and text of an end by a timer.
const TIMER: (u16, &str) = (102, "Recovery on timer expiry");
/// Q.850 cause and text where offer and answer have nothing in common.
const INCOMPATIBLE: (u16, &str) = (88, "Incompatible destination");

/// The SIP side of one call.
#[derive(Debug)]
pub struct SipPort {
    guard: Guard,
    out: VecDeque<PortOutput<SipAction>>,
    peer: PeerInfo,
    /// An incoming call's answer and the media that it means, until it is given.
    answer: Option<(String, Negotiated)>,
    /// True if the answer goes out as soon as the name of its media is looked up.
    is_answering: bool,
    /// Offer of this side to a caller that made none. It goes into the 200, and the answer comes in the ACK (RFC 3261
    /// 13.2.1).
    own_offer: Option<String>,
    /// The answer to it, where that came with a PRACK.
    own_answer: Option<String>,
    /// Terms for the offer of the other side, where the INVITE had none.
    supported: Option<Offer>,
    branches: Branches,
    names: Names,
    is_up: bool,
    /// True while the other side has put this one on hold.
    is_held: bool,
    /// Media of the session as it was agreed on last.
    in_use: Option<MediaParams>,
    transfers: Transfers,
    /// Events of the timeline from before the call is up.
    kept: Vec<ChannelEvent>,
    /// Address that sends RTP and is not the agreed one.
    stranger: Option<Stranger>,
}

impl SipPort {
    /// Returns the port of a call to `address`, which is being dialled.
    pub fn caller(address: String, guard: Guard) -> SipPort {
        let mut port = SipPort::new(String::new(), guard);
        port.transfers.called = address.as_str().into();
        port.signal(Signal::Dialing { address });
        port
    }

    /// Returns the port that tells of its call to `address`, which holds no secret of the one that is dialled.
    #[must_use]
    pub fn shown_as(mut self, address: String) -> SipPort {
        for output in &mut self.out {
            if let PortOutput::Signal(Signal::Dialing { address: told }) = output {
                told.clone_from(&address);
            }
        }
        self
    }

    /// Has the call dialled without an offer: the other side makes it, and gets an answer of what is `supported`.
    #[must_use]
    pub fn without_offer(self, supported: Offer) -> SipPort {
        SipPort { supported: Some(supported), ..self }
    }

    /// Returns the port of a call that came in with `offer`; `supported` is what this side can do. [`SipPort::answer`]
    /// answers it, or makes the offer where the caller made none.
    ///
    /// # Errors
    /// For a person: no common codec, or media that `guard` does not allow.
    pub fn incoming(call_id: String, offer: Option<&str>, supported: &Offer, guard: Guard) -> Result<SipPort, String> {
        let mut port = SipPort::new(call_id, guard.clone());
        port.send(SipOrder::Limit(Reach::by(move |address| guard.allows(address))));
        let Some(offer) = offer else {
            port.own_offer = Some(supported.session().to_string());
            return Ok(port);
        };
        let (answer, media) = negotiate(offer, supported)?;
        // A name is looked up when the call is answered.
        if media.remote_host.is_none() {
            port.media_plan(&media)?;
        }
        port.answer = Some((answer, media));
        Ok(port)
    }

    fn new(call_id: String, guard: Guard) -> SipPort {
        let peer = PeerInfo { protocol: protocol(Transport::Udp), call_id, ..PeerInfo::default() };
        SipPort {
            guard,
            out: VecDeque::new(),
            peer,
            answer: None,
            is_answering: false,
            own_offer: None,
            own_answer: None,
            supported: None,
            branches: Branches::default(),
            names: Names::default(),
            is_up: false,
            is_held: false,
            in_use: None,
            transfers: Transfers::default(),
            kept: Vec::new(),
            stranger: None,
        }
    }

    /// Sets the transport of the signalling, which is UDP where it is not set.
    pub fn set_transport(&mut self, transport: Transport) {
        self.peer.protocol = protocol(transport);
    }

    /// Tells the user of the result something.
    pub fn warn(&mut self, warning: String) {
        self.out.push_back(PortOutput::Warning(warning));
    }

    /// Sets the Call-ID of a call that was dialled.
    pub fn set_call_id(&mut self, call_id: &str) {
        self.peer.call_id = call_id.to_owned();
    }

    /// Says that an incoming call rings.
    pub fn ring(&mut self) {
        self.send(SipOrder::Ring(180, None));
    }

    /// Answers an incoming call; a second time it does nothing. A name of its media is looked up before; where it leads
    /// nowhere the call is refused.
    pub fn answer(&mut self) {
        if let Some(offer) = &self.own_offer {
            let order = SipOrder::Answer(offer.clone());
            return self.send(order);
        }
        if self.is_answering {
            return;
        }
        let host = self.answer.as_ref().and_then(|(_, media)| media.remote_host.clone());
        self.is_answering = host.is_some_and(|host| self.looks_for(&host));
        if self.is_answering {
            return;
        }
        let Some((answer, media)) = self.answer.take() else { return };
        match self.media_plan(&media) {
            Ok(plan) => {
                self.send(SipOrder::Answer(answer));
                self.connect(200, plan, media.on_hold);
            }
            Err(text) => {
                self.send(Refusal::NoMedia.into());
                self.end_without_media(text);
            }
        }
    }

    /// Takes an event of the dialog. One that names its media by a host name waits until that is looked up, and so do
    /// those behind it; but nothing waits once the call is over.
    pub fn receive(&mut self, event: CallEvent) {
        self.receive_of(Dialog::Call, event);
    }

    fn receive_of(&mut self, of: Dialog, event: CallEvent) {
        if matches!(event, CallEvent::Ended(_)) {
            self.names.forget(of);
        } else if self.names.is_looking() {
            if !self.names.keep(of, event) {
                self.media_found(Err(Blocked::NoAddress));
            }
            return;
        } else if let Some(host) = self.media_host(&event).filter(|host| self.looks_for(host)) {
            tracing::debug!(host, "the name of the media is looked up");
            self.names.keep(of, event);
            return;
        }
        match of {
            Dialog::Call => self.take(event),
            Dialog::Target => self.take_target(event),
        }
    }

    /// Takes the address of the name that [`SipAction::LocateMedia`] asks for, and goes on with what waited for it.
    pub fn media_found(&mut self, found: Found) {
        if !self.names.is_looking() {
            return;
        }
        let waited = self.names.take_result(found);
        let is_for = |dialog| waited.iter().any(|(of, _)| *of == dialog);
        if let Some((host, address)) = self.names.address() {
            if self.is_answering || is_for(Dialog::Call) {
                self.send(SipOrder::KnowHost(host.clone(), address));
            }
            if is_for(Dialog::Target) {
                self.send_target(SipOrder::KnowHost(host, address));
            }
        }
        if std::mem::take(&mut self.is_answering) {
            self.answer();
        }
        waited.into_iter().for_each(|(of, event)| self.receive_of(of, event));
    }

    fn take(&mut self, event: CallEvent) {
        match event {
            CallEvent::Provisional { code, tag, media, .. } => self.progress(code, &tag, media.as_ref()),
            CallEvent::Answered { code, media, .. } => match self.media_plan(&media) {
                Ok(plan) => self.connect(code, plan, media.on_hold),
                Err(text) => self.hang_up_without_media(text),
            },
            CallEvent::Offered { code, sdp, tag } => self.answer_offer(code, &sdp, &tag),
            CallEvent::Renegotiated { media, .. } if self.answer.is_some() => self.change_early(media),
            CallEvent::Renegotiated { media, tag, .. } => {
                self.signal(Signal::SessionAnswered { code: 200 });
                let plan = self.media_plan(&media);
                if self.is_up || plan.map_or(true, |plan| self.branches.learn(&tag, plan)) {
                    self.follow(&media);
                }
            }
            CallEvent::Updated { media: Some(media), .. } if self.answer.is_some() => self.change_early(media),
            CallEvent::Reinvited { media: Some(media), .. } | CallEvent::Updated { media: Some(media), .. } => {
                self.follow(&media);
            }
            CallEvent::Reinvited { code, media: None, .. } | CallEvent::Updated { code, media: None, .. } => {
                self.out.push_back(PortOutput::Warning(format!(
                    "a change of the session was answered with {code}, and all stays as it was"
                )));
            }
            CallEvent::Unchanged { code, why } => {
                if let Some(why) = why {
                    let warning = format!("a change of the session was refused with {code}: {why}");
                    self.out.push_back(PortOutput::Warning(warning));
                }
                self.signal(Signal::SessionAnswered { code });
            }
            CallEvent::Hold(held) => self.hold(held),
            CallEvent::Digit(digit, duration_ms) => self.signal(Signal::Digit { digit, duration_ms }),
            CallEvent::DigitRefused(_) => self.signal(Signal::DigitRefused),
            CallEvent::Transfer { to, referred_by } => self.asked_to_transfer(&to, referred_by),
            CallEvent::Redirected { target } => self.follow_redirect(target, Lookup::Redirect),
            CallEvent::Ended(end) => {
                self.answer = None;
                self.take_end(remote_end(&end));
            }
            CallEvent::Confirmed { sdp } => {
                let answer = sdp.or_else(|| self.own_answer.take());
                self.confirmed_offer(answer.as_deref());
            }
            CallEvent::Message { content_type, text } => {
                let length = text.len();
                let message =
                    format!("a SIP MESSAGE of {length} bytes ({content_type}) came in the call and was answered 200");
                self.out.push_back(PortOutput::Warning(message));
            }
            CallEvent::Notice(notice) => self.take_notice(&notice),
            CallEvent::ConnectionLost => {
                let sentence = "the SIP connection of the call was lost; its next request opens another one";
                self.out.push_back(PortOutput::Warning(sentence.to_owned()));
            }
            CallEvent::RingConfirmed { sdp: Some(answer) } => self.own_answer = Some(answer),
            CallEvent::Incoming { .. } | CallEvent::Trying | CallEvent::RingConfirmed { sdp: None } => {}
        }
    }

    /// Takes a control of the Call.
    pub fn control(&mut self, control: &Control) {
        if self.control_transfer(control) {
            return;
        }
        let order = match *control {
            Control::Cancel | Control::CancelTarget => SipOrder::Hangup(NORMAL.0, NORMAL.1),
            Control::Hangup(HangupCause::Normal | HangupCause::Shutdown | HangupCause::Fault) => {
                SipOrder::Hangup(NORMAL.0, NORMAL.1)
            }
            Control::Hangup(HangupCause::Timer) => SipOrder::Hangup(TIMER.0, TIMER.1),
            Control::Digit { digit, duration_ms } => SipOrder::Digit(digit, duration_ms),
            Control::Transfer(answer) => SipOrder::Transfer(answer == Onward::Leave),
        };
        self.send(order);
    }

    /// Returns the next output.
    pub fn poll(&mut self) -> Option<PortOutput<SipAction>> {
        self.out.pop_front()
    }

    /// Returns the other side, as far as it is known.
    pub fn peer(&self) -> &PeerInfo {
        &self.peer
    }

    /// Takes the answer in the ACK to this side's own offer, where it made one.
    fn confirmed_offer(&mut self, answer: Option<&str>) {
        let Some(offer) = self.own_offer.take() else { return };
        let negotiated = match answer {
            Some(answer) => ringer_sip::sdp::read_answer(&offer, answer).map_err(|refusal| refusal.to_string()),
            None => Err("the ACK has no answer to the offer of the 200".to_owned()),
        };
        match negotiated.and_then(|media| Ok((self.media_plan(&media)?, media.on_hold))) {
            Ok((plan, held)) => self.connect(200, plan, held),
            Err(text) => self.hang_up_without_media(text),
        }
    }

    /// Tells that the call is up; `held`: the answer or the offer puts this side on hold.
    fn connect(&mut self, code: u16, plan: MediaPlan, held: bool) {
        self.is_up = true;
        self.branches.end();
        self.go_there(&plan);
        self.signal(Signal::Answered { code, leg: plan.media.into(), text: true });
        self.tell_kept();
        self.hold(held);
    }

    /// Tells hold and its end, once the call is up.
    fn hold(&mut self, held: bool) {
        if self.is_up && std::mem::replace(&mut self.is_held, held) != held {
            self.signal(Signal::Hold(held));
        }
    }

    /// Follows a change of the session that one side asked for and the other one took.
    fn follow(&mut self, media: &Negotiated) {
        match self.media_plan(media) {
            Ok(plan) => {
                let before = self.peer.codec;
                self.note_agreement(&plan);
                self.tell_codec(before);
                self.lead_to(&plan);
                self.signal(Signal::Renegotiated { leg: plan.media.into() });
                self.hold(media.on_hold);
            }
            Err(why) => {
                let warning = format!("the session was changed and is not followed: {why}");
                self.out.push_back(PortOutput::Warning(warning));
            }
        }
    }

    /// Sends media as `plan` says from now on.
    fn go_there(&mut self, plan: &MediaPlan) {
        self.note_agreement(plan);
        self.peer.codec = Some(plan.media.codec.name());
        self.lead_to(plan);
    }

    /// Has media go to the address of `plan`. The old way of putting on hold names none (RFC 3264 8.4): audio goes
    /// where it went, or nowhere.
    fn lead_to(&mut self, plan: &MediaPlan) {
        if !plan.rtp.ip().is_unspecified() {
            self.peer.address = Some(plan.rtp.to_string());
            self.act(SipAction::Media(*plan));
        }
    }

    fn note_agreement(&mut self, plan: &MediaPlan) {
        self.in_use = Some(plan.media);
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
        self.within(sdp::media_plan(&self.names.settle(media)?)?)
    }

    fn within(&self, plan: MediaPlan) -> Result<MediaPlan, String> {
        if plan.rtp.ip().is_unspecified() {
            // Nothing is sent there.
            return Ok(plan);
        }
        match [plan.rtp, plan.rtcp].iter().all(|address| self.guard.allows(address.ip())) {
            true => Ok(plan),
            false => Err("the media address is not allowed".to_owned()),
        }
    }

    fn act(&mut self, action: SipAction) {
        self.out.push_back(PortOutput::Act(action));
    }

    fn send(&mut self, order: SipOrder) {
        self.act(SipAction::Send(order));
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
        EndKind::NoSocket => RemoteKind::NoSocket,
        EndKind::AuthFailed => RemoteKind::AuthFailed,
        EndKind::NoMedia => RemoteKind::NoMedia,
    };
    let detail = EndDetail::Sip { code: end.sip_code, q850_cause: end.q850_cause, retry_after: end.retry_after };
    RemoteEnd { kind, detail, text: end.text.clone() }
}

#[cfg(test)]
mod tests {
    use ringer_base::config::CODECS;

    use super::*;

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
        let describe = |output| match output {
            PortOutput::Act(SipAction::Media(plan)) => format!("media to {}", plan.rtp),
            PortOutput::Signal(Signal::Renegotiated { .. }) => "renegotiated".to_owned(),
            PortOutput::Signal(Signal::EarlyMedia { code, .. }) => format!("early media {code}"),
            PortOutput::Signal(Signal::Ringing { code }) => format!("ringing {code}"),
            PortOutput::Signal(Signal::SessionAnswered { code }) => format!("answered {code}"),
            PortOutput::Warning(warning) => warning,
            other => format!("{other:?}"),
        };
        std::iter::from_fn(|| port.poll()).map(describe).collect()
    }

    #[test]
    fn a_change_is_followed_whoever_asked_for_it() {
        let own = |address: &str| CallEvent::Reinvited { code: 200, sdp: None, media: Some(agreement(address)) };
        let other = |address: &str| CallEvent::Renegotiated {
            sdp: String::new(),
            media: agreement(address),
            tag: String::new(),
        };
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
    fn a_lost_connection_is_said_and_the_call_goes_on() {
        let warning = "the SIP connection of the call was lost; its next request opens another one";
        assert_eq!(outputs(CallEvent::ConnectionLost), [warning]);
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
