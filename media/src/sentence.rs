//! Full stops: the end of a sentence, or a part of an abbreviation or of a number. One rule for texts to be spoken and
//! for words that were heard. It stands here because the human's words and the measures both see this library;
//! `speech`, which sees no other package, is given the rule by its caller.

/// Abbreviations that never end a sentence: a name or an explanation follows.
const OPEN: [&str; 25] = [
    "Dr", "Dra", "Mr", "Mrs", "Ms", "Mx", "Mme", "Mlle", "Prof", "Rev", "Gen", "Col", "Capt", "Lt", "Sgt", "Gov",
    "Sra", "Srta", "Mt", "vs", "vgl", "bzw", "núm", "nº", "ca",
];
/// The same with full stops inside.
const OPEN_DOTTED: [&str; 7] = ["e.g", "i.e", "z.b", "d.h", "u.a", "p.ej", "p.o"];
/// Abbreviations inside a sentence; when one ends it, the next word begins with a capital.
const SHORT: [&str; 26] = [
    "Inc", "Ltd", "Corp", "Co", "Ave", "Rd", "Blvd", "Ln", "Jr", "etc", "usw", "approx", "Approx", "dept", "Dept",
    "ste", "Ste", "incl", "min", "max", "evtl", "inkl", "lb", "lbs", "oz", "ft",
];
/// Abbreviations that a number follows.
const NUMBERED: [&str; 24] = [
    "No", "no", "Nos", "Nr", "nr", "Ext", "ext", "Tel", "tel", "Apt", "apt", "Rm", "Jan", "Feb", "Mar", "Apr", "Jun",
    "Jul", "Aug", "Sep", "Sept", "Oct", "Nov", "Dec",
];
/// Months after a day that is written with a full stop.
const MONTHS: [&str; 13] = [
    "Januar",
    "Jänner",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
];

/// True if a sentence goes on after the full stop between `before` and `rest`; `None`: the text after it decides, and
/// too little of it is there. `before` begins with a sentence, or in one; `rest` may begin with blanks.
pub fn goes_on(before: &str, rest: &str) -> Option<bool> {
    let token = last_token(before);
    let word = token.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let rest = rest.trim_start();
    let next = rest.chars().find(|c| c.is_alphanumeric() || *c == '#');
    let is_numbered = |c: char| c.is_numeric() || c == '#';
    let is_inside = |c: char| c.is_lowercase() || is_numbered(c);
    let dotted = with_stops(before, token);
    if OPEN_DOTTED.contains(&&*dotted.to_lowercase()) {
        return Some(true);
    }
    // p.m., U.S.
    let is_dotted = dotted.contains('.') && dotted.split('.').all(|part| part.len() == 1 && part != "I");
    if is_dotted || SHORT.contains(&word) || dotted == "Ph.D" {
        return next.map(is_inside);
    }
    if NUMBERED.contains(&word) {
        return next.map(is_numbered);
    }
    match word {
        "St" if is_street(before) => return next.map(is_inside),
        "Sr" if is_after_name(before) => return next.map(is_inside),
        "St" | "Sr" => return Some(true),
        _ => {}
    }
    let is_short_number =
        !word.is_empty() && word == token && word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit());
    if is_short_number && before.trim_end() != token {
        return goes_on_after_day(rest);
    }
    let mut letters = word.chars();
    match (letters.next(), letters.next()) {
        // An initial, as in `J. Smith`.
        (Some(letter), None) if letter.is_uppercase() => Some(word != "I"),
        (Some(letter), None) if letter.is_lowercase() && word == token => is_letter_with_stop(rest),
        _ => Some(OPEN.contains(&word)),
    }
}

/// True if `St` at the end of `before` is a street and not a saint: after a name or a number, as in `12 Main St.`.
pub fn is_street(before: &str) -> bool {
    is_after_name(before)
}

/// True if the last word of `before` follows a word with a capital, or a number, that does not begin the sentence.
fn is_after_name(before: &str) -> bool {
    let mut tokens = before.rsplit(char::is_whitespace).filter(|token| !token.is_empty()).skip(1);
    let (Some(name), Some(earlier)) = (tokens.next(), tokens.next()) else { return false };
    let begins = name.chars().find(|c| c.is_alphanumeric());
    let earlier = earlier.trim_end_matches(is_closing);
    let ends_sentence = match earlier.strip_suffix('.') {
        Some(word) => !OPEN.contains(&word),
        None => earlier.ends_with(is_end_mark),
    };
    begins.is_some_and(|c| c.is_uppercase() || c.is_numeric()) && !ends_sentence
}

