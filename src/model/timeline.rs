//! The events of a timeline, described for the interface: every name that is known, with the members of its data.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Version of the timeline's events. It rises when a name or a member changes its meaning or goes, not when one is
/// added.
pub const VERSION: i64 = 1;

/// Members of the data of an event: name and type.
type Members = &'static [(&'static str, Type)];

/// Type of a member; those that end in `OrNull` may be null.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Type {
    Text,
    TextOrNull,
    Integer,
    IntegerOrNull,
    Number,
    NumberOrNull,
    Boolean,
    BooleanOrNull,
    Any,
    /// Words with their times.
    Words,
    /// Silences inside an utterance.
    Pauses,
    Integers,
}

use Type::{
    Any, Boolean, BooleanOrNull, Integer, IntegerOrNull, Integers, Number, NumberOrNull, Pauses, Text, TextOrNull,
    Words,
};

const SPEECH_STARTED: Members = &[("utterance_id", Integer), ("text", Text), ("kind", Text)];
const ARRIVAL: Members = &[("arrival_ms", Number), ("pre_conversation", Boolean)];
const RINGING: Members = &[("address", TextOrNull), ("code", Integer)];
const KEY: Members = &[("digits", Text), ("method", Text), ("duration_ms", Integer)];
const CODE: Members = &[("code", Integer)];

