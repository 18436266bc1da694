//! Phonemes as the network knows them: one letter each, with a number.

/// Letters of the network with their numbers: the vocabulary of Kokoro-82M.
const LETTERS: [(char, i32); 114] = [
    (';', 1),
    (':', 2),
    (',', 3),
    ('.', 4),
    ('!', 5),
    ('?', 6),
    ('—', 9),
    ('…', 10),
    ('"', 11),
    ('(', 12),
    (')', 13),
    ('“', 14),
    ('”', 15),
    (' ', 16),
    ('\u{303}', 17),
    ('ʣ', 18),
    ('ʥ', 19),
    ('ʦ', 20),
    ('ʨ', 21),
    ('ᵝ', 22),
    ('ꭧ', 23),
    ('A', 24),
    ('I', 25),
    ('O', 31),
    ('Q', 33),
    ('S', 35),
    ('T', 36),
    ('W', 39),
    ('Y', 41),
    ('ᵊ', 42),
    ('a', 43),
    ('b', 44),
    ('c', 45),
    ('d', 46),
    ('e', 47),
    ('f', 48),
    ('h', 50),
    ('i', 51),
    ('j', 52),
    ('k', 53),
    ('l', 54),
    ('m', 55),
    ('n', 56),
    ('o', 57),
    ('p', 58),
    ('q', 59),
    ('r', 60),
    ('s', 61),
    ('t', 62),
    ('u', 63),
    ('v', 64),
    ('w', 65),
    ('x', 66),
    ('y', 67),
    ('z', 68),
    ('ɑ', 69),
    ('ɐ', 70),
    ('ɒ', 71),
    ('æ', 72),
    ('β', 75),
    ('ɔ', 76),
    ('ɕ', 77),
    ('ç', 78),
    ('ɖ', 80),
    ('ð', 81),
    ('ʤ', 82),
    ('ə', 83),
    ('ɚ', 85),
    ('ɛ', 86),
    ('ɜ', 87),
    ('ɟ', 90),
    ('ɡ', 92),
    ('ɥ', 99),
    ('ɨ', 101),
    ('ɪ', 102),
    ('ʝ', 103),
    ('ɯ', 110),
    ('ɰ', 111),
    ('ŋ', 112),
    ('ɳ', 113),
    ('ɲ', 114),
    ('ɴ', 115),
    ('ø', 116),
    ('ɸ', 118),
    ('θ', 119),
    ('œ', 120),
    ('ɹ', 123),
    ('ɾ', 125),
    ('ɻ', 126),
    ('ʁ', 128),
    ('ɽ', 129),
    ('ʂ', 130),
    ('ʃ', 131),
    ('ʈ', 132),
    ('ʧ', 133),
    ('ʊ', 135),
    ('ʋ', 136),
    ('ʌ', 138),
    ('ɣ', 139),
    ('ɤ', 140),
    ('χ', 142),
    ('ʎ', 143),
    ('ʒ', 147),
    ('ʔ', 148),
    ('ˈ', 156),
    ('ˌ', 157),
    ('ː', 158),
    ('ʰ', 162),
    ('ʲ', 164),
    ('↓', 169),
    ('→', 171),
    ('↗', 172),
    ('↘', 173),
    ('ᵻ', 177),
];

/// Pairs of letters that are one letter here, in every language.
const JOINED: [(&str, &str); 10] = [
    ("aɪ", "I"),
    ("aʊ", "W"),
    ("eɪ", "A"),
    ("oʊ", "O"),
    ("əʊ", "Q"),
    ("ɔɪ", "Y"),
    ("tʃ", "ʧ"),
    ("dʒ", "ʤ"),
    ("ts", "ʦ"),
    ("dz", "ʣ"),
];

/// Sounds of English that the network was taught otherwise than libespeak-ng writes them.
const ENGLISH: [(&str, &str); 10] = [
    ("ʔn\u{329}", "tᵊn"),
    ("ʔ", "t"),
    ("ɚ", "əɹ"),
    ("r", "ɹ"),
    ("x", "k"),
    ("ɬ", "l"),
    ("ʲ", ""),
    ("ɐ", "ə"),
    ("əl ", "ᵊl "),
    ("\u{303}", ""),
];

