//! Playout of a received stream: 20 ms frames at the codec's own rate, decoded and concealed, each with its place on
//! the call's sample clock.
//!
//! Positions follow from the mapping in [`super::timing`], not from the time at which a frame is handed out. They are
//! contiguous from frame to frame. Where mapping and contiguity part, single samples are corrected in quiet frames,
//! more than 5 ms at once in quiet frames, and more than 20 ms at once anywhere; unbroken sound is pulled a little
//! longer or shorter until both meet (see [`super::slew`]).

use super::conceal::{Concealer, LOOK_AHEAD};
use super::jitter::{JitterBuffer, JitterFrame, MAX_TICKS};
use super::slew::{AHEAD, Slew};
use crate::codec::opus::Opus;
use crate::codec::{Codec, Decoder};
use crate::dot::squares;
use crate::frame::{FRAME, PER_MS, Sample};
use crate::level::QUIET;
use crate::time::Time;

/// Number of frames (10 s) before the speed of the sound is adapted. Until then the mapping still follows the least
/// delayed packet so far, and no drift exceeds 3 ms.
const KNOWN: u32 = 500;

/// Number of samples of a frame at 16 kHz; positions count these.
const FRAME_SAMPLES: Sample = FRAME as Sample;

/// Differences between mapping and position, in samples: left alone, corrected at once in quiet, corrected at once
/// anywhere.
const CLOSE: Sample = 8;
const QUIET_JUMP: Sample = 5 * PER_MS;
const JUMP: Sample = 20 * PER_MS;

/// Difference that makes one step a block in unbroken sound, in samples; less is left alone. Crystals 200 ppm apart are
/// followed from 3 ms on.
const PULLED: Sample = PER_MS;

/// Milliseconds by which a buffer has to be too deep to be emptied faster even while the sender is not quiet.
const FORCED_MS: i64 = 60;

/// Nanoseconds of a 16 kHz sample.
const SAMPLE_NS: i64 = 62_500;

/// Returns a line for all samples that may be held, at `scale` samples in a tick: a frame (less than that before the
/// longest packet), and those that the interpolation needs.
fn line(scale: usize) -> Box<[i16]> {
    vec![0; AHEAD + (FRAME / 2 + MAX_TICKS as usize) * scale].into()
}

/// Origin of a frame's audio.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HeardKind {
    /// Nothing was sent, or nothing has come yet.
    Silence,
    /// Received audio, at least in part.
    Real,
    /// Audio that is at least partly lost and concealed; it belongs in the recording at its position.
    Lost,
    /// Filler while the next packet is awaited, which the other side did not send. The position does not move on.
    Stretched,
}

/// Number of frames from a stream's beginning in which the mapping is still being found. Audio that turns out to lie
/// earlier is moved there, with all audio of the stream before it. They are 340 ms: with the buffer's depth as much as
/// a recording holds back.
const SETTLING: u32 = 17;

/// Position and origin of a frame.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Played {
    /// Position of the first sample.
    pub position: Sample,
    /// Origin of its audio.
    pub kind: HeardKind,
    /// Shift in samples, to be subtracted from the positions handed out before. It is not 0 only at the beginning of a
    /// stream.
    pub moved: Sample,
}

/// Result of taking the next packet out of the jitter buffer.
enum Filled {
    /// This many samples of this origin stand behind the held ones.
    Held(usize, HeardKind),
    /// A whole frame was decoded right into the output.
    Whole,
    /// The next packet is still awaited.
    Wait,
    /// Nothing is sent by the other side.
    Idle,
}

/// Playout of a received stream. Allocates in `new` and where the codec changes only, but for what a decoder does.
#[derive(Debug)]
pub struct Playout {
    jitter: JitterBuffer,
    decoder: Decoder,
    concealer: Concealer,
    /// Number of samples in a tick: 1 at 8 kHz, 2 at 16 kHz.
    scale: usize,
    /// Samples that are decoded and not yet handed out.
    line: Box<[i16]>,
    held: usize,
    held_kind: HeardKind,
    /// True when time was filled since the last real audio, and nothing was lost.
    waiting: bool,
    position: Option<Sample>,
    /// Samples by which the mapping was ahead of the position at the last frame.
    apart: Sample,
    slew: Slew,
    /// Number of frames left of the stream's beginning.
    settling: u32,
    /// Number of frames handed out.
    placed: u32,
    quiet: bool,
    origin: Time,
}

