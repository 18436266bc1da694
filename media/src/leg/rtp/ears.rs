//! Received frames at 8 and 16 kHz, whichever the codec decodes to.

use crate::codec::Codec;
use crate::frame::{FRAME, Sample};
use crate::leg::{NARROW, Scratch};
use crate::resample::{DELAY, Down2, Up2};
use crate::rtp::playout::{HeardKind, Played};

/// Conversion of decoded frames to both rates.
#[derive(Clone, Debug)]
pub(super) struct Ears {
    /// True when the decoded audio is the wide frame, false when it is the narrow one.
    is_wide: bool,
    /// Delay of the wide frame behind its timestamp by codec and filter, in samples.
    lag: Sample,
    up: Up2,
    down: Down2,
}

impl Ears {
    pub(super) fn new(codec: Codec) -> Ears {
        let is_wide = codec.rate_hz() > 8000;
        let lag = codec.lag() + if is_wide { 0 } else { DELAY };
        Ears { is_wide, lag, up: Up2::new(), down: Down2::new() }
    }

    /// Number of samples of a decoded frame.
    pub(super) fn samples(&self) -> usize {
        if self.is_wide { FRAME } else { NARROW }
    }

    /// Calls `fill` to write the decoded frame, and computes the other rate of it.
    pub(super) fn decode(&mut self, scratch: &mut Scratch, fill: impl FnOnce(&mut [i16]) -> Played) -> Played {
        let pcm: &mut [i16] = if self.is_wide { &mut scratch.wide } else { &mut scratch.narrow };
        let mut played = fill(pcm);
        if played.kind == HeardKind::Stretched {
            // Filler leaves no trace in the filters: it must not sound in the frame after it.
            let before = (self.up.clone(), self.down.clone());
            self.convert(scratch);
            (self.up, self.down) = before;
        } else {
            self.convert(scratch);
        }
        played.position -= self.lag;
        played
    }

    fn convert(&mut self, scratch: &mut Scratch) {
        let Scratch { wide, narrow, .. } = scratch;
        if self.is_wide {
            self.down.process(wide, narrow);
        } else {
            self.up.process(narrow, wide);
        }
    }
}
