//! Minutes of conversation: how many an organization has used this month (UTC), and what happens when none are left.

use ringer_base::error::{Error, Result};
use ringer_media::call::EndReason;
use ringer_model::agent::AgentDoc;
use ringer_model::error_code::ErrorCode;
use ringer_model::result::ResultDoc;
use ringer_model::status::ResultStatus;
use ringer_model::time::Timestamp;
use ringer_store::queue::CallJob;
use ringer_store::{Row, Session};
use schemars::JsonSchema;
use serde::Serialize;

use super::Conversations;
use super::mail_thread::hasten;
use crate::Caller;
use crate::library::limits::limits_in_force;

/// Error code of results that the limit has stopped.
const CODE: ErrorCode = ErrorCode::InsufficientBalance;
const REACHED: &str = "Workspace usage limit reached";

const MINUTE_MS: f64 = 60_000.0;

/// Length in milliseconds from which on a reported call is not counted.
const LONGEST_MS: i64 = 24 * 3600 * 1000;

/// Minutes used and left, and whether new work is admitted.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SpendAllowed {
    /// True while minutes are left.
    pub allowed: bool,
    /// Reason why new work is refused; null when it is admitted.
    pub reason: Option<String>,
    /// Minutes a month; null: no limit.
    pub limit_minutes: Option<f64>,
    /// Minutes used this month.
    pub used_minutes: f64,
}

impl Conversations {
    /// Returns the used minutes, and whether new work for an agent is admitted.
    pub async fn spend_allowed(&self, caller: &Caller, agent_id: i64) -> Result<SpendAllowed> {
        let mut db = self.store.org(&caller.organization).read().await?;
        db.get::<AgentDoc>(agent_id).await?;
        let limit_minutes = self.minutes(&mut db).await?;
        let used_minutes = db.used_ms(&self.month()).await? as f64 / MINUTE_MS;
        let allowed = limit_minutes.is_none_or(|limit| used_minutes < limit);
        let reason = (!allowed).then(|| REACHED.to_owned());
        Ok(SpendAllowed { allowed, reason, limit_minutes, used_minutes })
    }

    /// Counts a conversation that is over.
    pub(crate) async fn count_usage(&self, db: &mut Session, doc: &ResultDoc) -> Result<()> {
        match doc.body.duration_ms {
            Some(ms) if ms > 0 => db.add_usage(&self.month(), ms).await,
            _ => Ok(()),
        }
    }

    /// Moves a new result to where it waits for a place, or ends it when no minutes are left.
    pub(crate) async fn admit_new(&self, db: &mut Session, row: &mut Row<ResultDoc>) -> Result<()> {
        if !self.is_spent(db).await? {
            return self.step(db, row, ResultStatus::Queued).await;
        }
        row.doc.body.fail(CODE, REACHED);
        self.step(db, row, ResultStatus::OutOfFunds).await?;
        let organization = db.organization().to_owned();
        db.withdraw(&CallJob { organization, result_id: row.id, attempt: row.doc.body.attempt }).await
    }

    /// Ends conversations of organizations whose minutes are used up by what runs now. Answers how many were asked to
    /// end.
    pub async fn end_unpaid_calls(&self) -> Result<usize> {
        let running = self.store.org("").read().await?.running_results().await?;
        let (now, mut ended) = (self.clock.now_ms(), 0);
        for of_organization in running.chunk_by(|(one, _), (other, _)| one == other) {
            let organization = &of_organization[0].0;
            let Some(limit) = self.minutes(&mut self.store.org(organization).read().await?).await? else { continue };
            let mut db = self.store.org(organization).write().await?;
            let mut rows = Vec::new();
            for (_, id) in of_organization {
                rows.push(db.get::<ResultDoc>(*id).await?);
            }
            let elapsed =
                |row: &Row<ResultDoc>| row.doc.body.start_time.map_or(0, |Timestamp(start)| (now - start).max(0));
            let used = db.used_ms(&self.month()).await? + rows.iter().map(elapsed).sum::<i64>();
            if (used as f64) < limit * MINUTE_MS {
                continue;
            }
            for row in rows.iter_mut().filter(|row| row.doc.body.error_code.is_none()) {
                row.doc.body.fail(CODE, REACHED);
                db.update(row.id, &row.doc, now, None).await?;
                if db.mail_owner(row.id).await?.is_some() {
                    hasten(&mut db, row.id, row.doc.body.attempt, now).await?;
                }
            }
            db.commit().await?;
            // Each process ends the calls that it holds.
            ended += rows.iter().filter(|row| self.live.hangup(row.id, EndReason::UsageLimit)).count();
        }
        Ok(ended)
    }

    async fn is_spent(&self, db: &mut Session) -> Result<bool> {
        let Some(limit) = self.minutes(db).await? else { return Ok(false) };
        Ok(db.used_ms(&self.month()).await? as f64 >= limit * MINUTE_MS)
    }

    /// Checks that minutes are left for a call that was held elsewhere and is to be evaluated.
    ///
    /// # Errors
    /// The limit is reached.
    pub(crate) async fn check_minutes(&self, db: &mut Session) -> Result<()> {
        if self.is_spent(db).await? { Err(Error::Forbidden(REACHED.to_owned())) } else { Ok(()) }
    }

    /// Counts a call that was held elsewhere and is evaluated.
    pub(crate) async fn count_evaluated(&self, db: &mut Session, duration_ms: i64) -> Result<()> {
        // Times of a report come from outside, and may be anything: a day is no length of a call.
        match duration_ms {
            1..LONGEST_MS => db.add_usage(&self.month(), duration_ms).await,
            _ => Ok(()),
        }
    }

    /// Returns the minutes that the session's organization may use in a month; `None`: no limit.
    async fn minutes(&self, db: &mut Session) -> Result<Option<f64>> {
        Ok(limits_in_force(&self.settings, db).await?.usage_minutes_per_month)
    }

    /// Returns the current month in UTC, such as `2026-01`.
    fn month(&self) -> String {
        Timestamp(self.clock.now_ms()).to_string()[..7].to_owned()
    }
}