/// The same for American English, after the others.
const AMERICAN: [(&str, &str); 4] = [("ɜːɹ", "ɜɹ"), ("ɜː", "ɜɹ"), ("ɪə", "iə"), ("ː", "")];

/// Returns the numbers of phonemes that libespeak-ng wrote for voices of a country. Unknown letters are left out.
pub(super) fn ids(phonemes: &str, country: &str) -> Vec<i32> {
    let number = |letter: char| LETTERS.iter().find(|(known, _)| *known == letter).map(|(_, number)| *number);
    letters(phonemes, country).chars().filter_map(number).collect()
}

fn letters(phonemes: &str, country: &str) -> String {
    let english = ["US", "GB"].contains(&country);
    // Affricates of English words are of two sounds or of one; `ts` and `dz` are always two.
    let joined = JOINED.iter().filter(|(pair, _)| !english || !["ts", "dz"].contains(pair));
    let english = ENGLISH.iter().filter(|_| english);
    let american = AMERICAN.iter().filter(|_| country == "US");
    let replaced = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
    // A blank at the end has the rule for the end of words apply to the last one.
    let all = joined.chain(english).chain(american).fold(format!("{phonemes} "), replaced);
    all.replace('-', "").trim_end().to_owned()
}

/// Returns parts of at most `most` numbers, between words where that is possible.
pub(super) fn parts(ids: &[i32], most: usize) -> Vec<&[i32]> {
    const BLANK: i32 = 16;
    let (mut parts, mut rest) = (Vec::new(), ids);
    while rest.len() > most {
        let blank = rest[..most].iter().rposition(|id| *id == BLANK).filter(|at| *at > 0);
        let (part, later) = rest.split_at(blank.map_or(most, |at| at + 1));
        parts.push(part);
        rest = later;
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phonemes_are_written_as_the_network_knows_them() {
        let check = |phonemes: &str, country: &str, expect: &str| {
            assert_eq!(letters(phonemes, country), expect, "{phonemes} {country}");
        };
        check("həˈloʊ, aɪ æm hˈɪɹ.", "US", "həˈlO, I æm hˈɪɹ.");
        check("nˈəʊ", "GB", "nˈQ");
        check("wˈɜːd", "US", "wˈɜɹd");
        check("wˈɜːd", "GB", "wˈɜːd");
        check("bˈɛɾɚ", "US", "bˈɛɾəɹ");
        check("dʒˈʌdʒ tʃˈɜːtʃ", "US", "ʤˈʌʤ ʧˈɜɹʧ");
        check("lˈɪtəl bˈɑːɾəl", "US", "lˈɪtᵊl bˈɑɾᵊl");
        check("rˈoxo kˈatsa", "ES", "rˈoxo kˈaʦa");
        check("bɔ̃ʒˈuʁ", "FR", "bɔ̃ʒˈuʁ");
    }

    #[test]
    fn letters_have_the_numbers_of_the_vocabulary_and_unknown_ones_are_left_out() {
        assert_eq!(ids("hɛ, ☎ʃ?", "US"), [50, 86, 3, 16, 131, 6]);
        let mut numbers: Vec<i32> = LETTERS.iter().map(|(_, number)| *number).collect();
        assert!(numbers.is_sorted());
        numbers.dedup();
        assert_eq!((numbers.len(), numbers[0], numbers[113]), (114, 1, 177));
    }

    #[test]
    fn what_is_too_long_is_parted_between_words() {
        let check = |ids: &[i32], most: usize, expect: &[&[i32]]| assert_eq!(parts(ids, most), expect, "{ids:?}");
        check(&[], 4, &[]);
        check(&[1, 2, 3, 4], 4, &[&[1, 2, 3, 4]]);
        check(&[1, 16, 3, 4, 5], 4, &[&[1, 16], &[3, 4, 5]]);
        check(&[16, 2, 3, 4, 5], 4, &[&[16, 2, 3, 4], &[5]]);
    }
}
