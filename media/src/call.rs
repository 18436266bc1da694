//! The Call: the state machine between transport, media and mind.
//!
//! Contract: one [`Call::handle`], then [`Call::poll`] until `None`. Every 20 ms the driver hands in [`Input::Tick`]
//! (the sending pass, `now` = the tick's scheduled time), then the packets that arrived, then [`Input::Listen`] (the
//! receiving pass). A call asks for speech and thought by [`Output::Effect`]; the answers come back as [`Input::Done`].
//! Sample 0 is the first tick after the answer. A tick without an event allocates nothing. A call with a simulated bad
//! connection also tells when its next packet is due ([`Call::due`]).
//!
//! A call over frames of PCM that says one sentence:
//!
//! ```
//! use std::time::Duration;
//! use ringer_media::call::{Call, CallSpec, Effect, Effected, Input, Opening, Output, Sent, Signal};
//! use ringer_media::leg::{LegParams, PcmParams};
//! use ringer_media::time::Time;
//!
//! let mut call = Call::new(CallSpec { opening: Opening::Say("Hello.".into()), ..CallSpec::default() });
//! let leg = LegParams::Pcm(PcmParams::new(16_000).expect("a rate of these legs"));
//! call.handle(Time(0), Input::Signal(Signal::Dialing { address: "agent".into() }));
//! call.handle(Time(0), Input::Signal(Signal::Answered { code: 200, leg, text: false }));
//! let (mut sent, mut asked, mut spoken) = (Sent::default(), None, 0);
//! for now in (20..3000).step_by(20).map(Time::from_millis) {
//!     let tick = Input::Tick { late: Duration::ZERO, sent: &mut sent };
//!     for input in [tick, Input::Frames { arrived: now, pcm: &[0; 320] }, Input::Listen] {
//!         call.handle(now, input);
//!         while let Some(output) = call.poll() {
//!             match output {
//!                 Output::Effect(id, Effect::Synthesize { text, .. }) => asked = Some((id, text)),
//!                 Output::Frame { pcm, .. } => spoken += pcm.iter().filter(|sample| **sample != 0).count(),
//!                 _ => {}
//!             }
//!         }
//!     }
//!     if let Some((id, text)) = asked.take() {
//!         assert_eq!(text, "Hello.");
//!         call.handle(now, Input::Done(id, Effected::Audio { pcm: [3000; 8000].into(), last: true }));
//!     }
//! }
//! assert_eq!(spoken, 8000, "half a second of speech, sample by sample");
//! ```

mod channel;
mod channel_event;
mod concealed;
mod dial;
mod ears;
mod edges;
mod ending;
mod event;
mod io;
mod keyed;
mod mouth;
mod outbox;
pub mod pacing;
mod pauses;
mod phase;
mod reading;
mod script;
mod spec;
mod timeline;
mod transfer;
mod turn_taking;
mod unheard;
mod utterance;

use std::time::Duration;

pub use channel_event::{AUDIO_NOT_PLAYED, ChannelEvent, RATE_MISMATCH};
pub use ending::*;
pub use event::*;
pub use io::*;
pub use phase::MOST_BEFORE;
pub use script::{ByScript, Script, contains_phrase, normal_form, phrase_words, same_words, with_equal_numbers};
pub use spec::*;

use self::channel::ChannelState;
use self::ears::EarSet;
use self::outbox::Outbox;
use self::pacing::Pacing;
use self::phase::{Phase, Waits};
use self::turn_taking::{Decision, Percept, Scene, TurnTaking};
use crate::connection::{Arrivals, Connection};
use crate::frame::{FRAME, Frame, PER_MS, SILENCE, Sample};
use crate::leg::{Leg, PcmLeg};
pub use crate::numerals::is_unspaced;
use crate::recording::Window;
use crate::time::Time;

/// Length of a tick.
pub const TICK: Duration = Duration::from_millis(20);

/// One live conversation, driven by [`Call::handle`] and [`Call::poll`].
pub struct Call {
    spec: CallSpec,
    phase: Phase,
    waits: Waits,
    channel: ChannelState,
    origin: Time,
    /// First sample of the next frame to be sent.
    frame_at: Sample,
    /// `frame_at` at the last listening: what is recorded may be handed out by it.
    listened_to: Sample,
    out: Outbox,
    leg: Option<Leg>,
    /// Simulated bad connection; `None` without one.
    connection: Option<Box<Connection>>,
    window: Window,
    ears: EarSet,
    pacing: Pacing,
    /// Machine that decides who speaks when.
    turn_taking: TurnTaking,
}

