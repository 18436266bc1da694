//! Redaction in every language that callers speak: private numbers in digits and in words, and numbers that stay.

use super::super::*;

/// Sentences of a language with what is left of them; the same text: it stays whole.
type Cases = (&'static str, &'static [(&'static str, &'static str)]);

const EUROPEAN: [Cases; 7] = [
    (
        "en",
        &[
            ("My code is twelve thirty-four.", "My code is [NUMBER]."),
            ("It costs two thousand five hundred dollars.", "It costs [NUMBER] dollars."),
            ("I was born on the third of March.", "I was born on [DATE]."),
            ("Card four one one one, one one one one, one one one one, one one one one.", "Card [CARD]."),
            ("Write to jo underscore doe at gmail.com please.", "Write to [EMAIL] please."),
            ("Double five five, oh one oh four.", "[PHONE]."),
            (
                "See you at ten thirty, it takes twenty-four hours.",
                "See you at ten thirty, it takes twenty-four hours.",
            ),
            (
                "May I have two tickets to March Street for April Jones?",
                "May I have two tickets to March Street for April Jones?",
            ),
            ("A thousand thanks, one of five or six people.", "A thousand thanks, one of five or six people."),
            ("Look at me.", "Look at me."),
        ],
    ),
    (
        "es",
        &[
            ("Mi número es el 612 345 678.", "Mi número es el [PHONE]."),
            ("Es el seis uno dos, tres cuatro cinco, seis siete ocho.", "Es el [PHONE]."),
            ("El código es doce treinta y cuatro.", "El código es [NUMBER]."),
            ("Nací el 3 de marzo de 1988.", "Nací el [DATE]."),
            ("Nací el tres de marzo de mil novecientos ochenta y ocho.", "Nací el [DATE]."),
            ("Mi correo es maria punto lopez arroba ejemplo punto com.", "Mi correo es [EMAIL]."),
            ("Escriba a maria.lopez@ejemplo.es, por favor.", "Escriba a [EMAIL], por favor."),
            ("Mi DNI es 12345678Z.", "Mi DNI es [ID]."),
            ("Somos dos o tres, en marzo, a las cinco y media.", "Somos dos o tres, en marzo, a las cinco y media."),
            ("Mil gracias, soy Marta Abril de Ciudad Real.", "Mil gracias, soy Marta Abril de Ciudad Real."),
        ],
    ),
    (
        "pt",
        &[
            ("O meu telefone é 912 345 678.", "O meu telefone é [PHONE]."),
            ("É nove um dois, três quatro cinco, meia sete oito.", "É [PHONE]."),
            ("Nasci em 3 de março de 1988.", "Nasci em [DATE]."),
            ("Nasci em três de março de mil novecentos e oitenta e oito.", "Nasci em [DATE]."),
            ("É ana ponto silva arroba exemplo ponto com ponto br.", "É [EMAIL]."),
            ("O CPF é 529.982.247-25.", "O CPF é [ID]."),
            ("São dois ou três, às sete e meia, em março.", "São dois ou três, às sete e meia, em março."),
            ("Mil vezes obrigada, sou a Ana de Três Rios.", "Mil vezes obrigada, sou a Ana de Três Rios."),
        ],
    ),
    (
        "fr",
        &[
            ("Mon numéro est le 06 12 34 56 78.", "Mon numéro est le [PHONE]."),
            ("C'est le zéro six douze trente-quatre cinquante-six soixante-dix-huit.", "C'est le [PHONE]."),
            ("Le code est quatre-vingt-dix-huit douze.", "Le code est [NUMBER]."),
            ("Je suis né le 1er mars 1988.", "Je suis né le [DATE]."),
            ("Je suis né le trois mars mille neuf cent quatre-vingt-huit.", "Je suis né le [DATE]."),
            ("Mon adresse est marie point dupont arobase exemple point fr.", "Mon adresse est [EMAIL]."),
            ("On sera deux ou trois, en mars, pour un moment.", "On sera deux ou trois, en mars, pour un moment."),
            ("Mille mercis, je suis Marie de Trois-Rivières.", "Mille mercis, je suis Marie de Trois-Rivières."),
        ],
    ),
    (
        "de",
        &[
            ("Meine Nummer ist 0170 1234567.", "Meine Nummer ist [PHONE]."),
            ("Sie ist null eins sieben null, eins zwo drei vier fünf.", "Sie ist [PHONE]."),
            ("Der Code ist zwölf vierunddreißig.", "Der Code ist [NUMBER]."),
            ("Ich bin am 3. März 1988 geboren.", "Ich bin am [DATE] geboren."),
            ("Geboren am dritten März neunzehnhundertachtundachtzig.", "Geboren am [DATE]."),
            ("Das war am 3. 3. 1988.", "Das war am [DATE]."),
            ("Schreiben Sie an anna Punkt müller at beispiel Punkt de.", "Schreiben Sie an [EMAIL]."),
            ("Es ist müller@beispiel.de.", "Es ist [EMAIL]."),
            (
                "Wir sind zu zweit oder dritt, um zehn Uhr dreißig.",
                "Wir sind zu zweit oder dritt, um zehn Uhr dreißig.",
            ),
            ("Tausend Dank, ich bin Anna Mai aus Neunkirchen.", "Tausend Dank, ich bin Anna Mai aus Neunkirchen."),
        ],
    ),
    (
        "tr",
        &[
            ("Numaram 0532 123 45 67.", "Numaram [PHONE]."),
            ("Sıfır beş yüz otuz iki, yüz yirmi üç, kırk beş, altmış yedi.", "[PHONE]."),
            ("Şifrem bir iki üç dört.", "Şifrem [NUMBER]."),
            ("3 Mart 1988'de doğdum.", "[DATE]'de doğdum."),
            ("Üç Mart bin dokuz yüz seksen sekizde doğdum.", "[DATE] doğdum."),
            ("Adresim ayse nokta yilmaz et ornek nokta com.", "Adresim [EMAIL]."),
            ("İki üç kişiyiz, mart ayında geliriz.", "İki üç kişiyiz, mart ayında geliriz."),
            ("Bin teşekkür, ben Beşiktaş'tan Ayşe.", "Bin teşekkür, ben Beşiktaş'tan Ayşe."),
        ],
    ),
    (
        "ru",
        &[
            ("Мой номер +7 912 345-67-89.", "Мой номер [PHONE]."),
            ("Девятьсот двенадцать, триста сорок пять, шестьдесят семь, восемьдесят девять.", "[PHONE]."),
            ("Код один два три четыре.", "Код [NUMBER]."),
            ("Я родился 3 марта 1988 года.", "Я родился [DATE]."),
            ("Третьего марта тысяча девятьсот восемьдесят восьмого года.", "[DATE]."),
            ("Почта анна точка иванова собака пример точка ру.", "Почта [EMAIL]."),
            ("Нас двое или трое, в марте, на пять минут.", "Нас двое или трое, в марте, на пять минут."),
            ("Тысяча благодарностей, я Марта из Пятигорска.", "Тысяча благодарностей, я Марта из Пятигорска."),
        ],
    ),
];

