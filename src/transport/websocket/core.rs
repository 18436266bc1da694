//! Common state of the sessions of all kinds: outputs, this side's voice, the queue of received audio, violations, ids
//! and the end.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::time::Duration;

use ringer_media::seed::Stream;
use ringer_media::time::Time;
use serde_json::Value;

use super::dialect::Dialect;
use super::protocol::{Kind, MAX_VIOLATIONS, Message, Role, SessionControl, SessionEnd, SessionFacts, SessionOutput};
use super::rate_watch::RateWatch;
use super::voice::{Ears, Mouth, Point};

/// Time without a word of the other side after which a session counts as established.
const OPENING: Duration = Duration::from_secs(2);

/// Reports of messages that are played although they break a rule, for each code.
const MAX_REPEATS: u32 = 10;

/// Shortest time between two reports of overflow.
const OVERFLOW_PAUSE: Duration = Duration::from_secs(1);

/// Most characters of a message that a report quotes.
const EXCERPT_CHARS: usize = 200;

/// A protocol of one kind, in the role of [`Core::role`].
pub(super) trait Protocol: Debug + Send {
    /// Begins the protocol on the open socket.
    fn on_open(&mut self, core: &mut Core, now: Time);
    /// Takes a full chunk of this side's voice.
    fn voice(&mut self, core: &mut Core, now: Time, chunk: Vec<u8>);
    /// Carries out an order of the driver.
    fn control(&mut self, core: &mut Core, now: Time, control: SessionControl);
    /// Takes a message; its length was checked.
    fn receive(&mut self, core: &mut Core, now: Time, message: Message);
    /// Takes the news that the audio before a point was played.
    fn on_mark_played(&mut self, core: &mut Core, now: Time, point: Point);
    /// Takes the new position in the received audio; points that it passed were told before.
    fn on_played(&mut self, _core: &mut Core, _now: Time) {}
    /// Begins the protocol again, for another connection on which the session goes on; false where that cannot be.
    fn begin_again(&mut self, _core: &mut Core, _now: Time) -> bool {
        false
    }
    /// Takes the passing of time.
    fn tick(&mut self, _core: &mut Core, _now: Time) {}
}

/// Common state of a session.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) role: Role,
    pub(super) dialect: Dialect,
    pub(super) facts: SessionFacts,
    pub(super) mouth: Mouth,
    pub(super) ears: Ears,
    /// Draws of ids and nonces.
    pub(super) ids: Stream,
    /// True while this side's voice is sent.
    pub(super) sends: bool,
    /// True where the protocol itself says when the session is established.
    pub(super) waits_for_answer: bool,
    out: VecDeque<SessionOutput>,
    opened_at: Option<Time>,
    is_established: bool,
    is_over: bool,
    has_ended: bool,
    violations: u32,
    repeats: Vec<(&'static str, u32)>,
    overflow: u64,
    overflow_told: Option<Time>,
    rate: RateWatch,
}

impl Core {
    pub(super) fn new(role: Role, dialect: Dialect, facts: SessionFacts) -> Core {
        let (own, other) = match role {
            Role::Caller => (dialect.wire, dialect.agent_wire),
            Role::Agent => (dialect.agent_wire, dialect.wire),
        };
        let chunk_ms = dialect.chunk_ms;
        Core {
            role,
            mouth: Mouth::new(own, chunk_ms),
            ears: Ears::new(other),
            ids: facts.seed.stream(match role {
                Role::Caller => "websocket",
                Role::Agent => "websocket agent",
            }),
            dialect,
            facts,
            sends: false,
            waits_for_answer: false,
            out: VecDeque::new(),
            opened_at: None,
            is_established: false,
            is_over: false,
            has_ended: false,
            violations: 0,
            repeats: Vec::new(),
            overflow: 0,
            overflow_told: None,
            rate: RateWatch::default(),
        }
    }

    /// Returns the kind of the protocol.
    pub(super) fn kind(&self) -> Kind {
        self.dialect.kind
    }

    /// True on the side that dials.
    pub(super) fn is_caller(&self) -> bool {
        self.role == Role::Caller
    }

    /// True once nothing more is sent or read.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// True once [`SessionOutput::Ended`] was given.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the wall clock in milliseconds since 1970.
    pub(super) fn epoch_ms(&self, now: Time) -> i64 {
        let nanos = now.0 as i64 - self.facts.at.0 as i64;
        self.facts.epoch_ms + nanos.div_euclid(1_000_000)
    }

