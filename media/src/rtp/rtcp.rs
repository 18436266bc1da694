//! RTCP: sender and receiver reports with SDES CNAME and BYE (RFC 3550 6), as bytes and as the little state that they
//! need. What cannot be read is passed over; nothing here panics or allocates.

use std::time::Duration;

use super::source::Reception;
use crate::seed::Stream;
use crate::time::Time;

/// Mean time between reports in seconds (RFC 3550 6.2); each interval is drawn from half to one and a half of it.
const INTERVAL_S: f64 = 5.0;

/// Length of the longest compound packet made here, in bytes.
pub const LONGEST: usize = 128;

/// Number of characters of a CNAME.
const CNAME: usize = 16;

/// Packet types that a datagram of RTCP may hold (RFC 5761 4).
const KINDS: std::ops::RangeInclusive<u8> = 192..=223;

const SENDER_REPORT: u8 = 200;
const RECEIVER_REPORT: u8 = 201;
const DESCRIPTION: u8 = 202;
const GOODBYE: u8 = 203;

/// The sender's part of a sender report (RFC 3550 6.4.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SenderInfo {
    /// Wallclock time in NTP format.
    pub ntp: u64,
    /// Timestamp of the same moment on the RTP clock.
    pub timestamp: u32,
    /// Number of packets sent.
    pub packets: u32,
    /// Number of payload bytes sent.
    pub octets: u32,
}

/// A report block (RFC 3550 6.4.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Source of the packets received, the share and number of lost ones, and the highest number.
    pub reception: Reception,
    /// Interarrival jitter in RTP ticks.
    pub jitter: u32,
    /// Middle 32 bits of the NTP time of the last sender report; 0 for none.
    pub last_report: u32,
    /// Time since then, in units of 1/65536 s.
    pub delay: u32,
}

/// One statement of a compound packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Item {
    /// Sender report of a source (SSRC).
    Sender(u32, SenderInfo),
    /// Report block of a source (SSRC) about packets it received.
    Block(u32, Block),
    /// Goodbye of a source (SSRC).
    Bye(u32),
}

/// Calls `each` for every statement that is understood in a datagram, up to the first malformed packet (RFC 3550 6.1,
/// A.2). Returns the number of packets before that, skipped ones included.
pub fn parse(mut bytes: &[u8], mut each: impl FnMut(Item)) -> usize {
    let mut packets = 0;
    while let Some(&[first, kind, high, low]) = bytes.first_chunk::<4>() {
        let length = (usize::from(u16::from_be_bytes([high, low])) + 1) * 4;
        if first >> 6 != 2 || length > bytes.len() || !KINDS.contains(&kind) {
            return packets;
        }
        let (packet, rest) = bytes.split_at(length);
        bytes = rest;
        let count = usize::from(first & 0x1f);
        let body = &packet[4..];
        match kind {
            SENDER_REPORT | RECEIVER_REPORT => report(kind, count, body, &mut each),
            GOODBYE => {
                body.as_chunks::<4>().0.iter().take(count).for_each(|ssrc| each(Item::Bye(u32::from_be_bytes(*ssrc))))
            }
            _ => {}
        }
        packets += 1;
    }
    packets
}

fn report(kind: u8, count: usize, body: &[u8], each: &mut impl FnMut(Item)) {
    let words = body.as_chunks::<4>().0;
    let word = |at: usize| words.get(at).map(|&bytes| u32::from_be_bytes(bytes));
    let Some(ssrc) = word(0) else { return };
    let mut at = 1;
    if kind == SENDER_REPORT {
        let (Some(high), Some(low), Some(timestamp), Some(packets), Some(octets)) =
            (word(1), word(2), word(3), word(4), word(5))
        else {
            return;
        };
        let ntp = u64::from(high) << 32 | u64::from(low);
        each(Item::Sender(ssrc, SenderInfo { ntp, timestamp, packets, octets }));
        at = 6;
    }
    for block in words.get(at..).unwrap_or(&[]).as_chunks::<6>().0.iter().take(count) {
        let word = |at: usize| u32::from_be_bytes(block[at]);
        let reception = Reception {
            ssrc: word(0),
            fraction_lost: block[1][0],
            cumulative_lost: (word(1) << 8) as i32 >> 8,
            highest: word(2),
        };
        each(Item::Block(ssrc, Block { reception, jitter: word(3), last_report: word(4), delay: word(5) }));
    }
}

