//! `ringer sim`: calls to the sample agent in virtual time, over a network from a seed. The same seed gives the same
//! bytes.

pub mod drawn;
pub mod script;
pub mod websocket;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ringer_media::call::{CallSpec, Opening};
use ringer_media::codec::Codec;
use ringer_media::frame::RATE_HZ;
use ringer_media::netem::{Loss, NetemSpec};
use ringer_media::noise::{Kind, snr_db};
use ringer_media::pcm;
use ringer_media::recording::{Layout, wav_header};
use ringer_media::seed::Seed;
use serde_json::json;
use sha2::{Digest, Sha256};

use self::websocket::{OWN, kind, over_websocket};
use super::call::{Noise, noise};
use super::out::Out;
use super::{count, fail, own_cpu};
use crate::agent;
use crate::engine::noise::NoiseBeds;
use crate::engine::sim::script::Script;
use crate::engine::sim::{self, Faults, Outcome, Side, Sim};
use crate::engine::{Destination, EARLY_MEDIA, Placement, RECORDING, SIP_LOG, SipDial, WEBSOCKET_LOG};
use crate::human::{self, Profile};
use crate::provider::canned::Canned;
use crate::transport::websocket::{Dialect, Kind as Protocol};

/// Flags of `ringer sim`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringer sim --seed 7
  ringer sim --calls 50 --twice --loss 5 --jitter-ms 40
  ringer sim --seed 7 --noise cafe:0.5 --out sim
  ringer sim --drawn --calls 1000 --twice
  ringer sim --script fixtures/sim/hold.txt --out sim
  ringer sim --websocket --calls 20 --twice --loss 1
  ringer sim --websocket twilio_media_streams --seed 7 --out sim
  ringer sim --calls 30 --at-least 200")]
pub struct Args {
    /// Seed of the first call; each further call takes the next one
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of calls, one after the other
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub calls: u32,
    /// Run every call twice; it is an error when their bytes differ
    #[arg(long)]
    pub twice: bool,
    /// Go over a WebSocket, in the engine's own protocol, or in that of this kind
    #[arg(long, value_name = "KIND", num_args = 0..=1, default_missing_value = OWN, value_parser = kind,
          conflicts_with_all = ["script", "codec"])]
    pub websocket: Option<Protocol>,
    /// Draw codec, network, manner, line, digits and failures of each call from its seed; of the flags below only
    /// `--out` and `--json` then count
    #[arg(long)]
    pub drawn: bool,
    /// Play this file, which tells what both sides and the network do and what is expected; it is an error when that is
    /// not met. Of the flags below only `--out` and `--json` then count
    #[arg(long, value_name = "FILE", conflicts_with = "drawn")]
    pub script: Option<PathBuf>,
    /// Intent of the caller, in sentences that it can say
    #[arg(long, default_value = "I would like to make an appointment. In the morning, please. Thank you very much.")]
    pub intent: String,
    /// Background noise of the caller with its volume from 0 to 1
    #[arg(long, value_name = "NAME[:VOLUME]", value_parser = noise)]
    pub noise: Option<Noise>,
    /// Codecs to offer, in this order
    #[arg(long, value_delimiter = ',', value_name = "NAMES", default_value = "PCMU",
          value_parser = codec)]
    pub codec: Vec<Codec>,
    /// Delay of the network in each direction
    #[arg(long, value_name = "MS", default_value_t = 20.0, value_parser = milliseconds)]
    pub delay_ms: f64,
    /// Further delay of each packet, uniform from 0 to this
    #[arg(long, value_name = "MS", default_value_t = 0.0, value_parser = milliseconds)]
    pub jitter_ms: f64,
    /// Packets lost, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub loss: f64,
    /// Mean length of a run of lost packets
    #[arg(long, value_name = "PACKETS", default_value_t = 1.0, value_parser = burst)]
    pub burst: f64,
    /// Packets that come late enough to be overtaken, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub reorder: f64,
    /// Packets that come twice, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub duplicate: f64,
    /// No call lasts longer
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub max_seconds: u32,
    /// Write recording.wav, timeline.json, sip.log or websocket.log, and early_media.wav where there was any, of each
    /// side below this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Least speed, in times of real time by the CPU time of this process; less is an error
    #[arg(long, value_name = "TIMES", value_parser = times)]
    pub at_least: Option<f64>,
    /// Print one JSON object a call
    #[arg(long)]
    pub json: bool,
}

