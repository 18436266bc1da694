//! `ringer openapi`: the document that `/openapi.json` serves, without a server.

use std::process::ExitCode;

use serde_json::Value;

use super::out::Out;
use crate::api;

/// Flags of `ringer openapi`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  ringer openapi > openapi.json")]
pub struct Args {}

/// Prints the OpenAPI document.
pub async fn run(_args: Args) -> ExitCode {
    let document: Value = serde_json::from_str(&api::document()).unwrap_or_default();
    let out = Out::standard();
    out.line(format_args!("{document:#}"));
    out.verdict(true)
}
