//! `ringer up`: the engine, the jobs and the API in one process.

use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use super::{Place, failed};

/// Flags of `ringer up`; each wins over the environment and the settings file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  ringer up --listen 0.0.0.0:8080 --sip 192.0.2.10:5060 --data /var/lib/ringer")]
pub struct Args {
    /// Where the settings and the data are.
    #[command(flatten)]
    pub place: Place,
    /// Address of the HTTP API [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Address of the SIP socket, UDP [default: 127.0.0.1:5060]
    #[arg(long, value_name = "ADDRESS")]
    pub sip: Option<SocketAddr>,
    /// Ports for RTP and RTCP [default: 20000-29999]
    #[arg(long, value_name = "FIRST-LAST")]
    pub rtp_ports: Option<String>,
    /// Address that other sides are told to send to [default: the address of the SIP socket]
    #[arg(long, value_name = "IP")]
    pub advertise: Option<IpAddr>,
}

impl Args {
    /// The settings with these flags over them.
    pub fn settings(&self) -> Result<crate::config::Config, ExitCode> {
        self.place.settings(&[
            ("server.listen", self.listen.map(|address| address.to_string())),
            ("sip.listen", self.sip.map(|address| address.to_string())),
            ("sip.rtp_ports", self.rtp_ports.clone()),
            ("sip.advertise", self.advertise.map(|address| address.to_string())),
        ])
    }
}

/// Runs until it is told to stop.
pub async fn run(args: Args) -> ExitCode {
    match args.settings() {
        Ok(_) => failed("`ringer up` is not built in"),
        Err(code) => code,
    }
}
