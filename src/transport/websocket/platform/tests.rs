//! Sessions of platforms in virtual time: what is sent, what is played, and how a session ends.

mod chat;
mod settings;
mod ways;

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringer_media::seed::Seed;
use ringer_media::time::Time;
use serde_json::{Value, json};

use super::adapter::{Adapter, Facts, Names, SessionReply};
use crate::websocket::protocol::SessionEnd;
use crate::websocket::{Message, Session, SessionControl, SessionFacts, SessionOutput};

/// Returns an adapter of P4 with these settings.
fn adapter(settings: Value) -> Result<Adapter, String> {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let names = Names {
        agent: list(&["name", "P4_agent_id"]),
        integration: list(&["P4_api_key"]),
        digital_human: list(&["name"]),
    };
    let table = settings.as_object().expect("an object was written");
    Adapter::parse("P4", table, &names).map_err(|error| error.to_string())
}

/// Returns the facts of a call.
fn facts() -> Facts {
    let map = |value: Value| value.as_object().expect("an object was written").clone();
    Facts {
        agent: map(json!({ "id": "a/1", "P4_agent_id": "a/1", "name": "Desk" })),
        integration: map(json!({ "key": "secret-key", "P4_api_key": "secret-key" })),
        digital_human: map(json!({ "name": "Ann" })),
        result_id: "42".to_owned(),
        ..Facts::default()
    }
}

/// A session in virtual time, everything that it sent and told.
struct Line {
    session: Session,
    now: Time,
    unplayed: u64,
    sent: Vec<Message>,
    heard: Vec<i16>,
    seen: Vec<SessionOutput>,
}

impl Line {
    fn new(settings: Value) -> Line {
        let (url, dialect) = adapter(settings)
            .and_then(|adapter| adapter.dialect(&facts(), &SessionReply::default()))
            .expect("the settings are good");
        let facts = SessionFacts::new(42, &url, Seed(7), Time(0), 1_767_225_600_000);
        let mut line = Line {
            session: Session::caller(dialect, facts),
            now: Time(0),
            unplayed: 0,
            sent: Vec::new(),
            heard: Vec::new(),
            seen: Vec::new(),
        };
        line.session.on_open(line.now);
        line.drain();
        line
    }

    fn preset(name: &str) -> Line {
        let url = match name {
            "elevenlabs_agents" | "ultravox" | "vapi_websocket" => json!({ "url": "wss://h/a", "preset": name }),
            _ => json!({ "preset": name }),
        };
        Line::new(url)
    }

    fn drain(&mut self) {
        while let Some(output) = self.session.poll() {
            match output {
                SessionOutput::Send(message) => self.sent.push(message),
                SessionOutput::Frames(pcm) => {
                    self.unplayed += pcm.len() as u64;
                    self.heard.extend(pcm);
                }
                SessionOutput::ClearFrames => self.unplayed = 0,
                other => self.seen.push(other),
            }
        }
    }

    fn receive(&mut self, message: Value) {
        self.session.receive(self.now, Message::Text(message.to_string()));
        self.drain();
    }

    fn receive_binary(&mut self, bytes: Vec<u8>) {
        self.session.receive(self.now, Message::Binary(bytes));
        self.drain();
    }

    /// Advances the time, with silence of this side; audio of the other one is played meanwhile.
    fn pass(&mut self, ms: u64) {
        for _ in 0..ms / 20 {
            self.now = self.now + Duration::from_millis(20);
            self.session.frame(self.now, &[0; 320]);
            self.unplayed = self.unplayed.saturating_sub(320);
            self.session.set_unplayed(self.now, self.unplayed);
            self.session.tick(self.now);
            self.drain();
        }
    }

    fn order(&mut self, control: SessionControl) {
        self.session.control(self.now, control);
        self.drain();
    }

