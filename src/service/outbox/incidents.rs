//! Incidents of monitors: their beginning and end, which those who watch a monitor are told.

use ringer_base::clock;
use ringer_base::error::Result;
use ringer_model::Object;
use ringer_model::agent::AgentDoc;
use ringer_model::monitor::{CheckItem, Incident, MonitorDoc};
use ringer_model::notification::{Notice, NoticeKind};
use ringer_model::time::Timestamp;
use ringer_store::{Row, Session};
use serde_json::{Value, json};

use super::Outbox;
use super::notices::about;

impl Outbox {
    /// Opens an incident of a monitor, unless one is open, and says so.
    pub(crate) async fn open_incident(
        &self,
        db: &mut Session,
        row: &mut Row<MonitorDoc>,
        worst: &CheckItem,
    ) -> Result<()> {
        if row.doc.open_incident.is_some() {
            return Ok(());
        }
        let opened_at = Timestamp(self.clock.now_ms());
        let reason = format!("{}: {}", worst.id, worst.message);
        row.doc.open_incident = Some(Incident { id: clock::new_id(), opened_at, reason: reason.clone() });
        self.tell_watchers(db, row, NoticeKind::UptimeDown, &reason, worst.facts()).await
    }

    /// Ends an incident that is open, and says so.
    pub(crate) async fn close_incident(&self, db: &mut Session, row: &mut Row<MonitorDoc>, why: &str) -> Result<()> {
        let Some(incident) = row.doc.open_incident.take() else { return Ok(()) };
        let facts = json!({ "incident_id": incident.id, "opened_at": incident.opened_at, "reason": incident.reason });
        let facts = facts.as_object().cloned().unwrap_or_default();
        self.tell_watchers(db, row, NoticeKind::UptimeRecovered, why, facts).await
    }

    async fn tell_watchers(
        &self,
        db: &mut Session,
        row: &Row<MonitorDoc>,
        kind: NoticeKind,
        text: &str,
        facts: Object,
    ) -> Result<()> {
        let agent = db.find::<AgentDoc>(row.doc.spec.agent_id).await?;
        let name = agent.map_or_else(|| "An agent".to_owned(), |agent| agent.doc.spec.name);
        let word = if kind == NoticeKind::UptimeDown { "is down" } else { "has recovered" };
        let mut facts = facts;
        facts.insert("agent_id".into(), Value::from(row.doc.spec.agent_id));
        let notice = Notice {
            kind,
            title: format!("{name} {word}"),
            text: text.to_owned(),
            at: Timestamp(self.clock.now_ms()),
            links: vec![self.link(&format!("/v1/uptime/monitors/{}", row.id))],
            data: about("monitor_id", row.id, facts),
            subject: row.id.to_string(),
        };
        self.notify(db, &row.doc.spec.notifications.channels, &notice).await
    }
}
