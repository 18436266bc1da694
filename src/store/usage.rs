//! What sweeps look for: minutes used, results that use them, work that has lost its job.

use super::Session;
use super::db::Cell;
use super::record::Row;
use crate::error::{Error, Result};
use crate::model::result::ResultDoc;
use crate::model::status::ResultStatus;

impl Session {
    /// Adds to what the organization has used in a month (`2026-01`).
    pub(crate) async fn add_usage(&mut self, month: &str, ms: i64) -> Result<()> {
        let sql = "INSERT INTO usage_months (org_id, month, used_ms) VALUES ($1, $2, $3) \
                   ON CONFLICT (org_id, month) DO UPDATE SET used_ms = usage_months.used_ms + $3";
        let cells = [self.organization().into(), month.into(), ms.into()];
        self.execute(sql, &cells).await.map(drop)
    }

    /// What the organization has used in a month, milliseconds.
    pub(crate) async fn used_ms(&mut self, month: &str) -> Result<i64> {
        let sql = "SELECT used_ms FROM usage_months WHERE org_id = $1 AND month = $2";
        let cells = [self.organization().into(), month.into()];
        self.number(sql, &cells).await
    }

    /// Results of every organization whose conversation runs: (organization, id), by organization.
    pub(crate) async fn running_results(&mut self) -> Result<Vec<(String, i64)>> {
        let sql = "SELECT org_id, id FROM results WHERE status = $1 ORDER BY org_id, id";
        self.owned(sql, &[ResultStatus::Running.as_str().into()]).await
    }

    /// Results of every organization that wait without a call job: (organization, id), by organization.
    pub(crate) async fn stranded(&mut self) -> Result<Vec<(String, i64)>> {
        let sql = "SELECT r.org_id, r.id FROM results r WHERE r.status = $1 AND NOT EXISTS \
                   (SELECT 1 FROM jobs j WHERE j.job_key = 'call:' || r.id || ':1') ORDER BY r.org_id, r.id";
        self.owned(sql, &[ResultStatus::Initializing.as_str().into()]).await
    }

    /// Schedules of every organization that are due some time and have no job: (organization, id).
    pub(crate) async fn lost_schedules(&mut self) -> Result<Vec<(String, String)>> {
        let sql = "SELECT s.org_id, s.id FROM schedules s WHERE s.next_ms IS NOT NULL AND NOT EXISTS \
                   (SELECT 1 FROM jobs j WHERE j.job_key = 'schedule:' || s.id || ':' || s.next_ms) ORDER BY s.id";
        let rows = self.rows(sql, &[]).await?;
        rows.iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .collect::<Result<_, sqlx::Error>>()
            .map_err(Error::internal)
    }

    async fn owned(&mut self, sql: &str, cells: &[Cell]) -> Result<Vec<(String, i64)>> {
        let rows = self.rows(sql, cells).await?;
        rows.iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .collect::<Result<_, sqlx::Error>>()
            .map_err(Error::internal)
    }

    /// The result of the same repetition one journey step before, when there is one.
    pub(crate) async fn previous_step(&mut self, waiting: &ResultDoc) -> Result<Option<Row<ResultDoc>>> {
        let before = waiting.body.journey_step.map(|step| step - 1);
        Ok(self.steps_of(waiting).await?.into_iter().find(|row| row.doc.body.journey_step == before))
    }
}
