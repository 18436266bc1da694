//! Messages of a channel beside its media: utterances of this side are announced around their frames, the other side
//! reports its own by message.

use ringer_media::call::{ChannelEvent, Control, DtmfMethod, Event, EventKind, Signal};
use ringer_media::frame::FRAME;
use ringer_media::leg::{LegParams, PcmParams};
use ringer_media::testing::{Rig, RigSpec, SentUtterance, Spoken};

/// Returns an answered call over PCM.
fn rig(source: &str, change: impl FnOnce(&mut RigSpec)) -> Rig {
    let voice = super::voice();
    let scenario = super::grammar::parse("channel", source, &voice).expect("it is right");
    let mut spec = RigSpec {
        leg: LegParams::Pcm(PcmParams { rate_hz: 16_000, heard_rate_hz: 16_000 }),
        call: scenario.call,
        net: scenario.net,
        delays: scenario.delays,
        text: scenario.text,
        mind: scenario.mind,
        voice: voice.reverse(),
    };
    change(&mut spec);
    let mut rig = Rig::new(spec);
    rig.answer();
    rig
}

fn run_to(rig: &mut Rig, seconds: f64) {
    while rig.seconds() + 1e-9 < seconds {
        rig.step();
    }
}

fn agent_says(rig: &mut Rig, from_s: f64, seconds: f64, text: &str) {
    let pcm = super::voice().say((seconds * 16_000.0) as usize, 0);
    rig.far.spoken.push(Spoken { from: (from_s * 16_000.0) as i64, pcm, text: text.to_owned() });
}

fn claim(rig: &mut Rig, follows_own: bool) {
    let event = ChannelEvent::SpeechClaimed { utterance_id: "a1".into(), effect: "none".into() };
    rig.signal(Signal::Channel { event, follows_own });
}

fn channel_events(rig: &Rig) -> Vec<ChannelEvent> {
    let seen_events = rig.log.events.iter().filter_map(|event| match &event.what {
        EventKind::Channel(event) => Some((**event).clone()),
        _ => None,
    });
    seen_events.collect()
}

fn effect(rig: &Rig) -> String {
    match channel_events(rig).last() {
        Some(ChannelEvent::SpeechClaimed { effect, .. }) => effect.to_string(),
        Some(other) => other.name().to_owned(),
        None => String::new(),
    }
}

fn end_of(rig: &Rig) -> Option<(i64, bool)> {
    rig.log.events.iter().find_map(|event| match &event.what {
        EventKind::SpeechEnded { interrupted, .. } => Some((event.sample, *interrupted)),
        _ => None,
    })
}

const OPENS: &str = "caller opens \"Good morning, I am calling about the order that I placed last week.\"";

/// Checks that announced utterances hold all words of this side, from their first frame to their last.
fn check_announced(rig: &Rig, count: usize) {
    let log = &rig.log;
    assert_eq!(log.utterances.len(), 2 * count, "{:?}", log.utterances);
    let mut said = vec![false; log.frames.len()];
    for pair in log.utterances.chunks_exact(2) {
        let [SentUtterance { at, begins: true, frames: from }, SentUtterance { at: end, begins: false, frames: to }] =
            pair
        else {
            panic!("{pair:?}");
        };
        assert_eq!((log.frames[*from].from, log.frames[*to - 1].from + FRAME as i64), (*at, *end), "{pair:?}");
        said[*from..*to].fill(true);
        for edge in [*from, *to - 1] {
            let at = log.frames[edge].from as usize;
            assert!(log.clean[at..at + FRAME].iter().any(|sample| *sample != 0), "{pair:?}: silence is no part of it");
        }
    }
    for (frame, said) in log.frames.iter().zip(said) {
        let at = frame.from as usize;
        let pcm = log.clean.get(at..at + FRAME).unwrap_or_default();
        assert!(said || pcm.iter().all(|sample| *sample == 0), "words at {at} were not announced");
    }
}

#[test]
fn utterances_are_announced_around_their_frames() {
    let mut rig = rig(&format!("{OPENS}\ncaller replies \"All right.\""), |_| {});
    agent_says(&mut rig, 6.0, 1.5, "When was that");
    run_to(&mut rig, 12.0);
    check_announced(&rig, 2);
}

#[test]
fn a_message_that_the_agent_speaks_is_an_interruption() {
    let mut rig = rig(OPENS, |_| {});
    run_to(&mut rig, 2.0);
    claim(&mut rig, false);
    run_to(&mut rig, 2.2);
    assert_eq!(effect(&rig), "interrupt");
    let (end, interrupted) = end_of(&rig).expect("it is over");
    assert!(interrupted && (32_000 - 320..=32_000 + 640).contains(&end), "{end}");
    check_announced(&rig, 1);
    assert!(rig.log.utterances[1].at <= 32_000 + 640, "{:?}", rig.log.utterances);
    // The second of two has no effect, and without words there is nothing to interrupt.
    claim(&mut rig, false);
    assert_eq!(effect(&rig), "none");
}

