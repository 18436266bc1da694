//! Transitions of results between their states: the one place that changes a status.

use ringer_base::error::{Error, Result};
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::error_code::ErrorCode;
use ringer_model::issue::SourceKind;
use ringer_model::result::{ResultDoc, StatusChange, find_note};
use ringer_model::run::RunDoc;
use ringer_model::simulation::SimulationSpec;
use ringer_model::status::{Effect, Outcome, ResultStatus, RunStatus};
use ringer_model::time::{Timestamp, span_ms};
use ringer_store::queue::{CallJob, FollowUpJob, Lane};
use ringer_store::{GONE, Owner, Row, Session};
use serde_json::Value;

use super::Conversations;
use super::artifacts::files;
use super::facts::{follow_up_messages, is_written};
use super::rerun::reconnects;
use super::verdict::settle;
use crate::files::RESULTS_FOLDER;

/// Message of a conversation that the engine's own end interrupted.
pub(crate) const RESTARTED: &str = "The engine was restarted during the call";

impl Conversations {
    /// Moves a result from `from` to `to`, with what `patch` changes, in one transaction. A result that is elsewhere,
    /// or a change that is not allowed, is a conflict and nothing is changed.
    ///
    /// CONVERSATION_ENDED asks for the evaluation; a terminal state starts the next journey step and completes the run
    /// when it was the last. What could not be connected is QUEUED again instead, where another attempt is due.
    pub async fn advance(
        &self,
        organization: &str,
        result_id: i64,
        from: ResultStatus,
        to: ResultStatus,
        patch: impl FnOnce(&mut ResultDoc) + Send,
    ) -> Result<Row<ResultDoc>> {
        let mut db = self.store.org(organization).write().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        if row.doc.body.status != from {
            let found = row.doc.body.status.as_str();
            return Err(Error::Conflict(format!("Simulation result is {found}, not {}", from.as_str())));
        }
        patch(&mut row.doc);
        self.step(&mut db, &mut row, to).await?;
        db.commit().await?;
        self.note_move(from, &row);
        Ok(row)
    }

    /// Tells those who watch a result that it has moved on, once that is committed, and logs it.
    pub(crate) fn note_move(&self, from: ResultStatus, row: &Row<ResultDoc>) {
        self.live.note_change(row.id);
        let (result_id, from, to) = (row.id, from.as_str(), row.doc.body.status.as_str());
        let error_code = row.doc.body.error_code.as_ref().map(ErrorCode::as_str);
        // Known where the call is over.
        let call_id = || find_note(&row.doc.body.metadata, "sip_call_id").and_then(Value::as_str);
        tracing::info!(result_id, from, to, error_code, call_id = call_id(), "result changed its status");
    }

    /// Moves new results whose call job is due from INITIALIZING to QUEUED: they wait for nothing but a place. Where
    /// the usage limit is reached they end.
    pub async fn admit(&self) -> Result<()> {
        let waiting = self.store.org("").read().await?.waiting(self.clock.now_ms()).await?;
        for of_organization in waiting.chunk_by(|(one, _), (other, _)| one == other) {
            let mut db = self.store.org(&of_organization[0].0).write().await?;
            for (_, id) in of_organization {
                let mut row = db.get::<ResultDoc>(*id).await?;
                if row.doc.body.status == ResultStatus::Initializing {
                    self.admit_new(&mut db, &mut row).await?;
                }
            }
            db.commit().await?;
            of_organization.iter().for_each(|(_, id)| self.live.note_change(*id));
        }
        Ok(())
    }

    /// Admits one result as [`Conversations::admit`] does; a result in another state stays as it is.
    pub async fn admit_one(&self, organization: &str, result_id: i64) -> Result<()> {
        let mut db = self.store.org(organization).write().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        let is_new = row.doc.body.status == ResultStatus::Initializing;
        if is_new {
            self.admit_new(&mut db, &mut row).await?;
        }
        // Also when somebody else has admitted it: until this commit readers may not see that yet.
        db.commit().await?;
        if is_new {
            self.live.note_change(result_id);
        }
        Ok(())
    }

