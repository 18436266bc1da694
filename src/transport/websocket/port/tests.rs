//! States of a connection, attempts, and what of messages becomes a signal.

mod misfit;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringer_media::seed::Seed;

use super::*;
use crate::websocket::Kind;
use crate::websocket::voice::Wire;

/// A driver without sockets and clock.
struct Rig {
    port: WebSocketPort,
    now: Time,
    sent: Vec<Message>,
    orders: Vec<SocketOrder>,
    signals: Vec<Signal>,
    log: Vec<String>,
    warnings: Vec<String>,
}

impl Rig {
    fn new() -> Rig {
        Rig::of(WebSocketPort::caller(Dialect::new(Kind::Default), facts(), DialRules::default()))
    }

    fn of(port: WebSocketPort) -> Rig {
        let (sent, orders, signals, log) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut rig = Rig { port, now: Time(0), sent, orders, signals, log, warnings: Vec::new() };
        rig.drain();
        rig
    }

    fn opening() -> Rig {
        let mut rig = Rig::new();
        rig.port.on_open(rig.now, "127.0.0.1:1".to_owned());
        rig.drain();
        rig
    }

    fn open() -> Rig {
        let mut rig = Rig::opening();
        rig.receive(Message::Binary(vec![0; 640]));
        assert!(matches!(rig.signals.pop(), Some(Signal::Answered { code: 101, .. })));
        rig
    }

    /// Returns a rig whose socket is open, on a dialect.
    fn on(kind: Kind) -> Rig {
        let mut rig = Rig::of(WebSocketPort::caller(Dialect::new(kind), facts(), DialRules::default()));
        rig.port.on_open(rig.now, "127.0.0.1:1".to_owned());
        rig.drain();
        rig
    }

    /// Lets time pass, at the end of which so many samples are not heard yet.
    fn unheard(&mut self, ms: u64, samples: u64) {
        self.now = self.now + Duration::from_millis(ms);
        self.port.tick(self.now, samples);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.port.poll() {
            match output {
                PortOutput::Act(WebSocketAction::Send(SocketOrder::Send(message))) => self.sent.push(message),
                PortOutput::Act(WebSocketAction::Send(order)) => self.orders.push(order),
                PortOutput::Signal(signal) => self.signals.push(signal),
                PortOutput::Log(_, line) => self.log.push(line),
                PortOutput::Warning(text) => self.warnings.push(text),
                _ => {}
            }
        }
    }

    fn pass(&mut self, ms: u64) {
        for _ in 0..ms / 20 {
            self.now = self.now + Duration::from_millis(20);
            self.port.tick(self.now, 0);
            self.drain();
        }
    }

    fn receive(&mut self, message: Message) {
        self.port.receive(self.now, message);
        self.drain();
    }

    fn end(&self) -> Option<(RemoteKind, Option<u16>, Option<u16>)> {
        self.signals.iter().find_map(|signal| match signal {
            Signal::Ended(remote) => Some((remote.kind, remote.close_code(), remote.http_status())),
            _ => None,
        })
    }

    /// Returns the data of the events of this name that were told.
    fn events_of(&self, wanted: &str) -> impl Iterator<Item = &Value> {
        self.signals.iter().filter_map(move |signal| match signal {
            Signal::Channel { event: ChannelEvent::Other { name, data }, .. } if name == wanted => Some(data),
            _ => None,
        })
    }

    /// Types of the text messages that were sent, and `-` for each run of audio.
    fn order_of_messages(&self) -> Vec<String> {
        let kinds = self.sent.iter().map(|message| match message {
            Message::Text(text) => {
                let value: Value = serde_json::from_str(text).expect("it is JSON");
                value["type"].as_str().expect("it has a type").to_owned()
            }
            Message::Binary(_) => "-".to_owned(),
        });
        let mut kinds: Vec<String> = kinds.collect();
        kinds.dedup();
        kinds
    }
}

