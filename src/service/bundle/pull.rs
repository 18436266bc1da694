//! The declarative pull: what is stored as a bundle that can be pushed. Pushed unchanged it changes nothing.

use std::collections::BTreeSet;

use ringer_base::clock;
use ringer_base::error::{Error, Result};
use ringer_model::Object;
use ringer_model::agent::{AgentDoc, AgentSpec};
use ringer_model::agent_version::LATEST;
use ringer_model::api_key::Scope;
use ringer_model::bundle::{Bundle, RootType};
use ringer_model::custom_metric::CustomMetricSpec;
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::folder::FolderSpec;
use ringer_model::run::{QueueAnswer, QueueRequest, RunSettings};
use ringer_model::simulation::SimulationSpec;
use ringer_store::{Metrics, Resource, Row, Session};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::Bundles;
use super::label_colours::{LABEL_COLOURS, colours_of};
use crate::Caller;
use crate::humans::owned;
use crate::library::versions::versions_of;

/// Ids of the rows that a bundle contains.
#[derive(Default)]
struct Members {
    agents: BTreeSet<i64>,
    simulations: BTreeSet<i64>,
    humans: BTreeSet<i64>,
    metrics: BTreeSet<Uuid>,
}

impl Bundles {
    /// Returns the simulations that hang on a root with all that hangs on them. Stable identifiers that are missing are
    /// made.
    pub async fn pull(&self, caller: &Caller, root_type: RootType, root_id: &str) -> Result<Bundle> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let members = members(&mut db, root_type, root_id).await?;
        let mut bundle = Bundle::default();
        for id in members.agents {
            bundle.agents.push(self.pulled_agent(&mut db, caller, id).await?);
        }
        let mut codes = Vec::new();
        for id in members.simulations {
            let row = db.get::<SimulationSpec>(id).await?;
            let (code, mut fields) = self.ensure_code(&mut db, caller, row, |doc| &mut doc.svc_as_code_id).await?;
            let agent_id = fields.shift_remove("agent_id");
            let agent_id = agent_id.as_ref().and_then(Value::as_str).and_then(|id| id.parse().ok());
            let agent = db.get::<AgentDoc>(agent_id.ok_or(Error::NotFound("Agent"))?).await?;
            fields.insert("agent".into(), agent.doc.spec.svc_as_code_id.map(|code| code.to_string()).into());
            // The selection follows from the metrics of the bundle.
            fields.shift_remove("selected_custom_metrics");
            // A run is of this server alone.
            fields.shift_remove("baseline_run_id");
            codes.push((id, code));
            bundle.simulations.push(fields);
        }
        for id in members.humans {
            let row = db.get::<DigitalHumanSpec>(id).await?;
            let (_, mut fields) = self.ensure_code(&mut db, caller, row, |doc| &mut doc.svc_as_code_id).await?;
            let linked = db.simulations_of(id).await?;
            let linked = codes.iter().filter(|(id, _)| linked.contains(id)).map(|(_, code)| code.to_string());
            fields.insert("simulations".into(), linked.collect());
            bundle.digital_humans.push(fields);
        }
        for id in members.metrics {
            let mut row = db.get::<CustomMetricSpec>(id).await?;
            if row.doc.svc_as_code_id.is_none() {
                row.doc.svc_as_code_id = Some(clock::new_id().to_string());
                db.update(id, &row.doc, self.clock.now_ms(), Some(caller.author())).await?;
            }
            let mut fields = object(&row.doc)?;
            fields.shift_remove("agent_ids");
            bundle.custom_metrics.push(fields);
        }
        db.commit().await?;
        Ok(bundle)
    }

    /// Queues a run of the simulation with a stable identifier.
    pub async fn run_by_code(&self, caller: &Caller, code: Uuid, settings: RunSettings) -> Result<QueueAnswer> {
        self.runs
            .queue_named_run(caller, QueueRequest { simulation_id: None, svc_as_code_id: Some(code), settings })
            .await
    }

    async fn pulled_agent(&self, db: &mut Session, caller: &Caller, id: i64) -> Result<Object> {
        let mut row = db.get::<AgentDoc>(id).await?;
        if row.doc.spec.svc_as_code_id.is_none() {
            row.doc.spec.svc_as_code_id = Some(clock::new_id());
            db.update(id, &row.doc, self.clock.now_ms(), Some(caller.author())).await?;
        }
        let mut fields = object(&row.doc.spec)?;
        let latest = versions_of(db, id).await?.into_iter().find(|version| version.doc.holds(LATEST));
        fields.insert("system_prompt".into(), latest.map(|version| version.doc.prompt_text).unwrap_or_default().into());
        let folder = match row.doc.folder_id {
            Some(id) => Some(db.get::<FolderSpec>(id).await?.doc.name),
            None => None,
        };
        fields.insert("folder".into(), folder.into());
        if let Some(colours) = colours_of(db, id).await? {
            fields.insert(LABEL_COLOURS.into(), colours.into());
        }
        if !caller.scope.covers(Scope::Write) {
            // Left out and not null: pushed back, null would clear them.
            AgentSpec::SECRETS.iter().for_each(|secret| {
                fields.shift_remove(*secret);
            });
        }
        Ok(fields)
    }

    /// Returns the stable identifier of a row, made when it has none, and its fields.
    async fn ensure_code<R: Resource>(
        &self,
        db: &mut Session,
        caller: &Caller,
        mut row: Row<R>,
        code_of: impl Fn(&mut R) -> &mut Option<Uuid>,
    ) -> Result<(Uuid, Object)> {
        let code = match code_of(&mut row.doc) {
            Some(code) => *code,
            missing => {
                let code = *missing.insert(clock::new_id());
                db.update(row.id, &row.doc, self.clock.now_ms(), Some(caller.author())).await?;
                code
            }
        };
        Ok((code, object(&row.doc)?))
    }
}

