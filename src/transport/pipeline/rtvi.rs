//! The messages of a voice pipeline on its data channel, without IO: RTVI 2.2 (`{label: "rtvi-ai", type, id, data}`),
//! the signalling of the small WebRTC transport beside it, and the texts that keep a connection alive.

use std::collections::VecDeque;
use std::time::Duration;

use ringer_media::time::Time;
use ringer_syntax::json::read_exact;
use serde_json::{Value, json};

/// Version of the protocol that is spoken.
const VERSION: &str = "2.2.0";

/// Time between two texts that keep the connection alive; the other side expects one within 3 s.
const PING_EVERY: Duration = Duration::from_secs(1);

/// Time within which a pipeline that speaks RTVI has said that it is ready.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// Messages that are read within a second; further ones are counted.
const MOST_A_SECOND: u32 = 200;

/// Bytes of the longest text of an event; a longer one is cut.
const MAX_TEXT: usize = 8192;

/// Bytes of the longest name in an event.
const MAX_NAME: usize = 256;

/// Events that may wait.
const MAX_EVENTS: usize = 256;

/// Phase of a call of a tool.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ToolPhase {
    /// The model began to ask for it.
    Started,
    /// The tool runs; its arguments are known.
    InProgress,
    /// The tool is done, or was cancelled.
    Stopped,
}

/// A call of a tool, as far as the pipeline tells of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolNews {
    /// Phase of the call.
    pub phase: ToolPhase,
    /// Name of the call.
    pub id: Option<String>,
    /// Name of the tool.
    pub name: Option<String>,
    /// Arguments, when they are told and short enough.
    pub arguments: Option<Value>,
    /// Result, when it is told and short enough.
    pub result: Option<Value>,
    /// True when it was cancelled.
    pub is_cancelled: bool,
}

/// An event of a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub enum RtviEvent {
    /// The pipeline is ready; the version that it speaks.
    Ready(Option<String>),
    /// The pipeline has not said that it is ready in time: it may speak no RTVI.
    NotReady,
    /// Words of the agent, as its side reports them.
    AgentText(String),
    /// Words of the caller, as the agent's side understood them.
    CallerText {
        /// Words of the caller.
        text: String,
        /// True if the words change no more.
        is_final: bool,
    },
    /// The agent began or stopped to speak.
    AgentSpeaks(bool),
    /// The caller began or stopped to speak, as the agent's side heard it.
    CallerSpeaks(bool),
    /// The agent was interrupted.
    Interrupted,
    /// A tool is called.
    Tool(ToolNews),
    /// Measurements of the pipeline.
    Metrics(Value),
    /// The pipeline reports an error.
    Error {
        /// Words of the pipeline.
        message: String,
        /// True if the pipeline has stopped.
        is_fatal: bool,
    },
    /// The other side leaves.
    Left,
    /// The other side asks for a new offer.
    Renegotiate,
    /// A message of another type.
    Other {
        /// Type of the message.
        kind: String,
        /// Data of the message, as text.
        data: String,
    },
}

/// Output that the caller of the protocol carries out.
#[derive(Clone, Debug, PartialEq)]
pub enum RtviOutput {
    /// Text for the data channel.
    Send(String),
    /// Event for the timeline.
    Event(RtviEvent),
}

/// Counts of the other side's messages.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct RtviCounts {
    /// Messages that were read.
    pub read: u64,
    /// Messages that are no JSON of a known form.
    pub malformed: u64,
    /// Messages beyond what is read within a second.
    pub flooding: u64,
    /// Events that did not fit.
    pub dropped: u64,
}

/// State of the messages of one pipeline.
#[derive(Debug, Default)]
pub struct Rtvi {
    next_ping: Option<Time>,
    ready_until: Option<Time>,
    next_id: u64,
    second: Time,
    in_second: u32,
    counts: RtviCounts,
    out: VecDeque<RtviOutput>,
}

impl Rtvi {
    /// Returns the state before a channel is open.
    pub fn new() -> Rtvi {
        Rtvi::default()
    }

