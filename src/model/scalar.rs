//! Lax reading of single values from JSON, or from a text of a path, query or header. A value becomes an integer, a
//! number, a boolean, a uuid, a point in time or a URL. Nothing here knows fields or locations.

use std::borrow::Cow;

use jiff::civil::{Date, Time};
use ringer_syntax::json::Json;
use serde_json::Value;
use url::{ParseError, Url};

use crate::time::{DAY_US, GivenTime, civil_of, micros_of};
use crate::validation_error::Problem;

/// Longest URL in characters.
pub const MAX_URL_CHARS: u64 = 2083;

/// Largest number of seconds as an epoch; above it the number means milliseconds.
const MS_WATERSHED: f64 = 2e10;

/// A value and whether it had to be converted to get it.
#[derive(Clone, Debug, PartialEq)]
pub struct Read<T> {
    /// The value in its type.
    pub value: T,
    /// False when it was written in its own type.
    pub converted: bool,
}

type Outcome<T> = Result<Read<T>, Problem>;

fn same<T>(value: T) -> Outcome<T> {
    Ok(Read { value, converted: false })
}

fn conversion<T>(value: T) -> Outcome<T> {
    Ok(Read { value, converted: true })
}

/// Reads a signed integer of 64 bits; a text and a whole number with a fraction of zero are converted.
pub fn integer(json: &Json<'_>) -> Outcome<i64> {
    match json {
        Json::Number(text) => match text.parse::<i64>() {
            Ok(value) => same(value),
            Err(_) if !text.contains(['.', 'e', 'E']) => Err(Problem::plain("int_parsing_size")),
            Err(_) => whole(text.parse().unwrap_or(f64::NAN)),
        },
        Json::Bool(flag) => conversion(i64::from(*flag)),
        Json::Text(text) => match digits_of(text.trim()) {
            None => Err(Problem::plain("int_parsing")),
            Some(digits) => digits.parse().map_err(|_| Problem::plain("int_parsing_size")).and_then(conversion),
        },
        Json::Null | Json::Array(_) | Json::Object(_) => Err(Problem::plain("int_type")),
    }
}

fn whole(value: f64) -> Outcome<i64> {
    if !value.is_finite() {
        Err(Problem::plain("finite_number"))
    } else if value.fract() != 0.0 {
        Err(Problem::plain("int_from_float"))
    } else if value.abs() >= 9.2e18 && !(i64::MIN as f64..i64::MAX as f64).contains(&value) {
        Err(Problem::plain("int_parsing_size"))
    } else {
        conversion(value as i64)
    }
}

/// Reads `[sign] digits, single _ between them [. zeros]`, and returns sign and digits.
fn digits_of(text: &str) -> Option<String> {
    let text = match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => whole,
        Some(_) => return None,
        None => text,
    };
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let plain = without_separators(digits)?;
    let legal = !plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_digit());
    legal.then(|| if text.starts_with('-') { format!("-{plain}") } else { plain.into_owned() })
}

/// Removes `_` between two digits; `None` when it occurs elsewhere.
fn without_separators(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('_') {
        return Some(Cow::Borrowed(text));
    }
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let legal = (0..bytes.len()).all(|at| bytes[at] != b'_' || digit(at.checked_sub(1)) && digit(Some(at + 1)));
    legal.then(|| Cow::Owned(text.replace('_', "")))
}

/// Reads a finite number; a boolean is 1 or 0, a text its decimal value.
pub fn number(json: &Json<'_>) -> Outcome<f64> {
    let read = match json {
        Json::Number(text) => Read { value: text.parse().unwrap_or(f64::NAN), converted: false },
        Json::Bool(flag) => Read { value: f64::from(u8::from(*flag)), converted: true },
        Json::Text(text) => {
            Read { value: decimal(text.trim()).ok_or(Problem::plain("float_parsing"))?, converted: true }
        }
        Json::Null | Json::Array(_) | Json::Object(_) => return Err(Problem::plain("float_type")),
    };
    if read.value.is_finite() { Ok(read) } else { Err(Problem::plain("finite_number")) }
}

fn decimal(text: &str) -> Option<f64> {
    let plain = without_separators(text)?;
    // Rust's parser accepts exactly decimal, exponent, nan, inf and infinity forms, in any case.
    plain.parse().ok()
}

