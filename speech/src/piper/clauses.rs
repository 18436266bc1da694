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

/// Returns the clauses of a text, in order.
pub fn clauses(text: &str) -> Vec<Clause> {
    let all = pieces(text);
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

/// Splits the text at all its marks. A mark within a number or a word does not count.
fn pieces(text: &str) -> Vec<Clause> {
    let mut out = Vec::new();
    let mut words = String::new();
    let mut letters = text.chars().peekable();
    let mut close = |words: &mut String, mark: Option<char>| {
        let said = std::mem::take(words).trim().to_owned();
        if said.chars().any(char::is_alphanumeric) {
            out.push(Clause { words: said, mark });
        }
    };
    while let Some(letter) = letters.next() {
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
        let at_end = letters.peek().is_none_or(|next| next.is_whitespace() || ".,;:!?\"')".contains(*next));
        match wide || at_end {
            true => close(&mut words, Some(mark)),
            false => words.push(letter),
        }
    }
    close(&mut words, None);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_said_in_clauses() {
        let check = |text: &str, expect: &[(&str, Option<char>)]| {
            let found = clauses(text);
            let found: Vec<(&str, Option<char>)> = found.iter().map(|clause| (&*clause.words, clause.mark)).collect();
            assert_eq!(found, expect, "{text}");
        };
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
        assert!(clauses(&"word ".repeat(400)).iter().all(|clause| clause.words.len() <= CHARS_MAX + 10));
    }
}
