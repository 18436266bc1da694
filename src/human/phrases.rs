//! Fixed words in each language, said without a language model. No logic beyond the choice of the language.

/// The fixed words of one language.
#[derive(Debug)]
pub struct Phrases {
    /// First words of a call.
    pub greeting: &'static str,
    /// Answer to a yes/no question.
    pub yes: &'static str,
    /// Last words of a call.
    pub goodbye: &'static str,
    /// Words after long mutual silence, said once.
    pub reprompt: &'static str,
    /// Question to an agent that stays silent after it asked to wait.
    pub still_there: &'static str,
    /// Filler while an answer is late.
    pub moment: &'static str,
    /// Interruptions, at most 12 words each.
    pub interruption: &'static [&'static str],
    /// Filler words between others.
    pub fillers: &'static [&'static str],
    /// Backchannels during the agent's speech; most voices say them in 0.2 to 0.8 s.
    pub backchannels: &'static [&'static str],
    /// Greeting, question about today's opening hours, and thanks: the words of a caller that makes load.
    pub short_call: [&'static str; 3],
    /// Words to somebody else in the room, of different lengths for slow and fast voices: 1 to 3.2 s.
    pub asides: &'static [&'static str],
}

/// True if Digital Humans speak this language.
pub fn is_spoken(language: &str) -> bool {
    TABLE.iter().any(|(code, _)| *code == language)
}

/// Returns the words of `language` (`en`, `es`, ...); English for an unknown one.
pub fn phrases(language: &str) -> &'static Phrases {
    let known = TABLE.iter().find(|(code, _)| *code == language);
    &known.unwrap_or(&TABLE[0]).1
}

