//! `ringer openapi`: the document that `/openapi.json` serves, without a server.

use std::io::Write;
use std::process::ExitCode;

use serde_json::Value;

use crate::api;

/// Flags of `ringer openapi`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  ringer openapi > openapi.json")]
pub struct Args {}

/// Prints the document.
pub async fn run(_args: Args) -> ExitCode {
    // A reader that has seen enough closes the pipe; that is no panic.
    let document: Value = serde_json::from_str(&api::document()).unwrap_or_default();
    match writeln!(std::io::stdout(), "{document:#}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
