//! A side whose call goes over a WebSocket: its port, the connection below it, and frames between the port and the
//! Call.

use std::borrow::Cow;

use ringer_media::call::Control;
use ringer_media::frame::RATE_HZ;
use ringer_media::leg::PcmParams;
use ringer_media::rings::{FrameRings, frame_rings};
use ringer_transport::websocket::dial::{DialFault, fault_of_status};
use ringer_transport::websocket::port::{SocketOrder, WebSocketAction, WebSocketPort};
use ringer_transport::websocket::{Message, Role};

use super::*;
use crate::WebSocketDial;
use crate::channel::GOODBYE;
use crate::exchange::FrameExchange;
use crate::sim::stream::{Frame, Parcel};
use crate::sim::{AGENT, CALLER};

/// Milliseconds after which a connection is accepted.
const ACCEPTING_MS: (f64, f64) = (1.0, 20.0);
/// The wall clock at the beginning of virtual time: 2026-01-01, in milliseconds since 1970.
const EPOCH_MS: i64 = 1_767_225_600_000;

/// State of the connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Link {
    /// No connection exists yet.
    Absent,
    /// A connection was asked for.
    Dialling,
    /// Messages go over it.
    Open,
    /// This side has sent its close frame.
    Closing,
}

/// The part of a side that only a call over a WebSocket has.
pub(super) struct SocketEnd {
    dial: WebSocketDial,
    port: Option<WebSocketPort>,
    rings: FrameRings,
    frames: FrameExchange,
    link: Link,
    /// Number of the connection, from 1.
    connection: u32,
    /// Number of the connection that waits to be accepted.
    knocking: Option<u32>,
    /// Time of the next attempt to connect.
    dial_at: Option<Time>,
    /// Time by which an attempt to connect, or to close, is given up.
    until: Option<Time>,
    /// Time of the next tick once the Call is over.
    next_tick: Option<Time>,
    last_sign: Time,
    last_ping: Time,
    /// Time of sending of the message that is being taken.
    taking: Option<Time>,
    /// Delays of the other side's voice, each valid from a time of speaking on.
    lags: Vec<(Time, Duration)>,
    /// Behaviour that the script gives this side.
    stage: Stage,
    out: Vec<Parcel>,
}

/// Effects of a script on what a side sends.
#[derive(Default)]
struct Stage {
    /// True if this side's own messages are kept back.
    is_silent: bool,
    /// True if a line of the script is carried out.
    is_scripted: bool,
    /// Messages leave all the same until then: they hold words of the script.
    loud_until: Option<Time>,
    /// Words of the script that are being said.
    speech: VecDeque<i16>,
    /// The frame of them that this tick has sent.
    spoken: Option<[i16; FRAME]>,
    /// Position of the last frame.
    at: Sample,
}

fn rings() -> (FrameRings, FrameExchange) {
    let (rings, peer) = frame_rings(PcmParams { rate_hz: RATE_HZ, heard_rate_hz: RATE_HZ });
    (rings, FrameExchange::new(peer))
}

impl SocketEnd {
    /// Returns the end of a call with `destination`; `None` where that is no WebSocket.
    pub(crate) fn of(destination: &Destination) -> Option<Box<SocketEnd>> {
        let dial = match destination {
            Destination::WebSocket(dial) => dial,
            Destination::Incoming(answering) => answering.websocket.as_ref()?,
            _ => return None,
        };
        let (rings, frames) = rings();
        Some(Box::new(SocketEnd {
            dial: (**dial).clone(),
            port: None,
            rings,
            frames,
            link: Link::Absent,
            connection: 0,
            knocking: None,
            dial_at: None,
            until: None,
            next_tick: None,
            last_sign: START,
            last_ping: START,
            taking: None,
            lags: Vec::new(),
            stage: Stage::default(),
            out: Vec::new(),
        }))
    }

    /// True while a connection waits to be accepted.
    pub(crate) fn is_called(&self) -> bool {
        self.knocking.is_some()
    }

    /// True once no connection is left.
    pub(crate) fn is_closed(&self) -> bool {
        self.link == Link::Absent
    }

    /// Returns the time at which something happens by itself.
    pub(crate) fn next(&self) -> Option<Time> {
        [self.dial_at, self.until, self.next_tick].into_iter().flatten().min()
    }

