//! `ringer keys`: API keys, made on the machine that holds the database.

use std::process::ExitCode;

use std::sync::Arc;

use clap::{Subcommand, ValueEnum};
use uuid::Uuid;

use super::out::Out;
use super::{Place, database, make_private, open_store, service_settings};
use crate::clock::Clock;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::model::api_key::{self, KeyOut};
use crate::service::{Caller, NoLiveCalls, Service};
use crate::store::Location;
use crate::store::vault::KEY_FILE;

/// Flags of `ringer keys`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
With --json `create` prints the key as POST /v1/api-keys answers it (`id`, `api_key`, `scope`, `name`, `user_id`,
`created_at`, `revoked`),
`list` an array of such objects, with the beginning of each key alone, and `revoke` the one that is revoked.

Examples:
  ringer keys create
  ringer keys create --organization acme --scope read --user Ann
  KEY=$(ringer keys create --json | jq -r .api_key)
  ringer keys list --json
  ringer keys revoke 0b0c6f1e-8a43-4f5e-9f6e-2c1b7f7f3d11")]
pub struct Args {
    /// Location of the settings and the data.
    #[command(flatten)]
    pub place: Place,
    /// Subcommand of `ringer keys`.
    #[command(subcommand)]
    pub action: Action,
}

/// Subcommands of `ringer keys`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Make a key and print it; it cannot be shown again
    Create {
        /// Name of the organization; it is made when there is none of that name
        #[arg(long, default_value = "default")]
        organization: String,
        /// Scope of the key
        #[arg(long, value_enum, default_value_t = Scope::Admin)]
        scope: Scope,
        /// A word to know the key by
        #[arg(long, default_value = "made on the command line")]
        name: String,
        /// Name of the key's user, shown as the author of what is made with it; the user is made when there is none
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the keys of an organization, without the keys themselves
    List {
        /// Name of the organization
        #[arg(long, default_value = "default")]
        organization: String,
        /// Print the result as JSON
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
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

/// Scope of a key; each includes the ones before it.
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
    let out = Out::standard();
    let done = act(&config, args.action).await.map(|text| out.line(text));
    out.finish(done)
}

/// Carries out an action and returns the text to print. A running server sees the change at its next request.
async fn act(config: &Config, action: Action) -> Result<String> {
    match action {
        Action::Create { .. } => {
            make_private(&config.data).await.map_err(Error::internal)?;
        }
        Action::List { .. } | Action::Revoke { .. } => is_there(config)?,
    }
    let store = open_store(config).await?;
    let service = Service::new(store.clone(), Clock::Real, service_settings(config), Arc::new(NoLiveCalls));
    let text = carry_out(&service, action).await;
    store.close().await;
    text
}

/// Fails if the database or the key of its secrets is missing: a command that only looks or changes makes neither.
pub(super) fn is_there(config: &Config) -> Result<()> {
    let folder = config.data.display();
    match database(config) {
        Location::File(path) if !path.is_file() => {
            Err(Error::Refused(format!("there is no database in the folder {folder} (--data names another)")))
        }
        _ if config.security.secret_key.is_none() && !config.data.join(KEY_FILE).is_file() => {
            Err(Error::Refused(format!(
                "there is no {KEY_FILE} in the folder {folder} (--data names another, or RINGER_SECRET_KEY the key)"
            )))
        }
        _ => Ok(()),
    }
}

async fn carry_out(service: &Service, action: Action) -> Result<String> {
    match action {
        Action::Create { organization, scope, name, user, json } => {
            let key = service.library().create_key_for(&organization, scope.into(), &name, user).await?;
            Ok(if json { serde_json::json!(key).to_string() } else { key.api_key })
        }
        Action::List { organization, json } => {
            let keys = service.library().keys(&owner(service, &organization).await?).await?;
            Ok(if json { serde_json::json!(keys).to_string() } else { table(&keys) })
        }
        Action::Revoke { organization, id, json } => {
            let owner = owner(service, &organization).await?;
            service.library().revoke_key(&owner, &id).await?;
            if !json {
                return Ok(format!("{id} is revoked"));
            }
            let revoked =
                service.library().keys(&owner).await?.into_iter().find(|key| Uuid::parse_str(&id) == Ok(key.id));
            revoked.map(|key| serde_json::json!(key).to_string()).ok_or_else(|| Error::internal("the key is gone"))
        }
    }
}

/// Returns a caller of scope admin in an organization: whoever may use the machine may manage its keys.
async fn owner(service: &Service, name: &str) -> Result<Caller> {
    let organization = service.library().organization(name).await?;
    let organization = organization.ok_or_else(|| Error::Refused(format!("there is no organization {name:?}")))?;
    Ok(Caller::keyless(organization, api_key::Scope::Admin))
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
    use std::os::unix::fs::PermissionsExt;

    use super::{Action, Scope, act};
    use crate::config::Config;

    #[tokio::test]
    async fn a_key_is_made_listed_and_revoked() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config = Config { data: folder.path().join("data"), ..Config::default() };
        let organization = || "acme".to_owned();
        let create = |scope| Action::Create {
            organization: organization(),
            scope,
            name: "mine".to_owned(),
            user: None,
            json: false,
        };
        let key = act(&config, create(Scope::Read)).await.expect("a new database");
        let mode = std::fs::metadata(&config.data).expect("it was made").permissions().mode();
        assert_eq!(mode & 0o077, 0, "the folder is of its owner alone: {mode:o}");
        let list = |json| Action::List { organization: organization(), json };
        let table = act(&config, list(false)).await.expect("the organization is there");
        assert!(table.contains("read ") && table.contains("valid") && table.ends_with("mine"), "{table}");
        assert!(!table.contains(&key), "a key is shown once");
        let id = table.split(' ').next().expect("a table has columns").to_owned();
        let revoke = Action::Revoke { organization: organization(), id: id.clone(), json: false };
        act(&config, revoke).await.expect("the key is there");
        let json = act(&config, list(true)).await.expect("the organization is there");
        let keys: serde_json::Value = serde_json::from_str(&json).expect("JSON was asked for");
        assert_eq!((keys[0]["id"].as_str(), keys[0]["revoked"].as_bool()), (Some(id.as_str()), Some(true)));
        let unknown = Action::Revoke { organization: organization(), id: "x".to_owned(), json: false };
        assert_eq!(act(&config, unknown).await.expect_err("no such key").to_string(), "API key not found");
        let elsewhere = Action::List { organization: "nope".to_owned(), json: false };
        let why = act(&config, elsewhere).await.expect_err("no such organization").to_string();
        assert_eq!(why, "there is no organization \"nope\"");
    }

    #[tokio::test]
    async fn each_action_prints_what_the_api_answers() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config = Config { data: folder.path().join("data"), ..Config::default() };
        let organization = || "acme".to_owned();
        let run = async |action| -> serde_json::Value {
            let text = act(&config, action).await.expect("it is carried out");
            assert_eq!(text.lines().count(), 1, "{text}");
            serde_json::from_str(&text).expect("JSON was asked for")
        };
        let (scope, name) = (Scope::Write, "mine".to_owned());
        let mut key = run(Action::Create { organization: organization(), scope, name, user: None, json: true }).await;
        let fields: Vec<&String> = key.as_object().expect("one object").keys().collect();
        assert_eq!(fields, ["id", "api_key", "scope", "name", "user_id", "created_at", "revoked"]);
        let summary = serde_json::json!([key["scope"], key["name"], key["revoked"]]);
        assert_eq!(summary, serde_json::json!(["write", "mine", false]));
        let text = key["api_key"].as_str().expect("the key itself").to_owned();
        assert!(text.starts_with("rk_") && text.len() > 20, "{text}");
        let id = key["id"].as_str().expect("an id").to_owned();
        key["api_key"] = format!("{}...", &text[..8]).into();
        assert_eq!(run(Action::List { organization: organization(), json: true }).await, serde_json::json!([key]));
        key["revoked"] = true.into();
        let revoke = Action::Revoke { organization: organization(), id: id.clone(), json: true };
        assert_eq!(run(revoke).await, key);
        let again = Action::Revoke { organization: organization(), id: id.to_uppercase(), json: true };
        assert_eq!(run(again).await, key);
    }

    #[tokio::test]
    async fn looking_and_taking_away_make_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().join("typo");
        let config = Config { data: data.clone(), ..Config::default() };
        let organization = || "default".to_owned();
        for action in [
            Action::List { organization: organization(), json: false },
            Action::Revoke { organization: organization(), id: "x".to_owned(), json: false },
        ] {
            let why = act(&config, action).await.expect_err("nothing is there").to_string();
            assert!(why.starts_with(&format!("there is no database in the folder {}", data.display())), "{why}");
            assert!(!data.exists());
        }
        let create = Action::Create {
            organization: organization(),
            scope: Scope::Admin,
            name: "mine".to_owned(),
            user: None,
            json: false,
        };
        act(&config, create).await.expect("a new database");
        std::fs::remove_file(data.join("secret.key")).expect("it was made");
        let list = Action::List { organization: organization(), json: false };
        let why = act(&config, list).await.expect_err("its key is gone").to_string();
        assert!(why.starts_with("there is no secret.key in the folder"), "{why}");
        assert!(!data.join("secret.key").exists());
    }
}
