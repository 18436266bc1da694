//! Events read back from JSON: typed where they have the known form, kept unchanged where they have not.

use std::borrow::Cow;

use serde::de::{Deserialize, Deserializer};
use serde_json::Value;

use super::channel_event::ChannelEvent;
use super::event::{
    Code, Event, EventKind, Kind, NO_UTTERANCE, ProbeKind, Side, Spoken, TimelineEntry, ToolCall, Unknown, Word,
};
use crate::echo::EchoFigures;
use crate::frame::{PER_MS, Sample};
use crate::line_tones::LineToneKind;

impl Event {
    /// Returns the event with these members. It is written back as it was read: one without the known form is
    /// [`EventKind::Unknown`].
    pub fn from_wire(sample: Sample, name: &str, side: &str, data: Value) -> Event {
        let unknown = |side: Option<&str>, data: Value, reading: Option<EventKind>| {
            EventKind::Unknown(Box::new(Unknown {
                event: name.to_owned(),
                side: side.map(str::to_owned),
                data,
                reading,
            }))
        };
        let Some(known_side) = Side::from_name(side) else {
            return Event { sample, side: Side::Engine, what: unknown(Some(side), data, None) };
        };
        let Some(what) = what(name, known_side, sample, &Members(&data)) else {
            return Event { sample, side: known_side, what: unknown(None, data, None) };
        };
        let mut event = Event { sample, side: known_side, what };
        if !is_same(&event.data(), &data) {
            let reading = std::mem::replace(&mut event.what, EventKind::Held);
            event.what = unknown(None, data, Some(reading));
        }
        event
    }

    /// Returns what is known of the event. An event without the known form tells as much as its name and its data do: members
    /// that it lacks are empty, or 0. [`EventKind::Unknown`] when that is nothing.
    pub fn reading(&self) -> &EventKind {
        match &self.what {
            EventKind::Unknown(unknown) => unknown.reading.as_ref().unwrap_or(&self.what),
            what => what,
        }
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Event, D::Error> {
        TimelineLine::deserialize(deserializer).map(TimelineLine::event)
    }
}

impl<'de> Deserialize<'de> for TimelineEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TimelineEntry, D::Error> {
        let Numbered { seq, sample, event, side, data } = Numbered::deserialize(deserializer)?;
        Ok(TimelineEntry { seq, event: TimelineLine { sample, event, side, data }.event() })
    }
}

/// An event as it is written. `offset_ms` is another form of `sample`.
#[derive(serde::Deserialize)]
struct TimelineLine {
    sample: Sample,
    event: String,
    side: String,
    #[serde(default)]
    data: Value,
}

impl TimelineLine {
    fn event(self) -> Event {
        Event::from_wire(self.sample, &self.event, &self.side, self.data)
    }
}

#[derive(serde::Deserialize)]
struct Numbered {
    seq: i64,
    sample: Sample,
    event: String,
    side: String,
    #[serde(default)]
    data: Value,
}

/// True when both are written alike: the same members in the same order. A number that is read may be off by the last bit.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let alike = |((name, value), (other_name, other))| name == other_name && is_same(value, other);
            one.len() == other.len() && one.iter().zip(other).all(alike)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Number(number), Value::Number(read)) if number.is_f64() && read.is_f64() => {
            let (number, read) = (number.as_f64().unwrap_or_default(), read.as_f64().unwrap_or_default());
            (number - read).abs() <= 2.0 * f64::EPSILON * number.abs()
        }
        _ => one == other,
    }
}

