//! Words that the recognizer itself doubts. Words that are wanted and missing may have been said in their place.
//!
//! A word below [`SURE`] is more likely wrong than right. Names fall into pieces that are far below it: the name of a
//! restaurant came as "G.V.R.S. to run", with 0.17 to 0.32.

use ringer_media::call::{is_unspaced, phrase_words};
use ringer_model::transcript::{TranscriptEntry, Word};

use super::transcript::word;

/// Confidence from which a word is taken for what was said.
const SURE: f64 = 0.5;
/// Shortest time that a letter takes in speech, in milliseconds: twice as fast as 250 words a minute.
const LETTER_MS: i64 = 24;
/// Doubtful words that a reason shows.
const SHOWN_WORDS: usize = 8;

/// Words of a turn, in order, with what the recognizer says of them.
pub(super) struct Heard {
    words: Vec<Word>,
}

/// Words in doubt that follow each other.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Doubt {
    /// The words with their confidences, for display.
    pub shown: String,
    /// Start of the first word, in milliseconds from connect.
    pub at_ms: i64,
}

/// Sure words of a turn one by one, and the doubtful ones between them together.
enum Piece<'w> {
    Sure(String),
    Doubtful(&'w [Word]),
}

impl Heard {
    /// Returns the words of a part of a transcript.
    pub(crate) fn of_entry(entry: &TranscriptEntry) -> Heard {
        let times = (entry.start_offset_ms, entry.end_offset_ms);
        Heard::new(&entry.utterance, entry.words.clone(), entry.confidence, times)
    }

    /// Returns the words of a turn of a timeline.
    pub(crate) fn of_turn(turn: &super::reading::AgentTurn<'_>) -> Heard {
        let whole = super::reading::whole_ms;
        let words = turn.words.iter().map(word).collect();
        Heard::new(turn.text, words, turn.confidence.map(f64::from), (whole(turn.from), whole(turn.end)))
    }

    /// Words without a confidence of their own have that of the whole text.
    fn new(text: &str, mut words: Vec<Word>, whole: Option<f64>, (from_ms, to_ms): (i64, i64)) -> Heard {
        if words.is_empty() && whole.is_some() {
            let of = |word: &str| Word {
                word: word.to_owned(),
                start_offset_ms: from_ms,
                end_offset_ms: to_ms,
                confidence: whole,
            };
            words = text.split_whitespace().map(of).collect();
        }
        words.iter_mut().for_each(|word| word.confidence = word.confidence.or(whole));
        Heard { words }
    }

    /// Returns the doubtful words in whose place the phrase may have been said; `None` when it was not. The words of
    /// the phrase beside them must have been heard, and the time must be enough for those in their place.
    pub(crate) fn may_hold(&self, phrase: &str) -> Option<Doubt> {
        let pieces = self.pieces();
        (0..pieces.len()).find_map(|first| find(&pieces[first..], phrase, false))
    }

    /// Returns the same of a turn that may be the phrase and nothing else.
    pub(crate) fn may_be(&self, phrase: &str) -> Option<Doubt> {
        find(&self.pieces(), phrase, true)
    }

    /// Returns the same of a regular expression. Alternatives of plain words are looked for one by one; of another
    /// expression nothing is known, so that a turn whose words are for the most part doubtful may hold it.
    pub(crate) fn may_match(&self, expression: &str) -> Option<Doubt> {
        let is_plain = |text: &str| text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '\'' | '-'));
        if expression.split('|').all(is_plain) {
            return expression.split('|').find_map(|phrase| self.may_hold(phrase));
        }
        let pieces = self.pieces();
        let doubtful: Vec<&[Word]> = pieces.iter().filter_map(Piece::doubtful).collect();
        let count: usize = doubtful.iter().map(|words| words.len()).sum();
        if 2 * count > self.words.len() { doubt_of(&doubtful) } else { None }
    }

    fn pieces(&self) -> Vec<Piece<'_>> {
        let is_doubtful = |at: usize| self.words.get(at).is_some_and(|word| word.confidence.is_some_and(|c| c < SURE));
        // One sure word between two doubtful ones is a part of what was not understood.
        let in_doubt = |at: usize| is_doubtful(at) || (at > 0 && is_doubtful(at - 1) && is_doubtful(at + 1));
        let places: Vec<(bool, usize)> = (0..self.words.len()).map(|at| (in_doubt(at), at)).collect();
        let mut pieces = Vec::new();
        for run in places.chunk_by(|one, next| one.0 == next.0) {
            let words = &self.words[run[0].1..=run[run.len() - 1].1];
            match run[0].0 {
                true => pieces.push(Piece::Doubtful(words)),
                false => pieces.extend(words.iter().flat_map(|word| phrase_words(&word.word)).map(Piece::Sure)),
            }
        }
        pieces
    }
}

