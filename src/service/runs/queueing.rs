//! Runs: queueing a simulation, listing, cancelling and deleting what came of it.

use std::collections::BTreeMap;

use ringer_base::error::{Error, Result};
use ringer_media::call::EndReason;
use ringer_media::seed::Seed;
use ringer_model::agent::{AgentDoc, AgentMode, AgentSpec, ConnectionType};
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::id::IdString;
use ringer_model::result::{ResultBody, ResultDoc, ResultRecord, StatusChange};
use ringer_model::run::{
    AgentWanted, Counters, NO_HUMANS, Purpose, QueueAnswer, QueueRequest, QueueSpec, RunDoc, RunItem, RunRecord,
    result_seed,
};
use ringer_model::simulation::SimulationSpec;
use ringer_model::status::{ResultStatus, RunOutcome, RunStatus};
use ringer_model::time::Timestamp;
use ringer_store::queue::{CallJob, Lane};
use ringer_store::{Owner, Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::Runs;
use crate::conversation::waiting::count_reasons;
use crate::library::agents::base_seed;
use crate::library::field_rules;
use crate::library::versions::version_of;
use crate::{Caller, Settings};

/// A run with its results.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunResults {
    /// The run itself, with its counters.
    pub simulation_run: RunRecord,
    /// Results of the run, in ascending order of id.
    pub simulation_results: Vec<ResultRecord>,
    /// Always the text `200`.
    pub status: String,
}

/// Response to cancelling a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunCancelled {
    /// Id of the run.
    pub simulation_run_id: i64,
    /// Results that became CANCELLED.
    pub cancelled: i64,
    /// Conversations that were asked to end.
    pub ended: i64,
}

/// Response to deleting a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunDeleted {
    /// Confirmation in words, for display.
    pub message: String,
    /// Id of the deleted run.
    pub deleted_simulation_run_id: i64,
}

/// Everything that a run is made of, found and checked.
pub(crate) struct Plan {
    pub simulation: Row<SimulationSpec>,
    pub agent_id: i64,
    pub version: Option<Uuid>,
    pub humans: Vec<Row<DigitalHumanSpec>>,
    pub runs: i64,
    /// True if the conversations are written.
    pub written: bool,
    /// Agent of the conversations by text messages; `None` for other runs.
    pub texter: Option<AgentSpec>,
    pub overrides: QueueSpec,
}

impl Plan {
    /// Returns the numbers of a conversation by text messages.
    fn pair(&self, human: &DigitalHumanSpec) -> Option<[String; 2]> {
        let [own, agent] = self.overrides.text_numbers(self.texter.as_ref()?, human);
        Some([own?, agent?])
    }
}

