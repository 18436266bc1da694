//! The noise floor under a channel: the 10th percentile of the last 3 s, and how far the noise itself rises above it.

/// Blocks that are remembered (3 s of 10 ms).
const MEMORY: usize = 300;

/// Lowest level that is told apart, dBov; digital silence is here.
pub const LOWEST_DBOV: f32 = -96.0;

/// Bins of 0.5 dB from [`LOWEST_DBOV`] to 0.
const BINS: usize = 193;

/// Least distance of speech above the floor, dB.
const LEAST_MARGIN_DB: f32 = 5.0;

/// Greatest distance: with a larger one speech 10 dB above the noise would be lost.
const MOST_MARGIN_DB: f32 = 10.0;

/// Ratio of the reach of noise above its 10th percentile to the tail between its 2nd and 10th.
const SPREAD: f32 = 3.0;

/// A floor below this is no noise that could open the gate: its spread does not count. dBov.
const QUIET_DBOV: f32 = -62.0;

/// Levels of the last 3 s as a histogram. Allocates nothing.
#[derive(Clone, Debug)]
pub struct Floor {
    ring: [u8; MEMORY],
    next: usize,
    filled: usize,
    count: [u16; BINS],
    floor_dbov: f32,
    margin_db: f32,
}

impl Floor {
    /// No history: the floor is [`LOWEST_DBOV`].
    pub fn new() -> Floor {
        Floor {
            ring: [0; MEMORY],
            next: 0,
            filled: 0,
            count: [0; BINS],
            floor_dbov: LOWEST_DBOV,
            margin_db: LEAST_MARGIN_DB,
        }
    }

    /// The 10th percentile, dBov.
    pub fn floor_dbov(&self) -> f32 {
        self.floor_dbov
    }

    /// How far above the floor speech begins, dB: 5, more where the noise itself comes and goes.
    pub fn margin_db(&self) -> f32 {
        self.margin_db
    }

    /// True where no noise worth the name lies under the channel.
    pub fn quiet(&self) -> bool {
        self.floor_dbov <= QUIET_DBOV
    }

    /// Remembers the level of a block, dBov.
    pub fn push(&mut self, level_dbov: f32) {
        if self.filled == MEMORY {
            self.count[usize::from(self.ring[self.next])] -= 1;
        } else {
            self.filled += 1;
        }
        let bin = ((level_dbov - LOWEST_DBOV) * 2.0).clamp(0.0, (BINS - 1) as f32) as u8;
        self.ring[self.next] = bin;
        self.count[usize::from(bin)] += 1;
        self.next = (self.next + 1) % MEMORY;
    }

    /// Finds floor and margin again from what is remembered.
    pub fn settle(&mut self) {
        let [low, floor] = self.percentiles([0.02, 0.10]);
        self.floor_dbov = floor;
        // Noise that comes and goes has a tail below its floor as it has one above: the one tells of the other.
        let spread = if !self.quiet() { SPREAD * (floor - low) } else { 0.0 };
        self.margin_db = spread.clamp(LEAST_MARGIN_DB, MOST_MARGIN_DB);
    }

    /// Levels below which the given shares of the blocks lie (ascending shares), dBov.
    fn percentiles<const N: usize>(&self, shares: [f32; N]) -> [f32; N] {
        let mut levels = [LOWEST_DBOV; N];
        let (mut below, mut bin) = (0, 0);
        for (level, share) in levels.iter_mut().zip(shares) {
            let wanted = (share * self.filled as f32) as u16 + 1;
            while bin < BINS && below + self.count[bin] < wanted {
                below += self.count[bin];
                bin += 1;
            }
            *level = LOWEST_DBOV + bin.min(BINS - 1) as f32 / 2.0;
        }
        levels
    }
}
