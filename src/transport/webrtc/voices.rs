//! The agent's tracks as one stream: their packets get one source, numbers and times that go on whatever track they are
//! of, so that a change of tracks is none for whoever hears them. Of several tracks the ones that speak are mixed;
//! until one has spoken, all are. It is done in the media thread, so nothing allocates once [`Voices`] are made.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ringer_media::call::TICK;
use ringer_media::codec::opus::Opus;
use ringer_media::codec::{Codec, Decoder, Encoder};
use ringer_media::frame::{FRAME, Frame, SILENCE, Sample};
use ringer_media::time::Time;
use ringer_media::vad::VoiceActivity;

/// Samples of RTP time in a millisecond (RFC 7587 4.1).
const CLOCK_PER_MS: u64 = 48;

/// Frames of 20 ms that a track may be ahead of the one that is followed: as many as the longest packet holds (RFC 6716
/// 2.1.4).
const MAX_WAITING: usize = 6;

/// Frames of all tracks that are decoded in 20 ms, so that a flood delays no other call: as many as eight tracks send
/// after a pause of 80 ms. What is more is dropped, and counts as lost.
const MOST_FRAMES: usize = 32;

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

/// Bytes of the longest header of a packet that is made: the packet that it comes from is no longer.
const HEAD: usize = 2048;

