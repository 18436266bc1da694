//! Notifications: written in the transaction of what they tell of, one a channel, and delivered by a job.

use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::model::Object;
use crate::model::agent::{AgentDoc, AgentSpec};
use crate::model::monitor::MonitorDoc;
use crate::model::notification::{Channel, ChannelType, Notice, NoticeKind, NoticeStatus, NotificationDoc};
use crate::model::run::RunDoc;
use crate::model::time::Timestamp;
use crate::queue::NotifyJob;
use crate::service::Service;
use crate::service::library::field_rules;
use crate::store::{Row, Session};

impl Service {
    /// Stores a pending notification for each channel, with a job that delivers it.
    pub(in crate::service) async fn notify(
        &self,
        db: &mut Session,
        channels: &[Channel],
        notice: &Notice,
    ) -> Result<()> {
        let now = self.clock.now_ms();
        for channel in channels {
            let doc = NotificationDoc {
                notice: notice.clone(),
                channel: channel.clone(),
                status: NoticeStatus::Pending,
                attempts: 0,
                error: None,
            };
            let notification_id = db.insert(&doc, now, None).await?;
            let organization = db.organization().to_owned();
            db.put(&NotifyJob { organization, notification_id, attempt: 1 }, now, None).await?;
        }
        Ok(())
    }

    /// Tells those who are to know of it that a run is completed. The calls of monitors are no runs to them.
    pub(in crate::service) async fn notify_of_run(&self, db: &mut Session, run_id: i64, run: &RunDoc) -> Result<()> {
        let Some(agent) = db.find::<AgentDoc>(run.agent_id).await? else { return Ok(()) };
        let channels = run_channels(&agent.doc.spec);
        if channels.is_empty() || !db.by::<MonitorDoc>("simulation_id", run.simulation_id).await?.is_empty() {
            return Ok(());
        }
        let summary = run.summary.clone().unwrap_or_default();
        let data = serde_json::json!({
            "simulation_run_id": run_id, "simulation_id": run.simulation_id, "agent_id": run.agent_id,
        });
        let notice = Notice {
            kind: NoticeKind::RunCompleted,
            title: format!("Run {run_id} of {} is completed", agent.doc.spec.name),
            text: summary,
            at: Timestamp(self.clock.now_ms()),
            links: vec![self.link(&format!("/v1/retrieve-simulation-results/{run_id}"))],
            data: data.as_object().cloned().unwrap_or_default(),
            subject: run_id.to_string(),
        };
        self.notify(db, &channels, &notice).await
    }

    /// Tells those who look after the organization by mail, where the settings say who that is and how mail goes out.
    pub(in crate::service) async fn notify_admins(&self, db: &mut Session, notice: &Notice) -> Result<()> {
        let settings = &self.settings.notify;
        if settings.admins.is_empty() || settings.smtp_url.is_none() {
            return Ok(());
        }
        let name = db.organization_name().await?.unwrap_or_default();
        let to = |target: &str| Channel { kind: ChannelType::Email, target: target.to_owned() };
        let channels: Vec<Channel> = settings.admins_of(&name).into_iter().map(to).collect();
        self.notify(db, &channels, notice).await
    }

    /// Returns a path as users reach it.
    pub(in crate::service) fn link(&self, path: &str) -> String {
        format!("{}{path}", self.settings.public_url.as_deref().unwrap_or_default())
    }

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
    pub async fn notifications_about(&self, organization: &str, subject: &str) -> Result<Vec<NotificationDoc>> {
        let mut db = self.store.org(organization).read().await?;
        let rows: Vec<Row<NotificationDoc>> = db.by("subject", subject).await?;
        Ok(rows.into_iter().map(|row| row.doc).collect())
    }

    /// Refuses targets whose names lead to where nothing may be sent. Done before the transaction: names may take long.
    pub(in crate::service) async fn look_at_channels(&self, channels: &[Channel]) -> Result<()> {
        let posted =
            channels.iter().filter(|channel| matches!(channel.kind, ChannelType::Webhook | ChannelType::Slack));
        let urls: Vec<(String, String)> = posted.map(|channel| ("target".to_owned(), channel.target.clone())).collect();
        field_rules::look(&urls, &self.settings, self.poster.guard()).await
    }

    /// Looks at the channels that a partial update gives, where it gives any.
    pub(in crate::service) async fn look_at_given_channels(&self, given: Option<&Value>) -> Result<()> {
        let channels = given.and_then(|given| Vec::<Channel>::deserialize(given).ok());
        self.look_at_channels(&channels.unwrap_or_default()).await
    }

    /// Refuses targets that nothing can be sent to.
    pub(in crate::service) fn check_channels(&self, channels: &[Channel]) -> Result<()> {
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

/// Returns the facts of a notification that names its subject.
pub(in crate::service) fn about(key: &str, id: Uuid, more: Object) -> Object {
    let mut data = Object::from_iter([(key.to_owned(), id.to_string().into())]);
    data.extend(more);
    data
}

fn is_address(text: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && !part.contains([' ', '@', '<', '>', '\r', '\n']);
    text.split_once('@').is_some_and(|(user, host)| plain(user) && plain(host))
}

/// Returns the channels of `emails` and `webhook_url` of an agent's `simulation_notifications`.
fn run_channels(agent: &AgentSpec) -> Vec<Channel> {
    let emails = agent.simulation_notifications.get("emails").and_then(|list| list.as_array()).into_iter().flatten();
    let emails = emails.filter_map(|entry| entry.as_str()).filter(|text| is_address(text));
    let email = |target: &str| Channel { kind: ChannelType::Email, target: target.to_owned() };
    let webhook = |target: &str| Channel { kind: ChannelType::Webhook, target: target.to_owned() };
    emails.map(email).chain(agent.run_webhook().map(webhook)).collect()
}
