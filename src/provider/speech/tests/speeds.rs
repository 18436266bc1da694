//! The speed of speech: of whole calls, in every language.

use std::slice;

use super::*;
use crate::prosody::rate_wpm;

const SPEEDS: [&str; 5] = ["slowest", "slow", "normal", "fast", "fastest"];

/// Largest error of a call's speed, as a share of it.
const TOLERANCE: f32 = 0.08;

/// Turns of a caller in one call: 9 turns, 57 words.
const TURNS: [&str; 9] = [
    "Hello, I would like an appointment.",
    "My name is Maria Alvarez.",
    "I am calling about my last bill, because it was much higher than I expected.",
    "Could you please check the meter reading?",
    "No, I did not get the letter.",
    "When can somebody come to the house?",
    "That does not work for me.",
    "Yes, please send it to my email.",
    "Thank you very much for your help.",
];

/// The languages that count words, English apart.
const COUNTED: [(&str, &str); 9] = [
    (
        "es",
        "Buenos días, llamo por mi última factura de la luz. Es mucho más alta que la del mes pasado. He \
         mirado el contador dos veces y el número del papel no coincide con lo que yo veo. ¿Puede usted mirar \
         mi cuenta y decirme qué ha pasado? No puedo pagar tanto dinero este mes, porque tengo otros gastos.",
    ),
    (
        "pt",
        "Bom dia, estou ligando por causa da minha última conta de luz. Ela veio muito mais alta do que no \
         mês passado. Olhei o medidor duas vezes e o número no papel não é igual ao que eu vejo. Você pode \
         olhar a minha conta e me dizer o que aconteceu? Eu não posso pagar tanto dinheiro este mês.",
    ),
    (
        "fr",
        "Bonjour, je vous appelle au sujet de ma dernière facture. Elle est beaucoup plus élevée que le mois \
         dernier. Je suis allé voir le compteur deux fois et le nombre qui est sur le papier ne correspond \
         pas à ce que je vois. Pouvez vous regarder mon compte et me dire ce qui est arrivé? Je ne peux pas \
         payer autant.",
    ),
    (
        "de",
        "Guten Tag, ich rufe wegen meiner letzten Stromrechnung an. Sie war viel höher als im vergangenen \
         Monat. Ich habe den Zähler zweimal abgelesen, und die Zahl auf dem Papier stimmt nicht mit dem \
         überein, was ich sehe. Können Sie bitte mein Konto prüfen und mir erklären, was passiert ist? Ich \
         kann so viel Geld nicht bezahlen.",
    ),
    (
        "ru",
        "Здравствуйте, я звоню по поводу последнего счёта за электричество. Он намного выше, чем в прошлом \
         месяце. Я дважды проверил счётчик, и число на бумаге не совпадает с тем, что я вижу. Пожалуйста, \
         посмотрите мой договор и скажите мне, что случилось. Я не могу заплатить столько денег в этом \
         месяце. Если нужно, я могу прислать фотографию счётчика.",
    ),
    (
        "tr",
        "İyi günler, son elektrik faturam hakkında arıyorum. Geçen aydan çok daha yüksek geldi. Sayacı iki \
         kere kontrol ettim ve kağıttaki sayı benim gördüğüm sayıyla aynı değil. Lütfen hesabıma bakıp ne \
         olduğunu söyleyebilir misiniz? Bu ay bu kadar çok para ödeyemem. Bana yardım ederseniz çok \
         sevinirim, çünkü başka kimse telefona cevap vermedi.",
    ),
    (
        "hi",
        "नमस्ते, मैं अपने पिछले बिजली के बिल के बारे में फोन कर रहा हूँ। यह पिछले महीने से बहुत ज्यादा आया \
         है। मैंने मीटर को दो बार देखा है और कागज पर जो संख्या है वह उससे अलग है जो मैं देख रहा हूँ। क्या आप \
         मेरा खाता देखकर बता सकते हैं कि क्या हुआ है?",
    ),
    (
        "ar",
        "مرحبا، أتصل بشأن فاتورة الكهرباء الأخيرة. كانت أعلى بكثير من الشهر الماضي. لقد قرأت العداد مرتين \
         والرقم على الورقة لا يطابق ما أراه. هل يمكنك أن تنظر في حسابي وتخبرني ماذا حدث؟ لا أستطيع أن أدفع \
         هذا المبلغ الكبير هذا الشهر. أرجو أن تساعدني في حل هذه المشكلة اليوم لأنني سأسافر غدا مع عائلتي.",
    ),
    (
        "vi",
        "Xin chào, tôi gọi về hóa đơn tiền điện tháng trước của tôi. Nó cao hơn nhiều so với tháng trước nữa. \
         Tôi đã xem đồng hồ hai lần và con số trên giấy không giống với số mà tôi thấy. Bạn có thể xem tài \
         khoản của tôi và cho tôi biết chuyện gì đã xảy ra không?",
    ),
];