    /// Returns a new uuid (RFC 9562, version 4).
    pub(super) fn new_uuid(&mut self) -> String {
        let mut bytes = [0; 16];
        bytes.chunks_exact_mut(4).for_each(|four| four.copy_from_slice(&self.ids.bits().to_le_bytes()));
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// Returns 32 hexadecimal digits.
    pub(super) fn new_hex(&mut self) -> String {
        (0..4).map(|_| format!("{:08x}", self.ids.bits())).collect()
    }

    pub(super) fn open(&mut self, now: Time) {
        self.opened_at.get_or_insert(now);
    }

    pub(super) fn push(&mut self, output: SessionOutput) {
        if !self.is_over {
            self.out.push_back(output);
        }
    }

    pub(super) fn send(&mut self, message: Message) {
        self.push(SessionOutput::Send(message));
    }

    pub(super) fn send_text(&mut self, text: String) {
        self.send(Message::Text(text));
    }

    pub(super) fn event(&mut self, name: &'static str, data: Value) {
        self.push(SessionOutput::Event { name, data });
    }

    /// Says once that the session is established.
    pub(super) fn establish(&mut self) {
        if !self.is_established {
            self.is_established = true;
            self.push(SessionOutput::Opened);
        }
    }

    /// Plays bytes of the other side's audio.
    pub(super) fn play(&mut self, now: Time, bytes: &[u8]) {
        let doubt = self.rate.on_audio(now, self.ears.wire(), bytes.len());
        doubt.into_iter().for_each(|doubt| self.push(SessionOutput::RateDoubted(doubt)));
        let pcm = self.ears.decode(bytes);
        self.play_pcm(now, pcm);
    }

    /// Looks for a WAV header at the beginning of bytes of audio that states another rate.
    pub(super) fn read_header(&mut self, bytes: &[u8]) {
        let doubt = self.rate.on_header(self.ears.wire(), bytes);
        doubt.into_iter().for_each(|doubt| self.push(SessionOutput::RateDoubted(doubt)));
    }

    /// Plays samples of 16 kHz.
    pub(super) fn play_pcm(&mut self, now: Time, mut pcm: Vec<i16>) {
        let dropped = self.ears.accept(&mut pcm);
        if !pcm.is_empty() {
            self.push(SessionOutput::Frames(pcm));
        }
        self.drop_audio(now, dropped);
    }

    /// Pauses playing, or lets it go on with at most `ahead` samples of 16 kHz on their way.
    pub(super) fn pause(&mut self, is_paused: bool, ahead: u64) {
        self.ears.set_paused(is_paused);
        self.push(SessionOutput::HoldFrames(Some(if is_paused { 0 } else { ahead })));
    }

    /// Counts samples of 16 kHz that did not fit.
    pub(super) fn drop_audio(&mut self, now: Time, samples: u64) {
        self.overflow += samples;
        self.tell_overflow(now);
    }

    fn tell_overflow(&mut self, now: Time) {
        let is_due = self.overflow_told.is_none_or(|at| now.since(at) >= OVERFLOW_PAUSE);
        if self.overflow > 0 && is_due {
            let dropped = std::mem::take(&mut self.overflow);
            self.overflow_told = Some(now);
            self.push(SessionOutput::Overflowed { dropped });
        }
    }

    /// Drops what the other side wants to be dropped; returns the points in it.
    pub(super) fn clear(&mut self) -> Vec<Point> {
        let (dropped, points) = self.ears.clear();
        self.push(SessionOutput::ClearFrames);
        self.push(SessionOutput::Cleared { dropped });
        points
    }

    /// Counts a message that was dropped; after too many of them the session ends.
    pub(super) fn violation(&mut self, code: &'static str, message: &str) {
        self.push(SessionOutput::Violation { code, excerpt: excerpt(message), is_refused: true });
        self.violations += 1;
        if self.violations >= MAX_VIOLATIONS {
            self.end(SessionEnd::TooManyViolations);
            self.close(1008, "too many protocol errors");
        }
    }

    /// Tells of a message that breaks a rule and is played all the same: only the first few times, and without
    /// counting.
    pub(super) fn deviation(&mut self, code: &'static str, what: &str) {
        let at = self.repeats.iter().position(|(known, _)| *known == code).unwrap_or_else(|| {
            self.repeats.push((code, 0));
            self.repeats.len() - 1
        });
        self.repeats[at].1 += 1;
        if self.repeats[at].1 <= MAX_REPEATS {
            self.push(SessionOutput::Violation { code, excerpt: excerpt(what), is_refused: false });
        }
    }

    /// Says that the session is at its end; its socket is still open. Only the first end counts.
    pub(super) fn end(&mut self, end: SessionEnd) {
        if !self.has_ended {
            self.sends = false;
            self.push(SessionOutput::Ended(end));
            self.has_ended = true;
        }
    }

    /// Closes the socket; nothing follows.
    pub(super) fn close(&mut self, code: u16, reason: &'static str) {
        self.push(SessionOutput::Close { code, reason });
        self.is_over = true;
    }

    /// Gives the connection up; nothing follows.
    pub(super) fn lose(&mut self) {
        self.push(SessionOutput::Drop);
        self.is_over = true;
    }

    /// Ends the session in the way of `control`, after the protocol's own last messages.
    pub(super) fn close_for(&mut self, control: &SessionControl) {
        let (end, code, reason) = match control {
            SessionControl::Fault => (SessionEnd::OwnFault, 1011, "internal error"),
            SessionControl::Shutdown => (SessionEnd::Own, 1001, "going away"),
            _ => (SessionEnd::Own, 1000, "call ended"),
        };
        self.end(end);
        self.close(code, reason);
    }

    /// Looks after what depends on time alone.
    pub(super) fn tick(&mut self, now: Time) {
        if !self.waits_for_answer && self.opened_at.is_some_and(|at| now.since(at) >= OPENING) {
            self.establish();
        }
        self.tell_overflow(now);
        self.rate.tick(now);
    }

    pub(super) fn poll(&mut self) -> Option<SessionOutput> {
        self.out.pop_front()
    }

    /// Returns the milliseconds of this side's audio that were sent.
    pub(super) fn sent_ms(&self) -> u64 {
        self.mouth.sent_samples() * 1000 / u64::from(self.mouth.wire().rate_hz)
    }
}

/// Returns the beginning of a message, without control characters.
fn excerpt(message: &str) -> String {
    message.chars().take(EXCERPT_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
