//! Fixed words in each language: what is said without a mind's own words. No logic beyond the choice of the language.

/// The fixed words of one language.
#[derive(Debug)]
pub struct Phrases {
    /// First words of a call.
    pub greeting: &'static str,
    /// Answer to a yes/no question.
    pub yes: &'static str,
    /// Last words.
    pub goodbye: &'static str,
    /// Said once after long mutual silence.
    pub reprompt: &'static str,
    /// Said when the other side stays silent after it asked to wait.
    pub still_there: &'static str,
    /// Said when a mind is late.
    pub moment: &'static str,
    /// Said to cut in; at most 12 words each.
    pub interruption: &'static [&'static str],
    /// Filler words between others.
    pub fillers: &'static [&'static str],
}

/// The words of `language` (`en`, `es`, ...); English for an unknown one.
pub fn phrases(language: &str) -> &'static Phrases {
    let known = TABLE.iter().find(|(code, _)| *code == language);
    &known.unwrap_or(&TABLE[0]).1
}

/// The words that a call says by itself.
pub fn call_phrases(language: &str) -> ringer_media::call::Phrases {
    let words = phrases(language);
    ringer_media::call::Phrases {
        reprompt: words.reprompt.into(),
        interruption: words.interruption.iter().map(|&text| text.into()).collect(),
        still_there: words.still_there.into(),
    }
}

