//! Runs of all simulations in one list, and the changes of one run as they happen.

use std::collections::{BTreeMap, HashMap};

use ringer_base::error::Result;
use ringer_media::measure::percentile;
use ringer_model::agent::AgentDoc;
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::error_code::{ErrorCode, Owner};
use ringer_model::result::{QueueReason, ResultDoc};
use ringer_model::run::{Counters, RunDoc, RunPatch};
use ringer_model::simulation::SimulationSpec;
use ringer_model::status::{Outcome, ResultStatus, RunOutcome, RunStatus};
use ringer_model::time::Timestamp;
use ringer_model::verdict::VerdictWord;
use ringer_store::{Row, RunFilter, Session};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;
use uuid::Uuid;

use super::Runs;
use super::queueing::verdict;
use crate::Caller;
use crate::library::keys::authors;
use crate::library::simulations::name_of;

/// Selection and page of a list of runs.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct RunQuery {
    /// Only runs of this agent.
    #[serde(default)]
    pub agent_id: Option<i64>,
    /// Only runs of this simulation.
    #[serde(default)]
    pub simulation_id: Option<i64>,
    /// Only runs of this state: RUNNING or COMPLETED.
    #[serde(default)]
    pub status: Option<RunStatus>,
    /// Only runs with this verdict: passed, failed or warning.
    #[serde(default)]
    pub outcome: Option<RunOutcome>,
    /// Only runs whose number is this text, or whose name, agent, simulation, tags, author or summary contain it, in
    /// any case.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub q: Option<String>,
    /// Only runs of which a result has this tag: of its own, of its simulation, or of its caller.
    #[serde(default)]
    pub tag: Option<String>,
    /// Only runs that were queued at this time (UTC, `2026-01-05T09:00:00Z`) or later.
    #[serde(default)]
    pub since: Option<Timestamp>,
    /// Most runs of a page, 1 to 200.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: i64,
    /// Position to go on from: next_cursor of the page before.
    #[serde(default)]
    pub cursor: Option<i64>,
}

/// Runs that are looked through at once for a verdict or a text.
const LOOKED_AT: i64 = 200;
/// Most runs that one request looks through; the next page goes on behind them.
const MOST_LOOKED_AT: usize = 2000;

fn fifty() -> i64 {
    50
}

/// A page of runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunPage {
    /// Runs, the newest one first.
    pub simulation_runs: Vec<ListedRun>,
    /// Position of the next page; null at the end.
    pub next_cursor: Option<String>,
}

/// A run in the list of all runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ListedRun {
    /// Id of the run.
    pub id: i64,
    /// Name that a person gave it; null: none.
    pub name: Option<String>,
    /// Id of the agent under test.
    pub agent_id: i64,
    /// Name of the agent; null when it was deleted.
    pub agent_name: Option<String>,
    /// Id of the simulation.
    pub simulation_id: i64,
    /// Name of the simulation.
    pub simulation_name: Option<String>,
    /// State of the run.
    pub status: RunStatus,
    /// Verdict of the run.
    pub outcome: Option<RunOutcome>,
    /// Number of results by verdict.
    #[serde(flatten)]
    pub counters: Counters,
    /// Median of the agent's latencies of all turns, seconds.
    pub p50_agent_latency: Option<f64>,
    /// 95th percentile of the agent's latencies of all turns, seconds.
    pub p95_agent_latency: Option<f64>,
    /// Time at which it was queued.
    pub started_at: Timestamp,
    /// Time at which the last result became terminal.
    pub completed_at: Option<Timestamp>,
    /// Time from queueing to completion, milliseconds; null before.
    pub duration_ms: Option<i64>,
    /// Name of the API key that queued it, or the beginning of its text where it has no name; null: not by a key.
    pub created_by: Option<String>,
    /// Base seed of the run.
    pub seed: Option<i64>,
    /// Text on what came of it; null before completion.
    pub summary: Option<String>,
    /// Labels of its results, each once.
    pub tags: Vec<String>,
}

/// A result as far as lists show it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ResultChange {
    /// Id of the result.
    pub id: i64,
    /// Id of its Digital Human; null when it was deleted.
    pub digital_human_id: Option<i64>,
    /// Name of its Digital Human.
    pub digital_human_name: Option<String>,
    /// Repetition of the Digital Human in its run, from 1.
    pub repetition: i64,
    /// State of the result.
    pub status: ResultStatus,
    /// Reason why it waits; null when it does not.
    pub queue_reason: Option<QueueReason>,
    /// Reason why it waits, in words.
    pub queue_reason_text: Option<String>,
    /// Verdict of the result.
    pub outcome: Option<Outcome>,
    /// Word of the verdict on the call; null until its state is terminal.
    pub verdict: Option<VerdictWord>,
    /// Code of what went wrong.
    pub error_code: Option<ErrorCode>,
    /// Text on what went wrong, or the reason of the verdict.
    pub reason: Option<String>,
    /// Side that has to act.
    pub error_owner: Option<Owner>,
    /// Agent's latency of each turn, seconds.
    pub latency: Option<Vec<f64>>,
    /// Number of interruptions by the agent.
    pub agent_interruption_count: Option<Value>,
    /// Number of interruptions by the Digital Human.
    pub customer_interruption_count: Option<Value>,
    /// False: times of this result are not to be relied on; null: not known.
    pub trusted: Option<bool>,
    /// True when a person has changed the evaluation.
    pub human_edited: bool,
    /// Length of the conversation in milliseconds.
    pub duration_ms: Option<i64>,
    /// Time at which the call was connected.
    pub start_time: Option<Timestamp>,
    /// Time of the change.
    pub updated_at: Timestamp,
}

