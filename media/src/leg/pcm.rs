//! Media as frames of linear PCM, for channels that carry messages or tracks instead of RTP: WebSockets, media rooms.
//!
//! At every 20 ms tick the owner calls [`PcmLeg::send`], then [`PcmLeg::listen`]; audio goes in with
//! [`PcmLeg::receive`] whenever it arrives, in pieces of any length. It is played in real time: audio that comes faster
//! waits in a queue of one second, and [`PcmLeg::heard_samples`] tells a feeder how far it got. After `new` nothing
//! allocates.
//!
//! A piece begins where the one before it ends, or at the moment of its arrival when the queue has run dry for longer
//! than [`BRIDGED`]. Playout follows [`BEHIND`] after the positions, so that uneven sending makes no gaps. A steady
//! lead of a stream that includes its silence is given back in its pauses ([`lead`]).

mod lead;

use std::collections::VecDeque;

use self::lead::{Lead, is_quiet};
use super::{HeardFrame, HeardKind, LegFigures, Passed, Scratch};
use crate::frame::{FRAME, Frame, PER_MS, RATE_HZ, Sample};
use crate::resample::{Down2, Resampler};
use crate::time::Time;

/// Samples of the longest sent frame: 20 ms at 48 kHz.
pub const FRAME_MAX: usize = 960;

/// Samples of 16 kHz that may wait to be heard: 1 s.
const ROOM: usize = RATE_HZ as usize;

/// Pieces of audio with gaps between them that may wait. A gap is longer than [`BRIDGED`], so a second holds fewer.
const PIECES: usize = 32;

/// Age of the first sample that is heard, from its position on: 20 ms, as the least depth of the jitter buffer of RTP.
/// A piece may come so much later than the end of the one before it and makes no gap.
const BEHIND: Sample = 20 * PER_MS;

/// A pause between two pieces up to this long is the sender's unevenness and not silence: 40 ms.
const BRIDGED: Sample = 40 * PER_MS;

/// Positions further behind than this are passed over at once: 400 ms.
const FAR_BEHIND: Sample = 400 * PER_MS;

/// Samples that are converted at once.
const BLOCK: usize = 320;

/// Largest number of samples of 16 kHz that a block becomes: a rate of 8 kHz doubles them.
const CONVERTED: usize = 2 * BLOCK + 4;

/// Nanoseconds of a 16 kHz sample.
const SAMPLE_NS: i64 = 62_500;

/// Parameters of a leg of PCM.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PcmParams {
    /// Samples per second in both directions: 8000, 16000, 24000, 44100 or 48000.
    pub rate_hz: u32,
    /// Samples per second of the other side's audio before it was converted to `rate_hz`. There is no sound above half
    /// of it.
    pub heard_rate_hz: u32,
}

impl PcmParams {
    /// Rates that a leg can have, in Hz.
    pub const RATES: [u32; 5] = [8000, 16_000, 24_000, 44_100, 48_000];

    /// Returns parameters of a rate; `None` for a rate that is not one of [`PcmParams::RATES`].
    pub fn new(rate_hz: u32) -> Option<PcmParams> {
        PcmParams::RATES.contains(&rate_hz).then_some(PcmParams { rate_hz, heard_rate_hz: rate_hz })
    }
}

/// Audio without a gap.
#[derive(Copy, Clone, Debug)]
struct Piece {
    /// Position of its first sample.
    at: Sample,
    len: usize,
}

/// Both directions of one side's media as frames of PCM.
pub struct PcmLeg {
    params: PcmParams,
    origin: Time,
    sent: u64,
    /// Conversion to and from the channel's rate, where that is another.
    to_channel: Option<Resampler>,
    from_channel: Option<Resampler>,
    out: [i16; FRAME_MAX],
    /// Conversion of received audio to 8 kHz.
    down: Down2,
    /// Audio that waits, at 16 kHz; `pieces` has its positions.
    queue: VecDeque<i16>,
    pieces: VecDeque<Piece>,
    /// Position after the last sample received.
    end: Sample,
    /// Position of the next frame that is handed out.
    next: Option<Sample>,
    heard: u64,
    lead: Lead,
    received: u64,
    overflowed: u64,
    last_arrival: Option<Time>,
    listened_at: Option<Time>,
}

