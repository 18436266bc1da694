//! Start of an engine on a database: work that an earlier one has left, and the signs that this one works.

use ringer_base::error::Result;
use ringer_store::queue::Queue;

use super::Runs;
use crate::conversation::lifecycle::RESTARTED;

impl Runs {
    /// Recovers after a restart: conversations in progress when the engine stopped end as SYSTEM_ERROR. Returns their
    /// number. All other work resumes by its jobs. While another engine uses the database, nothing is taken from it:
    /// work of a dead engine resumes when its leases expire.
    pub async fn recover(&self) -> Result<usize> {
        self.conversations.restore_ended().await?;
        let is_alone = self.store.enter().await?;
        let mut db = self.store.system().await?;
        // After the database was away, others may not be connected yet.
        let has_others = db.follow_predecessors(&self.settings.engine).await?;
        db.commit().await?;
        if !is_alone || has_others {
            tracing::info!("another engine uses this database");
            if is_alone {
                self.store.admit_others().await?;
            }
            return self.restore_schedules().await.map(|_| 0);
        }
        let interrupted = self.store.system().await?.results_interrupted().await?;
        let mut broken_off = 0;
        for (organization, id) in &interrupted {
            broken_off += usize::from(self.conversations.break_off(organization, *id, RESTARTED).await?);
        }
        self.conversations.sweep_moved().await?;
        Queue::new(self.store.clone(), self.clock.clone()).end_leases().await?;
        self.restore_schedules().await?;
        self.store.abandon_running_requests().await?;
        self.store.admit_others().await?;
        Ok(broken_off)
    }

    /// Returns the number of jobs that are due and wait for a worker, and the milliseconds since the first was due.
    pub async fn due_jobs(&self) -> Result<(i64, i64)> {
        let now = self.clock.now_ms();
        let (jobs, first_ms) = self.store.org("").read().await?.due_jobs(now).await?;
        Ok((jobs, first_ms.map_or(0, |first| (now - first).max(0))))
    }

    /// Makes sure that other engines see that this one works.
    pub async fn stay(&self) -> Result<()> {
        self.store.stay().await
    }
}
