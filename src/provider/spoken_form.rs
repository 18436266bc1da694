//! The spoken form of a written English text: money, units, Roman numerals and addresses as people say them. Only a
//! synthesizer is given it; transcripts and timelines keep what was written. Digits that synthesizers read rightly
//! stay.

mod numerals;

use std::borrow::Cow;
use std::sync::LazyLock;

use regex_lite::{Captures, Regex};
use ringer_media::sentence::{goes_on, is_street};

/// A number, with commas between its thousands or without: `1,200.50`.
const NUMBER: &str = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?";

/// Addresses of mail and of pages.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&[
        r"[A-Za-z0-9][A-Za-z0-9._%+-]*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+",
        r#"|(?:https?://|www\.)[^\s<>"]+"#,
        r"|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.(?:com|org|net|edu|gov|io|info|example|co\.uk)",
        r#"(?:/[^\s<>"]*)?"#,
    ])
});
/// A sign, a number or two, a scale, and `/` before what it is paid for.
static MONEY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&[
        r"([$€£]) ?(",
        NUMBER,
        r")(?:[-–][$€£]?(",
        NUMBER,
        r"))?(?:[ -](hundred|thousand|million|billion|trillion)\b|(k|K|m|M|bn|B)\b)?(/[A-Za-z])?",
    ])
});
/// A number, a unit and a full stop.
static QUANTITY: LazyLock<Regex> = LazyLock::new(|| {
    let units = "(km/h|kph|mph|MPH|km|KM|cm|mm|kg|Kg|KG|lbs|LBS|lb|oz|ft|mi|m|g|%|°C|°F|°|€|£)";
    pattern(&["(", NUMBER, ")([ \u{a0}\u{202f}-]?)", units, r"(\.?)"])
});

/// Names of the money of a sign: one, several, and the same for its hundredth.
const MONIES: [(&str, [&str; 4]); 3] = [
    ("$", ["dollar", "dollars", "cent", "cents"]),
    ("€", ["euro", "euros", "cent", "cents"]),
    ("£", ["pound", "pounds", "penny", "pence"]),
];
/// Units with their names: one, and several.
const UNITS: [(&str, &str, &str); 18] = [
    ("km/h", "kilometer per hour", "kilometers per hour"),
    ("kph", "kilometer per hour", "kilometers per hour"),
    ("mph", "mile per hour", "miles per hour"),
    ("km", "kilometer", "kilometers"),
    ("cm", "centimeter", "centimeters"),
    ("mm", "millimeter", "millimeters"),
    ("m", "meter", "meters"),
    ("kg", "kilogram", "kilograms"),
    ("g", "gram", "grams"),
    ("lb", "pound", "pounds"),
    ("lbs", "pound", "pounds"),
    ("oz", "ounce", "ounces"),
    ("ft", "foot", "feet"),
    ("mi", "mile", "miles"),
    ("%", "percent", "percent"),
    ("°c", "degree Celsius", "degrees Celsius"),
    ("°f", "degree Fahrenheit", "degrees Fahrenheit"),
    ("°", "degree", "degrees"),
];
/// Scales of money by their letters.
const SCALES: [(&str, &str); 6] =
    [("k", "thousand"), ("K", "thousand"), ("m", "million"), ("M", "million"), ("bn", "billion"), ("B", "billion")];
/// Signs of an address by their names.
const SIGNS: [(char, &str); 13] = [
    ('@', "at"),
    ('.', "dot"),
    ('/', "slash"),
    ('-', "dash"),
    ('_', "underscore"),
    ('+', "plus"),
    ('?', "question mark"),
    ('=', "equals"),
    ('&', "and"),
    ('#', "hash"),
    ('%', "percent"),
    (':', "colon"),
    ('~', "tilde"),
];

fn pattern(parts: &[&str]) -> Regex {
    Regex::new(&parts.concat()).expect("the patterns are valid")
}

