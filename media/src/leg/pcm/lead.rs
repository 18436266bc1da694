//! Lead of a stream of frames over its playout, and the part of it that may be left out.
//!
//! A sender that sends all the time, silence included, and was held up once stays so much behind for the rest of the
//! call: its late frames wait for those before them. RTP has a jitter buffer that gives such time back in a pause; this
//! is the same for frames.

use crate::frame::{FRAME, PER_MS, RATE_HZ, Sample};

/// Ticks over which a lead is watched: 500 ms.
const WINDOW: u32 = 25;

/// Largest difference of leads within a window, in samples: 40 ms. A burst, or a sender that is faster than real time,
/// has more.
const STEADY: Sample = 40 * PER_MS;

/// Least lead that is kept, in samples: 20 ms.
const KEPT: Sample = FRAME as Sample;

/// Silence that is heard before any of it is left out, in samples: 1 s. Pauses between words stay as long as they are.
const PAUSE: u64 = RATE_HZ as u64;

/// Largest value of a sample of silence: -50 dBov.
const QUIET: u16 = 100;

/// Observes the leads of a stream.
#[derive(Debug, Default)]
pub(super) struct Lead {
    /// Least and greatest lead within the window, in samples.
    bounds: Option<(Sample, Sample)>,
    ticks: u32,
    /// Samples that may be left out.
    surplus: Sample,
    /// Samples of silence that were heard in a row.
    quiet: u64,
}

/// True when all samples are silence.
pub(super) fn is_quiet<'a>(pcm: impl IntoIterator<Item = &'a i16>) -> bool {
    pcm.into_iter().all(|sample| sample.unsigned_abs() <= QUIET)
}

impl Lead {
    /// Takes the lead of a piece that goes on where the one before it ended, in samples.
    pub(super) fn on_piece(&mut self, lead: Sample) {
        let (least, most) = self.bounds.unwrap_or((lead, lead));
        self.bounds = Some((least.min(lead), most.max(lead)));
    }

    /// Forgets all leads: the stream has begun anew.
    pub(super) fn reset(&mut self) {
        *self = Lead::default();
    }

    /// Takes 20 ms that were heard; `flows`: audio came within the last 40 ms.
    pub(super) fn on_heard(&mut self, pcm: &[i16], flows: bool) {
        self.quiet = if is_quiet(pcm) { self.quiet + pcm.len() as u64 } else { 0 };
        if !flows {
            (self.bounds, self.ticks, self.surplus) = (None, 0, 0);
            return;
        }
        self.ticks += 1;
        if self.ticks >= WINDOW {
            let steady = self.bounds.take().filter(|(least, most)| most - least <= STEADY);
            self.surplus = steady.map_or(0, |(least, _)| (least - KEPT).max(0));
            self.ticks = 0;
        }
    }

    /// True when 20 ms of silence may be left out now.
    pub(super) fn may_leave_out(&self) -> bool {
        self.surplus >= FRAME as Sample && self.quiet >= PAUSE
    }

    /// Records that 20 ms were left out.
    pub(super) fn left_out(&mut self) {
        let by = FRAME as Sample;
        self.surplus -= by;
        self.bounds.iter_mut().for_each(|(least, most)| (*least, *most) = (*least - by, *most - by));
    }
}
