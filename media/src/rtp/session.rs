//! The RTP sender's state and the telephone events of both directions (RFC 3550 5.1, RFC 3551 4.1, RFC 4733 2.5).
//!
//! The sender decides for each 20 ms tick what is due: audio or, while an event lasts, an event packet in its place, and numbers
//! the packets. The receiver makes one digit of the many packets of an event, whichever of them are lost or come twice.

use std::time::Duration;

use super::packet::{EVENT, EventPayload, Header, digit_of, event_of};
use crate::frame::{PER_MS, Sample};
use crate::seed::Stream;
use crate::time::Time;

/// Longest event sent, in milliseconds, where a 16-bit duration holds as much (RFC 4733 2.5.1.3).
pub const LONGEST_EVENT_MS: u32 = 8000;

/// Power of a sent event, -dBm0.
const VOLUME: u8 = 10;

/// Copies of an event's last packet, one each tick: a short burst of losses does not take them all (RFC 4733 2.5.1.4).
const END_PACKETS: u8 = 3;

/// An event that is heard lasts no longer, whatever is said of it: what waits for its end waits for so long.
const LONGEST_HEARD_MS: u32 = 10_000;

/// An event without an end is over when nothing came of it for this long.
const EVENT_TIMEOUT: Duration = Duration::from_millis(100);

/// A 16-bit duration that is nearly used up: the next packet may continue the event with a new timestamp (RFC 4733 2.5.1.3).
const SEGMENT_TICKS: std::ops::RangeInclusive<u32> = 0xf000..=0x1_0100;

/// What is due in a tick.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Due {
    /// Audio of this timestamp.
    Audio(u32),
    /// A telephone event.
    Event(EventPacket),
}

/// A packet of a telephone event that is due.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct EventPacket {
    timestamp: u32,
    marker: bool,
    /// What it says.
    pub payload: EventPayload,
}

#[derive(Copy, Clone, Debug)]
struct SentEvent {
    code: u8,
    timestamp: u32,
    duration: u32,
    elapsed: u32,
    begun: bool,
}

/// One sent stream.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Units of the RTP clock in a millisecond.
    per_ms: u32,
    ssrc: u32,
    sequence: u16,
    timestamp: u32,
    /// Timestamp that follows on the last audio packet.
    follows: Option<u32>,
    event: Option<SentEvent>,
    /// The last packet of an event and how often it is still to be repeated.
    repeat: Option<(u32, EventPayload, u8)>,
    packets: u32,
    octets: u32,
}

impl Sender {
    /// SSRC and first sequence number and timestamp are drawn (RFC 3550 5.1, 8.1).
    pub fn new(clock_hz: u32, stream: &mut Stream) -> Sender {
        Sender {
            per_ms: clock_hz / 1000,
            ssrc: stream.bits(),
            sequence: stream.bits() as u16,
            timestamp: stream.bits(),
            follows: None,
            event: None,
            repeat: None,
            packets: 0,
            octets: 0,
        }
    }

    /// Begins below 2^15, so that whoever misses the first packets still knows how often the sequence number has wrapped
    /// (RFC 4568 6.4).
    pub fn begin_low(&mut self) {
        self.sequence &= 0x7fff;
    }

    /// What is due now; moves on by 20 ms.
    pub fn tick(&mut self) -> Due {
        let (now, frame) = (self.timestamp, self.frame());
        self.timestamp = now.wrapping_add(frame);
        if let Some((timestamp, payload, left)) = self.repeat {
            self.repeat = (left > 1).then_some((timestamp, payload, left - 1));
            return Due::Event(EventPacket { timestamp, marker: false, payload });
        }
        let Some(event) = &mut self.event else { return Due::Audio(now) };
        if !event.begun {
            event.timestamp = now;
        }
        event.elapsed += frame;
        let marker = !std::mem::replace(&mut event.begun, true);
        let event = *event;
        let end = event.elapsed >= event.duration;
        let duration = event.elapsed.min(event.duration) as u16;
        let payload = EventPayload { event: event.code, end, volume: VOLUME, duration };
        if end {
            self.event = None;
            self.repeat = Some((event.timestamp, payload, END_PACKETS - 1));
        }
        Due::Event(EventPacket { timestamp: event.timestamp, marker, payload })
    }

    /// Numbers an audio packet of this timestamp and length in units of the RTP clock, with so many bytes of payload.
    pub fn audio(&mut self, payload_type: u8, timestamp: u32, units: u32, bytes: usize) -> Header {
        let follows = self.follows.replace(timestamp.wrapping_add(units));
        self.header(payload_type, follows != Some(timestamp), timestamp, bytes)
    }

    /// Numbers an event packet.
    pub fn event(&mut self, payload_type: u8, packet: &EventPacket) -> Header {
        self.header(payload_type, packet.marker, packet.timestamp, EVENT)
    }