/// Reads a boolean: `true` and `false`, 1 and 0, and the usual words for them.
pub fn boolean(json: &Json<'_>) -> Outcome<bool> {
    match json {
        Json::Bool(flag) => same(*flag),
        Json::Number(text) => match text.parse::<f64>() {
            Ok(0.0) => conversion(false),
            Ok(1.0) => conversion(true),
            Ok(value) if value.fract() == 0.0 => Err(Problem::plain("bool_parsing")),
            _ => Err(Problem::plain("bool_type")),
        },
        Json::Text(text) => match text.to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "on" | "1" => conversion(true),
            "false" | "f" | "no" | "n" | "off" | "0" => conversion(false),
            _ => Err(Problem::plain("bool_parsing")),
        },
        Json::Null | Json::Array(_) | Json::Object(_) => Err(Problem::plain("bool_type")),
    }
}

/// Reads a string, which stays unchanged.
pub fn string<'j>(json: &'j Json<'_>) -> Outcome<&'j str> {
    match json {
        Json::Text(text) => same(text),
        _ => Err(Problem::plain("string_type")),
    }
}

/// Reads an identifier that is a text in JSON: a string, or an integer of any size, which becomes its decimal text.
pub fn text_id(json: &Json<'_>) -> Outcome<String> {
    match json {
        Json::Text(text) => same(text.clone().into_owned()),
        Json::Number(text) if text.strip_prefix('-').unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit()) => {
            conversion(if text == "-0" { "0".to_owned() } else { text.clone().into_owned() })
        }
        _ => Err(Problem::plain("string_type")),
    }
}

/// Reads a uuid, and returns it in lower case with hyphens (RFC 9562 section 4).
pub fn uuid(json: &Json<'_>) -> Outcome<String> {
    let Json::Text(text) = json else { return Err(Problem::plain("uuid_type")) };
    match uuid::Uuid::parse_str(text) {
        Ok(uuid) => {
            let canonical = uuid.as_hyphenated().to_string();
            let converted = canonical != text.as_ref();
            Ok(Read { value: canonical, converted })
        }
        Err(_) => Err(Problem::parsing("uuid_parsing", &why_no_uuid(text))),
    }
}

/// Reads `-` and digits as an integer, anything else as a uuid. The error of other texts is that of an integer.
pub fn number_or_uuid(json: &Json<'_>) -> Outcome<Value> {
    let Json::Text(text) = json else { return Err(Problem::plain("int_parsing")) };
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse::<i64>().map_err(|_| Problem::plain("int_parsing_size")).and_then(|n| conversion(n.into()));
    }
    uuid(json).map_err(|_| Problem::plain("int_parsing")).and_then(|id| same(id.value.into()))
}

fn why_no_uuid(text: &str) -> String {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let braced = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let (inner, offset) = match (braced, text.strip_prefix("urn:uuid:")) {
        (Some(inner), _) => (inner, 1),
        (_, Some(inner)) => (inner, 9),
        _ => (text, 0),
    };
    if let Some((at, bad)) = inner.chars().enumerate().find(|(_, c)| *c != '-' && !c.is_ascii_hexdigit()) {
        return format!("invalid character: found `{bad}` at {}", at + offset);
    }
    let groups: Vec<&str> = inner.split('-').collect();
    match groups.len() {
        1 if offset == 0 => format!("invalid length: found {}", inner.len()),
        5 => {
            let wrong = (0..5).find(|group| groups[*group].len() != GROUPS[*group]).unwrap_or(4);
            let (expected, found) = (GROUPS[wrong], groups[wrong].len());
            format!("invalid group length in group {wrong}: expected {expected}, found {found}")
        }
        count => format!("invalid group count: expected 5, found {count}"),
    }
}

/// Reads an absolute http or https URL, which stays unchanged.
pub fn url<'j>(json: &'j Json<'_>) -> Outcome<&'j str> {
    let Json::Text(text) = json else { return Err(Problem::plain("url_type")) };
    if text.chars().count() as u64 > MAX_URL_CHARS {
        return Err(Problem::url_too_long(MAX_URL_CHARS));
    }
    if text.is_empty() {
        return Err(Problem::parsing("url_parsing", "input is empty"));
    }
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => same(text),
        Ok(_) => Err(Problem::url_scheme()),
        Err(error) => Err(Problem::parsing("url_parsing", why_no_url(error))),
    }
}

fn why_no_url(error: ParseError) -> &'static str {
    match error {
        ParseError::EmptyHost => "empty host",
        ParseError::InvalidPort => "invalid port number",
        ParseError::InvalidIpv6Address => "invalid IPv6 address",
        ParseError::InvalidIpv4Address => "invalid IPv4 address",
        ParseError::IdnaError | ParseError::InvalidDomainCharacter => "invalid international domain name",
        _ => "relative URL without a base",
    }
}