#[test]
fn messages_that_interrupt_nobody() {
    let claimed = |source: &str, change: fn(&mut RigSpec), speaks: bool, follows_own: bool| {
        let mut rig = rig(source, change);
        if speaks {
            agent_says(&mut rig, 1.6, 1.0, "Wait");
        }
        run_to(&mut rig, 1.8);
        claim(&mut rig, follows_own);
        run_to(&mut rig, 1.9);
        (effect(&rig), end_of(&rig).is_some())
    };
    assert_eq!(claimed(OPENS, |spec| spec.call.turn.yield_to_claims = false, false, false), ("ignored".into(), false));
    assert_eq!(claimed(OPENS, |_| {}, false, true), ("suspected_echo_event".into(), false));
    assert_eq!(claimed(OPENS, |_| {}, true, true), ("interrupt".into(), true));
    assert_eq!(claimed("caller listens open after 10 \"Hello.\"", |_| {}, false, false), ("none".into(), false));
}

#[test]
fn words_that_are_said_to_their_end_are_not_stopped() {
    let source = "caller endpointing 0.5\ncaller script exact \"your name\" audio 3.0";
    let mut rig = rig(source, |_| {});
    agent_says(&mut rig, 1.0, 1.0, "What is your name?");
    run_to(&mut rig, 4.0);
    claim(&mut rig, false);
    assert_eq!(effect(&rig), "floor_held");
    run_to(&mut rig, 7.0);
    let (end, _) = end_of(&rig).expect("it is over");
    assert!(end > 85_000, "{end}");
}

#[test]
fn words_that_nobody_recognised_are_those_that_were_told() {
    let turn = |heard: bool, early: bool, speaks: bool| {
        let mut rig = rig("caller listens open after 30 \"Hello.\"", |spec| spec.text = heard);
        if speaks {
            agent_says(&mut rig, 1.0, 1.5, "Good morning");
        }
        run_to(&mut rig, if early { 0.5 } else { 1.8 });
        for text in ["How can I", "help you?"] {
            rig.signal(Signal::Channel { event: ChannelEvent::Reported { text: text.to_owned() }, follows_own: false });
        }
        run_to(&mut rig, 6.0);
        assert_eq!(channel_events(&rig).len(), 2);
        rig.log.events.iter().find_map(|event| match &event.what {
            EventKind::TurnEnded { text, missing, reported, .. } => Some((text.clone(), missing.is_some(), *reported)),
            _ => None,
        })
    };
    let reported = Some(("How can I help you?".to_owned(), false, true));
    assert_eq!(turn(false, true, true), reported);
    assert_eq!(turn(false, false, true), reported);
    assert_eq!(turn(true, true, true), Some(("Good morning".to_owned(), false, false)));
    assert_eq!(turn(false, true, false), None, "no sound was heard");
}

#[test]
fn what_else_the_channel_tells() {
    let mut rig = rig(OPENS, |spec| spec.call.dtmf = DtmfMethod::Message);
    let cleared = || Signal::Channel { event: ChannelEvent::Cleared { dropped_ms: 40 }, follows_own: false };
    rig.signal(cleared());
    run_to(&mut rig, 0.1);
    rig.signal(cleared());
    assert_eq!(channel_events(&rig), [], "this side does not speak");
    run_to(&mut rig, 2.0);
    rig.signal(cleared());
    rig.signal(Signal::DigitMessage { digit: '5', duration_ms: 0 });
    rig.signal(Signal::Overflowed { frames: 3 });
    run_to(&mut rig, 2.1);
    assert_eq!(channel_events(&rig), [ChannelEvent::Cleared { dropped_ms: 40 }]);
    let has = |name: &str, expect: &str| {
        let found = rig.log.events.iter().find(|event| event.name() == name).map(Event::data);
        assert!(found.as_ref().is_some_and(|data| data.to_string().contains(expect)), "{name}: {found:?}");
    };
    has("dtmf_received", r#""digits":"5""#);
    has("dtmf_received", r#""method":"message""#);
    has("rx_overflow", r#""packets":3"#);
}

#[test]
fn digits_go_as_messages() {
    for (method, tones) in [(DtmfMethod::Message, false), (DtmfMethod::MessageAndTone, true)] {
        let mut rig =
            rig("caller listens open after 30 \"Hello.\"\ncaller extension 12", |spec| spec.call.dtmf = method);
        run_to(&mut rig, 2.0);
        let digits: Vec<char> = rig
            .log
            .controls
            .iter()
            .filter_map(|control| if let Control::Digit { digit, .. } = control { Some(*digit) } else { None })
            .collect();
        assert_eq!(digits, ['1', '2']);
        assert_eq!(rig.log.clean.iter().any(|sample| *sample != 0), tones);
        assert!(rig.log.utterances.is_empty(), "digits are no words");
    }
}
