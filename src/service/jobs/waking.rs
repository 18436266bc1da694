//! Jobs and changes that other engines have stored, where no bus tells of them.

use std::collections::BTreeSet;
use std::time::Duration;

use ringer_base::error::Result;

use super::lease::{log_failure, pace_every};
use super::workshop::Workshop;

/// Interval of the looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time by which a change may be older than the last look and is told all the same: it was not committed yet.
const OVERLAP_MS: i64 = 5000;
/// Results that one look asks for.
const MOST_RESULTS: usize = 500;

/// Looks each second, while there is no bus, for jobs that nobody has, and for changes of conversations that are held
/// here. It wakes who waits for them.
pub(super) async fn look(workshop: Workshop) {
    let mut looks = Looks { workshop, known: BTreeSet::new(), since_ms: 0, told: BTreeSet::new() };
    let mut pace = pace_every(LOOK_EVERY);
    loop {
        pace.tick().await;
        if looks.workshop.service.relay().is_none_or(|relay| !relay.channel().is_up()) {
            log_failure("failed to look for what other engines have stored", looks.look().await);
        }
    }
}

struct Looks {
    workshop: Workshop,
    /// Jobs that workers were woken for.
    known: BTreeSet<i64>,
    since_ms: i64,
    /// Changes that were told, by result and time.
    told: BTreeSet<(i64, i64)>,
}

impl Looks {
    async fn look(&mut self) -> Result<()> {
        let (service, running) = (&self.workshop.service, &self.workshop.running);
        let jobs = service.store().claimable_jobs().await?;
        // A job that stays, since all places are taken, wakes nobody again.
        if !jobs.is_subset(&self.known) {
            service.store().wake_workers();
        }
        self.known = jobs;
        let since_ms = service.clock().now_ms() - OVERLAP_MS;
        let mut told = BTreeSet::new();
        for results in running.results().chunks(MOST_RESULTS) {
            for (result_id, at_ms) in service.store().changed_results(results, self.since_ms).await? {
                if !self.told.contains(&(result_id, at_ms)) {
                    running.note_change_of_another(result_id);
                }
                told.insert((result_id, at_ms));
            }
        }
        (self.since_ms, self.told) = (since_ms, told);
        Ok(())
    }
}
