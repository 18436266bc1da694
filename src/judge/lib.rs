//! Transcript, metrics and evaluation of a conversation, from its timeline. All of it works on stored data, so that a
//! conversation can be judged again at any time. Words are judged by rules, or by a language model.

pub mod accuracy;
pub mod agreement;
mod answer;
mod asides;
mod ask;
mod attempts;
pub mod card;
pub mod catalogue;
pub mod comparison;
mod conversation;
pub mod correction;
mod custom;
mod cuts;
mod decide;
mod doubt;
mod expectations;
mod faults;
mod fillers;
mod floor;
mod heard_turns;
mod imported;
mod keyword_delays;
mod labels;
mod likeness;
mod meaning;
mod measures;
mod messages;
pub mod misheard;
pub mod paired;
mod panel;
pub mod parting;
mod playback;
mod probes;
mod pronunciation;
mod reading;
mod redact;
mod repeats;
mod reported;
mod retrial;
mod schema;
mod socket_events;
mod sound;
mod spoken;
pub mod stats;
mod summary;
mod transcript;
mod turn_list;
mod unheard;
mod version;
mod words;
mod yielding;

use ringer_media::call::TimelineEntry;
use ringer_media::frame::PER_MS;
use ringer_media::measure::Span;
use ringer_model::Object;
use ringer_model::result::find_note;
use serde::Deserialize;
use serde_json::Value;

pub use self::answer::Wrong;
pub use self::asides::judge_asides;
pub use self::ask::{Unanswered, ask, ask_typed, question};
pub use self::conversation::{goal_version, judge_words};
pub use self::custom::{
    Ear, Material, Metric, NO_MODEL, PartMeasures, conversation_text, is_by_ear, is_of_tool_calls, judge_by_rules,
    metric_version, parts_to_measure,
};
pub use self::cuts::cuts;
pub use self::decide::{Decision, decide, decide_of};
pub use self::expectations::{Grounds, is_timed_tool, judge_expectations, own_faults, rejudge_metrics, rejudge_tools};
pub use self::fillers::fillers;
pub use self::floor::kept_floor;
pub use self::heard_turns::{heard_turns, whole_turns};
pub use self::imported::Imported;
pub use self::keyword_delays::keyword_delays;
pub use self::labels::{check_labels, entries_of, place_of, read_labels};
pub use self::likeness::Trigrams;
pub use self::meaning::meaning_version;
pub use self::measures::{Facts, Measured, measure};
pub use self::panel::judge_name;
pub use self::playback::{NOTHING_EXPECTED, Played, enter_playback, excuse, judge_meanings, playback};
pub use self::redact::{Redactor, digit_spans};
pub use self::retrial::{Retrial, check_retrial, retry};
pub use self::schema::schema_of;
pub use self::socket_events::{audio_not_played_ms, rate_mismatch};
pub use self::sound::{audio_metrics, measure_parts};
pub use self::summary::sum_up;
pub use self::transcript::transcript;
pub use self::turn_list::{NotCounted, TurnItem, TurnOverlap, overlaps, turn_list};
pub use self::unheard::{Lack, Unheard, unheard};
pub use self::words::{WordErrors, predicted_wer};
pub use self::yielding::{OpenMetric, YIELDING, has_open_stops};

/// Returns the language that a Digital Human spoke, by the metadata of its result. It is the one taken last from the
/// agent, else the one that it began with.
pub fn language(metadata: &Object) -> &str {
    let taken = find_note(metadata, "languages").and_then(|taken| taken.as_array()?.last()?["language"].as_str());
    taken.or_else(|| find_note(metadata, "behaviour")?["language"].as_str()).unwrap_or("en")
}

/// Returns the kind of interface on which a call was held, by its result's metadata: `PHONE` for SIP, else `WEB`. A
/// result that was kept without its transport was a telephone call.
pub fn interface(metadata: &Object) -> &'static str {
    let transport = find_note(metadata, "transport").and_then(serde_json::Value::as_str);
    if transport.is_none_or(|name| name.starts_with("SIP")) { "PHONE" } else { "WEB" }
}

/// Returns a stretch of milliseconds, which may be open at its ends.
fn span_of((from_ms, to_ms): (i64, i64)) -> Span {
    let at = |ms: i64| ms.clamp(0, i64::MAX / PER_MS) * PER_MS;
    Span { from: at(from_ms), to: at(to_ms) }
}

/// Returns the lines of a stored timeline in order; lines that are no events are left out.
pub fn moments(timeline: &Value) -> Vec<TimelineEntry> {
    let lines = timeline.as_array().map(Vec::as_slice).unwrap_or_default();
    let read = lines.iter().filter_map(|line| TimelineEntry::deserialize(line).ok());
    let mut moments: Vec<TimelineEntry> = read.collect();
    moments.sort_by_key(|moment| (moment.sample, moment.seq));
    moments
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_telephone_calls_are_held_by_phone() {
        for (transport, expect) in [
            (json!("SIP/UDP, RTP/AVP"), "PHONE"),
            (json!("SIP/TLS, RTP/SAVP"), "PHONE"),
            (json!("WebSocket, default"), "WEB"),
            (json!("WebRTC, UDP/TLS/RTP/SAVPF"), "WEB"),
            (json!("HTTP webhook"), "WEB"),
            (Value::Null, "PHONE"),
        ] {
            let metadata = Object::from_iter([("transport".to_owned(), transport.clone())]);
            assert_eq!(interface(&metadata), expect, "{transport}");
        }
        assert_eq!(interface(&Object::new()), "PHONE");
    }
}
