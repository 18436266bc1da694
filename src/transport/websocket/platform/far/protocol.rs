//! The server's side of a platform's protocol in one call, by the rules of a [`FarSide`](super::side::FarSide).

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringer_media::time::Time;
use serde_json::{Value, json};

use super::side::FarCall;
use crate::digits::digits_of;
use crate::websocket::core::{Core, Protocol};
use crate::websocket::platform::fill::fill;
use crate::websocket::platform::when::{find, find_all, text_at};
use crate::websocket::protocol::{Message, SessionControl, SessionEnd, SessionOutput};
use crate::websocket::voice::{Encoding, Point, Wire};

/// Distance of the platform's own pings.
const PING_EVERY: Duration = Duration::from_secs(2);

/// Utterance with which the tool of the agent is called: the first answer, behind the greeting.
const TOOL_AT: u64 = 2;

/// Name of the agent's tool.
const TOOL: &str = "find_appointments";

/// Samples of 16 kHz in a millisecond.
const PER_MS: u64 = 16;

/// Protocol of one call.
#[derive(Debug)]
pub(in crate::websocket) struct FarProtocol {
    call: Arc<FarCall>,
    is_ready: bool,
    /// Number of messages that were sent, for their ids.
    messages: u64,
    /// Number of utterances that have begun.
    utterances: u64,
    speaks: bool,
    /// Words of the utterance.
    words: String,
    /// Words of it that were said, once it was cut.
    said: String,
    /// Words of an utterance that has not begun.
    next_words: Option<String>,
    /// Number of audio messages.
    audio: u64,
    pings: u64,
    pinged_at: Time,
    has_called_tool: bool,
}

impl FarProtocol {
    /// Returns the protocol of a call whose socket is not open.
    pub(in crate::websocket) fn new(core: &mut Core, call: Arc<FarCall>) -> FarProtocol {
        core.waits_for_answer = true;
        FarProtocol {
            call,
            is_ready: false,
            messages: 0,
            utterances: 0,
            speaks: false,
            words: String::new(),
            said: String::new(),
            next_words: None,
            audio: 0,
            pings: 0,
            pinged_at: Time(0),
            has_called_tool: false,
        }
    }

    /// Returns the value of a place of this call.
    fn value(&self, core: &Core, name: &str) -> Option<Value> {
        let wire_name = |wire: Wire| match wire.encoding {
            Encoding::Pcmu => format!("ulaw_{}", wire.rate_hz),
            Encoding::Pcma => format!("alaw_{}", wire.rate_hz),
            Encoding::L16Le | Encoding::L16Be => format!("pcm_{}", wire.rate_hz),
        };
        let turn = self.utterances;
        let arguments = json!({ "day": "Tuesday" });
        Some(match name {
            "agent.id" => self.call.agent.clone().into(),
            "session.id" => self.call.session_id.clone().into(),
            "message.id" => format!("event_{}", self.messages).into(),
            "response.id" => format!("resp_{turn}").into(),
            "item.id" => format!("item_{turn}").into(),
            "turn.number" => turn.into(),
            "audio.number" => self.audio.into(),
            "audio.rate" => core.mouth.wire().rate_hz.into(),
            "audio.in" => wire_name(core.ears.wire()).into(),
            "audio.out" => wire_name(core.mouth.wire()).into(),
            "heard.ms" => (core.ears.accepted_samples() / PER_MS).into(),
            "ping.number" => self.pings.into(),
            "text" => self.words.clone().into(),
            "text.said" => self.said.clone().into(),
            "tool.id" => format!("call_{turn}").into(),
            "tool.name" => TOOL.into(),
            "tool.arguments" => arguments,
            "tool.arguments_text" => arguments.to_string().into(),
            _ => return None,
        })
    }

    /// Sends messages with their places filled; `more` knows further places.
    fn send_with(&mut self, core: &mut Core, messages: &[Value], more: &dyn Fn(&str) -> Option<Value>) {
        for message in messages {
            self.messages += 1;
            let filled = fill(message, &|name| more(name).or_else(|| self.value(core, name))).to_string();
            core.send(match self.call.side.in_binary {
                true => Message::Binary(filled.into_bytes()),
                false => Message::Text(filled),
            });
        }
    }

    fn send(&mut self, core: &mut Core, messages: &[Value]) {
        self.send_with(core, messages, &|_| None);
    }

    /// Takes the session; `message` is the one in which the client has asked for its form of audio.
    fn accept(&mut self, core: &mut Core, now: Time, message: &Value) {
        let call = self.call.clone();
        let side = &call.side;
        let wires = (core.ears.wire(), core.mouth.wire());
        let heard = side.wire_at(message, &side.format_in, wires.0);
        let own = side.wire_at(message, &side.format_out, wires.1);
        core.ears.set_wire(heard);
        if own != wires.1 {
            core.mouth.set_wire(own, 0);
        }
        let at = |name: &str| {
            let pointer = name.strip_prefix("message").filter(|pointer| pointer.starts_with('/'))?;
            find(message, pointer).cloned()
        };
        self.send_with(core, &side.accepted, &at);
        self.is_ready = true;
        self.pinged_at = now;
        core.sends = true;
        core.establish();
    }

