//! A WebSocket as the port of a call: what its session of messages says becomes signals, controls become messages. It
//! keeps the state of the connection up to the end, and decides which attempts are repeated.

mod ends;
mod log;
mod order;
mod resume;
mod script;
mod told;

use std::collections::VecDeque;
use std::time::Duration;

use ringer_media::call::{ChannelEvent, Control, HangupCause, RATE_MISMATCH, RemoteEnd, RemoteKind, Signal};
use ringer_media::frame::{FRAME, PER_MS, SILENCE, Sample};
use ringer_media::leg::PcmParams;
use ringer_media::seed::Stream;
use ringer_media::time::Time;
use serde_json::{Value, json};

use self::log::MessageLog;
pub use self::order::{DialRules, SocketOrder, WebSocketAction};
use self::told::Refused;
use super::dial::DialFault;
use super::handshake::Upgrade;
use super::voice::Encoding;
use super::{Dialect, Kind, Message, Role, Session, SessionControl, SessionFacts, SessionOutput};
use crate::fault::AdapterFault;
use crate::peer::{AgentError, PeerInfo, PortOutput, without_secrets};

/// Rate of the frames between the call and the session, in Hz.
const RATE_HZ: u32 = 16_000;

/// Most events of the other side that go into a timeline.
const MAX_EVENTS: usize = 5000;
/// Most messages of the other side that it begins to speak.
const MAX_CLAIMS: usize = 5000;
/// Most characters of a text that the other side tells of its words at once.
const TEXT_CHARS: usize = 4000;
/// Most bytes of the data of an event, and of the values that are handed over at the end, as JSON.
const MAX_DATA: usize = 16_384;

/// Most of the time between two attempts that is drawn: a fifth of the fixed time.
const JITTER: f64 = 0.2;

/// Code of a close without one (RFC 6455 7.4.1).
const NO_CODE: u16 = 1005;

/// Code of a close because of a rule, which stands for refused credentials while a session is opened.
const POLICY: u16 = 1008;

/// Code by which a framework refuses credentials while a session is opened.
const REFUSED: u16 = 4003;

/// State of the connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    /// Dialling, or waiting to dial again.
    Dialling,
    /// The socket is open, the session is not established.
    Opening,
    /// The call is up.
    Open,
    /// The other side has ended the session by a message, and its protocol goes on up to the close.
    Finishing,
    /// This side has closed.
    Closing,
    /// The connection is at its end.
    Over,
}

/// The WebSocket side of one call.
#[derive(Debug)]
pub struct WebSocketPort {
    dialect: Dialect,
    facts: SessionFacts,
    rules: DialRules,
    session: Session,
    state: State,
    now: Time,
    attempt: u32,
    /// True where this side dials, and may do so again.
    dials: bool,
    role: Role,
    draws: Stream,
    out: VecDeque<PortOutput<WebSocketAction>>,
    peer: PeerInfo,
    /// Utterances whose beginning or end waits for its frame.
    marks: VecDeque<(Sample, bool)>,
    sent_to: Sample,
    events: usize,
    claims: usize,
    errors: Vec<AgentError>,
    refused: Refused,
    variables: Option<Value>,
    log: MessageLog,
    /// Kind of the failure that ends the call, where the session tells it.
    adapter_fault: Option<AdapterFault>,
    /// Orders that wait until a session that was up goes on at another connection; `None` while it has one.
    held: Option<Vec<SessionControl>>,
}

impl WebSocketPort {
    /// Returns the port of a call that this side dials.
    pub fn caller(dialect: Dialect, facts: SessionFacts, rules: DialRules) -> WebSocketPort {
        let mut port = WebSocketPort::new(dialect, facts, rules, true);
        let address = port.dialect.without_secrets(without_secrets(&port.facts.url));
        port.signal(Signal::Dialing { address });
        port.order(SocketOrder::Dial { after: Duration::ZERO });
        port
    }

    /// Returns the port of a call whose connection the other side has opened; this side has the part of `role` in its
    /// protocol.
    pub fn incoming(role: Role, dialect: Dialect, facts: SessionFacts) -> WebSocketPort {
        let mut port = WebSocketPort::new(dialect, facts, DialRules::default(), false);
        if role == Role::Agent {
            port.session = Session::agent(port.dialect.clone(), port.facts.clone());
        }
        port.role = role;
        port
    }

