//! Received telephone events (RFC 4733 2.5.2): one digit of the many packets of an event. It is found whichever of them
//! are lost, come twice or late, and however the sender runs its timestamps.
//!
//! Most senders keep the timestamp of an event and let its duration grow, with a new timestamp only for a further
//! segment of a long one. Others move the timestamp on with each packet. In both cases a packet without a marker that
//! begins before the last packet's end belongs to the same digit.

use std::time::Duration;

use super::packet::{EventPayload, Header, digit_of};
use super::playout::Playout;
use super::probation::{Held, Probation};
use crate::frame::{PER_MS, Sample};
use crate::time::Time;

/// Longest event that is reported, whatever duration its packets tell; also the longest wait for its end.
const LONGEST_HEARD_MS: u32 = 10_000;

/// Time without packets after which an event without an end is over. Packets that come later than that change nothing:
/// an end that is late by a usual jitter still tells the duration.
const EVENT_TIMEOUT: Duration = Duration::from_millis(300);

/// Durations of 16 bits that are nearly used up: the next packet may continue the event with a new timestamp (RFC 4733
/// 2.5.1.3).
const SEGMENT_UNITS: std::ops::RangeInclusive<i64> = 0xf000..=0x1_0100;

/// Additional distance of two packets of one event between which one is missing, in milliseconds. The pause between two
/// digits is longer.
const MISSING_MS: i64 = 20;

/// Distance of an event's timestamp from its arrival above which it is not on the audio's time base: 500 ms.
const APART: Sample = 8000;

/// Number of events that are over and may still have packets on the way.
const OVER: usize = 4;

/// Number of digits that may wait to be fetched.
const WAITING: usize = 16;

/// A digit that the other side sent as a telephone event.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ReceivedDigit {
    /// `0` to `9`, `*`, `#`, `A` to `D`.
    pub digit: char,
    /// Position of its onset on the sample clock.
    pub from: Sample,
    /// Duration as the sender tells it, in milliseconds, up to 10 s.
    pub duration_ms: u32,
}

/// A packet of an event, in units of the RTP clock.
#[derive(Copy, Clone, Debug)]
struct EventPart {
    ssrc: u32,
    code: u8,
    timestamp: u32,
    marker: bool,
    duration: i64,
    end: bool,
}

/// A digit that is pressed, or was. Units are ticks of the RTP clock.
#[derive(Copy, Clone, Debug)]
struct PressedDigit {
    ssrc: u32,
    code: u8,
    from: Sample,
    /// Timestamp of the newest part, and how far it lies behind the first one.
    timestamp: u32,
    offset: i64,
    /// Duration in the newest part.
    duration: i64,
    /// True when each part tells the whole duration although its timestamp moves.
    counts_whole: bool,
    /// Length as far as it is known, in units.
    length: i64,
    /// Position up to which parts without a marker that begin there belong to this digit.
    reach: i64,
    begun: Time,
    last: Time,
    /// True once a packet told its end.
    ended: bool,
    /// Number of the digit that was reported for it.
    number: usize,
}

impl PressedDigit {
    fn new(arrived: Time, part: EventPart, from: Sample) -> PressedDigit {
        PressedDigit {
            ssrc: part.ssrc,
            code: part.code,
            from,
            timestamp: part.timestamp,
            offset: 0,
            duration: part.duration,
            counts_whole: false,
            length: part.duration,
            reach: part.duration,
            begun: arrived,
            last: arrived,
            ended: part.end,
            number: 0,
        }
    }

    /// Returns the number of units by which `part` begins after the newest part.
    fn units_to(&self, part: &EventPart) -> i64 {
        i64::from(part.timestamp.wrapping_sub(self.timestamp) as i32)
    }

    /// True when `part` belongs to this digit; a packet takes `packet` units.
    fn has(&self, part: &EventPart, packet: i64) -> bool {
        if (self.ssrc, self.code) != (part.ssrc, part.code) {
            return false;
        }
        let moved = self.units_to(part);
        let offset = self.offset + moved;
        let is_known = moved == 0 || offset == 0;
        let goes_on = offset <= self.reach + packet || SEGMENT_UNITS.contains(&moved);
        is_known || !part.marker && offset > 0 && goes_on
    }

