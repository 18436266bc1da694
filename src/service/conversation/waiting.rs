//! Reasons why results that have not begun wait. They are computed on request, so that they are never out of date.

use std::collections::{BTreeMap, HashMap};

use ringer_base::error::Result;
use ringer_model::result::{QueueReason, ResultDoc};
use ringer_model::simulation::SimulationSpec;
use ringer_model::status::ResultStatus;
use ringer_store::queue::{CallJob, Job};
use ringer_store::{CallState, Row, Session};

use super::Conversations;
use super::inbound_address::is_in_order;
use super::model_budget::is_budget;
use super::organization_limits::is_places;

impl Conversations {
    /// Returns the reason why each of these results of one run waits, by id; results that do not wait are left out.
    pub(crate) async fn queue_reasons(
        &self,
        db: &mut Session,
        rows: &[Row<ResultDoc>],
    ) -> Result<HashMap<i64, QueueReason>> {
        let waits =
            |row: &&Row<ResultDoc>| matches!(row.doc.body.status, ResultStatus::Initializing | ResultStatus::Queued);
        let rows: Vec<&Row<ResultDoc>> = rows.iter().filter(waits).collect();
        let Some(first) = rows.first() else { return Ok(HashMap::new()) };
        let simulation = db.get::<SimulationSpec>(first.doc.body.simulation_id).await?.doc;
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let keys: Vec<String> = rows.iter().map(|row| key(db.organization(), row)).collect();
        let (mut jobs, legs) = (db.call_states(&keys).await?, db.legs_waited_for(&ids).await?);
        let engine = Engine {
            now_ms: self.clock.now_ms(),
            is_full: self.live.is_full(),
            is_sequential: simulation.sequential_calling,
        };
        let reason = |(row, key): (&&Row<ResultDoc>, String)| {
            let addresses = legs.get(&row.id).map(Vec::as_slice).unwrap_or_default();
            Some((row.id, engine.reason(&row.doc, jobs.remove(&key), addresses)?))
        };
        Ok(rows.iter().zip(keys).filter_map(reason).collect())
    }

    /// Returns a reason in words, with the setting that it follows from.
    pub(crate) fn queue_text(&self, reason: QueueReason) -> String {
        let text = match reason {
            QueueReason::MaxConcurrent => "the simulation makes as many calls at once as its max_concurrent allows",
            QueueReason::Sequential => "the run makes one call after the other, and its turn has not come",
            QueueReason::MaxCalls => "the engine makes as many calls at once as limits.max_calls allows",
            QueueReason::StartRate => "the engine begins calls no faster than limits.start_rate_per_s allows",
            QueueReason::AddressInUse => "another call uses the number or address that it needs",
            QueueReason::JourneyStep => "the step before it in its journey is not over",
            QueueReason::JourneyWait => "the pause after the step before it in its journey is not over",
            QueueReason::Retry => "another attempt follows after a pause",
            QueueReason::WorkspaceLimit => "the organization makes as many calls at once as its calls_at_once allows",
            QueueReason::ModelBudget => {
                let budget = self.budget_waited_for();
                return budget.unwrap_or_else(|| "the budget of the language model for today is used up".to_owned());
            }
        };
        text.to_owned()
    }
}

/// Returns the number of results that wait for each reason.
pub(crate) fn count_reasons(reasons: &HashMap<i64, QueueReason>) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    for reason in reasons.values() {
        *counts.entry(reason.as_str().to_owned()).or_default() += 1;
    }
    counts
}

fn key(organization: &str, row: &Row<ResultDoc>) -> String {
    CallJob { organization: organization.to_owned(), result_id: row.id, attempt: row.doc.body.attempt }.key()
}

/// Conditions besides the result that a reason depends on.
struct Engine {
    now_ms: i64,
    is_full: bool,
    is_sequential: bool,
}

impl Engine {
    /// Returns the reason why a result waits. `job`: its call job, when there is one; `addresses`: what it waits for
    /// that another result has.
    fn reason(&self, doc: &ResultDoc, job: Option<CallState>, addresses: &[String]) -> Option<QueueReason> {
        let in_order = addresses.iter().any(|address| is_in_order(address));
        let is_later_step = doc.body.journey_step.is_some_and(|step| step > 1);
        Some(match job {
            // A place or a budget is asked for only once the result's turn has come.
            _ if addresses.iter().any(|address| is_budget(address)) => QueueReason::ModelBudget,
            _ if addresses.iter().any(|address| is_places(address)) => QueueReason::WorkspaceLimit,
            _ if in_order => QueueReason::Sequential,
            _ if !addresses.is_empty() => QueueReason::AddressInUse,
            None if is_later_step && doc.body.status == ResultStatus::Initializing => QueueReason::JourneyStep,
            Some(job) if job.is_held && self.is_sequential => QueueReason::Sequential,
            Some(job) if job.is_held => QueueReason::MaxConcurrent,
            Some(job) if job.due_ms > self.now_ms && is_later_step => QueueReason::JourneyWait,
            Some(job) if job.due_ms > self.now_ms => QueueReason::Retry,
            Some(_) if self.is_full => QueueReason::MaxCalls,
            Some(job) if !job.is_claimed => QueueReason::StartRate,
            // It is being begun.
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use ringer_model::result::ResultBody;

    use super::*;

    #[test]
    fn the_first_reason_that_holds_is_told() {
        use QueueReason as Q;
        use ResultStatus::{Initializing, Queued};
        let job = |is_held, due_ms, is_claimed| Some(CallState { is_held, due_ms, is_claimed });
        for (status, step, job, addresses, is_full, is_sequential, expect) in [
            (Queued, None, None, &["in order: 7"][..], false, true, Some(Q::Sequential)),
            (Queued, None, None, &["dh-1-0", "in order: 7"], false, true, Some(Q::Sequential)),
            (Queued, None, None, &["+15550001111"], true, false, Some(Q::AddressInUse)),
            (Queued, None, None, &["places of: 7"], true, false, Some(Q::WorkspaceLimit)),
            (Queued, None, None, &["places of: 7", "model budget of: 7"], true, false, Some(Q::ModelBudget)),
            (Initializing, Some(2), None, &[], true, false, Some(Q::JourneyStep)),
            (Initializing, Some(2), job(false, 200, false), &[], true, false, Some(Q::JourneyWait)),
            (Queued, None, job(false, 200, false), &[], false, false, Some(Q::Retry)),
            (Initializing, Some(1), job(true, 100, false), &[], true, false, Some(Q::MaxConcurrent)),
            (Queued, None, job(true, 100, false), &[], false, true, Some(Q::Sequential)),
            (Queued, None, job(false, 100, false), &[], true, false, Some(Q::MaxCalls)),
            (Queued, None, job(false, 100, true), &[], true, false, Some(Q::MaxCalls)),
            (Queued, None, job(false, 100, false), &[], false, false, Some(Q::StartRate)),
            (Queued, None, job(false, 100, true), &[], false, false, None),
            (Queued, None, None, &[], false, false, None),
        ] {
            let body = ResultBody { status, journey_step: step, ..ResultBody::default() };
            let doc = ResultDoc { body, ..ResultDoc::default() };
            let addresses: Vec<String> = addresses.iter().map(|&address| address.to_owned()).collect();
            let engine = Engine { now_ms: 100, is_full, is_sequential };
            assert_eq!(engine.reason(&doc, job, &addresses), expect, "{status:?} {step:?} {job:?} {addresses:?}");
        }
    }
}
