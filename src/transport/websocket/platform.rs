//! Protocols of voice-agent platforms, of which this side is the client: audio and JSON by the rules of an adapter's
//! settings. There is one protocol for all of them.

pub mod adapter;
mod address;
pub mod after;
pub mod auth;
pub mod chat;
mod chat_keys;
pub mod definition;
mod definition_rows;
pub mod far;
mod fill;
mod presets;
mod rules;
pub mod secrets;
#[cfg(test)]
mod tests;
pub mod transport;
mod ways;
mod when;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringer_media::time::Time;
use serde_json::{Value, json};

use self::fill::{fill, merge, plain};
pub use self::rules::Rules;
use self::rules::{AudioIn, TextRule, ToolRule};
use self::when::{find, find_all, text_at};
use super::core::{Core, Protocol};
use super::protocol::{Message, SessionControl, SessionEnd, SessionOutput};
use super::voice::{Encoding, Point, Wire};
use crate::digits::digits_of;

/// Time within which a platform says that the session is ready.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// Time within which an agent begins to speak, once it is its turn.
pub const START_WITHIN: Duration = Duration::from_secs(30);

/// Items of audio that are kept in mind.
const MAX_ITEMS: usize = 64;

/// Messages that wait for another one.
const MAX_WAITING: usize = 64;

/// Longest text that is put together of pieces, in bytes.
const MAX_TEXT: usize = 65_536;

/// Bytes of the header of a file of PCM, as servers send it.
const WAV_HEADER: usize = 44;

/// Samples of 16 kHz in a millisecond.
const PER_MS: u64 = 16;

/// Audio that belongs together, by positions in the received audio.
#[derive(Debug)]
struct Item {
    id: Value,
    part: Value,
    from: u64,
    to: u64,
}

/// Stage of a session.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// The socket is open.
    Opening,
    /// The platform is ready, and audio may flow.
    Ready,
}

/// The protocol of one call.
#[derive(Debug)]
pub(super) struct PlatformProtocol {
    rules: Arc<Rules>,
    stage: Stage,
    has_sent_first: bool,
    /// Opening of the socket.
    opened_at: Time,
    /// Begin of the time within which the agent has to speak; `None` while this side speaks.
    waits_since: Option<Time>,
    items: VecDeque<Item>,
    /// Item of which no more audio is played.
    cut_item: Option<Value>,
    /// Number up to which no audio is played.
    cut_to: Option<i64>,
    /// Texts that are not whole, by the rule of each.
    texts: Vec<String>,
    /// Messages that are sent after another one, each with the number of its rule.
    waiting: Vec<(usize, Value)>,
    has_call_id: bool,
    /// Handle by which the session goes on at another connection.
    handle: Option<String>,
    /// True while a session that was up is opened anew.
    resumes: bool,
}

impl PlatformProtocol {
    /// Returns the protocol of a session that has not begun.
    pub(super) fn new(core: &mut Core, rules: Arc<Rules>) -> PlatformProtocol {
        core.waits_for_answer = rules.ready.is_set();
        PlatformProtocol {
            texts: vec![String::new(); rules.texts.len()],
            rules,
            stage: Stage::Opening,
            has_sent_first: false,
            opened_at: Time(0),
            waits_since: None,
            items: VecDeque::new(),
            cut_item: None,
            cut_to: None,
            waiting: Vec::new(),
            has_call_id: false,
            handle: None,
            resumes: false,
        }
    }

    fn send_all(&self, core: &mut Core, messages: &[Value]) {
        messages.iter().for_each(|message| core.send_text(message.to_string()));
    }

    fn send_first(&mut self, core: &mut Core) {
        if std::mem::replace(&mut self.has_sent_first, true) {
            return;
        }
        let Some((rule, handle)) = self.rules.resume.as_ref().zip(self.handle.as_ref()) else {
            return self.send_all(core, &self.rules.first);
        };
        let value = |name: &str| (name == "resume.handle").then(|| handle.clone().into());
        let mut messages = self.rules.first.clone();
        messages.iter_mut().take(1).for_each(|first| merge(first, &fill(&rule.first, &value)));
        self.send_all(core, &messages);
    }

    /// Takes audio of both sides from now on.
    fn begin(&mut self, core: &mut Core, now: Time) {
        self.stage = Stage::Ready;
        core.sends = true;
        if std::mem::take(&mut self.resumes) {
            return core.push(SessionOutput::Resumed);
        }
        self.waits_since = Some(now);
        self.send_all(core, &self.rules.greeting);
    }

