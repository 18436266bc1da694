//! Letters as they are compared: without case, accents, and signs that only join or shape letters.

use unicode_normalization::char::decompose_canonical;

/// First digits (zeros) of the decimal digits of Unicode that people write.
const ZEROS: [u32; 24] = [
    0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0,
    0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0xa9d0, 0xff10,
];

/// Returns the value of a decimal digit of any script.
pub fn digit(c: char) -> Option<u8> {
    let code = c as u32;
    ZEROS.iter().find(|&&zero| (zero..zero + 10).contains(&code)).map(|zero| (code - zero) as u8)
}

/// Letters of scripts that are written without blanks: kana and Chinese characters.
pub fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}')
}

/// True for a sign that belongs to the letter before it: vowel signs, accents, joiners.
pub fn is_mark(c: char) -> bool {
    matches!(
        c,
        '\u{300}'..='\u{36f}' | '\u{610}'..='\u{61a}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}'
            | '\u{93a}'..='\u{94f}' | '\u{951}'..='\u{957}' | '\u{900}'..='\u{903}' | '\u{d00}'..='\u{d03}'
            | '\u{d3b}'..='\u{d4d}' | '\u{d57}' | '\u{d62}'..='\u{d63}' | '\u{200c}' | '\u{200d}'
    )
}

/// Rules by which the letters of one language are compared.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Folding {
    keeps_accents: bool,
    /// True: katakana count as hiragana.
    is_kana: bool,
}

impl Folding {
    pub(super) fn of(language: &str) -> Folding {
        Folding { keeps_accents: language == "vi", is_kana: language == "ja" }
    }

    /// Appends the letters of `c`.
    pub(super) fn push(self, c: char, out: &mut Vec<char>) {
        match c {
            '\u{200c}' | '\u{200d}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}' => {}
            'أ' | 'إ' | 'آ' | 'ٱ' => out.push('ا'),
            'ى' => out.push('ي'),
            'ة' => out.push('ه'),
            'ß' => out.extend(['s', 's']),
            'ı' => out.push('i'),
            'ँ' => out.push('ं'),
            '\u{93c}' => {}
            '\u{958}'..='\u{95f}' => decompose_canonical(c, |part| out.extend((part != '\u{93c}').then_some(part))),
            // A letter that ends a syllable is a letter and the sign that ends it.
            'ൺ' => out.extend(['ണ', '\u{d4d}']),
            'ൻ' => out.extend(['ന', '\u{d4d}']),
            'ർ' => out.extend(['ര', '\u{d4d}']),
            'ൽ' => out.extend(['ല', '\u{d4d}']),
            'ൾ' => out.extend(['ള', '\u{d4d}']),
            '\u{30a1}'..='\u{30f6}' if self.is_kana => out.extend(char::from_u32(c as u32 - 0x60)),
            '\u{ff01}'..='\u{ff5e}' => {
                let ascii = char::from_u32(c as u32 - 0xfee0);
                out.extend(ascii.map(|c| c.to_ascii_lowercase()));
            }
            _ if self.keeps_accents || !matches!(c, '\0'..='\u{52f}' | '\u{1e00}'..='\u{1eff}') => {
                out.extend(c.to_lowercase());
            }
            _ => decompose_canonical(c, |part| {
                if !matches!(part, '\u{300}'..='\u{36f}') {
                    out.extend(part.to_lowercase().filter(|c| !matches!(c, '\u{300}'..='\u{36f}')));
                }
            }),
        }
    }

    /// Returns a word as it is compared. The sign or short vowel that ends a Malayalam word is left out.
    pub(super) fn word(self, text: &str) -> String {
        let mut letters = Vec::new();
        text.chars().for_each(|c| self.push(c, &mut letters));
        while letters.len() > 1 && letters.last().is_some_and(|c| matches!(c, '\u{d4d}' | '\u{d41}')) {
            letters.pop();
        }
        letters.into_iter().collect()
    }
}

/// Returns a word of a language as it is compared.
pub fn fold_word(language: &str, word: &str) -> String {
    Folding::of(language).word(word)
}
