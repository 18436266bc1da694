//! Speech without words: a model that writes no times may end behind a sentence, or skip one, where several follow one
//! another with pauses. Such a stretch is found by level and by the words' places.

use std::ops::Range;

use super::words::longest;
use super::{Transcription, Word};

/// Samples of a block: 20 ms.
const BLOCK: usize = 320;
/// A block is speech where it is at most so far below the loud ones (25 dB, as energy).
const BELOW: f32 = 0.003_16;
/// Share of the blocks that are not louder than the loud ones: clicks do not count.
const LOUD: f32 = 0.95;
/// Blocks of silence between sentences or clauses: 100 ms.
const PAUSE: usize = 5;
/// Fewest blocks of speech that are missed: 500 ms.
const LEAST: usize = 25;
/// Audio that is heard around them, in blocks: 160 ms.
const MARGIN: usize = 8;

/// Fewest words behind a stretch by which its place is known: the last words of a text that ends early are spread over
/// what follows.
const BEHIND: usize = 3;
/// Words before such an end that may be heard once more, and words within which they are looked for.
const AGAIN: usize = 4;
const AGAIN_WITHIN: usize = 7;

/// A stretch of speech without words.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Missed {
    /// Samples of the stretch, with a little around it.
    pub samples: Range<usize>,
    /// Number of the words before it.
    pub words: usize,
}

/// Returns the first stretch of speech without words that begins at sample `least` or later.
pub(super) fn find(pcm: &[f32], words: &[Word], least: usize) -> Option<Missed> {
    let energies: Vec<f32> = pcm.chunks_exact(BLOCK).map(|block| block.iter().map(|x| x * x).sum()).collect();
    let mut sorted = energies.clone();
    sorted.sort_unstable_by(f32::total_cmp);
    let loud = *sorted.get((sorted.len() as f32 * LOUD) as usize)?;
    let is_speech: Vec<bool> = energies.iter().map(|&energy| loud > 0.0 && energy >= loud * BELOW).collect();
    let most = longest(words).unwrap_or(0);
    let block = |sample: i64| (sample.max(0) as usize / BLOCK).min(is_speech.len());
    let mut from = 0;
    for (at, word) in words.iter().map(Some).chain([None]).enumerate() {
        let to = word.map_or(is_speech.len(), |word| block(word.from));
        let gap = trim(&is_speech, from..to.max(from), at > 0, word.is_some());
        let spoken = is_speech[gap.clone()].iter().filter(|speech| **speech).count();
        let begin = gap.start.saturating_sub(MARGIN) * BLOCK;
        if spoken >= LEAST && begin >= least {
            if at > 0 && words.len() - at < BEHIND {
                return Some(tail(pcm, &is_speech, words, gap.start));
            }
            return Some(Missed { samples: begin..((gap.end + MARGIN) * BLOCK).min(pcm.len()), words: at });
        }
        from = word.map_or(from, |word| block(word.to.min(word.from + most)));
    }
    None
}

/// Returns the stretch behind the last words. It begins at the first pause behind the beginning of the last few, and at
/// the block `latest` at the latest. [`insert`] takes out the words that are heard again.
fn tail(pcm: &[f32], is_speech: &[bool], words: &[Word], latest: usize) -> Missed {
    let known = words[words.len().saturating_sub(AGAIN)].from.max(0) as usize / BLOCK;
    let begin = trim(is_speech, known.min(latest)..is_speech.len(), true, false).start.min(latest);
    Missed { samples: begin.saturating_sub(MARGIN) * BLOCK..pcm.len(), words: words.len() }
}

/// Returns the part of a gap between words that begins and ends with a pause: speech at its edges belongs to the words
/// there.
fn trim(is_speech: &[bool], gap: Range<usize>, has_word_before: bool, has_word_behind: bool) -> Range<usize> {
    let pauses = |at: &usize| is_speech[*at..*at + PAUSE].iter().all(|speech| !speech);
    let places = || gap.start..(gap.end + 1).saturating_sub(PAUSE).max(gap.start);
    let start = if has_word_before { places().find(pauses) } else { Some(gap.start) };
    let end = if has_word_behind { places().rev().find(pauses).map(|at| at + PAUSE) } else { Some(gap.end) };
    let (Some(start), Some(end)) = (start, end) else { return gap.start..gap.start };
    let spoken = |at: &usize| is_speech[*at];
    match ((start..end).find(spoken), (start..end).rev().find(spoken)) {
        (Some(first), Some(last)) => first..last + 1,
        _ => gap.start..gap.start,
    }
}

/// Inserts the text of a missed stretch. Nothing is inserted where the words do not stand in the text.
pub(super) fn insert(whole: &mut Transcription, mut found: Transcription, missed: Missed) {
    if missed.words == whole.words.len() {
        take_out_repeated(&whole.words, &mut found);
    }
    if found.words.is_empty() {
        return;
    }
    let Some(place) = place(&whole.text, &whole.words[..missed.words]) else { return };
    let (before, behind) = (whole.text[..place].trim_end(), whole.text[place..].trim_start());
    let parts = [before, &found.text, behind].into_iter().filter(|part| !part.is_empty());
    whole.text = parts.collect::<Vec<_>>().join(" ");
    let tokens = |words: &[Word]| (words.len() + 1) as f32;
    let (old, new) = (tokens(&whole.words), tokens(&found.words));
    whole.log_probability = (whole.log_probability * old + found.log_probability * new) / (old + new);
    let offset = missed.samples.start as i64;
    let moved = found.words.into_iter().map(|word| Word { from: word.from + offset, to: word.to + offset, ..word });
    whole.words.splice(missed.words..missed.words, moved);
    // A word that had the stretch in it ends before it, and one behind begins behind it.
    if let Some(before) = missed.words.checked_sub(1) {
        let end = whole.words[missed.words].from;
        whole.words[before].to = whole.words[before].to.min(end).max(whole.words[before].from);
    }
}

