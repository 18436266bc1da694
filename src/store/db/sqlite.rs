//! SQLite in this process. Statements run on the calling thread: on a file whose pages are in memory they take
//! microseconds, less than waking another thread. A task of its own does what may wait for the disk: copying the
//! write-ahead log into the file.
//!
//! A database file is of one engine, by a lock on a file beside it. Without it a second engine took the first one's
//! live calls for lost.
//!
//! SQLite's statement journal stays in memory up to 124 KB in one piece. A POST then writes 5.5 KB instead of 11 to 13;
//! pieces of 1 KB cost it 3 of 18 us. SQLite counts no memory.

use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::sync::{Arc, Once};
use std::time::Duration;

use parking_lot::Mutex;
use ringer_base::error::{Error, Result};
use ringer_base::tasks::Tasks;
use rusqlite::hooks::Wal;
use rusqlite::types::ValueRef;
use rusqlite::wal::CheckpointMode;
use rusqlite::{CachedStatement, Connection, OpenFlags, ffi};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::cell::{Cell, Names, Row};
use super::group_commit::{WriteLock, Writers};
use super::sqlite_error::{closed_error, fault};

/// SQL type of an integer key that counts up and is never used twice.
pub(crate) const SERIAL: &str = "INTEGER PRIMARY KEY AUTOINCREMENT";
/// Name of the engine; a file has only one.
pub(crate) const ENGINE: &str = "file";
/// The machine's time in milliseconds since 1970.
pub(crate) const NOW: &str = "CAST(ROUND(unixepoch('subsec') * 1000) AS BIGINT)";

/// Most connections that read at the same time.
const READERS: usize = 8;
/// Most compiled statements that a connection caches.
const STATEMENTS: usize = 256;
/// Pages in the write-ahead log from which it is copied into the file (32 MB): a page that was written often is copied
/// once.
const CHECKPOINT_PAGES: i32 = 8000;
/// Pages from which writers wait for that, so that the log can begin anew (64 MB).
const MOST_PAGES: i32 = 16_000;
/// Memory of SQLite's statement journal, in bytes; more spills to a temporary file.
///
/// SQLite allocates it in one piece and spills it at once. It may be at most 131,071 bytes: of more, SQLite writes the
/// remainder and reports a full disk.
const SAVEPOINT_BYTES: std::ffi::c_int = 124 * 1024;
/// Longest time that a reader waits while another process recovers the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// A database file with its connections. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Sqlite {
    writers: Arc<Writers>,
    readers: Arc<Readers>,
    tasks: Tasks,
    /// Locked file that shows the presence of the engine; `None` before [`Sqlite::enter`].
    presence: Arc<Mutex<Option<File>>>,
}

/// Connections for reading that are not in use.
#[derive(Debug)]
struct Readers {
    path: PathBuf,
    places: Arc<Semaphore>,
    free: Mutex<Vec<Connection>>,
}

impl Sqlite {
    /// Opens the file, and makes it when absent. Must be called within a runtime.
    pub fn open(path: PathBuf) -> Result<Sqlite> {
        let full = Arc::new(Notify::new());
        let mut writer = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        // SQLite must not wait by itself: a writer waits for other processes without blocking a thread.
        writer.busy_timeout(Duration::ZERO).map_err(fault)?;
        let notify = full.clone();
        let hook = move |_: &mut Wal, pages| {
            if pages >= CHECKPOINT_PAGES {
                notify.notify_one();
            }
            Ok(())
        };
        writer.wal_hook(Some(hook)).map_err(fault)?;
        let copier = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let readers = Arc::new(Readers { path, places: Arc::new(Semaphore::new(READERS)), free: Mutex::default() });
        let sqlite = Sqlite { writers: Writers::new(writer), readers, tasks: Tasks::new(), presence: Arc::default() };
        sqlite.tasks.spawn_until_stop("checkpoint", checkpoints(copier, full, sqlite.writers.clone()));
        Ok(sqlite)
    }

