//! Schedules: simulations that run by themselves. The time that a schedule is due next is part of its row, and moves on
//! in the transaction that makes the run: however often its job is done, by however many processes, a due time runs
//! once.

use ringer_base::error::{Error, Result};
use ringer_model::cron::Cron;
use ringer_model::run::{Purpose, QueueSpec};
use ringer_model::schedule::{
    CreateCronJobRequest, Schedule, ScheduleAdded, ScheduleDoc, ScheduleRecord, UpdateCronJobRequest,
};
use ringer_model::simulation::SimulationSpec;
use ringer_model::time::Timestamp;
use ringer_store::queue::ScheduleJob;
use ringer_store::{Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::Runs;
use super::scheduler::is_gone;
use crate::Caller;

/// A due time that passed while nobody looked still runs while it is younger.
const CATCH_UP_MS: i64 = 3_600_000;

/// Response to deleting a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScheduleDeleted {
    /// Always the text `success`.
    pub status: String,
    /// Confirmation in words, for display.
    pub message: String,
}

/// List of all schedules of the organization.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScheduleList {
    /// Schedules of the organization, newest first.
    pub schedules: Vec<ScheduleRecord>,
}

impl Runs {
    /// Makes a schedule of a simulation.
    pub async fn create_schedule(&self, caller: &Caller, spec: CreateCronJobRequest) -> Result<ScheduleAdded> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let simulation_id = spec.simulation_id.get().ok_or(Error::NotFound("Simulation"))?;
        db.get::<SimulationSpec>(simulation_id).await?;
        let (cron_expression, cron) = parse_schedule(&spec.schedule.0)?;
        let now = self.clock.now_ms();
        let next_ms = if spec.enabled { cron.after(now) } else { None };
        let doc = ScheduleDoc { simulation_id, cron_expression, enabled: spec.enabled, next_ms };
        let id = db.insert(&doc, now, Some(caller.author())).await?;
        put_job(&mut db, id, &doc).await?;
        db.answer(answer_of(id, doc)).await
    }

    /// Changes when a simulation runs, or whether it does.
    pub async fn update_schedule(
        &self,
        caller: &Caller,
        schedule_id: &str,
        spec: UpdateCronJobRequest,
    ) -> Result<ScheduleRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut row = find(&mut db, schedule_id).await?;
        withdraw(&mut db, row.id, &row.doc).await?;
        if let Some(schedule) = &spec.schedule {
            row.doc.cron_expression = parse_schedule(schedule)?.0;
        }
        row.doc.enabled = spec.enabled.unwrap_or(row.doc.enabled);
        let now = self.clock.now_ms();
        row.doc.next_ms = if row.doc.enabled { cron_of(&row.doc)?.after(now) } else { None };
        db.update(row.id, &row.doc, now, Some(caller.author())).await?;
        put_job(&mut db, row.id, &row.doc).await?;
        db.commit().await?;
        Ok(record_of(row))
    }

    /// Deletes a schedule and withdraws its pending job.
    pub async fn delete_schedule(&self, caller: &Caller, schedule_id: &str) -> Result<ScheduleDeleted> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let row = find(&mut db, schedule_id).await?;
        withdraw(&mut db, row.id, &row.doc).await?;
        db.delete::<ScheduleDoc>(row.id).await?;
        db.commit().await?;
        Ok(ScheduleDeleted { status: "success".into(), message: "Schedule deleted".into() })
    }

    /// Returns one schedule of the caller's organization.
    pub async fn schedule(&self, caller: &Caller, schedule_id: &str) -> Result<ScheduleRecord> {
        let mut db = self.store.org(&caller.organization).read().await?;
        find(&mut db, schedule_id).await.map(record_of)
    }

    /// Returns all schedules, newest first.
    pub async fn schedules(&self, caller: &Caller) -> Result<ScheduleList> {
        let rows = self.store.org(&caller.organization).read().await?.all().await?;
        Ok(ScheduleList { schedules: rows.into_iter().map(record_of).collect() })
    }

    /// Runs what is due, once, and moves the schedule on to its next time. A schedule whose simulation has nothing to
    /// run any more is disabled; any other refusal leaves this time out.
    pub async fn run_schedule(&self, job: &ScheduleJob) -> Result<()> {
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(mut row) = db.find::<ScheduleDoc>(job.schedule_id).await? else { return Ok(()) };
        if !row.doc.enabled || row.doc.next_ms != Some(job.due_ms) {
            return Ok(());
        }
        let (now, cron) = (self.clock.now_ms(), cron_of(&row.doc)?);
        row.doc.next_ms = cron.after(now);
        // One of several missed times is made up for: any that is young enough.
        let young = if job.due_ms > now - CATCH_UP_MS { Some(job.due_ms) } else { cron.after(now - CATCH_UP_MS) };
        if young.is_some_and(|due| due <= now) {
            let caller = Caller::engine(&job.organization);
            let spec = QueueSpec { simulation_id: row.doc.simulation_id.into(), ..QueueSpec::default() };
            let schedule = job.schedule_id;
            match self.queue_in(&mut db, &caller, spec, Purpose::default()).await {
                Ok(run) => tracing::info!(%schedule, run = run.simulation_run_id, "schedule started a run"),
                Err(Error::Internal(cause)) => return Err(Error::Internal(cause)),
                Err(error) if is_gone(&error) => {
                    tracing::warn!(%schedule, %error, "schedule disabled");
                    (row.doc.enabled, row.doc.next_ms) = (false, None);
                }
                Err(error) => tracing::warn!(%schedule, %error, "schedule failed to start a run"),
            }
        } else {
            tracing::warn!(schedule = %job.schedule_id, "schedule skipped: it was due too long ago");
        }
        db.update(row.id, &row.doc, row.updated_ms, row.updated_by).await?;
        put_job(&mut db, row.id, &row.doc).await?;
        db.commit().await
    }

    /// Puts the job of every schedule that has lost it. Answers how many.
    pub async fn restore_schedules(&self) -> Result<usize> {
        let lost = self.store.org("").read().await?.lost_schedules().await?;
        for (organization, id) in &lost {
            let mut db = self.store.org(organization).write().await?;
            let row = find(&mut db, id).await?;
            put_job(&mut db, row.id, &row.doc).await?;
            db.commit().await?;
        }
        Ok(lost.len())
    }
}

