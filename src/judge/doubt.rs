//! Words that the recognizer itself doubts. Words that are wanted and missing may have been said in their place.
//!
//! A word below [`SURE`] is more likely wrong than right. Names fall into pieces that are far below it: the name of a
//! restaurant came as "G.V.R.S. to run", with 0.17 to 0.32.

use ringer_media::call::{is_unspaced, phrase_words};

use super::transcript::word;
use crate::model::transcript::{TranscriptEntry, Word};

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
    pub fn of_entry(entry: &TranscriptEntry) -> Heard {
        let times = (entry.start_offset_ms, entry.end_offset_ms);
        Heard::new(&entry.utterance, entry.words.clone(), entry.confidence, times)
    }

    /// Returns the words of a turn of a timeline.
    pub fn of_turn(turn: &super::reading::Turn<'_>) -> Heard {
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

    /// Returns the doubtful words in whose place the phrase may have been said; `None` when it was not. The words of the
    /// phrase beside them must have been heard, and the time must be enough for those in their place.
    pub fn may_hold(&self, phrase: &str) -> Option<Doubt> {
        let wanted = phrase_words(phrase);
        let pieces = self.pieces();
        (0..pieces.len()).find_map(|first| {
            let mut used = Vec::new();
            covers(&pieces[first..], &wanted, true, &mut used).then(|| doubt_of(&used))?
        })
    }

    /// Returns the first doubtful words; `None` when all are sure.
    pub fn first(&self) -> Option<Doubt> {
        let doubtful = |piece: &Piece<'_>| match piece {
            Piece::Doubtful(words) => doubt_of(&[words]),
            Piece::Sure(_) => None,
        };
        self.pieces().iter().find_map(doubtful)
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

/// True if the wanted words may have been said from the first piece on, and not without the doubtful ones that are `used`.
/// `fresh`: nothing of them is placed yet.
fn covers<'w>(pieces: &[Piece<'w>], wanted: &[String], fresh: bool, used: &mut Vec<&'w [Word]>) -> bool {
    let Some((piece, rest)) = pieces.split_first() else { return false };
    match piece {
        Piece::Sure(word) => match wanted.split_first() {
            Some((first, left)) if first == word => {
                left.is_empty() && !used.is_empty() || covers(rest, left, false, used)
            }
            _ => false,
        },
        Piece::Doubtful(words) => {
            let most = (1..=wanted.len()).take_while(|count| has_time(words, &wanted[..*count])).last().unwrap_or(0);
            used.push(words);
            let least = usize::from(fresh);
            let found =
                (least..=most).rev().any(|count| count == wanted.len() || covers(rest, &wanted[count..], false, used));
            if !found {
                used.pop();
            }
            found
        }
    }
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
    let told = |word: &&Word| match word.confidence {
        Some(confidence) => format!("{} {confidence:.2}", word.word.trim()),
        None => word.word.trim().to_owned(),
    };
    let mut shown: Vec<String> = words.iter().take(SHOWN_WORDS).map(told).collect();
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
        assert_eq!((sure.may_hold("Giovanni's"), sure.first()), (None, None));
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
    fn words_without_a_confidence_have_that_of_their_text() {
        let of = |confidence| Heard::new("hello there", Vec::new(), confidence, (500, 1500));
        assert_eq!(of(Some(0.3)).may_hold("good day").map(|doubt| doubt.shown), Some("hello 0.30, there 0.30".into()));
        assert_eq!(of(Some(0.9)).may_hold("good day"), None);
        assert_eq!(of(None).may_hold("good day"), None);
    }
}
