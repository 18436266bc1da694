//! Jobs: work that is done after the request that asked for it, stored in a table and claimed under a lease.
//!
//! A job is stored in the transaction of the row that it concerns. A claim is exclusive until its lease ends; a job
//! whose worker died is claimed again with a higher `attempts`. Of one lane at most `limit` jobs are released at a
//! time, in the order of their creation. The others are held until a released one is done or leaves the lane.

mod after;
mod conversation;
mod judging;
pub mod outbox;
mod storing;
mod turns;

use ringer_base::clock::Clock;
use ringer_base::error::{Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use uuid::Uuid;

pub use self::after::AfterJob;
pub use self::judging::{CallLogJob, EvaluateJob, FinishedJob, FollowUpJob, JudgeCardJob, SummaryJob};
pub use self::storing::{EraseJob, StoreJob};
pub use self::turns::Turns;
use crate::db::Cell;
use crate::{Session, Store, db, from_text, to_text};

/// A kind of work.
pub trait Job: Serialize + DeserializeOwned {
    /// Name of the kind in the table.
    const NAME: &'static str;
    /// True if the job needs files of the data folder in whose engine it was stored: see [`Store::place`].
    const NEEDS_FILES: bool = false;

    /// Returns the key of the job. A second job of the same key is not stored.
    fn key(&self) -> String;

    /// Returns the organization whose turn the job is; empty: jobs of the kind are not done in turn.
    fn organization(&self) -> &str {
        ""
    }
}

/// Job: hold the conversation of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallJob {
    /// Organization that owns the result.
    pub organization: String,
    /// Identifier of the result.
    pub result_id: i64,
    /// Number of the attempt at it, from 1.
    pub attempt: i64,
}

impl Job for CallJob {
    const NAME: &'static str = "call";

    fn key(&self) -> String {
        format!("call:{}:{}", self.result_id, self.attempt)
    }
}

/// A [`CallJob`] that is stored once more, after the result has waited for another one.
///
/// The job that found it waiting may not be closed yet. This one is claimed and read as a [`CallJob`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallAgain {
    /// The call job itself.
    #[serde(flatten)]
    pub call: CallJob,
    /// Identifier that no other job of the result has.
    pub serial: Uuid,
}

impl Job for CallAgain {
    const NAME: &'static str = CallJob::NAME;

    fn key(&self) -> String {
        format!("{}:{}", self.call.key(), self.serial)
    }
}

/// Job: stop waiting for the incoming call of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnansweredJob {
    /// Organization that owns the result.
    pub organization: String,
    /// Identifier of the result.
    pub result_id: i64,
    /// Number of the attempt at it, from 1.
    pub attempt: i64,
}

impl Job for UnansweredJob {
    const NAME: &'static str = "unanswered";

    fn key(&self) -> String {
        format!("unanswered:{}:{}", self.result_id, self.attempt)
    }
}

/// Job: request the agent's owner to have the call of a result placed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerJob {
    /// Organization that owns the result.
    pub organization: String,
    /// Identifier of the result.
    pub result_id: i64,
    /// Number of the attempt at it, from 1.
    pub attempt: i64,
    /// Number of the request within the attempt, from 1.
    pub request: i64,
}

impl Job for TriggerJob {
    const NAME: &'static str = "trigger";

    fn key(&self) -> String {
        format!("trigger:{}:{}:{}", self.result_id, self.attempt, self.request)
    }
}

/// Job: hold the conversation of a result in writing. It has the key of the call job in whose place it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TextJob(pub CallJob);

impl Job for TextJob {
    const NAME: &'static str = "text";

    fn key(&self) -> String {
        self.0.key()
    }
}

/// A [`TextJob`] that is stored once more, as a [`CallAgain`] is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TextAgain(pub CallAgain);

impl Job for TextAgain {
    const NAME: &'static str = TextJob::NAME;

    fn key(&self) -> String {
        self.0.key()
    }
}

