//! Words that the agent's side told of, against those that were recognised.

use ringer_human::text::is_unspaced;
use ringer_media::call::{ChannelEvent, EventKind, TimelineEntry};
use ringer_model::result::MetricValue;
use serde_json::json;
use strsim::generic_levenshtein;

use super::reading;

/// Name of the metric.
pub(super) const NAME: &str = "reported_wer";

/// Most words of a call that are compared; the distance takes time by their square.
const MOST_WORDS: usize = 4000;

/// Returns the word error rate of a call, 0 for none. It is the number of substitutions, insertions and deletions by
/// the number of words that the agent's side reported. `None` where nothing was reported, nothing recognised, or there
/// are too many words.
pub(super) fn word_error_rate(moments: &[TimelineEntry]) -> Option<MetricValue> {
    let reported_words: Vec<String> =
        moments.iter().filter_map(told_text).flat_map(words).take(MOST_WORDS + 1).collect();
    let heard = reading::turns(moments).filter(|turn| !turn.reported && !turn.written);
    let heard: Vec<String> = heard.flat_map(|turn| words(turn.text)).take(MOST_WORDS + 1).collect();
    if reported_words.is_empty() || heard.is_empty() || reported_words.len().max(heard.len()) > MOST_WORDS {
        return None;
    }
    let rate = generic_levenshtein(&reported_words, &heard) as f64 / reported_words.len() as f64;
    Some(MetricValue { name: NAME.to_owned(), value: json!((rate * 1000.0).round() / 1000.0), note: None })
}

fn told_text(moment: &TimelineEntry) -> Option<&str> {
    let EventKind::Channel(event) = moment.reading() else { return None };
    let ChannelEvent::Reported { text } = &**event else { return None };
    Some(text)
}

/// Returns the words of a text in lower case, without punctuation; letters where a text is written without blanks.
pub(super) fn words(text: &str) -> Vec<String> {
    if text.chars().any(is_unspaced) {
        return text.chars().filter(|c| c.is_alphanumeric()).map(String::from).collect();
    }
    let plain =
        |word: &str| word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    text.split_whitespace().map(plain).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moments;

    #[test]
    fn the_rate_is_that_of_the_words_that_were_told() {
        let report_of = |text: &str| json!({"sample": 16_000, "seq": 1, "event": "agent_reported", "side": "agent", "data": {"text": text}});
        let heard = |text: &str, source: &str| {
            json!({"sample": 32_000, "seq": 2, "event": "turn.ended", "side": "agent",
                "data": {"text": text, "text_source": source, "from_sample": 16, "end_sample": 32_000, "words": []}})
        };
        for (events, expect) in [
            (vec![report_of("Good day, how can I help?"), heard("good day how can I help", "recognized")], Some(0.0)),
            (vec![report_of("Good day."), report_of("Bye."), heard("good they bye", "recognized")], Some(0.333)),
            (vec![report_of("one two three four"), heard("one three four five six", "recognized")], Some(0.75)),
            (vec![report_of("one"), heard("two three", "recognized")], Some(2.0)),
            (vec![report_of("one"), heard("one", "reported")], None),
            (vec![report_of("one"), heard("", "recognized")], None),
            (vec![heard("one", "recognized")], None),
        ] {
            let found = word_error_rate(&moments(&json!(events)));
            assert_eq!(found.map(|metric| metric.value), expect.map(|value| json!(value)), "{events:?}");
        }
    }
}
