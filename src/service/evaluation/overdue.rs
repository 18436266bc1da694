//! Evaluations that come to no end: after a while, or after their last failed attempt, what waits for them goes on
//! without them.

use ringer_base::error::Result;
use ringer_model::call_log::{CallLogDoc, CallLogStatus};
use ringer_model::error_code::ErrorCode;
use ringer_model::result::ResultDoc;
use ringer_model::status::ResultStatus;
use ringer_model::transcript::TranscriptEntry;
use ringer_store::queue::{CallLogJob, EvaluateJob};
use uuid::Uuid;

use super::Evaluations;
use super::call_logs::{redact_call, redactor_of};
use super::records::Judged;

/// Longest time of an evaluation, in milliseconds.
pub const EVALUATION_MS: i64 = 600_000;

/// Error code of a result whose evaluation took too long.
const CODE: ErrorCode = ErrorCode::EvaluationTimeout;
const TOO_LONG: &str = "The evaluation was not done within 600 s";
const GIVEN_UP: &str = "The evaluation failed, and was given up after several attempts";

impl Evaluations {
    /// Ends the evaluations that are under way for too long, and that no engine works at: one that does gives up by
    /// itself. An engine that was not there could not evaluate: time before `since_ms`, when this one began, does not
    /// count.
    pub async fn end_late_evaluations(&self, since_ms: i64) -> Result<()> {
        let now_ms = self.clock.now_ms();
        let begun_ms = now_ms - EVALUATION_MS;
        if since_ms > begun_ms {
            return Ok(());
        }
        let results = self.store.org("").read().await?.evaluating_results(now_ms).await?;
        for (organization, id) in results {
            self.end_evaluation(&organization, id, TOO_LONG, |doc| {
                let entered = doc.body.status_history.last().map_or(0, |change| change.at.0);
                doc.body.status == ResultStatus::Evaluating && entered <= begun_ms
            })
            .await?;
        }
        let logs = self.store.org("").read().await?.evaluating_logs(begun_ms, now_ms).await?;
        for (organization, id) in logs {
            self.end_log(&organization, id, TOO_LONG, |status| status == CallLogStatus::Evaluating).await?;
        }
        Ok(())
    }

    /// Gives up the evaluation of a result that has failed for the last time.
    pub async fn give_up_evaluation(&self, job: &EvaluateJob) -> Result<()> {
        let is_open = |status| matches!(status, ResultStatus::ConversationEnded | ResultStatus::Evaluating);
        self.end_evaluation(&job.organization, job.result_id, GIVEN_UP, |doc| is_open(doc.body.status)).await
    }

    /// Breaks off the evaluation of a result that is not done after [`EVALUATION_MS`].
    pub async fn break_off_evaluation(&self, job: &EvaluateJob) -> Result<()> {
        let is_open = |doc: &ResultDoc| doc.body.status == ResultStatus::Evaluating;
        self.end_evaluation(&job.organization, job.result_id, TOO_LONG, is_open).await
    }

    /// Gives up the evaluation of a call that has failed for the last time.
    pub async fn give_up_log(&self, job: &CallLogJob) -> Result<()> {
        let is_open = |status| matches!(status, CallLogStatus::Queued | CallLogStatus::Evaluating);
        self.end_log(&job.organization, job.call_id, GIVEN_UP, is_open).await
    }

    /// Breaks off the evaluation of a call that is not done after [`EVALUATION_MS`].
    pub async fn break_off_log(&self, job: &CallLogJob) -> Result<()> {
        let is_open = |status| status == CallLogStatus::Evaluating;
        self.end_log(&job.organization, job.call_id, TOO_LONG, is_open).await
    }

    async fn end_evaluation(
        &self,
        organization: &str,
        result_id: i64,
        why: &str,
        is_meant: impl Fn(&ResultDoc) -> bool + Send,
    ) -> Result<()> {
        let found = self.store.org(organization).read().await?.find::<ResultDoc>(result_id).await?;
        if !found.is_some_and(|row| is_meant(&row.doc)) {
            return Ok(());
        }
        let mut db = self.store.org(organization).write().await?;
        // It may have come to its end meanwhile.
        let Some(mut row) = db.find::<ResultDoc>(result_id).await?.filter(|row| is_meant(&row.doc)) else {
            return Ok(());
        };
        row.doc.body.fail(CODE, why);
        let is_private = row.doc.private;
        self.conversations.step(&mut db, &mut row, ResultStatus::SystemError).await?;
        db.commit().await?;
        self.live.note_change(result_id);
        tracing::warn!(result_id, why, "evaluation abandoned");
        match self.conversations.redactor(organization, result_id).await? {
            Some(redactor) if is_private => {
                self.redact(organization, result_id, &redactor, &mut Judged::default()).await
            }
            _ => Ok(()),
        }
    }

    async fn end_log(
        &self,
        organization: &str,
        call_id: Uuid,
        why: &str,
        is_meant: impl Fn(CallLogStatus) -> bool + Send,
    ) -> Result<()> {
        let mut db = self.store.org(organization).read().await?;
        let Some(row) = db.find::<CallLogDoc>(call_id).await?.filter(|row| is_meant(row.doc.status)) else {
            return Ok(());
        };
        let redactor = redactor_of(&mut db, row.doc.agent_id).await?;
        drop(db);
        // The sound first: once the call says that nothing in it is private, everybody may hear it.
        let call = &row.doc.call;
        let said: Vec<TranscriptEntry> = call.transcript.iter().flatten().map(TranscriptEntry::from).collect();
        let lost = match &redactor {
            Some(redactor) => self.redact_recording(call_id, call.multichannel, said, redactor).await?,
            None => None,
        };
        let mut db = self.store.org(organization).write().await?;
        // It may have come to its end meanwhile.
        let Some(mut row) = db.find::<CallLogDoc>(call_id).await?.filter(|row| is_meant(row.doc.status)) else {
            return Ok(());
        };
        row.doc.status = CallLogStatus::Incompleted;
        row.doc.error_message = Some(match lost {
            Some(lost) => format!("{CODE}: {why}; {lost}"),
            None => format!("{CODE}: {why}"),
        });
        if let Some(redactor) = &redactor {
            redact_call(&mut row.doc, redactor)?;
        }
        row.doc.private = false;
        self.close_log(db, row).await?;
        tracing::warn!(%call_id, why, "evaluation of a production call abandoned");
        Ok(())
    }
}
