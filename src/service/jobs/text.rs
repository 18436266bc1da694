//! The job `text`: one written conversation from QUEUED to CONVERSATION_ENDED, or to where it fails. What happens in it
//! is decided by a [`Dialogue`](ringer_engine::dialogue::Dialogue); here it is told the time and what the agent sends,
//! and its messages are delivered.

mod drive;
mod ending;
mod log;
mod mail;
mod work;

use std::sync::Arc;
use std::time::Duration;

use ringer_base::error::{Error, Result};
use ringer_base::tasks::Tasks;
use ringer_engine::CallControl;
use ringer_engine::dialogue::First;
use ringer_media::call::EndReason;
use ringer_model::error_code::ErrorCode;
use ringer_model::status::ResultStatus;
use ringer_provider::messages::Contact;
use ringer_store::queue::{Lane, TextJob};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use self::work::{TextWork, wait_for_change};
use super::conversation::{Left, left_behind, left_off};
use super::lease::{catch_panic, claim, pace_every, run_with_lease};
use super::workshop::Workshop;
use super::{until_draining, until_open};
use crate::{BeginText, Obstacle, PreparedText};

/// Largest number of conversations at the same time.
const AT_ONCE: usize = 2000;

/// Holds conversations as their jobs become due.
pub(super) async fn work(workshop: Workshop, tasks: Tasks, claiming: CancellationToken) {
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let mut pace = pace_every(Duration::from_secs_f64(1.0 / workshop.start_rate_per_s));
    let mut draining = workshop.service.engines().watch_draining();
    loop {
        let next = async {
            until_open(&mut draining).await;
            let permit = permits.clone().acquire_owned().await.expect("the semaphore is never closed");
            pace.tick().await;
            (permit, claim::<TextJob>(&workshop.service).await)
        };
        let (permit, (claimed, TextJob(job))) = tokio::select! {
            biased;
            () = claiming.cancelled() => return,
            next = next => next,
        };
        if *draining.borrow() {
            left_off(&workshop.service, &claimed, Ok(Left::Waiting)).await;
            continue;
        }
        let (workshop, claiming) = (workshop.clone(), claiming.clone());
        tasks.spawn("text job", async move {
            let service = &workshop.service;
            let work = TextWork { workshop: &workshop, claimed: &claimed, job: &job, stopping: &claiming };
            let run = Box::pin(async {
                if !service.conversations().is_mail_thread(&job).await? {
                    left_behind(service, &claimed, &job).await?;
                }
                work.run().await
            });
            let left = run_with_lease(service, &claimed, run).await;
            Box::pin(left_off(service, &claimed, left)).await;
            drop(permit);
        });
    }
}