    fn new(dialect: Dialect, facts: SessionFacts, rules: DialRules, dials: bool) -> WebSocketPort {
        let is_tls = ["wss:", "https:"].iter().any(|start| facts.url.to_ascii_lowercase().starts_with(start));
        let peer = PeerInfo {
            protocol: if is_tls { "WebSocket/TLS" } else { "WebSocket" },
            codec: Some(match dialect.wire.encoding {
                Encoding::Pcmu => "PCMU",
                Encoding::Pcma => "PCMA",
                Encoding::L16Le | Encoding::L16Be => "L16",
            }),
            profile: Some(dialect.name()),
            ..PeerInfo::default()
        };
        WebSocketPort {
            session: Session::caller(dialect.clone(), facts.clone()),
            dialect,
            state: State::Dialling,
            now: facts.at,
            attempt: 0,
            dials,
            role: Role::Caller,
            draws: facts.seed.stream("websocket retries"),
            out: VecDeque::new(),
            peer,
            marks: VecDeque::new(),
            sent_to: Sample::MIN,
            events: 0,
            claims: 0,
            errors: Vec::new(),
            refused: Refused::default(),
            variables: None,
            log: MessageLog::default(),
            adapter_fault: None,
            held: None,
            facts,
            rules,
        }
    }

    /// Returns the upgrade request.
    pub fn upgrade(&mut self, now: Time) -> Upgrade {
        self.now = now;
        let upgrade = self.session.upgrade(now);
        self.log.upgrade(&upgrade);
        self.write_log();
        upgrade
    }

    /// Takes the news that the socket at `address` is open.
    pub fn on_open(&mut self, now: Time, address: String) {
        if self.state != State::Dialling {
            return self.order(SocketOrder::Drop);
        }
        (self.now, self.state) = (now, State::Opening);
        self.peer.address = Some(address);
        self.log.note("101, the socket is open");
        self.session.on_open(now);
        self.drain();
        if self.state == State::Opening && self.held.is_none() {
            self.signal(Signal::Ready);
        }
    }

    /// Takes the news that no socket came about.
    pub fn on_failure(&mut self, now: Time, fault: &DialFault) {
        if self.state != State::Dialling {
            return;
        }
        self.now = now;
        self.log.note(&fault.text());
        let kind = match fault {
            DialFault::Unauthorized(_) => RemoteKind::AuthFailed,
            DialFault::NoSocket(_) => RemoteKind::NoSocket,
            DialFault::Busy(_) | DialFault::Refused { .. } => RemoteKind::Refused,
            DialFault::Unreachable { .. } => RemoteKind::Unreachable,
        };
        let mut text = fault.text();
        if fault.status() == Some(403) {
            text.push_str(": the credentials are refused, or the path is not known (some frameworks answer so)");
        }
        self.give_up(fault.may_retry(), kind, fault.status(), None, text);
    }

    /// Takes 20 ms of this side's voice that begin at `from`.
    pub fn frame(&mut self, now: Time, from: Sample, pcm: &[i16]) {
        self.now = now;
        let to = from + FRAME as Sample;
        while let Some((_, begins)) = self.marks.pop_front_if(|(at, begins)| *at < if *begins { to } else { from + 1 })
        {
            self.tell_utterance(begins);
        }
        self.session.frame(now, pcm);
        self.sent_to = to;
        self.drain_voice();
        self.end_utterances();
    }

    /// Takes the news that an utterance begins in the frame at `at`, or ends with the frame that ends there.
    pub fn utterance(&mut self, now: Time, at: Sample, begins: bool) {
        self.now = now;
        self.marks.push_back((at, begins));
        self.end_utterances();
    }

    /// Takes the news that frames which have not left yet never will.
    pub fn on_silence(&mut self, now: Time) {
        self.now = now;
        if self.role == Role::Agent {
            self.session.control(now, SessionControl::Clear);
            self.drain();
        }
        while let Some((_, begins)) = self.marks.pop_front() {
            self.tell_utterance(begins);
        }
    }

    fn end_utterances(&mut self) {
        let sent_to = self.sent_to;
        while let Some((_, begins)) = self.marks.pop_front_if(|(at, begins)| !*begins && *at <= sent_to) {
            self.tell_utterance(begins);
        }
    }