/// Returns the words that a call says by itself.
pub fn call_phrases(language: &str) -> ringer_media::call::Phrases {
    let words = phrases(language);
    let all = |texts: &[&str]| texts.iter().map(|&text| text.into()).collect();
    ringer_media::call::Phrases {
        reprompt: words.reprompt.into(),
        interruption: all(words.interruption),
        still_there: words.still_there.into(),
        backchannel: all(words.backchannels),
        aside: all(words.asides),
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
            backchannels: &["Mm-hmm.", "Okay.", "Right.", "Yeah.", "Uh-huh.", "Ah."],
            short_call: [
                "Hello, I have a short question.",
                "What are your opening hours today?",
                "Thank you very much, goodbye.",
            ],
            asides: &[
                "Just a second.",
                "Not now, please.",
                "Leave it on the table.",
                "I'll be there in a minute.",
                "Not now, I'm on the phone.",
            ],
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
            backchannels: &["Ajá.", "Sí.", "Ya.", "Vale.", "Claro."],
            short_call: ["Hola, tengo una pregunta corta.", "¿Qué horario tienen hoy?", "Muchas gracias, adiós."],
            asides: &["Un segundo.", "Ahora no, por favor.", "Déjalo en la mesa.", "Ahora no, estoy al teléfono."],
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
            backchannels: &["Aham.", "Sim.", "Sei.", "Certo.", "Claro."],
            short_call: ["Olá, tenho uma pergunta rápida.", "Qual é o horário de hoje?", "Muito obrigado, tchau."],
            asides: &[
                "Um segundo.",
                "Agora não, por favor.",
                "Deixa em cima da mesa.",
                "Agora não, estou no telefone.",
            ],
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
            backchannels: &["はい。", "ええ。", "うん。", "なるほど。"],
            short_call: [
                "もしもし、少しお聞きしたいのですが。",
                "今日は何時から何時まで開いていますか。",
                "ありがとうございました。失礼します。",
            ],
            asides: &["後でね。", "ちょっと待って。", "今、電話中なの。", "それ、机に置いといて。"],
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
            backchannels: &["Hı hı.", "Evet.", "Ha.", "Peki.", "Anladım."],
            short_call: [
                "Merhaba, kısa bir sorum var.",
                "Bugün saat kaça kadar açıksınız?",
                "Çok teşekkürler, hoşça kalın.",
            ],
            asides: &["Bir saniye.", "Şimdi olmaz, lütfen.", "Masanın üstüne koy.", "Şimdi olmaz, şu an telefondayım."],
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
            backchannels: &["हाँ।", "जी।", "अच्छा।", "ठीक।"],
            short_call: ["नमस्ते, मुझे एक छोटा सा सवाल पूछना है।", "आज आप कितने बजे तक खुले हैं?", "बहुत धन्यवाद, नमस्ते।"],
            asides: &["एक मिनट रुको।", "अभी नहीं, बाद में।", "उसे मेज़ पर रख दो।", "अभी नहीं, मैं फ़ोन पर हूँ।"],
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
            backchannels: &["نعم.", "آه.", "طيب.", "تمام.", "مفهوم."],
            short_call: ["مرحبا، لدي سؤال قصير.", "ما هي ساعات العمل اليوم؟", "شكرا جزيلا، مع السلامة."],
            asides: &["لحظة واحدة.", "ليس الآن من فضلك.", "ضعه على الطاولة.", "ليس الآن، أنا على الهاتف."],
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
            backchannels: &["Да.", "Угу.", "Ага.", "Так.", "Ясно."],
            short_call: [
                "Здравствуйте, у меня короткий вопрос.",
                "До скольки вы сегодня работаете?",
                "Большое спасибо, до свидания.",
            ],
            asides: &[
                "Одну секунду.",
                "Не сейчас, пожалуйста.",
                "Положи это на стол.",
                "Не сейчас, я говорю по телефону.",
            ],
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
            backchannels: &["嗯。", "对。", "好。", "是的。"],
            short_call: ["你好，我想问一个小问题。", "你们今天几点到几点营业？", "非常感谢，再见。"],
            asides: &["等一下。", "你等我一下。", "先放在桌子上。", "现在不行，我在打电话。"],
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
            backchannels: &["ശരി.", "ഉം.", "അതെ.", "ഓ."],
            short_call: ["നമസ്കാരം, എനിക്ക് ഒരു ചെറിയ ചോദ്യമുണ്ട്.", "ഇന്ന് എത്ര മണി വരെ തുറന്നിരിക്കും?", "വളരെ നന്ദി, ശരി."],
            asides: &["ഒരു നിമിഷം.", "ഇപ്പോൾ വേണ്ട.", "അത് മേശയിൽ വെക്കൂ.", "ഞാൻ ഫോണിലാണ്, പിന്നെ വരാം."],
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
            backchannels: &["Oui.", "Mm.", "Ah oui.", "D'accord.", "Bien."],
            short_call: [
                "Bonjour, j'ai une petite question.",
                "Quels sont vos horaires aujourd'hui ?",
                "Merci beaucoup, au revoir.",
            ],
            asides: &[
                "Une seconde.",
                "Pas maintenant, merci.",
                "Pose-le sur la table.",
                "Pas maintenant, je suis au téléphone.",
            ],
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
            backchannels: &["嗯。", "係。", "好。", "明白。"],
            short_call: ["你好，我想問一個簡單嘅問題。", "你哋今日幾點開到幾點？", "唔該晒，再見。"],
            asides: &["等一陣。", "你等我一陣。", "擺喺張枱度先。", "而家唔得，我講緊電話。"],
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
            backchannels: &["Vâng.", "Ừ.", "Dạ.", "Được."],
            short_call: [
                "Xin chào, tôi có một câu hỏi ngắn.",
                "Hôm nay bên mình mở cửa đến mấy giờ?",
                "Cảm ơn nhiều, tạm biệt.",
            ],
            asides: &[
                "Chờ một chút.",
                "Không phải bây giờ.",
                "Để nó lên bàn đi.",
                "Chờ chút, tôi đang nghe điện thoại.",
            ],
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
            backchannels: &["Mhm.", "Ja.", "Aha.", "Gut.", "Genau."],
            short_call: [
                "Hallo, ich habe eine kurze Frage.",
                "Wie sind heute Ihre Öffnungszeiten?",
                "Vielen Dank, auf Wiederhören.",
            ],
            asides: &[
                "Eine Sekunde.",
                "Jetzt nicht, bitte.",
                "Leg es auf den Tisch.",
                "Jetzt nicht, ich telefoniere gerade.",
            ],
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
            backchannels: &["네.", "음.", "아.", "그렇죠."],
            short_call: [
                "안녕하세요, 간단한 질문이 있어요.",
                "오늘 영업시간이 어떻게 되나요?",
                "정말 감사합니다, 안녕히 계세요.",
            ],
            asides: &["잠깐만 기다려.", "지금은 안 돼.", "그거 책상에 놔줘.", "지금 통화 중이니까 이따가."],
        },
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ringer_media::seed::Seed;
    use ringer_model::digital_human::Language;
    use ringer_provider::speech::EmbeddedSpeech;
    use ringer_provider::{Spoken, Synthesizer, VoiceWanted};

    use super::*;
    use crate::language::of_text;

    /// Returns all texts of a language, each with the name of its kind.
    fn texts(words: &'static Phrases) -> Vec<(&'static str, &'static str)> {
        let one = [
            ("greeting", words.greeting),
            ("yes", words.yes),
            ("goodbye", words.goodbye),
            ("reprompt", words.reprompt),
            ("still_there", words.still_there),
            ("moment", words.moment),
        ];
        let several = [
            ("interruption", words.interruption),
            ("fillers", words.fillers),
            ("backchannels", words.backchannels),
            ("short_call", &words.short_call),
            ("asides", words.asides),
        ];
        let several = several.into_iter().flat_map(|(kind, texts)| texts.iter().map(move |text| (kind, *text)));
        one.into_iter().chain(several).collect()
    }

    #[test]
    fn every_language_has_its_own_words() {
        let languages: Vec<&str> = Language::ALL.iter().map(|language| language.as_str()).collect();
        assert!(languages.iter().all(|code| *code == "ad" || is_spoken(code)), "{languages:?}");
        let english = texts(phrases("en"));
        let kinds: BTreeSet<&str> = english.iter().map(|(kind, _)| *kind).collect();
        for (code, words) in &TABLE {
            assert!(std::ptr::eq(phrases(code), words), "{code} stands twice");
            assert!(words.interruption.iter().all(|text| text.split_whitespace().count() <= 12), "{code}");
            assert_eq!(call_phrases(code).reprompt, words.reprompt);
            let own = texts(words);
            assert_eq!(own.iter().map(|(kind, _)| *kind).collect::<BTreeSet<_>>(), kinds, "{code}");
            for (kind, text) in own {
                assert!(!text.trim().is_empty(), "{code} {kind}");
                let borrowed = english.iter().any(|(_, other)| other.eq_ignore_ascii_case(text));
                assert!(!borrowed || *code == "en", "{code} {kind}: {text} is English");
                let found = of_text(text);
                assert!(found.is_none() || found == Some(*code) || is_near(code, found), "{code}: {text} is {found:?}");
            }
        }
        assert_eq!(phrases("xx").yes, "Yes.");
    }

    /// True for languages that short texts do not tell apart.
    fn is_near(code: &str, found: Option<&str>) -> bool {
        let is_latin = |code: &str| ["en", "es", "pt", "tr", "fr", "vi", "de"].contains(&code);
        let is_chinese = |code: &str| ["zh", "yue", "ja"].contains(&code);
        found.is_some_and(|found| (is_latin(code) && is_latin(found)) || (is_chinese(code) && is_chinese(found)))
    }

    /// Words that no voice says within the time of a probe would never be heard.
    #[tokio::test]
    async fn every_language_has_probes_for_slow_and_fast_voices() {
        let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
        let mut missing = Vec::new();
        for (language, words) in &TABLE {
            for speed in ["slowest", "normal", "fastest"] {
                let wanted = VoiceWanted { speed: speed.into(), seed: Seed(5), ..VoiceWanted::of(language) };
                let voice = speech.voice(&wanted).expect("the language has a voice");
                for (texts, least_s, most_s) in [(words.backchannels, 0.2, 0.8), (words.asides, 1.0, 3.2)] {
                    let mut lengths = Vec::new();
                    for text in texts {
                        let (out, mut pieces) = tokio::sync::mpsc::channel(4);
                        speech.synthesize(text, &voice, out).await.expect("flite and espeak-ng are installed");
                        let Some(Spoken::Audio(pcm)) = pieces.recv().await else { panic!("{text} is not said") };
                        lengths.push(pcm.len() as f64 / 16_000.0);
                    }
                    println!("{language} {speed}: {lengths:.2?} s");
                    if !lengths.iter().any(|seconds| (least_s..=most_s).contains(seconds)) {
                        missing.push(format!("{language} {speed}: {lengths:.2?}"));
                    }
                }
            }
        }
        assert!(missing.is_empty(), "{missing:#?}");
    }
}
