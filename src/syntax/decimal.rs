//! Decimal numbers by the digits that were written: two are equal when they have the same value, however long they are.

use serde_json::{Number, Value};

/// A decimal number without a limit of its digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decimal {
    is_negative: bool,
    /// Digits without zeros at their beginning and end; empty for zero.
    digits: String,
    /// Power of ten of the last digit; 0 for zero.
    exponent: i64,
}

impl Decimal {
    /// Reads `[sign] digits [. digits] [e [sign] digits]`, with a digit on one side of the point at least; `None` for
    /// other texts, and for exponents beyond 32 bits.
    pub fn parse(text: &str) -> Option<Decimal> {
        let is_negative = text.starts_with('-');
        let text = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (mantissa, power) = match text.split_once(['e', 'E']) {
            Some((mantissa, power)) => (mantissa, i64::from(power.parse::<i32>().ok()?)),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() && fraction.is_empty() || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let all = [whole, fraction].concat();
        let significant = all.trim_end_matches('0');
        let digits = significant.trim_start_matches('0');
        if digits.is_empty() {
            return Some(Decimal { is_negative: false, digits: String::new(), exponent: 0 });
        }
        let exponent = power - fraction.len() as i64 + (all.len() - significant.len()) as i64;
        Some(Decimal { is_negative, digits: digits.to_owned(), exponent })
    }

    /// Returns the value of a number that a program holds: of a float, its shortest digits.
    pub fn of(number: &Number) -> Option<Decimal> {
        Decimal::parse(&number.to_string())
    }
}

/// Returns the number that a text writes. Where no number of 64 bits has that value, the text itself, so that no digit
/// is lost; null for a text that is no number.
pub fn exact(text: &str) -> Value {
    let Some(written) = Decimal::parse(text) else { return Value::Null };
    let integer = text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from)).ok();
    let number = integer.or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64));
    match number.filter(|number| Decimal::of(number).as_ref() == Some(&written)) {
        Some(number) => Value::Number(number),
        None => Value::String(text.to_owned()),
    }
}

/// Returns the number that [`exact`] left a text; `None` for every other text.
pub fn too_long(text: &str) -> Option<Decimal> {
    // Digits with a zero before them are a name, and no number of JSON (RFC 8259 section 6).
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_json = digits.starts_with(|c: char| c.is_ascii_digit())
        && !(digits.starts_with('0') && digits[1..].starts_with(|c: char| c.is_ascii_digit()));
    if is_json && exact(text).is_string() { Decimal::parse(text) } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_equal_by_their_exact_value() {
        let read = |text: &str| Decimal::parse(text).unwrap_or_else(|| panic!("{text} is a number"));
        for (one, other, expect) in [
            ("1.10", "1.1", true),
            ("1", "1.0", true),
            ("1000", "1e3", true),
            ("0.001", "1E-3", true),
            ("-0", "0.00", true),
            ("+14155550100", "14155550100", true),
            (".5", "0.5", true),
            ("5.", "5", true),
            ("9007199254740993", "9007199254740992", false),
            ("12345678901234567890123", "12345678901234567890124", false),
            ("0.1000000000000000055511151231257827", "0.1", false),
            ("1", "-1", false),
            ("1e400", "1e401", false),
        ] {
            assert_eq!(read(one) == read(other), expect, "{one} {other}");
        }
        for text in ["", "-", ".", "1.2.3", "1e", "e5", "0x10", "1_0", "12:30", "1e99999999999", "--1", "Infinity"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_no_number_holds_stays_a_text() {
        for (text, expect) in [
            ("9007199254740993", json!(9_007_199_254_740_993_i64)),
            ("18446744073709551615", json!(u64::MAX)),
            ("18446744073709551616", json!("18446744073709551616")),
            ("1.10", json!(1.1)),
            ("1e3", json!(1000.0)),
            ("0.1234567890123456789", json!("0.1234567890123456789")),
            ("1e999", json!("1e999")),
            ("one", json!(null)),
        ] {
            assert_eq!(exact(text), expect, "{text}");
            assert_eq!(too_long(text).is_some(), expect.is_string(), "{text}");
        }
        assert_eq!(too_long("+14155550100"), None);
    }
}
