//! Scenarios: graphs that are checked, linked to agents, and kept in step with the Digital Humans made from their
//! paths.

mod graph;
pub(crate) mod paths;

use ringer_base::error::{Error, Result};
use ringer_model::Object;
use ringer_model::agent::{AgentDoc, AgentMode};
use ringer_model::customer::TraitDoc;
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::scenario::{Definition, GivenDefinition, ScenarioDoc, ScenarioRecord, ScenarioSpec, SyncSummary};
use ringer_model::time::Timestamp;
use ringer_store::{Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use self::graph::Graph;
pub(crate) use self::graph::Path;
use super::Humans;
use crate::Caller;

/// Characters of a name.
const MAX_NAME: usize = 255;

/// Response to deleting a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScenarioDeleted {
    /// Confirmation in words, for display.
    pub message: String,
    /// Id of the deleted scenario.
    pub deleted_workflow_id: Uuid,
}

/// A list of scenarios.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScenarioList {
    /// Scenarios of the organization, newest first.
    pub scenarios: Vec<ScenarioRecord>,
    /// Same list as `scenarios`.
    pub workflows: Vec<ScenarioRecord>,
    /// Number of scenarios in the list.
    pub total_count: i64,
}

/// Response to checking a graph.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Validated {
    /// Always true: a wrong graph is an error.
    pub success: bool,
    /// Likely mistakes that do not keep the scenario from working.
    pub warnings: Vec<String>,
}

impl Humans {
    /// Creates a scenario after checking its graph and agents.
    pub async fn create_scenario(&self, caller: &Caller, spec: ScenarioSpec) -> Result<ScenarioRecord> {
        let ScenarioSpec { name, definition, agent_ids, description } = spec;
        let definition = graph_of(definition)?;
        Graph::parse(&definition)?;
        let mut db = self.store.org(&caller.organization).write().await?;
        let agents = check_agents(&mut db, agent_ids).await?;
        let doc = ScenarioDoc { name, description, definition };
        let id = db.insert(&doc, self.clock.now_ms(), Some(caller.author())).await?;
        db.link_scenario(id, &agents).await?;
        let row = db.get(id).await?;
        let record = record_of(&mut db, row).await?;
        db.answer(record).await
    }

