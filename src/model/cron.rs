//! Cron expressions: times that repeat, given by five fields in UTC: minute, hour, day of month, month, day of week.
//!
//! Each field is a list of numbers, ranges and steps; months and days of the week also by their first three letters.
//! When neither kind of days is an asterisk, a match of one of them is enough (POSIX crontab).

// Why not a crate: `croner` takes `*,5` for a limit on days, where each day must fit as for `*`. It also reads what is
// refused here (`@daily`, `L`, `?`, `5#2`, `1,,2`, `+1`, names of months in any field), so that a second reader would
// have to stand before it.

use jiff::ToSpan;
use jiff::civil::{Date, Time};

use super::time::{civil_of, micros_of};

const MINUTE_US: i64 = 60_000_000;
const DAY_MINUTES: i64 = 1440;

/// Days that are looked through for the next time: 29 February comes again within 8 years.
const FAR_DAYS: usize = 8 * 366 + 1;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A parsed expression: for each field the set of its numbers, one bit a number.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Neither kind of days is an asterisk: then one of them is enough.
    either_day: bool,
}

impl Cron {
    /// Reads five fields parted by blanks.
    pub fn parse(text: &str) -> Option<Cron> {
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else { return None };
        let is_limited = |field: &str| field.split(',').all(|part| part != "*");
        let either_day = is_limited(days) && is_limited(weekdays);
        let weekdays = set(weekdays, 0, 7, &WEEKDAYS)?;
        Some(Cron {
            minutes: set(minutes, 0, 59, &[])?,
            hours: set(hours, 0, 23, &[])?,
            days: set(days, 1, 31, &[])?,
            months: set(months, 1, 12, &MONTHS)?,
            // 7 is Sunday too.
            weekdays: (weekdays | weekdays >> 7) & 0x7f,
            either_day,
        })
    }

    /// True when there is a day that fits: there is none for 30 February.
    pub fn comes(&self) -> bool {
        self.after(0).is_some()
    }

    /// Returns the first time after a moment, both in milliseconds since 1970; `None` when there is none (30 February).
    pub fn after(&self, ms: i64) -> Option<i64> {
        let first = civil_of(ms.div_euclid(60_000).checked_add(1)?.checked_mul(MINUTE_US)?)?;
        let today = first.date();
        today.series(1.day()).take(FAR_DAYS).filter(|day| self.has_day(*day)).find_map(|day| {
            let from = if day == today { i64::from(first.hour()) * 60 + i64::from(first.minute()) } else { 0 };
            let minute = (from..DAY_MINUTES).find(|at| has(self.hours, at / 60) && has(self.minutes, at % 60))?;
            Some((micros_of(day.to_datetime(Time::midnight())) + minute * MINUTE_US) / 1000)
        })
    }

    fn has_day(&self, day: Date) -> bool {
        let by_month = has(self.days, day.day().into());
        let by_week = has(self.weekdays, day.weekday().to_sunday_zero_offset().into());
        has(self.months, day.month().into()) && if self.either_day { by_month || by_week } else { by_month && by_week }
    }
}

fn has(set: u64, number: i64) -> bool {
    set >> number & 1 == 1
}

/// Returns the numbers of a field that runs from `least` to `most`; `names` are those of `least` and on.
fn set(field: &str, least: u32, most: u32, names: &[&str]) -> Option<u64> {
    field.split(',').try_fold(0, |set, part| Some(set | range(part, least, most, names)?))
}

fn range(part: &str, least: u32, most: u32, names: &[&str]) -> Option<u64> {
    let number = |text: &str| -> Option<u32> {
        let named = names.iter().position(|name| text.eq_ignore_ascii_case(name)).map(|at| at as u32 + least);
        let digits = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        named.or_else(|| text.parse().ok().filter(|_| digits)).filter(|number| (least..=most).contains(number))
    };
    let (span, step) = match part.split_once('/') {
        Some((span, step)) => {
            (span, Some(step.parse::<usize>().ok().filter(|step| (1..=most as usize).contains(step))?))
        }
        None => (part, None),
    };
    let (from, to) = match span.split_once('-') {
        _ if span == "*" => (least, most),
        // A week may end with Sunday.
        Some((from, to)) => (number(from)?, number(to).map(|to| if most == 7 && to == 0 { 7 } else { to })?),
        // A number with a step goes on to the end.
        None => (number(span)?, if step.is_some() { most } else { number(span)? }),
    };
    (from <= to).then(|| (from..=to).step_by(step.unwrap_or(1)).fold(0, |set, number| set | 1 << number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    /// Expression, start and the next four times, as croniter gives them.
    const VECTORS: &str = include_str!("../../fixtures/api/cron.txt");

    /// Milliseconds since 1970 of a minute in UTC.
    fn minute(year: i16, month: i8, day: i8, hour: i8, minute: i8) -> i64 {
        micros_of(jiff::civil::datetime(year, month, day, hour, minute, 0, 0)) / 1000
    }

    #[test]
    fn times_are_as_croniter_gives_them() {
        let mut checked = 0;
        for line in VECTORS.lines().filter(|line| !line.starts_with('#')) {
            let parts: Vec<&str> = line.split(" | ").collect();
            let [expression, start, times] = parts.as_slice() else { panic!("{line}") };
            let cron = Cron::parse(expression).unwrap_or_else(|| panic!("{expression} is refused"));
            let mut at = Timestamp::parse(&format!("{start}Z")).expect("a time").0;
            for expect in times.split(' ') {
                at = cron.after(at).expect("there is a next time");
                assert_eq!(Timestamp(at).to_string(), format!("{expect}:00.000000Z"), "{line}");
                checked += 1;
            }
        }
        assert!(checked > 900, "only {checked}");
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for bad in [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * 32 * *",
            "* * * 13 *",
            "* * * * 8",
            "*/0 * * * *",
            "*/60 * * * *",
            "5-3 * * * *",
            "a * * * *",
            "@daily",
            "* * * * mo",
            "1,,2 * * * *",
            ",1 * * * *",
            "-1 * * * *",
            "1- * * * *",
            "*/ * * * *",
            "1/ * * * *",
            "/5 * * * *",
            "+1 * * * *",
            "1.5 * * * *",
            "*-5 * * * *",
            "0 0 ? * *",
            "0 0 L * *",
            "* * * * 5#2",
            "001 * * * *",
            "jan * * * *",
            "* * * * 1-2-3",
            "1/2/3 * * * *",
            "* * * * fri-mon",
            "1e1 * * * *",
            "\u{661} * * * *",
        ] {
            assert_eq!(Cron::parse(bad), None, "{bad}");
        }
        assert_eq!(Cron::parse(" 0\t0  * * fri-sun "), Cron::parse("0 0 * * 5,6,0"));
    }

    #[test]
    fn a_day_that_never_comes_has_no_time() {
        let cron = Cron::parse("0 0 30 2 *").expect("each field fits");
        assert_eq!((cron.after(minute(2026, 1, 5, 9, 0)), cron.comes()), (None, false));
        let leap = Cron::parse("0 0 29 2 *").expect("each field fits");
        assert_eq!(leap.after(minute(2096, 2, 29, 0, 0)), Some(minute(2104, 2, 29, 0, 0)));
    }
}
