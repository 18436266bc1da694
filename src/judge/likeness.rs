//! Likeness of texts: the cosine of vectors of three-letter frequencies. It needs no language and no model.

use std::collections::HashMap;

/// Frequencies of three-letter sequences in a text, scaled to length 1. A text without letters has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trigrams(HashMap<[char; 3], f64>);

impl Trigrams {
    /// Returns the vector of a text. Case and the number of blanks do not count; a text begins and ends with a blank.
    pub fn of(text: &str) -> Trigrams {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let letters: Vec<char> = format!(" {} ", words.join(" ")).chars().collect();
        let mut counts = HashMap::new();
        for three in letters.windows(3) {
            *counts.entry([three[0], three[1], three[2]]).or_insert(0.0) += 1.0;
        }
        Trigrams(counts).scale()
    }

    /// Returns the direction of the mean of several.
    pub fn centre<'a>(all: impl IntoIterator<Item = &'a Trigrams>) -> Trigrams {
        let mut sum = HashMap::new();
        for (three, weight) in all.into_iter().flat_map(|one| &one.0) {
            *sum.entry(*three).or_insert(0.0) += weight;
        }
        Trigrams(sum).scale()
    }

    /// Returns the cosine of the angle between two vectors, 0 to 1.
    pub fn likeness(&self, other: &Trigrams) -> f64 {
        let (few, many) = if self.0.len() < other.0.len() { (self, other) } else { (other, self) };
        few.0.iter().filter_map(|(three, weight)| Some(weight * many.0.get(three)?)).sum()
    }

    fn scale(mut self) -> Trigrams {
        let length = self.0.values().map(|weight| weight * weight).sum::<f64>().sqrt();
        self.0.values_mut().for_each(|weight| *weight /= length);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alike_is_a_matter_of_letters() {
        let close = |one: &str, other: &str| Trigrams::of(one).likeness(&Trigrams::of(other));
        for (one, other, low, high) in [
            ("The agent gave no price.", "the agent  gave no PRICE.", 0.999, 1.001),
            ("The agent never confirmed the date.", "The agent never confirmed the day.", 0.85, 0.99),
            ("The agent never confirmed the date.", "Wrong department was reached twice", 0.0, 0.3),
            // aab: ` aa`, `aab`, `ab `; aac: ` aa`, `aac`, `ac `. One of three in common.
            ("aab", "aac", 0.333, 0.334),
            ("", "", 0.0, 1.001),
            ("x", "", 0.0, 0.001),
        ] {
            let found = close(one, other);
            assert!((low..=high).contains(&found), "{one} / {other}: {found}");
        }
    }

    #[test]
    fn the_centre_is_nearer_to_all_than_they_are_to_each_other() {
        let texts = ["price was not told", "price was not given", "the price was not told to me"].map(Trigrams::of);
        let centre = Trigrams::centre(&texts);
        for (at, text) in texts.iter().enumerate() {
            let others = (0..3).filter(|other| *other != at).map(|other| text.likeness(&texts[other]));
            assert!(others.fold(0.0, f64::max) < centre.likeness(text));
        }
        assert!((centre.likeness(&centre) - 1.0).abs() < 1e-9);
    }
}
