//! The database driver: connections, and the few words in which databases differ. Everything above speaks the dialect that
//! SQLite and PostgreSQL share.

use std::path::Path;
use std::str::FromStr as _;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use uuid::Uuid;

use crate::error::{Error, Result};

/// The driver in use.
pub type Driver = sqlx::Sqlite;
/// One connection.
pub type Connection = sqlx::SqliteConnection;
/// One row.
pub type Row = sqlx::sqlite::SqliteRow;
/// Many connections.
pub type Pool = sqlx::SqlitePool;

/// An integer key that counts up and is never used twice.
pub const SERIAL: &str = "INTEGER PRIMARY KEY AUTOINCREMENT";

/// Starts a transaction that will write.
pub const BEGIN_WRITE: &str = "BEGIN IMMEDIATE";

/// Connections that read at the same time.
const READERS: u32 = 4;

/// Opens (and makes, when absent) the database file: one writer, several readers.
pub async fn open(path: &Path) -> Result<(Pool, Pool)> {
    let options = SqliteConnectOptions::from_str("sqlite:")
        .map_err(Error::internal)?
        .filename(path)
        .create_if_missing(true)
        .foreign_keys(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal);
    let writer = SqlitePoolOptions::new().max_connections(1).connect_with(options.clone()).await;
    let writer = writer.map_err(Error::internal)?;
    let options = options.pragma("query_only", "ON");
    let readers = SqlitePoolOptions::new().max_connections(READERS).connect_lazy_with(options);
    Ok((writer, readers))
}

/// Writes the database anew, so that nothing is left in it of what was overwritten.
pub async fn scrub(writer: &Pool) -> Result<()> {
    for sql in ["VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"] {
        sqlx::query(sql).execute(writer).await.map_err(Error::internal)?;
    }
    Ok(())
}

/// A value given to a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// An integer or NULL.
    Int(Option<i64>),
    /// A text or NULL.
    Text(Option<String>),
}

impl From<i64> for Cell {
    fn from(value: i64) -> Cell {
        Cell::Int(Some(value))
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Cell {
        Cell::Int(Some(i64::from(value)))
    }
}

impl From<Option<i64>> for Cell {
    fn from(value: Option<i64>) -> Cell {
        Cell::Int(value)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Cell {
        Cell::Text(Some(value.to_owned()))
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Cell {
        Cell::Text(Some(value))
    }
}

impl From<Option<String>> for Cell {
    fn from(value: Option<String>) -> Cell {
        Cell::Text(value)
    }
}

impl From<Uuid> for Cell {
    fn from(value: Uuid) -> Cell {
        Cell::Text(Some(value.to_string()))
    }
}

impl From<Option<Uuid>> for Cell {
    fn from(value: Option<Uuid>) -> Cell {
        Cell::Text(value.map(|id| id.to_string()))
    }
}

/// A statement with its values bound, `$1` first.
pub fn bound<'q>(sql: &'q str, cells: &[Cell]) -> sqlx::query::Query<'q, Driver, sqlx::sqlite::SqliteArguments<'q>> {
    cells.iter().cloned().fold(sqlx::query(sql), |query, cell| match cell {
        Cell::Int(value) => query.bind(value),
        Cell::Text(value) => query.bind(value),
    })
}
