//! Notifications: events that are reported to people, the channel, and the state of each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Object;
use super::time::Timestamp;

words! {
    /// Kind of a notification channel.
    ChannelType { Email = "email", Slack = "slack", Webhook = "webhook", Pager = "pager" }
}

words! {
    /// Event that people are notified of.
    NoticeKind {
        UptimeDown = "uptime_down", UptimeRecovered = "uptime_recovered", AlertTriggered = "alert_triggered",
        AlertResolved = "alert_resolved", RunCompleted = "run_completed", WebhookDisabled = "webhook_disabled",
        AutosyncFailed = "autosync_failed",
    }
}

words! {
    /// State of a notification.
    kept NoticeStatus { Pending = "pending", Sent = "sent", Failed = "failed" } default Pending
}

/// A notification channel and its target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Channel {
    /// Kind of the channel.
    #[serde(rename = "type")]
    pub kind: ChannelType,
    /// An address, a URL, a channel or a routing key.
    #[schemars(length(min = 1))]
    pub target: String,
}

/// An event that people are notified of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// Kind of the event.
    pub kind: NoticeKind,
    /// Title, a few words.
    pub title: String,
    /// Description, a sentence or more.
    pub text: String,
    /// Time of the event.
    pub at: Timestamp,
    /// Links to the affected resources.
    pub links: Vec<String>,
    /// Facts of the event for programs, by name.
    pub data: Object,
    /// Id of the monitor, alert, run, webhook or agent: the same for what began and its end.
    pub subject: String,
}

impl Notice {
    /// True if it reports the end of an earlier event.
    pub fn resolves(&self) -> bool {
        matches!(self.kind, NoticeKind::UptimeRecovered | NoticeKind::AlertResolved)
    }
}

/// A notification as stored: one for each channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotificationDoc {
    /// Event that is reported.
    pub notice: Notice,
    /// Channel that it goes to.
    pub channel: Channel,
    /// State of the notification.
    pub status: NoticeStatus,
    /// Number of attempts so far.
    pub attempts: i64,
    /// Reason why the last attempt failed; null: none did.
    pub error: Option<String>,
}