/// The languages that do not, each text at least 10 s long.
const UNCOUNTED: [(&str, &str); 5] = [
    (
        "zh",
        "你好，我想问一下上个月的电费单。这张单子比我预计的高很多。我看了两次电表，纸上的数字和我看到的不一样。\
         能不能帮我看一下账户，告诉我发生了什么事？",
    ),
    (
        "yue",
        "你好，我想問下上個月嘅電費單。呢張單比我預計嘅高好多。我睇咗個電錶兩次，紙上面嘅數字同我見到嘅唔一樣。\
         可唔可以幫我睇下個戶口，話我知發生咗咩事？",
    ),
    (
        "ja",
        "こんにちは、先月の電気料金のことで電話しました。思っていたよりずっと高かったのです。\
         メーターを二回確認しましたが、紙に書いてある数字と違います。",
    ),
    (
        "ko",
        "안녕하세요, 지난달 전기 요금 때문에 전화드렸습니다. 예상보다 훨씬 많이 나왔어요. 계량기를 두 번 \
         확인했는데 종이에 적힌 숫자와 다릅니다. 제 계정을 확인하고 무슨 일이 있었는지 말씀해 주시겠어요?",
    ),
    (
        "ml",
        "നമസ്കാരം, എന്റെ കഴിഞ്ഞ വൈദ്യുതി ബില്ലിനെക്കുറിച്ചാണ് ഞാൻ വിളിക്കുന്നത്. കഴിഞ്ഞ മാസത്തേക്കാൾ വളരെ \
         കൂടുതലാണ് ഇത്. ഞാൻ മീറ്റർ രണ്ടു തവണ നോക്കി. ദയവായി എന്റെ അക്കൗണ്ട് നോക്കി എന്താണ് സംഭവിച്ചതെന്ന് \
         പറയാമോ?",
    ),
];

/// Returns a caller of this language, the same at every speed.
fn caller(language: &str, speed: &str) -> Voice {
    choose(&VoiceWanted { speed: speed.into(), seed: Seed(5), ..VoiceWanted::of(language) }).expect("it has a voice")
}

async fn seconds(speech: &EmbeddedSpeech, texts: &[&str], voice: &Voice) -> f32 {
    let mut seconds = 0.0;
    for text in texts {
        seconds += timbre::speech_s(&speech.speak(text, voice).await.expect("the programs are installed"));
    }
    seconds
}

/// Checks that each voice says its texts at the speed that it was asked for.
async fn check_calls(calls: Vec<(Voice, &[&str])>) {
    let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
    let mut wrong = Vec::new();
    for (voice, texts) in calls {
        let words: usize = texts.iter().map(|text| text.split_whitespace().count()).sum();
        assert!(words >= 50, "{words} words");
        let wpm = words as f32 * 60.0 / seconds(&speech, texts, &voice).await;
        let line = format!("{}: {wpm:.1} words per minute, {} asked", voice.id, voice.rate_wpm);
        println!("{line}");
        if (wpm / voice.rate_wpm - 1.0).abs() >= TOLERANCE {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn every_english_voice_keeps_the_speed_over_a_call() {
    let ids = ["flite:slt", "flite:rms", "flite:awb", "flite:kal16", "espeak-ng:en+f1", "espeak-ng:en-gb-scotland+m3"];
    let calls = ids.iter().zip(0..).flat_map(|(id, seed)| SPEEDS.map(|speed| (voice(id, speed, seed), &TURNS[..])));
    check_calls(calls.collect()).await;
}

#[tokio::test]
async fn every_language_that_counts_words_keeps_the_speed() {
    let mut calls = Vec::new();
    for (language, text) in &COUNTED {
        calls.extend(SPEEDS.map(|speed| (caller(language, speed), slice::from_ref(text))));
    }
    check_calls(calls).await;
}

#[tokio::test]
async fn languages_that_do_not_count_words_follow_the_factor() {
    let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
    for (language, text) in UNCOUNTED {
        let own_s = seconds(&speech, &[text], &caller(language, "normal")).await;
        assert!(own_s > 10.0, "{language}: {own_s} s");
        for (speed, factor) in SPEEDS.into_iter().zip([0.647, 0.824, 1.0, 1.206, 1.471]) {
            let found = own_s / seconds(&speech, &[text], &caller(language, speed)).await;
            println!("{language} {speed}: factor {found:.3}, {factor} asked");
            assert!((found / factor - 1.0).abs() < TOLERANCE, "{language} {speed}: {found}");
        }
    }
}

#[tokio::test]
async fn pitch_is_kept_at_every_speed() {
    let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
    // The second makes its pitch by playing faster.
    for (id, pitch) in [("flite:slt", 1.0), ("flite:rms", 1.15), ("espeak-ng:en+f2", 1.0)] {
        let mut found = Vec::new();
        for speed in ["slowest", "normal", "fastest"] {
            let voice = Voice { id: id.into(), rate_wpm: rate_wpm(speed), pitch, ..Voice::default() };
            found.push(pitch_hz(&speech.speak(TURNS[2], &voice).await.expect("the programs are installed")));
        }
        println!("{id}: {found:.0?} Hz");
        assert!(found.iter().all(|hz| (hz / found[1] - 1.0).abs() < 0.06), "{id}: {found:?} Hz");
    }
}
