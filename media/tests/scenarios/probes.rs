//! Probes over many turns: their rate, and that they change nothing else in a call.

use std::fmt::Write;

use ringer_media::call::{Event, EventKind, Kind, NoiseSpec, ProbeKind};
use ringer_media::impair::AudioQuality;
use ringer_media::level::rms_dbov;
use ringer_media::seed::Seed;
use ringer_media::testing::Log;

use super::grammar::{Scenario, parse};

/// Plays these lines, changed by `with`.
fn play(source: &str, with: impl FnOnce(&mut Scenario)) -> Log {
    let voice = super::voice();
    let mut scenario = parse("probes", source, &voice).expect("it is right");
    with(&mut scenario);
    let rig = super::play(&scenario, &voice);
    assert_eq!(super::promises::broken(&scenario, &rig), [] as [String; 0]);
    rig.log
}

/// Returns the lines of `turns` of the agent, each `seconds` long and answered.
fn dialogue(turns: usize, seconds: f64) -> String {
    let mut source = "caller endpointing 0.5\ncaller max_duration 9999\n\
        caller script exact \"right\" phrase \"Yes.\"\n"
        .to_owned();
    let each = seconds + 2.0;
    for turn in 0..turns {
        writeln!(source, "{:.2} agent says {seconds} \"this is all right\"", 1.0 + each * turn as f64)
            .expect("it fits");
    }
    writeln!(source, "until {:.2}", 1.0 + each * turns as f64).expect("it fits");
    source
}

fn probes(log: &Log, wanted: ProbeKind) -> usize {
    log.events.iter().filter(|event| matches!(event.what, EventKind::Probe { kind } if kind == wanted)).count()
}

/// Returns the minutes in which the agent was heard to speak, and those of them from 1 s into each turn on.
fn minutes(log: &Log, turn_s: f64) -> [f64; 2] {
    let (mut all, mut late, mut onset, mut turn) = (0, 0, 0, -1_000_000_000);
    for event in &log.events {
        match event.what {
            EventKind::AgentSpeechStarted { .. } => {
                onset = event.sample;
                turn = if onset - turn > (turn_s * 16_000.0) as i64 { onset } else { turn };
            }
            EventKind::AgentSpeechEnded { .. } => {
                all += event.sample - onset;
                late += (event.sample - onset.max(turn + 16_000)).max(0);
            }
            _ => {}
        }
    }
    [all, late].map(|samples| samples as f64 / 960_000.0)
}

/// The rates that were asked for, of the time in which a probe of that kind may sound: together within 10 % over an
/// hour of turns.
#[test]
fn probes_are_as_frequent_as_asked() {
    let (mut counts, mut spoken) = ([0; 3], [0.0; 2]);
    let asked = [10.0, 5.0, 4.0];
    for seed in 0..32 {
        let log = play(&dialogue(10, 12.0), |scenario| {
            scenario.call.seed = Seed(seed);
            let rates = &mut scenario.call.probes;
            rates.backchannel_per_minute = asked[0];
            rates.vocal_tic_per_minute = asked[1];
            rates.non_directed_per_minute = asked[2];
        });
        for (count, kind) in counts.iter_mut().zip(ProbeKind::ALL) {
            *count += probes(&log, kind);
        }
        let [all, late] = minutes(&log, 12.5);
        spoken = [spoken[0] + all, spoken[1] + late];
    }
    let of = [spoken[1], spoken[0], spoken[0]];
    let rates: Vec<f64> = counts.iter().zip(of).map(|(&count, minutes)| count as f64 / minutes).collect();
    println!("{counts:?} probes in {spoken:.1?} minutes: {rates:.2?} a minute, asked {asked:?}");
    let near = |rate: f64, asked: f64, by: f64| assert!((rate / asked - 1.0).abs() <= by, "{rates:?}");
    near(rates.iter().sum(), asked.iter().sum(), 0.1);
    // 240 of the rarest kind are 6 % off by chance alone.
    rates.iter().zip(asked).for_each(|(rate, asked)| near(*rate, asked, 0.15));
}

/// The same events at the same samples as without probes; only they themselves are new, and the caller's side of the
/// recording.
#[test]
fn nothing_else_hears_of_probes() {
    let source = format!("codec G722\nnet jitter 20\ncaller interrupts 0.3\n{}", dialogue(6, 5.0));
    let plain = play(&source, |_| {});
    let probed = play(&format!("caller probes backchannel 10 tic 5 aside 5\n{source}"), |_| {});
    let ours = |event: &&Event| match &event.what {
        EventKind::SpeechStarted { kind, .. } | EventKind::SpeechEnded { kind, .. } => *kind == Kind::Probe,
        EventKind::Probe { .. } => true,
        _ => false,
    };
    let rest = |log: &Log| -> Vec<(i64, String)> {
        log.events.iter().filter(|event| !ours(event)).map(|event| (event.sample, event.name().to_owned())).collect()
    };
    let count = probed.events.iter().filter(ours).count();
    println!("{} events of probes, {} others", count, rest(&plain).len());
    assert!(count >= 15, "{count}");
    assert_eq!(rest(&plain), rest(&probed));
    let thoughts = |log: &Log| -> Vec<_> { log.thoughts.iter().map(|(at, thought)| (*at, thought.clone())).collect() };
    assert_eq!(thoughts(&plain), thoughts(&probed));
    let heard = |log: &Log| -> Vec<i16> { log.recorded.iter().copied().skip(1).step_by(2).collect() };
    assert!(heard(&plain) == heard(&probed) && plain.recorded != probed.recorded);
}

