//! Scripted behaviour of a Digital Human: interruptions and scripted responses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Object;

fn certain() -> f64 {
    1.0
}

fn once() -> i64 {
    1
}

/// One keyword and the response to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeywordResponse {
    /// Words to listen for, matched whole and without case.
    pub keyword: String,
    /// Response, said exactly so.
    pub response: String,
    /// Probability of the response, 0 to 1.
    #[serde(default = "certain")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub probability: f64,
}

// The members carry no docs: doc comments on variants would change the shape of the schema.
/// Rule by which a Digital Human interrupts, told apart by `type`.
///
/// `none`: never; `low`, `medium`, `high`: with probability 0.10, 0.25, 0.50 a turn; `keywords`: at a keyword;
/// `contextual`: when the model says so; `timed`: at `after_ms` of the agent's turn, in the first `count` turns that
/// last so long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[schemars(extend("discriminator" = {"propertyName": "type"}))]
pub enum Interruptions {
    None {},
    Low {},
    Medium {},
    High {},
    Keywords {
        #[schemars(length(min = 1))]
        keyword_responses: Vec<KeywordResponse>,
    },
    Contextual {
        #[schemars(length(min = 1))]
        contextual_prompt: String,
    },
    Timed {
        #[schemars(range(min = 0, max = 600_000))]
        after_ms: i64,
        #[serde(default = "once")]
        #[schemars(range(min = 1, max = 100))]
        count: i64,
    },
}

words! {
    /// Comparison of a scripted phrase with the agent's words.
    MatchType { Exact = "exact", Context = "context" } default Exact
}

words! {
    /// Kind of a scripted response.
    ResponseType { Phrase = "phrase", Silence = "silence", Dtmf = "dtmf", Audio = "audio" } default Phrase
}

words! {
    /// Frequency of a scripted response.
    OccurrenceMode { Always = "always", FirstN = "first_n" } default Always
}

/// A fixed response to words of the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScriptedResponse {
    /// Comparison by words (exact) or by meaning (context).
    pub match_type: MatchType,
    /// Words of the agent that trigger the response.
    #[schemars(length(min = 1))]
    pub match_phrase: String,
    /// Kind of the response: words, silence, digits or audio.
    pub response_type: ResponseType,
    /// Words (phrase), digits (dtmf), or words after the pause (silence).
    #[serde(default)]
    pub response_value: Option<String>,
    /// URL of the audio, which is played once to its end.
    #[serde(default)]
    pub scripted_response_audio_snippet_url: Option<String>,
    /// Frequency: always, or the first `occurrence_n` times.
    pub occurrence_mode: OccurrenceMode,
    /// Number of times for `first_n`.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub occurrence_n: Option<i64>,
    /// Length of the silence in seconds, at most 600; null: until the end of the next agent turn.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 600.0))]
    pub silence_duration: Option<f64>,
}

impl ScriptedResponse {
    /// Returns the fields that an import may leave out, with their defaults.
    pub fn import_defaults() -> [(&'static str, &'static str); 3] {
        [
            ("match_type", MatchType::default().as_str()),
            ("response_type", ResponseType::default().as_str()),
            ("occurrence_mode", OccurrenceMode::default().as_str()),
        ]
    }
}

/// Returns the phrases of a step's member `key`: a text, or an array of texts; blank ones are left out.
pub fn phrases<'s>(step: &'s Object, key: &str) -> impl Iterator<Item = &'s str> {
    let (one, many) = match step.get(key) {
        Some(Value::Array(all)) => (None, all.as_slice()),
        other => (other, &[][..]),
    };
    one.into_iter().chain(many).filter_map(Value::as_str).filter(|phrase| !phrase.trim().is_empty())
}