/// Returns the event of this name as far as its members tell; `None` when nothing of it is known.
fn what(name: &str, side: Side, sample: Sample, data: &Members<'_>) -> Option<EventKind> {
    Some(match name {
        "call.dialing" => EventKind::Dialing { address: data.text("address") },
        "call.ringing" => EventKind::Ringing { address: data.some_text("address"), code: data.whole("code") },
        "call.early_media" => EventKind::EarlyMedia { address: data.some_text("address"), code: data.whole("code") },
        "call.connected" => EventKind::Connected {
            address: data.some_text("address"),
            code: data.whole("code"),
            codec: data.code("codec"),
        },
        "call.ended" => EventKind::Ended {
            by: data.code("by"),
            reason: data.code("reason"),
            sip_code: data.number("sip_code"),
            q850_cause: data.number("q850_cause"),
            close_code: data.number("close_code"),
        },
        "speech.started" | "speech.ended" => return speech(name == "speech.started", side, data),
        "turn.ended" => turn(sample, data),
        "language.taken" => EventKind::LanguageTaken {
            language: data.text("language"),
            by: data.code("by"),
            from_sample: data.number("from_sample").unwrap_or(sample),
        },
        "transcript.partial" => EventKind::TranscriptPartial { text: data.text("text") },
        "barge_in" => EventKind::BargeIn {
            by: Side::from_name(data.str("by")).unwrap_or(Side::Agent),
            overlap_ms: data.whole("overlap_ms"),
            stop_ms: data.number("stop_ms"),
        },
        "late_turn" => EventKind::LateTurn { late_ms: data.whole("late_ms"), utterance_id: data.utterance_id() },
        "scripted_response" => EventKind::ScriptedResponse {
            index: data.whole("index"),
            match_type: data.code("match_type"),
            response_type: data.code("response_type"),
        },
        "interruption.decided" => EventKind::InterruptionDecided {
            kind: data.code("type"),
            u: data.real("u").unwrap_or_default(),
            at_ms: data.whole("at_ms"),
            keyword: data.some_text("keyword"),
        },
        "silence_tool" => EventKind::SilenceTool { seconds: data.whole("seconds") },
        "reprompt" => EventKind::Reprompt { n: data.whole("n") },
        "dtmf_sent" | "dtmf_received" => return digit(name == "dtmf_sent", data),
        "hold" => EventKind::Held,
        "unhold" => EventKind::Unheld,
        "session.answered" => EventKind::SessionAnswered { code: data.whole("code") },
        "transfer" => EventKind::Transfer { to: data.text("to"), accepted: data.0["accepted"].as_bool()? },
        "transferred" => outcome_of_transfer(data),
        "probe" => EventKind::Probe { kind: ProbeKind::from_name(data.str("kind"))? },
        "playback_step" => EventKind::PlaybackStep { index: data.number("index")?, passed: data.0["passed"].as_bool() },
        "tool_call" => EventKind::ToolCall(Box::new(ToolCall {
            name: data.code("name"),
            parameters: data.0["parameters"].clone(),
            output: data.0["output"].clone(),
            source: data.some_text("source").map(Cow::Owned),
        })),
        "message.sent" => EventKind::MessageSent {
            message_id: data.some_text("message_id"),
            text: data.text("text"),
            channel: data.some_text("channel"),
            kind: data.kind(),
        },
        "message.received" => EventKind::MessageReceived {
            message_id: data.some_text("message_id"),
            text: data.text("text"),
            channel: data.some_text("channel"),
        },
        _ => return figures(name, data).or_else(|| channel(name, data)).or_else(|| note(name, data)),
    })
}

/// Reads the speech of a side that speaks.
fn speech(starts: bool, side: Side, data: &Members<'_>) -> Option<EventKind> {
    let (utterance_id, text, kind) = (data.utterance_id(), data.text("text"), data.kind());
    let arrival_ms = data.real("arrival_ms").unwrap_or_default();
    let pre_conversation = data.is_true("pre_conversation");
    Some(match (side, starts) {
        (Side::Dh, true) => EventKind::SpeechStarted { utterance_id, text, kind },
        (Side::Dh, false) => EventKind::SpeechEnded {
            utterance_id,
            text: Spoken::from(text),
            kind,
            interrupted: data.is_true("interrupted"),
            exact: data.is_true("scripted"),
            pauses: data.list("pauses").filter_map(pause).collect(),
        },
        (Side::Agent, true) => EventKind::AgentSpeechStarted { arrival_ms, pre_conversation },
        (Side::Agent, false) => EventKind::AgentSpeechEnded { arrival_ms, pre_conversation },
        (Side::Engine, _) => return None,
    })
}

/// Reads a turn. Without its own place it ends at `sample`, and without an onset it begins where it ends.
fn turn(sample: Sample, data: &Members<'_>) -> EventKind {
    let text = data.text("text");
    let end_sample = data.number("end_sample").unwrap_or(sample);
    let from_sample = data.number("from_sample").unwrap_or(end_sample);
    if let Some(channel) = data.some_text("channel") {
        return EventKind::TurnWritten { text, from_sample, end_sample, channel };
    }
    EventKind::TurnEnded {
        text,
        from_sample,
        end_sample,
        confidence: data.real("confidence").map(|confidence| confidence as f32),
        words: data.list("words").filter_map(word).collect(),
        concealed_ms: data.whole("concealed_ms"),
        missing: data.some_text("text_missing").map(Cow::Owned),
        late: data.is_true("text_late"),
        reported: data.str("text_source") == "reported",
    }
}

