//! Beginning of a call: admission, what it is made of, its turn among others, and its number.

use ringer_base::error::Result;
use ringer_judge::Redactor;
use ringer_model::result::ResultDoc;
use ringer_model::status::ResultStatus;
use ringer_store::queue::CallJob;

use super::{Cast, Obstacle, Placed, Placements, Placer, cast};
use crate::conversation::inbound_address::Turn;
use crate::conversation::privacy::redactor_of;

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
    ///
    /// There are two transactions, one before and one after everything that may take long.
    pub async fn begin(&self, job: &CallJob, placer: &Placer) -> Result<Begin> {
        let (organization, id) = (&job.organization, job.result_id);
        // Also of what the agent calls: it is better known now than when it does.
        let placed = match self.take_up(organization, id).await? {
            Some(Ok(cast)) => self.fill_in(organization, cast, placer).await?,
            Some(Err(obstacle)) => Err(obstacle),
            None => return Ok(Begin::Waits),
        };
        match placed {
            Ok(placed) => self.enter(organization, id, placed).await,
            Err(obstacle) => self.refuse(organization, id, obstacle).await,
        }
    }

    /// Admits a result that is new, and reads what its call is made of. `None`: it is not QUEUED.
    async fn take_up(&self, organization: &str, result_id: i64) -> Result<Option<Result<Cast, Obstacle>>> {
        let mut db = self.store.org(organization).write().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        // Whoever is first: this or the look for new results.
        let is_new = row.doc.body.status == ResultStatus::Initializing;
        if is_new {
            self.conversations.admit_new(&mut db, &mut row).await?;
        }
        let found = match row.doc.body.status {
            ResultStatus::Queued => Some(cast(&mut db, &row).await?),
            _ => None,
        };
        if is_new || matches!(found, Some(Ok(_))) {
            db.commit().await?;
        }
        if is_new {
            self.live.note_change(result_id);
        }
        Ok(found)
    }

    /// Takes the turn of a call, admits its number, and moves its result to DISPATCHED: all of it, or nothing.
    async fn enter(&self, organization: &str, result_id: i64, mut placed: Placed) -> Result<Begin> {
        let mut db = self.store.org(organization).write().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        let (turn, is_changed) = self.conversations.turn(&mut db, &mut row).await?;
        if turn != Turn::Dials {
            if is_changed {
                db.commit().await?;
                self.live.note_change(result_id);
            }
            return Ok(Begin::Waits);
        }
        if let Err(obstacle) = self.admit_dial(&mut db, &row, &mut placed).await? {
            drop(db);
            return self.refuse(organization, result_id, obstacle).await;
        }
        let redactor = redactor_of(&mut db, &row.doc).await?;
        row.doc.private = redactor.is_some();
        // Before the room is there, so that it is known whatever happens to this engine.
        row.doc.room = placed.room.as_ref().and_then(|room| room.own_name()).map(str::to_owned);
        self.conversations.step(&mut db, &mut row, ResultStatus::Dispatched).await?;
        db.commit().await?;
        self.conversations.note_move(ResultStatus::Queued, &row);
        Ok(Begin::Placed(Box::new(placed), redactor))
    }

    /// Ends a result that can have no call.
    async fn refuse(&self, organization: &str, result_id: i64, obstacle: Obstacle) -> Result<Begin> {
        self.conversations.refuse(organization, result_id, ResultStatus::Queued, obstacle).await?;
        Ok(Begin::Refused)
    }
}