    /// Returns the lane of a result's run.
    pub async fn lane_of(&self, organization: &str, result_id: i64) -> Result<Option<Lane>> {
        let mut db = self.store.org(organization).read().await?;
        let body = db.get::<ResultDoc>(result_id).await?.doc.body;
        let simulation = db.get::<SimulationSpec>(body.simulation_id).await?.doc;
        Ok(Lane::of_run(body.simulation_run_id, &simulation))
    }

    /// Changes a result without moving it: what arrives while it is in some state.
    pub async fn amend(
        &self,
        organization: &str,
        result_id: i64,
        patch: impl FnOnce(&mut ResultDoc) + Send,
    ) -> Result<Row<ResultDoc>> {
        let mut db = self.store.org(organization).write().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        let status = row.doc.body.status;
        patch(&mut row.doc);
        row.doc.body.status = status;
        db.update(row.id, &row.doc, self.clock.now_ms(), None).await?;
        db.commit().await?;
        Ok(row)
    }

    /// Makes one change of state within a transaction.
    pub(crate) async fn step(&self, db: &mut Session, row: &mut Row<ResultDoc>, to: ResultStatus) -> Result<()> {
        let now = self.clock.now_ms();
        let from = row.doc.body.status;
        if !from.may_become(to) {
            let text = format!("Simulation result cannot change from {} to {}", from.as_str(), to.as_str());
            return Err(Error::Conflict(text));
        }
        if from.is_open() && !to.is_open() {
            db.let_go_of_result(row.id).await?;
            if !self.settings.trunks.is_empty() {
                self.end_dials(db, row).await?;
            }
        }
        if let Some(simulation) = reconnects(db, row, to).await? {
            return Box::pin(self.rerun(db, row, &simulation, to)).await;
        }
        row.doc.body.status = to;
        row.doc.body.status_history.push(StatusChange { status: to, at: Timestamp(now) });
        if to.is_terminal() || matches!(to, ResultStatus::Ready | ResultStatus::Dispatched) {
            self.note_trace(db, row).await?;
        }
        if to.is_terminal() {
            if self.sends_traces() {
                db.note_traced(row.id, false);
            }
            let simulation = db.get::<SimulationSpec>(row.doc.body.simulation_id).await?;
            settle(&mut row.doc, &simulation.doc);
            if let Some(code) = &row.doc.body.error_code {
                db.note_failure(code.as_str());
            }
            self.request_storing(db, row).await?;
        }
        db.update(row.id, &row.doc, now, None).await?;
        for effect in Effect::of(from, to) {
            self.carry_out(db, row, effect).await?;
        }
        Ok(())
    }

    /// Does the work that follows on a change of state.
    async fn carry_out(&self, db: &mut Session, row: &mut Row<ResultDoc>, effect: Effect) -> Result<()> {
        match effect {
            Effect::CountUsage => self.count_usage(db, &row.doc).await,
            Effect::RequestEvaluation => self.request_evaluation(db, row).await,
            Effect::TellEnded => self.outbox.tell_ended(db, row).await,
            Effect::FreeAddresses => self.free_addresses(db, row).await,
            Effect::TellAwaited => self.outbox.tell_awaited(db, row).await,
            Effect::AskOwner => self.ask_owner(db, row).await,
            Effect::TellEvaluated => self.outbox.tell_evaluated(db, row).await,
            Effect::AskForGrade => self.ask_for_grade(db, row).await,
            Effect::Announce => self.outbox.announce_finished(db, SourceKind::Simulation, row.id).await,
            Effect::StartNextStep => self.start_next_step(db, &row.doc).await,
            Effect::CompleteRun => self.complete_run(db, row.doc.body.simulation_run_id).await,
        }
    }

    /// Makes an early result CANCELLED and takes its call back.
    pub(crate) async fn cancel(&self, db: &mut Session, row: &mut Row<ResultDoc>) -> Result<()> {
        let organization = db.organization().to_owned();
        let attempt = row.doc.body.attempt;
        self.step(db, row, ResultStatus::Cancelled).await?;
        db.withdraw(&CallJob { organization, result_id: row.id, attempt }).await
    }

