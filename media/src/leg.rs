//! Media of one side in both directions, over any carrier: 16 kHz frames in and out, with positions.
//!
//! Two kinds: [`RtpLeg`] makes and reads RTP packets, [`PcmLeg`] takes and gives frames of linear PCM, which a message
//! channel or a media room carries. A leg knows no sockets and no clock.
//!
//! Positions count samples of 16 kHz from the origin, which is the moment of the answer.

mod pcm;
mod rtp;

pub use self::pcm::{FRAME_MAX, PcmLeg, PcmParams};
pub use self::rtp::{Ignored, KeySource, MAX_PACKET, MediaParams, Received, ReceivedDigit, Refused, RtpLeg, Unheard};
pub use crate::rtp::playout::HeardKind;

use crate::codec::opus::Opus;
use crate::frame::{FRAME, Frame, RATE_HZ, SILENCE, Sample};
use crate::rtp::srtp::SrtpParams;
use crate::seed::Seed;
use crate::time::Time;

/// Number of samples of 20 ms at 8 kHz.
pub const NARROW: usize = FRAME / 2;

/// Buffers for [`Leg::listen`]. They belong on the caller's stack: one set for all legs stays in the processor's cache.
#[derive(Clone, Debug)]
pub struct Scratch {
    wide: Frame,
    narrow: [i16; NARROW],
    before: Frame,
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch { wide: SILENCE, narrow: [0; NARROW], before: SILENCE }
    }
}

/// Received audio of 20 ms for the analysis.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct HeardFrame<'a> {
    /// Position of the first sample of `pcm`.
    pub position: Sample,
    /// Origin of the audio. `Real` and `Lost` belong in a recording, `Stretched` and `Silence` do not.
    pub kind: HeardKind,
    /// Samples of the frame at 16 kHz.
    pub pcm: &'a Frame,
    /// The same 20 ms at 8 kHz. For narrowband codecs they are as decoded, 35 samples (2.2 ms) *later* on the clock
    /// than `pcm`. For wideband ones they are as much earlier.
    pub narrow: &'a [i16; NARROW],
    /// Frame before this one, when two were due at once because the buffer becomes shallower. It belongs in the
    /// recording, not in the analysis.
    pub passed: Option<Passed<'a>>,
    /// Shift in samples, to be subtracted from positions reported before this frame. It is not 0 only at the beginning
    /// of a stream, at most 17 frames after its first.
    pub moved: Sample,
}

/// A frame that is not for the analysis.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Passed<'a> {
    /// Position of the first sample of `pcm`.
    pub position: Sample,
    /// Origin of the audio: `Real` or `Lost`.
    pub kind: HeardKind,
    /// Samples of the frame at 16 kHz.
    pub pcm: &'a Frame,
}

/// Figures of a leg since it began.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct LegFigures {
    /// Number of RTP packets sent.
    pub sent: u64,
    /// Number of RTP packets received, each counted once.
    pub received: u64,
    /// Number of RTP packets that never came.
    pub lost: u64,
    /// Number of audio packets that came too late to be heard.
    pub late: u64,
    /// Number of RTP packets that came again.
    pub duplicates: u64,
    /// Number of RTP packets of a source that was not accepted.
    pub foreign: u64,
    /// Number of times that another source was accepted in place of the one before.
    pub source_changes: u64,
    /// Number of RTP packets of payload types that were not negotiated.
    pub unknown_payload_type: u64,
    /// Number of RTP packets of a negotiated payload type whose length cannot be one of it.
    pub wrong_length: u64,
    /// Number of datagrams that were not RTP.
    pub malformed: u64,
    /// Number of datagrams on a leg with secure RTP that were not made with the other side's key: forged, tampered
    /// with, plain.
    pub forged: u64,
    /// Number of datagrams of secure RTP that came again (RFC 3711 3.3.2).
    pub replayed: u64,
    /// Number of datagrams that came before a handshake had brought their keys.
    pub before_keys: u64,
    /// Milliseconds of audio that were concealed because their packets were lost or late.
    pub concealed_ms: u64,
    /// Interarrival jitter (RFC 3550 6.4.1), in milliseconds.
    pub jitter_ms: f64,
    /// Depth of the jitter buffer at the last `listen`, in milliseconds.
    pub depth_ms: f64,
    /// Arrival of the last RTP packet; `None` before the first.
    pub last_arrival: Option<Time>,
    /// Arrival of the last report; `None` before the first.
    pub last_report: Option<Time>,
    /// Round trip by the last report, in milliseconds; `None` when it is not known.
    pub round_trip_ms: Option<f64>,
    /// Share of the sent packets that the other side lost in its last interval, 0 to 1; `None` without a report.
    pub remote_fraction_lost: Option<f64>,
}

