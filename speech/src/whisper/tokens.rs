//! The vocabulary: text of tokens, and the tokens that are no text.

use std::collections::HashMap;

use serde_json::Value;

use crate::{Unusable, unusable};

/// Largest number of tokens in a vocabulary.
const TOKENS_MAX: usize = 60_000;

/// A vocabulary of byte pairs with special marks.
pub(super) struct Tokens {
    texts: Vec<Vec<u8>>,
    pub end: u32,
    pub start: u32,
    pub no_times: u32,
    pub transcribe: Option<u32>,
    pub no_speech: Option<u32>,
    /// Token before words that came earlier, or are likely to come.
    pub before: Option<u32>,
    /// Codes of languages, each with its token.
    pub languages: Vec<(String, u32)>,
    /// Tokens that have a text, in the order of their bytes.
    sorted: Vec<u32>,
}

impl Tokens {
    /// Reads a `tokenizer.json`, for a model with `count` tokens.
    ///
    /// # Errors
    ///
    /// Names what is missing in it.
    pub(super) fn load(json: &Value, count: usize) -> Result<Tokens, Unusable> {
        if count > TOKENS_MAX {
            return unusable(format!("a vocabulary of {count}, more than {TOKENS_MAX}"));
        }
        let vocabulary =
            json["model"]["vocab"].as_object().ok_or_else(|| Unusable("it has no model.vocab".to_owned()))?;
        let mut texts = vec![Vec::new(); count];
        let bytes = bytes_of_letters();
        for (text, number) in vocabulary {
            let Some(place) = number.as_u64().and_then(|number| texts.get_mut(number as usize)) else {
                return unusable(format!("its word {text:.30} has a number that the model lacks"));
            };
            *place = text.chars().filter_map(|letter| bytes.get(&letter).copied()).collect();
        }
        let marks: HashMap<&str, u32> = json["added_tokens"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|mark| Some((mark["content"].as_str()?, u32::try_from(mark["id"].as_u64()?).ok()?)))
            .filter(|&(_, number)| (number as usize) < count)
            .collect();
        // Tokens after it must not become text.
        marks.values().for_each(|&number| texts[number as usize].clear());
        let need = |name: &str| marks.get(name).copied().ok_or_else(|| Unusable(format!("it has no mark {name}")));
        let mut languages: Vec<(String, u32)> = marks.iter().filter_map(|(name, &mark)| language(name, mark)).collect();
        languages.sort_by_key(|&(_, number)| number);
        let mut sorted: Vec<u32> = (0..count as u32).filter(|&token| !texts[token as usize].is_empty()).collect();
        sorted.sort_by(|&one, &other| texts[one as usize].cmp(&texts[other as usize]));
        Ok(Tokens {
            end: need("<|endoftext|>")?,
            start: need("<|startoftranscript|>")?,
            no_times: need("<|notimestamps|>")?,
            transcribe: marks.get("<|transcribe|>").copied(),
            no_speech: ["<|nospeech|>", "<|nocaptions|>"].iter().find_map(|name| marks.get(name).copied()),
            before: marks.get("<|startofprev|>").copied(),
            languages,
            sorted,
            texts,
        })
    }

    /// Returns the bytes of a token; none for marks.
    pub(super) fn bytes(&self, token: u32) -> &[u8] {
        self.texts.get(token as usize).map_or(&[], Vec::as_slice)
    }

    /// Returns the text of tokens; bytes that are not UTF-8 are left out.
    pub(super) fn text(&self, tokens: &[u32]) -> String {
        let bytes: Vec<u8> = tokens.iter().flat_map(|&token| self.bytes(token)).copied().collect();
        String::from_utf8_lossy(&bytes).replace(char::REPLACEMENT_CHARACTER, "")
    }

    /// Returns the tokens of a text (byte pair encoding). A byte without a token is left out.
    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        pieces(text).into_iter().flat_map(|piece| self.encode_piece(piece.as_bytes())).collect()
    }

    /// Joins neighbouring parts as long as a token has them. The token with the lowest number was joined first when the
    /// vocabulary was made.
    fn encode_piece(&self, bytes: &[u8]) -> Vec<u32> {
        let mut ends: Vec<usize> = (0..=bytes.len()).collect();
        loop {
            let joined = ends.windows(3).enumerate().filter_map(|(at, three)| {
                let token = self.token(&bytes[three[0]..three[2]])?;
                Some((token, at + 1))
            });
            let Some((_, middle)) = joined.min() else { break };
            ends.remove(middle);
        }
        ends.windows(2).filter_map(|pair| self.token(&bytes[pair[0]..pair[1]])).collect()
    }

    /// Returns the token of exactly these bytes.
    fn token(&self, bytes: &[u8]) -> Option<u32> {
        let found = self.sorted.binary_search_by(|&token| self.bytes(token).cmp(bytes)).ok()?;
        Some(self.sorted[found])
    }

    /// Returns the token of a language.
    pub(super) fn language(&self, code: &str) -> Option<u32> {
        let named = |code: &str| self.languages.iter().find(|(name, _)| name == code).map(|&(_, mark)| mark);
        // Earlier models know Cantonese as Chinese.
        named(code).or_else(|| (code == "yue").then(|| named("zh")).flatten())
    }
}

