//! When a simulation runs by itself.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::id::IdString;
use super::schema::PLAIN;
use super::time::Timestamp;
use super::yes;

words! {
    /// A day of the week.
    Weekday {
        Monday = "monday", Tuesday = "tuesday", Wednesday = "wednesday", Thursday = "thursday", Friday = "friday",
        Saturday = "saturday", Sunday = "sunday",
    }
}

impl Weekday {
    /// As crontab counts them: 0 is Sunday.
    fn number(self) -> usize {
        (Weekday::ALL.iter().position(|day| *day == self).unwrap_or(0) + 1) % 7
    }
}

/// When, in UTC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "frequency", rename_all = "snake_case")]
pub enum Schedule {
    /// Minutes of the hour that are a multiple.
    EveryNMinutes {
        /// 1 to 59.
        interval: i64,
    },
    /// Full hours that are a multiple.
    EveryNHours {
        /// 1 to 23.
        interval: i64,
    },
    /// Once a day.
    Daily {
        /// `HH:MM`.
        time: String,
    },
    /// Once a week.
    Weekly {
        /// Which day.
        day_of_week: Weekday,
        /// `HH:MM`.
        time: String,
    },
    /// Once a month; a month without the day is skipped.
    Monthly {
        /// 1 to 31.
        day_of_month: i64,
        /// `HH:MM`.
        time: String,
    },
    /// As the five fields say.
    Cron {
        /// Minute, hour, day of month, month, day of week.
        expression: String,
    },
}

impl Schedule {
    /// The same as five fields; `None` for a time that is none.
    pub fn expression(&self) -> Option<String> {
        Some(match self {
            Schedule::EveryNMinutes { interval } => format!("*/{interval} * * * *"),
            Schedule::EveryNHours { interval } => format!("0 */{interval} * * *"),
            Schedule::Daily { time } => format!("{} * * *", minute_and_hour(time)?),
            Schedule::Weekly { day_of_week, time } => {
                format!("{} * * {}", minute_and_hour(time)?, day_of_week.number())
            }
            Schedule::Monthly { day_of_month, time } => format!("{} {day_of_month} * *", minute_and_hour(time)?),
            Schedule::Cron { expression } => expression.clone(),
        })
    }
}

/// `09:30` is `30 9`.
fn minute_and_hour(time: &str) -> Option<String> {
    let (hour, minute) = time.split_once(':')?;
    let (hour, minute): (u8, u8) = (hour.parse().ok()?, minute.parse().ok()?);
    (hour < 24 && minute < 60).then(|| format!("{minute} {hour}"))
}

/// The members of the union: name, tag and further fields.
fn members() -> Vec<Value> {
    let time = || json!({ "type": "string", "pattern": r"^\d{2}:\d{2}$", "description": "`HH:MM`, UTC." });
    let days: Vec<&str> = Weekday::ALL.iter().map(|day| day.as_str()).collect();
    let up_to = |most: i64| json!({ "type": "integer", "exclusiveMinimum": 0, "maximum": most });
    [
        ("EveryNMinutesSchedule", "every_n_minutes", vec![("interval", up_to(59))]),
        ("EveryNHoursSchedule", "every_n_hours", vec![("interval", up_to(23))]),
        ("DailySchedule", "daily", vec![("time", time())]),
        (
            "WeeklySchedule",
            "weekly",
            vec![("day_of_week", json!({ "type": "string", "enum": days })), ("time", time())],
        ),
        (
            "MonthlySchedule",
            "monthly",
            vec![("day_of_month", json!({ "type": "integer", "minimum": 1, "maximum": 31 })), ("time", time())],
        ),
        ("CronSchedule", "cron", vec![("expression", json!({ "type": "string" }))]),
    ]
    .into_iter()
    .map(|(title, tag, fields)| {
        let tag = ("frequency", json!({ "type": "string", "const": tag }));
        let fields: Vec<(&str, Value)> = std::iter::once(tag).chain(fields).collect();
        let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        let properties: super::Object =
            fields.iter().map(|(name, field)| ((*name).to_owned(), field.clone())).collect();
        json!({ "title": title, "type": "object", "properties": properties, "required": names })
    })
    .collect()
}

