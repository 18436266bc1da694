//! An opening that is known when the call is dialled is made while it rings, and is then said on time.

use std::sync::Arc;
use std::time::Duration;

use ringer_media::call::{
    Call, CallSpec, Effect, EffectId, Effected, EndDetail, Event, EventKind, Input, Kind, Opening, Output, RemoteEnd,
    RemoteKind, Sent, Signal, TICK,
};
use ringer_media::codec::Codec;
use ringer_media::leg::MediaParams;
use ringer_media::testing::{Log, Rig, RigSpec};
use ringer_media::time::Time;

/// Returns a call whose synthesizer takes `ready_ms`, and which is answered after 4 s.
fn rig(source: &str, ready_ms: u64) -> Rig {
    let voice = super::voice();
    let scenario = super::grammar::parse("opening", source, &voice).expect("it is right");
    let mut delays = scenario.delays;
    delays.synthesize_ms = ready_ms;
    Rig::new(RigSpec {
        leg: scenario.leg(),
        call: scenario.call,
        net: scenario.net,
        delays,
        text: scenario.text,
        mind: scenario.mind,
        voice: voice.reverse(),
    })
}

fn ring(rig: &mut Rig, seconds: f64) {
    rig.signal(Signal::Ringing { code: 180 });
    while rig.seconds() + 1e-9 < seconds {
        rig.step();
    }
}

/// Returns the beginning of the opening, in seconds.
fn opening_time(log: &Log) -> Option<f64> {
    let opening = |what: &EventKind| matches!(what, EventKind::SpeechStarted { kind: Kind::Opening, .. });
    log.events.iter().find(|event| opening(&event.what)).map(|event| event.sample as f64 / 16_000.0)
}

fn count(log: &Log, name: &str) -> usize {
    log.events.iter().filter(|event| event.name() == name).count()
}

#[test]
fn openings_are_made_while_it_rings() {
    for (source, ready_ms, asked) in [
        ("caller opens \"Good morning, this is a test.\"", 3000, 1),
        ("caller opens made \"Good morning, this is a test.\"", 3000, 1),
        // After its extension, the last tone of which is over 0.8 s after connect.
        ("caller opens \"Good morning.\"\ncaller extension 12", 3000, 1),
        // The last of many at once is ready just before it is due.
        ("caller opens \"Good morning.\"", 4300, 1),
        ("caller listens open after 10 \"Hello.\"", 100, 0),
    ] {
        let mut rig = rig(source, ready_ms);
        ring(&mut rig, 4.0);
        assert_eq!(rig.log.synthesized.len(), asked, "{source}");
        assert!(opening_time(&rig.log).is_none(), "{source}: it is said to nobody");
        rig.answer();
        rig.finish(200);
        let start = if source.contains("extension") { 1.1 } else { 0.0 };
        let on_time = opening_time(&rig.log).map(|at| (start + 0.4..=start + 0.9).contains(&at));
        assert_eq!(on_time, (asked > 0).then_some(true), "{source}: {:?}", opening_time(&rig.log));
        assert_eq!((rig.log.synthesized.len(), count(&rig.log, "late_turn")), (asked, 0), "{source}");
    }
}

#[test]
fn many_calls_at_once_open_on_time() {
    // They wait for one synthesizer that needs 150 ms for each.
    for place in 1..25 {
        let mut rig = rig(&format!("seed {place}\ncaller opens \"Hi.\""), place * 150);
        ring(&mut rig, 4.0);
        rig.answer();
        rig.finish(100);
        let at = opening_time(&rig.log).expect("it opens");
        assert!((0.4..=0.9).contains(&at) && count(&rig.log, "late_turn") == 0, "call {place} opens at {at}");
    }
}

#[test]
fn a_call_that_is_not_answered_wants_no_opening() {
    for said in ["caller opens \"Good morning.\"", "caller opens made \"Good morning.\""] {
        for ready_ms in [100, 60_000] {
            let mut rig = rig(said, ready_ms);
            ring(&mut rig, 2.0);
            let kind = RemoteKind::Refused;
            rig.signal(Signal::Ended(RemoteEnd {
                detail: EndDetail::Sip { code: Some(486), q850_cause: None, retry_after: false },
                kind,
                ..RemoteEnd::default()
            }));
            rig.finish(200);
            assert!(
                rig.is_over() && rig.log.open.is_empty() && opening_time(&rig.log).is_none(),
                "{said}: {:?}",
                rig.log.open
            );
        }
    }
}

