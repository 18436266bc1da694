//! Looking again at interrupted turns: other calls of the run tell how long a turn of the agent is that nobody
//! interrupts.

use ringer_base::error::Result;
use ringer_judge::{Grounds, Measured, YIELDING, has_open_stops, rejudge_metrics};
use ringer_model::heard_turn::HeardTurn;
use ringer_model::issue::SourceKind;
use ringer_model::result::ResultDoc;
use ringer_model::run::RunDoc;
use ringer_model::simulation::SimulationSpec;
use ringer_store::{Row, Session};

use super::Evaluations;
use crate::conversation::verdict;

/// Time before a call in which runs of its simulation are repetitions of it (1 h), in milliseconds.
const REPEATED_WITHIN_MS: i64 = 3_600_000;
/// Largest number of runs whose calls are compared.
const RUNS_MAX: usize = 50;

impl Evaluations {
    /// Returns the turns of the agent that other calls of the same Digital Human heard whole, and those of the earlier
    /// run that its run names.
    pub async fn heard_elsewhere(&self, organization: &str, result_id: i64) -> Result<Vec<HeardTurn>> {
        let mut db = self.store.org(organization).read().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        let run = db.get::<RunDoc>(row.doc.body.simulation_run_id).await?;
        let mut heard = run.doc.overrides.heard_whole.unwrap_or_default();
        let others = repetitions(&mut db, &row).await?.into_iter().filter(|other| other.id != row.id);
        heard.extend(others.flat_map(|other| other.doc.heard_whole));
        Ok(heard)
    }

    /// Returns the ids of the finished calls of the same Digital Human, this one included, of which it is not known
    /// whether an interrupted turn was cut.
    pub async fn open_stops(&self, organization: &str, result_id: i64) -> Result<Vec<i64>> {
        let mut db = self.store.org(organization).read().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        let all = repetitions(&mut db, &row).await?;
        let is_open = |row: &Row<ResultDoc>| row.doc.has_open_stops && row.doc.body.status.is_terminal();
        Ok(all.into_iter().filter(is_open).map(|row| row.id).collect())
    }

    /// Keeps how the agent yielded, and judges again what stands on it.
    pub async fn settle_stops(&self, organization: &str, result_id: i64, measured: Measured) -> Result<()> {
        let mut db = self.store.org(organization).write().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        if !row.doc.has_open_stops || !row.doc.body.status.is_terminal() {
            return Ok(());
        }
        let before = row.doc.clone();
        let simulation = db.get::<SimulationSpec>(row.doc.body.simulation_id).await?.doc;
        settle(&mut row.doc, measured, &simulation);
        if row.doc == before {
            return Ok(());
        }
        db.update(row.id, &row.doc, self.clock.now_ms(), None).await?;
        self.outbox.tell_evaluated(&mut db, &row).await?;
        self.outbox.announce_finished(&mut db, SourceKind::Simulation, row.id).await?;
        self.conversations.complete_run(&mut db, row.doc.body.simulation_run_id).await?;
        db.commit().await?;
        self.live.note_change(result_id);
        Ok(())
    }
}

/// Enters how the agent yielded into a result that is over.
fn settle(doc: &mut ResultDoc, measured: Measured, simulation: &SimulationSpec) {
    let Measured { metrics, open, .. } = measured;
    let body = &mut doc.body;
    // Values keep their places, so that a look that finds nothing new changes nothing.
    let mut found: Vec<_> = metrics.into_iter().filter(|metric| YIELDING.contains(&metric.name.as_str())).collect();
    body.metrics.retain_mut(|metric| {
        let at = found.iter().position(|new| new.name == metric.name);
        match at {
            Some(at) => *metric = found.remove(at),
            None => return !YIELDING.contains(&metric.name.as_str()),
        }
        true
    });
    body.metrics.append(&mut found);
    let grounds = Grounds {
        metrics: &body.metrics,
        open: &open,
        own_faults: &body.own_faults,
        untrusted: body.engine_quality.as_ref().and_then(|quality| quality.untrusted_reason.as_deref()),
        ..Grounds::default()
    };
    rejudge_metrics(&mut body.expectations, &YIELDING, &grounds);
    verdict::settle(doc, simulation);
    doc.has_open_stops = has_open_stops(&open);
}

/// Returns the calls of the same Digital Human and version of the agent: those of its run, and of the latest runs of
/// its simulation in the hour around it.
async fn repetitions(db: &mut Session, row: &Row<ResultDoc>) -> Result<Vec<Row<ResultDoc>>> {
    let body = &row.doc.body;
    let mut runs = db.runs_since(body.simulation_id, row.created_ms - REPEATED_WITHIN_MS).await?;
    runs.retain(|run| run.created_ms <= row.created_ms + REPEATED_WITHIN_MS);
    let mut ids: Vec<i64> = runs.iter().rev().take(RUNS_MAX).map(|run| run.id).collect();
    if !ids.contains(&body.simulation_run_id) {
        ids.push(body.simulation_run_id);
    }
    let is_same = |other: &ResultDoc| {
        other.body.digital_human_id == body.digital_human_id
            && other.body.agent_version_id == body.agent_version_id
            && other.body.journey_step == body.journey_step
    };
    let mut found = Vec::new();
    for id in ids {
        found.extend(db.results_of_run(id).await?.into_iter().filter(|other| is_same(&other.doc)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use ringer_judge::OpenMetric;
    use ringer_model::expectation::ExpectationResult;
    use ringer_model::result::{MetricValue, ResultBody};
    use ringer_model::status::{Outcome, ResultStatus};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_other_calls_show_changes_the_outcome() {
        let expected =
            json!({ "expected": { "metric": "yield_rate", "at_least": 1 }, "measured": null, "status": "unknown" });
        let expected: ExpectationResult = serde_json::from_value(expected).expect("a result");
        let value = |value: f64| MetricValue { name: "yield_rate".into(), value: json!(value), note: None };
        let open = || OpenMetric { name: "yield_rate", range: None, reason: "not known".into() };
        for (metrics, open, outcome) in [
            (vec![value(1.0)], vec![], Outcome::Passed),
            (vec![value(0.5)], vec![], Outcome::Failed),
            (vec![], vec![open()], Outcome::NotEvaluated),
        ] {
            let body = ResultBody {
                status: ResultStatus::Completed,
                expectations: vec![expected.clone()],
                metrics: vec![MetricValue { name: "num_turns".into(), value: json!(2), note: None }],
                ..ResultBody::default()
            };
            let mut doc = ResultDoc { body, has_open_stops: true, ..ResultDoc::default() };
            let (count, is_open) = (1 + metrics.len(), !open.is_empty());
            settle(&mut doc, Measured { metrics, open, ..Measured::default() }, &SimulationSpec::default());
            assert_eq!((doc.body.outcome, doc.body.metrics.len(), doc.has_open_stops), (Some(outcome), count, is_open));
        }
    }
}