/// Returns the text as it is said in this language: changed in English (`en`, `en-US`), as it is in all others.
pub fn spoken_form<'t>(language: &str, text: &'t str) -> Cow<'t, str> {
    if language.split(['-', '_', '+']).next() != Some("en") {
        return Cow::Borrowed(text);
    }
    let steps: [fn(&str) -> Option<String>; 4] = [
        |text| replace(text, &ADDRESS, address),
        |text| replace(text, &MONEY, money),
        |text| replace(text, &QUANTITY, quantity),
        words,
    ];
    let mut said = Cow::Borrowed(text);
    for step in steps {
        if let Some(changed) = step(&said) {
            said = Cow::Owned(changed);
        }
    }
    said
}

/// Place of a match: the texts before and after it.
struct Place<'t> {
    before: &'t str,
    rest: &'t str,
}

impl Place<'_> {
    /// True if the match is a part of a longer word or number.
    fn is_inside(&self) -> bool {
        let begins = |c: char| c.is_alphanumeric() || matches!(c, '$' | '€' | '£' | '_' | '#' | ':' | '@');
        let mut rest = self.rest.chars();
        let next = rest.next();
        let goes_on = next.is_some_and(|c| c.is_alphanumeric() || matches!(c, '@' | '/' | '_'));
        let is_number = matches!(next, Some('.' | ',')) && rest.next().is_some_and(char::is_numeric);
        let after_number = self.before.strip_suffix(['.', ',']).is_some_and(|text| text.ends_with(char::is_numeric));
        self.before.ends_with(begins) || goes_on || is_number || after_number
    }

    /// True after `a` and `an`, where one says "a 5 kilometer run".
    fn is_after_article(&self) -> bool {
        let word = self.before.split_whitespace().next_back().unwrap_or_default();
        self.before.ends_with(char::is_whitespace) && ["a", "an", "A", "An"].contains(&word)
    }
}

/// Returns the text with each match as `say` says it; `None` if none changes.
fn replace(text: &str, pattern: &Regex, say: fn(&Captures<'_>, &Place<'_>) -> Option<String>) -> Option<String> {
    let (mut out, mut kept) = (String::new(), 0);
    for found in pattern.captures_iter(text) {
        let range = found.get(0).expect("the whole match").range();
        let place = Place { before: &text[..range.start], rest: &text[range.end..] };
        if let Some(said) = say(&found, &place) {
            out += &text[kept..range.start];
            out += &said;
            kept = range.end;
        }
    }
    (kept > 0).then(|| out + &text[kept..])
}

fn address(found: &Captures<'_>, place: &Place<'_>) -> Option<String> {
    let whole = &found[0];
    let address = whole.trim_end_matches(|c: char| ".,;:!?)'\"]*".contains(c));
    let tail = &whole[address.len()..];
    if place.before.ends_with(|c: char| c.is_alphanumeric() || "@.-_/".contains(c)) {
        return None;
    }
    let is_cut = tail.is_empty() && place.rest.starts_with(|c: char| c.is_alphanumeric() || "@-_".contains(c));
    let mut next = place.rest.chars();
    let is_longer = tail.is_empty() && next.next() == Some('.') && next.next().is_some_and(char::is_alphanumeric);
    if is_cut || is_longer {
        return None;
    }
    let bare = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://")).unwrap_or(address);
    let mut said = String::new();
    for c in bare.trim_end_matches('/').chars() {
        match SIGNS.iter().find(|(sign, _)| *sign == c) {
            Some((_, name)) => {
                said.truncate(said.trim_end().len());
                said += &format!(" {name} ");
            }
            None => said.push(c),
        }
    }
    Some(said.trim().to_owned() + tail)
}

