//! Sessions in virtual time: one side alone, or both of them with a player behind each.

mod carriers;
mod channel;
mod default;
mod numbered;
mod pairs;
mod settings;

use std::collections::VecDeque;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringer_media::seed::Seed;
use ringer_media::time::Time;
use serde_json::Value;

use super::{Dialect, Kind, Message, Session, SessionControl, SessionFacts, SessionOutput};

/// Samples of a frame.
const FRAME: usize = 320;

/// A session with a player of 20 ms behind it.
struct Side {
    session: Session,
    now: Time,
    /// Audio that waits for the player, and what it has played, silence included.
    queue: VecDeque<i16>,
    /// Samples of the queue that are on their way, and the most that may be.
    given: usize,
    most: Option<u64>,
    heard: Vec<i16>,
    sent: Vec<Message>,
    /// Everything else that came out, with the time.
    seen: Vec<(u64, SessionOutput)>,
}

impl Side {
    fn new(session: Session) -> Side {
        Side {
            session,
            now: Time(1_000_000_000),
            queue: VecDeque::new(),
            given: 0,
            most: None,
            heard: Vec::new(),
            sent: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Returns a caller whose socket is open.
    fn caller(dialect: Dialect) -> Side {
        let mut side = Side::new(Session::caller(dialect, facts()));
        side.open();
        side
    }

    fn of(kind: Kind) -> Side {
        Side::caller(Dialect::new(kind))
    }

    fn open(&mut self) {
        self.session.on_open(self.now);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.session.poll() {
            match output {
                SessionOutput::Send(message) => self.sent.push(message),
                SessionOutput::Frames(pcm) => self.queue.extend(pcm),
                SessionOutput::ClearFrames => {
                    self.queue.clear();
                    self.given = 0;
                }
                SessionOutput::HoldFrames(most) => self.most = most,
                other => self.seen.push((self.ms(), other)),
            }
            self.hand_on();
        }
    }

    /// Moves audio on its way, as much as the session allows.
    fn hand_on(&mut self) {
        let most = self.most.map_or(self.queue.len(), |most| self.queue.len().min(most as usize));
        self.given = self.given.max(most);
    }

    /// Returns the milliseconds since the socket was opened.
    fn ms(&self) -> u64 {
        self.now.0 / 1_000_000 - 1000
    }

    /// Lets 20 ms pass in which this side says `frame`.
    fn say(&mut self, frame: &[i16]) {
        self.now = self.now + Duration::from_millis(20);
        let count = self.given.min(FRAME);
        self.heard.extend(self.queue.drain(..count));
        self.given -= count;
        self.hand_on();
        self.heard.resize(self.heard.len() + FRAME - count, 0);
        self.session.set_unplayed(self.now, self.queue.len() as u64);
        self.session.tick(self.now);
        self.session.frame(self.now, frame);
        self.drain();
    }

    /// Lets `ms` milliseconds pass in silence.
    fn wait(&mut self, ms: u64) {
        (0..ms / 20).for_each(|_| self.say(&[0; FRAME]));
    }

    fn receive(&mut self, message: Message) {
        self.session.receive(self.now, message);
        self.drain();
    }

    fn text(&mut self, text: &str) {
        self.receive(Message::Text(text.to_owned()));
    }

    fn binary(&mut self, bytes: &[u8]) {
        self.receive(Message::Binary(bytes.to_vec()));
    }

    fn order(&mut self, control: SessionControl) {
        self.session.control(self.now, control);
        self.drain();
    }

    /// Returns the text messages that were sent since the last call, as JSON.
    fn texts(&mut self) -> Vec<Value> {
        let sent = std::mem::take(&mut self.sent);
        let texts = sent.into_iter().filter_map(|message| match message {
            Message::Text(text) => Some(serde_json::from_str(&text).expect("what is sent is JSON")),
            Message::Binary(_) => None,
        });
        texts.collect()
    }

    /// Returns the text messages but those of audio.
    fn control_texts(&mut self) -> Vec<Value> {
        self.texts().into_iter().filter(|text| text["event"] != "media").collect()
    }

    fn codes(&self) -> Vec<&str> {
        let codes = self.seen.iter().filter_map(|(_, output)| match output {
            SessionOutput::Violation { code, .. } => Some(*code),
            _ => None,
        });
        codes.collect()
    }

    fn has_seen(&self, wanted: &SessionOutput) -> bool {
        self.seen.iter().any(|(_, output)| output == wanted)
    }

    fn events(&self) -> Vec<&str> {
        let events = self.seen.iter().filter_map(|(_, output)| match output {
            SessionOutput::Event { name, .. } => Some(*name),
            _ => None,
        });
        events.collect()
    }

    /// Returns the close that was ordered, if any.
    fn close(&self) -> Option<(u16, &str)> {
        self.seen.iter().find_map(|(_, output)| match output {
            SessionOutput::Close { code, reason } => Some((*code, *reason)),
            SessionOutput::Drop => Some((1006, "")),
            _ => None,
        })
    }
}

fn facts() -> SessionFacts {
    SessionFacts {
        from: "+15550100".to_owned(),
        to: "+15550101".to_owned(),
        ..SessionFacts::new(13_062, "wss://h/a", Seed(7), Time(1_000_000_000), 1_767_225_600_000)
    }
}

/// Returns `ms` milliseconds of a tone at 16 kHz.
fn tone(hz: f64, ms: usize, from: usize) -> Vec<i16> {
    let at = |sample: usize| (from + sample) as f64 / 16_000.0;
    (0..16 * ms).map(|sample| (8000.0 * (std::f64::consts::TAU * hz * at(sample)).sin()).round() as i16).collect()
}

/// Returns the level of a frequency in a piece of audio, 1 for the tone of [`tone`].
fn level(pcm: &[i16], hz: f64) -> f64 {
    let (mut re, mut im) = (0.0, 0.0);
    for (at, sample) in pcm.iter().enumerate() {
        let phase = std::f64::consts::TAU * hz * at as f64 / 16_000.0;
        re += f64::from(*sample) * phase.cos();
        im += f64::from(*sample) * phase.sin();
    }
    2.0 * (re * re + im * im).sqrt() / pcm.len() as f64 / 8000.0
}

/// Returns a text message of mu-law audio in the words of `kind`.
fn media(side: &Side, bytes: &[u8]) -> String {
    let payload = STANDARD.encode(bytes);
    let stream = stream(side);
    match side.session.dialect().kind {
        Kind::TwilioMediaStreams | Kind::SignalwireStream => {
            format!(r#"{{"event":"media","streamSid":"{stream}","media":{{"payload":"{payload}"}}}}"#)
        }
        Kind::ExotelAgentstream => {
            format!(r#"{{"event":"media","stream_sid":"{stream}","media":{{"payload":"{payload}"}}}}"#)
        }
        Kind::TelnyxMediaStreaming => format!(r#"{{"event":"media","media":{{"payload":"{payload}"}}}}"#),
        _ => format!(r#"{{"event":"playAudio","media":{{"payload":"{payload}"}}}}"#),
    }
}

/// Returns the stream's name in what was sent and not taken yet.
fn stream(side: &Side) -> String {
    let named = side.sent.iter().find_map(|message| match message {
        Message::Text(text) => {
            let text: Value = serde_json::from_str(text).ok()?;
            let at = |path: &str| text.pointer(path).and_then(Value::as_str).map(str::to_owned);
            at("/start/streamSid")
                .or_else(|| at("/start/stream_sid"))
                .or_else(|| at("/start/streamId"))
                .or_else(|| at("/id"))
        }
        Message::Binary(_) => None,
    });
    named.unwrap_or_default()
}