    /// Returns a connection that reads, after waiting for a free one.
    pub async fn reader(&self) -> Result<Reader> {
        let place = self.readers.places.clone().acquire_owned().await.map_err(|_| closed_error())?;
        let free = self.readers.free.lock().pop();
        let connection = match free {
            Some(connection) => connection,
            None => {
                let connection = connect(&self.readers.path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
                connection.pragma_update(None, "query_only", "ON").map_err(fault)?;
                connection
            }
        };
        Ok(Reader { connection: Some(Mutex::new(connection)), of: self.readers.clone(), _place: place })
    }

    /// Waits for the write lock and begins a transaction.
    pub async fn write(&self) -> Result<WriteLock> {
        self.writers.enter().await
    }

    /// Switches the foreign keys of the writing connection on or off.
    pub async fn keep_references(&self, on: bool) -> Result<()> {
        let switch = |writer: &Connection| writer.pragma_update(None, "foreign_keys", on).map_err(fault);
        self.writers.between(switch).await
    }

    /// Rewrites the whole file, so that nothing is left in it of overwritten rows.
    pub fn scrub(&self) -> Result<()> {
        let mut connection = connect(&self.readers.path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        script(&mut connection, "VACUUM")?;
        let row = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        match row.map_err(fault)? {
            0 => Ok(()),
            _ => Err(Error::internal("the database cannot be written anew while others read it")),
        }
    }

    /// Registers an engine at the file. It is refused while another one is registered, in this process or any other.
    ///
    /// The lock is on a file beside the database, and ends with the process.
    pub fn enter(&self) -> Result<()> {
        let mut presence = self.presence.lock();
        if presence.is_some() {
            return Ok(());
        }
        let mut path = self.readers.path.clone().into_os_string();
        path.push(".lock");
        let path = PathBuf::from(path);
        let at = |error: std::io::Error| Error::internal_by(path.display(), error);
        let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(at)?;
        match file.try_lock() {
            Ok(()) => *presence = Some(file),
            Err(TryLockError::WouldBlock) => {
                let path = self.readers.path.display();
                return Err(Error::Conflict(format!("another engine works on the database {path}")));
            }
            Err(TryLockError::Error(error)) => return Err(at(error)),
        }
        Ok(())
    }

    /// Closes every connection; the last one leaves no write-ahead log.
    pub async fn close(&self) {
        self.tasks.stop().await;
        if self.readers.places.acquire_many(READERS as u32).await.is_ok() {
            self.readers.places.close();
            self.readers.free.lock().clear();
        }
        self.writers.close().await;
        *self.presence.lock() = None;
    }
}

/// A connection that reads; it returns to the pool when dropped.
pub struct Reader {
    /// Connection in a mutex that is never contended: a session may be lent to several threads, one after the other.
    connection: Option<Mutex<Connection>>,
    of: Arc<Readers>,
    _place: OwnedSemaphorePermit,
}

impl Reader {
    pub fn connection(&mut self) -> &mut Connection {
        let connection = self.connection.as_mut().expect("it is taken only by drop");
        connection.get_mut()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let connection = connection.into_inner();
        self.of.free.lock().push(connection);
    }
}

/// Sets SQLite's options for the whole process, once, before the first connection is opened. They are refused, without
/// harm, once SQLite was used.
fn configure() {
    static ONCE: Once = Once::new();
    // SAFETY: both options take one int; the calls are made before this process opens its first connection, and once.
    ONCE.call_once(|| unsafe {
        // Memory statistics are off: each count takes a lock, and nobody reads the figures.
        ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0);
        // The statement journal stays in one piece of memory: every piece of work has one, and changes few pages.
        ffi::sqlite3_config(ffi::SQLITE_CONFIG_STMTJRNL_SPILL, SAVEPOINT_BYTES);
    });
}

fn connect(path: &PathBuf, flags: OpenFlags) -> Result<Connection> {
    configure();
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    let connection = connection.map_err(|error| Error::internal_by(path.display(), error))?;
    connection.busy_timeout(PATIENCE).map_err(fault)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // NORMAL: a commit is in the kernel's buffers, so it outlives this process; only a loss of power can lose the last
    // ones.
    for (name, value) in [("journal_mode", "WAL"), ("synchronous", "NORMAL"), ("foreign_keys", "ON")] {
        connection.pragma_update(None, name, value).map_err(fault)?;
    }
    Ok(connection)
}

/// Copies the write-ahead log into the file whenever it has grown, on a thread that may wait for the disk.
///
/// While others write it never reaches the log's end, so a long log is finished under the write lock.
async fn checkpoints(connection: Connection, full: Arc<Notify>, writers: Arc<Writers>) {
    let connection = Arc::new(Mutex::new(connection));
    loop {
        full.notified().await;
        if checkpoint(&connection).await < MOST_PAGES {
            continue;
        }
        let Ok(_lock) = writers.enter().await else { return };
        checkpoint(&connection).await;
    }
}

/// Copies as much as possible without waiting for anybody, and returns the number of pages in the log; 0 on failure.
async fn checkpoint(connection: &Arc<Mutex<Connection>>) -> i32 {
    let connection = connection.clone();
    let copied = tokio::task::spawn_blocking(move || {
        let connection = connection.lock();
        connection.wal_checkpoint_v2(None::<&str>, CheckpointMode::PASSIVE).map_err(fault)
    });
    match copied.await.map_err(Error::internal).flatten() {
        Ok((pages, _)) => pages,
        Err(error) => {
            tracing::warn!(%error, "the write-ahead log could not be copied");
            0
        }
    }
}

/// Runs a query and reads at most `most` rows. A statement that changes rows has changed all of them before its first
/// row.
pub(crate) fn rows(connection: &mut Connection, sql: &str, cells: &[Cell], most: usize) -> Result<Vec<Row>> {
    let mut statement = prepare(connection, sql, cells)?;
    let columns: Names = statement.column_names().collect();
    let count = statement.column_count();
    let mut found = Vec::new();
    let mut answer = statement.raw_query();
    while found.len() < most
        && let Some(row) = answer.next().map_err(fault)?
    {
        let cell = |at| row.get_ref(at).map_err(fault).and_then(cell_of);
        found.push(Row::new(columns.clone(), (0..count).map(cell).collect::<Result<_>>()?));
    }
    Ok(found)
}

/// Runs a statement and returns the number of rows that it changed.
pub(crate) fn execute(connection: &mut Connection, sql: &str, cells: &[Cell]) -> Result<u64> {
    let changed = prepare(connection, sql, cells)?.raw_execute().map_err(fault)?;
    Ok(changed as u64)
}

/// Runs an insert and returns the key of its row, in half the time of `RETURNING`, which makes a table of its own.
pub(crate) fn insert_counted(connection: &mut Connection, sql: &str, cells: &[Cell]) -> Result<i64> {
    execute(connection, sql, cells)?;
    Ok(connection.last_insert_rowid())
}

/// Runs several statements without values.
pub(crate) fn script(connection: &mut Connection, sql: &str) -> Result<()> {
    connection.execute_batch(sql).map_err(fault)
}

/// Prepares a statement and binds its values. SQLite treats `$2` as a name and counts names as they appear, so they are
/// looked up.
fn prepare<'a>(connection: &'a Connection, sql: &str, cells: &[Cell]) -> Result<CachedStatement<'a>> {
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    for place in 1..=statement.parameter_count() {
        let number = statement.parameter_name(place).and_then(|name| name[1..].parse::<usize>().ok());
        let cell = number.and_then(|number| cells.get(number.checked_sub(1)?));
        let bound = match cell.ok_or_else(|| Error::internal(format!("a value is missing for: {sql}")))? {
            Cell::Int(value) => statement.raw_bind_parameter(place, value),
            Cell::Text(value) => statement.raw_bind_parameter(place, value),
        };
        bound.map_err(fault)?;
    }
    Ok(statement)
}