fn facts() -> SessionFacts {
    SessionFacts::new(7, "ws://u:secret@h/a?token=secret", Seed(3), Time(0), 1_767_225_600_000)
}

fn unreachable() -> DialFault {
    DialFault::Unreachable { status: None, why: "the connection was refused".to_owned() }
}

#[test]
fn attempts_are_repeated_with_growing_waits() {
    let mut rig = Rig::new();
    assert_eq!(rig.signals, [Signal::Dialing { address: "ws://h/a".to_owned() }]);
    for (attempt, least_ms) in [500, 1000, 2000].into_iter().enumerate() {
        rig.port.on_failure(rig.now, &unreachable());
        rig.drain();
        let Some(SocketOrder::Dial { after }) = rig.orders.last() else { panic!("{:?}", rig.orders) };
        let wait_ms = after.as_secs_f64() * 1000.0;
        assert!((f64::from(least_ms)..=1.2 * f64::from(least_ms)).contains(&wait_ms), "{attempt}: {wait_ms}");
        assert_eq!(rig.end(), None);
    }
    rig.port.on_failure(rig.now, &unreachable());
    rig.drain();
    assert_eq!(rig.end(), Some((RemoteKind::Unreachable, None, None)));
    assert_eq!(rig.orders.last(), Some(&SocketOrder::Drop));
    rig.port.on_failure(rig.now, &unreachable());
    rig.drain();
    assert_eq!(rig.signals.iter().filter(|signal| matches!(signal, Signal::Ended(_))).count(), 1);
}

#[test]
fn each_answer_to_the_upgrade_has_its_end() {
    let status = |status| DialFault::Refused { status: Some(status), why: String::new() };
    for (fault, expect) in [
        (DialFault::Unauthorized(401), Some((RemoteKind::AuthFailed, None, Some(401)))),
        (DialFault::Unauthorized(403), Some((RemoteKind::AuthFailed, None, Some(403)))),
        (status(302), Some((RemoteKind::Refused, None, Some(302)))),
        (status(404), Some((RemoteKind::Refused, None, Some(404)))),
        (DialFault::Busy(429), None),
        (DialFault::Busy(503), None),
        (unreachable(), None),
    ] {
        let mut rig = Rig::new();
        rig.port.on_failure(rig.now, &fault);
        rig.drain();
        assert_eq!(rig.end(), expect, "{fault:?}");
    }
    let rules = DialRules { retries: 0, ..DialRules::default() };
    let mut rig = Rig::of(WebSocketPort::caller(Dialect::new(Kind::Default), facts(), rules));
    rig.port.on_failure(rig.now, &DialFault::Busy(503));
    rig.drain();
    assert_eq!(rig.end(), Some((RemoteKind::Refused, None, Some(503))));
}

#[test]
fn audio_flows_before_the_session_is_established() {
    let mut rig = Rig::opening();
    rig.pass(1980);
    assert_eq!(rig.sent.len(), 99);
    assert!(rig.sent.iter().all(|message| *message == Message::Binary(vec![0; 640])));
    assert!(!rig.signals.iter().any(|signal| matches!(signal, Signal::Answered { .. })));
    rig.pass(40);
    assert!(rig.signals.iter().any(|signal| matches!(signal, Signal::Answered { code: 101, .. })));
    assert!(!rig.port.needs_ticks(), "frames of the call take the place of ticks");
    let sent = rig.sent.len();
    rig.pass(100);
    assert_eq!(rig.sent.len(), sent, "the call sends by itself");
}

