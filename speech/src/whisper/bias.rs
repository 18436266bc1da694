//! Words that are likely to come, such as names: what of them the model is shown, and when a text that was made with
//! them stands.
//!
//! A model that is shown words writes them into silence and noise. So a stretch has its text without them first; where
//! that is none, nothing is made of the words. A text with them stands only in the place of one that is about as long.

use super::tokens::Tokens;

/// Most tokens of the words: names have about three each, and every token costs time.
const TOKENS_MAX: usize = 96;
/// Most letters of one of the words; a longer one is left out.
const LETTERS_MAX: usize = 100;
/// Letters by which the two texts may differ in length: this many, and this share of the longer one.
const DIFFERENCE: (usize, f32) = (6, 0.2);
/// Most by which the mean logarithm of the tokens' probabilities may be lower with the words.
const LESS_SURE: f32 = 0.25;

/// Likely words as a model takes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bias {
    tokens: Vec<u32>,
    terms: usize,
}

impl Bias {
    /// Returns the first of these terms that fit.
    pub(super) fn of(vocabulary: &Tokens, terms: &[String]) -> Bias {
        let Some(before) = vocabulary.before else { return Bias::default() };
        let mut bias = Bias { tokens: vec![before], terms: 0 };
        for term in terms {
            let term = term.split_whitespace().collect::<Vec<_>>().join(" ");
            if term.chars().count() <= LETTERS_MAX {
                let lead = if bias.tokens.len() > 1 { "," } else { "" };
                let tokens = vocabulary.encode(&format!("{lead} {term}"));
                if bias.tokens.len() + tokens.len() > TOKENS_MAX {
                    break;
                }
                bias.tokens.extend(tokens.into_iter().filter(|_| !term.is_empty()));
            }
            bias.terms += 1;
        }
        if bias.tokens.len() == 1 {
            bias.tokens.clear();
        }
        bias
    }

    /// Number of the terms, from the first on, that the model is shown.
    pub fn terms(&self) -> usize {
        self.terms
    }

    /// True if the model is shown nothing.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Returns the tokens before those of the text.
    pub(super) fn tokens(&self) -> &[u32] {
        &self.tokens
    }
}

/// Length of a text, and how sure it is.
#[derive(Copy, Clone, Debug)]
pub(super) struct Written<'a> {
    pub text: &'a str,
    /// Mean logarithm of the tokens' probabilities.
    pub log_probability: f32,
}

/// True if a text that was made with likely words takes the place of the one without.
pub(super) fn stands(plain: Written<'_>, biased: Written<'_>) -> bool {
    let letters = |text: &str| text.chars().filter(|letter| letter.is_alphanumeric()).count();
    let (plain_letters, biased_letters) = (letters(plain.text), letters(biased.text));
    let most = DIFFERENCE.0 + (DIFFERENCE.1 * plain_letters.max(biased_letters) as f32) as usize;
    plain_letters.abs_diff(biased_letters) <= most && biased.log_probability >= plain.log_probability - LESS_SURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stands_where_words_took_the_place_of_others() {
        let written = |text, log_probability| Written { text, log_probability };
        let plain = written("Please ask for Mr. Coval check.", -0.4);
        for (text, sure, expect) in [
            ("Please ask for Mr. Kowalczyk.", -0.3, true),
            ("Please ask for Mr. Kowalczyk.", -0.7, false),
            ("Please ask for Mr. Kowalczyk. Kowalczyk, Metoprolol, Alvarez.", -0.2, false),
            ("Kowalczyk.", -0.1, false),
            ("", 0.0, false),
        ] {
            assert_eq!(stands(plain, written(text, sure)), expect, "{text} {sure}");
        }
    }
}
