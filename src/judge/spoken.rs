//! Times of the Digital Human's words. Its synthesizer does not give them, but length, pauses and text of its speech
//! are known. Between two pauses, words take time in proportion to the letters of their spoken form.

use std::borrow::Cow;
use std::ops::Range;

use ringer_human::text::is_unspaced;
use ringer_model::transcript::Word;
use ringer_provider::spoken_form::spoken_form;

/// Letters that take as long to say as one digit.
const LETTERS_A_DIGIT: usize = 4;
/// Words before a word that its spoken form depends on.
const PIECES_BEFORE: usize = 4;
/// A pause is looked for this many letters farther away where a clause ends.
const CLAUSE_LETTERS: f64 = 8.0;

/// Words that were said without a pause between them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Run {
    /// Start and end in milliseconds.
    pub time: Range<i64>,
    /// Words as they stand in the text.
    pub text: String,
    /// Their times as estimated; those of is_unspaced scripts are letters.
    pub words: Vec<Word>,
}

/// A word and its place in the text.
struct Piece {
    place: Range<usize>,
    letters: usize,
    ends_clause: bool,
}

/// Returns `text` as it was said in `time`, parted where there were `pauses` (in order, within `time`). A pause for
/// which no place between words is left parts nothing.
pub(super) fn runs(language: &str, text: &str, time: Range<i64>, pauses: &[Range<i64>]) -> Vec<Run> {
    let mut pieces = pieces(text);
    weigh(&mut pieces, language, text);
    if pieces.is_empty() {
        return Vec::new();
    }
    let paused: i64 = pauses.iter().map(|pause| pause.end - pause.start).sum();
    let spoken = (time.end - time.start - paused).max(1);
    let letters: usize = pieces.iter().map(|piece| piece.letters).sum();
    let (mut runs, mut first, mut from, mut before) = (Vec::new(), 0, time.start, 0);
    for (n, pause) in pauses.iter().enumerate() {
        let said = (pause.start - time.start - before) as f64 / spoken as f64 * letters as f64;
        before += pause.end - pause.start;
        // Every pause that comes needs a word before it.
        let last = pieces.len().saturating_sub(pauses.len() - n);
        if let Some(next) = nearest(&pieces, said, first + 1..last + 1) {
            runs.push(run(text, &pieces[first..next], from..pause.start));
            (first, from) = (next, pause.end);
        }
    }
    runs.push(run(text, &pieces[first..], from..time.end));
    runs
}

/// Returns the border of words, one of `among`, that is nearest to `said` letters.
fn nearest(pieces: &[Piece], said: f64, among: Range<usize>) -> Option<usize> {
    let distance = |border: usize| {
        let letters: usize = pieces[..border].iter().map(|piece| piece.letters).sum();
        (letters as f64 - said).abs() + if pieces[border - 1].ends_clause { 0.0 } else { CLAUSE_LETTERS }
    };
    among.filter(|border| *border < pieces.len()).min_by(|one, other| distance(*one).total_cmp(&distance(*other)))
}

fn run(text: &str, pieces: &[Piece], time: Range<i64>) -> Run {
    let letters: usize = pieces.iter().map(|piece| piece.letters).sum();
    let at = |said: usize| time.start + (time.end - time.start) * said as i64 / letters as i64;
    let mut said = 0;
    let word = |piece: &Piece| {
        let start_offset_ms = at(said);
        said += piece.letters;
        let word = text[piece.place.clone()].to_owned();
        Word { word, start_offset_ms, end_offset_ms: at(said), confidence: None }
    };
    let place = pieces[0].place.start..pieces[pieces.len() - 1].place.end;
    Run { words: pieces.iter().map(word).collect(), text: text[place].to_owned(), time }
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut apart = true;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        let letters = letters_of(c);
        // An is_unspaced letter is a word, as is what follows it.
        let begins = apart || (letters > 0 && (is_unspaced(c) || text[..at].ends_with(is_unspaced)));
        match pieces.last_mut() {
            _ if c.is_whitespace() => {}
            Some(piece) if !begins || (letters == 0 && !apart) => {
                piece.place.end = end;
                piece.letters += letters;
                piece.ends_clause = letters == 0 && !matches!(c, '\'' | '-' | '’');
            }
            _ => pieces.push(Piece { place: at..end, letters, ends_clause: letters == 0 }),
        }
        apart = c.is_whitespace();
    }
    // A dash that stands alone takes no time.
    pieces.iter_mut().for_each(|piece| piece.letters = piece.letters.max(1));
    pieces
}

