//! Counters of an engine since its start, counted where the events happen.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use ringer_media::call::Ending;

/// Upper bounds of the buckets of set-up times, seconds.
const SET_UP_S: &[f64] = &[0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 180.0];
/// Upper bounds of the buckets of interarrival jitter, seconds.
const JITTER_S: &[f64] = &[0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2];

/// Counts of values by upper bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Upper bounds, ascending; the last bucket has none.
    pub bounds: &'static [f64],
    /// Values in each bucket, one more than there are bounds.
    pub counts: Vec<u64>,
    /// Sum of all values.
    pub sum: f64,
}

impl Histogram {
    /// Returns an empty histogram with these bucket bounds.
    pub fn new(bounds: &'static [f64]) -> Histogram {
        Histogram { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    /// Counts one more value.
    pub fn add(&mut self, value: f64) {
        self.add_many(value, 1);
    }

    /// Counts a value that came `times` times.
    pub fn add_many(&mut self, value: f64, times: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket] += times;
        self.sum += value * times as f64;
    }
}

/// Counters of calls that are over, or up.
#[derive(Clone, Debug, PartialEq)]
pub struct Calls {
    /// Calls that were dialled: an INVITE went out, whatever came of it.
    pub placed: u64,
    /// Calls that came in and were answered.
    pub answered: u64,
    /// Calls of both kinds that came up.
    pub connected: u64,
    /// Calls that are over, by [`ringer_media::call::EndReason`].
    pub ended: BTreeMap<&'static str, u64>,
    /// Seconds from dialling to the answer, of placed calls that connected.
    pub set_up: Histogram,
    /// Interarrival jitter (RFC 3550 6.4.1) of calls that were up, at their ends, seconds.
    pub jitter: Histogram,
    /// RTP packets received, never come, and come too late to be heard.
    pub packets: [u64; 3],
    /// Recorded frames that did not fit.
    pub recording_dropped: u64,
}

impl Default for Calls {
    fn default() -> Calls {
        Calls {
            placed: 0,
            answered: 0,
            connected: 0,
            ended: BTreeMap::new(),
            set_up: Histogram::new(SET_UP_S),
            jitter: Histogram::new(JITTER_S),
            packets: [0; 3],
            recording_dropped: 0,
        }
    }
}

/// Counters of an engine since its start.
#[derive(Debug, Default)]
pub struct Counters {
    calls: Mutex<Calls>,
    effects: AtomicUsize,
    /// Milliseconds of audio that waited longest for the disk at the recorder's last look.
    pub(super) recorder_lag_ms: AtomicU64,
}

impl Counters {
    /// Returns a copy of what was counted.
    pub fn calls(&self) -> Calls {
        self.count(|calls| calls.clone())
    }

    /// Thoughts, syntheses and recognitions under way.
    pub fn effects(&self) -> usize {
        self.effects.load(Ordering::Relaxed)
    }

    /// Returns the milliseconds of audio that wait for the disk.
    pub fn recorder_lag_ms(&self) -> u64 {
        self.recorder_lag_ms.load(Ordering::Relaxed)
    }

    pub(super) fn placed(&self) {
        self.count(|calls| calls.placed += 1);
    }

    pub(super) fn answered(&self) {
        self.count(|calls| calls.answered += 1);
    }

    /// Counts a connected call. `after_ms`: time since it was dialled, where it was.
    pub(super) fn connected(&self, after_ms: Option<i64>) {
        self.count(|calls| {
            calls.connected += 1;
            if let Some(after_ms) = after_ms {
                calls.set_up.add(after_ms as f64 / 1000.0);
            }
        });
    }

    pub(super) fn ended(&self, ending: &Ending) {
        let quality = &ending.quality;
        self.count(|calls| {
            *calls.ended.entry(ending.reason.as_str()).or_default() += 1;
            if ending.connected {
                calls.jitter.add(quality.jitter_ms / 1000.0);
            }
            let packets = [quality.received_packets, quality.lost_packets, quality.late_packets];
            calls.packets.iter_mut().zip(packets).for_each(|(sum, count)| *sum += count);
            calls.recording_dropped += quality.recording_dropped;
        });
    }

    fn count<R>(&self, change: impl FnOnce(&mut Calls) -> R) -> R {
        change(&mut self.calls.lock())
    }
}

/// An effect under way, until it is dropped.
pub(super) struct InFlight(Arc<Counters>);

impl InFlight {
    pub(crate) fn new(counters: &Arc<Counters>) -> InFlight {
        counters.effects.fetch_add(1, Ordering::Relaxed);
        InFlight(counters.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.effects.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_the_bucket_of_the_first_bound_that_holds_them() {
        let mut histogram = Histogram::new(&[1.0, 2.0]);
        histogram.add(1.0);
        histogram.add(1.5);
        histogram.add_many(9.0, 3);
        assert_eq!((histogram.counts, histogram.sum), (vec![1, 1, 3], 29.5));
    }
}
