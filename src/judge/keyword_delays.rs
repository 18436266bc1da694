//! Time from a keyword of the agent to the words with which a caller cuts in on it.

use ringer_media::call::{EventKind, Side, TimelineEntry, Word, contains_phrase};
use ringer_media::frame::{PER_MS, Sample};
use serde_json::{Value, json};

use super::reading;

/// Returns each interruption at a keyword: the keyword, the end of its last word (`word_end_ms`), the start of the
/// caller's words (`speech_ms`), both in milliseconds from connect, and `delay_ms` between them. The times of the word
/// are null where the recognizer gave none.
pub fn keyword_delays(timeline: &[TimelineEntry]) -> Vec<Value> {
    let decided = timeline.iter().enumerate().filter_map(|(at, entry)| match entry.reading() {
        EventKind::InterruptionDecided { keyword: Some(keyword), .. } => Some((at, entry.sample, keyword)),
        _ => None,
    });
    let each = |(at, onset, keyword): (usize, Sample, &String)| {
        let speech = timeline[at..].iter().find(|entry| {
            entry.side == Side::Dh
                && entry.sample >= onset
                && matches!(entry.reading(), EventKind::SpeechStarted { .. })
        })?;
        let word_end = spoken_until(timeline, onset, speech.sample, keyword);
        Some(json!({
            "keyword": keyword,
            "word_end_ms": word_end.map(|end| end / PER_MS),
            "speech_ms": speech.sample / PER_MS,
            "delay_ms": word_end.map(|end| (speech.sample - end) / PER_MS),
        }))
    };
    decided.filter_map(each).collect()
}

/// Returns the end of the keyword in the agent's turn that runs between these positions; `None` where its words have no
/// times.
fn spoken_until(timeline: &[TimelineEntry], onset: Sample, speech: Sample, keyword: &str) -> Option<Sample> {
    let turn =
        reading::turns(timeline).find(|turn| turn.from < speech && turn.end > onset && !turn.words.is_empty())?;
    let mut said = String::new();
    for Word { text, to, .. } in turn.words {
        said = format!("{said} {text}");
        if contains_phrase(&said, keyword) {
            return Some(*to);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moments;

    fn event(ms: i64, event: &str, side: &str, data: &Value) -> Value {
        json!({ "seq": ms, "sample": ms * 16, "event": event, "side": side, "data": data })
    }

    fn word(word: &str, from_ms: i64, to_ms: i64) -> Value {
        json!({ "word": word, "start_offset_ms": from_ms, "end_offset_ms": to_ms, "confidence": 0.9 })
    }

    #[test]
    fn the_time_from_the_word_to_the_interruption_is_told() {
        let words = [word("The", 1100, 1300), word("price", 1300, 1800), word("is", 1900, 2000)];
        let decided = json!({ "type": "keywords", "u": 0.1, "at_ms": 1200, "keyword": "Price" });
        let own = json!({ "utterance_id": 2, "text": "How much?", "kind": "interruption" });
        let delays = |words: &[Value]| {
            let turn = json!({ "text": "The price is.", "from_sample": 16_000, "end_sample": 40_000, "words": words });
            let timeline = json!([
                event(1000, "speech.started", "agent", &json!({ "arrival_ms": 1000 })),
                event(1000, "interruption.decided", "dh", &decided),
                event(2250, "speech.started", "dh", &own),
                event(2500, "turn.ended", "agent", &turn),
            ]);
            keyword_delays(&moments(&timeline))
        };
        let expect = json!({ "keyword": "Price", "word_end_ms": 1800, "speech_ms": 2250, "delay_ms": 450 });
        assert_eq!(delays(&words), [expect]);
        let without = json!({ "keyword": "Price", "word_end_ms": null, "speech_ms": 2250, "delay_ms": null });
        assert_eq!(delays(&[]), [without], "words without times tell none");
    }
}
