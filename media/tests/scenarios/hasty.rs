//! Signals right behind the answer, before the tick that makes it the connection.

use std::time::Duration;

use ringer_media::call::{
    Call, CallSpec, Control, EndReason, Ending, Input, Limits, Onward, Output, RemoteEnd, RemoteKind, Sent, Signal,
    TICK,
};
use ringer_media::codec::Codec;
use ringer_media::leg::MediaParams;
use ringer_media::time::Time;

/// A call that was dialled and answered, and what came of it.
struct Answered {
    call: Call,
    now: Time,
    /// Names and samples of the events.
    events: Vec<(String, i64)>,
    controls: Vec<Control>,
    end: Option<Ending>,
}

impl Answered {
    /// Returns a call whose answer came at this moment.
    fn new(spec: CallSpec) -> Answered {
        let (now, call) = (Time::from_millis(1000), Call::new(spec));
        let mut answered = Answered { call, now, events: Vec::new(), controls: Vec::new(), end: None };
        answered.tell(Signal::Dialing { address: "sip:agent@example.com".into() });
        let leg = MediaParams::new(Codec::Pcmu).into();
        answered.tell(Signal::Answered { code: 200, leg, text: false });
        answered
    }

    fn tell(&mut self, signal: Signal) {
        self.call.handle(self.now, Input::Signal(signal));
    }

    /// Advances by ticks of 20 ms, in which no packets come.
    fn pass(&mut self, ticks: u32) {
        for _ in 0..ticks {
            self.now = self.now + TICK;
            self.call.handle(self.now, Input::Tick { late: Duration::ZERO, sent: &mut Sent::default() });
            self.call.handle(self.now, Input::Listen);
            while let Some(output) = self.call.poll() {
                match output {
                    Output::Event(event) => self.events.push((event.name().to_owned(), event.sample)),
                    Output::Control(control) => self.controls.push(control.clone()),
                    Output::Ended(ending) => self.end = Some(*ending),
                    _ => {}
                }
            }
        }
    }
}

/// Returns the names of the events of a call that gets these signals at once, behind its answer. Also returns the end
/// of the call within `ticks`.
fn behind_the_answer(
    signals: Vec<Signal>,
    spec: CallSpec,
    ticks: u32,
) -> (Vec<String>, Option<(EndReason, bool)>, Vec<Control>) {
    let mut answered = Answered::new(spec);
    signals.into_iter().for_each(|signal| answered.tell(signal));
    answered.pass(ticks);
    let names = answered.events.into_iter().map(|(name, _)| name).collect();
    (names, answered.end.map(|ending| (ending.reason, ending.connected)), answered.controls)
}

fn bye() -> Signal {
    Signal::Ended(RemoteEnd { kind: RemoteKind::Bye, ..RemoteEnd::default() })
}

#[test]
fn a_call_that_ends_right_behind_its_answer_was_answered() {
    let (names, end, _) = behind_the_answer(vec![bye()], CallSpec::default(), 5);
    assert_eq!(names, ["call.dialing", "call.connected", "call.ended"]);
    assert_eq!(end, Some((EndReason::AgentHangup, true)));
    // However much comes before the end.
    let many = (0..1000).map(|_| Signal::Hold(true)).chain([bye()]).collect();
    let (names, end, _) = behind_the_answer(many, CallSpec::default(), 5);
    assert_eq!(names, ["call.dialing", "call.connected", "hold", "call.ended"]);
    assert_eq!(end, Some((EndReason::AgentHangup, true)));
}

#[test]
fn what_comes_right_behind_the_answer_is_of_the_call() {
    let digit = Signal::Digit { digit: '5', duration_ms: 100 };
    let (names, end, _) = behind_the_answer(vec![Signal::Hold(true), digit], CallSpec::default(), 100);
    assert_eq!(names[..3], ["call.dialing", "call.connected", "hold"]);
    assert_eq!(end, None);
    assert!(names.iter().any(|name| name == "dtmf_received"), "{names:?}");
    let asked = Signal::Transfer { to: "sip:carol@example.com".into(), can_follow: false };
    let spec = CallSpec { hangup_on_transfer: true, ..CallSpec::default() };
    let (names, end, controls) = behind_the_answer(vec![asked], spec, 5);
    assert_eq!(names, ["call.dialing", "call.connected", "transfer", "call.ended"]);
    assert_eq!(end, Some((EndReason::Transfer, true)));
    assert!(controls.contains(&Control::Transfer(Onward::Leave)), "{controls:?}");
}

#[test]
fn media_are_not_late_while_the_other_side_sends_none() {
    let spec = || CallSpec { limits: Limits { media_timeout_ms: 1000, ..Limits::default() }, ..CallSpec::default() };
    let ended = |signals: Vec<Signal>| behind_the_answer(signals, spec(), 100).1.map(|(reason, _)| reason);
    let leg = |may_receive| MediaParams { may_receive, ..MediaParams::new(Codec::Pcmu) }.into();
    assert_eq!(ended(vec![]), Some(EndReason::MediaTimeout));
    assert_eq!(ended(vec![Signal::Hold(true)]), None);
    assert_eq!(ended(vec![Signal::Renegotiated { leg: leg(false) }]), None);
    assert_eq!(ended(vec![Signal::Hold(true), Signal::Hold(false)]), Some(EndReason::MediaTimeout));
    let again = vec![Signal::Renegotiated { leg: leg(false) }, Signal::Renegotiated { leg: leg(true) }];
    assert_eq!(ended(again), Some(EndReason::MediaTimeout));
}

#[test]
fn a_call_ends_when_the_other_side_left_though_that_is_believed_later() {
    let limits = Limits { media_timeout_ms: 1000, ..Limits::default() };
    // 1.2 s without media are no time-out: the other side is not there.
    let away = || {
        let mut answered = Answered::new(CallSpec { limits: limits.clone(), ..CallSpec::default() });
        answered.pass(40);
        answered.tell(Signal::Away(Some(answered.now)));
        answered.pass(60);
        answered
    };
    let near = |samples: i64, tick: i64| ((tick - 1) * 320..=(tick + 1) * 320).contains(&samples);
    let lost = || Signal::Ended(RemoteEnd { kind: RemoteKind::Lost, ..RemoteEnd::default() });
    for (signal, expect) in [(bye(), EndReason::AgentHangup), (lost(), EndReason::ConnectionLost)] {
        let mut answered = away();
        answered.tell(signal);
        answered.pass(5);
        let ending = answered.end.expect("it is over");
        assert_eq!(ending.reason, expect);
        assert!(near(ending.samples, 40), "{}", ending.samples);
        let last = answered.events.last().map(|(name, at)| (name.as_str(), *at));
        assert_eq!(last, Some(("call.ended", ending.samples)));
    }
    // It is back: what follows is as before.
    let mut back = away();
    back.tell(Signal::Away(None));
    back.pass(20);
    back.tell(bye());
    back.pass(5);
    let ending = back.end.expect("it is over");
    assert_eq!(ending.reason, EndReason::AgentHangup);
    assert!(near(ending.samples, 120), "{}", ending.samples);
    let mut back = away();
    back.tell(Signal::Away(None));
    back.pass(60);
    assert_eq!(back.end.map(|ending| ending.reason), Some(EndReason::MediaTimeout));
}
