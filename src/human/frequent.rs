//! The 2,000 most frequent words of each language, which are all that a beginner knows, and the words of a sentence
//! that are not among them. The lists are those of wordfreq (`frequent/NOTICE`), which has none for Malayalam and
//! Cantonese.
//!
//! A word counts by its form, as the lists have it. Where words are written without blanks, or carry endings (Korean),
//! a word is known if known ones make it up.

use std::collections::HashSet;
use std::sync::OnceLock;

use ringer_media::numerals::fold_word;

use super::Profile;
use super::fluency::joined;
use super::numbers::Numbers;
use super::whole::Whole;
use super::words::is_unspaced;

/// Words of a list.
pub const COUNT: usize = 2000;

static TEXTS: [(&str, &str); 13] = [
    ("en", include_str!("frequent/en.txt")),
    ("es", include_str!("frequent/es.txt")),
    ("pt", include_str!("frequent/pt.txt")),
    ("ja", include_str!("frequent/ja.txt")),
    ("tr", include_str!("frequent/tr.txt")),
    ("hi", include_str!("frequent/hi.txt")),
    ("ar", include_str!("frequent/ar.txt")),
    ("ru", include_str!("frequent/ru.txt")),
    ("zh", include_str!("frequent/zh.txt")),
    ("fr", include_str!("frequent/fr.txt")),
    ("vi", include_str!("frequent/vi.txt")),
    ("de", include_str!("frequent/de.txt")),
    ("ko", include_str!("frequent/ko.txt")),
];

/// Words of a language as they are compared, and the letters of the longest.
struct List {
    words: HashSet<String>,
    longest: usize,
}

/// Lists as they were read, at first use of their language.
static READ: [OnceLock<List>; TEXTS.len()] = [const { OnceLock::new() }; TEXTS.len()];

impl List {
    /// Returns the list of a language (`en`, `es`, ...); `None`: there is none.
    fn of(language: &str) -> Option<&'static List> {
        let at = TEXTS.iter().position(|(code, _)| *code == language)?;
        Some(READ[at].get_or_init(|| {
            let words: HashSet<String> = TEXTS[at].1.lines().map(|word| form(language, word)).collect();
            let longest = words.iter().map(|word| word.chars().count()).max().unwrap_or(0);
            List { words, longest }
        }))
    }
}

/// Titles before a family name in German, where every noun has a capital.
const TITLES: [&str; 6] = ["Herr", "Herrn", "Frau", "Dr", "Doktor", "Familie"];

/// True if the frequent words of a language (`en`, `es`, ...) are known.
pub fn has_list(language: &str) -> bool {
    TEXTS.iter().any(|(code, _)| *code == language)
}

/// Returns a word as it is compared.
fn form(language: &str, word: &str) -> String {
    match language {
        "hi" | "ar" => fold_word(language, word),
        "tr" => word.replace('I', "ı").replace('İ', "i").to_lowercase(),
        _ => word.to_lowercase().replace('’', "'"),
    }
}

/// Returns the words of a sentence that are not among the frequent ones of the speaker's language, once each.
///
/// Numbers, names, and values of traits are left out; in a language without a list there are none.
pub(super) fn rare(profile: &Profile, sentence: &str) -> Vec<String> {
    let language = profile.language.as_str();
    let Some(list) = List::of(language) else { return Vec::new() };
    let (whole, numbers) = (Whole::of(profile), Numbers::of(language));
    let exempt = whole.places(sentence);
    let at = |word: &str| word.as_ptr() as usize - sentence.as_ptr() as usize;
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let mut found: Vec<String> = Vec::new();
    for (index, &word) in words.iter().enumerate() {
        let from = at(word);
        let is_exempt = exempt.iter().any(|place| place.start < from + word.len() && from < place.end);
        let is_name = is_name(language, index.checked_sub(1).map(|before| words[before]), word, words.get(index + 1));
        if is_unspaced_language(language) {
            let letters: String = word
                .char_indices()
                .filter(|(i, _)| !exempt.iter().any(|place| place.contains(&(from + i))))
                .map(|(_, c)| c)
                .collect();
            found.extend(list.find_uncovered(&letters));
        } else if !is_exempt && !is_name && !numbers.holds(word) && !list.knows(language, word) {
            found.push(bare(word).to_lowercase());
        }
    }
    let mut seen = HashSet::new();
    found.retain(|word| seen.insert(word.clone()));
    found
}

fn is_unspaced_language(language: &str) -> bool {
    matches!(language, "ja" | "zh")
}

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric() && !ringer_media::numerals::is_mark(c))
}

