//! User parts of SIP addresses: their kinds, and the number of a trunk that one names. Pure.

use std::collections::BTreeMap;

use ringer_base::config::{Trunk, carrier};
use ringer_syntax::phone::e164;

/// Every trunk, by its name.
pub(crate) type Trunks = BTreeMap<String, Trunk>;

/// Most digits of a country code (ITU-T E.164 6.2.1).
const COUNTRY_DIGITS: usize = 3;
/// Fewest digits of a national number by which a trunk's number is found.
const NATIONAL_DIGITS: usize = 5;

/// Kinds of user parts of addresses that are dialled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UserPart {
    /// A number in E.164.
    Number(String),
    /// Digits that are no number in E.164: what they reach is not known.
    Digits,
    /// A name of letters.
    Name,
}

/// Returns the kind of a user part: with its escapes undone, and without parameters and visual separators (RFC 3966 3).
pub(crate) fn user_part(user: &str) -> UserPart {
    let user = unescape(user.split(';').next().unwrap_or_default());
    let user: String = user.chars().filter(|c| !matches!(c, ' ' | '-' | '.' | '(' | ')')).collect();
    match e164(&user) {
        Some(number) => UserPart::Number(number),
        None if user.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '*' | '#')) => UserPart::Digits,
        None => UserPart::Name,
    }
}

/// Undoes `%HH`. What is no UTF-8 then, is no number either.
fn unescape(user: &str) -> String {
    let mut bytes = Vec::with_capacity(user.len());
    let mut rest = user.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match digits.filter(|_| *first == b'%').and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the number of a trunk that the user part of an incoming call names. It may be written in E.164, by its
/// digits, with `00` before them, or in national form with or without a leading 0. A national form names a number that
/// a trunk lists; one that several of them have names none.
pub(crate) fn called_number(trunks: &Trunks, user: &str) -> Option<String> {
    let (user, digits) = dialled_digits(user)?;
    let numbers = || trunks.values().flat_map(|trunk| &trunk.numbers);
    let international = digits.strip_prefix("00").unwrap_or(&digits);
    if let Some(number) = numbers().find(|number| number[1..] == *international) {
        return Some(number.clone());
    }
    let named = national_digits(&user).and_then(|national| of_national(numbers(), national));
    named.or_else(|| e164(&format!("+{international}")).filter(|number| carrier(trunks, number).is_some()))
}

/// Returns the number among `numbers` that has these national digits; `None` where several or none have them.
pub(crate) fn of_national<'n>(numbers: impl Iterator<Item = &'n String>, national: &str) -> Option<String> {
    let is_national = |number: &&String| {
        let country = number[1..].strip_suffix(national).map(str::len);
        country.is_some_and(|digits| (1..=COUNTRY_DIGITS).contains(&digits))
    };
    let mut found = numbers.filter(is_national);
    found.next().filter(|_| found.next().is_none()).cloned()
}

/// Returns the digits of a user part that may be a number in national form, without a leading 0.
pub(crate) fn national_digits(user: &str) -> Option<&str> {
    let national = user.strip_prefix('0').unwrap_or(user);
    let fits = national.bytes().all(|byte| byte.is_ascii_digit());
    (fits && !national.starts_with('0') && national.len() >= NATIONAL_DIGITS).then_some(national)
}

/// Returns a user part that is a number, without parameters and visual separators, and its digits.
pub(crate) fn dialled_digits(user: &str) -> Option<(String, String)> {
    let user = unescape(user.split(';').next().unwrap_or_default());
    let user: String = user.chars().filter(|c| !matches!(c, ' ' | '-' | '.' | '(' | ')')).collect();
    let digits = user.strip_prefix('+').unwrap_or(&user).to_owned();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some((user, digits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::trunks::tests::{TWO, trunks};

    #[test]
    fn kinds_of_user_parts() {
        let number = |text: &str| UserPart::Number(text.to_owned());
        for (user, expect) in [
            ("+15550001111", number("+15550001111")),
            ("%2B1-555-000.1111;npdi", number("+15550001111")),
            ("%2b15550001111", number("+15550001111")),
            ("+%31%35550001111", number("+15550001111")),
            ("15550001111", UserPart::Digits),
            ("0015550001111", UserPart::Digits),
            ("911", UserPart::Digits),
            ("+911", UserPart::Digits),
            ("+15550001111,5", UserPart::Digits),
            ("(900)5551234", UserPart::Digits),
            ("*67", UserPart::Digits),
            ("desk", UserPart::Name),
            ("desk-911", UserPart::Name),
            ("%", UserPart::Name),
            ("", UserPart::Name),
        ] {
            assert_eq!(user_part(user), expect, "{user}");
        }
    }

    #[test]
    fn a_number_that_is_called_is_found_in_its_national_forms() {
        let two = trunks(&format!("{TWO}\n[sip.trunks.block]\nhost = 'h'\ncarries = ['+33 1']"));
        for (user, expect) in [
            ("+15550001111", Some("+15550001111")),
            ("15550001111", Some("+15550001111")),
            ("0015550001111", Some("+15550001111")),
            ("5550001111", Some("+15550001111")),
            ("05550001111", Some("+15550001111")),
            ("%2B15550001111;phone-context=x", Some("+15550001111")),
            ("03012345", Some("+493012345")),
            ("(030) 12345", Some("+493012345")),
            ("0049-30-12345", Some("+493012345")),
            // In one country as in the other.
            ("012345678", None),
            ("+5550001111", None),
            ("0001111", None),
            ("1111", None),
            ("+15550009999", None),
            // Of the trunk that carries the block, whoever has added it.
            ("+33123456789", Some("+33123456789")),
            ("0033123456789", Some("+33123456789")),
            ("33123456789", Some("+33123456789")),
            ("+3312", None),
            ("+34123456789", None),
            ("desk", None),
            ("", None),
        ] {
            assert_eq!(called_number(&two, user).as_deref(), expect, "{user}");
        }
    }
}
