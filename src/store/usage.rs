//! Queries of periodic checks: minutes used, results that use them, work that has lost its job.

use ringer_base::error::Result;
use ringer_model::status::ResultStatus;

use super::Session;

impl Session {
    /// Adds milliseconds to the use of the organization in a month (`2026-01`).
    pub async fn add_usage(&mut self, month: &str, ms: i64) -> Result<()> {
        let sql = "INSERT INTO usage_months (org_id, month, used_ms) VALUES ($1, $2, $3) \
                   ON CONFLICT (org_id, month) DO UPDATE SET used_ms = usage_months.used_ms + $3";
        let cells = [self.organization().into(), month.into(), ms.into()];
        self.execute(sql, &cells).await.map(drop)
    }

    /// Returns the use of the organization in a month, in milliseconds.
    pub async fn used_ms(&mut self, month: &str) -> Result<i64> {
        let sql = "SELECT used_ms FROM usage_months WHERE org_id = $1 AND month = $2";
        let cells = [self.organization().into(), month.into()];
        self.number(sql, &cells).await
    }

    /// Returns the results of every organization whose conversation is running: (organization, id), by organization.
    pub async fn running_results(&mut self) -> Result<Vec<(String, i64)>> {
        let sql = "SELECT org_id, id FROM results WHERE status = $1 ORDER BY org_id, id";
        self.pairs(sql, &[ResultStatus::Running.as_str().into()]).await
    }

    /// Returns the results of every organization that wait without a call job: (organization, id), by organization.
    pub async fn results_without_job(&mut self) -> Result<Vec<(String, i64)>> {
        let sql = "SELECT r.org_id, r.id FROM results r WHERE r.status = $1 AND NOT EXISTS \
                   (SELECT 1 FROM jobs j WHERE j.job_key = 'call:' || r.id || ':1') ORDER BY r.org_id, r.id";
        self.pairs(sql, &[ResultStatus::Initializing.as_str().into()]).await
    }

    /// Returns the schedules of every organization that are due at some time and have no job: (organization, id).
    pub async fn lost_schedules(&mut self) -> Result<Vec<(String, String)>> {
        let sql = "SELECT s.org_id, s.id FROM schedules s WHERE s.next_ms IS NOT NULL AND NOT EXISTS \
                   (SELECT 1 FROM jobs j WHERE j.job_key = 'schedule:' || s.id || ':' || s.next_ms) ORDER BY s.id";
        self.pairs(sql, &[]).await
    }
}
