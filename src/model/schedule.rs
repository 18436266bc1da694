//! Schedules: times at which a simulation runs by itself.

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
    /// Returns the number of the day as in crontab: 0 is Sunday.
    fn number(self) -> usize {
        (Weekday::ALL.iter().position(|day| *day == self).unwrap_or(0) + 1) % 7
    }
}

/// Times of a schedule, in UTC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "frequency", rename_all = "snake_case")]
pub enum Schedule {
    /// Minutes of the hour that are a multiple.
    EveryNMinutes {
        /// Number of minutes, 1 to 59.
        interval: i64,
    },
    /// Full hours that are a multiple.
    EveryNHours {
        /// Number of hours, 1 to 23.
        interval: i64,
    },
    /// Once a day at a time.
    Daily {
        /// Time of day, `HH:MM`.
        time: String,
    },
    /// Once a week at a time.
    Weekly {
        /// Day of the week.
        day_of_week: Weekday,
        /// Time of day, `HH:MM`.
        time: String,
    },
    /// Once a month; a month without the day is skipped.
    Monthly {
        /// Day of the month, 1 to 31.
        day_of_month: i64,
        /// Time of day, `HH:MM`.
        time: String,
    },
    /// Times given by five cron fields.
    Cron {
        /// Minute, hour, day of month, month, day of week.
        expression: String,
    },
}

impl Schedule {
    /// Returns the same as five cron fields; `None` when the time of day is invalid.
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

/// Returns minute and hour as cron fields: `30 9` for `09:30`; `None` when the time is invalid.
fn minute_and_hour(time: &str) -> Option<String> {
    let (hour, minute) = time.split_once(':')?;
    let (hour, minute): (u8, u8) = (hour.parse().ok()?, minute.parse().ok()?);
    (hour < 24 && minute < 60).then(|| format!("{minute} {hour}"))
}

/// Returns the members of the union as schemas: title, tag and further fields.
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

/// A [`Schedule`] whose kind is found by trying all of them.
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

/// The fields of a new schedule.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct CreateCronJobRequest {
    /// Simulation that is run.
    pub simulation_id: IdString,
    /// Times of the runs, in UTC.
    pub schedule: AnySchedule,
    /// False: the schedule is paused.
    #[serde(default = "yes")]
    pub enabled: bool,
}

/// The fields of a schedule that can be changed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct UpdateCronJobRequest {
    /// Times of the runs, in UTC.
    #[serde(default)]
    pub schedule: Option<Schedule>,
    /// False: the schedule is paused.
    #[serde(default)]
    pub enabled: Option<bool>,
}

/// A schedule as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleDoc {
    /// Simulation that is run.
    pub simulation_id: i64,
    /// Five cron fields, in UTC.
    pub cron_expression: String,
    /// False: the schedule is paused.
    pub enabled: bool,
    /// Time of the next run, in milliseconds since 1970; `None`: never, or disabled.
    pub next_ms: Option<i64>,
}

/// Answer to the creation of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScheduleAdded {
    /// Identifier of the schedule.
    pub id: Uuid,
    /// Simulation that is run.
    pub simulation_id: IdString,
    /// Five cron fields, in UTC.
    pub cron_expression: String,
    /// False: the schedule is paused.
    pub enabled: bool,
}

/// A schedule, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScheduleRecord {
    /// Identifier of the schedule.
    pub id: Uuid,
    /// Simulation that is run.
    pub simulation_id: IdString,
    /// Five cron fields, in UTC.
    pub cron_expression: String,
    /// False: the schedule is paused.
    pub enabled: bool,
    /// Time of its creation.
    pub created_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cron::Cron;

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