    /// Returns all scenarios, or those of one agent, newest first.
    pub async fn scenarios(&self, caller: &Caller, agent_id: Option<i64>) -> Result<ScenarioList> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let rows = match agent_id {
            Some(agent_id) => {
                db.get::<AgentDoc>(agent_id).await?;
                db.scenarios_of(agent_id).await?
            }
            None => db.all().await?,
        };
        let mut scenarios = Vec::with_capacity(rows.len());
        for row in rows {
            scenarios.push(record_of(&mut db, row).await?);
        }
        Ok(ScenarioList { total_count: scenarios.len() as i64, workflows: scenarios.clone(), scenarios })
    }

    /// Returns one scenario of the caller's organization.
    pub async fn scenario(&self, caller: &Caller, id: &str) -> Result<ScenarioRecord> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let row = db.get(id_of(id)?).await?;
        record_of(&mut db, row).await
    }

    /// Changes the given fields: links are replaced as a whole, and so is the graph, whose Digital Humans follow.
    pub async fn update_scenario(&self, caller: &Caller, id: &str, patch: Object) -> Result<ScenarioRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let row = db.get::<ScenarioDoc>(id_of(id)?).await?;
        let (id, mut doc) = (row.id, row.doc);
        let old_name = doc.name.clone();
        let given = |key: &str| patch.get(key).filter(|value| !value.is_null()).cloned();
        if let Some(Value::String(name)) = given("name") {
            doc.name = name;
        }
        if let Some(Value::String(description)) = given("description") {
            doc.description = Some(description);
        }
        let mut graph = None;
        if let Some(definition) = given("definition") {
            doc.definition = graph_of(serde_json::from_value(definition).map_err(Error::internal)?)?;
            graph = Some(Graph::parse(&doc.definition)?);
        }
        if let Some(agent_ids) = patch.get("agent_ids") {
            let agent_ids: Option<Vec<i64>> = serde_json::from_value(agent_ids.clone()).map_err(Error::internal)?;
            let agents = check_agents(&mut db, agent_ids.unwrap_or_default()).await?;
            db.link_scenario(id, &agents).await?;
        }
        db.update(id, &doc, self.clock.now_ms(), Some(caller.author())).await?;
        let summary = match graph {
            Some(graph) => Some(self.follow(&mut db, caller, id, &old_name, &doc.name, &graph).await?),
            None if doc.name != old_name => {
                self.rename_humans(&mut db, caller, id, &old_name, &doc).await?;
                None
            }
            None => None,
        };
        let row = db.get(id).await?;
        let record = record_of(&mut db, row).await?;
        db.commit().await?;
        Ok(ScenarioRecord { dh_sync_summary: summary, ..record })
    }

    /// Deletes a scenario; its Digital Humans stay.
    pub async fn delete_scenario(&self, caller: &Caller, id: &str) -> Result<ScenarioDeleted> {
        let id = id_of(id)?;
        let mut db = self.store.org(&caller.organization).write().await?;
        db.get::<ScenarioDoc>(id).await?;
        db.delete::<ScenarioDoc>(id).await?;
        db.commit().await?;
        Ok(ScenarioDeleted { message: "Workflow deleted successfully".into(), deleted_workflow_id: id })
    }

    /// Makes a copy that no agent is linked to.
    pub async fn duplicate_scenario(&self, caller: &Caller, id: &str, name: Option<String>) -> Result<ScenarioRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut doc = db.get::<ScenarioDoc>(id_of(id)?).await?.doc;
        doc.name = name.unwrap_or_else(|| name_copy(&doc.name));
        let id = db.insert(&doc, self.clock.now_ms(), Some(caller.author())).await?;
        let row = db.get(id).await?;
        let record = record_of(&mut db, row).await?;
        db.answer(record).await
    }

    /// Checks a graph that is given as such or as JSON text.
    pub fn validate_definition(
        &self,
        definition: Option<GivenDefinition>,
        json_text: Option<&str>,
    ) -> Result<Validated> {
        let definition = match (definition, json_text) {
            (Some(definition), _) => graph_of(definition)?,
            (None, Some(text)) => read_definition(text)?,
            (None, None) => return Err(Error::Refused("definition or json_text is required".into())),
        };
        let (_, cut) = Graph::parse(&definition)?.paths();
        Ok(Validated { success: true, warnings: paths::cut_warning(cut) })
    }

    /// Returns the name and the paths of a scenario of this organization.
    pub(crate) async fn scenario_paths(&self, db: &mut Session, id: &str) -> Result<(Uuid, String, Vec<Path>)> {
        let row = db.get::<ScenarioDoc>(id_of(id)?).await?;
        let (paths, _) = Graph::parse(&row.doc.definition)?.paths();
        Ok((row.id, row.doc.name, paths))
    }

    /// Brings what the Digital Humans of a scenario are called, and what they are told of its paths, in step with its
    /// new name.
    async fn rename_humans(
        &self,
        db: &mut Session,
        caller: &Caller,
        id: Uuid,
        old_name: &str,
        doc: &ScenarioDoc,
    ) -> Result<()> {
        let (paths, _) = Graph::parse(&doc.definition)?.paths();
        for human in db.by::<DigitalHumanSpec>("scenario_id", id).await? {
            let mut new = human.doc.clone();
            paths::rename(&mut new, (old_name, &doc.name), None);
            let is_its = |path: &&Path| Some(paths::node_ids(path)) == human.doc.tested_path;
            let at = paths.iter().enumerate().find(|(_, path)| is_its(path)).filter(|_| human.doc.is_workflow());
            if let Some((index, path)) = at {
                paths::word(&mut new, &doc.name, index, path);
            }
            if new != human.doc {
                db.update(human.id, &new, self.clock.now_ms(), Some(caller.author())).await?;
            }
        }
        Ok(())
    }

    /// Brings the Digital Humans of a scenario in step with its new graph. Only a scenario that has some gets more.
    async fn follow(
        &self,
        db: &mut Session,
        caller: &Caller,
        id: Uuid,
        old_name: &str,
        name: &str,
        graph: &Graph,
    ) -> Result<SyncSummary> {
        let mut humans = db.by::<DigitalHumanSpec>("scenario_id", id).await?;
        humans.reverse();
        let (paths, _) = graph.paths();
        let tested: Vec<Vec<String>> = paths.iter().map(paths::node_ids).collect();
        let mut summary = SyncSummary::default();
        let mut covered = vec![false; paths.len()];
        let mut simulations = Vec::new();
        for human in &humans {
            for simulation in db.simulations_of(human.id).await? {
                if !simulations.contains(&simulation) {
                    simulations.push(simulation);
                }
            }
            let mut new = human.doc.clone();
            let place = tested.iter().position(|path| Some(path) == human.doc.tested_path.as_ref());
            match place {
                Some(index) => {
                    covered[index] = true;
                    paths::rename(&mut new, (old_name, name), Some(index));
                    paths::lay(&mut new, Some(id), name, index, &paths[index]);
                }
                None => {
                    paths::rename(&mut new, (old_name, name), None);
                    new.tag = Some(paths::STALE.into());
                }
            }
            match (new == human.doc, place) {
                (true, _) => summary.skipped += 1,
                (false, Some(_)) => summary.updated += 1,
                (false, None) => summary.marked_stale += 1,
            }
            if new != human.doc {
                db.update(human.id, &new, self.clock.now_ms(), Some(caller.author())).await?;
            }
        }
        let Some(pattern) = humans.last().map(|row| &row.doc) else { return Ok(summary) };
        for index in (0..paths.len()).filter(|index| !covered[*index]) {
            let mut human = DigitalHumanSpec {
                name: Some(paths::name(name, index)),
                language: pattern.language,
                traits: pattern.traits.clone(),
                num_runs: pattern.num_runs,
                ..DigitalHumanSpec::default()
            };
            paths::lay(&mut human, Some(id), name, index, &paths[index]);
            self.make_human(db, caller, human, &simulations).await?;
            summary.created += 1;
        }
        Ok(summary)
    }
}

