//! `ringer keys`: API keys, made on the machine that holds the database.

use std::process::ExitCode;

use std::sync::Arc;

use clap::{Subcommand, ValueEnum};
use uuid::Uuid;

use super::{Place, failed, open_store, service_settings};
use crate::clock::Clock;
use crate::config::Config;
use crate::error::Result;
use crate::model::api_key::{self, KeyOut};
use crate::service::{Caller, NoLiveCalls, Service};

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
    /// List the keys of an organization, without the keys themselves
    List {
        /// Name of the organization
        #[arg(long, default_value = "default")]
        organization: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a key useless, at once and for ever
    Revoke {
        /// Name of the organization
        #[arg(long, default_value = "default")]
        organization: String,
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

impl From<Scope> for api_key::Scope {
    fn from(scope: Scope) -> api_key::Scope {
        match scope {
            Scope::Read => api_key::Scope::Read,
            Scope::Write => api_key::Scope::Write,
            Scope::Admin => api_key::Scope::Admin,
        }
    }
}

/// Carries out the action on the database of `data`.
pub async fn run(args: Args) -> ExitCode {
    let config = match args.place.settings(&[]) {
        Ok(config) => config,
        Err(code) => return code,
    };
    match act(&config, args.action).await {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => failed(error),
    }
}

/// What is printed; a running server sees the change at its next request.
async fn act(config: &Config, action: Action) -> Result<String> {
    tokio::fs::create_dir_all(&config.data).await.map_err(crate::error::Error::internal)?;
    let store = open_store(config).await?;
    let service = Service::new(store.clone(), Clock::Real, service_settings(config), Arc::new(NoLiveCalls));
    let text = carry_out(&service, action).await;
    store.close().await;
    text
}

async fn carry_out(service: &Service, action: Action) -> Result<String> {
    match action {
        Action::Create { organization, scope, name } => {
            Ok(service.create_key_in(&organization, scope.into(), &name).await?.api_key)
        }
        Action::List { organization, json } => {
            let keys = service.keys(&owner(service, &organization).await?).await?;
            Ok(if json { serde_json::json!(keys).to_string() } else { table(&keys) })
        }
        Action::Revoke { organization, id } => {
            service.revoke_key(&owner(service, &organization).await?, &id).await?;
            Ok(format!("{id} is revoked"))
        }
    }
}

/// Whoever may use the machine may do everything with an organization's keys.
async fn owner(service: &Service, organization: &str) -> Result<Caller> {
    let organization = service.create_organization(organization).await?;
    Ok(Caller { organization, key_id: Uuid::nil(), scope: api_key::Scope::Admin })
}

fn table(keys: &[KeyOut]) -> String {
    let line = |key: &KeyOut| {
        let state = if key.revoked { "revoked" } else { "valid" };
        format!("{}  {:11}  {:5}  {state:7}  {}", key.id, key.api_key, key.scope.as_str(), key.name)
    };
    let lines: Vec<String> = keys.iter().map(line).collect();
    if lines.is_empty() { "No keys.".to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::{Action, Scope, act};
    use crate::config::Config;

    #[tokio::test]
    async fn a_key_is_made_listed_and_revoked() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config = Config { data: folder.path().join("data"), ..Config::default() };
        let organization = || "acme".to_owned();
        let create = |scope| Action::Create { organization: organization(), scope, name: "mine".to_owned() };
        let key = act(&config, create(Scope::Read)).await.expect("a new database");
        let list = |json| Action::List { organization: organization(), json };
        let table = act(&config, list(false)).await.expect("the organization is there");
        assert!(table.contains("read ") && table.contains("valid") && table.ends_with("mine"), "{table}");
        assert!(!table.contains(&key), "a key is shown once");
        let id = table.split(' ').next().expect("a table has columns").to_owned();
        act(&config, Action::Revoke { organization: organization(), id: id.clone() }).await.expect("the key is there");
        let json = act(&config, list(true)).await.expect("the organization is there");
        let keys: serde_json::Value = serde_json::from_str(&json).expect("JSON was asked for");
        assert_eq!((keys[0]["id"].as_str(), keys[0]["revoked"].as_bool()), (Some(id.as_str()), Some(true)));
        let unknown = Action::Revoke { organization: organization(), id: "x".to_owned() };
        assert_eq!(act(&config, unknown).await.expect_err("no such key").to_string(), "API key not found");
    }
}
