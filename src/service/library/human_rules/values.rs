//! Values of traits: their types, and plausible values, or parts of them, that are invented.

use ringer_base::error::{Error, Result};
use ringer_media::seed::{Seed, Stream};
use ringer_model::digital_human::{Trait, TraitType};
use ringer_syntax::decimal::too_long;
use serde_json::{Value, json};

use crate::library::names;

const CITIES: [&str; 8] =
    ["Springfield", "Riverton", "Lakewood", "Fairview", "Georgetown", "Madison", "Clinton", "Salem"];
const STREETS: [&str; 6] = ["Oak Street", "Maple Avenue", "Hill Road", "Park Lane", "Mill Street", "Lake Drive"];
const WORDS: [&str; 8] = ["blue", "silver", "maple", "river", "summer", "copper", "harbor", "meadow"];

/// Value that asks for an invented one.
const WHOLE: &str = "__random__";
/// Value that asks for a part of an invented one.
const PART: &str = "__partial_random__";

/// True if a value is a placeholder for an invented one.
pub(crate) fn is_invented(given: &Value) -> bool {
    matches!(given.as_str(), Some(WHOLE | PART))
}

/// Returns the value that `given` stands for, and how much of a whole one it is: `completeness`, unless a part was
/// invented.
pub(crate) fn resolve(
    name: &str,
    kind: TraitType,
    given: &Value,
    completeness: Option<&str>,
    draw: &mut Stream,
) -> (Value, Option<String>) {
    match given.as_str() {
        Some(WHOLE) => (invent(name, kind, draw), completeness.map(str::to_owned)),
        Some(PART) => {
            let (part, how) = part(name, kind, completeness, draw);
            (part, Some(how))
        }
        _ => (given.clone(), completeness.map(str::to_owned)),
    }
}

/// Returns the facts of a caller whom `identity` draws. The same caller has the same facts.
pub(crate) fn bind(traits: Vec<Trait>, identity: Seed) -> Vec<Trait> {
    let bind = |fact: Trait| {
        let mut draw = identity.stream(&format!("trait {}", fact.trait_name));
        let (value, _) = resolve(&fact.trait_name, fact.trait_data_type, &fact.value, None, &mut draw);
        Trait { value, ..fact }
    };
    traits.into_iter().map(bind).collect()
}

/// Returns a whole value of a trait with this name.
pub(crate) fn invent(name: &str, kind: TraitType, draw: &mut Stream) -> Value {
    match kind {
        TraitType::Boolean => json!(draw.unit() < 0.5),
        TraitType::Number => json!(1 + draw.index(999)),
        TraitType::Date => json!(date(draw)),
        TraitType::String => json!(text(&name.to_lowercase(), draw)),
    }
}

/// Returns the part of a value, and how much of it: as `completeness` says, else what callers of such a trait tend to
/// know.
pub(crate) fn part(name: &str, kind: TraitType, completeness: Option<&str>, draw: &mut Stream) -> (Value, String) {
    let whole = match kind {
        TraitType::Date => date(draw),
        _ => text(&name.to_lowercase(), draw),
    };
    let how = completeness.unwrap_or(if kind == TraitType::Date { "year_only" } else { "last_4" });
    let shown: String = match how {
        "year_only" if kind == TraitType::Date => whole.chars().take(4).collect(),
        "month_day" if kind == TraitType::Date => whole.chars().skip(5).collect(),
        "first_name" => whole.split(' ').next().unwrap_or_default().to_owned(),
        "first_half" => whole.chars().take(whole.chars().count().div_ceil(2)).collect(),
        _ => {
            let letters: Vec<char> = whole.chars().filter(|c| c.is_alphanumeric()).collect();
            letters[letters.len().saturating_sub(4)..].iter().collect()
        }
    };
    (json!(shown), how.to_owned())
}

/// Checks that a value of a trait has the trait's type.
pub(crate) fn check_value(name: &str, kind: TraitType, value: &Value) -> Result<()> {
    match fits(kind, value) {
        true => Ok(()),
        false => Err(Error::Refused(format!("value of trait {name} is not a valid {}", kind.as_str()))),
    }
}

/// True for a value of this type.
pub(crate) fn fits(kind: TraitType, value: &Value) -> bool {
    match kind {
        TraitType::Boolean => value.is_boolean(),
        TraitType::String => value.is_string(),
        TraitType::Date => value.as_str().is_some_and(is_date),
        // A number of more digits than 64 bits hold is kept as their text.
        TraitType::Number => value.is_number() || value.as_str().is_some_and(|text| too_long(text).is_some()),
    }
}

