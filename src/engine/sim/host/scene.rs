//! One side's part of a script: its lines are carried out at their times, through the same endpoint and port as all
//! else.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use ringer_media::codec::Codec;
use ringer_media::leg::{LegParams, MediaParams};
use ringer_sip::sdp::{Direction, Negotiated};

use super::branch::Branch;
use super::tone::Tone;
use super::*;
use crate::sim::script::{Change, Hold};
use crate::sim::{SentRtp, redirector};

/// The tone of early media and of music on hold.
pub(super) const TONE_HZ: f64 = 440.0;

/// Everything of a side that only a script asks for.
pub(super) struct Scene {
    actions: VecDeque<(Time, Action)>,
    /// True if a line answers the INVITE, or refuses it.
    answers: bool,
    /// Offer of the INVITE that is being answered.
    offer: Option<String>,
    terms: Terms,
    /// Terms that were offered, and are not answered yet.
    offered: Option<Terms>,
    tone: Option<Tone>,
    /// Further ports that media are taken at.
    ports: Vec<u16>,
    /// True if the last change of the session was this side's.
    is_own_change: bool,
    /// True if one packet leaves in each tick.
    pub is_steady: bool,
    /// Branches of a forked call.
    pub branches: Vec<Branch>,
    /// True if a branch has the call: a proxy would keep back what this side still sends.
    pub is_lost: bool,
    pub sent_rtp: Vec<SentRtp>,
}

/// Terms of the session as this side describes them.
#[derive(Clone, Debug, PartialEq)]
struct Terms {
    /// Address of the media; `None`: this side's own.
    address: Option<IpAddr>,
    port: u16,
    hold: Hold,
    ptime_ms: u32,
    payload_type: Option<u8>,
    codec: Option<Codec>,
}

impl Scene {
    pub(crate) fn new(actions: Vec<(Duration, Action)>, address: SocketAddr) -> Scene {
        let mut branches: Vec<Branch> = Vec::new();
        for (_, action) in &actions {
            if let Action::Branch(number, _) = action
                && branches.iter().all(|branch| branch.number() != *number)
            {
                branches.push(Branch::new(*number, address));
            }
        }
        Scene {
            branches,
            is_lost: false,
            answers: actions.iter().any(|(_, action)| action.is_response() && *action != Action::StopMedia),
            actions: actions.into_iter().map(|(after, action)| (START + after, action)).collect(),
            offer: None,
            terms: Terms {
                address: None,
                port: RTP_PORT,
                hold: Hold::Off,
                ptime_ms: 20,
                payload_type: None,
                codec: None,
            },
            offered: None,
            tone: None,
            ports: Vec::new(),
            is_own_change: false,
            is_steady: true,
            sent_rtp: Vec::new(),
        }
    }

    /// True if the script answers the call that came in with `offer`.
    pub(crate) fn takes_call(&mut self, offer: Option<String>) -> bool {
        self.offer = offer;
        self.answers
    }

    /// Returns the time of the next line or packet; lines that answer an INVITE wait for it.
    pub(crate) fn next(&self, is_called: bool) -> Option<Time> {
        let action = self.actions.front().filter(|(_, action)| is_called || !action.is_response());
        let branches = self.branches.iter().filter_map(Branch::next);
        let tone = self.tone.as_ref().map(|tone| tone.next);
        action.map(|(at, _)| *at).into_iter().chain(tone).chain(branches).min()
    }

    fn due(&mut self, now: Time, is_called: bool) -> Option<Action> {
        let is_due = |(at, action): &mut (Time, Action)| *at <= now && (is_called || !action.is_response());
        self.actions.pop_front_if(is_due).map(|(_, action)| action)
    }

    /// Hands a datagram to the branches: their own, and what a proxy sends to every side. What is cancelled is given
    /// up.
    pub(crate) fn fork(&mut self, arrived: &Arrived, is_to_agent: bool) {
        let is_invite = is_to_agent && arrived.datagram.bytes.starts_with(b"INVITE ") && !self.is_lost;
        let is_cancel = is_to_agent && arrived.datagram.bytes.starts_with(b"CANCEL ");
        for branch in &mut self.branches {
            branch.receive(arrived.at, &arrived.datagram, is_invite);
            if is_cancel {
                branch.lose(arrived.at);
            }
        }
    }

    pub(crate) fn stop_tone(&mut self) {
        self.tone = None;
    }

    /// True if media that come to `port` are taken.
    pub(crate) fn listens_at(&self, port: u16) -> bool {
        self.ports.contains(&port)
    }

