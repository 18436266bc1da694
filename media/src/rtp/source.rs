//! Packets that belong to the stream that is played: source changes, sequence numbers, duplicates and the counts of RFC
//! 3550 A.1 and A.3. Knows nothing of time.
//!
//! Sequence numbers are extended to 64 bits and stay continuous over a change of the source, so that a buffer indexed
//! by them needs no reset. A foreign source is refused while the present one sends; after [`MIN_SEQUENTIAL`] packets in
//! a row it is accepted. The same holds for a sequence number that is out of all proportion.

use super::packet::Header;

/// Number of consecutive packets of another source (or of a far sequence number) with which it is accepted (RFC 3550
/// A.1).
pub const MIN_SEQUENTIAL: u8 = 2;

/// Number of them while the present source still sends: of two that send at once, the network's jitter soon puts two
/// packets in a row.
pub const CONTESTED: u8 = 3;

/// Largest step forward that is a loss (RFC 3550 A.1 MAX_DROPOUT).
const MAX_DROPOUT: i64 = 3000;

/// Oldest packet that is told from a duplicate (RFC 3550 A.1 MAX_MISORDER).
const MAX_MISORDER: i64 = 100;

/// A packet's extended sequence number and how it stands to those before it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// The first packet of the call.
    First(i64),
    /// A packet newer than all before.
    Newest(i64),
    /// A packet that was overtaken on the way.
    Older(i64),
    /// Another source or numbering is accepted with it: [`Source::restart`] begins it, then the packet is judged anew.
    Restarted,
}

/// Reason why a well-formed packet is not played.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The same packet came already.
    Duplicate,
    /// The packet is of another source, or has a sequence number far off, and is not accepted yet.
    Foreign,
    /// The packet is too late: its time has been played.
    Late,
}

/// Figures of one report block about a stream (RFC 3550 6.4.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Reception {
    /// Source of the stream that is reported on.
    pub ssrc: u32,
    /// Share of packets lost since the last report, in 1/256.
    pub fraction_lost: u8,
    /// Number of packets lost since the source's first one; negative with duplicates elsewhere on the way.
    pub cumulative_lost: i32,
    /// Extended highest sequence number received.
    pub highest: u32,
}

/// Stream that is played, with its counts.
#[derive(Clone, Debug, Default)]
pub struct Source {
    ssrc: Option<u32>,
    /// Sequence number of `newest` as it was received.
    wire: u16,
    newest: i64,
    /// Bit n: `newest - n` came.
    seen: u128,
    /// Source that is not accepted yet: its SSRC, next number, and how many came in a row.
    suspect: Option<(u32, u16, u8)>,
    first: i64,
    received: u64,
    duplicates: u64,
    foreign: u64,
    changes: u64,
    /// Figures of the present source alone: first extended and received number, packets received; packets expected and
    /// received at the last report.
    own: Own,
}

#[derive(Clone, Debug, Default)]
struct Own {
    first: i64,
    wire: u16,
    received: i64,
    reported: (i64, i64),
}

impl Source {
    /// Judges and counts a packet. Another source is accepted with its packet number `needed` in a row.
    pub fn accept(&mut self, header: &Header, needed: u8) -> Result<Arrival, Refused> {
        let Some(ssrc) = self.ssrc else {
            self.begin(header, 0);
            self.first = 0;
            return Ok(Arrival::First(0));
        };
        let step = i64::from(header.sequence.wrapping_sub(self.wire) as i16);
        if ssrc != header.ssrc || !(-MAX_MISORDER..=MAX_DROPOUT).contains(&step) {
            return self.suspect(header, needed);
        }
        self.suspect = None;
        let sequence = self.newest + step;
        if step > 0 {
            self.seen = self.seen.checked_shl(step as u32).unwrap_or(0) | 1;
            (self.newest, self.wire) = (sequence, header.sequence);
        } else if self.seen & 1 << -step != 0 {
            self.duplicates += 1;
            return Err(Refused::Duplicate);
        } else {
            self.seen |= 1 << -step;
            self.first = self.first.min(sequence);
            if sequence < self.own.first {
                self.own.wire = self.own.wire.wrapping_sub((self.own.first - sequence) as u16);
                self.own.first = sequence;
            }
        }
        self.received += 1;
        self.own.received += 1;
        Ok(if step > 0 { Arrival::Newest(sequence) } else { Arrival::Older(sequence) })
    }

