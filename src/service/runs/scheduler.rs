//! Requests of a scheduler service: runs, journeys that go on, definitions that follow their platforms.

use ringer_base::error::{Error, Result};
use ringer_model::id::IdString;
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
use crate::placement::definitions::readable;

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
    /// Number of agents whose synchronization was begun.
    pub targets: i64,
    /// Agents whose synchronization was not begun, with the reasons.
    pub skipped: Vec<AutosyncSkipped>,
}

/// An agent whose definition cannot follow its platform's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AutosyncSkipped {
    /// Id of the agent, as it was sent.
    pub agent_id: i64,
    /// Provider, as it was sent.
    pub provider: String,
    /// Unknown agent or provider, or the setting that is missing.
    pub reason: String,
}

/// An agent whose definition is to follow its platform's.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct AutosyncTarget {
    /// Id of the agent.
    pub agent_id: i64,
    /// Platform that holds the agent's definition: P3 to P11, or the name of an `[autosync.NAME]` of the settings.
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

    /// Takes agents in whose definitions are to follow their platforms, and names those for which that is not possible.
    pub async fn run_autosync(&self, caller: &Caller, targets: Vec<AutosyncTarget>) -> Result<AutosyncAccepted> {
        let now = self.clock.now_ms();
        let mut db = self.store.org(&caller.organization).write().await?;
        let (mut begun, mut skipped) = (Vec::new(), Vec::new());
        for target in targets {
            let reason = match begun.contains(&target) {
                true => Some("The same target stands before it".to_owned()),
                false => readable(&mut db, &self.settings, target.agent_id, &target.provider).await?.err(),
            };
            match reason {
                None => begun.push(target),
                Some(reason) => {
                    let AutosyncTarget { agent_id, provider } = target;
                    skipped.push(AutosyncSkipped { agent_id, provider, reason });
                }
            }
        }
        for AutosyncTarget { agent_id, provider } in &begun {
            let (organization, provider) = (caller.organization.clone(), provider.clone());
            let job = AutosyncJob { organization, agent_id: *agent_id, provider, asked_ms: now, request: 1 };
            db.put(&job, now, None).await?;
        }
        db.answer(AutosyncAccepted { status: "accepted".into(), targets: begun.len() as i64, skipped }).await
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
