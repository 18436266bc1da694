//! Schedule of a monitor's checks: interval, days and hours. Pure; times are milliseconds since 1970.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use ringer_base::error::{Error, Result};
use ringer_model::cron::Cron;
use ringer_model::monitor::{ActiveWindow, Day};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;

/// Times at which a monitor checks.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cadence {
    /// Checks at this interval in milliseconds.
    Every(i64),
    /// Checks at the minutes of a cron expression, UTC.
    Cron(Cron),
}

impl Cadence {
    /// Parses `<n>m` (1 to 59), `<n>h` (1 to 23), `<n>d` (1 to 31), or five cron fields.
    ///
    /// # Errors
    /// Anything else.
    pub(crate) fn parse(text: &str) -> Result<Cadence> {
        let refused = || Error::Refused("frequency must be <n>m, <n>h, <n>d or a cron expression".into());
        let text = text.trim();
        if text.contains(char::is_whitespace) {
            return Cron::parse(text).filter(Cron::comes).map(Cadence::Cron).ok_or_else(refused);
        }
        let (most, unit_ms) = match text.chars().last() {
            Some('m') => (59, MINUTE_MS),
            Some('h') => (23, 60 * MINUTE_MS),
            Some('d') => (31, DAY_MS),
            _ => return Err(refused()),
        };
        let digits = &text[..text.len() - 1];
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let count = digits.parse::<i64>().ok().filter(|count| is_number && (1..=most).contains(count));
        count.map(|count| Cadence::Every(count * unit_ms)).ok_or_else(refused)
    }

    /// Returns the next time after `now_ms`, counted from the check that was due at `due_ms`. What was missed is not
    /// caught up.
    pub(crate) fn after(&self, due_ms: i64, now_ms: i64) -> i64 {
        match self {
            Cadence::Every(each) => due_ms + each * ((now_ms - due_ms).div_euclid(*each) + 1),
            Cadence::Cron(cron) => cron.after(now_ms).expect("an expression that never comes is refused"),
        }
    }
}

/// Days and hours in which a monitor checks.
#[derive(Clone, Debug)]
pub(super) struct Window {
    days: Vec<Weekday>,
    start: Time,
    end: Time,
    zone: TimeZone,
}

impl Window {
    /// # Errors
    /// A time zone that is not known.
    pub(crate) fn new(window: &ActiveWindow) -> Result<Window> {
        let time = |text: &str| {
            let parts = text.split_once(':').and_then(|(hour, minute)| {
                let (hour, minute) = (hour.parse().ok()?, minute.parse().ok()?);
                Time::new(hour, minute, 0, 0).ok()
            });
            parts.ok_or_else(|| Error::Refused("active_window times must be HH:MM".into()))
        };
        let zone = TimeZone::get(&window.timezone);
        Ok(Window {
            days: window.days.iter().map(|day| weekday(*day)).collect(),
            start: time(&window.start_time)?,
            end: time(&window.end_time)?,
            zone: zone.map_err(|_| Error::Refused("timezone must be an IANA time zone name".into()))?,
        })
    }

    /// Returns the first moment from `at_ms` on that lies in the window.
    pub(crate) fn from(&self, at_ms: i64) -> i64 {
        let Ok(at) = Timestamp::from_millisecond(at_ms) else { return at_ms };
        let today = at.to_zoned(self.zone.clone()).date();
        // A window of yesterday may run over midnight; each day of the week comes within the next seven.
        let spans = (-1i64..=8).filter_map(|days| self.span(today.checked_add(days.days()).ok()?));
        let open = spans.filter(|(_, end)| *end > at).map(|(start, _)| start.max(at)).min();
        open.map_or(at_ms, Timestamp::as_millisecond)
    }

    /// Returns the window that begins on a date.
    fn span(&self, date: Date) -> Option<(Timestamp, Timestamp)> {
        if !self.days.contains(&date.weekday()) {
            return None;
        }
        let last = if self.end <= self.start { date.tomorrow().ok()? } else { date };
        // A time that a change of clocks leaves out is the one as much later.
        let instant = |date: Date, time: Time| -> Option<Timestamp> {
            date.to_datetime(time).to_zoned(self.zone.clone()).ok().map(|at: Zoned| at.timestamp())
        };
        Some((instant(date, self.start)?, instant(last, self.end)?))
    }
}

fn weekday(day: Day) -> Weekday {
    match day {
        Day::Monday => Weekday::Monday,
        Day::Tuesday => Weekday::Tuesday,
        Day::Wednesday => Weekday::Wednesday,
        Day::Thursday => Weekday::Thursday,
        Day::Friday => Weekday::Friday,
        Day::Saturday => Weekday::Saturday,
        Day::Sunday => Weekday::Sunday,
    }
}

#[cfg(test)]
mod tests {
    use ringer_model::time::Timestamp as Shown;

    use super::*;

    fn ms(text: &str) -> i64 {
        Shown::parse(&format!("{text}:00.0Z")).expect("a time").0
    }

