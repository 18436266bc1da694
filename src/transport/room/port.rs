//! A room as the port of a call: news of its connections become signals, controls become orders. It keeps the state of
//! the call up to the end.

use std::collections::VecDeque;
use std::net::SocketAddr;

use ringer_media::call::{ChannelEvent, Control, EndDetail, RemoteEnd, RemoteKind, Signal};
use ringer_media::leg::MediaParams;
use ringer_media::time::Time;
use serde_json::{Value, json};

use super::data::DataEvent;
use super::fault::{Reason, RoomFault, RoomTerms};
use super::signal::{Flow, RoomEvent};
use super::{Joined, Order, RoomEnd, RoomNews};
use crate::peer::{PeerInfo, PortOutput, without_secrets};
use crate::websocket::dial::DialFault;

/// Most events of the other side that go into a timeline.
const MAX_EVENTS: usize = 5000;

/// Most lines of the log.
const MAX_LINES: usize = 20_000;

/// Status of the answer that a call comes about by: that of HTTP.
const ANSWERED: u16 = 200;

/// Calls of tools that are kept before the call is up.
const MAX_EARLY: usize = 64;

/// Source of calls of tools, as timelines tell it.
const SOURCE: &str = "room";

/// State of the call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    /// The room is joined, or the agent waited for.
    Opening,
    /// The call is up.
    Open,
    /// The connection is over, or the call is.
    Over,
}

/// A room in which the agent is heard.
#[derive(Clone, Debug, PartialEq)]
pub struct Connected {
    /// Parameters of the audio.
    pub media: MediaParams,
    /// Facts of the room.
    pub joined: Joined,
    /// Address of this side and that of the server.
    pub path: Option<(SocketAddr, SocketAddr)>,
    /// Time since which the agent can be heard; `None`: since now.
    pub heard_since: Option<Time>,
}

/// The room's side of one call.
#[derive(Debug)]
pub struct RoomPort {
    state: State,
    /// The same moment on both clocks.
    epoch: (Time, i64),
    now: Time,
    out: VecDeque<PortOutput<Order>>,
    peer: PeerInfo,
    events: usize,
    lines: usize,
    /// Calls of tools before the call is up, with their times of arrival.
    early: Vec<(Time, DataEvent)>,
    /// Address of the room server.
    url: String,
    terms: RoomTerms,
}

impl RoomPort {
    /// Returns the port of a call in a room of the server at `url`; `now` and `epoch_ms` are the same moment.
    pub fn new(url: &str, now: Time, epoch_ms: i64) -> RoomPort {
        let peer = PeerInfo {
            protocol: "WebRTC",
            codec: Some("OPUS"),
            profile: Some("UDP/TLS/RTP/SAVPF"),
            ..PeerInfo::default()
        };
        let out = VecDeque::new();
        let mut port = RoomPort {
            state: State::Opening,
            epoch: (now, epoch_ms),
            now,
            out,
            peer,
            events: 0,
            lines: 0,
            early: Vec::new(),
            url: url.to_owned(),
            terms: RoomTerms::default(),
        };
        let address = without_secrets(url);
        port.log(format!("> join at {address}"));
        port.signal(Signal::Dialing { address });
        port
    }

    /// Returns the port of a call whose failures say what to check of these.
    #[must_use]
    pub fn with_terms(self, terms: RoomTerms) -> RoomPort {
        RoomPort { terms, ..self }
    }