/// Every known event: its name, the side where that tells two apart, what it is, its members.
const EVENTS: [(&str, Option<&str>, &str, Members); 46] = [
    ("call.dialing", None, "The call was placed to this address.", &[("address", Text)]),
    ("call.ringing", None, "The other side rings (SIP 180).", RINGING),
    ("call.early_media", None, "Early media: audio arrives before the answer.", RINGING),
    (
        "call.ready",
        None,
        "The agent can speak from here on, before connect: the WebSocket is open and the start of the session was sent, \
        or the agent's track is published. The time of the greeting counts from here.",
        &[],
    ),
    (
        "call.connected",
        None,
        "The call was answered; this is sample 0.",
        &[("address", TextOrNull), ("code", Integer), ("codec", Text)],
    ),
    (
        "call.ended",
        None,
        "The call ended. `by`: AGENT, USER or engine. `reason`: code of the end.",
        &[
            ("by", Text),
            ("reason", Text),
            ("sip_code", IntegerOrNull),
            ("q850_cause", IntegerOrNull),
            ("close_code", Integer),
        ],
    ),
    ("speech.started", Some("dh"), "The Digital Human begins to speak. `text`: the planned words.", SPEECH_STARTED),
    (
        "speech.started",
        Some("agent"),
        "The agent begins to speak. `arrival_ms`: arrival of that sound, in milliseconds from connect.",
        ARRIVAL,
    ),
    (
        "speech.ended",
        Some("dh"),
        "The Digital Human stops to speak. `text`: the words that were spoken. `scripted`: spoken exactly as written.",
        &[
            ("utterance_id", Integer),
            ("text", Text),
            ("kind", Text),
            ("interrupted", Boolean),
            ("scripted", Boolean),
            ("pauses", Pauses),
        ],
    ),
    (
        "speech.ended",
        Some("agent"),
        "The agent stops to speak. `arrival_ms`: arrival of its last sound, in milliseconds from connect.",
        ARRIVAL,
    ),
    (
        "turn.ended",
        None,
        "A turn of the agent ended and its text is final. `channel`: channel of a written message.",
        &[
            ("text", Text),
            ("from_sample", Integer),
            ("end_sample", Integer),
            ("confidence", NumberOrNull),
            ("concealed_ms", Integer),
            ("words", Words),
            ("text_missing", Text),
            ("text_late", Boolean),
            ("text_source", Text),
            ("channel", Text),
        ],
    ),
    (
        "language.taken",
        None,
        "The Digital Human changed to the agent's language.",
        &[("language", Text), ("by", Text), ("from_sample", Integer)],
    ),
    (
        "transcript.partial",
        None,
        "Words of the agent that are recognized so far; only in the live stream.",
        &[("text", Text)],
    ),
    (
        "barge_in",
        None,
        "Interruption. `by`: the side that interrupted. `stop_ms`: time from its onset until the other side was silent.",
        &[("by", Text), ("overlap_ms", Integer), ("stop_ms", IntegerOrNull)],
    ),
    (
        "late_turn",
        None,
        "The Digital Human's words were ready `late_ms` after they were due.",
        &[("late_ms", Integer), ("utterance_id", Integer)],
    ),
    (
        "scripted_response",
        None,
        "A scripted response was triggered. `index`: its position in the list, from 0.",
        &[("index", Integer), ("match_type", Text), ("response_type", Text)],
    ),
    (
        "interruption.decided",
        None,
        "The Digital Human is going to interrupt, `at_ms` after the onset of the agent's turn. `u`: the random draw, 0 to 1.",
        &[("type", Text), ("u", Number), ("at_ms", Integer), ("keyword", TextOrNull)],
    ),
    ("silence_tool", None, "The language model chose to stay silent for `seconds`.", &[("seconds", Integer)]),
    (
        "reprompt",
        None,
        "The Digital Human got no answer and asks again. `n`: number of the repetition.",
        &[("n", Integer)],
    ),
    ("dtmf_sent", None, "The Digital Human pressed a key (DTMF); the position is its onset.", KEY),
    ("dtmf_received", None, "The agent sent a key (DTMF); the position is its onset.", KEY),
    ("hold", None, "The agent put the call on hold.", CODE),
    ("unhold", None, "The agent resumed the call.", CODE),
    ("session.answered", None, "A change of the session by the agent was answered with this SIP code.", CODE),
    ("transfer", None, "The agent asked for a transfer.", &[("to", Text), ("accepted", Boolean), ("code", Integer)]),
    (
        "transferred",
        None,
        "The target of an accepted transfer was called. `outcome` `answered`: the target is the agent from now on.",
        &[("to", Text), ("outcome", Text), ("code", Integer)],
    ),
    (
        "probe",
        None,
        "The Digital Human made a sound that needs no answer: backchannel, vocal_tic or non_directed.",
        &[("kind", Text)],
    ),
    (
        "line_tone",
        None,
        "A tone of the telephone network: ringback, busy, reorder, special_information, dial or beep. `cadence_ms`: lengths of tones and pauses, alternating.",
        &[("kind", Text), ("frequency_hz", Integer), ("cadence_ms", Integers)],
    ),
    (
        "answering_machine",
        None,
        "A beep after speech, as of an answering machine. It does not change the outcome by itself.",
        &[
            ("greeting_from_sample", Integer),
            ("greeting_end_sample", Integer),
            ("beep_ms", Integer),
            ("frequency_hz", Integer),
        ],
    ),
    (
        "network",
        None,
        "Figures of the network, once a second: packets since connect, and the present jitter.",
        &[("received", Integer), ("lost", Integer), ("late", Integer), ("jitter_ms", Number)],
    ),
    (
        "suspected_echo_event",
        None,
        "Echo of the Digital Human's own words, in the agent's audio or reported by the agent as speech.",
        &[("delay_ms", Number), ("erl_db", Number), ("utterance_id", Text)],
    ),
    (
        "agent_speech_event",
        None,
        "The agent reported by a message that it speaks. `effect`: interrupt, none, ignored or floor_held.",
        &[("utterance_id", Text), ("effect", Text)],
    ),
    ("agent_reported", None, "Words of the agent, as the agent's side reported them.", &[("text", Text)]),
    ("agent_cleared", None, "The agent discarded audio that was not played yet.", &[("dropped_ms", Integer)]),
    ("agent_error", None, "The agent reported an error.", &[("code", Text), ("message", Text)]),
    (
        "dialect_violation",
        None,
        "A message of the agent broke the rules of its protocol.",
        &[("code", Text), ("excerpt", Text)],
    ),
    (
        "channel_event",
        None,
        "Another message of the channel, with its name and data.",
        &[("name", Text), ("data", Any)],
    ),
    ("rx_underrun", None, "Audio of the agent was missing and was concealed.", &[("duration_ms", Integer)]),
    (
        "rx_overflow",
        None,
        "More packets arrived at once than the jitter buffer holds; the excess was dropped.",
        &[("packets", Integer)],
    ),
    (
        "engine.late_frames",
        None,
        "The engine skipped this number of frames because it was late.",
        &[("count", Integer)],
    ),
    (
        "message.sent",
        None,
        "A message of the Digital Human.",
        &[("message_id", TextOrNull), ("text", Text), ("channel", TextOrNull), ("kind", Text)],
    ),
    (
        "message.received",
        None,
        "A message of the agent.",
        &[("message_id", TextOrNull), ("text", Text), ("channel", TextOrNull)],
    ),
    (
        "tool_call",
        None,
        "The agent called a tool.",
        &[("name", Text), ("parameters", Any), ("output", Any), ("source", TextOrNull)],
    ),
    (
        "playback_step",
        None,
        "Verdict on a playback step. `passed` null: not judged.",
        &[("index", Integer), ("passed", BooleanOrNull)],
    ),
    ("late_first_token", None, "Note: the first words of the language model were late.", &[("message", Text)]),
    (
        "fallback_speaker",
        None,
        "Note: the built-in speaker answered in place of the language model.",
        &[("message", Text)],
    ),
];

