//! Outputs of the port after news and controls.

use ringer_media::call::HangupCause;
use ringer_media::codec::Codec;

use super::*;
use crate::fault::FaultKind;
use crate::pipeline::Step;
use crate::pipeline::rtvi::{ToolNews, ToolPhase};
use crate::webrtc::PeerFault;

const SECOND: u64 = 1_000_000_000;

fn at(seconds: u64) -> Time {
    Time(seconds * SECOND)
}

fn outputs(port: &mut PipelinePort) -> Vec<PortOutput<Order>> {
    std::iter::from_fn(|| port.poll()).filter(|output| !matches!(output, PortOutput::Log(..))).collect()
}

fn signals(port: &mut PipelinePort) -> Vec<Signal> {
    let signal = |output| if let PortOutput::Signal(signal) = output { Some(signal) } else { None };
    outputs(port).into_iter().filter_map(signal).collect()
}

fn open() -> PipelinePort {
    let mut port = PipelinePort::caller("http://u:p@host:7860/?key=secret", at(1), 1000);
    let media = MediaParams::new(Codec::Opus);
    let address = |text: &str| text.parse().expect("an address");
    let path = Some((address("127.0.0.1:8"), address("127.0.0.1:9")));
    port.open(at(2), Connected { media, pc_id: Some("pc".to_owned()), path, heard_since: Some(at(1)) });
    let came = signals(&mut port);
    assert_eq!(came[0], Signal::Dialing { address: "http://host:7860/".to_owned() });
    assert_eq!(came[1], Signal::UpSince(at(1)));
    assert_eq!(came[2], Signal::Answered { code: 200, leg: media.into(), text: true });
    assert_eq!((port.peer().call_id.as_str(), port.peer().address.as_deref()), ("pc", Some("127.0.0.1:9")));
    port
}

fn told_by(port: &mut PipelinePort, event: RtviEvent) -> Vec<ChannelEvent> {
    port.receive(at(3), PipelineNews::Event(at(3), event));
    let event_of = |signal| if let Signal::Channel { event, .. } = signal { Some(event) } else { None };
    signals(port).into_iter().filter_map(event_of).collect()
}

#[test]
fn messages_become_events_of_the_timeline() {
    let check = |event: RtviEvent, expect: ChannelEvent| assert_eq!(told_by(&mut open(), event), [expect]);
    let other = |name: &'static str, data: Value| ChannelEvent::Other { name: name.into(), data };
    check(RtviEvent::AgentText("Hello.".into()), ChannelEvent::Reported { text: "Hello.".into() });
    let words = |is_final| RtviEvent::CallerText { text: "I".into(), is_final };
    check(words(true), other("caller_reported", json!({ "text": "I" })));
    assert_eq!(told_by(&mut open(), words(false)), []);
    check(RtviEvent::Ready(Some("2.2.0".into())), other("agent_ready", json!({ "version": "2.2.0" })));
    check(RtviEvent::NotReady, other("agent_not_ready", json!({})));
    check(RtviEvent::AgentSpeaks(true), other("agent_started_speaking", json!({})));
    check(RtviEvent::CallerSpeaks(false), other("caller_stopped_speaking", json!({})));
    check(RtviEvent::Interrupted, other("agent_interrupted", json!({})));
    check(RtviEvent::Metrics(json!({ "ttfb": [] })), other("agent_metrics", json!({ "ttfb": [] })));
    let mut port = open();
    let error = RtviEvent::Error { message: "x".repeat(1000), is_fatal: false };
    let message = "x".repeat(500);
    assert_eq!(told_by(&mut port, error), [ChannelEvent::Error { code: "ERROR".into(), message: message.clone() }]);
    assert_eq!(port.agent_errors(), [AgentError { code: "ERROR".into(), message, at_ms: 3000 }]);
}