/// Returns the pieces of a text that no token crosses: letters, digits or other characters, each with a blank before.
fn pieces(text: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        c if c.is_alphabetic() => 0,
        c if c.is_numeric() => 1,
        c if c.is_whitespace() => 2,
        _ => 3,
    };
    let mut found = Vec::new();
    let (mut from, mut before) = (0, None);
    for (at, c) in text.char_indices() {
        let goes_on = before.is_some_and(|(last, length)| last == kind(c) || (last == 2 && length == 1));
        if at > from && !goes_on {
            found.push(&text[from..at]);
            from = at;
        }
        let length = if at == from { 1 } else { 2 };
        before = Some((kind(c), length));
    }
    if from < text.len() {
        found.push(&text[from..]);
    }
    found
}

/// Reads the name of a language token, as `<|en|>`: two or three small letters.
fn language(name: &str, mark: u32) -> Option<(String, u32)> {
    let code = name.strip_prefix("<|")?.strip_suffix("|>")?;
    let fits = (2..=3).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_lowercase());
    fits.then(|| (code.to_owned(), mark))
}

/// Returns the letters that stand for bytes in vocabularies of this kind (GPT-2): printable ones for themselves, others
/// from U+0100 on.
fn bytes_of_letters() -> HashMap<char, u8> {
    let mut others = 0x100;
    let letter = |byte: u8| {
        let printable = matches!(byte, 33..=126 | 161..=172 | 174..=255);
        let code = if printable { u32::from(byte) } else { others };
        others += u32::from(!printable);
        (char::from_u32(code).expect("letters below U+0200"), byte)
    };
    (0..=255).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tokenizer() -> Value {
        json!({
            "model": {"vocab": {"H": 0, "\u{120}you": 1, "\u{c3}": 2, "\u{a9}": 3}},
            "added_tokens": [
                {"id": 4, "content": "<|endoftext|>"}, {"id": 5, "content": "<|startoftranscript|>"},
                {"id": 6, "content": "<|en|>"}, {"id": 7, "content": "<|yue|>"}, {"id": 8, "content": "<|notimestamps|>"},
                {"id": 9, "content": "<|0.00|>"}, {"id": 99, "content": "<|transcribe|>"},
            ],
        })
    }

    #[test]
    fn numbers_become_text() {
        let tokens = Tokens::load(&tokenizer(), 10).expect("it is whole");
        assert_eq!(tokens.text(&[0, 1, 2, 3]), "H you\u{e9}");
        assert_eq!(tokens.text(&[2, 4, 9, 77]), "", "half a letter, marks, no number");
        assert_eq!(tokens.languages, [("en".to_owned(), 6), ("yue".to_owned(), 7)]);
        assert_eq!((tokens.transcribe, tokens.no_speech, tokens.end), (None, None, 4));
    }

    #[test]
    fn text_becomes_the_tokens_that_were_joined_first() {
        let vocabulary = json!({
            "a": 0, "b": 1, "c": 2, "\u{120}": 3, ",": 4, "ab": 5, "bc": 6, "\u{120}a": 7, "abc": 8, "\u{120}abc": 9,
        });
        let mut json = tokenizer();
        json["model"]["vocab"] = vocabulary;
        for mark in json["added_tokens"].as_array_mut().expect("a list") {
            mark["id"] = json!(mark["id"].as_u64().expect("a number") + 10);
        }
        let tokens = Tokens::load(&json, 30).expect("it is whole");
        for (text, expect) in [
            ("abc", &[8][..]),
            ("bcab", &[6, 5]),
            // A blank goes with the letters behind it; a comma ends them.
            ("ab, abc", &[5, 4, 9]),
            ("a\u{e9}b", &[0, 1]),
            ("", &[]),
        ] {
            assert_eq!(tokens.encode(text), expect, "{text}");
        }
        assert_eq!(pieces("Al 42, x--y"), ["Al", " 42", ",", " x", "--", "y"]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let check = |json: Value, count, expect: &str| {
            let why = Tokens::load(&json, count).err().expect("it is not usable");
            assert!(why.0.contains(expect), "{why}");
        };
        check(json!({}), 10, "no model.vocab");
        check(json!({"model": {"vocab": {}}}), 10, "no mark <|endoftext|>");
        check(tokenizer(), 2, "a number that the model lacks");
        check(tokenizer(), 1_000_000, "a vocabulary of 1000000");
    }
}
