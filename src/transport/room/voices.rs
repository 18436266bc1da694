//! The agent's tracks as one stream: their packets get one source, numbers and times that go on whatever track they are
//! of, so that a change of tracks is none for whoever hears them. Of several tracks the ones that speak are mixed;
//! until one has spoken, all are.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use ringer_media::codec::{Codec, Decoder, Encoder};
use ringer_media::frame::{FRAME, Frame, SILENCE, Sample};
use ringer_media::time::Time;
use ringer_media::vad::VoiceActivity;

use crate::webrtc::Arrived;

/// Samples of RTP time in a millisecond (RFC 7587 4.1).
const CLOCK_PER_MS: u64 = 48;

/// Frames of 20 ms that a track may be ahead of the one that is followed: as many as the longest packet holds (RFC 6716
/// 2.1.4).
const MAX_WAITING: usize = 6;

/// Frames of a packet that is made.
const MAX_FRAMES: usize = 3;

/// Time without a packet after which another track is followed, whose frames wait meanwhile.
const LOST: Duration = Duration::from_millis(80);

/// Bytes of the fixed header of a packet (RFC 3550 5.1).
const HEADER: usize = 12;

/// Samples of the longest packet of Opus at 16 kHz: 120 ms (RFC 6716 2.1.4).
const LONGEST: usize = 1920;

/// Type of a sender report (RFC 3550 6.4.1).
const SENDER_REPORT: u8 = 200;

/// Bytes of the longest packet that is made.
const PACKET: usize = 1275;

/// A track of the agent, as the newest description has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Track {
    pub sid: String,
    /// Sources that were announced for it; none where any may be its.
    pub sources: Vec<u32>,
    pub payload_type: u8,
}

/// A track whose audio is looked at, because there are others.
struct Voice {
    decoder: Decoder,
    activity: VoiceActivity,
    position: Sample,
    waiting: VecDeque<Frame>,
    /// Samples that fill no frame yet.
    rest: Vec<i16>,
    has_spoken: bool,
    last: Option<Time>,
}

impl Voice {
    fn new() -> Voice {
        let (decoder, activity) = (Decoder::new(Codec::Opus), VoiceActivity::new());
        Voice {
            decoder,
            activity,
            position: 0,
            waiting: VecDeque::new(),
            rest: Vec::new(),
            has_spoken: false,
            last: None,
        }
    }

    /// Decodes a packet, whose frames wait. Returns the number of frames.
    fn hear(&mut self, at: Time, payload: &[u8]) -> usize {
        let mut pcm = [0; LONGEST];
        let count = self.decoder.decode(payload, &mut pcm);
        self.rest.extend_from_slice(&pcm[..count]);
        let (frames, rest) = self.rest.as_chunks::<FRAME>();
        for frame in frames {
            self.activity.push(frame, self.position);
            self.position += FRAME as Sample;
            self.has_spoken |= self.activity.speaking();
            self.waiting.push_back(*frame);
        }
        let count = frames.len();
        self.rest = rest.to_vec();
        while self.waiting.len() > MAX_WAITING {
            self.waiting.pop_front();
        }
        self.last = Some(at);
        count
    }
}

/// Numbers and times of the stream that is given out.
#[derive(Debug, Default)]
struct Numbering {
    /// Source of the stream: that of the first track.
    source: Option<u32>,
    /// Source that is followed, and what is added to its sequence numbers and times.
    followed: Option<(u32, u16, u32)>,
    /// Newest packet: its sequence number, time and arrival.
    last: Option<(u16, u32, Time)>,
}

impl Numbering {
    /// Makes room for one packet more than the followed track has.
    fn insert_one(&mut self) {
        if let Some((_, by, _)) = &mut self.followed {
            *by = by.wrapping_add(1);
        }
    }

