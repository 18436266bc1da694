//! Notices: written in the transaction of the change that they tell of, one a channel, and delivered by a job.

use ringer_base::error::Result;
use ringer_model::Object;
use ringer_model::agent::{AgentDoc, AgentSpec};
use ringer_model::monitor::MonitorDoc;
use ringer_model::notification::{Channel, ChannelType, Notice, NoticeKind, NoticeStatus, NotificationDoc};
use ringer_model::run::RunDoc;
use ringer_model::time::Timestamp;
use ringer_store::Session;
use ringer_store::queue::NotifyJob;
use uuid::Uuid;

use super::Outbox;

impl Outbox {
    /// Stores a pending notification for each channel, with a job that delivers it.
    pub(crate) async fn notify(&self, db: &mut Session, channels: &[Channel], notice: &Notice) -> Result<()> {
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
    pub(crate) async fn notify_of_run(&self, db: &mut Session, run_id: i64, run: &RunDoc) -> Result<()> {
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

    /// Tells those who are to know of an agent: `emails` and `webhook_url` of its `simulation_notifications`.
    pub(crate) async fn notify_of_agent(&self, db: &mut Session, agent: &AgentSpec, notice: &Notice) -> Result<()> {
        self.notify(db, &run_channels(agent), notice).await
    }

    /// Tells those who look after the organization by mail, where the settings say who that is and how mail goes out.
    pub(crate) async fn notify_admins(&self, db: &mut Session, notice: &Notice) -> Result<()> {
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
    pub(crate) fn link(&self, path: &str) -> String {
        format!("{}{path}", self.settings.public_url.as_deref().unwrap_or_default())
    }
}

/// Returns the facts of a notification that names its subject.
pub(crate) fn about(key: &str, id: Uuid, more: Object) -> Object {
    let mut data = Object::from_iter([(key.to_owned(), id.to_string().into())]);
    data.extend(more);
    data
}

pub(crate) fn is_address(text: &str) -> bool {
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
