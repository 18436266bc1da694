//! Times of words: the steps that the decoder attended to while it made the word's tokens, aligned in order.

use super::tokens::Tokens;

/// Number of samples of one step of the encoder (20 ms).
const STEP: i64 = 320;
/// Number of steps of the median filter.
const MEDIAN: usize = 7;

/// Longest median word in samples: 0.7 s.
const WORD_MAX: i64 = 11_200;

/// A word of a text with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// Word with its punctuation.
    pub text: String,
    /// First sample of the word at 16 kHz.
    pub from: i64,
    /// One past the last sample of the word.
    pub to: i64,
    /// Mean probability of its tokens, 0 to 1.
    pub confidence: f32,
}

/// Returns the words of `tokens` (with their probabilities) in audio of `samples`. `followed` has a row for each token
/// and, where the text came to its end, one for the end. A row holds the shares of all steps, one head after the other.
pub(super) fn words(
    vocabulary: &Tokens,
    tokens: &[(u32, f32)],
    followed: &[Vec<f32>],
    steps: usize,
    samples: i64,
) -> Vec<Word> {
    let heard = ((samples / STEP) as usize + 1).min(steps);
    let starts = match followed.first() {
        Some(row) if steps > 0 && !row.is_empty() => starts(followed, steps, heard),
        _ => Vec::new(),
    };
    let at = |token: usize| starts.get(token).map_or(samples, |&step| (step as i64 * STEP).min(samples));
    let mut words: Vec<Word> = Vec::new();
    let mut group: Vec<usize> = Vec::new();
    let mut close = |group: &mut Vec<usize>, to: usize| {
        let Some(&first) = group.first() else { return };
        let numbers: Vec<u32> = group.iter().map(|&token| tokens[token].0).collect();
        let text = vocabulary.text(&numbers).trim().to_owned();
        let confidence = group.iter().map(|&token| tokens[token].1).sum::<f32>() / group.len() as f32;
        group.clear();
        if !text.is_empty() {
            words.push(Word { text, from: at(first), to: at(to).max(at(first)), confidence });
        }
    };
    for token in 0..tokens.len() {
        if begins_word(vocabulary, tokens, &group, token) {
            close(&mut group, token);
        }
        group.push(token);
    }
    close(&mut group, tokens.len());
    shorten(&mut words);
    words
}

/// Returns the length that no word exceeds by much, in samples: twice the median word. `None`: no word has a length.
pub(super) fn longest(words: &[Word]) -> Option<i64> {
    let mut lengths: Vec<i64> = words.iter().map(|word| word.to - word.from).filter(|&length| length > 0).collect();
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).map(|&median| 2 * median.min(WORD_MAX))
}

/// Shortens the first and the last word, which have the silence around them, to the longest that a word may be.
fn shorten(words: &mut [Word]) {
    let Some(most) = longest(words) else { return };
    if let [first, .., last] = words {
        first.from = first.from.max(first.to - most);
        last.to = last.to.min(last.from + most);
    }
}

/// True for a token that begins a word: by a blank before it, or after a whole letter of a script without blanks.
fn begins_word(vocabulary: &Tokens, tokens: &[(u32, f32)], group: &[usize], token: usize) -> bool {
    let bytes = vocabulary.bytes(tokens[token].0);
    if bytes.first() == Some(&b' ') {
        return true;
    }
    let before: Vec<u8> = group.iter().flat_map(|&token| vocabulary.bytes(tokens[token].0)).copied().collect();
    let without_blanks =
        |letter: char| matches!(u32::from(letter), 0x2e80..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff);
    std::str::from_utf8(&before).is_ok_and(|text| text.chars().next_back().is_some_and(without_blanks))
}

/// Returns the first step of each row of `followed`, in order.
fn starts(followed: &[Vec<f32>], steps: usize, heard: usize) -> Vec<usize> {
    let cost = cost(followed, steps, heard);
    path(&cost, followed.len(), heard)
}

