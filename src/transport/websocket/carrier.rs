//! Carriers' protocols, by one table: numbering, audio in text or binary messages, marks, clears, digits and the end,
//! in both roles.

mod faults;
mod format;
mod hook;
mod pbx;
mod table;

use std::collections::VecDeque;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringer_media::time::Time;
use serde_json::{Value, json};

use self::faults::Faults;
use self::format::{encoding_name, encoding_of, occurred_at, parameters, rate_of};
use self::hook::Hook;
use self::pbx::Pbx;
use self::table::{Carriage, Table, What};
use super::core::{Core, Protocol};
use super::dialect::{Fault, MarksOnClear};
use super::handshake::Ids;
use super::protocol::{CallerFacts, Kind, MAX_OPEN_MARKS, Message, SessionControl, SessionEnd, SessionOutput};
use super::template::Template;
use super::voice::{Encoding, Point, Wire};
use crate::digits::digits_of;

/// Longest name of a mark, in bytes; a name that is JSON included.
const MAX_NAME: usize = 4096;

/// Bytes of the chunks that a protocol plays without gaps, and the number that they are a multiple of.
const SMOOTH_CHUNK: std::ops::RangeInclusive<usize> = 3200..=100_000;
const SMOOTH_STEP: usize = 320;

/// Milliseconds of the shortest and of the longest chunk where a protocol names both.
const CHUNK_MS: std::ops::RangeInclusive<usize> = 20..=30_000;

/// Longest binary message of a numbered session, in bytes.
const MAX_HOOK_CHUNK: usize = 64_000;

/// Session of one carrier's protocol.
#[derive(Debug)]
pub(super) struct Carrier {
    table: Table,
    ids: Ids,
    /// Number of the last own message, and of the last one of the other side.
    seq: u64,
    peer_seq: u64,
    /// Audio messages that were sent, and the beginning of the next one in milliseconds of the stream.
    chunks: u64,
    chunk_at_ms: u64,
    /// Wall clock at the beginning of the stream.
    stream_epoch_ms: Option<i64>,
    /// True once the opening message was sent or came.
    is_started: bool,
    faults: Faults,
    hook: Option<Hook>,
    pbx: Option<Pbx>,
    /// Agents: name of the stream, and marks that were asked for.
    stream: String,
    asked: VecDeque<String>,
}

/// Returns the session of a kind.
pub(super) fn protocol(core: &mut Core, ids: &Ids) -> Box<dyn Protocol> {
    let kind = core.kind();
    let faults = if core.is_caller() { core.dialect.faults.clone() } else { Vec::new() };
    let faults = Faults::new(&faults, core.facts.seed.stream("websocket faults"));
    if faults.has(Fault::Alaw) && core.mouth.wire().encoding == Encoding::Pcmu {
        core.mouth.encode_as(Encoding::Pcma);
    }
    Box::new(Carrier {
        table: Table::new(kind, core.role),
        ids: ids.clone(),
        seq: 0,
        peer_seq: 0,
        chunks: 0,
        chunk_at_ms: 0,
        stream_epoch_ms: None,
        is_started: false,
        faults,
        hook: (kind == Kind::Audiohook).then(|| Hook::new(core)),
        pbx: (kind == Kind::ChanWebsocket && core.is_caller()).then(|| Pbx::new(core)),
        stream: String::new(),
        asked: VecDeque::new(),
    })
}

impl Carrier {
    /// Sends a message of the table; nothing where the kind has no such message.
    fn write(&mut self, core: &mut Core, now: Time, what: What, fields: &[(&str, Value)]) {
        if let Some(text) = self.text(core, now, what, fields) {
            let text = self.faults.text(text);
            core.send_text(text);
        }
    }