const SOUTHERN: [Cases; 3] = [
    (
        "hi",
        &[
            ("मेरा नंबर ९८७६५ ४३२१० है।", "मेरा नंबर [PHONE] है।"),
            ("नंबर नौ आठ सात छह पाँच चार तीन दो एक शून्य है।", "नंबर [PHONE] है।"),
            ("मेरा जन्म 3 मार्च 1988 को हुआ।", "मेरा जन्म [DATE] को हुआ।"),
            ("मेरा जन्म तीन मार्च उन्नीस सौ अट्ठासी को हुआ।", "मेरा जन्म [DATE] को हुआ।"),
            ("ईमेल प्रिया डॉट शर्मा एट द रेट जीमेल डॉट कॉम है।", "ईमेल [EMAIL] है।"),
            ("हम दो या तीन लोग हैं, मार्च में आएँगे।", "हम दो या तीन लोग हैं, मार्च में आएँगे।"),
            ("मैं दिल्ली से प्रिया शर्मा बोल रही हूँ।", "मैं दिल्ली से प्रिया शर्मा बोल रही हूँ।"),
        ],
    ),
    (
        "ml",
        &[
            ("എന്റെ നമ്പർ 98765 43210 ആണ്.", "എന്റെ നമ്പർ [PHONE] ആണ്."),
            ("നമ്പർ ഒമ്പത് എട്ട് ഏഴ് ആറ് അഞ്ച് നാല് മൂന്ന് ആണ്.", "നമ്പർ [PHONE] ആണ്."),
            ("ജനനം 1988 മാർച്ച് 3 ആണ്.", "ജനനം [DATE] ആണ്."),
            ("ആയിരത്തി തൊള്ളായിരത്തി എൺപത്തിയെട്ട് മാർച്ച് മൂന്ന്.", "[DATE]."),
            ("ഇമെയിൽ മായ ഡോട്ട് നായർ അറ്റ് ജിമെയിൽ ഡോട്ട് കോം.", "ഇമെയിൽ [EMAIL]."),
            ("ഞങ്ങൾ രണ്ടോ മൂന്നോ പേരുണ്ട്, മാർച്ചിൽ വരും.", "ഞങ്ങൾ രണ്ടോ മൂന്നോ പേരുണ്ട്, മാർച്ചിൽ വരും."),
            ("ഞാൻ കൊച്ചിയിലെ മായ നായർ ആണ്.", "ഞാൻ കൊച്ചിയിലെ മായ നായർ ആണ്."),
        ],
    ),
    (
        "ar",
        &[
            ("رقمي ٠٥٥ ١٢٣ ٤٥٦٧.", "رقمي [PHONE]."),
            ("رقمي صفر خمسة خمسة واحد اثنان ثلاثة أربعة.", "رقمي [PHONE]."),
            ("ولدت في ٣ مارس ١٩٨٨.", "ولدت في [DATE]."),
            ("ولدت في الثالث من مارس ألف وتسعمائة وثمانية وثمانين.", "ولدت في [DATE]."),
            ("بريدي سارة نقطة علي آت مثال دوت كوم.", "بريدي [EMAIL]."),
            ("نحن اثنان أو ثلاثة، سنأتي في مارس.", "نحن اثنان أو ثلاثة، سنأتي في مارس."),
            ("ألف شكر، أنا سارة من الرياض.", "ألف شكر، أنا سارة من الرياض."),
        ],
    ),
];

