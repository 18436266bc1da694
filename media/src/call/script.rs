//! Comparison of recognized with written text: normal forms, hang-up phrases, scripted responses.

use std::collections::HashMap;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;

use super::spec::{Matching, ScriptRule};
use crate::numerals::{self, is_unspaced};

/// Returns the text in Unicode NFKC, case folded, punctuation removed, blanks joined. A dash or a slash parts words.
pub fn normal_form(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    for c in text.nfkc().flat_map(fold_case) {
        let parts = c.is_whitespace() || matches!(c, '-' | '/' | '\u{2010}'..='\u{2015}');
        if c.is_alphanumeric() {
            words.push(c);
        } else if parts && !words.is_empty() && !words.ends_with(' ') {
            words.push(' ');
        }
    }
    words.truncate(words.trim_end().len());
    words
}

/// Folds case by way of the capital letter, which brings ß to ss and the two small sigmas together.
fn fold_case(c: char) -> impl Iterator<Item = char> {
    c.to_uppercase().flat_map(char::to_lowercase)
}

/// Returns the words of the normal form, a blank between any two; an unspaced letter is one.
fn words(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    let mut last = ' ';
    for c in normal_form(text).chars() {
        // Digits of any script are the same.
        let c = numerals::digit(c).map_or(c, |digit| char::from(b'0' + digit));
        if last != ' ' && c != ' ' && (is_unspaced(c) || is_unspaced(last)) {
            words.push(' ');
        }
        words.push(c);
        last = c;
    }
    words
}

/// Number words that are more often other words, in this language or another: a text does not tell its language. Alone
/// they are no numbers.
const HOMOGRAPHS: [&str; 12] = ["on", "once", "bin", "elf", "mil", "cent", "um", "bir", "ba", "ein", "eine", "une"];

/// Words for 0 to 10 with their digits, as [`words`] writes them, without accents but in Vietnamese.
static DIGITS: LazyLock<HashMap<String, u64>> = LazyLock::new(|| {
    let mut digits = HashMap::from([("un".to_owned(), 1)]);
    for (language, word, value) in numerals::small_numbers() {
        // Korean has other words of one syllable; the words with their endings are compared by their language.
        if language != "ko" && !HOMOGRAPHS.contains(&&*word) {
            digits.entry(words(&word)).or_insert(value);
        }
    }
    digits
});

/// Writes the words for 0 to 10 in `words` as digits: some recognizers write `press 1`, others `press one`.
fn with_digits(words: &str) -> String {
    let digits = |word: &str| {
        let plain = numerals::fold_word("en", word);
        match DIGITS.get(word).or_else(|| DIGITS.get(&plain)) {
            Some(number) => number.to_string(),
            None => word.to_owned(),
        }
    };
    words.split(' ').map(digits).collect::<Vec<_>>().join(" ")
}

/// Joins digits that were read one by one: `4 2 1` is `421`.
fn with_digits_joined(words: &str) -> String {
    let is_digit = |word: &str| word.len() == 1 && word.starts_with(|c: char| c.is_ascii_digit());
    let mut joined = String::with_capacity(words.len());
    let mut after_digit = false;
    for word in words.split(' ') {
        let is_apart = !after_digit || !is_digit(word);
        if is_apart && !joined.is_empty() {
            joined.push(' ');
        }
        joined.push_str(word);
        after_digit = is_digit(word);
    }
    joined
}

fn has_digits(words: &str) -> bool {
    words.contains(|c: char| c.is_ascii_digit())
}

/// True when the normal form of `phrase` is a run of whole words in the normal form of `text`. An empty phrase never
/// is. Where words are not written apart, every letter counts as one. Digits and the words for numbers are the same, in
/// every language that callers speak.
pub fn contains_phrase(text: &str, phrase: &str) -> bool {
    let holds = |text: &str, phrase: &str| !phrase.is_empty() && format!(" {text} ").contains(&format!(" {phrase} "));
    let (heard, wanted) = (words(text), words(phrase));
    if holds(&heard, &wanted) {
        return true;
    }
    // Only where the one side has digits can the other's words be meant by them.
    match (has_digits(&heard), has_digits(&wanted)) {
        (false, false) => return false,
        // The number may be read digit by digit: `4, 7, 1, 1`.
        (true, true) => return holds(&with_digits_joined(&heard), &with_digits_joined(&wanted)),
        _ => {}
    }
    let same = |heard: &str, wanted: &str| {
        holds(heard, wanted) || holds(&with_digits_joined(heard), &with_digits_joined(wanted))
    };
    let kept: &[&str] = if wanted.contains(' ') { &[] } else { &HOMOGRAPHS };
    let read = |language: &str, text: &str| words(&numerals::in_digits_but(language, text, kept));
    same(&with_digits(&heard), &with_digits(&wanted))
        || numerals::languages().any(|language| same(&read(language, text), &read(language, phrase)))
}