/// Parameters of the media, as offer and answer, or the opening of another channel, have settled them.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LegParams {
    /// Media as RTP packets.
    Rtp(MediaParams),
    /// Media as frames of linear PCM.
    Pcm(PcmParams),
}

impl LegParams {
    /// Returns the sampling rate of the audio that crosses the channel, in Hz: 8000 at narrow band, at most 16000 here.
    pub fn rate_hz(&self) -> u32 {
        match self {
            LegParams::Rtp(media) => media.codec.rate_hz(),
            LegParams::Pcm(pcm) => pcm.rate_hz.min(RATE_HZ),
        }
    }

    /// Returns the sampling rate of the other side's audio at its source, in Hz: a recognizer hears at most half of it
    /// as frequencies.
    pub fn heard_rate_hz(&self) -> u32 {
        match self {
            LegParams::Rtp(media) => media.codec.rate_hz(),
            LegParams::Pcm(pcm) => pcm.heard_rate_hz.min(self.rate_hz()),
        }
    }

    /// Returns the name of the codec in timelines.
    pub fn codec_name(&self) -> &'static str {
        match self {
            LegParams::Rtp(media) => media.codec.name(),
            LegParams::Pcm(_) => "PCM",
        }
    }
}

impl From<MediaParams> for LegParams {
    fn from(media: MediaParams) -> LegParams {
        LegParams::Rtp(media)
    }
}

impl From<PcmParams> for LegParams {
    fn from(pcm: PcmParams) -> LegParams {
        LegParams::Pcm(pcm)
    }
}

/// Both directions of one side's media.
pub enum Leg {
    /// Media over RTP packets.
    Rtp(Box<RtpLeg>),
    /// Media as frames of linear PCM.
    Pcm(Box<PcmLeg>),
}

impl Leg {
    /// Returns a leg whose draws come from `seed`, with the library for Opus; position 0 is `origin`.
    pub fn new(params: LegParams, opus: &Opus, seed: Seed, origin: Time) -> Leg {
        match params {
            LegParams::Rtp(media) => Leg::Rtp(Box::new(RtpLeg::with_opus(media, opus, seed, origin))),
            LegParams::Pcm(pcm) => Leg::Pcm(Box::new(PcmLeg::new(pcm, origin))),
        }
    }

    /// Makes `origin` position 0 from now on: early media becomes the connected call.
    pub fn set_origin(&mut self, origin: Time) {
        match self {
            Leg::Rtp(leg) => leg.set_origin(origin),
            Leg::Pcm(leg) => leg.set_origin(origin),
        }
    }

    /// Returns the parameters in force.
    pub fn params(&self) -> LegParams {
        match self {
            Leg::Rtp(leg) => LegParams::Rtp(*leg.params()),
            Leg::Pcm(leg) => LegParams::Pcm(*leg.params()),
        }
    }

    /// Takes parameters that were settled anew. Returns false, and changes nothing, where that is not possible.
    pub fn renegotiate(&mut self, params: LegParams) -> bool {
        match (self, params) {
            (Leg::Rtp(leg), LegParams::Rtp(media)) => leg.renegotiate(media),
            (Leg::Pcm(leg), LegParams::Pcm(pcm)) => *leg.params() == pcm,
            _ => false,
        }
    }