/// A compound packet being written.
struct Writer {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Writer {
    fn write_bytes(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn words(&mut self, words: &[u32]) {
        words.iter().for_each(|word| self.write_bytes(&word.to_be_bytes()));
    }

    fn head(&mut self, kind: u8, count: usize, words: usize) {
        self.write_bytes(&[0x80 | count as u8, kind, 0, words as u8]);
    }
}

/// Sender and receiver of the reports of one leg.
#[derive(Clone, Debug)]
pub struct Reporter {
    stream: Stream,
    cname: [u8; CNAME],
    due: Option<Time>,
    out: [u8; LONGEST],
    /// The last sender report received: source, middle 32 bits of its NTP time, arrival.
    heard: Option<(u32, u32, Time)>,
    /// A moment in both clocks.
    wallclock: Option<(Time, u64)>,
    last: Option<Time>,
    round_trip_ms: Option<f64>,
    remote_fraction_lost: Option<f64>,
    gone: bool,
}

impl Reporter {
    /// Returns a reporter; intervals and CNAME are drawn from `stream`.
    pub fn new(mut stream: Stream) -> Reporter {
        let mut cname = [0; CNAME];
        cname.fill_with(|| b"0123456789abcdef"[stream.index(16)]);
        Reporter {
            stream,
            cname,
            due: None,
            out: [0; LONGEST],
            heard: None,
            wallclock: None,
            last: None,
            round_trip_ms: None,
            remote_fraction_lost: None,
            gone: false,
        }
    }

    /// True when a report is to be sent at `now`; the first call only starts the interval.
    pub fn is_due(&mut self, now: Time) -> bool {
        let first = if self.due.is_none() { 0.5 } else { 1.0 };
        if self.due.is_some_and(|due| now < due) {
            return false;
        }
        let wait_s = INTERVAL_S * first * self.stream.range(0.5, 1.5);
        self.due = Some(now + Duration::from_nanos((wait_s * 1e9) as u64));
        first == 1.0
    }

    /// Writes a compound packet of `ssrc`: a sender report when something was sent, else a receiver report, then the
    /// CNAME, and BYE when `leaving`. `ntp_now` is the wallclock at `now`.
    pub fn write(
        &mut self,
        now: Time,
        ntp_now: u64,
        ssrc: u32,
        sent: Option<SenderInfo>,
        received: Option<(Reception, u32)>,
        leaving: bool,
    ) -> &[u8] {
        self.wallclock = Some((now, ntp_now));
        let mut out = Writer { bytes: [0; LONGEST], len: 0 };
        let blocks = usize::from(received.is_some());
        match sent {
            Some(info) => {
                out.head(SENDER_REPORT, blocks, 6 + 6 * blocks);
                let (high, low) = ((info.ntp >> 32) as u32, info.ntp as u32);
                out.words(&[ssrc, high, low, info.timestamp, info.packets, info.octets]);
            }
            None => {
                out.head(RECEIVER_REPORT, blocks, 1 + 6 * blocks);
                out.words(&[ssrc]);
            }
        }
        if let Some((reception, jitter)) = received {
            let heard = self.heard.filter(|heard| heard.0 == reception.ssrc);
            let (last_report, delay) = heard.map_or((0, 0), |(_, middle, at)| {
                (middle, (now.since(at).as_nanos() * 65_536 / 1_000_000_000).min(u128::from(u32::MAX)) as u32)
            });
            let lost = u32::from(reception.fraction_lost) << 24 | reception.cumulative_lost as u32 & 0xff_ffff;
            out.words(&[reception.ssrc, lost, reception.highest, jitter, last_report, delay]);
        }
        // SDES: chunk of the source, item CNAME (1), its length, the text, and zeros to the next word (RFC 3550 6.5).
        out.head(DESCRIPTION, 1, 1 + (2 + CNAME + 2) / 4);
        out.words(&[ssrc]);
        out.write_bytes(&[1, CNAME as u8]);
        out.write_bytes(&self.cname);
        out.write_bytes(&[0; 2]);
        if leaving {
            out.head(GOODBYE, 1, 1);
            out.words(&[ssrc]);
        }
        self.out = out.bytes;
        &self.out[..out.len]
    }

