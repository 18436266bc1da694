//! The database driver: connections, and everything in which databases differ. All other modules use the dialect that
//! SQLite and PostgreSQL share, and both give the same guarantees:
//!
//! - A write session is one transaction, and only one writes at a time: whatever it has read still holds at its commit.
//! - A failed statement makes its session unusable; it can then only be dropped.
//! - A commit outlives the process, on PostgreSQL also the server. On SQLite a loss of power may take the last
//!   transactions, but never breaks the file.
//! - A document's text is stored exactly as it was given.

mod cell;
mod group_commit;
mod postgres;
mod sqlite;
mod sqlite_error;

use std::path::{Path, PathBuf};

use ringer_base::config::Secret;
use ringer_base::error::{Error, Result};

use self::postgres::Postgres;
use self::sqlite::Sqlite;

pub use self::cell::{Cell, Column, FromCell, Row};

/// Place of the database.
#[derive(Clone, Debug)]
pub enum Location {
    /// A file of SQLite, made when it is absent.
    File(PathBuf),
    /// A database of a PostgreSQL server: `postgres://USER:PASSWORD@HOST:PORT/NAME`.
    Server(Secret),
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Location {
        Location::File(path.to_owned())
    }
}

impl From<&PathBuf> for Location {
    fn from(path: &PathBuf) -> Location {
        Location::File(path.clone())
    }
}

/// An open database. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Database {
    /// SQLite in this process.
    Sqlite(Sqlite),
    /// PostgreSQL on a server.
    Postgres(Box<Postgres>),
}

impl Database {
    /// Opens a database. The text of an error contains no password.
    pub async fn open(location: Location) -> Result<Database> {
        match location {
            Location::File(path) => Sqlite::open(path).map(Database::Sqlite),
            Location::Server(url) => Postgres::open(&url).await.map(|postgres| Database::Postgres(Box::new(postgres))),
        }
    }

    /// Returns a connection that reads; each statement sees what was committed before it.
    pub async fn reader(&self) -> Result<Link> {
        match self {
            Database::Sqlite(sqlite) => sqlite.reader().await.map(|reader| Link::SqliteReader(Box::new(reader))),
            Database::Postgres(postgres) => postgres.reader().await.map(Link::PostgresReader),
        }
    }

    /// Begins a transaction that writes, after waiting for other writers. Dropping it undoes it.
    pub async fn write(&self) -> Result<Link> {
        match self {
            Database::Sqlite(sqlite) => sqlite.write().await.map(Link::SqliteWriter),
            Database::Postgres(postgres) => postgres.write().await.map(Link::PostgresWriter),
        }
    }

    /// Rewrites these tables, so that nothing is left of overwritten rows.
    pub async fn scrub(&self, tables: &[&str]) -> Result<()> {
        match self {
            Database::Sqlite(sqlite) => sqlite.scrub(),
            Database::Postgres(postgres) => postgres.scrub(tables).await,
        }
    }

    /// True if several engines can work on it at the same time. A file belongs to one engine.
    pub fn is_shared(&self) -> bool {
        matches!(self, Database::Postgres(_))
    }

    /// Registers an engine. True: no other works on the database, and none is let in before [`Database::admit_others`].
    ///
    /// # Errors
    /// [`Error::Conflict`]: another engine works on the file.
    pub async fn enter(&self) -> Result<bool> {
        match self {
            Database::Sqlite(sqlite) => sqlite.enter().map(|()| true),
            Database::Postgres(postgres) => postgres.enter().await,
        }
    }

    /// Lets other engines in, after [`Database::enter`] has returned true.
    pub async fn admit_others(&self) -> Result<()> {
        match self {
            Database::Sqlite(_) => Ok(()),
            Database::Postgres(postgres) => postgres.admit_others().await,
        }
    }

    /// Returns the name of this engine for rows that others may find. [`Link::is_gone`] tells when they may take those
    /// over.
    pub async fn engine(&self) -> Result<&str> {
        match self {
            Database::Sqlite(_) => Ok(sqlite::ENGINE),
            Database::Postgres(postgres) => postgres.engine().await,
        }
    }

    /// Returns the time of the database as a term of a statement, in milliseconds since 1970. It is the same throughout
    /// a statement.
    pub fn now(&self) -> &'static str {
        match self {
            Database::Sqlite(_) => sqlite::NOW,
            Database::Postgres(_) => postgres::NOW,
        }
    }

    /// Renews the registration of this engine when its connection was lost.
    pub async fn stay(&self) -> Result<()> {
        match self {
            Database::Sqlite(_) => Ok(()),
            Database::Postgres(postgres) => postgres.stay().await,
        }
    }

    /// Switches the checks of references between rows on or off. They are off while tables are made anew, which only
    /// SQLite needs.
    pub async fn keep_references(&self, on: bool) -> Result<()> {
        match self {
            Database::Sqlite(sqlite) => sqlite.keep_references(on).await,
            Database::Postgres(_) => Ok(()),
        }
    }

    /// Closes every connection, once its user has returned it.
    pub async fn close(&self) {
        match self {
            Database::Sqlite(sqlite) => sqlite.close().await,
            Database::Postgres(postgres) => postgres.close().await,
        }
    }

    /// Returns the text of a migration in the dialect of this database.
    ///
    /// `{SERIAL}` is an integer key that counts up and is never used twice; texts are ordered by their bytes.
    pub fn schema(&self, migration: &str) -> String {
        match self {
            Database::Sqlite(_) => migration.replace("{SERIAL}", sqlite::SERIAL),
            Database::Postgres(_) => {
                migration.replace("{SERIAL}", postgres::SERIAL).replace(" TEXT", postgres::TEXT_BY_BYTES)
            }
        }
    }
}

