//! Detection of the language that the agent speaks, turn by turn: by the recognizer, else by the text. The reaction to
//! it is not here.
//!
//! The first turn whose language is detected decides, and after it two turns in a row in another language. A turn
//! without evidence (a name, a number, `OK`) is skipped. Texts are compared with the languages that Digital Humans
//! speak: any other language appears as the nearest of these. Cantonese is told from Chinese by characters that only it
//! uses; where a recognizer writes it as standard Chinese, it is taken for `zh`.

use ringer_media::detected_language::DetectedLanguage;
use whatlang::{Detector, Lang, Script};
use whichlang::detect_language;

/// Languages by code, with their detector and their names in recognizers' output.
const LANGUAGES: [(&str, Option<Lang>, &[&str]); 15] = [
    ("en", Some(Lang::Eng), &["english", "eng"]),
    ("es", Some(Lang::Spa), &["spanish", "castilian", "spa"]),
    ("pt", Some(Lang::Por), &["portuguese", "por"]),
    ("ja", Some(Lang::Jpn), &["japanese", "jpn"]),
    ("tr", Some(Lang::Tur), &["turkish", "tur"]),
    ("hi", Some(Lang::Hin), &["hindi", "hin"]),
    ("ar", Some(Lang::Ara), &["arabic", "ara"]),
    ("ru", Some(Lang::Rus), &["russian", "rus"]),
    ("zh", Some(Lang::Cmn), &["chinese", "mandarin", "zho", "chi", "cmn"]),
    ("ml", Some(Lang::Mal), &["malayalam", "mal"]),
    ("fr", Some(Lang::Fra), &["french", "fra", "fre"]),
    ("yue", None, &["cantonese"]),
    ("vi", Some(Lang::Vie), &["vietnamese", "vie"]),
    ("de", Some(Lang::Deu), &["german", "deu", "ger"]),
    ("ko", Some(Lang::Kor), &["korean", "kor"]),
];
/// Characters of written Cantonese that standard Chinese does not use.
const CANTONESE: [char; 14] = ['嘅', '喺', '唔', '咗', '哋', '嚟', '冇', '啲', '佢', '嗰', '嘢', '咁', '攞', '喎'];
/// Fewest letters from which a language in Latin script is detected; with [`WORDS_MIN`], since fewer words are often
/// names.
const LETTERS_MIN: usize = 8;
const WORDS_MIN: usize = 3;
/// Least confidence, 0 to 1, at which fewer words are enough where both detectors agree.
const CONFIDENCE_MIN: f64 = 0.3;

/// Source of a language that a recognizer only supposes.
const HINT: &str = "recognizer_hint";

/// A detected language with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Language code: `en`, `es`, ...; the recognizer's name for a language that Digital Humans do not speak.
    pub language: String,
    /// Source: `recognizer`, `recognizer_hint` (supposed in two turns) or `text`.
    pub by: &'static str,
}

/// Detects the language of one conversation.
#[derive(Debug, Default)]
pub struct Follower {
    /// Turns in order of their onsets, with their languages.
    turns: Vec<(i64, Option<Found>)>,
    /// Language that was returned last.
    taken: Option<String>,
}

impl Follower {
    /// Adds a turn with its text and the recognizer's evidence, and returns a change of the spoken language with the
    /// deciding turn.
    ///
    /// `turn` is the onset of the turn: later turns have higher numbers. `None`: the language is the one returned last.
    pub fn hear(&mut self, turn: i64, text: &str, detected: &DetectedLanguage) -> Option<(i64, Found)> {
        let found = detect(text, detected);
        match self.turns.binary_search_by_key(&turn, |(turn, _)| *turn) {
            Ok(at) => self.turns[at].1 = found,
            Err(at) => self.turns.insert(at, (turn, found)),
        }
        let (turn, found) = self.current()?;
        let is_news = self.taken.as_ref() != Some(&found.language);
        let news = is_news.then(|| (turn, found.clone()))?;
        self.taken = Some(news.1.language.clone());
        Some(news)
    }

    /// True if the language of some turn was detected.
    pub fn has_found(&self) -> bool {
        self.taken.is_some()
    }

    fn current(&self) -> Option<(i64, &Found)> {
        let mut spoken: Option<(i64, &Found)> = None;
        // The turn before, of those in a row whose language differs.
        let mut before: Option<&Found> = None;
        for (turn, found) in self.turns.iter().filter_map(|(turn, found)| Some((*turn, found.as_ref()?))) {
            let decides = match spoken {
                None => found.by != HINT || before.is_some_and(|before| before.language == found.language),
                Some((_, spoken)) => spoken.language != found.language && before.is_some(),
            };
            let differs = spoken.is_none_or(|(_, spoken)| spoken.language != found.language);
            before = (differs && !decides).then_some(found);
            if decides {
                spoken = Some((turn, found));
            }
        }
        spoken
    }
}

