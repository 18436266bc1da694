//! Uptime monitors: an agent that is called again and again, and what the calls showed.

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
    /// What is looked at in a call.
    CheckType {
        AgentResponds = "agent_responds", AgentMalfunction = "agent_malfunction", Latency = "latency",
        CustomMetric = "custom_metric", DigitalHuman = "digital_human",
    }
}

words! {
    /// What a call showed.
    Verdict { Up = "UP", Down = "DOWN", Unknown = "UNKNOWN" } default Unknown
}

/// When an agent is watched. An end before the start is on the next day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActiveWindow {
    /// Days on which a window begins.
    #[schemars(length(min = 1))]
    pub days: Vec<Day>,
    /// `HH:MM`.
    #[schemars(regex(pattern = r"^([01]\d|2[0-3]):[0-5]\d$"))]
    pub start_time: String,
    /// `HH:MM`.
    #[schemars(regex(pattern = r"^([01]\d|2[0-3]):[0-5]\d$"))]
    pub end_time: String,
    /// IANA name.
    #[serde(default = "utc")]
    pub timezone: String,
}

fn utc() -> String {
    "UTC".to_owned()
}

/// What a check needs to know, by its type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckConfig {
    /// Failures in a row until the monitor is down; 1 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub alert_after_failures: Option<i64>,
    /// `latency`: mean agent latency must stay below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub latency_threshold_ms: Option<i64>,
    /// `custom_metric`: which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_metric_id: Option<Uuid>,
    /// `custom_metric`: what has to be true of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<Operator>,
    /// `custom_metric`: compared with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// `digital_human`: who calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digital_human_id: Option<i64>,
}

/// One thing that is looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Its name within the monitor; made from its type unless given.
    #[serde(default)]
    pub id: Option<String>,
    /// What it looks at.
    #[serde(rename = "checkType")]
    pub kind: CheckType,
    /// Counts.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// What it needs to know.
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
    /// True when it can pass or fail.
    pub fn is_gradable(&self) -> bool {
        self.kind != CheckType::DigitalHuman
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.id.as_deref().unwrap_or(self.kind.as_str())
    }
}

/// Who is told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Notifications {
    /// Each of them is.
    #[serde(default)]
    #[schemars(with = "Vec<MonitorChannel>")]
    pub channels: Vec<Channel>,
}

/// Who is told of a monitor, and how: a [`Channel`] whose kinds are declared in another order.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct MonitorChannel {
    /// How.
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
    /// Who is watched.
    pub agent_id: i64,
    /// `<n>m`, `<n>h`, `<n>d`, or five cron fields in UTC.
    #[serde(default = "ten_minutes")]
    pub frequency: String,
    /// Null: around the clock.
    #[serde(default)]
    pub active_window: Option<ActiveWindow>,
    /// What is looked at.
    pub checks: Vec<Check>,
    /// Who is told.
    #[serde(default)]
    pub notifications: Notifications,
    /// False: paused.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// First check; now unless given.
    #[serde(default)]
    pub start_at: Option<GivenTime>,
}

/// An incident: from the first failure that counts to the recovery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Incident {
    /// Its id.
    pub id: Uuid,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// Why.
    pub reason: String,
}

/// A monitor as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MonitorDoc {
    /// What was written.
    pub spec: MonitorSpec,
    /// What the checks are results of.
    pub simulation_id: i64,
    /// What they were results of before the checks were changed.
    pub earlier_simulations: Vec<i64>,
    /// Callers that were made for these simulations.
    pub callers: Vec<i64>,
    /// What the last check showed.
    pub status: Verdict,
    /// When the last check was over.
    pub last_checked_at: Option<Timestamp>,
    /// When the next one is due; null while paused.
    pub next_check_at: Option<Timestamp>,
    /// Failures in a row by name of the check.
    pub failures: BTreeMap<String, i64>,
    /// Null while all is well.
    pub open_incident: Option<Incident>,
}

/// What one check showed in one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckItem {
    /// Name of the check.
    pub id: String,
    /// What it looks at.
    #[serde(rename = "checkType")]
    pub kind: CheckType,
    /// What it showed.
    pub verdict: Verdict,
    /// What was measured.
    pub value: Value,
    /// The same for a person.
    pub message: String,
}

/// One call of a monitor as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckDoc {
    /// Whose call.
    pub monitor_id: Uuid,
    /// The result that it is; null when it could not be made.
    pub simulation_result_id: Option<i64>,
    /// When it began.
    pub started_at: Timestamp,
    /// When its verdict was known.
    pub finished_at: Option<Timestamp>,
    /// What it showed.
    pub verdict: Verdict,
    /// Each check.
    pub checks: Vec<CheckItem>,
}

/// One call of a monitor as read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CheckRecord {
    /// Its id.
    pub id: Uuid,
    /// The result that it is; null when it could not be made.
    pub simulation_result_id: Option<i64>,
    /// When it began.
    pub started_at: Timestamp,
    /// When its verdict was known.
    pub finished_at: Option<Timestamp>,
    /// What it showed.
    pub verdict: Verdict,
    /// Each check.
    pub checks: Vec<CheckItem>,
}

/// A monitor as read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MonitorRecord {
    /// Its id.
    pub id: Uuid,
    /// What was written.
    #[serde(flatten)]
    pub spec: MonitorSpec,
    /// What the checks are results of.
    pub simulation_id: i64,
    /// What the last check showed.
    pub status: Verdict,
    /// UP of UP and DOWN in the last 30 days, percent.
    pub uptime_percentage: Option<f64>,
    /// When the last check was over.
    pub last_checked_at: Option<Timestamp>,
    /// When the next one is due; null while paused.
    pub next_check_at: Option<Timestamp>,
    /// Null while all is well.
    pub open_incident: Option<Incident>,
    /// The last 20 calls, newest first.
    pub recent_checks: Vec<CheckRecord>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl CheckItem {
    /// What a check showed.
    pub fn new(check: &Check, verdict: Verdict, value: Value, message: impl Into<String>) -> CheckItem {
        CheckItem { id: check.name().to_owned(), kind: check.kind, verdict, value, message: message.into() }
    }

    /// As the facts of a notification.
    pub fn facts(&self) -> Object {
        Object::from_iter([
            ("check".to_owned(), Value::from(self.id.as_str())),
            ("checkType".to_owned(), Value::from(self.kind.as_str())),
            ("value".to_owned(), self.value.clone()),
            ("message".to_owned(), Value::from(self.message.as_str())),
        ])
    }
}
