//! `ringer openapi`: the document that `/openapi.json` serves, without a server.

use std::process::ExitCode;

use crate::api;

/// Flags of `ringer openapi`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  ringer openapi > openapi.json")]
pub struct Args {}

/// Prints the document.
pub async fn run(_args: Args) -> ExitCode {
    println!("{}", api::document());
    ExitCode::SUCCESS
}