/// The changes of one run since a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct RunChanges {
    /// The run as it is now.
    pub run: ListedRun,
    /// Results that have changed, in the order of their ids.
    pub results: Vec<ResultChange>,
}

/// Names of rows that a list refers to.
#[derive(Default)]
struct Names {
    agents: BTreeMap<i64, Option<String>>,
    simulations: BTreeMap<i64, Option<SimulationSpec>>,
    keys: Option<HashMap<Uuid, String>>,
}

impl Runs {
    /// Runs of all simulations, newest first.
    pub async fn run_page(&self, caller: &Caller, query: RunQuery) -> Result<RunPage> {
        let limit = query.limit.max(1);
        let filter = RunFilter {
            agent_id: query.agent_id,
            simulation_id: query.simulation_id,
            status: query.status,
            tag: query.tag,
            since_ms: query.since.map(|since| since.0),
            before: query.cursor,
        };
        let mut db = self.store.org(&caller.organization).read().await?;
        let wanted = query.q.as_deref().map(str::to_lowercase).filter(|text| !text.is_empty());
        let is_wanted = |run: &ListedRun| {
            query.outcome.is_none_or(|outcome| run.outcome == Some(outcome))
                && wanted.as_deref().is_none_or(|text| run.mentions(text))
        };
        let is_all = query.outcome.is_none() && wanted.is_none();
        let (mut filter, mut found, mut looked) = (filter, Vec::new(), 0);
        // Verdict and names are no columns: runs are looked through, the newest first.
        loop {
            let batch = if is_all { limit + 1 } else { LOOKED_AT };
            let mut runs = db.run_list(&filter, batch).await?;
            let has_more = runs.len() as i64 == batch;
            if is_all {
                runs.truncate(limit as usize);
            }
            looked += runs.len();
            let last = runs.last().map(|run| run.id);
            found.extend(list(&mut db, runs).await?.into_iter().filter(is_wanted));
            filter.before = last;
            let is_full = found.len() as i64 > limit;
            if is_full || !has_more || is_all || looked >= MOST_LOOKED_AT {
                found.truncate(limit as usize);
                let cursor = if is_full { found.last().map(|run| run.id) } else { last.filter(|_| has_more) };
                return Ok(RunPage { simulation_runs: found, next_cursor: cursor.map(|id| id.to_string()) });
            }
        }
    }

    /// Returns one run, and its results that were changed at `since_ms` or later.
    pub async fn run_changes(&self, caller: &Caller, run_id: i64, since_ms: i64) -> Result<RunChanges> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let run = db.get::<RunDoc>(run_id).await?;
        let run = list(&mut db, vec![run]).await?.remove(0);
        let mut names = BTreeMap::new();
        let mut results = Vec::new();
        let rows = db.results_changed(run_id, since_ms).await?;
        let reasons = self.conversations.queue_reasons(&mut db, &rows).await?;
        for row in rows {
            let queue_reason = reasons.get(&row.id).copied();
            let queue_reason_text = queue_reason.map(|reason| self.conversations.queue_text(reason));
            let name = match row.doc.body.digital_human_id {
                None => None,
                Some(id) => {
                    if let std::collections::btree_map::Entry::Vacant(entry) = names.entry(id) {
                        entry.insert(db.find::<DigitalHumanSpec>(id).await?.and_then(|human| human.doc.name));
                    }
                    names[&id].clone()
                }
            };
            results.push(ResultChange { queue_reason, queue_reason_text, ..change(row, name) });
        }
        Ok(RunChanges { run, results })
    }

    /// Gives a run a name, in the place of the one that it has; an empty one takes it away. Returns the run.
    pub async fn name_run(&self, caller: &Caller, run_id: i64, patch: &RunPatch) -> Result<ListedRun> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut run = db.get::<RunDoc>(run_id).await?;
        run.doc.name = Some(patch.name.trim().to_owned()).filter(|name| !name.is_empty());
        db.update(run_id, &run.doc, self.clock.now_ms(), Some(caller.author())).await?;
        let named = list(&mut db, vec![run]).await?.remove(0);
        db.commit().await?;
        Ok(named)
    }

    /// Returns a watch that changes with every stored change of a result's state in this process; `None`: no calls are
    /// made here.
    pub fn any_change(&self) -> Option<watch::Receiver<u64>> {
        self.live.any_change()
    }
}

