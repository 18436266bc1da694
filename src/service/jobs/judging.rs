//! Judgements that are made at once: how many, and each result by one at a time.

use std::collections::HashSet;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};

/// Recordings that are measured at once: it takes a core, which calls need.
const MEASURED_AT_ONCE: usize = 1;

/// Judgements that are under way.
pub struct Judging {
    at_once: usize,
    /// Places of the recordings that are measured.
    pub(super) measuring: Semaphore,
    results: Mutex<HashSet<i64>>,
    freed: Notify,
}

impl Judging {
    /// Returns the judgements of an engine that makes so many at the same time.
    pub fn new(at_once: usize) -> Judging {
        let (results, freed) = Default::default();
        Judging { at_once: at_once.max(1), measuring: Semaphore::new(MEASURED_AT_ONCE), results, freed }
    }

    /// Returns the number of judgements at the same time.
    pub(super) fn at_once(&self) -> usize {
        self.at_once
    }

    /// Waits until no judgement of a result is under way, and begins one.
    pub(super) async fn begin(&self, result_id: i64) -> UnderWay<'_> {
        loop {
            let freed = self.freed.notified();
            if self.results.lock().insert(result_id) {
                return UnderWay { judging: self, result_id };
            }
            freed.await;
        }
    }
}

/// A judgement of a result that is under way.
pub(super) struct UnderWay<'a> {
    judging: &'a Judging,
    result_id: i64,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.judging.results.lock().remove(&self.result_id);
        self.judging.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_result_is_judged_by_one_at_a_time() {
        let judging = Judging::new(4);
        let first = judging.begin(1).await;
        let other = judging.begin(2).await;
        let mut second = pin!(judging.begin(1));
        assert!(second.as_mut().now_or_never().is_none(), "the first is under way");
        drop(other);
        assert!(second.as_mut().now_or_never().is_none(), "that was another result");
        drop(first);
        assert!(second.now_or_never().is_some(), "it is its turn");
    }
}
