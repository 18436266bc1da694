//! Drives a call: ticks, packets through a network, effects that are answered after a while, and the log of it all.

use std::time::Duration;

use super::far::{Far, samples};
use super::mind::{Delays, Mind};
use super::voice::Voice;
use crate::call::{
    Call, CallSpec, Command, Comparison, Control, Effect, EffectId, Effected, EndReason, Ending, Event, Input,
    MediaChannel, Output, Sent, Signal, TICK, Thought,
};
use crate::detected_language::DetectedLanguage;
use crate::frame::{PER_MS, Sample};
use crate::leg::LegParams;
use crate::netem::{Netem, NetemSpec};
use crate::rings::{FramePeer, FrameRings, FromCall, frame_rings};
use crate::time::Time;

/// Number of samples of speech for a character of synthesized text (60 ms).
const PER_CHARACTER: usize = 960;
/// Length of the first part of synthesized speech: 200 ms.
const FIRST_PART: usize = 3200;
/// Time before a segment's onset within which words belong to it.
const LEAD: Sample = 200 * PER_MS;

/// Description of a conversation to be played.
pub struct RigSpec {
    /// Description of the call.
    pub call: CallSpec,
    /// Parameters of the media in both directions.
    pub leg: LegParams,
    /// Network from the other side to the call.
    pub net: NetemSpec,
    /// Delays of the effects.
    pub delays: Delays,
    /// True when a recognizer is there.
    pub text: bool,
    /// The mind of this side.
    pub mind: Mind,
    /// Voice of this side. The other side must not make the same sound, or it is taken for an echo.
    pub voice: Voice,
}

/// A packet that the call sent, or that came to it.
#[derive(Clone, Debug, PartialEq)]
pub struct SentPacket {
    /// Time at which it was sent or arrived. A sent packet has the tick's time, or a later one over a connection that
    /// is bad on purpose.
    pub at: Time,
    /// Sequence number (RFC 3550 5.1).
    pub sequence: u16,
    /// Payload type, 0 to 127.
    pub payload_type: u8,
    /// Timestamp in units of the RTP clock.
    pub timestamp: u32,
}

/// A frame of PCM that the call sent.
#[derive(Clone, Debug, PartialEq)]
pub struct SentFrame {
    /// Time at which it was sent.
    pub at: Time,
    /// Position of its first sample.
    pub from: Sample,
    /// Number of samples, at the leg's rate.
    pub len: usize,
}

/// The beginning or end of an utterance among the frames of a leg of PCM.
#[derive(Clone, Debug, PartialEq)]
pub struct SentUtterance {
    /// Position that was reported.
    pub at: Sample,
    /// True at the beginning.
    pub begins: bool,
    /// Number of frames that were sent before it.
    pub frames: usize,
}

/// Audio that was given to the recognizer.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// Position of the first sample.
    pub from: Sample,
    /// Number of samples, at 16 kHz.
    pub len: usize,
    /// True when it begins a stream.
    pub first: bool,
}

/// Everything that came out of a call.
#[derive(Default)]
pub struct Log {
    /// Events in the order in which they were given.
    pub events: Vec<Event>,
    /// Recording with interleaved channels, as far as the other side was handed out.
    pub recorded: Vec<i16>,
    /// Audio that this side sent, mono.
    sent: Vec<i16>,
    /// Audio of this side before noise and quality, mono.
    pub clean: Vec<i16>,
    /// Audio before connect, mono.
    pub early: Vec<i16>,
    /// RTP packets that the call sent.
    pub packets: Vec<SentPacket>,
    /// Frames of a leg of PCM.
    pub frames: Vec<SentFrame>,
    /// Beginnings and ends of utterances of this side, on a leg of PCM.
    pub utterances: Vec<SentUtterance>,
    /// Times at which buffered frames were to be dropped.
    pub cleared: Vec<Time>,
    /// RTCP datagrams that the call sent.
    pub reports: Vec<Vec<u8>>,
    /// Stretches of audio that the recognizer was given.
    pub ears: Vec<Heard>,
    /// RTP that the call received.
    pub arrived: Vec<SentPacket>,
    /// Call control that the call asked for.
    pub controls: Vec<Control>,
    /// Questions to the mind, with their times.
    pub thoughts: Vec<(Time, Thought)>,
    /// Phrases that turns were to be compared with, with their times.
    pub comparisons: Vec<(Time, Comparison)>,
    /// Texts whose language was asked for, and when.
    pub identified: Vec<(Time, String)>,
    /// Words given to the synthesizer.
    pub synthesized: Vec<String>,
    /// Effects that are neither done nor cancelled.
    pub open: Vec<EffectId>,
    /// Ends that the call reported.
    pub endings: Vec<Ending>,
    /// Number of outputs after the end.
    pub after_end: usize,
    /// Number of answers that were on their way when their effect was cancelled.
    pub cancelled: usize,
}