fn money(found: &Captures<'_>, place: &Place<'_>) -> Option<String> {
    let per = found.get(6).map_or("", |per| per.as_str());
    if (per.is_empty() && place.is_inside()) || place.before.ends_with(|c: char| c.is_alphanumeric()) {
        return None;
    }
    let (_, [one, several, cent, cents]) = MONIES.iter().find(|(sign, _)| *sign == &found[1])?;
    let scale = found.get(4).map(|scale| scale.as_str()).or_else(|| {
        let letters = found.get(5)?.as_str();
        SCALES.iter().find(|(short, _)| *short == letters).map(|(_, scale)| *scale)
    });
    let (amount, most) = (&found[2], found.get(3).map(|most| most.as_str()));
    let is_single = |amount: &str| place.is_after_article() || amount == "1";
    let mut said = match (amount.split_once('.'), most, scale) {
        (Some((whole, part)), None, None) if part.len() == 2 => {
            let part = part.trim_start_matches('0');
            let whole_said = format!("{whole} {}", if is_single(whole) { one } else { several });
            let part_said = format!("{part} {}", if is_single(part) { cent } else { cents });
            match (whole, part) {
                (_, "") => whole_said,
                ("0", _) => part_said,
                _ => format!("{whole_said} and {part_said}"),
            }
        }
        _ => {
            let is_single = place.is_after_article() || (amount == "1" && most.is_none() && scale.is_none());
            let most = most.map(|most| format!(" to {most}")).unwrap_or_default();
            let scale = scale.map(|scale| format!(" {scale}")).unwrap_or_default();
            format!("{amount}{most}{scale} {}", if is_single { one } else { several })
        }
    };
    if let Some(letter) = per.strip_prefix('/') {
        said += &format!(" per {letter}");
    }
    Some(said)
}

fn quantity(found: &Captures<'_>, place: &Place<'_>) -> Option<String> {
    let (amount, joint, unit, stop) = (&found[1], &found[2], &found[3], &found[4]);
    if place.is_inside() {
        return None;
    }
    let small = unit.to_lowercase();
    let named = UNITS.iter().find(|(short, ..)| *short == small).map(|(_, one, several)| (*one, *several));
    let money = || MONIES.iter().find(|(sign, _)| *sign == unit).map(|(_, [one, several, ..])| (*one, *several));
    let (one, several) = named.or_else(money)?;
    let is_single = amount == "1" || joint == "-" || place.is_after_article();
    let stays = stop == "." && goes_on(&small, place.rest) != Some(true);
    Some(format!("{amount} {}{}", if is_single { one } else { several }, if stays { "." } else { "" }))
}

/// Returns the text with the words that are said otherwise than written; `None` if there are none.
fn words(text: &str) -> Option<String> {
    let (mut out, mut kept) = (String::new(), 0);
    let mut earlier = ["", ""];
    for token in text.split_whitespace() {
        let start = token.as_ptr() as usize - text.as_ptr() as usize;
        if let Some(said) = numerals::number(token, earlier).or_else(|| abbreviation(text, start, token)) {
            out += &text[kept..start];
            out += &said;
            kept = start + token.len();
        }
        earlier = [earlier[1], token];
    }
    (kept > 0).then(|| out + &text[kept..])
}

