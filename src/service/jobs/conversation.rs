//! Jobs of conversations, called or written: taken up after another engine, and closed or given back.

use ringer_base::error::Result;
use ringer_store::queue::{CallJob, Claimed, Lane, TextJob};

use super::lease::{finish_job, log_failure};
use crate::Service;

/// Next state of a conversation's job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// The job is done.
    Done,
    /// The engine stops before the conversation has begun: it waits for the next start.
    Waiting,
    /// The job needs a place of its run.
    Enters(Lane),
    /// The conversation is to be held in writing.
    Written,
    /// The conversation is to be spoken.
    Spoken,
    /// The job was given back with the state of the conversation.
    Rests,
}

/// Ends the conversation of a job that was claimed before, by an engine that is gone.
pub(super) async fn left_behind(service: &Service, claimed: &Claimed, job: &CallJob) -> Result<()> {
    match claimed.attempts {
        1 => Ok(()),
        _ => {
            service.conversations().end_abandoned(&job.organization, job.result_id).await?;
            service.placements().close_left_room(&job.organization, job.result_id).await
        }
    }
}

/// Closes a conversation's job, or gives it back.
pub(super) async fn left_off(service: &Service, claimed: &Claimed, left: Result<Left>) {
    let queue = service.queue();
    let given_back = match left {
        Ok(Left::Waiting) => queue.retry(claimed, service.clock().now_ms()).await.map(drop),
        Ok(Left::Enters(lane)) => queue.enter_lane(claimed, &lane).await,
        Ok(Left::Written) => queue.hand_over::<TextJob>(claimed).await,
        Ok(Left::Rests) => return,
        Ok(Left::Spoken) => queue.hand_over::<CallJob>(claimed).await,
        done => return finish_job(service, claimed, done.map(drop)).await,
    };
    log_failure("failed to requeue the job of a conversation", given_back);
}
