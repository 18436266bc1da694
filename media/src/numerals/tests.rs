//! Numbers in texts of each language, and words that are no numbers.

use super::*;

/// Returns the digits of the numbers in a text, ordinals with `#` and weak ones with `~`.
fn describe(language: &str, text: &str) -> String {
    let numerals = Numerals::of(language).expect("the language is known");
    let numbers = numerals.find(text).into_iter().map(|number| {
        let mark = match number.form {
            Form::Digits | Form::Words => "",
            Form::Weak => "~",
            Form::Scale => "x",
            Form::Ordinal => "#",
        };
        format!("{mark}{}", number.digits)
    });
    numbers.collect::<Vec<_>>().join(" ")
}

#[test]
fn numbers_of_several_words_are_one_value() {
    for (language, text, expect) in [
        ("en", "one two three, twenty-four", "1 2 3 24"),
        ("en", "nineteen eighty-eight; two thousand and five", "19 88 2005"),
        ("en", "one million two hundred thousand", "1200000"),
        ("en", "double five triple one oh", "55 111 0"),
        ("en", "five hundred and twelve and six", "512 6"),
        ("en", "thousand thanks, March third", "x1000 #3"),
        ("es", "mil novecientos ochenta y ocho y cinco", "1988 5"),
        ("es", "diez y seis, veintitrés", "16 23"),
        ("pt", "mil novecentos e oitenta e oito", "1988"),
        ("pt", "sete e meia", "7 ~6"),
        ("fr", "mille neuf cent quatre-vingt-dix-huit", "1998"),
        ("fr", "soixante et onze, soixante-dix-sept, vingt et un", "71 77 21"),
        ("fr", "zéro six douze trente-quatre", "0 6 12 34"),
        ("de", "neunzehnhundertachtundachtzig", "1988"),
        ("de", "zweitausendfünf, acht und achtzig, drei und vier", "2005 88 3 4"),
        ("de", "am dritten, am achtundzwanzigsten", "#3 #28"),
        ("tr", "bin dokuz yüz seksen sekiz, ikibinbeş", "1988 2005"),
        ("tr", "on iki, yirmibeş", "12 25"),
        ("ru", "тысяча девятьсот восемьдесят восьмого", "1980 #8"),
        ("ru", "две тысячи пять, двадцать три", "2005 23"),
        ("ar", "ألف وتسعمائة وثمانية وثمانين", "1988"),
        ("ar", "خمسة عشر، ثلاثة وعشرون، ألفين", "15 23 2000"),
        ("hi", "उन्नीस सौ अट्ठासी, दो हज़ार पाँच", "1988 2005"),
        ("hi", "पांच हजार", "5000"),
        ("ml", "ആയിരത്തി തൊള്ളായിരത്തി എൺപത്തിയെട്ട്", "1988"),
        ("ml", "ഇരുപത്തിമൂന്ന് മൂന്നാം", "23 #3"),
        ("vi", "một nghìn chín trăm tám mươi tám", "1988"),
        ("vi", "mười lăm, hai mươi mốt, một trăm linh năm", "15 21 105"),
        ("ko", "천구백팔십팔년 삼월 십오일에", "1988 3 15"),
        ("ko", "공일공 일이삼사입니다", "0 1 0 1 2 3 4"),
        ("ko", "하나만, 그럼 이만, 천만에요", "1 ~2"),
        ("zh", "一千零五，二十三，一九八八年", "1005 23 1 9 8 8"),
        ("zh", "一万二千，千万不要，万一", "12000 1"),
        ("ja", "千九百八十八年、二万五千円", "1988 25000"),
        ("ja", "ゼロきゅうゼロ", "0 9 0"),
        ("ja", "お客さんに", ""),
        ("yue", "廿三，九一二三", "23 9 1 2 3"),
    ] {
        assert_eq!(describe(language, text), expect, "{language}: {text}");
    }
}

#[test]
fn digits_of_every_script_are_numbers() {
    for (language, text, expect) in [
        ("ar", "١٢٣٤", "1234"),
        ("hi", "०१२ और ३", "012 3"),
        ("ml", "൧൨", "12"),
        ("ja", "１２３番", "123"),
        ("en", "M-4411x", "4411"),
    ] {
        assert_eq!(describe(language, text), expect, "{language}: {text}");
    }
}

#[test]
fn other_words_are_no_numbers() {
    for (language, text) in [
        ("en", "someone often weighs tents"),
        ("de", "Neunkirchen, Dreieich, Siebener, Achtung, beachten"),
        ("tr", "onun biraz birbiri"),
        ("fr", "centre, sixtine, dixie"),
        ("ko", "안녕하세요 일요일 사람 만나서"),
        ("ru", "семья, пятница, стол"),
        ("ar", "وحدة وقت"),
        ("hi", "दोस्त, सातवाहन"),
    ] {
        assert_eq!(describe(language, text), "", "{language}: {text}");
    }
}

#[test]
fn every_language_has_its_digits_scales_and_tens() {
    assert_eq!(languages().count(), 15);
    for language in languages() {
        let numerals = Numerals::of(language).expect("it is known");
        let values: Vec<u64> = numerals
            .words
            .values()
            .filter_map(|unit| match unit {
                Unit::Add { value, .. } => Some(*value),
                Unit::Times(scale) => Some(*scale),
                Unit::Gap => Some(0),
                _ => None,
            })
            .collect();
        for value in (0..=10).chain([100, 1000]) {
            assert!(values.contains(&value), "{language} has no {value}");
        }
    }
    assert!(Numerals::of("xx").is_none());
}

#[test]
fn numbers_become_digits_and_the_rest_stays() {
    for (language, text, expect) in [
        ("en", "Press one for sales.", "Press 1 for sales."),
        ("de", "Drücken Sie die Zwei.", "Drücken Sie die 2."),
        ("ru", "Нажмите три.", "Нажмите 3."),
        ("zh", "请按二。", "请按2。"),
        ("ko", "삼번을 누르세요", "3번을 누르세요"),
        ("xx", "one", "one"),
    ] {
        assert_eq!(in_digits(language, text), expect, "{language}");
    }
}

#[test]
fn long_words_end_the_search() {
    let long = "ein".repeat(5000);
    assert_eq!(describe("de", &long), "");
    assert_eq!(describe("ko", &"일".repeat(50)), vec!["1"; 50].join(" "));
}
