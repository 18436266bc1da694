//! The built-in speaker: no language model, no understanding beyond words.
//!
//! It says the sentences of its intent one per turn, and gives its facts when a question names them. It also says yes,
//! presses digits when asked to, and says goodbye.

use std::collections::HashSet;

use ringer_media::call::{ConversationLine, Move, Purpose, Then, Thought};
use ringer_media::seed::{Seed, Stream};

use super::Profile;
use super::asking;
use super::phrases::{Phrases, phrases};
use super::plain::manner;
use super::text::{Facts, plain_words, sentences};

/// Name of the built-in speaker in the result's metadata.
pub(super) const NAME: &str = "template";
/// Words before an auxiliary in which a question word makes the question an open one.
const OPEN_REACH: usize = 6;
/// Most digits that are keyed at once.
const DIGITS_MAX: usize = 32;

/// The built-in speaker of one call.
pub(super) struct Template {
    sentences: Vec<String>,
    intent: Vec<String>,
    /// Key that the intent says to press.
    named_key: Option<char>,
    traits: Vec<(String, String)>,
    words: &'static Phrases,
    language: String,
    may_key: bool,
    prefers_keys: bool,
    may_end: bool,
    first: Move,
    draw: Stream,
}

impl Template {
    pub(super) fn new(profile: &Profile, seed: Seed) -> Template {
        let intent = Facts::of(&profile.traits).fill(&profile.intent);
        Template {
            sentences: sentences(&intent).iter().map(|sentence| manner(profile, sentence)).collect(),
            intent: words_and_keys(&intent),
            named_key: options(&intent).first().map(|(digit, _)| *digit),
            traits: profile.traits.clone(),
            words: phrases(&profile.language),
            language: profile.language.clone(),
            may_key: profile.allow_dtmf,
            prefers_keys: profile.keyed,
            may_end: profile.allow_end_call,
            first: profile.first_message.as_ref().map(|text| super::exactly(text, profile)).unwrap_or_default(),
            draw: seed.stream("template"),
        }
    }

    /// Returns all that it may say, in the order in which a call is likely to need it.
    pub(super) fn known_texts(&self) -> Vec<String> {
        let own = [self.words.greeting, self.words.yes, self.words.goodbye, self.words.still_there];
        let first = Some(self.first.say.clone()).filter(|say| !say.is_empty());
        let facts = self.traits.iter().map(|(_, value)| value.clone());
        first.into_iter().chain(self.sentences.iter().cloned()).chain(facts).chain(own.map(str::to_owned)).collect()
    }

    /// Sets the language of its own words; the sentences of the intent stay as written.
    pub(super) fn speak(&mut self, language: &str) {
        self.words = phrases(language);
        language.clone_into(&mut self.language);
    }

    /// Returns the next move, whole.
    pub(super) fn next(&mut self, thought: &Thought) -> Move {
        match &thought.purpose {
            Purpose::Opening if self.first.say.is_empty() => {
                let first = self.sentences.first().cloned().unwrap_or_default();
                say(format!("{} {first}", self.words.greeting).trim_end())
            }
            Purpose::Opening => self.first.clone(),
            Purpose::Reply | Purpose::GoOn => {
                let heard = thought.history.last().filter(|line| line.other);
                let heard = heard.map_or("", |line: &ConversationLine| &*line.text);
                self.reply(heard, &thought.history)
            }
            Purpose::BargeIn => say(self.words.interruption[self.draw.index(self.words.interruption.len())]),
            Purpose::Contextual { .. } => Move::default(),
            Purpose::StillThere => Move { exact: true, ..say(self.words.still_there) },
        }
    }

    fn reply(&mut self, heard: &str, history: &[ConversationLine]) -> Move {
        let asked = words_and_keys(heard);
        let is_asked = asking::is_request(&self.language, heard).unwrap_or_else(|| is_request(heard, &asked));
        let fact = if is_asked { self.fact(&asked) } else { None };
        if let Some(digits) = self.digits(heard, &asked, fact.as_deref()) {
            return Move { dtmf: digits, ..Move::default() };
        }
        if let Some(value) = fact {
            return say(&value);
        }
        if asking::is_yes_no(&self.language, heard).unwrap_or_else(|| is_yes_no(heard)) {
            return say(self.words.yes);
        }
        match self.unsaid(history) {
            Some(sentence) => say(sentence),
            None if self.may_end => Move { then: Then::Hangup, ..say(self.words.goodbye) },
            None => say(self.words.goodbye),
        }
    }

