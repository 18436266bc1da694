//! Language of the other side, as far as a recognizer knows it.

/// Language that a recognizer reports for the words that it recognized.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum DetectedLanguage {
    /// The recognizer reports none; the words may show it.
    #[default]
    Unknown,
    /// The recognizer reports this language, as a code such as `en` or `es`.
    Detected(String),
    /// The recognizer perhaps heard this language: two turns in a row with the same hint count as one report.
    Hinted(String),
    /// The recognizer knows one language and writes all words in it: its words show nothing.
    Fixed,
}