    fn tell_utterance(&mut self, begins: bool) {
        let order = if begins { SessionControl::UtteranceStarted } else { SessionControl::UtteranceCompleted };
        self.session.control(self.now, order);
        self.drain();
    }

    /// Takes a message of the other side.
    pub fn receive(&mut self, now: Time, message: Message) {
        if !matches!(self.state, State::Opening | State::Open | State::Finishing) {
            return;
        }
        self.now = now;
        let entry = self.log.log_received(&message);
        self.session.receive(now, message);
        let has_audio = self.drain();
        self.log.keep(entry, has_audio);
        self.write_log();
    }

    /// Takes the number of samples of 16 kHz that came and were not heard yet; also the passing of time.
    pub fn tick(&mut self, now: Time, unheard: u64) {
        if !matches!(self.state, State::Opening | State::Open | State::Finishing | State::Closing) {
            return;
        }
        self.now = now;
        if self.state == State::Opening && self.held.is_none() {
            self.session.frame(now, &SILENCE);
            self.drain_voice();
        }
        self.session.set_unplayed(now, unheard);
        self.session.tick(now);
        self.drain();
        self.log.tick(now);
        self.write_log();
    }

    /// Takes the news that the other side closed.
    pub fn on_close(&mut self, now: Time, code: u16, reason: &str) {
        self.now = now;
        self.log.end(&format!("< close {code} {reason}"));
        if self.resume(Some(code)) {
            return;
        }
        let text = [code.to_string(), reason.to_owned()].join(" ").trim().to_owned();
        match self.state {
            State::Opening if code == POLICY || (code == REFUSED && self.dialect.kind == Kind::PipecatProtobuf) => {
                self.give_up(false, RemoteKind::AuthFailed, None, Some(code), text);
            }
            State::Opening => {
                let text = format!("the server closed the connection before the session began: {text}");
                self.give_up(true, RemoteKind::Unreachable, None, Some(code), text);
            }
            State::Open => {
                let (kind, text) = self.judge_close(code, text);
                self.end(kind, Some(code), text);
            }
            State::Finishing => self.state = State::Over,
            State::Dialling | State::Closing | State::Over => {}
        }
        self.write_log();
    }

    /// Takes the news that the connection is gone.
    pub fn on_loss(&mut self, now: Time, why: &str) {
        self.now = now;
        self.log.end(&format!("the connection is lost: {why}"));
        if self.resume(None) {
            return;
        }
        match self.state {
            State::Opening => {
                let text = format!("the connection was lost before the session began: {why}");
                self.give_up(true, RemoteKind::Unreachable, None, None, text);
            }
            State::Open => self.end(RemoteKind::Lost, None, why.to_owned()),
            State::Finishing => self.state = State::Over,
            State::Dialling | State::Closing | State::Over => {}
        }
        self.write_log();
    }

    /// Takes the news that the other side broke the protocol below the messages; `code` is told to it.
    pub fn broken(&mut self, now: Time, code: u16, why: &'static str) {
        self.now = now;
        if matches!(self.state, State::Opening | State::Open) {
            self.order(SocketOrder::Close { code, reason: why });
            let was_open = self.state == State::Open;
            if was_open {
                self.adapter_fault = Some(AdapterFault::Agent);
                self.end(RemoteKind::Lost, None, format!("{why} (closed with {code})"));
                self.state = State::Closing;
            } else {
                self.give_up(false, RemoteKind::Refused, None, None, why.to_owned());
            }
        }
    }

    /// Takes a control of the Call.
    pub fn control(&mut self, control: &Control) {
        let order = match control {
            Control::Cancel | Control::Hangup(_) if self.state == State::Dialling => {
                self.state = State::Over;
                return self.order(SocketOrder::Drop);
            }
            Control::Cancel | Control::Hangup(HangupCause::Normal | HangupCause::Timer) => SessionControl::Hangup,
            Control::Hangup(HangupCause::Shutdown) => SessionControl::Shutdown,
            Control::Hangup(HangupCause::Fault) => SessionControl::Fault,
            Control::Digit { digit, duration_ms } => SessionControl::Digit { digit: *digit, duration_ms: *duration_ms },
            // There are no transfers.
            Control::CancelTarget | Control::Transfer(_) => return,
        };
        match &mut self.held {
            Some(held) if matches!(order, SessionControl::Digit { .. }) => held.push(order),
            _ if matches!(self.state, State::Opening | State::Open) => {
                self.session.control(self.now, order);
                self.drain();
                self.write_log();
            }
            _ => {}
        }
    }