    /// Returns a message of the table.
    fn text(&mut self, core: &Core, now: Time, what: What, fields: &[(&str, Value)]) -> Option<String> {
        let template = self.table.own.of(what)?;
        if template.has("seq") {
            self.seq += 1;
        }
        let message = template.write(&mut |name| {
            let given = fields.iter().find(|(known, _)| *known == name);
            given.map(|(_, value)| value.clone()).or_else(|| self.fact(core, now, name))
        });
        let plain = core.kind() == Kind::ChanWebsocket && core.dialect.plain_control;
        Some(if plain { table::to_plain(&message, self.table.own.key()) } else { message.to_string() })
    }

    /// Returns the value of a field that depends on the session alone.
    fn fact(&self, core: &Core, now: Time, name: &str) -> Option<Value> {
        let (facts, ids) = (&core.facts, &self.ids);
        let wire = core.mouth.wire();
        let stream = if core.is_caller() { &ids.stream } else { &self.stream };
        Some(match name {
            "seq" => json!(self.seq),
            "peer" => json!(self.peer_seq),
            "chunk" => json!(self.chunks),
            "ms" => json!(self.chunk_at_ms),
            "end_ms" => json!(self.chunk_at_ms + core.mouth.chunk_ms()),
            "unix_ms" => json!(self.unix_ms(core, now)),
            "occurred_at" => json!(occurred_at(core.epoch_ms(now))),
            "position" => json!(hook::duration(core.sent_ms())),
            "stream" => json!(stream),
            "call" => json!(ids.call),
            "account" => json!(ids.account),
            "session" => json!(ids.session),
            "organization" => json!(ids.organization),
            "conversation" => json!(ids.conversation),
            "participant" => json!(ids.participant),
            "from" => json!(facts.from),
            "to" => json!(facts.to),
            "client_state" => json!(STANDARD.encode(facts.result_id.to_string())),
            "params" => Value::Object(parameters(core)),
            "pairs" => {
                let pairs = parameters(core);
                let pairs = pairs.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
                json!(pairs.collect::<Vec<_>>().join(","))
            }
            "encoding" => json!(encoding_name(core.kind(), self.wire_of_start(core))),
            "rate" => json!(wire.rate_hz),
            "content_type" if core.kind() == Kind::VonageWebsocket => json!(format!("audio/l16;rate={}", wire.rate_hz)),
            "content_type" => json!(encoding_name(core.kind(), wire)),
            "frame_bytes" => json!(self.wire_of_start(core).bytes(20)),
            "media" => hook::offer(core),
            _ => return None,
        })
    }

    /// Returns the form of audio that is announced, which faults do not change.
    fn wire_of_start(&self, core: &Core) -> Wire {
        if core.is_caller() { core.dialect.wire } else { core.mouth.wire() }
    }

    /// Returns the wall clock of the stream: that of its beginning and the audio since then.
    fn unix_ms(&self, core: &Core, now: Time) -> i64 {
        self.stream_epoch_ms.map_or_else(|| core.epoch_ms(now), |from| from + core.sent_ms() as i64)
    }

    fn start(&mut self, core: &mut Core, now: Time) {
        self.is_started = true;
        self.write(core, now, What::Hello, &[]);
        self.write(core, now, What::Start, &[]);
    }

    /// Counts a message that is dropped, and answers it where the protocol does.
    fn bad(&mut self, core: &mut Core, now: Time, code: &'static str, text: &str) {
        if core.is_caller() {
            self.write(core, now, What::BadMessage, &[("detail", json!(code))]);
        }
        core.violation(code, text);
    }

    /// Reads a text message.
    fn on_text(&mut self, core: &mut Core, now: Time, text: &str) {
        if self.table.other.is_empty() {
            return core.deviation("UNKNOWN_TYPE", text);
        }
        if core.is_caller() && self.pbx.is_some() && Pbx::is_too_long(text) {
            return self.bad(core, now, "TOO_LONG", text);
        }
        let key = self.table.other.key();
        let message = if core.kind() == Kind::ChanWebsocket && core.dialect.plain_control {
            table::from_plain(text, key)
        } else {
            match serde_json::from_str::<Value>(text) {
                Ok(message) => message,
                Err(_) => return self.bad(core, now, "NOT_JSON", text),
            }
        };
        if !message.is_object() {
            return self.bad(core, now, "NOT_OBJECT", text);
        }
        let name = match message.get(key) {
            Some(Value::String(name)) => name.clone(),
            Some(_) => return self.bad(core, now, "UNKNOWN_TYPE", text),
            None => return self.bad(core, now, "MISSING_FIELD", text),
        };
        // Taken out while its templates are read, so that the session can change.
        let other = std::mem::replace(&mut self.table.other, table::Direction::none());
        match other.by_name(&name) {
            Some((what, template)) => self.take(core, now, what, template, &message, text),
            None => core.deviation("UNKNOWN_TYPE", text),
        }
        self.table.other = other;
    }

