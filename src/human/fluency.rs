//! Fillers and pauses of a caller who does not speak the language well. It changes no word, and leaves numbers, names
//! and facts whole. It is apart from the mind, since words are spoken while the mind still generates the next ones.

use ringer_base::config;
use ringer_base::config::Hesitation;
use ringer_media::seed::{Seed, Stream};

use super::SpeechPart;
use super::numbers::Numbers;
use super::phrases::phrases;
use super::text::word_count;

/// Command of the language.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum FluencyLevel {
    /// No fillers and no pauses.
    #[default]
    Native,
    /// Few fillers and short pauses: `behaviour.fluency.intermediate`.
    Intermediate,
    /// More fillers and longer pauses: `behaviour.fluency.beginner`.
    Beginner,
}

impl FluencyLevel {
    /// Returns the level by its name in the API; `native` for an unknown one.
    pub fn of_name(name: &str) -> FluencyLevel {
        match name {
            "intermediate" => FluencyLevel::Intermediate,
            "beginner" => FluencyLevel::Beginner,
            _ => FluencyLevel::Native,
        }
    }

    /// Returns the fillers and pauses of this level from `settings`.
    pub fn hesitation(self, settings: &config::Fluency) -> Hesitation {
        match self {
            FluencyLevel::Native => NONE,
            FluencyLevel::Intermediate => settings.intermediate.clone(),
            FluencyLevel::Beginner => settings.beginner.clone(),
        }
    }
}

/// Hesitation of a native speaker: none.
pub(super) const NONE: Hesitation =
    Hesitation { fillers_per_100_words: 0.0, clause_pauses: 0.0, pause_from_ms: 0, pause_to_ms: 0 };

/// Adds fillers and pauses to words that are not exact, by draws of its own.
#[derive(Debug)]
pub struct Fluency {
    hesitation: Hesitation,
    fillers: &'static [&'static str],
    /// Values inside which nothing is added, their ASCII letters in lower case.
    whole: Vec<String>,
    numbers: Numbers,
    filler: Stream,
    pause: Stream,
}

impl Default for Fluency {
    /// Returns a fluency that adds nothing.
    fn default() -> Self {
        Fluency::new(NONE, "en", &[], Seed(0))
    }
}

impl Fluency {
    /// Sets the language of all further fillers and numbers.
    pub fn speak(&mut self, language: &str) {
        self.fillers = phrases(language).fillers;
        self.numbers = Numbers::of(language);
    }

    /// Returns the fluency of one call. Inside the values of `facts` nothing is added.
    pub fn new(hesitation: Hesitation, language: &str, facts: &[(String, String)], seed: Seed) -> Fluency {
        Fluency {
            hesitation,
            fillers: phrases(language).fillers,
            whole: facts
                .iter()
                .map(|(_, value)| value.to_ascii_lowercase())
                .filter(|value| value.contains(cuts))
                .collect(),
            numbers: Numbers::of(language),
            filler: seed.stream("filler"),
            pause: seed.stream("pause"),
        }
    }

    /// Returns the pieces of `text` in order: words, fillers (as words) and added silences.
    pub fn parts(&mut self, text: &str) -> Vec<SpeechPart> {
        let Hesitation { fillers_per_100_words, clause_pauses, pause_from_ms, pause_to_ms } = self.hesitation;
        let pieces = self.pieces(text);
        let gaps = pieces.iter().filter(|piece| piece.gap).count();
        // Gaps without a filler, in numbers and names, add to the chance of the others, so that the rate holds for all
        // words.
        let chance = if gaps == 0 {
            0.0
        } else {
            (fillers_per_100_words / 100.0 * word_count(text) as f64 / gaps as f64).min(0.9)
        };
        let (mut parts, mut words) = (Vec::new(), String::new());
        for piece in &pieces {
            words.push_str(piece.text);
            let filled = piece.gap && self.filler.unit() < chance;
            let paused = piece.clause_end && self.pause.unit() < clause_pauses;
            if filled || paused {
                flush(&mut parts, &mut words);
                let pause_ms = self.pause.range(pause_from_ms.into(), pause_to_ms.into());
                parts.push(SpeechPart::PauseMs(pause_ms.round() as u32));
            }
            if filled {
                words = format!("{}, ", self.fillers[self.filler.index(self.fillers.len())]);
            }
        }
        flush(&mut parts, &mut words);
        parts
    }