/// A connection in use.
#[expect(missing_docs, reason = "the names say it")]
pub enum Link {
    SqliteReader(Box<sqlite::Reader>),
    SqliteWriter(group_commit::WriteLock),
    PostgresReader(postgres::Reader),
    PostgresWriter(postgres::Writer),
}

impl Link {
    /// True if it is a transaction that writes.
    pub fn writes(&self) -> bool {
        matches!(self, Link::SqliteWriter(_) | Link::PostgresWriter(_))
    }

    /// Returns all rows of a query.
    pub async fn rows(&mut self, sql: &str, cells: &[Cell]) -> Result<Vec<Row>> {
        match self {
            Link::SqliteReader(reader) => sqlite::rows(reader.connection(), sql, cells, usize::MAX),
            Link::SqliteWriter(lock) => sqlite::rows(lock.statement()?, sql, cells, usize::MAX),
            Link::PostgresReader(reader) => postgres::rows(reader, sql, cells).await,
            Link::PostgresWriter(writer) => postgres::rows(writer, sql, cells).await,
        }
    }

    /// Returns the first row of a query; `None`: it has no row.
    pub async fn row(&mut self, sql: &str, cells: &[Cell]) -> Result<Option<Row>> {
        match self {
            Link::SqliteReader(reader) => Ok(sqlite::rows(reader.connection(), sql, cells, 1)?.pop()),
            Link::SqliteWriter(lock) => Ok(sqlite::rows(lock.statement()?, sql, cells, 1)?.pop()),
            Link::PostgresReader(reader) => postgres::row(reader, sql, cells).await,
            Link::PostgresWriter(writer) => postgres::row(writer, sql, cells).await,
        }
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub async fn execute(&mut self, sql: &str, cells: &[Cell]) -> Result<u64> {
        match self {
            Link::SqliteReader(reader) => sqlite::execute(reader.connection(), sql, cells),
            Link::SqliteWriter(lock) => sqlite::execute(lock.statement()?, sql, cells),
            Link::PostgresReader(reader) => postgres::execute(reader, sql, cells).await,
            Link::PostgresWriter(writer) => postgres::execute(writer, sql, cells).await,
        }
    }

    /// Inserts one row into a table whose key `id` is counted, and returns that key.
    pub async fn insert_counted(&mut self, sql: &str, cells: &[Cell]) -> Result<i64> {
        match self {
            Link::SqliteWriter(lock) => sqlite::insert_counted(lock.statement()?, sql, cells),
            Link::PostgresWriter(writer) => postgres::insert_counted(writer, sql, cells).await,
            Link::SqliteReader(_) | Link::PostgresReader(_) => Err(Error::internal("a reader cannot insert")),
        }
    }

    /// Runs several statements without values, in a transaction that writes.
    pub async fn script(&mut self, sql: &str) -> Result<()> {
        match self {
            Link::SqliteWriter(lock) => sqlite::script(lock.statement()?, sql),
            Link::PostgresWriter(writer) => postgres::script(writer, sql).await,
            Link::SqliteReader(_) | Link::PostgresReader(_) => Err(Error::internal("a reader cannot run a script")),
        }
    }

    /// True if some row refers to one that does not exist, which [`Database::keep_references`] has let happen.
    pub async fn lacks_references(&mut self) -> Result<bool> {
        match self {
            Link::SqliteReader(_) | Link::SqliteWriter(_) => {
                Ok(self.row("PRAGMA foreign_key_check", &[]).await?.is_some())
            }
            Link::PostgresReader(_) | Link::PostgresWriter(_) => Ok(false),
        }
    }

    /// True if the engine of this name ([`Database::engine`]) no longer works on the database.
    ///
    /// The one engine of a file cleans up at its next start, so that the answer for a file is false.
    pub async fn is_gone(&mut self, engine: &str) -> Result<bool> {
        match self {
            Link::SqliteReader(_) | Link::SqliteWriter(_) => Ok(false),
            Link::PostgresReader(reader) => postgres::is_gone(reader, engine).await,
            Link::PostgresWriter(writer) => postgres::is_gone(writer, engine).await,
        }
    }

    /// Commits the transaction; does nothing for a reader.
    pub async fn commit(self) -> Result<()> {
        match self {
            Link::SqliteReader(_) | Link::PostgresReader(_) => Ok(()),
            Link::SqliteWriter(lock) => lock.commit().await,
            Link::PostgresWriter(writer) => postgres::commit(writer).await,
        }
    }
}