    /// Takes a message whose meaning is known.
    fn take(&mut self, core: &mut Core, now: Time, what: What, template: &Template, message: &Value, text: &str) {
        if template.lacks(message).is_some() {
            return self.bad(core, now, "MISSING_FIELD", text);
        }
        let known = if core.is_caller() { &self.ids.stream } else { &self.stream };
        let is_checked = core.is_caller() || (self.is_started && what != What::Start);
        if is_checked && template.find(message, "stream").is_some_and(|stream| stream != known) {
            return self.bad(core, now, "WRONG_STREAM_ID", text);
        }
        if self.hook.is_some() && !self.follows(template, message) {
            return self.bad(core, now, "BAD_SEQUENCE", text);
        }
        if core.is_caller() {
            if self.hook.is_none() {
                core.establish();
            }
            self.take_from_agent(core, now, what, template, message, text);
        } else {
            self.take_from_caller(core, now, what, template, message, text);
        }
    }

    fn take_from_agent(
        &mut self,
        core: &mut Core,
        now: Time,
        what: What,
        template: &Template,
        message: &Value,
        text: &str,
    ) {
        let field = |name: &str| template.find(message, name);
        match what {
            What::Media => self.payload(core, now, template, message, text),
            What::Mark => {
                let name = match field("name") {
                    Some(Value::String(name)) if core.kind() != Kind::VonageWebsocket => name.clone(),
                    Some(value) if core.kind() == Kind::VonageWebsocket => value.to_string(),
                    None if self.pbx.is_some() => String::new(),
                    _ => return self.bad(core, now, "MISSING_FIELD", text),
                };
                if name.len() > MAX_NAME || !core.ears.bind(Point::Mark(name)) {
                    self.bad(core, now, "TOO_LONG", text);
                }
            }
            What::Clear => self.clear_asked(core, now),
            What::Digit => self.digit(core, now, field("digit"), text),
            _ if self.pbx.is_some() => {
                let id = field("name").and_then(Value::as_str).unwrap_or_default().to_owned();
                self.command(core, now, what, &id);
            }
            _ => self.hook_message(core, now, what, template, message),
        }
    }

    fn take_from_caller(
        &mut self,
        core: &mut Core,
        now: Time,
        what: What,
        template: &Template,
        message: &Value,
        text: &str,
    ) {
        let field = |name: &str| template.find(message, name);
        match what {
            What::Start => {
                let facts = self.caller_facts(core, template, message);
                self.is_started = true;
                if self.hook.is_some() {
                    return self.hook_request(core, now, what, Some(facts), field("media"));
                }
                self.follow_format(core, template, message);
                core.sends = true;
                core.push(SessionOutput::Called(facts));
                core.establish();
            }
            What::Media => self.payload(core, now, template, message, text),
            What::Digit => self.digit(core, now, field("digit"), text),
            What::MarkEcho => {
                let name = match field("name") {
                    Some(Value::String(name)) => name.clone(),
                    Some(value) => match value.get("name").and_then(Value::as_str) {
                        Some(name) => name.to_owned(),
                        None => value.to_string(),
                    },
                    None => String::new(),
                };
                if let Some(at) = self.asked.iter().position(|asked| *asked == name) {
                    self.asked.remove(at);
                }
                core.push(SessionOutput::MarkReached(name));
            }
            // Marks that were asked for before the clear are not told any more.
            What::ClearEcho if core.dialect.marks_on_clear == MarksOnClear::Drop => self.asked.clear(),
            What::ClearEcho => {}
            What::Stop => core.end(SessionEnd::Peer),
            What::Error | What::BadMessage => {
                let code = field("code").map_or_else(String::new, Value::to_string);
                let message = field("message").or_else(|| field("detail")).and_then(Value::as_str).unwrap_or_default();
                core.push(SessionOutput::PeerError { code, message: message.to_owned() });
            }
            _ if self.hook.is_some() => self.hook_request(core, now, what, None, None),
            _ => {}
        }
    }

