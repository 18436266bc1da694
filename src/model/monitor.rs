//! Uptime monitors: agents that are called at intervals, and the results of these calls.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::alert::Operator;
use super::notification::{Channel, ChannelType};
use super::time::{GivenTime, Timestamp};
use super::{Object, yes};

words! {
    /// A day of the week.
    Day {
        Monday = "monday", Tuesday = "tuesday", Wednesday = "wednesday", Thursday = "thursday", Friday = "friday",
        Saturday = "saturday", Sunday = "sunday",
    }
}

words! {
    /// Property of a call that a check examines.
    CheckType {
        AgentResponds = "agent_responds", AgentMalfunction = "agent_malfunction", Latency = "latency",
        CustomMetric = "custom_metric", DigitalHuman = "digital_human",
    }
}

words! {
    /// Verdict of a call or of one check.
    Verdict { Up = "UP", Down = "DOWN", Unknown = "UNKNOWN" } default Unknown
}

/// Times at which an agent is monitored. An end before the start is on the next day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActiveWindow {
    /// Days on which a window begins.
    #[schemars(length(min = 1))]
    pub days: Vec<Day>,
    /// Start of the window, `HH:MM` in `timezone`.
    #[schemars(regex(pattern = r"^([01]\d|2[0-3]):[0-5]\d$"))]
    pub start_time: String,
    /// End of the window, `HH:MM` in `timezone`.
    #[schemars(regex(pattern = r"^([01]\d|2[0-3]):[0-5]\d$"))]
    pub end_time: String,
    /// IANA name of the time zone; default UTC.
    #[serde(default = "utc")]
    pub timezone: String,
}

fn utc() -> String {
    "UTC".to_owned()
}

/// Settings of a check; each type needs its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckConfig {
    /// Failures in a row until the monitor is down; 1 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub alert_after_failures: Option<i64>,
    /// `latency`: mean agent latency must stay below this, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub latency_threshold_ms: Option<i64>,
    /// `custom_metric`: identifier of the metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_metric_id: Option<Uuid>,
    /// `custom_metric`: comparison that must be true for the check to pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<Operator>,
    /// `custom_metric`: value that the metric is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// `digital_human`: identifier of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digital_human_id: Option<i64>,
}

/// One check of a monitor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Name of the check within the monitor; made from its type unless given.
    #[serde(default)]
    pub id: Option<String>,
    /// Property that is examined, which tells the settings apart.
    #[serde(rename = "checkType")]
    pub kind: CheckType,
    /// True: the check counts.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Settings of the check.
    #[serde(default)]
    #[schemars(extend("x-needs" = {
        "checkType": {
            "custom_metric": ["custom_metric_id", "operator", "value"],
            "digital_human": ["digital_human_id"],
        },
    }))]
    pub config: CheckConfig,
}

impl Check {
    /// True if the check can pass or fail.
    pub fn is_gradable(&self) -> bool {
        self.kind != CheckType::DigitalHuman
    }

    /// Returns the name of the check within its monitor.
    pub fn name(&self) -> &str {
        self.id.as_deref().unwrap_or(self.kind.as_str())
    }
}

/// Notification settings of a monitor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Notifications {
    /// Channels that are notified when the monitor goes down or up.
    #[serde(default)]
    #[schemars(with = "Vec<MonitorChannel>")]
    pub channels: Vec<Channel>,
}

/// Schema of a monitor's channel: a [`Channel`] whose kinds are declared in another order.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct MonitorChannel {
    /// Kind of the channel: email, webhook, slack or pager.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["email", "webhook", "slack", "pager"]))]
    kind: ChannelType,
    /// An address, a URL, a channel or a routing key.
    #[schemars(length(min = 1))]
    target: String,
}

fn ten_minutes() -> String {
    "10m".to_owned()
}

/// The writable fields of a monitor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MonitorSpec {
    /// Agent that is monitored.
    pub agent_id: i64,
    /// Interval `<n>m`, `<n>h` or `<n>d`, or five cron fields in UTC; default `10m`.
    #[serde(default = "ten_minutes")]
    pub frequency: String,
    /// Times at which checks are made; null: around the clock.
    #[serde(default)]
    pub active_window: Option<ActiveWindow>,
    /// Checks of each call; at least one must be gradable.
    pub checks: Vec<Check>,
    /// Notification settings; default none.
    #[serde(default)]
    pub notifications: Notifications,
    /// False: the monitor is paused.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Time of the first check; default now.
    #[serde(default)]
    pub start_at: Option<GivenTime>,
}

