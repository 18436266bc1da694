//! Signs of life of this engine at the database, and what it takes over from engines that give none.

use std::time::Duration;

use ringer_base::error::{Error, Result};
use ringer_media::call::EndReason;
use ringer_store::EngineFacts;
use tokio::time::timeout;

use super::lease::{catch_panic, log_failure, pace_every};
use super::workshop::Workshop;
use crate::LiveCalls;

/// Longest time between two signs of life.
const MOST_BETWEEN: Duration = Duration::from_secs(5);
/// Part of a lease between two signs of life: several may fail.
const PARTS: u32 = 4;
/// Most milliseconds for which a registration stays with an engine that gives no sign of life.
const LINE_LEASE_MS: i64 = 30_000;
/// Number of signs of life between two looks for rows of engines that are long gone.
const SWEEP_EVERY: u32 = 60;
/// Signs of life in a row after which leases that have ended are those of dead engines. While the database was away
/// nobody could renew one.
const SETTLED: u32 = 3;

/// Returns the time between two signs of life, by the length of a lease.
fn interval(lease: Duration) -> Duration {
    MOST_BETWEEN.min(lease / PARTS)
}

/// Signs of life of one engine.
pub(super) struct Heart {
    pub workshop: Workshop,
    pub facts: EngineFacts,
}

impl Heart {
    /// Gives signs of life until it is dropped.
    pub(super) async fn beat(self) {
        let lease = Duration::from_millis(self.facts.lease_ms.unsigned_abs());
        let between = interval(lease);
        let service = &self.workshop.service;
        // Without others there is nobody whose leases could not be renewed.
        service.store().note_settled(!service.store().is_shared());
        let mut pace = pace_every(between);
        let mut draining = service.engines().watch_draining();
        let (mut in_a_row, mut drained) = (0u32, None);
        let mut now = pace.tick().await;
        let mut last = now;
        loop {
            match service.engines().is_draining() {
                true => self.end_late(now - *drained.get_or_insert(now)),
                false => drained = None,
            }
            let calls = self.workshop.engine.live_calls();
            let beat = timeout(lease.max(MOST_BETWEEN), catch_panic(service.engines().beat(&self.facts, calls)));
            let done = beat.await.unwrap_or_else(|_| Err(Error::internal("it does not answer")));
            match done {
                Ok(_) => {
                    let was_away = now - std::mem::replace(&mut last, now) > lease;
                    in_a_row += 1;
                    self.follow(in_a_row, was_away).await;
                }
                Err(error) => {
                    if in_a_row > 0 {
                        tracing::warn!(%error, "the database does not take this engine's signs of life: calls go on");
                    }
                    in_a_row = 0;
                    service.store().note_settled(!service.store().is_shared());
                }
            }
            now = tokio::select! {
                at = pace.tick() => at,
                _ = draining.changed() => now,
            };
        }
    }

    /// Does what is due after so many signs of life in a row. `was_away`: others may have taken this engine for lost.
    async fn follow(&self, in_a_row: u32, was_away: bool) {
        let service = &self.workshop.service;
        if was_away {
            log_failure("failed to look for calls that others ended", catch_panic(self.end_taken()).await);
        }
        if in_a_row == 1 {
            // Records that the database did not take while it was away.
            let restored = catch_panic(service.conversations().restore_ended()).await;
            log_failure("failed to look for kept records of conversations", restored);
        }
        log_failure("failed to share the registrations at trunks", catch_panic(self.share_lines()).await);
        if in_a_row < SETTLED {
            return;
        }
        service.store().note_settled(true);
        match catch_panic(service.engines().end_results_of_lost()).await {
            Ok(0) => {}
            Ok(results) => tracing::warn!(results, "results of engines that are gone were ended"),
            done => log_failure("failed to look for engines that are gone", done),
        }
        if in_a_row % SWEEP_EVERY == SETTLED {
            let swept = catch_panic(service.engines().sweep()).await;
            log_failure("failed to remove the rows of engines that are gone", swept);
        }
    }

    /// Is registered at the trunks at which no other engine is; at none while this one is drained.
    async fn share_lines(&self) -> Result<()> {
        let Workshop { service, engine, .. } = &self.workshop;
        let registering = service.settings().trunks.iter().filter(|(_, trunk)| trunk.register);
        let names: Vec<String> = registering.map(|(name, _)| name.clone()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let (is_shared, is_draining) = (service.store().is_shared(), service.engines().is_draining());
        let held = match (is_shared, is_draining) {
            (_, true) => Vec::new(),
            (false, false) => names,
            (true, false) => service.engines().hold_lines(&names, self.facts.lease_ms.min(LINE_LEASE_MS)).await?,
        };
        engine.register_lines(held.into_iter().collect()).await;
        match is_shared && is_draining {
            true => service.engines().let_go_of_lines().await,
            false => Ok(()),
        }
    }

    /// Ends the conversations that still run when a drain has taken as long as it may.
    fn end_late(&self, taken: Duration) {
        let Workshop { service, running, .. } = &self.workshop;
        if service.settings().drain_timeout.is_none_or(|most| taken < most) {
            return;
        }
        for result_id in running.results() {
            tracing::warn!(result_id, "server.drain_timeout_s is over: a conversation is ended");
            running.hangup(result_id, EndReason::Shutdown);
        }
    }

    /// Ends calls of results that another engine has taken for lost: this one gave no sign of life for too long.
    async fn end_taken(&self) -> Result<()> {
        let Workshop { service, running, .. } = &self.workshop;
        for result_id in service.engines().over(&running.results()).await? {
            tracing::warn!(result_id, "a call is ended whose result another engine took for lost");
            running.hangup(result_id, EndReason::Fault);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_signs_of_life_fit_into_a_lease() {
        assert_eq!(interval(Duration::from_secs(120)), MOST_BETWEEN);
        assert_eq!(interval(Duration::from_secs(4)), Duration::from_secs(1));
    }
}
