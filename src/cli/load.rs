//! `ringer load`: many calls at once, to see what this machine carries.

use std::path::PathBuf;
use std::process::ExitCode;

use super::{call::sip_address, failed};

/// Flags of `ringer load`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringer load --calls 200 --seconds 30
  ringer load --to sip:echo@192.0.2.7 --calls 50 --no-vad --json")]
pub struct Args {
    /// Who to call [default: a sample agent that is started for it]
    #[arg(long, value_name = "URI", value_parser = sip_address)]
    pub to: Option<String>,
    /// Calls at once
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub calls: u32,
    /// Length of each call
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// Calls begun in one second
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rate: u32,
    /// Write recordings and timelines into this folder [default: nothing is written]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Do not look for speech in what is received
    #[arg(long)]
    pub no_vad: bool,
    /// Do not look for digits in what is received
    #[arg(long)]
    pub no_dtmf: bool,
}

/// Makes the calls and prints the report.
pub async fn run(_args: Args) -> ExitCode {
    failed("`ringer load` is not built in")
}
