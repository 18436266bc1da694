//! Answers kept for requests that carry an Idempotency-Key, so that a repeat gets the first answer.

use super::Store;
use super::sealing::place;
use crate::error::{Error, Result};

/// How long an answer is kept, from the first request.
pub const LIFETIME_MS: i64 = 24 * 3600 * 1000;

/// Where answers lie.
pub(super) const TABLE: &str = "idempotency";

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
                None => Seen::Running,
                Some(status) => {
                    let body = self.vault.unseal(&place(request.organization, TABLE), &body.unwrap_or_default())?;
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
        let body = self.vault.seal(&place(organization, TABLE), body)?;
        let cells = [organization.into(), route.into(), key.into(), i64::from(status).into(), body.into()];
        db.execute(sql, &cells).await?;
        db.commit().await
    }

    /// Forgets a request whose answer is not kept (a fault of the engine, a refused body).
    pub async fn abandon_request(&self, request: RequestKey<'_>) -> Result<()> {
        let mut db = self.system().await?;
        let sql = "DELETE FROM idempotency WHERE org_id = $1 AND route = $2 AND idempotency_key = $3";
        let RequestKey { organization, route, key } = request;
        db.execute(sql, &[organization.into(), route.into(), key.into()]).await?;
        db.commit().await
    }

    /// Forgets requests that were running when the process stopped.
    pub async fn abandon_running_requests(&self) -> Result<()> {
        let mut db = self.system().await?;
        db.execute("DELETE FROM idempotency WHERE status IS NULL", &[]).await?;
        db.commit().await
    }
}