    /// Begins another source or numbering with `first`, which is judged next. `held` packets that were refused as
    /// foreign before are judged anew, too.
    pub fn restart(&mut self, first: &Header, held: u64) {
        self.foreign -= held;
        self.changes += 1;
        self.ssrc = Some(first.ssrc);
        self.wire = first.sequence.wrapping_sub(1);
        self.seen = 0;
        self.suspect = None;
        self.own = Own { first: self.newest + 1, wire: first.sequence, ..Own::default() };
    }

    /// Extended number of the newest packet.
    pub fn newest(&self) -> i64 {
        self.newest
    }

    /// Returns the present source; `None` before the first packet.
    pub fn ssrc(&self) -> Option<u32> {
        self.ssrc
    }

    /// Number of packets received, each counted once.
    pub fn received_count(&self) -> u64 {
        self.received
    }

    /// Number of packets that have not come: expected less received (RFC 3550 A.3).
    pub fn lost_count(&self) -> u64 {
        match self.ssrc {
            Some(_) => ((self.newest - self.first + 1) as u64).saturating_sub(self.received),
            None => 0,
        }
    }

    /// Number of packets that came again.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Number of packets that were refused as foreign.
    pub fn foreign(&self) -> u64 {
        self.foreign
    }

    /// Number of times that another source or numbering was accepted.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the figures for a report block; the next call begins a new interval. `None` before the first packet.
    pub fn reception(&mut self) -> Option<Reception> {
        let ssrc = self.ssrc?;
        let own = &mut self.own;
        let expected = self.newest - own.first + 1;
        let (expected_before, received_before) = std::mem::replace(&mut own.reported, (expected, own.received));
        let due = expected - expected_before;
        let lost = due - (own.received - received_before);
        let fraction_lost = if due > 0 && lost > 0 { (lost * 256 / due).min(255) as u8 } else { 0 };
        let cumulative_lost = (expected - own.received).clamp(-0x80_0000, 0x7f_ffff) as i32;
        let highest = (self.newest - own.first + i64::from(own.wire)) as u32;
        Some(Reception { ssrc, fraction_lost, cumulative_lost, highest })
    }

    fn begin(&mut self, header: &Header, sequence: i64) {
        self.ssrc = Some(header.ssrc);
        (self.wire, self.newest) = (header.sequence, sequence);
        self.seen = 1;
        self.suspect = None;
        self.received += 1;
        self.own = Own { first: sequence, wire: header.sequence, received: 1, reported: (0, 0) };
    }

