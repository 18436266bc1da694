//! Counts of turns in which an agent says what was said before, or speaks another language than its caller. Words alone
//! decide.

use ringer_human::language::of_text;
use ringer_human::text::is_unspaced;
use ringer_media::call::{EventKind, TimelineEntry};
use ringer_media::numerals::Numerals;
use ringer_model::result::MetricValue;
use serde_json::json;

use super::reading;
use super::reported::words;
use super::yielding::OpenMetric;

/// Names of the metrics, in the order of the fields of [`Signs`].
pub(super) const NAMES: [&str; 4] = ["echoed_turns", "doubled_turns", "repeated_turns", "foreign_turns"];
/// Why a count is open.
const UNHEARD: &str = "words of turns of the agent are not known";

/// Most words of a turn that are compared; comparing takes time by their square.
const MOST_WORDS: usize = 80;
/// Number of earlier turns that a turn is compared with.
const MOST_TURNS: usize = 50;
/// Least number of words that can be an echo of the caller, and share of them that may differ.
const ECHO: (usize, f64) = (6, 0.2);
/// Least number of words that are said twice in one turn, and share of the turn that they make up once. An offer of two
/// times, of which the second begins otherwise, stays below it.
const DOUBLED: (usize, f64) = (5, 0.45);
/// Least number of words of a turn that was said before, and share of them that may differ.
const REPEATED: (usize, f64) = (4, 0.2);
/// Least number of words by which a language is told.
const FOREIGN: usize = 6;
/// Number of single letters from which on they spell something.
const SPELLED: usize = 3;
/// Letters that count as a word where a text is written without blanks.
const LETTERS_A_WORD: usize = 3;

/// Signs of one turn of the agent.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
struct Signs {
    /// It says the caller's last words back.
    echoed: bool,
    /// It says the same words twice.
    doubled: bool,
    /// It says what an earlier turn said.
    repeated: bool,
    /// It is in another language.
    foreign: bool,
}

/// Returns the counts of a conversation in `language`, and those of which something is not known: they have no value.
/// Languages are not counted where it is `None`, or where the Digital Human took the agent's.
pub(super) fn counts(moments: &[TimelineEntry], language: Option<&str>) -> (Vec<MetricValue>, Vec<OpenMetric>) {
    let takes = moments.iter().any(|moment| matches!(moment.reading(), EventKind::LanguageTaken { .. }));
    let language = language.filter(|_| !takes);
    let numerals = language.and_then(|language| Numerals::of(primary(language)));
    let (mut signs, mut unheard, mut own, mut earlier) = (Vec::new(), 0, Vec::new(), Vec::<Vec<String>>::new());
    for moment in moments {
        if let Some(said) = own_words(moment) {
            own.extend(words(said));
            continue;
        }
        let Some(turn) = reading::turn(moment) else { continue };
        if turn.lacks_words() {
            unheard += 1;
        }
        let mut said = words(turn.text);
        said.truncate(MOST_WORDS);
        if said.is_empty() {
            continue;
        }
        let compared = &earlier[earlier.len().saturating_sub(MOST_TURNS)..];
        signs.push(Signs {
            echoed: is_echo(&own, &said, numerals),
            doubled: is_doubled(&said),
            repeated: compared.iter().any(|before| is_again(before, &said)),
            foreign: language.is_some_and(|language| is_foreign(turn.text, &said, language)),
        });
        own.clear();
        earlier.push(said);
    }
    if signs.is_empty() && unheard == 0 {
        return Default::default();
    }
    let count = |has: fn(&Signs) -> bool| signs.iter().filter(|one| has(one)).count();
    let all: [(usize, bool); 4] = [
        (count(|one| one.echoed), true),
        (count(|one| one.doubled), true),
        (count(|one| one.repeated), true),
        (count(|one| one.foreign), language.is_some()),
    ];
    let told = NAMES.into_iter().zip(all).filter(|(_, (_, is_told))| *is_told);
    let (mut values, mut open) = (Vec::new(), Vec::new());
    for (name, (count, _)) in told {
        match unheard {
            0 => values.push(MetricValue { name: name.to_owned(), value: json!(count), note: None }),
            _ => {
                let range = Some([count as f64, (count + unheard) as f64]);
                open.push(OpenMetric { name, range, reason: UNHEARD.to_owned() });
            }
        }
    }
    (values, open)
}