    /// Takes the keys of RTP, and those of reports where they are others, that handshakes have brought.
    pub fn take_keys(&mut self, rtp: Option<&SrtpParams>, reports: Option<&SrtpParams>) {
        if let Leg::Rtp(leg) = self {
            rtp.into_iter().for_each(|keys| leg.take_keys(keys));
            reports.into_iter().for_each(|keys| leg.take_report_keys(keys));
        }
    }

    /// Records a tick in which nothing is sent.
    pub fn skip(&mut self) {
        if let Leg::Rtp(leg) = self {
            leg.skip();
        }
    }

    /// True when digits can be sent as telephone events (RFC 4733).
    pub fn has_events(&self) -> bool {
        matches!(self, Leg::Rtp(leg) if leg.params().event_payload_type.is_some())
    }

    /// True while the other side wants to hear; RTP is not sent else (RFC 3264 5.1, 6.1, 8.4).
    pub fn may_send(&self) -> bool {
        match self {
            Leg::Rtp(leg) => leg.params().may_send,
            Leg::Pcm(_) => true,
        }
    }

    /// True while the other side is to send (RFC 3264 5.1, 6.1, 8.4).
    pub fn may_receive(&self) -> bool {
        match self {
            Leg::Rtp(leg) => leg.params().may_receive,
            Leg::Pcm(_) => true,
        }
    }

    /// Returns code and reason of the next kind of packets that arrive and are not heard; each kind is told once.
    pub fn unheard(&mut self, now: Time) -> Option<(&'static str, String)> {
        let Leg::Rtp(leg) = self else { return None };
        let what = leg.unheard(now)?;
        Some((what.code(), what.why(leg.params().codec, leg.params().receive_payload_type)))
    }

    /// Sends `digit` as a telephone event from the next tick on, for `duration_ms`. Returns false when that is not
    /// possible.
    pub fn start_event(&mut self, digit: char, duration_ms: u32) -> bool {
        match self {
            Leg::Rtp(leg) => leg.start_event(digit, duration_ms),
            Leg::Pcm(_) => false,
        }
    }

    /// Returns the next 20 ms of received audio, written into `scratch`.
    pub fn listen<'a>(&mut self, now: Time, scratch: &'a mut Scratch) -> HeardFrame<'a> {
        match self {
            Leg::Rtp(leg) => leg.listen(now, scratch),
            Leg::Pcm(leg) => leg.listen(now, scratch),
        }
    }

    /// Returns the next digit that came as a telephone event and is over.
    pub fn digit(&mut self) -> Option<ReceivedDigit> {
        match self {
            Leg::Rtp(leg) => leg.digit(),
            Leg::Pcm(_) => None,
        }
    }

    /// Returns the time of the last packet or report of the other side. A channel of frames reports its own loss, and
    /// so counts as alive.
    pub fn last_sign(&self) -> Option<Time> {
        match self {
            Leg::Rtp(leg) => leg.last_sign(),
            Leg::Pcm(leg) => leg.listened_at(),
        }
    }

    /// Returns the number of packets, or pieces of audio, that came and were dropped for lack of space.
    pub fn overflow_count(&self) -> u64 {
        match self {
            Leg::Rtp(leg) => leg.overflow_count(),
            Leg::Pcm(leg) => leg.overflow_count(),
        }
    }

    /// Returns the milliseconds of audio that were not heard because their packets were lost or late.
    pub fn concealed_ms(&self) -> u64 {
        match self {
            Leg::Rtp(leg) => leg.concealed_ms(),
            Leg::Pcm(_) => 0,
        }
    }

    /// Returns the figures up to now.
    pub fn figures(&self) -> LegFigures {
        match self {
            Leg::Rtp(leg) => leg.figures(),
            Leg::Pcm(leg) => leg.figures(),
        }
    }
}
