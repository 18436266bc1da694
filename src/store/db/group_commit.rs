//! Group commit for a SQLite file. One writer at a time has the write lock. Its changes are a savepoint in a
//! transaction that it shares with the writers behind it. So many small pieces of work cost one commit.
//!
//! No writer waits for others that may never come. The transaction is committed when nobody waits for the lock and
//! every ready task has had its chances to join, or at [`MOST_STATEMENTS`]. Each piece of work is acknowledged after
//! that commit. One that fails or is dropped is undone alone.
//!
//! Ready tasks may join twice. With 32 writers, ids in order (uuid version 7) and rows without empty fields, POST went
//! from 8,800 to 17,000 a CPU-second.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use ringer_base::error::{Error, Result};
use rusqlite::{Connection, ErrorCode};
use tokio::sync::oneshot;

use super::sqlite_error::{closed_error, fault};

/// Statements after which a transaction is committed even though others wait for the lock.
const MOST_STATEMENTS: usize = 256;
/// Number of times that all ready tasks run before a commit: those of the first round may wake others.
const ROUNDS: usize = 2;
/// Most attempts to begin while another process writes; with [`PAUSE`] between them 5 s in all.
const TRIES: usize = 1000;
const PAUSE: Duration = Duration::from_millis(5);

/// Queue of writers for the write lock.
#[derive(Debug)]
pub(crate) struct Writers {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The connection while nobody has the lock.
    group: Option<Box<Group>>,
    waiting: VecDeque<oneshot::Sender<WriteLock>>,
    closed: bool,
}

/// The writing connection, with the transaction that is open on it.
#[derive(Debug)]
struct Group {
    /// Connection in a mutex that is never contended: a session may be lent to several threads, one after the other.
    connection: Mutex<Connection>,
    open: bool,
    statements: usize,
    /// Senders that report the commit to each member.
    members: Vec<oneshot::Sender<Result<()>>>,
}

/// The write lock. Dropped before its commit, it undoes its changes.
#[derive(Debug)]
pub struct WriteLock {
    writers: Arc<Writers>,
    group: Option<Box<Group>>,
    begun: bool,
}

impl Writers {
    /// Returns a queue for the use of `writer`.
    pub(crate) fn new(writer: Connection) -> Arc<Writers> {
        let group =
            Group { connection: Mutex::new(writer), open: false, statements: 0, members: Vec::with_capacity(64) };
        let state = State { group: Some(Box::new(group)), ..State::default() };
        Arc::new(Writers { state: Mutex::new(state) })
    }

    /// Waits for the lock and begins a piece of work.
    pub(crate) async fn enter(self: &Arc<Writers>) -> Result<WriteLock> {
        let mut lock = self.lock().await?;
        lock.begin().await?;
        Ok(lock)
    }

    /// Waits for the lock and runs `work` on the connection while no transaction is open.
    pub(crate) async fn between<T>(self: &Arc<Writers>, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let mut lock = self.lock().await?;
        let group = lock.group()?;
        if group.open {
            group.commit();
        }
        work(group.connection())
    }

    async fn lock(self: &Arc<Writers>) -> Result<WriteLock> {
        let place = {
            let mut state = self.state();
            if state.closed {
                return Err(closed_error());
            }
            if let Some(group) = state.group.take() {
                return Ok(self.lock_with(group));
            }
            let (lock, place) = oneshot::channel();
            state.waiting.push_back(lock);
            place
        };
        place.await.map_err(|_| closed_error())
    }

    fn lock_with(self: &Arc<Writers>, group: Box<Group>) -> WriteLock {
        WriteLock { writers: self.clone(), group: Some(group), begun: false }
    }

    /// Passes the lock to the next waiting writer; when there is none, commits first.
    fn leave(self: &Arc<Writers>, mut group: Box<Group>) {
        loop {
            if group.statements >= MOST_STATEMENTS {
                group.commit();
            }
            let mut state = self.state();
            if let Some(next) = state.waiting.pop_front() {
                drop(state);
                // A writer that no longer waits returns the lock.
                match next.send(self.lock_with(group)) {
                    Ok(()) => return,
                    Err(mut lock) => match lock.group.take() {
                        Some(back) => group = back,
                        None => return,
                    },
                }
            } else if group.open {
                drop(state);
                group.commit();
            } else {
                if !state.closed {
                    state.group = Some(group);
                }
                return;
            }
        }
    }

