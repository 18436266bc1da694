//! Rows at rest. Every access to a customer's rows goes through an organization: `store.org(id).read()` or `.write()`
//! returns a [`Session`] that sees that organization alone.
//!
//! A write session is one transaction, and only one is open at a time: others see its changes after `commit`, and
//! dropping it undoes them. Product rules are not here, they are in the service.

pub mod artifacts;
mod bus;
mod call_logs;
mod communities;
pub mod db;
mod deliveries;
mod dials;
mod engines;
pub mod events;
mod evidence_keys;
pub mod idempotency;
mod issues;
mod judge_cards;
mod keys;
mod legs;
mod mails;
mod metrics;
mod migrate;
mod model_usage;
mod monitors;
mod openings;
mod organizations;
pub mod queue;
mod record;
mod retention;
mod run_list;
mod runs;
mod scenarios;
mod sealing;
mod tables;
mod traces;
mod trunk_numbers;
mod usage;
pub mod vault;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use ringer_base::clock::Clock;
use ringer_base::error::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};

use self::db::{Cell, Database, FromCell, Link};
use self::traces::TraceQueue;
use self::vault::Vault;

pub use self::call_logs::LogFilter;
pub use self::db::Location;
pub use self::dials::{DialRow, DialScope};
pub use self::engines::{EngineFacts, EngineRow, Heard};
pub use self::evidence_keys::EvidenceKey;
pub use self::issues::FailureRow;
pub use self::keys::{Holder, KeyRow, organizations_at};
pub use self::legs::CallState;
pub use self::mails::{MailOwner, MailRow};
pub use self::metrics::Metrics;
pub use self::model_usage::ModelSum;
pub use self::openings::OpeningKey;
pub use self::record::{Resource, Row, RowKey};
pub use self::retention::Old;
pub use self::run_list::RunFilter;
pub use self::runs::Owner;
pub use self::runs::Tally;
pub use self::tables::Integrations;
pub use self::traces::Traced;
pub use self::trunk_numbers::TrunkNumber;

/// An open database with its key. Cheap to clone: every session holds one.
#[derive(Clone, Debug)]
pub struct Store {
    parts: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    database: Database,
    jobs: watch::Sender<u64>,
    wakes: Wakes,
    failures: Mutex<BTreeMap<String, u64>>,
    vault: Vault,
    /// Name of the data folder of this engine; empty where its files need no name.
    place: OnceLock<String>,
    /// Clock of the process; empty before it is known.
    clock: OnceLock<Clock>,
    /// True while a lease that has ended may be one that could not be renewed.
    unsettled: AtomicBool,
    /// Results whose traces are to be sent.
    traced: TraceQueue,
}

/// Kinds of jobs that other engines are to hear of.
#[derive(Debug, Default)]
struct Wakes {
    kinds: Mutex<BTreeSet<String>>,
    noted: Notify,
}

impl Store {
    /// Opens a database (a file is made when absent), updates its schema, and seals whatever is not sealed by the key
    /// of `vault`.
    ///
    /// # Errors
    /// The database cannot be opened or is newer than this program, or the vault cannot open its secrets.
    pub async fn open(location: impl Into<Location>, vault: Vault) -> Result<Store> {
        let database = Database::open(location.into()).await?;
        let before = migrate::run(&database).await?;
        let parts = Parts {
            database,
            jobs: watch::Sender::new(0),
            wakes: Wakes::default(),
            failures: Mutex::default(),
            vault,
            place: OnceLock::new(),
            clock: OnceLock::new(),
            unsettled: AtomicBool::new(false),
            traced: TraceQueue::default(),
        };
        let store = Store { parts: Arc::new(parts) };
        store.seal_all(before == 0).await?;
        Ok(store)
    }

    /// Returns access to the rows of one organization.
    pub fn org<'a>(&'a self, organization: &'a str) -> Organization<'a> {
        Organization { store: self, id: organization }
    }