/// An incident: from the first failure that counts to the recovery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Incident {
    /// Identifier of the incident.
    pub id: Uuid,
    /// Time at which it was opened.
    pub opened_at: Timestamp,
    /// Reason for the incident, in words.
    pub reason: String,
}

/// A monitor as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MonitorDoc {
    /// The writable fields, as given.
    pub spec: MonitorSpec,
    /// Simulation whose results the checks are.
    pub simulation_id: i64,
    /// Simulations used before the checks were changed.
    pub earlier_simulations: Vec<i64>,
    /// Digital Humans that were made for these simulations.
    pub callers: Vec<i64>,
    /// Verdict of the latest call.
    pub status: Verdict,
    /// Time at which the last check ended.
    pub last_checked_at: Option<Timestamp>,
    /// Time of the next check; null while paused.
    pub next_check_at: Option<Timestamp>,
    /// Number of failures in a row, by name of the check.
    pub failures: BTreeMap<String, i64>,
    /// Incident that is open; null: none.
    pub open_incident: Option<Incident>,
}

/// Verdict of one check in one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckItem {
    /// Name of the check.
    pub id: String,
    /// Property that was examined.
    #[serde(rename = "checkType")]
    pub kind: CheckType,
    /// Verdict of the check.
    pub verdict: Verdict,
    /// Measured value; null: none.
    pub value: Value,
    /// Verdict and value in words.
    pub message: String,
}

/// One call of a monitor as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckDoc {
    /// Monitor that made the call.
    pub monitor_id: Uuid,
    /// Simulation result of the call; null when it could not be made.
    pub simulation_result_id: Option<i64>,
    /// Time at which it began.
    pub started_at: Timestamp,
    /// Time at which its verdict was known.
    pub finished_at: Option<Timestamp>,
    /// Verdict of the whole call.
    pub verdict: Verdict,
    /// Verdict of each check.
    pub checks: Vec<CheckItem>,
}

/// One call of a monitor, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CheckRecord {
    /// Identifier of the call's record.
    pub id: Uuid,
    /// Simulation result of the call; null when it could not be made.
    pub simulation_result_id: Option<i64>,
    /// Time at which it began.
    pub started_at: Timestamp,
    /// Time at which its verdict was known.
    pub finished_at: Option<Timestamp>,
    /// Verdict of the whole call.
    pub verdict: Verdict,
    /// Verdict of each check.
    pub checks: Vec<CheckItem>,
}

/// Verdicts of a monitor on one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckDay {
    /// Day in UTC that the calls began on, such as `2026-01-05`.
    pub day: String,
    /// Number of calls with the verdict UP.
    pub up: i64,
    /// Number of calls with the verdict DOWN.
    pub down: i64,
}

/// A monitor, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MonitorRecord {
    /// Identifier of the monitor.
    pub id: Uuid,
    /// The writable fields, as stored.
    #[serde(flatten)]
    pub spec: MonitorSpec,
    /// Simulation whose results the checks are.
    pub simulation_id: i64,
    /// Verdict of the latest call.
    pub status: Verdict,
    /// Share of UP among UP and DOWN in the last 30 days, percent; null: no verdict.
    pub uptime_percentage: Option<f64>,
    /// Time at which the last check ended.
    pub last_checked_at: Option<Timestamp>,
    /// Time of the next check; null while paused.
    pub next_check_at: Option<Timestamp>,
    /// Incident that is open; null: none.
    pub open_incident: Option<Incident>,
    /// Verdicts of the last 90 days by day, those without a verdict left out, oldest first.
    pub days: Vec<CheckDay>,
    /// The last 20 calls, newest first.
    pub recent_checks: Vec<CheckRecord>,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

impl CheckItem {
    /// Returns the verdict of `check` with its measured value and its text.
    pub fn new(check: &Check, verdict: Verdict, value: Value, message: impl Into<String>) -> CheckItem {
        CheckItem { id: check.name().to_owned(), kind: check.kind, verdict, value, message: message.into() }
    }

    /// Returns its members as facts for a notification.
    pub fn facts(&self) -> Object {
        Object::from_iter([
            ("check".to_owned(), Value::from(self.id.as_str())),
            ("checkType".to_owned(), Value::from(self.kind.as_str())),
            ("value".to_owned(), self.value.clone()),
            ("message".to_owned(), Value::from(self.message.as_str())),
        ])
    }
}