    /// Gives a packet the source, number and time of the stream. `earlier`: frames in it or before it that have waited.
    fn apply(&mut self, packet: &mut Arrived, earlier: usize) {
        let Some(header) = packet.bytes.first_chunk_mut::<HEADER>() else { return };
        let source = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
        let sequence = u16::from_be_bytes([header[2], header[3]]);
        let time = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let (_, by, later) = match self.followed {
            Some(followed) if followed.0 == source => followed,
            _ => *self.followed.insert(match self.last {
                None => (source, 0, 0),
                Some((last, last_time, at)) => {
                    // It goes on after as much time as has passed, in whole frames.
                    let passed = packet.at.since(at).as_millis() as u64 / 20 * 20;
                    let next_time =
                        last_time.wrapping_add((passed.max(20 * (earlier as u64 + 1)) * CLOCK_PER_MS) as u32);
                    (source, last.wrapping_add(1).wrapping_sub(sequence), next_time.wrapping_sub(time))
                }
            }),
        };
        let (sequence, time) = (sequence.wrapping_add(by), time.wrapping_add(later));
        header[2..4].copy_from_slice(&sequence.to_be_bytes());
        header[4..8].copy_from_slice(&time.to_be_bytes());
        header[8..12].copy_from_slice(&self.source.get_or_insert(source).to_be_bytes());
        if self.last.is_none_or(|(last, ..)| sequence.wrapping_sub(last) < 0x8000) {
            self.last = Some((sequence, time, packet.at));
        }
    }
}

/// Moves the time of a packet back by so many frames.
fn shift_back(bytes: &mut [u8], frames: usize) {
    if let Some(time) = bytes.get_mut(4..8).and_then(|four| four.first_chunk_mut::<4>()) {
        let earlier = frames as u32 * 20 * CLOCK_PER_MS as u32;
        *time = u32::from_be_bytes(*time).wrapping_sub(earlier).to_be_bytes();
    }
}

/// The tracks of the agent.
#[derive(Default)]
pub(super) struct Voices {
    tracks: Vec<Track>,
    /// State of each track, in the same order; empty while there is one alone.
    voices: Vec<Voice>,
    numbering: Numbering,
    /// Position of the track whose packets the stream follows.
    leader: usize,
    /// Payload type of the stream: that of the first track.
    payload_type: Option<u8>,
    encoder: Option<Box<Encoder>>,
}

impl Voices {
    /// Takes the tracks that are heard from now on.
    pub(super) fn set(&mut self, tracks: Vec<Track>) {
        self.leader = 0;
        let known = self.tracks.drain(..).map(|track| track.sid).zip(self.voices.drain(..));
        let mut known: HashMap<String, Voice> = known.collect();
        if tracks.len() > 1 {
            self.voices = tracks.iter().map(|track| known.remove(&track.sid).unwrap_or_else(Voice::new)).collect();
        }
        if let Some(first) = tracks.first() {
            self.payload_type.get_or_insert(first.payload_type);
        }
        self.tracks = tracks;
    }

    /// Returns the payload type of the stream.
    pub(super) fn payload_type(&self) -> Option<u8> {
        self.payload_type
    }

    /// Returns the tracks that are heard.
    pub(super) fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// True if packets of this source are of a track that is heard. Where none is announced there is one track alone.
    pub(super) fn has(&self, source: u32) -> bool {
        self.track_of(source).is_some()
    }

    fn track_of(&self, source: u32) -> Option<usize> {
        let announced = self.tracks.iter().position(|track| track.sources.contains(&source));
        announced.or_else(|| self.tracks.iter().position(|track| track.sources.is_empty()))
    }

    /// Returns the packets of the stream that a packet of one of the tracks is or completes; none if it waits for
    /// others.
    pub(super) fn take(&mut self, mut packet: Arrived) -> Vec<Arrived> {
        let source = packet.bytes.get(8..12).and_then(|four| four.first_chunk::<4>());
        let Some(at) = source.and_then(|four| self.track_of(u32::from_be_bytes(*four))) else { return Vec::new() };
        if let (Some(kind), Some(first)) = (self.payload_type, packet.bytes.get_mut(1))
            && *first & 0x7f == self.tracks[at].payload_type
        {
            *first = *first & 0x80 | kind;
        }
        if self.voices.len() < 2 {
            self.numbering.apply(&mut packet, 0);
            return vec![packet];
        }
        let Some(payload_at) = payload_at(&packet.bytes) else { return Vec::new() };
        let own = self.voices[at].hear(packet.at, &packet.bytes[payload_at.clone()]);
        if self.lead(packet.at) != at {
            return Vec::new();
        }
        let head = packet.bytes[..payload_at.start].to_vec();
        let frames: Vec<Frame> = self.voices[at].waiting.drain(..).collect();
        // Frames that waited are earlier than those of this packet.
        let mut earlier = frames.len().saturating_sub(own);
        let mut made = Vec::new();
        for part in frames.chunks(MAX_FRAMES) {
            let mut pcm: Vec<i16> = Vec::new();
            for frame in part {
                let mut frame = *frame;
                self.mix(at, &mut frame);
                pcm.extend(frame);
            }
            let mut next = Arrived { bytes: self.encode(&head, &pcm), ..packet };
            if !made.is_empty() {
                self.numbering.insert_one();
            }
            self.numbering.apply(&mut next, earlier);
            shift_back(&mut next.bytes, earlier);
            earlier = earlier.saturating_sub(part.len());
            made.push(next);
        }
        made
    }