/// Job: start the run of a schedule that is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleJob {
    /// Organization that owns the schedule.
    pub organization: String,
    /// Identifier of the schedule.
    pub schedule_id: Uuid,
    /// Time that is due, milliseconds since 1970.
    pub due_ms: i64,
}

impl Job for ScheduleJob {
    const NAME: &'static str = "schedule";

    fn key(&self) -> String {
        format!("schedule:{}:{}", self.schedule_id, self.due_ms)
    }
}

/// Job: update an agent from its platform's definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutosyncJob {
    /// Organization that owns the agent.
    pub organization: String,
    /// Identifier of the agent.
    pub agent_id: i64,
    /// Name of the platform, or of a source of the settings.
    pub provider: String,
    /// Time of the request, milliseconds since 1970.
    pub asked_ms: i64,
    /// Number of the request to the platform, from 1.
    #[serde(default = "first_request")]
    pub request: i64,
}

/// Number of the request of jobs that were stored without one.
fn first_request() -> i64 {
    1
}

impl Job for AutosyncJob {
    const NAME: &'static str = "autosync";

    fn key(&self) -> String {
        format!("autosync:{}:{}:{}:{}", self.agent_id, self.provider, self.asked_ms, self.request)
    }
}

/// Job: begin a check of a monitor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonitorJob {
    /// Organization that owns the monitor.
    pub organization: String,
    /// Identifier of the monitor.
    pub monitor_id: Uuid,
    /// Time at which the check is due, milliseconds since 1970. A job of another time than the monitor's next one does
    /// nothing.
    pub due_ms: i64,
}

impl Job for MonitorJob {
    const NAME: &'static str = "monitor";

    fn key(&self) -> String {
        format!("monitor:{}:{}", self.monitor_id, self.due_ms)
    }
}

/// Job: end a check that takes too long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckJob {
    /// Organization that owns the check.
    pub organization: String,
    /// Identifier of the check.
    pub check_id: Uuid,
}

impl Job for CheckJob {
    const NAME: &'static str = "check";

    fn key(&self) -> String {
        format!("check:{}", self.check_id)
    }
}

/// Job: check whether an alert still holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertJob {
    /// Organization that owns the alert.
    pub organization: String,
    /// Identifier of the alert.
    pub alert_id: Uuid,
    /// Time at which its window holds fewer violations, milliseconds since 1970.
    pub at_ms: i64,
}

impl Job for AlertJob {
    const NAME: &'static str = "alert";

    fn key(&self) -> String {
        format!("alert:{}:{}", self.alert_id, self.at_ms)
    }
}

/// Job: deliver a notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotifyJob {
    /// Organization that owns the notification.
    pub organization: String,
    /// Identifier of the notification.
    pub notification_id: Uuid,
    /// Number of the attempt at it, from 1.
    pub attempt: i64,
}

impl Job for NotifyJob {
    const NAME: &'static str = "notify";

    fn key(&self) -> String {
        format!("notify:{}:{}", self.notification_id, self.attempt)
    }
}

/// A set of jobs of which only a limited number is released at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Name of the lane, for example `run:12`.
    pub name: String,
    /// Most released jobs at a time.
    pub limit: i64,
}

impl Session {
    /// Stores a job, due at `due_ms`. A job with a lane is held until [`Session::release`] releases it.
    pub async fn put<J: Job>(&mut self, job: &J, due_ms: i64, lane: Option<&Lane>) -> Result<()> {
        let sql = "INSERT INTO jobs (kind, job_key, payload, due_ms, lane, lane_limit, held, org_id, place) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (job_key) DO NOTHING";
        let cells = [
            J::NAME.into(),
            job.key().into(),
            to_text(job)?.into(),
            due_ms.into(),
            lane.map(|lane| lane.name.clone()).into(),
            lane.map(|lane| lane.limit).into(),
            lane.is_some().into(),
            job.organization().into(),
            self.store.place().filter(|_| J::NEEDS_FILES).map(str::to_owned).into(),
        ];
        self.execute(sql, &cells).await?;
        match lane {
            // It is due when it is released.
            Some(_) => self.note_job(),
            None => self.note_due(J::NAME),
        }
        Ok(())
    }

