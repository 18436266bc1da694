//! Notifications: written in the transaction of what they tell of, one a channel, and delivered by a job.

use ringer_base::error::{Error, Result};
use ringer_model::notification::{Channel, ChannelType, NoticeStatus, NotificationDoc};
use ringer_store::Row;
use ringer_store::queue::NotifyJob;
use serde::Deserialize;
use serde_json::Value;

use super::Watching;
use crate::library::field_rules;
use crate::outbox::notices::is_address;

impl Watching {
    /// Returns a notification that still has to be delivered; `None` when it was, or is gone.
    pub async fn pending_notification(&self, job: &NotifyJob) -> Result<Option<NotificationDoc>> {
        let mut db = self.store.org(&job.organization).read().await?;
        let row = db.find::<NotificationDoc>(job.notification_id).await?;
        Ok(row.map(|row| row.doc).filter(|doc| doc.status == NoticeStatus::Pending))
    }

    /// True when there is something newer to tell the same channel about the same subject.
    pub async fn is_overtaken(&self, job: &NotifyJob, doc: &NotificationDoc) -> Result<bool> {
        let mut db = self.store.org(&job.organization).read().await?;
        let rows: Vec<Row<NotificationDoc>> = db.by("subject", doc.notice.subject.as_str()).await?;
        let newest = rows.iter().find(|row| row.doc.channel == doc.channel);
        Ok(newest.is_some_and(|newest| newest.id != job.notification_id))
    }

    /// Keeps what came of an attempt: `None` for a success; `again_ms`: when it is tried again.
    pub async fn keep_attempt(&self, job: &NotifyJob, error: Option<String>, again_ms: Option<i64>) -> Result<()> {
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(mut row) = db.find::<NotificationDoc>(job.notification_id).await? else { return Ok(()) };
        row.doc.attempts = job.attempt;
        row.doc.status = match (&error, again_ms) {
            (None, _) => NoticeStatus::Sent,
            (Some(_), None) => NoticeStatus::Failed,
            (Some(_), Some(_)) => NoticeStatus::Pending,
        };
        row.doc.error = error;
        db.update(row.id, &row.doc, self.clock.now_ms(), None).await?;
        if let (NoticeStatus::Pending, Some(due_ms)) = (row.doc.status, again_ms) {
            db.put(&NotifyJob { attempt: job.attempt + 1, ..job.clone() }, due_ms, None).await?;
        }
        db.commit().await
    }

    /// Returns the notifications about a monitor, an alert or a run, newest first.
    #[cfg(any(test, feature = "testing"))]
    pub async fn notifications_about(&self, organization: &str, subject: &str) -> Result<Vec<NotificationDoc>> {
        let mut db = self.store.org(organization).read().await?;
        let rows: Vec<Row<NotificationDoc>> = db.by("subject", subject).await?;
        Ok(rows.into_iter().map(|row| row.doc).collect())
    }

    /// Refuses targets whose names lead to where nothing may be sent. Done before the transaction: names may take long.
    pub(crate) async fn look_at_channels(&self, channels: &[Channel]) -> Result<()> {
        let posted =
            channels.iter().filter(|channel| matches!(channel.kind, ChannelType::Webhook | ChannelType::Slack));
        let urls: Vec<(String, String)> = posted.map(|channel| ("target".to_owned(), channel.target.clone())).collect();
        field_rules::look(&urls, &self.settings, self.poster.guard()).await
    }

    /// Looks at the channels that a partial update gives, where it gives any.
    pub(crate) async fn look_at_given_channels(&self, given: Option<&Value>) -> Result<()> {
        let channels = given.and_then(|given| Vec::<Channel>::deserialize(given).ok());
        self.look_at_channels(&channels.unwrap_or_default()).await
    }

    /// Refuses targets that nothing can be sent to.
    pub(crate) fn check_channels(&self, channels: &[Channel]) -> Result<()> {
        for Channel { kind, target } in channels {
            match kind {
                ChannelType::Email if !is_address(target) => {
                    return Err(Error::Refused("target must be an e-mail address".into()));
                }
                ChannelType::Webhook => field_rules::webhook("target", Some(target), &self.settings)?,
                ChannelType::Slack if target.contains("://") => {
                    field_rules::webhook("target", Some(target), &self.settings)?;
                }
                ChannelType::Email | ChannelType::Slack | ChannelType::Pager => {}
            }
        }
        Ok(())
    }
}
