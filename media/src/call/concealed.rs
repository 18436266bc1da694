//! Count of the other side's concealed audio by position, so that each turn can report its share.

use crate::frame::{FRAME, Sample};

/// Frames with made-up audio that are kept: 640 ms in a row, longer than an edge of speech takes to be confirmed.
const KEPT: usize = 32;

/// Milliseconds of concealed audio, counted from the beginning of the call.
#[derive(Clone, Debug)]
pub(super) struct Concealed {
    /// Middle of each frame that added to the count, and the count with it; the oldest mark is overwritten.
    marks: [(Sample, u64); KEPT],
    next: usize,
    /// Count before the oldest mark.
    forgotten: u64,
    total: u64,
}

impl Concealed {
    /// Returns a count of zero.
    pub(super) fn new() -> Concealed {
        Concealed { marks: [(Sample::MAX, 0); KEPT], next: 0, forgotten: 0, total: 0 }
    }

    /// Records that the count has come to `total` with the frame at `position`.
    pub(super) fn push(&mut self, position: Sample, total: u64) {
        if total == self.total {
            return;
        }
        let old = std::mem::replace(&mut self.marks[self.next], (position + FRAME as Sample / 2, total));
        self.forgotten = self.forgotten.max(old.1);
        self.next = (self.next + 1) % KEPT;
        self.total = total;
    }

    /// Moves all positions `by` samples back.
    pub(super) fn move_back(&mut self, by: Sample) {
        self.marks.iter_mut().for_each(|(middle, _)| *middle -= by);
    }

    /// Milliseconds of concealed audio before `at`; only the last 32 frames with concealed audio are told apart.
    pub(super) fn before(&self, at: Sample) -> u64 {
        let earlier = self.marks.iter().filter(|(middle, _)| *middle < at).map(|(_, total)| *total);
        earlier.max().unwrap_or(0).max(self.forgotten)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_known_for_the_recent_past() {
        let mut concealed = Concealed::new();
        assert_eq!(concealed.before(Sample::MAX), 0);
        for n in 0..90u64 {
            // Every third frame has 20 ms.
            concealed.push(n as Sample * FRAME as Sample, n.div_ceil(3) * 20);
        }
        assert_eq!([0, 320, 480, 500, 31_900].map(|at| concealed.before(at)), [0, 0, 0, 20, 600]);
        concealed.move_back(320);
        assert_eq!([0, 170, 31_900].map(|at| concealed.before(at)), [0, 20, 600]);
        // More than is kept: what is older counts as the oldest known.
        for n in 100..200u64 {
            concealed.push(n as Sample * FRAME as Sample, 1000 + n);
        }
        assert_eq!([0, 180 * 320 + 161, Sample::MAX].map(|at| concealed.before(at)), [1167, 1180, 1199]);
    }
}
