//! The RTP sender's state, telephone events included (RFC 3550 5.1, RFC 3551 4.1, RFC 4733 2.5).
//!
//! The sender decides for each 20 ms tick which packet is due: audio or, while an event lasts, an event packet in its
//! place. It numbers the packets.

use super::packet::{EVENT, EventPayload, Header, event_of};
use crate::seed::Stream;

/// Longest event sent, in milliseconds, where a 16-bit duration holds as much (RFC 4733 2.5.1.3).
pub const LONGEST_EVENT_MS: u32 = 8000;

/// Power of a sent event, in -dBm0.
const VOLUME: u8 = 10;

/// Number of copies of an event's last packet, one each tick. A short burst of losses does not take them all (RFC 4733
/// 2.5.1.4).
const END_PACKETS: u8 = 3;

/// Kind of packet that is due in a tick.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Due {
    /// Audio with this timestamp.
    Audio(u32),
    /// Packet of a telephone event.
    Event(EventPacket),
}

/// A packet of a telephone event that is due.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct EventPacket {
    timestamp: u32,
    marker: bool,
    /// Payload of the packet.
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

/// Sender of one RTP stream: its numbers and its telephone events.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Number of units of the RTP clock in a millisecond.
    per_ms: u32,
    /// Number of units of the events' clock in a millisecond; durations are counted in it.
    event_per_ms: u32,
    ssrc: u32,
    sequence: u16,
    timestamp: u32,
    /// Timestamp that follows on the last audio packet.
    follows: Option<u32>,
    event: Option<SentEvent>,
    /// Last packet of an event, and the number of its repetitions that are left.
    repeat: Option<(u32, EventPayload, u8)>,
    packets: u32,
    octets: u32,
}

impl Sender {
    /// Returns a sender whose SSRC and first sequence number and timestamp are drawn (RFC 3550 5.1, 8.1).
    pub fn new(clock_hz: u32, stream: &mut Stream) -> Sender {
        Sender {
            per_ms: clock_hz / 1000,
            event_per_ms: clock_hz / 1000,
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

    /// Begins sequence numbers below 2^15, so that a receiver that misses the first packets still knows how often the
    /// number has wrapped (RFC 4568 6.4).
    pub fn begin_low(&mut self) {
        self.sequence &= 0x7fff;
    }

    /// Sets the clock rate in which durations of events are counted from the next event on. Their timestamps are those
    /// of the audio: one source has one clock (RFC 4733 2.1, RFC 3550 5.1), whatever rate the payload format names.
    pub fn set_event_clock(&mut self, clock_hz: u32) {
        self.event_per_ms = (clock_hz / 1000).max(1);
    }

    /// Drops a running event and the repetitions of its end.
    pub fn drop_event(&mut self) {
        (self.event, self.repeat) = (None, None);
    }

    /// Returns the packet that is due now; moves on by 20 ms.
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
        let duration = (event.elapsed.min(event.duration) / self.per_ms * self.event_per_ms) as u16;
        let payload = EventPayload { event: event.code, end, volume: VOLUME, duration };
        if end {
            self.event = None;
            self.repeat = Some((event.timestamp, payload, END_PACKETS - 1));
        }
        Due::Event(EventPacket { timestamp: event.timestamp, marker, payload })
    }

    /// Numbers an audio packet of this timestamp, with its length in units of the RTP clock and its payload length in
    /// bytes.
    pub fn audio(&mut self, payload_type: u8, timestamp: u32, units: u32, bytes: usize) -> Header {
        let follows = self.follows.replace(timestamp.wrapping_add(units));
        self.header(payload_type, follows != Some(timestamp), timestamp, bytes)
    }

    /// Numbers an event packet.
    pub fn event(&mut self, payload_type: u8, packet: &EventPacket) -> Header {
        self.header(payload_type, packet.marker, packet.timestamp, EVENT)
    }

    /// Skips a tick in which nothing is sent: the timestamp moves on, the sequence number does not.
    pub fn skip(&mut self) {
        let frame = self.frame();
        self.timestamp = self.timestamp.wrapping_add(frame);
        if let Some(event) = self.event.as_mut().filter(|event| event.begun) {
            event.elapsed += frame;
        }
    }

    /// Begins an event at the next tick, or up to two ticks later when the end of the one before is still being
    /// repeated. It lasts at least one tick and at most [`LONGEST_EVENT_MS`], or as long as 16 bits hold (1365 ms at 48
    /// kHz). False when `digit` is none or another event still runs.
    pub fn start_event(&mut self, digit: char, duration_ms: u32) -> bool {
        let Some(code) = event_of(digit).filter(|_| self.event.is_none()) else { return false };
        let most_ms = LONGEST_EVENT_MS.min(u32::from(u16::MAX) / self.event_per_ms);
        let duration = (duration_ms.min(most_ms) * self.per_ms).max(self.frame());
        self.event = Some(SentEvent { code, timestamp: 0, duration, elapsed: 0, begun: false });
        true
    }

    /// True while an event runs, or its end is being repeated.
    pub fn sending_event(&self) -> bool {
        self.event.is_some() || self.repeat.is_some()
    }

    /// Returns the SSRC of this stream.
    pub fn ssrc(&self) -> u32 {
        self.ssrc
    }

    /// Returns the timestamp of the next tick, and the numbers of packets and payload bytes sent (RFC 3550 6.4.1).
    pub fn counts(&self) -> (u32, u32, u32) {
        (self.timestamp, self.packets, self.octets)
    }

    /// Returns the number of units in 20 ms.
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

    /// Returns all packets of `ticks` ticks with an event of `duration_ms` that starts at tick 1.
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
}
