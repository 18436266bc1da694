//! The settings that a conversation is held with. They are kept when it is placed, so that its evidence and its later
//! evaluations do not follow what is changed or deleted afterwards; where none were kept, today's rows stand for them.

use ringer_base::error::Result;
use ringer_model::agent::{AgentDoc, AgentSpec};
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::result::ResultDoc;
use ringer_model::secret::mask;
use ringer_model::simulation::SimulationSpec;
use ringer_store::{Row, Session};
use serde_json::{Value, json};

use super::facts::{SETTINGS, human_today};
use super::privacy::{redact_settings, redactor_of};

/// Keeps the settings of a conversation that begins, without secrets and without what is private where the agent asks
/// for that.
pub(crate) async fn keep_settings(
    db: &mut Session,
    row: &Row<ResultDoc>,
    agent: &AgentSpec,
    human: &DigitalHumanSpec,
    simulation: &SimulationSpec,
) -> Result<()> {
    let mut settings = settings(Some(agent), Some(human), Some(simulation));
    if let Some(redactor) = redactor_of(db, &row.doc).await? {
        redact_settings(&mut settings, &redactor);
    }
    db.put_text(SETTINGS, row.id, &settings).await
}

fn settings(agent: Option<&AgentSpec>, human: Option<&DigitalHumanSpec>, simulation: Option<&SimulationSpec>) -> Value {
    json!({ "agent": agent.map(mask), "digital_human": human, "simulation": simulation })
}

/// Returns the settings of a result: `agent`, `digital_human`, `simulation`, each null where it is not known any more.
/// Secrets of the agent alone are masked.
pub(crate) async fn settings_of(db: &mut Session, row: &Row<ResultDoc>) -> Result<Value> {
    if let Some(kept) = db.text(SETTINGS, row.id).await? {
        return Ok(kept);
    }
    let body = &row.doc.body;
    let agent = db.find::<AgentDoc>(body.agent_id).await?.map(|row| row.doc.spec);
    let simulation = db.find::<SimulationSpec>(body.simulation_id).await?.map(|row| row.doc);
    Ok(settings(agent.as_ref(), human_today(db, row).await?.as_ref(), simulation.as_ref()))
}
