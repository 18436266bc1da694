//! The engine's own lateness: a histogram that media threads write without locks and anybody may read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::counters::Histogram;

/// Width of a bucket, in microseconds.
const BUCKET_US: u64 = 20;
/// Buckets; the last takes everything from 20 ms on.
const BUCKETS: usize = 1001;
/// Upper bounds of the buckets that are shown to others, seconds.
const LATE_S: &[f64] = &[0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02];

/// Lateness of sent frames since the start.
pub struct Lateness {
    buckets: Box<[AtomicU64]>,
    max_us: AtomicU64,
}

impl Default for Lateness {
    fn default() -> Self {
        Lateness { buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(), max_us: AtomicU64::new(0) }
    }
}

impl Lateness {
    /// Counts a frame that left this late.
    pub fn record(&self, late: Duration) {
        let us = late.as_micros() as u64;
        let bucket = (us / BUCKET_US).min(BUCKETS as u64 - 1) as usize;
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.max_us.fetch_max(us, Ordering::Relaxed);
    }

    /// Counts by bucket of 20 us, for differences between two moments.
    pub fn counts(&self) -> Vec<u64> {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect()
    }

    /// Returns the largest lateness, in milliseconds.
    pub fn max_ms(&self) -> f64 {
        self.max_us.load(Ordering::Relaxed) as f64 / 1000.0
    }
}

/// Returns `counts` in the buckets of a histogram, seconds.
pub fn histogram(counts: &[u64]) -> Histogram {
    let mut histogram = Histogram::new(LATE_S);
    for (bucket, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        histogram.add_many((bucket as f64 + 0.5) * BUCKET_US as f64 / 1e6, *count);
    }
    histogram
}

/// Returns the upper bound of the bucket in which the `share` quantile (0..1) of `counts` lies, in milliseconds; 0 when
/// empty.
pub fn quantile_ms(counts: &[u64], share: f64) -> f64 {
    let total: u64 = counts.iter().sum();
    let rank = (total as f64 * share).ceil() as u64;
    let mut seen = 0;
    for (bucket, count) in counts.iter().enumerate() {
        seen += count;
        if rank > 0 && seen >= rank {
            return ((bucket as u64 + 1) * BUCKET_US) as f64 / 1000.0;
        }
    }
    0.0
}