/// True for a mark other than a full stop that ends a sentence.
pub(crate) fn is_end_mark(c: char) -> bool {
    matches!(c, '?' | '!' | '\u{2026}' | '\u{3002}' | '\u{ff1f}' | '\u{ff01}' | '\u{0964}' | '\u{061f}')
}

/// True for a mark that closes a quotation or brackets.
pub(crate) fn is_closing(c: char) -> bool {
    matches!(c, '"' | '\'' | ')' | '\u{201d}' | '\u{2019}')
}

fn last_token(text: &str) -> &str {
    text.rsplit(char::is_whitespace).next().unwrap_or_default()
}

/// Returns the token without marks before it, joined with the small letter before it in `z. B.` and `p. m.`.
fn with_stops(before: &str, token: &str) -> String {
    let own = token.trim_start_matches(|c: char| !c.is_alphanumeric());
    let earlier = before[..before.len() - token.len()].trim_end();
    let first = last_token(earlier).trim_start_matches(|c: char| !c.is_alphanumeric());
    let is_small = first.len() == 2 && first.ends_with('.') && first.starts_with(char::is_lowercase);
    if is_small && own.chars().count() == 1 { format!("{first}{own}") } else { own.to_owned() }
}

/// True if `rest` begins with a month, as after `3.`; `None` while its first word may go on.
fn goes_on_after_day(rest: &str) -> Option<bool> {
    let following = rest.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    match rest.chars().next() {
        None => None,
        Some(c) if c.is_alphabetic() && following.len() == rest.len() => None,
        Some(_) => Some(MONTHS.contains(&following)),
    }
}

/// True if `rest` begins with one letter and a full stop, as after `z.`; `None` while that may come.
fn is_letter_with_stop(rest: &str) -> Option<bool> {
    let mut letters = rest.chars();
    match (letters.next(), letters.next()) {
        (None, _) => None,
        (Some(letter), None) if letter.is_alphabetic() => None,
        (Some(letter), second) => Some(letter.is_alphabetic() && second == Some('.')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_stop_ends_a_sentence_or_belongs_to_its_word() {
        // `|` stands for a full stop in question.
        let check = |text: &str, expect: Option<bool>| {
            let (before, rest) = text.split_once('|').expect("a full stop");
            assert_eq!(goes_on(before, rest), expect, "{text}");
        };
        for open in ["I saw Dr| Patel", "Mr| ", "Prof|", "with me, e.g| Ann", "I.e| Bob", "also z.B| Anna", "d.h| Wir"]
        {
            check(open, Some(true));
        }
        for open in
            ["red vs| Blue", "near St| Mary", "Ask St| Mary", "St| Mary", "J| Smith", "z| B. Anna", "z. B| Anna"]
        {
            check(open, Some(true));
        }
        for short in
            ["8 p.m| tomorrow", "8 p. m| mañana", "Acme Inc| is", "Acme Ltd| 5", "12 Main St| in", "Oak Ave| 7"]
        {
            check(short, Some(true));
        }
        for end in
            ["8 p.m| We", "8 a.m| (We", "8 p. m| Yo", "Acme Inc| We", "Acme Corp| I", "Acme Co| I", "12 Main St| We"]
        {
            check(end, Some(false));
        }
        for end in
            ["on 5th St| We", "Oak Ave| We", "Oak Rd| We", "Oak Blvd| We", "Ann Lee Jr| We", "and so on, etc| We"]
        {
            check(end, Some(false));
        }
        for unsure in ["8 p.m|", "Acme Inc| ", "12 Main St|", "Apt|", "No|", "No| \"", "Am 3| Ma", "z|", "z| B"] {
            check(unsure, None);
        }
        for number in ["Apt| 5", "ext| 12", "No| #12", "No| (5)", "on Jan| 5", "Am 3| Mai ", "about 5 lb| of"] {
            check(number, Some(true));
        }
        for end in
            ["No| That", "ext| We", "Apt| of", "I am in May| 5", "I have 3| My ", "It was I| We", "a cat| We", "42| We"]
        {
            check(end, Some(false));
        }
    }

    #[test]
    fn a_street_follows_a_name_that_does_not_begin_the_sentence() {
        let check = |before: &str, expect| assert_eq!(is_street(before), expect, "{before}");
        check("12 Main St", true);
        check("It is on 42nd St", true);
        check("In Boston, Elm St", true);
        check("Main St", false);
        check("I like it. Ask St", false);
        check("the hospital of St", false);
        check("St", false);
        check("", false);
    }
}