impl Playout {
    /// Returns the playout of a stream in `codec`, with the library for Opus; position 0 is `origin`.
    pub fn new(codec: Codec, opus: &Opus, origin: Time) -> Playout {
        let scale = codec.rate_hz() as usize / 8000;
        Playout {
            jitter: JitterBuffer::new(codec),
            decoder: Decoder::with(codec, opus),
            concealer: Concealer::new(codec.rate_hz()),
            scale,
            line: line(scale),
            held: 0,
            held_kind: HeardKind::Silence,
            waiting: false,
            position: None,
            apart: 0,
            slew: Slew::new(),
            settling: SETTLING,
            placed: 0,
            quiet: true,
            origin,
        }
    }

    /// Makes `origin` position 0 from now on.
    pub fn set_origin(&mut self, origin: Time) {
        let moved = self.position_of(origin.0 as i64);
        self.origin = origin;
        self.position = self.position.map(|position| position - moved);
    }

    /// Changes to `codec` (see [`JitterBuffer::change_codec`]), at the position that was reached.
    pub fn change_codec(&mut self, codec: Codec) {
        self.jitter.change_codec(codec);
        self.decoder = Decoder::new(codec);
        self.concealer = Concealer::new(codec.rate_hz());
        self.scale = codec.rate_hz() as usize / 8000;
        self.line = line(self.scale);
        (self.held, self.held_kind, self.waiting) = (0, HeardKind::Silence, false);
        self.slew = Slew::new();
    }

    /// Returns the buffer, for packets and figures.
    pub fn jitter(&self) -> &JitterBuffer {
        &self.jitter
    }

    /// Returns the buffer, to insert packets.
    pub fn jitter_mut(&mut self) -> &mut JitterBuffer {
        &mut self.jitter
    }

    /// Depth of the buffer in milliseconds.
    pub fn depth_ms(&self, now: Time) -> f64 {
        self.jitter.depth_ms(now, self.ahead())
    }

    /// Returns the position of a point in time, given in nanoseconds of the driver's clock.
    pub fn position_of(&self, ns: i64) -> Sample {
        (ns - self.origin.0 as i64 + SAMPLE_NS / 2).div_euclid(SAMPLE_NS)
    }

    /// Fills one frame of 20 ms (`out` has 160 or 320 samples, by the codec).
    pub fn frame(&mut self, now: Time, out: &mut [i16]) -> Played {
        let awaited = Played {
            position: self.position.unwrap_or_else(|| self.mapped_position()),
            kind: HeardKind::Stretched,
            moved: 0,
        };
        if self.quiet && self.jitter.excess_ms(now, self.ahead()) <= -20 {
            out.fill(0);
            return awaited;
        }
        let mut last = self.held_kind;
        let mut steps = self.steps();
        let needed = out.len() + usize::from(steps.is_some_and(|steps| self.slew.uses_more(out.len(), steps)));
        while self.held < needed {
            match self.fill(now, out, steps.is_none()) {
                Filled::Held(count, kind) => {
                    self.held_kind = if self.held == 0 { kind } else { self.held_kind.max(kind) };
                    self.held += count;
                    last = kind;
                }
                Filled::Whole => return self.place(out, HeardKind::Real),
                Filled::Wait if self.held >= out.len() => {
                    steps = Some(0);
                    break;
                }
                Filled::Wait => {
                    self.waiting |= self.held_kind == HeardKind::Real;
                    self.concealer.conceal(out);
                    return awaited;
                }
                Filled::Idle => {
                    out.fill(0);
                    let position = self.position_of(now.0 as i64) - FRAME_SAMPLES;
                    return Played { position, kind: HeardKind::Silence, moved: 0 };
                }
            }
        }
        let kind = std::mem::replace(&mut self.held_kind, last);
        self.hand_out(out, steps, kind)
    }

