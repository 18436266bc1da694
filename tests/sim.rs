//! Calls in virtual time: the same seed gives the same bytes, and whatever goes wrong, what must hold for every call holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ringer::agent;
use ringer::engine::sim::{self, Faults, Outcome, Sim};
use ringer::engine::{Dial, Placement};
use ringer::human::{self, Profile};
use ringer::judge::{self, Facts};
use ringer::provider::canned::Canned;
use ringer_media::call::{CallSpec, Interruption, Opening};
use ringer_media::codec::Codec;
use ringer_media::netem::{Loss, NetemSpec};
use ringer_media::seed::{Seed, Stream};
use serde_json::json;

/// Seeds that are run twice in every test run.
const SEEDS: u64 = 50;
/// Calls of a day.
const DAY: u64 = 150;

/// A call whose network, codec and manner are drawn from its seed.
fn call(seed: u64, voices: &Arc<Canned>, faulty: bool) -> Sim {
    let seed = Seed(seed);
    let mut draw = seed.stream("what kind of call");
    let codecs = vec![[Codec::Pcmu, Codec::Pcma, Codec::G722][draw.index(3)]];
    let intent = "I would like to make an appointment. In the morning, please. Thank you very much.";
    let profile = Profile { intent: intent.into(), ..Profile::default() };
    let probability = draw.unit();
    let spec = CallSpec {
        seed,
        opening: Opening::Listen { open_after_ms: Some(10_000) },
        interruption: Interruption::Level { probability, from_ms: 800, to_ms: 3000, at_most: None },
        ..CallSpec::default()
    };
    let caller = Placement {
        id: "sim".into(),
        spec,
        dial: Dial { codecs, ..Dial::default() },
        fluency: profile.fluency(seed),
        mind: human::mind(profile, None, seed),
        voice: Some(Canned::named("caller")),
        language: "en".into(),
        keyterms: Vec::new(),
        folder: None,
    };
    Sim {
        seed,
        network: network(&mut draw),
        then: (draw.unit() < 0.3).then(|| (seconds(&mut draw, 5.0, 20.0), network(&mut draw))),
        caller,
        agent: agent::placement("sim".into(), seed, Canned::named("agent"), Vec::new()),
        synthesizer: voices.clone(),
        faults: if faulty { faults(&mut draw) } else { Faults::default() },
        longest: Duration::from_secs(120),
    }
}

fn network(draw: &mut Stream) -> NetemSpec {
    let loss = match draw.index(3) {
        0 => Loss::None,
        1 => Loss::Independent(draw.range(0.0, 0.1)),
        _ => Loss::Burst { enter: draw.range(0.0, 0.03), leave: 0.3, loss: 1.0 },
    };
    NetemSpec {
        delay_ms: draw.range(1.0, 150.0),
        jitter_ms: draw.range(0.0, 80.0),
        overtake: draw.unit() < 0.5,
        loss,
        reorder: draw.range(0.0, 0.02),
        reorder_ms: 60.0,
        duplicate: draw.range(0.0, 0.02),
        ..NetemSpec::default()
    }
}

fn faults(draw: &mut Stream) -> Faults {
    let mut at_times = |share: f64| (draw.unit() < share).then(|| seconds(draw, 0.0, 40.0));
    let (caller_hangs_up, agent_hangs_up, network_dies) = (at_times(0.3), at_times(0.3), at_times(0.15));
    let failures = if draw.unit() < 0.5 { draw.range(0.0, 0.3) } else { 0.0 };
    Faults { caller_hangs_up, agent_hangs_up, network_dies, failures }
}

fn seconds(draw: &mut Stream, least: f64, most: f64) -> Duration {
    Duration::from_secs_f64(draw.range(least, most))
}

fn run(seed: u64, voices: &Arc<Canned>, faulty: bool) -> Outcome {
    sim::run(call(seed, voices, faulty)).unwrap_or_else(|why| panic!("seed {seed}: {why}"))
}

