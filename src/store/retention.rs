//! Finding what is old enough to be deleted.

use super::db::Cell;
use super::{Session, Store};
use crate::error::{Error, Result};
use crate::model::status::ResultStatus;

/// A finished result of some organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OldResult {
    pub id: i64,
    pub organization: String,
}

impl Store {
    /// Up to `limit` finished results that were made before `before_ms`, of all organizations, by id, those after `after_id`.
    pub(crate) async fn old_results(&self, before_ms: i64, after_id: i64, limit: i64) -> Result<Vec<OldResult>> {
        let mut cells: Vec<Cell> = vec![before_ms.into(), after_id.into(), limit.into()];
        let finished = ResultStatus::ALL.iter().filter(|status| status.is_terminal());
        cells.extend(finished.map(|status| Cell::from(status.as_str())));
        let marks: Vec<String> = (4..=cells.len()).map(|n| format!("${n}")).collect();
        let sql = format!(
            "SELECT id, org_id FROM results WHERE created_ms < $1 AND id > $2 AND status IN ({}) ORDER BY id LIMIT $3",
            marks.join(", ")
        );
        let mut db: Session = self.org("").read().await?;
        let read = |row: &super::db::Row| -> Result<OldResult, sqlx::Error> {
            Ok(OldResult { id: row.try_get(0)?, organization: row.try_get(1)? })
        };
        db.rows(&sql, &cells).await?.iter().map(|row| read(row).map_err(Error::internal)).collect()
    }
}
