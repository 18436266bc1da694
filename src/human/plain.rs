//! Simple words and short sentences of a beginner in the language. It works without understanding: long sentences are
//! cut at clauses, rare words are replaced by frequent ones from a list. Names, numbers and facts stay.

use super::fluency::joined;
use super::numbers::Numbers;
use super::text::word_count;
use super::whole::Whole;
use super::{FluencyLevel, Profile};

/// Most words in a sentence.
const WORDS_MAX: usize = 10;
/// Fewest words before a cut.
const WORDS_MIN: usize = 3;
/// Words at which a clause begins, in any language that has blanks.
const CONJUNCTIONS: [&str; 61] = [
    "and",
    "but",
    "because",
    "so",
    "that",
    "which",
    "when",
    "if",
    "or",
    "while",
    "y",
    "pero",
    "porque",
    "que",
    "cuando",
    "und",
    "aber",
    "weil",
    "dass",
    "wenn",
    "oder",
    "et",
    "mais",
    "parce",
    "quand",
    "e",
    "mas",
    "quando",
    "ou",
    "since",
    "и",
    "но",
    "потому",
    "если",
    "когда",
    "или",
    "ve",
    "ama",
    "çünkü",
    "eğer",
    "veya",
    "और",
    "लेकिन",
    "क्योंकि",
    "अगर",
    "या",
    "لكن",
    "لأن",
    "إذا",
    "أو",
    "và",
    "nhưng",
    "vì",
    "nếu",
    "hoặc",
    "പക്ഷേ",
    "കാരണം",
    "그리고",
    "하지만",
    "그래서",
    "그런데",
];
/// Rare English words and a beginner's words for them.
const SIMPLE: [(&str, &str); 43] = [
    ("purchase", "buy"),
    ("purchased", "bought"),
    ("purchasing", "buying"),
    ("require", "need"),
    ("requires", "needs"),
    ("required", "needed"),
    ("assistance", "help"),
    ("assist", "help"),
    ("inquire", "ask"),
    ("inquiring", "asking"),
    ("enquire", "ask"),
    ("enquiring", "asking"),
    ("requesting", "asking for"),
    ("obtain", "get"),
    ("obtained", "got"),
    ("receive", "get"),
    ("received", "got"),
    ("commence", "start"),
    ("terminate", "end"),
    ("reschedule", "change"),
    ("rescheduling", "changing"),
    ("modify", "change"),
    ("modified", "changed"),
    ("residence", "home"),
    ("regarding", "about"),
    ("concerning", "about"),
    ("approximately", "about"),
    ("additional", "more"),
    ("sufficient", "enough"),
    ("however", "but"),
    ("therefore", "so"),
    ("immediately", "now"),
    ("currently", "now"),
    ("previously", "before"),
    ("subsequently", "later"),
    ("frequently", "often"),
    ("attempt", "try"),
    ("attempted", "tried"),
    ("discover", "find"),
    ("discovered", "found"),
    ("notify", "tell"),
    ("notified", "told"),
    ("inform", "tell"),
];

/// Returns a sentence in the words of a speaker of this level of fluency.
pub(super) fn manner(profile: &Profile, sentence: &str) -> String {
    match profile.fluency {
        FluencyLevel::Beginner => plain(sentence, &profile.language, &profile.traits),
        FluencyLevel::Native | FluencyLevel::Intermediate => sentence.to_owned(),
    }
}

/// Returns `sentence` as a beginner says it: one or more sentences of at most [`WORDS_MAX`] words.
///
/// The values of `facts`, names and numbers stay as they are; one that is longer than a sentence stays whole.
fn plain(sentence: &str, language: &str, facts: &[(String, String)]) -> String {
    if language == "en" { short(&simple(sentence, facts), language, facts) } else { short(sentence, language, facts) }
}

/// Returns a sentence with easy words in place of rare ones, as far as there are any without a language model.
pub(super) fn frequent_words(profile: &Profile, sentence: &str) -> String {
    match profile.language.as_str() {
        "en" => simple(sentence, &profile.traits),
        _ => sentence.to_owned(),
    }
}

fn simple(sentence: &str, facts: &[(String, String)]) -> String {
    let in_fact = |word: &str| facts.iter().any(|(_, value)| value.to_lowercase().contains(word));
    let change = |(at, word): (usize, &str)| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let lower = bare.to_lowercase();
        let name = at > 0 && bare.starts_with(char::is_uppercase);
        let found = SIMPLE.iter().find(|(rare, _)| *rare == lower).filter(|_| !name && !in_fact(&lower));
        found.map_or(word.to_owned(), |(_, easy)| {
            let easy = if bare.starts_with(char::is_uppercase) { capitalise(easy) } else { (*easy).to_owned() };
            word.replacen(bare, &easy, 1)
        })
    };
    sentence.split_whitespace().enumerate().map(change).collect::<Vec<_>>().join(" ")
}

