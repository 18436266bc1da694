//! Words of the caller that the agent misheard, where its side tells what it heard.

use ringer_human::text::{is_unspaced, plain_words};
use serde_json::Value;
use strsim::generic_levenshtein;

/// Most words of a call that are compared; the distance takes time by their square.
const WORDS_MAX: usize = 4000;

/// Word errors of an agent's recognizer in one call.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Misheard {
    /// Fewest insertions, deletions and substitutions that lead from the words said to those that the agent heard.
    pub errors: u64,
    /// Number of words that the caller said.
    pub words: u64,
}

impl Misheard {
    /// Returns the word error rate, 0 and above.
    pub fn rate(&self) -> f64 {
        self.errors as f64 / self.words as f64
    }
}

/// Returns the word errors of a call by its timeline. `None`: the agent's side told of no words that it heard, the
/// caller said none, or they are too many.
///
/// Rooms, pipelines and platforms tell of them (`caller_reported`). A SIP call does not.
pub fn misheard(timeline: &[Value]) -> Option<Misheard> {
    let is_said =
        |event: &&Value| event["side"] == "dh" && event["event"] == "speech.ended" && event["data"]["kind"] != "probe";
    let is_heard = |event: &&Value| event["event"] == "channel_event" && event["data"]["name"] == "caller_reported";
    let said: Vec<String> =
        timeline.iter().filter(is_said).flat_map(|event| words(event["data"]["text"].as_str())).collect();
    let heard: Vec<&Value> = timeline.iter().filter(is_heard).collect();
    if heard.is_empty() || said.is_empty() {
        return None;
    }
    let heard: Vec<String> =
        heard.into_iter().flat_map(|event| words(event["data"]["data"]["text"].as_str())).collect();
    if said.len().max(heard.len()) > WORDS_MAX {
        return None;
    }
    Some(Misheard { errors: generic_levenshtein(&said, &heard) as u64, words: said.len() as u64 })
}

/// Returns the plain words of a text; letters where it is written without blanks.
fn words(text: Option<&str>) -> Vec<String> {
    let apart = |word: String| match word.contains(is_unspaced) {
        true => word.chars().map(String::from).collect(),
        false => vec![word],
    };
    plain_words(text.unwrap_or_default()).into_iter().flat_map(apart).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_misheard_where_the_agent_tells_what_it_heard() {
        let said =
            |text: &str| json!({ "side": "dh", "event": "speech.ended", "data": { "text": text, "kind": "turn" }});
        let cough = json!({ "side": "dh", "event": "speech.ended", "data": { "text": "Mm-hmm.", "kind": "probe" }});
        let heard = |text: &str| {
            let data = json!({ "name": "caller_reported", "data": { "text": text } });
            json!({ "side": "agent", "event": "channel_event", "data": data })
        };
        for (timeline, expect) in [
            (vec![said("The third of March."), heard("the third of march")], Some((0, 4))),
            (vec![said("The third of March."), cough, heard("the first of march please")], Some((2, 4))),
            (vec![said("Yes."), heard("")], Some((1, 1))),
            (vec![said("Yes.")], None),
            (vec![heard("yes")], None),
        ] {
            let expect = expect.map(|(errors, words)| Misheard { errors, words });
            assert_eq!(misheard(&timeline), expect, "{timeline:?}");
        }
    }
}
