//! Sessions of carriers' protocols against the serializers of other people's programs, without sockets: what one side
//! writes the other side reads, both ways.

mod far_sides;
mod platforms;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringer::transport::websocket::{Dialect, Kind, Message, Session, SessionControl, SessionFacts, SessionOutput};
use ringer_media::seed::Seed;
use ringer_media::time::Time;
use serde_json::{Value, json};

use crate::calls::peers::level_at;

/// Samples of 20 ms at 16 kHz.
const FRAME: usize = 320;

/// The other people's serializers, as a program that answers line by line.
struct Judge {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Judge {
    fn new() -> Judge {
        Judge::of("dialects.py")
    }

    /// Returns the judge of a script.
    fn of(script: &str) -> Judge {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = folder.join(".venv/bin/python");
        let started = Command::new(&python)
            .arg(folder.join("tests/python").join(script))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = started
            .unwrap_or_else(|error| panic!("{}: {error}; `make peers` installs the Python packages", python.display()));
        let orders = child.stdin.take().expect("it is piped");
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        Judge { child, orders, answers }
    }

    fn ask(&mut self, order: &Value) -> Value {
        writeln!(self.orders, "{order}").expect("it reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no answer to {order}: {line:?}"))
    }

    fn read_by_judge(&mut self, message: &Message) -> Value {
        match message {
            Message::Text(text) => self.ask(&json!({ "read": text })),
            Message::Binary(bytes) => self.ask(&json!({ "read_binary": STANDARD.encode(bytes) })),
        }
    }