impl Call {
    /// Returns a call that has not begun to dial.
    pub fn new(mut spec: CallSpec) -> Call {
        let turn_taking = TurnTaking::new(&mut spec);
        Call {
            phase: Phase::Idle,
            waits: Waits::default(),
            channel: ChannelState::default(),
            origin: Time::default(),
            frame_at: 0,
            listened_to: 0,
            out: Outbox::new(if spec.connection.is_clear() { 1 } else { Arrivals::at_once(&spec.connection) }),
            leg: None,
            connection: None,
            window: Window::new(),
            ears: EarSet::new(spec.ears, !spec.connection.is_clear()),
            pacing: Pacing::default(),
            turn_taking,
            spec,
        }
    }

    /// Takes one input. `now` never goes back.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Signal(signal) => self.signal(now, signal),
            Input::Packet { path, arrived, bytes } => self.packet(path, arrived, bytes),
            Input::Frames { arrived, pcm } => self.frames(|leg| leg.receive(arrived, pcm)),
            Input::ClearFrames => self.frames(PcmLeg::clear),
            Input::Tick { late, sent } => self.tick(now, late, sent),
            Input::Release => self.release(now),
            Input::Listen => self.listen(now),
            Input::Voiced(id, voiced) => self.turn_taking.voice(id, voiced),
            Input::Done(id, result) => self.take_result(now, id, result),
            Input::Command(Command::Hangup(reason)) => self.hang_up(now, reason),
        }
    }

    /// Takes the result of an effect, or a part of it.
    fn take_result(&mut self, now: Time, id: EffectId, result: Effected) {
        match result {
            Effected::Note { code, why } if self.phase.is_dialling() => {
                self.waits.before.push((now, Side::Engine, EventKind::Note { code: code.into(), why }));
            }
            Effected::Failed { .. } if self.phase.is_dialling() => self.turn_taking().drop_prepared(),
            Effected::Language { .. } if !self.phase.is_connected() => {}
            result => self.turn_taking().take_result(id, result),
        }
        self.carry_out();
    }

    /// Shows the turn-taking the state of the call, and returns it for the next inputs.
    fn turn_taking(&mut self) -> &mut TurnTaking {
        let voice = self.ears.voice.vad();
        self.turn_taking.look(Scene {
            at: self.frame_at,
            heard_to: self.ears.heard_to,
            spoken_to: voice.spoken_to(),
            stirring: voice.is_stirring(),
            in_noise: voice.in_noise(),
            text: self.ears.which.text,
            mute: self.is_mute(),
            on_hold: self.waits.on_hold,
            away: self.waits.away.is_some(),
        });
        &mut self.turn_taking
    }

    /// Carries out what the turn-taking has decided, in order.
    fn carry_out(&mut self) {
        while let Some(decision) = self.turn_taking.poll() {
            match decision {
                Decision::Event(event) => self.out.push(Output::Event(event)),
                Decision::Effect(id, effect) => self.out.push(Output::Effect(id, effect)),
                Decision::Feed(onset) => self.feed_from(onset),
                Decision::ClearBuffered => self.clear_buffered(),
                Decision::Digit { digit, at } => self.send_digit(digit, at),
                Decision::Fail(fault) => self.fail(fault),
            }
        }
    }

    /// Drops frames of this side that were not sent, on a leg of PCM.
    fn clear_buffered(&mut self) {
        if matches!(self.leg, Some(Leg::Pcm(_))) {
            self.connection.iter_mut().for_each(|connection| connection.sent.clear());
            self.out.push(Output::ClearBuffered);
        }
    }

    /// Returns the next output, `None` when all were taken.
    pub fn poll(&mut self) -> Option<Output<'_>> {
        if let Some(connection) = self.connection.as_mut().filter(|connection| connection.sent.is_ready()) {
            if let Some(Leg::Pcm(_)) = self.leg {
                return connection.sent.pop_frame().map(|(from, pcm)| Output::Frame { from, pcm });
            }
            return connection.sent.pop().map(|bytes| Output::Packet { path: MediaChannel::Rtp, bytes });
        }
        if !self.out.is_empty() {
            return self.out.pop();
        }
        let heard = match &self.phase {
            Phase::Connected => self.window.advance(self.listened_to),
            Phase::Closing { ending, .. } => self.window.flush(ending.samples),
            _ => None,
        };
        match heard {
            Some(pcm) => Some(Output::Heard(pcm)),
            None => self.out.pop(),
        }
    }

    /// Returns the time at which the next packet held back by a bad connection is to leave. The driver hands in
    /// [`Input::Release`] then, at any time between ticks. Every tick releases packets that are due by then.
    pub fn due(&self) -> Option<Time> {
        self.connection.as_ref().and_then(|connection| connection.sent.due())
    }

    /// Packets may be held back: the driver has to ask for [`Call::due`].
    pub fn holds_packets(&self) -> bool {
        self.spec.connection.jitter_ms > 0.0
    }

    /// True once [`Output::Ended`] was given.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    fn packet(&mut self, path: MediaChannel, arrived: Time, bytes: &[u8]) {
        let Some(Leg::Rtp(leg)) = &mut self.leg else { return };
        match path {
            MediaChannel::Rtp => {
                leg.receive(arrived, bytes);
            }
            MediaChannel::Rtcp => leg.receive_report(arrived, bytes),
        }
    }

    /// Hands audio of the other side to a leg of PCM.
    fn frames(&mut self, act: impl FnOnce(&mut PcmLeg)) {
        if let Some(Leg::Pcm(leg)) = &mut self.leg {
            act(leg);
        }
    }

    /// True once the call has a leg of PCM, which takes [`Input::Frames`].
    pub fn takes_frames(&self) -> bool {
        matches!(self.leg, Some(Leg::Pcm(_)))
    }

    /// Returns the samples of 16 kHz that were heard of the frames that came, or dropped by [`Input::ClearFrames`]: a
    /// feeder keeps at most one second ahead of it.
    pub fn frames_heard(&self) -> u64 {
        if let Some(Leg::Pcm(leg)) = &self.leg { leg.heard_samples() } else { 0 }
    }

    fn release(&mut self, now: Time) {
        if let Some(connection) = &mut self.connection {
            connection.sent.release(now);
        }
    }

    fn tick(&mut self, now: Time, late: Duration, sent: &mut Sent) {
        sent.position = None;
        self.release(now);
        if !self.run_phase(now) {
            return;
        }
        self.skip_to(now);
        self.act(now);
        if !self.phase.is_connected() {
            return;
        }
        self.announce_speech();
        let at = self.frame_at;
        let rendered = self.turn_taking.mouth.render(at, &mut sent.pcm, &mut sent.clean);
        if self.is_mute() {
            // It is not sent, whatever noise there is on this side.
            (sent.pcm, sent.clean) = (SILENCE, SILENCE);
        }
        sent.position = Some(at);
        self.ears.take_sent(at, &sent.pcm);
        self.send(now, at, &sent.pcm);
        self.pacing.record_sent(late);
        self.frame_at += FRAME as Sample;
        self.announce_silence();
        self.turn_taking().take_own(rendered);
        self.carry_out();
    }

    /// Sends the frame at `at` over the leg.
    fn send(&mut self, now: Time, at: Sample, pcm: &Frame) {
        match &mut self.leg {
            Some(Leg::Rtp(leg)) => {
                let mut post = |bytes: &[u8]| match &mut self.connection {
                    Some(connection) => connection.sent.send(now, bytes),
                    None => self.out.packet(MediaChannel::Rtp, bytes),
                };
                leg.send(now, pcm);
                while let Some(bytes) = leg.packet() {
                    post(bytes);
                }
                if let Some(bytes) = leg.report(now, ntp(now)) {
                    self.out.packet(MediaChannel::Rtcp, bytes);
                }
            }
            Some(Leg::Pcm(leg)) => {
                let pcm = leg.send(pcm);
                match &mut self.connection {
                    Some(connection) => connection.sent.send_frame(now, at, pcm),
                    None => self.out.frame(at, pcm),
                }
            }
            None => {}
        }
    }

    /// Ticks that the driver skipped were not sent: time goes on, nothing else does.
    fn skip_to(&mut self, now: Time) {
        let ticks = (now.since(self.origin).as_nanos() + TICK.as_nanos() / 2) / TICK.as_nanos();
        let at = ticks as Sample * FRAME as Sample;
        let skipped = (at - self.frame_at) / FRAME as Sample;
        if skipped <= 0 {
            return;
        }
        if let Some(leg) = &mut self.leg {
            for _ in 0..skipped {
                leg.skip();
            }
        }
        self.pacing.record_skipped(skipped as u64);
        self.event(self.frame_at, Side::Engine, EventKind::LateFrames { count: skipped as u64 });
        self.frame_at = at;
    }

    /// Returns the position of `at` on the sample clock.
    fn sample(&self, at: Time) -> Sample {
        let ahead = at.since(self.origin).as_nanos() as i64;
        let behind = self.origin.since(at).as_nanos() as i64;
        (ahead - behind) * PER_MS / 1_000_000
    }

    fn event(&mut self, sample: Sample, side: Side, what: EventKind) {
        self.out.push(Output::Event(Event { sample, side, what }));
    }

    fn note(&mut self, sample: Sample, code: &'static str) {
        self.event(sample, Side::Engine, EventKind::Note { code: code.into(), why: String::new() });
    }
}

/// Returns the driver's clock in NTP form (RFC 5905 6: seconds and 2^-32 fractions). Reports need a clock that runs
/// evenly, not one that shows the time of day (RFC 3550 6.4.1).
fn ntp(now: Time) -> u64 {
    let (seconds, nanos) = (now.0 / 1_000_000_000, now.0 % 1_000_000_000);
    (seconds << 32) | ((nanos << 32) / 1_000_000_000)
}

/// Converts milliseconds to samples.
fn ms(ms: u32) -> Sample {
    Sample::from(ms) * PER_MS
}
