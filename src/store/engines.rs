//! Engines that share a database: who they are, which results they hold, and which of them is registered at a trunk.
//!
//! Time is the database's: an engine whose clock is wrong neither takes what others hold nor loses what it holds. A
//! clock that stands still, as tests have it, is the database's too.

use std::sync::atomic::Ordering;

use ringer_base::clock::Clock;
use ringer_base::error::{Error, Result};

use super::db::Cell;
use super::{Session, Store, db};

/// Milliseconds for which the row of a dead engine stays.
const KEPT_MS: i64 = 24 * 3_600_000;

/// Columns of an engine.
const FIELDS: &str = "e.id, e.name, e.version, e.address, e.sip, e.started_ms, e.heartbeat_ms, e.capacity, e.calls, \
                      e.draining";

/// An engine that works on the database, or has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineRow {
    /// Identifier, another one after each start.
    pub id: String,
    /// Name, the same after each start.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Start of URLs that lead to it; `None`: it has no address of its own.
    pub address: Option<String>,
    /// Host and port on which its calls come in; `None`: none do.
    pub sip: Option<String>,
    /// Time of its start, milliseconds since 1970.
    pub started_ms: i64,
    /// Time of its last sign of life, milliseconds since 1970.
    pub heartbeat_ms: i64,
    /// Most calls at the same time.
    pub capacity: i64,
    /// Calls at its last sign of life.
    pub calls: i64,
    /// True if it begins nothing new.
    pub is_draining: bool,
    /// True if what it holds is its own still.
    pub is_alive: bool,
}

/// Facts that an engine tells of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineFacts {
    /// Name, the same after each start.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Start of URLs that lead to it.
    pub address: Option<String>,
    /// Host and port on which its calls come in.
    pub sip: Option<String>,
    /// Most calls at the same time.
    pub capacity: i64,
    /// Milliseconds without a sign of life after which others take over what it did.
    pub lease_ms: i64,
}

/// Answer of the database to a sign of life.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Time at the database, milliseconds since 1970.
    pub now_ms: i64,
    /// True if the engine is to begin nothing new.
    pub is_draining: bool,
}

impl Store {
    /// Notes the clock of this process, which is the database's too where it stands still.
    pub fn keep_time(&self, clock: &Clock) {
        let _ = self.parts.clock.set(clock.clone());
    }

    /// Returns the time where a clock stands still; NULL: the database tells it.
    fn time(&self) -> Cell {
        Cell::Int(self.parts.clock.get().and_then(Clock::standing_ms))
    }

    /// Notes whether the database has answered for long enough that a lease which has ended is one of a dead engine.
    /// Workers look once more where that has changed to true.
    pub fn note_settled(&self, is_settled: bool) {
        let before = self.parts.unsettled.swap(!is_settled, Ordering::AcqRel);
        if before && is_settled {
            self.parts.jobs.send_modify(|changes| *changes += 1);
        }
    }

    /// True if leases that have ended may be taken over. False after the database was away: others could not renew
    /// theirs either.
    pub fn is_settled(&self) -> bool {
        !self.parts.unsettled.load(Ordering::Acquire)
    }
}

impl Session {
    /// Returns the value of the time for a statement; see [`Session::now_at`].
    pub(super) fn time(&self) -> Cell {
        self.store.time()
    }

    /// Returns the time at the database as a term of a statement whose value number `n` is [`Session::time`].
    pub(super) fn now_at(&self, n: usize) -> String {
        format!("COALESCE(${n}, {})", self.store.parts.database.now())
    }