    /// A tick in which nothing is sent: the timestamp moves on, the sequence number does not.
    pub fn skip(&mut self) {
        let frame = self.frame();
        self.timestamp = self.timestamp.wrapping_add(frame);
        if let Some(event) = self.event.as_mut().filter(|event| event.begun) {
            event.elapsed += frame;
        }
    }

    /// Begins an event at the next tick (up to two ticks later when the end of the one before is still being repeated), of at
    /// least one tick and at most [`LONGEST_EVENT_MS`], or what 16 bits hold at the RTP clock (1365 ms at 48 kHz). False when
    /// `digit` is none or another event still runs.
    pub fn start_event(&mut self, digit: char, duration_ms: u32) -> bool {
        let Some(code) = event_of(digit).filter(|_| self.event.is_none()) else { return false };
        let duration = (duration_ms.min(LONGEST_EVENT_MS) * self.per_ms).clamp(self.frame(), u16::MAX.into());
        self.event = Some(SentEvent { code, timestamp: 0, duration, elapsed: 0, begun: false });
        true
    }

    /// An event runs, or its end is being repeated.
    pub fn sending_event(&self) -> bool {
        self.event.is_some() || self.repeat.is_some()
    }

    /// The stream's own source.
    pub fn ssrc(&self) -> u32 {
        self.ssrc
    }

    /// Timestamp of the next tick, packets and payload bytes sent (RFC 3550 6.4.1).
    pub fn counts(&self) -> (u32, u32, u32) {
        (self.timestamp, self.packets, self.octets)
    }

    /// Units of 20 ms.
    fn frame(&self) -> u32 {
        20 * self.per_ms
    }

    fn header(&mut self, payload_type: u8, marker: bool, timestamp: u32, bytes: usize) -> Header {
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        self.packets = self.packets.wrapping_add(1);
        self.octets = self.octets.wrapping_add(bytes as u32);
        Header { marker, payload_type, sequence, timestamp, ssrc: self.ssrc }
    }
}

/// A digit that the other side keyed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ReceivedDigit {
    /// `0` to `9`, `*`, `#`, `A` to `D`.
    pub digit: char,
    /// Its onset.
    pub from: Sample,
    /// As the sender says, up to 10 s.
    pub duration_ms: u32,
}

/// Names one event, or one segment of a long one.
type Key = (u32, u32, u8);

#[derive(Copy, Clone, Debug)]
struct HeardEvent {
    key: Key,
    from: Sample,
    /// Units of earlier segments.
    before: u32,
    duration: u32,
    last: Time,
}

/// Digits out of event packets. Holds at most 16 that were not fetched.
#[derive(Clone, Debug)]
pub struct EventReceiver {
    /// Units of the RTP clock in a millisecond.
    per_ms: u32,
    running: Option<HeardEvent>,
    over: [Option<Key>; 4],
    overs: usize,
    digits: [Option<ReceivedDigit>; 16],
    fetched: usize,
    stored: usize,
}

impl EventReceiver {
    /// For events of this RTP clock.
    pub fn new(clock_hz: u32) -> EventReceiver {
        EventReceiver {
            per_ms: clock_hz / 1000,
            running: None,
            over: [None; 4],
            overs: 0,
            digits: [None; 16],
            fetched: 0,
            stored: 0,
        }
    }

    /// Takes an event packet; `from` is the position of its timestamp.
    pub fn receive(&mut self, arrived: Time, header: &Header, payload: EventPayload, from: Sample) {
        let key = (header.ssrc, header.timestamp, payload.event);
        if digit_of(payload.event).is_none() || self.over.contains(&Some(key)) {
            return;
        }
        let duration = u32::from(payload.duration);
        match &mut self.running {
            Some(event) if event.key == key => {
                event.duration = event.duration.max(duration);
                event.last = arrived;
            }
            Some(event) if !header.marker && continues(event.key, key) => {
                event.before = event.before.saturating_add(key.1.wrapping_sub(event.key.1));
                (event.key, event.duration, event.last) = (key, duration, arrived);
            }
            // Its successor has begun: it is over, and comes before that one.
            Some(event) if is_before(key, event.key) => {
                return self.store(HeardEvent { key, from, before: 0, duration, last: arrived });
            }
            _ => {
                self.finish();
                self.running = Some(HeardEvent { key, from, before: 0, duration, last: arrived });
            }
        }
        if payload.end {
            self.finish();
        }
    }

    /// Where an event began when its timestamp says nothing about that: its length before its arrival.
    pub fn onset(&self, arrived: Sample, payload: EventPayload) -> Sample {
        arrived - Sample::from(payload.duration) * PER_MS / Sample::from(self.per_ms)
    }

    /// Ends an event whose end was lost.
    pub fn expire(&mut self, now: Time) {
        if self.running.is_some_and(|event| now.since(event.last) > EVENT_TIMEOUT) {
            self.finish();
        }
    }

