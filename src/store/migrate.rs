//! Brings a database to the newest schema. A migration is a numbered file that is applied once; all that are missing are applied
//! in one transaction, while no other process writes.

use super::db::{Cell, Database};
use crate::error::{Error, Result};

/// Every migration, in order.
const MIGRATIONS: &[(i64, &str)] = &[
    (1, include_str!("migrations/0001_first.sql")),
    (3, include_str!("migrations/0003_custom_metrics.sql")),
    (4, include_str!("migrations/0004_scenarios.sql")),
    (5, include_str!("migrations/0005_hooks.sql")),
    (6, include_str!("migrations/0006_watch.sql")),
    (8, include_str!("migrations/0008_legs.sql")),
    (10, include_str!("migrations/0010_after.sql")),
    (11, include_str!("migrations/0011_in_force.sql")),
    (12, include_str!("migrations/0012_engine.sql")),
];

/// Applies what is missing and answers the version that the database had before; 0: it was empty.
///
/// A database that is newer than this program is refused: it may hold what this program would destroy.
pub async fn run(database: &Database) -> Result<i64> {
    let mut link = database.write().await?;
    link.script("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT PRIMARY KEY)").await?;
    let row = link.row("SELECT COALESCE(MAX(version), 0) FROM schema_version", &[]).await?;
    let found: i64 = row.map_or(Ok(0), |row| row.try_get(0)).map_err(Error::internal)?;
    let newest = MIGRATIONS.last().map_or(0, |(version, _)| *version);
    if found > newest {
        return Err(Error::internal(format!("the database has schema {found}, this program knows {newest}")));
    }
    for (version, sql) in MIGRATIONS.iter().filter(|(version, _)| *version > found) {
        link.script(&database.schema(sql)).await?;
        link.execute("INSERT INTO schema_version (version) VALUES ($1)", &[Cell::from(*version)]).await?;
    }
    link.commit().await?;
    Ok(found)
}
