//! Telephone numbers and their prefixes in E.164: a plus sign and digits, with blanks, hyphens, dots and parentheses
//! that do not count.

use std::ops::RangeInclusive;

/// Digits of a number: ITU-T E.164 allows 15 at most.
const DIGITS: RangeInclusive<usize> = 7..=15;

/// Returns the plus sign and the digits; `None` for texts that are not of that form or have a zero first.
fn digits_of(text: &str) -> Option<String> {
    let number: String = text.chars().filter(|c| !matches!(c, ' ' | '-' | '.' | '(' | ')')).collect();
    let digits = number.strip_prefix('+')?;
    let fits = digits.bytes().all(|digit| digit.is_ascii_digit()) && !digits.starts_with('0');
    fits.then_some(number)
}

/// Returns a number in E.164 without blanks, hyphens, dots and parentheses; `None` for a text that is none.
pub fn e164(text: &str) -> Option<String> {
    digits_of(text).filter(|number| DIGITS.contains(&(number.len() - 1)))
}

/// Returns the beginning of numbers in E.164, `+` alone for all numbers; `None` for a text that is none.
pub fn e164_prefix(text: &str) -> Option<String> {
    digits_of(text).filter(|prefix| prefix.len() - 1 <= *DIGITS.end())
}

/// Returns the pattern of the texts that [`e164`] reads.
pub fn e164_pattern() -> String {
    let (ignored, least, most) = ("[ .()-]*", DIGITS.start() - 1, DIGITS.end() - 1);
    format!("^{ignored}\\+{ignored}[1-9](?:{ignored}[0-9]){{{least},{most}}}{ignored}$")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_prefixes() {
        let pattern = regex_lite::Regex::new(&e164_pattern()).expect("a pattern");
        for (text, number, prefix) in [
            ("+1 (555) 000-11.11", Some("+15550001111"), Some("+15550001111")),
            ("+4912345", Some("+4912345"), Some("+4912345")),
            ("+491234", None, Some("+491234")),
            ("+", None, Some("+")),
            ("+05550001111", None, None),
            ("15550001111", None, None),
            ("+1555000111122223", None, None),
            ("+1555x001111", None, None),
            ("", None, None),
        ] {
            assert_eq!((e164(text).as_deref(), e164_prefix(text).as_deref()), (number, prefix), "{text}");
            assert_eq!(pattern.is_match(text), number.is_some(), "{text}");
        }
    }
}
