//! The log of webhook deliveries.

use ringer_base::error::{Error, Result};
use ringer_model::time::Timestamp;
use ringer_model::webhook::DeliveryRecord;
use uuid::Uuid;

use super::{Session, db};

/// Time that attempts are stored.
const KEPT_MS: i64 = 7 * 24 * 3_600_000;

impl Session {
    /// Stores an attempt, and deletes those that are older than seven days.
    pub async fn log_delivery(&mut self, webhook: Uuid, event_id: Uuid, attempt: &DeliveryRecord) -> Result<()> {
        let forget = "DELETE FROM deliveries WHERE webhook_id = $1 AND at_ms <= $2";
        self.execute(forget, &[webhook.into(), (attempt.at.0 - KEPT_MS).into()]).await?;
        let sql = "INSERT INTO deliveries \
                   (id, org_id, webhook_id, event, event_id, attempt, status, error, at_ms, body_sha256) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
        let cells = [
            attempt.id.into(),
            self.organization().into(),
            webhook.into(),
            attempt.event.as_str().into(),
            event_id.into(),
            attempt.attempt.into(),
            attempt.status.into(),
            attempt.error.clone().into(),
            attempt.at.0.into(),
            attempt.body_sha256.as_str().into(),
        ];
        self.execute(sql, &cells).await.map(drop)
    }

    /// Returns attempts `offset .. offset + limit` of a webhook, newest first, and their number.
    pub async fn deliveries(
        &mut self,
        webhook: Uuid,
        now_ms: i64,
        limit: i64,
        offset: i64,
    ) -> Result<(Vec<DeliveryRecord>, i64)> {
        let since = now_ms - KEPT_MS;
        let count = "SELECT COUNT(*) FROM deliveries WHERE org_id = $1 AND webhook_id = $2 AND at_ms > $3";
        let cells = [self.organization().into(), webhook.into(), since.into()];
        let total = self.number(count, &cells).await?;
        let sql = "SELECT id, event, attempt, status, error, at_ms, body_sha256 FROM deliveries \
                   WHERE org_id = $1 AND webhook_id = $2 AND at_ms > $3 \
                   ORDER BY seq DESC LIMIT $4 OFFSET $5";
        let [organization, webhook, since] = cells;
        let rows = self.rows(sql, &[organization, webhook, since, limit.into(), offset.into()]).await?;
        Ok((rows.iter().map(record_of).collect::<Result<_>>()?, total))
    }
}

fn record_of(row: &db::Row) -> Result<DeliveryRecord> {
    let read = || -> Result<DeliveryRecord, sqlx::Error> {
        let id: String = row.try_get("id")?;
        Ok(DeliveryRecord {
            id: Uuid::parse_str(&id).unwrap_or_default(),
            event: row.try_get("event")?,
            attempt: row.try_get("attempt")?,
            status: row.try_get("status")?,
            error: row.try_get("error")?,
            at: Timestamp(row.try_get("at_ms")?),
            body_sha256: row.try_get("body_sha256")?,
        })
    };
    read().map_err(Error::internal)
}
