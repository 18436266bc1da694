//! Whole conversations in virtual time. Each file of `fixtures/scenarios` is one; what holds for every call is checked for
//! every one of them. `SCENARIO=name cargo test -p ringer-media --test scenarios` runs those whose name holds `name` and shows
//! their timelines.

mod concealed;
mod connection;
mod edges;
mod expect;
mod grammar;
mod opening;
mod probes;
mod promises;
mod quiet;
mod rates;
mod snr;

use std::path::Path;
use std::time::Duration;

use grammar::{Action, Dialling, Scenario};
use ringer_media::call::{EndReason, RemoteEnd, RemoteKind, Signal};
use ringer_media::leg::MediaParams;
use ringer_media::noise;
use ringer_media::testing::{Rig, RigSpec, Spoken, Voice};

/// G.711 speech.
const SPEECH: &[u8] = include_bytes!("../../../fixtures/audio/speech.ul");

/// The voice of all scenarios.
pub fn voice() -> Voice {
    Voice::from_ulaw(SPEECH)
}

/// All scenario files, by name.
pub fn files() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/scenarios");
    let mut files: Vec<(String, String)> = std::fs::read_dir(folder)
        .expect("the scenarios are there")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "txt"))
        .map(|path| {
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).expect("readable"))
        })
        .collect();
    files.sort();
    files
}

/// Plays a scenario to its end.
pub fn play(scenario: &Scenario, voice: &Voice) -> Rig {
    play_as(scenario, voice, voice.reversed())
}

/// The same with a caller of another voice.
pub fn play_as(scenario: &Scenario, voice: &Voice, caller: Voice) -> Rig {
    let mut rig = Rig::new(RigSpec {
        call: scenario.call.clone(),
        media: scenario.media,
        net: scenario.net,
        delays: scenario.delays,
        text: scenario.text,
        mind: scenario.mind.clone(),
        voice: caller,
    });
    rig.far.echo = scenario.echo;
    for (place, (at, action)) in scenario.actions.iter().enumerate() {
        let from = (at * 16_000.0).round() as i64;
        match action {
            Action::Says { seconds, text } => {
                let pcm = voice.say((seconds * 16_000.0) as usize, place * 97);
                rig.far.spoken.push(Spoken { from, pcm, text: text.clone() });
            }
            Action::Noise { kind, snr_db } => {
                let seconds = (scenario.until - at).ceil() as u32;
                let mut pcm = noise::generate(*kind, scenario.call.seed, seconds, &[]);
                noise::level_for(&mut pcm, *snr_db, scenario.media.codec.rate_hz());
                rig.far.spoken.push(Spoken { from, pcm: pcm.into(), text: String::new() });
            }
            Action::Digit { digit, inband } => rig.far.digits.push((from, *digit, *inband)),
            _ => {}
        }
    }
    if dial(scenario, &mut rig) {
        talk(scenario, &mut rig);
    }
    rig.finish(200);
    rig
}

/// True when the call is connected.
fn dial(scenario: &Scenario, rig: &mut Rig) -> bool {
    let after = match scenario.dialling {
        Dialling::Answered { after } | Dialling::Refused { after, .. } => after,
        Dialling::Never => scenario.until,
    };
    let mut early = scenario.early;
    rig.signal(Signal::Ringing { code: 180 });
    while rig.seconds() + 1e-9 < after && !rig.is_over() {
        if early.is_some_and(|length| rig.seconds() + 1e-9 >= after - length) {
            early = None;
            rig.early_media(Duration::from_secs_f64(after - rig.seconds()));
        }
        rig.step();
    }
    match scenario.dialling {
        Dialling::Answered { .. } => rig.answer(),
        Dialling::Refused { code, .. } => rig.signal(Signal::Ended(RemoteEnd {
            sip_code: Some(code),
            kind: RemoteKind::Refused,
            ..RemoteEnd::default()
        })),
        Dialling::Never => rig.hang_up(EndReason::ApiHangup),
    }
    matches!(scenario.dialling, Dialling::Answered { .. })
}

fn talk(scenario: &Scenario, rig: &mut Rig) {
    let mut actions = scenario.actions.iter().peekable();
    rig.step();
    while !rig.is_over() {
        while let Some((_, action)) = actions.next_if(|(at, _)| *at <= rig.seconds() + 1e-9) {
            match action {
                Action::Ends => rig.signal(Signal::Ended(RemoteEnd::default())),
                Action::Sending(on) => rig.far.sending = *on,
                Action::Hold(held) => {
                    rig.signal(Signal::Renegotiated { media: MediaParams { may_send: !held, ..scenario.media } });
                    rig.signal(Signal::Hold(*held));
                }
                Action::WantsAudio(wants) => {
                    rig.signal(Signal::Renegotiated { media: MediaParams { may_send: *wants, ..scenario.media } });
                }
                Action::Odd { payload_type, bytes } => rig.far.odd = Some((*payload_type, *bytes)),
                Action::Transfers { to } => rig.signal(Signal::Transfer { to: to.clone() }),
                Action::SessionAnswered { code } => rig.signal(Signal::SessionAnswered { code: *code }),
                Action::Network(net) => rig.change_network(*net),
                Action::Misses(ticks) => rig.miss(*ticks),
                Action::ApiHangup => rig.hang_up(EndReason::ApiHangup),
                Action::InfoDigit { digit } => rig.signal(Signal::Digit { digit: *digit, duration_ms: 100 }),
                Action::DigitsRefused => rig.signal(Signal::DigitRefused),
                Action::Says { .. } | Action::Noise { .. } | Action::Digit { .. } => {}
            }
        }
        if rig.seconds() >= scenario.until {
            rig.hang_up(EndReason::ApiHangup);
        }
        rig.step();
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a switch of whoever runs the test")]
fn scenarios() {
    let wanted = std::env::var("SCENARIO").ok();
    let voice = voice();
    let mut faults = Vec::new();
    for (name, source) in files() {
        if wanted.as_ref().is_some_and(|wanted| !name.contains(wanted.as_str())) {
            continue;
        }
        let scenario = match grammar::parse(&name, &source, &voice.reversed()) {
            Ok(scenario) => scenario,
            Err(fault) => {
                faults.push(fault);
                continue;
            }
        };
        let rig = play(&scenario, &voice);
        if wanted.is_some() {
            show(&name, &rig);
        }
        assert!(!scenario.expects.is_empty(), "{name} expects nothing");
        for line in &scenario.expects {
            if let Err(fault) = expect::check(&rig, line) {
                faults.push(format!("{name}:{}: {}\n    {fault}", line.number, line.source));
            }
        }
        faults.extend(promises::broken(&scenario, &rig).into_iter().map(|fault| format!("{name}: {fault}")));
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

fn show(name: &str, rig: &Rig) {
    println!("{name}");
    for event in rig.log.events.iter().filter(|event| event.name() != "network") {
        println!("  {:9.4} {:?} {} {}", event.sample as f64 / 16_000.0, event.side, event.name(), event.data());
    }
    println!("  channel 0 {:.2?}", expect::runs(&rig.log, 0));
    println!("  channel 1 {:.2?}", expect::runs(&rig.log, 1));
}