impl Runs {
    /// Makes a run with all its results, and a call job for each conversation that need not wait for another.
    pub async fn queue_simulation_run(&self, caller: &Caller, spec: QueueSpec) -> Result<QueueAnswer> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let answer = self.queue_in(&mut db, caller, spec, Purpose::default()).await?;
        db.answer(answer).await
    }

    /// Queues a run as [`Runs::queue_simulation_run`] does, of the simulation that a request names by id, by code,
    /// or by both.
    pub async fn queue_named_run(&self, caller: &Caller, request: QueueRequest) -> Result<QueueAnswer> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let simulation_id = named_simulation(&mut db, request.simulation_id.as_ref(), request.svc_as_code_id).await?;
        let spec = request.settings.of(simulation_id).map_err(Error::internal)?;
        let answer = self.queue_in(&mut db, caller, spec, Purpose::default()).await?;
        db.answer(answer).await
    }

    /// Queues a run as [`Runs::queue_simulation_run`] does, within a transaction and for a purpose. A refusal has
    /// changed nothing.
    pub(crate) async fn queue_in(
        &self,
        db: &mut Session,
        caller: &Caller,
        spec: QueueSpec,
        purpose: Purpose,
    ) -> Result<QueueAnswer> {
        let plan = self.plan(db, spec, purpose).await?;
        let now = self.clock.now_ms();
        let seed = base_seed(plan.overrides.seed);
        let run = RunDoc {
            simulation_id: plan.simulation.id,
            agent_id: plan.agent_id,
            status: RunStatus::Running,
            summary: None,
            counted: None,
            completed_at: None,
            seed: seed.0 as i64,
            overrides: plan.overrides.clone(),
            start_told: false,
            day: None,
            created_by: Some(caller.key_id),
        };
        let run_id = db.insert(&run, now, Some(caller.key_id)).await?;
        let lane = Lane::of_run(run_id, &plan.simulation.doc);
        let mut ids = Vec::new();
        for human in &plan.humans {
            let count = if purpose.once { 1 } else { repetitions(&plan, human) };
            for repetition in 0..count {
                for step in steps(human) {
                    let mut doc = new_result(&plan, run_id, seed, human, repetition, step, now);
                    doc.body.tags.extend(purpose.tag.map(str::to_owned));
                    let id = db.insert(&doc, now, Some(caller.key_id)).await?;
                    ids.push(id.to_string());
                    if step.is_none_or(|step| step == 1) {
                        let job = CallJob { organization: caller.organization.clone(), result_id: id, attempt: 1 };
                        db.put_conversation(job, plan.written, now, lane.as_ref()).await?;
                    }
                }
            }
        }
        if let Some(lane) = &lane {
            db.release(lane).await?;
        }
        Ok(QueueAnswer {
            simulation_run_id: run_id.to_string(),
            simulation_result_ids: ids,
            agent_id: plan.agent_id.to_string(),
            status: "success".into(),
        })
    }

    /// Returns the runs of a simulation, newest first.
    pub async fn simulation_runs(&self, caller: &Caller, simulation_id: i64) -> Result<Vec<RunItem>> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let simulation = db.get::<SimulationSpec>(simulation_id).await?.doc;
        let tallies = db.tallies(Owner::Simulation, simulation_id).await?;
        let runs = db.by::<RunDoc>("simulation_id", simulation_id).await?;
        let mut items = Vec::new();
        for run in runs {
            let counters = tallies.get(&run.id).copied().unwrap_or_default().counters;
            let reasons = match run.doc.status {
                RunStatus::Running => {
                    let results = db.results_of_run(run.id).await?;
                    count_reasons(&self.conversations.queue_reasons(&mut db, &results).await?)
                }
                RunStatus::Completed | RunStatus::Unknown(_) => BTreeMap::new(),
            };
            items.push(run_item(run, counters, &simulation, reasons));
        }
        Ok(items)
    }

    /// Returns a run with its results.
    pub async fn run_results(&self, caller: &Caller, run_id: i64) -> Result<RunResults> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let run = db.get::<RunDoc>(run_id).await?;
        let simulation = db.get::<SimulationSpec>(run.doc.simulation_id).await?.doc;
        let counters = db.tally(run_id).await?.counters;
        let results = db.results_of_run(run_id).await?;
        let reasons = self.conversations.queue_reasons(&mut db, &results).await?;
        Ok(RunResults {
            simulation_run: run_record(run, counters, &simulation, count_reasons(&reasons)),
            simulation_results: results.into_iter().map(|row| self.result_record(row, &reasons, caller)).collect(),
            status: "200".into(),
        })
    }

    /// Cancels what has not begun; `hangup`: also asks running conversations to end.
    pub async fn cancel_run(&self, caller: &Caller, run_id: i64, hangup: bool) -> Result<RunCancelled> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.get::<RunDoc>(run_id).await?;
        let (mut cancelled, mut dialling, mut running) = (vec![], vec![], vec![]);
        for mut row in db.results_of_run(run_id).await? {
            let status = row.doc.body.status;
            if status == ResultStatus::Running {
                running.push(row.id);
            }
            // A step before this one may have put it on its way within this loop: what is in the store counts.
            if status.is_early() {
                self.conversations.cancel(&mut db, &mut row).await?;
                cancelled.push(row.id);
                if status == ResultStatus::Dispatched {
                    dialling.push(row.id);
                }
            }
        }
        db.commit().await?;
        cancelled.iter().for_each(|id| self.live.note_change(*id));
        for id in dialling {
            self.live.hangup(id, EndReason::Cancelled);
        }
        let end = |id: &&i64| hangup && self.live.hangup(**id, EndReason::ApiHangup);
        let ended = running.iter().filter(end).count() as i64;
        Ok(RunCancelled { simulation_run_id: run_id, cancelled: cancelled.len() as i64, ended })
    }

    /// Deletes a run with its results.
    pub async fn delete_run(&self, caller: &Caller, run_id: i64) -> Result<RunDeleted> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.get::<RunDoc>(run_id).await?;
        if db.has_open_results(Owner::Run, run_id).await? {
            return Err(Error::Conflict("Simulation run is still running".into()));
        }
        let results = db.result_ids(Owner::Run, run_id).await?;
        db.delete::<RunDoc>(run_id).await?;
        db.commit().await?;
        self.settings.remove_result_files(&results).await;
        Ok(RunDeleted { message: "Simulation run deleted successfully".into(), deleted_simulation_run_id: run_id })
    }

    /// Returns the numbers of the conversations by text messages that a run would hold.
    pub(crate) async fn pairs(&self, db: &mut Session, spec: QueueSpec, purpose: Purpose) -> Result<Vec<[String; 2]>> {
        let plan = self.plan(db, spec, purpose).await?;
        Ok(plan.humans.iter().filter_map(|human| plan.pair(&human.doc)).collect())
    }

    async fn plan(&self, db: &mut Session, mut spec: QueueSpec, purpose: Purpose) -> Result<Plan> {
        let simulation_id = spec.simulation_id.get().ok_or(Error::NotFound("Simulation"))?;
        let simulation = db.get::<SimulationSpec>(simulation_id).await?;
        let agent_id = simulation.doc.agent_id.get().ok_or(Error::NotFound("Agent"))?;
        let agent = db.get::<AgentDoc>(agent_id).await?.doc;
        let chosen = chosen_humans(db, spec.digital_human_ids.as_deref()).await?;
        let twin = field_rules::twins(spec.agent_version_id, spec.prompt_id.take());
        let version = match twin.clone().ok().flatten().or(simulation.doc.agent_version_id) {
            Some(version) => Some(version_of(db, agent_id, version).await?.id),
            None => db.production_version(agent_id).await?.map(|row| row.id),
        };
        twin?;
        spec.agent_version_id = version;
        match purpose.agent {
            AgentWanted::HttpText if !agent.spec.is_http_text() => {
                return Err(Error::Refused("Agent is not an HTTP text agent".into()));
            }
            AgentWanted::Sms if !agent.spec.is_sms() => return Err(Error::Refused("Agent is not an SMS agent".into())),
            _ => {}
        }
        if agent.spec.simulations_disabled {
            return Err(Error::Refused("Simulations are disabled for this agent".into()));
        }
        let humans = pick(db.digital_humans_of(simulation_id).await?, &chosen, simulation_id)?;
        field_rules::phone("phone_number", &mut spec.phone_number)?;
        field_rules::sip_uri(spec.sip_uri.as_deref(), &self.settings)?;
        field_rules::websocket(spec.websocket_url.as_deref(), &self.settings)?;
        field_rules::dialect(spec.websocket_dialect.as_deref(), &self.settings)?;
        check_mode(agent.spec.connection(), agent.spec.mode)?;
        if agent.spec.connection().or(spec.connection()) == Some(ConnectionType::WebSocket) {
            let spoken = humans.iter().map(|human| human.doc.websocket_dialect.as_deref()).map(|of_human| {
                spec.websocket_dialect.as_deref().or(of_human).or(agent.spec.websocket_dialect.as_deref())
            });
            spoken.into_iter().try_for_each(|name| check_carried(&agent.spec, name, &self.settings))?;
        }
        let runs = spec.runs_per_digital_human.or(simulation.doc.runs_per_digital_human).unwrap_or(1);
        let written = agent.spec.is_written();
        let texter = Some(agent.spec).filter(AgentSpec::is_sms);
        let plan = Plan { simulation, agent_id, version, humans, runs, written, texter, overrides: spec };
        let total = plan.humans.iter().fold(0i64, |total, human| {
            let results = repetitions(&plan, human).saturating_mul(steps(human).len() as i64);
            total.saturating_add(results)
        });
        let limit = self.settings.max_results_per_run;
        if total > limit {
            return Err(Error::Refused(format!("Run would create {total} results, the limit is {limit}")));
        }
        Ok(plan)
    }
}

