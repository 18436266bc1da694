//! One side of a simulated call: endpoint, Call, mind and voice, with everything that is waiting to happen to it.

mod branch;
mod effects;
mod scene;
mod signals;
mod socket;
mod tone;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ringer_human::{Fluency, Mind, SpeechPart};
use ringer_media::call::{
    Call, CallSpec, Command, Effect, EffectId, Effected, EndReason, Ending, Event, EventKind, Input, MediaChannel,
    Output, Sent, Signal, TICK, Thought, Word,
};
use ringer_media::detected_language::DetectedLanguage;
use ringer_media::frame::{FRAME, PER_MS, Sample};
use ringer_media::pcm;
use ringer_media::recording::{Layout, wav_header};
use ringer_media::rtp::rtcp;
use ringer_media::seed::{Seed, Stream};
use ringer_media::time::Time;
use ringer_provider::{Synthesizer, Voice, whole_speech};
use ringer_sip::sdp::Offer;
use ringer_sip::{CallEvent, CallKey, Endpoint, EndpointConfig};
use ringer_transport::peer::{PortOutput, Refusal};
use ringer_transport::sip::address::Address;
use ringer_transport::sip::driver::mask;
use ringer_transport::sip::media_names::Found;
use ringer_transport::sip::names::Resolver;
use ringer_transport::sip::order::{Lookup, SipAction, SipOrder};
use ringer_transport::sip::port::SipPort;
use ringer_transport::sip::sdp;
use ringer_transport::sip::sdp::MediaPlan;
use ringer_transport::sip::transfer::{Forwarding, TargetCall};
use ringer_transport::websocket::SessionControl;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use self::scene::{Scene, TONE_HZ};
use self::socket::SocketEnd;
use self::tone::Wave;
use super::hearing::{Said, words};
use super::network::{Arrived, Datagram};
use super::script::{Action, Manner, SocketAction};
use super::{START, Side};
use crate::following::Following;
use crate::timeline::Journal;
use crate::{Destination, Placement};

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

pub(super) struct Setup {
    pub address: SocketAddr,
    pub placement: Placement,
    pub synthesizer: Arc<dyn Synthesizer>,
    pub seed: Seed,
    pub failures: f64,
    pub hangs_up: Option<Time>,
    /// Least delay of the network: what is heard was said this much earlier.
    pub delay: Duration,
    /// Lines of a script, in order of their times after the INVITE; `None`: the call has no script.
    pub actions: Option<Vec<(Duration, Action)>>,
    /// Settings of the script.
    pub manner: Manner,
    /// Time that a host name takes to be looked up.
    pub lookup: Duration,
    /// Rules of where its call may be sent on to.
    pub forwarding: Forwarding,
}

/// Event of a side that is due at a time.
enum Due {
    /// Pronunciation of words that are about to be spoken.
    Voiced(EffectId, String),
    Done(EffectId, Effected),
    /// Running text of the segment.
    Partial(EffectId),
    /// Final text of the segment, which ended here.
    Final(EffectId, Sample),
}

pub(super) struct Host {
    address: SocketAddr,
    endpoint: Endpoint,
    key: Option<CallKey>,
    /// The dialog with the target of a transfer.
    target_key: Option<CallKey>,
    forwarding: Forwarding,
    port: Option<SipPort>,
    /// Present in a call over a WebSocket.
    socket: Option<Box<SocketEnd>>,
    spec: CallSpec,
    destination: Destination,
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
    /// True if the Call is being told something, and takes nothing else.
    is_telling: bool,
    /// Signals that wait for that.
    deferred: VecDeque<Signal>,
    next_tick: Option<Time>,
    /// Time of answering the INVITE.
    answer: Option<Time>,
    /// Addresses that media go to and come from.
    media: Option<MediaPlan>,
    /// Port that RTP is sent from.
    rtp_port: u16,
    manner: Manner,
    lookup: Duration,
    /// The look-up of a host name: when it is over, and what is found.
    looking: Option<(Time, Found)>,
    /// Present in a call with a script.
    scene: Option<Box<Scene>>,
    inbox: Vec<(Time, MediaChannel, Vec<u8>)>,
    outbox: Vec<Datagram>,
    due: BTreeMap<(Time, u64), Due>,
    number: u64,
    segments: BTreeMap<EffectId, Sample>,
    open: BTreeMap<EffectId, &'static str>,
    origin: Option<Time>,
    /// Sample 0, also of a call that was never connected.
    zero: Option<Time>,
    /// Time at which this side ended the call, or learnt of its end.
    bye: Option<Time>,
    said: Vec<Said>,
    /// The other side's words are heard with capitals and punctuation.
    hears_punctuation: bool,
    journal: Journal,
    sent: Vec<i16>,
    heard: Vec<i16>,
    early: Vec<i16>,
    sip_log: String,
    warnings: Vec<String>,
    /// True if the call was ended; its last words may still come.
    ended: bool,
    ending: Option<Ending>,
    last_sequence: Option<u16>,
    packets_in_tick: u32,
    /// True if the last report said that this side leaves.
    left: bool,
    violations: Vec<String>,
}

