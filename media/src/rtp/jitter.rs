//! The jitter buffer: takes packets as they come, gives them back in the order in which they were sent, and says for every
//! stretch of time whether it is audio, a loss, or silence. It stores encoded payloads and decodes nothing.
//!
//! Its depth (how long after its least delayed arrival a sample is played) follows the lateness of the last packets. It grows
//! where something is missing: the caller is told to wait and fills the time. It shrinks where the caller takes more than time
//! asks for (see [`JitterBuffer::excess_ms`]).
//!
//! A gap in timestamps without a gap in sequence numbers (DTX, comfort noise) is silence, not a loss.

use super::packet::Header;
use super::source::{Arrival, Refused, Source};
use super::timing::{DEEPEST_NS, Timing};
use crate::codec::Codec;
use crate::time::Time;

/// Packets held, and blocks for their payloads.
const SLOTS: i64 = 64;

/// Largest payload that is heard: 60 ms of L16 at 16 kHz.
pub const MAX_PAYLOAD: usize = 1920;

/// Longest payload that is heard, in ticks: 80 ms.
pub const MAX_TICKS: u32 = 640;

/// Ticks of 20 ms.
const FRAME_TICKS: i64 = 160;

/// What a packet brings.
#[derive(Copy, Clone, Debug)]
pub enum Content<'a> {
    /// Encoded audio, at most [`MAX_PAYLOAD`] bytes and [`MAX_TICKS`] long.
    Audio(&'a [u8]),
    /// Comfort noise (RFC 3389): the sender is silent from here.
    Comfort,
    /// Nothing to hear (an event, an unknown payload): only its sequence number counts.
    Other,
}

/// The next stretch of time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Next<'a> {
    /// A payload to decode.
    Audio(&'a [u8]),
    /// So many ticks are lost (at most the 80 ms of one packet).
    Lost(u32),
    /// So many ticks of silence (at most 20 ms).
    Silence(u32),
    /// Fill a frame without moving on: the buffer grows.
    Wait,
    /// The stream has not begun.
    Idle,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    Free,
    Audio,
    Comfort,
    Other,
}

#[derive(Copy, Clone, Debug)]
struct Slot {
    kind: Kind,
    /// First block of its payload; without meaning when that is empty.
    payload: u8,
    len: u16,
    /// Ticks that it lasts.
    span: u16,
    /// Extended; without meaning for `Other`.
    ticks: i64,
}

/// The payloads of the packets held, in blocks of 20 ms; longer ones have several. The block given back last is lent out first: of
/// all the room only as much is touched as the buffer is deep, and stays in the processor's cache.
#[derive(Clone, Debug)]
struct Payloads {
    bytes: Box<[u8]>,
    /// Bytes of a block.
    block: usize,
    free: [u8; SLOTS as usize],
    count: usize,
    /// The block behind each, within a payload.
    after: [u8; SLOTS as usize],
    /// The last payload of several blocks that was asked for, in one piece.
    whole: Box<[u8]>,
}

impl Payloads {
    fn new(codec: Codec) -> Payloads {
        let block = block_bytes(codec);
        Payloads {
            bytes: vec![0; block * SLOTS as usize].into(),
            block,
            free: std::array::from_fn(|at| at as u8),
            count: SLOTS as usize,
            after: [0; SLOTS as usize],
            whole: vec![0; longest_payload(codec)].into(),
        }
    }

    fn has_room(&self, len: usize) -> bool {
        len.div_ceil(self.block) <= self.count
    }

    /// Keeps `payload`, for which there is room, and gives its first block.
    fn keep(&mut self, payload: &[u8]) -> u8 {
        let mut behind = 0;
        for part in payload.chunks(self.block).rev() {
            self.count -= 1;
            let block = self.free[self.count];
            self.bytes[usize::from(block) * self.block..][..part.len()].copy_from_slice(part);
            self.after[usize::from(block)] = behind;
            behind = block;
        }
        behind
    }

    /// The payload of `len` bytes that begins at `block`; it may just have been given back.
    fn of(&mut self, mut block: u8, len: usize) -> &[u8] {
        if len <= self.block {
            return &self.bytes[usize::from(block) * self.block..][..len];
        }
        for part in self.whole[..len].chunks_mut(self.block) {
            part.copy_from_slice(&self.bytes[usize::from(block) * self.block..][..part.len()]);
            block = self.after[usize::from(block)];
        }
        &self.whole[..len]
    }

    fn give_back(&mut self, mut block: u8, len: usize) {
        for _ in 0..len.div_ceil(self.block) {
            self.free[self.count] = block;
            self.count += 1;
            block = self.after[usize::from(block)];
        }
    }
}

