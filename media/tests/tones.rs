//! A call whose agent speaks behind a tone of the network, or under one.

use std::f64::consts::TAU;
use std::time::Duration;

use ringer_media::call::{Call, CallSpec, EventKind, Input, Output, Sent, Signal};
use ringer_media::codec::{Codec, Decoder};
use ringer_media::leg::{LegParams, PcmParams};
use ringer_media::time::Time;

/// 20 s of four voices, as mu-law.
const SPEECH: &[u8] = include_bytes!("../../fixtures/audio/speech.ul");

/// Returns speech from its first loud sample on, at 8 kHz.
fn speech() -> Vec<i16> {
    let mut speech = vec![0; SPEECH.len()];
    Decoder::new(Codec::Pcmu).decode(SPEECH, &mut speech);
    let first = speech.iter().position(|x| x.unsigned_abs() > 1000).expect("it is loud");
    speech.split_off(first)
}

/// Returns the places of the onsets and of the notes of a call that hears this at 8 kHz, in milliseconds.
fn hear(pcm: &[i16]) -> (Vec<i64>, Vec<(i64, String)>) {
    let mut call = Call::new(CallSpec::default());
    let leg = LegParams::Pcm(PcmParams::new(8000).expect("a rate of these legs"));
    call.handle(Time(0), Input::Signal(Signal::Dialing { address: "agent".into() }));
    call.handle(Time(0), Input::Signal(Signal::Answered { code: 200, leg, text: false }));
    let (mut sent, mut onsets, mut notes) = (Sent::default(), Vec::new(), Vec::new());
    for (frame, at) in pcm.chunks_exact(160).zip((20..).step_by(20)) {
        let now = Time::from_millis(at);
        let tick = Input::Tick { late: Duration::ZERO, sent: &mut sent };
        for input in [tick, Input::Frames { arrived: now, pcm: frame }, Input::Listen] {
            call.handle(now, input);
            while let Some(output) = call.poll() {
                let Output::Event(event) = output else { continue };
                match event.what {
                    EventKind::AgentSpeechStarted { .. } => onsets.push(event.sample / 16),
                    EventKind::Note { code, .. } => notes.push((event.sample / 16, code.into_owned())),
                    _ => {}
                }
            }
        }
    }
    (onsets, notes)
}

#[test]
fn speech_that_begins_under_a_tone_is_noted_and_behind_one_is_not() {
    let tone =
        |at: usize| 3000.0 * ((440.0 * TAU * at as f64 / 8000.0).sin() + (480.0 * TAU * at as f64 / 8000.0).sin());
    let said: Vec<i16> = speech().into_iter().take(24_000).collect();
    let call = |rings_for: usize, from: usize| {
        let mut pcm = vec![0; from + 40_000];
        pcm[from..from + said.len()].copy_from_slice(&said);
        pcm.iter_mut().enumerate().take(rings_for).for_each(|(at, x)| *x = x.saturating_add(tone(at) as i16));
        hear(&pcm)
    };
    for from in [6400, 6447, 7333] {
        let (without, notes) = call(0, from);
        assert_eq!(notes, []);
        let (behind, notes) = call(from, from);
        assert!((behind[0] - without[0]).abs() <= 20, "{behind:?} and not {without:?}");
        assert_eq!(notes, []);
        let (under, notes) = call(24_000, from);
        assert!((under[0] - without[0]).abs() <= 60, "{under:?} and not {without:?}");
        assert_eq!(notes, [(under[0], "speech_under_tone".to_owned())]);
    }
}