    /// Splits a text into words with the blanks after them (into clauses, where there are no blanks).
    fn pieces<'a>(&self, text: &'a str) -> Vec<Piece<'a>> {
        let ends = |c: char| matches!(c, ',' | ';' | ':' | '.' | '?' | '!' | '、' | '。' | '，' | '？' | '！' | '।');
        let lower = text.to_ascii_lowercase();
        let protected: Vec<_> = self
            .whole
            .iter()
            .flat_map(|fact| lower.match_indices(fact.as_str()).map(|(at, found)| at..at + found.len()))
            .collect();
        let numbers = self.numbers;
        let texts: Vec<&str> = text.split_inclusive(cuts).collect();
        let mut at = 0;
        let piece = |(index, &piece): (usize, &&'a str)| {
            at += piece.len();
            let next = texts[index + 1..].iter().find(|text| !text.trim().is_empty());
            let inside = protected.iter().any(|range| range.start < at && at < range.end);
            let clause_end = next.is_some() && piece.trim_end().ends_with(ends);
            let gap =
                next.is_some_and(|next| !joined(piece, next)) && !numbers.joined(piece, &texts[index + 1..]) && !inside;
            Piece { text: piece, gap, clause_end: clause_end && gap }
        };
        texts.iter().enumerate().map(piece).collect()
    }
}

/// Returns the spoken text of these pieces; `None` where no word was added to `text`.
pub fn changed_text(parts: &[SpeechPart], text: &str) -> Option<String> {
    let heard = words_of(parts);
    let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
    (letters(&heard) != letters(text)).then_some(heard)
}

/// True for a character at which words end.
fn cuts(c: char) -> bool {
    c.is_whitespace() || matches!(c, '、' | '。' | '，' | '？' | '！')
}

/// Returns the words of all pieces.
fn words_of(parts: &[SpeechPart]) -> String {
    let words = |part: &SpeechPart| match part {
        SpeechPart::Words(text) => Some(text.clone()),
        SpeechPart::PauseMs(_) => None,
    };
    parts.iter().filter_map(words).collect::<Vec<_>>().join(" ")
}

struct Piece<'a> {
    text: &'a str,
    /// True: a filler may follow.
    gap: bool,
    /// True: a clause ends here.
    clause_end: bool,
}

/// True for two words of one name.
pub(super) fn joined(word: &str, next: &str) -> bool {
    let capital = |word: &str| word.starts_with(char::is_uppercase) && word.trim().chars().count() > 1;
    let open = !word.trim_end().ends_with(['.', '!', '?']) || word.trim_end().len() < 4;
    capital(word) && capital(next) && open
}

