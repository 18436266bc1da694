//! Callers of the demonstration, and the behaviour that each has to show.

use serde_json::{Value, json};

/// Behaviour that a call has to show, besides being connected and heard.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    /// Noise at the asked level, and interruptions by both sides.
    Interruptions,
    /// A scripted answer to the words that ask for it.
    Script,
    /// Keys through a menu.
    Digits,
    /// A call over a WebSocket, in which the agent tells by messages when it speaks.
    Stream,
}

/// Caller of the demonstration.
pub(crate) struct Caller {
    /// Name of the caller.
    pub name: &'static str,
    /// Behaviour that its call shows.
    pub shows: Shows,
    /// The body that makes it.
    pub digital_human: Value,
}

/// Volume of the background noise.
const NOISE_VOLUME: f64 = 0.5;
/// SNR in dB that this volume asks for: 30 - 25 x volume.
pub(crate) const NOISE_SNR_DB: f64 = 30.0 - 25.0 * NOISE_VOLUME;
/// Base seed of the run: all draws of all calls follow from it.
pub(crate) const SEED: u64 = 11;

/// Returns the callers who telephone.
pub(crate) fn cast() -> [Caller; 3] {
    [interrupting(), accent_caller(), keying()]
}

/// Returns the caller who comes by a WebSocket.
pub(crate) fn streaming() -> Caller {
    Caller {
        name: "Amara",
        shows: Shows::Stream,
        digital_human: json!({
            "name": "Amara",
            "custom_voice_id": "kokoro:af_bella",
            "intent": "I would like to see a doctor. Yes, that is good for me.",
            "language": "en",
            "accent": "american",
            "gender": "female",
            "endpointing_delay": 1.2,
            "allow_dtmf_tool": false,
        }),
    }
}

fn interrupting() -> Caller {
    let answer =
        |keyword: &str| json!({ "keyword": keyword, "response": "Excuse me, do you have anything on Thursday?" });
    Caller {
        name: "Maria",
        shows: Shows::Interruptions,
        digital_human: json!({
            "name": "Maria",
            "custom_voice_id": "kokoro:am_michael",
            // Long enough to be cut into; what is said until then is half of it, so that it need not be said again.
            "intent": "Hello, I have been trying to reach you for two days because of my left knee. All right. Tuesday is \
                       good for me.",
            "language": "en",
            "accent": "american",
            "gender": "male",
            "background_noise": "cafe",
            "background_noise_volume": NOISE_VOLUME,
            "endpointing_delay": 1.2,
            "allow_dtmf_tool": false,
            "traits": [{ "trait_name": "date_of_birth", "trait_data_type": "STRING", "value": "The third of March." }],
            "interruptions": {
                "type": "keywords",
                "keyword_responses": [answer("wednesday"), answer("afternoon"), answer("friday")],
            },
        }),
    }
}

fn accent_caller() -> Caller {
    Caller {
        name: "Oliver",
        shows: Shows::Script,
        digital_human: json!({
            "name": "Oliver",
            "custom_voice_id": "kokoro:bm_george",
            "intent": "I would like to see a doctor. Yes, that is good for me.",
            "language": "en",
            "accent": "british",
            "gender": "male",
            "endpointing_delay": 1.2,
            "allow_dtmf_tool": false,
            "scripted_responses": [{
                "match_type": "exact",
                "match_phrase": ASKED,
                "response_type": "phrase",
                "response_value": "The ninth of May.",
                "occurrence_mode": "first_n",
                "occurrence_n": 1,
            }],
        }),
    }
}

fn keying() -> Caller {
    let answer = |phrase: &str, kind: &str, value: &str| {
        json!({
            "match_type": "exact",
            "match_phrase": phrase,
            "response_type": kind,
            "response_value": value,
            "occurrence_mode": "first_n",
            "occurrence_n": 1,
        })
    };
    Caller {
        name: "Chen",
        shows: Shows::Digits,
        digital_human: json!({
            "name": "Chen",
            "custom_voice_id": "kokoro:af_bella",
            "intent": "Yes, that is right.",
            "language": "en",
            "accent": "american",
            "gender": "female",
            "endpointing_delay": 1.2,
            "default_dtmf_or_voiced": "dtmf",
            "scripted_responses": [
                answer("appointments", "dtmf", "1"),
                answer("keypad", "dtmf", "4711"),
                answer("is that right", "phrase", "Yes, that is right, thank you."),
            ],
        }),
    }
}

/// Words by which the agent asks what the script answers. A recognizer of the telephone is sure of this part of "Please
/// tell me your date of birth".
pub(crate) const ASKED: &str = "tell me your date";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::recorded::is_kept;

    /// Fixed words of the callers are kept in their voices, as are the built-in speaker's.
    #[test]
    fn the_sentences_of_the_callers_are_kept() {
        for caller in cast().into_iter().chain([streaming()]) {
            let human = &caller.digital_human;
            let id = human["custom_voice_id"].as_str().expect("it names one");
            let lists =
                ["scripted_responses", "traits"].map(|name| human[name].as_array().cloned().unwrap_or_default());
            let keywords = human["interruptions"]["keyword_responses"].as_array().cloned().unwrap_or_default();
            let said = lists.concat().into_iter().chain(keywords);
            let said = said.filter(|one| one["response_type"] != "dtmf");
            let said = said.filter_map(|one| {
                let text = ["response_value", "value", "response"].into_iter().find_map(|name| one[name].as_str());
                text.map(str::to_owned)
            });
            let intent = human["intent"].as_str().expect("it has one").to_owned();
            let own = ["Hello.", "Yes.", "Thank you, goodbye.", "Hello? Are you there?", "Are you still there?"];
            for text in said.chain([intent]).chain(own.map(str::to_owned)) {
                assert!(is_kept(id, &text), "{}: {text}", caller.name);
            }
        }
    }
}