    /// Takes note of a channel that opened: greets the pipeline and keeps the connection alive from now on.
    pub fn open(&mut self, now: Time) {
        self.next_ping = Some(now);
        self.ready_until = Some(now + READY_WITHIN);
        self.next_id += 1;
        let about = json!({ "library": "ringer", "library_version": env!("CARGO_PKG_VERSION") });
        let ready = json!({
            "label": "rtvi-ai",
            "type": "client-ready",
            "id": self.next_id.to_string(),
            "data": { "version": VERSION, "about": about },
        });
        self.tick(now);
        self.out.push_back(RtviOutput::Send(ready.to_string()));
    }

    /// Takes note of a channel that closed.
    pub fn close(&mut self) {
        (self.next_ping, self.ready_until) = (None, None);
    }

    /// Returns when [`Rtvi::tick`] is to be called next; `None` without an open channel.
    pub fn next_timer(&self) -> Option<Time> {
        [self.next_ping, self.ready_until].into_iter().flatten().min()
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Time) {
        if self.next_ping.is_some_and(|at| at <= now) {
            self.out.push_back(RtviOutput::Send(format!("ping: {}", now.0 / 1_000_000)));
            self.next_ping = Some(now + PING_EVERY);
        }
        if self.ready_until.is_some_and(|at| at <= now) {
            self.ready_until = None;
            self.tell(RtviEvent::NotReady);
        }
    }

    /// Takes a message of the other side.
    pub fn receive(&mut self, now: Time, message: &[u8]) {
        if now.since(self.second) >= Duration::from_secs(1) {
            (self.second, self.in_second) = (now, 0);
        }
        self.in_second += 1;
        if self.in_second > MOST_A_SECOND {
            self.counts.flooding += 1;
            return;
        }
        self.counts.read += 1;
        if message.starts_with(b"ping") {
            return;
        }
        let read = read_exact(message);
        if read.as_ref().and_then(|read| read["type"].as_str()).is_some_and(|kind| PIECES.contains(&kind)) {
            return;
        }
        match read.as_ref().and_then(event) {
            Some(event) => {
                if matches!(event, RtviEvent::Ready(_)) {
                    self.ready_until = None;
                }
                self.tell(event);
            }
            None => self.counts.malformed += 1,
        }
    }

    /// Returns the next output.
    pub fn poll(&mut self) -> Option<RtviOutput> {
        self.out.pop_front()
    }

    /// Returns the counts up to now.
    pub fn counts(&self) -> RtviCounts {
        self.counts
    }

    fn tell(&mut self, event: RtviEvent) {
        if self.out.len() < MAX_EVENTS {
            self.out.push_back(RtviOutput::Event(event));
        } else {
            self.counts.dropped += 1;
        }
    }
}

/// Types of messages that tell a turn of the agent by the word or token; its transcription tells the same.
const PIECES: [&str; 7] = [
    "bot-llm-text",
    "bot-tts-text",
    "bot-output",
    "bot-llm-started",
    "bot-llm-stopped",
    "bot-tts-started",
    "bot-tts-stopped",
];

/// Reads a message; `None` when it has no known form.
fn event(message: &Value) -> Option<RtviEvent> {
    let kind = message["type"].as_str()?;
    let data = &message["data"];
    if kind == "signalling" {
        return Some(match message["message"]["type"].as_str()? {
            "peerLeft" => RtviEvent::Left,
            "renegotiate" => RtviEvent::Renegotiate,
            other => RtviEvent::Other {
                kind: cut_to(other, MAX_NAME),
                data: cut_to(&message["message"].to_string(), MAX_TEXT),
            },
        });
    }
    if message["label"] != "rtvi-ai" {
        return None;
    }
    let text = |field: &str| data[field].as_str().map(|text| cut_to(text, MAX_TEXT));
    Some(match kind {
        "bot-ready" => RtviEvent::Ready(data["version"].as_str().map(|version| cut_to(version, MAX_NAME))),
        "bot-transcription" => RtviEvent::AgentText(text("text")?),
        "user-transcription" => {
            RtviEvent::CallerText { text: text("text")?, is_final: data["final"].as_bool().unwrap_or(true) }
        }
        "bot-started-speaking" => RtviEvent::AgentSpeaks(true),
        "bot-stopped-speaking" => RtviEvent::AgentSpeaks(false),
        "user-started-speaking" => RtviEvent::CallerSpeaks(true),
        "user-stopped-speaking" => RtviEvent::CallerSpeaks(false),
        "bot-interrupted" => RtviEvent::Interrupted,
        "llm-function-call-started" => RtviEvent::Tool(tool(ToolPhase::Started, data)),
        "llm-function-call" | "llm-function-call-in-progress" => RtviEvent::Tool(tool(ToolPhase::InProgress, data)),
        "llm-function-call-stopped" => RtviEvent::Tool(tool(ToolPhase::Stopped, data)),
        "metrics" => RtviEvent::Metrics(short(data).unwrap_or_default()),
        "error" => RtviEvent::Error {
            message: text("error").or_else(|| text("message")).unwrap_or_default(),
            is_fatal: data["fatal"].as_bool().unwrap_or(false),
        },
        "error-response" => RtviEvent::Error { message: text("error").unwrap_or_default(), is_fatal: false },
        other => RtviEvent::Other { kind: cut_to(other, MAX_NAME), data: cut_to(&data.to_string(), MAX_TEXT) },
    })
}

