//! Questions and requests in languages other than English, by their words alone: whether one asks for yes or no, for
//! something else, or for keys. English has rules of its own beside the built-in speaker.

use super::language::of_text;
use super::text::{plain_words, sentences};

/// Words of one language; those of a kind are parted by blanks. In Japanese, Chinese and Cantonese they are looked for
/// anywhere, elsewhere as whole words.
struct Asking {
    language: &'static str,
    /// Words of a question that yes does not answer.
    open: &'static str,
    /// Words of a question that yes answers.
    closed: &'static str,
    /// The same as the first word of a question.
    begins: &'static str,
    /// Endings of the last word of such a question.
    endings: &'static str,
    /// True: a question mark without an open word asks for yes or no.
    by_mark: bool,
    /// Words of a request for a fact.
    requests: &'static str,
    /// Words that ask for keys.
    keys: &'static str,
}

static TABLE: [Asking; 14] = [
    Asking {
        language: "es",
        open: "qué cuál cuáles quién quiénes dónde cuándo cómo cuánto cuánta cuántos cuántas",
        closed: "verdad correcto",
        begins: "",
        endings: "",
        by_mark: true,
        requests: "dígame dime deme indique confirme necesito diga repita deletree",
        keys: "pulse marque presione oprima teclee introduzca teclado",
    },
    Asking {
        language: "pt",
        open: "que qual quais quem onde quando como quanto quanta quantos quantas",
        closed: "certo correto",
        begins: "",
        endings: "",
        by_mark: true,
        requests: "diga informe confirme preciso repita soletre",
        keys: "digite tecle pressione aperte teclado",
    },
    Asking {
        language: "fr",
        open: "quel quelle quels quelles qui où quand comment combien pourquoi quoi",
        closed: "correct",
        begins: "",
        endings: "",
        by_mark: true,
        requests: "dites donnez indiquez confirmez précisez répétez épelez",
        keys: "appuyez tapez composez touche clavier",
    },
    Asking {
        language: "de",
        open: "wer wen wem wessen was wo wohin woher wann wie warum welche welcher welches welchen wieviel wofür womit",
        closed: "richtig stimmt",
        begins: "",
        endings: "",
        by_mark: true,
        requests: "nennen sagen geben bestätigen brauche benötige wiederholen buchstabieren",
        keys: "drücken tippen taste tasten eingeben",
    },
    Asking {
        language: "tr",
        open: "ne nedir kim kimin nerede nereye nereden nasıl hangi kaç neden niçin niye",
        closed: "mi mı mu mü misiniz mısınız musunuz müsünüz miyim mıyım muyum müyüm miyiz mıyız midir mıdır değil doğru",
        begins: "",
        endings: "",
        by_mark: false,
        requests: "söyleyin söyler verin paylaşın onaylayın tekrarlayın",
        keys: "tuşlayın tuşlayınız basın basınız tuşuna",
    },
    Asking {
        language: "ru",
        open: "что чем чего кто кого кому где куда откуда когда как какой какая какое какие сколько почему зачем чей",
        closed: "ли верно правильно",
        begins: "",
        endings: "",
        by_mark: true,
        requests: "назовите скажите подскажите сообщите подтвердите нужен нужна повторите продиктуйте",
        keys: "нажмите наберите введите клавишу",
    },
    Asking {
        language: "ar",
        open: "ما ماذا أين متى كيف كم لماذا أي",
        closed: "صحيح",
        begins: "هل",
        endings: "",
        by_mark: true,
        requests: "أخبرني أعطني أحتاج أكد كرر اذكر",
        keys: "اضغط أدخل",
    },
    Asking {
        language: "hi",
        open: "कौन कहाँ कहां कब कैसे कैसा कितना कितने कितनी क्यों किस किसका",
        closed: "ना सही",
        begins: "क्या",
        endings: "",
        by_mark: true,
        requests: "बताइए बताएँ बताएं दीजिए चाहिए दोहराइए",
        keys: "दबाएँ दबाएं दबाइए दबाये",
    },
    Asking {
        language: "ml",
        open: "എന്ത് എന്താണ് ആര് ആരാണ് എവിടെ എപ്പോൾ എങ്ങനെ എത്ര ഏത് എന്തിന്",
        closed: "ശരിയല്ലേ",
        begins: "",
        endings: "ോ ല്ലേ",
        by_mark: false,
        requests: "പറയൂ പറയാമോ തരൂ തരാമോ വേണം",
        keys: "അമർത്തുക അമർത്തൂ",
    },
    Asking {
        language: "vi",
        open: "gì ai đâu nào mấy sao bao thế",
        closed: "phải đúng",
        begins: "",
        endings: "không chưa à nhé ạ",
        by_mark: true,
        requests: "xin cho đọc nhắc",
        keys: "bấm nhấn phím",
    },
    Asking {
        language: "ko",
        open: "무엇 무엇을 뭐 뭘 누구 누가 어디 어디에 언제 어떻게 어떤 몇 왜 어느 얼마 얼마나 무슨",
        closed: "맞나요 맞습니까 맞으세요",
        begins: "",
        endings: "까 나요",
        by_mark: true,
        requests: "알려 말씀해 불러 확인해",
        keys: "누르세요 눌러 누르십시오 입력해",
    },
    Asking {
        language: "ja",
        open: "何 誰 どこ どちら どなた どの どれ どう いつ いくつ いくら なぜ どんな お名前",
        closed: "よろしい ですね",
        begins: "",
        endings: "か",
        by_mark: false,
        requests: "教えて お願い ください 下さい",
        keys: "押して 入力",
    },
    Asking {
        language: "zh",
        open: "什么 什麼 谁 誰 哪 怎么 怎麼 多少 几 幾 为什么 贵姓 姓名",
        closed: "吗 嗎 是不是 有没有 对吧 好吗 要不要 可不可以 能不能",
        begins: "",
        endings: "吧",
        by_mark: true,
        requests: "告诉 提供 确认 请说 需要 重复",
        keys: "按 输入",
    },
    Asking {
        language: "yue",
        open: "咩 乜 邊 點樣 點解 幾 貴姓 姓名",
        closed: "係咪 有冇 係唔係 得唔得 要唔要 可唔可以 好唔好 嗎",
        begins: "",
        endings: "啊嗎",
        by_mark: true,
        requests: "話我知 提供 確認 講 需要",
        keys: "按 撳 輸入",
    },
];