/// A track of the agent, as the newest description has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Track {
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
    fn new(opus: &Opus) -> Voice {
        let (decoder, activity) = (Decoder::with(Codec::Opus, opus), VoiceActivity::new());
        Voice {
            decoder,
            activity,
            position: 0,
            waiting: VecDeque::with_capacity(MAX_WAITING + LONGEST / FRAME + 1),
            rest: Vec::with_capacity(LONGEST + FRAME),
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
        let (count, rest) = (frames.len(), rest.len());
        self.rest.drain(..self.rest.len() - rest);
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
    fn apply(&mut self, at: Time, packet: &mut [u8], earlier: usize) {
        let Some(header) = packet.first_chunk_mut::<HEADER>() else { return };
        let source = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
        let sequence = u16::from_be_bytes([header[2], header[3]]);
        let time = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let (_, by, later) = match self.followed {
            Some(followed) if followed.0 == source => followed,
            _ => *self.followed.insert(match self.last {
                None => (source, 0, 0),
                Some((last, last_time, last_at)) => {
                    // It goes on after as much time as has passed, in whole frames.
                    let passed = at.since(last_at).as_millis() as u64 / 20 * 20;
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
            self.last = Some((sequence, time, at));
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

/// The tracks that are heard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracks {
    all: Vec<Track>,
    /// Payload type of the stream: that of the first track.
    payload_type: Option<u8>,
}

impl Tracks {
    /// Takes the tracks that are heard from now on.
    pub(crate) fn set(&mut self, tracks: Vec<Track>) {
        if let Some(first) = tracks.first() {
            self.payload_type.get_or_insert(first.payload_type);
        }
        self.all = tracks;
    }

    /// Returns the payload type of the stream.
    pub(crate) fn payload_type(&self) -> Option<u8> {
        self.payload_type
    }

    /// Returns the tracks that are heard.
    pub(crate) fn all(&self) -> &[Track] {
        &self.all
    }

    /// True if packets of this source are of a track that is heard. Where none is announced there is one track alone.
    pub(crate) fn has(&self, source: u32) -> bool {
        self.of(source).is_some()
    }

    fn of(&self, source: u32) -> Option<usize> {
        let announced = self.all.iter().position(|track| track.sources.contains(&source));
        announced.or_else(|| self.all.iter().position(|track| track.sources.is_empty()))
    }
}

/// The tracks of the agent as one stream.
#[derive(Default)]
pub(crate) struct Voices {
    tracks: Tracks,
    /// State of each track, in the same order; empty while there is one alone.
    voices: Vec<Voice>,
    numbering: Numbering,
    /// Position of the track whose packets the stream follows.
    leader: usize,
    encoder: Option<Box<Encoder>>,
    /// Beginning of the newest 20 ms of audio that came, and number of frames that were decoded since then.
    decoded: (Time, usize),
    /// Arrival of the newest packet of a track, in nanoseconds; 0 before it.
    heard_at: Arc<AtomicU64>,
}

impl Voices {
    /// Returns the stream of these tracks, which writes the arrival of their packets to `heard_at`, in nanoseconds.
    /// `opus`: library that codes the mix of several.
    pub(crate) fn new(tracks: &Tracks, heard_at: Arc<AtomicU64>, opus: &Opus) -> Voices {
        let count = tracks.all.len();
        let several = if count > 1 { count } else { 0 };
        Voices {
            tracks: tracks.clone(),
            voices: (0..several).map(|_| Voice::new(opus)).collect(),
            encoder: (several > 0).then(|| Box::new(Encoder::with(Codec::Opus, opus))),
            heard_at,
            ..Voices::default()
        }
    }

    /// Continues the stream of `before`, with the state of tracks that were heard there.
    pub(crate) fn go_on_from(&mut self, before: &mut Voices) {
        self.numbering = std::mem::take(&mut before.numbering);
        self.tracks.payload_type = before.tracks.payload_type.or(self.tracks.payload_type);
        if before.encoder.is_some() {
            std::mem::swap(&mut self.encoder, &mut before.encoder);
        }
        for (track, voice) in self.tracks.all.iter().zip(&mut self.voices) {
            let known = before.tracks.all.iter().zip(&mut before.voices).find(|(known, _)| known.sid == track.sid);
            if let Some((_, known)) = known {
                std::mem::swap(voice, known);
            }
        }
    }

    /// True if packets of this source are of a track that is heard.
    pub(crate) fn has(&self, source: u32) -> bool {
        self.tracks.has(source)
    }

    /// Hands on the packets of the stream that a packet of one of the tracks, which came at `at`, is or completes; none
    /// if it waits for others.
    pub(crate) fn take(&mut self, at: Time, packet: &mut [u8], hand: &mut dyn FnMut(&[u8])) {
        let source = packet.get(8..12).and_then(|four| four.first_chunk::<4>());
        let Some(track) = source.and_then(|four| self.tracks.of(u32::from_be_bytes(*four))) else { return };
        self.heard_at.fetch_max(at.0, Ordering::Relaxed);
        if let (Some(kind), Some(first)) = (self.tracks.payload_type, packet.get_mut(1))
            && *first & 0x7f == self.tracks.all[track].payload_type
        {
            *first = *first & 0x80 | kind;
        }
        if self.voices.len() < 2 {
            self.numbering.apply(at, packet, 0);
            return hand(packet);
        }
        let Some(payload) = payload_at(packet).filter(|payload| payload.start <= HEAD) else { return };
        if at.since(self.decoded.0) >= TICK {
            self.decoded = (at, 0);
        }
        if self.decoded.1 >= MOST_FRAMES {
            return;
        }
        let own = self.voices[track].hear(at, &packet[payload.clone()]);
        self.decoded.1 += own.max(1);
        if self.lead(at) == track {
            self.mix_all(at, track, (&packet[..payload.start], own), hand);
        }
    }

    /// Hands on the frames of the followed track that wait, mixed with those of the others, in packets with this
    /// header. `own`: frames of the packet that has just come.
    fn mix_all(&mut self, at: Time, track: usize, (head, own): (&[u8], usize), hand: &mut dyn FnMut(&[u8])) {
        let mut frames = [SILENCE; MAX_WAITING];
        let waiting = &mut self.voices[track].waiting;
        let count = waiting.len().min(MAX_WAITING);
        frames.iter_mut().zip(waiting.drain(..count)).for_each(|(frame, waited)| *frame = waited);
        // Frames that waited are earlier than those of this packet.
        let mut earlier = count.saturating_sub(own);
        for (number, part) in frames[..count].chunks_mut(MAX_FRAMES).enumerate() {
            part.iter_mut().for_each(|frame| self.mix(track, frame));
            let mut bytes = [0; HEAD + PACKET];
            let len = self.encode(head, part.as_flattened(), &mut bytes);
            let packet = &mut bytes[..len];
            if number > 0 {
                self.numbering.insert_one();
            }
            self.numbering.apply(at, packet, earlier);
            shift_back(packet, earlier);
            earlier = earlier.saturating_sub(part.len());
            hand(packet);
        }
    }

    /// Writes a packet with this header and audio. Returns its length.
    fn encode(&mut self, head: &[u8], pcm: &[i16], bytes: &mut [u8; HEAD + PACKET]) -> usize {
        bytes[..head.len()].copy_from_slice(head);
        // Padding is not written anew (RFC 3550 5.1).
        bytes[0] &= !0x20;
        let Some(encoder) = &mut self.encoder else { return head.len() };
        head.len() + encoder.encode(pcm, &mut bytes[head.len()..][..PACKET])
    }

    /// Makes a report about the followed track one about the stream (RFC 3550 6.4.1). Returns false for one about
    /// another track.
    pub(crate) fn take_report(&self, report: &mut [u8]) -> bool {
        let source = report.get(4..8).and_then(|four| four.first_chunk::<4>()).map(|four| u32::from_be_bytes(*four));
        let (Some(own), Some((followed, _, later))) = (self.numbering.source, self.numbering.followed) else {
            return true;
        };
        if source != Some(followed) {
            return source.is_none_or(|source| !self.has(source));
        }
        report[4..8].copy_from_slice(&own.to_be_bytes());
        if report.get(1) == Some(&SENDER_REPORT)
            && let Some(time) = report.get_mut(16..20).and_then(|four| four.first_chunk_mut::<4>())
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