/// Takes the words up to the last one of `words` out of a text that begins with some of them.
fn take_out_repeated(words: &[Word], found: &mut Transcription) {
    let plain =
        |word: &Word| word.text.chars().filter(|letter| letter.is_alphanumeric()).collect::<String>().to_lowercase();
    let Some(last) = words.last().map(plain) else { return };
    let Some(at) = found.words.iter().take(AGAIN_WITHIN).position(|word| plain(word) == last) else { return };
    if let Some(byte) = place(&found.text, &found.words[..=at]) {
        found.text = found.text[byte..].trim_start().to_owned();
        found.words.drain(..=at);
    }
}

/// Returns the byte behind the last of `words` in `text`.
fn place(text: &str, words: &[Word]) -> Option<usize> {
    words.iter().try_fold(0, |at, word| Some(at + text[at..].find(&word.text)? + word.text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: usize = 16_000;

    fn word(text: &str, from: f64, to: f64) -> Word {
        Word { text: text.into(), from: (from * S as f64) as i64, to: (to * S as f64) as i64, confidence: 0.9 }
    }

    /// Audio of so many seconds with speech in these parts, in seconds.
    fn audio(seconds: f64, parts: &[(f64, f64)]) -> Vec<f32> {
        let spoken = |at: f64| parts.iter().any(|&(from, to)| (from..to).contains(&at));
        let level = |at: usize| if spoken(at as f64 / S as f64) { 0.3 } else { 0.001 };
        (0..(seconds * S as f64) as usize).map(|at| level(at) * if at % 2 == 0 { 1.0 } else { -1.0 }).collect()
    }

    fn seconds(missed: Option<Missed>) -> Option<(f64, f64, usize)> {
        missed
            .map(|missed| (missed.samples.start as f64 / S as f64, missed.samples.end as f64 / S as f64, missed.words))
    }

    #[test]
    fn speech_behind_and_between_words_is_missed() {
        let pcm = audio(8.0, &[(0.5, 2.0), (2.5, 4.5), (5.0, 7.5)]);
        let first = [word("Press", 0.5, 1.0), word("one.", 1.0, 2.0)];
        let (from, to, words) = seconds(find(&pcm, &first, 0)).expect("two sentences have no words");
        assert!((from - 2.34).abs() < 0.03 && to == 8.0 && words == 2, "{from} {to}");
        // The word before a skipped sentence has it in it.
        let skipped = [
            word("Press", 0.5, 1.0),
            word("one.", 1.0, 5.0),
            word("Or", 5.0, 5.4),
            word("just", 5.4, 6.0),
            word("wait.", 6.0, 7.5),
        ];
        let (from, to, words) = seconds(find(&pcm, &skipped, 0)).expect("a sentence has no words");
        assert!((from - 2.34).abs() < 0.03 && (to - 4.66).abs() < 0.03 && words == 2, "{from} {to}");
        assert_eq!(find(&pcm, &skipped, (from * S as f64) as usize + 1), None, "it was heard");
    }

    #[test]
    fn pauses_and_the_ends_of_words_are_not_missed() {
        let pcm = audio(6.0, &[(0.5, 2.0), (3.5, 5.0)]);
        let all = [word("Well", 0.5, 1.2), word("yes.", 1.2, 1.8), word("Or", 3.6, 4.2), word("no.", 4.2, 4.8)];
        assert_eq!(find(&pcm, &all, 0), None);
        assert_eq!(find(&[], &all, 0), None);
        assert_eq!(find(&[0.0; S], &[], 0), None);
    }

    #[test]
    fn words_that_are_heard_again_stand_once() {
        let pcm = audio(8.0, &[(0.5, 3.0), (3.5, 5.0), (5.5, 7.5)]);
        let said = [word("Nine", 0.5, 1.0), word("in", 1.0, 1.5), word("the", 1.5, 3.2), word("morning.", 3.2, 4.6)];
        let missed = find(&pcm, &said, 0).expect("the second part has no words");
        assert_eq!((missed.words, missed.samples.end), (4, 8 * S));
        assert!((3.2..3.5).contains(&(missed.samples.start as f64 / S as f64)), "from the pause on: {missed:?}");
        let mut text = transcription("Nine in the morning.", said.to_vec());
        let found =
            vec![word("the", 0.1, 0.3), word("morning,", 0.3, 0.8), word("or", 1.0, 1.2), word("noon.", 1.2, 2.0)];
        insert(&mut text, transcription("the morning, or noon.", found), missed);
        assert_eq!(text.text, "Nine in the morning. or noon.");
        assert_eq!(text.words.len(), 6);
    }

    fn transcription(text: &str, words: Vec<Word>) -> Transcription {
        let text = text.into();
        Transcription { text, words, log_probability: -0.2, no_speech: 0.0, repeats: false, language: None }
    }

    #[test]
    fn what_was_missed_stands_in_its_place() {
        let words = vec![word("Press", 0.5, 1.0), word("one.", 1.0, 5.0), word("Or", 5.0, 5.4)];
        let mut text = transcription("Press one. Or", words);
        let found = transcription("Press two.", vec![word("Press", 0.2, 0.6), word("two.", 0.6, 1.0)]);
        insert(&mut text, found, Missed { samples: 2 * S..4 * S, words: 2 });
        assert_eq!(text.text, "Press one. Press two. Or");
        let places: Vec<(i64, i64)> = text.words.iter().map(|word| (word.from / 160, word.to / 160)).collect();
        assert_eq!(places, [(50, 100), (100, 220), (220, 260), (260, 300), (500, 540)]);
    }
}