    /// Returns the message of the agent's side for a frame of audio, or to take audio back.
    fn write(&mut self, what: &str, rate: u32) -> Option<Message> {
        let made = self.ask(&json!({ "write": what, "rate": rate }));
        match (made["text"].as_str(), made["binary"].as_str()) {
            (Some(text), _) => Some(Message::Text(text.to_owned())),
            (_, Some(bytes)) if !bytes.is_empty() => Some(Message::Binary(STANDARD.decode(bytes).expect("base64"))),
            _ => None,
        }
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        // It ends with its input, which is closed by then at the latest.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A caller, what it has sent and what it has told.
struct Caller {
    session: Session,
    now: Time,
    heard: Vec<i16>,
    seen: Vec<SessionOutput>,
}

impl Caller {
    fn new(dialect: Dialect) -> Caller {
        let facts = SessionFacts {
            from: "+15550100".to_owned(),
            to: "+15550101".to_owned(),
            ..SessionFacts::new(13_062, "wss://h/a", Seed(7), Time(0), 1_767_225_600_000)
        };
        Caller { session: Session::caller(dialect, facts), now: Time(0), heard: Vec::new(), seen: Vec::new() }
    }

    /// Takes the messages that are to be sent; everything is played at once.
    fn take_sent(&mut self) -> Vec<Message> {
        let mut sent = Vec::new();
        while let Some(output) = self.session.poll() {
            match output {
                SessionOutput::Send(message) => sent.push(message),
                SessionOutput::Frames(pcm) => self.heard.extend(pcm),
                other => self.seen.push(other),
            }
        }
        self.session.set_unplayed(self.now, 0);
        sent
    }

    fn say(&mut self, pcm: &[i16]) -> Vec<Message> {
        self.now = self.now + Duration::from_millis(20);
        self.session.tick(self.now);
        self.session.frame(self.now, pcm);
        self.take_sent()
    }

    fn violations(&self) -> Vec<&SessionOutput> {
        self.seen.iter().filter(|output| matches!(output, SessionOutput::Violation { .. })).collect()
    }
}

fn tone(hz: f64, rate: u32, from: usize, count: usize) -> Vec<i16> {
    let at = |sample: usize| (from + sample) as f64 / f64::from(rate);
    (0..count).map(|sample| (8000.0 * (std::f64::consts::TAU * hz * at(sample)).sin()) as i16).collect()
}

fn bytes_of(pcm: &[i16]) -> String {
    STANDARD.encode(pcm.iter().flat_map(|sample| sample.to_le_bytes()).collect::<Vec<u8>>())
}

fn samples_of(text: &str) -> Vec<i16> {
    let bytes = STANDARD.decode(text).expect("base64");
    bytes.chunks_exact(2).map(|two| i16::from_le_bytes([two[0], two[1]])).collect()
}

/// Returns the names of the stream and of the call in an opening message.
fn names(opening: &[Message]) -> (String, String) {
    let mut texts = opening.iter().filter_map(|message| match message {
        Message::Text(text) => serde_json::from_str::<Value>(text).ok(),
        Message::Binary(_) => None,
    });
    let start = texts.next_back().unwrap_or_default();
    let at = |paths: &[&str]| {
        let found = paths.iter().find_map(|path| start.pointer(path)).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    (
        at(&["/start/streamSid", "/start/stream_sid", "/start/streamId", "/stream_id"]),
        at(&["/start/callSid", "/start/call_sid", "/start/callId", "/start/call_control_id"]),
    )
}

#[test]
fn serializers_of_a_framework_hear_and_are_heard() {
    let kinds = [
        Kind::TwilioMediaStreams,
        Kind::SignalwireStream,
        Kind::TelnyxMediaStreaming,
        Kind::PlivoAudioStreaming,
        Kind::ExotelAgentstream,
        Kind::VonageWebsocket,
        Kind::Audiohook,
        Kind::PipecatProtobuf,
    ];
    let mut judge = Judge::new();
    for kind in kinds {
        let mut caller = Caller::new(Dialect::new(kind));
        caller.session.on_open(caller.now);
        let opening = caller.take_sent();
        let (stream, call) = names(&opening);
        let rate = caller.session.dialect().wire.rate_hz;
        judge.ask(&json!({ "new": kind.name(), "stream": stream, "call": call, "rate": rate }));
        for message in &opening {
            answer(&mut judge, &mut caller, message);
        }
        // The caller's tone arrives, and so does a key.
        let mut heard = Vec::new();
        for at in 0..100 {
            for message in caller.say(&tone(700.0, 16_000, at * FRAME, FRAME)) {
                heard.extend(answer(&mut judge, &mut caller, &message));
            }
        }
        let own = level_at(&heard[8000..24_000], 700.0) / 8000.0;
        assert!((0.95..1.05).contains(&own), "{kind:?} {own}");
        caller.session.control(caller.now, SessionControl::Digit { digit: '5', duration_ms: 100 });
        let digits: Vec<Value> = caller.take_sent().iter().map(|message| judge.read_by_judge(message)).collect();
        let expect = if kind == Kind::PipecatProtobuf { vec![] } else { vec![json!({"frame": "digit", "digit": "5"})] };
        assert_eq!(digits, expect, "{kind:?}");
        // The agent's tone is heard, and taken back.
        let chunk = if kind == Kind::ExotelAgentstream { 4800 } else { 480 };
        caller.heard.clear();
        for at in 0..48_000 / chunk {
            let pcm = bytes_of(&tone(900.0, 24_000, at * chunk, chunk));
            if let Some(message) = judge.write(&pcm, 24_000) {
                caller.session.receive(caller.now, message);
                caller.take_sent();
            }
        }
        let theirs = level_at(&caller.heard[8000..24_000], 900.0) / 8000.0;
        assert!((0.95..1.05).contains(&theirs), "{kind:?} {theirs}");
        let clear = judge.write("clear", 0).expect("an interruption is a message");
        caller.session.receive(caller.now, clear);
        caller.take_sent();
        assert!(caller.seen.iter().any(|output| matches!(output, SessionOutput::Cleared { .. })), "{kind:?}");
        let serious = caller
            .violations()
            .into_iter()
            .filter(|output| !matches!(output, SessionOutput::Violation { code: "BAD_CHUNK_SIZE", .. }));
        assert_eq!(serious.collect::<Vec<_>>(), Vec::<&SessionOutput>::new(), "{kind:?}");
    }
}

/// Has a message read; an answer goes back to the caller. Returns the audio in it.
fn answer(judge: &mut Judge, caller: &mut Caller, message: &Message) -> Vec<i16> {
    let read = judge.read_by_judge(message);
    match read["frame"].as_str() {
        Some("audio") => {
            assert_eq!((&read["rate"], &read["channels"]), (&json!(16_000), &json!(1)));
            samples_of(read["audio"].as_str().expect("audio"))
        }
        Some("answer") => {
            let text = read["text"].as_str().expect("a text").to_owned();
            caller.session.receive(caller.now, Message::Text(text));
            // Messages of the caller to it are read in turn.
            let more = caller.take_sent();
            more.iter().flat_map(|message| answer(judge, caller, message)).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn a_framework_knows_the_carrier_by_its_first_messages() {
    let mut judge = Judge::new();
    for (kind, expect) in [
        (Kind::TwilioMediaStreams, "twilio"),
        (Kind::TelnyxMediaStreaming, "telnyx"),
        (Kind::PlivoAudioStreaming, "plivo"),
        (Kind::ExotelAgentstream, "exotel"),
    ] {
        let mut caller = Caller::new(Dialect::new(kind));
        caller.session.on_open(caller.now);
        let mut sent = caller.take_sent();
        (0..5).for_each(|_| sent.extend(caller.say(&[0; FRAME])));
        let (stream, call) = names(&sent[..if kind == Kind::PlivoAudioStreaming { 1 } else { 2 }]);
        let texts: Vec<&str> = sent
            .iter()
            .filter_map(|message| if let Message::Text(text) = message { Some(text.as_str()) } else { None })
            .collect();
        let found = judge.ask(&json!({ "detect": texts }));
        assert_eq!(found["kind"], expect);
        assert_eq!((&found["data"]["stream_id"], &found["data"]["call_id"]), (&json!(stream), &json!(call)), "{found}");
        if expect == "telnyx" || expect == "exotel" {
            assert_eq!((&found["data"]["from"], &found["data"]["to"]), (&json!("+15550100"), &json!("+15550101")));
        }
        if expect == "twilio" {
            assert_eq!(found["data"]["body"], json!({"simulation_result_id": "13062"}));
        }
    }
}

#[test]
fn a_session_of_a_platform_is_closed_by_both() {
    let mut judge = Judge::new();
    let mut caller = Caller::new(Dialect::new(Kind::Audiohook));
    caller.session.on_open(caller.now);
    judge.ask(&json!({ "new": "audiohook" }));
    for message in caller.take_sent() {
        answer(&mut judge, &mut caller, &message);
    }
    // Pings are answered, with the numbers that the caller expects.
    for _ in 0..400 {
        for message in caller.say(&[0; FRAME]) {
            answer(&mut judge, &mut caller, &message);
        }
    }
    caller.session.control(caller.now, SessionControl::Hangup);
    for message in caller.take_sent() {
        answer(&mut judge, &mut caller, &message);
    }
    let closed = SessionOutput::Close { code: 1000, reason: "call ended" };
    assert_eq!(caller.seen.last(), Some(&closed), "{:?}", caller.seen);
    assert_eq!(caller.violations(), Vec::<&SessionOutput>::new());
    assert!(!caller.seen.iter().any(|output| matches!(output, SessionOutput::Event { .. })), "{:?}", caller.seen);
}

#[test]
fn a_double_of_a_carrier_and_the_engine_say_the_same() {
    let mut judge = Judge::new();
    let mut caller = Caller::new(Dialect::new(Kind::TwilioMediaStreams));
    caller.session.on_open(caller.now);
    let mut sent = caller.take_sent();
    let (stream, _) = names(&sent);
    (0..2).for_each(|_| sent.extend(caller.say(&[0; FRAME])));
    let mark = json!({"event": "mark", "streamSid": stream, "mark": {"name": "m"}});
    caller.session.receive(caller.now, Message::Text(mark.to_string()));
    caller.session.control(caller.now, SessionControl::Digit { digit: '7', duration_ms: 100 });
    caller.session.control(caller.now, SessionControl::Hangup);
    sent.extend(caller.take_sent());

    let silence = STANDARD.encode([0xff; 160]);
    let order = json!([["connected"], ["start", {"simulation_result_id": "13062"}], ["media", silence], ["media", silence],
        ["mark", "m"], ["dtmf", "7"], ["stop"]]);
    let doubled = judge.ask(&json!({ "doubled": order }));
    let doubled = doubled["texts"].as_array().expect("texts");
    assert_eq!(sent.len(), doubled.len());
    let mut agent =
        Session::agent(Dialect::new(Kind::TwilioMediaStreams), SessionFacts::new(0, "ws://h", Seed(1), Time(0), 0));
    agent.on_open(Time(0));
    for (ours, theirs) in sent.iter().zip(doubled) {
        let Message::Text(ours) = ours else { panic!("{ours:?}") };
        let ours: Value = serde_json::from_str(ours).expect("JSON");
        let text = theirs.as_str().expect("a text");
        let theirs: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(nameless(&ours), nameless(&theirs));
        agent.receive(Time(0), Message::Text(text.to_owned()));
    }
    let seen: Vec<SessionOutput> = std::iter::from_fn(|| agent.poll()).collect();
    let is = |wanted: fn(&SessionOutput) -> bool| seen.iter().any(wanted);
    assert!(is(|output| matches!(output, SessionOutput::Called(facts) if facts.result_id.as_deref() == Some("13062"))));
    assert!(is(|output| matches!(output, SessionOutput::Frames(pcm) if pcm.len() == FRAME)));
    assert!(is(|output| *output == SessionOutput::MarkReached("m".to_owned())));
    assert!(is(|output| *output == SessionOutput::Digit('7')));
    assert!(is(|output| matches!(output, SessionOutput::Ended(_))));
    assert!(!is(|output| matches!(output, SessionOutput::Violation { .. })), "{seen:?}");
}

#[test]
fn a_double_of_a_carrier_takes_what_an_agent_sends() {
    let mut judge = Judge::new();
    let texts = judge.ask(&json!({ "doubled": [["connected"], ["start", {}]] }));
    let mut agent =
        Session::agent(Dialect::new(Kind::TwilioMediaStreams), SessionFacts::new(0, "ws://h", Seed(1), Time(0), 0));
    agent.on_open(Time(0));
    let texts = texts["texts"].as_array().expect("texts");
    texts.iter().for_each(|text| agent.receive(Time(0), Message::Text(text.as_str().unwrap_or_default().to_owned())));
    agent.frame(Time(0), &[1000; FRAME]);
    agent.control(Time(0), SessionControl::Mark("m".to_owned()));
    agent.control(Time(0), SessionControl::Clear);
    let start: Value = serde_json::from_str(texts[1].as_str().unwrap_or_default()).expect("JSON");
    let mut outputs = Vec::new();
    while let Some(output) = agent.poll() {
        if let SessionOutput::Send(Message::Text(text)) = output {
            outputs.push(judge.ask(&json!({ "double": text, "stream": start["streamSid"] })));
        }
    }
    let expect = [("InboundMedia", Value::Null), ("InboundMark", json!("m")), ("InboundClear", Value::Null)];
    assert_eq!(outputs, expect.map(|(double, name)| json!({"double": double, "name": name})));
}

/// Returns a message without the names that each call draws anew.
fn nameless(message: &Value) -> Value {
    match message {
        Value::Object(members) => {
            let kept = members.iter().map(|(key, value)| {
                let is_name = ["streamSid", "callSid", "accountSid"].contains(&key.as_str());
                (key.clone(), if is_name { json!("name") } else { nameless(value) })
            });
            Value::Object(kept.collect())
        }
        other => other.clone(),
    }
}
