//! Audio of a session: frames of 16 kHz to chunks of bytes, bytes to samples of 16 kHz, and the account of received
//! audio with its marks. The samples themselves wait with whoever takes them.

use std::collections::VecDeque;

use ringer_media::codec::{Codec, Decoder, Encoder};
use ringer_media::frame::RATE_HZ;
use ringer_media::pcm;
use ringer_media::resample::Resampler;

use super::protocol::{MAX_OPEN_MARKS, MAX_QUEUE};

/// Encodings of samples in messages.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// ITU-T G.711 mu-law, a byte a sample.
    Pcmu,
    /// ITU-T G.711 A-law, a byte a sample.
    Pcma,
    /// 16 bits, low byte first.
    L16Le,
    /// 16 bits, high byte first.
    L16Be,
}

impl Encoding {
    /// Returns the name that settings use; the order of bytes is a setting of its own.
    pub const fn name(self) -> &'static str {
        match self {
            Encoding::Pcmu => "PCMU",
            Encoding::Pcma => "PCMA",
            Encoding::L16Le | Encoding::L16Be => "L16",
        }
    }

    /// Returns the bytes of a sample.
    pub const fn bytes(self) -> usize {
        match self {
            Encoding::Pcmu | Encoding::Pcma => 1,
            Encoding::L16Le | Encoding::L16Be => 2,
        }
    }
}

/// Encoding and rate of audio in messages.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Form of the samples.
    pub encoding: Encoding,
    /// Number of samples per second.
    pub rate_hz: u32,
}

impl Wire {
    /// Returns the bytes of a duration; parts of a sample are left out.
    pub const fn bytes(self, ms: u32) -> usize {
        (self.rate_hz as usize * ms as usize / 1000) * self.encoding.bytes()
    }

    /// Returns the samples as bytes of this form.
    fn encode(self, pcm: &[i16]) -> Vec<u8> {
        match self.encoding {
            Encoding::L16Le => pcm::to_bytes(pcm),
            encoding => {
                let mut bytes = vec![0; pcm.len() * encoding.bytes()];
                Encoder::new(codec(encoding)).encode(pcm, &mut bytes);
                bytes
            }
        }
    }

    /// Returns the whole samples of bytes of this form.
    fn decode(self, bytes: &[u8]) -> Vec<i16> {
        match self.encoding {
            Encoding::L16Le => pcm::from_bytes(bytes),
            encoding => {
                let mut pcm = vec![0; bytes.len() / encoding.bytes()];
                Decoder::new(codec(encoding)).decode(bytes, &mut pcm);
                pcm
            }
        }
    }
}

/// Returns the stateless codec of an encoding; the order of its bytes is that of RTP.
fn codec(encoding: Encoding) -> Codec {
    match encoding {
        Encoding::Pcmu => Codec::Pcmu,
        Encoding::Pcma => Codec::Pcma,
        Encoding::L16Le | Encoding::L16Be => Codec::L16Wide,
    }
}

/// Largest value of a sample of silence: -50 dBov.
const QUIET: u16 = 100;

/// Returns the conversion between two rates; `None` where they are equal.
fn converter(from_hz: u32, to_hz: u32) -> Option<Resampler> {
    if from_hz == to_hz { None } else { Resampler::new(from_hz, to_hz) }
}

/// Converts samples; all of them where there is nothing to convert.
fn convert(resampler: &mut Option<Resampler>, pcm: &[i16], from_hz: u32, to_hz: u32) -> Vec<i16> {
    let Some(resampler) = resampler else { return pcm.to_vec() };
    let most = (pcm.len() as u64 * u64::from(to_hz)).div_ceil(u64::from(from_hz)) as usize + 4;
    let mut out = vec![0; most];
    let count = resampler.process(pcm, &mut out);
    out.truncate(count);
    out
}

/// Outgoing audio of a session: frames in, chunks of bytes out.
#[derive(Debug)]
pub(super) struct Mouth {
    wire: Wire,
    resampler: Option<Resampler>,
    waiting: Vec<i16>,
    /// Samples of a chunk, at the rate of the messages.
    chunk: usize,
    /// Samples in the chunks that were taken, at the rate of the messages.
    sent: u64,
}

impl Mouth {
    /// Returns a voice that has said nothing.
    pub(super) fn new(wire: Wire, chunk_ms: u32) -> Mouth {
        let chunk = (wire.rate_hz as usize * chunk_ms as usize / 1000).max(1);
        Mouth { wire, resampler: converter(RATE_HZ, wire.rate_hz), waiting: Vec::new(), chunk, sent: 0 }
    }

    /// Returns the form of the audio.
    pub(super) fn wire(&self) -> Wire {
        self.wire
    }

    /// Goes on in another form, with chunks of at least `least` bytes. Nothing was said before.
    pub(super) fn set_wire(&mut self, wire: Wire, least: usize) {
        let chunk_ms = self.chunk_ms() as u32;
        *self = Mouth::new(wire, chunk_ms);
        while self.chunk * wire.encoding.bytes() < least {
            self.chunk *= 2;
        }
    }

    /// Sends the samples in another encoding than the one that was announced.
    pub(super) fn encode_as(&mut self, encoding: Encoding) {
        self.wire.encoding = encoding;
    }

