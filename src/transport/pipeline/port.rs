//! A pipeline as the port of a call: news of its connection become signals, controls become orders. It keeps the state
//! of the connection up to the end. The same for both sides; the answering one tells the caller of its own speech.

mod tools;

use std::collections::VecDeque;
use std::net::SocketAddr;

use ringer_media::call::{ChannelEvent, Control, EndDetail, Event, EventKind, RemoteEnd, RemoteKind, Signal};
use ringer_media::leg::MediaParams;
use ringer_media::time::Time;
use serde_json::{Value, json};

use self::tools::Tools;
use super::rtvi::RtviEvent;
use super::{Order, PipelineEnd, PipelineFault, PipelineNews, PlatformOffer, Reason};
use crate::fault::FaultKind;
use crate::peer::{AgentError, PeerInfo, PortOutput, without_secrets};

/// Most events of the other side that go into a timeline.
const MAX_EVENTS: usize = 5000;

/// Most errors of the other side that are kept with the result.
const MAX_ERRORS: usize = 100;

/// Most characters of the message of an error.
const ERROR_CHARS: usize = 500;

/// Most lines of the log.
const MAX_LINES: usize = 20_000;

/// Keys that the protocol knows.
const KEYS: &str = "0123456789*#";

/// Status of the answer that a connection comes about by: that of HTTP.
const ANSWERED: u16 = 200;

/// State of the connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    /// Requests are out, or the peers look for a path.
    Opening,
    /// The call is up.
    Open,
    /// The connection is over, or the call is.
    Over,
}

/// The side of the connection that this one plays.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Client of the pipeline, which makes the offer.
    Caller,
    /// Pipeline, which answers the offer.
    Agent,
}

/// A connection that came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Connected {
    /// Parameters of the audio.
    pub media: MediaParams,
    /// Name that the pipeline gave the connection.
    pub pc_id: Option<String>,
    /// Address of this side and that of the other one.
    pub path: Option<(SocketAddr, SocketAddr)>,
    /// Time since which the agent can be heard; `None`: since now.
    pub heard_since: Option<Time>,
}

/// The pipeline's side of one call.
#[derive(Debug)]
pub struct PipelinePort {
    part: Part,
    state: State,
    /// The same moment on both clocks.
    epoch: (Time, i64),
    now: Time,
    out: VecDeque<PortOutput<Order>>,
    peer: PeerInfo,
    tools: Tools,
    events: usize,
    lines: usize,
    errors: Vec<AgentError>,
    next_id: u64,
    /// Name of the platform that the agent is on.
    platform: Option<String>,
}

impl PipelinePort {
    /// Returns the port of a call to the pipeline at `url`; `now` and `epoch_ms` are the same moment.
    pub fn caller(url: &str, now: Time, epoch_ms: i64) -> PipelinePort {
        let mut port = PipelinePort::new(Part::Caller, now, epoch_ms);
        let address = without_secrets(url);
        port.log(format!("> POST {}/api/offer", address.trim_end_matches('/')));
        port.signal(Signal::Dialing { address });
        port
    }

    /// Returns the port of a call to an agent on a platform, to which the offer goes.
    pub fn platform(offer: &PlatformOffer, now: Time, epoch_ms: i64) -> PipelinePort {
        let mut port = PipelinePort::new(Part::Caller, now, epoch_ms);
        let address = offer.shown.clone();
        port.log(format!("> POST {address}"));
        port.signal(Signal::Dialing { address });
        PipelinePort { platform: Some(offer.platform.clone()), ..port }
    }

    /// Returns the port of a call that came in under the name `pc_id`.
    pub fn incoming(pc_id: &str, now: Time, epoch_ms: i64) -> PipelinePort {
        let mut port = PipelinePort::new(Part::Agent, now, epoch_ms);
        port.peer.call_id = pc_id.to_owned();
        port.log("< POST /api/offer".to_owned());
        port
    }

    fn new(part: Part, now: Time, epoch_ms: i64) -> PipelinePort {
        let peer = PeerInfo {
            protocol: "WebRTC",
            codec: Some("OPUS"),
            profile: Some("UDP/TLS/RTP/SAVPF"),
            ..PeerInfo::default()
        };
        PipelinePort {
            part,
            state: State::Opening,
            epoch: (now, epoch_ms),
            now,
            out: VecDeque::new(),
            peer,
            tools: Tools::default(),
            events: 0,
            lines: 0,
            errors: Vec::new(),
            next_id: 0,
            platform: None,
        }
    }

