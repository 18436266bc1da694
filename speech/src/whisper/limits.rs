//! Limits of a text, by which one that has lost itself in a loop is known. They count letters: a token of the
//! multilingual vocabulary is about four letters of English, one of Hindi or Thai, half of one of Malayalam or Bengali,
//! a third of one of Burmese.

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// Largest number of letters of a text: this many, and this many a second. Fast speech has 20 to 25 a second in scripts
/// whose vowel signs are letters of their own.
const LETTERS: (usize, f64) = (40, 30.0);

/// Ratio of a text's length to its compressed form above which it repeats itself. Texts of fewer than `REPEATS_BYTES`
/// show nothing.
const REPEATS: f64 = 2.0;
const REPEATS_BYTES: usize = 60;

/// Largest number of letters of a brief text: "thanks for watching" has 17.
const BRIEF: usize = 17;

/// Longest piece of speech that the model's 448 tokens hold in every language of [`DENSE`], in samples: 11 s. Fast
/// speech has 14 letters a second.
const DENSE_PIECE: usize = 11 * 16_000;
/// The same for all other languages: 26 s, as the model knows 30 s.
const PIECE: usize = 26 * 16_000;

/// Languages with more than 1.2 tokens a letter, counted in the multilingual vocabulary.
const DENSE: [&str; 15] = ["am", "as", "bn", "bo", "gu", "hy", "ka", "km", "kn", "lo", "ml", "my", "pa", "si", "te"];

/// Returns the longest piece of speech in a language whose text fits in the model, in samples of 16 kHz.
pub fn piece_samples(language: &str) -> usize {
    if DENSE.contains(&language) { DENSE_PIECE } else { PIECE }
}

/// First letter of the scripts in which a letter is a syllable or a word (CJK): two bytes tell them apart.
const WIDE_FROM: u32 = 0x2e80;

/// Tokens and letters that are left for a text.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct TextBudget {
    tokens: usize,
    letters: usize,
}

impl TextBudget {
    /// Returns the budget for a text of so many seconds of speech, of at most `tokens`.
    pub(super) fn of(seconds: f64, tokens: usize) -> TextBudget {
        TextBudget { tokens, letters: LETTERS.0 + (LETTERS.1 * seconds) as usize }
    }

    /// Takes a token with these bytes of UTF-8, which may be a part of a letter; returns false when no more fit.
    pub(super) fn has_more_after(&mut self, bytes: &[u8]) -> bool {
        let begins_letter = |byte: &&u8| **byte & 0xc0 != 0x80;
        self.tokens = self.tokens.saturating_sub(1);
        self.letters = self.letters.saturating_sub(bytes.iter().filter(begins_letter).count());
        self.tokens > 0 && self.letters > 0
    }
}

/// True if a text repeats itself. The length of its letters in UTF-8 does not count: three bytes a letter, of which two
/// are the same in a whole script, look like a repetition.
pub(super) fn repeats_itself(text: &str) -> bool {
    let mut bytes = Vec::with_capacity(text.len());
    for letter in text.chars().map(u32::from) {
        if letter >= WIDE_FROM {
            bytes.push((letter >> 8) as u8);
        }
        bytes.push(letter as u8);
    }
    if bytes.len() < REPEATS_BYTES {
        return false;
    }
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    let packed = std::io::Write::write_all(&mut packed, &bytes).and_then(|()| packed.finish());
    packed.is_ok_and(|packed| bytes.len() as f64 / packed.len() as f64 > REPEATS)
}