/// Fills in counters, latencies and names of runs.
pub(super) async fn list(db: &mut Session, runs: Vec<Row<RunDoc>>) -> Result<Vec<ListedRun>> {
    let ids: Vec<i64> = runs.iter().map(|run| run.id).collect();
    let (tallies, latencies) = (db.tallies_of(&ids).await?, db.latencies_of(&ids).await?);
    let mut tags = db.tags_of(&ids).await?;
    let (mut names, mut listed) = (Names::default(), Vec::with_capacity(runs.len()));
    for run in runs {
        let counters = tallies.get(&run.id).copied().unwrap_or_default().counters;
        let latency = latencies.get(&run.id).map(Vec::as_slice).unwrap_or_default();
        let simulation = names.simulation(db, run.doc.simulation_id).await?;
        let agent_name = names.agent(db, run.doc.agent_id).await?;
        let created_by = names.key(db, run.doc.created_by).await?;
        listed.push(ListedRun {
            id: run.id,
            name: run.doc.name.clone(),
            agent_id: run.doc.agent_id,
            agent_name,
            simulation_id: run.doc.simulation_id,
            simulation_name: simulation.as_ref().and_then(|simulation| simulation.name.clone()),
            status: run.doc.status,
            outcome: simulation.and_then(|simulation| verdict(&run.doc, &counters, &simulation)),
            counters,
            p50_agent_latency: percentile(latency, 50.0),
            p95_agent_latency: percentile(latency, 95.0),
            started_at: Timestamp(run.created_ms),
            completed_at: run.doc.completed_at,
            duration_ms: run.doc.completed_at.map(|at| (at.0 - run.created_ms).max(0)),
            created_by,
            seed: Some(run.doc.seed),
            summary: run.doc.summary,
            tags: tags.remove(&run.id).unwrap_or_default().into_iter().collect(),
        });
    }
    Ok(listed)
}

impl ListedRun {
    /// True if one of its texts contains this one, which is in lower case.
    fn mentions(&self, text: &str) -> bool {
        let texts = [&self.name, &self.agent_name, &self.simulation_name, &self.created_by, &self.summary];
        let has = |of: &String| of.to_lowercase().contains(text);
        self.id.to_string() == text || texts.into_iter().flatten().any(has) || self.tags.iter().any(has)
    }
}

impl Names {
    async fn agent(&mut self, db: &mut Session, id: i64) -> Result<Option<String>> {
        if let Some(name) = self.agents.get(&id) {
            return Ok(name.clone());
        }
        let name = db.find::<AgentDoc>(id).await?.map(|agent| agent.doc.spec.name);
        self.agents.insert(id, name.clone());
        Ok(name)
    }

    async fn simulation(&mut self, db: &mut Session, id: i64) -> Result<Option<SimulationSpec>> {
        if let Some(simulation) = self.simulations.get(&id) {
            return Ok(simulation.clone());
        }
        let found = db.find::<SimulationSpec>(id).await?;
        let named = found.map(|row| SimulationSpec { name: Some(name_of(&row)), ..row.doc });
        self.simulations.insert(id, named.clone());
        Ok(named)
    }

    async fn key(&mut self, db: &mut Session, id: Option<Uuid>) -> Result<Option<String>> {
        let Some(id) = id.filter(|id| !id.is_nil()) else { return Ok(None) };
        if self.keys.is_none() {
            self.keys = Some(authors(db).await?.into_iter().map(|author| (author.id, author.name)).collect());
        }
        Ok(self.keys.as_ref().and_then(|keys| keys.get(&id).cloned()))
    }
}

fn change(row: Row<ResultDoc>, digital_human_name: Option<String>) -> ResultChange {
    let (updated_at, repetition, body) = (Timestamp(row.updated_ms), row.doc.repetition + 1, row.doc.body);
    let evaluation = body.evaluations.first();
    let judged = evaluation.and_then(|evaluation| {
        let texts = [&evaluation.human_goal_reasoning, &evaluation.goal_reasoning, &evaluation.not_evaluated_reason];
        texts.into_iter().flatten().next().cloned()
    });
    let result_verdict = body.verdict.as_ref().and_then(|verdict| verdict.reason.clone());
    ResultChange {
        id: row.id,
        digital_human_id: body.digital_human_id,
        digital_human_name,
        repetition,
        status: body.status,
        queue_reason: None,
        queue_reason_text: None,
        outcome: body.outcome,
        verdict: body.word(),
        reason: result_verdict.or(body.error_message.clone()).or(judged),
        error_code: body.error_code.clone(),
        error_owner: body.error_owner,
        agent_interruption_count: body.metric("agent_interruption_count").cloned(),
        customer_interruption_count: body.metric("customer_interruption_count").cloned(),
        trusted: body.engine_quality.as_ref().map(|quality| quality.trusted),
        human_edited: evaluation.is_some_and(|evaluation| evaluation.human_edited),
        latency: body.latency,
        duration_ms: body.duration_ms,
        start_time: body.start_time,
        updated_at,
    }
}