fn schema(union: Value) -> Schema {
    Schema::try_from(union).expect("an object is a schema")
}

impl JsonSchema for Schedule {
    fn schema_name() -> Cow<'static, str> {
        "Schedule".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema(json!({ "oneOf": members(), "discriminator": { "propertyName": "frequency" } }))
    }
}

/// A [`Schedule`] whose kind is found by trying them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct AnySchedule(pub Schedule);

impl JsonSchema for AnySchedule {
    fn schema_name() -> Cow<'static, str> {
        "AnySchedule".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema(json!({ "anyOf": members(), PLAIN: true }))
    }
}

/// What is run, and when.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct CreateCronJobRequest {
    /// The simulation.
    pub simulation_id: IdString,
    /// When, in UTC.
    pub schedule: AnySchedule,
    /// False: not now.
    #[serde(default = "yes")]
    pub enabled: bool,
}

/// What is changed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct UpdateCronJobRequest {
    /// When, in UTC.
    #[serde(default)]
    pub schedule: Option<Schedule>,
    /// False: not now.
    #[serde(default)]
    pub enabled: Option<bool>,
}

/// A schedule as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleDoc {
    /// What is run.
    pub simulation_id: i64,
    /// Five fields, UTC.
    pub cron_expression: String,
    /// False: not now.
    pub enabled: bool,
    /// When it is due next, milliseconds since 1970; `None`: never, or disabled.
    pub next_ms: Option<i64>,
}

/// What making a schedule answers.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScheduleAdded {
    /// Its id.
    pub id: Uuid,
    /// What is run.
    pub simulation_id: IdString,
    /// Five fields, UTC.
    pub cron_expression: String,
    /// False: not now.
    pub enabled: bool,
}

/// A schedule as read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScheduleRecord {
    /// Its id.
    pub id: Uuid,
    /// What is run.
    pub simulation_id: IdString,
    /// Five fields, UTC.
    pub cron_expression: String,
    /// False: not now.
    pub enabled: bool,
    /// When it was made.
    pub created_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cron::Cron;

    #[test]
    fn every_kind_has_its_five_fields() {
        for (schedule, expect) in [
            (json!({ "frequency": "every_n_minutes", "interval": 5 }), Some("*/5 * * * *")),
            (json!({ "frequency": "every_n_minutes", "interval": 59 }), Some("*/59 * * * *")),
            (json!({ "frequency": "every_n_hours", "interval": 23 }), Some("0 */23 * * *")),
            (json!({ "frequency": "daily", "time": "09:05" }), Some("5 9 * * *")),
            (json!({ "frequency": "weekly", "day_of_week": "sunday", "time": "00:00" }), Some("0 0 * * 0")),
            (json!({ "frequency": "weekly", "day_of_week": "monday", "time": "23:59" }), Some("59 23 * * 1")),
            (json!({ "frequency": "weekly", "day_of_week": "saturday", "time": "12:00" }), Some("0 12 * * 6")),
            (json!({ "frequency": "monthly", "day_of_month": 31, "time": "01:10" }), Some("10 1 31 * *")),
            (json!({ "frequency": "cron", "expression": "1 2 3 4 5" }), Some("1 2 3 4 5")),
            (json!({ "frequency": "daily", "time": "24:00" }), None),
            (json!({ "frequency": "daily", "time": "12:60" }), None),
        ] {
            let read: Schedule = serde_json::from_value(schedule.clone()).expect("fits");
            let expression = read.expression();
            assert_eq!(expression.as_deref(), expect, "{schedule}");
            assert!(expression.is_none_or(|text| Cron::parse(&text).is_some()), "{schedule}");
        }
    }
}