    /// Decodes or conceals the next packet behind the held samples; with `may_pass` right into `out`, when it is just
    /// one frame.
    fn fill(&mut self, now: Time, out: &mut [i16], may_pass: bool) -> Filled {
        let (codec, ahead) = (self.decoder.codec(), self.ahead());
        let rest = &mut self.line[self.held..];
        match self.jitter.take(now, ahead) {
            JitterFrame::Audio(payload) => {
                if std::mem::take(&mut self.waiting) {
                    self.concealer.resume();
                }
                if self.held == 0
                    && may_pass
                    && codec.ticks(payload).is_some_and(|ticks| ticks as usize * self.scale == out.len())
                {
                    // The usual case, one packet a frame, need not pass through the line.
                    self.decoder.decode(payload, out);
                    self.concealer.real(out);
                    self.held_kind = HeardKind::Real;
                    self.slew.pass(out);
                    return Filled::Whole;
                }
                let count = self.decoder.decode(payload, rest);
                self.concealer.real(&mut rest[..count]);
                Filled::Held(count, HeardKind::Real)
            }
            JitterFrame::Lost(ticks) => {
                self.waiting = false;
                let count = ticks as usize * self.scale;
                let lost = &mut rest[..count];
                if self.decoder.conceal(self.jitter.following(), lost) {
                    // The codec's own concealment joins the audio after it without a fade.
                    self.concealer.resume();
                    self.concealer.real(lost);
                } else {
                    let mut after = [0; LOOK_AHEAD];
                    let known = self.jitter.following().map_or(0, |next| self.decoder.peek(next, &mut after));
                    self.concealer.bridge(lost, &after[..known]);
                }
                Filled::Held(count, HeardKind::Lost)
            }
            JitterFrame::Silence(ticks) => {
                let count = ticks as usize * self.scale;
                rest[..count].fill(0);
                self.concealer.real(&mut rest[..count]);
                Filled::Held(count, HeardKind::Silence)
            }
            JitterFrame::Wait => Filled::Wait,
            JitterFrame::Idle => Filled::Idle,
        }
    }

    /// Hands out a frame of the held samples, stretched by `steps` a block or unchanged.
    fn hand_out(&mut self, out: &mut [i16], steps: Option<i32>, kind: HeardKind) -> Played {
        let used = match steps {
            Some(steps) => {
                let reach = out.len() + AHEAD;
                self.foresee(reach);
                self.slew.stretch(&self.line[..reach], out, steps)
            }
            None => {
                out.copy_from_slice(&self.line[..out.len()]);
                self.slew.pass(out);
                out.len()
            }
        };
        self.line.copy_within(used..self.held, 0);
        self.held -= used;
        let played = self.place(out, kind);
        if self.quiet && self.held <= self.scale {
            // A sample that pulling left over: frames and packets meet again.
            self.held = 0;
        }
        played
    }

    /// True when the frame just handed out may be followed by another at once, so that the buffer becomes shallower. It
    /// was quiet or the buffer is far too deep, and the next frame is there.
    pub fn may_catch_up(&self, now: Time, frame: usize) -> bool {
        let excess = self.jitter.excess_ms(now, self.ahead());
        (excess >= FORCED_MS || self.quiet && excess >= 0) && (self.held >= frame || self.jitter.is_ready())
    }

    /// Returns the number of ticks that are decoded and not yet handed out.
    fn ahead(&self) -> i64 {
        (self.held / self.scale) as i64
    }

    /// Returns the position of the next sample to be handed out, by the mapping.
    fn mapped_position(&self) -> Sample {
        self.position_of(self.jitter.timing().at(self.jitter.head() - self.ahead()))
    }

    /// Extends the held samples to `reach`, for interpolation alone: by the packet that follows when it is there, else
    /// by its probable continuation.
    fn foresee(&mut self, reach: usize) {
        let missing = reach.saturating_sub(self.held);
        if missing == 0 {
            return;
        }
        let mut after = [0; LOOK_AHEAD];
        let known = self.jitter.following().map_or(0, |next| self.decoder.peek(next, &mut after));
        let ahead = &mut self.line[self.held..][..missing];
        if known >= missing {
            ahead.copy_from_slice(&after[..missing]);
        } else {
            self.concealer.foresee(ahead);
        }
    }

    /// Returns the number of steps a block by which the next frame is stretched; `None` when it is passed on unchanged.
    fn steps(&self) -> Option<i32> {
        let steps = (-self.apart / PULLED) as i32;
        let known = self.placed >= KNOWN;
        (known && !self.quiet && (steps != 0 || self.slew.is_between())).then_some(steps)
    }

    /// Returns the position of a frame that is handed out now and is no longer held.
    fn place(&mut self, out: &[i16], kind: HeardKind) -> Played {
        let mapped = self.mapped_position() - FRAME_SAMPLES;
        let energy = squares(out);
        let before = std::mem::replace(&mut self.quiet, energy < QUIET * out.len() as i64);
        let quiet = before && self.quiet;
        let due = self.position.unwrap_or(mapped);
        let apart = mapped - due;
        self.settling = self.settling.saturating_sub(1);
        self.placed = self.placed.saturating_add(1);
        let moved = if self.settling > 0 && apart < -CLOSE { -apart } else { 0 };
        let position = match apart.abs() {
            _ if moved > 0 => mapped,
            0..=CLOSE => due,
            ..=QUIET_JUMP if quiet => due + apart.signum(),
            ..=JUMP if !quiet => due,
            _ => mapped,
        };
        self.apart = mapped - position;
        self.position = Some(position + FRAME_SAMPLES);
        Played { position, kind, moved }
    }
}