/// Runs the calls; 0 when all were connected, kept the engine's own rules and, run twice, were equal, and were as fast
/// as was asked. Calls of a script need not be connected, and have to meet its expectations.
pub async fn run(args: Args) -> ExitCode {
    let ran = tokio::task::spawn_blocking(move || {
        let out = Out::standard();
        match calls(&args, &out) {
            Ok(good) => out.verdict(good),
            Err(why) => out.finish(Err(why)),
        }
    });
    ran.await.unwrap_or_else(fail)
}

fn calls(args: &Args, out: &Out) -> Result<bool, String> {
    let beds = NoiseBeds::new(None);
    let voices = Arc::new(Canned::default());
    let script = args.script.as_deref().map(script::load).transpose()?;
    let script = script.as_ref();
    let (mut seconds, mut good) = (0.0, true);
    let began = own_cpu();
    for seed in (0..u64::from(args.calls)).map(|at| args.seed.wrapping_add(at)) {
        if out.is_gone() {
            break;
        }
        let outcome = sim::run(call(args, script, seed, &beds, &voices))?;
        seconds += connected_s(&outcome);
        let digest = digest(&outcome);
        let mut problems = outcome.caller.violations.clone();
        problems.extend(outcome.agent.violations.iter().map(|violation| format!("agent: {violation}")));
        let of_target = outcome.target.iter().flat_map(|target| &target.violations);
        problems.extend(of_target.map(|violation| format!("target: {violation}")));
        problems.extend(script.iter().flat_map(|script| script.unmet(&outcome)));
        if args.twice {
            let again = sim::run(call(args, script, seed, &beds, &voices))?;
            seconds += connected_s(&again);
            if self::digest(&again) != digest {
                problems.push("the second run differs from the first".into());
            }
        }
        // Injected faults may keep a drawn call from being answered.
        let connected = outcome.caller.ending.as_ref().is_some_and(|ending| ending.connected);
        good &= problems.is_empty() && (connected || args.drawn || script.is_some());
        if let Some(folder) = &args.out {
            write(&folder.join(seed.to_string()), &outcome)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        print(args, out, seed, &outcome, &digest, &problems);
    }
    let cpu_s = (own_cpu() - began).as_secs_f64();
    let times = seconds / cpu_s.max(1e-6);
    if !args.json {
        out.line(format_args!("{seconds:.0} s of calls in {cpu_s:.2} s of CPU: {times:.0} times as fast"));
    }
    match args.at_least {
        Some(least) if times < least => Err(format!("{times:.0} times as fast, and {least} were asked for")),
        _ => Ok(good),
    }
}

/// Returns the seconds from the caller's answer to its last frame.
fn connected_s(outcome: &Outcome) -> f64 {
    outcome.caller.ending.as_ref().map_or(0.0, |ending| ending.samples as f64 / f64::from(RATE_HZ))
}

fn call(args: &Args, script: Option<&Script>, seed: u64, beds: &NoiseBeds, voices: &Arc<Canned>) -> Sim {
    if let Some(script) = script {
        return script::call(script.clone(), seed, voices);
    }
    let sim = if args.drawn { drawn::faulty(seed, voices, beds) } else { by_flags(args, seed, beds, voices) };
    match args.websocket {
        Some(kind) => over_websocket(sim, &Dialect::new(kind)),
        None => sim,
    }
}

/// Returns the call that the flags tell of, by SIP.
fn by_flags(args: &Args, seed: u64, beds: &NoiseBeds, voices: &Arc<Canned>) -> Sim {
    let seed = Seed(seed);
    let share = args.loss / 100.0;
    let loss = match (share > 0.0, args.burst > 1.0) {
        (false, _) => Loss::None,
        (true, false) => Loss::Independent(share),
        (true, true) => Loss::Burst { enter: share / (args.burst * (1.0 - share)), leave: 1.0 / args.burst, loss: 1.0 },
    };
    let network = NetemSpec {
        delay_ms: args.delay_ms,
        jitter_ms: args.jitter_ms,
        loss,
        reorder: args.reorder / 100.0,
        reorder_ms: 60.0,
        duplicate: args.duplicate / 100.0,
        ..NetemSpec::default()
    };
    Sim {
        seed,
        network,
        then: None,
        caller: caller(args, seed, beds),
        agent: agent::placement("sim".into(), seed, Canned::voice_named("agent"), Codec::ALL.to_vec()),
        synthesizer: voices.clone(),
        faults: Faults::default(),
        longest: Duration::from_secs(args.max_seconds.into()),
        script: None,
    }
}

fn caller(args: &Args, seed: Seed, beds: &NoiseBeds) -> Placement {
    let noise = args.noise.as_ref().and_then(|noise| {
        let kind = Kind::from_name(&noise.kind)?;
        Some(beds.bed(kind, snr_db(noise.volume), &mut seed.stream("noise")))
    });
    let profile = Profile { intent: args.intent.clone(), ..Profile::default() };
    let spec =
        CallSpec { seed, noise, opening: Opening::Listen { open_after_ms: Some(10_000) }, ..CallSpec::default() };
    placement(seed, spec, profile, args.codec.clone())
}

/// Returns a caller who says what its profile tells, without a model.
fn placement(seed: Seed, spec: CallSpec, profile: Profile, codecs: Vec<Codec>) -> Placement {
    Placement {
        id: "sim".into(),
        spec,
        destination: Destination::Sip(SipDial { codecs, ..SipDial::default() }),
        fluency: profile.fluency(seed),
        mind: human::mind(profile, None, seed),
        voice: Some(Canned::voice_named("caller")),
        language: "en".into(),
        follows: None,
        keyterms: Vec::new(),
        folder: None,
        captured: false,
    }
}

/// Returns the SHA-256 over everything that a call leaves.
fn digest(outcome: &Outcome) -> String {
    let mut hash = Sha256::new();
    for side in [&outcome.caller, &outcome.agent].into_iter().chain(&outcome.target) {
        hash.update(&side.recording);
        hash.update(timeline(side));
        hash.update(&side.sip_log);
    }
    hex::encode(hash.finalize())
}

fn timeline(side: &Side) -> String {
    json!(side.timeline).to_string()
}

fn write(folder: &Path, outcome: &Outcome) -> std::io::Result<()> {
    let target = outcome.target.as_ref().map(|target| ("target", target));
    for (name, side) in [("caller", &outcome.caller), ("agent", &outcome.agent)].into_iter().chain(target) {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(RECORDING), &side.recording)?;
        std::fs::write(folder.join("timeline.json"), timeline(side))?;
        std::fs::write(folder.join(if side.is_socket { WEBSOCKET_LOG } else { SIP_LOG }), &side.sip_log)?;
        if !side.early.is_empty() {
            std::fs::write(folder.join(EARLY_MEDIA), wav(Layout::Agent, &side.early))?;
        }
    }
    Ok(())
}

