//! What a Digital Human does on cue: interruptions and scripted responses.

use ringer_media::call::normal_form;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Object;

fn certain() -> f64 {
    1.0
}

/// One keyword and what is said when it is heard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeywordResponse {
    /// Whole words, case-insensitive.
    pub keyword: String,
    /// Said exactly.
    pub response: String,
    /// 0 to 1.
    #[serde(default = "certain")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub probability: f64,
}

// The members carry no docs: doc comments on variants would change the shape of the schema.
/// When a Digital Human cuts in, told apart by `type`: never; with probability 0.10, 0.25, 0.50 a turn (low, medium,
/// high); at a keyword; when the model says so.
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
}

words! {
    /// How a scripted phrase is compared.
    MatchType { Exact = "exact", Context = "context" } default Exact
}

words! {
    /// What a scripted response is.
    ResponseType { Phrase = "phrase", Silence = "silence", Dtmf = "dtmf", Audio = "audio" } default Phrase
}

words! {
    /// How often a scripted response fires.
    OccurrenceMode { Always = "always", FirstN = "first_n" } default Always
}

/// A fixed answer to what the agent says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScriptedResponse {
    /// By words or by meaning.
    pub match_type: MatchType,
    /// What the agent has to say.
    #[schemars(length(min = 1))]
    pub match_phrase: String,
    /// Words, silence, digits or audio.
    pub response_type: ResponseType,
    /// Words (phrase), digits (dtmf), or words after the pause (silence).
    #[serde(default)]
    pub response_value: Option<String>,
    /// Audio, played once to its end.
    #[serde(default)]
    pub scripted_response_audio_snippet_url: Option<String>,
    /// Always, or the first `occurrence_n` times.
    pub occurrence_mode: OccurrenceMode,
    /// For first_n.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub occurrence_n: Option<i64>,
    /// Seconds; null: until the end of the next agent turn.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 600.0))]
    pub silence_duration: Option<f64>,
}

impl ScriptedResponse {
    /// Fields that an import may leave out, and what they are then.
    pub fn imported() -> [(&'static str, &'static str); 3] {
        [
            ("match_type", MatchType::default().as_str()),
            ("response_type", ResponseType::default().as_str()),
            ("occurrence_mode", OccurrenceMode::default().as_str()),
        ]
    }
}

/// Phrases of a step's member `key`: a text, or an array of texts; blank ones are left out.
pub fn phrases<'s>(step: &'s Object, key: &str) -> impl Iterator<Item = &'s str> {
    let (one, many) = match step.get(key) {
        Some(Value::Array(all)) => (None, all.as_slice()),
        other => (other, &[][..]),
    };
    one.into_iter().chain(many).filter_map(Value::as_str).filter(|phrase| !phrase.trim().is_empty())
}

/// Share of equal characters (1 minus the normalized edit distance) from which on two texts are the same.
const ALIKE: f64 = 0.9;

/// True when the normal forms of two texts are the same but for a tenth of their characters.
pub fn is_alike(heard: &str, expected: &str) -> bool {
    strsim::normalized_levenshtein(&normal_form(heard), &normal_form(expected)) >= ALIKE
}