    /// Notes a sign of life of this engine. One that `ends` begins nothing new whatever others ask.
    pub async fn beat(&mut self, facts: &EngineFacts, calls: i64, ends: bool) -> Result<Heard> {
        let (now, id) = (self.now_at(1), self.store.engine().await?.to_owned());
        let sql = format!(
            "INSERT INTO engines (id, name, version, address, sip, started_ms, heartbeat_ms, lease_ms, capacity, calls, \
             draining) VALUES ($2, $3, $4, $5, $6, {now}, {now}, {now} + $7, $8, $9, $10) \
             ON CONFLICT (id) DO UPDATE SET name = $3, address = $5, sip = $6, heartbeat_ms = {now}, \
             lease_ms = {now} + $7, capacity = $8, calls = $9, \
             draining = CASE WHEN $10 = 1 THEN 1 ELSE engines.draining END RETURNING heartbeat_ms, draining"
        );
        let cells = [
            self.time(),
            id.into(),
            facts.name.as_str().into(),
            facts.version.as_str().into(),
            facts.address.clone().into(),
            facts.sip.clone().into(),
            facts.lease_ms.into(),
            facts.capacity.into(),
            calls.into(),
            ends.into(),
        ];
        let row = self.row(&sql, &cells).await?.ok_or_else(|| Error::internal("an upsert answered no row"))?;
        let read = || -> Result<_, sqlx::Error> { Ok((row.try_get(0)?, row.try_get::<i64, _>(1)?)) };
        let (now_ms, draining) = read().map_err(Error::internal)?;
        Ok(Heard { now_ms, is_draining: draining != 0 })
    }

    /// Removes the row of this engine, which has ended: nothing of it runs any more. The row of one that still holds a
    /// result stays, so that its records can come by the next start until the lease ends.
    pub async fn leave(&mut self) -> Result<()> {
        let id = self.store.engine().await?.to_owned();
        self.execute("DELETE FROM line_holders WHERE engine = $1", &[id.as_str().into()]).await?;
        let sql = "DELETE FROM engines WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM holds h WHERE h.engine = $1)";
        self.execute(sql, &[id.into()]).await.map(drop)
    }

    /// Removes the rows of engines that have been dead for a day, and those that stand for an engine that was started
    /// again and hold nothing.
    pub async fn sweep_engines(&mut self) -> Result<u64> {
        let now = self.now_at(1);
        let sql = format!(
            "DELETE FROM engines WHERE heartbeat_ms < {now} - $2 OR (lease_ms <= {now} AND EXISTS \
             (SELECT 1 FROM engines other WHERE other.name = engines.name AND other.started_ms > engines.started_ms) \
             AND NOT EXISTS (SELECT 1 FROM holds h WHERE h.engine = engines.id))"
        );
        self.execute(&sql, &[self.time(), KEPT_MS.into()]).await
    }

    /// Ends the leases of this engine's earlier starts, which are gone; returns true if an engine of another name
    /// lives.
    pub async fn follow_predecessors(&mut self, name: &str) -> Result<bool> {
        let me = self.store.engine().await?.to_owned();
        let alive: Vec<EngineRow> = self.engines().await?.into_iter().filter(|engine| engine.is_alive).collect();
        for engine in alive.iter().filter(|engine| engine.name == name && engine.id != me) {
            if self.link.is_gone(&engine.id).await? {
                self.execute("UPDATE engines SET lease_ms = 0 WHERE id = $1", &[engine.id.as_str().into()]).await?;
            }
        }
        Ok(alive.iter().any(|engine| engine.name != name))
    }

    /// Returns the engines, those that live first, each kind by name.
    pub async fn engines(&mut self) -> Result<Vec<EngineRow>> {
        let now = self.now_at(1);
        let sql = format!(
            "SELECT {FIELDS}, CASE WHEN e.lease_ms > {now} THEN 1 ELSE 0 END AS alive FROM engines e \
             ORDER BY alive DESC, e.name, e.started_ms"
        );
        self.rows(&sql, &[self.time()]).await?.iter().map(|row| engine_of(row).map_err(Error::internal)).collect()
    }

    /// Returns the engine that makes or holds the call of a result, or has claimed its written conversation; `None`:
    /// none does, or one of an earlier release.
    pub async fn engine_of_result(&mut self, result_id: i64) -> Result<Option<EngineRow>> {
        let now = self.now_at(1);
        let sql = format!(
            "SELECT {FIELDS}, CASE WHEN e.lease_ms > {now} THEN 1 ELSE 0 END AS alive FROM engines e \
             WHERE e.id = COALESCE((SELECT h.engine FROM holds h WHERE h.result_id = $2), \
             (SELECT j.engine FROM jobs j WHERE j.job_key >= $3 AND j.job_key < $4 AND j.lease_ms > {now} \
             ORDER BY j.id DESC LIMIT 1))"
        );
        // Every key of the result's conversations begins so.
        let keys = [format!("call:{result_id}:"), format!("call:{result_id};")].map(Cell::from);
        let [first, end] = keys;
        let row = self.row(&sql, &[self.time(), result_id.into(), first, end]).await?;
        row.as_ref().map(engine_of).transpose().map_err(Error::internal)
    }

