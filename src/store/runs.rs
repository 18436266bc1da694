//! Queries about runs and results that involve more than one row of one table.

use std::collections::HashMap;

use ringer_base::error::{Error, Result};
use ringer_model::agent_version::VersionDoc;
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::result::ResultDoc;
use ringer_model::run::{Counters, RunDoc};
use ringer_model::status::{Outcome, ResultStatus};
use ringer_model::verdict::VerdictWord;

use super::db::{self, Cell};
use super::record::{Row, fields_of, read_row};
use super::{Session, from_text, to_text};

/// Numbers of results of a run, by verdict and by state.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Numbers of results by verdict.
    pub counters: Counters,
    /// Results that are not terminal.
    pub open: i64,
}

/// Owner by which results are counted or listed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    Agent,
    Simulation,
    Run,
}

impl Owner {
    fn column(self) -> &'static str {
        match self {
            Owner::Agent => "agent_id",
            Owner::Simulation => "simulation_id",
            Owner::Run => "run_id",
        }
    }
}

impl Session {
    /// Returns the counters of one run.
    pub async fn tally(&mut self, run_id: i64) -> Result<Tally> {
        let tallies = self.tallies(Owner::Run, run_id).await?;
        Ok(tallies.get(&run_id).copied().unwrap_or_default())
    }

    /// Returns the counters of every run of `owner`, by run id.
    pub async fn tallies(&mut self, owner: Owner, id: i64) -> Result<HashMap<i64, Tally>> {
        let sql = format!(
            "SELECT {COUNTED}, COUNT(*) FROM results WHERE org_id = $1 AND {} = $2 GROUP BY {COUNTED}",
            owner.column()
        );
        let cells = [self.organization().into(), id.into()];
        tallies_in(&self.rows(&sql, &cells).await?)
    }

    /// True if a result of `owner` is not terminal.
    pub async fn has_open_results(&mut self, owner: Owner, id: i64) -> Result<bool> {
        let mut cells = vec![self.organization().into(), id.into()];
        let open = ResultStatus::ALL.iter().filter(|status| !status.is_terminal());
        cells.extend(open.map(|status| Cell::from(status.as_str())));
        let marks: Vec<String> = (3..=cells.len()).map(|n| format!("${n}")).collect();
        let (column, marks) = (owner.column(), marks.join(", "));
        let sql = format!("SELECT 1 FROM results WHERE org_id = $1 AND {column} = $2 AND status IN ({marks}) LIMIT 1");
        Ok(self.row(&sql, &cells).await?.is_some())
    }

    /// Returns the ids of the results of `owner`, ascending.
    pub async fn result_ids(&mut self, owner: Owner, id: i64) -> Result<Vec<i64>> {
        let sql = format!("SELECT id FROM results WHERE org_id = $1 AND {} = $2 ORDER BY id", owner.column());
        let cells = [self.organization().into(), id.into()];
        self.numbers(&sql, &cells).await
    }

    /// Returns the results of a run, by id ascending.
    pub async fn results_of_run(&mut self, run_id: i64) -> Result<Vec<Row<ResultDoc>>> {
        let fields = fields_of("r");
        let sql = format!("SELECT {fields} FROM results r WHERE r.org_id = $1 AND r.run_id = $2 ORDER BY r.id");
        let cells = [self.organization().into(), run_id.into()];
        self.rows(&sql, &cells).await?.iter().map(read_row).collect()
    }

    /// Returns the runs of a simulation that were made at `since_ms` or later.
    pub async fn runs_since(&mut self, simulation_id: i64, since_ms: i64) -> Result<Vec<Row<RunDoc>>> {
        let fields = fields_of("r");
        let sql = format!(
            "SELECT {fields} FROM runs r WHERE r.org_id = $1 AND r.simulation_id = $2 AND r.created_ms >= $3 \
             ORDER BY r.id"
        );
        let cells = [self.organization().into(), simulation_id.into(), since_ms.into()];
        self.rows(&sql, &cells).await?.iter().map(read_row).collect()
    }

    /// Returns the results of all journey steps of one repetition, in order; empty when there is no journey.
    pub async fn steps_of(&mut self, one: &ResultDoc) -> Result<Vec<Row<ResultDoc>>> {
        let body = &one.body;
        let (Some(_), Some(human)) = (body.journey_step, body.digital_human_id) else { return Ok(Vec::new()) };
        let fields = fields_of("r");
        let sql = format!(
            "SELECT {fields} FROM results r WHERE r.org_id = $1 AND r.run_id = $2 AND r.digital_human_id = $3 \
             ORDER BY r.id"
        );
        let cells = [self.organization().into(), body.simulation_run_id.into(), human.into()];
        let rows: Vec<Row<ResultDoc>> = self.rows(&sql, &cells).await?.iter().map(read_row).collect::<Result<_>>()?;
        Ok(rows.into_iter().filter(|row| row.doc.repetition == one.repetition).collect())
    }

