//! `ringer demo`: a whole run on this machine, from an agent to a result.

use std::path::PathBuf;
use std::process::ExitCode;

use super::failed;

/// Flags of `ringer demo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Keep the database, recordings and timelines in this folder [default: a temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

/// Runs the demonstration.
pub async fn run(_args: Args) -> ExitCode {
    failed("`ringer demo` is not built in")
}