    /// Returns the next output.
    pub fn poll(&mut self) -> Option<PortOutput<WebSocketAction>> {
        self.out.pop_front()
    }

    /// Returns the other side, as far as it is known.
    pub fn peer(&self) -> &PeerInfo {
        &self.peer
    }

    /// True until the call is up: nobody else tells the session the time.
    pub fn needs_ticks(&self) -> bool {
        matches!(self.state, State::Opening | State::Closing)
    }

    /// True once the close of this side is on its way.
    pub fn is_closing(&self) -> bool {
        self.state == State::Closing
    }

    /// True when nothing more is sent.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Ends an attempt; another one follows where that may help and attempts are left.
    fn give_up(
        &mut self,
        may_retry: bool,
        kind: RemoteKind,
        status: Option<u16>,
        close_code: Option<u16>,
        text: String,
    ) {
        if may_retry && self.dials && self.attempt < self.rules.retries {
            let fixed = self.rules.backoff_ms.get(self.attempt as usize).or(self.rules.backoff_ms.last());
            let wait_ms = f64::from(fixed.copied().unwrap_or(0)) * (1.0 + JITTER * self.draws.unit());
            if self.held.is_none() {
                self.session = Session::caller(self.dialect.clone(), self.facts.clone());
                self.marks.clear();
            } else if !self.session.resume(self.now) {
                return self.give_up_resuming(&text);
            }
            self.attempt += 1;
            self.state = State::Dialling;
            self.log.note(&format!("attempt {} in {wait_ms:.0} ms", self.attempt + 1));
            return self.order(SocketOrder::Dial { after: Duration::from_micros((wait_ms * 1000.0) as u64) });
        }
        if self.held.is_some() {
            return self.give_up_resuming(&text);
        }
        self.state = State::Over;
        self.order(SocketOrder::Drop);
        let detail = self.detail_before(kind, status, close_code);
        let text = self.dialect.without_secrets(text);
        self.signal(Signal::Ended(RemoteEnd { kind, detail, text }));
    }

    /// Ends a call that is up, since the other side or the way to it has ended.
    fn end(&mut self, kind: RemoteKind, close_code: Option<u16>, text: String) {
        if self.state == State::Open {
            self.state = State::Over;
            self.tell_unplayed();
            let detail = self.detail_within(kind, close_code);
            let text = self.dialect.without_secrets(text);
            self.signal(Signal::Ended(RemoteEnd { kind, detail, text }));
        }
    }

    /// Ends the session by its own messages; its protocol may go on up to the close.
    fn finish(&mut self, kind: RemoteKind, text: String) {
        let was_open = self.state == State::Open;
        self.end(kind, None, text);
        if was_open {
            self.state = State::Finishing;
        }
    }

    /// Carries out what the session says after a frame of this side's voice: binary and text messages with audio are
    /// not logged.
    fn drain_voice(&mut self) {
        while let Some(output) = self.session.poll() {
            match output {
                SessionOutput::Send(message) => {
                    self.log.sent_audio(message.len());
                    self.order(SocketOrder::Send(message));
                }
                output => self.carry_out(output),
            }
        }
    }

    /// Carries out what the session says. True when audio of the other side was among it.
    fn drain(&mut self) -> bool {
        let mut has_audio = false;
        while let Some(output) = self.session.poll() {
            has_audio |= matches!(output, SessionOutput::Frames(_));
            self.carry_out(output);
        }
        self.write_log();
        has_audio
    }

