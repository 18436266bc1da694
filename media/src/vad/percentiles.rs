//! Percentiles of the last values of a measure, as a histogram.

/// The last `MEMORY` values in `BINS` steps. Allocates nothing.
#[derive(Clone, Debug)]
pub(crate) struct Percentiles<const MEMORY: usize, const BINS: usize> {
    lowest: f32,
    step: f32,
    ring: [u8; MEMORY],
    next: usize,
    filled: usize,
    count: [u16; BINS],
}

impl<const MEMORY: usize, const BINS: usize> Percentiles<MEMORY, BINS> {
    const FITS: () = assert!(BINS <= 256, "a value is kept as a byte");

    /// Returns an empty histogram; values below `lowest` and above the last step count as those.
    pub(crate) fn new(lowest: f32, step: f32) -> Percentiles<MEMORY, BINS> {
        let () = Self::FITS;
        Percentiles { lowest, step, ring: [0; MEMORY], next: 0, filled: 0, count: [0; BINS] }
    }

    /// Remembers a value, and forgets the oldest when there is no space.
    pub(crate) fn push(&mut self, value: f32) {
        if self.filled == MEMORY {
            self.count[usize::from(self.ring[self.next])] -= 1;
        } else {
            self.filled += 1;
        }
        let bin = ((value - self.lowest) / self.step).clamp(0.0, (BINS - 1) as f32) as u8;
        self.ring[self.next] = bin;
        self.count[usize::from(bin)] += 1;
        self.next = (self.next + 1) % MEMORY;
    }

    /// Returns the value remembered `back` pushes ago, 0 being the newest; the lowest where there was none.
    pub(crate) fn ago(&self, back: usize) -> f32 {
        let bin = if back < self.filled { self.ring[(self.next + MEMORY - 1 - back) % MEMORY] } else { 0 };
        self.lowest + f32::from(bin) * self.step
    }

    /// Forgets the newest `count` values.
    pub(crate) fn take_back(&mut self, count: usize) {
        for _ in 0..count.min(self.filled) {
            self.next = (self.next + MEMORY - 1) % MEMORY;
            self.count[usize::from(self.ring[self.next])] -= 1;
            self.filled -= 1;
        }
    }

    /// True when no value is remembered.
    pub(crate) fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Forgets all but the newest `count` values.
    pub(crate) fn forget_before(&mut self, count: usize) {
        while self.filled > count {
            let oldest = self.ring[(self.next + MEMORY - self.filled) % MEMORY];
            self.count[usize::from(oldest)] -= 1;
            self.filled -= 1;
        }
    }

    /// Returns the values below which the given shares of all lie (ascending shares, 0 to 1); the lowest when there are
    /// none.
    pub(crate) fn below<const N: usize>(&self, shares: [f32; N]) -> [f32; N] {
        let (mut below, mut bin) = (0, 0);
        shares.map(|share| {
            let wanted = (share * self.filled as f32) as u16 + 1;
            while self.filled > 0 && bin < BINS - 1 && below + self.count[bin] < wanted {
                below += self.count[bin];
                bin += 1;
            }
            self.lowest + bin as f32 * self.step
        })
    }
}