    /// Asks for the grade of the messages that followed a call, when there are any.
    pub(crate) async fn ask_for_grade(&self, db: &mut Session, row: &Row<ResultDoc>) -> Result<()> {
        let serial = follow_up_messages(&row.doc).len() as i64;
        if serial == 0 {
            return Ok(());
        }
        let organization = db.organization().to_owned();
        db.put(&FollowUpJob { organization, result_id: row.id, serial }, self.clock.now_ms(), None).await
    }

    /// Gives back what the dials of a result have reserved and not used, when its calls are over.
    pub(crate) async fn end_dials(&self, db: &mut Session, row: &Row<ResultDoc>) -> Result<()> {
        let body = &row.doc.body;
        let since_start = || body.start_time.map_or(0, |Timestamp(start)| (self.clock.now_ms() - start).max(0));
        let used_ms = body.duration_ms.unwrap_or_else(since_start);
        for dial in db.end_dials(row.id).await? {
            let unused_ms = dial.reserved_ms - used_ms.min(dial.reserved_ms);
            if unused_ms > 0 {
                db.add_dialled(&dial, -unused_ms).await?;
            }
        }
        Ok(())
    }

    /// Lets the next step of a journey go, its pause after this one.
    pub(crate) async fn start_next_step(&self, db: &mut Session, done: &ResultDoc) -> Result<()> {
        let Some(mut next) = db.step_beside(done, 1).await? else { return Ok(()) };
        if next.doc.body.status != ResultStatus::Initializing {
            return Ok(());
        }
        let stops = matches!(done.body.outcome, Some(Outcome::Failed | Outcome::Cancelled));
        if stops && self.settings.journey_stop_on_failure {
            next.doc.warn("not held: an earlier step of the journey failed");
            // It takes the step after it along.
            return Box::pin(self.step(db, &mut next, ResultStatus::Cancelled)).await;
        }
        let human = match done.body.digital_human_id {
            Some(id) => db.find::<DigitalHumanSpec>(id).await?,
            None => None,
        };
        let steps = human.and_then(|row| row.doc.journey_steps).unwrap_or_default();
        let wait = steps.iter().find(|step| Some(step.step) == next.doc.body.journey_step);
        let wait_ms = wait.map_or(0, |step| span_ms(step.wait_seconds));
        let organization = db.organization().to_owned();
        let job = CallJob { organization, result_id: next.id, attempt: next.doc.body.attempt };
        let simulation = db.get::<SimulationSpec>(done.body.simulation_id).await?.doc;
        // A step that has to wait must not hold one of the run's places meanwhile.
        let lane = Lane::of_run(done.body.simulation_run_id, &simulation).filter(|_| wait_ms == 0);
        let written = is_written(db, &next.doc).await?;
        db.put_conversation(job, written, self.clock.now_ms() + wait_ms, lane.as_ref()).await?;
        match &lane {
            Some(lane) => db.release(lane).await,
            None => Ok(()),
        }
    }

    /// Completes a run whose results are all terminal; counts again when it already was.
    pub(crate) async fn complete_run(&self, db: &mut Session, run_id: i64) -> Result<()> {
        if db.has_open_results(Owner::Run, run_id).await? {
            return Ok(());
        }
        let tally = db.tally(run_id).await?;
        let mut run = db.get::<RunDoc>(run_id).await?;
        let is_first = run.doc.completed_at.is_none();
        run.doc.status = RunStatus::Completed;
        run.doc.completed_at.get_or_insert(Timestamp(self.clock.now_ms()));
        let counted = Some(tally.counters.summary());
        if run.doc.counted != counted {
            (run.doc.summary, run.doc.counted) = (counted.clone(), counted);
            self.outbox.ask_for_summary(db, run_id).await?;
        }
        if is_first {
            self.outbox.notify_of_run(db, run_id, &run.doc).await?;
        }
        db.update(run_id, &run.doc, self.clock.now_ms(), None).await.map(drop)
    }