const EASTERN: [Cases; 5] = [
    (
        "zh",
        &[
            ("我的电话是１３８００１３８０００。", "我的电话是[PHONE]。"),
            ("我的电话是幺三八零零幺三八零零零。", "我的电话是[PHONE]。"),
            ("密码是一二三四，费用是一千二百三十四块。", "密码是[NUMBER]，费用是[NUMBER]块。"),
            ("我1988年3月3日出生。", "我[DATE]出生。"),
            ("我一九八八年三月三号出生。", "我[DATE]出生。"),
            ("我的邮箱是wang.fang艾特example点com。", "我的邮箱是[EMAIL]。"),
            ("邮箱是wang.fang@example.com。", "邮箱是[EMAIL]。"),
            ("我们两三个人，三月去四川，二十四小时都行。", "我们两三个人，三月去四川，二十四小时都行。"),
            ("张三和李四住在三亚，千万别忘了，万一呢。", "张三和李四住在三亚，千万别忘了，万一呢。"),
        ],
    ),
    (
        "yue",
        &[
            ("我電話係9123 4567。", "我電話係[PHONE]。"),
            ("我電話係九一二三四五六七。", "我電話係[PHONE]。"),
            ("我一九八八年三月三號出世。", "我[DATE]出世。"),
            ("身份證係A123456(3)。", "身份證係[ID]。"),
            ("電郵係mei at example dot com。", "電郵係[EMAIL]。"),
            ("我哋兩三個人，廿四小時都得，喺九龍。", "我哋兩三個人，廿四小時都得，喺九龍。"),
        ],
    ),
    (
        "ja",
        &[
            ("電話番号は０９０－１２３４－５６７８です。", "電話番号は[PHONE]です。"),
            ("番号は090-1234-5678です。", "番号は[PHONE]です。"),
            ("番号は〇九〇一二三四五六七八です。", "番号は[PHONE]です。"),
            ("番号はゼロきゅうゼロいちにさんよんです。", "番号は[PHONE]です。"),
            ("1988年3月3日生まれです。", "[DATE]生まれです。"),
            ("昭和六十三年三月三日生まれです。", "[DATE]生まれです。"),
            ("メールはマリアドットタナカアットマークエグザンプルドットコムです。", "メールは[EMAIL]です。"),
            ("二、三人で、三月に行きます。二十四時間です。", "二、三人で、三月に行きます。二十四時間です。"),
            ("三重県の五十嵐一郎です。皆さんにごあいさつ。", "三重県の五十嵐一郎です。皆さんにごあいさつ。"),
        ],
    ),
    (
        "ko",
        &[
            ("제 번호는 010-1234-5678입니다.", "제 번호는 [PHONE]입니다."),
            ("제 번호는 공일공 일이삼사 오육칠팔입니다.", "제 번호는 [PHONE]입니다."),
            ("1988년 3월 3일에 태어났어요.", "[DATE]에 태어났어요."),
            ("천구백팔십팔년 삼월 삼일에 태어났어요.", "[DATE]에 태어났어요."),
            ("주민번호는 880303-1234567이에요.", "주민번호는 [ID]이에요."),
            ("메일은 minsu 골뱅이 naver 닷컴입니다.", "메일은 [EMAIL]입니다."),
            ("두세 명이고 삼월에 갈게요. 그럼 이만, 천만에요.", "두세 명이고 삼월에 갈게요. 그럼 이만, 천만에요."),
            ("저는 일산에 사는 이사랑입니다.", "저는 일산에 사는 이사랑입니다."),
        ],
    ),
    (
        "vi",
        &[
            ("Số của tôi là 0912 345 678.", "Số của tôi là [PHONE]."),
            ("Số là không chín một hai ba bốn năm sáu bảy tám.", "Số là [PHONE]."),
            ("Tôi sinh ngày 3 tháng 3 năm 1988.", "Tôi sinh [DATE]."),
            ("Tôi sinh ngày ba tháng ba năm một nghìn chín trăm tám mươi tám.", "Tôi sinh [DATE]."),
            ("Thư của tôi là lan chấm nguyen a còng gmail chấm com.", "Thư của tôi là [EMAIL]."),
            (
                "Chúng tôi có hai hay ba người, không phải năm nay.",
                "Chúng tôi có hai hay ba người, không phải năm nay.",
            ),
            ("Trong ba tháng năm ngoái tôi ở Ba Vì.", "Trong ba tháng năm ngoái tôi ở Ba Vì."),
        ],
    ),
];

fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let cases = EUROPEAN.iter().chain(&SOUTHERN).chain(&EASTERN);
    cases.flat_map(|(language, cases)| cases.iter().map(|(said, left)| (*language, *said, *left)))
}

#[test]
fn every_language_has_its_numbers_dates_and_addresses() {
    let mut wrong = Vec::new();
    for (language, said, left) in all() {
        let redactor = Redactor::default().speaking(language);
        let found = redactor.text(said);
        if found != left {
            wrong.push(format!("{language}: {said}\n  is {found}\n  not {left}"));
        }
        let again = redactor.text(left);
        if again != left {
            wrong.push(format!("{language}: {left}\n  is again {again}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for language in ringer_media::numerals::languages() {
        let own: Vec<_> = all().filter(|(code, ..)| *code == language).collect();
        for mark in ["[PHONE]", "[DATE]", "[EMAIL]"] {
            assert!(own.iter().any(|(_, _, left)| left.contains(mark)), "{language} has no {mark}");
        }
        assert!(own.iter().any(|(_, said, left)| said == left), "{language} has nothing that stays");
    }
}

#[test]
fn the_language_of_a_text_need_not_be_known() {
    for (said, left) in [
        ("Mi número de teléfono es el seis uno dos, tres cuatro cinco.", "Mi número de teléfono es el [NUMBER]."),
        ("मेरा नंबर नौ आठ सात छह है।", "मेरा नंबर [NUMBER] है।"),
        ("密码是一二三四。", "密码是[NUMBER]。"),
        ("cinco cinco uno dos", "[NUMBER]"),
        ("null eins sieben null", "[NUMBER]"),
        ("the code is one two three four", "the code is [NUMBER]"),
    ] {
        for redactor in [Redactor::default(), Redactor::default().speaking("ad")] {
            assert_eq!(redactor.text(said), left);
        }
    }
    // An agent may speak English to any caller.
    let spanish = Redactor::default().speaking("es");
    assert_eq!(spanish.text("the code is one two three four"), "the code is [NUMBER]");
}

#[test]
fn values_of_traits_are_found_in_every_script() {
    let redactor = Redactor::new(["王芳".to_owned(), "김민수".into(), "محمد".into(), "Мария".into(), "മായ".into()]);
    for (said, left) in [
        ("我是王芳的朋友。", "我是[TRAIT]的朋友。"),
        ("저는 김민수입니다.", "저는 [TRAIT]입니다."),
        ("هذا لمحمد.", "هذا ل[TRAIT]."),
        ("Я МАРИЯ.", "Я [TRAIT]."),
        ("മായയുടെ വീട്", "[TRAIT]യുടെ വീട്"),
        ("محمدي", "محمدي"),
    ] {
        assert_eq!(redactor.text(said), left);
    }
}

#[test]
fn letters_without_blanks_are_private_one_by_one() {
    let said: Vec<String> = "我 是 王 芳 密 码 一 二 三 四 。".split(' ').map(str::to_owned).collect();
    let hidden = Redactor::new(["王芳".to_owned()]).speaking("zh").private(&said);
    let at: Vec<usize> = (0..said.len()).filter(|at| hidden[*at]).collect();
    assert_eq!(at, [2, 3, 6, 7, 8, 9]);
}
