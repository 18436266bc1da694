//! `ringer openapi`: the document that `/openapi.json` serves, without a server.

use std::process::ExitCode;

use super::failed;

/// Flags of `ringer openapi`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  ringer openapi > openapi.json")]
pub struct Args {}

/// Prints the document.
pub async fn run(_args: Args) -> ExitCode {
    failed("`ringer openapi` is not built in")
}