fn of(language: &str) -> Option<&'static Asking> {
    TABLE.iter().find(|asking| asking.language == language)
}

/// Returns the words by which a turn is read: none for a turn that is English.
fn reading(language: &str, heard: &str) -> Option<&'static Asking> {
    of(language).filter(|_| of_text(heard) != Some("en"))
}

impl Asking {
    fn is_unspaced(&self) -> bool {
        matches!(self.language, "ja" | "zh" | "yue")
    }

    /// True if one of these words is in a text.
    fn has(&self, words: &str, text: &str) -> bool {
        if self.is_unspaced() {
            return words.split(' ').any(|word| !word.is_empty() && text.contains(word));
        }
        let spoken = plain_words(text);
        words.split(' ').any(|word| spoken.iter().any(|other| other == word))
    }
}

/// True if what was heard asks for yes or no; `None`: the language has no such words here, or the turn is English.
///
/// The last question counts where there are several sentences.
pub(super) fn is_yes_no(language: &str, heard: &str) -> Option<bool> {
    let asking = reading(language, heard)?;
    let all = sentences(heard);
    let is_marked = |sentence: &&String| sentence.trim_end().ends_with(['?', '？', '؟']);
    let marked = all.iter().rev().find(is_marked);
    let Some(question) = marked.or(all.last()) else { return Some(false) };
    let words = plain_words(question);
    let ends = |ending: &str| !ending.is_empty() && words.last().is_some_and(|word| word.ends_with(ending));
    let begins = words.first().is_some_and(|word| asking.begins.split(' ').any(|first| first == word));
    let is_closed = asking.has(asking.closed, question) || begins || asking.endings.split(' ').any(ends);
    let is_open = asking.has(asking.open, question);
    // One word alone, as "Yes?", may be of another language.
    let is_long = words.len() > 1 || asking.is_unspaced();
    Some(!is_open && (is_closed || (asking.by_mark && marked.is_some() && is_long)))
}

