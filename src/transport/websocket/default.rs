//! The default protocol: binary messages of 16 kHz little-endian samples, one JSON object in each text message.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use ringer_media::time::Time;
use serde_json::{Value, json};

use super::core::{Core, Protocol};
use super::protobuf::{PROTOBUF_FRAMES, is_audio_frame};
use super::protocol::{MAX_OPEN_MARKS, Message, SessionControl, SessionOutput};
use super::voice::Point;

/// Types of messages, in the order in which errors list them.
const TYPES: [&str; 4] = ["speech.started", "speech.completed", "mark", "session.error"];

/// Longest name or id in characters.
const MAX_NAME_CHARS: usize = 255;

/// Ids of utterances of the other side that are remembered; the oldest are forgotten.
const MAX_UTTERANCES: usize = 10_000;

/// Time after the begin of an own utterance in which a message that the other side speaks may come of its echo.
const ECHO: Duration = Duration::from_millis(300);

/// The default protocol, for both roles.
#[derive(Debug, Default)]
pub(super) struct DefaultProtocol {
    utterances: u64,
    /// Id of the utterance that goes on.
    utterance: Option<String>,
    started_at: Option<Time>,
    /// Ids that the other side has started, and their order.
    known: HashSet<String>,
    order: VecDeque<String>,
    /// Marks that this side asked for.
    asked: VecDeque<String>,
}

impl DefaultProtocol {
    fn message(&self, core: &mut Core, now: Time, kind: &str, data: Value) {
        let id = core.new_uuid();
        let message = json!({ "type": kind, "id": id, "ts_ms": core.epoch_ms(now), "data": data });
        core.send_text(message.to_string());
    }

    fn complete(&mut self, core: &mut Core, now: Time) {
        if let Some(id) = self.utterance.take() {
            self.message(core, now, TYPES[1], json!({ "utterance_id": id }));
        }
    }

    /// Answers a message that is not taken, unless it is itself an error.
    fn refuse(&self, core: &mut Core, now: Time, code: &'static str, why: &str, text: &str, is_error: bool) {
        if !is_error {
            self.message(core, now, TYPES[3], json!({ "code": code, "message": why }));
        }
        core.violation(code, text);
    }

    fn text(&mut self, core: &mut Core, now: Time, text: &str) {
        const INVALID: &str = "INVALID_MESSAGE";
        if text.len() > core.facts.max_text_bytes {
            let why = format!("Message is longer than {} bytes", core.facts.max_text_bytes);
            return self.refuse(core, now, INVALID, &why, text, false);
        }
        let Ok(value) = serde_json::from_str::<Value>(text) else {
            return self.refuse(core, now, INVALID, "Message is not valid JSON", text, false);
        };
        let Value::Object(object) = value else {
            return self.refuse(core, now, INVALID, "Message must be a JSON object", text, false);
        };
        let named = object.get("type").map_or_else(String::new, |kind| match kind {
            Value::String(kind) => kind.clone(),
            other => other.to_string(),
        });
        let Some(kind) = TYPES.into_iter().find(|kind| object.get("type").and_then(Value::as_str) == Some(*kind))
        else {
            let named: String = named.chars().take(MAX_NAME_CHARS).collect();
            let why = format!("Unexpected type '{named}'; expected one of: {}", TYPES.join(", "));
            return self.refuse(core, now, INVALID, &why, text, false);
        };
        let data = object.get("data").and_then(Value::as_object);
        let field = |name: &str| data.and_then(|data| data.get(name)).and_then(Value::as_str);
        let named = |name: &str| field(name).filter(|text| (1..=MAX_NAME_CHARS).contains(&text.chars().count()));
        let missing = |name: &str| format!("{kind} requires data.{name}");
        match kind {
            "speech.started" | "speech.completed" => match named("utterance_id") {
                Some(id) if kind == TYPES[0] => self.on_speech_started(core, now, id),
                Some(id) => self.on_speech_completed(core, id),
                None => self.refuse(core, now, "MISSING_FIELD", &missing("utterance_id"), text, false),
            },
            "mark" => match named("name") {
                Some(name) => self.mark(core, now, name, text),
                None => self.refuse(core, now, "MISSING_FIELD", &missing("name"), text, false),
            },
            _ => match (field("code"), field("message")) {
                (Some(code), Some(message)) => {
                    core.push(SessionOutput::PeerError { code: code.to_owned(), message: message.to_owned() });
                }
                (None, _) => self.refuse(core, now, "MISSING_FIELD", &missing("code"), text, true),
                (_, None) => self.refuse(core, now, "MISSING_FIELD", &missing("message"), text, true),
            },
        }
    }