    /// Returns a packet with this header and audio.
    fn encode(&mut self, head: &[u8], pcm: &[i16]) -> Vec<u8> {
        let mut bytes = head.to_vec();
        // Padding is not written anew (RFC 3550 5.1).
        bytes[0] &= !0x20;
        bytes.resize(head.len() + PACKET, 0);
        let encoder = self.encoder.get_or_insert_with(|| Box::new(Encoder::new(Codec::Opus)));
        let count = encoder.encode(pcm, &mut bytes[head.len()..]);
        bytes.truncate(head.len() + count);
        bytes
    }

    /// Makes a report about the followed track one about the stream (RFC 3550 6.4.1). Returns false for one about
    /// another track.
    pub(super) fn take_report(&self, report: &mut Arrived) -> bool {
        let source =
            report.bytes.get(4..8).and_then(|four| four.first_chunk::<4>()).map(|four| u32::from_be_bytes(*four));
        let (Some(own), Some((followed, _, later))) = (self.numbering.source, self.numbering.followed) else {
            return true;
        };
        if source != Some(followed) {
            return source.is_none_or(|source| !self.has(source));
        }
        report.bytes[4..8].copy_from_slice(&own.to_be_bytes());
        if report.bytes.get(1) == Some(&SENDER_REPORT)
            && let Some(time) = report.bytes.get_mut(16..20).and_then(|four| four.first_chunk_mut::<4>())
        {
            *time = u32::from_be_bytes(*time).wrapping_add(later).to_be_bytes();
        }
        true
    }

    /// Returns the track whose packets the stream follows: the same as before, until it sends no more and another one
    /// does.
    fn lead(&mut self, now: Time) -> usize {
        let sends = |voice: &Voice| voice.last.is_some_and(|last| now.since(last) < LOST);
        if !self.voices.get(self.leader).is_some_and(sends) {
            self.leader = self.voices.iter().position(sends).unwrap_or(0);
        }
        self.leader
    }

    /// Makes a frame of the followed track that of all tracks which are heard.
    fn mix(&mut self, followed: usize, frame: &mut Frame) {
        let has_spoken = self.voices.iter().any(|voice| voice.has_spoken);
        if has_spoken && !self.voices[followed].has_spoken {
            *frame = SILENCE;
        }
        for (at, voice) in self.voices.iter_mut().enumerate() {
            if at == followed {
                continue;
            }
            let Some(other) = voice.waiting.pop_front() else { continue };
            if voice.has_spoken || !has_spoken {
                frame.iter_mut().zip(other).for_each(|(sum, sample)| *sum = sum.saturating_add(sample));
            }
        }
    }
}

/// Returns the place of a packet's payload (RFC 3550 5.1, 5.3.1); `None` for a packet that is cut.
fn payload_at(bytes: &[u8]) -> Option<std::ops::Range<usize>> {
    let first = *bytes.first()?;
    let mut from = HEADER + 4 * usize::from(first & 0x0f);
    if first & 0x10 != 0 {
        let words = bytes.get(from + 2..from + 4)?;
        from += 4 + 4 * usize::from(u16::from_be_bytes([words[0], words[1]]));
    }
    let padding = if first & 0x20 != 0 { usize::from(*bytes.last()?) } else { 0 };
    let to = bytes.len().checked_sub(padding)?;
    (from <= to).then_some(from..to)
}

#[cfg(test)]
mod tests;
