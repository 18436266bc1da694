//! Simulations and the Digital Humans that are part of them.

use ringer_base::error::{Error, Result};
use ringer_model::Object;
use ringer_model::agent::AgentDoc;
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::run::RunDoc;
use ringer_model::simulation::{
    DigitalHumansSettings, SimulationRecord, SimulationSpec, SimulationSummary, SimulationType,
};
use ringer_model::simulation_body::{NewSimulation, SimulationChange};
use ringer_model::time::Timestamp;
use ringer_store::{Owner, Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Library;
use super::field_rules::{self, Broken, apply_patch};
use super::metrics::check_selected;
use super::versions::version_of;
use crate::Caller;
use crate::library::human_rules::always_on::check_all_always_on;
use crate::library::human_rules::settings::mend_settings;

/// Journeys that one simulation may hold.
const MAX_JOURNEYS: usize = 200;

/// Response to creating a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SimulationAdded {
    /// Id of the new simulation.
    pub simulation_id: i64,
    /// Always the text `200`.
    pub status: String,
}

/// Response to deleting a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SimulationDeleted {
    /// Confirmation in words, for display.
    pub message: String,
    /// Id of the deleted simulation.
    pub deleted_simulation_id: i64,
}

/// A sentence for a person.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Message {
    /// Sentence in English, for display.
    pub message: String,
}

impl Library {
    /// Makes a simulation from the body of a request.
    pub async fn create_simulation_of(&self, caller: &Caller, body: NewSimulation) -> Result<SimulationAdded> {
        let fields = body.into_fields().map_err(|why| Error::Refused(why.to_owned()))?;
        let spec = serde_json::from_value(Value::Object(fields)).map_err(Error::internal)?;
        self.create_simulation(caller, spec).await
    }

    /// Makes a simulation of an agent.
    pub async fn create_simulation(&self, caller: &Caller, spec: SimulationSpec) -> Result<SimulationAdded> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let simulation_id = self.insert_simulation(&mut db, caller, spec).await?;
        db.answer(SimulationAdded { simulation_id, status: "200".into() }).await
    }

    /// Checks and inserts a simulation.
    pub(crate) async fn insert_simulation(
        &self,
        db: &mut Session,
        caller: &Caller,
        mut spec: SimulationSpec,
    ) -> Result<i64> {
        check_simulation(db, &mut spec, None).await?;
        check_settings(&mut spec.digital_humans_settings)?;
        db.insert(&spec, self.clock.now_ms(), Some(caller.author())).await
    }

    /// Returns one simulation of the caller's organization.
    pub async fn simulation(&self, caller: &Caller, simulation_id: i64) -> Result<SimulationRecord> {
        let row = self.store.org(&caller.organization).read().await?.get(simulation_id).await?;
        Ok(record_of(row))
    }

    /// Changes the fields that the body of a request gives.
    pub async fn change_simulation(
        &self,
        caller: &Caller,
        simulation_id: i64,
        body: SimulationChange,
    ) -> Result<SimulationRecord> {
        let fields = body.into_fields().map_err(|why| Error::Refused(why.to_owned()))?;
        self.update_simulation(caller, simulation_id, fields).await
    }

    /// Changes the given fields.
    pub async fn update_simulation(
        &self,
        caller: &Caller,
        simulation_id: i64,
        patch: Object,
    ) -> Result<SimulationRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let stored = db.get::<SimulationSpec>(simulation_id).await?;
        self.amend_simulation(&mut db, caller, &stored, patch).await?;
        let row = db.get::<SimulationSpec>(simulation_id).await?;
        if stored.doc.always_on && !row.doc.always_on {
            let humans = db.digital_humans_of(simulation_id).await?;
            check_all_always_on(&mut db, &humans).await?;
        }
        db.commit().await?;
        Ok(record_of(row))
    }

    /// Lays the given fields over a simulation, checks what comes out and stores it when it differs; true then.
    pub(crate) async fn amend_simulation(
        &self,
        db: &mut Session,
        caller: &Caller,
        stored: &Row<SimulationSpec>,
        patch: Object,
    ) -> Result<bool> {
        let mut spec = lay_patch(&stored.doc, patch)?;
        check_simulation(db, &mut spec, Some(stored)).await?;
        if spec.digital_humans_settings != stored.doc.digital_humans_settings {
            check_settings(&mut spec.digital_humans_settings)?;
        }
        let differs = spec != stored.doc;
        if differs {
            db.update(stored.id, &spec, self.clock.now_ms(), Some(caller.author())).await?;
        }
        Ok(differs)
    }

    /// Deletes a simulation with its runs and results.
    pub async fn delete_simulation(&self, caller: &Caller, simulation_id: i64) -> Result<SimulationDeleted> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.get::<SimulationSpec>(simulation_id).await?;
        if db.has_open_results(Owner::Simulation, simulation_id).await? {
            return Err(Error::Conflict("Simulation has running results".into()));
        }
        let results = db.result_ids(Owner::Simulation, simulation_id).await?;
        let humans = db.digital_humans_of(simulation_id).await?;
        db.delete::<SimulationSpec>(simulation_id).await?;
        self.silence(&mut db, caller, humans).await?;
        db.commit().await?;
        self.settings.remove_result_files(&results).await;
        Ok(SimulationDeleted {
            message: "Simulation deleted successfully".into(),
            deleted_simulation_id: simulation_id,
        })
    }

    /// Returns all simulations, newest first.
    pub async fn simulations(&self, caller: &Caller) -> Result<Vec<SimulationSummary>> {
        let rows = self.store.org(&caller.organization).read().await?.all().await?;
        Ok(rows.into_iter().map(summary).collect())
    }

    /// Returns the simulations of one agent, newest first.
    pub async fn simulations_by_agent(&self, caller: &Caller, agent_id: i64) -> Result<Vec<SimulationSummary>> {
        let mut db = self.store.org(&caller.organization).read().await?;
        db.get::<AgentDoc>(agent_id).await?;
        let rows = db.by("agent_id", agent_id).await?;
        Ok(rows.into_iter().map(summary).collect())
    }

    /// Makes Digital Humans part of a simulation; those that are already stay.
    pub async fn add_digital_humans(&self, caller: &Caller, simulation_id: i64, ids: &[i64]) -> Result<Message> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.get::<SimulationSpec>(simulation_id).await?;
        let humans = humans_of(&mut db, ids).await?;
        let mut added = 0;
        for human in &humans {
            added += u32::from(db.link(simulation_id, human.id, self.clock.now_ms()).await?);
        }
        check_journeys(&mut db, simulation_id).await?;
        check_all_always_on(&mut db, &humans).await?;
        db.answer(Message { message: format!("{added} digital human(s) added") }).await
    }

    /// Takes Digital Humans out of a simulation; those that are not part of it do not matter.
    pub async fn remove_digital_humans(&self, caller: &Caller, simulation_id: i64, ids: &[i64]) -> Result<Message> {
        let mut db = self.store.org(&caller.organization).write().await?;
        db.get::<SimulationSpec>(simulation_id).await?;
        let humans = humans_of(&mut db, ids).await?;
        let mut removed = 0;
        for human in &humans {
            removed += u32::from(db.unlink(simulation_id, human.id).await?);
        }
        self.silence(&mut db, caller, humans).await?;
        db.answer(Message { message: format!("{removed} digital human(s) removed") }).await
    }
}

