//! Deviations that settings turn on: what is sent is cut short, swapped, late or not sent at all, by draws of the
//! call's seed.

use std::collections::VecDeque;
use std::time::Duration;

use ringer_media::seed::Stream;
use ringer_media::time::Time;

use super::super::dialect::Fault;
use super::super::protocol::Message;
use super::super::voice::Point;

/// Messages between two deviations, from and to.
const EVERY: (f64, f64) = (50.0, 150.0);

/// Delay of a mark that comes late.
const LATE: Duration = Duration::from_secs(2);

/// Time from the opening to the loss of the connection, in milliseconds, from and to.
const LOST_AFTER_MS: (f64, f64) = (5000.0, 20_000.0);

/// Deviations of one session.
#[derive(Debug)]
pub(super) struct Faults {
    on: Vec<Fault>,
    draws: Stream,
    /// Messages until the next one is cut short, and until two are swapped.
    until_malformed: u32,
    until_swap: u32,
    kept: Option<Message>,
    lost_at: Option<Time>,
    late: VecDeque<(Time, Point)>,
}

impl Faults {
    pub(super) fn new(on: &[Fault], mut draws: Stream) -> Faults {
        let mut next = || draws.range(EVERY.0, EVERY.1) as u32;
        let (until_malformed, until_swap) = (next(), next());
        Faults { on: on.to_vec(), draws, until_malformed, until_swap, kept: None, lost_at: None, late: VecDeque::new() }
    }

    pub(super) fn has(&self, fault: Fault) -> bool {
        self.on.contains(&fault)
    }

    /// Begins the protocol on the open socket.
    pub(super) fn on_open(&mut self, now: Time) {
        if self.has(Fault::DropSocket) {
            let ms = self.draws.range(LOST_AFTER_MS.0, LOST_AFTER_MS.1);
            self.lost_at = Some(now + Duration::from_millis(ms as u64));
        }
    }

    /// True when the connection is to be lost now.
    pub(super) fn loses(&self, now: Time) -> bool {
        self.lost_at.is_some_and(|at| now >= at)
    }

    /// Returns a text message as it is sent.
    pub(super) fn text(&mut self, mut text: String) -> String {
        if self.has(Fault::Malformed) {
            self.until_malformed -= 1;
            if self.until_malformed == 0 {
                self.until_malformed = self.draws.range(EVERY.0, EVERY.1) as u32;
                let mut middle = text.len() / 2;
                while !text.is_char_boundary(middle) {
                    middle -= 1;
                }
                text.truncate(middle);
            }
        }
        text
    }

    /// Returns the audio messages that are sent in place of this one.
    pub(super) fn audio(&mut self, message: Message) -> Vec<Message> {
        if let Some(kept) = self.kept.take() {
            return vec![message, kept];
        }
        if self.has(Fault::Reorder) {
            self.until_swap -= 1;
            if self.until_swap == 0 {
                self.until_swap = self.draws.range(EVERY.0, EVERY.1) as u32;
                self.kept = Some(message);
                return Vec::new();
            }
        }
        vec![message]
    }

    /// Returns the point when its echo is sent now; keeps or drops it otherwise.
    pub(super) fn echo(&mut self, now: Time, point: Point) -> Option<Point> {
        if self.has(Fault::NoMarks) {
            return None;
        }
        if self.has(Fault::SlowMarks) {
            self.late.push_back((now + LATE, point));
            return None;
        }
        Some(point)
    }

    /// Returns the next point whose late echo is sent now.
    pub(super) fn late_echo(&mut self, now: Time) -> Option<Point> {
        let (at, _) = self.late.front()?;
        (*at <= now).then(|| self.late.pop_front()).flatten().map(|(_, point)| point)
    }
}
