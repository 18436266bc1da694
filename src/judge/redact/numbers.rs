//! Private numbers: several digits in a row, written or spoken, and what kind of number they are.

use std::ops::Range;
use std::sync::LazyLock;

use regex_lite::Regex;
use ringer_media::numerals::{Form, Number};

use super::shadow::Shadow;
use super::{LEAST_DIGITS, Part};

/// Digits of a telephone number (ITU-T E.164 6) that is said without `+`.
const PHONE_DIGITS: Range<usize> = 7..16;
/// Digits of a card number (ISO/IEC 7812-1).
const CARD_DIGITS: Range<usize> = 13..20;
/// Most characters between the digits of one number.
const JOINT_CHARS: usize = 3;
/// Weak number words in a row that are a number without any other.
const WEAK_MIN: usize = 4;
/// Idioms that are made of digits.
const IDIOMS: [&str; 6] = ["七七八八", "三三两两", "三三兩兩", "一五一十", "九九八十一", "三三五五"];
/// Words before a time of day, in any language.
const CLOCK: [&str; 24] = [
    "at",
    "by",
    "until",
    "till",
    "before",
    "after",
    "around",
    "about",
    "from",
    "to",
    "las",
    "la",
    "às",
    "as",
    "saat",
    "um",
    "gegen",
    "ab",
    "bis",
    "в",
    "до",
    "с",
    "الساعة",
    "o",
];
/// Words after a time of day.
const CLOCK_AFTER: [&str; 9] = ["am", "pm", "a.m", "p.m", "बजे", "o'clock", "uhr", "heures", "horas"];

static SOCIAL_SECURITY: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\d{3}[- ]\d{2}[- ]\d{4}$"));
/// Numbers of persons whose form tells them: CPF, DNI and NIE, SNILS, the Korean, Chinese and Hong Kong ones.
static IDENTITIES: LazyLock<Regex> = LazyLock::new(|| {
    let forms = [
        r"\d{3}\.\d{3}\.\d{3}-\d{2}",
        r"(?:\d{8}|[XYZxyz]-?\d{7})-?[A-Za-z]",
        r"\d{3}-\d{3}-\d{3} \d{2}",
        r"\d{6}-[1-8]\d{6}",
        r"\d{17}[0-9Xx]",
        r"[A-Za-z]{1,2}\d{6}\([0-9Aa]\)",
    ];
    pattern(&format!(r"\b(?:{})", forms.join("|")))
});

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is tested")
}

/// Returns the places of numbers of persons that their form tells. The check digits and letters must be right.
pub(super) fn identities(shadow: &Shadow) -> Vec<Range<usize>> {
    shadow.find_where(&IDENTITIES, |found, next| !next.is_some_and(|c| c.is_ascii_alphanumeric()) && is_identity(found))
}

fn is_identity(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| c.is_ascii_alphanumeric()).collect::<String>().to_ascii_uppercase();
    let last = plain.chars().next_back();
    match plain.len() {
        // The letter of a DNI follows from its digits.
        9 if last.is_some_and(|c| c.is_ascii_alphabetic()) => {
            let digits: String =
                plain[..8].chars().map(|c| "XYZ".find(c).map_or(c, |at| ['0', '1', '2'][at])).collect();
            let letter =
                digits.parse::<usize>().ok().and_then(|value| "TRWAGMYFPDXBNJZSQVHLCKE".chars().nth(value % 23));
            letter == last
        }
        // GB 11643: weights are powers of two modulo 11.
        18 => {
            let digits = plain.bytes().take(17).map(|b| u32::from(b - b'0'));
            let sum: u32 = digits.enumerate().map(|(at, digit)| digit * (2u32.pow(17 - at as u32) % 11)).sum();
            "10X98765432".chars().nth((sum % 11) as usize) == last
        }
        _ => true,
    }
}

/// Returns the private ones among the numbers of a text, but for those in `taken`.
pub(super) fn private(text: &str, numbers: &[Number], taken: &[Part]) -> Vec<Part> {
    let is_taken =
        |range: &Range<usize>| taken.iter().any(|(part, _)| part.start < range.end && range.start < part.end);
    let usable = |number: &&Number| !matches!(number.form, Form::Scale | Form::Ordinal) && !is_taken(&number.place);
    let usable: Vec<&Number> = numbers.iter().filter(usable).collect();
    let follows = |one: &&Number, next: &&Number| {
        let between = one.place.end..next.place.start;
        // An article before written digits is no digit.
        let is_article = [(one, next), (next, one)]
            .iter()
            .any(|(weak, other)| weak.form == Form::Weak && other.form == Form::Digits && !between.is_empty());
        is_joint(&text[between.clone()]) && !is_taken(&between) && !is_article
    };
    usable.chunk_by(follows).filter_map(|run| part(text, run)).collect()
}

/// True if a text may separate the digits of one number.
fn is_joint(text: &str) -> bool {
    text.chars().all(|c| " -.,()/\u{a0}\u{202f}、，،・·–‐‑－ー−　".contains(c)) && text.chars().count() <= JOINT_CHARS
}

/// Returns the part of a row of numbers, if it is private.
fn part(text: &str, run: &[&Number]) -> Option<Part> {
    let digits: String = run.iter().map(|number| number.digits.as_str()).collect();
    let mut place = run[0].place.start..run[run.len() - 1].place.end;
    let is_sure = run.len() >= WEAK_MIN || run.iter().any(|number| number.form != Form::Weak);
    if digits.len() < LEAST_DIGITS || !is_sure || is_time(text, run) || IDIOMS.contains(&&text[place.clone()]) {
        return None;
    }
    let plus = text[..place.start].ends_with(['+', '＋']);
    if let (true, Some(c)) = (plus, text[..place.start].chars().next_back()) {
        place.start -= c.len_utf8();
    }
    let is_amount = run.len() == 1 && run[0].is_scaled;
    let written = &text[run[0].place.start..place.end];
    Some((place.clone(), if is_amount { "[NUMBER]" } else { kind(&digits, written, plus) }))
}

/// True for an hour and its minutes in words, with a word that shows the time of day.
fn is_time(text: &str, run: &[&Number]) -> bool {
    let [hour, minutes] = run else { return false };
    let value = |number: &Number| number.digits.parse::<u32>().unwrap_or(u32::MAX);
    let words = hour.form != Form::Digits && minutes.form != Form::Digits;
    if !words || value(hour) > 23 || value(minutes) > 59 {
        return false;
    }
    let lower = |text: Option<&str>| text.unwrap_or_default().to_lowercase();
    let before = lower(text[..hour.place.start].split_whitespace().next_back());
    let after = lower(text[minutes.place.end..].split_whitespace().next());
    CLOCK.contains(&before.as_str()) || CLOCK_AFTER.contains(&after.trim_end_matches(['.', ',', '?', '!']))
}

fn kind(digits: &str, written: &str, plus: bool) -> &'static str {
    if CARD_DIGITS.contains(&digits.len()) && luhn(digits) {
        "[CARD]"
    } else if SOCIAL_SECURITY.is_match(written) {
        "[ID]"
    } else if plus || PHONE_DIGITS.contains(&digits.len()) {
        "[PHONE]"
    } else {
        "[NUMBER]"
    }
}

/// True if the check digit of a card number is right (ISO/IEC 7812-1 annex B).
fn luhn(digits: &str) -> bool {
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, b)| match u32::from(b - b'0') * (1 + at as u32 % 2) {
            double if double > 9 => double - 9,
            single => single,
        })
        .sum();
    sum.is_multiple_of(10)
}
