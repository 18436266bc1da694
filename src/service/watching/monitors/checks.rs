//! The checks of a monitor: a result of its backing simulation each, begun when due, settled when the result is
//! finished or took too long.

use ringer_base::error::{Error, Result};
use ringer_judge::{Decision, Unheard};
use ringer_model::agent::{AgentDoc, AgentMode};
use ringer_model::custom_metric::{CustomMetricSpec, MetricScope};
use ringer_model::digital_human::Role;
use ringer_model::issue::SourceKind;
use ringer_model::monitor::{Check, CheckDoc, CheckItem, CheckType, MonitorDoc, Verdict};
use ringer_model::result::ResultBody;
use ringer_model::run::{Purpose, QueueAnswer, QueueSpec};
use ringer_model::simulation::SimulationSpec;
use ringer_model::time::Timestamp;
use ringer_model::transcript::Transcript;
use ringer_store::queue::{CheckJob, FinishedJob, MonitorJob};
use ringer_store::{Row, Session};
use serde_json::Value;
use uuid::Uuid;

use super::cadence::Cadence;
use super::verdict::{Seen, judge};
use super::{LONGEST_RING_S, TAG, next_check};
use crate::Caller;
use crate::evaluation::inputs::unheard_in;
use crate::runs::scheduler::is_gone;
use crate::watching::Watching;

/// A check that is not over by then is given up.
const PATIENCE_MS: i64 = 5 * 60_000;
/// Failures in a row from which checks count as failures of the agent.
const IN_A_ROW: i64 = 2;

impl Watching {
    /// Begins the check of a monitor that is due, when none is under way, and asks for the next one.
    pub async fn begin_check(&self, job: &MonitorJob) -> Result<()> {
        let now = self.clock.now_ms();
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(mut row) = db.find::<MonitorDoc>(job.monitor_id).await? else { return Ok(()) };
        if row.doc.next_check_at != Some(Timestamp(job.due_ms)) {
            // It was paused, or is due at another time.
            return Ok(());
        }
        let under_way = db.checks_of(row.id, 1).await?.iter().any(|check| check.doc.finished_at.is_none());
        if !under_way {
            self.call_agent(&mut db, &mut row).await?;
        }
        let next = Cadence::parse(&row.doc.spec.frequency)?.after(job.due_ms, now);
        row.doc.next_check_at = next_check(&row.doc.spec, next)?;
        let (updated_ms, by) = (row.updated_ms, row.updated_by);
        db.update(row.id, &row.doc, updated_ms, by).await?;
        self.ask_for_check(&mut db, row.id, &row.doc).await?;
        db.commit().await
    }

    /// Makes the result that the check is; what cannot be queued is a check that tells nothing. A backing simulation
    /// that was deleted, or whose caller was, is made anew.
    async fn call_agent(&self, db: &mut Session, row: &mut Row<MonitorDoc>) -> Result<()> {
        let now = self.clock.now_ms();
        let caller = Caller::engine(db.organization());
        let mut queued = self.queue_check(db, &caller, &row.doc).await;
        if queued.as_ref().is_err_and(is_gone) {
            self.back_anew(db, &caller, &mut row.doc).await?;
            queued = self.queue_check(db, &caller, &row.doc).await;
        }
        let mut check = CheckDoc {
            monitor_id: row.id,
            simulation_result_id: None,
            started_at: Timestamp(now),
            finished_at: None,
            verdict: Verdict::Unknown,
            checks: Vec::new(),
        };
        match queued {
            Ok(queued) => {
                check.simulation_result_id = queued.simulation_result_ids.first().and_then(|id| id.parse().ok());
                let check_id = db.insert(&check, now, None).await?;
                let organization = db.organization().to_owned();
                db.put(&CheckJob { organization, check_id }, now + PATIENCE_MS, None).await
            }
            Err(error @ (Error::Refused(_) | Error::NotFound(_) | Error::Conflict(_))) => {
                let why = error.to_string();
                check.checks = unknown(&row.doc, &why);
                let id = db.insert(&check, now, None).await?;
                let settled = db.get::<CheckDoc>(id).await?;
                self.finish_check(db, row, settled).await
            }
            Err(error) => Err(error),
        }
    }