    /// Hands a frame of the Call to the port's side: words of the script stand in its place.
    pub(crate) fn send_frame(&mut self, now: Time, from: Sample, pcm: &[i16]) {
        self.stage.at = from;
        let count = self.stage.speech.len().min(FRAME);
        if count == 0 {
            return self.rings.send(from, now, pcm);
        }
        let mut spoken = [0; FRAME];
        spoken[..count].iter_mut().zip(self.stage.speech.drain(..count)).for_each(|(slot, sample)| *slot = sample);
        let chunk_ms = self.dial.dialect().chunk_ms;
        self.stage.loud_until = Some(now + Duration::from_millis(u64::from(chunk_ms) + 20));
        self.stage.spoken = Some(spoken);
        self.rings.send(from, now, &spoken);
    }

    /// Returns the frame that the script had this side say in this tick.
    pub(crate) fn take_spoken(&mut self) -> Option<[i16; FRAME]> {
        self.stage.spoken.take()
    }

    /// Tells that an utterance of this side begins or is over.
    pub(crate) fn tell_utterance(&mut self, at: Sample, begins: bool) {
        self.rings.tell_utterance(at, begins);
    }

    /// Drops frames that have not left yet.
    pub(crate) fn clear_buffered(&mut self) {
        self.rings.clear();
    }

    /// Returns the other side's words with the times at which they are heard.
    pub(crate) fn as_heard<'a>(&self, said: &'a [Said]) -> Cow<'a, [Said]> {
        let heard = |at: Time| {
            let place = self.lags.partition_point(|(from, _)| *from <= at).saturating_sub(1);
            at + self.lags.get(place).map(|(_, lag)| *lag).unwrap_or_default()
        };
        said.iter().map(|said| Said { from: heard(said.from), to: said.to.map(heard), ..said.clone() }).collect()
    }

    /// Takes audio of the other side.
    fn hear(&mut self, now: Time, pcm: &[i16]) {
        if let Some(sent) = self.taking {
            let samples = |count: u64| Duration::from_nanos(count * SAMPLE_NS as u64);
            // The last sample of a message was said in the tick that sent it.
            let from = Time((sent + TICK).0.saturating_sub(samples(pcm.len() as u64).as_nanos() as u64));
            self.lags.push((from, now.since(from) + samples(self.frames.unheard())));
        }
        self.frames.hear(now, pcm);
    }

    fn push(&mut self, now: Time, frame: Frame) {
        self.out.push(Parcel { connection: self.connection, sent: now, frame });
    }

    /// True when a message of the port leaves: neither a script nor the end keeps it back.
    fn lets_out(&self, now: Time) -> bool {
        let stage = &self.stage;
        let is_heard = !stage.is_silent || stage.is_scripted || stage.loud_until.is_some_and(|until| now <= until);
        self.link == Link::Open && is_heard
    }

    /// Gives the connection up.
    fn reset(&mut self, now: Time) {
        if self.link != Link::Absent {
            self.push(now, Frame::Reset);
        }
        (self.link, self.until) = (Link::Absent, None);
    }
}

impl Host {
    /// Opens a WebSocket to the agent.
    pub(crate) fn dial_socket(&mut self, now: Time) {
        let Some(socket) = &mut self.socket else { return };
        let facts = socket.dial.facts(self.spec.seed, START, EPOCH_MS);
        let rules = socket.dial.settings.rules.clone();
        socket.port = Some(WebSocketPort::caller(socket.dial.dialect(), facts, rules));
        self.begin(now);
        self.drain_socket(now);
    }

    /// Returns the parcels that were sent since the last time.
    pub(crate) fn take_parcels(&mut self) -> Vec<Parcel> {
        self.socket.as_mut().map(|socket| std::mem::take(&mut socket.out)).unwrap_or_default()
    }

    /// Accepts the connection that waits. A call before it is over, and its report makes way for that of the new one.
    pub(super) fn accept_socket(&mut self, now: Time) {
        if self.socket.as_ref().is_some_and(|socket| socket.port.is_some()) {
            self.start_over();
        }
        let Some(socket) = &mut self.socket else { return };
        let Some(connection) = socket.knocking.take() else { return };
        (socket.connection, socket.link) = (connection, Link::Open);
        (socket.last_sign, socket.last_ping) = (now, now);
        (socket.rings, socket.frames) = rings();
        let facts = socket.dial.facts(self.spec.seed, START, EPOCH_MS);
        let mut port = WebSocketPort::incoming(Role::Agent, socket.dial.dialect(), facts);
        port.on_open(now, CALLER.to_string());
        socket.port = Some(port);
        socket.push(now, Frame::Accept);
        self.begin(now);
        self.drain_socket(now);
    }