/// State of a recognizer for one segment.
struct Stream {
    id: EffectId,
    from: Sample,
    words: usize,
}

/// One call, its other side, and the network between them.
pub struct Rig {
    /// The call that is played.
    pub call: Call,
    /// Other side, from connect (or early media) on.
    pub far: Far,
    /// Everything that came out of the call.
    pub log: Log,
    /// The mind of this side.
    pub mind: Mind,
    spec: RigSpec,
    net: Netem,
    now: Time,
    origin: Option<Time>,
    pending: Vec<(Time, u32, EffectId, Effected)>,
    pended: u32,
    streams: Vec<Stream>,
    asked: Vec<(EffectId, Effect)>,
    connected: bool,
    early: bool,
    /// Rings between call and other side, on a leg of PCM: as between a media thread and the task of a channel.
    rings: Option<(FrameRings, FramePeer)>,
}

impl Rig {
    /// Returns a call that was placed and not answered.
    pub fn new(spec: RigSpec) -> Rig {
        let now = Time::from_millis(1000);
        let seed = spec.call.seed;
        let mut rig = Rig {
            call: Call::new(spec.call.clone()),
            far: Far::new(spec.leg, seed, now, 0),
            log: Log::default(),
            mind: spec.mind.clone(),
            net: Netem::new(spec.net, seed.stream("netem")),
            now,
            origin: None,
            pending: Vec::new(),
            pended: 0,
            streams: Vec::new(),
            asked: Vec::new(),
            connected: false,
            early: false,
            rings: if let LegParams::Pcm(pcm) = spec.leg { Some(frame_rings(pcm)) } else { None },
            spec,
        };
        rig.input(Input::Signal(Signal::Dialing { address: "sip:agent@example.com".into() }));
        rig
    }

    /// Returns the seconds since connect, or since dialling before it.
    pub fn seconds(&self) -> f64 {
        self.seconds_of(self.now)
    }

    /// Returns the seconds from connect, or from dialling before it, to `at`.
    pub fn seconds_of(&self, at: Time) -> f64 {
        let origin = self.origin.unwrap_or(Time::from_millis(1000));
        at.since(origin).as_secs_f64()
    }

    /// Gives the call a signal of the other side.
    pub fn signal(&mut self, signal: Signal) {
        self.input(Input::Signal(signal));
    }

    /// Begins media before the answer; the other side's clock starts, `before` ahead of connect.
    pub fn early_media(&mut self, before: Duration) {
        self.early = true;
        self.far = self.new_far(-(before.as_millis() as Sample) * PER_MS);
        self.input(Input::Signal(Signal::EarlyMedia { code: 183, leg: self.spec.leg }));
    }

    /// Answers the call: the next tick is sample 0.
    pub fn answer(&mut self) {
        self.connected = true;
        self.origin = Some(self.now + TICK);
        if !self.early {
            self.far = self.new_far(0);
        }
        let leg = self.spec.leg;
        self.input(Input::Signal(Signal::Answered { code: 200, leg, text: self.spec.text }));
    }

    fn new_far(&mut self, at: Sample) -> Far {
        let mut far = Far::new(self.spec.leg, crate::seed::Seed(self.spec.call.seed.0 ^ 1), self.now + TICK, at);
        far.spoken = std::mem::take(&mut self.far.spoken);
        far.digits = std::mem::take(&mut self.far.digits);
        far.echo = self.far.echo;
        far
    }

    /// Hangs up by the control API.
    pub fn hang_up(&mut self, reason: EndReason) {
        self.input(Input::Command(Command::Hangup(reason)));
    }

    /// True once the end was reported.
    pub fn is_over(&self) -> bool {
        self.call.is_over()
    }

    /// Makes the driver miss this many ticks: time passes, and the other side goes on.
    pub fn miss(&mut self, ticks: usize) {
        for _ in 0..ticks {
            self.advance();
            self.far_sends();
        }
    }

    /// Changes the network from the other side to the call from now on.
    pub fn change_network(&mut self, net: NetemSpec) {
        self.net.change(net);
    }

