//! Words of a text: counted, and compared without punctuation.

pub use ringer_media::call::is_unspaced;

/// Returns the number of words; in scripts without blanks two letters count as one.
pub fn word_count(text: &str) -> usize {
    let letters = text.chars().filter(|&c| is_unspaced(c)).count();
    let spaced = |word: &&str| word.contains(|c: char| c.is_alphanumeric() && !is_unspaced(c));
    letters.div_ceil(2) + text.split_whitespace().filter(spaced).count()
}

/// Returns the words in lower case without punctuation.
pub fn plain_words(text: &str) -> Vec<String> {
    let kept = |c: char| c.is_alphanumeric() || c == '\'' || ringer_media::numerals::is_mark(c);
    text.split(|c| !kept(c)).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}
