//! Background talk near a caller: everyday sentences in each language, which nobody answers.

/// Number of sentences of each language.
pub const SENTENCES: usize = 8;

/// Returns everyday sentences in `language` (`en`, `es`, ...); `None` for an unknown one.
pub fn talk(language: &str) -> Option<&'static [&'static str; SENTENCES]> {
    TABLE.iter().find(|(code, _)| *code == language).map(|(_, sentences)| sentences)
}

static TABLE: [(&str, [&str; SENTENCES]); 15] = [
    (
        "en",
        [
            "Did you see the match last night? I could not believe how it ended.",
            "We should go and visit them next week, they have been asking for us.",
            "I took the early train, and it was late again, as always.",
            "She says the new place on the corner makes a wonderful soup.",
            "Can you bring the chairs from the other room when you come back?",
            "My brother has moved, and now he lives right next to the station.",
            "It was raining so hard that we stayed at home the whole weekend.",
            "Wait, let me think, I am sure that I put the keys on the table.",
        ],
    ),
    (
        "es",
        [
            "¿Viste el partido anoche? No me podía creer cómo terminó.",
            "Tendríamos que ir a verlos la semana que viene, siempre preguntan por nosotros.",
            "Cogí el primer tren y otra vez llegó tarde, como siempre.",
            "Dice que en el sitio nuevo de la esquina hacen una sopa maravillosa.",
            "¿Puedes traer las sillas de la otra habitación cuando vuelvas?",
            "Mi hermano se ha mudado y ahora vive justo al lado de la estación.",
            "Llovía tanto que nos quedamos en casa todo el fin de semana.",
            "Espera, déjame pensar, estoy segura de que dejé las llaves en la mesa.",
        ],
    ),
    (
        "pt",
        [
            "Você viu o jogo ontem à noite? Não acreditei em como terminou.",
            "A gente devia ir visitá-los na semana que vem, eles sempre perguntam por nós.",
            "Peguei o primeiro trem e ele atrasou de novo, como sempre.",
            "Ela diz que o lugar novo da esquina faz uma sopa maravilhosa.",
            "Você pode trazer as cadeiras do outro quarto quando voltar?",
            "Meu irmão se mudou e agora mora bem ao lado da estação.",
            "Chovia tanto que ficamos em casa o fim de semana inteiro.",
            "Espera, deixa eu pensar, tenho certeza de que deixei as chaves na mesa.",
        ],
    ),
    (
        "ja",
        [
            "昨日の試合、見ましたか。最後は本当にびっくりしました。",
            "来週、みんなで遊びに行きましょう。ずっと待っているそうです。",
            "朝早い電車に乗ったのに、また遅れていたんですよ。",
            "角にできた新しいお店は、スープがとてもおいしいそうです。",
            "戻ってくるとき、隣の部屋から椅子を持ってきてくれますか。",
            "弟が引っ越して、今は駅のすぐそばに住んでいます。",
            "雨がひどくて、週末はずっと家にいました。",
            "ちょっと待って、鍵はたしか机の上に置いたはずです。",
        ],
    ),
    (
        "tr",
        [
            "Dün akşamki maçı izledin mi? Sonuna inanamadım.",
            "Haftaya onları ziyarete gidelim, hep bizi soruyorlar.",
            "Sabah erken trene bindim ama her zamanki gibi yine geç kaldı.",
            "Köşedeki yeni yerin çorbası çok güzelmiş, öyle diyor.",
            "Dönerken öbür odadaki sandalyeleri getirir misin?",
            "Kardeşim taşındı, şimdi istasyonun hemen yanında oturuyor.",
            "O kadar çok yağmur yağdı ki bütün hafta sonu evde kaldık.",
            "Dur, bir düşüneyim, anahtarları masaya koyduğuma eminim.",
        ],
    ),
    (
        "zh",
        [
            "你昨天晚上看比赛了吗？我真不敢相信最后是那样。",
            "我们下个星期应该去看看他们，他们一直在问我们。",
            "我坐了早班火车，结果跟平时一样又晚点了。",
            "她说街角新开的那家店，汤做得特别好喝。",
            "你回来的时候，能把那个房间的椅子带过来吗？",
            "我弟弟搬家了，现在就住在车站旁边。",
            "雨下得太大了，我们整个周末都待在家里。",
            "等一下，让我想想，我记得把钥匙放在桌子上了。",
        ],
    ),
    (
        "yue",
        [
            "你尋晚有冇睇波呀？我真係唔敢相信最後會咁樣。",
            "我哋下個禮拜應該去探下佢哋，佢哋成日問起我哋。",
            "我搭咗早班火車，點知又係遲到，同平時一樣。",
            "佢話街角新開嗰間舖頭啲湯好好飲。",
            "你返嚟嗰陣，可唔可以攞埋嗰間房啲凳過嚟？",
            "我細佬搬咗屋，而家住喺車站隔籬。",
            "場雨落得太大，我哋成個週末都留喺屋企。",
            "等陣先，等我諗下，我記得將啲鎖匙放咗喺枱面。",
        ],
    ),
    (
        "hi",
        [
            "क्या तुमने कल रात का मैच देखा? मुझे तो यकीन ही नहीं हुआ कि वह ऐसे खत्म हुआ।",
            "हमें अगले हफ्ते उनसे मिलने जाना चाहिए, वे बार बार हमारे बारे में पूछते हैं।",
            "मैंने सुबह की ट्रेन पकड़ी, और वह हमेशा की तरह फिर देर से आई।",
            "वह कहती है कि कोने वाली नई दुकान का सूप बहुत अच्छा है।",
            "वापस आते समय दूसरे कमरे से कुर्सियाँ ले आओगे?",
            "मेरा भाई नए घर में चला गया है, अब वह स्टेशन के पास रहता है।",
            "इतनी तेज बारिश हो रही थी कि हम पूरे दिन घर पर ही रहे।",
            "रुको, मुझे सोचने दो, मैंने चाबियाँ मेज पर ही रखी थीं।",
        ],
    ),
    (
        "ml",
        [
            "ഇന്നലെ രാത്രി കളി കണ്ടോ? അത് അങ്ങനെ തീരുമെന്ന് ഞാൻ വിചാരിച്ചില്ല.",
            "അടുത്ത ആഴ്ച നമുക്ക് അവരെ കാണാൻ പോകണം, അവർ എപ്പോഴും ചോദിക്കാറുണ്ട്.",
            "ഞാൻ രാവിലത്തെ ട്രെയിനിൽ കയറി, അത് പതിവുപോലെ വൈകി.",
            "മൂലയിലെ പുതിയ കടയിലെ സൂപ്പ് വളരെ നല്ലതാണെന്ന് അവൾ പറയുന്നു.",
            "തിരിച്ചു വരുമ്പോൾ മറ്റേ മുറിയിലെ കസേരകൾ കൊണ്ടുവരാമോ?",
            "എന്റെ അനിയൻ വീട് മാറി, ഇപ്പോൾ സ്റ്റേഷന്റെ അടുത്താണ് താമസം.",
            "മഴ കാരണം ഞങ്ങൾ രണ്ടു ദിവസവും വീട്ടിൽ തന്നെ ഇരുന്നു.",
            "നിൽക്കൂ, ഞാൻ ഓർക്കട്ടെ, താക്കോൽ മേശപ്പുറത്ത് വെച്ചതാണ്.",
        ],
    ),
    (
        "ar",
        [
            "هل شاهدت المباراة ليلة أمس؟ لم أصدق كيف انتهت.",
            "يجب أن نزورهم الأسبوع القادم، فهم يسألون عنا دائما.",
            "ركبت القطار المبكر، وتأخر مرة أخرى كالعادة.",
            "تقول إن المكان الجديد عند الزاوية يقدم حساء رائعا.",
            "هل يمكنك أن تحضر الكراسي من الغرفة الأخرى عندما تعود؟",
            "انتقل أخي إلى بيت جديد، وهو يسكن الآن بجانب المحطة.",
            "كان المطر شديدا فبقينا في البيت طوال عطلة نهاية الأسبوع.",
            "انتظر، دعني أفكر، أنا متأكد أنني وضعت المفاتيح على الطاولة.",
        ],
    ),
    (
        "ru",
        [
            "Ты видел вчера матч? Я не могла поверить, чем всё закончилось.",
            "Надо съездить к ним на следующей неделе, они всё время о нас спрашивают.",
            "Я поехал на первом поезде, и он опять опоздал, как всегда.",
            "Она говорит, что в новом месте на углу готовят чудесный суп.",
            "Можешь принести стулья из другой комнаты, когда вернёшься?",
            "Мой брат переехал и теперь живёт прямо рядом с вокзалом.",
            "Шёл такой дождь, что мы все выходные просидели дома.",
            "Подожди, дай подумать, я точно положил ключи на стол.",
        ],
    ),
    (
        "fr",
        [
            "Tu as vu le match hier soir ? Je n'en revenais pas de la fin.",
            "On devrait aller les voir la semaine prochaine, ils demandent toujours après nous.",
            "J'ai pris le premier train, et il était encore en retard, comme toujours.",
            "Elle dit que le nouvel endroit au coin de la rue fait une soupe délicieuse.",
            "Tu peux apporter les chaises de l'autre pièce en revenant ?",
            "Mon frère a déménagé, il habite maintenant juste à côté de la gare.",
            "Il pleuvait tellement que nous sommes restés à la maison tout le week-end.",
            "Attends, laisse-moi réfléchir, je suis sûr d'avoir posé les clés sur la table.",
        ],
    ),
    (
        "vi",
        [
            "Tối qua anh có xem trận đấu không? Tôi không tin nổi nó lại kết thúc như vậy.",
            "Tuần sau mình nên đến thăm họ, họ cứ hỏi thăm mình mãi.",
            "Tôi đi chuyến tàu sớm, và nó lại trễ như mọi khi.",
            "Chị ấy nói quán mới ở góc đường nấu súp rất ngon.",
            "Khi quay lại, anh mang ghế ở phòng bên kia sang được không?",
            "Em trai tôi chuyển nhà rồi, bây giờ nó ở ngay cạnh nhà ga.",
            "Mưa to quá nên cả cuối tuần chúng tôi ở nhà.",
            "Khoan đã, để tôi nghĩ xem, chắc chắn tôi để chìa khóa trên bàn.",
        ],
    ),
    (
        "de",
        [
            "Hast du gestern Abend das Spiel gesehen? Ich konnte kaum glauben, wie es ausging.",
            "Wir sollten sie nächste Woche besuchen, sie fragen immer nach uns.",
            "Ich habe den frühen Zug genommen, und er war wieder zu spät, wie immer.",
            "Sie sagt, in dem neuen Laden an der Ecke gibt es eine wunderbare Suppe.",
            "Kannst du die Stühle aus dem anderen Zimmer mitbringen, wenn du zurückkommst?",
            "Mein Bruder ist umgezogen und wohnt jetzt direkt neben dem Bahnhof.",
            "Es hat so stark geregnet, dass wir das ganze Wochenende zu Hause geblieben sind.",
            "Warte, lass mich überlegen, ich habe die Schlüssel sicher auf den Tisch gelegt.",
        ],
    ),
    (
        "ko",
        [
            "어젯밤에 경기 봤어요? 그렇게 끝날 줄은 정말 몰랐어요.",
            "다음 주에 같이 만나러 가요, 계속 우리 소식을 묻더라고요.",
            "아침 일찍 기차를 탔는데 늘 그렇듯이 또 늦었어요.",
            "모퉁이에 새로 생긴 가게는 국물이 아주 맛있대요.",
            "돌아올 때 옆방에 있는 의자 좀 가져다줄래요?",
            "동생이 이사해서 지금은 역 바로 옆에 살아요.",
            "비가 너무 많이 와서 주말 내내 집에 있었어요.",
            "잠깐만요, 생각 좀 해 볼게요, 열쇠는 분명히 책상 위에 두었어요.",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use ringer_model::digital_human::Language;

    use super::*;
    use crate::phrases::phrases;

    #[test]
    fn every_language_has_talk_of_its_own() {
        for language in Language::ALL {
            let name = language.as_str();
            if *language == Language::Ad {
                continue;
            }
            let sentences = talk(name).unwrap_or_else(|| panic!("nothing is said in {name}"));
            let english = phrases(name).greeting == phrases("en").greeting;
            assert_eq!(english, name == "en", "{name}");
            for (at, sentence) in sentences.iter().enumerate() {
                assert!(sentence.len() >= 30 && !sentences[..at].contains(sentence), "{name}: {sentence}");
            }
        }
        assert_eq!(talk("xx"), None);
    }
}