    /// Returns the JSON that was sent since the last time, and the number of other messages.
    fn take_sent(&mut self) -> (Vec<Value>, usize) {
        let (mut texts, mut binary) = (Vec::new(), 0);
        for message in self.sent.drain(..) {
            match message {
                Message::Text(text) => texts.push(serde_json::from_str(&text).expect("JSON is sent")),
                Message::Binary(_) => binary += 1,
            }
        }
        (texts, binary)
    }

    fn end(&self) -> Option<&SessionEnd> {
        self.seen.iter().find_map(|output| if let SessionOutput::Ended(end) = output { Some(end) } else { None })
    }

    fn texts(&self) -> Vec<&str> {
        let reported = self.seen.iter();
        reported
            .filter_map(|output| if let SessionOutput::Reported(text) = output { Some(text.as_str()) } else { None })
            .collect()
    }

    fn is_open(&self) -> bool {
        self.seen.contains(&SessionOutput::Opened)
    }
}

/// Returns samples that are no silence, as bytes in base64.
fn sound(ms: usize, rate_hz: usize) -> String {
    STANDARD.encode(loud(ms * rate_hz / 1000))
}

fn loud(samples: usize) -> Vec<u8> {
    (0..samples).flat_map(|at| (if at % 40 < 20 { 8000_i16 } else { -8000 }).to_le_bytes()).collect()
}

/// Returns a session of a realtime preset that is ready.
fn realtime() -> Line {
    let mut line = Line::preset("openai_realtime");
    line.receive(json!({ "type": "session.created", "session": { "id": "sess_1" } }));
    line.receive(json!({ "type": "session.updated" }));
    line
}

#[test]
fn a_realtime_session_begins_and_carries_audio() {
    let mut line = Line::preset("openai_realtime");
    line.pass(100);
    assert_eq!(line.take_sent(), (vec![], 0), "session.created comes first");
    line.receive(json!({ "type": "session.created", "session": { "id": "sess_1" } }));
    let format = json!({ "type": "audio/pcm", "rate": 24000 });
    let update = json!({ "type": "session.update", "session": { "type": "realtime", "audio": {
        "input": { "format": format }, "output": { "format": format } } } });
    line.pass(100);
    assert_eq!(line.take_sent(), (vec![update], 0), "no audio before session.updated");
    assert!(!line.is_open() && line.seen.contains(&SessionOutput::CallNamed("sess_1".to_owned())));
    line.receive(json!({ "type": "session.updated" }));
    line.pass(200);
    let (sent, _) = line.take_sent();
    assert_eq!(sent[0], json!({ "type": "response.create" }));
    assert!(line.is_open() && (9..=10).contains(&(sent.len() - 1)), "{}", sent.len());
    let audio = STANDARD.decode(sent[1]["audio"].as_str().expect("a text")).expect("base64");
    assert_eq!((sent[1]["type"].as_str(), audio.len()), (Some("input_audio_buffer.append"), 960), "20 ms of 24 kHz");
    line.receive(json!({ "type": "response.output_audio_transcript.done", "transcript": "Hello." }));
    assert_eq!(line.texts(), ["Hello."]);
}

/// Case 36 of the dialects: 5 s of audio, interrupted at 1.2 s.
#[test]
fn an_interruption_tells_how_much_was_played() {
    let mut line = realtime();
    let delta = |line: &mut Line, item: &str, ms: usize| {
        line.receive(json!({ "type": "response.output_audio.delta", "item_id": item, "content_index": 0,
            "delta": sound(ms, 24_000) }));
    };
    delta(&mut line, "item_0", 400);
    line.pass(600);
    delta(&mut line, "item_1", 5000);
    line.pass(1200);
    line.take_sent();
    line.receive(json!({ "type": "input_audio_buffer.speech_started" }));
    let (sent, _) = line.take_sent();
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(sent[0]["type"], "conversation.item.truncate");
    assert_eq!((&sent[0]["item_id"], &sent[0]["content_index"]), (&json!("item_1"), &json!(0)));
    let played_ms = sent[0]["audio_end_ms"].as_i64().expect("a number");
    assert!((1180..=1220).contains(&played_ms), "{played_ms}");
    assert!(line.seen.iter().any(|output| matches!(output, SessionOutput::Cleared { dropped } if *dropped > 48_000)));
    let heard = line.heard.len();
    delta(&mut line, "item_1", 100);
    assert_eq!(line.heard.len(), heard, "audio of the item that was cut off is not played");
    line.receive(json!({ "type": "input_audio_buffer.speech_started" }));
    assert_eq!(line.take_sent().0, [] as [Value; 0], "nothing is left to cut");
    delta(&mut line, "item_2", 100);
    assert!(line.heard.len() > heard);
}