/// Digit of a key whose value is not told.
pub const HIDDEN_DIGIT: char = '?';

fn digit(is_sent: bool, data: &Members<'_>) -> Option<EventKind> {
    // A key that was made unreadable (`[NUMBER]`) still took its time.
    let mut digits = data.str("digits").chars();
    let digit = match (digits.next()?, digits.next()) {
        (digit, None) => digit,
        _ => HIDDEN_DIGIT,
    };
    let (method, duration_ms) = (data.code("method"), data.whole("duration_ms"));
    Some(match is_sent {
        true => EventKind::DtmfSent { digit, method, duration_ms },
        false => EventKind::DtmfReceived { digit, method, duration_ms },
    })
}

/// Figures of the network and of the engine.
fn figures(name: &str, data: &Members<'_>) -> Option<EventKind> {
    Some(match name {
        "line_tone" => EventKind::LineTone {
            kind: LineToneKind::from_name(data.str("kind"))?,
            frequency_hz: data.whole("frequency_hz"),
            cadence_ms: data.list("cadence_ms").filter_map(|ms| u32::try_from(ms.as_i64()?).ok()).collect(),
        },
        "answering_machine" => EventKind::AnsweringMachine {
            greeting_from_sample: data.number("greeting_from_sample")?,
            greeting_end_sample: data.number("greeting_end_sample")?,
            beep_ms: data.whole("beep_ms"),
            frequency_hz: data.whole("frequency_hz"),
        },
        "network" => EventKind::Network {
            received: data.whole("received"),
            lost: data.whole("lost"),
            late: data.whole("late"),
            jitter_ms: data.real("jitter_ms").unwrap_or_default(),
        },
        "suspected_echo_event" => {
            let erl_db = data.real("erl_db").unwrap_or_default();
            EventKind::Echo(EchoFigures { delay_ms: data.real("delay_ms")?, erl_db })
        }
        "rx_underrun" => EventKind::RxUnderrun { duration_ms: data.whole("duration_ms") },
        "rx_overflow" => EventKind::RxOverflow { packets: data.whole("packets") },
        "engine.late_frames" => EventKind::LateFrames { count: data.whole("count") },
        _ => return None,
    })
}

fn outcome_of_transfer(data: &Members<'_>) -> EventKind {
    EventKind::Transferred { to: data.text("to"), outcome: data.code("outcome"), code: data.whole("code") }
}

/// Reads an event that the other side reported by a message.
fn channel(name: &str, data: &Members<'_>) -> Option<EventKind> {
    ChannelEvent::from_wire(name, data.0).map(|told| EventKind::Channel(Box::new(told)))
}

/// Reads an event of another name as a note of that code, when it has nothing but a message, or not even that.
fn note(name: &str, data: &Members<'_>) -> Option<EventKind> {
    let is_empty = data.0.as_object().is_some_and(serde_json::Map::is_empty);
    let why = data.some_text("message").or_else(|| is_empty.then(String::new))?;
    Some(EventKind::Note { code: Cow::Owned(name.to_owned()), why })
}

fn pause(pause: &Value) -> Option<[Sample; 2]> {
    Some([pause["from_sample"].as_i64()?, pause["to_sample"].as_i64()?])
}

fn word(word: &Value) -> Option<Word> {
    Some(Word {
        text: word["word"].as_str()?.to_owned(),
        from: word["start_offset_ms"].as_i64()?.checked_mul(PER_MS)?,
        to: word["end_offset_ms"].as_i64()?.checked_mul(PER_MS)?,
        confidence: word["confidence"].as_f64().map(|confidence| confidence as f32),
    })
}

/// The data of an event, whatever it is.
struct Members<'d>(&'d Value);