/// Returns the cost of each row at each step: lower where the heads agree that the row belongs to the step.
fn cost(followed: &[Vec<f32>], steps: usize, heard: usize) -> Vec<f32> {
    let (rows, heads) = (followed.len(), followed[0].len() / steps);
    let mut cost = vec![0f32; rows * heard];
    let mut column = vec![0f32; rows];
    let mut shares = vec![0f32; rows * heard];
    for head in 0..heads {
        for step in 0..heard {
            for (value, row) in column.iter_mut().zip(followed) {
                *value = row[head * steps + step];
            }
            let mean = column.iter().sum::<f32>() / rows as f32;
            let spread = (column.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / rows as f32).sqrt();
            for (row, value) in column.iter().enumerate() {
                shares[row * heard + step] = (value - mean) / spread.max(1e-9);
            }
        }
        for (cost, shares) in cost.chunks_exact_mut(heard).zip(shares.chunks_exact(heard)) {
            for (step, cost) in cost.iter_mut().enumerate() {
                *cost -= median(shares, step) / heads as f32;
            }
        }
    }
    cost
}

/// Returns the median of the values around `at`, mirrored at both ends.
fn median(values: &[f32], at: usize) -> f32 {
    let half = (MEDIAN / 2) as isize;
    let last = values.len() as isize - 1;
    let mut around = [0f32; MEDIAN];
    for (value, offset) in around.iter_mut().zip(-half..=half) {
        let place = at as isize + offset;
        let mirrored = if place < 0 {
            -place
        } else if place > last {
            2 * last - place
        } else {
            place
        };
        *value = values[mirrored.clamp(0, last) as usize];
    }
    around.sort_unstable_by(f32::total_cmp);
    around[MEDIAN / 2]
}

/// Returns the cheapest way through `rows` of `columns` that never goes back, as the column at which each row begins.
fn path(cost: &[f32], rows: usize, columns: usize) -> Vec<usize> {
    let at = |row: usize, column: usize| row * (columns + 1) + column;
    let mut sums = vec![f32::INFINITY; (rows + 1) * (columns + 1)];
    let mut came = vec![0u8; sums.len()];
    sums[0] = 0.0;
    for row in 1..=rows {
        for column in 1..=columns {
            let from = [sums[at(row - 1, column - 1)], sums[at(row - 1, column)], sums[at(row, column - 1)]];
            let best = (0..3).min_by(|&a, &b| from[a].total_cmp(&from[b])).expect("three ways");
            sums[at(row, column)] = cost[(row - 1) * columns + column - 1] + from[best];
            came[at(row, column)] = best as u8;
        }
    }
    let mut starts = vec![0; rows];
    let (mut row, mut column) = (rows, columns);
    while row > 0 && column > 0 {
        starts[row - 1] = column - 1;
        match came[at(row, column)] {
            0 => (row, column) = (row - 1, column - 1),
            1 => row -= 1,
            _ => column -= 1,
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_where_their_tokens_attended() {
        let vocabulary = Tokens::load(
            &json!({"model": {"vocab": {"\u{120}Hel": 0, "lo": 1, "\u{120}you": 2, ".": 3}},
                "added_tokens": [{"id": 4, "content": "<|endoftext|>"}, {"id": 5, "content": "<|startoftranscript|>"},
                    {"id": 6, "content": "<|notimestamps|>"}]}),
            7,
        );
        let vocabulary = vocabulary.expect("it is whole");
        // 60 steps, one head; each of the five rows (the end is the last) attends to ten steps, the first from step 10
        // on.
        let row = |at: usize| (0..60).map(|step| if step / 10 == at + 1 { 0.1 } else { 0.0 }).collect::<Vec<f32>>();
        let followed: Vec<Vec<f32>> = (0..5).map(row).collect();
        let found = words(&vocabulary, &[(0, 0.5), (1, 1.0), (2, 1.0), (3, 0.8)], &followed, 60, 60 * STEP);
        let confidences: Vec<(&str, f32)> = found.iter().map(|word| (word.text.as_str(), word.confidence)).collect();
        assert_eq!(confidences, [("Hello", 0.75), ("you.", 0.9)]);
        let near = |found: i64, step: i64| (found - step * STEP).abs() <= 2 * STEP;
        assert!(near(found[0].to, 30) && near(found[1].from, 30) && near(found[1].to, 50), "{found:?}");
    }

    #[test]
    fn without_attention_words_have_the_whole() {
        let json = json!({"model": {"vocab": {"\u{120}A": 0}}, "added_tokens": [{"id": 1, "content": "<|endoftext|>"},
            {"id": 2, "content": "<|startoftranscript|>"}, {"id": 3, "content": "<|notimestamps|>"}]});
        let vocabulary = Tokens::load(&json, 4).expect("it is whole");
        assert_eq!(words(&vocabulary, &[], &[], 10, 100), []);
        assert_eq!(words(&vocabulary, &[(0, 1.0)], &[], 0, 100)[0].to, 100);
    }
}
