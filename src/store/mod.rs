//! Rows at rest. Every access to a customer's rows goes through an organization: `store.org(id).read()` or `.write()` gives
//! a [`Session`] that sees that organization alone.
//!
//! A write session is one transaction, and write sessions take turns: nothing of it is seen before `commit`, and dropping it
//! undoes it. Product rules are not here, they are in the service.

mod call_logs;
mod communities;
pub mod db;
mod deliveries;
mod dials;
pub mod idempotency;
mod issues;
mod keys;
mod legs;
mod metrics;
mod migrate;
mod monitors;
mod openings;
mod record;
mod retention;
mod run_list;
mod runs;
mod scenarios;
mod sealing;
mod tables;
mod usage;
pub mod vault;
mod versions;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use self::db::{Cell, Database, FromCell, Link};
use self::vault::Vault;
use crate::error::{Error, Result};

pub(crate) use self::call_logs::LogFilter;
pub use self::db::Location;
pub(crate) use self::dials::{DialRow, DialScope};
pub(crate) use self::issues::FailureRow;
pub use self::keys::{Holder, KeyRow};
pub(crate) use self::legs::CallState;
pub(crate) use self::metrics::Metrics;
pub(crate) use self::openings::OpeningKey;
pub use self::record::{Key, Resource, Row};
pub(crate) use self::retention::Old;
pub(crate) use self::run_list::RunFilter;
pub(crate) use self::runs::Owner;
pub use self::runs::Tally;
pub use self::tables::Integrations;

/// A database. Cheap to clone: every session holds one.
#[derive(Clone, Debug)]
pub struct Store {
    parts: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    database: Database,
    jobs: watch::Sender<u64>,
    failures: Mutex<BTreeMap<String, u64>>,
    vault: Vault,
}

impl Store {
    /// Opens a database (a file is made when it is absent), brings its schema up to date, and seals what is not sealed by the key of
    /// `vault`. A vault that cannot open what is there is refused.
    pub async fn open(location: impl Into<Location>, vault: Vault) -> Result<Store> {
        let database = Database::open(location.into()).await?;
        let before = migrate::run(&database).await?;
        let parts = Parts { database, jobs: watch::Sender::new(0), failures: Mutex::default(), vault };
        let store = Store { parts: Arc::new(parts) };
        store.seal_all(before == 0).await?;
        Ok(store)
    }

    /// The rows of one organization.
    pub fn org<'a>(&'a self, organization: &'a str) -> Organization<'a> {
        Organization { store: self, id: organization }
    }

    /// Changes whenever a job may have become claimable by something that this process did.
    pub fn watch_jobs(&self) -> watch::Receiver<u64> {
        self.parts.jobs.subscribe()
    }

    /// How many results have failed by what this process committed, by error code.
    pub fn failures(&self) -> BTreeMap<String, u64> {
        self.parts.failures.lock().clone()
    }

    /// A session without an organization, for keys, jobs and recovery after a restart.
    pub(crate) async fn system(&self) -> Result<Session> {
        self.org("").write().await
    }

    /// True when the database answers.
    pub async fn is_alive(&self) -> bool {
        match self.parts.database.read().await {
            Ok(mut link) => link.row("SELECT 1", &[]).await.is_ok(),
            Err(_) => false,
        }
    }

    /// See [`Database::is_shared`].
    pub fn is_shared(&self) -> bool {
        self.parts.database.is_shared()
    }

    /// See [`Database::enter`].
    pub(crate) async fn enter(&self) -> Result<bool> {
        self.parts.database.enter().await
    }

    /// See [`Database::admit_others`].
    pub(crate) async fn admit_others(&self) -> Result<()> {
        self.parts.database.admit_others().await
    }

    /// See [`Database::stay`].
    pub(crate) async fn stay(&self) -> Result<()> {
        self.parts.database.stay().await
    }

    /// Closes every connection; what was committed is on disk.
    pub async fn close(&self) {
        self.parts.database.close().await;
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
        Ok(self.session(self.store.parts.database.read().await?))
    }

    /// A session that reads and writes, in one transaction.
    pub async fn write(&self) -> Result<Session> {
        Ok(self.session(self.store.parts.database.write().await?))
    }

    fn session(&self, link: Link) -> Session {
        let store = self.store.clone();
        Session { organization: self.id.to_owned(), link, store, new_jobs: false, failed: Vec::new(), spoilt: false }
    }
}

/// A piece of work on one organization's rows.
pub struct Session {
    organization: String,
    link: Link,
    store: Store,
    new_jobs: bool,
    /// Error codes of results that fail by this session.
    failed: Vec<String>,
    /// A statement has failed.
    spoilt: bool,
}

impl Session {
    /// Whose rows these are.
    pub fn organization(&self) -> &str {
        &self.organization
    }

    /// Makes everything that was written seen and sure, and wakes workers when there are new jobs. Refused after a statement
    /// that failed.
    pub async fn commit(self) -> Result<()> {
        self.commit_with(None).await
    }

    async fn commit_all(self) -> Result<()> {
        if self.spoilt {
            return Err(Error::internal("a statement of this session has failed"));
        }
        self.link.commit().await?;
        if self.new_jobs {
            self.store.parts.jobs.send_modify(|changes| *changes += 1);
        }
        let mut failures = self.store.parts.failures.lock();
        for code in self.failed {
            *failures.entry(code).or_default() += 1;
        }
        Ok(())
    }

    /// Remembers that workers have something to look for after the commit.
    pub(crate) fn note_job(&mut self) {
        self.new_jobs = true;
    }

    /// Counts a failed result, once this is committed.
    pub(crate) fn note_failure(&mut self, error_code: &str) {
        self.failed.push(error_code.to_owned());
    }

    fn vault(&self) -> &Vault {
        &self.store.parts.vault
    }

    /// All rows of a query.
    pub(crate) async fn rows(&mut self, sql: &str, cells: &[Cell]) -> Result<Vec<db::Row>> {
        self.link.rows(sql, cells).await.inspect_err(|_| self.spoilt = true)
    }

    /// All rows of a query of two columns.
    pub(crate) async fn pairs<A, B>(&mut self, sql: &str, cells: &[Cell]) -> Result<Vec<(A, B)>>
    where
        A: for<'c> FromCell<'c>,
        B: for<'c> FromCell<'c>,
    {
        let rows = self.rows(sql, cells).await?;
        let pair = |row: &db::Row| Ok((row.try_get(0)?, row.try_get(1)?));
        rows.iter().map(pair).collect::<std::result::Result<_, sqlx::Error>>().map_err(Error::internal)
    }

    /// The first row of a query.
    pub(crate) async fn row(&mut self, sql: &str, cells: &[Cell]) -> Result<Option<db::Row>> {
        self.link.row(sql, cells).await.inspect_err(|_| self.spoilt = true)
    }

    /// The number of rows that a statement changed.
    pub(crate) async fn execute(&mut self, sql: &str, cells: &[Cell]) -> Result<u64> {
        self.link.execute(sql, cells).await.inspect_err(|_| self.spoilt = true)
    }

    /// The counted key of the row that a statement inserted.
    async fn insert_counted(&mut self, sql: &str, cells: &[Cell]) -> Result<i64> {
        self.link.insert_counted(sql, cells).await.inspect_err(|_| self.spoilt = true)
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