    fn on_ready(&mut self, core: &mut Core, now: Time, message: &Value) {
        let mut is_known = true;
        if let Some((back, out)) = &self.rules.agreed {
            let format = |pointer: &str| format_of(&text_at(message, pointer));
            if let Some(wire) = format(back) {
                core.ears.set_wire(wire);
            }
            if let Some(wire) = format(out) {
                core.mouth.set_wire(wire, 0);
            }
            is_known = format(back).is_some() && format(out).is_some();
        }
        core.establish();
        if !is_known {
            // Told of a call that is up: nothing of one that is not is kept.
            core.deviation("MISSING_FIELD", "no format of audio that is known");
        }
        self.begin(core, now);
    }

    fn on_message(&mut self, core: &mut Core, now: Time, message: &Value) {
        let rules = self.rules.clone();
        if rules.first_after.holds(message) {
            self.send_first(core);
        }
        self.note_call_id(core, message);
        for rule in rules.errors.iter().filter(|rule| rule.when.holds(message)) {
            let said = |pointer: &str| rules.without_secrets(text_at(message, pointer));
            let told = (said(&rule.code), said(&rule.message));
            self.on_error(core, told, rule.fatal.holds(message), rules.limit.holds(message));
        }
        if core.is_over() {
            return;
        }
        if self.stage == Stage::Opening && rules.ready.holds(message) {
            self.on_ready(core, now, message);
        }
        if rules.ping.holds(message) {
            let value = |name: &str| name.strip_prefix("message").map(|pointer| value_at(message, pointer));
            rules.pong.iter().for_each(|pong| core.send_text(fill(pong, &value).to_string()));
        }
        if let Some(audio) = rules.audio_in.as_ref().filter(|audio| audio.when.holds(message)) {
            self.on_audio(core, now, message, audio);
        }
        if rules.clear.when.holds(message) {
            self.on_clear(core, message);
        }
        for (number, rule) in rules.texts.iter().enumerate() {
            self.on_text(core, message, number, rule);
        }
        self.send_waiting(core, message);
        for (number, rule) in rules.tools.iter().enumerate().filter(|(_, rule)| rule.when.holds(message)) {
            self.on_tools(core, message, number, rule);
        }
        if let Some((_, pointer)) = rules.digit_in.as_ref().filter(|(when, _)| when.holds(message)) {
            let digits = digits_of(&text_at(message, pointer)).unwrap_or_default();
            digits.into_iter().for_each(|digit| core.push(SessionOutput::Digit(digit)));
        }
        if let Some(rule) = rules.resume.as_ref().filter(|rule| rule.when.holds(message)) {
            self.handle = Some(text_at(message, &rule.handle)).filter(|handle| !handle.is_empty());
        }
        if rules.limit.holds(message) {
            core.push(SessionOutput::LimitNear);
        }
        if rules.end.holds(message) {
            core.end(SessionEnd::Peer);
            core.close(1000, "call ended");
        }
    }

    fn note_call_id(&mut self, core: &mut Core, message: &Value) {
        let Some((when, pointer)) = &self.rules.call_id else { return };
        if !self.has_call_id && when.holds(message) {
            let id = text_at(message, pointer);
            self.has_call_id = !id.is_empty();
            if self.has_call_id {
                core.push(SessionOutput::CallNamed(id));
            }
        }
    }

    /// Takes an error. One by which a limit of the platform ends the session is none of the agent's.
    fn on_error(&mut self, core: &mut Core, (code, message): (String, String), is_fatal: bool, is_limit: bool) {
        let text = [code.as_str(), message.as_str()].into_iter().filter(|part| !part.is_empty());
        let text = text.collect::<Vec<_>>().join(": ");
        core.push(SessionOutput::PeerError { code, message });
        // A session that is refused never gets ready.
        if is_fatal || (self.stage == Stage::Opening && self.rules.ready.is_set()) {
            let why = if text.is_empty() { "the platform tells of an error".to_owned() } else { text };
            core.end(if is_limit { SessionEnd::Limit(why) } else { SessionEnd::PeerFault(why) });
            core.close(1000, "call ended");
        }
    }

    fn on_audio(&mut self, core: &mut Core, now: Time, message: &Value, audio: &AudioIn) {
        let number = audio.event_id.as_ref().and_then(|pointer| find(message, pointer)).and_then(Value::as_i64);
        let is_cut = self.cut_to.zip(number).is_some_and(|(cut, number)| number <= cut);
        let name = audio.item.as_ref().map(|(item, part)| (value_at(message, item), value_at(message, part)));
        let is_of_cut = name.as_ref().is_some_and(|(item, _)| self.cut_item.as_ref() == Some(item));
        if self.stage == Stage::Opening || is_cut || is_of_cut {
            return;
        }
        for encoded in find_all(message, &audio.pointer) {
            let Some(encoded) = encoded.as_str() else { continue };
            let Ok(bytes) = STANDARD.decode(encoded) else {
                core.violation("BAD_BASE64", &self.rules.without_secrets(encoded.to_owned()));
                continue;
            };
            self.play(core, now, &bytes, name.clone());
        }
    }

