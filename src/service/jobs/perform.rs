//! The jobs that make no calls: what follows conversations, and what watches over agents.

use std::sync::Arc;

use ringer_base::error::{Error, Result};
use ringer_base::tasks::Tasks;
use ringer_store::queue::{
    AfterJob, AlertJob, AutosyncJob, CallLogJob, CheckJob, Claimed, FinishedJob, FollowUpJob, Job, JudgeCardJob,
    MonitorJob, NotifyJob, SummaryJob, TriggerJob, Turns, UnansweredJob,
};
use tokio::sync::Semaphore;

use super::lease::{claim_in_turn, finish_job, run_with_lease};
use super::upkeep::Upkeep;
use super::{alert, call_log, finished, follow_up, judge_card, monitor, notify, summary};

/// Kinds of jobs that are done here and take a moment.
const SHORT: [&str; 8] = [
    MonitorJob::NAME,
    CheckJob::NAME,
    AlertJob::NAME,
    NotifyJob::NAME,
    TriggerJob::NAME,
    AfterJob::NAME,
    UnansweredJob::NAME,
    AutosyncJob::NAME,
];
/// Kinds that may ask a language model and wait for it: nothing that takes a moment waits for them.
const ASKING: [&str; 3] = [FinishedJob::NAME, FollowUpJob::NAME, SummaryJob::NAME];
/// Kinds that may take hours: they have places of their own, so that nothing else waits for them.
const LONG: [&str; 1] = [CallLogJob::NAME];
/// Cards of judges, which ask a model hundreds of times: one at a time, apart from the calls.
const CARDS: [&str; 1] = [JudgeCardJob::NAME];
/// Jobs of each sort that are done at once.
const AT_ONCE: usize = 8;

impl Upkeep {
    /// Does jobs as they become due, several at once, until it is to stop.
    pub(super) async fn work(self, tasks: Tasks) {
        let judged = AT_ONCE.min(self.judged_at_once);
        tokio::join!(
            self.work_at(&SHORT, AT_ONCE, &tasks),
            self.work_at(&ASKING, AT_ONCE, &tasks),
            self.work_at(&LONG, judged, &tasks),
            self.work_at(&CARDS, 1, &tasks),
        );
    }

    async fn work_at(&self, kinds: &[&str], at_once: usize, tasks: &Tasks) {
        let permits = Arc::new(Semaphore::new(at_once));
        let mut turns = Turns::default();
        loop {
            let next = async {
                let permit = permits.clone().acquire_owned().await.expect("the semaphore is never closed");
                (permit, claim_in_turn(&self.service, kinds, &mut turns).await)
            };
            let (permit, claimed) = tokio::select! {
                biased;
                () = self.stopping.cancelled() => return,
                next = next => next,
            };
            let upkeep = self.clone();
            tasks.spawn("upkeep job", async move {
                let done = run_with_lease(&upkeep.service, &claimed, Box::pin(upkeep.perform(&claimed))).await;
                finish_job(&upkeep.service, &claimed, done).await;
                drop(permit);
            });
        }
    }

    /// Does every job that is due now, one after the other, and answers how many that were.
    ///
    /// # Errors
    /// The first job's that cannot be done; it is left for later.
    #[cfg(any(test, feature = "testing"))]
    pub async fn work_off(&self) -> Result<usize> {
        let queue = self.service.queue();
        let kinds = [&SHORT[..], &ASKING[..], &LONG[..], &CARDS[..]].concat();
        let mut count = 0;
        while let Some(claimed) = queue.claim(&kinds, crate::LEASE_MS).await? {
            self.perform(&claimed).await?;
            queue.finish_job(&claimed).await?;
            count += 1;
        }
        Ok(count)
    }

    async fn perform(&self, claimed: &Claimed) -> Result<()> {
        match claimed.kind.as_str() {
            FinishedJob::NAME => finished::run(self, &claimed.job()?).await,
            JudgeCardJob::NAME => judge_card::run(self, &claimed.job()?).await,
            CallLogJob::NAME => call_log::run(self, &claimed.job()?).await,
            FollowUpJob::NAME => follow_up::run(self, &claimed.job()?).await,
            MonitorJob::NAME => monitor::begin(self, &claimed.job()?).await,
            CheckJob::NAME => monitor::give_up(self, &claimed.job()?).await,
            AlertJob::NAME => alert::run(self, &claimed.job()?).await,
            NotifyJob::NAME => notify::run(self, &claimed.job()?).await,
            SummaryJob::NAME => summary::run(self, &claimed.job()?).await,
            TriggerJob::NAME => self.service.placements().ask_for_call(&claimed.job()?).await,
            AfterJob::NAME => self.service.placements().ask_after_call(&claimed.job()?).await,
            AutosyncJob::NAME => self.service.placements().sync_definition(&claimed.job()?).await.map(drop),
            UnansweredJob::NAME => self.service.conversations().give_up_waiting(&claimed.job()?).await,
            kind => Err(Error::internal(format!("{kind} is no job of the upkeep"))),
        }
    }
}