    /// Returns a counter that changes whenever a job may have become claimable through this process.
    pub fn watch_jobs(&self) -> watch::Receiver<u64> {
        self.parts.jobs.subscribe()
    }

    /// Returns the number of failed results that this process committed, by error code.
    pub fn failures(&self) -> BTreeMap<String, u64> {
        self.parts.failures.lock().clone()
    }

    /// Opens a session without an organization, for keys, jobs and recovery after a restart.
    pub async fn system(&self) -> Result<Session> {
        self.org("").write().await
    }

    /// True if the database answers.
    pub async fn is_alive(&self) -> bool {
        match self.parts.database.reader().await {
            Ok(mut link) => link.row("SELECT 1", &[]).await.is_ok(),
            Err(_) => false,
        }
    }

    /// True if several engines can work on the database; see [`Database::is_shared`].
    pub fn is_shared(&self) -> bool {
        self.parts.database.is_shared()
    }

    /// Returns the name of this engine at the database; see [`Database::engine`].
    pub async fn engine(&self) -> Result<&str> {
        self.parts.database.engine().await
    }

    /// Registers this engine at the database; see [`Database::enter`].
    pub async fn enter(&self) -> Result<bool> {
        self.parts.database.enter().await
    }

    /// Lets other engines in; see [`Database::admit_others`].
    pub async fn admit_others(&self) -> Result<()> {
        self.parts.database.admit_others().await
    }

    /// Renews the registration of this engine; see [`Database::stay`].
    pub async fn stay(&self) -> Result<()> {
        self.parts.database.stay().await
    }

    /// Returns the name of the data folder of this engine; `None`: its files go to no other place.
    pub fn place(&self) -> Option<&str> {
        self.parts.place.get().map(String::as_str)
    }

    /// Closes every connection; committed changes are on disk.
    pub async fn close(&self) {
        self.parts.database.close().await;
    }
}

/// End of the names of folders that are being removed.
pub const GONE: &str = ".gone";

/// Gives folders other names, and returns both names of those that were there.
async fn move_away(folders: &[PathBuf]) -> Vec<(PathBuf, PathBuf)> {
    let mut moved = Vec::new();
    for folder in folders {
        let away = folder.with_extension(format!("{}{GONE}", ringer_base::clock::new_id()));
        match tokio::fs::rename(folder, &away).await {
            Ok(()) => moved.push((folder.clone(), away)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(folder = %folder.display(), %error, "failed to move what was left"),
        }
    }
    moved
}

/// Removes a folder with all that is in it.
async fn remove_folder(folder: &Path) {
    if let Err(error) = tokio::fs::remove_dir_all(folder).await {
        tracing::warn!(folder = %folder.display(), %error, "failed to remove what was left");
    }
}

/// Access to the rows of one organization.
#[derive(Copy, Clone, Debug)]
pub struct Organization<'a> {
    store: &'a Store,
    id: &'a str,
}

impl Organization<'_> {
    /// Opens a session that only reads.
    pub async fn read(&self) -> Result<Session> {
        Ok(self.session(self.store.parts.database.reader().await?))
    }

    /// Opens a session that reads and writes, in one transaction.
    pub async fn write(&self) -> Result<Session> {
        Ok(self.session(self.store.parts.database.write().await?))
    }

    fn session(&self, link: Link) -> Session {
        let store = self.store.clone();
        Session {
            organization: self.id.to_owned(),
            link,
            store,
            new_jobs: false,
            woken: BTreeSet::new(),
            failed: Vec::new(),
            traced: Vec::new(),
            leftovers: Vec::new(),
            spoilt: false,
        }
    }
}

/// A unit of work on the rows of one organization.
pub struct Session {
    organization: String,
    link: Link,
    store: Store,
    new_jobs: bool,
    /// Kinds of jobs that other engines are told of.
    woken: BTreeSet<String>,
    /// Error codes of results that this session makes fail.
    failed: Vec<String>,
    /// Results whose traces are to be sent.
    traced: Vec<Traced>,
    /// Folders that are removed once the changes are committed.
    leftovers: Vec<PathBuf>,
    /// True: a statement has failed, and nothing can be committed.
    spoilt: bool,
}

