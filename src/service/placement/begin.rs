//! Beginning of a call: admission, what it is made of, its turn among others, and its number.

use ringer_base::error::Result;
use ringer_judge::Redactor;
use ringer_model::status::ResultStatus;
use ringer_store::queue::CallJob;

use super::{Placed, Placements, Placer};
use crate::conversation::inbound_address::Turn;

/// Next step of a call job.
pub enum Begin {
    /// The result is DISPATCHED: the call is placed now.
    Placed(Box<Placed>, Option<Redactor>),
    /// The agent is awaited, another result comes first, or the result is no longer queued.
    Waits,
    /// There can be no call: the result has ended with the reason.
    Refused,
}

impl Placements {
    /// Takes a queued result to the point where its call is placed: admits it, takes its turn, admits its number, and
    /// moves it to DISPATCHED.
    pub async fn begin(&self, job: &CallJob, placer: &Placer) -> Result<Begin> {
        let (organization, id) = (&job.organization, job.result_id);
        if self.conversations.status_of(organization, id).await? == ResultStatus::Initializing {
            // Whoever is first: this or the look for new results.
            self.conversations.admit_one(organization, id).await?;
        }
        if self.conversations.status_of(organization, id).await? != ResultStatus::Queued {
            return Ok(Begin::Waits);
        }
        // Also of what the agent calls: it is better known now than when it does.
        let mut placed = match self.placement(organization, id, placer).await? {
            Ok(placed) => placed,
            Err(obstacle) => {
                self.conversations.refuse(organization, id, ResultStatus::Queued, obstacle).await?;
                return Ok(Begin::Refused);
            }
        };
        if self.conversations.take_turn(organization, id).await? != Turn::Dials {
            return Ok(Begin::Waits);
        }
        if let Err(obstacle) = self.admit_dial(organization, id, &mut placed).await? {
            self.conversations.refuse(organization, id, ResultStatus::Queued, obstacle).await?;
            return Ok(Begin::Refused);
        }
        let redactor = self.conversations.redactor(organization, id).await?;
        // Before the room is there, so that it is known whatever happens to this engine.
        let room = placed.room.as_ref().and_then(|room| room.own_name()).map(str::to_owned);
        match self.conversations.dispatch(organization, id, ResultStatus::Queued, redactor.is_some(), room).await? {
            true => Ok(Begin::Placed(Box::new(placed), redactor)),
            false => Ok(Begin::Waits),
        }
    }
}
