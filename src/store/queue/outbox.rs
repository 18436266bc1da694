//! Outbox of webhook events. An event is stored in the transaction of the change that it reports, one row a webhook. It
//! stays until it was delivered or given up. A claim is exclusive until its lease ends.
//!
//! At most [`AT_ONCE`] events of one webhook are sent at the same time, and an event waits for the earlier ones of its
//! subject.
//!
//! Its claims are its own and not a lane of the queue: an event that waits hours for its retry must not hold a place.

use ringer_base::error::{Error, Result};
use uuid::Uuid;

use super::Queue;
use crate::{Session, db};

/// Name of the kind of work, as engines tell each other of it.
pub const KIND: &str = "webhook";

/// Most deliveries of one webhook at the same time.
pub const AT_ONCE: i64 = 8;

/// Length of a lease in milliseconds; an attempt takes a tenth of it.
pub const LEASE_MS: i64 = 60_000;

/// Longest time that an event waits, in milliseconds (for a webhook that is disabled).
const KEPT_MS: i64 = 7 * 24 * 3_600_000;

/// Returns the condition of a claim at the time `now` besides the due time: the webhook is enabled and not busy, and
/// the event is the first of its subject. `$2` is [`AT_ONCE`].
fn is_next(now: &str) -> String {
    format!(
        "EXISTS (SELECT 1 FROM webhooks w WHERE w.id = o.webhook_id AND w.enabled = 1) \
         AND (SELECT COUNT(*) FROM outbox b WHERE b.webhook_id = o.webhook_id AND b.lease_ms > {now}) < $2 \
         AND NOT EXISTS \
         (SELECT 1 FROM outbox e WHERE e.webhook_id = o.webhook_id AND e.subject = o.subject AND e.id < o.id)"
    )
}

/// An event for the webhooks that subscribe to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Identifier of the event, the same for every webhook and attempt.
    pub id: Uuid,
    /// Type of the event.
    pub kind: &'static str,
    /// Subject of the event; events of one subject are sent in their order.
    pub subject: Option<String>,
    /// Body of the request, byte for byte.
    pub body: String,
}

/// A claimed event. Only its holder may settle it, until the lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Identifier of the row.
    pub id: i64,
    /// Organization that owns the webhook.
    pub organization: String,
    /// Webhook that the event is sent to.
    pub webhook_id: Uuid,
    /// Identifier of the event.
    pub event_id: Uuid,
    /// Type of the event.
    pub event: String,
    /// Body of the request, byte for byte.
    pub body: String,
    /// Number of claims, from 1.
    pub attempts: i64,
}

impl Session {
    /// Stores an event for a webhook, due at once.
    pub async fn put_event(&mut self, webhook: Uuid, event: &Event, now_ms: i64) -> Result<()> {
        self.execute("DELETE FROM outbox WHERE created_ms <= $1", &[(now_ms - KEPT_MS).into()]).await?;
        let sql = "INSERT INTO outbox (org_id, webhook_id, event_id, event, subject, body, due_ms, created_ms) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $7)";
        let cells = [
            self.organization().into(),
            webhook.into(),
            event.id.into(),
            event.kind.into(),
            event.subject.clone().into(),
            event.body.as_str().into(),
            now_ms.into(),
        ];
        self.execute(sql, &cells).await?;
        self.note_due(KIND);
        Ok(())
    }

    /// Deletes an event that was delivered or is given up. False: the lease had ended and another worker has it.
    pub async fn drop_event(&mut self, outgoing: &Outgoing) -> Result<bool> {
        let sql = "DELETE FROM outbox WHERE id = $1 AND attempts = $2";
        self.settle(sql, &[outgoing.id.into(), outgoing.attempts.into()]).await
    }

    /// Returns the event to the outbox, to be sent again at `due_ms`. False: the lease had ended and another worker has
    /// it.
    pub async fn retry_event(&mut self, outgoing: &Outgoing, due_ms: i64) -> Result<bool> {
        let sql = "UPDATE outbox SET lease_ms = NULL, due_ms = $3 WHERE id = $1 AND attempts = $2";
        self.settle(sql, &[outgoing.id.into(), outgoing.attempts.into(), due_ms.into()]).await
    }

    async fn settle(&mut self, sql: &str, cells: &[db::Cell]) -> Result<bool> {
        let changed = self.execute(sql, cells).await?;
        self.note_due(KIND);
        Ok(changed > 0)
    }

    /// Ends every lease of events; see [`Queue::end_leases`].
    pub(super) async fn end_event_leases(&mut self) -> Result<()> {
        self.execute("UPDATE outbox SET lease_ms = NULL WHERE lease_ms IS NOT NULL", &[]).await.map(drop)
    }
}

impl Queue {
    /// Claims the event that is due longest; `None` when none is due.
    pub async fn claim_event(&self) -> Result<Option<Outgoing>> {
        let mut db = self.store.system().await?;
        let now = db.now_at(1);
        let (free, is_next) = (self.free(&now), is_next(&now));
        // The outer condition matters when sessions of two engines choose the same row at the same time.
        let sql = format!(
            "UPDATE outbox SET lease_ms = {now} + $3, attempts = attempts + 1 WHERE id = (SELECT o.id FROM outbox o \
             WHERE o.due_ms <= {now} AND {free} AND {is_next} \
             ORDER BY o.due_ms, o.id LIMIT 1) AND {free} \
             RETURNING id, org_id, webhook_id, event_id, event, body, attempts"
        );
        let cells = [self.time(), AT_ONCE.into(), LEASE_MS.into()];
        let Some(row) = db.row(&sql, &cells).await? else { return Ok(None) };
        let claimed = outgoing_of(&row).map_err(Error::internal)?;
        db.commit().await?;
        Ok(Some(claimed))
    }

    /// Returns the time at which the next event can be claimed, in the past when one is due; `None`: there is none.
    pub async fn next_event_ms(&self) -> Result<Option<i64>> {
        let mut db = self.store.org("").read().await?;
        let free = if self.store.is_settled() { "" } else { "o.lease_ms IS NULL AND " };
        let is_next = is_next(&db.now_at(1));
        let sql = format!(
            "SELECT MIN(CASE WHEN o.lease_ms IS NULL OR o.lease_ms < o.due_ms THEN o.due_ms ELSE o.lease_ms END) \
             FROM outbox o WHERE {free}{is_next}"
        );
        let row = db.row(&sql, &[self.time(), AT_ONCE.into()]).await?;
        row.map_or(Ok(None), |row| row.try_get(0).map_err(Error::internal))
    }
}

fn outgoing_of(row: &db::Row) -> Result<Outgoing, sqlx::Error> {
    let id = |column: &str| row.try_get::<String, _>(column).map(|text| Uuid::parse_str(&text).unwrap_or_default());
    Ok(Outgoing {
        id: row.try_get("id")?,
        organization: row.try_get("org_id")?,
        webhook_id: id("webhook_id")?,
        event_id: id("event_id")?,
        event: row.try_get("event")?,
        body: row.try_get("body")?,
        attempts: row.try_get("attempts")?,
    })
}