    /// Answers the connection that waits with another status than 101.
    pub(super) fn refuse_socket(&mut self, now: Time, status: u16) {
        if let Some(socket) = &mut self.socket
            && let Some(connection) = socket.knocking.take()
        {
            socket.out.push(Parcel { connection, sent: now, frame: Frame::Refuse(status) });
        }
    }

    /// Forgets the call before this one.
    fn start_over(&mut self) {
        (self.journal, self.ending, self.ended) = (Journal::default(), None, false);
        (self.origin, self.zero, self.bye) = (None, None, None);
        self.due.clear();
        self.segments.clear();
        self.open.clear();
        self.said.clear();
        self.sent.clear();
        self.heard.clear();
    }

    /// Takes a parcel that arrived at `at`.
    pub(crate) fn receive_parcel(&mut self, at: Time, parcel: Parcel) {
        let Some(socket) = &mut self.socket else { return };
        if parcel.frame == Frame::Dial {
            socket.knocking = Some(parcel.connection);
            let is_scripted = self.scene.as_mut().is_some_and(|scene| scene.takes_call(None));
            if !is_scripted {
                self.answer = Some(self.after(at, ACCEPTING_MS));
            }
            return;
        }
        if parcel.frame == Frame::Reset && socket.knocking.take_if(|waiting| *waiting == parcel.connection).is_some() {
            self.answer = None;
            return;
        }
        if parcel.connection == socket.connection {
            self.take_frame(at, parcel);
            self.drain_socket(at);
        }
    }

    fn take_frame(&mut self, at: Time, parcel: Parcel) {
        let Some(socket) = &mut self.socket else { return };
        let link = socket.link;
        match (parcel.frame, link) {
            (Frame::Accept, Link::Dialling) => {
                (socket.link, socket.until) = (Link::Open, None);
                (socket.last_sign, socket.last_ping) = (at, at);
                socket.port.iter_mut().for_each(|port| port.on_open(at, AGENT.to_string()));
            }
            (Frame::Refuse(status), Link::Dialling) => {
                (socket.link, socket.until) = (Link::Absent, None);
                socket.port.iter_mut().for_each(|port| port.on_failure(at, &fault_of_status(status)));
            }
            (Frame::Message(message), Link::Open | Link::Closing) => {
                socket.last_sign = at;
                let is_too_big = message.len() > socket.dial.settings.limits.max_message_bytes;
                let Some(port) = &mut socket.port else { return };
                if is_too_big {
                    port.broken(at, 1009, "message too big");
                } else {
                    port.receive(at, message);
                    socket.taking = Some(parcel.sent);
                }
            }
            (Frame::Ping, Link::Open | Link::Closing) => {
                socket.last_sign = at;
                socket.push(at, Frame::Pong);
            }
            (Frame::Pong, Link::Open | Link::Closing) => socket.last_sign = at,
            (Frame::Close(code, reason), Link::Open | Link::Closing) => {
                if link == Link::Open {
                    socket.push(at, Frame::Close(code, reason.clone()));
                }
                (socket.link, socket.until) = (Link::Absent, None);
                socket.port.iter_mut().for_each(|port| port.on_close(at, code, &reason));
            }
            (Frame::Reset, Link::Open | Link::Closing) => {
                (socket.link, socket.until) = (Link::Absent, None);
                socket.port.iter_mut().for_each(|port| port.on_loss(at, "it closed the connection"));
            }
            _ => {}
        }
    }

    /// Carries out the outputs of the port, in order.
    fn drain_socket(&mut self, now: Time) {
        while let Some(socket) = &mut self.socket
            && let Some(output) = socket.port.as_mut().and_then(WebSocketPort::poll)
        {
            match output {
                PortOutput::Signal(signal) => {
                    if matches!(signal, Signal::Ended(_)) {
                        self.bye.get_or_insert(now);
                    }
                    match self.is_telling {
                        true => self.deferred.push_back(signal),
                        false => self.tell(now, Input::Signal(signal)),
                    }
                }
                PortOutput::Act(WebSocketAction::Send(order)) => self.order_socket(now, order),
                PortOutput::Act(WebSocketAction::Frames(pcm)) => socket.hear(now, &pcm),
                PortOutput::Act(WebSocketAction::ClearFrames) => socket.frames.clear(),
                PortOutput::Act(WebSocketAction::HoldFrames(most)) => socket.frames.hold(now, most),
                PortOutput::Log(at_ms, line) => self.log_line(at_ms, &line),
                PortOutput::Warning(warning) => self.warnings.push(warning),
            }
        }
        self.socket.iter_mut().for_each(|socket| socket.taking = None);
    }

