//! Whole conversations in virtual time. Each file of `fixtures/scenarios` is one; the promises of every call are
//! checked for each of them. `SCENARIO=name cargo test -p ringer-media --test scenarios` runs those whose name holds
//! `name` and shows their timelines.

mod before;
mod channel;
mod concealed;
mod connection;
mod edges;
mod expect;
mod grammar;
mod hasty;
mod opening;
mod probes;
mod promises;
mod quiet;
mod rates;
mod snr;

use std::path::Path;
use std::time::Duration;

use grammar::{Action, Dialling, Scenario};
use ringer_media::call::{EndDetail, EndReason, RemoteEnd, RemoteKind, Signal};
use ringer_media::leg::{MediaParams, PcmParams};
use ringer_media::noise;
use ringer_media::testing::{Rig, RigSpec, Spoken, Voice};

/// Beginnings of the names of scenarios that are about RTP itself: lost and late packets, telephone events, SIP INFO,
/// hold, and the end of calls whose packets stop.
const RTP_ONLY: [&str; 10] = [
    "net_",
    "dtmf_in_events",
    "dtmf_in_info",
    "dtmf_out_events",
    "dtmf_out_info",
    "end_media_",
    "echo_",
    "rtp_",
    "hold",
    "unheard_",
];

/// Scenarios whose figures depend on less than 20 ms, or on a draw, and differ at this rate. The first two come out the
/// same over RTP at 16 kHz.
const OTHERWISE: [(&str, u32); 6] = [
    ("cutin_level_once_a_turn", 16_000),
    ("cutin_level_once_a_turn", 24_000),
    ("both_start_in_noise", 16_000),
    ("endpointing_pauses", 24_000),
    ("probe_over_the_end", 8000),
    ("probe_rates", 8000),
];

/// Speech of 20 s in G.711 mu-law.
const SPEECH: &[u8] = include_bytes!("../../../fixtures/audio/speech.ul");

/// Returns the voice of all scenarios.
pub fn voice() -> Voice {
    Voice::from_ulaw(SPEECH)
}

/// Returns all scenario files, by name.
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
    play_as(scenario, voice, voice.reverse())
}

/// Plays a scenario with a caller of another voice.
pub fn play_as(scenario: &Scenario, voice: &Voice, caller: Voice) -> Rig {
    let mut rig = Rig::new(RigSpec {
        call: scenario.call.clone(),
        leg: scenario.leg(),
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
            Action::Tone { hz, seconds } => {
                let step = |hz: f64| std::f64::consts::TAU * hz / 16_000.0;
                let at = |n: usize| hz.iter().map(|hz| (step(*hz) * n as f64).sin()).sum::<f64>() / hz.len() as f64;
                let pcm: Vec<i16> = (0..(seconds * 16_000.0) as usize).map(|n| (6000.0 * at(n)) as i16).collect();
                rig.far.spoken.push(Spoken { from, pcm: pcm.into(), text: String::new() });
            }
            Action::Noise { kind, snr_db } => {
                let seconds = (scenario.until - at).ceil() as u32;
                let mut pcm = noise::generate(*kind, scenario.call.seed, seconds, &[]);
                ringer_media::testing::level_for(&mut pcm, *snr_db, scenario.leg().rate_hz());
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

/// Dials the call; true when it is connected.
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
            detail: EndDetail::Sip { code: Some(code), q850_cause: None, retry_after: false },
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
                    rig.signal(Signal::Renegotiated { leg: MediaParams { may_send: !held, ..scenario.media }.into() });
                    rig.signal(Signal::Hold(*held));
                }
                Action::WantsAudio(wants) => {
                    rig.signal(Signal::Renegotiated { leg: MediaParams { may_send: *wants, ..scenario.media }.into() });
                }
                Action::Odd { payload_type, bytes } => rig.far.odd = Some((*payload_type, *bytes)),
                Action::Transfers { to } => rig.signal(Signal::Transfer { to: to.clone(), can_follow: false }),
                Action::SessionAnswered { code } => rig.signal(Signal::SessionAnswered { code: *code }),
                Action::Network(net) => rig.change_network(*net),
                Action::Misses(ticks) => rig.miss(*ticks),
                Action::ApiHangup => rig.hang_up(EndReason::ApiHangup),
                Action::InfoDigit { digit } => rig.signal(Signal::Digit { digit: *digit, duration_ms: 100 }),
                Action::DigitsRefused => rig.signal(Signal::DigitRefused),
                Action::Says { .. } | Action::Tone { .. } | Action::Noise { .. } | Action::Digit { .. } => {}
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
        let scenario = match grammar::parse(&name, &source, &voice.reverse()) {
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

/// The same conversations over frames of PCM and their rings instead of RTP, at the rates that agents use. Left out are
/// those about what PCM does not have (`RTP_ONLY`), and single rates (`OTHERWISE`).
#[test]
#[expect(clippy::disallowed_methods, reason = "a switch of whoever runs the test")]
fn scenarios_over_pcm() {
    let wanted = std::env::var("SCENARIO").ok();
    let voice = voice();
    let (mut faults, mut count) = (Vec::new(), 0);
    for (name, source) in files() {
        let other = wanted.as_ref().is_some_and(|wanted| !name.contains(wanted.as_str()));
        if other || RTP_ONLY.iter().any(|only| name.starts_with(only)) {
            continue;
        }
        count += 1;
        for rate_hz in [8000, 16_000, 24_000] {
            if OTHERWISE.iter().any(|(other, at_hz)| name.starts_with(other) && *at_hz == rate_hz) {
                continue;
            }
            let source = source.replace("codec = PCMU", "codec = PCM");
            let mut scenario = grammar::parse(&name, &source, &voice.reverse()).expect("it is right");
            scenario.pcm = PcmParams::new(rate_hz);
            scenario.call.dtmf = ringer_media::call::DtmfMethod::Inband;
            let rig = play(&scenario, &voice);
            if wanted.is_some() {
                show(&name, &rig);
            }
            for line in &scenario.expects {
                if let Err(fault) = expect::check(&rig, line) {
                    faults.push(format!("{name}:{}: {rate_hz} Hz: {}\n    {fault}", line.number, line.source));
                }
            }
            let broken = promises::broken(&scenario, &rig).into_iter();
            faults.extend(broken.map(|fault| format!("{name}: {rate_hz} Hz: {fault}")));
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
    assert!(wanted.is_some() || count >= 100, "{count} scenarios were played");
}

fn show(name: &str, rig: &Rig) {
    println!("{name}");
    for event in rig.log.events.iter().filter(|event| event.name() != "network") {
        println!("  {:9.4} {:?} {} {}", event.sample as f64 / 16_000.0, event.side, event.name(), event.data());
    }
    println!("  channel 0 {:.2?}", expect::runs(&rig.log, 0));
    println!("  channel 1 {:.2?}", expect::runs(&rig.log, 1));
}