    /// Returns the first sentence of the intent that was not said yet.
    ///
    /// Only words that were really said count: an answer may be dropped before it is said, and a sentence may be cut
    /// off.
    fn unsaid(&self, history: &[ConversationLine]) -> Option<&str> {
        let mut left = self.sentences.iter().peekable();
        for line in history.iter().filter(|line| !line.other) {
            while left.next_if(|sentence| is_told(&line.text, sentence)).is_some() {}
        }
        left.next().map(String::as_str)
    }

    /// Returns the value of the trait whose name shares most words with the question, at least half of the name's.
    fn fact(&self, asked: &[String]) -> Option<String> {
        let share = |name: &str| {
            let name = name_words(name);
            let shared = name.iter().filter(|word| asked.iter().any(|other| alike(other, word))).count();
            shared as f64 / name.len().max(1) as f64
        };
        let best = self.traits.iter().map(|(name, value)| (share(name), value));
        let (share, value) = best.max_by(|a, b| a.0.total_cmp(&b.0))?;
        (share >= 0.5).then(|| value.clone())
    }

    /// Returns the digits to press; `None`: none are asked for.
    ///
    /// The first that exists counts: digits of the asked fact, or the one that the intent names. After these come
    /// digits of a trait about digits, and the offered option that fits the intent.
    fn digits(&self, heard: &str, asked: &[String], fact: Option<&str>) -> Option<String> {
        let demanded =
            asked.iter().any(|word| matches!(word.as_str(), "press" | "keypad" | "dial" | "key" | "touchtone"));
        let demanded = demanded || asking::demands_keys(&self.language, heard);
        if !self.may_key || !(demanded || (self.prefers_keys && fact.is_some())) {
            return None;
        }
        if let Some(digits) = fact.and_then(keyable) {
            return Some(digits);
        }
        let offered = options(heard);
        let named = self.named_key;
        let about_keys = |name: &&(String, String)| {
            let name = name_words(&name.0);
            name.iter().any(|word| matches!(word.as_str(), "menu" | "digits" | "dtmf" | "keypad" | "choice" | "option"))
        };
        let kept = || self.traits.iter().find(about_keys).and_then(|(_, value)| keyable(value));
        let wanted = |label: &[String]| label.iter().filter(|word| self.is_meant(word)).count();
        let best = offered.iter().rev().max_by_key(|(_, label)| wanted(label)).filter(|(_, label)| wanted(label) > 0);
        named.map(String::from).or_else(kept).or_else(|| best.map(|(digit, _)| digit.to_string()))
    }

    fn is_meant(&self, word: &str) -> bool {
        !STOP_WORDS.contains(&word) && self.intent.iter().any(|other| alike(other, word))
    }
}

/// Words without a topic of their own.
const STOP_WORDS: [&str; 32] = [
    "a", "an", "the", "for", "to", "of", "in", "on", "and", "or", "you", "your", "i", "my", "me", "we", "our", "is",
    "are", "it", "this", "that", "with", "press", "please", "number", "want", "would", "like", "at", "by", "if",
];
const QUESTION_WORDS: [&str; 11] =
    ["what", "which", "who", "whose", "when", "where", "why", "how", "what's", "who's", "where's"];
const REQUEST_WORDS: [&str; 14] = [
    "tell", "give", "provide", "confirm", "need", "enter", "spell", "share", "verify", "state", "say", "type", "key",
    "repeat",
];
const AUXILIARIES: [&str; 20] = [
    "is", "are", "do", "does", "did", "can", "could", "will", "would", "have", "has", "was", "were", "am", "should",
    "may", "shall", "isn't", "don't", "didn't",
];
const SUBJECTS: [&str; 12] = ["you", "i", "that", "it", "this", "we", "there", "your", "they", "he", "she", "the"];