    /// Deletes a job that was not claimed; the next of its lane is released.
    pub async fn withdraw<J: Job>(&mut self, job: &J) -> Result<()> {
        let sql = "DELETE FROM jobs WHERE job_key = $1 AND lease_ms IS NULL RETURNING lane, lane_limit";
        let row = self.row(sql, &[job.key().into()]).await?;
        self.release_lane_of(row).await
    }

    /// Releases held jobs of a lane up to its limit.
    pub async fn release(&mut self, lane: &Lane) -> Result<()> {
        let count = "SELECT COUNT(*) FROM jobs WHERE lane = $1 AND held = 0";
        let free = lane.limit - self.number(count, &[lane.name.as_str().into()]).await?;
        if free > 0 {
            let sql = "UPDATE jobs SET held = 0 WHERE id IN \
                       (SELECT id FROM jobs WHERE lane = $1 AND held = 1 ORDER BY id LIMIT $2) RETURNING kind";
            for row in self.rows(sql, &[lane.name.as_str().into(), free.into()]).await? {
                let kind: String = row.try_get(0).map_err(Error::internal)?;
                self.note_due(&kind);
            }
        }
        Ok(())
    }

    async fn release_lane_of(&mut self, deleted: Option<db::Row>) -> Result<()> {
        let Some(row) = deleted else { return Ok(()) };
        let name: Option<String> = row.try_get(0).map_err(Error::internal)?;
        let limit: Option<i64> = row.try_get(1).map_err(Error::internal)?;
        match (name, limit) {
            (Some(name), Some(limit)) => self.release(&Lane { name, limit }).await,
            _ => Ok(()),
        }
    }
}

/// A claimed job. Only its holder may finish it, until the lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Identifier of the job.
    pub id: i64,
    /// Name of the job's kind.
    pub kind: String,
    /// Number of claims, from 1; more than 1: an earlier worker gave it back or died.
    pub attempts: i64,
    /// True: it counts towards the limit of a lane.
    pub in_lane: bool,
    payload: String,
}

impl Claimed {
    /// Returns the job itself, read from its stored text.
    pub fn job<J: Job>(&self) -> Result<J> {
        from_text(&self.payload)
    }
}

/// The jobs of a store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Queue {
    store: Store,
    clock: Clock,
}

impl Queue {
    /// Returns the queue of `store`.
    pub fn new(store: Store, clock: Clock) -> Queue {
        Queue { store, clock }
    }

    /// Claims the job of these kinds that is due longest; `None` when none is due.
    pub async fn claim(&self, kinds: &[&str], lease_ms: i64) -> Result<Option<Claimed>> {
        self.claim_of(kinds, lease_ms, None).await
    }

    /// Claims a job as [`Queue::claim`] does, of one organization if one is given.
    async fn claim_of(&self, kinds: &[&str], lease_ms: i64, organization: Option<&str>) -> Result<Option<Claimed>> {
        if kinds.is_empty() {
            return Ok(None);
        }
        // A claim is one statement, and on a server it waits for no other writer: two never choose the same row.
        let (mut db, locks) = match self.store.is_shared() {
            true => (self.store.org("").read().await?, "FOR UPDATE SKIP LOCKED"),
            false => (self.store.system().await?, ""),
        };
        let now = db.now_at(1);
        let mut cells: Vec<Cell> = vec![self.time(), lease_ms.into(), self.store.engine().await?.into()];
        let marks = kind_marks(kinds, &mut cells);
        let own = match organization {
            Some(organization) => {
                cells.push(organization.into());
                format!("AND org_id = ${}", cells.len())
            }
            None => String::new(),
        };
        let (here, free) = (self.here(&mut cells), self.free(&now));
        let sql = format!(
            "UPDATE jobs SET lease_ms = {now} + $2, engine = $3, attempts = attempts + 1 WHERE id = (SELECT id FROM jobs \
             WHERE kind IN ({marks}) AND held = 0 AND due_ms <= {now} AND {free} {own} {here} \
             ORDER BY due_ms, id LIMIT 1 {locks}) RETURNING id, kind, attempts, lane, payload"
        );
        let Some(row) = db.row(&sql, &cells).await? else { return Ok(None) };
        let read = |row: &db::Row| -> Result<Claimed, sqlx::Error> {
            Ok(Claimed {
                id: row.try_get("id")?,
                kind: row.try_get("kind")?,
                attempts: row.try_get("attempts")?,
                in_lane: row.try_get::<Option<String>, _>("lane")?.is_some(),
                payload: row.try_get("payload")?,
            })
        };
        let claimed = read(&row).map_err(Error::internal)?;
        db.commit().await?;
        Ok(Some(claimed))
    }