impl PcmLeg {
    /// Returns a leg without audio; position 0 is `origin`.
    pub fn new(params: PcmParams, origin: Time) -> PcmLeg {
        let converter = |from, to| if from == to { None } else { Resampler::new(from, to) };
        PcmLeg {
            params,
            origin,
            sent: 0,
            to_channel: converter(RATE_HZ, params.rate_hz),
            from_channel: converter(params.rate_hz, RATE_HZ),
            out: [0; FRAME_MAX],
            down: Down2::new(),
            queue: VecDeque::with_capacity(ROOM),
            pieces: VecDeque::with_capacity(PIECES),
            end: Sample::MIN,
            next: None,
            heard: 0,
            lead: Lead::default(),
            received: 0,
            overflowed: 0,
            last_arrival: None,
            listened_at: None,
        }
    }

    /// Returns the parameters of the leg.
    pub fn params(&self) -> &PcmParams {
        &self.params
    }

    /// Makes `origin` position 0 from now on.
    pub fn set_origin(&mut self, origin: Time) {
        let by = position(origin, self.origin);
        self.origin = origin;
        self.pieces.iter_mut().for_each(|piece| piece.at -= by);
        self.end = self.end.saturating_sub(by);
        self.next.iter_mut().for_each(|next| *next -= by);
    }

    /// Returns 20 ms of sound as they go to the channel, at its rate.
    pub fn send(&mut self, pcm: &Frame) -> &[i16] {
        self.sent += 1;
        let len = match &mut self.to_channel {
            Some(resampler) => resampler.process(pcm, &mut self.out),
            None => {
                self.out[..FRAME].copy_from_slice(pcm);
                FRAME
            }
        };
        &self.out[..len]
    }

    /// Takes audio of the other side at the channel's rate. Samples that do not fit are dropped and counted.
    pub fn receive(&mut self, arrived: Time, pcm: &[i16]) {
        self.received += 1;
        self.last_arrival = self.last_arrival.max(Some(arrived));
        let begins = position(arrived, self.origin);
        let next = self.next.unwrap_or(Sample::MIN);
        let goes_on = self.end >= next && begins.saturating_sub(self.end) <= BRIDGED;
        if goes_on {
            self.lead.on_piece(self.end - begins);
        } else {
            self.lead.reset();
            // Nothing of what was said before sounds into it.
            self.from_channel.iter_mut().for_each(Resampler::reset);
            let lag = self.from_channel.as_ref().map_or(0.0, |resampler| resampler.delay_s() * f64::from(RATE_HZ));
            self.end = (begins - lag.round() as Sample).max(next);
        }
        let mut whole = true;
        let mut converted = [0; CONVERTED];
        for block in pcm.chunks(BLOCK) {
            whole &= match &mut self.from_channel {
                Some(resampler) => {
                    let len = resampler.process(block, &mut converted);
                    self.append(&converted[..len])
                }
                None => self.append(block),
            };
        }
        self.overflowed += u64::from(!whole);
    }

    /// Adds audio at `end`. Returns false when not all of it fitted.
    fn append(&mut self, pcm: &[i16]) -> bool {
        let len = pcm.len().min(ROOM - self.queue.len());
        let (end, has_space) = (self.end, self.pieces.len() < PIECES);
        match self.pieces.back_mut().filter(|last| last.at + last.len as Sample == end) {
            Some(last) => last.len += len,
            None if has_space => self.pieces.push_back(Piece { at: end, len }),
            None => return false,
        }
        self.queue.extend(&pcm[..len]);
        self.end += len as Sample;
        len == pcm.len()
    }

    /// Drops audio that came and was not handed out.
    pub fn clear(&mut self) {
        self.heard += self.queue.len() as u64;
        self.queue.clear();
        self.pieces.clear();
        self.end = Sample::MIN;
        self.lead.reset();
    }

    /// Returns the samples of 16 kHz that were heard or dropped by [`PcmLeg::clear`] so far; gaps do not count.
    pub fn heard_samples(&self) -> u64 {
        self.heard
    }

