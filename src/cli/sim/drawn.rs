//! Calls of which nearly everything is drawn from their seed: codec, network, manner, line, script, digits, and what
//! goes wrong. Whatever comes together, the same seed gives the same call.

use std::sync::Arc;
use std::time::Duration;

use ringer_media::call::{
    CallSpec, DtmfMethod, Interruption, KeywordResponse, Matching, Opening, ProbeRates, Response, ScriptRule,
};
use ringer_media::codec::Codec;
use ringer_media::connection::ConnectionSpec;
use ringer_media::impair::AudioQuality;
use ringer_media::netem::{Loss, NetemSpec};
use ringer_media::noise::Kind;
use ringer_media::seed::{Seed, Stream};

use super::placement;
use crate::agent;
use crate::engine::noise::NoiseBeds;
use crate::engine::sim::{Faults, Sim};
use crate::human::{Profile, Step};
use crate::provider::canned::Canned;

/// Intent of most callers.
const INTENT: &str = "I would like to make an appointment. In the morning, please. Thank you very much.";

/// Returns a call whose network, codec and manner of interrupting are drawn; nothing goes wrong by itself.
pub fn plain(seed: u64, voices: &Arc<Canned>) -> Sim {
    let seed = Seed(seed);
    let mut draw = seed.stream("what kind of call");
    let codecs = vec![[Codec::Pcmu, Codec::Pcma, Codec::G722][draw.index(3)]];
    let probability = draw.unit();
    let spec = CallSpec {
        seed,
        opening: Opening::Listen { open_after_ms: Some(10_000) },
        interruption: Interruption::Level { name: "level", probability, from_ms: 800, to_ms: 3000, at_most: None },
        ..CallSpec::default()
    };
    let profile = Profile { intent: INTENT.into(), ..Profile::default() };
    Sim {
        seed,
        network: network(&mut draw),
        then: (draw.unit() < 0.3).then(|| (seconds(&mut draw, 5.0, 20.0), network(&mut draw))),
        caller: placement(seed, spec, profile, codecs),
        agent: agent::placement("sim".into(), seed, Canned::voice_named("agent"), Vec::new()),
        synthesizer: voices.clone(),
        faults: Faults::default(),
        longest: Duration::from_secs(120),
        script: None,
    }
}

/// Returns a call as [`plain`] does, with noise, a bad connection, probes, a script, digits and failures in some of the
/// calls.
pub fn faulty(seed: u64, voices: &Arc<Canned>, beds: &NoiseBeds) -> Sim {
    let sim = plain(seed, voices);
    let mut draw = sim.seed.stream("what goes wrong");
    let faults = faults(&mut draw);
    let mut spec = sim.caller.spec;
    if draw.unit() < 0.3 {
        let (kind, _) = Kind::ALL[draw.index(Kind::ALL.len())];
        spec.noise = Some(beds.bed(kind, draw.range(5.0, 30.0), &mut sim.seed.stream("noise")));
    }
    if draw.unit() < 0.3 {
        spec.audio_quality = [AudioQuality::MEDIUM, AudioQuality::LOW, AudioQuality::HORRIBLE][draw.index(3)];
    }
    if draw.unit() < 0.3 {
        let (loss, mean_burst, jitter_ms) = (draw.range(0.0, 0.2), draw.range(1.0, 6.0), draw.range(0.0, 80.0));
        spec.connection = ConnectionSpec { loss, mean_burst, jitter_ms, ..ConnectionSpec::default() };
    }
    if draw.unit() < 0.3 {
        let mut a_minute = || draw.range(0.0, 20.0);
        spec.probes = ProbeRates {
            backchannel_per_minute: a_minute(),
            vocal_tic_per_minute: a_minute(),
            non_directed_per_minute: a_minute(),
        };
    }
    if draw.unit() < 0.3 {
        spec.interruption = Interruption::Keywords(vec![KeywordResponse {
            keyword: "appointments".into(),
            response: "Sorry, one more thing.".into(),
            probability: draw.unit(),
        }]);
    }
    if draw.unit() < 0.3 {
        spec.script = vec![rule(&mut draw)];
    }
    spec.dtmf = [DtmfMethod::Rtp, DtmfMethod::Inband, DtmfMethod::Info][draw.index(3)];
    spec.extension = (draw.unit() < 0.2).then(|| "1,2#".into());
    spec.limits.max_turns = (draw.unit() < 0.1).then_some(3);
    spec.limits.inactivity_ms = (draw.unit() < 0.1).then_some(8000);
    spec.turn.endpointing_delay_ms = draw.range(300.0, 2000.0) as u32;
    let playback = if draw.unit() < 0.2 { steps(&mut draw) } else { Vec::new() };
    let profile = Profile { intent: INTENT.into(), playback, ..Profile::default() };
    let mut codecs = sim.caller.destination.codecs().to_vec();
    // Opus costs as much as ten calls of another codec.
    match draw.index(20) {
        0 => codecs = vec![Codec::Opus],
        1 => codecs = vec![Codec::L16Wide],
        2 => codecs = vec![Codec::L16Narrow],
        _ => {}
    }
    let narrow = |network: NetemSpec, draw: &mut Stream| {
        let rate_bps = if draw.unit() < 0.15 { draw.range(60e3, 400e3) as u64 } else { 0 };
        NetemSpec { rate_bps, queue_ms: draw.range(0.0, 300.0), ..network }
    };
    let network = narrow(sim.network, &mut draw);
    let then = sim.then.map(|(at, network)| (at, narrow(network, &mut draw)));
    Sim {
        network,
        then,
        caller: placement(sim.seed, spec, profile, codecs),
        agent: agent::placement("sim".into(), sim.seed, Canned::voice_named("agent"), Codec::ALL.to_vec()),
        faults,
        seed: sim.seed,
        synthesizer: sim.synthesizer,
        longest: sim.longest,
        script: None,
    }
}

fn rule(draw: &mut Stream) -> ScriptRule {
    let response = match draw.index(3) {
        0 => Response::Phrase("That is what I wanted to hear.".into()),
        1 => Response::Silence { duration_ms: Some(3000), then: Some("I am back.".into()) },
        _ => Response::Dtmf("4*".into()),
    };
    let matching = [Matching::Exact, Matching::Context][draw.index(2)];
    ScriptRule { index: 0, matching, phrase: "press one for appointments".into(), response, first_n: Some(2) }
}

fn steps(draw: &mut Stream) -> Vec<Step> {
    let mut steps = vec![Step::Hear, Step::Say("I would like an appointment.".into())];
    for _ in 0..draw.index(4) {
        steps.push(match draw.index(4) {
            0 => Step::SilenceMs(draw.range(500.0, 6000.0) as u32),
            1 => Step::Digits("19".into()),
            2 => Step::WaitMs(3000),
            _ => Step::Hear,
        });
        steps.push(Step::Say("The third of March.".into()));
    }
    steps
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
