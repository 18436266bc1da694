//! Commands of a job to the lifecycle of its result. Each changes the result in one transaction; a command to a result
//! that has moved elsewhere changes nothing and returns false.

use ringer_base::error::{Error, Result};
use ringer_model::error_code::ErrorCode;
use ringer_model::result::ResultDoc;
use ringer_model::status::ResultStatus;
use ringer_model::time::Timestamp;

use super::Conversations;
use super::obstacle::Obstacle;
use super::outcome::CallOutcome;

impl Conversations {
    /// Moves a result from DISPATCHED or READY to RUNNING: its conversation began at `at_ms`, in milliseconds since
    /// 1970.
    pub async fn connect(&self, organization: &str, result_id: i64, from: ResultStatus, at_ms: i64) -> Result<bool> {
        let patch = move |doc: &mut ResultDoc| doc.body.start_time = Some(Timestamp(at_ms));
        self.move_on(organization, result_id, from, ResultStatus::Running, patch).await
    }

    /// Ends a result that cannot have a conversation.
    pub async fn refuse(
        &self,
        organization: &str,
        result_id: i64,
        from: ResultStatus,
        obstacle: Obstacle,
    ) -> Result<bool> {
        let to = obstacle.code.status(false);
        let patch = move |doc: &mut ResultDoc| doc.body.fail(obstacle.code, obstacle.message);
        self.move_on(organization, result_id, from, to, patch).await
    }

    /// Stores the outcome of a conversation that is over, and returns the status that follows on its end. `None`: the
    /// status stays, since the result had moved elsewhere before.
    pub async fn finish(
        &self,
        organization: &str,
        result_id: i64,
        outcome: CallOutcome,
    ) -> Result<Option<ResultStatus>> {
        let from = self.status_of(organization, result_id).await?;
        let to = outcome.status_after(from);
        let patch = move |doc: &mut ResultDoc| outcome.fill_in(doc, result_id);
        match to {
            Some(to) => self.move_on(organization, result_id, from, to, patch).await.map(drop)?,
            None => self.amend(organization, result_id, patch).await.map(drop)?,
        }
        Ok(to)
    }

    /// Ends a result after a fault of the engine, whatever its state is. False: its conversation was over.
    pub async fn abort(&self, organization: &str, result_id: i64, message: &'static str) -> Result<bool> {
        self.abort_with(organization, result_id, ErrorCode::InternalError, message).await
    }

    /// Ends a result by a fault of the engine that has a code of its own. False: its conversation was over.
    pub(crate) async fn abort_with(
        &self,
        organization: &str,
        result_id: i64,
        code: ErrorCode,
        message: &'static str,
    ) -> Result<bool> {
        let from = self.status_of(organization, result_id).await?;
        if from.is_terminal() || matches!(from, ResultStatus::ConversationEnded | ResultStatus::Evaluating) {
            return Ok(false);
        }
        let now = Timestamp(self.clock.now_ms());
        let patch = move |doc: &mut ResultDoc| {
            doc.body.fail(code.clone(), message);
            doc.body.end_time = Some(now);
        };
        self.move_on(organization, result_id, from, ResultStatus::SystemError, patch).await?;
        Ok(true)
    }

    /// Moves a result from CONVERSATION_ENDED to EVALUATING.
    ///
    /// # Errors
    /// A conflict if it is in another state.
    pub async fn begin_evaluation(&self, organization: &str, result_id: i64) -> Result<()> {
        let (from, to) = (ResultStatus::ConversationEnded, ResultStatus::Evaluating);
        self.advance(organization, result_id, from, to, |_| {}).await.map(drop)
    }

    /// Notes that the Digital Human has written its last words: the agent's messages are not read any more.
    pub async fn close_inbox(&self, organization: &str, result_id: i64) -> Result<()> {
        self.amend(organization, result_id, |doc| doc.inbox.closed = true).await.map(drop)
    }

    /// Returns the status of a result.
    pub async fn status_of(&self, organization: &str, result_id: i64) -> Result<ResultStatus> {
        let mut db = self.store.org(organization).read().await?;
        Ok(db.get::<ResultDoc>(result_id).await?.doc.body.status)
    }

    pub(crate) async fn move_on(
        &self,
        organization: &str,
        result_id: i64,
        from: ResultStatus,
        to: ResultStatus,
        patch: impl FnOnce(&mut ResultDoc) + Send,
    ) -> Result<bool> {
        match self.advance(organization, result_id, from, to, patch).await {
            Ok(_) => Ok(true),
            Err(Error::Conflict(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