    /// Returns the result of the same repetition whose journey step is `by` (1 or -1) after that of `from`; `None`:
    /// there is none.
    pub async fn step_beside(&mut self, from: &ResultDoc, by: i64) -> Result<Option<Row<ResultDoc>>> {
        let wanted = from.body.journey_step.map(|step| step + by);
        Ok(self.steps_of(from).await?.into_iter().find(|row| row.doc.body.journey_step == wanted))
    }

    /// Returns the results of every organization that were active when the engine stopped: (organization, id).
    pub async fn results_interrupted(&mut self) -> Result<Vec<(String, i64)>> {
        let sql = "SELECT org_id, id FROM results WHERE status IN ($1, $2) ORDER BY id";
        let cells: [Cell; 2] = [ResultStatus::Dispatched.as_str().into(), ResultStatus::Running.as_str().into()];
        self.pairs(sql, &cells).await
    }

    /// Returns the results of every organization that are being evaluated by a job that nobody holds at `now_ms`:
    /// (organization, id).
    pub async fn evaluating_results(&mut self, now_ms: i64) -> Result<Vec<(String, i64)>> {
        let sql = "SELECT r.org_id, r.id FROM results r WHERE r.status = $1 AND NOT EXISTS \
                   (SELECT 1 FROM jobs j WHERE j.kind = 'evaluate' AND j.lease_ms > $2 \
                   AND j.job_key LIKE 'evaluate:' || r.id || ':%') ORDER BY r.id";
        self.pairs(sql, &[ResultStatus::Evaluating.as_str().into(), now_ms.into()]).await
    }

    /// Returns the results of every organization whose conversation has ended and that changed since `since_ms`:
    /// (organization, id).
    ///
    /// The latest change is first.
    pub async fn recently_ended(&mut self, since_ms: i64, most: i64) -> Result<Vec<(String, i64)>> {
        let sql = "SELECT org_id, id FROM results WHERE status IN ($1, $2, $3) AND updated_ms >= $4 \
                   ORDER BY updated_ms DESC, id DESC LIMIT $5";
        let held = [ResultStatus::ConversationEnded, ResultStatus::Evaluating, ResultStatus::Completed];
        let [ended, evaluating, completed] = held.map(|status| Cell::from(status.as_str()));
        self.pairs(sql, &[ended, evaluating, completed, since_ms.into(), most.into()]).await
    }

    /// Returns the version of an agent that has the label `production`.
    pub async fn production_version(&mut self, agent_id: i64) -> Result<Option<Row<VersionDoc>>> {
        let fields = fields_of("v");
        let sql = format!(
            "SELECT {fields} FROM agent_versions v WHERE v.org_id = $1 AND v.agent_id = $2 AND v.production = 1"
        );
        let cells = [self.organization().into(), agent_id.into()];
        self.row(&sql, &cells).await?.as_ref().map(read_row).transpose()
    }

    /// Returns the results of every organization that are INITIALIZING although their call job is due: (organization,
    /// id), by organization.
    pub async fn waiting(&mut self, now_ms: i64) -> Result<Vec<(String, i64)>> {
        let sql = "SELECT r.org_id, r.id FROM jobs j JOIN results r ON j.job_key = 'call:' || r.id || ':1' \
                   WHERE r.status = $1 AND j.kind IN ('call', 'text') AND j.due_ms <= $2 ORDER BY r.org_id, r.id";
        let cells: [Cell; 2] = [ResultStatus::Initializing.as_str().into(), now_ms.into()];
        self.pairs(sql, &cells).await
    }

    /// Returns the Digital Humans linked to a simulation, in order of id.
    pub async fn digital_humans_of(&mut self, simulation_id: i64) -> Result<Vec<Row<DigitalHumanSpec>>> {
        let fields = fields_of("d");
        let sql = format!(
            "SELECT {fields} FROM digital_humans d JOIN simulation_digital_humans l ON l.digital_human_id = d.id \
             WHERE d.org_id = $1 AND l.simulation_id = $2 ORDER BY d.id"
        );
        let cells = [self.organization().into(), simulation_id.into()];
        self.rows(&sql, &cells).await?.iter().map(read_row).collect()
    }

    /// Returns the simulations that a Digital Human is linked to, oldest link first.
    pub async fn simulations_of(&mut self, digital_human_id: i64) -> Result<Vec<i64>> {
        let sql = "SELECT simulation_id FROM simulation_digital_humans WHERE org_id = $1 AND digital_human_id = $2 \
                   ORDER BY created_ms, simulation_id";
        let cells = [self.organization().into(), digital_human_id.into()];
        self.numbers(sql, &cells).await
    }