    /// Takes a part of it; `packet` as in `has`.
    fn take(&mut self, arrived: Time, part: &EventPart, packet: i64) {
        let moved = self.units_to(part);
        let offset = self.offset + moved;
        self.counts_whole |= moved > 0 && part.duration >= self.duration + moved;
        let length = if self.counts_whole { part.duration } else { offset + part.duration };
        if !self.ended {
            self.length = self.length.max(length);
            self.ended = part.end;
        }
        self.reach = self.reach.max(offset + if self.counts_whole { packet } else { part.duration });
        if moved > 0 {
            (self.timestamp, self.offset, self.duration) = (part.timestamp, offset, part.duration);
        } else if moved == 0 {
            self.duration = self.duration.max(part.duration);
        }
        self.last = self.last.max(arrived);
    }
}

/// Receiver of event packets, which turns them into digits. Allocates nothing.
#[derive(Clone, Debug)]
pub struct EventReceiver {
    /// Number of units of the RTP clock in a millisecond, and of the clock in which durations are counted.
    per_ms: i64,
    event_per_ms: i64,
    running: Option<PressedDigit>,
    over: [Option<PressedDigit>; OVER],
    overs: usize,
    digits: [Option<ReceivedDigit>; WAITING],
    fetched: usize,
    stored: usize,
    /// Packets of sources that are not accepted yet.
    held: Probation<EventPayload>,
}

impl EventReceiver {
    /// Returns a receiver for events beside audio of this RTP clock rate.
    pub fn new(clock_hz: u32) -> EventReceiver {
        EventReceiver {
            per_ms: i64::from(clock_hz / 1000),
            event_per_ms: i64::from(clock_hz / 1000),
            running: None,
            over: [None; OVER],
            overs: 0,
            digits: [None; WAITING],
            fetched: 0,
            stored: 0,
            held: Probation::default(),
        }
    }

    /// Sets the clock rate in which durations are counted; timestamps are those of the audio (RFC 4733 2.1).
    pub fn set_event_clock(&mut self, clock_hz: u32) {
        self.event_per_ms = i64::from(clock_hz / 1000).max(1);
    }

    /// Takes an event packet of the stream that `playout` plays.
    pub fn hear(&mut self, playout: &Playout, arrived: Time, header: &Header, payload: EventPayload) {
        let begun = self.onset(playout.position_of(arrived.0 as i64), payload);
        let timing = playout.jitter().timing();
        let mapped = timing.ticks(header.timestamp).map(|ticks| playout.position_of(timing.at(ticks)));
        let from = mapped.filter(|mapped| (mapped - begun).abs() <= APART).unwrap_or(begun);
        self.receive(arrived, header, payload, from);
    }

    /// Holds back an event packet of a source that is not accepted yet.
    pub fn hold(&mut self, arrived: Time, header: &Header, payload: EventPayload) {
        self.held.hold(Held { arrived, header: *header, rest: payload });
    }

    /// Takes the packets held back of the source of `header`, which is accepted and is played by `playout` from now on.
    pub fn believe(&mut self, playout: &Playout, arrived: Time, header: &Header) {
        let (held, count) = self.held.release(arrived, header);
        held[..count].iter().flatten().for_each(|event| self.hear(playout, event.arrived, &event.header, event.rest));
    }

    /// Takes an event packet; `from` is the position of its timestamp.
    pub fn receive(&mut self, arrived: Time, header: &Header, payload: EventPayload, from: Sample) {
        if digit_of(payload.event).is_none() {
            return;
        }
        let Header { ssrc, timestamp, marker, .. } = *header;
        let duration = i64::from(payload.duration) * self.per_ms / self.event_per_ms;
        let part = EventPart { ssrc, code: payload.event, timestamp, marker, duration, end: payload.end };
        let packet = MISSING_MS * self.per_ms;
        if let Some(pressed) = self.running.as_mut().filter(|pressed| pressed.has(&part, packet)) {
            pressed.take(arrived, &part, packet);
            if part.end {
                self.finish();
            }
        } else if let Some(pressed) = self.over.iter_mut().flatten().find(|pressed| pressed.has(&part, packet)) {
            pressed.take(arrived, &part, packet);
            let pressed = *pressed;
            self.correct(&pressed);
        } else if self.running.is_some_and(|pressed| is_before(&part, &pressed)) {
            // Its successor has begun: it is over, and comes before that one.
            self.store(PressedDigit::new(arrived, part, from));
        } else {
            self.finish();
            self.running = Some(PressedDigit::new(arrived, part, from));
            if part.end {
                self.finish();
            }
        }
    }