    /// Takes the news that media can flow.
    pub fn open(&mut self, now: Time, connected: Connected) {
        self.now = now;
        if self.state != State::Opening {
            return;
        }
        self.state = State::Open;
        self.tools.begin(now);
        self.peer.address = connected.path.map(|(_, there)| there.to_string());
        self.peer.call_id = connected.pc_id.unwrap_or_default();
        self.log(format!("connected to {}", self.peer.address.as_deref().unwrap_or("an unknown address")));
        self.signal(Signal::UpSince(connected.heard_since.unwrap_or(now).min(now)));
        self.signal(Signal::Answered { code: ANSWERED, leg: connected.media.into(), text: true });
    }

    /// Takes news of the connection, and of the other side's messages.
    pub fn receive(&mut self, now: Time, news: PipelineNews) {
        self.now = now;
        if self.state != State::Open {
            return;
        }
        for call in self.tools.late(now) {
            self.tell(call);
        }
        match news {
            PipelineNews::Event(at, event) => {
                self.now = at.max(self.epoch.0);
                self.take_event(event);
            }
            PipelineNews::Restarts => {
                self.log("the connection is lost and is made anew".to_owned());
                self.tell_other("connection_restarts", json!({}));
            }
            PipelineNews::Restarted(media) => {
                self.log("the connection is back".to_owned());
                self.signal(Signal::Renegotiated { leg: media.into() });
                self.tell_other("connection_restarted", json!({}));
            }
            PipelineNews::Digit(digit) => {
                self.log("< dtmf".to_owned());
                self.signal(Signal::DigitMessage { digit, duration_ms: 0 });
            }
            PipelineNews::Warning(text) => self.out.push_back(PortOutput::Warning(text)),
        }
    }

    /// Takes the end of the connection, or the news that none came about.
    pub fn finish(&mut self, now: Time, end: PipelineEnd) {
        self.now = now;
        if self.state == State::Over {
            return;
        }
        for call in self.tools.all() {
            self.tell(call);
        }
        match end {
            PipelineEnd::HungUp => {
                self.log("> closed".to_owned());
                self.state = State::Over;
            }
            PipelineEnd::AgentLeft => {
                self.log("< closed".to_owned());
                self.end(RemoteKind::Bye, EndDetail::None, String::new());
            }
            PipelineEnd::Failed(fault) => self.fail(&fault),
        }
    }

    /// Takes a control of the Call.
    pub fn control(&mut self, control: &Control) {
        match control {
            Control::Cancel | Control::Hangup(_) => {
                if self.state != State::Over {
                    self.log("> hang up".to_owned());
                    self.order(Order::HangUp);
                }
                self.state = State::Over;
            }
            Control::Digit { digit, .. } => {
                // The protocol has no other digits; these are heard as tones alone.
                if self.part == Part::Caller && KEYS.contains(*digit) {
                    self.say("dtmf", json!({ "buttons": [digit.to_string()] }));
                }
            }
            // There are no transfers.
            Control::CancelTarget | Control::Transfer(_) => {}
        }
    }

    /// Tells the caller of this side's own speech, where this side is the pipeline.
    pub fn own_event(&mut self, event: &Event) {
        if self.part != Part::Agent || self.state != State::Open {
            return;
        }
        match &event.what {
            EventKind::SpeechStarted { .. } => self.say("bot-started-speaking", Value::Null),
            EventKind::SpeechEnded { text, interrupted, .. } => {
                self.say("bot-transcription", json!({ "text": text.as_str() }));
                self.say("bot-stopped-speaking", Value::Null);
                if *interrupted {
                    self.say("bot-interrupted", Value::Null);
                }
            }
            EventKind::AgentSpeechStarted { .. } => self.say("user-started-speaking", Value::Null),
            EventKind::AgentSpeechEnded { .. } => self.say("user-stopped-speaking", Value::Null),
            _ => {}
        }
    }

    /// Returns calls of tools whose results had not come when this side hung up. The Call takes no more events then.
    pub fn take_unfinished(&mut self) -> Vec<ChannelEvent> {
        self.tools.all()
    }

    /// Returns the next output.
    pub fn poll(&mut self) -> Option<PortOutput<Order>> {
        self.out.pop_front()
    }

    /// Returns the other side, as far as it is known.
    pub fn peer(&self) -> &PeerInfo {
        &self.peer
    }

    /// Returns the errors that the other side told of.
    pub fn agent_errors(&self) -> &[AgentError] {
        &self.errors
    }