/// Returns the simulation with the id, with the stable identifier, or with both.
async fn named_simulation(db: &mut Session, id: Option<&IdString>, code: Option<Uuid>) -> Result<i64> {
    let unknown = Error::NotFound("Simulation");
    let by_id = match id {
        Some(id) => Some(db.get::<SimulationSpec>(id.get().ok_or(unknown.clone())?).await?.id),
        None => None,
    };
    let by_code = match code {
        Some(code) => Some(db.by::<SimulationSpec>("code_id", code).await?.pop().ok_or(unknown.clone())?.id),
        None => None,
    };
    match (by_id, by_code) {
        (Some(id), Some(other)) if id != other => {
            Err(Error::Refused("simulation_id and svc_as_code_id must name the same simulation".into()))
        }
        (id, other) => id.or(other).ok_or(unknown),
    }
}

/// Returns the ids asked for, each of a Digital Human that the organization has; empty: all of the simulation.
async fn chosen_humans(db: &mut Session, ids: Option<&[IdString]>) -> Result<Vec<i64>> {
    let mut chosen = Vec::new();
    for id in ids.unwrap_or_default() {
        let id = id.get().ok_or(Error::NotFound("Digital human"))?;
        db.get::<DigitalHumanSpec>(id).await?;
        chosen.push(id);
    }
    Ok(chosen)
}

