//! Levels of the last second of a channel, in blocks of 10 ms. They are kept in half decibels, as the noise floor keeps
//! them: a call is small.

use super::BLOCK;
use super::noise_floor::LOWEST_DBOV;
use crate::frame::{FRAME, Sample};

/// Number of blocks that are remembered to find the true onset (1 s).
pub(super) const HISTORY: usize = 100;

/// Number of blocks in a frame.
const IN_FRAME: usize = FRAME / BLOCK;

/// Distance of two levels that are told apart, dB.
const STEP_DB: f32 = 0.5;

/// A block that was received.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Block {
    /// First sample of the block.
    pub from: Sample,
    /// True if it stood above the noise floor.
    pub loud: bool,
    /// Level in dBov, rounded down to half decibels.
    pub level_dbov: f32,
}

/// The last [`HISTORY`] blocks. Allocates nothing.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    /// First sample of each frame.
    froms: [Sample; HISTORY / IN_FRAME],
    /// Levels above [`LOWEST_DBOV`], in half decibels.
    levels: [u8; HISTORY],
    /// Bit of each block that is loud.
    loud: u128,
    /// Number of blocks so far.
    heard: usize,
}

impl Blocks {
    /// Returns a memory without blocks.
    pub(super) fn new() -> Blocks {
        Blocks { froms: [0; HISTORY / IN_FRAME], levels: [0; HISTORY], loud: 0, heard: 0 }
    }

    /// Returns the number of blocks that are remembered.
    pub(super) fn len(&self) -> usize {
        self.heard.min(HISTORY)
    }

    /// Remembers the blocks of the frame that begins at `from`: whether each is loud, and its level in dBov.
    pub(super) fn push(&mut self, from: Sample, blocks: [(bool, f32); IN_FRAME]) {
        self.froms[self.heard % HISTORY / IN_FRAME] = from;
        for (loud, level_dbov) in blocks {
            self.set(self.heard % HISTORY, loud, level_dbov);
            self.heard += 1;
        }
    }

    /// Returns the block of `back` blocks ago, 0 being the newest; `back` is less than [`Blocks::len`].
    pub(super) fn ago(&self, back: usize) -> Block {
        let at = self.place(back);
        Block {
            from: self.froms[at / IN_FRAME] + (at % IN_FRAME * BLOCK) as Sample,
            loud: self.loud >> at & 1 == 1,
            level_dbov: LOWEST_DBOV + f32::from(self.levels[at]) * STEP_DB,
        }
    }

    /// Makes silence of the newest `count` blocks.
    pub(super) fn silence(&mut self, count: usize) {
        (0..count.min(self.len())).for_each(|back| self.set(self.place(back), false, LOWEST_DBOV));
    }

    /// Moves all positions `by` samples back.
    pub(super) fn move_back(&mut self, by: Sample) {
        self.froms.iter_mut().for_each(|from| *from -= by);
    }

    fn place(&self, back: usize) -> usize {
        (self.heard - 1 - back) % HISTORY
    }

    fn set(&mut self, at: usize, loud: bool, level_dbov: f32) {
        self.loud = self.loud & !(1 << at) | u128::from(loud) << at;
        self.levels[at] = ((level_dbov - LOWEST_DBOV) / STEP_DB).clamp(0.0, 255.0) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_second_is_remembered() {
        let mut blocks = Blocks::new();
        assert_eq!(blocks.len(), 0);
        for frame in 0..60 {
            let from = frame * FRAME as Sample;
            blocks.push(from, [(frame % 3 == 0, -30.2), (false, -200.0)]);
        }
        assert_eq!(blocks.len(), HISTORY);
        let block = |frame: Sample, n: usize, loud, level_dbov| Block {
            from: frame * FRAME as Sample + (n * BLOCK) as Sample,
            loud,
            level_dbov,
        };
        assert_eq!(blocks.ago(0), block(59, 1, false, LOWEST_DBOV));
        assert_eq!(blocks.ago(5), block(57, 0, true, -30.5));
        assert_eq!(blocks.ago(HISTORY - 1), block(10, 0, false, -30.5));
        blocks.silence(6);
        blocks.move_back(100);
        assert_eq!(blocks.ago(5), Block { from: 57 * FRAME as Sample - 100, loud: false, level_dbov: LOWEST_DBOV });
        assert_eq!(blocks.ago(6).level_dbov, LOWEST_DBOV);
        assert_eq!(blocks.ago(11), Block { from: 54 * FRAME as Sample - 100, loud: true, level_dbov: -30.5 });
    }
}
