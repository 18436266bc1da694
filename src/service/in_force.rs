//! The settings that a conversation is held with. They are kept when it is placed, so that its evidence and its later
//! evaluations do not follow what is changed or deleted afterwards; where none were kept, today's rows stand for them.

use serde::Deserialize;
use serde_json::{Value, json};

use super::Service;
use super::privacy::{redact_settings, redactor_of};
use crate::error::Result;
use crate::model::agent::{AgentDoc, AgentSpec};
use crate::model::digital_human::DigitalHumanSpec;
use crate::model::result::ResultDoc;
use crate::model::secret::masked;
use crate::model::simulation::SimulationSpec;
use crate::store::{Row, Session};

/// Kind under which the settings of a conversation are stored with its result.
pub(super) const SETTINGS: &str = "settings";

impl Service {
    /// Keeps the settings of the conversation that begins, without secrets and without what is private where the agent
    /// asks for that.
    pub(super) async fn keep_settings(
        &self,
        organization: &str,
        result_id: i64,
        agent: &AgentSpec,
        human: &DigitalHumanSpec,
        simulation: &SimulationSpec,
    ) -> Result<()> {
        let mut db = self.store.org(organization).write().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        let mut settings = settings(Some(agent), Some(human), Some(simulation));
        if let Some(redactor) = redactor_of(&mut db, &row.doc).await? {
            redact_settings(&mut settings, &redactor);
        }
        db.put_text(SETTINGS, result_id, &settings).await?;
        db.commit().await
    }
}

fn settings(agent: Option<&AgentSpec>, human: Option<&DigitalHumanSpec>, simulation: Option<&SimulationSpec>) -> Value {
    json!({ "agent": agent.map(masked), "digital_human": human, "simulation": simulation })
}

/// Returns the settings of a result: `agent`, `digital_human`, `simulation`, each null where it is not known any more.
/// Secrets of the agent alone are masked.
pub(super) async fn settings_of(db: &mut Session, row: &Row<ResultDoc>) -> Result<Value> {
    if let Some(kept) = db.text(SETTINGS, row.id).await? {
        return Ok(kept);
    }
    let body = &row.doc.body;
    let agent = db.find::<AgentDoc>(body.agent_id).await?.map(|row| row.doc.spec);
    let simulation = db.find::<SimulationSpec>(body.simulation_id).await?.map(|row| row.doc);
    Ok(settings(agent.as_ref(), human_today(db, row).await?.as_ref(), simulation.as_ref()))
}

/// Returns the Digital Human of a result as its conversation had it. While what is private is still in the conversation
/// it is the one of today, when there is one: what was kept is without it.
pub(super) async fn human_in_force(db: &mut Session, row: &Row<ResultDoc>) -> Result<Option<DigitalHumanSpec>> {
    if row.doc.private
        && let Some(today) = human_today(db, row).await?
    {
        return Ok(Some(today));
    }
    let kept: Option<Value> = db.text(SETTINGS, row.id).await?;
    // With a trait taken out of them that is also one of their own words, they can no longer be read.
    match kept.and_then(|kept| DigitalHumanSpec::deserialize(&kept["digital_human"]).ok()) {
        Some(human) => Ok(Some(human)),
        None => human_today(db, row).await,
    }
}

async fn human_today(db: &mut Session, row: &Row<ResultDoc>) -> Result<Option<DigitalHumanSpec>> {
    match row.doc.body.digital_human_id {
        Some(id) => Ok(db.find::<DigitalHumanSpec>(id).await?.map(|row| row.doc)),
        None => Ok(None),
    }
}