/// True for a text of hardly more than a word, however often it is said: what the model makes of music.
pub(super) fn is_brief(text: &str) -> bool {
    let mut known: Vec<String> = Vec::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        let word: String =
            word.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        if !known.contains(&word) {
            // A letter of CJK is a syllable or a word.
            length += word.chars().map(|letter| if u32::from(letter) >= WIDE_FROM { 4 } else { 1 }).sum::<usize>();
            known.push(word);
        }
        if length > BRIEF {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of callers, with the seconds in which a fast speaker says them.
    const SPOKEN: [(&str, f64); 6] = [
        (
            "नमस्ते, मैं कल की मुलाकात के बारे में पूछना चाहता हूँ, क्या डॉक्टर सुबह दस बजे मिल \
             सकते हैं, या मुझे दोपहर में आना होगा? मेरा नाम रमेश शर्मा है और मेरा फोन नंबर नौ आठ \
             सात छह पाँच चार है, कृपया मुझे शाम तक बता दीजिए कि कौन सा समय ठीक रहेगा।",
            14.0,
        ),
        (
            "നമസ്കാരം, നാളെ രാവിലെ ഡോക്ടറെ കാണാൻ സമയം കിട്ടുമോ എന്ന് അറിയാനാണ് ഞാൻ വിളിക്കുന്നത്, \
             ഉച്ചയ്ക്ക് ശേഷം ആയാലും മതി. എന്റെ പേര് രമേശ് മേനോൻ എന്നാണ്, ഫോൺ നമ്പർ ഒൻപത് എട്ട് ഏഴ് \
             ആറ്, ദയവായി വൈകുന്നേരത്തിനു മുമ്പ് അറിയിക്കുക.",
            14.0,
        ),
        (
            "สวัสดีครับ ผมอยากจะนัดหมอพรุ่งนี้ตอนเช้า ไม่ทราบว่ายังมีคิวว่างอยู่ไหมครับ \
             ถ้าไม่มีขอเป็นช่วงบ่ายก็ได้ครับ ผมชื่อสมชาย เบอร์โทรศัพท์ศูนย์แปดหนึ่ง สองสามสี่ \
             ช่วยแจ้งกลับก่อนเย็นนี้ด้วยนะครับ ขอบคุณมาก",
            14.0,
        ),
        (
            "你好，我想预约明天上午的医生，请问还有空位吗？如果没有的话，下午也可以，我的电话号码是一三八零零一二三四五六。",
            11.0,
        ),
        (
            "Здравствуйте, я хотел бы записаться к врачу на завтра, есть ли у вас свободное время \
             утром или после обеда?",
            7.0,
        ),
        (
            "I am calling about the invoice that I received from you yesterday, please, and would \
             like to know when it is due.",
            6.0,
        ),
    ];

    /// Returns true if a text of one byte a token, the most that there are, fits.
    fn fits(text: &str, seconds: f64) -> bool {
        let mut budget = TextBudget::of(seconds, usize::MAX);
        text.bytes().all(|byte| budget.has_more_after(&[byte]))
    }

    #[test]
    fn speech_of_every_script_fits_and_does_not_repeat_itself() {
        for (text, seconds) in SPOKEN {
            assert!(fits(text, seconds), "{text}");
            assert!(!repeats_itself(text), "{text}");
        }
    }

    #[test]
    fn a_piece_of_speech_fits_in_the_model() {
        for (language, tokens_per_letter) in
            [("en", 0.25), ("hi", 1.0), ("mr", 1.1), ("ml", 2.1), ("my", 2.8), ("hy", 1.3)]
        {
            let tokens = piece_samples(language) as f64 / 16_000.0 * 14.0 * tokens_per_letter;
            assert!(tokens < 440.0, "{language}: {tokens}");
        }
    }

    #[test]
    fn brief_texts_are_known_in_every_script() {
        for brief in ["you", "Thank you.", "Thanks for watching!", "Mm-hmm. Mm-hmm. Mm-hmm. Mm-hmm.", "", "谢谢观看"]
        {
            assert!(is_brief(brief), "{brief}");
        }
        assert!(SPOKEN.iter().all(|(text, _)| !is_brief(text)));
    }

    #[test]
    fn a_loop_of_every_script_comes_to_its_limit_and_repeats_itself() {
        for (text, _) in SPOKEN {
            let phrase: String = text.chars().take(12).chain([' ']).collect();
            assert!(repeats_itself(&phrase.repeat(6)), "{phrase}");
            assert!(!fits(&phrase.repeat(12), 2.0), "{phrase}");
        }
        let mut budget = TextBudget::of(1000.0, 3);
        assert_eq!([(); 3].map(|()| budget.has_more_after(b"x")), [true, true, false], "the model's own limit");
    }
}
