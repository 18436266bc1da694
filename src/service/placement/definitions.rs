//! Definitions of agents that their platforms hold: whether one can be read, the request for it, and the version of the
//! agent that it becomes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringer_base::config::AdapterTable;
use ringer_base::error::{Error, Result};
use ringer_base::guard::Guard;
use ringer_base::post::{NotPosted, Posted, Poster};
use ringer_model::Object;
use ringer_model::agent::{AgentDoc, AgentSpec, Provider};
use ringer_model::error_code::Platform;
use ringer_model::integration::IntegrationSpec;
use ringer_model::notification::{Notice, NoticeKind};
use ringer_model::time::Timestamp;
use ringer_store::queue::AutosyncJob;
use ringer_store::vault::is_not_opened;
use ringer_store::{Resource as _, Session};
use ringer_transport::websocket::platform::adapter::Facts;
use ringer_transport::websocket::platform::definition::{Definition, DefinitionSource};
use serde_json::json;

use super::Placements;
use super::adapter::{Adapters, Asking, NotSent, PLATFORMS, SessionPlan, base_facts, field_names, wait_ms};
use crate::library::folders::stored_integrations;
use crate::library::versions::Draft;
use crate::{Caller, Settings};

/// Time limit of the request and its answer together.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest definition that is read, in bytes.
const ANSWER_BYTES: usize = 2 * 1024 * 1024;
/// Waits after each request but the last that had no answer to use, in milliseconds.
const WAITS_MS: [i64; 2] = [5000, 30_000];
/// Stands for the result in the claims of tokens: no conversation is asked about.
const ASKER: &str = "autosync";

/// Ways to read definitions, by the name of the provider.
pub type Definitions = BTreeMap<String, Arc<DefinitionSource>>;

/// Outcome of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Synced {
    /// The definition became this version of the agent.
    Pushed(i64),
    /// The agent's latest version has the same prompt.
    Unchanged,
    /// The platform is asked again a little later.
    Again,
    /// The definition cannot be read, for this reason.
    Skipped(String),
    /// The definition was not read, for this reason.
    Failed(String),
}

/// Outcome of one request.
enum Asked {
    Read(Definition),
    /// There may be an answer later: the reason, and the wait in seconds that the platform asks for.
    NotYet(String, Option<u64>),
    /// There will be none.
    Never(String),
}

