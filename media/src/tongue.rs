//! Which language was heard, as far as whoever heard it knows.

/// What a recognizer says of the language that it heard.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Tongue {
    /// Nothing; its words may tell.
    #[default]
    Untold,
    /// This one: `en`, `es`, ...
    Told(String),
    /// Perhaps this one: two turns in a row that are taken for it count as one that tells it.
    Hinted(String),
    /// It writes everything as if it were the one language that it knows: its words tell nothing.
    Assumed,
}