/// Runs every seed twice; what they left must be equal in every byte.
fn twice(seeds: std::ops::Range<u64>) {
    let voices = Arc::new(Canned::default());
    for seed in seeds {
        let (first, second) = (run(seed, &voices, true), run(seed, &voices, true));
        assert!(first == second, "seed {seed}: two runs differ");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    twice(1..SEEDS + 1);
}

#[test]
fn another_seed_gives_another_call() {
    let voices = Arc::new(Canned::default());
    let recordings: Vec<Vec<u8>> = (1..4).map(|seed| run(seed, &voices, false).caller.recording).collect();
    assert!(recordings[0] != recordings[1] && recordings[1] != recordings[2]);
}

#[test]
fn a_quiet_network_carries_a_whole_conversation() {
    let voices = Arc::new(Canned::default());
    let network = NetemSpec { delay_ms: 20.0, ..NetemSpec::default() };
    let outcome = sim::run(Sim { network, then: None, ..call(5, &voices, false) }).expect("it runs");
    let ending = outcome.caller.ending.as_ref().expect("it ended");
    assert!(ending.connected && ending.other_spoke, "{ending:?}");
    assert_eq!((ending.quality.lost_packets, ending.quality.late_packets), (0, 0));
    let heard = |event: &str| outcome.caller.timeline.iter().filter(|entry| entry.event == event).count();
    assert!(heard("turn.ended") >= 3 && heard("speech.started") >= 6, "{:?}", outcome.caller.timeline);
    // What one side heard is what the other one said.
    let texts: Vec<&str> = outcome.caller.timeline.iter().filter_map(|entry| entry.data["text"].as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("press one for appointments")), "{texts:?}");
}

/// Every metric that is measured and not judged, by the name under which it is published.
const MEASURED: [&str; 51] = [
    "avg_agent_latency",
    "max_agent_latency",
    "p50_agent_latency",
    "p90_agent_latency",
    "p95_agent_latency",
    "p99_agent_latency",
    "avg_filler_ignored_latency",
    "p50_filler_ignored_latency",
    "p90_filler_ignored_latency",
    "p95_filler_ignored_latency",
    "p99_filler_ignored_latency",
    "avg_customer_latency",
    "p50_customer_latency",
    "p90_customer_latency",
    "avg_punctuation_latency",
    "p50_punctuation_latency",
    "p90_punctuation_latency",
    "time_to_first_agent_utterance",
    "agent_interruption_count",
    "customer_interruption_count",
    "dh_yield_latency_ms",
    "response_rate",
    "yield_rate",
    "yield_latency",
    "agent_interrupts_rate",
    "backchannel_selectivity",
    "vocal_tic_selectivity",
    "non_directed_selectivity",
    "agent_speak_percentage",
    "customer_speak_percentage",
    "overlap_percentage",
    "silence_percentage",
    "talk_ratio",
    "num_turns",
    "agent_turn_duration_avg",
    "agent_words_per_turn_avg",
    "customer_words_per_turn_avg",
    "agent_wpm",
    "duration",
    "interface",
    "agent_perceived_loudness",
    "agent_audio_clipping",
    "agent_snr",
    "agent_audio_dropouts",
    "agent_dropout_ms",
    "agent_pitch_variability",
    "agent_audio_clarity",
    "user_audio_clarity",
    "audio_fidelity",
    "predicted_wer",
    "expected_tool_calls_met",
];

