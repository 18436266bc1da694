//! `ringer engines`: lists the engines of a database, and drains one.

use std::process::ExitCode;
use std::sync::Arc;

use super::out::Out;
use super::{Place, open_store, service_settings};
use crate::clock::Clock;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::service::{EngineList, EngineRecord, EngineState, NoLiveCalls, Service};

/// Flags of `ringer engines`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringer engines list                 the engines that share the database of the settings
  ringer engines drain host-1a2b3c    begin no conversation there any more; those that run come to their end
  ringer engines drain host-1a2b3c --undo

An engine takes a drain up with its next sign of life, within 5 s. It goes on to answer requests; SIGTERM drains it and ends
it then.")]
pub struct Args {
    /// Location of the settings and the data.
    #[command(flatten)]
    pub place: Place,
    /// Action that is carried out.
    #[command(subcommand)]
    pub action: Action,
}

/// Actions of `ringer engines`.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Action {
    /// List the engines, those that work first
    List {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Have an engine begin no conversation any more
    Drain {
        /// Name or id of the engine, as `list` shows it
        name: String,
        /// Have it begin conversations again
        #[arg(long)]
        undo: bool,
    },
}

/// Carries out the action on the database of the settings.
pub async fn run(args: Args) -> ExitCode {
    let config = match args.place.settings(&[]) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let out = Out::standard();
    let done = act(&config, args.action).await.map(|text| out.line(text));
    out.finish(done)
}

async fn act(config: &Config, action: Action) -> Result<String> {
    super::keys::is_there(config)?;
    let store = open_store(config).await?;
    let service = Service::new(store.clone(), Clock::Real, service_settings(config), Arc::new(NoLiveCalls));
    let text = carry_out(&service, action).await;
    store.close().await;
    text
}

async fn carry_out(service: &Service, action: Action) -> Result<String> {
    match action {
        Action::List { json } => {
            let list = service.engines().list().await?;
            Ok(if json { serde_json::json!(list).to_string() } else { table(&list) })
        }
        Action::Drain { name, undo } => {
            let asked = service.engines().set_draining(&name, !undo).await.map_err(|error| match error {
                Error::NotFound(_) => Error::Refused(format!("no engine {name:?} works (ringer engines list)")),
                error => error,
            })?;
            let what = if undo { "begins conversations again" } else { "begins no conversation any more" };
            Ok(format!("{} {what}", asked.engines.join(", ")))
        }
    }
}

/// Returns the engines, one a line.
fn table(list: &EngineList) -> String {
    if list.engines.is_empty() {
        return "no engine works on this database".to_owned();
    }
    let width = list.engines.iter().map(|engine| engine.name.len()).max().unwrap_or_default();
    let line = |engine: &EngineRecord| {
        let state = match engine.state {
            EngineState::Up => "up",
            EngineState::Draining => "draining",
            EngineState::Lost => "lost",
        };
        let address = engine.address.as_deref().unwrap_or("-");
        let EngineRecord { name, calls, capacity, version, started_at, .. } = engine;
        format!("{name:width$}  {state:8}  {calls} of {capacity} calls  {version}  {address}  since {started_at}")
    };
    list.engines.iter().map(line).collect::<Vec<_>>().join("\n")
}
