//! Calls from the shell to agents on platforms: the adapter, the key, and the way to the agent.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, json};

use crate::cli::local;
use crate::clock::Clock;
use crate::config::{AdapterTable, Config, variable};
use crate::engine::WebSocketDial;
use crate::provider::guard::Guard;
use crate::service::{self, Adapters, PlatformLine};
use crate::transport::websocket::platform::adapter::Adapter;

/// Flags of calls to agents on platforms.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PlatformFlags {
    /// Preset of the platform's adapter, in place of [adapters.Pn] of the settings
    #[arg(long, value_name = "KIND", value_parser = preset)]
    pub preset: Option<String>,
    /// Server in place of the platform's own: scheme, host and port
    #[arg(long, value_name = "URL")]
    pub base: Option<String>,
}

fn preset(text: &str) -> Result<String, String> {
    let names = || Adapter::presets().collect::<Vec<_>>().join(", ");
    let is_known = Adapter::presets().any(|name| name == text);
    if is_known { Ok(text.to_owned()) } else { Err(format!("it must be one of {}", names())) }
}

/// Returns the name of the platform and the id of the agent of an address such as `p4:AGENT`; `None` for another
/// address.
pub(crate) fn platform(text: &str) -> Option<(String, &str)> {
    let (scheme, agent) = text.split_once(':')?;
    let number = scheme.strip_prefix(['p', 'P'])?;
    let is_number = !number.is_empty() && number.len() <= 2 && number.chars().all(|c| c.is_ascii_digit());
    is_number.then(|| (format!("P{number}"), agent))
}

/// Checks an address of an agent on a platform.
pub(super) fn check_address(platform: &str, agent: &str) -> Result<(), String> {
    let number = platform.trim_start_matches('P').parse().unwrap_or(0);
    match (3..=11).contains(&number) && !platform.starts_with("P0") {
        false => Err("platforms are p3: to p11:, with the id of the agent behind it".to_owned()),
        true if agent.is_empty() => {
            Err(format!("{}: needs the id of the agent on the platform behind it", platform.to_lowercase()))
        }
        true => Ok(()),
    }
}

impl PlatformFlags {
    /// Checks that the flags are for the address.
    pub(super) fn check(&self, is_of_platform: bool) -> Result<(), String> {
        for (flag, value) in [("--preset", &self.preset), ("--base", &self.base)] {
            if value.is_some() && !is_of_platform {
                return Err(format!("{flag} is for agents on platforms: p3:AGENT to p11:AGENT"));
            }
        }
        Ok(())
    }

    /// Returns the adapter of a platform: that of `--preset`, else of the settings.
    ///
    /// # Errors
    /// There is none, or it cannot be used.
    fn adapters(&self, platform: &str, config: &Config) -> Result<Adapters, String> {
        let table = match &self.preset {
            Some(preset) => AdapterTable(Map::from_iter([("preset".to_owned(), json!(preset))])),
            None => config.adapters.get(platform).cloned().ok_or_else(|| {
                format!(
                    "there is no adapter for {platform}: set [adapters.{platform}] in ringer.toml, or --preset KIND"
                )
            })?,
        };
        let read = service::adapters(&[(platform.to_owned(), table)].into_iter().collect());
        let mut adapters = read.map_err(|problems| problems.join("; "))?;
        if let Some(base) = &self.base {
            let moved = adapters[platform].as_ref().clone().with_base(base);
            let moved = moved.map_err(|why| format!("--base: {why}"))?;
            adapters.insert(platform.to_owned(), Arc::new(moved));
        }
        Ok(adapters)
    }

    /// Returns the way to an agent on a platform, with the session that the platform makes for the call.
    ///
    /// # Errors
    /// A setting that is missing, or the code and reason of a session that was not made.
    pub(super) async fn dial(&self, platform: &str, agent: &str, file: Option<&Path>) -> Result<WebSocketDial, String> {
        let config = Config::load(file, &[]).map_err(|error| error.to_string())?;
        let adapters = self.adapters(platform, &config)?;
        let name = format!("RINGER_{platform}_KEY");
        let key = variable(&name).unwrap_or_default();
        if key.is_empty() && adapters[platform].needs_key() {
            return Err(format!("{name} is not set: the adapter of {platform} sends a key"));
        }
        let line = PlatformLine { platform: platform.to_owned(), agent_id: agent.to_owned(), key, result_id: 0 };
        // A platform elsewhere does not send the call to addresses of this network.
        let near = config.security.allow_private_agents || adapters[platform].is_on_this_machine();
        let guard = Guard::new(near).trusting(&local::roots(&config)?);
        let dialled = line.dial(&adapters, guard, &Clock::Real).await;
        dialled.map_err(|obstacle| format!("{}: {}", obstacle.code, obstacle.message))
    }
}