#[test]
fn conversations_give_every_metric_that_is_measured() {
    let voices = Arc::new(Canned::default());
    let mut given = BTreeSet::new();
    for seed in 1..13 {
        let outcome = run(seed, &voices, false);
        let moments = judge::moments(&json!(outcome.caller.timeline));
        let facts = Facts { extension_digits: 0, interface: "PHONE", fillers: judge::fillers("en", &[]) };
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), &outcome.caller.recording).expect("it is writable");
        let heard = judge::audio_metrics(&moments, &facts, None, file.path()).expect("the recording can be read");
        for metric in judge::measure(&moments, &facts).metrics.into_iter().chain(heard) {
            assert!(MEASURED.contains(&metric.name.as_str()), "{} is no published name", metric.name);
            assert!(!metric.value.is_null(), "seed {seed}: {} has no value and is left out", metric.name);
            given.insert(metric.name);
        }
    }
    let never: Vec<&str> = MEASURED.into_iter().filter(|name| !given.contains(*name)).collect();
    // What is heard is written without sentences, this agent cuts in on nobody, no probes are made, nothing was posted.
    let expected = [
        "avg_punctuation_latency",
        "p50_punctuation_latency",
        "p90_punctuation_latency",
        "dh_yield_latency_ms",
        "backchannel_selectivity",
        "vocal_tic_selectivity",
        "non_directed_selectivity",
        "predicted_wer",
        "expected_tool_calls_met",
    ];
    assert_eq!(never, expected);
}

#[test]
fn whatever_goes_wrong_every_call_keeps_the_rules() {
    let voices = Arc::new(Canned::default());
    let (mut reasons, mut broken) = (BTreeMap::<&str, u32>::new(), Vec::new());
    for seed in 10_000..10_000 + DAY {
        let outcome = run(seed, &voices, true);
        for (name, side) in [("caller", &outcome.caller), ("agent", &outcome.agent)] {
            broken.extend(side.violations.iter().map(|violation| format!("seed {seed}: {name}: {violation}")));
        }
        match &outcome.caller.ending {
            Some(ending) => *reasons.entry(ending.reason.as_str()).or_default() += 1,
            None => broken.push(format!("seed {seed}: the call never ended")),
        }
    }
    assert!(broken.is_empty(), "{}\n{reasons:?}", broken.join("\n"));
    // A day in which only one thing happens tests nothing.
    assert!(reasons.len() >= 5, "{reasons:?}");
}

#[test]
fn what_is_played_is_said_in_order_and_ends_the_call() {
    use ringer::human::Step;
    let voices = Arc::new(Canned::default());
    let playback = vec![
        Step::Hear,
        Step::Say("I would like an appointment.".into()),
        Step::Hear,
        Step::SilenceMs(7000),
        Step::Say("The third of March.".into()),
        Step::Keys("5".into()),
        Step::Say("Never mind, goodbye.".into()),
    ];
    let profile = Profile { playback, ..Profile::default() };
    let plain = call(5, &voices, false);
    let spec = CallSpec { interruption: Interruption::None, ..plain.caller.spec.clone() };
    let mind = human::mind(profile, None, Seed(5));
    let network = NetemSpec { delay_ms: 20.0, ..NetemSpec::default() };
    let caller = Placement { spec, mind, ..plain.caller };
    let outcome = sim::run(Sim { network, then: None, caller, ..plain }).expect("it runs");
    let own = outcome.caller.timeline.iter().filter(|entry| entry.side == "dh");
    let done: Vec<(f64, &str)> = own
        .filter_map(|entry| match entry.event.as_str() {
            "speech.started" => Some((entry.sample as f64 / 16_000.0, entry.data["text"].as_str()?)),
            "dtmf_sent" => Some((entry.sample as f64 / 16_000.0, entry.data["digits"].as_str()?)),
            _ => None,
        })
        .collect();
    let texts: Vec<&str> = done.iter().map(|(_, text)| *text).collect();
    let expect = ["I would like an appointment.", "The third of March.", "5", "Never mind, goodbye."];
    assert_eq!(texts, expect, "{done:?}");
    // The turn of the agent between them is heard out, then comes the silence.
    assert!(done[1].0 - done[0].0 > 7.0, "{done:?}");
    assert_eq!(outcome.caller.ending.as_ref().map(|ending| ending.reason.as_str()), Some("playback_end"));
}