    /// Waits for the lock and refuses it to everybody from then on.
    pub(crate) async fn close(self: &Arc<Writers>) {
        let Ok(lock) = self.lock().await else { return };
        let mut state = self.state();
        state.closed = true;
        let refused = std::mem::take(&mut state.waiting);
        drop(state);
        drop((refused, lock));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Group {
    fn connection(&mut self) -> &mut Connection {
        self.connection.get_mut()
    }

    /// Commits for all members and reports the result to them.
    fn commit(&mut self) {
        let mut done = run(self.connection(), "COMMIT");
        if done.is_err() && !self.connection().is_autocommit() {
            done = done.and(run(self.connection(), "ROLLBACK"));
        }
        self.end(&done);
    }

    fn end(&mut self, done: &Result<()>) {
        (self.open, self.statements) = (false, 0);
        for member in self.members.drain(..) {
            // A member that no longer listens needs no answer.
            let _ = member.send(done.clone());
        }
    }
}

impl WriteLock {
    /// Begins a transaction, or joins the open one.
    async fn begin(&mut self) -> Result<()> {
        let group = self.group()?;
        if group.open && group.connection().is_autocommit() {
            // SQLite itself ends a transaction on a full disk or a fault of the file.
            group.end(&Err(Error::internal("the database has undone the transaction")));
        }
        let mut tries = 0;
        while !group.open {
            match begin(group.connection()) {
                Ok(()) => group.open = true,
                Err(error) if tries < TRIES && error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                    tries += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(fault(error)),
            }
        }
        run(group.connection(), "SAVEPOINT piece")?;
        self.begun = true;
        Ok(())
    }

    fn group(&mut self) -> Result<&mut Group> {
        self.group.as_deref_mut().ok_or_else(closed_error)
    }

    /// Returns the connection for one statement, and counts it.
    pub fn statement(&mut self) -> Result<&mut Connection> {
        let group = self.group()?;
        group.statements += 1;
        Ok(group.connection())
    }

    /// Passes the lock on and waits until the shared transaction is committed.
    pub async fn commit(mut self) -> Result<()> {
        let group = self.group()?;
        run(group.connection(), "RELEASE piece")?;
        let (tell, answer) = oneshot::channel();
        group.members.push(tell);
        self.begun = false;
        for _ in 0..ROUNDS {
            if self.writers.state().waiting.is_empty() {
                // Writers that are ready may still join, since a commit costs more than their changes.
                tokio::task::yield_now().await;
            }
        }
        drop(self);
        answer.await.map_err(|_| closed_error())?
    }
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        let Some(mut group) = self.group.take() else { return };
        if self.begun {
            let connection = group.connection();
            let undone = run(connection, "ROLLBACK TO piece").and_then(|()| run(connection, "RELEASE piece"));
            if let Err(error) = undone {
                // Then nothing of this transaction can be kept.
                tracing::error!(%error, "a savepoint could not be rolled back");
                let _ = connection.execute_batch("ROLLBACK");
                group.end(&Err(error));
            }
        }
        self.writers.leave(group);
    }
}

fn begin(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.raw_execute().map(drop)
}

/// Runs a statement without values that is run often.
fn run(connection: &Connection, sql: &str) -> Result<()> {
    connection.prepare_cached(sql).and_then(|mut statement| statement.raw_execute()).map(drop).map_err(fault)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rusqlite::Connection;
    use tempfile::TempDir;

    use super::{MOST_STATEMENTS, Writers};

    /// Returns the queue of a file with one table, another connection to it, and the number of its commits.
    fn open(folder: &TempDir) -> (Arc<Writers>, Connection, Arc<AtomicUsize>) {
        let path = folder.path().join("a.db");
        let mut writer = Connection::open(&path).expect("it opens");
        writer.pragma_update(None, "journal_mode", "WAL").expect("it is a file");
        writer.execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY)").expect("it runs");
        let commits = Arc::<AtomicUsize>::default();
        let counting = commits.clone();
        let count = move || {
            counting.fetch_add(1, Ordering::Relaxed);
            false
        };
        writer.commit_hook(Some(count)).expect("it is taken");
        (Writers::new(writer), Connection::open(&path).expect("it opens"), commits)
    }