    fn log_line(&mut self, at_ms: i64, line: &str) {
        let at_ms = at_ms - EPOCH_MS + START.0 as i64 / 1_000_000;
        self.sip_log.push_str(&format!("{at_ms} {line}\n"));
    }

    fn order_socket(&mut self, now: Time, order: SocketOrder) {
        let Some(socket) = &mut self.socket else { return };
        match order {
            SocketOrder::Dial { after } => {
                socket.reset(now);
                socket.frames.hand_on(now);
                // The request is drawn and logged when it is ordered.
                socket.port.iter_mut().for_each(|port| drop(port.upgrade(now)));
                socket.dial_at = Some(now + after);
            }
            SocketOrder::Send(message) => {
                if socket.lets_out(now) {
                    socket.push(now, Frame::Message(message));
                }
            }
            SocketOrder::Close { code, reason } => self.close_socket(now, code, reason),
            SocketOrder::Drop => {
                socket.dial_at = None;
                socket.reset(now);
            }
        }
    }

    /// Sends a close frame.
    fn close_socket(&mut self, now: Time, code: u16, reason: &str) {
        let Some(socket) = &mut self.socket else { return };
        if socket.link == Link::Open {
            socket.push(now, Frame::Close(code, reason.to_owned()));
            socket.link = Link::Closing;
            socket.until = Some(now + socket.dial.settings.close_timeout);
        }
    }

    /// Takes a control of the Call: what the Call said before goes out before.
    pub(super) fn control_socket(&mut self, now: Time, control: &Control) {
        if matches!(control, Control::Hangup(_) | Control::Cancel) {
            self.bye.get_or_insert(now);
        }
        self.exchange(now);
        if let Some(port) = self.socket.as_mut().and_then(|socket| socket.port.as_mut()) {
            port.control(control);
        }
        self.drain_socket(now);
    }

    /// Hands what came to the Call.
    pub(super) fn hear_socket(&mut self, now: Time) {
        if let (Some(socket), Some(call)) = (&mut self.socket, &mut self.call) {
            socket.rings.receive(call, now);
        }
    }

    /// Ends a tick: frames go to the port, and the port learns how far the Call has heard.
    pub(super) fn settle_socket(&mut self, now: Time) {
        if let (Some(socket), Some(call)) = (&mut self.socket, &self.call) {
            socket.rings.tell_heard(call);
        }
        self.exchange(now);
        if self.is_over() {
            self.close_down(now);
        }
    }

    /// Hands frames of the Call to the port, and looks after everything that depends on time.
    fn exchange(&mut self, now: Time) {
        let Some(socket) = &mut self.socket else { return };
        let SocketEnd { frames, port: Some(port), .. } = &mut **socket else { return };
        frames.send(now, port);
        self.drain_socket(now);
        self.look_after_link(now);
        let Some(socket) = &mut self.socket else { return };
        socket.frames.hand_on(now);
        let unheard = socket.frames.unheard();
        socket.port.iter_mut().for_each(|port| port.tick(now, unheard));
        self.drain_socket(now);
    }

    /// Sends pings, and gives up a connection without a sign of life.
    fn look_after_link(&mut self, now: Time) {
        let Some(socket) = &mut self.socket else { return };
        let limits = socket.dial.settings.limits;
        if !matches!(socket.link, Link::Open | Link::Closing) {
            return;
        }
        if !limits.ping_timeout.is_zero() && now.since(socket.last_sign) >= limits.ping_timeout {
            socket.reset(now);
            let why = format!("neither a pong nor a message came within {} s", limits.ping_timeout.as_secs());
            socket.port.iter_mut().for_each(|port| port.on_loss(now, &why));
            return self.drain_socket(now);
        }
        let is_due = !limits.ping_interval.is_zero() && now.since(socket.last_ping) >= limits.ping_interval;
        if is_due && socket.link == Link::Open {
            socket.last_ping = now;
            socket.push(now, Frame::Ping);
        }
    }

    /// Gives the rest of the connection its time to close, once the Call is over.
    fn close_down(&mut self, now: Time) {
        let Some(socket) = &mut self.socket else { return };
        let is_over = socket.port.as_ref().is_none_or(WebSocketPort::is_over);
        match socket.link {
            Link::Absent => return,
            Link::Open if is_over => return socket.reset(now),
            Link::Open => {
                socket.until.get_or_insert(now + GOODBYE + socket.dial.settings.close_timeout);
            }
            Link::Dialling | Link::Closing => {}
        }
        socket.next_tick = Some(now + TICK);
    }

