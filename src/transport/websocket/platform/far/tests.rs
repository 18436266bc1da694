//! Every preset against its far side, in virtual time: each side hears the other, and takes all of its messages.

use std::sync::Arc;
use std::time::Duration;

use ringer_media::seed::Seed;
use serde_json::{Value, json};

use super::*;
use crate::websocket::platform::adapter::{Adapter, Facts, Names, SessionReply};
use crate::websocket::protocol::SessionEnd;
use crate::websocket::{Message, Session, SessionControl, SessionFacts, SessionOutput};
use ringer_media::time::Time;

const FRAME: usize = 320;

/// One side, with what it has to send, what it heard and what it told.
struct Side {
    session: Session,
    sent: Vec<Message>,
    heard: Vec<i16>,
    waiting: u64,
    seen: Vec<SessionOutput>,
}

impl Side {
    fn new(session: Session) -> Side {
        Side { session, sent: Vec::new(), heard: Vec::new(), waiting: 0, seen: Vec::new() }
    }

    fn drain(&mut self) {
        while let Some(output) = self.session.poll() {
            match output {
                SessionOutput::Send(message) => self.sent.push(message),
                SessionOutput::Frames(pcm) => {
                    self.waiting += pcm.len() as u64;
                    self.heard.extend(pcm);
                }
                SessionOutput::ClearFrames => self.waiting = 0,
                other => self.seen.push(other),
            }
        }
    }

    fn has(&self, wanted: impl Fn(&SessionOutput) -> bool) -> bool {
        self.seen.iter().any(wanted)
    }

    fn violations(&self) -> Vec<&SessionOutput> {
        self.seen.iter().filter(|output| matches!(output, SessionOutput::Violation { .. })).collect()
    }
}

/// Caller and server of a preset, joined without delay.
struct Pair {
    caller: Side,
    agent: Side,
    now: Time,
}

fn facts() -> Facts {
    let agent = json!({ "id": "desk" }).as_object().expect("an object").clone();
    Facts { agent, result_id: "42".to_owned(), ..Facts::default() }
}

impl Pair {
    fn new(name: &str, settings: Value) -> Pair {
        let mut table = json!({ "preset": name });
        table.as_object_mut().expect("an object").extend(settings.as_object().expect("an object").clone());
        let adapter = Adapter::parse("P4", table.as_object().expect("an object"), &Names::default());
        let adapter = adapter.expect("good settings");
        let side = Arc::new(FarSide::of(name).expect("it has one"));
        let opening = adapter.session_request(&facts()).expect("it can be asked");
        let opening = opening.map_or(Value::Null, |asked| serde_json::from_str(&asked.body).unwrap_or_default());
        let mut reply = SessionReply::default();
        if let Some((_, answer)) = side.session_answer("wss://h", "s1") {
            reply = adapter.read_session(answer.to_string().as_bytes()).expect("it has what is needed");
        }
        let (url, dialect) = adapter.dialect(&facts(), &reply).expect("it can be dialled");
        let agent = FarCall::new(side, "desk".to_owned(), "s1".to_owned(), opening).dialect();
        let facts = |url: &str| SessionFacts::new(42, url, Seed(7), Time(0), 1_767_225_600_000);
        let mut pair = Pair {
            caller: Side::new(Session::caller(dialect, facts(&url))),
            agent: Side::new(Session::agent(agent, facts(&url))),
            now: Time(0),
        };
        pair.caller.session.on_open(pair.now);
        pair.agent.session.on_open(pair.now);
        pair.exchange();
        pair
    }

    fn exchange(&mut self) {
        loop {
            self.caller.drain();
            self.agent.drain();
            if self.caller.sent.is_empty() && self.agent.sent.is_empty() {
                return;
            }
            for message in std::mem::take(&mut self.caller.sent) {
                self.agent.session.receive(self.now, message);
            }
            for message in std::mem::take(&mut self.agent.sent) {
                self.caller.session.receive(self.now, message);
            }
        }
    }

    /// Runs 20 ms; a level of 0 is silence.
    fn pass(&mut self, ms: usize, caller: i16, agent: i16) {
        let hum = |level: i16| -> Vec<i16> { (0..FRAME).map(|at| if at % 40 < 20 { level } else { -level }).collect() };
        for _ in 0..ms / 20 {
            self.now = self.now + Duration::from_millis(20);
            for (side, level) in [(&mut self.caller, caller), (&mut self.agent, agent)] {
                side.session.frame(self.now, &hum(level));
                side.waiting = side.waiting.saturating_sub(FRAME as u64);
                side.session.set_unplayed(self.now, side.waiting);
                side.session.tick(self.now);
            }
            self.exchange();
        }
    }

