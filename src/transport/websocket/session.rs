//! One call's session of messages, sans-IO: the driver tells what happens, [`Session::poll`] tells what is to be done.

use ringer_media::time::Time;

use super::carrier;
use super::core::{Core, Protocol};
use super::default::DefaultProtocol;
use super::dialect::Dialect;
use super::handshake::{self, Ids, Upgrade};
use super::platform::PlatformProtocol;
use super::platform::far::protocol::FarProtocol;
use super::protobuf::ProtobufProtocol;
use super::protocol::{DigitPath, Kind, Message, Role, SessionControl, SessionEnd, SessionFacts, SessionOutput};

/// Session of one call on one socket.
#[derive(Debug)]
pub struct Session {
    core: Core,
    protocol: Box<dyn Protocol>,
    ids: Ids,
    /// True while a session that was up has no connection: this side's voice waits.
    is_resuming: bool,
}

impl Session {
    /// Returns the session of the side that dials.
    pub fn caller(dialect: Dialect, facts: SessionFacts) -> Session {
        Session::new(Role::Caller, dialect, facts)
    }

    /// Returns the session of an agent's server.
    pub fn agent(dialect: Dialect, facts: SessionFacts) -> Session {
        Session::new(Role::Agent, dialect, facts)
    }

    fn new(role: Role, dialect: Dialect, facts: SessionFacts) -> Session {
        let dialect = dialect.at(&facts.url);
        let mut core = Core::new(role, dialect, facts);
        let ids = Ids::new(&mut core);
        let protocol: Box<dyn Protocol> = match core.kind() {
            Kind::Default => Box::new(DefaultProtocol::default()),
            Kind::PipecatProtobuf => Box::new(ProtobufProtocol),
            Kind::Platform => match (core.dialect.platform.clone(), core.dialect.far.clone()) {
                (Some(rules), _) => Box::new(PlatformProtocol::new(&mut core, rules)),
                (None, Some(call)) => Box::new(FarProtocol::new(&mut core, call)),
                (None, None) => carrier::protocol(&mut core, &ids),
            },
            _ => carrier::protocol(&mut core, &ids),
        };
        Session { core, protocol, ids, is_resuming: false }
    }

    /// Returns the settings that are in force.
    pub fn dialect(&self) -> &Dialect {
        &self.core.dialect
    }

    /// Returns the way in which this side's digits reach the other one.
    pub fn digits(&self) -> DigitPath {
        self.core.dialect.digits()
    }

    /// Returns the upgrade request of the side that dials: the address as it is dialled, headers and subprotocols.
    pub fn upgrade(&mut self, now: Time) -> Upgrade {
        let created = self.core.epoch_ms(now).div_euclid(1000);
        handshake::upgrade(&self.core.dialect, &self.core.facts, &self.ids, created)
    }

    /// Takes the news that the handshake is over and the socket open.
    pub fn on_open(&mut self, now: Time) {
        self.core.open(now);
        self.protocol.on_open(&mut self.core, now);
    }

    /// Takes 20 ms of this side's voice at 16 kHz; before the protocol allows audio, and after the end, they are
    /// dropped. Those that come while the session is resumed are sent once it goes on.
    pub fn frame(&mut self, now: Time, pcm: &[i16]) {
        if !(self.core.sends || self.is_resuming) || self.core.is_over() {
            return;
        }
        self.core.mouth.take(pcm);
        self.send_voice(now);
    }

    fn send_voice(&mut self, now: Time) {
        if !self.core.sends {
            return;
        }
        self.is_resuming = false;
        while let Some(chunk) = self.core.mouth.next_chunk() {
            self.protocol.voice(&mut self.core, now, chunk);
        }
    }

    /// Begins the protocol again, for another connection on which a session goes on that is up; false where it cannot.
    pub fn resume(&mut self, now: Time) -> bool {
        let can_resume = !self.core.is_over() && self.protocol.begin_again(&mut self.core, now);
        self.is_resuming |= can_resume;
        can_resume
    }

    /// Carries out an order of the driver.
    pub fn control(&mut self, now: Time, control: SessionControl) {
        if !self.core.is_over() {
            if control == SessionControl::Clear {
                self.core.mouth.clear();
            }
            self.protocol.control(&mut self.core, now, control);
            self.tell_reached(now);
        }
    }

    /// Takes a message of the other side.
    pub fn receive(&mut self, now: Time, message: Message) {
        if self.core.is_over() {
            return;
        }
        if message.len() > self.core.facts.max_message_bytes {
            self.core.end(SessionEnd::Dropped(format!("a message of {} bytes is too big", message.len())));
            return self.core.close(1009, "message too big");
        }
        self.protocol.receive(&mut self.core, now, message);
        self.tell_reached(now);
    }

    /// Takes the number of samples of 16 kHz that were given by [`SessionOutput::Frames`] and have neither been played
    /// nor dropped. Every 20 ms is often enough.
    pub fn set_unplayed(&mut self, now: Time, samples: u64) {
        self.core.ears.set_unplayed(samples);
        self.tell_reached(now);
        if !self.core.is_over() {
            self.protocol.on_played(&mut self.core, now);
        }
    }

    /// Returns the samples of 16 kHz of the other side that wait to be played, up to the last one that is no silence.
    pub fn unplayed_sound(&self) -> u64 {
        self.core.ears.unplayed_sound()
    }

    /// True if a message of the other side held audio.
    pub fn has_heard_audio(&self) -> bool {
        self.core.ears.accepted_samples() > 0
    }

    /// Returns the sampling rate of the other side's audio as it comes, in Hz.
    pub fn heard_rate_hz(&self) -> u32 {
        self.core.ears.wire().rate_hz
    }

    /// Takes the passing of time; to be called every 20 ms.
    pub fn tick(&mut self, now: Time) {
        if !self.core.is_over() {
            self.core.tick(now);
            self.protocol.tick(&mut self.core, now);
        }
    }

    /// Returns the next output, in order.
    pub fn poll(&mut self) -> Option<SessionOutput> {
        self.core.poll()
    }

    fn tell_reached(&mut self, now: Time) {
        // Playing rests as a whole, marks included.
        while !self.core.is_over() && !self.core.ears.is_paused() {
            let Some(point) = self.core.ears.next_reached() else { break };
            self.protocol.on_mark_played(&mut self.core, now, point);
        }
    }
}
