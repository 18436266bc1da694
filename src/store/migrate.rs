//! Migration of a database to the newest schema. A migration is a numbered file that is applied once; all missing ones
//! are applied in one transaction, while no other process writes.

use ringer_base::error::{Error, Result};

use super::db::{Cell, Database};

/// Text of a migration.
enum Text {
    /// The same for every database.
    Same(&'static str),
    /// Two texts where the dialects differ: for SQLite, for PostgreSQL.
    Each(&'static str, &'static str),
}

use Text::{Each, Same};

/// Every migration, in order.
const MIGRATIONS: &[(i64, Text)] = &[
    (1, Same(include_str!("migrations/0001_first.sql"))),
    (3, Same(include_str!("migrations/0003_custom_metrics.sql"))),
    (4, Same(include_str!("migrations/0004_scenarios.sql"))),
    (5, Same(include_str!("migrations/0005_hooks.sql"))),
    (6, Same(include_str!("migrations/0006_watch.sql"))),
    (8, Same(include_str!("migrations/0008_legs.sql"))),
    (10, Same(include_str!("migrations/0010_after.sql"))),
    (11, Same(include_str!("migrations/0011_in_force.sql"))),
    (12, Same(include_str!("migrations/0012_engine.sql"))),
    (13, Each(include_str!("migrations/0013_sparse.sqlite.sql"), include_str!("migrations/0013_sparse.postgres.sql"))),
    (14, Same(include_str!("migrations/0014_dials.sql"))),
    (15, Each(include_str!("migrations/0015_page.sqlite.sql"), include_str!("migrations/0015_page.postgres.sql"))),
    (17, Same(include_str!("migrations/0017_mails.sql"))),
    (18, Same(include_str!("migrations/0018_limits.sql"))),
    (19, Same(include_str!("migrations/0019_models.sql"))),
    (21, Same(include_str!("migrations/0021_trunk_numbers.sql"))),
    (
        22,
        Each(include_str!("migrations/0022_verdict.sqlite.sql"), include_str!("migrations/0022_verdict.postgres.sql")),
    ),
    (23, Same(include_str!("migrations/0023_artifacts.sql"))),
    (25, Same(include_str!("migrations/0025_engines.sql"))),
    (26, Same(include_str!("migrations/0026_bus.sql"))),
    (27, Same(include_str!("migrations/0027_judge_cards.sql"))),
    (28, Same(include_str!("migrations/0028_evidence_keys.sql"))),
    (29, Same(include_str!("migrations/0029_evidence_stamps.sql"))),
    (30, Same(include_str!("migrations/0030_traces.sql"))),
];

impl Text {
    fn of(&self, database: &Database) -> &'static str {
        match (self, database) {
            (Same(text), _) | (Each(text, _), Database::Sqlite(_)) | (Each(_, text), Database::Postgres(_)) => text,
        }
    }
}

/// Applies the missing migrations and returns the version that the database had before; 0: it was empty.
///
/// A database that is newer than this program is refused: it may hold data that this program would destroy.
pub(crate) async fn run(database: &Database) -> Result<i64> {
    // A table that is made anew is dropped for a moment, and rows that refer to it must stay.
    database.keep_references(false).await?;
    let found = apply(database).await?;
    database.keep_references(true).await?;
    Ok(found)
}

async fn apply(database: &Database) -> Result<i64> {
    let mut link = database.write().await?;
    link.script("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT PRIMARY KEY)").await?;
    let row = link.row("SELECT COALESCE(MAX(version), 0) FROM schema_version", &[]).await?;
    let found: i64 = row.map_or(Ok(0), |row| row.try_get(0)).map_err(Error::internal)?;
    let newest = MIGRATIONS.last().map_or(0, |(version, _)| *version);
    if found > newest {
        return Err(Error::internal(format!(
            "the database has schema {found}, this program knows {newest}: a newer release has worked on it. Start that release \
             or a later one, or this one on a copy of the database from before"
        )));
    }
    for (version, text) in MIGRATIONS.iter().filter(|(version, _)| *version > found) {
        link.script(&database.schema(text.of(database))).await?;
        link.execute("INSERT INTO schema_version (version) VALUES ($1)", &[Cell::from(*version)]).await?;
    }
    if found < newest && link.lacks_references().await? {
        return Err(Error::internal("a row of the database refers to one that is not there"));
    }
    link.commit().await?;
    Ok(found)
}