impl Host {
    pub(crate) fn new(setup: Setup) -> Result<Host, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let mut draws = setup.seed.stream("sim");
        let sip_seed = u64::from(draws.bits()) << 32 | u64::from(draws.bits());
        let user_agent = "Ringer".to_owned();
        let placement = setup.placement;
        let mut endpoint =
            Endpoint::new(EndpointConfig { local: setup.address, tcp: None, tls: None, user_agent, seed: sip_seed });
        endpoint.ask_session_interval(setup.manner.session_interval_s);
        Ok(Host {
            address: setup.address,
            endpoint,
            key: None,
            target_key: None,
            forwarding: setup.forwarding,
            port: None,
            socket: SocketEnd::of(&placement.destination),
            spec: placement.spec,
            destination: placement.destination,
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
            is_telling: false,
            deferred: VecDeque::new(),
            next_tick: None,
            answer: None,
            media: None,
            rtp_port: RTP_PORT,
            manner: setup.manner,
            lookup: setup.lookup,
            looking: None,
            scene: setup.actions.map(|actions| Box::new(Scene::new(actions, setup.address))),
            inbox: Vec::new(),
            outbox: Vec::new(),
            due: BTreeMap::new(),
            number: 0,
            segments: BTreeMap::new(),
            open: BTreeMap::new(),
            origin: None,
            zero: None,
            bye: None,
            said: Vec::new(),
            hears_punctuation: false,
            journal: Journal::default(),
            sent: Vec::new(),
            heard: Vec::new(),
            early: Vec::new(),
            sip_log: String::new(),
            warnings: Vec::new(),
            ended: false,
            ending: None,
            last_sequence: None,
            packets_in_tick: 0,
            left: false,
            violations: Vec::new(),
        })
    }

    /// Begins the Call; its ticks have a phase of their own.
    fn begin(&mut self, now: Time) {
        self.call = Some(Call::new(self.spec.clone()));
        self.next_tick = Some(now + Duration::from_nanos((self.draws.unit() * TICK.as_nanos() as f64) as u64));
    }

    /// True if nothing more can happen to its Call.
    pub(crate) fn is_over(&self) -> bool {
        self.call.as_ref().is_none_or(Call::is_over)
    }

    /// True once its Call was connected.
    pub(crate) fn is_connected(&self) -> bool {
        self.origin.is_some()
    }

    /// Returns the time of this side's next event.
    pub(crate) fn next(&self) -> Option<Time> {
        let timer = self.endpoint.next_timer().map(|at| Time(at.0));
        let due = self.due.first_key_value().map(|((at, _), _)| *at);
        let held = self.call.as_ref().and_then(Call::due);
        let is_called = self.key.is_some() || self.socket.as_ref().is_some_and(|socket| socket.is_called());
        let scene = self.scene.as_ref().and_then(|scene| scene.next(is_called));
        let socket = self.socket.as_ref().and_then(|socket| socket.next());
        let looking = self.looking.as_ref().map(|(at, _)| *at);
        [timer, self.answer, due, held, self.hangs_up, self.next_tick, scene, looking, socket]
            .into_iter()
            .flatten()
            .min()
    }

    /// Hears the other side's words with capitals and punctuation from now on.
    pub(crate) fn hear_punctuation(&mut self) {
        self.hears_punctuation = true;
    }

    /// Words of this side so far.
    pub(crate) fn utterances(&self) -> &[Said] {
        &self.said
    }

    /// Drains the datagrams sent since the last call.
    pub(crate) fn drain_sent(&mut self) -> std::vec::Drain<'_, Datagram> {
        self.outbox.drain(..)
    }

    /// Takes a datagram that arrived. As with the sockets of real calls, media is taken from where it goes to alone,
    /// once that is known.
    pub(crate) fn receive(&mut self, arrived: &Arrived) {
        let Datagram { from, to, bytes } = &arrived.datagram;
        self.scene.iter_mut().for_each(|scene| scene.fork(arrived, *to == self.address));
        if *to == self.address {
            return self.receive_sip(arrived.at, *from, bytes);
        }
        let Some(path) = self.path(to.port()) else { return };
        let is_from_there = |plan: &MediaPlan| *from == if path == MediaChannel::Rtp { plan.rtp } else { plan.rtcp };
        if self.media.as_ref().is_none_or(is_from_there) {
            self.inbox.push((arrived.at, path, bytes.clone()));
        }
    }

    /// Returns the path of the media that come in at `port`; `None` where nobody listens.
    fn path(&self, port: u16) -> Option<MediaChannel> {
        let is_open = |rtp: u16| rtp == self.rtp_port || self.scene.as_ref().is_some_and(|scene| scene.listens_at(rtp));
        match port {
            port if is_open(port) => Some(MediaChannel::Rtp),
            port if is_open(port.wrapping_sub(1)) => Some(MediaChannel::Rtcp),
            _ => None,
        }
    }

    /// Does everything that is due; `said` are the other side's words.
    pub(crate) fn act(&mut self, now: Time, said: &[Said]) {
        self.endpoint.tick(sip_time(now));
        self.drain_sip(now);
        if self.answer.take_if(|at| *at <= now).is_some() {
            match self.socket {
                Some(_) => self.accept_socket(now),
                None => {
                    self.begin(now);
                    self.port.iter_mut().for_each(SipPort::answer);
                    self.drain_port(now);
                }
            }
        }
        self.act_socket(now);
        if let Some((_, found)) = self.looking.take_if(|(at, _)| *at <= now) {
            self.port.iter_mut().for_each(|port| port.media_found(found));
            self.drain_port(now);
        }
        self.play_scene(now);
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

    /// Ends the call as the control API does.
    pub(crate) fn hang_up(&mut self, now: Time, reason: EndReason) {
        self.tell(now, Input::Command(Command::Hangup(reason)));
    }

    /// Returns the outcome of this side at the end, with the invariants that it broke.
    pub(crate) fn finish(mut self) -> Side {
        if !self.endpoint.is_idle() {
            self.violations.push("a SIP call or transaction is left".into());
        }
        if self.scene.as_ref().is_some_and(|scene| !scene.branches.iter().all(branch::Branch::is_idle)) {
            self.violations.push("a SIP call or transaction of a branch is left".into());
        }
        if self.socket.as_ref().is_some_and(|socket| !socket.is_closed()) {
            self.violations.push("a WebSocket is left".into());
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
            recording.extend(pcm::interleave(&self.sent, &self.heard));
        }
        Side {
            ending: self.ending,
            timeline: self.journal.finish(&mut Vec::new()),
            recording,
            sip_log: self.sip_log,
            is_socket: self.socket.is_some(),
            violations: self.violations,
            early: self.early,
            zero: self.zero.unwrap_or(START).since(START),
            sent_rtp: self.scene.map(|scene| scene.sent_rtp).unwrap_or_default(),
            warnings: self.warnings,
        }
    }

    // --- the Call ---

    fn tick(&mut self, at: Time) {
        let connected = self.origin.is_some();
        self.packets_in_tick = 0;
        let mut sent = Sent::default();
        self.tell(at, Input::Tick { late: Duration::ZERO, sent: &mut sent });
        if let Some(from) = sent.position {
            self.sent.resize(from as usize, 0);
            let spoken = self.socket.as_mut().and_then(|socket| socket.take_spoken());
            self.sent.extend_from_slice(&spoken.unwrap_or(sent.pcm));
        }
        // A bad connection loses packets and holds them back.
        let is_steady = self.spec.connection.is_clear() && self.scene.as_ref().is_none_or(|scene| scene.is_steady);
        if connected && self.packets_in_tick != 1 && !self.ended && is_steady {
            self.violations.push(format!("{} packets in the tick at {} ms", self.packets_in_tick, at.0 / 1_000_000));
        }
        for (arrived, path, bytes) in std::mem::take(&mut self.inbox) {
            self.tell(at, Input::Packet { path, arrived, bytes: &bytes });
        }
        self.hear_socket(at);
        self.tell(at, Input::Listen);
        self.settle_socket(at);
        self.next_tick = if self.is_over() { None } else { Some(at + TICK) };
    }

    fn tell(&mut self, now: Time, input: Input<'_>) {
        let Some(mut call) = self.call.take() else { return };
        self.is_telling = true;
        call.handle(now, input);
        while let Some(output) = call.poll() {
            self.carry_out(now, output);
        }
        self.is_telling = false;
        self.call = Some(call);
        while let Some(signal) = self.deferred.pop_front() {
            self.tell(now, Input::Signal(signal));
        }
    }

    fn carry_out(&mut self, now: Time, output: Output<'_>) {
        match output {
            Output::Packet { path: MediaChannel::Rtp, bytes } => {
                self.check_packet(bytes);
                if !self.scene.as_ref().is_some_and(|scene| scene.withholds()) {
                    self.send_media(now, MediaChannel::Rtp, bytes);
                }
            }
            Output::Packet { path: MediaChannel::Rtcp, bytes } => {
                self.left = false;
                rtcp::parse(bytes, |item| self.left |= matches!(item, rtcp::Item::Bye(_)));
                self.send_media(now, MediaChannel::Rtcp, bytes);
            }
            Output::Heard(pcm) => self.heard.extend_from_slice(pcm),
            Output::Early(pcm) => self.early.extend_from_slice(pcm),
            Output::Ears { .. } | Output::EarsPast { .. } => {}
            Output::Frame { from, pcm } => {
                self.packets_in_tick += 1;
                self.socket.iter_mut().for_each(|socket| socket.send_frame(now, from, pcm));
            }
            Output::Utterance { at, begins } => {
                self.socket.iter_mut().for_each(|socket| socket.tell_utterance(at, begins));
            }
            Output::ClearBuffered => self.socket.iter_mut().for_each(|socket| socket.clear_buffered()),
            Output::Control(control) if self.socket.is_some() => self.control_socket(now, &control),
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

    /// Checks that a call tells the time from its connection to its BYE, by the clock of this network; where its media
    /// stopped, less.
    fn check_length(&mut self, ending: &Ending) {
        let (Some(origin), Some(bye), true) = (self.origin, self.bye, ending.connected) else { return };
        let passed = bye.since(origin).as_micros() as Sample * PER_MS / 1000;
        let least = if ending.reason == EndReason::MediaTimeout { 0 } else { passed - FRAME as Sample };
        if !(least..=passed + FRAME as Sample).contains(&ending.samples) {
            self.violations.push(format!("the call tells {} samples of {passed}", ending.samples));
        }
    }

    /// Checks that sequence numbers rise by one with each packet (RFC 3550 5.1), by more where a bad connection has
    /// lost some.
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
            EventKind::Connected { .. } => (self.origin, self.zero) = (Some(now), Some(now)),
            EventKind::Ended { .. } => {
                self.ended = true;
                self.zero.get_or_insert(now);
            }
            EventKind::SpeechStarted { utterance_id, text, .. } => {
                let said =
                    Said { utterance: *utterance_id, from: self.time(event.sample), to: None, text: text.clone() };
                self.said.push(said);
            }
            EventKind::SpeechEnded { utterance_id, text, .. } => {
                let to = Some(self.time(event.sample));
                if let Some(said) = self.said.iter_mut().rfind(|said| said.utterance == *utterance_id) {
                    (said.to, said.text) = (to, text.voiced_text().to_owned());
                }
            }
            _ => {}
        }
        self.journal.add(event);
    }

    /// Returns the time of a position.
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