/// Returns `St.` and `vs.` in full, with the marks after it. The full stop of a sentence's end stays.
fn abbreviation(text: &str, start: usize, token: &str) -> Option<String> {
    let (word, marks) = token.split_once('.')?;
    let before = &text[..start + word.len()];
    let full = match word {
        "St" if is_street(before) => "Street",
        "St" => "Saint",
        "vs" => "versus",
        _ => return None,
    };
    let rest = &text[start + word.len() + 1..];
    let ends = marks.is_empty() && goes_on(before, rest) != Some(true);
    marks.chars().all(|c| !c.is_alphanumeric()).then(|| format!("{full}{}{marks}", if ends { "." } else { "" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(spoken_form("en", text), expect, "{text}");
    }

    #[test]
    fn money_is_said_with_its_name_after_the_number() {
        check("It is $40.", "It is 40 dollars.");
        check("It is $4.50, is it?", "It is 4 dollars and 50 cents, is it?");
        check("€40 or £5", "40 euros or 5 pounds");
        check("£5.01 and $1.05 and $0.99", "5 pounds and 1 penny and 1 dollar and 5 cents and 99 cents");
        check("$1, $1.00, $4.00, $1.5", "1 dollar, 1 dollar, 4 dollars, 1.5 dollars");
        check("$1.2 million, $3bn, $5k", "1.2 million dollars, 3 billion dollars, 5 thousand dollars");
        check("$1,200.50 (or $12,000)", "1,200 dollars and 50 cents (or 12,000 dollars)");
        check("a $40 fee of $40-50 or $40–$50", "a 40 dollar fee of 40 to 50 dollars or 40 to 50 dollars");
        check("$40/month, 40 € or 40%.", "40 dollars per month, 40 euros or 40 percent.");
        check("A$AP, US$40, $x, $1.2.3, $", "A$AP, US$40, $x, $1.2.3, $");
    }

    #[test]
    fn units_after_a_number_are_said_in_full() {
        check("It is 5 km away.", "It is 5 kilometers away.");
        check("5km, 1 km, 1.5 km", "5 kilometers, 1 kilometer, 1.5 kilometers");
        check("3 m, 4 cm, 5 mm, 6 mi", "3 meters, 4 centimeters, 5 millimeters, 6 miles");
        check("6 ft, 2 kg, 3 g, 4 lb", "6 feet, 2 kilograms, 3 grams, 4 pounds");
        check("4 lbs, 8 oz, 20 %, 20%", "4 pounds, 8 ounces, 20 percent, 20 percent");
        check("30 mph or 50 km/h.", "30 miles per hour or 50 kilometers per hour.");
        check("20 °C, 1 °C, 68°F.", "20 degrees Celsius, 1 degree Celsius, 68 degrees Fahrenheit.");
        check("a 5 km run, a 10-kg bag", "a 5 kilometer run, a 10 kilogram bag");
        check("a 5 lb. bag. It has 5 lb. We", "a 5 pound bag. It has 5 pounds. We");
        check("It is 5 m. We go 5-10 km.", "It is 5 meters. We go 5-10 kilometers.");
        let kept = "Call 5 men at 5 a.m. on 5G, A4 m, 3 m/s, 5 m², 10:30 m, 1.2.3 m, km, 5 in, 10 mgr.";
        check(kept, kept);
    }

    #[test]
    fn addresses_are_said_with_their_signs() {
        check("Mail a@b.example.", "Mail a at b dot example.");
        check(
            "ann.lee_4-x+y@mail.example.com, ok?",
            "ann dot lee underscore 4 dash x plus y at mail dot example dot com, ok?",
        );
        check("See www.example.com/a.", "See www dot example dot com slash a.");
        check(
            "(https://www.example.com/a-b/?c=d)",
            "(www dot example dot com slash a dash b slash question mark c equals d)",
        );
        check(
            "Go to example.com now, or shop.example.co.uk!",
            "Go to example dot com now, or shop dot example dot co dot uk!",
        );
        let kept = "I came.Then 4.50 @ noon, e.g. at 8 p.m. @ann, x.y, a.comb";
        check(kept, kept);
    }

    #[test]
    fn streets_and_saints_are_told_apart() {
        check("I live at 12 Main St. in Boston.", "I live at 12 Main Street in Boston.");
        check("I live at 12 Main St. Call me.", "I live at 12 Main Street. Call me.");
        check("It is on 5th St., near St. Mary.", "It is on 5th Street, near Saint Mary.");
        check("Red vs. Blue", "Red versus Blue");
        check("on Main St.", "on Main Street.");
    }

    #[test]
    fn other_texts_and_other_languages_stay() {
        for text in ["", "Hello, Dr. Lee.", "My number is 555-0104, at 8:30 p.m.", "你好 5", "  two  blanks "] {
            assert!(matches!(spoken_form("en-US", text), Cow::Borrowed(same) if same == text), "{text}");
        }
        let text = "5 km, $40, Karl II, a@b.example";
        for language in ["de", "es-MX", "", "ende"] {
            assert_eq!(spoken_form(language, text), text, "{language}");
        }
        assert_ne!(spoken_form("en-gb+f3", text), text);
    }
}
