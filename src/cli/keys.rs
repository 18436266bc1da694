//! `ringer keys`: API keys, made on the machine that holds the database.

use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};

use super::{Place, failed};

/// Flags of `ringer keys`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringer keys create
  ringer keys create --organization acme --scope read
  ringer keys list --json
  ringer keys revoke 0b0c6f1e-8a43-4f5e-9f6e-2c1b7f7f3d11")]
pub struct Args {
    /// Where the settings and the data are.
    #[command(flatten)]
    pub place: Place,
    /// What to do with keys.
    #[command(subcommand)]
    pub action: Action,
}

/// What can be done with keys.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Make a key and print it; it cannot be shown again
    Create {
        /// Name of the organization; it is made when there is none of that name
        #[arg(long, default_value = "default")]
        organization: String,
        /// What the key may do
        #[arg(long, value_enum, default_value_t = Scope::Admin)]
        scope: Scope,
        /// A word to know the key by
        #[arg(long, default_value = "made on the command line")]
        name: String,
    },
    /// List the keys of all organizations, without the keys themselves
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a key useless, at once and for ever
    Revoke {
        /// Id of the key, as `list` shows it
        id: String,
    },
}

/// What a key may do; each scope holds the one before it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// See everything but secrets.
    Read,
    /// Change things and place calls.
    Write,
    /// Keys and organization settings.
    Admin,
}

/// Carries out the action on the database of `data`.
pub async fn run(args: Args) -> ExitCode {
    match args.place.settings(&[]) {
        Ok(_) => failed("`ringer keys` is not built in"),
        Err(code) => code,
    }
}