/// One event of a timeline, for its description.
#[derive(Debug)]
pub struct TimelineEvent;

impl JsonSchema for TimelineEvent {
    fn schema_name() -> Cow<'static, str> {
        "TimelineEvent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut names: Vec<&str> = EVENTS.iter().map(|(name, ..)| *name).collect();
        names.dedup();
        let schema = json!({
            "type": "object",
            "description": "One event with its sample position. Clients must accept unknown names and members: later releases add \
                some. An event of another name whose data has at most a message is a note.",
            "required": ["seq", "sample", "offset_ms", "event", "side", "data"],
            "properties": {
                "seq": {
                    "type": "integer", "format": "int64",
                    "description": "Number in the order in which the events became known, from 0.",
                },
                "sample": {
                    "type": "integer", "format": "int64",
                    "description": "Position in samples, 16000 a second, 0 at connect; negative before.",
                },
                "offset_ms": { "type": "number", "description": "Position in milliseconds: sample / 16, to three decimals." },
                "event": { "type": "string", "description": "Name of the event.", "examples": names },
                "side": { "type": "string", "enum": ["dh", "agent", "engine"], "description": "Side that caused the event: dh is the Digital Human." },
                "data": { "type": "object", "additionalProperties": true, "description": "Data of the event; its members depend on the name." },
            },
            "additionalProperties": true,
            "allOf": EVENTS.iter().map(|(name, side, about, members)| rule(name, *side, about, members)).collect::<Value>(),
        });
        Schema::try_from(schema).unwrap_or_default()
    }
}

/// Returns the schema of the data of events of one name. Older releases wrote fewer members: none is required.
fn rule(name: &str, side: Option<&str>, about: &str, members: Members) -> Value {
    let mut when = json!({ "event": { "const": name } });
    if let Some(side) = side {
        when["side"] = json!({ "const": side });
    }
    let properties: Map<String, Value> =
        members.iter().map(|(name, kind)| ((*name).to_owned(), kind.schema())).collect();
    let data = json!({ "description": about, "properties": properties });
    json!({ "if": { "properties": when }, "then": { "properties": { "data": data } } })
}