/// True if the first half of the sentence's words was said.
fn is_told(line: &str, sentence: &str) -> bool {
    let (said, wanted) = (plain_words(line), plain_words(sentence));
    let half = &wanted[..wanted.len().div_ceil(2)];
    half.is_empty() || said.windows(half.len()).any(|run| run == half)
}

fn say(text: &str) -> Move {
    Move { say: text.to_owned(), ..Move::default() }
}

/// Returns the words of a trait's name: `member_id`, `memberId` and `member id` are the same two.
fn name_words(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    for c in name.chars() {
        if c.is_uppercase() && spaced.ends_with(char::is_lowercase) {
            spaced.push(' ');
        }
        spaced.push(if c == '_' { ' ' } else { c });
    }
    let words: HashSet<String> = plain_words(&spaced).into_iter().collect();
    let telling = words.iter().filter(|word| !STOP_WORDS.contains(&word.as_str())).cloned().collect::<Vec<_>>();
    if telling.is_empty() { words.into_iter().collect() } else { telling }
}

/// True for the same word, except for a plural or an ending.
fn alike(a: &str, b: &str) -> bool {
    let stem = |word: &str| word.trim_end_matches("'s").trim_end_matches('s').to_owned();
    stem(a) == stem(b) || (a.len().min(b.len()) >= 5 && (a.starts_with(b) || b.starts_with(a)))
}

/// True for a yes-no question: an auxiliary before its subject (not after one: "this is your"), without a question word
/// before. Of several sentences the last question counts. Where nothing parts them, a question word is looked for
/// shortly before.
fn is_yes_no(heard: &str) -> bool {
    let all = sentences(heard);
    let question = all.iter().rev().find(|sentence| sentence.trim_end().ends_with(['?', '？', '؟']));
    let asked = words_and_keys(question.map_or(heard, String::as_str));
    let reach = if question.is_some() { asked.len() } else { OPEN_REACH };
    let has = |list: &[&str], word: &String| list.contains(&word.as_str());
    asked.windows(2).enumerate().any(|(at, pair)| {
        let open = asked[at.saturating_sub(reach)..at].iter().any(|word| has(&QUESTION_WORDS, word));
        let stated = at > 0 && has(&SUBJECTS, &asked[at - 1]);
        // "May I have your name" asks for the name.
        let asks = asked.get(at + 2).is_some_and(|verb| matches!(verb.as_str(), "have" | "get" | "take"))
            && asked.get(at + 3).is_some_and(|whose| matches!(whose.as_str(), "your" | "the"));
        has(&AUXILIARIES, &pair[0]) && has(&SUBJECTS, &pair[1]) && !open && !stated && !asks
    })
}

fn is_request(heard: &str, asked: &[String]) -> bool {
    let telling = |word: &String| QUESTION_WORDS.contains(&word.as_str()) || REQUEST_WORDS.contains(&word.as_str());
    let asks = |pair: &[String]| AUXILIARIES.contains(&pair[0].as_str()) && SUBJECTS.contains(&pair[1].as_str());
    heard.contains(['?', '？', '؟'])
        || asked.iter().any(telling)
        || (is_yes_no(heard) || asked.get(..2).is_some_and(asks))
}

/// Returns the digits of a value that can be keyed, which has only blanks and signs between them.
fn keyable(value: &str) -> Option<String> {
    let digits: String = value.chars().filter(|c| c.is_ascii_digit() || "*#".contains(*c)).collect();
    let only = value.chars().all(|c| c.is_ascii_digit() || c.is_whitespace() || "*#-+()./".contains(c));
    (only && !digits.is_empty() && digits.len() <= DIGITS_MAX).then_some(digits)
}

/// Returns [`plain_words`], with the names of digits that are written as signs.
fn words_and_keys(text: &str) -> Vec<String> {
    let named = |word: &str| match word.trim_matches(['.', ',', ';', ':', '?', '!', '"', '\'', '(', ')']) {
        "*" => "star".to_owned(),
        "#" => "pound".to_owned(),
        _ => word.to_owned(),
    };
    plain_words(&text.split_whitespace().map(named).collect::<Vec<_>>().join(" "))
}