    fn carry_out(&mut self, output: SessionOutput) {
        match output {
            SessionOutput::Send(message) => {
                self.log.log_sent(&message);
                self.order(SocketOrder::Send(message));
            }
            SessionOutput::Frames(pcm) => self.act(WebSocketAction::Frames(pcm)),
            SessionOutput::ClearFrames => self.act(WebSocketAction::ClearFrames),
            SessionOutput::HoldFrames(most) => self.act(WebSocketAction::HoldFrames(most)),
            SessionOutput::Opened => self.establish(),
            SessionOutput::SpeechStarted { utterance_id, follows_own } => {
                let event = ChannelEvent::SpeechClaimed { utterance_id, effect: "none".into() };
                self.tell(event, follows_own);
            }
            SessionOutput::SpeechCompleted { utterance_id } => {
                self.tell_other("agent_speech_completed", json!({ "utterance_id": utterance_id }));
            }
            SessionOutput::Cleared { dropped } => {
                self.tell(ChannelEvent::Cleared { dropped_ms: dropped / PER_MS as u64 }, false);
            }
            SessionOutput::Digit(digit) => self.signal(Signal::DigitMessage { digit, duration_ms: 0 }),
            SessionOutput::Reported(text) => {
                let text = text.chars().take(TEXT_CHARS).collect();
                self.tell(ChannelEvent::Reported { text }, false);
            }
            SessionOutput::ToolCalled { name, parameters, output } => self.tell_tool(name, parameters, output),
            SessionOutput::CallNamed(id) => self.peer.call_id = id.chars().take(TEXT_CHARS).collect(),
            SessionOutput::Resumed => self.go_on(),
            SessionOutput::LimitNear => self.adapter_fault = Some(AdapterFault::Limit),
            SessionOutput::PeerError { code, message } => self.keep_error(code, message),
            SessionOutput::Violation { code, excerpt, is_refused } => {
                self.refused.count(code, is_refused);
                self.tell(ChannelEvent::Violation { code: code.into(), excerpt }, false);
            }
            SessionOutput::Overflowed { dropped } => {
                self.signal(Signal::Overflowed { frames: dropped.div_ceil(FRAME as u64) });
            }
            SessionOutput::RateDoubted(doubt) => {
                self.out.push_back(PortOutput::Warning(doubt.text()));
                // It decides about the whole call, however many other events there were.
                self.tell_always(RATE_MISMATCH, doubt.data());
            }
            SessionOutput::Event { name, data } => self.tell_other(name, data),
            SessionOutput::Variables(values) if values.to_string().len() > MAX_DATA => {
                self.out.push_back(PortOutput::Warning(format!("output variables over {MAX_DATA} bytes are not kept")));
            }
            SessionOutput::Variables(values) => self.variables = Some(values),
            SessionOutput::Ended(end) => self.take_end(end),
            SessionOutput::Close { code, reason } => {
                self.log.end(&format!("> close {code} {reason}"));
                self.order(SocketOrder::Close { code, reason });
                if self.state != State::Dialling {
                    self.state = State::Closing;
                }
            }
            SessionOutput::Drop => self.order(SocketOrder::Drop),
            // These are for the agent's side.
            SessionOutput::Called(_) | SessionOutput::MarkReached(_) => {}
        }
    }

    fn establish(&mut self) {
        if self.state == State::Opening {
            self.state = State::Open;
            let leg = PcmParams { rate_hz: RATE_HZ, heard_rate_hz: self.session.heard_rate_hz() }.into();
            self.signal(Signal::Answered { code: 101, leg, text: true });
        }
    }

    fn tell(&mut self, event: ChannelEvent, follows_own: bool) {
        if matches!(event, ChannelEvent::SpeechClaimed { .. }) && self.claims < MAX_CLAIMS {
            // It acts on the call, however many other events there were.
            self.claims += 1;
            return self.signal(Signal::Channel { event, follows_own });
        }
        self.events += 1;
        if self.events == MAX_EVENTS {
            let text =
                format!("the agent sent more than {MAX_EVENTS} messages that are events: later ones are not kept");
            self.out.push_back(PortOutput::Warning(text));
        } else if self.events < MAX_EVENTS {
            self.signal(Signal::Channel { event, follows_own });
        }
    }

    fn signal(&mut self, signal: Signal) {
        self.out.push_back(PortOutput::Signal(signal));
    }

    fn act(&mut self, action: WebSocketAction) {
        self.out.push_back(PortOutput::Act(action));
    }

    fn order(&mut self, order: SocketOrder) {
        self.act(WebSocketAction::Send(order));
    }

    fn write_log(&mut self) {
        let at_ms = self.facts.epoch_ms + (self.now.since(self.facts.at).as_millis() as i64);
        while let Some(line) = self.log.next_line() {
            self.out.push_back(PortOutput::Log(at_ms, self.dialect.without_secrets(line)));
        }
    }
}

#[cfg(test)]
mod tests;
