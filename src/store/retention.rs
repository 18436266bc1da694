//! Queries for rows that are old enough to be deleted.

use ringer_base::error::{Error, Result};
use ringer_model::call_log::CallLogStatus;
use ringer_model::status::ResultStatus;
use uuid::Uuid;

use super::db::{Cell, Row};
use super::{RowKey, Session, Store};

/// A finished result, or a call log that was evaluated, of some organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Old<Id> {
    pub id: Id,
    pub organization: String,
    pub created_ms: i64,
}

impl Store {
    /// Returns up to `limit` finished results of all organizations that were made before `before_ms`, by id, after
    /// `after_id`.
    pub async fn old_results(&self, before_ms: i64, after_id: i64, limit: i64) -> Result<Vec<Old<i64>>> {
        let mut cells: Vec<Cell> = vec![before_ms.into(), after_id.into(), limit.into()];
        let finished = ResultStatus::ALL.iter().filter(|status| status.is_terminal());
        cells.extend(finished.map(|status| Cell::from(status.as_str())));
        let marks: Vec<String> = (4..=cells.len()).map(|n| format!("${n}")).collect();
        let sql = format!(
            "SELECT id, org_id, created_ms FROM results WHERE created_ms < $1 AND id > $2 AND status IN ({}) ORDER BY id LIMIT $3",
            marks.join(", ")
        );
        let mut db: Session = self.org("").read().await?;
        db.rows(&sql, &cells).await?.iter().map(of_row).collect()
    }

    /// Returns up to `limit` evaluated call logs of all organizations that were made before `before_ms`, the oldest
    /// first.
    ///
    /// `after` is the time and id of the last one returned before.
    pub async fn old_calls(&self, before_ms: i64, after: (i64, Uuid), limit: i64) -> Result<Vec<Old<Uuid>>> {
        let mut cells: Vec<Cell> = vec![before_ms.into(), after.0.into(), after.1.into(), limit.into()];
        let finished = CallLogStatus::ALL.iter().filter(|status| status.is_final());
        cells.extend(finished.map(|status| Cell::from(status.as_str())));
        let marks: Vec<String> = (5..=cells.len()).map(|n| format!("${n}")).collect();
        let sql = format!(
            "SELECT id, org_id, created_ms FROM call_logs WHERE created_ms < $1 \
             AND (created_ms > $2 OR (created_ms = $2 AND id > $3)) AND status IN ({}) \
             ORDER BY created_ms, id LIMIT $4",
            marks.join(", ")
        );
        let mut db: Session = self.org("").read().await?;
        db.rows(&sql, &cells).await?.iter().map(of_row).collect()
    }
}

fn of_row<Id: RowKey>(row: &Row) -> Result<Old<Id>> {
    let organization = row.try_get(1).map_err(Error::internal)?;
    Ok(Old { id: Id::of_row(row)?, organization, created_ms: row.try_get(2).map_err(Error::internal)? })
}
