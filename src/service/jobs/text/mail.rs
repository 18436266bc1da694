//! A conversation by mail, a step at a time. It lasts days, so that no task waits for it: its job rests in the table
//! until something is due or a mail comes. A step reads what has come, lets the dialogue go on, sends, and stores all
//! of it; a step that breaks off is done again from what was stored last.

mod log;
mod sending;
mod step;

use ringer_base::error::{Error, Result};
use ringer_engine::dialogue::First;
use ringer_model::error_code::ErrorCode;
use ringer_model::mail::MailKind;
use ringer_model::status::ResultStatus;
use ringer_provider::messages::MailRoute;

use self::step::Step;
use super::work::TextWork;
use crate::jobs::conversation::Left;
use crate::jobs::lease::{catch_panic, log_failure};
use crate::{BeginText, MailThread, Obstacle, PreparedText};

/// Faults of the engine in a row after which a conversation is given up.
const MOST_FAULTS: u32 = 5;
/// Time between a fault of the engine and the next try, in milliseconds.
const FAULT_PAUSE_MS: i64 = 10_000;

impl TextWork<'_> {
    /// Continues a conversation by mail. A fault of this engine does not end it at once.
    pub(super) async fn hold_mail(&self, from: ResultStatus, prepared: PreparedText, route: MailRoute) -> Result<Left> {
        match catch_panic(Box::pin(self.go_on_by_mail(from, prepared, route))).await {
            Err(error @ Error::NotFound(_)) => Err(error),
            // Another engine has the job by now, and goes on.
            Err(Error::Conflict(_)) => Ok(Left::Rests),
            Err(error) => self.put_off(error).await,
            done => done,
        }
    }

    /// Ends a conversation under way that cannot go on: a setting is missing by now.
    pub(super) async fn fail_by_mail(&self, why: Obstacle) -> Result<Left> {
        let service = &self.workshop.service;
        let status = self.news(0, 0).await?.status;
        if status == ResultStatus::Dispatched {
            self.refuse(status, why).await?;
            return Ok(Left::Done);
        }
        let thread = service.conversations().mail_thread(self.job).await?;
        Step::end_without_dialogue(self, thread, why).await.map(|()| Left::Done)
    }

    async fn put_off(&self, error: Error) -> Result<Left> {
        let service = &self.workshop.service;
        let mut thread = service.conversations().mail_thread(self.job).await?;
        thread.faults += 1;
        tracing::error!(%error, faults = thread.faults, "step of a conversation by mail failed");
        if thread.faults >= MOST_FAULTS {
            return Err(error);
        }
        service.conversations().save_mail_thread(self.job, self.claimed, &thread, None).await?;
        let due_ms = service.clock().now_ms() + FAULT_PAUSE_MS;
        log_failure("failed to put a step off", service.queue().retry(self.claimed, due_ms).await);
        Ok(Left::Rests)
    }

    async fn go_on_by_mail(&self, from: ResultStatus, prepared: PreparedText, mut route: MailRoute) -> Result<Left> {
        let (service, id) = (&self.workshop.service, self.job.result_id);
        let conversations = service.conversations();
        let home = service.settings().mail_home().ok_or_else(|| Error::internal("there are no mail addresses"))?;
        let thread = conversations.mail_thread(self.job).await?;
        route.from.address = home.address(id, &thread.token);
        let redactor = conversations.redactor(&self.job.organization, id).await?;
        if from == ResultStatus::Queued {
            if self.stopping.is_cancelled() {
                return Ok(Left::Waiting);
            }
            let terms = prepared.terms().listening_at(&route.from.address);
            let BeginText::Entered(_) = service.placements().begin_text(self.job, from, terms).await? else {
                return Ok(Left::Done);
            };
        }
        if prepared.spec.first == First::Agent
            && let Some(left) = self.await_first_mail(&thread, prepared.ringing_ms).await?
        {
            return Ok(left);
        }
        Step::new(self, thread, prepared, route, redactor).run().await
    }

    /// Waits for the agent's first mail, where the result still does. `None`: the conversation has begun.
    async fn await_first_mail(&self, thread: &MailThread, ringing_ms: i64) -> Result<Option<Left>> {
        let service = &self.workshop.service;
        let news = service.conversations().mail_news(self.job, thread.read).await?;
        if news.status != ResultStatus::Ready {
            return Ok(None);
        }
        let first = news.mails.iter().find(|mail| mail.doc.kind == MailKind::Turn);
        let Some(first) = first else {
            let deadline = news.since_ms + ringing_ms;
            if service.clock().now_ms() >= deadline {
                let message = format!("The agent did not write within {} s", ringing_ms / 1000);
                let obstacle = Obstacle { code: ErrorCode::InboundNoIncomingCall, message };
                self.refuse(ResultStatus::Ready, obstacle).await?;
                return Ok(Some(Left::Done));
            }
            if self.claimed.in_lane {
                // A READY result holds no place.
                service.queue().leave_lane(self.claimed).await?;
            }
            // Mails that are no turn are told once the conversation has begun.
            let seen = news.mails.last().map_or(thread.read, |mail| mail.id);
            let (conversations, claimed) = (service.conversations(), self.claimed);
            let rests = conversations.rest_mail_thread(self.job, claimed, thread, seen, deadline).await?;
            if !rests {
                return Box::pin(self.await_first_mail(thread, ringing_ms)).await;
            }
            return Ok(Some(Left::Rests));
        };
        if let Some(lane) = self.lane_to_enter(self.claimed.in_lane).await? {
            return Ok(Some(Left::Enters(lane)));
        }
        let (organization, id) = (&self.job.organization, self.job.result_id);
        let begun = service.conversations().connect(organization, id, ResultStatus::Ready, first.at_ms).await?;
        Ok((!begun).then_some(Left::Done))
    }
}
