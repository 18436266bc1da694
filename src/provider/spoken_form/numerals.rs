//! Roman numerals after a name, as they are said: "World War two", "Henry the eighth".

/// Largest value of a numeral. Larger ones are mostly other words: XL, CD, MIX.
const VALUE_MAX: usize = 39;
/// Words that are followed by their number, with a capital or without.
const NUMBERED: [&str; 20] = [
    "act", "article", "book", "chapter", "class", "grade", "level", "part", "phase", "section", "stage", "step",
    "tier", "title", "type", "unit", "version", "volume", "vol", "factor",
];
/// Names of rulers, whose number is an ordinal.
const RULERS: [&str; 22] = [
    "Alexander",
    "Benedict",
    "Catherine",
    "Charles",
    "Clement",
    "Edward",
    "Elizabeth",
    "Frederick",
    "George",
    "Gregory",
    "Henry",
    "James",
    "Ivan",
    "Leo",
    "Louis",
    "Napoleon",
    "Nicholas",
    "Paul",
    "Philip",
    "Pius",
    "Richard",
    "William",
];
/// Words that begin with a capital where a sentence begins, and are no names.
const NO_NAMES: [&str; 24] = [
    "The", "An", "And", "My", "His", "Her", "Our", "Your", "Their", "This", "That", "In", "On", "At", "Of", "To", "By",
    "For", "With", "Is", "If", "But", "Or", "No",
];
const CARDINALS: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const ORDINALS: [&str; 20] = [
    "zeroth",
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
];

/// Returns the word `token`, a Roman numeral with the marks after it, as it is said after the two `earlier` words.
/// `None` for other words.
pub(super) fn number(token: &str, earlier: [&str; 2]) -> Option<String> {
    let numeral = &token[..token.find(|c| !"IVX".contains(c)).unwrap_or(token.len())];
    let tail = &token[numeral.len()..];
    let is_whole = tail.chars().all(|c| ".,;:!?)\"”…*".contains(c)) || ["'s", "’s"].iter().any(|s| tail.starts_with(s));
    let value = value(numeral).filter(|_| is_whole)?;
    let name = earlier[1].trim_start_matches(|c: char| !c.is_alphanumeric());
    if name.chars().count() < 2 || !name.chars().all(char::is_alphabetic) {
        return None;
    }
    let (is_ruler, is_numbered) = (RULERS.contains(&name), NUMBERED.contains(&&*name.to_lowercase()));
    let is_name = name.starts_with(char::is_uppercase) && !NO_NAMES.contains(&name);
    let is_meant = match numeral {
        // Else the pronoun.
        "I" => name == "War" && earlier[0].ends_with("World"),
        "V" => is_ruler || is_numbered,
        "X" => is_numbered,
        _ => is_name || is_numbered,
    };
    let number = if is_ruler { format!("the {}", ordinal(value)) } else { cardinal(value) };
    is_meant.then(|| number + tail)
}

/// Returns the value of a numeral of the letters I, V and X that is written as is usual.
fn value(numeral: &str) -> Option<usize> {
    (1..=VALUE_MAX).find(|value| {
        let ones = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"][value % 10];
        numeral.strip_suffix(ones).is_some_and(|tens| tens == &"XXX"[..value / 10])
    })
}

fn cardinal(value: usize) -> String {
    match (value / 10, value % 10) {
        (0 | 1, _) => CARDINALS[value].to_owned(),
        (tens, 0) => ["twenty", "thirty"][tens - 2].to_owned(),
        (tens, ones) => format!("{}-{}", ["twenty", "thirty"][tens - 2], CARDINALS[ones]),
    }
}

fn ordinal(value: usize) -> String {
    match (value / 10, value % 10) {
        (0 | 1, _) => ORDINALS[value].to_owned(),
        (tens, 0) => ["twentieth", "thirtieth"][tens - 2].to_owned(),
        (tens, ones) => format!("{}-{}", ["twenty", "thirty"][tens - 2], ORDINALS[ones]),
    }
}

#[cfg(test)]
mod tests {
    use crate::spoken_form::spoken_form;

    #[test]
    fn a_roman_numeral_after_a_name_is_a_number() {
        let check = |text: &str, expect: &str| assert_eq!(spoken_form("en", text), expect, "{text}");
        check("World War II, or World War I?", "World War two, or World War one?");
        check("Chapter IV. Then chapter V", "Chapter four. Then chapter five");
        check("Henry VIII's wives", "Henry the eighth's wives");
        check("Louis XIV and (Rocky III)", "Louis the fourteenth and (Rocky three)");
        check("Henry V and type II", "Henry the fifth and type two");
        check("Super Bowl XXI and XXX", "Super Bowl twenty-one and XXX");
        for kept in [
            "Ann and I met.",
            "Yes I do. So Bob I say",
            "Plan C and Vitamin D",
            "Trail MIX and Washington DC",
            "The IV is in. II is two.",
            "Malcolm X, the letter V",
            "Ann. II",
            "Part IIII, Part IVa, Size XL",
        ] {
            check(kept, kept);
        }
    }
}