/// One received stream. Allocates in `new` only.
#[derive(Clone, Debug)]
pub struct JitterBuffer {
    codec: Codec,
    /// Packet n is in slot n modulo [`SLOTS`]; all lie in `next..next + SLOTS`.
    slots: Box<[Slot]>,
    payloads: Payloads,
    source: Source,
    timing: Timing,
    playing: bool,
    /// Sequence number of the packet that is due.
    next: i64,
    /// Extended ticks up to which audio was given back.
    head: i64,
    /// Ticks of the last audio packet.
    packet: i64,
    /// The sender is silent as far as is known.
    resting: bool,
    late: u64,
    concealed_ticks: u64,
    overflowed: u64,
}

impl JitterBuffer {
    /// An empty buffer for payloads of `codec`.
    pub fn new(codec: Codec) -> JitterBuffer {
        let free = Slot { kind: Kind::Free, payload: 0, len: 0, span: 0, ticks: 0 };
        JitterBuffer {
            codec,
            slots: vec![free; SLOTS as usize].into(),
            payloads: Payloads::new(codec),
            source: Source::default(),
            timing: Timing::new(codec.rtp_clock_hz()),
            playing: false,
            next: 0,
            head: 0,
            packet: FRAME_TICKS,
            resting: false,
            late: 0,
            concealed_ticks: 0,
            overflowed: 0,
        }
    }

    /// Takes a packet that arrived at `arrived`.
    pub fn insert(&mut self, arrived: Time, header: &Header, content: Content<'_>) -> Result<(), Refused> {
        let arrival = self.source.accept(header)?;
        let (sequence, newest) = match arrival {
            Arrival::First(sequence) | Arrival::Newest(sequence) => (sequence, true),
            Arrival::Older(sequence) => (sequence, false),
            Arrival::Restarted(sequence) => {
                self.timing.expect_jump();
                (sequence, true)
            }
        };
        let (mut kind, payload, span): (_, &[u8], _) = match content {
            Content::Audio(payload) => match span(self.codec, payload) {
                Some(span) => (Kind::Audio, payload, span),
                None => (Kind::Other, &[], 0),
            },
            Content::Comfort => (Kind::Comfort, &[], 0),
            Content::Other => (Kind::Other, &[], 0),
        };
        let mut ticks = 0;
        if kind != Kind::Other {
            match self.timing.arrive(arrived, header.timestamp, newest) {
                Some(known) => ticks = known,
                None => kind = Kind::Other,
            }
        }
        if sequence < self.next {
            if self.playing || self.next - sequence >= SLOTS {
                self.late += u64::from(kind == Kind::Audio);
                return Err(Refused::Late);
            }
            self.next = sequence;
        }
        self.make_room(sequence);
        self.vacate(sequence);
        while sequence >= self.next && !self.payloads.has_room(payload.len()) {
            self.make_room(self.next + SLOTS);
        }
        if sequence < self.next {
            self.late += u64::from(kind == Kind::Audio);
            return Err(Refused::Late);
        }
        let block = self.payloads.keep(payload);
        self.slots[index(sequence)] = Slot { kind, payload: block, len: payload.len() as u16, span, ticks };
        Ok(())
    }