/// Returns the sources of the settings `[autosync.NAME]`, and those that presets of adapters bring.
///
/// # Errors
/// Everything in them that cannot be used.
pub fn definitions(tables: &BTreeMap<String, AdapterTable>, adapters: &Adapters) -> Result<Definitions, Vec<String>> {
    let names = field_names();
    let brought = adapters.iter().filter_map(|(platform, adapter)| {
        Some((platform.clone(), Arc::new(DefinitionSource::of_preset(adapter, &names)?)))
    });
    let (mut found, mut problems): (Definitions, Vec<String>) = (brought.collect(), Vec::new());
    for (name, AdapterTable(table)) in tables {
        match DefinitionSource::parse(name, table, &|platform| adapters.get(platform).cloned(), &names) {
            Ok(source) => drop(found.insert(name.clone(), Arc::new(source))),
            Err(error) => problems.push(error.to_string()),
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

/// A definition that can be asked for.
pub(crate) struct Readable {
    source: Arc<DefinitionSource>,
    plan: SessionPlan,
}

/// Returns what is needed to read the definition of an agent.
///
/// # Errors
/// The reason why it cannot be read, or a fault of the store.
pub(crate) async fn readable(
    db: &mut Session,
    settings: &Settings,
    agent_id: i64,
    provider: &str,
) -> Result<std::result::Result<Readable, String>> {
    let Some(agent) = db.find::<AgentDoc>(agent_id).await? else {
        return Ok(Err(Error::NotFound(AgentDoc::WORD).to_string()));
    };
    let source = match (settings.definitions.get(provider), Provider::parse(provider)) {
        (Some(source), _) => source,
        (None, Some(Provider::Custom)) => {
            return Ok(Err("The definition of an agent of provider CUSTOM is kept here".to_owned()));
        }
        (None, Some(_)) => return Ok(Err(unset(provider, settings))),
        (None, None) => return Ok(Err(format!("Unknown provider '{provider}'"))),
    };
    let platforms = match stored_integrations(db).await {
        Err(error) if is_not_opened(&error) => {
            tracing::error!(%error, "the stored credentials of the platforms cannot be opened");
            return Ok(Err("The stored credentials cannot be opened".to_owned()));
        }
        stored => stored?,
    };
    Ok(prepare(source, &agent.doc.spec, &platforms))
}

/// Returns the reason why definitions of a platform cannot be read.
fn unset(provider: &str, settings: &Settings) -> String {
    match settings.adapters.get(provider) {
        Some(adapter) => format!(
            "[autosync.{provider}] has no url, and the preset {} of [adapters.{provider}] brings none",
            adapter.preset()
        ),
        None => format!("Neither [autosync.{provider}] nor [adapters.{provider}] is set up"),
    }
}

/// Returns a definition that can be asked for, or the name of the setting that is missing.
fn prepare(
    source: &Arc<DefinitionSource>,
    agent: &AgentSpec,
    platforms: &IntegrationSpec,
) -> std::result::Result<Readable, String> {
    let known = PLATFORMS.iter().find(|(kind, ..)| kind.as_str() == source.platform());
    let (platform, ids, key) =
        known.map_or((Platform::P3, &[][..], ""), |(_, platform, ids, key)| (*platform, *ids, *key));
    let facts = Facts { result_id: ASKER.to_owned(), ..base_facts(json!(agent), json!(platforms), ids, key) };
    if let Some(place) = source.missing(&facts) {
        let field = match place.as_str() {
            "agent.id" => ids.join(" or "),
            "integration.key" | "agent.key" => key.to_owned(),
            place => place.split_once('.').map_or(place, |(_, field)| field).to_owned(),
        };
        return Err(format!("{field} is not set"));
    }
    Ok(Readable { source: source.clone(), plan: SessionPlan::new(source.adapter().clone(), facts, platform) })
}

impl Placements {
    /// Reads the definition of an agent from its platform, and makes it a version of the agent where its prompt differs
    /// from the latest one.
    pub async fn sync_definition(&self, job: &AutosyncJob) -> Result<Synced> {
        let mut db = self.store.org(&job.organization).read().await?;
        let readable = readable(&mut db, &self.settings, job.agent_id, &job.provider).await?;
        drop(db);
        let synced = match readable {
            Ok(mut readable) => {
                let asked = self.ask_definition(&mut readable).await;
                self.take_definition(job, asked).await?
            }
            Err(why) => Synced::Skipped(why),
        };
        let (agent, provider) = (job.agent_id, job.provider.as_str());
        match &synced {
            Synced::Pushed(version) => {
                tracing::info!(agent, provider, version, "an agent's definition became a version");
            }
            Synced::Unchanged => tracing::debug!(agent, provider, "an agent's definition is unchanged"),
            Synced::Again => tracing::debug!(agent, provider, "an agent's definition is asked for again"),
            Synced::Skipped(why) => tracing::warn!(agent, provider, why, "an agent's definition cannot be read"),
            Synced::Failed(why) => tracing::warn!(agent, provider, why, "an agent's definition was not read"),
        }
        Ok(synced)
    }

    async fn ask_definition(&self, Readable { source, plan }: &mut Readable) -> Asked {
        let guard = Guard::new(self.settings.allow_private_agents).trusting(&self.settings.roots);
        let poster = Poster::new(guard, PATIENCE);
        let is_kept = match self.asker().authorize(plan, &poster, false).await {
            Ok(is_kept) => is_kept,
            Err(why) => return Asked::NotYet(why.message, None),
        };
        let make = |plan: &SessionPlan| plan.adapter.definition_request(&plan.facts);
        let asking = Asking { make: &make, result_id: None, answer_bytes: ANSWER_BYTES };
        match self.asker().send(plan, &poster, is_kept, &asking).await {
            Err(NotSent::NoToken(why)) => Asked::NotYet(why.message, None),
            Err(NotSent::NotMade(why)) => Asked::Never(why),
            Err(NotSent::NotPosted(NotPosted { why, .. })) => {
                Asked::NotYet(format!("url was not answered: {why}"), None)
            }
            Ok(Posted { status: 200..=299, body, .. }) => match source.read_answer(&body) {
                Ok(definition) => Asked::Read(definition),
                Err(why) => Asked::Never(format!("url: {why}")),
            },
            Ok(Posted { status: status @ (401 | 403), .. }) => {
                Asked::Never(format!("url answered {status}: the credentials are refused"))
            }
            Ok(Posted { status: status @ (408 | 425 | 429 | 500..), retry_after_s, .. }) => {
                Asked::NotYet(format!("url answered {status}"), retry_after_s)
            }
            Ok(Posted { status, .. }) => Asked::Never(format!("url answered {status}")),
        }
    }

    async fn take_definition(&self, job: &AutosyncJob, asked: Asked) -> Result<Synced> {
        let wait = usize::try_from(job.request - 1).ok().and_then(|at| WAITS_MS.get(at));
        let mut db = self.store.org(&job.organization).write().await?;
        let why = match (asked, wait) {
            (Asked::Read(definition), _) => return self.push_definition(db, job, definition).await,
            (Asked::NotYet(_, asked_s), Some(wait)) => {
                let due_ms = self.clock.now_ms() + wait_ms(*wait, asked_s);
                db.put(&AutosyncJob { request: job.request + 1, ..job.clone() }, due_ms, None).await?;
                db.commit().await?;
                return Ok(Synced::Again);
            }
            (Asked::NotYet(why, _) | Asked::Never(why), _) => why,
        };
        if let Some(agent) = db.find::<AgentDoc>(job.agent_id).await? {
            let notice = self.failure_notice(job, &agent.doc.spec.name, &why);
            self.outbox.notify_of_agent(&mut db, &agent.doc.spec, &notice).await?;
            db.commit().await?;
        }
        Ok(Synced::Failed(why))
    }

    /// Adds a definition to an agent's versions, where its prompt differs from the latest one.
    async fn push_definition(&self, mut db: Session, job: &AutosyncJob, definition: Definition) -> Result<Synced> {
        match db.hold_agent(job.agent_id).await {
            Err(Error::NotFound(word)) => return Ok(Synced::Skipped(Error::NotFound(word).to_string())),
            held => held?,
        };
        let Definition { prompt, name, version } = definition;
        if self.library.latest_prompt(&mut db, job.agent_id).await? == prompt {
            return Ok(Synced::Unchanged);
        }
        let provider = &job.provider;
        let named = name.as_ref().map(|name| format!("name {name}"));
        let told: Vec<String> = named.into_iter().chain(version.as_ref().map(|at| format!("version {at}"))).collect();
        let whence = if told.is_empty() { String::new() } else { format!(" ({})", told.join(", ")) };
        let read = json!({ "provider": provider, "name": name, "version": version });
        let draft = Draft {
            prompt_text: Some(prompt),
            commit_message: Some(format!("Synchronized from {provider}{whence}")),
            metadata: Some(Object::from_iter([("autosync".to_owned(), read)])),
            ..Draft::default()
        };
        let made = self.library.add_version(&mut db, &Caller::engine(&job.organization), job.agent_id, draft).await?;
        db.commit().await?;
        Ok(Synced::Pushed(made.doc.version))
    }

    fn failure_notice(&self, job: &AutosyncJob, name: &str, why: &str) -> Notice {
        let (agent_id, provider) = (job.agent_id, &job.provider);
        Notice {
            kind: NoticeKind::AutosyncFailed,
            title: format!("The definition of {name} was not read"),
            text: format!("The definition of the agent could not be read from {provider}: {why}."),
            at: Timestamp(self.clock.now_ms()),
            links: vec![self.outbox.link(&format!("/v1/agents/{agent_id}"))],
            data: Object::from_iter([
                ("agent_id".to_owned(), json!(agent_id)),
                ("provider".to_owned(), json!(provider)),
            ]),
            subject: agent_id.to_string(),
        }
    }
}