    /// Returns the facts of an opening message, and keeps the name of its stream.
    fn caller_facts(&mut self, core: &Core, template: &Template, message: &Value) -> CallerFacts {
        let text = |name: &str| template.find(message, name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let key = &core.dialect.result_id_key;
        let parameters =
            if core.kind() == Kind::VonageWebsocket { Some(message) } else { template.find(message, "params") };
        let named = parameters.and_then(|all| all.get(key)).and_then(Value::as_str).map(str::to_owned);
        let paired = || {
            let pairs = text("pairs");
            let found = pairs.split(',').find_map(|pair| pair.strip_prefix(key.as_str())?.strip_prefix('='));
            found.map(str::to_owned)
        };
        let stated = || String::from_utf8(STANDARD.decode(text("client_state")).ok()?).ok().filter(|id| !id.is_empty());
        self.stream = text("stream");
        CallerFacts {
            result_id: named.or_else(paired).or_else(stated),
            stream_id: self.stream.clone(),
            from: text("from"),
            to: text("to"),
        }
    }

    /// Takes over the form of audio that a caller announces; where the protocol has one form for both, also for this
    /// side.
    fn follow_format(&mut self, core: &mut Core, template: &Template, message: &Value) {
        let little = core.kind() != Kind::TelnyxMediaStreaming;
        let content_type = template.find(message, "content_type").and_then(Value::as_str).unwrap_or_default();
        let named = template.find(message, "encoding").and_then(Value::as_str).unwrap_or(content_type);
        let rate = match core.kind() {
            Kind::ChanWebsocket if named == "slin16" => Some(16_000),
            Kind::ChanWebsocket => Some(8000),
            _ => template
                .find(message, "rate")
                .and_then(rate_of)
                .or_else(|| content_type.split("rate=").nth(1).and_then(|rate| rate_of(&json!(rate)))),
        };
        let (Some(encoding), Some(rate_hz)) = (encoding_of(named, little), rate) else { return };
        let wire = Wire { encoding, rate_hz };
        core.ears.set_wire(wire);
        let (own, least) = match core.kind() {
            Kind::TelnyxMediaStreaming => (core.mouth.wire(), 0),
            Kind::ExotelAgentstream => (wire, *SMOOTH_CHUNK.start()),
            _ => (wire, 0),
        };
        core.mouth.set_wire(own, least);
    }

    fn digit(&mut self, core: &mut Core, now: Time, value: Option<&Value>, text: &str) {
        match value.and_then(Value::as_str).and_then(digits_of) {
            Some(digits) => digits.into_iter().for_each(|digit| core.push(SessionOutput::Digit(digit))),
            None => self.bad(core, now, "MISSING_FIELD", text),
        }
    }

    /// Takes base64 audio of a text message.
    fn payload(&mut self, core: &mut Core, now: Time, template: &Template, message: &Value, text: &str) {
        let Some(payload) = template.find(message, "payload").and_then(Value::as_str) else {
            return self.bad(core, now, "MISSING_FIELD", text);
        };
        let Ok(bytes) = STANDARD.decode(payload) else { return self.bad(core, now, "BAD_BASE64", text) };
        if let Some(name) = template.find(message, "content_type") {
            let rate = template.find(message, "rate").map_or(Some(core.ears.wire().rate_hz), rate_of);
            let encoding = name.as_str().and_then(|name| encoding_of(name, true));
            let (Some(encoding), Some(rate_hz)) = (encoding, rate) else {
                return self.bad(core, now, "MISSING_FIELD", text);
            };
            let wire = Wire { encoding, rate_hz };
            if wire != core.dialect.wire && wire != core.ears.wire() {
                core.event("audio_format_differs", json!({ "encoding": encoding.name(), "rate": rate_hz }));
            }
            core.ears.set_wire(wire);
        }
        self.audio(core, now, bytes);
    }

    /// Takes the bytes of the other side's audio.
    fn audio(&mut self, core: &mut Core, now: Time, mut bytes: Vec<u8>) {
        if bytes.starts_with(b"RIFF") || bytes.starts_with(b"ID3") {
            core.read_header(&bytes);
            return self.bad(core, now, "AUDIO_HEADER", &String::from_utf8_lossy(&bytes[..4.min(bytes.len())]));
        }
        if core.is_caller() && !self.fits(core, bytes.len()) {
            let what = format!("{} bytes", bytes.len());
            core.deviation("BAD_CHUNK_SIZE", &what);
            if core.dialect.strict {
                core.end(SessionEnd::Dropped(format!("an audio message of {what} instead of one frame")));
                return core.lose();
            }
        }
        if core.is_caller() && self.pbx.is_some() {
            return self.channel_audio(core, now, &bytes);
        }
        if core.kind() == Kind::VonageWebsocket {
            bytes.truncate(bytes.len() / 2 * 2);
        }
        let before = core.ears.accepted_samples();
        core.play(now, &bytes);
        self.hook_played(core, before);
    }

    /// True when a chunk of the agent's audio has a size that the protocol takes as it is.
    fn fits(&self, core: &Core, len: usize) -> bool {
        let wire = core.ears.wire();
        match core.kind() {
            Kind::TelnyxMediaStreaming => {
                (wire.bytes(*CHUNK_MS.start() as u32)..=wire.bytes(*CHUNK_MS.end() as u32)).contains(&len)
            }
            Kind::ExotelAgentstream => SMOOTH_CHUNK.contains(&len) && len.is_multiple_of(SMOOTH_STEP),
            Kind::VonageWebsocket => len == wire.bytes(20),
            Kind::Audiohook => len <= MAX_HOOK_CHUNK,
            _ => true,
        }
    }

    /// Drops the agent's audio as it asks, and tells of it and of its marks.
    fn clear_asked(&mut self, core: &mut Core, now: Time) {
        let points = core.clear();
        self.flush(core);
        if core.dialect.marks_on_clear == MarksOnClear::Return {
            for point in points {
                self.echo(core, now, point);
            }
        }
        self.write(core, now, What::ClearEcho, &[]);
        self.hook_cleared(core, now);
    }

    /// Tells that a point was reached, unless faults are about it.
    fn echo(&mut self, core: &mut Core, now: Time, point: Point) {
        if let Some(point) = self.faults.echo(now, point) {
            self.tell(core, now, point);
        }
    }

    fn tell(&mut self, core: &mut Core, now: Time, point: Point) {
        let (what, name) = match point {
            Point::Mark(name) => (What::MarkEcho, name),
            Point::Buffered(name) => (What::BufferingCompleted, name),
        };
        let value = match serde_json::from_str(&name) {
            Ok(value) if core.kind() == Kind::VonageWebsocket => value,
            _ => Value::from(name),
        };
        self.write(core, now, what, &[("name", value)]);
    }

    /// Notes, for an agent, that everything that was asked for has been reached.
    fn reach_all(&mut self, core: &mut Core) {
        for name in std::mem::take(&mut self.asked) {
            core.push(SessionOutput::MarkReached(name));
        }
    }

    /// Asks, for an agent, to be told when everything up to here was played.
    fn ask(&mut self, core: &mut Core, now: Time, name: String) {
        if self.asked.len() >= MAX_OPEN_MARKS {
            self.asked.pop_front();
        }
        let value = if core.kind() == Kind::VonageWebsocket { json!({ "name": name }) } else { json!(name) };
        self.asked.push_back(name);
        self.write(core, now, What::Mark, &[("name", value)]);
    }
}

impl Protocol for Carrier {
    fn on_open(&mut self, core: &mut Core, now: Time) {
        self.faults.on_open(now);
        if self.table.other.is_empty() {
            core.sends = true;
            self.is_started = true;
        }
        if core.is_caller() && !self.is_started {
            self.hook_opened(now);
            if self.hook.is_some() || !self.faults.has(Fault::MediaBeforeStart) {
                self.start(core, now);
            }
            core.sends = self.hook.is_none();
        }
    }

