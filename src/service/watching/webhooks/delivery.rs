//! Delivery of events to webhooks: signed, retried, logged, given up.

use ringer_base::clock;
use ringer_base::error::Result;
use ringer_base::post::signatures;
use ringer_media::seed::Seed;
use ringer_model::Object;
use ringer_model::notification::{Notice, NoticeKind};
use ringer_model::time::Timestamp;
use ringer_model::webhook::{DeliveryRecord, WebhookDoc};
use ringer_store::queue::outbox::Outgoing;
use ringer_store::{Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::Caller;
use crate::outbox::notices::about;
use crate::watching::Watching;

/// Waits after the first attempts, seconds; the last attempt follows the last wait.
const WAITS_S: [i64; 6] = [5, 30, 120, 600, 3600, 21_600];

/// Part of a wait by which it is longer or shorter, so that not all come back at the same moment.
const SPREAD: f64 = 0.2;

/// Events in a row that failed for good, after which a webhook is disabled.
const MOST_FAILURES: i64 = 50;

/// The receiver is gone for good (RFC 9110 15.5.11).
const GONE: i64 = 410;

/// Response to a test of a webhook.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WebhookTested {
    /// True for a status of success.
    pub delivered: bool,
    /// Status of the answer; null when there was none.
    pub status: Option<i64>,
    /// Explanation in words, for display.
    pub message: String,
}

/// One attempt as it came out.
struct Attempt {
    record: DeliveryRecord,
    event_id: Uuid,
    /// Status and why it was no success.
    outcome: Result<i64, (Option<i64>, String)>,
}

impl Watching {
    /// Tells a claimed event once, and settles what follows: it is told, or due again later, or given up.
    pub async fn deliver(&self, outgoing: Outgoing) -> Result<()> {
        let store = self.store.org(&outgoing.organization);
        let row = store.read().await?.find::<WebhookDoc>(outgoing.webhook_id).await?;
        // With its webhook the event went too.
        let Some(row) = row else { return Ok(()) };
        let Outgoing { event_id, attempts, .. } = outgoing;
        let attempt = self.attempt(&row, &outgoing.event, event_id, attempts, outgoing.body.clone()).await;
        let mut db = store.write().await?;
        // It may have been changed or deleted meanwhile.
        let Some(mut row) = db.find::<WebhookDoc>(outgoing.webhook_id).await? else { return Ok(()) };
        self.log(&mut db, row.id, &attempt).await?;
        self.settle(&mut db, &mut row, &outgoing, &attempt.outcome).await?;
        // When it was written by its owner does not change.
        db.update(row.id, &row.doc, row.updated_ms, row.updated_by).await?;
        db.commit().await
    }

    /// Sends a `ping` at once, whatever the webhook's state.
    pub async fn test_webhook(&self, caller: &Caller, id: Uuid) -> Result<WebhookTested> {
        let store = self.store.org(&caller.organization);
        let row = store.read().await?.get::<WebhookDoc>(id).await?;
        let body = json!({ "type": "ping", "webhook_id": id }).to_string();
        let attempt = self.attempt(&row, "ping", clock::new_id(), 1, body).await;
        let mut db = store.write().await?;
        db.get::<WebhookDoc>(id).await?;
        self.log(&mut db, id, &attempt).await?;
        db.commit().await?;
        let (delivered, status, message) = match attempt.outcome {
            Ok(status) => (true, Some(status), "Delivered".to_owned()),
            Err((status, why)) => (false, status, format!("Not delivered: {why}")),
        };
        Ok(WebhookTested { delivered, status, message })
    }

    async fn attempt(
        &self,
        webhook: &Row<WebhookDoc>,
        event: &str,
        event_id: Uuid,
        number: i64,
        body: String,
    ) -> Attempt {
        let WebhookDoc { spec, signing_key, .. } = &webhook.doc;
        let mut record = DeliveryRecord {
            id: clock::new_id(),
            event: event.to_owned(),
            attempt: number,
            status: None,
            error: None,
            at: Timestamp(self.clock.now_ms()),
            body_sha256: hex::encode(Sha256::digest(body.as_bytes())),
        };
        let id = event_id.to_string();
        let [signed, timed] = signatures(signing_key, &id, record.at.0, &body);
        let headers = [
            ("X-Svc-Event", event.to_owned()),
            ("X-Svc-Event-Id", id),
            ("X-Svc-Delivery", record.id.to_string()),
            signed,
            timed,
        ];
        let outcome = match self.poster.post(&spec.url, &headers, body).await {
            Ok(status @ 200..=299) => Ok(i64::from(status)),
            Ok(status) => Err((Some(i64::from(status)), format!("the receiver answered {status}"))),
            Err(why) => Err((None, why)),
        };
        (record.status, record.error) = match &outcome {
            Ok(status) => (Some(*status), None),
            Err((status, why)) => (*status, Some(why.clone())),
        };
        Attempt { record, event_id, outcome }
    }

