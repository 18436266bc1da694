//! Requests of a scheduler service: runs, journeys that go on, definitions that follow their platforms.

use ringer_base::error::{Error, Result};
use ringer_model::agent::{AgentDoc, Provider};
use ringer_model::id::IdString;
use ringer_model::integration::IntegrationSpec;
use ringer_model::result::ResultDoc;
use ringer_model::run::{NO_HUMANS, Purpose, QueueSpec};
use ringer_model::schedule::ScheduleDoc;
use ringer_model::simulation::SimulationSpec;
use ringer_store::Resource as _;
use ringer_store::queue::AutosyncJob;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Runs;
use crate::Caller;
use crate::library::folders::stored_integrations;

/// Response to starting a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunAccepted {
    /// Always the text `accepted`.
    pub status: String,
    /// Id of the new run.
    pub simulation_run_id: String,
}

/// Response to agents that were taken in for a sync.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AutosyncAccepted {
    /// Always the text `accepted`.
    pub status: String,
    /// Number of agents to synchronise.
    pub targets: i64,
}

/// An agent whose definition is to follow its platform's.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct AutosyncTarget {
    /// Id of the agent.
    pub agent_id: i64,
    /// Platform that holds the agent's definition.
    pub provider: String,
}

/// True for a refusal to run that no later attempt can mend: the simulation or who calls in it is gone.
pub(crate) fn is_gone(error: &Error) -> bool {
    match error {
        Error::NotFound(word) => *word == SimulationSpec::WORD,
        Error::Refused(text) => text == NO_HUMANS,
        _ => false,
    }
}

impl Runs {
    /// Starts a run. What is gone for good is not found: whoever asks on a schedule stops then.
    pub async fn run_scheduled(
        &self,
        caller: &Caller,
        simulation_id: IdString,
        schedule_id: Option<Uuid>,
    ) -> Result<RunAccepted> {
        let mut db = self.store.org(&caller.organization).write().await?;
        if let Some(id) = schedule_id {
            db.get::<ScheduleDoc>(id).await?;
        }
        let spec = QueueSpec { simulation_id, ..QueueSpec::default() };
        let queued = self.queue_in(&mut db, caller, spec, Purpose::default()).await.map_err(|error| match error {
            Error::Refused(text) if text == NO_HUMANS => Error::NotAvailable(text),
            other => other,
        })?;
        db.answer(RunAccepted { status: "accepted".into(), simulation_run_id: queued.simulation_run_id }).await
    }

    /// Takes agents in whose definitions are to follow their platforms.
    pub async fn run_autosync(&self, caller: &Caller, targets: Vec<AutosyncTarget>) -> Result<AutosyncAccepted> {
        let now = self.clock.now_ms();
        let mut db = self.store.org(&caller.organization).write().await?;
        let count = targets.len() as i64;
        for AutosyncTarget { agent_id, provider } in targets {
            db.get::<AgentDoc>(agent_id).await?;
            let organization = caller.organization.clone();
            db.put(&AutosyncJob { organization, agent_id, provider, asked_ms: now }, now, None).await?;
        }
        db.answer(AutosyncAccepted { status: "accepted".into(), targets: count }).await
    }

    /// Brings one agent's definition in line with its platform's, as far as that can be asked, and logs what came of
    /// it.
    pub async fn autosync(&self, job: &AutosyncJob) -> Result<&'static str> {
        let mut db = self.store.org(&job.organization).read().await?;
        let Some(agent) = db.find::<AgentDoc>(job.agent_id).await? else { return Ok("the agent is gone") };
        let platforms = stored_integrations(&mut db).await?;
        let outcome = match Provider::parse(&job.provider) {
            None => "the platform is not known",
            Some(provider) if provider != agent.doc.spec.provider() => "the agent is of another platform",
            Some(Provider::Custom) => "the agent is its owner's own: there is nothing to follow",
            Some(provider) if !has_credentials(&platforms, provider) => "no credentials of the platform are set",
            Some(_) => "no adapter of the platform is set up",
        };
        tracing::info!(agent = job.agent_id, provider = job.provider, outcome, "definition of an agent checked");
        Ok(outcome)
    }

    /// Lets journey steps go that are due and were lost: their step before is over, and nobody has them to do.
    pub async fn sweep_journeys(&self) -> Result<usize> {
        let stranded = self.store.org("").read().await?.results_without_job().await?;
        let mut found = 0;
        for (organization, id) in stranded {
            let mut db = self.store.org(&organization).write().await?;
            let Some(waiting) = db.find::<ResultDoc>(id).await? else { continue };
            let Some(before) = db.step_beside(&waiting.doc, -1).await? else { continue };
            if before.doc.body.status.is_terminal() {
                self.conversations.start_next_step(&mut db, &before.doc).await?;
                db.commit().await?;
                found += 1;
            }
        }
        Ok(found)
    }
}

fn has_credentials(platforms: &IntegrationSpec, provider: Provider) -> bool {
    let set = |text: &Option<String>| text.is_some();
    match provider {
        Provider::P3 => set(&platforms.P3_api_key),
        Provider::P4 => set(&platforms.P4_api_key),
        Provider::P5 => set(&platforms.P5_private_key),
        Provider::P6 => !platforms.P6_credentials.is_null(),
        Provider::P7 => !platforms.P7_credentials.is_null(),
        Provider::P8 => !platforms.P8_credentials.is_null(),
        Provider::P9 => set(&platforms.P9_api_key),
        Provider::P10 => !platforms.P10_api_key.is_null(),
        // Theirs lie on the agent.
        Provider::Custom | Provider::P11 | Provider::P12 => true,
    }
}