    fn order(&mut self, is_caller: bool, control: SessionControl) {
        let side = if is_caller { &mut self.caller } else { &mut self.agent };
        side.session.control(self.now, control);
        self.exchange();
    }

    fn say(&mut self, words: &str, ms: usize) {
        self.order(false, SessionControl::Words(words.to_owned()));
        self.order(false, SessionControl::UtteranceStarted);
        self.pass(ms, 0, 8000);
    }
}

fn loud_ms(pcm: &[i16]) -> usize {
    pcm.iter().filter(|sample| sample.abs() > 4000).count() / 16
}

#[test]
fn every_preset_speaks_with_its_far_side() {
    // The others write over HTTP.
    let writing = ["run_session", "detect_intent", "dialog_interact"];
    let all: Vec<&str> = Adapter::presets().filter(|name| !writing.contains(name)).collect();
    assert_eq!(FarSide::names().collect::<Vec<_>>(), all);
    for name in all {
        let mut pair = Pair::new(name, json!({ "tool_answers": { "find_appointments": "{\"at\":9}" } }));
        let is_plain = name == "vapi_websocket";
        pair.say("Good morning.", 1000);
        pair.order(false, SessionControl::UtteranceCompleted);
        assert!(pair.agent.has(|output| *output == SessionOutput::Opened), "{name}");
        assert!(pair.caller.has(|output| *output == SessionOutput::Opened), "{name}");
        pair.pass(1000, 8000, 0);
        let (own, other) = (loud_ms(&pair.caller.heard), loud_ms(&pair.agent.heard));
        assert!((900..=1000).contains(&own) && (850..=1000).contains(&other), "{name}: {own} {other}");
        assert!(loud_ms(&pair.caller.heard) * 16 + 3200 > pair.caller.heard.len(), "{name}: silence is not sent");
        pair.say("How can I help you?", 600);
        pair.order(false, SessionControl::Clear);
        pair.order(false, SessionControl::Cut("How can".to_owned()));
        pair.order(false, SessionControl::UtteranceCompleted);
        pair.pass(4000, 0, 0);
        let reported: Vec<&str> = pair
            .caller
            .seen
            .iter()
            .filter_map(|output| if let SessionOutput::Reported(text) = output { Some(text.as_str()) } else { None })
            .collect();
        let (expect, tools) = if is_plain { (0, 0) } else { (2, 1) };
        assert_eq!(reported, ["Good morning.", "How can I help you?"][..expect], "{name}");
        let is_call = |output: &&SessionOutput| matches!(output, SessionOutput::ToolCalled { name, .. } if name == "find_appointments");
        assert_eq!(pair.caller.seen.iter().filter(is_call).count(), tools, "{name}: {:?}", pair.caller.seen);
        let answered = pair.agent.seen.iter().filter_map(|output| match output {
            SessionOutput::Event { name: "tool_answered", data } => Some(data),
            _ => None,
        });
        let answered: Vec<String> = answered.map(|data| data.to_string().replace('\\', "")).collect();
        assert_eq!(answered.len(), tools, "{name}: {:?}", pair.agent.seen);
        assert!(answered.iter().all(|data| data.contains("call_2") && data.contains("\"at\":9")), "{answered:?}");
        for side in [&pair.caller, &pair.agent] {
            assert_eq!(side.violations(), Vec::<&SessionOutput>::new(), "{name}");
        }
        pair.order(true, SessionControl::Hangup);
        assert!(pair.caller.has(|output| *output == SessionOutput::Ended(SessionEnd::Own)), "{name}");
    }
}

#[test]
fn audio_that_was_not_played_is_taken_back_by_an_interruption() {
    for name in FarSide::names().filter(|name| *name != "vapi_websocket") {
        let mut pair = Pair::new(name, json!({}));
        pair.say("Good morning.", 400);
        // What came waits to be played.
        pair.caller.waiting = 16_000;
        pair.say("And so on.", 20);
        pair.caller.waiting += 8000;
        pair.order(false, SessionControl::Clear);
        pair.pass(20, 0, 0);
        assert!(pair.caller.has(|output| matches!(output, SessionOutput::Cleared { .. })), "{name}");
        assert_eq!(pair.caller.waiting, 0, "{name}");
        for side in [&pair.caller, &pair.agent] {
            assert_eq!(side.violations(), Vec::<&SessionOutput>::new(), "{name}");
        }
    }
}