impl Session {
    /// Returns the organization whose rows the session sees.
    pub fn organization(&self) -> &str {
        &self.organization
    }

    /// Commits all changes, and wakes workers when there are new jobs.
    ///
    /// # Errors
    /// A statement of this session has failed before, or the commit fails.
    pub async fn commit(self) -> Result<()> {
        self.commit_with(None).await
    }

    async fn commit_all(self) -> Result<()> {
        if self.spoilt {
            return Err(Error::internal("a statement of this session has failed"));
        }
        // Moved before the commit: whoever claims the new jobs writes to the same places.
        let moved = move_away(&self.leftovers).await;
        if let Err(error) = self.link.commit().await {
            for (folder, away) in moved {
                let _ = tokio::fs::rename(away, folder).await;
            }
            return Err(error);
        }
        for (_, away) in moved {
            remove_folder(&away).await;
        }
        if self.new_jobs {
            self.store.wake_workers();
        }
        if !self.woken.is_empty() {
            self.store.parts.wakes.kinds.lock().extend(self.woken);
            self.store.parts.wakes.noted.notify_one();
        }
        self.store.add_traced(self.traced);
        let mut failures = self.store.parts.failures.lock();
        for code in self.failed {
            *failures.entry(code).or_default() += 1;
        }
        Ok(())
    }

    /// Makes the commit wake workers of this process, which then have something to look for.
    pub fn note_job(&mut self) {
        self.new_jobs = true;
    }

    /// Makes the commit wake workers of all engines, since a job of this kind may be claimable.
    pub fn note_due(&mut self, kind: &str) {
        self.new_jobs = true;
        self.woken.insert(kind.to_owned());
    }

    /// Removes a folder once the changes are committed, and never if they are not.
    pub fn remove_after_commit(&mut self, folder: PathBuf) {
        self.leftovers.push(folder);
    }

    /// Counts a failed result at the commit.
    pub fn note_failure(&mut self, error_code: &str) {
        self.failed.push(error_code.to_owned());
    }

    fn vault(&self) -> &Vault {
        &self.store.parts.vault
    }

    /// Returns all rows of a query.
    pub async fn rows(&mut self, sql: &str, cells: &[Cell]) -> Result<Vec<db::Row>> {
        self.link.rows(sql, cells).await.inspect_err(|_| self.spoilt = true)
    }

    /// Returns all rows of a query of two columns.
    pub async fn pairs<A, B>(&mut self, sql: &str, cells: &[Cell]) -> Result<Vec<(A, B)>>
    where
        A: for<'c> FromCell<'c>,
        B: for<'c> FromCell<'c>,
    {
        let rows = self.rows(sql, cells).await?;
        let pair = |row: &db::Row| Ok((row.try_get(0)?, row.try_get(1)?));
        rows.iter().map(pair).collect::<std::result::Result<_, sqlx::Error>>().map_err(Error::internal)
    }

    /// Returns the first row of a query.
    pub async fn row(&mut self, sql: &str, cells: &[Cell]) -> Result<Option<db::Row>> {
        self.link.row(sql, cells).await.inspect_err(|_| self.spoilt = true)
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub async fn execute(&mut self, sql: &str, cells: &[Cell]) -> Result<u64> {
        self.link.execute(sql, cells).await.inspect_err(|_| self.spoilt = true)
    }

    /// Inserts a row and returns its key, which the database has counted.
    async fn insert_counted(&mut self, sql: &str, cells: &[Cell]) -> Result<i64> {
        self.link.insert_counted(sql, cells).await.inspect_err(|_| self.spoilt = true)
    }
}

/// Returns a document as text.
pub fn to_text<T: Serialize>(doc: &T) -> Result<String> {
    serde_json::to_string(doc).map_err(Error::internal)
}

/// Returns a document from its text.
pub fn from_text<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(Error::internal)
}