    fn suspect(&mut self, header: &Header, needed: u8) -> Result<Arrival, Refused> {
        let run = match self.suspect {
            Some((ssrc, next, run)) if (ssrc, next) == (header.ssrc, header.sequence) => run + 1,
            _ => 1,
        };
        if run < needed {
            self.foreign += 1;
            self.suspect = Some((header.ssrc, header.sequence.wrapping_add(1), run));
            return Err(Refused::Foreign);
        }
        Ok(Arrival::Restarted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(ssrc: u32, sequence: u16) -> Header {
        Header { ssrc, sequence, ..Header::default() }
    }

    /// Judges a packet as a jitter buffer does that holds nothing back.
    fn judge(source: &mut Source, header: &Header) -> Result<Arrival, Refused> {
        let judged = source.accept(header, MIN_SEQUENTIAL);
        if judged != Ok(Arrival::Restarted) {
            return judged;
        }
        source.restart(header, 0);
        source.accept(header, MIN_SEQUENTIAL)
    }

    /// Feeds (ssrc, sequence) and compares received, lost, duplicates, foreign and changes.
    fn check(packets: &[(u32, u16)], expect: [u64; 5]) -> Source {
        let mut source = Source::default();
        for &(ssrc, sequence) in packets {
            let _ = judge(&mut source, &packet(ssrc, sequence));
        }
        let seen =
            [source.received_count(), source.lost_count(), source.duplicates(), source.foreign(), source.changes()];
        assert_eq!(seen, expect, "{packets:?}");
        source
    }

    #[test]
    fn every_packet_is_counted_once() {
        check(&[], [0, 0, 0, 0, 0]);
        check(&[(1, 5), (1, 6), (1, 7)], [3, 0, 0, 0, 0]);
        check(&[(1, 5), (1, 7), (1, 6), (1, 6)], [3, 0, 1, 0, 0]);
        check(&[(1, 5), (1, 9)], [2, 3, 0, 0, 0]);
        check(&[(1, 5), (1, 3)], [2, 1, 0, 0, 0]);
        check(&[(1, 0xfffe), (1, 1), (1, 0xffff)], [3, 1, 0, 0, 0]);
        check(&[(1, 10), (1, 2500)], [2, 2489, 0, 0, 0]);
    }

    #[test]
    fn another_source_is_believed_after_two_in_a_row() {
        check(&[(1, 5), (2, 90), (1, 6), (2, 91), (1, 7), (2, 92)], [3, 0, 0, 3, 0]);
        check(&[(1, 5), (2, 90), (3, 91), (2, 92)], [1, 0, 0, 3, 0]);
        check(&[(1, 5), (2, 90), (2, 91), (2, 92), (2, 93), (1, 6)], [4, 0, 0, 2, 1]);
        check(&[(1, 5), (1, 30_000), (1, 30_001), (1, 30_002), (1, 30_003)], [4, 0, 0, 1, 1]);
    }

    #[test]
    fn what_was_held_back_is_not_foreign() {
        let mut source = check(&[(1, 5), (2, 90)], [1, 0, 0, 1, 0]);
        assert_eq!(source.accept(&packet(2, 91), MIN_SEQUENTIAL), Ok(Arrival::Restarted));
        source.restart(&packet(2, 90), 1);
        assert_eq!(source.accept(&packet(2, 90), MIN_SEQUENTIAL), Ok(Arrival::Newest(1)));
        assert_eq!(source.accept(&packet(2, 91), MIN_SEQUENTIAL), Ok(Arrival::Newest(2)));
        assert_eq!((source.received_count(), source.lost_count(), source.foreign(), source.changes()), (3, 0, 0, 1));
        let reception = source.reception().unwrap();
        assert_eq!((reception.ssrc, reception.cumulative_lost, reception.highest), (2, 0, 91));
    }

    #[test]
    fn while_the_present_source_sends_it_takes_three() {
        let mut source = check(&[(1, 5)], [1, 0, 0, 0, 0]);
        assert_eq!(source.accept(&packet(2, 90), CONTESTED), Err(Refused::Foreign));
        assert_eq!(source.accept(&packet(2, 91), CONTESTED), Err(Refused::Foreign));
        assert_eq!(source.accept(&packet(2, 92), CONTESTED), Ok(Arrival::Restarted));
    }

    #[test]
    fn sequence_numbers_stay_continuous() {
        let mut source = Source::default();
        let mut feed = |ssrc, sequence| judge(&mut source, &packet(ssrc, sequence));
        assert_eq!(feed(1, 0xffff), Ok(Arrival::First(0)));
        assert_eq!(feed(1, 1), Ok(Arrival::Newest(2)));
        assert_eq!(feed(1, 0), Ok(Arrival::Older(1)));
        assert_eq!(feed(1, 0), Err(Refused::Duplicate));
        assert_eq!(feed(7, 100), Err(Refused::Foreign));
        assert_eq!(feed(7, 101), Ok(Arrival::Newest(3)));
        assert_eq!(feed(7, 102), Ok(Arrival::Newest(4)));
    }

    #[test]
    fn reports_speak_of_the_present_source_and_interval() {
        let mut source = check(&[(1, 0xfffe), (1, 0xffff), (1, 1)], [3, 1, 0, 0, 0]);
        let reception = source.reception().unwrap();
        assert_eq!((reception.fraction_lost, reception.cumulative_lost, reception.highest), (64, 1, 0x1_0001));
        source.accept(&packet(1, 2), MIN_SEQUENTIAL).unwrap();
        let reception = source.reception().unwrap();
        assert_eq!((reception.fraction_lost, reception.cumulative_lost, reception.highest), (0, 1, 0x1_0002));
        for sequence in 50..54 {
            let _ = judge(&mut source, &packet(9, sequence));
        }
        let reception = source.reception().unwrap();
        assert_eq!((reception.ssrc, reception.cumulative_lost, reception.highest), (9, 0, 53));
        assert_eq!(Source::default().reception(), None);
    }
}