/// Returns the speech that a call asked for, and collects its events.
fn take_effects(call: &mut Call, events: &mut Vec<Event>) -> Vec<EffectId> {
    let mut asked = Vec::new();
    while let Some(output) = call.poll() {
        match output {
            Output::Effect(id, Effect::Synthesize { .. }) => asked.push(id),
            Output::Event(event) => events.push(event),
            _ => {}
        }
    }
    asked
}

#[test]
fn the_moment_at_which_the_other_side_could_speak_is_told() {
    let (mut call, mut events) = (Call::new(CallSpec::default()), Vec::new());
    let at = |ms: u64| Time::from_millis(1000 + ms);
    call.handle(at(0), Input::Signal(Signal::Dialing { address: "ws://agent".into() }));
    // The first connection was lost before the session began.
    call.handle(at(300), Input::Signal(Signal::Ready));
    call.handle(at(1300), Input::Signal(Signal::Ready));
    let leg = MediaParams::new(Codec::Pcmu).into();
    call.handle(at(3300), Input::Signal(Signal::Answered { code: 101, leg, text: false }));
    call.handle(at(3310), Input::Signal(Signal::Ready));
    call.handle(at(3320), Input::Tick { late: Duration::ZERO, sent: &mut Sent::default() });
    call.handle(at(3330), Input::Signal(Signal::Ready));
    take_effects(&mut call, &mut events);
    let timed: Vec<(&str, i64)> = events.iter().map(|event| (event.name(), event.sample / 16)).collect();
    assert_eq!(timed[..3], [("call.dialing", -3320), ("call.ready", -2020), ("call.connected", 0)]);
    assert!(timed[3..].iter().all(|(name, _)| *name != "call.ready"), "{timed:?}");
}

#[test]
fn a_failure_while_it_rings_counts_only_when_it_comes_again() {
    for (fails_again, expect) in [
        (false, ["call.dialing", "synthesizer_slow", "call.connected", "speech.started"]),
        (true, ["call.dialing", "synthesizer_slow", "call.connected", "synthesizer_failed"]),
    ] {
        let (mut now, mut events) = (Time::from_millis(1000), Vec::new());
        let failed = || Effected::Failed { code: "synthesizer_failed", why: String::new() };
        let mut call = Call::new(CallSpec { opening: Opening::Say("Good morning.".into()), ..CallSpec::default() });
        call.handle(now, Input::Signal(Signal::Dialing { address: "sip:agent@example.com".into() }));
        let [first] = take_effects(&mut call, &mut events)[..] else { panic!("one is asked for") };
        now = now + TICK;
        call.handle(now, Input::Done(first, Effected::Note { code: "synthesizer_slow", why: String::new() }));
        call.handle(now, Input::Done(first, failed()));
        assert_eq!(take_effects(&mut call, &mut events), [], "it is not asked for again before it is needed");
        now = now + Duration::from_secs(1);
        let media = MediaParams::new(Codec::Pcmu);
        call.handle(now, Input::Signal(Signal::Answered { code: 200, leg: media.into(), text: false }));
        for tick in 0..50 {
            call.handle(now, Input::Tick { late: Duration::ZERO, sent: &mut Sent::default() });
            call.handle(now, Input::Listen);
            for id in take_effects(&mut call, &mut events) {
                assert_eq!(tick, 0, "it is asked for again at once");
                let audio = Effected::Audio { pcm: Arc::new([3000; 16_000]), last: true };
                call.handle(now, Input::Done(id, if fails_again { failed() } else { audio }));
            }
            now = now + TICK;
        }
        let timed: Vec<&str> = events.iter().map(Event::name).filter(|name| expect.contains(name)).collect();
        assert_eq!(timed, expect);
        let slow = events.iter().find(|event| event.name() == "synthesizer_slow").expect("it is told");
        assert_eq!(slow.sample, -16_000, "it was noted while it rang");
        let over =
            events.iter().any(|event| matches!(&event.what, EventKind::Ended { reason, .. } if reason == "fault"));
        assert_eq!(over, fails_again);
    }
}