impl<'d> Members<'d> {
    fn str(&self, key: &str) -> &'d str {
        self.0[key].as_str().unwrap_or_default()
    }

    fn text(&self, key: &str) -> String {
        self.str(key).to_owned()
    }

    fn some_text(&self, key: &str) -> Option<String> {
        self.0[key].as_str().map(str::to_owned)
    }

    fn code(&self, key: &str) -> Code {
        Cow::Owned(self.text(key))
    }

    fn number<T: TryFrom<i64>>(&self, key: &str) -> Option<T> {
        self.0[key].as_i64().and_then(|number| T::try_from(number).ok())
    }

    fn whole<T: TryFrom<i64> + Default>(&self, key: &str) -> T {
        self.number(key).unwrap_or_default()
    }

    fn real(&self, key: &str) -> Option<f64> {
        self.0[key].as_f64()
    }

    fn is_true(&self, key: &str) -> bool {
        self.0[key] == true
    }

    fn list(&self, key: &str) -> impl Iterator<Item = &'d Value> {
        self.0[key].as_array().into_iter().flatten()
    }

    fn utterance_id(&self) -> u32 {
        self.number("utterance_id").unwrap_or(NO_UTTERANCE)
    }

    /// Reads the kind of an utterance; an unknown one is an answer.
    fn kind(&self) -> Kind {
        Kind::deserialize(&self.0["kind"]).unwrap_or(Kind::Turn)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    fn line(name: &str, side: &str, data: Value) -> Value {
        json!({ "seq": 7, "sample": 24_001, "offset_ms": 1500.063, "event": name, "side": side, "data": data })
    }

    /// Returns the entry of a line, which is written as it was read.
    fn line_as_read(name: &str, side: &str, data: &Value) -> TimelineEntry {
        let line = line(name, side, data.clone());
        let entry: TimelineEntry = serde_json::from_value(line.clone()).expect("every line is read");
        assert_eq!(serde_json::to_value(&entry).expect("it is written"), line);
        let event: Event = serde_json::from_value(line).expect("every line is read");
        assert_eq!(event, entry.event);
        entry
    }

    fn word(text: &str) -> Word {
        Word { text: text.into(), from: 1600, to: 3200, confidence: Some(0.25) }
    }

    fn call_ends() -> EventKind {
        EventKind::Ended {
            by: "AGENT".into(),
            reason: "agent_hangup".into(),
            sip_code: Some(200),
            q850_cause: None,
            close_code: Some(1000),
        }
    }

    fn turn_ended() -> EventKind {
        EventKind::TurnEnded {
            text: "Hello.".into(),
            from_sample: 100,
            end_sample: 3300,
            confidence: Some(0.9),
            words: [word("Hello.")].into(),
            concealed_ms: 40,
            missing: Some("recognizer_late".into()),
            late: true,
            reported: true,
        }
    }

    fn tool_call() -> EventKind {
        let (parameters, output) = (json!({ "day": "Monday" }), json!(null));
        EventKind::ToolCall(Box::new(ToolCall {
            name: "book".into(),
            parameters,
            output,
            source: Some("posted".into()),
        }))
    }

    /// Returns one event of each form, with its side.
    fn every() -> Vec<(Side, EventKind)> {
        use Side::{Agent, Dh, Engine};
        let (text, codec) = (|| "Hello.".to_owned(), "PCMU".into());
        let (arrival_ms, pre_conversation, address) = (12.5, true, Some("sip:a@b".to_owned()));
        let key = || ('#', Code::from("rtp_event"), 100);
        let (digit, method, duration_ms) = key();
        vec![
            (Engine, EventKind::Dialing { address: "sip:a@b".into() }),
            (Agent, EventKind::Ringing { address: None, code: 180 }),
            (Agent, EventKind::EarlyMedia { address: address.clone(), code: 183 }),
            (Engine, EventKind::Connected { address, code: 200, codec }),
            (Engine, call_ends()),
            (Dh, EventKind::SpeechStarted { utterance_id: 1, text: text(), kind: Kind::Opening }),
            (Dh, speech_ended(Box::new([[160, 4960]]))),
            (Dh, speech_ended(Box::new([]))),
            (Agent, EventKind::AgentSpeechStarted { arrival_ms, pre_conversation }),
            (Agent, EventKind::AgentSpeechEnded { arrival_ms, pre_conversation: false }),
            (Agent, turn_ended()),
            (Engine, EventKind::LanguageTaken { language: "de".into(), by: "text".into(), from_sample: -5 }),
            (Agent, EventKind::TranscriptPartial { text: text() }),
            (Dh, EventKind::BargeIn { by: Dh, overlap_ms: 400, stop_ms: None }),
            (Dh, EventKind::LateTurn { late_ms: 20, utterance_id: 3 }),
            (Dh, EventKind::ScriptedResponse { index: 0, match_type: "exact".into(), response_type: "dtmf".into() }),
            (
                Dh,
                EventKind::InterruptionDecided { kind: "keywords".into(), u: 0.125, at_ms: 900, keyword: Some(text()) },
            ),
            (Dh, EventKind::SilenceTool { seconds: 20 }),
            (Dh, EventKind::Reprompt { n: 1 }),
            (Dh, EventKind::DtmfSent { digit, method, duration_ms }),
            (Agent, EventKind::DtmfReceived { digit, method: key().1, duration_ms }),
            (Agent, EventKind::Held),
            (Agent, EventKind::Unheld),
            (Agent, EventKind::SessionAnswered { code: 200 }),
            (Agent, EventKind::Transfer { to: "sip:c@d".into(), accepted: false }),
            (Engine, EventKind::Transferred { to: "sip:c@d".into(), outcome: "refused".into(), code: 486 }),
            (Dh, EventKind::Probe { kind: ProbeKind::VocalTic }),
            (Agent, EventKind::LineTone { kind: LineToneKind::Busy, frequency_hz: 425, cadence_ms: [500, 480].into() }),
            (
                Agent,
                EventKind::AnsweringMachine {
                    greeting_from_sample: 160,
                    greeting_end_sample: 48_000,
                    beep_ms: 400,
                    frequency_hz: 1000,
                },
            ),
            (Engine, EventKind::Network { received: 50, lost: 1, late: 2, jitter_ms: 0.25 }),
            (Engine, EventKind::Echo(EchoFigures { delay_ms: 120.5, erl_db: 12.0 })),
            (Engine, EventKind::RxUnderrun { duration_ms: 60 }),
            (Engine, EventKind::RxOverflow { packets: 3 }),
            (Engine, EventKind::LateFrames { count: 2 }),
            (Engine, EventKind::Note { code: "late_first_token".into(), why: String::new() }),
            (Engine, EventKind::Note { code: "recognizer_failed".into(), why: "it is gone".into() }),
            (
                Dh,
                EventKind::MessageSent {
                    message_id: Some("m".into()),
                    text: text(),
                    channel: None,
                    kind: Kind::Scripted,
                },
            ),
            (Agent, EventKind::MessageReceived { message_id: None, text: text(), channel: Some("sms".into()) }),
            (Agent, EventKind::TurnWritten { text: text(), from_sample: 0, end_sample: 16, channel: "sms".into() }),
            (Agent, tool_call()),
            (Engine, EventKind::PlaybackStep { index: 2, passed: Some(false) }),
        ]
        .into_iter()
        .chain(channel_events().map(|told| (Agent, EventKind::Channel(Box::new(told)))))
        .collect()
    }

    fn channel_events() -> impl Iterator<Item = ChannelEvent> {
        let text = || "a".to_owned();
        [
            ChannelEvent::SpeechClaimed { utterance_id: text(), effect: "interrupt".into() },
            ChannelEvent::SuspectedEcho { utterance_id: text() },
            ChannelEvent::Reported { text: text() },
            ChannelEvent::Cleared { dropped_ms: 40 },
            ChannelEvent::Error { code: text(), message: text() },
            ChannelEvent::Violation { code: "NOT_JSON".into(), excerpt: text() },
            ChannelEvent::Other { name: "opened_again".into(), data: json!({ "a": 1 }) },
        ]
        .into_iter()
    }

    fn speech_ended(pauses: Box<[[Sample; 2]]>) -> EventKind {
        let text = Spoken::from("Well, yes.".to_owned());
        EventKind::SpeechEnded { utterance_id: 1, text, kind: Kind::Turn, interrupted: true, exact: false, pauses }
    }

    #[test]
    fn every_event_is_read_as_it_was_told() {
        for (side, what) in every() {
            let told = Event { sample: 24_001, side, what };
            let read = line_as_read(told.name(), side.name(), &told.data());
            assert_eq!((read.seq, &read.event, read.reading()), (7, &told, &told.what));
        }
    }

    #[test]
    fn every_name_has_an_event() {
        let told = every().into_iter().filter(|(_, what)| !matches!(what, EventKind::Note { .. }));
        let names: BTreeSet<String> =
            told.map(|(side, what)| Event { sample: 0, side, what }.name().to_owned()).collect();
        assert_eq!(names, Event::NAMES.map(str::to_owned).into());
    }

    #[test]
    fn keys_that_were_made_unreadable_keep_their_time() {
        let data = json!({ "digits": "[NUMBER]", "method": "rtp_event", "duration_ms": 100 });
        let entry = line_as_read("dtmf_sent", "dh", &data);
        let EventKind::DtmfSent { digit: HIDDEN_DIGIT, duration_ms: 100, .. } = entry.reading() else {
            panic!("{entry:?}");
        };
        assert_eq!(entry.data(), data);
    }

    #[test]
    fn events_without_the_known_form_are_kept_as_they_stand() {
        for (name, side, data) in [
            ("what.is_new", "engine", json!({ "a": [1, { "b": null }], "c": 1.50 })),
            ("what.is_new", "engine", json!([1])),
            ("what.is_new", "engine", json!(null)),
            ("turn.ended", "room", json!({ "text": "Hello." })),
            ("speech.started", "engine", json!({ "text": "Hello." })),
            ("transfer", "agent", json!({ "to": "sip:c@d" })),
            ("probe", "dh", json!({ "kind": "sneeze" })),
        ] {
            let entry = line_as_read(name, side, &data);
            let EventKind::Unknown(unknown) = entry.reading() else { panic!("{name} {data}: {entry:?}") };
            assert_eq!((unknown.event.as_str(), &unknown.data), (name, &data));
            assert_eq!((entry.name(), entry.side_name()), (name, side));
        }
    }

    #[test]
    fn members_that_lack_or_are_new_hide_nothing_of_the_rest() {
        let check = |name: &str, side: &str, data: Value, expect: EventKind| {
            let entry = line_as_read(name, side, &data);
            assert!(matches!(entry.what, EventKind::Unknown(_)), "{name} {data} is kept as it stands");
            assert_eq!(entry.reading(), &expect);
        };
        let text = || "Hello.".to_owned();
        let turn = |from_sample, end_sample| EventKind::TurnEnded {
            text: text(),
            from_sample,
            end_sample,
            confidence: None,
            words: [].into(),
            concealed_ms: 0,
            missing: None,
            late: false,
            reported: false,
        };
        check("turn.ended", "agent", json!({ "text": "Hello." }), turn(24_001, 24_001));
        check("turn.ended", "agent", json!({ "text": "Hello.", "end_sample": 9 }), turn(9, 9));
        let newer = json!({
            "text": "Hello.", "from_sample": 1, "end_sample": 9, "confidence": null, "concealed_ms": 0, "words": [],
            "mood": "good",
        });
        check("turn.ended", "agent", newer, turn(1, 9));
        let data = json!({ "text": "Hello.", "channel": "sms" });
        let channel = "sms".to_owned();
        let written = EventKind::TurnWritten { text: text(), from_sample: 24_001, end_sample: 24_001, channel };
        check("turn.ended", "agent", data, written);
        let begun = |utterance_id, kind| EventKind::SpeechStarted { utterance_id, text: text(), kind };
        check("speech.started", "dh", json!({ "text": "Hello." }), begun(NO_UTTERANCE, Kind::Turn));
        let of_new_kind = json!({ "utterance_id": 4, "text": "Hello.", "kind": "song" });
        check("speech.started", "dh", of_new_kind, begun(4, Kind::Turn));
        let probe = json!({ "utterance_id": -4, "text": "Hello.", "kind": "probe" });
        check("speech.started", "dh", probe, begun(NO_UTTERANCE, Kind::Probe));
        check("hold", "agent", json!({}), EventKind::Held);
        check("hold", "agent", json!(null), EventKind::Held);
        let note = EventKind::Note { code: "recognizer_failed".into(), why: "it is gone".into() };
        check("recognizer_failed", "engine", json!({ "message": "it is gone", "again_in_ms": 5 }), note);
        let data = json!({ "by": "AGENT", "reason": "agent_hangup", "sip_code": 200, "close_code": 1000 });
        check("call.ended", "engine", data, call_ends());
        // A word that is none takes no other with it.
        let words = json!([{ "word": "Hello.", "start_offset_ms": 100, "end_offset_ms": 200, "confidence": 0.25 }, { "word": "x" }]);
        let heard = line_as_read("turn.ended", "agent", &json!({ "words": words }));
        assert!(matches!(heard.reading(), EventKind::TurnEnded { words, .. } if **words == [word("Hello.")]));
    }

    #[test]
    fn what_is_no_event_is_an_error() {
        let whole = line("hold", "agent", json!({ "code": 200 }));
        for member in ["sample", "event", "side", "seq"] {
            let mut without = whole.clone();
            without.as_object_mut().expect("an object").remove(member);
            assert!(serde_json::from_value::<TimelineEntry>(without.clone()).is_err(), "{member}");
            assert_eq!(serde_json::from_value::<Event>(without).is_ok(), member == "seq", "{member}");
        }
    }
}