    /// True when nothing more happens.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    fn take_event(&mut self, event: RtviEvent) {
        match event {
            RtviEvent::Ready(version) => self.tell_other("agent_ready", json!({ "version": version })),
            RtviEvent::NotReady => self.tell_other("agent_not_ready", json!({})),
            RtviEvent::AgentText(text) => {
                self.log("< bot-transcription".to_owned());
                self.tell(ChannelEvent::Reported { text });
            }
            RtviEvent::CallerText { is_final: false, .. } => {}
            RtviEvent::CallerText { text, .. } => self.tell_other("caller_reported", json!({ "text": text })),
            RtviEvent::AgentSpeaks(true) => self.tell_other("agent_started_speaking", json!({})),
            RtviEvent::AgentSpeaks(false) => self.tell_other("agent_stopped_speaking", json!({})),
            RtviEvent::CallerSpeaks(true) => self.tell_other("caller_started_speaking", json!({})),
            RtviEvent::CallerSpeaks(false) => self.tell_other("caller_stopped_speaking", json!({})),
            RtviEvent::Interrupted => self.tell_other("agent_interrupted", json!({})),
            RtviEvent::Tool(news) => {
                self.log("< a call of a tool".to_owned());
                if let Some(call) = self.tools.take(self.now, news) {
                    self.tell(call);
                }
            }
            RtviEvent::Metrics(data) => self.tell_other("agent_metrics", data),
            RtviEvent::Error { message, is_fatal } => self.keep_error(&message, is_fatal),
            // The end of the connection follows.
            RtviEvent::Left => {}
            RtviEvent::Renegotiate => self.tell_other("agent_renegotiates", json!({})),
            RtviEvent::Other { kind, data } => self.tell_other("agent_message", json!({ "type": kind, "data": data })),
        }
    }

    fn keep_error(&mut self, message: &str, is_fatal: bool) {
        let code = if is_fatal { "FATAL" } else { "ERROR" }.to_owned();
        let message: String = message.chars().take(ERROR_CHARS).collect();
        if self.errors.len() < MAX_ERRORS {
            let at_ms = self.epoch_ms();
            self.errors.push(AgentError { code: code.clone(), message: message.clone(), at_ms });
        }
        self.tell(ChannelEvent::Error { code, message });
    }

    fn fail(&mut self, fault: &PipelineFault) {
        self.log(fault.to_string());
        let was_open = self.state == State::Open;
        let kind = match &fault.reason {
            _ if was_open => RemoteKind::Lost,
            Reason::Status(401 | 403) => RemoteKind::AuthFailed,
            Reason::Status(_) | Reason::Unusable(_) | Reason::Room | Reason::Agent(_) | Reason::NoEvents => {
                RemoteKind::Refused
            }
            Reason::NoAnswer(_) | Reason::Late(_) | Reason::Local(_) | Reason::Peer(_) => RemoteKind::Unreachable,
        };
        let name = match (&self.platform, &fault.reason) {
            // A platform that is busy says so in either way.
            (Some(_), Reason::Status(503)) => FaultKind::Busy.as_str().to_owned(),
            (platform, _) => fault.kind().name_at(platform.as_deref(), was_open),
        };
        self.end(kind, EndDetail::Pipeline { kind: name }, fault.to_string());
    }

    fn end(&mut self, kind: RemoteKind, detail: EndDetail, text: String) {
        self.state = State::Over;
        self.signal(Signal::Ended(RemoteEnd { kind, detail, text }));
    }

    /// Sends a message of RTVI.
    fn say(&mut self, kind: &str, data: Value) {
        self.next_id += 1;
        let mut message = json!({ "label": "rtvi-ai", "type": kind, "id": format!("m{}", self.next_id) });
        if !data.is_null() {
            message["data"] = data;
        }
        self.log(format!("> {kind}"));
        self.order(Order::Send(message.to_string()));
    }

    fn tell_other(&mut self, name: &'static str, data: Value) {
        self.log(format!("< {name}"));
        self.tell(ChannelEvent::Other { name: name.into(), data });
    }

    fn tell(&mut self, event: ChannelEvent) {
        self.events += 1;
        if self.events == MAX_EVENTS {
            let text =
                format!("the agent sent more than {MAX_EVENTS} messages that are events: later ones are not kept");
            self.out.push_back(PortOutput::Warning(text));
        } else if self.events < MAX_EVENTS {
            self.signal(Signal::Channel { event, follows_own: false });
        }
    }

    fn signal(&mut self, signal: Signal) {
        self.out.push_back(PortOutput::Signal(signal));
    }

    fn order(&mut self, order: Order) {
        self.out.push_back(PortOutput::Act(order));
    }

    fn log(&mut self, line: String) {
        self.lines += 1;
        if self.lines <= MAX_LINES {
            let at_ms = self.epoch_ms();
            self.out.push_back(PortOutput::Log(at_ms, line));
        }
    }

    fn epoch_ms(&self) -> i64 {
        self.epoch.1 + self.now.since(self.epoch.0).as_millis() as i64
    }
}

#[cfg(test)]
mod tests;