fn detect(text: &str, detected: &DetectedLanguage) -> Option<Found> {
    match detected {
        DetectedLanguage::Detected(name) => Some(Found { language: code(name), by: "recognizer" }),
        DetectedLanguage::Hinted(name) => Some(Found { language: code(name), by: HINT }),
        DetectedLanguage::Unknown => Some(Found { language: of_text(text)?.to_owned(), by: "text" }),
        DetectedLanguage::Fixed => None,
    }
}

/// Returns the code of a language from its code, its tag (`es-MX`, `zh-HK`) or its English name; any other name in
/// lower case.
fn code(name: &str) -> String {
    let name = name.to_lowercase().replace('_', "-");
    if matches!(name.as_str(), "zh-hk" | "zh-yue") {
        return "yue".to_owned();
    }
    let first = name.split('-').next().unwrap_or_default();
    let known = LANGUAGES.iter().find(|(code, _, names)| *code == first || names.contains(&first));
    known.map_or_else(|| first.to_owned(), |(code, ..)| (*code).to_owned())
}

/// Returns the language of a text; `None` when the text has too little evidence.
pub fn of_text(text: &str) -> Option<&'static str> {
    let among = LANGUAGES.iter().filter_map(|(_, lang, _)| *lang).collect();
    let by_script = Detector::with_allowlist(among).detect(text)?;
    if by_script.script() != Script::Latin {
        let (code, ..) = LANGUAGES.iter().find(|(_, lang, _)| *lang == Some(by_script.lang()))?;
        let is_cantonese = *code == "zh" && text.contains(CANTONESE);
        return Some(if is_cantonese { "yue" } else { code });
    }
    let nearest = detect_language(text).three_letter_code();
    let (code, lang, _) = LANGUAGES.iter().find(|(.., names)| names.contains(&nearest))?;
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let words = text.split_whitespace().filter(|word| word.contains(char::is_alphabetic)).count();
    let both = *lang == Some(by_script.lang()) && by_script.confidence() >= CONFIDENCE_MIN;
    (letters >= LETTERS_MIN && (words >= WORDS_MIN || both)).then_some(*code)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns as recognizers write them: lower case, no punctuation.
    const TURNS: [(&str, &str); 32] = [
        ("en", "hello thank you for calling the front desk how can i help you"),
        ("en", "sure what is your date of birth please"),
        ("es", "hola gracias por llamar en qué puedo ayudarle hoy"),
        ("es", "claro cuál es su fecha de nacimiento"),
        ("es", "buenos dias en que le puedo ayudar"),
        ("pt", "olá obrigado por ligar como posso ajudar você hoje"),
        ("pt", "claro qual é a sua data de nascimento"),
        ("ja", "お電話ありがとうございます どうされましたか"),
        ("ja", "かしこまりました お名前をお願いします"),
        ("tr", "merhaba aradığınız için teşekkür ederiz size nasıl yardımcı olabilirim"),
        ("tr", "doğum tarihinizi alabilir miyim lütfen"),
        ("hi", "नमस्ते कॉल करने के लिए धन्यवाद मैं आपकी क्या मदद कर सकता हूँ"),
        ("hi", "आपका नाम क्या है"),
        ("ar", "مرحبا شكرا لاتصالك كيف يمكنني مساعدتك"),
        ("ar", "ما هو تاريخ ميلادك من فضلك"),
        ("ru", "здравствуйте спасибо за звонок чем могу помочь"),
        ("ru", "назовите пожалуйста вашу дату рождения"),
        ("zh", "您好感谢您的来电请问有什么可以帮您"),
        ("zh", "請問您的出生日期是什麼時候"),
        ("ml", "വിളിച്ചതിന് നന്ദി ഞാൻ എങ്ങനെ സഹായിക്കണം"),
        ("ml", "നിങ്ങളുടെ പേര് എന്താണ്"),
        ("fr", "bonjour merci de votre appel comment puis je vous aider"),
        ("fr", "quelle est votre date de naissance s'il vous plaît"),
        ("yue", "多謝你打嚟 請問有咩可以幫到你"),
        ("yue", "唔該你講吓你嘅出生日期"),
        ("vi", "xin chào cảm ơn quý khách đã gọi tôi có thể giúp gì cho bạn"),
        ("vi", "cho tôi xin ngày sinh của bạn"),
        ("de", "guten tag vielen dank für ihren anruf wie kann ich ihnen helfen"),
        ("de", "wie ist bitte ihr geburtsdatum"),
        ("ko", "안녕하세요 전화 주셔서 감사합니다 무엇을 도와드릴까요"),
        ("ko", "성함이 어떻게 되세요"),
        ("fr", "un instant je vérifie votre dossier"),
    ];

    #[test]
    fn a_turn_tells_its_language() {
        for (expect, text) in TURNS {
            assert_eq!(of_text(text), Some(expect), "{text}");
        }
    }

    #[test]
    fn what_tells_nothing_is_not_guessed() {
        for text in ["", "   ", "42 17 3", "ok", "hm", "maria", "peter schmidt", "maria fernandez", "..."] {
            assert_eq!(of_text(text), None, "{text}");
        }
    }

    #[test]
    fn recognizers_name_languages_in_many_ways() {
        let ways = [
            ("english", "en"),
            ("es", "es"),
            ("es-MX", "es"),
            ("pt_BR", "pt"),
            ("Chinese", "zh"),
            ("cmn", "zh"),
            ("zh-HK", "yue"),
            ("cantonese", "yue"),
            ("DEU", "de"),
            ("italian", "italian"),
            ("it", "it"),
        ];
        for (name, expect) in ways {
            assert_eq!(code(name), expect, "{name}");
        }
    }

    #[test]
    fn a_hint_counts_when_the_next_turn_has_the_same() {
        let check = |hints: &[&str], expect: &[Option<&str>]| {
            let mut follower = Follower::default();
            let mut heard = |(turn, name): (i64, &&str)| {
                let declared = DetectedLanguage::Hinted((*name).to_owned());
                follower.hear(turn, "x", &declared).map(|(_, found)| (found.language, found.by))
            };
            let answers: Vec<_> = (0..).zip(hints).map(&mut heard).collect();
            let expect: Vec<_> = expect.iter().map(|name| name.map(|name| (name.to_owned(), HINT))).collect();
            assert_eq!(answers, expect, "{hints:?}");
        };
        check(&["es", "es", "es"], &[None, Some("es"), None]);
        check(&["es", "pt", "pt", "es"], &[None, None, Some("pt"), None]);
        check(&["es", "es", "en", "en"], &[None, Some("es"), None, Some("en")]);
    }

    const EN: &str = "hello how can i help you today";
    const ES: &str = "hola en qué puedo ayudarle hoy";
    const DE: &str = "guten tag wie kann ich ihnen helfen";

    /// Checks the answers to these turns in order.
    fn check(turns: &[&str], expect: &[Option<&str>]) {
        let mut follower = Follower::default();
        let answers: Vec<Option<String>> = (0..)
            .zip(turns)
            .map(|(turn, text)| follower.hear(turn, text, &DetectedLanguage::Unknown).map(|(_, found)| found.language))
            .collect();
        let answers: Vec<Option<&str>> = answers.iter().map(Option::as_deref).collect();
        assert_eq!(answers, expect, "{turns:?}");
    }

    #[test]
    fn the_first_turn_decides_and_two_in_a_row_decide_anew() {
        check(&[EN, EN, EN], &[Some("en"), None, None]);
        check(&[ES, ES], &[Some("es"), None]);
        check(&["ok", ES], &[None, Some("es")]);
        check(&[ES, EN, ES, EN, ES], &[Some("es"), None, None, None, None]);
        check(&[ES, EN, EN, EN], &[Some("es"), None, Some("en"), None]);
        check(&[ES, EN, "ok", EN], &[Some("es"), None, None, Some("en")]);
        check(&[ES, EN, DE], &[Some("es"), None, Some("de")]);
    }

    #[test]
    fn a_turn_that_goes_on_is_one_turn() {
        let mut follower = Follower::default();
        let mut heard =
            |turn, text: &str| follower.hear(turn, text, &DetectedLanguage::Unknown).map(|(_, found)| found.language);
        assert_eq!(heard(0, ES).as_deref(), Some("es"));
        assert_eq!(heard(16_000, EN), None);
        assert_eq!(heard(16_000, &format!("{EN} {EN}")), None, "twice of the same turn");
        assert_eq!(heard(32_000, EN).as_deref(), Some("en"));
    }

    #[test]
    fn the_recognizer_knows_better_than_its_text() {
        let mut follower = Follower::default();
        let es = DetectedLanguage::Detected("spanish".into());
        let expect = Found { language: "es".into(), by: "recognizer" };
        assert_eq!(follower.hear(5, "ok", &es), Some((5, expect)));
        let mut deaf = Follower::default();
        assert_eq!(deaf.hear(5, ES, &DetectedLanguage::Fixed), None);
        assert!(!deaf.has_found() && follower.has_found());
    }
}