    fn rows(reader: &Connection) -> Vec<i64> {
        let mut query = reader.prepare("SELECT n FROM t ORDER BY n").expect("it is a query");
        let rows = query.query_map([], |row| row.get(0)).expect("it runs");
        rows.collect::<Result<_, _>>().expect("integers")
    }

    async fn insert(writers: &Arc<Writers>, n: i64, statements: usize) {
        let mut lock = writers.enter().await.expect("the lock");
        lock.statement().expect("it has the lock").execute("INSERT INTO t VALUES (?1)", [n]).expect("it runs");
        for _ in 1..statements {
            lock.statement().expect("it has the lock");
        }
        lock.commit().await.expect("kept");
    }

    #[tokio::test]
    async fn those_that_wait_share_a_commit() {
        for (count, statements, expect) in [(1, 1, 1), (40, 1, 1), (MOST_STATEMENTS, 2, 2), (4, MOST_STATEMENTS, 4)] {
            let folder = tempfile::tempdir().expect("a folder");
            let (writers, reader, commits) = open(&folder);
            let first = writers.lock().await.expect("nobody is there");
            let all = futures_util::future::join_all((0..count).map(|n| insert(&writers, n as i64, statements)));
            tokio::join!(all, async { drop(first) });
            assert_eq!(commits.load(Ordering::Relaxed), expect, "{count} writers of {statements} statements");
            assert_eq!(rows(&reader).len(), count);
        }
    }

    #[tokio::test]
    async fn those_that_are_ready_share_a_commit() {
        let folder = tempfile::tempdir().expect("a folder");
        let (writers, reader, commits) = open(&folder);
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..40 {
            let writers = writers.clone();
            tasks.spawn(async move { insert(&writers, n, 1).await });
        }
        tasks.join_all().await;
        assert_eq!((commits.load(Ordering::Relaxed), rows(&reader).len()), (1, 40));
    }

    #[tokio::test]
    async fn nothing_is_acknowledged_before_its_commit() {
        let folder = tempfile::tempdir().expect("a folder");
        let (writers, reader, _) = open(&folder);
        let first = writers.lock().await.expect("nobody is there");
        let write = async |n| {
            insert(&writers, n, 1).await;
            assert!(rows(&reader).contains(&n), "{n} is acknowledged and not there");
        };
        let all = futures_util::future::join_all((0..200).map(write));
        tokio::join!(all, async { drop(first) });
        assert_eq!(rows(&reader).len(), 200);
    }

    #[tokio::test]
    async fn a_transaction_that_is_lost_is_told_to_all_its_members() {
        let folder = tempfile::tempdir().expect("a folder");
        let (writers, reader, _) = open(&folder);
        let first = writers.lock().await.expect("nobody is there");
        let lose = async {
            let mut lock = writers.enter().await.expect("the lock");
            // What a full disk does behind everybody's back.
            lock.statement().expect("it has the lock").execute_batch("ROLLBACK").expect("it runs");
        };
        let write = async {
            let mut lock = writers.enter().await.expect("the lock");
            lock.statement().expect("it has the lock").execute("INSERT INTO t VALUES (1)", []).expect("it runs");
            lock.commit().await
        };
        let (lost, (), ()) = tokio::join!(write, lose, async { drop(first) });
        lost.expect_err("it was undone");
        insert(&writers, 2, 1).await;
        assert_eq!(rows(&reader), [2]);
    }

    #[tokio::test]
    async fn another_process_that_writes_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let (writers, other, _) = open(&folder);
        other.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)").expect("it runs");
        let end = async {
            // Once the other one has met the lock.
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            other.execute_batch("COMMIT").expect("it runs");
        };
        tokio::join!(insert(&writers, 2, 1), end);
        assert_eq!(rows(&other), [1, 2]);
    }

    #[tokio::test]
    async fn a_closed_queue_refuses() {
        let folder = tempfile::tempdir().expect("a folder");
        let (writers, _, _) = open(&folder);
        let first = writers.lock().await.expect("nobody is there");
        // Whoever has the lock gives it back, else the queue could never be closed.
        let waiting = async { writers.enter().await.map(drop) };
        let (waiting, ()) = tokio::join!(waiting, async {
            tokio::join!(writers.close(), async { drop(first) });
        });
        waiting.expect("it waited before");
        assert!(writers.enter().await.is_err());
    }
}
