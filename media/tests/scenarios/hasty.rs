//! Signals right behind the answer, before the tick that makes it the connection.

use std::time::Duration;

use ringer_media::call::{
    Call, CallSpec, Control, EndReason, Input, Limits, Onward, Output, RemoteEnd, RemoteKind, Sent, Signal, TICK,
};
use ringer_media::codec::Codec;
use ringer_media::leg::MediaParams;
use ringer_media::time::Time;

/// Returns the names of the events of a call that gets these signals at once, behind its answer. Also returns the end
/// of the call within `ticks`.
fn behind_the_answer(
    signals: Vec<Signal>,
    spec: CallSpec,
    ticks: u32,
) -> (Vec<String>, Option<(EndReason, bool)>, Vec<Control>) {
    let mut now = Time::from_millis(1000);
    let mut call = Call::new(spec);
    call.handle(now, Input::Signal(Signal::Dialing { address: "sip:agent@example.com".into() }));
    let leg = MediaParams::new(Codec::Pcmu).into();
    call.handle(now, Input::Signal(Signal::Answered { code: 200, leg, text: false }));
    for signal in signals {
        call.handle(now, Input::Signal(signal));
    }
    let (mut names, mut end, mut controls) = (Vec::new(), None, Vec::new());
    for _ in 0..ticks {
        now = now + TICK;
        call.handle(now, Input::Tick { late: Duration::ZERO, sent: &mut Sent::default() });
        call.handle(now, Input::Listen);
        while let Some(output) = call.poll() {
            match output {
                Output::Event(event) => names.push(event.name().to_owned()),
                Output::Control(control) => controls.push(control.clone()),
                Output::Ended(ending) => end = Some((ending.reason, ending.connected)),
                _ => {}
            }
        }
    }
    (names, end, controls)
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

/// Steps of a call that is up.
enum Then {
    Tell(Box<Signal>),
    Ticks(u32),
}

/// Names and samples of events, and the end.
type Told = (Vec<(String, i64)>, Option<(EndReason, i64)>);

/// Returns the events behind the beginning, and the end.
fn after_beginning(steps: Vec<Then>) -> Told {
    let limits = Limits { media_timeout_ms: 1000, ..Limits::default() };
    let mut now = Time::from_millis(1000);
    let mut call = Call::new(CallSpec { limits, ..CallSpec::default() });
    call.handle(now, Input::Signal(Signal::Dialing { address: "room".into() }));
    let leg = MediaParams::new(Codec::Pcmu).into();
    call.handle(now, Input::Signal(Signal::Answered { code: 200, leg, text: false }));
    let (mut events, mut end) = (Vec::new(), None);
    for step in steps {
        let ticks = match step {
            Then::Tell(signal) => {
                let signal = if matches!(*signal, Signal::Away(Some(_))) { Signal::Away(Some(now)) } else { *signal };
                call.handle(now, Input::Signal(signal));
                0
            }
            Then::Ticks(count) => count,
        };
        for _ in 0..ticks {
            now = now + TICK;
            call.handle(now, Input::Tick { late: Duration::ZERO, sent: &mut Sent::default() });
            call.handle(now, Input::Listen);
            while let Some(output) = call.poll() {
                match output {
                    Output::Event(event) => events.push((event.name().to_owned(), event.sample)),
                    Output::Ended(ending) => end = Some((ending.reason, ending.samples)),
                    _ => {}
                }
            }
        }
    }
    (events, end)
}

#[test]
fn a_call_ends_when_the_other_side_left_though_that_is_believed_later() {
    let away = || Then::Tell(Box::new(Signal::Away(Some(Time(0)))));
    let lost = || Signal::Ended(RemoteEnd { kind: RemoteKind::Lost, ..RemoteEnd::default() });
    for (told, expect) in [(bye(), EndReason::AgentHangup), (lost(), EndReason::ConnectionLost)] {
        // 1.2 s without media are no time-out: the other side is not there.
        let steps = vec![Then::Ticks(40), away(), Then::Ticks(60), Then::Tell(Box::new(told)), Then::Ticks(5)];
        let (events, end) = after_beginning(steps);
        let (reason, samples) = end.expect("it is over");
        assert_eq!(reason, expect);
        let at = 39 * 320..=41 * 320;
        assert!(at.contains(&samples), "{samples}");
        assert_eq!(events.last().map(|(name, at)| (name.as_str(), *at)), Some(("call.ended", samples)));
    }
    // It is back: what follows is as before.
    let back = || Then::Tell(Box::new(Signal::Away(None)));
    let steps = vec![
        Then::Ticks(40),
        away(),
        Then::Ticks(60),
        back(),
        Then::Ticks(20),
        Then::Tell(Box::new(bye())),
        Then::Ticks(5),
    ];
    let (reason, samples) = after_beginning(steps).1.expect("it is over");
    assert_eq!(reason, EndReason::AgentHangup);
    assert!((119 * 320..=121 * 320).contains(&samples), "{samples}");
    let steps = vec![Then::Ticks(40), away(), Then::Ticks(60), back(), Then::Ticks(60)];
    assert_eq!(after_beginning(steps).1.map(|(reason, _)| reason), Some(EndReason::MediaTimeout));
}
