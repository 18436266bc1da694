//! Division of a text into clauses, each of which is spoken by itself: the first one short, so that it can be heard
//! soon.

/// Least number of words before a comma that parts clauses: for the first clause, and for later ones.
const WORDS: (usize, usize) = (2, 8);
/// Largest number of words of a text that is not parted at commas.
const SHORT: usize = 10;
/// Longest clause in characters: a longer one is parted between words.
const CHARS_MAX: usize = 300;

/// Words with the punctuation mark after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Words, which may have commas between them.
    pub words: String,
    /// One of `.,;:!?`; `None` where the text ends without one.
    pub mark: Option<char>,
}

/// Rule on full stops: true if a sentence goes on after the one between the two texts.
pub type GoesOn = fn(&str, &str) -> bool;

/// Returns the clauses of a text, in order. A full stop after which `goes_on` is true stays in the words.
pub fn clauses(text: &str, goes_on: GoesOn) -> Vec<Clause> {
    let all = pieces(text, goes_on);
    let total: usize = all.iter().map(count).sum();
    let mut out: Vec<Clause> = Vec::new();
    let mut open: Option<Clause> = None;
    for piece in all {
        let joined = match open.take() {
            Some(Clause { words, mark }) => {
                let mark = mark.map(String::from).unwrap_or_default();
                Clause { words: format!("{words}{mark} {}", piece.words), mark: piece.mark }
            }
            None => piece,
        };
        let enough = if out.is_empty() { WORDS.0 } else { WORDS.1 };
        let ends = joined.mark.is_some_and(|mark| ".!?".contains(mark));
        let parts = ends || (total > SHORT && count(&joined) >= enough) || joined.words.len() > CHARS_MAX / 2;
        if parts { out.push(joined) } else { open = Some(joined) }
    }
    out.extend(open);
    out
}

fn count(clause: &Clause) -> usize {
    clause.words.split_whitespace().count()
}

/// Splits the text at all its marks. A mark within a number, a word or an abbreviation does not count.
fn pieces(text: &str, goes_on: GoesOn) -> Vec<Clause> {
    let mut out = Vec::new();
    let mut words = String::new();
    let mut letters = text.char_indices().peekable();
    let mut close = |words: &mut String, mark: Option<char>| {
        let said = std::mem::take(words).trim().to_owned();
        if said.chars().any(char::is_alphanumeric) {
            out.push(Clause { words: said, mark });
        }
    };
    while let Some((at, letter)) = letters.next() {
        let (mark, wide) = match letter {
            '.' | ',' | ';' | ':' | '!' | '?' => (letter, false),
            '。' | '．' => ('.', true),
            '，' | '、' | '،' => (',', true),
            '；' => (';', true),
            '：' => (':', true),
            '！' => ('!', true),
            '？' | '؟' => ('?', true),
            _ => {
                words.push(letter);
                if words.chars().count() > CHARS_MAX && letter.is_whitespace() {
                    close(&mut words, None);
                }
                continue;
            }
        };
        let next = letters.peek().map(|(_, next)| *next);
        let at_end = next.is_none_or(|next| next.is_whitespace() || ".,;:!?\"')".contains(next));
        // In `e.g.,` the other mark parts.
        let belongs = || next.is_some_and(|next| ",;:!?".contains(next)) || goes_on(&text[..at], &text[at + 1..]);
        match wide || at_end && !(letter == '.' && belongs()) {
            true => close(&mut words, Some(mark)),
            false => words.push(letter),
        }
    }
    close(&mut words, None);
    out
}

#[cfg(test)]
mod tests {
    use ringer_media::sentence;

    use super::*;

    fn parts(text: &str) -> Vec<Clause> {
        clauses(text, |before, rest| sentence::goes_on(before, rest) == Some(true))
    }

    fn check(text: &str, expect: &[(&str, Option<char>)]) {
        let found = parts(text);
        let found: Vec<(&str, Option<char>)> = found.iter().map(|clause| (&*clause.words, clause.mark)).collect();
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn a_text_is_said_in_clauses() {
        check("Hello, I am here.", &[("Hello, I am here", Some('.'))]);
        check(
            "Good morning, I would like to book a visit next week, and a second one in March, please. Is that so?",
            &[
                ("Good morning", Some(',')),
                ("I would like to book a visit next week", Some(',')),
                ("and a second one in March, please", Some('.')),
                ("Is that so", Some('?')),
            ],
        );
        check("It costs 3.50 at 12:30", &[("It costs 3.50 at 12:30", None)]);
        check("...", &[]);
        check("你好，请问？", &[("你好, 请问", Some('?'))]);
        assert!(parts(&"word ".repeat(400)).iter().all(|clause| clause.words.len() <= CHARS_MAX + 10));
    }

    #[test]
    fn an_abbreviation_is_said_with_what_follows() {
        check("I see Dr. Patel at 8 p.m. tomorrow.", &[("I see Dr. Patel at 8 p.m. tomorrow", Some('.'))]);
        check("Send it to 12 Main St. Thanks.", &[("Send it to 12 Main St", Some('.')), ("Thanks", Some('.'))]);
        check("I like fruit, e.g. Apples.", &[("I like fruit, e.g. Apples", Some('.'))]);
        check(
            "Is it at 8 p.m.? Or at 9 p.m., please?",
            &[("Is it at 8 p.m.", Some('?')), ("Or at 9 p.m., please", Some('?'))],
        );
        check("It is at 8 p.m.", &[("It is at 8 p.m", Some('.'))]);
        check("So... yes.", &[("So", Some('.')), ("yes", Some('.'))]);
    }
}
