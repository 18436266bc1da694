//! One side of a simulated call: endpoint, Call, mind and voice, with everything that is waiting to happen to it.

mod effects;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ringer_media::call::{
    Call, CallSpec, Command, Effect, EffectId, Effected, EndReason, Ending, Event, Input, Output, Path, Sent, TICK,
    Thought, What, Word,
};
use ringer_media::frame::{FRAME, PER_MS, Sample};
use ringer_media::recording::{Layout, wav_header};
use ringer_media::rtp::rtcp;
use ringer_media::seed::{Seed, Stream};
use ringer_media::time::Time;
use ringer_media::tongue::Tongue;
use ringer_sip::{CallEvent, CallKey, Endpoint, EndpointConfig};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::Side;
use super::hearing::{Said, words};
use crate::engine::following::Following;
use crate::engine::timeline::Journal;
use crate::engine::{Dial, Placement};
use crate::human::{Fluency, Mind, SpeechPart};
use crate::provider::{Synthesizer, Voice, whole_speech};
use crate::transport::port::{PortOutput, Refusal, ToPeer};
use crate::transport::sip::address::Address;
use crate::transport::sip::port::{SipOrder, SipPort};
use crate::transport::sip::sdp;
use crate::transport::sip::udp::masked;

/// Milliseconds that things take, drawn evenly from these.
const THINKING_MS: (f64, f64) = (40.0, 120.0);
const SPEAKING_MS: (f64, f64) = (20.0, 80.0);
const RECOGNISING_MS: (f64, f64) = (20.0, 60.0);
const RINGING_MS: (f64, f64) = (100.0, 800.0);
/// Between two running texts of a segment.
const PARTIAL_EVERY: Duration = Duration::from_millis(300);
/// Words that were said this close to a segment's edges belong to it.
const MARGIN: Duration = Duration::from_millis(100);
/// Parts of a move.
const MOVES: usize = 256;
/// Port of RTP; RTCP is one above.
const RTP_PORT: u16 = 20_000;
/// Nanoseconds of a sample.
const SAMPLE_NS: i64 = 62_500;

/// First byte of a datagram: which socket it is for.
const SIP: u8 = 0;
const RTP: u8 = 1;
const RTCP: u8 = 2;

pub(super) struct Setup {
    pub address: SocketAddr,
    pub placement: Placement,
    pub synthesizer: Arc<dyn Synthesizer>,
    pub seed: Seed,
    pub failures: f64,
    pub hangs_up: Option<Time>,
    /// Least delay of the network: what is heard was said this much earlier.
    pub delay: Duration,
}

/// Something that happens by itself.
enum Due {
    /// How words will be said.
    Voiced(EffectId, String),
    Done(EffectId, Effected),
    /// Running text of the segment.
    Partial(EffectId),
    /// Final text of the segment, which ended here.
    Final(EffectId, Sample),
}

pub(super) struct Host {
    address: SocketAddr,
    peer: Option<SocketAddr>,
    endpoint: Endpoint,
    key: Option<CallKey>,
    port: Option<SipPort>,
    spec: CallSpec,
    dial: Dial,
    mind: Box<dyn Mind>,
    fluency: Fluency,
    voice: Option<Voice>,
    /// The other side's language is spoken.
    following: Option<Following>,
    synthesizer: Arc<dyn Synthesizer>,
    runtime: Runtime,
    draws: Stream,
    failures: f64,
    delay: Duration,
    hangs_up: Option<Time>,
    call: Option<Call>,
    next_tick: Option<Time>,
    /// When the INVITE is answered.
    answer: Option<Time>,
    inbox: Vec<(Time, Path, Vec<u8>)>,
    outbox: Vec<Vec<u8>>,
    due: BTreeMap<(Time, u64), Due>,
    number: u64,
    segments: BTreeMap<EffectId, Sample>,
    open: BTreeMap<EffectId, &'static str>,
    origin: Option<Time>,
    /// When this side has ended the call, or heard that it is over.
    bye: Option<Time>,
    said: Vec<Said>,
    journal: Journal,
    sent: Vec<i16>,
    heard: Vec<i16>,
    sip_log: String,
    /// The call was ended; its last words may still come.
    ended: bool,
    ending: Option<Ending>,
    last_sequence: Option<u16>,
    packets_in_tick: u32,
    /// The last report said that this side leaves.
    left: bool,
    violations: Vec<String>,
}