async fn humans_of(db: &mut Session, ids: &[i64]) -> Result<Vec<Row<DigitalHumanSpec>>> {
    let mut humans = Vec::with_capacity(ids.len());
    for id in ids {
        humans.push(db.get::<DigitalHumanSpec>(*id).await?);
    }
    Ok(humans)
}

/// Returns a simulation with the given fields laid over it.
pub(crate) fn lay_patch(stored: &SimulationSpec, mut patch: Object) -> Result<SimulationSpec> {
    // A lone twin speaks for the pair; without this the stored version would seem to contradict it.
    if let (Some(prompt), false) = (patch.get("prompt_id").cloned(), patch.contains_key("agent_version_id")) {
        patch.insert("agent_version_id".into(), prompt);
    }
    apply_patch(stored, &patch)
}

/// Returns every rule on a simulation's fields that is broken, in their order; those that need other rows are not among
/// them. Settings that are `stored` so are not looked at.
pub(crate) fn broken_rules(spec: &mut SimulationSpec, stored: Option<&SimulationSpec>) -> Vec<Broken> {
    let twins = field_rules::twins(spec.agent_version_id, spec.prompt_id).err().map(Broken::from);
    let fields: Vec<Broken> = twins.into_iter().chain(crossed_thresholds(spec)).collect();
    let given = &mut spec.digital_humans_settings;
    let settings = match stored {
        Some(stored) if stored.digital_humans_settings == *given => vec![],
        _ => mend_settings(given),
    };
    fields.into_iter().chain(settings.into_iter().map(|text| Error::Refused(text).into())).collect()
}

/// Refuses what no Digital Human can be generated with.
fn check_settings(settings: &mut DigitalHumansSettings) -> Result<()> {
    match mend_settings(settings).into_iter().next() {
        Some(text) => Err(Error::Refused(text)),
        None => Ok(()),
    }
}

