//! State of a live call that does not depend on its channel: place on a media thread, effects, files, and moments of
//! the call.

mod closing;
mod files;
mod most;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ringer_base::clock::monotonic;
use ringer_media::call::{Ending, Event, MOST_BEFORE, Quality, Signal};
use ringer_media::time::Time;
use ringer_transport::peer::PortOutput;
use rtrb::Consumer;
use tokio::sync::mpsc;

pub(super) use self::files::{Files, OpenFiles};
use super::effects::Effects;
use super::missing_recognizer::WordNeeds;
use super::services::{CallPermit, CallServices};
use super::shard::{CallNo, ToShard};
use super::{CallUpdate, EffectTime, Placement};

/// Warnings of a call's channel that are kept.
const MAX_WARNINGS: usize = 200;

/// State of one live call beside its channel.
pub(super) struct CallState {
    pub services: Arc<CallServices>,
    pub no: CallNo,
    shard: usize,
    pub effects: Effects,
    pub files: OpenFiles,
    pub news: mpsc::Sender<CallUpdate>,
    pub dialled_at_ms: Option<i64>,
    pub connected_at_ms: Option<i64>,
    /// Time since which media could come, where that was before the first tick of the call.
    up_since: Option<Time>,
    /// Nanoseconds by which the wall clock was ahead of the media threads' clock when the call connected.
    pub ahead_ns: i64,
    /// Sample 0 on the clock of the media threads; `None` before the call connected.
    zero: Option<Time>,
    /// The call connected, and is not told to be before there are keys.
    unsaid: Option<i64>,
    pub ending: Option<Ending>,
    pub wanted: WordNeeds,
    _permit: CallPermit,
}

impl CallState {
    /// Returns the state of a call that has begun on media thread `shard`.
    pub(crate) fn new(
        services: Arc<CallServices>,
        (no, shard): (CallNo, usize),
        placement: Placement,
        files: OpenFiles,
        tap: Consumer<i16>,
        news: mpsc::Sender<CallUpdate>,
        permit: CallPermit,
    ) -> CallState {
        let wanted = WordNeeds::of(&placement.spec);
        services.speech.recognizer.expect();
        let effects = Effects::new(services.clone(), no, shard, placement, tap, CallState::now);
        CallState {
            services,
            no,
            shard,
            effects,
            files,
            news,
            dialled_at_ms: None,
            connected_at_ms: None,
            up_since: None,
            ahead_ns: 0,
            zero: None,
            unsaid: None,
            ending: None,
            wanted,
            _permit: permit,
        }
    }

    /// Returns the time of the media threads.
    pub(crate) fn now() -> Time {
        monotonic()
    }

    /// Gives an order to the media thread.
    pub(crate) fn tell(&self, order: ToShard) {
        self.services.order(self.shard, order);
    }

    /// Carries out an output that all ports share; returns the action of the channel, where it is one.
    pub(crate) fn carry_out<A>(&mut self, output: PortOutput<A>) -> Option<A> {
        match output {
            PortOutput::Act(action) => return Some(action),
            PortOutput::Signal(Signal::Answered { code, leg, .. }) => {
                let text = self.can_hear_words(leg.heard_rate_hz());
                self.tell(ToShard::Signal(self.no, Signal::Answered { code, leg, text }));
            }
            PortOutput::Signal(signal) => {
                if let Signal::UpSince(at) = signal {
                    self.up_since = Some(at);
                }
                self.tell(ToShard::Signal(self.no, signal));
            }
            PortOutput::Log(at_ms, line) => self.files.write_log(at_ms, &line),
            PortOutput::Warning(warning) => {
                if self.files.warnings.len() < MAX_WARNINGS {
                    self.files.warnings.push(warning);
                }
            }
        }
        None
    }

    /// Captures the packets that someone else encrypts and sends between these addresses, this side's first.
    pub(crate) fn capture(&self, path: Option<(SocketAddr, SocketAddr)>) {
        if let Some((here, there)) = path {
            self.tell(ToShard::Capture(self.no, here, there));
        }
    }

    fn can_hear_words(&mut self, rate_hz: u32) -> bool {
        let supported = self.effects.hears_words(rate_hz);
        self.files.warnings.extend(self.wanted.unmet(
            &supported,
            &*self.services.speech.recognizer,
            self.effects.keyterms(),
        ));
        supported.is_ok()
    }

    /// Notes that the call is connected. It is told at once, except where media wait for keys.
    pub(crate) fn note_connected(&mut self, awaits_keys: bool) {
        let (now, at_once) = (self.services.clock.now_ms(), CallState::now());
        // Sample 0 is where media could come first.
        let before = self.up_since.map_or(Duration::ZERO, |since| at_once.since(since)).min(MOST_BEFORE);
        let at = now - before.as_millis() as i64;
        self.zero = Some(Time(at_once.0.saturating_sub(before.as_nanos() as u64)));
        self.connected_at_ms = Some(at);
        self.ahead_ns = self.services.clock.ahead_ns();
        self.services.counters.connected(self.dialled_at_ms.map(|from| now - from));
        self.unsaid = Some(at);
        if !awaits_keys {
            self.say_connected();
        }
    }

    /// Returns the times of the work for the call; none before it connected.
    pub(crate) fn effect_times(&self) -> Vec<EffectTime> {
        self.zero.map(|zero| self.effects.times().since(zero)).unwrap_or_default()
    }

    /// Tells that the call is connected, where it waited for keys.
    pub(crate) fn say_connected(&mut self) {
        if let Some(at) = self.unsaid.take() {
            let _ = self.news.try_send(CallUpdate::Connected(at));
        }
    }

    /// True while nobody was told that the call is connected.
    pub(crate) fn is_unsaid(&self) -> bool {
        self.unsaid.is_some()
    }

    /// Adds an event to the journal, and tells of it.
    pub(crate) fn add(&mut self, event: Event) {
        if let Some(entry) = self.files.add(event) {
            let _ = self.news.try_send(CallUpdate::Event(entry));
        }
    }

    /// Returns the figures of a call that is over and was connected.
    pub(crate) fn quality(&mut self) -> Option<&mut Quality> {
        self.ending.as_mut().filter(|ending| ending.connected).map(|ending| &mut ending.quality)
    }
}