    async fn log(&self, db: &mut Session, webhook: Uuid, attempt: &Attempt) -> Result<()> {
        db.log_delivery(webhook, attempt.event_id, &attempt.record).await
    }

    async fn settle(
        &self,
        db: &mut Session,
        webhook: &mut Row<WebhookDoc>,
        outgoing: &Outgoing,
        outcome: &Result<i64, (Option<i64>, String)>,
    ) -> Result<()> {
        let status = match outcome {
            Ok(status) => Some(*status),
            Err((status, _)) => *status,
        };
        webhook.doc.last_status = status;
        if outcome.is_ok() {
            webhook.doc.consecutive_failures = 0;
            return db.drop_event(outgoing).await.map(drop);
        }
        let gone = status == Some(GONE);
        if let (false, Some(wait)) = (gone, wait_ms(outgoing)) {
            return db.retry_event(outgoing, self.clock.now_ms() + wait).await.map(drop);
        }
        webhook.doc.consecutive_failures += i64::from(db.drop_event(outgoing).await?);
        let failures = webhook.doc.consecutive_failures;
        if webhook.doc.spec.enabled && (gone || failures >= MOST_FAILURES) {
            webhook.doc.spec.enabled = false;
            let why = match gone {
                true => format!("the receiver answered {GONE}"),
                false => format!("{failures} events in a row failed"),
            };
            tracing::warn!(webhook = %webhook.id, "webhook disabled: {why}");
            let record = DeliveryRecord {
                id: clock::new_id(),
                event: "webhook_disabled".to_owned(),
                attempt: outgoing.attempts,
                status,
                error: Some(why.clone()),
                at: Timestamp(self.clock.now_ms()),
                body_sha256: hex::encode(Sha256::digest(outgoing.body.as_bytes())),
            };
            db.log_delivery(webhook.id, outgoing.event_id, &record).await?;
            self.outbox.notify_admins(db, &self.disabled_notice(webhook, &why)).await?;
        }
        Ok(())
    }
}

impl Watching {
    /// Returns the notice of a disabled webhook. Its address may hold a password: it is not repeated.
    fn disabled_notice(&self, webhook: &Row<WebhookDoc>, why: &str) -> Notice {
        let id = webhook.id;
        Notice {
            kind: NoticeKind::WebhookDisabled,
            title: "A webhook is disabled".to_owned(),
            text: format!("Nothing more is sent to webhook {id}: {why}. Enable it again when its receiver answers."),
            at: Timestamp(self.clock.now_ms()),
            links: vec![self.outbox.link(&format!("/v1/webhooks/{id}/deliveries"))],
            data: about("webhook_id", id, Object::new()),
            subject: id.to_string(),
        }
    }
}

/// Returns the time until the next attempt in milliseconds, drawn by event and attempt. `None`: this attempt was the
/// last.
fn wait_ms(outgoing: &Outgoing) -> Option<i64> {
    let wait = *WAITS_S.get(usize::try_from(outgoing.attempts - 1).ok()?)?;
    let draw = Seed::of(&format!("{}:{}", outgoing.event_id, outgoing.attempts)).0 as f64 / (1_u64 << 53) as f64;
    Some((wait as f64 * 1000.0 * (1.0 + SPREAD * (2.0 * draw - 1.0))) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_are_spread_by_a_fifth() {
        let outgoing = |attempts, event: u128| Outgoing {
            id: 1,
            organization: String::new(),
            webhook_id: Uuid::nil(),
            event_id: Uuid::from_u128(event),
            event: String::new(),
            body: String::new(),
            attempts,
        };
        for (attempt, seconds) in (1..).zip(WAITS_S) {
            let waits: Vec<i64> = (0..1000).filter_map(|event| wait_ms(&outgoing(attempt, event))).collect();
            let (least, most) = (waits.iter().min().expect("some"), waits.iter().max().expect("some"));
            assert!((seconds * 800..=seconds * 815).contains(least), "{seconds} s: {least} ms");
            assert!((seconds * 1185..=seconds * 1200).contains(most), "{seconds} s: {most} ms");
        }
        assert_eq!(wait_ms(&outgoing(7, 1)), None);
    }
}
