//! Packets of a source that is not accepted yet (RFC 3550 A.1): held back, so that none of them is lost once it is.

use super::packet::Header;
use crate::time::Time;

/// Largest number of packets that are held back: those of the probation, and as many that came between packets of the
/// present source.
pub const HELD: usize = 4;

/// Longest time in nanoseconds for which a packet is held back and still played: two packets of 200 ms, and some
/// jitter.
const HELD_NS: u128 = 500_000_000;

/// Largest number of sequence numbers that a packet held back may lie behind the one with which its source is accepted.
const BEHIND: u16 = 8;

/// A packet that is held back.
#[derive(Copy, Clone, Debug)]
pub struct Held<T> {
    /// Time of its arrival.
    pub arrived: Time,
    /// Its header, as received.
    pub header: Header,
    /// Rest of the packet.
    pub rest: T,
}

/// Last packets of sources that are not accepted, oldest first.
#[derive(Clone, Debug)]
pub struct Probation<T> {
    held: [Option<Held<T>>; HELD],
}

impl<T: Copy> Default for Probation<T> {
    fn default() -> Self {
        Probation { held: [None; HELD] }
    }
}

impl<T: Copy> Probation<T> {
    /// Holds a packet back. Returns the one that makes space for it.
    pub fn hold(&mut self, packet: Held<T>) -> Option<Held<T>> {
        if let Some(free) = self.held.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(packet);
            return None;
        }
        self.held.rotate_left(1);
        self.held[HELD - 1].replace(packet)
    }

    /// Releases the oldest packet and returns it.
    pub fn drop_oldest(&mut self) -> Option<Held<T>> {
        self.held.rotate_left(1);
        let oldest = self.held[HELD - 1].take();
        if oldest.is_some() {
            return oldest;
        }
        self.held.iter_mut().find_map(Option::take)
    }

    /// Releases all packets. First come those that the source of `header`, accepted at `arrived`, sent just before, in
    /// the order of sending; their number stands beside them.
    pub fn release(&mut self, arrived: Time, header: &Header) -> ([Option<Held<T>>; HELD], usize) {
        let mut held = std::mem::take(self).held;
        let behind = |packet: &Held<T>| {
            let steps = header.sequence.wrapping_sub(packet.header.sequence);
            let is_of_it = packet.header.ssrc == header.ssrc && arrived.since(packet.arrived).as_nanos() <= HELD_NS;
            (is_of_it && (1..=BEHIND).contains(&steps)).then_some(steps)
        };
        held.sort_by_key(|packet| std::cmp::Reverse(packet.as_ref().and_then(behind)));
        let count = held.iter().flatten().filter_map(behind).count();
        (held, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds packets back (milliseconds of arrival, source, number), and releases them at 100 ms with number 10 of
    /// source 7.
    fn check(packets: &[(u64, u32, u16)], expect: &[u16], left: usize) {
        let mut probation = Probation::default();
        let mut dropped = 0;
        for &(at, ssrc, sequence) in packets {
            let header = Header { ssrc, sequence, ..Header::default() };
            dropped += usize::from(probation.hold(Held { arrived: Time::from_millis(at), header, rest: () }).is_some());
        }
        let last = Header { ssrc: 7, sequence: 10, ..Header::default() };
        let (held, count) = probation.release(Time::from_millis(600), &last);
        let numbers: Vec<u16> = held[..count].iter().flatten().map(|held| held.header.sequence).collect();
        assert_eq!((&numbers[..], held[count..].iter().flatten().count()), (expect, left), "{packets:?}");
        assert_eq!(dropped, packets.len().saturating_sub(HELD));
        assert!(probation.drop_oldest().is_none());
    }

    #[test]
    fn only_what_came_just_before_is_played() {
        check(&[], &[], 0);
        check(&[(580, 7, 9)], &[9], 0);
        check(&[(560, 7, 9), (580, 7, 8), (590, 7, 7)], &[7, 8, 9], 0);
        check(&[(560, 7, 8), (570, 6, 9), (580, 7, 9)], &[8, 9], 1);
        // Too long ago, too far behind, ahead.
        check(&[(90, 7, 8), (560, 7, 1), (570, 7, 11), (580, 7, 9)], &[9], 3);
        check(&[(500, 7, 5), (520, 7, 6), (540, 7, 7), (560, 7, 8), (580, 7, 9)], &[6, 7, 8, 9], 0);
    }

    #[test]
    fn the_oldest_is_dropped_first() {
        let mut probation = Probation::default();
        for sequence in 0..3 {
            let header = Header { sequence, ..Header::default() };
            probation.hold(Held { arrived: Time(0), header, rest: () });
        }
        let dropped: Vec<u16> =
            std::iter::from_fn(|| probation.drop_oldest()).map(|held| held.header.sequence).collect();
        assert_eq!(dropped, [0, 1, 2]);
    }
}
