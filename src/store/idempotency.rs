//! Answers stored for requests that carry an Idempotency-Key, so that a repeat gets the first answer.
//!
//! A process may be killed at any moment, and the database alone must then tell what a request has done. So the first
//! transaction that a request commits marks its key, and the one that completes its work stores the answer
//! ([`Session::answer`]). A key without a mark belongs to a request that has changed nothing, and may run again.
//!
//! A key names the engine that runs its request, as several may work on one database. When that one is gone, the
//! next that asks takes the key over. An engine that was only thought to be gone finds its key taken when it commits,
//! and its work is undone.

use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use ringer_base::error::{Error, Result};
use serde::Serialize;

use super::db::Cell;
use super::vault::place_of;
use super::{Session, Store, to_text};

/// Time that an answer is stored, from the first request.
pub const LIFETIME_MS: i64 = 24 * 3600 * 1000;

/// Table of the stored answers.
pub(super) const TABLE: &str = "idempotency";

/// Status of a request that has changed something and has no answer yet.
const BEGUN: i64 = 0;

/// Error of a repeat while the first request of its key has no answer.
pub const IN_PROGRESS: &str = "A request with this Idempotency-Key is still in progress";

tokio::task_local! {
    /// Request with a key that this task runs.
    static CARRIED: Arc<Carried>;
}

/// A request with a key while it runs.
#[derive(Debug)]
pub struct Carried {
    organization: String,
    route: String,
    key: String,
    status: u16,
    done: Mutex<Done>,
}

/// State of a request as the database has it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Done {
    Nothing,
    Begun,
    Answered(String),
}

impl Carried {
    /// Returns a request that is [`Seen::First`]; `status` is that of its success.
    pub fn new(request: RequestKey<'_>, status: u16) -> Arc<Carried> {
        let RequestKey { organization, route, key } = request;
        let (organization, route, key) = (organization.to_owned(), route.to_owned(), key.to_owned());
        Arc::new(Carried { organization, route, key, status, done: Mutex::new(Done::Nothing) })
    }

    /// Runs `work`, whose commits then record this request. Tasks that it spawns do not belong to it.
    pub async fn carry<F: Future>(self: &Arc<Carried>, work: F) -> F::Output {
        CARRIED.scope(self.clone(), work).await
    }

    /// True if this answer was stored in the transaction of the work that it reports.
    pub fn has_kept(&self, status: u16, body: &str) -> bool {
        self.status == status && matches!(self.outcome(), Done::Answered(kept) if kept == body)
    }

    fn request(&self) -> RequestKey<'_> {
        RequestKey { organization: &self.organization, route: &self.route, key: &self.key }
    }

    fn outcome(&self) -> Done {
        self.done.lock().clone()
    }

    fn set(&self, done: Done) {
        *self.done.lock() = done;
    }
}

/// Identity of a request with a key.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RequestKey<'a> {
    /// Organization that sent it.
    pub organization: &'a str,
    /// Method and path, for example `POST /v1/add-agent`.
    pub route: &'a str,
    /// Text of the Idempotency-Key.
    pub key: &'a str,
}

impl RequestKey<'_> {
    fn cells(&self) -> [Cell; 3] {
        [self.organization.into(), self.route.into(), self.key.into()]
    }
}

/// State of a request's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Unknown until now: it is marked as running, and `finish_request` or `abandon_request` must follow.
    First,
    /// The first one has not answered yet.
    Running,
    /// The first one has changed something, and its engine is gone: it will never answer.
    Left,
    /// The key was used with another body.
    OtherBody,
    /// The first one has answered.
    Answered {
        /// HTTP status of the answer.
        status: u16,
        /// Body of the answer, byte for byte.
        body: String,
    },
}

