//! Points in time as users read them: `YYYY-MM-DDTHH:MM:SS.ffffffZ`, UTC.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub(super) const DAY_US: i64 = 86_400_000_000;
/// A century in milliseconds.
pub const LONGEST_SPAN_MS: i64 = 36_525 * 86_400_000;

/// Returns a span of time in milliseconds, limited to 0 and a century, so that it can be added to any moment.
pub fn span_ms(seconds: f64) -> i64 {
    (seconds * 1000.0).round().clamp(0.0, LONGEST_SPAN_MS as f64) as i64
}

/// A point in time, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// A point in time as exact as users may give it, in microseconds since 1970-01-01T00:00:00Z.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct GivenTime(pub i64);

impl Timestamp {
    /// Reads the form that `Display` writes (a fraction of any length, cut to milliseconds).
    pub fn parse(text: &str) -> Option<Timestamp> {
        GivenTime::parse(text).map(|time| Timestamp(time.ms()))
    }
}

impl GivenTime {
    /// Reads the form that `Display` writes (a fraction of any length, cut to microseconds).
    pub fn parse(text: &str) -> Option<GivenTime> {
        let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
        let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
        let (year, month, day) = (date.next()??, date.next()??, date.next()??);
        let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
        let mut clock = clock.splitn(3, ':').map(|part| part.parse::<i64>().ok());
        let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
        let known = (1..=12).contains(&month) && (1..=31).contains(&day) && (0..=9999).contains(&year);
        let of_a_day = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
        if !known || !of_a_day || !fraction.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let us = format!("{fraction:0<6}")[..6].parse::<i64>().ok()?;
        let seconds = (hour * 60 + minute) * 60 + second;
        Some(GivenTime(days_from_civil(year, month, day) * DAY_US + seconds * 1_000_000 + us))
    }

    /// Returns the whole milliseconds since 1970-01-01T00:00:00Z.
    pub fn ms(self) -> i64 {
        self.0.div_euclid(1000)
    }
}

impl From<Timestamp> for GivenTime {
    fn from(time: Timestamp) -> GivenTime {
        GivenTime(time.0.saturating_mul(1000))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        GivenTime::from(*self).fmt(f)
    }
}

impl fmt::Display for GivenTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.0.div_euclid(DAY_US));
        let us = self.0.rem_euclid(DAY_US);
        let (seconds, fraction) = (us / 1_000_000, us % 1_000_000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:06}Z")
    }
}

/// Returns the days since the epoch of a date in the proleptic Gregorian calendar.
///
/// The method is Hinnant's ("chrono-compatible low-level date algorithms").
pub(super) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Returns year, month and day of a day since the epoch; the inverse of [`days_from_civil`].
pub(super) fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let month = (month_index + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * month_index + 2) / 5 + 1)
}

/// Implements reading and writing of a point in time as its text.
macro_rules! as_text {
    ($name:ident) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<str>::deserialize(deserializer)?;
                $name::parse(&text).ok_or_else(|| de::Error::custom("not a timestamp"))
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "format": "date-time"})
            }
        }
    };
}

as_text!(Timestamp);
as_text!(GivenTime);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_added_to_any_moment() {
        let century = 3_155_760_000_000;
        for (seconds, ms) in [(1.25, 1250), (-1.0, 0), (1e300, century), (f64::NAN, 0), (i64::MAX as f64, century)] {
            assert_eq!(span_ms(seconds), ms, "{seconds}");
        }
    }

    #[test]
    fn prints_and_reads_back() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000000Z"),
            (1_767_603_600_123, "2026-01-05T09:00:00.123000Z"),
            (-1, "1969-12-31T23:59:59.999000Z"),
            (4_102_444_799_999, "2099-12-31T23:59:59.999000Z"),
        ] {
            assert_eq!(Timestamp(ms).to_string(), text);
            assert_eq!(Timestamp::parse(text), Some(Timestamp(ms)));
        }
        for (us, text, ms) in [
            (1_767_603_600_123_456, "2026-01-05T09:00:00.123456Z", 1_767_603_600_123),
            (-1, "1969-12-31T23:59:59.999999Z", -1),
        ] {
            assert_eq!(GivenTime(us).to_string(), text);
            assert_eq!(GivenTime::parse(text).map(|time| (time, time.ms())), Some((GivenTime(us), ms)));
            assert_eq!(Timestamp::parse(text), Some(Timestamp(ms)));
        }
        for bad in [
            "",
            "2026-01-05",
            "2026-01-05T9000000000000000:00:00.0Z",
            "2026-01-05T09:60:00.0Z",
            "2026-13-05T00:00:00.0Z",
            "2026-01-05T09:00:00.xZ",
            "x-01-05T09:00:00.0Z",
        ] {
            assert_eq!(Timestamp::parse(bad), None, "{bad}");
        }
    }
}