/// Case 37: an interruption names the last audio that is not played.
#[test]
fn audio_up_to_an_interruption_is_not_played() {
    let mut line = Line::preset("elevenlabs_agents");
    let (sent, _) = line.take_sent();
    assert_eq!(sent[0]["type"], "conversation_initiation_client_data");
    assert_eq!(sent[0]["dynamic_variables"]["simulation_result_id"], "42");
    line.receive(json!({ "type": "conversation_initiation_metadata", "conversation_initiation_metadata_event": {
        "conversation_id": "c1", "agent_output_audio_format": "pcm_8000", "user_input_audio_format": "ulaw_8000" } }));
    assert!(line.is_open() && line.seen.contains(&SessionOutput::CallNamed("c1".to_owned())));
    line.pass(20);
    let (sent, _) = line.take_sent();
    let audio = STANDARD.decode(sent[0]["user_audio_chunk"].as_str().expect("a text")).expect("base64");
    assert_eq!((sent[0].get("type"), audio.len()), (None, 160), "as the platform said: mu-law of 8 kHz");
    line.receive(json!({ "type": "interruption", "interruption_event": { "event_id": 7 } }));
    for id in 6..=8 {
        line.receive(json!({ "type": "audio", "audio_event": { "event_id": id, "audio_base_64": sound(100, 8000) } }));
    }
    assert!((1500..=1600).contains(&line.heard.len()), "only one of three: {}", line.heard.len());
    line.receive(json!({ "type": "ping", "ping_event": { "event_id": 3, "ping_ms": 20 } }));
    assert_eq!(line.take_sent().0, [json!({ "type": "pong", "event_id": 3 })]);
    line.receive(json!({ "type": "client_tool_call", "client_tool_call": { "tool_name": "look", "tool_call_id": "t1",
        "parameters": { "a": 1 } } }));
    let answer = json!({ "type": "client_tool_result", "tool_call_id": "t1", "result": "{}", "is_error": false });
    assert_eq!(line.take_sent().0, [answer]);
}

/// Case 38: JSON in binary messages.
#[test]
fn json_may_come_in_binary_messages() {
    let mut line = Line::new(json!({ "preset": "gemini_live" }));
    let (sent, _) = line.take_sent();
    assert_eq!(sent[0]["setup"]["model"], "models/a/1");
    line.receive_binary(b"{\"setupComplete\":{}}".to_vec());
    assert!(line.is_open());
    line.pass(20);
    let (sent, _) = line.take_sent();
    assert_eq!(sent[0]["realtimeInput"]["audio"]["mimeType"], "audio/pcm;rate=16000");
    let parts = json!([{ "inlineData": { "mimeType": "audio/pcm;rate=24000", "data": sound(100, 24_000) } },
        { "text": "thinks" }, { "inlineData": { "data": sound(100, 24_000) } }]);
    line.receive_binary(json!({ "serverContent": { "modelTurn": { "parts": parts } } }).to_string().into_bytes());
    assert!((3100..=3200).contains(&line.heard.len()), "{}", line.heard.len());
    for piece in ["Hel", "lo."] {
        line.receive(json!({ "serverContent": { "outputTranscription": { "text": piece } } }));
    }
    line.receive(json!({ "serverContent": { "interrupted": true } }));
    assert_eq!(line.texts(), ["Hello."]);
    assert!(line.seen.iter().any(|output| matches!(output, SessionOutput::Cleared { .. })));
    line.receive(json!({ "toolCall": { "functionCalls": [{ "id": "1", "name": "a", "args": {} },
        { "id": "2", "name": "b", "args": { "x": 2 } }] } }));
    let (sent, _) = line.take_sent();
    assert_eq!(sent.len(), 2);
    assert_eq!(
        sent[1],
        json!({ "toolResponse": { "functionResponses": [{ "id": "2", "name": "b", "response": {} }] } })
    );
}

