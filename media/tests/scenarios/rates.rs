//! Properties of many turns together: the rate of interruptions at a level, the exactness of a delay, the time until
//! the caller gives way.

use std::fmt::Write;

use ringer_media::call::{Event, EventKind, Kind};
use ringer_media::seed::Seed;
use ringer_media::testing::Log;

/// Delays of 0: speech, text and thought are ready as soon as they are asked for.
const AT_ONCE: &str = "delay think 0\ndelay recognize 0\ndelay synthesize 0\n";

/// Plays these lines with a seed.
fn play(source: &str, seed: u64) -> Log {
    let voice = super::voice();
    let mut scenario = super::grammar::parse("rates", source, &voice).expect("it is right");
    scenario.call.seed = Seed(seed);
    super::play(&scenario, &voice).log
}

fn seconds(event: &Event) -> f64 {
    event.sample as f64 / 16_000.0
}

/// Returns the onsets of the caller's words of a kind.
fn starts(log: &Log, wanted: Kind) -> Vec<f64> {
    let is = |event: &&Event| matches!(&event.what, EventKind::SpeechStarted { kind, .. } if *kind == wanted);
    log.events.iter().filter(is).map(seconds).collect()
}

/// Checks that turns longer than the window are interrupted with exactly the level's probability, at a moment uniform
/// in the window. The window is a fifth as long as a caller's, for a fifth of the speech.
fn level(name: &str, probability: f64) {
    const CALLS: u64 = 5;
    const TURNS: usize = 220;
    let mut source = format!(
        "no text\ncaller opens \"Hi.\"\ncaller cuts in with \"Wait.\"\ncaller endpointing 0.3\ncaller max_duration 9999\n\
         caller interrupts {name} from 0.2 to 0.6\n{AT_ONCE}"
    );
    for turn in 0..TURNS {
        writeln!(source, "{:.2} agent says 0.7", 2.0 + 1.6 * turn as f64).expect("a string takes it");
    }
    writeln!(source, "until {}", 2.0 + 1.6 * TURNS as f64).expect("a string takes it");
    let (mut cuts, mut moments) = (0.0, 0.0);
    for seed in 0..CALLS {
        for at in starts(&play(&source, 100 + seed), Kind::Interruption) {
            cuts += 1.0;
            moments += (at - 2.0).rem_euclid(1.6);
        }
    }
    let turns = CALLS as f64 * TURNS as f64;
    let (rate, mean) = (cuts / turns, moments / cuts);
    let (sigma, sigma_mean) = ((probability * (1.0 - probability) / turns).sqrt(), 0.4 / 12f64.sqrt() / cuts.sqrt());
    println!(
        "{name}: {cuts} cuts in {turns} turns, {rate:.4} of {probability} (sigma {sigma:.4}), at {mean:.3} s on average"
    );
    assert!((rate - probability).abs() <= 3.0 * sigma, "{name}: {rate}");
    assert!((mean - 0.4).abs() <= 3.0 * sigma_mean + 0.01, "{name}: {mean}");
}

#[test]
fn levels_cut_as_often_as_they_say() {
    level("low", 0.10);
    level("medium", 0.25);
    level("high", 0.50);
}

/// Pauses of every length below the delay, then the answer: none earlier, each within 30 ms of its due time.
#[test]
fn delays_are_kept_and_pauses_below_them_never_trigger() {
    let (mut worst, mut answers) = (0.0f64, 0);
    for (at, delay) in [0.3, 0.5, 0.8, 1.2, 1.5, 2.0].into_iter().enumerate() {
        for (codec, net) in [("PCMU", ""), ("G722", ""), ("PCMU", "net jitter 20\n")] {
            let mut source = format!("{AT_ONCE}codec {codec}\n{net}caller endpointing {delay}\n");
            let (mut from, mut due) = (1.0, Vec::new());
            for turn in 0..3 {
                for pause in [0.15, 0.6 * delay, delay - 0.11] {
                    writeln!(source, "caller replies \"Yes.\"\n{from:.3} agent says 0.6 \"so\"").expect("a string");
                    from += 0.6 + pause;
                }
                writeln!(source, "caller replies \"Yes.\"\n{from:.3} agent says 0.6 \"so\"").expect("a string");
                due.push(from + 0.6 + delay);
                from += 0.6 + delay + 1.0 + 0.013 * f64::from(turn);
            }
            writeln!(source, "until {:.2}", from + 1.0).expect("a string");
            let said = starts(&play(&source, 7 + at as u64), Kind::Turn);
            assert_eq!(said.len(), due.len(), "{source}\n{said:?} {due:?}");
            let late = said.iter().zip(&due).map(|(said, due)| (said - due).abs());
            worst = late.fold(worst, f64::max);
            answers += said.len();
        }
    }
    println!("{answers} answers, the worst {:.1} ms from its due time", worst * 1000.0);
    assert!(worst <= 0.030, "{worst}");
}

/// Wherever the agent begins, the caller is silent 200 ms of its speech and at most 60 ms later.
#[test]
fn the_caller_stops_within_sixty_milliseconds() {
    let (mut worst, mut least) = (0.0f64, f64::MAX);
    for seed in 0..40u32 {
        let source = format!(
            "codec {}\ncaller opens \"Good morning, I am calling about the order that I placed last week.\"\n\
             {:.4} agent says 1.5 \"Sorry\"\nuntil 6",
            if seed % 2 == 0 { "PCMU" } else { "G722" },
            1.5 + 0.0137 * f64::from(seed),
        );
        let log = play(&source, seed.into());
        let stops: Vec<Option<u32>> = log
            .events
            .iter()
            .filter_map(|event| if let EventKind::BargeIn { stop_ms, .. } = event.what { Some(stop_ms) } else { None })
            .collect();
        let [Some(told_ms)] = stops[..] else { panic!("{source}: {stops:?}") };
        let onset = log.events.iter().find(|event| matches!(event.what, EventKind::AgentSpeechStarted { .. }));
        let onset = onset.expect("the agent is heard").sample;
        let sent_to = log.clean.iter().rposition(|&x| x != 0).expect("the caller spoke") as i64 + 1;
        let stop_ms = (sent_to - onset) as f64 / 16.0;
        (worst, least) = (worst.max(stop_ms), least.min(stop_ms));
        // The voice has weak sounds of up to 40 ms, which may be its last ones.
        assert!((stop_ms - 50.0..=stop_ms + 10.0).contains(&f64::from(told_ms)), "{source}: {told_ms} of {stop_ms} ms");
    }
    println!("40 stops, {least} to {worst} ms after the agent's onset");
    assert!(least >= 200.0 && worst <= 260.0, "{least} to {worst}");
}