    /// Runs one tick of 20 ms.
    pub fn step(&mut self) {
        self.advance();
        self.run_recognizer();
        self.deliver();
        let mut sent = Sent::default();
        self.input(Input::Tick { late: Duration::ZERO, sent: &mut sent });
        if let Some(at) = sent.position {
            for (track, pcm) in [(&mut self.log.sent, &sent.pcm), (&mut self.log.clean, &sent.clean)] {
                track.resize(at as usize, 0);
                track.extend_from_slice(pcm);
            }
        }
        self.far_sends();
        while let Some((arrived, bytes)) = self.net.receive(self.now) {
            if let Some((_, peer)) = &mut self.rings {
                peer.receive(arrived, &samples(&bytes));
                continue;
            }
            self.log.arrived.push(packet(arrived, &bytes));
            self.input(Input::Packet { path: MediaChannel::Rtp, arrived, bytes: &bytes });
        }
        self.exchange_frames();
        self.input(Input::Listen);
        if let Some((rings, peer)) = &mut self.rings {
            rings.tell_heard(&self.call);
            peer.hand_on(self.now);
        }
        if self.connected {
            self.far.listen(self.now);
        }
    }

    /// Hands frames from each end of the rings to the other.
    fn exchange_frames(&mut self) {
        let Some((rings, peer)) = &mut self.rings else { return };
        rings.receive(&mut self.call, self.now);
        while let Some(message) = peer.next_message() {
            match message {
                FromCall::Frame { from, piece, .. } => {
                    self.far.receive_frame(self.now, piece.pcm());
                    self.log.frames.push(SentFrame { at: self.now, from, len: piece.pcm().len() });
                }
                FromCall::Clear => self.log.cleared.push(self.now),
                FromCall::Utterance { at, begins } => {
                    self.log.utterances.push(SentUtterance { at, begins, frames: self.log.frames.len() });
                }
            }
        }
    }

    /// Advances to the next tick; packets that are due before it are sent at their own time.
    fn advance(&mut self) {
        let tick = self.now + TICK;
        while let Some(due) = self.call.due().filter(|due| *due < tick) {
            self.now = self.now.max(due);
            self.input(Input::Release);
        }
        self.now = tick;
    }

    fn far_sends(&mut self) {
        if self.connected || self.early {
            self.far.tick(self.now, |bytes| self.net.send(self.now, bytes));
        }
    }

    fn input(&mut self, input: Input<'_>) {
        self.call.handle(self.now, input);
        while let Some(output) = self.call.poll() {
            self.log.after_end += usize::from(!self.log.endings.is_empty());
            match output {
                Output::Packet { path, bytes } => {
                    self.far.receive(path, self.now, bytes);
                    match path {
                        MediaChannel::Rtp => self.log.packets.push(packet(self.now, bytes)),
                        MediaChannel::Rtcp => self.log.reports.push(bytes.to_vec()),
                    }
                }
                Output::Frame { from, pcm } => {
                    self.rings.iter_mut().for_each(|(rings, _)| rings.send(from, self.now, pcm))
                }
                Output::Utterance { at, begins } => {
                    self.rings.iter_mut().for_each(|(rings, _)| rings.tell_utterance(at, begins));
                }
                Output::ClearBuffered => self.rings.iter_mut().for_each(|(rings, _)| rings.clear()),
                Output::Ears { from, pcm } => self.log.ears.push(Heard { from, len: pcm.len(), first: false }),
                Output::EarsPast { from, pcm } => self.log.ears.push(Heard { from, len: pcm.len(), first: true }),
                Output::Early(pcm) => self.log.early.extend_from_slice(pcm),
                Output::Heard(pcm) => {
                    let sent = &self.log.sent[self.log.recorded.len() / 2..][..pcm.len()];
                    self.log.recorded.extend(sent.iter().zip(pcm).flat_map(|(sent, heard)| [*sent, *heard]));
                }
                Output::Control(control) => self.log.controls.push(control),
                Output::Effect(id, effect) => self.asked.push((id, effect)),
                Output::Event(event) => self.log.events.push(event),
                Output::Ended(ending) => {
                    self.log.clean.truncate(self.log.recorded.len() / 2);
                    self.log.endings.push(*ending);
                }
            }
        }
        for (id, effect) in std::mem::take(&mut self.asked) {
            self.perform(id, effect);
        }
    }