/// Returns the agents, each once.
async fn check_agents(db: &mut Session, agent_ids: Vec<i64>) -> Result<Vec<i64>> {
    let mut agents: Vec<i64> = Vec::with_capacity(agent_ids.len());
    let mut missing = None;
    for id in agent_ids {
        match db.find::<AgentDoc>(id).await? {
            Some(row) if row.doc.spec.mode != AgentMode::Voice => {
                return Err(Error::Refused("Scenarios can be linked to VOICE agents only".into()));
            }
            Some(_) if agents.contains(&id) => {}
            Some(_) => agents.push(id),
            None => missing = missing.or(Some(id)),
        }
    }
    match missing {
        Some(id) => Err(Error::Refused(format!("Agent {id} not found"))),
        None => Ok(agents),
    }
}

/// Returns the id of a scenario; a text that is no uuid names none.
fn id_of(text: &str) -> Result<Uuid> {
    Uuid::parse_str(text).map_err(|_| Error::NotFound("Scenario"))
}

fn name_copy(name: &str) -> String {
    const COPY: &str = " (copy)";
    let kept: String = name.chars().take(MAX_NAME - COPY.len()).collect();
    kept + COPY
}

/// Returns the paths of a graph that keeps all rules.
pub(crate) fn paths_of(definition: &Definition) -> Result<Vec<Path>> {
    Ok(Graph::parse(definition)?.paths().0)
}

/// Returns the number of paths of a graph that keeps all rules.
pub(crate) fn check_definition(definition: &Definition) -> Result<usize> {
    Ok(Graph::parse(definition)?.paths().0.len())
}

/// Returns a graph in JSON text.
fn read_definition(text: &str) -> Result<Definition> {
    let json: Value =
        serde_json::from_str(text).map_err(|error| Error::Refused(format!("json_text is not valid JSON: {error}")))?;
    match json {
        Value::Object(definition) => graph_of(GivenDefinition(definition)),
        _ => Err(shapeless()),
    }
}

fn graph_of(given: GivenDefinition) -> Result<Definition> {
    given.graph().ok_or_else(shapeless)
}

fn shapeless() -> Error {
    Error::Refused("definition must have nodes and edges arrays".into())
}

/// Returns the record of a scenario with its links and its present warnings.
async fn record_of(db: &mut Session, row: Row<ScenarioDoc>) -> Result<ScenarioRecord> {
    let agent_ids = db.agents_of_scenario(row.id).await?;
    let graph = Graph::parse(&row.doc.definition)?;
    let mut known = Vec::with_capacity(agent_ids.len());
    for agent in &agent_ids {
        let traits = db.by::<TraitDoc>("agent_id", *agent).await?;
        known.push((*agent, traits.into_iter().map(|row| row.doc.name).collect()));
    }
    let warnings = if agent_ids.is_empty() { Vec::new() } else { paths::warnings(&graph, &known) };
    let ScenarioDoc { name, description, definition } = row.doc;
    Ok(ScenarioRecord {
        id: row.id,
        name,
        description,
        definition,
        agent_ids,
        organization_id: db.organization().to_owned(),
        created_at: Timestamp(row.created_ms),
        dh_sync_summary: None,
        warnings,
    })
}
