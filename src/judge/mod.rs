//! What a conversation was, from its timeline: the transcript, the metrics and the evaluation. Works on what is stored, so
//! that a conversation can be judged again at any time. Words are judged by rules, or by a language model that is asked.

mod ask;
mod conversation;
mod custom;
mod fillers;
mod imported;
mod likeness;
mod measures;
mod messages;
mod playback;
mod probes;
mod redact;
mod schema;
mod sound;
mod transcript;
mod words;

use serde::Deserialize;
use serde_json::Value;

pub use self::ask::{Unanswered, Wrong, ask, ask_text, question};
pub use self::conversation::judge_words;
pub use self::custom::{Material, Metric, is_of_tool_calls, judge_by_rules};
pub use self::fillers::fillers;
pub use self::imported::Imported;
pub use self::likeness::Trigrams;
pub use self::measures::{Facts, Measured, measure};
pub use self::playback::playback;
pub use self::redact::{Redactor, key_spans};
pub use self::schema::schema_of;
pub use self::sound::audio_metrics;
pub use self::transcript::transcript;
pub use self::words::predicted_wer;

/// One line of a stored timeline.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Moment {
    /// Number in the order in which it became known.
    pub seq: i64,
    /// Position, 16 samples a millisecond, 0 at connect.
    pub sample: i64,
    /// Wire name.
    pub event: String,
    /// dh, agent or engine.
    pub side: String,
    /// Event data.
    #[serde(default)]
    pub data: Value,
}

impl Moment {
    fn is(&self, event: &str, side: &str) -> bool {
        self.event == event && self.side == side
    }

    fn is_reprompt(&self) -> bool {
        self.is("speech.started", "dh") && self.data["kind"] == "reprompt"
    }

    fn text(&self) -> &str {
        self.data["text"].as_str().unwrap_or_default()
    }

    fn number(&self, key: &str) -> Option<i64> {
        self.data[key].as_i64()
    }
}

/// The lines of a stored timeline in order; lines that are no events are left out.
pub fn moments(timeline: &Value) -> Vec<Moment> {
    let lines = timeline.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut moments: Vec<Moment> = lines.iter().filter_map(|line| Moment::deserialize(line).ok()).collect();
    moments.sort_by_key(|moment| (moment.sample, moment.seq));
    moments
}