    /// Queues the call of a check. The backing simulation's ringing timeout is cut to the limit, so that an agent that
    /// does not answer is found out.
    async fn queue_check(&self, db: &mut Session, caller: &Caller, doc: &MonitorDoc) -> Result<QueueAnswer> {
        let mut simulation = db.get::<SimulationSpec>(doc.simulation_id).await?;
        if simulation.doc.ringing_timeout > LONGEST_RING_S {
            simulation.doc.ringing_timeout = LONGEST_RING_S;
            db.update(simulation.id, &simulation.doc, simulation.updated_ms, simulation.updated_by).await?;
        }
        let spec = QueueSpec { simulation_id: doc.simulation_id.into(), ..QueueSpec::default() };
        self.runs.queue_in(db, caller, spec, Purpose { tag: Some(TAG), once: true, ..Purpose::default() }).await
    }

    /// Gives a check up that took too long, and ends its call: the next check is not to meet it.
    pub async fn give_check_up(&self, job: &CheckJob) -> Result<()> {
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(mut check) = db.find::<CheckDoc>(job.check_id).await? else { return Ok(()) };
        let result_id = check.doc.simulation_result_id;
        if check.doc.finished_at.is_none() {
            let mut row = db.get::<MonitorDoc>(check.doc.monitor_id).await?;
            check.doc.checks = unknown(&row.doc, "not finished after 5 minutes");
            self.finish_check(&mut db, &mut row, check).await?;
            self.keep_monitor(&mut db, &row).await?;
        }
        db.commit().await?;
        let Some(result_id) = result_id else { return Ok(()) };
        match self.runs.hangup(&Caller::engine(&job.organization), result_id).await {
            // It is over, or was deleted.
            Ok(_) | Err(Error::Conflict(_) | Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the transcript of a finished call and its unheard turns, if a check of its monitor asks for errors that
    /// the agent told.
    pub async fn asked_for_errors(&self, job: &FinishedJob) -> Result<Option<(Transcript, Vec<Unheard>)>> {
        let (SourceKind::Simulation, Ok(result_id)) = (job.source, job.source_id.parse::<i64>()) else {
            return Ok(None);
        };
        let mut db = self.store.org(&job.organization).read().await?;
        let open = |check: &Row<CheckDoc>| check.doc.finished_at.is_none();
        let Some(check) = db.by::<CheckDoc>("result_id", result_id).await?.into_iter().find(open) else {
            return Ok(None);
        };
        let Some(row) = db.find::<MonitorDoc>(check.doc.monitor_id).await? else { return Ok(None) };
        let asks = |check: &Check| check.enabled && check.kind == CheckType::AgentMalfunction;
        if !row.doc.spec.checks.iter().any(asks) {
            return Ok(None);
        }
        let transcript: Option<Transcript> = db.text("transcripts", result_id).await?;
        let spoke =
            |held: &Transcript| held.entries.iter().any(|entry| entry.speaker == Role::Agent && entry.has_words());
        let Some(transcript) = transcript.filter(spoke) else { return Ok(None) };
        Ok(Some((transcript, unheard_in(&mut db, result_id).await?)))
    }

    /// Settles the check that a finished result is, if it is one. True when the result's failures count as the agent's:
    /// always, but for checks that failed for the first time.
    pub(crate) async fn settle_check(
        &self,
        db: &mut Session,
        result_id: i64,
        body: &ResultBody,
        told_error: Option<&Decision>,
    ) -> Result<bool> {
        let Some(mut check) = db.by::<CheckDoc>("result_id", result_id).await?.into_iter().next() else {
            return Ok(true);
        };
        let mut row = db.get::<MonitorDoc>(check.doc.monitor_id).await?;
        if check.doc.finished_at.is_none() {
            let mode = db.find::<AgentDoc>(body.agent_id).await?.map_or(AgentMode::Voice, |agent| agent.doc.spec.mode);
            let transcript: Option<Transcript> = db.text("transcripts", result_id).await?;
            let unheard = unheard_in(db, result_id).await?;
            let elsewhere = of_production(db, &row.doc).await?;
            let seen = Seen {
                body,
                transcript: transcript.as_ref(),
                unheard: &unheard,
                is_voice: mode == AgentMode::Voice,
                phrases: &self.settings.malfunction_phrases,
                told_error,
                elsewhere: &elsewhere,
            };
            let checks = row.doc.spec.checks.iter().filter(|check| check.enabled && check.is_gradable());
            check.doc.checks = checks.map(|check| judge(check, &seen)).collect();
            self.finish_check(db, &mut row, check).await?;
            self.keep_monitor(db, &row).await?;
        }
        let newest = db.checks_of(row.id, IN_A_ROW).await?;
        let failed = newest.iter().filter(|check| check.doc.verdict == Verdict::Down).count() as i64;
        Ok(failed == IN_A_ROW)
    }

    /// Keeps the verdict of a check, and what it means for the monitor.
    async fn finish_check(&self, db: &mut Session, row: &mut Row<MonitorDoc>, mut check: Row<CheckDoc>) -> Result<()> {
        let now = self.clock.now_ms();
        check.doc.finished_at = Some(Timestamp(now));
        check.doc.verdict = whole(&check.doc.checks);
        db.update(check.id, &check.doc, now, None).await?;
        let doc = &mut row.doc;
        doc.last_checked_at = Some(Timestamp(now));
        let mut counts = Vec::new();
        for item in &check.doc.checks {
            match item.verdict {
                Verdict::Up => drop(doc.failures.remove(&item.id)),
                Verdict::Down => {
                    let failures = doc.failures.entry(item.id.clone()).or_default();
                    *failures += 1;
                    let of = doc.spec.checks.iter().find(|check| check.name() == item.id);
                    let most = of.and_then(|check| check.config.alert_after_failures).unwrap_or(1);
                    counts.extend((*failures >= most).then_some(item));
                }
                Verdict::Unknown => {}
            }
        }
        match (check.doc.verdict, counts.first()) {
            (Verdict::Down, Some(worst)) => {
                doc.status = Verdict::Down;
                let worst = (*worst).clone();
                self.outbox.open_incident(db, row, &worst).await
            }
            // It does not count yet.
            (Verdict::Down, None) => Ok(()),
            (Verdict::Up, _) => {
                doc.status = Verdict::Up;
                self.outbox.close_incident(db, row, "the agent is up again").await
            }
            (Verdict::Unknown, _) => {
                doc.status = Verdict::Unknown;
                Ok(())
            }
        }
    }

    /// Stores a monitor without changing the time and author of its last update.
    async fn keep_monitor(&self, db: &mut Session, row: &Row<MonitorDoc>) -> Result<()> {
        db.update(row.id, &row.doc, row.updated_ms, row.updated_by).await.map(drop)
    }
}

/// Metrics of a monitor's checks that have become metrics of production calls alone since they were chosen.
async fn of_production(db: &mut Session, doc: &MonitorDoc) -> Result<Vec<Uuid>> {
    let mut found = Vec::new();
    for id in doc.spec.checks.iter().filter_map(|check| check.config.custom_metric_id) {
        let metric = db.find::<CustomMetricSpec>(id).await?;
        found.extend(metric.filter(|row| row.doc.scope == MetricScope::Observability).map(|row| row.id));
    }
    Ok(found)
}

/// Returns every check of a monitor without a verdict.
fn unknown(doc: &MonitorDoc, why: &str) -> Vec<CheckItem> {
    let graded = doc.spec.checks.iter().filter(|check| check.enabled && check.is_gradable());
    graded.map(|check| CheckItem::new(check, Verdict::Unknown, Value::Null, why)).collect()
}

/// Returns DOWN when any check fails, UP when all that could be measured pass.
fn whole(items: &[CheckItem]) -> Verdict {
    let any = |verdict| items.iter().any(|item| item.verdict == verdict);
    if any(Verdict::Down) {
        Verdict::Down
    } else if any(Verdict::Up) {
        Verdict::Up
    } else {
        Verdict::Unknown
    }
}