fn job(organization: &str, id: Uuid, doc: &ScheduleDoc) -> Option<ScheduleJob> {
    let due_ms = doc.next_ms?;
    Some(ScheduleJob { organization: organization.to_owned(), schedule_id: id, due_ms })
}

async fn put_job(db: &mut Session, id: Uuid, doc: &ScheduleDoc) -> Result<()> {
    match job(db.organization(), id, doc) {
        Some(job) => db.put(&job, job.due_ms, None).await,
        None => Ok(()),
    }
}

async fn withdraw(db: &mut Session, id: Uuid, doc: &ScheduleDoc) -> Result<()> {
    match job(db.organization(), id, doc) {
        Some(job) => db.withdraw(&job).await,
        None => Ok(()),
    }
}

async fn find(db: &mut Session, schedule_id: &str) -> Result<Row<ScheduleDoc>> {
    db.get(Uuid::parse_str(schedule_id).map_err(|_| Error::NotFound("Schedule"))?).await
}

fn parse_schedule(schedule: &Schedule) -> Result<(String, Cron)> {
    let refused = |text: &str| Error::Refused(text.into());
    let expression = schedule.expression().ok_or_else(|| refused("time must be a valid HH:MM time"))?;
    let cron = Cron::parse(&expression).filter(Cron::comes);
    Ok((expression, cron.ok_or_else(|| refused("expression is not a valid 5-field cron expression"))?))
}

fn cron_of(doc: &ScheduleDoc) -> Result<Cron> {
    Cron::parse(&doc.cron_expression).ok_or_else(|| Error::internal("a stored schedule cannot be read"))
}

fn answer_of(id: Uuid, doc: ScheduleDoc) -> ScheduleAdded {
    let ScheduleDoc { simulation_id, cron_expression, enabled, .. } = doc;
    ScheduleAdded { id, simulation_id: simulation_id.into(), cron_expression, enabled }
}

fn record_of(row: Row<ScheduleDoc>) -> ScheduleRecord {
    let created_at = Timestamp(row.created_ms);
    let ScheduleAdded { id, simulation_id, cron_expression, enabled } = answer_of(row.id, row.doc);
    ScheduleRecord { id, simulation_id, cron_expression, enabled, created_at }
}