/// Returns the stretches in which a probe sounds.
fn stretches(log: &Log) -> Vec<(usize, usize)> {
    let at = |event: &Event| match &event.what {
        EventKind::SpeechStarted { kind: Kind::Probe, .. } | EventKind::SpeechEnded { kind: Kind::Probe, .. } => {
            Some(event.sample as usize)
        }
        _ => None,
    };
    let edges: Vec<usize> = log.events.iter().filter_map(at).collect();
    edges.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Returns these samples with all sound before and after them without 10 ms of silence: not all of it is audible at
/// this audio quality.
fn whole(pcm: &[i16], from: usize, to: usize) -> [usize; 2] {
    let silent = |part: &[i16]| part.iter().all(|&x| x == 0);
    let first = (160..=from).rev().find(|&at| silent(&pcm[at - 160..at])).unwrap_or(0);
    let last = (to..pcm.len() - 160).find(|&at| silent(&pcm[at..at + 160])).unwrap_or(pcm.len());
    [first, last]
}

/// Probes stand in the clean track alone at their own level, and go out with the noise and through the levers.
#[test]
fn probes_take_the_way_of_speech() {
    let voice = super::voice();
    let source = "caller probes backchannel 20 aside 10\n1.0 agent says 60.0 \"a story\"\nuntil 62";
    let log = play(source, |scenario| {
        let loop_pcm = voice.say(16_000 * 5, 4000);
        scenario.call.noise = Some(NoiseSpec { loop_pcm, gain_narrow: 0.05, gain_wide: 0.05, start: 77 });
        scenario.call.audio_quality = AudioQuality::HORRIBLE;
    });
    let stretches = stretches(&log);
    assert!(stretches.len() >= 5, "{stretches:?}");
    let mut quiet = 0;
    // The voice of the tests has strong and weak parts: a kind has its level as a whole.
    let mut said: [Vec<i16>; 2] = Default::default();
    for &(from, to) in &stretches {
        let [from, to] = whole(&log.clean, from, to);
        assert!(log.clean[quiet..from].iter().all(|x| *x == 0), "silence between {quiet} and {from}");
        said[usize::from(to - from > 12_000)].extend(&log.clean[from..to]);
        let sent: Vec<i16> = log.recorded[2 * from..2 * to].iter().copied().step_by(2).collect();
        assert!(sent.iter().zip(&log.clean[from..to]).filter(|(sent, clean)| sent != clean).count() > sent.len() / 2);
        assert!(sent.iter().all(|x| x.unsigned_abs() < 8400), "hard clipping at -12 dBFS");
        quiet = to;
    }
    for (said, asked) in said.iter().zip([-26.0, -32.0]) {
        assert!((rms_dbov(said) - asked).abs() < 1.5, "{:.1} dBov of {asked}", rms_dbov(said));
    }
}

/// Phrases that the voice says too fast or too slowly are not used; a kind that has none left is given up.
#[test]
fn words_of_the_wrong_length_are_left_out() {
    let source = "caller probes backchannel 20 aside 10\n1.0 agent says 40.0 \"a story\"\nuntil 42";
    let words = |short: &[&str], long: &[&str]| {
        let log = play(source, |scenario| {
            let own = |texts: &[&str]| texts.iter().map(|&text| text.into()).collect();
            scenario.call.phrases.backchannel = own(short);
            scenario.call.phrases.aside = own(long);
        });
        let said = |event: &Event| match &event.what {
            EventKind::SpeechStarted { kind: Kind::Probe, text, .. } => Some(text.clone()),
            _ => None,
        };
        let mut said: Vec<String> = log.events.iter().filter_map(said).collect();
        said.sort();
        said.dedup();
        let given_up = log.events.iter().filter(|event| event.name() == "probe_words_do_not_fit").count();
        (said, given_up)
    };
    // The voice of these calls takes 60 ms a character.
    let fits = ["Just a second, please.", "Okay."].map(String::from).to_vec();
    let (mixed_short, mixed_long) = (["Oh", "Okay.", "I understand you."], ["Wait.", "Just a second, please."]);
    assert_eq!(words(&mixed_short, &mixed_long), (fits.clone(), 0));
    assert_eq!(words(&["I understand you."], &[]), (vec![], 2));
    // 720 ms are said in 500.
    assert_eq!(words(&["I see, okay."], &mixed_long).0, ["I see, okay.".to_owned(), fits[0].clone()]);
}
