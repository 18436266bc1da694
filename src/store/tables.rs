//! Tables of the documents, and the fields that are lifted into columns.
//!
//! Identifiers and folder are indexed where they are not null. Three index pages less are written. SQLite's part of a
//! POST is 18 us instead of 23, and the file a third smaller.

mod judge_cards;
mod metrics;
mod scenarios;
mod schedules;
mod versions;
mod watch;
mod webhooks;

use ringer_model::agent::AgentDoc;
use ringer_model::agent_version::{PRODUCTION, VersionDoc};
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::folder::FolderSpec;
use ringer_model::integration::IntegrationSpec;
use ringer_model::result::ResultDoc;
use ringer_model::review::ReviewDoc;
use ringer_model::run::RunDoc;
use ringer_model::simulation::SimulationSpec;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::db::Cell;
use super::record::Resource;

impl Resource for AgentDoc {
    const TABLE: &'static str = "agents";
    const WORD: &'static str = "Agent";
    const SEALED: bool = true;
    const COLUMNS: &'static [&'static str] = &["code_id", "external_id", "folder_id"];
    type Id = i64;

    fn cells(&self) -> Vec<Cell> {
        vec![self.spec.svc_as_code_id.into(), self.spec.external_agent_id.clone().into(), self.folder_id.into()]
    }
}

impl Resource for VersionDoc {
    const TABLE: &'static str = "agent_versions";
    const WORD: &'static str = "Agent version";
    const COLUMNS: &'static [&'static str] = &["agent_id", "version", "production"];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![self.agent_id.into(), self.version.into(), self.holds(PRODUCTION).into()]
    }
}

impl Resource for FolderSpec {
    const TABLE: &'static str = "folders";
    const WORD: &'static str = "Folder";
    const COLUMNS: &'static [&'static str] = &["name"];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![self.name.as_str().into()]
    }
}

/// Platform credentials; an organization has at most one row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Integrations(pub IntegrationSpec);

impl Resource for Integrations {
    const TABLE: &'static str = "integrations";
    const WORD: &'static str = "Organization";
    const SEALED: bool = true;
    const COLUMNS: &'static [&'static str] = &[];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![]
    }
}

impl Resource for SimulationSpec {
    const TABLE: &'static str = "simulations";
    const WORD: &'static str = "Simulation";
    const COLUMNS: &'static [&'static str] = &["agent_id", "code_id"];
    type Id = i64;

    fn cells(&self) -> Vec<Cell> {
        vec![self.agent_id.get().into(), self.svc_as_code_id.into()]
    }
}

impl Resource for DigitalHumanSpec {
    const TABLE: &'static str = "digital_humans";
    const WORD: &'static str = "Digital human";
    const COLUMNS: &'static [&'static str] = &["code_id", "test_name", "listens_on", "scenario_id", "noise_id"];
    type Id = i64;

    fn cells(&self) -> Vec<Cell> {
        let number = self.listens_on().map(str::to_owned);
        let test_name = self.test_name.clone();
        let (scenario, noise) = (self.workflow_v2_id, self.uploaded_noise());
        vec![self.svc_as_code_id.into(), test_name.into(), number.into(), scenario.into(), noise.into()]
    }
}

impl Resource for RunDoc {
    const TABLE: &'static str = "runs";
    const WORD: &'static str = "Simulation run";
    const COLUMNS: &'static [&'static str] = &["simulation_id", "agent_id", "status"];
    type Id = i64;

    fn cells(&self) -> Vec<Cell> {
        vec![self.simulation_id.into(), self.agent_id.into(), self.status.as_str().into()]
    }
}

impl Resource for ResultDoc {
    const TABLE: &'static str = "results";
    const WORD: &'static str = "Simulation result";
    const COLUMNS: &'static [&'static str] =
        &["run_id", "simulation_id", "agent_id", "digital_human_id", "status", "outcome", "latency", "tags", "verdict"];
    type Id = i64;

    fn cells(&self) -> Vec<Cell> {
        let body = &self.body;
        vec![
            body.simulation_run_id.into(),
            body.simulation_id.into(),
            body.agent_id.into(),
            body.digital_human_id.into(),
            body.status.as_str().into(),
            body.outcome.map(|outcome| outcome.as_str().to_owned()).into(),
            body.latency.as_ref().filter(|list| !list.is_empty()).map(|list| json!(list).to_string()).into(),
            Some(&body.tags).filter(|list| !list.is_empty()).map(|list| json!(list).to_string()).into(),
            body.word().map(|word| word.as_str().to_owned()).into(),
        ]
    }
}

impl Resource for ReviewDoc {
    const TABLE: &'static str = "reviews";
    const WORD: &'static str = "Review";
    const COLUMNS: &'static [&'static str] = &["result_id"];
    type Id = i64;

    fn cells(&self) -> Vec<Cell> {
        vec![self.result_id.into()]
    }
}