    /// Takes a received compound packet; `ssrc` is the source of this side.
    pub fn receive(&mut self, arrived: Time, bytes: &[u8], ssrc: u32) {
        let packets = parse(bytes, |item| match item {
            Item::Sender(from, info) => self.heard = Some((from, (info.ntp >> 16) as u32, arrived)),
            Item::Block(_, block) if block.reception.ssrc == ssrc => self.hear_block(arrived, block),
            Item::Block(..) => {}
            Item::Bye(_) => self.gone = true,
        });
        // A report that says nothing still says that its sender lives.
        if packets > 0 {
            self.last = self.last.max(Some(arrived));
        }
    }

    /// Returns the arrival of the last datagram that held a readable packet.
    pub fn last(&self) -> Option<Time> {
        self.last
    }

    /// Returns the round trip in milliseconds by the last report (RFC 3550 6.4.1).
    pub fn round_trip_ms(&self) -> Option<f64> {
        self.round_trip_ms
    }

    /// Returns the share of the sent packets that the other side did not receive in its last interval, 0 to 1.
    pub fn remote_fraction_lost(&self) -> Option<f64> {
        self.remote_fraction_lost
    }

    /// True when the other side said BYE.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    fn hear_block(&mut self, arrived: Time, block: Block) {
        self.remote_fraction_lost = Some(f64::from(block.reception.fraction_lost) / 256.0);
        let Some((at, ntp)) = self.wallclock.filter(|_| block.last_report != 0) else { return };
        let now = (ntp >> 16) as u32;
        let since = (arrived.since(at).as_nanos() * 65_536 / 1_000_000_000) as u32;
        let trip = now.wrapping_add(since).wrapping_sub(block.last_report).wrapping_sub(block.delay) as i32;
        self.round_trip_ms = Some(f64::from(trip.max(0)) * 1000.0 / 65_536.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    const INFO: SenderInfo = SenderInfo { ntp: 0xe000_0001_8000_0000, timestamp: 7, packets: 8, octets: 1280 };

    fn reporter() -> Reporter {
        Reporter::new(Seed(1).stream("rtcp"))
    }

    fn items(bytes: &[u8]) -> Vec<Item> {
        let mut items = Vec::new();
        parse(bytes, |item| items.push(item));
        items
    }

    #[test]
    fn reports_survive_the_wire() {
        let reception = Reception { ssrc: 5, fraction_lost: 12, cumulative_lost: -3, highest: 0x1_0007 };
        let block = Block { reception, jitter: 44, last_report: 0, delay: 0 };
        let check = |sent: Option<SenderInfo>, received: Option<(Reception, u32)>, leaving: bool, expect: &[Item]| {
            let mut reporter = reporter();
            let bytes = reporter.write(Time(0), 0, 9, sent, received, leaving);
            assert_eq!(bytes.len() % 4, 0);
            assert_eq!(parse(bytes, |_| {}), 2 + usize::from(leaving));
            assert_eq!(items(bytes), expect);
        };
        check(None, None, false, &[]);
        check(Some(INFO), None, false, &[Item::Sender(9, INFO)]);
        check(None, Some((reception, 44)), false, &[Item::Block(9, block)]);
        check(Some(INFO), Some((reception, 44)), true, &[Item::Sender(9, INFO), Item::Block(9, block), Item::Bye(9)]);
    }

    #[test]
    fn whatever_can_be_read_is_a_sign_of_life() {
        let check = |bytes: &[u8], lives: bool| {
            let mut reporter = reporter();
            reporter.receive(Time::from_millis(70), bytes, 1);
            assert_eq!(reporter.last(), lives.then_some(Time::from_millis(70)), "{bytes:?}");
        };
        let empty_receiver = [0x80, 201, 0, 1, 0, 0, 0, 9];
        let mut empty_sender = [0; 28];
        empty_sender[..8].copy_from_slice(&[0x80, 200, 0, 6, 0, 0, 0, 9]);
        let name = [0x81, 202, 0, 2, 0, 0, 0, 9, 1, 1, b'a', 0];
        // Feedback and extended reports may stand alone, or first (RFC 5506 3.4.1, RFC 3611).
        let feedback = [0x81, 205, 0, 2, 0, 0, 0, 9, 0, 0, 0, 1];
        let extended = [0x80, 207, 0, 1, 0, 0, 0, 9];
        for report in [&empty_receiver[..], &empty_sender, &name, &feedback, &extended] {
            check(report, true);
            check(&[report, &empty_receiver].concat(), true);
            check(&[&name, report].concat(), true);
            check(&[report, &[0x80, 201, 0, 9]].concat(), true);
            check(&report[..report.len() - 1], false);
        }
        check(&[], false);
        check(&[0x40, 201, 0, 1, 0, 0, 0, 9], false);
        check(&[0x80, 99, 0, 1, 0, 0, 0, 9], false);
        // A source that was heard before an empty report in the same datagram is not forgotten.
        let mut reporter = reporter();
        reporter.receive(Time::from_millis(70), &[&name[..], &empty_sender].concat(), 1);
        assert_eq!(reporter.heard.map(|heard| heard.0), Some(9));
        reporter.receive(Time::from_millis(60), &empty_receiver, 1);
        assert_eq!(reporter.last(), Some(Time::from_millis(70)));
    }

    #[test]
    fn a_description_names_the_source() {
        let mut reporter = reporter();
        let cname = reporter.cname;
        let bytes = reporter.write(Time(0), 0, 9, None, None, false).to_vec();
        assert_eq!(bytes[..8], [0x80, 201, 0, 1, 0, 0, 0, 9]);
        assert_eq!(bytes[8..18], [0x81, 202, 0, 6, 0, 0, 0, 9, 1, 16]);
        assert_eq!(bytes[18..34], cname);
        assert_eq!(bytes.len(), 36);
    }

    #[test]
    fn both_sides_measure_the_round_trip() {
        let (mut near, mut far) = (reporter(), reporter());
        let ntp = |ms: u64| (0xe000_0000u64 << 32) + (ms << 32) / 1000;
        let at = Time::from_millis;
        let info = SenderInfo { ntp: ntp(1000), ..INFO };
        let sent = near.write(at(1000), ntp(1000), 1, Some(info), None, false).to_vec();
        far.receive(at(1040), &sent, 2);
        let reception = Reception { ssrc: 1, fraction_lost: 64, cumulative_lost: 1, highest: 10 };
        let answer = far.write(at(3000), ntp(3000), 2, None, Some((reception, 0)), false).to_vec();
        near.receive(at(3045), &answer, 1);
        let trip = near.round_trip_ms().unwrap();
        assert!((trip - 85.0).abs() < 0.1, "{trip}");
        assert_eq!((near.remote_fraction_lost(), near.is_gone(), far.round_trip_ms()), (Some(0.25), false, None));
    }

    #[test]
    fn intervals_are_random_around_five_seconds() {
        let mut reporter = reporter();
        let sent: Vec<u64> =
            (0..100_000).map(|tick| tick * 20).filter(|&ms| reporter.is_due(Time::from_millis(ms))).collect();
        let gaps: Vec<u64> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(sent[0] <= 3760 && gaps.iter().all(|gap| (2500..=7520).contains(gap)));
        let mean = gaps.iter().sum::<u64>() / gaps.len() as u64;
        assert!((4700..5300).contains(&mean), "{mean}");
        assert!(gaps.iter().max().unwrap() - gaps.iter().min().unwrap() > 3000);
    }

    #[test]
    fn garbage_is_passed_over() {
        let mut stream = Seed(2).stream("fuzz");
        let mut reporter = reporter();
        let whole = reporter.write(Time(0), 0, 9, Some(INFO), None, true).to_vec();
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            for _ in 0..4 {
                let at = stream.index(bytes.len());
                bytes[at] = stream.bits() as u8;
            }
            bytes.truncate(stream.index(bytes.len() + 1));
            reporter.receive(Time(0), &bytes, 9);
        }
        assert_eq!(items(&whole[..27]), []);
        assert_eq!(items(&[0x80, 200, 0, 1, 0, 0, 0, 9]), []);
        assert_eq!(items(&[0x9f, 203, 0, 1, 0, 0, 0, 9]), [Item::Bye(9)]);
    }
}