    /// Returns the value of the time for a statement: this queue's where its clock stands still, else the database's.
    fn time(&self) -> Cell {
        Cell::Int(self.clock.standing_ms())
    }

    /// Returns the condition of jobs that nobody holds at the time `now`.
    fn free(&self, now: &str) -> String {
        match self.store.is_settled() {
            true => format!("(lease_ms IS NULL OR lease_ms <= {now})"),
            false => "lease_ms IS NULL".to_owned(),
        }
    }

    /// Returns the condition of jobs that need no data folder, or that of this engine.
    fn here(&self, cells: &mut Vec<Cell>) -> String {
        let Some(place) = self.store.place() else { return String::new() };
        cells.push(place.into());
        format!("AND (place IS NULL OR place = ${})", cells.len())
    }

    /// Deletes a job that is done. False: the lease had ended and another worker has it.
    pub async fn finish_job(&self, claimed: &Claimed) -> Result<bool> {
        let mut db = self.store.system().await?;
        let sql = "DELETE FROM jobs WHERE id = $1 AND attempts = $2 RETURNING lane, lane_limit";
        let row = db.row(sql, &[claimed.id.into(), claimed.attempts.into()]).await?;
        let was_ours = row.is_some();
        db.release_lane_of(row).await?;
        db.commit().await?;
        Ok(was_ours)
    }

    /// Returns the job to the queue, to be claimed again from `due_ms` on. False: another worker has it.
    pub async fn retry(&self, claimed: &Claimed, due_ms: i64) -> Result<bool> {
        let sql = "UPDATE jobs SET lease_ms = NULL, due_ms = $3 WHERE id = $1 AND attempts = $2";
        let mut db = self.store.system().await?;
        let changed = db.execute(sql, &[claimed.id.into(), claimed.attempts.into(), due_ms.into()]).await?;
        db.note_due(&claimed.kind);
        db.commit().await?;
        Ok(changed > 0)
    }

    /// Returns the job to the queue as one of kind `J`, which must have the same fields; it keeps its place in the
    /// lane.
    pub async fn hand_over<J: Job>(&self, claimed: &Claimed) -> Result<()> {
        let mut db = self.store.system().await?;
        let sql = "UPDATE jobs SET lease_ms = NULL, kind = $3 WHERE id = $1 AND attempts = $2";
        db.execute(sql, &[claimed.id.into(), claimed.attempts.into(), J::NAME.into()]).await?;
        db.note_due(J::NAME);
        db.commit().await
    }

    /// Removes the job from its lane; the next one is released.
    pub async fn leave_lane(&self, claimed: &Claimed) -> Result<()> {
        let mut db = self.store.system().await?;
        let cells = [claimed.id.into(), claimed.attempts.into()];
        let row = db.row("SELECT lane, lane_limit FROM jobs WHERE id = $1 AND attempts = $2", &cells).await?;
        db.execute("UPDATE jobs SET lane = NULL WHERE id = $1 AND attempts = $2", &cells).await?;
        db.release_lane_of(row).await?;
        db.commit().await
    }