/// The start of a carrier's session stands before it, and each attempt tells it anew.
#[test]
fn the_agent_can_speak_once_the_socket_is_open_and_the_start_was_sent() {
    for kind in [Kind::Default, Kind::TwilioMediaStreams] {
        let mut port = WebSocketPort::caller(Dialect::new(kind), facts(), DialRules::default());
        let outputs = |port: &mut WebSocketPort| -> Vec<PortOutput<WebSocketAction>> {
            std::iter::from_fn(|| port.poll()).collect()
        };
        outputs(&mut port);
        for attempt in 0..2 {
            port.on_open(Time(attempt), "127.0.0.1:1".to_owned());
            let came = outputs(&mut port);
            let is_ready = |output: &PortOutput<WebSocketAction>| *output == PortOutput::Signal(Signal::Ready);
            let start = |output: &PortOutput<WebSocketAction>| {
                matches!(output, PortOutput::Act(WebSocketAction::Send(SocketOrder::Send(Message::Text(text))))
                    if text.contains("\"start\""))
            };
            assert_eq!(came.iter().filter(|output| is_ready(output)).count(), 1, "{kind:?}");
            if kind == Kind::TwilioMediaStreams {
                assert!(came.iter().position(start) < came.iter().position(is_ready), "{came:?}");
            }
            port.on_loss(Time(attempt), "gone");
            outputs(&mut port);
        }
    }
}

#[test]
fn ends_of_the_other_side() {
    for (code, opening, open) in [
        (1000, None, RemoteKind::Bye),
        (1001, None, RemoteKind::Bye),
        (1005, None, RemoteKind::Bye),
        (1002, None, RemoteKind::Lost),
        (1003, None, RemoteKind::Lost),
        (1008, Some(RemoteKind::AuthFailed), RemoteKind::Lost),
        (1009, None, RemoteKind::Lost),
        (1011, None, RemoteKind::Lost),
        (4000, None, RemoteKind::Lost),
    ] {
        let mut rig = Rig::opening();
        rig.port.on_close(rig.now, code, "");
        rig.drain();
        assert_eq!(rig.end().map(|(kind, ..)| kind), opening, "{code}, and else it is dialled again");
        let mut rig = Rig::open();
        rig.port.on_close(rig.now, code, "over\u{7}");
        rig.drain();
        assert_eq!(rig.end(), Some((open, Some(code), None)), "{code}");
    }
    let mut rig = Rig::opening();
    rig.port.on_loss(rig.now, "gone");
    rig.drain();
    assert!(matches!(rig.orders.last(), Some(SocketOrder::Dial { after }) if *after >= Duration::from_millis(500)));
    let mut rig = Rig::open();
    rig.port.on_loss(rig.now, "gone");
    rig.drain();
    assert_eq!(rig.end(), Some((RemoteKind::Lost, None, None)));
    let mut rig = Rig::of(WebSocketPort::incoming(Role::Caller, Dialect::new(Kind::Default), facts()));
    rig.port.on_open(rig.now, "127.0.0.1:1".to_owned());
    rig.port.on_loss(rig.now, "gone");
    rig.drain();
    assert_eq!(rig.end(), Some((RemoteKind::Unreachable, None, None)), "nobody can be dialled again");
}

#[test]
fn utterances_are_announced_around_their_frames() {
    let mut rig = Rig::open();
    rig.sent.clear();
    let frame = |rig: &mut Rig, from: Sample| rig.port.frame(rig.now, from, &[1; FRAME]);
    frame(&mut rig, 0);
    rig.port.utterance(rig.now, 320, true);
    rig.drain();
    assert_eq!(rig.order_of_messages(), ["-"], "its first frame has not come");
    frame(&mut rig, 320);
    frame(&mut rig, 640);
    rig.port.utterance(rig.now, 960, false);
    rig.drain();
    assert_eq!(rig.order_of_messages(), ["-", "speech.started", "-", "speech.completed"]);
    // A bad connection holds frames back: the end waits for the last one.
    rig.sent.clear();
    rig.port.utterance(rig.now, 960, true);
    rig.port.utterance(rig.now, 1600, false);
    frame(&mut rig, 960);
    rig.drain();
    assert_eq!(rig.order_of_messages(), ["speech.started", "-"]);
    frame(&mut rig, 1280);
    rig.drain();
    assert_eq!(rig.order_of_messages(), ["speech.started", "-", "speech.completed"]);
    // A message that does not come any more ends at once.
    rig.sent.clear();
    rig.port.utterance(rig.now, 1600, true);
    frame(&mut rig, 1600);
    rig.port.utterance(rig.now, 9600, false);
    rig.port.on_silence(rig.now);
    rig.drain();
    assert_eq!(rig.order_of_messages(), ["speech.started", "-", "speech.completed"]);
}

