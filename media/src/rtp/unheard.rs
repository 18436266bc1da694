//! Packets that arrive and are not played: a count of each kind, and one report of it.

use std::time::Duration;

use super::srtp;
use crate::codec::Codec;
use crate::time::Time;

/// Longest time from a source's first packet to its acceptance: until then the source is not reported.
const PROBATION: Duration = Duration::from_millis(500);

/// Kinds of packets that are not played.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Unheard {
    /// RTP of this payload type, which was not negotiated.
    PayloadType(u8),
    /// RTP of a negotiated payload type with this payload length in bytes, which cannot be one of it.
    Length(u8, usize),
    /// RTP of this source, while another one is played.
    Source(u32),
    /// A datagram that is not RTP.
    Malformed,
    /// A datagram that is not secure RTP of the other side's key.
    Unprotected,
}

impl Unheard {
    /// Returns the kind of a payload of this many bytes that is not played; `is_settled`: its type was negotiated.
    pub fn payload(payload_type: u8, is_settled: bool, bytes: usize) -> Unheard {
        if is_settled { Unheard::Length(payload_type, bytes) } else { Unheard::PayloadType(payload_type) }
    }

    /// Returns the stable code for timelines.
    pub fn code(self) -> &'static str {
        match self {
            Unheard::PayloadType(_) => "rtp_unknown_payload_type",
            Unheard::Length(..) => "rtp_wrong_length",
            Unheard::Source(_) => "rtp_foreign_source",
            Unheard::Malformed => "rtp_malformed",
            Unheard::Unprotected => "srtp_unprotected",
        }
    }

    /// Explains to a person which packets came, and which are played instead.
    pub fn why(self, codec: Codec, payload_type: u8) -> String {
        let name = codec.name();
        match self {
            Unheard::PayloadType(other) => {
                format!("packets of payload type {other} are not heard; {name} is heard as payload type {payload_type}")
            }
            Unheard::Length(of, bytes) => {
                format!(
                    "a payload of {bytes} bytes of payload type {of} is not heard; {name} is heard in packets of up to 200 ms (Opus: 120 ms)"
                )
            }
            Unheard::Source(ssrc) => {
                format!("packets of the source {ssrc:#010x} are not heard while another source sends")
            }
            Unheard::Malformed => "datagrams that are not RTP are not heard".into(),
            Unheard::Unprotected => "packets that are not encrypted with the agreed key are not heard".into(),
        }
    }

    fn place(self) -> usize {
        match self {
            Unheard::PayloadType(_) => 0,
            Unheard::Length(..) => 1,
            Unheard::Source(_) => 2,
            Unheard::Malformed => 3,
            Unheard::Unprotected => 4,
        }
    }
}

const KINDS: usize = 5;

/// Counts of packets that are not played.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    counts: [u64; KINDS],
    /// First packet of each kind with its arrival, until it is reported.
    first: [Option<(Unheard, Time)>; KINDS],
    is_reported: [bool; KINDS],
    /// True when some kind is to be reported.
    is_new: bool,
}

impl Tally {
    /// Counts a packet that is not played.
    pub fn count(&mut self, arrived: Time, what: Unheard) {
        let place = what.place();
        self.counts[place] += 1;
        if !self.is_reported[place] && self.first[place].is_none() {
            self.first[place] = Some((what, arrived));
            self.is_new = true;
        }
    }

    /// Counts a packet that was refused before it was known to be RTP; copies are not reported.
    pub fn refuse(&mut self, arrived: Time, why: srtp::Refused) {
        if why == srtp::Refused::Forged {
            self.count(arrived, Unheard::Unprotected);
        }
    }

    /// Drops the report of a foreign source that is accepted: its packets are played after all.
    pub fn believe(&mut self, ssrc: u32) {
        let source = &mut self.first[Unheard::Source(ssrc).place()];
        source.take_if(|(what, _)| *what == Unheard::Source(ssrc));
    }

    /// Number of packets of payload types that were not negotiated.
    pub fn payload_types(&self) -> u64 {
        self.counts[0]
    }

    /// Number of packets of wrong lengths.
    pub fn lengths(&self) -> u64 {
        self.counts[1]
    }

    /// Number of datagrams that are not RTP.
    pub fn malformed_datagrams(&self) -> u64 {
        self.counts[3]
    }

    /// Returns a kind that came for the first time. Each is reported once; a foreign source only when it had time to be
    /// accepted.
    pub fn news(&mut self, now: Time) -> Option<Unheard> {
        if !self.is_new {
            return None;
        }
        let due = |(what, at): &mut (Unheard, Time)| !matches!(what, Unheard::Source(_)) || now.since(*at) > PROBATION;
        let what = self.first.iter_mut().find_map(|first| first.take_if(due)).map(|(what, _)| what);
        match what {
            Some(what) => self.is_reported[what.place()] = true,
            None => self.is_new = self.first.iter().any(Option::is_some),
        }
        what
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_told_once_and_a_source_only_when_it_is_not_believed() {
        let at = Time::from_millis;
        let mut tally = Tally::default();
        let reading_of = |tally: &mut Tally, ms: u64| std::iter::from_fn(|| tally.news(at(ms))).collect::<Vec<_>>();
        assert_eq!(reading_of(&mut tally, 0), []);
        for _ in 0..3 {
            tally.count(at(0), Unheard::PayloadType(96));
            tally.count(at(0), Unheard::PayloadType(97));
            tally.count(at(10), Unheard::Source(7));
        }
        assert_eq!(reading_of(&mut tally, 20), [Unheard::PayloadType(96)]);
        tally.believe(7);
        assert_eq!(reading_of(&mut tally, 2000), []);
        tally.count(at(2000), Unheard::Source(8));
        tally.believe(7);
        tally.count(at(2000), Unheard::Length(0, 3));
        tally.count(at(2000), Unheard::PayloadType(98));
        assert_eq!(reading_of(&mut tally, 2500), [Unheard::Length(0, 3)]);
        assert_eq!(reading_of(&mut tally, 2520), [Unheard::Source(8)]);
        tally.count(at(3000), Unheard::Source(9));
        assert_eq!(reading_of(&mut tally, 9000), []);
        assert_eq!((tally.payload_types(), tally.lengths(), tally.malformed_datagrams()), (7, 1, 0));
    }

    #[test]
    fn the_reason_names_what_came_and_what_is_heard() {
        for (what, code, parts) in [
            (Unheard::PayloadType(96), "rtp_unknown_payload_type", ["96", "OPUS is heard as payload type 111"]),
            (Unheard::Length(111, 3), "rtp_wrong_length", ["3 bytes", "111"]),
            (Unheard::Source(0x12ab), "rtp_foreign_source", ["0x000012ab", "another source"]),
            (Unheard::Malformed, "rtp_malformed", ["not RTP", ""]),
            (Unheard::Unprotected, "srtp_unprotected", ["agreed key", ""]),
        ] {
            let why = what.why(Codec::Opus, 111);
            assert_eq!(what.code(), code);
            assert!(parts.iter().all(|part| why.contains(part)), "{why}");
        }
    }
}
