//! Points in time as users read them: `YYYY-MM-DDTHH:MM:SS.ffffffZ`, UTC.

use std::borrow::Cow;
use std::fmt;

use jiff::SignedDuration;
use jiff::civil::DateTime;
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
        let text = text.strip_suffix('Z')?;
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let at = DateTime::strptime("%Y-%m-%dT%H:%M:%S", whole).ok().filter(|at| at.year() >= 0)?;
        // The fraction is read here: the crate takes nine digits at most.
        if !fraction.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let us = format!("{fraction:0<6}")[..6].parse::<i64>().ok()?;
        Some(GivenTime(micros_of(at) + us))
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
        // Beyond the years of the calendar stands its last or first moment.
        let bound = if self.0 < 0 { DateTime::MIN } else { DateTime::MAX };
        write!(f, "{:.6}Z", civil_of(self.0).unwrap_or(bound))
    }
}

/// Start of Unix time: midnight of 1970-01-01, UTC.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Returns the microseconds from the epoch to a date and time in UTC.
pub(super) fn micros_of(at: DateTime) -> i64 {
    at.duration_since(EPOCH).as_micros() as i64
}

/// Returns the date and time in UTC, so many microseconds after the epoch; `None` outside the years -9999 to 9999.
pub(super) fn civil_of(us: i64) -> Option<DateTime> {
    EPOCH.checked_add(SignedDuration::from_micros(us)).ok()
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
        for (ms, text) in [(i64::MAX, "9999-12-31T23:59:59.999999Z"), (i64::MIN, "-009999-01-01T00:00:00.000000Z")] {
            assert_eq!(Timestamp(ms).to_string(), text);
        }
        assert_eq!(Timestamp::parse("2016-12-31T23:59:59.1234567890123Z"), Some(Timestamp(1_483_228_799_123)));
        for bad in [
            "",
            "2026-01-05",
            "2026-01-05Z",
            "2026-02-29T00:00:00.0Z",
            "-001-01-05T00:00:00.0Z",
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
