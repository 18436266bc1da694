//! The noise floor under a channel: the 10th percentile of the last 3 s, and how far the noise itself rises above it.
//!
//! The margin follows the noise's own spread, 5 to 10 dB: a fixed one keeps the gate open in babble at 15 dB.

use super::percentiles::Percentiles;

/// Number of blocks that are remembered (3 s of 10 ms).
const MEMORY: usize = 300;

/// Number of blocks without a quiet one after which noise has come into a quiet channel (6 s): speech without pauses
/// may last as long.
const UNQUIET: usize = 600;

/// Lowest level that is told apart, dBov; digital silence is here.
pub(super) const LOWEST_DBOV: f32 = -96.0;

/// Least distance of speech above the noise floor, dB.
const LEAST_MARGIN_DB: f32 = 5.0;

/// Greatest distance of speech above the noise floor, dB: with a larger one speech 10 dB above the noise would be lost.
const MOST_MARGIN_DB: f32 = 10.0;

/// Ratio of the reach of noise above its 10th percentile to the tail between its 2nd and 10th.
const SPREAD: f32 = 3.0;

/// Level below which a noise floor has no noise that could open the gate, so that its spread does not count, in dBov.
pub(super) const QUIET_DBOV: f32 = -62.0;

/// Levels of the last 3 s. Allocates nothing.
#[derive(Clone, Debug)]
pub(super) struct NoiseFloor {
    levels: Percentiles<MEMORY, 193>,
    /// Number of blocks since the last quiet one; at least [`UNQUIET`] where there was none.
    unquiet: usize,
    floor_dbov: f32,
    margin_db: f32,
    quiet: bool,
}

impl NoiseFloor {
    /// Returns a noise floor without a past, which is at [`LOWEST_DBOV`].
    pub(super) fn new() -> NoiseFloor {
        NoiseFloor {
            levels: Percentiles::new(LOWEST_DBOV, 0.5),
            unquiet: UNQUIET,
            floor_dbov: LOWEST_DBOV,
            margin_db: LEAST_MARGIN_DB,
            quiet: true,
        }
    }

    /// True when it remembers levels.
    pub(super) fn has_levels(&self) -> bool {
        !self.levels.is_empty()
    }

    /// Returns the 10th percentile, in a quiet channel the 2nd, in dBov.
    pub(super) fn floor_dbov(&self) -> f32 {
        self.floor_dbov
    }

    /// Returns the level above the noise floor at which speech begins, dB: 5, more where the noise itself varies.
    pub(super) fn margin_db(&self) -> f32 {
        self.margin_db
    }

    /// True when no noticeable noise lies under the channel.
    pub(super) fn quiet(&self) -> bool {
        self.quiet
    }

    /// Remembers the level of a block, dBov.
    pub(super) fn push(&mut self, level_dbov: f32) {
        self.levels.push(level_dbov);
        self.unquiet = if level_dbov <= QUIET_DBOV { 0 } else { self.unquiet + 1 };
    }

    /// Returns the level of the block `back` blocks ago, dBov; 0 is the newest.
    fn level_ago(&self, back: usize) -> f32 {
        self.levels.ago(back)
    }

    /// Returns the standard deviation of the levels of the last `count` frames, dB.
    pub(super) fn spread_db(&self, count: usize) -> f32 {
        let levels = (0..count).map(|back| (self.level_ago(2 * back) + self.level_ago(2 * back + 1)) / 2.0);
        let (sum, squares) = levels.fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        let [mean, square] = [sum, squares].map(|sum: f32| sum / count as f32);
        (square - mean * mean).max(0.0).sqrt()
    }

    /// Number of blocks since the last quiet one, at least [`UNQUIET`] where there was none.
    pub(super) fn unquiet(&self) -> usize {
        self.unquiet
    }

    /// Forgets the newest `count` blocks.
    pub(super) fn take_back(&mut self, count: usize) {
        self.levels.take_back(count);
        // Before them there was a quiet block no longer ago than that.
        self.unquiet = self.unquiet.saturating_sub(count);
        if self.levels.is_empty() {
            self.unquiet = UNQUIET;
        }
    }

    /// Forgets all but the newest `count` blocks.
    pub(super) fn forget_before(&mut self, count: usize) {
        self.levels.forget_before(count);
        self.quiet = false;
    }

    /// Computes the noise floor and the margin again from the remembered blocks.
    pub(super) fn settle(&mut self) {
        let [low, noise_floor] = self.levels.below([0.02, 0.10]);
        // Speech without pauses has gaps between its sounds; where it has none, noise fills them.
        // It stays quiet for longer than that: in long sounds there are few gaps.
        let still = self.quiet && self.unquiet < UNQUIET;
        self.quiet = low <= QUIET_DBOV || still;
        self.floor_dbov = if self.quiet { low.min(QUIET_DBOV) } else { noise_floor };
        // Noise that comes and goes has a tail below its floor as it has one above: the one tells of the other.
        let spread = if self.quiet { 0.0 } else { SPREAD * (noise_floor - low) };
        self.margin_db = spread.clamp(LEAST_MARGIN_DB, MOST_MARGIN_DB);
    }
}