    fn local_time(ms: i64) -> String {
        Shown(ms).to_string()[..16].to_owned()
    }

    #[test]
    fn frequencies_are_read() {
        for (text, each) in [("1m", 1), ("59m", 59), ("23h", 23 * 60), ("31d", 31 * 24 * 60)] {
            assert_eq!(Cadence::parse(text), Ok(Cadence::Every(each * MINUTE_MS)), "{text}");
        }
        for text in [
            "",
            "m",
            "0m",
            "60m",
            "24h",
            "32d",
            "10",
            "10s",
            "-1m",
            "+1m",
            "1.5h",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 8",
            "*/0 * * * *",
            "5-1 * * * *",
            "a * * * *",
            "0 0 30 2 *",
        ] {
            let refused = "frequency must be <n>m, <n>h, <n>d or a cron expression";
            assert_eq!(Cadence::parse(text).map_err(|error| error.to_string()), Err(refused.to_owned()), "{text}");
        }
    }

    #[test]
    fn the_next_time_follows_the_cadence() {
        for (text, due, now, expect) in [
            ("10m", "2026-01-05T09:00", "2026-01-05T09:00", "2026-01-05T09:10"),
            // Three were missed.
            ("10m", "2026-01-05T09:00", "2026-01-05T09:35", "2026-01-05T09:40"),
            ("10m", "2026-01-05T09:00", "2026-01-05T09:10", "2026-01-05T09:20"),
            ("1d", "2026-02-28T23:30", "2026-02-28T23:31", "2026-03-01T23:30"),
            ("30 9 * * *", "2026-01-05T09:30", "2026-01-05T09:30", "2026-01-06T09:30"),
            ("*/15 8-9 * * mon-fri", "2026-01-09T09:45", "2026-01-09T09:45", "2026-01-12T08:00"),
            ("0 0 29 2 *", "2026-01-05T00:00", "2026-01-05T00:00", "2028-02-29T00:00"),
            ("0 12 1 * 0", "2026-01-05T00:00", "2026-01-05T00:00", "2026-01-11T12:00"),
            ("0 12 * * 7", "2026-01-05T00:00", "2026-01-05T00:00", "2026-01-11T12:00"),
            ("5,10 1 31 * *", "2026-01-31T01:05", "2026-01-31T01:05", "2026-01-31T01:10"),
            ("5,10 1 31 * *", "2026-01-31T01:10", "2026-01-31T01:10", "2026-03-31T01:05"),
        ] {
            let cadence = Cadence::parse(text).expect("a frequency");
            assert_eq!(local_time(cadence.after(ms(due), ms(now))), expect, "{text} after {now}");
        }
    }

    #[test]
    fn windows_open_in_their_own_time_zone() {
        let window = |days: &[Day], start: &str, end: &str, zone: &str| {
            let (start_time, end_time) = (start.to_owned(), end.to_owned());
            Window::new(&ActiveWindow { days: days.to_vec(), start_time, end_time, timezone: zone.to_owned() })
        };
        let all = Day::ALL;
        let work = &all[..5];
        for (days, start, end, zone, at, expect) in [
            (all, "09:00", "17:00", "UTC", "2026-01-05T10:00", "2026-01-05T10:00"),
            (all, "09:00", "17:00", "UTC", "2026-01-05T17:00", "2026-01-06T09:00"),
            (all, "09:00", "17:00", "UTC", "2026-01-05T08:59", "2026-01-05T09:00"),
            // Friday evening to Monday.
            (work, "09:00", "17:00", "UTC", "2026-01-09T18:00", "2026-01-12T09:00"),
            // Over midnight: the window of Friday runs into Saturday.
            (work, "22:00", "06:00", "UTC", "2026-01-10T05:59", "2026-01-10T05:59"),
            (work, "22:00", "06:00", "UTC", "2026-01-10T06:00", "2026-01-12T22:00"),
            (all, "09:00", "17:00", "America/New_York", "2026-01-05T13:00", "2026-01-05T14:00"),
            // After the change to summer time an hour earlier in UTC.
            (all, "09:00", "17:00", "Europe/Berlin", "2026-03-28T07:00", "2026-03-28T08:00"),
            (all, "09:00", "17:00", "Europe/Berlin", "2026-03-29T06:00", "2026-03-29T07:00"),
            // Half past two does not exist that night: it is half past three.
            (all, "02:30", "05:00", "Europe/Berlin", "2026-03-29T00:00", "2026-03-29T01:30"),
            (all, "10:00", "10:00", "UTC", "2026-01-05T09:59", "2026-01-05T09:59"),
        ] {
            let window = window(days, start, end, zone).expect("a window");
            assert_eq!(local_time(window.from(ms(at))), expect, "{start}-{end} {zone} at {at}");
        }
        let unknown = window(all, "09:00", "17:00", "Europe/Bielefeld").map(drop).map_err(|error| error.to_string());
        assert_eq!(unknown, Err("timezone must be an IANA time zone name".to_owned()));
    }
}
