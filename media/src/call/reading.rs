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

    /// Returns what is known of the event. An event without the known form tells as much as its name and its data do:
    /// members that it lacks are empty, or 0. [`EventKind::Unknown`] when that is nothing.
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

/// True when both are written alike: the same members in the same order. A number that is read may be off by the last
/// bit.
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
        "call.ready" => EventKind::Ready,
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
        "message.sent" | "message.received" => return Some(message(name == "message.sent", data)),
        _ => return figures(name, data).or_else(|| channel(name, data)).or_else(|| note(name, data)),
    })
}

/// Reads a written message of this side, or one of the other.
fn message(is_own: bool, data: &Members<'_>) -> EventKind {
    let (message_id, channel, text) = (data.some_text("message_id"), data.some_text("channel"), data.text("text"));
    if is_own {
        EventKind::MessageSent { message_id, text, channel, kind: data.kind() }
    } else {
        EventKind::MessageReceived { message_id, text, channel }
    }
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

/// Digit whose value is not told.
pub(super) const HIDDEN_DIGIT: char = '?';

fn digit(is_sent: bool, data: &Members<'_>) -> Option<EventKind> {
    // A digit that was made unreadable (`[NUMBER]`) still took its time.
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
    ChannelEvent::from_wire(name, data.0).map(|event| EventKind::Channel(Box::new(event)))
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
mod tests;