    fn play(&mut self, core: &mut Core, now: Time, bytes: &[u8], name: Option<(Value, Value)>) {
        let from = core.ears.accepted_samples();
        let samples = samples_of(core, bytes);
        core.play(now, samples);
        let Some((id, part)) = name else { return };
        let to = core.ears.accepted_samples();
        match self.items.back_mut().filter(|item| item.id == id && item.part == part) {
            Some(item) => item.to = to,
            None => self.items.push_back(Item { id, part, from, to }),
        }
        if self.items.len() > MAX_ITEMS {
            self.items.pop_front();
        }
    }

    /// Drops the audio that was not played, and tells how much of each item was.
    fn on_clear(&mut self, core: &mut Core, message: &Value) {
        let clear = &self.rules.clear;
        let number = clear.event_id.as_ref().and_then(|pointer| find(message, pointer)).and_then(Value::as_i64);
        self.cut_to = self.cut_to.max(number);
        if core.ears.waiting() == 0 {
            return;
        }
        let played = core.ears.played_samples();
        for item in self.items.drain(..).filter(|item| item.to > played) {
            let played_ms = played.saturating_sub(item.from) / PER_MS;
            let value = |name: &str| match name {
                "item.id" => Some(item.id.clone()),
                "item.part" => Some(item.part.clone()),
                "item.played_ms" => Some(played_ms.into()),
                _ => None,
            };
            clear.answer.iter().for_each(|answer| core.send_text(fill(answer, &value).to_string()));
            self.cut_item = Some(item.id);
        }
        core.clear();
    }

    fn on_text(&mut self, core: &mut Core, message: &Value, number: usize, rule: &TextRule) {
        let text = &mut self.texts[number];
        if rule.when.holds(message) {
            let at = |pointer: &Option<String>| {
                pointer.as_ref().map(|pointer| text_at(message, pointer)).filter(|text| !text.is_empty())
            };
            match (at(&rule.pointer), at(&rule.delta)) {
                (Some(whole), _) => *text = whole,
                (None, Some(piece)) if text.len() < MAX_TEXT => text.push_str(&piece),
                _ => {}
            }
        }
        if !rule.end.is_set() || rule.end.holds(message) {
            let whole = std::mem::take(text);
            if !whole.trim().is_empty() {
                core.push(SessionOutput::Reported(self.rules.without_secrets(whole.trim().to_owned())));
            }
        }
    }

    fn on_tools(&mut self, core: &mut Core, message: &Value, number: usize, rule: &ToolRule) {
        for call in find_all(message, &rule.list) {
            let (id, name) = (text_at(call, &rule.id), text_at(call, &rule.name));
            let parameters = match value_at(call, &rule.arguments) {
                Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
                other => other,
            };
            let is_own = !rule.only.is_set() || rule.only.holds(call);
            let is_answered = is_own && !(rule.answer.is_empty() && rule.then.is_empty());
            let result = self.rules.tool_answers.get(&name).map_or_else(|| "{}".to_owned(), plain);
            let read = serde_json::from_str::<Value>(&result);
            let output = match (is_answered, &read) {
                (false, _) => Value::Null,
                (true, Ok(value)) => value.clone(),
                (true, Err(_)) => result.clone().into(),
            };
            let value = |place: &str| match place {
                "tool.id" => Some(id.clone().into()),
                "tool.name" => Some(name.clone().into()),
                "tool.result" => Some(result.clone().into()),
                "tool.result_object" => {
                    Some(if output.is_object() { output.clone() } else { json!({ "result": output }) })
                }
                _ => None,
            };
            if is_answered {
                rule.answer.iter().for_each(|answer| core.send_text(fill(answer, &value).to_string()));
                for then in &rule.then {
                    let then = (number, fill(then, &value));
                    if self.waiting.len() < MAX_WAITING && !self.waiting.contains(&then) {
                        self.waiting.push(then);
                    }
                }
            }
            let secrets = &self.rules.secrets;
            let (parameters, output) = (secrets.hide_in(parameters), secrets.hide_in(output));
            core.push(SessionOutput::ToolCalled { name: secrets.hide(name), parameters, output });
        }
    }

    /// Sends the messages that waited for this one.
    fn send_waiting(&mut self, core: &mut Core, message: &Value) {
        let tools = &self.rules.tools;
        let is_due = |(number, _): &mut (usize, Value)| tools[*number].after.holds(message);
        for (_, due) in self.waiting.extract_if(.., is_due) {
            core.send_text(due.to_string());
        }
    }
}

