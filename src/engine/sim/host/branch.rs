//! The branches of a forked call (RFC 3261 16.7): further endpoints at the agent's address, which get a copy of its
//! INVITE.

use super::tone::Tone;
use super::*;
use crate::sim::script::BranchAction;

/// First SIP port of branches; that of branch N is N above.
const SIP_PORT: u16 = 5060;
/// The tone of branch N is N steps above the base.
const TONE_BASE_HZ: f64 = 400.0;
const TONE_STEP_HZ: f64 = 200.0;

/// A side beside the agent that rings for the same INVITE, and may answer it.
pub(super) struct Branch {
    number: u16,
    address: SocketAddr,
    endpoint: Endpoint,
    key: Option<CallKey>,
    offer: Option<String>,
    rtp_port: u16,
    codec: Option<ringer_media::codec::Codec>,
    /// Address that its media go to.
    to: Option<SocketAddr>,
    tone: Option<Tone>,
    /// True if another side has the call: a proxy would keep back what this one still sends.
    is_lost: bool,
}

impl Branch {
    pub(crate) fn new(number: u16, agent: SocketAddr) -> Branch {
        let address = SocketAddr::new(agent.ip(), SIP_PORT + number);
        let seed = Seed::of(&format!("branch {number}")).0;
        let config =
            EndpointConfig { local: address, tcp: None, tls: None, user_agent: format!("Branch {number}"), seed };
        Branch {
            number,
            address,
            endpoint: Endpoint::new(config),
            key: None,
            offer: None,
            rtp_port: RTP_PORT + 1000 * number,
            codec: None,
            to: None,
            tone: None,
            is_lost: false,
        }
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    /// Returns the time of what it does by itself.
    pub(crate) fn next(&self) -> Option<Time> {
        let timer = self.endpoint.next_timer().map(|at| Time(at.0));
        timer.into_iter().chain(self.tone.as_ref().map(|tone| tone.next)).min()
    }

    /// True once nothing is left to finish.
    pub(crate) fn is_idle(&self) -> bool {
        self.endpoint.is_idle()
    }

    /// Takes a datagram if it is for this branch, or a request that a proxy sends to all of them.
    pub(crate) fn receive(&mut self, now: Time, datagram: &Datagram, is_for_all: bool) {
        if is_for_all || datagram.to == self.address {
            self.endpoint.receive(sip_time(now), ringer_sip::Hop::udp(datagram.from), &datagram.bytes);
        }
    }

    /// Does what is due, and returns what it sends.
    pub(crate) fn act(&mut self, now: Time) -> Vec<Datagram> {
        self.endpoint.tick(sip_time(now));
        let mut sent = Vec::new();
        while let Some(output) = self.endpoint.poll() {
            match output {
                ringer_sip::Output::Send { to, bytes, .. } if !self.is_lost => {
                    sent.push(Datagram { from: self.address, to: to.address, bytes });
                }
                ringer_sip::Output::Send { .. } => {}
                ringer_sip::Output::Event(key, CallEvent::Incoming { sdp, .. }) => {
                    (self.key, self.offer) = (Some(key), sdp);
                }
                ringer_sip::Output::Event(_, CallEvent::Ended(_)) => self.tone = None,
                ringer_sip::Output::Event(..) => {}
            }
        }
        let from = SocketAddr::new(self.address.ip(), self.rtp_port);
        let packets = self.tone.as_mut().filter(|tone| tone.next <= now).map(Tone::play).unwrap_or_default();
        sent.extend(
            self.to
                .into_iter()
                .flat_map(|to| packets.iter().map(move |bytes| Datagram { from, to, bytes: bytes.clone() })),
        );
        sent
    }

    /// Gives the call up: another side has it. Its tone goes on.
    pub(crate) fn lose(&mut self, now: Time) {
        let tone = self.tone.take();
        self.is_lost = true;
        if let Some(key) = self.key {
            self.endpoint.reject(sip_time(now), key, 487, None);
        }
        self.act(now);
        self.tone = tone;
    }

    fn describe(&self) -> Option<Result<(String, MediaPlan), String>> {
        let codecs = self.codec.map_or_else(|| ringer_base::config::CODECS.to_vec(), |codec| vec![codec]);
        let supported = sdp::offer(&codecs, self.address.ip(), self.rtp_port, self.number.into());
        self.offer.as_deref().map(|offer| sdp::answer(offer, &supported))
    }

    fn play(&mut self, now: Time, action: BranchAction) -> Result<(), String> {
        let Some(key) = self.key else { return Err("there is no call".to_owned()) };
        let at = sip_time(now);
        match action {
            BranchAction::Ring(code) => self.endpoint.ring(at, key, code, None),
            BranchAction::EarlyMedia { code, port, codec } => {
                self.rtp_port = port.unwrap_or(self.rtp_port);
                self.codec = codec.or(self.codec);
                let Some(described) = self.describe() else { return Err("the INVITE has no offer".to_owned()) };
                let (answer, plan) = described?;
                self.to = Some(plan.rtp);
                let hz = TONE_BASE_HZ + TONE_STEP_HZ * f64::from(self.number);
                self.tone = Some(Tone::new(plan.media, &format!("branch {}", self.number), hz, now));
                self.endpoint.ring(at, key, code, Some(answer));
            }
            BranchAction::MoveMedia(port) => {
                self.rtp_port = port;
                let codecs = self.codec.map_or_else(|| ringer_base::config::CODECS.to_vec(), |codec| vec![codec]);
                let offer = sdp::offer(&codecs, self.address.ip(), port, self.number.into()).session().to_string();
                if !self.endpoint.update(at, key, Some(offer)) {
                    return Err("the UPDATE could not be sent".to_owned());
                }
            }
            BranchAction::StopMedia => self.tone = None,
            BranchAction::Answer => {
                let Some(described) = self.describe() else { return Err("the INVITE has no offer".to_owned()) };
                self.endpoint.answer(at, key, described?.0);
            }
        }
        Ok(())
    }
}

impl Host {
    /// Has a branch do its line; what is impossible is a fault of the script.
    pub(super) fn play_branch(&mut self, now: Time, number: u16, action: BranchAction) {
        let answers = action == BranchAction::Answer;
        let Some(scene) = &mut self.scene else { return };
        let Some(branch) = scene.branches.iter_mut().find(|branch| branch.number == number) else { return };
        if let Err(why) = branch.play(now, action) {
            self.violations.push(format!("branch {number}: {why}"));
        }
        if answers {
            self.give_up_call(now, Some(number));
        }
    }

    /// Does what is due in the branches.
    pub(super) fn act_branches(&mut self, now: Time) {
        let Some(scene) = &mut self.scene else { return };
        let sent: Vec<Datagram> = scene.branches.iter_mut().flat_map(|branch| branch.act(now)).collect();
        self.outbox.extend(sent);
    }

    /// Gives the call up everywhere but at the winner, a branch or (`None`) the agent itself.
    pub(super) fn give_up_call(&mut self, now: Time, winner: Option<u16>) {
        let Some(scene) = &mut self.scene else { return };
        scene.branches.iter_mut().filter(|branch| Some(branch.number) != winner).for_each(|branch| branch.lose(now));
        scene.is_lost = winner.is_some();
        if let (Some(key), Some(_)) = (self.key, winner) {
            scene.stop_tone();
            self.endpoint.reject(sip_time(now), key, 487, None);
            self.drain_sip(now);
        }
    }
}