fn cell_of(value: ValueRef<'_>) -> Result<Cell> {
    match value {
        ValueRef::Null => Ok(Cell::Text(None)),
        ValueRef::Integer(value) => Ok(Cell::Int(Some(value))),
        ValueRef::Text(bytes) => {
            String::from_utf8(bytes.to_vec()).map(|text| Cell::Text(Some(text))).map_err(Error::internal)
        }
        ValueRef::Real(_) | ValueRef::Blob(_) => Err(Error::internal("a column is neither an integer nor a text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_piece_of_work_may_change_more_than_is_kept_in_memory() {
        const ROWS: i64 = 500;
        let folder = tempfile::tempdir().expect("a folder");
        let file = Sqlite::open(folder.path().join("a.db")).expect("a file");
        let change = async |sql: &str| {
            let mut lock = file.write().await?;
            execute(lock.statement()?, sql, &[])?;
            Ok::<_, Error>(lock)
        };
        change("CREATE TABLE t (n INTEGER, pad TEXT)").await.expect("it runs").commit().await.expect("kept");
        let fill = format!(
            "WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < {ROWS}) \
             INSERT INTO t SELECT 1, hex(zeroblob(2000)) FROM up"
        );
        change(&fill).await.expect("it runs").commit().await.expect("kept");
        // 2 MB of pages that are there already.
        change("UPDATE t SET n = n + 1").await.expect("it runs").commit().await.expect("kept");
        drop(change("UPDATE t SET n = n + 10").await.expect("it runs"));
        let sum =
            rows(file.reader().await.expect("it reads").connection(), "SELECT sum(n) FROM t", &[], 1).expect("a row");
        assert_eq!(sum[0].try_get::<i64, _>(0).expect("a number"), 2 * ROWS);
        file.close().await;
    }

    #[tokio::test]
    async fn a_file_is_of_one_engine_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let [first, second] = [(); 2].map(|()| Sqlite::open(folder.path().join("a.db")).expect("a file"));
        assert_eq!((first.enter(), first.enter()), (Ok(()), Ok(())));
        assert!(matches!(second.enter(), Err(Error::Conflict(text)) if text.contains("a.db")));
        first.close().await;
        assert_eq!(second.enter(), Ok(()));
        second.close().await;
    }
}
