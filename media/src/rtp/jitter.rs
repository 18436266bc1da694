//! The jitter buffer: takes packets as they come, and returns them in the order of sending. For every stretch of time
//! it tells audio, loss or silence. It stores encoded payloads and decodes nothing.
//!
//! Its depth (the time from a sample's least delayed arrival to its playout) follows the lateness of the last packets.
//! It grows where something is missing: the caller is told to wait and fills the time. It shrinks where the caller
//! takes more than time asks for (see [`JitterBuffer::excess_ms`]).
//!
//! A gap in timestamps without a gap in sequence numbers (DTX, comfort noise) is silence, not a loss.
//!
//! It starts at 60 ms, since nothing is known of the network when the first words come, and shrinks in quiet.

use super::packet::Header;
use super::payloads::{Payloads, SLOTS};
use super::probation::{Held, Probation};
use super::source::{Arrival, CONTESTED, MIN_SEQUENTIAL, Refused, Source};
use super::timing::{DEEPEST_NS, Stamp, TICK_NS, Timing};
use crate::codec::Codec;
use crate::time::Time;

pub use super::payloads::{MAX_PAYLOAD, MAX_TICKS};

/// Longest payload of Opus, in ticks: 120 ms.
const MAX_OPUS_TICKS: u32 = 960;

/// Number of ticks in 20 ms.
const FRAME_TICKS: i64 = 160;

/// Kind of content of a packet.
#[derive(Copy, Clone, Debug)]
pub enum Content<'a> {
    /// Encoded audio, at most [`MAX_PAYLOAD`] bytes and [`MAX_TICKS`] long.
    Audio(&'a [u8]),
    /// Comfort noise (RFC 3389): the sender is silent from here.
    Comfort,
    /// A packet without audio (an event, an unknown payload): only its sequence number counts.
    Other,
}

/// The next stretch of time of the stream.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum JitterFrame<'a> {
    /// A payload to decode.
    Audio(&'a [u8]),
    /// Lost time in ticks, at most that of one packet.
    Lost(u32),
    /// Silence of this many ticks (at most 20 ms).
    Silence(u32),
    /// The caller is to fill a frame without moving on: the buffer grows.
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

/// A packet that arrived.
#[derive(Copy, Clone, Debug)]
struct Arrived<'a> {
    at: Time,
    header: Header,
    kind: Kind,
    payload: Payload<'a>,
    span: u16,
}

/// The payload of a packet that arrived.
#[derive(Copy, Clone, Debug)]
enum Payload<'a> {
    /// Bytes that were just received.
    Given(&'a [u8]),
    /// Kept already: first block, bytes.
    Kept(u8, u16),
}

/// A packet of a source that is not accepted: first block and number of bytes of its payload.
#[derive(Copy, Clone, Debug)]
struct Waiting {
    kind: Kind,
    block: u8,
    len: u16,
    span: u16,
}

#[derive(Copy, Clone, Debug)]
struct Slot {
    kind: Kind,
    /// First block of its payload; without meaning when that is empty.
    payload: u8,
    len: u16,
    /// Length of the payload in ticks.
    span: u16,
    /// Extended timestamp in ticks; without meaning for `Other`.
    ticks: i64,
}

/// Jitter buffer of one received stream. Allocates in `new` only.
#[derive(Clone, Debug)]
pub struct JitterBuffer {
    codec: Codec,
    /// Packet n is in slot n modulo [`SLOTS`]; all lie in `next..next + SLOTS`.
    slots: Box<[Slot]>,
    payloads: Payloads,
    source: Source,
    probation: Probation<Waiting>,
    /// Arrival of the last packet of the present source.
    heard: Time,
    timing: Timing,
    playing: bool,
    /// Sequence number of the packet that is due.
    next: i64,
    /// Extended ticks up to which audio was handed out.
    head: i64,
    /// Length of the last audio packet in ticks.
    packet: i64,
    /// True while the sender is silent, as far as is known.
    resting: bool,
    late: u64,
    concealed_ticks: u64,
    overflowed: u64,
}