    /// The next digit that is over.
    pub fn digit(&mut self) -> Option<ReceivedDigit> {
        let digit = self.digits[self.fetched % self.digits.len()].take()?;
        self.fetched += 1;
        Some(digit)
    }

    fn finish(&mut self) {
        if let Some(event) = self.running.take() {
            self.store(event);
        }
    }

    fn store(&mut self, event: HeardEvent) {
        self.over[self.overs % self.over.len()] = Some(event.key);
        self.overs += 1;
        let slot = &mut self.digits[self.stored % self.digits.len()];
        if let (None, Some(digit)) = (*slot, digit_of(event.key.2)) {
            let units = event.before.saturating_add(event.duration);
            let duration_ms = (units / self.per_ms).min(LONGEST_HEARD_MS);
            *slot = Some(ReceivedDigit { digit, from: event.from, duration_ms });
            self.stored += 1;
        }
    }
}

/// Whether `next` is a further segment of the event of `key`.
fn continues(key: Key, next: Key) -> bool {
    (key.0, key.2) == (next.0, next.2) && SEGMENT_TICKS.contains(&next.1.wrapping_sub(key.1))
}

/// Whether the event of `key` began before that of `other`, of the same source.
fn is_before(key: Key, other: Key) -> bool {
    key.0 == other.0 && (key.1.wrapping_sub(other.1) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    fn sender() -> Sender {
        Sender::new(8000, &mut Seed(1).stream("rtp"))
    }

    #[test]
    fn timestamps_always_move_and_sequence_numbers_only_with_packets() {
        let mut sender = sender();
        let mut headers = Vec::new();
        for tick in 0..6 {
            if tick == 3 {
                sender.skip();
            } else if let Due::Audio(timestamp) = sender.tick() {
                headers.push(sender.audio(0, timestamp, 160, 160));
            }
        }
        let first = headers[0];
        let seen: Vec<_> = headers
            .iter()
            .map(|h| (h.sequence.wrapping_sub(first.sequence), h.timestamp.wrapping_sub(first.timestamp), h.marker))
            .collect();
        assert_eq!(seen, [(0, 0, true), (1, 160, false), (2, 320, false), (3, 640, true), (4, 800, false)]);
        assert_eq!(sender.counts().1..=sender.counts().2, 5..=800);
    }

    /// All packets of `ticks` ticks with an event of `duration_ms` that starts at tick 1.
    fn packets(duration_ms: u32, ticks: usize, skipped: &[usize]) -> Vec<(Header, Option<EventPayload>)> {
        let mut sender = sender();
        let mut out = Vec::new();
        for tick in 0..ticks {
            if tick == 1 {
                assert!(sender.start_event('5', duration_ms) && !sender.start_event('6', 100));
            }
            if skipped.contains(&tick) {
                sender.skip();
                continue;
            }
            match sender.tick() {
                Due::Audio(timestamp) => out.push((sender.audio(0, timestamp, 160, 160), None)),
                Due::Event(packet) => out.push((sender.event(101, &packet), Some(packet.payload))),
            }
        }
        out
    }

    #[test]
    fn an_event_is_sent_as_the_standard_says() {
        let check = |duration_ms: u32, skipped: &[usize], expect: &[(u16, bool)]| {
            let all = packets(duration_ms, 20, skipped);
            let events: Vec<_> = all.iter().filter_map(|(header, payload)| Some((*header, (*payload)?))).collect();
            let seen: Vec<_> = events.iter().map(|(_, payload)| (payload.duration, payload.end)).collect();
            assert_eq!(seen, expect, "{duration_ms}");
            assert!(events.iter().all(|(header, _)| header.timestamp == events[0].0.timestamp));
            assert_eq!(events[0].0.timestamp, all[0].0.timestamp.wrapping_add(160));
            assert!(events.iter().enumerate().all(|(i, (header, _))| header.marker == (i == 0)));
            assert!(all.windows(2).all(|pair| pair[1].0.sequence == pair[0].0.sequence.wrapping_add(1)));
            let after = all.iter().rposition(|(_, payload)| payload.is_some()).unwrap() + 1;
            let ticks = after as u32 + skipped.len() as u32;
            assert!(all[after].0.marker && !all[after + 1].0.marker);
            assert_eq!(all[after].0.timestamp.wrapping_sub(all[0].0.timestamp), ticks * 160);
        };
        check(20, &[], &[(160, true); 3]);
        check(60, &[], &[(160, false), (320, false), (480, true), (480, true), (480, true)]);
        check(50, &[], &[(160, false), (320, false), (400, true), (400, true), (400, true)]);
        check(60, &[2], &[(160, false), (480, true), (480, true), (480, true)]);
    }

    /// (milliseconds of arrival, timestamp, duration, end, marker, event)
    type Given = (u64, u32, u16, bool, bool, u8);

    fn received(given: &[Given]) -> Vec<(char, Sample, u32)> {
        let mut receiver = EventReceiver::new(8000);
        let mut digits = Vec::new();
        for tick in 0..2000 {
            for &(_, timestamp, duration, end, marker, event) in given.iter().filter(|g| g.0 / 20 == tick) {
                let header = Header { marker, timestamp, ssrc: 1, ..Header::default() };
                let payload = EventPayload { event, end, volume: 10, duration };
                receiver.receive(Time::from_millis(tick * 20), &header, payload, Sample::from(timestamp) * 2);
            }
            receiver.expire(Time::from_millis(tick * 20));
            digits.extend(std::iter::from_fn(|| receiver.digit()).map(|d| (d.digit, d.from, d.duration_ms)));
        }
        digits
    }

    #[test]
    fn one_digit_comes_of_many_packets() {
        let check = |given: &[Given], expect: &[(char, Sample, u32)]| assert_eq!(received(given), expect, "{given:?}");
        check(&[], &[]);
        check(
            &[(0, 800, 160, false, true, 5), (20, 800, 320, false, false, 5), (40, 800, 480, true, false, 5)],
            &[('5', 1600, 60)],
        );
        // Repeated ends, also late and after the next digit began, and duplicates.
        check(
            &[
                (0, 0, 400, true, true, 1),
                (0, 0, 400, true, false, 1),
                (200, 1600, 160, false, true, 1),
                (220, 0, 400, true, false, 1),
                (240, 1600, 480, true, false, 1),
                (240, 1600, 480, true, false, 1),
            ],
            &[('1', 0, 50), ('1', 3200, 60)],
        );
        // A lost end, a lost beginning, all but one packet lost.
        check(&[(0, 0, 160, false, true, 11), (20, 0, 320, false, false, 11)], &[('#', 0, 40)]);
        check(&[(0, 0, 800, true, false, 10)], &[('*', 0, 100)]);
        check(&[(0, 0, 160, false, true, 2), (40, 800, 160, false, false, 3)], &[('2', 0, 20), ('3', 1600, 20)]);
        // All that comes of a digit comes after the next one began.
        check(
            &[
                (0, 800, 160, false, true, 3),
                (20, 0, 320, true, false, 2),
                (20, 0, 320, true, false, 2),
                (40, 800, 320, true, false, 3),
            ],
            &[('2', 0, 40), ('3', 1600, 40)],
        );
        // Reordered packets do not shorten it; what is not DTMF is none.
        check(&[(0, 0, 480, false, true, 9), (20, 0, 320, false, false, 9)], &[('9', 0, 60)]);
        check(&[(0, 0, 160, true, true, 16), (0, 0, 160, true, true, 255)], &[]);
    }

    #[test]
    fn a_long_event_stays_one_digit() {
        let mut given: Vec<Given> = Vec::new();
        for i in 1..=500u32 {
            let (segment, within) = ((i * 160 - 1) / 0xffff, (i * 160 - 1) % 0xffff + 1);
            given.push((u64::from(i) * 20, segment * 0xffff, within as u16, i == 500, i == 1, 7));
        }
        assert_eq!(received(&given), [('7', 0, 10_000)]);
        given.retain(|packet| packet.0 % 300 < 260);
        assert_eq!(received(&given), [('7', 0, 10_000)]);
    }

    #[test]
    fn an_event_that_is_continued_for_good_has_a_longest_length() {
        for (segments, end) in [(2, false), (100, false), (70_000, false), (70_000, true)] {
            let mut receiver = EventReceiver::new(8000);
            for i in 0..segments {
                let header = Header { timestamp: 0xffffu32.wrapping_mul(i), ssrc: 1, ..Header::default() };
                let payload = EventPayload { event: 5, end: end && i == segments - 1, volume: 10, duration: u16::MAX };
                receiver.receive(Time::from_millis(u64::from(i) * 20), &header, payload, 0);
            }
            receiver.expire(Time::from_millis(u64::from(segments) * 20 + 1000));
            let digits: Vec<_> = std::iter::from_fn(|| receiver.digit()).collect();
            assert_eq!(digits, [ReceivedDigit { digit: '5', from: 0, duration_ms: 10_000 }], "{segments}");
        }
    }

    #[test]
    fn digits_that_nobody_fetches_do_not_grow_without_limit() {
        let mut receiver = EventReceiver::new(8000);
        for i in 0..1000 {
            let header = Header { timestamp: i * 800, ..Header::default() };
            let payload = EventPayload { event: 1, end: true, volume: 0, duration: 400 };
            receiver.receive(Time(0), &header, payload, 0);
        }
        assert_eq!(std::iter::from_fn(|| receiver.digit()).count(), 16);
    }
}
