//! The moment at which two calls of one caller part: the first event that only one has, or that has another time or
//! other contents in the other.

use std::collections::BTreeMap;

use ringer_human::text::plain_words;
use ringer_media::frame::PER_MS;
use serde_json::{Value, json};

/// Events by which two calls can part: of what was said, keyed, asked and ended. How a call was carried and measured is
/// not among them, nor how late this side was.
const EVENTS: [&str; 28] = [
    "call.early_media",
    "call.connected",
    "call.ended",
    "speech.started",
    "speech.ended",
    "turn.ended",
    "language.taken",
    "barge_in",
    "scripted_response",
    "interruption.decided",
    "silence_tool",
    "reprompt",
    "dtmf_sent",
    "dtmf_received",
    "hold",
    "unhold",
    "transfer",
    "transferred",
    "probe",
    "line_tone",
    "answering_machine",
    "message.sent",
    "message.received",
    "tool_call",
    "playback_step",
    "agent_reported",
    "agent_cleared",
    "agent_error",
];

/// Members of an event's data that are compared; times among them follow from the events' own.
const COMPARED: [&str; 17] = [
    "text",
    "kind",
    "interrupted",
    "digit",
    "method",
    "by",
    "reason",
    "name",
    "parameters",
    "to",
    "outcome",
    "passed",
    "index",
    "codec",
    "code",
    "keyword",
    "language",
];

/// Characters of a value that are told.
const TOLD_CHARS: usize = 80;

/// Place at which two calls part.
#[derive(Clone, Debug, PartialEq)]
pub struct Parting {
    /// Time of the first event that differs, in milliseconds of the call; the earlier of both sides.
    pub at_ms: f64,
    /// Side of the event: `dh`, `agent` or `engine`.
    pub side: String,
    /// Name of the event.
    pub event: String,
    /// The event in the first call, with its `at_ms`; null where it has none.
    pub before: Value,
    /// The event in the second call; null where it has none.
    pub after: Value,
    /// Difference, for a person.
    pub says: String,
}

/// Returns the place at which two timelines part; `None` where they do not.
///
/// The events of each side and name are compared in their order. `tolerance_ms`: times that are no further apart are
/// the same. 0 is for calls in virtual time.
pub fn parting(before: &[Value], after: &[Value], tolerance_ms: f64) -> Option<Parting> {
    let (before, after) = (by_kind(before), by_kind(after));
    let kinds = before.keys().chain(after.keys().filter(|kind| !before.contains_key(*kind)));
    let none = Vec::new();
    let found = kinds.filter_map(|kind| {
        let (one, other) = (before.get(kind).unwrap_or(&none), after.get(kind).unwrap_or(&none));
        first_difference(kind, one, other, tolerance_ms)
    });
    found.min_by(|one, other| one.at_ms.total_cmp(&other.at_ms))
}

/// Side and name of an event.
type Kind = (String, String);

/// Returns the compared events, by side and name.
fn by_kind(timeline: &[Value]) -> BTreeMap<Kind, Vec<&Value>> {
    let mut kinds: BTreeMap<Kind, Vec<&Value>> = BTreeMap::new();
    for event in timeline {
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        let name = text("event");
        if EVENTS.contains(&name.as_str()) {
            kinds.entry((text("side"), name)).or_default().push(event);
        }
    }
    kinds
}

fn first_difference(kind: &Kind, before: &[&Value], after: &[&Value], tolerance_ms: f64) -> Option<Parting> {
    for at in 0..before.len().max(after.len()) {
        let (one, other) = (before.get(at).copied(), after.get(at).copied());
        let says = match (one, other) {
            (Some(one), Some(other)) => difference(one, other, tolerance_ms),
            (Some(one), None) => Some(format!("only in the first call{}", brief(one))),
            (None, Some(other)) => Some(format!("only in the second call{}", brief(other))),
            (None, None) => None,
        };
        if let Some(says) = says {
            let at_ms = one.into_iter().chain(other).map(time_ms).fold(f64::INFINITY, f64::min);
            let (side, event) = kind.clone();
            let told = |event: Option<&Value>| event.map_or(Value::Null, contents);
            return Some(Parting { at_ms, side, event, before: told(one), after: told(other), says });
        }
    }
    None
}

