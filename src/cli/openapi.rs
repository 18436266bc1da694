//! `ringer openapi`: the document that `/openapi.json` serves, without a server.

use std::io::Write;
use std::process::ExitCode;

use crate::api;

/// Flags of `ringer openapi`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  ringer openapi > openapi.json")]
pub struct Args {}

/// Prints the document.
pub async fn run(_args: Args) -> ExitCode {
    // A reader that has seen enough closes the pipe; that is no panic.
    match writeln!(std::io::stdout(), "{}", api::document()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