    /// Returns the next 20 ms of received audio, written into `scratch`.
    pub fn listen<'a>(&mut self, now: Time, scratch: &'a mut Scratch) -> HeardFrame<'a> {
        self.listened_at = Some(now);
        let newest = position(now, self.origin) - BEHIND;
        let mut at = *self.next.get_or_insert(newest);
        if newest - at > FAR_BEHIND {
            self.pass_over(newest - FRAME as Sample);
            at = newest - FRAME as Sample;
        }
        let mut passed = None;
        if newest - at >= FRAME as Sample {
            let kind = self.frame(at, &mut scratch.before);
            self.down.process(&scratch.before, &mut scratch.narrow);
            passed = Some((at, kind));
            at += FRAME as Sample;
        }
        self.leave_out(at);
        let kind = self.frame(at, &mut scratch.wide);
        let flows = self.last_arrival.is_some_and(|last| position(now, last) <= BRIDGED);
        self.lead.on_heard(&scratch.wide, flows);
        self.down.process(&scratch.wide, &mut scratch.narrow);
        let passed = passed.map(|(position, kind)| Passed { position, kind, pcm: &scratch.before });
        HeardFrame { position: at, kind, pcm: &scratch.wide, narrow: &scratch.narrow, passed, moved: 0 }
    }

    /// Leaves out 20 ms of silence that would be heard at `at`, where the stream stays further ahead than it needs to.
    fn leave_out(&mut self, at: Sample) {
        let is_whole = self.pieces.front().is_some_and(|piece| piece.at <= at && piece.len >= 2 * FRAME);
        if is_whole && self.lead.may_leave_out() && is_quiet(self.queue.iter().take(FRAME)) {
            self.queue.drain(..FRAME);
            self.heard += FRAME as u64;
            self.pieces.iter_mut().skip(1).for_each(|piece| piece.at -= FRAME as Sample);
            self.pieces.iter_mut().take(1).for_each(|piece| piece.len -= FRAME);
            self.end -= FRAME as Sample;
            self.lead.left_out();
        }
    }

    /// Writes the 20 ms at `at`, which are the next ones.
    fn frame(&mut self, at: Sample, pcm: &mut Frame) -> HeardKind {
        let end = at + FRAME as Sample;
        self.next = Some(end);
        pcm.fill(0);
        let mut kind = HeardKind::Silence;
        while let Some(piece) = self.pieces.front_mut().filter(|piece| piece.at < end) {
            let from = (piece.at - at).clamp(0, FRAME as Sample) as usize;
            let len = piece.len.min(FRAME - from);
            for (slot, sample) in pcm[from..from + len].iter_mut().zip(self.queue.drain(..len)) {
                *slot = sample;
            }
            kind = if len > 0 { HeardKind::Real } else { kind };
            self.heard += len as u64;
            piece.at += len as Sample;
            piece.len -= len;
            if piece.len == 0 {
                self.pieces.pop_front();
            } else {
                break;
            }
        }
        kind
    }

    /// Drops all audio before `to`.
    fn pass_over(&mut self, to: Sample) {
        while let Some(piece) = self.pieces.front_mut().filter(|piece| piece.at < to) {
            let len = piece.len.min((to - piece.at) as usize);
            self.queue.drain(..len);
            self.heard += len as u64;
            piece.at += len as Sample;
            piece.len -= len;
            if piece.len > 0 {
                break;
            }
            self.pieces.pop_front();
        }
        self.next = Some(to);
    }

    /// Returns when [`PcmLeg::listen`] was last called.
    pub fn listened_at(&self) -> Option<Time> {
        self.listened_at
    }

    /// Returns the number of pieces that did not fit.
    pub fn overflow_count(&self) -> u64 {
        self.overflowed
    }

    /// Returns the figures up to now: pieces take the place of packets.
    pub fn figures(&self) -> LegFigures {
        LegFigures {
            sent: self.sent,
            received: self.received,
            depth_ms: self.queue.len() as f64 / PER_MS as f64,
            last_arrival: self.last_arrival,
            ..LegFigures::default()
        }
    }
}

/// Returns the position of a moment.
fn position(at: Time, origin: Time) -> Sample {
    (at.0 as i64 - origin.0 as i64).div_euclid(SAMPLE_NS)
}

#[cfg(test)]
mod tests;