/// Returns the words that the Digital Human said or wrote.
fn own_words(moment: &TimelineEntry) -> Option<&str> {
    match moment.reading() {
        EventKind::MessageSent { text, .. } => Some(text),
        _ => reading::speech_end(moment).filter(|end| !end.is_sound()).map(|end| end.text),
    }
}

/// Returns the least number of elements of `said` that make up so many words.
fn least_of(said: &[String], count: usize) -> usize {
    if said.iter().any(|word| word.chars().any(is_unspaced)) { count * LETTERS_A_WORD } else { count }
}

/// True if `said` holds the caller's words, or nearly. Numbers and spelled letters are left out of those that are
/// needed: agents read them back.
fn is_echo(own: &[String], said: &[String], numerals: Option<&Numerals>) -> bool {
    let (least, off) = ECHO;
    let own = &own[own.len().saturating_sub(MOST_WORDS)..];
    let least = least_of(own, least);
    let is_letter = |word: &&String| word.len() == 1 && word.chars().all(char::is_alphabetic);
    let is_spelled = own.iter().filter(is_letter).count() >= SPELLED;
    let is_number = |word: &&String| {
        word.chars().any(|c| c.is_ascii_digit()) || numerals.is_some_and(|numerals| numerals.holds(word))
    };
    let telling = own.iter().filter(|word| !(is_number(word) || is_spelled && is_letter(word))).count();
    telling >= least && distance_within(own, said) as f64 <= off * own.len() as f64
}

/// Returns the least edit distance of `wanted` from any run of `said`, in words.
fn distance_within(wanted: &[String], said: &[String]) -> usize {
    // A run may begin anywhere, and end anywhere.
    last_row(wanted, said, &vec![0; said.len() + 1]).into_iter().min().unwrap_or(wanted.len())
}

/// Returns the edit distance of two texts, in words.
fn distance(one: &[String], other: &[String]) -> usize {
    let first: Vec<usize> = (0..=other.len()).collect();
    last_row(one, other, &first).last().copied().unwrap_or(0)
}

/// Returns the last row of the table of edit distances of `wanted` from the beginnings of `said`.
fn last_row(wanted: &[String], said: &[String], first: &[usize]) -> Vec<usize> {
    let mut before = first.to_vec();
    for (at, word) in wanted.iter().enumerate() {
        let mut row = vec![at + 1];
        for (place, other) in said.iter().enumerate() {
            let change = before[place] + usize::from(word != other);
            row.push(change.min(before[place + 1] + 1).min(row[place] + 1));
        }
        before = row;
    }
    before
}

/// True if a run of words is said twice in a turn, and makes up much of it.
fn is_doubled(said: &[String]) -> bool {
    let (least, share) = DOUBLED;
    let longest = (1..said.len()).map(|apart| longest_run(said, apart)).max().unwrap_or(0);
    longest >= least_of(said, least) && longest as f64 >= share * said.len() as f64
}