#[test]
fn a_call_that_ends_closes_in_order() {
    for (control, code, reason) in [
        (Control::Hangup(HangupCause::Normal), 1000, "call ended"),
        (Control::Hangup(HangupCause::Timer), 1000, "call ended"),
        (Control::Hangup(HangupCause::Shutdown), 1001, "going away"),
        (Control::Hangup(HangupCause::Fault), 1011, "internal error"),
    ] {
        let mut rig = Rig::open();
        rig.sent.clear();
        rig.port.control(&control);
        rig.drain();
        assert_eq!(rig.orders.last(), Some(&SocketOrder::Close { code, reason }));
        assert_eq!(rig.order_of_messages().last().map(String::as_str), (code == 1011).then_some("session.error"));
        rig.port.on_close(rig.now, 1000, "");
        rig.port.on_loss(rig.now, "gone");
        rig.drain();
        assert_eq!(rig.end(), None, "the call has ended by itself");
    }
    let mut rig = Rig::new();
    rig.port.control(&Control::Cancel);
    rig.drain();
    assert_eq!(rig.orders.last(), Some(&SocketOrder::Drop));
    rig.port.on_open(rig.now, "127.0.0.1:1".to_owned());
    rig.drain();
    assert_eq!(rig.orders.last(), Some(&SocketOrder::Drop), "a socket that opens too late is given up");
}