/// Returns the letters that take as long to say as `c`; 0 for a mark.
fn letters_of(c: char) -> usize {
    if c.is_numeric() { LETTERS_A_DIGIT } else { usize::from(c.is_alphanumeric()) }
}

/// Counts the letters of each word in the spoken form of the text, where that differs from what is written.
fn weigh(pieces: &mut [Piece], language: &str, text: &str) {
    if matches!(spoken_form(language, text), Cow::Borrowed(_)) {
        return;
    }
    let letters = |text: &str| spoken_form(language, text).chars().map(letters_of).sum::<usize>();
    for at in 0..pieces.len() {
        let first = pieces[at.saturating_sub(PIECES_BEFORE)].place.start;
        let end = pieces[at].place.end;
        let before = at.checked_sub(1).map_or(0, |last| letters(&text[first..pieces[last].place.end]));
        pieces[at].letters = letters(&text[first..end]).saturating_sub(before).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the words of what has no pauses.
    fn words_without_pauses(text: &str, time: Range<i64>) -> Vec<(String, i64, i64)> {
        let [run] = &runs("en", text, time.clone(), &[])[..] else { panic!("it is one run") };
        assert_eq!((run.text.as_str(), &run.time), (text, &time));
        run.words.iter().map(|word| (word.word.clone(), word.start_offset_ms, word.end_offset_ms)).collect()
    }

    #[test]
    fn words_take_time_by_their_letters() {
        let word = |word: &str, from, to| (word.to_owned(), from, to);
        assert_eq!(
            words_without_pauses("I am here.", 1000..1700),
            [word("I", 1000, 1100), word("am", 1100, 1300), word("here.", 1300, 1700)]
        );
        assert_eq!(
            words_without_pauses("我要2张票。", 0..800),
            [
                word("我", 0, 100),
                word("要", 100, 200),
                word("2", 200, 600),
                word("张", 600, 700),
                word("票。", 700, 800)
            ]
        );
        assert!(runs("en", " ", 0..100, &[]).is_empty());
    }

    #[test]
    fn written_words_take_the_time_of_their_spoken_form() {
        let spans = |text: &str, to| {
            let words = words_without_pauses(text, 0..to).into_iter();
            words.map(|(word, from, to)| format!("{word} {from}-{to}")).collect::<Vec<_>>()
        };
        // "it is 4 dollars and 50 cents", "5 kilometers off": a digit counts as four letters.
        assert_eq!(spans("it is $4.50", 3100), ["it 0-200", "is 200-400", "$4.50 400-3100"]);
        assert_eq!(spans("5 km off", 1700), ["5 0-400", "km 400-1400", "off 1400-1700"]);
        assert_eq!(spans("War in World War II", 1600).last().map(String::as_str), Some("II 1300-1600"));
    }

    #[test]
    fn a_pause_lies_at_the_end_of_a_clause_that_is_near() {
        let texts = |text: &str, time, pauses: &[(i64, i64)]| {
            let pauses: Vec<Range<i64>> = pauses.iter().map(|(from, to)| *from..*to).collect();
            runs("en", text, time, &pauses).into_iter().map(|run| (run.text, run.time)).collect::<Vec<_>>()
        };
        // 26 letters in 2600 ms; after 1400 ms of speech "morning," was not quite said.
        assert_eq!(
            texts("In the early morning, or at night", 0..4000, &[(1400, 2800)]),
            [("In the early morning,".into(), 0..1400), ("or at night".into(), 2800..4000)]
        );
        // Nothing ends near: between the words. After 12.8 of 32 letters the end of "three" is nearest.
        assert_eq!(
            texts("one two three four five six seven eight", 0..6000, &[(2000, 3000)]),
            [("one two three".into(), 0..2000), ("four five six seven eight".into(), 3000..6000)]
        );
        // More pauses than borders: the last part nothing.
        assert_eq!(texts("yes", 0..1000, &[(300, 700)]), [("yes".into(), 0..1000)]);
        let two = texts("um no", 0..2000, &[(300, 700), (1200, 1600)]);
        assert_eq!(two.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>(), ["um", "no"]);
    }
}