    fn perform(&mut self, id: EffectId, effect: Effect) {
        let delays = self.spec.delays;
        if let Effect::Cancel(id) = effect {
            let before = self.pending.len();
            self.pending.retain(|(_, _, of, _)| *of != id);
            self.log.cancelled += before - self.pending.len();
            self.streams.retain(|stream| stream.id != id);
            return self.log.open.retain(|open| *open != id);
        }
        if !matches!(effect, Effect::Identify { .. }) {
            self.log.open.push(id);
        }
        match effect {
            Effect::Hear { from } => self.streams.push(Stream { id, from, words: 0 }),
            Effect::Recognize { hear, to } => {
                self.log.open.retain(|open| *open != hear);
                let Some(at) = self.streams.iter().position(|stream| stream.id == hear) else { return };
                let stream = self.streams.remove(at);
                let words = self.words(stream.from, to);
                let text = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
                if let Some(after_ms) = delays.recognize_ms {
                    self.pend(
                        after_ms,
                        id,
                        Effected::Final {
                            text,
                            words,
                            confidence: Some(1.0),
                            detected_language: DetectedLanguage::Unknown,
                        },
                    );
                }
            }
            Effect::Think(thought) => {
                let answer = self.mind.think(&thought);
                self.log.thoughts.push((self.now, thought));
                let Some(think_ms) = delays.think_ms else { return };
                let parts = answer.len();
                for (n, part) in answer.into_iter().enumerate() {
                    let part = crate::call::Move { more: n + 1 < parts, ..part };
                    self.pend(think_ms * (n as u64 + 1), id, Effected::Move(part));
                }
            }
            Effect::Compare(comparison) => {
                let done = match self.mind.compare(&comparison) {
                    Some(which) => Effected::Meant(which),
                    None => Effected::Failed { code: "meaning_not_told", why: String::new() },
                };
                self.log.comparisons.push((self.now, comparison));
                if let Some(think_ms) = delays.think_ms {
                    self.pend(think_ms, id, done);
                }
            }
            Effect::Synthesize { text, .. } => {
                // The same words sound different each time, whatever else is said.
                let before = self.log.synthesized.iter().filter(|said| **said == text).count();
                let place = before + text.bytes().map(usize::from).sum::<usize>();
                let pcm = self.spec.voice.say(text.chars().count() * PER_CHARACTER, place * 37);
                let (first, rest) = pcm.split_at(pcm.len().min(FIRST_PART));
                let after_ms = delays.synthesize_ms;
                self.pend(after_ms, id, Effected::Audio { pcm: first.into(), last: rest.is_empty() });
                if !rest.is_empty() {
                    self.pend(after_ms * 2, id, Effected::Audio { pcm: rest.into(), last: true });
                }
                self.log.synthesized.push(text);
            }
            Effect::Identify { text, .. } => self.log.identified.push((self.now, text)),
            Effect::Cancel(_) => {}
        }
    }

    fn pend(&mut self, after_ms: u64, id: EffectId, done: Effected) {
        self.pended += 1;
        self.pending.push((self.now + Duration::from_millis(after_ms), self.pended, id, done));
        self.pending.sort_by_key(|(due, number, ..)| (*due, *number));
    }

    fn deliver(&mut self) {
        while self.pending.first().is_some_and(|(due, ..)| *due <= self.now) {
            let (_, _, id, done) = self.pending.remove(0);
            let last = match &done {
                Effected::Partial(_) => false,
                Effected::Audio { last, .. } => *last,
                Effected::Move(part) => !part.more,
                Effected::Final { .. } | Effected::Meant(_) | Effected::Failed { .. } => true,
                Effected::Note { .. } | Effected::Language { .. } => false,
            };
            if last {
                self.log.open.retain(|open| *open != id);
            }
            self.input(Input::Done(id, done));
        }
    }

    /// Reports running text, word by word.
    fn run_recognizer(&mut self) {
        let Some(origin) = self.origin else { return };
        let ears = self.now.since(origin).as_millis() as Sample * PER_MS;
        let known = ears - self.spec.delays.partial_ms as Sample * PER_MS;
        for n in 0..self.streams.len() {
            let (id, from) = (self.streams[n].id, self.streams[n].from);
            let words: Vec<String> =
                self.words(from, known).into_iter().filter(|word| word.to <= known).map(|word| word.text).collect();
            if words.len() > self.streams[n].words {
                self.streams[n].words = words.len();
                self.pend(0, id, Effected::Partial(words.join(" ")));
            }
        }
    }

    /// Returns the other side's words as the call receives them.
    fn words(&self, from: Sample, to: Sample) -> Vec<crate::call::Word> {
        let shift = (self.spec.net.delay_ms * PER_MS as f64) as Sample;
        let mut words = self.far.words(from - shift - LEAD / 4, to - shift);
        for word in &mut words {
            (word.from, word.to) = (word.from + shift, word.to + shift);
        }
        words
    }

    /// Runs on to the end, for at most `ticks`.
    pub fn finish(&mut self, ticks: usize) {
        for _ in 0..ticks {
            if self.is_over() {
                return;
            }
            self.step();
        }
    }

    /// Returns the length of the recording in samples.
    pub fn recorded_samples(&self) -> Sample {
        (self.log.recorded.len() / 2) as Sample
    }
}

fn packet(at: Time, bytes: &[u8]) -> SentPacket {
    let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    SentPacket {
        at,
        sequence: word(2),
        payload_type: bytes[1] & 0x7f,
        timestamp: u32::from(word(4)) << 16 | u32::from(word(6)),
    }
}