/// Returns the samples in bytes of audio, without the header of a file that some servers send before them. A file that
/// is compressed has none.
fn samples_of<'b>(core: &mut Core, bytes: &'b [u8]) -> &'b [u8] {
    if core.ears.accepted_samples() == 0 && bytes.starts_with(b"ID3") {
        core.violation("AUDIO_HEADER", "ID3");
        return &[];
    }
    if !bytes.starts_with(b"RIFF") || bytes.get(8..12) != Some(b"WAVE") {
        return bytes;
    }
    core.read_header(bytes);
    core.deviation("AUDIO_HEADER", "RIFF");
    bytes.get(WAV_HEADER..).unwrap_or_default()
}

/// Returns the value at a pointer; null where there is none.
fn value_at(message: &Value, pointer: &str) -> Value {
    if pointer.is_empty() { Value::Null } else { find(message, pointer).cloned().unwrap_or_default() }
}

/// Returns the form of audio that a name such as `pcm_16000` or `ulaw_8000` stands for.
fn format_of(name: &str) -> Option<Wire> {
    let (encoding, rate) = name.split_once('_')?;
    let encoding = match encoding {
        "pcm" => Encoding::L16Le,
        "ulaw" | "mulaw" => Encoding::Pcmu,
        "alaw" => Encoding::Pcma,
        _ => return None,
    };
    let rate_hz = rate.parse().ok().filter(|rate| (8000..=48_000).contains(rate))?;
    Some(Wire { encoding, rate_hz })
}

impl Protocol for PlatformProtocol {
    fn on_open(&mut self, core: &mut Core, now: Time) {
        self.opened_at = now;
        if !self.rules.first_after.is_set() {
            self.send_first(core);
        }
        if !self.rules.ready.is_set() {
            self.begin(core, now);
        }
    }

    fn voice(&mut self, core: &mut Core, _now: Time, chunk: Vec<u8>) {
        match &self.rules.audio_out {
            Some((before, after)) => core.send_text(format!("{before}{}{after}", STANDARD.encode(chunk))),
            None => core.send(Message::Binary(chunk)),
        }
    }

    fn control(&mut self, core: &mut Core, now: Time, control: SessionControl) {
        match control {
            SessionControl::Digit { digit, .. } => {
                let value = |name: &str| (name == "digit").then(|| digit.to_string().into());
                self.rules.digit.iter().for_each(|message| core.send_text(fill(message, &value).to_string()));
            }
            SessionControl::UtteranceStarted => self.waits_since = None,
            SessionControl::UtteranceCompleted => self.waits_since = Some(now),
            SessionControl::Hangup | SessionControl::Shutdown | SessionControl::Fault => {
                self.send_all(core, &self.rules.goodbye);
                core.close_for(&control);
            }
            _ => {}
        }
    }

    fn receive(&mut self, core: &mut Core, now: Time, message: Message) {
        let text = match message {
            Message::Text(text) => text,
            Message::Binary(bytes) if self.rules.audio_in.is_none() => {
                if self.stage == Stage::Ready {
                    core.establish();
                    self.play(core, now, &bytes, None);
                }
                return;
            }
            // Some servers send their JSON so.
            Message::Binary(bytes) => match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(_) => return core.violation("BINARY_NOT_ALLOWED", "bytes that are no text"),
            },
        };
        let read = match serde_json::from_str::<Value>(&text) {
            Ok(read) if read.is_object() => read,
            Ok(_) => return core.violation("NOT_OBJECT", &self.rules.without_secrets(text)),
            Err(_) => return core.violation("NOT_JSON", &self.rules.without_secrets(text)),
        };
        if !core.waits_for_answer {
            core.establish();
        }
        self.on_message(core, now, &read);
    }

    fn begin_again(&mut self, core: &mut Core, now: Time) -> bool {
        if self.handle.is_none() || (self.stage == Stage::Opening && !self.resumes) {
            return false;
        }
        (self.stage, self.resumes, self.has_sent_first) = (Stage::Opening, true, false);
        self.opened_at = now;
        core.sends = false;
        true
    }

    fn on_mark_played(&mut self, _core: &mut Core, _now: Time, _point: Point) {}

    fn tick(&mut self, core: &mut Core, now: Time) {
        if core.has_ended() {
            return;
        }
        if self.stage == Stage::Opening && now.since(self.opened_at) >= READY_WITHIN {
            core.end(SessionEnd::NoAnswer);
            return core.close(1000, "call ended");
        }
        let is_silent = self.waits_since.is_some_and(|since| now.since(since) >= START_WITHIN);
        if self.stage == Stage::Ready && is_silent && !core.ears.has_sound() {
            core.end(SessionEnd::NoStart);
            core.close(1000, "call ended");
        }
    }
}