/// True for `YYYY-MM-DD` of the Gregorian calendar.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let digits = |part: &str, len| part.len() == len && part.bytes().all(|b| b.is_ascii_digit());
    if !(digits(year, 4) && digits(month, 2) && digits(day, 2)) {
        return false;
    }
    let number = |part: &str| part.parse::<u32>().unwrap_or(0);
    let (year, month, day) = (number(year), number(month), number(day));
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    (1..=12).contains(&month) && (1..=last).contains(&day)
}

fn digits(count: usize, draw: &mut Stream) -> String {
    (0..count).map(|_| char::from(b'0' + draw.index(10) as u8)).collect()
}

/// Returns a date of birth, `YYYY-MM-DD`, in the years 1950 to 2004.
fn date(draw: &mut Stream) -> String {
    format!("{:04}-{:02}-{:02}", 1950 + draw.index(55), 1 + draw.index(12), 1 + draw.index(28))
}

fn text(name: &str, draw: &mut Stream) -> String {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let one = |list: &[&str], draw: &mut Stream| list[draw.index(list.len())].to_owned();
    if has(&["phone", "mobile", "number_to_call"]) {
        format!("+1555{}", digits(7, draw))
    } else if has(&["mail"]) {
        format!("{}{}@example.com", one(&WORDS, draw), digits(2, draw))
    } else if has(&["zip", "postal"]) {
        format!("{}{}", 1 + draw.index(9), digits(4, draw))
    } else if has(&["city", "town"]) {
        one(&CITIES, draw)
    } else if has(&["street", "address"]) {
        format!("{} {}", 1 + draw.index(200), one(&STREETS, draw))
    } else if has(&["birth", "dob"]) {
        date(draw)
    } else if has(&["card"]) {
        format!("4000{}", digits(12, draw))
    } else if has(&["ssn", "social"]) {
        format!("9{}-{}-{}", digits(2, draw), digits(2, draw), digits(4, draw))
    } else if has(&["id", "number", "code", "account", "order", "policy", "pin"]) {
        format!("{}{}", 1 + draw.index(9), digits(6, draw))
    } else if has(&["name"]) {
        names::draw(Seed(u64::from(draw.bits())), Default::default(), None)
    } else {
        format!("{} {}", one(&WORDS, draw), one(&WORDS, draw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_type_and_repeat_by_seed() {
        for kind in TraitType::ALL {
            for name in ["phone", "e-mail", "zip", "city", "address", "dob", "card", "ssn", "member_id", "name", "mood"]
            {
                let mut draw = Seed(3).stream(name);
                let made = invent(name, *kind, &mut draw);
                assert!(fits(*kind, &made), "{name} {kind:?}: {made}");
                assert_eq!(made, invent(name, *kind, &mut Seed(3).stream(name)));
            }
        }
    }

    #[test]
    fn facts_are_bound_once_for_a_caller() {
        let fact = |name: &str, kind, value: Value| Trait {
            trait_name: name.into(),
            trait_data_type: kind,
            value,
            is_sip_header: false,
        };
        let given = vec![
            fact("dob", TraitType::Date, json!(WHOLE)),
            fact("ssn", TraitType::String, json!(PART)),
            fact("age", TraitType::Number, json!(WHOLE)),
            fact("city", TraitType::String, json!("Graz")),
        ];
        let values = |seed| bind(given.clone(), Seed(seed)).into_iter().map(|fact| fact.value).collect::<Vec<_>>();
        let first = values(1);
        assert_eq!((&first, &first[3]), (&values(1), &json!("Graz")));
        assert_ne!(first, values(2));
        assert!(fits(TraitType::Date, &first[0]) && fits(TraitType::Number, &first[2]), "{first:?}");
        assert_eq!(first[1].as_str().map(str::len), Some(4), "{first:?}");
        assert!(is_invented(&given[0].value) && !is_invented(&given[3].value));
    }

    #[test]
    fn parts_are_parts() {
        for (name, kind, asked, expect, chars) in [
            ("dob", TraitType::Date, None, "year_only", 4),
            ("dob", TraitType::Date, Some("month_day"), "month_day", 5),
            ("ssn", TraitType::String, None, "last_4", 4),
            ("card", TraitType::String, Some("first_half"), "first_half", 8),
        ] {
            let (shown, how) = part(name, kind, asked, &mut Seed(1).stream("x"));
            assert_eq!((how.as_str(), shown.as_str().map(str::len)), (expect, Some(chars)), "{name}: {shown}");
        }
    }
}
