//! Rows at rest. Every access to a customer's rows goes through an organization: `store.org(id).read()` or `.write()` gives
//! a [`Session`] that sees that organization alone.
//!
//! A write session is one transaction on the one writing connection: nothing of it is seen before `commit`, and dropping it
//! undoes it. Product rules are not here, they are in the service.

mod call_logs;
pub mod db;
pub mod idempotency;
mod issues;
mod keys;
mod migrate;
mod monitors;
mod record;
mod runs;
mod tables;

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Transaction;
use sqlx::pool::PoolConnection;
use tokio::sync::watch;

use self::db::{Cell, Connection, Driver, Pool};
use crate::error::{Error, Result};

pub(crate) use self::call_logs::LogFilter;
pub(crate) use self::issues::FailureRow;
pub use self::keys::KeyRow;
pub use self::record::{Key, Resource, Row};
pub(crate) use self::runs::Owner;
pub use self::runs::Tally;
pub use self::tables::Integrations;

/// A database. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    writer: Pool,
    readers: Pool,
    jobs: Arc<watch::Sender<u64>>,
}

impl Store {
    /// Opens the database file, makes it when absent, and brings its schema up to date.
    pub async fn open(path: &Path) -> Result<Store> {
        let (writer, readers) = db::open(path).await?;
        migrate::run(&writer).await?;
        Ok(Store { writer, readers, jobs: Arc::new(watch::Sender::new(0)) })
    }

    /// The rows of one organization.
    pub fn org<'a>(&'a self, organization: &'a str) -> Organization<'a> {
        Organization { store: self, id: organization }
    }

    /// Changes whenever a job may have become claimable by something that this process did.
    pub fn watch_jobs(&self) -> watch::Receiver<u64> {
        self.jobs.subscribe()
    }

    /// A session without an organization, for keys, jobs and recovery after a restart.
    pub(crate) async fn system(&self) -> Result<Session> {
        self.org("").write().await
    }

    /// True when the database answers.
    pub async fn is_alive(&self) -> bool {
        sqlx::query("SELECT 1").execute(&self.readers).await.is_ok()
    }

    /// Closes every connection; what was committed is on disk.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// The rows of one organization.
#[derive(Copy, Clone, Debug)]
pub struct Organization<'a> {
    store: &'a Store,
    id: &'a str,
}

impl Organization<'_> {
    /// A session that only reads.
    pub async fn read(&self) -> Result<Session> {
        let connection = self.store.readers.acquire().await.map_err(Error::internal)?;
        Ok(self.session(Link::Reader(connection)))
    }

    /// A session that reads and writes, in one transaction.
    pub async fn write(&self) -> Result<Session> {
        let transaction = self.store.writer.begin_with(db::BEGIN_WRITE).await.map_err(Error::internal)?;
        Ok(self.session(Link::Writer(transaction)))
    }

    fn session(&self, link: Link) -> Session {
        Session { organization: self.id.to_owned(), link, store: self.store.clone(), new_jobs: false }
    }
}

enum Link {
    Reader(PoolConnection<Driver>),
    Writer(Transaction<'static, Driver>),
}

/// A piece of work on one organization's rows.
pub struct Session {
    organization: String,
    link: Link,
    store: Store,
    new_jobs: bool,
}

impl Session {
    /// Whose rows these are.
    pub fn organization(&self) -> &str {
        &self.organization
    }

    /// Makes everything that was written seen and sure, and wakes workers when there are new jobs.
    pub async fn commit(self) -> Result<()> {
        if let Link::Writer(transaction) = self.link {
            transaction.commit().await.map_err(Error::internal)?;
        }
        if self.new_jobs {
            self.store.jobs.send_modify(|changes| *changes += 1);
        }
        Ok(())
    }

    /// Remembers that workers have something to look for after the commit.
    pub(crate) fn note_job(&mut self) {
        self.new_jobs = true;
    }

    fn connection(&mut self) -> &mut Connection {
        match &mut self.link {
            Link::Reader(connection) => connection,
            Link::Writer(transaction) => transaction,
        }
    }

    /// All rows of a query.
    pub(crate) async fn rows(&mut self, sql: &str, cells: &[Cell]) -> Result<Vec<db::Row>> {
        db::bound(sql, cells).fetch_all(self.connection()).await.map_err(Error::internal)
    }

    /// The first row of a query.
    pub(crate) async fn row(&mut self, sql: &str, cells: &[Cell]) -> Result<Option<db::Row>> {
        db::bound(sql, cells).fetch_optional(self.connection()).await.map_err(Error::internal)
    }

    /// The number of rows that a statement changed.
    pub(crate) async fn execute(&mut self, sql: &str, cells: &[Cell]) -> Result<u64> {
        let done = db::bound(sql, cells).execute(self.connection()).await.map_err(Error::internal)?;
        Ok(done.rows_affected())
    }
}

/// A document as text.
pub(crate) fn to_text<T: Serialize>(doc: &T) -> Result<String> {
    serde_json::to_string(doc).map_err(Error::internal)
}

/// A document from its text.
pub(crate) fn from_text<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(Error::internal)
}