/// Returns the difference of two events of one kind, for a person; `None` where they are the same.
fn difference(before: &Value, after: &Value, tolerance_ms: f64) -> Option<String> {
    let (from, to) = (time_ms(before), time_ms(after));
    if (from - to).abs() > tolerance_ms {
        let way = if to > from { "later" } else { "earlier" };
        let (apart, from, to) = ((to - from).abs(), from / 1000.0, to / 1000.0);
        return Some(format!("{apart:.0} ms {way}, at {to:.2} s instead of {from:.2} s{}", brief(after)));
    }
    let key = COMPARED.iter().find(|key| !is_same(&before["data"][**key], &after["data"][**key]))?;
    let [old, new] = [before, after].map(|event| short(&event["data"][*key]));
    Some(format!("{key} is {new} instead of {old}"))
}

/// True for values that say the same; words do so in whatever letters and with whatever punctuation.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one.as_str(), other.as_str()) {
        (Some(one), Some(other)) => one == other || plain_words(one) == plain_words(other),
        _ => one == other,
    }
}

/// Returns the words of an event in brackets; nothing where it has none.
fn brief(event: &Value) -> String {
    match event["data"]["text"].as_str().filter(|text| !text.is_empty()) {
        Some(_) => format!(" ({})", short(&event["data"]["text"])),
        None => String::new(),
    }
}

fn short(value: &Value) -> String {
    let text = match value {
        Value::Null => "nothing".to_owned(),
        other => other.to_string(),
    };
    if text.chars().count() <= TOLD_CHARS {
        return text;
    }
    text.chars().take(TOLD_CHARS).chain("...".chars()).collect()
}

/// Returns the compared contents of an event, with its time.
fn contents(event: &Value) -> Value {
    let mut told = json!({ "at_ms": time_ms(event) });
    for key in COMPARED {
        if let Some(value) = event["data"].get(key) {
            told[key] = value.clone();
        }
    }
    told
}

fn time_ms(event: &Value) -> f64 {
    event["sample"].as_f64().unwrap_or(0.0) / PER_MS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(ms: i64, side: &str, name: &str, data: Value) -> Value {
        json!({ "sample": ms * PER_MS, "seq": 0, "side": side, "event": name, "data": data })
    }

    fn call(shift_ms: i64, words: &str) -> Vec<Value> {
        vec![
            event(0, "engine", "call.connected", json!({ "codec": "PCMU" })),
            event(500, "agent", "speech.started", json!({ "arrival_ms": 560.0 })),
            event(1000, "engine", "network", json!({ "received": 50 + shift_ms })),
            event(3000 + shift_ms, "dh", "speech.started", json!({ "text": "Hello." })),
            event(5000 + shift_ms, "agent", "turn.ended", json!({ "text": words })),
        ]
    }

    #[test]
    fn calls_part_at_their_first_difference() {
        let said = "Good day.";
        for (after, tolerance_ms, expect) in [
            (call(0, said), 0.0, None),
            (call(0, "good day"), 0.0, None),
            (call(150, said), 200.0, None),
            (call(150, said), 0.0, Some((3000.0, "dh", "150 ms later, at 3.15 s instead of 3.00 s (\"Hello.\")"))),
            (call(-20, said), 0.0, Some((2980.0, "dh", "20 ms earlier, at 2.98 s instead of 3.00 s (\"Hello.\")"))),
            (call(0, "Bye."), 0.0, Some((5000.0, "agent", "text is \"Bye.\" instead of \"Good day.\""))),
            (call(0, said)[..4].to_vec(), 0.0, Some((5000.0, "agent", "only in the first call (\"Good day.\")"))),
        ] {
            let found = parting(&call(0, said), &after, tolerance_ms);
            let told = found.as_ref().map(|found| (found.at_ms, found.side.as_str(), found.says.as_str()));
            assert_eq!(told, expect);
        }
    }

    #[test]
    fn an_event_that_one_call_has_alone_is_where_they_part() {
        let before = call(0, "Good day.");
        let mut after = before.clone();
        after.insert(2, event(800, "dh", "speech.started", json!({ "text": "Wait." })));
        let found = parting(&before, &after, 0.0).expect("they part");
        assert_eq!((found.at_ms, found.event.as_str()), (800.0, "speech.started"));
        let digit = event(700, "agent", "dtmf_received", json!({ "digit": "1" }));
        let found = parting(&before, &[before.clone(), vec![digit]].concat(), 0.0).expect("they part");
        assert_eq!((found.at_ms, &found.before, found.after["digit"].as_str()), (700.0, &Value::Null, Some("1")));
        assert_eq!(parting(&[], &[], 0.0), None);
    }
}
