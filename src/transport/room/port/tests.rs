//! The port of a room without connections: news in, signals and orders out.

use std::time::Duration;

use ringer_media::call::HangupCause;
use ringer_media::codec::Codec;

use super::*;
use crate::fault::FaultKind;
use crate::room::Step;
use crate::room::data::ToolCall;
use crate::room::messages::DisconnectReason;
use crate::webrtc::PeerFault;

fn at(seconds: u64) -> Time {
    Time(seconds * 1_000_000_000)
}

fn outputs(port: &mut RoomPort) -> Vec<PortOutput<Order>> {
    std::iter::from_fn(|| port.poll()).collect()
}

fn signals(port: &mut RoomPort) -> Vec<Signal> {
    let signal = |output| if let PortOutput::Signal(signal) = output { Some(signal) } else { None };
    outputs(port).into_iter().filter_map(signal).collect()
}

fn opening() -> RoomPort {
    let mut port = RoomPort::new("wss://rooms.example/?secret=1", at(1), 1000);
    let begun = outputs(&mut port);
    let lines: Vec<&str> = begun
        .iter()
        .filter_map(|output| if let PortOutput::Log(_, line) = output { Some(line.as_str()) } else { None })
        .collect();
    assert!(!lines.iter().any(|line| line.contains("secret")), "{lines:?}");
    port
}

fn open() -> RoomPort {
    let mut port = opening();
    let joined = Joined {
        sid: "PA_1".into(),
        agent: Some("agent".into()),
        flow: Flow::Split,
        room: "room".into(),
        server_version: "1.9.0".into(),
    };
    port.open(at(2), Connected { media: MediaParams::new(Codec::Opus), joined, path: None, heard_since: Some(at(1)) });
    assert_eq!(port.peer().call_id, "PA_1");
    let came = signals(&mut port);
    let data = json!({ "room": "room", "server_version": "1.9.0", "flow": "two connections" });
    let [Signal::UpSince(_), Signal::Answered { text: true, .. }, in_room, Signal::Channel { .. }] = &came[..] else {
        panic!("{came:?}")
    };
    assert_eq!(*in_room, channel(ChannelEvent::Other { name: "room_joined".into(), data }));
    port
}

fn told_by(port: &mut RoomPort, news: RoomNews) -> Vec<Signal> {
    port.receive(at(3), news);
    signals(port)
}

fn channel(event: ChannelEvent) -> Signal {
    Signal::Channel { event, follows_own: false }
}

#[test]
fn the_agent_can_speak_from_the_publishing_of_its_track_on() {
    let published = || RoomNews::Event(at(2), RoomEvent::AgentPublished);
    assert_eq!(told_by(&mut opening(), published()), [Signal::Ready]);
    assert_eq!(told_by(&mut open(), published()), [], "another track of a call that is up");
}

#[test]
fn news_of_the_room_become_signals() {
    let other = |name: &'static str, data| channel(ChannelEvent::Other { name: name.into(), data });
    let check = |news: RoomNews, expect: Signal| assert_eq!(told_by(&mut open(), news), [expect]);
    let data = |event| RoomNews::Data(at(3), event);
    check(data(DataEvent::AgentText("a".into())), channel(ChannelEvent::Reported { text: "a".into() }));
    check(data(DataEvent::CallerText("a".into())), other("caller_reported", json!({ "text": "a" })));
    check(data(DataEvent::Chat("a".into())), other("agent_message", json!({ "type": "chat", "data": "a" })));
    check(data(DataEvent::Digit('5')), Signal::DigitMessage { digit: '5', duration_ms: 0 });
    let call = ToolCall { name: "book".into(), parameters: json!({ "n": 2 }), output: json!("ok"), at_ms: Some(1500) };
    let called = ChannelEvent::ToolCalled {
        name: "book".into(),
        parameters: json!({ "n": 2 }),
        output: json!("ok"),
        source: "room".into(),
        at_ms: Some(1500),
    };
    check(data(DataEvent::Tool(call)), channel(called));
    check(
        RoomNews::Event(at(3), RoomEvent::AgentState("thinking".into())),
        other("agent_state", json!({ "state": "thinking" })),
    );
    check(RoomNews::Returns("w".into()), other("connection_restarts", json!({ "why": "w" })));
    check(RoomNews::Returned, other("connection_restarted", json!({})));
    check(RoomNews::Held(true), Signal::Hold(true));
    let media = MediaParams::new(Codec::Opus);
    check(RoomNews::Media(media), Signal::Renegotiated { leg: media.into() });
    // Before the call is up nothing of that is one of its events.
    assert_eq!(told_by(&mut opening(), data(DataEvent::Digit('5'))), []);
    assert_eq!(told_by(&mut opening(), RoomNews::Held(true)), []);
}