    fn voice(&mut self, core: &mut Core, now: Time, chunk: Vec<u8>) {
        let duration_ms = core.mouth.chunk_ms() as i64;
        // The chunk is full at its end; the stream began with the first one.
        let sent_ms = core.sent_ms();
        self.stream_epoch_ms.get_or_insert(core.epoch_ms(now) - duration_ms);
        self.chunk_at_ms = sent_ms - duration_ms as u64;
        self.chunks += 1;
        let message = match self.table.carriage {
            Carriage::Binary => Message::Binary(chunk),
            Carriage::Text => {
                let from = self.stream_epoch_ms.unwrap_or_default() + self.chunk_at_ms as i64;
                let fields = [("payload", json!(STANDARD.encode(chunk))), ("unix_ms", json!(from))];
                let Some(text) = self.text(core, now, What::Media, &fields) else { return };
                Message::Text(self.faults.text(text))
            }
        };
        for message in self.faults.audio(message) {
            core.send(message);
        }
        if core.is_caller() && !self.is_started {
            self.start(core, now);
        }
    }

    fn control(&mut self, core: &mut Core, now: Time, control: SessionControl) {
        match control {
            SessionControl::Digit { digit, duration_ms } => {
                let fields = [("digit", json!(digit.to_string())), ("duration", json!(duration_ms))];
                self.write(core, now, What::Digit, &fields);
            }
            SessionControl::Mark(name) if !core.is_caller() && self.is_started => self.ask(core, now, name),
            SessionControl::Clear if !core.is_caller() && self.is_started => match self.hook {
                Some(_) => {
                    let entities = json!([{ "type": "barge_in", "data": {} }]);
                    self.write(core, now, What::Entities, &[("entities", entities)]);
                }
                None => self.write(core, now, What::Clear, &[]),
            },
            SessionControl::Hangup if self.hook.is_some() => self.hook_hangup(core, now),
            SessionControl::Hangup => {
                self.write(core, now, What::Stop, &[]);
                self.write(core, now, What::Hangup, &[]);
                core.close_for(&control);
            }
            SessionControl::Shutdown | SessionControl::Fault => core.close_for(&control),
            _ => {}
        }
    }

    fn receive(&mut self, core: &mut Core, now: Time, message: Message) {
        match message {
            Message::Text(text) => self.on_text(core, now, &text),
            Message::Binary(bytes) if self.table.carriage == Carriage::Text => {
                self.bad(core, now, "BINARY_NOT_ALLOWED", &format!("{} bytes", bytes.len()));
            }
            Message::Binary(bytes) => {
                if !core.waits_for_answer {
                    core.establish();
                }
                if !bytes.is_empty() {
                    self.audio(core, now, bytes);
                }
            }
        }
    }

    fn on_mark_played(&mut self, core: &mut Core, now: Time, point: Point) {
        self.echo(core, now, point);
    }

    fn on_played(&mut self, core: &mut Core, now: Time) {
        self.channel_moved(core, now);
        self.hook_moved(core, now);
    }

    fn tick(&mut self, core: &mut Core, now: Time) {
        self.hook_tick(core, now);
        while let Some(point) = self.faults.late_echo(now) {
            self.tell(core, now, point);
        }
        if self.faults.loses(now) && !core.has_ended() {
            core.end(SessionEnd::Dropped("the fault drop_socket is turned on".to_owned()));
            core.lose();
        }
    }
}