/// Returns the digits of "press 1 for sales, press two for support" or "for sales press 1", each with the words of its
/// label.
///
/// A label behind its digit ends with its sentence: what comes then may be a digit that was misheard.
fn options(text: &str) -> Vec<(char, Vec<String>)> {
    let (mut words, mut ends) = (Vec::new(), Vec::new());
    for sentence in sentences(text) {
        words.extend(words_and_keys(&sentence));
        ends.push(words.len());
    }
    let pressed = |at: usize| words[at] == "press" || (words[at] == "number" && at > 0 && words[at - 1] == "press");
    let digits: Vec<(usize, char)> = (1..words.len())
        .filter_map(|at| digit(&words[at]).filter(|_| pressed(at - 1)).map(|digit| (at, digit)))
        .collect();
    // "press 1 for sales": the label follows, also the last; "for sales press 1": it stands before.
    let after =
        digits.last().is_some_and(|(at, _)| words.get(at + 1).is_some_and(|word| word == "for" || word == "to"));
    let is_telling = |words: &[String]| words.iter().any(|word| !STOP_WORDS.contains(&word.as_str()));
    let label = |index: usize, at: usize| {
        let next = digits.get(index + 1).map_or(words.len(), |(next, _)| *next);
        let before = if index == 0 { 0 } else { digits[index - 1].0 + 1 };
        if !after {
            return words[before..at].to_vec();
        }
        let end = ends.iter().copied().find(|&end| end > at && is_telling(&words[at + 1..end]));
        words[at + 1..end.unwrap_or(next).min(next)].to_vec()
    };
    digits.iter().enumerate().map(|(index, &(at, digit))| (digit, label(index, at))).collect()
}