fn pick(linked: Vec<Row<DigitalHumanSpec>>, chosen: &[i64], simulation: i64) -> Result<Vec<Row<DigitalHumanSpec>>> {
    if linked.is_empty() {
        return Err(Error::Refused(NO_HUMANS.into()));
    }
    if let Some(id) = chosen.iter().find(|id| linked.iter().all(|row| row.id != **id)) {
        return Err(Error::Refused(format!("Digital human {id} is not part of simulation {simulation}")));
    }
    let wanted = |row: &Row<DigitalHumanSpec>| chosen.is_empty() || chosen.contains(&row.id);
    Ok(linked.into_iter().filter(wanted).collect())
}

/// Refuses a connection that cannot carry the agent's mode. No connection at all is found out at run time.
fn check_mode(connection: Option<ConnectionType>, mode: AgentMode) -> Result<()> {
    use ConnectionType as C;
    let Some(connection) = connection else { return Ok(()) };
    let modes: &[AgentMode] = match connection {
        C::Sms | C::HttpWebhook | C::P12 => &[AgentMode::Text],
        C::Email => &[AgentMode::Email],
        C::P6 | C::P7 | C::P8 | C::P10 | C::P11 => &[AgentMode::Voice, AgentMode::Text],
        _ => &[AgentMode::Voice],
    };
    if modes.contains(&mode) {
        return Ok(());
    }
    Err(Error::Refused(format!("connection_type {} needs mode {}", connection.as_str(), modes[0].as_str())))
}