    /// Takes the news that the agent is heard.
    pub fn open(&mut self, now: Time, connected: Connected) {
        self.now = now;
        if self.state != State::Opening {
            return;
        }
        self.state = State::Open;
        self.peer.address = connected.path.map(|(_, there)| there.to_string());
        let Joined { sid, agent, flow, room, server_version } = connected.joined;
        let form = if flow == Flow::Joint { "one connection" } else { "two connections" };
        self.log(format!("connected to {} by {form}", self.peer.address.as_deref().unwrap_or("an unknown address")));
        self.peer.call_id = sid;
        self.signal(Signal::UpSince(connected.heard_since.unwrap_or(now).min(now)));
        self.signal(Signal::Answered { code: ANSWERED, leg: connected.media.into(), text: true });
        self.tell_other("room_joined", json!({ "room": room, "server_version": server_version, "flow": form }));
        agent.into_iter().for_each(|agent| self.tell_other("agent_joined", json!({ "identity": agent })));
        for (_, call) in std::mem::take(&mut self.early) {
            self.take_data(call);
        }
    }

    /// Takes news of the room.
    pub fn receive(&mut self, now: Time, news: RoomNews) {
        self.now = now;
        match news {
            RoomNews::Warning(text) => self.out.push_back(PortOutput::Warning(text)),
            RoomNews::Event(at, event) => {
                self.now = at.max(self.epoch.0);
                self.take_event(event);
            }
            RoomNews::Data(at, DataEvent::Tool(call)) if self.state == State::Opening => {
                if self.early.len() < MAX_EARLY {
                    self.early.push((at, DataEvent::Tool(call)));
                }
            }
            // Anything else that was told before the call is up belongs to none of its turns.
            _ if self.state != State::Open => {}
            RoomNews::Data(at, event) => {
                self.now = at.max(self.epoch.0);
                self.take_data(event);
            }
            RoomNews::Returns(why) => {
                self.log(format!("the connection is lost: {why}"));
                self.tell_other("connection_restarts", json!({ "why": why }));
            }
            RoomNews::Returned => {
                self.log("the connection is back".to_owned());
                self.tell_other("connection_restarted", json!({}));
            }
            RoomNews::Media(media) => {
                self.log("< another track of the agent".to_owned());
                self.signal(Signal::Renegotiated { leg: media.into() });
            }
            RoomNews::Held(is_held) => {
                self.log(if is_held { "< the agent is mute" } else { "< the agent is no longer mute" }.to_owned());
                self.signal(Signal::Hold(is_held));
            }
        }
    }

    /// Takes the end of the connection.
    pub fn finish(&mut self, now: Time, end: RoomEnd) {
        self.now = now;
        if self.state == State::Over {
            return;
        }
        match end {
            RoomEnd::HungUp => {
                self.log("> closed".to_owned());
                self.state = State::Over;
            }
            RoomEnd::AgentLeft => {
                self.log("< the agent has left".to_owned());
                self.end(RemoteKind::Bye, EndDetail::None, String::new());
            }
            RoomEnd::Failed(fault) => self.fail(&fault),
        }
    }

    /// Takes a control of the Call.
    pub fn control(&mut self, control: &Control) {
        match control {
            Control::Cancel | Control::Hangup(_) => {
                if self.state != State::Over {
                    self.log("> leave".to_owned());
                    self.order(Order::HangUp);
                }
                self.state = State::Over;
            }
            Control::Digit { digit, .. } => {
                self.log("> dtmf".to_owned());
                self.order(Order::Digit(*digit));
            }
            // There are no transfers.
            Control::CancelTarget | Control::Transfer(_) => {}
        }
    }

    /// Returns the next output.
    pub fn poll(&mut self) -> Option<PortOutput<Order>> {
        self.out.pop_front()
    }

    /// Returns the other side, as far as it is known.
    pub fn peer(&self) -> &PeerInfo {
        &self.peer
    }

