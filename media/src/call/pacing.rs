//! How exactly frames left: a histogram of lateness.

use std::time::Duration;

/// Width of a bucket, in microseconds.
const BUCKET_US: u64 = 50;
/// Buckets; the last takes everything from 20 ms on.
const BUCKETS: usize = 401;

/// Lateness of sent frames. Allocates nothing after its making.
#[derive(Clone, Debug)]
pub struct Pacing {
    buckets: Box<[u32; BUCKETS]>,
    sent: u64,
    skipped: u64,
    longest_gap: u64,
    max: Duration,
}

impl Default for Pacing {
    fn default() -> Self {
        Pacing { buckets: Box::new([0; BUCKETS]), sent: 0, skipped: 0, longest_gap: 0, max: Duration::ZERO }
    }
}

impl Pacing {
    /// Records a frame that was sent `late` after its scheduled time.
    pub fn record_sent(&mut self, late: Duration) {
        let bucket = (late.as_micros() as u64 / BUCKET_US).min(BUCKETS as u64 - 1);
        self.buckets[bucket as usize] += 1;
        self.sent += 1;
        self.max = self.max.max(late);
    }

    /// Records this many frames in a row that were not sent.
    pub fn record_skipped(&mut self, count: u64) {
        self.skipped += count;
        self.longest_gap = self.longest_gap.max(count);
    }

    /// Number of frames that were sent.
    pub fn frames(&self) -> u64 {
        self.sent
    }

    /// Number of frames that were not sent, because they were late.
    pub fn late_frames(&self) -> u64 {
        self.skipped
    }

    /// Largest number of frames in a row that were not sent.
    pub fn longest_gap_frames(&self) -> u64 {
        self.longest_gap
    }

    /// Largest lateness of a sent frame, in milliseconds.
    pub fn max_ms(&self) -> f64 {
        self.max.as_secs_f64() * 1000.0
    }

    /// Returns the upper bound of the bucket in which the `share` quantile (0 to 1) lies, in milliseconds; 0 when no
    /// frame was sent.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let rank = (self.sent as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += u64::from(*count);
            if rank > 0 && seen >= rank {
                return ((bucket as u64 + 1) * BUCKET_US) as f64 / 1000.0;
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_upper_bounds() {
        let mut pacing = Pacing::default();
        assert_eq!(pacing.quantile_ms(0.99), 0.0);
        for _ in 0..99 {
            pacing.record_sent(Duration::from_micros(60));
        }
        pacing.record_sent(Duration::from_millis(30));
        assert_eq!(pacing.quantile_ms(0.5), 0.1);
        assert_eq!(pacing.quantile_ms(0.99), 0.1);
        assert!(pacing.quantile_ms(1.0) >= 20.0);
        assert_eq!(pacing.max_ms(), 30.0);
    }

    #[test]
    fn gaps_are_counted_and_the_longest_is_known() {
        let mut pacing = Pacing::default();
        [2, 7, 1].into_iter().for_each(|count| pacing.record_skipped(count));
        assert_eq!((pacing.late_frames(), pacing.longest_gap_frames()), (10, 7));
    }
}
