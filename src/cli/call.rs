//! `ringer call`: one call, made now, printed as it happens.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use ringer_media::call::{CallSpec, EndReason, Limits, NoiseSpec};
use ringer_media::codec::Codec;
use ringer_media::frame::RATE_HZ;
use ringer_media::noise::{Kind, snr_db};
use ringer_media::seed::Seed;

use super::{failed, local};
use crate::clock::random_seed;
use crate::config::Secret;
use crate::engine::noise::NoiseBeds;
use crate::engine::{CallNews, CallReport, Dial, Engine, Placement, TimelineEntry};
use crate::human::{self, Profile};
use crate::provider::{Synthesizer, Voice, VoiceWanted};

/// Background noises by name.
pub const NOISES: [&str; 9] =
    ["none", "office", "talking", "traffic", "cafe", "park", "tv", "noisy_restaurant", "hospital"];

/// Volume of a noise that is named alone.
const NOISE_VOLUME: f64 = 0.8;

/// Flags of `ringer call`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringer call sip:agent@127.0.0.1:5080
  ringer call sip:agent@127.0.0.1:5080 --intent 'Book a table for two at eight.' --noise cafe:0.5 --record call.wav
  ringer call sip:ivr@192.0.2.7 --dtmf '1,2#' --codec PCMU --json > call.jsonl")]
pub struct Args {
    /// Who to call: sip:user@host or sip:user@host:port
    #[arg(value_name = "URI", value_parser = sip_address)]
    pub to: String,
    /// What the caller wants, in sentences that it can say
    #[arg(
        long,
        default_value = "Hello, I would like to book a table for two people tomorrow at eight in the evening."
    )]
    pub intent: String,
    /// Background noise with its volume from 0 to 1
    #[arg(long, value_name = "NAME[:VOLUME]", value_parser = noise)]
    pub noise: Option<Noise>,
    /// Digits keyed after the answer; a comma is a second of silence
    #[arg(long, value_name = "DIGITS", value_parser = digits)]
    pub dtmf: Option<String>,
    /// Write the recording here: left the caller, right the agent
    #[arg(long, value_name = "FILE.wav")]
    pub record: Option<PathBuf>,
    /// Seed of everything that is drawn [default: random, printed]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Codecs to offer, in this order
    #[arg(long, value_delimiter = ',', value_name = "NAMES", default_value = "G722,PCMU,PCMA",
          value_parser = Codec::NAMES, ignore_case = true)]
    pub codec: Vec<String>,
    /// Print one JSON object a line instead of text
    #[arg(long)]
    pub json: bool,
    /// Hang up after this many seconds
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub max_seconds: u32,
    /// Header field of the INVITE; may be given several times
    #[arg(long, value_name = "NAME:VALUE", value_parser = header)]
    pub header: Vec<(String, String)>,
    /// User of a challenge
    #[arg(long)]
    pub username: Option<String>,
    /// Password of a challenge; better given by the environment
    #[arg(long, env = "RINGER_SIP_PASSWORD", hide_env_values = true)]
    pub password: Option<String>,
    /// Local address of the SIP socket [default: a free port of the address that reaches URI]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
}

/// Background noise and how loud it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Noise {
    /// One of [`NOISES`].
    pub kind: String,
    /// 0 to 1.
    pub volume: f64,
}

/// Makes the call: 0 when it was connected and ended normally.
pub async fn run(args: Args) -> ExitCode {
    let listen = match args.listen.map_or_else(|| local_address(&args.to), Ok) {
        Ok(listen) => listen,
        Err(why) => return failed(why),
    };
    let (engine, _incoming) = match local::engine(listen, RTP_PORTS, None).await {
        Ok(started) => started,
        Err(why) => return failed(why),
    };
    let folder = std::env::temp_dir().join(format!("ringer-call-{}", crate::clock::new_id()));
    let code = place(&engine, &args, args.record.as_ref().map(|_| folder.clone())).await;
    engine.stop().await;
    let _ = std::fs::remove_dir_all(&folder);
    code
}

/// What is spoken in a call from the shell.
const LANGUAGE: &str = "en";
/// RTP ports of a call from the shell.
const RTP_PORTS: std::ops::RangeInclusive<u16> = 30000..=30999;

async fn place(engine: &Engine, args: &Args, folder: Option<PathBuf>) -> ExitCode {
    let seed = args.seed.unwrap_or_else(random_seed);
    if !args.json {
        println!("calling {} (seed {seed})", args.to);
    }
    let placement = match placement(args, Seed(seed), folder).await {
        Ok(placement) => placement,
        Err(why) => return failed(why),
    };
    let mut handle = match engine.place(placement).await {
        Ok(handle) => handle,
        Err(refusal) => return failed(refusal),
    };
    let control = handle.control.clone();
    loop {
        tokio::select! {
            news = handle.news.recv() => match news {
                Some(CallNews::Event(entry)) => show(&entry, args.json),
                Some(CallNews::Ended(report)) => return finish(&report, args),
                Some(CallNews::Dispatched | CallNews::Connected(_)) => {}
                None => return failed("the call was lost"),
            },
            _ = tokio::signal::ctrl_c() => control.hangup(EndReason::ApiHangup),
        }
    }
}