fn flush(parts: &mut Vec<SpeechPart>, words: &mut String) {
    let text = std::mem::take(words);
    if !text.trim().is_empty() {
        parts.push(SpeechPart::Words(text.trim().to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "well my last bill was much higher than i expected, and the meter shows another number; could you \
        please look at the account again and tell me what happened there because nobody has told me anything so far";

    /// Returns the hesitation of a level by the default settings.
    fn by_default(level: FluencyLevel) -> Hesitation {
        level.hesitation(&config::Behaviour::default().fluency)
    }

    #[test]
    fn the_rate_of_fillers_and_the_pauses_follow_the_level() {
        let check = |level, per_100: f64, pause_ms: std::ops::RangeInclusive<u32>| {
            let (mut fillers, mut words) = (0, 0);
            for seed in 0..300 {
                let parts = Fluency::new(by_default(level), "en", &[], Seed(seed)).parts(TEXT);
                let said = words_of(&parts);
                let added = said.split(' ').filter(|word| ["um,", "uh,", "hmm,", "er,"].contains(word)).count();
                assert_eq!(changed_text(&parts, TEXT).as_deref(), (added > 0).then_some(said.as_str()));
                fillers += added;
                words += word_count(TEXT);
                assert_eq!(word_count(&said), word_count(TEXT) + added);
                for part in parts {
                    let SpeechPart::PauseMs(ms) = part else { continue };
                    assert!(pause_ms.contains(&ms), "{ms}");
                }
            }
            let rate = 100.0 * fillers as f64 / words as f64;
            println!("{level:?}: {rate:.2} fillers in 100 words over {words} words");
            assert!((rate - per_100).abs() <= 0.1 * per_100, "{level:?}: {rate} fillers in 100 words");
        };
        check(FluencyLevel::Native, 0.0, 0..=0);
        check(FluencyLevel::Intermediate, 4.0, 300..=600);
        check(FluencyLevel::Beginner, 10.0, 500..=1200);
    }

    #[test]
    fn the_settings_are_what_a_level_means() {
        let often =
            Hesitation { fillers_per_100_words: 30.0, clause_pauses: 1.0, pause_from_ms: 2000, pause_to_ms: 2100 };
        let settings = config::Fluency { intermediate: often.clone(), ..config::Behaviour::default().fluency };
        assert_eq!(FluencyLevel::Native.hesitation(&settings), NONE);
        assert_eq!(FluencyLevel::Beginner.hesitation(&settings), by_default(FluencyLevel::Beginner));
        let (mut added, mut words) = (0, 0);
        for seed in 0..200 {
            let mut fluency = Fluency::new(FluencyLevel::Intermediate.hesitation(&settings), "en", &[], Seed(seed));
            let parts = fluency.parts(TEXT);
            added += word_count(&words_of(&parts)) - word_count(TEXT);
            words += word_count(TEXT);
            let pauses: Vec<u32> = parts
                .iter()
                .filter_map(|part| match part {
                    SpeechPart::PauseMs(ms) => Some(*ms),
                    SpeechPart::Words(_) => None,
                })
                .collect();
            assert!(pauses.len() >= 2 && pauses.iter().all(|ms| (2000..=2100).contains(ms)), "{pauses:?}");
        }
        let rate = 100.0 * added as f64 / words as f64;
        assert!((rate - 30.0).abs() <= 2.0, "{rate} fillers in 100 words");
    }

    #[test]
    fn clause_ends_have_their_share_of_pauses() {
        let check = |level: FluencyLevel, share: f64| {
            let (mut pauses, mut ends) = (0, 0);
            for seed in 0..400 {
                let parts = Fluency::new(by_default(level), "en", &[], Seed(seed)).parts(TEXT);
                // TEXT has two clause ends before its last word.
                ends += 2;
                for (at, part) in parts.iter().enumerate() {
                    let SpeechPart::PauseMs(_) = part else { continue };
                    let after_clause = matches!(parts.get(at.wrapping_sub(1)), Some(SpeechPart::Words(text)) if text.ends_with([',', ';']));
                    let filled = matches!(parts.get(at + 1), Some(SpeechPart::Words(text)) if ["um,", "uh,", "hmm,", "er,"].iter().any(|filler| text.starts_with(filler)));
                    pauses += i32::from(after_clause && !filled);
                    if !filled {
                        assert!(after_clause, "a pause of its own stands at a clause end: {parts:?}");
                    }
                }
            }
            let fillers = by_default(level).fillers_per_100_words / 100.0;
            // A clause end with a filler has its one pause there.
            let expect = share * (1.0 - fillers * word_count(TEXT) as f64 / (word_count(TEXT) - 1) as f64);
            let found = f64::from(pauses) / f64::from(ends);
            println!("{level:?}: pauses at {:.1} % of clause ends, {:.1} expected", 100.0 * found, 100.0 * expect);
            assert!((found - expect).abs() < 0.2 * expect, "{level:?}: {found} of clause ends, {expect} expected");
        };
        check(FluencyLevel::Intermediate, 0.25);
        check(FluencyLevel::Beginner, 0.50);
    }

    #[test]
    fn numbers_names_and_facts_stay_whole() {
        let facts = [("street".to_owned(), "twelve elm street".to_owned())];
        for seed in 0..200 {
            let mut fluency = Fluency::new(by_default(FluencyLevel::Beginner), "en", &facts, Seed(seed));
            let wholes = [
                "44 11 82",
                "Maria Alvarez",
                "twelve elm street",
                "four four one oh",
                "two hundred and five",
                "twenty-one, 3",
                "Dr. Patel Singh",
            ];
            for whole in wholes {
                let said = words_of(&fluency.parts(&format!("i think it is {whole} if i am right")));
                assert!(said.contains(whole), "{said}");
            }
            // A fact may begin a sentence, and may be written without blanks.
            assert!(words_of(&fluency.parts("Twelve elm street is where i live")).contains("Twelve elm street"));
            let facts = [("home".to_owned(), "南京路，十二号".to_owned())];
            let mut fluency = Fluency::new(by_default(FluencyLevel::Beginner), "zh", &facts, Seed(seed));
            assert!(words_of(&fluency.parts("你好，我住南京路，十二号，谢谢。")).contains("南京路，十二号"));
        }
    }

    #[test]
    fn the_same_seed_speaks_the_same() {
        let parts = |seed| Fluency::new(by_default(FluencyLevel::Beginner), "en", &[], Seed(seed)).parts(TEXT);
        assert_eq!(parts(9), parts(9));
        assert_ne!(parts(9), parts(10));
        assert!(
            Fluency::new(by_default(FluencyLevel::Beginner), "zh", &[], Seed(1)).parts("你好，我想预约医生。").len()
                <= 4
        );
    }
}