/// True if what was heard asks for a fact; `None` as for [`is_yes_no`].
pub(super) fn is_request(language: &str, heard: &str) -> Option<bool> {
    let asking = reading(language, heard)?;
    let asks = heard.contains(['?', '？', '؟']) || asking.has(asking.open, heard) || asking.has(asking.requests, heard);
    Some(asks || is_yes_no(language, heard) == Some(true))
}

/// True if what was heard asks for keys.
pub(super) fn demands_keys(language: &str, heard: &str) -> bool {
    of(language).is_some_and(|asking| asking.has(asking.keys, heard))
}

#[cfg(test)]
mod tests {
    use ringer_media::numerals::languages;

    use super::*;

    /// A question that yes answers, one that it does not, and a statement.
    const CASES: [(&str, [&str; 3]); 14] = [
        ("es", ["¿Es correcto?", "¿En qué puedo ayudarle?", "Un momento."]),
        ("pt", ["Está correto?", "Como posso ajudar?", "Um momento."]),
        ("fr", ["Vous avez un compte chez nous ?", "Comment puis-je vous aider ?", "Un instant."]),
        ("de", ["Haben Sie schon einen Termin?", "Wie kann ich Ihnen helfen?", "Einen Moment."]),
        ("tr", ["Randevunuz var mı", "Size nasıl yardımcı olabilirim?", "Bir dakika."]),
        ("ru", ["Вы у нас были?", "Чем могу помочь?", "Минутку."]),
        ("ar", ["هل لديك موعد", "كيف يمكنني مساعدتك؟", "لحظة من فضلك."]),
        ("hi", ["क्या आप पहले आए हैं?", "मैं आपकी कैसे मदद करूँ?", "एक मिनट।"]),
        ("ml", ["അപ്പോയിന്റ്മെന്റ് ഉണ്ടോ?", "ഞാൻ എങ്ങനെ സഹായിക്കണം?", "ഒരു നിമിഷം."]),
        ("vi", ["Anh có hẹn trước không?", "Tôi có thể giúp gì cho bạn?", "Chờ một chút."]),
        ("ko", ["예약하셨나요?", "무엇을 도와드릴까요?", "잠시만요."]),
        ("ja", ["ご予約はありますか。", "どうされましたか。", "少々お待ちを。"]),
        ("zh", ["您有预约吗？", "请问有什么可以帮您？", "请稍等。"]),
        ("yue", ["你有冇預約？", "有咩可以幫到你？", "等一等。"]),
    ];

    #[test]
    fn questions_for_yes_or_no_are_told_from_others() {
        for (language, [closed, open, stated]) in CASES {
            assert_eq!(is_yes_no(language, closed), Some(true), "{closed}");
            assert_eq!(is_yes_no(language, open), Some(false), "{open}");
            assert_eq!(is_yes_no(language, stated), Some(false), "{stated}");
            assert_eq!(is_request(language, open), Some(true), "{open}");
            assert_eq!(is_request(language, stated), Some(false), "{stated}");
        }
        let missing: Vec<&str> = languages().filter(|code| of(code).is_none()).collect();
        assert_eq!(missing, ["en"]);
        assert_eq!(is_yes_no("en", "Is it?"), None);
        assert_eq!(is_yes_no("es", "Hello, how can I help you today?"), None);
        assert_eq!(is_yes_no("es", "Yes?"), Some(false));
    }

    #[test]
    fn keys_are_asked_for_in_every_language() {
        for (language, said) in [
            ("es", "Marque su código."),
            ("pt", "Digite o seu código."),
            ("fr", "Tapez votre code."),
            ("de", "Bitte drücken Sie die Taste."),
            ("tr", "Şifrenizi tuşlayın."),
            ("ru", "Введите код."),
            ("ar", "اضغط على الرقم."),
            ("hi", "अपना पिन दबाएँ।"),
            ("ml", "പിൻ അമർത്തുക."),
            ("vi", "Vui lòng nhấn mã số."),
            ("ko", "번호를 누르세요."),
            ("ja", "番号を押してください。"),
            ("zh", "请按您的号码。"),
            ("yue", "請撳號碼。"),
        ] {
            assert!(demands_keys(language, said), "{said}");
        }
        assert!(!demands_keys("en", "press one") && !demands_keys("es", "Buenos días."));
    }
}