    /// What follows. `ahead` ticks of what was given back before have not been played yet at `now`.
    pub fn take(&mut self, now: Time, ahead: i64) -> Next<'_> {
        if !self.playing && !self.begin(now) {
            return Next::Idle;
        }
        while let Some(at) = self.nearest() {
            let missing = at - self.next;
            let slot = &self.slots[index(at)];
            let (kind, ticks) = (slot.kind, slot.ticks);
            if kind == Kind::Audio && ticks + i64::from(slot.span) <= self.head {
                // Its time has passed as silence.
                self.late += 1;
                self.concealed_ticks += u64::from(slot.span) + (missing * self.packet) as u64;
                self.release(at);
                continue;
            }
            if missing == 0 && kind != Kind::Audio {
                self.resting = true;
                self.release(at);
                continue;
            }
            let gap = if kind == Kind::Other { missing * self.packet } else { ticks - self.head };
            if missing == 0 && gap <= 0 {
                return self.audio(at);
            }
            if missing == 0 {
                self.resting = true;
                let silence = gap.min(FRAME_TICKS);
                self.head += silence;
                return Next::Silence(silence as u32);
            }
            if gap > 0 && self.depth_ns(now, ahead) < self.timing.target_ns() {
                return Next::Wait;
            }
            if let Some(lost) = self.lose(missing, gap) {
                return Next::Lost(lost);
            }
        }
        if !self.resting && self.depth_ns(now, ahead) < DEEPEST_NS {
            return Next::Wait;
        }
        self.resting = true;
        self.head += FRAME_TICKS;
        Next::Silence(FRAME_TICKS as u32)
    }

    /// How many milliseconds deeper than needed the buffer is; negative: shallower.
    pub fn excess_ms(&self, now: Time, ahead: i64) -> i64 {
        if self.playing { (self.depth_ns(now, ahead) - self.timing.target_ns()) / 1_000_000 } else { 0 }
    }

    /// Whether the next packet in order is there.
    pub fn is_ready(&self) -> bool {
        self.playing && self.slots[index(self.next)].kind == Kind::Audio
    }

    /// The payload that follows directly on what was given back, when it is there.
    pub fn following(&mut self) -> Option<&[u8]> {
        let slot = &self.slots[index(self.next)];
        let follows = slot.kind == Kind::Audio && slot.ticks == self.head;
        follows.then(|| self.payloads.of(slot.payload, slot.len.into()))
    }

    /// Extended ticks up to which audio was given back.
    pub fn head(&self) -> i64 {
        self.head
    }

    /// Age of the next sample to be played against its least delayed arrival, in milliseconds.
    pub fn depth_ms(&self, now: Time, ahead: i64) -> f64 {
        if self.playing { self.depth_ns(now, ahead) as f64 / 1e6 } else { 0.0 }
    }

    /// Audio packets that came too late to be heard.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Packets that were there and made room for more than the buffer holds; they are counted as late, too.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// Ticks of audio that were not heard because their packets were lost or late.
    pub fn concealed_ticks(&self) -> u64 {
        self.concealed_ticks
    }

    /// The stream's counts.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The stream's counts, to begin a new reporting interval.
    pub fn source_mut(&mut self) -> &mut Source {
        &mut self.source
    }

    /// The stream's mapping onto the driver's clock.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    fn depth_ns(&self, now: Time, ahead: i64) -> i64 {
        now.0 as i64 - self.timing.at(self.head - ahead)
    }

    /// Starts playing when the first packet has waited for long enough.
    fn begin(&mut self, now: Time) -> bool {
        while let Some(at) = self.nearest() {
            let slot = &self.slots[index(at)];
            if slot.kind != Kind::Audio {
                self.release(at);
                continue;
            }
            if now.0 as i64 - self.timing.at(slot.ticks) < self.timing.target_ns() {
                return false;
            }
            (self.playing, self.next, self.head, self.resting) = (true, at, slot.ticks, false);
            return true;
        }
        false
    }

    /// The oldest packet that is there.
    fn nearest(&self) -> Option<i64> {
        self.source.ssrc()?;
        (self.next..=self.source.newest()).find(|&at| self.slots[index(at)].kind != Kind::Free)
    }

    fn release(&mut self, at: i64) {
        self.vacate(at);
        self.next = at + 1;
    }

    fn vacate(&mut self, at: i64) {
        let slot = &mut self.slots[index(at)];
        if std::mem::replace(&mut slot.kind, Kind::Free) != Kind::Free {
            self.payloads.give_back(slot.payload, slot.len.into());
        }
    }

    fn audio(&mut self, at: i64) -> Next<'_> {
        self.release(at);
        let slot = &self.slots[index(at)];
        self.packet = slot.span.into();
        self.head = slot.ticks + self.packet;
        self.resting = false;
        Next::Audio(self.payloads.of(slot.payload, slot.len.into()))
    }

    /// Gives up the packet that is due; `missing` of them have `gap` ticks between what was played and the next that is there.
    fn lose(&mut self, missing: i64, gap: i64) -> Option<u32> {
        self.next += 1;
        // All of it counts, also where its time passed as silence before it turned out to be lost.
        self.concealed_ticks += self.packet as u64;
        let last = missing == 1 && gap < 2 * self.packet;
        let step = if last { gap } else { gap.min(self.packet) }.min(MAX_TICKS.into());
        self.head += step.max(0);
        (step > 0).then_some(step as u32)
    }

    /// Moves on until `sequence` fits; what is dropped is late.
    fn make_room(&mut self, sequence: i64) {
        let oldest = sequence - SLOTS + 1;
        if self.next >= oldest {
            return;
        }
        for at in self.next..oldest.min(self.next + SLOTS) {
            let audio = u64::from(self.slots[index(at)].kind == Kind::Audio);
            self.late += audio;
            self.overflowed += audio;
            self.concealed_ticks += self.packet as u64;
            self.vacate(at);
        }
        self.next = oldest;
    }
}