/// Case 39: a session that is not ready gets no audio, and ends.
#[test]
fn a_session_that_never_gets_ready_gets_no_audio() {
    let mut line = Line::preset("deepgram_voice_agent");
    line.receive(json!({ "type": "Welcome", "request_id": "r1" }));
    let (sent, _) = line.take_sent();
    assert_eq!(sent[0]["audio"]["input"], json!({ "encoding": "linear16", "sample_rate": 24000 }));
    line.pass(9900);
    assert_eq!((line.take_sent(), line.end()), ((vec![], 0), None));
    line.pass(200);
    assert_eq!(line.end(), Some(&SessionEnd::NoAnswer));
}

#[test]
fn binary_audio_flows_once_settings_are_applied() {
    let mut line = Line::preset("deepgram_voice_agent");
    line.receive(json!({ "type": "Welcome" }));
    line.receive_binary(loud(480));
    assert!(line.heard.is_empty(), "nothing is played before");
    line.receive(json!({ "type": "SettingsApplied" }));
    line.take_sent();
    line.pass(100);
    assert_eq!(line.take_sent(), (vec![], 5));
    line.receive_binary(loud(2400));
    assert!(line.heard.len() > 1500);
    line.receive(json!({ "type": "ConversationText", "role": "user", "content": "no" }));
    line.receive(json!({ "type": "ConversationText", "role": "assistant", "content": "yes" }));
    assert_eq!(line.texts(), ["yes"]);
    line.receive(json!({ "type": "FunctionCallRequest", "functions": [
        { "id": "1", "name": "a", "arguments": "{\"x\":1}", "client_side": true },
        { "id": "2", "name": "b", "arguments": "", "client_side": false }] }));
    let (sent, _) = line.take_sent();
    assert_eq!(sent, [json!({ "type": "FunctionCallResponse", "id": "1", "name": "a", "content": "{}" })]);
    let tools: Vec<&SessionOutput> =
        line.seen.iter().filter(|output| matches!(output, SessionOutput::ToolCalled { .. })).collect();
    let called = SessionOutput::ToolCalled { name: "a".into(), parameters: json!({ "x": 1 }), output: json!({}) };
    assert_eq!((tools.len(), tools[0]), (2, &called));
    line.receive(json!({ "type": "Warning", "code": "SLOW" }));
    assert_eq!(line.end(), None);
    line.receive(json!({ "type": "Error", "code": "BROKEN", "description": "with secret-key" }));
    assert_eq!(line.end(), Some(&SessionEnd::PeerFault("BROKEN: with (secret)".to_owned())));
}

/// The header of a file is no sound, and a compressed file has no samples.
#[test]
fn headers_of_files_are_not_played() {
    let header = |start: &[u8]| [start, &[0; 4], b"WAVEfmt ", &[0x7f; 28]].concat();
    for (bytes, heard) in [
        ([header(b"RIFF"), loud(320)].concat(), 320),
        (header(b"RIFF")[..40].to_vec(), 0),
        ([b"ID3".to_vec(), loud(320)].concat(), 0),
    ] {
        let mut line = Line::preset("vapi_websocket");
        line.receive_binary(bytes);
        let told = |output: &SessionOutput| matches!(output, SessionOutput::Violation { code: "AUDIO_HEADER", .. });
        assert_eq!((line.heard.len(), line.seen.iter().filter(|output| told(output)).count()), (heard, 1));
    }
    let mut line = Line::preset("vapi_websocket");
    line.receive_binary([header(b"RIFX"), loud(320)].concat());
    assert_eq!(line.heard.len(), 342, "anything else is sound");
}