/// Refuses a simulation that holds too many journeys.
pub(crate) async fn check_journeys(db: &mut Session, simulation_id: i64) -> Result<()> {
    let humans = db.digital_humans_of(simulation_id).await?;
    let journeys = humans.iter().filter(|row| row.doc.has_journey()).count();
    if journeys > MAX_JOURNEYS {
        return Err(Error::Refused(format!("A simulation can hold at most {MAX_JOURNEYS} journeys")));
    }
    Ok(())
}

/// Returns the name that is shown.
pub(crate) fn name_of(row: &Row<SimulationSpec>) -> String {
    row.doc.name.clone().unwrap_or_else(|| format!("Simulation {}", row.id))
}

/// Checks every rule on a simulation's fields; the twins become one. The version has to be there when it or the agent
/// changes.
async fn check_simulation(
    db: &mut Session,
    spec: &mut SimulationSpec,
    stored: Option<&Row<SimulationSpec>>,
) -> Result<()> {
    let agent_id = spec.agent_id.get().ok_or(Error::NotFound("Agent"))?;
    db.get::<AgentDoc>(agent_id).await?;
    spec.agent_version_id = field_rules::twins(spec.agent_version_id, spec.prompt_id.take())?;
    let target = |spec: &SimulationSpec| (spec.agent_id.get(), spec.agent_version_id);
    let is_stored = stored.is_some_and(|stored| target(&stored.doc) == target(spec));
    if let Some(version) = spec.agent_version_id.filter(|_| !is_stored) {
        version_of(db, agent_id, version).await?;
    }
    check_selected(db, spec.selected_custom_metrics.as_deref()).await?;
    let baseline = |spec: &SimulationSpec| spec.baseline_run_id;
    if let Some(run_id) = spec.baseline_run_id.filter(|run| stored.and_then(|row| baseline(&row.doc)) != Some(*run)) {
        let run = db.get::<RunDoc>(run_id).await?;
        if stored.map(|row| row.id) != Some(run.doc.simulation_id) {
            return Err(Error::Refused("baseline_run_id must be a run of this simulation".into()));
        }
    }
    let this = stored.map(|stored| stored.id);
    if let Some(code) = spec.svc_as_code_id
        && db.by::<SimulationSpec>("code_id", code).await?.iter().any(|row| Some(row.id) != this)
    {
        return Err(Error::Conflict("svc_as_code_id is already used".into()));
    }
    crossed_thresholds(spec).next().map_or(Ok(()), |broken| Err(broken.error))
}

/// Pairs of thresholds that are the wrong way round, each told of its first field.
fn crossed_thresholds(spec: &SimulationSpec) -> impl Iterator<Item = Broken> + use<> {
    let pairs = [
        (
            "custom_metrics_failing_threshold",
            spec.custom_metrics_failing_threshold,
            spec.custom_metrics_passing_threshold,
        ),
        ("outcome_failing_threshold", spec.outcome_failing_threshold, spec.outcome_passing_threshold),
    ];
    pairs.into_iter().filter_map(|(field, failing, passing)| {
        let text = "failing threshold must not exceed passing threshold";
        (failing? > passing?).then(|| Broken { field: Some(field), error: Error::Refused(text.into()) })
    })
}

fn record_of(row: Row<SimulationSpec>) -> SimulationRecord {
    let name = name_of(&row);
    let spec = row.doc;
    let kind = match spec.concurrency() {
        Some(_) => SimulationType::MaxConcurrent,
        None => SimulationType::Parallel,
    };
    SimulationRecord {
        id: row.id,
        agent_id: spec.agent_id.get().unwrap_or_default(),
        name,
        kind,
        svc_as_code_id: spec.svc_as_code_id,
        settings: spec.settings(),
        max_concurrent: spec.concurrency(),
        max_turns: spec.max_turns,
        ringing_timeout: spec.ringing_timeout,
        inactivity_timeout_seconds: spec.inactivity_timeout_seconds,
        tags: spec.tags,
        description: spec.description,
        pinned: spec.pinned,
        always_on: spec.always_on,
        created_at: Timestamp(row.created_ms),
        updated_at: Timestamp(row.updated_ms),
        created_by: row.created_by,
        updated_by: row.updated_by,
    }
}

fn summary(row: Row<SimulationSpec>) -> SimulationSummary {
    SimulationSummary {
        id: row.id,
        name: name_of(&row),
        created_at: Timestamp(row.created_ms),
        agent_id: row.doc.agent_id.get().unwrap_or_default(),
        settings: row.doc.settings(),
        selected_custom_metrics: row.doc.selected_custom_metrics.clone().unwrap_or_default(),
    }
}