#[test]
fn messages_of_the_other_side_are_signals_and_lines() {
    let mut rig = Rig::open();
    rig.port.upgrade(rig.now);
    rig.signals.clear();
    rig.receive(Message::Text(r#"{"type":"speech.started","data":{"utterance_id":"a1"}}"#.to_owned()));
    rig.receive(Message::Text(r#"{"type":"session.error","data":{"code":"C","message":"M"}}"#.to_owned()));
    rig.receive(Message::Text("{".to_owned()));
    rig.receive(Message::Binary(vec![0; 64_000]));
    let name_of = |signal: &Signal| match signal {
        Signal::Channel { event, .. } => event.name(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        rig.signals.iter().map(name_of).collect::<Vec<_>>(),
        ["agent_speech_event", "agent_error", "dialect_violation"]
    );
    assert_eq!(rig.port.agent_errors().len(), 1);
    assert_eq!((&*rig.port.agent_errors()[0].code, &*rig.port.agent_errors()[0].message), ("C", "M"));
    rig.pass(11_000);
    let log = rig.log.join("\n");
    assert!(log.contains("< {\"type\":\"session.error\"") && log.contains("< audio: 2 messages, 64640 bytes"), "{log}");
    assert!(log.contains("GET ws://h/a?...") && !log.contains("secret"), "{log}");
}

#[test]
fn a_flood_of_events_is_cut_off() {
    let mut rig = Rig::open();
    rig.signals.clear();
    for _ in 0..MAX_EVENTS + 100 {
        rig.receive(Message::Text(r#"{"type":"session.error","data":{"code":"C","message":"M"}}"#.to_owned()));
    }
    assert_eq!(rig.signals.len(), MAX_EVENTS - 1);
    // A message that it begins to speak still acts.
    rig.receive(Message::Text(r#"{"type":"speech.started","data":{"utterance_id":"a"}}"#.to_owned()));
    assert_eq!(rig.signals.len(), MAX_EVENTS);
    assert_eq!(rig.end(), None);
}

#[test]
fn too_many_violations_end_the_call() {
    let mut rig = Rig::open();
    for _ in 0..100 {
        rig.receive(Message::Binary(vec![0; 3]));
    }
    assert_eq!(rig.end(), Some((RemoteKind::Lost, None, None)));
    assert_eq!(rig.orders.last(), Some(&SocketOrder::Close { code: 1008, reason: "too many protocol errors" }));
}

#[test]
fn addresses_are_shown_without_what_may_be_secret() {
    for (url, expect) in
        [("wss://u:p@h:8443/a/b?key=k#f", "wss://h:8443/a/b"), ("ws://h", "ws://h"), ("ws://u@h?k", "ws://h")]
    {
        assert_eq!(without_secrets(url), expect);
    }
}

#[test]
fn a_hundred_refused_messages_are_one_warning() {
    let facts = SessionFacts::new(7, "ws://h/a", Seed(3), Time(0), 1_767_225_600_000);
    let dialect = Dialect::new(Kind::TwilioMediaStreams);
    let mut rig = Rig::of(WebSocketPort::caller(dialect, facts, DialRules::default()));
    rig.port.on_open(rig.now, "127.0.0.1:1".to_owned());
    rig.drain();
    rig.pass(3000);
    assert_eq!(rig.port.refused_warning(), None);
    let start = rig.sent.iter().find_map(|message| match message {
        Message::Text(text) if text.contains("\"start\"") => serde_json::from_str::<Value>(text).ok(),
        _ => None,
    });
    let stream = start.expect("it begins")["streamSid"].clone();
    let message = json!({ "event": "media", "streamSid": stream, "media": { "payload": "*" } }).to_string();
    for _ in 0..100 {
        rig.receive(Message::Text(message.clone()));
    }
    assert_eq!(rig.port.refused_warning().as_deref(), Some("100 messages refused, BAD_BASE64"));
}

/// A bot of 8 kHz on each dialect of 16 kHz and more, and one of 24 kHz.
#[test]
fn audio_of_another_rate_is_told_within_two_seconds() {
    for (kind, bytes, expect) in [
        (Kind::Default, 320, "the agent sends 0.5 times real time: is its rate 8000?"),
        (Kind::Default, 960, "the agent sends 1.5 times real time: is its rate 24000?"),
        (Kind::RawPcm16, 320, "the agent sends 0.5 times real time: is its rate 8000?"),
        (Kind::TwilioMediaStreams, 480, "the agent sends 3 times real time: is its rate 24000?"),
        (Kind::PlivoAudioStreaming, 480, "the agent sends 3 times real time: is its rate 24000?"),
        (Kind::TelnyxMediaStreaming, 480, "the agent sends 3 times real time: is its rate 24000?"),
        (Kind::VonageWebsocket, 320, "the agent sends 0.5 times real time: is its rate 8000?"),
        (Kind::PipecatProtobuf, 640, "the agent sends 0.67 times real time: is its rate 16000?"),
    ] {
        let mut rig = Rig::on(kind);
        let message = agent_audio(kind, &rig, bytes);
        for _ in 0..100 {
            rig.receive(message.clone());
            rig.pass(20);
        }
        let events: Vec<&Value> = rig.events_of("rate_mismatch").collect();
        assert!(matches!(events[..], [data] if data["message"] == expect), "{kind:?}: {events:?}");
        assert_eq!(rig.warnings, [expect], "{kind:?}");
        // At real time nothing is told.
        let mut rig = Rig::on(kind);
        let message = agent_audio(kind, &rig, Dialect::new(kind).agent_wire.bytes(20));
        for _ in 0..300 {
            rig.receive(message.clone());
            rig.pass(20);
        }
        assert_eq!(rig.events_of("rate_mismatch").count(), 0, "{kind:?}");
    }
}

#[test]
fn a_wav_header_of_another_rate_is_told() {
    let mut header = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
    header.extend(24_000_u32.to_le_bytes());
    header.resize(44, 0);
    for kind in [Kind::Default, Kind::RawPcm16, Kind::VonageWebsocket] {
        let mut rig = Rig::of(WebSocketPort::caller(Dialect::new(kind), facts(), DialRules::default()));
        rig.port.on_open(rig.now, "127.0.0.1:1".to_owned());
        rig.receive(Message::Binary(header.clone()));
        let expect = "the agent's audio has a WAV header of 24000 Hz, and is played at 16000 Hz";
        assert_eq!(rig.warnings, [expect], "{kind:?}");
    }
}

/// Returns a message of so many bytes of audio in the words of an agent.
fn agent_audio(kind: Kind, rig: &Rig, bytes: usize) -> Message {
    agent_audio_of(kind, rig, &vec![1; bytes])
}

/// Returns a message of this audio in the words of an agent.
fn agent_audio_of(kind: Kind, rig: &Rig, audio: &[u8]) -> Message {
    let payload = || STANDARD.encode(audio);
    let sent = |path: &str| {
        let text = rig.sent.iter().find_map(|message| match message {
            Message::Text(text) => serde_json::from_str::<Value>(text).ok()?.pointer(path)?.as_str().map(str::to_owned),
            Message::Binary(_) => None,
        });
        text.unwrap_or_default()
    };
    match kind {
        Kind::TwilioMediaStreams => {
            let message =
                json!({ "event": "media", "streamSid": sent("/start/streamSid"), "media": { "payload": payload() } });
            Message::Text(message.to_string())
        }
        Kind::TelnyxMediaStreaming => {
            Message::Text(json!({ "event": "media", "media": { "payload": payload() } }).to_string())
        }
        Kind::PlivoAudioStreaming => {
            Message::Text(json!({ "event": "playAudio", "media": { "payload": payload() } }).to_string())
        }
        Kind::PipecatProtobuf => {
            // Frame {audio {audio, sample_rate 24000, num_channels 1}} (protobuf, proto3).
            let length = |len: usize| [(len & 0x7f | 0x80) as u8, (len >> 7) as u8];
            let mut inner = vec![26];
            inner.extend(length(audio.len()));
            inner.extend(audio);
            inner.extend([32, 0xc0, 0xbb, 1, 40, 1]);
            let mut frame = vec![18];
            frame.extend(length(inner.len()));
            frame.extend(inner);
            Message::Binary(frame)
        }
        _ => Message::Binary(audio.to_vec()),
    }
}

/// A goodbye in a burst and then the end: what a carrier would cut is told, on every dialect.
#[test]
fn audio_that_was_sent_and_not_played_is_told() {
    for kind in [
        Kind::Default,
        Kind::RawPcm16,
        Kind::TwilioMediaStreams,
        Kind::PlivoAudioStreaming,
        Kind::TelnyxMediaStreaming,
        Kind::VonageWebsocket,
        Kind::PipecatProtobuf,
    ] {
        let wire = Dialect::new(kind).agent_wire;
        let burst = |rig: &mut Rig, count: usize| {
            let message = agent_audio_of(kind, rig, &loud(wire.bytes(20)));
            (0..count).for_each(|_| rig.receive(message.clone()));
        };
        // 6 s at once; after 300 ms the agent closes.
        let mut rig = Rig::on(kind);
        burst(&mut rig, 300);
        rig.unheard(300, 16 * 5700);
        rig.port.on_close(rig.now, 1000, "");
        rig.drain();
        let events: Vec<&Value> = rig.events_of("audio_not_played").collect();
        let expect = json!({ "unplayed_ms": 5700 });
        assert!(matches!(events[..], [data] if near(data, &expect)), "{kind:?}: {events:?}");
        let expect = "5.7 s of the agent's audio were sent and not played, as the carrier would cut them";
        assert_eq!(rig.warnings, [expect], "{kind:?}");
        assert_eq!(rig.end().map(|(kind, ..)| kind), Some(RemoteKind::Bye));
        // It is told before the end.
        let is_told = |signal: &Signal| matches!(signal, Signal::Channel { event: ChannelEvent::Other { .. }, .. });
        let is_end = |signal: &Signal| matches!(signal, Signal::Ended(_));
        assert!(rig.signals.iter().position(is_told) < rig.signals.iter().position(is_end), "{kind:?}");
        // 200 ms ahead, and silence however long, are not worth a word; nor is what this side cuts by hanging up.
        let mut rig = Rig::on(kind);
        burst(&mut rig, 10);
        let silence = match kind {
            Kind::TwilioMediaStreams | Kind::PlivoAudioStreaming | Kind::TelnyxMediaStreaming => 0xff,
            _ => 0,
        };
        let message = agent_audio_of(kind, &rig, &vec![silence; wire.bytes(20)]);
        (0..100).for_each(|_| rig.receive(message.clone()));
        rig.port.on_close(rig.now, 1000, "");
        rig.drain();
        assert_eq!((rig.events_of("audio_not_played").count(), rig.warnings.len()), (0, 0), "{kind:?}");
        let mut rig = Rig::on(kind);
        burst(&mut rig, 300);
        rig.port.control(&Control::Hangup(HangupCause::Normal));
        rig.port.on_close(rig.now, 1000, "");
        rig.drain();
        assert_eq!(rig.warnings, [""; 0], "{kind:?}");
    }
}

#[test]
fn audio_that_the_agent_took_back_is_not_missed() {
    let mut rig = Rig::on(Kind::TwilioMediaStreams);
    let message = agent_audio_of(Kind::TwilioMediaStreams, &rig, &loud(160));
    (0..300).for_each(|_| rig.receive(message.clone()));
    let Message::Text(text) = message else { panic!("it is text") };
    let text: Value = serde_json::from_str(&text).expect("JSON");
    rig.receive(Message::Text(json!({ "event": "clear", "streamSid": text["streamSid"] }).to_string()));
    rig.port.on_close(rig.now, 1000, "");
    rig.drain();
    assert_eq!((rig.events_of("audio_not_played").count(), rig.warnings.len()), (0, 0));
}

/// A recognizer is told the rate at which the agent's audio comes, and not that of the frames.
#[test]
fn the_leg_tells_the_bandwidth_of_the_agents_audio() {
    let settings = |kind, rate| {
        let dialect = Dialect::new(kind);
        Dialect { agent_wire: Wire { rate_hz: rate, ..dialect.agent_wire }, ..dialect }
    };
    for (dialect, first, expect) in [
        (Dialect::new(Kind::Default), None, 16_000),
        (Dialect::new(Kind::TwilioMediaStreams), None, 8000),
        (Dialect::new(Kind::TelnyxMediaStreaming), None, 8000),
        (Dialect::new(Kind::VonageWebsocket), None, 16_000),
        (settings(Kind::RawPcm16, 8000), None, 8000),
        (settings(Kind::RawPcm16, 24_000), None, 16_000),
        (Dialect::new(Kind::PipecatProtobuf), None, 16_000),
        // Audio {audio, sample_rate 8000, num_channels 1} as the first message.
        (Dialect::new(Kind::PipecatProtobuf), Some(vec![18, 9, 26, 2, 0, 0, 32, 0xc0, 0x3e, 40, 1]), 8000),
    ] {
        let mut rig = Rig::of(WebSocketPort::caller(dialect.clone(), facts(), DialRules::default()));
        rig.port.on_open(rig.now, "127.0.0.1:1".to_owned());
        first.into_iter().for_each(|bytes| rig.receive(Message::Binary(bytes)));
        rig.pass(2100);
        let leg = rig.signals.iter().find_map(|signal| match signal {
            Signal::Answered { leg, .. } => Some(*leg),
            _ => None,
        });
        let rates = leg.map(|leg| (leg.rate_hz(), leg.heard_rate_hz()));
        assert_eq!(rates, Some((16_000, expect)), "{dialect:?}");
    }
}

/// Returns so many bytes of audio that are loud in every encoding.
fn loud(bytes: usize) -> Vec<u8> {
    vec![0x20; bytes]
}

/// True where two numbers of milliseconds differ by the rounding of a resampler at most.
fn near(data: &Value, expect: &Value) -> bool {
    let of = |value: &Value| value["unplayed_ms"].as_i64().unwrap_or_default();
    (of(data) - of(expect)).abs() <= 5
}