impl Store {
    /// Looks a request up, and marks a new one as running. `body_hash` is the hex SHA-256 of the body.
    ///
    /// A known request that has changed nothing and whose engine is gone counts as new.
    pub async fn begin_request(&self, request: RequestKey<'_>, body_hash: &str, now_ms: i64) -> Result<Seen> {
        let engine = self.parts.database.engine().await?;
        let mut db = self.system().await?;
        db.execute("DELETE FROM idempotency WHERE created_ms <= $1", &[(now_ms - LIFETIME_MS).into()]).await?;
        let sql = "SELECT body_hash, status, body, engine FROM idempotency \
                   WHERE org_id = $1 AND route = $2 AND idempotency_key = $3";
        let [organization, route, key] = request.cells();
        if let Some(row) = db.row(sql, &request.cells()).await? {
            let hash: String = row.try_get(0).map_err(Error::internal)?;
            let status: Option<i64> = row.try_get(1).map_err(Error::internal)?;
            let body: Option<String> = row.try_get(2).map_err(Error::internal)?;
            let of: Option<String> = row.try_get(3).map_err(Error::internal)?;
            let is_gone = match (status, &of) {
                (None | Some(BEGUN), Some(of)) => db.link.is_gone(of).await?,
                _ => false,
            };
            match status {
                None if is_gone => {}
                _ if hash != body_hash => return Ok(Seen::OtherBody),
                Some(BEGUN) if is_gone => return Ok(Seen::Left),
                None | Some(BEGUN) => return Ok(Seen::Running),
                Some(status) => {
                    let body =
                        self.parts.vault.unseal(&place_of(request.organization, TABLE), &body.unwrap_or_default())?;
                    return Ok(Seen::Answered { status: status as u16, body });
                }
            }
        }
        let sql = "INSERT INTO idempotency (org_id, route, idempotency_key, body_hash, created_ms, engine) \
                   VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (org_id, route, idempotency_key) \
                   DO UPDATE SET body_hash = $4, created_ms = $5, engine = $6";
        db.execute(sql, &[organization, route, key, body_hash.into(), now_ms.into(), engine.into()]).await?;
        db.commit().await?;
        Ok(Seen::First)
    }

    /// Stores the answer of a request that was [`Seen::First`].
    pub async fn finish_request(&self, request: RequestKey<'_>, status: u16, body: &str) -> Result<()> {
        let mut db = self.system().await?;
        // The answer may hold a key that is shown only once.
        let body = self.parts.vault.seal(&place_of(request.organization, TABLE), body)?;
        db.mark(request, i64::from(status), Some(body)).await?;
        db.commit().await
    }

    /// Deletes a request whose answer is not stored (a fault of the engine, a refused body).
    ///
    /// One that has changed something before it failed stays: a second run would change it twice.
    pub async fn abandon_request(&self, request: RequestKey<'_>) -> Result<()> {
        let mut db = self.system().await?;
        let sql = "DELETE FROM idempotency \
                   WHERE org_id = $1 AND route = $2 AND idempotency_key = $3 AND engine = $4 AND status IS NULL";
        let [organization, route, key] = request.cells();
        db.execute(sql, &[organization, route, key, self.parts.database.engine().await?.into()]).await?;
        db.commit().await
    }

    /// Deletes the requests that were running when the process stopped and had changed nothing.
    pub async fn abandon_running_requests(&self) -> Result<()> {
        let mut db = self.system().await?;
        db.execute("DELETE FROM idempotency WHERE status IS NULL", &[]).await?;
        db.commit().await
    }
}

impl Session {
    /// Commits, and stores `answer` for repeats of the running request in the same transaction.
    pub async fn answer<T: Serialize>(self, answer: T) -> Result<T> {
        let text = CARRIED.try_with(|_| to_text(&answer)).ok().transpose()?;
        self.commit_with(text).await?;
        Ok(answer)
    }

    /// Commits together with the state of the running request.
    pub(super) async fn commit_with(mut self, answer: Option<String>) -> Result<()> {
        let carried = CARRIED.try_with(Arc::clone).ok().filter(|_| self.link.writes());
        let Some(carried) = carried else { return self.commit_all().await };
        let now = match (carried.outcome(), answer) {
            (Done::Nothing | Done::Begun, Some(text)) => Done::Answered(text),
            (Done::Nothing, None) => Done::Begun,
            _ => return self.commit_all().await,
        };
        let (status, body) = match &now {
            Done::Answered(text) => {
                let body = self.vault().seal(&place_of(&carried.organization, TABLE), text)?;
                (i64::from(carried.status), Some(body))
            }
            _ => (BEGUN, None),
        };
        if !self.mark(carried.request(), status, body).await? {
            return Err(Error::Conflict(IN_PROGRESS.into()));
        }
        self.commit_all().await?;
        carried.set(now);
        Ok(())
    }

    /// Records the state of a request; false: another engine has taken it over.
    async fn mark(&mut self, request: RequestKey<'_>, status: i64, body: Option<String>) -> Result<bool> {
        let store = self.store.clone();
        let sql = "UPDATE idempotency SET status = $4, body = $5 \
                   WHERE org_id = $1 AND route = $2 AND idempotency_key = $3 AND engine = $6";
        let [organization, route, key] = request.cells();
        let engine = store.parts.database.engine().await?.into();
        let marked = self.execute(sql, &[organization, route, key, status.into(), body.into(), engine]).await?;
        Ok(marked > 0)
    }
}