impl JitterBuffer {
    /// Returns an empty buffer for payloads of `codec`.
    pub fn new(codec: Codec) -> JitterBuffer {
        let free = Slot { kind: Kind::Free, payload: 0, len: 0, span: 0, ticks: 0 };
        JitterBuffer {
            codec,
            slots: vec![free; SLOTS as usize].into(),
            payloads: Payloads::new(codec),
            source: Source::default(),
            probation: Probation::default(),
            heard: Time(0),
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

    /// Takes a packet that arrived at `arrived`. A packet refused as foreign is held back for a while. It is played
    /// when its source is accepted as the one that sends from then on.
    pub fn insert(&mut self, arrived: Time, header: &Header, content: Content<'_>) -> Result<(), Refused> {
        let (kind, payload, span): (_, &[u8], _) = match content {
            Content::Audio(payload) => match span(self.codec, payload) {
                Some(span) => (Kind::Audio, payload, span),
                None => (Kind::Other, &[], 0),
            },
            Content::Comfort => (Kind::Comfort, &[], 0),
            Content::Other => (Kind::Other, &[], 0),
        };
        let packet = Arrived { at: arrived, header: *header, kind, payload: Payload::Given(payload), span };
        // Beside another source a single lost packet is no silence: the next one comes after two packets' time. One
        // that has taken the place of the present source has its second packet then.
        let is_silent = arrived.since(self.heard).as_nanos() as i64 > self.packet * TICK_NS * 15 / 8;
        let judged = match self.source.accept(header, if is_silent { MIN_SEQUENTIAL } else { CONTESTED }) {
            Ok(Arrival::Restarted) => self.take_over(arrived, header),
            judged => judged,
        };
        if judged == Err(Refused::Foreign) {
            self.hold(&packet);
        }
        let arrival = judged?;
        self.heard = self.heard.max(arrived);
        self.place(arrival, packet)
    }

    /// Holds back a packet of a source that is not accepted yet.
    fn hold(&mut self, packet: &Arrived<'_>) {
        let Payload::Given(payload) = packet.payload else { return };
        let len = payload.len();
        if !self.payloads.has_space(len) {
            return;
        }
        let rest =
            Waiting { kind: packet.kind, block: self.payloads.keep(payload), len: len as u16, span: packet.span };
        if let Some(dropped) = self.probation.hold(Held { arrived: packet.at, header: packet.header, rest }) {
            self.payloads.give_back(dropped.rest.block, dropped.rest.len.into());
        }
    }

    /// Accepts the source of `header`: its packets that were held back are played as if it had been accepted from its
    /// beginning.
    fn take_over(&mut self, arrived: Time, header: &Header) -> Result<Arrival, Refused> {
        let (held, count) = self.probation.release(arrived, header);
        let first = held[..count].iter().flatten().next().map_or(*header, |held| held.header);
        self.source.restart(&first, count as u64);
        self.timing.expect_jump();
        for dropped in held[count..].iter().flatten() {
            self.payloads.give_back(dropped.rest.block, dropped.rest.len.into());
        }
        for held in held[..count].iter().flatten() {
            let Waiting { kind, block, len, span } = held.rest;
            let payload = Payload::Kept(block, len);
            let packet = Arrived { at: held.arrived, header: held.header, kind, payload, span };
            match self.source.accept(&held.header, MIN_SEQUENTIAL) {
                Ok(arrival) => self.place(arrival, packet).unwrap_or_default(),
                Err(_) => self.payloads.give_back(block, len.into()),
            }
        }
        self.source.accept(header, MIN_SEQUENTIAL)
    }

    fn place(&mut self, arrival: Arrival, packet: Arrived<'_>) -> Result<(), Refused> {
        let placed = self.slot_for(arrival, &packet);
        match (packet.payload, placed) {
            (Payload::Given(payload), Ok((sequence, slot))) => {
                let block = self.payloads.keep(payload);
                self.slots[index(sequence)] = Slot { payload: block, len: payload.len() as u16, ..slot };
            }
            (Payload::Kept(block, len), Ok((sequence, slot))) => {
                self.slots[index(sequence)] = Slot { payload: block, len, ..slot };
            }
            (Payload::Kept(block, len), Err(_)) => self.payloads.give_back(block, len.into()),
            (Payload::Given(_), Err(_)) => {}
        }
        placed.map(|_| ())
    }

    /// Makes space for a packet and finds its place in time: its number, and its slot without the payload.
    fn slot_for(&mut self, arrival: Arrival, packet: &Arrived<'_>) -> Result<(i64, Slot), Refused> {
        let Arrived { at, header, mut kind, span, .. } = *packet;
        let (sequence, newest) = match arrival {
            Arrival::First(sequence) | Arrival::Newest(sequence) => (sequence, true),
            Arrival::Older(sequence) => (sequence, false),
            Arrival::Restarted => return Err(Refused::Foreign),
        };
        let mut ticks = 0;
        if kind != Kind::Other {
            let Header { timestamp, marker, .. } = header;
            match self.timing.arrive(at, Stamp { sequence, timestamp, span, marker, newest }) {
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
        self.make_space(sequence);
        self.vacate(sequence);
        let len = if let Payload::Given(payload) = packet.payload { payload.len() } else { 0 };
        while sequence >= self.next && !self.payloads.has_space(len) {
            match self.probation.drop_oldest() {
                Some(dropped) => self.payloads.give_back(dropped.rest.block, dropped.rest.len.into()),
                None => self.make_space(self.next + SLOTS),
            }
        }
        if sequence < self.next {
            self.late += u64::from(kind == Kind::Audio);
            return Err(Refused::Late);
        }
        Ok((sequence, Slot { kind, payload: 0, len: 0, span, ticks }))
    }

    /// Returns the next stretch of time. `ahead` ticks that were handed out before have not been played yet at `now`.
    pub fn take(&mut self, now: Time, ahead: i64) -> JitterFrame<'_> {
        if !self.playing && !self.begin(now) {
            return JitterFrame::Idle;
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
                return JitterFrame::Silence(silence as u32);
            }
            if gap > 0 && self.depth_ns(now, ahead) < self.timing.target_ns() {
                return JitterFrame::Wait;
            }
            if let Some(lost) = self.lose(missing, gap) {
                return JitterFrame::Lost(lost);
            }
        }
        if !self.resting && self.depth_ns(now, ahead) < DEEPEST_NS {
            return JitterFrame::Wait;
        }
        self.resting = true;
        self.head += FRAME_TICKS;
        JitterFrame::Silence(FRAME_TICKS as u32)
    }

    /// Returns the milliseconds by which the buffer is deeper than needed; negative when it is too shallow.
    pub fn excess_ms(&self, now: Time, ahead: i64) -> i64 {
        if self.playing { (self.depth_ns(now, ahead) - self.timing.target_ns()) / 1_000_000 } else { 0 }
    }

    /// True when the next packet in order is there.
    pub fn is_ready(&self) -> bool {
        self.playing && self.slots[index(self.next)].kind == Kind::Audio
    }

    /// Returns the payload that follows directly on the audio handed out, when it is there.
    pub fn following(&mut self) -> Option<&[u8]> {
        let slot = &self.slots[index(self.next)];
        let follows = slot.kind == Kind::Audio && slot.ticks == self.head;
        follows.then(|| self.payloads.of(slot.payload, slot.len.into()))
    }

    /// Extended ticks up to which audio was handed out.
    pub fn head(&self) -> i64 {
        self.head
    }

    /// Age of the next sample to be played against its least delayed arrival, in milliseconds.
    pub fn depth_ms(&self, now: Time, ahead: i64) -> f64 {
        if self.playing { self.depth_ns(now, ahead) as f64 / 1e6 } else { 0.0 }
    }

    /// Number of audio packets that came too late to be heard.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Number of packets that were dropped because the buffer held no more; they are counted as late, too.
    pub fn overflow_count(&self) -> u64 {
        self.overflowed
    }

    /// Number of ticks of audio that were concealed because their packets were lost or late.
    pub fn concealed_ticks(&self) -> u64 {
        self.concealed_ticks
    }

    /// Returns the counts of the stream.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the counts of the stream, to begin a new reporting interval.
    pub fn source_mut(&mut self) -> &mut Source {
        &mut self.source
    }

    /// Returns the mapping of the stream onto the driver's clock.
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

    /// Returns the number of the oldest packet that is there.
    fn nearest(&self) -> Option<i64> {
        self.source.ssrc()?;
        (self.next..=self.source.newest()).find(|&at| self.slots[index(at)].kind != Kind::Free)
    }

    /// Takes payloads of `codec` from now on, whose clock and payload length are those of the present one. Payloads
    /// that are held are dropped: their time is silence.
    pub fn change_codec(&mut self, codec: Codec) {
        for slot in self.slots.iter_mut().filter(|slot| slot.kind == Kind::Audio) {
            self.payloads.give_back(slot.payload, std::mem::take(&mut slot.len).into());
            slot.kind = Kind::Other;
        }
        while let Some(held) = self.probation.drop_oldest() {
            self.payloads.give_back(held.rest.block, held.rest.len.into());
        }
        self.codec = codec;
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

    fn audio(&mut self, at: i64) -> JitterFrame<'_> {
        self.release(at);
        let slot = &self.slots[index(at)];
        self.packet = slot.span.into();
        self.head = slot.ticks + self.packet;
        self.resting = false;
        JitterFrame::Audio(self.payloads.of(slot.payload, slot.len.into()))
    }

    /// Gives up the packet that is due; `missing` packets lie in the `gap` ticks between the audio played and the next
    /// packet.
    fn lose(&mut self, missing: i64, gap: i64) -> Option<u32> {
        self.next += 1;
        // All of it counts, also where its time passed as silence before it turned out to be lost.
        self.concealed_ticks += self.packet as u64;
        let last = missing == 1 && gap < 2 * self.packet;
        let step = if last { gap } else { gap.min(self.packet) }.min(most_ticks(self.codec).into());
        self.head += step.max(0);
        (step > 0).then_some(step as u32)
    }

    /// Moves on until `sequence` fits; dropped packets count as late.
    fn make_space(&mut self, sequence: i64) {
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

/// Returns the length of a payload in ticks; `None` for a payload that is not played.
pub fn span(codec: Codec, payload: &[u8]) -> Option<u16> {
    let ticks = codec.ticks(payload).filter(|_| payload.len() <= MAX_PAYLOAD)?;
    (1..=most_ticks(codec)).contains(&ticks).then_some(ticks as u16)
}

/// Returns the length in ticks of the longest payload that is played.
fn most_ticks(codec: Codec) -> u32 {
    if codec == Codec::Opus { MAX_OPUS_TICKS } else { MAX_TICKS }
}

fn index(sequence: i64) -> usize {
    sequence.rem_euclid(SLOTS) as usize
}

#[cfg(test)]
mod tests;