impl<'w> Piece<'w> {
    fn doubtful(&self) -> Option<&'w [Word]> {
        match self {
            Piece::Doubtful(words) => Some(words),
            Piece::Sure(_) => None,
        }
    }
}

/// Returns the doubtful words in whose place the phrase may have been said, from the first piece on; `is_whole`: up to
/// the last one.
fn find(pieces: &[Piece<'_>], phrase: &str, is_whole: bool) -> Option<Doubt> {
    let mut used = Vec::new();
    let wanted = phrase_words(phrase);
    match covers(pieces, &wanted, Coverage { is_fresh: true, is_whole }, &mut used) {
        true => doubt_of(&used),
        false => None,
    }
}

/// Extent to which words are covered: nothing of them is placed yet, and all pieces are to be used.
#[derive(Copy, Clone)]
struct Coverage {
    is_fresh: bool,
    is_whole: bool,
}

/// True if the wanted words may have been said from the first piece on, and not without the doubtful ones that are
/// `used`.
fn covers<'w>(pieces: &[Piece<'w>], wanted: &[String], extent: Coverage, used: &mut Vec<&'w [Word]>) -> bool {
    let Some((piece, rest)) = pieces.split_first() else { return false };
    let ends_here = !extent.is_whole || rest.is_empty();
    let later = Coverage { is_fresh: false, ..extent };
    match piece {
        Piece::Sure(word) => match wanted.split_first() {
            Some((first, left)) if first == word => {
                left.is_empty() && !used.is_empty() && ends_here || covers(rest, left, later, used)
            }
            _ => false,
        },
        Piece::Doubtful(words) => {
            used.push(words);
            // None of the wanted words may be in their place, too, once others are placed.
            let counts = (usize::from(extent.is_fresh)..=wanted.len()).rev();
            let found = counts
                .filter(|count| *count == 0 || fits(words, &wanted[..*count]))
                .any(|count| count == wanted.len() && ends_here || covers(rest, &wanted[count..], later, used));
            if !found {
                used.pop();
            }
            found
        }
    }
}

/// True if others may have been said in the place of the words: there is time for them, and they have letters in
/// common.
fn fits(words: &[Word], others: &[String]) -> bool {
    has_time(words, others) && is_alike(words, others)
}

/// Part of the letters of wanted words that doubtful ones have: another word has some of them by chance.
const ALIKE: f64 = 0.25;

/// True if words share letters with others. Digits and letters of scripts without blanks are written in too many ways
/// to tell.
fn is_alike(words: &[Word], others: &[String]) -> bool {
    use std::collections::BTreeSet;
    let letters = |text: &str| text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect::<BTreeSet<char>>();
    let heard: BTreeSet<char> = words.iter().flat_map(|word| letters(&word.word)).collect();
    let wanted: BTreeSet<char> = others.iter().flat_map(|word| letters(word)).collect();
    let is_open = |c: &char| c.is_numeric() || is_unspaced(*c);
    wanted.iter().chain(&heard).any(is_open)
        || wanted.intersection(&heard).count() as f64 >= ALIKE * wanted.len() as f64
}

/// True if the time of the words is enough for others; it is when no times are known.
fn has_time(words: &[Word], others: &[String]) -> bool {
    let from = words.iter().map(|word| word.start_offset_ms).min().unwrap_or(0);
    let to = words.iter().map(|word| word.end_offset_ms).max().unwrap_or(0);
    // A digit, and a letter of a script without blanks, is spoken as a syllable or more.
    let length = |c: char| if c.is_numeric() || is_unspaced(c) { 3 } else { 1 };
    let letters: i64 = others.iter().flat_map(|word| word.chars()).map(length).sum();
    to <= from || to - from >= letters * LETTER_MS
}

