//! Answers kept for requests that carry an Idempotency-Key, so that a repeat gets the first answer.
//!
//! A process may be killed at any moment, and what a request has done must then be known from the database alone. So the first
//! transaction that a request commits marks its key, and the one that completes its work keeps the answer ([`Session::answer`]):
//! a key without a mark is of a request that has changed nothing, and may be carried out again.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::sealing::place;
use super::{Session, Store, to_text};
use crate::error::{Error, Result};

/// How long an answer is kept, from the first request.
pub const LIFETIME_MS: i64 = 24 * 3600 * 1000;

/// Where answers lie.
pub(super) const TABLE: &str = "idempotency";

/// The status of a request that has changed something and has no answer yet.
const BEGUN: i64 = 0;

tokio::task_local! {
    /// The request that this task carries out.
    static CARRIED: Arc<Carried>;
}

/// A request with a key while it is carried out.
#[derive(Debug)]
pub struct Carried {
    organization: String,
    route: String,
    key: String,
    status: u16,
    done: Mutex<Done>,
}

/// What the database knows of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Done {
    Nothing,
    Begun,
    Answered(String),
}

impl Carried {
    /// A request that is [`Seen::First`]; `status` is what it answers when it succeeds.
    pub fn new(request: RequestKey<'_>, status: u16) -> Arc<Carried> {
        let RequestKey { organization, route, key } = request;
        let (organization, route, key) = (organization.to_owned(), route.to_owned(), key.to_owned());
        Arc::new(Carried { organization, route, key, status, done: Mutex::new(Done::Nothing) })
    }

    /// Runs `work`, whose commits then tell of this request. What it starts as tasks of its own does not belong to it.
    pub async fn carry<F: Future>(self: &Arc<Carried>, work: F) -> F::Output {
        CARRIED.scope(self.clone(), work).await
    }

    /// True when this answer was kept in the transaction that it tells of.
    pub fn has_kept(&self, status: u16, body: &str) -> bool {
        self.status == status && matches!(self.done(), Done::Answered(kept) if kept == body)
    }

    fn done(&self) -> Done {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, done: Done) {
        *self.done.lock().unwrap_or_else(PoisonError::into_inner) = done;
    }
}

/// Which request this is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RequestKey<'a> {
    /// Whose request.
    pub organization: &'a str,
    /// Method and path, for example `POST /v1/add-agent`.
    pub route: &'a str,
    /// The Idempotency-Key.
    pub key: &'a str,
}

/// What is known of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing: it is now marked as running; `finish` or `abandon` must follow.
    First,
    /// The first one has not answered yet.
    Running,
    /// The key was used with another body.
    OtherBody,
    /// The first answer.
    Answered {
        /// HTTP status.
        status: u16,
        /// Body, byte for byte.
        body: String,
    },
}

impl Store {
    /// Looks a request up and, when it is new, marks it as running. `body_hash` is the hex SHA-256 of the body.
    pub async fn begin_request(&self, request: RequestKey<'_>, body_hash: &str, now_ms: i64) -> Result<Seen> {
        let mut db = self.system().await?;
        db.execute("DELETE FROM idempotency WHERE created_ms <= $1", &[(now_ms - LIFETIME_MS).into()]).await?;
        let sql = "SELECT body_hash, status, body FROM idempotency \
                   WHERE org_id = $1 AND route = $2 AND idempotency_key = $3";
        let cells = [request.organization.into(), request.route.into(), request.key.into()];
        if let Some(row) = db.row(sql, &cells).await? {
            let hash: String = row.try_get(0).map_err(Error::internal)?;
            let status: Option<i64> = row.try_get(1).map_err(Error::internal)?;
            let body: Option<String> = row.try_get(2).map_err(Error::internal)?;
            return Ok(match status {
                _ if hash != body_hash => Seen::OtherBody,
                None | Some(BEGUN) => Seen::Running,
                Some(status) => {
                    let body =
                        self.parts.vault.unseal(&place(request.organization, TABLE), &body.unwrap_or_default())?;
                    Seen::Answered { status: status as u16, body }
                }
            });
        }
        let sql = "INSERT INTO idempotency (org_id, route, idempotency_key, body_hash, created_ms) \
                   VALUES ($1, $2, $3, $4, $5)";
        let [organization, route, key] = cells;
        db.execute(sql, &[organization, route, key, body_hash.into(), now_ms.into()]).await?;
        db.commit().await?;
        Ok(Seen::First)
    }

    /// Keeps the answer of a request that was [`Seen::First`].
    pub async fn finish_request(&self, request: RequestKey<'_>, status: u16, body: &str) -> Result<()> {
        let mut db = self.system().await?;
        let sql = "UPDATE idempotency SET status = $4, body = $5 \
                   WHERE org_id = $1 AND route = $2 AND idempotency_key = $3";
        let RequestKey { organization, route, key } = request;
        // It may hold a key that is shown once.
        let body = self.parts.vault.seal(&place(organization, TABLE), body)?;
        let cells = [organization.into(), route.into(), key.into(), i64::from(status).into(), body.into()];
        db.execute(sql, &cells).await?;
        db.commit().await
    }

    /// Forgets a request whose answer is not kept (a fault of the engine, a refused body). One that has changed something before
    /// it failed is not forgotten: carried out again it would change it twice.
    pub async fn abandon_request(&self, request: RequestKey<'_>) -> Result<()> {
        let mut db = self.system().await?;
        let sql =
            "DELETE FROM idempotency WHERE org_id = $1 AND route = $2 AND idempotency_key = $3 AND status IS NULL";
        let RequestKey { organization, route, key } = request;
        db.execute(sql, &[organization.into(), route.into(), key.into()]).await?;
        db.commit().await
    }

    /// Forgets requests that were running when the process stopped and had changed nothing.
    pub async fn abandon_running_requests(&self) -> Result<()> {
        let mut db = self.system().await?;
        db.execute("DELETE FROM idempotency WHERE status IS NULL", &[]).await?;
        db.commit().await
    }
}

impl Session {
    /// Commits, and keeps `answer` for repeats of the request that is carried out, in the same transaction.
    pub async fn answer<T: Serialize>(self, answer: T) -> Result<T> {
        let text = CARRIED.try_with(|_| to_text(&answer)).ok().transpose()?;
        self.commit_with(text).await?;
        Ok(answer)
    }

    /// Commits together with what is to be known of the request that is carried out.
    pub(super) async fn commit_with(mut self, answer: Option<String>) -> Result<()> {
        let carried = CARRIED.try_with(Arc::clone).ok().filter(|_| self.link.writes());
        let Some(carried) = carried else { return self.commit_all().await };
        let now = match (carried.done(), answer) {
            (Done::Nothing | Done::Begun, Some(text)) => Done::Answered(text),
            (Done::Nothing, None) => Done::Begun,
            _ => return self.commit_all().await,
        };
        let (status, body) = match &now {
            Done::Answered(text) => {
                let body = self.vault().seal(&place(&carried.organization, TABLE), text)?;
                (i64::from(carried.status), Some(body))
            }
            _ => (BEGUN, None),
        };
        let sql = "UPDATE idempotency SET status = $4, body = $5 \
                   WHERE org_id = $1 AND route = $2 AND idempotency_key = $3";
        let key = [carried.organization.as_str().into(), carried.route.as_str().into(), carried.key.as_str().into()];
        let [organization, route, key] = key;
        self.execute(sql, &[organization, route, key, status.into(), body.into()]).await?;
        self.commit_all().await?;
        carried.set(now);
        Ok(())
    }
}