    fn on_speech_started(&mut self, core: &mut Core, now: Time, id: &str) {
        if !self.known.insert(id.to_owned()) {
            return core.event("speech_started_again", json!({ "utterance_id": id }));
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > MAX_UTTERANCES
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        let follows_own = self.started_at.is_some_and(|at| now.since(at) <= ECHO);
        core.push(SessionOutput::SpeechStarted { utterance_id: id.to_owned(), follows_own });
    }

    fn on_speech_completed(&mut self, core: &mut Core, id: &str) {
        if self.known.contains(id) {
            core.push(SessionOutput::SpeechCompleted { utterance_id: id.to_owned() });
        } else {
            core.event("speech_completed_unknown", json!({ "utterance_id": id }));
        }
    }

    fn mark(&mut self, core: &mut Core, now: Time, name: &str, text: &str) {
        if let Some(at) = self.asked.iter().position(|asked| asked == name) {
            self.asked.remove(at);
            return core.push(SessionOutput::MarkReached(name.to_owned()));
        }
        if !core.ears.bind(Point::Mark(name.to_owned())) {
            self.refuse(core, now, "INVALID_MESSAGE", "Too many open marks", text, false);
        }
    }
}

impl Protocol for DefaultProtocol {
    fn on_open(&mut self, core: &mut Core, _now: Time) {
        core.sends = true;
    }

    fn voice(&mut self, core: &mut Core, _now: Time, chunk: Vec<u8>) {
        core.send(Message::Binary(chunk));
    }

    fn control(&mut self, core: &mut Core, now: Time, control: SessionControl) {
        match control {
            SessionControl::UtteranceStarted => {
                self.complete(core, now);
                self.utterances += 1;
                let side = if core.is_caller() { "dh" } else { "agent" };
                let id = format!("{side}-{}-{}", core.facts.result_id, self.utterances);
                self.message(core, now, TYPES[0], json!({ "utterance_id": id }));
                (self.utterance, self.started_at) = (Some(id), Some(now));
            }
            SessionControl::UtteranceCompleted => self.complete(core, now),
            SessionControl::Mark(name) => {
                self.message(core, now, TYPES[2], json!({ "name": name }));
                self.asked.push_back(name);
                if self.asked.len() > MAX_OPEN_MARKS {
                    self.asked.pop_front();
                }
            }
            // Digits are tones, and nothing can take audio back.
            SessionControl::Digit { .. }
            | SessionControl::Clear
            | SessionControl::Words(_)
            | SessionControl::Cut(_) => {}
            SessionControl::Fault => {
                self.message(core, now, TYPES[3], json!({ "code": "INTERNAL_ERROR", "message": "Internal error" }));
                core.close_for(&control);
            }
            SessionControl::Hangup | SessionControl::Shutdown => core.close_for(&control),
        }
    }

    fn receive(&mut self, core: &mut Core, now: Time, message: Message) {
        core.establish();
        match message {
            Message::Text(text) => self.text(core, now, &text),
            Message::Binary(bytes) => {
                if is_audio_frame(&bytes) {
                    core.deviation(PROTOBUF_FRAMES, "a frame of protobuf is played as samples");
                }
                let why = match bytes.len() {
                    0 => "Audio frame is empty".to_owned(),
                    odd if odd % 2 == 1 => format!("Audio frame has an odd length: {odd}"),
                    _ => {
                        core.read_header(&bytes);
                        return core.play(now, &bytes);
                    }
                };
                self.refuse(core, now, "INVALID_AUDIO_FRAME", &why, &why, false);
            }
        }
    }

    fn on_mark_played(&mut self, core: &mut Core, now: Time, point: Point) {
        if let Point::Mark(name) = point {
            self.message(core, now, TYPES[2], json!({ "name": name }));
        }
    }
}
