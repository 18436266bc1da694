//! Results that are tried again: what failed, or was never connected, where the simulation asks for it.

use ringer_base::error::Result;
use ringer_model::error_code::ErrorCode;
use ringer_model::evaluation::Evaluation;
use ringer_model::result::{ResultBody, ResultDoc};
use ringer_model::run::RunDoc;
use ringer_model::simulation::SimulationSpec;
use ringer_model::status::ResultStatus;
use ringer_store::queue::{CallJob, Lane};
use ringer_store::{Row, Session};
use serde_json::{Value, json};

use super::Conversations;
use super::facts::{SETTINGS, is_written};
use super::organization_limits::places_of;
use super::verdict::is_repeated;

/// Tag of a result whose simulation's own question was answered with yes.
pub(crate) const CUSTOM_ERROR: &str = "custom_error";

impl Conversations {
    /// Queues a result again in the place of becoming `end`; what it was is kept in its metadata. The files of the last
    /// attempt are moved away before the commit, and removed after it.
    pub(crate) async fn rerun(
        &self,
        db: &mut Session,
        row: &mut Row<ResultDoc>,
        simulation: &SimulationSpec,
        end: ResultStatus,
    ) -> Result<()> {
        if row.doc.body.status.is_open() {
            self.free_addresses(db, row).await?;
        }
        let body = &row.doc.body;
        let goal = body.evaluations.first().and_then(Evaluation::goal);
        let attempt = json!({
            "attempt": body.attempt, "status": end, "error_code": body.error_code, "goal_success": goal,
            "start_time": body.start_time, "end_time": body.end_time,
        });
        let mut attempts = row.doc.find_note("attempts").and_then(Value::as_array).cloned().unwrap_or_default();
        attempts.push(attempt);
        row.doc = afresh(&row.doc);
        row.doc.note("attempts", Value::Array(attempts));
        self.step(db, row, ResultStatus::Queued).await?;
        // It holds its place until here.
        self.wake_next(db, &places_of(db.organization())).await?;
        let organization = db.organization().to_owned();
        let job = CallJob { organization, result_id: row.id, attempt: row.doc.body.attempt };
        let lane = Lane::of_run(row.doc.body.simulation_run_id, simulation);
        let written = is_written(db, &row.doc).await?;
        db.put_conversation(job, written, self.clock.now_ms(), lane.as_ref()).await?;
        if let Some(lane) = &lane {
            db.release(lane).await?;
        }
        for table in ["transcripts", "timelines", SETTINGS] {
            db.drop_text(table, row.id).await?;
        }
        db.forget_spans(row.id).await?;
        db.remove_after_commit(self.settings.result_folder(row.id));
        Ok(())
    }
}

/// Returns the simulation of a result that is tried again instead of becoming `to`. It was not connected, and may be
/// the next time.
pub(crate) async fn reconnects(
    db: &mut Session,
    row: &Row<ResultDoc>,
    to: ResultStatus,
) -> Result<Option<SimulationSpec>> {
    let body = &row.doc.body;
    let waited = matches!(body.status, ResultStatus::Ready | ResultStatus::Dispatched);
    let failed = matches!(to, ResultStatus::NoConnection | ResultStatus::NoAnswer);
    if !waited || !failed || body.error_code.as_ref().is_some_and(ErrorCode::is_lasting) {
        return Ok(None);
    }
    let simulation = db.get::<SimulationSpec>(body.simulation_id).await?.doc;
    if !rerun_is_due(&row.doc, to, &simulation) {
        return Ok(None);
    }
    // Whoever is always on is called when the agent wants: no other call is to be expected.
    let run = db.get::<RunDoc>(body.simulation_run_id).await?.doc;
    Ok(run.day.is_none().then_some(simulation))
}

/// True when a result that would become `end` is to be tried again.
pub(crate) fn rerun_is_due(doc: &ResultDoc, end: ResultStatus, simulation: &SimulationSpec) -> bool {
    let body = &doc.body;
    if body.attempt > simulation.rerun_max_retries || end == ResultStatus::OutOfFunds {
        return false;
    }
    let ended = ResultDoc { body: ResultBody { status: end, ..body.clone() }, ..doc.clone() };
    let failed = is_repeated(&ended, simulation);
    let custom_error = body.tags.iter().any(|tag| tag == CUSTOM_ERROR);
    (failed && simulation.enable_rerun_failed_test_results) || (custom_error && simulation.enable_rerun_on_custom_error)
}

/// Returns the result as it is before its next attempt. It keeps id, seed, history and what was posted beside the
/// conversation, and nothing of the last conversation. What was written while the first message was still waited for
/// belongs to the next one.
fn afresh(doc: &ResultDoc) -> ResultDoc {
    let body = &doc.body;
    let inbox = if body.status == ResultStatus::Ready { doc.inbox.clone() } else { Default::default() };
    let posted = doc.posted_keys.iter().filter_map(|key| Some((key.clone(), body.metadata.get(key)?.clone())));
    let body = ResultBody {
        digital_human_id: body.digital_human_id,
        simulation_run_id: body.simulation_run_id,
        simulation_id: body.simulation_id,
        agent_id: body.agent_id,
        status: body.status,
        status_history: body.status_history.clone(),
        events: body.events.clone(),
        trace_ids: body.trace_ids.clone(),
        tags: body.tags.iter().filter(|tag| *tag != CUSTOM_ERROR).cloned().collect(),
        metadata: posted.collect(),
        attempt: body.attempt + 1,
        journey_step: body.journey_step,
        agent_version_id: body.agent_version_id,
        seed: body.seed,
        ..ResultBody::default()
    };
    ResultDoc {
        body,
        repetition: doc.repetition,
        private: doc.private,
        posted_keys: doc.posted_keys.clone(),
        inbox,
        ..ResultDoc::default()
    }
}