async fn placement(args: &Args, seed: Seed, folder: Option<PathBuf>) -> Result<Placement, String> {
    let noise = match &args.noise {
        Some(noise) => noise_of(noise, seed).await?,
        None => None,
    };
    let voice = speech_voice(seed)?;
    let profile = Profile { intent: args.intent.clone(), ..Profile::default() };
    let limits = Limits { max_duration_ms: Some(args.max_seconds * 1000), ..Limits::default() };
    Ok(Placement {
        id: "call".into(),
        spec: CallSpec { seed, noise, limits, extension: args.dtmf.clone(), ..CallSpec::default() },
        dial: Dial {
            target: args.to.clone(),
            username: args.username.clone(),
            password: args.password.clone().map(Secret::new),
            headers: args.header.clone(),
            codecs: local::codecs(&args.codec),
            ..Dial::default()
        },
        fluency: profile.fluency(seed),
        language: profile.language.clone(),
        mind: human::mind(profile, None, seed),
        voice: Some(voice),
        follows: None,
        keyterms: Vec::new(),
        folder,
        captured: false,
    })
}

/// Before the call is placed there is time to listen to the people of its place.
async fn noise_of(noise: &Noise, seed: Seed) -> Result<Option<NoiseSpec>, String> {
    let Some(kind) = Kind::from_name(&noise.kind) else { return Ok(None) };
    let (beds, snr_db) = (Arc::new(NoiseBeds::new(None)), snr_db(noise.volume));
    let synthesizer: Arc<dyn Synthesizer> = Arc::new(local::synthesizer()?);
    let prepared = beds.prepare(kind, LANGUAGE, &*synthesizer).await;
    let made = tokio::task::spawn_blocking(move || match prepared {
        Ok(()) => beds.spoken(kind, LANGUAGE, snr_db, &mut seed.stream("noise")).0,
        Err(failure) => {
            eprintln!("the background's voices say no words: {}", failure.message);
            beds.bed(kind, snr_db, &mut seed.stream("noise"))
        }
    });
    made.await.map(Some).map_err(|error| error.to_string())
}

fn speech_voice(seed: Seed) -> Result<Voice, String> {
    let wanted = VoiceWanted { seed, ..VoiceWanted::of(LANGUAGE) };
    local::synthesizer()?.voice(&wanted).map_err(|failure| failure.message)
}

fn show(entry: &TimelineEntry, json: bool) {
    if json {
        match serde_json::to_string(entry) {
            Ok(line) => println!("{line}"),
            Err(error) => tracing::error!("an event could not be written: {error}"),
        }
        return;
    }
    if matches!(entry.event.as_str(), "network" | "transcript.partial") {
        return;
    }
    println!("{:>10.3} s  {:<6} {:<22} {}", entry.offset_ms / 1000.0, entry.side, entry.event, entry.data);
}

fn finish(report: &CallReport, args: &Args) -> ExitCode {
    let quality = &report.ending.quality;
    if !args.json {
        println!(
            "ended: {} after {:.2} s; codec {}; sent {} frames, late p99 {:.2} ms; received {}, lost {}, concealed {} ms",
            report.ending.reason.as_str(),
            report.ending.samples as f64 / f64::from(RATE_HZ),
            report.codec.as_deref().unwrap_or("none"),
            quality.sent_frames,
            quality.pacing_p99_ms,
            quality.received_packets,
            quality.lost_packets,
            quality.concealed_ms,
        );
        report.warnings.iter().for_each(|warning| println!("warning: {warning}"));
    }
    if let (Some(from), Some(to)) = (&report.recording, &args.record) {
        if let Err(error) = std::fs::copy(from, to) {
            return failed(format!("{}: {error}", to.display()));
        }
        if !args.json {
            println!("recording: {}", to.display());
        }
    }
    if let Some(remote) = report.ending.remote.as_ref().filter(|_| !report.ending.connected) {
        let code = remote.sip_code.map(|code| format!("{code} ")).unwrap_or_default();
        return failed(format!("not connected: {code}{}", remote.text));
    }
    let normal = report.ending.connected && report.ending.fault.is_none();
    if normal { ExitCode::SUCCESS } else { failed(format!("the call ended: {}", report.ending.reason.as_str())) }
}

/// The local address from which the target is reached, with a free port.
pub(super) fn local_address(target: &str) -> Result<SocketAddr, String> {
    let (_, to) = crate::transport::sip::resolve(target)?;
    let host = crate::transport::sockets::address_towards(to)
        .map_err(|error| format!("{target} is not reachable from here: {error}"))?;
    Ok(SocketAddr::new(host, 0))
}

pub(super) fn sip_address(text: &str) -> Result<String, String> {
    match text.split_once(':') {
        Some(("sip", rest)) if !rest.is_empty() => Ok(text.to_owned()),
        _ => Err("the address must start with sip:".to_owned()),
    }
}

pub(super) fn noise(text: &str) -> Result<Noise, String> {
    let (kind, volume) = text.split_once(':').map_or((text, None), |(kind, volume)| (kind, Some(volume)));
    if !NOISES.contains(&kind) {
        return Err(format!("the noise must be one of {}", NOISES.join(", ")));
    }
    let volume = volume.map_or(Some(NOISE_VOLUME), |volume| volume.parse().ok());
    match volume.filter(|volume| (0.0..=1.0).contains(volume)) {
        Some(volume) => Ok(Noise { kind: kind.to_owned(), volume }),
        None => Err("the volume must be a number from 0 to 1".to_owned()),
    }
}

fn digits(text: &str) -> Result<String, String> {
    let known = |digit: char| digit.is_ascii_digit() || "*#ABCDabcd,".contains(digit);
    match text.chars().all(known) {
        true if !text.is_empty() => Ok(text.to_ascii_uppercase()),
        _ => Err("digits may hold only 0-9, *, #, A-D and commas".to_owned()),
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let token = |c: char| c.is_ascii_alphanumeric() || "-.!%*_+`'~".contains(c);
    match text.split_once(':') {
        Some((name, value)) if !name.is_empty() && name.chars().all(token) && !value.contains(['\r', '\n']) => {
            Ok((name.to_owned(), value.trim().to_owned()))
        }
        _ => Err("a header is written NAME:VALUE".to_owned()),
    }
}
