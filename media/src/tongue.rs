//! Which language was heard, as far as whoever heard it knows.

/// Language that a recognizer reports for the words that it recognized.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Tongue {
    /// The recognizer reports none; the words may show it.
    #[default]
    Untold,
    /// The recognizer reports this language, as a code such as `en` or `es`.
    Told(String),
    /// It is perhaps this one: two turns in a row with the same hint count as one report.
    Hinted(String),
    /// The recognizer knows one language and writes all words in it: its words show nothing.
    Assumed,
}