    /// Returns the onset of an event whose timestamp does not tell it: its duration before its arrival.
    pub fn onset(&self, arrived: Sample, payload: EventPayload) -> Sample {
        arrived - Sample::from(payload.duration) * PER_MS / self.event_per_ms
    }

    /// Ends an event whose end was lost, or never is sent.
    pub fn expire(&mut self, now: Time) {
        let longest = Duration::from_millis(LONGEST_HEARD_MS.into());
        if self
            .running
            .is_some_and(|pressed| now.since(pressed.last) > EVENT_TIMEOUT || now.since(pressed.begun) > longest)
        {
            self.finish();
        }
    }

    /// Returns the next digit that is over.
    pub fn digit(&mut self) -> Option<ReceivedDigit> {
        let digit = self.digits[self.fetched % WAITING].take()?;
        self.fetched += 1;
        Some(digit)
    }

    fn finish(&mut self) {
        if let Some(pressed) = self.running.take() {
            self.store(pressed);
        }
    }

    fn store(&mut self, mut pressed: PressedDigit) {
        let slot = &mut self.digits[self.stored % WAITING];
        pressed.number = self.stored;
        if let (None, Some(digit)) = (*slot, digit_of(pressed.code)) {
            let duration_ms = length_ms(&pressed, self.per_ms);
            *slot = Some(ReceivedDigit { digit, from: pressed.from, duration_ms });
            self.stored += 1;
        } else {
            // It does not fit: nothing is left of it that could be corrected.
            pressed.ended = true;
            pressed.number = usize::MAX;
        }
        self.over[self.overs % OVER] = Some(pressed);
        self.overs += 1;
    }

    /// Corrects the length of a digit that waits to be fetched by later packets. A digit that was fetched stays as it
    /// is.
    fn correct(&mut self, pressed: &PressedDigit) {
        let per_ms = self.per_ms;
        let waits = (self.fetched..self.stored).contains(&pressed.number);
        if let Some(digit) = self.digits[pressed.number % WAITING].as_mut().filter(|_| waits) {
            digit.duration_ms = length_ms(pressed, per_ms);
        }
    }
}

fn length_ms(pressed: &PressedDigit, per_ms: i64) -> u32 {
    (pressed.length / per_ms).clamp(0, LONGEST_HEARD_MS.into()) as u32
}

