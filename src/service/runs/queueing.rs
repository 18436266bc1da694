//! Runs: queueing a simulation, listing, cancelling and deleting what came of it.

use std::collections::BTreeMap;

use futures_util::{StreamExt, stream};
use ringer_base::error::{Error, Result};
use ringer_media::call::EndReason;
use ringer_media::seed::Seed;
use ringer_model::agent::{AgentDoc, AgentMode, AgentSpec, ConnectionType};
use ringer_model::customer::CommunityDoc;
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
use crate::evaluation::trust::{correct_rate, note_cards};
use crate::library::agents::base_seed;
use crate::library::field_rules;
use crate::library::versions::version_of;
use crate::spending::{join_sums, note_usages, usage_of};
use crate::{Caller, Settings};

/// Orders to other engines that wait for an answer at the same time.
const ORDERS_AT_ONCE: usize = 16;

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
    pub agent: AgentSpec,
    pub overrides: QueueSpec,
}

impl Plan {
    /// Returns the numbers of the conversations by text messages with a Digital Human.
    fn pairs<'a>(&'a self, human: &'a DigitalHumanSpec) -> impl Iterator<Item = [String; 2]> + 'a {
        steps(human).into_iter().filter_map(|number| {
            let step = human.step(number);
            let agent = self.agent.met_in(step);
            let [own, agent] = agent.is_sms().then(|| self.overrides.text_numbers(&agent, human, step))?;
            Some([own?, agent?])
        })
    }

    /// Checks that every conversation can be held by the settings of the agent and of the run.
    ///
    /// # Errors
    /// The first one that cannot, with the setting that it lacks.
    fn check(&self, settings: &Settings) -> Result<()> {
        let run = &self.overrides;
        for human in self.humans.iter().map(|row| &row.doc) {
            for step in steps(human).into_iter().map(|number| human.step(number)) {
                if let Some(step) = step
                    && let Some(field) = self.agent.missing_for(step, run)
                {
                    let (number, modality) = (step.step, step.modality.as_str());
                    let text = format!("journey step {number} needs {modality}, and {field} is not set");
                    return Err(Error::Refused(text));
                }
                let agent = self.agent.met_in(step);
                check_mode(agent.connection(), agent.mode)?;
                if agent.connection().or(run.connection()) == Some(ConnectionType::WebSocket) {
                    let dialects = [&run.websocket_dialect, &human.websocket_dialect, &agent.websocket_dialect];
                    let dialect = dialects.into_iter().flatten().next();
                    check_carried(&agent, dialect.map(String::as_str), settings)?;
                }
            }
        }
        Ok(())
    }
}

