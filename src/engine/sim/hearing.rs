//! Recognition in a simulated call: the words that the other side really said in a stretch of time.

use std::time::Duration;

use ringer_media::call::Word;
use ringer_media::frame::Sample;
use ringer_media::time::Time;

/// Length of a word of which it is not yet known when it ends, at 170 words a minute.
const WORD: Duration = Duration::from_millis(353);

/// Words of one utterance, on the speaker's clock.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub utterance: u32,
    pub from: Time,
    /// `None` while it is being said.
    pub to: Option<Time>,
    pub text: String,
}

/// A word and when it was said.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Heard {
    pub word: String,
    pub from: Time,
    pub to: Time,
}

impl Heard {
    /// Returns the word as a recognizer gives it, with the positions of its times.
    pub(super) fn at(self, sample: impl Fn(Time) -> Sample) -> Word {
        Word { from: sample(self.from), to: sample(self.to), text: self.word, confidence: Some(1.0) }
    }
}

/// The words whose middle lies in `from..to`. Words of an utterance are taken to be equally long. `is_written`: with
/// capitals and punctuation, as some recognizers write them.
pub(super) fn words(said: &[Said], from: Time, to: Time, is_written: bool) -> Vec<Heard> {
    let mut heard = Vec::new();
    for said in said.iter().filter(|said| said.from < to && said.to.is_none_or(|end| end > from)) {
        let count = said.text.split_whitespace().count() as u32;
        let each = said.to.map_or(WORD, |end| end.since(said.from) / count.max(1));
        for (at, word) in said.text.split_whitespace().enumerate() {
            let begin = said.from + each * at as u32;
            let middle = begin + each / 2;
            if from <= middle && middle < to {
                let plain = plain(word);
                let word = if is_written && !plain.is_empty() { word.to_owned() } else { plain };
                heard.push(Heard { word, from: begin, to: begin + each });
            }
        }
    }
    heard.retain(|heard| !heard.word.is_empty());
    heard
}

/// As other recognizers write it: lower case, no punctuation.
fn plain(word: &str) -> String {
    word.chars().filter(|c| c.is_alphanumeric() || *c == '\'').flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utterance(from_ms: u64, to_ms: Option<u64>, text: &str) -> Said {
        Said { utterance: 1, from: Time::from_millis(from_ms), to: to_ms.map(Time::from_millis), text: text.into() }
    }

    #[test]
    fn only_what_was_said_in_time_is_heard() {
        let check = |said: &[Said], from_ms: u64, to_ms: u64, expect: &str| {
            let heard = words(said, Time::from_millis(from_ms), Time::from_millis(to_ms), false);
            let text: Vec<&str> = heard.iter().map(|heard| heard.word.as_str()).collect();
            assert_eq!(text.join(" "), expect, "{from_ms}..{to_ms}");
        };
        let over = [utterance(1000, Some(2000), "One, two three four.")];
        check(&over, 1000, 2000, "one two three four");
        check(&over, 1300, 1700, "two three");
        check(&over, 2000, 3000, "");
        check(&over, 0, 1000, "");
        let running = [utterance(1000, None, "It's three o'clock"), utterance(5000, Some(5400), "yes")];
        check(&running, 900, 1400, "it's");
        check(&running, 900, 9000, "it's three o'clock yes");
    }

    #[test]
    fn sentences_end_where_they_are_written() {
        let over = [utterance(1000, Some(2000), "Is it - One, two?")];
        for (is_written, expect) in [(true, "Is it One, two?"), (false, "is it one two")] {
            let heard = words(&over, Time::from_millis(0), Time::from_millis(9000), is_written);
            let text: Vec<&str> = heard.iter().map(|heard| heard.word.as_str()).collect();
            assert_eq!(text.join(" "), expect);
        }
    }
}
