//! Jobs under a lease: they are claimed, kept while they are done, and closed or tried again.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use ringer_base::error::{Error, Result};
use ringer_store::queue::{CallLogJob, Claimed, EvaluateJob, Job};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tracing::Instrument;
use tracing::field::Empty;

use crate::{EVALUATION_MS, Service};

/// Length of a lease in milliseconds; it is renewed while the work goes on.
pub(super) const LEASE_MS: i64 = 120_000;
/// Interval at which a lease is renewed.
const RENEW_EVERY: Duration = Duration::from_secs(30);
/// Longest wait for a signal that does not come (a lease of another process that ends).
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Claims of one job after which it is given up.
pub(super) const MOST_ATTEMPTS: i64 = 5;

/// Waits for a job of a kind and claims it.
pub(super) async fn claim<J: Job>(service: &Service) -> (Claimed, J) {
    loop {
        let claimed = claim_of(service, &[J::NAME]).await;
        match claimed.job::<J>() {
            Ok(job) => return (claimed, job),
            Err(error) => {
                tracing::error!(job = claimed.id, %error, "unreadable job dropped");
                log_failure("failed to drop an unreadable job", service.queue().finish_job(&claimed).await);
            }
        }
    }
}

/// Waits for a job of some kinds and claims it.
pub(super) async fn claim_of(service: &Service, kinds: &[&str]) -> Claimed {
    let queue = service.queue();
    let mut changes = queue.watch();
    loop {
        changes.mark_unchanged();
        match queue.claim(kinds, LEASE_MS).await {
            Ok(Some(claimed)) => return claimed,
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "failed to claim jobs"),
        }
        let due = queue.next_due_ms(kinds).await.ok().flatten();
        let wait = due.map_or(LOOK_EVERY, |due| Duration::from_millis((due - service.clock().now_ms()).max(1) as u64));
        let _ = tokio::time::timeout(wait.min(LOOK_EVERY), changes.changed()).await;
    }
}

/// Returns the outcome of work; a panic becomes an error. Its message is dropped, since it may hold words of a
/// conversation.
pub(super) async fn catch_panic<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| Err(Error::internal("it panicked")))
}

/// Does work while its claim is renewed. What is logged meanwhile names the job, and whatever it records as its result.
pub(super) async fn run_with_lease<T>(
    service: &Service,
    claimed: &Claimed,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let mut renew = pace_every(RENEW_EVERY);
    renew.tick().await;
    let span = tracing::info_span!("job", id = claimed.id, kind = claimed.kind, result_id = Empty);
    let mut work = pin!(catch_panic(work).instrument(span));
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = renew.tick() => log_failure("failed to renew the lease of a job", service.queue().extend(claimed, LEASE_MS).await),
        }
    }
}

/// Tries a job that could not be done again a little later, a few times.
pub(super) async fn finish_job(service: &Service, claimed: &Claimed, done: Result<()>) {
    let queue = service.queue();
    let Err(error) = done else { return log_failure("failed to close a job", queue.finish_job(claimed).await) };
    tracing::error!(job = claimed.id, kind = claimed.kind, attempts = claimed.attempts, %error, "job failed");
    let again = service.clock().now_ms() + 1000 * claimed.attempts;
    match claimed.attempts < MOST_ATTEMPTS {
        true => log_failure("failed to requeue a job", queue.retry(claimed, again).await),
        false => {
            log_failure("failed to continue what waits for a failed job", catch_panic(give_up(service, claimed)).await);
            log_failure("failed to close a job", queue.finish_job(claimed).await);
        }
    }
}

/// Lets what waits for a job go on without it.
async fn give_up(service: &Service, claimed: &Claimed) -> Result<()> {
    match claimed.kind.as_str() {
        EvaluateJob::NAME => service.evaluations().give_up_evaluation(&claimed.job()?).await,
        CallLogJob::NAME => service.evaluations().give_up_log(&claimed.job()?).await,
        _ => Ok(()),
    }
}

/// Returns the outcome of an evaluation; `None`: it took longer than [`EVALUATION_MS`], and is dropped.
pub(super) async fn in_time<T>(service: &Service, evaluation: impl Future<Output = T>) -> Option<T> {
    let clock = service.clock();
    tokio::select! {
        biased;
        done = evaluation => Some(done),
        () = clock.until(clock.now_ms() + EVALUATION_MS) => None,
    }
}

pub(super) fn pace_every(every: Duration) -> Interval {
    let mut pace = interval(every);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pace
}

pub(super) fn log_failure<T>(what: &str, done: Result<T>) {
    if let Err(error) = done {
        tracing::error!(%error, "{what}");
    }
}
