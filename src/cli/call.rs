//! `ringer call`: one call, made now, printed as it happens.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use super::failed;

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
          value_parser = ["PCMU", "PCMA", "G722"], ignore_case = true)]
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

/// Makes the call.
pub async fn run(_args: Args) -> ExitCode {
    failed("`ringer call` is not built in")
}

pub(super) fn sip_address(text: &str) -> Result<String, String> {
    match text.split_once(':') {
        Some(("sip", rest)) if !rest.is_empty() => Ok(text.to_owned()),
        _ => Err("the address must start with sip:".to_owned()),
    }
}

fn noise(text: &str) -> Result<Noise, String> {
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
