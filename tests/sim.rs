//! Calls in virtual time: the same seed gives the same bytes, and whatever goes wrong, what must hold for every call
//! holds.

mod edges;
mod fluency;
mod language;
mod scripts;
mod websocket;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ringer::cli::sim::drawn::{faulty, plain};
use ringer::engine::Placement;
use ringer::engine::noise::NoiseBeds;
use ringer::engine::sim::{self, Outcome, Sim};
use ringer::human::{self, Profile};
use ringer::judge::{self, Facts};
use ringer::provider::canned::Canned;
use ringer_media::call::{CallSpec, Interruption};
use ringer_media::netem::NetemSpec;
use ringer_media::seed::Seed;
use serde_json::json;

/// Seeds that are run twice in every test run.
const SEEDS: u64 = 50;
/// Calls of a day.
const DAY: u64 = 250;

fn run(seed: u64, call: Sim) -> Outcome {
    sim::run(call).unwrap_or_else(|why| panic!("seed {seed}: {why}"))
}

/// Returns the broken invariants of both sides, as texts with the seed.
fn broken(seed: u64, outcome: &Outcome) -> Vec<String> {
    let sides = [("caller", &outcome.caller), ("agent", &outcome.agent)];
    let target = outcome.target.as_ref().map(|target| ("target", target));
    let warnings = sides.into_iter().chain(target).flat_map(|(name, side)| {
        side.violations.iter().map(move |violation| format!("seed {seed}: {name}: {violation}"))
    });
    let never = outcome.caller.ending.is_none().then(|| format!("seed {seed}: the call never ended"));
    warnings.chain(never).collect()
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let (voices, beds) = (Arc::new(Canned::default()), NoiseBeds::new(None));
    for seed in 1..SEEDS + 1 {
        let once = || run(seed, faulty(seed, &voices, &beds));
        let (first, second) = (once(), once());
        assert!(first == second, "seed {seed}: two runs differ");
        assert_eq!(broken(seed, &first), Vec::<String>::new());
    }
}

#[test]
fn another_seed_gives_another_call() {
    let voices = Arc::new(Canned::default());
    let recordings: Vec<Vec<u8>> = (1..4).map(|seed| run(seed, plain(seed, &voices)).caller.recording).collect();
    assert!(recordings[0] != recordings[1] && recordings[1] != recordings[2]);
}

#[test]
fn a_quiet_network_carries_a_whole_conversation() {
    let voices = Arc::new(Canned::default());
    let network = NetemSpec { delay_ms: 20.0, ..NetemSpec::default() };
    let outcome = sim::run(Sim { network, then: None, ..plain(5, &voices) }).expect("it runs");
    let ending = outcome.caller.ending.as_ref().expect("it ended");
    assert!(ending.connected && ending.other_spoke, "{ending:?}");
    assert_eq!((ending.quality.lost_packets, ending.quality.late_packets), (0, 0));
    let heard = |event: &str| outcome.caller.timeline.iter().filter(|entry| entry.name() == event).count();
    assert!(heard("turn.ended") >= 3 && heard("speech.started") >= 6, "{:?}", outcome.caller.timeline);
    // One side heard the words that the other one said.
    let texts = outcome.caller.timeline.iter().filter_map(|entry| entry.data()["text"].as_str().map(str::to_owned));
    let texts: Vec<String> = texts.collect();
    assert!(texts.iter().any(|text| text.contains("press one for appointments")), "{texts:?}");
}

/// Every metric that is measured and not judged, by the name under which it is published.
const MEASURED: [&str; 58] = [
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
    "setup_ms",
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
    "longest_agent_pause",
    "keys_talked_over",
    "echoed_turns",
    "doubled_turns",
    "repeated_turns",
    "foreign_turns",
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
        let outcome = run(seed, plain(seed, &voices));
        let moments = judge::moments(&json!(outcome.caller.timeline));
        let (interface, fillers, language) = ("PHONE", judge::fillers("en", &[]), Some("en".to_owned()));
        let facts = Facts { extension_digits: 0, interface, fillers, language, ..Facts::default() };
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), &outcome.caller.recording).expect("it is writable");
        let heard = judge::audio_metrics(&moments, &facts, None, file.path(), None).expect("the recording can be read");
        for metric in judge::measure(&moments, &facts).metrics.into_iter().chain(heard) {
            assert!(MEASURED.contains(&metric.name.as_str()), "{} is no published name", metric.name);
            assert!(!metric.value.is_null(), "seed {seed}: {} has no value and is left out", metric.name);
            given.insert(metric.name);
        }
    }
    let never: Vec<&str> = MEASURED.into_iter().filter(|name| !given.contains(*name)).collect();
    // Recognised words have no sentences, so that no stop is known to be for the caller; this agent interrupts nobody,
    // no probes are made, nothing was posted.
    let expected = [
        "avg_punctuation_latency",
        "p50_punctuation_latency",
        "p90_punctuation_latency",
        "dh_yield_latency_ms",
        "yield_latency",
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
    let (voices, beds) = (Arc::new(Canned::default()), NoiseBeds::new(None));
    let (mut reasons, mut broken) = (BTreeMap::<&str, u32>::new(), Vec::new());
    for seed in 10_000..10_000 + DAY {
        let outcome = run(seed, faulty(seed, &voices, &beds));
        broken.extend(self::broken(seed, &outcome));
        if let Some(ending) = &outcome.caller.ending {
            *reasons.entry(ending.reason.as_str()).or_default() += 1;
        }
    }
    println!("{reasons:?}");
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
        Step::Digits("5".into()),
        Step::Say("Never mind, goodbye.".into()),
    ];
    let profile = Profile { playback, ..Profile::default() };
    let plain = plain(5, &voices);
    let spec = CallSpec { interruption: Interruption::None, ..plain.caller.spec.clone() };
    let mind = human::mind(profile, None, Seed(5));
    let network = NetemSpec { delay_ms: 20.0, ..NetemSpec::default() };
    let caller = Placement { spec, mind, ..plain.caller };
    let outcome = sim::run(Sim { network, then: None, caller, ..plain }).expect("it runs");
    let own = outcome.caller.timeline.iter().filter(|entry| entry.side_name() == "dh");
    let done: Vec<(f64, String)> = own
        .filter_map(|entry| match entry.name() {
            "speech.started" => Some((entry.sample as f64 / 16_000.0, entry.data()["text"].as_str()?.to_owned())),
            "dtmf_sent" => Some((entry.sample as f64 / 16_000.0, entry.data()["digits"].as_str()?.to_owned())),
            _ => None,
        })
        .collect();
    let texts: Vec<&str> = done.iter().map(|(_, text)| text.as_str()).collect();
    let expect = ["I would like an appointment.", "The third of March.", "5", "Never mind, goodbye."];
    assert_eq!(texts, expect, "{done:?}");
    // The turn of the agent between them is heard out, then comes the silence.
    assert!(done[1].0 - done[0].0 > 7.0, "{done:?}");
    assert_eq!(outcome.caller.ending.as_ref().map(|ending| ending.reason.as_str()), Some("playback_end"));
}