fn digit(word: &str) -> Option<char> {
    const NAMES: [&str; 10] = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    let named = NAMES.iter().position(|name| *name == word).and_then(|digit| char::from_digit(digit as u32, 10));
    let mut letters = word.chars();
    match (letters.next(), letters.next()) {
        (Some(digit), None) if digit.is_ascii_digit() => Some(digit),
        _ if word == "star" => Some('*'),
        _ if word == "pound" || word == "hash" => Some('#'),
        _ => named,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn template(intent: &str, traits: &[(&str, &str)], keyed: bool) -> Template {
        let profile = Profile {
            intent: intent.into(),
            traits: traits.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            keyed,
            ..Profile::default()
        };
        Template::new(&profile, Seed(1))
    }

    fn thought_after(text: &str) -> Thought {
        let line = ConversationLine { other: true, text: text.into(), digits: Arc::default(), interrupted: false };
        Thought { purpose: Purpose::Reply, history: vec![line], unsaid: None }
    }

    #[test]
    fn the_intent_is_said_sentence_by_sentence_then_goodbye() {
        let mut speaker = template("I want to book a visit. It is for {{day}}.", &[("day", "Monday")], false);
        let own = |text: &str| ConversationLine {
            other: false,
            text: text.into(),
            digits: Arc::default(),
            interrupted: false,
        };
        let mut history = Vec::new();
        // What was really said of each answer: one was dropped, one was cut off after a word, then after most of its
        // words.
        for (said, expect, ends) in [
            ("", "I want to book a visit.", false),
            ("I", "I want to book a visit.", false),
            ("I want to book", "I want to book a visit.", false),
            ("It is for Monday.", "It is for Monday.", false),
            ("Thank you, goodbye.", "Thank you, goodbye.", true),
        ] {
            let asked = thought_after("hello this is the clinic");
            let history_then = [history.clone(), asked.history.clone()].concat();
            let next = speaker.next(&Thought { history: history_then, ..asked });
            assert_eq!((next.say.as_str(), next.then == Then::Hangup), (expect, ends), "{history:?}");
            history.push(own(said));
        }
    }

    #[test]
    fn questions_get_facts_yes_or_the_next_sentence() {
        let traits = [("member_id", "M-4411"), ("dateOfBirth", "March third"), ("city", "Graz"), ("name", "Maria")];
        let check = |agent: &str, expect: &str| {
            assert_eq!(template("I need help.", &traits, false).next(&thought_after(agent)).say, expect, "{agent}");
        };
        check("may i have your member id please", "M-4411");
        check("and what is your date of birth", "March third");
        check("Which city do you live in?", "Graz");
        check("what's the name on the account", "Maria");
        check("is that correct", "Yes.");
        check("okay would you like a morning appointment", "Yes.");
        check("thanks for calling how can i help you", "I need help.");
        check("what time would you prefer", "I need help.");
        check("What is your shoe size?", "I need help.");
        check("Which day of the coming two weeks would you like best?", "I need help.");
        check("Is this the clinic's line? How can I help you?", "I need help.");
        check("How can I help you? Would you like an appointment?", "Yes.");
        check("May I have your phone number?", "I need help.");
        check("which day of the coming week would you like", "I need help.");
        check("the city hall is closed today", "I need help.");
        check("hello this is your clinic", "I need help.");
    }

    #[test]
    fn questions_are_understood_in_the_callers_language() {
        let traits = vec![("Geburtsdatum".to_owned(), "3. März".to_owned()), ("PIN".into(), "4217".into())];
        let profile =
            Profile { intent: "Ich brauche Hilfe.".into(), language: "de".into(), traits, ..Profile::default() };
        let next = |heard: &str| Template::new(&profile, Seed(1)).next(&thought_after(heard));
        assert_eq!(next("Wie ist Ihr Geburtsdatum?").say, "3. März");
        assert_eq!(next("Haben Sie schon einen Termin?").say, "Ja.");
        assert_eq!(next("Wie kann ich Ihnen helfen?").say, "Ich brauche Hilfe.");
        assert_eq!(next("Bitte geben Sie Ihre PIN mit den Tasten ein.").dtmf, "4217");
    }

    #[test]
    fn keys_are_pressed_when_asked_and_known() {
        let check = |intent: &str, traits: &[(&str, &str)], keyed, agent: &str, expect: &str| {
            let next = template(intent, traits, keyed).next(&thought_after(agent));
            assert_eq!(next.dtmf, expect, "{agent}: {}", next.say);
            assert!(expect.is_empty() || next.say.is_empty());
        };
        let menu = "for sales press one for billing press two for support press three";
        check("I have a question about my billing.", &[], false, menu, "2");
        check("I need help.", &[("menu_choice", "3")], false, menu, "3");
        check("I need help. Press 1 in the menu.", &[], false, menu, "1");
        check("I need help.", &[], false, menu, "");
        check("Support, please.", &[], false, "press 1 for sales, press 2 for support", "2");
        check("Support, please.", &[], false, "Press 1 for sales, press * for support.", "*");
        check("I need help. Press # in the menu.", &[], false, menu, "#");
        check("That is good.", &[], false, "Press 1 for appointments. Good rest. To for opening hours.", "");
        check("Appointments.", &[], false, "Press 1. For appointments. Press 2. For opening hours.", "1");
        let pin = [("pin", "4 2 1 7")];
        check("Help.", &pin, false, "please enter your pin on the keypad", "4217");
        check("Help.", &pin, false, "please tell me your pin", "");
        check("Help.", &pin, true, "please tell me your pin", "4217");
        check("Help.", &[("name", "Maria")], true, "please tell me your name", "");
    }

    #[test]
    fn other_purposes_have_fixed_words() {
        let ask = |purpose| {
            let thought = Thought { purpose, history: Vec::new(), unsaid: None };
            template("Book a visit.", &[], false).next(&thought).say
        };
        assert_eq!(ask(Purpose::Opening), "Hello. Book a visit.");
        assert_eq!(ask(Purpose::StillThere), "Are you still there?");
        assert_eq!(ask(Purpose::Contextual { prompt: "now?".into() }), "");
        assert!(!ask(Purpose::BargeIn).is_empty());
    }
}