    /// True while the Call's own packets are not sent: the other side is on hold.
    pub(crate) fn withholds(&self) -> bool {
        self.terms.hold != Hold::Off
    }

    /// True while this side holds, or is about to by a change that it has offered.
    fn holds_soon(&self) -> bool {
        self.withholds() || self.offered.as_ref().is_some_and(|terms| terms.hold != Hold::Off)
    }

    /// Forgets the change that was offered: it was never sent.
    pub(crate) fn give_up_change(&mut self) {
        self.offered = None;
    }

    /// Takes what both sides agreed on anew.
    pub(crate) fn agree(&mut self, media: &Negotiated, is_own_change: bool) {
        self.is_own_change = is_own_change;
        self.is_steady = media.ptime_ms == 20 && media.direction.sends();
    }

    pub(crate) fn note_sent(&mut self, now: Time, to: SocketAddr, packet: &[u8]) {
        let payload_type = packet.get(1).map_or(0, |byte| byte & 0x7f);
        let payload_bytes = packet.len().saturating_sub(RTP_HEADER);
        self.sent_rtp.push(SentRtp { after_invite: now.since(START), to, payload_type, payload_bytes });
    }
}

/// Bytes of an RTP header without further sources (RFC 3550 5.1).
const RTP_HEADER: usize = 12;

impl Host {
    /// Does what the script says by now.
    pub(super) fn play_scene(&mut self, now: Time) {
        while let Some(scene) = &mut self.scene {
            let is_called = self.key.is_some() || self.socket.as_ref().is_some_and(|socket| socket.is_called());
            let Some(action) = scene.due(now, is_called) else { break };
            self.play(now, action);
        }
        let tone = self.scene.as_mut().and_then(|scene| scene.tone.as_mut()).filter(|tone| tone.next <= now);
        for packet in tone.map(Tone::play).unwrap_or_default() {
            self.send_media(now, MediaChannel::Rtp, &packet);
        }
        self.act_branches(now);
    }

    fn play(&mut self, now: Time, action: Action) {
        if self.socket.is_some() {
            match action {
                Action::Answer(_) => return self.accept_socket(now),
                Action::Refuse(status) | Action::Redirect(status, _) => return self.refuse_socket(now, status),
                _ => {}
            }
        }
        match action {
            Action::Ring(code) => self.order(now, SipOrder::Ring(code, None)),
            Action::EarlyMedia(code, port) => self.send_early_media(now, code, port.unwrap_or(RTP_PORT)),
            Action::StopMedia => self.stop_tone(),
            Action::Answer(port) => self.answer_at(now, port.unwrap_or(RTP_PORT)),
            Action::Refuse(_) | Action::Redirect(..) => self.turn_away(now, action),
            Action::Change(change) => self.offer_change(now, change, false),
            Action::Update(Some(change)) => self.offer_change(now, change, true),
            Action::Update(None) => self.order(now, SipOrder::Update(None)),
            Action::Branch(number, action) => self.play_branch(now, number, action),
            Action::Refer { to, is_quiet } => {
                let headers = is_quiet.then(|| ("Refer-Sub", "false".to_owned()));
                self.order(now, SipOrder::Refer(to, headers.into_iter().collect()));
            }
            Action::Hangup => self.hang_up(now, EndReason::ApiHangup),
            Action::Socket(action) => self.play_socket(now, action),
        }
    }

    /// Answers the offer early, and sounds a tone from `port`.
    fn send_early_media(&mut self, now: Time, code: u16, port: u16) {
        let supported = self.supported_offer(port);
        let Some(scene) = &mut self.scene else { return };
        if scene.offer.is_none() {
            // The caller made no offer: this is one.
            return self.order(now, SipOrder::Ring(code, Some(supported.session().to_string())));
        }
        let Some(Ok((answer, plan))) = scene.offer.as_deref().map(|offer| sdp::answer(offer, &supported)) else {
            return;
        };
        scene.ports.push(port);
        scene.terms.port = port;
        scene.tone.get_or_insert_with(|| Tone::new(plan.media, "tone", TONE_HZ, now));
        (self.rtp_port, self.media) = (port, Some(plan));
        self.order(now, SipOrder::Ring(code, Some(answer)));
    }

    fn stop_tone(&mut self) {
        self.scene.iter_mut().for_each(|scene| scene.stop_tone());
    }

