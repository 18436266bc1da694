//! Jobs under a lease: they are claimed, kept while they are done, and closed or tried again.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use ringer_base::error::{Error, Result};
use ringer_provider::Account;
use ringer_store::queue::{CallLogJob, Claimed, EvaluateJob, Job, JudgeCardJob, Queue, Turns};
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval, sleep};
use tracing::Instrument;
use tracing::field::Empty;

use crate::{EVALUATION_MS, Service};

/// Parts of a lease after each of which it is renewed while the work goes on.
const PARTS: u64 = 4;
/// Longest wait before a renewal that failed is tried again.
const RENEW_AGAIN: Duration = Duration::from_secs(5);
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
async fn claim_of(service: &Service, kinds: &[&str]) -> Claimed {
    let mut wait = ClaimWait::new(service, kinds);
    loop {
        let claimed = wait.queue.claim(kinds, service.settings().lease_ms).await;
        if let Some(claimed) = wait.unless_claimed(claimed).await {
            return claimed;
        }
    }
}

/// Waits for a job of some kinds and claims that of the organization whose turn it is.
pub(super) async fn claim_in_turn(service: &Service, kinds: &[&str], turns: &mut Turns) -> Claimed {
    let mut wait = ClaimWait::new(service, kinds);
    loop {
        let claimed = wait.queue.claim_in_turn(kinds, service.settings().lease_ms, turns).await;
        if let Some(claimed) = wait.unless_claimed(claimed).await {
            return claimed;
        }
    }
}

/// A wait for jobs of some kinds.
struct ClaimWait<'a> {
    service: &'a Service,
    kinds: &'a [&'a str],
    queue: Queue,
    changes: watch::Receiver<u64>,
}

impl ClaimWait<'_> {
    fn new<'a>(service: &'a Service, kinds: &'a [&'a str]) -> ClaimWait<'a> {
        let queue = service.queue();
        let mut changes = queue.watch();
        changes.mark_unchanged();
        ClaimWait { service, kinds, queue, changes }
    }

    /// Returns the job that was claimed; where there was none, waits until there may be one.
    async fn unless_claimed(&mut self, claimed: Result<Option<Claimed>>) -> Option<Claimed> {
        match claimed {
            Ok(Some(claimed)) => return Some(claimed),
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "failed to claim jobs"),
        }
        let due = self.queue.next_due_ms(self.kinds).await.ok().flatten();
        let now_ms = self.service.clock().now_ms();
        let wait = due.map_or(LOOK_EVERY, |due| Duration::from_millis((due - now_ms).max(1) as u64));
        let _ = tokio::time::timeout(wait.min(LOOK_EVERY), self.changes.changed()).await;
        self.changes.mark_unchanged();
        None
    }
}

/// Returns the outcome of work; a panic becomes an error. Its message is dropped, since it may hold words of a
/// conversation.
pub(super) async fn catch_panic<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| Err(Error::internal("it panicked")))
}

/// Does work while its claim is renewed. What is logged meanwhile names the job, and whatever it records as its result.
/// The work comes in a box: a future of a conversation takes 100 KiB, and each that holds it would have a copy on its
/// stack.
pub(super) async fn run_with_lease<T>(
    service: &Service,
    claimed: &Claimed,
    work: impl Future<Output = Result<T>> + Unpin,
) -> Result<T> {
    let span = tracing::info_span!("job", id = claimed.id, kind = claimed.kind, result_id = Empty);
    // Beside the work and not between its steps: it may hold the turn to write that a renewal waits for.
    tokio::select! {
        done = catch_panic(work).instrument(span) => done,
        never = keep_renewed(service, claimed) => match never {},
    }
}

/// Renews the lease of a job until it is dropped.
async fn keep_renewed(service: &Service, claimed: &Claimed) -> Infallible {
    let lease_ms = service.settings().lease_ms;
    let every = Duration::from_millis(lease_ms.unsigned_abs() / PARTS);
    let mut wait = every;
    loop {
        sleep(wait).await;
        let renewed = service.queue().extend(claimed, lease_ms).await;
        wait = if renewed.is_ok() { every } else { every.min(RENEW_AGAIN) };
        log_failure("failed to renew the lease of a job", renewed);
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
            log_failure(
                "failed to continue what waits for a failed job",
                catch_panic(Box::pin(give_up(service, claimed))).await,
            );
            log_failure("failed to close a job", queue.finish_job(claimed).await);
        }
    }
}

/// Lets what waits for a job go on without it.
async fn give_up(service: &Service, claimed: &Claimed) -> Result<()> {
    match claimed.kind.as_str() {
        EvaluateJob::NAME => service.evaluations().give_up_evaluation(&claimed.job()?).await,
        CallLogJob::NAME => service.evaluations().give_up_log(&claimed.job()?).await,
        JudgeCardJob::NAME => service.evaluations().give_up_card(&claimed.job()?).await,
        _ => Ok(()),
    }
}

/// Returns the outcome of an evaluation; `None`: it took longer than [`EVALUATION_MS`], and is dropped. The time in
/// which its requests waited for a place at a model does not count.
pub(super) async fn in_time<T>(service: &Service, account: &Account, evaluation: impl Future<Output = T>) -> Option<T> {
    let clock = service.clock();
    let begun_ms = clock.now_ms();
    let late = async {
        loop {
            let now_ms = clock.now_ms();
            let until_ms = begun_ms + EVALUATION_MS + account.waited_ms(now_ms);
            if now_ms >= until_ms {
                return;
            }
            clock.until(until_ms).await;
        }
    };
    tokio::select! {
        biased;
        done = evaluation => Some(done),
        () = late => None,
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
