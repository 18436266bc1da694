//! Pauses inside an utterance: stretches that are inaudible to the other side, on the 10 ms grid of the sample clock.

use crate::frame::{PER_MS, Sample};

/// Shorter ones belong to the words.
const SHORTEST: Sample = 300 * PER_MS;
/// Pauses of one utterance that are kept: twice what the slowest speaker adds to the longest turn.
const MOST: usize = 64;

/// Follows one utterance at a time.
#[derive(Debug)]
pub(super) struct Pauses {
    quiet_since: Option<Sample>,
    found: Vec<[Sample; 2]>,
}

impl Pauses {
    /// Returns the state without an utterance.
    pub(super) fn new() -> Pauses {
        Pauses { quiet_since: None, found: Vec::with_capacity(MOST) }
    }

    /// Forgets the pauses of the utterance before, as another one begins.
    pub(super) fn begin(&mut self) {
        self.quiet_since = None;
        self.found.clear();
    }

    /// Takes in the stretch that begins at `from`, which is silent or not; they come in order.
    pub(super) fn follow(&mut self, from: Sample, is_silent: bool) {
        if is_silent {
            self.quiet_since.get_or_insert(from);
        } else if let Some(since) = self.quiet_since.take()
            && from - since >= SHORTEST
            && self.found.len() < MOST
        {
            self.found.push([since, from]);
        }
    }

    /// Returns the utterance's pauses in order, each from its first sample to one past its last. Silence at its end is
    /// none.
    pub(super) fn spans(&self) -> Box<[[Sample; 2]]> {
        self.found.as_slice().into()
    }
}