impl Type {
    fn schema(self) -> Value {
        let list = |names: Value| json!({ "type": "array", "items": { "type": "object", "properties": names } });
        let integer = || json!({ "type": "integer" });
        match self {
            Text => json!({ "type": "string" }),
            TextOrNull => json!({ "type": ["string", "null"] }),
            Integer => integer(),
            IntegerOrNull => json!({ "type": ["integer", "null"] }),
            Number => json!({ "type": "number" }),
            NumberOrNull => json!({ "type": ["number", "null"] }),
            Boolean => json!({ "type": "boolean" }),
            BooleanOrNull => json!({ "type": ["boolean", "null"] }),
            Any => json!({}),
            Words => list(json!({
                "word": { "type": "string" }, "start_offset_ms": integer(), "end_offset_ms": integer(),
                "confidence": NumberOrNull.schema(),
            })),
            Integers => json!({ "type": "array", "items": integer() }),
            Pauses => list(json!({ "from_sample": integer(), "to_sample": integer() })),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ringer_media::call::{Event, EventKind};

    use super::*;

    /// Returns an example of a value that the event of this name may have in this member.
    fn example(event: &str, member: &str, kind: Type) -> Value {
        match (event, member, kind) {
            ("probe", ..) => json!("vocal_tic"),
            ("line_tone", "kind", _) => json!("special_information"),
            ("message.sent" | "speech.started" | "speech.ended", "kind", _) => json!("scripted"),
            ("barge_in", "by", _) => json!("dh"),
            (_, "digits", _) => json!("#"),
            ("hold" | "unhold", "code", _) => json!(200),
            ("transfer", "code", _) => json!(202),
            (_, "text_source", _) => json!("reported"),
            (.., Text | TextOrNull) => json!("text"),
            (.., Integer | IntegerOrNull) => json!(7),
            (.., Number | NumberOrNull) => json!(0.5),
            (.., Boolean | BooleanOrNull) => json!(true),
            (.., Any) => json!({ "a": 1 }),
            (.., Integers) => json!([400, 200]),
            (.., Words) => json!([{ "word": "a", "start_offset_ms": 1, "end_offset_ms": 2, "confidence": null }]),
            (.., Pauses) => json!([{ "from_sample": 1, "to_sample": 2 }]),
        }
    }

    #[test]
    fn every_event_is_described_as_it_is_written() {
        for (name, side, _, members) in EVENTS {
            let side = side.unwrap_or("agent");
            // Spoken and written turns have different members.
            let forms: &[&[&str]] = match name {
                // An echo by its sound, and one by a message.
                "suspected_echo_event" => &[&["utterance_id"], &["delay_ms", "erl_db"]],
                "turn.ended" => &[&["channel"], &["concealed_ms", "text_missing", "text_late", "text_source"]],
                _ => &[&[]],
            };
            for left_out in forms {
                let members = members.iter().filter(|(member, _)| !left_out.contains(member));
                let mut data: Map<String, Value> =
                    members.map(|(member, kind)| ((*member).to_owned(), example(name, member, *kind))).collect();
                if name == "turn.ended" && left_out.len() > 1 {
                    (data["confidence"], data["words"]) = (json!(null), json!([]));
                }
                let event = Event::from_wire(0, name, side, Value::Object(data.clone()));
                assert!(!matches!(event.what, EventKind::Unknown(_)), "{name}: {event:?}");
                assert_eq!(event.data(), Value::Object(data), "{name}");
            }
        }
    }

    #[test]
    fn every_name_of_an_event_is_described() {
        let described: BTreeSet<&str> = EVENTS.iter().map(|(name, ..)| *name).collect();
        let notes = BTreeSet::from(["late_first_token", "fallback_speaker"]);
        assert_eq!(described.difference(&notes).copied().collect::<BTreeSet<_>>(), BTreeSet::from(Event::NAMES));
    }

    #[test]
    fn events_of_a_call_are_described() {
        let timeline = include_str!("../../fixtures/timelines/call.json");
        let events: Vec<Value> = serde_json::from_str(timeline).expect("a list");
        let of = |event: &Value| {
            let (name, side) = (event["event"].as_str()?, event["side"].as_str()?);
            let is_it = |known: &&(&str, Option<&str>, &str, Members)| {
                known.0 == name && known.1.is_none_or(|known| known == side)
            };
            EVENTS.iter().find(is_it)
        };
        let mut seen = BTreeSet::new();
        for event in &events {
            let Some((name, _, _, members)) = of(event) else { continue };
            seen.insert(*name);
            for (member, _) in event["data"].as_object().expect("an object") {
                assert!(members.iter().any(|(known, _)| known == member), "{name}: {member}");
            }
        }
        assert!(seen.len() >= 10, "{seen:?}");
    }
}
