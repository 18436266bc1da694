//! Queries about call logs.

use ringer_base::error::{Error, Result};
use ringer_model::call_log::{CallLogDoc, CallLogStatus};
use uuid::Uuid;

use super::Session;
use super::db::Cell;
use super::record::{Row, fields_of, read_row};

/// Selection of call logs; every part that is given must hold.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct LogFilter<'a> {
    /// Agent that took part in the call.
    pub agent_id: i64,
    /// Label of the agent version; `None`: any.
    pub label: Option<&'a str>,
    /// Earliest time of creation, milliseconds since 1970; `None`: any.
    pub since_ms: Option<i64>,
}

impl LogFilter<'_> {
    fn sql(&self, organization: &str) -> (String, Vec<Cell>) {
        let mut cells = vec![Cell::from(organization), self.agent_id.into()];
        let mut sql = "c.org_id = $1 AND c.agent_id = $2".to_owned();
        if let Some(label) = self.label {
            cells.push(label.into());
            sql.push_str(&format!(" AND c.label = ${}", cells.len()));
        }
        if let Some(since) = self.since_ms {
            cells.push(since.into());
            sql.push_str(&format!(" AND c.created_ms >= ${}", cells.len()));
        }
        (sql, cells)
    }
}

impl Session {
    /// Returns the call logs of every organization whose evaluation began at `begun_ms` or before: (organization, id).
    pub async fn evaluating_logs(&mut self, begun_ms: i64, now_ms: i64) -> Result<Vec<(String, Uuid)>> {
        let sql = "SELECT c.org_id, c.id FROM call_logs c WHERE c.status = $1 AND c.updated_ms <= $2 AND NOT EXISTS \
                   (SELECT 1 FROM jobs j WHERE j.kind = 'call_log' AND j.lease_ms > $3 \
                   AND j.job_key LIKE 'call_log:' || c.id || ':%') ORDER BY c.id";
        let cells = [CallLogStatus::Evaluating.as_str().into(), begun_ms.into(), now_ms.into()];
        let found: Vec<(String, String)> = self.pairs(sql, &cells).await?;
        let read = |(organization, id): (String, String)| {
            Uuid::parse_str(&id).map(|id| (organization, id)).map_err(Error::internal)
        };
        found.into_iter().map(read).collect()
    }

    /// Returns the number of call logs in the selection.
    pub async fn count_logs(&mut self, filter: &LogFilter<'_>) -> Result<i64> {
        let (filter, cells) = filter.sql(self.organization());
        self.number(&format!("SELECT COUNT(*) FROM call_logs c WHERE {filter}"), &cells).await
    }

    /// Returns the call logs of the selection from `offset` on, newest first.
    pub async fn logs(&mut self, filter: &LogFilter<'_>, limit: i64, offset: i64) -> Result<Vec<Row<CallLogDoc>>> {
        let (filter, mut cells) = filter.sql(self.organization());
        cells.extend([limit.into(), offset.into()]);
        let (fields, limit, offset) = (fields_of("c"), cells.len() - 1, cells.len());
        let sql = format!(
            "SELECT {fields} FROM call_logs c WHERE {filter} \
             ORDER BY c.created_ms DESC, c.id DESC LIMIT ${limit} OFFSET ${offset}"
        );
        self.rows(&sql, &cells).await?.iter().map(read_row).collect()
    }
}
