//! Notifications: what is told to whom, over which channel, and what came of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Object;
use super::time::Timestamp;

words! {
    /// How somebody is told.
    ChannelType { Email = "email", Slack = "slack", Webhook = "webhook", Pager = "pager" }
}

words! {
    /// What is told.
    NoticeKind {
        UptimeDown = "uptime_down", UptimeRecovered = "uptime_recovered", AlertTriggered = "alert_triggered",
        AlertResolved = "alert_resolved", RunCompleted = "run_completed", WebhookDisabled = "webhook_disabled",
    }
}

words! {
    /// What came of a notification.
    kept NoticeStatus { Pending = "pending", Sent = "sent", Failed = "failed" } default Pending
}

/// Who is told, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Channel {
    /// How.
    #[serde(rename = "type")]
    pub kind: ChannelType,
    /// An address, a URL, a channel or a routing key.
    #[schemars(length(min = 1))]
    pub target: String,
}

/// Something that is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// What it is about.
    pub kind: NoticeKind,
    /// In a few words.
    pub title: String,
    /// In more words.
    pub text: String,
    /// When it happened.
    pub at: Timestamp,
    /// Where to look.
    pub links: Vec<String>,
    /// The facts.
    pub data: Object,
    /// Id of the monitor, alert, run or webhook: the same for what began and its end.
    pub subject: String,
}

impl Notice {
    /// True when it tells of the end of something.
    pub fn resolves(&self) -> bool {
        matches!(self.kind, NoticeKind::UptimeRecovered | NoticeKind::AlertResolved)
    }
}

/// A notification as stored: one a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotificationDoc {
    /// What is told.
    pub notice: Notice,
    /// To whom.
    pub channel: Channel,
    /// What came of it.
    pub status: NoticeStatus,
    /// Attempts so far.
    pub attempts: i64,
    /// Why the last attempt failed.
    pub error: Option<String>,
}