    /// Answers with media at `port`.
    fn answer_at(&mut self, now: Time, port: u16) {
        self.stop_tone();
        let supported = self.supported_offer(port);
        let Some(scene) = &mut self.scene else { return };
        if port != RTP_PORT {
            let again = SipPort::incoming(String::new(), scene.offer.as_deref(), &supported, self.destination.guard());
            self.port = again.ok().or(self.port.take());
        }
        scene.terms.port = port;
        scene.ports.push(port);
        self.rtp_port = port;
        self.give_up_call(now, None);
        self.begin(now);
        self.port.iter_mut().for_each(SipPort::answer);
        self.drain_port(now);
    }

    /// Refuses or redirects the call; the next one may be taken.
    fn turn_away(&mut self, now: Time, action: Action) {
        let Some(key) = self.key.take() else { return };
        self.stop_tone();
        (self.port, self.media) = (None, None);
        redirector::answer(&mut self.endpoint, now, key, action);
        self.drain_sip(now);
    }
}

impl Host {
    /// Offers new terms by re-INVITE or UPDATE; they hold once they are answered.
    fn offer_change(&mut self, now: Time, change: Change, by_update: bool) {
        let Some(scene) = &mut self.scene else { return };
        let terms = scene.terms.with(change);
        scene.ports.push(terms.port);
        let offer = terms.describe(self.supported_offer(terms.port), self.media.map(|plan| plan.media.codec));
        if let Some(scene) = &mut self.scene {
            scene.offered = Some(terms);
        }
        let order = if by_update { SipOrder::Update(Some(offer)) } else { SipOrder::Reinvite(offer) };
        self.order(now, order);
    }

    /// Ends a change of the session: the offered terms are taken, or all stays as it was.
    pub(super) fn end_change(&mut self, now: Time, is_taken: bool) {
        let Some(scene) = &mut self.scene else { return };
        let Some(terms) = scene.offered.take().filter(|_| is_taken) else { return };
        let has_music = terms.hold == Hold::SendOnly { music: true };
        let media = self.media.map(|plan| plan.media).filter(|_| has_music);
        // An early tone goes on.
        if self.call.is_some() {
            scene.tone = media.map(|media| Tone::new(media, "tone", TONE_HZ, now));
        }
        self.rtp_port = terms.port;
        scene.terms = terms;
    }

    /// Returns the signal as the Call of a scripted side takes it. The Call talks on while the script holds the call,
    /// and its packets are withheld. `None`: its Call is not told.
    pub(super) fn without_own_hold(&self, signal: Signal) -> Option<Signal> {
        Some(match signal {
            Signal::Hold(true) if self.scene.as_ref().is_some_and(|scene| scene.is_own_change) => return None,
            Signal::Renegotiated { leg: LegParams::Rtp(media) }
                if self.scene.as_ref().is_some_and(|scene| scene.holds_soon()) =>
            {
                Signal::Renegotiated { leg: MediaParams { may_send: true, ..media }.into() }
            }
            signal => signal,
        })
    }
}

impl Terms {
    /// Returns the terms with `change` made to them.
    fn with(&self, change: Change) -> Terms {
        Terms {
            address: change.address.or(self.address),
            port: change.port.unwrap_or(self.port),
            hold: change.hold.unwrap_or(self.hold),
            ptime_ms: change.ptime_ms.unwrap_or(self.ptime_ms),
            payload_type: change.payload_type.or(self.payload_type),
            codec: change.codec.or(self.codec),
        }
    }

    /// Returns the offer: the codec in use, or the one that is asked for.
    fn describe(&self, supported: Offer, in_use: Option<Codec>) -> String {
        let one = self.codec.or(in_use).map(|codec| [codec]);
        let mut offer = match &one {
            Some(codecs) => sdp::offer(codecs, supported.rtp.ip(), self.port, supported.session_id),
            None => supported,
        };
        if let (Some(payload_type), Some(codec)) = (self.payload_type, offer.codecs.first_mut()) {
            codec.payload_type = payload_type;
        }
        offer.ptime_ms = self.ptime_ms;
        offer.direction = match self.hold {
            Hold::Off | Hold::NoAddress => Direction::SendRecv,
            Hold::SendOnly { .. } => Direction::SendOnly,
            Hold::Inactive => Direction::Inactive,
        };
        let mut session = offer.session();
        let unspecified = || Some(Ipv4Addr::UNSPECIFIED.into());
        let named = if self.hold == Hold::NoAddress { unspecified() } else { self.address };
        session.address = named.or(session.address);
        session.to_string()
    }
}
