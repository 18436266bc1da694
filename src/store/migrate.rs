//! Brings a database to the newest schema. A migration is a numbered file that is applied once, in its own transaction.

use sqlx::Row as _;

use super::db::{self, Cell, Pool};
use crate::error::{Error, Result};

/// Every migration, in order.
const MIGRATIONS: &[(i64, &str)] =
    &[(1, include_str!("migrations/0001_first.sql")), (6, include_str!("migrations/0006_watch.sql"))];

/// Applies what is missing and answers the version that the database then has.
///
/// A database that is newer than this program is refused: it may hold what this program would destroy.
pub async fn run(writer: &Pool) -> Result<i64> {
    sqlx::query("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT PRIMARY KEY)")
        .execute(writer)
        .await
        .map_err(Error::internal)?;
    let row = sqlx::query("SELECT COALESCE(MAX(version), 0) FROM schema_version").fetch_one(writer).await;
    let found: i64 = row.map_err(Error::internal)?.get(0);
    let newest = MIGRATIONS.last().map_or(0, |(version, _)| *version);
    if found > newest {
        return Err(Error::internal(format!("the database has schema {found}, this program knows {newest}")));
    }
    for (version, sql) in MIGRATIONS.iter().filter(|(version, _)| *version > found) {
        let mut transaction = writer.begin_with(db::BEGIN_WRITE).await.map_err(Error::internal)?;
        let sql = sql.replace("{SERIAL}", db::SERIAL);
        sqlx::raw_sql(&sql).execute(&mut *transaction).await.map_err(Error::internal)?;
        db::bound("INSERT INTO schema_version (version) VALUES ($1)", &[Cell::from(*version)])
            .execute(&mut *transaction)
            .await
            .map_err(Error::internal)?;
        transaction.commit().await.map_err(Error::internal)?;
    }
    Ok(newest)
}