    /// Drops what is not in a chunk yet.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.resampler.iter_mut().for_each(Resampler::reset);
    }

    /// Takes samples of 16 kHz.
    pub(super) fn take(&mut self, pcm: &[i16]) {
        let converted = convert(&mut self.resampler, pcm, RATE_HZ, self.wire.rate_hz);
        self.waiting.extend(converted);
    }

    /// Returns the next full chunk.
    pub(super) fn next_chunk(&mut self) -> Option<Vec<u8>> {
        (self.waiting.len() >= self.chunk).then(|| {
            let pcm: Vec<i16> = self.waiting.drain(..self.chunk).collect();
            self.sent += pcm.len() as u64;
            self.wire.encode(&pcm)
        })
    }

    /// Returns the number of samples in the chunks that were taken, at the rate of the messages.
    pub(super) fn sent_samples(&self) -> u64 {
        self.sent
    }

    /// Returns the duration of a chunk in milliseconds.
    pub(super) fn chunk_ms(&self) -> u64 {
        self.chunk as u64 * 1000 / u64::from(self.wire.rate_hz)
    }
}

/// A point in the other side's audio that is told of when it has been played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Point {
    /// A mark with its name, or with its whole value in JSON.
    Mark(String),
    /// The end of buffered audio, with its name.
    Buffered(String),
}

/// The other side's audio: bytes in, samples of 16 kHz out, and the account of how far they were played.
#[derive(Debug)]
pub(super) struct Ears {
    wire: Wire,
    resampler: Option<Resampler>,
    /// First byte of a sample whose second has not come.
    half: Option<u8>,
    /// Samples of 16 kHz that were accepted.
    accepted: u64,
    /// Position behind the last of them that is no silence.
    sounds_to: u64,
    /// Accepted samples that were not played.
    waiting: u64,
    is_paused: bool,
    points: VecDeque<(u64, Point)>,
}

impl Ears {
    /// Returns the account of a side that has not spoken.
    pub(super) fn new(wire: Wire) -> Ears {
        Ears {
            wire,
            resampler: converter(wire.rate_hz, RATE_HZ),
            half: None,
            accepted: 0,
            sounds_to: 0,
            waiting: 0,
            is_paused: false,
            points: VecDeque::new(),
        }
    }

    /// Returns the form of the audio.
    pub(super) fn wire(&self) -> Wire {
        self.wire
    }

    /// Takes audio in another form from now on.
    pub(super) fn set_wire(&mut self, wire: Wire) {
        if wire != self.wire {
            (self.wire, self.resampler, self.half) = (wire, converter(wire.rate_hz, RATE_HZ), None);
        }
    }

    /// Returns the samples of 16 kHz that bytes stand for. Half a sample waits for the next bytes.
    pub(super) fn decode(&mut self, bytes: &[u8]) -> Vec<i16> {
        let joined: Vec<u8>;
        let mut bytes = bytes;
        if self.wire.encoding.bytes() == 2 {
            if let Some(half) = self.half.take() {
                joined = std::iter::once(half).chain(bytes.iter().copied()).collect();
                bytes = &joined;
            }
            if !bytes.len().is_multiple_of(2) {
                self.half = bytes.last().copied();
            }
        }
        let pcm = self.wire.decode(bytes);
        convert(&mut self.resampler, &pcm, self.wire.rate_hz, RATE_HZ)
    }

    /// Cuts samples of 16 kHz to as many as may wait; returns the number that did not fit.
    pub(super) fn accept(&mut self, pcm: &mut Vec<i16>) -> u64 {
        let space = MAX_QUEUE.saturating_sub(self.waiting()) as usize;
        let dropped = pcm.len().saturating_sub(space);
        pcm.truncate(space);
        if let Some(last) = pcm.iter().rposition(|sample| sample.unsigned_abs() > QUIET) {
            self.sounds_to = self.accepted + last as u64 + 1;
        }
        self.accepted += pcm.len() as u64;
        self.waiting += pcm.len() as u64;
        dropped as u64
    }

    /// Returns the samples of 16 kHz that wait to be played.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Returns the samples of 16 kHz that were accepted.
    pub(super) fn accepted_samples(&self) -> u64 {
        self.accepted
    }

    /// Returns the samples of 16 kHz that were played or dropped.
    pub(super) fn played_samples(&self) -> u64 {
        self.accepted - self.waiting()
    }

    /// Returns the samples of 16 kHz that wait to be played, up to the last one that is no silence.
    pub(super) fn unplayed_sound(&self) -> u64 {
        self.sounds_to.saturating_sub(self.played_samples())
    }

    /// True if something came that is no silence.
    pub(super) fn has_sound(&self) -> bool {
        self.sounds_to > 0
    }

    /// Takes the number of samples that still wait. It never grows without new audio: a larger number is from before a
    /// clear.
    pub(super) fn set_unplayed(&mut self, unplayed: u64) {
        self.waiting = self.waiting.min(unplayed);
    }

    /// Drops everything that waits. Returns how much it was, and the points in it in order.
    pub(super) fn clear(&mut self) -> (u64, Vec<Point>) {
        let dropped = self.waiting();
        (self.waiting, self.half) = (0, None);
        self.resampler.iter_mut().for_each(Resampler::reset);
        (dropped, self.points.drain(..).map(|(_, point)| point).collect())
    }

    /// Notes that playing rests, or goes on.
    pub(super) fn set_paused(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// True while playing rests.
    pub(super) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Binds a point to the end of the audio that came so far. Returns false when too many wait.
    pub(super) fn bind(&mut self, point: Point) -> bool {
        let has_space = self.points.len() < MAX_OPEN_MARKS;
        if has_space {
            self.points.push_back((self.accepted, point));
        }
        has_space
    }

    /// Returns the next point whose audio has been played.
    pub(super) fn next_reached(&mut self) -> Option<Point> {
        let (at, _) = self.points.front()?;
        (*at <= self.played_samples()).then(|| self.points.pop_front()).flatten().map(|(_, point)| point)
    }
}
