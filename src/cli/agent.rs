//! `ringer agent`: the sample voice agent as a program of its own.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;

use super::failed;

/// Flags of `ringer agent`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  ringer agent --listen 127.0.0.1:5080 &
  ringer call sip:desk@127.0.0.1:5080")]
pub struct Args {
    /// Address of the SIP socket, UDP
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5080")]
    pub listen: SocketAddr,
    /// Append one JSON object a line here: calls, what was heard and what was said
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Ports for RTP and RTCP
    #[arg(long, value_name = "FIRST-LAST", default_value = "30000-39999", value_parser = ports)]
    pub rtp_ports: RangeInclusive<u16>,
}

/// Answers calls until it is told to stop.
pub async fn run(_args: Args) -> ExitCode {
    failed("`ringer agent` is not built in")
}

fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    crate::config::parse_ports(text)
        .ok_or_else(|| "ports must be two ports like 30000-39999, the first even".to_owned())
}