static TABLE: [(&str, Phrases); 15] = [
    (
        "en",
        Phrases {
            greeting: "Hello.",
            yes: "Yes.",
            goodbye: "Thank you, goodbye.",
            reprompt: "Hello? Are you there?",
            still_there: "Are you still there?",
            moment: "Hm, one moment.",
            interruption: &["Sorry, wait a moment.", "Sorry, can I just say something?", "Excuse me, one second."],
            fillers: &["um", "uh", "hmm", "er"],
        },
    ),
    (
        "es",
        Phrases {
            greeting: "Hola.",
            yes: "Sí.",
            goodbye: "Gracias, adiós.",
            reprompt: "¿Hola? ¿Está usted ahí?",
            still_there: "¿Sigue usted ahí?",
            moment: "Eh, un momento.",
            interruption: &["Perdone, espere un momento.", "Disculpe, ¿puedo decir algo?"],
            fillers: &["eh", "este", "pues"],
        },
    ),
    (
        "pt",
        Phrases {
            greeting: "Olá.",
            yes: "Sim.",
            goodbye: "Obrigado, tchau.",
            reprompt: "Alô? Você está aí?",
            still_there: "Você ainda está aí?",
            moment: "Hum, um momento.",
            interruption: &["Desculpe, espere um momento.", "Com licença, posso dizer uma coisa?"],
            fillers: &["é", "hum", "tipo"],
        },
    ),
    (
        "ja",
        Phrases {
            greeting: "もしもし。",
            yes: "はい。",
            goodbye: "ありがとうございました。失礼します。",
            reprompt: "もしもし、聞こえますか。",
            still_there: "まだいらっしゃいますか。",
            moment: "ええと、少々お待ちください。",
            interruption: &["すみません、ちょっと待ってください。", "すみません、一ついいですか。"],
            fillers: &["ええと", "あの", "うーん"],
        },
    ),
    (
        "tr",
        Phrases {
            greeting: "Merhaba.",
            yes: "Evet.",
            goodbye: "Teşekkürler, hoşça kalın.",
            reprompt: "Alo? Orada mısınız?",
            still_there: "Hâlâ orada mısınız?",
            moment: "Hım, bir dakika.",
            interruption: &["Pardon, bir dakika.", "Affedersiniz, bir şey söyleyebilir miyim?"],
            fillers: &["şey", "ııı", "hım"],
        },
    ),
    (
        "hi",
        Phrases {
            greeting: "नमस्ते।",
            yes: "जी हाँ।",
            goodbye: "धन्यवाद, नमस्ते।",
            reprompt: "हैलो? क्या आप सुन रहे हैं?",
            still_there: "क्या आप अभी भी लाइन पर हैं?",
            moment: "एक मिनट।",
            interruption: &["माफ़ कीजिए, एक मिनट रुकिए।", "सुनिए, क्या मैं कुछ कह सकता हूँ?"],
            fillers: &["मतलब", "अं", "उम"],
        },
    ),
    (
        "ar",
        Phrases {
            greeting: "مرحبا.",
            yes: "نعم.",
            goodbye: "شكرا، مع السلامة.",
            reprompt: "ألو؟ هل أنت معي؟",
            still_there: "هل ما زلت معي؟",
            moment: "لحظة من فضلك.",
            interruption: &["عفوا، لحظة من فضلك.", "عذرا، هل يمكنني أن أقول شيئا؟"],
            fillers: &["يعني", "آه", "همم"],
        },
    ),
    (
        "ru",
        Phrases {
            greeting: "Здравствуйте.",
            yes: "Да.",
            goodbye: "Спасибо, до свидания.",
            reprompt: "Алло? Вы меня слышите?",
            still_there: "Вы ещё на линии?",
            moment: "Хм, минутку.",
            interruption: &["Извините, подождите минутку.", "Простите, можно я скажу?"],
            fillers: &["э", "ну", "хм"],
        },
    ),
    (
        "zh",
        Phrases {
            greeting: "你好。",
            yes: "是的。",
            goodbye: "谢谢，再见。",
            reprompt: "喂？你在吗？",
            still_there: "你还在吗？",
            moment: "嗯，请稍等。",
            interruption: &["不好意思，等一下。", "抱歉，我可以说一句吗？"],
            fillers: &["嗯", "那个", "呃"],
        },
    ),
    (
        "ml",
        Phrases {
            greeting: "നമസ്കാരം.",
            yes: "അതെ.",
            goodbye: "നന്ദി, ശരി.",
            reprompt: "ഹലോ? കേൾക്കുന്നുണ്ടോ?",
            still_there: "ഇപ്പോഴും ലൈനിൽ ഉണ്ടോ?",
            moment: "ഒരു നിമിഷം.",
            interruption: &["ക്ഷമിക്കണം, ഒരു നിമിഷം.", "ക്ഷമിക്കണം, ഞാൻ ഒന്ന് പറയട്ടെ?"],
            fillers: &["അത്", "ഉം", "പിന്നെ"],
        },
    ),
    (
        "fr",
        Phrases {
            greeting: "Bonjour.",
            yes: "Oui.",
            goodbye: "Merci, au revoir.",
            reprompt: "Allô ? Vous êtes là ?",
            still_there: "Vous êtes toujours là ?",
            moment: "Euh, un instant.",
            interruption: &["Pardon, attendez un instant.", "Excusez-moi, je peux dire quelque chose ?"],
            fillers: &["euh", "ben", "hum"],
        },
    ),
    (
        "yue",
        Phrases {
            greeting: "你好。",
            yes: "係。",
            goodbye: "唔該晒，再見。",
            reprompt: "喂？你喺唔喺度？",
            still_there: "你仲喺唔喺度？",
            moment: "嗯，等一等。",
            interruption: &["唔好意思，等一陣。", "唔好意思，我可唔可以講句？"],
            fillers: &["嗯", "即係", "呃"],
        },
    ),
    (
        "vi",
        Phrases {
            greeting: "Xin chào.",
            yes: "Vâng.",
            goodbye: "Cảm ơn, tạm biệt.",
            reprompt: "Alô? Bạn có nghe không?",
            still_there: "Bạn còn ở đó không?",
            moment: "Ừm, chờ một chút.",
            interruption: &["Xin lỗi, chờ một chút.", "Xin lỗi, cho tôi nói một câu được không?"],
            fillers: &["ừm", "à", "ờ"],
        },
    ),
    (
        "de",
        Phrases {
            greeting: "Hallo.",
            yes: "Ja.",
            goodbye: "Danke, auf Wiederhören.",
            reprompt: "Hallo? Sind Sie noch da?",
            still_there: "Sind Sie noch da?",
            moment: "Hm, einen Moment.",
            interruption: &["Entschuldigung, einen Moment bitte.", "Verzeihung, darf ich kurz etwas sagen?"],
            fillers: &["äh", "ähm", "hm"],
        },
    ),
    (
        "ko",
        Phrases {
            greeting: "여보세요.",
            yes: "네.",
            goodbye: "감사합니다, 안녕히 계세요.",
            reprompt: "여보세요? 들리세요?",
            still_there: "아직 계세요?",
            moment: "음, 잠시만요.",
            interruption: &["죄송하지만, 잠깐만요.", "저기요, 한 말씀 드려도 될까요?"],
            fillers: &["음", "어", "그"],
        },
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_its_own_words() {
        for (code, words) in &TABLE {
            assert!(std::ptr::eq(phrases(code), words), "{code} stands twice");
            assert!(!words.fillers.is_empty() && !words.interruption.is_empty(), "{code}");
            assert!(words.interruption.iter().all(|text| text.split_whitespace().count() <= 12), "{code}");
            assert_eq!(call_phrases(code).reprompt, words.reprompt);
        }
        assert_eq!(phrases("xx").yes, "Yes.");
    }
}