impl TextWork<'_> {
    async fn run(&self) -> Result<Left> {
        tracing::Span::current().record("result_id", self.job.result_id);
        match catch_panic(self.hold()).await {
            Err(Error::NotFound(_)) => Ok(Left::Done),
            Err(error) => self.break_off(&error).await.map(|()| Left::Done),
            done => done,
        }
    }

    async fn hold(&self) -> Result<Left> {
        let (service, id) = (&self.workshop.service, self.job.result_id);
        if service.runs().is_held_otherwise(self.job, true).await? {
            return Ok(Left::Spoken);
        }
        if self.news(0, 0).await?.status == ResultStatus::Initializing {
            // Whoever is first: this or the look for new results.
            service.conversations().admit_one(&self.job.organization, id).await?;
        }
        let from = self.news(0, 0).await?.status;
        let is_under_way = matches!(from, ResultStatus::Dispatched | ResultStatus::Running)
            && service.conversations().is_mail_thread(self.job).await?;
        if !is_under_way && !matches!(from, ResultStatus::Queued | ResultStatus::Ready) {
            return Ok(Left::Done);
        }
        // It has waited outside: for another conversation, or for its time.
        if from == ResultStatus::Queued
            && let Some(lane) = self.lane_to_enter(self.claimed.in_lane).await?
        {
            return Ok(Left::Enters(lane));
        }
        let prepared =
            match service.placements().text_placement(&self.job.organization, id, &self.workshop.terms_of(id)).await {
                Ok(prepared) => prepared,
                Err(why) if is_under_way => return self.fail_by_mail(why.reason()?).await,
                Err(why) => return self.refuse(from, why.reason()?).await.map(|()| Left::Done),
            };
        if let Contact::Mail(route) = &prepared.contact {
            let route = route.as_ref().clone();
            return self.hold_mail(from, prepared, route).await;
        }
        let (hangup, hangups) = mpsc::channel(4);
        self.workshop.running.begin(id, CallControl::new(hangup));
        let left = catch_panic(Box::pin(self.hold_prepared(from, prepared, hangups))).await;
        self.workshop.running.end(id);
        left
    }

    async fn hold_prepared(
        &self,
        from: ResultStatus,
        prepared: PreparedText,
        hangups: mpsc::Receiver<EndReason>,
    ) -> Result<Left> {
        let (service, id) = (&self.workshop.service, self.job.result_id);
        if prepared.spec.first != First::Agent && self.is_ending() {
            return Ok(Left::Waiting);
        }
        let BeginText::Entered(redactor) = service.placements().begin_text(self.job, from, prepared.terms()).await?
        else {
            return Ok(Left::Done);
        };
        let feed = service.feed(id);
        let mut changes = feed.as_ref().map(|feed| feed.changes());
        if prepared.spec.first == First::Agent {
            let mut in_lane = self.claimed.in_lane;
            if in_lane && self.news(0, 0).await?.messages.is_empty() {
                // A READY result holds no place.
                service.queue().leave_lane(self.claimed).await?;
                in_lane = false;
            }
            if !self.is_written_to(prepared.ringing_ms, &mut changes).await? {
                return Ok(if self.is_ending() { Left::Waiting } else { Left::Done });
            }
            if let Some(lane) = self.lane_to_enter(in_lane).await? {
                return Ok(Left::Enters(lane));
            }
            let (organization, now_ms) = (&self.job.organization, service.clock().now_ms());
            if !service.conversations().connect(organization, id, ResultStatus::Ready, now_ms).await? {
                return Ok(Left::Done);
            }
        }
        let drive = drive::Drive::new(self, prepared, redactor, feed, changes, hangups);
        Box::pin(drive.run()).await.map(|()| Left::Done)
    }

    /// Returns the lane of the run, where there is one and the job is not in it.
    async fn lane_to_enter(&self, in_lane: bool) -> Result<Option<Lane>> {
        match in_lane {
            true => Ok(None),
            false => self.workshop.service.conversations().lane_of(&self.job.organization, self.job.result_id).await,
        }
    }

    /// True if no conversation is begun here any more.
    fn is_ending(&self) -> bool {
        self.stopping.is_cancelled() || self.workshop.service.engines().is_draining()
    }

    /// Waits for the agent's first message. False: nobody is waited for any more.
    async fn is_written_to(&self, ringing_ms: i64, changes: &mut Option<watch::Receiver<u64>>) -> Result<bool> {
        let clock = self.workshop.service.clock();
        let mut draining = self.workshop.service.engines().watch_draining();
        loop {
            let news = self.news(0, 0).await?;
            if news.status != ResultStatus::Ready || !news.messages.is_empty() {
                return Ok(news.status == ResultStatus::Ready);
            }
            let deadline = news.since_ms + ringing_ms;
            if clock.now_ms() >= deadline {
                let message = format!("The agent did not write within {} s", ringing_ms / 1000);
                let obstacle = Obstacle { code: ErrorCode::InboundNoIncomingCall, message };
                return self.refuse(ResultStatus::Ready, obstacle).await.map(|()| false);
            }
            tokio::select! {
                () = self.stopping.cancelled() => return Ok(false),
                () = until_draining(&mut draining) => return Ok(false),
                () = clock.until(deadline) => {}
                () = wait_for_change(changes) => {}
            }
        }
    }

    /// Ends a result that cannot have a conversation.
    async fn refuse(&self, from: ResultStatus, obstacle: Obstacle) -> Result<()> {
        self.workshop
            .service
            .conversations()
            .refuse(&self.job.organization, self.job.result_id, from, obstacle)
            .await
            .map(drop)
    }

    /// Ends the result after a fault of the engine, whatever its state is.
    async fn break_off(&self, error: &Error) -> Result<()> {
        tracing::error!(%error, "text conversation aborted");
        let message = "The engine could not go on with the conversation";
        self.workshop.service.conversations().abort(&self.job.organization, self.job.result_id, message).await.map(drop)
    }
}