/// Case 40: pieces of any size are one stream.
#[test]
fn pieces_of_an_odd_size_have_no_click() {
    let mut line = Line::preset("vapi_websocket");
    let wave = |at: usize| ((at as f64 * 0.1).sin() * 8000.0) as i16;
    let bytes: Vec<u8> = (0..8000).flat_map(|at| wave(at).to_le_bytes()).collect();
    bytes.chunks(371).for_each(|piece| line.receive_binary(piece.to_vec()));
    assert_eq!(line.heard, (0..8000).map(wave).collect::<Vec<i16>>());
    line.order(SessionControl::Hangup);
    assert_eq!(line.take_sent().0, [json!({ "type": "end-call" })]);
    assert_eq!(line.end(), Some(&SessionEnd::Own));
}

#[test]
fn pieces_of_text_are_put_together() {
    let mut line = Line::preset("ultravox");
    line.receive(json!({ "type": "call_started", "callId": "u1" }));
    assert!(line.is_open() && line.seen.contains(&SessionOutput::CallNamed("u1".to_owned())));
    let said =
        |delta: &str, is_last: bool| json!({ "type": "transcript", "role": "agent", "delta": delta, "final": is_last });
    line.receive(json!({ "type": "transcript", "role": "user", "text": "mine", "final": true }));
    line.receive(said("Good ", false));
    line.receive(said("day.", true));
    line.receive(json!({ "type": "transcript", "role": "agent", "text": "Whole.", "final": true }));
    assert_eq!(line.texts(), ["Good day.", "Whole."]);
    line.receive_binary(loud(16_000));
    line.receive(json!({ "type": "playback_clear_buffer" }));
    assert!(line.seen.contains(&SessionOutput::Cleared { dropped: 16_000 }));
    line.order(SessionControl::Hangup);
    assert_eq!(line.take_sent().0, [json!({ "type": "hang_up" })]);
}

#[test]
fn tools_are_answered_as_settings_say() {
    let mut line = Line::new(json!({ "preset": "assemblyai_voice_agent", "tool_answers": { "look": "{\"n\":1}" } }));
    line.receive(json!({ "type": "session.ready" }));
    line.take_sent();
    for id in ["1", "2"] {
        line.receive(json!({ "type": "tool.call", "call_id": id, "name": "look", "arguments": {} }));
    }
    assert_eq!(line.take_sent().0, [] as [Value; 0], "the answer waits for the end of the reply");
    line.receive(json!({ "type": "reply.done" }));
    let answer = |id: &str| json!({ "type": "tool.result", "call_id": id, "result": "{\"n\":1}" });
    assert_eq!(line.take_sent().0, [answer("1"), answer("2")]);
    let mut line = realtime();
    line.take_sent();
    for id in ["1", "2"] {
        line.receive(json!({ "type": "response.function_call_arguments.done", "call_id": id, "name": "a",
            "arguments": "{}" }));
    }
    assert_eq!(line.take_sent().0.len(), 2, "each has its output at once");
    line.receive(json!({ "type": "response.done" }));
    line.receive(json!({ "type": "response.done" }));
    assert_eq!(line.take_sent().0, [json!({ "type": "response.create" })], "one new response for both");
}

#[test]
fn an_agent_that_does_not_begin_ends_the_call() {
    let silent = || {
        let mut line = realtime();
        line.pass(10_000);
        line
    };
    let mut line = silent();
    line.pass(19_900);
    assert_eq!(line.end(), None);
    line.pass(200);
    assert_eq!(line.end(), Some(&SessionEnd::NoStart));
    let mut line = silent();
    line.order(SessionControl::UtteranceStarted);
    line.pass(25_000);
    line.order(SessionControl::UtteranceCompleted);
    line.pass(29_900);
    assert_eq!(line.end(), None, "its turn begins when this side has spoken");
    line.pass(200);
    assert_eq!(line.end(), Some(&SessionEnd::NoStart));
    let mut line = silent();
    line.receive(json!({ "type": "response.output_audio.delta", "item_id": "i", "content_index": 0,
        "delta": sound(100, 24_000) }));
    line.pass(60_000);
    assert_eq!(line.end(), None);
}