/// Returns the length of the longest run of words that is said again `apart` words later, without an overlap.
fn longest_run(said: &[String], apart: usize) -> usize {
    let (mut run, mut longest) = (0, 0);
    for (one, other) in said.iter().zip(&said[apart..]) {
        run = if one == other { (run + 1).min(apart) } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// True if a turn says what another one said.
fn is_again(before: &[String], said: &[String]) -> bool {
    let (least, off) = REPEATED;
    let most = before.len().max(said.len());
    let allowed = (off * most as f64) as usize;
    before.len().min(said.len()) >= least_of(said, least)
        && before.len().abs_diff(said.len()) <= allowed
        && distance(before, said) <= allowed
}

/// Returns the primary code of a language's tag.
fn primary(language: &str) -> &str {
    language.split('-').next().unwrap_or_default()
}

/// True if a text is surely in another language than `language`. Cantonese is often written as Mandarin, and told apart
/// by few characters alone.
fn is_foreign(text: &str, said: &[String], language: &str) -> bool {
    let written = |code| if code == "yue" { "zh" } else { code };
    let own = primary(language);
    said.len() >= least_of(said, FOREIGN)
        && of_text(text).is_some_and(|found| written(found) != written(own) && !own.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moments;

    /// Returns the counts of a conversation whose lines begin with `c` for the caller and `a` for the agent; `?` is a
    /// turn that was not heard.
    fn count_in(lines: &[&str], language: Option<&str>) -> (Vec<Option<u64>>, Vec<OpenMetric>) {
        let event = |(at, line): (usize, &&str)| {
            let (side, text) = line.split_at(2);
            let sample = (at + 1) * 16_000;
            match (side, text) {
                ("c ", _) => json!({ "sample": sample, "seq": at, "event": "speech.ended", "side": "dh",
                    "data": { "utterance_id": at, "text": text } }),
                (_, "?") => json!({ "sample": sample, "seq": at, "event": "turn.ended", "side": "agent",
                    "data": { "text": "", "text_missing": "recognizer_late", "from_sample": sample - 16, "end_sample": sample, "words": [] } }),
                _ => json!({ "sample": sample, "seq": at, "event": "turn.ended", "side": "agent",
                    "data": { "text": text, "from_sample": sample - 16, "end_sample": sample, "words": [] } }),
            }
        };
        let events: Vec<serde_json::Value> = lines.iter().enumerate().map(event).collect();
        let (values, open) = counts(&moments(&json!(events)), language);
        let value = |name: &&str| values.iter().find(|metric| metric.name == **name).and_then(|m| m.value.as_u64());
        (NAMES.iter().map(value).collect(), open)
    }

    #[test]
    fn what_was_said_before_is_counted() {
        let none = [Some(0); 4];
        let wish = "c I would like to see a doctor.";
        for (lines, expect) in [
            (&[][..], [None; 4]),
            (&[wish, "a Yes, please tell me your date of birth."], none),
            (&[wish, "a i would like to see a doctor yes tell me your birthday"], [Some(1), Some(0), Some(0), Some(0)]),
            // One word of seven was misheard.
            (&[wish, "a I would like to see the doctor."], [Some(1), Some(0), Some(0), Some(0)]),
            (&[wish, "a A doctor? I see. Would you like to come on Monday?"], none),
            // So few words are confirmed by good agents.
            (&["c The third of March.", "a The third of March, thank you."], none),
            (
                &["a Please tell me your date of birth. Please tell me your date of birth."],
                [Some(0), Some(1), Some(0), Some(0)],
            ),
            (&["a Press one for appointments, press two for opening hours."], none),
            // Two offers are no answer that is given twice.
            (
                &["a Would you like Tuesday at ten thirty in the morning or Thursday at ten thirty in the morning?"],
                none,
            ),
            (&["c My number is four one seven one nine two.", "a Your number is four one seven one nine two."], none),
            (
                &["a When were you born, please?", "c In March.", "a when were you born, please"],
                [Some(0), Some(0), Some(1), Some(0)],
            ),
            (&["a Okay, thank you.", "c Yes.", "a Okay, thank you."], none),
            (&["a Claro que sí. Por favor, dígame su fecha de nacimiento."], [Some(0), Some(0), Some(0), Some(1)]),
        ] {
            assert_eq!(count_in(lines, Some("en")).0, expect, "{lines:?}");
        }
    }

    /// Letters of a text without blanks are no words.
    #[test]
    fn short_phrases_without_blanks_are_no_repetitions() {
        for (language, lines) in [
            ("zh", &["c 三月三號下午", "a 好的,三月三號下午,對嗎?"][..]),
            ("ja", &["a かしこまりました", "c はい", "a かしこまりました"][..]),
            ("ja", &["a 火曜日の午前十時、または木曜日の午前十時はいかがですか"][..]),
            ("yue", &["a 你好,請問有什麼可以幫助你的嗎?我們今天營業到六點。"][..]),
        ] {
            assert_eq!(count_in(lines, Some(language)).0, [Some(0); 4], "{lines:?}");
        }
        let twice = ["a お名前と生年月日を教えていただけますか。お名前と生年月日を教えていただけますか。"];
        assert_eq!(count_in(&twice, Some("ja")).0[1], Some(1));
    }

    #[test]
    fn an_unknown_language_is_not_counted() {
        let spanish = ["a Claro que sí. Por favor, dígame su fecha de nacimiento."];
        assert_eq!(count_in(&spanish, None).0[3], None);
        assert_eq!(count_in(&spanish, Some("es-MX")).0[3], Some(0));
    }

    #[test]
    fn a_turn_that_was_not_heard_may_be_any() {
        let (values, open) = count_in(&["a When were you born, please?", "a ?"], Some("en"));
        assert_eq!(values, [None; 4]);
        assert_eq!(
            open.iter().map(|open| (open.name, open.range)).collect::<Vec<_>>(),
            NAMES.map(|name| (name, Some([0.0, 1.0])))
        );
    }
}