    /// Returns the job to the queue in a lane, to be claimed again when the lane releases it.
    pub async fn enter_lane(&self, claimed: &Claimed, lane: &Lane) -> Result<()> {
        let mut db = self.store.system().await?;
        let sql =
            "UPDATE jobs SET lease_ms = NULL, held = 1, lane = $3, lane_limit = $4 WHERE id = $1 AND attempts = $2";
        let cells = [claimed.id.into(), claimed.attempts.into(), lane.name.as_str().into(), lane.limit.into()];
        db.execute(sql, &cells).await?;
        db.release(lane).await?;
        db.commit().await
    }

    /// Moves the end of the lease to `lease_ms` from now, also of one that has ended and that nobody took since. False:
    /// another worker has it.
    pub async fn extend(&self, claimed: &Claimed, lease_ms: i64) -> Result<bool> {
        let mut db = self.store.system().await?;
        let sql = format!("UPDATE jobs SET lease_ms = {} + $4 WHERE id = $1 AND attempts = $2", db.now_at(3));
        let cells = [claimed.id.into(), claimed.attempts.into(), self.time(), lease_ms.into()];
        let changed = db.execute(&sql, &cells).await?;
        db.note_job();
        db.commit().await?;
        Ok(changed > 0)
    }

    /// Ends every lease: at the start of a process that is the only one, no other worker can hold any.
    pub async fn end_leases(&self) -> Result<()> {
        let mut db = self.store.system().await?;
        db.execute("UPDATE jobs SET lease_ms = NULL WHERE lease_ms IS NOT NULL", &[]).await?;
        db.end_holds().await?;
        db.end_event_leases().await?;
        db.note_job();
        db.commit().await
    }

    /// Returns the time at which the next job of these kinds can be claimed, in the past when one is due; `None`: there
    /// is none.
    pub async fn next_due_ms(&self, kinds: &[&str]) -> Result<Option<i64>> {
        if kinds.is_empty() {
            return Ok(None);
        }
        let mut cells = Vec::new();
        let marks = kind_marks(kinds, &mut cells);
        let here = self.here(&mut cells);
        let free = if self.store.is_settled() { "" } else { "AND lease_ms IS NULL" };
        let sql = format!(
            "SELECT MIN(CASE WHEN lease_ms IS NULL OR lease_ms < due_ms THEN due_ms ELSE lease_ms END) FROM jobs \
             WHERE kind IN ({marks}) AND held = 0 {free} {here}"
        );
        let row = self.store.org("").read().await?.row(&sql, &cells).await?;
        row.map_or(Ok(None), |row| row.try_get(0).map_err(Error::internal))
    }

    /// Returns the number of jobs of each kind in each state: `held` by their lane, `waiting`, `claimed`.
    pub async fn depth(&self) -> Result<Vec<(String, &'static str, i64)>> {
        let sql = "SELECT kind, CASE WHEN held = 1 THEN 0 WHEN lease_ms IS NULL THEN 1 ELSE 2 END AS state, COUNT(*) \
                   FROM jobs GROUP BY 1, 2 ORDER BY 1, 2";
        let rows = self.store.org("").read().await?.rows(sql, &[]).await?;
        let read = |row: &db::Row| -> Result<_, sqlx::Error> {
            let state: i64 = row.try_get(1)?;
            let state = ["held", "waiting", "claimed"][state.clamp(0, 2) as usize];
            Ok((row.try_get(0)?, state, row.try_get(2)?))
        };
        rows.iter().map(|row| read(row).map_err(Error::internal)).collect()
    }

    /// Returns a counter that changes whenever a job may have become claimable through this process (stored, returned,
    /// released).
    ///
    /// A worker marks it seen, claims until there is nothing, and then waits for the next change or
    /// [`Queue::next_due_ms`].
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.store.watch_jobs()
    }
}

/// Appends the kinds to `cells` and returns their marks for a statement.
fn kind_marks(kinds: &[&str], cells: &mut Vec<Cell>) -> String {
    let first = cells.len() + 1;
    cells.extend(kinds.iter().map(|kind| Cell::from(*kind)));
    (first..=cells.len()).map(|n| format!("${n}")).collect::<Vec<_>>().join(", ")
}