async fn members(db: &mut Session, root_type: RootType, root_id: &str) -> Result<Members> {
    let mut members = Members::default();
    match root_type {
        RootType::Simulation => {
            members.simulations.insert(row_of::<SimulationSpec>(db, root_id).await?);
        }
        RootType::Agent => {
            let id = row_of::<AgentDoc>(db, root_id).await?;
            members.agents.insert(id);
            members.simulations.extend(db.by::<SimulationSpec>("agent_id", id).await?.iter().map(|row| row.id));
            if members.simulations.is_empty() {
                members.metrics.extend(db.metrics(Metrics::OfAgent(id), i64::MAX, 0).await?.iter().map(|row| row.id));
            }
        }
        RootType::DigitalHuman => {
            let id = match root_id.parse() {
                Ok(id) => owned(db, id).await?.id,
                Err(_) => row_of::<DigitalHumanSpec>(db, root_id).await?,
            };
            members.humans.insert(id);
            members.simulations.extend(db.simulations_of(id).await?);
        }
        RootType::CustomMetric => {
            let metric = metric_of(db, root_id).await?;
            members.metrics.insert(metric.id);
            members.agents.extend(&metric.doc.agent_ids);
            for row in db.all::<SimulationSpec>().await? {
                if metrics_of_simulation(db, &row.doc).await?.contains(&metric.id) {
                    members.simulations.insert(row.id);
                }
            }
        }
    }
    for id in members.simulations.clone() {
        let simulation = db.get::<SimulationSpec>(id).await?.doc;
        members.agents.extend(simulation.agent_id.get());
        members.humans.extend(db.digital_humans_of(id).await?.iter().map(|row| row.id));
        members.metrics.extend(metrics_of_simulation(db, &simulation).await?);
    }
    Ok(members)
}

/// Returns the metrics that judge a simulation's results.
async fn metrics_of_simulation(db: &mut Session, simulation: &SimulationSpec) -> Result<Vec<Uuid>> {
    match (&simulation.selected_custom_metrics, simulation.agent_id.get()) {
        (Some(selected), _) => Ok(selected.clone()),
        (None, Some(id)) => {
            Ok(db.metrics(Metrics::OfAgent(id), i64::MAX, 0).await?.into_iter().map(|row| row.id).collect())
        }
        (None, None) => Ok(vec![]),
    }
}

/// Returns the row with an integer id or a stable identifier.
async fn row_of<R: Resource<Id = i64>>(db: &mut Session, id: &str) -> Result<i64> {
    let row: Option<Row<R>> = match (id.parse(), Uuid::parse_str(id)) {
        (Ok(id), _) => db.find(id).await?,
        (_, Ok(code)) => db.by("code_id", code).await?.pop(),
        _ => None,
    };
    row.map(|row| row.id).ok_or(Error::NotFound(R::WORD))
}

/// Returns the metric with an id or a stable identifier.
async fn metric_of(db: &mut Session, id: &str) -> Result<Row<CustomMetricSpec>> {
    let uuid = Uuid::parse_str(id).ok();
    let found = match uuid {
        Some(id) => db.find::<CustomMetricSpec>(id).await?,
        None => None,
    };
    let found = match found {
        Some(row) => Some(row),
        None => {
            let code = uuid.map_or_else(|| id.to_owned(), |uuid| uuid.to_string());
            db.by::<CustomMetricSpec>("code_id", code).await?.pop()
        }
    };
    db.metric(found.ok_or(Error::NotFound("Custom metric"))?.id).await
}

fn object<T: Serialize>(doc: &T) -> Result<Object> {
    match serde_json::to_value(doc).map_err(Error::internal)? {
        Value::Object(object) => Ok(object),
        _ => Err(Error::internal("a document is no object")),
    }
}