    /// Links a Digital Human to a simulation; false when the link exists.
    pub async fn link(&mut self, simulation_id: i64, digital_human_id: i64, now_ms: i64) -> Result<bool> {
        let sql = "INSERT INTO simulation_digital_humans (simulation_id, digital_human_id, org_id, created_ms) \
                   VALUES ($1, $2, $3, $4) ON CONFLICT (simulation_id, digital_human_id) DO NOTHING";
        let cells = [simulation_id.into(), digital_human_id.into(), self.organization().into(), now_ms.into()];
        Ok(self.execute(sql, &cells).await? > 0)
    }

    /// Removes a link; true when it existed.
    pub async fn unlink(&mut self, simulation_id: i64, digital_human_id: i64) -> Result<bool> {
        let sql = "DELETE FROM simulation_digital_humans \
                   WHERE simulation_id = $1 AND digital_human_id = $2 AND org_id = $3";
        let cells = [simulation_id.into(), digital_human_id.into(), self.organization().into()];
        Ok(self.execute(sql, &cells).await? > 0)
    }

    /// Stores a text (`timelines`, `transcripts` or `settings`) of a result, in place of an earlier one.
    pub async fn put_text<T: serde::Serialize>(&mut self, table: &str, result_id: i64, doc: &T) -> Result<()> {
        let sql = format!(
            "INSERT INTO {table} (result_id, org_id, doc) VALUES ($1, $2, $3) \
             ON CONFLICT (result_id) DO UPDATE SET doc = $3"
        );
        let cells = [result_id.into(), self.organization().into(), to_text(doc)?.into()];
        self.execute(&sql, &cells).await.map(drop)
    }

    /// Deletes the text that `put_text` stored.
    pub async fn drop_text(&mut self, table: &str, result_id: i64) -> Result<()> {
        let sql = format!("DELETE FROM {table} WHERE result_id = $1 AND org_id = $2");
        self.execute(&sql, &[result_id.into(), self.organization().into()]).await.map(drop)
    }

    /// Returns the text that `put_text` stored; `None`: there is none.
    pub async fn text<T: serde::de::DeserializeOwned>(&mut self, table: &str, result_id: i64) -> Result<Option<T>> {
        let sql = format!("SELECT doc FROM {table} WHERE result_id = $1 AND org_id = $2");
        let cells = [result_id.into(), self.organization().into()];
        let Some(row) = self.row(&sql, &cells).await? else { return Ok(None) };
        let doc: String = row.try_get(0).map_err(Error::internal)?;
        from_text(&doc).map(Some)
    }
}

/// Columns by which results are counted.
pub(super) const COUNTED: &str = "run_id, status, outcome, verdict";

/// Returns the counters of each run in rows of [`COUNTED`] and a number.
pub(super) fn tallies_in(rows: &[db::Row]) -> Result<HashMap<i64, Tally>> {
    let mut tallies = HashMap::<i64, Tally>::new();
    for row in rows {
        let status: String = row.try_get(1).map_err(Error::internal)?;
        let outcome: Option<String> = row.try_get(2).map_err(Error::internal)?;
        let word: Option<String> = row.try_get(3).map_err(Error::internal)?;
        let count: i64 = row.try_get(4).map_err(Error::internal)?;
        let tally = tallies.entry(row.try_get(0).map_err(Error::internal)?).or_default();
        let outcome = outcome.as_deref().map(Outcome::from);
        // Rows of the first releases have an outcome alone.
        let word = word.as_deref().map(VerdictWord::from).or(outcome.map(VerdictWord::of_outcome));
        tally.add(ResultStatus::parse(&status), outcome, word, count);
    }
    Ok(tallies)
}

impl Tally {
    /// Adds `count` results of one state and one verdict.
    fn add(&mut self, status: Option<ResultStatus>, outcome: Option<Outcome>, word: Option<VerdictWord>, count: i64) {
        self.counters.total_tests += count;
        if !status.is_some_and(ResultStatus::is_terminal) {
            self.open += count;
            return;
        }
        self.counters.tests_completed += count;
        if let Some(word) = word {
            self.counters.add_verdict(word, count);
        }
        match outcome {
            Some(Outcome::Passed) => self.counters.tests_passed += count,
            Some(Outcome::Failed) => self.counters.tests_failed += count,
            Some(Outcome::Cancelled) => self.counters.tests_cancelled += count,
            Some(Outcome::NotEvaluated) => self.counters.tests_not_evaluated += count,
            Some(Outcome::Unknown(_)) | None => {}
        }
    }
}