/// A count of microseconds since 1970-01-01T00:00:00Z.
pub type Micros = i64;

/// Reads a point in time, and returns it as `YYYY-MM-DDTHH:MM:SS.ffffffZ`.
pub fn timestamp(json: &Json<'_>) -> Outcome<String> {
    let no_parse = "datetime_from_date_parsing";
    let Read { value: time, converted } = local_time(json, "datetime_type", no_parse)?;
    let utc = time.local - time.ahead;
    // The zone may have moved the time out of the years that can be written.
    let utc = Some(utc).filter(|utc| in_years(*utc)).ok_or(Problem::parsing(no_parse, NO_DAY))?;
    Ok(Read { value: GivenTime(utc).to_string(), converted })
}

/// Reads a calendar date, and returns it as `YYYY-MM-DD`. The zone of a time does not change its date.
pub fn date(json: &Json<'_>) -> Outcome<String> {
    let Read { value: time, converted } = local_time(json, "date_type", "date_from_datetime_parsing")?;
    if time.local.rem_euclid(DAY_US) != 0 {
        return Err(Problem::plain("date_from_datetime_inexact"));
    }
    Ok(Read { value: GivenTime(time.local).to_string()[..10].to_owned(), converted })
}

/// A time as it was written, and how far its zone is ahead of UTC.
struct LocalTime {
    local: Micros,
    ahead: Micros,
}

/// True if the time is within the years 1 to 9999.
fn in_years(us: Micros) -> bool {
    civil_of(us).is_some_and(|at| at.year() >= 1)
}

fn local_time(json: &Json<'_>, no_type: &'static str, no_parse: &'static str) -> Outcome<LocalTime> {
    let is_decimal = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        digits.starts_with(|c: char| c.is_ascii_digit()) && digits.bytes().all(|c| c.is_ascii_digit() || c == b'.')
    };
    let epoch = match json {
        Json::Number(text) => text.parse::<f64>().ok(),
        Json::Text(text) if is_decimal(text) => text.parse::<f64>().ok(),
        Json::Text(_) => None,
        _ => return Err(Problem::plain(no_type)),
    };
    if let Some(epoch) = epoch {
        let us = if epoch.abs() > MS_WATERSHED { epoch * 1e3 } else { epoch * 1e6 };
        return match us as i64 {
            us if in_years(us) => conversion(LocalTime { local: us, ahead: 0 }),
            _ => Err(Problem::parsing(no_parse, NO_DAY)),
        };
    }
    match json {
        Json::Text(text) => iso(text).map_err(|why| Problem::parsing(no_parse, why)).and_then(same),
        _ => Err(Problem::plain(no_type)),
    }
}

const NO_DAY: &str = "day value is outside expected range";
const REST: &str = "unexpected extra characters at the end of the input";

/// Reads ISO 8601: a date, then optionally a time, then optionally a zone.
fn iso(text: &str) -> Result<LocalTime, &'static str> {
    let bytes = text.as_bytes();
    if bytes.len() < 10 {
        return Err("input is too short");
    }
    let year = digits(bytes, 0, 4).filter(|_| bytes[4] == b'-').ok_or("invalid character in year")?;
    let month = digits(bytes, 5, 2).filter(|month| (1..=12).contains(month) && bytes[7] == b'-');
    let month = month.ok_or("month value is outside expected range of 1-12")?;
    let day = digits(bytes, 8, 2).ok_or(NO_DAY)?;
    // There is no year 0 (RFC 3339 has one, calendars do not).
    let date = Date::new(year as i16, month as i8, day as i8).ok().filter(|date| date.year() > 0).ok_or(NO_DAY)?;
    let midnight = micros_of(date.to_datetime(Time::midnight()));
    if bytes.len() == 10 {
        return Ok(LocalTime { local: midnight, ahead: 0 });
    }
    if !matches!(bytes[10], b'T' | b't' | b' ') {
        return Err(REST);
    }
    let (us, ahead) = time_of_day(&bytes[11..]).ok_or(REST)?;
    Ok(LocalTime { local: midnight + us, ahead })
}

