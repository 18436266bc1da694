//! Beginning of a call: admission, what it is made of, its place among others, and its number.

use ringer_base::error::Result;
use ringer_judge::Redactor;
use ringer_model::result::ResultDoc;
use ringer_model::status::ResultStatus;
use ringer_store::queue::CallJob;
use serde_json::json;

use super::text::TextTerms;
use super::{CallRows, Obstacle, PlacementSettings, Placements, PreparedCall, read_rows};
use crate::NotDone;
use crate::conversation::inbound_address::QueueStep;
use crate::conversation::privacy::redactor_of;

/// Next step of the job of a written conversation.
pub enum BeginText {
    /// The result is DISPATCHED, or READY where the agent writes first; its redactor where it is private.
    Entered(Option<Redactor>),
    /// Another result comes first, or the result is no longer to be held.
    Waits,
    /// There can be no conversation: the result has ended with the reason.
    Refused,
}

/// Next step of a call job.
pub enum Begin {
    /// The result is DISPATCHED: the call is placed now.
    Prepared(Box<PreparedCall>, Option<Redactor>),
    /// The agent is awaited, another result comes first, or the result is no longer queued.
    Waits,
    /// There can be no call: the result has ended with the reason.
    Refused,
}

impl Placements {
    /// Takes a queued result to the point where its call is placed: admits it, takes its place, admits its number, and
    /// moves it to DISPATCHED.
    ///
    /// There are two transactions, one before and one after everything that may take long.
    pub async fn begin(&self, job: &CallJob, terms: &PlacementSettings) -> Result<Begin> {
        let (organization, id) = (&job.organization, job.result_id);
        // Also of what the agent calls: it is better known now than when it does.
        let prepared = match self.take_up(organization, id).await {
            Ok(Some(rows)) => self.fill_in(organization, rows, terms).await,
            Ok(None) => return Ok(Begin::Waits),
            Err(why) => Err(why),
        };
        match prepared {
            Ok(prepared) => self.enter(organization, id, prepared).await,
            Err(why) => self.refuse(organization, id, why.reason()?).await,
        }
    }

    /// Admits a result that is new, and reads what its call is made of. `None`: it is not QUEUED.
    async fn take_up(&self, organization: &str, result_id: i64) -> Result<Option<CallRows>, NotDone<Obstacle>> {
        let mut db = self.store.org(organization).write().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        // Whoever is first: this or the look for new results.
        let is_new = row.doc.body.status == ResultStatus::Initializing;
        if is_new {
            self.conversations.admit_new(&mut db, &mut row).await?;
        }
        let mut found = match row.doc.body.status {
            ResultStatus::Queued => Some(read_rows(&mut db, &row).await),
            _ => None,
        };
        if let Some(Ok(rows)) = &mut found {
            rows.traceparent = self.settings.traceparent_of(&mut db, &row).await?;
        }
        let is_kept = match &found {
            Some(Ok(_)) => true,
            Some(Err(NotDone::Fault(_))) => false,
            Some(Err(NotDone::Reason(_))) | None => is_new,
        };
        if is_kept {
            db.commit().await?;
        }
        if is_new && is_kept {
            self.live.note_change(result_id);
        }
        found.transpose()
    }

    /// Takes the place of a call among others, admits its number, and moves its result to DISPATCHED: all of it, or
    /// nothing.
    async fn enter(&self, organization: &str, result_id: i64, mut prepared: PreparedCall) -> Result<Begin> {
        let mut db = self.store.org(organization).write().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        let (step, is_changed) = self.conversations.queue_step(&mut db, &mut row).await?;
        if step != QueueStep::Dials {
            if is_changed {
                db.commit().await?;
                self.live.note_change(result_id);
            }
            return Ok(Begin::Waits);
        }
        if let Err(why) = self.admit_dial(&mut db, &row, &mut prepared).await {
            drop(db);
            return self.refuse(organization, result_id, why.reason()?).await;
        }
        let redactor = redactor_of(&mut db, &row.doc).await?;
        row.doc.private = redactor.is_some();
        // Before the room is there, so that it is known whatever happens to this engine.
        row.doc.room = prepared.room.as_ref().and_then(|room| room.own_name()).map(str::to_owned);
        self.conversations.step(&mut db, &mut row, ResultStatus::Dispatched).await?;
        db.hold_result(result_id).await?;
        db.commit().await?;
        self.conversations.note_move(ResultStatus::Queued, &row);
        Ok(Begin::Prepared(Box::new(prepared), redactor))
    }

    /// Takes the place of a written conversation among others, admits its number, and moves its result from `from` to
    /// DISPATCHED, or to READY where the agent writes first: all of it in one transaction, or nothing.
    ///
    /// A READY result, which an engine before this one began, stays so.
    pub async fn begin_text(&self, job: &CallJob, from: ResultStatus, terms: TextTerms<'_>) -> Result<BeginText> {
        let (organization, id) = (&job.organization, job.result_id);
        let mut db = self.store.org(organization).write().await?;
        let mut row = db.get::<ResultDoc>(id).await?;
        let (is_held, is_changed) = self.conversations.written_step(&mut db, &row, terms.numbers).await?;
        if !is_held || row.doc.body.status != from {
            if is_changed {
                db.commit().await?;
                self.live.note_change(id);
            }
            return Ok(BeginText::Waits);
        }
        if let Some(outgoing) = terms.dial
            && let Err(why) = self.admit_queued(&mut db, &row, outgoing).await
        {
            drop(db);
            self.conversations.refuse(organization, id, from, why.reason()?).await?;
            return Ok(BeginText::Refused);
        }
        let redactor = redactor_of(&mut db, &row.doc).await?;
        let to = if terms.agent_is_first { ResultStatus::Ready } else { ResultStatus::Dispatched };
        let moves = from != to;
        if moves {
            row.doc.private = redactor.is_some();
            if let (true, Some(address)) = (terms.agent_is_first, terms.mail_address) {
                row.doc.note("listening", json!({ "email_address": address }));
            }
            self.conversations.step(&mut db, &mut row, to).await?;
        }
        db.commit().await?;
        if moves {
            self.conversations.note_move(from, &row);
        } else {
            self.live.note_change(id);
        }
        Ok(BeginText::Entered(redactor))
    }

    /// Ends a result that can have no call.
    async fn refuse(&self, organization: &str, result_id: i64, obstacle: Obstacle) -> Result<Begin> {
        self.conversations.refuse(organization, result_id, ResultStatus::Queued, obstacle).await?;
        Ok(Begin::Refused)
    }
}