/// Returns the words of two texts with their numbers as digits, those that are read one by one joined: once for each
/// language that changes one of them.
pub fn with_equal_numbers(one: &str, other: &str) -> impl Iterator<Item = [String; 2]> {
    let texts = [one.to_owned(), other.to_owned()];
    numerals::languages().filter_map(move |language| {
        let read = texts.each_ref().map(|text| numerals::in_digits(language, text));
        (read != texts).then(|| read.map(|text| with_digits_joined(&words(&text))))
    })
}

/// Returns the words that [`contains_phrase`] compares, the words for 0 to 10 as digits.
pub fn phrase_words(text: &str) -> Vec<String> {
    with_digits(&words(text)).split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// True when F1 of the two word sets without stop words is at least 0.6.
pub(super) fn same_meaning(text: &str, phrase: &str) -> bool {
    let (text, phrase) = (words(text), words(phrase));
    let set = |of: &str| {
        let mut words: Vec<String> =
            of.split(' ').filter(|word| !word.is_empty() && !STOP_WORDS.contains(word)).map(String::from).collect();
        words.sort_unstable();
        words.dedup();
        words
    };
    let (heard, wanted) = (set(&text), set(&phrase));
    let both = heard.iter().filter(|word| wanted.binary_search(word).is_ok()).count() as f64;
    let sum = (heard.len() + wanted.len()) as f64;
    sum > 0.0 && 2.0 * both / sum >= 0.6
}

const STOP_WORDS: [&str; 48] = [
    "a", "an", "the", "is", "are", "am", "was", "were", "be", "been", "to", "of", "in", "on", "at", "for", "and", "or",
    "but", "it", "its", "this", "that", "these", "those", "i", "you", "he", "she", "we", "they", "me", "my", "your",
    "his", "her", "our", "their", "do", "does", "did", "with", "as", "by", "so", "if", "then", "please",
];

/// Which rules are left, and how often each fired.
#[derive(Clone, Debug, Default)]
pub struct Script {
    fired: Vec<u32>,
}

/// Answer of a script to a turn; rules are named by their positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ByScript {
    /// This rule answers; without one the conversation is free.
    Known(Option<usize>),
    /// The first of these whose meaning the turn has.
    Ask(Vec<usize>),
}

impl Script {
    /// Returns the state of this many rules, none of which has fired.
    pub fn new(rules: usize) -> Script {
        Script { fired: vec![0; rules] }
    }

    /// Returns the state of this many rules that have fired so often, in their order.
    pub fn resume_with(rules: usize, fired: &[u32]) -> Script {
        Script { fired: (0..rules).map(|at| fired.get(at).copied().unwrap_or_default()).collect() }
    }

    /// Returns how often each rule has fired, in their order.
    pub fn counts(&self) -> &[u32] {
        &self.fired
    }

    /// Returns the rule that answers `text`: exact rules come in order before context rules. With `ordered`, only the
    /// first rule that is not used up is tested. `asks`: a mind can compare meanings.
    pub fn answer(&self, rules: &[ScriptRule], ordered: bool, text: &str, asks: bool) -> ByScript {
        let of = |matching| self.usable(rules, ordered).filter(move |at| rules[*at].matching == matching);
        if let Some(rule) = of(Matching::Exact).find(|at| contains_phrase(text, &rules[*at].phrase)) {
            return ByScript::Known(Some(rule));
        }
        let among: Vec<usize> = of(Matching::Context).collect();
        match asks && !among.is_empty() && !text.is_empty() {
            true => ByScript::Ask(among),
            false => ByScript::Known(same_words(rules, &among, text)),
        }
    }

    fn usable<'a>(&'a self, rules: &'a [ScriptRule], ordered: bool) -> impl Iterator<Item = usize> + 'a {
        let most = if ordered { 1 } else { u32::MAX };
        let left = move |at: &usize| self.fired[*at] < rules[*at].first_n.unwrap_or(most);
        (0..rules.len()).filter(left).take(if ordered { 1 } else { rules.len() })
    }

    /// Counts that the rule at `at` acted.
    pub fn fire(&mut self, at: usize) {
        self.fired[at] += 1;
    }
}