    /// Does what is due at the connection.
    pub(super) fn act_socket(&mut self, now: Time) {
        let Some(socket) = &mut self.socket else { return };
        if socket.dial_at.take_if(|at| *at <= now).is_some() {
            socket.connection += 1;
            socket.link = Link::Dialling;
            socket.until = Some(now + socket.dial.settings.connect_timeout);
            socket.push(now, Frame::Dial);
        }
        if socket.until.take_if(|at| *at <= now).is_some() {
            let was_dialling = socket.link == Link::Dialling;
            socket.reset(now);
            if was_dialling {
                let patience = socket.dial.settings.connect_timeout.as_millis();
                let why = format!("no WebSocket came about within {patience} ms");
                let fault = DialFault::Unreachable { status: None, why };
                socket.port.iter_mut().for_each(|port| port.on_failure(now, &fault));
            }
            self.drain_socket(now);
        }
        if let Some(socket) = &mut self.socket
            && socket.next_tick.take_if(|at| *at <= now).is_some()
        {
            self.exchange(now);
            self.close_down(now);
        }
    }
}

/// Lines of a script.
impl Host {
    /// Carries out a line of the script for a WebSocket.
    pub(super) fn play_socket(&mut self, now: Time, action: SocketAction) {
        let Some(socket) = &mut self.socket else { return };
        socket.stage.is_scripted = true;
        match action {
            SocketAction::Send(text, count) => {
                (0..count).for_each(|_| self.send_raw(now, Message::Text(text.clone())));
            }
            SocketAction::SendBytes(length, count) => {
                (0..count).for_each(|_| self.send_raw(now, Message::Binary(vec![0; length])));
            }
            SocketAction::Play(ms) => self.play_burst(now, ms),
            SocketAction::Say(text) => self.say(now, &text),
            SocketAction::Mark(name) => self.order_session(now, SessionControl::Mark(name)),
            SocketAction::Clear => self.order_session(now, SessionControl::Clear),
            SocketAction::Close(code, reason) => {
                self.log_line(EPOCH_MS + now.since(START).as_millis() as i64, &format!("> close {code} {reason}"));
                self.close_socket(now, code, &reason);
            }
            SocketAction::Drop => {
                socket.reset(now);
                socket.port.iter_mut().for_each(|port| port.on_loss(now, "this side gave it up"));
                self.drain_socket(now);
            }
            SocketAction::GoSilent => socket.stage.is_silent = true,
        }
        self.socket.iter_mut().for_each(|socket| socket.stage.is_scripted = false);
    }

    fn send_raw(&mut self, now: Time, message: Message) {
        let line = match &message {
            Message::Text(text) => format!("> {text}"),
            Message::Binary(bytes) => format!("> {} bytes", bytes.len()),
        };
        self.log_line(EPOCH_MS + now.since(START).as_millis() as i64, &line);
        self.order_socket(now, SocketOrder::Send(message));
    }

    fn order_session(&mut self, now: Time, order: SessionControl) {
        if let Some(port) = self.socket.as_mut().and_then(|socket| socket.port.as_mut()) {
            port.order_session(now, order);
        }
        self.drain_socket(now);
    }

    /// Sends a tone of `ms` at once.
    fn play_burst(&mut self, now: Time, ms: u32) {
        let Some(socket) = &mut self.socket else { return };
        let SocketEnd { stage, port: Some(port), .. } = &mut **socket else { return };
        let mut wave = Wave::new(TONE_HZ);
        (0..ms.div_ceil(20)).for_each(|_| port.frame(now, stage.at, &wave.next_frame()));
        self.drain_socket(now);
    }

    /// Says words at real time, beside what the Call decides.
    fn say(&mut self, now: Time, text: &str) {
        let Some(voice) = &self.voice else { return };
        match self.runtime.block_on(whole_speech(&*self.synthesizer, text, voice)) {
            Ok(pcm) => {
                let (from, length) = (now + TICK, Duration::from_nanos(pcm.len() as u64 * SAMPLE_NS as u64));
                let utterance = u32::MAX - self.said.len() as u32;
                self.said.push(Said { utterance, from, to: Some(from + length), text: text.to_owned() });
                self.socket.iter_mut().for_each(|socket| socket.stage.speech.extend(pcm.iter()));
            }
            Err(failure) => self.violations.push(format!("the words of the script have no sound: {}", failure.message)),
        }
    }
}
