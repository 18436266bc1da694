//! Languages of people, and the share of words that a small model gets wrong in them on the telephone.

/// Words wrong in percent by the model `base` on 40 recordings of people over PCMU, by the code of the language.
const WRONG_PCT: &[(&str, f32)] = &[("en", 2.1), ("es", 10.3), ("fr", 13.5), ("it", 17.6), ("ru", 38.0)];

/// Languages of which the same model had 68 to 103 % of the words wrong on recordings of people.
const UNRELIABLE: &[&str] = &["bg", "cs", "da", "el", "nl", "ro"];

/// Trust that the words of a language deserve.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Reliability {
    /// Share of words that were wrong on recordings of people, in percent.
    Measured(f32),
    /// More than half of the words were wrong: nothing should be judged by them.
    Unreliable,
    /// No recordings of people were at hand.
    NotMeasured,
}

/// Returns how far the words of a small model (`base`) can be relied on in this language.
pub fn reliability(language: &str) -> Reliability {
    match WRONG_PCT.iter().find(|(code, _)| *code == language) {
        Some(&(_, pct)) => Reliability::Measured(pct),
        None if UNRELIABLE.contains(&language) => Reliability::Unreliable,
        None => Reliability::NotMeasured,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_has_its_figure_or_none() {
        assert_eq!(reliability("en"), Reliability::Measured(2.1));
        assert_eq!(reliability("nl"), Reliability::Unreliable);
        assert_eq!(reliability("de"), Reliability::NotMeasured, "formant synthesizers are no people");
        assert!(UNRELIABLE.iter().all(|code| WRONG_PCT.iter().all(|(known, _)| known != code)));
    }
}