impl Runs {
    /// Makes a run with all its results, and a call job for each conversation that need not wait for another.
    #[cfg(any(test, feature = "testing"))]
    pub async fn queue_simulation_run(&self, caller: &Caller, spec: QueueSpec) -> Result<QueueAnswer> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let answer = self.queue_in(&mut db, caller, spec, Purpose::default()).await?;
        db.answer(answer).await
    }

    /// Makes a run with all its results, of the simulation that a request names by id, by code, or by both; and a call
    /// job for each conversation that need not wait for another.
    pub async fn queue_named_run(&self, caller: &Caller, request: QueueRequest) -> Result<QueueAnswer> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let simulation_id = named_simulation(&mut db, request.simulation_id.as_ref(), request.svc_as_code_id).await?;
        let spec = request.settings.of(simulation_id).map_err(Error::internal)?;
        let answer = self.queue_in(&mut db, caller, spec, Purpose::default()).await?;
        db.answer(answer).await
    }

    /// Queues a run as [`Runs::queue_named_run`] does, within a transaction and for a purpose. A refusal has changed
    /// nothing.
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
            created_by: Some(caller.author()),
            name: None,
        };
        let run_id = db.insert(&run, now, Some(caller.author())).await?;
        let lane = Lane::of_run(run_id, &plan.simulation.doc);
        let mut ids = Vec::new();
        for human in &plan.humans {
            let count = if purpose.once { 1 } else { repetitions(&plan, human) };
            for repetition in 0..count {
                for step in steps(&human.doc) {
                    let mut doc = new_result(&plan, run_id, seed, human, repetition, step, now);
                    let purposes = purpose.tag.filter(|tag| !doc.body.tags.iter().any(|known| known == tag));
                    doc.body.tags.extend(purposes.map(str::to_owned));
                    let id = db.insert(&doc, now, Some(caller.author())).await?;
                    ids.push(id.to_string());
                    if step.is_none_or(|step| step == 1) {
                        let job = CallJob { organization: caller.organization.clone(), result_id: id, attempt: 1 };
                        let written = plan.agent.met_in(human.doc.step(step)).is_written();
                        db.put_conversation(job, written, now, lane.as_ref()).await?;
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
        let mut results = db.results_of_run(run_id).await?;
        let bodies = results.iter_mut().map(|row| &mut row.doc.body).collect();
        note_cards(&mut db, self.evaluations.least(), bodies).await?;
        let corrected = correct_rate(&mut db, &results).await?;
        let uses = db.use_of_run(run_id).await?;
        note_usages(&mut results, &uses);
        let usage = usage_of(&join_sums(uses.into_iter().map(|(_, sum)| sum)));
        let reasons = self.conversations.queue_reasons(&mut db, &results).await?;
        Ok(RunResults {
            simulation_run: RunRecord {
                usage,
                corrected,
                ..run_record(run, counters, &simulation, count_reasons(&reasons))
            },
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
        let ring_off = |id| self.conversations.hang_up_cancelled(id, EndReason::Cancelled);
        stream::iter(dialling).for_each_concurrent(ORDERS_AT_ONCE, ring_off).await;
        let end = |id| self.conversations.hang_up(id, EndReason::ApiHangup);
        let running = stream::iter(running.into_iter().filter(|_| hangup));
        // All that can be reached are asked, whatever engine is away.
        let asked: Vec<Result<bool>> = running.map(end).buffer_unordered(ORDERS_AT_ONCE).collect().await;
        let ended = asked.into_iter().collect::<Result<Vec<bool>>>()?.into_iter().filter(|ended| *ended).count() as i64;
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
        Ok(plan.humans.iter().flat_map(|human| plan.pairs(&human.doc)).collect())
    }

    async fn plan(&self, db: &mut Session, mut spec: QueueSpec, purpose: Purpose) -> Result<Plan> {
        let simulation_id = spec.simulation_id.get().ok_or(Error::NotFound("Simulation"))?;
        let simulation = db.get::<SimulationSpec>(simulation_id).await?;
        let agent_id = simulation.doc.agent_id.get().ok_or(Error::NotFound("Agent"))?;
        let agent = db.get::<AgentDoc>(agent_id).await?.doc;
        let chosen = Chosen::of_request(db, spec.digital_human_ids.as_deref(), spec.community_ids.as_deref()).await?;
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
        let humans = chosen.pick(db.digital_humans_of(simulation_id).await?, simulation_id)?;
        field_rules::phone("phone_number", &mut spec.phone_number)?;
        field_rules::sip_uri(spec.sip_uri.as_deref(), &self.settings)?;
        field_rules::websocket(spec.websocket_url.as_deref(), &self.settings)?;
        field_rules::dialect(spec.websocket_dialect.as_deref(), &self.settings)?;
        let runs = spec.runs_per_digital_human.or(simulation.doc.runs_per_digital_human).unwrap_or(1);
        let plan = Plan { simulation, agent_id, version, humans, runs, agent: agent.spec, overrides: spec };
        plan.check(&self.settings)?;
        let total = plan.humans.iter().fold(0i64, |total, human| {
            let results = repetitions(&plan, human).saturating_mul(steps(&human.doc).len() as i64);
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

/// Digital Humans that a request names; none: all of the simulation.
struct Chosen {
    /// Ids of Digital Humans that the organization has.
    ids: Vec<i64>,
    /// Titles of communities, and their members.
    communities: Vec<(String, Vec<i64>)>,
}

impl Chosen {
    /// Reads what a request names.
    ///
    /// # Errors
    /// A Digital Human or a community that the organization does not have, or a community without members.
    async fn of_request(db: &mut Session, ids: Option<&[IdString]>, communities: Option<&[Uuid]>) -> Result<Chosen> {
        let mut chosen = Chosen { ids: Vec::new(), communities: Vec::new() };
        for id in ids.unwrap_or_default() {
            let id = id.get().ok_or(Error::NotFound("Digital human"))?;
            db.get::<DigitalHumanSpec>(id).await?;
            chosen.ids.push(id);
        }
        for id in communities.unwrap_or_default() {
            let title = db.get::<CommunityDoc>(*id).await?.doc.title;
            let members = db.members_of(*id).await?;
            if members.is_empty() {
                return Err(Error::Refused(format!("Community '{title}' has no digital humans")));
            }
            chosen.communities.push((title, members));
        }
        Ok(chosen)
    }

    /// Returns those of a simulation's Digital Humans that are named, each once.
    ///
    /// # Errors
    /// Names those that are not part of the simulation.
    fn pick(&self, linked: Vec<Row<DigitalHumanSpec>>, simulation: i64) -> Result<Vec<Row<DigitalHumanSpec>>> {
        if linked.is_empty() {
            return Err(Error::Refused(NO_HUMANS.into()));
        }
        let is_foreign = |id: &&i64| linked.iter().all(|row| row.id != **id);
        if let Some(id) = self.ids.iter().find(is_foreign) {
            return Err(Error::Refused(format!("Digital human {id} is not part of simulation {simulation}")));
        }
        for (title, members) in &self.communities {
            let foreign: Vec<String> = members.iter().filter(is_foreign).map(i64::to_string).collect();
            let (word, verb) = if foreign.len() == 1 { ("human", "is") } else { ("humans", "are") };
            if !foreign.is_empty() {
                let ids = foreign.join(", ");
                let who = format!("Digital {word} {ids} of community '{title}'");
                return Err(Error::Refused(format!("{who} {verb} not part of simulation {simulation}")));
            }
        }
        let names_all = self.ids.is_empty() && self.communities.is_empty();
        let is_member = |id: &i64| self.communities.iter().any(|(_, members)| members.contains(id));
        let is_wanted = |row: &Row<DigitalHumanSpec>| names_all || self.ids.contains(&row.id) || is_member(&row.id);
        Ok(linked.into_iter().filter(is_wanted).collect())
    }
}

/// Refuses a connection that cannot carry the agent's mode. No connection at all is found out at run time.
fn check_mode(connection: Option<ConnectionType>, mode: AgentMode) -> Result<()> {
    let Some(connection) = connection else { return Ok(()) };
    let modes = connection.modes();
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
fn steps(human: &DigitalHumanSpec) -> Vec<Option<i64>> {
    match &human.journey_steps {
        Some(steps) if !steps.is_empty() => steps.iter().map(|step| Some(step.step)).collect(),
        _ => vec![None],
    }
}

/// Returns the tags that a result has from the start: those of its simulation and of its caller, each once.
fn inherited_tags(simulation: &SimulationSpec, human: &DigitalHumanSpec) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for tag in simulation.tags.iter().chain(&human.tags).chain(&human.tag) {
        if !tags.contains(tag) {
            tags.push(tag.clone());
        }
    }
    tags
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
        tags: inherited_tags(&plan.simulation.doc, &human.doc),
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
        name: run.doc.name,
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
        usage: None,
        corrected: None,
        name: run.doc.name,
    }
}