#[test]
fn an_agent_that_leaves_and_is_back_is_told() {
    let other = |name: &'static str, data| channel(ChannelEvent::Other { name: name.into(), data });
    let mut port = open();
    let event = |seconds, event| RoomNews::Event(at(seconds), event);
    assert_eq!(told_by(&mut port, event(3, RoomEvent::AgentAway)), [Signal::Away(Some(at(3)))]);
    let rejoined = RoomEvent::AgentRejoined("a".into(), Some(at(3)));
    let event_signal = other("agent_rejoined", json!({ "identity": "a", "gap_ms": 2000 }));
    assert_eq!(told_by(&mut port, event(5, rejoined)), [Signal::Away(None), event_signal]);
    let changed = RoomEvent::AgentChanged("a".into(), "b".into());
    let document = other("agent_changed", json!({ "from": "a", "identity": "b" }));
    assert_eq!(told_by(&mut port, event(6, changed)), [Signal::Away(None), document]);
}

#[test]
fn every_end_is_told_once() {
    let check = |mut port: RoomPort, end: RoomEnd, kind: RemoteKind, fault_kind: Option<FaultKind>| {
        port.finish(at(4), end.clone());
        let came = signals(&mut port);
        let [Signal::Ended(remote)] = &came[..] else { panic!("{came:?}") };
        assert_eq!((remote.kind, remote.pipeline_code().and_then(FaultKind::parse)), (kind, fault_kind));
        port.finish(at(5), end);
        assert_eq!((signals(&mut port), port.is_over()), (vec![], true));
    };
    let fault = |step, reason| RoomEnd::Failed(RoomFault { step, reason });
    check(open(), RoomEnd::AgentLeft, RemoteKind::Bye, None);
    let lost = Reason::Lost("it broke".into(), 3);
    check(open(), fault(Step::Call, lost), RemoteKind::Lost, Some(FaultKind::RoomLost));
    check(open(), fault(Step::Call, Reason::AgentFailed), RemoteKind::Lost, Some(FaultKind::RoomAgent));
    let gone = Reason::AgentLost(DisconnectReason::ConnectionTimeout);
    check(open(), fault(Step::Call, gone), RemoteKind::Lost, Some(FaultKind::RoomLost));
    let absent = Reason::NoAgent(Duration::from_secs(30), "no agent joined the room");
    check(opening(), fault(Step::Agent, absent), RemoteKind::Refused, Some(FaultKind::RoomNoAgent));
    let refused = Reason::Dial(DialFault::Unauthorized(401), None);
    check(opening(), fault(Step::Join, refused), RemoteKind::AuthFailed, Some(FaultKind::RoomAuth));
    let failed = Reason::Peer(PeerFault::Failed);
    check(opening(), fault(Step::Agent, failed), RemoteKind::Unreachable, Some(FaultKind::RoomConnect));
}

#[test]
fn controls_become_orders() {
    let order = |output: PortOutput<Order>| if let PortOutput::Act(order) = output { Some(order) } else { None };
    let mut port = open();
    port.control(&Control::Digit { digit: 'A', duration_ms: 100 });
    port.control(&Control::Hangup(HangupCause::Normal));
    port.control(&Control::Hangup(HangupCause::Normal));
    let orders: Vec<Order> = outputs(&mut port).into_iter().filter_map(order).collect();
    assert_eq!(orders, [Order::Digit('A'), Order::HangUp]);
    port.finish(at(9), RoomEnd::HungUp);
    assert_eq!(signals(&mut port), []);
}

#[test]
fn a_flood_of_events_is_cut_and_told() {
    let mut port = open();
    for _ in 0..6000 {
        port.receive(at(3), RoomNews::Data(at(3), DataEvent::Chat("x".into())));
    }
    let came = outputs(&mut port);
    let warnings = came.iter().filter(|output| matches!(output, PortOutput::Warning(_))).count();
    let events = came.iter().filter(|output| matches!(output, PortOutput::Signal(_))).count();
    // Two were the joined room and the agent's coming.
    assert_eq!((warnings, events), (1, MAX_EVENTS - 3));
}