#[test]
fn the_form_of_audio_is_the_one_that_the_client_asks_for() {
    for (name, settings, caller, agent) in [
        ("openai_realtime", json!({ "encoding": "PCMU", "rate": 8000 }), 8000, 8000),
        ("deepgram_voice_agent", json!({ "encoding": "PCMA", "rate": 8000 }), 8000, 8000),
        ("deepgram_voice_agent", json!({ "rate": 16_000, "agent_rate": 48_000 }), 16_000, 48_000),
        ("ultravox", json!({ "rate": 48_000, "agent_rate": 8000 }), 48_000, 8000),
        ("cartesia_agent", json!({ "rate": 44_100 }), 44_100, 44_100),
        ("vapi_websocket", json!({ "encoding": "PCMU", "rate": 8000 }), 8000, 8000),
    ] {
        let mut pair = Pair::new(name, settings);
        pair.say("Hello.", 1000);
        pair.order(false, SessionControl::UtteranceCompleted);
        pair.pass(1000, 8000, 0);
        assert_eq!(
            (pair.agent.session.heard_rate_hz(), pair.caller.session.heard_rate_hz()),
            (caller, agent),
            "{name}"
        );
        let (own, other) = (loud_ms(&pair.caller.heard), loud_ms(&pair.agent.heard));
        assert!((850..=1000).contains(&own) && (850..=1000).contains(&other), "{name}: {own} {other}");
    }
}

#[test]
fn requests_are_known_by_method_and_path() {
    let of = |name: &str| FarSide::of(name).expect("it has one");
    let side = of("openai_realtime");
    assert_eq!(side.request("GET", "/v1/realtime", true), Some(FarRequest::Call(String::new())));
    assert_eq!(side.request("GET", "/v1/realtime", false), None);
    assert_eq!(side.request("GET", "/v1/other", true), None);
    let side = of("ultravox");
    assert_eq!(side.request("POST", "/api/agents/a%201/calls", false), Some(FarRequest::Session("a 1".to_owned())));
    assert_eq!(side.request("GET", "/api/agents/a/calls", false), None);
    assert_eq!(side.request("POST", "/api/agents//calls", false), None);
    assert_eq!(side.request("GET", "/sessions/s1", true), Some(FarRequest::SessionCall("s1".to_owned())));
    assert_eq!(side.request("GET", "/sessions/", true), None);
    let side = of("cartesia_agent");
    assert_eq!(side.request("GET", "/v1/agents/websocket/a", true), Some(FarRequest::Call("a".to_owned())));
    assert!(of("elevenlabs_agents").request("GET", "/v1/convai/conversation/get-signed-url", false).is_some());
}

#[test]
fn credentials_stand_where_the_platform_wants_them() {
    for (name, header, value, query) in [
        ("openai_realtime", "authorization", "Bearer secret", ""),
        ("deepgram_voice_agent", "authorization", "Token secret", ""),
        ("elevenlabs_agents", "xi-api-key", "secret", ""),
        ("gemini_live", "x", "", "a=b&key=secret"),
    ] {
        let side = FarSide::of(name).expect("it has one");
        let given = |asked: &str| (asked == header).then(|| value.to_owned());
        assert_eq!(side.credential(query, &given), "secret", "{name}");
        assert_eq!(side.credential("", &|_| None), "", "{name}");
    }
}

#[test]
fn messages_that_no_client_sends_are_refused() {
    let mut pair = Pair::new("openai_realtime", json!({}));
    for (message, code) in [
        (json!({ "type": "nonsense" }).to_string(), "UNKNOWN_TYPE"),
        ("{".to_owned(), "NOT_JSON"),
        ("[]".to_owned(), "NOT_OBJECT"),
        (json!({ "type": "input_audio_buffer.append", "audio": "?" }).to_string(), "BAD_BASE64"),
    ] {
        pair.agent.session.receive(pair.now, Message::Text(message));
        pair.agent.drain();
        assert!(matches!(pair.agent.seen.last(), Some(SessionOutput::Violation { code: found, .. }) if *found == code));
    }
    pair.agent.session.receive(pair.now, Message::Binary(vec![0; 10]));
    pair.agent.drain();
    assert_eq!(pair.agent.violations().len(), 5);
}
