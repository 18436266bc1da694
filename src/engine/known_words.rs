//! Words of a call that are known before it begins: its opening, scripted answers and steps, and what its mind says of
//! its own accord. A slow synthesizer makes them beforehand.

use ringer_media::call::{CallSpec, Interruption, Opening, Response};

/// Most texts that are made beforehand.
const TEXTS_MAX: usize = 200;

/// Returns the texts that this side is known to say, in the order in which they are likely to be needed. Each is there
/// once.
pub fn known_words(spec: &CallSpec, of_mind: Vec<String>) -> Vec<String> {
    let opening = match &spec.opening {
        Opening::Say(text) => Some(text.clone()),
        _ => None,
    };
    let scripted = spec.script.iter().filter_map(|rule| match &rule.response {
        Response::Phrase(text) | Response::Silence { then: Some(text), .. } => Some(text.clone()),
        _ => None,
    });
    let keywords = match &spec.interruption {
        Interruption::Keywords(all) => all.iter().map(|one| one.response.clone()).collect(),
        Interruption::Level { .. } => spec.phrases.interruption.clone(),
        _ => Vec::new(),
    };
    let cut = spec.cut.iter().map(|cut| cut.say.clone());
    let own = [spec.phrases.reprompt.clone(), spec.phrases.still_there.clone()];
    let mut known: Vec<String> = Vec::new();
    for text in opening.into_iter().chain(cut).chain(of_mind).chain(scripted).chain(keywords).chain(own) {
        if !text.trim().is_empty() && !known.contains(&text) && known.len() < TEXTS_MAX {
            known.push(text);
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use ringer_media::call::{KeywordResponse, TimedBargeIn};

    use super::*;

    #[test]
    fn each_text_is_known_once_and_the_first_words_come_first() {
        let spec = CallSpec {
            opening: Opening::Say("Good morning.".into()),
            interruption: Interruption::Keywords(vec![KeywordResponse {
                keyword: "friday".into(),
                response: "Not on Friday.".into(),
                probability: 1.0,
            }]),
            cut: Some(TimedBargeIn { after_ms: 900, say: "Excuse me.".into() }),
            ..CallSpec::default()
        };
        let known = known_words(&spec, vec!["I need a visit.".into(), "Good morning.".into(), " ".into()]);
        let expect = [
            "Good morning.",
            "Excuse me.",
            "I need a visit.",
            "Not on Friday.",
            "Hello? Are you there?",
            "Are you still there?",
        ];
        assert_eq!(known, expect);
        let many = (0..500).map(|number| format!("Sentence {number}.")).collect();
        assert_eq!(known_words(&spec, many).len(), TEXTS_MAX);
    }
}