/// True when `part` began before `pressed`, of the same source.
fn is_before(part: &EventPart, pressed: &PressedDigit) -> bool {
    part.ssrc == pressed.ssrc && pressed.offset + pressed.units_to(part) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet: milliseconds of arrival, timestamp, duration, end, marker, event.
    type Given = (u64, u32, u16, bool, bool, u8);

    fn receive(given: &[Given]) -> Vec<(char, Sample, u32)> {
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
        let check = |given: &[Given], expect: &[(char, Sample, u32)]| assert_eq!(receive(given), expect, "{given:?}");
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
        assert_eq!(receive(&given), [('7', 0, 10_000)]);
        given.retain(|packet| packet.0 % 300 < 260);
        assert_eq!(receive(&given), [('7', 0, 10_000)]);
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

    #[test]
    fn a_timestamp_that_moves_with_each_packet_is_one_digit() {
        // `n` packets every 20 ms, the last three of which say the end: timestamp, duration.
        let row = |n: u32, part: fn(u32) -> (u32, u16), lost: &[u32]| -> Vec<Given> {
            let packet = |i: u32| {
                let (timestamp, duration) = part(i);
                (u64::from(i) * 20, 8000 + timestamp, duration, i + 3 >= n, i == 0, 5)
            };
            (0..n).filter(|i| !lost.contains(i)).map(packet).collect()
        };
        // Each packet is of 20 ms; the duration counts from the first one; both, and the end keeps its place.
        let styles: [fn(u32) -> (u32, u16); 4] = [
            |i| (i * 160, 160),
            |i| (i * 160, (i as u16 + 1) * 160),
            |i| (i.min(5) * 160, 160),
            |i| (i.min(5) * 160, (i.min(5) as u16 + 1) * 160),
        ];
        for (style, part) in styles.into_iter().enumerate() {
            for lost in [&[][..], &[1], &[3], &[6, 7], &[2, 4]] {
                assert_eq!(receive(&row(8, part, lost)), [('5', 16_000, 120)], "{style} {lost:?}");
            }
            // The same digit again, with and without its marker.
            for again in [true, false] {
                let mut twice = row(8, part, &[]);
                let second = row(8, part, &[])
                    .into_iter()
                    .map(|given| (given.0 + 240, given.1 + 1920, given.2, given.3, given.4 && again, given.5));
                twice.extend(second);
                assert_eq!(receive(&twice), [('5', 16_000, 120), ('5', 19_840, 120)], "{style} {again}");
            }
        }
    }

    #[test]
    fn a_late_end_sets_the_duration_of_what_was_not_told() {
        // Duration known, then what comes after a pause; a digit whose end is still awaited cannot be fetched.
        let check = |late: &[(u16, bool)], fetched_before: bool, expect_ms: u32| {
            let mut receiver = EventReceiver::new(8000);
            let mut digits = Vec::new();
            let receive = |receiver: &mut EventReceiver, at: u64, timestamp: u32, duration: u16, end: bool| {
                let header = Header { timestamp, ssrc: 1, ..Header::default() };
                receiver.receive(
                    Time::from_millis(at),
                    &header,
                    EventPayload { event: 5, end, volume: 10, duration },
                    0,
                );
            };
            receive(&mut receiver, 0, 0, 160, false);
            receiver.expire(Time::from_millis(280));
            if fetched_before {
                digits.extend(receiver.digit());
            }
            for &(duration, end) in late {
                receive(&mut receiver, 290, 0, duration, end);
            }
            receiver.expire(Time::from_millis(600));
            digits.extend(std::iter::from_fn(|| receiver.digit()));
            assert_eq!(digits, [ReceivedDigit { digit: '5', from: 0, duration_ms: expect_ms }], "{late:?}");
        };
        check(&[], false, 20);
        check(&[(800, true)], false, 100);
        check(&[(480, false), (800, true), (800, true)], false, 100);
        // Packets after the end do not count any more.
        check(&[(800, true), (1600, true)], false, 100);
        check(&[(800, true)], true, 100);
    }

    #[test]
    fn a_digit_that_is_never_let_go_is_over_after_ten_seconds() {
        // Its timestamp stands and its duration is used up, or each packet is of 20 ms.
        let check = |part: fn(u32) -> (u32, u16), expect_ms: u32| {
            let packet = |i: u32| (u64::from(i) * 20, part(i).0, part(i).1, false, i == 0, 9);
            let held: Vec<Given> = (0..1000).map(packet).collect();
            assert_eq!(receive(&held), [('9', 0, expect_ms)]);
        };
        check(|i| (0, (i.min(400) as u16 + 1) * 160), 8020);
        check(|i| (i * 160, 160), 10_000);
    }

    #[test]
    fn durations_have_their_own_clock() {
        let mut receiver = EventReceiver::new(48_000);
        receiver.set_event_clock(8000);
        for i in 1..=5u16 {
            let header = Header { timestamp: 4800, ssrc: 1, ..Header::default() };
            let payload = EventPayload { event: 5, end: i == 5, volume: 10, duration: i * 160 };
            receiver.receive(Time::from_millis(u64::from(i) * 20), &header, payload, 1600);
            assert_eq!(receiver.onset(16_000, payload), 16_000 - Sample::from(i) * 320);
        }
        assert_eq!(receiver.digit(), Some(ReceivedDigit { digit: '5', from: 1600, duration_ms: 100 }));
    }
}