fn wav(layout: Layout, pcm: &[i16]) -> Vec<u8> {
    let mut wav = wav_header(layout, pcm.len() as u64).to_vec();
    wav.extend(pcm::to_bytes(pcm));
    wav
}

fn print(args: &Args, out: &Out, seed: u64, outcome: &Outcome, digest: &str, problems: &[String]) {
    let ending = outcome.caller.ending.as_ref();
    let reason = ending.map_or("never ended", |ending| ending.reason.as_str());
    let seconds = connected_s(outcome);
    let turns = outcome.caller.timeline.iter().filter(|entry| entry.name() == "turn.ended").count();
    if args.json {
        let line = json!({ "seed": seed, "reason": reason, "seconds": seconds, "turns": turns, "sha256": digest,
            "problems": problems });
        return out.line(line);
    }
    let turns = count(turns, "turn");
    out.line(format_args!("seed {seed}: {seconds:.2} s, {turns} of the agent, {reason}, {}", &digest[..16]));
    for problem in problems {
        out.line(format_args!("    {problem}"));
    }
}

fn codec(name: &str) -> Result<Codec, String> {
    let names: Vec<&str> = Codec::ALL.iter().map(|codec| codec.name()).collect();
    Codec::from_name(name).ok_or_else(|| format!("must be one of {}", names.join(", ")))
}

fn times(text: &str) -> Result<f64, String> {
    number(text, 1.0, 1e6)
}

fn number(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| (least..=most).contains(number));
    number.ok_or_else(|| format!("must be a number from {least} to {most}"))
}

fn milliseconds(text: &str) -> Result<f64, String> {
    number(text, 0.0, 10_000.0)
}

fn percent(text: &str) -> Result<f64, String> {
    number(text, 0.0, 90.0)
}

fn burst(text: &str) -> Result<f64, String> {
    number(text, 1.0, 1000.0)
}