/// Returns the first of these rules whose phrase has the words of `text`.
pub fn same_words(rules: &[ScriptRule], among: &[usize], text: &str) -> Option<usize> {
    among.iter().copied().find(|at| same_meaning(text, &rules[*at].phrase))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::spec::Response;

    #[test]
    fn normal_forms() {
        for (text, expect) in [
            ("  What's  your  NAME? ", "whats your name"),
            ("ﬁne — twenty-one", "fine twenty one"),
            ("fine—and/or", "fine and or"),
            ("", ""),
            ("...", ""),
            ("Straße", "strasse"),
            ("ΟΔΟΣ, οδος", "οδοσ οδοσ"),
        ] {
            assert_eq!(normal_form(text), expect, "{text:?}");
        }
    }

    #[test]
    fn phrases_are_whole_words() {
        for (text, phrase, expect) in [
            ("May I have your date of birth, please?", "date of birth", true),
            ("the birthday date", "birth", false),
            ("goodbye", "good bye", false),
            ("anything", "", false),
            ("请告诉我您的出生日期。", "出生日期", true),
            ("请告诉我您的出生日期。", "日出", false),
            ("生年月日は何ですか", "生年月日", true),
            ("您的PIN码是多少？", "pin码", true),
            ("您的PINs码", "pin", false),
            ("생년월일을 말씀해 주세요", "말씀해 주세요", true),
            ("Press 1 for appointments.", "press one for", true),
            ("Press one or 2.", "press 1", false),
            ("Press one for appointments.", "press 1", true),
            ("Press 11 for appointments.", "press one", false),
            ("Marque 3.", "marque tres", true),
            ("Drücken Sie die 21.", "einundzwanzig", true),
            ("Marque vinte e um.", "marque 21", true),
            ("Appuyez sur soixante-dix.", "70", true),
            ("İkiye basın, iki.", "basın 2", true),
            ("Нажмите два.", "нажмите 2", true),
            ("اضغط على ٣", "اضغط على ثلاثة", true),
            ("दो दबाएँ", "2 दबाएँ", true),
            ("രണ്ട് അമർത്തുക", "2 അമർത്തുക", true),
            ("请按二", "按2", true),
            ("2番を押してください", "二番", true),
            ("삼번을 누르세요", "3", false),
            ("삼 번을 누르세요", "3 번을", true),
            ("bấm phím chín", "phím 9", true),
            ("撳三字", "3字", true),
            ("The code is four two one seven.", "code is 4217", true),
            ("Your number is 4, 7, 1, 1.", "4711", true),
            ("Your number is 4-7-1-1, is that right?", "number is 4711", true),
            ("Your number is 4711.", "4 7 1 1", true),
            ("Your number is 4, 1, 7, 1.", "4711", false),
            ("Your number is 4, 7, 1, 1, 2.", "4711", false),
            ("Please come on in.", "10", false),
            ("I told you once.", "11", false),
            ("Um, hello.", "1", false),
            ("Tecle um.", "tecle 1", true),
            ("one moment please", "2", false),
        ] {
            assert_eq!(contains_phrase(text, phrase), expect, "{text:?} {phrase:?}");
        }
    }

    #[test]
    fn meaning_is_word_overlap() {
        assert!(same_meaning("what is your date of birth", "asks your birth date"));
        assert!(!same_meaning("how can i help you today", "date of birth"));
        assert!(!same_meaning("", ""));
        assert!(same_meaning("您的出生日期是什么", "您的出生日期"));
        assert!(!same_meaning("我能帮您什么", "出生日期"));
    }

    fn rule(index: usize, matching: Matching, phrase: &str, first_n: Option<u32>) -> ScriptRule {
        ScriptRule { index, matching, phrase: phrase.into(), response: Response::Phrase("x".into()), first_n }
    }

    #[test]
    fn exact_rules_come_first_and_first_n_runs_out() {
        let rules = [
            rule(0, Matching::Context, "your date of birth", None),
            rule(1, Matching::Exact, "date of birth", Some(1)),
        ];
        let mut script = Script::new(2);
        assert_eq!(script.answer(&rules, false, "your date of birth", false), ByScript::Known(Some(1)));
        script.fire(1);
        assert_eq!(script.answer(&rules, false, "your date of birth", false), ByScript::Known(Some(0)));
        assert_eq!(script.answer(&rules, false, "hello", false), ByScript::Known(None));
    }

    #[test]
    fn ordered_rules_do_not_skip() {
        let rules = [rule(0, Matching::Exact, "first", None), rule(1, Matching::Exact, "second", None)];
        let mut script = Script::new(2);
        assert_eq!(script.answer(&rules, true, "second", false), ByScript::Known(None));
        assert_eq!(script.answer(&rules, true, "first", false), ByScript::Known(Some(0)));
        script.fire(0);
        assert_eq!(script.answer(&rules, true, "first", false), ByScript::Known(None));
        assert_eq!(script.answer(&rules, true, "second", false), ByScript::Known(Some(1)));
    }
}
