//! Digital Humans that can be called at any time: each call that comes in makes a result of its own, in its
//! simulation's run of the day (UTC). What they listen on is read when a call comes, so that a change of it acts at
//! once and outlives a restart.

use ringer_base::error::{Error, Result};
use ringer_model::Object;
use ringer_model::agent::{AgentDoc, AgentSpec};
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::result::ResultDoc;
use ringer_model::run::{QueueSpec, RunDoc};
use ringer_model::simulation::SimulationSpec;
use ringer_model::status::{ResultStatus, RunStatus};
use ringer_model::time::Timestamp;
use ringer_store::queue::CallJob;
use ringer_store::{Row, Session};

use super::Runs;
use super::queueing::{Plan, new_result, repetitions_so_far};
use crate::conversation::inbound_address::{Goal, InboundAddress, has_place, login};
use crate::library::{agents, versions};
use crate::outbox::addresses::address_user;

const DAY_MS: i64 = 86_400_000;

impl Runs {
    /// Returns the always-on Digital Human behind `address`, a number or the user part of its own address.
    pub(crate) async fn always_on_address(&self, address: &str) -> Result<Option<InboundAddress>> {
        let mut db = self.store.org("").read().await?;
        let found = match human_of(address) {
            Some(id) => db.organization_of_human(id).await?.map(|organization| (organization, id)),
            None => db.always_on(address).await?,
        };
        let Some((organization, human_id)) = found else { return Ok(None) };
        let mut db = self.store.org(&organization).read().await?;
        if db.is_foreign_number(address).await? {
            return Ok(None);
        }
        let human = db.get::<DigitalHumanSpec>(human_id).await?.doc;
        let own = address_user(&organization, human_id, &human, 0);
        if human.listens_on().is_none_or(|number| address != number && address != own) {
            return Ok(None);
        }
        for simulation_id in db.simulations_of(human_id).await? {
            let simulation = db.get::<SimulationSpec>(simulation_id).await?.doc;
            if !simulation.always_on {
                continue;
            }
            let agent = db.get::<AgentDoc>(agent_of(&simulation)?).await?.doc.spec;
            if agent.simulations_disabled {
                return Ok(None);
            }
            let (login, goal) = (login(&agent), Goal::AlwaysOn { human_id, simulation_id });
            return Ok(Some(InboundAddress { organization, unresponsive: false, login, goal }));
        }
        Ok(None)
    }

    /// Makes the result of a call to an always-on Digital Human, DISPATCHED. `None`: there is no place for it.
    pub(crate) async fn take_always_on(
        &self,
        organization: &str,
        human_id: i64,
        simulation_id: i64,
        about: Object,
    ) -> Result<Option<CallJob>> {
        let now = self.clock.now_ms();
        let mut db = self.store.org(organization).write().await?;
        let simulation = db.get::<SimulationSpec>(simulation_id).await?;
        let agent_id = agent_of(&simulation.doc)?;
        let (run_id, seed) = self.run_of_the_day(&mut db, &simulation, agent_id).await?;
        let conversations = &self.conversations;
        if !has_place(&mut db, run_id, &simulation.doc).await?
            || !conversations.has_free_place(&mut db).await?
            || conversations.is_over_budget(&mut db).await?
        {
            return Ok(None);
        }
        let version = match simulation.doc.agent_version_id {
            Some(version) => Some(versions::version_of(&mut db, agent_id, version).await?.id),
            None => db.production_version(agent_id).await?.map(|row| row.id),
        };
        let (humans, overrides) = (Vec::new(), QueueSpec::default());
        let plan = Plan { simulation, agent_id, version, humans, runs: 1, agent: AgentSpec::default(), overrides };
        let human = db.get::<DigitalHumanSpec>(human_id).await?;
        let repetition = repetitions_so_far(&mut db, run_id, human_id).await?;
        let doc = new_result(&plan, run_id, seed, &human, repetition, None, now);
        let id = db.insert(&doc, now, None).await?;
        let mut row = db.get::<ResultDoc>(id).await?;
        self.conversations.admit_new(&mut db, &mut row).await?;
        let is_admitted = row.doc.body.status == ResultStatus::Queued;
        if is_admitted {
            self.conversations.step(&mut db, &mut row, ResultStatus::Ready).await?;
            self.conversations.begin_answered(&mut db, &mut row, about).await?;
        }
        db.commit().await?;
        self.live.note_change(id);
        let organization = organization.to_owned();
        Ok(is_admitted.then_some(CallJob { organization, result_id: id, attempt: 1 }))
    }

    /// Returns the run that takes today's calls, and its seed. It runs again while a call of it does.
    async fn run_of_the_day(
        &self,
        db: &mut Session,
        simulation: &Row<SimulationSpec>,
        agent_id: i64,
    ) -> Result<(i64, ringer_media::seed::Seed)> {
        let now = self.clock.now_ms();
        let midnight = now - now.rem_euclid(DAY_MS);
        let day = Timestamp(now).to_string()[..10].to_owned();
        let todays = db.runs_since(simulation.id, midnight).await?;
        if let Some(mut run) = todays.into_iter().find(|run| run.doc.day.as_ref() == Some(&day)) {
            (run.doc.status, run.doc.completed_at) = (RunStatus::Running, None);
            db.update(run.id, &run.doc, now, None).await?;
            return Ok((run.id, ringer_media::seed::Seed(run.doc.seed as u64)));
        }
        let seed = agents::base_seed(None);
        let overrides = QueueSpec { simulation_id: simulation.id.into(), ..QueueSpec::default() };
        let run = RunDoc {
            simulation_id: simulation.id,
            agent_id,
            status: RunStatus::Running,
            summary: None,
            counted: None,
            completed_at: None,
            seed: seed.0 as i64,
            overrides,
            start_told: false,
            day: Some(day),
            created_by: None,
            name: None,
        };
        Ok((db.insert(&run, now, None).await?, seed))
    }
}

/// Returns the Digital Human that an address of the form `dh-ID-TOKEN` names.
fn human_of(address: &str) -> Option<i64> {
    let (id, _) = address.strip_prefix("dh-")?.split_once('-')?;
    id.parse().ok()
}

fn agent_of(simulation: &SimulationSpec) -> Result<i64> {
    simulation.agent_id.get().ok_or(Error::NotFound("Agent"))
}
