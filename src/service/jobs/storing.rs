//! The jobs of an object store: files go to it, files leave it. Beside them, what is looked after: data folders of
//! other engines, local copies, files of nobody.

use std::sync::Arc;
use std::time::Duration;

use ringer_base::error::Result;
use ringer_base::tasks::Tasks;
use ringer_store::artifacts::{Artifacts, Swept};
use ringer_store::queue::{Claimed, EraseJob, Job, StoreJob, Turns};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::lease::{catch_panic, claim_in_turn, log_failure, pace_every, run_with_lease};
use crate::{Service, Stored};

/// Jobs that are done at once: uploads share the network with calls.
const AT_ONCE: usize = 2;
/// Longest wait before a job that failed is tried again, in milliseconds.
const MOST_WAIT_MS: i64 = 600_000;
/// Interval at which other engines are told that this one works.
const STAY_EVERY: Duration = Duration::from_secs(30);
/// Number of such intervals between two looks for what is left, and for copies to remove.
const LOOK_EVERY: u64 = 20;
/// Number of such intervals between two looks for files of nobody.
const SWEEP_EVERY: u64 = 2880;

/// Does the jobs as they become due. One that fails is tried until it is done: its files stay here meanwhile.
pub(super) async fn work(service: Service, tasks: Tasks, stopping: CancellationToken) {
    if service.settings().storage.is_none() {
        return;
    }
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let mut turns = Turns::default();
    loop {
        let next = async {
            let permit = permits.clone().acquire_owned().await.expect("the semaphore is never closed");
            (permit, claim_in_turn(&service, &[StoreJob::NAME, EraseJob::NAME], &mut turns).await)
        };
        let (permit, claimed) = tokio::select! {
            biased;
            () = stopping.cancelled() => return,
            next = next => next,
        };
        let (service, stopping) = (service.clone(), stopping.clone());
        tasks.spawn("store job", async move {
            let work = run_with_lease(&service, &claimed, Box::pin(perform(&service, &claimed)));
            // An upload that is broken off begins anew at the next start.
            let done = tokio::select! {
                biased;
                done = work => done,
                () = stopping.cancelled() => Ok(Stored::Later(0)),
            };
            close(&service, &claimed, done).await;
            drop(permit);
        });
    }
}

/// Does every job that is due now, one after the other, and returns how many that were.
///
/// # Errors
/// The first job's that cannot be done; it is left for later.
#[cfg(any(test, feature = "testing"))]
pub async fn store_due(service: &Service) -> Result<usize> {
    let (queue, mut count) = (service.queue(), 0);
    while let Some(claimed) = queue.claim(&[StoreJob::NAME, EraseJob::NAME], crate::LEASE_MS).await? {
        count += 1;
        match perform(service, &claimed).await? {
            Stored::Done => queue.finish_job(&claimed).await?,
            Stored::Later(wait_ms) => queue.retry(&claimed, service.clock().now_ms() + wait_ms).await?,
        };
    }
    Ok(count)
}

async fn perform(service: &Service, claimed: &Claimed) -> Result<Stored> {
    match claimed.kind.as_str() {
        StoreJob::NAME => service.conversations().store_files(&claimed.job()?).await,
        _ => {
            let job: EraseJob = claimed.job()?;
            match &service.settings().storage {
                Some(storage) => storage.erase(&job.owner, &job.paths, job.asked_ms).await.map(|()| Stored::Done),
                None => Ok(Stored::Done),
            }
        }
    }
}

async fn close(service: &Service, claimed: &Claimed, done: Result<Stored>) {
    let (queue, now) = (service.queue(), service.clock().now_ms());
    match done {
        Ok(Stored::Done) => log_failure("failed to close a job", queue.finish_job(claimed).await),
        Ok(Stored::Later(wait_ms)) => {
            log_failure("failed to put a job off", queue.retry(claimed, now + wait_ms).await);
        }
        Err(error) => {
            let wait_ms = wait_after(claimed.attempts);
            tracing::warn!(job = claimed.id, kind = claimed.kind, attempts = claimed.attempts, again_in_ms = wait_ms, %error, "files wait for the object store");
            log_failure("failed to put a job off", queue.retry(claimed, now + wait_ms).await);
        }
    }
}

/// Returns the milliseconds before the next attempt: a second, then twice as long each time.
fn wait_after(attempts: i64) -> i64 {
    let times = 2_i64.saturating_pow(u32::try_from(attempts - 1).unwrap_or(0));
    1000_i64.saturating_mul(times).min(MOST_WAIT_MS)
}

/// Keeps the store in order while the engine runs.
pub(super) async fn watch(service: Service) {
    let Some(storage) = service.settings().storage.clone() else { return };
    let mut pace = pace_every(STAY_EVERY);
    for round in 0_u64.. {
        pace.tick().await;
        log_failure("failed to tell other engines of this one's data folder", catch_panic(storage.stay()).await);
        if round == 0 {
            log_failure(
                "the object store cannot be used; files stay here until it can",
                storage.check_database().await,
            );
        }
        if round % LOOK_EVERY == 0 {
            look(&service, &storage).await;
        }
        if round % SWEEP_EVERY == SWEEP_EVERY - 1 {
            match catch_panic(storage.sweep()).await {
                Ok(Swept { orphans: 0, owners: 0 }) => {}
                Ok(Swept { orphans, owners }) => tracing::info!(orphans, owners, "removed from the object store"),
                failed => log_failure("failed to look for files of nobody in the object store", failed),
            }
        }
    }
}

async fn look(service: &Service, storage: &Artifacts) {
    let conversations = service.conversations();
    match catch_panic(conversations.store_what_is_left()).await {
        Ok(0) => {}
        Ok(owners) => tracing::info!(owners, "files of before go to the object store"),
        failed => log_failure("failed to look for files that are not stored", failed),
    }
    log_failure("failed to look for lost recordings", catch_panic(conversations.tell_lost_recordings()).await);
    log_failure("failed to remove local copies", catch_panic(storage.evict()).await);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_store_is_asked_less_and_less_often() {
        let waits: Vec<i64> = [1, 2, 3, 10, 11, 64, 65, 1000].map(wait_after).to_vec();
        assert_eq!(waits, [1000, 2000, 4000, 512_000, 600_000, 600_000, 600_000, 600_000]);
    }
}