/// Reads `hh:mm[:ss[.f...]][Z|+hh:mm]`; returns microseconds after midnight, and those by which its zone is ahead of
/// UTC.
fn time_of_day(bytes: &[u8]) -> Option<(Micros, Micros)> {
    let field = |at: usize, limit: i64| digits(bytes, at, 2).filter(|value| *value < limit);
    let minutes = field(0, 24)? * 60 + (bytes.get(2) == Some(&b':')).then(|| field(3, 60))??;
    let (mut at, mut us) = (5, minutes * 60_000_000);
    if bytes.get(at) == Some(&b':') {
        us += field(at + 1, 60)? * 1_000_000;
        at += 3;
        if let Some(b'.' | b',') = bytes.get(at) {
            let places = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let kept = places.min(6);
            us += digits(bytes, at + 1, kept).filter(|_| kept > 0)? * 10i64.pow(6 - kept as u32);
            at += 1 + places;
        }
    }
    let zone = match (bytes.get(at), bytes.len() - at.min(bytes.len())) {
        (None, _) | (Some(b'Z' | b'z'), 1) => 0,
        (Some(sign @ (b'+' | b'-')), 5 | 6) => {
            let minute = if bytes[at + 3] == b':' { at + 4 } else { at + 3 };
            let minutes = field(at + 1, 24)? * 60 + field(minute, 60).filter(|_| minute + 2 == bytes.len())?;
            if *sign == b'-' { -minutes } else { minutes }
        }
        _ => return None,
    };
    Some((us, zone * 60_000_000))
}