    /// True when nothing more happens.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    fn take_event(&mut self, event: RoomEvent) {
        match event {
            // Who was there before the call is told with its beginning.
            RoomEvent::AgentJoined(_) if self.state != State::Open => self.log("< the agent is there".to_owned()),
            RoomEvent::AgentJoined(identity) => self.tell_other("agent_joined", json!({ "identity": identity })),
            RoomEvent::AgentPublished if self.state == State::Opening => {
                self.log("< the agent's track is published".to_owned());
                self.signal(Signal::Ready);
            }
            RoomEvent::AgentPublished => {}
            RoomEvent::AgentAway => {
                self.log("< the agent has left, and may come back".to_owned());
                self.signal(Signal::Away(Some(self.now)));
            }
            RoomEvent::AgentRejoined(identity, left) => {
                let gap_ms = left.map(|left| self.now.since(left).as_millis() as u64);
                self.signal(Signal::Away(None));
                self.tell_other("agent_rejoined", json!({ "identity": identity, "gap_ms": gap_ms }));
            }
            RoomEvent::AgentChanged(from, to) => {
                self.signal(Signal::Away(None));
                self.tell_other("agent_changed", json!({ "from": from, "identity": to }));
            }
            RoomEvent::AgentState(state) => self.tell_other("agent_state", json!({ "state": state })),
        }
    }

    fn take_data(&mut self, event: DataEvent) {
        match event {
            DataEvent::Tool(call) => {
                self.log("< a call of a tool".to_owned());
                self.tell(ChannelEvent::ToolCalled {
                    name: call.name.into(),
                    parameters: call.parameters,
                    output: call.output,
                    source: SOURCE.into(),
                    at_ms: call.at_ms,
                });
            }
            DataEvent::AgentText(text) => {
                self.log("< words of the agent".to_owned());
                self.tell(ChannelEvent::Reported { text });
            }
            DataEvent::CallerText(text) => self.tell_other("caller_reported", json!({ "text": text })),
            DataEvent::Chat(text) => self.tell_other("agent_message", json!({ "type": "chat", "data": text })),
            DataEvent::Digit(digit) => {
                self.log("< dtmf".to_owned());
                self.events += 1;
                if self.events < MAX_EVENTS {
                    self.signal(Signal::DigitMessage { digit, duration_ms: 0 });
                }
            }
        }
    }

    fn fail(&mut self, fault: &RoomFault) {
        let text = fault.text(&self.url, &self.terms);
        self.log(text.clone());
        let was_open = self.state == State::Open;
        let kind = match &fault.reason {
            _ if was_open => RemoteKind::Lost,
            Reason::NotPermitted(_) | Reason::Dial(DialFault::Unauthorized(_), _) => RemoteKind::AuthFailed,
            Reason::Dial(DialFault::Refused { .. } | DialFault::Busy(_), _)
            | Reason::NoAgent(..)
            | Reason::Left(_)
            | Reason::AgentFailed
            | Reason::AgentLost(_)
            | Reason::Protocol(_) => RemoteKind::Refused,
            Reason::Address(_)
            | Reason::Dial(DialFault::NoSocket(_) | DialFault::Unreachable { .. }, _)
            | Reason::NoJoin(_)
            | Reason::Lost(..)
            | Reason::Peer(_)
            | Reason::Local(_) => RemoteKind::Unreachable,
        };
        let name = fault.kind().name_at(self.terms.platform.as_deref(), was_open);
        self.end(kind, EndDetail::Pipeline { kind: name }, text);
    }

    fn end(&mut self, kind: RemoteKind, detail: EndDetail, text: String) {
        self.state = State::Over;
        self.signal(Signal::Ended(RemoteEnd { kind, detail, text }));
    }

    fn tell_other(&mut self, name: &'static str, data: Value) {
        self.log(format!("< {name}"));
        self.tell(ChannelEvent::Other { name: name.into(), data });
    }

    fn tell(&mut self, event: ChannelEvent) {
        self.events += 1;
        if self.events == MAX_EVENTS {
            let text = format!("the room told more than {MAX_EVENTS} things that are events: later ones are not kept");
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
            let at_ms = self.epoch.1 + self.now.since(self.epoch.0).as_millis() as i64;
            self.out.push_back(PortOutput::Log(at_ms, line));
        }
    }
}

#[cfg(test)]
mod tests;