    /// Asks the living engines of this name or id to begin nothing new, or to begin again; returns their names.
    pub async fn set_draining(&mut self, name: &str, is_draining: bool) -> Result<Vec<String>> {
        let now = self.now_at(1);
        let sql = format!(
            "UPDATE engines SET draining = $3 WHERE (name = $2 OR id = $2) AND lease_ms > {now} RETURNING name"
        );
        let rows = self.rows(&sql, &[self.time(), name.into(), is_draining.into()]).await?;
        rows.iter().map(|row| row.try_get(0).map_err(Error::internal)).collect()
    }

    /// Notes that this engine makes or holds the call of a result from now on.
    pub async fn hold_result(&mut self, result_id: i64) -> Result<()> {
        let (engine, organization) = (self.store.engine().await?.to_owned(), self.organization().to_owned());
        let sql = "INSERT INTO holds (result_id, org_id, engine) VALUES ($1, $2, $3) \
                   ON CONFLICT (result_id) DO UPDATE SET engine = $3";
        self.execute(sql, &[result_id.into(), organization.into(), engine.into()]).await.map(drop)
    }

    /// Notes that nobody holds a result any more.
    pub async fn let_go_of_result(&mut self, result_id: i64) -> Result<()> {
        self.execute("DELETE FROM holds WHERE result_id = $1", &[result_id.into()]).await.map(drop)
    }

    /// Returns the results whose engine is gone: (organization, id, name of the engine). The name is empty where the
    /// engine has left no row.
    pub async fn lost_results(&mut self) -> Result<Vec<(String, i64, String)>> {
        let now = self.now_at(1);
        let sql = format!(
            "SELECT h.org_id, h.result_id, COALESCE(e.name, '') FROM holds h LEFT JOIN engines e ON e.id = h.engine \
             WHERE h.engine <> $2 AND (e.id IS NULL OR e.lease_ms <= {now}) ORDER BY h.result_id"
        );
        let me = self.store.engine().await?.to_owned();
        let rows = self.rows(&sql, &[self.time(), me.into()]).await?;
        let read =
            |row: &db::Row| -> Result<_, sqlx::Error> { Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)) };
        rows.iter().map(|row| read(row).map_err(Error::internal)).collect()
    }

    /// Ends every hold: at the start of a process that is the only one, no other can have any.
    pub async fn end_holds(&mut self) -> Result<()> {
        for sql in ["DELETE FROM holds", "DELETE FROM line_holders", "DELETE FROM engines"] {
            self.execute(sql, &[]).await?;
        }
        Ok(())
    }

    /// Renews this engine's lease of a trunk's registration for `lease_ms`, or takes one that nobody has. False:
    /// another engine is registered there.
    pub async fn hold_line(&mut self, trunk: &str, lease_ms: i64) -> Result<bool> {
        let (now, engine) = (self.now_at(1), self.store.engine().await?.to_owned());
        let sql = format!(
            "INSERT INTO line_holders (trunk, engine, lease_ms) VALUES ($2, $3, {now} + $4) \
             ON CONFLICT (trunk) DO UPDATE SET engine = $3, lease_ms = {now} + $4 \
             WHERE line_holders.engine = $3 OR line_holders.lease_ms <= {now}"
        );
        Ok(self.execute(&sql, &[self.time(), trunk.into(), engine.into(), lease_ms.into()]).await? > 0)
    }

    /// Gives this engine's leases of registrations up.
    pub async fn let_go_of_lines(&mut self) -> Result<()> {
        let engine = self.store.engine().await?.to_owned();
        self.execute("DELETE FROM line_holders WHERE engine = $1", &[engine.into()]).await.map(drop)
    }
}

fn engine_of(row: &db::Row) -> Result<EngineRow, sqlx::Error> {
    Ok(EngineRow {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        version: row.try_get(2)?,
        address: row.try_get(3)?,
        sip: row.try_get(4)?,
        started_ms: row.try_get(5)?,
        heartbeat_ms: row.try_get(6)?,
        capacity: row.try_get(7)?,
        calls: row.try_get(8)?,
        is_draining: row.try_get::<i64, _>(9)? != 0,
        is_alive: row.try_get::<i64, _>("alive")? != 0,
    })
}