/// Refuses parameters that the dialect of a call does not carry.
fn check_carried(agent: &AgentSpec, dialect: Option<&str>, settings: &Settings) -> Result<()> {
    let parameters: Vec<(String, String)> =
        agent.websocket_parameters.iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect();
    let checked = settings.dialect(dialect)?.check_parameters(&parameters);
    checked.map_err(|error| Error::Refused(error.to_string()))
}

fn repetitions(plan: &Plan, human: &Row<DigitalHumanSpec>) -> i64 {
    plan.runs.saturating_mul(human.doc.num_runs)
}

/// Returns the number of results that a Digital Human has in a run.
pub(crate) async fn repetitions_so_far(db: &mut Session, run_id: i64, human_id: i64) -> Result<i64> {
    let results = db.results_of_run(run_id).await?;
    Ok(results.iter().filter(|row| row.doc.body.digital_human_id == Some(human_id)).count() as i64)
}

/// Returns the journey steps of a Digital Human; one `None` without a journey.
fn steps(human: &Row<DigitalHumanSpec>) -> Vec<Option<i64>> {
    match &human.doc.journey_steps {
        Some(steps) if !steps.is_empty() => steps.iter().map(|step| Some(step.step)).collect(),
        _ => vec![None],
    }
}

/// Returns a result of a run before its conversation.
pub(crate) fn new_result(
    plan: &Plan,
    run_id: i64,
    base: Seed,
    human: &Row<DigitalHumanSpec>,
    repetition: i64,
    step: Option<i64>,
    now_ms: i64,
) -> ResultDoc {
    let seed = result_seed(base, &human.doc.seed_key(human.id), repetition, step);
    let human_id = human.id;
    let status = ResultStatus::Initializing;
    let body = ResultBody {
        digital_human_id: Some(human_id),
        simulation_run_id: run_id,
        simulation_id: plan.simulation.id,
        agent_id: plan.agent_id,
        status,
        status_history: vec![StatusChange { status, at: Timestamp(now_ms) }],
        attempt: 1,
        journey_step: step,
        agent_version_id: plan.version,
        seed: seed.0 as i64,
        ..ResultBody::default()
    };
    ResultDoc { body, repetition, ..ResultDoc::default() }
}

pub(crate) fn verdict(run: &RunDoc, counters: &Counters, simulation: &SimulationSpec) -> Option<RunOutcome> {
    let (failing, passing) = (simulation.outcome_failing_threshold, simulation.outcome_passing_threshold);
    (run.status == RunStatus::Completed).then(|| counters.outcome(failing, passing))?
}

fn run_item(
    run: Row<RunDoc>,
    counters: Counters,
    simulation: &SimulationSpec,
    queue_reasons: BTreeMap<String, i64>,
) -> RunItem {
    RunItem {
        id: run.id,
        experiment_id: run.doc.simulation_id,
        created_at: Timestamp(run.created_ms),
        status: run.doc.status,
        outcome: verdict(&run.doc, &counters, simulation),
        summary: run.doc.summary,
        counters,
        curr_step_id: None,
        phone_number: run.doc.overrides.phone_number,
        simulation_id: run.doc.simulation_id,
        seed: Some(run.doc.seed),
        completed_at: run.doc.completed_at,
        queue_reasons,
    }
}

fn run_record(
    run: Row<RunDoc>,
    counters: Counters,
    simulation: &SimulationSpec,
    queue_reasons: BTreeMap<String, i64>,
) -> RunRecord {
    RunRecord {
        id: run.id.to_string(),
        simulation_id: run.doc.simulation_id.to_string(),
        created_at: Timestamp(run.created_ms),
        outcome: verdict(&run.doc, &counters, simulation),
        summary: run.doc.summary,
        status: run.doc.status,
        counters,
        seed: Some(run.doc.seed),
        completed_at: run.doc.completed_at,
        queue_reasons,
    }
}
