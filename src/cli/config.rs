//! `ringer config`: what the settings come to.

use std::process::ExitCode;

use super::out::Out;
use super::{Place, capacity, database};
use crate::config::Config;
use crate::service::unmatched_limits as unmatched;
use crate::store::organizations_at;

/// Flags of `ringer config`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  ringer config check --config /etc/ringer/ringer.toml")]
pub struct Args {
    /// Subcommand of `ringer config`.
    #[command(subcommand)]
    pub action: Action,
}

/// Subcommands of `ringer config`.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Read the settings as `ringer up` would, and say what is wrong with them.
    Check(Check),
}

/// Flags of `ringer config check`.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// Location of the settings and the data.
    #[command(flatten)]
    pub place: Place,
    /// Print every setting as JSON; secrets are not shown
    #[arg(long)]
    pub json: bool,
}

/// Checks the settings. Exit code 0: `ringer up` would take the settings; 2: it would not.
pub async fn run(args: Args) -> ExitCode {
    let Action::Check(check) = args.action;
    let config = match check.place.settings(&[]) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let out = Out::standard();
    if check.json {
        out.line(serde_json::to_string_pretty(&config).expect("settings are plain values"));
    } else {
        config.warnings.iter().for_each(|warning| out.line(warning));
        unmatched_limits(&config).await.iter().for_each(|warning| out.line(warning));
        let (api, sip, calls) = (config.server.listen, config.sip.listen, capacity(&config));
        let data = config.data.display();
        out.line(format_args!("The settings are good: API {api}, SIP {sip}, {calls}, data in {data}"));
        if let Some(path) = &config.tls.root_file {
            let path = path.display();
            out.line(format_args!(
                "Servers of speech and language, and agents, may also be certified by {path} (tls.root_file)"
            ));
        }
    }
    out.verdict(true)
}

/// Returns warnings about limits of organizations that are not in the database, where there is one that can be opened.
async fn unmatched_limits(config: &Config) -> Vec<String> {
    let sections = config.limits.organizations.keys();
    if sections.len() == 0 {
        return Vec::new();
    }
    match organizations_at(database(config)).await {
        Ok(Some(organizations)) => unmatched(sections, &organizations),
        Ok(None) => Vec::new(),
        Err(error) => vec![format!("[limits.organizations] is not compared with the organizations: {error}")],
    }
}