fn doubt_of(runs: &[&[Word]]) -> Option<Doubt> {
    let words: Vec<&Word> = runs.iter().copied().flatten().collect();
    let describe = |word: &&Word| match word.confidence {
        Some(confidence) => format!("{} {confidence:.2}", word.word.trim()),
        None => word.word.trim().to_owned(),
    };
    let mut shown: Vec<String> = words.iter().take(SHOWN_WORDS).map(describe).collect();
    if words.len() > SHOWN_WORDS {
        shown.push("...".to_owned());
    }
    Some(Doubt { shown: shown.join(", "), at_ms: words.first()?.start_offset_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words in hundredths of confidence, each of 300 ms.
    fn turn(words: &[(&str, i64)]) -> Heard {
        let word = |(at, (word, hundredths)): (i64, &(&str, i64))| Word {
            word: (*word).to_owned(),
            start_offset_ms: at * 300,
            end_offset_ms: at * 300 + 300,
            confidence: (*hundredths >= 0).then_some(*hundredths as f64 / 100.0),
        };
        Heard { words: (0..).zip(words).map(word).collect() }
    }

    #[test]
    fn a_phrase_may_be_where_words_are_doubtful() {
        let name = turn(&[("Welcome", 95), ("to", 97), ("G.V.R.S.", 17), ("to", 80), ("run", 32), ("today", 90)]);
        let pieces = Some("G.V.R.S. 0.17, to 0.80, run 0.32");
        for (phrase, expect) in [
            ("Giovanni's", pieces),
            ("welcome to Giovanni's", pieces),
            ("to Giovanni's restaurant today", pieces),
            // The words beside it are others, or there is not enough time.
            ("goodbye from Giovanni's", pieces),
            ("goodbye and thank you very much for calling Giovanni's", None),
            ("good morning and thank you for your patience, dear customer", None),
            ("", None),
        ] {
            assert_eq!(name.may_hold(phrase).as_ref().map(|doubt| doubt.shown.as_str()), expect, "{phrase}");
        }
        assert_eq!(name.may_hold("Giovanni's").map(|doubt| doubt.at_ms), Some(600));
        let sure = turn(&[("Welcome", 95), ("to", 97), ("Luigi's", 80)]);
        assert_eq!((sure.may_hold("Giovanni's"), sure.may_match("Gio.*")), (None, None));
        // Nothing is said of the words by a recognizer without confidences.
        assert_eq!(turn(&[("Welcome", -1)]).may_hold("hello"), None);
        let two = turn(&[("press", 95), ("won", 20), ("for", 90), ("sails", 90), ("or", 95), ("tube", 30)]);
        assert_eq!(
            two.may_hold("press one for sails or two").map(|doubt| doubt.shown),
            Some("won 0.20, tube 0.30".into())
        );
        assert_eq!(two.may_hold("press one for bills or two"), None);
    }

    #[test]
    fn a_doubtful_word_excuses_only_what_is_like_it() {
        let booked = turn(&[("um", 20), ("your", 90), ("visit", 90), ("is", 95), ("cancelled", 95)]);
        assert_eq!(
            (booked.may_hold("booked"), booked.may_match("booked|appointment is"), booked.may_match("b.*d")),
            (None, None, None)
        );
        let bye = turn(&[("well", 30), ("I", 90), ("cannot", 90), ("tell", 95)]);
        assert_eq!(bye.may_be("well then"), None);
        assert!(bye.may_hold("well").is_some());
        assert!(turn(&[("good", 30), ("bite", 20)]).may_be("Goodbye").is_some());
        assert!(turn(&[("good", 30), ("bite", 20)]).may_match("good.?bye").is_some());
        assert!(turn(&[("looked", 30), ("today", 90)]).may_match("booked|reserved").is_some());
    }

    #[test]
    fn words_without_a_confidence_have_that_of_their_text() {
        let of = |confidence| Heard::new("hello there", Vec::new(), confidence, (500, 1500));
        assert_eq!(
            of(Some(0.3)).may_hold("yellow bear").map(|doubt| doubt.shown),
            Some("hello 0.30, there 0.30".into())
        );
        assert_eq!(of(Some(0.9)).may_hold("good day"), None);
        assert_eq!(of(None).may_hold("good day"), None);
    }
}