#[test]
fn calls_of_tools_are_told_once_with_their_results() {
    let news = |phase, id: Option<&str>, result: Option<Value>| {
        RtviEvent::Tool(ToolNews {
            phase,
            id: id.map(str::to_owned),
            name: Some("book".into()),
            arguments: (phase == ToolPhase::InProgress).then(|| json!({ "n": 2 })),
            result,
            is_cancelled: false,
        })
    };
    // A second after the beginning, whenever the result comes.
    let call = |output: Value| {
        let (name, source) = ("book".into(), "pipeline".into());
        ChannelEvent::ToolCalled { name, parameters: json!({ "n": 2 }), output, source, at_ms: Some(1000) }
    };
    for id in [Some("7"), None] {
        let mut port = open();
        assert_eq!(told_by(&mut port, news(ToolPhase::Started, None, None)), []);
        assert_eq!(told_by(&mut port, news(ToolPhase::InProgress, id, None)), []);
        assert_eq!(told_by(&mut port, news(ToolPhase::Stopped, id, Some(json!("done")))), [call(json!("done"))]);
    }
    // A result that never comes.
    let mut port = open();
    assert_eq!(told_by(&mut port, news(ToolPhase::InProgress, Some("7"), None)), []);
    port.receive(at(14), PipelineNews::Warning("w".into()));
    let late = signals(&mut port);
    assert_eq!(late, [Signal::Channel { event: call(Value::Null), follows_own: false }]);
    assert_eq!(told_by(&mut port, news(ToolPhase::InProgress, Some("8"), None)), []);
    port.finish(at(15), PipelineEnd::AgentLeft);
    assert!(matches!(&signals(&mut port)[..], [Signal::Channel { .. }, Signal::Ended(_)]));
    // This side hangs up before the result.
    let mut port = open();
    assert_eq!(told_by(&mut port, news(ToolPhase::InProgress, Some("7"), None)), []);
    port.control(&Control::Hangup(HangupCause::Normal));
    assert!(!outputs(&mut port).iter().any(|output| matches!(output, PortOutput::Warning(_))));
    assert_eq!((port.take_unfinished(), port.take_unfinished()), (vec![call(Value::Null)], vec![]));
}

#[test]
fn a_flood_of_events_is_cut_and_told() {
    let mut port = open();
    for _ in 0..2 * MAX_EVENTS {
        port.receive(at(3), PipelineNews::Event(at(3), RtviEvent::Interrupted));
    }
    let outputs = outputs(&mut port);
    let warnings = outputs.iter().filter(|output| matches!(output, PortOutput::Warning(_))).count();
    assert_eq!((outputs.len(), warnings), (MAX_EVENTS, 1));
}

#[test]
fn ends_have_their_code() {
    let fault = |step, reason| PipelineFault { step, reason };
    let check = |is_open: bool, fault: PipelineFault, kind: RemoteKind, fault_kind: FaultKind| {
        let mut port = if is_open { open() } else { PipelinePort::caller("http://h", at(1), 0) };
        outputs(&mut port);
        let text = fault.to_string();
        port.finish(at(3), PipelineEnd::Failed(fault));
        let detail = EndDetail::Pipeline { kind: fault_kind.as_str().to_owned() };
        assert_eq!(signals(&mut port), [Signal::Ended(RemoteEnd { kind, detail, text })]);
        port.control(&Control::Hangup(HangupCause::Normal));
        assert_eq!(outputs(&mut port), [], "it is over");
    };
    check(false, fault(Step::Offer, Reason::Status(401)), RemoteKind::AuthFailed, FaultKind::PipelineAuth);
    check(false, fault(Step::Offer, Reason::Status(404)), RemoteKind::Refused, FaultKind::PipelineConnect);
    check(false, fault(Step::Start, Reason::Room), RemoteKind::Refused, FaultKind::PipelineRoom);
    check(
        false,
        fault(Step::Offer, Reason::Peer(PeerFault::Failed)),
        RemoteKind::Unreachable,
        FaultKind::PipelineConnect,
    );
    check(true, fault(Step::Call, Reason::Peer(PeerFault::Failed)), RemoteKind::Lost, FaultKind::PipelineConnect);
    check(true, fault(Step::Call, Reason::Agent("no key".into())), RemoteKind::Lost, FaultKind::PipelineAgent);
    let mut port = open();
    port.finish(at(3), PipelineEnd::AgentLeft);
    let end = RemoteEnd { kind: RemoteKind::Bye, detail: EndDetail::None, text: String::new() };
    assert_eq!(signals(&mut port), [Signal::Ended(end)]);
}

#[test]
fn controls_become_orders() {
    let mut port = open();
    let digit = |digit| Control::Digit { digit, duration_ms: 100 };
    port.control(&digit('5'));
    port.control(&digit('A'));
    port.control(&Control::Hangup(HangupCause::Normal));
    port.control(&Control::Cancel);
    let orders = outputs(&mut port);
    let [PortOutput::Act(Order::Send(text)), PortOutput::Act(Order::HangUp)] = &orders[..] else {
        panic!("{orders:?}")
    };
    let message: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!((&message["type"], &message["data"]), (&json!("dtmf"), &json!({ "buttons": ["5"] })));
}

#[test]
fn a_connection_that_is_made_anew_changes_the_media() {
    let mut port = open();
    let media = MediaParams { payload_type: 96, ..MediaParams::new(Codec::Opus) };
    port.receive(at(3), PipelineNews::Restarts);
    port.receive(at(4), PipelineNews::Restarted(media));
    let signals = signals(&mut port);
    assert!(signals.contains(&Signal::Renegotiated { leg: media.into() }), "{signals:?}");
    assert_eq!(signals.len(), 3);
}
