//! Engines that share the database: their signs of life, what a dead one has left, and how one is drained.

use std::sync::Arc;

use parking_lot::Mutex;
use ringer_base::clock::Clock;
use ringer_base::error::{Error, Result};
use ringer_model::status::ResultStatus;
use ringer_model::time::Timestamp;
use ringer_store::{EngineFacts, EngineRow, Heard, Store};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;

use crate::Handles;
use crate::conversation::Conversations;

/// Milliseconds without a sign of life after which others take over what an engine did, where the settings say nothing
/// else.
pub const LEASE_MS: i64 = 120_000;

/// State of this engine: it is drained while somebody asks for that, or while it ends.
#[derive(Debug)]
pub(super) struct Drain {
    asked: Mutex<Asked>,
    is_draining: watch::Sender<bool>,
}

#[derive(Copy, Clone, Debug, Default)]
struct Asked {
    by_others: bool,
    ends: bool,
}

impl Default for Drain {
    fn default() -> Drain {
        Drain { asked: Mutex::default(), is_draining: watch::Sender::new(false) }
    }
}

impl Drain {
    fn note(&self, change: impl FnOnce(&mut Asked)) {
        let mut asked = self.asked.lock();
        change(&mut asked);
        let now = asked.by_others || asked.ends;
        self.is_draining.send_if_modified(|before| std::mem::replace(before, now) != now);
    }
}

/// An engine of the database, as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EngineRecord {
    /// Identifier, another one after each start.
    pub id: String,
    /// Name, the same after each start.
    pub name: String,
    /// State: it works, begins nothing new, or gives no sign of life any more.
    pub state: EngineState,
    /// Version of the program.
    pub version: String,
    /// Start of URLs that lead to this engine; null: it has no address of its own.
    pub address: Option<String>,
    /// Host and port on which its calls come in; null: none do.
    pub sip_address: Option<String>,
    /// Time of its start.
    pub started_at: Timestamp,
    /// Time of its last sign of life.
    pub heartbeat_at: Timestamp,
    /// Most calls at the same time.
    pub capacity: i64,
    /// Calls at its last sign of life.
    pub calls: i64,
    /// True for the engine that answers.
    pub answers: bool,
}

/// State of an engine.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EngineState {
    /// The engine works and begins conversations.
    Up,
    /// The engine begins nothing new.
    Draining,
    /// The engine has given no sign of life for longer than its lease.
    Lost,
}

/// Engines of the database, those that work first.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EngineList {
    /// The engines, those that work first.
    pub engines: Vec<EngineRecord>,
}

/// Engines that a drain, or its end, was asked of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EnginesAsked {
    /// Names of the engines.
    pub engines: Vec<String>,
    /// True if they are to begin nothing new.
    pub draining: bool,
}

/// Engines of the database, and this one among them.
pub struct Engines {
    store: Store,
    clock: Clock,
    conversations: Arc<Conversations>,
    drain: Arc<Drain>,
}

impl Engines {
    /// Returns the subject with the handles that it needs.
    pub(super) fn new(handles: &Handles, conversations: &Arc<Conversations>) -> Engines {
        Engines {
            store: handles.store.clone(),
            clock: handles.clock.clone(),
            conversations: conversations.clone(),
            drain: handles.drain.clone(),
        }
    }

    /// Tells the database that this engine works, and takes what it answers: its time, and whether to drain.
    pub async fn beat(&self, facts: &EngineFacts, calls: usize) -> Result<Heard> {
        let ends = self.drain.asked.lock().ends;
        let mut db = self.store.system().await?;
        let asked_ms = self.clock.now_ms();
        let heard = db.beat(facts, i64::try_from(calls).unwrap_or(i64::MAX), ends).await?;
        let corrected_ms = self.clock.correct(asked_ms, heard.now_ms);
        db.commit().await?;
        if corrected_ms.abs() >= 1000 {
            tracing::warn!(corrected_ms, "the clock of this machine is not that of the database, which is used");
        }
        self.drain.note(|asked| asked.by_others = heard.is_draining && !ends);
        Ok(heard)
    }