/// Bytes of 20 ms: with 64 of them the buffer holds more than a second. Opus may have up to 128 kbit/s in one block.
fn block_bytes(codec: Codec) -> usize {
    codec.bytes_per_tick().map_or(320, |bytes| bytes * FRAME_TICKS as usize)
}

/// Bytes of the longest payload that is heard.
fn longest_payload(codec: Codec) -> usize {
    codec.bytes_per_tick().map_or(MAX_PAYLOAD, |bytes| (bytes * MAX_TICKS as usize).min(MAX_PAYLOAD))
}

/// Ticks of a payload; `None` for what is not heard.
pub fn span(codec: Codec, payload: &[u8]) -> Option<u16> {
    let ticks = codec.ticks(payload).filter(|_| payload.len() <= MAX_PAYLOAD)?;
    (1..=MAX_TICKS).contains(&ticks).then_some(ticks as u16)
}

fn index(sequence: i64) -> usize {
    sequence.rem_euclid(SLOTS) as usize
}

#[cfg(test)]
mod tests {
    use super::super::timing::TICK_NS;
    use super::*;

    fn header(sequence: u16, timestamp: u32) -> Header {
        Header { sequence, timestamp, ssrc: 1, ..Header::default() }
    }

    /// What a row of packets is: (sequence number, timestamp, content), all arriving on time, then taken until silence or a
    /// wait follows, at a time at which everything is due.
    fn check(packets: &[(u16, u32, Content<'_>)], expect: &[Next<'_>]) -> JitterBuffer {
        let mut buffer = JitterBuffer::new(Codec::Pcmu);
        let mut last = 0;
        for (sequence, timestamp, content) in packets {
            let arrived = Time(1_000_000_000 + u64::from(*timestamp) * TICK_NS as u64);
            let _ = buffer.insert(arrived, &header(*sequence, *timestamp), *content);
            last = last.max(arrived.0);
        }
        let due = Time(last + 100_000_000);
        for (i, next) in expect.iter().enumerate() {
            assert_eq!(buffer.take(due, 0), *next, "{i} of {packets:?}");
        }
        buffer
    }

    const A: Content<'_> = Content::Audio(&[1; 160]);
    const AUDIO: Next<'_> = Next::Audio(&[1; 160]);

    #[test]
    fn audio_loss_and_silence_are_told_apart() {
        check(&[], &[Next::Idle]);
        check(&[(0, 0, A), (1, 160, A)], &[AUDIO, AUDIO, Next::Wait]);
        check(&[(1, 160, A), (0, 0, A), (0, 0, A)], &[AUDIO, AUDIO, Next::Wait]);
        check(&[(0, 0, A), (2, 320, A)], &[AUDIO, Next::Lost(160), AUDIO]);
        check(&[(0, 0, A), (3, 480, A)], &[AUDIO, Next::Lost(160), Next::Lost(160), AUDIO]);
        // A pause without a gap in numbers, with and without comfort noise.
        check(&[(0, 0, A), (1, 400, A)], &[AUDIO, Next::Silence(160), Next::Silence(80), AUDIO]);
        check(&[(0, 0, A), (1, 160, Content::Comfort), (2, 320, A)], &[AUDIO, Next::Silence(160), AUDIO]);
        check(&[(0, 0, A), (1, 160, Content::Comfort)], &[AUDIO, Next::Silence(160), Next::Silence(160)]);
        // A loss within a pause.
        check(&[(0, 0, A), (2, 640, A)], &[AUDIO, Next::Lost(160), Next::Silence(160), Next::Silence(160), AUDIO]);
    }

    #[test]
    fn packets_without_audio_are_not_missed() {
        let buffer = check(
            &[(0, 0, A), (1, 160, Content::Other), (2, 160, Content::Other), (3, 320, A)],
            &[AUDIO, Next::Silence(160), AUDIO],
        );
        assert_eq!((buffer.source().lost(), buffer.concealed_ticks(), buffer.late()), (0, 0, 0));
        check(&[(0, 0, Content::Other), (1, 160, A)], &[AUDIO]);
        let long = [0; MAX_TICKS as usize + 1];
        check(&[(0, 0, A), (1, 160, Content::Audio(&long)), (2, 160, A)], &[AUDIO, AUDIO]);
        check(&[(0, 0, A), (1, 160, Content::Audio(&[])), (2, 160, A)], &[AUDIO, AUDIO]);
    }

    #[test]
    fn a_buffer_that_nobody_empties_keeps_the_newest() {
        let packets: Vec<_> = (0..500u16).map(|i| (i, u32::from(i) * 160, A)).collect();
        let buffer = check(&packets, &[AUDIO; 64]);
        assert_eq!((buffer.late(), buffer.head()), (436, 500 * 160));
        assert_eq!(buffer.concealed_ticks(), 436 * 160);
    }

    #[test]
    fn packets_of_every_length_come_out_as_they_went_in() {
        for codec in [Codec::Pcmu, Codec::Opus, Codec::L16Wide] {
            let per_tick = if codec == Codec::L16Wide { 4 } else { 1 };
            let mut draws = crate::seed::Seed(5).stream("lengths");
            let mut buffer = JitterBuffer::new(codec);
            let (mut packets, mut timestamp) = (Vec::new(), 0u32);
            for n in 0..400u16 {
                let ms = [10, 20, 30, 60][(draws.unit() * 4.0) as usize];
                let len = if codec == Codec::Opus { 1 + (draws.unit() * 1275.0) as usize } else { ms * 8 * per_tick };
                let mut payload: Vec<u8> = (0..len).map(|at| (at as u16 ^ n.wrapping_mul(7)) as u8).collect();
                if codec == Codec::Opus {
                    payload[0] = [0, 8, 16, 24][(draws.unit() * 4.0) as usize];
                }
                let ticks = u32::from(span(codec, &payload).expect("a payload that is heard"));
                packets.push((header(n, timestamp), payload));
                timestamp += ticks * codec.rtp_clock_hz() / 8000;
            }
            // Up to four wait at once, in any order.
            for group in packets.chunks(4) {
                let arrived =
                    Time(1_000_000_000 + u64::from(group[0].0.timestamp / (codec.rtp_clock_hz() / 1000)) * 1_000_000);
                let mut order = [0, 1, 2, 3];
                order.sort_by_key(|_| (draws.unit() * 1e6) as u32);
                for at in order {
                    let (header, payload) = &group[at];
                    assert_eq!(buffer.insert(arrived, header, Content::Audio(payload)), Ok(()));
                }
                for (header, payload) in group {
                    let due = arrived + std::time::Duration::from_secs(1);
                    assert_eq!(buffer.take(due, 0), Next::Audio(payload), "{codec:?} {}", header.sequence);
                }
            }
            assert_eq!((buffer.late(), buffer.source().lost()), (0, 0));
        }
    }

    #[test]
    fn of_long_packets_that_nobody_takes_the_newest_are_kept() {
        // 80 ms have four blocks each, and 16 of them all there are.
        const LONG: Content<'_> = Content::Audio(&[1; 640]);
        let packets: Vec<_> = (0..40u16).map(|i| (i, u32::from(i) * 640, LONG)).collect();
        let mut buffer = check(&packets, &[Next::Audio(&[1; 640]); 16]);
        assert_eq!((buffer.late(), buffer.head()), (24, 40 * 640));
        // A packet that came late, and has no room among newer ones, is late.
        let arrived = Time(1_000_000_000 + 40 * 80_000_000);
        for n in (41..57).chain([40]) {
            let _ = buffer.insert(arrived, &header(n, u32::from(n) * 640), LONG);
        }
        assert_eq!(buffer.late(), 25);
        for _ in 41..57 {
            assert!(!matches!(buffer.take(Time(arrived.0 + 10_000_000_000), 0), Next::Idle));
        }
    }

    #[test]
    fn late_packets_are_counted_and_not_heard() {
        let mut buffer = check(&[(0, 0, A), (2, 320, A)], &[AUDIO, Next::Lost(160), AUDIO]);
        assert_eq!((buffer.source().lost(), buffer.late()), (1, 0));
        assert_eq!(buffer.insert(Time(1_200_000_000), &header(1, 160), A), Err(Refused::Late));
        assert_eq!((buffer.source().lost(), buffer.late(), buffer.concealed_ticks()), (0, 1, 160));
    }

    #[test]
    fn it_waits_for_a_while_and_then_goes_on() {
        let mut buffer = check(&[(0, 0, A)], &[AUDIO]);
        let mut waited = 0;
        for tick in 1..30u64 {
            match buffer.take(Time(1_100_000_000 + tick * 20_000_000), 0) {
                Next::Wait => waited += 1,
                Next::Silence(160) => break,
                other => panic!("{other:?}"),
            }
        }
        // From 100 ms deep to 200.
        assert!((4..=6).contains(&waited), "{waited}");
        let arrived = Time(1_000_000_000 + 2 * 20_000_000);
        buffer.insert(arrived, &header(1, 160), A).unwrap();
        assert_ne!(buffer.take(Time(1_300_000_000), 0), AUDIO);
        assert_eq!((buffer.late(), buffer.concealed_ticks()), (1, 160));
    }
}