fn error(code: &str) -> Value {
    json!({ "type": "error", "error": { "code": code, "message": "m" } })
}

#[test]
fn errors_end_a_call_where_the_settings_say_so() {
    let mut line = realtime();
    line.receive(error("invalid_value"));
    assert_eq!(line.end(), None);
    line.receive(error("session_expired"));
    assert_eq!(line.end(), Some(&SessionEnd::Limit("session_expired: m".to_owned())));
    let mut line = realtime();
    line.receive(error("insufficient_quota"));
    assert_eq!(line.end(), Some(&SessionEnd::PeerFault("insufficient_quota: m".to_owned())));
    let mut line = Line::preset("openai_realtime");
    line.receive(error("invalid_value"));
    let refused = "invalid_value: m".to_owned();
    assert_eq!(line.end(), Some(&SessionEnd::PeerFault(refused)), "a session that is refused never gets ready");
    for (bad, code) in [(r#"{"type":"#, "NOT_JSON"), ("[1]", "NOT_OBJECT")] {
        let mut line = realtime();
        line.session.receive(line.now, Message::Text(bad.to_owned()));
        line.drain();
        assert!(matches!(line.seen.last(), Some(SessionOutput::Violation { code: found, .. }) if *found == code));
    }
}

#[test]
fn no_event_holds_a_secret() {
    let mut line = realtime();
    for text in [
        "bad key secret-key".to_owned(),
        r#"["secret-key"]"#.to_owned(),
        json!({ "type": "response.output_audio.delta", "delta": "?secret-key" }).to_string(),
        json!({ "type": "response.output_audio_transcript.done", "transcript": "It is secret-key." }).to_string(),
        json!({ "type": "response.function_call_arguments.done", "call_id": "1", "name": "secret-key",
            "arguments": "{\"key\":\"secret-key\"}" })
        .to_string(),
        error("secret-key").to_string(),
    ] {
        let seen = line.seen.len();
        line.session.receive(line.now, Message::Text(text.clone()));
        line.drain();
        let events: Vec<String> = line.seen[seen..].iter().map(|output| format!("{output:?}")).collect();
        assert!(events.iter().any(|event| event.contains("(secret)")), "{text}: {events:?}");
        assert!(!events.iter().any(|event| event.contains("secret-key")), "{text}: {events:?}");
    }
}

#[test]
fn a_protocol_of_the_settings_alone_is_spoken() {
    let mut line = Line::new(json!({
        "transport": "websocket", "url": "wss://h/{{agent.id}}?for={{digital_human.name}}", "rate": 8000,
        "encoding": "PCMU", "ready": "ok", "first": "{\"hello\": \"{{result.id}}\"}",
        "audio_out": { "type": "in", "pointer": "/data/audio" },
        "audio_in": { "type": "out", "pointer": "/data/audio" }, "text": { "type": "said", "pointer": "/text" },
        "end": { "type": "bye" },
    }));
    assert_eq!(line.take_sent().0, [json!({ "hello": "42" })]);
    line.receive(json!({ "type": "ok" }));
    line.pass(20);
    let silence = STANDARD.encode([0xff; 160]);
    assert_eq!(line.take_sent().0, [json!({ "type": "in", "data": { "audio": silence } })]);
    line.receive(json!({ "type": "out", "data": { "audio": silence } }));
    assert_eq!(line.heard.len(), 320);
    line.receive(json!({ "type": "out", "data": { "audio": "?" } }));
    assert!(matches!(line.seen.last(), Some(SessionOutput::Violation { code: "BAD_BASE64", .. })));
    line.receive(json!({ "type": "bye" }));
    assert_eq!(line.end(), Some(&SessionEnd::Peer));
}