    /// Tells the database that this engine has ended: nothing of it runs any more.
    pub async fn leave(&self) -> Result<()> {
        let mut db = self.store.system().await?;
        db.leave().await?;
        db.commit().await
    }

    /// Ends the results whose engine is gone; returns their number.
    pub async fn end_results_of_lost(&self) -> Result<usize> {
        let lost = self.store.org("").read().await?.lost_results().await?;
        let mut ended = 0;
        for (organization, id, engine) in &lost {
            ended += usize::from(self.conversations.end_lost(organization, *id, engine).await?);
        }
        Ok(ended)
    }

    /// Removes the rows of engines that are dead for long.
    pub async fn sweep(&self) -> Result<()> {
        let mut db = self.store.system().await?;
        db.sweep_engines().await?;
        db.commit().await
    }

    /// Returns those of these results whose conversation is over, or that are gone.
    pub async fn over(&self, results: &[i64]) -> Result<Vec<i64>> {
        let mut db = self.store.org("").read().await?;
        let mut over = Vec::new();
        for id in results {
            if !db.status_of(*id).await?.is_some_and(ResultStatus::is_open) {
                over.push(*id);
            }
        }
        Ok(over)
    }

    /// Returns the other engine that holds the call of a result and works; `None`: this one does, or none.
    pub async fn elsewhere(&self, result_id: i64) -> Result<Option<EngineRow>> {
        let found = self.store.org("").read().await?.engine_of_result(result_id).await?;
        let me = self.store.engine().await?;
        Ok(found.filter(|engine| engine.is_alive && engine.id != me))
    }

    /// Returns the engines of the database.
    pub async fn list(&self) -> Result<EngineList> {
        let me = self.store.engine().await?.to_owned();
        let rows = self.store.org("").read().await?.engines().await?;
        Ok(EngineList { engines: rows.into_iter().map(|row| record_of(row, &me)).collect() })
    }

    /// Asks the engines of a name to begin nothing new, or to begin again.
    ///
    /// # Errors
    /// No engine of this name, or with this id, works.
    pub async fn set_draining(&self, name: &str, is_draining: bool) -> Result<EnginesAsked> {
        let mut db = self.store.system().await?;
        let engines = db.set_draining(name, is_draining).await?;
        if engines.is_empty() {
            return Err(Error::NotFound("Engine"));
        }
        db.commit().await?;
        Ok(EnginesAsked { engines, draining: is_draining })
    }

    /// Begins nothing new from now on: this engine ends.
    pub fn begin_end(&self) {
        self.drain.note(|asked| asked.ends = true);
    }

    /// True while this engine begins nothing new.
    pub fn is_draining(&self) -> bool {
        *self.drain.is_draining.borrow()
    }

    /// Returns a watch of whether this engine begins nothing new.
    pub fn watch_draining(&self) -> watch::Receiver<bool> {
        self.drain.is_draining.subscribe()
    }

    /// Renews this engine's leases of registrations at trunks, and takes those that nobody has. Returns the trunks at
    /// which it is to be registered.
    pub async fn hold_lines(&self, trunks: &[String], lease_ms: i64) -> Result<Vec<String>> {
        let mut db = self.store.system().await?;
        let mut held = Vec::new();
        for trunk in trunks {
            if db.hold_line(trunk, lease_ms).await? {
                held.push(trunk.clone());
            }
        }
        db.commit().await?;
        Ok(held)
    }

    /// Gives this engine's leases of registrations up, so that another engine takes them.
    pub async fn let_go_of_lines(&self) -> Result<()> {
        let mut db = self.store.system().await?;
        db.let_go_of_lines().await?;
        db.commit().await
    }
}

fn record_of(row: EngineRow, me: &str) -> EngineRecord {
    let state = match (row.is_alive, row.is_draining) {
        (false, _) => EngineState::Lost,
        (true, true) => EngineState::Draining,
        (true, false) => EngineState::Up,
    };
    EngineRecord {
        answers: row.id == me,
        id: row.id,
        name: row.name,
        state,
        version: row.version,
        address: row.address,
        sip_address: row.sip,
        started_at: Timestamp(row.started_ms),
        heartbeat_at: Timestamp(row.heartbeat_ms),
        capacity: row.capacity,
        calls: row.calls,
    }
}