fn digits(bytes: &[u8], at: usize, count: usize) -> Option<i64> {
    let digits = bytes.get(at..at + count)?;
    digits.iter().try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use ringer_syntax::json::read_text;

    use super::*;

    fn check<T: std::fmt::Display>(reader: impl Fn(&Json<'_>) -> Outcome<T>, cases: &[(&str, &str)]) {
        for (text, expect) in cases {
            let got = match reader(&read_text(text).expect("the case is JSON")) {
                Ok(read) => read.value.to_string(),
                Err(problem) => match problem.ctx.get("error") {
                    Some(why) => format!("{}: {}", problem.kind, why.as_str().unwrap_or_default()),
                    None => problem.kind.to_owned(),
                },
            };
            assert_eq!(&got, expect, "for {text}");
        }
    }

    #[test]
    fn integers() {
        check(
            integer,
            &[
                ("1", "1"),
                ("1.0", "1"),
                ("1e3", "1000"),
                ("-0.0", "0"),
                ("true", "1"),
                ("\"12\"", "12"),
                ("\" +12 \"", "12"),
                ("\"01\"", "1"),
                ("\"1_000\"", "1000"),
                ("\"12.00\"", "12"),
                ("\"1.5\"", "int_parsing"),
                ("\"1e3\"", "int_parsing"),
                ("\"12.\"", "int_parsing"),
                ("\"0x1\"", "int_parsing"),
                ("\"1__0\"", "int_parsing"),
                ("\"_1\"", "int_parsing"),
                ("\"\"", "int_parsing"),
                ("1.5", "int_from_float"),
                ("null", "int_type"),
                ("[]", "int_type"),
                ("9223372036854775807", "9223372036854775807"),
                ("9223372036854775808", "int_parsing_size"),
                ("1180591620717411303424", "int_parsing_size"),
                ("\"1180591620717411303424\"", "int_parsing_size"),
                ("1e30", "int_parsing_size"),
            ],
        );
    }

    #[test]
    fn numbers_and_booleans() {
        check(
            number,
            &[
                ("1", "1"),
                ("true", "1"),
                ("\" 1.5 \"", "1.5"),
                ("\".5\"", "0.5"),
                ("\"5.\"", "5"),
                ("\"1e5\"", "100000"),
                ("\"1_0\"", "10"),
                ("\"x\"", "float_parsing"),
                ("\"0x1\"", "float_parsing"),
                ("\"\"", "float_parsing"),
                ("\"nan\"", "finite_number"),
                ("\"-Infinity\"", "finite_number"),
                ("1e999", "finite_number"),
                ("{}", "float_type"),
            ],
        );
        check(
            boolean,
            &[
                ("\"Yes\"", "true"),
                ("\"oFF\"", "false"),
                ("0.0", "false"),
                ("1", "true"),
                ("2", "bool_parsing"),
                ("0.5", "bool_type"),
                ("\" true\"", "bool_parsing"),
                ("\"\"", "bool_parsing"),
                ("null", "bool_type"),
            ],
        );
    }

    #[test]
    fn uuids_and_urls() {
        check(
            uuid,
            &[
                ("\"6A1E0B64-6F0A-4C3B-9A25-0F4F6F7A1C11\"", "6a1e0b64-6f0a-4c3b-9a25-0f4f6f7a1c11"),
                ("\"urn:uuid:6a1e0b64-6f0a-4c3b-9a25-0f4f6f7a1c11\"", "6a1e0b64-6f0a-4c3b-9a25-0f4f6f7a1c11"),
                ("\"x\"", "uuid_parsing: invalid character: found `x` at 0"),
                ("\"abc\"", "uuid_parsing: invalid length: found 3"),
                ("\"\"", "uuid_parsing: invalid length: found 0"),
                ("\"a-b\"", "uuid_parsing: invalid group count: expected 5, found 2"),
                (
                    "\"6a1e0b64-6f0-4c3b-9a25-0f4f6f7a1c11\"",
                    "uuid_parsing: invalid group length in group 1: expected 4, found 3",
                ),
                ("7", "uuid_type"),
            ],
        );
        check(
            number_or_uuid,
            &[
                ("\"12\"", "12"),
                ("\"-1\"", "-1"),
                ("\"6A1E0B64-6F0A-4C3B-9A25-0F4F6F7A1C11\"", "\"6a1e0b64-6f0a-4c3b-9a25-0f4f6f7a1c11\""),
                ("\"12345678901234567890123456789012\"", "int_parsing_size"),
                ("\"+1\"", "int_parsing"),
                ("\"1.0\"", "int_parsing"),
                ("\"abc\"", "int_parsing"),
                ("\"-\"", "int_parsing"),
            ],
        );
        check(
            |json| url(json).map(|read| Read { value: read.value.to_owned(), converted: read.converted }),
            &[
                ("\"https://a.example/x\"", "https://a.example/x"),
                ("\"\"", "url_parsing: input is empty"),
                ("\"a.example\"", "url_parsing: relative URL without a base"),
                ("\"http://\"", "url_parsing: empty host"),
                ("\"http://a:99999\"", "url_parsing: invalid port number"),
                ("\"http://[1::\"", "url_parsing: invalid IPv6 address"),
                ("\"http://1.2.3.400\"", "url_parsing: invalid IPv4 address"),
                ("\"ftp://a.example\"", "url_scheme"),
                ("1", "url_type"),
            ],
        );
    }

    #[test]
    fn times_and_dates() {
        check(
            timestamp,
            &[
                ("\"2024-02-29\"", "2024-02-29T00:00:00.000000Z"),
                ("\"2026-01-05t10:00\"", "2026-01-05T10:00:00.000000Z"),
                ("\"2026-01-05 10:00:01.1234567+02:00\"", "2026-01-05T08:00:01.123456Z"),
                ("0", "1970-01-01T00:00:00.000000Z"),
                ("1767607200.5", "2026-01-05T10:00:00.500000Z"),
                ("\"1767607200000\"", "2026-01-05T10:00:00.000000Z"),
                ("-1", "1969-12-31T23:59:59.000000Z"),
                ("\"x\"", "datetime_from_date_parsing: input is too short"),
                ("\"20x6-01-05\"", "datetime_from_date_parsing: invalid character in year"),
                ("\"2026-13-05\"", "datetime_from_date_parsing: month value is outside expected range of 1-12"),
                ("\"2026-02-29\"", "datetime_from_date_parsing: day value is outside expected range"),
                (
                    "\"2026-02-20T25:00\"",
                    "datetime_from_date_parsing: unexpected extra characters at the end of the input",
                ),
                ("\"0001-01-01T00:00:00Z\"", "0001-01-01T00:00:00.000000Z"),
                ("\"0000-12-31\"", "datetime_from_date_parsing: day value is outside expected range"),
                ("\"0000-12-31T23:00-05:00\"", "datetime_from_date_parsing: day value is outside expected range"),
                ("\"0001-01-01T00:00+02:00\"", "datetime_from_date_parsing: day value is outside expected range"),
                ("\"9999-12-31T23:00-02:00\"", "datetime_from_date_parsing: day value is outside expected range"),
                ("true", "datetime_type"),
            ],
        );
        check(
            date,
            &[
                ("\"2026-01-05\"", "2026-01-05"),
                ("\"2026-01-05T00:00:00Z\"", "2026-01-05"),
                ("\"2026-01-05T00:00:01Z\"", "date_from_datetime_inexact"),
                ("\"2026-01-05T00:00+02:00\"", "2026-01-05"),
                ("\"2026-01-05T00:00-05:00\"", "2026-01-05"),
                ("\"2026-01-05T02:00+02:00\"", "date_from_datetime_inexact"),
                ("\"0000-01-01\"", "date_from_datetime_parsing: day value is outside expected range"),
                ("\"9999-12-31T00:00-05:00\"", "9999-12-31"),
                ("[]", "date_type"),
            ],
        );
    }
}