    /// Clears up after an engine that was killed amid a rerun. Folders that were moved away are moved back where the
    /// rerun was not committed, and removed where it was.
    pub(crate) async fn sweep_moved(&self) -> Result<()> {
        for path in files(&self.settings.data.join(RESULTS_FOLDER)).await? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some(id) = name.strip_suffix(GONE).and_then(|rest| rest.split('.').next()?.parse::<i64>().ok()) else {
                continue;
            };
            let status = self.store.org("").read().await?.status_of(id).await?;
            let folder = self.settings.result_folder(id);
            let is_committed = status.is_none_or(ResultStatus::is_open) || folder.exists();
            let done = match is_committed {
                true => tokio::fs::remove_dir_all(&path).await,
                false => tokio::fs::rename(&path, &folder).await,
            };
            done.map_err(Error::internal)?;
        }
        Ok(())
    }

    /// Ends a conversation that is at work by its status, though its job could be claimed again: the engine that held
    /// it is gone.
    pub async fn end_abandoned(&self, organization: &str, result_id: i64) -> Result<()> {
        // Work that an engine holds is not abandoned, however long its lease could not be renewed; records that wait
        // are stored.
        if self.restore_one(result_id).await {
            return Ok(());
        }
        let holder = self.store.org("").read().await?.engine_of_result(result_id).await?;
        if let Some(engine) = holder.filter(|engine| !engine.is_alive) {
            self.end_lost(organization, result_id, &engine.name).await?;
        } else if self.is_held_elsewhere(result_id).await? {
            return Ok(());
        } else if !self.live.holds(result_id) && self.break_off(organization, result_id, RESTARTED).await? {
            tracing::warn!(result_id, "conversation of a dead engine ended");
        }
        Ok(())
    }

    /// True if another engine, which works, holds the call of a result.
    async fn is_held_elsewhere(&self, result_id: i64) -> Result<bool> {
        let holder = self.store.org("").read().await?.engine_of_result(result_id).await?;
        let me = self.store.engine().await?;
        Ok(holder.is_some_and(|engine| engine.is_alive && engine.id != me))
    }

    /// Ends a conversation whose engine gives no sign of life any more; returns false if it was not at work.
    pub(crate) async fn end_lost(&self, organization: &str, result_id: i64, engine: &str) -> Result<bool> {
        let message = match engine {
            "" => "The engine that made the call was lost".to_owned(),
            name => format!("The engine {name:?} was lost during the call"),
        };
        let ended = self.break_off(organization, result_id, &message).await?;
        if !ended {
            // It has gone on, or is gone.
            let mut db = self.store.org(organization).write().await?;
            db.let_go_of_result(result_id).await?;
            db.commit().await?;
        }
        Ok(ended)
    }

    /// Ends a conversation that the end of its engine interrupted; returns false if it was not at work.
    pub(crate) async fn break_off(&self, organization: &str, result_id: i64, message: &str) -> Result<bool> {
        // Its records wait for the database, and are stored soon.
        if self.has_kept(result_id).await {
            return Ok(false);
        }
        let mut db = self.store.org(organization).write().await?;
        let Some(mut row) = db.find::<ResultDoc>(result_id).await? else { return Ok(false) };
        if !matches!(row.doc.body.status, ResultStatus::Dispatched | ResultStatus::Running) {
            return Ok(false);
        }
        // A conversation by mail goes on.
        if db.mail_owner(result_id).await?.is_some_and(|owner| owner.attempt == row.doc.body.attempt) {
            return Ok(false);
        }
        row.doc.body.fail(ErrorCode::EngineRestarted, message);
        row.doc.body.end_time = Some(Timestamp(self.clock.now_ms()));
        if row.doc.private {
            self.forget_words(result_id, &mut row.doc).await?;
        } else {
            self.adopt(&mut db, result_id, &mut row.doc).await?;
        }
        self.step(&mut db, &mut row, ResultStatus::SystemError).await?;
        db.commit().await.map(|()| true)
    }
}