fn tool(phase: ToolPhase, data: &Value) -> ToolNews {
    let name = |field: &str| data[field].as_str().map(|text| cut_to(text, MAX_NAME));
    ToolNews {
        phase,
        id: name("tool_call_id"),
        name: name("function_name"),
        arguments: data.get("arguments").or_else(|| data.get("args")).and_then(short),
        result: data.get("result").and_then(short),
        is_cancelled: data["cancelled"].as_bool().unwrap_or(false),
    }
}

/// Returns the value when it is not null and its text has at most [`MAX_TEXT`] bytes.
fn short(value: &Value) -> Option<Value> {
    (!value.is_null() && value.to_string().len() <= MAX_TEXT).then(|| value.clone())
}

fn cut_to(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn outputs(rtvi: &mut Rtvi) -> Vec<RtviOutput> {
        std::iter::from_fn(|| rtvi.poll()).collect()
    }

    fn event_of(message: &Value) -> Option<RtviEvent> {
        let mut rtvi = Rtvi::new();
        rtvi.receive(Time(SECOND), message.to_string().as_bytes());
        rtvi.poll().map(|output| match output {
            RtviOutput::Event(event) => event,
            RtviOutput::Send(text) => panic!("nothing is to be sent: {text}"),
        })
    }

    #[test]
    fn messages_become_events() {
        let check = |kind: &str, data: Value, expect: RtviEvent| {
            let message = json!({ "label": "rtvi-ai", "type": kind, "id": "1", "data": data });
            assert_eq!(event_of(&message), Some(expect), "{message}");
        };
        check("bot-ready", json!({ "version": "2.2.0" }), RtviEvent::Ready(Some("2.2.0".into())));
        check("bot-transcription", json!({ "text": "Hello." }), RtviEvent::AgentText("Hello.".into()));
        let words = |is_final| RtviEvent::CallerText { text: "I".into(), is_final };
        check("user-transcription", json!({ "text": "I", "final": false, "user_id": "" }), words(false));
        check("user-transcription", json!({ "text": "I", "final": true }), words(true));
        check("bot-started-speaking", Value::Null, RtviEvent::AgentSpeaks(true));
        check("bot-stopped-speaking", Value::Null, RtviEvent::AgentSpeaks(false));
        check("user-started-speaking", Value::Null, RtviEvent::CallerSpeaks(true));
        check("user-stopped-speaking", Value::Null, RtviEvent::CallerSpeaks(false));
        check("bot-interrupted", Value::Null, RtviEvent::Interrupted);
        let news = |phase| ToolNews {
            phase,
            id: None,
            name: Some("weather".into()),
            arguments: None,
            result: None,
            is_cancelled: false,
        };
        check(
            "llm-function-call-started",
            json!({ "function_name": "weather" }),
            RtviEvent::Tool(news(ToolPhase::Started)),
        );
        check(
            "llm-function-call-in-progress",
            json!({ "tool_call_id": "7", "function_name": "weather", "arguments": { "city": "Bern" } }),
            RtviEvent::Tool(ToolNews {
                id: Some("7".into()),
                arguments: Some(json!({ "city": "Bern" })),
                ..news(ToolPhase::InProgress)
            }),
        );
        check(
            "llm-function-call-stopped",
            json!({ "tool_call_id": "7", "function_name": "weather", "cancelled": true, "result": null }),
            RtviEvent::Tool(ToolNews { id: Some("7".into()), is_cancelled: true, ..news(ToolPhase::Stopped) }),
        );
        check("metrics", json!({ "ttfb": [1] }), RtviEvent::Metrics(json!({ "ttfb": [1] })));
        let error = |is_fatal| RtviEvent::Error { message: "no key".into(), is_fatal };
        check("error", json!({ "error": "no key", "fatal": true }), error(true));
        check("error-response", json!({ "error": "no key" }), error(false));
        check(
            "bot-wiggles",
            json!({ "n": 1 }),
            RtviEvent::Other { kind: "bot-wiggles".into(), data: r#"{"n":1}"#.into() },
        );
        let signal = |kind: &str| json!({ "type": "signalling", "message": { "type": kind } });
        assert_eq!(event_of(&signal("peerLeft")), Some(RtviEvent::Left));
        assert_eq!(event_of(&signal("renegotiate")), Some(RtviEvent::Renegotiate));
    }

    #[test]
    fn broken_and_long_messages_are_bounded() {
        for broken in ["", "nonsense", "[]", "{}", "{\"type\":7}", "{\"type\":\"bot-ready\"}", "\u{0}"] {
            let mut rtvi = Rtvi::new();
            rtvi.receive(Time(SECOND), broken.as_bytes());
            assert_eq!((rtvi.poll(), rtvi.counts().malformed), (None, 1), "{broken}");
        }
        let long = json!({ "label": "rtvi-ai", "type": "bot-transcription", "data": { "text": "é".repeat(10_000) } });
        let Some(RtviEvent::AgentText(text)) = event_of(&long) else { panic!("it is a text") };
        assert_eq!(text.len(), MAX_TEXT);
        let long = json!({ "label": "rtvi-ai", "type": "metrics", "data": { "x": "y".repeat(10_000) } });
        assert_eq!(event_of(&long), Some(RtviEvent::Metrics(Value::Null)));
    }

    #[test]
    fn the_pipeline_is_greeted_and_kept_alive() {
        let mut rtvi = Rtvi::new();
        assert_eq!(rtvi.next_timer(), None);
        rtvi.open(Time(SECOND));
        let sent = outputs(&mut rtvi);
        let [RtviOutput::Send(ping), RtviOutput::Send(ready)] = &sent[..] else { panic!("{sent:?}") };
        assert!(ping.starts_with("ping"), "{ping}");
        let ready: Value = serde_json::from_str(ready).expect("JSON");
        assert_eq!((&ready["label"], &ready["type"]), (&json!("rtvi-ai"), &json!("client-ready")));
        assert_eq!(ready["data"]["version"], VERSION);
        assert_eq!(rtvi.next_timer(), Some(Time(2 * SECOND)));
        for second in 2..11 {
            rtvi.tick(Time(second * SECOND));
            assert_eq!(outputs(&mut rtvi).len(), 1, "{second}");
        }
        rtvi.tick(Time(11 * SECOND));
        assert!(outputs(&mut rtvi).contains(&RtviOutput::Event(RtviEvent::NotReady)));
        rtvi.close();
        assert_eq!(rtvi.next_timer(), None);
    }

    #[test]
    fn a_pipeline_that_is_ready_is_not_missed() {
        let mut rtvi = Rtvi::new();
        rtvi.open(Time(SECOND));
        rtvi.receive(Time(2 * SECOND), br#"{"label":"rtvi-ai","type":"bot-ready","id":"1","data":{}}"#);
        rtvi.tick(Time(60 * SECOND));
        let events: Vec<_> =
            outputs(&mut rtvi).into_iter().filter(|output| !matches!(output, RtviOutput::Send(_))).collect();
        assert_eq!(events, [RtviOutput::Event(RtviEvent::Ready(None))]);
    }

    #[test]
    fn a_flood_is_counted_and_not_kept() {
        let mut rtvi = Rtvi::new();
        let message = br#"{"label":"rtvi-ai","type":"bot-interrupted"}"#;
        (0..10_000).for_each(|_| rtvi.receive(Time(SECOND), message));
        assert_eq!((rtvi.counts().read, rtvi.counts().flooding), (200, 9800));
        assert_eq!(outputs(&mut rtvi).len(), 200);
        for second in 2..10 {
            (0..200).for_each(|_| rtvi.receive(Time(second * SECOND), message));
        }
        assert_eq!((outputs(&mut rtvi).len(), rtvi.counts().dropped), (MAX_EVENTS, 8 * 200 - MAX_EVENTS as u64));
    }
}