/// True for a word that a capital inside a sentence, or a title, shows as a name.
fn is_name(language: &str, before: Option<&str>, word: &str, next: Option<&&str>) -> bool {
    let Some(before) = before else { return next.is_some_and(|next| language != "de" && joined(word, next)) };
    let is_capital = bare(word).starts_with(char::is_uppercase);
    let begins = before.ends_with(['.', '!', '?', ':', '…', '।', '؟']);
    if language == "de" {
        return is_capital
            && (TITLES.contains(&bare(before)) || (before.ends_with('.') && TITLES.contains(&bare(before))));
    }
    is_capital && (!begins || next.is_some_and(|next| joined(word, next)) || joined(before, word))
}

impl List {
    /// True if the list has the word, or all parts of it between apostrophes and dashes.
    fn knows(&self, language: &str, word: &str) -> bool {
        let whole = form(language, bare(word));
        if whole.is_empty() || !whole.contains(char::is_alphabetic) || self.words.contains(&whole) {
            return true;
        }
        if whole.contains(char::is_numeric) || whole.contains(['@', '/']) {
            return true;
        }
        if language == "ko" {
            return self.find_uncovered(&whole).is_empty();
        }
        let mut parts = whole.split(['\'', '-', '–']).filter(|part| !part.is_empty()).peekable();
        let is_compound = whole.contains(['\'', '-', '–']);
        is_compound && parts.peek().is_some() && parts.all(|part| self.words.contains(part))
    }

    /// Returns the stretches of letters that known words do not make up, with the fewest letters left out.
    fn find_uncovered(&self, text: &str) -> Vec<String> {
        let letters: Vec<char> = text.to_lowercase().chars().collect();
        let count = letters.len();
        // Fewest letters left out from each place on, and the place at which the next word begins.
        let mut best = vec![(0usize, count); count + 1];
        for from in (0..count).rev() {
            let skipped = usize::from(letters[from].is_alphabetic());
            best[from] = (best[from + 1].0 + skipped, from + 1);
            for to in (from + 1..=(from + self.longest).min(count)).rev() {
                let word: String = letters[from..to].iter().collect();
                if best[to].0 < best[from].0 && self.words.contains(&word) {
                    best[from] = (best[to].0, to);
                }
            }
        }
        let (mut rest, mut open, mut at) = (Vec::new(), String::new(), 0);
        while at < count {
            let (left, next) = best[at];
            if left > best[next].0 {
                open.push(letters[at]);
            } else if !open.is_empty() {
                rest.push(std::mem::take(&mut open));
            }
            at = next;
        }
        rest.extend((!open.is_empty()).then_some(open));
        rest.retain(|word| word.contains(|c: char| is_unspaced(c) || c.is_alphabetic()));
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(language: &str, sentence: &str, expect: &[&str]) {
        let traits = vec![("street".to_owned(), "quagmire lane".to_owned()), ("ort".into(), "崎玉".into())];
        let profile = Profile { language: language.into(), name: "Zebulon Quirk".into(), traits, ..Profile::default() };
        assert_eq!(rare(&profile, sentence), expect, "{sentence}");
    }

    #[test]
    fn every_list_has_its_words() {
        for (language, text) in TEXTS {
            assert_eq!(text.lines().count(), COUNT, "{language}");
            let list = List::of(language).expect("it is there");
            assert!(list.words.len() > COUNT * 9 / 10 && list.longest < 40, "{language}");
        }
        let without: Vec<&str> = ringer_media::numerals::languages().filter(|code| !has_list(code)).collect();
        assert_eq!(without, ["ml", "yue"]);
    }

    #[test]
    fn rare_words_are_found_and_names_numbers_and_facts_are_not() {
        check("en", "I want to talk about my bill.", &[]);
        check("en", "I'd like a colonoscopy, don't you?", &["colonoscopy"]);
        check("en", "I met Maria Alvarez of Zutphen on quagmire lane, zebulon quirk.", &[]);
        check("en", "It is four hundred and twelve, or 4412, ann_lee@example.com.", &[]);
        check("en", "The reimbursement of the reimbursement is overdue.", &["reimbursement", "overdue"]);
        check("de", "Ich möchte mit Herrn Grabowski über die Rückerstattung sprechen.", &["rückerstattung"]);
        check("fr", "J'ai besoin d'un remboursement.", &["remboursement"]);
        check("es", "Necesito hablar con el doctor sobre una radiografía.", &["radiografía"]);
        check("tr", "İyi günler, ISTANBUL için röntgen istiyorum.", &["röntgen"]);
        check("ru", "Мне нужна флюорография сегодня.", &["флюорография"]);
        check("hi", "मुझे आज कोलोनोस्कोपी चाहिए।", &["कोलोनोस्कोपी"]);
        check("ml", "എനിക്ക് കൊളോനോസ്കോപ്പി വേണം.", &[]);
    }

    #[test]
    fn words_without_blanks_are_made_up_of_known_ones() {
        check("zh", "我想要一个内窥镜。", &["窥镜"]);
        check("ja", "私は崎玉にいます。", &[]);
        check("ko", "나는 사람을 보고 있다.", &[]);
    }
}