fn short(sentence: &str, language: &str, facts: &[(String, String)]) -> String {
    let end = sentence.trim_end().chars().last().filter(|c| !c.is_alphanumeric()).unwrap_or('.');
    if word_count(sentence) <= WORDS_MAX {
        return sentence.to_owned();
    }
    let words: Vec<&str> = sentence.split_whitespace().collect();
    if words.len() <= WORDS_MAX {
        // Written without blanks: its clauses become sentences.
        let places = Whole::new(facts.iter().map(|(_, value)| value.as_str()), language).places(sentence);
        let closed = |(at, c): (usize, char)| match c {
            '\u{3001}' | '\u{ff0c}' if !places.iter().any(|place| place.contains(&at)) => '\u{3002}',
            c => c,
        };
        return sentence.char_indices().map(closed).collect();
    }
    let whole = kept_together(&words, language, facts);
    let (mut from, mut pieces) = (0, Vec::new());
    while words.len() - from > WORDS_MAX {
        let free = |at: &usize| !whole[at - 1];
        let places = || (from + WORDS_MIN..=from + WORDS_MAX).rev().filter(free);
        let closed = places().find(|at| words[at - 1].ends_with([',', ';', ':']));
        let begun = || places().find(|at| CONJUNCTIONS.contains(&words[*at].to_lowercase().as_str()));
        let anywhere = || (from + 1..=from + WORDS_MAX).rev().find(free);
        let later = || (from + WORDS_MAX + 1..words.len()).find(free);
        let Some(cut) = closed.or_else(begun).or_else(anywhere).or_else(later) else { break };
        pieces.push(closed_by(&words[from..cut], if language == "hi" { '।' } else { '.' }));
        from = cut;
    }
    pieces.push(closed_by(&words[from..], end));
    pieces.join(" ")
}

/// Returns for each word whether it belongs together with the next one.
fn kept_together(words: &[&str], language: &str, facts: &[(String, String)]) -> Vec<bool> {
    let numbers = Numbers::of(language);
    let pair = |at: usize| {
        let rest = &words[at + 1..];
        rest.first().is_some_and(|next| joined(words[at], next)) || numbers.joined(words[at], rest)
    };
    let mut whole: Vec<bool> = (0..words.len()).map(pair).collect();
    for (_, value) in facts {
        let value: Vec<&str> = value.split_whitespace().collect();
        if value.len() < 2 || value.len() > words.len() {
            continue;
        }
        let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        for at in 0..=words.len() - value.len() {
            if words[at..].iter().zip(&value).all(|(a, b)| bare(a) == bare(b)) {
                whole[at..at + value.len() - 1].fill(true);
            }
        }
    }
    whole
}

fn closed_by(words: &[&str], end: char) -> String {
    let text = words.join(" ");
    let text = text.trim_end_matches([',', ';', ':', end]);
    format!("{}{end}", capitalise(text))
}

/// Returns a text with a capital at its start; addresses and codes stay as they are.
fn capitalise(text: &str) -> String {
    let word = text.split_whitespace().next().unwrap_or_default().trim_end_matches([',', ';', ':', '.', '!', '?']);
    if word.contains(|c: char| !c.is_alphabetic() && !matches!(c, '\'' | '’' | '-')) {
        return text.to_owned();
    }
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::super::text::sentences;
    use super::*;

    fn check(text: &str, expect: &str) {
        let facts = [("street".to_owned(), "twelve old mill road north".to_owned())];
        assert_eq!(plain(text, "en", &facts), expect);
    }

    #[test]
    fn long_sentences_are_cut_at_clauses() {
        check("I need help.", "I need help.");
        check(
            "I am calling because my last bill was much higher than I expected, and nobody has told me why it is so high.",
            "I am calling. Because my last bill was much higher than I expected. And nobody has told me why it is so high.",
        );
        check(
            "Could you look at my account today or tell me who else in your office is able to do that?",
            "Could you look at my account today. Or tell me who else in your office is able. To do that?",
        );
    }

    #[test]
    fn sentences_of_every_language_are_short() {
        for (language, text) in [
            ("ru", "Я звоню вам сегодня по поводу моего счёта и хочу узнать почему он такой большой в этом месяце."),
            ("hi", "मैं आज आपको अपने बिल के बारे में फ़ोन कर रहा हूँ और जानना चाहता हूँ कि यह इतना ज़्यादा क्यों है।"),
            (
                "tr",
                "Bugün sizi faturam hakkında arıyorum çünkü bu ay neden bu kadar yüksek geldiğini gerçekten bilmek istiyorum.",
            ),
        ] {
            let said = plain(text, language, &[]);
            assert!(sentences(&said).len() > 1, "{said}");
            assert!(sentences(&said).iter().all(|sentence| word_count(sentence) <= WORDS_MAX), "{said}");
        }
    }

    #[test]
    fn rare_words_become_frequent_ones() {
        check("I require assistance regarding my bill.", "I need help about my bill.");
        check("Purchase is what I meant.", "Buy is what I meant.");
    }

    #[test]
    fn names_numbers_and_facts_stay_whole() {
        let facts = [("street".to_owned(), "twelve old mill road north".to_owned())];
        for before in 0..12 {
            for whole in ["Maria Luisa Alvarez", "four four one nine two", "twelve old mill road north"] {
                let text =
                    format!("{}{whole} and then we will see what can be done about it today.", "word ".repeat(before));
                let said = plain(&text, "en", &facts);
                let kept = said.to_lowercase().contains(&whole.to_lowercase());
                assert!(kept, "{said}");
                assert!(sentences(&said).iter().all(|sentence| word_count(sentence) <= WORDS_MAX), "{said}");
            }
        }
        check(
            "My other address for all of these letters is now ann_lee@example.com, which you can also use on Sunday.",
            "My other address for all of these letters is now. ann_lee@example.com, which you can also use on Sunday.",
        );
        let home = [("home".to_owned(), "南京路，十二号".to_owned())];
        let said = plain("你好我想预约医生，我住南京路，十二号，明天早上可以吗谢谢。", "zh", &home);
        assert_eq!(said, "你好我想预约医生。我住南京路，十二号。明天早上可以吗谢谢。");
    }
}
