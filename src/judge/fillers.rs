//! Phrases with which an agent fills time, in each language.

use ringer_human::phrases::phrases;

/// Phrases that agents say while they look something up, besides the filler words of a caller.
const PHRASES: [(&str, &[&str]); 15] = [
    (
        "en",
        &[
            "let me see",
            "let me check",
            "let me check that for you",
            "let me look that up",
            "one moment",
            "one moment please",
            "one second",
            "just a moment",
            "just a second",
            "hold on",
            "please hold",
            "okay",
        ],
    ),
    ("es", &["un momento", "un momento por favor", "déjeme ver", "déjeme comprobar", "a ver", "un segundo", "vale"]),
    ("pt", &["um momento", "um momento por favor", "deixe-me ver", "deixa eu ver", "só um momento", "um segundo"]),
    ("ja", &["少々お待ちください", "少々お待ち下さい", "えっと", "えーと", "そうですね", "確認いたします"]),
    ("tr", &["bir dakika", "bir saniye", "bir bakayım", "hemen bakıyorum", "lütfen bekleyin"]),
    ("hi", &["एक मिनट", "एक क्षण", "रुकिए", "देखती हूँ", "देखता हूँ", "ज़रा रुकिए"]),
    ("ar", &["لحظة", "لحظة من فضلك", "دعني أرى", "دقيقة من فضلك", "انتظر قليلا"]),
    ("ru", &["минутку", "одну минуту", "секунду", "одну секунду", "сейчас посмотрю", "давайте посмотрим", "подождите"]),
    ("zh", &["请稍等", "稍等", "稍等一下", "等一下", "我看一下", "让我看看", "好的"]),
    ("ml", &["ഒരു നിമിഷം", "ഒരു മിനിറ്റ്", "നോക്കട്ടെ"]),
    (
        "fr",
        &["un instant", "un instant s'il vous plaît", "un moment", "une seconde", "voyons", "je regarde", "d'accord"],
    ),
    ("yue", &["等一等", "請等等", "請稍等", "我睇下", "等我睇下"]),
    ("vi", &["xin chờ một chút", "chờ một chút", "để tôi xem", "để tôi kiểm tra", "một lát"]),
    (
        "de",
        &["einen moment", "einen moment bitte", "einen augenblick", "moment", "ich schaue nach", "mal sehen", "okay"],
    ),
    ("ko", &["잠시만요", "잠시만 기다려 주세요", "잠깐만요", "확인해 보겠습니다", "어디 보자"]),
];

/// Returns the phrases that only fill time, in lower case: those of a language, and `more`.
pub fn fillers(language: &str, more: &[String]) -> Vec<String> {
    let known = PHRASES.iter().find(|(code, _)| *code == language);
    let built_in = phrases(language).fillers.iter().chain(known.unwrap_or(&PHRASES[0]).1);
    let all = built_in.copied().chain(more.iter().map(String::as_str));
    let mut fillers: Vec<String> = all.map(str::to_lowercase).collect();
    fillers.sort_unstable();
    fillers.dedup();
    fillers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_has_its_own_and_what_is_added() {
        for (language, has, lacks) in [
            ("en", "let me check", "un momento"),
            ("es", "un momento", "one moment"),
            ("xx", "one moment", "un momento"),
        ] {
            let all = fillers(language, &["Bear With Me".into()]);
            let holds = |phrase: &str| all.iter().any(|filler| filler == phrase);
            assert!(holds(has) && holds("bear with me") && !holds(lacks), "{language}: {all:?}");
        }
        assert!(fillers("en", &[]).contains(&"um".to_owned()));
    }
}