    fn on_message(&mut self, core: &mut Core, now: Time, message: &Value, text: &str) {
        let call = self.call.clone();
        let side = &call.side;
        if !self.is_ready {
            return match side.accept.holds(message) {
                true => self.accept(core, now, message),
                false => core.violation("UNKNOWN_TYPE", text),
            };
        }
        if let Some(audio) = side.audio_in.as_ref().filter(|audio| audio.when.holds(message)) {
            return self.on_audio(core, now, message, &audio.first);
        }
        if let Some(answer) = side.tool_answer.as_ref().filter(|answer| answer.when.holds(message)) {
            let (id, result) = (text_at(message, &answer.first), text_at(message, &answer.second));
            return core.event("tool_answered", json!({ "id": id, "result": result }));
        }
        if let Some(digit) = side.digit.as_ref().filter(|digit| digit.when.holds(message)) {
            return match digits_of(&text_at(message, &digit.first)) {
                Some(digits) => digits.into_iter().for_each(|digit| core.push(SessionOutput::Digit(digit))),
                None => core.violation("MISSING_FIELD", text),
            };
        }
        if side.end.holds(message) {
            self.send(core, &side.ended);
            core.end(SessionEnd::Peer);
            return core.close(1000, "call ended");
        }
        // A repeated first message changes settings.
        let is_known = side.pong.holds(message) || side.known.holds(message) || side.accept.holds(message);
        if !is_known {
            core.violation("UNKNOWN_TYPE", text);
        }
    }

    fn on_audio(&mut self, core: &mut Core, now: Time, message: &Value, pointer: &str) {
        for encoded in find_all(message, pointer) {
            let encoded = encoded.as_str().unwrap_or_default();
            match STANDARD.decode(encoded) {
                Ok(bytes) if !bytes.is_empty() => core.play(now, &bytes),
                _ => core.violation("BAD_BASE64", encoded),
            }
        }
    }

    fn begin_utterance(&mut self, core: &mut Core) {
        let call = self.call.clone();
        self.utterances += 1;
        if self.utterances == TOOL_AT && !std::mem::replace(&mut self.has_called_tool, true) {
            self.send(core, &call.side.tool);
        }
        self.speaks = true;
        (self.words, self.said) = (String::new(), String::new());
        self.send(core, &call.side.speech);
        if let Some(words) = self.next_words.take() {
            self.tell_words(core, words);
        }
    }

    fn tell_words(&mut self, core: &mut Core, words: String) {
        let call = self.call.clone();
        self.words = words;
        self.send(core, &call.side.words);
    }
}

/// True for audio without any sound: every sample is the same.
fn is_flat(chunk: &[u8], wire: Wire) -> bool {
    let size = wire.encoding.bytes();
    chunk.chunks_exact(size).all(|sample| sample == &chunk[..size])
}

impl Protocol for FarProtocol {
    fn on_open(&mut self, core: &mut Core, now: Time) {
        let call = self.call.clone();
        self.send(core, &call.side.open);
        if !call.side.accept.is_set() {
            self.accept(core, now, &call.opening);
        }
    }

    fn voice(&mut self, core: &mut Core, _now: Time, chunk: Vec<u8>) {
        // Platforms send nothing while their agent is silent.
        if !self.speaks && is_flat(&chunk, core.mouth.wire()) {
            return;
        }
        self.audio += 1;
        let call = self.call.clone();
        match &call.side.audio_out {
            None => core.send(Message::Binary(chunk)),
            Some(template) => {
                let audio = |name: &str| (name == "audio").then(|| STANDARD.encode(&chunk).into());
                self.send_with(core, std::slice::from_ref(template), &audio);
            }
        }
    }

    fn control(&mut self, core: &mut Core, _now: Time, control: SessionControl) {
        let call = self.call.clone();
        match control {
            SessionControl::UtteranceStarted => self.begin_utterance(core),
            SessionControl::UtteranceCompleted => {
                if std::mem::replace(&mut self.speaks, false) {
                    self.send(core, &call.side.done);
                }
            }
            SessionControl::Clear => {
                if std::mem::replace(&mut self.speaks, false) {
                    self.send(core, &call.side.cut);
                }
            }
            SessionControl::Words(words) if self.speaks => self.tell_words(core, words),
            SessionControl::Words(words) => self.next_words = Some(words),
            SessionControl::Cut(said) => {
                self.said = said;
                self.send(core, &call.side.corrected);
            }
            SessionControl::Hangup | SessionControl::Shutdown | SessionControl::Fault => core.close_for(&control),
            SessionControl::Digit { .. } | SessionControl::Mark(_) => {}
        }
    }

    fn receive(&mut self, core: &mut Core, now: Time, message: Message) {
        let text = match message {
            Message::Text(text) => text,
            Message::Binary(bytes) if self.call.side.audio_in.is_none() && self.is_ready => {
                return core.play(now, &bytes);
            }
            Message::Binary(bytes) => return core.violation("BINARY_NOT_ALLOWED", &format!("{} bytes", bytes.len())),
        };
        match serde_json::from_str::<Value>(&text) {
            Ok(read) if read.is_object() => self.on_message(core, now, &read, &text),
            Ok(_) => core.violation("NOT_OBJECT", &text),
            Err(_) => core.violation("NOT_JSON", &text),
        }
    }

    fn on_mark_played(&mut self, _core: &mut Core, _now: Time, _point: Point) {}

    fn tick(&mut self, core: &mut Core, now: Time) {
        let call = self.call.clone();
        if self.is_ready && !core.has_ended() && !call.side.ping.is_empty() && now.since(self.pinged_at) >= PING_EVERY {
            self.pinged_at = now;
            self.pings += 1;
            self.send(core, &call.side.ping);
        }
    }
}
