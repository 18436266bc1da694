//! Times of the work for a call beside its media thread: recognition, thoughts, speech. No words.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::Mutex;
use ringer_media::time::Time;
use serde::{Deserialize, Serialize};

/// Most effects of a call whose times are kept.
const MOST: usize = 4000;
/// No time: nothing has come yet.
const NEVER: i64 = i64::MIN;

/// Kind of work for a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EffectKind {
    /// The agent's speech is recognized.
    Recognize,
    /// The mind chooses its next words.
    Think,
    /// The mind compares a turn with meanings.
    Compare,
    /// Words are made into speech.
    Speak,
}

/// Time of one piece of work, in nanoseconds from sample 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectTime {
    /// Kind of the work.
    pub kind: EffectKind,
    /// Start of the work.
    pub from_ns: i64,
    /// Moment of its first answer; `None`: there was none.
    pub first_ns: Option<i64>,
    /// End of the work.
    pub to_ns: i64,
    /// True if it was given up before its end.
    #[serde(default)]
    pub cancelled: bool,
    /// Code of its failure; `None`: it did not fail.
    #[serde(default)]
    pub failed: Option<String>,
}

/// Times of all effects of a call, on the clock of the media threads.
#[derive(Clone, Debug)]
pub(super) struct EffectTimes {
    times: Arc<Mutex<Vec<EffectTime>>>,
    /// Tells the time of that clock.
    now: fn() -> Time,
}

impl EffectTimes {
    /// Returns no times; `now` tells the time.
    pub(crate) fn new(now: fn() -> Time) -> EffectTimes {
        EffectTimes { times: Arc::default(), now }
    }

    fn now_ns(&self) -> i64 {
        nanos((self.now)())
    }

    /// Begins to time an effect, which ends when the answer is dropped.
    pub(crate) fn begin(&self, kind: EffectKind) -> Timed {
        let (first_ns, failed) = (AtomicI64::new(NEVER), Mutex::default());
        Timed { kind, from_ns: self.now_ns(), first_ns, failed, is_over: AtomicBool::new(false), times: self.clone() }
    }

    /// Returns the times from sample 0 on the clock of the media threads, in order of their start.
    pub(crate) fn since(&self, zero: Time) -> Vec<EffectTime> {
        let zero = nanos(zero);
        let mut times = self.times.lock().clone();
        for time in &mut times {
            time.from_ns -= zero;
            time.to_ns -= zero;
            time.first_ns = time.first_ns.map(|first| first - zero);
        }
        times.sort_by_key(|time| time.from_ns);
        times
    }
}

/// An effect that is timed.
#[derive(Debug)]
pub(super) struct Timed {
    kind: EffectKind,
    from_ns: i64,
    first_ns: AtomicI64,
    failed: Mutex<Option<&'static str>>,
    is_over: AtomicBool,
    times: EffectTimes,
}

impl Timed {
    /// Notes an answer; the first one counts.
    pub(crate) fn note_answer(&self) {
        let now = self.times.now_ns();
        let _ = self.first_ns.compare_exchange(NEVER, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Notes the code of a failure.
    pub(crate) fn note_failure(&self, code: &'static str) {
        *self.failed.lock() = Some(code);
    }

    /// Notes that the work has come to its own end.
    pub(crate) fn note_end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        let first_ns = Some(self.first_ns.load(Ordering::Relaxed)).filter(|first| *first != NEVER);
        let failed = self.failed.get_mut().take().map(str::to_owned);
        let cancelled = !self.is_over.load(Ordering::Relaxed);
        let time = EffectTime {
            kind: self.kind,
            from_ns: self.from_ns,
            first_ns,
            to_ns: self.times.now_ns(),
            cancelled,
            failed,
        };
        let mut times = self.times.times.lock();
        if times.len() < MOST {
            times.push(time);
        }
    }
}

fn nanos(time: Time) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// Tells a time that is later each time.
    fn now() -> Time {
        static NOW: AtomicU64 = AtomicU64::new(1000);
        Time(NOW.fetch_add(10, Ordering::Relaxed))
    }

    #[test]
    fn ends_are_told_apart() {
        let times = EffectTimes::new(now);
        let zero = now();
        let done = times.begin(EffectKind::Think);
        done.note_answer();
        done.note_answer();
        done.note_end();
        drop(done);
        let failed = times.begin(EffectKind::Speak);
        failed.note_failure("synthesizer_failed");
        failed.note_end();
        drop(failed);
        drop(times.begin(EffectKind::Recognize));
        let found = times.since(zero);
        let told: Vec<_> = (found.iter())
            .map(|time| (time.kind, time.first_ns.is_some(), time.cancelled, time.failed.as_deref()))
            .collect();
        assert_eq!(
            told,
            [
                (EffectKind::Think, true, false, None),
                (EffectKind::Speak, false, false, Some("synthesizer_failed")),
                (EffectKind::Recognize, false, true, None),
            ]
        );
        for time in &found {
            let first = time.first_ns.unwrap_or(time.from_ns);
            assert!(0 <= time.from_ns && time.from_ns <= first && first <= time.to_ns, "{time:?}");
        }
    }
}