impl Host {
    pub fn new(setup: Setup) -> Result<Host, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let mut draws = setup.seed.stream("sim");
        let sip_seed = u64::from(draws.bits()) << 32 | u64::from(draws.bits());
        let user_agent = "Ringer".to_owned();
        let placement = setup.placement;
        Ok(Host {
            address: setup.address,
            peer: None,
            endpoint: Endpoint::new(EndpointConfig { local: setup.address, user_agent, seed: sip_seed }),
            key: None,
            port: None,
            spec: placement.spec,
            dial: placement.dial,
            mind: placement.mind,
            fluency: placement.fluency,
            following: placement
                .follows
                .map(|wanted| Following::new(wanted, &placement.language, placement.voice.as_ref())),
            voice: placement.voice,
            synthesizer: setup.synthesizer,
            runtime: runtime.map_err(|error| error.to_string())?,
            draws,
            failures: setup.failures,
            delay: setup.delay,
            hangs_up: setup.hangs_up,
            call: None,
            next_tick: None,
            answer: None,
            inbox: Vec::new(),
            outbox: Vec::new(),
            due: BTreeMap::new(),
            number: 0,
            segments: BTreeMap::new(),
            open: BTreeMap::new(),
            origin: None,
            bye: None,
            said: Vec::new(),
            journal: Journal::default(),
            sent: Vec::new(),
            heard: Vec::new(),
            sip_log: String::new(),
            ended: false,
            ending: None,
            last_sequence: None,
            packets_in_tick: 0,
            left: false,
            violations: Vec::new(),
        })
    }

    /// Sends the INVITE to `peer`.
    pub fn dial(&mut self, now: Time, peer: SocketAddr) -> Result<(), String> {
        let target = format!("sip:agent@{peer}");
        let called = if self.dial.target.is_empty() { &target } else { &self.dial.target };
        let address = Address::parse(called).map_err(|fault| fault.to_string())?;
        let destination = address.resolve().map_err(|fault| fault.to_string())?;
        self.peer = Some(destination);
        let offer = sdp::offer(self.dial.codecs(), self.address.ip(), RTP_PORT, 1).session().to_string();
        let invite = self.dial.invite(address.uri().clone(), destination, offer);
        self.key = Some(self.endpoint.invite(sip_time(now), invite));
        self.begin(now);
        self.port = Some(SipPort::caller(target, self.dial.guard()));
        self.drain_port(now);
        self.drain_sip(now);
        Ok(())
    }

    /// The Call begins; its ticks have a phase of their own.
    fn begin(&mut self, now: Time) {
        self.call = Some(Call::new(self.spec.clone()));
        self.next_tick = Some(now + Duration::from_nanos((self.draws.unit() * TICK.as_nanos() as f64) as u64));
    }

    /// Nothing more can happen to its Call.
    pub fn is_over(&self) -> bool {
        self.call.as_ref().is_none_or(Call::is_over)
    }

    /// When something happens by itself.
    pub fn next(&self) -> Option<Time> {
        let timer = self.endpoint.next_timer().map(|at| Time(at.0));
        let due = self.due.first_key_value().map(|((at, _), _)| *at);
        let held = self.call.as_ref().and_then(Call::due);
        [timer, self.answer, due, held, self.hangs_up, self.next_tick].into_iter().flatten().min()
    }

    /// Words of this side so far.
    pub fn said(&self) -> &[Said] {
        &self.said
    }

    /// What was sent since the last time.
    pub fn sent(&mut self) -> std::vec::Drain<'_, Vec<u8>> {
        self.outbox.drain(..)
    }

    /// A datagram of the other side arrived.
    pub fn receive(&mut self, arrived: Time, datagram: &[u8]) {
        let Some((&socket, bytes)) = datagram.split_first() else { return };
        match socket {
            SIP => {
                let from = self.peer.unwrap_or(self.address);
                self.log(arrived, "received from", bytes);
                self.endpoint.receive(sip_time(arrived), from, bytes);
                self.drain_sip(arrived);
            }
            RTP => self.inbox.push((arrived, Path::Rtp, bytes.to_vec())),
            _ => self.inbox.push((arrived, Path::Rtcp, bytes.to_vec())),
        }
    }

    /// Does everything that is due; `said` are the other side's words.
    pub fn act(&mut self, now: Time, said: &[Said]) {
        self.endpoint.tick(sip_time(now));
        self.drain_sip(now);
        if self.answer.take_if(|at| *at <= now).is_some() {
            self.begin(now);
            self.port.iter_mut().for_each(SipPort::answer);
            self.drain_port(now);
        }
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= now) {
            let due = entry.remove();
            self.happen(now, due, said);
        }
        if self.hangs_up.take_if(|at| *at <= now).is_some() {
            self.hang_up(now, EndReason::ApiHangup);
        }
        if self.call.as_ref().and_then(Call::due).is_some_and(|due| due <= now) {
            self.tell(now, Input::Release);
        }
        if let Some(at) = self.next_tick.filter(|at| *at <= now) {
            self.tick(at);
        }
    }

    /// The control API ends the call.
    pub fn hang_up(&mut self, now: Time, reason: EndReason) {
        self.tell(now, Input::Command(Command::Hangup(reason)));
    }

    /// What is left at the end.
    pub fn finish(mut self) -> Side {
        if !self.endpoint.is_idle() {
            self.violations.push("a SIP call or transaction is left".into());
        }
        if self.left != self.last_sequence.is_some() {
            self.violations.push(format!("the RTP session was left: {}", self.left));
        }
        if let Some(ending) = self.ending.as_ref().filter(|ending| ending.connected) {
            for (name, track) in [("heard", &mut self.heard), ("sent", &mut self.sent)] {
                let over = track.len() as Sample - ending.samples;
                // A call whose media stopped ends where they did.
                let may_be_longer = ending.reason == EndReason::MediaTimeout;
                if over < -(FRAME as Sample) || (over > FRAME as Sample && !may_be_longer) {
                    self.violations.push(format!("{} samples were {name} of {}", track.len(), ending.samples));
                }
                track.resize(ending.samples.max(0) as usize, 0);
            }
        }
        let mut recording = Vec::new();
        if !self.heard.is_empty() {
            recording.extend(wav_header(Layout::Stereo, self.heard.len() as u64));
            let pairs = self.sent.iter().zip(&self.heard);
            recording.extend(pairs.flat_map(|(sent, heard)| [*sent, *heard]).flat_map(i16::to_le_bytes));
        }
        Side {
            ending: self.ending,
            timeline: self.journal.finish(&mut Vec::new()),
            recording,
            sip_log: self.sip_log,
            violations: self.violations,
        }
    }

    // --- SIP ---

    fn drain_sip(&mut self, now: Time) {
        while let Some(output) = self.endpoint.poll() {
            match output {
                ringer_sip::Output::Datagram { bytes, .. } => {
                    self.log(now, "sent to", &bytes);
                    self.send(SIP, &bytes);
                }
                ringer_sip::Output::Event(key, event) => self.sip_event(now, key, event),
            }
        }
    }

    fn sip_event(&mut self, now: Time, key: CallKey, event: CallEvent) {
        if let CallEvent::Incoming { sdp, source, call_id, .. } = event {
            self.peer.get_or_insert(source);
            return self.incoming(now, key, call_id, sdp.as_deref());
        }
        if matches!(event, CallEvent::Ended(_)) {
            self.bye.get_or_insert(now);
            self.answer = None;
        }
        if let Some(port) = &mut self.port {
            port.receive(event);
            self.drain_port(now);
        }
    }

    fn incoming(&mut self, now: Time, key: CallKey, call_id: String, offer: Option<&str>) {
        let supported = sdp::offer(self.dial.codecs(), self.address.ip(), RTP_PORT, 1);
        match SipPort::incoming(call_id, offer, &supported, self.dial.guard()) {
            Ok(mut port) if self.key.is_none() => {
                port.ring();
                (self.key, self.port) = (Some(key), Some(port));
                self.drain_port(now);
                self.answer = Some(self.after(now, RINGING_MS));
            }
            Ok(_) => SipOrder::from(Refusal::Busy).apply(&mut self.endpoint, sip_time(now), key),
            Err(_) => SipOrder::from(Refusal::NoMedia).apply(&mut self.endpoint, sip_time(now), key),
        }
    }

    /// Carries out the port's outputs, in order.
    fn drain_port(&mut self, now: Time) {
        while let Some(output) = self.port.as_mut().and_then(SipPort::poll) {
            match output {
                PortOutput::Signal(signal) => self.tell(now, Input::Signal(signal)),
                PortOutput::Send(ToPeer::Sip(order)) => self.order(now, order),
                PortOutput::Locate(address) => {
                    let found = address.resolve().ok().filter(|found| self.dial.guard().allows(found.ip()));
                    self.order(now, SipOrder::Resolved(found));
                }
                // Both sides have one media address each, and nobody reads warnings here.
                PortOutput::Media(_) | PortOutput::Warning(_) => {}
            }
        }
    }

    fn order(&mut self, now: Time, order: SipOrder) {
        let Some(key) = self.key else { return };
        let ends = matches!(order, SipOrder::Hangup(..));
        if ends {
            self.bye.get_or_insert(now);
        }
        order.apply(&mut self.endpoint, sip_time(now), key);
        while let Some(output) = self.endpoint.poll() {
            match output {
                ringer_sip::Output::Datagram { bytes, .. } => {
                    self.log(now, "sent to", &bytes);
                    self.send(SIP, &bytes);
                }
                // The end that this side asked for is no news to its Call.
                ringer_sip::Output::Event(..) if ends => {}
                ringer_sip::Output::Event(key, event) => self.sip_event(now, key, event),
            }
        }
    }

    fn log(&mut self, now: Time, direction: &str, message: &[u8]) {
        let peer = self.peer.unwrap_or(self.address);
        self.sip_log.push_str(&format!("{} {direction} {peer}\n{}\n", now.0 / 1_000_000, masked(message)));
    }

    fn send(&mut self, socket: u8, bytes: &[u8]) {
        let mut datagram = Vec::with_capacity(bytes.len() + 1);
        datagram.push(socket);
        datagram.extend_from_slice(bytes);
        self.outbox.push(datagram);
    }

    // --- the Call ---

    fn tick(&mut self, at: Time) {
        let connected = self.origin.is_some();
        self.packets_in_tick = 0;
        let mut sent = Sent::default();
        self.tell(at, Input::Tick { late: Duration::ZERO, sent: &mut sent });
        if let Some(from) = sent.position {
            self.sent.resize(from as usize, 0);
            self.sent.extend_from_slice(&sent.pcm);
        }
        // A bad connection loses packets and holds them back.
        if connected && self.packets_in_tick != 1 && !self.ended && self.spec.connection.is_clear() {
            self.violations.push(format!("{} packets in the tick at {} ms", self.packets_in_tick, at.0 / 1_000_000));
        }
        for (arrived, path, bytes) in std::mem::take(&mut self.inbox) {
            self.tell(at, Input::Packet { path, arrived, bytes: &bytes });
        }
        self.tell(at, Input::Listen);
        self.next_tick = if self.is_over() { None } else { Some(at + TICK) };
    }

    fn tell(&mut self, now: Time, input: Input<'_>) {
        let Some(mut call) = self.call.take() else { return };
        call.handle(now, input);
        while let Some(output) = call.poll() {
            self.carry_out(now, output);
        }
        self.call = Some(call);
    }

    fn carry_out(&mut self, now: Time, output: Output<'_>) {
        match output {
            Output::Packet { path: Path::Rtp, bytes } => {
                self.check_packet(bytes);
                self.send(RTP, bytes);
            }
            Output::Packet { path: Path::Rtcp, bytes } => {
                self.left = false;
                rtcp::parse(bytes, |item| self.left |= matches!(item, rtcp::Item::Bye(_)));
                self.send(RTCP, bytes);
            }
            Output::Heard(pcm) => self.heard.extend_from_slice(pcm),
            Output::Early(_) | Output::Ears { .. } | Output::EarsPast { .. } => {}
            Output::Control(control) => {
                self.port.iter_mut().for_each(|port| port.control(&control));
                self.drain_port(now);
            }
            Output::Effect(id, effect) => self.perform(now, id, effect),
            Output::Event(event) => self.event(now, event),
            Output::Ended(ending) => {
                self.segments.clear();
                self.due.clear();
                for (id, what) in std::mem::take(&mut self.open) {
                    self.violations.push(format!("{what} {} was neither answered nor cancelled", id.0));
                }
                self.check_length(&ending);
                self.ending = Some(*ending);
            }
        }
    }

    /// A call tells the time from its connection to its BYE, by the clock of this network; where its media stopped, less.
    fn check_length(&mut self, ending: &Ending) {
        let (Some(origin), Some(bye), true) = (self.origin, self.bye, ending.connected) else { return };
        let passed = bye.since(origin).as_micros() as Sample * PER_MS / 1000;
        let least = if ending.reason == EndReason::MediaTimeout { 0 } else { passed - FRAME as Sample };
        if !(least..=passed + FRAME as Sample).contains(&ending.samples) {
            self.violations.push(format!("the call tells {} samples of {passed}", ending.samples));
        }
    }

    /// Sequence numbers rise by one with each packet (RFC 3550 5.1), by more where a bad connection has lost some.
    fn check_packet(&mut self, bytes: &[u8]) {
        let sequence = u16::from_be_bytes([bytes[2], bytes[3]]);
        let most = if self.spec.connection.is_clear() { 1 } else { 1000 };
        if self.last_sequence.is_some_and(|last| !(1..=most).contains(&sequence.wrapping_sub(last))) {
            self.violations.push(format!("sequence number {sequence} after {:?}", self.last_sequence));
        }
        self.last_sequence = Some(sequence);
        // The repeated end of a telephone event comes beside the audio of its tick.
        let is_repetition = self.packets_in_tick > 0 && bytes.len() == 16;
        self.packets_in_tick += u32::from(!is_repetition);
    }

    fn event(&mut self, now: Time, event: Event) {
        match &event.what {
            What::Connected { .. } => self.origin = Some(now),
            What::Ended { .. } => self.ended = true,
            What::SpeechStarted { utterance_id, text, .. } => {
                let said =
                    Said { utterance: *utterance_id, from: self.time(event.sample), to: None, text: text.clone() };
                self.said.push(said);
            }
            What::SpeechEnded { utterance_id, text, .. } => {
                let to = Some(self.time(event.sample));
                if let Some(said) = self.said.iter_mut().rfind(|said| said.utterance == *utterance_id) {
                    (said.to, said.text) = (to, text.voiced().to_owned());
                }
            }
            _ => {}
        }
        self.journal.add(event);
    }

    /// The time of a position.
    fn time(&self, sample: Sample) -> Time {
        let origin = self.origin.unwrap_or_default();
        Time((origin.0 as i64 + sample * SAMPLE_NS).max(0) as u64)
    }
}

impl Due {
    fn of(&self) -> EffectId {
        match self {
            Due::Voiced(id, _) | Due::Done(id, _) | Due::Partial(id) | Due::Final(id, _) => *id,
        }
    }
}

fn join<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.collect::<Vec<_>>().join(" ")
}

fn sip_time(at: Time) -> ringer_sip::Time {
    ringer_sip::Time(at.0)
}
