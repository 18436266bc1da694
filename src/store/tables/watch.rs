//! Tables of issues, call logs, monitors, alerts, notifications and phone numbers.

use ringer_model::alert::AlertDoc;
use ringer_model::call_log::CallLogDoc;
use ringer_model::issue::IssueDoc;
use ringer_model::monitor::{CheckDoc, MonitorDoc};
use ringer_model::notification::NotificationDoc;
use ringer_model::phone_number::NumberDoc;
use uuid::Uuid;

use super::super::db::Cell;
use super::super::record::Resource;

impl Resource for IssueDoc {
    const TABLE: &'static str = "issues";
    const WORD: &'static str = "Issue";
    const COLUMNS: &'static [&'static str] =
        &["agent_id", "kind", "group_key", "status", "priority", "assignee_id", "last_seen_ms"];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![
            self.agent_id.into(),
            self.kind.as_str().into(),
            self.group_key.as_str().into(),
            self.triage.status.as_str().into(),
            self.triage.priority.map(|priority| priority.as_str().to_owned()).into(),
            self.triage.assignee_id.into(),
            self.last_seen_at.0.into(),
        ]
    }
}

impl Resource for CallLogDoc {
    const TABLE: &'static str = "call_logs";
    const WORD: &'static str = "Call log";
    const COLUMNS: &'static [&'static str] = &["agent_id", "label", "status"];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![self.agent_id.into(), self.call.label.0.as_str().into(), self.status.as_str().into()]
    }
}

impl Resource for NumberDoc {
    const TABLE: &'static str = "phone_numbers";
    const WORD: &'static str = "Phone number";
    const COLUMNS: &'static [&'static str] = &["number"];
    type Id = i64;

    fn cells(&self) -> Vec<Cell> {
        vec![self.phone_number.as_str().into()]
    }
}

impl Resource for MonitorDoc {
    const TABLE: &'static str = "monitors";
    const WORD: &'static str = "Monitor";
    const COLUMNS: &'static [&'static str] = &["agent_id", "simulation_id"];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![self.spec.agent_id.into(), self.simulation_id.into()]
    }
}

impl Resource for CheckDoc {
    const TABLE: &'static str = "checks";
    const WORD: &'static str = "Check";
    const COLUMNS: &'static [&'static str] = &["monitor_id", "result_id", "is_finished", "verdict"];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![
            self.monitor_id.into(),
            self.simulation_result_id.into(),
            self.finished_at.is_some().into(),
            self.verdict.as_str().into(),
        ]
    }
}

impl Resource for AlertDoc {
    const TABLE: &'static str = "alerts";
    const WORD: &'static str = "Alert";
    const COLUMNS: &'static [&'static str] = &[];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![]
    }
}

impl Resource for NotificationDoc {
    const TABLE: &'static str = "notifications";
    const WORD: &'static str = "Notification";
    const COLUMNS: &'static [&'static str] = &["subject", "status"];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![self.notice.subject.as_str().into(), self.status.as_str().into()]
    }
}
